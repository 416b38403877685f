/* What a running trial is at: the newest rows of the store, and what its log has gained since. The driver may be writing both, so
 * nothing here locks or changes anything; what cannot be had is not known. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/app.h"
#include "app/fold.h"
#include "base/io.h"
#include "base/own.h"
#include "cmd/look.h"
#include "cmd/show_parts.h"
#include "live/study.h"
#include "store/running.h"

enum { READ_MOST = 8 << 20 }; /* of the log's end: each step tells its epoch and how far that is */

/* --- the log --- */

static int hear(void *ctx, const struct app_report *ev, uint64_t end)
{
    struct fold_epoch ignored; /* the driver stores it */
    (void)fold_report(ctx, ev, end, &ignored);
    return 0;
}

static int read_all(int fd, const struct line_reader *reader, struct fold *f, uint64_t from, bool in_line)
{
    struct lines s;
    char chunk[32768];
    ssize_t n;
    int rc = 0;
    lines_init(&s, reader, from);
    while (rc == 0 && (n = pread(fd, chunk, sizeof chunk, (off_t)s.offset)) > 0) {
        const char *newline = in_line ? memchr(chunk, '\n', (size_t)n) : NULL;
        if (newline)
            s.offset += (uint64_t)(newline + 1 - chunk);
        else
            rc = lines_feed(&s, chunk, (size_t)n, hear, f);
        in_line = false;
    }
    lines_done(&s);
    return rc;
}

static int read_log(const char *path, const struct line_reader *reader, uint64_t from, struct fold *f)
{
    struct stat st;
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0; /* not written yet, or not ours to read */
    uint64_t size = (uint64_t)st.st_size;
    bool cut = size > from && size - from > READ_MOST;
    return read_all(fd, reader, f, cut ? size - READ_MOST : from, cut);
}

/* What is heard of a trial stands in its own folder; where that is not so, in what its launch prints. */
static char *log_of(const struct show *l, const struct store_trial *t, const struct store_attempt *a)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%d/heard", l->dir, t->number) < 0 || io_exists(path))
        return path;
    free(path);
    if (a->session)
        return asprintf(&path, "%s/session-%d/log", l->dir, a->session) < 0 ? NULL : path;
    return show_log_path(l, t->number);
}

/* --- */

static int keep_running(void *ctx, const struct store_attempt *a)
{
    struct store_attempt *to = ctx;
    if (strcmp(a->state, "running") != 0)
        return 0;
    store_attempt_done(to);
    return store_attempt_copy(to, a);
}

/* What the study's application file said of a variable is not known here, and not needed. */
static const char *no_variable(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
    return "?";
}

static int parse_application(const char *text, struct application *out)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    int rc = json_doc_parse(&doc, "", text, strlen(text), NULL);
    return rc < 0 ? rc : app_parse(out, &doc, no_variable, NULL, NULL);
}

/* As it was stored with the study; where that cannot be read, as most are. */
static int application_of(const struct show *l, struct application *out)
{
    const json_t *stored = json_object_get(l->config, "bigdl");
    AUTO_FREE char *text = stored ? json_text(stored) : NULL;
    return text && parse_application(text, out) == 0 ? 0 : parse_application("{\"conf\": \"?\"}", out);
}

static int fold_log(struct show *l, const struct application *app, const struct store_trial *t,
                    const struct store_attempt *a, struct fold *f)
{
    AUTO_FREE char *path = log_of(l, t, a);
    fold_init(f, show_metric(l), a->log_offset);
    return path ? read_log(path, &app->reader, a->log_offset, f) : -ENOMEM;
}

/* What it is launched with stands in the store: nothing here reads the config anew, or asks the cluster. */
static struct wait wait_of(const struct application *app, const struct store_trial *t, const struct store_attempt *a,
                           const struct fold *f)
{
    if (a->log_offset > 0 || f->iteration > 0) /* an epoch of it has been accounted, or a step is seen */
        return (struct wait){ .kind = WAIT_NONE };
    if (a->session) /* what serves it is up */
        return (struct wait){ .kind = WAIT_DATA };
    AUTO_JSON json_t *effective = show_object(t->effective);
    int parts = (int)json_number_value(json_object_get(effective, "executors"));
    return wait_for(&app->kind->words, f, t->slots, app_is_local(app) ? 0 : parts > 1 ? parts : 1);
}

int show_now(struct show *l, const struct store_trial *t, struct show_now *out)
{
    struct store_attempt a = { 0 };
    struct application app = { 0 };
    struct fold f;
    *out = (struct show_now){ .part = NAN, .throughput = NAN, .cores = NAN, .seconds = NAN };
    if (strcmp(show_trial_state(l, t), "running") != 0)
        return 0;
    int rc = store_attempts(l->store, t->id, keep_running, &a, l->e);
    bool runs = rc == 0 && a.state && application_of(l, &app) == 0;
    if (runs)
        rc = fold_log(l, &app, t, &a, &f);
    if (rc == 0 && runs) {
        out->runs = true;
        out->epoch = fold_epoch_now(&f);
        if (out->epoch && f.records_all > 0)
            out->part = fmin((double)f.records_done / (double)f.records_all, 1);
        out->throughput = out->epoch ? f.throughput : (double)NAN;
        out->cores = a.cores > 0 ? a.cores : (double)NAN;
        out->wait = wait_of(&app, t, &a, &f);
        out->seconds = (double)(running_now_ms(&a) - a.started_ms) / 1000.0;
    }
    app_done(&app);
    store_attempt_done(&a);
    return rc == -ENOMEM ? err_sys(l->e, rc, "trial %s/%d", l->study.name, t->number) : rc;
}

void show_put_now(struct buf *b, const struct store_trial *t, const struct show_now *n)
{
    char digits[32], wait[WAIT_TEXT_MAX];
    if (n->wait.kind != WAIT_NONE)
        buf_puts(b, wait_text(&n->wait, wait));
    else if (n->epoch > 0)
        buf_printf(b, "epoch %d of %d under way", n->epoch, t->epochs);
    else
        buf_puts(b, "no step is trained yet since it began or the last epoch ended");
    if (isfinite(n->part))
        buf_printf(b, ", %.0f %% of it", 100 * n->part);
    if (isfinite(n->throughput))
        buf_printf(b, ", %s records/s", table_digits(n->throughput, digits));
    if (isfinite(n->cores))
        buf_printf(b, "; %s CPU%s in force", table_digits(n->cores, digits), n->cores == 1 ? "" : "s");
}

json_t *show_now_json(const struct show_now *n)
{
    char wait[WAIT_TEXT_MAX];
    if (!n->runs)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "epoch", n->epoch ? json_integer(n->epoch) : json_null(), "part",
                     json_num(n->part), "records_per_s", json_num(n->throughput), "cores", json_num(n->cores),
                     "seconds", json_num(n->seconds), "waits_for",
                     n->wait.kind == WAIT_NONE ? json_null() : json_string(wait_text(&n->wait, wait)));
}
