/* What would be launched for a point: slots, settings of the point's own, and which jobs share knowledge. */
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

#include "base/io.h"
#include "base/own.h"
#include "clustering/model.h"
#include "clustering/model_json.h"
#include "live/plan.h"

static const char with_arguments[] =
    "{ \"master\": \"local[*]\", \"conf\": \"/a/app.py\", \"extras\": { \"data\": \"/d\" },\n"
    "  \"arguments\": { \"batch_size\": [\"-b\", \"{}\"], \"learning_rate\": [\"-r\", \"{}\"], \"layers\": [\"-l\", "
    "\"{}\"],\n"
    "    \"epochs\": [\"-e\", \"{}\"] } }\n";

static const char with_extras[] =
    "{ \"master\": \"local[*]\", \"conf\": \"/a/app.jar\", \"class\": \"x.Y\",\n"
    "  \"extras\": { \"data\": \"/d\", \"batchSize\": 1, \"learningRate\": 1, \"layers\": 1, \"max_epoch\": 1 } }\n";

static const char config[] =
    "{ \"bigdlConf\": \"bigdl.json\", \"study\": { \"name\": \"s\" }, \"search\": { \"algorithm\": \"grid\" },\n"
    "  \"systemParameters\": { \"cores\": [4, 2, 1], \"memory\": [1, 2] },\n"
    "  \"hyperParameters\": { \"batch_size\": [64, 6], \"learning_rate\": [0.1, 0.05],\n"
    "    \"layers\": { \"values\": [3, 5], \"affects\": \"speed\" } } }\n";

struct bench {
    char *dir;
    struct plan plan;
};

static void write_file(const struct bench *b, const char *name, const char *text)
{
    AUTO_FREE char *path = io_join(b->dir, name);
    assert_int_equal(io_write_atomic(path, text, strlen(text), 0666, NULL), 0);
}

static int choose_policy(void *ctx, struct config *cfg, struct err *e)
{
    (void)e;
    free(cfg->policy);
    cfg->policy = strdup(ctx);
    return cfg->policy ? 0 : -1;
}

/* On a machine with four CPUs. */
static void load_config(struct bench *b, const char *policy, const char *bigdl, const char *text)
{
    struct err e = { 0 };
    char dir[] = "/tmp/pipetune-plan-XXXXXX";
    assert_non_null(mkdtemp(dir));
    b->dir = strdup(dir);
    write_file(b, "bigdl.json", bigdl);
    write_file(b, "c.conf", text);
    AUTO_FREE char *path = io_join(b->dir, "c.conf");
    if (plan_load(&b->plan, path, NULL, choose_policy, (void *)(uintptr_t)policy, &e) < 0)
        fail_msg("%s", e.text);
    b->plan.offer = (struct offer){ .cores = 4, .memory_gb = 8 };
}

static void load(struct bench *b, const char *policy, const char *bigdl)
{
    load_config(b, policy, bigdl, config);
}

static void unload(struct bench *b)
{
    static const char *const names[] = { "bigdl.json", "c.conf" };
    plan_done(&b->plan);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO_FREE char *path = io_join(b->dir, names[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(b->dir), 0);
    free(b->dir);
}

static char *key(const struct bench *b, const struct point *pt, bool family)
{
    struct buf out = BUF_INIT;
    plan_class_key(&b->plan, pt, family, &out);
    return buf_take(&out);
}

/* --- classes --------------------------------------------------------------------------------------------------------------- */

/* Indices of batch_size, learning_rate, layers. */
static const struct {
    const char *name;
    struct point a, b;
    bool same_class, same_family;
} classes[] = {
    { "the same point", { .x = { 0, 0, 0 } }, { .x = { 0, 0, 0 } }, true, true },
    { "another learning rate", { .x = { 0, 0, 0 } }, { .x = { 0, 1, 0 } }, true, true },
    { "another batch", { .x = { 0, 0, 0 } }, { .x = { 1, 0, 0 } }, false, true },
    { "another marked one", { .x = { 0, 0, 0 } }, { .x = { 0, 0, 1 } }, false, false },
};

static void test_jobs_of_the_same_speed_share_knowledge(void **state)
{
    static const char *const files[] = { with_arguments, with_extras };
    (void)state;
    for (size_t f = 0; f < ARRAY_LEN(files); f++) {
        struct bench b;
        load(&b, "pipetune", files[f]);
        for (size_t i = 0; i < ARRAY_LEN(classes); i++)
            for (int family = 0; family < 2; family++) {
                AUTO_FREE char *one = key(&b, &classes[i].a, family);
                AUTO_FREE char *other = key(&b, &classes[i].b, family);
                bool want = family ? classes[i].same_family : classes[i].same_class;
                if ((strcmp(one, other) == 0) != want)
                    fail_msg("%s: '%s' and '%s'", classes[i].name, one, other);
            }
        unload(&b);
    }
}

static void test_a_class_is_of_one_application_and_its_fixed_arguments(void **state)
{
    struct bench b;
    const struct point pt = { .x = { 0, 0, 0 } };
    (void)state;
    load(&b, "pipetune", with_arguments);
    AUTO_FREE char *python = key(&b, &pt, false);
    assert_string_equal(python, "/a/app.py --data /d batch_size=64 layers=3");
    unload(&b);
    load(&b, "pipetune", with_extras);
    AUTO_FREE char *jvm = key(&b, &pt, false);
    assert_string_equal(jvm, "/a/app.jar x.Y --data /d batch_size=64 layers=3");
    unload(&b);
}

static void test_a_class_is_the_same_wherever_pipetune_lies(void **state)
{
    static const char ours[] = "{ \"master\": \"local[*]\", \"conf\": \"$PIPETUNE_HOME/app.py\",\n"
                               "  \"extras\": { \"data\": \"$PIPETUNE_DATA/d\", \"other\": \"/x$PIPETUNE_DATA\", "
                               "\"batchSize\": 1, \"learningRate\": 1, \"layers\": 1, \"max_epoch\": 1 } }\n";
    struct bench b;
    const struct point pt = { .x = { 0, 0, 0 } };
    (void)state;
    load(&b, "pipetune", ours);
    AUTO_BUF struct buf want = BUF_INIT;
    buf_printf(&want, "$PIPETUNE_HOME/app.py --data $PIPETUNE_DATA/d --other /x%s batch_size=64 layers=3",
               b.plan.env.data);
    AUTO_FREE char *got = key(&b, &pt, false);
    assert_string_equal(got, buf_text(&want));
    unload(&b);
}

static int choose_nothing(void *ctx, struct config *cfg, struct err *e)
{
    (void)ctx, (void)cfg, (void)e;
    return 0;
}

/* What was recorded elsewhere would help nobody if the demo's jobs were called otherwise. */
static void test_the_shipped_model_knows_the_jobs_of_the_demo(void **state)
{
    struct err e = { 0 };
    struct plan demo;
    struct model m;
    AUTO_BUF struct buf text = BUF_INIT;
    const char *file = "examples/demo-model.json";
    (void)state;
    if (io_read_file(&text, file, 1 << 20, &e) < 0 || model_json_read(&m, file, text.data, text.len, &e) < 0 ||
        plan_load(&demo, "conf/demo.conf", NULL, choose_nothing, NULL, &e) < 0)
        fail_msg("%s", e.text);
    for (uint64_t i = 0; i < demo.space.dims[0].n; i++) {
        AUTO_BUF struct buf of = BUF_INIT;
        const struct point pt = { .x = { (double)i } };
        plan_class_key(&demo, &pt, false, &of);
        if (!model_class_find(&m, buf_text(&of)))
            fail_msg("%s knows nothing of '%s'", file, buf_text(&of));
    }
    plan_done(&demo);
    model_done(&m);
}

/* Under v2 the knobs are dimensions, too: no part of any class. */
static void test_a_joined_space_has_settings_of_its_points(void **state)
{
    struct bench b;
    const struct point pt = { .x = { 0, 0, 0, 1, 1 } }; /* … cores, memory */
    (void)state;
    load(&b, "v2", with_arguments);
    assert_int_equal(space_n_hyper(&b.plan.space), 3);
    assert_int_equal(space_size(&b.plan.space), 2 * 2 * 2 * 3 * 2);
    struct setting set = plan_requested(&b.plan, &pt);
    assert_true(setting_number(&b.plan.space, &set, KNOB_CORES, NAN) == 2);
    assert_true(setting_number(&b.plan.space, &set, KNOB_MEMORY, NAN) == 2);
    AUTO_FREE char *class = key(&b, &pt, false);
    assert_null(strstr(class, "cores"));
    unload(&b);
    load(&b, "v1", with_arguments);
    set = plan_requested(&b.plan, &pt);
    assert_true(setting_number(&b.plan.space, &set, KNOB_CORES, NAN) == 4); /* the study's */
    unload(&b);
}

/* --- events ---------------------------------------------------------------------------------------------------------------- */

static void test_the_config_says_which_events_are_counted(void **state)
{
    static const struct {
        const char *events, *want; /* NULL: all */
    } cases[] = { { "{ }", NULL },
                  { "{ \"events\": [] }", "" },
                  { "{ \"events\": \"branches\" }", "branches" },
                  { "{ \"events\": [\"branches\", \"msr/tsc/\"] }", "msr/tsc/,branches" } };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench b;
        char text[sizeof config + 128];
        (void)snprintf(text, sizeof text, "{ \"monitoring\": %s, %s", cases[i].events, config + 1);
        load_config(&b, "pipetune", with_arguments, text);
        const char *got = b.plan.events;
        if (got && cases[i].want ? strcmp(got, cases[i].want) != 0 : got != cases[i].want)
            fail_msg("%s: %s", cases[i].events, got ? got : "all");
        unload(&b);
    }
}

/* --- slots ----------------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *policy;
    int batch; /* index: 64, 6 */
    int cores; /* index: 4, 2, 1 */
    int want;
} slots[] = {
    { "its own cores", "v1", 0, 0, 4 },
    { "its own cores, which are few", "v1", 0, 1, 2 },
    { "one core", "v2", 0, 2, 1 },
    { "what divides the batch, below its own", "v1", 1, 0, 2 },
    { "a policy that narrows: the most there are", "pipetune", 0, 2, 4 },
    { "… that divide the batch", "paper", 1, 2, 2 },
};

static void test_slots_are_what_a_launch_can_ever_use(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(slots); i++) {
        struct bench b;
        struct err e = { 0 };
        load(&b, slots[i].policy, with_arguments);
        struct point pt = { .x = { slots[i].batch, 0, 0, slots[i].cores, 0 } };
        struct setting set = plan_requested(&b.plan, &pt);
        set.v[0] = b.plan.space.knobs[0].values[slots[i].cores];
        int got = plan_slots(&b.plan, &pt, &set, &e);
        if (got != slots[i].want)
            fail_msg("%s: got %d, want %d", slots[i].name, got, slots[i].want);
        unload(&b);
    }
}

static void test_a_session_is_started_without_hyperparameters(void **state)
{
    struct bench b;
    struct err e = { 0 };
    const struct point pt = { .x = { 0, 0, 0 } };
    (void)state;
    load(&b, "pipetune", with_arguments);
    AUTO_STEPS struct app_steps steps = { 0 };
    struct plan_launch l = {
        .setting = plan_requested(&b.plan, &pt), .slots = 4, .launch = "pt-1", .session = "/run/s.sock"
    };
    if (plan_steps(&b.plan, &pt, &l, &steps, &e) < 0)
        fail_msg("%s", e.text);
    const struct strv argv = steps.argv[0];
    bool session = false;
    for (size_t i = 0; i < argv.n; i++) {
        session |= strcmp(argv.v[i], "spark.pipetune.session=/run/s.sock") == 0;
        assert_string_not_equal(argv.v[i], "-b");
        assert_string_not_equal(argv.v[i], "-e");
    }
    assert_true(session);
    unload(&b);
}

static bool has_word(const struct strv *v, const char *word)
{
    for (size_t i = 0; i < v->n; i++)
        if (strcmp(v->v[i], word) == 0)
            return true;
    return false;
}

static bool is_launched_with_closures(const struct bench *b, const char *session)
{
    struct err e = { 0 };
    const struct point pt = { .x = { 0, 0, 0 } };
    AUTO_STEPS struct app_steps steps = { 0 };
    struct plan_launch l = { .setting = plan_requested(&b->plan, &pt), .slots = 4, .epochs = 1, .session = session };
    if (plan_steps(&b->plan, &pt, &l, &steps, &e) < 0)
        fail_msg("%s", e.text);
    return has_word(&steps.argv[0], "spark.driver.extraClassPath=/h/closures.jar:/b/dllib.jar");
}

/* Of those very jars, and for many trials: else a plain submission is what the user would have made. */
static void test_closures_are_for_sessions_with_their_jars(void **state)
{
    struct bench b;
    (void)state;
    load(&b, "pipetune",
         "{ \"master\": \"local[*]\", \"conf\": \"/a/app.py\", \"jars\": [\"/b/dllib.jar\"], \"arguments\": { "
         "\"batch_size\":\n"
         "  [\"-b\", \"{}\"], \"learning_rate\": [\"-r\", \"{}\"], \"layers\": [\"-l\", \"{}\"], \"epochs\": [\"-e\", "
         "\"{}\"] } }\n");
    free(b.plan.env.closures);
    free(b.plan.env.closures_of);
    b.plan.env.closures = b.plan.env.closures_of = NULL;
    assert_false(is_launched_with_closures(&b, "/run/s.sock"));
    b.plan.env.closures = strdup("/h/closures.jar");
    b.plan.env.closures_of = strdup("/b/dllib.jar");
    assert_true(is_launched_with_closures(&b, "/run/s.sock"));
    assert_false(is_launched_with_closures(&b, NULL));
    free(b.plan.env.closures_of);
    b.plan.env.closures_of = strdup("/elsewhere/dllib.jar");
    assert_false(is_launched_with_closures(&b, "/run/s.sock"));
    unload(&b);
}

static void test_points_come_from_a_file(void **state)
{
    (void)state;
    static const char text[] = "{ \"bigdlConf\": \"bigdl.json\", \"study\": { \"name\": \"s\" },\n"
                               "  \"hyperParameters\": { \"points\": \"bigdl.csv\" } }\n";
    struct bench b = { 0 };
    struct err e = { 0 };
    char dir[] = "/tmp/pipetune-plan-XXXXXX";
    assert_non_null(mkdtemp(dir));
    b.dir = dir;
    write_file(&b, "bigdl.json", with_arguments);
    write_file(&b, "c.conf", text);
    AUTO_FREE char *path = io_join(dir, "c.conf"), *csv = io_join(dir, "bigdl.csv"), *app = io_join(dir, "bigdl.json");
    assert_int_equal(plan_load(&b.plan, path, NULL, choose_nothing, NULL, &e), -EINVAL);
    assert_non_null(strstr(e.text, "no file of points 'bigdl.csv'"));
    plan_done(&b.plan);
    write_file(&b, "bigdl.csv", "batch_size,learning_rate,layers\n64,0.1,3\n32,0.01,5\n");
    if (plan_load(&b.plan, path, NULL, choose_nothing, NULL, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(space_size(&b.plan.space), 2);
    AUTO_JSON json_t *whole = config_effective(&b.plan.cfg, &b.plan.doc, b.plan.app_doc.root);
    AUTO_FREE char *told = json_text(json_object_get(json_object_get(whole, "hyperParameters"), "points"));
    assert_string_equal(told, "[{\"batch_size\": 64, \"learning_rate\": 0.1, \"layers\": 3}, "
                              "{\"batch_size\": 32, \"learning_rate\": 0.01, \"layers\": 5}]");
    plan_done(&b.plan);
    assert_int_equal(unlink(path) | unlink(csv) | unlink(app) | rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points_come_from_a_file),
        cmocka_unit_test(test_jobs_of_the_same_speed_share_knowledge),
        cmocka_unit_test(test_a_class_is_of_one_application_and_its_fixed_arguments),
        cmocka_unit_test(test_a_class_is_the_same_wherever_pipetune_lies),
        cmocka_unit_test(test_the_shipped_model_knows_the_jobs_of_the_demo),
        cmocka_unit_test(test_a_joined_space_has_settings_of_its_points),
        cmocka_unit_test(test_the_config_says_which_events_are_counted),
        cmocka_unit_test(test_slots_are_what_a_launch_can_ever_use),
        cmocka_unit_test(test_a_session_is_started_without_hyperparameters),
        cmocka_unit_test(test_closures_are_for_sessions_with_their_jars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
