/* Frees what nobody needs any more: folders of no study, checkpoints that newer ones have replaced, what only launches that are over have
 * needed, values of samples of studies that are over (their profiles and CPU time stay), and what is free in the store's file. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "base/strv.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "live/session.h"
#include "live/study.h"
#include "live/tidy.h"
#include "store/tidy.h"

struct gc_options {
    char *store;
    bool dry_run;
};

static const struct opt_row gc_rows[] = {
    LOOK_STORE_ROW(struct gc_options),
    { NULL, "dry_run", OPT_FLAG, offsetof(struct gc_options, dry_run), NULL, 0, 0, NULL, NULL,
      "tell how much, and free nothing" },
};

void cmd_gc_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(gc_rows, NULL));
}

struct gc {
    const struct gc_options *o;
    struct store *store;
    const char *path;   /* of the store */
    struct strv beside; /* other stores, whose studies have their folders in the same place */
    struct tidy folders, checkpoints, heard;
    int64_t samples;
    struct err *e;
};

/* --- other stores --- */

/* The head of an SQLite file: 16 bytes of text, at 68 the application's id, the most significant byte first. */
enum { HEAD = 72, HEAD_TEXT = 16, HEAD_ID = 68 };

static bool read_head(const char *path, unsigned char head[HEAD])
{
    static const char text[HEAD_TEXT] = "SQLite format 3";
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd >= 0 && pread(fd, head, HEAD, 0) == HEAD && memcmp(head, text, HEAD_TEXT) == 0;
}

/* Ours is not even opened: closing it again would end the locks that we have on it. */
static int find_beside(struct gc *g)
{
    AUTO_FREE char *dir = io_dirname(g->path);
    unsigned char head[HEAD];
    struct stat own, st;
    if (!dir)
        return err_sys(g->e, -ENOMEM, "'%s'", g->path);
    DIR *d = stat(g->path, &own) == 0 ? opendir(dir) : NULL;
    if (!d)
        return err_sys(g->e, -errno, "cannot look for other stores beside '%s'", g->path);
    for (struct dirent *f; (f = readdir(d));) {
        AUTO_FREE char *path = io_join(dir, f->d_name);
        if (!path)
            g->beside.failed = 1;
        else if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_ino != own.st_ino || st.st_dev != own.st_dev) &&
                 read_head(path, head))
            strv_add(&g->beside, path);
    }
    (void)closedir(d);
    return g->beside.failed ? err_sys(g->e, -ENOMEM, "'%s'", g->path) : 0;
}

/* What cannot be asked, of another version perhaps, may have any study. */
static bool may_have(const char *path, const char *name)
{
    unsigned char head[HEAD];
    struct store *store = NULL;
    struct store_study study = { 0 };
    if (store_open(&store, path, STORE_READ, NULL) < 0)
        return read_head(path, head) && ((uint32_t)head[HEAD_ID] << 24 | (uint32_t)head[HEAD_ID + 1] << 16 |
                                         (uint32_t)head[HEAD_ID + 2] << 8 | head[HEAD_ID + 3]) == STORE_APPLICATION_ID;
    int rc = store_study_find(store, name, &study, NULL);
    store_study_done(&study);
    store_close(store);
    return rc != 0;
}

/* --- folders of no study --- */

static int is_study(struct gc *g, const char *name)
{
    struct store_study study = { 0 };
    int rc = store_study_find(g->store, name, &study, g->e);
    store_study_done(&study);
    for (size_t i = 0; rc == 0 && i < g->beside.n; i++)
        rc = may_have(g->beside.v[i], name);
    return rc;
}

/* A driver takes the folder's lock before it makes the study's row: under that lock there will be none. */
static int collect_folder(struct gc *g, const char *dir, const char *name)
{
    AUTO_CLOSE int lock = -1;
    struct err why = { 0 };
    int rc = is_study(g, name);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    AUTO_FREE char *path = io_join(dir, name);
    AUTO_FREE char *locked = path ? io_join(path, "driver.lock") : NULL;
    if (!path || !locked)
        return err_sys(g->e, -ENOMEM, "'%s'", dir);
    if (!ours_is_dir(path) || (io_exists(locked) && study_lock(&lock, path, name, &why) < 0))
        return 0; /* of somebody else, or somebody is at it */
    AUTO_FREE char *busy = tidy_in_use_below(path);
    rc = busy ? 1 : is_study(g, name);
    return rc != 0 ? (rc < 0 ? rc : 0) : tidy_remove(&g->folders, path, g->e);
}

static int collect_folders(struct gc *g)
{
    AUTO_FREE char *beside = io_dirname(g->path);
    AUTO_FREE char *dir = beside ? io_join(beside, "pipetune.d") : NULL;
    AUTO_STRV struct strv names = STRV_INIT;
    DIR *d = dir && ours_is_dir(dir) ? opendir(dir) : NULL;
    for (struct dirent *f; d && (f = readdir(d));)
        if (strcmp(f->d_name, ".") != 0 && strcmp(f->d_name, "..") != 0)
            strv_add(&names, f->d_name);
    if (d)
        (void)closedir(d);
    int rc = !dir || names.failed ? err_sys(g->e, -ENOMEM, "'%s'", g->path) : 0;
    for (size_t i = 0; rc == 0 && i < names.n; i++)
        rc = collect_folder(g, dir, names.v[i]);
    return rc;
}

/* --- studies --- */

struct tidied {
    struct gc *g;
    const struct store_study *study;
    const char *dir;
    enum tidy_keep keep;
};

static int collect_checkpoints(void *ctx, const struct store_trial *t)
{
    const struct tidied *x = ctx;
    char name[32];
    (void)snprintf(name, sizeof name, "%d/checkpoint", t->number);
    AUTO_FREE char *dir = io_join(x->dir, name);
    if (!dir)
        return -ENOMEM;
    return tidy_checkpoints(&x->g->checkpoints, x->g->store, t, x->study->maximise, x->keep, dir, x->g->e);
}

static enum tidy_keep keep_of(const struct store_study *study)
{
    AUTO_JSON json_t *config = words_object(study->config);
    const char *keep = json_string_value(json_object_get(json_object_get(config, "study"), "keep"));
    return tidy_keep_find(keep ? keep : "best");
}

/* What runs is its driver's, which tidies up by itself. */
static int collect_study(struct gc *g, const struct store_study *study, const char *dir)
{
    AUTO_CLOSE int lock = -1;
    struct err why = { 0 };
    struct tidied x = { g, study, dir, keep_of(study) };
    int64_t bytes = 0;
    AUTO_FREE char *busy = tidy_in_use_below(dir);
    if (busy || (ours_is_dir(dir) && study_lock(&lock, dir, study->name, &why) < 0))
        return 0;
    if (!g->o->dry_run)
        tidy_secrets(dir);
    int rc = tidy_heard(&g->heard, g->store, study->id, dir, g->e);
    if (rc == 0)
        rc = store_trials(g->store, study->id, 0, collect_checkpoints, &x, g->e);
    if (rc < 0 || strcmp(study->state, "running") == 0)
        return rc;
    rc = store_samples_thick(g->store, study->id, &bytes, g->e);
    if (rc == 0 && bytes > 0 && !g->o->dry_run)
        rc = store_samples_thin(g->store, study->id, g->e);
    g->samples += bytes;
    return rc;
}

static int collect_name(void *ctx, const struct store_summary *r)
{
    strv_add(ctx, r->name);
    return 0;
}

static int collect_studies(struct gc *g)
{
    AUTO_STRV struct strv names = STRV_INIT;
    int rc = store_list(g->store, collect_name, &names, g->e);
    if (rc == 0 && names.failed)
        rc = err_sys(g->e, -ENOMEM, "'%s'", g->path);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        struct store_study study = { 0 };
        AUTO_FREE char *dir = study_dir(g->path, names.v[i]);
        rc = dir ? view_find(g->store, names.v[i], &study, g->e) : err_sys(g->e, -ENOMEM, "'%s'", g->path);
        if (rc == 0)
            rc = view_explain(collect_study(g, &study, dir), g->e, names.v[i]);
        store_study_done(&study);
    }
    return rc;
}

/* --- all of it --- */

static int64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int64_t)st.st_size : 0;
}

static void tell(const struct gc *g, int64_t file)
{
    char size[5][32];
    const char *did = g->o->dry_run ? "would free" : "freed";
    printf("%s %s of folders without a study, %s of checkpoints, %s of what was heard of launches\n", did,
           tidy_bytes(g->folders.bytes, size[0]), tidy_bytes(g->checkpoints.bytes, size[1]),
           tidy_bytes(g->heard.bytes, size[4]));
    printf("%s %s of samples whose profiles stay", did, tidy_bytes((uint64_t)g->samples, size[2]));
    if (g->o->dry_run)
        printf("\n");
    else
        printf("; the store is smaller by %s\n", tidy_bytes(file > 0 ? (uint64_t)file : 0, size[3]));
}

static int gc(const struct gc_options *o, struct err *e)
{
    AUTO_FREE char *path = study_store_path(o->store);
    struct gc g = {
        .o = o, .path = path, .e = e, .folders.dry = o->dry_run, .checkpoints.dry = o->dry_run, .heard.dry = o->dry_run
    };
    if (!path)
        return err_sys(e, -ENOMEM, "store");
    if (!io_exists(path))
        return err_set(e, -ENOENT, "no store '%s': --store or PIPETUNE_STORE names another", path);
    int64_t before = size_of(path);
    if (!o->dry_run)
        session_sockets_sweep();
    int rc = store_open(&g.store, path, o->dry_run ? STORE_READ : STORE_WRITE, e);
    if (rc == 0)
        rc = find_beside(&g);
    if (rc == 0)
        rc = collect_folders(&g);
    if (rc == 0)
        rc = collect_studies(&g);
    if (rc == 0 && !o->dry_run)
        rc = store_vacuum(g.store, e);
    store_close(g.store);
    strv_done(&g.beside);
    if (rc == 0)
        tell(&g, before - size_of(path));
    return rc;
}

int cmd_gc(int argc, char **argv)
{
    struct gc_options o = { 0 };
    struct opt_set set = OPT_SET(gc_rows, &o);
    int code;
    if (!cmd_options("gc", argc, argv, &set, 1, NULL, 0, &code)) {
        struct err e = { 0 };
        code = gc(&o, &e) == 0 ? CMD_OK : cmd_fail(&e);
    }
    opt_done(&set);
    return code;
}
