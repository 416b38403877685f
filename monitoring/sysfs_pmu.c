#include "monitoring/sysfs_pmu.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- pieces: each takes the place in the text, and moves it past what it read --- */

static bool take(const char **p, const char *text)
{
    size_t len = strlen(text);
    if (strncmp(*p, text, len) != 0)
        return false;
    *p += len;
    return true;
}

static bool at_end(const char *p)
{
    return *p == '\0' || (*p == '\n' && p[1] == '\0');
}

static int digit(char c, unsigned base)
{
    int d = c >= '0' && c <= '9'   ? c - '0'
            : c >= 'a' && c <= 'f' ? c - 'a' + 10
            : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                   : 99;
    return d < (int)base ? d : -1;
}

static bool take_digits(const char **p, unsigned base, uint64_t *out)
{
    const char *start = *p;
    uint64_t x = 0;
    for (int d; (d = digit(**p, base)) >= 0; (*p)++) {
        if (x > (UINT64_MAX - (unsigned)d) / base)
            return false;
        x = x * base + (unsigned)d;
    }
    *out = x;
    return *p > start;
}

static bool take_number(const char **p, uint64_t *out)
{
    bool hex = take(p, "0x") || take(p, "0X");
    return take_digits(p, hex ? 16 : 10, out);
}

/* "N" or "N-M", N <= M < limit */
static bool take_range(const char **p, uint64_t limit, uint64_t *from, uint64_t *to)
{
    if (!take_digits(p, 10, from))
        return false;
    *to = *from;
    if (take(p, "-") && !take_digits(p, 10, to))
        return false;
    return *from <= *to && *to < limit;
}

/* --- formats --- */

static uint64_t bits(unsigned from, unsigned to)
{
    return (UINT64_MAX >> (63 - (to - from))) << from;
}

static bool take_word(const char **p, int *out)
{
    static const char *const names[SYSFS_WORDS] = { "config:", "config1:", "config2:" };
    for (int i = 0; i < SYSFS_WORDS; i++) {
        if (!take(p, names[i]))
            continue;
        *out = i;
        return true;
    }
    return false;
}

int sysfs_format_parse(struct sysfs_format *out, const char *text)
{
    struct sysfs_format f = { 0 };
    uint64_t used = 0;
    if (!take_word(&text, &f.word))
        return -EINVAL;
    do {
        uint64_t from, to;
        if (f.n == SYSFS_RANGES_MAX || !take_range(&text, 64, &from, &to))
            return -EINVAL;
        uint64_t mine = bits((unsigned)from, (unsigned)to);
        if (used & mine)
            return -EINVAL;
        used |= mine;
        f.range[f.n].from = (uint8_t)from;
        f.range[f.n++].to = (uint8_t)to;
    } while (take(&text, ","));
    if (!at_end(text))
        return -EINVAL;
    *out = f;
    return 0;
}

int sysfs_format_set(const struct sysfs_format *f, uint64_t value, uint64_t config[SYSFS_WORDS])
{
    uint64_t word = config[f->word];
    for (int i = 0; i < f->n; i++) {
        unsigned from = f->range[i].from, width = f->range[i].to - from + 1U;
        uint64_t mine = bits(from, f->range[i].to);
        word = (word & ~mine) | ((value << from) & mine);
        value = width == 64 ? 0 : value >> width;
    }
    if (value)
        return -ERANGE;
    config[f->word] = word;
    return 0;
}

/* --- events --- */

static bool name_char(char c)
{
    return digit(c, 10) >= 0 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
}

static bool take_name(const char **p, char out[SYSFS_NAME_SIZE])
{
    size_t n = 0;
    while (name_char((*p)[n]))
        n++;
    if (n == 0 || n >= SYSFS_NAME_SIZE || **p == '.')
        return false;
    memcpy(out, *p, n);
    out[n] = '\0';
    *p += n;
    return true;
}

int sysfs_terms_parse(struct sysfs_terms *out, const char *text)
{
    struct sysfs_terms t = { 0 };
    do {
        if (t.n == SYSFS_TERMS_MAX)
            return -EINVAL;
        struct sysfs_term *one = &t.v[t.n++];
        one->value = 1;
        if (!take_name(&text, one->name) || (take(&text, "=") && !take_number(&text, &one->value)))
            return -EINVAL;
    } while (take(&text, ","));
    if (!at_end(text))
        return -EINVAL;
    *out = t;
    return 0;
}

int sysfs_term_word(const char *name)
{
    static const char *const names[SYSFS_WORDS] = { "config", "config1", "config2" };
    for (int i = 0; i < SYSFS_WORDS; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

/* --- one value --- */

int sysfs_type_parse(uint32_t *out, const char *text)
{
    uint64_t x;
    if (!take_digits(&text, 10, &x) || !at_end(text) || x > UINT32_MAX)
        return -EINVAL;
    *out = (uint32_t)x;
    return 0;
}

int sysfs_scale_parse(double *out, const char *text)
{
    /* strtod() reads on to a comma where the locale has one; the "C" locale is always there, and needs no memory. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    char *end;
    if (c == (locale_t)0 || digit(*text, 10) < 0 || text[1] == 'x' || text[1] == 'X')
        return -EINVAL;
    double x = strtod_l(text, &end, c);
    freelocale(c);
    if (!at_end(end) || !isfinite(x) || x <= 0)
        return -EINVAL;
    *out = x;
    return 0;
}

int sysfs_unit_parse(char out[SYSFS_UNIT_SIZE], const char *text)
{
    size_t n = 0;
    while (!at_end(text + n)) {
        unsigned char c = (unsigned char)text[n];
        if (c < 0x20 || c > 0x7e || ++n >= SYSFS_UNIT_SIZE)
            return -EINVAL;
    }
    memcpy(out, text, n);
    out[n] = '\0';
    return 0;
}

/* --- CPUs --- */

int sysfs_cpus_parse(struct sysfs_cpus *out, const char *text)
{
    struct sysfs_cpus c = { 0 };
    bool more = !at_end(text);
    while (more) {
        uint64_t from, to;
        if (!take_range(&text, SYSFS_CPUS_MAX, &from, &to))
            return -EINVAL;
        for (uint64_t i = from; i <= to; i++)
            c.w[i / 64] |= 1ULL << (i % 64);
        more = take(&text, ",");
    }
    if (!at_end(text))
        return -EINVAL;
    *out = c;
    return 0;
}

int sysfs_cpus_count(const struct sysfs_cpus *c)
{
    int n = 0;
    for (size_t i = 0; i < SYSFS_CPUS_MAX / 64; i++)
        n += __builtin_popcountll(c->w[i]);
    return n;
}

int sysfs_cpus_next(const struct sysfs_cpus *c, int from)
{
    for (int i = from < 0 ? 0 : from; i < SYSFS_CPUS_MAX; i++)
        if (c->w[i / 64] >> (i % 64) & 1)
            return i;
    return -1;
}

/* Four digits, no more: the "fa" of "fam" behind them would be two others. */
static bool take_hex4(const char **p, const char *key, unsigned *out)
{
    unsigned x = 0;
    if (!take(p, key))
        return false;
    for (int i = 0; i < 4; i++, (*p)++) {
        int d = digit(**p, 16);
        if (d < 0)
            return false;
        x = x * 16 + (unsigned)d;
    }
    *out = x;
    return true;
}

int sysfs_modalias_parse(struct sysfs_cpu_id *out, const char *text)
{
    struct sysfs_cpu_id id = { 0 };
    if (!take(&text, "cpu:type:x86,") || !take_hex4(&text, "ven", &id.vendor) || !take_hex4(&text, "fam", &id.family) ||
        !take_hex4(&text, "mod", &id.model) || !take(&text, ":feature:"))
        return -EINVAL;
    id.rtm = strstr(text, ",012B,") != NULL; /* X86_FEATURE_RTM: word 9, bit 11 */
    *out = id;
    return 0;
}
