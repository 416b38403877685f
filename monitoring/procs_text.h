/* What /proc says of one process or thread, as numbers. Pure; -EINVAL is what is no such text, and `out` is untouched then.
 *
 *     /proc/PID/stat             PID (COMM) S PPID … : the fields are counted from the last ')', as COMM is the process's own choice
 *     /proc/PID/task/TID/schedstat   RUN_NS DELAY_NS TIMESLICES
 *     /proc/PID/io               "rchar: N" and so on, one to a line, in any order; other names are left alone */
#ifndef MONITORING_PROCS_TEXT_H
#define MONITORING_PROCS_TEXT_H

#include <stdint.h>

struct procs_stat {
    uint64_t minor_faults, major_faults, user_ticks, system_ticks; /* of all threads, ended ones included */
    uint64_t threads, start_ticks, rss_pages;
};

struct procs_schedstat {
    uint64_t run_ns, delay_ns, slices;
};

struct procs_io {
    uint64_t read_chars, write_chars, read_calls, write_calls;
};

int procs_text_stat(struct procs_stat *out, const char *text);
int procs_text_schedstat(struct procs_schedstat *out, const char *text);
int procs_text_io(struct procs_io *out, const char *text);

#endif
