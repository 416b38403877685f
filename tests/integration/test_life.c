/* Trials that are paused, gone on with and stopped, at random (tests/stop_shuffle.c) and by `curves`, while drivers are killed at every point of
 * that, and at any moment: no epoch is trained twice, and the search goes on as in a run that nobody disturbed. PIPETUNE_LIFE_KEEP leaves the
 * folders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "core/rng.h"
#include "tests/integration/harness.h"

enum { LANES = 6, LIMIT_MS = 60000, TRIALS = 5, EPOCHS = 4, TRIALS_MAX = 10 };

#define STUDY                                                                                                          \
    "{ \"bigdlConf\": \"bigdl.json\",\n"                                                                               \
    "  \"study\": { \"name\": \"life\", \"epochs\": 4, \"max_trials\": 5, \"seed\": 4, \"parallel\": 1 },\n"           \
    "  \"search\": { \"algorithm\": \"random\", \"stop\": \"shuffle\" },\n"                                            \
    "  \"hyperParameters\": { \"batch_size\": [64, 128, 256], \"learning_rate\": [0.1, 0.2, 0.3] } }\n"

/* Ranges: `auto` and `curves`. */
#define CURVES                                                                                                         \
    "{ \"bigdlConf\": \"bigdl.json\",\n"                                                                               \
    "  \"study\": { \"name\": \"life\", \"epochs\": 4, \"max_trials\": 10, \"seed\": %llu, \"parallel\": %d },\n"      \
    "  \"hyperParameters\": { \"batch_size\": [64, 128, 256],\n"                                                       \
    "                         \"learning_rate\": { \"min\": 0.01, \"max\": 1, \"scale\": \"log\" } } }\n"

struct lab {
    char *dir, *program, *config;
    bool sessions;
};

/* One study, over all the runs that it takes; in a process of its own, where nothing of cmocka may be called that can fail. */
struct life {
    const struct lab *lab;
    char *dir;
    const char *what;
    char *config; /* NULL: the lab's */
    int trials;   /* 0: TRIALS */
};

static _Noreturn void give_up(const struct life *l, const char *why)
{
    AUTO_FREE char *out = harness_read(l->dir, "out");
    fprintf(stderr, "%s, %s (%s): %s\n%s\n", l->lab->sessions ? "sessions" : "submissions", l->what, l->dir, why,
            out ? out : "");
    _exit(1);
}

static pid_t start(const struct life *l, const char *const *words)
{
    char *argv[16] = { l->lab->program, (char *)"run", (char *)"--config", l->config ? l->config : l->lab->config };
    for (size_t n = 4; words && *words && n < 15; words++)
        argv[n++] = (char *)(uintptr_t)*words;
    harness_set_path("PIPETUNE_STORE", l->dir, "pipetune.db");
    harness_set_path("FAKE_COUNT_FILE", l->dir, "count");
    AUTO_FREE char *path = harness_path(l->dir, "out");
    AUTO_CLOSE int out = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    return harness_spawn(argv, out, out);
}

static int end_of(const struct life *l, pid_t pid)
{
    int how = 0;
    for (int ms = 0; waitpid(pid, &how, WNOHANG) != pid; ms += 5) {
        if (ms > LIMIT_MS) {
            (void)kill(pid, SIGKILL);
            give_up(l, "a driver does not end");
        }
        (void)poll(NULL, 0, 5);
    }
    return WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
}

static void run_to_the_end(const struct life *l, const char *const *words)
{
    char why[64];
    int code = end_of(l, start(l, words));
    (void)snprintf(why, sizeof why, "a driver failed: exit %d", code);
    if (code != 0)
        give_up(l, why);
}

static char *ask(const struct life *l, const char *sql)
{
    AUTO_FREE char *store = harness_path(l->dir, "pipetune.db");
    return harness_ask(store, sql);
}

static void expect(const struct life *l, const char *sql, const char *want)
{
    AUTO_FREE char *got = ask(l, sql);
    char text[512];
    if (strcmp(got, want) == 0)
        return;
    (void)snprintf(text, sizeof text, "%s: got '%s', want '%s'", sql, got, want);
    give_up(l, text);
}

/* What the search did, in its order. */
static char *story(const struct life *l)
{
    return ask(l, "SELECT kind, trial, CASE WHEN kind IN ('pause', 'stop') THEN reason END FROM decisions"
                  " WHERE kind IN ('propose', 'resume', 'pause', 'stop') ORDER BY seq");
}

/* An epoch that was under way when the attempt was ended, after the one at whose end it was to be: that one is lost, not paid. */
static bool was_under_way(const struct life *l, long trial, long attempt, int epoch)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM attempts a JOIN trials t ON t.id = a.trial WHERE t.number = %ld"
                   " AND a.number = %ld AND a.ends_at BETWEEN 1 AND %d",
                   trial, attempt, epoch - 1);
    AUTO_FREE char *n = ask(l, sql);
    return strcmp(n, "1") == 0;
}

/* Each epoch at most once: "trained TAG EPOCH", where a tag ends with -TRIAL-ATTEMPT or -tTRIAL-ATTEMPT. */
static void check_paid_once(const struct life *l)
{
    long by[TRIALS_MAX + 1][EPOCHS + 1] = { { 0 } };
    AUTO_FREE char *text = harness_read(l->dir, "count");
    char *save = NULL, tag[96];
    int epoch = 0;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (sscanf(line, "trained %95s %d", tag, &epoch) != 2)
            continue;
        char *attempt = strrchr(tag, '-');
        *attempt++ = '\0';
        char *trial = strrchr(tag, '-') + 1;
        long n = strtol(trial + (*trial == 't'), NULL, 10);
        if (n < 1 || n > TRIALS_MAX || epoch < 1 || epoch > EPOCHS)
            give_up(l, "a line that cannot be");
        if (by[n][epoch] && !was_under_way(l, n, by[n][epoch], epoch))
            give_up(l, "an epoch was trained twice");
        by[n][epoch] = strtol(attempt, NULL, 10);
    }
}

/* What holds of every study that was run to its end. */
static void check_whole(const struct life *l)
{
    char trials[16];
    (void)snprintf(trials, sizeof trials, "%d", l->trials ? l->trials : TRIALS);
    check_paid_once(l);
    expect(l, "SELECT state FROM studies", "finished");
    expect(l, "SELECT count(*) FROM trials WHERE state NOT IN ('finished', 'stopped')", "0");
    expect(l, "SELECT count(*) FROM trials", trials);
    expect(l, "SELECT count(*) FROM attempts WHERE state != 'ended'", "0");
    expect(l, "SELECT count(*) FROM trials WHERE state = 'stopped' AND reason NOT LIKE 'after % epoch%'", "0");
    /* without holes, and what is finished has all of them */
    expect(l,
           "SELECT count(*) FROM trials t WHERE (SELECT max(epoch) - count(*) FROM epochs WHERE trial = t.id) != 0"
           " OR (state = 'finished') != ((SELECT count(*) FROM epochs WHERE trial = t.id) = 4)",
           "0");
}

/* --- cases: each in a process of its own ------------------------------------------------------------------------------ */

enum { SAME = 0, OTHERWISE = 2, NO_PASS = 3, TRIES = 4 };

typedef int life_case(const struct life *l, const void *arg); /* its exit code */

struct lanes {
    int running, failed, codes[256];
};

static void reap(struct lanes *n)
{
    int how = 0;
    if (wait(&how) < 0)
        return;
    n->running--;
    int code = WIFEXITED(how) ? WEXITSTATUS(how) : 1;
    n->failed += code == 1;
    n->codes[code & 255]++;
}

/* One that the machine's business has made another one is tried again: it shows nothing. */
static void begin(struct lanes *n, const struct lab *lab, const char *what, life_case *run, const void *arg)
{
    static int number;
    char name[32];
    (void)snprintf(name, sizeof name, "life-%d", ++number);
    if (n->running == LANES)
        reap(n);
    n->running++;
    fflush(NULL);
    if (fork() != 0)
        return;
    harness_own_leases();
    int code = OTHERWISE;
    for (int i = 0; i < TRIES && code == OTHERWISE; i++) {
        char path[48];
        (void)snprintf(path, sizeof path, "%s-%d", name, i);
        struct life l = { .lab = lab, .dir = harness_path(lab->dir, path), .what = what };
        (void)mkdir(l.dir, 0777);
        code = run(&l, arg);
        if (code != 1 && !getenv("PIPETUNE_LIFE_KEEP"))
            harness_remove(l.dir);
    }
    _exit(code);
}

static void end(struct lanes *n)
{
    while (n->running > 0)
        reap(n);
    if (n->failed)
        fail_msg("%d cases failed", n->failed);
}

/* --- at each point ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    unsigned from, step, most;
} points[] = {
    { "epoch-before-commit", 1, 2, 6 },
    { "epoch-committed", 1, 2, 6 },
    { "end-before-commit", 1, 2, 4 },
    { "end-committed", 1, 2, 4 },
    { "resume-before-commit", 1, 1, 2 },
    { "resume-committed", 1, 1, 2 },
    { "end-said", 1, 1, 2 },
    { "end-due", 1, 1, 2 },
    { "attempt-committed", 2, 2, 4 },
    { "store-committed", 8, 13, 50 },
};

struct point {
    char text[64];
    const char *calm; /* the story of a study that nobody disturbed */
};

/* While no driver is there a trial trains on: then it was ended later than it would have been, and what came of that may differ. */
static bool trained_further(const struct life *l)
{
    AUTO_FREE char *n = ask(l, "SELECT count(*) FROM attempts a WHERE ends_at > 0 AND ends_at < (SELECT max(epoch) FROM"
                               " epochs e WHERE e.trial = a.trial AND e.attempt = a.number)");
    return strcmp(n, "0") != 0;
}

static int die_at(const struct life *l, const void *arg)
{
    const struct point *p = arg;
    (void)setenv("PIPETUNE_FAILPOINT", p->text, 1);
    int code = end_of(l, start(l, NULL));
    (void)unsetenv("PIPETUNE_FAILPOINT");
    if (code != 0 && code != 128 + SIGKILL)
        give_up(l, "the driver failed");
    if (code != 0)
        run_to_the_end(l, NULL);
    check_whole(l);
    AUTO_FREE char *told = story(l);
    bool same = strcmp(told, p->calm) == 0;
    if (!same && !trained_further(l)) {
        fprintf(stderr, "got  %s\nwant %s\n", told, p->calm);
        give_up(l, "the search went another way");
    }
    return code == 0 ? NO_PASS : same ? SAME : OTHERWISE;
}

/* On a busy machine a trial may get further than it was to: then it is no measure for others. */
static char *calm_story(const struct lab *lab)
{
    enum { CALM_TRIES = 8 };
    struct life l = { .lab = lab, .what = "undisturbed" };
    for (int i = 0; i == 0 || trained_further(&l); i++) {
        char name[16];
        assert_true(i < CALM_TRIES);
        (void)snprintf(name, sizeof name, "calm-%d", i);
        free(l.dir);
        l.dir = harness_path(lab->dir, name);
        assert_int_equal(mkdir(l.dir, 0777), 0);
        run_to_the_end(&l, NULL);
        check_whole(&l);
    }
    char *told = story(&l);
    static const char *const kinds[] = { "pause|", "resume|", "stop|" };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (!strstr(told, kinds[i]))
            fail_msg("nothing of '%s' in: %s", kinds[i], told);
    harness_remove(l.dir);
    return told;
}

static void drivers_killed_at_each_point_go_on_as_if_nothing_had_been(void **state)
{
    AUTO_FREE char *calm = calm_story(*state);
    struct lanes lanes = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(points); i++)
        for (unsigned nth = points[i].from; nth <= points[i].most; nth += points[i].step) {
            struct point p = { .calm = calm };
            (void)snprintf(p.text, sizeof p.text, "%s:%u", points[i].name, nth);
            begin(&lanes, *state, p.text, die_at, &p);
        }
    end(&lanes);
    print_message("%d went on alike, %d were ended later, %d never came there\n", lanes.codes[SAME],
                  lanes.codes[OTHERWISE], lanes.codes[NO_PASS]);
    assert_true(lanes.codes[SAME] > 2 * lanes.codes[OTHERWISE]);
}

/* --- at any moment, several trials at once ----------------------------------------------------------------------------- */

static int die_at_random(const struct life *l, const void *arg)
{
    struct rng rng = rng_seeded(*(const uint64_t *)arg);
    const char *const words[] = { "--parallel", "3", NULL };
    for (int kills = 0; kills < 4; kills++) {
        pid_t pid = start(l, words);
        (void)poll(NULL, 0, 200 + (int)rng_below(&rng, 1500));
        (void)kill(pid, SIGKILL);
        int code = end_of(l, pid);
        if (code != 0 && code != 128 + SIGKILL)
            give_up(l, "the driver failed");
        if (code == 0)
            break;
    }
    run_to_the_end(l, words);
    check_whole(l);
    return SAME;
}

static void drivers_killed_at_random_moments_pay_no_epoch_twice(void **state)
{
    struct lanes lanes = { 0 };
    for (uint64_t seed = 1; seed <= 8; seed++)
        begin(&lanes, *state, "random kills", die_at_random, &seed);
    end(&lanes);
}

/* --- `curves` at any moment: its proposals are those of a search that nobody disturbed and that was told the same ------------- */

enum { KILLS = 12, KILLED_STUDIES = 10, KILLS_CODE = 100 };

struct killed {
    uint64_t seed;
    int parallel, kills;
};

static bool proposes_alike(const struct life *l)
{
    AUTO_FREE char *tool = harness_program("tests/integration/search-again");
    AUTO_FREE char *store = harness_path(l->dir, "pipetune.db");
    AUTO_FREE char *path = harness_path(l->dir, "out");
    AUTO_CLOSE int out = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    char study[] = "life";
    return end_of(l, harness_spawn((char *[]){ tool, store, study, NULL }, out, out)) == 0;
}

/* Beside the config of one study. */
static void copy_application(const struct life *l)
{
    AUTO_FREE char *application = harness_read(l->lab->dir, "bigdl.json");
    harness_write(l->dir, "bigdl.json", application);
    harness_write(l->dir, "app.py", "");
}

static struct life curves_life(const struct life *l, const struct killed *k)
{
    char text[1024];
    struct life mine = *l;
    (void)snprintf(text, sizeof text, CURVES, (unsigned long long)k->seed, k->parallel);
    harness_write(l->dir, "curves.json", text);
    mine.config = harness_path(l->dir, "curves.json");
    mine.trials = TRIALS_MAX;
    copy_application(l);
    return mine;
}

/* Says how often it was killed: a study may be over before. */
static int kill_curves(const struct life *l, const void *arg)
{
    const struct killed *k = arg;
    struct rng rng = rng_seeded(k->seed);
    struct life mine = curves_life(l, k);
    int kills = 0;
    (void)setenv("FAKE_EPOCH_MS", "100", 1);
    for (int code = 1; kills < k->kills && code != 0; kills += code != 0) {
        pid_t pid = start(&mine, NULL);
        (void)poll(NULL, 0, 20 + (int)rng_below(&rng, 600));
        (void)kill(pid, SIGKILL);
        code = end_of(&mine, pid);
        if (code != 0 && code != 128 + SIGKILL)
            give_up(&mine, "the driver failed");
    }
    run_to_the_end(&mine, NULL);
    check_whole(&mine);
    if (!proposes_alike(&mine))
        give_up(&mine, "the search went another way than by what it was told");
    free(mine.config);
    return KILLS_CODE + kills;
}

/* The tool that compares finds what differs. */
static int tell_curves_otherwise(const struct life *l, const void *arg)
{
    struct life mine = curves_life(l, arg);
    (void)setenv("FAKE_EPOCH_MS", "50", 1);
    run_to_the_end(&mine, NULL);
    check_whole(&mine);
    if (!proposes_alike(&mine))
        give_up(&mine, "the search went another way than by what it was told");
    expect(&mine, "SELECT count(*) > 0 FROM decisions WHERE kind = 'resume'", "1");
    AUTO_FREE char *none = ask(&mine, "UPDATE tells SET value = 1 - value WHERE kind = 1");
    (void)none;
    if (proposes_alike(&mine))
        give_up(&mine, "other values are taken for the same");
    free(mine.config);
    return SAME;
}

static void curves_killed_at_any_moment_propose_as_by_the_same_reports(void **state)
{
    struct lanes lanes = { 0 };
    const struct killed calm = { .seed = 1, .parallel = 1 };
    begin(&lanes, *state, "curves, undisturbed", tell_curves_otherwise, &calm);
    for (uint64_t seed = 1; seed <= KILLED_STUDIES; seed++) {
        struct killed k = { .seed = seed, .parallel = 1 + (int)(seed % 2), .kills = KILLS };
        begin(&lanes, *state, "curves, killed", kill_curves, &k);
    }
    end(&lanes);
    int kills = 0;
    for (int n = 0; n <= KILLS; n++)
        kills += n * lanes.codes[KILLS_CODE + n];
    print_message("%d kills\n", kills);
    assert_true(kills >= 100); /* and as many of the other kind of launches */
}

/* --- users, old sessions, old stores ------------------------------------------------------------------------------------- */

static int interrupt_and_go_on(const struct life *l, const void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) {
        pid_t pid = start(l, NULL);
        (void)poll(NULL, 0, 900);
        (void)kill(pid, SIGINT);
        int code = end_of(l, pid);
        if (code != 130 && code != 0)
            give_up(l, "an interrupted driver says otherwise");
    }
    run_to_the_end(l, NULL);
    expect(l, "SELECT count(*) FROM trials WHERE state NOT IN ('finished', 'stopped')", "0");
    return SAME;
}

/* It ends only as a whole: another one is started. */
static int serve_by_an_old_session(const struct life *l, const void *arg)
{
    (void)arg;
    (void)setenv("FAKE_FAIL", "session-old", 1);
    run_to_the_end(l, NULL);
    check_whole(l);
    return SAME;
}

static int stop_what_is_worse(const struct life *l, const void *arg)
{
    (void)arg;
    const char *const words[] = { "--stop", "median", "--algorithm", "grid", NULL };
    run_to_the_end(l, words);
    check_whole(l);
    expect(l, "SELECT number FROM trials WHERE reason LIKE 'after 1 epoch: % the median of 3 others was %'", "4");
    expect(l, "SELECT count(*) FROM decisions WHERE kind = 'stop' AND trial = 4", "1");
    return SAME;
}

/* Rungs at epochs 1, 2 and 4. What waits there is stopped when nothing is left. */
static int halve(const struct life *l, const void *arg)
{
    (void)arg;
    const char *const words[] = { "--stop", "halving", "--eta", "2", "--algorithm", "tpe", NULL };
    run_to_the_end(l, words);
    check_whole(l);
    if (trained_further(l)) /* to the next rung: then others are the best there */
        return OTHERWISE;
    expect(l, "SELECT count(*) FROM trials WHERE state = 'finished'", "1");
    expect(l, "SELECT count(*) FROM trials WHERE state = 'stopped' AND reason LIKE 'after % epoch%'", "4");
    expect(l, "SELECT count(*) > 0 FROM decisions WHERE kind = 'resume'", "1");
    return SAME;
}

/* All CPUs are one trial's: a search that learns is asked for the next when that is about to end, and knows what it came to. */
static int ask_late(const struct life *l, const void *arg)
{
    (void)arg;
    struct life mine = *l;
    harness_write(
        l->dir, "late.json",
        "{ \"bigdlConf\": \"bigdl.json\", \"systemParameters\": { \"cores\": [4096] },\n"
        "  \"study\": { \"name\": \"life\", \"epochs\": 4, \"max_trials\": 10 },\n"
        "  \"hyperParameters\": { \"batch_size\": [128], \"learning_rate\": { \"min\": 0.01, \"max\": 1 } } }\n");
    mine.config = harness_path(l->dir, "late.json");
    mine.trials = TRIALS_MAX;
    (void)setenv("FAKE_EPOCH_MS", "250", 1);
    copy_application(l);
    run_to_the_end(&mine, NULL);
    check_whole(&mine);
    expect(&mine, "SELECT count(*) FROM trials WHERE ask_seq < (SELECT min(seq) FROM tells)", "1");
    free(mine.config);
    return SAME;
}

static void whoever_ends_it_is_told_and_nothing_is_lost(void **state)
{
    const struct lab *lab = *state;
    struct lanes lanes = { 0 };
    begin(&lanes, lab, "the median", stop_what_is_worse, NULL);
    begin(&lanes, lab, "halving", halve, NULL);
    begin(&lanes, lab, "asked late", ask_late, NULL);
    begin(&lanes, lab, "interrupted", interrupt_and_go_on, NULL);
    if (lab->sessions)
        begin(&lanes, lab, "old sessions", serve_by_an_old_session, NULL);
    end(&lanes);
}

/* --- set-up -------------------------------------------------------------------------------------------------------------- */

static int set_up_with(void **state, bool sessions)
{
    struct lab *l = calloc(1, sizeof *l);
    if (!l)
        return -1;
    l->dir = harness_dir();
    l->program = harness_program("pipetune");
    l->config = harness_path(l->dir, "study.json");
    l->sessions = sessions;
    harness_lab(l->dir, sessions ? " \"session\": true," : "");
    harness_write(l->dir, "study.json", STUDY);
    (void)setenv("FAKE_EPOCH_MS", "250", 1);
    (void)setenv("FAKE_ITERATIONS", "8", 1);
    (void)setenv("FAKE_START_MS", "0", 1);
    *state = l;
    return 0;
}

static int set_up_submissions(void **state)
{
    return set_up_with(state, false);
}

static int set_up_sessions(void **state)
{
    return set_up_with(state, true);
}

static int tear_down(void **state)
{
    struct lab *l = *state;
    if (!getenv("PIPETUNE_LIFE_KEEP"))
        harness_remove(MOVE_PTR(l->dir));
    free(l->dir);
    free(l->program);
    free(l->config);
    free(l);
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(drivers_killed_at_each_point_go_on_as_if_nothing_had_been),
    cmocka_unit_test(drivers_killed_at_random_moments_pay_no_epoch_twice),
    cmocka_unit_test(curves_killed_at_any_moment_propose_as_by_the_same_reports),
    cmocka_unit_test(whoever_ends_it_is_told_and_nothing_is_lost),
};

/* Both beside each other: they mostly wait. */
/* --- what a search is told --- */

/* Three epochs of it, whose figures have names of its own. */
#define TRAIN                                                                                                          \
    "#!/bin/sh\n"                                                                                                      \
    "for e in 1 2 3; do i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done\n"                                         \
    "echo \"epoch $e: f1 0.$e perplexity $e.5 val_accuracy 0.9\"; done\n"
#define PATTERN                                                                                                        \
    "epoch (?<epoch>\\\\d+): f1 (?<f1>\\\\S+) perplexity (?<perplexity>\\\\S+) val_accuracy (?<val_accuracy>\\\\S+)"

static void expect_heard(struct world *w, const char *more, const char *want)
{
    char text[1024];
    world_script(w, "train.sh", TRAIN);
    harness_write(w->dir, "s.json", "{ \"command\": [\"./train.sh\"], \"progress\": [\"" PATTERN "\"] }");
    (void)snprintf(text, sizeof text,
                   "{ \"application\": \"s.json\", \"search\": { \"stop\": \"listen\" }, %s\n"
                   "  \"study\": { \"name\": \"s\", \"epochs\": 3, \"metric\": \"f1\" },\n"
                   "  \"systemParameters\": { \"cores\": [1] }, \"hyperParameters\": { \"lr\": [0.1] } }\n",
                   more);
    harness_write(w->dir, "s.conf", text);
    struct harness_output o = RUN(w, "run", "--config", "s.conf");
    if (o.code != 0)
        fail_msg("got exit %d, %s%s", o.code, o.out, o.err);
    harness_output_done(&o);
    harness_expect_rows("what it heard", "pipetune.db", "SELECT reason FROM decisions WHERE kind = 'stop'", want);
}

static void a_search_is_told_every_figure_by_its_name(void **state)
{
    expect_heard(*state, "", "f1 0.2, perplexity 2.5, val_accuracy 0.9, accuracy 0.9; joules not known");
}

/* By the one meter that any machine has. */
static void a_search_is_told_what_a_trial_has_spent(void **state)
{
    expect_heard(*state, "\"monitoring\": { \"interval\": 0.1, \"meters\": \"estimate\" },",
                 "f1 0.2, perplexity 2.5, val_accuracy 0.9, accuracy 0.9; joules known");
}

static const struct CMUnitTest heard[] = {
    cmocka_unit_test_setup_teardown(a_search_is_told_what_a_trial_has_spent, world_open, world_close),
    cmocka_unit_test_setup_teardown(a_search_is_told_every_figure_by_its_name, world_open, world_close),
};

int main(void)
{
    if (fork() == 0)
        return cmocka_run_group_tests_name("what a search is told", heard, NULL, NULL);
    static int (*const set_ups[])(void **) = { set_up_submissions, set_up_sessions };
    int failed = 0, how = 0;
    for (size_t i = 0; i < ARRAY_LEN(set_ups); i++)
        if (fork() == 0) /* a process of its own: its cases are its only children */
            return cmocka_run_group_tests_name(i ? "in sessions" : "by submission", tests, set_ups[i], tear_down);
    for (size_t i = 0; i <= ARRAY_LEN(set_ups); i++)
        failed |= wait(&how) < 0 || !WIFEXITED(how) || WEXITSTATUS(how) != 0;
    return failed;
}
