#include "core/setting.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"

static bool fits(double memory_gb, const struct offer *offer)
{
    return !(offer->memory_gb > 0) || memory_gb <= offer->memory_gb;
}

struct setting setting_default(const struct space *s, const struct offer *offer)
{
    struct setting set = { 0 };
    for (size_t i = 0; i < s->n_knobs; i++) {
        const struct knob *k = &s->knobs[i];
        size_t pick = 0;
        while (k->kind->id == KNOB_MEMORY && pick < k->n && !fits(k->values[pick].number, offer))
            pick++;
        set.v[i] = k->values[pick < k->n ? pick : 0];
    }
    return set;
}

/* --- a setting as the user enters it -------------------------------------------------------------------------------- */

/* Copies [from, to) without the spaces around it; false when it is too long. */
static bool copy_trimmed(char *out, size_t size, const char *from, const char *to)
{
    while (from < to && *from == ' ')
        from++;
    while (to > from && to[-1] == ' ')
        to--;
    size_t len = (size_t)(to - from);
    if (len >= size)
        return false;
    memcpy(out, from, len);
    out[len] = '\0';
    return true;
}

static int find_knob(const struct space *s, const char *name, size_t *out, struct err *e)
{
    const char *names[SPACE_MAX_KNOBS];
    for (size_t i = 0; i < s->n_knobs; i++) {
        names[i] = s->knobs[i].name;
        if (strcmp(names[i], name) == 0) {
            *out = i;
            return 0;
        }
    }
    const char *near = suggest_nearest(name, names, s->n_knobs);
    if (near)
        return err_set(e, -EINVAL, "setting: the study has no system parameter '%s'; did you mean '%s'?", name, near);
    return err_set(e, -EINVAL, "setting: the study has no system parameter '%s'; list it in 'systemParameters' first",
                   name);
}

static int enter_value(struct value *out, const struct knob *k, const char *text, struct err *e)
{
    struct value v = value_of_text(text);
    char bounds[KNOB_BOUNDS_MAX];
    if (k->kind->id != KNOB_SPARK)
        value_make_number(&v);
    if (!*text)
        return err_set(e, -EINVAL, "setting: '%s' has no value", k->name);
    if (!knob_kind_allows(k->kind, &v))
        return err_set(e, -EINVAL, "setting: '%s' must be %s, not '%s'", k->name, knob_kind_bounds(k->kind, bounds),
                       text);
    *out = v;
    return 0;
}

/* One "name=value" in [from, to). `seen` marks the knobs that were entered already. */
static int enter_one(struct setting *set, bool seen[SPACE_MAX_KNOBS], const struct space *s, const char *from,
                     const char *to, struct err *e)
{
    int len = to - from > 200 ? 200 : (int)(to - from); /* as much of it as an error shows */
    const char *equals = memchr(from, '=', (size_t)(to - from));
    char name[SPACE_NAME_MAX];
    char text[VALUE_TEXT_MAX];
    if (!equals)
        return err_set(e, -EINVAL, "setting: '%.*s' must be NAME=VALUE", len, from);
    if (!copy_trimmed(name, sizeof name, from, equals) || !copy_trimmed(text, sizeof text, equals + 1, to))
        return err_set(e, -EINVAL, "setting: '%.*s' is too long", len, from);
    size_t i = 0;
    int rc = find_knob(s, name, &i, e);
    if (rc < 0)
        return rc;
    if (seen[i])
        return err_set(e, -EINVAL, "setting: '%s' has two values", name);
    seen[i] = true;
    return enter_value(&set->v[i], &s->knobs[i], text, e);
}

int setting_parse(struct setting *out, const struct space *s, const struct setting *base, const char *text,
                  struct err *e)
{
    struct setting set = *base;
    bool seen[SPACE_MAX_KNOBS] = { false };
    for (const char *from = text;;) {
        const char *to = from + strcspn(from, ",");
        int rc = enter_one(&set, seen, s, from, to, e);
        if (rc < 0)
            return rc;
        if (!*to)
            break;
        from = to + 1;
    }
    *out = set;
    return 0;
}

bool setting_names(const char *text, const char *knob)
{
    char name[SPACE_NAME_MAX];
    for (const char *from = text; from; from = strchr(from, ',')) {
        from += *from == ',';
        const char *equals = strchr(from, '=');
        if (equals && copy_trimmed(name, sizeof name, from, equals) && strcmp(name, knob) == 0)
            return true;
    }
    return false;
}

/* --- what of it can be had ------------------------------------------------------------------------------------------ */

static double cut(double cores, const struct offer *offer)
{
    return offer->cores > 0 && cores > offer->cores ? offer->cores : cores;
}

struct setting setting_effective(const struct space *s, const struct setting *requested, const struct offer *offer)
{
    struct setting set = *requested;
    for (size_t i = 0; i < s->n_knobs; i++)
        if (s->knobs[i].kind->id == KNOB_CORES)
            set.v[i] = value_of_number(cut(set.v[i].number, offer));
    return set;
}

const char *setting_infeasible(const struct space *s, const struct setting *set, const struct offer *offer,
                               char text[128])
{
    double memory_gb = setting_number(s, set, KNOB_MEMORY, 0);
    if (fits(memory_gb, offer))
        return NULL;
    char want[NUM_TEXT_MAX];
    /* rounded down, or 23.5 would be "more than the 23.5 there are" */
    double there = floor(offer->memory_gb * 10) / 10;
    (void)snprintf(text, 128, "memory %s GiB is more than the %.10g GiB there are", num_print(memory_gb, want), there);
    return text;
}

bool setting_equal(const struct space *s, const struct setting *a, const struct setting *b)
{
    for (size_t i = 0; i < s->n_knobs; i++)
        if (!value_equal(&a->v[i], &b->v[i]))
            return false;
    return true;
}

json_t *setting_json(const struct space *s, const struct setting *set)
{
    json_t *j = json_object();
    for (size_t i = 0; j && i < s->n_knobs; i++) {
        if (json_object_set_new(j, s->knobs[i].name, value_to_json(&set->v[i])) < 0) { /* also when it is NULL */
            json_decref(j);
            return NULL;
        }
    }
    return j;
}

double setting_number(const struct space *s, const struct setting *set, enum knob_id id, double absent)
{
    for (size_t i = 0; i < s->n_knobs; i++)
        if (s->knobs[i].kind->id == id)
            return set->v[i].number;
    return absent;
}

/* --- slots ---------------------------------------------------------------------------------------------------------- */

static bool divides(double cores, double batch)
{
    return isnan(batch) || (batch >= 1 && fmod(batch, cores) == 0);
}

/* "16, 8, 4", without repeats; as many as fit. */
static void list_candidates(char *out, size_t size, const struct knob *cores, const struct offer *offer)
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < cores->n && len < size; i++) {
        double c = cut(cores->values[i].number, offer);
        bool told = false;
        for (size_t k = 0; k < i && !told; k++)
            told = cut(cores->values[k].number, offer) == c;
        if (!told)
            len += (size_t)snprintf(out + len, size - len, "%s%.0f", len ? ", " : "", c);
    }
}

static int nothing_divides(const char *candidates, const struct offer *offer, double batch, struct err *e)
{
    char num[NUM_TEXT_MAX];
    char have[48] = "";
    if (offer->cores > 0)
        (void)snprintf(have, sizeof have, " (of the %d CPUs there are)", offer->cores);
    return err_set(e, -ERANGE,
                   "batch %s is not a multiple of %s cores%s: BigDL needs that; change the batch or add a core number "
                   "that divides it",
                   num_print(batch, num), candidates, have);
}

int setting_slots(const struct space *s, const struct offer *offer, int file_cores, double batch, struct err *e)
{
    const struct knob *cores = space_knob(s, KNOB_CORES);
    char candidates[256];
    if (!cores) {
        int wanted = file_cores > 0 ? file_cores : offer->cores > 0 ? offer->cores : 1;
        int only = (int)cut(wanted, offer);
        if (divides(only, batch))
            return only;
        (void)snprintf(candidates, sizeof candidates, "%d", only);
        return nothing_divides(candidates, offer, batch, e);
    }
    double best = 0;
    for (size_t i = 0; i < cores->n; i++) {
        double c = cut(cores->values[i].number, offer);
        if (c > best && divides(c, batch))
            best = c;
    }
    if (best > 0)
        return (int)best;
    list_candidates(candidates, sizeof candidates, cores, offer);
    return nothing_divides(candidates, offer, batch, e);
}
