/* The best trial of a study, and where its trained model is. As JSON:
 *
 *     {"study","trial","metric","value","hyper":{},"checkpoint","pareto"}      checkpoint: null where none is there any more
 *
 * and `best_seen` (look.h), where one that was not trained to its end told better. Of several objectives it is the best by the first metric that
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
#include "view/pareto.h"

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

static const char *metric_of(const json_t *config)
{
    const char *name = json_string_value(json_object_get(json_object_get(config, "study"), "metric"));
    return name ? name : "accuracy";
}

/* A better value than the best trial's, if there is one: as a line, and as members of the JSON. */
struct seen {
    struct buf line;
    json_t *json;
};

static int find_seen(struct seen *out, struct store *s, const struct store_study *study, int best, struct err *e)
{
    out->json = json_object();
    int rc = look_add_seen(out->json, s, study, best, e);
    return rc < 0 ? rc : look_put_seen(&out->line, s, study, best, e);
}

static int print_best(const struct best_options *o, const struct store_study *study, const struct store_trial *t,
                      const char *checkpoint, const struct seen *seen, const struct pareto *pareto)
{
    AUTO_JSON json_t *config = look_object(study->config);
    AUTO_JSON json_t *hyper = look_object(t->hyper);
    const char *metric = metric_of(config);
    if (o->json) {
        json_t *j = json_pack("{s:s, s:i, s:s, s:o, s:O, s:o, s:o}", "study", study->name, "trial", t->number, "metric",
                              metric, "value", json_num(t->metric), "hyper", hyper, "checkpoint",
                              checkpoint ? json_bytes(checkpoint) : json_null(), "pareto", pareto_json(pareto));
        if (j && json_object_update(j, seen->json) < 0)
            json_decref(MOVE_PTR(j));
        return cmd_print_json(j);
    }
    AUTO_BUF struct buf b = BUF_INIT;
    char num[NUM_TEXT_MAX];
    if (o->checkpoint) {
        buf_printf(&b, "%s\n", checkpoint);
        return cmd_print(&b);
    }
    buf_printf(&b, "%s/%d: %s %s;", study->name, t->number, metric, num_print(t->metric, num));
    const char *name, *sep = " ";
    json_t *value;
    json_object_foreach(hyper, name, value)
    {
        AUTO_FREE char *text = json_is_string(value) ? strdup(json_string_value(value)) : json_text(value);
        buf_printf(&b, "%s%s %s", sep, name, text ? text : "?");
        sep = ", ";
    }
    buf_putc(&b, '\n');
    pareto_put(pareto, study->name, &b);
    if (seen->line.len)
        buf_printf(&b, "%s\n", buf_text(&seen->line));
    b.failed |= seen->line.failed;
    return cmd_print(&b);
}

static int with_store(const struct best_options *o, struct store *s, const char *path, const char *name, int *code,
                      struct err *e)
{
    struct store_study study = { 0 };
    struct store_summary totals;
    struct store_trial t = { 0 };
    struct seen seen = { .line = BUF_INIT };
    struct pareto pareto = { .n = 0 };
    AUTO_FREE char *checkpoint = NULL;
    AUTO_FREE char *dir = study_dir(path, name);
    int rc = dir ? look_find(s, name, &study, e) : err_sys(e, -ENOMEM, "study '%s'", name);
    if (rc == 0)
        rc = look_totals(s, name, &totals, e);
    if (rc == 0 && totals.best_trial == 0)
        rc = err_set(e, -ENOENT, "no trial of study '%s' is finished%s", name,
                     totals.done > 0 ? " that keeps the constraints" : " yet");
    if (rc == 0)
        rc = store_trials(s, study.id, totals.best_trial, keep_trial, &t, e);
    if (rc == 0)
        rc = find_checkpoint(s, &t, dir, &checkpoint, e);
    if (rc == 0)
        rc = pareto_load(&pareto, s, &study, e);
    if (rc == 0 && o->checkpoint && !checkpoint)
        rc = err_set(e, -ENOENT,
                     "trial %d of study '%s' has no checkpoint: its application writes none, or 'study.keep' "
                     "or 'gc' took it",
                     t.number, name);
    if (rc == 0)
        rc = find_seen(&seen, s, &study, t.number, e);
    *code = rc == -ENOENT ? CMD_NONE
            : rc == 0     ? print_best(o, &study, &t, checkpoint, &seen, &pareto)
                          : CMD_ENVIRONMENT;
    buf_done(&seen.line);
    json_decref(seen.json);
    pareto_done(&pareto);
    store_trial_done(&t);
    store_study_done(&study);
    return look_explain(rc, e, name);
}

static int best(const struct best_options *o, const struct strv *words, int *code, struct err *e)
{
    if (words->n == 0)
        return err_set(e, -EINVAL, "which study? 'pipetune ls' lists them, 'pipetune best STUDY' tells its best trial");
    if (look_whole(words->v[0], "'pipetune show STUDY/N'", e) < 0)
        return -EINVAL;
    AUTO_FREE char *path = study_store_path(o->store);
    struct store *store = NULL;
    int rc = path ? store_open(&store, path, STORE_READ, e) : err_sys(e, -ENOMEM, "store");
    if (rc == 0)
        rc = with_store(o, store, path, words->v[0], code, e);
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
        code = CMD_OK;
        if (best(&o, &words, &code, &e) < 0) {
            int failed = cmd_fail(&e);
            code = code == CMD_NONE ? CMD_NONE : failed;
        }
    }
    opt_done(&set);
    return code;
}
