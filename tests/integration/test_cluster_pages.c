/* Lists of a Kubernetes API server that come in pages, from a server that this test is. */
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

/* What it says goes on is asked for, but not for ever. */
static void test_pages_are_asked_for_until_they_are_too_many(void **state)
{
    static const char body[] = "{\"metadata\":{\"continue\":\"a+b\"},\"items\":[]}";
    struct cluster_at at = { 0 };
    struct cluster_view v = { 0 };
    struct err e = { 0 };
    AUTO_BUF struct buf answer = BUF_INIT;
    struct sink *sink = sink_new();
    char master[64];
    (void)state;
    buf_printf(&answer, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", sizeof body - 1, body);
    sink_answer(sink, buf_text(&answer));
    (void)snprintf(master, sizeof master, "k8s://http://127.0.0.1:%d", sink_port(sink));
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_pages_are_asked_for_until_they_are_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
