/* The dashboards of conf/grafana ask for nothing that monitoring/points cannot write. */
#include <glob.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "monitoring/features.h"
#include "monitoring/line.h"
#include "monitoring/points.h"

/* --- what can be written: {"measurement": {"key": true}}, tags and fields together --- */

static void learn_line(json_t *known, char *text)
{
    static struct line_point pt;
    struct err e = { 0 };
    if (line_parse(&pt, text, strlen(text), &e) < 0)
        fail_msg("%s", e.text);
    json_t *keys = json_object_get(known, pt.measurement);
    if (!keys) {
        keys = json_object();
        (void)json_object_set_new(known, pt.measurement, keys);
    }
    for (size_t i = 0; i < pt.n_tags; i++)
        (void)json_object_set_new(keys, pt.tags[i].key, json_true());
    for (size_t i = 0; i < pt.n_fields; i++)
        (void)json_object_set_new(keys, pt.fields[i].key, json_true());
}

static void put_energies(struct buf *b, const struct points_tags *t)
{
    static const struct meter_ops writers[] = { { .name = "rapl" }, { .name = "pdu" }, { .name = "pcm" } };
    const struct meter_reading r = { .to_ms = 1, .value = 1, .error = 1, .why = "because" };
    for (size_t i = 0; i < ARRAY_LEN(writers); i++)
        assert_true(points_energy(b, t, "h", 0, &writers[i], &r) > 0);
}

/* Once with every feature multiplexed, once with none. */
static void put_profiles(struct buf *b, const struct points_tags *t)
{
    static const uint8_t states[] = { READING_MULTIPLEXED, READING_UNSUPPORTED };
    struct reading v[FEATURES];
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        for (int k = 0; k < FEATURES; k++)
            v[k] = (struct reading){ .value = 1, .ratio = 0.5F, .state = states[i] };
        assert_int_equal(points_profile(b, t, "h", 0, "system", 1, 1, v, FEATURES), 1);
    }
}

static json_t *learn(void)
{
    const struct points_tags t = { .host = "h", .user = "u", .study = "s", .trial = 1 };
    const struct points_epoch epoch = { .epoch = 1 };
    const struct points_iteration iteration = { .epoch = 1 };
    static const struct points_value values[] = { { "cores", 2, NULL },
                                                  { "batch_size", 64, NULL },
                                                  { "learning_rate", 1, NULL } };
    const struct points_trial trial = {
        .state = "running", .hyper = values, .n_hyper = ARRAY_LEN(values), .end_ms = 1
    };
    const struct points_decision decision = { .kind = "apply", .reason = "r", .setting = "{}", .t_ms = 1 };
    const struct points_self self = { .samples = 1 };
    AUTO_BUF struct buf b = BUF_INIT;
    put_energies(&b, &t);
    put_profiles(&b, &t);
    assert_int_equal(points_epoch(&b, &t, &epoch), 1);
    assert_int_equal(points_iteration(&b, &t, &iteration), 1);
    assert_int_equal(points_trial(&b, &t, &trial), 1);
    assert_int_equal(points_setting(&b, &t, 1, values, ARRAY_LEN(values)), 1);
    assert_int_equal(points_decision(&b, &t, &decision), 1);
    assert_int_equal(points_self(&b, "h", &self, 1), 1);
    json_t *known = json_object();
    for (char *at = b.data, *end; *at && (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        learn_line(known, at);
    }
    return known;
}

/* --- what is asked for --- */

struct query {
    const char *file, *text;
    json_t *known;
    int names; /* that were looked at */
};

/* The next quoted name of `at`, and what follows it; NULL: none. */
static const char *next_name(const char *at, char name[128], bool *measurement)
{
    const char *begin = strchr(at, '"'), *end = begin ? strchr(begin + 1, '"') : NULL;
    if (!end)
        return NULL;
    (void)snprintf(name, 128, "%.*s", (int)(end - begin - 1), begin + 1);
    *measurement = begin - at >= 5 && memcmp(begin - 5, "FROM ", 5) == 0;
    return end + 1;
}

/* Each query asks for one measurement. */
static json_t *find_measurement(const struct query *q)
{
    char name[128];
    bool from;
    json_t *keys = NULL;
    for (const char *at = q->text; (at = next_name(at, name, &from));) {
        if (!from)
            continue;
        if (!json_object_get(q->known, name) || keys)
            fail_msg("%s: '%s' in %s", q->file, name, q->text);
        keys = json_object_get(q->known, name);
    }
    if (!keys)
        fail_msg("%s: nothing is asked for in %s", q->file, q->text);
    return keys;
}

static void check_query(struct query *q)
{
    json_t *keys = find_measurement(q);
    char name[128];
    bool from;
    for (const char *at = q->text; (at = next_name(at, name, &from)); q->names++)
        if (!from && name[0] != '$' && !json_object_get(keys, name))
            fail_msg("%s: nobody writes '%s', in %s", q->file, name, q->text);
}

/* SELECT, and what variables are filled with. */
static void check_text(struct query *q, const char *key, const json_t *j)
{
    const char *text = json_string_value(j);
    if (strcmp(key, "query") != 0 || !text || strcmp(text, "influxdb") == 0) /* the kind of a data source */
        return;
    q->text = text;
    check_query(q);
}

static void walk(struct query *q, const char *key, json_t *j)
{
    const char *below;
    json_t *value;
    size_t i;
    check_text(q, key, j);
    json_object_foreach(j, below, value)
    {
        walk(q, below, value);
    }
    json_array_foreach(j, i, value)
    {
        walk(q, "", value);
    }
}

static int check_dashboard(const char *path, json_t *known)
{
    json_error_t why;
    json_t *j = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!j)
        fail_msg("%s: line %d: %s", path, why.line, why.text);
    if (!json_is_string(json_object_get(j, "title")) || json_array_size(json_object_get(j, "panels")) == 0)
        fail_msg("%s is no dashboard", path);
    struct query q = { .file = path, .known = known };
    walk(&q, "", j);
    json_decref(j);
    return q.names;
}

static void test_dashboards_ask_for_what_is_written(void **state)
{
    (void)state;
    glob_t found;
    json_t *known = learn();
    assert_int_equal(glob("conf/grafana/*.json", 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 3);
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (check_dashboard(found.gl_pathv[i], known) < 20)
            fail_msg("%s asks for too little to have been understood", found.gl_pathv[i]);
    globfree(&found);
    json_decref(known);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_dashboards_ask_for_what_is_written) };
    return cmocka_run_group_tests_name("dashboards", tests, NULL, NULL);
}
