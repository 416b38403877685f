/* The stream of what happens in a store (http_server.h has it written): one for a page.
 *
 *     id: as serve/feed_at.h
 *     event: hello             the first, where nothing is gone on from
 *     event: news              {"studies": true,                    a study came, went, began or ended
 *                               "attempts":  [{"study","trial","attempt","state","outcome"}],
 *                               "epochs":    [{"study","trial","attempt","epoch","metric","accuracy","loss","seconds"}],
 *                               "decisions": [{"seq","trial","t_s","kind","reason"}]}
 *     event: reset             what it would go on from is gone: look at all anew
 *
 * and without an id, since nothing is lost with them:
 *
 *     event: changed           something else was written, at most every two seconds
 *     event: log               {"size"}: the log of the trial has so many bytes
 *
 * All absent numbers are null. A line of comment is sent every 10 s, which shows who is gone. */
#ifndef SERVE_FEED_H
#define SERVE_FEED_H

#include "serve/feed_at.h"
#include "serve/http_server.h"
#include "store/store.h"

struct feed {
    const char *store_path; /* kept */
    struct store *store;    /* the pulse's; NULL: there is none yet */
    int64_t version;
};

void feed_done(struct feed *s);

/* The functions of struct http_follow, with a struct feed. The query says what is followed: "study=NAME" (else all), "trial=N" for its log,
 * "after=ID" where a page has been told until. */
void *feed_open(struct feed *s, const struct http_request *q);
bool feed_begin(struct feed *s);
int feed_beat(struct feed *s, void *follower, bool news, struct buf *out);
void feed_close(void *follower);

/* Where who looks at the store now stands: the id that a page has. The store is in no transaction. */
int feed_now(struct buf *out, struct store *s, int64_t study, struct err *e);

#endif
