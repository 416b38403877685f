#include "serve/plot.h"

#include <math.h>
#include <string.h>

#include "base/own.h"
#include "view/svg.h"
#include "view/table.h"

enum { WIDE = 760, HIGH = 300, LEFT = 64, RIGHT = 16, TOP = 22, BOTTOM = 40, TICKS = 4 };

struct range {
    double from, to;
    bool log;
};

static bool fits(const struct range *r, double v)
{
    return isfinite(v) && (!r->log || v > 0);
}

static void widen(struct range *r, double v)
{
    if (!fits(r, v))
        return;
    r->from = fmin(r->from, v);
    r->to = fmax(r->to, v);
}

#define RANGE_NONE(is_log) ((struct range){ INFINITY, -INFINITY, is_log })

static bool is_empty(const struct range *r)
{
    return !(r->from <= r->to);
}

static void settle(struct range *r)
{
    if (r->from < r->to)
        return;
    double by = r->log ? r->from / 2 : fabs(r->from) > 0 ? fabs(r->from) * 0.05 : 0.5;
    r->from -= by;
    r->to += by;
}

/* 0…1; of a range that is too wide to be reckoned with, its beginning. */
static double share(const struct range *r, double v)
{
    double s = r->log ? log(v / r->from) / log(r->to / r->from) : (v - r->from) / (r->to - r->from);
    return s > 0 ? fmin(s, 1) : 0;
}

static double at_share(const struct range *r, double s)
{
    return r->log ? r->from * pow(r->to / r->from, s) : r->from + s * (r->to - r->from);
}

static double x_of(const struct range *r, double v)
{
    return LEFT + share(r, v) * (WIDE - LEFT - RIGHT);
}

static double y_of(const struct range *r, double v, int high)
{
    return high - BOTTOM - share(r, v) * (high - TOP - BOTTOM);
}

static void put_title(struct buf *b, const char *title)
{
    if (!title)
        return;
    buf_puts(b, "<title>");
    svg_escape(b, title);
    buf_puts(b, "</title>");
}

static void put_text(struct buf *b, double x, double y, const char *class, const char *text)
{
    buf_printf(b, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
    svg_escape(b, text);
    buf_puts(b, "</text>");
}

static void put_digits(struct buf *b, double x, double y, const char *class, double value)
{
    char digits[32];
    put_text(b, x, y, class, table_digits(value, digits));
}

static void begin(struct buf *b, int high, const char *what)
{
    buf_printf(b, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"", WIDE, high, WIDE,
               high);
    svg_escape(b, what);
    buf_puts(b, "\">\n");
}

/* Epochs are whole: so are their ticks. */
static double tick_of(const struct range *r, int i)
{
    double wide = r->to - r->from, step = ceil(wide / TICKS);
    bool whole = !r->log && floor(r->from) == r->from && floor(r->to) == r->to && wide >= 1 && wide < 1e9;
    return whole ? r->from + step * i : at_share(r, (double)i / TICKS);
}

static void put_x_ticks(struct buf *b, const struct range *x)
{
    for (int i = 0; i <= TICKS; i++) {
        double v = tick_of(x, i);
        if (v <= x->to)
            put_digits(b, x_of(x, v), HIGH - BOTTOM + 16, "middle", v);
    }
}

static void put_y_ticks(struct buf *b, const struct range *y)
{
    for (int i = 0; i <= TICKS; i++) {
        double s = (double)i / TICKS, at = HIGH - BOTTOM - s * (HIGH - TOP - BOTTOM);
        buf_printf(b, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT, at, WIDE - RIGHT);
        put_digits(b, LEFT - 6, at + 4, "right", at_share(y, s));
    }
}

static void put_frame(struct buf *b, const char *x_name, const char *y_name, const struct range *y)
{
    put_y_ticks(b, y);
    buf_printf(b, "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>", LEFT, TOP, HIGH - BOTTOM, WIDE - RIGHT);
    put_text(b, WIDE - RIGHT, HIGH - 6, "right note", x_name);
    put_text(b, 4, TOP - 9, "note", y_name);
}

/* --- lines --- */

static void put_path(struct buf *b, const struct plot_line *l, size_t kind, const struct range *x,
                     const struct range *y)
{
    bool down = false;
    buf_printf(b, "<path class=\"k k%zu\" d=\"", kind % PLOT_KINDS);
    for (size_t i = 0; i < l->n; i++) {
        bool there = isfinite(l->x[i]) && isfinite(l->y[i]);
        if (there)
            buf_printf(b, "%c%.1f %.1f", down ? 'L' : 'M', x_of(x, l->x[i]), y_of(y, l->y[i], HIGH));
        down = there;
    }
    buf_puts(b, "\">");
    put_title(b, l->title);
    buf_puts(b, "</path>\n");
    for (size_t i = 0; i < l->n && l->n <= 60; i++)
        if (isfinite(l->x[i]) && isfinite(l->y[i]))
            buf_printf(b, "<circle class=\"f%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.2\"/>", kind % PLOT_KINDS,
                       x_of(x, l->x[i]), y_of(y, l->y[i], HIGH));
}

static void put_legend(struct buf *b, const struct plot_line *lines, size_t n)
{
    buf_puts(b, "<ul class=\"plain\">");
    for (size_t i = 0; i < n; i++) {
        buf_printf(b,
                   "<li><svg class=\"key\" width=\"34\" height=\"10\" viewBox=\"0 0 34 10\" aria-hidden=\"true\">"
                   "<path class=\"k k%zu\" d=\"M0 5H34\"/></svg> ",
                   i % PLOT_KINDS);
        svg_escape(b, lines[i].title);
        buf_puts(b, "</li>\n");
    }
    buf_puts(b, "</ul>\n");
}

bool plot_lines(struct buf *b, const char *x_name, const char *y_name, const struct plot_line *lines, size_t n)
{
    struct range x = RANGE_NONE(false), y = RANGE_NONE(false);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < lines[i].n; k++)
            if (isfinite(lines[i].y[k])) {
                widen(&x, lines[i].x[k]);
                widen(&y, lines[i].y[k]);
            }
    if (is_empty(&x) || is_empty(&y))
        return false;
    settle(&x);
    settle(&y);
    buf_puts(b, "<div class=\"wide\">");
    begin(b, HIGH, y_name);
    put_frame(b, x_name, y_name, &y);
    put_x_ticks(b, &x);
    for (size_t i = 0; i < n; i++)
        put_path(b, &lines[i], i, &x, &y);
    buf_puts(b, "</svg></div>\n");
    if (n > 1)
        put_legend(b, lines, n);
    return true;
}

/* --- points --- */

static struct range range_of(const struct plot_axis *a)
{
    struct range r = RANGE_NONE(a->log && !a->words);
    if (a->words && a->n_words > 0)
        r = (struct range){ -0.5, (double)a->n_words - 0.5, false };
    return r;
}

static void put_dot(struct buf *b, const struct plot_point *p, const struct range *x, const struct range *y)
{
    if (!fits(x, p->x) || !fits(y, p->y))
        return;
    if (p->href) {
        buf_puts(b, "<a href=\"");
        svg_escape(b, p->href);
        buf_puts(b, "\">");
    }
    buf_printf(b, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\">", p->strong ? "front" : "dot", x_of(x, p->x),
               y_of(y, p->y, HIGH), p->strong ? "5" : "3.5");
    put_title(b, p->title);
    buf_puts(b, "</circle>");
    buf_puts(b, p->href ? "</a>\n" : "\n");
}

static void put_words(struct buf *b, const struct plot_axis *a, const struct range *r)
{
    for (size_t i = 0; i < a->n_words; i++)
        put_text(b, x_of(r, (double)i), HIGH - BOTTOM + 16, "middle", a->words[i]);
}

bool plot_points(struct buf *b, const struct plot_axis *x, const struct plot_axis *y, const struct plot_point *points,
                 size_t n)
{
    struct range rx = range_of(x), ry = range_of(y);
    for (size_t i = 0; i < n; i++) {
        if (!fits(&rx, points[i].x) || !fits(&ry, points[i].y))
            continue;
        widen(&rx, points[i].x);
        widen(&ry, points[i].y);
    }
    if (is_empty(&rx) || is_empty(&ry))
        return false;
    settle(&rx);
    settle(&ry);
    buf_puts(b, "<div class=\"wide\">");
    begin(b, HIGH, x->name);
    put_frame(b, x->name, y->name, &ry);
    if (x->words)
        put_words(b, x, &rx);
    else
        put_x_ticks(b, &rx);
    for (int strong = 0; strong < 2; strong++)
        for (size_t i = 0; i < n; i++)
            if (points[i].strong == (strong == 1))
                put_dot(b, &points[i], &rx, &ry);
    buf_puts(b, "</svg></div>\n");
    return true;
}

/* --- parallel coordinates --- */

enum { AXES_MAX = 16, WORDS_SHOWN = 12 };

static double axis_x(size_t i, size_t n)
{
    return n < 2 ? WIDE / 2.0 : LEFT + (double)i * (WIDE - 2.0 * LEFT) / (double)(n - 1);
}

static void put_axis(struct buf *b, const struct plot_axis *a, const struct range *r, double x)
{
    buf_printf(b, "<path class=\"axis\" d=\"M%.1f %dV%d\"/>", x, TOP + 10, HIGH - BOTTOM);
    put_text(b, x, HIGH - 8, "middle", a->name);
    if (a->words) {
        for (size_t i = 0; i < a->n_words && i < WORDS_SHOWN; i++)
            put_text(b, x + 4, y_of(r, (double)i, HIGH) + 4, "note", a->words[i]);
        return;
    }
    put_digits(b, x, HIGH - BOTTOM + 14, "middle note", r->from);
    put_digits(b, x, TOP + 4, "middle note", r->to);
}

static void put_row(struct buf *b, const struct plot_row *row, const struct range *r, size_t n_axes)
{
    bool down = false;
    buf_printf(b, "<path class=\"%s\" d=\"", row->strong ? "line strong" : "thin");
    for (size_t a = 0; a < n_axes; a++) {
        bool there = fits(&r[a], row->values[a]);
        if (there)
            buf_printf(b, "%c%.1f %.1f", down ? 'L' : 'M', axis_x(a, n_axes), y_of(&r[a], row->values[a], HIGH));
        down = there;
    }
    buf_puts(b, "\">");
    put_title(b, row->title);
    buf_puts(b, "</path>\n");
}

bool plot_parallel(struct buf *b, const struct plot_axis *axes, size_t n_axes, const struct plot_row *rows, size_t n)
{
    struct range r[AXES_MAX];
    bool any = false;
    n_axes = n_axes < AXES_MAX ? n_axes : AXES_MAX;
    for (size_t a = 0; a < n_axes; a++) {
        r[a] = range_of(&axes[a]);
        for (size_t i = 0; i < n; i++)
            widen(&r[a], rows[i].values[a]);
        any |= !is_empty(&r[a]);
        settle(&r[a]);
    }
    if (!any || n_axes < 2)
        return false;
    buf_puts(b, "<div class=\"wide\">");
    begin(b, HIGH, "parallel coordinates");
    for (int strong = 0; strong < 2; strong++)
        for (size_t i = 0; i < n; i++)
            if (rows[i].strong == (strong == 1))
                put_row(b, &rows[i], r, n_axes);
    for (size_t a = 0; a < n_axes; a++)
        if (!is_empty(&r[a]))
            put_axis(b, &axes[a], &r[a], axis_x(a, n_axes));
    buf_puts(b, "</svg></div>\n");
    return true;
}

/* --- lanes --- */

enum { LANE = 22, LANE_LEFT = 110, LETTER = 7 };

static double lane_x(const struct range *r, double v)
{
    return LANE_LEFT + share(r, v) * (WIDE - LANE_LEFT - RIGHT);
}

static void put_bar(struct buf *b, const struct plot_bar *bar, const struct range *r)
{
    double from = lane_x(r, bar->from), width = fmax(lane_x(r, bar->to) - from, 1.5),
           y = TOP + (double)bar->lane * LANE;
    buf_printf(b, "<rect class=\"run f%u\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\">", bar->kind % PLOT_KINDS,
               from, y + 3, width, LANE - 6);
    put_title(b, bar->title);
    buf_puts(b, "</rect>\n");
    if (bar->label && width > (double)strlen(bar->label) * LETTER)
        put_text(b, from + 3, y + LANE - 7, "in", bar->label);
}

static void put_lane_axis(struct buf *b, const struct range *r, int high, const char *x_name)
{
    for (int i = 0; i <= TICKS; i++) {
        double v = at_share(r, (double)i / TICKS);
        char text[32];
        buf_printf(b, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>", lane_x(r, v), TOP, high - BOTTOM);
        put_text(b, lane_x(r, v), high - BOTTOM + 16, i == TICKS ? "right" : "middle", table_duration(v, text));
    }
    put_text(b, WIDE - RIGHT, high - 6, "right note", x_name);
}

bool plot_lanes(struct buf *b, const char *x_name, const char *const *lanes, size_t n_lanes,
                const struct plot_bar *bars, size_t n_bars, const struct plot_mark *marks, size_t n_marks)
{
    struct range r = RANGE_NONE(false);
    int high = TOP + BOTTOM + (int)n_lanes * LANE;
    for (size_t i = 0; i < n_bars; i++) {
        widen(&r, bars[i].from);
        widen(&r, bars[i].to);
    }
    if (n_lanes == 0 || is_empty(&r))
        return false;
    for (size_t i = 0; i < n_marks; i++)
        widen(&r, marks[i].at);
    settle(&r);
    buf_puts(b, "<div class=\"wide\">");
    begin(b, high, x_name);
    put_lane_axis(b, &r, high, x_name);
    for (size_t i = 0; i < n_lanes; i++)
        put_text(b, LANE_LEFT - 6, TOP + (double)i * LANE + LANE - 7, "right", lanes[i]);
    for (size_t i = 0; i < n_bars; i++)
        if (isfinite(bars[i].from) && isfinite(bars[i].to))
            put_bar(b, &bars[i], &r);
    for (size_t i = 0; i < n_marks; i++) {
        if (!isfinite(marks[i].at))
            continue;
        double x = lane_x(&r, marks[i].at), y = TOP + (double)marks[i].lane * LANE;
        buf_printf(b, "<path class=\"mark\" d=\"M%.1f %.1fl4 5l-4 5l-4 -5z\">", x, y + 6);
        put_title(b, marks[i].title);
        buf_puts(b, "</path>\n");
    }
    buf_puts(b, "</svg></div>\n");
    return true;
}
