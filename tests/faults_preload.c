/* faults.so, for LD_PRELOAD: makes the Nth call of some kinds fail in one program, in its libraries too (tests/fault.h does
 * the same to our own objects alone).
 *
 *   PIPETUNE_FAULT=KIND[,KIND…]:N[:ERRNO][:kill]   the Nth (1 = the first) of these calls fails, once; `kill` ends the
 *                  process by SIGKILL instead, a write or pwrite half done; N = 0 only counts. Kinds: see the table
 *   PIPETUNE_FAULT_PROGRAM=NAME   in which program (pipetune); children that it forks are spared up to their exec
 *   PIPETUNE_FAULT_SPARE=NAME     not memory that the library asks for whose file's name holds NAME
 *   PIPETUNE_FAULT_PATH=SUFFIX    only calls on a file whose name ends so
 *   PIPETUNE_FAULT_COUNT=FILE     gets the line "struck CALL" when it happens; with N = 0 the count, at the exit. With
 *                  N > 0, a process that finds the file there is spared: only the first of several launchers fails
 *   PIPETUNE_CLOCK_SET=AT:BY      the wall clock of every program is set by BY ms when the machine has run AT ms (CLOCK_BOOTTIME)
 *   PIPETUNE_SLOW_SYNC=MS         each fsync in `pipetune` takes so much longer. PIPETUNE_STORY=FILE (base/failpoint.h) gets a line when one
 *                  begins ("sync"), is over ("synced"), and when lines of a trial are read ("lines")
 *   PIPETUNE_FAULT_STATFS=nfs     statfs() says that every file is on NFS, in every program
 *
 * Memory that libc's stdio, or the loader, takes for itself before main() is not counted; a write to a pipe or an eventfd
 * neither, since one that has a reader cannot fail. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind {
    KIND_FALLOCATE,
    KIND_FORK,
    KIND_FSYNC,
    KIND_FTRUNCATE,
    KIND_MALLOC,
    KIND_MKDIR,
    KIND_MMAP,
    KIND_OPEN,
    KIND_OPENR,
    KIND_PIPE,
    KIND_PREAD,
    KIND_PWRITE,
    KIND_RENAME,
    KIND_UNLINK,
    KIND_WRITE,
};

static const struct {
    const char *name;
    int error; /* unless PIPETUNE_FAULT names another */
} kinds[] = {
    [KIND_FALLOCATE] = { "fallocate", EOPNOTSUPP },
    [KIND_FORK] = { "fork", EAGAIN }, /* fork, posix_spawn */
    [KIND_FSYNC] = { "fsync", EIO },  /* fsync, fdatasync */
    [KIND_FTRUNCATE] = { "ftruncate", EIO },
    [KIND_MALLOC] = { "malloc", ENOMEM }, /* malloc, calloc, realloc */
    [KIND_MKDIR] = { "mkdir", ENOSPC },
    [KIND_MMAP] = { "mmap", ENOMEM },   /* of files */
    [KIND_OPEN] = { "open", EMFILE },   /* to write or create */
    [KIND_OPENR] = { "openr", EMFILE }, /* to read */
    [KIND_PIPE] = { "pipe", EMFILE },   /* pipe2, socketpair */
    [KIND_PREAD] = { "pread", EIO },
    [KIND_PWRITE] = { "pwrite", ENOSPC },
    [KIND_RENAME] = { "rename", EIO },
    [KIND_UNLINK] = { "unlink", EIO },
    [KIND_WRITE] = { "write", ENOSPC }, /* write, writev */
};

static const struct {
    const char *name;
    int error;
} errors[] = {
    { "EACCES", EACCES }, { "EAGAIN", EAGAIN }, { "EINTR", EINTR },   { "EIO", EIO },
    { "EMFILE", EMFILE }, { "ENOMEM", ENOMEM }, { "ENOSPC", ENOSPC }, { "EROFS", EROFS },
};

enum { N_KINDS = sizeof kinds / sizeof kinds[0], N_ERRORS = sizeof errors / sizeof errors[0] };

static struct {
    unsigned kinds; /* bits; 0 until the constructor has run, and in every other program */
    unsigned long nth;
    int error; /* 0: the kind's own */
    bool kills;
    const char *path, *count_file;
    uintptr_t spare_from, spare_to; /* code of the library that is spared */
    pid_t pid;
} plan;

static atomic_ulong calls;

/* --- the plan ----------------------------------------------------------------------------------------------------- */

static bool word_is(const char *word, size_t len, const char *name)
{
    return strlen(name) == len && strncmp(word, name, len) == 0;
}

static unsigned parse_kinds(const char *p, size_t len)
{
    unsigned bits = 0;
    for (size_t at = 0; at < len; at++) {
        size_t n = strcspn(p + at, ",:");
        for (int k = 0; k < N_KINDS; k++)
            if (word_is(p + at, n, kinds[k].name))
                bits |= 1U << k;
        at += n;
    }
    return bits;
}

static void parse_word(const char *word, size_t len)
{
    if (word_is(word, len, "kill"))
        plan.kills = true;
    for (int i = 0; i < N_ERRORS; i++)
        if (word_is(word, len, errors[i].name))
            plan.error = errors[i].error;
}

static void write_line(const char *line)
{
    int fd = plan.count_file
                 ? (int)syscall(SYS_openat, AT_FDCWD, plan.count_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)
                 : -1;
    if (fd < 0)
        return;
    (void)!syscall(SYS_write, fd, line, strlen(line)); /* a test that misses it fails */
    (void)syscall(SYS_close, fd);
}

static int note_library(struct dl_phdr_info *info, size_t size, void *name)
{
    (void)size;
    for (int i = 0; strstr(info->dlpi_name, name) && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
            plan.spare_from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            plan.spare_to = plan.spare_from + info->dlpi_phdr[i].p_memsz;
        }
    return 0;
}

static __attribute__((constructor)) void begin(void)
{
    const char *text = getenv("PIPETUNE_FAULT"), *program = getenv("PIPETUNE_FAULT_PROGRAM");
    if (!text || strcmp(program ? program : "pipetune", program_invocation_short_name) != 0)
        return;
    size_t len = strcspn(text, ":");
    char *rest = NULL;
    plan.nth = text[len] ? strtoul(text + len + 1, &rest, 10) : 1;
    for (; rest && *rest == ':'; rest += strcspn(rest, ":")) {
        rest++;
        parse_word(rest, strcspn(rest, ":"));
    }
    plan.path = getenv("PIPETUNE_FAULT_PATH");
    plan.count_file = getenv("PIPETUNE_FAULT_COUNT");
    plan.pid = getpid();
    char *spare = getenv("PIPETUNE_FAULT_SPARE");
    if (spare)
        (void)dl_iterate_phdr(note_library, spare);
    if (plan.nth && plan.count_file && access(plan.count_file, F_OK) == 0)
        return;                          /* it has struck already */
    plan.kinds = parse_kinds(text, len); /* last: from here on it counts */
}

static __attribute__((destructor)) void end(void)
{
    char line[32];
    if (!plan.kinds || plan.nth != 0 || getpid() != plan.pid)
        return;
    (void)snprintf(line, sizeof line, "%lu\n", atomic_load(&calls));
    write_line(line);
}

/* --- a slow disk, and who waits for it ------------------------------------------------------------------------------ */

static struct {
    long sync_ms; /* 0: it is as it is */
    const char *story;
    pid_t pid;
} slow;

static __attribute__((constructor)) void begin_slow(void)
{
    const char *text = getenv("PIPETUNE_SLOW_SYNC");
    if (!text || strcmp("pipetune", program_invocation_short_name) != 0)
        return;
    slow.sync_ms = strtol(text, NULL, 10);
    slow.story = getenv("PIPETUNE_STORY");
    slow.pid = getpid();
}

/* Past the calls below, which count. */
static void tell_story(const char *line)
{
    int kept = errno, flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    int fd = slow.story ? (int)syscall(SYS_openat, AT_FDCWD, slow.story, flags, 0600) : -1;
    if (fd >= 0) {
        (void)!syscall(SYS_write, fd, line, strlen(line));
        (void)syscall(SYS_close, fd);
    }
    errno = kept;
}

static void wait_for_disk(void)
{
    struct timespec t = { .tv_sec = slow.sync_ms / 1000, .tv_nsec = slow.sync_ms % 1000 * 1000000 };
    if (!slow.sync_ms || getpid() != slow.pid)
        return;
    tell_story("sync\n");
    (void)nanosleep(&t, NULL);
    tell_story("synced\n");
}

static bool is_heard(int fd)
{
    char link[64], target[PATH_MAX];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, target, sizeof target - 1);
    return n > 6 && strncmp(target + n - 6, "/heard", 6) == 0;
}

static ssize_t note_read(int fd, ssize_t n)
{
    int kept = errno;
    if (n > 0 && slow.sync_ms && is_heard(fd))
        tell_story("lines\n");
    errno = kept;
    return n;
}

/* --- does this call fail? ------------------------------------------------------------------------------------------- */

static bool ends_with(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n >= m && strcmp(path + n - m, suffix) == 0;
}

/* `path` or, where it is NULL, what `fd` is open on. */
static bool is_chosen(int fd, const char *path)
{
    char link[64], target[PATH_MAX];
    if (!plan.path)
        return true;
    if (path)
        return ends_with(path, plan.path);
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, target, sizeof target - 1);
    target[n > 0 ? n : 0] = '\0';
    return fd >= 0 && ends_with(target, plan.path);
}

/* Or an eventfd, which is of no kind. */
static bool is_pipe(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || (st.st_mode & S_IFMT) == 0);
}

/* Counts the call; true when it is the one. */
static bool is_due(enum kind k, int fd, const char *path)
{
    int kept = errno;
    bool counts =
        (plan.kinds & 1U << k) && getpid() == plan.pid && is_chosen(fd, path) && !(k == KIND_WRITE && is_pipe(fd));
    errno = kept;
    return counts && atomic_fetch_add(&calls, 1) + 1 == plan.nth;
}

static void strike(enum kind k)
{
    char line[64];
    (void)snprintf(line, sizeof line, "struck %s\n", kinds[k].name); /* asks for no memory itself */
    write_line(line);
    if (plan.kills)
        (void)syscall(SYS_kill, getpid(), SIGKILL);
    errno = plan.error ? plan.error : kinds[k].error;
}

static bool fails(enum kind k, int fd, const char *path)
{
    if (!is_due(k, fd, path))
        return false;
    strike(k);
    return true;
}

/* --- the calls: straight to the kernel where libc adds nothing -------------------------------------------------------- */

ssize_t write(int fd, const void *p, size_t n)
{
    if (is_due(KIND_WRITE, fd, NULL)) {
        if (plan.kills)
            (void)!syscall(SYS_write, fd, p, n / 2);
        strike(KIND_WRITE);
        return -1;
    }
    return syscall(SYS_write, fd, p, n);
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
    return fails(KIND_WRITE, fd, NULL) ? -1 : syscall(SYS_writev, fd, v, n);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
    if (is_due(KIND_PWRITE, fd, NULL)) {
        if (plan.kills)
            (void)!syscall(SYS_pwrite64, fd, p, n / 2, at);
        strike(KIND_PWRITE);
        return -1;
    }
    return syscall(SYS_pwrite64, fd, p, n, at);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    return pwrite64(fd, p, n, at);
}

ssize_t pread64(int fd, void *p, size_t n, off64_t at)
{
    return fails(KIND_PREAD, fd, NULL) ? -1 : note_read(fd, syscall(SYS_pread64, fd, p, n, at));
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
    return pread64(fd, p, n, at);
}

int fsync(int fd)
{
    wait_for_disk();
    return fails(KIND_FSYNC, fd, NULL) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    wait_for_disk();
    return fails(KIND_FSYNC, fd, NULL) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int ftruncate64(int fd, off64_t n)
{
    return fails(KIND_FTRUNCATE, fd, NULL) ? -1 : (int)syscall(SYS_ftruncate, fd, n);
}

int ftruncate(int fd, off_t n)
{
    return ftruncate64(fd, n);
}

int fallocate64(int fd, int mode, off64_t from, off64_t n)
{
    return fails(KIND_FALLOCATE, fd, NULL) ? -1 : (int)syscall(SYS_fallocate, fd, mode, from, n);
}

int fallocate(int fd, int mode, off_t from, off_t n)
{
    return fallocate64(fd, mode, from, n);
}

int rename(const char *from, const char *to)
{
    return fails(KIND_RENAME, -1, to) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path)
{
    return fails(KIND_UNLINK, -1, path) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int mkdir(const char *path, mode_t mode)
{
    return fails(KIND_MKDIR, -1, path) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

static int open_at(int dir, const char *path, int flags, mode_t mode)
{
    bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT);
    return fails(writes ? KIND_OPEN : KIND_OPENR, -1, path) ? -1 : (int)syscall(SYS_openat, dir, path, flags, mode);
}

/* The mode is only there when the flags say so. */
#define OPEN_MODE(flags)                                                                                               \
    __extension__({                                                                                                    \
        mode_t mode_ = 0;                                                                                              \
        if ((flags) & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) {                                                        \
            va_list ap_;                                                                                               \
            va_start(ap_, flags);                                                                                      \
            mode_ = va_arg(ap_, mode_t);                                                                               \
            va_end(ap_);                                                                                               \
        }                                                                                                              \
        mode_;                                                                                                         \
    })

int open(const char *path, int flags, ...)
{
    return open_at(AT_FDCWD, path, flags, OPEN_MODE(flags));
}

int open64(const char *path, int flags, ...)
{
    return open_at(AT_FDCWD, path, flags, OPEN_MODE(flags));
}

int openat(int dir, const char *path, int flags, ...)
{
    return open_at(dir, path, flags, OPEN_MODE(flags));
}

int openat64(int dir, const char *path, int flags, ...)
{
    return open_at(dir, path, flags, OPEN_MODE(flags));
}

void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t from)
{
    if (fd >= 0 && fails(KIND_MMAP, fd, NULL))
        return MAP_FAILED;
    /* libc knows how a kernel wants the offset; RTLD_NEXT is found without memory or files. */
    void *(*real)(void *, size_t, int, int, int, off64_t) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "mmap64");
    return real(at, n, prot, flags, fd, from);
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t from)
{
    return mmap64(at, n, prot, flags, fd, from);
}

int pipe2(int fds[2], int flags)
{
    return fails(KIND_PIPE, -1, NULL) ? -1 : (int)syscall(SYS_pipe2, fds, flags);
}

int socketpair(int domain, int type, int protocol, int fds[2])
{
    return fails(KIND_PIPE, -1, NULL) ? -1 : (int)syscall(SYS_socketpair, domain, type, protocol, fds);
}

pid_t fork(void)
{
    pid_t (*real)(void) = NULL;
    if (fails(KIND_FORK, -1, NULL))
        return -1;
    *(void **)&real = dlsym(RTLD_NEXT, "fork"); /* it also runs the handlers of pthread_atfork() */
    return real();
}

typedef int spawn_fn(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                     char *const[], char *const[]);

static int spawn_by(const char *name, pid_t *pid, const char *path, const posix_spawn_file_actions_t *fa,
                    const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
    spawn_fn *real = NULL;
    if (fails(KIND_FORK, -1, NULL))
        return errno;
    *(void **)&real = dlsym(RTLD_NEXT, name);
    return real(pid, path, fa, attr, argv, envp);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *fa, const posix_spawnattr_t *attr,
                char *const argv[], char *const envp[])
{
    return spawn_by("posix_spawn", pid, path, fa, attr, argv, envp);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *fa, const posix_spawnattr_t *attr,
                 char *const argv[], char *const envp[])
{
    return spawn_by("posix_spawnp", pid, file, fa, attr, argv, envp);
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, out);
    const char *text = rc == 0 && clock == CLOCK_REALTIME ? getenv("PIPETUNE_CLOCK_SET") : NULL;
    struct timespec up;
    if (!text || syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &up) < 0)
        return rc;
    char *by = NULL;
    long long at_ms = strtoll(text, &by, 10), by_ms = *by == ':' ? strtoll(by + 1, NULL, 10) : 0;
    if ((long long)up.tv_sec * 1000 + up.tv_nsec / 1000000 >= at_ms) {
        long long ns = (long long)out->tv_sec * 1000000000 + out->tv_nsec + by_ms * 1000000;
        out->tv_sec = (time_t)(ns / 1000000000);
        out->tv_nsec = (long)(ns % 1000000000);
    }
    return rc;
}

int statfs64(const char *path, struct statfs64 *out)
{
    static const long nfs = 0x6969;
    const char *kind = getenv("PIPETUNE_FAULT_STATFS");
    int rc = (int)syscall(SYS_statfs, path, out);
    if (rc == 0 && kind && strcmp(kind, "nfs") == 0)
        out->f_type = nfs;
    return rc;
}

int statfs(const char *path, struct statfs *out)
{
    return statfs64(path, (struct statfs64 *)out); /* the same on 64-bit machines, and we know no others */
}

/* --- memory: libc's own entry points need no dlsym(), which may itself ask for memory ---------------------------------- */

/* clang-format off */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
/* Under AddressSanitizer all memory must be its own: these are there only then. */
extern void *__interceptor_malloc(size_t n) __attribute__((weak));
extern void *__interceptor_calloc(size_t n, size_t size) __attribute__((weak));
extern void *__interceptor_realloc(void *p, size_t n) __attribute__((weak));
/* clang-format on */

/* The C library's own search for users dies without memory, in several ways: as a whole it is one call that fails. */
static _Thread_local bool looks_up
    __attribute__((tls_model("initial-exec"))); /* read by malloc, before there is any other kind */

int getpwuid_r(uid_t uid, struct passwd *out, char *room, size_t size, struct passwd **found)
{
    int (*real)(uid_t, struct passwd *, char *, size_t, struct passwd **) = NULL;
    *found = NULL;
    if (fails(KIND_MALLOC, -1, NULL))
        return ENOMEM;
    looks_up = true;
    *(void **)&real = dlsym(RTLD_NEXT, "getpwuid_r");
    int rc = real(uid, out, room, size, found);
    looks_up = false;
    return rc;
}

static bool no_memory(const void *caller)
{
    bool spared = looks_up || ((uintptr_t)caller >= plan.spare_from && (uintptr_t)caller < plan.spare_to);
    return !spared && fails(KIND_MALLOC, -1, NULL);
}

void *malloc(size_t n)
{
    if (no_memory(__builtin_return_address(0)))
        return NULL;
    return __interceptor_malloc ? __interceptor_malloc(n) : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    if (no_memory(__builtin_return_address(0)))
        return NULL;
    return __interceptor_calloc ? __interceptor_calloc(n, size) : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    if (no_memory(__builtin_return_address(0)))
        return NULL;
    return __interceptor_realloc ? __interceptor_realloc(p, n) : __libc_realloc(p, n);
}
