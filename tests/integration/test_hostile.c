/* Hosts that mean harm: each lies in a way of its own (fake-host.c) to a driver that has one honest host beside. Whatever they say, the trials
 * are finished on the honest one, nothing is written where it does not belong, and the driver stays as small as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "tests/integration/harness.h"

#define AUTO_OUTPUT __attribute__((cleanup(harness_output_done)))

enum {
    AT_ONCE = 8,
    DRIVER_MB_MAX = 48, /* one without liars has 20 */
    DISK_MB_MAX = 8,
    PATIENCE_MS = 120000,
};

/* Becomes the helper "on" the host: b is honest. */
#define SSH                                                                                                            \
    "#!/bin/sh\n"                                                                                                      \
    "while [ \"$1\" != -- ]; do shift; done\n"                                                                         \
    "export HOME=$W/home-$2 FAKE_HOST=$2 PIPETUNE_MACHINE=$2 PIPETUNE_LEASES=$PIPETUNE_LEASES-$2\n"                    \
    "[ -e $HOME ] || mkdir $HOME; cd /\n"                                                                              \
    "if [ $2 = b ]; then exec \"$3\" \"$4\"; else exec $FAKE_HOST_PROGRAM; fi\n"

#define TRAIN                                                                                                          \
    "#!/bin/sh\n"                                                                                                      \
    "for epoch in 1 2; do sleep 0.05; $PIPETUNE tell loss=0.$((9 - epoch)) accuracy=0.$epoch --epoch $epoch; done\n"

/* `says`: what the driver tells of it; NULL: nothing in particular. */
static const struct row {
    const char *liar, *says;
} rows[] = {
    { "silent", "no line for 5 s" },
    { "owes", "does not answer" },
    { "refuses", "is left alone" },
    { "unasked", "it answers what it was not asked" },
    { "long-line", "a line of more than 65536 bytes" },
    { "junk", "is no answer of pipetune-node" },
    { "dies", "its launcher was killed" },
    { "deaf", NULL },
    { "forgets", "does not keep what it is sent" },
    { "far", "begins at byte" },
    { "backwards", NULL },
    { "ahead", NULL },
    { "talks", "came from its host without the end of an epoch" },
    { "beyond", "more of a launch than it was asked for" },
    { "one-line", NULL },
    { "ends", NULL },
    { "lacks", "could not be started" },
    { "ended-far", "does not tell the rest" },
    { "pid", NULL },
    { "proud", NULL },
    { "clock", NULL },
    { "escapes", NULL },
    { "root", "names no place for launches" },
    { "outside", "it is not below the trial's folder there" },
    { "floods-changes", "more than it was asked for" },
    { "floods-launches", "more than it was asked for" },
    { "floods-news", "more than it was asked for" },
    { "floods-gone", "more than it was asked for" },
    { "floods-samples", "more than it was asked for" },
    { "floods-bytes", "more than it was asked for" },
    { "floods-words", "more of a session than it was asked for" },
    { "dots", "what its host says of it" },
    { "absolute", "what its host says of it" },
    { "inner-dots", "what its host says of it" },
    { "newline", "what its host says of it" },
    { "escape", "what its host says of it" },
    { "twice", "File exists" },
    { "below-a-file", "Not a directory" },
    { "huge", "what its host says of it" },
    { "negative", "what its host says of it" },
    { "together-huge", "what its host says of it" },
    { "larger", "it is written anew all the time" },
    { "smaller", "it is written anew all the time" },
    { "no-end", "what its host says of it" },
    { "no-list", "what its host says of it" },
    { "deep", "what its host says of it" },
    { "many-files", NULL },
    { "endless", NULL },
    { "changing", "it is written anew all the time" },
};

static int open_hostile(void **state)
{
    if (world_open(state) < 0)
        return -1;
    const struct world *w = *state;
    static const char *const needless[] = { "SPARK_HOME", "JAVA_HOME", "BIGDL_HOME", "XDG_STATE_HOME",
                                            "XDG_RUNTIME_DIR" };
    for (size_t i = 0; i < ARRAY_LEN(needless); i++)
        (void)unsetenv(needless[i]);
    AUTO_FREE char *ssh = harness_path(w->dir, "ssh");
    AUTO_FREE char *fake = harness_program("tests/integration/fake-host");
    (void)setenv("W", w->dir, 1), (void)setenv("PIPETUNE", w->program, 1), (void)setenv("PIPETUNE_SSH", ssh, 1);
    (void)setenv("FAKE_HOST_PROGRAM", fake, 1);
    (void)setenv("PIPETUNE_NODES_SPEED", "20", 1), (void)setenv("PIPETUNE_REST_MS", "500", 1);
    (void)setenv("PIPETUNE_HOSTS_HASTE", "20", 1), (void)setenv("PIPETUNE_HEARD_MAX", "4000000", 1);
    world_script(w, "ssh", SSH);
    world_script(w, "train.sh", TRAIN);
    harness_write(w->dir, "app.json",
                  "{ \"command\": [\"./train.sh\"], \"progress\": [\"(?<loss>[0-9.]+)$\"],\n"
                  "  \"arguments\": { \"lr\": [\"--lr\", \"{}\"], \"epochs\": [\"--epochs\", \"{}\"],\n"
                  "    \"checkpoint\": [\"--save\", \"{}\"], \"resume\": [\"--load\", \"{checkpoint}\"] } }\n");
    return 0;
}

/* Each study has a folder of its own, with its store and its trials. */
static pid_t begin(const struct world *w, const char *liar)
{
    char text[1024], file[128];
    world_dir(w, liar);
    (void)snprintf(file, sizeof file, "%s/s.conf", liar);
    (void)snprintf(
        text, sizeof text,
        "{ \"application\": \"%s/app.json\", \"study\": { \"name\": \"s\", \"epochs\": 2, \"retries\": 9 },\n"
        "  \"store\": \"%s/%s/store.db\", \"nodes\": [\"%s\", \"b\"],\n"
        "  \"places\": { \"local\": \"no\", \"lost_seconds\": 3 }, \"tuning\": { \"policy\": \"v1\" },\n"
        "  \"spark\": { \"stall_seconds\": 5 }, \"monitoring\": { \"scope\": \"%s\" },\n"
        "  \"systemParameters\": { \"cores\": [1] }, \"hyperParameters\": { \"lr\": [1, 2, 3] } }\n",
        w->dir, w->dir, liar, liar, strcmp(liar, "floods-samples") == 0 ? "process" : "none");
    harness_write(w->dir, file, text);
    (void)snprintf(file, sizeof file, "%s/out", liar);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    AUTO_FREE char *conf = harness_path(w->dir, liar);
    (void)snprintf(text, sizeof text, "%s/s.conf", conf);
    pid_t pid = harness_spawn((char *[]){ w->program, (char *)"run", text, NULL }, fileno(f), fileno(f));
    (void)fclose(f);
    return pid;
}

static int64_t bytes_of(const char *dir)
{
    int64_t n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *f; d && (f = readdir(d));) {
        AUTO_FREE char *path = harness_path(dir, f->d_name);
        struct stat st;
        if (strcmp(f->d_name, ".") == 0 || strcmp(f->d_name, "..") == 0 || lstat(path, &st) < 0)
            continue;
        n += S_ISDIR(st.st_mode) ? bytes_of(path) : (int64_t)st.st_blocks * 512;
    }
    if (d)
        (void)closedir(d);
    return n;
}

/* Is there a file of that name anywhere below? */
static bool has_evil(const char *dir)
{
    bool any = false;
    DIR *d = opendir(dir);
    for (struct dirent *f; d && !any && (f = readdir(d));) {
        AUTO_FREE char *path = harness_path(dir, f->d_name);
        struct stat st;
        if (strcmp(f->d_name, ".") == 0 || strcmp(f->d_name, "..") == 0 || lstat(path, &st) < 0)
            continue;
        any = strstr(f->d_name, "evil") || (S_ISDIR(st.st_mode) && has_evil(path));
    }
    if (d)
        (void)closedir(d);
    return any;
}

static bool is_plain(const char *out)
{
    for (const unsigned char *p = (const unsigned char *)out; *p; p++)
        if ((*p < ' ' && *p != '\n') || *p == 0x7f)
            return false;
    return true;
}

static bool has_rows(const char *store, const char *sql, const char *want)
{
    AUTO_FREE char *got = harness_ask(store, sql);
    return strcmp(got, want) == 0;
}

/* What is wrong; NULL: nothing. */
static const char *fault_of(const struct row *r, int code, const struct rusage *used, const char *out)
{
    AUTO_FREE char *store = harness_path(r->liar, "store.db");
    AUTO_FREE char *trials = harness_path(r->liar, "pipetune.d");
    if (code != 0)
        return "it did not end well";
    if (r->says && !strstr(out, r->says))
        return r->says;
    if (!is_plain(out))
        return "a control character is printed";
    if (!has_rows(store, "SELECT count(*) FROM trials WHERE state = 'finished'", "3") ||
        !has_rows(store, "SELECT count(DISTINCT trial) FROM attempts WHERE place = 'b' AND outcome = 'finished'", "3"))
        return "not every trial was finished on the honest host";
    if (has_evil(trials))
        return "what it sent is here";
    if (bytes_of(r->liar) > (int64_t)DISK_MB_MAX << 20)
        return "it takes too much of the disk";
#if defined(__SANITIZE_ADDRESS__) /* which has memory of its own */
    const bool measures = false;
#else
    const bool measures = true;
#endif
    return measures && used->ru_maxrss > DRIVER_MB_MAX << 10 ? "the driver took too much memory" : NULL;
}

static bool went_well(const struct row *r, int code, const struct rusage *used)
{
    AUTO_FREE char *out = harness_read(r->liar, "out");
    const char *fault = fault_of(r, code, used, out);
    if (getenv("HOSTILE_TIMES"))
        (void)fprintf(stderr, "%s: %ld MB, %ld ms of CPU\n", r->liar, used->ru_maxrss >> 10,
                      used->ru_utime.tv_sec * 1000 + used->ru_utime.tv_usec / 1000 + used->ru_stime.tv_sec * 1000 +
                          used->ru_stime.tv_usec / 1000);
    if (fault)
        (void)fprintf(stderr, "%s: exit %d, %ld MB, %ld KB on the disk: %s: %s\n", r->liar, code, used->ru_maxrss >> 10,
                      (long)(bytes_of(r->liar) >> 10), fault, out);
    return !fault;
}

/* Its code and what it has used; past the time it is killed. */
static int end_of(pid_t pid, int64_t deadline, struct rusage *used)
{
    int status = 0;
    pid_t got;
    while ((got = wait4(pid, &status, WNOHANG, used)) == 0 && clock_ms() < deadline)
        (void)usleep(20000);
    if (got == 0) {
        (void)kill(pid, SIGKILL);
        (void)wait4(pid, &status, 0, used);
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* HOSTILE=name: that one alone. */
static void hosts_that_lie_harm_nobody(void **state)
{
    const struct world *w = *state;
    const char *only = getenv("HOSTILE");
    size_t wrong = 0;
    for (size_t first = 0; first < ARRAY_LEN(rows); first += AT_ONCE) {
        size_t n = ARRAY_LEN(rows) - first < AT_ONCE ? ARRAY_LEN(rows) - first : AT_ONCE;
        pid_t pids[AT_ONCE] = { 0 };
        int64_t deadline = clock_ms() + PATIENCE_MS;
        for (size_t i = 0; i < n; i++)
            pids[i] = !only || strcmp(only, rows[first + i].liar) == 0 ? begin(w, rows[first + i].liar) : 0;
        struct rusage used[AT_ONCE];
        int codes[AT_ONCE];
        for (size_t i = 0; i < n; i++)
            codes[i] = pids[i] ? end_of(pids[i], deadline, &used[i]) : 0;
        for (size_t i = 0; i < n; i++)
            wrong += pids[i] && !went_well(&rows[first + i], codes[i], &used[i]);
    }
    assert_int_equal(wrong, 0);
    assert_false(access("evil", F_OK) == 0 || access("/tmp/evil", F_OK) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hosts_that_lie_harm_nobody, open_hostile, world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
