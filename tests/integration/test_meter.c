/* `pipetune-node serve` reading meters: what their files say is what it tells, for as long as it was asked, however it is read. */
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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "tests/fake_sysfs.h"
#include "tests/integration/harness.h"

#if defined(__SANITIZE_ADDRESS__)
#define ASAN true
#else
#define ASAN false
#endif

#define ZONE "class/powercap/intel-rapl:0"

enum { LINE_SIZE = 128 << 10 };

struct bench { /* one test: a /sys of its own, and the helper */
    char *dir, *sysfs, *program, *preload;
    char *path, *cwd; /* PATH and folder before */
    pid_t pid;        /* 0: it is reaped */
    int in, out;
    char line[LINE_SIZE];
    size_t len; /* of `line`, beyond what was given out */
};

/* --- the helper --------------------------------------------------------------------------------------------------- */

static void start(struct bench *b)
{
    char *argv[] = { b->program, (char[]){ "serve" }, NULL };
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    b->pid = fork();
    assert_true(b->pid >= 0);
    if (b->pid == 0) {
        if (dup2(in[0], STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0)
            (void)execv(argv[0], argv);
        _exit(127);
    }
    (void)close(in[0]), (void)close(out[1]);
    b->in = in[1];
    b->out = out[0];
    b->len = 0;
}

static void hang_up(struct bench *b)
{
    if (b->in >= 0)
        (void)close(MOVE_FD(b->in));
    if (b->out >= 0)
        (void)close(MOVE_FD(b->out));
}

/* The next line, to be freed; NULL: none within `ms`. */
static char *hear_within(struct bench *b, int64_t ms)
{
    for (int64_t until = clock_ms() + ms;;) {
        char *newline = memchr(b->line, '\n', b->len);
        if (newline) {
            size_t n = (size_t)(newline - b->line);
            char *line = strndup(b->line, n);
            memmove(b->line, newline + 1, b->len - n - 1);
            b->len -= n + 1;
            return line;
        }
        struct pollfd p = { .fd = b->out, .events = POLLIN };
        int64_t left = until - clock_ms();
        assert_true(b->len < sizeof b->line);
        if (left <= 0 || poll(&p, 1, (int)left) < 1)
            return NULL;
        ssize_t n = read(b->out, b->line + b->len, sizeof b->line - b->len);
        if (n <= 0)
            return NULL;
        b->len += (size_t)n;
    }
}

static json_t *hear(struct bench *b)
{
    AUTO_FREE char *line = hear_within(b, HARNESS_MS);
    assert_non_null(line);
    json_t *j = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    if (!j)
        fail_msg("not JSON: %s", line);
    return j;
}

/* The answer; events before it are left out. */
static json_t *ask(struct bench *b, const char *request)
{
    assert_int_equal(io_write_all(b->in, request, strlen(request)), 0);
    assert_int_equal(io_write_all(b->in, "\n", 1), 0);
    for (;;) {
        json_t *j = hear(b);
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

static void start_greeted(struct bench *b)
{
    start(b);
    assert_ok(ask(b, "{\"id\":1,\"verb\":\"hello\",\"protocol\":1}"));
}

static void stop(struct bench *b)
{
    assert_ok(ask(b, "{\"id\":9,\"verb\":\"stop\"}"));
    assert_int_equal(harness_exit_code(b->pid, HARNESS_MS), 0);
    b->pid = 0;
    hang_up(b);
}

/* Asks for the meters, and for what is opened and (the beginning of) what is refused. */
static void meter(struct bench *b, const char *names, const char *opened, const char *refused)
{
    char request[512];
    (void)snprintf(request, sizeof request, "{\"id\":8,\"verb\":\"meter\",\"meters\":\"%s\",\"interval_ms\":100}",
                   names);
    AUTO_JSON json_t *got = ask(b, request);
    AUTO_FREE char *shown = json_dumps(got, JSON_COMPACT);
    const char *is = json_string_value(json_object_get(got, "opened"));
    const char *is_not = json_string_value(json_object_get(got, "refused"));
    if (!is || !is_not || strcmp(is, opened) != 0 || strncmp(is_not, refused, strlen(refused)) != 0 ||
        (!*refused && *is_not))
        fail_msg("%s: got %s, want '%s' and '%s'", names, shown, opened, refused);
}

struct got { /* one reading */
    char meter[32], state[16];
    double from_ms, to_ms, value, error;
    char why[200];
};

static double number(const json_t *j, const char *key)
{
    const json_t *x = json_object_get(j, key);
    return json_is_number(x) ? json_number_value(x) : NAN;
}

/* The next reading; anything else fails the test. */
static struct got take(struct bench *b)
{
    AUTO_JSON json_t *j = hear(b);
    AUTO_FREE char *shown = json_dumps(j, JSON_COMPACT);
    const char *event = json_string_value(json_object_get(j, "event"));
    const char *name = json_string_value(json_object_get(j, "meter"));
    const char *state = json_string_value(json_object_get(j, "state"));
    if (!event || strcmp(event, "meter") != 0 || !name || !state)
        fail_msg("no reading: %s", shown);
    struct got got = { .from_ms = number(j, "from_ms"),
                       .to_ms = number(j, "to_ms"),
                       .value = number(j, "value"),
                       .error = number(j, "error") };
    (void)snprintf(got.meter, sizeof got.meter, "%s", name);
    (void)snprintf(got.state, sizeof got.state, "%s", state);
    const char *why = json_string_value(json_object_get(j, "why"));
    (void)snprintf(got.why, sizeof got.why, "%s", why ? why : "");
    if (isnan(got.from_ms) || isnan(got.to_ms) || isnan(got.value) == (strcmp(state, "ok") == 0))
        fail_msg("half a reading: %s", shown);
    return got;
}

static struct got take_of(struct bench *b, const char *name)
{
    for (int i = 0; i < 200; i++) {
        struct got got = take(b);
        if (strcmp(got.meter, name) == 0)
            return got;
    }
    fail_msg("no reading of %s", name);
    return (struct got){ 0 };
}

static struct got take_in_state(struct bench *b, const char *name, const char *state)
{
    for (int i = 0; i < 200; i++) {
        struct got got = take_of(b, name);
        if (strcmp(got.state, state) == 0)
            return got;
    }
    fail_msg("no reading of %s that is %s", name, state);
    return (struct got){ 0 };
}

/* --- one test ----------------------------------------------------------------------------------------------------- */

/* The count of a zone, in hundredths of a joule, in place: whoever reads meanwhile sees the count before or this one. */
static void put_energy(const struct bench *b, unsigned hundredths)
{
    char text[32];
    AUTO_FREE char *path = harness_path(b->sysfs, ZONE "/energy_uj");
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int n = snprintf(text, sizeof text, "%08u0000\n", hundredths);
    assert_int_equal(pwrite(fd, text, (size_t)n, 0), n);
}

static void put_zone(const struct bench *b)
{
    fake_sysfs_write(b->sysfs, ZONE "/name", "package-0\n");
    fake_sysfs_write(b->sysfs, ZONE "/max_energy_range_uj", "262143328850\n");
    put_energy(b, 100);
}

static int set_up(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    if (!b)
        return -1;
    b->dir = harness_dir();
    b->sysfs = fake_sysfs_make(FAKE_VM);
    b->program = harness_program("pipetune-node");
    b->preload = harness_program("tests/faults.so");
    b->in = b->out = -1;
    b->path = strdup(getenv("PATH"));
    b->cwd = getcwd(NULL, 0);
    (void)setenv("PIPETUNE_SYSFS", b->sysfs, 1);
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const variables[] = { "PIPETUNE_SYSFS", "LD_PRELOAD", "PIPETUNE_FAULT", "PIPETUNE_FAULT_PROGRAM",
                                             "PIPETUNE_FAULT_COUNT" };
    struct bench *b = *state;
    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        (void)unsetenv(variables[i]);
    hang_up(b);
    if (b->pid > 0) {
        (void)kill(b->pid, SIGKILL);
        (void)waitpid(b->pid, NULL, 0);
    }
    (void)setenv("PATH", b->path, 1);
    if (chdir(b->cwd) < 0)
        return -1;
    fake_sysfs_remove(b->sysfs);
    harness_remove(b->dir);
    free(b->path);
    free(b->cwd);
    free(b->program);
    free(b->preload);
    free(b);
    return 0;
}

/* --- readings ----------------------------------------------------------------------------------------------------- */

/* A zone that stands still is not believed until it moves: what is well then reaches back to where the last one that was well ended. */
static void joules_are_what_the_counter_says_without_a_gap(void **state)
{
    struct bench *b = *state;
    put_zone(b);
    start_greeted(b);
    meter(b, "cpu,rapl", "cpu,rapl", "");
    double sum = 0, end = 0;
    int well = 0;
    for (unsigned i = 1; i <= 200 && fabs(sum - 0.2) > 1e-6; i++) {
        put_energy(b, 100 + (i < 20 ? i : 20));
        struct got got = take_of(b, "rapl");
        if (strcmp(got.state, "ok") != 0)
            continue;
        if (end > 0 && got.from_ms != end)
            fail_msg("from %.3f, %.3f ms after the end before", got.from_ms, got.from_ms - end);
        assert_true(got.error > 0 && got.error < 0.01);
        sum += got.value;
        end = got.to_ms;
        well++;
    }
    if (fabs(sum - 0.2) > 1e-6 || well < 5)
        fail_msg("%g J in %d readings", sum, well);
    double off_ms = end - (double)time(NULL) * 1000;
    assert_true(fabs(off_ms) < HARNESS_MS);
    stop(b);
}

static void cpu_seconds_are_those_that_cpus_were_busy(void **state)
{
    struct bench *b = *state;
    start_greeted(b);
    meter(b, "cpu", "cpu", "");
    struct timespec used = { 0 };
    double busy = 0, n = (double)sysconf(_SC_NPROCESSORS_ONLN);
    while (used.tv_sec == 0 && used.tv_nsec < 500000000)
        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    for (int i = 0; i < 100 && busy < 0.4; i++) {
        struct got got = take_of(b, "cpu");
        assert_string_equal(got.state, "ok");
        double seconds = (got.to_ms - got.from_ms) / 1000;
        if (!(got.value >= 0 && got.value <= n * seconds + got.error + 0.05))
            fail_msg("%g s of %g CPUs in %g s", got.value, n, seconds);
        busy += got.value;
    }
    assert_true(busy >= 0.4);
    stop(b);
}

static void a_driver_that_does_not_read_misses_readings_and_no_energy(void **state)
{
    struct bench *b = *state;
    put_zone(b);
    start_greeted(b);
    assert_true(fcntl(b->out, F_SETPIPE_SZ, 4096) >= 0);
    meter(b, "rapl", "rapl", "");
    put_energy(b, 110);
    (void)poll(NULL, 0, 5000); /* a page holds some 30 readings: then it is full */
    put_energy(b, 3100);
    double sum = 0, end = 0, last = 0, longest = 0;
    for (int n = 0; n < 200 && sum < 30 - 1e-6; n++) {
        struct got got = take(b);
        longest = last > 0 ? fmax(longest, got.to_ms - last) : 0;
        last = got.to_ms;
        if (strcmp(got.state, "ok") != 0)
            continue;
        assert_true(end == 0 || got.from_ms == end);
        end = got.to_ms;
        sum += got.value;
    }
    if (fabs(sum - 30) > 1e-6 || longest < 500)
        fail_msg("%g J, at most %g ms from one reading to the next", sum, longest);
    assert_ok(ask(b, "{\"id\":2,\"verb\":\"lease\"}"));
    stop(b);
}

/* One that is well, while the zone's count goes on from this one. */
static void take_well(struct bench *b, unsigned from)
{
    for (unsigned i = 0; i < 200; i++) {
        put_energy(b, from + i);
        struct got got = take_of(b, "rapl");
        if (strcmp(got.state, "ok") == 0)
            return;
    }
    fail_msg("rapl is never well");
}

static void a_meter_that_fails_says_so_and_stops_nothing(void **state)
{
    struct bench *b = *state;
    put_zone(b);
    start_greeted(b);
    meter(b, "rapl,cpu", "rapl,cpu", "");
    take_well(b, 101);
    fake_sysfs_write(b->sysfs, ZONE "/energy_uj", "");
    struct got failed = take_in_state(b, "rapl", "failed");
    assert_non_null(strstr(failed.why, "cannot read package-0"));
    (void)take_in_state(b, "cpu", "ok");
    take_well(b, 400);
    stop(b);
}

/* --- a meter that has a child --------------------------------------------------------------------------------------- */

static pid_t child_of_pcm(struct bench *b)
{
    assert_true(harness_wait_file(b->dir, "pid", HARNESS_MS));
    AUTO_FREE char *text = harness_read(b->dir, "pid");
    long pid = strtol(text, NULL, 10);
    assert_true(pid > 1);
    return (pid_t)pid;
}

static bool is_gone(void *arg)
{
    return kill(*(pid_t *)arg, 0) < 0 && errno == ESRCH;
}

/* A program named pcm that tells its number, and then nothing. */
static void put_pcm(const struct bench *b)
{
    static const char script[] = "#!/bin/sh\necho $$ >pid.new\nmv pid.new pid\nexec sleep 1000\n";
    AUTO_FREE char *path = harness_path(b->dir, "pcm"), *search = NULL;
    harness_write(b->dir, "pcm", script);
    assert_int_equal(chmod(path, 0755), 0);
    assert_true(asprintf(&search, "%s:%s", b->dir, b->path) > 0);
    (void)setenv("PATH", search, 1);
    assert_int_equal(chdir(b->dir), 0);
}

static void a_meters_child_ends_with_metering_however_that_ends(void **state)
{
    static const char *const ends[] = { "{\"id\":8,\"verb\":\"meter\",\"interval_ms\":0}",
                                        "{\"id\":8,\"verb\":\"meter\",\"meters\":\"cpu\",\"interval_ms\":100}",
                                        "{\"id\":9,\"verb\":\"stop\"}" };
    struct bench *b = *state;
    put_pcm(b);
    AUTO_FREE char *told = harness_path(b->dir, "pid");
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        start_greeted(b);
        meter(b, "pcm,cpu", "pcm,cpu", "");
        pid_t child = child_of_pcm(b);
        (void)take_of(b, "cpu");
        assert_ok(ask(b, ends[i]));
        if (!harness_wait(is_gone, &child, HARNESS_MS))
            fail_msg("%s: %ld runs on", ends[i], (long)child);
        if (i + 1 < ARRAY_LEN(ends))
            assert_ok(ask(b, ends[ARRAY_LEN(ends) - 1]));
        assert_int_equal(harness_exit_code(b->pid, HARNESS_MS), 0);
        b->pid = 0;
        hang_up(b);
        assert_int_equal(unlink(told), 0);
    }
}

static void a_meters_child_that_is_killed_is_told_and_no_more(void **state)
{
    struct bench *b = *state;
    put_pcm(b);
    start_greeted(b);
    meter(b, "pcm,cpu", "pcm,cpu", "");
    pid_t child = child_of_pcm(b);
    assert_int_equal(kill(child, SIGKILL), 0);
    struct got failed = take_in_state(b, "pcm", "failed");
    assert_string_equal(failed.why, "'pcm' was ended by signal 9"); /* nobody else had waited for it */
    assert_true(harness_wait(is_gone, &child, HARNESS_MS));         /* it was waited for */
    (void)take_in_state(b, "cpu", "ok");
    assert_ok(ask(b, "{\"id\":2,\"verb\":\"lease\"}"));
    stop(b);
}

/* --- beginning and end -------------------------------------------------------------------------------------------- */

static void meters_that_cannot_be_read_are_refused_and_the_others_are_read(void **state)
{
    struct bench *b = *state;
    start_greeted(b);
    meter(b, "rapl,cpu", "cpu", "rapl: no RAPL zone of a package below '");
    (void)take_in_state(b, "cpu", "ok");
    meter(b, "pdu,snmp,cpu,x", "cpu",
          "pdu: no meter of a node has this name; snmp: no meter of a node has this name; x: no meter");
    meter(b, "estimate", "", "estimate: ");
    stop(b);
}

static void an_estimate_is_made_of_the_watts_that_were_given(void **state)
{
    struct bench *b = *state;
    start_greeted(b);
    AUTO_JSON json_t *got =
        ask(b, "{\"id\":8,\"verb\":\"meter\",\"meters\":\"estimate\",\"interval_ms\":100,\"idle_w\":1000,"
               "\"cpu_w\":0.001}");
    assert_string_equal(json_string_value(json_object_get(got, "opened")), "estimate");
    struct got reading = take_in_state(b, "estimate", "ok");
    double seconds = (reading.to_ms - reading.from_ms) / 1000;
    if (fabs(reading.value / seconds - 1000) > 10)
        fail_msg("%g J in %g s", reading.value, seconds);
    stop(b);
}

static void assert_silent(const char *when, struct bench *b)
{
    AUTO_FREE char *line = hear_within(b, 500);
    if (line)
        fail_msg("%s: %s", when, line);
}

static void metering_ends_with_interval_0_and_begins_anew(void **state)
{
    struct bench *b = *state;
    start_greeted(b);
    assert_ok(ask(b, "{\"id\":8,\"verb\":\"meter\",\"interval_ms\":0}")); /* nothing was begun */
    meter(b, "cpu", "cpu", "");
    (void)take(b);
    assert_ok(ask(b, "{\"id\":8,\"verb\":\"meter\",\"interval_ms\":0,\"meters\":\"cpu\"}"));
    assert_silent("interval 0", b);
    meter(b, "cpu", "cpu", "");
    (void)take(b);
    assert_ok(ask(b, "{\"id\":4,\"verb\":\"release\",\"tag\":\"t\"}")); /* it belongs to no tag */
    (void)take(b);
    (void)close(MOVE_FD(b->in)); /* end of file ends it, and the helper */
    assert_int_equal(harness_exit_code(b->pid, HARNESS_MS), 0);
    b->pid = 0;
}

static void what_is_no_metering_is_refused(void **state)
{
    static const struct {
        const char *members, *why;
    } cases[] = {
        { "\"meters\":\"cpu\"", "'interval_ms' is missing" },
        { "\"interval_ms\":1000", "'meters' is missing" },
        { "\"interval_ms\":99,\"meters\":\"cpu\"", "'interval_ms' must be 0, or a whole number from 100 to 60000" },
        { "\"interval_ms\":1000,\"meters\":\"\"", "'meters' must be names" },
        { "\"interval_ms\":1000,\"meters\":\"../cpu\"", "'meters' must be names" },
        { "\"interval_ms\":1000,\"meters\":\"cpu\",\"idle_w\":-1", "'idle_w' must be a number from 0 to 100000" },
        { "\"interval_ms\":1000,\"meters\":\"cpu\",\"cpu_w\":1e6", "'cpu_w' must be a number from 0 to 100000" },
    };
    struct bench *b = *state;
    start(b);
    assert_refused(ask(b, "{\"id\":8,\"verb\":\"meter\",\"meters\":\"cpu\",\"interval_ms\":100}"),
                   "'hello' comes first");
    assert_ok(ask(b, "{\"id\":1,\"verb\":\"hello\",\"protocol\":1}"));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char request[256];
        (void)snprintf(request, sizeof request, "{\"id\":8,\"verb\":\"meter\",%s}", cases[i].members);
        assert_refused(ask(b, request), cases[i].why);
    }
    assert_silent("nothing was begun", b);
    stop(b);
}

static void samples_and_readings_come_beside_each_other(void **state)
{
    struct bench *b = *state;
    start_greeted(b);
    meter(b, "cpu", "cpu", "");
    assert_ok(ask(b, "{\"id\":7,\"verb\":\"sample\",\"tag\":\"none\",\"interval_ms\":100}"));
    int samples = 0, readings = 0;
    for (int i = 0; i < 200 && (samples < 3 || readings < 3); i++) {
        AUTO_JSON json_t *j = hear(b);
        const char *event = json_string_value(json_object_get(j, "event"));
        samples += strcmp(event, "sample") == 0;
        readings += strcmp(event, "meter") == 0;
    }
    assert_true(samples >= 3 && readings >= 3);
    stop(b);
}

/* --- faults ------------------------------------------------------------------------------------------------------- */

/* Whatever fails: answers, or an end. True when the fault struck. */
static bool survives(struct bench *b, const char *kind, unsigned nth)
{
    static const char asked[] = "{\"id\":1,\"verb\":\"hello\",\"protocol\":1}\n"
                                "{\"id\":8,\"verb\":\"meter\",\"meters\":\"cpu,rapl,perf-power\",\"interval_ms\":100}\n"
                                "{\"id\":8,\"verb\":\"meter\",\"meters\":\"cpu,rapl,estimate\",\"interval_ms\":100,"
                                "\"idle_w\":4,\"cpu_w\":1}\n";
    static const char stopped[] = "{\"id\":9,\"verb\":\"stop\"}\n";
    char fault[48];
    AUTO_FREE char *count = harness_path(b->dir, "struck");
    (void)snprintf(fault, sizeof fault, "%s:%u", kind, nth);
    (void)setenv("LD_PRELOAD", b->preload, 1);
    (void)setenv("PIPETUNE_FAULT", fault, 1);
    (void)setenv("PIPETUNE_FAULT_PROGRAM", "pipetune-node", 1);
    (void)setenv("PIPETUNE_FAULT_COUNT", count, 1);
    start(b);
    (void)unsetenv("LD_PRELOAD");
    (void)io_write_all(b->in, asked, sizeof asked - 1); /* it may be gone already */
    for (int i = 0; i < 8; i++)
        free(hear_within(b, 200));
    (void)io_write_all(b->in, stopped, sizeof stopped - 1);
    int code = harness_exit_code(b->pid, HARNESS_MS);
    b->pid = 0;
    hang_up(b);
    if (code != 0 && code != 1)
        fail_msg("%s: exit %d", fault, code);
    bool struck = io_exists(count);
    (void)unlink(count);
    return struck;
}

static void whatever_call_fails_it_goes_on_or_ends(void **state)
{
    struct bench *b = *state;
    static const struct {
        const char *kind;
        unsigned step, least; /* every so many; how many there must be for the row to mean anything */
    } kinds[] = { { "malloc", 3, 10 }, { "openr", 5, 20 } };
    put_zone(b);
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
}

#define METER_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        METER_TEST(joules_are_what_the_counter_says_without_a_gap),
        METER_TEST(cpu_seconds_are_those_that_cpus_were_busy),
        METER_TEST(a_driver_that_does_not_read_misses_readings_and_no_energy),
        METER_TEST(a_meter_that_fails_says_so_and_stops_nothing),
        METER_TEST(a_meters_child_ends_with_metering_however_that_ends),
        METER_TEST(a_meters_child_that_is_killed_is_told_and_no_more),
        METER_TEST(meters_that_cannot_be_read_are_refused_and_the_others_are_read),
        METER_TEST(an_estimate_is_made_of_the_watts_that_were_given),
        METER_TEST(metering_ends_with_interval_0_and_begins_anew),
        METER_TEST(what_is_no_metering_is_refused),
        METER_TEST(samples_and_readings_come_beside_each_other),
        METER_TEST(whatever_call_fails_it_goes_on_or_ends),
    };
    if (ASAN) /* its runtime would have to be loaded before faults.so */
        (void)setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
    return cmocka_run_group_tests_name("meter", tests, NULL, NULL);
}
