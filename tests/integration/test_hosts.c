/* Trials on other hosts: real helpers with homes, leases and names of their own, behind what plays ssh. Their links break, they die, they
 * have no room, and they lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "tests/integration/harness.h"

#define AUTO_OUTPUT __attribute__((cleanup(harness_output_done)))

/* Becomes the helper "on" the host, unless that is dead: the file dead-HOST says so. */
#define SSH                                                                                                            \
    "#!/bin/sh\n"                                                                                                      \
    "while [ \"$1\" != -- ]; do shift; done\n"                                                                         \
    "if [ -e $W/dead-$2 ]; then echo \"ssh: connect to host $2 port 22: No route to host\" >&2; exit 255; fi\n"        \
    "echo $2 >>$W/connections; echo $$ >$W/helper-$2\n"                                                                \
    "export HOME=$W/home-$2 PIPETUNE_MACHINE=$2 PIPETUNE_LEASES=$PIPETUNE_LEASES-$2\n"                                 \
    "[ -e $HOME ] || mkdir $HOME; cd /\n"                                                                              \
    "if [ $2 = liar ]; then \"$3\" \"$4\" | sed -u 's/\"files\":\"[^\"]*\"/\"files\":\"NSAxIC4uLy4uLy4uL2V2aWwA\"/'\n" \
    "else exec \"$3\" \"$4\"; fi\n"

/* Trains --epochs N; waits for $W/go before the epoch that the file $W/hold names; tells of a checkpoint at each epoch's end. */
#define TRAIN                                                                                                          \
    "#!/bin/sh\n"                                                                                                      \
    ". lib/tell.sh\n"                                                                                                  \
    "for word; do\n"                                                                                                   \
    "  case $last in --epochs) epochs=$word;; --save) save=$word;; --lr) lr=$word;;\n"                                 \
    "    --load) epoch=$(cat $word); echo \"went on from $epoch\";; esac; last=$word\n"                                \
    "done\n"                                                                                                           \
    "epoch=${epoch:-0}; echo x >>$W/starts-$lr; echo \"on $PIPETUNE_MACHINE\"\n"                                       \
    "while [ $epoch -lt $epochs ]; do\n"                                                                               \
    "  epoch=$((epoch + 1))\n"                                                                                         \
    "  if [ \"$(cat $W/hold 2>/dev/null)\" = $epoch ]; then touch $W/held-$PIPETUNE_MACHINE\n"                         \
    "    until [ -e $W/go ]; do sleep 0.02; done; fi\n"                                                                \
    "  sleep 0.05; tell; echo $lr $epoch >>$W/trained\n"                                                               \
    "done\n"
#define TELL                                                                                                           \
    "tell() { echo $epoch >$save/c-$epoch.part; mv $save/c-$epoch.part $save/c-$epoch\n"                               \
    "  $PIPETUNE tell loss=0.$((9 - epoch)) accuracy=0.$((epoch + 1)) --epoch $epoch\n"                                \
    "  $PIPETUNE tell --checkpoint $save/c-$epoch --epoch $epoch; }\n"

static int open_hosts(void **state)
{
    if (world_open(state) < 0)
        return -1;
    const struct world *w = *state;
    static const char *const needless[] = { "SPARK_HOME", "JAVA_HOME", "BIGDL_HOME", "XDG_STATE_HOME",
                                            "XDG_RUNTIME_DIR" };
    for (size_t i = 0; i < ARRAY_LEN(needless); i++)
        (void)unsetenv(needless[i]);
    AUTO_FREE char *ssh = harness_path(w->dir, "ssh");
    (void)setenv("W", w->dir, 1), (void)setenv("PIPETUNE", w->program, 1), (void)setenv("PIPETUNE_SSH", ssh, 1);
    (void)setenv("PIPETUNE_NODES_SPEED", "20", 1), (void)setenv("PIPETUNE_REST_MS", "1000", 1);
    world_script(w, "ssh", SSH);
    world_script(w, "train.sh", TRAIN);
    world_dir(w, "lib");
    harness_write(w->dir, "lib/tell.sh", TELL);
    harness_write(w->dir, "app.json",
                  "{ \"command\": [\"./train.sh\"], \"files\": [\"lib\"],\n"
                  "  \"arguments\": { \"lr\": [\"--lr\", \"{}\"], \"epochs\": [\"--epochs\", \"{}\"],\n"
                  "    \"checkpoint\": [\"--save\", \"{}\"], \"resume\": [\"--load\", \"{checkpoint}\"] } }\n");
    return 0;
}

/* A study of so many trials on these hosts, and not here. */
static void write_study(const struct world *w, const char *hosts, int trials, const char *places)
{
    char text[1024], rates[128] = "";
    for (int i = 1; i <= trials; i++)
        (void)snprintf(rates + strlen(rates), sizeof rates - strlen(rates), "%s%d", i > 1 ? ", " : "", i);
    (void)snprintf(text, sizeof text,
                   "{ \"application\": \"app.json\", \"study\": { \"name\": \"s\", \"epochs\": 3 }, \"nodes\": [%s],\n"
                   "  \"places\": { \"local\": \"no\"%s }, \"tuning\": { \"policy\": \"v1\" },\n"
                   "  \"monitoring\": { \"scope\": \"none\" },\n"
                   "  \"systemParameters\": { \"cores\": [4096] }, \"hyperParameters\": { \"lr\": [%s] } }\n",
                   hosts, places, rates);
    harness_write(w->dir, "s.conf", text);
}

static void expect_finished(const struct world *w, int code, int trials)
{
    AUTO_FREE char *err = harness_read(w->dir, "err");
    char want[16];
    if (code != 0)
        fail_msg("run: exit %d: %s", code, err);
    (void)snprintf(want, sizeof want, "%d", trials);
    harness_expect_rows("finished trials", "pipetune.db", "SELECT count(*) FROM trials WHERE state = 'finished'", want);
    harness_expect_rows("no epoch is there twice", "pipetune.db",
                        "SELECT count(*) - 3 * (SELECT count(*) FROM trials) FROM epochs", "0");
    harness_expect_rows("no failure was counted", "pipetune.db",
                        "SELECT count(*) FROM attempts WHERE outcome IN ('failed', 'killed')", "0");
}

static void expect_lines(const struct world *w, const char *file, size_t want)
{
    AUTO_FREE char *text = harness_read(w->dir, file);
    size_t got = text ? harness_count(text, "\n") : 0;
    if (got != want)
        fail_msg("%s: %zu lines, want %zu: %s", file, got, want, text ? text : "");
}

static void trials_run_on_hosts_as_if_they_ran_here(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"a\", \"b\", \"c\"", 6, "");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    if (o.code != 0)
        fail_msg("exit %d: %s%s", o.code, o.out, o.err);
    expect_finished(w, o.code, 6);
    harness_expect_rows("each host had some", "pipetune.db", "SELECT count(DISTINCT place), count(*) FROM attempts",
                        "3|6");
    expect_lines(w, "connections", 3);
    harness_expect_rows("checkpoints are here", "pipetune.db",
                        "SELECT count(*) FROM checkpoints WHERE path LIKE '%/pipetune.d/s/%/checkpoint/c-_'", "12");
    AUTO_FREE char *newest = harness_read(w->dir, "pipetune.d/s/1/checkpoint/c-3");
    AUTO_FREE char *log = harness_read(w->dir, "pipetune.d/s/1/log");
    if (!newest || strcmp(newest, "3\n") != 0 || !log || !strstr(log, "accuracy"))
        fail_msg("checkpoint '%s', log '%s'", newest ? newest : "", log ? log : "");
    AUTO_OUTPUT struct harness_output shown = RUN(w, "show", "s/1", "--json");
    if (!strstr(shown.out, "\"place\": \"a\"") && !strstr(shown.out, "\"place\":\"a\""))
        fail_msg("show: %s", shown.out);
    AUTO_OUTPUT struct harness_output left = world_run(w, (const char *const[]){ "ls", NULL });
    (void)left;
    AUTO_FREE char *home = harness_path(w->dir, "home-a/.local/state/pipetune");
    struct stat st;
    if (stat(home, &st) < 0 || st.st_nlink != 3) /* files/ alone */
        fail_msg("something of a trial is left in %s", home);
}

static bool is_held(void *file)
{
    return access(file, F_OK) == 0;
}

static void wait_held(const char *file)
{
    if (!harness_wait(is_held, (void *)file, HARNESS_MS))
        fail_msg("waited in vain for %s", file);
}

static void a_killed_driver_meets_its_trials_again(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"a\", \"b\"", 2, "");
    harness_write(w->dir, "hold", "2");
    pid_t driver = START(w, -1, "run", "s.conf");
    wait_held("held-a"), wait_held("held-b");
    (void)kill(driver, SIGKILL);
    (void)harness_exit_code(driver, HARNESS_MS);
    harness_write(w->dir, "go", "");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    if (o.code != 0)
        fail_msg("exit %d: %s%s", o.code, o.out, o.err);
    expect_finished(w, o.code, 2);
    harness_expect_rows("attempts", "pipetune.db", "SELECT trial, number FROM attempts ORDER BY 1", "1|1 2|1");
    expect_lines(w, "trained", 6);
}

/* Whatever was on its way: nothing is started twice, and no epoch is trained twice. */
static void a_driver_may_be_killed_at_any_point(void **state)
{
    const struct world *w = *state;
    static const char *const points[] = { "launcher-spawned:1",    "launcher-ready:2",  "attempt-before-commit:1",
                                          "attempt-committed:2",   "go-sent:1",         "go-sent:2",
                                          "epoch-before-commit:1", "epoch-committed:2", "end-before-commit:1",
                                          "end-committed:2" };
    write_study(w, "\"a\", \"b\"", 2, "");
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        (void)setenv("PIPETUNE_FAILPOINT", points[i], 1);
        AUTO_OUTPUT struct harness_output cut_off = RUN(w, "run", "s.conf");
        (void)unsetenv("PIPETUNE_FAILPOINT");
        AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
        if (cut_off.code != 128 + SIGKILL || o.code != 0)
            fail_msg("%s: exit %d, then %d: %s%s", points[i], cut_off.code, o.code, o.out, o.err);
        expect_finished(w, o.code, 2);
        expect_lines(w, "trained", 6), expect_lines(w, "starts-1", 1), expect_lines(w, "starts-2", 1);
        static const char *const left[] = { "trained", "starts-1", "starts-2", "pipetune.db" };
        for (size_t k = 0; k < ARRAY_LEN(left); k++)
            (void)unlink(left[k]);
    }
}

static void an_interrupted_study_ends_its_trials_there(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"a\", \"b\"", 2, "");
    harness_write(w->dir, "hold", "2");
    pid_t driver = START(w, -1, "run", "s.conf");
    wait_held("pipetune.d/s/1/checkpoint/c-1"), wait_held("pipetune.d/s/2/checkpoint/c-1");
    wait_held("held-a"), wait_held("held-b");
    (void)kill(driver, SIGINT);
    assert_int_equal(harness_exit_code(driver, HARNESS_MS), 130);
    assert_int_equal(world_find(w->dir, "./train.sh", (pid_t[1]){ 0 }, 1), 0);
    harness_write(w->dir, "go", "");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    expect_finished(w, o.code, 2);
    harness_expect_rows("attempts", "pipetune.db",
                        "SELECT trial, number, outcome, first_epoch FROM attempts ORDER BY 1, 2",
                        "1|1|interrupted|1 1|2|finished|2 2|1|interrupted|1 2|2|finished|2");
}

/* Its helper is gone, and another one cannot be reached. */
static void cut(const struct world *w, const char *host)
{
    char file[64];
    (void)snprintf(file, sizeof file, "dead-%s", host);
    harness_write(w->dir, file, "");
    (void)snprintf(file, sizeof file, "helper-%s", host);
    AUTO_FREE char *pid = harness_read(w->dir, file);
    assert_non_null(pid);
    (void)kill((pid_t)strtol(pid, NULL, 10), SIGKILL);
}

static void a_trial_goes_on_while_its_link_is_down(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"a\", \"b\"", 2, "");
    harness_write(w->dir, "hold", "2");
    pid_t driver = START(w, -1, "run", "s.conf");
    wait_held("held-a"), wait_held("held-b");
    cut(w, "a");
    harness_write(w->dir, "go", "");
    for (int64_t i = 0; i < 400 && world_find(w->dir, "./train.sh", (pid_t[1]){ 0 }, 1) > 0; i++)
        (void)usleep(20000);
    assert_int_equal(unlink("dead-a"), 0);
    expect_finished(w, harness_exit_code(driver, HARNESS_MS), 2);
    harness_expect_rows("attempts", "pipetune.db", "SELECT trial, number FROM attempts ORDER BY 1", "1|1 2|1");
    expect_lines(w, "trained", 6);
}

/* With all that runs there. */
static void kill_host(const struct world *w, const char *host)
{
    pid_t pids[64];
    char mark[64], file[64], text[8192];
    cut(w, host);
    (void)snprintf(mark, sizeof mark, "PIPETUNE_MACHINE=%s", host);
    size_t n = world_find(w->dir, "", pids, ARRAY_LEN(pids));
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(file, sizeof file, "/proc/%ld/environ", (long)pids[i]);
        FILE *f = fopen(file, "r");
        size_t len = f ? fread(text, 1, sizeof text - 1, f) : 0;
        if (f)
            (void)fclose(f);
        if (len && memmem(text, len, mark, strlen(mark) + 1))
            (void)kill(pids[i], SIGKILL);
    }
}

static void what_a_lost_host_had_goes_on_elsewhere(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"a\", \"b\"", 2, ", \"lost_seconds\": 1");
    harness_write(w->dir, "hold", "3");
    pid_t driver = START(w, -1, "run", "s.conf");
    wait_held("held-a"), wait_held("held-b");
    wait_held("pipetune.d/s/1/checkpoint/c-2"), wait_held("pipetune.d/s/2/checkpoint/c-2");
    kill_host(w, "a");
    harness_write(w->dir, "go", "");
    expect_finished(w, harness_exit_code(driver, HARNESS_MS), 2);
    harness_expect_rows("the lost one goes on from its checkpoint", "pipetune.db",
                        "SELECT number, place, outcome, first_epoch FROM attempts WHERE trial ="
                        " (SELECT trial FROM attempts WHERE place = 'a') ORDER BY 1",
                        "1|a|interrupted|1 2|b|finished|3");
    expect_lines(w, "trained", 6);
}

/* One that only writes to its folder is gone on with, too. */
static void what_is_written_to_the_folder_is_fetched(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"a\", \"b\"", 2, ", \"lost_seconds\": 1");
    harness_write(w->dir, "lib/tell.sh",
                  "tell() { mkdir -p $save/deep; echo $epoch >$save/deep/part; mv $save/deep/part $save/deep/c\n"
                  "  $PIPETUNE tell loss=0.$((9 - epoch)) accuracy=0.$((epoch + 1)) --epoch $epoch; }\n");
    AUTO_FREE char *script = harness_read(w->dir, "train.sh");
    char *load = strstr(script, "$(cat $word)");
    assert_non_null(load);
    AUTO_FREE char *other = NULL;
    assert_true(asprintf(&other, "%.*s$(cat $word/deep/c)%s", (int)(load - script), script, load + 12) > 0);
    world_script(w, "train.sh", other);
    harness_write(w->dir, "hold", "3");
    pid_t driver = START(w, -1, "run", "s.conf");
    wait_held("held-a"), wait_held("held-b");
    wait_held("pipetune.d/s/1/checkpoint/whole/deep/c"), wait_held("pipetune.d/s/2/checkpoint/whole/deep/c");
    for (int i = 0; i < 500; i++) {
        AUTO_FREE char *rows = harness_ask("pipetune.db", "SELECT count(*) FROM checkpoints WHERE epoch = 2");
        if (strcmp(rows, "2") == 0)
            break;
        (void)usleep(20000);
    }
    kill_host(w, "a");
    harness_write(w->dir, "go", "");
    expect_finished(w, harness_exit_code(driver, HARNESS_MS), 2);
    harness_expect_rows("the lost one goes on", "pipetune.db",
                        "SELECT place, first_epoch FROM attempts WHERE number = 2", "b|3");
}

static void a_host_that_takes_nothing_is_left_alone(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"full\", \"b\"", 3, "");
    harness_write(w->dir, "home-full", "no folder can be made in a file");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    if (o.code != 0 || !strstr(o.out, "host 'full' is left alone"))
        fail_msg("exit %d: %s%s", o.code, o.out, o.err);
    expect_finished(w, o.code, 3);
    harness_expect_rows("places", "pipetune.db", "SELECT place, count(*) FROM attempts GROUP BY 1", "b|3");
}

static void no_host_at_all_is_told(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"a\"", 2, "");
    harness_write(w->dir, "dead-a", "");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    if (o.code != 3 || !strstr(o.err, "no place to run its trials"))
        fail_msg("exit %d: %s%s", o.code, o.out, o.err);
}

/* One says that a checkpoint has files outside of its folder; on the other the checkpoint is a link. */
static void a_host_that_lies_harms_nobody(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"liar\", \"b\"", 4, "");
    harness_write(w->dir, "lib/tell.sh",
                  "tell() { ln -s /etc/passwd $save/c-$epoch\n"
                  "  $PIPETUNE tell loss=0.$((9 - epoch)) accuracy=0.$((epoch + 1)) --epoch $epoch\n"
                  "  $PIPETUNE tell --checkpoint $save/c-$epoch --epoch $epoch; }\n");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    if (o.code != 0 || !strstr(o.out, "links are not followed"))
        fail_msg("exit %d: %s%s", o.code, o.out, o.err);
    expect_finished(w, o.code, 4);
    harness_expect_rows("checkpoints", "pipetune.db", "SELECT count(*) FROM checkpoints", "0");
    assert_false(access("pipetune.d/evil", F_OK) == 0 || access("evil", F_OK) == 0);
    assert_int_equal(harness_count(o.out, "evil"), 0);
}

static void what_talks_without_end_is_ended(void **state)
{
    const struct world *w = *state;
    write_study(w, "\"a\"", 1, "");
    (void)setenv("PIPETUNE_HEARD_MAX", "100000", 1);
    harness_write(w->dir, "lib/tell.sh", "yes 'a line that tells of no epoch'\n");
    harness_write(w->dir, "app.json",
                  "{ \"command\": [\"./train.sh\"], \"files\": [\"lib\"], \"progress\": [\"(?<loss>[0-9.]+)$\"],\n"
                  "  \"arguments\": { \"lr\": [\"--lr\", \"{}\"], \"epochs\": [\"--epochs\", \"{}\"] } }\n");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf", "--retries", "0");
    (void)unsetenv("PIPETUNE_HEARD_MAX");
    if (o.code != 1 || !strstr(o.out, "came from its host without the end of an epoch"))
        fail_msg("exit %d: %s%s", o.code, o.out, o.err);
    struct stat st;
    assert_int_equal(stat("pipetune.d/s/1/log", &st), 0);
    assert_true(st.st_size <= 100000);
}

/* Whatever call fails in the driver, or in each helper and launcher: it ends with a reason or goes on, and the next run ends the study well. */
static void calls_that_fail_lose_nothing(void **state)
{
    const struct world *w = *state;
    static const struct {
        const char *program, *kind;
        unsigned first, step, n;
    } rows[] = {
        { "pipetune", "malloc", 900, 417, 3 },    { "pipetune", "write", 1, 5, 2 },
        { "pipetune", "open", 2, 3, 2 },          { "pipetune", "mkdir", 2, 1, 1 },
        { "pipetune-node", "malloc", 20, 61, 3 }, { "pipetune-node", "write", 9, 16, 2 },
        { "pipetune-node", "open", 2, 3, 2 },     { "pipetune-node", "rename", 1, 1, 2 },
        { "pipetune-node", "mkdir", 2, 2, 2 },    { "pipetune-node", "fork", 1, 1, 1 },
    };
    bool own_memory = false;
#if defined(__SANITIZE_ADDRESS__) /* memory is its own, and its runtime would have to be loaded before faults.so */
    own_memory = true;
    (void)setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
#endif
    AUTO_FREE char *preload = harness_program("tests/faults.so");
    (void)setenv("PIPETUNE_REST_MS", "200", 1);
    write_study(w, "\"a\", \"b\"", 2, ", \"lost_seconds\": 2");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (unsigned k = 0; k < rows[i].n && !(own_memory && strcmp(rows[i].kind, "malloc") == 0); k++) {
            char plan[64];
            (void)snprintf(plan, sizeof plan, "%s:%u", rows[i].kind, rows[i].first + k * rows[i].step);
            (void)setenv("PIPETUNE_FAULT", plan, 1), (void)setenv("PIPETUNE_FAULT_PROGRAM", rows[i].program, 1);
            (void)setenv("LD_PRELOAD", preload, 1);
            AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
            (void)unsetenv("LD_PRELOAD"), (void)unsetenv("PIPETUNE_FAULT");
            AUTO_OUTPUT struct harness_output again = RUN(w, "run", "s.conf");
            if (o.code > 3 || (o.code != 0 && !*o.err) || again.code != 0)
                fail_msg("%s %s: exit %d: %s%s, then %d: %s%s", rows[i].program, plan, o.code, o.out, o.err, again.code,
                         again.out, again.err);
            harness_expect_rows(
                plan, "pipetune.db",
                "SELECT count(*), (SELECT count(DISTINCT trial || '-' || epoch) FROM epochs) FROM trials"
                " WHERE state = 'finished'",
                "2|6");
            (void)unlink("pipetune.db"), (void)unlink("trained");
        }
}

#define HOSTS_TEST(f) cmocka_unit_test_setup_teardown(f, open_hosts, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTS_TEST(trials_run_on_hosts_as_if_they_ran_here),
        HOSTS_TEST(a_killed_driver_meets_its_trials_again),
        HOSTS_TEST(a_driver_may_be_killed_at_any_point),
        HOSTS_TEST(an_interrupted_study_ends_its_trials_there),
        HOSTS_TEST(a_trial_goes_on_while_its_link_is_down),
        HOSTS_TEST(what_a_lost_host_had_goes_on_elsewhere),
        HOSTS_TEST(what_is_written_to_the_folder_is_fetched),
        HOSTS_TEST(a_host_that_takes_nothing_is_left_alone),
        HOSTS_TEST(no_host_at_all_is_told),
        HOSTS_TEST(calls_that_fail_lose_nothing),
        HOSTS_TEST(a_host_that_lies_harms_nobody),
        HOSTS_TEST(what_talks_without_end_is_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
