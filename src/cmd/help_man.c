/* The manual page, from the tables that the program itself runs by; only what no table says is written here. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "cmd/help.h"
#include "core/config.h"
#include "core/space.h"
#include "search/search.h"

struct entry {
    const char *tag, *text; /* of several sentences, each is a line of its own, as man(7) wants it */
};

static const char description[] =
    "pipetune tunes training jobs on Spark and BigDL.\n"
    "A study is one such job with a list of hyperparameter values and a list of system parameters.\n"
    "Its trials are trained through spark-submit, one setting of the hyperparameters each; every figure is kept in one "
    "SQLite file, the store.\n"
    "Whatever is killed on the way, the same command goes on with the study.\n";

static const char going_on[] =
    "SIGINT (Ctrl-C) and SIGTERM end the trials that run; the same command continues them from their newest "
    "checkpoint.\n"
    "A second one kills them at once.\n"
    "After SIGHUP or SIGKILL, and with --detach, the trials run on; the same command finds them and reads on where the "
    "last one stopped.\n"
    "A study that is finished is only shown again; --again makes a new one, NAME@2.\n"
    "A config that has changed is refused with the keys that differ; max_trials, parallel, monitoring, influxdb and "
    "store may change.\n";

static const struct {
    enum cmd_exit code;
    const char *text;
} exits[] = {
    { CMD_OK, "At least one trial finished, or all is well." },
    { CMD_NONE, "No trial finished." },
    { CMD_USAGE, "Wrong usage, or a mistake in the config: the error names file, line and key." },
    { CMD_ENVIRONMENT, "This machine lacks something: the error, or pipetune doctor, says what and how to mend it." },
    { CMD_INTERRUPTED, "Interrupted, or left running after a hangup: the same command goes on." },
};

static const struct entry variables[] = {
    { "PIPETUNE_STORE", "The store, when neither --store nor the config names one (default ./pipetune.db)." },
    { "PIPETUNE_HOME", "The folder that holds PipeTune's own conf/ and bigdl/ (default: where the program is, or its "
                       "share/pipetune)." },
    { "PIPETUNE_DATA", "$PIPETUNE_DATA in a BigDL file (default ./.pipetune/data)." },
    { "SPARK_HOME", "Spark, when the config does not name it (default ./.pipetune/spark, else spark-submit on PATH)." },
    { "JAVA_HOME", "Java, when the config does not name it (default: java on PATH)." },
    { "BIGDL_HOME", "$BIGDL_HOME in a BigDL file (default ./.pipetune/bigdl)." },
    { "SPARK_LOCAL_IP", "Is 127.0.0.1 for trials on one machine when it is not set: a host name that does not resolve "
                        "would stop Spark." },
    { "TMPDIR", "Where doctor --try trains (default /tmp)." },
    { "PIPETUNE_LAUNCH", "Set for all that an attempt starts, so that nothing of it is overlooked." },
};

static const struct entry files[] = {
    { "pipetune.db", "The store." },
    { "pipetune.d/STUDY/driver.lock", "Beside the store; locked while a driver runs the study." },
    { "pipetune.d/STUDY/TRIAL/log",
      "What the application printed, all attempts one after the other; log.1 is what came before, and "
      "what was before that is gone (--log-mb)." },
    { "pipetune.d/STUDY/TRIAL/checkpoint/", "BigDL's checkpoints, from which a trial is continued." },
    { "pipetune.d/STUDY/TRIAL/exit", "How the last attempt ended." },
    { ".pipetune/", "Spark, BigDL, Python and data, where ./run-pipetune.sh setup puts them." },
    { "conf/pipetune.conf", "A config to begin with, and bigdl/config/ BigDL files; installed in share/pipetune." },
};

static const struct entry examples[] = {
    { "pipetune doctor", "What works here, and the fix for what does not." },
    { "pipetune run --config conf/pipetune.conf --dry-run", "Each trial's spark-submit command, and nothing else." },
    { "pipetune run --config conf/pipetune.conf --name demo --max-trials 4 --epochs 2",
      "Four trials of two epochs each, as the study demo." },
    { "pipetune run --config conf/pipetune.conf --setting cores=4,memory=8", "Trials under another setting." },
    { "pipetune ls", "The studies." },
    { "pipetune show demo", "The study's trials, and the best." },
    { "pipetune show demo 2", "Its second trial: epochs, attempts, and the command." },
    { "pipetune show demo --decisions", "What was decided, when and why." },
    { "tail -F $(pipetune show demo 2 --log)", "What the trial prints." },
    { "pipetune report demo --html demo.html", "All of the study as one page for a browser." },
    { "pipetune compare demo demo@2", "Two studies side by side." },
    { "pipetune diff demo/1 demo/2", "What differs between two trials." },
    { "pipetune help --man | man -l -", "This page." },
};

/* --- roff --- */

/* What roff would read as its own, or print as another character: its dash is a hyphen that no shell knows. */
static const char *escaped(unsigned char c)
{
    switch (c) {
    case '\\': return "\\e";
    case '-': return "\\-";
    case '\'': return "\\(aq";
    case '"': return "\\(dq";
    case '`': return "\\(ga";
    case '^': return "\\(ha";
    case '~': return "\\(ti";
    default: return NULL;
    }
}

static void put_bytes(struct buf *b, const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + len;
    while (p < end) {
        size_t n = utf8_len(p, end);
        bool begins = b->len == 0 || b->data[b->len - 1] == '\n';
        if (n > 1)
            buf_printf(b, "\\[u%04" PRIX32 "]", utf8_code(p, n));
        else if (escaped(*p))
            buf_puts(b, escaped(*p));
        else
            buf_printf(b, "%s%c", begins && *p == '.' ? "\\&" : "", *p);
        p += n ? n : 1;
    }
}

static void put_text(struct buf *b, const char *text)
{
    put_bytes(b, text, strlen(text));
}

static void put_bold(struct buf *b, const char *text, size_t len)
{
    buf_puts(b, "\\fB");
    put_bytes(b, text, len);
    buf_puts(b, "\\fR");
}

static void put_section(struct buf *b, const char *title, const char *text)
{
    buf_printf(b, ".SH %s\n", title);
    put_text(b, text);
}

static void put_entry(struct buf *b, const char *tag, const char *text)
{
    buf_puts(b, ".TP\n");
    put_bold(b, tag, strlen(tag));
    buf_putc(b, '\n');
    put_text(b, text);
    buf_putc(b, '\n');
}

static void put_entries(struct buf *b, const char *title, const struct entry *rows, size_t n)
{
    put_section(b, title, "");
    for (size_t i = 0; i < n; i++)
        put_entry(b, rows[i].tag, rows[i].text);
}

/* --- the commands --- */

static void put_usage(struct buf *b, const struct command *c)
{
    put_bold(b, "pipetune ", strlen("pipetune "));
    put_bold(b, c->name, strlen(c->name));
    buf_putc(b, ' ');
    put_text(b, c->usage);
    buf_putc(b, '\n');
}

static void put_synopsis(struct buf *b)
{
    put_section(b, "SYNOPSIS", "");
    buf_puts(b, ".nf\n");
    put_bold(b, "pipetune --config", strlen("pipetune --config"));
    buf_puts(b, " FILE ");
    put_text(b, "[OPTION…]\n");
    for (const struct command *c = cmd_table; c->name; c++)
        put_usage(b, c);
    buf_puts(b, ".fi\n");
}

static void put_option(struct buf *b, const struct opt_line *o)
{
    buf_puts(b, ".TP\n\\fB\\-\\-");
    put_bytes(b, o->name.text, o->name.len);
    buf_puts(b, o->arg.len ? "\\fR \\fI" : "");
    put_bytes(b, o->arg.text, o->arg.len);
    buf_puts(b, "\\fR\n");
    put_bytes(b, o->help.text, o->help.len);
    buf_putc(b, '\n');
}

static void put_command(struct buf *b, const struct command *c)
{
    buf_printf(b, ".SS %s\n", c->name);
    put_usage(b, c);
    buf_puts(b, ".PP\n");
    put_text(b, c->help);
    buf_puts(b, ".\n");
    AUTO_BUF struct buf options = BUF_INIT;
    if (c->options)
        c->options(&options);
    b->failed |= options.failed;
    struct opt_line line;
    const char *rest = buf_text(&options);
    for (const char *next; (next = opt_help_line(rest, &line)) != NULL; rest = next)
        put_option(b, &line);
    if (*rest) /* of `run`: the rows of the config, which have a section of their own */
        buf_puts(b, ".PP\nEvery scalar key of the config is an option too: see CONFIG.\n");
}

static void put_commands(struct buf *b)
{
    put_section(b, "COMMANDS",
                "Without a command, --config FILE means run.\n"
                "Every command takes --help; those that show something print JSON with --json.\n"
                "Options may be written --name VALUE or --name=VALUE, before or after other words; -- ends them.\n");
    for (const struct command *c = cmd_table; c->name; c++)
        put_command(b, c);
}

/* --- the config --- */

static void put_bounds(struct buf *b, const struct opt_row *row)
{
    char lo[NUM_TEXT_MAX], hi[NUM_TEXT_MAX], text[2 * NUM_TEXT_MAX + 16];
    if (row->type != OPT_INT && row->type != OPT_REAL)
        return;
    (void)snprintf(text, sizeof text, " from %s to %s", num_print(row->min, lo), num_print(row->max, hi));
    put_text(b, text);
}

static void put_key(struct buf *b, const struct opt_row *row)
{
    char option[64] = "";
    AUTO_BUF struct buf text = BUF_INIT;
    buf_puts(b, ".TP\n");
    put_bold(b, row->key, strlen(row->key));
    buf_printf(b, " (%s", help_type(row));
    put_bounds(b, row);
    buf_printf(&text, "%s%s; --%s)\n%s", row->preset ? ", default " : "", row->preset ? row->preset : "",
               opt_name(row, option), row->help);
    for (size_t i = 0; row->choices && row->choices[i]; i++)
        buf_printf(&text, "%s%s", i ? ", " : ": ", row->choices[i]);
    buf_putc(&text, '\n');
    put_text(b, buf_text(&text));
    b->failed |= text.failed;
}

static void put_keys(struct buf *b)
{
    const char *section = NULL;
    for (size_t i = 0; i < config_rows_n; i++) {
        const struct opt_row *row = &config_rows[i];
        if (!section || strcmp(section, row->section) != 0)
            buf_printf(b, ".SS %s\n", *row->section ? row->section : "Top level");
        section = row->section;
        put_key(b, row);
    }
}

static void put_knobs(struct buf *b)
{
    buf_puts(b, ".SS System parameters\nHot ones change while a trial runs, cold ones need a launch.\n");
    for (const struct knob_kind *k = knob_kinds;; k++) {
        char bounds[KNOB_BOUNDS_MAX], text[KNOB_BOUNDS_MAX + 16];
        const char *what = k->id == KNOB_SPARK ? "any property of Spark" : knob_kind_bounds(k, bounds);
        (void)snprintf(text, sizeof text, "%s; %s", k->hot ? "hot" : "cold", what);
        put_entry(b, k->name, text);
        if (k->id == KNOB_SPARK)
            return;
    }
}

static void put_config(struct buf *b)
{
    put_section(b, "CONFIG",
                "A config is a JSON object; only bigdlConf and hyperParameters must be there.\n"
                "The command line wins over the config, and the config over the defaults.\n");
    buf_puts(b, ".PP\n.EX\n");
    put_text(b, help_example);
    buf_puts(b, ".EE\n");
    put_keys(b);
    buf_puts(b, ".SS Lists and objects\n");
    for (const struct help_key *k = help_wide_keys; k->key; k++)
        put_entry(b, k->key, k->help);
    put_knobs(b);
    buf_puts(b, ".SS Searches\n");
    for (size_t i = 0; searches[i]; i++)
        put_entry(b, searches[i]->name, searches[i]->help);
}

/* --- the page --- */

static void put_exits(struct buf *b)
{
    put_section(b, "EXIT STATUS", "");
    for (size_t i = 0; i < ARRAY_LEN(exits); i++) {
        char code[16];
        (void)snprintf(code, sizeof code, "%d", exits[i].code);
        put_entry(b, code, exits[i].text);
    }
}

void help_man(struct buf *b)
{
    /* No date: today's would change the page by itself, and one written here would grow stale. */
    buf_puts(b, ".\\\" Made by `make man` from the program's own tables.\n"
                ".TH PIPETUNE 1 \"\" \"PipeTune " PIPETUNE_VERSION "\" \"User Commands\"\n"
                ".SH NAME\npipetune \\- tune training jobs on Spark and BigDL\n");
    put_synopsis(b);
    put_section(b, "DESCRIPTION", description);
    put_commands(b);
    put_config(b);
    put_section(b, "STOPPING AND GOING ON", going_on);
    put_exits(b);
    put_entries(b, "ENVIRONMENT", variables, ARRAY_LEN(variables));
    put_entries(b, "FILES", files, ARRAY_LEN(files));
    put_entries(b, "EXAMPLES", examples, ARRAY_LEN(examples));
}
