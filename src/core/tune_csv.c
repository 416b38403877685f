#include "core/tune_csv.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"

#define LEAST_ABOVE_0 1e-300
#define LARGEST 1e300

enum { WHOLE_MAX = 1000000 };

enum column_kind {
    COLUMN_LOAD,     /* a name */
    COLUMN_JOB,      /* a name, not "all": results use that word for all jobs together */
    COLUMN_WHOLE,    /* int from 1 */
    COLUMN_POSITIVE, /* above 0 */
    COLUMN_AMOUNT,   /* from 0; may be empty */
    COLUMN_NUMBER,   /* any; may be empty */
};

static const char *const column_rules[] = {
    [COLUMN_LOAD] = "must be a name of 1 to 31 bytes in UTF-8",
    [COLUMN_JOB] = "must be a name of 1 to 63 bytes in UTF-8, and not 'all': that is all jobs together",
    [COLUMN_WHOLE] = "must be a whole number from 1 to 1000000",
    [COLUMN_POSITIVE] = "must be a number above 0",
    [COLUMN_AMOUNT] = "must be a number from 0, or empty",
    [COLUMN_NUMBER] = "must be a number, or empty",
};

struct column {
    const char *name;
    enum column_kind kind;
    size_t offset;
    double per_unit; /* so many of the file's units are one of ours; 0: the same */
};

#define OFFLINE(field) offsetof(struct tune_offline_row, field)
#define ONLINE(field) offsetof(struct tune_online_row, field)

static const struct column offline_columns[] = {
    { "lr", COLUMN_POSITIVE, OFFLINE(lr), 0 },
    { "epochs", COLUMN_WHOLE, OFFLINE(epochs), 0 },
    { "batch", COLUMN_POSITIVE, OFFLINE(batch), 0 },
    { "error", COLUMN_NUMBER, OFFLINE(error), 0 },
    { "error_resp", COLUMN_NUMBER, OFFLINE(error_resp), 0 },
    { "training_s", COLUMN_AMOUNT, OFFLINE(training_s), 0 },
    { "energy_uj", COLUMN_AMOUNT, OFFLINE(energy_j), 1e6 },
};

static const struct column online_columns[] = {
    { "load", COLUMN_LOAD, ONLINE(load), 0 },
    { "job", COLUMN_JOB, ONLINE(job), 0 },
    { "cores", COLUMN_WHOLE, ONLINE(cores), 0 },
    { "lr", COLUMN_POSITIVE, ONLINE(lr), 0 },
    { "batch", COLUMN_POSITIVE, ONLINE(batch), 0 },
    { "epochs", COLUMN_WHOLE, ONLINE(epochs), 0 },
    { "queue_s", COLUMN_AMOUNT, ONLINE(queue_s), 0 },
    { "tuning_s", COLUMN_AMOUNT, ONLINE(tuning_s), 0 },
    { "response_s", COLUMN_AMOUNT, ONLINE(response_s), 0 },
    { "error", COLUMN_NUMBER, ONLINE(error), 0 },
    { "training_s", COLUMN_AMOUNT, ONLINE(training_s), 0 },
    { "objective", COLUMN_NUMBER, ONLINE(objective), 0 },
    { "the tuning's energy", COLUMN_AMOUNT, ONLINE(tuning_j), 0 },
    { "the training's energy", COLUMN_AMOUNT, ONLINE(training_j), 0 },
};

/* One of the two forms; columns from `required` on may be missing as a whole. */
struct form {
    const struct column *columns;
    size_t n, required, row_size;
    const char *rule; /* for a row with another number of columns */
};

static const struct form offline_form = { offline_columns, ARRAY_LEN(offline_columns), 7,
                                          sizeof(struct tune_offline_row),
                                          "has not 7 fields: lr,epochs,batch,error,error_resp,training_s,energy_uj" };
static const struct form online_form = {
    online_columns, ARRAY_LEN(online_columns), 12, sizeof(struct tune_online_row),
    "has not 12 to 14 fields: load,job,cores,lr,batch,epochs,queue_s,tuning_s,response_s,error,training_s,objective "
    "and "
    "two energies"
};

/* --- a row --- */

static bool read_name(char *to, size_t size, const char *field)
{
    size_t len = strlen(field);
    if (len == 0 || len >= size || !csv_is_name(field))
        return false;
    memcpy(to, field, len + 1);
    return true;
}

static bool read_real(double *to, const struct column *c, const char *field)
{
    double least = c->kind == COLUMN_NUMBER ? -LARGEST : c->kind == COLUMN_AMOUNT ? 0 : LEAST_ABOVE_0;
    *to = NAN;
    if (*field == '\0')
        return c->kind != COLUMN_POSITIVE; /* what was measured may be missing, a setting may not */
    if (!csv_real(field, least, LARGEST, to))
        return false;
    if (c->per_unit > 0)
        *to /= c->per_unit;
    return true;
}

static bool read_field(void *row, const struct column *c, const char *field)
{
    void *to = (char *)row + c->offset;
    switch (c->kind) {
    case COLUMN_LOAD: return read_name(to, TUNE_LOAD_MAX, field);
    case COLUMN_JOB: return read_name(to, TUNE_JOB_MAX, field) && strcmp(field, "all") != 0;
    case COLUMN_WHOLE: return csv_int(field, 1, WHOLE_MAX, to);
    default: return read_real(to, c, field);
    }
}

static bool read_row(void *row, const struct form *form, const struct csv *csv, struct csv_faults *faults)
{
    if (csv->n < form->required || csv->n > form->n) {
        csv_fault_add(faults, csv->line, "the row", form->rule);
        return false;
    }
    for (size_t i = 0; i < form->n; i++) {
        const struct column *c = &form->columns[i];
        if (!read_field(row, c, i < csv->n ? csv->field[i] : "")) {
            csv_fault_add(faults, csv->line, c->name, column_rules[c->kind]);
            return false;
        }
    }
    return true;
}

/* --- a file --- */

struct rows {
    char *data;
    size_t n, cap; /* rows */
};

static int add_row(struct rows *r, const void *row, size_t size)
{
    char *grown = array_more(r->data, r->n, &r->cap, size);
    if (!grown)
        return -ENOMEM;
    r->data = grown;
    memcpy(r->data + r->n++ * size, row, size);
    return 0;
}

static int parse_rows(struct rows *rows, const struct form *form, struct csv *csv, struct csv_faults *faults)
{
    union {
        struct tune_offline_row offline;
        struct tune_online_row online;
    } row;
    for (bool first = true; csv_next(csv); first = false) {
        if (first && csv->n > 0 && strcmp(csv->field[0], form->columns[0].name) == 0)
            continue;
        memset(&row, 0, sizeof row);
        if (read_row(&row, form, csv, faults) && add_row(rows, &row, form->row_size) < 0)
            return -ENOMEM;
    }
    return faults->failed ? -ENOMEM : 0;
}

static int parse(struct rows *rows, const struct form *form, const char *text, size_t len, struct csv_faults *faults)
{
    struct csv csv;
    size_t had = rows->n;
    int rc = csv_init(&csv, text, len);
    if (rc < 0)
        return rc;
    rc = parse_rows(rows, form, &csv, faults);
    csv_done(&csv);
    if (rc < 0)
        rows->n = had; /* what was there before is the same, though it may lie elsewhere */
    return rc;
}

int tune_offline_parse(struct tune_offline *out, const char *text, size_t len, struct csv_faults *faults)
{
    struct rows rows = { (char *)out->rows, out->n, out->cap };
    int rc = parse(&rows, &offline_form, text, len, faults);
    *out = (struct tune_offline){ (struct tune_offline_row *)(void *)rows.data, rows.n, rows.cap };
    return rc;
}

int tune_online_parse(struct tune_online *out, const char *text, size_t len, struct csv_faults *faults)
{
    struct rows rows = { (char *)out->rows, out->n, out->cap };
    int rc = parse(&rows, &online_form, text, len, faults);
    *out = (struct tune_online){ (struct tune_online_row *)(void *)rows.data, rows.n, rows.cap };
    return rc;
}

void tune_offline_done(struct tune_offline *t)
{
    if (!t)
        return;
    free(t->rows);
    *t = (struct tune_offline){ 0 };
}

void tune_online_done(struct tune_online *t)
{
    if (!t)
        return;
    free(t->rows);
    *t = (struct tune_online){ 0 };
}

void tune_online_put(struct buf *b, const struct tune_online_row *row)
{
    for (size_t i = 0; i < ARRAY_LEN(online_columns); i++) {
        const struct column *c = &online_columns[i];
        const void *from = (const char *)row + c->offset;
        buf_puts(b, i ? "," : "");
        double number;
        if (c->kind == COLUMN_LOAD && csv_real(from, 0, LARGEST, &number))
            buf_puts(b, from); /* a load of 0.95 is a number for spreadsheets, too */
        else if (c->kind == COLUMN_LOAD || c->kind == COLUMN_JOB)
            csv_put_text(b, from);
        else if (c->kind == COLUMN_WHOLE)
            buf_printf(b, "%d", *(const int *)from);
        else
            csv_put_number(b, *(const double *)from);
    }
    buf_putc(b, '\n');
}
