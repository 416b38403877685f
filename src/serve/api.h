/* `GET /api/…` is the --json of a command, by the command itself: what it says is what a terminal is told, whatever it is asked. And what
 * forms may have done. A table of rows; the command runs beside the server, so that no fault of a look at one study is the server's. */
#ifndef SERVE_API_H
#define SERVE_API_H

#include "base/strv.h"
#include "serve/http_server.h"

struct api {
    const char *program, *store; /* kept */
};

/* The words of the command, or of the action, with --json and the store; empty: it is none of the table, or the words are not what it
 * takes. Pure but for memory. */
void api_command(struct strv *out, const struct api *a, const struct http_path *p);
void api_action(struct strv *out, const struct api *a, const char *action, const char *name);

/* JSON, or {"error"}: 404 for what a command says is wrong usage, 500 where something lacks, 504 when it takes too long. */
void api_answer(const struct api *a, const struct http_request *q, struct http_answer *out);

/* A form of a page: "do/ACTION" with the name of the study or trial. 0, and the page that is next; else the status, and *why. */
unsigned api_act(const struct api *a, const struct http_request *q, struct buf *why);

#endif
