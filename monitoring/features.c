#include "monitoring/features.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* clang-format off */
const char *const feature_names[FEATURES] = {
    EVENT_NAMES_LIST,
    [FEATURE_CONTEXT_SWITCHES] = "context-switches",
    [FEATURE_CPU_MIGRATIONS] = "cpu-migrations",
    [FEATURE_MINOR_FAULTS] = "minor-faults",
    [FEATURE_MAJOR_FAULTS] = "major-faults",
    [FEATURE_PROC_CPU_TIME] = "proc/cpu-time",
    [FEATURE_PROC_RUN_DELAY] = "proc/run-delay",
    [FEATURE_PROC_TIMESLICES] = "proc/timeslices",
    [FEATURE_PROC_USER_TIME] = "proc/user-time",
    [FEATURE_PROC_SYSTEM_TIME] = "proc/system-time",
    [FEATURE_PROC_MINOR_FAULTS] = "proc/minor-faults",
    [FEATURE_PROC_MAJOR_FAULTS] = "proc/major-faults",
    [FEATURE_PROC_RSS] = "proc/rss",
    [FEATURE_PROC_THREADS] = "proc/threads",
    [FEATURE_PROC_READ_CHARS] = "proc/read-chars",
    [FEATURE_PROC_WRITE_CHARS] = "proc/write-chars",
    [FEATURE_PROC_READ_CALLS] = "proc/read-calls",
    [FEATURE_PROC_WRITE_CALLS] = "proc/write-calls",
    [FEATURE_LOG_ITERATIONS] = "log/iterations",
    [FEATURE_LOG_GC_TIME] = "log/gc-time",
    [FEATURE_JVM_COMPILE_TIME] = "jvm/compile-time",
    [FEATURE_JVM_COLLECT_TIME] = "jvm/collect-time",
    [FEATURE_LOG_RECORDS] = "log/records",
    [FEATURE_CODE_GENERATED] = "code/generated-time",
    [FEATURE_CODE_PAGES] = "code/pages-0-time", "code/pages-1-time", "code/pages-2-time", "code/pages-3-time",
    "code/pages-4-time", "code/pages-5-time", "code/pages-6-time", "code/pages-7-time", "code/pages-8-time",
    "code/pages-9-time", "code/pages-10-time", "code/pages-11-time", "code/pages-12-time", "code/pages-13-time",
    "code/pages-14-time", "code/pages-15-time", "code/pages-16-time", "code/pages-17-time", "code/pages-18-time",
    "code/pages-19-time", "code/pages-20-time", "code/pages-21-time", "code/pages-22-time", "code/pages-23-time",
};
/* clang-format on */

enum feature_kind feature_kind(int feature)
{
    return feature == FEATURE_PROC_RSS || feature == FEATURE_PROC_THREADS ? FEATURE_GAUGE : FEATURE_COUNT;
}

static int find(const char *name, size_t len)
{
    for (int i = 0; i < FEATURES; i++)
        if (strncmp(name, feature_names[i], len) == 0 && !feature_names[i][len])
            return i;
    return -1;
}

int feature_index(const char *name)
{
    return find(name, strlen(name));
}

void feature_list_put(struct buf *to)
{
    for (int i = 0; i < FEATURES; i++) {
        buf_puts(to, i ? "," : "");
        buf_puts(to, feature_names[i]);
    }
}

int feature_list_read(struct feature_list *out, const char *names, struct err *e)
{
    struct feature_list list = { .n = 0 };
    bool seen[FEATURES] = { false };
    for (const char *p = names;; p++) {
        size_t len = strcspn(p, ",");
        int at = find(p, len);
        if (len == 0 || list.n == FEATURE_LIST_MAX)
            return err_set(e, -EINVAL, len ? "a list of more than %d features" : "a list of features without a name",
                           FEATURE_LIST_MAX);
        if (at >= 0 && seen[at])
            return err_set(e, -EINVAL, "a list of features that has '%s' twice", feature_names[at]);
        list.at[list.n++] = (int16_t)at;
        if (at >= 0)
            seen[at] = true;
        p += len;
        if (!*p)
            break;
    }
    *out = list;
    return 0;
}
