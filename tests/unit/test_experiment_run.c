/* An experiment's clock, its state on disk, and what becomes of it when calls fail; studies are children that end at once. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "live/experiment_run.h"
#include "live/tidy.h"
#include "tests/fault.h"

#define FILE_TEXT                                                                                                      \
    "{ \"jobs\": [{\"config\": \"a.conf\"}], \"policies\": [\"v1\", \"pipetune\"],\n"                                  \
    "  \"arrivals\": {\"load\": 0.5, \"count\": 3, \"seed\": 2, \"service_s\": 5000} }"

enum { STUDIES = 6 };

static int started; /* studies, of all experiments of a test */
static int exit_code;

struct fix {
    char dir[64], folder[80], config[80];
    struct experiment x;
    struct json_doc doc;
    const char *configs[1];
    struct experiment_run run;
    struct experiment_arrival arrivals[STUDIES];
    struct experiment_row rows[STUDIES];
    double service_s;
};

static int start(const struct experiment_run *r, const char *stage, const struct policy *policy, size_t job,
                 const char *study, pid_t *out, struct err *e)
{
    (void)r, (void)job;
    assert_string_equal(stage, policy->name);
    assert_int_equal(strncmp(study, "a-", 2), 0);
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(e, -errno, "cannot start study '%s'", study);
    if (pid == 0)
        _exit(exit_code);
    started++;
    *out = pid;
    return 0;
}

static int open_fix(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    struct err e;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-experiment-XXXXXX");
    if (!f || !mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->folder, sizeof f->folder, "%s/out", f->dir);
    (void)snprintf(f->config, sizeof f->config, "%s/a.conf", f->dir);
    if (io_write_atomic(f->config, "{}", 2, 0600, &e) < 0 ||
        json_doc_parse(&f->doc, "x.json", FILE_TEXT, strlen(FILE_TEXT), &e) < 0 ||
        experiment_parse(&f->x, &f->doc, &e) < 0)
        return -1;
    f->configs[0] = f->config;
    f->run = (struct experiment_run){
        .x = &f->x, .configs = f->configs, .folder = f->folder, .file = f->doc.root, .skip_idle = true, .start = start
    };
    started = exit_code = 0;
    *state = f;
    return 0;
}

static int close_fix(void **state)
{
    struct fix *f = *state;
    struct err e;
    experiment_done(&f->x);
    json_doc_done(&f->doc);
    struct tidy t = { 0 };
    int rc = tidy_remove(&t, f->dir, &e);
    free(f);
    return rc < 0 ? -1 : 0;
}

static int go(struct fix *f, struct err *e)
{
    return experiment_run(&f->run, f->arrivals, f->rows, 3, &f->service_s, e);
}

/* Hours of idle time are over at once, and stand in the rows all the same. */
static void the_clock_jumps_over_idle_time(void **state)
{
    struct fix *f = *state;
    struct err e;
    if (go(f, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(started, STUDIES);
    assert_true(f->service_s == 5000);
    for (size_t i = 0; i < STUDIES; i++) {
        const struct experiment_row *r = &f->rows[i];
        assert_int_equal(r->policy, i / 3);
        assert_true(r->arrived_s == f->arrivals[i % 3].at_s && r->started_s >= r->arrived_s);
        assert_true(r->ended_s >= r->started_s && r->ended_s < r->started_s + 10);
    }
    assert_true(f->rows[2].started_s > 100);
}

static void what_is_done_is_not_done_again(void **state)
{
    struct fix *f = *state;
    struct err e;
    struct experiment_row first[STUDIES];
    assert_int_equal(go(f, &e), 0);
    memcpy(first, f->rows, sizeof first);
    memset(f->rows, 0, sizeof f->rows);
    assert_int_equal(go(f, &e), 0);
    assert_int_equal(started, STUDIES);
    for (size_t i = 0; i < STUDIES; i++)
        assert_true(f->rows[i].started_s == first[i].started_s && f->rows[i].ended_s == first[i].ended_s &&
                    f->rows[i].interruptions == 0);
}

static void whatever_fails_it_can_be_gone_on_with(void **state)
{
    struct fix *f = *state;
    struct err e;
    bool struck = true;
    for (unsigned nth = 1; struck; nth++) { /* a call that fails need not matter */
        assert_true(nth < 2000);
        fault_arm(FAULT_ALLOC | FAULT_WRITE | FAULT_FSYNC | FAULT_RENAME | FAULT_OPEN | FAULT_FORK, nth);
        int rc = go(f, &e);
        struck = fault_disarm();
        if (rc < 0 && (!struck || !e.text[0]))
            fail_msg("the %u. call: %d '%s'", nth, rc, e.text);
    }
    /* A study runs again only where its end could not be kept. */
    assert_true(started >= STUDIES && started < 2 * STUDIES + 60);
    for (size_t i = 0; i < STUDIES; i++)
        assert_true(isfinite(f->rows[i].ended_s));
}

static void a_study_that_stops_ends_it(void **state)
{
    struct fix *f = *state;
    struct err e;
    exit_code = 3;
    assert_int_equal(go(f, &e), -ECANCELED);
    assert_non_null(strstr(e.text, "study 'a-1' under v1: "));
    exit_code = 1; /* none of its trials finished: that is a result */
    assert_int_equal(go(f, &e), 0);
    assert_int_equal(f->rows[0].interruptions, 1);
    assert_int_equal(f->rows[1].interruptions, 0);
}

static void a_changed_config_is_another_experiment(void **state)
{
    struct fix *f = *state;
    struct err e;
    assert_int_equal(go(f, &e), 0);
    assert_int_equal(io_write_atomic(f->config, "{ }", 3, 0600, &e), 0);
    assert_int_equal(go(f, &e), -EEXIST);
}

/* A state that somebody broke is told, and one with other things in it does no harm. */
static void a_state_of_any_text_is_read(void **state)
{
    struct fix *f = *state;
    struct err e;
    static const struct {
        const char *stages;
        int want;
    } cases[] = {
        { "[]", 0 },
        { "{ \"v1\": { \"clock_s\": \"x\", \"studies\": 3 } }", 0 },
        { "{ \"v1\": { \"clock_s\": -5, \"studies\": [ { \"started_s\": 1, \"ended_s\": 2 }, 7, {}, {}, {} ] } }", 0 },
        { "{", -EINVAL }
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf text = BUF_INIT;
        AUTO_FREE char *path = io_join(f->folder, "state.json");
        (void)unlink(path);
        assert_int_equal(go(f, &e), 0); /* writes what it is of */
        assert_int_equal(io_read_file(&text, path, 1 << 20, &e), 0);
        char *stages = strstr(text.data, "\"stages\": ");
        buf_cut(&text, (size_t)(stages - text.data) + 10);
        buf_puts(&text, cases[i].stages);
        buf_puts(&text, "}");
        assert_int_equal(io_write_atomic(path, text.data, text.len, 0600, &e), 0);
        assert_int_equal(go(f, &e), cases[i].want);
    }
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, open_fix, close_fix)
    const struct CMUnitTest tests[] = {
        WITH(the_clock_jumps_over_idle_time),         WITH(what_is_done_is_not_done_again),
        WITH(whatever_fails_it_can_be_gone_on_with),  WITH(a_study_that_stops_ends_it),
        WITH(a_changed_config_is_another_experiment), WITH(a_state_of_any_text_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
