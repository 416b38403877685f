#include "node/house.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/num.h"
#include "base/own.h"
#include "base/strv.h"
#include "base/wire.h"

long house_memory_kb(const char *meminfo, const char *row)
{
    size_t len = strlen(row);
    for (const char *line = meminfo; *line;
         line += line[strcspn(line, "\n")] ? strcspn(line, "\n") + 1 : strlen(line)) {
        if (strncmp(line, row, len) != 0 || line[len] != ':')
            continue;
        char *end;
        long kb = strtol(line + len + 1, &end, 10);
        return end > line + len + 1 && kb >= 0 ? kb : -1;
    }
    return -1;
}

static void put_memory(struct buf *to)
{
    enum { MEMINFO_MAX = 64 << 10 };
    static const char *const keys[] = { "memory_mb", "free_mb" }, *const rows[] = { "MemTotal", "MemAvailable" };
    AUTO_BUF struct buf text = BUF_INIT;
    double load;
    bool known = io_read_file(&text, "/proc/meminfo", MEMINFO_MAX, NULL) == 0;
    for (size_t i = 0; known && i < ARRAY_LEN(keys); i++) {
        long kb = house_memory_kb(buf_text(&text), rows[i]);
        if (kb >= 0)
            buf_printf(to, ",\"%s\":%ld", keys[i], kb / 1024);
    }
    if (getloadavg(&load, 1) == 1) {
        buf_puts(to, ",\"load\":");
        num_put(to, load);
    }
}

/* --- launches --- */

struct seen {
    struct buf running; /* names with commas between */
    size_t n_running;
    struct strv over;
};

static void on_launch(void *ctx, const char *tag, const struct launch_facts *f)
{
    struct seen *s = ctx;
    if (f->state != LAUNCH_RUNNING && f->state != LAUNCH_WAITING) {
        strv_add(&s->over, tag);
        return;
    }
    if (f->served) /* its session stands for it */
        return;
    if (s->n_running < HOUSE_TAGS_MAX)
        buf_printf(&s->running, "%s%s", s->n_running ? "," : "", tag);
    s->n_running++;
}

static void put_running(struct buf *to, const struct seen *s)
{
    buf_puts(to, ",\"running\":");
    wire_put_text(to, buf_text(&s->running));
    buf_printf(to, ",\"n_running\":%zu", s->n_running);
    to->failed |= s->running.failed || s->over.failed;
}

static void seen_done(struct seen *s)
{
    buf_done(&s->running);
    strv_done(&s->over);
}

int house_look(struct launches *l, struct buf *to, struct err *e)
{
    struct seen s = { .running = BUF_INIT, .over = STRV_INIT };
    int rc = launches_each(l, on_launch, &s, e);
    if (rc == 0) {
        put_memory(to);
        put_running(to, &s);
        buf_printf(to, ",\"over\":%zu", s.over.n);
    }
    seen_done(&s);
    return rc;
}

int house_clean(struct launches *l, struct buf *to, struct err *e)
{
    struct seen s = { .running = BUF_INIT, .over = STRV_INIT };
    size_t removed = 0, kept = 0;
    int rc = launches_each(l, on_launch, &s, e);
    for (size_t i = 0; rc == 0 && i < s.over.n; i++) {
        struct launch_facts running = { .state = LAUNCH_RUNNING };
        struct err why;
        int gone = launches_forget(l, s.over.v[i], &why);
        removed += gone == 0;
        kept += gone < 0 && gone != -EBUSY;
        if (gone == -EBUSY) /* begun meanwhile, or waiting for its go */
            on_launch(&s, s.over.v[i], &running);
    }
    bool root = rc == 0 && s.n_running == 0 && launches_leave(l);
    if (rc == 0) {
        buf_printf(to, ",\"removed\":%zu,\"kept\":%zu,\"root\":%s", removed, kept, root ? "true" : "false");
        put_running(to, &s);
    }
    seen_done(&s);
    return rc;
}
