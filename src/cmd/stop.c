/* Ends a study, or one of its trials: whoever drives it does it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "live/study.h"
#include "serve/request.h"
#include "serve/server.h"
#include "store/queue.h"
#include "view/view.h"
#include "view/words.h"

/* What was done, in words. */
enum { SAID_MAX = 300 };

struct stop {
    struct store *store;
    const char *path; /* of the store */
    const char *study;
    int trial;
    char said[SAID_MAX];
    bool wants_server;
};

/* A driver that the queue knows nothing of: told as by Ctrl-C. */
static int interrupt(struct stop *s, pid_t driver, struct err *e)
{
    char program[PROC_NAME_SIZE];
    uid_t uid;
    bool ours =
        driver > 0 && proc_who(driver, program, &uid) == 0 && uid == geteuid() && strcmp(program, "pipetune") == 0;
    if (driver == 0)
        return err_set(e, -EINVAL, "study '%s' does not run, and is not in the queue: there is nothing to stop",
                       s->study);
    if (!ours || kill(driver, SIGINT) < 0)
        return err_set(e, -EPERM, "study '%s' is run by process %ld, which is no driver of yours", s->study,
                       (long)driver);
    (void)snprintf(s->said, sizeof s->said, "the trials of study %s are being ended", s->study);
    return 0;
}

static int stop_queued(struct stop *s, const struct store_queued *q, struct err *e)
{
    int rc = store_queue_turn(s->store, q->id, QUEUED, QUEUE_STOPPED, e);
    if (rc == 1) {
        (void)snprintf(s->said, sizeof s->said, "study %s is taken out of the queue", s->study);
        return 0;
    }
    if (rc == 0)
        rc = store_queue_turn(s->store, q->id, QUEUE_RUNNING " " QUEUE_DRAINING " " QUEUE_LEAVING, QUEUE_STOPPING, e);
    (void)snprintf(s->said, sizeof s->said, "the trials of study %s are being ended", s->study);
    s->wants_server = true; /* its driver may be gone, and the trials not */
    return rc < 0 ? rc : 0;
}

static int stop_study(struct stop *s, struct err *e)
{
    struct store_queued q = { 0 };
    struct store_study study = { 0 };
    int rc = store_queue_find(s->store, s->study, &q, e);
    if (rc == 1 && !store_queue_is_over(q.state)) {
        rc = stop_queued(s, &q, e);
    } else if (rc >= 0) {
        AUTO_FREE char *dir = study_dir(s->path, s->study);
        rc = view_find(s->store, s->study, &study, e);
        if (rc == 0)
            rc = dir ? interrupt(s, study_driver(dir), e) : err_sys(e, -ENOMEM, "study '%s'", s->study);
    }
    store_queued_done(&q);
    store_study_done(&study);
    return rc;
}

static int keep_state(void *ctx, const struct store_trial *t)
{
    char **state = ctx;
    return (*state = strdup(t->state)) ? 0 : -ENOMEM;
}

static int stop_trial(struct stop *s, struct store_study *study, struct err *e)
{
    AUTO_FREE char *state = NULL;
    AUTO_FREE char *dir = study_dir(s->path, s->study);
    struct store_request r = { .study = study->name, .trial = s->trial };
    int rc = view_explain(store_trials(s->store, study->id, s->trial, keep_state, &state, e), e, s->study);
    if (rc == 0 && !dir)
        rc = err_sys(e, -ENOMEM, "study '%s'", s->study);
    if (rc == 0 && trial_state_is_final((enum trial_state)trial_state_parse(state)))
        rc = err_set(e, -EINVAL, "%s/%d is %s: there is nothing to stop", s->study, s->trial, state);
    if (rc == 0)
        rc = request_ask(s->store, dir, &r, "stop", e);
    if (rc == 1)
        (void)snprintf(s->said, sizeof s->said, "%s/%d: %s", s->study, s->trial, r.answer ? r.answer : "stopped");
    else if (rc == 0)
        (void)snprintf(s->said, sizeof s->said, "%s/%d is stopped by the next driver of the study: none runs it now",
                       s->study, s->trial);
    free(r.answer);
    return rc < 0 ? rc : 0;
}

static int stop_named(struct stop *s, const char *word, struct err *e)
{
    AUTO_LOOK struct look_name name = { 0 };
    struct store_study study = { 0 };
    int rc = look_name(&name, word, e);
    s->study = name.study;
    s->trial = name.trial;
    if (rc == 0 && !s->trial)
        rc = stop_study(s, e);
    else if (rc == 0) {
        AUTO_LOOK struct look_name found = { 0 };
        rc = look_name_find(&found, s->store, word, &study, e);
        if (rc == 0)
            rc = stop_trial(s, &study, e);
    }
    store_study_done(&study);
    return rc;
}

static int stop(const struct look_options *o, const char *word, struct err *e)
{
    AUTO_FREE char *path = study_store_path(o->store);
    struct stop s = { .path = path };
    if (!path)
        return err_sys(e, -ENOMEM, "study '%s'", word);
    int rc = look_open_to_write(&s.store, path, e);
    if (rc == 0)
        rc = stop_named(&s, word, e);
    store_close(s.store);
    if (rc == 0 && s.wants_server)
        rc = server_wanted(path, e);
    if (rc < 0)
        return rc;
    if (o->json)
        return cmd_print_json(json_pack("{s:s, s:s}", "asked", word, "answer", s.said));
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "%s\n", s.said);
    return cmd_print(&b);
}

int cmd_stop(int argc, char **argv)
{
    struct look_options o = { 0 };
    struct opt_set set = OPT_SET(look_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    int code;
    if (!cmd_options("stop", argc, argv, &set, 1, &words, 1, &code)) {
        struct err e = { 0 };
        int rc = words.n ? stop(&o, words.v[0], &e)
                         : err_set(&e, -EINVAL, "which study? 'pipetune ls' lists them; say STUDY, or STUDY/N");
        code = rc < 0 ? cmd_fail(&e) : rc;
    }
    opt_done(&set);
    return code;
}
