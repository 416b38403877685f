#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/table.h"
#include "live/study.h"

struct ls_options {
    char *store;
    bool json;
};

static const struct opt_row ls_rows[] = {
    { NULL, "store", OPT_TEXT, offsetof(struct ls_options, store), NULL, 0, 0, NULL, "FILE",
      "the store (default $PIPETUNE_STORE, else ./pipetune.db)" },
    { NULL, "json", OPT_FLAG, offsetof(struct ls_options, json), NULL, 0, 0, NULL, NULL, "print JSON" },
};

static struct opt_set ls_opts(struct ls_options *o)
{
    return (struct opt_set){ .rows = ls_rows, .n = ARRAY_LEN(ls_rows), .target = o };
}

void cmd_ls_options(struct buf *b)
{
    struct opt_set set = ls_opts(NULL);
    opt_help(b, &set);
}

struct listing {
    const char *store; /* its path */
    json_t *json;      /* NULL: for people */
    struct table table;
};

/* The store cannot know that a driver died; the lock that died with it does. */
static const char *state_now(const struct listing *l, const struct store_summary *r)
{
    if (strcmp(r->state, "running") != 0)
        return r->state;
    AUTO_FREE char *dir = study_dir(l->store, r->name);
    return dir && study_driver(dir) != 0 ? "running" : "interrupted";
}

static json_t *number_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static int add_json(struct listing *l, const struct store_summary *r)
{
    json_t *best = r->best_trial
                       ? json_pack("{s:i, s:o}", "trial", r->best_trial, "accuracy", number_or_null(r->best_accuracy))
                       : json_null();
    json_t *one = json_pack("{s:s, s:s, s:i, s:i, s:i, s:o, s:o, s:n}", "study", r->name, "state", state_now(l, r),
                            "trials", r->trials, "done", r->done, "failed", r->failed, "best", best, "seconds",
                            number_or_null(r->seconds), "energy_j"); /* nothing measures joules yet: absent is not 0 */
    return json_array_append_new(l->json, one) < 0 ? -ENOMEM : 0;
}

static void add_row(struct listing *l, const struct store_summary *r)
{
    struct table *t = &l->table;
    char when[32] = "";
    time_t created = (time_t)(r->created_ms / 1000);
    struct tm tm;
    if (localtime_r(&created, &tm))
        (void)strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
    table_cell(t, r->name);
    table_cell(t, state_now(l, r));
    table_cellf(t, "%d", r->trials);
    table_cellf(t, "%d", r->done);
    table_cellf(t, "%d", r->failed);
    if (r->best_trial && isfinite(r->best_accuracy))
        table_cellf(t, "%.4f (trial %d)", r->best_accuracy, r->best_trial);
    else if (r->best_trial)
        table_cellf(t, "trial %d", r->best_trial);
    else
        table_cell(t, "-");
    table_seconds(t, r->seconds);
    table_cell(t, when);
}

static int add_study(void *ctx, const struct store_summary *r)
{
    struct listing *l = ctx;
    if (l->json)
        return add_json(l, r);
    add_row(l, r);
    return 0;
}

static int print_table(const struct listing *l)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (l->table.n <= l->table.columns)
        buf_printf(&b, "no study in '%s' yet: 'pipetune run --config FILE' begins one\n", l->store);
    else
        table_put(&l->table, &b, 0);
    return cmd_print(&b);
}

static int list(struct listing *l)
{
    struct err e = { 0 };
    struct store *s = NULL;
    int rc = store_open(&s, l->store, STORE_READ, &e);
    if (rc == 0)
        rc = store_list(s, add_study, l, &e);
    else if (rc == -ENOENT) /* nothing was run yet: that is an answer too */
        rc = 0;
    store_close(s);
    if (rc < 0 && !e.code) /* a callback's, which explains nothing */
        (void)err_sys(&e, rc, "cannot list the studies");
    if (rc < 0)
        return cmd_fail(&e);
    return l->json ? cmd_print_json(json_incref(l->json)) : print_table(l);
}

int cmd_ls(int argc, char **argv)
{
    static const char *const heads[] = {
        "study", "state", ">trials", ">done", ">failed", "best", ">time", "begun", NULL
    };
    struct ls_options o = { 0 };
    struct opt_set set = ls_opts(&o);
    int code;
    if (!cmd_options("ls", argc, argv, &set, 1, NULL, 0, &code)) {
        AUTO_FREE char *path = study_store_path(o.store);
        struct err e;
        struct listing l = { .store = path, .json = o.json ? json_array() : NULL };
        table_init(&l.table, heads);
        code = path && (l.json || !o.json) ? list(&l) : (err_sys(&e, -ENOMEM, "cannot list"), cmd_fail(&e));
        json_decref(l.json);
        table_done(&l.table);
    }
    opt_done(&set);
    return code;
}
