#include "live/exit_note.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"

enum { EXIT_NOTE_MAX = 4096 };

void exit_note_read(const char *dir, int attempt, const char *launch, struct attempt_exit *out)
{
    *out = (struct attempt_exit){ .code = -1 };
    AUTO_FREE char *path = io_join(dir, "exit");
    AUTO_BUF struct buf b = BUF_INIT;
    struct stat st;
    if (!path || ours_read(&b, path, EXIT_NOTE_MAX, NULL) < 0 || stat(path, &st) < 0)
        return;
    int number = 0;
    char tag[80];
    struct attempt_exit x = { .there = true };
    if (sscanf(buf_text(&b), "attempt=%d launch=%79s kind=%15s code=%d", &number, tag, x.kind, &x.code) == 4 &&
        number == attempt && strcmp(tag, launch) == 0) {
        const char *kills = strstr(buf_text(&b), " oom_kills=");
        x.starved = kills && strtol(kills + strlen(" oom_kills="), NULL, 10) > 0;
        kills = strstr(buf_text(&b), " memory_kills=");
        x.limited = kills && strtol(kills + strlen(" memory_kills="), NULL, 10) > 0;
        const char *boot = strstr(buf_text(&b), " boot_ms=");
        x.boot_ms = boot ? strtoll(boot + strlen(" boot_ms="), NULL, 10) : 0;
        x.at_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
        *out = x;
    }
}

bool exit_note_is_killed(const struct attempt_exit *x)
{
    static const int signals[] = { SIGHUP, SIGINT, SIGKILL, SIGTERM };
    for (size_t i = 0; x->there && i < ARRAY_LEN(signals); i++)
        if (x->code == 128 + signals[i])
            return true;
    return false;
}
