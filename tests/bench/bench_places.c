/* bench_places: what the driver's ledgers cost for a trial on 10, 100 and 1,000 hosts of four CPUs, two trials on each at once, a hundred trials
 * for each host in all, as lines `name value unit [goal]`. Played without processes, clock and wire: the scheduler, the room on each host, the
 * walk over them, and what launches are to have there, as the driver goes through them from a trial's start to its end.
 *   places_HOSTS            microseconds of CPU for a trial
 *   places_HOSTS_sched      … of them in the scheduler, without the walk; _walk: looking for a host; _room: taking, giving back; _wants
 *   places_growth           the first for 1,000 hosts over that for 10 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/own.h"
#include "core/desired.h"
#include "core/rooms.h"
#include "core/sched.h"

enum { CPUS = 4, CORES = 2, TRIALS_PER_HOST = 100 };

enum part { PART_SCHED, PART_WALK, PART_ROOM, PART_WANTS, PARTS };

struct play {
    size_t hosts;
    struct rooms rooms;
    struct sched sched;
    struct desired *desired;
    struct running {
        int number;
        size_t node;
        char tag[24];
    } * running; /* a ring, oldest first */
    size_t first, n;
    int made;
    int64_t now_ms;
    double s[PARTS];
};

static double cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(bool well, const char *what)
{
    if (well)
        return;
    fprintf(stderr, "bench_places: %s\n", what);
    exit(1);
}

/* As driver_place(): an empty host, else the one with most room. */
static int place(struct play *p, int number)
{
    const struct rooms_want want = { .cpus = CORES, .memory_gb = 1 };
    int best = -1;
    double from = cpu_s();
    for (size_t i = 1; i <= p->hosts && best < 0; i++)
        if (rooms_left(&p->rooms, i, number) == CPUS)
            best = (int)i;
    if (best < 0)
        best = rooms_find(&p->rooms, number, want);
    p->s[PART_WALK] += cpu_s() - from;
    return best;
}

static bool fits(void *ctx, int number)
{
    return place(ctx, number) >= 0;
}

static void want(struct play *p, const struct running *r)
{
    static const int cpus[CORES] = { 0, 1 };
    const struct desired_seen seen = { .processes = 1, .threads = 4, .slots = CORES, .cpus = CORES };
    struct desired_ask ask;
    struct desired_news news;
    struct err e;
    must(desired_set(p->desired,
                     &(struct desired_want){ .tag = r->tag,
                                             .cores = CORES,
                                             .slots = CORES,
                                             .cpus = cpus,
                                             .n_cpus = CORES,
                                             .local = true,
                                             .node = r->node },
                     p->now_ms, &e) == 0,
         "nothing can be wanted");
    while (desired_next(p->desired, &ask))
        desired_answered(p->desired, ask.node, ask.stamp, &seen, NULL);
    while (desired_tell(p->desired, &news))
        ;
}

static void start(struct play *p, int number)
{
    int node = place(p, number), cpus[ROOMS_MAX_CPUS];
    must(node > 0, "a trial that fits has no place");
    sched_started(&p->sched, number);
    struct running *r = &p->running[(p->first + p->n++) % (2 * p->hosts)];
    *r = (struct running){ .number = number, .node = (size_t)node };
    (void)snprintf(r->tag, sizeof r->tag, "t%d", number);
    double from = cpu_s();
    must(rooms_put(&p->rooms, r->node, number) == 0 && rooms_keep(&p->rooms, r->node, number, 1) == 0 &&
             rooms_take(&p->rooms, r->node, number, CORES, cpus) == CORES,
         "a trial has no room");
    double had = cpu_s();
    want(p, r);
    p->s[PART_ROOM] += had - from;
    p->s[PART_WANTS] += cpu_s() - had;
}

static void end_oldest(struct play *p)
{
    const struct running *r = &p->running[p->first];
    struct desired_ask ask;
    double from = cpu_s();
    rooms_free(&p->rooms, r->number);
    double gave = cpu_s();
    desired_drop(p->desired, r->tag);
    while (desired_next(p->desired, &ask))
        ;
    p->now_ms += 30; /* trials of a minute, on the largest */
    if (p->now_ms % 90 == 0)
        desired_tick(p->desired, p->now_ms, 0);
    p->s[PART_ROOM] += gave - from;
    p->s[PART_WANTS] += cpu_s() - gave;
    (void)sched_ended(&p->sched, r->number, OUTCOME_FINISHED);
    p->first = (p->first + 1) % (2 * p->hosts);
    p->n--;
}

static void play(struct play *p)
{
    int most = (int)p->hosts * TRIALS_PER_HOST, number;
    for (;;) {
        switch (sched_next(&p->sched, fits, p, &number)) {
        case SCHED_START: start(p, number); break;
        case SCHED_ASK:
            if (p->made < most)
                must(sched_add(&p->sched, &(struct sched_trial){ .number = ++p->made, .state = TRIAL_WAITING }) == 0,
                     "no memory");
            else
                sched_asked(&p->sched, -ENODATA);
            break;
        case SCHED_WAIT: end_oldest(p); break;
        case SCHED_END: return;
        }
    }
}

static double bench(size_t hosts)
{
    static const int cpus[CPUS] = { 0, 1, 2, 3 };
    const char **names = calloc(hosts + 1, sizeof *names);
    struct play p = { .hosts = hosts,
                      .sched = { .parallel = (int)(2 * hosts) },
                      .running = calloc(2 * hosts, sizeof *p.running),
                      .desired = names ? desired_new(names, hosts + 1) : NULL };
    must(names && p.running && p.desired, "no memory");
    for (size_t i = 0; i <= hosts; i++) {
        must(rooms_add(&p.rooms, CPUS, 8) == 0 && rooms_know(&p.rooms, i, cpus, CPUS) == 0, "no memory");
        names[i] = "host";
        desired_node_is(p.desired, i, DESIRED_THERE, CPUS);
    }
    p.rooms.nodes[0].closed = true;
    double from = cpu_s();
    play(&p);
    double all = cpu_s() - from, n = (double)hosts * TRIALS_PER_HOST;
    must(p.made == (int)n && p.n == 0, "not all were played");
    p.s[PART_SCHED] = all;
    for (enum part i = PART_WALK; i < PARTS; i++)
        p.s[PART_SCHED] -= p.s[i];
    static const char *const parts[PARTS] = { "sched", "walk", "room", "wants" };
    printf("places_%zu %.2f us\n", hosts, 1e6 * all / n);
    for (enum part i = 0; i < PARTS; i++)
        printf("places_%zu_%s %.2f us\n", hosts, parts[i], 1e6 * p.s[i] / n);
    rooms_done(&p.rooms);
    sched_done(&p.sched);
    desired_free(p.desired);
    free(p.running);
    free(names);
    (void)fflush(stdout);
    return all / n;
}

int main(void)
{
    double ten = bench(10);
    (void)bench(100);
    printf("places_growth %.1f times\n", bench(1000) / ten);
    return 0;
}
