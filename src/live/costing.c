#include "live/costing.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/own.h"
#include "live/energy.h"

static const double WAIT_MS = 5000; /* for a reading; longer where they come more rarely */

static const char KIND[] = "objective";

static int find_reference(void *ctx, const struct store_decision *d)
{
    struct costing *c = ctx;
    if (strcmp(d->kind, KIND) != 0 || !d->setting)
        return 0;
    AUTO_JSON json_t *j = json_loads(d->setting, 0, NULL);
    double power = json_number_value(json_object_get(j, "power_w"));
    double record = json_number_value(json_object_get(j, "record_s"));
    const char *meter = json_string_value(json_object_get(j, "meter"));
    if (power > 0 && record > 0 && meter) {
        c->ref = (struct objective_reference){ power, record };
        c->meter = meter_find(meter);
    }
    return 0;
}

int costing_open(struct costing *c, struct study *s, struct err *e)
{
    *c = (struct costing){ .study = s, .objective = objective_find(s->plan->cfg.objective), .ref = { NAN, NAN } };
    if (!objective_needs_power(c->objective))
        return 0;
    return store_decisions(s->store, s->id, 0, find_reference, c, e);
}

int costing_add(struct costing_steps *of, const struct tuner_event *ev, double from_ms, double to_ms)
{
    struct costing_step *grown = array_more(of->v, of->n, &of->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    of->v = grown;
    of->v[of->n++] = (struct costing_step){ *ev, from_ms, to_ms };
    return 0;
}

void costing_drop(struct costing_steps *of)
{
    free(of->v);
    *of = (struct costing_steps){ 0 };
}

/* The first power that is known is what seconds are worth from then on, in this run and every later one. */
static int keep_reference(struct costing *c, const struct costing_step *s, double power_w, struct err *e)
{
    struct objective_reference ref = { power_w, s->ev.seconds / s->ev.records };
    if (!isnan(c->ref.power_w) || !c->meter || !(ref.power_w > 0) || !(ref.record_s > 0))
        return 0;
    AUTO_JSON json_t *j =
        json_pack("{s:f, s:f, s:s}", "power_w", ref.power_w, "record_s", ref.record_s, "meter", c->meter->name);
    AUTO_FREE char *text = json_text(j);
    if (!text)
        return err_sys(e, -ENOMEM, "trial %d", s->ev.trial);
    c->ref = ref;
    return study_decide(c->study, s->ev.trial, KIND, text, e,
                        "%s is minimised: settings are compared by it, as seconds of which each stands for %.3g J",
                        c->objective == OBJECTIVE_EDP ? "joules x seconds" : "energy", ref.power_w);
}

static int tell_once(struct costing *c, const struct costing_step *s, struct err *e)
{
    if (c->told || costing_counts(c))
        return 0;
    c->told = true;
    return study_decide(c->study, s->ev.trial, KIND, NULL, e,
                        "no meter tells of any power: settings are compared by time until one does, and nothing of "
                        "that is kept for later studies");
}

static double patience_ms(const struct costing *c)
{
    return fmax(WAIT_MS, 2.0 * config_interval_ms(&c->study->plan->cfg) + 500);
}

static double power_between(struct costing *c, double from_ms, double to_ms, double now_ms)
{
    if (!c->meter)
        c->meter = energy_choose(c->study->energy, (int64_t)now_ms);
    return energy_power_w(c->study->energy, c->meter, from_ms, to_ms);
}

int costing_take(struct costing *c, struct costing_steps *of, bool all, double now_ms, struct tuner_event *out,
                 struct err *e)
{
    if (of->n == 0)
        return 0;
    struct costing_step s = of->v[0];
    if (objective_needs_power(c->objective)) {
        double power = power_between(c, s.from_ms, s.to_ms, now_ms);
        if (!(power > 0) && !all && now_ms - s.to_ms < patience_ms(c))
            return 0;
        of->power_w = power > 0 ? power : of->power_w;
        int rc = keep_reference(c, &s, of->power_w, e);
        if (rc == 0 && !(power > 0) && now_ms - s.to_ms >= patience_ms(c))
            rc = tell_once(c, &s, e);
        if (rc < 0)
            return rc;
        s.ev.seconds = objective_cost_s(c->objective, &c->ref, s.ev.seconds, s.ev.records, of->power_w);
    }
    memmove(of->v, of->v + 1, --of->n * sizeof *of->v);
    *out = s.ev;
    return 1;
}

double costing_epoch(struct costing *c, struct costing_steps *of, double seconds, double records, double now_ms)
{
    if (!objective_needs_power(c->objective))
        return seconds;
    double until = fmin(now_ms, energy_until_ms(c->study->energy));
    double power = power_between(c, now_ms - 1000 * seconds, until, now_ms);
    of->power_w = power > 0 ? power : of->power_w;
    return objective_cost_s(c->objective, &c->ref, seconds, records, of->power_w);
}

bool costing_counts(const struct costing *c)
{
    return !objective_needs_power(c->objective) || c->ref.power_w > 0;
}
