/* The best trial of a study, and where its trained model is. As JSON:
 *
 *     {"study","trial","metric","value","hyper":{},"checkpoint","pareto"}      checkpoint: null where none is there any more
 *
 * and `best_seen` (view/put.h), where one that was not trained to its end told better. Of several objectives it is the best by the first metric that
 * is told, and `pareto` has the numbers of the set; else null. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "live/resume.h"
#include "live/study.h"
#include "view/put.h"

struct best_options {
    char *store;
    bool json, checkpoint;
};

static const struct opt_row best_rows[] = {
    LOOK_STORE_ROW(struct best_options),
    LOOK_JSON_ROW(struct best_options),
    { NULL, "checkpoint", OPT_FLAG, offsetof(struct best_options, checkpoint), NULL, 0, 0, NULL, NULL,
      "print the path of its last checkpoint alone" },
};

void cmd_best_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(best_rows, NULL));
}

static int keep_trial(void *ctx, const struct store_trial *row)
{
    return store_trial_copy(ctx, row) < 0 ? -ENOMEM : 0;
}

struct newest {
    char *model;
    int64_t n;
    bool named; /* there is one by those names, whole or not */
};

static int keep_newest(void *ctx, const struct resume_checkpoint *c)
{
    struct newest *newest = ctx;
    newest->named = true;
    if (!c->model || !c->state || (newest->model && c->n < newest->n))
        return 0;
    free(newest->model);
    *newest = (struct newest){ strdup(c->model), c->n, true };
    return newest->model ? 0 : -ENOMEM;
}

/* Of an application that names its checkpoints as it likes: the one that it told of last, or what it wrote where it was asked to. */
static int find_told(struct store *s, const struct store_trial *trained, const char *dir, char **out, struct err *e)
{
    struct resume_point point = { 0 };
    int rc = resume_find_told(s, trained->id, dir, true, &point, e);
    if (rc == 1)
        *out = MOVE_PTR(point.model);
    resume_done(&point);
    return rc < 0 ? rc : 0;
}

/* Of the trial that was trained: one with the same settings took its result. */
static int find_checkpoint(struct store *s, const struct store_trial *t, const char *study_dir, char **out,
                           struct err *e)
{
    struct newest newest = { 0 };
    struct store_trial trained = { 0 };
    char name[32];
    (void)snprintf(name, sizeof name, "%d/checkpoint", t->copy_of ? t->copy_of : t->number);
    AUTO_FREE char *dir = io_join(study_dir, name);
    int rc = dir ? store_trials(s, t->study, t->copy_of ? t->copy_of : t->number, keep_trial, &trained, e) : -ENOMEM;
    if (rc == 0 && trained.id)
        rc = resume_each(s, trained.id, dir, keep_newest, &newest, e);
    if (rc == 0 && trained.id && !newest.named)
        rc = find_told(s, &trained, dir, &newest.model, e);
    store_trial_done(&trained);
    if (rc < 0)
        free(newest.model);
    else
        *out = newest.model;
    return rc;
}

static int print_json(const struct view *v, const struct view_trial *t, const char *checkpoint, struct err *e)
{
    json_t *seen;
    int rc = put_seen_json(&seen, v, e);
    if (rc < 0)
        return rc;
    json_t *j = json_pack("{s:s, s:i, s:s, s:o, s:o, s:o, s:o}", "study", v->study.name, "trial", t->row.number,
                          "metric", v->metric, "value", json_num(t->row.metric), "hyper", words_object(t->row.hyper),
                          "checkpoint", words_text(checkpoint), "pareto", pareto_json(&v->pareto));
    if (seen)
        (void)json_object_set_new(j, "best_seen", seen);
    return cmd_print_json(j);
}

static int print_text(const struct view *v, const struct view_trial *t, struct err *e)
{
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_BUF struct buf seen = BUF_INIT;
    AUTO_JSON json_t *hyper = words_object(t->row.hyper);
    int rc = put_seen_text(&seen, v, e);
    if (rc < 0)
        return rc;
    buf_printf(&b, "%s/%d: ", v->study.name, t->row.number);
    words_put_figure(&b, v->metric, t->row.metric);
    buf_puts(&b, "; ");
    words_put_members(&b, hyper);
    buf_putc(&b, '\n');
    pareto_put(&v->pareto, v->study.name, &b);
    if (seen.len)
        buf_printf(&b, "%s\n", buf_text(&seen));
    b.failed |= seen.failed;
    return cmd_print(&b);
}

static int print_checkpoint(const char *checkpoint)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "%s\n", checkpoint);
    return cmd_print(&b);
}

/* An exit code, or an error; -ENODATA: there is nothing to tell. */
static int print_best(const struct best_options *o, struct view *v, struct err *e)
{
    struct view_trial *t = view_trial(v, v->totals.best_trial);
    AUTO_FREE char *checkpoint = NULL;
    if (!t)
        return err_set(e, -ENODATA, "no trial of study '%s' is finished%s", v->study.name,
                       v->totals.done > 0 ? " that keeps the constraints" : " yet");
    int rc = find_checkpoint(v->store, &t->row, v->dir, &checkpoint, e);
    if (rc == 0)
        rc = view_pareto(v, e);
    if (rc == 0 && o->checkpoint && !checkpoint)
        rc = err_set(e, -ENODATA,
                     "trial %d of study '%s' has no checkpoint: its application writes none, or 'study.keep' "
                     "or 'gc' took it",
                     t->row.number, v->study.name);
    if (rc < 0)
        return rc;
    if (o->json)
        return print_json(v, t, checkpoint, e);
    return o->checkpoint ? print_checkpoint(checkpoint) : print_text(v, t, e);
}

static int best(const struct best_options *o, const struct strv *words, struct err *e)
{
    if (words->n == 0)
        return err_set(e, -EINVAL, "which study? 'pipetune ls' lists them, 'pipetune best STUDY' tells its best trial");
    const char *name = words->v[0];
    if (look_whole(name, "'pipetune show STUDY/N'", e) < 0)
        return -EINVAL;
    AUTO_FREE char *path = study_store_path(o->store);
    AUTO_FREE char *dir = path ? study_dir(path, name) : NULL;
    struct store *store = NULL;
    struct view v = { .store = NULL };
    int rc = dir ? store_open(&store, path, STORE_READ, e) : err_sys(e, -ENOMEM, "study '%s'", name);
    if (rc == 0)
        rc = view_open(&v, store, name, dir, study_driver(dir), e);
    if (rc == 0)
        rc = view_explain(print_best(o, &v, e), e, name);
    view_done(&v);
    store_close(store);
    return rc;
}

int cmd_best(int argc, char **argv)
{
    struct best_options o = { 0 };
    struct opt_set set = OPT_SET(best_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    int code;
    if (!cmd_options("best", argc, argv, &set, 1, &words, 1, &code)) {
        struct err e = { 0 };
        code = best(&o, &words, &e);
        if (code < 0)
            code = code == -ENODATA ? (cmd_fail(&e), CMD_NONE) : cmd_fail(&e);
    }
    opt_done(&set);
    return code;
}
