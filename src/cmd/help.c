#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "base/suggest.h"
#include "cmd/cmd.h"
#include "cmd/help.h"
#include "cmd/look.h"
#include "cmd/table.h"
#include "core/config.h"
#include "core/space.h"
#include "search/search.h"

struct help_options {
    bool man, json;
};

static const struct opt_row help_rows[] = {
    { NULL, "man", OPT_FLAG, offsetof(struct help_options, man), NULL, 0, 0, NULL, NULL, "print the manual page" },
    LOOK_JSON_ROW(struct help_options),
};

/* --- the commands --- */

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

static void put_command(struct buf *b, const struct command *c)
{
    buf_printf(b, "usage: pipetune %s %s\n\n%s\n", c->name, c->usage, c->help);
    AUTO_BUF struct buf options = BUF_INIT;
    if (c->options)
        c->options(&options);
    if (options.len > 0)
        buf_printf(b, "\noptions:\n%s", buf_text(&options));
    b->failed |= options.failed;
}

static json_t *command_json(const struct command *c)
{
    AUTO_BUF struct buf options = BUF_INIT;
    if (c->options)
        c->options(&options);
    return options.failed ? NULL
                          : json_pack("{s:s, s:s, s:s, s:s}", "command", c->name, "usage", c->usage, "help", c->help,
                                      "options", buf_text(&options));
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
        const char *what = k->id == KNOB_SPARK ? "any property of Spark" : knob_kind_bounds(k, bounds);
        buf_printf(b, "  %-16s %-4s %s\n", k->name, k->hot ? "hot" : "cold", what);
        if (k->id == KNOB_SPARK)
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

static int print_topic(const char *topic, bool json)
{
    AUTO_BUF struct buf b = BUF_INIT;
    const struct command *c = cmd_table;
    while (topic && c->name && strcmp(c->name, topic) != 0)
        c++;
    if (!topic) {
        if (json)
            return cmd_print_json(commands_json());
        put_commands(&b);
    } else if (strcmp(topic, "config") == 0) {
        if (json)
            return cmd_print_json(config_json());
        put_config(&b);
    } else if (c->name) {
        if (json)
            return cmd_print_json(command_json(c));
        put_command(&b, c);
    } else {
        return unknown(topic);
    }
    return cmd_print(&b);
}

static int print_man(const struct strv *words, bool json)
{
    AUTO_BUF struct buf b = BUF_INIT;
    struct err e;
    if (words->n > 0 || json) {
        (void)err_set(&e, -EINVAL, "option '--man' prints the whole manual page: no command, config or --json with it");
        return cmd_fail(&e);
    }
    help_man(&b);
    return cmd_print(&b);
}

int cmd_help(int argc, char **argv)
{
    struct help_options o = { 0 };
    struct opt_set set = { .rows = help_rows, .n = ARRAY_LEN(help_rows), .target = &o };
    AUTO_STRV struct strv words = STRV_INIT;
    int code;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return print_topic(NULL, false); /* and not the help on help */
    if (cmd_options("help", argc, argv, &set, 1, &words, 1, &code))
        return code;
    if (o.man)
        return print_man(&words, o.json);
    return print_topic(words.n ? words.v[0] : NULL, o.json);
}
