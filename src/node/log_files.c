#include "node/log_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"

enum { NAME_ROOM = 8, FLAGS = O_RDWR | O_APPEND | O_CREAT };

/* DIR/NAME; it fits, log_files_open() has made sure. */
static const char *path_of(const struct log_files *f, const char *name, char out[PATH_MAX])
{
    (void)snprintf(out, PATH_MAX, "%.*s/%s", PATH_MAX - NAME_ROOM, f->dir, name);
    return out;
}

/* What ends inside a line would glue our attempt's first line to it. */
static int end_last_line(int fd, off_t *size)
{
    char last = '\n';
    if (*size > 0 && pread(fd, &last, 1, *size - 1) < 0)
        return -errno;
    if (last == '\n')
        return 0;
    ++*size;
    return io_write_all(fd, "\n", 1);
}

static int open_one(const struct log_files *f, const char *name, int *out, uint64_t *out_size, struct err *e)
{
    char path[PATH_MAX];
    AUTO_CLOSE int fd = ours_open(path_of(f, name, path), FLAGS, e);
    if (fd < 0)
        return fd;
    struct stat st;
    int rc = fstat(fd, &st) < 0 ? -errno : end_last_line(fd, &st.st_size);
    if (rc < 0)
        return err_sys(e, rc, "cannot append to '%s'", path);
    *out_size = (uint64_t)st.st_size;
    *out = MOVE_FD(fd);
    return 0;
}

int log_files_open(struct log_files *f, const char *dir, struct err *e)
{
    if (strlen(dir) > PATH_MAX - 1 - NAME_ROOM)
        return err_sys(e, -ENAMETOOLONG, "cannot open the log in '%.200s…'", dir);
    (void)snprintf(f->dir, sizeof f->dir, "%s", dir);
    uint64_t heard_size = 0;
    int rc = open_one(f, "log", &f->log, &f->size, e);
    if (rc == 0)
        rc = open_one(f, "heard", &f->heard, &heard_size, e);
    if (rc < 0)
        log_files_close(f);
    return rc;
}

void log_files_close(struct log_files *f)
{
    if (f->log >= 0)
        (void)close(f->log); /* what a late write-back loses is told nowhere: no write of ours failed */
    if (f->heard >= 0)
        (void)close(f->heard);
    f->log = f->heard = -1;
}

void log_files_rotate(struct log_files *f)
{
    char now[PATH_MAX], old[PATH_MAX];
    (void)path_of(f, "log", now);
    (void)path_of(f, "log.1", old);
    int fd = -1;
    if (rename(now, old) == 0) {
        fd = ours_open(now, FLAGS | O_EXCL, NULL);
        if (fd < 0)
            (void)rename(old, now); /* where that fails too, it goes on under the older name */
    }
    if (fd >= 0) {
        (void)close(f->log);
        f->log = fd;
    } else {
        (void)ftruncate(f->log, 0); /* where even that fails, it is tried again with the next lines */
    }
    f->size = 0;
}
