#include "clustering/profile.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

enum part { PART_VALUE, PART_OVER, PART_TIME, PART_RATIO, PROFILE_PARTS };

#define PER_MILLION 1e6
#define MILLISECONDS 1e3

static const char *const norm_names[PROFILE_NORMS] = {
    [PROFILE_PER_INSTRUCTION] = "instructions",
    [PROFILE_PER_CPU_TIME] = "cpu-time",
    [PROFILE_PER_WORK_TIME] = "work-time",
    [PROFILE_PER_SECOND] = "seconds",
    [PROFILE_AS_IS] = "none",
};

const char *profile_norm_name(enum profile_norm norm)
{
    return norm_names[norm];
}

int profile_norm_find(const char *name)
{
    for (int i = 0; i < PROFILE_NORMS; i++)
        if (strcmp(norm_names[i], name) == 0)
            return i;
    return -1;
}

/* Two words of one event: the plain name and the PMU's own. */
static bool is_instructions(const char *name)
{
    return strcmp(name, "instructions") == 0 || strcmp(name, "cpu/instructions/") == 0;
}

static bool is_software(const char *name)
{
    static const char *const names[] = { "context-switches", "cpu-migrations", "minor-faults", "major-faults",
                                         "page-faults",      "task-clock",     "cpu-clock" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool is_seconds(const char *name)
{
    const char *end = strrchr(name, '-');
    return strchr(name, '/') && end && (strcmp(end, "-time") == 0 || strcmp(end, "-delay") == 0);
}

static bool is_below(const char *name, const char *folder)
{
    return strncmp(name, folder, strlen(folder)) == 0;
}

static enum profile_norm norm_of(const char *name, enum profile_kind kind, bool knows_work)
{
    if (kind == PROFILE_GAUGE)
        return PROFILE_AS_IS;
    if (strcmp(name, "proc/cpu-time") == 0)
        return PROFILE_PER_SECOND;
    if (is_below(name, "jvm/") || is_instructions(name))
        return PROFILE_PER_CPU_TIME;
    if (is_below(name, "proc/") || is_below(name, "log/") || is_below(name, "code/") || is_software(name))
        return knows_work ? PROFILE_PER_WORK_TIME : PROFILE_PER_CPU_TIME;
    return PROFILE_PER_INSTRUCTION;
}

static int place_of(const struct profile_space *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->features[i].name, name) == 0)
            return (int)i;
    return -1;
}

static int find_normalisers(struct profile_space *s, struct err *e)
{
    for (size_t i = 0; i < s->n; i++)
        if (place_of(s, s->features[i].name) != (int)i)
            return err_set(e, -EINVAL, "feature '%s' stands there twice", s->features[i].name);
    s->instructions = place_of(s, "instructions");
    if (s->instructions < 0)
        s->instructions = place_of(s, "cpu/instructions/");
    s->cpu_time = place_of(s, "proc/cpu-time");
    s->compile_time = place_of(s, "jvm/compile-time");
    s->collect_time = place_of(s, "jvm/collect-time");
    return 0;
}

static void set_norms(struct profile_space *s)
{
    bool knows_work = s->cpu_time >= 0 && s->compile_time >= 0 && s->collect_time >= 0;
    for (size_t i = 0; i < s->n; i++) {
        struct profile_feature *f = &s->features[i];
        f->norm = norm_of(f->name, f->kind, knows_work);
        f->unit = f->norm == PROFILE_PER_INSTRUCTION ? PER_MILLION : is_seconds(f->name) ? MILLISECONDS : 1;
    }
}

int profile_space_init(struct profile_space *out, const char *const *names, const enum profile_kind *kinds, size_t n,
                       struct err *e)
{
    if (n == 0 || n > PROFILE_FEATURES_MAX)
        return err_set(e, -EINVAL, "a profile has 1 to %d features, not %zu", PROFILE_FEATURES_MAX, n);
    struct profile_space s = { .features = calloc(n, sizeof *s.features), .n = n };
    if (!s.features)
        return err_sys(e, -ENOMEM, "cannot profile");
    for (size_t i = 0; i < n; i++)
        s.features[i] = (struct profile_feature){ .name = names[i], .kind = kinds[i] };
    int rc = find_normalisers(&s, e);
    if (rc < 0) {
        profile_space_done(&s);
        return rc;
    }
    set_norms(&s);
    *out = s;
    return 0;
}

void profile_space_done(struct profile_space *s)
{
    if (!s)
        return;
    free(s->features);
    *s = (struct profile_space){ 0 };
}

/* --- sums --- */

int profile_sum_init(struct profile_sum *out, const struct profile_space *s, struct err *e)
{
    double *part = calloc(s->n * PROFILE_PARTS, sizeof *part);
    if (!part)
        return err_sys(e, -ENOMEM, "cannot profile");
    *out = (struct profile_sum){ .n = s->n, .part = part };
    return 0;
}

void profile_sum_clear(struct profile_sum *sum)
{
    memset(sum->part, 0, sum->n * PROFILE_PARTS * sizeof *sum->part);
    sum->dt_s = 0;
}

void profile_sum_done(struct profile_sum *sum)
{
    if (!sum)
        return;
    free(sum->part);
    *sum = (struct profile_sum){ 0 };
}

static bool is_measured(double value, uint8_t state)
{
    return state <= 1 && isfinite(value) && value >= 0;
}

static double measured(const double *value, const uint8_t *state, int at)
{
    return at >= 0 && is_measured(value[at], state[at]) ? value[at] : (double)NAN;
}

/* What this interval's count stands over; NAN: it was not measured. */
static double normaliser(const struct profile_space *s, const struct profile_feature *f, const double *value,
                         const uint8_t *state, double dt_s)
{
    double cpu_s = measured(value, state, s->cpu_time);
    double work_s = cpu_s - measured(value, state, s->compile_time) - measured(value, state, s->collect_time);
    switch (f->norm) {
    case PROFILE_PER_INSTRUCTION: return measured(value, state, s->instructions);
    case PROFILE_PER_CPU_TIME: return cpu_s;
    case PROFILE_PER_WORK_TIME: return work_s < 0 ? 0 : work_s;
    default: return dt_s;
    }
}

void profile_sum_add(struct profile_sum *sum, const struct profile_space *s, const double *value, const float *ratio,
                     const uint8_t *state, double dt_s)
{
    if (!isfinite(dt_s) || dt_s <= 0)
        return;
    sum->dt_s += dt_s;
    for (size_t i = 0; i < s->n; i++) {
        const struct profile_feature *f = &s->features[i];
        double over = normaliser(s, f, value, state, dt_s), *part = sum->part + i * PROFILE_PARTS;
        if (!is_measured(value[i], state[i]) || isnan(over))
            continue;
        part[PART_VALUE] += f->kind == PROFILE_GAUGE ? value[i] * dt_s : value[i];
        part[PART_OVER] += over;
        part[PART_TIME] += dt_s;
        part[PART_RATIO] += dt_s * (state[i] == 1 ? (double)ratio[i] : 1);
    }
}

/* --- profiles --- */

int profile_init(struct profile *out, size_t n, struct err *e)
{
    struct profile p = { .n = n, .x = calloc(n + 1, sizeof *p.x), .mask = calloc(n + 1, sizeof *p.mask) };
    if (!p.x || !p.mask) {
        profile_done(&p);
        return err_sys(e, -ENOMEM, "cannot profile");
    }
    *out = p;
    return 0;
}

void profile_done(struct profile *p)
{
    if (!p)
        return;
    free(p->x);
    free(p->mask);
    *p = (struct profile){ 0 };
}

static bool is_enough(const double *part, double dt_s)
{
    return part[PART_OVER] > 0 && part[PART_TIME] >= PROFILE_MIN_COVER * dt_s &&
           part[PART_RATIO] >= PROFILE_MIN_RATIO * part[PART_TIME];
}

int profile_make(struct profile *out, const struct profile_space *s, const struct profile_sum *sum, struct err *e)
{
    if (!(sum->dt_s > 0))
        return err_set(e, -ENODATA, "no sample lies in the window");
    struct profile p;
    int rc = profile_init(&p, s->n, e);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < s->n; i++) {
        const double *part = sum->part + i * PROFILE_PARTS;
        double x = is_enough(part, sum->dt_s) ? log1p(part[PART_VALUE] / part[PART_OVER] * s->features[i].unit) : NAN;
        p.mask[i] = isfinite(x) ? 1 : 0;
        p.x[i] = p.mask[i] ? x : 0;
    }
    *out = p;
    return 0;
}

size_t profile_measured(const struct profile *p)
{
    size_t n = p->beyond;
    for (size_t i = 0; i < p->n; i++)
        n += p->mask[i] != 0;
    return n;
}
