#include "core/policy.h"

#include <string.h>

#include "core/paper.h"

/* --- each machine behind the same calls --- */

static void *tuner_create(const struct tuner_space *space, const struct tuner_cfg *cfg)
{
    return tuner_new(space, cfg);
}

static void tuner_destroy(void *machine)
{
    tuner_free(machine);
}

static int tuner_ask_launch(void *machine, const struct tuner_ask *ask, struct tuner_setting *out,
                            char reason[TUNER_REASON_MAX], struct err *e)
{
    return tuner_launch(machine, ask, out, reason, e);
}

static int tuner_take(void *machine, const struct tuner_event *ev, struct tuner_actions *out, struct err *e)
{
    return tuner_step(machine, ev, out, e);
}

static bool tuner_has(const void *machine, int trial, struct tuner_setting *out)
{
    return tuner_current(machine, trial, out);
}

static bool tuner_is_settled(const void *machine, int trial)
{
    return tuner_settled(machine, trial);
}

static const struct knowledge *tuner_knows(const void *machine)
{
    return tuner_knowledge(machine);
}

static void *paper_create(const struct tuner_space *space, const struct tuner_cfg *cfg)
{
    return paper_new(space, cfg);
}

static void paper_destroy(void *machine)
{
    paper_free(machine);
}

static int paper_ask_launch(void *machine, const struct tuner_ask *ask, struct tuner_setting *out,
                            char reason[TUNER_REASON_MAX], struct err *e)
{
    return paper_launch(machine, ask, out, reason, e);
}

static int paper_take(void *machine, const struct tuner_event *ev, struct tuner_actions *out, struct err *e)
{
    return paper_step(machine, ev, out, e);
}

static bool paper_has(const void *machine, int trial, struct tuner_setting *out)
{
    return paper_current(machine, trial, out);
}

static bool paper_is_settled(const void *machine, int trial)
{
    return paper_settled(machine, trial);
}

/* --- the table --- */

const struct policy policies[] = {
    { .name = "v1", .help = "never changed: the default setting, or one entered by the user" },
    { .name = "v2", .help = "searched like hyperparameters, for accuracy over time", .joins_search = true },
    { .name = "paper",
      .help = "one probe per epoch, as published",
      .wide = true,
      .create = paper_create,
      .destroy = paper_destroy,
      .launch = paper_ask_launch,
      .step = paper_take,
      .current = paper_has,
      .settled = paper_is_settled },
    { .name = "pipetune",
      .help = "measured in short windows while the trial trains, and shared between trials",
      .wide = true,
      .by_windows = true,
      .shares = true,
      .create = tuner_create,
      .destroy = tuner_destroy,
      .launch = tuner_ask_launch,
      .step = tuner_take,
      .current = tuner_has,
      .settled = tuner_is_settled,
      .knowledge = tuner_knows },
    { .name = NULL },
};

const char *const policy_names[] = { "v1", "v2", "paper", "pipetune", NULL };

const struct policy *policy_find(const char *name)
{
    for (const struct policy *p = policies; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}
