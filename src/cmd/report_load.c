#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cmd/look.h"
#include "cmd/report.h"

void report_done(struct report *r)
{
    store_study_done(&r->study);
    json_decref(r->config);
    json_decref(r->provenance);
    for (size_t i = 0; i < r->n; i++) {
        store_trial_done(&r->trials[i].row);
        free(r->trials[i].epochs);
    }
    free(r->trials);
    stories_done(&r->stories);
    outlook_free(r->outlook);
    heat_done(&r->best.map);
    heat_done(&r->by_class.map);
    pareto_done(&r->pareto);
    strv_done(&r->best.cols);
    strv_done(&r->by_class.cols);
    *r = (struct report){ 0 };
}

/* They are numbered from 1, without gaps unless somebody else wrote the store. */
const struct report_trial *report_trial(const struct report *r, int number)
{
    if (number >= 1 && (size_t)number <= r->n && r->trials[number - 1].row.number == number)
        return &r->trials[number - 1];
    for (size_t i = 0; i < r->n; i++)
        if (r->trials[i].row.number == number)
            return &r->trials[i];
    return NULL;
}

const char *report_state(const struct report *r)
{
    return look_state(r->study.state, r->driver);
}

const char *report_metric(const struct report *r)
{
    const char *metric = json_string_value(json_object_get(json_object_get(r->config, "study"), "metric"));
    return metric ? metric : "accuracy";
}

static int keep_epoch(void *ctx, const struct store_epoch *row)
{
    struct report_trial *t = ctx;
    struct store_epoch *grown = array_more(t->epochs, t->n_epochs, &t->cap_epochs, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    t->epochs = grown;
    t->epochs[t->n_epochs++] = *row;
    t->done = row->epoch > t->done ? row->epoch : t->done;
    return 0;
}

static int add_trial(void *ctx, const struct store_trial *row)
{
    struct report *r = ctx;
    struct report_trial *grown = array_more(r->trials, r->n, &r->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    r->trials = grown;
    struct report_trial *t = &r->trials[r->n];
    *t = (struct report_trial){ .energy = energy_figure_absent };
    if (store_trial_copy(&t->row, row) < 0)
        return -ENOMEM;
    r->n++;
    t->state = look_state(t->row.state, r->driver);
    t->seconds = row->attempts ? look_seconds(r->store, row, r->driver) : (double)NAN;
    int rc = store_epochs(r->store, row->id, keep_epoch, t, r->e);
    if (rc == 0 && t->done == 0 && strcmp(row->state, "finished") == 0)
        t->done = row->epochs; /* another trial's result */
    return rc;
}

static int add_figures(struct report *r, const struct energy_load *l)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->n; i++)
        rc = energy_figure_number(l, r->trials[i].row.number, &r->trials[i].energy);
    return rc < 0 ? rc : energy_figure_study(l, NULL, &r->energy);
}

static int load_energy(struct report *r)
{
    struct energy_load l = { 0 };
    int rc = energy_load(&l, r->store, &r->study, r->e);
    if (rc == 0 && l.n_meters > 0 && add_figures(r, &l) < 0)
        rc = err_sys(r->e, -ENOMEM, "study '%s'", r->study.name);
    energy_load_done(&l);
    return rc;
}

static int load_forecasts(struct report *r)
{
    int rc = outlook_open(&r->outlook, r->store, &r->study, r->e);
    for (size_t i = 0; rc == 0 && i < r->n; i++)
        rc = outlook_look(r->outlook, &r->trials[i].row, &r->trials[i].foretold, r->e);
    return rc;
}

int report_load(struct report *r, struct store *s, const char *name, pid_t driver, struct err *e)
{
    *r = (struct report){ .store = s, .driver = driver, .energy = energy_figure_absent, .e = e };
    int rc = look_find(s, name, &r->study, e);
    if (rc < 0)
        return rc;
    r->config = r->study.config ? json_loads(r->study.config, 0, NULL) : NULL;
    (void)json_object_del(r->config, "secrets"); /* sums, to compare with */
    r->provenance = r->study.provenance ? json_loads(r->study.provenance, 0, NULL) : NULL;
    rc = look_totals(s, name, &r->totals, e);
    if (rc == 0)
        rc = look_add_running(s, r->study.id, driver, &r->totals, e);
    if (rc == 0)
        rc = store_trials(s, r->study.id, 0, add_trial, r, e);
    if (rc == 0)
        rc = load_forecasts(r);
    if (rc == 0)
        rc = pareto_load(&r->pareto, s, &r->study, e);
    if (rc == 0)
        rc = load_energy(r);
    if (rc == 0)
        rc = stories_read(&r->stories, s, r->study.id, e);
    if (rc == 0)
        rc = report_load_heat(r);
    return look_explain(rc, e, name);
}
