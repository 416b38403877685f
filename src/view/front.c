#include "view/front.h"

#include <math.h>

#include "view/svg.h"
#include "view/table.h"

enum { WIDTH = 640, HEIGHT = 300, LEFT = 70, BOTTOM = 40, TOP = 12, RIGHT = 16 };

struct axis {
    double low, high;
};

static struct axis axis_of(const struct pareto *p, size_t goal)
{
    struct axis a = { INFINITY, -INFINITY };
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].counts) {
            a.low = fmin(a.low, p->v[i].figures[goal]);
            a.high = fmax(a.high, p->v[i].figures[goal]);
        }
    double edge = a.high > a.low ? 0.05 * (a.high - a.low) : fabs(a.low) * 0.05 + 1e-9;
    return (struct axis){ a.low - edge, a.high + edge };
}

static double part(const struct axis *a, double x)
{
    return (x - a->low) / (a->high - a->low);
}

static void put_dots(struct buf *b, const struct view *v, const struct axis *x, const struct axis *y)
{
    const struct pareto *p = &v->pareto;
    for (size_t i = 0; i < p->n; i++) {
        const struct pareto_trial *t = &p->v[i];
        if (!t->counts)
            continue;
        buf_printf(b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"><title>",
                   LEFT + part(x, t->figures[0]) * (WIDTH - LEFT - RIGHT),
                   TOP + (1 - part(y, t->figures[1])) * (HEIGHT - TOP - BOTTOM), t->front ? 5 : 3,
                   t->front ? "#0b62a4" : "#bbb");
        svg_escape(b, v->study.name);
        buf_printf(b, "/%d</title></circle>\n", t->number);
    }
}

static void put_text(struct buf *b, int x, int y, const char *anchor, const char *text)
{
    buf_printf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" font-size=\"12\" fill=\"#555\">", x, y, anchor);
    svg_escape(b, text);
    buf_puts(b, "</text>\n");
}

static void put_picture(struct buf *b, const struct view *v)
{
    const struct pareto *p = &v->pareto;
    struct axis x = axis_of(p, 0), y = axis_of(p, 1);
    char digits[32];
    buf_printf(b,
               "<svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\">\n"
               "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#888\"/>\n",
               WIDTH, HEIGHT, WIDTH, LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT);
    put_text(b, LEFT, HEIGHT - BOTTOM + 16, "start", table_digits(x.low, digits));
    put_text(b, WIDTH - RIGHT, HEIGHT - BOTTOM + 16, "end", table_digits(x.high, digits));
    put_text(b, LEFT - 6, HEIGHT - BOTTOM, "end", table_digits(y.low, digits));
    put_text(b, LEFT - 6, TOP + 10, "end", table_digits(y.high, digits));
    put_text(b, (WIDTH + LEFT) / 2, HEIGHT - 8, "middle", p->goals.v[0].name);
    put_text(b, LEFT + 6, TOP + 10, "start", p->goals.v[1].name);
    put_dots(b, v, &x, &y);
    buf_puts(b, "</svg>\n");
}

static void put_rows(struct buf *b, const struct view *v)
{
    const struct pareto *p = &v->pareto;
    char text[32];
    for (size_t i = 0; i < p->n; i++) {
        const struct pareto_trial *t = &p->v[i];
        if (!t->front)
            continue;
        buf_puts(b, "<tr><td class=\"name\">");
        svg_escape(b, v->study.name);
        buf_printf(b, "/%d</td>", t->number);
        for (size_t k = 0; k < p->goals.n; k++) {
            bool time = p->goals.v[k].kind == GOAL_SECONDS;
            buf_printf(b, "<td class=\"n\">%s</td>",
                       time ? table_duration(t->figures[k], text) : table_digits(t->figures[k], text));
        }
        buf_puts(b, "</tr>\n");
    }
}

void front_put(struct buf *b, const struct view *v)
{
    const struct pareto *p = &v->pareto;
    if (p->goals.n == 0)
        return;
    buf_printf(b, "<h2>Pareto set</h2>\n<p>%zu of %zu trials, which no other one beats in all of these.</p>\n",
               p->n_front, p->n);
    if (p->n_front == 0)
        return;
    buf_puts(b, "<div class=\"wide\"><table>\n<tr><th>trial</th>");
    for (size_t k = 0; k < p->goals.n; k++) {
        buf_puts(b, "<th class=\"n\">");
        svg_escape(b, p->goals.v[k].name);
        buf_printf(b, " (%s)</th>", p->goals.v[k].maximise ? "max" : "min");
    }
    buf_puts(b, "</tr>\n");
    put_rows(b, v);
    buf_puts(b, "</table></div>\n");
    put_picture(b, v);
}
