/* A helper's line of any bytes: an answer or an event whose parts are sane, or an error on one plain line. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "live/node_words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect_plain(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f)
            abort();
}

static void expect_told(int rc, const struct err *e)
{
    if (rc >= 0)
        return;
    if (!e->text[0] || e->code != rc)
        abort();
    expect_plain(e->text);
}

static void use_hello(const struct node_words *w)
{
    struct err e = { 0 };
    struct node_hello h;
    int rc = node_hello_read(&h, w, &e);
    expect_told(rc, &e);
    if (rc < 0)
        return;
    expect_plain(h.version);
    expect_plain(h.host);
    expect_plain(h.sees);
    if (h.protocol == NODE_PROTOCOL && (h.n_cpus < 1 || h.n_cpus > DESIRED_MAX_CPUS))
        abort();
    for (int i = 0; i < h.n_cpus; i++)
        if (h.cpus[i] < 0 || h.cpus[i] >= DESIRED_MAX_CPUS)
            abort();
    node_hello_done(&h);
}

static void use_found(const struct node_words *w)
{
    struct err e = { 0 };
    struct desired_seen f;
    int rc = node_seen_read(&f, w, &e);
    expect_told(rc, &e);
    if (rc == 0 && (f.processes < 0 || f.threads < 0 || f.slots < 0 || f.cpus < 0 || f.cpus > DESIRED_MAX_CPUS ||
                    !(f.frequency_khz >= 0) || !(f.power_cap_w >= 0)))
        abort();
}

static void use_reading(const struct node_words *w)
{
    struct err e = { 0 };
    struct nodes_reading got;
    int rc = node_reading_read(&got, w, &e);
    expect_told(rc, &e);
    if (rc < 0)
        return;
    expect_plain(got.r.why);
    if (!meter_are_names(got.meter) || !node_words_has_meter(got.meter, got.meter, strlen(got.meter)))
        abort();
    if (!isfinite(got.r.from_ms) || !isfinite(got.r.to_ms) || isfinite(got.r.value) != (got.r.state == METER_OK) ||
        got.r.value < 0 || got.r.error < 0)
        abort();
}

static void use_sample(const struct node_words *w)
{
    struct err e = { 0 };
    struct nodes_sample got;
    struct feature_list list;
    if (feature_list_read(&list, "new,node-store-misses,node-stores", &e) < 0)
        abort();
    int rc = node_sample_read(&got, &list, w, &e);
    expect_told(rc, &e);
    for (int i = 0; rc == 0 && i < FEATURES; i++)
        if (isfinite(got.v[i].value) != (got.v[i].state <= READING_MULTIPLEXED))
            abort();
}

static void use_launch(const struct node_words *w)
{
    struct err e = { 0 };
    struct node_launch_told t;
    struct buf bytes = BUF_INIT;
    uint64_t at = 0;
    int rc = node_launch_read(&t, w, &e);
    expect_told(rc, &e);
    if (rc == 0) {
        expect_plain(t.boot_id);
        expect_plain(t.why);
        expect_plain(t.exit);
    }
    rc = node_bytes_read(&at, &bytes, w, &e);
    if (rc < 0 && bytes.len > 0)
        abort();
    expect_told(rc, &e);
    buf_done(&bytes);
    char why[128];
    rc = node_said_read(&bytes, why, w, &e);
    if (rc < 0 && bytes.len > 0)
        abort();
    expect_told(rc, &e);
    expect_plain(why);
    buf_done(&bytes);
}

/* Answers about files. */
static void use_files(const struct node_words *w)
{
    struct err e = { 0 };
    bool there = false;
    int rc = node_there_read(&there, w, &e);
    expect_told(rc, &e);
    static const char *const keys[] = { "data", "files" };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct buf bytes = BUF_INIT;
        rc = node_file_read(&bytes, w, keys[i], &e);
        if (rc < 0 && bytes.len > 0)
            abort();
        expect_told(rc, &e);
        buf_done(&bytes);
    }
}

static void use_refused(const struct node_words *w)
{
    struct node_refused r;
    for (size_t at = 0, before = 0; node_refused_next(&r, w, &at); before = at) {
        expect_plain(r.why);
        if (at <= before || !meter_are_names(r.meter))
            abort();
    }
}

/* With every size of the place that it goes to. */
static void shorten(const char *text, size_t len)
{
    for (size_t size = 4; size < 40; size++) {
        char out[40];
        memset(out, 0x7f, sizeof out);
        (void)node_words_plain(out, size, text, len);
        if (!memchr(out, '\0', size) || (size < sizeof out && out[size] != 0x7f))
            abort();
        expect_plain(out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = { 0 };
    struct node_words w;
    int rc = node_words_read(&w, (const char *)data, size, &e);
    expect_told(rc, &e);
    shorten((const char *)data, size);
    if (rc < 0)
        return 0;
    expect_plain(w.error);
    if (w.kind == NODE_CHANGED && !node_words_is_tag(w.tag))
        abort();
    if (w.kind == NODE_ANSWER && !w.ok && !w.error[0])
        abort();
    use_hello(&w);
    use_found(&w);
    use_reading(&w);
    use_sample(&w);
    use_refused(&w);
    use_launch(&w);
    use_files(&w);
    node_words_done(&w);
    return 0;
}
