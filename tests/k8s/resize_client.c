/* Asks a cluster to bring a launch's CPUs into force, as a driver does: resize_client PROPERTIES MASTER TAG CORES…
 * One line for each: "cores N of M, WAITED ms: WHY". */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "bigdl/cluster.h"
#include "bigdl/properties.h"
#include "live/resizer.h"

struct client {
    struct resizer *r;
    uv_timer_t tick;
    char **cores;
    const char *tag;
    int64_t since_ms;
};

static void ask(struct client *c)
{
    struct desired_want want = { .tag = c->tag, .cores = (int)strtol(c->cores[0], NULL, 10), .slots = 2 };
    c->since_ms = clock_ms();
    if (resizer_apply(c->r, &want, NULL) < 0)
        abort();
}

static void on_applied(void *ctx, const struct desired_want *want, const struct desired_have *have, const char *why)
{
    struct client *c = ctx;
    printf("cores %d of %d, %d ms: %s\n", have->cores, want->cores, (int)(clock_ms() - c->since_ms),
           why ? why : "in force");
    (void)fflush(stdout);
    if (*++c->cores) {
        ask(c);
        return;
    }
    uv_close((uv_handle_t *)&c->tick, NULL);
    resizer_close(c->r);
    c->r = NULL;
}

static void on_changed(void *ctx, const char *tag, const struct desired_have *have)
{
    (void)ctx;
    printf("changed %s: cores %d\n", tag, have->cores);
}

static void on_note(void *ctx, const char *text)
{
    (void)ctx;
    printf("note: %s\n", text);
}

static void on_tick(uv_timer_t *t)
{
    struct client *c = t->data;
    if (c->r)
        resizer_tick(c->r);
}

/* As live/plan finds it. */
static int find(struct cluster_at *out, const char *file, const char *master, struct err *e)
{
    const struct cluster_row *row = cluster_find(master);
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_BUF struct buf space = BUF_INIT;
    AUTO_BUF struct buf token = BUF_INIT;
    AUTO_BUF struct buf ca = BUF_INIT;
    if (!row)
        return err_set(e, -EINVAL, "'%s' is no cluster", master);
    int rc = io_read_file(&text, file, 1 << 20, e);
    if (rc < 0)
        return rc;
    (void)properties_find(buf_text(&text), row->properties.space, &space);
    (void)properties_find(buf_text(&text), row->properties.token_file, &token);
    (void)properties_find(buf_text(&text), row->properties.ca_file, &ca);
    const struct cluster_said said = { .space = buf_text(&space),
                                       .token_file = buf_text(&token),
                                       .ca_file = buf_text(&ca) };
    return cluster_at_find(out, row, master, NULL, &said, e);
}

int main(int argc, char **argv)
{
    static const struct resizer_ops ops = { on_applied, on_changed, on_note };
    struct cluster_at at = { 0 };
    struct err e = { 0 };
    uv_loop_t loop;
    if (argc < 5 || find(&at, argv[1], argv[2], &e) < 0) {
        (void)fprintf(stderr, "resize_client: %s\n", argc < 5 ? "PROPERTIES MASTER TAG CORES…" : e.text);
        return 2;
    }
    struct client c = { .cores = argv + 4, .tag = argv[3] };
    (void)uv_loop_init(&loop);
    (void)uv_timer_init(&loop, &c.tick);
    c.tick.data = &c;
    if (resizer_open(&c.r, &loop, &at, &ops, &c, &e) < 0)
        return 2;
    ask(&c);
    (void)uv_timer_start(&c.tick, on_tick, 0, 100);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
    cluster_at_done(&at);
    return 0;
}
