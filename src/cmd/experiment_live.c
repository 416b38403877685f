/* `experiment`, trained: configs checked before anything starts, live/experiment_run, and what the stores of the policies tell afterwards. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/experiment_parts.h"
#include "cmd/look.h"
#include "live/experiment_run.h"
#include "live/plan.h"
#include "live/study.h"
#include "view/energy_figure.h"
#include "view/table.h"
#include "view/view.h"
#include "view/words.h"

/* --- before --- */

static int take_policy(void *ctx, struct config *cfg, struct err *e)
{
    free(cfg->policy);
    cfg->policy = strdup(ctx);
    return cfg->policy ? 0 : err_sys(e, -ENOMEM, "experiment");
}

/* Each config under each policy, as its run will read it. */
static int check_configs(struct experiment_result *r, char *const *configs, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->x.n_jobs; i++) {
        for (size_t p = 0; rc == 0 && p < r->x.n_policies; p++) {
            struct plan plan;
            rc = plan_load(&plan, configs[i], NULL, take_policy, (void *)(uintptr_t)r->x.policies[p]->name, e);
            if (rc < 0)
                break;
            rc = study_check(&plan, e);
            r->cores = plan.offer.cores;
            plan_done(&plan);
        }
    }
    return rc;
}

/* --- meanwhile --- */

static void watch(void *ctx, const struct experiment_news *n)
{
    (void)ctx;
    char at[32], until[32];
    (void)table_duration(n->clock_s, at);
    switch (n->event) {
    case EXPERIMENT_ARRIVES:
        fprintf(stderr, "%-9s %zu/%zu  %s arrives at %s\n", n->stage, n->number, n->of, n->study,
                table_duration(n->until_s, until));
        break;
    case EXPERIMENT_STARTS:
    case EXPERIMENT_GOES_ON:
        fprintf(stderr, "%-9s %zu/%zu  %s %s at %s, %zu waiting\n", n->stage, n->number, n->of, n->study,
                n->event == EXPERIMENT_STARTS ? "begins" : "goes on", at, n->waiting);
        break;
    case EXPERIMENT_ENDS:
        fprintf(stderr, "%-9s %zu/%zu  %s has ended at %s\n", n->stage, n->number, n->of, n->study, at);
        break;
    }
}

/* --- afterwards --- */

struct gathered {
    struct experiment_result *r;
    struct store *store;
    const struct store_study *study;
    struct energy_load energy;
    size_t row;
    int best;
    struct err *e;
};

static int last_epoch(void *ctx, const struct store_epoch *ep)
{
    int *last = ctx;
    if (ep->epoch > *last)
        *last = ep->epoch;
    return 0;
}

static int last_cores(void *ctx, const struct store_attempt *a)
{
    int *cores = ctx;
    if (a->cores >= 1)
        *cores = (int)a->cores;
    return 0;
}

/* A share that is to be large is told as what is missing from it; what is to be small, as it is. */
static double error_of(const struct gathered *g, const struct store_trial *t)
{
    double x = isfinite(t->metric) ? t->metric : t->accuracy;
    return g->study->maximise ? 1 - x : x;
}

static int add_best(struct gathered *g, const struct store_trial *row, const struct experiment_trial *t)
{
    struct experiment_row *to = &g->r->rows[g->row];
    AUTO_JSON json_t *effective = words_object(row->effective);
    to->training_s = t->seconds;
    to->training_j = t->joules;
    to->error = t->error;
    to->lr = t->lr;
    to->batch = t->batch;
    to->epochs = t->epochs;
    to->cores = (int)json_integer_value(json_object_get(effective, "cores"));
    int rc = store_attempts(g->store, row->id, last_cores, &to->cores, g->e);
    if (to->cores < 1)
        to->cores = g->r->cores;
    return rc;
}

static bool counts(const struct store_trial *t)
{
    static const char *const states[] = { "finished", "stopped", "paused" };
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        if (strcmp(t->state, states[i]) == 0)
            return true;
    return false;
}

static int add_trial(void *ctx, const struct store_trial *row)
{
    struct gathered *g = ctx;
    struct ledger_figure f;
    AUTO_JSON json_t *hyper = words_object(row->hyper);
    struct experiment_trial t = {
        .row = g->row, .number = row->number, .error = error_of(g, row), .seconds = row->seconds
    };
    if (!counts(row))
        return 0;
    experiment_read_hyper(hyper, &t.lr, &t.batch);
    int rc = store_epochs(g->store, row->id, last_epoch, &t.epochs, g->e);
    if (rc == 0 && energy_figure_number(&g->energy, row->number, &f) < 0)
        rc = err_sys(g->e, -ENOMEM, "experiment");
    if (rc < 0)
        return rc;
    t.joules = f.j;
    g->r->rows[g->row].trials++;
    if (row->number == g->best)
        rc = add_best(g, row, &t);
    if (rc == 0 && g->r->x.offline && experiment_keep_trial(&g->r->trials, &t) < 0)
        rc = err_sys(g->e, -ENOMEM, "experiment");
    return rc;
}

static int gather_study(struct gathered *g, struct err *e)
{
    struct experiment_row *row = &g->r->rows[g->row];
    struct store_summary totals;
    struct ledger_figure f;
    int rc = view_totals(g->store, g->study->id, 0, &totals, e);
    if (rc == 0)
        rc = energy_load(&g->energy, g->store, g->study, e);
    if (rc == 0 && energy_figure_study(&g->energy, NULL, &f) < 0)
        rc = err_sys(e, -ENOMEM, "experiment");
    if (rc == 0) {
        g->best = totals.best_trial;
        row->failed = g->best == 0;
        row->tuning_j = f.j;
        row->coverage = f.coverage;
        row->source = isfinite(f.j) ? ledger_source_name(f.source) : NULL;
        rc = store_trials(g->store, g->study->id, 0, add_trial, g, e);
    }
    energy_load_done(&g->energy);
    return rc;
}

static int gather_row(struct experiment_result *r, struct store *store, size_t row, struct err *e)
{
    char name[EXPERIMENT_STUDY_MAX];
    struct store_study study = { 0 };
    struct experiment_row *to = &r->rows[row];
    to->training_s = to->training_j = to->error = to->lr = to->batch = to->tuning_j = to->coverage = NAN;
    experiment_study_name(name, &r->x, to->job, to->number);
    int rc = view_find(store, name, &study, e);
    struct gathered g = { .r = r, .store = store, .study = &study, .row = row, .e = e };
    if (rc == 0)
        rc = gather_study(&g, e);
    store_study_done(&study);
    return rc;
}

static int gather(struct experiment_result *r, const char *folder, struct err *e)
{
    int rc = 0;
    for (size_t p = 0; rc == 0 && p < r->x.n_policies; p++) {
        AUTO_FREE char *path = experiment_store(folder, r->x.policies[p]->name);
        struct store *store = NULL;
        rc = path ? store_open(&store, path, STORE_READ, e) : err_sys(e, -ENOMEM, "experiment");
        for (size_t i = 0; rc == 0 && i < r->n; i++)
            rc = gather_row(r, store, p * r->n + i, e);
        store_close(store);
    }
    return rc;
}

int experiment_train(struct experiment_result *r, const json_t *file, const char *folder, bool skip_idle, struct err *e)
{
    AUTO_STRV struct strv configs = STRV_INIT;
    for (size_t i = 0; i < r->x.n_jobs; i++)
        strv_take(&configs, experiment_config(r, i));
    int rc = configs.failed ? err_sys(e, -ENOMEM, "experiment") : check_configs(r, configs.v, e);
    if (rc == 0)
        rc = experiment_result_room(r, e);
    const struct experiment_run run = { .x = &r->x,
                                        .configs = (const char *const *)configs.v,
                                        .folder = folder,
                                        .file = file,
                                        .skip_idle = skip_idle,
                                        .watch = watch };
    if (rc == 0)
        rc = experiment_run(&run, r->arrivals, r->rows, r->n, &r->service_s, e);
    return rc == 0 ? gather(r, folder, e) : rc;
}
