/* Failed trials that are to be tried again: by the study's driver; where there is none, by the next one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "live/study.h"
#include "serve/queue.h"
#include "serve/request.h"
#include "serve/server.h"
#include "view/view.h"
#include "view/words.h"

/* What is to be tried again. */
struct again {
    int *numbers; /* owned */
    size_t n;
    int wanted;  /* the trial that was named; 0: all that failed */
    bool asked;  /* the driver that runs it does it */
    bool queued; /* it is in the queue again */
};

static int tell(const struct again *a, const char *study, bool json)
{
    if (json) {
        json_t *numbers = json_array();
        for (size_t i = 0; i < a->n; i++)
            (void)json_array_append_new(numbers, json_integer(a->numbers[i])); /* NULL makes the whole NULL */
        return cmd_print_json(json_pack("{s:s, s:o}", "study", study, "trials", numbers));
    }
    AUTO_BUF struct buf b = BUF_INIT;
    if (a->n == 0)
        buf_printf(&b, "no trial of study %s has failed\n", study);
    for (size_t i = 0; i < a->n; i++)
        buf_printf(&b, "%s%s/%d", i ? ", " : "to be tried again: ", study, a->numbers[i]);
    if (a->n)
        buf_puts(&b, a->asked    ? "; its driver does it\n"
                     : a->queued ? "; the study is in the queue again\n"
                                 : "; 'pipetune run' with the study's config does it\n");
    return cmd_print(&b);
}

static int keep_state(void *ctx, const struct store_trial *t)
{
    char **state = ctx;
    return (*state = strdup(t->state)) ? 0 : -ENOMEM;
}

static int refuse(struct store *s, const struct store_study *study, int number, struct err *e)
{
    AUTO_FREE char *state = NULL;
    int rc = view_explain(store_trials(s, study->id, number, keep_state, &state, e), e, study->name);
    return rc < 0 ? rc
                  : err_set(e, -EINVAL, "%s/%d cannot be tried again: it is %s; only what has failed can", study->name,
                            number, state);
}

static int forgive(struct store *s, const struct store_study *study, struct again *a, struct err *e)
{
    int rc = store_begin(s, e);
    if (rc == 0)
        rc = study_forgive(s, study, a->wanted, &a->numbers, &a->n, e);
    if (rc == 0 && a->n > 0)
        rc = queue_again(s, study->name, e);
    a->queued = rc == 1;
    if (rc >= 0)
        rc = store_commit(s, e);
    if (rc < 0)
        store_rollback(s);
    return rc;
}

static int collect_failed(void *ctx, const struct store_trial *t)
{
    struct again *a = ctx;
    bool failed = strcmp(t->state, trial_state_name(TRIAL_FAILED)) == 0 && t->attempts > 0;
    int *grown = failed || a->wanted ? realloc(a->numbers, (a->n + 1) * sizeof *grown) : a->numbers;
    if (!failed && !a->wanted)
        return 0;
    if (!grown)
        return -ENOMEM;
    a->numbers = grown;
    a->numbers[a->n++] = t->number;
    return 0;
}

/* Whoever drives it keeps its trials in memory, and does it itself. */
static int ask_driver(struct store *s, const char *dir, const struct store_study *study, struct again *a, struct err *e)
{
    struct store_request r = { .study = study->name, .trial = a->wanted };
    int rc = view_explain(store_trials(s, study->id, a->wanted, collect_failed, a, e), e, study->name);
    a->asked = true;
    if (rc == 0 && a->n > 0)
        rc = request_ask(s, dir, &r, "retry", e);
    free(r.answer);
    return rc < 0 ? rc : 0;
}

/* Under the study's lock, where nobody drives it. */
static int retry(struct store *s, const char *path, const struct store_study *study, struct again *a, struct err *e)
{
    AUTO_CLOSE int lock = -1;
    AUTO_FREE char *dir = study_dir(path, study->name);
    if (!dir)
        return err_sys(e, -ENOMEM, "study '%s'", study->name);
    if (study_driver(dir) > 0)
        return ask_driver(s, dir, study, a, e);
    int rc = study_lock(&lock, dir, study->name, e);
    if (rc == 0)
        rc = forgive(s, study, a, e);
    return rc == 0 && a->n == 0 && a->wanted ? refuse(s, study, a->wanted, e) : rc;
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
    int rc = look_open_to_write(&s, path, e);
    if (rc == 0)
        rc = look_name_find(&name, s, word, &study, e);
    again.wanted = name.trial;
    if (rc == 0)
        rc = retry(s, path, &study, &again, e);
    store_close(s);
    if (rc == 0 && again.queued)
        rc = server_wanted(path, e);
    int code = rc == 0 ? tell(&again, name.study, o->json) : rc;
    free(again.numbers);
    store_study_done(&study);
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
