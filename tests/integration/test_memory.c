/* Commands that take more memory than they were given. The kernel limits them, where a cgroup may be made: else these tests say why
 * they were skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "node/cgroup.h"
#include "tests/integration/harness.h"

/* Trains two epochs. Before the second one $1 has it take 200 MB: "itself", or in a "child" whose end it takes for a failure. */
#define TRAIN                                                                                                          \
    "#!/bin/sh\n"                                                                                                      \
    "echo 'epoch 1: accuracy 0.5'; sleep 0.1\n"                                                                        \
    "case $1 in\n"                                                                                                     \
    "itself) mkfifo pipe; head -c 200000000 /dev/zero >pipe & exec tail <pipe ;;\n"                                    \
    "child) head -c 200000000 /dev/zero | tail >taken || exit 3 ;;\n"                                                  \
    "hold) touch held; until [ -e go ]; do sleep 0.02; done ;;\n"                                                      \
    "esac\n"                                                                                                           \
    "echo 'epoch 2: accuracy 0.6'\n"

static void write_study(const struct world *w, const char *takes, const char *memory)
{
    char text[1024];
    world_script(w, "train.sh", TRAIN);
    (void)snprintf(text, sizeof text,
                   "{ \"command\": [\"./train.sh\", \"%s\"], \"arguments\": { \"lr\": [], \"epochs\": [] },\n"
                   "  \"progress\": [\"epoch (?<epoch>\\\\d+): accuracy (?<accuracy>\\\\S+)\"] }",
                   takes);
    harness_write(w->dir, "s.json", text);
    (void)snprintf(
        text, sizeof text,
        "{ \"application\": \"s.json\", \"study\": { \"name\": \"s\", \"epochs\": 2 },\n"
        "  \"systemParameters\": { \"cores\": [1], \"memory\": [%s] }, \"hyperParameters\": { \"lr\": [0.1] } }\n",
        memory);
    harness_write(w->dir, "s.conf", text);
}

static void expect(const char *what, const struct harness_output *o, int code, const char *text)
{
    if (o->code != code || !strstr(o->out, text))
        fail_msg("%s: got exit %d, %s%s; want %d, '%s'", what, o->code, o->out, o->err, code, text);
}

/* The folder in which cgroups are made here; skips the test where none may be. */
static void find_parent(char out[CGROUP_PATH_SIZE])
{
    struct cgroup c = CGROUP_NONE;
    struct err e;
    if (cgroup_open(&c, "/proc", "/sys/fs/cgroup", "test-memory", 1 << 30, &e) < 0) {
        print_message("skipped: %s\n", e.text);
        skip();
    }
    (void)snprintf(out, CGROUP_PATH_SIZE, "%s", c.path);
    *strrchr(out, '/') = '\0';
    cgroup_close(&c);
}

/* Cgroups of ours there, but for those of others' tests that run now. */
static int count_left(const char *parent, const char *tag)
{
    int n = 0;
    DIR *d = opendir(parent);
    for (struct dirent *x; d && (x = readdir(d));)
        n += strncmp(x->d_name, "pipetune-", 9) == 0 && strcmp(x->d_name + 9, tag) == 0;
    if (d)
        (void)closedir(d);
    return n;
}

static char *tag_of(const char *attempt)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "SELECT launch FROM attempts WHERE number = %s", attempt);
    return harness_ask("pipetune.db", sql);
}

#define OUTCOMES "SELECT a.number, a.outcome, t.state FROM attempts a JOIN trials t ON t.id = a.trial ORDER BY 1"

static void who_takes_more_is_out_of_memory(void **state)
{
    static const char *const takes[] = { "itself", "child" };
    struct world *w = *state;
    char parent[CGROUP_PATH_SIZE];
    find_parent(parent);
    for (size_t i = 0; i < ARRAY_LEN(takes); i++) {
        (void)unlink("pipetune.db");
        write_study(w, takes[i], "0.0625");
        struct harness_output o = RUN(w, "run", "--config", "s.conf");
        if (!strstr(o.out, "out_of_memory: it took more than the 0.0625 GiB it was given, after 1 of 2 epochs") ||
            strstr(o.out, "memory has no limit"))
            fail_msg("%s: got exit %d, %s%s", takes[i], o.code, o.out, o.err);
        harness_output_done(&o);
        harness_expect_rows(takes[i], "pipetune.db", OUTCOMES, "1|infeasible|infeasible");
        AUTO_FREE char *tag = tag_of("1");
        assert_int_equal(count_left(parent, tag), 0);
    }
}

static void it_goes_on_with_more_where_there_is_more(void **state)
{
    struct world *w = *state;
    char parent[CGROUP_PATH_SIZE];
    find_parent(parent);
    write_study(w, "child", "0.0625, 0.5");
    struct harness_output o = RUN(w, "run", "--config", "s.conf", "--setting", "memory=0.0625");
    expect("run", &o, 0, "s/1: finished: accuracy 0.6");
    harness_output_done(&o);
    harness_expect_rows("outcomes", "pipetune.db", OUTCOMES, "1|refused_setting|finished 2|finished|finished");
}

static void what_a_killed_launcher_left_is_removed_by_the_next(void **state)
{
    struct world *w = *state;
    char parent[CGROUP_PATH_SIZE];
    find_parent(parent);
    write_study(w, "hold", "0.0625");
    pid_t driver = START(w, -1, "run", "--config", "s.conf");
    if (!harness_wait_file(w->dir, "held", HARNESS_MS))
        fail_msg("epoch 2 never began");
    assert_int_equal(kill(driver, SIGKILL), 0);
    (void)harness_exit_code(driver, HARNESS_MS);
    AUTO_FREE char *tag = tag_of("1");
    assert_int_equal(count_left(parent, tag), 1);
    assert_true(world_processes(w, SIGKILL) > 0);
    harness_write(w->dir, "go", "");
    struct harness_output o = RUN(w, "run", "--config", "s.conf");
    expect("run", &o, 0, "s/1: finished: accuracy 0.6");
    harness_output_done(&o);
    AUTO_FREE char *second = tag_of("2");
    assert_int_equal(count_left(parent, tag), 0);
    assert_int_equal(count_left(parent, second), 0);
}

static void that_there_can_be_no_limit_is_told_once(void **state)
{
    struct world *w = *state;
    world_point_at(w, "PIPETUNE_CGROUP_ROOT", "no-cgroups");
    write_study(w, "child", "0.0625");
    struct harness_output o = RUN(w, "run", "--config", "s.conf");
    expect("run", &o, 0, "s/1: finished: accuracy 0.6");
    if (harness_count(o.out, "memory has no limit here, and trials may take more than their setting gives: ") != 1)
        fail_msg("it was not told once: %s%s", o.out, o.err);
    harness_output_done(&o);
    (void)unsetenv("PIPETUNE_CGROUP_ROOT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_takes_more_is_out_of_memory, world_open, world_close),
        cmocka_unit_test_setup_teardown(it_goes_on_with_more_where_there_is_more, world_open, world_close),
        cmocka_unit_test_setup_teardown(what_a_killed_launcher_left_is_removed_by_the_next, world_open, world_close),
        cmocka_unit_test_setup_teardown(that_there_can_be_no_limit_is_told_once, world_open, world_close),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
