#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "live/node_words.h"
#include "tests/fault.h"

static const struct app_workers spark = { "org.apache.spark.", "ExecutorBackend", "--cores" };

static void expect(const char *name, struct buf *b, const char *want)
{
    if (b->failed || strcmp(buf_text(b), want) != 0)
        fail_msg("%s: got %s, want %s", name, buf_text(b), want);
    buf_clear(b);
}

static void test_requests_are_one_line_each(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    struct desired_want want = { .tag = "T-1_x", .cores = 3, .slots = 4, .cpus = (int[]){ 2, 0 }, .n_cpus = 2 };
    static const struct app_workers all = { NULL, NULL, NULL };
    node_words_hello(&b, 1, 1795015175852, &all);
    expect("hello", &b, "{\"id\":1,\"verb\":\"hello\",\"protocol\":1,\"clock_ms\":1795015175852}\n");
    node_words_hello(&b, 1, 5, &spark);
    expect("hello with workers", &b,
           "{\"id\":1,\"verb\":\"hello\",\"protocol\":1,\"clock_ms\":5,\"worker\":\"org.apache.spark.*"
           "ExecutorBackend\",\"worker_cores\":\"--cores\"}\n");
    node_words_simple(&b, 2, NODE_LEASE);
    expect("lease", &b, "{\"id\":2,\"verb\":\"lease\"}\n");
    node_words_simple(&b, UINT64_MAX, NODE_STOP);
    expect("stop", &b, "{\"id\":18446744073709551615,\"verb\":\"stop\"}\n");
    node_words_tagged(&b, 4, NODE_RELEASE, "T");
    expect("release", &b, "{\"id\":4,\"verb\":\"release\",\"tag\":\"T\"}\n");
    node_words_apply(&b, 5, &want, true);
    expect("apply", &b,
           "{\"id\":5,\"verb\":\"apply\",\"tag\":\"T-1_x\",\"cores\":3,\"slots\":4,\"local\":false,\"cpus\":[2,0]}\n");
    node_words_apply(&b, 6, &want, false);
    expect("apply elsewhere", &b,
           "{\"id\":6,\"verb\":\"apply\",\"tag\":\"T-1_x\",\"cores\":3,\"slots\":4,\"local\":false}\n");
    want.local = true;
    want.n_cpus = 0;
    want.frequency_khz = 2400000;
    want.power_cap_w = 65.5;
    node_words_apply(&b, 7, &want, true);
    expect("apply with limits", &b,
           "{\"id\":7,\"verb\":\"apply\",\"tag\":\"T-1_x\",\"cores\":3,\"slots\":4,\"local\":true,"
           "\"frequency_khz\":2400000,\"power_cap_w\":65.5}\n");
}

static void test_samples_are_asked_for_in_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct desired_sampling how;
        const char *want; /* behind the tag */
    } cases[] = {
        { "all events", { 1000, "auto", NULL, false, 0 }, "\"interval_ms\":1000,\"scope\":\"auto\"}" },
        { "some events",
          { 1000, "system", "msr/tsc/,instructions", true, 0 },
          "\"interval_ms\":1000,\"scope\":\"system\",\"events\":\"msr/tsc/,instructions\"}" },
        { "no event", { 100, "auto", "", false, 0 }, "\"interval_ms\":100,\"scope\":\"auto\",\"events\":\"\"}" },
        { "no more", { 0, "auto", "instructions", false, 0 }, "\"interval_ms\":0,\"scope\":\"auto\"}" },
    };
    AUTO_BUF struct buf b = BUF_INIT;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char want[256];
        (void)snprintf(want, sizeof want, "{\"id\":8,\"verb\":\"sample\",\"tag\":\"T\",%s\n", cases[i].want);
        node_words_sample(&b, 8, "T", &cases[i].how);
        expect(cases[i].name, &b, want);
    }
}

static void test_metering_is_asked_for_in_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct nodes_metering how;
        const char *want; /* behind the verb */
    } cases[] = {
        { "all of it",
          { "cpu,rapl", 1000, 40, 6.5, 300 },
          ",\"meters\":\"cpu,rapl\",\"interval_ms\":1000,\"idle_w\":40,\"cpu_w\":6.5,\"max_w\":300}" },
        { "no watts", { "cpu", 100, 0, 0, 0 }, ",\"meters\":\"cpu\",\"interval_ms\":100}" },
        { "watts that are not known", { "cpu", 100, NAN, NAN, NAN }, ",\"meters\":\"cpu\",\"interval_ms\":100}" },
        { "no more", { NULL, 0, 0, 0, 0 }, ",\"interval_ms\":0}" },
        { "no more, whatever the rest says", { "cpu", 0, 40, 6, 300 }, ",\"interval_ms\":0}" },
    };
    AUTO_BUF struct buf b = BUF_INIT;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char want[256];
        (void)snprintf(want, sizeof want, "{\"id\":8,\"verb\":\"meter\"%s\n", cases[i].want);
        node_words_meter(&b, 8, &cases[i].how);
        expect(cases[i].name, &b, want);
    }
}

static void test_lists_of_meters(void **state)
{
    (void)state;
    static const struct {
        const char *names, *one;
        bool good, has;
    } cases[] = {
        { "cpu", "cpu", true, true },           { "cpu,rapl", "rapl", true, true }, { "cpu,rapl", "rap", true, false },
        { "perf-power", "power", true, false }, { "cpu,", "cpu", false, true },     { "", "cpu", false, false },
        { ",cpu", "rapl", false, false },       { "cpu,,a", "rapl", false, false }, { "Cpu", "cpu", false, false },
        { "a b", "c", false, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool good = meter_are_names(cases[i].names);
        bool has = node_words_has_meter(cases[i].names, cases[i].one, strlen(cases[i].one));
        if (good != cases[i].good || has != cases[i].has)
            fail_msg("'%s': %d, has '%s': %d", cases[i].names, good, cases[i].one, has);
    }
    char names[METER_NAMES_MAX + 2];
    memset(names, 'x', sizeof names);
    names[METER_NAMES_MAX + 1] = '\0';
    assert_false(meter_are_names(names));
    names[METER_NAMES_MAX] = '\0';
    assert_true(meter_are_names(names));
}

static void test_the_longest_request_fits_a_line(void **state)
{
    (void)state;
    static int cpus[DESIRED_MAX_CPUS];
    for (int i = 0; i < DESIRED_MAX_CPUS; i++)
        cpus[i] = DESIRED_MAX_CPUS - 1 - i;
    char tag[NODE_TAG_MAX + 1];
    memset(tag, 'x', NODE_TAG_MAX);
    tag[NODE_TAG_MAX] = '\0';
    struct desired_want want = {
        .tag = tag, .cores = INT32_MAX, .slots = INT32_MAX, .cpus = cpus, .n_cpus = DESIRED_MAX_CPUS
    };
    want.frequency_khz = want.power_cap_w = 1.2345678901234567e-300;
    AUTO_BUF struct buf b = BUF_INIT;
    node_words_apply(&b, UINT64_MAX, &want, true);
    assert_true(b.len <= NODE_LINE_MAX);
    assert_ptr_equal(strchr(b.data, '\n'), b.data + b.len - 1);
}

static void test_tags(void **state)
{
    (void)state;
    static const struct {
        const char *tag;
        bool good;
    } cases[] = { { "a", true },    { "A-z_09", true }, { "", false },  { "a b", false }, { "a/b", false },
                  { "a\n", false }, { "\"", false },    { "é", false }, { "a.b", false } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (node_words_is_tag(cases[i].tag) != cases[i].good)
            fail_msg("'%s' is taken for %s", cases[i].tag, cases[i].good ? "no tag" : "a tag");
    char tag[NODE_TAG_MAX + 2];
    memset(tag, 'x', sizeof tag);
    tag[NODE_TAG_MAX + 1] = '\0';
    assert_false(node_words_is_tag(tag));
    tag[NODE_TAG_MAX] = '\0';
    assert_true(node_words_is_tag(tag));
}

static const struct {
    const char *name, *line;
    int rc; /* 0, or of node_words_read() */
    enum node_words_kind kind;
    uint64_t id;
    bool ok;
    const char *text; /* error of an answer, tag of an event */
} lines[] = {
    { "an answer", "{\"id\":7,\"ok\":true}", 0, NODE_ANSWER, 7, true, "" },
    { "an answer with spaces and more", " { \"ok\" : true , \"id\" : 0, \"x\":[{}] } ", 0, NODE_ANSWER, 0, true, "" },
    { "a refusal", "{\"id\":7,\"ok\":false,\"error\":\"no such CPU\"}", 0, NODE_ANSWER, 7, false, "no such CPU" },
    { "a refusal of many lines becomes one", "{\"id\":7,\"ok\":false,\"error\":\"a\\nb\\u001b[31m\\u009bé\"}", 0,
      NODE_ANSWER, 7, false, "a?b?[31m??é" },
    { "a refusal without a reason", "{\"id\":7,\"ok\":false}", 0, NODE_ANSWER, 7, false, "no reason was given" },
    { "a refusal with an empty reason", "{\"id\":7,\"ok\":false,\"error\":\"\"}", 0, NODE_ANSWER, 7, false,
      "no reason was given" },
    { "a refusal with a number as reason", "{\"id\":7,\"ok\":false,\"error\":5}", 0, NODE_ANSWER, 7, false,
      "no reason was given" },
    { "a change", "{\"event\":\"changed\",\"tag\":\"T\"}", 0, NODE_CHANGED, 0, false, "T" },
    { "a sample", "{\"event\":\"sample\",\"tag\":\"T\"}", 0, NODE_SAMPLED, 0, false, "T" },
    { "a reading", "{\"event\":\"meter\",\"meter\":\"cpu\"}", 0, NODE_METERED, 0, false, "" },
    { "an event of a newer helper", "{\"event\":\"news\",\"id\":3,\"ok\":true}", 0, NODE_UNKNOWN, 0, false, "" },
    { "a change without a tag", "{\"event\":\"changed\"}", -EPROTO, 0, 0, false, NULL },
    { "a change of no tag", "{\"event\":\"changed\",\"tag\":\"a b\"}", -EPROTO, 0, 0, false, NULL },
    { "an event that is a number", "{\"event\":1,\"id\":1,\"ok\":true}", -EPROTO, 0, 0, false, NULL },
    { "nothing", "", -EPROTO, 0, 0, false, NULL },
    { "a banner", "Welcome to w1", -EPROTO, 0, 0, false, NULL },
    { "a number", "7", -EPROTO, 0, 0, false, NULL },
    { "a list", "[{\"id\":7,\"ok\":true}]", -EPROTO, 0, 0, false, NULL },
    { "no id", "{\"ok\":true}", -EPROTO, 0, 0, false, NULL },
    { "a null id", "{\"id\":null,\"ok\":false,\"error\":\"x\"}", -EPROTO, 0, 0, false, NULL },
    { "a negative id", "{\"id\":-1,\"ok\":true}", -EPROTO, 0, 0, false, NULL },
    { "a fractional id", "{\"id\":1.0,\"ok\":true}", -EPROTO, 0, 0, false, NULL },
    { "an id beyond all bounds", "{\"id\":99999999999999999999,\"ok\":true}", -EPROTO, 0, 0, false, NULL },
    { "no ok", "{\"id\":1}", -EPROTO, 0, 0, false, NULL },
    { "an ok that is a number", "{\"id\":1,\"ok\":1}", -EPROTO, 0, 0, false, NULL },
    { "an id twice", "{\"id\":1,\"id\":1,\"ok\":true}", -EPROTO, 0, 0, false, NULL },
    { "half an answer", "{\"id\":1,\"ok\":tr", -EPROTO, 0, 0, false, NULL },
    { "two answers", "{\"id\":1,\"ok\":true}{\"id\":2,\"ok\":true}", -EPROTO, 0, 0, false, NULL },
};

static void test_lines_are_answers_or_events_or_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct node_words w;
        struct err e = { 0 };
        int rc = node_words_read(&w, lines[i].line, strlen(lines[i].line), &e);
        if (rc != lines[i].rc)
            fail_msg("%s: got %d (%s), want %d", lines[i].name, rc, e.text, lines[i].rc);
        if (rc < 0) {
            assert_int_equal(e.code, rc);
            assert_non_null(strstr(e.text, "is no answer of pipetune-node"));
            continue;
        }
        const char *text = w.kind == NODE_ANSWER ? w.error : w.tag;
        if (w.kind != lines[i].kind || (w.kind == NODE_ANSWER && (w.id != lines[i].id || w.ok != lines[i].ok)) ||
            strcmp(text, lines[i].text) != 0)
            fail_msg("%s: got kind %d, id %d, ok %d, '%s'", lines[i].name, w.kind, (int)w.id, w.ok, text);
        node_words_done(&w);
    }
}

#define HELLO_START "{\"id\":1,\"ok\":true,\"protocol\":1,\"version\":\"0.1.0\","

static const struct {
    const char *name, *line;
    const char *error; /* NULL: read */
    int protocol, n_cpus;
} hellos[] = {
    { "a hello", HELLO_START "\"clock_ms\":5,\"uid\":0,\"host\":\"w1\",\"cpus\":[2,0,1],\"frequency_khz\":null}", NULL,
      1, 3 },
    { "another protocol, whatever else it says", "{\"id\":1,\"ok\":true,\"protocol\":2,\"version\":\"3\"}", NULL, 2,
      0 },
    { "another protocol that refuses ours", "{\"id\":1,\"ok\":false,\"protocol\":0}", NULL, 0, 0 },
    { "a refusal", "{\"id\":1,\"ok\":false,\"error\":\"full\"}", "it refuses: full", 0, 0 },
    { "no protocol", "{\"id\":1,\"ok\":true,\"clock_ms\":5,\"cpus\":[0]}", "no 'protocol'", 0, 0 },
    { "a protocol that is a text", "{\"id\":1,\"ok\":true,\"protocol\":\"1\",\"clock_ms\":5,\"cpus\":[0]}",
      "no 'protocol'", 0, 0 },
    { "no clock", HELLO_START "\"cpus\":[0]}", "no 'clock_ms'", 0, 0 },
    { "no CPUs", HELLO_START "\"clock_ms\":5}", "no list of 'cpus'", 0, 0 },
    { "not one CPU", HELLO_START "\"clock_ms\":5,\"cpus\":[]}", "no list of 'cpus'", 0, 0 },
    { "a CPU twice", HELLO_START "\"clock_ms\":5,\"cpus\":[1,1]}", "no list of 'cpus'", 0, 0 },
    { "a negative CPU", HELLO_START "\"clock_ms\":5,\"cpus\":[-1]}", "no list of 'cpus'", 0, 0 },
    { "a CPU beyond the last", HELLO_START "\"clock_ms\":5,\"cpus\":[4096]}", "no list of 'cpus'", 0, 0 },
    { "the last CPU", HELLO_START "\"clock_ms\":5,\"cpus\":[4095]}", NULL, 1, 1 },
    { "features", HELLO_START "\"clock_ms\":5,\"cpus\":[0],\"features\":\"new,proc/rss\"}", NULL, 1, 1 },
    { "no name of a feature", HELLO_START "\"clock_ms\":5,\"cpus\":[0],\"features\":\"\"}", "without a name", 0, 0 },
    { "a feature twice", HELLO_START "\"clock_ms\":5,\"cpus\":[0],\"features\":\"proc/rss,proc/rss\"}",
      "'proc/rss' twice", 0, 0 },
    { "a CPU with a fraction", HELLO_START "\"clock_ms\":5,\"cpus\":[0.5]}", "no list of 'cpus'", 0, 0 },
};

static void test_hellos(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hellos); i++) {
        struct node_words w;
        struct err e = { 0 };
        struct node_hello h = { 0 };
        assert_int_equal(node_words_read(&w, hellos[i].line, strlen(hellos[i].line), &e), 0);
        int rc = node_hello_read(&h, &w, &e);
        if (hellos[i].error ? rc != -EPROTO || !strstr(e.text, hellos[i].error) : rc != 0)
            fail_msg("%s: got %d (%s)", hellos[i].name, rc, e.text);
        if (rc == 0 && (h.protocol != hellos[i].protocol || h.n_cpus != hellos[i].n_cpus))
            fail_msg("%s: got protocol %d, %d CPUs", hellos[i].name, h.protocol, h.n_cpus);
        if (i == 0) {
            assert_string_equal(h.version, "0.1.0");
            assert_string_equal(h.host, "w1");
            assert_string_equal(h.sees, "");
            assert_int_equal(h.clock_ms, 5);
            assert_int_equal(h.cpus[0], 2);
        }
        node_hello_done(&h);
        node_words_done(&w);
    }
}

static void test_what_was_found(void **state)
{
    (void)state;
    static const struct {
        const char *name, *line;
        bool good;
        const char *shared;
    } cases[] = {
        { "all of it",
          "{\"id\":1,\"ok\":true,\"processes\":2,\"threads\":363,\"slots\":2,\"cpus\":[0,3],\"frequency_khz\":1e6}",
          true, "" },
        { "an event has it too",
          "{\"event\":\"changed\",\"tag\":\"T\",\"processes\":2,\"threads\":363,\"slots\":2,\"cpus\":[0,3],"
          "\"frequency_khz\":1000000}",
          true, "" },
        { "CPUs that others use, too",
          "{\"id\":1,\"ok\":true,\"processes\":2,\"threads\":363,\"slots\":2,\"cpus\":[0,3],\"frequency_khz\":1e6,"
          "\"shared\":\"process 7\\n of user 8\"}",
          true, "process 7? of user 8" },
        { "shared with a number",
          "{\"id\":1,\"ok\":true,\"processes\":2,\"threads\":363,\"slots\":2,\"cpus\":[0,3],\"frequency_khz\":1e6,"
          "\"shared\":7}",
          true, "" },
        { "no processes", "{\"id\":1,\"ok\":true,\"threads\":363,\"slots\":2,\"cpus\":[0,3]}", false, "" },
        { "fewer than none", "{\"id\":1,\"ok\":true,\"processes\":-2,\"threads\":363,\"slots\":2,\"cpus\":[0,3]}",
          false, "" },
        { "more than can be",
          "{\"id\":1,\"ok\":true,\"processes\":2,\"threads\":363,\"slots\":2147483648,\"cpus\":[0,3]}", false, "" },
        { "no CPUs", "{\"id\":1,\"ok\":true,\"processes\":2,\"threads\":363,\"slots\":2}", false, "" },
        { "CPUs by name", "{\"id\":1,\"ok\":true,\"processes\":2,\"threads\":363,\"slots\":2,\"cpus\":[\"0\"]}", false,
          "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct node_words w;
        struct err e = { 0 };
        struct desired_seen f = { 0 };
        assert_int_equal(node_words_read(&w, cases[i].line, strlen(cases[i].line), &e), 0);
        int rc = node_seen_read(&f, &w, &e);
        if (rc != (cases[i].good ? 0 : -EPROTO))
            fail_msg("%s: got %d (%s)", cases[i].name, rc, e.text);
        if (rc == 0 && (f.processes != 2 || f.threads != 363 || f.slots != 2 || f.cpus != 2 || f.frequency_khz != 1e6 ||
                        f.power_cap_w != 0 || strcmp(f.shared, cases[i].shared) != 0))
            fail_msg("%s: read wrongly", cases[i].name);
        node_words_done(&w);
    }
}

#define BOOT "01234567-89ab-cdef-0123-456789abcdef"

static void test_what_is_told_of_a_launch(void **state)
{
    (void)state;
    static const struct {
        const char *name, *line;
        int state; /* -1: refused */
    } cases[] = {
        { "ready", "\"state\":\"ready\",\"boot_id\":\"" BOOT "\",\"pid\":77,\"start_ticks\":5,\"heard\":9",
          NODE_LAUNCH_READY },
        { "running", "\"state\":\"running\",\"boot_id\":\"" BOOT "\",\"pid\":77,\"start_ticks\":5,\"heard\":9",
          NODE_LAUNCH_RUNNING },
        { "ended", "\"state\":\"ended\",\"heard\":9,\"exit\":\"attempt=1\"", NODE_LAUNCH_ENDED },
        { "gone, and no more is said", "\"state\":\"gone\"", NODE_LAUNCH_GONE },
        { "no state", "\"heard\":9", -1 },
        { "another state", "\"state\":\"dancing\"", -1 },
        { "ready without a process", "\"state\":\"ready\"", -1 },
        { "a boot that is none", "\"state\":\"ready\",\"boot_id\":\"x\",\"pid\":77,\"start_ticks\":5", -1 },
        { "process 1", "\"state\":\"running\",\"boot_id\":\"" BOOT "\",\"pid\":1,\"start_ticks\":5", -1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char line[256];
        struct node_words w;
        struct err e = { 0 };
        struct node_launch_told t;
        (void)snprintf(line, sizeof line, "{\"event\":\"launch\",\"tag\":\"T\",%s}", cases[i].line);
        assert_int_equal(node_words_read(&w, line, strlen(line), &e), 0);
        assert_int_equal(w.kind, NODE_LAUNCHED);
        int rc = node_launch_read(&t, &w, &e);
        if (rc != (cases[i].state < 0 ? -EPROTO : 0) || (rc == 0 && (int)t.state != cases[i].state))
            fail_msg("%s: got %d (%s)", cases[i].name, rc, e.text);
        if (rc == 0 && t.pid && (t.pid != 77 || t.start_ticks != 5 || t.heard != 9 || strcmp(t.boot_id, BOOT) != 0))
            fail_msg("%s: read wrongly", cases[i].name);
        node_words_done(&w);
    }
}

static void test_bytes_of_a_launch(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int rc;
    } cases[] = {
        { "\"at\":12,\"log\":1,\"data\":\"aGVhcmQK\"", 0 },
        { "\"at\":-1,\"data\":\"aGVhcmQK\"", -EPROTO },
        { "\"at\":12", -EPROTO },
        { "\"at\":12,\"data\":\"aGVhcmQ\"", -EPROTO },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        char line[256];
        struct node_words w;
        struct err e = { 0 };
        uint64_t at = 0;
        (void)snprintf(line, sizeof line, "{\"event\":\"bytes\",\"tag\":\"T\",%s}", cases[i].line);
        assert_int_equal(node_words_read(&w, line, strlen(line), &e), 0);
        assert_int_equal(node_bytes_read(&at, &b, &w, &e), cases[i].rc);
        if (cases[i].rc == 0) {
            assert_int_equal(at, 12);
            assert_string_equal(buf_text(&b), "heard\n");
        }
        node_words_done(&w);
    }
}

static void test_words_of_a_session(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int rc;
        const char *words, *why;
    } cases[] = {
        { "\"data\":\"aGVhcmQK\"", 0, "heard\n", "" },
        { "\"data\":\"\",\"why\":\"it\\u001b[2J closed\"", 0, "", "it?[2J closed" },
        { "\"why\":\"closed\"", -EPROTO, "", "closed" },
        { "\"data\":\"aGVhcmQ\"", -EPROTO, "", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        char line[256], why[128];
        struct node_words w;
        struct err e = { 0 };
        (void)snprintf(line, sizeof line, "{\"event\":\"words\",\"tag\":\"T\",%s}", cases[i].line);
        assert_int_equal(node_words_read(&w, line, strlen(line), &e), 0);
        assert_int_equal(w.kind, NODE_SAID);
        assert_int_equal(node_said_read(&b, why, &w, &e), cases[i].rc);
        assert_string_equal(buf_text(&b), cases[i].words);
        assert_string_equal(why, cases[i].why);
        node_words_done(&w);
    }
}

static void test_launches_are_asked_for_in_one_line_each(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_STRV struct strv steps = STRV_INIT;
    strv_add(&steps, "1");
    strv_add(&steps, "/bin/true");
    struct node_launch l = { .tag = "T", .attempt = 3, .log_cap = 9, .cpus = "0,2", .steps = &steps };
    node_words_launch(&b, 1, &l);
    expect("launch", &b,
           "{\"id\":1,\"verb\":\"launch\",\"tag\":\"T\",\"attempt\":3,\"log_cap\":9,\"cpus\":[0,2],"
           "\"steps\":\"MQAvYmluL3RydWUA\"}\n");
    node_words_tagged(&b, 2, NODE_GO, "T");
    expect("go", &b, "{\"id\":2,\"verb\":\"go\",\"tag\":\"T\"}\n");
    node_words_tagged(&b, 3, NODE_ADOPT, "T");
    expect("adopt", &b, "{\"id\":3,\"verb\":\"adopt\",\"tag\":\"T\"}\n");
    node_words_tail(&b, 4, "T", 5, 6, 7);
    expect("tail", &b, "{\"id\":4,\"verb\":\"tail\",\"tag\":\"T\",\"from\":5,\"credit\":6,\"accounted\":7}\n");
    node_words_signal(&b, 5, "T", true);
    expect("signal", &b, "{\"id\":5,\"verb\":\"signal\",\"tag\":\"T\",\"hard\":true}\n");
    node_words_tagged(&b, 6, NODE_FORGET, "T");
    expect("forget", &b, "{\"id\":6,\"verb\":\"forget\",\"tag\":\"T\"}\n");
    node_words_tagged(&b, 7, NODE_SAY_STOP, "T");
    expect("say-stop", &b, "{\"id\":7,\"verb\":\"say-stop\",\"tag\":\"T\"}\n");
    node_words_have(&b, 8, "ab", 3);
    expect("have", &b, "{\"id\":8,\"verb\":\"have\",\"hash\":\"ab\",\"size\":3}\n");
    node_words_put(&b, 9, "ab", 3, 1, "bc", 2);
    expect("put", &b, "{\"id\":9,\"verb\":\"put\",\"hash\":\"ab\",\"size\":3,\"from\":1,\"data\":\"YmM=\"}\n");
    node_words_list(&b, 10, "T", "a\"b");
    expect("list", &b, "{\"id\":10,\"verb\":\"list\",\"tag\":\"T\",\"name\":\"a\\\"b\"}\n");
    node_words_read_file(&b, 11, "T", "c", 4, 5);
    expect("read", &b, "{\"id\":11,\"verb\":\"read\",\"tag\":\"T\",\"name\":\"c\",\"from\":4,\"size\":5}\n");
    node_words_run(&b, 12, "T-t1-1", "T", NULL);
    expect("run", &b, "{\"id\":12,\"verb\":\"run\",\"tag\":\"T-t1-1\",\"session\":\"T\"}\n");
    node_words_run(&b, 13, "T-t1-1", "T", "ab");
    expect("run with files", &b,
           "{\"id\":13,\"verb\":\"run\",\"tag\":\"T-t1-1\",\"session\":\"T\",\"files\":\"ab\"}\n");
    node_words_talk(&b, 14, "T", 9);
    expect("talk", &b, "{\"id\":14,\"verb\":\"talk\",\"tag\":\"T\",\"credit\":9}\n");
    node_words_say(&b, 15, "T", "bc", 2);
    expect("say", &b, "{\"id\":15,\"verb\":\"say\",\"tag\":\"T\",\"data\":\"YmM=\"}\n");
    struct node_launch serves = l;
    serves.mark = "M \"m\"";
    node_words_launch(&b, 1, &serves);
    expect("launch of a session", &b,
           "{\"id\":1,\"verb\":\"launch\",\"tag\":\"T\",\"attempt\":3,\"log_cap\":9,\"cpus\":[0,2],"
           "\"steps\":\"MQAvYmluL3RydWUA\",\"mark\":\"M \\\"m\\\"\"}\n");
    struct node_launch all = l;
    all.memory = 7, all.answer = "{}", all.files = "ab";
    node_words_launch(&b, 1, &all);
    expect("launch with files", &b,
           "{\"id\":1,\"verb\":\"launch\",\"tag\":\"T\",\"attempt\":3,\"log_cap\":9,\"cpus\":[0,2],"
           "\"steps\":\"MQAvYmluL3RydWUA\",\"memory\":7,\"answer\":\"{}\",\"files\":\"ab\"}\n");
}

/* It becomes part of command lines there. */
static void test_a_root_is_a_plain_path_or_none(void **state)
{
    (void)state;
    static const struct {
        const char *root, *want;
    } cases[] = { { "\"/home/u/pipetune\"", "/home/u/pipetune" },
                  { "\"relative\"", "" },
                  { "\"/\"", "" },
                  { "\"/a b\"", "" },
                  { "\"/a{lr}\"", "" },
                  { "5", "" } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char line[256];
        struct node_words w;
        struct node_hello h;
        struct err e = { 0 };
        int n =
            snprintf(line, sizeof line,
                     "{\"id\":1,\"ok\":true,\"protocol\":1,\"clock_ms\":1,\"cpus\":[0],\"memory_gb\":-2,\"root\":%s}",
                     cases[i].root);
        assert_int_equal(node_words_read(&w, line, (size_t)n, &e), 0);
        assert_int_equal(node_hello_read(&h, &w, &e), 0);
        if (strcmp(h.root, cases[i].want) != 0 || h.memory_gb != 0)
            fail_msg("%s: got '%s'", cases[i].root, h.root);
        node_hello_done(&h);
        node_words_done(&w);
    }
}

static void test_a_sample_has_a_time_a_length_a_scope_and_values(void **state)
{
    (void)state;
    static const struct {
        const char *name, *line;
        int rc;
    } cases[] = {
        { "all of it", "\"scope\":\"system\",\"t_ms\":5.5,\"dt_ms\":1000,\"missed\":1,\"cells\":\"1 u\"", 0 },
        { "by name", "\"scope\":\"system\",\"t_ms\":5.5,\"dt_ms\":1000,\"missed\":1,\"values\":\"/wMAAAAAAAAA8D8=\"",
          0 },
        { "values that are cut off", "\"scope\":\"system\",\"t_ms\":5.5,\"dt_ms\":1000,\"values\":\"AAA=\"", -EINVAL },
        { "values in no base", "\"scope\":\"system\",\"t_ms\":5.5,\"dt_ms\":1000,\"values\":\"AA\"", -EINVAL },
        { "more values than names", "\"scope\":\"system\",\"t_ms\":5.5,\"dt_ms\":1000,\"values\":\"/////w==\"",
          -EINVAL },
        { "cells that are none", "\"scope\":\"system\",\"t_ms\":5.5,\"dt_ms\":1000,\"cells\":\"1 \\u0001x\"", -EINVAL },
        { "more than is known",
          "\"scope\":\"system\",\"t_ms\":5.5,\"dt_ms\":1000,\"missed\":1,\"cells\":\"1 u\",\"x\":1", 0 },
        { "no scope", "\"t_ms\":5.5,\"dt_ms\":1000,\"cells\":\"1 u\"", -EPROTO },
        { "no values", "\"scope\":\"system\",\"t_ms\":5.5,\"dt_ms\":1000", -EPROTO },
        { "cells as a list", "\"scope\":\"system\",\"t_ms\":5.5,\"dt_ms\":1000,\"cells\":[1]", -EPROTO },
        { "no time", "\"scope\":\"system\",\"dt_ms\":1000,\"cells\":\"1 u\"", -EPROTO },
        { "no length", "\"scope\":\"system\",\"t_ms\":5.5,\"cells\":\"1 u\"", -EPROTO },
        { "a length of nothing", "\"scope\":\"system\",\"t_ms\":5.5,\"dt_ms\":0,\"cells\":\"1 u\"", -EPROTO },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char line[512];
        (void)snprintf(line, sizeof line, "{\"event\":\"sample\",\"tag\":\"T\",%s}", cases[i].line);
        struct node_words w;
        struct err e = { 0 };
        struct nodes_sample s = { 0 };
        struct feature_list list;
        assert_int_equal(feature_list_read(&list, "new,node-store-misses,node-stores", &e), 0);
        assert_int_equal(node_words_read(&w, line, strlen(line), &e), 0);
        int rc = node_sample_read(&s, &list, &w, &e);
        if (rc != cases[i].rc)
            fail_msg("%s: got %d (%s)", cases[i].name, rc, e.text);
        if (rc == 0 && (s.t_ms != 5.5 || s.dt_ms != 1000 || s.missed != 1 || s.v[0].value != 1 ||
                        s.v[1].state != READING_UNSUPPORTED || s.v[2].state != READING_ABSENT))
            fail_msg("%s: read wrongly", cases[i].name);
        node_words_done(&w);
    }
}

#define TIMES "\"from_ms\":1000.25,\"to_ms\":2000.5"

static const struct {
    const char *name, *line;
    const char *error; /* NULL: read */
    struct meter_reading want;
} readings[] = {
    { "all of it",
      "\"meter\":\"rapl\",\"state\":\"ok\"," TIMES ",\"value\":12.5,\"error\":0.0001,\"x\":[]",
      NULL,
      { .state = METER_OK, .from_ms = 1000.25, .to_ms = 2000.5, .value = 12.5, .error = 0.0001 } },
    { "nothing, which is something",
      "\"meter\":\"rapl\",\"state\":\"ok\"," TIMES ",\"value\":0",
      NULL,
      { .state = METER_OK, .from_ms = 1000.25, .to_ms = 2000.5, .value = 0, .error = NAN } },
    { "the first",
      "\"meter\":\"rapl\",\"state\":\"first\"," TIMES,
      NULL,
      { .state = METER_FIRST, .from_ms = 1000.25, .to_ms = 2000.5, .value = NAN, .error = NAN } },
    { "one that was discarded",
      "\"meter\":\"rapl\",\"state\":\"discarded\"," TIMES ",\"why\":\"9 kW\\n\"",
      NULL,
      { .state = METER_DISCARDED, .from_ms = 1000.25, .to_ms = 2000.5, .value = NAN, .error = NAN, .why = "9 kW?" } },
    { "one that failed, after the clock was set back",
      "\"meter\":\"rapl\",\"state\":\"failed\",\"from_ms\":9,\"to_ms\":5,\"why\":\"gone\"",
      NULL,
      { .state = METER_FAILED, .from_ms = 9, .to_ms = 5, .value = NAN, .error = NAN, .why = "gone" } },
    { "no meter", "\"state\":\"first\"," TIMES, "no 'meter' or no 'state'", { .why = "" } },
    { "two meters", "\"meter\":\"cpu,rapl\",\"state\":\"first\"," TIMES, "no 'meter'", { .why = "" } },
    { "a meter that is a number", "\"meter\":5,\"state\":\"first\"," TIMES, "no 'meter'", { .why = "" } },
    { "a meter that is a path", "\"meter\":\"/dev\",\"state\":\"first\"," TIMES, "no 'meter'", { .why = "" } },
    { "no state", "\"meter\":\"rapl\"," TIMES, "no 'state'", { .why = "" } },
    { "another state", "\"meter\":\"rapl\",\"state\":\"tired\"," TIMES, "no 'state'", { .why = "" } },
    { "no beginning", "\"meter\":\"rapl\",\"state\":\"first\",\"to_ms\":5", "no 'from_ms'", { .why = "" } },
    { "no end", "\"meter\":\"rapl\",\"state\":\"first\",\"from_ms\":5", "no 'to_ms'", { .why = "" } },
    { "a time before 1970",
      "\"meter\":\"rapl\",\"state\":\"first\",\"from_ms\":-1,\"to_ms\":5",
      "'from_ms'",
      { .why = "" } },
    { "a time in words",
      "\"meter\":\"rapl\",\"state\":\"first\",\"from_ms\":\"1\",\"to_ms\":5",
      "'from_ms'",
      { .why = "" } },
    { "no value, and all is well", "\"meter\":\"rapl\",\"state\":\"ok\"," TIMES, "'value'", { .why = "" } },
    { "a value of what failed",
      "\"meter\":\"rapl\",\"state\":\"failed\"," TIMES ",\"value\":1",
      "'value'",
      { .why = "" } },
    { "a value below nothing", "\"meter\":\"rapl\",\"state\":\"ok\"," TIMES ",\"value\":-1", "'value'", { .why = "" } },
    { "a value that is null",
      "\"meter\":\"rapl\",\"state\":\"ok\"," TIMES ",\"value\":null",
      "'value'",
      { .why = "" } },
    { "an error below nothing",
      "\"meter\":\"rapl\",\"state\":\"ok\"," TIMES ",\"value\":1,\"error\":-1",
      "'value'",
      { .why = "" } },
};

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void test_a_reading_has_a_meter_a_state_times_and_a_value_if_it_is_well(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(readings); i++) {
        char line[512];
        (void)snprintf(line, sizeof line, "{\"event\":\"meter\",%s}", readings[i].line);
        struct node_words w;
        struct err e = { 0 };
        struct nodes_reading got = { 0 };
        const struct meter_reading *r = &got.r, *want = &readings[i].want;
        assert_int_equal(node_words_read(&w, line, strlen(line), &e), 0);
        int rc = node_reading_read(&got, &w, &e);
        if (readings[i].error ? rc != -EPROTO || !strstr(e.text, readings[i].error) : rc != 0)
            fail_msg("%s: got %d (%s)", readings[i].name, rc, e.text);
        if (rc == 0 && (strcmp(got.meter, "rapl") != 0 || r->state != want->state || r->from_ms != want->from_ms ||
                        r->to_ms != want->to_ms || !is_same(r->value, want->value) || !is_same(r->error, want->error) ||
                        strcmp(r->why, want->why) != 0 || r->node[0]))
            fail_msg("%s: read wrongly: %s, state %d, %g to %g, %g J, %g off, '%s'", readings[i].name, got.meter,
                     r->state, r->from_ms, r->to_ms, r->value, r->error, r->why);
        node_words_done(&w);
    }
}

static void test_refused_meters_are_told_one_by_one(void **state)
{
    (void)state;
    static const struct {
        const char *name, *refused;
        const char *want; /* "METER=why|" of each */
    } cases[] = {
        { "none", "\"\"", "" },
        { "one", "\"rapl: no zone: none\"", "rapl=no zone: none|" },
        { "two", "\"rapl: no zone; perf-power: no PMU, sorry\"", "rapl=no zone|perf-power=no PMU, sorry|" },
        { "a reason in colour", "\"rapl: \\u001b[31m\"", "rapl=?[31m|" },
        { "no reason", "\"rapl: ; cpu: x\"", "rapl=|cpu=x|" },
        { "no name", "\": x; cpu: y\"", "" },
        { "no colon", "\"rapl\"", "" },
        { "half of it has a form", "\"rapl: x;cpu\"", "rapl=x|" },
        { "it ends early", "\"rapl: x; \"", "rapl=x|" },
        { "a list", "[\"rapl: x\"]", "" },
        { "null", "null", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char line[512];
        struct node_words w;
        struct node_refused r;
        AUTO_BUF struct buf got = BUF_INIT;
        (void)snprintf(line, sizeof line, "{\"id\":8,\"ok\":true,\"refused\":%s}", cases[i].refused);
        assert_int_equal(node_words_read(&w, line, strlen(line), NULL), 0);
        for (size_t at = 0; node_refused_next(&r, &w, &at);)
            buf_printf(&got, "%s=%s|", r.meter, r.why);
        expect(cases[i].name, &got, cases[i].want);
        node_words_done(&w);
    }
}

static void test_foreign_text_becomes_one_plain_line(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        size_t len;
        size_t size;
        const char *want;
    } cases[] = {
        { "abc", 3, 8, "abc" },
        { "a\r\n\tb\0c", 7, 16, "a???b?c" },
        { "\xff\xfe", 2, 8, "??" },
        { "é", 2, 8, "é" },
        { "é", 1, 8, "?" }, /* cut in the middle */
        { "abcdefgh", 8, 9, "abcdefgh" },
        { "abcdefghi", 9, 9, "abcde…" },
        { "ééééé", 10, 9, "éé…" },
        { "", 0, 4, "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char out[32];
        memset(out, 'X', sizeof out);
        (void)node_words_plain(out, cases[i].size, cases[i].in, cases[i].len);
        if (strcmp(out, cases[i].want) != 0 || out[cases[i].size] != 'X')
            fail_msg("row %zu: got '%s', want '%s'", i, out, cases[i].want);
    }
}

static void test_memory_that_runs_out_is_said(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct node_words w;
    assert_int_equal(node_words_read(&w, hellos[0].line, strlen(hellos[0].line), &e), 0);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 16);
        struct node_hello h = { 0 };
        fault_arm(FAULT_ALLOC, nth);
        rc = node_hello_read(&h, &w, &e);
        fault_disarm();
        assert_true(rc == 0 || (rc == -ENOMEM && !h.cpus));
        node_hello_done(&h);
    }
    node_words_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_are_one_line_each),
        cmocka_unit_test(test_samples_are_asked_for_in_one_line),
        cmocka_unit_test(test_metering_is_asked_for_in_one_line),
        cmocka_unit_test(test_lists_of_meters),
        cmocka_unit_test(test_the_longest_request_fits_a_line),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_lines_are_answers_or_events_or_nothing),
        cmocka_unit_test(test_hellos),
        cmocka_unit_test(test_what_was_found),
        cmocka_unit_test(test_what_is_told_of_a_launch),
        cmocka_unit_test(test_bytes_of_a_launch),
        cmocka_unit_test(test_words_of_a_session),
        cmocka_unit_test(test_launches_are_asked_for_in_one_line_each),
        cmocka_unit_test(test_a_root_is_a_plain_path_or_none),
        cmocka_unit_test(test_a_sample_has_a_time_a_length_a_scope_and_values),
        cmocka_unit_test(test_a_reading_has_a_meter_a_state_times_and_a_value_if_it_is_well),
        cmocka_unit_test(test_refused_meters_are_told_one_by_one),
        cmocka_unit_test(test_foreign_text_becomes_one_plain_line),
        cmocka_unit_test(test_memory_that_runs_out_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
