/* What is in the HDF5 file, checked on the way in. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "core/csv.h"
#include "store/trace.h"
#include "store/trace_h5.h"
#include "store/trace_piece.h"

enum { NAME_MAX_BYTES = 32, TRANSFER_BYTES = 1 << 16 };

/* --- /meta --- */

static int read_version(struct trace_reader *r, hid_t meta)
{
    double version = TRACE_VERSION; /* a file of other hands need not say it */
    int rc = trace_piece_number(r, meta, "version", &version);
    if (rc == 0 && !(version >= 1 && version <= TRACE_VERSION))
        return trace_piece_refuse(r, "is of a newer pipetune", "version");
    return rc;
}

static int read_features(struct trace_reader *r, hid_t meta, struct strv *out)
{
    hsize_t dims[2];
    AUTO_H5 hid_t set = -1;
    int rc = trace_piece_set(r, meta, "features", 1, &set, dims);
    if (rc < 0)
        return rc;
    AUTO_H5 hid_t type = H5Dget_type(set);
    if (H5Tget_class(type) != H5T_STRING || dims[0] > TRACE_FEATURES_MAX)
        return trace_piece_refuse(r, "is no list of at most 4096 names", "features");
    AUTO_FREE char **names = calloc((size_t)dims[0] + 1, sizeof *names);
    if (!names)
        return trace_piece_no_memory(r);
    rc = trace_piece_texts(r, &(struct trace_texts){ set, false, NULL, (size_t)dims[0] }, type, "features", names);
    for (size_t i = 0; i < dims[0]; i++) {
        if (rc == 0 && (!csv_is_name(names[i]) || !*names[i]))
            rc = trace_piece_refuse(r, "holds what is no name", "features");
        if (rc == 0)
            strv_take(out, MOVE_PTR(names[i]));
        free(names[i]);
    }
    return rc == 0 && out->failed ? trace_piece_no_memory(r) : rc;
}

static int read_meta(struct trace_reader *r, hid_t file, struct trace *t)
{
    AUTO_H5 hid_t meta = -1;
    int rc = trace_piece_group(r, file, "meta", &meta);
    if (rc == 0)
        rc = read_version(r, meta);
    return rc < 0 ? rc : read_features(r, meta, &t->features);
}

/* --- tables --- */

static int open_table(struct trace_reader *r, hid_t at, const char *name, hid_t *out, hid_t *out_type, size_t *out_n)
{
    hsize_t dims[2];
    AUTO_H5 hid_t set = -1;
    int rc = trace_piece_set(r, at, name, 1, &set, dims);
    if (rc < 0)
        return rc;
    *out_type = H5Dget_type(set);
    if (H5Tget_class(*out_type) != H5T_COMPOUND)
        return trace_piece_refuse(r, "is no table", name);
    if (dims[0] > r->rows_left)
        return trace_piece_refuse(r, "has too many rows", name);
    r->rows_left -= (size_t)dims[0];
    *out_n = (size_t)dims[0];
    *out = set;
    set = -1;
    return 0;
}

/* The member's number in the file's type when it is of numbers (or, `text`, of strings), else -1. */
static int column_index(hid_t in_file, const char *name, bool text)
{
    int index = H5Tget_member_index(in_file, name);
    if (index < 0)
        return -1;
    AUTO_H5 hid_t type = H5Tget_member_type(in_file, (unsigned)index);
    return (text ? H5Tget_class(type) == H5T_STRING : trace_piece_is_number(type)) ? index : -1;
}

/* The table's columns that we know, packed in this order. Returns how many; *out is their type in memory. */
static size_t known_columns(hid_t in_file, size_t which[TRACE_COLUMNS], hid_t *out)
{
    size_t n = 0;
    for (size_t c = 0; c < TRACE_COLUMNS; c++)
        if (column_index(in_file, trace_columns[c].name, false) >= 0)
            which[n++] = c;
    *out = n ? H5Tcreate(H5T_COMPOUND, n * sizeof(double)) : -1;
    for (size_t i = 0; i < n && *out >= 0; i++)
        (void)H5Tinsert(*out, trace_columns[which[i]].name, i * sizeof(double),
                        H5T_NATIVE_DOUBLE); /* names differ: it fits */
    return n;
}

/* at: the first row's columns; rows lie `stride` bytes apart. What the table lacks stays as it is: hence the detour, since HDF5
 * does not promise to leave alone what lies between the members that it fills. */
static int read_columns(struct trace_reader *r, hid_t set, hid_t in_file, const char *table, struct trace_epoch *at,
                        size_t stride, size_t n)
{
    size_t which[TRACE_COLUMNS];
    AUTO_H5 hid_t type = -1;
    size_t columns = known_columns(in_file, which, &type);
    if (columns == 0 || n == 0)
        return 0;
    AUTO_FREE double *values = calloc(n * columns, sizeof *values);
    if (!values)
        return trace_piece_no_memory(r);
    if (type < 0 || H5Dread(set, type, H5S_ALL, H5S_ALL, r->transfer, values) < 0)
        return trace_piece_refuse_h5(r, "cannot be read", table);
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < columns; c++)
            memcpy((char *)at + i * stride + trace_columns[which[c]].offset, &values[i * columns + c], sizeof *values);
    return 0;
}

static int read_epochs(struct trace_reader *r, hid_t at, struct trace_run *run)
{
    AUTO_H5 hid_t set = -1, type = -1;
    size_t n = 0;
    int rc = open_table(r, at, "epochs", &set, &type, &n);
    if (rc < 0)
        return rc;
    if (column_index(type, "duration_s", false) < 0)
        return trace_piece_refuse(r, "has no column 'duration_s'", "epochs");
    run->epochs = calloc(n + 1, sizeof *run->epochs);
    if (!run->epochs)
        return trace_piece_no_memory(r);
    run->n_epochs = n;
    for (size_t i = 0; i < n; i++)
        run->epochs[i] = trace_no_epoch();
    return read_columns(r, set, type, "epochs", run->epochs, sizeof *run->epochs, n);
}

/* One column alone, of a table in which some columns are no figures. */
struct rows {
    hid_t set, in_file;
    const char *name; /* of the table, for errors */
    size_t n;
};

/* out: n elements of this type, `size` bytes each. */
static int read_number_column(struct trace_reader *r, const struct rows *t, const char *column, hid_t type, size_t size,
                              void *out)
{
    AUTO_H5 hid_t row = trace_piece_column(type, column, size);
    if (t->n > 0 && (row < 0 || H5Dread(t->set, row, H5S_ALL, H5S_ALL, r->transfer, out) < 0))
        return trace_piece_refuse_h5(r, "cannot be read", t->name);
    return 0;
}

/* The texts go to `at`, `stride` bytes apart: each to be freed, whatever is returned. */
static int read_text_column(struct trace_reader *r, const struct rows *t, const char *column, char **at, size_t stride)
{
    AUTO_FREE char **texts = calloc(t->n + 1, sizeof *texts);
    if (!texts)
        return trace_piece_no_memory(r);
    AUTO_H5 hid_t type = H5Tget_member_type(t->in_file, (unsigned)H5Tget_member_index(t->in_file, column));
    int rc = trace_piece_texts(r, &(struct trace_texts){ t->set, false, column, t->n }, type, t->name, texts);
    for (size_t i = 0; i < t->n; i++)
        memcpy((char *)at + i * stride, &texts[i], sizeof *texts);
    return rc;
}

/* Windows have two columns more. */
static int read_window_heads(struct trace_reader *r, const struct rows *t, struct trace_window *windows)
{
    if (column_index(t->in_file, "setting", true) < 0 || column_index(t->in_file, "epoch", false) < 0)
        return trace_piece_refuse(r, "has no columns 'epoch' and 'setting'", t->name);
    AUTO_FREE int *epochs = calloc(t->n + 1, sizeof *epochs);
    if (!epochs)
        return trace_piece_no_memory(r);
    int rc = read_number_column(r, t, "epoch", H5T_NATIVE_INT, sizeof *epochs, epochs);
    if (rc == 0)
        rc = read_text_column(r, t, "setting", &windows[0].setting, sizeof *windows);
    for (size_t i = 0; i < t->n; i++)
        windows[i].epoch = epochs[i];
    return rc;
}

static int read_windows(struct trace_reader *r, hid_t at, struct trace_run *run)
{
    if (!trace_piece_has(at, "windows"))
        return 0;
    AUTO_H5 hid_t set = -1, type = -1;
    size_t n = 0;
    int rc = open_table(r, at, "windows", &set, &type, &n);
    if (rc < 0)
        return rc;
    run->windows = calloc(n + 1, sizeof *run->windows);
    if (!run->windows)
        return trace_piece_no_memory(r);
    run->n_windows = n;
    for (size_t i = 0; i < n; i++)
        run->windows[i].at = trace_no_epoch();
    rc = read_window_heads(r, &(struct rows){ set, type, "windows", n }, run->windows);
    return rc < 0 ? rc : read_columns(r, set, type, "windows", &run->windows[0].at, sizeof *run->windows, n);
}

/* --- samples --- */

static int read_array(struct trace_reader *r, hid_t at, const char *name, int rank, const size_t want[2], hid_t type,
                      void *to)
{
    hsize_t dims[2] = { 0, 0 };
    AUTO_H5 hid_t set = -1;
    int rc = trace_piece_set(r, at, name, rank, &set, dims);
    if (rc < 0)
        return rc;
    if (dims[0] != want[0] || (rank > 1 && dims[1] != want[1]))
        return trace_piece_refuse(r, "has another size than its neighbours", name);
    AUTO_H5 hid_t in_file = H5Dget_type(set);
    if (!trace_piece_is_number(in_file) || (want[0] > 0 && H5Dread(set, type, H5S_ALL, H5S_ALL, r->transfer, to) < 0))
        return trace_piece_refuse_h5(r, "cannot be read", name);
    return 0;
}

static int count_samples(struct trace_reader *r, hid_t at, size_t features, size_t *out)
{
    hsize_t dims[2];
    AUTO_H5 hid_t set = -1;
    int rc = trace_piece_set(r, at, "t_ns", 1, &set, dims);
    if (rc < 0)
        return rc;
    size_t width = features ? features : 1;
    if (dims[0] > r->cells_left / width)
        return trace_piece_refuse(r, "has too many rows", "t_ns");
    *out = (size_t)dims[0];
    r->cells_left -= *out * width;
    return 0;
}

static int check_states(struct trace_reader *r, const struct trace_samples *s, size_t cells)
{
    for (size_t i = 0; i < cells; i++)
        if (s->state[i] > TRACE_NO_FD && s->state[i] != TRACE_ABSENT)
            return trace_piece_refuse(r, "holds a number that is no state", "state");
    return 0;
}

static int read_samples(struct trace_reader *r, hid_t run, size_t features, struct trace_samples *s)
{
    if (!trace_piece_has(run, "samples"))
        return 0;
    AUTO_H5 hid_t at = -1;
    size_t n = 0;
    int rc = trace_piece_group(r, run, "samples", &at);
    if (rc == 0)
        rc = count_samples(r, at, features, &n);
    if (rc < 0)
        return rc;
    if (trace_samples_init(s, n, features) < 0)
        return trace_piece_no_memory(r);
    const size_t want[2] = { n, features };
    rc = read_array(r, at, "t_ns", 1, want, H5T_NATIVE_INT64, s->t_ns);
    if (rc == 0)
        rc = read_array(r, at, "node", 1, want, H5T_NATIVE_UINT16, s->node);
    if (rc == 0)
        rc = read_array(r, at, "value", 2, want, H5T_NATIVE_DOUBLE, s->value);
    if (rc == 0)
        rc = read_array(r, at, "state", 2, want, H5T_NATIVE_UINT8, s->state);
    if (rc == 0)
        rc = read_array(r, at, "ratio", 2, want, H5T_NATIVE_FLOAT, s->ratio);
    return rc < 0 ? rc : check_states(r, s, n * features);
}

/* --- runs --- */

static int check_object(struct trace_reader *r, const char *name, const char *text)
{
    AUTO_JSON json_t *j = json_loads(text, 0, NULL);
    return json_is_object(j) ? 0 : trace_piece_refuse(r, "is no JSON object", name);
}

static int read_status(struct trace_reader *r, hid_t at, struct trace_run *run)
{
    AUTO_FREE char *text = NULL;
    int rc = trace_piece_text(r, at, "status", &text);
    int status = rc < 0 ? rc : timeline_status_parse(text);
    if (rc < 0 || status < 0)
        return rc < 0 ? rc : trace_piece_refuse(r, "is none of complete, partial, failed, running", "status");
    run->status = (enum timeline_status)status;
    return 0;
}

static int read_attributes(struct trace_reader *r, hid_t at, struct trace_run *run)
{
    const struct {
        const char *name;
        char **to;
        bool object, optional;
    } rows[] = {
        { "model", &run->model, false, false },   { "dataset", &run->dataset, false, false },
        { "system", &run->system, true, false },  { "hyper", &run->hyper, true, false },
        { "results", &run->results, true, true },
    };
    int rc = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows) && rc == 0; i++) {
        if (rows[i].optional && H5Aexists(at, rows[i].name) <= 0)
            continue;
        rc = trace_piece_text(r, at, rows[i].name, rows[i].to);
        if (rc == 0 && rows[i].object)
            rc = check_object(r, rows[i].name, *rows[i].to);
        else if (rc == 0 && !csv_is_name(*rows[i].to))
            rc = trace_piece_refuse(r, "is no name in UTF-8", rows[i].name);
    }
    if (rc == 0)
        rc = read_status(r, at, run);
    return rc < 0 ? rc : trace_piece_number(r, at, "startup_s", &run->startup_s);
}

static int read_run(struct trace_reader *r, hid_t runs, uint64_t number, struct trace *t)
{
    char name[NAME_MAX_BYTES];
    (void)snprintf(name, sizeof name, "%" PRIu64, number);
    (void)snprintf(r->at, sizeof r->at, "run %s", name);
    struct trace_run *run = trace_add(t);
    if (!run)
        return trace_piece_no_memory(r);
    AUTO_H5 hid_t at = -1;
    int rc = trace_piece_group(r, runs, name, &at);
    if (rc == 0)
        rc = read_attributes(r, at, run);
    if (rc == 0)
        rc = read_epochs(r, at, run);
    if (rc == 0)
        rc = read_windows(r, at, run);
    return rc < 0 ? rc : read_samples(r, at, t->features.n, &run->samples);
}

static int by_number(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

struct run_list {
    struct trace_reader *r;
    uint64_t *numbers;
    size_t n, room;
};

/* The canonical form of a number alone; others are refused: something else than a run stands there. 0 goes on, 1 stops. */
static herr_t add_run_name(hid_t runs, const char *name, const H5L_info_t *info, void *ctx)
{
    (void)runs;
    (void)info; /* whatever kind of link it is, opening it will tell */
    struct run_list *list = ctx;
    char back[NAME_MAX_BYTES];
    uint64_t number = strtoull(name, NULL, 10);
    (void)snprintf(back, sizeof back, "%" PRIu64, number);
    if (strcmp(name, back) != 0)
        return (void)trace_piece_refuse(list->r, "is not the number of a run", name), 1;
    if (list->n == list->room) /* more than the group said that it has */
        return (void)trace_piece_refuse(list->r, "holds too many runs", "runs"), 1;
    list->numbers[list->n++] = number;
    return 0;
}

/* Links come in some order; by their names 10 would be before 2. */
static int list_runs(struct trace_reader *r, hid_t runs, uint64_t **out, size_t *out_n)
{
    H5G_info_t info;
    if (H5Gget_info(runs, &info) < 0)
        return trace_piece_refuse_h5(r, "cannot be listed", "runs");
    if (info.nlinks > TRACE_RUNS_MAX)
        return trace_piece_refuse(r, "holds too many runs", "runs");
    AUTO_FREE uint64_t *numbers = calloc((size_t)info.nlinks + 1, sizeof *numbers);
    if (!numbers)
        return trace_piece_no_memory(r);
    struct run_list list = { r, numbers, 0, (size_t)info.nlinks };
    herr_t stopped = H5Literate(runs, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, add_run_name, &list);
    if (stopped != 0)
        return stopped < 0 ? trace_piece_refuse_h5(r, "cannot be listed", "runs") : -EPROTO;
    qsort(numbers, list.n, sizeof *numbers, by_number);
    *out = MOVE_PTR(numbers);
    *out_n = list.n;
    return 0;
}

static int read_runs(struct trace_reader *r, hid_t file, struct trace *t)
{
    AUTO_H5 hid_t runs = -1;
    AUTO_FREE uint64_t *numbers = NULL;
    size_t n = 0;
    int rc = trace_piece_group(r, file, "runs", &runs);
    if (rc == 0)
        rc = list_runs(r, runs, &numbers, &n);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = read_run(r, runs, numbers[i], t);
    return rc;
}

/* --- /tuner --- */

static int read_names(struct trace_reader *r, hid_t at, struct trace_tuner *t)
{
    int rc = trace_piece_text(r, at, "policy", &t->policy);
    if (rc == 0)
        rc = trace_piece_text(r, at, "study", &t->study);
    if (rc == 0 && (!csv_is_name(t->policy) || !csv_is_name(t->study)))
        rc = trace_piece_refuse(r, "are no names in UTF-8", "policy, study");
    return rc;
}

static int read_lines(struct trace_reader *r, hid_t at, struct strv *out)
{
    hsize_t dims[2];
    AUTO_H5 hid_t set = -1;
    int rc = trace_piece_set(r, at, "log", 1, &set, dims);
    if (rc < 0)
        return rc;
    AUTO_H5 hid_t type = H5Dget_type(set);
    if (H5Tget_class(type) != H5T_STRING)
        return trace_piece_refuse(r, "holds no texts", "log");
    if (dims[0] > r->rows_left)
        return trace_piece_refuse(r, "has too many rows", "log");
    size_t n = (size_t)dims[0];
    r->rows_left -= n;
    AUTO_FREE char **lines = calloc(n + 1, sizeof *lines);
    if (!lines)
        return trace_piece_no_memory(r);
    rc = trace_piece_texts(r, &(struct trace_texts){ set, false, NULL, n }, type, "log", lines);
    for (size_t i = 0; i < n; i++) {
        if (rc == 0 && strchr(lines[i], '\n'))
            rc = trace_piece_refuse(r, "holds what is not one line", "log");
        if (rc == 0)
            strv_take(out, MOVE_PTR(lines[i]));
        free(lines[i]);
    }
    return rc == 0 && out->failed ? trace_piece_no_memory(r) : rc;
}

static int read_decision_texts(struct trace_reader *r, const struct rows *t, struct trace_decision *d)
{
    const struct {
        const char *name;
        char **at;
    } columns[] = { { "kind", &d->kind }, { "setting", &d->setting }, { "reason", &d->reason } };
    int rc = 0;
    for (size_t i = 0; i < ARRAY_LEN(columns) && rc == 0; i++)
        rc = column_index(t->in_file, columns[i].name, true) < 0
                 ? trace_piece_refuse(r, "has no columns 'kind', 'setting' and 'reason'", t->name)
                 : read_text_column(r, t, columns[i].name, columns[i].at, sizeof *d);
    return rc;
}

static int read_decision_heads(struct trace_reader *r, const struct rows *t, struct trace_decision *d)
{
    AUTO_FREE int64_t *seqs = calloc(t->n + 1, sizeof *seqs);
    AUTO_FREE int *trials = calloc(t->n + 1, sizeof *trials);
    AUTO_FREE double *times = calloc(t->n + 1, sizeof *times);
    if (!seqs || !trials || !times)
        return trace_piece_no_memory(r);
    if (column_index(t->in_file, "seq", false) < 0 || column_index(t->in_file, "trial", false) < 0 ||
        column_index(t->in_file, "t_s", false) < 0)
        return trace_piece_refuse(r, "has no columns 'seq', 'trial' and 't_s'", t->name);
    int rc = read_number_column(r, t, "seq", H5T_NATIVE_INT64, sizeof *seqs, seqs);
    if (rc == 0)
        rc = read_number_column(r, t, "trial", H5T_NATIVE_INT, sizeof *trials, trials);
    if (rc == 0)
        rc = read_number_column(r, t, "t_s", H5T_NATIVE_DOUBLE, sizeof *times, times);
    for (size_t i = 0; i < t->n; i++) {
        d[i].seq = seqs[i];
        d[i].trial = trials[i];
        d[i].t_s = times[i];
    }
    return rc;
}

static int read_decisions(struct trace_reader *r, hid_t at, struct trace_tuner *t)
{
    AUTO_H5 hid_t set = -1, type = -1;
    size_t n = 0;
    int rc = open_table(r, at, "decisions", &set, &type, &n);
    if (rc < 0)
        return rc;
    t->decisions = calloc(n + 1, sizeof *t->decisions);
    if (!t->decisions)
        return trace_piece_no_memory(r);
    t->n_decisions = n;
    const struct rows rows = { set, type, "decisions", n };
    rc = read_decision_heads(r, &rows, t->decisions);
    return rc < 0 ? rc : read_decision_texts(r, &rows, t->decisions);
}

static int read_tuner(struct trace_reader *r, hid_t file, struct trace_tuner *t)
{
    if (!trace_piece_has(file, "tuner"))
        return 0;
    (void)snprintf(r->at, sizeof r->at, "the tuner");
    AUTO_H5 hid_t at = -1;
    int rc = trace_piece_group(r, file, "tuner", &at);
    if (rc == 0)
        rc = read_names(r, at, t);
    if (rc == 0)
        rc = read_lines(r, at, &t->log);
    return rc < 0 ? rc : read_decisions(r, at, t);
}

/* --- files --- */

/* Without locks: they fail on some network file systems, and whoever writes traces replaces them whole. */
static hid_t open_file(const char *path)
{
    AUTO_H5 hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0 || H5Pset_file_locking(access, false, true) < 0)
        return -1;
    return H5Fopen(path, H5F_ACC_RDONLY, access);
}

/* HDF5 clears a megabyte for each small table, unless it is told that less will do. */
static hid_t transfer_properties(void)
{
    hid_t p = H5Pcreate(H5P_DATASET_XFER);
    if (p >= 0)
        (void)H5Pset_buffer(p, TRANSFER_BYTES, NULL, NULL); /* else it is slow */
    return p;
}

int trace_read_here(struct trace *out, const char *path, struct err *e)
{
    struct trace_reader r = {
        .path = path, .at = "the file", .rows_left = TRACE_ROWS_MAX, .cells_left = TRACE_CELLS_MAX, .e = e
    };
    trace_h5_init();
    AUTO_H5 hid_t transfer = transfer_properties();
    AUTO_H5 hid_t file = open_file(path);
    r.transfer = transfer;
    if (transfer < 0)
        return trace_piece_no_memory(&r);
    if (file < 0)
        return trace_h5_error(e, -EPROTO, "'%s' is no HDF5 file that can be read", path);
    struct trace t = { 0 };
    int rc = read_meta(&r, file, &t);
    if (rc == 0)
        rc = read_runs(&r, file, &t);
    if (rc == 0)
        rc = read_tuner(&r, file, &t.tuner);
    if (rc < 0)
        trace_done(&t);
    else
        *out = t;
    return rc;
}
