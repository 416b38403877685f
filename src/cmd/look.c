#include "cmd/look.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/strv.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "live/study.h"

const struct opt_row look_rows[2] = { LOOK_STORE_ROW(struct look_options), LOOK_JSON_ROW(struct look_options) };

void look_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(look_rows, NULL));
}

int look_open_to_write(struct store **out, const char *path, struct err *e)
{
    return store_open(out, path, io_exists(path) ? STORE_WRITE : STORE_READ, e);
}

const char *look_state(const char *stored, pid_t driver)
{
    return driver == 0 && strcmp(stored, "running") == 0 ? "interrupted" : stored;
}

json_t *look_text(const char *text)
{
    return text ? json_bytes(text) : json_null();
}

json_t *look_best(int trial, double accuracy)
{
    return trial ? json_pack("{s:i, s:o}", "trial", trial, "accuracy", json_num(accuracy)) : json_null();
}

void look_put_counts(struct buf *out, const struct store_summary *totals)
{
    buf_printf(out, "%d done, %d failed", totals->done, totals->failed);
    if (totals->stopped)
        buf_printf(out, ", %d stopped", totals->stopped);
    if (totals->paused)
        buf_printf(out, ", %d paused", totals->paused);
}

void look_best_cells(struct table *t, const char *study, const struct store_summary *totals)
{
    table_number(t, totals->best_trial ? totals->best_accuracy : (double)NAN);
    if (totals->best_trial)
        table_cellf(t, "%s/%d", study, totals->best_trial);
    else
        table_cell(t, "-");
}

static int keep_trial(void *ctx, const struct store_trial *row)
{
    return store_trial_copy(ctx, row) < 0 ? -ENOMEM : 0;
}

/* 1: there is one that beats the best trial; `trial`, where it is wanted, is to be freed. */
static int find_seen(struct store *s, const struct store_study *study, int best, struct store_seen *out,
                     struct store_trial *trial, struct err *e)
{
    struct store_seen seen;
    int rc = best ? store_best_seen(s, study->id, study->maximise, &seen, e) : 0;
    if (rc != 1 || seen.trial == best)
        return rc < 0 ? rc : 0;
    rc = store_trials(s, study->id, seen.trial, keep_trial, trial, e);
    *out = seen;
    return rc < 0 ? look_explain(rc, e, study->name) : trial->state && strcmp(trial->state, "finished") != 0;
}

int look_add_seen(json_t *out, struct store *s, const struct store_study *study, int best, struct err *e)
{
    struct store_seen seen;
    struct store_trial t = { 0 };
    int rc = find_seen(s, study, best, &seen, &t, e);
    store_trial_done(&t);
    if (rc <= 0)
        return rc;
    json_t *one =
        json_pack("{s:i, s:i, s:o}", "trial", seen.trial, "epoch", seen.epoch, "value", json_num(seen.metric));
    return json_object_set_new(out, "best_seen", one) == 0 ? 0 : err_sys(e, -ENOMEM, "study '%s'", study->name);
}

int look_put_seen(struct buf *out, struct store *s, const struct store_study *study, int best, struct err *e)
{
    struct store_seen seen;
    struct store_trial t = { 0 };
    char value[32];
    int rc = find_seen(s, study, best, &seen, &t, e);
    if (rc == 1) {
        bool paused = strcmp(t.state, "paused") == 0;
        buf_printf(out, "%s/%d had %s after %d of %d epochs, and %s%s", study->name, seen.trial,
                   table_digits(seen.metric, value), seen.epoch, t.epochs, paused ? "is paused" : "was stopped",
                   t.reason ? ": " : "");
        if (t.reason)
            utf8_put_plain(out, t.reason, strlen(t.reason), UTF8_ONE_LINE);
    }
    store_trial_done(&t);
    return rc < 0 ? rc : 0;
}

json_t *look_object(const char *text)
{
    json_t *j = text ? json_loads(text, 0, NULL) : NULL;
    if (json_is_object(j))
        return j;
    json_decref(j);
    return json_object();
}

static int running_seconds(void *ctx, const struct store_attempt *a)
{
    double *seconds = ctx;
    if (strcmp(a->state, "running") == 0)
        *seconds += (double)(study_now_in(a) - a->started_ms) / 1000.0;
    return 0;
}

double look_seconds(struct store *s, const struct store_trial *t, pid_t driver)
{
    double seconds = t->seconds;
    if (strcmp(t->state, "running") == 0 && driver != 0)
        (void)store_attempts(s, t->id, running_seconds, &seconds, NULL); /* then it is the time without it */
    return seconds;
}

struct under_way {
    struct store *store;
    pid_t driver;
    double seconds;
};

static int add_under_way(void *ctx, const struct store_trial *t)
{
    struct under_way *u = ctx;
    u->seconds += look_seconds(u->store, t, u->driver) - t->seconds;
    return 0;
}

int look_add_running(struct store *s, int64_t study, pid_t driver, struct store_summary *totals, struct err *e)
{
    struct under_way u = { s, driver, 0 };
    int rc = driver ? store_trials(s, study, 0, add_under_way, &u, e) : 0;
    totals->seconds += u.seconds;
    return rc;
}

/* --- finding --- */

static int collect_name(void *ctx, const struct store_summary *r)
{
    strv_add(ctx, r->name);
    return 0;
}

static int unknown_study(struct store *s, const char *name, struct err *e)
{
    AUTO_STRV struct strv names = STRV_INIT;
    int rc = store_list(s, collect_name, &names, e);
    if (rc < 0)
        return rc;
    const char *near = suggest_nearest(name, (const char *const *)names.v, names.n);
    if (near)
        return err_set(e, -EINVAL, "no study '%s': did you mean '%s'?", name, near);
    AUTO_BUF struct buf list = BUF_INIT;
    enum { NAMED = 8 };
    for (size_t i = 0; i < names.n && i < NAMED; i++)
        buf_printf(&list, "%s%s", i ? ", " : "", names.v[i]);
    if (names.n == 0)
        return err_set(e, -EINVAL, "no study '%s': the store has none yet", name);
    return err_set(e, -EINVAL, "no study '%s': there %s %s%s", name, names.n == 1 ? "is" : "are", buf_text(&list),
                   names.n > NAMED ? ", …; see 'pipetune ls'" : "");
}

int look_find(struct store *s, const char *name, struct store_study *out, struct err *e)
{
    int rc = store_study_find(s, name, out, e);
    if (rc == 0)
        return unknown_study(s, name, e);
    return rc < 0 ? rc : 0;
}

struct wanted {
    const char *name;
    struct store_summary *out;
};

static int take_summary(void *ctx, const struct store_summary *r)
{
    const struct wanted *w = ctx;
    if (strcmp(r->name, w->name) != 0)
        return 0;
    *w->out = *r;
    w->out->name = w->out->state = NULL; /* valid during the call alone */
    return 1;
}

int look_totals(struct store *s, const char *name, struct store_summary *out, struct err *e)
{
    struct wanted w = { name, out };
    *out = (struct store_summary){ 0 };
    int rc = store_list(s, take_summary, &w, e);
    return rc < 0 ? rc : 0;
}

int look_no_trial(const char *study, long n, int trials, struct err *e)
{
    if (trials == 0)
        return err_set(e, -EINVAL, "there is no trial %s/%ld: the study has none yet", study, n);
    return err_set(e, -EINVAL, "there is no trial %s/%ld: the study's last is %s/%d", study, n, study, trials);
}

int look_trial(const char *word, const char *study, int trials, int *out, struct err *e)
{
    char *end;
    long n = strtol(word, &end, 10);
    if (end == word || *end || n < 1)
        return err_set(e, -EINVAL, "trial '%s': must be a number from 1", word);
    if (n > INT_MAX || n > trials)
        return look_no_trial(study, n, trials, e);
    *out = (int)n;
    return 0;
}

int look_name(struct look_name *out, const char *word, struct err *e)
{
    const char *slash = strrchr(word, '/');
    int trial = 0;
    if (slash == word)
        return err_set(e, -EINVAL, "trial '%s': there is no study before the slash; say STUDY/N, as in demo/2", word);
    int rc = slash ? look_trial(slash + 1, NULL, INT_MAX, &trial, e) : 0;
    if (rc < 0)
        return err_set(e, rc, "trial '%s': what follows the slash must be a number from 1, as in demo/2", word);
    char *study = slash ? strndup(word, (size_t)(slash - word)) : strdup(word);
    if (!study)
        return err_sys(e, -ENOMEM, "study '%s'", word);
    *out = (struct look_name){ study, trial };
    return 0;
}

int look_whole(const char *word, const char *instead, struct err *e)
{
    if (!strchr(word, '/'))
        return 0;
    return err_set(e, -EINVAL, "'%s' is a trial, and this is about whole studies: see %s", word, instead);
}

void look_name_done(struct look_name *n)
{
    free(n->study);
    *n = (struct look_name){ 0 };
}

int look_name_find(struct look_name *out_name, struct store *s, const char *word, struct store_study *out,
                   struct err *e)
{
    struct store_summary totals;
    int rc = look_name(out_name, word, e);
    if (rc == 0)
        rc = look_find(s, out_name->study, out, e);
    if (rc < 0 || !out_name->trial)
        return rc;
    rc = look_totals(s, out_name->study, &totals, e);
    return rc < 0 || out_name->trial <= totals.trials
               ? rc
               : look_no_trial(out_name->study, out_name->trial, totals.trials, e);
}

int look_explain(int rc, struct err *e, const char *study)
{
    return rc < 0 && !e->code ? err_sys(e, rc, "study '%s'", study) : rc;
}

bool look_time(char out[32], int64_t ms, const char *format)
{
    time_t at = (time_t)(ms / 1000);
    struct tm tm;
    if (!localtime_r(&at, &tm))
        return false;
    (void)strftime(out, 32, format, &tm);
    return true;
}
