#include "live/tidy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "core/sched.h"
#include "live/resume.h"
#include "live/secrets.h"

enum { DEPTH_MAX = 64, BLOCK = 512 };

/* --- removing --- */

static int empty_dir(struct tidy *t, int fd, int depth);

/* What is at `name` in the folder. */
static int remove_at(struct tidy *t, int dir, const char *name, int depth)
{
    struct stat st;
    int rc = 0;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    bool is_dir = S_ISDIR(st.st_mode);
    if (is_dir) {
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        rc = fd < 0 ? -errno : empty_dir(t, fd, depth + 1); /* which closes it */
    }
    if (rc == 0 && !t->dry && unlinkat(dir, name, is_dir ? AT_REMOVEDIR : 0) < 0 && errno != ENOENT)
        rc = -errno;
    if (rc == 0 && (is_dir || st.st_nlink == 1))
        t->bytes += (uint64_t)st.st_blocks * BLOCK;
    return rc;
}

static int empty_dir(struct tidy *t, int fd, int depth)
{
    DIR *d = depth < DEPTH_MAX ? fdopendir(fd) : NULL;
    int rc = 0;
    if (!d) {
        rc = depth < DEPTH_MAX ? -errno : -ELOOP;
        (void)close(fd);
        return rc;
    }
    for (struct dirent *f; (f = readdir(d));) {
        if (strcmp(f->d_name, ".") == 0 || strcmp(f->d_name, "..") == 0)
            continue;
        int one = remove_at(t, dirfd(d), f->d_name, depth);
        rc = rc < 0 ? rc : one;
    }
    (void)closedir(d);
    return rc;
}

int tidy_remove(struct tidy *t, const char *path, struct err *e)
{
    AUTO_FREE char *dir = io_dirname(path);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    AUTO_FREE char *gone = NULL;
    if (!dir || asprintf(&gone, ".gone-%s-%ld", name, (long)getpid()) < 0)
        return err_sys(e, -ENOMEM, "cannot remove '%s'", path);
    AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, -errno, "cannot remove '%s'", path);
    bool renamed = !t->dry && strncmp(name, ".gone-", 6) != 0;
    if (renamed && renameat(fd, name, fd, gone) < 0)
        return errno == ENOENT ? 0 : err_sys(e, -errno, "cannot remove '%s'", path);
    int rc = remove_at(t, fd, renamed ? gone : name, 0);
    return rc < 0 ? err_sys(e, rc, "cannot remove '%s'", path) : 0;
}

const char *tidy_bytes(uint64_t bytes, char out[32])
{
    static const char *const units[] = { "B", "KB", "MB", "GB", "TB" };
    double x = (double)bytes;
    size_t unit = 0;
    for (; x >= 1000 && unit + 1 < ARRAY_LEN(units); unit++)
        x /= 1000;
    (void)snprintf(out, 32, unit ? "%.3g %s" : "%.0f %s", x, units[unit]);
    return out;
}

/* --- in use --- */

/* Does a launcher, or what it started, hold this folder's lock? */
static bool tidy_in_use(const char *dir)
{
    AUTO_FREE char *path = io_join(dir, "lock");
    AUTO_CLOSE int fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* Calls `each` with the folders of launches, until it returns non-zero, and returns that. */
static int each_launch(const char *study_dir, int (*each)(void *ctx, const char *dir, const char *name), void *ctx)
{
    int rc = 0;
    DIR *d = ours_is_dir(study_dir) ? opendir(study_dir) : NULL;
    for (struct dirent *f; d && rc == 0 && (f = readdir(d));) {
        AUTO_FREE char *dir = f->d_name[0] != '.' ? io_join(study_dir, f->d_name) : NULL;
        if (dir && ours_is_dir(dir))
            rc = each(ctx, dir, f->d_name);
    }
    if (d)
        (void)closedir(d);
    return rc;
}

static int find_busy(void *ctx, const char *dir, const char *name)
{
    char **found = ctx;
    return tidy_in_use(dir) && (*found = strdup(name));
}

char *tidy_in_use_below(const char *study_dir)
{
    char *found = NULL;
    (void)each_launch(study_dir, find_busy, &found);
    return found;
}

/* --- of launches that are over --- */

static int forget_secrets(void *ctx, const char *dir, const char *name)
{
    (void)ctx, (void)name;
    if (!tidy_in_use(dir))
        secrets_forget(dir);
    return 0;
}

void tidy_secrets(const char *study_dir)
{
    (void)each_launch(study_dir, forget_secrets, NULL);
}

struct heard {
    struct tidy *t;
    struct store *s;
    int64_t study;
    bool open; /* an attempt of the trial has not been judged */
    struct err *e;
};

static int note_open(void *ctx, const struct store_attempt *a)
{
    struct heard *h = ctx;
    h->open |= strcmp(a->state, "ended") != 0;
    return 0;
}

static int look_at_attempts(void *ctx, const struct store_trial *t)
{
    struct heard *h = ctx;
    return store_attempts(h->s, t->id, note_open, h, h->e);
}

static int forget_heard(void *ctx, const char *dir, const char *name)
{
    struct heard *h = ctx;
    AUTO_FREE char *path = io_join(dir, "heard");
    int number = (int)strtol(name, NULL, 10); /* 0: a session, which has none of its own */
    int rc = path ? 0 : err_sys(h->e, -ENOMEM, "'%s'", dir);
    h->open = tidy_in_use(dir);
    if (rc == 0 && number > 0)
        rc = store_trials(h->s, h->study, number, look_at_attempts, h, h->e);
    return rc < 0 || h->open ? rc : tidy_remove(h->t, path, h->e);
}

int tidy_heard(struct tidy *t, struct store *s, int64_t study, const char *study_dir, struct err *e)
{
    struct heard h = { t, s, study, false, e };
    return each_launch(study_dir, forget_heard, &h);
}

/* --- checkpoints --- */

enum tidy_keep tidy_keep_find(const char *name)
{
    return strcmp(name, "all") == 0 ? TIDY_ALL : strcmp(name, "none") == 0 ? TIDY_NONE : TIDY_BEST;
}

struct kept {
    char *model, *state; /* NULL: not there */
    int64_t n;
    int epoch;
    bool usable;
};

struct listing {
    struct kept *list;
    size_t n, cap;
    bool maximise;
    int best_epoch;
    double best;
};

static int note_best(void *ctx, const struct store_epoch *row)
{
    struct listing *l = ctx;
    if (isnan(row->metric) || (l->best_epoch && (l->maximise ? row->metric <= l->best : row->metric >= l->best)))
        return 0;
    l->best = row->metric;
    l->best_epoch = row->epoch;
    return 0;
}

static int note_checkpoint(void *ctx, const struct resume_checkpoint *c)
{
    struct listing *l = ctx;
    struct kept *grown = array_more(l->list, l->n, &l->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    l->list = grown;
    struct kept *k = &grown[l->n++];
    *k = (struct kept){ .model = c->model ? strdup(c->model) : NULL,
                        .state = c->state ? strdup(c->state) : NULL,
                        .n = c->n,
                        .epoch = c->epoch,
                        .usable = c->usable };
    return !k->model == !c->model && !k->state == !c->state ? 0 : -ENOMEM;
}

static bool is_whole(const struct kept *k)
{
    return k->model && k->state;
}

/* The whole ones before the others. */
static int newest_first(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    if (is_whole(x) != is_whole(y))
        return is_whole(x) ? -1 : 1;
    return x->n < y->n ? 1 : x->n > y->n ? -1 : is_whole(x) ? strcmp(y->model, x->model) : 0;
}

static int remove_one(struct tidy *t, const struct kept *k, struct err *e)
{
    AUTO_FREE char *dir = io_dirname(k->model ? k->model : k->state);
    int rc = k->model ? tidy_remove(t, k->model, e) : 0;
    if (rc == 0 && k->state)
        rc = tidy_remove(t, k->state, e);
    if (rc == 0 && dir && !t->dry)
        (void)rmdir(dir); /* where it was the last one */
    return rc;
}

static bool is_best(const struct listing *l, const struct kept *k, enum tidy_keep keep)
{
    return keep == TIDY_BEST && l->best_epoch && k->epoch == l->best_epoch;
}

/* Of those that a trial can go on from, as many as of all: what is newer and of no use to it replaces none. */
static bool is_kept(const struct listing *l, size_t at, size_t newest, enum tidy_keep keep)
{
    size_t newer = 0;
    for (size_t i = 0; i < at; i++)
        newer += l->list[i].usable;
    const struct kept *k = &l->list[at];
    return at < newest || (k->usable && newer < newest) || is_best(l, k, keep);
}

int tidy_checkpoints(struct tidy *t, struct store *s, const struct store_trial *trial, bool maximise,
                     enum tidy_keep keep, const char *dir, struct err *e)
{
    struct listing l = { .maximise = maximise };
    bool over = trial_state_is_final((enum trial_state)trial_state_parse(trial->state));
    bool writes = strcmp(trial->state, trial_state_name(TRIAL_RUNNING)) == 0;
    size_t newest = !over ? 2 : keep == TIDY_NONE ? 0 : 1;
    int rc = keep == TIDY_ALL ? 0 : store_epochs(s, trial->id, note_best, &l, e);
    if (rc == 0 && keep != TIDY_ALL)
        rc = resume_each(s, trial->id, dir, note_checkpoint, &l, e);
    if (rc == -ENOMEM)
        (void)err_sys(e, rc, "trial %d", trial->number);
    if (l.n > 1)
        qsort(l.list, l.n, sizeof *l.list, newest_first);
    for (size_t i = 0; rc == 0 && i < l.n; i++)
        if (is_whole(&l.list[i]) ? !is_kept(&l, i, newest, keep)
                                 : !writes && is_whole(&l.list[0]) && l.list[i].n < l.list[0].n)
            rc = remove_one(t, &l.list[i], e);
    for (size_t i = 0; i < l.n; i++) {
        free(l.list[i].model);
        free(l.list[i].state);
    }
    free(l.list);
    return rc;
}
