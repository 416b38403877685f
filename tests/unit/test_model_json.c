/* Models as texts: what is written is read back, and what is no model is explained. */
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
#include "clustering/model_json.h"
#include "clustering/model_sklearn.h"
#include "tests/fault.h"

#define AUTO_MODEL __attribute__((cleanup(model_done)))
#define AUTO_PROFILE __attribute__((cleanup(profile_done)))

/* One feature, one cluster, one class; the rows below change a piece of it. */
#define FEATURES "[{\"name\":\"branches\",\"per\":\"instructions\",\"median\":null,\"iqr\":null}]"
#define CLUSTERS "[{\"id\":1,\"count\":2,\"spread\":1.1,\"centroid\":[3.5],\"seen\":[2],\"squares\":[0.25]}]"
#define CLASS(members, best, strength)                                                                                 \
    "{\"key\":\"k\",\"family\":null,\"clusters\":" members ",\"best\":" best ",\"strength\":" strength                 \
    ",\"confirmations\":1,\"weakenings\":0,\"entries\":[{\"setting\":{\"cores\":2},\"over\":{\"cores\":1},"            \
    "\"log_ratio\":-0.25,\"at_least\":false,\"n\":2,\"spread\":0.5}],\"infeasible\":[{\"setting\":{\"memory\":1},"     \
    "\"evidence\":\"heap\",\"n\":1}],\"evidence\":{\"study\":\"s\",\"trial\":3,\"trials\":2}}"
#define CLASSES "[" CLASS("[{\"id\":1,\"count\":2}]", "{\"cores\":2}", "2") "]"
#define MODEL(version, vectors, next_id, features, clusters, classes)                                                  \
    "{\"format\":\"pipetune-model\",\"version\":" version ",\"vectors\":" vectors ",\"next_id\":" next_id              \
    ",\"features\":" features ",\"clusters\":" clusters ",\"classes\":" classes "}"
#define GOOD MODEL("1", "\"profiles\"", "2", FEATURES, CLUSTERS, CLASSES)

static int read_text(struct model *out, const char *text, struct err *e)
{
    return model_json_read(out, "m.json", text, strlen(text), e);
}

static void test_what_is_written_is_read_back(void **state)
{
    (void)state;
    AUTO_MODEL struct model a = { 0 }, b = { 0 };
    AUTO_BUF struct buf first = BUF_INIT, second = BUF_INIT;
    struct err e;
    if (read_text(&a, GOOD, &e) < 0)
        fail_msg("%s", e.text);
    a.clusters[0].mean[0] = 0.1 + 0.2;
    a.clusters[0].m2[0] = 1.0 / 3;
    a.features[0].median = 1e-300;
    model_derive(&a);
    model_json_put(&first, &a);
    assert_int_equal(model_json_read(&b, "m", first.data, first.len, &e), 0);
    model_json_put(&second, &b);
    assert_string_equal(first.data, second.data);
    assert_true(b.clusters[0].mean[0] == 0.1 + 0.2 && b.clusters[0].m2[0] == 1.0 / 3);
    assert_true(b.clusters[0].spread == a.clusters[0].spread);
    assert_non_null(strstr(first.data, "0.30000000000000004"));
    assert_string_equal(b.classes[0].entries[0].setting, "{\"cores\": 2}");
    assert_string_equal(b.classes[0].bounds[0].evidence, "heap");
    assert_int_equal(b.classes[0].trial, 3);
}

static void test_an_empty_model_is_one_too(void **state)
{
    (void)state;
    AUTO_MODEL struct model a, b = { 0 };
    AUTO_BUF struct buf text = BUF_INIT;
    model_init(&a);
    model_json_put(&text, &a);
    assert_int_equal(model_json_read(&b, "m", text.data, text.len, NULL), 0);
    assert_int_equal(b.n_clusters + b.n_classes + b.n, 0);
    assert_int_equal(b.next_id, 1);
}

static void test_what_is_no_model_is_explained(void **state)
{
    (void)state;
#define WITH_CLUSTERS(clusters) MODEL("1", "\"profiles\"", "2", FEATURES, clusters, "[]")
#define WITH_CLASSES(classes) MODEL("1", "\"profiles\"", "2", FEATURES, CLUSTERS, classes)
    static const struct {
        const char *name, *text, *says;
    } cases[] = {
        { "nothing", "", "line 1" },
        { "a list", "[]", "no model" },
        { "another format", "{\"k\":2}", "import --format sklearn" },
        { "a newer version", MODEL("2", "\"profiles\"", "2", FEATURES, CLUSTERS, CLASSES), "newer pipetune" },
        { "a version that is none", MODEL("1.5", "\"profiles\"", "2", FEATURES, CLUSTERS, CLASSES), "version" },
        { "vectors of no kind", MODEL("1", "\"fish\"", "2", FEATURES, CLUSTERS, CLASSES), "profiles or raw" },
        { "NaN", WITH_CLUSTERS("[{\"id\":1,\"count\":2,\"spread\":1,\"centroid\":[NaN],\"seen\":[2],\"squares\":[0]}]"),
          "line 1" },
        { "too few numbers",
          WITH_CLUSTERS("[{\"id\":1,\"count\":2,\"spread\":1,\"centroid\":[],\"seen\":[2],\"squares\":[0]}]"),
          "0 numbers, and the model 1 features" },
        { "too many numbers",
          WITH_CLUSTERS("[{\"id\":1,\"count\":2,\"spread\":1,\"centroid\":[1,2],\"seen\":[2],\"squares\":[0]}]"),
          "2 numbers" },
        { "a text for a number",
          WITH_CLUSTERS("[{\"id\":1,\"count\":2,\"spread\":1,\"centroid\":[\"1\"],\"seen\":[2],\"squares\":[0]}]"),
          "clusters.0.centroid.0' must be a number" },
        { "a log rate out of the world",
          WITH_CLUSTERS("[{\"id\":1,\"count\":2,\"spread\":1,\"centroid\":[1e300],\"seen\":[2],\"squares\":[0]}]"),
          "between" },
        { "members without a centroid",
          WITH_CLUSTERS("[{\"id\":1,\"count\":2,\"spread\":1,\"centroid\":[null],\"seen\":[2],\"squares\":[0]}]"),
          "no centroid" },
        { "a number not given out yet",
          WITH_CLUSTERS("[{\"id\":2,\"count\":2,\"spread\":1,\"centroid\":[1],\"seen\":[2],\"squares\":[0]}]"),
          "clusters.0.id" },
        { "negative squares",
          WITH_CLUSTERS("[{\"id\":1,\"count\":2,\"spread\":1,\"centroid\":[1],\"seen\":[2],\"squares\":[-1]}]"),
          "squares" },
        { "a key missing", WITH_CLUSTERS("[{\"id\":1,\"count\":2,\"spread\":1,\"centroid\":[1],\"seen\":[2]}]"),
          "is missing" },
        { "a key too many", WITH_CLUSTERS("[{\"id\":1,\"colour\":2}]"), "none of a model's keys" },
        { "a key twice", WITH_CLUSTERS("[{\"id\":1,\"id\":2}]"), "line 1" },
        { "a cluster that is not there", WITH_CLASSES("[" CLASS("[{\"id\":7,\"count\":2}]", "null", "0") "]"),
          "names cluster 7" },
        { "a cluster twice",
          WITH_CLASSES("[" CLASS("[{\"id\":1,\"count\":2},{\"id\":1,\"count\":2}]", "null", "0") "]"), "twice" },
        { "a class twice", WITH_CLASSES("[" CLASS("[]", "null", "0") "," CLASS("[]", "null", "0") "]"),
          "key of another class" },
        { "strength without a best setting", WITH_CLASSES("[" CLASS("[]", "null", "2") "]"), "strength" },
        { "a best setting that is none", WITH_CLASSES("[" CLASS("[]", "[2]", "2") "]"), "no setting" },
        { "a feature twice",
          MODEL("1", "\"profiles\"", "2",
                "[{\"name\":\"a\",\"per\":\"none\",\"median\":null,\"iqr\":null},"
                "{\"name\":\"a\",\"per\":\"none\",\"median\":null,\"iqr\":null}]",
                "[]", "[]"),
          "'a' twice" },
        { "a feature per what is unknown",
          MODEL("1", "\"profiles\"", "2", "[{\"name\":\"a\",\"per\":\"mile\",\"median\":null,\"iqr\":null}]", "[]",
                "[]"),
          "features.0.per" },
        { "a raw model without inertia", MODEL("1", "\"raw\"", "0", "[]", "[]", "[]"), "inertia" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct model m = { 0 };
        struct err e = { 0 };
        int rc = read_text(&m, cases[i].text, &e);
        if (rc != -EINVAL || !strstr(e.text, cases[i].says))
            fail_msg("%s: got %d '%s', want '%s'", cases[i].name, rc, e.text, cases[i].says);
        assert_null(m.features);
    }
}

static void test_a_text_cut_anywhere_is_no_model(void **state)
{
    (void)state;
    static const char good[] = GOOD;
    for (size_t len = 0; len < sizeof good - 1; len++) {
        struct model m = { 0 };
        struct err e = { 0 };
        assert_int_equal(model_json_read(&m, "m.json", good, len, &e), -EINVAL);
        assert_non_null(strstr(e.text, "'m.json'"));
    }
}

static void test_profiles_go_by_the_names_of_their_features(void **state)
{
    (void)state;
    static const char *const names[] = { "instructions", "branches", "branch-misses" };
    static const enum profile_kind kinds[3] = { PROFILE_COUNT };
    struct profile_space s;
    AUTO_PROFILE struct profile p = { 0 }, view = { 0 };
    AUTO_MODEL struct model m = { 0 };
    AUTO_BUF struct buf text = BUF_INIT;
    struct err e;
    assert_int_equal(read_text(&m, GOOD, &e), 0);
    assert_int_equal(profile_space_init(&s, names, kinds, 3, &e), 0);
    assert_int_equal(profile_init(&p, 3, &e), 0);
    p.mask[1] = p.mask[2] = 1;
    p.x[1] = 3.25;
    p.x[2] = 0.5;
    model_json_put_profile(&text, &s, &p);
    assert_string_equal(text.data, "{\"branches\": 3.25, \"branch-misses\": 0.5}");
    assert_int_equal(model_json_view(&view, &m, text.data, &e), 0);
    assert_true(view.mask[0] && view.x[0] == 3.25 && view.beyond == 1);
    static const char *const bad[] = { "", "[]", "{\"branches\":\"3\"}", "{\"branches\":null}", "{" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct profile none = { 0 };
        assert_int_equal(model_json_view(&none, &m, bad[i], &e), -EINVAL);
        assert_null(none.x);
    }
    profile_space_done(&s);
}

/* --- scikit-learn --- */

#define SKLEARN                                                                                                        \
    "{\"k\":2,\"n_features\":2,\"centroids\":[[1e17,0],[1e17,3]],\"cluster_sizes\":[4,5.0],\"inertia\":1.5,"           \
    "\"feature_names\":null,\"init\":\"k-means++\"}"

static void test_a_model_made_elsewhere_predicts_in_its_own_space(void **state)
{
    (void)state;
    static const char vectors[] = "{\"vectors\":[[100000000000000000,1],[1e17,2.5],[-1e17,2],[-1e17,1.25],[1e17,1.5]]}";
    static const struct {
        int cluster;
        double squared;
    } want[] = { { 0, 1 }, { 1, 0.25 }, { 1, 4e34 }, { 0, 4e34 }, { 0, 2.25 } };
    AUTO_MODEL struct model m = { 0 }, back = { 0 };
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_JSON json_t *list = NULL;
    struct model_vectors_list v = { 0 };
    struct err e;
    if (model_sklearn_read(&m, "s.json", SKLEARN, strlen(SKLEARN), &e) < 0)
        fail_msg("%s", e.text);
    model_json_put(&text, &m);
    if (model_json_read(&back, "m.json", text.data, text.len, &e) < 0) /* what import writes, predict reads */
        fail_msg("%s", e.text);
    assert_true(back.inertia == 1.5 && back.clusters[1].count == 5 && !back.features[0].name);
    assert_int_equal(model_sklearn_vectors(&v, 2, false, "v.json", vectors, strlen(vectors), &e), 0);
    assert_int_equal(model_sklearn_predict(&list, &back, &v, &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        json_t *one = json_array_get(list, i);
        double squared = json_number_value(json_object_get(one, "squared_distance"));
        assert_int_equal(json_integer_value(json_object_get(one, "cluster")), want[i].cluster);
        if (squared != want[i].squared)
            fail_msg("vector %zu: squared distance %.17g, want %.17g", i, squared, want[i].squared);
        assert_string_equal(json_string_value(json_object_get(one, "decision")), "unknown");
    }
    model_sklearn_vectors_done(&v);
}

static void test_a_foreign_model_that_is_broken_is_explained(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *says;
    } cases[] = {
        { "no object", "[1]", "no model" },
        { "no k", "{}", "'k' is missing" },
        { "k is none", "{\"k\":0}", "'k' must be" },
        { "fewer centroids than k", "{\"k\":2,\"n_features\":1,\"centroids\":[[1]]}", "must have 2" },
        { "a centroid too short", "{\"k\":1,\"n_features\":2,\"centroids\":[[1]]}", "'centroids.0'" },
        { "a centroid of texts", "{\"k\":1,\"n_features\":1,\"centroids\":[[\"1\"]]}", "'centroids.0.0'" },
        { "a null", "{\"k\":1,\"n_features\":1,\"centroids\":[[null]]}", "must be a number" },
        { "NaN", "{\"k\":1,\"n_features\":1,\"centroids\":[[NaN]]}", "line 1" },
        { "no sizes", "{\"k\":1,\"n_features\":1,\"centroids\":[[1]]}", "'cluster_sizes'" },
        { "half a profile", "{\"k\":1,\"n_features\":1,\"centroids\":[[1]],\"cluster_sizes\":[1.5]}",
          "'cluster_sizes'" },
        { "a size below none", "{\"k\":1,\"n_features\":1,\"centroids\":[[1]],\"cluster_sizes\":[-1.0]}",
          "'cluster_sizes'" },
        { "no inertia", "{\"k\":1,\"n_features\":1,\"centroids\":[[1]],\"cluster_sizes\":[1]}", "'inertia'" },
        { "names of another number",
          "{\"k\":1,\"n_features\":1,\"centroids\":[[1]],\"cluster_sizes\":[1],\"inertia\":0,\"feature_names\":[]}",
          "feature_names" },
        { "cut", "{\"k\":1,\"n_features\":1,\"centro", "line 1" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct model m = { 0 };
        struct err e = { 0 };
        int rc = model_sklearn_read(&m, "s.json", cases[i].text, strlen(cases[i].text), &e);
        if (rc != -EINVAL || !strstr(e.text, cases[i].says))
            fail_msg("%s: got %d '%s', want '%s'", cases[i].name, rc, e.text, cases[i].says);
        assert_null(m.features);
    }
}

static void test_vectors_have_the_models_width(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
        bool may_lack;
    } cases[] = {
        { "{}", "'vectors' is missing", false },
        { "{\"vectors\":[1]}", "must be a list", false },
        { "{\"vectors\":[[1]]}", "must have 2", false },
        { "{\"vectors\":[[1,2,3]]}", "must have 2", true },
        { "{\"vectors\":[[1,null]]}", "must be a number", false },
        { "{\"vectors\":[[1,\"x\"]]}", "vectors.0.1", true },
    };
    struct model_vectors_list v = { 0 };
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *text = cases[i].text;
        int rc = model_sklearn_vectors(&v, 2, cases[i].may_lack, "v.json", text, strlen(text), &e);
        if (rc != -EINVAL || !strstr(e.text, cases[i].says))
            fail_msg("%s: got %d '%s', want '%s'", text, rc, e.text, cases[i].says);
        assert_null(v.x);
    }
    static const char good[] = "{\"vectors\":[[1,null],[3,4]]}";
    assert_int_equal(model_sklearn_vectors(&v, 2, true, "v.json", good, strlen(good), &e), 0);
    assert_true(v.n == 2 && isnan(v.x[1]) && v.x[3] == 4);
    model_sklearn_vectors_done(&v);
}

static void test_memory_that_runs_out_leaves_nothing(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        AUTO_MODEL struct model m = { 0 }, foreign = { 0 };
        assert_true(nth < 500);
        fault_arm(FAULT_ALLOC, nth);
        rc = read_text(&m, GOOD, NULL);
        if (rc == 0)
            rc = model_sklearn_read(&foreign, "s.json", SKLEARN, strlen(SKLEARN), NULL);
        fault_disarm();
        assert_true(rc == 0 || rc == -ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read_back),
        cmocka_unit_test(test_an_empty_model_is_one_too),
        cmocka_unit_test(test_what_is_no_model_is_explained),
        cmocka_unit_test(test_a_text_cut_anywhere_is_no_model),
        cmocka_unit_test(test_profiles_go_by_the_names_of_their_features),
        cmocka_unit_test(test_a_model_made_elsewhere_predicts_in_its_own_space),
        cmocka_unit_test(test_a_foreign_model_that_is_broken_is_explained),
        cmocka_unit_test(test_vectors_have_the_models_width),
        cmocka_unit_test(test_memory_that_runs_out_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
