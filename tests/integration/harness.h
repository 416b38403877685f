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

/* CPUs are leased among the drivers of this test's process alone. */
void harness_own_leases(void);

/* --- a world: a folder with a Spark, a Java, jars and data, none of them real. While it is open it is the working directory, and
 * every variable that our programs and their fakes read is its own. --- */

struct world {
    char *dir, *program; /* the folder; build/…/pipetune */
    int tree;            /* the folder where the test was started */
};

#define WORLD_JAVA(version) "#!/bin/sh\necho 'openjdk version \"" version "\" 2025-04-15' >&2\n"
#define WORLD_BIGDL                                                                                                    \
    "{ \"master\": \"local[*]\", \"driver_memory\": \"2g\",\n  \"jars\": \"$BIGDL_HOME/bigdl-core.jar\",\n"            \
    "  \"class\": \"com.intel.analytics.bigdl.dllib.models.lenet.Train\",\n"                                           \
    "  \"conf\": \"$BIGDL_HOME/bigdl-dllib.jar\",\n  \"extras\": { \"folder\": \"$PIPETUNE_DATA/mnist\" },\n"
#define WORLD_ARGUMENTS                                                                                                \
    "  \"arguments\": { \"batch_size\": [\"-b\", \"{}\"], \"learning_rate\": [\"-r\", \"{}\"],\n"                      \
    "    \"epochs\": [\"-e\", \"{}\"], \"checkpoint\": [\"--checkpoint\", \"{}\", \"--overWrite\"],\n"                 \
    "    \"resume\": [\"--model\", \"{model}\", \"--state\", \"{state}\"] } }\n"
#define WORLD_HYPER "\"hyperParameters\": { \"batch_size\": [64, 128], \"learning_rate\": [0.1] }"

/* cmocka's set-up and tear-down: *state is the struct world. Closing kills what was started from it and is left. */
int world_open(void **state);
int world_close(void **state);

void world_point_at(const struct world *w, const char *variable,
                    const char *name); /* the variable names a file of it */
void world_dir(const struct world *w, const char *name);
void world_script(const struct world *w, const char *name, const char *text);

/* The processes that were started from this world; each gets the signal. */
size_t world_processes(const struct world *w, int sig);
size_t world_trials(const struct world *w); /* launchers, and what they run: helpers may end a moment later */

/* At most so many of those whose PIPETUNE_WORLD is `dir` and whose arguments hold the word. */
size_t world_find(const char *dir, const char *word, pid_t *out, size_t most);

/* pipetune with these words, which end with NULL: to its end; or started, out_fd -1: its output is thrown away. */
struct harness_output world_run(const struct world *w, const char *const *words);
pid_t world_start(const struct world *w, int out_fd, const char *const *words);
#define RUN(w, ...) world_run(w, (const char *const[]){ __VA_ARGS__, NULL })
#define START(w, out_fd, ...) world_start(w, out_fd, (const char *const[]){ __VA_ARGS__, NULL })

/* A driver that leaves its trials running: started, and told to as soon as one runs. */
void world_leave(const struct world *w, const char *const *words);
#define LEAVE(w, ...) world_leave(w, (const char *const[]){ __VA_ARGS__, NULL })

/* Does any attempt run, as the store says? Where there is no store yet, none does. */
bool harness_trial_runs(void *store);

/* The rows of a query, columns by '|', rows by ' '. Free it. */
char *harness_ask(const char *store, const char *sql);
void harness_expect_rows(const char *name, const char *store, const char *sql, const char *want);

/* --- a lab: what many studies over a fake Spark share, when each has a folder of its own --- */

/* In DIR: spark/bin/spark-submit, java/bin/java, a Python application and its BigDL file, bigdl.json; and the variables that point
 * at them. `more` goes into the BigDL file: "" or keys, each with its comma. */
void harness_lab(const char *dir, const char *more);
void harness_set_path(const char *variable, const char *dir, const char *file);

#endif
