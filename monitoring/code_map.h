/* Which code of a process an address is in, by what /proc/PID/maps says of its executable memory. Pure.
 *
 *   library    a file's: told by the file's name, without folders, and by the page of the file, so that it is the same in every run
 *   generated  nobody's file: what a compiler at run time made
 *   runtime    the JVM itself and the kernel's pages, which run whatever the job does
 *
 * Pages of libraries fall into CODE_GROUPS groups by a hash. Which job it is shows in how its time is shared out among them: others
 * spend it on other pages, and hardly ever on pages of the same groups in the same shares. */
#ifndef MONITORING_CODE_MAP_H
#define MONITORING_CODE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "monitoring/features.h"

enum {
    CODE_GENERATED = 0,
    CODE_PAGES, /* the first group of pages */
    CODE_PLACES = CODE_PAGES + CODE_GROUPS,
    CODE_RUNTIME = -1,
    CODE_NOWHERE = -2, /* nothing is mapped there */
};

struct code_range;

struct code_map {
    struct code_range *v; /* ascending; owned */
    size_t n, cap;
};

/* In place of what it had. Lines that are none are left out. -ENOMEM: it is as it was. */
int code_map_parse(struct code_map *out, const char *text);
void code_map_done(struct code_map *m);

/* CODE_GENERATED, a group from CODE_PAGES on, CODE_RUNTIME or CODE_NOWHERE. */
int code_map_find(const struct code_map *m, uint64_t address);

#endif
