#include "store/export.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/own.h"
#include "core/sched.h"
#include "core/space.h"
#include "monitoring/features.h"
#include "store/samples.h"
#include "store/times.h"
#include "store/trace_windows.h"

enum { KEY_MAX = 32 };

static const double NS_PER_MS = 1e6;

/* The attempts of a trial that are runs: to the one that was begun last belongs what was sampled. */
struct began {
    size_t run; /* its index */
    double started_ms;
    size_t n; /* samples */
};

struct exporter {
    struct trace *out;
    struct store *store;
    const struct store_study *study;
    char *model, *dataset;
    struct trace_windows told;
    const struct store_trial *trial; /* whose attempts are walked over */
    struct store_epoch *epochs;      /* its */
    size_t n_epochs, cap_epochs, cap_decisions;
    struct began *began; /* its, in their order */
    size_t n_began, cap_began;
    size_t rows;  /* of all tables so far */
    size_t cells; /* of all samples so far */
    struct err *e;
};

static void exporter_done(struct exporter *x)
{
    free(x->model);
    free(x->dataset);
    free(x->epochs);
    free(x->began);
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
static char *model_of(const json_t *application)
{
    const char *class = json_string_value(json_object_get(application, "class"));
    const char *file = json_string_value(json_object_get(application, "conf"));
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

static char *dataset_of(const json_t *application)
{
    json_t *extras = json_object_get(application, "extras");
    const char *path = data_of(extras ? extras : json_object_get(application, "extra"));
    size_t len = 0;
    const char *base = base_of(path ? path : "", &len);
    return trace_name(base, len);
}

static int name_all(struct exporter *x)
{
    const char *text = x->study->provenance;
    AUTO_JSON json_t *provenance = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *application = json_object_get(provenance, "bigdl");
    x->model = model_of(application);
    x->dataset = dataset_of(application);
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
    struct trace_decision *grown = array_more(t->decisions, t->n_decisions, &x->cap_decisions, sizeof *grown);
    if (!grown)
        return no_memory(x);
    t->decisions = grown;
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
    int rc = make_epochs(x, r, (size_t)last_epoch(x, a));
    if (rc < 0)
        return rc;
    AUTO_FREE struct times_epoch *at = calloc(x->n_epochs + 1, sizeof *at);
    if (!at)
        return no_memory(x);
    size_t n = times_epochs(at, a, x->epochs, x->n_epochs);
    for (size_t i = 0; i < n; i++)
        r->epochs[at[i].row->epoch - 1] = epoch_of(at[i].row, at[i].start_s);
    return 0;
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
        rc = json_object_set_new(j, "cause", json_bytes(a->cause));
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

/* Remembers when the newest run began. */
static int keep_began(struct exporter *x, const struct store_attempt *a)
{
    struct began *grown = array_more(x->began, x->n_began, &x->cap_began, sizeof *grown);
    if (!grown)
        return no_memory(x);
    x->began = grown;
    x->began[x->n_began++] = (struct began){ .run = x->out->n - 1, .started_ms = (double)a->started_ms };
    return 0;
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
    r->startup_s = times_startup_s(a, x->epochs, x->n_epochs);
    int rc = keep_began(x, a);
    if (rc == 0)
        rc = add_epochs(x, r, a);
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

/* --- samples --- */

/* The attempt that was begun last before the middle of the interval: the helper's clock may be a little off. */
static struct began *owner_of(const struct exporter *x, const struct store_sample *row)
{
    double middle_ms = row->t_ms - row->dt_ms / 2;
    size_t at = 0;
    for (size_t i = 1; i < x->n_began; i++)
        if (x->began[i].started_ms <= middle_ms)
            at = i;
    return &x->began[at];
}

static int count_sample(void *ctx, const struct store_sample *row)
{
    struct exporter *x = ctx;
    if (!row->v && !row->why)
        return 0; /* it was thinned */
    owner_of(x, row)->n++;
    x->cells += FEATURES;
    return x->cells > TRACE_CELLS_MAX ? too_much(x, "it has more samples than a trace may hold") : 0;
}

static int add_sample(void *ctx, const struct store_sample *row)
{
    struct exporter *x = ctx;
    const struct began *owner = owner_of(x, row);
    struct trace_samples *s = &x->out->runs[owner->run].samples;
    if (row->why)
        return err_set(x->e, -EINVAL, "trial %d: %s", x->trial->number, row->why);
    if (!row->v)
        return 0;
    s->t_ns[s->n] = (int64_t)llround((row->t_ms - owner->started_ms) * NS_PER_MS);
    s->node[s->n] = row->node < 0 || row->node > UINT16_MAX ? UINT16_MAX : (uint16_t)row->node;
    for (size_t i = 0; i < FEATURES; i++) {
        s->value[s->n * FEATURES + i] = row->v[i].value;
        s->state[s->n * FEATURES + i] = row->v[i].state;
        s->ratio[s->n * FEATURES + i] = row->v[i].ratio;
    }
    s->n++;
    return 0;
}

static int make_samples(struct exporter *x)
{
    for (size_t i = 0; i < x->n_began; i++) {
        struct trace_samples *s = &x->out->runs[x->began[i].run].samples;
        if (x->began[i].n > 0 && trace_samples_init(s, x->began[i].n, FEATURES) < 0)
            return no_memory(x);
        s->n = 0; /* grows again as they come */
    }
    return 0;
}

static int add_samples(struct exporter *x)
{
    if (x->n_began == 0)
        return 0;
    size_t before = x->cells;
    int rc = store_samples(x->store, x->trial->id, count_sample, x, x->e);
    if (rc < 0 || x->cells == before)
        return rc;
    rc = make_samples(x);
    return rc < 0 ? rc : store_samples(x->store, x->trial->id, add_sample, x, x->e);
}

/* --- all of them --- */

static int keep_epoch(void *ctx, const struct store_epoch *row)
{
    struct exporter *x = ctx;
    struct store_epoch *grown = array_more(x->epochs, x->n_epochs, &x->cap_epochs, sizeof *grown);
    if (!grown)
        return no_memory(x);
    x->epochs = grown;
    x->epochs[x->n_epochs++] = *row;
    return 0;
}

static int add_trial(void *ctx, const struct store_trial *t)
{
    struct exporter *x = ctx;
    x->trial = t;
    x->n_epochs = x->n_began = 0;
    int rc = store_epochs(x->store, t->id, keep_epoch, x, x->e);
    if (rc == 0)
        rc = store_attempts(x->store, t->id, add_attempt, x, x->e);
    return rc < 0 ? rc : add_samples(x);
}

static int add_features(struct trace *t)
{
    for (size_t i = 0; i < FEATURES; i++)
        strv_add(&t->features, feature_names[i]);
    return t->features.failed ? -ENOMEM : 0;
}

int export_study(struct trace *out, struct store *s, const struct store_study *study, struct err *e)
{
    struct trace t = { 0 };
    struct exporter x = { .out = &t, .store = s, .study = study, .e = e };
    int rc = add_features(&t) < 0 ? no_memory(&x) : name_all(&x);
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
