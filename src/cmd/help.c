#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "cmd/help.h"
#include "cmd/help_facts.h"
#include "cmd/look.h"
#include "core/config.h"
#include "core/space.h"
#include "search/search.h"
#include "view/table.h"

struct help_options {
    bool man, names, json;
};

static const struct opt_row help_rows[] = {
    { NULL, "man", OPT_FLAG, offsetof(struct help_options, man), NULL, 0, 0, NULL, NULL, "print the manual page" },
    { NULL, "names", OPT_FLAG, offsetof(struct help_options, names), NULL, 0, 0, NULL, NULL,
      "print the names of the commands alone, a line each" },
    LOOK_JSON_ROW(struct help_options),
};

void cmd_help_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(help_rows, NULL));
}

/* --- the commands --- */

enum { FACT_COLUMN = 28 };

static void put_commands(struct buf *b)
{
    buf_puts(b, "usage: pipetune COMMAND [OPTION…]\n\n");
    for (const struct command *c = cmd_table; c->name; c++)
        buf_printf(b, "  %-8s %s\n", c->name, c->help);
    buf_puts(b, "\n'pipetune --config FILE' is 'pipetune run --config FILE'.\n"
                "'pipetune help COMMAND' lists its options, 'pipetune help config' the keys of a config.\n"
                "Exit codes: 0 a trial finished (or all is well), 1 none did, 2 wrong usage or config,\n"
                "3 this machine lacks something, 130 interrupted and resumable.\n");
}

static json_t *commands_json(void)
{
    json_t *list = json_array();
    for (const struct command *c = cmd_table; list && c->name; c++) {
        json_t *one = json_pack("{s:s, s:s}", "command", c->name, "help", c->help);
        if (json_array_append_new(list, one) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* A long one stands above its text. */
static void put_fact(struct buf *b, const struct help_fact *f)
{
    size_t columns = utf8_columns(f->tag) + 2; /* %-26s would count bytes */
    buf_printf(b, "  %s", f->tag);
    if (columns + 2 > FACT_COLUMN) {
        buf_putc(b, '\n');
        columns = 0;
    }
    buf_printf(b, "%*s", (int)(FACT_COLUMN - columns), "");
    table_put_wrapped(b, f->text, FACT_COLUMN, 0);
}

/* As manual pages have it; in lines that fit. */
static void put_facts(struct buf *b, const struct help_kind *kind, const char *page)
{
    bool any = false;
    for (const struct help_fact *f = kind->facts; f->pages; f++) {
        if (!help_is_on(kind->facts, f, page))
            continue;
        if (!any)
            buf_printf(b, "\n%s:\n", kind->heading);
        any = true;
        put_fact(b, f);
    }
}

static void put_options(struct buf *b, const struct cmd_rows *rows)
{
    size_t own = 0;
    while (own < rows->n && !rows->v[own].section)
        own++;
    const struct opt_set first = { .rows = rows->v, .n = own };
    const struct opt_set config = { .rows = rows->v + own, .n = rows->n - own };
    if (first.n > 0)
        buf_puts(b, "\noptions:\n");
    opt_help(b, &first);
    if (config.n > 0)
        buf_puts(b, "\nkeys of the config, as options:\n");
    opt_help(b, &config);
}

static void put_command(struct buf *b, const struct command *c)
{
    struct cmd_rows rows = { .n = 0 };
    if (c->options)
        c->options(&rows);
    buf_printf(b, "usage: pipetune %s %s\n\n%s\n", c->name, c->usage, c->help);
    if (*help_about(c->name))
        buf_putc(b, '\n');
    table_put_lines(b, help_about(c->name), 0);
    put_options(b, &rows);
    for (const struct help_kind *kind = help_kinds; kind->title; kind++)
        put_facts(b, kind, c->name);
}

static json_t *facts_json(const struct help_kind *kind, const char *page)
{
    json_t *list = json_array();
    for (const struct help_fact *f = kind->facts; list && f->pages; f++)
        if (help_is_on(kind->facts, f, page) &&
            json_array_append_new(list, json_pack("{s:s, s:s}", "name", f->tag, "text", f->text)) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *command_json(const struct command *c)
{
    AUTO_BUF struct buf options = BUF_INIT;
    struct cmd_rows rows = { .n = 0 };
    if (c->options)
        c->options(&rows);
    put_options(&options, &rows);
    json_t *j = options.failed ? NULL
                               : json_pack("{s:s, s:s, s:s, s:s, s:s}", "command", c->name, "usage", c->usage, "help",
                                           c->help, "about", help_about(c->name), "options", buf_text(&options));
    int rc = j ? 0 : -1;
    for (const struct help_kind *kind = help_kinds; rc == 0 && kind->title; kind++)
        rc = json_object_set_new(j, kind->key, facts_json(kind, c->name));
    if (rc == 0)
        return j;
    json_decref(j);
    return NULL;
}

/* --- the config --- */

const struct help_key help_wide_keys[] = {
    { "hyperParameters", "the space, one member each: [VALUE, …], {\"min\":…, \"max\":…, \"scale\":\"log\"}, "
                         "{\"range\":[START, END, STEP]} (END excluded), or {\"values\":[…], \"affects\":\"speed\"}" },
    { "systemParameters", "the knobs, one member each: [VALUE, …], of which the first is the default setting" },
    { "study.secrets",
      "names, or patterns with *, of what is a secret beside all that Spark redacts (secret, password, token, "
      "access.key): not stored, shown as ***, compared by its sum" },
    { "nodes", "[HOST, …], or objects with host, user, port, key" },
    { "places.slurm.options",
      "options of sbatch for each job, such as [\"--qos=long\"]; places.slurm: {} is enough to run "
      "trials as jobs of Slurm" },
    { "monitoring.events",
      "hardware events to count, of the 58 that `pipetune events` lists (default: all; [] is none): a name "
      "or a list of names" },
    { "monitoring.meters", "sources of energy or power (rapl, perf-power, pdu, snmp, pcm, estimate): a name, "
                           "{\"name\":…, …}, or a list of these" },
    { "powerMeter", "short for monitoring.meters" },
    { NULL, NULL },
};

const char help_example[] = "{ \"bigdlConf\": \"bigdl/config/mnist.json\",\n"
                            "  \"study\": { \"name\": \"demo\", \"epochs\": 2 },\n"
                            "  \"systemParameters\": { \"cores\": [\"2\", \"1\"], \"memory\": [\"2\"] },\n"
                            "  \"hyperParameters\": { \"batch_size\": [1024, 512],\n"
                            "                       \"learning_rate\": [0.1, 0.4] } }\n";

const char *help_type(const struct opt_row *row)
{
    static const char *const names[] = { [OPT_FLAG] = "boolean",
                                         [OPT_INT] = "integer",
                                         [OPT_REAL] = "number",
                                         [OPT_TEXT] = "string",
                                         [OPT_CHOICE] = "string" };
    return names[row->type];
}

static void put_choices(struct buf *b, const struct opt_row *row)
{
    for (size_t i = 0; row->choices && row->choices[i]; i++)
        buf_printf(b, "%s%s", i ? ", " : ": ", row->choices[i]);
}

static void put_key(struct buf *b, const struct opt_row *row)
{
    char option[64];
    buf_printf(b, "  %-16s %-8s default %-9s %s", row->key, help_type(row), row->preset ? row->preset : "-", row->help);
    put_choices(b, row);
    buf_printf(b, "  (--%s)\n", opt_name(row, option));
}

static void put_sections(struct buf *b)
{
    const char *section = NULL;
    for (size_t i = 0; i < config_rows_n; i++) {
        const struct opt_row *row = &config_rows[i];
        if (!section || strcmp(section, row->section) != 0)
            buf_printf(b, "\n%s:\n", *row->section ? row->section : "top level");
        section = row->section;
        put_key(b, row);
    }
}

static void put_knobs(struct buf *b)
{
    buf_puts(b, "\nsystem parameters (hot: changes while a trial runs; cold: needs a launch):\n");
    for (const struct knob_kind *k = knob_kinds;; k++) {
        char bounds[KNOB_BOUNDS_MAX];
        const char *what = k->id == KNOB_PROPERTY ? "any property of Spark" : knob_kind_bounds(k, bounds);
        buf_printf(b, "  %-16s %-4s %s\n", k->name, k->hot ? "hot" : "cold", what);
        if (k->id == KNOB_PROPERTY)
            return;
    }
}

static void put_config(struct buf *b)
{
    buf_printf(b, "A config is a JSON object; only bigdlConf and hyperParameters must be there:\n\n%s", help_example);
    put_sections(b);
    buf_puts(b, "\nlists and objects:\n");
    for (const struct help_key *k = help_wide_keys; k->key; k++)
        buf_printf(b, "  %-18s %s\n", k->key, k->help);
    put_knobs(b);
    buf_puts(b, "\nsearches:\n");
    for (size_t i = 0; searches[i]; i++)
        buf_printf(b, "  %-16s %s\n", searches[i]->name, searches[i]->help);
}

static json_t *key_json(const struct opt_row *row)
{
    char option[80] = "--", key[128];
    (void)opt_name(row, option + 2);
    (void)snprintf(key, sizeof key, "%s%s%s", row->section, *row->section ? "." : "", row->key);
    return json_pack("{s:s, s:s, s:s, s:s?, s:s}", "key", key, "option", option, "type", help_type(row), "default",
                     row->preset, "help", row->help);
}

static json_t *config_json(void)
{
    json_t *list = json_array();
    int rc = list ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < config_rows_n; i++)
        rc = json_array_append_new(list, key_json(&config_rows[i]));
    for (const struct help_key *k = help_wide_keys; rc == 0 && k->key; k++)
        rc = json_array_append_new(list, json_pack("{s:s, s:n, s:s, s:n, s:s}", "key", k->key, "option", "type",
                                                   "object", "default", "help", k->help));
    if (rc == 0)
        return list;
    json_decref(list);
    return NULL;
}

/* --- which of them --- */

static int unknown(const char *topic)
{
    const char *names[64] = { "config" };
    size_t n = 1;
    for (const struct command *c = cmd_table; c->name && n < ARRAY_LEN(names); c++)
        names[n++] = c->name;
    const char *near = suggest_nearest(topic, names, n);
    struct err e;
    if (near)
        (void)err_set(&e, -EINVAL, "no help on '%s': did you mean '%s'?", topic, near);
    else
        (void)err_set(&e, -EINVAL, "no help on '%s': see 'pipetune help'", topic);
    return cmd_fail(&e);
}

/* NULL: none of that name. */
static const struct command *find(const char *name)
{
    const struct command *c = cmd_table;
    while (c->name && strcmp(c->name, name) != 0)
        c++;
    return c->name ? c : NULL;
}

static int print_names(void)
{
    AUTO_BUF struct buf b = BUF_INIT;
    for (const struct command *c = cmd_table; c->name; c++)
        buf_printf(&b, "%s\n", c->name);
    return cmd_print(&b);
}

static int print_topic(const char *topic, bool json)
{
    AUTO_BUF struct buf b = BUF_INIT;
    const struct command *c = topic ? find(topic) : NULL;
    bool config = topic && strcmp(topic, "config") == 0;
    if (topic && !c && !config)
        return unknown(topic);
    if (json)
        return cmd_print_json(c ? command_json(c) : config ? config_json() : commands_json());
    if (c)
        put_command(&b, c);
    else if (config)
        put_config(&b);
    else
        put_commands(&b);
    return cmd_print(&b);
}

static int print_man(const char *topic, bool json)
{
    AUTO_BUF struct buf b = BUF_INIT;
    struct err e;
    const struct command *c = topic ? find(topic) : NULL;
    if (topic && !c && strcmp(topic, "config") != 0)
        return unknown(topic);
    if (json || (topic && !c)) {
        (void)err_set(&e, -EINVAL,
                      "option '--man' prints the manual page of pipetune, where the config stands, too, or of a "
                      "command: no JSON");
        return cmd_fail(&e);
    }
    if (c)
        help_man_of(&b, c);
    else
        help_man(&b);
    return cmd_print(&b);
}

int cmd_help(int argc, char **argv)
{
    struct help_options o = { 0 };
    struct opt_set set = OPT_SET(help_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    int code;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return print_topic(NULL, false); /* and not the help on help */
    if (cmd_options("help", argc, argv, &set, 1, &words, 1, &code))
        return code;
    const char *topic = words.n ? words.v[0] : NULL;
    if (o.names)
        return print_names();
    return o.man ? print_man(topic, o.json) : print_topic(topic, o.json);
}
