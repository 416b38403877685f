#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/rng.h"
#include "monitoring/features.h"
#include "monitoring/line.h"
#include "monitoring/points.h"
#include "tests/fault.h"

static const struct meter_ops rapl = { .name = "rapl", .kind = METER_ENERGY, .local = true };
static const struct meter_ops pdu = { .name = "pdu", .kind = METER_POWER };
static const struct meter_ops pcm = { .name = "pcm", .kind = METER_ENERGY, .local = true };
static const struct meter_ops snmp = { .name = "snmp", .kind = METER_POWER };
static const struct points_tags tags = { .host = "driver", .user = "ann", .study = "s 1", .trial = 7 };

static const double NS_MS = 1790000000000;

/* The line at *at, read; *at is behind it then. */
static const struct line_point *read_line(char **at)
{
    static struct line_point pt;
    struct err e = { 0 };
    char *end = strchr(*at, '\n');
    assert_non_null(end);
    *end = '\0';
    if (line_parse(&pt, *at, (size_t)(end - *at), &e) < 0)
        fail_msg("%s", e.text);
    *at = end + 1;
    return &pt;
}

static const struct line_field *field_of(const struct line_point *pt, const char *key)
{
    for (size_t i = 0; i < pt->n_fields; i++)
        if (strcmp(pt->fields[i].key, key) == 0)
            return &pt->fields[i];
    return NULL;
}

static double real_of(const struct line_point *pt, const char *key)
{
    const struct line_field *f = field_of(pt, key);
    if (!f)
        return NAN;
    if (f->kind != LINE_FLOAT)
        fail_msg("%s is no float", key);
    return f->real;
}

/* --- energy --- */

static void a_reading_is_one_line(void **state)
{
    (void)state;
    struct meter_reading r = {
        .state = METER_OK, .from_ms = NS_MS, .to_ms = NS_MS + 1000.25, .value = 12, .error = 0.5
    };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(points_energy(&b, &tags, "node-1", 3, &rapl, &r), 1);
    assert_string_equal(b.data, "pipetune_energy,host=node-1,meter=rapl,node=3,study=s\\ 1,user=ann "
                                "value=12.0,error=0.5,from_ms=1790000000000.0,to_ms=1790000001000.25,state=\"ok\" "
                                "1790000001000250000\n");
}

static void a_reading_without_a_value_says_why(void **state)
{
    (void)state;
    struct meter_reading r = { .state = METER_FAILED,
                               .from_ms = NS_MS,
                               .to_ms = NS_MS,
                               .value = NAN,
                               .error = NAN,
                               .why = "said \"no\" \xff\xc3" };
    struct points_tags none = { .host = "h" };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(points_energy(&b, &none, "n", 0, &pdu, &r), 1);
    assert_string_equal(b.data, "pipetune_energy,host=n,meter=pdu,node=0 from_ms=1790000000000.0,to_ms=1790000000000.0,"
                                "state=\"failed\",why=\"said \\\"no\\\" ?\?\" 1790000000000000003\n");
}

static void readings_of_two_states_that_end_together_are_two_points(void **state)
{
    (void)state;
    int64_t stamps[METER_STATES];
    for (int i = 0; i < METER_STATES; i++) {
        struct meter_reading r = { .state = (enum meter_state)i, .from_ms = NS_MS, .to_ms = NS_MS, .value = 1 };
        AUTO_BUF struct buf b = BUF_INIT;
        assert_int_equal(points_energy(&b, &tags, "n", 0, &rapl, &r), 1);
        char *at = b.data;
        stamps[i] = read_line(&at)->stamp;
        for (int k = 0; k < i; k++)
            assert_true(stamps[i] != stamps[k]);
    }
    assert_true(stamps[METER_OK] == (int64_t)NS_MS * 1000000); /* what has a value has its very time */
}

static void what_a_device_says_is_cut_between_characters(void **state)
{
    (void)state;
    struct meter_reading r = { .state = METER_DISCARDED, .from_ms = NS_MS, .to_ms = NS_MS, .value = NAN, .error = NAN };
    memset(r.why, 'x', METER_WHY_MAX); /* no end */
    r.why[METER_WHY_MAX - 2] = '\xc3';
    r.why[METER_WHY_MAX - 1] = '\xa9';
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(points_energy(&b, &tags, "n", 0, &rapl, &r), 1);
    char *at = b.data;
    const struct line_field *why = field_of(read_line(&at), "why");
    assert_non_null(why);
    assert_int_equal(strlen(why->text), METER_WHY_MAX - 2);
    assert_int_equal(strspn(why->text, "x"), METER_WHY_MAX - 2);
}

static void readings_read_back_exactly(void **state)
{
    (void)state;
    struct rng rng = rng_seeded(1);
    for (unsigned i = 0; i < 2000; i++) {
        struct meter_reading r = { .state = i % METER_STATES,
                                   .from_ms = NS_MS + 1e9 * rng_unit(&rng),
                                   .value = exp(60 * rng_unit(&rng) - 30),
                                   .error = i % 3 ? rng_unit(&rng) : NAN };
        r.to_ms = r.from_ms + 1000 * rng_unit(&rng);
        AUTO_BUF struct buf b = BUF_INIT;
        assert_int_equal(points_energy(&b, &tags, "n", (int)i, &rapl, &r), 1);
        char *at = b.data;
        const struct line_point *pt = read_line(&at);
        assert_true(real_of(pt, "value") == r.value && real_of(pt, "from_ms") == r.from_ms);
        assert_true(real_of(pt, "to_ms") == r.to_ms);
        assert_true(real_of(pt, "error") == r.error || (isnan(r.error) && !field_of(pt, "error")));
        assert_string_equal(field_of(pt, "state")->text, meter_state_name(r.state));
        double off_ns = (double)(pt->stamp - (int)r.state - (int64_t)NS_MS * 1000000) - (r.to_ms - NS_MS) * 1e6;
        assert_true(pt->stamped && fabs(off_ns) <= 0.6);
    }
}

static void the_old_measurements_keep_their_names(void **state)
{
    (void)state;
    struct meter_reading r = { .state = METER_OK, .from_ms = NS_MS, .to_ms = NS_MS + 1, .value = 41, .error = NAN };
    static const struct {
        const struct meter_ops *meter;
        const char *want; /* the second line */
    } cases[] = { { &pdu, "pdu_power/node_utilization,nodename=n\\,1 value=41.0 1790000000001000000\n" },
                  { &pcm, "pcm_power/node_utilization,nodename=n\\,1 value=41.0 1790000000001000000\n" },
                  { &rapl, "" },
                  { &snmp, "" } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        assert_int_equal(points_energy(&b, &tags, "n,1", 0, cases[i].meter, &r), *cases[i].want ? 2 : 1);
        assert_string_equal(strchr(b.data, '\n') + 1, cases[i].want);
    }
    r.state = METER_FAILED;
    r.value = NAN;
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(points_energy(&b, &tags, "n", 0, &pdu, &r), 1);
}

static void a_time_that_no_stamp_can_say_makes_no_line(void **state)
{
    (void)state;
    static const double times[] = { NAN, INFINITY, -INFINITY, 1e13, -1e300 };
    AUTO_BUF struct buf b = BUF_INIT;
    buf_puts(&b, "before\n");
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        struct meter_reading r = { .state = METER_OK, .to_ms = times[i], .value = 1 };
        struct points_iteration it = { .end_ms = times[i] };
        assert_int_equal(points_energy(&b, &tags, "n", 0, &pdu, &r), 0);
        assert_int_equal(points_profile(&b, &tags, "n", 0, "system", times[i], 1, NULL, 0), 0);
        assert_int_equal(points_iteration(&b, &tags, &it), 0);
    }
    struct points_epoch ep = { .end_ms = INT64_MAX };
    struct points_self self = { 0 };
    assert_int_equal(points_epoch(&b, &tags, &ep), 0);
    assert_int_equal(points_self(&b, "h", &self, INT64_MIN), 0);
    assert_string_equal(b.data, "before\n");
}

/* --- profiles --- */

static void a_profile_has_a_field_per_feature_that_was_measured(void **state)
{
    (void)state;
    static const struct reading v[] = { { 5, 1, READING_OK },
                                        { 2.5, 0.25F, READING_MULTIPLEXED },
                                        { NAN, 0, READING_DENIED },
                                        { NAN, 0, READING_ABSENT },
                                        { 0, 1, READING_OK } };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(points_profile(&b, &tags, "n", 2, "process", NS_MS + 0.5, 1000.125, v, ARRAY_LEN(v)), 1);
    char *at = b.data;
    const struct line_point *pt = read_line(&at);
    assert_string_equal(pt->measurement, "pipetune_profile");
    static const char *const want[][2] = { { "host", "n" },    { "node", "2" },  { "scope", "process" },
                                           { "study", "s 1" }, { "trial", "7" }, { "user", "ann" } };
    assert_int_equal(pt->n_tags, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_string_equal(pt->tags[i].key, want[i][0]);
        assert_string_equal(pt->tags[i].value, want[i][1]);
    }
    char key[80];
    assert_true(real_of(pt, feature_names[0]) == 5);
    assert_true(real_of(pt, feature_names[1]) == 2.5);
    (void)snprintf(key, sizeof key, "%s:ratio", feature_names[1]);
    assert_true(real_of(pt, key) == 0.25);
    assert_true(real_of(pt, feature_names[4]) == 0);
    assert_true(real_of(pt, "dt_ms") == 1000.125 && real_of(pt, "t_ms") == NS_MS + 0.5);
    assert_int_equal(pt->n_fields, 6);
    assert_true(pt->stamp == ((int64_t)NS_MS) * 1000000 + 500000);
}

static void a_whole_profile_reads_back_exactly(void **state)
{
    (void)state;
    struct rng rng = rng_seeded(2);
    struct reading v[FEATURES];
    for (int i = 0; i < FEATURES; i++)
        v[i] = (struct reading){ exp(50 * rng_unit(&rng)), (float)rng_unit(&rng), READING_MULTIPLEXED };
    double t_ms = NS_MS + 1e6 * rng_unit(&rng), dt_ms = 1000 * rng_unit(&rng);
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(points_profile(&b, &tags, "n", 2, "system", t_ms, dt_ms, v, FEATURES), 1);
    char *at = b.data;
    const struct line_point *pt = read_line(&at);
    for (int i = 0; i < FEATURES; i++) {
        char key[80];
        (void)snprintf(key, sizeof key, "%s:ratio", feature_names[i]);
        assert_true(real_of(pt, feature_names[i]) == v[i].value && (float)real_of(pt, key) == v[i].ratio);
    }
    assert_true(real_of(pt, "t_ms") == t_ms && real_of(pt, "dt_ms") == dt_ms);
}

/* --- trials, settings, decisions --- */

static void a_field_has_one_type_whatever_is_written_into_it(void **state)
{
    (void)state;
    static const struct points_value hyper[] = {
        { "batch_size", 64, NULL },
        { "optimizer", NAN, "sgd \"x\"" },
        { "seconds", 7, NULL },
        { "reason", NAN, "why\xff" },
    };
    const struct points_trial begun = { .state = "running",
                                        .attempt = 1,
                                        .epochs = 5,
                                        .begin_ms = NS_MS,
                                        .end_ms = NAN,
                                        .seconds = NAN,
                                        .accuracy = NAN,
                                        .loss = NAN,
                                        .metric = NAN,
                                        .hyper = hyper,
                                        .n_hyper = ARRAY_LEN(hyper) };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(points_trial(&b, &tags, &begun), 1);
    assert_string_equal(
        b.data, "pipetune_trial,host=driver,study=s\\ 1,trial=7,user=ann state=\"running\",attempt=1i,epochs=5i,"
                "begin_ms=1790000000000.0,batch_size=64.0,optimizer:text=\"sgd \\\"x\\\"\",hyper.seconds=7.0,"
                "hyper.reason:text=\"why?\" 1790000000000000000\n");
}

static void a_setting_is_its_knobs(void **state)
{
    (void)state;
    static const struct points_value knobs[] = { { "cores", 2, NULL }, { "spark.locality.wait", NAN, "1s" } };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(points_setting(&b, &tags, NS_MS, knobs, ARRAY_LEN(knobs)), 1);
    assert_string_equal(b.data, "pipetune_setting,host=driver,study=s\\ 1,trial=7,user=ann cores=2.0,"
                                "spark.locality.wait:text=\"1s\" 1790000000000000000\n");
    assert_int_equal(points_setting(&b, &tags, NS_MS, NULL, 0), 0);
}

static void a_decision_says_why(void **state)
{
    (void)state;
    const struct points_decision d = {
        .kind = "settle", .reason = "1.2 times faster", .setting = "{\"cores\": 2}", .t_s = 12.5, .t_ms = NS_MS
    };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(points_decision(&b, &tags, &d), 1);
    assert_string_equal(b.data,
                        "pipetune_decision,host=driver,study=s\\ 1,trial=7,user=ann kind=\"settle\","
                        "reason=\"1.2 times faster\",setting=\"{\\\"cores\\\": 2}\",t_s=12.5 1790000000000000000\n");
}

/* --- training --- */

static void an_epoch_is_one_line_of_what_is_known(void **state)
{
    (void)state;
    struct points_epoch ep = { .epoch = 3,
                               .accuracy = 0.9,
                               .loss = 0.25,
                               .metric = NAN,
                               .seconds = 12.5,
                               .records = 60000,
                               .iterations = 30,
                               .learning_rate = NAN,
                               .end_ms = (int64_t)NS_MS };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(points_epoch(&b, &tags, &ep), 1);
    assert_string_equal(b.data, "pipetune_epoch,host=driver,study=s\\ 1,trial=7,user=ann accuracy=0.9,loss=0.25,"
                                "seconds=12.5,records=60000.0,iterations=30.0,epoch=3i 1790000000000000000\n");
}

static void an_iteration_has_the_applications_metrics_once_each(void **state)
{
    (void)state;
    static const struct points_metric more[] = { { "perplexity", 12 }, { "loss", 9 },     { "perplexity", 13 },
                                                 { "top 5", 0.5 },     { "gone", NAN },   { "time", 1 },
                                                 { "epoch", 2 },       { "iteration", 2 } };
    struct points_iteration it = { .epoch = 1,
                                   .iteration = 40,
                                   .loss = 0.5,
                                   .learning_rate = 0.01,
                                   .seconds = NAN,
                                   .records = 32,
                                   .end_ms = NS_MS + 0.5,
                                   .more = more,
                                   .n_more = ARRAY_LEN(more) };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(points_iteration(&b, &tags, &it), 1);
    assert_string_equal(b.data,
                        "pipetune_iteration,host=driver,study=s\\ 1,trial=7,user=ann loss=0.5,learning_rate=0.01,"
                        "records=32.0,epoch=1i,iteration=40i,perplexity=12.0,top\\ 5=0.5,x_time=1.0 "
                        "1790000000000500000\n");
    char *at = b.data;
    (void)read_line(&at);
}

static void a_line_that_is_too_long_is_left_out(void **state)
{
    (void)state;
    static char name[LINE_BYTES_MAX];
    memset(name, 'x', sizeof name - 1);
    struct points_metric more = { name, 1 };
    struct points_iteration it = { .end_ms = NS_MS, .more = &more, .n_more = 1 };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(points_iteration(&b, &tags, &it), 0);
    assert_int_equal(b.len, 0);
}

/* --- the writer --- */

static void the_writer_tells_of_itself(void **state)
{
    (void)state;
    struct points_self s = { .samples = 1,
                             .missed = 2,
                             .produced = 3,
                             .stored = 4,
                             .spooled = 5,
                             .quarantined = 6,
                             .dropped = 7,
                             .retries = 8,
                             .spool_bytes = 9,
                             .cpu_s = 1.5,
                             .rss_bytes = 1e6 };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(points_self(&b, "h", &s, (int64_t)NS_MS), 1);
    assert_string_equal(b.data, "pipetune_self,host=h samples=1i,missed=2i,produced=3i,stored=4i,spooled=5i,"
                                "quarantined=6i,dropped=7i,retries=8i,spool_bytes=9i,cpu_s=1.5,rss_bytes=1000000.0 "
                                "1790000000000000000\n");
}

/* --- memory --- */

static int put_all(struct buf *b)
{
    struct meter_reading r = { .state = METER_OK, .from_ms = NS_MS, .to_ms = NS_MS, .value = 41, .error = 1 };
    struct reading v[FEATURES] = { { 5, 1, READING_OK } };
    struct points_epoch ep = { .end_ms = (int64_t)NS_MS };
    struct points_iteration it = { .end_ms = NS_MS };
    struct points_self self = { 0 };
    int rc[] = { points_energy(b, &tags, "n", 0, &pdu, &r),
                 points_profile(b, &tags, "n", 0, "system", NS_MS, 1, v, FEATURES), points_epoch(b, &tags, &ep),
                 points_iteration(b, &tags, &it), points_self(b, "h", &self, 0) };
    int lines = 0;
    for (size_t i = 0; i < ARRAY_LEN(rc); i++) {
        if (rc[i] < 0)
            return rc[i];
        lines += rc[i];
    }
    return lines;
}

static void without_memory_whole_lines_are_left(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        AUTO_BUF struct buf b = BUF_INIT;
        fault_arm(FAULT_ALLOC, nth);
        rc = put_all(&b);
        assert_int_equal(fault_disarm(), rc < 0);
        if (rc < 0) {
            assert_int_equal(rc, -ENOMEM);
            assert_true(b.len == 0 || b.data[b.len - 1] == '\n');
            /* a reading of an outlet is both of its lines, or neither */
            assert_true(!strstr(buf_text(&b), "pipetune_energy") == !strstr(buf_text(&b), "pdu_power"));
        }
    }
    assert_int_equal(rc, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reading_is_one_line),
        cmocka_unit_test(a_reading_without_a_value_says_why),
        cmocka_unit_test(readings_of_two_states_that_end_together_are_two_points),
        cmocka_unit_test(what_a_device_says_is_cut_between_characters),
        cmocka_unit_test(readings_read_back_exactly),
        cmocka_unit_test(the_old_measurements_keep_their_names),
        cmocka_unit_test(a_time_that_no_stamp_can_say_makes_no_line),
        cmocka_unit_test(a_profile_has_a_field_per_feature_that_was_measured),
        cmocka_unit_test(a_field_has_one_type_whatever_is_written_into_it),
        cmocka_unit_test(a_setting_is_its_knobs),
        cmocka_unit_test(a_decision_says_why),
        cmocka_unit_test(a_whole_profile_reads_back_exactly),
        cmocka_unit_test(an_epoch_is_one_line_of_what_is_known),
        cmocka_unit_test(an_iteration_has_the_applications_metrics_once_each),
        cmocka_unit_test(a_line_that_is_too_long_is_left_out),
        cmocka_unit_test(the_writer_tells_of_itself),
        cmocka_unit_test(without_memory_whole_lines_are_left),
    };
    return cmocka_run_group_tests_name("points", tests, NULL, NULL);
}
