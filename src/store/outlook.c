#include "store/outlook.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/own.h"
#include "core/config.h"
#include "core/sched.h"
#include "core/space.h"
#include "store/trace_windows.h"

struct outlook {
    struct store *store;
    int64_t study;
    char *name;
    json_t *config; /* NULL: cannot be read */
    struct space space;
    bool has_space, maximise;
    bool timed; /* the windows have been read */
    int epochs;
    const char *metric;
    double target;
    struct forecast *forecast; /* NULL: none yet */
    struct trace_windows windows;
    /* of whole curves, one behind the other, while they are gathered */
    double *values;
    size_t n_values, cap_values;
    struct unit_point *places;
    size_t n, cap_places;
};

/* --- the study --- */

static const json_t *config_member(const json_t *config, const char *section, const char *key)
{
    return json_object_get(json_object_get(config, section), key);
}

static const char *metric_of(const json_t *config)
{
    const char *metric = json_string_value(config_member(config, "study", "metric"));
    return metric ? metric : "accuracy";
}

static int read_space(struct outlook *o, const struct store_study *study)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct err ignored;
    int rc = json_doc_parse(&doc, study->name, study->config, strlen(study->config), &ignored);
    rc = rc < 0 ? rc : space_parse(&o->space, &doc, &ignored);
    o->has_space = rc == 0;
    return rc == -ENOMEM ? rc : 0; /* curves alone tell something, too */
}

int outlook_open(struct outlook **out, struct store *s, const struct store_study *study, struct err *e)
{
    struct outlook *o = calloc(1, sizeof *o);
    if (!o)
        return err_sys(e, -ENOMEM, "study '%s'", study->name);
    *o = (struct outlook){ .store = s, .study = study->id, .name = strdup(study->name), .maximise = study->maximise };
    o->config = study->config ? json_loads(study->config, 0, NULL) : NULL;
    o->metric = metric_of(o->config);
    o->epochs = (int)json_integer_value(config_member(o->config, "study", "epochs"));
    const json_t *target = config_member(o->config, "study", "target");
    o->target = json_is_number(target) ? json_number_value(target) : (double)NAN;
    int rc = !o->name ? -ENOMEM : o->config ? read_space(o, study) : 0;
    if (rc < 0) {
        outlook_free(o);
        return err_sys(e, rc, "study '%s'", study->name);
    }
    *out = o;
    return 0;
}

void outlook_renew_times(struct outlook *o)
{
    trace_windows_done(&o->windows);
    o->timed = false;
}

void outlook_renew(struct outlook *o)
{
    forecast_free(o->forecast);
    o->forecast = NULL;
    outlook_renew_times(o);
}

bool outlook_has_learnt(const struct outlook *o)
{
    return o->forecast != NULL;
}

int64_t outlook_study(const struct outlook *o)
{
    return o->study;
}

void outlook_free(struct outlook *o)
{
    if (!o)
        return;
    outlook_renew(o);
    if (o->has_space)
        space_done(&o->space);
    json_decref(o->config);
    free(o->name);
    free(o->values);
    free(o->places);
    free(o);
}

/* --- curves --- */

/* A trial as it told its metric. */
struct trained {
    double *values; /* NAN: none was told */
    size_t n, cap;
    struct store_epoch *rows;
    size_t n_rows, cap_rows;
};

static void trained_done(struct trained *t)
{
    free(t->values);
    free(t->rows);
}

static int on_epoch(void *ctx, const struct store_epoch *r)
{
    struct trained *t = ctx;
    enum { EPOCHS_MAX = 1000000 };
    if (r->epoch < 1 || r->epoch > EPOCHS_MAX)
        return 0;
    struct store_epoch *rows = array_more(t->rows, t->n_rows, &t->cap_rows, sizeof *rows);
    if (!rows)
        return -ENOMEM;
    t->rows = rows;
    t->rows[t->n_rows++] = *r;
    while (t->n < (size_t)r->epoch) {
        double *values = array_more(t->values, t->n, &t->cap, sizeof *values);
        if (!values)
            return -ENOMEM;
        t->values = values;
        t->values[t->n++] = NAN;
    }
    t->values[r->epoch - 1] = r->metric;
    return 0;
}

static int read_trained(struct outlook *o, const struct store_trial *row, struct trained *out, struct err *e)
{
    int rc = store_epochs(o->store, row->id, on_epoch, out, e);
    return rc == -ENOMEM ? err_sys(e, rc, "trial %s/%d", o->name, row->number) : rc;
}

/* False: it is no point of this study's space. */
static bool place_of(const struct outlook *o, const struct store_trial *row, struct unit_point *out)
{
    AUTO_JSON json_t *hyper = row->hyper ? json_loads(row->hyper, 0, NULL) : NULL;
    struct point point;
    *out = (struct unit_point){ 0 };
    if (!o->has_space)
        return true;
    if (space_point_parse(&o->space, hyper, NULL, &point) < 0)
        return false;
    *out = unit_of(&o->space, &point);
    return true;
}

static int keep_curve(struct outlook *o, const struct trained *t, const struct unit_point *place)
{
    struct unit_point *places = array_more(o->places, o->n, &o->cap_places, sizeof *places);
    if (!places)
        return -ENOMEM;
    o->places = places;
    places[o->n] = *place;
    for (int i = 0; i < o->epochs; i++) {
        double *values = array_more(o->values, o->n_values, &o->cap_values, sizeof *values);
        if (!values)
            return -ENOMEM;
        o->values = values;
        values[o->n_values++] = t->values[i];
    }
    o->n++;
    return 0;
}

struct walk {
    struct outlook *o;
    struct err *e;
};

static int on_trial(void *ctx, const struct store_trial *row)
{
    struct walk *w = ctx;
    struct trained t = { 0 };
    struct unit_point place;
    if (row->copy_of || row->epochs < w->o->epochs || !place_of(w->o, row, &place))
        return 0;
    int rc = read_trained(w->o, row, &t, w->e);
    if (rc == 0 && t.n >= (size_t)w->o->epochs && isfinite(t.values[w->o->epochs - 1]))
        rc = keep_curve(w->o, &t, &place);
    trained_done(&t);
    return rc;
}

/* The same application, told and judged alike, trained as far. */
static bool is_alike(const struct outlook *o, const struct store_study *other)
{
    AUTO_JSON json_t *config = other->config ? json_loads(other->config, 0, NULL) : NULL;
    return config && other->maximise == o->maximise && strcmp(metric_of(config), o->metric) == 0 &&
           json_integer_value(config_member(config, "study", "epochs")) >= o->epochs &&
           config_stored_application(o->config) &&
           json_equal(config_stored_application(config), config_stored_application(o->config));
}

static int on_study(void *ctx, const struct store_summary *r)
{
    struct walk *w = ctx;
    struct store_study row = { 0 };
    if (strcmp(r->name, w->o->name) == 0)
        return 0;
    int rc = store_study_find(w->o->store, r->name, &row, w->e);
    if (rc == 1)
        rc = is_alike(w->o, &row) ? store_trials(w->o->store, row.id, 0, on_trial, w, w->e) : 0;
    store_study_done(&row);
    return rc;
}

/* The study's own curves come last: of too many the first are left out. */
static int gather(struct outlook *o, struct err *e)
{
    struct walk w = { o, e };
    o->n = o->n_values = 0;
    int rc = store_list(o->store, on_study, &w, e);
    if (rc == 0)
        rc = store_trials(o->store, o->study, 0, on_trial, &w, e);
    return rc;
}

static int learn(struct outlook *o)
{
    AUTO_FREE struct forecast_curve *curves = calloc(o->n + 1, sizeof *curves);
    if (!curves)
        return -ENOMEM;
    for (size_t i = 0; i < o->n; i++)
        curves[i] = (struct forecast_curve){ o->values + i * (size_t)o->epochs, o->epochs,
                                             o->has_space ? &o->places[i] : NULL };
    return forecast_new(&o->forecast, o->epochs, o->maximise, o->has_space ? o->space.n_dims : 0, curves, o->n);
}

/* --- under which setting epochs were trained --- */

static int read_log(void *ctx, const char *text)
{
    struct outlook *o = ctx;
    for (size_t len; *text; text += len + (text[len] == '\n')) {
        len = strcspn(text, "\n");
        AUTO_FREE char *line = strndup(text, len);
        if (!line || trace_windows_line(&o->windows, line) < 0)
            return -ENOMEM;
    }
    return 0;
}

static bool same_setting(const struct trace_stretch *a, const struct trace_stretch *b)
{
    return a->cores == b->cores && a->memory_gb == b->memory_gb;
}

/* The trial's newest stretch; NULL: its settings are not watched. */
static const struct trace_stretch *in_force(const struct trace_windows *w, int trial)
{
    for (size_t i = w->n; i-- > 0;)
        if (w->list[i].trial == trial)
            return &w->list[i];
    return NULL;
}

/* Was all of this epoch trained under it? */
static bool is_under(const struct trace_windows *w, const struct trace_stretch *now, int epoch)
{
    bool any = false;
    for (size_t i = 0; i < w->n; i++) {
        const struct trace_stretch *s = &w->list[i];
        if (s->trial != now->trial || s->epoch != epoch)
            continue;
        if (!same_setting(s, now))
            return false;
        any = true;
    }
    return any;
}

/* By how fast records go under it, where no whole epoch was. */
static double by_records(const struct trace_windows *w, const struct trace_stretch *now, const struct trained *t)
{
    double seconds = 0, records = 0, of_epoch = NAN;
    for (size_t i = 0; i < w->n; i++) {
        const struct trace_stretch *s = &w->list[i];
        if (s->trial != now->trial || !same_setting(s, now))
            continue;
        seconds += s->seconds;
        records += s->records;
    }
    for (size_t i = 0; i < t->n_rows; i++)
        of_epoch = t->rows[i].records > 0 ? t->rows[i].records : of_epoch;
    return seconds > 0 && records > 0 ? seconds / records * of_epoch : (double)NAN;
}

/* Where nothing watches settings, they stay as the newest attempt was launched. */
static double epoch_seconds(const struct outlook *o, int trial, const struct trained *t)
{
    const struct trace_stretch *now = in_force(&o->windows, trial);
    double sum = 0, n = 0;
    int newest = 0;
    for (size_t i = 0; i < t->n_rows; i++)
        newest = t->rows[i].attempt > newest ? t->rows[i].attempt : newest;
    for (size_t i = 0; i < t->n_rows; i++) {
        const struct store_epoch *r = &t->rows[i];
        bool counts = now ? is_under(&o->windows, now, r->epoch) : r->attempt == newest;
        if (!counts || !(r->seconds > 0))
            continue;
        sum += r->seconds;
        n++;
    }
    return n > 0 ? sum / n : now ? by_records(&o->windows, now, t) : (double)NAN;
}

/* --- looking --- */

static int load(struct outlook *o, struct err *e)
{
    int rc = o->forecast ? 0 : gather(o, e);
    if (rc == 0 && !o->forecast)
        rc = learn(o);
    if (rc == 0 && !o->timed && isfinite(o->target)) {
        rc = store_tuner_log(o->store, o->study, read_log, o, e);
        o->timed = rc == 0;
    }
    return rc == -ENOMEM ? err_sys(e, rc, "forecasts of study '%s'", o->name) : rc;
}

static bool has_a_future(const struct store_trial *t)
{
    int state = trial_state_parse(t->state);
    return state != TRIAL_FINISHED && state != TRIAL_FAILED && state != TRIAL_INFEASIBLE;
}

/* Of metrics that are shares of 1, no more than that is foretold. */
static bool is_share(const struct outlook *o, const struct trained *t)
{
    static const char *const shares[] = { "acc", "f1", "auc", "precision", "recall", "iou", "dice" };
    bool is = false;
    for (size_t i = 0; i < ARRAY_LEN(shares); i++)
        is = is || strcasestr(o->metric, shares[i]);
    for (size_t i = 0; i < t->n; i++)
        is = is && !(t->values[i] < 0 || t->values[i] > 1);
    return is;
}

static void bound(struct foretold *v)
{
    double *const all[] = { &v->median, &v->low, &v->high };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        *all[i] = fmin(1, fmax(0, *all[i]));
}

struct looking {
    bool share;
    struct trained trained;
    struct unit_point place;
    struct forecast_curve curve; /* n 0: there is nothing to foretell from */
};

/* looking_done() frees, also after a failure. */
static int begin(struct outlook *o, const struct store_trial *t, struct looking *l, struct err *e)
{
    *l = (struct looking){ 0 };
    if (o->epochs < 1 || t->copy_of || !has_a_future(t))
        return 0;
    int rc = read_trained(o, t, &l->trained, e);
    size_t n = l->trained.n;
    while (n > 0 && isnan(l->trained.values[n - 1]))
        n--;
    if (rc < 0 || n == 0 || n >= (size_t)o->epochs)
        return rc;
    rc = load(o, e);
    l->share = is_share(o, &l->trained);
    bool placed = o->has_space && place_of(o, t, &l->place);
    l->curve = (struct forecast_curve){ l->trained.values, rc == 0 ? (int)n : 0, placed ? &l->place : NULL };
    return rc;
}

static int explained(const struct outlook *o, const struct store_trial *t, int rc, struct err *e)
{
    if (rc == -ENOMEM)
        return err_sys(e, rc, "forecast of trial %s/%d", o->name, t->number);
    return rc == -ENODATA ? 0 : rc;
}

int outlook_look(struct outlook *o, const struct store_trial *t, struct outlook_told *out, struct err *e)
{
    struct looking l;
    struct outlook_told told = { .target = o->target, .epoch_s = NAN };
    int rc = begin(o, t, &l, e);
    if (rc == 0 && l.curve.n > 0) {
        rc = forecast_at(o->forecast, &l.curve, o->epochs, &told.value);
        if (rc == 0 && isfinite(o->target))
            rc = forecast_reach(o->forecast, &l.curve, o->target, &told.reach);
        told.epoch = rc == 0 ? o->epochs : 0;
        if (l.share)
            bound(&told.value);
        told.seen = l.curve.n;
        told.last = l.curve.values[l.curve.n - 1];
        told.epoch_s = isfinite(o->target) ? epoch_seconds(o, t->number, &l.trained) : (double)NAN;
        rc = explained(o, t, rc, e);
    }
    trained_done(&l.trained);
    if (rc == 0)
        *out = told;
    return rc;
}

int outlook_way(struct outlook *o, const struct store_trial *t, struct outlook_step out[OUTLOOK_WAY_MAX], struct err *e)
{
    struct looking l;
    int n = 0, rc = begin(o, t, &l, e);
    for (int i = 0; rc == 0 && l.curve.n > 0 && i < OUTLOOK_WAY_MAX; i++) {
        double share = (double)i / (OUTLOOK_WAY_MAX - 1);
        int epoch = l.curve.n + (int)lround((o->epochs - l.curve.n) * share * share);
        if (n > 0 && out[n - 1].epoch == epoch)
            continue;
        out[n].epoch = epoch;
        rc = explained(o, t, forecast_at(o->forecast, &l.curve, epoch, &out[n].value), e);
        if (l.share)
            bound(&out[n].value);
        n++;
    }
    trained_done(&l.trained);
    return rc < 0 ? rc : n;
}

double outlook_seconds(const struct outlook_told *t, int epoch)
{
    return epoch > t->seen ? (epoch - t->seen) * t->epoch_s : (double)NAN;
}
