#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/config.h"
#include "tests/fault.h"

/* Presets, then the text; the caller ends both. */
static int read_text(struct config *c, struct json_doc *d, const char *text, struct err *e)
{
    struct opt_set set = config_opts(c);
    int rc = opt_presets(&set, e);
    if (rc == 0)
        rc = json_doc_parse(d, "f", text, strlen(text), e);
    return rc < 0 ? rc : config_read(c, d, e);
}

static const char whole[] =
    "{ \"bigdlConf\": \"b.json\", \"store\": \"s.db\", \"objective\": \"time\",\n"
    "  \"study\": { \"name\": \"x\", \"epochs\": 3, \"seed\": 9007199254740991, \"max_trials\": 7, \"parallel\": 2,\n"
    "             \"retries\": 0, \"metric\": \"loss\", \"direction\": \"min\" },\n"
    "  \"search\": { \"algorithm\": \"random\" },\n"
    "  \"tuning\": { \"policy\": \"v1\", \"window_seconds\": 2.5, \"probe_budget\": 0.2, \"tie_margin\": 0 },\n"
    "  \"monitoring\": { \"scope\": \"cgroup\", \"interval\": 0.5, \"events\": [\"cycles\"], \"meters\": \"rapl\" },\n"
    "  \"influxdb\": { \"url\": \"http://h\", \"database\": \"d\", \"bucket\": \"b\", \"credential_file\": \"c\" },\n"
    "  \"spark\": { \"home\": \"/s\", \"java\": \"/j\", \"grant_seconds\": 5, \"stall_seconds\": 6 },\n"
    "  \"nodes\": [\"a\", { \"host\": \"b\", \"user\": \"u\", \"port\": 22, \"key\": \"k\" }], \"powerMeter\": "
    "[\"pdu\"],\n"
    "  \"systemParameters\": { \"cores\": [2] }, \"hyperParameters\": { \"batch_size\": [32, 64] } }\n";

static void test_every_section(void **state)
{
    (void)state;
    struct config c = { 0 };
    AUTO_JSON_DOC struct json_doc d = { 0 };
    struct err e = { 0 };
    if (read_text(&c, &d, whole, &e) < 0)
        fail_msg("%s", e.text);
    assert_string_equal(c.older_application, "b.json");
    assert_true(c.epochs == 3 && c.seed == 9007199254740991 && c.max_trials == 7 && c.parallel == 2 && c.retries == 0);
    assert_true(c.window_seconds == 2.5 && c.probe_budget == 0.2 && c.tie_margin == 0 && c.interval_s == 0.5);
    assert_true(c.grant_seconds == 5 && c.stall_seconds == 6);
    assert_string_equal(c.algorithm, "random");
    assert_string_equal(c.credential_file, "c");
    assert_string_equal(c.java, "/j");
    config_done(&c);
    config_done(NULL);
}

static const struct {
    const char *name, *text, *option, *older_option, *want; /* options: of the command line */
} applications[] = {
    { "by its newer key", "{ \"application\": \"a\" }", NULL, NULL, "a" },
    { "by its older key", "{ \"bigdlConf\": \"b\" }", NULL, NULL, "b" },
    { "the command line wins", "{ \"bigdlConf\": \"b\" }", "x", NULL, "x" },
    { "by the older option, too", "{ \"application\": \"a\" }", NULL, "y", "y" },
    { "twice", "{ \"application\": \"a\", \"bigdlConf\": \"b\" }", NULL, NULL, NULL },
    { "not at all", "{ }", NULL, NULL, NULL },
};

static void test_the_application_file_has_an_older_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(applications); i++) {
        struct config c = { 0 };
        AUTO_JSON_DOC struct json_doc d = { 0 };
        struct err e = { 0 };
        const char *got = NULL;
        if (read_text(&c, &d, applications[i].text, &e) < 0)
            fail_msg("%s: %s", applications[i].name, e.text);
        if (applications[i].option)
            c.application = strdup(applications[i].option);
        if (applications[i].older_option)
            c.older_application = strdup(applications[i].older_option);
        int rc = config_application(&c, &d, &got, &e);
        const char *want = applications[i].want;
        if (rc != (want ? 0 : -EINVAL) || (want && strcmp(got, want) != 0))
            fail_msg("%s: got %d '%s'", applications[i].name, rc, got ? got : e.text);
        config_done(&c);
    }
}

static void test_the_three_sections_alone_have_good_defaults(void **state)
{
    (void)state;
    struct config c = { 0 };
    AUTO_JSON_DOC struct json_doc d = { 0 };
    struct err e = { 0 };
    assert_int_equal(
        read_text(&c, &d, "{ \"bigdlConf\": \"b\", \"systemParameters\": {}, \"hyperParameters\": {} }", &e), 0);
    assert_true(c.epochs == 5 && c.seed == 1 && c.max_trials == 0 && c.parallel == CONFIG_PARALLEL_AUTO &&
                c.retries == 2);
    assert_string_equal(c.policy, "pipetune");
    assert_null(c.name);
    assert_null(c.algorithm);
    assert_string_equal(c.metric, "accuracy");
    assert_true(config_maximise(&c));
    config_done(&c);
}

static const struct {
    const char *name, *text, *want;
} wrong[] = {
    { "a list", "[]", "'f' line 1: a config is a JSON object" },
    { "an unknown key", "{ \"bigdlconf\": \"x\" }", "'f' line 1: 'bigdlconf' is not known: did you mean 'bigdlConf'?" },
    { "an unknown section", "{\n \"studdy\": {} }", "line 2: 'studdy' is not known: did you mean 'study'?" },
    { "an unknown key of a section", "{ \"spark\": {\n\"hom\": \"x\" } }",
      "line 2: 'spark.hom' is not known: did you mean 'home'?" },
    { "a key of another section", "{ \"search\": { \"epochs\": 3 } }", "'search.epochs' is not known" },
    { "no such direction", "{ \"study\": { \"direction\": \"up\" } }",
      "'study.direction' must be one of auto, max, min, not 'up'" },
    { "no such scope", "{ \"monitoring\": { \"scope\": \"all\" } }", "'monitoring.scope' must be one of" },
    { "no trial at once", "{ \"study\": { \"parallel\": 0 } }",
      "'study.parallel' must be a whole number from 1 to 256 or 'auto', not '0'" },
    { "trials at once in other words", "{ \"study\": { \"parallel\": \"many\" } }",
      "'study.parallel' must be a whole number or \"auto\"" },
    { "a policy that is none", "{ \"tuning\": { \"policy\": \"v3\" } }",
      "'tuning.policy' must be one of v1, v2, paper, pipetune, not 'v3'" },
    { "seeds that no double counts", "{ \"study\": { \"seed\": 9007199254740993 } }",
      "'study.seed' must be a whole number" },
    { "events that are no names", "{ \"monitoring\": { \"events\": [1] } }",
      "'monitoring.events' must hold strings only" },
    { "a meter without a name", "{ \"powerMeter\": {} }",
      "'powerMeter' must be the name of a meter, an object with 'name', or an array of these" },
    { "nodes that are an object", "{ \"nodes\": {} }", "'nodes' must be an array" },
    { "a node that is a number", "{ \"nodes\": [\"a\",\n 1] }", "line 2: 'nodes.1' must be a host name or an object" },
    { "a node without a host", "{ \"nodes\": [{ \"user\": \"x\" }] }", "'nodes.0' must be a host name or an object" },
    { "a node with a port in words", "{ \"nodes\": [{ \"host\": \"h\", \"port\": \"22\" }] }",
      "'nodes.0' has a bad 'port'" },
    { "a node with something else", "{ \"nodes\": [{ \"host\": \"h\", \"pasword\": \"x\" }] }",
      "'nodes.0' has an unknown 'pasword': a node has host, user, key, port and address" },
    { "a node with a slip of the pen", "{ \"nodes\": [{ \"host\": \"h\", \"prot\": 22 }] }",
      "'nodes.0' has an unknown 'prot': did you mean 'port'?" },
};

static void test_what_is_wrong_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct config c = { 0 };
        AUTO_JSON_DOC struct json_doc d = { 0 };
        struct err e = { 0 };
        int rc = read_text(&c, &d, wrong[i].text, &e);
        if (rc != -EINVAL || !strstr(e.text, wrong[i].want))
            fail_msg("%s: got %d, '%s', want '%s'", wrong[i].name, rc, e.text, wrong[i].want);
        config_done(&c);
    }
}

static void test_directions(void **state)
{
    (void)state;
    static const struct {
        const char *metric, *direction;
        bool want;
    } cases[] = {
        { "accuracy", "auto", true },         { "Top1Accuracy", "auto", true }, { "loss", "auto", false },
        { "validation Loss", "auto", false }, { "MAE", "auto", false },         { "TreeNNerror", "auto", false },
        { "accuracy", "min", false },         { "loss", "max", true },          { "HitRatio@10", "auto", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char metric[32], direction[8];
        (void)snprintf(metric, sizeof metric, "%s", cases[i].metric);
        (void)snprintf(direction, sizeof direction, "%s", cases[i].direction);
        struct config c = { .metric = metric, .direction = direction };
        if (config_maximise(&c) != cases[i].want)
            fail_msg("%s, %s: want the other way", metric, direction);
    }
}

/* --- keys that contradict each other ---------------------------------------------------------------------------------- */

static const struct {
    const char *name, *text, *says; /* NULL: they do not */
} clashes[] = {
    { "nothing", "{}", NULL },
    { "a target of an accuracy", "{ \"study\": { \"target\": 0.9 } }", NULL },
    { "a target of a loss", "{ \"study\": { \"target\": 0.9, \"metric\": \"val_loss\" } }", NULL },
    { "a metric that may go either way, without a target", "{ \"study\": { \"metric\": \"perplexity\" } }", NULL },
    { "with a target", "{ \"study\": { \"metric\": \"perplexity\", \"target\": 20 } }",
      "study.target 20: whether 'perplexity' is to be large or small cannot be told by its name; say study.direction "
      "max or min" },
    { "with a target and a direction",
      "{ \"study\": { \"metric\": \"perplexity\", \"target\": 20, \"direction\": \"min\" } }", NULL },
    { "a rule from the last epoch on",
      "{ \"study\": { \"epochs\": 9 }, \"search\": { \"stop\": \"median\", \"min_epochs\": 9 } }", NULL },
    { "a rule behind the last epoch",
      "{ \"study\": { \"epochs\": 9 }, \"search\": { \"stop\": \"median\", \"min_epochs\": 10 } }",
      "search.min_epochs 10 is more than study.epochs 9: search.stop 'median' would end no trial; give less, or "
      "search.stop none" },
    { "no rule", "{ \"study\": { \"epochs\": 9 }, \"search\": { \"stop\": \"none\", \"min_epochs\": 10 } }", NULL },
};

static void test_keys_that_contradict_each_other_are_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(clashes); i++) {
        struct config c = { 0 };
        AUTO_JSON_DOC struct json_doc d = { 0 };
        struct err e = { 0 };
        if (read_text(&c, &d, clashes[i].text, &e) < 0)
            fail_msg("%s: %s", clashes[i].name, e.text);
        int rc = config_check(&c, c.stop ? c.stop : "none", &e);
        if (rc != (clashes[i].says ? -EINVAL : 0) || (clashes[i].says && strcmp(e.text, clashes[i].says) != 0))
            fail_msg("%s: got %d, '%s'", clashes[i].name, rc, e.text);
        config_done(&c);
    }
}

/* --- comparing with what was stored ----------------------------------------------------------------------------------- */

static json_t *effective(const char *text)
{
    struct config c = { 0 };
    AUTO_JSON_DOC struct json_doc d = { 0 };
    struct err e = { 0 };
    AUTO_JSON json_t *bigdl = json_pack("{s:s, s:{s:[f, i]}}", "conf", "x.py", "extras", "sizes", 1.0, 2);
    if (read_text(&c, &d, text, &e) < 0)
        fail_msg("%s", e.text);
    json_t *j = config_effective(&c, &d, bigdl);
    assert_non_null(j);
    config_done(&c);
    return j;
}

#define BASE                                                                                                           \
    "\"bigdlConf\": \"b\", \"hyperParameters\": { \"batch_size\": [32, 64], \"lr\": { \"min\": 0.1, \"max\": 1.0 } }"

static const struct {
    const char *name, *text, *want;
} changes[] = {
    { "the same", "{ " BASE " }", "" },
    { "the application file by its newer key",
      "{ \"application\": \"b\", \"hyperParameters\": { \"batch_size\": [32, 64], \"lr\": { \"min\": 0.1, \"max\": 1.0 "
      "} } }",
      "" },
    { "another application file",
      "{ \"application\": \"c\", \"hyperParameters\": { \"batch_size\": [32, 64], \"lr\": { \"min\": 0.1, \"max\": 1.0 "
      "} } }",
      "bigdlConf" },
    { "a default written out", "{ " BASE ", \"study\": { \"epochs\": 5 }, \"tuning\": { \"window_seconds\": 3 } }",
      "" },
    { "numbers written in another way",
      "{ \"bigdlConf\": \"b\", \"hyperParameters\": { \"batch_size\": [32.0, 6.4e1], "
      "\"lr\": { \"min\": 0.1, \"max\": 1 } } }",
      "" },
    { "what may change",
      "{ " BASE ", \"study\": { \"max_trials\": 3, \"parallel\": 2 }, \"monitoring\": { \"interval\": 5 },"
      " \"powerMeter\": \"rapl\", \"influxdb\": { \"url\": \"u\" }, \"store\": \"s\" }",
      "" },
    { "trials at once by the machine", "{ " BASE ", \"study\": { \"parallel\": \"auto\" } }", "" },
    { "another policy", "{ " BASE ", \"tuning\": { \"policy\": \"v2\" } }", "tuning.policy" },
    { "one key", "{ " BASE ", \"study\": { \"epochs\": 6 } }", "study.epochs" },
    { "two keys", "{ " BASE ", \"study\": { \"epochs\": 6, \"seed\": 2 } }", "study.epochs, study.seed" },
    { "a value of the space",
      "{ \"bigdlConf\": \"b\", \"hyperParameters\": { \"batch_size\": [32, 65], "
      "\"lr\": { \"min\": 0.1, \"max\": 1.0 } } }",
      "hyperParameters.batch_size" },
    { "the order of a list",
      "{ \"bigdlConf\": \"b\", \"hyperParameters\": { \"batch_size\": [64, 32], "
      "\"lr\": { \"min\": 0.1, \"max\": 1.0 } } }",
      "hyperParameters.batch_size" },
    { "a bound",
      "{ \"bigdlConf\": \"b\", \"hyperParameters\": { \"batch_size\": [32, 64], \"lr\": { \"min\": 0.1, \"max\": 2 } } "
      "}",
      "hyperParameters.lr.max" },
    { "the name that it was found by", "{ " BASE ", \"study\": { \"name\": \"it\" } }", "" },
    { "one hyperparameter less", "{ \"bigdlConf\": \"b\", \"hyperParameters\": { \"batch_size\": [32, 64] } }",
      "hyperParameters.lr" },
    { "system parameters that were not there", "{ " BASE ", \"systemParameters\": { \"cores\": [2] } }",
      "systemParameters" },
};

static void test_changes_are_named(void **state)
{
    (void)state;
    AUTO_JSON json_t *first = effective("{ " BASE " }");
    AUTO_BUF struct buf text = BUF_INIT;
    json_put(&text, first, JSON_STYLE_COMPACT); /* as the store keeps it */
    AUTO_JSON json_t *stored = json_loads(buf_text(&text), 0, NULL);
    assert_non_null(stored);
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        AUTO_JSON json_t *now = effective(changes[i].text);
        AUTO_BUF struct buf keys = BUF_INIT;
        size_t n = config_diff(stored, now, &keys);
        if (strcmp(buf_text(&keys), changes[i].want) != 0 || (n > 0) != (*changes[i].want != '\0'))
            fail_msg("%s: got %zu, '%s', want '%s'", changes[i].name, n, buf_text(&keys), changes[i].want);
    }
}

/* Numbers are stored with the fewest digits: what is no whole number in one text may be one in the other, however deep it stands. */
static void test_what_was_stored_is_the_same_config(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{ \"bigdlConf\": \"b\", \"hyperParameters\": { \"x\": [{ \"y\": [1.0, { \"z\": 2.0 }] }] } }",
        "{ \"bigdlConf\": \"b\", \"hyperParameters\": { \"x\": [-0.0, 1e300] } }",
        "{ \"bigdlConf\": \"b\", \"hyperParameters\": { \"x\": [true, null, \"1.0\", {}] } }",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO_JSON json_t *now = effective(texts[i]);
        AUTO_BUF struct buf text = BUF_INIT, keys = BUF_INIT;
        json_put(&text, now, JSON_STYLE_COMPACT);
        AUTO_JSON json_t *stored = json_loads(buf_text(&text), 0, NULL);
        if (config_diff(stored, now, &keys) != 0)
            fail_msg("%s: differs in %s", texts[i], buf_text(&keys));
    }
    AUTO_JSON json_t *a = effective("{ \"bigdlConf\": \"b\", \"hyperParameters\": { \"x\": [{ \"y\": 1 }] } }");
    AUTO_JSON json_t *b = effective("{ \"bigdlConf\": \"b\", \"hyperParameters\": { \"x\": [{ \"y\": 2 }] } }");
    AUTO_BUF struct buf keys = BUF_INIT;
    assert_int_equal(config_diff(a, b, &keys), 1);
}

/* Each key was new once: a study that was begun before goes on unless it is given another value than the default. */
static void test_a_key_that_is_new_is_none_that_differs(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "{ " BASE " }", "" },
        { "{ " BASE ", \"study\": { \"log_mb\": 64 } }", "study.log_mb" },
        { "{ " BASE ", \"tuning\": { \"tie_margin\": 0.02 } }", "tuning.tie_margin" },
        { "{ " BASE ", \"objective\": \"edp\" }", "objective" },
        { "{ " BASE ", \"search\": { \"algorithm\": \"random\" } }", "search.algorithm" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t r = 0; r < config_rows_n; r++) {
            const struct opt_row *row = &config_rows[r];
            AUTO_JSON json_t *stored = effective("{ " BASE " }");
            AUTO_JSON json_t *now = effective(cases[i].text);
            AUTO_BUF struct buf keys = BUF_INIT;
            if (strcmp(row->key, "bigdlConf") == 0 ||   /* has always been there */
                strcmp(row->key, "application") == 0 || /* is stored under that name */
                strcmp(row->key, "parameters") == 0)    /* is stored as what is in it */
                continue;
            json_t *section = *row->section ? json_object_get(stored, row->section) : stored;
            assert_int_equal(json_object_del(section, row->key), 0);
            (void)config_diff(stored, now, &keys);
            if (strcmp(buf_text(&keys), cases[i].want) != 0)
                fail_msg("without %s.%s: got '%s', want '%s'", row->section, row->key, buf_text(&keys), cases[i].want);
        }
}

/* Earlier versions had one policy and no "auto". */
static void test_a_study_of_an_earlier_version_can_be_compared(void **state)
{
    (void)state;
    AUTO_JSON json_t *stored =
        effective("{ " BASE ", \"study\": { \"parallel\": 1 }, \"tuning\": { \"policy\": \"v1\" } }");
    const json_t *study = json_object_get(stored, "study");
    assert_int_equal(json_integer_value(json_object_get(study, "parallel")), 1);
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "{ " BASE ", \"tuning\": { \"policy\": \"v1\" } }", "" }, /* trials at once are by the machine now */
        { "{ " BASE " }", "tuning.policy" },                        /* what is the default now was none then */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_JSON json_t *now = effective(cases[i].text);
        AUTO_BUF struct buf keys = BUF_INIT;
        (void)config_diff(stored, now, &keys);
        assert_string_equal(buf_text(&keys), cases[i].want);
    }
}

static void test_memory_that_runs_out(void **state)
{
    (void)state;
    bool struck = true;
    for (unsigned nth = 1; struck; nth++) {
        assert_true(nth < 512);
        struct config c = { 0 };
        AUTO_JSON_DOC struct json_doc d = { 0 };
        struct err e = { 0 };
        fault_arm(FAULT_ALLOC, nth);
        int rc = read_text(&c, &d, whole, &e);
        struck = fault_disarm();
        assert_true(rc == 0 || (struck && rc == -ENOMEM));
        config_done(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_section),
        cmocka_unit_test(test_the_application_file_has_an_older_name),
        cmocka_unit_test(test_the_three_sections_alone_have_good_defaults),
        cmocka_unit_test(test_what_is_wrong_is_named),
        cmocka_unit_test(test_directions),
        cmocka_unit_test(test_changes_are_named),
        cmocka_unit_test(test_what_was_stored_is_the_same_config),
        cmocka_unit_test(test_a_key_that_is_new_is_none_that_differs),
        cmocka_unit_test(test_a_study_of_an_earlier_version_can_be_compared),
        cmocka_unit_test(test_memory_that_runs_out),
        cmocka_unit_test(test_keys_that_contradict_each_other_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
