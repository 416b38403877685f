/* What the parts of the tuner share; nothing else includes it. tuner.c: trials and their events. tuner_cand.c: the hot
 * settings a trial can choose from. tuner_probe.c: measuring them while it trains. tuner_recall.c: what earlier studies knew, profiles. tuner_cold.c: which cold setting is worth a
 * launch. tuner_launch.c: what a trial is launched with. */
#ifndef CORE_TUNER_STATE_H
#define CORE_TUNER_STATE_H

#include "core/knowledge.h"
#include "core/tuner.h"
#include "core/window.h"

enum { PAIRS_MAX = 5 };

#define TUNER_RISK 0.25 /* that a setting which is tried cannot be launched, and a start-up is lost */

/* What the trial is doing. */
enum phase {
    PHASE_WARM,      /* measuring the incumbent until it is steady */
    PHASE_CANDIDATE, /* measuring a candidate */
    PHASE_BACK,      /* measuring the incumbent again, after a candidate */
    PHASE_HOLD,      /* a new incumbent shows that it was no accident */
    PHASE_SETTLED,
};

enum verdict { CAND_OPEN, CAND_WORSE, CAND_TIE, CAND_CUT, CAND_REFUSED };

/* Ratios are logs of time, whatever counts at the moment: they are carried to other trials, where something else may count. */
struct candidate {
    enum verdict verdict;
    double log_ratio[PAIRS_MAX]; /* to the incumbent of that time, positive is slower */
    size_t pairs;
    double centre;  /* over the incumbent; NAN: not known */
    bool at_least;  /* it was cut: that, or more */
    bool measured;  /* by this trial */
    bool confirmed; /* looked at again in the second epoch */
};

struct trial_state {
    int number;
    struct class_entry *class;
    const char *family; /* borrowed from the class */
    bool fresh;         /* nothing was known of its class when it started */
    bool new_cold;      /* … under its cold setting */
    bool recognised;    /* until it settles: it has what was recalled, and is not probed */
    bool profiled;      /* its first steady window was told */
    int hint;           /* hot, to be probed first; -1: none */
    int n_hot;          /* it may have hot settings below this one */
    bool alone;
    bool reconsider; /* what counts has changed since it was looked at */
    enum phase phase;
    struct tuner_setting start, now; /* launched with; in force or asked for */
    int former;                      /* hot setting before the newest change */
    int incumbent;                   /* hot */
    struct candidate cand[TUNER_MAX_HOT];
    int probing; /* the candidate of PHASE_CANDIDATE or PHASE_BACK; -1 */
    struct window window;
    double before;        /* the incumbent's newest value; NAN: none that still holds */
    double reference;     /* its newest value, however old: what a cut is judged by; NAN: none */
    int reference_epoch;  /* that it was measured in */
    double measured;      /* the candidate's value, in PHASE_BACK */
    double changed_s;     /* when the setting changed last */
    double probe_records; /* trained since then */
    double step_records;  /* of the newest iteration */
    double epoch_records;
    int first, epoch, epochs; /* the first one of this launch, the one under way, how many there are */
    double lost_s;            /* by probing, over what the incumbent would have needed */
    bool round_over;          /* drift has had its round in this epoch */
    int slow_windows;
    double settled_value;
    bool whole_epoch;                /* alone, and nothing was probed, since this epoch began */
    double steady_s, steady_records; /* of the incumbent, over whole epochs from the second of the launch on */
    double first_value;              /* the incumbent's newest value in the first epoch of this launch; NAN: none */
    double epoch_began_s;
    double startup_s;
    double patience_s; /* when a memory that was never trained in must have shown something; INFINITY: no such time */
    bool leaving;      /* a relaunch was asked for */
    double began_s;    /* when it was launched */
    double now_s;
};

struct tuner {
    struct tuner_space space;
    struct tuner_cfg cfg;
    struct knowledge known;
    struct trial_state **trials;
    size_t n, cap;
    int waiting;
};

/* --- tuner.c --- */

void tuner_act(struct tuner_actions *out, enum tuner_action_kind kind, const struct trial_state *s, double t_s,
               const char *reason, ...) __attribute__((format(printf, 5, 6)));

/* The same about another setting than the one that the trial has. */
void tuner_act_on(struct tuner_actions *out, enum tuner_action_kind kind, const struct trial_state *s,
                  struct tuner_setting at, const char *reason);

/* What a trial that may have `n_hot` hot settings is chosen by now. */
struct choice_rule tuner_rule(const struct tuner *t, int n_hot);

/* What the trial has measured becomes its class's; per_record NAN: not measured. */
void tuner_learn(struct tuner *t, struct trial_state *s, double per_record, struct tuner_actions *out);

/* Is it one of the space? */
bool tuner_has(const struct tuner *t, struct tuner_setting s);

/* The hot settings that are meant by an n_hot of outside, where 0 is all. */
int tuner_n_hot(const struct tuner *t, int n_hot);

/* --- tuner_cand.c: pure ratios in, costs of the moment out --- */

/* Log of what a hot setting costs beside its time, over what another does. */
double tuner_cand_load(const struct tuner *t, int hot, int over);

/* Log of a candidate's cost over the incumbent's, given that of its time. */
double tuner_cand_cost(const struct tuner *t, const struct trial_state *s, int hot, double ratio);

/* Has the trial compared its incumbent with anything yet? */
bool tuner_cand_compared(const struct tuner *t, const struct trial_state *s);

/* May the trial have it? */
bool tuner_cand_allowed(const struct trial_state *s, int hot);

/* Its cost over the incumbent; NAN: not known, or not allowed. */
double tuner_cand_known(const struct tuner *t, const struct trial_state *s, int hot);

/* The smallest cost that is known; *out_hot is the cheapest of the settings that cost the same within the margin. */
double tuner_cand_least(const struct tuner *t, const struct trial_state *s, int *out_hot);

/* The next one to measure; -1: none is left. */
int tuner_cand_next(const struct tuner *t, const struct trial_state *s);

/* The trial is to have this one now. */
void tuner_cand_change(struct trial_state *s, int hot);

/* It becomes the incumbent, at this ratio to the old one (NAN: not known); ratios to the old one become ratios to it. */
void tuner_cand_promote(const struct tuner *t, struct trial_state *s, int hot, double ratio);

/* --- tuner_cold.c --- */

enum cold_when { COLD_RELAUNCH, COLD_LAUNCH /* that happens anyway */ };

/* The setting under another memory than `from` that is most worth a try, and the share of a trial that this may cost. 0: none. */
double tuner_cold_next(const struct tuner *t, const struct class_entry *c, struct tuner_setting from, int n_hot,
                       enum cold_when when, struct tuner_setting *out);

/* Asks for a relaunch when that promises more than it costs. */
void tuner_cold_consider(const struct tuner *t, struct trial_state *s, struct tuner_actions *out);

/* The trial has run to its end: what a try cost its class more than the best would have. */
void tuner_cold_ended(const struct trial_state *s);

/* A try is given time to show how fast it is; a heap that is much too small may do nothing but collect garbage. True: given up. */
void tuner_cold_begin(struct trial_state *s);
bool tuner_cold_give_up(const struct tuner *t, struct trial_state *s, struct tuner_actions *out);

/* --- tuner_probe.c --- */

/* The trial begins: candidates by what is known, and the first phase. */
void tuner_probe_begin(struct tuner *t, struct trial_state *s, struct tuner_actions *out);

void tuner_probe_iteration(struct tuner *t, struct trial_state *s, const struct tuner_event *ev,
                           struct tuner_actions *out);
void tuner_probe_epoch(struct tuner *t, struct trial_state *s, int epoch);
void tuner_probe_applied(const struct tuner *t, struct trial_state *s, const struct tuner_event *ev);
void tuner_probe_refused(struct tuner *t, struct trial_state *s, int hot, struct tuner_actions *out);
void tuner_probe_instead(struct tuner *t, struct trial_state *s, int got, struct tuner_actions *out);
void tuner_probe_tick(struct tuner *t, struct trial_state *s, struct tuner_actions *out);
void tuner_probe_break(struct tuner *t, struct trial_state *s, struct tuner_actions *out);

/* Steps of a trial that tuner_recall.c takes, too. */
void tuner_probe_enter_hold(const struct tuner *t, struct trial_state *s, bool changed);
void tuner_probe_enter_warm(const struct tuner *t, struct trial_state *s, bool changed);
void tuner_probe_settle(struct tuner *t, struct trial_state *s, struct tuner_actions *out, const char *why);
void tuner_probe_adopt(struct tuner *t, struct trial_state *s, int hot, double ratio, struct tuner_actions *out,
                       const char *why);
/* Another window of this candidate. */
void tuner_probe_measure(struct tuner *t, struct trial_state *s, int hot, struct tuner_actions *out, const char *what);
/* The candidate that is measured is left before its window is complete. */
void tuner_probe_abandon(const struct tuner *t, struct trial_state *s);
/* Half the width of the interval around the centre of the pairs so far. */
double tuner_probe_half(const struct tuner *t, const struct candidate *c);
/* Candidates by what is known of the class; what was refused stays so, and when `keep` what this trial measured. */
void tuner_probe_open(const struct tuner *t, struct trial_state *s, bool keep);

/* What counts, or what the trial may have, has changed: it takes the best of what was measured, and looks at what was not. */
void tuner_probe_reconsider(struct tuner *t, struct trial_state *s, struct tuner_actions *out, const char *cause);

/* --- tuner_recall.c --- */

/* The first steady window, which has just ended, is to be profiled. */
void tuner_recall_profile(struct trial_state *s, struct tuner_actions *out);

/* A recognised trial that is steady: the canary's next window, or it settles. */
void tuner_recall_go_on(struct tuner *t, struct trial_state *s, struct tuner_actions *out);

/* A trial of a recalled class has begun: true when it has settled. */
bool tuner_recall_begin(struct tuner *t, struct trial_state *s, struct tuner_actions *out);

/* A pair of the canary is complete, or its default so much better (`ratio`) that one window is enough. */
void tuner_recall_judge(struct tuner *t, struct trial_state *s, int hot, struct tuner_actions *out);
void tuner_recall_failed(struct tuner *t, struct trial_state *s, int hot, double ratio, struct tuner_actions *out);

/* It is no longer the one that does the canary of its class. */
void tuner_recall_leave(struct trial_state *s);

/* Events. */
int tuner_recall_learn(struct tuner *t, const struct tuner_event *ev, struct err *e);
void tuner_recall_verdict(struct tuner *t, struct trial_state *s, const struct tuner_event *ev,
                          struct tuner_actions *out);
void tuner_recall_launch_failed(struct class_entry *c, const struct tuner_event *ev, struct tuner_actions *out);

/* For "%g core%s". */
#define TUNER_CORES(t, hot) (t)->space.cores[hot], (t)->space.cores[hot] == 1 ? "" : "s"

#endif
