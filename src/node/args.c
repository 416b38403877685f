#include "node/args.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "node/port.h"

enum { TAG_MAX = 64 };

enum option_kind { OPTION_TEXT, OPTION_NUMBER, OPTION_NEEDLE };

static const struct option_row {
    const char *name;
    enum option_kind kind;
    bool required;
    size_t field; /* offset in struct args */
    uint64_t min, max;
} option_rows[] = {
    { "--answer", OPTION_TEXT, false, offsetof(struct args, answer), 0, 0 },
    { "--attempt", OPTION_NUMBER, true, offsetof(struct args, attempt), 1, INT32_MAX },
    { "--control", OPTION_NUMBER, false, offsetof(struct args, control), ARGS_FD_FIRST, 1 << 20 },
    { "--cpus", OPTION_TEXT, false, offsetof(struct args, cpus), 0, 0 },
    { "--dir", OPTION_TEXT, true, offsetof(struct args, dir), 0, 0 },
    { "--folder", OPTION_TEXT, false, offsetof(struct args, folder), 0, 0 },
    { "--gang", OPTION_NUMBER, false, offsetof(struct args, gang), 1, PORTS_MAX },
    { "--grace", OPTION_NUMBER, false, offsetof(struct args, grace_s), 0, 86400 },
    { "--ids", OPTION_TEXT, false, offsetof(struct args, ids), 0, 0 },
    { "--keep", OPTION_NEEDLE, false, offsetof(struct args, keep), 0, 0 },
    { "--launch", OPTION_TEXT, true, offsetof(struct args, launch), 0, 0 },
    { "--log-cap", OPTION_NUMBER, false, offsetof(struct args, log_cap), 0, INT64_MAX / 4 },
    { "--mark", OPTION_TEXT, false, offsetof(struct args, mark), 0, 0 },
    { "--memory", OPTION_NUMBER, false, offsetof(struct args, memory), 1, INT64_MAX },
    { "--runs", OPTION_TEXT, false, offsetof(struct args, runs), 0, 0 },
    { "--step", OPTION_NEEDLE, false, offsetof(struct args, step), 0, 0 },
    { "--tell", OPTION_TEXT, false, offsetof(struct args, tell), 0, 0 },
};

void args_done(struct args *o)
{
    for (size_t i = 0; i < o->n_steps; i++)
        free(o->steps[i].argv);
    free(o->steps);
}

/* Digits only: strtoull alone would take signs, blanks and "0x". */
static bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 19 || text[digits] != '\0')
        return false;
    uint64_t value = strtoull(text, NULL, 10);
    if (value < min || value > max)
        return false;
    *out = value;
    return true;
}

static int set_option(struct args *o, const struct option_row *row, const char *value, struct err *e)
{
    void *field = (char *)o + row->field;
    switch (row->kind) {
    case OPTION_TEXT: memcpy(field, &value, sizeof value); return 0;
    case OPTION_NEEDLE:
        return needles_add(field, value) ? 0 : err_set(e, -EINVAL, "'%s %s': empty, or one too many", row->name, value);
    case OPTION_NUMBER: break;
    }
    uint64_t number = 0;
    if (!parse_number(value, row->min, row->max, &number))
        return err_set(e, -EINVAL, "'%s %s': not a number from %" PRIu64 " to %" PRIu64, row->name, value, row->min,
                       row->max);
    memcpy(field, &number, sizeof number);
    return 0;
}

static const struct option_row *find_option(const char *name, size_t *index)
{
    for (size_t i = 0; i < ARRAY_LEN(option_rows); i++) {
        *index = i;
        if (strcmp(name, option_rows[i].name) == 0)
            return &option_rows[i];
    }
    return NULL;
}

/* Reads up to the "--"; its index, or -EINVAL. */
static int parse_options(struct args *o, int argc, char **argv, struct err *e)
{
    bool seen[ARRAY_LEN(option_rows)] = { false };
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i += 2) {
        size_t index = 0;
        const struct option_row *row = find_option(argv[i], &index);
        if (!row)
            return err_set(e, -EINVAL, "unknown option '%s'", argv[i]);
        if (i + 1 == argc)
            return err_set(e, -EINVAL, "'%s' needs a value", argv[i]);
        int rc = set_option(o, row, argv[i + 1], e);
        if (rc < 0)
            return rc;
        seen[index] = true;
    }
    for (size_t k = 0; k < ARRAY_LEN(option_rows); k++)
        if (option_rows[k].required && !seen[k])
            return err_set(e, -EINVAL, "'%s' is missing", option_rows[k].name);
    return i < argc ? i : err_set(e, -EINVAL, "'--' and the steps are missing");
}

/* One counted list at argv[0…argc). How many words it takes, or an error. */
static int parse_step(struct args *o, int argc, char **argv, struct err *e)
{
    uint64_t count = 0;
    size_t number = o->n_steps + 1;
    if (!parse_number(argv[0], 1, INT32_MAX, &count))
        return err_set(e, -EINVAL, "step %zu: '%s' is not a count of arguments", number, argv[0]);
    if (count > (uint64_t)argc - 1)
        return err_set(e, -EINVAL, "step %zu: %" PRIu64 " arguments announced, %d there", number, count, argc - 1);
    if (argv[1][0] == '\0')
        return err_set(e, -EINVAL, "step %zu: the program's name is empty", number);
    char **copy = calloc(count + 1, sizeof *copy);
    if (!copy)
        return err_sys(e, -ENOMEM, "step %zu", number);
    memcpy(copy, argv + 1, count * sizeof *copy);
    o->steps[o->n_steps++] = (struct args_step){ .argv = copy };
    return (int)count + 1;
}

static int parse_steps(struct args *o, int argc, char **argv, struct err *e)
{
    int rc = 0;
    for (int i = 0; i < argc; i += rc) {
        rc = parse_step(o, argc - i, argv + i, e);
        if (rc < 0)
            return rc;
    }
    return o->n_steps ? 0 : err_set(e, -EINVAL, "no step after '--'");
}

static int check_options(const struct args *o, struct err *e)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t len = strspn(o->launch, allowed);
    if (len == 0 || len > TAG_MAX || o->launch[len] != '\0')
        return err_set(e, -EINVAL, "'--launch %s': not 1 to %d of A-Z a-z 0-9 _ -", o->launch, TAG_MAX);
    if (!o->mark != !(o->runs || o->ids) || (o->runs && o->ids))
        return err_set(e, -EINVAL, "'--mark' and '--runs', or '--ids', need each other");
    if (!o->tell != !o->answer)
        return err_set(e, -EINVAL, "'--tell' and '--answer' need each other");
    if (o->control && fcntl((int)o->control, F_GETFD) < 0)
        return err_sys(e, -errno, "'--control %" PRIu64 "'", o->control);
    return 0;
}

int args_parse(struct args *o, int argc, char **argv, struct err *e)
{
    *o = (struct args){ .log_cap = 256 << 20, .grace_s = 10 };
    o->steps = calloc((size_t)argc + 1, sizeof *o->steps);
    if (!o->steps)
        return err_sys(e, -ENOMEM, "cannot read the command line");
    int rc = parse_options(o, argc, argv, e);
    if (rc >= 0)
        rc = parse_steps(o, argc - rc - 1, argv + rc + 1, e);
    return rc < 0 ? rc : check_options(o, e);
}
