/* The checks of `doctor`, one function each; doctor.c has the table of them. */
#ifndef CMD_DOCTOR_H
#define CMD_DOCTOR_H

#include "base/buf.h"
#include "live/env.h"
#include "monitoring/meter.h"

#define DOCTOR_SET_UP "run ./run-pipetune.sh setup"

enum doctor_state { CHECK_OK, CHECK_WARN, CHECK_MISSING };

struct doctor_place {
    struct env env;
    struct offer offer;
    char *store;
    bool json; /* what is started must not print on stdout */
};

struct doctor_finding {
    struct buf detail, fix; /* what is there; how to mend it, empty when all is well */
};

/* doctor_checks.c: they look, and change nothing */
enum doctor_state doctor_java(const struct doctor_place *p, struct doctor_finding *f);
enum doctor_state doctor_spark(const struct doctor_place *p, struct doctor_finding *f);
enum doctor_state doctor_bigdl(const struct doctor_place *p, struct doctor_finding *f);
enum doctor_state doctor_python(const struct doctor_place *p, struct doctor_finding *f);
enum doctor_state doctor_node(const struct doctor_place *p, struct doctor_finding *f);
enum doctor_state doctor_conf(const struct doctor_place *p, struct doctor_finding *f);
enum doctor_state doctor_data(const struct doctor_place *p, struct doctor_finding *f);
enum doctor_state doctor_store(const struct doctor_place *p, struct doctor_finding *f);
enum doctor_state doctor_libraries(const struct doctor_place *p, struct doctor_finding *f);
enum doctor_state doctor_machine(const struct doctor_place *p, struct doctor_finding *f);
enum doctor_state doctor_host(const struct doctor_place *p, struct doctor_finding *f);

/* doctor_counters.c: what counting hardware events takes; each event is opened and closed */
enum doctor_state doctor_files(const struct doctor_place *p, struct doctor_finding *f);
enum doctor_state doctor_perf(const struct doctor_place *p, struct doctor_finding *f);
enum doctor_state doctor_watchdog(const struct doctor_place *p, struct doctor_finding *f);
enum doctor_state doctor_counters(const struct doctor_place *p, struct doctor_finding *f);

/* doctor_meters.c: can this meter be read here? One that there is none of is no fault: what else measures is enough. */
enum doctor_state doctor_meter(const struct meter_ops *meter, struct doctor_finding *f);

/* doctor_try.c: trains for a minute, in a temporary folder that is kept only when that failed */
enum doctor_state doctor_try(const struct doctor_place *p, struct doctor_finding *f);

#endif
