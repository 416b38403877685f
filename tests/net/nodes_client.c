/* live/nodes and live/remote as a program, for tests/net/test-nodes: nodes_client HELPER CONFIG TAG. Obeys lines on stdin, prints one line for
 * each thing it is told:
 *
 *   apply CORES SLOTS     -> applied ID cores=N processes=N [WHY]
 *   launch NODE PROGRAM   -> ready, heard TEXT, gone EXIT    or refused WHY; it gets its go at once
 *   release | quit
 *                         -> changed cores=N processes=N          note TEXT          ended peak_kb=N */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

#include "base/io.h"
#include "base/strv.h"
#include "live/node_words.h"
#include "live/nodes.h"
#include "live/nodes_cfg.h"
#include "live/remote.h"

static const struct app_workers spark = { "org.apache.spark.", "ExecutorBackend", "--cores" };

struct client {
    struct nodes *nodes;
    struct remotes *remotes;
    struct remote *launch;
    const char *tag;
    uint64_t id;
    uv_pipe_t in;
    char line[256];
    size_t len;
};

static void on_applied(void *ctx, const struct desired_want *want, const struct desired_have *have, const char *why)
{
    (void)ctx;
    printf("applied %d cores=%d processes=%d %s\n", (int)want->id, have->cores, have->processes, why ? why : "");
}

static void on_changed(void *ctx, const char *tag, const struct desired_have *have)
{
    (void)ctx, (void)tag;
    printf("changed cores=%d processes=%d\n", have->cores, have->processes);
}

static void on_sampled(void *ctx, const char *tag, const struct nodes_sample *s)
{
    (void)ctx, (void)tag;
    printf("sampled node=%zu\n", s->node);
}

static void on_note(void *ctx, const char *text)
{
    (void)ctx;
    printf("note %s\n", text);
}

static void on_ready(void *ctx, uint64_t id, const struct launcher_ready *r)
{
    struct client *c = ctx;
    (void)id, (void)r;
    printf("ready\n");
    (void)remote_go(c->launch, NULL);
}

static void on_refused(void *ctx, uint64_t id, bool busy, const char *why)
{
    (void)ctx, (void)id, (void)busy;
    printf("refused %s\n", why);
}

static void on_gone(void *ctx, uint64_t id)
{
    struct client *c = ctx;
    (void)id;
    printf("gone %s\n", remote_exit(c->launch));
    remote_free(c->launch, true);
    c->launch = NULL;
}

static void on_heard(void *ctx, uint64_t id, uint64_t at, const char *bytes, size_t n)
{
    struct client *c = ctx;
    (void)id;
    printf("heard %.*s", (int)n, bytes);
    remote_accounted(c->launch, at + n);
}

static void launch(struct client *c, size_t node, const char *program)
{
    AUTO_STRV struct strv steps = STRV_INIT;
    char tag[80]; /* another one: what carries the tag of a launch that ends is ended with it */
    const struct node_launch what = { .tag = tag, .attempt = 1, .steps = &steps };
    struct err e = { 0 };
    (void)snprintf(tag, sizeof tag, "%.60s-l", c->tag);
    strv_add(&steps, "1");
    strv_add(&steps, program);
    if (c->launch || !nodes_peer(c->nodes, node))
        return;
    if (remote_start(&c->launch, c->remotes, node, 1, &what, &e) < 0)
        printf("refused %s\n", e.text);
}

static void quit(struct client *c)
{
    remotes_close(c->remotes);
    c->remotes = NULL;
    nodes_close(c->nodes);
    c->nodes = NULL;
    if (!uv_is_closing((uv_handle_t *)&c->in))
        uv_close((uv_handle_t *)&c->in, NULL);
}

static void obey(struct client *c)
{
    struct desired_want want = { .tag = c->tag };
    struct err e = { 0 };
    size_t node = 0;
    char program[200];
    if (sscanf(c->line, "launch %zu %199s", &node, program) == 2) {
        launch(c, node, program);
    } else if (sscanf(c->line, "apply %d %d", &want.cores, &want.slots) == 2) {
        want.id = ++c->id;
        if (nodes_apply(c->nodes, &want, &e) < 0)
            printf("refused %s\n", e.text);
    } else if (strcmp(c->line, "release") == 0) {
        nodes_release(c->nodes, c->tag);
    } else {
        quit(c);
    }
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct client *c = h->data;
    (void)suggested;
    *buf = uv_buf_init(c->line + c->len, 1);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct client *c = s->data;
    if (n < 0) {
        quit(c);
    } else if (n == 1 && *buf->base == '\n') {
        c->line[c->len] = '\0';
        c->len = 0;
        obey(c);
    } else if (n == 1 && c->len + 1 < sizeof c->line) {
        c->len++;
    }
}

static int read_config(const char *path, struct node_cfg **cfg, size_t *n, struct err *e)
{
    struct buf text = BUF_INIT;
    struct json_doc doc = { 0 };
    int rc = io_read_file(&text, path, 1 << 20, e);
    if (rc == 0)
        rc = json_doc_parse(&doc, path, buf_text(&text), text.len, e);
    if (rc == 0)
        rc = nodes_cfg_read(cfg, n, &doc, e);
    json_doc_done(&doc);
    buf_done(&text);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct remote_ops remote = { { on_ready, on_refused, on_gone }, on_heard, NULL, false };
    static const struct nodes_ops ops = { on_applied, on_changed, on_sampled, NULL, on_note };
    struct client c = { 0 };
    struct node_cfg *cfg = NULL;
    size_t n = 0;
    struct err e = { 0 };
    if (argc != 4)
        return 2;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    c.tag = argv[3];
    c.in.data = &c;
    int rc = read_config(argv[2], &cfg, &n, &e);
    if (rc == 0)
        rc = nodes_open(&c.nodes, uv_default_loop(), cfg, n, argv[1], &spark, &ops, &c, &e);
    nodes_cfg_free(cfg, n);
    if (rc == 0)
        rc = remotes_open(&c.remotes, c.nodes, &remote, &c, &e);
    if (rc < 0) {
        printf("refused %s\n", e.text);
        return 2;
    }
    if (uv_pipe_init(uv_default_loop(), &c.in, 0) < 0 || uv_pipe_open(&c.in, 0) < 0 ||
        uv_read_start((uv_stream_t *)&c.in, on_alloc, on_read) < 0)
        return 1;
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    struct rusage use;
    (void)getrusage(RUSAGE_SELF, &use); /* cannot fail for oneself */
    printf("ended peak_kb=%ld\n", use.ru_maxrss);
    return 0;
}
