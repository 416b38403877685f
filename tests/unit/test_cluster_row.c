/* What clusters say they have and how our applications fare there, row by row; what one that lies can do; and what of it follows for the next
 * launch. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "bigdl/cluster.h"

static const struct cluster_key keys[] = { { "pt-1a-1-1", "app-1" }, { "pt-1a-2-1", NULL } };

static struct cluster_asked asked(const char *base)
{
    return (struct cluster_asked){ .base = base, .user = "me", .keys = keys, .n_keys = ARRAY_LEN(keys) };
}

/* One answer as the i-th of a look. */
static int take(const struct cluster_row *row, struct cluster_view *v, size_t i, int status, const char *text,
                struct err *e)
{
    struct cluster_asked a = asked("http://h:1");
    return row->answer(v, &a, i, status, text, strlen(text), e);
}

/* --- which row it is --------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *master, *row, *file, *bases; /* row NULL: none; bases NULL: -EINVAL */
} masters[] = {
    { "local[*]", NULL, NULL, NULL },
    { "k8s://https://h:6443", "kubernetes", NULL, "https://h:6443" },
    { "k8s://h:6443", "kubernetes", NULL, "https://h:6443" },
    { "k8s://http://h:8080/", "kubernetes", NULL, "http://h:8080" },
    { "k8s://https://", "kubernetes", NULL, NULL },
    { "k8s://https://h:6443/path", "kubernetes", NULL, NULL },
    { "yarnish", NULL, NULL, NULL },
    { "spark://h:7077", "standalone", NULL, "http://h:8080" },
    { "spark://h:7077,g:7077", "standalone", NULL, "http://h:8080 http://g:8080" },
    { "spark://[::1]:7077", "standalone", NULL, "http://[::1]:8080" },
    { "spark://", "standalone", NULL, NULL },
    { "spark://h:7077,", "standalone", NULL, NULL },
    { "spark://[::1", "standalone", NULL, NULL },
    { "yarn", "yarn", NULL, NULL },
    { "yarn", "yarn", "<configuration/>", NULL },
    { "yarn", "yarn",
      "<configuration><property><name>yarn.resourcemanager.hostname</name><value> rm1 "
      "</value></property></configuration>",
      "http://rm1:8088" },
    { "yarn", "yarn",
      "<property><name>yarn.resourcemanager.hostname</name><value>rm1</value></property>\n<property>\n  "
      "<name>yarn.resourcemanager.webapp.address</name>\n  <value>rm2:9000</value>\n</property>",
      "http://rm2:9000" },
    { "yarn", "yarn",
      "<!-- <property><name>yarn.resourcemanager.hostname</name><value>old</value></property> -->"
      "<property><name>yarn.resourcemanager.hostname</name><value>new</value></property>",
      "http://new:8088" },
    { "yarn", "yarn",
      "<property><name>yarn.resourcemanager.ha.rm-ids</name><value>a, b</value></property>"
      "<property><name>yarn.resourcemanager.hostname.a</name><value>h1</value></property>"
      "<property><name>yarn.resourcemanager.webapp.https.address.b</name><value>h2:8091</value></property>"
      "<property><name>yarn.http.policy</name><value>HTTPS_ONLY</value></property>",
      "https://h1:8090 https://h2:8091" },
    { "yarn", "yarn",
      "<property><name>yarn.resourcemanager.webapp.address</name><value>${yarn.resourcemanager.hostname}:8088</value>"
      "</property><property><name>yarn.resourcemanager.hostname</name><value>rm</value></property>",
      "http://rm:8088" },
    { "yarn", "yarn", "<property><name>yarn.resourcemanager.hostname</name><value>cut", NULL },
};

static void test_a_master_names_its_row_and_its_addresses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(masters); i++) {
        AUTO_STRV struct strv got = STRV_INIT;
        AUTO_BUF struct buf all = BUF_INIT;
        struct err e = { 0 };
        const struct cluster_row *row = cluster_find(masters[i].master);
        const char *name = row ? row->name : NULL;
        if (!name != !masters[i].row || (name && strcmp(name, masters[i].row) != 0))
            fail_msg("%s: row %s", masters[i].master, name ? name : "none");
        int rc = row ? row->bases(masters[i].master, masters[i].file, &got, &e) : -EINVAL;
        for (size_t k = 0; k < got.n; k++)
            buf_printf(&all, "%s%s", k ? " " : "", got.v[k]);
        if (rc != (masters[i].bases ? 0 : -EINVAL) ||
            (masters[i].bases && strcmp(buf_text(&all), masters[i].bases) != 0))
            fail_msg("%s, case %zu: %d, got '%s', want '%s'; %s", masters[i].master, i, rc, buf_text(&all),
                     masters[i].bases ? masters[i].bases : "none", e.text);
    }
}

/* --- a standalone master's page ----------------------------------------------------------------------------------------------- */

/* cores, free, MiB, free */
#define W(state, cores, free, memory, left)                                                                            \
    "{\"host\":\"w\",\"state\":\"" state "\",\"cores\":" cores ",\"coresfree\":" free ",\"memory\":" memory            \
    ",\"memoryfree\":" left ",\"resources\":{}}"
#define PAGE(workers) "{\"url\":\"spark://h:7077\",\"workers\":[" workers "],\"aliveworkers\":2,\"status\":\"ALIVE\"}"
#define HUGE "9223372036854775807"

/* All cores of a room, and the most memory of a worker. */
static int cores_in(const struct layout_room *r, double *out_gb)
{
    int cores = 0;
    *out_gb = 0;
    for (int i = 0; i < r->n_workers; i++) {
        cores += r->workers[i].count * r->workers[i].cores;
        *out_gb = r->workers[i].memory_gb > *out_gb ? r->workers[i].memory_gb : *out_gb;
    }
    return cores;
}

static const struct {
    const char *name, *page;
    bool all;
    int want; /* cores, or -errno */
    double memory_gb;
} pages[] = {
    { "one worker of four", PAGE(W("ALIVE", "4", "4", "8192", "8192")), false, 4, 8 },
    { "two of one", PAGE(W("ALIVE", "1", "1", "2048", "2048") "," W("ALIVE", "1", "1", "2048", "2048")), false, 2, 2 },
    { "uneven ones", PAGE(W("ALIVE", "3", "3", "2048", "2048") "," W("ALIVE", "1", "1", "4096", "4096")), false, 4, 4 },
    { "a dead one has nothing", PAGE(W("DEAD", "8", "8", "9", "9") "," W("ALIVE", "1", "1", "1024", "1024")), false, 1,
      1 },
    { "what others have taken is not free", PAGE(W("ALIVE", "4", "1", "8192", "3072")), false, 1, 3 },
    { "but it is there", PAGE(W("ALIVE", "4", "1", "8192", "3072")), true, 4, 8 },
    { "all is taken", PAGE(W("ALIVE", "4", "0", "8192", "0")), false, 0, 0 },
    { "nobody lives", PAGE(W("DEAD", "4", "4", "8192", "8192")), false, -ENODEV, 0 },
    { "no workers", PAGE(""), false, -ENODEV, 0 },
    { "another server's page", "<html>", false, -EINVAL, 0 },
    { "another JSON", "{\"workers\":3}", false, -EINVAL, 0 },
    { "one that stands by", "{\"workers\":[],\"status\":\"STANDBY\"}", false, -EINVAL, 0 },
    { "negative figures", PAGE(W("ALIVE", "-4", "-4", "-8", "-8")), false, -ENODEV, 0 },
    { "the largest figures there are", PAGE(W("ALIVE", HUGE, HUGE, HUGE, HUGE)), false, 4096, 9007199254740992.0 },
};

static void test_a_page_says_what_is_free(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        struct cluster_view v = { 0 };
        struct layout_room r;
        struct err e = { 0 };
        double gb = 0;
        int rc = take(&cluster_standalone, &v, 0, 200, pages[i].page, &e);
        cluster_room(&v, NULL, 0, pages[i].all, &r);
        int got = rc < 0 ? rc : cores_in(&r, &gb);
        if (got != pages[i].want || (rc == 0 && gb != pages[i].memory_gb))
            fail_msg("%s: got %d cores, %g GiB: %s", pages[i].name, got, gb, e.text);
        cluster_view_done(&v);
    }
}

/* More cores than an int counts, each worker's own as many as are believed; and no more workers than there may be. */
static void test_a_thousand_lies_do_not_overflow(void **state)
{
    (void)state;
    AUTO_BUF struct buf page = BUF_INIT;
    struct cluster_view v = { 0 };
    struct cluster_asked a = asked("http://h:8080");
    struct err e = { 0 };
    struct layout_room r;
    buf_puts(&page, "{\"workers\":[");
    for (int i = 0; i < 4000; i++)
        buf_printf(&page, "%s" W("ALIVE", "1000000", "%d", "1024", "1024"), i ? "," : "", 1 + i);
    buf_puts(&page, "]}");
    assert_int_equal(cluster_standalone.answer(&v, &a, 0, 200, buf_text(&page), page.len, &e), 0);
    cluster_room(&v, NULL, 0, false, &r);
    assert_int_equal(r.n_workers, LAYOUT_WORKERS_MAX);
    assert_true(layout_most(&r, 4096, 0, 0, 0) <= 4096);
    cluster_view_done(&v);
}

static void test_an_application_is_known_by_its_id(void **state)
{
    (void)state;
    struct cluster_view v = { 0 };
    struct err e = { 0 };
    assert_int_equal(
        take(&cluster_standalone, &v, 0, 200,
             "{\"workers\":[" W("ALIVE", "4", "2", "8192",
                                "8192") "],\"activeapps\":["
                                        "{\"id\":\"app-9\",\"cores\":1,\"state\":\"RUNNING\"},"
                                        "{\"id\":\"app-1\",\"cores\":2,\"state\":\"RUNNING\"}],\"completedapps\":[]}",
             &e),
        0);
    assert_int_equal(v.n_apps, 1);
    const struct cluster_app *app = cluster_app_of(&v, "pt-1a-1-1");
    assert_non_null(app);
    assert_int_equal(app->cores, 2);
    assert_int_equal(app->parts, -1);
    assert_int_equal(app->state, CLUSTER_RUNS);
    assert_null(cluster_app_of(&v, "pt-1a-2-1"));
    struct cluster_request r = { 0 };
    struct cluster_asked a = asked("http://h:8080");
    assert_true(cluster_standalone.end(&a, app, &r));
    assert_string_equal(r.method, "POST");
    assert_string_equal(buf_text(&r.url), "http://h:8080/app/kill/");
    assert_string_equal(buf_text(&r.body), "terminate=true&id=app-1");
    cluster_request_done(&r);
    cluster_view_done(&v);
}

/* --- YARN --------------------------------------------------------------------------------------------------------------------- */

#define NODE(state, avail_mb, used_mb, avail, used)                                                                    \
    "{\"state\":\"" state "\",\"nodeHostName\":\"n\",\"availMemoryMB\":" avail_mb ",\"usedMemoryMB\":" used_mb         \
    ",\"availableVirtualCores\":" avail ",\"usedVirtualCores\":" used "}"
#define NODES(list) "{\"nodes\":{\"node\":[" list "]}}"
#define STEP_OF(mib)                                                                                                   \
    "{\"property\":{\"key\":\"yarn.scheduler.minimum-allocation-mb\",\"value\":\"" mib "\",\"resource\":\"x\"}}"

static const struct {
    const char *name;
    size_t i;
    int status;
    const char *text;
    int rc;
    size_t workers, apps;
    double step_gb;
} yarns[] = {
    { "two nodes", 0, 200, NODES(NODE("RUNNING", "1024", "3072", "1", "3") "," NODE("RUNNING", "1", "2", "3", "4")), 0,
      2, 0, 1 },
    { "a lost one", 0, 200, NODES(NODE("LOST", "1024", "0", "1", "0") "," NODE("RUNNING", "1", "2", "3", "4")), 0, 1, 0,
      1 },
    { "none", 0, 200, "{\"nodes\":null}", -ENODEV, 0, 0, 1 },
    { "another server", 0, 200, "{}", -EINVAL, 0, 0, 1 },
    { "a page", 0, 200, "<html>This is standby RM", -EINVAL, 0, 0, 1 },
    { "who are you", 0, 401, "", -EACCES, 0, 0, 1 },
    { "you may not", 0, 403, "", -EACCES, 0, 0, 1 },
    { "a redirection of one that stands by", 0, 307, "", -EPROTO, 0, 0, 1 },
    { "no applications", 1, 200, "{\"apps\":null}", 0, 0, 0, 1 },
    { "no applications, another way", 1, 200, "{\"apps\":{}}", 0, 0, 0, 1 },
    { "ours among others", 1, 200,
      "{\"apps\":{\"app\":[{\"id\":\"application_1_1\",\"applicationTags\":\"x,pt-1a-2-1\",\"state\":\"RUNNING\"},"
      "{\"id\":\"application_1_2\",\"applicationTags\":\"pt-1a-2-11\",\"state\":\"RUNNING\"}]}}",
      0, 0, 1, 1 },
    { "steps of a quarter", 2, 200, STEP_OF("256"), 0, 0, 0, 0.25 },
    { "steps that are none", 2, 200, STEP_OF("0"), 0, 0, 0, 1 },
    { "steps that nobody may see", 2, 403, "", 0, 0, 0, 1 },
    { "steps, no JSON", 2, 200, "<configuration>", 0, 0, 0, 1 },
};

static void test_a_resource_manager_says_what_is_free(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(yarns); i++) {
        struct cluster_view v = { 0 };
        struct err e = { 0 };
        cluster_yarn.begin(&v);
        int rc = take(&cluster_yarn, &v, yarns[i].i, yarns[i].status, yarns[i].text, &e);
        if (rc != yarns[i].rc || v.n_workers != yarns[i].workers || v.n_apps != yarns[i].apps ||
            v.takes.step_gb != yarns[i].step_gb || (rc < 0 && !e.text[0]))
            fail_msg("%s: got %d, %zu nodes, %zu applications, steps of %g: %s", yarns[i].name, rc, v.n_workers,
                     v.n_apps, v.takes.step_gb, e.text);
        cluster_view_done(&v);
    }
}

/* A queue beside another one, below the root or below a queue; it may have 8 of 10 cores, and has 3, a user of it 4. */
#define SOME(gb, cores) "{\"memory\":" gb "000,\"vCores\":" cores "}"
#define QUEUE(path, name, factor, user, used)                                                                          \
    "{\"queuePath\":\"" path "\",\"queueName\":\"" name "\",\"userLimitFactor\":" factor ",\"resourcesUsed\":" SOME(   \
        "3",                                                                                                           \
        "3") ",\"capacities\":{"                                                                                       \
             "\"queueCapacitiesByPartition\":[{"                                                                       \
             "\"partitionName\":\"gpu\","                                                                              \
             "\"effectiveMaxResource\":" SOME("1", "1") "},{\"partitionName\":\"\",\"effectiveMinResource\":" SOME(    \
                 "4", "4") ",\"effectiveMaxResource\""                                                                 \
                           ":" SOME("8", "8") "}]},"                                                                   \
                                              "\"users\":{"                                                            \
                                              "\"user\":[{"                                                            \
                                              "\"username\":"                                                          \
                                              "\"" user "\","                                                          \
                                              "\"resourcesUse"                                                         \
                                              "d\":" SOME("2", used) "}]}}"
#define QUEUES(list) "{\"scheduler\":{\"schedulerInfo\":{\"queueName\":\"root\",\"queues\":{\"queue\":[" list "]}}}}"

static const struct {
    const char *name, *space;
    int status;
    const char *text;
    int left; /* -1: nothing binds */
} queues[] = {
    { "a queue may grow so far", "default", 200, QUEUES(QUEUE("root.default", "default", "10", "me", "3")), 5 },
    { "a user has so many times its share", "default", 200, QUEUES(QUEUE("root.default", "default", "1.5", "me", "3")),
      3 },
    { "one who has nothing yet, all of that", "default", 200, QUEUES(QUEUE("root.default", "default", "1", "you", "3")),
      4 },
    { "users are not bound", "default", 200, QUEUES(QUEUE("root.default", "default", "-1", "me", "3")), 5 },
    { "more than there is", "default", 200, QUEUES(QUEUE("root.default", "default", "1", "me", "6")), 0 },
    { "by its path", "root.a.b", 200, QUEUES(QUEUE("root.a.b", "b", "-1", "me", "3")), 5 },
    { "by its path without the root", "a.b", 200, QUEUES(QUEUE("root.a.b", "b", "-1", "me", "3")), 5 },
    { "by its path, where none is told", "root.a.b", 200, QUEUES(QUEUE("", "b", "-1", "me", "3")), 5 },
    { "below another one", "b", 200,
      QUEUES("{\"queueName\":\"a\",\"queues\":{\"queue\":[" QUEUE("root.a.b", "b", "-1", "me", "3") "]}}"), 5 },
    { "another one", "c", 200, QUEUES(QUEUE("root.default", "default", "1", "me", "3")), -1 },
    { "another scheduler", "default", 200, "{\"scheduler\":{\"schedulerInfo\":{\"type\":\"fairScheduler\"}}}", -1 },
    { "one that nobody may see", "default", 403, "", -1 },
    { "no JSON", "default", 200, "<html>", -1 },
};

static void test_a_queue_of_yarn_leaves_no_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(queues); i++) {
        struct cluster_view v = { 0 };
        struct err e = { 0 };
        struct cluster_asked a = asked("http://h:1");
        a.space = queues[i].space;
        int rc = cluster_yarn.answer(&v, &a, 3, queues[i].status, queues[i].text, strlen(queues[i].text), &e);
        int left = v.limited ? v.left_cores : -1;
        if (rc != 0 || left != queues[i].left || (v.limited && strcmp(v.limit, queues[i].space) != 0))
            fail_msg("%s: got %d, %d cores are left by '%s', want %d", queues[i].name, rc, left, v.limit,
                     queues[i].left);
        cluster_view_done(&v);
    }
}

static void test_why_yarn_has_not_begun_it(void **state)
{
    (void)state;
    struct cluster_view v = { 0 };
    struct err e = { 0 };
    char why[CLUSTER_WHY_MAX];
    cluster_yarn.begin(&v);
    assert_int_equal(take(&cluster_yarn, &v, 0, 200, NODES(NODE("RUNNING", "6144", "0", "3", "1")), &e), 0);
    assert_int_equal(
        take(&cluster_yarn, &v, 1, 200,
             "{\"apps\":{\"app\":[{\"id\":\"application_1_1\",\"applicationTags\":\"PT-1A-1-1\",\"state\":\"ACCEPTED\","
             "\"runningContainers\":0,\"allocatedVCores\":0,\"diagnostics\":\"  not  yet\\u0001 activated\\nmore\"}]}}",
             &e),
        0);
    const struct cluster_app *app = cluster_app_of(&v, "pt-1a-1-1");
    assert_non_null(app);
    assert_int_equal(app->state, CLUSTER_WAITS);
    struct cluster_launch l = { keys[0], { 1, 1, 1 }, false };
    cluster_why(&v, &l, why);
    assert_string_equal(why, "not yet activated; 3 of its 4 cores are free, at most 3 on a worker, with 6.0 GiB");
    struct cluster_request r = { 0 };
    struct cluster_asked a = asked("http://rm:8088");
    assert_true(cluster_yarn.end(&a, app, &r));
    assert_string_equal(r.method, "PUT");
    assert_string_equal(buf_text(&r.url), "http://rm:8088/ws/v1/cluster/apps/application_1_1/state?user.name=me");
    assert_string_equal(buf_text(&r.body), "{\"state\":\"KILLED\"}");
    cluster_request_done(&r);
    assert_true(cluster_yarn.ask(&a, &v, 1, &r));
    assert_string_equal(buf_text(&r.url), "http://rm:8088/ws/v1/cluster/apps?applicationTags=pt-1a-1-1,pt-1a-2-1");
    cluster_request_done(&r);
    assert_true(cluster_yarn.ask(&a, &v, 3, &r));
    assert_string_equal(buf_text(&r.url), "http://rm:8088/ws/v1/cluster/scheduler");
    cluster_request_done(&r);
    assert_false(cluster_yarn.ask(&a, &v, 4, &r));
    cluster_view_done(&v);
}

/* --- what follows ------------------------------------------------------------------------------------------------------------- */

/* Workers of 2, 1 and 1 cores with so many free; an application of ours that has some; what was launched. */
static const struct {
    const char *name;
    int free[3];
    int parts, cores; /* of the application of the first launch; -2: it is not shown */
    struct cluster_launch l[2];
    size_t n;
    int want; /* cores that one more can have */
} rooms[] = {
    { "nothing runs", { 2, 1, 1 }, -2, -2, { { .granted = false } }, 0, 4 },
    { "one of two cores is not shown yet: it goes where most is",
      { 2, 1, 1 },
      -2,
      -2,
      { { { "pt-1a-1-1", NULL }, { 1, 2, 1 }, false } },
      1,
      2 },
    { "two of one core are not shown yet",
      { 2, 1, 1 },
      -2,
      -2,
      { { { "pt-1a-1-1", NULL }, { 2, 1, 1 }, false } },
      1,
      2 },
    { "it is shown with all it asked for",
      { 0, 1, 1 },
      -1,
      2,
      { { { "pt-1a-1-1", "app-1" }, { 1, 2, 1 }, false } },
      1,
      2 },
    { "it is shown with one of two", { 1, 1, 1 }, -1, 1, { { { "pt-1a-1-1", "app-1" }, { 2, 1, 1 }, false } }, 1, 2 },
    { "it is shown with one part of two",
      { 1, 1, 1 },
      1,
      5,
      { { { "pt-1a-1-1", "app-1" }, { 2, 1, 1 }, false } },
      1,
      2 },
    { "it says itself that it has all, and cannot be known there",
      { 0, 1, 1 },
      -2,
      -2,
      { { { "pt-1a-1-1", NULL }, { 1, 2, 1 }, true } },
      1,
      2 },
    { "it says so, and is not shown yet",
      { 2, 1, 1 },
      -2,
      -2,
      { { { "pt-1a-1-1", "app-1" }, { 1, 2, 1 }, true } },
      1,
      2 },
    { "two that are not shown",
      { 2, 1, 1 },
      -2,
      -2,
      { { { "pt-1a-1-1", NULL }, { 1, 2, 1 }, false }, { { "pt-1a-2-1", NULL }, { 1, 1, 1 }, false } },
      2,
      1 },
    { "more than there is", { 0, 0, 1 }, -2, -2, { { { "pt-1a-1-1", NULL }, { 4, 1, 1 }, false } }, 1, 0 },
};

static void test_what_was_promised_is_not_free(void **state)
{
    (void)state;
    static const int cores[] = { 2, 1, 1 };
    for (size_t i = 0; i < ARRAY_LEN(rooms); i++) {
        struct cluster_view v = { 0 };
        struct layout_room r;
        double gb;
        for (size_t k = 0; k < ARRAY_LEN(cores); k++) {
            struct cluster_worker *w = cluster_add_worker(&v);
            *w = (struct cluster_worker){ "h", cores[k], rooms[i].free[k], 4, 4, 0 };
        }
        if (rooms[i].parts > -2)
            *cluster_add_app(&v) = (struct cluster_app){
                .tag = "pt-1a-1-1", .state = CLUSTER_RUNS, .parts = rooms[i].parts, .cores = rooms[i].cores
            };
        cluster_room(&v, rooms[i].l, rooms[i].n, false, &r);
        int got = cores_in(&r, &gb);
        if (got != rooms[i].want || layout_most(&r, 8, 0, 0, 1) != rooms[i].want)
            fail_msg("%s: got %d cores, want %d", rooms[i].name, got, rooms[i].want);
        cluster_view_done(&v);
    }
}

/* On YARN each application takes its master's container, and executors more than their heap, in steps. */
static void test_what_is_taken_beside_counts(void **state)
{
    (void)state;
    struct cluster_view v = { 0 };
    struct layout_room r;
    struct err e = { 0 };
    cluster_yarn.begin(&v);
    assert_int_equal(take(&cluster_yarn, &v, 0, 200, NODES(NODE("RUNNING", "6144", "0", "4", "0")), &e), 0);
    cluster_room(&v, NULL, 0, false, &r);
    assert_int_equal(layout_most(&r, 8, 0, 0, 1), 3); /* a core and 1 GiB are the master's */
    assert_int_equal(layout_divide(&r, 3, 3, 0, 1), 0);
    assert_int_equal(layout_divide(&r, 2, 2, 0, 1), 2); /* an executor of 1 GiB takes two */
    assert_true(layout_gives_gb(&r.takes, 2) == 1.625);
    struct cluster_launch l = { keys[0], { 1, 1, 1 }, false };
    cluster_room(&v, &l, 1, false, &r);
    assert_int_equal(layout_most(&r, 8, 0, 0, 1), 1);
    cluster_view_done(&v);
}

static void test_a_quota_leaves_no_more(void **state)
{
    (void)state;
    struct cluster_view v = { .limited = true, .left_cores = 3, .left_gb = 100 };
    struct layout_room r;
    double gb;
    for (int i = 0; i < 3; i++)
        *cluster_add_worker(&v) = (struct cluster_worker){ "h", 2, 2, 4, 4, 0 };
    cluster_room(&v, NULL, 0, false, &r);
    assert_int_equal(cores_in(&r, &gb), 3);
    cluster_room(&v, NULL, 0, true, &r);
    assert_int_equal(cores_in(&r, &gb), 6);
    cluster_view_done(&v);
}

/* --- Kubernetes ---------------------------------------------------------------------------------------------------------------- */

static void test_a_look_at_kubernetes_asks_for_all(void **state)
{
    static const char *const want[] = {
        "https://h:6443/api/v1/nodes?limit=500",
        "https://h:6443/api/v1/pods?fieldSelector=status.phase!%3DSucceeded,status.phase!%3DFailed&limit=500",
        "https://h:6443/api/v1/namespaces/trials/resourcequotas?limit=500",
        "https://h:6443/api/v1/namespaces/trials/pods?labelSelector=pipetune-launch&limit=500",
    };
    const struct cluster_asked a = { .base = "https://h:6443", .space = "trials" };
    const struct cluster_app app = { .tag = "pt-1" };
    struct cluster_view v = { 0 };
    struct cluster_request r = { 0 };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_true(cluster_kubernetes.ask(&a, &v, i, &r));
        assert_string_equal(buf_text(&r.url), want[i]);
        cluster_request_done(&r);
    }
    assert_false(cluster_kubernetes.ask(&a, &v, ARRAY_LEN(want), &r));
    buf_puts(&v.next, "eyJ2+/=&");
    assert_true(cluster_kubernetes.ask(&a, &v, 0, &r));
    assert_string_equal(buf_text(&r.url), "https://h:6443/api/v1/nodes?limit=500&continue=eyJ2%2B%2F%3D%26");
    cluster_request_done(&r);
    cluster_view_done(&v);
    assert_true(cluster_kubernetes.end(&a, &app, &r));
    assert_string_equal(r.method, "DELETE");
    assert_string_equal(buf_text(&r.url),
                        "https://h:6443/api/v1/namespaces/trials/pods?labelSelector=pipetune-launch%3Dpt-1");
    cluster_request_done(&r);
}

static void test_a_role_that_may_not_look_is_told_how_it_might(void **state)
{
    struct cluster_view v = { 0 };
    struct err e = { 0 };
    (void)state;
    assert_int_equal(take(&cluster_kubernetes, &v, 0, 403, "{\"message\":\"nodes is forbidden\"}", &e), -EACCES);
    assert_string_equal(e.text, "the Kubernetes API server does not let us list nodes (403: nodes is forbidden): "
                                "conf/kubernetes has a role that may");
    assert_int_equal(take(&cluster_kubernetes, &v, 0, 500, "", &e), -EPROTO);
}

/* --- a launch ----------------------------------------------------------------------------------------------------------------- */

static void test_what_spark_submit_is_told(void **state)
{
    (void)state;
    static const char *const want[] = {
        "--total-executor-cores 4 --executor-cores 2",
        "--num-executors 2 --executor-cores 2 --conf spark.yarn.tags=pt-1",
        ("--num-executors 2 --executor-cores 2 --conf spark.cores.max=4 --conf spark.kubernetes.executor.limit.cores=2 "
         "--conf spark.kubernetes.executor.label.pipetune-launch=pt-1"),
    };
    for (size_t i = 0; cluster_rows[i]; i++) {
        AUTO_STRV struct strv argv = STRV_INIT;
        AUTO_BUF struct buf text = BUF_INIT;
        const struct app_launch l = { .slots = 4, .parts = 2, .launch = "pt-1" };
        cluster_rows[i]->submit(&l, 2, &argv);
        for (size_t k = 0; k < argv.n; k++)
            buf_printf(&text, "%s%s", k ? " " : "", argv.v[k]);
        assert_string_equal(buf_text(&text), want[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_master_names_its_row_and_its_addresses),
        cmocka_unit_test(test_a_page_says_what_is_free),
        cmocka_unit_test(test_a_thousand_lies_do_not_overflow),
        cmocka_unit_test(test_an_application_is_known_by_its_id),
        cmocka_unit_test(test_a_resource_manager_says_what_is_free),
        cmocka_unit_test(test_a_queue_of_yarn_leaves_no_more),
        cmocka_unit_test(test_why_yarn_has_not_begun_it),
        cmocka_unit_test(test_what_was_promised_is_not_free),
        cmocka_unit_test(test_what_is_taken_beside_counts),
        cmocka_unit_test(test_a_quota_leaves_no_more),
        cmocka_unit_test(test_a_look_at_kubernetes_asks_for_all),
        cmocka_unit_test(test_a_role_that_may_not_look_is_told_how_it_might),
        cmocka_unit_test(test_what_spark_submit_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
