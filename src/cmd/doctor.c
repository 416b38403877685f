/* What works here: one check per row, each says what it found and how to mend it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/doctor.h"
#include "cmd/look.h"
#include "live/study.h"

struct doctor_options {
    char *store;
    bool try, json;
};

static const struct opt_row doctor_rows[] = {
    LOOK_STORE_ROW(struct doctor_options),
    { NULL, "try", OPT_FLAG, offsetof(struct doctor_options, try), NULL, 0, 0, NULL, NULL,
      "train LeNet on MNIST for a minute" },
    LOOK_JSON_ROW(struct doctor_options),
};

void cmd_doctor_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(doctor_rows, NULL));
}

static const char *const state_names[] = { "ok", "warn", "missing" };

/* clang-format off */
static const struct check {
    const char *name;
    enum doctor_state (*look)(const struct doctor_place *p, struct doctor_finding *f);
    bool needed; /* when it is missing, no trial can run */
} checks[] = {
    { "java", doctor_java, true },
    { "spark", doctor_spark, true },
    { "bigdl", doctor_bigdl, true },
    { "data", doctor_data, true },
    { "python", doctor_python, false },
    { "pipetune-node", doctor_node, true },
    { "conf files", doctor_conf, true },
    { "store", doctor_store, true },
    { "libraries", doctor_libraries, false },
    { "machine", doctor_machine, false },
    { "descriptors", doctor_files, false },
    { "perf", doctor_perf, false },
    { "nmi watchdog", doctor_watchdog, false },
    { "events", doctor_counters, false },
    { "host name", doctor_host, false },
};
/* clang-format on */

static const struct check trying = { "try", doctor_try, true };

static json_t *finding_json(const char *name, enum doctor_state state, const struct doctor_finding *f)
{
    return json_pack("{s:s, s:s, s:s, s:s?}", "name", name, "state", state_names[state], "detail", buf_text(&f->detail),
                     "fix", f->fix.len ? buf_text(&f->fix) : NULL);
}

static void print_finding(const char *name, enum doctor_state state, const struct doctor_finding *f)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "%-8s %-13s  %s", state_names[state], name, buf_text(&f->detail));
    if (f->fix.len)
        buf_printf(&b, "; fix: %s", buf_text(&f->fix));
    buf_putc(&b, '\n');
    (void)cmd_print(&b); /* the exit code tells of the machine, not of a closed pipe */
}

/* Prints at once (some checks take seconds) or adds to `list`; and is done with the finding. */
static void tell(const char *name, enum doctor_state state, struct doctor_finding *f, json_t *list)
{
    if (list)
        (void)json_array_append_new(list, finding_json(name, state, f)); /* out of memory: a shorter list */
    else
        print_finding(name, state, f);
    buf_done(&f->detail);
    buf_done(&f->fix);
}

/* Returns whether a trial is still possible. */
static bool look(const struct doctor_place *p, const struct check *c, json_t *list)
{
    struct doctor_finding f = { 0 };
    enum doctor_state state = c->look(p, &f);
    tell(c->name, state, &f, list);
    return !(c->needed && state == CHECK_MISSING);
}

static void look_at_meters(json_t *list)
{
    for (size_t i = 0; meters[i]; i++) {
        struct doctor_finding f = { 0 };
        if (meters[i]->kind != METER_CPU) /* there are CPU times everywhere */
            tell(meters[i]->name, doctor_meter(meters[i], &f), &f, list);
    }
}

static int diagnose(struct doctor_place *p, const struct doctor_options *o)
{
    AUTO_JSON json_t *list = o->json ? json_array() : NULL;
    bool able = true;
    for (size_t i = 0; i < ARRAY_LEN(checks); i++)
        able &= look(p, &checks[i], list);
    look_at_meters(list);
    if (able && o->try)
        able = look(p, &trying, list);
    if (o->json)
        (void)cmd_print_json(json_incref(list));
    else if (!able)
        cmd_say("no trial can run here: see the lines above that begin with 'missing'");
    return able ? CMD_OK : CMD_ENVIRONMENT;
}

static int find_place(struct doctor_place *out, const struct doctor_options *o, struct err *e)
{
    const struct config nothing = { 0 };
    out->json = o->json;
    out->offer = env_offer();
    out->store = study_store_path(o->store);
    return out->store ? env_find(&out->env, &nothing, e) : err_sys(e, -ENOMEM, "cannot look");
}

int cmd_doctor(int argc, char **argv)
{
    struct doctor_options o = { 0 };
    struct opt_set set = OPT_SET(doctor_rows, &o);
    int code;
    if (!cmd_options("doctor", argc, argv, &set, 1, NULL, 0, &code)) {
        struct doctor_place p = { 0 };
        struct err e;
        code = find_place(&p, &o, &e) < 0 ? cmd_fail(&e) : diagnose(&p, &o);
        env_done(&p.env);
        free(p.store);
    }
    opt_done(&set);
    return code;
}
