/* Trials of several processes: ranks that add up their gradients over TCP, here and on hosts that are played. They are killed, fail, lose their
 * driver and their hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lease.h"
#include "base/own.h"
#include "tests/integration/harness.h"

#define AUTO_OUTPUT __attribute__((cleanup(harness_output_done)))

/* Becomes the helper "on" the host, unless that is dead: the file dead-HOST says so. */
#define SSH                                                                                                            \
    "#!/bin/sh\n"                                                                                                      \
    "while [ \"$1\" != -- ]; do shift; done\n"                                                                         \
    "if [ -e $W/dead-$2 ]; then echo \"ssh: connect to host $2 port 22: No route to host\" >&2; exit 255; fi\n"        \
    "echo $$ >$W/helper-$2\n"                                                                                          \
    "export HOME=$W/home-$2 PIPETUNE_MACHINE=$2 PIPETUNE_LEASES=$PIPETUNE_LEASES-$2\n"                                 \
    "[ -e $HOME ] || mkdir $HOME; cd /\n"                                                                              \
    "exec \"$3\" \"$4\"\n"

/* A rank. Where the file fail-INDEX is, it fails, once. */
#define RANK                                                                                                           \
    "#!/bin/sh\n"                                                                                                      \
    "echo $$ >$W/pid-$1; echo x >>$W/starts-$1\n"                                                                      \
    "if [ -e $W/fail-$1 ]; then rm $W/fail-$1; sleep 0.2; echo 'ValueError: no data here' >&2; exit 3; fi\n"           \
    "exec python3 ring_sgd.py --rank \"$@\"\n"

#define PS "\"ps\": { \"cores\": 0, \"arguments\": false, \"command\": [\"sleep\", \"1000\"] }, "
#define RANKS(count, cores)                                                                                            \
    "\"rank\": { \"count\": " count ", \"cores\": " cores                                                              \
    ", \"command\": [\"./rank.sh\", \"{index}\", \"--peers\", \"{peers.rank}\", \"--nap\", \"0.1\"] }"

static void write_app(const struct world *w, const char *roles)
{
    char text[2048];
    (void)snprintf(text, sizeof text,
                   "{ \"kind\": \"command\", \"roles\": { %s }, \"tells\": \"rank\", \"files\": [\"ring_sgd.py\"],\n"
                   "  \"arguments\": { \"lr\": [\"--learning-rate\", \"{}\"], \"epochs\": [\"--epochs\", \"{}\"],\n"
                   "    \"checkpoint\": [\"--save\", \"{}\"], \"resume\": [\"--load\", \"{checkpoint}\"] },\n"
                   "  \"progress\": [\"epoch (?<epoch>\\\\d+): loss (?<loss>\\\\S+), points (?<records>\\\\d+)\"] }\n",
                   roles);
    harness_write(w->dir, "app.json", text);
}

static void write_named(const struct world *w, const char *name, const char *rates, const char *more)
{
    char text[2048], file[32];
    (void)snprintf(text, sizeof text,
                   "{ \"application\": \"app.json\", \"tuning\": { \"policy\": \"v1\" }, \"monitoring\": { \"scope\": "
                   "\"none\" },\n"
                   "  \"study\": { \"name\": \"%s\", \"epochs\": 8, \"metric\": \"loss\", \"parallel\": 2 },\n"
                   "  \"hyperParameters\": { \"lr\": [%s] }%s }\n",
                   name, rates, more);
    (void)snprintf(file, sizeof file, "%s.conf", name);
    harness_write(w->dir, file, text);
}

static void write_study(const struct world *w, const char *rates, const char *more)
{
    write_named(w, "s", rates, more);
}

static int open_gangs(void **state)
{
    char tree[PATH_MAX] = "", link[64];
    if (world_open(state) < 0)
        return -1;
    const struct world *w = *state;
    static const char *const needless[] = { "SPARK_HOME", "JAVA_HOME", "BIGDL_HOME", "XDG_STATE_HOME",
                                            "XDG_RUNTIME_DIR" };
    for (size_t i = 0; i < ARRAY_LEN(needless); i++)
        (void)unsetenv(needless[i]);
    AUTO_FREE char *ssh = harness_path(w->dir, "ssh");
    (void)setenv("W", w->dir, 1), (void)setenv("PIPETUNE_SSH", ssh, 1);
    (void)setenv("PIPETUNE_NODES_SPEED", "20", 1), (void)setenv("PIPETUNE_REST_MS", "1000", 1);
    world_script(w, "ssh", SSH);
    world_script(w, "rank.sh", RANK);
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", w->tree);
    assert_true(readlink(link, tree, sizeof tree - 1) > 0);
    AUTO_FREE char *ring = harness_read(tree, "examples/apps/ring_sgd.py");
    assert_non_null(ring);
    harness_write(w->dir, "ring_sgd.py", ring);
    return 0;
}

static void expect_finished(const struct harness_output *o, const char *trials)
{
    if (o->code != 0)
        fail_msg("exit %d: %s%s", o->code, o->out, o->err);
    harness_expect_rows("finished", "pipetune.db", "SELECT count(*) FROM trials WHERE state = 'finished'", trials);
    harness_expect_rows("each epoch once", "pipetune.db",
                        "SELECT count(*) - 8 * (SELECT count(*) FROM trials) FROM epochs", "0");
}

/* How many ranks were started as the one of that index. */
static void expect_starts(const struct world *w, int index, size_t want)
{
    char file[32];
    (void)snprintf(file, sizeof file, "starts-%d", index);
    AUTO_FREE char *text = harness_read(w->dir, file);
    size_t got = text ? harness_count(text, "\n") : 0;
    if (got != want)
        fail_msg("rank %d was started %zu times, want %zu", index, got, want);
}

static void wait_for(const struct world *w, const char *file)
{
    if (!harness_wait_file(w->dir, file, 2 * HARNESS_MS))
        fail_msg("waited in vain for %s", file);
}

static void kill_rank(const struct world *w, int index)
{
    char file[32];
    (void)snprintf(file, sizeof file, "pid-%d", index);
    AUTO_FREE char *pid = harness_read(w->dir, file);
    assert_non_null(pid);
    assert_int_equal(kill((pid_t)strtol(pid, NULL, 10), SIGKILL), 0);
}

static size_t running_ranks(const struct world *w)
{
    return world_find(w->dir, "ring_sgd.py", (pid_t[16]){ 0 }, 16) + world_find(w->dir, "1000", (pid_t[16]){ 0 }, 16);
}

/* --- here ------------------------------------------------------------------------------------------------------------------ */

static void ranks_train_one_model(void **state)
{
    const struct world *w = *state;
    write_app(w, PS RANKS("3", "0"));
    write_study(w, "0.6", "");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    expect_finished(&o, "1");
    harness_expect_rows("of all points", "pipetune.db", "SELECT DISTINCT records FROM epochs", "3000.0");
    harness_expect_rows("processes", "pipetune.db", "SELECT role, idx, port > 0 FROM members ORDER BY number",
                        "ps|0|1 rank|0|1 rank|1|1 rank|2|1");
    AUTO_FREE char *log = harness_read(w->dir, "pipetune.d/s/1/members/rank-2/log");
    assert_non_null(log);
    assert_non_null(strstr(log, "rank 2 of 3: epoch 8: "));
    AUTO_OUTPUT struct harness_output shown = RUN(w, "show", "s/1");
    if (!strstr(shown.out, "rank 2") || !strstr(shown.out, "members/PROCESS-N/log"))
        fail_msg("show: %s", shown.out);
    assert_int_equal(running_ranks(w), 0); /* nor the parameter server, which ends with them */
}

/* A line for each trial, of all that would run; one process alone is as any command. */
static void a_dry_run_shows_all_processes(void **state)
{
    const struct world *w = *state;
    write_app(w, PS RANKS("\"{roles.rank}\"", "1"));
    write_study(w, "0.6, 0.4", ", \"systemParameters\": { \"roles.rank\": [2] }");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf", "--dry-run");
    assert_int_equal(o.code, 0);
    assert_int_equal(harness_count(o.out, "\n"), 2);
    assert_int_equal(harness_count(o.out, " sleep 1000 & "), 2);
    assert_int_equal(harness_count(o.out, "./rank.sh 0 --peers 'HOST:{port.1},HOST:{port.2}' "), 2);
    assert_int_equal(harness_count(o.out, "./rank.sh 1 --peers 'HOST:{port.1},HOST:{port.2}' "), 2);
    assert_int_equal(harness_count(o.out, " & "), 6);
    assert_int_equal(harness_count(o.out, " & wait\n"), 2);
    AUTO_FREE char *script = NULL; /* a shell reads it as it is meant */
    assert_true(asprintf(&script, "#!/bin/sh -n\n%s", o.out) > 0);
    world_script(w, "read.sh", script);
    AUTO_OUTPUT struct harness_output read = harness_run((char *[]){ "/bin/sh", "-n", "read.sh", NULL }, HARNESS_MS);
    assert_int_equal(read.code, 0);
    write_app(w, RANKS("1", "1"));
    write_study(w, "0.6", "");
    AUTO_OUTPUT struct harness_output one = RUN(w, "run", "s.conf", "--dry-run");
    assert_int_equal(harness_count(one.out, "\n"), 1);
    assert_null(strchr(one.out, '&'));
}

static void a_count_that_counts_nothing_is_refused(void **state)
{
    const struct world *w = *state;
    static const struct {
        const char *name, *count, *knobs, *says;
    } rows[] = {
        { "the count's own name", "\"{roles.rank}\"", "\"roles.rank\": [2]", NULL },
        { "nearly", "\"{roles.rank}\"", "\"roles.rank\": [2], \"roles.ranks\": [2]",
          "/app.json'; did you mean 'roles.rank'?" },
        { "by a hyperparameter", "\"{lr}\"", "\"roles.rank\": [2]",
          "/app.json': give one the \"count\" \"{roles.rank}\", or leave it out" },
        { "by a number", "2", "\"roles.rank\": [2]", "'systemParameters.roles.rank' is the count of no role of '" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char roles[512], more[256];
        (void)snprintf(roles, sizeof roles, "\"rank\": { \"count\": %s, \"command\": [\"./rank.sh\", \"{index}\"] }",
                       rows[i].count);
        (void)snprintf(more, sizeof more, ", \"systemParameters\": { %s }", rows[i].knobs);
        write_app(w, roles);
        write_study(w, "1", more);
        AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf", "--dry-run");
        if (o.code != (rows[i].says ? 2 : 0) || (rows[i].says && !strstr(o.err, rows[i].says)))
            fail_msg("%s: exit %d: %s%s", rows[i].name, o.code, o.out, o.err);
    }
    harness_write(w->dir, "app.json", "{ \"kind\": \"command\", \"command\": [\"train\", \"{lr}\", \"{epochs}\"] }");
    AUTO_OUTPUT struct harness_output none = RUN(w, "run", "s.conf", "--dry-run");
    assert_int_equal(none.code, 2);
    assert_non_null(strstr(none.err, "is the count of no role of '"));
}

static void one_that_is_killed_takes_all_along_and_they_go_on_from_the_checkpoint(void **state)
{
    const struct world *w = *state;
    write_app(w, RANKS("3", "0"));
    write_study(w, "0.6", "");
    pid_t driver = START(w, -1, "run", "s.conf");
    wait_for(w, "pipetune.d/s/1/checkpoint/ring-4");
    kill_rank(w, 2);
    struct harness_output o = { .code = harness_exit_code(driver, 2 * HARNESS_MS), .out = "", .err = "" };
    expect_finished(&o, "1");
    harness_expect_rows("attempts", "pipetune.db", "SELECT number, outcome, first_epoch > 4 FROM attempts ORDER BY 1",
                        "1|killed|0 2|finished|1");
    harness_expect_rows("who it was", "pipetune.db",
                        "SELECT cause LIKE 'rank 2: killed from outside by signal 9 (KILL) after _ of 8 epochs, see "
                        "%/members/rank-2/log' FROM attempts WHERE number = 1",
                        "1");
    for (int i = 0; i < 3; i++)
        expect_starts(w, i, 2);
}

static void one_that_fails_is_a_failure_of_all_with_its_words(void **state)
{
    const struct world *w = *state;
    write_app(w, RANKS("3", "0"));
    write_study(w, "0.6", "");
    harness_write(w->dir, "fail-1", "");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    expect_finished(&o, "1");
    harness_expect_rows("attempts", "pipetune.db", "SELECT outcome, cause, exit_code FROM attempts ORDER BY number",
                        "failed|rank 1: exception: ValueError: no data here|3 finished||0");
}

static void a_killed_driver_meets_its_gang_again(void **state)
{
    const struct world *w = *state;
    write_app(w, PS RANKS("3", "0"));
    write_study(w, "0.6", "");
    pid_t driver = START(w, -1, "run", "s.conf");
    wait_for(w, "pipetune.d/s/1/checkpoint/ring-2");
    (void)kill(driver, SIGKILL);
    (void)harness_exit_code(driver, HARNESS_MS);
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    expect_finished(&o, "1");
    harness_expect_rows("attempts", "pipetune.db", "SELECT number, outcome FROM attempts", "1|finished");
    for (int i = 0; i < 3; i++)
        expect_starts(w, i, 1);
    assert_int_equal(running_ranks(w), 0);
}

/* One that died meanwhile ends the others, and all go again. */
static void what_became_of_one_without_a_driver_is_found(void **state)
{
    const struct world *w = *state;
    write_app(w, PS RANKS("2", "0"));
    write_study(w, "0.6", "");
    pid_t driver = START(w, -1, "run", "s.conf");
    wait_for(w, "pipetune.d/s/1/checkpoint/ring-2");
    (void)kill(driver, SIGKILL);
    (void)harness_exit_code(driver, HARNESS_MS);
    kill_rank(w, 1);
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    expect_finished(&o, "1");
    harness_expect_rows("attempts", "pipetune.db", "SELECT number, outcome FROM attempts ORDER BY 1",
                        "1|killed 2|finished");
    assert_int_equal(running_ranks(w), 0);
}

/* Whatever was on its way: all are started or none, and none twice. */
static void a_driver_may_be_killed_at_any_point(void **state)
{
    const struct world *w = *state;
    static const char *const points[] = { "launcher-spawned:1",  "launcher-ready:1",    "attempt-before-commit:1",
                                          "attempt-committed:1", "go-sent:1",           "epoch-before-commit:1",
                                          "epoch-committed:2",   "end-before-commit:1", "end-committed:1" };
    write_app(w, RANKS("2", "0"));
    write_study(w, "0.6", "");
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        (void)setenv("PIPETUNE_FAILPOINT", points[i], 1);
        AUTO_OUTPUT struct harness_output cut_off = RUN(w, "run", "s.conf");
        (void)unsetenv("PIPETUNE_FAILPOINT");
        AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
        if (cut_off.code != 128 + SIGKILL || o.code != 0)
            fail_msg("%s: exit %d, then %d: %s%s", points[i], cut_off.code, o.code, o.out, o.err);
        expect_finished(&o, "1");
        expect_starts(w, 0, 1), expect_starts(w, 1, 1);
        assert_int_equal(running_ranks(w), 0);
        (void)unlink("pipetune.db"), (void)unlink("starts-0"), (void)unlink("starts-1");
    }
}

static void an_interrupted_study_ends_its_gang(void **state)
{
    const struct world *w = *state;
    write_app(w, PS RANKS("3", "0"));
    write_study(w, "0.6", "");
    pid_t driver = START(w, -1, "run", "s.conf");
    wait_for(w, "pipetune.d/s/1/checkpoint/ring-3");
    (void)kill(driver, SIGINT);
    assert_int_equal(harness_exit_code(driver, HARNESS_MS), 130);
    assert_int_equal(running_ranks(w), 0);
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    expect_finished(&o, "1");
    harness_expect_rows("attempts", "pipetune.db", "SELECT outcome, first_epoch > 3 FROM attempts ORDER BY number",
                        "interrupted|0 finished|1");
}

static void gangs_at_once_have_ports_of_their_own(void **state)
{
    const struct world *w = *state;
    write_app(w, RANKS("\"{n}\"", "0"));
    write_study(w, "0.1, 0.2, 0.4, 0.6", ", \"systemParameters\": {}");
    AUTO_FREE char *config = harness_read(w->dir, "s.conf");
    char *end = strstr(config, "] }");
    AUTO_FREE char *more = NULL;
    assert_true(asprintf(&more, "%.*s], \"n\": [2, 3]%s", (int)(end - config), config, end + 1) > 0);
    harness_write(w->dir, "s.conf", more);
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    expect_finished(&o, "8");
    harness_expect_rows("as many as their points say", "pipetune.db",
                        "SELECT t.hyper LIKE '%\"n\": 3%', count(*) FROM members m JOIN trials t ON t.id = m.trial"
                        " GROUP BY 1 ORDER BY 1",
                        "0|8 1|12");
    harness_expect_rows("two at a time", "pipetune.db",
                        "SELECT count(*) > 0 FROM attempts a JOIN attempts b ON a.id < b.id"
                        " AND b.started_ms < a.ended_ms",
                        "1");
    harness_expect_rows("no port of two at once", "pipetune.db",
                        "SELECT count(*) FROM attempts a JOIN attempts b ON a.id < b.id AND b.started_ms < a.ended_ms"
                        " JOIN members m ON m.trial = a.trial JOIN members n ON n.trial = b.trial AND n.port = m.port",
                        "0");
}

static void what_never_fits_is_told_so(void **state)
{
    const struct world *w = *state;
    write_app(w, RANKS("3", "4096"));
    write_study(w, "0.6", "");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    assert_int_equal(o.code, 1);
    harness_expect_rows("why", "pipetune.db",
                        "SELECT state, reason LIKE 'its 3 processes never fit at once: they take 12288 CPUs and % GiB, "
                        "and the places that take trials have % CPUs in all; lower a count or cores, or add hosts to "
                        "''nodes''' FROM trials",
                        "infeasible|1");
    assert_int_equal(running_ranks(w), 0);
}

/* Two ranks with half of this machine's CPUs each, so that it has room for one such gang. */
static void write_wide(const struct world *w, const char *nap)
{
    char roles[512];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    (void)snprintf(roles, sizeof roles,
                   "\"rank\": { \"count\": %d, \"cores\": %ld, \"command\": [\"./rank.sh\", \"{index}\", \"--peers\", "
                   "\"{peers.rank}\", \"--nap\", \"%s\"] }",
                   cpus > 1 ? 2 : 1, cpus > 1 ? cpus / 2 : 1, nap);
    write_app(w, roles);
}

static void a_gang_waits_until_all_of_it_fits(void **state)
{
    const struct world *w = *state;
    write_wide(w, "0.05");
    write_study(w, "0.1, 0.2, 0.4", "");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    expect_finished(&o, "3");
    harness_expect_rows("one after the other", "pipetune.db",
                        "SELECT count(*) FROM attempts a JOIN attempts b ON a.id < b.id"
                        " AND b.started_ms < a.ended_ms",
                        "0");
}

/* --- beside other drivers ---------------------------------------------------------------------------------------------------- */

static void wait_for_rows(const char *sql)
{
    for (int i = 0; i < 800; i++) {
        AUTO_FREE char *rows = harness_ask("pipetune.db", sql);
        if (strcmp(rows, "1") == 0)
            return;
        (void)usleep(50000);
    }
    fail_msg("waited in vain for: %s", sql);
}

/* Both have gangs that take the whole machine. */
static void two_studies_take_turns(void **state)
{
    const struct world *w = *state;
    (void)setenv("PIPETUNE_ASK_MS", "100000", 1); /* neither may come to share */
    write_wide(w, "0.05");
    write_named(w, "a", "0.1, 0.2, 0.3, 0.4, 0.5, 0.6", "");
    write_named(w, "b", "0.1, 0.2, 0.3", "");
    pid_t a = START(w, -1, "run", "a.conf");
    wait_for(w, "pid-0");
    wait_for_rows("SELECT count(*) > 0 FROM epochs");
    pid_t b = START(w, -1, "run", "b.conf");
    assert_int_equal(harness_exit_code(b, 4 * HARNESS_MS), 0);
    assert_int_equal(harness_exit_code(a, 4 * HARNESS_MS), 0);
    harness_expect_rows("none at once", "pipetune.db",
                        "SELECT count(*) FROM attempts x JOIN attempts y ON x.id < y.id"
                        " AND x.started_ms < y.ended_ms AND y.started_ms < x.ended_ms",
                        "0");
    harness_expect_rows("each has its turn after one of the other's", "pipetune.db",
                        "SELECT group_concat(name, '') LIKE '%babab%' FROM (SELECT s.name FROM attempts a JOIN trials "
                        "t ON t.id = a.trial"
                        " JOIN studies s ON s.id = t.study ORDER BY a.started_ms)",
                        "1");
}

static void what_is_met_again_has_its_cpus_for_itself(void **state)
{
    const struct world *w = *state;
    (void)setenv("PIPETUNE_ASK_MS", "100000", 1);
    write_wide(w, "0.05");
    write_named(w, "a", "0.1", "");
    write_named(w, "b", "0.2", "");
    pid_t a = START(w, -1, "run", "a.conf");
    wait_for(w, "pid-0");
    (void)kill(a, SIGKILL);
    (void)harness_exit_code(a, HARNESS_MS);
    a = START(w, -1, "run", "a.conf");
    wait_for_rows("SELECT count(*) > 0 FROM epochs");
    pid_t b = START(w, -1, "run", "b.conf");
    assert_int_equal(harness_exit_code(a, 2 * HARNESS_MS), 0);
    assert_int_equal(harness_exit_code(b, 2 * HARNESS_MS), 0);
    harness_expect_rows(
        "one after the other", "pipetune.db",
        "SELECT count(*), sum(x.ended_ms <= y.started_ms) FROM attempts x JOIN attempts y ON x.id < y.id", "1|1");
}

/* A process that has CPUs, the first of this machine's, and says nothing of itself. */
static pid_t hold_cpus(int n)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        cpu_set_t all;
        struct leases *l = leases_of_cpus();
        bool ok = l && sched_getaffinity(0, sizeof all, &all) == 0;
        for (int cpu = 0, had = 0; ok && cpu < CPU_SETSIZE && had < n; cpu++)
            if (CPU_ISSET((size_t)cpu, &all))
                ok = leases_hold(l, cpu), had++;
        (void)!write(ready[1], ok ? "y" : "n", 1);
        for (;;)
            (void)pause();
    }
    char byte = 0;
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    assert_int_equal(byte, 'y');
    return pid;
}

static void expect_text(const char *text, const char *want)
{
    if (!strstr(text, want))
        fail_msg("want '%s' in: %s", want, text);
}

static void one_that_has_waited_long_enough_shares(void **state)
{
    const struct world *w = *state;
    static const struct {
        int held;
        const char *says;
    } rows[] = { { 1, "waits for CPUs of this machine that another driver has (%s)" },
                 { 1000, "waits for a CPU: all of this machine are other drivers' (%s)" } };
    (void)setenv("PIPETUNE_ASK_MS", "700", 1);
    write_wide(w, "0.05");
    write_study(w, "0.1", "");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char who[96], want[200];
        pid_t other = hold_cpus(rows[i].held);
        (void)snprintf(who, sizeof who, "process %ld of user %ld", (long)other, (long)geteuid());
        AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
        (void)kill(other, SIGKILL);
        (void)waitpid(other, NULL, 0);
        expect_finished(&o, "1");
        (void)snprintf(want, sizeof want, rows[i].says, who);
        expect_text(o.out, want);
        (void)snprintf(want, sizeof want, "shares its CPUs with %s: nothing is learnt of it meanwhile", who);
        expect_text(o.out, want);
        if (strstr(o.out, "for itself again"))
            fail_msg("it never had them: %s", o.out);
        (void)unlink("pipetune.db");
    }
}

static void one_that_shares_is_given_its_own_when_all_of_it_can_be(void **state)
{
    const struct world *w = *state;
    (void)setenv("PIPETUNE_ASK_MS", "300", 1);
    write_wide(w, "0.3");
    write_study(w, "0.1", "");
    pid_t other = hold_cpus(1);
    AUTO_CLOSE int fd = open("out", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    pid_t driver = START(w, fd, "run", "s.conf");
    wait_for(w, "pid-0");
    wait_for_rows("SELECT count(*) > 1 FROM epochs");
    (void)kill(other, SIGKILL);
    (void)waitpid(other, NULL, 0);
    assert_int_equal(harness_exit_code(driver, 2 * HARNESS_MS), 0);
    AUTO_FREE char *text = harness_read(w->dir, "out");
    expect_text(text, "has its CPUs for itself again");
}

/* Whatever call fails in the driver or in a launcher: it ends with a reason or goes on, and the next run ends the study well. */
static void calls_that_fail_lose_nothing(void **state)
{
    const struct world *w = *state;
    static const struct {
        const char *program, *kind;
        unsigned first, step, n;
    } rows[] = {
        { "pipetune", "malloc", 900, 331, 3 },   { "pipetune", "write", 1, 5, 2 },     { "pipetune", "mkdir", 3, 1, 2 },
        { "pipetune-node", "malloc", 20, 9, 2 }, { "pipetune-node", "open", 2, 3, 2 },
    };
    bool own_memory = false;
#if defined(__SANITIZE_ADDRESS__) /* memory is its own, and its runtime would have to be loaded before faults.so */
    own_memory = true;
    (void)setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
#endif
    AUTO_FREE char *preload = harness_program("tests/faults.so");
    write_app(w, PS RANKS("2", "0"));
    write_study(w, "0.6", "");
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
            expect_finished(&again, "1");
            assert_int_equal(running_ranks(w), 0);
            (void)unlink("pipetune.db");
        }
}

/* --- on hosts ---------------------------------------------------------------------------------------------------------------- */

/* Each rank takes a machine: here, if `local`, and on hosts. */
static void write_on_hosts(const struct world *w, const char *hosts, const char *local, const char *count)
{
    char roles[512], more[1024] = "";
    (void)snprintf(roles, sizeof roles,
                   "\"rank\": { \"count\": %s, \"cores\": %ld, \"command\": [\"./rank.sh\", \"{index}\", \"--peers\", "
                   "\"{peers.rank}\", \"--nap\", \"0.2\"] }",
                   count, sysconf(_SC_NPROCESSORS_ONLN));
    (void)snprintf(more, sizeof more,
                   ", \"nodes\": [%s],\n  \"places\": { \"local\": \"%s\", \"address\": \"127.0.0.1\", "
                   "\"lost_seconds\": 1 }",
                   hosts, local);
    write_app(w, roles);
    write_study(w, "0.6", more);
}
#define HOST(name) "{ \"host\": \"" name "\", \"address\": \"127.0.0.1\" }"

static void ranks_are_here_and_on_hosts(void **state)
{
    const struct world *w = *state;
    write_on_hosts(w, HOST("a") ", " HOST("b"), "yes", "3");
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    expect_finished(&o, "1");
    harness_expect_rows("places", "pipetune.db", "SELECT coalesce(place, 'here') FROM members ORDER BY 1", "a b here");
    harness_expect_rows("at once", "pipetune.db", "SELECT count(*) FROM attempts", "1");
    AUTO_OUTPUT struct harness_output left =
        harness_run((char *[]){ "/bin/sh", "-c", "ls home-a/.local/state/pipetune home-b/.local/state/pipetune", NULL },
                    HARNESS_MS);
    assert_string_equal(left.out, "home-a/.local/state/pipetune:\nfiles\n\nhome-b/.local/state/pipetune:\nfiles\n");
}

/* Its helper is gone, with all that runs there, and another one cannot be reached. */
static void kill_host(const struct world *w, const char *host)
{
    pid_t pids[64];
    char mark[64], file[64], text[8192];
    (void)snprintf(file, sizeof file, "dead-%s", host);
    harness_write(w->dir, file, "");
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

static void a_host_that_is_lost_ends_all_and_they_go_on_elsewhere(void **state)
{
    const struct world *w = *state;
    write_on_hosts(w, HOST("a") ", " HOST("b") ", " HOST("c"), "no", "2");
    pid_t driver = START(w, -1, "run", "s.conf");
    wait_for(w, "pipetune.d/s/1/members/rank-1/heard");
    for (int i = 0; i < 400; i++) {
        AUTO_FREE char *rows = harness_ask("pipetune.db", "SELECT count(*) > 3 FROM epochs");
        if (strcmp(rows, "1") == 0)
            break;
        (void)usleep(50000);
    }
    AUTO_FREE char *host = harness_ask("pipetune.db", "SELECT place FROM members WHERE number = 1");
    kill_host(w, host);
    struct harness_output o = { .code = harness_exit_code(driver, 3 * HARNESS_MS), .out = "", .err = "" };
    expect_finished(&o, "1");
    harness_expect_rows("attempts", "pipetune.db",
                        "SELECT number, outcome, first_epoch > 1, coalesce(cause LIKE 'rank 1: its host ''_'' %', 0)"
                        " FROM attempts ORDER BY 1",
                        "1|interrupted|0|1 2|finished|1|0");
    AUTO_FREE char *sql = NULL;
    assert_true(asprintf(&sql, "SELECT count(*) FROM members WHERE attempt = 2 AND place = '%s'", host) > 0);
    harness_expect_rows("not on the lost one", "pipetune.db", sql, "0");
}

static void a_killed_driver_meets_its_gang_on_hosts_again(void **state)
{
    const struct world *w = *state;
    write_on_hosts(w, HOST("a") ", " HOST("b"), "yes", "3");
    pid_t driver = START(w, -1, "run", "s.conf");
    wait_for(w, "starts-2");
    for (int i = 0; i < 400; i++) {
        AUTO_FREE char *rows = harness_ask("pipetune.db", "SELECT count(*) > 1 FROM epochs");
        if (strcmp(rows, "1") == 0)
            break;
        (void)usleep(50000);
    }
    (void)kill(driver, SIGKILL);
    (void)harness_exit_code(driver, HARNESS_MS);
    AUTO_OUTPUT struct harness_output o = RUN(w, "run", "s.conf");
    expect_finished(&o, "1");
    harness_expect_rows("attempts", "pipetune.db", "SELECT number, outcome FROM attempts", "1|finished");
    for (int i = 0; i < 3; i++)
        expect_starts(w, i, 1);
}

#define GANG_TEST(f) cmocka_unit_test_setup_teardown(f, open_gangs, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GANG_TEST(ranks_train_one_model),
        GANG_TEST(a_dry_run_shows_all_processes),
        GANG_TEST(a_count_that_counts_nothing_is_refused),
        GANG_TEST(one_that_is_killed_takes_all_along_and_they_go_on_from_the_checkpoint),
        GANG_TEST(one_that_fails_is_a_failure_of_all_with_its_words),
        GANG_TEST(a_killed_driver_meets_its_gang_again),
        GANG_TEST(what_became_of_one_without_a_driver_is_found),
        GANG_TEST(a_driver_may_be_killed_at_any_point),
        GANG_TEST(an_interrupted_study_ends_its_gang),
        GANG_TEST(gangs_at_once_have_ports_of_their_own),
        GANG_TEST(what_never_fits_is_told_so),
        GANG_TEST(a_gang_waits_until_all_of_it_fits),
        GANG_TEST(two_studies_take_turns),
        GANG_TEST(what_is_met_again_has_its_cpus_for_itself),
        GANG_TEST(one_that_has_waited_long_enough_shares),
        GANG_TEST(one_that_shares_is_given_its_own_when_all_of_it_can_be),
        GANG_TEST(calls_that_fail_lose_nothing),
        GANG_TEST(ranks_are_here_and_on_hosts),
        GANG_TEST(a_host_that_is_lost_ends_all_and_they_go_on_elsewhere),
        GANG_TEST(a_killed_driver_meets_its_gang_on_hosts_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
