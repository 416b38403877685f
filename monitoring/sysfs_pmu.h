/* What the kernel says of its PMUs below /sys, as values. Pure; no locale changes what a number is.
 *
 *     format/event        config:0-7,32-35               the bits that a term sets, the value's lowest bits first
 *     format/ldlat        config1:0-15
 *     events/mem-loads    event=0xcd,umask=0x1,ldlat=3   a term without "=" is 1
 *     events/X.scale      2.3283064365386962890625e-10   what a count is to be multiplied by
 *     events/X.unit       Joules
 *     cpumask, online     0-3,8,10-11
 *     modalias            cpu:type:x86,ven0000fam0006mod0055:feature:,0000,0001,012B,
 *
 * Each text may end with one newline. What reads otherwise is -EINVAL, and the output is untouched. */
#ifndef MONITORING_SYSFS_PMU_H
#define MONITORING_SYSFS_PMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SYSFS_WORDS = 3, /* config, config1, config2 */
    SYSFS_RANGES_MAX = 16,
    SYSFS_TERMS_MAX = 16,
    SYSFS_NAME_SIZE = 48,
    SYSFS_UNIT_SIZE = 16,
    SYSFS_CPUS_MAX = 8192,
};

struct sysfs_format {
    int word; /* which of config, config1, config2 */
    int n;
    struct {
        uint8_t from, to; /* bits, inclusive; no two ranges share one */
    } range[SYSFS_RANGES_MAX];
};

int sysfs_format_parse(struct sysfs_format *out, const char *text);

/* Puts `value` into its bits, whatever they were. -ERANGE: it has more bits than the format. */
int sysfs_format_set(const struct sysfs_format *f, uint64_t value, uint64_t config[SYSFS_WORDS]);

struct sysfs_terms {
    int n;
    struct sysfs_term {
        char name[SYSFS_NAME_SIZE]; /* letters, digits, '_', '-', '.'; never begins with a point: safe in a path */
        uint64_t value;
    } v[SYSFS_TERMS_MAX];
};

/* A value that is left to the user ("ldlat=?") is -EINVAL, too. */
int sysfs_terms_parse(struct sysfs_terms *out, const char *text);

/* The word that a term names by itself ("config1=0x3"), without a format; -1: none. */
int sysfs_term_word(const char *name);

/* A PMU's `type`: -EINVAL also for what has no place in 32 bits. */
int sysfs_type_parse(uint32_t *out, const char *text);

/* A scale: finite and above 0. */
int sysfs_scale_parse(double *out, const char *text);

/* Printable, and shorter than SYSFS_UNIT_SIZE. */
int sysfs_unit_parse(char out[SYSFS_UNIT_SIZE], const char *text);

struct sysfs_cpus {
    uint64_t w[SYSFS_CPUS_MAX / 64];
};

/* An empty text is the empty set. */
int sysfs_cpus_parse(struct sysfs_cpus *out, const char *text);
int sysfs_cpus_count(const struct sysfs_cpus *c);
int sysfs_cpus_next(const struct sysfs_cpus *c, int from); /* the lowest that is not below `from`; -1: none */

enum { SYSFS_VENDOR_INTEL = 0, SYSFS_VENDOR_AMD = 2, SYSFS_VENDOR_HYGON = 9 };

struct sysfs_cpu_id {
    unsigned vendor, family, model;
    bool rtm; /* transactional memory, and it is not switched off */
};

int sysfs_modalias_parse(struct sysfs_cpu_id *out, const char *text);

#endif
