#include "serve/prometheus.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/json.h"
#include "base/lease.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/utf8.h"
#include "live/study.h"
#include "serve/standing.h"
#include "store/since.h"
#include "view/energy_figure.h"

/* --- lines --- */

static void put_text(struct buf *b, const char *text)
{
    AUTO_BUF struct buf fit = BUF_INIT;
    utf8_put_plain(&fit, text, strlen(text), UTF8_ONE_LINE);
    b->failed |= fit.failed;
    for (const char *c = buf_text(&fit); *c; c++) {
        if (*c == '\\' || *c == '"')
            buf_putc(b, '\\');
        buf_putc(b, *c);
    }
}

void prometheus_line(struct buf *b, const char *name, const char *const *labels, double value)
{
    char number[NUM_TEXT_MAX];
    if (!isfinite(value))
        return;
    buf_puts(b, name);
    for (size_t i = 0; labels && labels[i]; i += 2) {
        buf_printf(b, "%s%s=\"", i ? "," : "{", labels[i]);
        put_text(b, labels[i + 1]);
        buf_putc(b, '"');
    }
    buf_printf(b, "%s %s\n", labels && labels[0] ? "}" : "", num_print(value, number));
}

/* --- what is told of a study --- */

enum { FIGURES_MAX = 3 };

/* One study's figures; the text format wants all lines of a name together, so they are gathered first. */
struct one {
    char *name;
    struct store_summary totals; /* without texts */
    const char *state;
    int running, waiting;
    double energy_j;
    int64_t epochs;
    double driver_cpu_s, driver_bytes; /* NAN: none */
    struct best {
        char *name;
        double value;
    } best[FIGURES_MAX];
};

struct gathered {
    struct prometheus *p;
    struct store *store;
    const char *path;
    struct one *v;
    size_t n, cap;
    struct err *e;
};

static void gathered_done(struct gathered *g)
{
    for (size_t i = 0; i < g->n; i++) {
        free(g->v[i].name);
        for (size_t k = 0; k < FIGURES_MAX; k++)
            free(g->v[i].best[k].name);
    }
    free(g->v);
}

static struct prometheus_kept *find_kept(const struct prometheus *p, int64_t study, int64_t ended_ms)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->kept[i].study == study && p->kept[i].ended_ms == ended_ms)
            return &p->kept[i];
    return NULL;
}

static int keep(struct prometheus *p, struct prometheus_kept one)
{
    void *more = array_more(p->kept, p->n, &p->cap, sizeof *p->kept);
    if (!more)
        return -ENOMEM;
    p->kept = more;
    p->kept[p->n++] = one;
    return 0;
}

void prometheus_done(struct prometheus *p)
{
    free(p->kept);
    *p = (struct prometheus){ .n = 0 };
}

int prometheus_sums(struct prometheus *p, struct store *s, const struct store_study *study, double *out_j,
                    int64_t *out_epochs, struct err *e)
{
    bool over = strcmp(study->state, "running") != 0;
    const struct prometheus_kept *kept = over ? find_kept(p, study->id, study->ended_ms) : NULL;
    struct prometheus_kept now = { study->id, study->ended_ms, NAN, 0 };
    struct ledger_figure f = energy_figure_absent;
    if (kept)
        now = *kept;
    int rc = kept ? 0 : energy_figure_stored(s, study, &f, e);
    if (rc == 0 && !kept)
        rc = store_epochs_count(s, study->id, &now.epochs, e);
    if (rc == 0 && !kept) {
        now.energy_j = f.j;
        rc = over ? keep(p, now) : 0;
    }
    if (rc == 0) {
        *out_j = now.energy_j;
        *out_epochs = now.epochs;
    }
    return rc;
}

struct best_of {
    struct one *one;
    const char *metric;
};

static int add_best(void *ctx, const struct store_trial *t)
{
    struct best_of *o = ctx;
    const struct {
        const char *name;
        double value;
    } figures[FIGURES_MAX] = { { o->metric, t->metric }, { "accuracy", t->accuracy }, { "loss", t->loss } };
    for (size_t i = 0; i < FIGURES_MAX; i++) {
        if (isnan(figures[i].value) || (i > 0 && strcmp(figures[i].name, o->metric) == 0))
            continue;
        o->one->best[i] = (struct best){ strdup(figures[i].name), figures[i].value };
        if (!o->one->best[i].name)
            return -ENOMEM;
    }
    return 0;
}

static int count_states(void *ctx, const struct store_trial *t)
{
    struct one *o = ctx;
    o->running += strcmp(t->state, "running") == 0;
    o->waiting += strcmp(t->state, "waiting") == 0 || strcmp(t->state, "interrupted") == 0;
    return 0;
}

/* The driver's own time and memory: /proc/PID/stat and statm. */
static void add_driver(struct one *o, pid_t pid)
{
    struct proc_usage u;
    if (pid <= 0 || proc_usage(pid, &u) < 0)
        return;
    o->driver_cpu_s = u.cpu_s;
    o->driver_bytes = u.resident_bytes;
}

static int add_study(struct gathered *g, struct one *o, const struct store_study *study)
{
    AUTO_JSON json_t *config = study->config ? json_loads(study->config, 0, NULL) : NULL;
    const char *metric = json_string_value(json_object_get(json_object_get(config, "study"), "metric"));
    struct best_of best = { o, metric ? metric : "accuracy" };
    AUTO_FREE char *dir = study_dir(g->path, o->name);
    pid_t driver = dir ? study_driver(dir) : 0;
    bool runs = strcmp(study->state, "running") == 0 && driver != 0;
    o->state = runs                                      ? "running"
               : strcmp(study->state, "running") == 0    ? "interrupted"
               : strcmp(study->state, "finished") == 0   ? "finished"
               : strcmp(study->state, "incomplete") == 0 ? "incomplete"
                                                         : "failed";
    add_driver(o, driver);
    int rc = prometheus_sums(g->p, g->store, study, &o->energy_j, &o->epochs, g->e);
    if (rc == 0 && o->totals.best_trial)
        rc = store_trials(g->store, study->id, o->totals.best_trial, add_best, &best, g->e);
    if (rc == 0 && runs)
        rc = store_trials(g->store, study->id, 0, count_states, o, g->e);
    return rc;
}

static int gather(void *ctx, const struct store_summary *r)
{
    struct gathered *g = ctx;
    struct store_study study = { 0 };
    struct one *grown = array_more(g->v, g->n, &g->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    g->v = grown;
    struct one *o = &g->v[g->n];
    *o = (struct one){
        .name = strdup(r->name), .totals = *r, .energy_j = NAN, .driver_cpu_s = NAN, .driver_bytes = NAN
    };
    o->totals.name = o->totals.state = NULL;
    if (!o->name)
        return -ENOMEM;
    g->n++;
    int rc = store_study_find(g->store, r->name, &study, g->e);
    if (rc == 1)
        rc = add_study(g, o, &study);
    store_study_done(&study);
    return rc;
}

/* --- the tables of names --- */

static void put_head(struct buf *b, const char *name, const char *type, const char *help)
{
    buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static double epochs_of(const struct one *o)
{
    return (double)o->epochs;
}
static double joules_of(const struct one *o)
{
    return o->energy_j;
}
static double cpu_of(const struct one *o)
{
    return o->driver_cpu_s;
}
static double bytes_of(const struct one *o)
{
    return o->driver_bytes;
}

static const struct {
    const char *name, *type, *help;
    double (*get)(const struct one *o);
} per_study[] = {
    { "pipetune_trial_epochs_total", "counter", "Epochs that trials of the study have completed.", epochs_of },
    { "pipetune_energy_joules_total", "counter", "Joules of the study's trials, by one meter.", joules_of },
    { "pipetune_driver_cpu_seconds_total", "counter", "CPU time of the study's driver.", cpu_of },
    { "pipetune_driver_resident_bytes", "gauge", "Memory of the study's driver.", bytes_of },
};

static void put_per_study(struct buf *b, const struct gathered *g)
{
    for (size_t k = 0; k < ARRAY_LEN(per_study); k++) {
        put_head(b, per_study[k].name, per_study[k].type, per_study[k].help);
        for (size_t i = 0; i < g->n; i++)
            prometheus_line(b, per_study[k].name, (const char *const[]){ "study", g->v[i].name, NULL },
                            per_study[k].get(&g->v[i]));
    }
}

static void put_states(struct buf *b, const struct gathered *g)
{
    static const char *const states[] = { "running", "interrupted", "finished", "incomplete", "failed" };
    put_head(b, "pipetune_studies", "gauge", "Studies in the store.");
    for (size_t k = 0; k < ARRAY_LEN(states); k++) {
        int n = 0;
        for (size_t i = 0; i < g->n; i++)
            n += g->v[i].state && strcmp(g->v[i].state, states[k]) == 0;
        prometheus_line(b, "pipetune_studies", (const char *const[]){ "state", states[k], NULL }, n);
    }
}

static void put_trials(struct buf *b, const struct gathered *g)
{
    put_head(b, "pipetune_trials", "gauge", "Trials of the study.");
    for (size_t i = 0; i < g->n; i++) {
        const struct store_summary *t = &g->v[i].totals;
        const struct {
            const char *state;
            int n;
        } rows[] = { { "finished", t->done },
                     { "failed", t->failed },
                     { "paused", t->paused },
                     { "stopped", t->stopped },
                     { "other", t->trials - t->done - t->failed - t->paused - t->stopped } };
        for (size_t k = 0; k < ARRAY_LEN(rows); k++)
            prometheus_line(b, "pipetune_trials",
                            (const char *const[]){ "study", g->v[i].name, "state", rows[k].state, NULL }, rows[k].n);
    }
}

static void put_best(struct buf *b, const struct gathered *g)
{
    put_head(b, "pipetune_metric", "gauge", "What the best trial of the study came to.");
    for (size_t i = 0; i < g->n; i++)
        for (size_t k = 0; k < FIGURES_MAX; k++)
            if (g->v[i].best[k].name)
                prometheus_line(b, "pipetune_metric",
                                (const char *const[]){ "study", g->v[i].name, "name", g->v[i].best[k].name, NULL },
                                g->v[i].best[k].value);
}

/* Studies of the queue that have not ended. */
static int put_queue(struct buf *b, const struct gathered *g)
{
    struct standings queue = { 0 };
    int rc = g->store ? standings_load(&queue, g->store, g->e) : 0, waiting = 0;
    for (size_t i = 0; i < queue.n; i++)
        waiting += strcmp(queue.v[i].row.state, QUEUED) == 0;
    put_head(b, "pipetune_queued_studies", "gauge", "Studies that were submitted and have not ended.");
    prometheus_line(b, "pipetune_queued_studies", (const char *const[]){ "state", "waiting", NULL }, waiting);
    prometheus_line(b, "pipetune_queued_studies", (const char *const[]){ "state", "begun", NULL },
                    (double)queue.n - waiting);
    standings_done(&queue);
    return rc;
}

static void put_machine(struct buf *b, const struct gathered *g)
{
    int running = 0, waiting = 0, leased = leases_taken();
    for (size_t i = 0; i < g->n; i++) {
        running += g->v[i].running;
        waiting += g->v[i].waiting;
    }
    put_head(b, "pipetune_cpus_leased", "gauge", "CPUs of this machine that drivers have.");
    prometheus_line(b, "pipetune_cpus_leased", NULL, leased < 0 ? (double)NAN : leased);
    put_head(b, "pipetune_queue_length", "gauge", "Trials of studies that have a driver.");
    prometheus_line(b, "pipetune_queue_length", (const char *const[]){ "state", "running", NULL }, running);
    prometheus_line(b, "pipetune_queue_length", (const char *const[]){ "state", "waiting", NULL }, waiting);
    struct proc_usage own;
    bool known = proc_usage(getpid(), &own) == 0;
    put_head(b, "pipetune_server_cpu_seconds_total", "counter", "CPU time of this server.");
    prometheus_line(b, "pipetune_server_cpu_seconds_total", NULL, known ? own.cpu_s : (double)NAN);
    put_head(b, "pipetune_server_resident_bytes", "gauge", "Memory of this server.");
    prometheus_line(b, "pipetune_server_resident_bytes", NULL, known ? own.resident_bytes : (double)NAN);
}

int prometheus_put(struct prometheus *p, struct buf *b, struct store *s, const char *store_path, struct err *e)
{
    struct gathered g = { .p = p, .store = s, .path = store_path, .e = e };
    *e = (struct err){ 0 };
    int rc = s ? store_list(s, gather, &g, e) : 0;
    if (rc == 0) {
        put_states(b, &g);
        put_trials(b, &g);
        put_per_study(b, &g);
        put_best(b, &g);
        put_machine(b, &g);
        rc = put_queue(b, &g);
    }
    if (rc < 0 && !e->code)
        (void)err_sys(e, rc, "cannot gather the metrics");
    gathered_done(&g);
    return rc;
}
