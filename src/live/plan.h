/* What would be launched for a point of the space: the one place where settings, slots and the application file meet. */
#ifndef LIVE_PLAN_H
#define LIVE_PLAN_H

#include "app/app.h"
#include "base/strv.h"
#include "core/choices.h"
#include "core/config.h"
#include "core/demands.h"
#include "core/objective.h"
#include "core/policy.h"
#include "live/cluster.h"
#include "live/env.h"
#include "live/nodes.h"
#include "live/secrets.h"
#include "monitoring/meters_cfg.h"

/* A study as its files describe it; what `run` and `run --dry-run` share. */
struct plan {
    struct config cfg;
    struct space space;
    struct demands demands; /* constraints on what trials come to */
    struct application app;
    struct env env;
    struct offer offer;        /* to one trial: all that there is, and while one is placed what is free of it */
    struct cluster_at cluster; /* that trials are placed on; no row: it is none, or none that can be asked */
    const struct policy *policy;
    char *entered;            /* by the user, as text; NULL: nothing */
    struct setting requested; /* the default setting, or the one entered by the user */
    struct choices choices;   /* what the policy chooses from; not of those that choose nothing */
    struct node_cfg *nodes;   /* the config's, each one that ssh may be given */
    size_t n_nodes;
    struct meters_cfg meters; /* what is read of energy; none: nothing */
    struct strv paths;        /* that the meters' texts point at */
    char *events;             /* the hardware events that are counted (monitoring/event_choice.h); NULL: all */
    struct json_doc doc;      /* the config */
    struct json_doc sets;     /* the file of parameter sets (core/space_yaml.h); no root: there is none */
    struct json_doc app_doc;  /* the application file, as written */
    char name[128];           /* of the study */
    struct secrets secrets;   /* what of all this is not to be shown */
};

/* Reads the config and its application file; `args` (a config whose texts are NULL or set) comes from the command line through
 * `apply`, called after the file has been read so that the command line wins. Touches nothing but these files.
 * -EINVAL and -ENOENT are explained. */
int plan_load(struct plan *out, const char *config_file, const char *setting,
              int (*apply)(void *ctx, struct config *cfg, struct err *e), void *ctx, struct err *e);
void plan_done(struct plan *p);

/* Does all of a trial run on this machine, where nothing else is said of it? */
bool plan_is_local(const struct plan *p);

/* Are the files there that would be submitted (application, jars, properties)? -ENOENT names the first that is not. */
int plan_require_files(const struct plan *p, struct err *e);

/* Asks a cluster, where that can be asked, what it has, whoever has it now, and cuts the setting to it. One that does not answer changes
 * nothing; 1 and the reason in *why when it was asked in vain. Blocks for a few seconds at most: before the loop. */
int plan_ask_cluster(struct plan *p, struct err *why);

/* Are trials packed beside each other, on this machine or on a cluster, where as many as fit are wanted? */
bool plan_packs(const struct plan *p);

/* One launch. */
struct plan_launch {
    struct setting setting; /* effective */
    int slots;
    int parts; /* of a cluster's workers; 0: as there is room for them */
    int epochs;
    const char *launch;     /* tag; NULL for --dry-run */
    const char *checkpoint; /* folder; NULL: none */
    const char *resume_model, *resume_state;
    const char *converted; /* where a checkpoint in another form may be put; NULL: nowhere */
    const char *seed_text;
    const char *session;         /* the socket of the warm session that this starts; NULL: a trial of its own */
    bool one_cpu;                /* it begins packed on one CPU */
    const char *library;         /* the folder of pipetune.py there; NULL: this machine's */
    const struct app_gang *gang; /* one process of it: which, and where all are reached (app/app.h); NULL: all of it */
    size_t rank;
    const char *const *hosts;
    bool elsewhere;         /* on another machine, to whose jars what set-up has made of those here is of no use */
    const char *properties; /* the file that holds its secrets (secrets_write()); NULL: none */
};

/* What the policy chooses from, as its machine counts it; of a policy that has one. */
struct tuner_space plan_tuner_space(const struct plan *p);

/* Values listed for `memory` that cannot be had here, and what trials begin with where the first is among them: "systemParameters.memory:
 * 64 GiB is more than the 23 GiB there are; trials begin with 8 GiB". False: there are none, or each trial says it by itself. */
bool plan_left_out(const struct plan *p, char text[256]);

/* The setting that a trial of this point is to have as the user wrote it: the study's, or the point's own where the policy lets
 * the system parameters join the search. */
struct setting plan_requested(const struct plan *p, const struct point *pt);

/* What of it can be had here. */
struct setting plan_effective(const struct plan *p, const struct setting *requested);

/* Slots of a launch of this point under an effective setting; -ERANGE when nothing divides the batch, -ENODEV when there is no room
 * for them. */
int plan_slots(const struct plan *p, const struct point *pt, const struct setting *effective, struct err *e);

/* The most slots of any setting that a launch of this point could have: of those that the policy chooses from but for `not` (bit by bit,
 * cold ones), or of its effective one. Errors as above. */
int plan_most_slots(const struct plan *p, const struct point *pt, unsigned not, struct err *e);

/* The batch that the slots of a launch must divide; NAN: it has none, or nothing must. */
double plan_batch(const struct plan *p, const struct point *pt);

/* The processes of a launch with this setting; none: it is one. -EINVAL, -ERANGE: see app.h. */
int plan_gang(const struct plan *p, const struct point *pt, const struct setting *effective, struct app_gang *out,
              struct err *e);

/* What is run. `pt` is not looked at when it starts a session. Free *out (app_steps_done()), also after a failure. */
int plan_steps(const struct plan *p, const struct point *pt, const struct plan_launch *l, struct app_steps *out,
               struct err *e);

/* Appends the key of the jobs that share knowledge (TUNER.md section 3): the application, its fixed arguments and every
 * hyperparameter that affects speed; `family`: all but the batch. Our own folders stand in it by their names, so that a model may
 * be taken to another machine. */
void plan_class_key(const struct plan *p, const struct point *pt, bool family, struct buf *out);

/* The words as they may be stored and shown. */
int plan_shown(const struct plan *p, const struct strv *argv, struct strv *out, struct err *e);

/* What the trial really gets, {"cores":2,"memory":8}; cores 0: as the setting says. New reference. */
json_t *plan_effective_json(const struct plan *p, const struct setting *effective, int cores);

/* NULL when the setting can be launched here, else why not. */
const char *plan_infeasible(const struct plan *p, const struct setting *effective, char text[SETTING_WHY_MAX]);

#endif
