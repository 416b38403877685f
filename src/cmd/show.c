/* A study, one of its trials, or its decisions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "cmd/show.h"
#include "live/study.h"
#include "view/matters.h"
#include "view/now.h"
#include "view/put.h"

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

/* --- printing --- */

static int print_text(struct buf *b, struct err *e)
{
    int rc = cmd_write(b, CMD_TEXT, e);
    buf_clear(b);
    return rc;
}

static int print_json(struct buf *b, struct err *e)
{
    int rc = cmd_write(b, CMD_JSON, e);
    buf_clear(b);
    return rc;
}

struct show {
    struct view *v;
    int trial; /* the one that was asked for, 0: all */
    bool json;
    struct put to;
};

static int show_study(const struct show *s, struct err *e)
{
    if (s->json)
        return put_study_json(&s->to, s->v, s->trial, e);
    return s->trial ? put_trial_text(s->to.b, s->v, view_trial(s->v, s->trial), e) : put_study_text(s->to.b, s->v, e);
}

static int show_log(const struct show *s, struct err *e)
{
    const char *study = s->v->study.name;
    AUTO_FREE char *log = now_log_path(s->v, s->trial);
    if (!log)
        return err_sys(e, -ENOMEM, "trial %s/%d", study, s->trial);
    if (!io_exists(log))
        return err_set(e, -ENOENT, "trial %s/%d has no log: '%s' is not there; see 'pipetune show %s/%d'", study,
                       s->trial, log, study, s->trial);
    buf_puts(s->to.b, s->json ? "{\"log\": " : log);
    if (s->json)
        json_put_string(s->to.b, log);
    buf_puts(s->to.b, s->json ? "}\n" : "\n");
    return 0;
}

static int show_importance(const struct show *s, struct err *e)
{
    struct matters m;
    int rc = matters_of(&m, s->v, e);
    AUTO_JSON json_t *j = rc == 0 && s->json ? matters_json(&m) : NULL;
    if (j) {
        json_put(s->to.b, j, JSON_STYLE_COMPACT);
        buf_putc(s->to.b, '\n');
    } else if (rc == 0) {
        matters_put(s->to.b, &m);
    }
    strv_done(&m.names);
    return rc;
}

static int show_decisions(const struct show *s, struct err *e)
{
    return s->json ? put_decisions_json(&s->to, s->v, s->trial, e) : put_decisions_text(&s->to, s->v, s->trial, e);
}

/* A study may have 100,000 trials, and the reader may have seen enough of them: what there is goes out as it is made. */
static int show(struct view *v, int trial, bool json, int (*what)(const struct show *s, struct err *e), struct err *e)
{
    AUTO_BUF struct buf b = BUF_INIT;
    struct show s = { v, trial, json, { &b, json ? print_json : print_text } };
    int rc = what(&s, e);
    if (rc == 0)
        rc = s.to.full(&b, e);
    return rc == -EPIPE ? 0 : rc;
}

/* Called by the driver itself, which is about to let go of the study: asking for the lock's owner would not see its own
 * lock, and closing the lock's file would drop it. */
static int show_own(struct store *s, const char *name, const char *dir, bool json, struct err *e)
{
    struct view v;
    int rc = view_open(&v, s, name, dir, 0, e);
    if (rc == 0)
        rc = show(&v, 0, json, show_study, e);
    view_done(&v);
    return rc;
}

int show_study_json(struct store *s, const char *name, const char *dir, struct err *e)
{
    return show_own(s, name, dir, true, e);
}

int show_study_text(struct store *s, const char *name, const char *dir, struct err *e)
{
    return show_own(s, name, dir, false, e);
}

/* `word`: a trial's number, as it was said before there were names for trials; NULL: none. */
static int find_trial(const struct view *v, const struct look_name *name, const char *word, int *out, struct err *e)
{
    *out = name->trial;
    if (word)
        return look_trial(word, name->study, v->totals.trials, out, e);
    return name->trial > v->totals.trials ? look_no_trial(name->study, name->trial, v->totals.trials, e) : 0;
}

static int open_and_show(const struct show_options *o, const struct strv *words, struct err *e)
{
    if (words->n == 0)
        return err_set(e, -EINVAL,
                       "which study? 'pipetune ls' lists them, 'pipetune show STUDY' shows one, STUDY/N a trial");
    AUTO_LOOK struct look_name name = { 0 };
    int rc = look_name(&name, words->v[0], e), trial = 0;
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
    struct view v = { .store = NULL };
    struct store *store = NULL;
    rc = store_open(&store, path, STORE_READ, e);
    if (rc == 0)
        rc = view_open(&v, store, name.study, dir, study_driver(dir), e);
    if (rc == 0)
        rc = find_trial(&v, &name, words->n > 1 ? words->v[1] : NULL, &trial, e);
    if (rc == 0)
        rc = show(&v, trial, o->json,
                  o->log          ? show_log
                  : o->importance ? show_importance
                  : o->decisions  ? show_decisions
                                  : show_study,
                  e);
    view_done(&v);
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
