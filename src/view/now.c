#include "view/now.h"

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
#include "store/running.h"
#include "view/table.h"
#include "view/words.h"

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
static char *log_of(const struct view *v, const struct store_trial *t, const struct store_attempt *a)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%d/heard", v->dir, t->number) < 0 || io_exists(path))
        return path;
    free(path);
    if (a->session)
        return asprintf(&path, "%s/session-%d/log", v->dir, a->session) < 0 ? NULL : path;
    return now_log_path(v, t->number);
}

/* --- */

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
static int application_of(const struct view *v, struct application *out)
{
    const json_t *stored = json_object_get(v->config, "bigdl");
    AUTO_FREE char *text = stored ? json_text(stored) : NULL;
    return text && parse_application(text, out) == 0 ? 0 : parse_application("{\"conf\": \"?\"}", out);
}

static int fold_log(const struct view *v, const struct application *app, const struct view_trial *t, struct fold *f)
{
    const struct store_attempt *a = &t->under_way;
    AUTO_FREE char *path = log_of(v, &t->row, a);
    fold_init(f, v->metric, a->log_offset);
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
    AUTO_JSON json_t *effective = words_object(t->effective);
    int parts = (int)json_number_value(json_object_get(effective, "executors"));
    return wait_for(&app->kind->words, f, t->slots, app_is_local(app) ? 0 : parts > 1 ? parts : 1);
}

int now_of(const struct view *v, const struct view_trial *t, struct now *out, struct err *e)
{
    const struct store_attempt *a = &t->under_way;
    struct application app = { 0 };
    struct fold f;
    *out = (struct now){ .part = NAN, .throughput = NAN, .cores = NAN, .seconds = NAN };
    if (!a->state || !v->dir || application_of(v, &app) < 0)
        return 0;
    int rc = fold_log(v, &app, t, &f);
    if (rc == 0) {
        out->runs = true;
        out->epoch = fold_epoch_now(&f);
        if (out->epoch && f.records_all > 0)
            out->part = fmin((double)f.records_done / (double)f.records_all, 1);
        out->throughput = out->epoch ? f.throughput : (double)NAN;
        out->cores = a->cores > 0 ? a->cores : (double)NAN;
        out->wait = wait_of(&app, &t->row, a, &f);
        out->seconds = (double)(running_now_ms(a) - a->started_ms) / 1000.0;
    }
    app_done(&app);
    return rc < 0 ? err_sys(e, rc, "trial %s/%d", v->study.name, t->row.number) : 0;
}

void now_put(struct buf *b, const struct store_trial *t, const struct now *n)
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

json_t *now_json(const struct now *n)
{
    char wait[WAIT_TEXT_MAX];
    if (!n->runs)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "epoch", n->epoch ? json_integer(n->epoch) : json_null(), "part",
                     json_num(n->part), "records_per_s", json_num(n->throughput), "cores", json_num(n->cores),
                     "seconds", json_num(n->seconds), "waits_for",
                     n->wait.kind == WAIT_NONE ? json_null() : json_string(wait_text(&n->wait, wait)));
}

char *now_log_path(const struct view *v, int trial)
{
    char *path = NULL;
    return asprintf(&path, "%s/%d/log", v->dir, trial) < 0 ? NULL : path;
}
