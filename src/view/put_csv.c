#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "core/csv.h"
#include "view/put.h"
#include "view/words.h"

static const char *head_of(const struct column *c)
{
    return c->head ? c->head : c->key;
}

/* The keys of this object over all trials, in the order they come up: members of one object, whose values mean nothing. */
static int all_keys(json_t *keys, const struct column *c, struct view *v, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < v->n; i++) {
        struct cell x;
        const char *key;
        json_t *value;
        rc = column_cell(c, v, &v->trials[i], &x, e);
        json_object_foreach(x.json, key, value)
        {
            if (!json_object_get(keys, key))
                (void)json_object_set(keys, key, value);
        }
        cell_done(&x);
    }
    return rc;
}

static void put_heads(struct buf *b, const struct column *c, json_t *keys)
{
    const char *key;
    json_t *value;
    json_object_foreach(keys, key, value)
    {
        AUTO_BUF struct buf name = BUF_INIT;
        buf_printf(&name, "%s.%s", head_of(c), key);
        buf_putc(b, ',');
        csv_put_text(b, buf_text(&name));
        b->failed |= name.failed;
    }
}

static void put_member(struct buf *b, const json_t *of)
{
    AUTO_FREE char *other = of && !json_is_string(of) && !json_is_number(of) ? json_text(of) : NULL;
    if (json_is_number(of))
        csv_put_number(b, json_number_value(of));
    else
        csv_put_text(b, other ? other : json_string_value(of));
}

static void put_value(struct buf *b, const struct cell *x, json_t *keys)
{
    const char *key;
    json_t *value;
    json_object_foreach(keys, key, value)
    {
        buf_putc(b, ',');
        put_member(b, json_object_get(x->json, key));
    }
    if (keys)
        return;
    buf_putc(b, ',');
    if (x->kind == CELL_INTEGER)
        buf_printf(b, "%lld", (long long)x->integer);
    else if (x->kind == CELL_NUMBER)
        csv_put_number(b, x->number);
    else if (x->kind == CELL_TEXT)
        csv_put_text(b, x->text);
}

/* The first comma of a line is none. */
static void put_line(struct buf *b, const struct buf *line)
{
    buf_puts(b, line->len ? buf_text(line) + 1 : "");
    buf_putc(b, '\n');
    b->failed |= line->failed;
}

static int put_row(struct buf *b, struct view *v, struct view_trial *t, const struct column *const *columns,
                   json_t *const *keys, struct err *e)
{
    AUTO_BUF struct buf line = BUF_INIT;
    int rc = 0;
    for (size_t i = 0; rc == 0 && columns[i]; i++) {
        struct cell x = { .kind = CELL_ABSENT };
        if (!column_is_told(columns[i], v))
            continue;
        rc = column_cell(columns[i], v, t, &x, e);
        put_value(&line, &x, keys[i]);
        cell_done(&x);
    }
    put_line(b, &line);
    return rc;
}

int put_report_csv(struct buf *b, struct view *v, struct err *e)
{
    enum { COLUMNS_MAX = 32 };
    const struct column *const *columns = columns_report_csv;
    json_t *keys[COLUMNS_MAX] = { NULL }; /* of those that are spread */
    AUTO_BUF struct buf line = BUF_INIT;
    int rc = view_pareto(v, e);
    for (size_t i = 0; rc == 0 && columns[i]; i++) {
        if (!column_is_told(columns[i], v))
            continue;
        keys[i] = columns[i]->spread ? json_object() : NULL;
        if (keys[i])
            rc = all_keys(keys[i], columns[i], v, e);
        else
            buf_printf(&line, ",%s", head_of(columns[i]));
        put_heads(&line, columns[i], keys[i]);
    }
    put_line(b, &line);
    for (size_t i = 0; rc == 0 && i < v->n; i++)
        rc = put_row(b, v, &v->trials[i], columns, keys, e);
    for (size_t i = 0; i < COLUMNS_MAX; i++)
        json_decref(keys[i]);
    return rc;
}
