/* The tuner's log: what is written reads back to the same bits, and what is replayed decides the same. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/simulator.h"
#include "core/tuner_log.h"
#include "tests/fault.h"

static const struct tuner_space space = { .n_hot = 3, .n_cold = 2, .cores = { 4, 8, 16 }, .memory = { 0.1, 8 } };
static const struct tuner_cfg cfg = { .window_s = 3, .probe_budget = 0.1, .tie_margin = 0.01, .noise_floor = 0.01 };

/* --- a machine that only keeps what it was told --- */
struct spy {
    struct tuner_event event;
    struct tuner_ask ask;
    char class_key[256], family_key[256];
    bool has_family;
};

static const char *keep_key(char out[256], const char *key)
{
    (void)snprintf(out, 256, "%s", key ? key : "");
    return key ? out : NULL;
}

static int spy_step(void *machine, const struct tuner_event *ev, struct tuner_actions *out, struct err *e)
{
    struct spy *spy = machine;
    (void)e;
    out->n = 0;
    spy->event = *ev;
    spy->event.class_key = keep_key(spy->class_key, ev->class_key);
    spy->event.family_key = keep_key(spy->family_key, ev->family_key);
    return 0;
}

static int spy_launch(void *machine, const struct tuner_ask *ask, struct tuner_setting *out,
                      char reason[TUNER_REASON_MAX], struct err *e)
{
    struct spy *spy = machine;
    (void)e;
    spy->ask = *ask;
    spy->ask.class_key = keep_key(spy->class_key, ask->class_key);
    spy->ask.family_key = keep_key(spy->family_key, ask->family_key);
    *out = ask->start;
    reason[0] = '\0';
    return 0;
}

static void spy_destroy(void *machine)
{
    (void)machine;
}

static const struct policy spy_policy = {
    .name = "spy", .destroy = spy_destroy, .launch = spy_launch, .step = spy_step
};

static void hear(struct spy *spy, const struct buf *text)
{
    struct tuner_replay r = { .policy = &spy_policy, .machine = spy, .space = space };
    struct err e = { 0 };
    if (tuner_replay_feed(&r, text->data, text->len, NULL, NULL, &e) < 0)
        fail_msg("%s: %s", buf_text(text), e.text);
    tuner_replay_done(&r);
}

/* --- round trips --- */

/* Any bits, so also what is infinite or no number. */
static double any_real(struct rng *r)
{
    uint64_t bits = rng_next(r);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static int any_count(struct rng *r)
{
    return (int)(rng_next(r) >> (33 + rng_below(r, 31)));
}

static const char *any_key(struct rng *r, bool needed)
{
    static const char *const keys[] = {
        "a", "", "models/lenet 5.py batch=32", "\"\\\n\t\x01\x7f", "é⟨1⟩", "null", NULL
    };
    return keys[rng_below(r, ARRAY_LEN(keys) - needed)];
}

static struct tuner_setting any_setting(struct rng *r)
{
    return (struct tuner_setting){ (int)rng_below(r, 3), (int)rng_below(r, 2) };
}

static struct tuner_event any_event(struct rng *r, enum tuner_event_kind kind)
{
    return (struct tuner_event){ .kind = kind,
                                 .trial = rng_below(r, 8) ? any_count(r) : INT_MIN,
                                 .t_s = any_real(r),
                                 .setting = any_setting(r),
                                 .class_key = any_key(r, true),
                                 .family_key = any_key(r, false),
                                 .epoch = any_count(r),
                                 .epochs = any_count(r),
                                 .seconds = any_real(r),
                                 .records = any_real(r),
                                 .epoch_records = any_real(r),
                                 .waiting = any_count(r),
                                 .n_hot = (int)rng_below(r, 4),
                                 .alone = rng_below(r, 2),
                                 .startup_s = any_real(r),
                                 .infeasible = rng_below(r, 2),
                                 .over = any_setting(r),
                                 .ratio = any_real(r),
                                 .at_least = rng_below(r, 2),
                                 .best = rng_below(r, 2),
                                 .trials = any_count(r),
                                 .verdict = (enum tuner_verdict)rng_below(r, 3) };
}

/* The same number, or the same infinity, or no number either. */
static void assert_bits(double got, double want)
{
    if (isnan(want) ? !isnan(got) : memcmp(&got, &want, sizeof got) != 0)
        fail_msg("got %a, want %a", got, want);
}

static void assert_key(const char *got, const char *want)
{
    if (!got || !want)
        assert_ptr_equal(got, want);
    else
        assert_string_equal(got, want);
}

static bool kind_in(enum tuner_event_kind kind, const char *letters)
{
    return strchr(letters, "sieaflbtdxrvg"[kind]) != NULL;
}

/* Every field that its kind uses; the others are not told. */
static void assert_event(const struct tuner_event *got, const struct tuner_event *want)
{
    enum tuner_event_kind k = want->kind;
    assert_int_equal(got->kind, k);
    assert_int_equal(got->trial, want->trial);
    assert_bits(got->t_s, want->t_s);
    bool setting = kind_in(k, "safrg"), keys = kind_in(k, "sfr"), recall = kind_in(k, "r");
    assert_int_equal(got->setting.hot, setting ? want->setting.hot : 0);
    assert_int_equal(got->setting.cold, setting ? want->setting.cold : 0);
    assert_key(got->class_key, keys || kind_in(k, "v") ? want->class_key : NULL);
    assert_key(got->family_key, keys ? want->family_key : NULL);
    assert_int_equal(got->epoch, kind_in(k, "sie") ? want->epoch : 0);
    assert_int_equal(got->epochs, kind_in(k, "s") ? want->epochs : 0);
    assert_bits(got->seconds, kind_in(k, "ie") ? want->seconds : 0);
    assert_bits(got->records, kind_in(k, "ie") ? want->records : 0);
    assert_bits(got->epoch_records, kind_in(k, "i") ? want->epoch_records : 0);
    assert_int_equal(got->waiting, kind_in(k, "l") ? want->waiting : 0);
    assert_int_equal(got->n_hot, kind_in(k, "sl") ? want->n_hot : 0);
    assert_int_equal(got->alone, kind_in(k, "sl") && want->alone);
    assert_bits(got->startup_s, kind_in(k, "s") ? want->startup_s : 0);
    assert_int_equal(got->infeasible, kind_in(k, "fr") && want->infeasible);
    assert_int_equal(got->over.hot, recall ? want->over.hot : 0);
    assert_int_equal(got->over.cold, recall ? want->over.cold : 0);
    assert_bits(got->ratio, recall ? want->ratio : 0);
    assert_int_equal(got->at_least, recall && want->at_least);
    assert_int_equal(got->best, recall && want->best);
    assert_int_equal(got->trials, recall ? want->trials : 0);
    assert_int_equal(got->verdict, kind_in(k, "v") ? want->verdict : 0);
}

static void test_every_event_reads_back_to_the_same_bits(void **state)
{
    (void)state;
    struct rng rng = rng_seeded(1);
    for (int i = 0; i < 20000; i++) {
        struct tuner_event ev = any_event(&rng, (enum tuner_event_kind)(i % (EV_INSTEAD + 1)));
        AUTO_BUF struct buf line = BUF_INIT;
        tuner_log_event(&line, &ev);
        assert_ptr_equal(strchr(buf_text(&line), '\n'), buf_text(&line) + line.len - 1); /* one line */
        struct spy spy = { 0 };
        hear(&spy, &line);
        assert_event(&spy.event, &ev);
    }
}

static void test_every_ask_reads_back(void **state)
{
    (void)state;
    struct rng rng = rng_seeded(2);
    for (int i = 0; i < 2000; i++) {
        const struct tuner_ask ask = { .trial = any_count(&rng),
                                       .class_key = any_key(&rng, true),
                                       .family_key = any_key(&rng, false),
                                       .start = any_setting(&rng),
                                       .n_hot = (int)rng_below(&rng, 4),
                                       .alone = rng_below(&rng, 2) };
        AUTO_BUF struct buf line = BUF_INIT;
        tuner_log_ask(&line, &ask);
        struct spy spy = { 0 };
        hear(&spy, &line);
        assert_int_equal(spy.ask.trial, ask.trial);
        assert_key(spy.ask.class_key, ask.class_key);
        assert_key(spy.ask.family_key, ask.family_key);
        assert_true(spy.ask.start.hot == ask.start.hot && spy.ask.start.cold == ask.start.cold);
        assert_true(spy.ask.n_hot == ask.n_hot && spy.ask.alone == ask.alone);
    }
}

static void test_a_head_makes_the_machine_it_names(void **state)
{
    (void)state;
    struct rng rng = rng_seeded(3);
    for (int i = 0; i < 200; i++) {
        struct tuner_space wide = { .n_hot = 1 + (int)rng_below(&rng, TUNER_MAX_HOT),
                                    .n_cold = 1 + (int)rng_below(&rng, TUNER_MAX_COLD) };
        for (int k = 0; k < wide.n_hot; k++)
            wide.cores[k] = 1 + k + rng_unit(&rng);
        for (int k = 0; k < wide.n_cold; k++)
            wide.memory[k] = k + rng_unit(&rng);
        for (int k = 0; k < wide.n_cold; k++)
            wide.other[k] = (int)rng_below(&rng, (uint64_t)k + 1);
        wide.memory_entered = i % 3 == 0;
        const struct tuner_cfg odd = { rng_unit(&rng), rng_unit(&rng), rng_unit(&rng), rng_unit(&rng) };
        const struct policy *p = policy_find(i % 2 ? "paper" : "pipetune");
        AUTO_BUF struct buf head = BUF_INIT;
        tuner_log_head(&head, p, &wide, &odd);
        struct tuner_replay r = { 0 };
        struct err e = { 0 };
        if (tuner_replay_feed(&r, head.data, head.len, NULL, NULL, &e) < 0)
            fail_msg("%s", e.text);
        assert_ptr_equal(r.policy, p);
        assert_non_null(r.machine);
        assert_int_equal(r.lines, 1);
        assert_memory_equal(&r.space, &wide, sizeof wide);
        assert_bits(r.cfg.window_s, odd.window_s);
        assert_bits(r.cfg.probe_budget, odd.probe_budget);
        assert_bits(r.cfg.tie_margin, odd.tie_margin);
        assert_bits(r.cfg.noise_floor, odd.noise_floor);
        tuner_replay_done(&r);
        tuner_replay_done(&r); /* twice is fine */
    }
    tuner_replay_done(NULL);
}

/* --- a log of a live machine, replayed --- */

enum { TRIALS = 6, EPOCHS = 4, STEPS = 40 };

/* A study, simulated in a world where anything happens, and the log of all that its machine was told. */
struct run {
    struct rng rng;
    const struct policy *policy;
    void *machine;
    struct buf log, story; /* all that was decided */
};

static void tell_story(struct buf *b, const char *kind, int trial, struct tuner_setting s, const char *reason)
{
    buf_printf(b, "%s %d: %d %d %s\n", kind, trial, s.hot, s.cold, reason);
}

static int noted_step(void *machine, const struct tuner_event *ev, struct tuner_actions *out, struct err *e)
{
    struct run *r = machine;
    tuner_log_event(&r->log, ev);
    int rc = r->policy->step(r->machine, ev, out, e);
    for (size_t i = 0; rc == 0 && i < out->n; i++) {
        const struct tuner_action *a = &out->list[i];
        if (tuner_is_decision(a->kind))
            tell_story(&r->story, tuner_action_name(a->kind), a->trial, a->setting, a->reason);
    }
    return rc;
}

static int noted_launch(void *machine, const struct tuner_ask *ask, struct tuner_setting *out,
                        char reason[TUNER_REASON_MAX], struct err *e)
{
    struct run *r = machine;
    tuner_log_ask(&r->log, ask);
    int rc = r->policy->launch(r->machine, ask, out, reason, e);
    tell_story(&r->story, TUNER_LOG_SETTING, ask->trial, *out, reason);
    return rc;
}

static bool noted_settled(const void *machine, int trial)
{
    const struct run *r = machine;
    return r->policy->settled(r->machine, trial);
}

static struct run *the_run;

static void *noted_create(const struct tuner_space *sp, const struct tuner_cfg *c)
{
    struct run *r = the_run;
    r->machine = r->policy->create(sp, c);
    tuner_log_head(&r->log, r->policy, sp, c);
    return r;
}

static void noted_destroy(void *machine)
{
    struct run *r = machine;
    r->policy->destroy(r->machine);
}

static bool has(void *ctx, const struct sim_run *r, struct tuner_setting s)
{
    (void)r, (void)s;
    return rng_below(&((struct run *)ctx)->rng, 20) > 0;
}

static double step_s(void *ctx, const struct sim_run *r)
{
    (void)ctx;
    return (8 - 2 * r->at.hot) * (r->epoch == r->first ? 1.5 : 1.0);
}

static double startup_s(void *ctx, struct sim_run *r)
{
    (void)r;
    return 5 * rng_unit(&((struct run *)ctx)->rng);
}

static double noise(void *ctx, struct sim_run *r, int steps)
{
    (void)r, (void)steps;
    return 0.9 + 0.2 * rng_unit(&((struct run *)ctx)->rng);
}

static double dies_s(void *ctx, struct sim_run *r, enum outcome *out_why)
{
    struct rng *g = &((struct run *)ctx)->rng;
    (void)r;
    *out_why = rng_below(g, 2) ? OUTCOME_REFUSED : OUTCOME_KILLED;
    return rng_below(g, 4) ? INFINITY : 300 * rng_unit(g);
}

static bool verdict(void *ctx, const struct sim_run *r, struct tuner_event *out)
{
    static const char *const keys[] = { "c0", "c1", "c2", "none" };
    struct rng *g = &((struct run *)ctx)->rng;
    (void)r;
    out->verdict = (enum tuner_verdict)rng_below(g, 3);
    out->class_key = keys[rng_below(g, ARRAY_LEN(keys))];
    return rng_below(g, 3) == 0;
}

static const struct sim_world world = { .has = has,
                                        .step_s = step_s,
                                        .startup_s = startup_s,
                                        .noise = noise,
                                        .dies_s = dies_s,
                                        .verdict = verdict,
                                        .apply_s = 0.5 };

/* Of two classes, whatever was known. */
static void recall(struct run *r)
{
    static const char *const keys[] = { "c0", "c2" };
    for (uint64_t n = rng_below(&r->rng, 12); n > 0; n--) {
        struct tuner_actions none;
        const struct tuner_event ev = { .kind = EV_RECALL,
                                        .class_key = keys[rng_below(&r->rng, ARRAY_LEN(keys))],
                                        .family_key = "f",
                                        .setting = any_setting(&r->rng),
                                        .over = any_setting(&r->rng),
                                        .ratio = rng_unit(&r->rng) - 0.5,
                                        .at_least = rng_below(&r->rng, 8) == 0,
                                        .best = rng_below(&r->rng, 4) == 0,
                                        .infeasible = rng_below(&r->rng, 8) == 0,
                                        .trials = (int)rng_below(&r->rng, 9) };
        assert_int_equal(noted_step(r, &ev, &none, NULL), 0);
    }
}

/* Until all trials are over; up to three at once, on one or two nodes. */
static void live(struct run *r, const char *policy, uint64_t seed)
{
    *r = (struct run){ .rng = rng_seeded(seed), .policy = policy_find(policy) };
    struct policy noted = *r->policy;
    noted.create = noted_create;
    noted.destroy = noted_destroy;
    noted.launch = noted_launch;
    noted.step = noted_step;
    noted.settled = noted_settled;
    struct sim_job jobs[TRIALS];
    for (int i = 0; i < TRIALS; i++)
        jobs[i] = (struct sim_job){
            .class_key = i % 2 ? "c0" : "c1", .family_key = "f", .epochs = EPOCHS, .steps = STEPS, .start = { 2, 0 }
        };
    const struct simulator_cfg c = { .policy = &noted,
                                     .space = space,
                                     .tuner = cfg,
                                     .world = &world,
                                     .ctx = r,
                                     .nodes = { { 16, 16 }, { 8, 16 } },
                                     .n_nodes = 1 + (int)seed % 2,
                                     .parallel = 3,
                                     .jobs = jobs,
                                     .n_jobs = TRIALS,
                                     .seed = seed };
    struct simulator s;
    struct err e;
    the_run = r;
    assert_int_equal(simulator_init(&s, &c, &e), 0);
    recall(r);
    if (simulator_play(&s, &e) < 0)
        fail_msg("%s", e.text);
    simulator_done(&s);
}

static void run_done(struct run *r)
{
    buf_done(&r->log);
    buf_done(&r->story);
}

static int write_down(void *ctx, const struct tuner_replay *r, const char *kind, int trial, struct tuner_setting s,
                      const char *reason)
{
    assert_non_null(r->machine);
    tell_story(ctx, kind, trial, s, reason);
    return 0;
}

/* The end of the line that holds byte `at`, beyond it. */
static size_t line_end(const struct buf *b, size_t at)
{
    return (size_t)(strchr(b->data + at, '\n') + 1 - b->data);
}

static void assert_replayed(struct run *r, const char *name, uint64_t seed)
{
    AUTO_BUF struct buf got = BUF_INIT;
    struct tuner_replay re = { 0 };
    struct err e = { 0 };
    for (size_t at = 0; at < r->log.len;) { /* in random pieces */
        size_t to = line_end(&r->log, at + rng_below(&r->rng, r->log.len - at));
        if (tuner_replay_feed(&re, r->log.data + at, to - at, write_down, &got, &e) < 0)
            fail_msg("%s, seed %d: %s", name, (int)seed, e.text);
        at = to;
    }
    assert_string_equal(buf_text(&got), buf_text(&r->story));
    tuner_replay_done(&re);
}

static void test_a_replayed_log_decides_the_same(void **state)
{
    (void)state;
    static const char *const names[] = { "pipetune", "paper" };
    bool met[EV_INSTEAD + 1] = { false };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t decided = 0;
        for (uint64_t seed = 1; seed <= 40; seed++) {
            struct run r;
            live(&r, names[i], seed);
            assert_replayed(&r, names[i], seed);
            decided += r.story.len;
            for (size_t k = 0; k < ARRAY_LEN(met); k++) {
                const char line[] = { '\n', "sieaflbtdxrvg"[k], ' ', '\0' };
                met[k] |= strstr(r.log.data, line) != NULL;
            }
            run_done(&r);
        }
        assert_true(decided > 10000); /* there was something to decide */
    }
    for (size_t k = 0; k < ARRAY_LEN(met); k++)
        if (!met[k])
            fail_msg("no event of kind %zu was told", k);
}

static void test_one_event_changed_decides_otherwise(void **state)
{
    (void)state;
    struct run r;
    live(&r, "paper", 1);
    char *line = strstr(r.log.data, "\ne ");
    assert_non_null(line);
    AUTO_BUF struct buf less = BUF_INIT;
    AUTO_BUF struct buf got = BUF_INIT;
    const char *rest = strchr(line + 1, '\n');
    buf_put(&less, r.log.data, (size_t)(line - r.log.data));
    buf_puts(&less, rest);
    struct tuner_replay re = { 0 };
    assert_int_equal(tuner_replay_feed(&re, less.data, less.len, write_down, &got, NULL), 0);
    assert_string_not_equal(buf_text(&got), buf_text(&r.story));
    tuner_replay_done(&re);
    run_done(&r);
}

static void test_a_later_head_begins_again(void **state)
{
    (void)state;
    struct run r;
    live(&r, "pipetune", 5);
    AUTO_BUF struct buf twice = BUF_INIT;
    AUTO_BUF struct buf want = BUF_INIT;
    AUTO_BUF struct buf got = BUF_INIT;
    for (int i = 0; i < 2; i++) {
        buf_put(&twice, r.log.data, r.log.len);
        buf_put(&want, r.story.data, r.story.len);
    }
    struct tuner_replay re = { 0 };
    assert_int_equal(tuner_replay_feed(&re, twice.data, twice.len, write_down, &got, NULL), 0);
    assert_string_equal(buf_text(&got), buf_text(&want));
    assert_int_equal(re.lines % 2, 0);
    tuner_replay_done(&re);
    run_done(&r);
}

static int stop_at_third(void *ctx, const struct tuner_replay *r, const char *kind, int trial, struct tuner_setting s,
                         const char *reason)
{
    (void)r, (void)kind, (void)trial, (void)s, (void)reason;
    return ++*(int *)ctx == 3 ? -ECANCELED : 0;
}

static void test_who_is_told_may_end_it(void **state)
{
    (void)state;
    struct run r;
    live(&r, "pipetune", 1);
    struct tuner_replay re = { 0 };
    struct err e = { 0 };
    int n = 0;
    assert_int_equal(tuner_replay_feed(&re, r.log.data, r.log.len, stop_at_third, &n, &e), -ECANCELED);
    assert_int_equal(n, 3);
    assert_int_equal(e.code, 0); /* nothing of ours went wrong */
    tuner_replay_done(&re);
    run_done(&r);
}

/* --- what is no log --- */

#define HEAD "H 1 pipetune 3 0.1 0.01 0.01 2 4 8 1 8\n"

static const struct {
    const char *name, *text;
    int rc;
    const char *want;
} wrong[] = {
    { "no head", "b 1 0\n", -EINVAL, "line 1: no head stands before it: \"b 1 0\"" },
    { "an empty line", HEAD "\n", -EINVAL, "line 2: it is none of the kinds there are" },
    { "another kind", HEAD "z 1 0\n", -EINVAL, "line 2: it is none of the kinds there are: \"z 1 0\"" },
    { "a line cut short", HEAD "b 1 0", -EINVAL, "line 2: it is cut short" },
    { "a word too few", HEAD "b 1\n", -EINVAL, "line 2: a word is missing" },
    { "a word too many", HEAD "b 1 0 0\n", -EINVAL, "line 2: there is more than belongs to it" },
    { "two blanks", HEAD "b  1 0\n", -EINVAL, "a word is missing" },
    { "a blank at the end", HEAD "b 1 0 \n", -EINVAL, "there is more than belongs to it" },
    { "a number that is none", HEAD "b 1 0x\n", -EINVAL, "a number is none" },
    { "a tab", HEAD "b 1 \t0\n", -EINVAL, "a number is none" },
    { "a trial that is no whole number", HEAD "b 1.5 0\n", -EINVAL, "a whole number is none" },
    { "a number with a hundred digits", HEAD "b 1 0.1000000000000000000000000000000000000000000000000000000\n", -EINVAL,
      "a word is too long" },
    { "a setting that there is not", HEAD "a 1 0 2 0\n", -EINVAL, "a number is out of bounds" },
    { "a setting below the first", HEAD "a 1 0 0 -1\n", -EINVAL, "a number is out of bounds" },
    { "more hot settings than there are", HEAD "l 1 0 0 3 1\n", -EINVAL, "a number is out of bounds" },
    { "a yes that is a 2", HEAD "l 1 0 0 1 2\n", -EINVAL, "a number is out of bounds" },
    { "a key without its end", HEAD "L 1 \"a null 0 0 0 1\n", -EINVAL, "a key is none" },
    { "a key that is a number", HEAD "L 1 7 null 0 0 0 1\n", -EINVAL, "a key is none" },
    { "an ask of no class", HEAD "L 1 null null 0 0 0 1\n", -EINVAL, "it has no class" },
    { "a recall of no class", HEAD "r 0 0 0 0 null null 0 0 0 0 0 0 1\n", -EINVAL, "it has no class" },
    { "a recalled ratio that is none", HEAD "r 0 0 1 0 \"c\" null 0 0 0 nan 0 0 1\n", -EPROTO, "cannot be" },
    { "a verdict that there is not", HEAD "v 1 0 3 null\n", -EINVAL, "a number is out of bounds" },
    { "a start of no class", HEAD "s 1 0 0 0 null null 1 5 0 1 0\n", -EINVAL, "it has no class" },
    { "another version", "H 3 pipetune 3 0.1 0.01 0.01 1 4 1 8\n", -EINVAL, "its version is not known" },
    { "no ladders", "H 2 pipetune 3 0.1 0.01 0.01 1 4 1 8\n", -EINVAL, "a word is missing" },
    { "a ladder named by one that comes later", "H 2 pipetune 3 0.1 0.01 0.01 1 4 2 8 8 1 1 0\n", -EINVAL,
      "a number is out of bounds" },
    { "another policy", "H 1 best 3 0.1 0.01 0.01 1 4 1 8\n", -EINVAL, "its policy is not known" },
    { "a policy without a machine", "H 1 v1 3 0.1 0.01 0.01 1 4 1 8\n", -EINVAL, "its policy decides nothing" },
    { "no settings", "H 1 pipetune 3 0.1 0.01 0.01 0 1 8\n", -EINVAL, "a number is out of bounds" },
    { "too many settings", "H 1 pipetune 3 0.1 0.01 0.01 33 1 8\n", -EINVAL, "a number is out of bounds" },
    { "settings that descend", "H 1 pipetune 3 0.1 0.01 0.01 2 8 4 1 8\n", -EINVAL, "its settings do not ascend" },
    { "no cores", "H 1 pipetune 3 0.1 0.01 0.01 1 0 1 8\n", -EINVAL, "its settings do not ascend" },
    { "a head cut short", "H 1 pipetune 3 0.1\n", -EINVAL, "a word is missing" },
    { "what cannot be", HEAD "b 7 0\n", -EPROTO, "the tuner's log, line 2: trial 7" },
};

static int ignore(void *ctx, const struct tuner_replay *r, const char *kind, int trial, struct tuner_setting s,
                  const char *reason)
{
    (void)r, (void)trial, (void)s, (void)reason;
    assert_true(tuner_log_is_kind(kind));
    ++*(int *)ctx;
    return 0;
}

/* What was written before there were profiles, and when every cold knob was taken for memory. */
static void test_an_older_log_still_reads(void **state)
{
    (void)state;
    static const char text[] =
        HEAD "L 1 \"c\" null 0 0 0 1\ns 1 0 0 0 \"c\" null 1 5 0 1 0\ni 1 2 1 2 1 10\ni 1 4 1 2 1 10\n"
             "i 1 6 1 2 1 10\ni 1 8 1 2 1 10\na 1 8 1 0\nt 1 9\nb 1 10\nd 1 11\n";
    struct tuner_replay r = { 0 };
    struct err e = { 0 };
    int n = 0;
    if (tuner_replay_feed(&r, text, sizeof text - 1, ignore, &n, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(n,
                     3); /* the launch's setting, a probe, back: the probe is void, so that there is nothing to learn */
    assert_true(r.space.other[0] == 0 && !r.space.memory_entered);
    tuner_replay_done(&r);
}

static void test_the_kinds_of_decisions(void **state)
{
    (void)state;
    static const char *const kinds[] = { "setting", "apply", "settle", "learn", "relaunch", "confirm", "weaken" };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        assert_true(tuner_log_is_kind(kinds[i]));
    assert_false(tuner_log_is_kind("wake") || tuner_log_is_kind("profile") || tuner_log_is_kind("launch"));
    assert_true(tuner_is_decision(ACT_WEAKEN) && !tuner_is_decision(ACT_PROFILE) && !tuner_is_decision(ACT_WAKE));
    assert_string_equal(tuner_action_name(ACT_CONFIRM), "confirm");
}

static void test_what_is_no_entry_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct tuner_replay r = { 0 };
        struct err e = { 0 };
        int rc = tuner_replay_feed(&r, wrong[i].text, strlen(wrong[i].text), NULL, NULL, &e);
        if (rc != wrong[i].rc || e.code != rc || !strstr(e.text, wrong[i].want))
            fail_msg("%s: got %d '%s', want %d '%s'", wrong[i].name, rc, e.text, wrong[i].rc, wrong[i].want);
        tuner_replay_done(&r);
    }
}

static void test_bytes_that_are_no_text_are_refused(void **state)
{
    (void)state;
    static const char text[] = HEAD "b 1 0\0 \n";
    struct tuner_replay r = { 0 };
    struct err e = { 0 };
    assert_int_equal(tuner_replay_feed(&r, text, sizeof text - 1, NULL, NULL, &e), -EINVAL);
    tuner_replay_done(&r);
}

static void test_memory_that_runs_out(void **state)
{
    (void)state;
    struct run r;
    live(&r, "pipetune", 1);
    size_t few = r.log.len < 2000 ? r.log.len : line_end(&r.log, 2000);
    bool struck = true;
    unsigned nth = 1;
    for (; struck; nth++) {
        assert_true(nth < 256);
        struct tuner_replay re = { 0 };
        struct err e = { 0 };
        fault_arm(FAULT_ALLOC, nth);
        int rc = tuner_replay_feed(&re, r.log.data, few, NULL, NULL, &e);
        struck = fault_disarm();
        assert_int_equal(rc, struck ? -ENOMEM : 0);
        assert_int_equal(e.code, rc);
        tuner_replay_done(&re);
    }
    assert_true(nth > 4); /* there were calls to fail */
    run_done(&r);
}

static void test_a_launch_tells_its_class(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int want, trial;
        const char *class, *family;
    } cases[] = {
        { "L 7 \"a b=\\\"1\\\"\" \"a\" 1 0 2 1", 1, 7, "a b=\"1\"", "a" },
        { "L 7 \"a\" null 1 0 2 1", 1, 7, "a", "" },
        { "L 7 null null 1 0 2 1", 0, 7, "", "" },
        { "L 7 \"a", 0, 7, "", "" },
        { "L x \"a\" \"b\" 1 0 2 1", 0, 0, "", "" },
        { "s 7 1.5 0 0 \"a\" \"b\" 1 2 2 1 3", 0, 0, "", "" },
        { "", 0, 0, "", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf class = BUF_INIT, family = BUF_INIT;
        int trial = 0;
        assert_int_equal(tuner_log_class(cases[i].line, &trial, &class, &family), cases[i].want);
        assert_int_equal(trial, cases[i].trial);
        assert_string_equal(buf_text(&class), cases[i].class);
        assert_string_equal(buf_text(&family), cases[i].family);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_event_reads_back_to_the_same_bits),
        cmocka_unit_test(test_every_ask_reads_back),
        cmocka_unit_test(test_a_head_makes_the_machine_it_names),
        cmocka_unit_test(test_a_replayed_log_decides_the_same),
        cmocka_unit_test(test_one_event_changed_decides_otherwise),
        cmocka_unit_test(test_a_later_head_begins_again),
        cmocka_unit_test(test_who_is_told_may_end_it),
        cmocka_unit_test(test_an_older_log_still_reads),
        cmocka_unit_test(test_the_kinds_of_decisions),
        cmocka_unit_test(test_what_is_no_entry_is_named),
        cmocka_unit_test(test_bytes_that_are_no_text_are_refused),
        cmocka_unit_test(test_a_launch_tells_its_class),
        cmocka_unit_test(test_memory_that_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
