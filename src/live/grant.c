#include "live/grant.h"

#include <inttypes.h>
#include <stdio.h>

#include "live/tuning.h"

static struct layout_ask ask_of(const struct study *s, const struct study_trial *t, int slots)
{
    struct setting set = study_setting(s, t);
    struct layout_ask ask = setting_ask(&s->plan->space, &set, &s->plan->offer, slots);
    if (t->parts > 0)
        ask = (struct layout_ask){ t->parts, slots / t->parts, ask.memory_gb };
    return ask;
}

struct wait grant_wait(const struct study *s, const struct study_trial *t, const struct fold *f, int slots)
{
    bool divided = s->plan->offer.divided;
    int parts = divided ? ask_of(s, t, slots).parts : 0;
    return wait_for(&s->plan->app.kind->words, f, slots, divided && parts < 1 ? 1 : parts);
}

void grant_put_refused(const struct study *s, const struct fold *f, int slots, bool again, const char *said,
                       char text[512])
{
    int64_t seconds = s->plan->cfg.grant_seconds;
    char got[128];
    if (f->cores > 0)
        (void)snprintf(got, sizeof got, "%d of %d cores were granted in %" PRId64 " s", f->cores, slots, seconds);
    else
        (void)snprintf(got, sizeof got, "%s in %" PRId64 " s", s->plan->app.kind->words.not_granted, seconds);
    if (*said)
        (void)snprintf(text, 512, "%s: %s%s", got, said, again ? "; it is placed again" : "");
    else
        (void)snprintf(text, 512, "%s: more %s", got,
                       f->cores > 0 ? "than the cluster has free" : "cores or memory than the cluster has");
}

int grant_refuse(struct study *s, struct study_trial *t, const struct fold *f, int slots, const char *why,
                 struct err *e)
{
    struct layout_ask ask = ask_of(s, t, slots);
    struct setting set = study_setting(s, t);
    if (ask.parts < 1) /* as things stand now, it would not have been asked for */
        return study_slots(s, t, NULL) > 0;
    if (f->parts < ask.parts)
        ask.parts = f->parts + 1; /* so many there were */
    int rc = study_refuse(s, t->row.number, ask, why, e);
    if (rc < 1)
        return rc;
    if (s->tuning && plan_slots(s->plan, &t->point, &set, NULL) < 0)
        rc = tuning_bound(s->tuning, t, false, e);
    return rc < 0 ? rc : study_slots(s, t, NULL) > 0;
}
