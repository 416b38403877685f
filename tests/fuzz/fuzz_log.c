/* The log parser on any bytes: no crash, sane events, and the same events however the stream is cut. */
#include <stdlib.h>
#include <string.h>

#include "bigdl/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct digest {
    uint64_t hash;
    uint64_t last_end;
};

static void mix(struct digest *d, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        d->hash = (d->hash ^ p[i]) * 1099511628211ULL;
}

static int sink(void *ctx, const struct app_report *ev, uint64_t end)
{
    struct digest *d = ctx;
    if ((unsigned)ev->kind > REPORT_DATA || ev->cores < 0 ||
        (ev->cause && (ev->cause <= log_causes || ev->cause >= log_causes + CAUSE_MAX)) || end <= d->last_end)
        abort();
    if (ev->epoch < 0 || ev->step < 0 || ev->records_done < 0 || ev->records_all < 0 || ev->stamp_ms < -1)
        abort();
    const double numbers[] = { ev->wall_s, ev->records, ev->seconds, ev->loss, ev->learning_rate, ev->value };
    const int64_t whole[] = { (int64_t)ev->kind,  ev->cause ? ev->cause - log_causes : 0,
                              ev->epoch,          ev->step,
                              ev->records_done,   ev->records_all,
                              ev->stamp_ms,       ev->stamp_coarse,
                              ev->closes_epoch,   ev->begins,
                              (int64_t)ev->level, ev->anew,
                              (int64_t)end };
    mix(d, numbers, sizeof numbers);
    mix(d, whole, sizeof whole);
    if ((unsigned)ev->level > LEVEL_ERROR)
        abort();
    mix(d, ev->text, strnlen(ev->text, sizeof ev->text) + 1); /* with its NUL: a read beyond it is a fault */
    d->last_end = end;
    return 0;
}

/* Who passes on only lines with one of the texts leaves out none that counts. */
static void check_texts(const char *text, size_t size)
{
    struct app_report ev;
    struct line_place place = { .level = LEVEL_NONE };
    bool step, found = false;
    const char *needle;
    if (!log_reader.parse(NULL, &place, text, size, &ev) || ev.kind == REPORT_CAUSE)
        return;
    for (size_t i = 0; !found && (needle = log_needle(i, &step)); i++)
        found = memmem(text, size, needle, strlen(needle)) != NULL;
    if (!found)
        abort();
}

static uint64_t digest_of(const char *text, size_t size, size_t piece)
{
    struct digest d = { 1469598103934665603ULL, 0 };
    struct lines s;
    lines_init(&s, &log_reader, 0);
    for (size_t at = 0; at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        if (lines_feed(&s, text + at, n, sink, &d) != 0)
            abort();
    }
    if (lines_end(&s, sink, &d) != 0 || s.offset != size)
        abort();
    mix(&d, s.place.said, strnlen(s.place.said, sizeof s.place.said) + 1);
    lines_done(&s);
    return d.hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    if (size == 0)
        return 0;
    const char *end = memchr(text, '\n', size);
    check_texts(text, end ? (size_t)(end - text) : size);
    uint64_t whole = digest_of(text, size, size);
    size_t odd = 1 + data[size - 1] % (size < 97 ? size : 97);
    if (digest_of(text, size, 1) != whole || digest_of(text, size, odd) != whole)
        abort();
    return 0;
}
