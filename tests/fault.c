#include "tests/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned armed_kinds;
static unsigned left;
static bool struck;

void fault_arm(unsigned kinds, unsigned nth)
{
    armed_kinds = kinds;
    left = nth;
    struck = false;
}

bool fault_struck(void)
{
    return struck;
}

bool fault_disarm(void)
{
    armed_kinds = 0;
    return struck;
}

static bool strikes(unsigned kind, int error)
{
    if (!(armed_kinds & kind) || struck || --left > 0)
        return false;
    struck = true;
    errno = error;
    return true;
}

/* clang-format off */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
ssize_t __real_write(int fd, const void *p, size_t n);
int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __real_open(const char *path, int flags, ...);
pid_t __real_fork(void);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);
int __wrap_open(const char *path, int flags, ...);
pid_t __wrap_fork(void);

void *__wrap_malloc(size_t n) { return strikes(FAULT_ALLOC, ENOMEM) ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return strikes(FAULT_ALLOC, ENOMEM) ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t n) { return strikes(FAULT_ALLOC, ENOMEM) ? NULL : __real_realloc(p, n); }
char *__wrap_strdup(const char *s) { return strikes(FAULT_ALLOC, ENOMEM) ? NULL : __real_strdup(s); }
char *__wrap_strndup(const char *s, size_t n) { return strikes(FAULT_ALLOC, ENOMEM) ? NULL : __real_strndup(s, n); }
ssize_t __wrap_write(int fd, const void *p, size_t n) { return strikes(FAULT_WRITE, ENOSPC) ? -1 : __real_write(fd, p, n); }
int __wrap_fsync(int fd) { return strikes(FAULT_FSYNC, EIO) ? -1 : __real_fsync(fd); }
int __wrap_rename(const char *from, const char *to) { return strikes(FAULT_RENAME, EIO) ? -1 : __real_rename(from, to); }
pid_t __wrap_fork(void) { return strikes(FAULT_FORK, EAGAIN) ? -1 : __real_fork(); }
/* clang-format on */

int __wrap_open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list ap;
        va_start(ap, flags);
        mode = va_arg(ap, mode_t);
        va_end(ap);
    }
    return strikes(FAULT_OPEN, EMFILE) ? -1 : __real_open(path, flags, mode);
}
