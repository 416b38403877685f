#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/experiment.h"
#include "core/experiment_sim.h"
#include "core/tune_csv.h"
#include "core/tune_replay.h"
#include "tests/fault.h"

static int parse(struct experiment *out, const char *text, struct err *e)
{
    struct json_doc doc = { 0 };
    int rc = json_doc_parse(&doc, "x.json", text, strlen(text), e);
    if (rc == 0)
        rc = experiment_parse(out, &doc, e);
    json_doc_done(&doc);
    return rc;
}

static void must_parse(struct experiment *out, const char *text)
{
    struct err e = { 0 };
    if (parse(out, text, &e) < 0)
        fail_msg("%s", e.text);
}

static void expect(const char *what, double got, double want)
{
    bool none = isnan(got) && isnan(want);
    if (!none && !(fabs(got - want) < 1e-9))
        fail_msg("%s: got %.17g, want %.17g", what, got, want);
}

/* --- the file --- */

#define TAIL "\"policies\": [\"v1\"] }"

static const struct {
    const char *name, *text, *want;
} wrong[] = {
    { "a key that is nearly known", "{ \"jobs\": [{\"config\": \"a\"}], \"polices\": [], " TAIL,
      "'polices' is not known: did you mean 'policies'?" },
    { "a key of the arrivals", "{ \"jobs\": [{\"config\": \"a\"}], \"arrivals\": {\"laod\": 1}, " TAIL,
      "did you mean 'load'?" },
    { "a key of a job", "{ \"jobs\": [{\"config\": \"a\", \"wieght\": 2}], " TAIL, "did you mean 'weight'?" },
    { "no jobs", "{ " TAIL, "'jobs' must be a list of 1 to 32 jobs" },
    { "a job without a config", "{ \"jobs\": [{\"weight\": 2}], " TAIL, "needs a 'config'" },
    { "two jobs of one name", "{ \"jobs\": [{\"config\": \"a/x.conf\"}, {\"config\": \"b/x.conf\"}], " TAIL,
      "is called 'x', as another job is" },
    { "a job that is called all", "{ \"jobs\": [{\"config\": \"all.conf\"}], " TAIL, "needs a 'name'" },
    { "a weight of 0", "{ \"jobs\": [{\"config\": \"a\", \"weight\": 0}], " TAIL, "must be a number above 0" },
    { "a policy that is nearly one", "{ \"jobs\": [{\"config\": \"a\"}], \"policies\": [\"pipetun\"] }",
      "did you mean 'pipetune'?" },
    { "a policy twice", "{ \"jobs\": [{\"config\": \"a\"}], \"policies\": [\"v1\", \"v1\"] }", "is there twice: 'v1'" },
    { "no policies", "{ \"jobs\": [{\"config\": \"a\"}] }", "'policies' must be a list" },
    { "another process", "{ \"jobs\": [{\"config\": \"a\"}], \"arrivals\": {\"process\": \"possion\"}, " TAIL,
      "must be one of poisson" },
    { "no load at all", "{ \"jobs\": [{\"config\": \"a\"}], \"arrivals\": {\"load\": 0}, " TAIL, "arrivals.load" },
    { "a list", "[]", "is no experiment" },
};

static void faults_name_the_key(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct experiment x = { 0 };
        struct err e = { 0 };
        int rc = parse(&x, wrong[i].text, &e);
        if (rc != -EINVAL || !strstr(e.text, wrong[i].want))
            fail_msg("%s: got %d '%s', want '%s'", wrong[i].name, rc, e.text, wrong[i].want);
        assert_int_equal(x.n_jobs, 0);
    }
}

#define ONLINE                                                                                                         \
    "{ \"jobs\": [{\"config\": \"d/a.conf\", \"weight\": 3}, {\"config\": \"b.json\", \"name\": \"bee\"}],\n"          \
    "  \"arrivals\": {\"process\": \"poisson\", \"load\": 0.5, \"count\": 10000, \"seed\": 13},\n"                     \
    "  \"policies\": [\"v1\", \"v2\", \"pipetune\"] }"

static void a_file_is_read(void **state)
{
    (void)state;
    struct experiment x;
    must_parse(&x, ONLINE);
    assert_string_equal(x.jobs[0].name, "a");
    assert_string_equal(x.jobs[1].name, "bee");
    expect("weight", x.jobs[1].weight, 1);
    assert_string_equal(x.policies[2]->name, "pipetune");
    assert_true(isnan(x.service_s) && !x.offline);
    assert_int_equal(experiment_studies(&x), 10000);
    experiment_done(&x);
    must_parse(&x, "{ \"jobs\": [{\"config\": \"a\"}, {\"config\": \"b\"}], " TAIL);
    assert_true(x.offline);
    assert_int_equal(experiment_studies(&x), 2);
    experiment_done(&x);
}

static void reading_survives_want_of_memory(void **state)
{
    (void)state;
    struct json_doc doc = { 0 };
    struct err e;
    assert_int_equal(json_doc_parse(&doc, "x.json", ONLINE, strlen(ONLINE), &e), 0);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct experiment x = { 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = experiment_parse(&x, &doc, &e);
        fault_disarm();
        if (rc < 0)
            assert_int_equal(x.n_jobs, 0);
        experiment_done(&x);
    }
    json_doc_done(&doc);
}

/* --- arrivals --- */

static void arrivals_are_the_seed_s(void **state)
{
    (void)state;
    static struct experiment_arrival a[10000], b[10000];
    struct experiment x;
    must_parse(&x, ONLINE);
    experiment_arrive(a, &x, 100);
    experiment_arrive(b, &x, 200);
    size_t first = 0;
    expect("the first one", a[0].at_s, 0);
    for (size_t i = 0; i < 10000; i++) {
        assert_int_equal(a[i].job, b[i].job);
        assert_true(fabs(b[i].at_s - 2 * a[i].at_s) < 1e-6 * (1 + b[i].at_s));
        assert_true(i == 0 || a[i].at_s >= a[i - 1].at_s);
        first += a[i].job == 0;
    }
    /* 3 of 4 by weight; a mean gap of 100 s over the load. */
    assert_true(first > 7300 && first < 7700);
    double gap_s = a[9999].at_s / 9999;
    assert_true(gap_s > 194 && gap_s < 206);
    /* Exponential gaps: as many beyond the mean as 1/e. */
    size_t beyond = 0;
    for (size_t i = 1; i < 10000; i++)
        beyond += a[i].at_s - a[i - 1].at_s > 200;
    assert_true(beyond > 3500 && beyond < 3860);
    x.seed = 14;
    experiment_arrive(b, &x, 100);
    assert_true(b[1].at_s != a[1].at_s);
    experiment_done(&x);
}

/* --- figures --- */

static struct experiment_row row(size_t policy, size_t job, double arrived, double started, double ended)
{
    return (struct experiment_row){ .policy = policy,
                                    .job = job,
                                    .arrived_s = arrived,
                                    .started_s = started,
                                    .ended_s = ended,
                                    .training_s = 7,
                                    .training_j = 70,
                                    .tuning_j = NAN,
                                    .error = 0.1,
                                    .lr = 0.01,
                                    .batch = 32,
                                    .epochs = 5,
                                    .cores = 2 };
}

static void means_are_of_the_rows_that_are_meant(void **state)
{
    (void)state;
    struct experiment_row rows[] = { row(0, 0, 0, 0, 10), row(0, 1, 2, 10, 30), row(0, 0, 4, 30, 44),
                                     row(1, 0, 0, 0, 1000), row(0, 0, 0, 0, 5000) };
    rows[4].failed = true;
    struct experiment_mean m = experiment_mean_of(rows, 5, 0, EXPERIMENT_ALL, EXPERIMENT_QUEUE);
    assert_int_equal(m.n, 3);
    expect("queue", m.mean, (0 + 8 + 26) / 3.0);
    /* Deviations -34/3, -10/3, 44/3: sd 13.3167…, over sqrt(3), times t(2) = 2.920. */
    expect("interval", m.half, 2.920 * sqrt((34.0 * 34 + 10 * 10 + 44 * 44) / 9 / 2) / sqrt(3));
    m = experiment_mean_of(rows, 5, 0, 0, EXPERIMENT_RESPONSE);
    expect("response", m.mean, (10 + 40) / 2.0);
    m = experiment_mean_of(rows, 5, 1, 0, EXPERIMENT_TUNING);
    expect("tuning", m.mean, 1000);
    assert_true(isnan(m.half));
    m = experiment_mean_of(rows, 5, 0, EXPERIMENT_ALL, EXPERIMENT_JOULES);
    assert_true(m.n == 0 && isnan(m.mean));
}

static void rows_are_read_back(void **state)
{
    (void)state;
    struct experiment x;
    must_parse(&x, ONLINE);
    struct experiment_row rows[] = { row(0, 0, 0, 0, 10), row(1, 0, 0, 0, 10), row(0, 1, 2.5, 10, 30),
                                     row(0, 1, 2, 3, 4), row(0, 0, 3, 30, 44) };
    rows[3].lr = NAN;
    rows[4].tuning_j = 812.5;
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(experiment_put_online_csv(&b, &x, rows, 5, 0), 1);
    struct tune_online t = { 0 };
    struct csv_faults faults = { 0 };
    assert_int_equal(tune_online_parse(&t, buf_text(&b), b.len, &faults), 0);
    assert_int_equal(faults.n, 0);
    assert_int_equal(t.n, 3);
    assert_string_equal(t.rows[1].job, "bee");
    assert_string_equal(t.rows[1].load, "0.5");
    expect("queue", t.rows[1].queue_s, 7.5);
    expect("tuning", t.rows[1].tuning_s, 20);
    expect("response", t.rows[1].response_s, 27.5);
    expect("training, with the queue", t.rows[1].training_s, 14.5);
    expect("joules", t.rows[1].tuning_j, NAN);
    expect("joules that are known", t.rows[2].tuning_j, 812.5);
    expect("joules of the training", t.rows[1].training_j, 70);
    tune_online_done(&t);
    csv_faults_done(&faults);
    experiment_done(&x);
}

static void trials_are_read_back(void **state)
{
    (void)state;
    struct experiment_trial trials[] = { { 0, 1, 50, 0.1, 32, 0.05, 12.5, 3 },
                                         { 1, 1, 50, 0.1, 32, 0.05, 12.5, 3 },
                                         { 0, 2, 4, 0.1, 64, NAN, 2.5, NAN },
                                         { 0, 3, 4, NAN, 64, 0.5, 2.5, 1 } };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(experiment_put_offline_csv(&b, trials, 4, 0), 1);
    struct tune_offline t = { 0 };
    struct csv_faults faults = { 0 };
    assert_int_equal(tune_offline_parse(&t, buf_text(&b), b.len, &faults), 0);
    assert_int_equal(faults.n + t.n, 2);
    expect("joules", t.rows[0].energy_j, 3);
    expect("no joules", t.rows[1].energy_j, NAN);
    expect("no error", t.rows[1].error, NAN);
    tune_offline_done(&t);
    csv_faults_done(&faults);
}

/* --- simulation --- */

/* At batch 32 one core is quicker, at 64 two are; 10 W a core. */
static struct timeline_epoch at_1[] = { { 20, 1, 0.5, 200 }, { 10, 1, 0.6, 100 } },
                             at_2[] = { { 30, 1, 0.5, 600 }, { 20, 1, 0.6, 400 } },
                             of_64_1[] = { { 9, 1, 0.7, 90 }, { 8, 1, 0.8, 80 } },
                             of_64_2[] = { { 5, 1, 0.7, 100 }, { 4, 1, 0.8, 80 } };
static struct timeline_run recorded_runs[] = {
    { .model = (char *)"m",
      .dataset = (char *)"d",
      .cores = 2,
      .memory_gb = 4,
      .batch = 32,
      .startup_s = 3,
      .epochs = at_2,
      .n_epochs = 2 },
    { .model = (char *)"m",
      .dataset = (char *)"d",
      .cores = 1,
      .memory_gb = 4,
      .batch = 32,
      .startup_s = 3,
      .epochs = at_1,
      .n_epochs = 2 },
    { .model = (char *)"m",
      .dataset = (char *)"d",
      .cores = 1,
      .memory_gb = 4,
      .batch = 64,
      .startup_s = 3,
      .epochs = of_64_1,
      .n_epochs = 2 },
    { .model = (char *)"m",
      .dataset = (char *)"d",
      .cores = 2,
      .memory_gb = 4,
      .batch = 64,
      .startup_s = 3,
      .epochs = of_64_2,
      .n_epochs = 2 },
};
static const struct timeline recorded_timeline = { recorded_runs, 4, 4 };
static struct experiment_point both[] = { { 32, 0.1 }, { 64, 0.1 } };

#define SIMULATED                                                                                                      \
    "{ \"jobs\": [{\"config\": \"a\"}], \"arrivals\": {\"load\": 2, \"count\": 3, \"seed\": 5},\n"                     \
    "  \"policies\": [\"v1\", \"v2\", \"pipetune\"] }"

struct played {
    struct experiment x;
    struct timeline_jobs jobs;
    struct experiment_study study;
    struct experiment_sim sim;
};

static void open_played(struct played *p, const char *text, struct experiment_point *points, size_t n)
{
    struct err e = { 0 };
    *p = (struct played){
        .study = { .points = points, .n_points = n, .grid = true, .epochs = 4, .cores = 8, .memory_gb = 4 }
    };
    must_parse(&p->x, text);
    assert_int_equal(timeline_gather(&p->jobs, &recorded_timeline), 0);
    if (experiment_sim_find(&p->study, &p->jobs, NULL, "a", &e) < 0)
        fail_msg("%s", e.text);
    p->sim = (struct experiment_sim){ .x = &p->x, .studies = &p->study, .recorded = &p->jobs };
}

static void close_played(struct played *p)
{
    timeline_jobs_done(&p->jobs);
    experiment_done(&p->x);
}

/* 3 s of start-up, one first epoch, three others; 20 W on two cores. */
#define V1_32 (3 + 30 + 3 * 20.0)
#define V1_64 (3 + 5 + 3 * 4.0)

static void a_queue_is_served_in_order(void **state)
{
    (void)state;
    struct played p;
    struct err e;
    double service_s;
    open_played(&p, SIMULATED, both, 2);
    assert_int_equal(experiment_sim_service(&service_s, &p.sim, &e), 0);
    expect("service", service_s, V1_32 + V1_64);
    struct experiment_arrival arrivals[] = { { 0, 0 }, { 10, 0 }, { 500, 0 } };
    struct experiment_row rows[3];
    assert_int_equal(experiment_simulate(rows, &p.sim, arrivals, 3, 0, 0, &e), 0);
    expect("started", rows[1].started_s, V1_32 + V1_64);
    expect("ended", rows[1].ended_s, 2 * (V1_32 + V1_64));
    expect("nothing waits for it", rows[2].started_s, 500);
    expect("the best error", rows[2].error, 1 - 0.8);
    expect("is of batch", rows[2].batch, 64);
    expect("its training", rows[2].training_s, V1_64);
    expect("its joules, without the start-up's", rows[2].training_j, 20 * (V1_64 - 3));
    expect("joules of all", rows[2].tuning_j, 20 * (V1_32 + V1_64 - 6));
    assert_int_equal(rows[2].cores, 2);
    close_played(&p);
}

static int count_trials(void *ctx, const struct experiment_trial *t)
{
    int *n = ctx;
    assert_int_equal(t->number, *n % 4 + 1);
    ++*n;
    return 0;
}

static void v2_trains_every_setting_of_a_grid(void **state)
{
    (void)state;
    struct played p;
    struct err e;
    int n = 0;
    open_played(&p, SIMULATED, both, 2);
    p.sim.trial = count_trials;
    p.sim.ctx = &n;
    struct experiment_arrival arrivals[] = { { 0, 0 } };
    struct experiment_row r;
    assert_int_equal(experiment_simulate(&r, &p.sim, arrivals, 1, 1, 0, &e), 0);
    assert_int_equal(n, 4);
    expect("tuning", r.ended_s, V1_32 + V1_64 + (3 + 20 + 3 * 10.0) + (3 + 9 + 3 * 8.0));
    expect("by accuracy over time", r.training_s, V1_64);
    p.study.grid = false;
    n = 0;
    p.sim.trial = NULL;
    assert_int_equal(experiment_simulate(&r, &p.sim, arrivals, 1, 1, 0, &e), 0);
    assert_int_equal(r.trials, 2);
    close_played(&p);
}

/* The class is known from the first study on: the second one's trials begin at one core. */
static void what_is_learnt_stays_from_study_to_study(void **state)
{
    (void)state;
    struct played p;
    struct err e;
    open_played(&p, SIMULATED, both, 1);
    struct experiment_arrival arrivals[] = { { 0, 0 }, { 0, 0 }, { 0, 0 } };
    struct experiment_row v1[3], ours[3], again[3];
    assert_int_equal(experiment_simulate(v1, &p.sim, arrivals, 3, 0, 0, &e), 0);
    assert_int_equal(experiment_simulate(ours, &p.sim, arrivals, 3, 2, 0, &e), 0);
    double first = experiment_row_figure(&ours[0], EXPERIMENT_TUNING);
    double third = experiment_row_figure(&ours[2], EXPERIMENT_TUNING);
    assert_true(first < experiment_row_figure(&v1[0], EXPERIMENT_TUNING));
    assert_true(third < first);
    assert_true(third > 3 + 20 + 30 - 1e-9); /* nothing is quicker than one core all along */
    expect("the same error", ours[2].error, v1[2].error);
    assert_true(ours[2].tuning_j < v1[2].tuning_j);
    assert_int_equal(experiment_simulate(again, &p.sim, arrivals, 3, 2, 0, &e), 0);
    assert_memory_equal(again, ours, sizeof again);
    close_played(&p);
}

static void what_was_not_recorded_is_told(void **state)
{
    (void)state;
    struct played p;
    struct err e;
    open_played(&p, SIMULATED, both, 2);
    struct experiment_point other = { 128, 0.1 };
    struct experiment_study s = { .points = &other, .n_points = 1 };
    assert_int_equal(experiment_sim_find(&s, &p.jobs, NULL, "a", &e), -EINVAL);
    assert_string_equal(e.text, "job 'a': batch 128 was not recorded: the trace has 32, 64");
    assert_int_equal(experiment_sim_find(&s, &p.jobs, "m/dd", "a", &e), -EINVAL);
    assert_string_equal(e.text, "job 'a': the trace has no workload 'm/dd': did you mean 'm/d'?");
    close_played(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_name_the_key),
        cmocka_unit_test(a_file_is_read),
        cmocka_unit_test(reading_survives_want_of_memory),
        cmocka_unit_test(arrivals_are_the_seed_s),
        cmocka_unit_test(means_are_of_the_rows_that_are_meant),
        cmocka_unit_test(rows_are_read_back),
        cmocka_unit_test(trials_are_read_back),
        cmocka_unit_test(a_queue_is_served_in_order),
        cmocka_unit_test(v2_trains_every_setting_of_a_grid),
        cmocka_unit_test(what_is_learnt_stays_from_study_to_study),
        cmocka_unit_test(what_was_not_recorded_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
