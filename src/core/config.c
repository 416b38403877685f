#include "core/config.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/suggest.h"
#include "core/policy.h"
#include "core/slurm_words.h"

#define FIELD(member) offsetof(struct config, member)

static const char *const keeps[] = { "best", "all", "none", NULL };
static const char *const directions[] = { "auto", "max", "min", NULL };
static const char *const objectives[] = { "time", "energy", "edp", NULL };
static const char *const yes_no[] = { "yes", "no", NULL };
static const char *const costs[] = { "seconds", "joules", NULL };
static const char *const no_word[] = { "none", NULL };
static const char *const auto_word[] = { "auto", NULL };
static const char *const scopes[] = { "auto", "system", "cgroup", "process", "none", NULL };

/* clang-format off */
const struct opt_row config_rows[] = {
    { "", "application", OPT_TEXT, FIELD(application), NULL, 0, 0, NULL, "FILE", "the application file: what is run, and how it is heard" },
    { "", "bigdlConf", OPT_TEXT, FIELD(older_application), NULL, 0, 0, NULL, "FILE", "the application file, by its older name" },
    { "", "parameters", OPT_TEXT, FIELD(parameters), NULL, 0, 0, NULL, "FILE", "hyperparameters from a YAML file of parameter sets (all combinations), in the place of hyperParameters" },
    { "", "store", OPT_TEXT, FIELD(store), NULL, 0, 0, NULL, "FILE", "the store (default $PIPETUNE_STORE, else ./pipetune.db)" },
    { "", "objective", OPT_CHOICE, FIELD(objective), "time", 0, 0, objectives, "NAME", "what is minimised: time, energy, or edp (joules x seconds)" },
    { "study", "name", OPT_TEXT, FIELD(name), NULL, 0, 0, NULL, "NAME", "the study (default: the config's name and a hash of its space)" },
    { "study", "epochs", OPT_INT, FIELD(epochs), "5", 1, 100000, NULL, "N", "epochs of a trial" },
    { "study", "seed", OPT_INT, FIELD(seed), "1", 0, 9007199254740991.0, NULL, "N", "of the search, and of applications that take one" },
    { "study", "max_trials", OPT_INT, FIELD(max_trials), "0", 0, 1e9, NULL, "N", "trials at most; 0: the whole grid, or 20 of another search" },
    { "study", "parallel", OPT_INT, FIELD(parallel), "auto", CONFIG_PARALLEL_AUTO, 256, auto_word, "N", "trials at once, or as many as the policy packs beside each other" },
    { "study", "retries", OPT_INT, FIELD(retries), "2", 0, 100, NULL, "N", "failed attempts of a trial that are tried again" },
    { "study", "keep", OPT_CHOICE, FIELD(keep), "best", 0, 0, keeps, "NAME", "checkpoints of a trial that is over: the best and the last, all, or none" },
    { "study", "metric", OPT_TEXT, FIELD(metric), "accuracy", 0, 0, NULL, "NAME", "accuracy, loss, or any validation result that the application prints" },
    { "study", "direction", OPT_CHOICE, FIELD(direction), "auto", 0, 0, directions, "NAME", "of the metric" },
    { "study", "target", OPT_REAL, FIELD(target), "none", -1e300, 1e300, no_word, "X", "of the metric: the study ends when a trial reaches it" },
    { "study", "repeats", OPT_INT, FIELD(repeats), "1", 1, 100, NULL, "N", "trainings of each of the best points, with other seeds, when the search has ended; the best is then the best by its mean" },
    { "study", "repeat_best", OPT_INT, FIELD(repeat_best), "3", 1, 100, NULL, "K", "points that are trained again, where study.repeats is more than 1" },
    { "study", "log_mb", OPT_INT, FIELD(log_mb), "256", 1, 1e6, NULL, "MB", "a trial's log may take on disk; the newest lines stay, and no epoch is lost" },
    { "search", "algorithm", OPT_TEXT, FIELD(algorithm), NULL, 0, 0, NULL, "NAME", "grid, points, random, tpe, gp or auto (default: points where they are listed, grid when every hyperparameter is a list, else auto)" },
    { "search", "stop", OPT_TEXT, FIELD(stop), NULL, 0, 0, NULL, "NAME", "how long a trial is trained: none (to the last epoch; the default of grid and points), median (less, where it is worse than the median of the others there), halving or hyperband (less, where it is not among the best one in search.eta), curves (where the next epochs are worth most by what all curves foretell; the default)" },
    { "search", "min_epochs", OPT_INT, FIELD(min_epochs), "1", 1, 100000, NULL, "N", "before which a stop rule ends no trial" },
    { "search", "eta", OPT_INT, FIELD(eta), "3", 2, 1000, NULL, "N", "halving, hyperband: one trial in so many goes on at each rung, and rungs are so many times apart" },
    { "search", "learn_from", OPT_TEXT, FIELD(learn_from), NULL, 0, 0, NULL, "STUDY,…", "earlier studies of the store whose best points are tried early, as long as they hold up (algorithms auto, gp and tpe)" },
    { "search", "cost", OPT_CHOICE, FIELD(cost), "seconds", 0, 0, costs, "NAME", "curves: what an epoch costs, seconds or joules" },
    { "budget", "seconds", OPT_REAL, FIELD(budget_seconds), "0", 0, 1e12, NULL, "SECONDS", "in which trials train; when they are used up the study ends (0: without end)" },
    { "budget", "epochs", OPT_INT, FIELD(budget_epochs), "0", 0, 1e12, NULL, "N", "of all trials together, as above" },
    { "budget", "launches", OPT_INT, FIELD(budget_launches), "0", 0, 1e12, NULL, "N", "attempts of all trials together: what runs then goes on to its end" },
    { "budget", "joules", OPT_REAL, FIELD(budget_joules), "0", 0, 1e15, NULL, "J", "of all trials together, where they are measured or estimated" },
    { "budget", "price", OPT_REAL, FIELD(budget_price), "0", 0, 1e12, NULL, "MONEY", "of all trials together: core-hours and joules at the two prices" },
    { "budget", "price_per_core_hour", OPT_REAL, FIELD(price_per_core_hour), "0", 0, 1e9, NULL, "MONEY", "of an hour of each CPU that a trial has in force" },
    { "budget", "price_per_kwh", OPT_REAL, FIELD(price_per_kwh), "0", 0, 1e9, NULL, "MONEY", "of a kilowatt-hour of the trials' joules, where they are measured or estimated" },
    { "tuning", "policy", OPT_CHOICE, FIELD(policy), "pipetune", 0, 0, policy_names, "NAME", "how system parameters are chosen" },
    { "tuning", "window_seconds", OPT_REAL, FIELD(window_seconds), "3", 0.1, 3600, NULL, "SECONDS", "length of a measuring window" },
    { "tuning", "probe_budget", OPT_REAL, FIELD(probe_budget), "0.1", 0, 1, NULL, "FRACTION", "of a trial that probing may lose" },
    { "tuning", "tie_margin", OPT_REAL, FIELD(tie_margin), "0.01", 0, 1, NULL, "FRACTION", "below which two settings are equal" },
    { "monitoring", "scope", OPT_CHOICE, FIELD(scope), "auto", 0, 0, scopes, "NAME", "whose counters are read" },
    { "monitoring", "interval", OPT_REAL, FIELD(interval_s), "1", 0.01, 3600, NULL, "SECONDS", "between two samples" },
    { "places", "local", OPT_CHOICE, FIELD(places_local), "yes", 0, 0, yes_no, "WORD", "whether trials run on this machine, too, where they may be placed on the hosts of nodes" },
    { "places", "lost_seconds", OPT_INT, FIELD(lost_seconds), "300", 1, 1e6, NULL, "SECONDS", "after which a host that does not come back is given up: its trials go on elsewhere" },
    { "places", "address", OPT_TEXT, FIELD(places_address), NULL, 0, 0, NULL, "ADDRESS", "by which other hosts reach this machine, for gangs that run on both (default: its name)" },
    { "places.slurm", "partition", OPT_TEXT, FIELD(slurm_partition), NULL, 0, 0, NULL, "NAME", "trials are jobs of Slurm, in this partition (default: Slurm's)" },
    { "places.slurm", "account", OPT_TEXT, FIELD(slurm_account), NULL, 0, 0, NULL, "NAME", "they are charged to" },
    { "places.slurm", "time", OPT_TEXT, FIELD(slurm_time), NULL, 0, 0, NULL, "TIME", "that each of them may run, as Slurm writes it: 90 (minutes), 4:00:00, 2-12 (default: the partition's)" },
    { "places.slurm", "pending", OPT_INT, FIELD(slurm_pending), "4", 1, 256, NULL, "N", "jobs that wait in Slurm's queue at once, beside those that it has room for" },
    { "influxdb", "url", OPT_TEXT, FIELD(url), NULL, 0, 0, NULL, "URL", "of the server, or udp://HOST:PORT of a Telegraf" },
    { "influxdb", "database", OPT_TEXT, FIELD(database), NULL, 0, 0, NULL, "NAME", "InfluxDB 1.x" },
    { "influxdb", "bucket", OPT_TEXT, FIELD(bucket), NULL, 0, 0, NULL, "NAME", "InfluxDB 2.x" },
    { "influxdb", "org", OPT_TEXT, FIELD(org), NULL, 0, 0, NULL, "NAME", "of the bucket (default: the token's)" },
    { "influxdb", "retention_policy", OPT_TEXT, FIELD(retention_policy), NULL, 0, 0, NULL, "NAME", "of the database (default: its own)" },
    { "influxdb", "ca_file", OPT_TEXT, FIELD(ca_file), NULL, 0, 0, NULL, "FILE", "trusted instead of the system's certificates" },
    { "influxdb", "credential_file", OPT_TEXT, FIELD(credential_file), NULL, 0, 0, NULL, "FILE", "mode 0600" },
    { "influxdb", "allow_plain_http", OPT_FLAG, FIELD(allow_plain_http), NULL, 0, 0, NULL, NULL, "the credential may go to another machine over http://, where anyone on the way can read it" },
    { "mlflow", "url", OPT_TEXT, FIELD(mlflow_url), NULL, 0, 0, NULL, "URL", "of the MLflow server to which the study is handed on while it runs" },
    { "mlflow", "experiment", OPT_TEXT, FIELD(mlflow_experiment), NULL, 0, 0, NULL, "NAME", "in which its runs are (default: pipetune)" },
    { "mlflow", "credential_file", OPT_TEXT, FIELD(mlflow_credential_file), NULL, 0, 0, NULL, "FILE", "USER:PASSWORD or a token; mode 0600" },
    { "mlflow", "ca_file", OPT_TEXT, FIELD(mlflow_ca_file), NULL, 0, 0, NULL, "FILE", "trusted instead of the system's certificates" },
    { "mlflow", "allow_plain_http", OPT_FLAG, FIELD(mlflow_allow_plain_http), NULL, 0, 0, NULL, NULL, "the credential may go to another machine over http://, where anyone on the way can read it" },
    { "spark", "home", OPT_TEXT, FIELD(runtime_home), NULL, 0, 0, NULL, "DIR", "Spark (default $SPARK_HOME, ./.pipetune/spark, PATH)" },
    { "spark", "java", OPT_TEXT, FIELD(java), NULL, 0, 0, NULL, "DIR", "Java's home (default $JAVA_HOME, else PATH)" },
    { "spark", "master_ui", OPT_TEXT, FIELD(master_ui), NULL, 0, 0, NULL, "URL", "the cluster's page, asked what is free: a standalone master's (default http://HOST:8080), or YARN's resource manager's (default: as yarn-site.xml says)" },
    { "spark", "grant_seconds", OPT_INT, FIELD(grant_seconds), "120", 1, 1e6, NULL, "SECONDS", "a cluster may take to grant what was asked for" },
    { "spark", "stall_seconds", OPT_INT, FIELD(stall_seconds), "1800", 1, 1e7, NULL, "SECONDS", "a trial may be silent before it counts as hung" },
};
/* clang-format on */
const size_t config_rows_n = sizeof config_rows / sizeof config_rows[0];

/* Members of the top level that are not scalars, and so no rows. */
static const char *const top_others[] = { "hyperParameters", "systemParameters", "study",  "search",
                                          "budget",          "tuning",           "places", "monitoring",
                                          "influxdb",        "mlflow",           "spark",  "nodes",
                                          "hosts",           "powerMeter",       NULL };
static const char *const sections[] = { "search", "budget", "tuning", "influxdb", "mlflow", "spark", NULL };
static const char *const study_others[] = { "secrets", "constraints", "first", "metrics", NULL };
static const char *const places_others[] = { "slurm", NULL };
static const char *const slurm_others[] = { "options", NULL };
static const char *const monitoring_others[] = { "events", "meters", NULL };

static int want_strings(const struct json_doc *doc, const char *path, const json_t *j, struct err *e)
{
    if (!j || json_is_string(j))
        return 0;
    if (!json_is_array(j))
        return json_doc_err(doc, path, e, -EINVAL, "must be a string or an array of strings");
    for (size_t i = 0; i < json_array_size(j); i++)
        if (!json_is_string(json_array_get(j, i)))
            return json_doc_err(doc, path, e, -EINVAL, "must hold strings only");
    return 0;
}

static bool is_meter(const json_t *j)
{
    return json_is_string(j) || json_is_string(json_object_get(j, "name"));
}

/* Which names there are is known where meters are. */
static int want_meters(const struct json_doc *doc, const char *path, const json_t *j, struct err *e)
{
    bool good = !j || is_meter(j) || json_is_array(j);
    for (size_t i = 0; i < json_array_size(j); i++)
        good = good && is_meter(json_array_get(j, i));
    return good ? 0
                : json_doc_err(doc, path, e, -EINVAL,
                               "must be the name of a meter, an object with 'name', or an array of these");
}

static const char *const node_keys[] = { "host", "user", "key", "port", "address", "env" };

static int check_node_env(const struct json_doc *doc, const char *path, const json_t *env, struct err *e)
{
    const char *name;
    json_t *value;
    if (!json_is_object(env))
        return json_doc_err(doc, path, e, -EINVAL, "has a bad 'env': it must be an object");
    json_object_foreach(
        (json_t *)env, name,
        value) if (!*name || strchr(name, '=') ||
                   !json_is_string(
                       value)) return json_doc_err(doc, path, e, -EINVAL,
                                                   "has a bad 'env': '%s' must be a name, and what it is a string",
                                                   name);
    return 0;
}

static int check_node_key(const struct json_doc *doc, const char *path, const char *key, const json_t *value,
                          struct err *e)
{
    size_t i = 0;
    while (i < ARRAY_LEN(node_keys) && strcmp(node_keys[i], key) != 0)
        i++;
    const char *near = suggest_nearest(key, node_keys, ARRAY_LEN(node_keys));
    if (i == ARRAY_LEN(node_keys) && near)
        return json_doc_err(doc, path, e, -EINVAL, "has an unknown '%s': did you mean '%s'?", key, near);
    if (i == ARRAY_LEN(node_keys))
        return json_doc_err(doc, path, e, -EINVAL,
                            "has an unknown '%s': a node has host, user, key, port, address and env", key);
    bool port = strcmp(key, "port") == 0;
    if (strcmp(key, "env") == 0)
        return check_node_env(doc, path, value, e);
    if (port ? json_is_integer(value) : json_is_string(value))
        return 0;
    return json_doc_err(doc, path, e, -EINVAL, "has a bad '%s': it must be %s", key, port ? "a number" : "a string");
}

static int check_node(const struct json_doc *doc, const char *path, const json_t *node, struct err *e)
{
    if (json_is_string(node))
        return 0;
    if (!json_is_object(node) || !json_object_get(node, "host"))
        return json_doc_err(doc, path, e, -EINVAL, "must be a host name or an object with 'host'");
    const char *key;
    json_t *value;
    int rc = 0;
    json_object_foreach((json_t *)node, key, value)
    {
        if (rc == 0)
            rc = check_node_key(doc, path, key, value, e);
    }
    return rc;
}

int config_check_hosts(const struct json_doc *doc, const char *path, const json_t *list, struct err *e)
{
    if (!json_is_array(list))
        return json_doc_err(doc, path, e, -EINVAL, "must be an array");
    for (size_t i = 0; i < json_array_size(list); i++) {
        char at[160];
        (void)snprintf(at, sizeof at, "%s%s%zu", path, *path ? "/" : "", i);
        int rc = check_node(doc, at, json_array_get(list, i), e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int config_check_lists(const struct json_doc *doc, const char *path, const json_t *lists, struct err *e)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    if (!json_is_object(lists))
        return json_doc_err(doc, path, e, -EINVAL, "must be an object of lists of hosts: {\"lab\": [\"a\", \"b\"]}");
    const char *name;
    json_t *list;
    json_object_foreach((json_t *)lists, name, list)
    {
        char at[128];
        size_t len = strlen(name);
        if (len == 0 || len > 64 || name[strspn(name, plain)])
            return json_doc_err(doc, path, e, -EINVAL,
                                "has a list '%.80s': a name is 1 to 64 of letters, digits, '_', '.', '-'", name);
        (void)snprintf(at, sizeof at, "%s%s%s", path, *path ? "/" : "", name);
        int rc = config_check_hosts(doc, at, list, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* "hosts" may name a file, too. */
static int check_nodes(const struct json_doc *doc, struct err *e)
{
    const json_t *nodes = json_object_get(doc->root, "nodes"), *lists = json_object_get(doc->root, "hosts");
    int rc = nodes ? config_check_hosts(doc, "nodes", nodes, e) : 0;
    if (rc == 0 && lists && !json_is_string(lists))
        rc = config_check_lists(doc, "hosts", lists, e);
    return rc;
}

/* A list of names is the same as one text of them. */
static int join_learn_from(const struct json_doc *doc, struct err *e)
{
    json_t *search = json_object_get(doc->root, "search"), *list = json_object_get(search, "learn_from");
    AUTO_BUF struct buf names = BUF_INIT;
    if (!json_is_array(list))
        return 0;
    int rc = want_strings(doc, "search/learn_from", list, e);
    for (size_t i = 0; i < json_array_size(list); i++)
        buf_printf(&names, "%s%s", i ? "," : "", json_string_value(json_array_get(list, i)));
    if (rc == 0 && (names.failed || json_object_set_new(search, "learn_from",
                                                        names.len ? json_string(buf_text(&names)) : json_null()) < 0))
        rc = err_sys(e, -ENOMEM, "'%s'", doc->name);
    return rc;
}

static int set_word(char **word, const char *to, struct err *e)
{
    char *own = strdup(to);
    if (!own)
        return err_sys(e, -ENOMEM, "the config");
    free(*word);
    *word = own;
    return 0;
}

/* `metric` and `direction` are those of the first that is told: what goes by one metric alone goes by that. */
static int take_goals(struct config *c, const struct json_doc *doc, struct err *e)
{
    const json_t *study = json_object_get(doc->root, "study");
    int rc = goals_read(&c->goals, doc, e);
    if (rc < 0 || c->goals.n == 0)
        return rc;
    if (json_object_get(study, "metric"))
        return json_doc_err(doc, "study/metric", e, -EINVAL, "does not go with 'study.metrics': leave one of them out");
    if (json_object_get(study, "direction") && c->goals.n > 1)
        return json_doc_err(doc, "study/direction", e, -EINVAL,
                            "does not go with several metrics: give each its own, as {\"metric\": \"%s\", "
                            "\"direction\": \"max\"}",
                            goals_first_told(&c->goals)->name);
    const struct goal *first = goals_first_told(&c->goals);
    rc = set_word(&c->metric, first->name, e);
    return rc < 0 || !first->directed ? rc : set_word(&c->direction, first->maximise ? "max" : "min", e);
}

int config_check_goals(const struct config *c, struct err *e)
{
    const struct goal *first = c->goals.n > 0 ? goals_first_told(&c->goals) : NULL;
    bool bound = first && (first->directed || c->goals.n > 1);
    if (first && (strcmp(first->name, c->metric) != 0 || (bound && config_maximise(c) != first->maximise)))
        return err_set(e, -EINVAL, "--metric and --direction do not go with 'study.metrics' of the config");
    if (c->budget_price > 0 && !(c->price_per_core_hour > 0) && !(c->price_per_kwh > 0))
        return err_set(e, -EINVAL,
                       "'budget.price' needs a price: 'budget.price_per_core_hour', 'budget.price_per_kwh', or both");
    return 0;
}

/* That it is there is enough. */
static int read_slurm(struct config *c, const struct json_doc *doc, struct err *e)
{
    static const char at[] = "places/slurm/options";
    const json_t *slurm = json_object_get(json_object_get(doc->root, "places"), "slurm");
    const json_t *options = json_object_get(slurm, "options");
    c->slurm |= slurm != NULL;
    if (options && !json_is_array(options))
        return json_doc_err(doc, at, e, -EINVAL, "must be an array of options of sbatch: [\"--qos=long\"]");
    for (size_t i = 0; i < json_array_size(options); i++) {
        const char *text = json_string_value(json_array_get(options, i));
        struct err why;
        if (!text)
            return json_doc_err(doc, at, e, -EINVAL, "must hold strings only");
        if (slurm_words_option(text, &why) < 0)
            return json_doc_err(doc, at, e, -EINVAL, "%s", why.text);
        strv_add(&c->slurm_options, text);
    }
    return c->slurm_options.failed ? err_sys(e, -ENOMEM, "'%s'", doc->name) : 0;
}

bool config_on_slurm(const struct config *c)
{
    return c->slurm || c->slurm_partition || c->slurm_account || c->slurm_time;
}

int config_read(struct config *c, const struct json_doc *doc, struct err *e)
{
    if (!json_is_object(doc->root))
        return err_set(e, -EINVAL, "'%s' line 1: a config is a JSON object {…}", doc->name);
    struct opt_set set = config_opts(c);
    int rc = join_learn_from(doc, e);
    if (rc == 0)
        rc = opt_read_section(&set, doc, "", top_others, e);
    for (size_t i = 0; rc == 0 && sections[i]; i++)
        rc = opt_read_section(&set, doc, sections[i], NULL, e);
    if (rc == 0)
        rc = opt_read_section(&set, doc, "places", places_others, e);
    if (rc == 0)
        rc = opt_read_section(&set, doc, "places.slurm", slurm_others, e);
    if (rc == 0)
        rc = read_slurm(c, doc, e);
    if (rc == 0)
        rc = opt_read_section(&set, doc, "study", study_others, e);
    if (rc == 0)
        rc = opt_read_section(&set, doc, "monitoring", monitoring_others, e);
    if (rc == 0)
        rc = want_strings(doc, "study/secrets", json_object_get(json_object_get(doc->root, "study"), "secrets"), e);
    if (rc < 0)
        return rc;
    rc = take_goals(c, doc, e);
    if (rc < 0)
        return rc;
    const json_t *monitoring = json_object_get(doc->root, "monitoring");
    rc = want_strings(doc, "monitoring/events", json_object_get(monitoring, "events"), e);
    if (rc == 0)
        rc = want_meters(doc, "monitoring/meters", json_object_get(monitoring, "meters"), e);
    if (rc == 0)
        rc = want_meters(doc, "powerMeter", json_object_get(doc->root, "powerMeter"), e);
    return rc < 0 ? rc : check_nodes(doc, e);
}

void config_done(struct config *c)
{
    if (!c)
        return;
    struct opt_set set = config_opts(c);
    opt_done(&set);
    free(c->hosts);
    c->hosts = NULL;
    strv_done(&c->slurm_options);
}

bool config_maximise(const struct config *c)
{
    if (strcmp(c->direction, "auto") != 0)
        return strcmp(c->direction, "max") == 0;
    return goal_maximises(c->metric);
}

int config_check(const struct config *c, const char *stop, struct err *e)
{
    bool rule = strcmp(stop, "none") != 0;
    if (isfinite(c->target) && strcmp(c->direction, "auto") == 0 && !goal_is_plain(c->metric))
        return err_set(e, -EINVAL,
                       "study.target %g: whether '%s' is to be large or small cannot be told by its name; say "
                       "study.direction max or min",
                       c->target, c->metric);
    if (rule && c->min_epochs > c->epochs)
        return err_set(
            e, -EINVAL,
            "search.min_epochs %lld is more than study.epochs %lld: search.stop '%s' would end no trial; give "
            "less, or search.stop none",
            (long long)c->min_epochs, (long long)c->epochs, stop);
    return 0;
}

int config_interval_ms(const struct config *c)
{
    double ms = c->interval_s * 1000;
    return ms < 100 ? 100 : ms > 60000 ? 60000 : (int)lround(ms);
}

static const char older[] = "bigdlConf", newer[] = "application", application_member[] = "bigdl";

static const char *named(const struct config *c, const struct json_doc *doc)
{
    bool both = c->application && c->older_application;
    return both && json_object_get(doc->root, newer) ? c->older_application
           : c->application                          ? c->application
                                                     : c->older_application;
}

int config_application(const struct config *c, const struct json_doc *doc, const char **out, struct err *e)
{
    if (json_object_get(doc->root, newer) && json_object_get(doc->root, older))
        return json_doc_err(doc, newer, e, -EINVAL, "is there twice: '%s' is its older name", older);
    if (!named(c, doc))
        return json_doc_err(doc, newer, e, -EINVAL,
                            "is missing: name the application file, such as \"bigdl/config/mnist.json\" ('%s' is the "
                            "key's older name)",
                            older);
    *out = named(c, doc);
    return 0;
}

/* Under the older name, as in studies that began with it: so they are the same study. */
static int put_application(const struct config *c, const struct json_doc *doc, json_t *root)
{
    const char *name = named(c, doc);
    (void)json_object_del(root, newer);
    (void)json_object_del(root, "parameters"); /* what is in that file stands for it */
    return json_object_set_new(root, older, name ? json_string(name) : json_null());
}

json_t *config_effective(struct config *c, const struct json_doc *doc, const json_t *application)
{
    static const char *const copied[] = { "hyperParameters", "systemParameters", "nodes", "powerMeter" };
    json_t *root = json_object();
    struct opt_set set = config_opts(c);
    if (!root || opt_to_json(&set, root) < 0 || put_application(c, doc, root) < 0)
        goto fail;
    if (c->hosts && json_object_set_new(root, "hosts", json_bytes(c->hosts)) < 0) /* for the next run */
        goto fail;
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++) {
        json_t *part = json_object_get(doc->root, copied[i]);
        if (part && json_object_set(root, copied[i], part) < 0)
            goto fail;
    }
    const json_t *monitoring = json_object_get(doc->root, "monitoring");
    for (size_t i = 0; monitoring_others[i]; i++) {
        json_t *part = json_object_get(monitoring, monitoring_others[i]);
        if (part && json_object_set(json_object_get(root, "monitoring"), monitoring_others[i], part) < 0)
            goto fail;
    }
    for (size_t i = 1; study_others[i]; i++) { /* but for the secrets */
        json_t *part = json_object_get(json_object_get(doc->root, "study"), study_others[i]);
        if (part && json_object_set(json_object_get(root, "study"), study_others[i], part) < 0)
            goto fail;
    }
    if (json_object_set(root, application_member, (json_t *)application) < 0)
        goto fail;
    return root;
fail:
    json_decref(root);
    return NULL;
}

const json_t *config_stored_application(const json_t *effective)
{
    return json_object_get(effective, application_member);
}

static bool may_change(const char *path)
{
    static const char *const free_keys[] = { "study.name",
                                             "study.max_trials",
                                             "study.keep",
                                             "study.parallel",
                                             "study.target",
                                             "study.repeats",
                                             "study.repeat_best",
                                             "budget",
                                             "monitoring",
                                             "powerMeter",
                                             "influxdb",
                                             "mlflow",
                                             "store",
                                             "hosts",
                                             "places" };
    for (size_t i = 0; i < sizeof free_keys / sizeof free_keys[0]; i++) {
        size_t len = strlen(free_keys[i]);
        if (strncmp(path, free_keys[i], len) == 0 && (path[len] == '\0' || path[len] == '.'))
            return true;
    }
    return false;
}

/* Equal but for how numbers are written: what was stored as 3.0 reads back as 3. */
static bool same(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    if (json_typeof(a) != json_typeof(b))
        return false;
    bool all = json_array_size(a) == json_array_size(b) && json_object_size(a) == json_object_size(b);
    for (size_t i = 0; all && i < json_array_size(a); i++)
        all = same(json_array_get(a, i), json_array_get(b, i));
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)a, key, value)
    {
        const json_t *other = json_object_get(b, key);
        all = all && other && same(value, other);
    }
    return all && (json_is_array(a) || json_is_object(a) || json_equal(a, b));
}

/* Is it the default of the key at `path`? What goes without a default is false or null. */
static bool is_preset(const json_t *value, const char *path)
{
    for (size_t i = 0; i < config_rows_n; i++) {
        const struct opt_row *row = &config_rows[i];
        size_t section = strlen(row->section);
        if (strncmp(path, row->section, section) != 0 || strcmp(path + section + (section > 0), row->key) != 0)
            continue;
        if (!row->preset)
            return json_is_null(value) || json_is_false(value);
        if (json_is_number(value))
            return json_number_value(value) == strtod(row->preset, NULL);
        return json_is_string(value) && strcmp(json_string_value(value), row->preset) == 0;
    }
    return false;
}

static size_t diff_at(const json_t *a, const json_t *b, const char *path, struct buf *keys);

/* Members of `a`, compared with those of `b`; when only_new, just those that b lacks. */
static size_t diff_members(const json_t *a, const json_t *b, const char *path, bool only_new, struct buf *keys)
{
    size_t n = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)a, key, value)
    {
        char below[512];
        (void)snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "", key);
        const json_t *other = json_object_get(b, key);
        if (!only_new || !other)
            n += diff_at(value, other, below, keys);
    }
    return n;
}

static size_t diff_at(const json_t *a, const json_t *b, const char *path, struct buf *keys)
{
    if (may_change(path) || (a && b && same(a, b)))
        return 0;
    if (json_is_object(a) && json_is_object(b))
        return diff_members(a, b, path, false, keys) + diff_members(b, a, path, true, keys);
    if (!b && (json_is_null(a) || is_preset(a, path)))
        return 0; /* a key that a newer version added, at its default */
    buf_printf(keys, "%s%s", keys->len ? ", " : "", path);
    return 1;
}

size_t config_diff(const json_t *stored, const json_t *now, struct buf *keys)
{
    return diff_at(stored, now, "", keys);
}
