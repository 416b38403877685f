/* Failed trials that are to be tried again: by the next run, since none is started here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "live/study.h"

/* What is to be tried again. */
struct again {
    struct store_trial *trials; /* owned */
    size_t n, cap;
    int wanted;  /* the trial that was named; 0: all that failed */
    char *state; /* of that one, when it cannot be tried again */
};

static void again_done(struct again *a)
{
    for (size_t i = 0; i < a->n; i++)
        store_trial_done(&a->trials[i]);
    free(a->trials);
    free(a->state);
}

/* One that proved infeasible where it ran may be named, as may one whose attempts were removed; one that was never launched has nothing
 * to be launched with. */
static bool may_go_again(const struct store_trial *t, bool named)
{
    bool failed = strcmp(t->state, trial_state_name(TRIAL_FAILED)) == 0;
    bool removed = failed && t->attempts == 0;
    return (failed && (named || !removed)) ||
           (named && t->attempts > 0 && strcmp(t->state, trial_state_name(TRIAL_INFEASIBLE)) == 0);
}

static int collect(void *ctx, const struct store_trial *t)
{
    struct again *a = ctx;
    if (!may_go_again(t, a->wanted != 0)) {
        if (a->wanted && !(a->state = strdup(t->state)))
            return -ENOMEM;
        return 0;
    }
    struct store_trial *grown = array_more(a->trials, a->n, &a->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    a->trials = grown;
    int rc = store_trial_copy(&a->trials[a->n], t);
    a->n += rc == 0;
    return rc;
}

static int forgive(struct store *s, const struct store_study *study, struct store_trial *t, int64_t now_ms,
                   struct err *e)
{
    char *waiting = strdup(trial_state_name(TRIAL_WAITING));
    if (!waiting)
        return err_sys(e, -ENOMEM, "study '%s'", study->name);
    free(t->state);
    t->state = waiting;
    free(t->reason);
    t->reason = NULL;
    t->forgiven = t->attempts;
    int rc = store_trial_update(s, t, e);
    struct store_decision d = { .trial = t->number,
                                .t_s = (double)(now_ms - study->created_ms) / 1000.0,
                                .kind = "retry",
                                .reason = "asked for: what became of its attempts so far is forgiven" };
    return rc == 0 ? store_decision_add(s, study->id, &d, e) : rc;
}

static int forgive_all(struct store *s, const struct store_study *study, struct again *a, struct err *e)
{
    int64_t base_ms;
    int rc = store_begin(s, e);
    if (rc == 0)
        rc = study_story_base(s, study->id, &base_ms, e);
    for (size_t i = 0; rc == 0 && i < a->n; i++)
        rc = forgive(s, study, &a->trials[i], base_ms + clock_boot_ms(), e);
    if (rc == 0)
        rc = store_study_set_state(s, study->id, "running", 0, e);
    if (rc == 0)
        rc = store_commit(s, e);
    if (rc < 0)
        store_rollback(s);
    return rc;
}

static int tell(const struct again *a, const char *study, bool json)
{
    if (json) {
        json_t *numbers = json_array();
        for (size_t i = 0; i < a->n; i++)
            (void)json_array_append_new(numbers, json_integer(a->trials[i].number)); /* NULL makes the whole NULL */
        return cmd_print_json(json_pack("{s:s, s:o}", "study", study, "trials", numbers));
    }
    AUTO_BUF struct buf b = BUF_INIT;
    if (a->n == 0)
        buf_printf(&b, "no trial of study %s has failed\n", study);
    for (size_t i = 0; i < a->n; i++)
        buf_printf(&b, "%s%s/%d", i ? ", " : "to be tried again: ", study, a->trials[i].number);
    if (a->n)
        buf_puts(&b, "; 'pipetune run' with the study's config does it\n");
    return cmd_print(&b);
}

/* Under the study's lock, as whoever drives it keeps its trials in memory. */
static int retry(struct store *s, const char *path, const struct store_study *study, struct again *a, struct err *e)
{
    AUTO_CLOSE int lock = -1;
    AUTO_FREE char *dir = study_dir(path, study->name);
    int rc = dir ? study_lock(&lock, dir, study->name, e) : err_sys(e, -ENOMEM, "study '%s'", study->name);
    if (rc == 0)
        rc = view_explain(store_trials(s, study->id, a->wanted, collect, a, e), e, study->name);
    if (rc == 0 && a->state)
        rc = err_set(e, -EINVAL, "%s/%d cannot be tried again: it is %s; only what has failed can", study->name,
                     a->wanted, a->state);
    return rc == 0 && a->n > 0 ? forgive_all(s, study, a, e) : rc;
}

static int open_and_retry(const struct look_options *o, const char *word, struct err *e)
{
    AUTO_LOOK struct look_name name = { 0 };
    AUTO_FREE char *path = study_store_path(o->store);
    struct store *s = NULL;
    struct store_study study = { 0 };
    struct again again = { 0 };
    if (!path)
        return err_sys(e, -ENOMEM, "study '%s'", word);
    int rc =
        store_open(&s, path, io_exists(path) ? STORE_WRITE : STORE_READ, e); /* one that is not there is not made */
    if (rc == 0)
        rc = look_name_find(&name, s, word, &study, e);
    again.wanted = name.trial;
    if (rc == 0)
        rc = retry(s, path, &study, &again, e);
    int code = rc == 0 ? tell(&again, name.study, o->json) : rc;
    again_done(&again);
    store_study_done(&study);
    store_close(s);
    return code;
}

int cmd_retry(int argc, char **argv)
{
    struct look_options o = { 0 };
    struct opt_set set = OPT_SET(look_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    int code;
    if (!cmd_options("retry", argc, argv, &set, 1, &words, 1, &code)) {
        struct err e = { 0 };
        int rc = words.n ? open_and_retry(&o, words.v[0], &e)
                         : err_set(&e, -EINVAL, "which study? 'pipetune ls' lists them; say STUDY, or STUDY/N");
        code = rc < 0 ? cmd_fail(&e) : rc;
    }
    opt_done(&set);
    return code;
}
