/* Where a cluster is asked, by what is given and what the environment says; and that nothing is left behind when memory runs out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "bigdl/cluster.h"
#include "live/cluster.h"
#include "tests/fault.h"

static const struct {
    const char *name, *master, *ui, *want;
} places[] = {
    { "the master says", "spark://h:7077,g:7077", NULL, "http://h:8080 http://g:8080" },
    { "another address", "spark://h:7077", "http://p:9000", "http://p:9000" },
    { "as a page", "spark://h:7077", "http://p:9000/json/", "http://p:9000" },
    { "as a page without an end", "spark://h:7077", "http://p:9000/json", "http://p:9000" },
    { "of YARN", "yarn", "http://rm:8088/", "http://rm:8088" },
};

static void test_where_it_is_asked(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct cluster_at at = { 0 };
        struct err e = { 0 };
        AUTO_BUF struct buf got = BUF_INIT;
        assert_int_equal(cluster_at_find(&at, cluster_find(places[i].master), places[i].master, places[i].ui, NULL, &e),
                         0);
        for (size_t k = 0; k < at.bases.n; k++)
            buf_printf(&got, "%s%s", k ? " " : "", at.bases.v[k]);
        if (strcmp(buf_text(&got), places[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", places[i].name, buf_text(&got), places[i].want);
        cluster_at_done(&at);
    }
}

static void test_yarn_is_found_by_its_folder_alone(void **state)
{
    (void)state;
    char dir[] = "/tmp/test-cluster-XXXXXX", path[64];
    struct cluster_at at = { 0 };
    struct err e = { 0 };
    (void)unsetenv("HADOOP_CONF_DIR");
    assert_int_equal(cluster_at_find(&at, &cluster_yarn, "yarn", NULL, NULL, &e), -EINVAL);
    assert_non_null(strstr(e.text, "HADOOP_CONF_DIR"));
    assert_non_null(mkdtemp(dir));
    (void)setenv("HADOOP_CONF_DIR", dir, 1);
    assert_int_equal(cluster_at_find(&at, &cluster_yarn, "yarn", NULL, NULL, &e), -EINVAL);
    (void)snprintf(path, sizeof path, "%s/yarn-site.xml", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("<property><name>yarn.resourcemanager.hostname</name><value>rm</value></property>", f);
    (void)fclose(f);
    assert_int_equal(cluster_at_find(&at, &cluster_yarn, "yarn", NULL, NULL, &e), 0);
    assert_string_equal(at.bases.v[0], "http://rm:8088");
    cluster_at_done(&at);
    (void)unlink(path);
    (void)rmdir(dir);
    (void)unsetenv("HADOOP_CONF_DIR");
}

static void test_a_token_that_is_not_there_is_told(void **state)
{
    (void)state;
    struct cluster_at at = { 0 };
    struct cluster_view v = { 0 };
    struct err e = { 0 };
    char file[] = "/tmp/test-token-XXXXXX";
    (void)setenv("PIPETUNE_CLUSTER_TOKEN_FILE", "/nowhere/token", 1);
    assert_int_equal(cluster_at_find(&at, &cluster_standalone, "spark://h:1", NULL, NULL, &e), -ENOENT);
    assert_non_null(strstr(e.text, "PIPETUNE_CLUSTER_TOKEN_FILE names '/nowhere/token'"));
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    (void)setenv("PIPETUNE_CLUSTER_TOKEN_FILE", file, 1);
    assert_int_equal(cluster_at_find(&at, &cluster_standalone, "spark://h:1", NULL, NULL, &e), 0);
    assert_int_equal(cluster_look(&v, &at, NULL, 0, &e), -EINVAL);
    assert_int_equal(write(fd, "two words\n", 10), 10);
    assert_int_equal(cluster_look(&v, &at, NULL, 0, &e), -EINVAL);
    assert_int_equal(pwrite(fd, "oneword  \n", 10, 0), 10);
    assert_int_equal(cluster_look(&v, &at, NULL, 0, &e), -EACCES);
    assert_null(strstr(e.text, "oneword"));
    cluster_at_done(&at);
    (void)close(fd);
    (void)unlink(file);
    (void)unsetenv("PIPETUNE_CLUSTER_TOKEN_FILE");
}

/* Nobody listens there: a look fails, by memory or by that, and leaves nothing. */
static void test_a_look_leaves_nothing_whatever_fails(void **state)
{
    (void)state;
    static const struct cluster_key key = { "pt-1", NULL };
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc == -ENOMEM; nth++) {
        struct cluster_at at = { 0 };
        struct cluster_view v = { 0 };
        struct err e = { 0 };
        assert_true(nth < 200);
        fault_arm(FAULT_ALLOC, nth);
        rc = cluster_at_find(&at, &cluster_yarn, "yarn", "http://127.0.0.1:1", NULL, &e);
        if (rc == 0)
            rc = cluster_look(&v, &at, &key, 1, &e);
        fault_disarm();
        assert_true(rc == -ENOMEM || rc == -EHOSTUNREACH);
        assert_true(e.text[0] != '\0');
        cluster_at_done(&at);
    }
    assert_int_equal(rc, -EHOSTUNREACH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where_it_is_asked),
        cmocka_unit_test(test_yarn_is_found_by_its_folder_alone),
        cmocka_unit_test(test_a_token_that_is_not_there_is_told),
        cmocka_unit_test(test_a_look_leaves_nothing_whatever_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
