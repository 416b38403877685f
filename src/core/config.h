/* The config of a study: every scalar key of the file, with its default. Pure. */
#ifndef CORE_CONFIG_H
#define CORE_CONFIG_H

#include "base/opt.h"
#include "base/strv.h"
#include "core/goals.h"

enum { CONFIG_PARALLEL_AUTO = 0 }; /* as many trials at once as the policy packs; one where it does not share */

struct config {
    char *application, *older_application; /* as written: see config_application() */
    char *parameters;                      /* a file of parameter sets, in the place of "hyperParameters"; NULL: none */
    char *hosts; /* the option --hosts, which is no key: see live/host_list.h; NULL: not given */
    char *store; /* NULL: PIPETUNE_STORE, else ./pipetune.db */

    char *name; /* NULL: made from the file's name and the space */
    int64_t epochs, seed, max_trials, retries;
    int64_t parallel;     /* CONFIG_PARALLEL_AUTO, or 1…256 */
    char *places_local;   /* "yes", "no" */
    char *places_address; /* NULL: this machine's name */
    int64_t lost_seconds;
    char *slurm_partition, *slurm_account, *slurm_time; /* NULL: as Slurm has it */
    int64_t slurm_pending;
    bool slurm;                   /* `places.slurm` is there: see config_on_slurm() */
    struct strv slurm_options;    /* of sbatch */
    char *keep;                   /* checkpoints of trials that are over: "best", "all", "none" */
    char *metric, *direction;     /* direction "auto": by the metric; of several metrics, of the first that is told */
    struct goals goals;           /* `study.metrics`: what trials are judged by where it is more than one */
    double target;                /* of the metric; NAN: none */
    int64_t repeats, repeat_best; /* how often the best points are trained, and how many of them */
    double budget_seconds, budget_joules, budget_price;
    double price_per_core_hour, price_per_kwh; /* money; 0: it costs nothing */
    int64_t budget_epochs, budget_launches;    /* 0: without end */

    char *algorithm; /* NULL: by the space */
    char *stop;      /* the rule by which trials are ended early */
    int64_t min_epochs, eta;
    char *learn_from; /* names of earlier studies, "a,b"; NULL: none */
    char *cost;       /* what an epoch's price is: "seconds", "joules" */
    char *objective;

    char *policy; /* policy_find() knows it */
    double window_seconds, probe_budget, tie_margin;

    char *scope;
    double interval_s;

    char *url, *database, *bucket, *org, *retention_policy, *ca_file, *credential_file;
    bool allow_plain_http;
    char *mlflow_url, *mlflow_experiment, *mlflow_credential_file, *mlflow_ca_file;
    bool mlflow_allow_plain_http;

    char *runtime_home, *java, *master_ui;
    int64_t grant_seconds, stall_seconds, log_mb;
};

extern const struct opt_row config_rows[];
extern const size_t config_rows_n;

static inline struct opt_set config_opts(struct config *c)
{
    return (struct opt_set){ .rows = config_rows, .n = config_rows_n, .target = c };
}

/* Reads every section; what the config says replaces what is in *c, so presets come before and the command line after.
 * The space's own two sections are left to space_parse(). On failure *c holds some of the file. */
int config_read(struct config *c, const struct json_doc *doc, struct err *e);
void config_done(struct config *c);

/* Is this a list of hosts, as "nodes" is one? `path` is where it stands in the document. -EINVAL. */
int config_check_hosts(const struct json_doc *doc, const char *path, const json_t *list, struct err *e);

/* Lists of hosts by their names: a config's "hosts", or a whole file (`path` is "" then). -EINVAL. */
int config_check_lists(const struct json_doc *doc, const char *path, const json_t *lists, struct err *e);

/* What several keys and the command line say together: metrics, prices. -EINVAL. */
int config_check_goals(const struct config *c, struct err *e);

/* Is the metric to be made large? By `direction`, or for "auto" by the metric's name: a loss or an error is made small. */
bool config_maximise(const struct config *c);

/* Keys that contradict each other, with this stop rule. -EINVAL names both, and a fix. */
int config_check(const struct config *c, const char *stop, struct err *e);

/* Milliseconds between two samples: 100 to 60000, which is what the nodes' helpers do. */
int config_interval_ms(const struct config *c);

/* Are trials jobs of Slurm? `places.slurm` is there, or was named by an option. */
bool config_on_slurm(const struct config *c);

/* Everything that makes the study what it is, as JSON: scalars, space, the application file; new reference, NULL: memory. */
json_t *config_effective(struct config *c, const struct json_doc *doc, const json_t *application);

/* The application file's text, as it stands in what config_effective() made and was stored; borrowed. NULL: it is not there. */
const json_t *config_stored_application(const json_t *effective);

/* The application file as it was named, by the newer key or the older one; the command line wins. -EINVAL: it is not named. */
int config_application(const struct config *c, const struct json_doc *doc, const char **out, struct err *e);

/* Appends the keys that differ ("study.epochs, hyperParameters.batch_size"); those that may change within a study
 * (max_trials, keep, parallel, monitoring, influxdb, mlflow, hosts, store) don't count, nor does one that only one of them has, at its default:
 * versions add keys. Returns how many. */
size_t config_diff(const json_t *stored, const json_t *now, struct buf *keys);

#endif
