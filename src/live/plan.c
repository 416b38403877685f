#include "live/plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/capture.h"
#include "base/io.h"
#include "base/own.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "core/point_list.h"
#include "core/slurm_words.h"
#include "core/space_yaml.h"
#include "live/host_list.h"
#include "live/nodes_cfg.h"
#include "live/wants.h"
#include "monitoring/credential.h"
#include "monitoring/event_choice_cfg.h"
#include "monitoring/influx.h"
#include "monitoring/mlflow.h"
#include "search/search.h"

enum { FILE_MAX = 16 << 20 };

/* A relative path as a config means it: in the working directory, else beside the config. NULL: memory. */
static char *look_up(const char *path, const char *config_file)
{
    if (io_exists(path) || *path == '/')
        return io_absolute(path);
    AUTO_FREE char *dir = io_dirname(config_file);
    AUTO_FREE char *beside = dir ? io_join(dir, path) : NULL;
    return beside ? io_absolute(io_exists(beside) ? beside : path) : NULL;
}

static int not_there(const char *path, const char *config_file, const char *what, struct err *e)
{
    AUTO_FREE char *dir = io_dirname(config_file);
    if (*path == '/')
        return err_set(e, -EINVAL, "no %s '%s'", what, path);
    return err_set(e, -EINVAL, "no %s '%s': looked in the working directory and in '%s'", what, path, dir ? dir : "?");
}

static int read_doc(struct json_doc *out, const char *path, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT;
    int rc = io_read_file(&text, path, FILE_MAX, e);
    return rc < 0 ? rc : json_doc_parse(out, path, buf_text(&text), text.len, e);
}

static int read_app(struct plan *p, const char *config_file, struct err *e)
{
    const char *named;
    int rc = config_application(&p->cfg, &p->doc, &named, e);
    if (rc < 0)
        return rc;
    AUTO_FREE char *path = look_up(named, config_file);
    if (!path)
        return err_sys(e, -ENOMEM, "'%s'", named);
    if (!io_exists(path))
        return not_there(named, config_file, "application file", e);
    rc = read_doc(&p->app_doc, path, e);
    return rc < 0 ? rc : app_parse(&p->app, &p->app_doc, env_lookup, &p->env, e);
}

/* In the place of the config's "nodes". */
static int read_hosts(struct plan *p, struct err *e)
{
    json_t *list;
    if (!p->cfg.hosts)
        return 0;
    int rc = host_list_choose(&list, p->cfg.hosts, &p->doc, e);
    if (rc == 0 && json_object_set_new(p->doc.root, "nodes", list) < 0)
        rc = err_sys(e, -ENOMEM, "option '--hosts'");
    return rc;
}

/* "points": "FILE" becomes what is in the file, so that a study knows when it was changed. */
static int read_points(struct plan *p, const char *config_file, struct err *e)
{
    json_t *hyper = json_object_get(p->doc.root, "hyperParameters");
    const char *named = json_string_value(json_object_get(hyper, "points"));
    if (!named)
        return 0;
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_FREE char *path = look_up(named, config_file);
    if (!path)
        return err_sys(e, -ENOMEM, "'%s'", named);
    if (!io_exists(path))
        return not_there(named, config_file, "file of points", e);
    int rc = io_read_file(&text, path, FILE_MAX, e);
    if (rc < 0)
        return rc;
    json_t *points = point_list_parse(path, buf_text(&text), text.len, e, &rc);
    if (rc == 0 && json_object_set_new(hyper, "points", points) < 0)
        rc = err_sys(e, -ENOMEM, "'%s'", path);
    return rc;
}

/* What is wrong with a set is told of its file. */
static int check_sets(const struct json_doc *sets, struct err *e)
{
    struct space scratch;
    int rc = space_parse(&scratch, sets, e);
    if (rc == 0)
        space_done(&scratch);
    return rc;
}

/* "hyperParameters": "FILE", or "parameters": the same as for points. */
static int read_sets(struct plan *p, const char *config_file, struct err *e)
{
    static const char key[] = "hyperParameters";
    const json_t *hyper = json_object_get(p->doc.root, key);
    const char *named = p->cfg.parameters ? p->cfg.parameters : json_string_value(hyper);
    if (hyper && json_object_get(p->doc.root, "parameters"))
        return json_doc_err(&p->doc, "parameters", e, -EINVAL, "is there beside '%s': keep one of them", key);
    if (!named)
        return 0;
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_FREE char *path = look_up(named, config_file);
    if (!path)
        return err_sys(e, -ENOMEM, "'%s'", named);
    if (!io_exists(path))
        return not_there(named, config_file, "file of parameter sets", e);
    int rc = io_read_file(&text, path, FILE_MAX, e);
    if (rc == 0)
        rc = space_yaml_parse(&p->sets, path, buf_text(&text), text.len, e);
    if (rc == 0)
        rc = check_sets(&p->sets, e);
    if (rc == 0 && json_object_set(p->doc.root, key, json_object_get(p->sets.root, key)) < 0)
        rc = err_sys(e, -ENOMEM, "'%s'", path);
    return rc;
}

/* The file that the hyperparameters stand in. */
static const struct json_doc *hyper_doc(const struct plan *p)
{
    return p->sets.root ? &p->sets : &p->doc;
}

/* Paths of the application file: in the working directory, else beside that file or below our home. */
static int resolve_path(void *ctx, const char *key, char **path, struct err *e)
{
    const struct plan *p = ctx;
    (void)key;
    char *found = look_up(*path, p->app.file.name);
    AUTO_FREE char *at_home = found && !io_exists(found) ? io_join(p->env.home, *path) : NULL;
    if (!found)
        return err_sys(e, -ENOMEM, "'%s'", *path);
    if (at_home && io_exists(at_home)) {
        free(found);
        found = MOVE_PTR(at_home);
    }
    free(*path);
    *path = found;
    return 0;
}

/* Every hyperparameter and the epoch count must reach the application. */
static int check_reach(const struct plan *p, struct err *e)
{
    for (size_t i = 0; i < p->space.n_dims; i++) {
        struct err why;
        int rc = app_reaches(&p->app, p->space.dims[i].name, &why);
        if (rc < 0) {
            char path[192];
            (void)snprintf(path, sizeof path, "hyperParameters/%s", p->space.dims[i].name);
            return json_doc_err(hyper_doc(p), path, e, rc, "reaches nothing: %s", why.text);
        }
    }
    if (app_reaches_epochs(&p->app))
        return 0;
    return err_set(e, -EINVAL,
                   "'%s': the number of epochs reaches nothing: give 'arguments' an \"epochs\", or 'extras' an "
                   "endTriggerNum or max_epoch",
                   p->app.file.name);
}

/* A number of processes that counts none would be tuned for nothing. */
static int check_count(const struct plan *p, const char *name, struct err *e)
{
    AUTO_STRV struct strv counts = STRV_INIT;
    char path[192];
    p->app.kind->counts(&p->app, &counts);
    if (counts.failed)
        return err_sys(e, -ENOMEM, "'%s'", p->app.file.name);
    for (size_t i = 0; i < counts.n; i++)
        if (strcmp(counts.v[i], name) == 0)
            return 0;
    const char *near = suggest_nearest(name, (const char *const *)counts.v, counts.n);
    (void)snprintf(path, sizeof path, "systemParameters/%s", name);
    return json_doc_err(&p->doc, path, e, -EINVAL, "is the count of no role of '%s'%s%s%s", p->app.file.name,
                        near ? "; did you mean '" : ": give one the \"count\" \"{", near ? near : name,
                        near ? "'?" : "}\", or leave it out");
}

/* Properties are the business of some kinds of application alone, and so are gangs. */
static int check_knob(const struct plan *p, const struct knob *k, struct err *e)
{
    const char *prefix = p->app.kind->property_prefix;
    bool passed = prefix && strncmp(k->name, prefix, strlen(prefix)) == 0;
    char path[192];
    if (k->kind->id == KNOB_COUNT && p->app.kind->counts)
        return check_count(p, k->name, e);
    if (k->kind->id != KNOB_COUNT && (k->kind->id != KNOB_PROPERTY || passed))
        return 0;
    (void)snprintf(path, sizeof path, "systemParameters/%s", k->name);
    return json_doc_err(&p->doc, path, e, -EINVAL, "means nothing to an application of the kind '%s'",
                        p->app.kind->name);
}

static int check_knobs(const struct plan *p, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->space.n_knobs; i++)
        rc = check_knob(p, &p->space.knobs[i], e);
    return rc;
}

static int check_name(const char *name, struct err *e)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@-";
    size_t len = strlen(name);
    if (len == 0 || len > 100 || name[strspn(name, plain)] || *name == '-' || *name == '.')
        return err_set(
            e, -EINVAL,
            "study name '%s': 1 to 100 of letters, digits, '_', '.', '@', '-', not beginning with '.' or '-'", name);
    return 0;
}

/* pipetune.conf and a space make pipetune-1a2b3c4d. */
static int name_study(struct plan *p, const char *config_file, struct err *e)
{
    if (p->cfg.name) {
        (void)snprintf(p->name, sizeof p->name, "%s", p->cfg.name);
        return check_name(p->cfg.name, e);
    }
    const char *slash = strrchr(config_file, '/');
    char base[64];
    (void)snprintf(base, sizeof base, "%s", slash ? slash + 1 : config_file);
    char *dot = strrchr(base, '.');
    if (dot && dot != base)
        *dot = '\0';
    for (char *c = base; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-", *c) ||
            (c == base && (*c == '.' || *c == '-')))
            *c = '_';
    char hash[17];
    space_hash(&p->space, hash);
    (void)snprintf(p->name, sizeof p->name, "%s-%.8s", base, hash);
    return 0;
}

bool plan_is_local(const struct plan *p)
{
    return app_is_local(&p->app) && !config_on_slurm(&p->cfg);
}

/* A job of Slurm is one launch with all its processes, whose size is settled when it is made, and whose node nobody else looks at. */
static int fit_to_slurm(struct plan *p, struct err *e)
{
    static const char at[] = "places/slurm";
    if (!config_on_slurm(&p->cfg))
        return 0;
    if (!app_is_local(&p->app))
        return json_doc_err(&p->doc, at, e, -EINVAL,
                            "is for trials that run on one machine each, and '%s' names another master",
                            p->app.file.name);
    if (p->app.gang)
        return json_doc_err(&p->doc, at, e, -EINVAL,
                            "does not go with 'roles' of the application file: a job is one launch");
    if (p->n_nodes > 0)
        return json_doc_err(&p->doc, at, e, -EINVAL,
                            "does not go with 'nodes': which hosts there are is Slurm's to say");
    if (objective_needs_power(objective_find(p->cfg.objective)))
        return json_doc_err(&p->doc, at, e, -EINVAL,
                            "does not go with objective '%s': nobody measures its nodes' power", p->cfg.objective);
    for (size_t i = 0; i < p->space.n_knobs; i++) {
        struct knob *k = &p->space.knobs[i];
        if (k->kind->id == KNOB_FREQUENCY || k->kind->id == KNOB_POWER_CAP)
            return json_doc_err(&p->doc, at, e, -EINVAL, "cannot set 'systemParameters.%s' of its nodes", k->name);
        k->launched = k->kind->id == KNOB_CORES;
    }
    return 0;
}

/* What a trial may get: this machine's, where all of it runs here; else what its file grants. */
static struct offer offer_of(const struct plan *p)
{
    const struct app_kind *k = p->app.kind;
    struct offer o = plan_is_local(p) ? env_offer() : (struct offer){ 0 };
    o.why_divided = k->why_divided;
    if (k->offer)
        k->offer(&p->app, &p->space, &o);
    return o;
}

static int make_choices(struct plan *p, struct err *e)
{
    return p->policy->create ? choices_make(&p->choices, &p->space, &p->offer, &p->requested, e) : 0;
}

/* By the offer, which a master may tell later. */
static int choose_setting(struct plan *p, struct err *e)
{
    p->requested = setting_default(&p->space, &p->offer);
    if (p->entered) {
        struct setting base = p->requested;
        int rc = setting_parse(&p->requested, &p->space, &base, p->entered, e);
        if (rc < 0)
            return err_prefix(e, "option '--setting'");
    }
    return make_choices(p, e);
}

static int begin_setting(struct plan *p, const char *setting, struct err *e)
{
    p->policy = policy_find(p->cfg.policy);
    p->offer = offer_of(p);
    p->entered = setting ? strdup(setting) : NULL;
    if (setting && !p->entered)
        return err_sys(e, -ENOMEM, "option '--setting'");
    char why[SETTING_WHY_MAX];
    int rc = fit_to_slurm(p, e);
    if (rc == 0)
        rc = choose_setting(p, e);
    if (rc == 0 && p->offer.divided && setting_infeasible(&p->space, &p->requested, &p->offer, why))
        return json_doc_err(&p->doc, "systemParameters", e, -EINVAL, "cannot be had anywhere: %s", why);
    return rc;
}

struct tuner_space plan_tuner_space(const struct plan *p)
{
    struct tuner_space s = choices_tuner_space(&p->choices, &p->space);
    s.memory_entered = p->entered && setting_names(p->entered, "memory");
    return s;
}

bool plan_left_out(const struct plan *p, char text[256])
{
    const struct knob *k = p->policy->joins_search ? NULL : space_knob(&p->space, KNOB_MEMORY);
    double there = p->offer.memory_gb, begin = setting_number(&p->space, &p->requested, KNOB_MEMORY, 0);
    AUTO_BUF struct buf out = BUF_INIT;
    bool first = false;
    for (size_t i = 0; k && there > 0 && i < k->n; i++) {
        if (k->values[i].number <= there)
            continue;
        first |= i == 0;
        buf_printf(&out, "%s%s", out.len ? ", " : "", k->values[i].text);
    }
    if (!out.len || out.failed)
        return false;
    int n = snprintf(text, 256, "systemParameters.memory: %.120s GiB is more than the %.10g GiB there are",
                     buf_text(&out), floor(there * 10) / 10);
    if (first && begin <= there)
        (void)snprintf(text + n, 256 - (size_t)n, "; trials begin with %.10g GiB", begin);
    return true;
}

/* A batch that nothing divides is found before anything is stored, where the batches are a list. */
static int check_batches(const struct plan *p, struct err *e)
{
    const char *divided = p->app.kind->divided;
    for (size_t d = 0; divided && d < p->space.n_dims; d++) {
        const struct dim *dim = &p->space.dims[d];
        if (dim->kind != DIM_LIST || strncmp(dim->name, divided, strlen(divided)) != 0)
            continue;
        for (uint64_t i = 0; i < dim->n; i++) {
            struct point pt = { 0 };
            pt.x[d] = (double)i;
            struct err why;
            struct setting effective = plan_effective(p, &p->requested);
            int rc = plan_slots(p, &pt, &effective, &why);
            if (rc < 0) {
                char path[192];
                (void)snprintf(path, sizeof path, "hyperParameters/%s", dim->name);
                return json_doc_err(hyper_doc(p), path, e, rc, "cannot be launched: %s", why.text);
            }
        }
    }
    return 0;
}

/* A relative path becomes the file that the config means by it; whether that is there is asked before a run. */
static int find_file(struct plan *p, const char **path, struct err *e)
{
    AUTO_FREE char *found = *path ? look_up(*path, p->doc.name) : NULL;
    if (!*path)
        return 0;
    if (found)
        strv_add(&p->paths, found);
    if (!found || p->paths.failed)
        return err_sys(e, -ENOMEM, "'%s'", *path);
    *path = p->paths.v[p->paths.n - 1];
    return 0;
}

/* The same for a file that must be there: else it stays as it is written, for require_own() to name both places. */
static int find_needed_file(struct plan *p, const char **path, struct err *e)
{
    const char *written = *path;
    int rc = find_file(p, path, e);
    if (rc == 0 && written && !io_exists(*path))
        *path = written;
    return rc;
}

/* The same for a text of the config's own. */
static int find_own(struct plan *p, char **path, struct err *e)
{
    AUTO_FREE char *found = *path ? look_up(*path, p->doc.name) : NULL;
    if (*path && !found)
        return err_sys(e, -ENOMEM, "'%s'", *path);
    if (!*path || !io_exists(found))
        return 0;
    free(*path);
    *path = MOVE_PTR(found);
    return 0;
}

static int find_files(struct plan *p, struct err *e)
{
    int rc = find_own(p, &p->cfg.credential_file, e);
    if (rc == 0)
        rc = find_own(p, &p->cfg.mlflow_credential_file, e);
    if (rc == 0)
        rc = find_own(p, &p->cfg.mlflow_ca_file, e);
    if (rc == 0)
        rc = find_own(p, &p->cfg.ca_file, e);
    for (size_t i = 0; rc == 0 && i < p->meters.n; i++) {
        rc = find_needed_file(p, &p->meters.v[i].cfg.credential_file, e);
        if (rc == 0)
            rc = find_file(p, &p->meters.v[i].cfg.file, e);
    }
    return rc;
}

/* Of which node each outlet is; two of one node and meter would be one series of two powers. */
static int check_outlet(const struct plan *p, const struct meters_entry *m, int node, const char *name, int *before,
                        struct err *e)
{
    if (node < 0)
        return err_set(e, -EINVAL,
                       "'%s': the meter %s has an outlet of '%s', which is neither 'localhost' nor one of 'nodes'",
                       p->doc.name, m->meter->name, name);
    if (before[node]++)
        return err_set(e, -EINVAL, "'%s': the meter %s has more than one outlet of '%s': one of them can be read",
                       p->doc.name, m->meter->name, name);
    return 0;
}

static int check_outlets(const struct plan *p, const struct meter_ops *meter, struct err *e)
{
    AUTO_FREE int *before = calloc(p->n_nodes + 1, sizeof *before);
    int rc = before ? 0 : err_sys(e, -ENOMEM, "meters");
    for (size_t i = 0; i < p->meters.n; i++) {
        const struct meters_entry *m = &p->meters.v[i];
        for (size_t k = 0; rc == 0 && m->meter == meter && k < m->cfg.n_outlets; k++) {
            const char *name = m->cfg.outlets[k].node;
            rc = check_outlet(p, m, nodes_cfg_find(p->nodes, p->n_nodes, name), name, before, e);
        }
    }
    return rc;
}

/* What the objective counts must be measured, and often enough. */
static int read_meters(struct plan *p, struct err *e)
{
    int rc = meters_cfg_read(&p->meters, &p->doc, e);
    if (rc == 0)
        rc = find_files(p, e);
    for (size_t i = 0; rc == 0 && meters[i]; i++)
        rc = check_outlets(p, meters[i], e);
    if (rc < 0 || !objective_needs_power(objective_find(p->cfg.objective)))
        return rc;
    if (p->meters.n > 0 && p->cfg.interval_s <= p->cfg.window_seconds)
        return 0;
    if (p->meters.n > 0)
        return err_set(e, -EINVAL,
                       "'%s': for the objective '%s' meters must be read at least once in each measuring window: "
                       "'monitoring.interval' is %g s, 'tuning.window_seconds' %g s",
                       p->doc.name, p->cfg.objective, p->cfg.interval_s, p->cfg.window_seconds);
    return err_set(e, -EINVAL,
                   "'%s': the objective '%s' needs a meter: name one in 'monitoring.meters' (`pipetune doctor` tells "
                   "which can be read here)",
                   p->doc.name, p->cfg.objective);
}

/* Before anything is created, and before its url is stored. */
static int check_servers(const struct config *c, struct err *e)
{
    int rc = c->mlflow_url
                 ? mlflow_url_check(c->mlflow_url, c->mlflow_credential_file != NULL, c->mlflow_allow_plain_http, e)
                 : 0;
    if (rc < 0 || !c->url || strncmp(c->url, "udp://", 6) == 0)
        return rc;
    return influx_url_check(c->url, c->credential_file != NULL, c->allow_plain_http, e);
}

static int read_events(struct plan *p, struct err *e)
{
    char text[EVENT_CHOICE_TEXT_SIZE];
    struct event_choice choice;
    int rc = event_choice_cfg_read(&choice, &p->doc, e);
    if (rc < 0 || !event_choice_text(&choice, text))
        return rc;
    p->events = strdup(text);
    return p->events ? 0 : err_sys(e, -ENOMEM, "'%s'", p->doc.name);
}

/* A search that is none, or that cannot take this space, is found before anything is stored. */
static int check_search(const struct plan *p, struct err *e)
{
    struct search s;
    struct search_cfg cfg = { .seed = (uint64_t)p->cfg.seed,
                              .epochs = (int)p->cfg.epochs,
                              .maximise = config_maximise(&p->cfg),
                              .max_trials = (int)p->cfg.max_trials,
                              .min_epochs = (int)p->cfg.min_epochs,
                              .eta = (int)p->cfg.eta,
                              .goals = &p->cfg.goals };
    struct err why;
    const char *algorithm = p->cfg.algorithm ? p->cfg.algorithm : search_default(&p->space);
    const char *stop = p->cfg.stop ? p->cfg.stop : search_default_stop(algorithm);
    int rc = search_new(&s, algorithm, stop, &p->space, &cfg, &why);
    if (rc == 0) {
        search_done(&s);
        return 0;
    }
    const json_t *written = json_object_get(json_object_get(p->doc.root, "search"), "algorithm");
    if (json_is_string(written) && p->cfg.algorithm && strcmp(json_string_value(written), p->cfg.algorithm) == 0)
        return json_doc_err(&p->doc, "search/algorithm", e, rc, "cannot be used: %s", why.text);
    return err_set(e, rc, "%s", why.text);
}

/* Those in the working directory stay as they are written: a study's stored config has them so. */
static int find_homes(struct plan *p, struct err *e)
{
    char **homes[] = { &p->cfg.runtime_home, &p->cfg.java };
    int rc = 0;
    for (size_t i = 0; i < ARRAY_LEN(homes) && rc == 0; i++)
        if (*homes[i] && !io_exists(*homes[i]))
            rc = find_own(p, homes[i], e);
    return rc;
}

/* What trials are judged by. */
static int read_wants(struct plan *p, struct err *e)
{
    int rc = config_check_goals(&p->cfg, e);
    if (rc == 0)
        rc = demands_read(&p->demands, &p->space, &p->doc, e);
    return rc < 0 ? rc : wants_check(p, e);
}

int plan_load(struct plan *out, const char *config_file, const char *setting,
              int (*apply)(void *ctx, struct config *cfg, struct err *e), void *ctx, struct err *e)
{
    struct plan *p = out;
    *p = (struct plan){ 0 };
    struct opt_set presets = config_opts(&p->cfg);
    int rc = opt_presets(&presets, e);
    if (rc == 0 && !io_exists(config_file))
        rc = err_set(e, -EINVAL, "no config '%s'", config_file);
    if (rc == 0)
        rc = read_doc(&p->doc, config_file, e);
    if (rc == 0)
        rc = config_read(&p->cfg, &p->doc, e);
    if (rc == 0)
        rc = apply(ctx, &p->cfg, e);
    if (rc == 0)
        rc = secrets_take(&p->secrets, &p->doc, e);
    if (rc == 0)
        rc = read_sets(p, config_file, e);
    if (rc == 0)
        rc = read_points(p, config_file, e);
    if (rc == 0)
        rc = space_parse(&p->space, &p->doc, e);
    if (rc == 0)
        rc = find_homes(p, e);
    if (rc == 0)
        rc = env_find(&p->env, &p->cfg, e);
    if (rc == 0)
        rc = read_app(p, config_file, e);
    if (rc == 0)
        rc = secrets_find(&p->secrets, &p->app.file, &p->space, e);
    if (rc == 0)
        rc = p->app.kind->paths(&p->app, resolve_path, p, e);
    if (rc == 0)
        rc = check_reach(p, e);
    if (rc == 0)
        rc = check_knobs(p, e);
    if (rc == 0)
        rc = read_hosts(p, e);
    if (rc == 0)
        rc = nodes_cfg_read(&p->nodes, &p->n_nodes, &p->doc, e);
    if (rc == 0)
        rc = begin_setting(p, setting, e);
    if (rc == 0)
        rc = check_batches(p, e);
    if (rc == 0)
        rc = read_meters(p, e);
    if (rc == 0)
        rc = check_servers(&p->cfg, e);
    if (rc == 0)
        rc = read_events(p, e);
    if (rc == 0)
        rc = name_study(p, config_file, e);
    if (rc == 0 && p->policy->joins_search)
        rc = space_join_knobs(&p->space, e);
    if (rc == 0)
        rc = read_wants(p, e);
    if (rc == 0)
        rc = check_search(p, e);
    if (rc < 0)
        plan_done(p);
    return rc;
}

void plan_done(struct plan *p)
{
    if (!p)
        return;
    secrets_done(&p->secrets);
    nodes_cfg_free(p->nodes, p->n_nodes);
    meters_cfg_done(&p->meters);
    strv_done(&p->paths);
    cluster_at_done(&p->cluster);
    free(p->entered);
    free(p->events);
    p->entered = p->events = NULL;
    app_done(&p->app);
    env_done(&p->env);
    demands_done(&p->demands);
    space_done(&p->space);
    config_done(&p->cfg);
    json_doc_done(&p->doc);
    json_doc_done(&p->sets);
    json_doc_done(&p->app_doc);
}

/* The largest node of the partition. */
static int ask_slurm(struct plan *p, struct err *why)
{
    enum { TIMEOUT_MS = 10000 };
    char *argv[] = { "sinfo", "--noheader", "--exact", "--format=" SLURM_NODE_FORMAT, NULL };
    const char *partition = p->cfg.slurm_partition ? p->cfg.slurm_partition : "";
    struct slurm_room room;
    AUTO_BUF struct buf text = BUF_INIT;
    int rc = capture(&text, argv, TIMEOUT_MS, why);
    if (rc < 0)
        return 1;
    if (rc > 0 || !slurm_words_room(buf_text(&text), partition, &room)) {
        (void)err_set(why, -ENODEV, "sinfo tells of no partition '%s': %.*s", *partition ? partition : "(default)",
                      (int)strcspn(buf_text(&text), "\n"), buf_text(&text));
        return 1;
    }
    p->offer.cores = room.cpus;
    p->offer.memory_gb = room.memory_gb;
    return choose_setting(p, why) == 0 ? 0 : 1;
}

/* What there is, as an offer: of the parts of a launch the largest has no more memory than the largest worker. */
static void take_room(struct plan *p, const struct cluster_view *v)
{
    struct offer *o = &p->offer;
    int refused = o->room.n_refused, most = (int)knob_kinds[KNOB_CORES].max;
    struct layout_room before = o->room;
    cluster_room(v, NULL, 0, true, &o->room);
    memcpy(o->room.refused, before.refused, sizeof before.refused);
    o->room.n_refused = refused;
    o->room.full = false;
    o->cores = 0;
    o->memory_gb = 0;
    for (int i = 0; i < o->room.n_workers; i++) {
        const struct layout_worker *w = &o->room.workers[i];
        double gives = layout_gives_gb(&o->room.takes, w->memory_gb);
        for (int k = 0; k < w->count && o->cores < most; k++)
            o->cores += w->cores < most - o->cores ? w->cores : most - o->cores;
        o->memory_gb = w->cores > 0 && gives > o->memory_gb ? gives : o->memory_gb;
    }
    if (o->file_cores > 0 && o->file_cores < o->cores) /* what the file grants is the most */
        o->cores = o->file_cores;
}

/* What a property of the application says; NULL: nothing. */
static const char *said_by(const struct app_kind *k, const char *text, const char *name, struct buf *value)
{
    bool says = name && k->find_property && k->find_property(text, name, value);
    return says && value->len > 0 ? buf_text(value) : NULL;
}

static int find_cluster(struct plan *p, const struct cluster_row *row, const char *master, struct err *e)
{
    const struct app_kind *k = p->app.kind;
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_BUF struct buf space = BUF_INIT;
    AUTO_BUF struct buf token = BUF_INIT;
    AUTO_BUF struct buf ca = BUF_INIT;
    AUTO_BUF struct buf part = BUF_INIT;
    const char *file = k->properties_file ? k->properties_file(&p->app) : NULL;
    AUTO_FREE char *path = file ? strdup(file) : env_default_properties(&p->env);
    if (path && io_exists(path) && io_read_file(&text, path, FILE_MAX, e) < 0)
        return e->code;
    const struct cluster_said said = { .space = said_by(k, buf_text(&text), row->properties.space, &space),
                                       .token_file = said_by(k, buf_text(&text), row->properties.token_file, &token),
                                       .ca_file = said_by(k, buf_text(&text), row->properties.ca_file, &ca),
                                       .part_file = said_by(k, buf_text(&text), row->properties.part_file, &part) };
    return cluster_at_find(&p->cluster, row, master, p->cfg.master_ui, &said, e);
}

int plan_ask_cluster(struct plan *p, struct err *why)
{
    const char *master = NULL;
    const struct cluster_row *row = p->app.kind->cluster ? p->app.kind->cluster(&p->app, &master) : NULL;
    struct cluster_view view = { 0 };
    if (config_on_slurm(&p->cfg))
        return ask_slurm(p, why);
    if (!row)
        return 0;
    if (!p->cluster.row && find_cluster(p, row, master, why) < 0)
        return 1;
    if (cluster_look(&view, &p->cluster, NULL, 0, why) < 0)
        return 1;
    take_room(p, &view);
    cluster_view_done(&view);
    cluster_ask_resize(&p->cluster);
    return choose_setting(p, why) == 0 ? 0 : 1;
}

bool plan_packs(const struct plan *p)
{
    bool alone = objective_needs_power(objective_find(p->cfg.objective));
    return !alone && (p->cluster.row || (p->policy->shares && plan_is_local(p)));
}

static int require_path(void *ctx, const char *key, char **path, struct err *e)
{
    const struct plan *p = ctx;
    if (!utf8_is_valid(*path))
        return json_doc_err(&p->app_doc, key, e, -EINVAL, "names '%s', which is not UTF-8: %s; rename it", *path,
                            p->app.kind->rules.no_utf8);
    if (io_exists(*path))
        return 0;
    return json_doc_err(&p->app_doc, key, e, -ENOENT,
                        "names '%s', which is not there: run ./run-pipetune.sh setup, or correct the path", *path);
}

static int require_own(const struct plan *p, const char *path, const char *key, struct err *e)
{
    if (!path || io_exists(path))
        return 0;
    AUTO_FREE char *dir = io_dirname(p->doc.name);
    if (*path == '/')
        return err_set(e, -ENOENT, "'%s': '%s' names '%s', which is not there", p->doc.name, key, path);
    return err_set(e, -ENOENT, "'%s': '%s' names '%s', which is neither in the working directory nor in '%s'",
                   p->doc.name, key, path, dir ? dir : "?");
}

/* What is in it is looked at, too: before anything is created, and not when it is needed. */
static int require_secret(const struct plan *p, const char *path, const char *key, struct err *e)
{
    struct credential secret = { 0 };
    int rc = require_own(p, path, key, e);
    if (rc == 0 && path)
        rc = credential_read(&secret, path, e);
    credential_done(&secret);
    return rc;
}

int plan_require_files(const struct plan *p, struct err *e)
{
    int rc = require_secret(p, p->cfg.credential_file, "influxdb.credential_file", e);
    if (rc == 0)
        rc = require_own(p, p->cfg.ca_file, "influxdb.ca_file", e);
    if (rc == 0)
        rc = require_secret(p, p->cfg.mlflow_credential_file, "mlflow.credential_file", e);
    if (rc == 0)
        rc = require_own(p, p->cfg.mlflow_ca_file, "mlflow.ca_file", e);
    for (size_t i = 0; rc == 0 && i < p->meters.n; i++)
        rc = require_secret(p, p->meters.v[i].cfg.credential_file, "credential_file", e);
    if (rc < 0)
        return rc;
    return p->app.kind->paths((struct application *)&p->app, require_path, (void *)p, e); /* it replaces nothing */
}

struct setting plan_requested(const struct plan *p, const struct point *pt)
{
    struct setting set = p->requested;
    size_t first = space_n_hyper(&p->space);
    for (size_t i = 0; i < p->space.n_joined; i++)
        set.v[i] = space_value(&p->space, pt, first + i);
    return set;
}

struct setting plan_effective(const struct plan *p, const struct setting *requested)
{
    return setting_effective(&p->space, requested, &p->offer);
}

double plan_batch(const struct plan *p, const struct point *pt)
{
    return p->app.kind->divided ? space_batch(&p->space, pt) : (double)NAN;
}

int plan_slots(const struct plan *p, const struct point *pt, const struct setting *effective, struct err *e)
{
    struct offer bound = p->offer;
    const struct knob *cores = space_knob(&p->space, KNOB_CORES);
    double want = setting_number(&p->space, effective, KNOB_CORES, 0);
    bool widens = p->policy->wide && !config_on_slurm(&p->cfg);
    if (!widens && cores && want > 0)
        bound.cores = (int)want; /* nothing widens it later, so its own cores are all the slots it needs */
    return setting_slots(&p->space, effective, &bound, plan_batch(p, pt), e);
}

static int slots_or_why(const struct plan *p, const struct point *pt, const struct setting *set, struct err *e)
{
    char why[SETTING_WHY_MAX];
    return plan_infeasible(p, set, why) ? err_set(e, -ENODEV, "%s", why) : plan_slots(p, pt, set, e);
}

int plan_most_slots(const struct plan *p, const struct point *pt, unsigned not, struct err *e)
{
    struct setting asked = plan_requested(p, pt), set = plan_effective(p, &asked);
    int own = slots_or_why(p, pt, &set, e), most = own < 0 ? own : -ENODEV;
    if (!p->policy->create)
        return own;
    for (int i = 0; i < p->choices.n_cold; i++) {
        struct tuner_setting at = { 0, i };
        set = choices_setting(&p->choices, &p->space, at);
        int slots = not >> i & 1 ? -ENODEV : slots_or_why(p, pt, &set, NULL);
        most = slots > most ? slots : most;
    }
    return most < 0 && own >= 0 ? err_set(e, most, "nothing is left to launch it with") : most;
}

static size_t put_knobs(const struct plan *p, const struct setting *set, bool properties,
                        struct app_value out[SPACE_MAX_KNOBS])
{
    size_t n = 0;
    for (size_t i = 0; i < p->space.n_knobs; i++)
        if (!properties || p->space.knobs[i].kind->id == KNOB_PROPERTY)
            out[n++] = (struct app_value){ .name = p->space.knobs[i].name, .text = set->v[i].text };
    return n;
}

/* A dry run shows where they are; what is run has them in a file. */
static size_t add_masked(const struct plan *p, struct app_value out[SPACE_MAX_KNOBS], size_t n)
{
    const char *name;
    json_t *value;
    json_object_foreach(p->secrets.knobs, name, value)
    {
        if (n < SPACE_MAX_KNOBS)
            out[n++] = (struct app_value){ .name = name, .text = SECRET_MASK };
    }
    return n;
}

/* The hyperparameters of a point. */
static size_t put_hypers(const struct plan *p, const struct point *pt, struct value values[SPACE_MAX_DIMS],
                         struct app_value out[SPACE_MAX_DIMS])
{
    size_t n = 0;
    for (size_t i = 0; i < space_n_hyper(&p->space); i++) {
        values[i] = space_value(&p->space, pt, i);
        if (space_active(&p->space, pt, i))
            out[n++] = (struct app_value){ .name = p->space.dims[i].name, .text = values[i].text };
    }
    return n;
}

int plan_gang(const struct plan *p, const struct point *pt, const struct setting *effective, struct app_gang *out,
              struct err *e)
{
    struct app_value knobs[SPACE_MAX_KNOBS], hypers[SPACE_MAX_DIMS];
    struct value values[SPACE_MAX_DIMS];
    const struct app_launch l = { .hypers = hypers,
                                  .n_hypers = put_hypers(p, pt, values, hypers),
                                  .knobs = knobs,
                                  .n_knobs = put_knobs(p, effective, false, knobs) };
    *out = (struct app_gang){ .n = 0 };
    return p->app.gang ? p->app.kind->gang(&p->app, &l, out, e) : 0;
}

int plan_steps(const struct plan *p, const struct point *pt, const struct plan_launch *l, struct app_steps *out,
               struct err *e)
{
    struct app_value knobs[SPACE_MAX_KNOBS], properties[SPACE_MAX_KNOBS], hypers[SPACE_MAX_DIMS];
    struct value values[SPACE_MAX_DIMS];
    struct app_tools tools = env_tools(&p->env);
    if (l->library)
        tools.library = l->library;
    if (l->elsewhere)
        tools.closures = tools.session_classes = NULL;
    size_t n_properties = put_knobs(p, &l->setting, true, properties);
    if (!l->properties)
        n_properties = add_masked(p, properties, n_properties);
    const struct app_launch launch = {
        .tools = &tools,
        .hypers = hypers,
        .n_hypers = l->session ? 0 : put_hypers(p, pt, values, hypers),
        .knobs = knobs,
        .n_knobs = put_knobs(p, &l->setting, false, knobs),
        .properties = properties,
        .n_properties = n_properties,
        .epochs = l->epochs,
        .slots = l->slots,
        .parts = l->parts > 0 ? l->parts : setting_parts(&p->space, &l->setting, &p->offer, l->slots),
        .memory_gb = setting_number(&p->space, &l->setting, KNOB_MEMORY, NAN),
        .launch = l->launch,
        .checkpoint = l->checkpoint,
        .resume_model = l->resume_model,
        .resume_state = l->resume_state,
        .converted = l->converted,
        .seed = l->seed_text,
        .session = l->session,
        .properties_file = l->properties,
        .one_cpu = l->one_cpu,
        .gang = l->gang,
        .rank = l->rank,
        .hosts = l->hosts,
    };
    return p->app.kind->steps(&p->app, &launch, out, e);
}

int plan_shown(const struct plan *p, const struct strv *argv, struct strv *out, struct err *e)
{
    const struct secret_rules rules = secrets_rules(&p->secrets);
    secret_put_argv(&rules, argv, out);
    return out->failed ? err_sys(e, -ENOMEM, "the arguments of %s", p->app.kind->words.program) : 0;
}

/* Is this extra set anew by each trial? */
static bool extra_is_tuned(const struct plan *p, size_t extra)
{
    const struct app_file *f = &p->app.file;
    if (f->has_arguments)
        return false;
    bool tuned = app_file_extra(f, "epochs") == (int)extra;
    for (size_t i = 0; i < space_n_hyper(&p->space); i++)
        tuned |= app_file_extra(f, p->space.dims[i].name) == (int)extra;
    return tuned;
}

/* Without secrets: the key is stored, shown, and taken to other machines. */
static void put_class_value(const struct plan *p, const char *key, const char *value, struct buf *out)
{
    const struct secret_rules rules = secrets_rules(&p->secrets);
    AUTO_BUF struct buf bare = BUF_INIT;
    if (*value && secret_is(&rules, key))
        buf_puts(&bare, SECRET_MASK);
    else
        secret_put(&rules, value, &bare);
    out->failed |= bare.failed;
    env_put_portable(&p->env, buf_text(&bare), out);
}

static void put_identity(const struct plan *p, struct buf *out)
{
    AUTO_STRV struct strv words = STRV_INIT;
    p->app.kind->identity(&p->app, &words);
    for (size_t i = 0; i < words.n; i++) {
        buf_puts(out, i ? " " : "");
        env_put_portable(&p->env, words.v[i], out);
    }
    out->failed |= words.failed;
}

void plan_class_key(const struct plan *p, const struct point *pt, bool family, struct buf *out)
{
    const struct app_file *f = &p->app.file;
    if (objective_needs_power(objective_find(p->cfg.objective))) /* ratios of joules are none of time */
        buf_printf(out, "%s: ", p->cfg.objective);
    put_identity(p, out);
    for (size_t i = 0; i < f->n_extras; i++)
        if (!extra_is_tuned(p, i)) {
            buf_printf(out, " %s ", f->extras[i].key);
            put_class_value(p, f->extras[i].key, f->extras[i].value ? f->extras[i].value : "", out);
        }
    for (size_t i = 0; i < space_n_hyper(&p->space); i++) {
        const struct dim *d = &p->space.dims[i];
        if (!d->affects_speed || (family && space_is_batch(d->name)) || !space_active(&p->space, pt, i))
            continue;
        struct value v = space_value(&p->space, pt, i);
        buf_printf(out, " %s=%s", d->name, v.text);
    }
}

json_t *plan_effective_json(const struct plan *p, const struct setting *effective, int cores)
{
    json_t *j = setting_json(&p->space, effective);
    if (j && cores && json_object_get(j, "cores") && json_object_set_new(j, "cores", json_integer(cores)) < 0) {
        json_decref(j);
        return NULL;
    }
    return j;
}

const char *plan_infeasible(const struct plan *p, const struct setting *effective, char text[SETTING_WHY_MAX])
{
    return setting_infeasible(&p->space, effective, &p->offer, text);
}
