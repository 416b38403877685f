#include "view/svg.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "base/utf8.h"

/* --- text --- */

static const char *entity(char c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

void svg_escape(struct buf *b, const char *text)
{
    AUTO_BUF struct buf plain = BUF_INIT;
    utf8_put_plain(&plain, text ? text : "", text ? strlen(text) : 0, UTF8_LINES);
    b->failed |= plain.failed;
    for (const char *c = buf_text(&plain); *c; c++) {
        const char *as = entity(*c);
        if (as)
            buf_puts(b, as);
        else
            buf_putc(b, *c);
    }
}

void svg_style(struct buf *b)
{
    buf_puts(
        b,
        "svg { max-width: 100%; height: auto; font: 11px system-ui, sans-serif; }\n"
        "svg .axis { stroke: #999; fill: none; } svg .grid { stroke: #e4e4e4; fill: none; }\n"
        "svg .line { stroke: #9aa5b1; stroke-width: 1.2; fill: none; } svg .dot { fill: #9aa5b1; }\n"
        "svg .strong { stroke: #0b5fa5; stroke-width: 2.4; } svg .dot.strong { fill: #0b5fa5; stroke: none; }\n"
        "svg .ahead { stroke-dasharray: 4 3; } svg .band { fill: #0b5fa5; fill-opacity: 0.10; stroke: none; }\n"
        "svg .cell { fill: #08519c; stroke: #dfe5ea; stroke-width: 0.5; }\n"
        "svg .absent { fill: url(#hatch); stroke: #dfe5ea; stroke-width: 0.5; }\n"
        "svg .s0 { fill: #7a8793; } svg .s1 { fill: #b5651d; } svg .s2 { fill: #0b5fa5; } svg .s3 { fill: #3a7d44; }\n"
        "svg .s4 { fill: #7b4b94; } svg .s5 { fill: #a61e4d; } svg .s6 { fill: #5c940d; } svg .s7 { fill: #364fc7; }\n"
        "svg .pale { fill-opacity: 0.35; } svg .whisker { stroke: #222; stroke-width: 1; fill: none; }\n"
        "svg text { fill: #222; } svg .right { text-anchor: end; } svg .middle { text-anchor: middle; }\n");
}

void svg_defs(struct buf *b)
{
    buf_puts(b, "<svg width=\"0\" height=\"0\" style=\"position:absolute\"><defs>"
                "<pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
                "<path d=\"M0 6L6 0\" stroke=\"#b8b8b8\"/></pattern></defs></svg>\n");
}

static void put_number(struct buf *b, double x)
{
    buf_printf(b, "%.4g", x);
}

/* --- lines --- */

enum { CHART_W = 760, CHART_H = 300, LEFT = 60, RIGHT = 16, TOP = 12, BOTTOM = 40, TICKS = 4 };

struct range {
    double from, to;
};

struct chart {
    struct buf *b;
    struct range x, y;
};

static void widen(struct range *r, double v)
{
    r->from = fmin(r->from, v);
    r->to = fmax(r->to, v);
}

static bool find_ranges(struct chart *c, const struct svg_line *lines, size_t n)
{
    c->x = c->y = (struct range){ INFINITY, -INFINITY };
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < lines[i].n; k++) {
            if (!isfinite(lines[i].y[k]))
                continue;
            widen(&c->x, lines[i].x[k]);
            widen(&c->y, lines[i].y[k]);
            if (lines[i].low) {
                widen(&c->y, lines[i].low[k]);
                widen(&c->y, lines[i].high[k]);
            }
        }
    }
    if (c->x.from > c->x.to)
        return false;
    if (c->x.from == c->x.to)
        c->x = (struct range){ c->x.from - 1, c->x.to + 1 };
    double pad = c->y.from == c->y.to ? fmax(fabs(c->y.to) * 0.05, 1e-6) : (c->y.to - c->y.from) * 0.05;
    c->y = (struct range){ c->y.from - pad, c->y.to + pad };
    return true;
}

static double at_x(const struct chart *c, double x)
{
    return LEFT + (x - c->x.from) / (c->x.to - c->x.from) * (CHART_W - LEFT - RIGHT);
}

static double at_y(const struct chart *c, double y)
{
    return CHART_H - BOTTOM - (y - c->y.from) / (c->y.to - c->y.from) * (CHART_H - TOP - BOTTOM);
}

static void put_y_ticks(const struct chart *c)
{
    for (int i = 0; i <= TICKS; i++) {
        double v = c->y.from + (c->y.to - c->y.from) * i / TICKS, y = at_y(c, v);
        buf_printf(c->b, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT, y, CHART_W - RIGHT);
        buf_printf(c->b, "<text class=\"right\" x=\"%d\" y=\"%.1f\">", LEFT - 6, y + 4);
        put_number(c->b, v);
        buf_puts(c->b, "</text>\n");
    }
}

/* Epochs are whole numbers, and so are the marks. */
static void put_x_ticks(const struct chart *c)
{
    double step = fmax(1, ceil((c->x.to - c->x.from) / 12));
    for (double v = ceil(c->x.from); v <= c->x.to; v += step)
        buf_printf(c->b, "<text class=\"middle\" x=\"%.1f\" y=\"%d\">%.0f</text>\n", at_x(c, v), CHART_H - BOTTOM + 16,
                   v);
}

static void put_axes(const struct chart *c, const char *x_name, const char *y_name)
{
    put_y_ticks(c);
    put_x_ticks(c);
    buf_printf(c->b, "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>\n", LEFT, TOP, CHART_H - BOTTOM, CHART_W - RIGHT);
    buf_printf(c->b, "<text class=\"middle\" x=\"%d\" y=\"%d\">", (LEFT + CHART_W) / 2, CHART_H - 6);
    svg_escape(c->b, x_name);
    buf_printf(c->b, "</text><text class=\"middle\" transform=\"translate(12 %d) rotate(-90)\">", CHART_H / 2);
    svg_escape(c->b, y_name);
    buf_puts(c->b, "</text>\n");
}

/* There along the high ends, and back along the low ones. */
static void put_band(const struct chart *c, const struct svg_line *l)
{
    buf_puts(c->b, "<path class=\"band\" d=\"");
    for (size_t i = 0; i < 2 * l->n; i++) {
        size_t k = i < l->n ? i : 2 * l->n - 1 - i;
        buf_printf(c->b, "%c%.1f %.1f", i ? 'L' : 'M', at_x(c, l->x[k]), at_y(c, i < l->n ? l->high[k] : l->low[k]));
    }
    buf_puts(c->b, "Z\"/>");
}

static void put_line(const struct chart *c, const struct svg_line *l)
{
    const char *more = l->low ? " ahead" : l->strong ? " strong" : "";
    bool pen_down = false;
    buf_puts(c->b, "<g><title>");
    svg_escape(c->b, l->title);
    buf_puts(c->b, "</title>");
    if (l->low)
        put_band(c, l);
    buf_printf(c->b, "<path class=\"line%s\" d=\"", more);
    for (size_t i = 0; i < l->n; i++) {
        if (isfinite(l->y[i]))
            buf_printf(c->b, "%c%.1f %.1f", pen_down ? 'L' : 'M', at_x(c, l->x[i]), at_y(c, l->y[i]));
        pen_down = isfinite(l->y[i]);
    }
    buf_puts(c->b, "\"/>");
    for (size_t i = 0; i < l->n && !l->low; i++)
        if (isfinite(l->y[i]))
            buf_printf(c->b, "<circle class=\"dot%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/>", more, at_x(c, l->x[i]),
                       at_y(c, l->y[i]), l->strong ? 3 : 2);
    buf_puts(c->b, "</g>\n");
}

bool svg_chart(struct buf *b, const char *x_name, const char *y_name, const struct svg_line *lines, size_t n)
{
    struct chart c = { .b = b };
    if (!find_ranges(&c, lines, n))
        return false;
    buf_printf(b, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\">\n", CHART_W, CHART_H, CHART_W);
    put_axes(&c, x_name, y_name);
    for (int strong = 0; strong <= 1; strong++)
        for (size_t i = 0; i < n; i++)
            if (lines[i].strong == (strong == 1))
                put_line(&c, &lines[i]);
    buf_puts(b, "</svg>\n");
    return true;
}

/* --- bars --- */

enum { LEGEND_H = 22, BARS_H = 320, BAR_MAX_W = 46 };

static double bar_top(const struct svg_bar *bar)
{
    double top = 0;
    for (size_t i = 0; i < SVG_BAR_PARTS; i++)
        top += bar->parts[i] >= 0 ? bar->parts[i] : (double)NAN;
    return isfinite(top) ? top : (double)NAN;
}

#define HIGHEST 1.4 /* of the tallest bar, up to which intervals are shown */

/* The greatest end of a bar or, as far as it is shown, of its interval; NAN: there is no bar. */
static double bars_top(const struct svg_bars *w)
{
    double tallest = NAN, end = NAN;
    for (size_t i = 0; i < w->n_groups * w->n_series; i++) {
        double top = bar_top(&w->bars[i]), half = w->bars[i].half;
        tallest = fmax(tallest, top);
        end = fmax(end, isfinite(half) && half > 0 ? top + half : top);
    }
    return isnan(tallest) ? tallest : fmin(end, fmin(tallest, DBL_MAX / HIGHEST) * HIGHEST);
}

/* 1, 2 or 5 times a power of ten, and not less; x > 0. */
static double round_step(double x)
{
    double ten = pow(10, floor(log10(x)));
    static const double steps[] = { 1, 2, 5 };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (x <= steps[i] * ten)
            return steps[i] * ten;
    return 10 * ten;
}

struct bars {
    struct buf *b;
    const struct svg_bars *what;
    double top, step;
};

static double bar_y(const struct bars *s, double v)
{
    return BARS_H - BOTTOM - v / s->top * (BARS_H - TOP - LEGEND_H - BOTTOM);
}

static void put_bar_axis(const struct bars *s)
{
    for (int i = 0; i * s->step <= s->top; i++) {
        double y = bar_y(s, i * s->step);
        buf_printf(s->b, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"right\" x=\"%d\" y=\"%.1f\">", LEFT, y,
                   CHART_W - RIGHT, LEFT - 6, y + 4);
        put_number(s->b, i * s->step);
        buf_puts(s->b, "</text>\n");
    }
    buf_printf(s->b, "<text class=\"middle\" transform=\"translate(12 %d) rotate(-90)\">", BARS_H / 2);
    svg_escape(s->b, s->what->y_name);
    buf_puts(s->b, "</text>\n");
}

static void put_legend(const struct bars *s)
{
    double x = LEFT;
    for (size_t i = 0; i < s->what->n_series; i++) {
        buf_printf(s->b,
                   "<rect class=\"s%zu\" x=\"%.0f\" y=\"4\" width=\"10\" height=\"10\"/><text x=\"%.0f\" y=\"13\">", i,
                   x, x + 14);
        svg_escape(s->b, s->what->series[i]);
        buf_puts(s->b, "</text>");
        x += 30 + 7.0 * (double)utf8_columns(s->what->series[i]);
    }
    buf_printf(s->b, "<text x=\"%.0f\" y=\"13\">pale: ", x + 10);
    svg_escape(s->b, s->what->parts[0]);
    buf_puts(s->b, "; full: ");
    svg_escape(s->b, s->what->parts[1]);
    buf_puts(s->b, "; line: 90 % interval</text>\n");
}

static void put_bar(const struct bars *s, size_t group, size_t series, double x, double w)
{
    const struct svg_bar *bar = &s->what->bars[group * s->what->n_series + series];
    double from = 0, top = bar_top(bar);
    if (isnan(top))
        return;
    buf_puts(s->b, "<g><title>");
    svg_escape(s->b, s->what->groups[group]);
    buf_puts(s->b, ", ");
    svg_escape(s->b, s->what->series[series]);
    buf_puts(s->b, ": ");
    for (size_t i = 0; i < SVG_BAR_PARTS; i++) {
        svg_escape(s->b, s->what->parts[i]);
        buf_putc(s->b, ' ');
        put_number(s->b, bar->parts[i]);
        buf_puts(s->b, i + 1 < SVG_BAR_PARTS ? ", " : "</title>");
    }
    for (size_t i = 0; i < SVG_BAR_PARTS; from += bar->parts[i++])
        buf_printf(s->b, "<rect class=\"s%zu%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", series,
                   i == 0 ? " pale" : "", x, bar_y(s, from + bar->parts[i]), w,
                   bar_y(s, from) - bar_y(s, from + bar->parts[i]));
    if (isfinite(bar->half) && bar->half > 0)
        buf_printf(s->b, "<path class=\"whisker\" d=\"M%.1f %.1fV%.1f\"/>", x + w / 2,
                   bar_y(s, fmin(s->top, top + bar->half)), bar_y(s, fmax(0, top - bar->half)));
    buf_puts(s->b, "</g>\n");
}

bool svg_bars(struct buf *b, const struct svg_bars *what)
{
    struct bars s = { .b = b, .what = what, .top = bars_top(what) };
    if (isnan(s.top))
        return false;
    s.step = s.top > DBL_MIN * TICKS && s.top < DBL_MAX / 20 ? round_step(s.top / TICKS) : s.top > 0 ? s.top : 1;
    s.top = s.step * fmax(1, ceil(s.top / s.step));
    double group_w = (double)(CHART_W - LEFT - RIGHT) / (double)what->n_groups;
    double w = fmin(BAR_MAX_W, group_w * 0.8 / (double)what->n_series);
    buf_printf(b, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\">\n", CHART_W, BARS_H, CHART_W);
    put_bar_axis(&s);
    put_legend(&s);
    for (size_t g = 0; g < what->n_groups; g++) {
        double middle = LEFT + group_w * ((double)g + 0.5), x = middle - w * (double)what->n_series / 2;
        buf_printf(b, "<text class=\"middle\" x=\"%.1f\" y=\"%d\">", middle, BARS_H - BOTTOM + 16);
        svg_escape(b, what->groups[g]);
        buf_puts(b, "</text>\n");
        for (size_t i = 0; i < what->n_series; i++, x += w)
            put_bar(&s, g, i, x + w * 0.05, w * 0.9);
    }
    buf_puts(b, "</svg>\n");
    return true;
}

/* --- heat --- */

enum { LABEL_W = 210, HEAD_H = 24, CELL_H = 15, CELL_MIN = 14, CELL_MAX = 64, CELLS_W = 640 };

static const double FAINTEST = 0.04; /* a measured 0 is not white */

static size_t cell_width(size_t cols)
{
    size_t w = CELLS_W / (cols ? cols : 1);
    return w < CELL_MIN ? CELL_MIN : w > CELL_MAX ? CELL_MAX : w;
}

static void put_tip(struct buf *b, const struct heat *h, size_t row, size_t col, const char *column)
{
    const struct heat_cell *c = &h->cells[row * h->cols + col];
    buf_puts(b, "<title>");
    svg_escape(b, h->names[row]);
    buf_puts(b, ", ");
    svg_escape(b, column);
    if (c->seconds > 0) {
        buf_puts(b, ": ");
        put_number(b, heat_rate(h, row, col));
        buf_puts(b, h->gauge(row) ? " on average" : " per second");
        if (c->counted < 0.995 * c->seconds)
            buf_printf(b, " (counted %.0f %% of the time, scaled)", 100 * c->counted / c->seconds);
    } else if (c->why == READING_ABSENT) {
        buf_puts(b, ": absent, nobody sampled it");
    } else {
        buf_printf(b, ": absent, %s", reading_state_name(c->why));
    }
    buf_puts(b, "</title>");
}

static void put_cell(struct buf *b, const struct heat *h, size_t row, size_t col, size_t at_row, const char *column)
{
    size_t w = cell_width(h->cols);
    double level = heat_level(h, row, col);
    buf_printf(b, "<rect x=\"%zu\" y=\"%zu\" width=\"%zu\" height=\"%d\" ", LABEL_W + col * w, HEAD_H + at_row * CELL_H,
               w, CELL_H);
    if (isnan(level))
        buf_puts(b, "class=\"absent\">");
    else
        buf_printf(b, "class=\"cell\" fill-opacity=\"%.3f\">", FAINTEST + (1 - FAINTEST) * level);
    put_tip(b, h, row, col, column);
    buf_puts(b, "</rect>\n");
}

static void put_row(struct buf *b, const struct heat *h, size_t row, size_t at_row, const char *const *cols)
{
    buf_printf(b, "<text class=\"right\" x=\"%d\" y=\"%zu\">", LABEL_W - 6, HEAD_H + at_row * CELL_H + CELL_H - 4);
    svg_escape(b, h->names[row]);
    buf_puts(b, "</text>\n");
    for (size_t col = 0; col < h->cols; col++)
        put_cell(b, h, row, col, at_row, cols[col]);
}

/* As many names as there is room for, from the first on. */
static void put_heads(struct buf *b, const struct heat *h, const char *const *cols)
{
    enum { CHAR_W = 6 };
    size_t w = cell_width(h->cols), free_from = 0;
    for (size_t col = 0; col < h->cols; col++) {
        size_t middle = LABEL_W + col * w + w / 2, half = utf8_columns(cols[col]) * CHAR_W / 2;
        if (middle < free_from + half)
            continue;
        buf_printf(b, "<text class=\"middle\" x=\"%zu\" y=\"%d\">", middle, HEAD_H - 8);
        svg_escape(b, cols[col]);
        buf_puts(b, "</text>\n");
        free_from = middle + half + CHAR_W;
    }
}

bool svg_heat(struct buf *b, const struct heat *h, const char *const *cols)
{
    size_t rows = 0, at_row = 0;
    for (size_t row = 0; row < h->rows; row++)
        rows += heat_has(h, row);
    if (rows == 0)
        return false;
    size_t width = LABEL_W + h->cols * cell_width(h->cols) + 40, height = HEAD_H + rows * CELL_H + 4;
    buf_printf(b, "<svg viewBox=\"0 0 %zu %zu\" width=\"%zu\" role=\"img\">\n", width, height, width);
    put_heads(b, h, cols);
    for (size_t row = 0; row < h->rows; row++)
        if (heat_has(h, row))
            put_row(b, h, row, at_row++, cols);
    buf_puts(b, "</svg>\n");
    return true;
}
