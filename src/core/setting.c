#include "core/setting.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/suggest.h"

static bool fits(double memory_gb, const struct offer *offer)
{
    return !(offer->memory_gb > 0) || memory_gb <= offer->memory_gb;
}

static double cut(double cores, const struct offer *offer)
{
    return offer->cores > 0 && cores > offer->cores ? offer->cores : cores;
}

struct layout_ask setting_ask(const struct space *s, const struct setting *set, const struct offer *offer, int slots)
{
    int n = setting_parts(s, set, offer, slots);
    return (struct layout_ask){ .parts = n,
                                .cores = n > 0 ? slots / n : 0,
                                .memory_gb = setting_number(s, set, KNOB_MEMORY, offer->part_gb) };
}

int setting_parts(const struct space *s, const struct setting *set, const struct offer *offer, int slots)
{
    if (!offer->divided)
        return 0;
    return layout_divide(&offer->room, slots, (int)setting_number(s, set, KNOB_PARTS, 0), offer->part_cores,
                         setting_number(s, set, KNOB_MEMORY, offer->part_gb));
}

/* The slots that a candidate comes to under a setting: more than there are is cut to the most that can be had. 0: it cannot be had. */
static int slots_of(double cores, const struct space *s, const struct setting *set, const struct offer *offer)
{
    if (!offer->divided)
        return (int)cut(cores, offer);
    if (cut(cores, offer) == cores)
        return setting_parts(s, set, offer, (int)cores) > 0 ? (int)cores : 0;
    return layout_most(&offer->room, offer->cores, (int)setting_number(s, set, KNOB_PARTS, 0), offer->part_cores,
                       setting_number(s, set, KNOB_MEMORY, offer->part_gb));
}

static size_t n_candidates(const struct space *s)
{
    const struct knob *cores = space_knob(s, KNOB_CORES);
    return cores ? cores->n : 1;
}

static double candidate(const struct space *s, const struct setting *set, const struct offer *offer, size_t i)
{
    const struct knob *cores = space_knob(s, KNOB_CORES);
    double least = offer->divided ? setting_number(s, set, KNOB_PARTS, 1) : 1;
    if (cores)
        return cores->values[i].number;
    if (offer->file_cores > 0)
        return offer->file_cores;
    return offer->cores > 0 ? offer->cores + 1 : least; /* one more than there are: all that can be had */
}

/* With the first number of cores that was written, or (`any`) with any. */
static bool can_be_had(const struct space *s, const struct setting *set, const struct offer *offer, bool any)
{
    if (!fits(setting_number(s, set, KNOB_MEMORY, 0), offer))
        return false;
    for (size_t i = 0; i < (any ? n_candidates(s) : 1); i++)
        if (slots_of(candidate(s, set, offer, i), s, set, offer) > 0)
            return true;
    return false;
}

static bool is_looked_for(const struct knob *k)
{
    return k->kind->id == KNOB_MEMORY || k->kind->id == KNOB_PARTS;
}

/* Takes the next combination of memory and parts, the knob written last counting fastest; false: that was the last one. */
static bool next_combination(const struct space *s, size_t at[SPACE_MAX_KNOBS])
{
    for (size_t i = s->n_knobs; i-- > 0;) {
        if (!is_looked_for(&s->knobs[i]))
            continue;
        if (++at[i] < s->knobs[i].n)
            return true;
        at[i] = 0;
    }
    return false;
}

struct setting setting_default(const struct space *s, const struct offer *offer)
{
    struct setting first = { 0 };
    for (size_t i = 0; i < s->n_knobs; i++)
        first.v[i] = s->knobs[i].values[0];
    for (int any = 0; any <= 1; any++) {
        size_t at[SPACE_MAX_KNOBS] = { 0 };
        do {
            struct setting set = first;
            for (size_t i = 0; i < s->n_knobs; i++)
                set.v[i] = s->knobs[i].values[at[i]];
            if (can_be_had(s, &set, offer, any))
                return set;
        } while (next_combination(s, at));
    }
    return first;
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
    if (k->kind->id != KNOB_PROPERTY)
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

struct setting setting_effective(const struct space *s, const struct setting *requested, const struct offer *offer)
{
    struct setting set = *requested;
    for (size_t i = 0; i < s->n_knobs; i++)
        if (s->knobs[i].kind->id == KNOB_CORES)
            set.v[i] = value_of_number(cut(set.v[i].number, offer));
    return set;
}

/* "2, 1", without repeats; as many as fit. */
static void list_candidates(char *out, size_t size, const struct space *s, const struct setting *set,
                            const struct offer *offer)
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n_candidates(s) && len < size; i++) {
        double c = cut(candidate(s, set, offer, i), offer);
        bool told = false;
        for (size_t k = 0; k < i && !told; k++)
            told = cut(candidate(s, set, offer, k), offer) == c;
        if (!told)
            len += (size_t)snprintf(out + len, size - len, "%s%.0f", len ? ", " : "", c);
    }
}

/* What of it a cluster would have to grant to each part, and how many. */
static void put_cannot(const struct space *s, const struct setting *set, const struct offer *offer,
                       char text[SETTING_WHY_MAX])
{
    char cores[64], each[64] = "", some[32] = "";
    char num[NUM_TEXT_MAX];
    double memory_gb = setting_number(s, set, KNOB_MEMORY, offer->part_gb);
    double parts = setting_number(s, set, KNOB_PARTS, 0);
    const char *why = offer->room.n_refused   ? "the cluster did not grant them"
                      : offer->room.n_workers ? "no workers have room for them"
                                              : "they do not divide";
    list_candidates(cores, sizeof cores, s, set, offer);
    if (memory_gb > 0)
        (void)snprintf(each, sizeof each, " of %s GiB", num_print(memory_gb, num));
    if (parts > 0)
        (void)snprintf(some, sizeof some, "%.0f ", parts);
    (void)snprintf(text, SETTING_WHY_MAX, "cores %s cannot be had as %s%s%s%s: %s", cores, some, offer->part_word,
                   parts == 1 ? "" : "s", each, why);
}

const char *setting_infeasible(const struct space *s, const struct setting *set, const struct offer *offer,
                               char text[SETTING_WHY_MAX])
{
    double memory_gb = setting_number(s, set, KNOB_MEMORY, 0);
    if (can_be_had(s, set, offer, true))
        return NULL;
    if (fits(memory_gb, offer)) {
        put_cannot(s, set, offer, text);
        return text;
    }
    char want[NUM_TEXT_MAX];
    /* rounded down, or 23.5 would be "more than the 23.5 there are" */
    double there = floor(offer->memory_gb * 10) / 10;
    (void)snprintf(text, SETTING_WHY_MAX, "memory %s GiB is more than the %.10g GiB there are",
                   num_print(memory_gb, want), there);
    return text;
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

static int nothing_divides(const char *candidates, const struct offer *offer, double batch, struct err *e)
{
    char num[NUM_TEXT_MAX];
    char have[48] = "";
    if (offer->cores > 0)
        (void)snprintf(have, sizeof have, " (of the %d CPUs there are)", offer->cores);
    return err_set(
        e, -ERANGE,
        "batch %s is not a multiple of %s cores%s: %s; change the batch or add a core number that divides it",
        num_print(batch, num), candidates, have, offer->why_divided ? offer->why_divided : "it must be one");
}

int setting_slots(const struct space *s, const struct setting *set, const struct offer *offer, double batch,
                  struct err *e)
{
    char text[256];
    int best = 0;
    bool any = false;
    for (size_t i = 0; i < n_candidates(s); i++) {
        int c = slots_of(candidate(s, set, offer, i), s, set, offer);
        any |= c > 0;
        if (c > best && divides(c, batch))
            best = c;
    }
    if (best > 0)
        return best;
    if (!any)
        return err_set(e, -ENODEV, "%s", setting_infeasible(s, set, offer, text) ? text : "no cores can be had");
    list_candidates(text, sizeof text, s, set, offer);
    return nothing_divides(text, offer, batch, e);
}

/* --- what is left out ------------------------------------------------------------------------------------------------ */

enum { PARTS = 3, TABLE_MAX = 4096, LINES_MAX = 12 };

/* Every combination of the values of cores, memory and parts, and whether it can be had. */
struct table {
    const struct knob *knob[PARTS];
    int n[PARTS];
    bool can[TABLE_MAX];
};

static int table_at(const struct table *t, const int v[PARTS])
{
    return (v[0] * t->n[1] + v[1]) * t->n[2] + v[2];
}

/* Is there one that can, with these values (-1: any)? */
static bool possible(const struct table *t, const int v[PARTS])
{
    int at[PARTS];
    for (at[0] = 0; at[0] < t->n[0]; at[0]++)
        for (at[1] = 0; at[1] < t->n[1]; at[1]++)
            for (at[2] = 0; at[2] < t->n[2]; at[2]++) {
                bool is_one = true;
                for (int i = 0; i < PARTS; i++)
                    is_one &= v[i] < 0 || v[i] == at[i];
                if (is_one && t->can[table_at(t, at)])
                    return true;
            }
    return false;
}

/* One that cannot, though it could if any of its values were left open. */
static bool is_told(const struct table *t, const int v[PARTS])
{
    if (possible(t, v))
        return false;
    for (int i = 0; i < PARTS; i++) {
        int wider[PARTS] = { v[0], v[1], v[2] };
        wider[i] = -1;
        if (v[i] >= 0 && !possible(t, wider))
            return false;
    }
    return true;
}

/* Memory that no machine has is none of a combination's faults. */
static bool is_too_much(const struct table *t, const int v[PARTS], const struct offer *offer)
{
    return v[1] >= 0 && !fits(t->knob[1]->values[v[1]].number, offer);
}

static void put_left_out(const struct table *t, const int v[PARTS], struct buf *out)
{
    const char *sep = "";
    for (int i = PARTS - 1; i >= 0; i--) /* what needs a launch first */
        if (v[i] >= 0) {
            buf_printf(out, "%s%s %s", sep, t->knob[i]->name, t->knob[i]->values[v[i]].text);
            sep = " with ";
        }
    buf_puts(out, " cannot be had here: not tried\n");
}

/* False: there is nothing to be combined, or too much. */
static bool fill_table(struct table *t, const struct space *s, const struct offer *offer)
{
    static const enum knob_id parts[PARTS] = { KNOB_CORES, KNOB_MEMORY, KNOB_PARTS };
    for (int i = 0; i < PARTS; i++) {
        t->knob[i] = space_knob(s, parts[i]);
        t->n[i] = t->knob[i] ? (t->knob[i]->n < TABLE_MAX ? (int)t->knob[i]->n : TABLE_MAX) : 1;
    }
    if ((int64_t)t->n[0] * t->n[1] * t->n[2] > TABLE_MAX || !offer->divided)
        return false;
    struct setting set = setting_default(s, offer);
    int at[PARTS];
    for (at[0] = 0; at[0] < t->n[0]; at[0]++)
        for (at[1] = 0; at[1] < t->n[1]; at[1]++)
            for (at[2] = 0; at[2] < t->n[2]; at[2]++) {
                for (size_t k = 0; k < s->n_knobs; k++)
                    for (int i = 0; i < PARTS; i++)
                        if (t->knob[i] == &s->knobs[k])
                            set.v[k] = s->knobs[k].values[at[i]];
                t->can[table_at(t, at)] = fits(setting_number(s, &set, KNOB_MEMORY, 0), offer) &&
                                          slots_of(candidate(s, &set, offer, (size_t)at[0]), s, &set, offer) > 0;
            }
    static const int anything[PARTS] = { -1, -1, -1 };
    return possible(t, anything); /* else each trial says so itself */
}

void setting_put_left_out(const struct space *s, const struct offer *offer, struct buf *out)
{
    struct table t = { 0 };
    int lines = 0, v[PARTS];
    if (!fill_table(&t, s, offer))
        return;
    for (v[0] = -1; v[0] < (t.knob[0] ? t.n[0] : 0); v[0]++)
        for (v[1] = -1; v[1] < (t.knob[1] ? t.n[1] : 0); v[1]++)
            for (v[2] = -1; v[2] < (t.knob[2] ? t.n[2] : 0); v[2]++)
                if (!is_too_much(&t, v, offer) && is_told(&t, v) && lines++ < LINES_MAX)
                    put_left_out(&t, v, out);
    if (lines > LINES_MAX)
        buf_printf(out, "and %d more combinations cannot\n", lines - LINES_MAX);
}
