#include "serve/http_gate.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "base/sha256.h"

#define COOKIE "pipetune="

static void sum(char out[HTTP_GATE_WORD], const char *salt, const void *bytes, size_t len)
{
    struct sha256 s;
    sha256_init(&s);
    sha256_add(&s, salt, strlen(salt) + 1);
    sha256_add(&s, bytes, len);
    sha256_hex(&s, out);
}

void http_gate_token(struct http_gate *g, const char *token)
{
    sum(g->cookie, "cookie", token, strlen(token));
}

void http_gate_secret(struct http_gate *g, const unsigned char *bytes, unsigned len)
{
    sum(g->form, "form", bytes, len);
}

bool http_gate_same(const char *a, const char *b)
{
    size_t len = strlen(a), other = strlen(b);
    unsigned char differs = len != other;
    for (size_t i = 0; i < other; i++)
        differs |= (unsigned char)(a[len ? i % len : 0] ^ b[i]);
    return differs == 0;
}

bool http_gate_knows(const struct http_gate *g, const char *token)
{
    char word[HTTP_GATE_WORD];
    sum(word, "cookie", token, strlen(token));
    return *g->cookie && http_gate_same(g->cookie, word);
}

bool http_gate_form(const struct http_gate *g, const char *word)
{
    return word && *g->form && http_gate_same(g->form, word);
}

/* --- the name it is called by --- */

enum { NAME_MAX_LEN = 256 };

/* "name", "name:port", "[address]", "[address]:port" → name. */
static bool split_host(const char *host, char out[NAME_MAX_LEN])
{
    bool bracket = *host == '[';
    const char *from = host + bracket;
    size_t len = strcspn(from, bracket ? "]" : ":");
    const char *port = from + len + (bracket && from[len] == ']');
    if (len == 0 || len >= NAME_MAX_LEN || (bracket && from[len] != ']'))
        return false;
    if (*port && (*port != ':' || !port[1] || port[1 + strspn(port + 1, "0123456789")]))
        return false;
    (void)snprintf(out, NAME_MAX_LEN, "%.*s", (int)len, from);
    return true;
}

static bool is_address(const char *name)
{
    unsigned char to[16];
    return inet_pton(AF_INET, name, to) == 1 || inet_pton(AF_INET6, name, to) == 1;
}

static bool is_loopback(const char *name)
{
    struct in_addr to;
    if (strcasecmp(name, "localhost") == 0 || strcmp(name, "::1") == 0)
        return true;
    return inet_pton(AF_INET, name, &to) == 1 && ntohl(to.s_addr) >> 24 == 127;
}

/* A name that is an address is no name that somebody could have had resolved to us. */
static bool host_is_ours(const struct http_gate *g, const char *host)
{
    char name[NAME_MAX_LEN];
    if (!host || !split_host(host, name))
        return false;
    if (is_loopback(name))
        return true;
    if (g->loopback)
        return false;
    size_t first = strcspn(g->host, ".");
    return is_address(name) || (*g->host && (strcasecmp(name, g->host) == 0 ||
                                             (strlen(name) == first && strncasecmp(name, g->host, first) == 0)));
}

/* --- where it comes from --- */

static bool origin_is_ours(const struct http_claims *c)
{
    static const char *const schemes[] = { "http://", "https://" }; /* the second: behind somebody's proxy */
    if (!c->origin)
        return !c->changes;
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t len = strlen(schemes[i]);
        if (strncmp(c->origin, schemes[i], len) == 0)
            return strcasecmp(c->origin + len, c->host) == 0;
    }
    return false;
}

/* --- the token --- */

static bool cookie_is_ours(const struct http_gate *g, const char *cookies)
{
    for (const char *at = cookies; at && *at;) {
        at += strspn(at, "; ");
        size_t len = strcspn(at, ";");
        char word[sizeof COOKIE + HTTP_GATE_WORD];
        if (len == strlen(COOKIE) + HTTP_GATE_WORD - 1 && strncmp(at, COOKIE, strlen(COOKIE)) == 0) {
            (void)snprintf(word, sizeof word, "%.*s", (int)len, at);
            if (http_gate_same(g->cookie, word + strlen(COOKIE)))
                return true;
        }
        at += len;
    }
    return false;
}

static bool has_token(const struct http_gate *g, const struct http_claims *c)
{
    static const char bearer[] = "Bearer ";
    if (g->loopback && !*g->cookie)
        return true;
    if (!*g->cookie)
        return false;
    if (c->authorization && strncasecmp(c->authorization, bearer, strlen(bearer)) == 0)
        return http_gate_knows(g, c->authorization + strlen(bearer));
    return cookie_is_ours(g, c->cookie);
}

enum http_verdict http_gate_ask(const struct http_gate *g, const struct http_claims *c)
{
    if (!host_is_ours(g, c->host))
        return HTTP_HOST;
    /* A program that shows the token itself is nobody's browser. */
    if (!origin_is_ours(c) && !(c->authorization && !c->origin))
        return HTTP_ORIGIN;
    return has_token(g, c) ? HTTP_PASS : HTTP_TOKEN;
}
