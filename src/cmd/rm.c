/* Takes studies, or what single trials did, out of the store, with their folders. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "live/study.h"
#include "live/tidy.h"
#include "store/tidy.h"

struct rm_options {
    char *store;
    bool yes, force;
};

static const struct opt_row rm_rows[] = {
    LOOK_STORE_ROW(struct rm_options),
    { NULL, "yes", OPT_FLAG, offsetof(struct rm_options, yes), NULL, 0, 0, NULL, NULL, "do not ask" },
    { NULL, "force", OPT_FLAG, offsetof(struct rm_options, force), NULL, 0, 0, NULL, NULL,
      "do not ask, and what is not there is no error" },
};

void cmd_rm_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(rm_rows, NULL));
}

/* One word of the command line. */
struct target {
    char *name;
    int trial; /* 0: all of the study */
    struct store_study study;
    struct store_trial row; /* of the trial */
    char *dir;              /* the study's */
    int lock_fd;
};

static void target_done(struct target *t)
{
    if (t->lock_fd >= 0)
        (void)close(t->lock_fd); /* the lock goes with it */
    store_study_done(&t->study);
    store_trial_done(&t->row);
    free(t->name);
    free(t->dir);
}

static int keep_trial(void *ctx, const struct store_trial *row)
{
    return store_trial_copy(ctx, row) < 0 ? -ENOMEM : 0;
}

static int find_trial(struct store *s, struct target *t, const char *word, struct err *e)
{
    struct store_summary totals;
    int rc = view_totals(s, t->study.id, 0, &totals, e);
    if (rc == 0)
        rc = look_trial(word, t->name, totals.trials, &t->trial, e);
    if (rc == 0)
        rc = store_trials(s, t->study.id, t->trial, keep_trial, &t->row, e);
    if (rc == 0 && !trial_state_is_final((enum trial_state)trial_state_parse(t->row.state)))
        rc = err_set(e, -EBUSY,
                     "trial %d of study '%s' is not over: the study waits for it; 'pipetune rm %s' removes the study",
                     t->trial, t->name, t->name);
    return rc;
}

static int find(struct store *s, const char *path, const char *word, struct target *t, struct err *e)
{
    const char *slash = strrchr(word, '/');
    t->name = slash ? strndup(word, (size_t)(slash - word)) : strdup(word);
    t->dir = t->name ? study_dir(path, t->name) : NULL;
    if (!t->dir)
        return err_sys(e, -ENOMEM, "'%s'", word);
    int rc = view_find(s, t->name, &t->study, e);
    return rc == 0 && slash ? find_trial(s, t, slash + 1, e) : rc;
}

/* Nobody may run it, and nobody begins to until we are done. */
static int hold(struct target *t, struct err *e)
{
    int rc = study_lock(&t->lock_fd, t->dir, t->name, e);
    AUTO_FREE char *busy = rc == 0 ? tidy_in_use_below(t->dir) : NULL;
    return busy ? err_set(e, -EBUSY,
                          "'%s/%s' still runs, left by its driver: 'pipetune run' goes on with it, and Ctrl-C ends it",
                          t->name, busy)
                : rc;
}

/* The rows first: a folder without a study is what `gc` looks for. */
static int remove_target(struct store *s, struct target *t, struct tidy *tidy, struct err *e)
{
    char number[16] = "";
    if (t->trial)
        (void)snprintf(number, sizeof number, "%d", t->trial);
    AUTO_FREE char *dir = t->trial ? io_join(t->dir, number) : strdup(t->dir);
    int rc = dir ? hold(t, e) : err_sys(e, -ENOMEM, "study '%s'", t->name);
    if (rc == 0)
        rc = t->trial ? store_trial_remove(s, t->row.id, e) : store_study_remove(s, t->study.id, e);
    return rc < 0 ? rc : tidy_remove(tidy, dir, e);
}

/* True: go on. Nobody can be asked where there is no terminal. */
static bool agreed(const struct rm_options *o, const struct target *t, struct err *e)
{
    char answer[16] = "";
    if (o->yes || o->force)
        return true;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        (void)err_set(e, -EINVAL, "nobody can be asked here: '--yes' removes without asking");
        return false;
    }
    if (t->trial)
        fprintf(stderr, "remove what trial %d of study '%s' did, with its log and checkpoints? [y/N] ", t->trial,
                t->name);
    else
        fprintf(stderr, "remove study '%s', with all logs and checkpoints of its trials? [y/N] ", t->name);
    (void)err_set(e, 0, "not removed");
    return fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y');
}

static int remove_word(const struct rm_options *o, struct store *s, const char *path, const char *word, struct err *e)
{
    struct target t = { .lock_fd = -1 };
    struct tidy tidy = { 0 };
    char size[32];
    int rc = find(s, path, word, &t, e);
    bool missing = rc == -EINVAL && o->force;
    if (rc == 0 && !agreed(o, &t, e))
        rc = e->code == -EINVAL ? -EINVAL : 1;
    else if (rc == 0)
        rc = remove_target(s, &t, &tidy, e);
    if (rc == 0)
        printf("%s removed, %s of files\n", word, tidy_bytes(tidy.bytes, size));
    target_done(&t);
    return missing || rc == 1 ? 0 : view_explain(rc, e, word);
}

static int rm(const struct rm_options *o, const struct strv *words, struct err *e)
{
    if (words->n == 0)
        return err_set(e, -EINVAL,
                       "what? 'pipetune rm STUDY' removes a study, 'pipetune rm STUDY/N' what a trial of it did");
    AUTO_FREE char *path = study_store_path(o->store);
    struct store *store = NULL;
    if (!path)
        return err_sys(e, -ENOMEM, "store");
    if (!io_exists(path)) /* it is not to be made */
        return err_set(e, -ENOENT, "no store '%s': --store or PIPETUNE_STORE names another", path);
    int rc = store_open(&store, path, STORE_WRITE, e);
    for (size_t i = 0; rc == 0 && i < words->n; i++)
        rc = remove_word(o, store, path, words->v[i], e);
    store_close(store);
    return rc;
}

int cmd_rm(int argc, char **argv)
{
    struct rm_options o = { 0 };
    struct opt_set set = OPT_SET(rm_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    int code;
    if (!cmd_options("rm", argc, argv, &set, 1, &words, SIZE_MAX, &code)) {
        struct err e = { 0 };
        code = rm(&o, &words, &e) == 0 ? CMD_OK : cmd_fail(&e);
    }
    opt_done(&set);
    return code;
}
