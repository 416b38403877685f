#include "live/parcel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beneath.h"
#include "base/io.h"
#include "base/own.h"
#include "node/blobs.h"

enum { DEPTH_MAX = 16 };

void parcel_done(struct parcel *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++) {
        free(p->v[i].path);
        free(p->v[i].name);
    }
    free(p->v);
    buf_done(&p->manifest);
    *p = (struct parcel){ 0 };
}

static bool has(const struct parcel *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->v[i].name, name) == 0)
            return true;
    return false;
}

/* Takes the place of the copies that failed. */
static int put(struct parcel *p, struct parcel_item it, struct err *e)
{
    struct parcel_item *grown = p->n < BLOBS_FILES_MAX ? array_more(p->v, p->n, &p->cap, sizeof *grown) : NULL;
    bool full = p->n >= BLOBS_FILES_MAX;
    it.path = strdup(it.path);
    it.name = strdup(it.name);
    if (grown)
        p->v = grown;
    if (grown && it.path && it.name) {
        p->v[p->n++] = it;
        return 0;
    }
    free(it.path);
    free(it.name);
    return full ? err_set(e, -E2BIG, "more than %d files are to be sent to other hosts", BLOBS_FILES_MAX)
                : err_sys(e, -ENOMEM, "files for other hosts");
}

static int add_file(struct parcel *p, const char *path, const char *name, const struct stat *st, bool moved,
                    struct err *e)
{
    struct parcel_item it = { .path = (char *)path,
                              .name = (char *)name,
                              .size = st->st_size,
                              .mode = moved                   ? 'm'
                                      : st->st_mode & S_IXUSR ? 'x'
                                                              : '-' };
    if (!beneath_is_name(name))
        return err_set(e, -EINVAL, "'%s' cannot be sent to another host: its name there would be '%s'", path, name);
    int rc = has(p, name) ? -EEXIST : sha256_file(path, it.hash, e);
    return rc == -EEXIST ? 0 : rc < 0 ? rc : put(p, it, e);
}

static int add(struct parcel *p, const char *path, const char *name, bool moved, int depth, struct err *e);

static bool is_left_out(const char *name)
{
    static const char *const left_out[] = { ".", "..", ".git", "__pycache__" };
    for (size_t i = 0; i < ARRAY_LEN(left_out); i++)
        if (strcmp(name, left_out[i]) == 0)
            return true;
    return false;
}

static int add_folder(struct parcel *p, const char *path, const char *name, bool moved, int depth, struct err *e)
{
    DIR *d = opendir(path);
    int rc = d ? 0 : err_sys(e, -errno, "cannot read folder '%s'", path);
    for (struct dirent *f; rc == 0 && (f = readdir(d));) {
        if (is_left_out(f->d_name))
            continue;
        AUTO_FREE char *below = io_join(path, f->d_name);
        AUTO_FREE char *there = io_join(name, f->d_name);
        rc = below && there ? add(p, below, there, moved, depth + 1, e) : err_sys(e, -ENOMEM, "'%s'", path);
    }
    if (d)
        (void)closedir(d);
    return rc;
}

static int add(struct parcel *p, const char *path, const char *name, bool moved, int depth, struct err *e)
{
    struct stat link, st;
    if (lstat(path, &link) < 0 || stat(path, &st) < 0)
        return depth > 0 ? 0 : err_sys(e, -errno, "'%s'", path); /* a link to nothing, or gone meanwhile */
    if (S_ISREG(st.st_mode))
        return add_file(p, path, name, &st, moved, e);
    if (!S_ISDIR(st.st_mode) || (depth > 0 && S_ISLNK(link.st_mode)))
        return 0;
    return depth < DEPTH_MAX ? add_folder(p, path, name, moved, depth, e)
                             : err_set(e, -E2BIG, "'%s' is too deep to be sent to another host", path);
}

int parcel_add(struct parcel *p, const char *path, const char *name, bool moved, struct err *e)
{
    return add(p, path, name, moved, 0, e);
}

int parcel_add_all(struct parcel *p, const struct parcel *of, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < of->n; i++)
        rc = put(p, of->v[i], e);
    return rc;
}

/* "work/" and its name below the folder, or its last. Free it; NULL: memory. */
static char *name_of(const char *folder, const char *path)
{
    size_t len = strlen(folder), n = strlen(path);
    AUTO_FREE char *own = strndup(path, n > 1 && path[n - 1] == '/' ? n - 1 : n);
    if (!own)
        return NULL;
    const char *slash = strrchr(own, '/');
    bool below = strncmp(own, folder, len) == 0 && own[len] == '/';
    return io_join("work", below ? own + len + 1 : slash ? slash + 1 : own);
}

static int add_named(struct parcel *p, const char *folder, const char *path, struct err *e)
{
    AUTO_FREE char *name = name_of(folder, path);
    return name ? parcel_add(p, path, name, false, e) : err_sys(e, -ENOMEM, "'%s'", path);
}

int parcel_add_app(struct parcel *p, const char *folder, const struct strv *files, const struct strv *words,
                   struct err *e)
{
    int rc = 0;
    AUTO_FREE char *at = io_absolute(folder);
    if (!at)
        return err_sys(e, -ENOMEM, "'%s'", folder);
    for (size_t i = 0; rc == 0 && i < files->n; i++)
        rc = add_named(p, at, files->v[i], e);
    for (size_t i = 0; rc == 0 && i < words->n; i++) {
        AUTO_FREE char *joined = *words->v[i] && *words->v[i] != '/' ? io_join(at, words->v[i]) : NULL;
        AUTO_FREE char *path = joined ? io_absolute(joined) : NULL;
        struct stat st;
        if (path && stat(path, &st) == 0 && S_ISREG(st.st_mode) && strncmp(path, at, strlen(at)) == 0)
            rc = add_named(p, at, path, e);
    }
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct parcel_item *)a)->name, ((const struct parcel_item *)b)->name);
}

/* What is there twice cannot be moved to both. */
static void keep_twins(struct parcel *p)
{
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; p->v[i].mode == 'm' && k < p->n; k++)
            if (k != i && strcmp(p->v[i].hash, p->v[k].hash) == 0)
                p->v[i].mode = '-';
}

int parcel_seal(struct parcel *p, struct err *e)
{
    struct sha256 sum;
    keep_twins(p);
    if (p->n > 1)
        qsort(p->v, p->n, sizeof *p->v, by_name); /* folders are read in no order */
    for (size_t i = 0; i < p->n; i++)
        buf_printf(&p->manifest, "%s %" PRId64 " %c %s\n", p->v[i].hash, p->v[i].size, p->v[i].mode, p->v[i].name);
    if (p->manifest.failed)
        return err_sys(e, -ENOMEM, "files for other hosts");
    if (p->manifest.len > BLOBS_MANIFEST_MAX)
        return err_set(e, -E2BIG, "the names of the files for other hosts are too long together");
    sha256_init(&sum);
    sha256_add(&sum, p->manifest.data, p->manifest.len);
    sha256_hex(&sum, p->hash);
    return 0;
}

int64_t parcel_read(const struct parcel *p, const struct parcel_item *it, int64_t from, void *to, size_t n)
{
    if (!it->path) {
        size_t left = p->manifest.len - (size_t)from;
        memcpy(to, p->manifest.data + from, n < left ? n : left);
        return (int64_t)(n < left ? n : left);
    }
    AUTO_CLOSE int fd = open(it->path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : pread(fd, to, n, (off_t)from);
    return got < 0 ? -errno : got;
}

const struct parcel_item *parcel_at(const struct parcel *p, size_t i, struct parcel_item *manifest)
{
    if (i < p->n)
        return &p->v[i];
    *manifest = (struct parcel_item){ .size = (int64_t)p->manifest.len };
    memcpy(manifest->hash, p->hash, sizeof p->hash);
    return i == p->n ? manifest : NULL;
}
