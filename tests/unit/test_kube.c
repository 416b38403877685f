/* What a Kubernetes API server tells of its nodes, pods and quotas, and what one that lies can do. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "bigdl/kube.h"

static const struct {
    const char *json;
    double want;
} quantities[] = {
    { "\"2\"", 2 },
    { "2", 2 },
    { "\"500m\"", 0.5 },
    { "\"1.5\"", 1.5 },
    { "\"1Gi\"", 1073741824 },
    { "\"1G\"", 1e9 },
    { "\"128974848\"", 128974848 },
    { "\"3e0\"", 3 },
    { "\"1E\"", 1e18 },
    { "\"\"", NAN },
    { "\"-1\"", NAN },
    { "\"nan\"", NAN },
    { "\"inf\"", NAN },
    { "\"0x10\"", NAN },
    { "\"1 Gi\"", NAN },
    { "\"9999999999E\"", NAN },
    { "-3", NAN },
    { "null", NAN },
};

static void test_quantities(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(quantities); i++) {
        AUTO_JSON json_t *j = json_loads(quantities[i].json, JSON_DECODE_ANY, NULL);
        double got = kube_quantity(j), want = quantities[i].want;
        if (isnan(want) ? !isnan(got) : got != want)
            fail_msg("%s: got %g, want %g", quantities[i].json, got, want);
    }
}

#define NODE(name, cpu, memory, ready, spec)                                                                           \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" spec "},\"status\":{\"allocatable\":{\"cpu\":\"" cpu            \
    "\",\"memory\":\"" memory "\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"" ready "\"}]}}"
#define LIST(items) "{\"kind\":\"List\",\"items\":[" items "]}"
#define TAINT(effect) "\"taints\":[{\"key\":\"k\",\"effect\":\"" effect "\"}]"

static const struct {
    const char *name, *nodes;
    int want, cores; /* workers, or -errno; their cores together */
} nodes[] = {
    { "two of them", LIST(NODE("a", "2", "4Gi", "True", "") "," NODE("b", "1", "2Gi", "True", "")), 2, 3 },
    { "a part of a core is none", LIST(NODE("a", "3920m", "4Gi", "True", "")), 1, 3 },
    { "one that is not ready takes no pods",
      LIST(NODE("a", "2", "4Gi", "False", "") "," NODE("b", "1", "2Gi", "True", "")), 1, 1 },
    { "nor one that is cordoned",
      LIST(NODE("a", "2", "4Gi", "True", "\"unschedulable\":true") "," NODE("b", "1", "2Gi", "True", "")), 1, 1 },
    { "nor one with a taint",
      LIST(NODE("a", "2", "4Gi", "True", TAINT("NoSchedule")) "," NODE("b", "1", "2Gi", "True", "")), 1, 1 },
    { "but a preference is no taint", LIST(NODE("a", "2", "4Gi", "True", TAINT("PreferNoSchedule"))), 1, 2 },
    { "none", LIST(""), -ENODEV, 0 },
    { "none that takes pods", LIST(NODE("a", "0", "4Gi", "True", "")), -ENODEV, 0 },
    { "a status", "{\"kind\":\"Status\",\"code\":403}", -EINVAL, 0 },
    { "another server's page", "<html>", -EINVAL, 0 },
    { "items that are none", "{\"items\":[1,null,{},[]]}", -ENODEV, 0 },
    { "the largest figures there are", LIST(NODE("a", "9E", "9E", "True", "")), 1, 4096 },
};

static const struct kube_tolerations none_tolerated;

static void test_nodes_that_take_pods_are_workers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        struct cluster_view v = { 0 };
        struct err e = { 0 };
        int cores = 0, rc = kube_read_nodes(&v, &none_tolerated, nodes[i].nodes, strlen(nodes[i].nodes), &e);
        for (size_t k = 0; k < v.n_workers; k++)
            cores += v.workers[k].free_cores;
        int got = rc < 0 ? rc : (int)v.n_workers;
        cluster_view_done(&v);
        if (got != nodes[i].want || (rc == 0 && cores != nodes[i].cores))
            fail_msg("%s: got %d workers, %d cores: %s", nodes[i].name, got, cores, e.text);
    }
}

#define TEMPLATE(tolerations) "kind: Pod\nspec:\n  containers: [{ name: c }]\n  tolerations:\n" tolerations
#define ONE(key, value, effect)                                                                                        \
    "{\"spec\":{\"taints\":[{\"key\":\"" key "\",\"value\":\"" value "\",\"effect\":\"" effect "\"}]}}"

/* Of a node with one taint, by default gpu=a:NoSchedule. */
static const struct {
    const char *name, *template, *node;
    bool tolerated;
} templates[] = {
    { "none", "kind: Pod\n", ONE("gpu", "a", "NoSchedule"), false },
    { "its key and value", TEMPLATE("  - { key: gpu, value: a, effect: NoSchedule }\n"), ONE("gpu", "a", "NoSchedule"),
      true },
    { "as a list of lines", TEMPLATE("  - key: gpu\n    operator: Equal\n    value: \"a\"\n"),
      ONE("gpu", "a", "NoSchedule"), true },
    { "another value", TEMPLATE("  - { key: gpu, value: b }\n"), ONE("gpu", "a", "NoSchedule"), false },
    { "whatever its value", TEMPLATE("  - { key: gpu, operator: Exists }\n"), ONE("gpu", "a", "NoSchedule"), true },
    { "another effect", TEMPLATE("  - { key: gpu, operator: Exists, effect: NoExecute }\n"),
      ONE("gpu", "a", "NoSchedule"), false },
    { "everything", TEMPLATE("  - operator: Exists\n"), ONE("gpu", "a", "NoExecute"), true },
    { "for a while", TEMPLATE("  - { key: gpu, operator: Exists, tolerationSeconds: 60 }\n"),
      ONE("gpu", "a", "NoExecute"), false },
    { "no key is none", TEMPLATE("  - { value: a }\n"), ONE("", "a", "NoSchedule"), false },
    { "an operator that is not known", TEMPLATE("  - { key: gpu, operator: Gt, value: a }\n"),
      ONE("gpu", "a", "NoSchedule"), false },
    { "a preference needs none", "kind: Pod\n", ONE("gpu", "a", "PreferNoSchedule"), true },
    { "one of two", TEMPLATE("  - { key: gpu, operator: Exists }\n"),
      "{\"spec\":{\"taints\":[{\"key\":\"gpu\",\"effect\":\"NoSchedule\"},{\"key\":\"big\",\"effect\":\"NoSchedule\"}]}"
      "}",
      false },
    { "JSON", "{\"spec\":{\"tolerations\":[{\"key\":\"gpu\",\"operator\":\"Exists\"}]}}", ONE("gpu", "a", "NoSchedule"),
      true },
    { "an alias", "a: &a { key: gpu, operator: Exists }\nspec: { tolerations: [*a] }\n", ONE("gpu", "a", "NoSchedule"),
      true },
    { "tolerations that are no list", "spec: { tolerations: gpu }\n", ONE("gpu", "a", "NoSchedule"), false },
    { "an empty file", "", ONE("gpu", "a", "NoSchedule"), false },
    { "any node without taints", "", "{\"spec\":{}}", true },
};

static void test_a_template_tolerates_taints(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(templates); i++) {
        struct kube_tolerations t = { .n = 0 };
        struct err e = { 0 };
        AUTO_JSON json_t *node = json_loads(templates[i].node, 0, NULL);
        assert_non_null(node);
        if (kube_read_tolerations(&t, templates[i].template, strlen(templates[i].template), &e) < 0)
            fail_msg("%s: %s", templates[i].name, e.text);
        if (kube_tolerates(&t, node) != templates[i].tolerated)
            fail_msg("%s: %s", templates[i].name, templates[i].tolerated ? "is not tolerated" : "is tolerated");
    }
    struct kube_tolerations t;
    struct err e = { 0 };
    static const char bad[] = "spec:\n  tolerations: [\n";
    assert_int_equal(kube_read_tolerations(&t, bad, strlen(bad), &e), -EINVAL);
    if (!strstr(e.text, "the pod's template is no YAML: line 3: "))
        fail_msg("%s", e.text);
    AUTO_BUF struct buf many = BUF_INIT;
    buf_puts(&many, "spec: { tolerations: [");
    for (int i = 0; i <= KUBE_TOLERATIONS_MAX; i++)
        buf_puts(&many, "{ operator: Exists }, ");
    buf_puts(&many, "] }");
    assert_int_equal(kube_read_tolerations(&t, many.data, many.len, &e), -E2BIG);
}

#define PAGE(items, next) "{\"metadata\":{\"continue\":\"" next "\"},\"items\":[" items "]}"

/* All of its pages are one list; whether there is a node at all says the last. */
static void test_a_list_comes_in_pages(void **state)
{
    (void)state;
    static const struct {
        const char *name, *page, *next;
        int want; /* workers by then */
    } pages[] = {
        { "none yet", PAGE(NODE("a", "2", "4Gi", "False", ""), "x1"), "x1", 0 },
        { "one", PAGE(NODE("b", "2", "4Gi", "True", ""), "x2"), "x2", 1 },
        { "the last", LIST(NODE("c", "2", "4Gi", "True", "")), "", 2 },
    };
    struct cluster_view v = { 0 };
    struct err e = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        if (kube_read_nodes(&v, &none_tolerated, pages[i].page, strlen(pages[i].page), &e) < 0 ||
            strcmp(buf_text(&v.next), pages[i].next) != 0 || (int)v.n_workers != pages[i].want)
            fail_msg("%s: %zu workers, then '%s': %s", pages[i].name, v.n_workers, buf_text(&v.next), e.text);
    }
    static int (*const others[])(struct cluster_view * v, const char *text, size_t len,
                                 struct err *e) = { kube_take_pods, kube_read_quotas, kube_read_launches };
    static const char page[] = PAGE("", "y");
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        buf_clear(&v.next);
        assert_int_equal(others[i](&v, page, strlen(page), &e), 0);
        assert_string_equal(buf_text(&v.next), "y");
    }
    cluster_view_done(&v);
    static const char none[] = PAGE("", "");
    assert_int_equal(kube_read_nodes(&v, &none_tolerated, none, strlen(none), &e), -ENODEV);
    cluster_view_done(&v);
}

/* A pod on node a: phase; requests of its container; what its status tells of it. */
#define POD(phase, cpu, status)                                                                                        \
    "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"a\",\"containers\":[{\"name\":\"c\",\"resources\":{"      \
    "\"requests\":{\"cpu\":\"" cpu "\",\"memory\":\"1Gi\"}}}]},\"status\":{\"phase\":\"" phase                         \
    "\",\"containerStatuses\":[{\"name\":\"c\"" status "}]}}"
#define GRANTED(cpu) ",\"allocatedResources\":{\"cpu\":\"" cpu "\"}"
#define IN_FORCE(cpu) ",\"resources\":{\"requests\":{\"cpu\":\"" cpu "\"}}"

static const struct {
    const char *name, *pods;
    int cores; /* left of 3.92 */
    double gb; /* of 8 */
} taken[] = {
    { "nobody", LIST(""), 3, 8 },
    { "one", LIST(POD("Running", "1", "")), 2, 7 },
    { "parts of cores add up", LIST(POD("Running", "1500m", "") "," POD("Pending", "1400m", "")), 1, 6 },
    { "what is over has nothing", LIST(POD("Succeeded", "1", "") "," POD("Failed", "1", "")), 3, 8 },
    { "what is being narrowed still has it", LIST(POD("Running", "1", GRANTED("1") IN_FORCE("3"))), 0, 7 },
    { "what is to be widened has it already", LIST(POD("Running", "3", GRANTED("1") IN_FORCE("1"))), 0, 7 },
    { "more than there is", LIST(POD("Running", "64", "")), 0, 7 },
};

static void test_what_pods_have_is_not_free(void **state)
{
    static const char one[] = LIST(NODE("a", "3920m", "8Gi", "True", ""));
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        struct cluster_view v = { 0 };
        struct err e = { 0 };
        assert_int_equal(kube_read_nodes(&v, &none_tolerated, one, strlen(one), &e), 0);
        assert_int_equal(kube_take_pods(&v, taken[i].pods, strlen(taken[i].pods), &e), 0);
        int cores = v.workers[0].free_cores;
        double gb = v.workers[0].free_gb;
        cluster_view_done(&v);
        if (cores != taken[i].cores || gb != taken[i].gb)
            fail_msg("%s: %d cores and %g GiB are left", taken[i].name, cores, gb);
    }
}

/* An executor of launch `tag`: its phase, slots and what else its status tells. */
#define EXECUTOR(name, tag, phase, slots, more)                                                                        \
    "{\"metadata\":{\"name\":\"" name "\",\"labels\":{\"" KUBE_LABEL "\":\"" tag                                       \
    "\",\"spark-app-selector\":\"spark-1\"}},"                                                                         \
    "\"spec\":{\"nodeName\":\"a\",\"containers\":[{\"name\":\"c\",\"env\":[{\"name\":\"SPARK_EXECUTOR_CORES\","        \
    "\"value\":\"" slots "\"}],\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]},\"status\":{\"phase\":\"" phase         \
    "\"" more "}}"

static const struct {
    const char *name, *pods;
    enum cluster_state state;
    int parts, cores, kills;
    const char *why;
} launches[] = {
    { "two executors, one of which was narrowed",
      LIST(EXECUTOR("x", "pt-1", "Running", "2", "") "," EXECUTOR("y", "pt-1", "Running", "2", "")), CLUSTER_RUNS, 2, 4,
      0, "" },
    { "one that waits",
      LIST(EXECUTOR("x", "pt-1", "Pending", "2",
                    ",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"message\":\"0/2 nodes are "
                    "available\"}]")),
      CLUSTER_WAITS, 0, 0, 0, "0/2 nodes are available" },
    { "one whose image cannot be had",
      LIST(EXECUTOR("x", "pt-1", "Pending", "2",
                    ",\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":\"ImagePullBackOff\",\"message\":\"no "
                    "image\"}}}]")),
      CLUSTER_WAITS, 0, 0, 0, "no image" },
    { "one that was killed, and its successor",
      LIST(EXECUTOR(
          "x", "pt-1", "Failed", "1",
          ",\"containerStatuses\":[{\"state\":{\"terminated\":{\"reason\":\"OOMKilled\"}}}]") "," EXECUTOR("y", "pt-1",
                                                                                                           "Running",
                                                                                                           "1", "")),
      CLUSTER_RUNS, 1, 1, 1, "" },
    { "what is over", LIST(EXECUTOR("x", "pt-1", "Succeeded", "1", "")), CLUSTER_OVER, 0, 0, 0, "" },
    { "others between",
      LIST("{}," EXECUTOR("x", "pt-1", "Running", "1", "") "," EXECUTOR("y", "pt-2", "Running", "9", "")), CLUSTER_RUNS,
      1, 1, 0, "" },
};

static void test_launches_of_ours(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(launches); i++) {
        struct cluster_view v = { 0 };
        struct err e = { 0 };
        assert_int_equal(kube_read_launches(&v, launches[i].pods, strlen(launches[i].pods), &e), 0);
        const struct cluster_app *a = cluster_app_of(&v, "pt-1");
        if (!a || a->state != launches[i].state || a->parts != launches[i].parts || a->cores != launches[i].cores ||
            a->kills != launches[i].kills || strcmp(a->why, launches[i].why) != 0 || strcmp(a->id, "spark-1") != 0)
            fail_msg("%s: state %d, %d parts, %d cores, %d kills: %s", launches[i].name, a ? (int)a->state : -1,
                     a ? a->parts : -1, a ? a->cores : -1, a ? a->kills : -1, a ? a->why : "");
        cluster_view_done(&v);
    }
}

#define QUOTA(name, spec, hard, used)                                                                                  \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" spec "},\"status\":{\"hard\":{" hard "},\"used\":{" used "}}}"

static const struct {
    const char *name, *quotas;
    bool limited;
    int cores;
    const char *limit;
} quotas[] = {
    { "none", LIST(""), false, 0, "" },
    { "of CPUs", LIST(QUOTA("q", "", "\"requests.cpu\":\"4\"", "\"requests.cpu\":\"1500m\"")), true, 2, "q" },
    { "the tightest", LIST(QUOTA("q", "", "\"cpu\":\"4\"", "") "," QUOTA("r", "", "\"limits.cpu\":\"2\"", "")), true, 2,
      "r" },
    { "used up", LIST(QUOTA("q", "", "\"cpu\":\"4\"", "\"cpu\":\"5\"")), true, 0, "q" },
    { "of pods, some left", LIST(QUOTA("q", "", "\"pods\":\"4\"", "\"pods\":\"3\"")), false, 0, "" },
    { "of pods, none left", LIST(QUOTA("q", "", "\"pods\":\"4\"", "\"pods\":\"4\"")), true, 0, "q" },
    { "of what has nothing to do with us", LIST(QUOTA("q", "", "\"configmaps\":\"1\"", "")), false, 0, "" },
    { "of other pods", LIST(QUOTA("q", "\"scopes\":[\"Terminating\"]", "\"cpu\":\"1\"", "")), false, 0, "" },
    { "of such pods", LIST(QUOTA("q", "\"scopes\":[\"NotTerminating\"]", "\"cpu\":\"1\"", "")), true, 1, "q" },
    { "that was not reckoned yet", LIST("{\"metadata\":{\"name\":\"q\"},\"spec\":{\"hard\":{\"cpu\":\"1\"}}}"), false,
      0, "" },
};

static void test_the_tightest_quota_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(quotas); i++) {
        struct cluster_view v = { 0 };
        struct err e = { 0 };
        assert_int_equal(kube_read_quotas(&v, quotas[i].quotas, strlen(quotas[i].quotas), &e), 0);
        if (v.limited != quotas[i].limited || (v.limited && v.left_cores != quotas[i].cores) ||
            strcmp(v.limit, quotas[i].limit) != 0)
            fail_msg("%s: %d cores are left by '%s'", quotas[i].name, v.left_cores, v.limit);
        cluster_view_done(&v);
    }
}

static void test_a_refusal_says_why_in_one_line(void **state)
{
    static const char status[] = "{\"kind\":\"Status\",\"message\":\"exceeded\\nquota\",\"code\":403}";
    static const char gone[] =
        "{\"message\":\"pods \\\"x\\\" not found\",\"details\":{\"name\":\"x\",\"kind\":\"pods\"}}";
    static const char unknown[] = "{\"message\":\"the server could not find the requested resource\",\"details\":{}}";
    char why[KUBE_WHY_MAX];
    (void)state;
    kube_refusal(403, status, strlen(status), why);
    assert_string_equal(why, "403: exceeded quota");
    kube_refusal(502, "<html>", 6, why);
    assert_string_equal(why, "502");
    assert_true(kube_is_gone(gone, strlen(gone)));
    assert_false(kube_is_gone(unknown, strlen(unknown)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantities),
        cmocka_unit_test(test_nodes_that_take_pods_are_workers),
        cmocka_unit_test(test_a_template_tolerates_taints),
        cmocka_unit_test(test_a_list_comes_in_pages),
        cmocka_unit_test(test_what_pods_have_is_not_free),
        cmocka_unit_test(test_launches_of_ours),
        cmocka_unit_test(test_the_tightest_quota_counts),
        cmocka_unit_test(test_a_refusal_says_why_in_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
