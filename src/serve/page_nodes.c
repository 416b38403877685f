/* Where trials run now. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/lease.h"
#include "base/own.h"
#include "serve/page_parts.h"

enum { ROWS_MAX = 500 };

struct running {
    struct page *p;
    struct buf *b;
    size_t rows, left;
    struct err *e;
};

static void put_row(struct running *l, const struct view *v, const struct view_trial *t)
{
    const struct store_attempt *a = &t->under_way;
    struct buf *b = l->b;
    buf_puts(b, "<tr><td>");
    svg_escape(b, a->place ? a->place : "this machine, or a cluster");
    buf_puts(b, "</td><td>");
    page_put_trial(b, v->study.name, t->row.number);
    buf_puts(b, "</td>");
    page_put_cell_number(b, a->cores > 0 ? a->cores : (double)NAN);
    buf_puts(b, "<td>");
    page_put_members(b, a->setting ? a->setting : t->row.effective);
    buf_puts(b, "</td><td class=\"n\">");
    page_put_seconds(b, t->seconds);
    buf_puts(b, "</td></tr>\n");
}

static int add_study(void *ctx, const struct store_summary *r)
{
    struct running *l = ctx;
    struct view *v;
    if (strcmp(r->state, "running") != 0)
        return 0;
    int rc = page_view(l->p, r->name, &v, l->e);
    for (size_t i = 0; rc == 0 && i < v->n; i++) {
        if (!v->trials[i].under_way.state)
            continue;
        if (l->rows < ROWS_MAX)
            put_row(l, v, &v->trials[i]);
        else
            l->left++;
        l->rows++;
    }
    return rc;
}

static void put_machine(struct buf *b)
{
    char host[256] = "";
    double load[1] = { NAN };
    int leased = leases_taken();
    if (gethostname(host, sizeof host - 1) < 0)
        *host = '\0'; /* shown as none */
    if (getloadavg(load, 1) != 1)
        load[0] = NAN;
    buf_puts(b, "<dl class=\"facts\">\n");
    page_put_fact(b, "this machine", host);
    page_put_fact_number(b, "CPUs", (double)sysconf(_SC_NPROCESSORS_ONLN));
    page_put_fact_number(b, "CPUs that drivers have", leased < 0 ? (double)NAN : leased);
    page_put_fact_number(b, "load", load[0]);
    page_put_fact_number(b, "memory, GiB",
                         (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / (1024.0 * 1024 * 1024));
    buf_puts(b, "</dl>\n");
}

static int put_running(struct running *l)
{
    struct buf *b = l->b;
    buf_puts(b, "<div class=\"wide\"><table data-sort><thead><tr><th>where</th><th>trial</th><th class=\"n\">CPUs</th>"
                "<th>setting</th><th class=\"n\">time</th></tr></thead><tbody>\n");
    int rc = page_store(l->p, l->e);
    if (rc == 1)
        rc = store_list(l->p->store, add_study, l, l->e);
    buf_puts(b, "</tbody></table></div>\n");
    if (rc >= 0 && l->rows == 0)
        buf_puts(b, "<p class=\"dim\">Nothing runs.</p>\n");
    if (l->left > 0)
        buf_printf(b, "<p class=\"dim\">%zu more run.</p>\n", l->left);
    return rc;
}

void page_nodes(void *ctx, const struct http_request *q, struct http_answer *out)
{
    struct err e = { 0 };
    struct buf *b = &out->body;
    struct running l = { .p = ctx, .b = b, .e = &e };
    page_head(ctx, b, q, &(struct page_about){ .title = "Nodes" });
    buf_puts(b, "<h1>Nodes</h1>\n");
    if (page_begin_part(b, q, "machine", NULL, PAGE_SLOW)) {
        put_machine(b);
        page_end_part(b);
    }
    int rc = 0;
    if (page_begin_part(b, q, "running", "What runs where", PAGE_SLOW)) {
        rc = put_running(&l);
        page_end_part(b);
    }
    page_foot(b);
    if (rc < 0) {
        if (!e.code)
            (void)err_sys(&e, rc, "cannot list what runs");
        page_fail(out, rc, &e);
    }
}
