/* What a stranger may send to the page: addresses, queries and forms, heads, ids of events. The first byte says which; what is taken comes
 * back as it went, and nobody is let in by chance. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "serve/feed_at.h"
#include "serve/http_gate.h"
#include "serve/http_route.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void use_path(const char *text)
{
    struct http_path p = { .n = 0 }, again = { .n = 0 };
    if (http_path_parse(&p, text) < 0) {
        check(p.n == 0);
        return;
    }
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < p.n; i++) {
        check(*p.words[i] && !strchr(p.words[i], '/') && strcmp(p.words[i], "..") != 0);
        buf_putc(&b, '/');
        http_put_word(&b, p.words[i]);
    }
    check(http_path_parse(&again, b.len ? buf_text(&b) : "/") == 0 && again.n == p.n);
    for (size_t i = 0; i < p.n; i++)
        check(strcmp(p.words[i], again.words[i]) == 0);
    (void)http_path_is(&p, "trial/?/?/log");
    http_path_done(&p);
    http_path_done(&again);
    buf_done(&b);
}

static void use_pairs(const char *text)
{
    struct http_pairs p;
    if (http_pairs_parse(&p, text) < 0) {
        check(p.n == 0);
        return;
    }
    long n = http_pairs_number(&p, "n", 1, 9, -1);
    check(n == -1 || (n >= 1 && n <= 9));
    http_pairs_done(&p);
}

/* Lines: host, origin, cookie, authorization. */
static void use_claims(char *text)
{
    char *heads[4] = { NULL };
    for (size_t i = 0; i < 4 && text; i++) {
        heads[i] = text;
        text = strchr(text, '\n');
        if (text)
            *text++ = '\0';
    }
    for (int loopback = 0; loopback < 2; loopback++) {
        struct http_gate g = { .loopback = loopback, .host = "tune.example.org" };
        http_gate_token(&g, "a token that nobody guesses");
        struct http_claims c = { loopback, heads[0], heads[1], heads[2], heads[3] };
        check(http_gate_ask(&g, &c) != HTTP_PASS);
    }
}

static void use_id(const char *text)
{
    struct feed_at at = { .n = 0 }, again = { .n = 0 };
    if (feed_at_parse(&at, text) < 0)
        return;
    struct buf b = BUF_INIT;
    feed_at_put(&b, &at);
    check(feed_at_parse(&again, buf_text(&b)) == 0);
    check(at.study == again.study && at.attempts == again.attempts && at.decisions == again.decisions &&
          at.studies == again.studies && at.n == again.n);
    feed_at_done(&at);
    feed_at_done(&again);
    buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = fuzz_text(data + 1, size - 1);
    switch (data[0]) {
    case 'p': use_path(text); break;
    case 'q': use_pairs(text); break;
    case 'h': use_claims(text); break;
    default: use_id(text); break;
    }
    free(text);
    return 0;
}
