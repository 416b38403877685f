#include "live/driver_state.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "live/actuate.h"
#include "live/tuning.h"

/* Other drivers are asked for CPUs so long: who is asked can do with fewer once its trial trains. Then theirs are used, too. */
enum { ASK_MS = 30000 };

static int64_t patience_ms(void)
{
#ifdef PIPETUNE_FAILPOINTS
    const char *ms = getenv("PIPETUNE_ASK_MS"); /* tests don't wait as long as people do */
    if (ms)
        return strtol(ms, NULL, 10);
#endif
    return ASK_MS;
}

/* What is next waits until it has CPUs of its own, so that it does not begin on those that others measure on. */
bool driver_has_cpus(struct driver *d, int number)
{
    char who[LEASE_WHO_MAX], text[256];
    if (!d->actuate)
        return true;
    if (!actuate_is_ready(d->actuate))
        return false;
    actuate_look(d->actuate);
    if (actuate_has_room(d->actuate, number)) {
        d->asked_ms = 0;
        return true;
    }
    actuate_ask(d->actuate, who);
    d->asked_ms = d->asked_ms ? d->asked_ms : clock_ms();
    if (!d->asked_cpus) {
        (void)snprintf(text, sizeof text, "waits for a CPU: all of this machine are other drivers' (%s)", who);
        driver_note(d, NULL, text);
    }
    d->asked_cpus = true;
    return clock_ms() - d->asked_ms >= patience_ms();
}

/* Those of its launch. Beside another driver it is launched on them alone: what others measure is not to be disturbed by its
 * start. */
int driver_take_cpus(struct driver *d, struct study_trial *t)
{
    if (!d->actuate)
        return 0;
    struct setting set = study_setting(d->study, t);
    int cores = (int)setting_number(&d->study->plan->space, &set, KNOB_CORES, t->row.slots);
    int rc = actuate_reserve(d->actuate, t->row.number, cores, d->e);
    t->cores = 0;
    free(t->cpus);
    t->cpus = rc == 0 ? actuate_own_cpus(d->actuate, t->row.number) : NULL;
    return rc;
}

static void tell_shared(struct driver *d, struct slot *s, const char *who)
{
    char text[256];
    if (who)
        (void)snprintf(text, sizeof text, "shares its CPUs with %s: nothing is learnt of it meanwhile", who);
    else
        (void)snprintf(text, sizeof text, "has its CPUs for itself again");
    driver_note(d, &s->a.trial->row, text);
}

/* What was measured until now is of another state, whichever it is. */
void driver_look_shared(struct driver *d, struct slot *s)
{
    struct study_trial *t = s->a.trial;
    char who[NODES_WHO_MAX];
    bool shared = actuate_is_shared(d->actuate, t->row.number, s->a.row.launch, who);
    if (shared == t->shared)
        return;
    t->shared = shared;
    tell_shared(d, s, shared ? who : NULL);
    int rc = tuning_break(d->study->tuning, t->row.number, d->e);
    if (rc < 0)
        driver_fail(d, rc);
}

static void tend(struct driver *d, struct slot *s)
{
    if (s->a.running && actuate_may_part(d->actuate, s->a.trial->row.number))
        driver_narrow(d, s);
    bool divided = actuate_is_divided(d->actuate);
    if (s->a.running && divided && !s->apart && !d->narrows)
        driver_narrow(d, s);
    s->apart = divided;
    driver_look_shared(d, s);
}

void driver_tick_cpus(struct driver *d)
{
    if (!d->actuate)
        return;
    actuate_look(d->actuate);
    for (size_t i = 0; d->rc == 0 && i < d->n; i++)
        tend(d, d->slots[i]);
    driver_tell_room(d);
}
