/* Machines that a test does not have, as the files that the kernel would show below /sys: PMUs, CPUs, their names. */
#ifndef TESTS_FAKE_SYSFS_H
#define TESTS_FAKE_SYSFS_H

enum fake_machine {
    FAKE_SKYLAKE_SP, /* two sockets of 18 cores, hyper-threading, TSX */
    FAKE_ICELAKE_SP, /* hyper-threading, TSX */
    FAKE_ZEN4,
    FAKE_VM, /* Zen 4 without a core PMU; the msr PMU has only tsc */
};

/* A new folder below TMPDIR (/tmp) that stands for /sys. fake_sysfs_remove() removes and frees it; NULL is fine. */
char *fake_sysfs_make(enum fake_machine machine);
void fake_sysfs_remove(char *root);

/* Writes ROOT/PATH, folders included. Both fail the running test when they cannot. */
void fake_sysfs_write(const char *root, const char *path, const char *text);
void fake_sysfs_delete(const char *root, const char *path); /* one file, or a folder with all in it */

#define FAKE_PMU "bus/event_source/devices/"

#endif
