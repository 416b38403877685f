/* The collectors of one machine as a daemon: options and config in, lines out, the account at the end. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "core/config.h"
#include "live/monitor.h"
#include "monitoring/event_choice_cfg.h"

enum { CONFIG_MAX = 16 << 20, DRAIN_MS = 10000, ROWS_MAX = 32 };

struct monitor_options {
    char *config, *meters, *udp_in, *spool;
    bool events, once, print;
};

#define FIELD(member) offsetof(struct monitor_options, member)
/* clang-format off */
static const struct opt_row monitor_rows[] = {
    { NULL, "config", OPT_TEXT, FIELD(config), NULL, 0, 0, NULL, "FILE", "a config, of which 'influxdb' and 'monitoring' are read (also the first word)" },
    { NULL, "meters", OPT_TEXT, FIELD(meters), NULL, 0, 0, NULL, "NAME,…", "of the config's, or any that needs none (default: the config's, else rapl or perf-power)" },
    { NULL, "events", OPT_FLAG, FIELD(events), "true", 0, 0, NULL, NULL, "count the 58 events (or those that the config names) and the kernel's software events, of the whole machine (the default; --no-events)" },
    { NULL, "udp_in", OPT_TEXT, FIELD(udp_in), NULL, 0, 0, NULL, "ADDRESS:PORT", "pass on line protocol that applications send there, such as 127.0.0.1:8094" },
    { NULL, "spool", OPT_TEXT, FIELD(spool), NULL, 0, 0, NULL, "DIR", "the folder of the store in which lines wait for the server (default $STATE_DIRECTORY, else ./pipetune-monitor)" },
    { NULL, "once", OPT_FLAG, FIELD(once), NULL, 0, 0, NULL, NULL, "one round of samples, delivered; then the end" },
    { NULL, "print", OPT_FLAG, FIELD(print), NULL, 0, 0, NULL, NULL, "lines to stdout; nothing is sent or kept" },
};
/* clang-format on */

static struct opt_set monitor_opts(struct monitor_options *o)
{
    return (struct opt_set){ .rows = monitor_rows, .n = ARRAY_LEN(monitor_rows), .target = o };
}

/* Of the config's keys those that mean something here, in `rows`. */
static struct opt_set config_part(struct config *c, struct opt_row rows[ROWS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < config_rows_n && n < ROWS_MAX; i++) {
        const struct opt_row *r = &config_rows[i];
        if (r->section && (strcmp(r->section, "influxdb") == 0 ||
                           (strcmp(r->section, "monitoring") == 0 && strcmp(r->key, "interval") == 0)))
            rows[n++] = *r;
    }
    return (struct opt_set){ .rows = rows, .n = n, .target = c };
}

void cmd_monitor_options(struct cmd_rows *out)
{
    struct opt_row rows[ROWS_MAX];
    struct opt_set own = monitor_opts(NULL), config = config_part(NULL, rows);
    cmd_rows_add(out, &own);
    cmd_rows_add(out, &config);
}

/* What is to be done, as command line and config say it together. */
struct setup {
    struct monitor_options o;
    struct config cfg;
    struct json_doc doc, chosen; /* the config; those of its meters that --meters names */
    struct meters_cfg meters;
    struct event_choice events; /* what the config says of them */
    struct buf udp_address;
    char *spool;
};

static void setup_done(struct setup *s)
{
    struct opt_set own = monitor_opts(&s->o);
    meters_cfg_done(&s->meters);
    json_doc_done(&s->chosen);
    json_doc_done(&s->doc);
    config_done(&s->cfg);
    opt_done(&own);
    buf_done(&s->udp_address);
    free(s->spool);
}

/* --- meters --- */

static bool is_named(const json_t *entry, const char *name)
{
    const char *own =
        json_is_string(entry) ? json_string_value(entry) : json_string_value(json_object_get(entry, "name"));
    return own && strcmp(own, name) == 0;
}

/* The config's entries of that name from one of its two places. */
static size_t add_entries(json_t *to, json_t *from, const char *name)
{
    size_t n = 0;
    if (from && !json_is_array(from)) {
        n = is_named(from, name);
        return n && json_array_append(to, from) == 0 ? n : 0;
    }
    for (size_t i = 0; i < json_array_size(from); i++)
        if (is_named(json_array_get(from, i), name) && json_array_append(to, json_array_get(from, i)) == 0)
            n++;
    return n;
}

static int read_chosen(struct setup *s, const json_t *list, struct err *e)
{
    AUTO_JSON json_t *root = json_pack("{s:{s:O}}", "monitoring", "meters", list);
    AUTO_FREE char *text = json_text(root);
    if (!text)
        return err_sys(e, -ENOMEM, "--meters");
    int rc = json_doc_parse(&s->chosen, "--meters", text, strlen(text), e);
    return rc < 0 ? rc : meters_cfg_read(&s->meters, &s->chosen, e);
}

/* `names` by commas: as the config describes them, or as they are without one. */
static int choose_meters(struct setup *s, const char *names, struct err *e)
{
    AUTO_JSON json_t *list = json_array();
    json_t *monitoring = json_object_get(s->doc.root, "monitoring");
    for (const char *at = names; *at;) {
        size_t len = strcspn(at, ",");
        AUTO_FREE char *name = strndup(at, len);
        if (!name || !list)
            return err_sys(e, -ENOMEM, "--meters");
        size_t n = add_entries(list, json_object_get(monitoring, "meters"), name) +
                   add_entries(list, json_object_get(s->doc.root, "powerMeter"), name);
        if (n == 0)
            (void)json_array_append_new(list, json_string(name)); /* memory that runs out ends the program */
        at += len + (at[len] == ',');
    }
    return read_chosen(s, list, e);
}

/* Nobody named one: what measures without being told more. */
static const char *default_meter(void)
{
    static const char *const names[] = { "rapl", "perf-power" };
    static const struct meter_cfg plain = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct meter_ops *meter = meter_find_local(names[i]);
        AUTO_BUF struct buf detail = BUF_INIT, fix = BUF_INIT;
        if (meter && meter->probe(&plain, &detail, &fix) == 0)
            return names[i];
    }
    return NULL;
}

static int find_meters(struct setup *s, struct err *e)
{
    int rc = meters_cfg_read(&s->meters, &s->doc, e);
    const char *names = s->o.meters;
    if (rc == 0 && !names && s->meters.n == 0) {
        names = default_meter();
        if (!names)
            cmd_say(
                "no energy is measured: neither rapl nor perf-power can be read here (`pipetune doctor` tells why); "
                "--meters names others");
    }
    if (rc < 0 || !names)
        return rc;
    meters_cfg_done(&s->meters);
    return choose_meters(s, names, e);
}

/* --- places --- */

static int bad_address(const char *text, struct err *e)
{
    return err_set(e, -EINVAL, "--udp-in '%s' must be ADDRESS:PORT, such as 127.0.0.1:8094 or [::1]:8094", text);
}

/* "[::1]:8094", "127.0.0.1:8094", "8094" */
static int read_udp(struct setup *s, struct monitor_cfg *to, struct err *e)
{
    const char *text = s->o.udp_in;
    if (!text)
        return 0;
    const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
    size_t len = colon ? (size_t)(colon - text) : 0, digits = strspn(port, "0123456789");
    bool brackets = len >= 2 && text[0] == '[' && text[len - 1] == ']';
    long number = strtol(port, NULL, 10);
    if (digits == 0 || digits > 5 || port[digits] || number > UINT16_MAX || (colon && len == 0))
        return bad_address(text, e);
    buf_put(&s->udp_address, text + brackets, len - 2 * brackets);
    if (len == 0)
        buf_puts(&s->udp_address, "127.0.0.1");
    if (s->udp_address.failed)
        return err_sys(e, -ENOMEM, "--udp-in");
    to->udp_address = buf_text(&s->udp_address);
    to->udp_port = (uint16_t)number;
    return 0;
}

static int find_spool(struct setup *s, struct err *e)
{
    const char *state = getenv("STATE_DIRECTORY"); /* systemd's; may be a list */
    if (s->o.spool)
        s->spool = strdup(s->o.spool);
    else
        s->spool = state && *state ? strndup(state, strcspn(state, ":")) : strdup("pipetune-monitor");
    return s->spool ? 0 : err_sys(e, -ENOMEM, "--spool");
}

/* --- all of it --- */

static int read_config(struct setup *s, const char *path, struct err *e)
{
    if (!path)
        return json_doc_parse(&s->doc, "config", "{}", 2, e);
    if (!io_exists(path))
        return err_set(e, -EINVAL, "no config '%s'", path);
    AUTO_BUF struct buf text = BUF_INIT;
    int rc = io_read_file(&text, path, CONFIG_MAX, e);
    if (rc == 0)
        rc = json_doc_parse(&s->doc, path, buf_text(&text), text.len, e);
    return rc < 0 ? rc : config_read(&s->cfg, &s->doc, e);
}

/* The command line is read twice: for the config's name, and over what the config says. 1: done, *out_exit tells. */
static int read_all(struct setup *s, int argc, char **argv, int *out_exit, struct err *e)
{
    struct opt_row rows[ROWS_MAX];
    struct opt_set sets[] = { monitor_opts(&s->o), config_part(&s->cfg, rows) }, all = config_opts(&s->cfg);
    AUTO_STRV struct strv words = STRV_INIT, again = STRV_INIT;
    int rc = opt_presets(&sets[0], e);
    if (rc == 0)
        rc = opt_presets(&all, e);
    if (rc < 0)
        return rc;
    if (cmd_options("monitor", argc, argv, sets, ARRAY_LEN(sets), &words, 1, out_exit))
        return 1;
    rc = read_config(s, s->o.config ? s->o.config : words.n ? words.v[0] : NULL, e);
    if (rc == 0)
        rc = event_choice_cfg_read(&s->events, &s->doc, e);
    return rc < 0 ? rc : opt_parse(argc, argv, sets, ARRAY_LEN(sets), &again, e);
}

static int check(const struct setup *s, struct err *e)
{
    if (s->o.print || s->cfg.url)
        return 0;
    return err_set(e, -EINVAL,
                   "where to? --url http://HOST:8086 names an InfluxDB ('influxdb.url' in a config), --print "
                   "writes lines to stdout");
}

static void on_note(void *ctx, const char *text)
{
    (void)ctx;
    cmd_say("%s", text);
}

static int on_lines(void *ctx, const char *bytes, size_t len)
{
    (void)ctx;
    return io_write_all(STDOUT_FILENO, bytes, len);
}

static const struct monitor_ops monitor_ops = { .note = on_note, .lines = on_lines };

static void print_account(const struct monitor_result *r, const char *spool)
{
    char text[512];
    deliver_account(&r->counts, text, sizeof text);
    cmd_say("%s", text);
    if (r->counts.waiting)
        cmd_say("%" PRIu64 " lines wait in '%s' for the next start", r->counts.waiting, spool);
    if (r->counts.quarantined)
        cmd_say("%" PRIu64 " lines that were rejected are in '%s/monitor.db', table 'outbox', with the reasons",
                r->counts.quarantined, spool);
    if (r->relay.rejected || r->relay.lost || r->relay.unwritten)
        cmd_say("udp input: %" PRIu64 " points, %" PRIu64 " rejected, %" PRIu64 " left out, %" PRIu64 " datagrams lost",
                r->relay.points, r->relay.rejected, r->relay.unwritten, r->relay.lost);
    if (r->missed)
        cmd_say("%" PRIu64 " ticks missed", r->missed);
    if (r->unwritten)
        cmd_say("%" PRIu64 " points were left out", r->unwritten);
}

static int run(struct setup *s, struct err *e)
{
    const struct config *c = &s->cfg;
    const struct deliver_cfg deliver = deliver_cfg_of(c);
    struct monitor_cfg cfg = {
        .interval_ms = (int)(c->interval_s * 1000),
        .meters = s->meters.v,
        .n_meters = s->meters.n,
        .only = event_choice_only(&s->events),
        .events = s->o.events && strcmp(c->scope, "none") != 0,
        .deliver = s->o.print ? NULL : &deliver,
        .dir = s->spool,
        .drain_ms = DRAIN_MS,
        .once = s->o.once,
    };
    struct monitor_result r;
    int rc = read_udp(s, &cfg, e);
    if (rc == 0)
        rc = monitor_run(&cfg, &monitor_ops, NULL, &r, e);
    if (rc == -EPIPE && s->o.print)
        return CMD_OK; /* a reader that has seen enough (`| head`) is no failure */
    if (rc < 0)
        return rc;
    print_account(&r, s->spool);
    return deliver_complete(&r.counts) && !r.unwritten && !r.relay.unwritten ? CMD_OK : CMD_NONE;
}

int cmd_monitor(int argc, char **argv)
{
    struct setup s = { 0 };
    struct err e;
    int code = CMD_OK, rc = read_all(&s, argc, argv, &code, &e);
    if (rc == 0)
        rc = check(&s, &e);
    if (rc == 0)
        rc = find_spool(&s, &e);
    if (rc == 0)
        rc = find_meters(&s, &e);
    if (rc == 0)
        rc = code = run(&s, &e);
    if (rc < 0)
        code = cmd_fail(&e);
    setup_done(&s);
    return code;
}
