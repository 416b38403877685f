/* What a Kubernetes API server is asked for, and what its answers come to, from a server that this test is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "bigdl/cluster.h"
#include "live/cluster.h"
#include "tests/integration/harness.h"
#include "tests/integration/sink.h"

static struct sink *serve(const char *body, struct buf *answer, char master[64])
{
    struct sink *sink = sink_new();
    buf_printf(answer, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", strlen(body), body);
    sink_answer(sink, buf_text(answer));
    (void)snprintf(master, 64, "k8s://http://127.0.0.1:%d", sink_port(sink));
    return sink;
}

/* What it says goes on is asked for, but not for ever. */
static void test_pages_are_asked_for_until_they_are_too_many(void **state)
{
    static const char body[] = "{\"metadata\":{\"continue\":\"a+b\"},\"items\":[]}";
    struct cluster_at at = { 0 };
    struct cluster_view v = { 0 };
    struct err e = { 0 };
    AUTO_BUF struct buf answer = BUF_INIT;
    char master[64];
    struct sink *sink = serve(body, &answer, master);
    (void)state;
    assert_int_equal(cluster_at_find(&at, cluster_find(master), master, NULL, NULL, &e), 0);
    assert_int_equal(cluster_look(&v, &at, NULL, 0, &e), -EPROTO);
    if (!strstr(e.text, "answers with lists without an end"))
        fail_msg("%s", e.text);
    AUTO_FREE char *head = sink_head(sink);
    assert_non_null(strstr(head, "/api/v1/nodes?limit=500&continue=a%2Bb "));
    assert_int_equal(sink_requests(sink), 500);
    cluster_at_done(&at);
    sink_free(sink);
}

/* The node has a taint. */
static void test_a_template_opens_nodes(void **state)
{
    static const char body[] =
        "{\"items\":[{\"metadata\":{\"name\":\"n\"},\"spec\":{\"taints\":[{\"key\":\"gpu\",\"effect\":\"NoSchedule\"}]}"
        ","
        "\"status\":{\"allocatable\":{\"cpu\":\"4\",\"memory\":\"8Gi\"},\"conditions\":[{\"type\":\"Ready\",\"status\":"
        "\"True\"}]}}]}";
    static const struct {
        const char *name, *file;
        int rc;
        size_t workers;
    } rows[] = {
        { "no template", NULL, -ENODEV, 0 },
        { "one", "pod.yaml", 0, 1 },
        { "one by its address", "file:pod.yaml", 0, 1 },
        { "one that is elsewhere", "hdfs://h/pod.yaml", -ENODEV, 0 },
        { "no YAML", "bad.yaml", -EINVAL, 0 },
    };
    AUTO_BUF struct buf answer = BUF_INIT;
    char master[64];
    const struct world *w = *state;
    struct sink *sink = serve(body, &answer, master);
    harness_write(w->dir, "pod.yaml", "spec:\n  tolerations:\n  - { key: gpu, operator: Exists }\n");
    harness_write(w->dir, "bad.yaml", "{ spec\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct cluster_said said = { .part_file = rows[i].file };
        struct cluster_at at = { 0 };
        struct cluster_view v = { 0 };
        struct err e = { 0 };
        assert_int_equal(cluster_at_find(&at, cluster_find(master), master, NULL, &said, &e), 0);
        int rc = cluster_look(&v, &at, NULL, 0, &e);
        if (rc != rows[i].rc || v.n_workers != rows[i].workers)
            fail_msg("%s: %d, %zu workers: %s", rows[i].name, rc, v.n_workers, e.text);
        cluster_view_done(&v);
        cluster_at_done(&at);
    }
    sink_free(sink);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_template_opens_nodes),
        TEST(test_pages_are_asked_for_until_they_are_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
