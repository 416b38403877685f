#include "core/simulator.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A runtime takes a quarter more beside its heap. */
static const double HEAP_SHARE = 1.25;

/* --- rooms --- */

static double cores_of(const struct simulator *s, int hot)
{
    return s->cfg.space.cores[hot];
}

/* How many hot settings need no more than so many CPUs: the first ones, one at least. */
static int hot_within(const struct simulator *s, int cpus)
{
    int n = 1;
    while (n < s->cfg.space.n_hot && cores_of(s, n) <= cpus)
        n++;
    return n;
}

int simulator_free_cpus(const struct simulator *s, int node)
{
    return rooms_left(&s->rooms, (size_t)node, 0);
}

static int running_on(const struct simulator *s, int node)
{
    int n = 0;
    for (int i = 0; i < s->n; i++)
        n += s->slots[i].node == node;
    return n;
}

/* Is there so much room beside those that run there? */
static bool has_room(const struct simulator *s, int node, double cpus, int cold)
{
    const struct rooms_want want = { .cpus = (int)cpus, .memory_gb = HEAP_SHARE * s->cfg.space.memory[cold] };
    return rooms_fits(&s->rooms, (size_t)node, 0, want);
}

static void take(struct simulator *s, struct sim_slot *slot, int cpus)
{
    int which[ROOMS_MAX_CPUS]; /* they are all alike */
    slot->cpus = rooms_take(&s->rooms, (size_t)slot->node, slot->run.job.trial, cpus, which);
}

/* How busy the others keep its node. Until now it ran at the speed that it had beside them before. */
static void update_beside(struct simulator *s, int node)
{
    int used = s->cfg.nodes[node].cpus - simulator_free_cpus(s, node);
    for (int i = 0; i < s->n; i++) {
        struct sim_slot *o = &s->slots[i];
        if (o->node != node)
            continue;
        if (o->run.training)
            sim_run_advance(&o->run, s->now_s);
        o->run.beside = (double)(used - o->cpus) / s->cfg.nodes[node].cpus;
    }
}

/* What is asked for, or the largest setting that what it has and what is free allow. */
static int grant(void *place, struct sim_run *r, int hot)
{
    struct simulator *s = place;
    struct sim_slot *slot = (struct sim_slot *)r;
    int room = rooms_left(&s->rooms, (size_t)slot->node, r->job.trial);
    while (hot > 0 && cores_of(s, hot) > room)
        hot--;
    take(s, slot, (int)cores_of(s, hot));
    s->stirred = true;
    update_beside(s, slot->node);
    return hot;
}

/* --- what trials are told of each other --- */

static int tell(struct simulator *s, struct sim_slot *slot, struct tuner_event ev, struct err *e)
{
    sim_run_advance(&slot->run, s->now_s);
    return sim_run_tell(&slot->run, ev, e);
}

static int tell_room(struct simulator *s, struct err *e)
{
    int rc = 0;
    for (int i = 0; s->packs && rc == 0 && i < s->n; i++) {
        struct sim_slot *slot = &s->slots[i];
        int room = rooms_left(&s->rooms, (size_t)slot->node, slot->run.job.trial);
        int n_hot = hot_within(s, room < slot->most ? room : slot->most);
        bool alone = running_on(s, slot->node) == 1;
        if (!slot->run.training || (n_hot == slot->run.n_hot && alone == slot->run.alone))
            continue;
        slot->run.n_hot = n_hot;
        slot->run.alone = alone;
        rc = tell(s, slot, (struct tuner_event){ .kind = EV_LOAD, .n_hot = n_hot, .alone = alone }, e);
    }
    return rc;
}

/* One has come to this node, or gone. */
static int tell_neighbours(struct simulator *s, int node, struct err *e)
{
    int rc = 0;
    update_beside(s, node);
    for (int i = 0; s->packs && rc == 0 && i < s->n; i++)
        if (s->slots[i].node == node && s->slots[i].run.training)
            rc = tell(s, &s->slots[i], (struct tuner_event){ .kind = EV_BREAK }, e);
    return rc == 0 ? tell_room(s, e) : rc;
}

static int tell_load(struct simulator *s, struct err *e)
{
    size_t waiting = sched_waiting(&s->sched) + s->cfg.n_jobs - s->asked;
    bool enough = rooms_enough_wait(&s->rooms, cores_of(s, 0), waiting);
    struct tuner_actions acts;
    if (!s->packs || enough == s->waiting)
        return 0;
    s->waiting = enough;
    int rc = s->cfg.policy->step(
        s->stage.machine, &(struct tuner_event){ .kind = EV_LOAD, .t_s = s->now_s, .waiting = enough }, &acts, e);
    for (int i = 0; rc == 0 && i < s->n; i++) {
        if (!s->slots[i].run.training)
            continue;
        sim_run_advance(&s->slots[i].run, s->now_s);
        rc = sim_run_take(&s->slots[i].run, &acts, e);
    }
    return rc;
}

/* --- what fits --- */

static bool family_is_known(const struct simulator *s, const char *family)
{
    for (size_t i = 0; family && i < s->n_families; i++)
        if (strcmp(s->families[i], family) == 0)
            return true;
    return false;
}

static bool may_join(const struct simulator *s, int node, const struct sim_job *job)
{
    double least = s->packs ? cores_of(s, 0) : cores_of(s, job->start.hot);
    for (int i = 0; s->packs && i < s->n; i++) {
        const struct sim_slot *o = &s->slots[i];
        if (o->node == node && o->began_alone && !(o->run.training && sim_run_settled(&o->run)))
            return false;
    }
    return has_room(s, node, least, job->start.cold) && (!s->packs || family_is_known(s, job->family_key));
}

/* The one with the most CPUs that are free, the first of equals; -1: none takes it. */
static int find_node(const struct simulator *s, const struct sim_job *job)
{
    int found = -1, most = -1;
    for (int i = 0; i < s->cfg.n_nodes; i++) {
        int room = simulator_free_cpus(s, i);
        if (room <= most || (running_on(s, i) > 0 && !may_join(s, i, job)))
            continue;
        found = i;
        most = room;
    }
    return found;
}

static bool fits(void *ctx, int trial)
{
    const struct simulator *s = ctx;
    return find_node(s, &s->cfg.jobs[trial - 1]) >= 0;
}

/* --- starting --- */

/* What its node has no room for, beside others, gives way to less on the same ladder, at last to the start, which has. */
static int keep_memory(struct simulator *s, struct sim_slot *slot, struct err *e)
{
    struct sim_run *r = &slot->run;
    int cold = r->at.cold;
    while (!slot->began_alone && cold >= 0 && !has_room(s, slot->node, 0, cold))
        cold = tuner_space_step(&s->cfg.space, cold, -1);
    r->at.cold = cold >= 0 ? cold : r->job.start.cold;
    slot->memory_gb = s->cfg.space.memory[r->at.cold];
    int rc = rooms_keep(&s->rooms, (size_t)slot->node, r->job.trial, HEAP_SHARE * slot->memory_gb);
    return rc < 0 ? err_sys(e, rc, "simulated trial %d", r->job.trial) : 0;
}

/* Of the room that it was launched into, what it needs, and what it may come to have. */
static int take_room(struct simulator *s, struct sim_slot *slot, struct err *e)
{
    int cpus = s->cfg.nodes[slot->node].cpus, room = slot->cpus;
    double cores = cores_of(s, slot->run.at.hot);
    take(s, slot, (int)fmin(cores, room));
    /* Packed it is launched with twice as many tasks as cores, where there are as many CPUs: so far it can be widened. */
    slot->most = slot->began_alone || !s->packs ? cpus : (int)(2 * cores <= cpus ? 2 * cores : cores);
    slot->run.n_hot = hot_within(s, room < slot->most ? room : slot->most);
    s->totals.launches++;
    s->totals.packed += !slot->began_alone;
    return keep_memory(s, slot, e);
}

/* All that is free is kept for it until it is known what it is launched with: those that hear that nobody waits any more would take it. */
static int start(struct simulator *s, int trial, struct err *e)
{
    const struct sim_task *task = &s->tasks[trial - 1];
    struct sim_job job = s->cfg.jobs[trial - 1];
    int node = find_node(s, &job), room = simulator_free_cpus(s, node);
    struct sim_slot *slot = &s->slots[s->n];
    job.trial = trial;
    *slot = (struct sim_slot){ .node = node, .began_alone = running_on(s, node) == 0 };
    sim_run_init(&slot->run, &s->stage, &job, s->now_s);
    slot->run.rng = rng_seeded(rng_mix(s->cfg.seed) + (uint64_t)trial);
    slot->run.epoch = task->epoch;
    slot->run.launches = task->launches;
    slot->run.failed = task->failed;
    slot->run.alone = slot->began_alone;
    slot->run.n_hot = hot_within(s, room);
    s->n++;
    take(s, slot, room);
    sched_started(&s->sched, trial);
    int rc = tell_load(s, e); /* whether others wait decides what it is launched with */
    if (rc == 0)
        rc = sim_run_launch(&slot->run, e);
    if (rc == 0)
        rc = take_room(s, slot, e);
    return rc == 0 ? tell_neighbours(s, node, e) : rc;
}

/* Starts what can be started. */
static int schedule(struct simulator *s, struct err *e)
{
    int rc = 0, trial = 0;
    enum sched_verb verb = SCHED_START;
    while (rc == 0 && (verb == SCHED_START || verb == SCHED_ASK)) {
        verb = sched_next(&s->sched, fits, s, &trial);
        if (verb == SCHED_START)
            rc = start(s, trial, e);
        else if (verb == SCHED_ASK && s->asked == s->cfg.n_jobs)
            sched_asked(&s->sched, -ENODATA);
        else if (verb == SCHED_ASK &&
                 sched_add(&s->sched, &(struct sched_trial){ .number = (int)++s->asked, .state = TRIAL_WAITING }) < 0)
            rc = err_sys(e, -ENOMEM, "simulated trial %zu", s->asked);
    }
    return rc == 0 ? tell_load(s, e) : rc;
}

/* --- ending --- */

static void count(struct simulator *s, enum trial_state state)
{
    s->totals.finished += state == TRIAL_FINISHED;
    s->totals.infeasible += state == TRIAL_INFEASIBLE;
    s->totals.lost += state == TRIAL_FAILED;
    s->totals.end_s = s->now_s;
}

static int leave(struct simulator *s, struct sim_slot *slot, enum outcome why, struct err *e)
{
    const struct sim_run *r = &slot->run;
    int trial = r->job.trial, node = slot->node, i = (int)(slot - s->slots);
    const int settings = s->cfg.space.n_hot * s->cfg.space.n_cold;
    s->tasks[trial - 1] = (struct sim_task){ .epoch = r->epoch, .launches = r->launches, .failed = r->failed };
    if (why == OUTCOME_REFUSED && (!s->stage.machine || r->failed > settings))
        why = OUTCOME_INFEASIBLE; /* nothing is left to launch it with */
    count(s, sched_ended(&s->sched, trial, why));
    memmove(slot, slot + 1, (size_t)(s->n - i - 1) * sizeof *slot);
    s->n--;
    rooms_free(&s->rooms, trial);
    int rc = schedule(s, e);
    return rc == 0 ? tell_neighbours(s, node, e) : rc;
}

/* What has become of a run. */
static int follow_up(struct simulator *s, struct sim_slot *slot, int news, struct err *e)
{
    struct sim_run *r = &slot->run;
    bool over = news == SIM_EPOCH && r->epoch > r->job.epochs;
    bool relaunch = r->relaunch && (news == SIM_STEP || news == SIM_EPOCH);
    if (news == SIM_REFUSED || news == SIM_DIED) {
        s->totals.failed++;
        return leave(s, slot, news == SIM_REFUSED ? OUTCOME_REFUSED : r->death, e);
    }
    if (news == SIM_EPOCH)
        sched_gained(&s->sched, r->job.trial);
    if (!over && !relaunch)
        return 0;
    s->totals.relaunches += !over;
    int rc = sim_run_end(r, over ? EV_TRIAL_ENDED : EV_TRIAL_LOST, e);
    return rc == 0 ? leave(s, slot, over ? OUTCOME_FINISHED : OUTCOME_INTERRUPTED, e) : rc;
}

/* Others may have waited for one to settle, and jobs like it may begin packed from then on. */
static void note_settled(struct simulator *s)
{
    for (int i = 0; i < s->n; i++) {
        struct sim_slot *slot = &s->slots[i];
        const char *family = slot->run.job.family_key;
        if (slot->run.settles == slot->noted)
            continue;
        slot->noted = slot->run.settles;
        s->stirred = true;
        if (family && !family_is_known(s, family))
            s->families[s->n_families++] = family;
    }
}

/* --- time --- */

static struct sim_slot *next_slot(const struct simulator *s)
{
    struct sim_slot *next = NULL;
    double at = INFINITY;
    for (int i = 0; i < s->n; i++) {
        double t_s = sim_run_next_s(&s->slots[i].run);
        if (!next || t_s < at) { /* of equals the one that was started first */
            next = &s->slots[i];
            at = t_s;
        }
    }
    return next;
}

static void go_to(struct simulator *s, double t_s)
{
    double passed = t_s > s->now_s ? t_s - s->now_s : 0;
    for (int i = 0; i < s->n; i++)
        s->totals.core_s += passed * s->slots[i].cpus;
    s->now_s += passed;
}

/* One that takes more CPUs, or fewer, or has settled, changes what others may have, and whether one more fits. */
static int make_room(struct simulator *s, struct err *e)
{
    enum { ROUNDS = 8 };
    int rc = 0;
    for (int i = 0; rc == 0 && s->stirred && i < ROUNDS; i++) {
        s->stirred = false;
        rc = schedule(s, e);
        if (rc == 0)
            rc = tell_room(s, e);
        note_settled(s);
    }
    return rc;
}

int simulator_next(struct simulator *s, struct err *e)
{
    int rc = s->begun ? 0 : schedule(s, e);
    s->begun = true;
    struct sim_slot *slot = next_slot(s);
    if (rc < 0 || !slot)
        return rc;
    go_to(s, sim_run_next_s(&slot->run));
    int news = sim_run_next(&slot->run, e);
    if (news < 0)
        return news;
    s->stirred |= news == SIM_STARTED; /* it knows the room of its launch alone */
    note_settled(s);                   /* before it is gone */
    rc = follow_up(s, slot, news, e);
    if (rc == 0 && s->packs)
        rc = make_room(s, e);
    return rc < 0 ? rc : 1;
}

int simulator_play(struct simulator *s, struct err *e)
{
    int rc;
    while ((rc = simulator_next(s, e)) > 0)
        ;
    return rc;
}

/* --- opening --- */

static int add_node(struct simulator *s, const struct sim_node *node)
{
    int which[ROOMS_MAX_CPUS];
    for (int i = 0; i < node->cpus && i < ROOMS_MAX_CPUS; i++)
        which[i] = i;
    int rc = rooms_add(&s->rooms, node->cpus, node->memory_gb);
    return rc < 0 ? rc : rooms_know(&s->rooms, s->rooms.n - 1, which, node->cpus);
}

int simulator_init(struct simulator *s, const struct simulator_cfg *cfg, struct err *e)
{
    assert(cfg->n_nodes >= 1 && cfg->n_nodes <= SIM_NODES_MAX && cfg->parallel >= 1);
    const struct policy *p = cfg->policy;
    *s = (struct simulator){ .cfg = *cfg, .packs = p->shares && cfg->parallel > 1 };
    s->sched.parallel = cfg->parallel;
    s->slots = calloc((size_t)cfg->parallel, sizeof *s->slots);
    s->tasks = calloc(cfg->n_jobs + 1, sizeof *s->tasks);
    s->families = calloc(cfg->n_jobs + 1, sizeof *s->families);
    void *machine = p->create ? p->create(&cfg->space, &cfg->tuner) : NULL;
    s->stage = (struct sim_stage){
        .policy = p, .machine = machine, .world = cfg->world, .ctx = cfg->ctx, .grant = grant, .place = s
    };
    if (!s->slots || !s->tasks || !s->families || (p->create && !machine)) {
        simulator_done(s);
        return err_sys(e, -ENOMEM, "simulation");
    }
    for (size_t i = 0; i < cfg->n_jobs; i++)
        s->tasks[i].epoch = 1;
    int rc = 0;
    for (int i = 0; rc == 0 && i < cfg->n_nodes; i++)
        rc = add_node(s, &cfg->nodes[i]);
    if (rc < 0) {
        simulator_done(s);
        return err_sys(e, rc, "simulation");
    }
    return 0;
}

void simulator_done(struct simulator *s)
{
    if (s->stage.machine)
        s->cfg.policy->destroy(s->stage.machine);
    sched_done(&s->sched);
    rooms_done(&s->rooms);
    free(s->slots);
    free(s->tasks);
    free(s->families);
    *s = (struct simulator){ 0 };
}
