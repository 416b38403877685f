/* A minute of training, by this very program. */
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "cmd/doctor.h"
#include "store/store.h"
#include "view/table.h"

extern char **environ;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    (void)remove(path); /* what cannot be removed stays in the temporary folder */
    return 0;
}

/* The widest power of two, since 1024 must be a multiple of the cores. */
static int try_cores(const struct doctor_place *p)
{
    int cores = 1;
    while (cores * 2 <= p->offer.cores && cores < 1024)
        cores *= 2;
    return cores;
}

static int write_try_config(const struct doctor_place *p, const char *path, struct err *e)
{
    AUTO_FREE char *bigdl = io_join(p->env.home, "bigdl/config/mnist.json");
    AUTO_JSON json_t *j =
        bigdl ? json_pack("{s:s, s:{s:s, s:i}, s:{s:[i]}, s:{s:[i], s:[f], s:[f]}}", "bigdlConf", bigdl, "study",
                          "name", "try", "epochs", 1, "systemParameters", "cores", try_cores(p), "hyperParameters",
                          "batch_size", 1024, "learning_rate", 0.1, "learning_rate_decay", 0.0002)
              : NULL;
    AUTO_BUF struct buf text = BUF_INIT;
    json_put(&text, j, JSON_STYLE_INDENT);
    if (!j || text.failed)
        return err_sys(e, -ENOMEM, "cannot try");
    return io_write_atomic(path, text.data, text.len, 0666, e);
}

/* Runs this very program; with --json its words go to stderr. Returns its exit code, or a negative errno. */
static int run_self(const struct doctor_place *p, char *const argv[])
{
    sigset_t reset;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t fa;
    (void)sigemptyset(&reset);
    (void)sigaddset(&reset, SIGINT); /* Ctrl-C is for the run; it ends, and we say what became of it */
    (void)sigaddset(&reset, SIGPIPE);
    if (posix_spawnattr_init(&attr) != 0)
        return -ENOMEM;
    if (posix_spawn_file_actions_init(&fa) != 0) {
        (void)posix_spawnattr_destroy(&attr);
        return -ENOMEM;
    }
    (void)posix_spawnattr_setsigdefault(&attr, &reset);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    int rc = p->json ? posix_spawn_file_actions_adddup2(&fa, STDERR_FILENO, STDOUT_FILENO) : 0;
    void (*before)(int) = signal(SIGINT, SIG_IGN);
    pid_t pid;
    if (rc == 0)
        rc = posix_spawn(&pid, "/proc/self/exe", &fa, &attr, argv, environ);
    int status = 0;
    while (rc == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    (void)signal(SIGINT, before);
    (void)posix_spawn_file_actions_destroy(&fa);
    (void)posix_spawnattr_destroy(&attr);
    if (rc != 0)
        return -rc;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct tried {
    double accuracy, trial_s, epoch_s;
    int64_t id;
};

static int take_epoch(void *ctx, const struct store_epoch *r)
{
    ((struct tried *)ctx)->epoch_s = r->seconds;
    return 0;
}

static int take_trial(void *ctx, const struct store_trial *r)
{
    struct tried *t = ctx;
    t->id = r->id;
    t->accuracy = r->accuracy;
    t->trial_s = r->seconds;
    return 0;
}

static int put_measured(const char *store, struct buf *b, struct err *e)
{
    struct store *s = NULL;
    struct store_study study = { 0 };
    struct tried t = { 0 };
    int rc = store_open(&s, store, STORE_READ, e);
    if (rc == 0)
        rc = store_study_find(s, "try", &study, e);
    if (rc == 1)
        rc = store_trials(s, study.id, 0, take_trial, &t, e);
    if (rc == 0 && t.id)
        rc = store_epochs(s, t.id, take_epoch, &t, e);
    char epoch[32], trial[32];
    if (rc == 0)
        buf_printf(b, "LeNet on MNIST, batch 1024, 1 epoch: accuracy %.4f, the epoch took %s, the whole trial %s",
                   t.accuracy, table_duration(t.epoch_s, epoch), table_duration(t.trial_s, trial));
    store_study_done(&study);
    store_close(s);
    return rc;
}

static int train(const struct doctor_place *p, const char *dir, struct doctor_finding *f)
{
    struct err e = { 0 };
    AUTO_FREE char *config = io_join(dir, "try.conf");
    AUTO_FREE char *store = io_join(dir, "pipetune.db");
    char *argv[] = { "pipetune", "run", "--config", config, "--store", store, NULL };
    int rc = config && store ? write_try_config(p, config, &e) : err_sys(&e, -ENOMEM, "cannot try");
    if (rc == 0)
        rc = run_self(p, argv);
    if (rc < 0 && !e.code)
        (void)err_sys(&e, rc, "cannot start this program");
    if (rc == 0)
        rc = put_measured(store, &f->detail, &e);
    if (rc > 0)
        buf_printf(&f->detail, "the run ended with exit code %d", rc);
    else if (rc < 0)
        buf_puts(&f->detail, e.text);
    return rc;
}

enum doctor_state doctor_try(const struct doctor_place *p, struct doctor_finding *f)
{
    const char *tmp = getenv("TMPDIR");
    AUTO_FREE char *dir = NULL;
    if (asprintf(&dir, "%s/pipetune-try-XXXXXX", tmp && *tmp ? tmp : "/tmp") < 0) {
        dir = NULL;
        buf_puts(&f->detail, "out of memory");
        return CHECK_MISSING;
    }
    if (!mkdtemp(dir)) {
        buf_printf(&f->detail, "cannot make '%s': %s", dir, strerror(errno));
        buf_puts(&f->fix, "set TMPDIR to a folder that can be written");
        return CHECK_MISSING;
    }
    if (train(p, dir, f) != 0) {
        buf_printf(&f->fix, "its store and logs are kept: pipetune show try --store %s/pipetune.db", dir);
        return CHECK_MISSING;
    }
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* it is in the temporary folder, and was of use */
    return CHECK_OK;
}
