#include "live/foretell.h"

#include <errno.h>

#include "base/own.h"
#include "core/rooms.h"
#include "live/study.h"

/* Do as many wait behind the first one as could run beside it? Then memory and cores have a price from the beginning. */
static bool others_wait(const struct plan *p, uint64_t trials)
{
    const struct tuner_space s = plan_tuner_space(p);
    bool packs = p->policy->shares && plan_packs(p) && study_parallel(p) > 1 &&
                 objective_find(p->cfg.objective) == OBJECTIVE_TIME;
    struct rooms here = { 0 };
    if (!packs || !space_knob(&p->space, KNOB_CORES) || trials < 2 || rooms_add(&here, p->offer.cores, 0) < 0)
        return false;
    bool enough = rooms_enough_wait(&here, s.cores[0], trials - 1);
    rooms_done(&here);
    return enough;
}

static int ask(const struct plan *p, void *machine, const struct point *pt, uint64_t trials, int slots,
               struct tuner_setting *out, struct err *e)
{
    AUTO_BUF struct buf class = BUF_INIT, family = BUF_INIT;
    struct tuner_actions none;
    char reason[TUNER_REASON_MAX];
    plan_class_key(p, pt, false, &class);
    plan_class_key(p, pt, true, &family);
    if (class.failed || family.failed)
        return err_sys(e, -ENOMEM, "setting");
    struct tuner_event load = { .kind = EV_LOAD, .waiting = others_wait(p, trials) };
    struct tuner_ask first = { .trial = 1,
                               .class_key = buf_text(&class),
                               .family_key = buf_text(&family),
                               .start = p->choices.start,
                               .n_hot = choices_hot_within(&p->choices, &p->space, slots),
                               .alone = true };
    int rc = p->policy->step(machine, &load, &none, e);
    return rc < 0 ? rc : p->policy->launch(machine, &first, out, reason, e);
}

int foretell_setting(const struct plan *p, const struct point *pt, uint64_t trials, struct setting *out, struct err *e)
{
    struct setting requested = plan_requested(p, pt), effective = plan_effective(p, &requested);
    const struct tuner_cfg cfg = { .tie_margin = p->cfg.tie_margin, .probe_budget = p->cfg.probe_budget };
    int slots = plan_slots(p, pt, &effective, e);
    if (slots < 0 || !p->policy->create) {
        *out = effective;
        return slots < 0 ? slots : 0;
    }
    const struct tuner_space space = plan_tuner_space(p);
    struct tuner_setting at = p->choices.start;
    void *machine = p->policy->create(&space, &cfg);
    int rc = machine ? ask(p, machine, pt, trials, slots, &at, e) : err_sys(e, -ENOMEM, "setting");
    p->policy->destroy(machine);
    if (rc == 0)
        *out = choices_setting(&p->choices, &p->space, at);
    return rc;
}
