/* A study as it is seen: read once, and brought up to date by what another connection writes. */
#include <errno.h>
#include <math.h>
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
#include "store/tidy.h"
#include "tests/fault.h"
#include "view/view.h"

#define TEXT(literal) ((char *)(uintptr_t)(literal))

enum { DRIVER = 4711 };

static const int64_t T0 = 1700000000000;

struct fix {
    char dir[64], path[96];
    struct store *writer, *reader;
    int64_t study;
    struct view v;
    struct err e;
};

#define assert_ok(f, call)                                                                                             \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ < 0)                                                                                                   \
            fail_msg("%s: %d: %s", #call, rc_, (f)->e.text);                                                           \
    } while (0)

static int64_t add_study(struct fix *f, const char *name, int64_t created_ms)
{
    struct store_study row = { .name = TEXT(name),
                               .state = TEXT("running"),
                               .config = TEXT("{\"study\":{\"metric\":\"f1\",\"epochs\":4},\"secrets\":{\"a\":\"b\"}}"),
                               .maximise = true,
                               .created_ms = created_ms };
    int64_t id = 0;
    assert_ok(f, store_study_add(f->writer, &row, &id, &f->e));
    return id;
}

static struct store_trial trial_of(const struct fix *f, int number, const char *state, double metric)
{
    return (struct store_trial){ .study = f->study,
                                 .number = number,
                                 .proposal = (uint64_t)number,
                                 .state = TEXT(state),
                                 .epochs = 4,
                                 .hyper = TEXT("{\"lr\":1}"),
                                 .accuracy = NAN,
                                 .loss = NAN,
                                 .metric = metric };
}

static int64_t add_trial(struct fix *f, int number, const char *state, double metric)
{
    struct store_trial t = trial_of(f, number, state, metric);
    assert_ok(f, store_trial_add(f->writer, &t, &f->e));
    return t.id;
}

static void set_trial(struct fix *f, int64_t id, int number, const char *state, double metric)
{
    struct store_trial t = trial_of(f, number, state, metric);
    t.id = id;
    assert_ok(f, store_trial_update(f->writer, &t, &f->e));
}

static void add_attempt(struct fix *f, int64_t trial, const char *state)
{
    struct store_attempt a = { .trial = trial, .state = TEXT(state), .started_ms = T0, .startup_s = NAN };
    assert_ok(f, store_attempt_add(f->writer, &a, &f->e));
}

static void add_epoch(struct fix *f, int64_t trial, int epoch, double metric)
{
    struct store_epoch row = { .trial = trial, .epoch = epoch, .attempt = 1, .metric = metric, .seconds = 1 };
    assert_ok(f, store_epoch_put(f->writer, &row, &f->e));
}

/* Trial 1 is finished, 2 runs, 3 waits. */
static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    *state = f;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-view-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    assert_ok(f, store_open(&f->writer, f->path, STORE_WRITE, &f->e));
    f->study = add_study(f, "s", T0);
    int64_t first = add_trial(f, 1, "finished", 0.8), second = add_trial(f, 2, "running", 0.5);
    add_attempt(f, first, "ended");
    add_attempt(f, second, "running");
    for (int i = 1; i <= 4; i++)
        add_epoch(f, first, i, 0.2 * i);
    add_epoch(f, second, 1, 0.5);
    (void)add_trial(f, 3, "waiting", NAN);
    assert_ok(f, store_open(&f->reader, f->path, STORE_READ, &f->e));
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    char more[128];
    (void)fault_disarm();
    view_done(&f->v);
    store_close(f->reader);
    store_close(f->writer);
    (void)unlink(f->path);
    static const char *const rest[] = { "-wal", "-shm" };
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(more, sizeof more, "%s%s", f->path, rest[i]);
        (void)unlink(more);
    }
    (void)rmdir(f->dir);
    free(f);
    return 0;
}

static void open_view(struct fix *f)
{
    assert_ok(f, view_open(&f->v, f->reader, "s", f->dir, DRIVER, &f->e));
}

static void expect_refresh(struct fix *f, int want)
{
    int rc = view_refresh(&f->v, DRIVER, &f->e);
    if (rc != want)
        fail_msg("refresh: got %d, want %d: %s", rc, want, rc < 0 ? f->e.text : "");
}

static void test_a_study_is_there_with_its_trials(void **state)
{
    struct fix *f = *state;
    open_view(f);
    const struct view *v = &f->v;
    assert_string_equal(v->state, "running");
    assert_string_equal(v->metric, "f1");
    assert_null(json_object_get(v->config, "secrets"));
    assert_int_equal(v->n, 3);
    assert_int_equal(v->totals.trials, 3);
    assert_int_equal(v->totals.best_trial, 1);
    assert_int_equal(view_trial(v, 1)->done, 4);
    assert_int_equal(view_trial(v, 2)->done, 1);
    assert_string_equal(view_trial(v, 2)->state, "running");
    assert_true(view_trial(v, 2)->seconds > 1000); /* the attempt under way is in it */
    assert_true(v->totals.seconds > 1000);
    assert_true(isnan(view_trial(v, 3)->seconds)); /* absent is not 0 */
    assert_null(view_trial(v, 0));
    assert_null(view_trial(v, 4));
}

static void test_an_unknown_study_names_those_there_are(void **state)
{
    struct fix *f = *state;
    assert_int_equal(view_open(&f->v, f->reader, "demo", NULL, 0, &f->e), -EINVAL);
    assert_string_equal(f->e.text, "no study 'demo': there is s");
}

static void test_nothing_new_is_told_as_that(void **state)
{
    struct fix *f = *state;
    open_view(f);
    expect_refresh(f, 0);
    expect_refresh(f, 0);
    assert_int_equal(f->v.version, 1);
}

/* What the driver does to a store, and what is then seen of it. */
static void do_new_trial(struct fix *f)
{
    (void)add_trial(f, 4, "waiting", NAN);
    (void)add_trial(f, 5, "finished", 0.9);
}

static void see_new_trial(struct fix *f)
{
    assert_int_equal(f->v.n, 5);
    assert_int_equal(f->v.totals.best_trial, 5);
    assert_string_equal(view_trial(&f->v, 4)->state, "waiting");
}

static void do_epoch(struct fix *f)
{
    add_epoch(f, view_trial(&f->v, 2)->row.id, 2, 0.5); /* the same metric */
}

static void see_epoch(struct fix *f)
{
    struct view_trial *t = view_trial(&f->v, 2);
    assert_ok(f, view_epochs(&f->v, t, &f->e));
    assert_int_equal(t->n_epochs, 2);
    assert_int_equal(t->done, 2);
}

static void do_finish(struct fix *f)
{
    set_trial(f, view_trial(&f->v, 2)->row.id, 2, "finished", 0.95);
}

static void see_finish(struct fix *f)
{
    assert_int_equal(f->v.totals.best_trial, 2);
    assert_string_equal(view_trial(&f->v, 2)->state, "finished");
    assert_null(view_trial(&f->v, 2)->under_way.state);
}

static void do_start(struct fix *f)
{
    int64_t id = view_trial(&f->v, 3)->row.id;
    set_trial(f, id, 3, "running", NAN);
    add_attempt(f, id, "running");
}

static void see_start(struct fix *f)
{
    assert_true(view_trial(&f->v, 3)->seconds > 1000);
    assert_non_null(view_trial(&f->v, 3)->under_way.state);
}

static void do_end(struct fix *f)
{
    assert_ok(f, store_study_set_state(f->writer, f->study, "finished", 1700000005000, &f->e));
}

static void see_end(struct fix *f)
{
    assert_string_equal(f->v.state, "finished");
    assert_true(f->v.study.ended_ms == 1700000005000);
}

static void do_elsewhere(struct fix *f)
{
    (void)add_study(f, "other", T0);
}

static void see_elsewhere(struct fix *f)
{
    for (int i = 1; i <= 3; i += 2) /* what runs is read again, whatever changed */
        assert_true(view_trial(&f->v, i)->changed == 1);
}

static void test_what_changed_is_seen(void **state)
{
    static const struct {
        const char *name;
        void (*change)(struct fix *f), (*see)(struct fix *f);
    } rows[] = {
        { "trials that came", do_new_trial, see_new_trial },
        { "an epoch of one that runs", do_epoch, see_epoch },
        { "one that ended", do_finish, see_finish },
        { "one that began", do_start, see_start },
        { "the study's end", do_end, see_end },
        { "another study's news change nothing of this", do_elsewhere, see_elsewhere },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        void *own = NULL;
        print_message("%s\n", rows[i].name);
        assert_int_equal(set_up(&own), 0);
        struct fix *f = own;
        open_view(f);
        rows[i].change(f);
        expect_refresh(f, 1);
        rows[i].see(f);
        expect_refresh(f, 0);
        (void)tear_down(&own);
    }
}

static void test_only_what_changed_is_marked(void **state)
{
    struct fix *f = *state;
    open_view(f);
    do_start(f);
    expect_refresh(f, 1);
    assert_true(view_trial(&f->v, 1)->changed == 1);
    assert_true(view_trial(&f->v, 3)->changed == f->v.version);
}

static void test_without_a_driver_it_is_interrupted(void **state)
{
    struct fix *f = *state;
    open_view(f);
    assert_int_equal(view_refresh(&f->v, 0, &f->e), 1);
    assert_string_equal(f->v.state, "interrupted");
    assert_string_equal(view_trial(&f->v, 2)->state, "interrupted");
    assert_true(view_trial(&f->v, 2)->seconds < 1000); /* nobody knows how long it ran */
    expect_refresh(f, 1);
    assert_string_equal(view_trial(&f->v, 2)->state, "running");
    assert_true(view_trial(&f->v, 2)->seconds > 1000);
}

static void test_a_study_that_was_removed_is_gone(void **state)
{
    struct fix *f = *state;
    open_view(f);
    assert_ok(f, store_study_remove(f->writer, f->study, &f->e));
    assert_int_equal(view_refresh(&f->v, 0, &f->e), -EINVAL);
    assert_string_equal(f->e.text, "study 's' was removed");
    (void)add_study(f, "s", T0 + 1);
    assert_int_equal(view_refresh(&f->v, 0, &f->e), -EINVAL); /* that is another one */
}

static void add_decision(struct fix *f, int trial, const char *kind)
{
    struct store_decision d = { .trial = trial, .kind = kind, .reason = "so" };
    assert_ok(f, store_decision_add(f->writer, f->study, &d, &f->e));
}

static void test_stories_go_on_where_they_were(void **state)
{
    struct fix *f = *state;
    open_view(f);
    add_decision(f, 1, "launch");
    expect_refresh(f, 1);
    assert_ok(f, view_stories(&f->v, &f->e));
    assert_int_equal(stories_of(&f->v.stories, 1)->n_steps, 1);
    add_decision(f, 1, "settle");
    add_decision(f, 3, "launch");
    f->v.stories_part.took_ms = 0; /* however slow this machine is */
    expect_refresh(f, 1);
    assert_ok(f, view_stories(&f->v, &f->e));
    assert_int_equal(stories_of(&f->v.stories, 1)->n_steps, 2);
    assert_int_equal(stories_of(&f->v.stories, 1)->settled, 1);
    assert_int_equal(stories_of(&f->v.stories, 3)->n_steps, 1);
    assert_int_equal(stories_of(&f->v.stories, 9)->class, -1);
}

static void test_a_better_value_of_one_that_was_stopped_is_seen(void **state)
{
    struct fix *f = *state;
    struct store_seen seen;
    open_view(f);
    assert_int_equal(view_seen(&f->v, &seen, &f->e), 0);
    add_epoch(f, add_trial(f, 4, "stopped", 0.7), 1, 0.99);
    expect_refresh(f, 1);
    assert_int_equal(view_seen(&f->v, &seen, &f->e), 1);
    assert_int_equal(seen.trial, 4);
}

static void test_memory_that_runs_out_leaves_nothing(void **state)
{
    struct fix *f = *state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 4000);
        fault_arm(FAULT_ALLOC, nth);
        rc = view_open(&f->v, f->reader, "s", f->dir, DRIVER, &f->e);
        for (size_t i = 0; rc == 0 && i < f->v.n; i++)
            rc = view_epochs(&f->v, &f->v.trials[i], &f->e);
        if (rc == 0)
            rc = view_energy(&f->v, &f->e);
        if (rc == 0)
            rc = view_stories(&f->v, &f->e);
        if (!fault_disarm())
            assert_ok(f, rc);
        else
            assert_true(rc == 0 || rc == -ENOMEM);
        if (rc < 0)
            view_done(&f->v);
    }
}

static void test_a_refresh_that_failed_is_made_up_for(void **state)
{
    struct fix *f = *state;
    int rc = -ENOMEM;
    open_view(f);
    do_new_trial(f);
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 4000);
        fault_arm(FAULT_ALLOC, nth);
        rc = view_refresh(&f->v, DRIVER, &f->e);
        (void)fault_disarm();
    }
    see_new_trial(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_study_is_there_with_its_trials),
        TEST(test_an_unknown_study_names_those_there_are),
        TEST(test_nothing_new_is_told_as_that),
        cmocka_unit_test(test_what_changed_is_seen),
        TEST(test_only_what_changed_is_marked),
        TEST(test_without_a_driver_it_is_interrupted),
        TEST(test_a_study_that_was_removed_is_gone),
        TEST(test_stories_go_on_where_they_were),
        TEST(test_a_better_value_of_one_that_was_stopped_is_seen),
        TEST(test_memory_that_runs_out_leaves_nothing),
        TEST(test_a_refresh_that_failed_is_made_up_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
