/* Who may ask: what a request says of itself, against what the server was started with. Pure.
 *
 * On loopback no token is asked for; what guards there is the name that the server is called by (a page of elsewhere that has its own
 * name resolved to 127.0.0.1 does not know ours) and the origin of what asks. Elsewhere each request has the token, as a cookie or as
 * `Authorization: Bearer`. What changes something has, on top, the word that only pages of this server carry in their forms. */
#ifndef SERVE_HTTP_GATE_H
#define SERVE_HTTP_GATE_H

#include <stdbool.h>

enum { HTTP_GATE_WORD = 65, HTTP_TOKEN_MIN = 16 };

struct http_gate {
    bool loopback;               /* listens there alone */
    char host[256];              /* this machine's name */
    char cookie[HTTP_GATE_WORD]; /* the word of who has shown the token; "": there is no token */
    char form[HTTP_GATE_WORD];   /* what forms carry */
};

/* What a request says; NULL: nothing. */
struct http_claims {
    bool changes; /* a POST */
    const char *host, *origin, *cookie, *authorization;
};

enum http_verdict { HTTP_PASS, HTTP_HOST, HTTP_ORIGIN, HTTP_TOKEN };

/* The words by which the token and forms are known: sums, so that nothing of the token is in a page or a browser. */
void http_gate_token(struct http_gate *g, const char *token);
void http_gate_secret(struct http_gate *g, const unsigned char *bytes, unsigned len);

enum http_verdict http_gate_ask(const struct http_gate *g, const struct http_claims *c);
bool http_gate_form(const struct http_gate *g, const char *word); /* NULL: none was sent */
bool http_gate_knows(const struct http_gate *g, const char *token);

/* Takes as long whatever the texts have in common. */
bool http_gate_same(const char *a, const char *b);

#endif
