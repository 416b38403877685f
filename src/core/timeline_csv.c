#include "core/timeline_csv.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"

enum { COLUMNS = 8, CORES_MAX = 1000000, EPOCH_MAX = 1000000, EPOCH_END = INT_MAX };

static const char *const columns[COLUMNS] = { "model", "dataset", "cores", "memory_gb",
                                              "batch", "log",     "epoch", "unix_s" };

struct row {
    const char *model, *dataset, *log; /* in the csv's text */
    int cores, epoch;
    double memory_gb, batch, unix_s;
    size_t line;
};

struct rows {
    struct row *v;
    size_t n, cap;
};

/* A run before it is known how long its workload's runs are. */
struct draft {
    const struct row *head;
    size_t line; /* its first */
    double startup_s;
    const struct row *marks; /* epochs 1, 2, … without a hole, sorted */
    size_t n_marks;
    double end_s; /* NAN: it goes on, or there is a hole behind the marks */
    bool ended, hole;
};

struct drafts {
    struct draft *v;
    size_t n;
};

/* --- rows --- */

static bool read_epoch(const char *field, int *out)
{
    if (strcmp(field, "end") == 0) {
        *out = EPOCH_END;
        return true;
    }
    return csv_int(field, 0, EPOCH_MAX, out);
}

/* The column that is wrong, -1: none. */
static int read_row(struct row *out, char *const *field)
{
    *out = (struct row){ .model = field[0], .dataset = field[1], .log = field[5], .memory_gb = NAN };
    if (!*field[0] || !csv_is_name(field[0]))
        return 0;
    if (!*field[1] || !csv_is_name(field[1]))
        return 1;
    if (!csv_int(field[2], 1, CORES_MAX, &out->cores))
        return 2;
    if (*field[3] && !csv_real(field[3], 1e-6, 1e9, &out->memory_gb))
        return 3;
    if (!csv_real(field[4], 1e-6, 1e12, &out->batch))
        return 4;
    if (!csv_is_name(field[5]))
        return 5;
    if (!read_epoch(field[6], &out->epoch))
        return 6;
    return csv_real(field[7], 0, 1e11, &out->unix_s) ? -1 : 7;
}

static const char *column_rule(int column)
{
    switch (column) {
    case 0:
    case 1:
    case 5: return "must be a name in UTF-8";
    case 2: return "must be a whole number of at least 1";
    case 6: return "must be 0, 1, 2, … or 'end'";
    case 7: return "must be seconds since 1970";
    default: return "must be a number above 0";
    }
}

static void add_row(struct rows *rows, const struct csv *c, struct csv_faults *faults)
{
    struct row row;
    if (c->n != COLUMNS) {
        csv_fault_add(faults, c->line, "the row",
                      "has not 8 fields: model,dataset,cores,memory_gb,batch,log,epoch,unix_s");
        return;
    }
    int bad = read_row(&row, c->field);
    if (bad >= 0 && strcmp(c->field[6], "epoch") == 0)
        csv_fault_add(faults, c->line, "the row", "is a header, and a timeline has none");
    else if (bad >= 0)
        csv_fault_add(faults, c->line, columns[bad], column_rule(bad));
    if (bad >= 0)
        return;
    row.line = c->line;
    rows->v[rows->n++] = row;
}

static int read_rows(struct rows *rows, struct csv *c, struct csv_faults *faults)
{
    while (csv_next(c)) {
        struct row *more = array_more(rows->v, rows->n, &rows->cap, sizeof *more);
        if (!more)
            return -ENOMEM;
        rows->v = more;
        add_row(rows, c, faults);
    }
    return 0;
}

static int compare_workloads(const struct row *a, const struct row *b)
{
    int order = strcmp(a->model, b->model);
    return order ? order : strcmp(a->dataset, b->dataset);
}

/* Not recorded comes last. */
static int compare_memory(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

static int compare_runs(const struct row *a, const struct row *b)
{
    int order = compare_workloads(a, b);
    if (!order)
        order = (a->cores > b->cores) - (a->cores < b->cores);
    if (!order)
        order = compare_memory(a->memory_gb, b->memory_gb);
    if (!order)
        order = (a->batch > b->batch) - (a->batch < b->batch);
    return order ? order : strcmp(a->log, b->log);
}

static int by_run(const void *x, const void *y)
{
    const struct row *a = x, *b = y;
    int order = compare_runs(a, b);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

static int by_epoch(const void *x, const void *y)
{
    const struct row *a = x, *b = y;
    int order = (a->epoch > b->epoch) - (a->epoch < b->epoch);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

/* --- runs --- */

/* Drops rows that say an epoch again or go back in time. Returns how many stay. */
static size_t drop_contradictions(struct row *rows, size_t n, struct csv_faults *faults)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept && rows[i].epoch == rows[kept - 1].epoch)
            csv_fault_add(faults, rows[i].line, "epoch", "is there twice");
        else if (kept && rows[i].unix_s < rows[kept - 1].unix_s)
            csv_fault_add(faults, rows[i].line, "unix_s", "is before that of an earlier epoch");
        else
            rows[kept++] = rows[i];
    }
    return kept;
}

static size_t first_line(const struct row *rows, size_t n)
{
    size_t first = rows[0].line;
    for (size_t i = 1; i < n; i++)
        first = rows[i].line < first ? rows[i].line : first;
    return first;
}

/* The rows are those of one run. */
static void draft_run(struct draft *d, struct row *rows, size_t n, struct csv_faults *faults)
{
    *d = (struct draft){ .line = first_line(rows, n), .startup_s = NAN, .end_s = NAN };
    qsort(rows, n, sizeof *rows, by_epoch);
    n = drop_contradictions(rows, n, faults);
    d->head = rows;
    d->ended = rows[n - 1].epoch == EPOCH_END;
    size_t n_epochs = n - d->ended;
    bool submitted = rows[0].epoch == 0;
    d->marks = rows + submitted;
    while (submitted + d->n_marks < n_epochs && (size_t)d->marks[d->n_marks].epoch == d->n_marks + 1)
        d->n_marks++;
    d->hole = submitted + d->n_marks < n_epochs;
    if (submitted && d->n_marks)
        d->startup_s = d->marks[0].unix_s - rows[0].unix_s;
    if (d->ended && !d->hole)
        d->end_s = rows[n - 1].unix_s;
}

/* Is the group one run for sure, in whatever order its rows stand? */
static bool is_one_run(const struct row *rows, size_t n)
{
    size_t submitted = 0, ended = 0;
    for (size_t i = 0; i < n; i++) {
        submitted += rows[i].epoch == 0;
        ended += rows[i].epoch == EPOCH_END;
    }
    return submitted <= 1 && ended <= 1;
}

/* Drops rows that stand behind the end and are later than it. Returns how many stay. */
static size_t drop_afterwards(struct row *rows, size_t n, struct csv_faults *faults)
{
    size_t kept = 0;
    double end_s = INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].unix_s > end_s) {
            csv_fault_add(faults, rows[i].line, "the row", "comes after the end of its run");
            continue;
        }
        if (rows[i].epoch == EPOCH_END)
            end_s = rows[i].unix_s;
        rows[kept++] = rows[i];
    }
    return kept;
}

/* The end of the run that begins at rows[0] of a group of several; *out_next: where the next one begins. */
static size_t run_length(const struct row *rows, size_t n, size_t *out_next, struct csv_faults *faults)
{
    size_t len = 0;
    bool submitted = false, ended = false;
    while (len < n && !ended && !(submitted && rows[len].epoch == 0 && rows[len].unix_s != rows[0].unix_s)) {
        submitted |= rows[len].epoch == 0;
        ended = rows[len++].epoch == EPOCH_END;
    }
    *out_next = len;
    while (ended && *out_next < n && rows[*out_next].epoch != 0)
        csv_fault_add(faults, rows[(*out_next)++].line, "the row", "comes after the end of its run");
    return len;
}

static size_t group_length(const struct row *rows, size_t n)
{
    size_t len = 1;
    while (len < n && compare_runs(rows, rows + len) == 0)
        len++;
    return len;
}

static int by_time(const void *x, const void *y)
{
    const struct row *a = x, *b = y;
    int order = (a->unix_s > b->unix_s) - (a->unix_s < b->unix_s);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

static int by_line(const void *x, const void *y)
{
    const struct row *a = x, *b = y;
    return (a->line > b->line) - (a->line < b->line);
}

/* Whole runs, one behind the other, each in the order of its epochs? */
static bool is_in_order(const struct row *rows, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (rows[i].epoch != 0 && (rows[i].epoch <= rows[i - 1].epoch || rows[i].unix_s < rows[i - 1].unix_s))
            return false;
    return true;
}

/* A file that was sorted by something else holds the runs of one name mixed. If they came one after the other, time tells
 * them apart; else the order of the file is all there is. */
static void order_group(struct row *rows, size_t n)
{
    if (is_in_order(rows, n))
        return;
    qsort(rows, n, sizeof *rows, by_time);
    if (!is_in_order(rows, n))
        qsort(rows, n, sizeof *rows, by_line);
}

static void draft_group(struct drafts *out, struct row *rows, size_t n, struct csv_faults *faults)
{
    if (is_one_run(rows, n)) {
        draft_run(&out->v[out->n++], rows, drop_afterwards(rows, n, faults), faults);
        return;
    }
    order_group(rows, n);
    for (size_t at = 0, next; at < n; at += next) {
        size_t len = run_length(rows + at, n - at, &next, faults);
        draft_run(&out->v[out->n++], rows + at, len, faults);
    }
}

/* Drafts in the order of workloads. */
static int draft_runs(struct drafts *out, struct rows *rows, struct csv_faults *faults)
{
    out->v = calloc(rows->n ? rows->n : 1, sizeof *out->v);
    if (!out->v)
        return -ENOMEM;
    if (rows->n)
        qsort(rows->v, rows->n, sizeof *rows->v, by_run);
    for (size_t at = 0, n; at < rows->n; at += n) {
        n = group_length(rows->v + at, rows->n - at);
        draft_group(out, rows->v + at, n, faults);
    }
    return 0;
}

/* --- how long the runs of a workload are, and what each is then worth --- */

/* Epochs whose duration is known. */
static size_t known_epochs(const struct draft *d)
{
    return d->n_marks - (d->n_marks > 0 && isnan(d->end_s));
}

static enum timeline_status status_of(const struct draft *d, size_t longest)
{
    if (!d->ended)
        return RUN_RUNNING;
    if (d->hole)
        return RUN_PARTIAL;
    if (d->n_marks == 0)
        return RUN_FAILED;
    return d->n_marks < longest ? RUN_PARTIAL : RUN_COMPLETE;
}

static int fill_epochs(struct timeline_run *r, const struct draft *d)
{
    size_t n = known_epochs(d);
    if (r->status == RUN_PARTIAL && !d->hole && n > 0)
        n--; /* the last one is cut off */
    if (n == 0)
        return 0;
    r->epochs = calloc(n, sizeof *r->epochs);
    if (!r->epochs)
        return -ENOMEM;
    r->n_epochs = n;
    for (size_t i = 0; i < n; i++) {
        double next_s = i + 1 < d->n_marks ? d->marks[i + 1].unix_s : d->end_s;
        r->epochs[i] = (struct timeline_epoch){
            .duration_s = next_s - d->marks[i].unix_s, .loss = NAN, .accuracy = NAN, .energy_j = NAN
        };
    }
    return 0;
}

static int fill_run(struct timeline *t, const struct draft *d, size_t longest)
{
    struct timeline_run *r = timeline_add(t);
    if (!r)
        return -ENOMEM;
    r->model = strdup(d->head->model);
    r->dataset = strdup(d->head->dataset);
    r->log = *d->head->log ? strdup(d->head->log) : NULL;
    if (!r->model || !r->dataset || (*d->head->log && !r->log))
        return -ENOMEM;
    r->cores = d->head->cores;
    r->memory_gb = d->head->memory_gb;
    r->batch = d->head->batch;
    r->startup_s = d->startup_s;
    r->status = status_of(d, longest);
    return fill_epochs(r, d);
}

static int by_workload(const void *x, const void *y)
{
    const struct draft *a = x, *b = y;
    int order = compare_workloads(a->head, b->head);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

struct sized {
    const struct draft *draft;
    size_t longest;
};

static int by_first_line(const void *x, const void *y)
{
    const struct sized *a = x, *b = y;
    return (a->draft->line > b->draft->line) - (a->draft->line < b->draft->line);
}

/* Each draft with the longest of its workload, in the order of the file. */
static void size_drafts(struct sized *out, struct drafts *drafts)
{
    qsort(drafts->v, drafts->n, sizeof *drafts->v, by_workload);
    for (size_t from = 0, end; from < drafts->n; from = end) {
        size_t longest = 0;
        for (end = from; end < drafts->n && compare_workloads(drafts->v[from].head, drafts->v[end].head) == 0; end++)
            longest = known_epochs(&drafts->v[end]) > longest ? known_epochs(&drafts->v[end]) : longest;
        for (size_t i = from; i < end; i++)
            out[i] = (struct sized){ &drafts->v[i], longest };
    }
    qsort(out, drafts->n, sizeof *out, by_first_line);
}

static int fill_timeline(struct timeline *out, struct drafts *drafts)
{
    if (drafts->n == 0)
        return 0;
    AUTO_FREE struct sized *sized = calloc(drafts->n, sizeof *sized);
    if (!sized)
        return -ENOMEM;
    size_drafts(sized, drafts);
    int rc = 0;
    for (size_t i = 0; i < drafts->n && rc == 0; i++)
        rc = fill_run(out, sized[i].draft, sized[i].longest);
    return rc;
}

int timeline_csv_parse(struct timeline *out, const char *text, size_t len, struct csv_faults *faults)
{
    struct csv csv;
    int rc = csv_init(&csv, text, len);
    if (rc < 0)
        return rc;
    struct rows rows = { 0 };
    struct drafts drafts = { 0 };
    struct timeline t = { 0 };
    rc = read_rows(&rows, &csv, faults);
    if (rc == 0)
        rc = draft_runs(&drafts, &rows, faults);
    if (rc == 0)
        rc = fill_timeline(&t, &drafts);
    if (rc == 0 && faults->failed)
        rc = -ENOMEM;
    free(drafts.v);
    free(rows.v);
    csv_done(&csv);
    csv_faults_sort(faults);
    if (rc < 0)
        timeline_done(&t);
    else
        *out = t;
    return rc;
}

/* --- writing --- */

static void put_row(struct buf *b, const struct timeline_run *r, const char *epoch, double unix_s)
{
    csv_put_text(b, r->model);
    buf_putc(b, ',');
    csv_put_text(b, r->dataset);
    buf_printf(b, ",%d", r->cores);
    csv_put_next(b, r->memory_gb);
    csv_put_next(b, r->batch);
    buf_putc(b, ',');
    csv_put_text(b, r->log);
    buf_printf(b, ",%s", epoch);
    csv_put_next(b, unix_s);
    buf_putc(b, '\n');
}

void timeline_csv_put(struct buf *b, const struct timeline_run *r, double unix_s)
{
    if (!*r->model || !*r->dataset || r->cores < 1 || !(r->batch > 0))
        return;
    double at_s = unix_s + (isnan(r->startup_s) ? 0 : r->startup_s);
    char epoch[16];
    size_t i = 0;
    if (isfinite(r->startup_s) || r->n_epochs == 0)
        put_row(b, r, "0", unix_s);
    for (; i < r->n_epochs && isfinite(r->epochs[i].duration_s); i++) {
        (void)snprintf(epoch, sizeof epoch, "%zu", i + 1);
        put_row(b, r, epoch, at_s);
        at_s += r->epochs[i].duration_s;
    }
    if (r->status == RUN_RUNNING && i > 0) { /* that of its last epoch is known: it is the next one's beginning */
        (void)snprintf(epoch, sizeof epoch, "%zu", i + 1);
        put_row(b, r, epoch, at_s);
    }
    if (r->status != RUN_RUNNING)
        put_row(b, r, "end", at_s);
}
