/* All studies of the store. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/own.h"
#include "core/remaining.h"
#include "live/study.h"
#include "serve/page_parts.h"
#include "serve/standing.h"
#include "view/table.h"

struct listing {
    struct page *page;
    struct standings queue;
    struct buf *b;
    struct err *e;
};

static void put_progress(struct buf *b, const struct store_summary *r)
{
    int over = r->done + r->failed + r->stopped;
    buf_printf(b,
               "<td data-v=\"%d\"><progress max=\"%d\" value=\"%d\" aria-label=\"trials that are over\"></progress> "
               "%d of %d",
               over, r->trials > 0 ? r->trials : 1, over, over, r->trials);
    if (r->failed)
        buf_printf(b, ", %d failed", r->failed);
    if (r->paused)
        buf_printf(b, ", %d paused", r->paused);
    buf_puts(b, "</td>");
}

/* By the trials that there are: what a search has yet to propose, nobody knows. */
static void put_to_go(struct buf *b, const struct view *v)
{
    struct remaining_trials took = { 0 };
    struct remaining r;
    double used = 0;
    int left = 0, running = 0;
    for (size_t i = 0; i < v->n; i++) {
        const char *state = v->trials[i].state;
        bool runs = strcmp(state, "running") == 0;
        if (strcmp(state, "finished") == 0 && !v->trials[i].row.copy_of && isfinite(v->trials[i].seconds))
            remaining_add(&took, v->trials[i].seconds);
        running += runs;
        used += runs && isfinite(v->trials[i].seconds) ? v->trials[i].seconds : 0;
        left += runs || strcmp(state, "waiting") == 0 || strcmp(state, "interrupted") == 0;
    }
    if (left == 0 || !remaining_by_trials(&took, left, used, running > 0 ? running : 1, &r)) {
        buf_puts(b, "<td></td>");
        return;
    }
    buf_puts(b, "<td class=\"n\">");
    page_put_seconds(b, r.low_s);
    buf_puts(b, " – ");
    page_put_seconds(b, r.high_s);
    buf_puts(b, "</td>");
}

/* By the metric that it is judged by. */
static void put_best(struct buf *b, const struct store_summary *r)
{
    char digits[32], exact[NUM_TEXT_MAX];
    if (r->best_trial && isfinite(r->best_metric)) {
        buf_printf(b, "<td class=\"n\" data-v=\"%s\">", num_print(r->best_metric, exact));
        svg_escape(b, r->metric ? r->metric : "accuracy");
        buf_printf(b, " %s</td>", table_digits(r->best_metric, digits));
    } else {
        page_put_cell_number(b, NAN);
    }
}

static int put_row(struct listing *l, const struct store_summary *r, const struct store_study *study)
{
    struct buf *b = l->b;
    struct view *v = NULL;
    const char *state = standings_state(&l->queue, l->page->store_path, r);
    bool runs = strcmp(state, "running") == 0 || strcmp(state, STANDING_BACKGROUND) == 0;
    double energy_j = NAN;
    int64_t epochs = 0;
    int rc = prometheus_sums(&l->page->prometheus, l->page->store, study, &energy_j, &epochs, l->e);
    if (rc == 0 && runs)
        rc = page_view(l->page, study->name, &v, l->e);
    if (rc < 0)
        return rc;
    buf_puts(b, "<tr><td>");
    page_put_study(b, study->name);
    buf_puts(b, "</td><td>");
    page_put_state(b, state);
    buf_puts(b, "</td>");
    put_progress(b, r);
    put_best(b, r);
    buf_puts(b, "<td>");
    if (r->best_trial)
        page_put_trial(b, study->name, r->best_trial);
    buf_puts(b, "</td>");
    page_put_cell_number(b, r->seconds);
    if (v)
        put_to_go(b, v);
    else
        buf_puts(b, "<td></td>");
    page_put_cell_number(b, energy_j);
    buf_puts(b, "<td>");
    page_put_time(b, r->created_ms);
    buf_puts(b, "</td></tr>\n");
    return 0;
}

static int add_study(void *ctx, const struct store_summary *r)
{
    struct listing *l = ctx;
    struct store_study study = { 0 };
    struct standing *queued = standings_find(&l->queue, r->name);
    if (queued)
        queued->listed = true;
    int rc = store_study_find(l->page->store, r->name, &study, l->e);
    if (rc == 1)
        rc = put_row(l, r, &study);
    store_study_done(&study);
    return rc;
}

/* One that has not begun: nothing is known of its trials yet. */
static void put_unbegun(struct buf *b, const struct store_queued *q)
{
    buf_puts(b, "<tr><td>");
    svg_escape(b, q->study);
    buf_puts(b, "</td><td>");
    page_put_state(b, QUEUED);
    buf_printf(b, "</td><td colspan=\"6\">priority %d", q->priority);
    if (q->at_ms) {
        buf_puts(b, ", not before ");
        page_put_time(b, q->at_ms);
    }
    buf_puts(b, "</td><td>");
    page_put_time(b, q->submitted_ms);
    buf_puts(b, " submitted</td></tr>\n");
}

static int put_table(struct listing *l)
{
    struct buf *b = l->b;
    int rc = standings_load(&l->queue, l->page->store, l->e);
    if (rc < 0)
        return rc;
    buf_puts(b, "<div class=\"wide\"><table data-sort><thead><tr><th>study</th><th>state</th><th>trials over</th>"
                "<th class=\"n\">best value</th><th>best</th><th class=\"n\">seconds of trials</th>"
                "<th class=\"n\">to go</th><th class=\"n\">joules</th><th>begun</th></tr></thead>\n<tbody>\n");
    rc = store_list(l->page->store, add_study, l, l->e);
    for (size_t i = 0; rc == 0 && i < l->queue.n; i++)
        if (!l->queue.v[i].listed)
            put_unbegun(b, &l->queue.v[i].row);
    buf_puts(b, "</tbody></table></div>\n");
    return rc;
}

void page_studies(void *ctx, const struct http_request *q, struct http_answer *out)
{
    struct page *p = ctx;
    struct err e = { 0 };
    struct listing l = { .page = p, .b = &out->body, .e = &e };
    int rc = page_store(p, &e);
    page_head(p, &out->body, q, &(struct page_about){ .title = "Studies" });
    buf_puts(&out->body, "<h1>Studies</h1>\n");
    (void)page_begin_part(&out->body, q, "studies", NULL, PAGE_SLOW); /* all there is */
    if (rc == 1)
        rc = put_table(&l);
    else if (rc == 0)
        buf_puts(&out->body, "<p>There is no study yet: <code>pipetune run --config FILE</code> begins one.</p>\n");
    standings_done(&l.queue);
    page_end_part(&out->body);
    page_foot(&out->body);
    if (rc < 0) {
        if (!e.code)
            (void)err_sys(&e, rc, "cannot list the studies");
        page_fail(out, rc, &e);
    }
}
