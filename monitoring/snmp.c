#include "monitoring/snmp.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "monitoring/meter_util.h"
#include "monitoring/snmp_agent.h"
#include "monitoring/snmp_oid.h"

enum { TIMEOUT_MS = 2000 };

struct meter {
    struct meter_cfg cfg;
    struct snmp_agent *agent;
    struct snmp_model model;
    size_t n_asked; /* values of one outlet */
    size_t at_once; /* outlets of one GET: fewer once the agent found an answer too big */
};

/* --- opening --- */

static int unknown_model(const char *name, struct err *e)
{
    AUTO_BUF struct buf list = BUF_INIT;
    for (const struct snmp_model *m = snmp_oid_models; m->name; m++)
        buf_printf(&list, "%s%s", list.len ? ", " : "", m->name);
    return err_set(e, -EINVAL, "there is no model '%s': there are %s, or give \"oid\"", name, buf_text(&list));
}

static int choose_model(struct snmp_model *out, const struct meter_cfg *cfg, struct err *e)
{
    if (!cfg->host || !cfg->n_outlets || cfg->n_outlets > METER_READINGS_MAX)
        return err_set(e, -EINVAL, "snmp needs \"host\" and \"outlets\", at most %d of them", METER_READINGS_MAX);
    if (!cfg->model == !cfg->oid)
        return err_set(e, -EINVAL, "snmp needs either \"model\" or \"oid\"");
    const struct snmp_model *row = cfg->model ? snmp_oid_model(cfg->model) : NULL;
    if (cfg->model && !row)
        return unknown_model(cfg->model, e);
    *out = row ? *row : (struct snmp_model){ .name = "oid", .oid = { cfg->oid }, .scale = 1 };
    if (cfg->scale > 0) { /* then it is known what a unit is */
        out->scale = cfg->scale;
        out->oid[SNMP_DIGITS] = NULL;
    }
    return 0;
}

static int check_oids(const struct snmp_model *model, const struct meter_cfg *cfg, struct err *e)
{
    struct snmp_oid oid;
    if (cfg->n_outlets > 1 && !snmp_oid_has_outlet(model->oid[SNMP_POWER]))
        return err_set(e, -EINVAL, "'%s' names the same value for every outlet: it needs {outlet}",
                       model->oid[SNMP_POWER]);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < cfg->n_outlets; i++)
        rc = snmp_oid_read(&oid, model->oid[SNMP_POWER], cfg->outlets[i].outlet, e);
    return rc;
}

static int snmp_meter_open(struct meter **out, const struct meter_cfg *cfg, struct err *e)
{
    struct snmp_model model;
    int rc = choose_model(&model, cfg, e);
    if (rc == 0)
        rc = check_oids(&model, cfg, e);
    if (rc < 0)
        return rc;
    struct meter *m = calloc(1, sizeof *m);
    if (!m)
        return err_sys(e, -ENOMEM, "cannot ask '%s'", cfg->host);
    *m = (struct meter){ .cfg = *cfg, .model = model };
    for (int i = 0; i < SNMP_ASKED; i++)
        m->n_asked += model.oid[i] != NULL;
    m->at_once = SNMP_GET_MAX / m->n_asked;
    const struct snmp_agent_cfg asked = { .host = cfg->host,
                                          .credential_file = cfg->credential_file,
                                          .version = cfg->version ? cfg->version : 2 };
    rc = snmp_agent_open(&m->agent, &asked, e);
    if (rc < 0)
        free(m);
    else
        *out = m;
    return rc;
}

static void snmp_meter_close(struct meter *m)
{
    if (m)
        snmp_agent_close(m->agent);
    free(m);
}

/* --- reading --- */

/* Some outlets of one GET; those that are refused leave it. */
struct request {
    size_t outlet[SNMP_GET_MAX], n; /* places in cfg->outlets */
    struct meter_reading *out;      /* of all outlets */
    struct snmp_get get;
};

/* The middle of the request that is over now; ms. */
static double moment(const struct meter *m, const struct request *r)
{
    return (double)meter_now_ns(m->cfg.now_ns) / 1e6 - (double)r->get.took_ms / 2;
}

static void fail(const struct meter *m, const struct request *r, size_t outlet, const char *why)
{
    struct meter_reading *out = &r->out[outlet];
    out->state = METER_FAILED;
    out->value = out->error = NAN;
    out->from_ms = out->to_ms = moment(m, r);
    (void)snprintf(out->why, sizeof out->why, "%s", why);
}

static int get(struct meter *m, struct request *r, struct err *e)
{
    struct snmp_oid oids[SNMP_GET_MAX];
    r->get.oids = oids;
    r->get.n = 0;
    for (size_t i = 0; i < r->n; i++)
        for (int k = 0; k < SNMP_ASKED; k++)
            if (m->model.oid[k]) /* open() has read the power's; a model's others are like it */
                (void)snmp_oid_read(&oids[r->get.n++], m->model.oid[k], m->cfg.outlets[r->outlet[i]].outlet, NULL);
    int rc = snmp_agent_get(m->agent, &r->get, e);
    r->get.oids = NULL;
    return rc;
}

static void take_powers(const struct meter *m, const struct request *r)
{
    double at_ms = moment(m, r);
    const struct snmp_value *v = r->get.value;
    for (size_t i = 0; i < r->n; i++) {
        struct snmp_value of[SNMP_ASKED] = { 0 };
        for (int k = 0; k < SNMP_ASKED; k++)
            if (m->model.oid[k])
                of[k] = *v++;
        struct meter_reading *out = &r->out[r->outlet[i]];
        out->from_ms = out->to_ms = at_ms;
        snmp_oid_power(out, &m->model, meter_max_w(&m->cfg), of);
    }
}

static void leave_out(struct request *r, size_t i)
{
    r->n--;
    memmove(&r->outlet[i], &r->outlet[i + 1], (r->n - i) * sizeof r->outlet[0]);
}

/* Until each of its outlets has a reading, or they turn out to be too many: then those that are left stay in *r. */
static void ask(struct meter *m, struct request *r)
{
    while (r->n > 0) {
        struct err e = { 0 };
        int rc = get(m, r, &e);
        if (rc == -E2BIG && r->n > 1) {
            m->at_once = r->n / 2;
            return;
        }
        if (rc == -EINVAL) {
            size_t refused = r->get.refused / m->n_asked;
            fail(m, r, r->outlet[refused], e.text);
            leave_out(r, refused);
            continue;
        }
        if (rc == 0)
            take_powers(m, r);
        for (size_t i = 0; rc < 0 && i < r->n; i++)
            fail(m, r, r->outlet[i], e.text);
        r->n = 0;
    }
}

static int snmp_meter_read(struct meter *m, struct meter_reading *out)
{
    const struct meter_cfg *cfg = &m->cfg;
    int wait_ms = cfg->timeout_ms > 0 ? cfg->timeout_ms : TIMEOUT_MS;
    struct request r = { .out = out, .get.deadline_ms = clock_ms() + wait_ms };
    for (size_t i = 0; i < cfg->n_outlets; i++)
        (void)snprintf(out[i].node, sizeof out[i].node, "%s", cfg->outlets[i].node);
    for (size_t next = 0; next < cfg->n_outlets;) {
        size_t left = cfg->n_outlets - next, taken = left < m->at_once ? left : m->at_once;
        for (r.n = 0; r.n < taken; r.n++)
            r.outlet[r.n] = next + r.n;
        ask(m, &r);
        if (r.n == 0) /* else they are asked again, fewer at once */
            next += taken;
    }
    return (int)cfg->n_outlets;
}

/* --- probing --- */

static int snmp_meter_probe(const struct meter_cfg *cfg, struct buf *detail, struct buf *fix)
{
    struct meter *m = NULL;
    struct err e = { 0 };
    int rc = snmp_meter_open(&m, cfg, &e);
    if (rc < 0)
        return meter_probed(rc, &e, NULL, detail, fix);
    struct meter_reading *readings = calloc(METER_READINGS_MAX, sizeof *readings);
    rc = readings ? meter_told(readings, snmp_meter_read(m, readings), detail) : -ENOMEM;
    if (rc == -EIO)
        buf_printf(fix, "see what snmpget says of '%s', and correct the meter's keys", cfg->host);
    free(readings);
    snmp_meter_close(m);
    return rc;
}

const struct meter_ops meter_snmp = {
    .name = "snmp",
    .help = "watts of a PDU's outlets, over SNMP",
    .kind = METER_POWER,
    .local = false,
    .probe = snmp_meter_probe,
    .open = snmp_meter_open,
    .read = snmp_meter_read,
    .close = snmp_meter_close,
};
