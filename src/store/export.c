#include "store/export.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "core/sched.h"
#include "core/space.h"
#include "store/trace_windows.h"

/* Stamps have no zone: zones differ from UTC by quarters of an hour. Clocks may disagree by so much the other way. */
static const double ZONE_S = 900, EARLY_S = 60;

enum { KEY_MAX = 32 };

struct exporter {
    struct trace *out;
    struct store *store;
    const struct store_study *study;
    char *model, *dataset;
    struct trace_windows told;
    const struct store_trial *trial; /* whose attempts are walked over */
    struct store_epoch *epochs;      /* its */
    size_t n_epochs, cap_epochs, cap_decisions;
    size_t rows; /* of all tables so far */
    struct err *e;
};

static void exporter_done(struct exporter *x)
{
    free(x->model);
    free(x->dataset);
    free(x->epochs);
    trace_windows_done(&x->told);
}

static int no_memory(struct exporter *x)
{
    return err_sys(x->e, -ENOMEM, "cannot record study '%s'", x->study->name);
}

static int too_much(struct exporter *x, const char *what)
{
    return err_set(x->e, -E2BIG, "study '%s' cannot be recorded: %s", x->study->name, what);
}

/* --- names --- */

static const char *base_of(const char *path, size_t *len)
{
    const char *end = path + strlen(path);
    while (end > path && end[-1] == '/')
        end--;
    const char *base = end;
    while (base > path && base[-1] != '/')
        base--;
    *len = (size_t)(end - base);
    return base;
}

static bool is_verb(const char *word)
{
    static const char *const verbs[] = { "train", "test", "main", "run", "app" };
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcasecmp(word, verbs[i]) == 0)
            return true;
    return false;
}

static char *model_of_class(const char *name)
{
    const char *dot = strrchr(name, '.');
    if (!dot)
        return trace_name(name, strlen(name));
    if (!is_verb(dot + 1))
        return trace_name(dot + 1, strlen(dot + 1));
    const char *from = dot;
    while (from > name && from[-1] != '.')
        from--;
    return trace_name(from, (size_t)(dot - from));
}

/* NULL: memory. */
static char *model_of(const json_t *bigdl)
{
    const char *class = json_string_value(json_object_get(bigdl, "class"));
    const char *file = json_string_value(json_object_get(bigdl, "conf"));
    if (class)
        return model_of_class(class);
    size_t len = 0;
    const char *base = base_of(file ? file : "", &len);
    const char *dot = memrchr(base, '.', len);
    return trace_name(base, dot && dot > base ? (size_t)(dot - base) : len);
}

/* "--Data-Path" is datapath. */
static bool names_data(const char *key)
{
    static const char *const names[] = { "data",   "dataset", "datapath", "datadir",  "datafolder",
                                         "folder", "f",       "input",    "inputpath" };
    char plain[KEY_MAX] = "";
    size_t n = 0;
    for (; *key && n < sizeof plain - 1; key++)
        if (*key != '-' && *key != '_')
            plain[n++] = (char)tolower((unsigned char)*key);
    for (size_t i = 0; i < ARRAY_LEN(names) && !*key; i++)
        if (strcmp(plain, names[i]) == 0)
            return true;
    return false;
}

/* Extras are an object, or words one after the other. NULL: none of them names data. */
static const char *data_of(json_t *extras)
{
    for (size_t i = 0; i + 1 < json_array_size(extras); i++) {
        const char *key = json_string_value(json_array_get(extras, i));
        if (key && key[0] == '-' && names_data(key))
            return json_string_value(json_array_get(extras, i + 1));
    }
    const char *key;
    json_t *value;
    json_object_foreach(extras, key, value)
    {
        if (names_data(key) && json_is_string(value))
            return json_string_value(value);
    }
    return NULL;
}

static char *dataset_of(const json_t *bigdl)
{
    json_t *extras = json_object_get(bigdl, "extras");
    const char *path = data_of(extras ? extras : json_object_get(bigdl, "extra"));
    size_t len = 0;
    const char *base = base_of(path ? path : "", &len);
    return trace_name(base, len);
}

static int name_all(struct exporter *x)
{
    const char *text = x->study->provenance;
    AUTO_JSON json_t *provenance = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *bigdl = json_object_get(provenance, "bigdl");
    x->model = model_of(bigdl);
    x->dataset = dataset_of(bigdl);
    return x->model && x->dataset ? 0 : no_memory(x);
}

/* --- the tuner --- */

static int count_rows(struct exporter *x, size_t n)
{
    x->rows += n;
    return x->rows > TRACE_ROWS_MAX ? too_much(x, "it has more rows than a trace may hold") : 0;
}

static int check_text(struct exporter *x, const char *text)
{
    return text && strlen(text) > TRACE_TEXT_MAX ? too_much(x, "one of its texts is longer than a trace may hold") : 0;
}

static int add_line(struct exporter *x, const char *from, size_t len)
{
    struct strv *log = &x->out->tuner.log;
    strv_take(log, strndup(from, len));
    if (log->failed || trace_windows_line(&x->told, log->v[log->n - 1]) < 0)
        return no_memory(x);
    int rc = check_text(x, log->v[log->n - 1]);
    return rc < 0 ? rc : count_rows(x, 1);
}

static int add_chunk(void *ctx, const char *text)
{
    int rc = 0;
    for (size_t len; rc == 0 && *text; text += len + (text[len] == '\n')) {
        len = strcspn(text, "\n");
        rc = add_line(ctx, text, len);
    }
    return rc;
}

static char *text_of(const char *text)
{
    return strdup(text ? text : "");
}

static int add_decision(void *ctx, const struct store_decision *d)
{
    struct exporter *x = ctx;
    struct trace_tuner *t = &x->out->tuner;
    if (t->n_decisions == x->cap_decisions) {
        size_t cap = x->cap_decisions ? 2 * x->cap_decisions : 64;
        struct trace_decision *grown = realloc(t->decisions, cap * sizeof *grown);
        if (!grown)
            return no_memory(x);
        t->decisions = grown;
        x->cap_decisions = cap;
    }
    struct trace_decision *to = &t->decisions[t->n_decisions++];
    *to = (struct trace_decision){
        d->seq, d->trial, d->t_s, text_of(d->kind), text_of(d->setting), text_of(d->reason),
    };
    if (!to->kind || !to->setting || !to->reason)
        return no_memory(x);
    int rc = check_text(x, to->setting);
    if (rc == 0)
        rc = check_text(x, to->reason);
    return rc < 0 ? rc : count_rows(x, 1);
}

static int add_tuner(struct exporter *x)
{
    AUTO_JSON json_t *config = x->study->config ? json_loads(x->study->config, 0, NULL) : NULL;
    const char *policy = json_string_value(json_object_get(json_object_get(config, "tuning"), "policy"));
    struct trace_tuner *t = &x->out->tuner;
    if (!policy)
        policy = "v1"; /* all there was before there were policies */
    t->policy = trace_name(policy, strlen(policy));
    t->study = trace_name(x->study->name, strlen(x->study->name));
    if (!t->policy || !t->study)
        return no_memory(x);
    int rc = store_tuner_log(x->store, x->study->id, add_chunk, x, x->e);
    return rc < 0 ? rc : store_decisions(x->store, x->study->id, 0, add_decision, x, x->e);
}

/* --- one attempt --- */

static enum timeline_status status_of(const struct store_attempt *a)
{
    if (strcmp(a->state, "ended") != 0)
        return RUN_RUNNING;
    int outcome = a->outcome ? outcome_parse(a->outcome) : -EINVAL;
    if (outcome == OUTCOME_FINISHED)
        return RUN_COMPLETE;
    bool failed = outcome == OUTCOME_FAILED || outcome == OUTCOME_INFEASIBLE || outcome == OUTCOME_REFUSED;
    return failed ? RUN_FAILED : RUN_PARTIAL;
}

/* The first epoch that this attempt trained, NULL: none. */
static const struct store_epoch *first_of(const struct exporter *x, const struct store_attempt *a)
{
    for (size_t i = 0; i < x->n_epochs; i++)
        if (x->epochs[i].attempt == a->number)
            return &x->epochs[i];
    return NULL;
}

static double begin_ms(const struct store_epoch *ep)
{
    return ep->end_ms > 0 ? (double)ep->end_ms - ep->seconds * 1000.0 : (double)NAN;
}

static double startup_of(const struct store_attempt *a, const struct store_epoch *first)
{
    if (!first || !isnan(a->startup_s))
        return a->startup_s;
    double s = (begin_ms(first) - (double)a->started_ms) / 1000.0 + EARLY_S;
    return isnan(s) ? s : fmax(0, s - ZONE_S * floor(s / ZONE_S) - EARLY_S);
}

static int last_epoch(const struct exporter *x, const struct store_attempt *a)
{
    int last = 0;
    for (size_t i = 0; i < x->n_epochs; i++)
        if (x->epochs[i].attempt == a->number && x->epochs[i].epoch > last)
            last = x->epochs[i].epoch;
    return last;
}

static struct trace_epoch epoch_of(const struct store_epoch *ep, double start_s)
{
    return (struct trace_epoch){ .start_s = start_s,
                                 .duration_s = ep->seconds,
                                 .loss = ep->loss,
                                 .accuracy = ep->accuracy,
                                 .energy_j = NAN,
                                 .iterations = (double)ep->iterations,
                                 .records = ep->records };
}

/* Rows of epochs of which nothing is known yet. */
static int make_epochs(struct exporter *x, struct trace_run *r, size_t n)
{
    int rc = count_rows(x, n);
    if (rc < 0)
        return rc;
    r->epochs = calloc(n + 1, sizeof *r->epochs);
    if (!r->epochs)
        return no_memory(x);
    for (; r->n_epochs < n; r->n_epochs++)
        r->epochs[r->n_epochs] = trace_no_epoch();
    return 0;
}

static int add_epochs(struct exporter *x, struct trace_run *r, const struct store_attempt *a)
{
    const struct store_epoch *first = first_of(x, a);
    double begun_s = isnan(r->startup_s) ? 0 : r->startup_s, next_s = begun_s;
    int rc = make_epochs(x, r, (size_t)last_epoch(x, a));
    for (size_t i = 0; rc == 0 && i < x->n_epochs; i++) {
        const struct store_epoch *ep = &x->epochs[i];
        if (ep->attempt != a->number || ep->epoch < 1)
            continue;
        double by_stamps_s = begun_s + (begin_ms(ep) - begin_ms(first)) / 1000.0;
        double start_s = isnan(by_stamps_s) ? next_s : by_stamps_s;
        r->epochs[ep->epoch - 1] = epoch_of(ep, start_s);
        next_s = start_s + ep->seconds;
    }
    return rc;
}

static json_t *number_json(double number)
{
    struct value v = value_of_number(number);
    return value_to_json(&v);
}

/* What the attempt was launched with; where that is not stored, all that the log tells. New reference, NULL: memory. */
static json_t *launched_with(const struct store_attempt *a, const struct trace_stretch *s)
{
    json_t *setting = a->setting ? json_loads(a->setting, 0, NULL) : NULL;
    if (json_is_object(setting))
        return setting;
    json_decref(setting);
    setting = json_pack("{s:o}", "cores", number_json(s->cores));
    if (setting && s->memory_gb > 0 && json_object_set_new(setting, "memory", number_json(s->memory_gb)) < 0) {
        json_decref(setting);
        return NULL;
    }
    return setting;
}

/* Only hot knobs change while an attempt runs, and of these the log tells the cores alone. */
static int put_hot(json_t *setting, const struct trace_stretch *s)
{
    int rc = json_object_get(setting, "cores") ? json_object_set_new(setting, "cores", number_json(s->cores)) : 0;
    if (rc < 0 || !s->alike)
        return rc;
    static const enum knob_id others[] = { KNOB_FREQUENCY, KNOB_POWER_CAP };
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        (void)json_object_del(setting, knob_kinds[others[i]].name); /* it need not be there */
    return json_object_set_new(setting, "hot", json_integer(s->hot));
}

/* The setting of a stretch. NULL: memory. */
static char *setting_of(const struct store_attempt *a, const struct trace_stretch *s)
{
    AUTO_JSON json_t *setting = launched_with(a, s);
    if (!setting || put_hot(setting, s) < 0)
        return NULL;
    return json_text(setting);
}

static bool trained(const struct exporter *x, const struct store_attempt *a, int epoch)
{
    for (size_t i = 0; i < x->n_epochs; i++)
        if (x->epochs[i].epoch == epoch)
            return x->epochs[i].attempt == a->number;
    return false;
}

static bool is_of(const struct exporter *x, const struct store_attempt *a, const struct trace_stretch *s)
{
    return s->trial == x->trial->number && trained(x, a, s->epoch);
}

static int add_window(struct exporter *x, struct trace_run *r, const struct store_attempt *a,
                      const struct trace_stretch *s)
{
    struct trace_window *w = &r->windows[r->n_windows++];
    *w = (struct trace_window){ .epoch = s->epoch, .setting = setting_of(a, s), .at = trace_no_epoch() };
    w->at.start_s = r->epochs[s->epoch - 1].start_s + s->from_s;
    w->at.duration_s = s->seconds;
    w->at.records = s->records;
    return w->setting ? count_rows(x, 1) : no_memory(x);
}

static int add_windows(struct exporter *x, struct trace_run *r, const struct store_attempt *a)
{
    size_t n = 0;
    for (size_t i = 0; i < x->told.n; i++)
        n += is_of(x, a, &x->told.list[i]);
    if (n == 0)
        return 0;
    r->windows = calloc(n, sizeof *r->windows);
    if (!r->windows)
        return no_memory(x);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < x->told.n; i++)
        if (is_of(x, a, &x->told.list[i]))
            rc = add_window(x, r, a, &x->told.list[i]);
    return rc;
}

static char *results_of(const struct exporter *x, const struct store_attempt *a)
{
    AUTO_JSON json_t *j =
        json_pack("{s:s, s:i, s:i, s:s?, s:i}", "study", x->study->name, "trial", x->trial->number, "attempt",
                  a->number, "outcome", strcmp(a->state, "ended") == 0 ? a->outcome : NULL, "slots", x->trial->slots);
    int rc = j ? 0 : -1;
    if (rc == 0 && a->session)
        rc = json_object_set_new(j, "session", json_integer(a->session));
    if (rc == 0 && a->cause && *a->cause)
        rc = json_object_set_new(j, "cause", json_string(a->cause));
    if (rc < 0)
        return NULL;
    return json_text(j);
}

static const char *last_setting(const struct trace_run *r, const struct store_attempt *a)
{
    if (r->n_windows)
        return r->windows[r->n_windows - 1].setting;
    return a->setting ? a->setting : "{}";
}

static int add_attempt(void *ctx, const struct store_attempt *a)
{
    struct exporter *x = ctx;
    if (strcmp(a->state, "starting") == 0)
        return 0;
    struct trace_run *r = trace_add(x->out);
    if (!r)
        return no_memory(x);
    r->status = status_of(a);
    r->startup_s = startup_of(a, first_of(x, a));
    int rc = add_epochs(x, r, a);
    if (rc == 0)
        rc = add_windows(x, r, a);
    if (rc < 0)
        return rc;
    r->model = strdup(x->model);
    r->dataset = strdup(x->dataset);
    r->hyper = strdup(x->trial->hyper);
    r->system = strdup(last_setting(r, a));
    r->results = results_of(x, a);
    return r->model && r->dataset && r->hyper && r->system && r->results ? 0 : no_memory(x);
}

/* --- all of them --- */

static int keep_epoch(void *ctx, const struct store_epoch *row)
{
    struct exporter *x = ctx;
    if (x->n_epochs == x->cap_epochs) {
        size_t cap = x->cap_epochs ? 2 * x->cap_epochs : 64;
        struct store_epoch *grown = realloc(x->epochs, cap * sizeof *grown);
        if (!grown)
            return no_memory(x);
        x->epochs = grown;
        x->cap_epochs = cap;
    }
    x->epochs[x->n_epochs++] = *row;
    return 0;
}

static int add_trial(void *ctx, const struct store_trial *t)
{
    struct exporter *x = ctx;
    x->trial = t;
    x->n_epochs = 0;
    int rc = store_epochs(x->store, t->id, keep_epoch, x, x->e);
    return rc < 0 ? rc : store_attempts(x->store, t->id, add_attempt, x, x->e);
}

int export_study(struct trace *out, struct store *s, const struct store_study *study, struct err *e)
{
    struct trace t = { 0 };
    struct exporter x = { .out = &t, .store = s, .study = study, .e = e };
    int rc = trace_default_features(&t) < 0 ? no_memory(&x) : name_all(&x);
    if (rc == 0)
        rc = add_tuner(&x);
    if (rc == 0)
        rc = store_trials(s, study->id, 0, add_trial, &x, e);
    if (rc == 0 && t.n > TRACE_RUNS_MAX)
        rc = too_much(&x, "it has more attempts than a trace may hold runs");
    exporter_done(&x);
    if (rc < 0)
        trace_done(&t);
    else
        *out = t;
    return rc;
}
