#include "live/relay.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/sock_diag.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "monitoring/udp.h"

enum { LINES_BYTES = 256 << 10 /* that are passed on at once */ };

struct relay {
    const struct relay_ops *ops;
    void *ctx;
    const char *host;
    uv_poll_t poll;
    bool listening, freed;
    struct udp_in udp;
    int64_t stamp_ns; /* the newest that was made for a point without one */
    uint64_t unwritten;
    struct relay_counts told; /* as they were at the last look */
    bool rejecting;
    struct buf lines;
    uint32_t n_lines;
};

/* --- points --- */

static void flush(struct relay *r)
{
    if (r->n_lines > 0 && !r->freed)
        r->ops->lines(r->ctx, r->lines.data, r->lines.len, r->n_lines);
    buf_clear(&r->lines);
    r->n_lines = 0;
}

static bool has_host(const struct line_point *pt)
{
    for (size_t i = 0; i < pt->n_tags; i++)
        if (strcmp(pt->tags[i].key, "host") == 0)
            return true;
    return false;
}

/* Points of one series that come without a time in one datagram must not fall on the same. */
static int64_t stamp(struct relay *r)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail with this clock */
    int64_t now = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
    r->stamp_ns = now > r->stamp_ns ? now : r->stamp_ns + 1;
    return r->stamp_ns;
}

static void on_point(void *ctx, const struct line_point *pt)
{
    struct relay *r = ctx;
    const struct line_tag host = { .key = "host", .value = r->host };
    bool add = *r->host && !has_host(pt);
    int n = line_put_point(&r->lines, pt, &host, add, pt->stamped ? pt->stamp : stamp(r), LINE_NS);
    r->n_lines += n > 0;
    r->unwritten += n < 0;
    r->lines.failed = false; /* what was there before is whole */
    if (r->lines.len >= LINES_BYTES)
        flush(r);
}

/* --- listening --- */

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct relay *r = poll->data;
    struct err e = { 0 };
    (void)events;
    int rc =
        status < 0 ? err_set(&e, status, "udp input: %s", uv_strerror(status)) : udp_in_read(&r->udp, on_point, r, &e);
    flush(r);
    if (rc >= 0 || r->freed)
        return;
    (void)uv_poll_stop(poll); /* relay_look() begins again */
    r->listening = false;
    r->ops->note(r->ctx, e.text);
}

static void listen_now(struct relay *r)
{
    if (!r->listening) /* one more try, if it fails, at the next look */
        r->listening = uv_poll_start(&r->poll, UV_READABLE, on_readable) == 0;
}

int relay_open(struct relay **out, uv_loop_t *loop, const char *address, uint16_t port, const char *host,
               const struct relay_ops *ops, void *ctx, struct err *e)
{
    struct relay *r = calloc(1, sizeof *r);
    if (!r)
        return err_sys(e, -ENOMEM, "udp input");
    *r = (struct relay){ .ops = ops, .ctx = ctx, .host = host };
    int rc = udp_in_open(&r->udp, address, port, e);
    if (rc == 0 && (rc = uv_poll_init(loop, &r->poll, r->udp.fd)) < 0) {
        udp_in_done(&r->udp);
        (void)err_set(e, rc, "cannot watch the udp input: %s", uv_strerror(rc));
    }
    if (rc < 0) {
        free(r);
        return rc;
    }
    r->poll.data = r;
    listen_now(r);
    *out = r;
    return 0;
}

uint16_t relay_port(const struct relay *r)
{
    return r->udp.port;
}

static void on_closed(uv_handle_t *h)
{
    struct relay *r = h->data;
    udp_in_done(&r->udp);
    buf_done(&r->lines);
    free(r);
}

void relay_free(struct relay *r)
{
    if (!r || r->freed)
        return;
    r->freed = true;
    uv_close((uv_handle_t *)&r->poll, on_closed);
}

/* --- what became of it --- */

static uint64_t kernel_drops(int fd)
{
    uint32_t info[SK_MEMINFO_VARS] = { 0 };
    socklen_t len = sizeof info;
    return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) == 0 ? info[SK_MEMINFO_DROPS] : 0;
}

struct relay_counts relay_counts(const struct relay *r)
{
    return (struct relay_counts){
        .points = r->udp.lines, .rejected = r->udp.rejected, .lost = kernel_drops(r->udp.fd), .unwritten = r->unwritten
    };
}

void relay_look(struct relay *r)
{
    char text[384];
    struct relay_counts now = relay_counts(r), before = r->told;
    bool rejecting = now.rejected > before.rejected, begins = rejecting && !r->rejecting;
    r->told = now;
    r->rejecting = rejecting;
    if (begins) {
        (void)snprintf(text, sizeof text, "udp input: %" PRIu64 " rejected so far, the newest: %s", now.rejected,
                       r->udp.why);
        r->ops->note(r->ctx, text);
    }
    if (now.lost > before.lost) {
        (void)snprintf(text, sizeof text, "udp input: %" PRIu64 " datagrams lost so far, as they come too fast",
                       now.lost);
        r->ops->note(r->ctx, text);
    }
    if (now.unwritten > before.unwritten) {
        (void)snprintf(text, sizeof text, "udp input: %" PRIu64 " points left out so far: too long, or out of memory",
                       now.unwritten);
        r->ops->note(r->ctx, text);
    }
    listen_now(r);
}
