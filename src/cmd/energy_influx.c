#include "cmd/energy_influx.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/own.h"
#include "live/study.h"
#include "monitoring/influx_query.h"

/* Distances of points in usual ones, from which on some are missing between them. */
static const double MISSING = 1.5;

/* Clocks of nodes, and readings that end after the study did. */
static const int64_t AROUND_MS = 60000;

struct asking {
    struct energy_load *l;
    struct influx_query *query;
    const char *name, *host, *user; /* the study's; NULL: not known */
    int64_t from_ns, to_ns;
    size_t rows;
};

/* --- numbers in tags --- */

/* -1: none. */
static int tag_number(const struct influx_row *r, const char *tag)
{
    const char *text = influx_row_text(r, tag);
    char *end;
    long n = text && *text ? strtol(text, &end, 10) : -1;
    return n >= 0 && n < 1000000000 && *end == '\0' ? (int)n : -1;
}

/* --- what this program wrote --- */

/* The tag has this value, or the point has no such tag. */
static void put_tag(struct buf *b, const char *tag, const char *value)
{
    buf_printf(b, "\"%s\" = ", tag);
    influx_query_put_text(b, value);
    buf_printf(b, " OR \"%s\" = ''", tag);
}

/* Rows of the study, and of no other that has its name. */
static void put_whose(struct buf *b, const struct asking *a)
{
    buf_puts(b, "study = ");
    influx_query_put_text(b, a->name);
    if (a->user) {
        buf_puts(b, " AND (");
        put_tag(b, "user", a->user);
        buf_putc(b, ')');
    }
    if (a->host) {
        buf_puts(b, " AND (\"node\" != '0' OR "); /* others have their nodes' names */
        put_tag(b, "host", a->host);
        buf_putc(b, ')');
    }
}

static int select_rows(struct asking *a, const char *measurement, const char *columns,
                       int (*row)(void *ctx, const struct influx_row *r), struct err *e)
{
    AUTO_BUF struct buf where = BUF_INIT;
    put_whose(&where, a);
    if (where.failed)
        return err_sys(e, -ENOMEM, "cannot read from influxdb");
    struct influx_select s = { columns, measurement, where.data, a->from_ns, a->to_ns };
    a->rows = 0;
    int rc = influx_query_select(a->query, &s, row, a, e);
    return rc == -ENOMEM ? err_sys(e, rc, "cannot read from influxdb") : rc;
}

static int take_reading(void *ctx, const struct influx_row *row)
{
    struct asking *a = ctx;
    struct store_reading r = { .node = tag_number(row, "node"),
                               .meter = influx_row_text(row, "meter"),
                               .state = influx_row_text(row, "state"),
                               .from_ms = influx_row_number(row, "from_ms"),
                               .to_ms = influx_row_number(row, "to_ms"),
                               .value = influx_row_number(row, "value"),
                               .error = influx_row_number(row, "error") };
    a->rows++;
    bool whole = r.meter && r.state && isfinite(r.from_ms) && isfinite(r.to_ms);
    return whole ? energy_load_reading(a->l, &r) : 0; /* somebody else's */
}

static int take_sample(void *ctx, const struct influx_row *row)
{
    struct asking *a = ctx;
    double to_ms = influx_row_number(row, "t_ms"), dt_ms = influx_row_number(row, "dt_ms");
    double cpu_s = influx_row_number(row, "proc/cpu-time");
    int trial = tag_number(row, "trial");
    struct energy_load_span at = { to_ms - dt_ms, to_ms };
    if (trial < 1 || !isfinite(at.from_ms) || !isfinite(cpu_s))
        return 0;
    a->rows++;
    return energy_load_cpu(a->l, tag_number(row, "node"), trial, &at, cpu_s);
}

/* --- what others wrote of the nodes --- */

struct others_point {
    double t_ms, value;
};

struct others_series {
    struct others_point *list;
    size_t n, cap;
};

static int keep_point(void *ctx, const struct influx_row *row)
{
    struct others_series *s = ctx;
    double value = influx_row_number(row, "value");
    if (!isfinite(value))
        return 0;
    struct others_point *grown = array_more(s->list, s->n, &s->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    s->list = grown;
    s->list[s->n++] = (struct others_point){ (double)row->time_ns / 1e6, value };
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median distance of two points; NAN: there are no two. */
static double usual_ms(const struct others_series *s)
{
    AUTO_FREE double *d = s->n > 1 ? calloc(s->n - 1, sizeof *d) : NULL;
    if (!d)
        return NAN;
    for (size_t i = 1; i < s->n; i++)
        d[i - 1] = s->list[i].t_ms - s->list[i - 1].t_ms;
    qsort(d, s->n - 1, sizeof *d, by_value);
    return d[(s->n - 1) / 2];
}

/* Joules of the interval that ends here: it began at the point before, unless points are missing. What these held is not in it. */
static double interval_begin(const struct others_series *s, size_t i, double usual)
{
    if (i == 0)
        return s->list[i].t_ms - usual;
    double before = s->list[i - 1].t_ms;
    return s->list[i].t_ms - before > MISSING * usual ? s->list[i].t_ms - usual : before;
}

static int take_points(struct energy_load *l, int node, const char *meter, const struct others_series *s)
{
    const struct meter_ops *ops = meter_find(meter);
    double usual = usual_ms(s);
    int rc = 0;
    for (size_t i = 0; rc == 0 && ops && i < s->n; i++) {
        const struct others_point *p = &s->list[i];
        struct store_reading r = { .node = node,
                                   .meter = meter,
                                   .state = meter_state_name(METER_OK),
                                   .from_ms = p->t_ms,
                                   .to_ms = p->t_ms,
                                   .value = p->value,
                                   .error = NAN };
        if (ops->kind == METER_ENERGY)
            r.from_ms = interval_begin(s, i, usual);
        rc = isfinite(r.from_ms) ? energy_load_reading(l, &r) : 0;
    }
    return rc;
}

static int ask_node(struct asking *a, int node, const char *meter, const char *measurement, struct err *e)
{
    struct others_series points = { 0 };
    AUTO_BUF struct buf where = BUF_INIT;
    buf_puts(&where, "nodename = ");
    influx_query_put_text(&where, energy_load_node(a->l, node));
    struct influx_select s = { "value", measurement, buf_text(&where), a->from_ns, a->to_ns };
    int rc = where.failed ? -ENOMEM : influx_query_select(a->query, &s, keep_point, &points, e);
    if (rc == 0)
        rc = take_points(a->l, node, meter, &points);
    free(points.list);
    return rc == -ENOMEM ? err_sys(e, rc, "cannot read from influxdb") : rc;
}

/* Whose number readings of this name have: the driver's machine is 0, whatever the config calls it, and of two nodes of one name the first
 * counts. */
static int node_of(const struct energy_load *l, const char *name)
{
    size_t i = 0;
    while (strcmp(name, "localhost") != 0 && strcmp(name, l->nodes.v[i]) != 0)
        i++; /* it is one of these */
    return (int)(strcmp(name, "localhost") == 0 ? 0 : i);
}

/* One measurement of all nodes. */
static int ask_nodes(struct asking *a, const char *meter, const char *measurement, struct err *e)
{
    int rc = 0;
    for (int node = 0; rc == 0 && (size_t)node < a->l->nodes.n; node++)
        if (node_of(a->l, energy_load_node(a->l, node)) == node)
            rc = ask_node(a, node, meter, measurement, e);
    return rc;
}

static int ask_others(struct asking *a, struct err *e)
{
    static const struct {
        const char *meter, *measurement;
    } known[] = { { "pdu", "pdu_power/node_utilization" }, { "pcm", "pcm_power/node_utilization" } };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(known); i++)
        rc = ask_nodes(a, known[i].meter, known[i].measurement, e);
    return rc;
}

/* --- the whole --- */

static const char *choose(const char *given, const json_t *influxdb, const char *key)
{
    return given ? given : json_string_value(json_object_get(influxdb, key));
}

/* What was not given is as the study had it; to another server than its own goes no secret of its. */
static int connect_to(struct influx_query **out, const struct energy_influx_cfg *cfg, const json_t *influxdb,
                      struct err *e)
{
    struct credential secret = { 0 };
    const char *url = json_string_value(json_object_get(influxdb, "url"));
    const json_t *its_own = !cfg->url || (url && strcmp(url, cfg->url) == 0) ? influxdb : NULL;
    const char *file = choose(cfg->credential_file, its_own, "credential_file");
    const char *database = choose(cfg->database, influxdb, "database");
    const char *bucket = json_string_value(json_object_get(influxdb, "bucket"));
    struct influx_query_cfg q = { .url = cfg->url ? cfg->url : url,
                                  .database = database ? database
                                              : bucket ? bucket
                                                       : "energy",
                                  .retention = choose(NULL, its_own, "retention_policy"),
                                  .ca_file = choose(NULL, its_own, "ca_file"),
                                  .allow_plain =
                                      cfg->allow_plain || json_is_true(json_object_get(its_own, "allow_plain_http")) };
    if (!q.url)
        return err_set(e, -EINVAL, "which influxdb? the study's config names none: say --url http://HOST[:PORT]");
    int rc = file ? credential_read(&secret, file, e) : 0;
    q.credential = file ? &secret : NULL;
    if (rc == 0)
        rc = influx_query_new(out, &q, e);
    credential_done(&secret);
    return rc;
}

/* How long the nodes' CPUs were busy: nobody else writes that. */
static int keep_busy(void *ctx, const struct store_reading *r)
{
    const struct meter_ops *meter = meter_find(r->meter);
    return meter && meter->kind == METER_CPU ? energy_load_reading(ctx, r) : 0;
}

static int ask_all(struct asking *a, struct store *s, int64_t study, enum energy_influx_from *out_from, struct err *e)
{
    int rc = energy_load_trials(a->l, s, study, e);
    if (rc == 0)
        rc = select_rows(a, "pipetune_energy", "value, error, from_ms, to_ms, state, meter, node", take_reading, e);
    *out_from = a->rows ? ENERGY_INFLUX_OWN : ENERGY_INFLUX_OTHERS;
    if (rc == 0 && *out_from == ENERGY_INFLUX_OTHERS)
        rc = ask_others(a, e);
    if (rc == 0 && *out_from == ENERGY_INFLUX_OTHERS)
        rc = store_readings(s, study, keep_busy, a->l, e);
    if (rc == 0)
        rc = select_rows(a, "pipetune_profile", "\"proc/cpu-time\", dt_ms, t_ms, trial, node", take_sample, e);
    if (rc == 0 && a->rows == 0)
        rc = energy_load_samples(a->l, s, e);
    return rc;
}

int energy_influx_load(struct energy_load *out, struct store *s, const struct store_study *study,
                       const struct energy_influx_cfg *cfg, enum energy_influx_from *out_from, struct err *e)
{
    int rc = energy_load_begin(out, study, e);
    if (rc < 0)
        return rc;
    AUTO_JSON json_t *config = study->config ? json_loads(study->config, 0, NULL) : NULL;
    AUTO_JSON json_t *provenance = study->provenance ? json_loads(study->provenance, 0, NULL) : NULL;
    int64_t end_ms = study->ended_ms ? study->ended_ms : study_now_ms();
    struct asking a = { .l = out,
                        .name = study->name,
                        .host = json_string_value(json_object_get(provenance, "host")),
                        .user = json_string_value(json_object_get(provenance, "user")),
                        .from_ns = (study->created_ms - AROUND_MS) * 1000000,
                        .to_ns = (end_ms + AROUND_MS) * 1000000 };
    rc = connect_to(&a.query, cfg, json_object_get(config, "influxdb"), e);
    if (rc == 0)
        rc = ask_all(&a, s, study->id, out_from, e);
    influx_query_free(a.query);
    return rc < 0 ? rc : energy_load_end(out, study, e);
}
