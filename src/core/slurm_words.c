#include "core/slurm_words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "base/suggest.h"

/* --- states and reasons --------------------------------------------------------------------------------------------------- */

static const struct state_row {
    const char *word;
    enum slurm_state state;
} states[] = {
    { "BOOT_FAIL", SLURM_LOST },       { "CANCELLED", SLURM_CANCELLED },  { "COMPLETED", SLURM_COMPLETED },
    { "COMPLETING", SLURM_ENDING },    { "CONFIGURING", SLURM_PENDING },  { "DEADLINE", SLURM_TIMEOUT },
    { "FAILED", SLURM_FAILED },        { "LAUNCH_FAILED", SLURM_LOST },   { "NODE_FAIL", SLURM_LOST },
    { "OUT_OF_MEMORY", SLURM_MEMORY }, { "PENDING", SLURM_PENDING },      { "PREEMPTED", SLURM_LOST },
    { "REQUEUED", SLURM_PENDING },     { "REQUEUE_FED", SLURM_PENDING },  { "REQUEUE_HOLD", SLURM_PENDING },
    { "RESIZING", SLURM_RUNNING },     { "REVOKED", SLURM_LOST },         { "RUNNING", SLURM_RUNNING },
    { "SIGNALING", SLURM_RUNNING },    { "SPECIAL_EXIT", SLURM_PENDING }, { "STAGE_OUT", SLURM_ENDING },
    { "STOPPED", SLURM_RUNNING },      { "SUSPENDED", SLURM_RUNNING },    { "TIMEOUT", SLURM_TIMEOUT },
};

enum slurm_state slurm_state_find(const char *word)
{
    size_t len = strcspn(word, " +\n|");
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        if (strlen(states[i].word) == len && strncmp(states[i].word, word, len) == 0)
            return states[i].state;
    return SLURM_UNKNOWN;
}

bool slurm_state_is_over(enum slurm_state s)
{
    return s >= SLURM_COMPLETED;
}

/* Texts that are looked for; the first that is found counts. */
struct fault_row {
    const char *text;
    enum slurm_fault fault;
};

/* Reasons of limits name what they limit; of those that are not here nobody need do anything. */
static const struct fault_row reasons[] = {
    { "BadConstraints", SLURM_NEVER },
    { "PartitionConfig", SLURM_NEVER },
    { "CpuPerJob", SLURM_NEVER },
    { "MaxCpuPerNode", SLURM_NEVER },
    { "MaxMemPerJob", SLURM_NEVER },
    { "MaxMemoryPerJob", SLURM_NEVER },
    { "MaxMemPerNode", SLURM_NEVER },
    { "MaxMemoryPerNode", SLURM_NEVER },
    { "MinCpu", SLURM_NEVER },
    { "MinMem", SLURM_NEVER },
    { "MaxWallDuration", SLURM_NO_JOB },
    { "MaxNodePerJob", SLURM_NO_JOB },
    { "PartitionNodeLimit", SLURM_NO_JOB },
    { "PartitionTimeLimit", SLURM_NO_JOB },
    { "InvalidAccount", SLURM_NO_JOB },
    { "InvalidQOS", SLURM_NO_JOB },
    { "AccountNotAllowed", SLURM_NO_JOB },
    { "QOSNotAllowed", SLURM_NO_JOB },
};

/* What sbatch says last is what counts; what is not here is for the user to mend. */
static const struct fault_row refusals[] = {
    { "Requested node configuration is not available", SLURM_NEVER },
    { "Memory specification can not be satisfied", SLURM_NEVER },
    { "More processors requested than permitted", SLURM_NEVER },
    { "CPU count per node can not be satisfied", SLURM_NEVER },
    { "Unable to contact slurm controller", SLURM_PASSES },
    { "Socket timed out", SLURM_PASSES },
    { "Connection refused", SLURM_PASSES },
    { "Zero Bytes were transmitted", SLURM_PASSES },
    { "Transport endpoint", SLURM_PASSES },
    { "temporarily unable", SLURM_PASSES },
    { "Resource temporarily unavailable", SLURM_PASSES },
    { "job submit limit", SLURM_PASSES },
    { "in standby mode", SLURM_PASSES },
    { "munge", SLURM_PASSES },
    { "MUNGE", SLURM_PASSES },
};

static enum slurm_fault find_fault(const struct fault_row *rows, size_t n, const char *said, enum slurm_fault other)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(said, rows[i].text))
            return rows[i].fault;
    return other;
}

enum slurm_fault slurm_fault_of(const char *said)
{
    return find_fault(refusals, ARRAY_LEN(refusals), said, SLURM_NO_JOB);
}

enum slurm_fault slurm_reason_of(const char *reason)
{
    return find_fault(reasons, ARRAY_LEN(reasons), reason, SLURM_PASSES);
}

/* --- numbers -------------------------------------------------------------------------------------------------------------- */

/* Digits up to what is not one, of which there is at least one. NULL: no number, or too large a one. */
static const char *take_number(const char *at, uint64_t max, uint64_t *out)
{
    uint64_t n = 0;
    const char *from = at;
    for (; *at >= '0' && *at <= '9'; at++) {
        n = n * 10 + (uint64_t)(*at - '0');
        if (n > max)
            return NULL;
    }
    *out = n;
    return at > from ? at : NULL;
}

bool slurm_words_seconds(const char *text, int64_t *out)
{
    enum { PART_MAX = 100000000 };
    uint64_t part[4] = { 0 }, days = 0;
    const char *at = text, *dash = strchr(text, '-');
    size_t n = 0;
    if (dash && !(at = take_number(text, PART_MAX, &days)))
        return false;
    if (dash && at++ != dash)
        return false;
    do {
        at = n < 3 ? take_number(at + (n > 0), PART_MAX, &part[n]) : NULL;
        n++;
    } while (at && *at == ':');
    if (!at || *at || n < 2)
        return false;
    uint64_t s = n == 3 ? (part[0] * 60 + part[1]) * 60 + part[2] : part[0] * 60 + part[1];
    *out = (int64_t)(days * 86400 + s);
    return true;
}

/* --- lines ---------------------------------------------------------------------------------------------------------------- */

/* Puts the next field, which ends with '|' or the line's end, into out[]; what is too long is cut. False: there is none left. */
static bool take_field(const char **at, const char *end, char *out, size_t size)
{
    if (!*at)
        return false;
    const char *bar = memchr(*at, '|', (size_t)(end - *at)), *stop = bar ? bar : end;
    size_t len = (size_t)(stop - *at) < size ? (size_t)(stop - *at) : size - 1;
    memcpy(out, *at, len);
    out[len] = '\0';
    *at = bar ? bar + 1 : NULL;
    return true;
}

/* What is not there is written as "(null)". */
static void forget_null(char *field)
{
    if (strcmp(field, "(null)") == 0 || strcmp(field, "None") == 0)
        field[0] = '\0';
}

static bool read_job(const char *line, const char *end, struct slurm_job *out)
{
    char id[32], state[32], run[32];
    struct slurm_job j = { 0 };
    const char *at = line, *after;
    bool all = take_field(&at, end, id, sizeof id) && take_field(&at, end, state, sizeof state) &&
               take_field(&at, end, run, sizeof run) && take_field(&at, end, j.limit, sizeof j.limit) &&
               take_field(&at, end, j.node, sizeof j.node) && take_field(&at, end, j.comment, sizeof j.comment) &&
               take_field(&at, end, j.reason, sizeof j.reason);
    if (!all || !(after = take_number(id, UINT32_MAX, &j.id)) || *after || j.id == 0)
        return false;
    j.state = slurm_state_find(state);
    if (!slurm_words_seconds(run, &j.run_s))
        j.run_s = 0;
    forget_null(j.node);
    forget_null(j.comment);
    forget_null(j.reason);
    *out = j;
    return true;
}

void slurm_words_jobs(const char *text, size_t len, void (*each)(void *ctx, const struct slurm_job *j), void *ctx)
{
    for (const char *at = text, *end = text + len; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        struct slurm_job j;
        stop = stop ? stop : end;
        if (read_job(at, stop, &j))
            each(ctx, &j);
        at = stop + 1;
    }
}

bool slurm_words_id(const char *text, uint64_t *out)
{
    bool found = false;
    for (const char *at = text; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
        uint64_t id;
        const char *after = take_number(at, UINT32_MAX, &id);
        if (!after || id == 0 || !strchr(";\n", *after)) /* the terminating null counts as a line's end */
            continue;
        *out = id;
        found = true;
    }
    return found;
}

/* "0:9": exit code and signal. */
static bool read_exit_code(const char *text, struct slurm_end *out)
{
    uint64_t code, signal;
    const char *at = take_number(text, 255, &code);
    if (!at || *at != ':' || !take_number(at + 1, 255, &signal))
        return false;
    out->code = (int)code;
    out->signal = (int)signal;
    return true;
}

bool slurm_words_shown(const char *text, struct slurm_end *out)
{
    const char *state = strstr(text, " JobState="), *code = strstr(text, " ExitCode=");
    struct slurm_end end = { 0 };
    if (!state || !code || !read_exit_code(code + strlen(" ExitCode="), &end))
        return false;
    end.state = slurm_state_find(state + strlen(" JobState="));
    *out = end;
    return true;
}

bool slurm_words_accounted(const char *text, struct slurm_end *out)
{
    for (const char *at = text; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
        const char *bar = strchr(at, '|');
        struct slurm_end end = { .state = slurm_state_find(at) };
        if (end.state == SLURM_UNKNOWN || !bar || !read_exit_code(bar + 1, &end))
            continue;
        *out = end;
        return true;
    }
    return false;
}

/* Is it the partition that is meant? The default one is marked. */
static bool is_meant(const char *name, const char *partition)
{
    size_t len = strlen(name);
    bool marked = len > 0 && name[len - 1] == '*';
    if (!*partition)
        return marked;
    return strlen(partition) == len - marked && strncmp(name, partition, len - marked) == 0;
}

bool slurm_words_room(const char *text, const char *partition, struct slurm_room *out)
{
    enum { CPUS_MAX = 65536 };
    const double gb = 1024; /* MB as Slurm counts them */
    struct slurm_room r = { 0 };
    for (const char *at = text, *next; at && *at; at = next) {
        const char *end = at + strcspn(at, "\n");
        char name[128], cpus[32], memory[32];
        uint64_t c, mb;
        next = *end ? end + 1 : NULL;
        if (!take_field(&at, end, name, sizeof name) || !take_field(&at, end, cpus, sizeof cpus) ||
            !take_field(&at, end, memory, sizeof memory) || !take_number(cpus, CPUS_MAX, &c) ||
            !take_number(memory, INT64_MAX / 16, &mb) || !is_meant(name, partition))
            continue;
        r.cpus = (int)c > r.cpus ? (int)c : r.cpus;
        r.memory_gb = fmax(r.memory_gb, (double)mb / gb);
    }
    if (r.cpus == 0)
        return false;
    *out = r;
    return true;
}

/* The next word of a line. False: there is none left, or it is too long. */
static bool take_word(const char **at, char *out, size_t size)
{
    *at += strspn(*at, " \t");
    size_t len = strcspn(*at, " \t\n");
    if (len == 0 || len >= size)
        return false;
    memcpy(out, *at, len);
    out[len] = '\0';
    *at += len;
    return true;
}

/* "main* 1/3/0/4 4000 1000": of CPUs how many are allocated, idle, neither (it is down or drained), all; MB in all, and allocated. */
static bool read_free(const char *at, const char *partition, uint64_t *out_cpus, uint64_t *out_mb)
{
    enum { CPUS_MAX = 65536 };
    char name[160], cpus[64], memory[32], taken[32];
    uint64_t allocated, all, gone;
    const char *idle;
    if (!take_word(&at, name, sizeof name) || !take_word(&at, cpus, sizeof cpus) ||
        !take_word(&at, memory, sizeof memory) || !take_word(&at, taken, sizeof taken) || !is_meant(name, partition))
        return false;
    if (!(idle = take_number(cpus, CPUS_MAX, &allocated)) || *idle++ != '/' || !take_number(idle, CPUS_MAX, out_cpus) ||
        !take_number(memory, INT64_MAX / 16, &all) || !take_number(taken, INT64_MAX / 16, &gone))
        return false;
    *out_mb = all > gone ? all - gone : 0;
    return true;
}

bool slurm_words_fits(const char *text, const char *partition, int cpus, double memory_gb, int *out)
{
    enum { FITS_MAX = 65536 };
    const double gb = 1024;
    double n = 0;
    bool any = false;
    for (const char *at = text; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
        uint64_t idle, mb;
        if (!read_free(at, partition, &idle, &mb))
            continue;
        double by_cpus = floor((double)idle / fmax(cpus, 1));
        n += memory_gb > 0 ? fmin(by_cpus, floor((double)mb / (memory_gb * gb))) : by_cpus;
        any = true;
    }
    if (any)
        *out = (int)fmin(n, FITS_MAX);
    return any;
}

/* --- what it is told -------------------------------------------------------------------------------------------------------- */

static void add_text(struct strv *argv, const char *option, const char *value)
{
    if (value && *value)
        strv_addf(argv, "--%s=%s", option, value);
}

void slurm_words_sbatch(const struct slurm_ask *a, struct strv *argv)
{
    static const char *const always[] = { "--parsable",       "--hold",     "--no-requeue",
                                          "--nodes=1",        "--ntasks=1", "--output=/dev/null",
                                          "--error=/dev/null" };
    strv_add(argv, "sbatch");
    for (size_t i = 0; a->options && i < a->options->n; i++)
        strv_add(argv, a->options->v[i]);
    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        strv_add(argv, always[i]);
    add_text(argv, "job-name", a->name);
    add_text(argv, "comment", a->tag);
    add_text(argv, "partition", a->partition);
    add_text(argv, "account", a->account);
    add_text(argv, "time", a->time);
    if (a->cpus > 0)
        strv_addf(argv, "--cpus-per-task=%d", a->cpus);
    if (a->memory_gb > 0)
        strv_addf(argv, "--mem=%.0fM", ceil(a->memory_gb * 1024));
    strv_add(argv, "--");
    strv_add(argv, a->script);
}

int slurm_words_option(const char *option, struct err *e)
{
    static const struct {
        const char *name, *why;
    } ours[] = {
        { "account", "is places.slurm.account" },
        { "array", "would make several jobs of one trial" },
        { "comment", "is how its jobs are found again" },
        { "job-name", "is how its jobs are found again" },
        { "ntasks", "is 1" },
        { "partition", "is places.slurm.partition" },
        { "time", "is places.slurm.time" },
        { "wait", "would hold the driver up" },
        { "wrap", "is the trial's command" },
    };
    size_t len = strncmp(option, "--", 2) == 0 ? strcspn(option + 2, "=") : 0;
    if (len == 0)
        return err_set(e, -EINVAL, "'%s' is no long option of sbatch, such as \"--qos=long\"", option);
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (strlen(ours[i].name) == len && strncmp(option + 2, ours[i].name, len) == 0)
            return err_set(e, -EINVAL, "'--%s' cannot be given: it %s", ours[i].name, ours[i].why);
    return 0;
}

/* One word for sh, whatever is in it. */
static void put_word(struct buf *out, const char *text)
{
    buf_putc(out, '\'');
    for (; *text; text++)
        if (*text == '\'')
            buf_puts(out, "'\\''");
        else
            buf_putc(out, *text);
    buf_putc(out, '\'');
}

static void put_line(struct buf *out, const char *before, const char *word, const char *behind)
{
    buf_puts(out, before);
    put_word(out, word);
    buf_puts(out, behind);
}

void slurm_words_script(const char *path, const char *tag, const char *cwd, const char *said, const struct strv *env,
                        const struct strv *argv, struct buf *out)
{
    buf_puts(out, "#!/bin/sh\n# What Slurm runs for this attempt; the next one writes it anew.\n");
    put_line(out, "grep -qF -e ", tag, " -- ");
    put_line(out, "", path, "");
    buf_printf(out, " 2>/dev/null || exit %d\n", SLURM_EXIT_UNSEEN);
    put_line(out, "cd ", cwd, "");
    buf_printf(out, " || exit %d\n", SLURM_EXIT_UNSEEN);
    put_line(out, "exec >>", said, " 2>&1 </dev/null\n");
    for (size_t i = 0; i < env->n; i++)
        if (strchr(env->v[i], '='))
            put_line(out, "export ", env->v[i], "\n");
    buf_puts(out, "exec");
    for (size_t i = 0; i < argv->n; i++)
        put_line(out, " ", argv->v[i], "");
    buf_putc(out, '\n');
}
