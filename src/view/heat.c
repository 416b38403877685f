#include "view/heat.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int heat_init(struct heat *h, const char *const *names, bool (*gauge)(size_t row), size_t rows, size_t cols)
{
    struct heat_cell *cells = calloc(rows * cols + 1, sizeof *cells); /* + 1: calloc(0) may give NULL */
    if (!cells)
        return -ENOMEM;
    for (size_t i = 0; i < rows * cols; i++)
        cells[i].why = READING_ABSENT;
    *h = (struct heat){ .rows = rows, .cols = cols, .names = names, .gauge = gauge, .cells = cells };
    return 0;
}

void heat_done(struct heat *h)
{
    if (!h)
        return;
    free(h->cells);
    *h = (struct heat){ 0 };
}

static bool is_measured(const struct reading *r)
{
    return (r->state == READING_OK || r->state == READING_MULTIPLEXED) && isfinite(r->value);
}

void heat_add(struct heat *h, size_t col, double dt_s, double share, const struct reading *readings)
{
    double seconds = dt_s * share;
    if (!(seconds > 0))
        return;
    for (size_t row = 0; row < h->rows; row++) {
        struct heat_cell *c = &h->cells[row * h->cols + col];
        const struct reading *r = &readings[row];
        if (!is_measured(r)) {
            c->why = c->why == READING_ABSENT ? (enum reading_state)r->state : c->why;
            continue;
        }
        c->sum += r->value * (h->gauge(row) ? seconds : share);
        c->seconds += seconds;
        c->counted += seconds * (r->state == READING_MULTIPLEXED ? (double)r->ratio : 1.0);
    }
}

double heat_share(double end_s, double length_s, double from_s, double to_s)
{
    double overlap_s = fmin(end_s, to_s) - fmax(end_s - length_s, from_s);
    return length_s > 0 && overlap_s > 0 ? fmin(1.0, overlap_s / length_s) : 0.0;
}

double heat_rate(const struct heat *h, size_t row, size_t col)
{
    const struct heat_cell *c = &h->cells[row * h->cols + col];
    return c->seconds > 0 ? c->sum / c->seconds : (double)NAN;
}

double heat_level(const struct heat *h, size_t row, size_t col)
{
    double rate = heat_rate(h, row, col), most = 0;
    for (size_t i = 0; i < h->cols; i++)
        most = fmax(most, heat_rate(h, row, i)); /* fmax() passes over NAN */
    return isnan(rate) || most == 0 ? rate : fmax(0, rate / most);
}

bool heat_has(const struct heat *h, size_t row)
{
    for (size_t i = 0; i < h->cols; i++)
        if (h->cells[row * h->cols + i].seconds > 0)
            return true;
    return false;
}

enum reading_state heat_why(const struct heat *h, size_t row)
{
    for (size_t i = 0; i < h->cols; i++)
        if (h->cells[row * h->cols + i].why != READING_ABSENT)
            return h->cells[row * h->cols + i].why;
    return READING_ABSENT;
}
