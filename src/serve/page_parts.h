/* What the files of the page share. All of it runs in the thread that answers with pages, but for what page.h has. */
#ifndef SERVE_PAGE_PARTS_H
#define SERVE_PAGE_PARTS_H

#include "serve/api.h"
#include "serve/feed.h"
#include "serve/http_server.h"
#include "serve/page.h"
#include "serve/prometheus.h"
#include "view/svg.h"
#include "view/view.h"

enum { PAGE_VIEWS = 4 };

struct page_view {
    char *name; /* NULL: the place is free */
    struct view view;
    int64_t used;
};

struct page {
    char *store_path, *program;
    struct http_server *server;
    struct http_listen listen;
    struct http_gate gate;
    struct api api;
    struct feed feed;    /* the pulse's */
    struct store *store; /* the pages'; NULL: there is none yet */
    struct page_view views[PAGE_VIEWS];
    int64_t uses;
    struct prometheus prometheus;
};

/* The store, as soon as there is one. 1; 0: there is none yet. */
int page_store(struct page *p, struct err *e);

/* A study as it is now; kept, and brought up to date. -EINVAL: there is none. */
int page_view(struct page *p, const char *name, struct view **out, struct err *e);

/* --- what a page is made of --- */
struct page_about {
    const char *title;
    const char *study; /* whose events it follows; NULL: all */
    int trial;         /* and whose log; 0: none */
    bool still;        /* it follows nothing */
};
void page_head(struct page *p, struct buf *b, const struct http_request *q, const struct page_about *a);
void page_foot(struct buf *b);
void page_fail(struct http_answer *out, int rc, const struct err *e); /* an answer instead of a page */

/* A part that is kept up to date; title NULL: none. Those that are quick are asked for by themselves, "?parts=facts,running", as soon as
 * something happened; all others with the whole page, as seldom as it takes long. False: this part was not asked for. */
enum page_pace { PAGE_QUICK, PAGE_SLOW };
bool page_begin_part(struct buf *b, const struct http_request *q, const char *id, const char *title,
                     enum page_pace pace);
void page_end_part(struct buf *b);
bool page_is_whole(const struct http_request *q);

void page_put_number(struct buf *b, double x); /* four digits; "absent" for none */
void page_put_seconds(struct buf *b, double s);
void page_put_time(struct buf *b, int64_t ms);
void page_put_fact(struct buf *b, const char *name, const char *text); /* a <div> of a <dl class="facts">; escaped */
void page_put_fact_number(struct buf *b, const char *name, double x);
void page_put_study(struct buf *b, const char *study); /* a link */
void page_put_trial(struct buf *b, const char *study, int number);
void page_put_state(struct buf *b, const char *state);
void page_put_members(struct buf *b, const char *json); /* "batch_size 64, learning_rate 0.1" of an object's text */
void page_put_form(struct page *p, struct buf *b, const char *action, const char *name, const char *label);
void page_put_cell_number(struct buf *b, double x); /* a <td> that is sorted as a number */

/* --- the pages --- */
void page_studies(void *ctx, const struct http_request *q, struct http_answer *out);
void page_study(void *ctx, const struct http_request *q, struct http_answer *out);
void page_heat(void *ctx, const struct http_request *q, struct http_answer *out);
void page_trial(void *ctx, const struct http_request *q, struct http_answer *out);
void page_trial_log(void *ctx, const struct http_request *q, struct http_answer *out);
void page_compare(void *ctx, const struct http_request *q, struct http_answer *out);
void page_nodes(void *ctx, const struct http_request *q, struct http_answer *out);
void page_model(void *ctx, const struct http_request *q, struct http_answer *out);

#endif
