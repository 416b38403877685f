#include "view/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "view/table.h"

/* --- JSON ------------------------------------------------------------------------------------------------------------- */

struct listing {
    json_t *all;
    enum metrics_what what;
};

static int add_value(void *ctx, const struct store_value *r)
{
    const struct listing *l = ctx;
    if (r->step > 0 && l->what == METRICS_EPOCHS)
        return 0;
    json_t *list = json_object_get(l->all, r->name);
    if (!list) {
        list = json_array();
        if (json_object_set_new(l->all, r->name, list) < 0)
            return -ENOMEM;
    }
    json_t *one = json_pack("{s:i, s:o, s:o}", "epoch", r->epoch, "step",
                            r->step ? json_integer((json_int_t)r->step) : json_null(), "value", json_num(r->value));
    return json_array_append_new(list, one) < 0 ? -ENOMEM : 0;
}

int metrics_json(struct store *s, int64_t trial, enum metrics_what what, json_t **out, struct err *e)
{
    AUTO_JSON json_t *all = json_object();
    struct listing l = { .all = all, .what = what };
    int rc = all ? store_series(s, trial, add_value, &l, e) : -ENOMEM;
    if (rc == -ENOMEM)
        return err_sys(e, rc, "the metrics of a trial");
    if (rc == 0)
        *out = json_incref(all);
    return rc;
}

/* --- for people ------------------------------------------------------------------------------------------------------- */

struct summary {
    struct table table;
    const char *metric; /* that has a column already */
    char name[SERIES_NAME_MAX];
    int values;
    double first, lowest, highest, last;
};

static bool has_column(const struct summary *m, const char *name)
{
    static const char *const columns[] = { "accuracy", "Top1Accuracy", "loss", "learning_rate" };
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        if (strcasecmp(name, columns[i]) == 0)
            return true;
    return strcasecmp(name, m->metric) == 0;
}

static void end_row(struct summary *m)
{
    if (m->values == 0)
        return;
    table_cell(&m->table, m->name);
    table_cellf(&m->table, "%d", m->values);
    table_number(&m->table, m->first);
    table_number(&m->table, m->lowest);
    table_number(&m->table, m->highest);
    table_number(&m->table, m->last);
    m->values = 0;
}

static int sum_value(void *ctx, const struct store_value *r)
{
    struct summary *m = ctx;
    if (r->step > 0 || has_column(m, r->name))
        return 0;
    if (strcmp(m->name, r->name) != 0)
        end_row(m);
    if (m->values++ == 0) {
        (void)snprintf(m->name, sizeof m->name, "%s", r->name);
        m->first = m->lowest = m->highest = r->value;
    }
    m->lowest = fmin(m->lowest, r->value); /* what is no number is passed over */
    m->highest = fmax(m->highest, r->value);
    m->last = r->value;
    return 0;
}

int metrics_put(struct store *s, int64_t trial, const char *metric, struct buf *out, struct err *e)
{
    static const char *const heads[] = { "metric", "!>epochs", "!>first", "!>lowest", "!>highest", "!>last", NULL };
    struct summary m = { .metric = metric };
    table_init(&m.table, heads);
    int rc = store_series(s, trial, sum_value, &m, e);
    end_row(&m);
    if (rc == 0 && m.table.n > m.table.columns) {
        buf_putc(out, '\n');
        table_put(&m.table, out, 0);
    }
    out->failed |= m.table.failed != 0;
    table_done(&m.table);
    return rc;
}
