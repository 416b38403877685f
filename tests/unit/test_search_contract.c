/* What every search owes the driver, run over every row of `searches` and several spaces, and with every row of `stops`. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/rng.h"
#include "search/prior.h"
#include "search/search.h"
#include "tests/fault.h"

static const struct {
    const char *name, *text;
} spaces[] = {
    { "lists", "{\"batch_size\": [1024, 512, 32], \"lr\": [0.1, 0.01], \"opt\": [\"sgd\", \"adam\"]}" },
    { "one point", "{\"x\": [1]}" },
    { "a list and a range", "{\"x\": [3, 1], \"y\": {\"range\": [0.1, 0.6, 0.1]}}" },
    { "a range of 10^9", "{\"x\": {\"range\": [0, 1000000000]}}" },
    { "more than 2^64 points",
      "{\"a\": {\"range\": [0, 10000000000]}, \"b\": {\"range\": [0, 10000000000]}, \"c\": [1, 2]}" },
    { "whole numbers", "{\"x\": {\"min\": -3, \"max\": 5}, \"y\": [1, 2]}" },
    { "whole numbers on a log scale", "{\"x\": {\"min\": 1, \"max\": 500, \"scale\": \"log\"}}" },
    { "a list and whole numbers on a log scale",
      "{\"y\": [1, 2, 3], \"x\": {\"min\": 10, \"max\": 90, \"scale\": \"log\"}}" },
    { "a real number", "{\"x\": {\"min\": 0.5, \"max\": 0.75}, \"y\": [1, 2]}" },
    { "a real number on a log scale", "{\"x\": {\"min\": 1e-6, \"max\": 1, \"scale\": \"log\"}}" },
    { "points that are listed",
      "{\"points\": [{\"lr\": 1e-4, \"opt\": \"a\"}, {\"lr\": 1, \"opt\": \"b\"}, {\"lr\": 0.3, \"opt\": \"a\"}]}" },
    { "lists with rules", "{\"opt\": [\"sgd\", \"adam\"], \"m\": {\"values\": [0.5, 0.9], \"when\": {\"opt\": "
                          "\"sgd\"}}, \"b\": [16, 24, 32]},"
                          " \"study\": {\"constraints\": [\"b % 16 == 0\"]}" },
    { "real numbers with rules",
      "{\"opt\": [\"sgd\", \"adam\"], \"lr\": {\"min\": 1e-3, \"max\": 1, \"scale\": \"log\"},"
      " \"m\": {\"min\": 0.5, \"max\": 0.9, \"when\": {\"opt\": \"sgd\"}}},"
      " \"study\": {\"constraints\": [\"lr * m < 0.1\"]}" },
    { "lists of which some come first", "{\"lr\": [0.1, 0.2, 0.3], \"b\": [16, 32]}, \"study\": {\"first\": [{\"lr\": "
                                        "0.3, \"b\": 16}, {\"lr\": 0.1, \"b\": 32}]}" },
    { "numbers on a log scale of which one comes first",
      "{\"b\": {\"min\": 1, \"max\": 60, \"scale\": \"log\"}}, \"study\": {\"first\": [{\"b\": 59}]}" },
    { "a real number that comes first", "{\"lr\": {\"min\": 1e-3, \"max\": 1, \"scale\": \"log\"}, \"fixed\": 3}, "
                                        "\"study\": {\"first\": [{\"lr\": 0.5}]}" },
    { "real numbers as far as they go", "{\"x\": {\"min\": -1e308, \"max\": 1e308}}" },
};

enum { N_ASKED = 400, N_ASKED_SEVERAL = 24, EPOCHS = 5 };

static const struct goals one_goal = { .n = 0 };
static const struct goals three_goals = { .n = 3,
                                          .v = { { .name = "accuracy", .kind = GOAL_METRIC, .maximise = true },
                                                 { .name = "seconds", .kind = GOAL_SECONDS },
                                                 { .name = "loss", .kind = GOAL_METRIC } } };

static struct space parsed(const char *hyper)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "{\"hyperParameters\": %s}", hyper);
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct space s = { 0 };
    struct err e = { 0 };
    if (json_doc_parse(&doc, "t.conf", buf_text(&b), b.len, &e) < 0 || space_parse(&s, &doc, &e) < 0)
        fail_msg("%s: %s", hyper, e.text);
    return s;
}

/* What a trial is worth: some number, the same for the same point; every third trial fails when `fail` says so. */
static double worth(const struct proposal *p, bool fail)
{
    return fail && p->id % 3 == 0 ? NAN : cos(p->point.x[0]);
}

/* Asks and tells until `n` proposals were made or the search ends. */
static size_t drive(struct search *s, struct proposal *out, size_t n, bool fail)
{
    for (size_t i = 0; i < n; i++) {
        int rc = search_ask(s, true, &out[i]);
        if (rc == -ENODATA)
            return i;
        assert_int_equal(rc, 1);
        struct told t = { .id = out[i].id, .kind = TOLD_FINISHED, .epoch = EPOCHS, .value = worth(&out[i], fail) };
        struct told_metric loss = { "loss", 1.0 / (double)(1 + out[i].id % 7) };
        t.metrics = &loss;
        t.n_metrics = 1;
        t.seconds = 1 + (double)(out[i].id % 5);
        t.joules = NAN;
        t.kind = isnan(t.value) ? TOLD_FAILED : TOLD_FINISHED;
        struct search_answer a;
        assert_int_equal(search_tell(s, &t, &a), 0);
    }
    return n;
}

static void assert_in_bounds(const char *what, const struct space *sp, const struct point *p)
{
    for (size_t i = 0; i < SPACE_MAX_DIMS; i++) {
        const struct dim *d = &sp->dims[i];
        double x = p->x[i];
        bool ok = x == 0;
        if (i < sp->n_dims && (d->kind == DIM_LIST || d->kind == DIM_RANGE))
            ok = x >= 0 && x < (double)d->n && x == floor(x);
        else if (i < sp->n_dims)
            ok = x >= d->min && x <= d->max && (d->kind == DIM_REAL || x == floor(x));
        if (!ok)
            fail_msg("%s: dimension %zu is %g", what, i, x);
    }
    struct point admitted = *p;
    if (!space_admits(sp, &admitted) || memcmp(&admitted, p, sizeof *p) != 0)
        fail_msg("%s: it breaks a rule", what);
}

static bool equal(const struct proposal *a, const struct proposal *b)
{
    return a->id == b->id && a->again == b->again && memcmp(&a->point, &b->point, sizeof a->point) == 0;
}

static void check_contract(const struct search_ops *ops, const char *what, const struct space *sp,
                           const struct goals *goals, size_t most)
{
    static struct proposal first[N_ASKED];
    static struct proposal again[N_ASKED];
    struct search_cfg cfg = { .seed = 42, .epochs = EPOCHS, .min_epochs = 1, .maximise = true, .goals = goals };
    for (int fail = 0; fail <= 1; fail++) {
        struct search s = { 0 };
        struct search t = { 0 };
        assert_int_equal(search_new(&s, ops->name, NULL, sp, &cfg, NULL), 0);
        assert_int_equal(search_new(&t, ops->name, NULL, sp, &cfg, NULL), 0);
        size_t n = drive(&s, first, most, fail);
        /* the same seed, told the same, in two goes: what a resumed study does */
        size_t half = drive(&t, again, n / 2, fail);
        half += drive(&t, again + half, most - half, fail);
        assert_int_equal(n, half);
        assert_true(n > 0);
        for (size_t i = 0; i < n && i < sp->n_first; i++)
            assert_memory_equal(&first[i].point, &sp->first[i], sizeof first[i].point);
        for (size_t i = 0; i < n; i++) {
            if (!equal(&first[i], &again[i]))
                fail_msg("%s %s: proposal %zu differs the second time", ops->name, what, i);
            assert_int_equal(first[i].id, i);
            assert_in_bounds(what, sp, &first[i].point);
            for (size_t k = 0; k < i; k++)
                if (memcmp(&first[i].point, &first[k].point, sizeof first[i].point) == 0)
                    fail_msg("%s %s: proposals %zu and %zu are one point", ops->name, what, k, i);
        }
        if (n < most) { /* a search of a finite space may end only when it has proposed all, and stays ended */
            assert_int_equal(n, space_size(sp));
            assert_int_equal(search_ask(&s, true, &first[0]), -ENODATA);
        }
        search_done(&s);
        search_done(&t);
    }
}

static void test_every_search_keeps_the_contract(void **state)
{
    (void)state;
    for (size_t i = 0; searches[i]; i++) {
        for (size_t k = 0; k < ARRAY_LEN(spaces); k++) {
            struct space sp = parsed(spaces[k].text);
            struct search_cfg cfg = { .epochs = 1 };
            struct search s = { 0 };
            struct err e = { 0 };
            int rc = search_new(&s, searches[i]->name, NULL, &sp, &cfg, &e);
            search_done(&s);
            if (rc == 0) {
                check_contract(searches[i], spaces[k].name, &sp, &one_goal, N_ASKED);
                check_contract(searches[i], spaces[k].name, &sp, &three_goals, N_ASKED_SEVERAL);
            } else if (rc != -EINVAL || !e.text[0] ||
                       (space_is_listed(&sp) &&
                        searches[i] != &search_points)) /* a list must be fine for any other search */
                fail_msg("%s %s: got %d %s", searches[i]->name, spaces[k].name, rc, e.text);
            space_done(&sp);
        }
    }
}

static void test_every_finite_space_is_used_up(void **state)
{
    (void)state;
    for (size_t i = 0; searches[i]; i++) {
        if (searches[i] == &search_points)
            continue; /* there are none */
        struct space sp = parsed("{\"x\": {\"range\": [0, 50]}, \"y\": {\"range\": [0, 40]}, \"z\": [1, 2, 3]}");
        struct search_cfg cfg = { .seed = 1, .epochs = 1 };
        struct search s = { 0 };
        assert_int_equal(search_new(&s, searches[i]->name, NULL, &sp, &cfg, NULL), 0);
        static bool seen[50][40][3];
        memset(seen, 0, sizeof seen);
        struct proposal p;
        size_t n = 0;
        for (; drive(&s, &p, 1, false) == 1; n++) {
            bool *was = &seen[(int)p.point.x[0]][(int)p.point.x[1]][(int)p.point.x[2]];
            assert_false(*was);
            *was = true;
        }
        assert_int_equal(n, 6000);
        search_done(&s);
        space_done(&sp);
    }
}

static void test_random_uses_up_a_log_scale(void **state)
{
    (void)state;
    struct space sp = parsed("{\"x\": {\"min\": 1, \"max\": 100000, \"scale\": \"log\"}}");
    struct search_cfg cfg = { .seed = 1, .epochs = 1 };
    struct search s = { 0 };
    assert_int_equal(search_new(&s, "random", NULL, &sp, &cfg, NULL), 0);
    static bool seen[100001];
    struct proposal p;
    size_t n = 0;
    size_t small = 0; /* among the first 1000: evenly on a log scale, 3 of 5 are up to 1000, but for repeats */
    for (; search_ask(&s, true, &p) == 1; n++) {
        assert_false(seen[(int)p.point.x[0]]);
        seen[(int)p.point.x[0]] = true;
        small += n < 1000 && p.point.x[0] <= 1000;
    }
    assert_int_equal(n, 100000);
    assert_true(small > 300);
    search_done(&s);
    space_done(&sp);
}

static void test_random_draws_evenly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double middle; /* half of the draws are below */
    } even[] = {
        { "{\"x\": {\"min\": 10.0, \"max\": 20}}", 15 },
        { "{\"x\": {\"min\": 1e-6, \"max\": 1, \"scale\": \"log\"}}", 1e-3 },
        { "{\"x\": {\"min\": 0, \"max\": 999999}}", 500000 },
        { "{\"x\": {\"min\": 1000000, \"max\": 999999999999, \"scale\": \"log\"}}",
          1e9 }, /* so high that repeats are rare */
        { "{\"x\": {\"range\": [0, 1000000000]}}", 5e8 },
    };
    for (size_t i = 0; i < ARRAY_LEN(even); i++) {
        struct space sp = parsed(even[i].text);
        struct search_cfg cfg = { .seed = 9, .epochs = 1 };
        struct search s = { 0 };
        assert_int_equal(search_new(&s, "random", NULL, &sp, &cfg, NULL), 0);
        int below = 0;
        for (int k = 0; k < 4000; k++) {
            struct proposal p;
            assert_int_equal(search_ask(&s, true, &p), 1);
            below += p.point.x[0] < even[i].middle;
        }
        if (below < 1850 || below > 2150)
            fail_msg("%s: %d of 4000 below the middle, want about 2000", even[i].text, below);
        search_done(&s);
        space_done(&sp);
    }
}

static void test_another_seed_is_another_order(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(spaces); k++) {
        struct space sp = parsed(spaces[k].text);
        bool differs = space_size(&sp) == 1 || sp.n_first > 0;
        for (uint64_t seed = 1; seed < 20 && !differs; seed++) {
            struct search a = { 0 };
            struct search b = { 0 };
            struct proposal pa, pb;
            assert_int_equal(search_new(&a, "random", NULL, &sp, &(struct search_cfg){ .seed = 0, .epochs = 1 }, NULL),
                             0);
            assert_int_equal(
                search_new(&b, "random", NULL, &sp, &(struct search_cfg){ .seed = seed, .epochs = 1 }, NULL), 0);
            assert_int_equal(search_ask(&a, true, &pa), 1);
            assert_int_equal(search_ask(&b, true, &pb), 1);
            differs = !equal(&pa, &pb);
            search_done(&a);
            search_done(&b);
        }
        if (!differs)
            fail_msg("%s: every seed begins alike", spaces[k].name);
        space_done(&sp);
    }
}

static void test_grid_goes_in_the_order_written(void **state)
{
    (void)state;
    static const double want[][2] = { { 0, 0 }, { 0, 1 }, { 0, 2 }, { 1, 0 }, { 1, 1 }, { 1, 2 } };
    struct space sp = parsed("{\"x\": [8, 2], \"y\": {\"range\": [0, 3]}}");
    struct search s = { 0 };
    assert_int_equal(search_new(&s, "grid", NULL, &sp, &(struct search_cfg){ .epochs = 5 }, NULL), 0);
    struct proposal p;
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_int_equal(search_ask(&s, true, &p), 1);
        assert_int_equal(p.id, i);
        assert_true(p.point.x[0] == want[i][0] && p.point.x[1] == want[i][1]);
    }
    assert_int_equal(search_ask(&s, true, &p), -ENODATA);
    search_done(&s);
    space_done(&sp);
}

static void test_searches_are_chosen_by_name_or_space(void **state)
{
    (void)state;
    struct space listed = parsed("{\"x\": [1]}");
    struct space real = parsed("{\"x\": {\"min\": 0.5, \"max\": 1}}");
    struct search_cfg cfg = { .epochs = 1 };
    struct search s = { 0 };
    struct err e = { 0 };
    assert_int_equal(search_new(&s, NULL, NULL, &listed, &cfg, &e), 0);
    assert_string_equal(s.ops->name, "grid");
    search_done(&s);
    assert_int_equal(search_new(&s, NULL, NULL, &real, &cfg, &e), 0);
    assert_string_equal(s.ops->name, "auto");
    search_done(&s);
    search_done(&s);
    assert_string_equal(search_default_stop("grid"), "none");
    assert_string_equal(search_default_stop("points"), "none");
    assert_string_equal(search_default_stop("auto"), "curves");
    search_done(NULL);
    assert_int_equal(search_new(&s, "grid", NULL, &real, &cfg, &e), -EINVAL);
    assert_non_null(strstr(e.text, "'x' has 'min' and 'max'"));
    assert_int_equal(search_new(&s, "gird", NULL, &real, &cfg, &e), -EINVAL);
    assert_non_null(strstr(e.text, "did you mean 'grid'"));
    assert_int_equal(search_new(&s, "simulated", NULL, &real, &cfg, &e), -EINVAL);
    assert_non_null(strstr(e.text, "there are: grid, points, random, tpe"));
    assert_null(s.ops);
    struct space points = parsed("{\"points\": [{\"x\": 1}]}");
    assert_int_equal(search_new(&s, NULL, NULL, &points, &cfg, &e), 0);
    assert_string_equal(s.ops->name, "points");
    search_done(&s);
    assert_int_equal(search_new(&s, "points", NULL, &listed, &cfg, &e), -EINVAL);
    assert_non_null(strstr(e.text, "needs a list of them"));
    space_done(&points);
    space_done(&listed);
    space_done(&real);
}

/* However many allocations fail on the way, a search proposes what it proposes without failures. */
static void check_memory(const struct goals *goals)
{
    struct search_cfg cfg = { .seed = 5, .epochs = 1, .goals = goals };
    for (size_t i = 0; searches[i]; i++) {
        for (size_t k = 0; k < ARRAY_LEN(spaces); k++) {
            struct space sp = parsed(spaces[k].text);
            struct search calm = { 0 };
            if (search_new(&calm, searches[i]->name, NULL, &sp, &cfg, NULL) < 0) {
                space_done(&sp);
                continue;
            }
            struct search s = { 0 };
            struct err e = { 0 };
            int rc = -ENOMEM;
            for (unsigned nth = 1; rc < 0; nth++) {
                assert_true(nth < 64);
                fault_arm(FAULT_ALLOC, nth);
                rc = search_new(&s, searches[i]->name, NULL, &sp, &cfg, &e);
                fault_disarm();
                assert_true(rc == 0 || rc == -ENOMEM);
            }
            for (int n = 0; n < 300; n++) {
                struct proposal want, got;
                int end = search_ask(&calm, true, &want);
                fault_arm(FAULT_ALLOC, 1);
                rc = search_ask(&s, true, &got);
                fault_disarm();
                if (rc == -ENOMEM)
                    rc = search_ask(&s, true, &got);
                assert_int_equal(rc, end);
                if (end == -ENODATA)
                    break;
                assert_true(equal(&want, &got));
            }
            search_done(&s);
            search_done(&calm);
            space_done(&sp);
        }
    }
}

static void test_a_search_survives_memory_running_out(void **state)
{
    (void)state;
    check_memory(&one_goal);
    check_memory(&three_goals);
}

/* --- the life of trials: several at once, which fail, pause, go on and stop ------------------------------------------ */

enum { AT_ONCE = 3, TRIALS = 60, STEPS_MAX = 4000, LINE_MAX_ = 192 };

enum being { FREE, RUNS, PAUSED, ENDING, OVER };

/* What every stop rule is run with: a world in which a trial is worth what its id and epoch say. */
struct life {
    struct search s;
    const struct space *space;
    const char *what;
    bool restore; /* before each step: into a new search */
    bool learns;  /* from an earlier study */
    bool can_pause;
    const char *search, *stop;
    const struct goals *goals;
    enum being trials[TRIALS];
    int epochs[TRIALS];
    int n;
    bool asleep, ended;
    struct buf story; /* all that was proposed and answered */
};

static const struct search_cfg life_cfg = {
    .seed = 7, .epochs = EPOCHS, .min_epochs = 1, .maximise = true, .max_trials = TRIALS
};

static struct search_cfg cfg_of(const struct life *l)
{
    struct search_cfg cfg = life_cfg;
    cfg.can_pause = l->can_pause;
    cfg.goals = l->goals;
    return cfg;
}

/* What a driver that was killed does. */
static void lose_and_restore(struct life *l)
{
    AUTO_BUF struct buf state = BUF_INIT, again = BUF_INIT;
    struct search_cfg cfg = cfg_of(l);
    search_save(&l->s, &state);
    assert_false(state.failed);
    search_done(&l->s);
    assert_int_equal(search_new(&l->s, l->search, l->stop, l->space, &cfg, NULL), 0);
    assert_int_equal(search_restore(&l->s, state.data, state.len), 0);
    search_save(&l->s, &again);
    if (again.len != state.len || memcmp(again.data, state.data, state.len) != 0)
        fail_msg("%s: a restored state is saved as another", l->what);
}

static int running(const struct life *l)
{
    int n = 0;
    for (int i = 0; i < l->n; i++)
        n += l->trials[i] == RUNS || l->trials[i] == ENDING;
    return n;
}

static void start_one(struct life *l, const struct proposal *p)
{
    if (p->again) {
        if (p->id >= (uint64_t)l->n || (l->trials[p->id] != PAUSED && l->trials[p->id] != ENDING))
            fail_msg("%s: goes on with %d, which is not paused", l->what, (int)p->id);
        l->trials[p->id] = RUNS; /* or, as soon as it has got to its pause */
        return;
    }
    assert_int_equal(p->id, l->n);
    assert_true(l->n < TRIALS);
    assert_in_bounds(l->what, l->space, &p->point);
    l->trials[l->n] = RUNS;
    l->epochs[l->n++] = 0;
}

/* Asking without an answer changes nothing. */
static void ask_in_vain(struct life *l, int want)
{
    AUTO_BUF struct buf before = BUF_INIT, after = BUF_INIT;
    struct proposal p;
    search_save(&l->s, &before);
    assert_int_equal(search_ask(&l->s, l->n < TRIALS, &p), want);
    search_save(&l->s, &after);
    if (before.len != after.len || memcmp(before.data, after.data, before.len) != 0)
        fail_msg("%s: an ask that proposes nothing changes the search", l->what);
}

static void ask_one(struct life *l)
{
    struct proposal p;
    int rc = search_ask(&l->s, l->n < TRIALS, &p);
    buf_printf(&l->story, "ask %d %d %d\n", rc, rc == 1 ? (int)p.id : -1, rc == 1 && p.again);
    if (rc == 1) {
        start_one(l, &p);
        return;
    }
    ask_in_vain(l, rc);
    l->asleep = rc == 0;
    l->ended = rc == -ENODATA;
}

static void tell_one(struct life *l, int i, enum told_kind kind)
{
    struct search_answer a;
    struct told_metric loss = { "loss", 1.0 / (i + 1) };
    struct told t = { .id = (uint64_t)i, .kind = kind, .epoch = l->epochs[i], .metrics = &loss, .n_metrics = 1 };
    bool bad = kind == TOLD_FAILED || kind == TOLD_INFEASIBLE;
    t.value = bad ? NAN : cos(i) + 0.1 * l->epochs[i];
    t.seconds = 3.5 * l->epochs[i];
    t.joules = NAN;
    assert_int_equal(search_tell(&l->s, &t, &a), 0);
    buf_printf(&l->story, "tell %d %d at %d: %d %s\n", i, (int)kind, l->epochs[i], (int)a.verdict,
               a.verdict == SEARCH_GO_ON ? "" : a.why);
    l->asleep &= !a.wake && kind == TOLD_EPOCH;
    if (kind != TOLD_EPOCH) {
        l->trials[i] = OVER;
        return;
    }
    if (l->trials[i] != RUNS || l->epochs[i] == EPOCHS)
        return;
    assert_true(a.verdict != SEARCH_PAUSE || l->can_pause);
    if (a.verdict != SEARCH_GO_ON && !a.why[0])
        fail_msg("%s: ends a trial and does not say why", l->what);
    l->trials[i] = a.verdict == SEARCH_PAUSE ? ENDING : RUNS;
    if (a.verdict == SEARCH_STOP)
        tell_one(l, i, TOLD_STOPPED);
}

/* An epoch, or an end, of one of those that run. */
static void train_one(struct life *l, struct rng *r)
{
    int i = (int)rng_below(r, (uint64_t)l->n);
    while (l->trials[i] != RUNS && l->trials[i] != ENDING)
        i = (i + 1) % l->n;
    uint64_t chance = rng_below(r, 40);
    if (l->trials[i] == ENDING && chance > 3) {
        l->trials[i] = PAUSED;
        l->asleep = false; /* an attempt has ended */
    } else if (chance < 2) {
        tell_one(l, i, chance ? TOLD_FAILED : TOLD_INFEASIBLE);
    } else {
        l->epochs[i] += chance != 2 || l->epochs[i] == 0; /* else one that was lost is told again */
        tell_one(l, i, TOLD_EPOCH);
        if (l->epochs[i] == EPOCHS && l->trials[i] != OVER)
            tell_one(l, i, TOLD_FINISHED);
    }
}

/* An earlier study over the same points, of which those that come late are good, as long as they are trained. */
static void teach(struct life *l)
{
    enum { EARLIER = 15 };
    static double values[EARLIER][EPOCHS];
    struct prior_trial v[EARLIER];
    struct search other = { 0 };
    struct prior *prior = NULL;
    struct prior_taken taken;
    struct search_cfg cfg = cfg_of(l);
    assert_int_equal(search_new(&other, "random", NULL, l->space, &cfg, NULL), 0);
    for (int i = 0; i < EARLIER; i++) {
        struct proposal p;
        assert_int_equal(search_ask(&other, true, &p), 1);
        for (int k = 0; k < EPOCHS; k++)
            values[i][k] = cos(i) + 0.1 * (k + 1);
        v[i] = (struct prior_trial){ "earlier/1", space_point_json(l->space, &p.point), values[i], EPOCHS };
    }
    assert_int_equal(prior_new(&prior, l->space, &cfg), 0);
    assert_int_equal(prior_learn(prior, v, EARLIER, &taken), 0);
    assert_int_equal(taken.usable, EARLIER);
    assert_true(taken.points > 3);
    assert_int_equal(search_learn(&l->s, prior, NULL), 0);
    for (int i = 0; i < EARLIER; i++)
        json_decref((json_t *)(uintptr_t)v[i].hyper);
    search_done(&other);
}

static void live(struct life *l)
{
    struct rng r = rng_seeded(3);
    struct search_cfg cfg = cfg_of(l);
    assert_int_equal(search_new(&l->s, l->search, l->stop, l->space, &cfg, NULL), 0);
    if (l->learns)
        teach(l);
    for (int step = 0; running(l) > 0 || !(l->ended || l->asleep); step++) {
        if (step == STEPS_MAX)
            fail_msg("%s: does not end", l->what);
        if (l->restore)
            lose_and_restore(l);
        if (running(l) < AT_ONCE && !l->asleep && !l->ended)
            ask_one(l);
        else
            train_one(l, &r);
    }
    search_done(&l->s);
}

static void check_life_of(const char *search, const char *stop, const char *space, bool can_pause, bool learns,
                          const struct goals *goals)
{
    char what[LINE_MAX_];
    struct space sp = parsed(space);
    (void)snprintf(what, sizeof what, "%s and %s, %s, %s", search, stop, can_pause ? "with pauses" : "without pauses",
                   goals->n > 1 ? "several objectives" : "one objective");
    struct life calm = {
        .space = &sp, .what = what, .search = search, .stop = stop, .can_pause = can_pause, .goals = goals
    };
    calm.learns = learns;
    struct life cut = calm;
    live(&calm);
    cut.restore = true;
    live(&cut);
    if (strcmp(buf_text(&calm.story), buf_text(&cut.story)) != 0)
        fail_msg("%s: a search that is restored at each step goes another way:\n%s\ninstead of\n%s", what,
                 buf_text(&cut.story), buf_text(&calm.story));
    assert_true(calm.n > 10);
    buf_done(&calm.story);
    buf_done(&cut.story);
    space_done(&sp);
}

static void check_life(const char *search, const char *stop, const char *space, bool can_pause)
{
    check_life_of(search, stop, space, can_pause, false, &one_goal);
    check_life_of(search, stop, space, can_pause, false, &three_goals);
}

static void test_searches_that_learn_live_on_when_restored(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        "{\"x\": {\"range\": [0, 20]}, \"y\": [1, 2]}",
        "{\"x\": {\"min\": 1, \"max\": 500, \"scale\": \"log\"}, \"y\": [\"a\", \"b\"]}",
        "{\"points\": [{\"x\": 1}, {\"x\": 2}, {\"x\": 3}, {\"x\": 4}, {\"x\": 5}, {\"x\": 6}, {\"x\": 7}, {\"x\": 8}, "
        "{\"x\": 9}, {\"x\": 10}, {\"x\": 11}, {\"x\": 12}, {\"x\": 13}, {\"x\": 14}, {\"x\": 15}, {\"x\": 16}]}",
        "{\"opt\": [\"sgd\", \"adam\"], \"lr\": {\"min\": 1e-3, \"max\": 1, \"scale\": \"log\"},"
        " \"m\": {\"min\": 0.5, \"max\": 0.9, \"when\": {\"opt\": \"sgd\"}}},"
        " \"study\": {\"constraints\": [\"lr * m < 0.1\"], \"first\": [{\"opt\": \"adam\", \"lr\": 0.01}]}",
    };
    for (size_t i = 0; searches[i]; i++)
        for (size_t k = 0; searches[i]->add && stops[k]; k++)
            for (size_t w = 0; w < ARRAY_LEN(wanted); w++)
                check_life_of(searches[i]->name, stops[k]->name, wanted[w], w % 2 == 0, true,
                              w % 3 == 0 ? &three_goals : &one_goal);
}

static void test_a_search_that_goes_through_all_learns_nothing(void **state)
{
    (void)state;
    struct space sp = parsed("{\"x\": [1, 2, 3]}");
    struct search s = { 0 };
    struct prior *prior = NULL;
    struct err e = { 0 };
    assert_int_equal(prior_new(&prior, &sp, &life_cfg), 0);
    assert_int_equal(search_new(&s, "grid", NULL, &sp, &life_cfg, NULL), 0);
    assert_int_equal(search_learn(&s, prior, &e), -EINVAL);
    assert_non_null(strstr(e.text, "search 'grid' takes points as they come"));
    prior_free(prior);
    search_done(&s);
    space_done(&sp);
}

static void test_trials_live_as_searches_and_stop_rules_say(void **state)
{
    (void)state;
    static const char *const listed = "{\"x\": {\"range\": [0, 20]}, \"y\": [1, 2]}";
    AUTO_BUF struct buf points = BUF_INIT;
    for (int i = 0; i < 30; i++)
        buf_printf(&points, "%s{\"x\": %d, \"y\": \"%d\"}", i ? ", " : "{\"points\": [", i * 7 % 30, i % 3);
    buf_puts(&points, "]}");
    for (size_t i = 0; searches[i]; i++)
        for (size_t k = 0; stops[k]; k++)
            for (int can_pause = 0; can_pause <= 1; can_pause++) {
                if (searches[i] != &search_points)
                    check_life(searches[i]->name, stops[k]->name, listed, can_pause);
                check_life(searches[i]->name, stops[k]->name, buf_text(&points), can_pause);
            }
    for (size_t k = 0; stops[k]; k++)
        check_life("tpe", stops[k]->name,
                   "{\"x\": {\"min\": 1, \"max\": 500, \"scale\": \"log\"}, \"y\": [\"a\", \"b\"]}", true);
    check_life("random", "shuffle", "{\"x\": {\"min\": 1, \"max\": 500, \"scale\": \"log\"}}", true);
    check_life("random", "shuffle", "{\"x\": {\"min\": 0.5, \"max\": 2}}", true);
}

/* Of a damaged file, or of other rows, there is no state; and no bytes do harm. */
static void test_other_bytes_are_no_state(void **state)
{
    (void)state;
    struct space sp = parsed("{\"x\": {\"min\": 1, \"max\": 500, \"scale\": \"log\"}}");
    AUTO_BUF struct buf bytes = BUF_INIT;
    struct search s = { 0 };
    struct proposal p;
    assert_int_equal(search_new(&s, "random", "shuffle", &sp, &life_cfg, NULL), 0);
    for (int i = 0; i < 20; i++)
        assert_true(search_ask(&s, true, &p) >= 0);
    search_save(&s, &bytes);
    search_done(&s);
    for (size_t len = 0; len < bytes.len; len++) {
        assert_int_equal(search_new(&s, "random", "shuffle", &sp, &life_cfg, NULL), 0);
        assert_int_equal(search_restore(&s, bytes.data, len), -EPROTO);
        search_done(&s);
    }
    assert_int_equal(search_new(&s, "random", NULL, &sp, &life_cfg, NULL), 0);
    assert_int_equal(search_restore(&s, bytes.data, bytes.len), -EPROTO);
    search_done(&s);
    for (size_t at = 0; at < bytes.len; at++) {
        assert_int_equal(search_new(&s, "random", "shuffle", &sp, &life_cfg, NULL), 0);
        bytes.data[at] = (char)~bytes.data[at];
        (void)search_restore(&s, bytes.data, bytes.len);
        bytes.data[at] = (char)~bytes.data[at];
        search_done(&s);
    }
    space_done(&sp);
}

static void test_a_point_reads_back_from_its_text(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(spaces); k++) {
        struct space sp = parsed(spaces[k].text);
        struct search s = { 0 };
        struct proposal p;
        assert_int_equal(search_new(&s, "random", NULL, &sp, &life_cfg, NULL), 0);
        for (int i = 0; i < 50 && search_ask(&s, true, &p) == 1; i++) {
            struct point back = { 0 };
            AUTO_JSON json_t *j = space_point_json(&sp, &p.point);
            AUTO_FREE char *text = json_text(j);
            AUTO_JSON json_t *read = json_loads(text, 0, NULL);
            int rc = space_point_parse(&sp, read, NULL, &back);
            if (rc < 0 || memcmp(&back, &p.point, sizeof back) != 0)
                fail_msg("%s: %s does not read back", spaces[k].name, text);
        }
        struct point untouched;
        AUTO_JSON json_t *other = json_pack("{s:s}", "x", "no such value");
        assert_int_equal(space_point_parse(&sp, other, NULL, &untouched), -EINVAL);
        search_done(&s);
        space_done(&sp);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_search_keeps_the_contract),
        cmocka_unit_test(test_every_finite_space_is_used_up),
        cmocka_unit_test(test_random_uses_up_a_log_scale),
        cmocka_unit_test(test_random_draws_evenly),
        cmocka_unit_test(test_another_seed_is_another_order),
        cmocka_unit_test(test_grid_goes_in_the_order_written),
        cmocka_unit_test(test_searches_are_chosen_by_name_or_space),
        cmocka_unit_test(test_a_search_survives_memory_running_out),
        cmocka_unit_test(test_trials_live_as_searches_and_stop_rules_say),
        cmocka_unit_test(test_searches_that_learn_live_on_when_restored),
        cmocka_unit_test(test_a_search_that_goes_through_all_learns_nothing),
        cmocka_unit_test(test_other_bytes_are_no_state),
        cmocka_unit_test(test_a_point_reads_back_from_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
