#include "node/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"

enum {
    TEXT_MAX = 64 << 10,
    MAKE_TRIES = 3,
    REMOVE_TRIES = 50, /* what was killed takes a moment to be gone */
    REMOVE_MS = 10,
};

static const char prefix[] = "pipetune-";

/* --- the kernel's texts ------------------------------------------------------------------------------------------- */

static const char *next_line(const char *line)
{
    line = strchr(line, '\n');
    return line ? line + 1 : NULL;
}

/* Is the word one of the first `len` bytes', between commas, blanks or line ends? */
static bool has_word(const char *list, size_t len, const char *word)
{
    for (size_t i = 0, n = 0; i < len; i += n + 1) {
        n = strcspn(list + i, ", \n:");
        if (n == strlen(word) && strncmp(list + i, word, n) == 0)
            return true;
    }
    return false;
}

const char *cgroup_of(const char *text, size_t *len, bool *unified)
{
    const char *found = NULL;
    for (const char *line = text; line && *line; line = next_line(line)) {
        const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path || path[1] != '/')
            continue;
        bool named = has_word(names + 1, (size_t)(path - names) - 1, "memory"), plain = path == names + 1;
        if (!named && (!plain || found))
            continue;
        found = path + 1;
        *len = strcspn(found, "\n");
        *unified = !named;
        if (named) /* where it is a hierarchy of its own the unified one has it not */
            break;
    }
    return found;
}

bool cgroup_kills_of(const char *text, uint64_t *out)
{
    static const char name[] = "oom_kill ";
    for (const char *line = text; line && *line; line = next_line(line)) {
        const char *digits = line + sizeof name - 1;
        if (strncmp(line, name, sizeof name - 1) != 0 || *digits < '0' || *digits > '9')
            continue;
        *out = strtoull(digits, NULL, 10);
        return true;
    }
    return false;
}

/* --- where -------------------------------------------------------------------------------------------------------- */

static int read_file(struct buf *out, const char *folder, const char *name)
{
    char path[CGROUP_PATH_SIZE + 64];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return io_read_file(out, path, TEXT_MAX, NULL);
}

static int write_file(const char *folder, const char *name, const char *text)
{
    char path[CGROUP_PATH_SIZE + 64];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : io_write_all(fd, text, strlen(text));
}

static bool lists_memory(const char *folder, const char *name)
{
    AUTO_BUF struct buf text = BUF_INIT;
    return read_file(&text, folder, name) == 0 && has_word(buf_text(&text), text.len, "memory");
}

static int find_unified(char folder[CGROUP_PATH_SIZE], size_t root_len, struct err *e)
{
    if (lists_memory(folder, "cgroup.subtree_control"))
        return 0;
    char own[128];
    (void)snprintf(own, sizeof own, "%.127s", folder);
    char *slash = strrchr(folder, '/');
    if (slash && (size_t)(slash - folder) >= root_len && slash[1])
        *slash = '\0';
    if (lists_memory(folder, "cgroup.subtree_control"))
        return 0;
    int rc =
        lists_memory(folder, "cgroup.controllers") ? write_file(folder, "cgroup.subtree_control", "+memory") : -ENOENT;
    if (rc == -ENOENT)
        return err_set(e, rc, "the cgroup '%s' has no memory controller to hand on", own);
    return rc < 0 ? err_sys(e, rc, "cannot have the cgroup '%s' hand its memory controller on", folder) : 0;
}

/* The folder that it is made in. */
static int find_parent(char out[CGROUP_PATH_SIZE], bool *unified, const char *proc, const char *root, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT;
    char self[512];
    size_t len = 0;
    (void)snprintf(self, sizeof self, "%s/self", proc);
    int rc = read_file(&text, self, "cgroup");
    const char *own = rc == 0 ? cgroup_of(buf_text(&text), &len, unified) : NULL;
    if (!own)
        return err_set(e, -ENOENT, "no cgroup hierarchy counts memory here");
    if (strlen(root) + len + 128 > CGROUP_PATH_SIZE)
        return err_set(e, -ENAMETOOLONG, "the path of the cgroup is too long");
    int n = snprintf(out, CGROUP_PATH_SIZE, "%s%s", root, *unified ? "" : "/memory");
    if (len > 1)
        (void)snprintf(out + n, CGROUP_PATH_SIZE - (size_t)n, "%.*s", (int)len, own);
    return *unified ? find_unified(out, (size_t)n, e) : 0;
}

/* --- making and removing ------------------------------------------------------------------------------------------ */

/* What launchers that were killed have left: nobody holds it, and the kernel keeps what something runs in. */
static void sweep(const char *parent)
{
    DIR *d = opendir(parent);
    for (struct dirent *x; d && (x = readdir(d));) {
        if (strncmp(x->d_name, prefix, sizeof prefix - 1) != 0)
            continue;
        AUTO_CLOSE int fd = openat(dirfd(d), x->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            (void)unlinkat(dirfd(d), x->d_name, AT_REMOVEDIR);
    }
    if (d)
        (void)closedir(d);
}

/* One that is being swept is gone a moment later: -ENOENT or -EAGAIN. */
static int make(struct cgroup *c)
{
    if (mkdir(c->path, 0755) < 0 && errno != EEXIST)
        return -errno;
    c->fd = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->fd < 0)
        return -errno;
    if (flock(c->fd, LOCK_EX | LOCK_NB) < 0 || access(c->path, F_OK) < 0) {
        int rc = -errno;
        (void)close(MOVE_FD(c->fd));
        return rc;
    }
    return 0;
}

int cgroup_enter(const struct cgroup *c)
{
    int fd = openat(c->fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = write(fd, "0\n", 2) == 2 ? 0 : -errno;
    (void)close(fd);
    return rc;
}

/* Whether processes of ours may go into it shows when one does. */
static int try_to_enter(const struct cgroup *c)
{
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        _exit(-cgroup_enter(c));
    int how = 0;
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(how) ? -WEXITSTATUS(how) : -EIO;
}

/* Swap is limited where the kernel counts it. */
static int limit_to(const struct cgroup *c, uint64_t limit)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, limit);
    int rc = write_file(c->path, c->unified ? "memory.max" : "memory.limit_in_bytes", text);
    if (rc == 0)
        (void)(c->unified ? write_file(c->path, "memory.swap.max", "0")
                          : write_file(c->path, "memory.memsw.limit_in_bytes", text));
    return rc;
}

int cgroup_open(struct cgroup *out, const char *proc, const char *root, const char *tag, uint64_t limit, struct err *e)
{
    struct cgroup c = CGROUP_NONE;
    char parent[CGROUP_PATH_SIZE];
    int rc = find_parent(parent, &c.unified, proc, root, e);
    if (rc < 0)
        return rc;
    sweep(parent);
    (void)snprintf(c.path, sizeof c.path, "%.*s/%s%s", CGROUP_PATH_SIZE - 128, parent, prefix, tag);
    rc = -EAGAIN;
    for (int i = 0; i < MAKE_TRIES && (rc == -EAGAIN || rc == -ENOENT); i++)
        rc = make(&c);
    if (rc < 0)
        return err_sys(e, rc, "cannot make the cgroup '%s'", c.path);
    rc = try_to_enter(&c);
    if (rc < 0)
        rc = err_sys(e, rc, "cannot go into the cgroup '%s'", c.path);
    else if ((rc = limit_to(&c, limit)) < 0)
        rc = err_sys(e, rc, "cannot limit the memory of the cgroup '%s'", c.path);
    if (rc < 0)
        cgroup_close(&c);
    else
        *out = c;
    return rc;
}

bool cgroup_kills(const struct cgroup *c, uint64_t *out)
{
    AUTO_BUF struct buf text = BUF_INIT;
    return c->fd >= 0 && read_file(&text, c->path, c->unified ? "memory.events" : "memory.oom_control") == 0 &&
           cgroup_kills_of(buf_text(&text), out);
}

void cgroup_close(struct cgroup *c)
{
    static const struct timespec moment = { .tv_nsec = REMOVE_MS * 1000000L };
    if (c->fd < 0)
        return;
    for (int i = 0; i < REMOVE_TRIES && rmdir(c->path) < 0 && errno == EBUSY; i++)
        (void)nanosleep(&moment, NULL);
    (void)close(MOVE_FD(c->fd));
}
