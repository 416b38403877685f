/* Pictures that view/svg.h has not, as SVG elements: lines told apart by colour and dashes, points, parallel coordinates, and lanes over time. No script and
 * no style within: the page's style sheet gives the colours. All texts are escaped here. Pure. False, and nothing is put: there is nothing to be seen. */
#ifndef SERVE_PLOT_H
#define SERVE_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { PLOT_KINDS = 6 }; /* looks of lines that can be told apart */

struct plot_line {
    const char *title;
    const double *x, *y; /* NAN: a gap */
    size_t n;
};
/* The i-th line looks as kind i % PLOT_KINDS, and the legend below says which it is. */
bool plot_lines(struct buf *b, const char *x_name, const char *y_name, const struct plot_line *lines, size_t n);

struct plot_axis {
    const char *name;
    bool log;
    const char *const *words; /* what the values 0, 1, … stand for; NULL: numbers */
    size_t n_words;
};

struct plot_point {
    double x, y;
    const char *title, *href; /* NULL: none */
    bool strong;
};
bool plot_points(struct buf *b, const struct plot_axis *x, const struct plot_axis *y, const struct plot_point *points,
                 size_t n);

/* One line per row over the axes: `values` has n_axes of each row, NAN: absent. */
struct plot_row {
    const double *values;
    const char *title;
    bool strong;
};
bool plot_parallel(struct buf *b, const struct plot_axis *axes, size_t n_axes, const struct plot_row *rows, size_t n);

struct plot_bar {
    size_t lane;
    double from, to;
    unsigned kind;     /* % PLOT_KINDS */
    const char *label; /* within it, where there is room */
    const char *title;
};
struct plot_mark {
    size_t lane;
    double at;
    const char *title;
};
bool plot_lanes(struct buf *b, const char *x_name, const char *const *lanes, size_t n_lanes,
                const struct plot_bar *bars, size_t n_bars, const struct plot_mark *marks, size_t n_marks);

#endif
