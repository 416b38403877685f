/* The factor, and what it foretells. Row r of `low` is of the r-th value: low low' is the covariance of what was seen; v[r] is the same row, solved for
 * each column, so that a value more costs one pass over the columns. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/thaw_state.h"

enum { STRIDE = THAW_ROWS_MAX + THAW_SUPPOSED_MAX, LANES = 8 };

/* Each array may have become larger when another could not: they are as good as before. */
static int grow(double **x, size_t n)
{
    double *grown = realloc(*x, n * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    *x = grown;
    return 0;
}

static int grow_columns(struct thaw_field *f, size_t cols)
{
    int rc = 0;
    for (size_t r = 0; rc == 0 && r < f->n_ready; r++)
        rc = grow(&f->v[r], cols);
    rc = rc == 0 ? grow(&f->mean, cols) : rc;
    rc = rc == 0 ? grow(&f->var, cols) : rc;
    rc = rc == 0 ? grow(&f->var_kept, cols) : rc;
    if (rc == 0)
        f->cap_cols = cols;
    return rc;
}

static int grow_entries(struct thaw_field *f, size_t n)
{
    struct thaw_entry *grown = realloc(f->entries, n * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    f->entries = grown;
    f->cap_entries = n;
    return 0;
}

int thaw_field_reserve(struct thaw *t, size_t entries, size_t rows)
{
    struct thaw_field *f = &t->field;
    rows = rows < STRIDE ? rows : STRIDE;
    if (!f->low && grow(&f->low, (size_t)STRIDE * STRIDE) < 0)
        return -ENOMEM;
    if (entries > f->cap_entries && grow_entries(f, entries + THAW_POOL / 4) < 0)
        return -ENOMEM;
    size_t cols = f->cap_entries * (size_t)t->times.n;
    if (cols > f->cap_cols && grow_columns(f, cols) < 0)
        return -ENOMEM;
    for (; f->n_ready < rows; f->n_ready++)
        if (grow(&f->v[f->n_ready], f->cap_cols) < 0)
            return -ENOMEM;
    return 0;
}

void thaw_field_done(struct thaw_field *f)
{
    for (size_t r = 0; r < f->n_ready; r++)
        free(f->v[r]);
    free(f->low);
    free(f->mean);
    free(f->var);
    free(f->var_kept);
    free(f->entries);
}

void thaw_field_clear(struct thaw *t)
{
    t->field.n_rows = t->field.n_supposed = t->field.n_entries = t->field.cols = 0;
}

/* x -= a y, in lanes that a compiler makes one operation of. */
static void subtract(double *restrict x, const double *restrict y, double a, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            x[i + k] -= a * y[i + k];
    for (; i < n; i++)
        x[i] -= a * y[i];
}

/* Row r of v, for columns from `first` to `end`. */
static void solve_columns(struct thaw *t, size_t r, size_t first, size_t end)
{
    struct thaw_field *f = &t->field;
    const struct thaw_row *row = &f->rows[r];
    const struct unit_point *at = &t->trials[row->trial].place;
    size_t steps = (size_t)t->times.n;
    double *v = f->v[r];
    for (size_t c = first; c < end; c += steps) {
        const struct thaw_entry *e = &f->entries[c / steps];
        double alike = thaw_alike(&t->places, &t->hyper, at, &e->place);
        for (size_t s = 0; s < steps; s++)
            v[c + s] = alike * t->steps.shared[row->step][s];
        for (size_t s = 0; s < steps && e->trial == (long)row->trial; s++)
            v[c + s] += t->steps.own[row->step][s];
    }
    const double *low = f->low + r * STRIDE;
    for (size_t k = 0; k < r; k++)
        subtract(v + first, f->v[k] + first, low[k], end - first);
    for (size_t c = first; c < end; c++) {
        v[c] /= low[r];
        f->mean[c] += v[c] * f->solved[r];
        f->var[c] -= v[c] * v[c];
    }
}

void thaw_field_entry(struct thaw *t, const struct thaw_entry *e)
{
    struct thaw_field *f = &t->field;
    size_t first = f->cols, steps = (size_t)t->times.n;
    f->entries[f->n_entries++] = *e;
    f->cols += steps;
    for (size_t s = 0; s < steps; s++) {
        f->mean[first + s] = 0;
        f->var[first + s] = t->steps.shared[s][s] + t->steps.own[s][s];
    }
    for (size_t r = 0; r < f->n_rows; r++)
        solve_columns(t, r, first, f->cols);
}

/* The next row of the factor. */
static void factor_row(struct thaw *t, size_t r)
{
    struct thaw_field *f = &t->field;
    const struct thaw_row *row = &f->rows[r];
    double *low = f->low + r * STRIDE, left = row->value;
    for (size_t k = 0; k <= r; k++) {
        const struct thaw_row *o = &f->rows[k];
        const double *of = f->low + k * STRIDE;
        bool same = o->trial == row->trial;
        double alike =
            same ? 1 : thaw_alike(&t->places, &t->hyper, &t->trials[row->trial].place, &t->trials[o->trial].place);
        double c = alike * t->steps.shared[row->step][o->step] + (same ? t->steps.own[row->step][o->step] : 0);
        if (k == r)
            c += t->hyper.noise * t->hyper.noise + 1e-8;
        for (size_t i = 0; i < k; i++)
            c -= low[i] * of[i];
        low[k] = k == r ? sqrt(fmax(c, 1e-10)) : c / of[k];
        if (k < r)
            left -= low[k] * f->solved[k];
    }
    f->solved[r] = left / low[r];
}

void thaw_field_row(struct thaw *t, const struct thaw_row *row)
{
    struct thaw_field *f = &t->field;
    size_t r = f->n_rows;
    f->rows[f->n_rows++] = *row;
    factor_row(t, r);
    solve_columns(t, r, 0, f->cols);
}

/* A value as it is expected changes no mean: only what is still open there, and near there. */
void thaw_field_suppose(struct thaw *t, uint64_t trial, int step)
{
    struct thaw_field *f = &t->field;
    if (f->n_supposed == 0)
        memcpy(f->var_kept, f->var, f->cols * sizeof *f->var);
    f->n_supposed++;
    size_t r = f->n_rows++;
    f->rows[r] = (struct thaw_row){ trial, step, 0 };
    factor_row(t, r);
    f->solved[r] = 0;
    solve_columns(t, r, 0, f->cols);
}

void thaw_field_unsuppose(struct thaw *t)
{
    struct thaw_field *f = &t->field;
    if (f->n_supposed > 0)
        memcpy(f->var, f->var_kept, f->cols * sizeof *f->var);
    f->n_rows -= f->n_supposed;
    f->n_supposed = 0;
}
