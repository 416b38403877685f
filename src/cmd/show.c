/* A study, its trials or its decisions. Rows are printed as they are read: a study may have 100,000 trials. Only the
 * table for people is held, because its columns are as wide as their widest cell. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "cmd/show.h"
#include "cmd/show_parts.h"
#include "live/study.h"

enum { FLUSH_AT = 65536 };

struct show_options {
    char *store;
    bool decisions, log, importance, json;
};

static const struct opt_row show_rows[] = {
    LOOK_STORE_ROW(struct show_options),
    { NULL, "decisions", OPT_FLAG, offsetof(struct show_options, decisions), NULL, 0, 0, NULL, NULL,
      "what was decided, when and why" },
    { NULL, "log", OPT_FLAG, offsetof(struct show_options, log), NULL, 0, 0, NULL, NULL,
      "print the path of the trial's log" },
    { NULL, "importance", OPT_FLAG, offsetof(struct show_options, importance), NULL, 0, 0, NULL, NULL,
      "which hyperparameter mattered" },
    LOOK_JSON_ROW(struct show_options),
};

void cmd_show_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(show_rows, NULL));
}

int show_flush(struct show *l)
{
    int rc = cmd_write(&l->out, l->json ? CMD_JSON : CMD_TEXT, l->e);
    buf_clear(&l->out);
    return rc;
}

int show_flush_when_full(struct show *l)
{
    return l->out.len < FLUSH_AT && !l->out.failed ? 0 : show_flush(l);
}

/* --- what the parts ask --- */

json_t *show_object(const char *text)
{
    return look_object(text);
}

const char *show_trial_state(const struct show *l, const struct store_trial *t)
{
    return look_state(t->state, l->driver);
}

const char *show_study_state(const struct show *l)
{
    return look_state(l->study.state, l->driver);
}

double show_seconds(const struct show *l, const struct store_trial *t)
{
    return look_seconds(l->store, t, l->driver);
}

const char *show_config_text(const struct show *l, const char *section, const char *key)
{
    const json_t *in = *section ? json_object_get(l->config, section) : l->config;
    return json_string_value(json_object_get(in, key));
}

const char *show_metric(const struct show *l)
{
    const char *metric = show_config_text(l, "study", "metric");
    return metric ? metric : "accuracy";
}

char *show_log_path(const struct show *l, int trial)
{
    char *path = NULL;
    return asprintf(&path, "%s/%d/log", l->dir, trial) < 0 ? NULL : path;
}

/* --- finding it --- */

/* `driver`: who holds the study's lock, 0 when nobody does. */
static int find_study(struct show *l, struct store *store, const char *name, const char *dir, pid_t driver)
{
    l->store = store;
    l->dir = dir;
    l->driver = driver;
    int rc = look_find(store, name, &l->study, l->e);
    if (rc < 0)
        return rc;
    l->config = l->study.config ? json_loads(l->study.config, 0, NULL) : NULL;
    (void)json_object_del(l->config, "secrets"); /* sums, to compare with */
    l->provenance = l->study.provenance ? json_loads(l->study.provenance, 0, NULL) : NULL;
    rc = look_totals(store, l->study.name, &l->totals, l->e);
    if (rc == 0)
        rc = pareto_load(&l->pareto, store, &l->study, l->e);
    return rc == 0 ? look_add_running(store, l->study.id, driver, &l->totals, l->e) : rc;
}

static void show_done(struct show *l)
{
    store_study_done(&l->study);
    json_decref(l->config);
    json_decref(l->provenance);
    json_decref(l->hyper);
    json_decref(l->system);
    energy_load_done(&l->energy);
    outlook_free(l->outlook);
    pareto_done(&l->pareto);
    table_done(&l->table);
    buf_done(&l->out);
}

/* --- choosing --- */

/* What is reckoned from the store, rather than read. */
static int load_figures(struct show *l)
{
    int rc = energy_load(&l->energy, l->store, &l->study, l->e);
    return rc < 0 ? rc : outlook_open(&l->outlook, l->store, &l->study, l->e);
}

/* Called by the driver itself, which is about to let go of the study: asking for the lock's owner would not see its own
 * lock, and closing the lock's file would drop it. */
static int show_own(struct store *s, const char *name, const char *dir, bool json, struct err *e)
{
    struct show l = { .json = json, .e = e };
    int rc = find_study(&l, s, name, dir, 0);
    if (rc == 0)
        rc = load_figures(&l);
    if (rc == 0)
        rc = json ? show_json_study(&l) : show_text_study(&l);
    show_done(&l);
    return rc == -EPIPE ? 0 : rc;
}

int show_study_json(struct store *s, const char *name, const char *dir, struct err *e)
{
    return show_own(s, name, dir, true, e);
}

int show_study_text(struct store *s, const char *name, const char *dir, struct err *e)
{
    return show_own(s, name, dir, false, e);
}

static int show_log(struct show *l)
{
    AUTO_FREE char *log = show_log_path(l, l->trial);
    if (!log)
        return err_sys(l->e, -ENOMEM, "trial %s/%d", l->study.name, l->trial);
    if (!io_exists(log))
        return err_set(l->e, -ENOENT, "trial %s/%d has no log: '%s' is not there; see 'pipetune show %s/%d'",
                       l->study.name, l->trial, log, l->study.name, l->trial);
    if (!l->json) {
        buf_printf(&l->out, "%s\n", log);
        return show_flush(l);
    }
    buf_puts(&l->out, "{\"log\": ");
    json_put_string(&l->out, log);
    buf_puts(&l->out, "}\n");
    return show_flush(l);
}

static int show(struct show *l, const struct show_options *o)
{
    if (o->log)
        return show_log(l);
    if (o->importance)
        return show_importance(l);
    if (o->decisions)
        return l->json ? show_json_decisions(l) : show_text_decisions(l);
    int rc = load_figures(l);
    if (rc < 0)
        return rc;
    if (l->json)
        return show_json_study(l);
    return l->trial ? show_trial_text(l) : show_text_study(l);
}

/* `word`: a trial's number, as it was said before there were names for trials; NULL: none. */
static int find_trial(struct show *l, const struct look_name *name, const char *word)
{
    l->trial = name->trial;
    if (word)
        return look_trial(word, name->study, l->totals.trials, &l->trial, l->e);
    return name->trial > l->totals.trials ? look_no_trial(name->study, name->trial, l->totals.trials, l->e) : 0;
}

static int open_and_show(const struct show_options *o, const struct strv *words, struct err *e)
{
    if (words->n == 0)
        return err_set(e, -EINVAL,
                       "which study? 'pipetune ls' lists them, 'pipetune show STUDY' shows one, STUDY/N a trial");
    AUTO_LOOK struct look_name name = { 0 };
    int rc = look_name(&name, words->v[0], e);
    if (rc < 0)
        return rc;
    if (name.trial && words->n > 1)
        return err_set(e, -EINVAL, "'%s' and '%s' are two trials: show tells of one", words->v[0], words->v[1]);
    if (o->log && !name.trial && words->n < 2)
        return err_set(e, -EINVAL, "option '--log' needs a trial: pipetune show %s/N --log", name.study);
    AUTO_FREE char *path = study_store_path(o->store);
    AUTO_FREE char *dir = path ? study_dir(path, name.study) : NULL;
    if (!dir)
        return err_sys(e, -ENOMEM, "study '%s'", name.study);
    struct show l = { .json = o->json, .e = e };
    struct store *store = NULL;
    rc = store_open(&store, path, STORE_READ, e);
    if (rc == 0)
        rc = find_study(&l, store, name.study, dir, study_driver(dir));
    if (rc == 0)
        rc = find_trial(&l, &name, words->n > 1 ? words->v[1] : NULL);
    if (rc == 0)
        rc = show(&l, o);
    show_done(&l);
    store_close(store);
    return rc;
}

int cmd_show(int argc, char **argv)
{
    struct show_options o = { 0 };
    struct opt_set set = OPT_SET(show_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    int code;
    if (!cmd_options("show", argc, argv, &set, 1, &words, 2, &code)) {
        struct err e = { 0 };
        int rc = open_and_show(&o, &words, &e);
        code = rc == 0 || rc == -EPIPE ? CMD_OK : cmd_fail(&e);
    }
    opt_done(&set);
    return code;
}
