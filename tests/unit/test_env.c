/* What is found on this machine: here set-up's class archive, which is only to be used where it cannot do harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/own.h"
#include "live/env.h"

static void put(const char *path, const char *text)
{
    AUTO_FREE char *dir = io_dirname(path);
    assert_int_equal(io_mkdirs(dir, NULL), 0);
    assert_int_equal(io_write_atomic(path, text, strlen(text), 0755, NULL), 0);
}

/* In a folder of its own, two Javas and what set-up makes with the first. */
static int begin(void **state)
{
    char dir[] = "/tmp/pipetune-env-XXXXXX";
    if (!mkdtemp(dir) || chdir(dir) < 0)
        return -1;
    put("java-17/bin/java", "");
    put("java-8/bin/java", "");
    put(".pipetune/classes/python.jsa", "archive");
    put(".pipetune/classes/size", "7\n");
    if (symlink("../../java-17/bin/java", ".pipetune/classes/java") < 0)
        return -1;
    *state = strdup(dir);
    return setenv("JAVA_HOME", "java-17", 1);
}

static int end(void **state)
{
    static const char *const made[] = { ".pipetune/classes/python.jsa",
                                        ".pipetune/classes/size",
                                        ".pipetune/classes/java",
                                        ".pipetune/classes",
                                        ".pipetune",
                                        "java-17/bin/java",
                                        "java-17/bin",
                                        "java-17",
                                        "java-8/bin/java",
                                        "java-8/bin",
                                        "java-8" };
    for (size_t i = 0; i < ARRAY_LEN(made); i++)
        (void)remove(made[i]); /* a test may have removed it */
    int rc = chdir("/") == 0 ? rmdir(*state) : -1;
    free(*state);
    return rc;
}

static bool finds_classes(void)
{
    struct config cfg = { 0 };
    struct env v;
    struct err e = { 0 };
    if (env_find(&v, &cfg, &e) < 0)
        fail_msg("%s", e.text);
    AUTO_FREE char *want = io_absolute(".pipetune/classes/python.jsa");
    bool found = v.classes != NULL;
    if (found)
        assert_string_equal(v.classes, want);
    env_done(&v);
    return found;
}

static void test_env_finds_the_class_archive(void **state)
{
    (void)state;
    assert_true(finds_classes());
}

static void test_env_knows_the_java_by_its_file_not_by_its_name(void **state)
{
    (void)state;
    assert_int_equal(symlink("java-17", "default-java"), 0);
    setenv("JAVA_HOME", "default-java", 1);
    bool by_link = finds_classes();
    (void)unlink("default-java");
    assert_true(by_link);
    AUTO_FREE char *path = io_absolute("java-17/bin");
    AUTO_FREE char *before = strdup(getenv("PATH"));
    unsetenv("JAVA_HOME");
    setenv("PATH", path, 1);
    bool on_path = finds_classes();
    setenv("PATH", before, 1);
    assert_true(on_path);
}

static void test_env_leaves_the_archive_of_another_java(void **state)
{
    (void)state;
    setenv("JAVA_HOME", "java-8", 1);
    assert_false(finds_classes());
    setenv("JAVA_HOME", "nowhere", 1);
    assert_false(finds_classes());
}

static void test_env_leaves_an_archive_that_was_cut_short(void **state)
{
    (void)state;
    put(".pipetune/classes/python.jsa", "arch");
    assert_false(finds_classes());
    put(".pipetune/classes/python.jsa", "");
    put(".pipetune/classes/size", "0");
    assert_false(finds_classes());
}

static void test_env_needs_all_that_tells_of_the_archive(void **state)
{
    (void)state;
    static const char *const parts[] = { ".pipetune/classes/python.jsa", ".pipetune/classes/size",
                                         ".pipetune/classes/java" };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        assert_true(finds_classes());
        assert_int_equal(rename(parts[i], "aside"), 0);
        bool found = finds_classes();
        assert_int_equal(rename("aside", parts[i]), 0);
        if (found)
            fail_msg("an archive was found without %s", parts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_env_finds_the_class_archive, begin, end),
        cmocka_unit_test_setup_teardown(test_env_knows_the_java_by_its_file_not_by_its_name, begin, end),
        cmocka_unit_test_setup_teardown(test_env_leaves_the_archive_of_another_java, begin, end),
        cmocka_unit_test_setup_teardown(test_env_leaves_an_archive_that_was_cut_short, begin, end),
        cmocka_unit_test_setup_teardown(test_env_needs_all_that_tells_of_the_archive, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
