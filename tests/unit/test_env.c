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
    put(".pipetune/classes/python.size", "7\n");
    if (symlink("../../java-17/bin/java", ".pipetune/classes/java") < 0)
        return -1;
    *state = strdup(dir);
    return setenv("JAVA_HOME", "java-17", 1);
}

static void remove_all(const char *const *paths, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)remove(paths[i]); /* a test may have removed it */
}

static int end(void **state)
{
    static const char *const made[] = { ".pipetune/classes/python.jsa",
                                        ".pipetune/classes/python.size",
                                        ".pipetune/classes/java",
                                        ".pipetune/classes",
                                        ".pipetune",
                                        "java-17/bin/java",
                                        "java-17/bin",
                                        "java-17",
                                        "java-8/bin/java",
                                        "java-8/bin",
                                        "java-8" };
    remove_all(made, ARRAY_LEN(made));
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

static void test_env_takes_the_python_of_the_environment(void **state)
{
    (void)state;
    static const char *const chosen[] = { "python3.9", "/opt/venv/bin/python" };
    struct config cfg = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(chosen); i++) {
        struct env v;
        struct err e = { 0 };
        setenv("PYSPARK_PYTHON", chosen[i], 1);
        assert_int_equal(env_find(&v, &cfg, &e), 0);
        assert_string_equal(v.python, chosen[i]);
        env_done(&v);
    }
    struct env v;
    struct err e = { 0 };
    setenv("PYSPARK_PYTHON", "", 1); /* as good as none */
    assert_int_equal(env_find(&v, &cfg, &e), 0);
    assert_null(v.python);
    env_done(&v);
    unsetenv("PYSPARK_PYTHON");
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
    put(".pipetune/classes/python.size", "0");
    assert_false(finds_classes());
}

static void test_env_needs_all_that_tells_of_the_archive(void **state)
{
    (void)state;
    static const char *const parts[] = { ".pipetune/classes/python.jsa", ".pipetune/classes/python.size",
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

/* --- closures ----------------------------------------------------------------------------------------------------- */

static const char *const jars[] = { ".pipetune/spark/jars/core.jar", ".pipetune/bigdl/dllib.jar" };

/* As set-up notes which jars the classes are of. */
static void note(const char *tail)
{
    AUTO_BUF struct buf text = BUF_INIT;
    for (size_t i = 0; i < ARRAY_LEN(jars); i++) {
        struct stat st;
        AUTO_FREE char *path = io_absolute(jars[i]);
        assert_int_equal(stat(path, &st), 0);
        buf_printf(&text, "%lld %lld %s%s", (long long)st.st_size, (long long)st.st_mtime, path, i ? tail : "\n");
    }
    put(".pipetune/classes/closures.of", buf_text(&text));
}

static int begin_with_closures(void **state)
{
    if (begin(state) < 0)
        return -1;
    put(".pipetune/spark/bin/spark-submit", "");
    for (size_t i = 0; i < ARRAY_LEN(jars); i++)
        put(jars[i], "jar");
    put(".pipetune/classes/closures.jar", "jar");
    put(".pipetune/classes/session.jsa", "archive");
    put(".pipetune/classes/session.size", "7\n");
    note("\n");
    return 0;
}

static int end_with_closures(void **state)
{
    static const char *const made[] = { ".pipetune/spark/bin/spark-submit",
                                        ".pipetune/spark/bin",
                                        ".pipetune/spark/jars/core.jar",
                                        ".pipetune/spark/jars",
                                        ".pipetune/spark",
                                        ".pipetune/bigdl/dllib.jar",
                                        ".pipetune/bigdl",
                                        ".pipetune/classes/closures.jar",
                                        ".pipetune/classes/closures.of",
                                        ".pipetune/classes/session.jsa",
                                        ".pipetune/classes/session.size" };
    remove_all(made, ARRAY_LEN(made));
    return end(state);
}

/* 0: none; 1: the jar; 2: and the archive that was made with it. */
static int finds_closures(void)
{
    struct config cfg = { 0 };
    struct env v;
    struct err e = { 0 };
    if (env_find(&v, &cfg, &e) < 0)
        fail_msg("%s", e.text);
    AUTO_FREE char *bigdls = io_absolute(jars[1]);
    int found = v.closures ? v.session_classes ? 2 : 1 : 0;
    assert_int_equal(v.closures != NULL, v.closures_of != NULL);
    if (found)
        assert_string_equal(v.closures_of, bigdls);
    assert_true(found || !v.session_classes);
    env_done(&v);
    return found;
}

static void test_env_finds_closures(void **state)
{
    (void)state;
    assert_int_equal(finds_closures(), 2);
    note(""); /* without the last newline */
    assert_int_equal(finds_closures(), 2);
    put(".pipetune/classes/session.size", "8\n");
    assert_int_equal(finds_closures(), 1);
    (void)remove(".pipetune/classes/closures.jar");
    assert_int_equal(finds_closures(), 0);
}

static void test_env_leaves_closures_of_other_jars(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(jars); i++) {
        put(jars[i], "a newer one");
        assert_int_equal(finds_closures(), 0);
        note("\n");
        assert_int_equal(finds_closures(), 2);
    }
    setenv("SPARK_HOME", "another-spark", 1);
    int found = finds_closures();
    unsetenv("SPARK_HOME");
    assert_int_equal(found, 0);
}

static void test_env_leaves_closures_of_nobody_knows_what(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "\n\n", "x", "3", "3 4", "1 2 /nowhere\n", "a b c\nd e f\n", "1 2 /\n1 2 /\n"
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        put(".pipetune/classes/closures.of", texts[i]);
        assert_int_equal(finds_closures(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_env_takes_the_python_of_the_environment, begin, end),
        cmocka_unit_test_setup_teardown(test_env_finds_the_class_archive, begin, end),
        cmocka_unit_test_setup_teardown(test_env_knows_the_java_by_its_file_not_by_its_name, begin, end),
        cmocka_unit_test_setup_teardown(test_env_leaves_the_archive_of_another_java, begin, end),
        cmocka_unit_test_setup_teardown(test_env_leaves_an_archive_that_was_cut_short, begin, end),
        cmocka_unit_test_setup_teardown(test_env_needs_all_that_tells_of_the_archive, begin, end),
        cmocka_unit_test_setup_teardown(test_env_finds_closures, begin_with_closures, end_with_closures),
        cmocka_unit_test_setup_teardown(test_env_leaves_closures_of_other_jars, begin_with_closures, end_with_closures),
        cmocka_unit_test_setup_teardown(test_env_leaves_closures_of_nobody_knows_what, begin_with_closures,
                                        end_with_closures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
