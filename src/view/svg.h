/* Pictures as SVG elements for a page of HTML: a chart of lines and a heat map. No script, no reference to anything outside; the
 * page's style sheet (svg_style()) gives the colours. Pure. */
#ifndef VIEW_SVG_H
#define VIEW_SVG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "view/heat.h"

/* The text with what HTML and SVG would take for their own (& < > " ') escaped; fit for elements and quoted attributes. What is
 * not fit to be seen becomes what utf8_put_plain() makes of it. NULL puts nothing. */
void svg_escape(struct buf *b, const char *text);

/* The rules that the pictures need, without the <style> around them. */
void svg_style(struct buf *b);

/* What the pictures refer to: once in the page, before them. */
void svg_defs(struct buf *b);

struct svg_line {
    const char *title; /* shown when pointed at; escaped here */
    const double *x, *y;
    size_t n;                 /* points; one whose y is NAN interrupts the line */
    bool strong;              /* drawn last and in colour */
    const double *low, *high; /* of what is foretold: a band, and the line within it is dashed; NULL: told */
};

/* Lines over x. False, and nothing is put, when no point has a y. */
bool svg_chart(struct buf *b, const char *x_name, const char *y_name, const struct svg_line *lines, size_t n);

enum { SVG_BAR_PARTS = 2, SVG_BAR_SERIES = 8 };

struct svg_bar {
    double parts[SVG_BAR_PARTS]; /* one on the other, from 0; one that is not finite or below 0: there is no bar */
    double half;                 /* of an interval about the top, cut where it leaves the picture; NAN: there is none */
};

struct svg_bars {
    const char *y_name;
    const char *const *groups; /* along the bottom */
    const char *const *series; /* a colour each; at most SVG_BAR_SERIES */
    size_t n_groups, n_series;
    const char *parts[SVG_BAR_PARTS]; /* the lower one is pale */
    const struct svg_bar *bars;       /* n_series of each group */
};

/* Bars side by side in groups, with a legend above. False, and nothing is put, when there is no bar. The names are escaped here. */
bool svg_bars(struct buf *b, const struct svg_bars *what);

/* The rows that were measured, darkest where a row is at its greatest; absent cells are hatched. `cols` names the columns; both names
 * are escaped here. False, and nothing is put, when nothing was measured. */
bool svg_heat(struct buf *b, const struct heat *h, const char *const *cols);

#endif
