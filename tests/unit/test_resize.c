/* What pods were granted and have of CPUs, by the answers of an API server; and when which answer to a resize is told. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "bigdl/kube_resize.h"

static const struct cluster_asked asked = { .base = "https://h:6443", .space = "trials" };

#define CPUS(n) "{\"requests\":{\"cpu\":\"" n "\"},\"limits\":{\"cpu\":\"" n "\"}}"
#define POD(name, phase, wanted, has, conditions)                                                                      \
    "{\"metadata\":{\"name\":\"" name                                                                                  \
    "\",\"generation\":3},\"spec\":{\"containers\":[{\"name\":\"exec\",\"resources\":" wanted                          \
    "}]},\"status\":{\"phase\":\"" phase "\",\"conditions\":[" conditions                                              \
    "],\"containerStatuses\":[{\"name\":\"exec\",\"restartCount\":0,\"resources\":" has "}]}}"
#define CONDITION(type, reason, seen)                                                                                  \
    "{\"type\":\"" type "\",\"status\":\"True\",\"reason\":\"" reason                                                  \
    "\",\"message\":\"so it is\",\"observedGeneration\":" seen "}"
#define LIST(items) "{\"items\":[" items "]}"

static const struct {
    const char *name, *pods;
    int cores;
    int64_t waited_ms;
    enum resize_verdict want;
    int in_force;
    const char *why; /* begins so */
} cases[] = {
    { "it is in force", LIST(POD("x", "Running", CPUS("1"), CPUS("1"), "")), 1, 0, RESIZE_DONE, 1, "" },
    { "over two",
      LIST(POD("x", "Running", CPUS("500m"), CPUS("500m"), "") "," POD("y", "Running", CPUS("500m"), CPUS("500m"), "")),
      1, 0, RESIZE_DONE, 1, "" },
    { "it was not asked for yet", LIST(POD("x", "Running", CPUS("2"), CPUS("2"), "")), 1, 0, RESIZE_WAITS, 2, "" },
    { "it is under way", LIST(POD("x", "Running", CPUS("1"), CPUS("2"), CONDITION("PodResizeInProgress", "", "3"))), 1,
      30000, RESIZE_WAITS, 2, "" },
    { "the figures agree before the condition goes",
      LIST(POD("x", "Running", CPUS("1"), CPUS("1"), CONDITION("PodResizeInProgress", "", "3"))), 1, 0, RESIZE_WAITS, 1,
      "" },
    { "it is under way for too long",
      LIST(POD("x", "Running", CPUS("1"), CPUS("2"), CONDITION("PodResizeInProgress", "Error", "3"))), 1,
      RESIZE_LATE_MS, RESIZE_INSTEAD, 2, "the cluster has not brought it into force: so it is" },
    { "room is waited for",
      LIST(POD("x", "Running", CPUS("2"), CPUS("1"), CONDITION("PodResizePending", "Deferred", "3"))), 2, 1000,
      RESIZE_WAITS, 1, "" },
    { "not for ever", LIST(POD("x", "Running", CPUS("2"), CPUS("1"), CONDITION("PodResizePending", "Deferred", "3"))),
      2, RESIZE_DEFER_MS, RESIZE_INSTEAD, 1, "the cluster has no room for it now: so it is" },
    { "it can never be had",
      LIST(POD("x", "Running", CPUS("9"), CPUS("1"), CONDITION("PodResizePending", "Infeasible", "3"))), 9, 0,
      RESIZE_INSTEAD, 1, "the cluster can never have it: so it is" },
    { "an earlier request could not be had",
      LIST(POD("x", "Running", CPUS("1"), CPUS("1"), CONDITION("PodResizePending", "Infeasible", "2"))), 1, 0,
      RESIZE_DONE, 1, "" },
    { "one of two has it",
      LIST(POD("x", "Running", CPUS("1"), CPUS("1"), "") "," POD("y", "Running", CPUS("1"), CPUS("2"), "")), 2, 0,
      RESIZE_WAITS, 3, "" },
    { "nobody takes it up", LIST(POD("x", "Running", CPUS("1"), CPUS("2"), "")), 1, RESIZE_LATE_MS, RESIZE_INSTEAD, 2,
      "the cluster has not brought it into force" },
    { "one that is not there yet does not count",
      LIST(POD("x", "Running", CPUS("1"), CPUS("1"), "") "," POD("y", "Pending", CPUS("2"), CPUS("2"), "")), 1, 0,
      RESIZE_DONE, 1, "" },
    { "none runs", LIST(""), 1, 0, RESIZE_WAITS, 0, "" },
};

static void test_what_is_in_force_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct resize_view v = { 0 };
        struct err e = { 0 };
        char why[CLUSTER_WHY_MAX];
        int in_force = -1;
        assert_int_equal(kube_resize.read(&v, 200, cases[i].pods, strlen(cases[i].pods), &e), 0);
        enum resize_verdict got = resize_judge(&v, cases[i].cores, cases[i].waited_ms, &in_force, why);
        resize_view_done(&v);
        if (got != cases[i].want || in_force != cases[i].in_force ||
            strncmp(why, cases[i].why, strlen(cases[i].why)) != 0 || (!*cases[i].why && *why))
            fail_msg("%s: verdict %d, %d cores are in force: %s", cases[i].name, (int)got, in_force, why);
    }
}

static void test_a_pod_is_asked_to_have_less_or_more(void **state)
{
    struct resize_part p = { .name = "x-exec-1", .container = "spark-kubernetes-executor", .limited = true };
    struct cluster_request r = { 0 };
    (void)state;
    assert_true(kube_resize.change(&asked, &p, 1500, &r));
    assert_string_equal(r.method, "PATCH");
    assert_string_equal(buf_text(&r.url), "https://h:6443/api/v1/namespaces/trials/pods/x-exec-1/resize");
    assert_string_equal(buf_text(&r.body),
                        "{\"spec\":{\"containers\":[{\"name\":\"spark-kubernetes-executor\",\"resources\":{"
                        "\"requests\":{\"cpu\":\"1500m\"},\"limits\":{\"cpu\":\"1500m\"}}}]}}");
    cluster_request_done(&r);
    p.limited = false;
    assert_true(kube_resize.change(&asked, &p, 1000, &r));
    assert_string_equal(buf_text(&r.body),
                        "{\"spec\":{\"containers\":[{\"name\":\"spark-kubernetes-executor\",\"resources\":{"
                        "\"requests\":{\"cpu\":\"1000m\"}}}]}}");
    cluster_request_done(&r);
    (void)snprintf(p.name, sizeof p.name, "../../x");
    assert_false(kube_resize.change(&asked, &p, 1000, &r));
}

static const struct {
    const char *name;
    int status;
    const char *text;
    int want;
} answers[] = {
    { "it is taken", 200, "{}", 0 },
    { "there is no such subresource", 404,
      "{\"message\":\"the server could not find the requested resource\",\"details\":{}}", -ENOTSUP },
    { "the pod is gone", 404, "{\"message\":\"not found\",\"details\":{\"name\":\"x\"}}", -EAGAIN },
    { "somebody was faster", 409, "{\"details\":{\"name\":\"x\"}}", -EAGAIN },
    { "a quota is exceeded", 403, "{\"message\":\"exceeded quota\"}", -EACCES },
    { "it is not valid", 422, "{\"message\":\"may not change the class\"}", -EACCES },
    { "the token has expired: it is read anew", 401, "{}", -EPROTO },
    { "the server is not there yet", 503, "", -EPROTO },
};

static void test_answers_to_a_request(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct err e = { 0 };
        int got = kube_resize.answer(answers[i].status, answers[i].text, strlen(answers[i].text), &e);
        if (got != answers[i].want || (got < 0 && !e.text[0]))
            fail_msg("%s: got %d: %s", answers[i].name, got, e.text);
    }
}

static void test_a_server_says_whether_it_resizes(void **state)
{
    static const char yes[] = "{\"resources\":[{\"name\":\"pods\"},{\"name\":\"pods/resize\"}]}";
    static const char no[] = "{\"resources\":[{\"name\":\"pods\"}]}";
    (void)state;
    assert_true(kube_resize.says_so(200, yes, strlen(yes)));
    assert_false(kube_resize.says_so(200, no, strlen(no)));
    assert_false(kube_resize.says_so(403, yes, strlen(yes)));
    assert_false(kube_resize.says_so(200, "<", 1));
}

static void test_cores_are_shared_among_parts(void **state)
{
    struct resize_view v = { .n = 3 };
    (void)state;
    assert_int_equal(resize_share(&v, 4), 1333);
    v.n = 1;
    assert_int_equal(resize_share(&v, 2), 2000);
    v.n = 64;
    assert_int_equal(resize_share(&v, 1), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_in_force_is_told),     cmocka_unit_test(test_a_pod_is_asked_to_have_less_or_more),
        cmocka_unit_test(test_answers_to_a_request),         cmocka_unit_test(test_a_server_says_whether_it_resizes),
        cmocka_unit_test(test_cores_are_shared_among_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
