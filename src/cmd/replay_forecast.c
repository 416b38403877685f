/* Recorded curves, foretold: `replay forecast`. What is computed is src/search/forecast_replay's. */
#include <errno.h>
#include <stdlib.h>

#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/replay_parts.h"
#include "search/forecast_replay.h"
#include "view/table.h"

enum { SHARES_MAX = 100 };

struct forecasts {
    double shares[SHARES_MAX];
    struct forecast_quality q[SHARES_MAX];
    size_t n;
    struct curves curves;
};

static int read_shares(struct forecasts *f, const char *at, struct err *e)
{
    AUTO_STRV struct strv words = STRV_INIT;
    int rc = replay_split(&words, at ? at : "0.1,0.2,0.4", "at", e);
    for (size_t i = 0; rc == 0 && i < words.n; i++) {
        double x;
        if (!csv_real(words.v[i], 0, 1, &x) || x <= 0 || x >= 1 || f->n == SHARES_MAX)
            return err_set(e, -EINVAL, "'--at %s' must be shares of the epochs, between 0 and 1, as 0.1,0.2,0.4", at);
        f->shares[f->n++] = x;
    }
    return rc;
}

static int print_json(const struct forecasts *f, struct err *e)
{
    json_t *all = json_object();
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < f->n; i++) {
        const struct forecast_quality *q = &f->q[i];
        char share[NUM_TEXT_MAX];
        rc =
            replay_set(all, num_print(f->shares[i], share),
                       json_pack("{s:o, s:o, s:o, s:o}", "coverage", json_num(q->coverage), "width", json_num(q->width),
                                 "error", json_num(q->error), "last_value_error", json_num(q->last_value_error)));
    }
    return replay_print_json(all, rc, e);
}

static int print_table(const struct forecasts *f)
{
    static const char *const heads[] = { ">known", ">held", ">width", ">error", ">error of the last value", NULL };
    struct table t;
    table_init(&t, heads);
    for (size_t i = 0; i < f->n; i++) {
        const struct forecast_quality *q = &f->q[i];
        table_cellf(&t, "%g %%", 100 * f->shares[i]);
        table_cellf(&t, "%.1f %%", 100 * q->coverage);
        table_cellf(&t, "%.4f", q->width);
        table_cellf(&t, "%.4f", q->error);
        table_cellf(&t, "%.4f", q->last_value_error);
    }
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "%zu configurations of %d epochs; the final value, in units of the scale that regret has\n\n",
               f->q[0].n, f->curves.epochs);
    table_put(&t, &b, 0);
    table_done(&t);
    return cmd_print(&b);
}

int replay_forecast(const struct replay_args *o, const char *path, struct err *e)
{
    struct forecasts f = { .n = 0 };
    int rc = read_shares(&f, o->at, e);
    if (rc == 0)
        rc = replay_read_curves(&f.curves, path, e);
    for (size_t i = 0; rc == 0 && i < f.n; i++)
        rc = forecast_replay(&f.curves, f.shares[i], &f.q[i], e);
    int code = rc < 0 ? cmd_fail(e) : o->json ? print_json(&f, e) : print_table(&f);
    curves_done(&f.curves);
    return code;
}
