/* The manual pages, from the tables that the program itself runs by; only what no table says is written here. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "cmd/help.h"
#include "cmd/help_facts.h"
#include "core/config.h"
#include "core/space.h"
#include "search/search.h"

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
    "After SIGHUP or SIGKILL the trials run on; the same command finds them and reads on where the last one stopped.\n"
    "With --detach the study goes on in the background: pipetune attach shows it, pipetune stop ends it.\n"
    "A study that is finished is only shown again; --again makes a new one, NAME@2.\n"
    "A config that has changed is refused with the keys that differ; max_trials, parallel, monitoring, influxdb and "
    "store may change.\n";

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

/* Nothing where the page has none of the kind. */
static void put_facts(struct buf *b, const struct help_kind *kind, const char *page)
{
    size_t n = 0;
    for (const struct help_fact *f = kind->facts; f->pages; f++) {
        if (!help_is_on(kind->facts, f, page))
            continue;
        if (n++ == 0)
            put_section(b, kind->title, "");
        put_entry(b, f->tag, f->text);
    }
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

static void put_choices(struct buf *b, const struct opt_row *row)
{
    for (size_t i = 0; row->choices && row->choices[i]; i++) {
        put_text(b, i ? ", " : ": ");
        put_text(b, row->choices[i]);
    }
}

static void put_option(struct buf *b, const struct opt_row *row)
{
    char option[64];
    buf_puts(b, ".TP\n\\fB\\-\\-");
    put_text(b, opt_name(row, option));
    buf_puts(b, row->arg ? "\\fR \\fI" : "");
    put_text(b, row->arg ? row->arg : "");
    buf_puts(b, "\\fR\n");
    put_text(b, row->help);
    put_choices(b, row);
    if (row->preset && row->type != OPT_FLAG) {
        put_text(b, " (default ");
        put_text(b, row->preset);
        put_text(b, ")");
    }
    buf_putc(b, '\n');
}

/* Those of the config stand apart. */
static void put_options(struct buf *b, const struct command *c)
{
    struct cmd_rows rows = { .n = 0 };
    bool config = false;
    if (c->options)
        c->options(&rows);
    if (rows.n > 0)
        put_section(b, "OPTIONS", "");
    for (size_t i = 0; i < rows.n; i++) {
        if (rows.v[i].section && !config)
            buf_puts(b, ".SS Keys of the config\nThe command line wins over the config.\n");
        config = rows.v[i].section != NULL;
        put_option(b, &rows.v[i]);
    }
}

static void put_commands(struct buf *b)
{
    put_section(b, "COMMANDS",
                "Without a command, --config FILE means run.\n"
                "Every command takes --help; those that show something print JSON with --json.\n"
                "Options may be written --name VALUE or --name=VALUE, before or after other words; -- ends them.\n");
    for (const struct command *c = cmd_table; c->name; c++) {
        char page[64];
        (void)snprintf(page, sizeof page, "pipetune-%s(1)", c->name);
        buf_puts(b, ".TP\n");
        put_bold(b, page, strlen(page) - 3);
        buf_puts(b, "(1)\n");
        put_text(b, c->help);
        buf_puts(b, ".\n");
    }
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
    put_text(b, buf_text(&text));
    put_choices(b, row);
    buf_putc(b, '\n');
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
        const char *what = k->id == KNOB_PROPERTY ? "any property of Spark" : knob_kind_bounds(k, bounds);
        (void)snprintf(text, sizeof text, "%s; %s", k->hot ? "hot" : "cold", what);
        put_entry(b, k->name, text);
        if (k->id == KNOB_PROPERTY)
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

/* --- the pages --- */

/* No date: today's would change the page by itself, and one written here would grow stale. */
static void put_head(struct buf *b, const char *page, const char *what)
{
    buf_puts(b, ".\\\" Made by `make man` from the program's own tables.\n.TH ");
    for (const char *c = page; *c; c++)
        buf_printf(b, "%s%c", *c == '-' ? "\\" : "", toupper((unsigned char)*c));
    buf_puts(b, " 1 \"\" \"PipeTune " PIPETUNE_VERSION "\" \"User Commands\"\n.SH NAME\n");
    put_text(b, page);
    buf_puts(b, " \\- ");
    put_text(b, what);
    buf_putc(b, '\n');
}

void help_man(struct buf *b)
{
    put_head(b, "pipetune", "tune training jobs on Spark and BigDL");
    put_synopsis(b);
    put_section(b, "DESCRIPTION", description);
    put_commands(b);
    put_config(b);
    put_section(b, "STOPPING AND GOING ON", going_on);
    for (const struct help_kind *kind = help_kinds; kind->title; kind++)
        put_facts(b, kind, "pipetune");
}

void help_man_of(struct buf *b, const struct command *c)
{
    char page[64];
    (void)snprintf(page, sizeof page, "pipetune-%s", c->name);
    put_head(b, page, c->help);
    put_section(b, "SYNOPSIS", "");
    put_usage(b, c);
    put_section(b, "DESCRIPTION", help_about(c->name));
    put_options(b, c);
    for (const struct help_kind *kind = help_kinds; kind->title; kind++)
        put_facts(b, kind, c->name);
    put_section(b, "SEE ALSO", "");
    put_bold(b, "pipetune", strlen("pipetune"));
    buf_puts(b, "(1)\n");
}
