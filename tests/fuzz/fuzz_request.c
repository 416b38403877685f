/* A line of any bytes as the node helper hears it: a request whose members are within their bounds, or an error on one plain line that
 * can be answered as JSON. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"
#include "monitoring/meter.h"
#include "node/members.h"
#include "node/meters.h"
#include "node/request.h"
#include "text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* What is wrong goes back over the wire: it must read back. */
static void check_told(int rc, const struct err *e)
{
    if (rc == 0)
        return;
    check(rc == -EINVAL && e->code == rc && e->text[0]);
    struct buf b = BUF_INIT;
    struct err why = { 0 };
    static struct wire w;
    buf_puts(&b, "{\"id\":null,\"ok\":false,\"error\":");
    wire_put_text(&b, e->text);
    buf_puts(&b, "}");
    check(!b.failed && wire_parse(&w, b.data, b.len, &why) == 0 && wire_find(&w, "error"));
    buf_done(&b);
}

static void check_bounds(const struct request *r)
{
    check(r->id >= 0 && r->protocol >= 0 && r->wish.cores >= 0 && r->wish.cores <= WISH_CORES_MAX);
    check(r->wish.slots >= 0 && r->wish.slots <= WISH_CORES_MAX);
    check(r->wish.given.n >= 0 && r->wish.given.n <= CPUS_MAX);
    for (size_t i = 0; i < LIMIT_ROWS; i++)
        check(r->wish.limits[i] >= 0 && r->wish.limits[i] <= 1e9);
    check(r->interval_ms == 0 ||
          (r->interval_ms >= SAMPLER_INTERVAL_MIN_MS && r->interval_ms <= SAMPLER_INTERVAL_MAX_MS));
    check(sampler_scope_find(sampler_scope_name(r->scope)) == (int)r->scope);
    check(r->idle_w >= 0 && r->idle_w <= METERS_WATTS_MAX && r->cpu_w >= 0 && r->cpu_w <= METERS_WATTS_MAX);
    check(r->max_w >= 0 && r->max_w <= METERS_WATTS_MAX);
    check(!r->tag || members_tag_is_valid(r->tag));
    check(!r->meters || meter_are_names(r->meters));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > WIRE_LINE_MAX)
        return 0;
    char *line = fuzz_text(data, size);
    static struct wire w;
    static struct request r;
    struct err e = { 0 };
    int rc = wire_parse(&w, line, size, &e);
    check_told(rc, &e);
    if (rc == 0) {
        rc = request_read(&r, &w, &e);
        check_told(rc, &e);
        check(r.id >= 0);
    }
    if (rc == 0) {
        check(r.verb && (r.has & REQUEST_BIT(REQUEST_ID)));
        check_bounds(&r);
        check_told(request_needs(&r, (UINT64_C(1) << REQUEST_MEMBERS) - 1, &e), &e);
    }
    free(line);
    return 0;
}
