/* Profiles are recognised, refused and learnt; classes keep what was measured of settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "clustering/model.h"
#include "cmd/model_profiles.h"
#include "core/rng.h"
#include "tests/bench/gen_profiles.h"
#include "tests/fault.h"

#define AUTO_MODEL __attribute__((cleanup(model_done)))

enum { N = 20 };

/* A space of N gauges: what goes in is what is compared. */
struct world {
    char names[N][8];
    struct profile_space space;
};

static void make_world(struct world *w, size_t n)
{
    const char *names[N];
    enum profile_kind kinds[N];
    struct err e;
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(w->names[i], sizeof w->names[i], "f%zu", i);
        names[i] = w->names[i];
        kinds[i] = PROFILE_GAUGE;
    }
    assert_int_equal(profile_space_init(&w->space, names, kinds, n, &e), 0);
}

/* All features near `level`, of which every one at a noise of its own. */
static struct profile at(const struct world *w, double level, uint64_t seed)
{
    struct profile p;
    struct err e;
    struct rng r = rng_seeded(seed);
    assert_int_equal(profile_init(&p, w->space.n, &e), 0);
    for (size_t i = 0; i < p.n; i++) {
        p.x[i] = level + 0.1 * (rng_unit(&r) - 0.5);
        p.mask[i] = 1;
    }
    return p;
}

static int64_t learn(struct model *m, const struct world *w, double level, uint64_t seed, const char *key)
{
    struct profile p = at(w, level, seed);
    struct err e;
    int64_t cluster = -1;
    int rc = model_learn_profile(m, &w->space, &p, key, "family", &cluster, &e);
    profile_done(&p);
    if (rc < 0)
        fail_msg("learning: %s", e.text);
    return cluster;
}

static struct model_verdict judge(const struct model *m, const struct profile_space *s, const struct profile *p)
{
    struct profile view;
    struct model_verdict v;
    struct err e;
    assert_int_equal(model_view(&view, m, s, p, &e), 0);
    model_verdict(&v, m, &view);
    profile_done(&view);
    return v;
}

static struct model_verdict judge_level(const struct model *m, const struct world *w, double level)
{
    struct profile p = at(w, level, 999);
    struct model_verdict v = judge(m, &w->space, &p);
    profile_done(&p);
    return v;
}

static void teach_two(struct model *m, const struct world *w)
{
    model_init(m);
    for (uint64_t i = 0; i < 10; i++) {
        (void)learn(m, w, 5, i, "a");
        (void)learn(m, w, 9, 100 + i, "b");
    }
}

/* --- recognition --- */

static void test_a_profile_is_judged_by_its_distance_in_spreads(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double level;
        enum model_decision want;
        int64_t cluster;
    } cases[] = {
        { "where the first class is", 5, MODEL_KNOWN, 1 }, { "where the second one is", 9, MODEL_KNOWN, 2 },
        { "a bit beside", 5.1, MODEL_KNOWN, 1 },           { "neither near nor far", 5.27, MODEL_AMBIGUOUS, 1 },
        { "far from both", 7, MODEL_UNKNOWN, 1 },
    };
    struct world w;
    AUTO_MODEL struct model m;
    make_world(&w, N);
    teach_two(&m, &w);
    assert_int_equal(m.n_clusters, 2);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct model_verdict v = judge_level(&m, &w, cases[i].level);
        bool right =
            v.decision == cases[i].want && (v.decision == MODEL_UNKNOWN || v.near[0].cluster == cases[i].cluster);
        if (!right)
            fail_msg("%s: %s (%s)", cases[i].name, model_decision_name(v.decision), v.reason);
        assert_int_equal(v.n_near, 2);
        assert_true(v.near[0].spreads <= v.near[1].spreads);
    }
    profile_space_done(&w.space);
}

static void test_masks_that_share_too_little_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t from, to; /* the features that are measured */
        enum model_decision want;
    } cases[] = {
        { "twelve in common", 0, 12, MODEL_KNOWN },
        { "eleven in common", 0, 11, MODEL_REFUSED },
        { "none", 0, 0, MODEL_REFUSED },
    };
    struct world w;
    AUTO_MODEL struct model m;
    make_world(&w, N);
    teach_two(&m, &w);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct profile p = at(&w, 5, 999);
        for (size_t f = 0; f < N; f++)
            p.mask[f] = f >= cases[i].from && f < cases[i].to;
        struct model_verdict v = judge(&m, &w.space, &p);
        if (v.decision != cases[i].want || !*v.reason)
            fail_msg("%s: %s (%s)", cases[i].name, model_decision_name(v.decision), v.reason);
        profile_done(&p);
    }
    profile_space_done(&w.space);
}

static void test_half_of_both_masks_must_be_common(void **state)
{
    (void)state;
    enum { WIDE = 60 };
    char names[WIDE][8];
    const char *list[WIDE];
    enum profile_kind kinds[WIDE];
    struct profile_space wide;
    struct profile p;
    struct world w;
    struct err e;
    AUTO_MODEL struct model m;
    for (size_t i = 0; i < WIDE; i++) {
        (void)snprintf(names[i], sizeof names[i], "f%zu", i);
        list[i] = names[i];
        kinds[i] = PROFILE_GAUGE;
    }
    make_world(&w, N);
    teach_two(&m, &w);
    assert_int_equal(profile_space_init(&wide, list, kinds, WIDE, &e), 0);
    assert_int_equal(profile_init(&p, WIDE, &e), 0);
    for (size_t i = 0; i < WIDE; i++) {
        p.x[i] = 5;
        p.mask[i] = i < 40;
    }
    assert_int_equal(judge(&m, &wide, &p).decision, MODEL_KNOWN);
    p.mask[40] = 1;
    struct model_verdict v = judge(&m, &wide, &p);
    assert_int_equal(v.decision, MODEL_REFUSED);
    assert_non_null(strstr(v.reason, "half"));
    profile_done(&p);
    profile_space_done(&wide);
    profile_space_done(&w.space);
}

static void test_an_empty_model_knows_nothing(void **state)
{
    (void)state;
    struct world w;
    AUTO_MODEL struct model m;
    make_world(&w, N);
    model_init(&m);
    struct model_verdict v = judge_level(&m, &w, 5);
    assert_int_equal(v.decision, MODEL_UNKNOWN);
    assert_int_equal(v.n_near, 0);
    profile_space_done(&w.space);
}

static void test_one_wild_counter_does_not_decide(void **state)
{
    (void)state;
    struct world w;
    AUTO_MODEL struct model m;
    make_world(&w, N);
    teach_two(&m, &w);
    struct profile p = at(&w, 5, 999);
    p.x[3] = 100;
    assert_int_equal(judge(&m, &w.space, &p).decision, MODEL_KNOWN);
    struct profile view;
    struct err e;
    double share[N], difference[N];
    assert_int_equal(model_view(&view, &m, &w.space, &p, &e), 0);
    model_contributions(&m, &m.clusters[0], &view, share, difference);
    double sum = 0;
    for (size_t f = 0; f < N; f++) {
        sum += share[f];
        assert_true(f == 3 || share[f] < share[3]);
    }
    assert_true(fabs(sum - 1) < 1e-9);
    assert_true(difference[3] > MODEL_CUT);
    profile_done(&view);
    profile_done(&p);
    profile_space_done(&w.space);
}

static void test_features_go_by_their_names(void **state)
{
    (void)state;
    struct world w, turned;
    struct err e;
    const char *names[N];
    enum profile_kind kinds[N];
    AUTO_MODEL struct model m;
    make_world(&w, N);
    make_world(&turned, N);
    teach_two(&m, &w);
    profile_space_done(&turned.space);
    for (size_t i = 0; i < N; i++) {
        names[i] = turned.names[N - 1 - i];
        kinds[i] = PROFILE_GAUGE;
    }
    assert_int_equal(profile_space_init(&turned.space, names, kinds, N, &e), 0);
    struct profile p = at(&w, 5, 999), mirrored = at(&w, 5, 999);
    for (size_t i = 0; i < N; i++)
        mirrored.x[N - 1 - i] = p.x[i];
    struct model_verdict a = judge(&m, &w.space, &p), b = judge(&m, &turned.space, &mirrored);
    assert_true(a.near[0].distance == b.near[0].distance);
    profile_done(&p);
    profile_done(&mirrored);
    profile_space_done(&turned.space);
    profile_space_done(&w.space);
}

/* --- learning --- */

static void test_a_known_profile_joins_and_an_unknown_one_founds(void **state)
{
    (void)state;
    struct world w;
    AUTO_MODEL struct model m;
    make_world(&w, N);
    teach_two(&m, &w);
    assert_int_equal(learn(&m, &w, 5, 50, "a"), 1);
    assert_int_equal(m.clusters[0].count, 11);
    assert_int_equal(learn(&m, &w, 15, 51, "c"), 3);
    assert_int_equal(learn(&m, &w, 5, 52, "d"), 1); /* one cluster, two classes */
    assert_string_equal(model_class_of_cluster(&m, 1)->key, "a");
    assert_int_equal(model_class_count(model_class_find(&m, "d"), 1), 1);
    profile_space_done(&w.space);
}

static void test_an_ambiguous_profile_founds_a_cluster_and_is_known_then(void **state)
{
    (void)state;
    struct world w;
    AUTO_MODEL struct model m;
    make_world(&w, N);
    teach_two(&m, &w);
    assert_int_equal(judge_level(&m, &w, 5.27).decision, MODEL_AMBIGUOUS);
    assert_int_equal(learn(&m, &w, 5.27, 60, "a"), 3);
    assert_int_equal(judge_level(&m, &w, 5.27).decision, MODEL_KNOWN);
    assert_int_equal(model_class_find(&m, "a")->n_members, 2);
    profile_space_done(&w.space);
}

static void test_a_cluster_follows_its_jobs_and_keeps_its_number(void **state)
{
    (void)state;
    struct world w;
    AUTO_MODEL struct model m;
    make_world(&w, N);
    teach_two(&m, &w);
    for (int i = 0; i < 3000; i++)
        assert_int_equal(learn(&m, &w, 5 + i * 0.0002, (uint64_t)i, "a"), 1);
    assert_int_equal(judge_level(&m, &w, 5.6).decision, MODEL_KNOWN);
    assert_true(m.clusters[0].weight[0] <= MODEL_MEMORY);
    profile_space_done(&w.space);
}

static void test_the_spread_of_few_is_mostly_the_pooled_one(void **state)
{
    (void)state;
    struct world w;
    AUTO_MODEL struct model m;
    make_world(&w, N);
    teach_two(&m, &w);
    (void)learn(&m, &w, 20, 1, "single");
    double single = m.clusters[2].spread;
    assert_true(single > m.clusters[0].spread); /* its centroid is one profile */
    assert_true(single < 2);
    profile_space_done(&w.space);
}

static void test_too_few_features_are_not_learnt(void **state)
{
    (void)state;
    struct world w;
    struct err e;
    int64_t cluster = 0;
    AUTO_MODEL struct model m;
    make_world(&w, 11);
    model_init(&m);
    struct profile p = at(&w, 5, 1);
    assert_int_equal(model_learn_profile(&m, &w.space, &p, "a", NULL, &cluster, &e), -ENODATA);
    assert_int_equal(m.n_clusters, 0);
    profile_done(&p);
    profile_space_done(&w.space);
}

static void test_another_machines_features_come_behind(void **state)
{
    (void)state;
    struct world w, few;
    AUTO_MODEL struct model m;
    make_world(&few, 12);
    make_world(&w, N);
    model_init(&m);
    (void)learn(&m, &few, 5, 1, "a");
    assert_int_equal(m.n, 12);
    assert_int_equal(learn(&m, &w, 5, 2, "a"), 1); /* 12 of 20 are common */
    assert_int_equal(m.n, N);
    assert_true(m.clusters[0].weight[0] == 2 && m.clusters[0].weight[N - 1] == 1);
    profile_space_done(&few.space);
    profile_space_done(&w.space);
}

/* As a newer version may take it. */
static void test_a_feature_by_another_normaliser_begins_anew(void **state)
{
    (void)state;
    struct world w;
    AUTO_MODEL struct model m;
    make_world(&w, N);
    model_init(&m);
    (void)learn(&m, &w, 5, 1, "a");
    w.space.features[3].norm = PROFILE_PER_WORK_TIME;
    assert_int_equal(learn(&m, &w, 5, 2, "a"), 1); /* the others are common */
    assert_int_equal(m.n, N);
    assert_int_equal(m.features[3].norm, PROFILE_PER_WORK_TIME);
    assert_true(m.clusters[0].weight[3] == 1 && m.clusters[0].weight[4] == 2);
    profile_space_done(&w.space);
}

/* --- classes --- */

static void lesson(struct model *m, const char *best, const char *setting, double ratio, bool at_least)
{
    struct err e;
    char over[] = "{\"cores\":1}", *s = (char *)(uintptr_t)setting;
    struct model_entry entry = { s, over, ratio, at_least, 1, 0 };
    struct model_lesson l = { .key = "a", .best = best, .entries = &entry, .n_entries = setting ? 1 : 0, .study = "s" };
    if (model_learn_class(m, &l, &e) < 0)
        fail_msg("lesson: %s", e.text);
}

static void test_ratios_of_the_same_settings_are_averaged(void **state)
{
    (void)state;
    AUTO_MODEL struct model m;
    model_init(&m);
    lesson(&m, NULL, "{\"memory\":2,\"cores\":2.0}", -0.2, false);
    lesson(&m, NULL, "{\"cores\":2,\"memory\":2}", -0.4, false);
    lesson(&m, NULL, "{\"cores\":2,\"memory\":2}", -0.6, false);
    const struct model_class *c = model_class_find(&m, "a");
    assert_int_equal(c->n_entries, 1);
    assert_string_equal(c->entries[0].setting, "{\"cores\": 2, \"memory\": 2}");
    assert_int_equal(c->entries[0].n, 3);
    assert_true(fabs(c->entries[0].log_ratio + 0.4) < 1e-12);
    assert_true(fabs(c->entries[0].spread - 0.2) < 1e-12);
    assert_int_equal(c->trials, 3);
}

static void test_a_bound_gives_way_to_a_measurement(void **state)
{
    (void)state;
    AUTO_MODEL struct model m;
    model_init(&m);
    lesson(&m, NULL, "{\"cores\":2}", 0.3, true);
    lesson(&m, NULL, "{\"cores\":2}", 0.5, true);
    const struct model_entry *x = &model_class_find(&m, "a")->entries[0];
    assert_true(x->at_least && x->log_ratio == 0.5);
    lesson(&m, NULL, "{\"cores\":2}", 0.9, false);
    assert_true(!x->at_least && x->log_ratio == 0.9 && x->n == 1);
    lesson(&m, NULL, "{\"cores\":2}", 0.1, true);
    assert_true(!x->at_least && x->log_ratio == 0.9);
}

static void test_nonsense_is_no_lesson(void **state)
{
    (void)state;
    static const char *const settings[] = { "", "[1]", "{\"cores\":[1]}", "{\"cores\":2", "{\"a\":1,\"a\":2}", "null" };
    AUTO_MODEL struct model m;
    model_init(&m);
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        struct err e = { 0 };
        struct model_lesson l = { .key = "a", .best = settings[i] };
        assert_int_equal(model_learn_class(&m, &l, &e), -EINVAL);
        assert_true(*e.text);
    }
    char setting[] = "{}";
    struct model_entry entry = { setting, setting, NAN, false, 1, 0 };
    struct model_lesson l = { .key = "a", .entries = &entry, .n_entries = 1 };
    assert_int_equal(model_learn_class(&m, &l, NULL), -EINVAL);
}

static void test_weak_entries_retire_and_are_learnt_anew(void **state)
{
    (void)state;
    struct err e;
    AUTO_MODEL struct model m;
    model_init(&m);
    lesson(&m, "{\"cores\":2}", "{\"cores\":2}", -0.3, false);
    struct model_class *c = model_class_find(&m, "a");
    assert_int_equal(c->strength, MODEL_STRENGTH_NEW);
    for (int i = 0; i < 10; i++)
        assert_int_equal(model_confirm(&m, "a", &e), 0);
    assert_int_equal(c->strength, MODEL_STRENGTH_MAX);
    for (int i = 1; i < MODEL_STRENGTH_MAX; i++)
        assert_int_equal(model_weaken(&m, "a", &e), 0);
    assert_non_null(c->best);
    assert_int_equal(model_weaken(&m, "a", &e), 1);
    assert_null(c->best);
    assert_int_equal(c->n_entries, 0);
    assert_int_equal(c->weakenings, MODEL_STRENGTH_MAX);
    assert_int_equal(model_weaken(&m, "a", &e), 0);
    lesson(&m, "{\"cores\":2}", NULL, 0, false);
    assert_int_equal(c->strength, MODEL_STRENGTH_NEW);
    assert_int_equal(model_weaken(&m, "nobody", &e), -ENOENT);
    assert_int_equal(model_confirm(&m, "nobody", &e), -ENOENT);
}

static void test_the_class_that_can_be_used_is_preferred(void **state)
{
    (void)state;
    struct world w;
    AUTO_MODEL struct model m;
    make_world(&w, N);
    teach_two(&m, &w);
    (void)learn(&m, &w, 5, 70, "c");
    struct model_lesson l = { .key = "c", .best = "{\"cores\":2}" };
    assert_int_equal(model_learn_class(&m, &l, NULL), 0);
    assert_string_equal(model_class_of_cluster(&m, 1)->key, "c");
    assert_null(model_class_of_cluster(&m, 77));
    profile_space_done(&w.space);
}

static void test_what_is_forgotten_leaves_no_trace_and_no_number(void **state)
{
    (void)state;
    struct world w;
    struct err e;
    AUTO_MODEL struct model m;
    make_world(&w, N);
    teach_two(&m, &w);
    (void)learn(&m, &w, 9, 80, "shares b's cluster");
    assert_int_equal(model_forget_class(&m, "a", &e), 0);
    assert_null(model_class_find(&m, "a"));
    assert_null(model_cluster_find(&m, 1));
    assert_int_equal(model_forget_class(&m, "b", &e), 0);
    assert_non_null(model_cluster_find(&m, 2));
    assert_int_equal(learn(&m, &w, 5, 81, "a"), 3); /* not 1 again */
    assert_int_equal(model_forget_cluster(&m, 3, &e), 0);
    assert_int_equal(model_class_find(&m, "a")->n_members, 0);
    assert_int_equal(model_forget_cluster(&m, 3, &e), -ENOENT);
    assert_int_equal(model_forget_class(&m, "b", &e), -ENOENT);
    model_forget_all(&m);
    assert_int_equal(m.n_clusters + m.n_classes, 0);
    assert_int_equal(learn(&m, &w, 5, 82, "a"), 4);
    profile_space_done(&w.space);
}

/* --- training, on synthetic jobs --- */

static void make_jobs(struct trace *t, struct model_profiles *p, bool counters, uint64_t seed)
{
    struct err e;
    const struct gen_profiles g = { .jobs = 6,
                                    .batches = 2,
                                    .runs = 2,
                                    .epochs = 3,
                                    .epoch_s = 15,
                                    .counters = counters,
                                    .ratio = 0.08,
                                    .seed = seed };
    *t = (struct trace){ 0 };
    assert_int_equal(gen_profiles(t, &g), 0);
    if (model_profiles_init(p, t, 1, &e) < 0)
        fail_msg("profiles: %s", e.text);
}

/* Trains on all windows but those of `without`, of whose runs no window is learnt from when `halves`, else none of its job. Returns
 * how many of the others are known; *out_right: as their own job; *out_looked. */
static size_t count_known(const struct model_profiles *p, const char *without, size_t *out_right, size_t *out_looked)
{
    struct model_sample *all = model_profiles_samples(p);
    bool *learnt = calloc(p->n, sizeof *learnt);
    size_t n = 0, known = 0;
    struct err e;
    AUTO_MODEL struct model m;
    assert_true(all && learnt);
    for (size_t i = 0; i < p->n; i++) {
        learnt[i] = without ? strcmp(p->list[i].job, without) != 0 : p->list[i].run % 2 == 0;
        if (learnt[i])
            all[n++] = all[i];
    }
    model_init(&m);
    if (model_train(&m, &p->space, all, n, 1, &e) != (int)n)
        fail_msg("training: %s", e.text);
    *out_right = *out_looked = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (learnt[i])
            continue;
        struct model_verdict v = judge(&m, &p->space, &p->list[i].profile);
        ++*out_looked;
        known += v.decision == MODEL_KNOWN;
        const struct model_class *c = v.n_near ? model_class_of_cluster(&m, v.near[0].cluster) : NULL;
        *out_right += v.decision == MODEL_KNOWN && c && strncmp(c->key, p->list[i].job, strlen(p->list[i].job)) == 0;
    }
    free(all);
    free(learnt);
    return known;
}

static void test_runs_of_a_job_are_recognised_and_others_are_not(void **state)
{
    (void)state;
    for (int counters = 0; counters < 2; counters++) {
        size_t right = 0, looked = 0, known = 0, strangers = 0;
        for (uint64_t seed = 1; seed <= 12; seed++) {
            struct trace t;
            struct model_profiles p;
            size_t r, n;
            make_jobs(&t, &p, counters != 0, seed);
            (void)count_known(&p, NULL, &r, &n);
            right += r;
            looked += n;
            known += count_known(&p, "job03", &r, &n);
            strangers += n;
            model_profiles_done(&p);
            trace_done(&t);
        }
        if (20 * right < 19 * looked || 50 * known > strangers)
            fail_msg("%s: %zu of %zu recognised, %zu of %zu strangers taken for known",
                     counters ? "58 counters, multiplexed" : "/proc alone", right, looked, known, strangers);
    }
}

static void test_training_is_the_same_every_time(void **state)
{
    (void)state;
    struct trace t;
    struct model_profiles p;
    AUTO_MODEL struct model a, b;
    make_jobs(&t, &p, true, 7);
    struct model_sample *all = model_profiles_samples(&p);
    model_init(&a);
    model_init(&b);
    assert_int_equal(model_train(&a, &p.space, all, p.n, 1, NULL), (int)p.n);
    assert_int_equal(model_train(&b, &p.space, all, p.n, 1, NULL), (int)p.n);
    assert_int_equal(a.n_clusters, b.n_clusters);
    for (size_t j = 0; j < a.n_clusters; j++)
        assert_memory_equal(a.clusters[j].mean, b.clusters[j].mean, a.n * sizeof(double));
    assert_int_equal(model_train(&a, &p.space, all, p.n, 1, NULL), -EINVAL); /* it has clusters */
    free(all);
    model_profiles_done(&p);
    trace_done(&t);
}

/* --- memory --- */

static int learn_all(const struct world *w, const struct profile *p)
{
    AUTO_MODEL struct model m;
    struct err e;
    int64_t cluster;
    char setting[] = "{\"cores\":2}", over[] = "{\"cores\":1}", evidence[] = "it ran out of memory";
    struct model_entry entry = { setting, over, -0.3, false, 1, 0 };
    struct model_bound bound = { setting, evidence, 1 };
    const struct model_lesson l = { "a", "f", setting, &entry, 1, &bound, 1, "study", 1 };
    model_init(&m);
    int rc = model_learn_profile(&m, &w->space, p, "a", "f", &cluster, &e);
    if (rc == 0)
        rc = model_learn_class(&m, &l, &e);
    const struct model_sample samples[] = { { p, "a", NULL }, { p, "a", NULL }, { p, NULL, NULL } };
    AUTO_MODEL struct model trained;
    model_init(&trained);
    if (rc == 0 && (rc = model_train(&trained, &w->space, samples, ARRAY_LEN(samples), 1, &e)) > 0)
        rc = 0;
    return rc;
}

static void test_memory_that_runs_out_leaves_a_model_that_can_be_freed(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, N);
    struct profile p = at(&w, 5, 1);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 1000);
        fault_arm(FAULT_ALLOC, nth);
        rc = learn_all(&w, &p);
        fault_disarm();
        assert_true(rc == 0 || rc == -ENOMEM);
    }
    profile_done(&p);
    profile_space_done(&w.space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_profile_is_judged_by_its_distance_in_spreads),
        cmocka_unit_test(test_masks_that_share_too_little_are_refused),
        cmocka_unit_test(test_half_of_both_masks_must_be_common),
        cmocka_unit_test(test_an_empty_model_knows_nothing),
        cmocka_unit_test(test_one_wild_counter_does_not_decide),
        cmocka_unit_test(test_features_go_by_their_names),
        cmocka_unit_test(test_a_known_profile_joins_and_an_unknown_one_founds),
        cmocka_unit_test(test_an_ambiguous_profile_founds_a_cluster_and_is_known_then),
        cmocka_unit_test(test_a_cluster_follows_its_jobs_and_keeps_its_number),
        cmocka_unit_test(test_the_spread_of_few_is_mostly_the_pooled_one),
        cmocka_unit_test(test_too_few_features_are_not_learnt),
        cmocka_unit_test(test_another_machines_features_come_behind),
        cmocka_unit_test(test_a_feature_by_another_normaliser_begins_anew),
        cmocka_unit_test(test_ratios_of_the_same_settings_are_averaged),
        cmocka_unit_test(test_a_bound_gives_way_to_a_measurement),
        cmocka_unit_test(test_nonsense_is_no_lesson),
        cmocka_unit_test(test_weak_entries_retire_and_are_learnt_anew),
        cmocka_unit_test(test_the_class_that_can_be_used_is_preferred),
        cmocka_unit_test(test_what_is_forgotten_leaves_no_trace_and_no_number),
        cmocka_unit_test(test_runs_of_a_job_are_recognised_and_others_are_not),
        cmocka_unit_test(test_training_is_the_same_every_time),
        cmocka_unit_test(test_memory_that_runs_out_leaves_a_model_that_can_be_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
