/* A tuner's log of any bytes: refused or replayed, and the same whether it comes at once or line by line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/tuner_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static int write_down(void *ctx, const struct tuner_replay *r, const char *kind, int trial, struct tuner_setting s,
                      const char *reason)
{
    check(s.hot >= 0 && s.hot < r->space.n_hot && s.cold >= 0 && s.cold < r->space.n_cold);
    buf_printf(ctx, "%s %d %d %d %s\n", kind, trial, s.hot, s.cold, reason);
    return 0;
}

static int feed_lines(struct tuner_replay *r, const char *text, size_t size, struct buf *told)
{
    struct err e;
    int rc = 0;
    for (const char *at = text, *end = text + size; rc == 0 && at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = stop ? (size_t)(stop - at) + 1 : (size_t)(end - at);
        rc = tuner_replay_feed(r, at, len, write_down, told, &e);
        at += len;
    }
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf at_once = BUF_INIT, by_line = BUF_INIT;
    struct tuner_replay one = { 0 }, other = { 0 };
    struct err e = { 0 };
    int rc = tuner_replay_feed(&one, (const char *)data, size, write_down, &at_once, &e);
    check(rc == 0 || (rc < 0 && e.code == rc && e.text[0]));
    check(rc == feed_lines(&other, (const char *)data, size, &by_line));
    check(one.lines == other.lines && strcmp(buf_text(&at_once), buf_text(&by_line)) == 0);
    tuner_replay_done(&one);
    tuner_replay_done(&other);
    buf_done(&at_once);
    buf_done(&by_line);
    return 0;
}
