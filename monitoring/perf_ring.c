#include "monitoring/perf_ring.h"

#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

/* What PERF_SAMPLE_IP | PERF_SAMPLE_TID makes of a sample; a mapping begins with the same two numbers. */
struct sample {
    uint64_t ip;
    uint32_t pid, tid;
};

static struct perf_event_mmap_page *page_of(const struct perf_ring *r)
{
    return r->memory;
}

/* Records may go on at the ring's beginning. */
static void copy(const struct perf_ring *r, uint64_t from, void *out, size_t n)
{
    size_t at = from & (r->size - 1), first = r->size - at < n ? r->size - at : n;
    memcpy(out, r->data + at, first);
    memcpy((char *)out + first, r->data, n - first);
}

void perf_ring_begin(struct perf_ring *r)
{
    r->data = (const char *)r->memory + sysconf(_SC_PAGESIZE);
    r->to = __atomic_load_n(&page_of(r)->data_head, __ATOMIC_ACQUIRE);
    r->at = page_of(r)->data_tail;
}

void perf_ring_end(struct perf_ring *r)
{
    __atomic_store_n(&page_of(r)->data_tail, r->to, __ATOMIC_RELEASE);
}

static bool fits(const struct perf_ring *r, const struct perf_event_header *h)
{
    return h->size >= sizeof *h && h->size <= r->to - r->at;
}

/* False: nothing that anybody asked for. */
static bool understand(const struct perf_ring *r, const struct perf_event_header *h, struct perf_ring_record *out)
{
    struct sample s = { 0 };
    uint64_t body = r->at + sizeof *h;
    size_t n = h->size - sizeof *h;
    *out = (struct perf_ring_record){ 0 };
    switch (h->type) {
    case PERF_RECORD_SAMPLE:
        if (n < sizeof s)
            return false;
        copy(r, body, &s, sizeof s);
        *out = (struct perf_ring_record){ .kind = PERF_RING_SAMPLE, .pid = (pid_t)s.pid, .address = s.ip };
        return true;
    case PERF_RECORD_MMAP:
        if (n < sizeof s.pid)
            return false;
        copy(r, body, &s.pid, sizeof s.pid);
        *out = (struct perf_ring_record){ .kind = PERF_RING_MAPPED, .pid = (pid_t)s.pid };
        return true;
    case PERF_RECORD_LOST: out->kind = PERF_RING_LOST; return true;
    default: return false;
    }
}

bool perf_ring_next(struct perf_ring *r, struct perf_ring_record *out)
{
    while (r->to - r->at >= sizeof(struct perf_event_header) && r->to - r->at <= r->size) {
        struct perf_event_header h;
        copy(r, r->at, &h, sizeof h);
        if (!fits(r, &h))
            break;
        bool asked = understand(r, &h, out);
        r->at += h.size;
        if (asked)
            return true;
    }
    bool whole = r->at == r->to;
    r->at = r->to;
    *out = (struct perf_ring_record){ .kind = PERF_RING_LOST };
    return !whole;
}
