#include "live/sources.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "base/own.h"
#include "base/sha256.h"

static bool is_known(const struct sources *s, const char *name, const char *path)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i].name, name) == 0 || strcmp(s->v[i].path, path) == 0)
            return true;
    return false;
}

/* It may be a secret where only its owner reads it, or where passwords are among what it is for. */
static bool may_be_kept(const struct sources *s, const struct stat *st)
{
    return !s->secret && st->st_size <= SOURCES_FILE_MAX && s->bytes + (size_t)st->st_size <= SOURCES_ALL_MAX &&
           (st->st_mode & (S_IRGRP | S_IROTH));
}

static void sum_of(const void *bytes, size_t len, char out[SHA256_HEX_MAX])
{
    struct sha256 sum;
    sha256_init(&sum);
    sha256_add(&sum, bytes, len);
    sha256_hex(&sum, out);
}

/* The sum is of what is kept, whoever writes the file meanwhile. False: it cannot be read. */
static bool read_source(struct sources *s, struct source *to, const struct stat *st)
{
    AUTO_BUF struct buf bytes = BUF_INIT;
    struct err ignored;
    to->mode = (int)(st->st_mode & 07777);
    if (!may_be_kept(s, st))
        return st->st_size <= SOURCES_SUM_MAX && sha256_file(to->path, to->sha256, &ignored) == 0;
    if (io_read_file(&bytes, to->path, SOURCES_FILE_MAX, &ignored) < 0)
        return false;
    to->len = bytes.len;
    sum_of(buf_text(&bytes), bytes.len, to->sha256);
    to->bytes = bytes.len ? buf_take(&bytes) : strdup("");
    s->bytes += to->len;
    return true;
}

static int add_file(struct sources *s, const char *name, const char *path)
{
    struct stat st;
    if (s->n == SOURCES_MOST || stat(path, &st) < 0 || !S_ISREG(st.st_mode) || is_known(s, name, path))
        return 0;
    struct source *grown = array_more(s->v, s->n, &s->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    s->v = grown;
    struct source one = { .name = strdup(name), .path = strdup(path) };
    if (one.name && one.path && read_source(s, &one, &st)) {
        s->v[s->n++] = one;
        return 0;
    }
    int rc = one.name && one.path ? 0 : -ENOMEM;
    free(one.name);
    free(one.path);
    return rc;
}

/* Beside a Python program stand the modules that it imports. */
static int add_beside(struct sources *s, const char *name, const char *path)
{
    size_t len = strlen(path);
    if (len < 3 || strcmp(path + len - 3, ".py") != 0)
        return 0;
    AUTO_FREE char *folder = io_dirname(path);
    AUTO_FREE char *shown = io_dirname(name);
    DIR *dir = folder ? opendir(folder) : NULL;
    int rc = folder && shown ? 0 : -ENOMEM;
    for (const struct dirent *d; dir && rc == 0 && (d = readdir(dir));) {
        size_t n = strlen(d->d_name);
        if (n < 4 || strcmp(d->d_name + n - 3, ".py") != 0)
            continue;
        AUTO_FREE char *at = io_join(folder, d->d_name);
        AUTO_FREE char *as = io_join(shown, d->d_name);
        rc = at && as ? add_file(s, as, at) : -ENOMEM;
    }
    if (dir)
        (void)closedir(dir);
    return rc;
}

/* A text that names a file: in the working directory, else beside the application file. */
static int add_text(struct sources *s, const struct plan *p, const char *text)
{
    if (!*text || strlen(text) >= PATH_MAX || strchr(text, '$'))
        return 0;
    AUTO_FREE char *dir = io_dirname(p->app_doc.name);
    AUTO_FREE char *beside = dir ? io_join(dir, text) : NULL;
    AUTO_FREE char *path = beside ? io_absolute(io_exists(text) ? text : beside) : NULL;
    int rc = path ? add_file(s, text, path) : -ENOMEM;
    return rc == 0 ? add_beside(s, text, path) : rc;
}

static int add_named(struct sources *s, const struct plan *p, const json_t *in)
{
    const char *key, *text = json_string_value(in);
    json_t *value;
    size_t i;
    int rc = text ? add_text(s, p, text) : 0;
    json_array_foreach(in, i, value) rc = rc == 0 ? add_named(s, p, value) : rc;
    json_object_foreach((json_t *)(uintptr_t)in, key, value)
    {
        s->secret = strcmp(key, "properties_file") == 0;
        rc = rc == 0 ? add_named(s, p, value) : rc;
    }
    s->secret = false;
    return rc;
}

int sources_collect(struct sources *out, const struct plan *p)
{
    AUTO_STRV struct strv files = STRV_INIT;
    struct sources s = { 0 };
    p->app.kind->files(&p->app, &files);
    int rc = files.failed ? -ENOMEM : add_named(&s, p, p->app_doc.root);
    for (size_t i = 0; rc == 0 && i < files.n; i++) {
        rc = add_file(&s, files.v[i], files.v[i]);
        if (rc == 0)
            rc = add_beside(&s, files.v[i], files.v[i]);
    }
    if (rc < 0)
        sources_done(&s);
    else
        *out = s;
    return rc;
}

void sources_done(struct sources *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->v[i].name);
        free(s->v[i].path);
        free(s->v[i].bytes);
    }
    free(s->v);
    *s = (struct sources){ 0 };
}

int sources_keep(const struct sources *s, struct store *store, int64_t study, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n; i++) {
        const struct source *one = &s->v[i];
        const struct store_source row = { study, one->name, one->path, one->sha256, one->mode, one->bytes, one->len };
        rc = store_source_add(store, &row, e);
    }
    return rc;
}
