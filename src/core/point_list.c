#include "core/point_list.h"

#include <errno.h>
#include <string.h>

#include "core/csv.h"
#include "core/space.h"

/* --- CSV --- */

struct names {
    char *v[CSV_FIELDS_MAX];
    size_t n;
};

static json_t *row_of(const struct csv *c, const struct names *names)
{
    json_t *row = json_object();
    for (size_t i = 0; row && i < names->n; i++) {
        struct value v = value_of_text(c->field[i]);
        if (json_object_set_new(row, names->v[i], value_to_json(&v)) < 0) {
            json_decref(row);
            return NULL;
        }
    }
    return row;
}

static int check_cells(const struct csv *c, const struct names *names, const char *name, struct err *e)
{
    if (c->n == 0)
        return err_set(e, -EINVAL, "'%s' line %zu: no row of up to %d fields can be read", name, c->line,
                       CSV_FIELDS_MAX);
    if (c->n != names->n)
        return err_set(e, -EINVAL, "'%s' line %zu: %zu fields, and the first line has %zu names", name, c->line, c->n,
                       names->n);
    for (size_t i = 0; i < c->n; i++)
        if (!csv_is_name(c->field[i]) || !*c->field[i] || strlen(c->field[i]) >= VALUE_TEXT_MAX)
            return err_set(e, -EINVAL, "'%s' line %zu: field %zu must be a text of 1 to %d bytes", name, c->line, i + 1,
                           VALUE_TEXT_MAX - 1);
    return 0;
}

static int check_names(const struct names *names, const char *name, struct err *e)
{
    for (size_t i = 0; i < names->n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(names->v[i], names->v[k]) == 0)
                return err_set(e, -EINVAL, "'%s' line 1: '%s' is there twice", name, names->v[i]);
    return 0;
}

static int read_csv(json_t *list, const char *name, const char *text, size_t len, struct err *e)
{
    struct csv c;
    struct names names = { 0 };
    int rc = csv_init(&c, text, len);
    if (rc < 0)
        return err_sys(e, rc, "'%s'", name);
    while (rc == 0 && csv_next(&c)) {
        bool head = names.n == 0;
        if (head) {
            memcpy(names.v, c.field, sizeof names.v);
            names.n = c.n;
        }
        rc = check_cells(&c, &names, name, e);
        if (rc == 0 && head)
            rc = check_names(&names, name, e);
        else if (rc == 0 && json_array_append_new(list, row_of(&c, &names)) < 0)
            rc = err_sys(e, -ENOMEM, "'%s'", name);
    }
    csv_done(&c);
    return rc;
}

/* --- JSON lines --- */

static int read_lines(json_t *list, const char *name, const char *text, size_t len, struct err *e)
{
    size_t line = 0;
    for (const char *at = text, *end = text + len; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((newline ? newline : end) - at);
        json_error_t why = { .text = "" };
        line++;
        bool blank = n == strspn(at, " \t\r") && !memchr(at, '\0', n);
        json_t *row = blank ? NULL : json_loadb(at, n, JSON_REJECT_DUPLICATES, &why);
        if (!blank && !json_is_object(row)) {
            json_decref(row);
            return err_set(e, -EINVAL, "'%s' line %zu: each line is an object of hyperparameters%s%s", name, line,
                           *why.text ? ": " : "", why.text);
        }
        if (row && json_array_append_new(list, row) < 0)
            return err_sys(e, -ENOMEM, "'%s'", name);
        at = newline ? newline + 1 : end;
    }
    return 0;
}

json_t *point_list_parse(const char *name, const char *text, size_t len, struct err *e, int *out_rc)
{
    json_t *list = json_array();
    size_t blanks = strspn(text, " \t\r\n");
    if (!list)
        *out_rc = err_sys(e, -ENOMEM, "'%s'", name);
    else if (blanks < len && text[blanks] == '{')
        *out_rc = read_lines(list, name, text, len, e);
    else
        *out_rc = read_csv(list, name, text, len, e);
    if (*out_rc == 0 && json_array_size(list) == 0)
        *out_rc = err_set(e, -EINVAL, "'%s' holds no points", name);
    if (*out_rc == 0)
        return list;
    json_decref(list);
    return NULL;
}
