#include "monitoring/procs_text.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

/* Takes the whole number at *p, which a blank or the end follows, and the blanks. */
static bool take_number(const char **p, uint64_t *out)
{
    if (**p < '0' || **p > '9')
        return false; /* strtoull() would take a sign, too */
    char *end = NULL;
    errno = 0;
    *out = strtoull(*p, &end, 10);
    if (errno == ERANGE || (*end && *end != ' ' && *end != '\n'))
        return false;
    *p = end + strspn(end, " \n");
    return true;
}

/* Any field, and the blank behind it. */
static bool skip_field(const char **p)
{
    size_t len = strcspn(*p, " \n");
    *p += len;
    *p += strspn(*p, " ");
    return len > 0;
}

/* Fields as proc(5) numbers them, ascending; the one behind the ')' is 3. */
static const struct stat_field {
    int number;
    size_t at;
} stat_fields[] = {
    { 10, offsetof(struct procs_stat, minor_faults) }, { 12, offsetof(struct procs_stat, major_faults) },
    { 14, offsetof(struct procs_stat, user_ticks) },   { 15, offsetof(struct procs_stat, system_ticks) },
    { 20, offsetof(struct procs_stat, threads) },      { 22, offsetof(struct procs_stat, start_ticks) },
    { 24, offsetof(struct procs_stat, rss_pages) },
};

int procs_text_stat(struct procs_stat *out, const char *text)
{
    const char *p = strrchr(text, ')');
    struct procs_stat got;
    int number = 3;
    if (!p || p[1] != ' ')
        return -EINVAL;
    p += 2;
    for (size_t i = 0; i < ARRAY_LEN(stat_fields); i++) {
        for (; number < stat_fields[i].number; number++)
            if (!skip_field(&p))
                return -EINVAL;
        if (!take_number(&p, (uint64_t *)(void *)((char *)&got + stat_fields[i].at)))
            return -EINVAL;
        number++;
    }
    *out = got;
    return 0;
}

int procs_text_schedstat(struct procs_schedstat *out, const char *text)
{
    struct procs_schedstat got;
    if (!take_number(&text, &got.run_ns) || !take_number(&text, &got.delay_ns) || !take_number(&text, &got.slices))
        return -EINVAL;
    *out = got;
    return 0;
}

static const struct io_row {
    const char *name;
    size_t at;
} io_rows[] = {
    { "rchar: ", offsetof(struct procs_io, read_chars) },
    { "wchar: ", offsetof(struct procs_io, write_chars) },
    { "syscr: ", offsetof(struct procs_io, read_calls) },
    { "syscw: ", offsetof(struct procs_io, write_calls) },
};

/* The row that the line is, as a bit; 0: none of ours, -1: it has no number. */
static int take_io_line(struct procs_io *out, const char *line)
{
    for (size_t i = 0; i < ARRAY_LEN(io_rows); i++) {
        size_t len = strlen(io_rows[i].name);
        if (strncmp(line, io_rows[i].name, len) != 0)
            continue;
        const char *number = line + len;
        return take_number(&number, (uint64_t *)(void *)((char *)out + io_rows[i].at)) ? 1 << i : -1;
    }
    return 0;
}

int procs_text_io(struct procs_io *out, const char *text)
{
    struct procs_io got;
    int have = 0;
    while (*text) {
        int bit = take_io_line(&got, text);
        if (bit < 0)
            return -EINVAL;
        have |= bit;
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    if (have != (1 << ARRAY_LEN(io_rows)) - 1)
        return -EINVAL;
    *out = got;
    return 0;
}
