/* `pipetune-node exec`: starts one attempt of a trial, watches it to its end, and says how it ended. It needs its parent
 * only until the go byte; from there on the driver may die, come back, and read what is in the folder.
 *
 *   exec --dir DIR --attempt N --launch TAG [--control FD] [--cpus LIST] [--folder DIR]
 *        [--memory BYTES] [--log-cap BYTES]
 *        [--keep TEXT]… [--step TEXT]… [--mark TEXT --runs DIR | --ids DIR] [--tell SOCKET --answer LINE] [--gang N] [--grace SECONDS] -- ARGC ARG×ARGC [ARGC ARG×ARGC …]
 *
 * Each counted list is a step; they run one after the other, up to the first that does not exit 0.
 *
 * Without --control the steps begin at once, and `busy` or `error` stand on stderr. It is one end of a socketpair: on it the launcher says one line, and waits for one byte after the last of these:
 *
 *   busy                                      someone holds DIR/lock            exit 75
 *   error TEXT                                nothing was started               exit 1
 *   ready BOOT_ID PID START_TICKS HEARD_SIZE [port=N] [WHY]
 *                                             'g' starts the steps; any other byte, end of file or TERM:
 *                                             DIR/pid is removed, nothing was started, exit 0. WHY: --memory was
 *                                             given, and the steps will have no cgroup with that limit (cgroup.h).
 *                                             port: --gang was given, one that was free and is its own as long as it lives; then
 *                                             behind the 'g' come the ports of all N, "4001,4002", and a newline: {port.K} in the steps' words
 *                                             and variables becomes the K-th, from 0 (port.h)
 *
 * DIR/lock  flock'ed for the launcher's whole life, and the step's (its fd 3): free = nothing of the attempt runs
 * DIR/pid   BOOT_ID PID START_TICKS ATTEMPT TAG\n          from before `ready` to after `exit` is written
 * DIR/log   what the steps wrote to stdout and stderr, appended; our own lines begin with "pipetune: ". With DIR/log.1, what
 *           came before, it takes --log-cap bytes (log_files.h)
 * DIR/heard those of its lines that the driver reads, by --keep and --step (log.h), appended. RUNS/N/log, log.1 and heard are
 *           the same for the run of trial N, by the lines that begin with the text of --mark; with --ids it is IDS/ID, of runs
 *           whose name begins with TAG and a '-'
 * SOCKET    "-": where this machine has such sockets (base/socket_path.h). It is where the programs of the steps, which find it in PIPETUNE_TELL, tell of themselves (teller.h); LINE is what a hello is
 *           answered. There from before `ready` until `exit` is written
 * DIR/exit  attempt=N launch=TAG kind=exited|signalled|not-started code=N log_end=BYTES cpu_s=X max_rss_kb=N leftovers=N
 *           oom_kills=N [memory_kills=N] boot_ms=N\n, all on one line
 *           code is as a shell has it: 128 + signal when signalled, 127 when the program could not be started, and 143
 *           (not-started) when TERM came before a step. log_end is the size of DIR/log. cpu_s and max_rss_kb are over all
 *           processes that ended below the launcher. oom_kills: processes of this machine, whosoever, that the kernel killed
 *           meanwhile because memory was full. memory_kills: those of the steps' own, since they would have
 *           taken more than --memory; not there where they have no cgroup that counts it. boot_ms: when, since the machine was started.
 *
 * SIGUSR1 to the launcher tells those programs that the trial is to end at the next epoch's end.
 * SIGTERM to the launcher is passed on to everything below it; what is left after the grace gets SIGKILL. Whoever sends it
 * waits longer than the grace before killing the launcher itself: that loses `exit`. */
#ifndef NODE_EXEC_H
#define NODE_EXEC_H

extern const char exec_usage[];

/* argv[0] is "exec". The exit code: 0 done (or told not to go), 1 an error, 2 wrong usage, 75 busy. */
int exec_run(int argc, char **argv);

#endif
