/* Wrong input and a wanting machine: one clear line, the exit code of DESIGN.md section 3, nothing created and nothing lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "base/sha256.h"
#include "base/strv.h"
#include "tests/integration/harness.h"

#define CONFIG(more)                                                                                                   \
    "{ \"bigdlConf\": \"app.json\",\n  \"study\": { \"name\": \"s\", \"epochs\": 1 },\n" more WORLD_HYPER " }\n"

/* --- what must not change: every path of the world with the sum of its content ----------------------------------------- */

static struct buf *listing;

static int list_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    char hex[SHA256_HEX_MAX] = "";
    (void)at;
    size_t len = strlen(path);
    const char *tail = path + (len > 4 ? len - 4 : 0);
    if (strcmp(tail, "-shm") == 0 || (strcmp(tail, "-wal") == 0 && st->st_size == 0))
        return 0; /* SQLite's, empty of content: whoever reads a store makes them */
    if (kind == FTW_F && sha256_file(path, hex, NULL) < 0)
        return -1;
    buf_printf(listing, "%s %o %s\n", path, (unsigned)st->st_mode, hex);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, since a folder's order may change. Free it. */
static char *contents(const struct world *w)
{
    AUTO_BUF struct buf all = BUF_INIT;
    listing = &all;
    assert_int_equal(nftw(w->dir, list_one, 16, FTW_PHYS), 0);
    AUTO_STRV struct strv lines = STRV_INIT;
    char *save = NULL;
    for (char *l = strtok_r(all.data, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
        strv_add(&lines, l);
    qsort(lines.v, lines.n, sizeof lines.v[0], by_text);
    struct buf sorted = BUF_INIT;
    for (size_t i = 0; i < lines.n; i++)
        buf_printf(&sorted, "%s\n", lines.v[i]);
    return buf_take(&sorted);
}

/* The world must be as it was; frees `before`. */
static void expect_unchanged(const char *name, const struct world *w, char *before)
{
    AUTO_FREE char *old = before;
    AUTO_FREE char *now = contents(w);
    size_t at = 0;
    while (old[at] && old[at] == now[at])
        at++;
    while (at > 0 && old[at - 1] != '\n')
        at--;
    if (old[at] || now[at])
        fail_msg("%s: something was created or changed: was '%.*s', is '%.*s'", name, (int)strcspn(old + at, "\n"),
                 old + at, (int)strcspn(now + at, "\n"), now + at);
}

/* One line on stderr, "pipetune: …", that holds the words (NULL-terminated). */
static void expect_error(const char *name, const struct harness_output *o, int code, const char *const *words)
{
    size_t len = strlen(o->err);
    if (o->code != code)
        fail_msg("%s: got exit %d, want %d; stderr: %s", name, o->code, code, o->err);
    if (strncmp(o->err, "pipetune: ", 10) != 0 || len == 0 || strchr(o->err, '\n') != o->err + len - 1)
        fail_msg("%s: want one line 'pipetune: …' on stderr, got: %s", name, o->err);
    for (; *words; words++)
        if (!strstr(o->err, *words))
            fail_msg("%s: want '%s' in: %s", name, *words, o->err);
}

#define EXPECT_ERROR(name, o, code, ...) expect_error(name, o, code, (const char *const[]){ __VA_ARGS__, NULL })

/* --- config and command line: the table ------------------------------------------------------------------------------ */

struct bad {
    const char *name;
    const char *config; /* NULL: no such file */
    const char *bigdl;  /* NULL: a good one */
    const char *args[4];
    int code;
    const char *words[6];
};

/* clang-format off */
static const struct bad bad[] = {
    { "a config that is not there", NULL, NULL, { 0 }, 2, { "c.conf" } },
    { "a config that is not JSON names the line", "{ \"bigdlConf\": \"app.json\",\n  oops }", NULL, { 0 }, 2, { "c.conf", "line 2" } },
    { "an empty config", "", NULL, { 0 }, 2, { "c.conf", "line 1" } },
    { "a config that is a list", "[1, 2]", NULL, { 0 }, 2, { "c.conf", "object" } },
    { "a key given twice", "{ \"bigdlConf\": \"a\",\n  \"bigdlConf\": \"b\" }", NULL, { 0 }, 2, { "line 2", "bigdlConf" } },
    { "text where a number belongs", "{ \"bigdlConf\": \"app.json\",\n  \"study\": {\n  \"epochs\": \"three\" },\n" WORLD_HYPER "}", NULL, { 0 }, 2,
      { "c.conf", "line 3", "study.epochs", "whole number" } },
    { "a fraction where a whole number belongs", "{ \"bigdlConf\": \"app.json\", \"study\": { \"epochs\": 1.5 },\n" WORLD_HYPER "}", NULL, { 0 }, 2,
      { "line 1", "study.epochs", "whole number", "1.5" } },
    { "a number out of its bounds", "{ \"bigdlConf\": \"app.json\", \"study\": { \"epochs\": 0 },\n" WORLD_HYPER "}", NULL, { 0 }, 2,
      { "study.epochs", "from 1", "not '0'" } },
    { "a number where text belongs", "{ \"bigdlConf\": 7,\n" WORLD_HYPER "}", NULL, { 0 }, 2, { "bigdlConf", "string" } },
    { "a section that is no object", "{ \"bigdlConf\": \"app.json\", \"study\": 3,\n" WORLD_HYPER "}", NULL, { 0 }, 2, { "study", "object" } },
    { "a choice that is none", CONFIG("\"objective\": \"tiem\",\n"), NULL, { 0 }, 2, { "line 3", "objective", "time" } },
    { "an unknown key of the top level", CONFIG("\"hyperParameter\": 1,\n"), NULL, { 0 }, 2, { "line 3", "hyperParameter", "did you mean 'hyperParameters'" } },
    { "an unknown key of a section", "{ \"bigdlConf\": \"app.json\",\n\"study\": { \"epoch\": 2 },\n" WORLD_HYPER "}", NULL, { 0 }, 2,
      { "line 2", "study.epoch", "did you mean 'epochs'" } },
    { "an unknown option", CONFIG(""), NULL, { "--max-trial", "3" }, 2, { "--max-trial", "did you mean '--max-trials'" } },
    { "an option without its value", CONFIG(""), NULL, { "--epochs" }, 2, { "--epochs", "needs a value" } },
    { "an option out of its bounds", CONFIG(""), NULL, { "--parallel", "0" }, 2, { "--parallel", "from 1", "'0'" } },
    { "two configs", CONFIG(""), NULL, { "other.conf" }, 2, { "other.conf" } },
    { "an unknown search", CONFIG(""), NULL, { "--algorithm", "gird" }, 2, { "gird", "grid" } },
    { "an unknown search in the config", CONFIG("\"search\": { \"algorithm\": \"gird\" },\n"), NULL, { 0 }, 2, { "c.conf", "line 3", "search.algorithm", "grid" } },
    { "no hyperParameters", "{ \"bigdlConf\": \"app.json\" }", NULL, { 0 }, 2, { "c.conf", "hyperParameters", "empty" } },
    { "an empty space", "{ \"bigdlConf\": \"app.json\",\n \"hyperParameters\": { } }", NULL, { 0 }, 2, { "c.conf", "line 2", "hyperParameters", "empty" } },
    { "a hyperparameter without values", "{ \"bigdlConf\": \"app.json\",\n \"hyperParameters\": {\n\"batch_size\": [] } }", NULL, { 0 }, 2,
      { "line 3", "hyperParameters.batch_size" } },
    { "a range that is none", "{ \"bigdlConf\": \"app.json\",\n \"hyperParameters\": {\n\"batch_size\": { \"range\": [8, 1] } } }", NULL, { 0 }, 2,
      { "line 3", "hyperParameters.batch_size" } },
    { "no cores", CONFIG("\"systemParameters\": {\n\"cores\": [\"0\"] },\n"), NULL, { 0 }, 2, { "line 4", "systemParameters.cores", "1 to 4096" } },
    { "5000 cores", CONFIG("\"systemParameters\": {\n\"cores\": [5000] },\n"), NULL, { 0 }, 2, { "line 4", "systemParameters.cores", "1 to 4096", "5000" } },
    { "an unknown system parameter", CONFIG("\"systemParameters\": {\n\"core\": [2] },\n"), NULL, { 0 }, 2, { "line 4", "systemParameters.core", "did you mean 'cores'" } },
    { "a setting that names no knob", CONFIG("\"systemParameters\": { \"cores\": [2] },\n"), NULL, { "--setting", "cors=2" }, 2, { "--setting", "cors", "cores" } },
    { "no BigDL file named", "{\n" WORLD_HYPER "}", NULL, { 0 }, 2, { "c.conf", "bigdlConf", "missing" } },
    { "a BigDL file that is not there: both places", "{ \"bigdlConf\": \"nowhere.json\",\n" WORLD_HYPER "}", NULL, { 0 }, 2,
      { "nowhere.json", "working directory", "'sub'" } },
    { "a BigDL file that is not JSON", CONFIG(""), "{ \"conf\":\n }", { 0 }, 2, { "app.json", "line 2" } },
    { "an unknown key of the BigDL file", CONFIG(""), "{ \"conf\": \"x.py\",\n\"mastre\": \"local[*]\" }", { 0 }, 2, { "app.json", "line 2", "did you mean 'master'" } },
    { "an unknown variable in the BigDL file", CONFIG(""), "{ \"extras\": {},\n\"conf\": \"$PIPETUNE_NO_SUCH/x.py\" }", { 0 }, 2,
      { "app.json", "line 2", "conf", "PIPETUNE_NO_SUCH" } },
    { "a BigDL file without an application", CONFIG(""), "{ \"master\": \"local[*]\" }", { 0 }, 2, { "app.json", "conf" } },
    { "a hyperparameter that reaches nothing", "{ \"bigdlConf\": \"app.json\",\n \"hyperParameters\": { \"batch_size\": [64],\n\"momentun\": [0.9] } }", NULL, { 0 }, 2,
      { "c.conf", "line 3", "hyperParameters.momentun", "reaches nothing", "app.json" } },
    { "epochs that reach nothing", "{ \"bigdlConf\": \"app.json\", \"hyperParameters\": { \"batch_size\": [64] } }",
      "{ \"conf\": \"x.py\", \"extras\": { \"batchSize\": 1 } }", { 0 }, 2, { "app.json", "epochs", "endTriggerNum" } },
    { "a batch that nothing divides", "{ \"bigdlConf\": \"app.json\", \"systemParameters\": { \"cores\": [2] },\n \"hyperParameters\": {\n\"batch_size\": [64, 63] } }",
      "{ \"master\": \"spark://h:7077\", \"total_executor_cores\": 2, \"conf\": \"x.py\", \"extras\": { \"batchSize\": 1, \"max_epoch\": 1 } }", { 0 }, 2,
      { "c.conf", "line 3", "hyperParameters.batch_size", "63" } },
    { "a study name with a slash", CONFIG(""), NULL, { "--name", "a/b" }, 2, { "a/b", "name" } },
    { "a study name that begins with a dash", CONFIG(""), NULL, { "--name", "-x" }, 2, { "'-x'", "name" } },
    { "an empty study name", CONFIG(""), NULL, { "--name", "" }, 2, { "name" } },
    { "nodes that are no list", CONFIG("\"nodes\": \"a\",\n"), NULL, { 0 }, 2, { "line 3", "nodes", "array" } },
    { "a node without a host", CONFIG("\"nodes\": [\n{ \"user\": \"u\" } ],\n"), NULL, { 0 }, 2, { "line 4", "nodes.0", "host" } },
    { "meters that are no names", CONFIG("\"monitoring\": { \"meters\": [1] },\n"), NULL, { 0 }, 2, { "monitoring.meters", "must be the name of a meter" } },
    { "events that are no names", CONFIG("\"monitoring\": { \"events\": [1] },\n"), NULL, { 0 }, 2, { "line 3", "monitoring.events", "strings" } },
    { "an unknown event", CONFIG("\"monitoring\": {\n\"events\": \"instruction\" },\n"), NULL, { 0 }, 2,
      { "c.conf", "line 4", "monitoring.events", "did you mean 'instructions'?" } },
    { "an unknown event of a list", CONFIG("\"monitoring\": { \"events\": [\"branches\",\n\"page-faults\"] },\n"), NULL, { 0 }, 2,
      { "c.conf", "line 4", "monitoring.events.1", "'page-faults'" } },
    { "a target of a metric whose direction cannot be told", "{ \"bigdlConf\": \"app.json\", \"study\": { \"target\": 20 },\n" WORLD_HYPER "}", NULL, { "--metric", "perplexity" }, 2,
      { "study.target 20", "'perplexity'", "study.direction max or min" } },
    { "a stop rule that would end no trial", CONFIG("\"search\": { \"stop\": \"halving\", \"min_epochs\": 9 },\n"), NULL, { "--epochs", "5" }, 2,
      { "search.min_epochs 9", "study.epochs 5", "'halving'", "search.stop none" } },
    { "a rung that all come through", CONFIG(""), NULL, { "--eta", "1" }, 2, { "--eta", "from 2", "'1'" } },
    { "constraints that leave nothing", "{ \"bigdlConf\": \"app.json\", \"study\": {\n\"constraints\": [\"batch_size > 9999\"] },\n" WORLD_HYPER "}", NULL, { 0 }, 2,
      { "c.conf", "study.constraints", "no point" } },
    { "a metric that is no UTF-8", CONFIG(""), NULL, { "--metric", "acc\xff" }, 2, { "--metric", "'acc\xEF\xBF\xBD'", "not UTF-8" } },
    { "a store that is no UTF-8", CONFIG(""), NULL, { "--store", "s\xff.db" }, 2, { "s\xEF\xBF\xBD.db'", "not UTF-8", "Java" } },
    { "a study name that is no UTF-8", CONFIG(""), NULL, { "--name", "s\xff" }, 2, { "--name", "'s\xEF\xBF\xBD'", "not UTF-8" } },
    { "an address that is none", CONFIG("\"influxdb\": {\n\"url\": \"htp:/nowhere\" },\n"), NULL, { 0 }, 2, { "url of influxdb", "scheme" } },
    { "a Telegraf's address without a port", CONFIG("\"influxdb\": { \"url\": \"udp://h\" },\n"), NULL, { 0 }, 2, { "udp://h" } },
    { "a database and a bucket", CONFIG("\"influxdb\": { \"url\": \"http://127.0.0.1:1\", \"database\": \"d\", \"bucket\": \"b\" },\n"), NULL, { 0 }, 2,
      { "database", "bucket", "not both" } },
    { "a credential that would go to another machine in the clear", CONFIG("\"influxdb\": { \"url\": \"http://10.0.0.9:8086\", \"credential_file\": \"secret\" },\n"),
      NULL, { 0 }, 2, { "http://10.0.0.9:8086", "https://", "allow_plain_http" } },
    { "a password in the url of an InfluxDB, which is not repeated", CONFIG("\"influxdb\": { \"url\": \"http://me:hunter2@10.0.0.9:8086\" },\n"), NULL, { 0 }, 2,
      { "credential file" } },
    { "a credential file of no use yet names no password", CONFIG("\"influxdb\": { \"password\": \"x\" },\n"), NULL, { 0 }, 2, { "influxdb.password", "not known" } },
};
/* clang-format on */

static void test_wrong_input_is_told_and_creates_nothing(void **state)
{
    struct world *w = *state;
    world_dir(w, "sub");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const struct bad *b = &bad[i];
        if (b->config)
            harness_write(w->dir, "sub/c.conf", b->config);
        harness_write(w->dir, "app.json", b->bigdl ? b->bigdl : WORLD_BIGDL WORLD_ARGUMENTS);
        char *before = contents(w);
        struct harness_output o = RUN(w, "run", "sub/c.conf", b->args[0], b->args[1]);
        expect_error(b->name, &o, b->code, b->words);
        if (*o.out)
            fail_msg("%s: something on stdout: %s", b->name, o.out);
        harness_output_done(&o);
        expect_unchanged(b->name, w, before);
    }
}

static void test_usage(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *name, *args[3], *words[3];
    } cases[] = {
        { "an unknown command", { "rum" }, { "rum", "did you mean 'run'" } },
        { "run without a config", { "run" }, { "no config", "--config" } },
        { "an option before the command", { "--frobnicate" }, { "--frobnicate" } },
        { "a folder as the config", { "run", "." }, { "'.'" } },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct harness_output o = RUN(w, cases[i].args[0], cases[i].args[1]);
        expect_error(cases[i].name, &o, strcmp(cases[i].args[0], "run") == 0 && cases[i].args[1] ? o.code : 2,
                     cases[i].words);
        assert_true(o.code == 2 || o.code == 3);
        harness_output_done(&o);
    }
}

/* --- a space of 10^9 points ------------------------------------------------------------------------------------------ */

#define HUGE_CONFIG                                                                                                    \
    "{ \"bigdlConf\": \"app.json\", \"hyperParameters\": { \"batch_size\": [64],\n"                                    \
    "  \"learning_rate\": { \"range\": [1, 1000000001] } } }"

static void test_a_grid_of_a_thousand_million_points_is_lazy(void **state)
{
    struct world *w = *state;
    harness_write(w->dir, "c.conf", HUGE_CONFIG);
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
#ifndef __SANITIZE_ADDRESS__
    struct rlimit small = { .rlim_cur = 256 << 20, .rlim_max = old.rlim_max }; /* a list of the points would not fit */
    assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
#endif
    struct harness_output o = RUN(w, "run", "c.conf", "--dry-run", "--max-trials", "3");
    assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
    assert_string_equal(o.err, "");
    assert_int_equal(o.code, 0);
    assert_int_equal(harness_count(o.out, "\n"), 3);
    assert_non_null(strstr(o.out, " -r 3 "));
    harness_output_done(&o);
}

static void test_a_dry_run_ends_when_its_reader_has_seen_enough(void **state)
{
    struct world *w = *state;
    int out[2];
    char some[4096], name[] = "c.conf", run_word[] = "run", dry[] = "--dry-run";
    harness_write(w->dir, name, HUGE_CONFIG);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    char *argv[] = { w->program, run_word, name, dry, NULL };
    AUTO_CLOSE int err = memfd_create("err", MFD_CLOEXEC);
    pid_t pid = harness_spawn(argv, out[1], err);
    (void)close(out[1]);
    assert_true(read(out[0], some, sizeof some) > 0);
    (void)close(out[0]);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    struct stat st;
    assert_int_equal(fstat(err, &st), 0);
    assert_int_equal(st.st_size, 0); /* that is no failure to be told of */
}

/* --- a machine that lacks something: exit 3, nothing created ----------------------------------------------------------- */

static void lose(const struct world *w, const char *name)
{
    AUTO_FREE char *path = harness_path(w->dir, name);
    assert_int_equal(unlink(path), 0);
}

static void no_jar(struct world *w)
{
    lose(w, "bigdl/bigdl-dllib.jar");
}

static void no_second_jar(struct world *w)
{
    lose(w, "bigdl/bigdl-core.jar");
}

static void no_spark(struct world *w)
{
    world_point_at(w, "SPARK_HOME", "empty");
}

static void no_java_in_its_home(struct world *w)
{
    world_point_at(w, "JAVA_HOME", "empty");
}

static void no_java_on_path(struct world *w)
{
    (void)unsetenv("JAVA_HOME");
    world_point_at(w, "PATH", "empty");
}

static void old_java(struct world *w)
{
    world_script(w, "java/bin/java", WORLD_JAVA("1.7.0_80"));
}

static void java_of_few_words(struct world *w)
{
    world_script(w, "java/bin/java", "#!/bin/sh\necho what\n");
}

static void copy_program(struct world *w)
{
    AUTO_BUF struct buf bytes = BUF_INIT;
    struct err e;
    assert_int_equal(io_read_file(&bytes, w->program, 1 << 28, &e), 0);
    AUTO_FREE char *alone = harness_path(w->dir, "empty/pipetune");
    assert_int_equal(io_write_atomic(alone, bytes.data, bytes.len, 0755, &e), 0);
    free(w->program);
    w->program = MOVE_PTR(alone);
}

static void no_home(struct world *w)
{
    world_point_at(w, "PIPETUNE_HOME", "empty");
}

static void open_meters_credential(struct world *w)
{
    harness_write(w->dir, "secret", "user:password\n");
    harness_write(
        w->dir, "c.conf",
        CONFIG("\"monitoring\": { \"meters\": [ { \"name\": \"snmp\", \"host\": \"127.0.0.1\", \"model\": \"apc\", "
               "\"outlets\": { \"localhost\": 1 }, \"credential_file\": \"secret\" } ] },\n"));
}

static void no_credential(struct world *w)
{
    harness_write(w->dir, "c.conf",
                  CONFIG("\"influxdb\": { \"url\": \"http://127.0.0.1:1\", \"database\": \"d\", \"credential_file\": "
                         "\"secret\" },\n"));
}

static void open_credential(struct world *w)
{
    harness_write(w->dir, "secret", "user:password\n"); /* of mode 0644 */
    no_credential(w);
}

static void empty_credential(struct world *w)
{
    harness_write(w->dir, "secret", "");
    AUTO_FREE char *path = harness_path(w->dir, "secret");
    assert_int_equal(chmod(path, 0600), 0);
    no_credential(w);
}

static const struct {
    const char *name;
    void (*spoil)(struct world *w);
    const char *words[6];
} wanting[] = {
    { "a credential that is not there: both places",
      no_credential,
      { "c.conf", "influxdb.credential_file", "'secret'", "working directory", "'.'" } },
    { "a credential that others may read", open_credential, { "secret", "chmod 600" } },
    { "a meter's credential that others may read", open_meters_credential, { "secret", "chmod 600" } },
    { "a jar that is not there", no_jar, { "app.json", "conf", "bigdl/bigdl-dllib.jar", "setup" } },
    { "another jar that is not there", no_second_jar, { "app.json", "line 2", "jars", "bigdl/bigdl-core.jar" } },
    { "no Spark", no_spark, { "no Spark", "empty/bin/spark-submit", "SPARK_HOME" } },
    { "no Java in JAVA_HOME", no_java_in_its_home, { "no Java", "empty/bin/java", "install" } },
    { "no Java on PATH", no_java_on_path, { "no Java", "'java'", "install" } },
    { "a Java that is too old", old_java, { "Java 7 is too old", "17", "install" } },
    { "a Java that tells no version", java_of_few_words, { "no Java", "version", "install" } },
    { "no pipetune-node beside the program", copy_program, { "empty/pipetune-node", "make" } },
    { "no home of ours", no_home, { "log4j2-pipetune.properties", "PIPETUNE_HOME" } },
};

static void test_an_empty_credential_creates_nothing(void **state)
{
    struct world *w = *state;
    empty_credential(w);
    char *before = contents(w);
    struct harness_output o = RUN(w, "run", "c.conf");
    EXPECT_ERROR("an empty credential", &o, 2, "secret");
    expect_unchanged("an empty credential", w, before);
    harness_output_done(&o);
}

/* Paths are bytes; what Java is given is not. */
static void test_names_that_are_no_utf_8(void **state)
{
    struct world *w = *state;
    harness_write(w->dir, "c\xff.conf", CONFIG(""));
    struct harness_output o = RUN(w, "run", "c\xff.conf");
    if (o.code != 0)
        fail_msg("a config: exit %d: %s", o.code, o.err);
    harness_output_done(&o);
    o = RUN(w, "show", "s", "--json");
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "\"finished\""));
    harness_output_done(&o);
    world_dir(w, "d\xff");
    world_dir(w, "d\xff/mnist");
    world_point_at(w, "PIPETUNE_DATA", "d\xff");
    o = RUN(w, "run", "c\xff.conf", "--name", "other");
    EXPECT_ERROR("an argument", &o, 2, "app.json", "line 5", "extras.folder", "$PIPETUNE_DATA", "/d\xEF\xBF\xBD'",
                 "not UTF-8", "Java");
    harness_output_done(&o);
    harness_expect_rows("nothing was begun", "pipetune.db", "SELECT name FROM studies", "s");
}

static void test_a_machine_that_lacks_something(void **state)
{
    AUTO_FREE char *path = strdup(getenv("PATH"));
    (void)world_close(state);
    for (size_t i = 0; i < ARRAY_LEN(wanting); i++) {
        assert_int_equal(world_open(state), 0);
        struct world *w = *state;
        harness_write(w->dir, "c.conf", CONFIG(""));
        wanting[i].spoil(w);
        char *before = contents(w);
        struct harness_output o = RUN(w, "run", "c.conf");
        assert_int_equal(setenv("PATH", path, 1), 0);
        expect_error(wanting[i].name, &o, 3, wanting[i].words);
        expect_unchanged(wanting[i].name, w, before);
        harness_output_done(&o);
        (void)world_close(state);
    }
    assert_int_equal(world_open(state), 0);
}

/* --- found while it runs: the study stops, the trial waits ----------------------------------------------------------- */

static void expect_finished(const char *name, const struct world *w, const char *store)
{
    struct harness_output o = RUN(w, "run", "c.conf", "--store", store);
    if (o.code != 0)
        fail_msg("%s: the same command ends with %d: %s", name, o.code, o.err);
    harness_output_done(&o);
    harness_expect_rows(name, store, "SELECT number, state FROM trials ORDER BY number", "1|finished 2|finished");
}

static void test_what_only_the_application_can_miss_stops_the_study(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *fail, *words[4];
    } cases[] = {
        { "data", { "data/1", "/nowhere/mnist", "the same command goes on" } },
        { "class", { "class/1", "lenet.Train", "the same command goes on" } },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char store[32];
        (void)snprintf(store, sizeof store, "%s.db", cases[i].fail);
        (void)setenv("FAKE_FAIL", cases[i].fail, 1);
        harness_write(w->dir, "c.conf", CONFIG(""));
        struct harness_output o = RUN(w, "run", "c.conf", "--store", store, "--name", cases[i].fail);
        expect_error(cases[i].fail, &o, 3, cases[i].words);
        harness_output_done(&o);
        harness_expect_rows(cases[i].fail, store, "SELECT state FROM trials WHERE number = 1", "waiting");
        harness_expect_rows(cases[i].fail, store, "SELECT count(*) FROM attempts WHERE outcome = 'failed'", "0");
        (void)unsetenv("FAKE_FAIL");
        o = RUN(w, "run", "c.conf", "--store", store, "--name", cases[i].fail);
        if (o.code != 0)
            fail_msg("%s: the same command ends with %d: %s", cases[i].fail, o.code, o.err);
        harness_output_done(&o);
        harness_expect_rows(cases[i].fail, store, "SELECT number, state FROM trials ORDER BY number",
                            "1|finished 2|finished");
    }
}

/* --- stores that are not for us -------------------------------------------------------------------------------------- */

static void spoil_store(const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    if (sqlite3_open("pipetune.db", &db) != SQLITE_OK || sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
    (void)sqlite3_close(db);
}

static void expect_refused(const char *name, const struct world *w, const char *const *words)
{
    char *before = contents(w);
    struct harness_output o = RUN(w, "run", "c.conf");
    expect_error(name, &o, 3, words);
    harness_output_done(&o);
    expect_unchanged(name, w, before);
}

#define EXPECT_REFUSED(name, w, ...) expect_refused(name, w, (const char *const[]){ __VA_ARGS__, NULL })

static void test_a_store_of_a_newer_version_is_left_alone(void **state)
{
    struct world *w = *state;
    harness_write(w->dir, "c.conf", CONFIG(""));
    expect_finished("before", w, "pipetune.db");
    spoil_store("PRAGMA user_version = 999");
    EXPECT_REFUSED("a store from a newer version", w, "pipetune.db", "newer");
}

static void test_another_programs_database_is_left_alone(void **state)
{
    struct world *w = *state;
    harness_write(w->dir, "c.conf", CONFIG(""));
    spoil_store("CREATE TABLE recipes(x); INSERT INTO recipes VALUES('soup')");
    EXPECT_REFUSED("another program's database", w, "pipetune.db");
    lose(w, "pipetune.db");
    harness_write(w->dir, "pipetune.db",
                  "This is a letter and no database. It has been here for years, and it is long\n");
    EXPECT_REFUSED("a letter", w, "pipetune.db");
    lose(w, "pipetune.db");
    world_dir(w, "pipetune.db");
    EXPECT_REFUSED("a folder", w, "pipetune.db");
}

/* What this machine does not let us try. */
static const char *skipped;

static void test_a_store_on_a_network_file_system_is_refused(void **state)
{
    struct world *w = *state;
    AUTO_FREE char *faults = harness_program("tests/faults.so");
    AUTO_BUF struct buf bytes = BUF_INIT;
    struct err e;
    static const char fault[] = "PIPETUNE_FAULT_STATFS";
    if (io_read_file(&bytes, faults, 1 << 28, &e) < 0 || !memmem(bytes.data, bytes.len, fault, sizeof fault)) {
        skipped = "tests/faults.so cannot play a network file system";
        return;
    }
    harness_write(w->dir, "c.conf", CONFIG(""));
    (void)setenv("LD_PRELOAD", faults, 1), (void)setenv(fault, "nfs", 1);
    (void)setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
    EXPECT_REFUSED("a store on NFS", w, "pipetune.db", "NFS", "local");
}

/* --- disks ------------------------------------------------------------------------------------------------------------ */

/* A tmpfs on dir/name, in a mount namespace of this program alone; false: not allowed here. */
static bool mount_small(const struct world *w, const char *name, const char *options)
{
    static bool own;
    /* In a chroot "/" is no mount point (EINVAL), and what is mounted below it stays there. */
    if (!own &&
        (unshare(CLONE_NEWNS) < 0 || (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 && errno != EINVAL))) {
        skipped = "mounts are not allowed here (run as root, or with CAP_SYS_ADMIN)";
        return false;
    }
    own = true;
    AUTO_FREE char *path = harness_path(w->dir, name);
    assert_int_equal(mkdir(path, 0777), 0);
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID, options) == 0)
        return true;
    skipped = "a tmpfs cannot be mounted here";
    return false;
}

static void make_read_only(const struct world *w, const char *name)
{
    AUTO_FREE char *path = harness_path(w->dir, name);
    assert_int_equal(mount("tmpfs", path, "tmpfs", MS_REMOUNT | MS_RDONLY | MS_NOSUID, NULL), 0);
}

static void test_a_read_only_folder(void **state)
{
    struct world *w = *state;
    harness_write(w->dir, "c.conf", CONFIG(""));
    if (!mount_small(w, "new", "size=1m") || !mount_small(w, "old", "size=8m"))
        return;
    expect_finished("before", w, "old/pipetune.db");
    make_read_only(w, "new"), make_read_only(w, "old");
    char *before = contents(w);
    static const char *const stores[] = { "new/pipetune.db", "old/pipetune.db" };
    for (size_t i = 0; i < ARRAY_LEN(stores); i++) {
        struct harness_output o = RUN(w, "run", "c.conf", "--store", stores[i]);
        EXPECT_ERROR(stores[i], &o, 3, stores[i]);
        harness_output_done(&o);
    }
    expect_unchanged("read-only", w, before);
}

static void fill_up(const char *path, size_t leave)
{
    struct statvfs v;
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    assert_true(fd >= 0 && fstatvfs(fd, &v) == 0);
    size_t space = v.f_bavail * v.f_bsize;
    assert_int_equal(posix_fallocate(fd, 0, (off_t)(space > leave + 1 ? space - leave : 1)), 0);
}

static void test_a_full_disk_loses_nothing(void **state)
{
    struct world *w = *state;
    static const size_t leave[] = { 0, 8 << 10, 64 << 10, 112 << 10, 128 << 10, 160 << 10, 192 << 10, 224 << 10 };
    harness_write(w->dir, "c.conf", CONFIG(""));
    if (!mount_small(w, "disk", "size=1m"))
        return;
    unsigned struck = 0;
    for (size_t i = 0; i < ARRAY_LEN(leave); i++) {
        char store[32], name[64];
        (void)snprintf(store, sizeof store, "disk/%zu.db", i);
        (void)snprintf(name, sizeof name, "a disk with %zu bytes left", leave[i]);
        fill_up("disk/filler", leave[i]);
        struct harness_output o = RUN(w, "run", "c.conf", "--store", store);
        struck += o.code != 0;
        if (o.code != 0 && ((o.code != 1 && o.code != 3) || !strstr(o.err, "pipetune: ")))
            fail_msg("%s: exit %d: %s", name, o.code, o.err);
        harness_output_done(&o);
        assert_int_equal(unlink("disk/filler"), 0);
        expect_finished(name, w, store);
        harness_expect_rows(name, store, "PRAGMA integrity_check", "ok");
        (void)unlink(store);
        AUTO_FREE char *d = harness_path(w->dir, "disk/pipetune.d");
        harness_remove(MOVE_PTR(d));
    }
    assert_true(struck > 2);
}

/* --- one study, two drivers ------------------------------------------------------------------------------------------- */

static void test_the_second_driver_names_the_first(void **state)
{
    struct world *w = *state;
    char pid_text[32], conf[] = "c.conf", run_word[] = "run";
    harness_write(w->dir, conf, CONFIG(""));
    (void)setenv("FAKE_EPOCH_MS", "1000", 1);
    char *argv[] = { w->program, run_word, conf, NULL };
    pid_t first = harness_spawn(argv, -1, -1);
    assert_true(harness_wait_file(w->dir, "pipetune.d/s/1/log", HARNESS_MS));
    (void)snprintf(pid_text, sizeof pid_text, "pid %ld", (long)first);
    struct harness_output o = RUN(w, "run", "c.conf");
    EXPECT_ERROR("a second driver", &o, 3, "'s'", pid_text);
    harness_output_done(&o);
    assert_int_equal(harness_exit_code(first, HARNESS_MS), 0);
    harness_expect_rows("the first", "pipetune.db", "SELECT number, state FROM trials ORDER BY number",
                        "1|finished 2|finished");
    harness_expect_rows("the first", "pipetune.db", "SELECT count(*) FROM attempts", "2");
}

/* --- a config that changed -------------------------------------------------------------------------------------------- */

static void test_a_changed_config_names_the_keys(void **state)
{
    struct world *w = *state;
    harness_write(w->dir, "c.conf", CONFIG(""));
    expect_finished("before", w, "pipetune.db");
    expect_finished("unchanged", w, "pipetune.db");
    struct harness_output o = RUN(w, "run", "c.conf", "--epochs", "2", "--tie-margin", "0.5");
    EXPECT_ERROR("options", &o, 2, "'s'", "study.epochs", "tuning.tie_margin", "--again");
    harness_output_done(&o);
    harness_write(w->dir, "c.conf",
                  "{ \"bigdlConf\": \"app.json\", \"study\": { \"name\": \"s\", \"epochs\": 1 },\n"
                  "  \"hyperParameters\": { \"batch_size\": [64, 128], \"learning_rate\": [0.2] } }");
    o = RUN(w, "run", "c.conf");
    EXPECT_ERROR("values", &o, 2, "hyperParameters.learning_rate");
    assert_null(strstr(o.err, "batch_size"));
    harness_output_done(&o);
    harness_write(w->dir, "app.json", WORLD_BIGDL "\"driver_memory\": \"4g\" }");
    o = RUN(w, "run", "c.conf");
    EXPECT_ERROR("a BigDL file with a key twice", &o, 2, "app.json", "driver_memory");
    harness_output_done(&o);
    harness_write(w->dir, "app.json", WORLD_BIGDL "\"executor_memory\": \"4g\",\n" WORLD_ARGUMENTS);
    harness_write(w->dir, "c.conf", CONFIG(""));
    o = RUN(w, "run", "c.conf");
    EXPECT_ERROR("the BigDL file", &o, 2, "bigdl.executor_memory");
    harness_output_done(&o);
    harness_expect_rows("the store", "pipetune.db", "SELECT count(*) FROM studies", "1");
}

static void test_what_may_change_in_a_study(void **state)
{
    struct world *w = *state;
    harness_write(w->dir, "c.conf", CONFIG(""));
    expect_finished("before", w, "pipetune.db");
    harness_write(w->dir, "c.conf",
                  CONFIG("\"monitoring\": { \"interval\": 2, \"meters\": \"rapl\" },\n"
                         "\"influxdb\": { \"url\": \"http://127.0.0.1:8086\", \"database\": \"energy\" },\n"));
    struct harness_output o = RUN(w, "run", "c.conf", "--max-trials", "7", "--parallel", "2");
    if (o.code != 0)
        fail_msg("exit %d: %s", o.code, o.err);
    harness_output_done(&o);
    harness_expect_rows("it was finished", "pipetune.db", "SELECT count(*) FROM attempts", "2");
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(test_wrong_input_is_told_and_creates_nothing),
        ROW(test_usage),
        ROW(test_a_grid_of_a_thousand_million_points_is_lazy),
        ROW(test_a_dry_run_ends_when_its_reader_has_seen_enough),
        ROW(test_a_machine_that_lacks_something),
        ROW(test_an_empty_credential_creates_nothing),
        ROW(test_names_that_are_no_utf_8),
        ROW(test_what_only_the_application_can_miss_stops_the_study),
        ROW(test_a_store_of_a_newer_version_is_left_alone),
        ROW(test_another_programs_database_is_left_alone),
        ROW(test_a_store_on_a_network_file_system_is_refused),
        ROW(test_a_read_only_folder),
        ROW(test_a_full_disk_loses_nothing),
        ROW(test_the_second_driver_names_the_first),
        ROW(test_a_changed_config_names_the_keys),
        ROW(test_what_may_change_in_a_study),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed == 0 && skipped) {
        printf("SKIP %s; everything else passed\n", skipped);
        return 77;
    }
    return failed;
}
