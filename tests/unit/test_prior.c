/* What earlier studies teach: which points, how often they are proposed, how long the best is held, and that it is all in the state. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "search/prior.h"
#include "tests/fault.h"

enum { EPOCHS = 8, MANY = 20 };

static const struct search_cfg cfg = { .seed = 3, .epochs = EPOCHS, .maximise = true, .min_epochs = 1 };

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

static const char line[] = "{\"x\": {\"min\": 0.0, \"max\": 100}}";

/* Trials of one value each, by their hyperparameters as JSON. */
struct study {
    char names[MANY][16];
    double values[MANY][EPOCHS];
    struct prior_trial v[MANY];
    size_t n;
};

static void add(struct study *s, const char *hyper, double first, double last)
{
    struct prior_trial *t = &s->v[s->n];
    for (int i = 0; i < EPOCHS; i++)
        s->values[s->n][i] = first + (last - first) * i / (EPOCHS - 1);
    (void)snprintf(s->names[s->n], sizeof s->names[0], "old/%zu", s->n + 1);
    *t = (struct prior_trial){ s->names[s->n], json_loads(hyper, 0, NULL), s->values[s->n], isnan(last) ? 0 : EPOCHS };
    assert_non_null(t->hyper);
    s->n++;
}

static void study_done(struct study *s)
{
    for (size_t i = 0; i < s->n; i++)
        json_decref((json_t *)(uintptr_t)s->v[i].hyper);
    s->n = 0;
}

static struct prior *new_prior(const struct space *sp)
{
    struct prior *p = NULL;
    assert_int_equal(prior_new(&p, sp, &cfg), 0);
    return p;
}

/* Which points there are, "10:old/3 30:old/1". */
static void assert_points(const struct prior *p, const char *want)
{
    AUTO_BUF struct buf b = BUF_INIT;
    for (size_t i = 0; i < prior_points(p); i++)
        buf_printf(&b, "%s%g:%s", i ? " " : "", prior_point(p, i)->x[0], prior_name(p, i));
    if (strcmp(buf_text(&b), want) != 0)
        fail_msg("got '%s', want '%s'", buf_text(&b), want);
}

static const struct {
    const char *name, *space;
    struct {
        const char *hyper;
        double last;
    } trials[5];
    const char *points;
    struct prior_taken want;
} cases[] = {
    { "the best come first",
      line,
      { { "{\"x\": 30}", 5 }, { "{\"x\": 10}", 9 }, { "{\"x\": 70}", 7 } },
      "10:old/2 70:old/3 30:old/1",
      { .common = 1, .usable = 3, .points = 3 } },
    { "of two that are alike the better one",
      line,
      { { "{\"x\": 30}", 5 }, { "{\"x\": 32}", 9 }, { "{\"x\": 70}", 7 } },
      "32:old/2 70:old/3",
      { .common = 1, .usable = 3, .points = 2 } },
    { "what lies outside is dropped, and what failed teaches nothing",
      line,
      { { "{\"x\": 130}", 9 }, { "{\"x\": 32}", NAN }, { "{\"x\": 70}", 7 } },
      "70:old/3",
      { .common = 1, .usable = 1, .outside = 1, .points = 1 } },
    { "hyperparameters that are not here do not matter",
      line,
      { { "{\"momentum\": 0.5, \"x\": 7}", 1 } },
      "7:old/1",
      { .common = 1, .usable = 1, .points = 1 } },
    { "without a common one there is nothing", line, { { "{\"y\": 7}", 1 } }, "", { .usable = 1 } },
    { "of one that it did not have the rest is drawn, and said",
      "{\"x\": [1, 2, 3], \"y\": {\"min\": 0.0, \"max\": 1}, \"fixed\": 4}",
      { { "{\"x\": 3}", 1 } },
      "2:old/1",
      { .common = 1, .usable = 1, .points = 1, .missing = "y" } },
    { "a value that its list does not have is outside",
      "{\"x\": [1, 2, 3]}",
      { { "{\"x\": 4}", 1 }, { "{\"x\": \"2\"}", 1 } },
      "1:old/2",
      { .common = 1, .usable = 1, .outside = 1, .points = 1 } },
    { "of listed points the nearest",
      "{\"points\": [{\"x\": 0, \"y\": 0}, {\"x\": 50, \"y\": 1}, {\"x\": 100, \"y\": 0}]}",
      { { "{\"x\": 60, \"y\": 1}", 1 } },
      "50:old/1",
      { .common = 2, .usable = 1, .points = 1 } },
};

static void test_which_points_are_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct space sp = parsed(cases[i].space);
        struct prior *p = new_prior(&sp);
        struct study s = { .n = 0 };
        struct prior_taken got;
        for (size_t k = 0; k < ARRAY_LEN(cases[i].trials) && cases[i].trials[k].hyper; k++)
            add(&s, cases[i].trials[k].hyper, 0, cases[i].trials[k].last);
        assert_int_equal(prior_learn(p, s.v, s.n, &got), 0);
        const struct prior_taken *want = &cases[i].want;
        if (got.usable != want->usable || got.outside != want->outside || got.points != want->points ||
            (got.common > 0) != (want->common > 0) || strcmp(got.missing, want->missing) != 0)
            fail_msg("%s: got %zu usable, %zu outside, %zu points, missing '%s'", cases[i].name, got.usable,
                     got.outside, got.points, got.missing);
        assert_points(p, cases[i].points);
        study_done(&s);
        prior_free(p);
        space_done(&sp);
    }
}

static void test_the_best_of_each_study_come_first(void **state)
{
    (void)state;
    struct space sp = parsed(line);
    struct prior *p = new_prior(&sp);
    struct study a = { .n = 0 }, b = { .n = 0 };
    struct prior_taken taken;
    add(&a, "{\"x\": 10}", 0, 100);
    add(&a, "{\"x\": 20}", 0, 90);
    add(&b, "{\"x\": 30}", 0, 2);
    add(&b, "{\"x\": 20}", 0, 1); /* is there already */
    add(&b, "{\"x\": 40}", 0, 0.5);
    assert_int_equal(prior_learn(p, a.v, a.n, &taken), 0);
    assert_int_equal(prior_learn(p, b.v, b.n, &taken), 0);
    assert_points(p, "10:old/1 30:old/1 20:old/2 40:old/3");
    study_done(&a);
    study_done(&b);
    prior_free(p);
    space_done(&sp);
}

/* Asks for `n` trials, and tells one epoch of each: of earlier points `known`, of others `own`. Writes which were earlier ones. */
static void play(struct prior *p, size_t n, double known, double own, char *out)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = prior_due(p);
        assert_int_equal(prior_make_room(p), 0);
        prior_asked(p, at);
        out[i] = at == PRIOR_NONE ? '.' : 'K';
        struct told t = { .id = i, .kind = TOLD_EPOCH, .epoch = 1, .value = at == PRIOR_NONE ? own : known };
        (void)prior_tell(p, &t);
    }
    out[n] = '\0';
}

static struct prior *points_of_twelve(const struct space *sp)
{
    struct prior *p = new_prior(sp);
    struct study s = { .n = 0 };
    struct prior_taken taken;
    for (int i = 0; i < 12; i++) {
        char hyper[32];
        (void)snprintf(hyper, sizeof hyper, "{\"x\": %d}", 8 * i);
        add(&s, hyper, i - 5, i);
    }
    assert_int_equal(prior_learn(p, s.v, s.n, &taken), 0);
    assert_int_equal(prior_points(p), PRIOR_POINTS);
    study_done(&s);
    return p;
}

static const struct {
    const char *name;
    double known, own;
    const char *want;
    double trust;
} paces[] = {
    { "what holds up comes every other time", 5, 1, "K.K.K.K.K.................", 1 },
    { "what is worse than all others is given up", 1, 5, "K.K.K.....................", 0 },
    { "what is no better comes less and less", 5, 5, "K.K.K...K.........K.......", 0 },
};

static void test_the_pace_follows_trust(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(paces); i++) {
        struct space sp = parsed(line);
        struct prior *p = points_of_twelve(&sp);
        char got[64];
        assert_true(isnan(prior_trust(p)));
        play(p, strlen(paces[i].want), paces[i].known, paces[i].own, got);
        size_t known = 0;
        for (const char *c = got; *c; c++)
            known += *c == 'K';
        if (strcmp(got, paces[i].want) != 0)
            fail_msg("%s: got %s, want %s", paces[i].name, got, paces[i].want);
        assert_true(fabs(prior_trust(p) - paces[i].trust) < 1e-9);
        assert_int_equal(prior_proposed(p), known);
        prior_free(p);
        space_done(&sp);
    }
}

static const struct {
    const char *name;
    enum told_kind kind;
    int epoch;
    double value;
    bool held;
} holds[] = {
    { "it comes to what it was", TOLD_EPOCH, 1, 6, true },
    { "or nearly", TOLD_EPOCH, 1, 5.7, true },
    { "it is another job, where it comes to less", TOLD_EPOCH, 1, 2, false },
    { "or to more", TOLD_EPOCH, 1, 10, false },
    { "it told nothing", TOLD_EPOCH, 1, NAN, false },
    { "it is at its end", TOLD_FINISHED, 1, 6, false },
    { "it is where it was best", TOLD_EPOCH, EPOCHS, 11, false },
};

static void test_the_best_is_held_while_it_is_what_it_was(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(holds); i++) {
        struct space sp = parsed(line);
        struct prior *p = points_of_twelve(&sp);
        assert_int_equal(prior_make_room(p), 0);
        prior_asked(p, 0);
        struct told t = { .kind = holds[i].kind, .epoch = holds[i].epoch, .value = holds[i].value };
        for (int again = 0; again < 2; again++)
            if (prior_tell(p, &t) != holds[i].held)
                fail_msg("%s: it is %s", holds[i].name, holds[i].held ? "not held" : "held");
        assert_int_equal(prior_make_room(p), 0);
        prior_asked(p, 1); /* the others are not */
        assert_false(prior_tell(p, &(struct told){ .id = 1, .kind = TOLD_EPOCH, .epoch = 1, .value = 5 }));
        prior_free(p);
        space_done(&sp);
    }
}

static void test_its_state_reads_back_and_no_other_bytes_do_harm(void **state)
{
    (void)state;
    struct space sp = parsed(line);
    struct prior *p = points_of_twelve(&sp);
    char got[64];
    AUTO_BUF struct buf bytes = BUF_INIT;
    play(p, 9, 5, 1, got);
    prior_save(p, &bytes);
    for (size_t len = 0; len <= bytes.len; len++) {
        struct prior *q = new_prior(&sp);
        AUTO_BUF struct buf again = BUF_INIT;
        struct unpack u = unpack_from(bytes.data, len);
        int rc = prior_restore(q, &u);
        assert_true(len == bytes.len ? rc == 0 && !u.bad : rc == -EPROTO || u.bad);
        if (len == bytes.len) {
            prior_save(q, &again);
            assert_int_equal(again.len, bytes.len);
            assert_memory_equal(again.data, bytes.data, bytes.len);
            assert_int_equal(prior_due(q), prior_due(p));
        }
        prior_free(q);
    }
    for (size_t at = 0; at < bytes.len; at++) {
        struct prior *q = new_prior(&sp);
        bytes.data[at] = (char)~bytes.data[at];
        struct unpack u = unpack_from(bytes.data, bytes.len);
        (void)prior_restore(q, &u);
        bytes.data[at] = (char)~bytes.data[at];
        prior_free(q);
    }
    prior_free(p);
    space_done(&sp);
}

static void test_it_survives_memory_running_out(void **state)
{
    (void)state;
    struct space sp = parsed(line);
    struct study s = { .n = 0 };
    struct prior_taken taken;
    add(&s, "{\"x\": 30}", 0, 5);
    add(&s, "{\"x\": 60}", 0, 6);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct prior *p = NULL;
        assert_true(nth < 32);
        fault_arm(FAULT_ALLOC, nth);
        rc = prior_new(&p, &sp, &cfg);
        if (rc == 0)
            rc = prior_learn(p, s.v, s.n, &taken);
        if (rc == 0)
            rc = prior_make_room(p);
        fault_disarm();
        assert_true(rc == 0 || rc == -ENOMEM);
        if (rc == 0)
            assert_points(p, "60:old/2 30:old/1");
        prior_free(p);
    }
    study_done(&s);
    space_done(&sp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_points_are_taken),
        cmocka_unit_test(test_the_best_of_each_study_come_first),
        cmocka_unit_test(test_the_pace_follows_trust),
        cmocka_unit_test(test_the_best_is_held_while_it_is_what_it_was),
        cmocka_unit_test(test_its_state_reads_back_and_no_other_bytes_do_harm),
        cmocka_unit_test(test_it_survives_memory_running_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
