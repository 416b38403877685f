#include "live/resume.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/app.h"
#include "base/array.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "base/strv.h"

struct candidate {
    int64_t n; /* iterations + 1 */
    char *model, *state;
};

struct search_state {
    struct candidate *list;
    size_t n, cap;
    int64_t iterations_until[4096]; /* after epoch k, index k; epochs beyond are begun anew */
    int epochs;
    struct strv spoilt; /* models from which an attempt could not go on */
    bool failed;
};

void resume_done(struct resume_point *r)
{
    if (!r)
        return;
    free(r->model);
    free(r->state);
    *r = (struct resume_point){ 0 };
}

static void search_done_(struct search_state *ss)
{
    for (size_t i = 0; i < ss->n; i++) {
        free(ss->list[i].model);
        free(ss->list[i].state);
    }
    free(ss->list);
    strv_done(&ss->spoilt);
    free(ss);
}

static int note_epoch(void *ctx, const struct store_epoch *row)
{
    struct search_state *ss = ctx;
    if (row->epoch == ss->epochs + 1 && row->epoch < 4096) { /* in order, without holes */
        ss->iterations_until[row->epoch] = ss->iterations_until[row->epoch - 1] + row->iterations;
        ss->epochs = row->epoch;
    }
    return 0;
}

static int note_attempt(void *ctx, const struct store_attempt *row)
{
    struct search_state *ss = ctx;
    if (row->resumed_from && row->outcome && strcmp(row->outcome, "unusable_checkpoint") == 0)
        strv_add(&ss->spoilt, row->resumed_from);
    return 0;
}

/* The candidate of this folder and N, made when it is new. */
static struct candidate *candidate_of(struct search_state *ss, size_t first, int64_t n)
{
    for (size_t i = first; i < ss->n; i++)
        if (ss->list[i].n == n)
            return &ss->list[i];
    struct candidate *grown = array_more(ss->list, ss->n, &ss->cap, sizeof *grown);
    if (!grown)
        return NULL;
    ss->list = grown;
    ss->list[ss->n] = (struct candidate){ .n = n };
    return &ss->list[ss->n++];
}

static void note_file(struct search_state *ss, size_t first, const char *dir, const char *name)
{
    int64_t n;
    enum app_part part = app_part_of(name, &n);
    if (part == APP_PART_NEITHER)
        return;
    struct candidate *c = candidate_of(ss, first, n);
    char *path = c ? io_join(dir, name) : NULL;
    struct stat st;
    if (!path) {
        ss->failed = true;
    } else if (!ours_is_file(path) || stat(path, &st) < 0 || st.st_size == 0) {
        free(path);
    } else {
        char **slot = part == APP_PART_MODEL ? &c->model : &c->state;
        free(*slot);
        *slot = path;
    }
}

/* A checkpoint may be objects to be read: whoever wrote it could have the application do anything, so it is one of ours or none. */
static void note_folder(struct search_state *ss, const char *dir)
{
    DIR *d = ours_is_dir(dir) ? opendir(dir) : NULL;
    size_t first = ss->n;
    for (struct dirent *f; d && (f = readdir(d));)
        note_file(ss, first, dir, f->d_name);
    if (d)
        (void)closedir(d);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Folders in the order of their time, so that among equals the last one wins. */
static void note_folders(struct search_state *ss, const char *dir)
{
    AUTO_STRV struct strv names = STRV_INIT;
    DIR *d = ours_is_dir(dir) ? opendir(dir) : NULL;
    for (struct dirent *f; d && (f = readdir(d));)
        if (app_is_checkpoint_folder(f->d_name))
            strv_add(&names, f->d_name);
    if (d)
        (void)closedir(d);
    if (names.n > 1)
        qsort(names.v, names.n, sizeof *names.v, by_name);
    for (size_t i = 0; i < names.n; i++) {
        AUTO_FREE char *path = io_join(dir, names.v[i]);
        if (path)
            note_folder(ss, path);
        ss->failed |= !path;
    }
    ss->failed |= names.failed;
}

static bool is_spoilt(const struct search_state *ss, const char *model)
{
    for (size_t i = 0; i < ss->spoilt.n; i++)
        if (strcmp(ss->spoilt.v[i], model) == 0)
            return true;
    return false;
}

/* The epoch at whose end a checkpoint of number n stands; 0: none that is known. */
static int epoch_of(const struct search_state *ss, int64_t n)
{
    for (int k = ss->epochs; k > 0; k--)
        if (ss->iterations_until[k] + 1 == n)
            return k;
    return 0;
}

static bool is_usable(const struct search_state *ss, const struct candidate *c)
{
    return c->model && c->state && epoch_of(ss, c->n) && !is_spoilt(ss, c->model);
}

static int choose(struct search_state *ss, struct resume_point *out)
{
    struct candidate *best = NULL;
    for (size_t i = 0; i < ss->n; i++) {
        struct candidate *c = &ss->list[i];
        if (is_usable(ss, c) && (!best || c->n >= best->n))
            best = c;
    }
    if (!best)
        return 0;
    *out = (struct resume_point){ .model = MOVE_PTR(best->model),
                                  .state = MOVE_PTR(best->state),
                                  .epochs = epoch_of(ss, best->n) };
    return 1;
}

static int look(struct search_state *ss, struct store *s, int64_t trial, const char *dir, struct err *e)
{
    int rc = store_epochs(s, trial, note_epoch, ss, e);
    if (rc == 0)
        rc = store_attempts(s, trial, note_attempt, ss, e);
    if (rc < 0)
        return rc;
    note_folders(ss, dir);
    ss->failed |= ss->spoilt.failed;
    return ss->failed ? err_sys(e, -ENOMEM, "looking for a checkpoint in '%s'", dir) : 0;
}

int resume_each(struct store *s, int64_t trial, const char *dir,
                int (*each)(void *ctx, const struct resume_checkpoint *c), void *ctx, struct err *e)
{
    struct search_state *ss = calloc(1, sizeof *ss);
    int rc = ss ? look(ss, s, trial, dir, e) : err_sys(e, -ENOMEM, "looking for a checkpoint in '%s'", dir);
    for (size_t i = 0; rc == 0 && i < ss->n; i++) {
        const struct candidate *c = &ss->list[i];
        struct resume_checkpoint found = { c->model, c->state, c->n, epoch_of(ss, c->n), is_usable(ss, c) };
        rc = c->model || c->state ? each(ctx, &found) : 0;
    }
    if (ss)
        search_done_(ss);
    return rc;
}

int resume_find(struct store *s, int64_t trial, const char *dir, struct resume_point *out, struct err *e)
{
    struct search_state *ss = calloc(1, sizeof *ss);
    if (!ss)
        return err_sys(e, -ENOMEM, "looking for a checkpoint in '%s'", dir);
    int rc = look(ss, s, trial, dir, e);
    if (rc == 0)
        rc = choose(ss, out);
    search_done_(ss);
    return rc;
}

int resume_again(const char *model, struct resume_point *out)
{
    struct search_state *ss = calloc(1, sizeof *ss);
    AUTO_FREE char *dir = io_dirname(model);
    int rc = ss && dir ? -ENOENT : -ENOMEM;
    if (ss && dir)
        note_folder(ss, dir);
    for (size_t i = 0; ss && i < ss->n; i++) {
        struct candidate *c = &ss->list[i];
        if (!c->model || !c->state || strcmp(c->model, model) != 0)
            continue;
        *out = (struct resume_point){ .model = MOVE_PTR(c->model), .state = MOVE_PTR(c->state) };
        rc = 0;
        break;
    }
    if (ss && ss->failed && rc < 0)
        rc = -ENOMEM;
    if (ss)
        search_done_(ss);
    return rc;
}

/* --- told of ---------------------------------------------------------------------------------------------------------- */

struct told_search {
    struct search_state *ss;
    struct resume_point *out;
    bool any; /* it tells of them at all */
};

static int note_told(void *ctx, const struct store_checkpoint *c)
{
    struct told_search *t = ctx;
    t->any = true;
    if (t->out->model || c->epoch > t->ss->epochs || is_spoilt(t->ss, c->path) ||
        !(ours_is_file(c->path) || ours_is_dir(c->path)))
        return 0;
    t->out->model = strdup(c->path);
    t->out->epochs = c->epoch;
    return t->out->model ? 0 : -ENOMEM;
}

static bool is_empty(const char *dir)
{
    DIR *d = ours_is_dir(dir) ? opendir(dir) : NULL;
    size_t n = 0;
    for (struct dirent *f; d && (f = readdir(d));)
        n += strcmp(f->d_name, ".") != 0 && strcmp(f->d_name, "..") != 0;
    if (d)
        (void)closedir(d);
    return n == 0;
}

static int note_written(struct told_search *t, const char *dir)
{
    if (t->ss->epochs == 0 || is_spoilt(t->ss, dir) || is_empty(dir))
        return 0;
    t->out->model = strdup(dir);
    t->out->epochs = t->ss->epochs;
    return t->out->model ? 0 : -ENOMEM;
}

int resume_find_told(struct store *s, int64_t trial, const char *dir, bool writes_dir, struct resume_point *out,
                     struct err *e)
{
    struct resume_point found = { 0 };
    struct told_search t = { .ss = calloc(1, sizeof *t.ss), .out = &found };
    int rc = t.ss ? store_epochs(s, trial, note_epoch, t.ss, e) : -ENOMEM;
    if (rc == 0)
        rc = store_attempts(s, trial, note_attempt, t.ss, e);
    if (rc == 0)
        rc = store_checkpoints(s, trial, note_told, &t, e);
    if (rc == 0 && !t.any && writes_dir)
        rc = note_written(&t, dir);
    if (t.ss)
        search_done_(t.ss);
    if (rc == -ENOMEM)
        rc = err_sys(e, rc, "looking for a checkpoint in '%s'", dir);
    if (rc < 0 || !found.model) {
        resume_done(&found);
        return rc;
    }
    *out = found;
    return 1;
}
