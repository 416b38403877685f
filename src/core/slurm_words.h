/* The words between us and Slurm's own commands: what sbatch is told, what squeue, scontrol, sacct and sinfo answer, by their plain forms, which
 * are the same in all versions. Their JSON is not: that of squeue tells, up to 22.05 at least, of every job of the cluster, whichever were asked for, some
 * 4 KB each. Pure. */
#ifndef CORE_SLURM_WORDS_H
#define CORE_SLURM_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"

enum slurm_state {
    SLURM_UNKNOWN, /* a word that we do not know: it goes on */
    SLURM_PENDING,
    SLURM_RUNNING,
    SLURM_ENDING, /* it has ended, and is being tidied up: how comes later */
    SLURM_COMPLETED,
    SLURM_FAILED,
    SLURM_CANCELLED,
    SLURM_TIMEOUT,
    SLURM_MEMORY, /* it took more than it was given */
    SLURM_LOST,   /* its node failed, or it had to make room for others */
};
enum slurm_state slurm_state_find(const char *word); /* "RUNNING"; what stands behind a blank or '+' does not count */
bool slurm_state_is_over(enum slurm_state s);

/* A job as a line of squeue has it. */
struct slurm_job {
    uint64_t id;
    enum slurm_state state;
    int64_t run_s;    /* for how long it has run, or ran; 0: not at all */
    char reason[96];  /* why it waits, or ended: Slurm's own word; "" */
    char limit[32];   /* of its time, as Slurm writes it */
    char node[64];    /* "" */
    char comment[96]; /* its launch's tag */
};
#define SLURM_JOB_FORMAT "%i|%T|%M|%l|%N|%k|%r"

/* Calls `each` for every line of `text` that is a job; other lines (warnings) are passed over. */
void slurm_words_jobs(const char *text, size_t len, void (*each)(void *ctx, const struct slurm_job *j), void *ctx);

/* "123", "123;cluster": what sbatch --parsable answers, perhaps after warnings. False: no job was made. */
bool slurm_words_id(const char *text, uint64_t *out);

/* A time as squeue writes it: "1-02:03:04", "02:03". False: it is none. */
bool slurm_words_seconds(const char *text, int64_t *out);

/* How a job ended, by `scontrol show job --oneliner`, or by `sacct --parsable2 --format=State,ExitCode`. False: it does not say. */
struct slurm_end {
    enum slurm_state state;
    int code, signal;
};
bool slurm_words_shown(const char *text, struct slurm_end *out);
bool slurm_words_accounted(const char *text, struct slurm_end *out);

/* What the nodes of a partition ("": the default one) have, by lines of sinfo; false: none is told of. */
struct slurm_room {
    int cpus;         /* of the largest node */
    double memory_gb; /* of the one that has most */
};
#define SLURM_NODE_FORMAT "%P|%c|%m"
bool slurm_words_room(const char *text, const char *partition, struct slurm_room *out);

/* How many jobs of so many CPUs and so much memory fit at once into what the nodes of a partition have free now, by lines of sinfo; false: none is told
 * of. */
#define SLURM_FREE_FORMAT "Partition:128,CPUsState:48,Memory:24,AllocMem:24"
bool slurm_words_fits(const char *text, const char *partition, int cpus, double memory_gb, int *out);

/* What a refusal, or the reason of a job that waits, means. */
enum slurm_fault {
    SLURM_PASSES, /* it may be otherwise soon */
    SLURM_NEVER,  /* this job cannot run as it is asked for: its cores or memory are too many */
    SLURM_NO_JOB, /* no job of this config can */
};
enum slurm_fault slurm_fault_of(const char *said); /* by what sbatch says */
enum slurm_fault slurm_reason_of(const char *reason);

/* --- what it is told --- */

/* What a job is given. */
struct slurm_ask {
    const char *name, *tag, *script;
    const char *partition, *account, *time; /* NULL: as Slurm has it */
    const struct strv *options;             /* before ours, which win */
    int cpus;                               /* 0: as Slurm has it */
    double memory_gb;                       /* 0: the same */
};
void slurm_words_sbatch(const struct slurm_ask *a, struct strv *argv); /* held, until it is released */

/* -EINVAL: not an option of sbatch that may stand in `options`. */
int slurm_words_option(const char *option, struct err *e);

/* How the job's script ends where it cannot begin. */
enum { SLURM_EXIT_UNSEEN = 93, SLURM_EXIT_BUSY = 75, SLURM_EXIT_NO_NODE_MIN = 126, SLURM_EXIT_NO_NODE_MAX = 127 };

/* The script: the launcher's words, run in `cwd` with `env`; `path` is the script's own, by which it sees that the file system is shared. */
void slurm_words_script(const char *path, const char *tag, const char *cwd, const char *said, const struct strv *env,
                        const struct strv *argv, struct buf *out);

#endif
