/* The 58 events: what each is on this machine, whether it can be counted, and how much of the time. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "monitoring/events_probe.h"
#include "view/table.h"

#define HERE "/sys"

struct events_options {
    char *sysfs;
    bool json;
};

static const struct opt_row events_rows[] = {
    { NULL, "sysfs", OPT_TEXT, offsetof(struct events_options, sysfs), HERE, 0, 0, NULL, "DIR",
      "where the kernel's files are; of another machine's copy nothing is opened" },
    LOOK_JSON_ROW(struct events_options),
};

void cmd_events_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(events_rows, NULL));
}

struct answer {
    struct events ev;
    struct events_probe probe; /* every state absent where nothing was opened */
    bool opened, watchdog;
    double share[EVENT_NAMES];
};

static int find(struct answer *out, const char *sysfs, struct err *e)
{
    if (!io_is_dir(sysfs))
        return err_set(e, -EINVAL, "'%s' is no folder: name one that is laid out like " HERE, sysfs);
    int rc = events_resolve(&out->ev, sysfs, e);
    if (rc < 0)
        return rc;
    bool left_out[EVENT_NAMES] = { false };
    out->opened = strcmp(sysfs, HERE) == 0;
    out->watchdog = out->opened && events_nmi_watchdog("/proc");
    if (out->opened)
        events_probe(&out->probe, &out->ev, events_first_cpu(sysfs), &perf_ops_kernel);
    for (int i = 0; i < EVENT_NAMES; i++) {
        if (!out->opened)
            out->probe.state[i] = READING_ABSENT;
        left_out[i] = out->probe.state[i] == READING_UNSUPPORTED;
    }
    events_forecast(&out->ev, out->watchdog, left_out, out->share);
    return 0;
}

static const char *same_as(const struct answer *a, int i)
{
    int first = a->ev.v[i].same_as;
    return first < 0 ? NULL : a->ev.v[first].name;
}

/* --- for programs --- */

static json_t *event_json(const struct answer *a, int i)
{
    const struct event_spec *s = &a->ev.v[i];
    char code[EVENT_ENCODING_SIZE];
    bool known = s->by != EVENT_BY_NONE;
    const char *state = a->opened ? reading_state_name(a->probe.state[i]) : NULL;
    return json_pack("{s:s, s:s?, s:s?, s:s?, s:f, s:s, s:s, s:s?, s:o, s:s?}", "event", s->name, "encoding",
                     known ? event_encoding(s, code) : NULL, "by", known ? event_by_name(s->by) : NULL, "same_as",
                     same_as(a, i), "scale", s->scale, "unit", s->unit, "cpus", s->cpus, "state", state, "share",
                     json_num(a->share[i]), "why", *s->why ? s->why : NULL);
}

static json_t *core_json(const struct answer *a)
{
    const struct event_core *c = &a->ev.core;
    if (!c->found)
        return json_null();
    return json_pack("{s:s, s:s?, s:i, s:i, s:b, s:b}", "pmu", c->name, "family", *c->family ? c->family : NULL,
                     "general", c->general, "fixed", c->fixed, "hyper_threads", (int)c->smt, "nmi_watchdog",
                     (int)a->watchdog);
}

static int print_json(const struct answer *a)
{
    json_t *list = json_array();
    for (int i = 0; i < EVENT_NAMES; i++)
        (void)json_array_append_new(list, event_json(a, i)); /* memory that runs out ends the program */
    json_t *countable = a->opened ? json_integer(a->probe.n_ok) : json_null();
    return cmd_print_json(json_pack("{s:o, s:i, s:i, s:i, s:o, s:o}", "events", list, "resolved", a->ev.n_resolved,
                                    "distinct", a->ev.n_distinct, "core_distinct", a->ev.n_core, "countable", countable,
                                    "core", core_json(a)));
}

/* --- for people --- */

static void add_row(struct table *t, const struct answer *a, int i)
{
    const struct event_spec *s = &a->ev.v[i];
    const char *first = same_as(a, i);
    char code[EVENT_ENCODING_SIZE];
    table_cell(t, s->name);
    table_cell(t, event_encoding(s, code));
    table_cell(t, event_by_name(s->by));
    table_cell(t, first ? first : "-");
    table_cell(t, a->opened ? reading_state_name(a->probe.state[i]) : "-");
    if (isnan(a->share[i]))
        table_cell(t, "-");
    else
        table_cellf(t, "%.0f %%", 100 * a->share[i]);
}

static void put_summary(struct buf *b, const struct answer *a)
{
    buf_printf(b, "\n%d of %d events resolved, %d distinct encodings, %d of them on the core's counters",
               a->ev.n_resolved, EVENT_NAMES, a->ev.n_distinct, a->ev.n_core);
    if (a->opened)
        buf_printf(b, "; %d countable here", a->probe.n_ok);
    buf_putc(b, '\n');
}

static void put_core(struct buf *b, const struct answer *a)
{
    const struct event_core *c = &a->ev.core;
    if (!c->found)
        return; /* the reasons tell */
    buf_printf(b, "core PMU '%s' (%s): %d counters for any event", c->name,
               *c->family ? c->family : "of a family not known here", c->general);
    if (a->watchdog)
        buf_puts(b, ", one of them held by the NMI watchdog");
    if (c->fixed)
        buf_printf(b, ", %d for one event each", c->fixed);
    buf_puts(b, "; shares of time are estimates\n");
}

static void put_rights(struct buf *b, const struct answer *a)
{
    bool denied = false;
    for (int i = 0; i < EVENT_NAMES; i++)
        denied |= a->probe.state[i] == READING_DENIED;
    if (denied || (a->probe.n_ok > 0 && a->probe.least != REACH_SYSTEM))
        buf_printf(b, "%s: 'pipetune doctor' tells which right lacks\n",
                   denied                         ? "some may not be counted by this user"
                   : a->probe.least == REACH_USER ? "only own processes may be counted, without the kernel's part"
                                                  : "only own processes may be counted");
}

/* Each reason once, with how many events it is the reason of. */
static void put_reasons(struct buf *b, const struct events *ev)
{
    for (int i = 0; i < EVENT_NAMES; i++) {
        bool told = *ev->v[i].why == '\0';
        int n = 0;
        for (int k = 0; k < EVENT_NAMES; k++) {
            bool same = strcmp(ev->v[k].why, ev->v[i].why) == 0;
            told |= same && k < i;
            n += same;
        }
        if (!told)
            buf_printf(b, "%d not resolved: %s\n", n, ev->v[i].why);
    }
}

static int print_table(const struct answer *a)
{
    static const char *const heads[] = { "event", "encoding", "by", "same as", "state", ">runs", NULL };
    struct table t;
    AUTO_BUF struct buf b = BUF_INIT;
    table_init(&t, heads);
    for (int i = 0; i < EVENT_NAMES; i++)
        add_row(&t, a, i);
    table_put(&t, &b, 0);
    table_done(&t);
    put_summary(&b, a);
    put_core(&b, a);
    put_rights(&b, a);
    put_reasons(&b, &a->ev);
    return cmd_print(&b);
}

int cmd_events(int argc, char **argv)
{
    struct events_options o = { 0 };
    struct opt_set set = OPT_SET(events_rows, &o);
    struct err e;
    int code;
    if (opt_presets(&set, &e) < 0)
        return cmd_fail(&e);
    if (!cmd_options("events", argc, argv, &set, 1, NULL, 0, &code)) {
        struct answer a = { .opened = false };
        code = find(&a, o.sysfs, &e) < 0 ? cmd_fail(&e) : o.json ? print_json(&a) : print_table(&a);
    }
    opt_done(&set);
    return code;
}
