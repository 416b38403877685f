/* Any text as what the local meters read, and any counts as what energy counters showed: sane values, and never more joules than the zones
 * can have taken. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/cpu_time.h"
#include "monitoring/rapl_zones.h"
#include "monitoring/zone_sum.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ZONES = 32, MAX_W = 300 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_choice(const struct rapl_zone *v, size_t n, const struct rapl_choice *c)
{
    int chosen[RAPL_PART + 1] = { 0 };
    for (size_t i = 0; i < n; i++) {
        chosen[v[i].kind] += v[i].chosen;
        check(!v[i].chosen || v[i].kind == RAPL_DRAM || v[i].child < 0);
        for (size_t k = 0; k < i; k++)
            check(!v[i].chosen || !v[k].chosen || v[i].mmio == v[k].mmio);
    }
    check(chosen[RAPL_OTHER] == 0 && chosen[RAPL_PART] == 0);
    check(chosen[RAPL_PACKAGE] == c->packages && chosen[RAPL_DRAM] == c->dram);
    check(chosen[RAPL_PSYS] == (c->packages == 0)); /* never both */
}

/* Lines "FOLDER NAME". */
static void try_zones(char *text)
{
    struct rapl_zone v[ZONES];
    struct rapl_choice c;
    size_t n = 0;
    for (char *line = text, *next; line && n < ZONES; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        char *name = strchr(line, ' '), again[RAPL_FOLDER_SIZE];
        if (name)
            *name++ = '\0';
        if (rapl_zone_parse(&v[n], line) < 0)
            continue;
        struct rapl_zone same;
        rapl_zone_folder(&v[n], again);
        check(rapl_zone_parse(&same, again) == 0 && same.mmio == v[n].mmio && same.zone == v[n].zone &&
              same.child == v[n].child);
        rapl_zone_name(&v[n++], name ? name : "");
    }
    if (rapl_zones_choose(v, n, &c) == 0)
        check_choice(v, n, &c);
}

static void try_values(const char *text)
{
    uint64_t x = 77;
    struct cpu_time t = { .cpus = -1 };
    check(rapl_count_parse(&x, text) == 0 || x == 77);
    check(cpu_time_parse(&t, text) == 0 ? t.cpus > 0 : t.cpus == -1);
}

/* No reading with a value overlaps the one before it, or has more than the zones can have taken. */
static double check_reading(const struct meter_reading *r, double end_ms, int steps)
{
    check(r->from_ms <= r->to_ms && isnan(r->value) == (r->state != METER_OK));
    check(r->state == METER_OK || isnan(r->error));
    if (r->state != METER_OK)
        return end_ms;
    check(r->from_ms < r->to_ms && r->from_ms >= end_ms - 1e-3);
    double most_s = (r->to_ms - r->from_ms) / 1e3 + ZONE_SUM_REST_S + steps * 5 * ZONE_SUM_RENEWED_S;
    check(r->value >= 0 && r->value <= 3 * MAX_W * most_s && r->error > 0);
    return r->to_ms;
}

/* Three zones, two of them twins; each step is a byte of time and three of counts. */
static void try_sum(const uint8_t *p, size_t size)
{
    static struct zone_sum s;
    struct meter_reading r;
    struct zone_counter z = { .name = "z", .unit_j = 1, .step_j = 0.1, .range = 1000 };
    int64_t now_ns = 1000000000000;
    double end_ms = 0;
    zone_sum_init(&s, MAX_W);
    for (int i = 0; i < 3; i++) {
        z.twins = i < 2 ? 0 : -1;
        check(zone_sum_zone(&s, &z) == 0);
    }
    for (int steps = 1; size >= 4; p += 4, size -= 4, steps++) {
        const uint64_t counts[3] = { p[1] * 5U, p[2] * 5U, p[3] * 5U };
        now_ns += (int64_t)(p[0] - 8) * 50000000;
        if (p[0] < 8)
            end_ms = 0;
        if (p[1] == 255)
            zone_sum_failed(&s, now_ns, &r);
        else
            zone_sum_read(&s, now_ns, p[2] & 1 ? 0.01 : 0, counts, &r);
        end_ms = check_reading(&r, end_ms, steps);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    check(text != NULL);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    try_values(text);
    try_zones(text);
    try_sum(data, size);
    free(text);
    return 0;
}
