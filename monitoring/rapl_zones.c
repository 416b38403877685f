#include "monitoring/rapl_zones.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 99999 };

static bool take(const char **p, const char *text)
{
    size_t len = strlen(text);
    if (strncmp(*p, text, len) != 0)
        return false;
    *p += len;
    return true;
}

static bool take_number(const char **p, int *out)
{
    const char *start = *p;
    int x = 0;
    for (; **p >= '0' && **p <= '9'; (*p)++) {
        x = x * 10 + (**p - '0');
        if (x > NUMBER_MAX)
            return false;
    }
    *out = x;
    return *p > start;
}

static bool at_end(const char *p)
{
    return *p == '\0' || (*p == '\n' && p[1] == '\0');
}

int rapl_zone_parse(struct rapl_zone *out, const char *folder)
{
    struct rapl_zone z = { .child = -1, .package = -1, .die = -1 };
    if (!take(&folder, "intel-rapl"))
        return -EINVAL;
    z.mmio = take(&folder, "-mmio");
    if (!take(&folder, ":") || !take_number(&folder, &z.zone))
        return -EINVAL;
    if (take(&folder, ":") && !take_number(&folder, &z.child))
        return -EINVAL;
    if (*folder)
        return -EINVAL;
    *out = z;
    return 0;
}

void rapl_zone_folder(const struct rapl_zone *z, char out[RAPL_FOLDER_SIZE])
{
    int n = snprintf(out, RAPL_FOLDER_SIZE, "intel-rapl%s:%d", z->mmio ? "-mmio" : "", z->zone);
    if (z->child >= 0 && n > 0 && n < RAPL_FOLDER_SIZE)
        (void)snprintf(out + n, RAPL_FOLDER_SIZE - (size_t)n, ":%d", z->child);
}

static bool take_package(const char *p, int *package, int *die)
{
    *die = -1;
    if (!take(&p, "package-") || !take_number(&p, package))
        return false;
    if (take(&p, "-die-") && !take_number(&p, die))
        return false;
    return at_end(p);
}

void rapl_zone_name(struct rapl_zone *z, const char *text)
{
    static const struct {
        const char *name;
        enum rapl_kind kind;
    } kinds[] = { { "dram", RAPL_DRAM }, { "psys", RAPL_PSYS }, { "core", RAPL_PART }, { "uncore", RAPL_PART } };
    int package, die;
    z->kind = RAPL_OTHER;
    if (take_package(text, &package, &die)) {
        z->kind = RAPL_PACKAGE;
        z->package = package;
        z->die = die;
        return;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *p = text;
        if (take(&p, kinds[i].name) && at_end(p))
            z->kind = kinds[i].kind;
    }
}

int rapl_count_parse(uint64_t *out, const char *text)
{
    const char *p = text;
    uint64_t x = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (x > (UINT64_MAX - digit) / 10)
            return -ERANGE;
        x = x * 10 + digit;
    }
    if (p == text || !at_end(p))
        return -EINVAL;
    *out = x;
    return 0;
}

/* --- choosing --- */

static int by_folder(const void *a, const void *b)
{
    const struct rapl_zone *x = a, *y = b;
    if (x->mmio != y->mmio)
        return x->mmio ? 1 : -1;
    if (x->zone != y->zone)
        return x->zone < y->zone ? -1 : 1;
    return (x->child > y->child) - (x->child < y->child);
}

static bool is_top(const struct rapl_zone *z, enum rapl_kind kind)
{
    return z->kind == kind && z->child < 0;
}

static bool has_package(const struct rapl_zone *v, size_t n, bool mmio)
{
    for (size_t i = 0; i < n; i++)
        if (is_top(&v[i], RAPL_PACKAGE) && v[i].mmio == mmio)
            return true;
    return false;
}

/* The package that a child belongs to; NULL: its parent is none. */
static const struct rapl_zone *package_of(const struct rapl_zone *v, size_t n, const struct rapl_zone *child)
{
    for (size_t i = 0; i < n; i++)
        if (is_top(&v[i], RAPL_PACKAGE) && v[i].mmio == child->mmio && v[i].zone == child->zone && child->child >= 0)
            return &v[i];
    return NULL;
}

static void choose_packages(struct rapl_zone *v, size_t n, bool mmio, struct rapl_choice *c)
{
    for (size_t i = 0; i < n; i++) {
        struct rapl_zone *z = &v[i];
        const struct rapl_zone *parent = package_of(v, n, z);
        if (z->mmio != mmio)
            continue;
        if (is_top(z, RAPL_PACKAGE)) {
            z->chosen = true;
            c->packages++;
        } else if (z->kind == RAPL_DRAM && parent) {
            z->package = parent->package;
            z->die = parent->die;
            z->chosen = true;
            c->dram++;
        }
    }
}

/* One that is no package's: all memory, where no package tells of its own. */
static void choose_lone_dram(struct rapl_zone *v, size_t n, bool mmio, struct rapl_choice *c)
{
    for (size_t i = 0; i < n && c->dram == 0; i++) {
        if (!is_top(&v[i], RAPL_DRAM) || v[i].mmio != mmio)
            continue;
        v[i].chosen = true;
        c->dram++;
    }
}

/* The first: where there are more, each may be all of the machine. */
static int choose_psys(struct rapl_zone *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_top(&v[i], RAPL_PSYS))
            continue;
        v[i].chosen = true;
        return 0;
    }
    return -ENODEV;
}

static void count_rest(const struct rapl_zone *v, size_t n, struct rapl_choice *c)
{
    for (size_t i = 0; i < n; i++) {
        if (!v[i].chosen && v[i].child < 0) {
            c->psys_left += v[i].kind == RAPL_PSYS;
            c->mmio_left += v[i].kind == RAPL_PACKAGE;
            c->other += v[i].kind == RAPL_OTHER;
        }
        for (size_t k = 0; k < i; k++)
            c->dies |= v[i].chosen && v[k].chosen && v[i].kind == RAPL_PACKAGE && v[k].kind == RAPL_PACKAGE &&
                       v[i].package == v[k].package;
    }
}

int rapl_zones_choose(struct rapl_zone *v, size_t n, struct rapl_choice *out)
{
    struct rapl_choice c = { 0 };
    if (n > 1)
        qsort(v, n, sizeof *v, by_folder);
    for (size_t i = 0; i < n; i++)
        v[i].chosen = false;
    bool mmio = !has_package(v, n, false);
    choose_packages(v, n, mmio, &c);
    if (c.packages > 0)
        choose_lone_dram(v, n, mmio, &c);
    else if (choose_psys(v, n) < 0)
        return -ENODEV;
    count_rest(v, n, &c);
    *out = c;
    return 0;
}
