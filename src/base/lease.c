#include "base/lease.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"

enum { GUESTS_MAX = 16 /* of one thing; more are turned away, and come again */ };

struct guest {
    int fd;
    pid_t pid;
    bool uses;
};

/* One that is ours, or that we visit. */
struct lease {
    int n;
    int own;   /* it listens; -1: not ours */
    int visit; /* -1: no guest of it */
    bool uses; /* as a guest: that was said */
    struct guest guests[GUESTS_MAX];
    int n_guests;
};

struct leases {
    char space[LEASE_SPACE_MAX + 1];
    struct lease *v;
    size_t n, cap;
};

struct name {
    struct sockaddr_un address;
    socklen_t len;
};

static struct name name_of(const struct leases *l, int n)
{
    struct name out = { .address.sun_family = AF_UNIX };
    int len = snprintf(out.address.sun_path + 1, sizeof out.address.sun_path - 1, "%s-%d", l->space, n);
    out.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
    return out;
}

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* --- the list --- */

struct leases *leases_new(const char *space)
{
    struct leases *l = calloc(1, sizeof *l);
    if (l)
        (void)snprintf(l->space, sizeof l->space, "%s", space);
    return l;
}

struct leases *leases_of_cpus(void)
{
    const char *space = secure_getenv("PIPETUNE_LEASES");
    return leases_new(space && *space ? space : LEASE_CPUS);
}

static struct lease *find(const struct leases *l, int n)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].n == n)
            return &l->v[i];
    return NULL;
}

static struct lease *find_or_add(struct leases *l, int n)
{
    struct lease *x = find(l, n);
    struct lease *grown = x ? NULL : array_more(l->v, l->n, &l->cap, sizeof *grown);
    if (!grown)
        return x;
    l->v = grown;
    l->v[l->n] = (struct lease){ .n = n, .own = -1, .visit = -1 };
    return &l->v[l->n++];
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static void turn_out(struct lease *x, int guest)
{
    close_fd(&x->guests[guest].fd);
    x->guests[guest] = x->guests[--x->n_guests];
}

static void close_own(struct lease *x)
{
    while (x->n_guests > 0)
        turn_out(x, 0);
    close_fd(&x->own);
}

/* Nothing holds it on the list any more. */
static void forget(struct leases *l, struct lease *x)
{
    if (x->own < 0 && x->visit < 0)
        *x = l->v[--l->n];
}

void leases_free(struct leases *l)
{
    for (size_t i = 0; l && i < l->n; i++) {
        close_own(&l->v[i]);
        close_fd(&l->v[i].visit);
    }
    if (l)
        free(l->v);
    free(l);
}

/* --- having --- */

/* A socket bound to the name; -1: another has it; -2: there are no such names here. */
static int bind_to(const struct leases *l, int n)
{
    struct name name = name_of(l, n);
    AUTO_CLOSE int fd = open_socket();
    if (fd < 0)
        return -2;
    if (bind(fd, (const struct sockaddr *)&name.address, name.len) < 0)
        return errno == EADDRINUSE ? -1 : -2;
    return MOVE_FD(fd);
}

bool leases_hold(struct leases *l, int n)
{
    struct lease *x = find(l, n);
    if (x && x->own >= 0)
        return true;
    int fd = bind_to(l, n);
    if (fd < 0)
        return fd != -1;
    x = find_or_add(l, n);
    if (!x) {
        (void)close(fd);
        return true;
    }
    close_fd(&x->visit);
    x->own = fd;
    (void)listen(fd, GUESTS_MAX); /* where it fails nobody can ask, and the name holds all the same */
    return true;
}

void leases_drop(struct leases *l, int n)
{
    struct lease *x = find(l, n);
    if (!x || x->own < 0)
        return;
    close_own(x);
    forget(l, x);
}

bool leases_is_free(const struct leases *l, int n)
{
    const struct lease *x = find(l, n);
    if (x && x->own >= 0)
        return true;
    int fd = bind_to(l, n);
    if (fd >= 0)
        (void)close(fd);
    return fd != -1;
}

/* --- being a guest --- */

void leases_visit(struct leases *l, int n, bool uses)
{
    struct name name = name_of(l, n);
    struct lease *x = find(l, n);
    if (!x || x->visit < 0) {
        AUTO_CLOSE int fd = open_socket();
        if (fd < 0 || connect(fd, (const struct sockaddr *)&name.address, name.len) < 0 || !(x = find_or_add(l, n)))
            return; /* it is free again, or its holder hears nobody */
        x->visit = MOVE_FD(fd);
        x->uses = false;
    }
    if (uses && !x->uses)
        x->uses = send(x->visit, "u", 1, MSG_NOSIGNAL) == 1;
}

void leases_leave(struct leases *l, int n)
{
    struct lease *x = find(l, n);
    if (!x)
        return;
    close_fd(&x->visit);
    forget(l, x);
}

/* --- who --- */

static struct ucred peer_of(int fd)
{
    struct ucred peer = { .pid = 0 };
    socklen_t len = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        peer.pid = 0;
    return peer;
}

static void say_who(int fd, char who[LEASE_WHO_MAX])
{
    struct ucred peer = fd < 0 ? (struct ucred){ .pid = 0 } : peer_of(fd);
    if (peer.pid > 0)
        (void)snprintf(who, LEASE_WHO_MAX, "process %ld of user %ld", (long)peer.pid, (long)peer.uid);
    else
        (void)snprintf(who, LEASE_WHO_MAX, "another process"); /* of another PID namespace, or it does not listen */
}

static void let_in(struct lease *x)
{
    int fd;
    while ((fd = accept4(x->own, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        if (x->n_guests == GUESTS_MAX)
            (void)close(fd);
        else
            x->guests[x->n_guests++] = (struct guest){ .fd = fd, .pid = peer_of(fd).pid };
    }
}

/* What came on a connection: 1, 0 for its end, -1 for nothing yet. */
static int hear(int fd, char *byte)
{
    ssize_t n = recv(fd, byte, 1, MSG_DONTWAIT);
    return n > 0 ? 1 : n < 0 && (errno == EAGAIN || errno == EINTR) ? -1 : 0;
}

static void hear_guests(struct lease *x)
{
    for (int i = x->n_guests; i-- > 0;) {
        char byte = 0;
        int came = hear(x->guests[i].fd, &byte);
        if (came == 0)
            turn_out(x, i);
        else if (came > 0)
            x->guests[i].uses |= byte == 'u';
    }
}

void leases_poll(struct leases *l)
{
    for (size_t i = l->n; i-- > 0;) {
        struct lease *x = &l->v[i];
        char byte;
        if (x->own >= 0) {
            let_in(x);
            hear_guests(x);
        }
        if (x->visit >= 0 && hear(x->visit, &byte) == 0)
            close_fd(&x->visit);
        forget(l, x);
    }
}

size_t leases_guests(const struct leases *l)
{
    pid_t seen[GUESTS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        for (int k = 0; k < l->v[i].n_guests; k++) {
            size_t at = 0;
            while (at < n && seen[at] != l->v[i].guests[k].pid)
                at++;
            if (at == n && n < GUESTS_MAX)
                seen[n++] = l->v[i].guests[k].pid;
        }
    return n;
}

static bool uses_any(const struct leases *l, pid_t pid)
{
    for (size_t i = 0; i < l->n; i++)
        for (int k = 0; k < l->v[i].n_guests; k++)
            if (l->v[i].guests[k].pid == pid && l->v[i].guests[k].uses)
                return true;
    return false;
}

bool leases_is_awaited(const struct leases *l)
{
    for (size_t i = 0; i < l->n; i++)
        for (int k = 0; k < l->v[i].n_guests; k++)
            if (!uses_any(l, l->v[i].guests[k].pid))
                return true;
    return false;
}

bool leases_is_shared(const struct leases *l, int n, char who[LEASE_WHO_MAX])
{
    const struct lease *x = find(l, n);
    for (int i = 0; x && i < x->n_guests; i++) {
        if (!x->guests[i].uses)
            continue;
        if (who)
            say_who(x->guests[i].fd, who);
        return true;
    }
    return false;
}

void leases_holder(const struct leases *l, int n, char who[LEASE_WHO_MAX])
{
    const struct lease *x = find(l, n);
    say_who(x ? x->visit : -1, who);
}

pid_t leases_holder_pid(const struct leases *l, int n)
{
    const struct lease *x = find(l, n);
    return x && x->visit >= 0 ? peer_of(x->visit).pid : 0;
}

/* --- who looks on ----------------------------------------------------------------------------------------------------- */

/* "NUM: REFS PROTOCOL FLAGS TYPE STATE INODE @SPACE-N": who has one listens, so that his are the lines whose flags say so. */
static bool line_is_holder(const char *line, size_t len, const char *space)
{
    char text[256], path[128] = "";
    unsigned flags;
    int n, end = 0;
    if (len >= sizeof text)
        return false;
    (void)snprintf(text, sizeof text, "%.*s", (int)len, line);
    if (sscanf(text, "%*[^ ] %*s %*s %x %*s %*s %*s %127s", &flags, path) != 2 || !(flags & 0x10000u))
        return false;
    size_t name = strlen(space);
    return *path == '@' && strncmp(path + 1, space, name) == 0 && sscanf(path + 1 + name, "-%d%n", &n, &end) == 1 &&
           !path[1 + name + (size_t)end];
}

int leases_taken_of(const char *text, const char *space)
{
    int n = 0;
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");
        n += line_is_holder(line, len, space);
        line += len + (line[len] == '\n');
    }
    return n;
}

int leases_taken(void)
{
    enum { TEXT_MAX = 64 * 1024 * 1024 };
    AUTO_BUF struct buf text = BUF_INIT;
    const char *space = secure_getenv("PIPETUNE_LEASES");
    struct err e;
    if (io_read_file(&text, "/proc/net/unix", TEXT_MAX, &e) < 0)
        return -1;
    return leases_taken_of(buf_text(&text), space && *space ? space : LEASE_CPUS);
}
