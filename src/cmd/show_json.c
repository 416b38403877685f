#include <errno.h>
#include <math.h>

#include "base/own.h"
#include "cmd/look.h"
#include "cmd/notes.h"
#include "cmd/show_parts.h"
#include "view/foretold.h"
#include "view/metrics.h"

static json_t *time_or_null(int64_t ms)
{
    return ms ? json_integer(ms) : json_null();
}

static int add_epoch_json(void *ctx, const struct store_epoch *r)
{
    bool steps = r->iterations > 0; /* else none were told, which is not that there were none */
    json_t *one = json_pack("{s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:o}", "accuracy", json_num(r->accuracy),
                            "loss", json_num(r->loss), "seconds", json_num(r->seconds), "epoch", r->epoch, "attempt",
                            r->attempt, "metric", json_num(r->metric), "records", json_num(steps ? r->records : NAN),
                            "iterations", steps ? json_integer((json_int_t)r->iterations) : json_null(),
                            "learning_rate", json_num(r->learning_rate), "end_ms", time_or_null(r->end_ms));
    return json_array_append_new(ctx, one) < 0 ? -ENOMEM : 0;
}

struct attempts_json {
    struct show *show;
    json_t *list;
    bool command; /* too long for a list of all trials, and so are members */
};

static int add_member_json(void *ctx, const struct store_member *r)
{
    json_t *one = json_pack("{s:s, s:i, s:s?, s:s?, s:I, s:i}", "role", r->role, "index", r->index, "place", r->place,
                            "launch", r->launch, "pid", (json_int_t)r->pid, "port", r->port);
    return json_array_append_new(ctx, one) < 0 ? -ENOMEM : 0;
}

static int add_attempt_json(void *ctx, const struct store_attempt *r)
{
    const struct attempts_json *a = ctx;
    AUTO_JSON json_t *members = json_array();
    int rc = a->command && members
                 ? store_members(a->show->store, r->trial, r->number, add_member_json, members, a->show->e)
                 : 0;
    if (rc < 0)
        return rc;
    double seconds = r->ended_ms ? (double)(r->ended_ms - r->started_ms) / 1000.0 : NAN;
    json_t *one = json_pack("{s:i, s:s, s:s?, s:o, s:o, s:s?, s:i, s:o, s:o, s:o, s:s?, s:s?, s:s?}", "attempt",
                            r->number, "state", r->state, "outcome", r->outcome, "exit_code",
                            r->exit_code < 0 ? json_null() : json_integer(r->exit_code), "cause", look_text(r->cause),
                            "resumed_from", r->resumed_from, "first_epoch", r->first_epoch, "seconds",
                            json_num(seconds), "started_ms", time_or_null(r->started_ms), "ended_ms",
                            time_or_null(r->ended_ms), "app_id", r->app_id, "launch", r->launch, "place", r->place);
    if (one && a->command && r->argv) {
        json_t *argv = json_loads(r->argv, 0, NULL);
        (void)json_object_set_new(one, "command", argv ? argv : json_null()); /* without it the rest still holds */
    }
    if (one && json_array_size(members) > 0)
        (void)json_object_set(one, "members", members); /* likewise */
    return json_array_append_new(a->list, one) < 0 ? -ENOMEM : 0;
}

static json_t *trial_json(struct show *l, const struct store_trial *t, json_t *epochs, json_t *attempts,
                          json_t *metrics)
{
    struct ledger_figure energy;
    struct show_now now;
    struct outlook_told told;
    json_t *tags;
    if (energy_figure_number(&l->energy, t->number, &energy) < 0 || show_now(l, t, &now) < 0 ||
        outlook_look(l->outlook, t, &told, l->e) < 0 || !(tags = notes_json(l->store, t->study, t->number, l->e)))
        return NULL;
    json_t *j = json_pack(
        "{s:i, s:s, s:i, s:o, s:{s:o, s:o}, s:O, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:o, s:o, s:s?, "
        "s:o, s:O, s:o, "
        "s:O, s:o, s:o, s:o}",
        "trial", t->number, "state", show_trial_state(l, t), "attempts", t->attempts, "hyper", show_object(t->hyper),
        "system", "requested", show_object(t->requested), "effective", show_object(t->effective), "epochs", epochs,
        "accuracy", json_num(t->accuracy), "seconds", json_num(show_seconds(l, t)), "energy",
        energy_figure_json(&energy), "loss", json_num(t->loss), "metric", json_num(t->metric), "budget", t->epochs,
        "slots", t->slots, "failures", t->failures, "copy_of", t->copy_of ? json_integer(t->copy_of) : json_null(),
        "repeat_of", t->repeat_of ? json_integer(t->repeat_of) : json_null(), "learnt_from", t->learnt_from, "reason",
        look_text(t->reason), "attempt_list", attempts, "now", show_now_json(&now), "metrics", metrics, "objectives",
        pareto_figures_json(&l->pareto, t->number), "violates", look_text(t->violates), "tags", tags);
    return foretold_add(j, &told);
}

static int print_trial_json(void *ctx, const struct store_trial *t)
{
    struct show *l = ctx;
    AUTO_JSON json_t *epochs = json_array();
    AUTO_JSON json_t *attempts = json_array();
    struct attempts_json a = { .show = l, .list = attempts, .command = l->trial != 0 };
    int rc = epochs && attempts ? store_epochs(l->store, t->id, add_epoch_json, epochs, l->e) : -ENOMEM;
    if (rc == 0 && t->attempts > 0)
        rc = store_attempts(l->store, t->id, add_attempt_json, &a, l->e);
    AUTO_JSON json_t *metrics = NULL;
    if (rc == 0)
        rc = metrics_json(l->store, t->id, l->trial ? METRICS_ALL : METRICS_EPOCHS, &metrics, l->e);
    AUTO_JSON json_t *j = rc == 0 ? trial_json(l, t, epochs, attempts, metrics) : NULL;
    if (!j)
        return rc == 0 || rc == -ENOMEM ? err_sys(l->e, -ENOMEM, "trial %s/%d", l->study.name, t->number) : rc;
    buf_puts(&l->out, l->printed++ ? ",\n    " : "\n    ");
    json_put(&l->out, j, JSON_STYLE_COMPACT);
    return show_flush_when_full(l);
}

static json_t *header_json(const struct show *l)
{
    json_t *best = look_best(l->totals.best_trial, l->totals.best_accuracy);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:i, s:i, s:i, s:i, s:o, s:I, s:o, s:I, s:s?, s:O?, s:O?, s:o, s:o, s:o}", "study",
        l->study.name, "state", show_study_state(l), "metric", show_metric(l), "direction",
        l->study.maximise ? "max" : "min", "best", best, "done", l->totals.done, "failed", l->totals.failed, "stopped",
        l->totals.stopped, "paused", l->totals.paused, "seconds", json_num(l->totals.seconds), "created_ms",
        (json_int_t)l->study.created_ms, "ended_ms", time_or_null(l->study.ended_ms), "seed", (json_int_t)l->study.seed,
        "space_hash", l->study.space_hash, "config", l->config, "provenance", l->provenance, "objectives",
        pareto_goals_json(&l->pareto), "pareto", pareto_json(&l->pareto), "tags",
        notes_json(l->store, l->study.id, 0, l->e));
}

int show_json_study(struct show *l)
{
    AUTO_JSON json_t *header = header_json(l);
    json_t *repeats = NULL, *learnt = NULL;
    if (!header)
        return err_sys(l->e, -ENOMEM, "study '%s'", l->study.name);
    int rc = show_repeats_json(l, &repeats);
    if (rc == 0 && json_object_set_new(header, "repeats", repeats) < 0)
        rc = err_sys(l->e, -ENOMEM, "study '%s'", l->study.name);
    if (rc == 0)
        rc = show_learnt_json(l, &learnt);
    if (rc == 0 && json_object_set_new(header, "learnt", learnt) < 0)
        rc = err_sys(l->e, -ENOMEM, "study '%s'", l->study.name);
    if (rc == 0)
        rc = look_add_seen(header, l->store, &l->study, l->totals.best_trial, l->e);
    if (rc < 0)
        return rc;
    buf_puts(&l->out, "{");
    const char *key;
    json_t *value;
    json_object_foreach(header, key, value)
    {
        buf_puts(&l->out, "\n  ");
        json_put_string(&l->out, key);
        buf_puts(&l->out, ": ");
        json_put(&l->out, value, JSON_STYLE_COMPACT);
        buf_putc(&l->out, ',');
    }
    buf_puts(&l->out, "\n  \"trials\": [");
    rc = store_trials(l->store, l->study.id, l->trial, print_trial_json, l, l->e);
    buf_puts(&l->out, "\n  ]\n}\n");
    return rc < 0 ? rc : show_flush(l);
}

static int print_decision_json(void *ctx, const struct store_decision *d)
{
    struct show *l = ctx;
    json_t *setting = d->setting ? json_loads(d->setting, 0, NULL) : NULL;
    AUTO_JSON json_t *j =
        json_pack("{s:I, s:o, s:o, s:s, s:o, s:o}", "seq", (json_int_t)d->seq, "trial",
                  d->trial ? json_integer(d->trial) : json_null(), "t_s", json_num(d->t_s), "kind", d->kind, "setting",
                  setting ? setting : json_null(), "reason", look_text(d->reason));
    if (!j)
        return err_sys(l->e, -ENOMEM, "decision %lld", (long long)d->seq);
    buf_puts(&l->out, l->printed++ ? ",\n  " : "\n  ");
    json_put(&l->out, j, JSON_STYLE_COMPACT);
    return show_flush_when_full(l);
}

int show_json_decisions(struct show *l)
{
    buf_puts(&l->out, "[");
    int rc = store_decisions(l->store, l->study.id, l->trial, print_decision_json, l, l->e);
    buf_puts(&l->out, l->printed ? "\n]\n" : "]\n");
    return rc < 0 ? rc : show_flush(l);
}
