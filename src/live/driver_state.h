/* The driver from inside, shared by its parts alone: driver.c (slots, starting, ending, signals), driver_stores.c (what is committed
 * before it is acted on), driver_sessions.c (warm sessions), driver_tuning.c (the policy, packing), driver_samples.c (what is measured of
 * trials), driver_outlook.c (what they are foretold to come to), driver_adopt.c (what an earlier driver left), driver_cpus.c (room, settings in force, other drivers), driver_hosts.c
 * (where a trial is placed; other hosts), driver_queue.c (its share; what it is asked for while it runs), driver_cluster.c (the room of a cluster), driver_gang.c (trials of several processes), driver_loop.c. */
#ifndef LIVE_DRIVER_STATE_H
#define LIVE_DRIVER_STATE_H

#include <uv.h>

#include "live/attempt.h"
#include "live/cluster.h"
#include "live/driver.h"
#include "live/pool.h"
#include "live/writer.h"

struct gangs;
struct hosts;
struct slurm;
struct driver_outlook;
struct nodes;
struct nodes_reading;
struct nodes_sample;
struct places;
struct resizer;

/* What of it is on its way to the disk. Until that is there the slot is not dropped, nor anything else done with it. */
enum slot_stores { STORES_NOTHING, STORES_LAUNCH, STORES_END, STORES_REFUSAL };

struct slot {
    struct attempt a;
    enum slot_stores stores;
    bool awaits_room; /* its gang does not fit now: nothing of it is started */
    bool gone;        /* while its launch was on its way its processes ended: to be settled */
    int busy_tries;
    bool silent;        /* its launcher never said that it is ready */
    int64_t started_ms; /* monotonic: when its launcher was */
    int64_t retry_ms;   /* monotonic: when to try again to start it; 0: it is starting or runs */
    uint64_t warm;      /* the session that serves it; 0: a submission of its own */
    int64_t narrow_ms;  /* monotonic: when its setting is to be brought into force; 0: it is, or on its way */
    int narrow_tries;
    bool measured;  /* its processes are */
    bool new_cores; /* what its attempt has in force is not in the store yet */
    bool apart;     /* narrowed because another driver has CPUs here */
};

/* What the driver could use now: CPUs, of them those of a trial; and trials that are to go. */
struct use {
    int most, grain, to_go;
};

struct driver {
    struct study *study;
    const struct driver_options *o;
    struct driver_result *result;
    uv_loop_t loop;
    uv_signal_t sig_int, sig_term, sig_hup;
    uv_timer_t tick;
    struct slot **slots;
    size_t n, cap;
    uint64_t next_id;
    bool asking;                        /* a proposal is on its way to the store */
    struct study_asked asked;           /* … what it is */
    const struct study_trial *given_up; /* one that cannot be launched is; NULL: none */
    int interrupts;
    bool over;    /* the loop has ended: nothing is started any more, and signals shorten what is still waited for */
    bool leaving; /* end the loop, let the trials run */
    int64_t first_launch_ms; /* clock_boot_ms() */
    int rc;                  /* the error that ends the loop */
    struct err *e;
    struct launcher_ops ops;
    struct site_here here;
    struct hosts *hosts;            /* NULL: trials are placed on this machine alone, or on a cluster */
    struct gangs *gangs;            /* NULL: each trial is one process, with what that starts */
    bool told_room;                 /* that a gang waits */
    struct slurm *slurm;            /* trials are its jobs; NULL: they are not */
    bool local;                     /* trials are placed on this machine, too */
    bool one_each;                  /* … one on each place */
    bool awaits_place;              /* what is next is not started for want of one */
    struct cluster *cluster;        /* that trials are placed on; NULL: none that can be asked */
    size_t cluster_most;            /* trials that it starts at once, as it showed; 0: as many as fit */
    bool told_no_room;              /* … that others have all of it */
    int64_t turned_ms;              /* monotonic: when a trial came or went last */
    struct places *places;          /* the room that there is, and who has it */
    struct nodes *nodes;            /* NULL: nothing is narrowed, nor measured */
    struct resizer *resizer;        /* narrows in place of the nodes; NULL: the cluster cannot */
    bool told_closed;               /* why nothing more is started */
    bool narrows;                   /* settings are brought into force while trials run */
    bool holds;                     /* … and from their beginning, since they stay as they are launched */
    bool measures;                  /* counters are read while trials run */
    int64_t changed_ms;             /* since 1970: when a trial came or went last */
    struct pool *pool;              /* NULL: every trial is submitted by itself */
    struct driver_outlook *outlook; /* NULL: nothing is foretold */
    bool no_metric;                 /* all was told to end because of that */
    bool adopting;                  /* what an earlier driver left is not all known yet: nothing is started */
    struct driver_serves {
        bool none;       /* no session could be had there in this run */
        int failed;      /* starts, one after the other; one that had to be ended counts twice */
    } * serves;          /* of each place; NULL: no pool */
    bool packs;          /* trials are packed beside each other */
    bool awaits_cpus;    /* what is next is not started for want of them */
    bool asked_cpus;     /* … and that was told */
    bool told_unlimited; /* that memory cannot be limited here */
    int64_t asked_ms;    /* monotonic: since when other drivers are asked for some */
    int share;           /* CPUs of this machine that the queue gives it; -1: nothing is said */
    bool told_share;     /* … that it is none */
    bool drains;         /* starts nothing more, as the queue wants */
    bool turned;         /* what may be started is another thing since the last tick */
    int64_t queue_id;    /* its row in the queue; 0: none */
    int64_t changes;     /* of the store, as seen at the last look */
    int64_t heard_id;    /* the newest request that was taken up */
    bool read_queue;     /* it has been looked at since what an earlier driver left is known */
    size_t n_asked;      /* requests on their way to the disk */
    bool waits_request;  /* one is to be taken up as soon as its trial runs */
    struct use use;      /* as the queue was told */
    int64_t use_ms;      /* monotonic: when */
    bool gone_warm;      /* a session that served nobody has ended since the last tick */
};

enum { NARROW_MS = 1500 }; /* a runtime sizes itself by the CPUs that it begins with: launch wide, narrow then */

void driver_tell(struct driver *d, struct driver_news n);
void driver_note(struct driver *d, const struct store_trial *trial, const char *text);
void driver_fail(struct driver *d, int rc); /* the loop cannot go on; what runs goes on without it */

/* What happens is stored soon, and acted on when it is committed: of the attempts (negative: the loop fails); a launch, which gets its go
 * then; an end, after which the slot is gone (while `adopting` at once); cores that a session was not granted; the next proposal; a trial
 * that cannot be launched, one at a time. */
int driver_store_news(struct driver *d);
void driver_store_launch(struct driver *d, struct slot *s);
void driver_settle(struct driver *d, struct slot *s);
void driver_store_refusal(struct driver *d, struct slot *s, const struct warm *w);
void driver_ask(struct driver *d);
void driver_give_up(struct driver *d, struct study_trial *t, const char *why);
int driver_hand_over(struct driver *d, struct write one); /* negative: the loop fails */
bool driver_store_failed(struct driver *d, int rc,
                         const struct err *e); /* the loop ends, and nothing more is done of what was to follow */
bool driver_is_storing(const struct driver *d, enum slot_stores what); /* is any slot's? */

struct slot *driver_slot(struct driver *d, uint64_t id); /* NULL: it is gone */
struct slot *driver_slot_of_trial(struct driver *d, int number);
struct slot *driver_add_slot(struct driver *d); /* NULL: memory */
void driver_drop_slot(struct driver *d, struct slot *s);

int driver_set_up_queue(struct driver *d);
void driver_tick_queue(struct driver *d);
void driver_minds_queue(
    struct driver *d); /* before a start: has it been told since the last tick to start nothing more? */
bool driver_looks_at_queue(struct driver *d); /* before the study ends: is there something that it may go on for? */
bool driver_has_share(struct driver *d, const struct study_trial *t); /* CPUs for one more trial; NULL: any */
bool driver_waits_in_queue(
    struct driver *d); /* all CPUs that others have are those of studies of its queue: its turn comes */
bool driver_awaits_share(struct driver *d); /* it has no CPU at all now; that is told once */
void driver_interrupt(struct driver *d);    /* as Ctrl-C does */
void driver_leave(struct driver *d);        /* the loop ends, what runs goes on */

int driver_open_loop(struct driver *d);
int driver_adopt(struct driver *d);

void driver_schedule(struct driver *d); /* starts what can be started; ends the loop when nothing is left */
int driver_start_launcher(struct driver *d, struct slot *s, struct study_trial *t);
void driver_tidy(struct driver *d, const struct attempt *a); /* its older checkpoints */
void driver_has_begun(struct driver *d, struct slot *s);
void driver_give_back(struct driver *d, struct slot *s);
void driver_note_no_metric(struct driver *d);
void driver_end_attempt(struct slot *s, enum attempt_stop why, bool hard);
void driver_own(struct driver *d, struct attempt *a); /* a prepared attempt gets its id, and its epochs are told here */

int driver_open_pool(struct driver *d);                    /* after the places */
bool driver_is_warm(const struct driver *d, size_t place); /* is a session up there that serves nobody? */
bool driver_serves(const struct driver *d, size_t place);  /* are trials served by sessions there? */
struct warm *driver_warm_of(const struct driver *d, const struct slot *s);
int driver_start_in_session(struct driver *d, struct slot *s, struct study_trial *t);
void driver_send_run(struct driver *d, struct slot *s); /* its launch is stored */
void driver_settle_served(struct driver *d, int64_t now);
void driver_end_idle_sessions(struct driver *d);
void driver_end_sessions(struct driver *d);
void driver_on_hello(void *ctx, struct warm *w);
void driver_on_told(void *ctx, struct warm *w, const struct session_message *m);
void driver_on_done(void *ctx, struct warm *w, const struct session_message *m);
void driver_on_warm_gone(void *ctx, struct warm *w, const char *why);

int driver_set_up_tuning(struct driver *d);
int driver_choose(struct driver *d, struct study_trial *t); /* the setting and the slots of its next launch */
int driver_room_for(struct driver *d, int number);
void driver_tell_room(struct driver *d);                       /* what each may have now; nothing to those who know */
void driver_neighbours_changed(struct driver *d, size_t node); /* to be called whenever one begins or ends there */
void driver_tell_load(struct driver *d);
bool driver_fits(void *ctx, int number);
bool driver_may_pack(struct driver *d, const struct study_trial *t, size_t node); /* beside those that run there */

void driver_allow_files(struct driver *d); /* before helpers are started */
int driver_set_up_hosts(struct driver *d);
void driver_tick_hosts(struct driver *d);
void driver_ended_on(struct driver *d, struct attempt *a); /* how it ended is stored */
int driver_place(struct driver *d, int number);            /* the node that it may be started on now; -1: none */
size_t driver_beside(const struct driver *d, size_t node); /* trials there */
bool driver_is_alone(const struct driver *d, const struct slot *s);
void driver_open_hosts(struct driver *d); /* the ledger hears which places take launches now */
struct site driver_site(struct driver *d, size_t node);
struct site driver_site_of(struct driver *d, const struct study_trial *t,
                           const struct store_attempt *row); /* where it was started */
struct rooms_want driver_want(struct driver *d, const struct study_trial *t);
bool driver_awaits_hosts(struct driver *d); /* something waits, and nothing runs: is a host to be waited for? */
bool driver_knows_next(const struct driver *d, const struct study_trial *first, struct study_trial *out);

int driver_place_gang(struct driver *d,
                      const struct study_trial *t); /* as driver_place(): of the process that tells; NULL: any */
bool driver_gang_never_fits(struct driver *d, const struct study_trial *t, char *why, size_t size);
int driver_start_gang(struct driver *d, struct slot *s, struct study_trial *t);
int driver_recall_gang(struct driver *d, struct slot *s);
int driver_adopt_gang(struct driver *d, struct slot *s);
void driver_tick_gangs(struct driver *d);
void driver_free_gang_room(struct driver *d, const struct attempt *a); /* of all but the first, which is the trial's */
void driver_apply_gang(struct driver *d, struct slot *s, const struct desired_want *want);

int driver_set_up_cluster(struct driver *d);
void driver_tick_cluster(struct driver *d);
bool driver_fits_cluster(struct driver *d, const struct study_trial *t); /* NULL: any */
int driver_choose_in_cluster(struct driver *d, struct study_trial *t);
bool driver_awaits_cluster(struct driver *d);
/* Something waits, and fits nowhere: what a session has that serves nobody may be what it would fit into, or a part of that. */
bool driver_is_short(const struct driver *d);
/* Ends as many of those that serve nobody as it takes until the parts of this trial have room. */
void driver_make_cluster_room(struct driver *d, const struct study_trial *t);
/* Others, too, may wait for what a session has that serves nobody: it stays for as long as another one would take to start. */
void driver_tick_idle(struct driver *d, int64_t now_ms);
/* It has waited for its room in vain: others have it, or the cluster starts no more at once, so that it is to be placed again. `why`: what the
 * cluster says, also where it could have started it. */
bool driver_is_crowded_out(struct driver *d, const struct slot *s, char why[CLUSTER_WHY_MAX]);
void driver_leave_cluster(struct driver *d, const char *tag, const char *id);

int driver_set_up_places(struct driver *d);
bool driver_has_cpus(struct driver *d, int number); /* for a trial that starts while none runs */
/* Other drivers are asked for CPUs so long: who is asked can do with fewer once its trial trains. Then theirs are used, too. */
int64_t driver_patience_ms(void);
int driver_take_room(struct driver *d, struct study_trial *t); /* the CPUs and the memory of its launch */
int driver_keep_memory(struct driver *d, const struct study_trial *t);
void driver_keep_cpus(struct driver *d);
void driver_let_go(struct driver *d, struct slot *s); /* its room, and its session, are free for others */
double driver_memory_gb(const struct driver *d, const struct study_trial *t); /* that its processes may come to hold */
void driver_apply(struct driver *d, struct slot *s, struct tuner_setting to);
void driver_narrow(struct driver *d, struct slot *s);
const char *driver_tag(const struct driver *d, const struct slot *s); /* of its processes; NULL: there are none yet */
void driver_tick_cpus(struct driver *d);
void driver_look_shared(struct driver *d, struct slot *s); /* does it use CPUs that others use? */

int driver_set_up_outlook(struct driver *d);
void driver_foretell(struct driver *d, int trial, int epoch); /* which the trial has told: NEWS_FORETOLD follows */
void driver_outlook_renew(struct driver *d);                  /* a trial has finished */
void driver_tick_outlook(struct driver *d, int64_t now_ms);
void driver_close_outlook(struct driver *d);

int driver_set_up_samples(struct driver *d);
void driver_end_samples(struct driver *d, int rc); /* what is still to come, after the loop */
void driver_close_samples(struct driver *d);
int driver_tick_samples(struct driver *d);
void driver_measure(struct driver *d, struct slot *s);
void driver_measure_no_more(struct driver *d, struct slot *s);
void driver_on_sampled(void *ctx, const char *tag, const struct nodes_sample *sample);
void driver_on_metered(void *ctx, const struct nodes_reading *r);

#endif
