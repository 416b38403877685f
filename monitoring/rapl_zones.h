/* What powercap calls its zones and counts, and which zones together are the energy of a machine. Pure.
 *
 *     folder              its name             in the sum
 *     intel-rapl:0        package-0            yes; of a package with several dies: package-0-die-0, …
 *     intel-rapl:0:0      core                 no: a part of the package, as uncore is
 *     intel-rapl:0:2      dram                 yes: no part of the package
 *     intel-rapl:1        psys                 no: packages are a part of it; alone where there is no package
 *     intel-rapl-mmio:0   package-0            no: the same counter by another way; yes where intel-rapl has no package */
#ifndef MONITORING_RAPL_ZONES_H
#define MONITORING_RAPL_ZONES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rapl_kind { RAPL_OTHER, RAPL_PACKAGE, RAPL_DRAM, RAPL_PSYS, RAPL_PART };

struct rapl_zone {
    bool mmio;
    int zone, child; /* child -1: a zone of its own */
    enum rapl_kind kind;
    int package, die; /* of dram: its parent's; -1: not told */
    bool chosen;
};

/* The name of a folder below class/powercap. -EINVAL: no zone of RAPL; *out is untouched then. */
int rapl_zone_parse(struct rapl_zone *out, const char *folder);

/* The folder's name again, below class/powercap. */
enum { RAPL_FOLDER_SIZE = 48 };
void rapl_zone_folder(const struct rapl_zone *z, char out[RAPL_FOLDER_SIZE]);

/* The text of the zone's file `name`: kind, package and die. One that is not known is RAPL_OTHER. */
void rapl_zone_name(struct rapl_zone *z, const char *text);

/* A count, as energy_uj and max_energy_range_uj have it: digits, and at most one newline. -EINVAL, -ERANGE beyond 64 bits. */
int rapl_count_parse(uint64_t *out, const char *text);

struct rapl_choice {
    int packages, dram;              /* zones chosen; no package: psys alone */
    int psys_left, mmio_left, other; /* left out; `other`: zones of their own whose names are not known */
    bool dies; /* zones that may be one counter shown twice: a package is among them more than once */
};

/* Sorts the zones by folder, sets `chosen`, and the package of dram. -ENODEV: neither package nor psys; *out is untouched. */
int rapl_zones_choose(struct rapl_zone *v, size_t n, struct rapl_choice *out);

#endif
