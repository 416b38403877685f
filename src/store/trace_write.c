#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/own.h"
#include "store/trace.h"
#include "store/trace_h5.h"

/* In here a negative number means that HDF5 failed, and its error stack tells why: trace_write() explains it once. */

static int put_text(hid_t at, const char *name, const char *text)
{
    AUTO_H5 hid_t type = trace_h5_text_type();
    AUTO_H5 hid_t space = H5Screate(H5S_SCALAR);
    AUTO_H5 hid_t attr = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    return attr < 0 ? -1 : H5Awrite(attr, type, &text);
}

static int put_number(hid_t at, const char *name, hid_t type, const void *value)
{
    AUTO_H5 hid_t space = H5Screate(H5S_SCALAR);
    AUTO_H5 hid_t attr = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    return attr < 0 ? -1 : H5Awrite(attr, type, value);
}

static hid_t new_group(hid_t at, const char *name)
{
    AUTO_H5 hid_t properties = H5Pcreate(H5P_GROUP_CREATE);
    if (properties < 0 || H5Pset_obj_track_times(properties, false) < 0)
        return -1;
    return H5Gcreate2(at, name, H5P_DEFAULT, properties, H5P_DEFAULT);
}

static int put_meta(hid_t file, const struct trace *t)
{
    AUTO_H5 hid_t meta = new_group(file, "meta");
    AUTO_H5 hid_t text = trace_h5_text_type();
    int version = TRACE_VERSION;
    hsize_t n = t->features.n;
    if (meta < 0 || put_number(meta, "version", H5T_NATIVE_INT, &version) < 0)
        return -1;
    return trace_h5_array(meta, "features", text, 1, &n, t->features.v);
}

static int put_attributes(hid_t at, const struct trace_run *r)
{
    const struct {
        const char *name, *text;
    } rows[] = {
        { "model", r->model ? r->model : "" },         { "dataset", r->dataset ? r->dataset : "" },
        { "system", r->system ? r->system : "{}" },    { "hyper", r->hyper ? r->hyper : "{}" },
        { "status", timeline_status_name(r->status) },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (put_text(at, rows[i].name, rows[i].text) < 0)
            return -1;
    if (r->results && put_text(at, "results", r->results) < 0)
        return -1;
    return put_number(at, "startup_s", H5T_NATIVE_DOUBLE, &r->startup_s);
}

static int put_epochs(hid_t at, const struct trace_run *r)
{
    AUTO_H5 hid_t type = trace_h5_row_type(sizeof *r->epochs, 0);
    hsize_t n = r->n_epochs;
    return type < 0 ? -1 : trace_h5_array(at, "epochs", type, 1, &n, r->epochs);
}

static int put_windows(hid_t at, const struct trace_run *r)
{
    if (r->n_windows == 0)
        return 0;
    AUTO_H5 hid_t type = trace_h5_row_type(sizeof *r->windows, offsetof(struct trace_window, at));
    AUTO_H5 hid_t text = trace_h5_text_type();
    hsize_t n = r->n_windows;
    if (H5Tinsert(type, "epoch", offsetof(struct trace_window, epoch), H5T_NATIVE_INT) < 0 ||
        H5Tinsert(type, "setting", offsetof(struct trace_window, setting), text) < 0)
        return -1;
    return trace_h5_array(at, "windows", type, 1, &n, r->windows);
}

static int put_samples(hid_t at, const struct trace_samples *s, size_t features)
{
    if (s->n == 0)
        return 0;
    hsize_t dims[2] = { s->n, features };
    const struct {
        const char *name;
        hid_t type;
        int rank;
        const void *data;
    } rows[] = {
        { "t_ns", H5T_NATIVE_INT64, 1, s->t_ns },    { "node", H5T_NATIVE_UINT16, 1, s->node },
        { "value", H5T_NATIVE_DOUBLE, 2, s->value }, { "state", H5T_NATIVE_UINT8, 2, s->state },
        { "ratio", H5T_NATIVE_FLOAT, 2, s->ratio },
    };
    AUTO_H5 hid_t group = new_group(at, "samples");
    if (group < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (trace_h5_array(group, rows[i].name, rows[i].type, rows[i].rank, dims, rows[i].data) < 0)
            return -1;
    return 0;
}

static int put_run(hid_t runs, size_t index, const struct trace *t)
{
    const struct trace_run *r = &t->runs[index];
    char name[24];
    (void)snprintf(name, sizeof name, "%zu", index);
    AUTO_H5 hid_t group = new_group(runs, name);
    if (group < 0 || put_attributes(group, r) < 0 || put_epochs(group, r) < 0 || put_windows(group, r) < 0)
        return -1;
    return put_samples(group, &r->samples, t->features.n);
}

/* --- /tuner --- */

static hid_t decision_type(void)
{
    AUTO_H5 hid_t text = trace_h5_text_type();
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(struct trace_decision));
    const struct {
        const char *name;
        size_t offset;
        hid_t type;
    } columns[] = {
        { "seq", offsetof(struct trace_decision, seq), H5T_NATIVE_INT64 },
        { "trial", offsetof(struct trace_decision, trial), H5T_NATIVE_INT },
        { "t_s", offsetof(struct trace_decision, t_s), H5T_NATIVE_DOUBLE },
        { "kind", offsetof(struct trace_decision, kind), text },
        { "setting", offsetof(struct trace_decision, setting), text },
        { "reason", offsetof(struct trace_decision, reason), text },
    };
    for (size_t i = 0; i < ARRAY_LEN(columns) && type >= 0; i++) {
        if (H5Tinsert(type, columns[i].name, columns[i].offset, columns[i].type) < 0) {
            trace_h5_close(&type);
            type = -1;
        }
    }
    return type;
}

static int put_tuner(hid_t file, const struct trace_tuner *t)
{
    if (!t->policy)
        return 0;
    AUTO_H5 hid_t group = new_group(file, "tuner");
    AUTO_H5 hid_t text = trace_h5_text_type();
    AUTO_H5 hid_t row = decision_type();
    hsize_t lines = t->log.n, decisions = t->n_decisions;
    if (group < 0 || put_text(group, "policy", t->policy) < 0 || put_text(group, "study", t->study) < 0 ||
        trace_h5_array(group, "log", text, 1, &lines, t->log.v) < 0)
        return -1;
    return trace_h5_array(group, "decisions", row, 1, &decisions, t->decisions);
}

static int put_all(hid_t file, const struct trace *t)
{
    if (put_meta(file, t) < 0)
        return -1;
    AUTO_H5 hid_t runs = new_group(file, "runs");
    if (runs < 0)
        return -1;
    for (size_t i = 0; i < t->n; i++)
        if (put_run(runs, i, t) < 0)
            return -1;
    return put_tuner(file, &t->tuner);
}

int trace_write(const struct trace *t, const char *path, struct err *e)
{
    trace_h5_init();
    AUTO_H5 hid_t file = trace_h5_memory_file();
    if (file < 0 || put_all(file, t) < 0)
        return trace_h5_error(e, -EIO, "cannot write '%s'", path);
    return trace_h5_write(file, path, e);
}
