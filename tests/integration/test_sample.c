/* `pipetune-node serve` sampling real processes: what they did is what it tells, for as long as it was asked, however it is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "base/strv.h"
#include "monitoring/features.h"
#include "monitoring/sample_blob.h"
#include "tests/fake_sysfs.h"
#include "tests/integration/harness.h"

#if defined(__SANITIZE_ADDRESS__)
#define ASAN true
#else
#define ASAN false
#endif

enum { SPAWNED_MAX = 8, LINE_SIZE = 128 << 10 };

/* --- a process of a launch that works as it is told: this program, started anew -------------------------------------- */

static double cpu_seconds(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void *burn(void *ms)
{
    struct timespec t = { 0 };
    while ((double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6 < *(double *)ms)
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return NULL;
}

/* "b MS": that much in a thread of its own, which ends; "w N": N calls of write(). Answers with the CPU time that it took. */
static int work(void)
{
    char line[64], answer[64];
    int null = open("/dev/null", O_WRONLY);
    ssize_t n;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while ((n = read(STDIN_FILENO, line, sizeof line - 1)) > 0) {
        line[n] = '\0';
        double amount = strtod(line + 1, NULL), before = cpu_seconds();
        pthread_t thread;
        if (line[0] == 'b' && (pthread_create(&thread, NULL, burn, &amount) != 0 || pthread_join(thread, NULL) != 0))
            return 1;
        for (int i = 0; line[0] == 'w' && i < (int)amount; i++)
            if (write(null, "xyz", 3) != 3)
                return 1;
        int len = snprintf(answer, sizeof answer, "%.6f\n", cpu_seconds() - before);
        if (write(STDOUT_FILENO, answer, (size_t)len) != len)
            return 1;
    }
    return 0;
}

/* --- one test ----------------------------------------------------------------------------------------------------- */

struct bench {
    char *program, *worker, *preload, *dir;
    char tag[64], other[80];
    pid_t spawned[SPAWNED_MAX];
    size_t n_spawned;
};

struct talk { /* one program, and a pipe to and from it */
    pid_t pid;
    int in, out;
    char line[LINE_SIZE];
    size_t len;
    struct feature_list features; /* that it named */
};

static struct talk *talk_to(struct bench *b, char *const argv[])
{
    struct talk *t = calloc(1, sizeof *t);
    int in[2], out[2];
    assert_non_null(t);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    t->pid = fork();
    assert_true(t->pid >= 0);
    if (t->pid == 0) {
        if (dup2(in[0], STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0)
            (void)execv(argv[0], argv);
        _exit(127);
    }
    (void)close(in[0]), (void)close(out[1]);
    t->in = in[1];
    t->out = out[0];
    assert_true(b->n_spawned < SPAWNED_MAX);
    b->spawned[b->n_spawned++] = t->pid;
    return t;
}

static void hang_up(struct talk *t)
{
    (void)close(t->in), (void)close(t->out);
    free(t);
}

/* The next line, to be freed; NULL: none within `ms`. */
static char *hear_within(struct talk *t, int64_t ms)
{
    for (int64_t until = clock_ms() + ms;;) {
        char *newline = memchr(t->line, '\n', t->len);
        if (newline) {
            size_t n = (size_t)(newline - t->line);
            char *line = strndup(t->line, n);
            memmove(t->line, newline + 1, t->len - n - 1);
            t->len -= n + 1;
            return line;
        }
        struct pollfd p = { .fd = t->out, .events = POLLIN };
        int64_t left = until - clock_ms();
        assert_true(t->len < sizeof t->line);
        if (left <= 0 || poll(&p, 1, (int)left) < 1)
            return NULL;
        ssize_t n = read(t->out, t->line + t->len, sizeof t->line - t->len);
        if (n <= 0)
            return NULL;
        t->len += (size_t)n;
    }
}

static char *hear(struct talk *t)
{
    char *line = hear_within(t, HARNESS_MS);
    assert_non_null(line);
    return line;
}

static void say(struct talk *t, const char *text)
{
    assert_int_equal(io_write_all(t->in, text, strlen(text)), 0);
}

static struct talk *start_worker(struct bench *b, const char *tag)
{
    AUTO_STRV struct strv argv = STRV_INIT;
    strv_add(&argv, b->worker);
    strv_add(&argv, "work");
    strv_addf(&argv, "-Dpipetune.launch=%s", tag);
    struct talk *t = talk_to(b, argv.v);
    say(t, "w 0");
    free(hear(t)); /* it is there */
    return t;
}

/* The CPU time that it says the order took. */
static double order(struct talk *worker, const char *what)
{
    say(worker, what);
    AUTO_FREE char *line = hear(worker);
    return strtod(line, NULL);
}

static void end_worker(struct talk *t)
{
    assert_int_equal(kill(t->pid, SIGKILL), 0);
    assert_int_equal(harness_exit_code(t->pid, HARNESS_MS), 137);
    hang_up(t);
}

/* --- the helper --------------------------------------------------------------------------------------------------- */

static json_t *parse(const char *line)
{
    json_t *j = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    if (!j)
        fail_msg("not JSON: %s", line);
    return j;
}

static bool is_event(const json_t *j, const char *name)
{
    const char *event = json_string_value(json_object_get(j, "event"));
    return event && strcmp(event, name) == 0;
}

/* The answer; events before it are left out. */
static json_t *ask(struct talk *h, const char *fmt, ...)
{
    AUTO_FREE char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    assert_true(vasprintf(&text, fmt, ap) >= 0);
    va_end(ap);
    say(h, text);
    say(h, "\n");
    for (;;) {
        AUTO_FREE char *line = hear(h);
        json_t *j = parse(line);
        if (!json_object_get(j, "event"))
            return j;
        json_decref(j);
    }
}

static void assert_ok(json_t *got)
{
    AUTO_JSON json_t *taken = got;
    AUTO_FREE char *shown = json_dumps(taken, JSON_COMPACT);
    if (!json_is_true(json_object_get(taken, "ok")))
        fail_msg("got %s", shown);
}

static void assert_refused(json_t *got, const char *why)
{
    AUTO_JSON json_t *taken = got;
    AUTO_FREE char *shown = json_dumps(taken, JSON_COMPACT);
    const char *text = json_string_value(json_object_get(taken, "error"));
    if (!json_is_false(json_object_get(taken, "ok")) || !text || !strstr(text, why))
        fail_msg("got %s, want '%s'", shown, why);
}

static struct talk *start_helper(struct bench *b)
{
    char *argv[] = { b->program, (char[]){ "serve" }, NULL };
    struct talk *h = talk_to(b, argv);
    json_t *hello = ask(h, "{\"id\":1,\"verb\":\"hello\",\"protocol\":1}");
    const char *names = json_string_value(json_object_get(hello, "features"));
    assert_non_null(names);
    assert_int_equal(feature_list_read(&h->features, names, NULL), 0);
    assert_ok(hello);
    return h;
}

static json_t *sample(struct talk *h, const char *tag, int interval_ms, const char *scope)
{
    return ask(h, "{\"id\":7,\"verb\":\"sample\",\"tag\":\"%s\",\"interval_ms\":%d,\"scope\":\"%s\"}", tag, interval_ms,
               scope);
}

static void release(struct talk *h, const char *tag)
{
    assert_ok(ask(h, "{\"id\":4,\"verb\":\"release\",\"tag\":\"%s\"}", tag));
}

static void stop(struct talk *h)
{
    assert_ok(ask(h, "{\"id\":9,\"verb\":\"stop\"}"));
    assert_int_equal(harness_exit_code(h->pid, HARNESS_MS), 0);
    hang_up(h);
}

struct got { /* one sample */
    char tag[80], scope[16];
    double t_ms, dt_ms;
    int missed;
    struct reading v[FEATURES];
};

static struct got take(struct talk *h)
{
    struct got got = { 0 };
    AUTO_FREE char *line = hear(h);
    AUTO_JSON json_t *j = parse(line);
    struct err e = { 0 };
    const char *tag = NULL, *scope = NULL, *values = NULL;
    if (json_unpack(j, "{s:s, s:s, s:F, s:F, s:i, s:s}", "tag", &tag, "scope", &scope, "t_ms", &got.t_ms, "dt_ms",
                    &got.dt_ms, "missed", &got.missed, "values", &values) < 0 ||
        !is_event(j, "sample") || json_object_size(j) != 7)
        fail_msg("no sample: %s", line);
    AUTO_BUF struct buf blob = BUF_INIT;
    if (base64_read(&blob, values) < 0 || sample_blob_read(got.v, &h->features, blob.data, blob.len, &e) < 0)
        fail_msg("%s: %s", e.text, values);
    (void)snprintf(got.tag, sizeof got.tag, "%s", tag);
    (void)snprintf(got.scope, sizeof got.scope, "%s", scope);
    return got;
}

/* Sums a feature until it is `want` and a sample added nothing, or some seconds have passed. */
static double sum_up(struct talk *h, int feature, double want)
{
    double sum = 0;
    for (int64_t until = clock_ms() + HARNESS_MS; clock_ms() < until;) {
        struct got got = take(h);
        if (got.v[feature].state != READING_OK)
            fail_msg("%s: %s", feature_names[feature], reading_state_name((enum reading_state)got.v[feature].state));
        sum += got.v[feature].value;
        if (sum >= want && got.v[feature].value == 0)
            break;
    }
    return sum;
}

static int set_up(void **state)
{
    static unsigned count;
    struct bench *b = calloc(1, sizeof *b);
    if (!b)
        return -1;
    b->dir = harness_dir();
    b->program = harness_program("pipetune-node");
    b->worker = harness_program("tests/integration/test_sample");
    b->preload = harness_program("tests/faults.so");
    (void)snprintf(b->tag, sizeof b->tag, "sample-%ld-%u", (long)getpid(), count++);
    (void)snprintf(b->other, sizeof b->other, "%s-other", b->tag);
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const variables[] = { "LD_PRELOAD", "PIPETUNE_FAULT", "PIPETUNE_FAULT_PROGRAM",
                                             "PIPETUNE_FAULT_COUNT" };
    struct bench *b = *state;
    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        (void)unsetenv(variables[i]);
    for (size_t i = 0; i < b->n_spawned; i++)
        if (waitpid(b->spawned[i], NULL, WNOHANG) == 0) { /* not reaped: still this process */
            (void)kill(b->spawned[i], SIGKILL);
            (void)waitpid(b->spawned[i], NULL, 0);
        }
    harness_remove(b->dir);
    free(b->program);
    free(b->worker);
    free(b->preload);
    free(b);
    return 0;
}

/* --- what is told ------------------------------------------------------------------------------------------------- */

static void samples_come_at_the_interval(void **state)
{
    struct bench *b = *state;
    struct talk *h = start_helper(b), *w = start_worker(b, b->tag);
    assert_ok(sample(h, b->tag, 200, "auto"));
    double before = 0;
    for (int i = 0; i < 3; i++) {
        struct got got = take(h);
        assert_string_equal(got.tag, b->tag);
        assert_string_equal(got.scope, "system");
        assert_true(got.dt_ms > 100 && (got.missed > 0 || got.dt_ms < 400));
        if (i > 0 && fabs(got.t_ms - before - got.dt_ms) > 20)
            fail_msg("%.3f ms after the one before, of %.3f ms", got.t_ms - before, got.dt_ms);
        before = got.t_ms;
        assert_true(got.v[FEATURE_PROC_THREADS].value == 1);
        assert_int_equal(got.v[FEATURE_LOG_ITERATIONS].state, READING_ABSENT);
    }
    double off_ms = before - (double)time(NULL) * 1000;
    assert_true(fabs(off_ms) < HARNESS_MS);
    stop(h);
    end_worker(w);
}

static void cpu_time_is_what_the_process_says(void **state)
{
    struct bench *b = *state;
    struct talk *h = start_helper(b), *w = start_worker(b, b->tag);
    assert_ok(sample(h, b->tag, 100, "process"));
    double said = 0, told = 0, ticks = 0.01 * 3;
    for (int i = 0; i < 3; i++)
        said += order(w, "b 150");
    for (int i = 0; i < 50 && told < said - ticks; i++) {
        struct got got = take(h);
        told += got.v[FEATURE_PROC_USER_TIME].value + got.v[FEATURE_PROC_SYSTEM_TIME].value;
    }
    assert_true(said >= 0.45);
    if (fabs(told - said) > 0.1 * said + ticks)
        fail_msg("told %.4f s, it says %.4f", told, said);
    stop(h);
    end_worker(w);
}

/* The thread lives for several ticks; what it does after the last of them is not known. */
static void cpu_time_is_told_as_it_is_used(void **state)
{
    struct bench *b = *state;
    struct talk *h = start_helper(b), *w = start_worker(b, b->tag);
    assert_ok(sample(h, b->tag, 100, "process"));
    double said = order(w, "b 1000"), told = 0;
    for (int i = 0; i < 50 && told < said - 0.15; i++)
        told += take(h).v[FEATURE_PROC_CPU_TIME].value;
    if (told > said + 0.01 || told < said - 0.15)
        fail_msg("told %.4f s, it says %.4f", told, said);
    stop(h);
    end_worker(w);
}

static void calls_are_counted_exactly(void **state)
{
    struct bench *b = *state;
    struct talk *h = start_helper(b), *w = start_worker(b, b->tag);
    assert_ok(sample(h, b->tag, 100, "system"));
    (void)order(w, "w 1234");
    double told = sum_up(h, FEATURE_PROC_WRITE_CALLS, 1235);
    assert_true(told == 1235); /* and the answer */
    (void)order(w, "w 77");
    double chars = sum_up(h, FEATURE_PROC_WRITE_CHARS, 3 * 77 + 9);
    assert_true(chars == 3 * 77 + 9); /* "0.000123\n" */
    stop(h);
    end_worker(w);
}

static void a_process_that_goes_and_one_that_comes_make_no_jump(void **state)
{
    struct bench *b = *state;
    struct talk *h = start_helper(b), *w = start_worker(b, b->tag);
    (void)order(w, "w 5000");
    assert_ok(sample(h, b->tag, 100, "process"));
    struct talk *next = start_worker(b, b->tag);
    (void)order(next, "w 100");
    end_worker(w);
    bool two = false, one = false;
    for (int i = 0; i < 100 && !(two && one); i++) {
        struct got got = take(h);
        const struct reading *calls = &got.v[FEATURE_PROC_WRITE_CALLS], *threads = &got.v[FEATURE_PROC_THREADS];
        if (calls->state == READING_OK && calls->value > 110)
            fail_msg("%g calls", calls->value);
        two = two || i > 0;
        one = one || (i > 15 && threads->state == READING_OK && threads->value == 1);
    }
    assert_true(one);
    stop(h);
    end_worker(next);
}

/* --- how long, and in which scope --------------------------------------------------------------------------------- */

static void assert_silent(const char *when, struct talk *h)
{
    AUTO_FREE char *line = hear_within(h, 600);
    if (line)
        fail_msg("%s: %s", when, line);
}

static void sampling_ends_with_the_tag_and_with_interval_0(void **state)
{
    struct bench *b = *state;
    struct talk *h = start_helper(b), *w = start_worker(b, b->tag);
    assert_ok(sample(h, b->tag, 100, "process"));
    (void)take(h);
    release(h, b->tag);
    assert_silent("released", h);
    assert_ok(sample(h, b->tag, 100, "process"));
    (void)take(h);
    assert_ok(sample(h, b->tag, 0, "auto"));
    assert_silent("interval 0", h);
    assert_ok(sample(h, b->other, 0, "auto")); /* one that was never sampled */
    assert_ok(sample(h, b->tag, 100, "process"));
    (void)take(h);
    assert_refused(ask(h,
                       "{\"id\":3,\"verb\":\"apply\",\"tag\":\"%s\",\"cores\":1,\"slots\":2,\"local\":true,"
                       "\"cpus\":[4000]}",
                       b->tag),
                   "none of these CPUs");
    assert_silent("an apply that failed, as if released", h);
    stop(h);
    end_worker(w);
}

static void what_is_applied_stays_when_sampling_ends(void **state)
{
    struct bench *b = *state;
    struct talk *h = start_helper(b), *w = start_worker(b, b->tag);
    assert_ok(sample(h, b->tag, 100, "process"));
    assert_ok(ask(h, "{\"id\":3,\"verb\":\"apply\",\"tag\":\"%s\",\"cores\":1,\"slots\":1,\"local\":true}", b->tag));
    struct got got = take(h);
    assert_string_equal(got.scope, "process");
    assert_ok(sample(h, b->tag, 0, "auto"));
    end_worker(w);
    AUTO_FREE char *line = hear(h); /* its end is told: the wish stands */
    AUTO_JSON json_t *event = parse(line);
    assert_true(is_event(event, "changed"));
    assert_null(json_object_get(event, "error"));
    stop(h);
}

static void nothing_is_told_of_processes_that_are_only_sampled(void **state)
{
    struct bench *b = *state;
    struct talk *h = start_helper(b), *w = start_worker(b, b->tag);
    assert_ok(sample(h, b->tag, 100, "process"));
    end_worker(w);
    for (int i = 0; i < 12; i++)
        (void)take(h); /* fails on any other event */
    struct got got = take(h);
    assert_int_equal(got.v[FEATURE_PROC_CPU_TIME].state, READING_NOT_COUNTED);
    assert_int_equal(got.v[FEATURE_PROC_RSS].state, READING_NOT_COUNTED);
    stop(h);
}

/* The first sample of the tag that is of this scope. */
static struct got take_of(struct talk *h, const char *tag, const char *scope)
{
    for (int i = 0; i < 100; i++) {
        struct got got = take(h);
        if (strcmp(got.tag, tag) == 0 && strcmp(got.scope, scope) == 0)
            return got;
    }
    fail_msg("no sample of %s in scope %s", tag, scope);
    return (struct got){ 0 };
}

static void two_launches_are_measured_by_their_own_processes(void **state)
{
    struct bench *b = *state;
    struct talk *h = start_helper(b), *w = start_worker(b, b->tag), *other = start_worker(b, b->other);
    assert_ok(sample(h, b->tag, 100, "auto"));
    (void)take_of(h, b->tag, "system");
    assert_ok(sample(h, b->other, 100, "auto"));
    (void)take_of(h, b->tag, "process");
    (void)take_of(h, b->other, "process");
    (void)order(w, "w 300");
    double mine = 0, others = 0;
    for (int i = 0; i < 100 && mine < 301; i++) {
        struct got got = take(h);
        assert_string_equal(got.scope, "process");
        double calls = got.v[FEATURE_PROC_WRITE_CALLS].value;
        *(strcmp(got.tag, b->tag) == 0 ? &mine : &others) += calls;
    }
    assert_true(mine == 301 && others == 0);
    release(h, b->other);
    (void)take_of(h, b->tag, "system");
    stop(h);
    end_worker(w);
    end_worker(other);
}

/* Touching pages: of the process in scope process, at least as many in scope system. */
static void software_events_are_counted_in_either_scope(void **state)
{
    static const char *const scopes[] = { "process", "system" };
    struct bench *b = *state;
    struct talk *h = start_helper(b), *w = start_worker(b, b->tag);
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++) {
        assert_ok(sample(h, b->tag, 100, scopes[i]));
        (void)order(w, "b 250");
        double switches = 0;
        for (int k = 0; k < 5; k++) {
            const struct reading r = take(h).v[FEATURE_CONTEXT_SWITCHES];
            if (r.state == READING_DENIED || r.state == READING_UNSUPPORTED) {
                print_message("SKIP software events: %s here\n", reading_state_name((enum reading_state)r.state));
                skip();
            }
            switches += r.state == READING_OK ? r.value : 0;
        }
        if (!(switches >= 1)) /* it waited for its thread */
            fail_msg("%s: %g context switches", scopes[i], switches);
    }
    stop(h);
    end_worker(w);
}

/* Two names of an event that every kernel has, the CPU's clock, and another that is a task's. */
static char *fake_events(void)
{
    char *root = fake_sysfs_make(FAKE_VM);
    fake_sysfs_write(root, FAKE_PMU "msr/type", "1\n"); /* software */
    fake_sysfs_write(root, FAKE_PMU "msr/format/event", "config:0-63\n");
    fake_sysfs_write(root, FAKE_PMU "msr/events/tsc", "event=0x00\n");
    fake_sysfs_write(root, FAKE_PMU "msr/events/pperf", "event=0x00\n");
    fake_sysfs_write(root, FAKE_PMU "msr/events/smi", "event=0x01\n");
    return root;
}

/* The second sample that comes of these events (NULL: nothing is said of them). */
static struct got take_with(struct bench *b, struct talk *h, struct talk *w, const char *events)
{
    AUTO_BUF struct buf more = BUF_INIT;
    if (events)
        buf_printf(&more, ",\"events\":\"%s\"", events);
    assert_ok(ask(h, "{\"id\":7,\"verb\":\"sample\",\"tag\":\"%s\",\"interval_ms\":200,\"scope\":\"process\"%s}",
                  b->tag, buf_text(&more)));
    (void)take(h);
    (void)order(w, "b 150");
    return take(h);
}

static int count_looked_at(const struct got *got)
{
    int n = 0;
    for (int i = 0; i < EVENT_NAMES; i++)
        n += got->v[i].state != READING_ABSENT;
    return n;
}

static void chosen_events_alone_are_counted(void **state)
{
    struct bench *b = *state;
    char *root = fake_events();
    (void)setenv("PIPETUNE_SYSFS", root, 1);
    struct talk *h = start_helper(b), *w = start_worker(b, b->tag);
    (void)unsetenv("PIPETUNE_SYSFS");
    int tsc = event_name_index("msr/tsc/"), pperf = event_name_index("msr/pperf/");
    struct got all = take_with(b, h, w, NULL), one = take_with(b, h, w, "msr/pperf/"), none = take_with(b, h, w, "");
    assert_refused(
        ask(h, "{\"id\":7,\"verb\":\"sample\",\"tag\":\"%s\",\"interval_ms\":100,\"events\":\"cycles\"}", b->tag),
        "'events' must be names of events");
    stop(h);
    end_worker(w);
    fake_sysfs_remove(root);
    assert_int_equal(count_looked_at(&all), EVENT_NAMES);
    assert_int_equal(count_looked_at(&one), 1); /* though it is opened as what comes first of the two */
    assert_int_equal(count_looked_at(&none), 0);
    assert_int_equal(one.v[pperf].state, all.v[tsc].state);
    assert_true(none.v[FEATURE_CONTEXT_SWITCHES].state != READING_ABSENT);
    assert_int_equal(none.v[FEATURE_PROC_CPU_TIME].state, READING_OK);
    if (all.v[tsc].state == READING_DENIED || all.v[tsc].state == READING_UNSUPPORTED) {
        print_message("SKIP counting: %s here\n", reading_state_name((enum reading_state)all.v[tsc].state));
        skip();
    }
    if (!(one.v[pperf].value > 0))
        fail_msg("%s %g", reading_state_name((enum reading_state)one.v[pperf].state), one.v[pperf].value);
}

/* --- who does not read, and what is no request -------------------------------------------------------------------- */

static void a_driver_that_does_not_read_misses_samples_and_no_more(void **state)
{
    struct bench *b = *state;
    struct talk *h = start_helper(b), *w = start_worker(b, b->tag);
    assert_true(fcntl(h->out, F_SETPIPE_SZ, 4096) >= 0);
    assert_ok(sample(h, b->tag, 100, "process"));
    (void)order(w, "w 500");
    (void)poll(NULL, 0, 2500); /* a page holds a few samples: then it is full */
    (void)order(w, "w 500");
    double calls = 0, covered = 0, first = 0, last = 0;
    int missed = 0;
    for (int n = 0; n < 200 && calls < 1002; n++) {
        struct got got = take(h);
        calls += got.v[FEATURE_PROC_WRITE_CALLS].value;
        first = n == 0 ? got.t_ms - got.dt_ms : first;
        last = got.t_ms;
        covered += got.dt_ms;
        missed += got.missed;
    }
    assert_true(calls == 1002);
    assert_true(missed >= 5);
    if (fabs(last - first - covered) > 20)
        fail_msg("%.3f ms of %.3f are covered", covered, last - first);
    assert_ok(ask(h, "{\"id\":2,\"verb\":\"lease\"}"));
    stop(h);
    end_worker(w);
}

static void what_cannot_be_sampled_is_refused(void **state)
{
    struct bench *b = *state;
    struct talk *h = start_helper(b);
    assert_refused(sample(h, b->tag, 99, "auto"), "'interval_ms' must be 0, or a whole number from 100 to 60000");
    assert_refused(sample(h, b->tag, 1000, "node"), "'scope' must be");
    assert_refused(sample(h, "a b", 1000, "auto"), "'tag' must be");
    assert_refused(ask(h, "{\"id\":7,\"verb\":\"sample\",\"tag\":\"%s\"}", b->tag), "'interval_ms' is missing");
    for (int i = 0; i < 64; i++)
        assert_ok(ask(h, "{\"id\":7,\"verb\":\"sample\",\"tag\":\"%s-%d\",\"interval_ms\":60000}", b->tag, i));
    assert_refused(sample(h, b->tag, 60000, "auto"), "more than 64 launches");
    stop(h);
}

static void sampling_takes_little_memory(void **state)
{
    struct bench *b = *state;
    struct talk *h = start_helper(b), *w = start_worker(b, b->tag);
    struct rusage usage = { 0 };
    assert_ok(sample(h, b->tag, 100, "system"));
    for (int i = 0; i < 5; i++)
        (void)take(h);
    assert_ok(sample(h, b->tag, 100, "process"));
    for (int i = 0; i < 5; i++)
        (void)take(h);
    say(h, "{\"id\":9,\"verb\":\"stop\"}\n");
    assert_int_equal(wait4(h->pid, NULL, 0, &usage), h->pid);
    if (!ASAN && usage.ru_maxrss > 8192)
        fail_msg("%ld kB", usage.ru_maxrss);
    b->spawned[0] = b->spawned[--b->n_spawned];
    hang_up(h);
    (void)kill(w->pid, SIGKILL);
    hang_up(w);
}

/* --- faults ------------------------------------------------------------------------------------------------------- */

/* Whatever fails: answers, or an end. True when the fault struck. */
static bool survives(struct bench *b, const char *kind, unsigned nth)
{
    char fault[48];
    AUTO_FREE char *count = harness_path(b->dir, "struck");
    (void)snprintf(fault, sizeof fault, "%s:%u", kind, nth);
    (void)setenv("LD_PRELOAD", b->preload, 1);
    (void)setenv("PIPETUNE_FAULT", fault, 1);
    (void)setenv("PIPETUNE_FAULT_PROGRAM", "pipetune-node", 1);
    (void)setenv("PIPETUNE_FAULT_COUNT", count, 1);
    char *argv[] = { b->program, (char[]){ "serve" }, NULL };
    struct talk *h = talk_to(b, argv);
    (void)unsetenv("LD_PRELOAD");
    AUTO_BUF struct buf all = BUF_INIT;
    buf_puts(&all, "{\"id\":1,\"verb\":\"hello\",\"protocol\":1}\n");
    for (int i = 0; i < 2; i++)
        buf_printf(&all, "{\"id\":7,\"verb\":\"sample\",\"tag\":\"%s\",\"interval_ms\":100,\"scope\":\"auto\"}\n",
                   i ? b->other : b->tag);
    (void)io_write_all(h->in, all.data, all.len); /* it may be gone already */
    AUTO_FREE char *line = NULL;
    for (int i = 0; i < 5; i++) {
        free(line);
        line = hear_within(h, 300);
    }
    (void)io_write_all(h->in, "{\"id\":9,\"verb\":\"stop\"}\n", strlen("{\"id\":9,\"verb\":\"stop\"}\n"));
    int code = harness_exit_code(h->pid, HARNESS_MS);
    if (code != 0 && code != 1)
        fail_msg("%s: exit %d", fault, code);
    bool struck = io_exists(count);
    (void)unlink(count);
    hang_up(h);
    b->n_spawned--;
    return struck;
}

static void whatever_call_fails_it_goes_on_or_ends(void **state)
{
    struct bench *b = *state;
    static const struct {
        const char *kind;
        unsigned step, least;
    } kinds[] = { { "malloc", 83, 100 }, { "openr", 307, 300 } };
    struct talk *w = start_worker(b, b->tag), *other = start_worker(b, b->other);
    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        unsigned nth = 1;
        if (ASAN && strcmp(kinds[i].kind, "malloc") == 0)
            continue; /* memory is AddressSanitizer's there */
        while (survives(b, kinds[i].kind, nth)) {
            nth += kinds[i].step;
            assert_true(nth < 20000);
        }
        if (nth <= kinds[i].least)
            fail_msg("only %u calls of %s", nth, kinds[i].kind);
    }
    end_worker(w);
    end_worker(other);
}

#define SAMPLE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(samples_come_at_the_interval),
        SAMPLE_TEST(cpu_time_is_what_the_process_says),
        SAMPLE_TEST(cpu_time_is_told_as_it_is_used),
        SAMPLE_TEST(calls_are_counted_exactly),
        SAMPLE_TEST(a_process_that_goes_and_one_that_comes_make_no_jump),
        SAMPLE_TEST(sampling_ends_with_the_tag_and_with_interval_0),
        SAMPLE_TEST(what_is_applied_stays_when_sampling_ends),
        SAMPLE_TEST(nothing_is_told_of_processes_that_are_only_sampled),
        SAMPLE_TEST(two_launches_are_measured_by_their_own_processes),
        SAMPLE_TEST(software_events_are_counted_in_either_scope),
        SAMPLE_TEST(chosen_events_alone_are_counted),
        SAMPLE_TEST(a_driver_that_does_not_read_misses_samples_and_no_more),
        SAMPLE_TEST(what_cannot_be_sampled_is_refused),
        SAMPLE_TEST(sampling_takes_little_memory),
        SAMPLE_TEST(whatever_call_fails_it_goes_on_or_ends),
    };
    if (argc > 1 && strcmp(argv[1], "work") == 0)
        return work();
    if (ASAN) /* its runtime would have to be loaded before faults.so */
        (void)setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
    return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
