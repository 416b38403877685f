/* What came of an experiment as one page, and as a picture: no script, nothing from outside. */
#include <math.h>
#include <stdio.h>

#include "base/own.h"
#include "cmd/experiment_parts.h"
#include "view/svg.h"
#include "view/table.h"

/* Jobs, and all of them. */
enum { GROUPS_MAX = EXPERIMENT_JOBS_MAX + 1, PAGE_COLUMNS = 150 };

static bool put_bars(struct buf *b, const struct experiment_result *r)
{
    const char *groups[GROUPS_MAX], *series[EXPERIMENT_POLICIES_MAX];
    struct svg_bar bars[GROUPS_MAX * EXPERIMENT_POLICIES_MAX];
    size_t n_groups = r->x.n_jobs > 1 ? r->x.n_jobs + 1 : 1, n_rows = r->n * r->x.n_policies;
    for (size_t g = 0; g < n_groups; g++) {
        size_t job = g < r->x.n_jobs ? g : EXPERIMENT_ALL;
        groups[g] = job == EXPERIMENT_ALL ? "all" : r->x.jobs[g].name;
        for (size_t p = 0; p < r->x.n_policies; p++) {
            series[p] = r->x.policies[p]->name;
            struct svg_bar *bar = &bars[g * r->x.n_policies + p];
            bar->parts[0] = experiment_mean_of(r->rows, n_rows, p, job, EXPERIMENT_QUEUE).mean;
            bar->parts[1] = experiment_mean_of(r->rows, n_rows, p, job, EXPERIMENT_TUNING).mean;
            bar->half = experiment_mean_of(r->rows, n_rows, p, job, EXPERIMENT_RESPONSE).half;
        }
    }
    return svg_bars(b, &(struct svg_bars){ .y_name = "mean response, s",
                                           .groups = groups,
                                           .series = series,
                                           .n_groups = n_groups,
                                           .n_series = r->x.n_policies,
                                           .parts = { "in the queue", "tuned" },
                                           .bars = bars });
}

static void put_text(struct buf *b, const struct buf *text)
{
    svg_escape(b, buf_text(text));
    b->failed |= text->failed;
}

static void put_title(struct buf *b, const struct experiment_result *r)
{
    svg_escape(b, r->file);
    buf_puts(b, r->simulated ? " (simulated over recorded runs)" : "");
}

void experiment_put_html(struct buf *b, const struct experiment_result *r)
{
    AUTO_BUF struct buf text = BUF_INIT;
    buf_puts(b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>PipeTune: ");
    put_title(b, r);
    buf_puts(
        b, "</title>\n<style>\nbody { font: 14px/1.45 system-ui, sans-serif; color: #222; background: #fff; max-width: "
           "1100px; margin: 2em auto; padding: 0 1em; }\npre { overflow-x: auto; } h1 { overflow-wrap: anywhere; }\n");
    svg_style(b);
    buf_puts(b, "</style>\n</head>\n<body>\n<h1>");
    put_title(b, r);
    buf_puts(b, "</h1>\n");
    if (!put_bars(b, r))
        buf_puts(b, "<p>No study has ended with a trial that finished.</p>\n");
    buf_puts(b, "<pre>\n");
    experiment_print(r, &text, PAGE_COLUMNS);
    put_text(b, &text);
    buf_puts(b, "</pre>\n</body>\n</html>\n");
}

void experiment_put_picture(struct buf *b, const struct experiment_result *r)
{
    buf_puts(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 320\" width=\"760\">\n<title>");
    put_title(b, r);
    buf_puts(b, "</title>\n<style>\n");
    svg_style(b);
    buf_puts(b, "</style>\n");
    if (!put_bars(b, r))
        buf_puts(b, "<text x=\"20\" y=\"40\">no study has ended</text>\n");
    buf_puts(b, "</svg>\n");
}
