/* What every integration test needs: folders that go away, programs with a deadline, waiting for a fact instead of time.
 * Whatever goes wrong in here fails the running test, so nothing returns an error. */
#ifndef TESTS_INTEGRATION_HARNESS_H
#define TESTS_INTEGRATION_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { HARNESS_MS = 20000 }; /* how long anything may take on a busy machine before it counts as hanging */

/* A new folder below TMPDIR (/tmp); absolute, free it after harness_remove(). */
char *harness_dir(void);

/* The folder and all in it, mounts below it included; does not follow links. Frees `dir`; NULL is fine. */
void harness_remove(char *dir);

/* A built program, by its path in the build folder: harness_program("pipetune-node"). Free it. The folder is
 * PIPETUNE_BUILD (tests/run-tests sets it), else the one this test was built into. */
char *harness_program(const char *name);

/* "dir/name"; free it. */
char *harness_path(const char *dir, const char *name);

/* The file's text, NUL-terminated; NULL when there is no such file. Free it. */
char *harness_read(const char *dir, const char *name);

void harness_write(const char *dir, const char *name, const char *text);

/* How often `needle` is in `text`. */
size_t harness_count(const char *text, const char *needle);

/* Looks until `holds(arg)`, or `ms` have passed: false. */
bool harness_wait(bool (*holds)(void *arg), void *arg, int ms);
bool harness_wait_file(const char *dir, const char *name, int ms);

/* Starts argv[0] (a path), stdin from /dev/null; out_fd and err_fd may be -1: ours. No shell. */
pid_t harness_spawn(char *const argv[], int out_fd, int err_fd);

/* Its exit code, 128 + signal when one killed it. Past `ms` it is killed and the test fails. */
int harness_exit_code(pid_t pid, int ms);

struct harness_output {
    int code; /* as harness_exit_code */
    char *out, *err;
};

/* Runs it to its end and keeps what it wrote; harness_output_done() frees. */
struct harness_output harness_run(char *const argv[], int ms);
void harness_output_done(struct harness_output *o);

#endif
