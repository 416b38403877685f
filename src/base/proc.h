/* Facts about processes, from /proc. A pid is only a number that is used again: (pid, start time, boot id) names a process. */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_BOOT_ID_SIZE 37 /* 36 characters and the NUL */

/* When it started, in clock ticks since boot. -ESRCH: no such process. A zombie still has one. */
int proc_start_ticks(pid_t pid, uint64_t *out);

struct proc_facts {
    pid_t parent;
    uint64_t start_ticks;
    bool alive; /* a zombie is not */
};

/* -ESRCH: no such process; -errno. */
int proc_facts(pid_t pid, struct proc_facts *out);

enum { PROC_NAME_SIZE = 16 };

/* Its program's name as the kernel has it (15 characters at most), and whose it is. -ESRCH, -errno. */
int proc_who(pid_t pid, char program[PROC_NAME_SIZE], uid_t *uid);

/* The id of this boot. 0 or -errno. */
int proc_boot_id(char out[PROC_BOOT_ID_SIZE]);

/* Does this very process still run? A zombie does not, nor does one of another boot. */
bool proc_is(pid_t pid, uint64_t start_ticks, const char *boot_id);

/* The lists: live processes only (no zombies), at one pass over /proc, in no order; a process that forks meanwhile may be
 * missed, so whoever must be sure looks until a pass finds none. *out is for the caller to free, NULL when *n is 0.
 * 0, -ENOMEM, or what opening /proc said. */
int proc_session_pids(pid_t sid, pid_t **out, size_t *n);
int proc_descendants(pid_t ancestor, pid_t **out, size_t *n); /* children, their children, …; not `ancestor` */

/* Processes of our uid that carry the launch tag: `-Dpipetune.launch=TAG` as an argument or inside one (a Java option
 * string), or PIPETUNE_LAUNCH=TAG in the environment they were started with. The caller never counts; the launcher of that
 * tag does, since the command lines of its steps are arguments of its own. */
int proc_tagged(const char *tag, pid_t **out, size_t *n);

/* Is it of our uid, and do these two stand in its command line, one behind the other? */
bool proc_has_words(pid_t pid, const char *first, const char *second);

/* The two texts behind proc_tagged: NUL-separated, as /proc/PID/cmdline and /proc/PID/environ give them. Pure. */
bool proc_args_tagged(const char *args, size_t len, const char *tag);
bool proc_env_tagged(const char *env, size_t len, const char *tag);

/* How many processes the kernel of this machine has killed since boot because memory was full; 0 where it does not count. And the text
 * behind it, /proc/vmstat. */
uint64_t proc_oom_kills(void);
uint64_t proc_oom_kills_of(const char *vmstat);

/* Sends `sig` to every live process of the session but the caller. How many got it, or -errno; -EINVAL: sid < 1. */
int proc_kill_session(pid_t sid, int sig);

/* What a process has used, its threads together. -ESRCH: no such process; -errno. And the two texts behind it: -EINVAL. */
struct proc_usage {
    double cpu_s, resident_bytes;
};
int proc_usage(pid_t pid, struct proc_usage *out);
int proc_usage_of(const char *stat, const char *statm, long ticks_per_s, long page_bytes, struct proc_usage *out);

#endif
