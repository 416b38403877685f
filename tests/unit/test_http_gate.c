#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "serve/http_gate.h"

static struct http_gate gate_with(bool loopback, const char *token)
{
    struct http_gate g = { .loopback = loopback, .host = "tune.example.org" };
    if (token)
        http_gate_token(&g, token);
    http_gate_secret(&g, (const unsigned char *)"0123456789abcdef", 16);
    return g;
}

static const char token[] = "a-long-and-good-token";

static const struct {
    const char *name;
    bool loopback, tokened, changes;
    const char *host, *origin, *authorization;
    bool cookie; /* the right one */
    enum http_verdict want;
} cases[] = {
    { "the page at home needs nothing", true, false, false, "127.0.0.1:8720", NULL, NULL, false, HTTP_PASS },
    { "by its name", true, false, false, "localhost:8720", NULL, NULL, false, HTTP_PASS },
    { "a forwarded port is as good", true, false, false, "LOCALHOST:9999", NULL, NULL, false, HTTP_PASS },
    { "version 6", true, false, false, "[::1]:8720", NULL, NULL, false, HTTP_PASS },
    { "127/8 is all ours", true, false, false, "127.1.2.3", NULL, NULL, false, HTTP_PASS },
    { "no host", true, false, false, NULL, NULL, NULL, false, HTTP_HOST },
    { "a host without a name", true, false, false, ":8720", NULL, NULL, false, HTTP_HOST },
    { "a name that was made to mean us", true, false, false, "evil.example:8720", NULL, NULL, false, HTTP_HOST },
    { "one that begins as ours", true, false, false, "localhost.evil.example", NULL, NULL, false, HTTP_HOST },
    { "one that begins as an address", true, false, false, "127.0.0.1.evil.example", NULL, NULL, false, HTTP_HOST },
    { "a port that is none", true, false, false, "localhost:80x", NULL, NULL, false, HTTP_HOST },
    { "user and host", true, false, false, "evil@localhost", NULL, NULL, false, HTTP_HOST },
    { "an open bracket", true, false, false, "[::1", NULL, NULL, false, HTTP_HOST },
    { "another address of this machine, on loopback", true, false, false, "192.0.2.7:8720", NULL, NULL, false,
      HTTP_HOST },
    { "a script of elsewhere reads nothing", true, false, false, "localhost:8720", "http://evil.example", NULL, false,
      HTTP_ORIGIN },
    { "our own does", true, false, false, "localhost:8720", "http://localhost:8720", NULL, false, HTTP_PASS },
    { "another port is another origin", true, false, false, "localhost:8720", "http://localhost:8721", NULL, false,
      HTTP_ORIGIN },
    { "a change says where it is from", true, false, true, "localhost:8720", NULL, NULL, false, HTTP_ORIGIN },
    { "and not null", true, false, true, "localhost:8720", "null", NULL, false, HTTP_ORIGIN },
    { "a change from our page", true, false, true, "localhost:8720", "http://localhost:8720", NULL, false, HTTP_PASS },
    { "behind a proxy with a certificate", true, false, true, "localhost", "https://localhost", NULL, false,
      HTTP_PASS },
    { "elsewhere without a token in the server, nobody", false, false, false, "192.0.2.7:8720", NULL, NULL, false,
      HTTP_TOKEN },
    { "elsewhere without the token", false, true, false, "192.0.2.7:8720", NULL, NULL, false, HTTP_TOKEN },
    { "with the cookie", false, true, false, "192.0.2.7:8720", NULL, NULL, true, HTTP_PASS },
    { "with the token", false, true, false, "192.0.2.7:8720", NULL, "Bearer a-long-and-good-token", false, HTTP_PASS },
    { "with another", false, true, false, "192.0.2.7:8720", NULL, "Bearer a-long-and-good-tokeN", false, HTTP_TOKEN },
    { "with a part of it", false, true, false, "192.0.2.7:8720", NULL, "Bearer a-long", false, HTTP_TOKEN },
    { "with none at all", false, true, false, "192.0.2.7:8720", NULL, "Bearer ", false, HTTP_TOKEN },
    { "a program with the token changes things", false, true, true, "192.0.2.7:8720", NULL,
      "Bearer a-long-and-good-token", false, HTTP_PASS },
    { "but no page of elsewhere with it", false, true, true, "192.0.2.7:8720", "http://evil.example",
      "Bearer a-long-and-good-token", false, HTTP_ORIGIN },
    { "by the machine's name", false, true, false, "tune.example.org:8720", NULL, NULL, true, HTTP_PASS },
    { "by the short one", false, true, false, "tune", NULL, NULL, true, HTTP_PASS },
    { "by a shorter one", false, true, false, "tun", NULL, NULL, true, HTTP_HOST },
    { "by nobody's", false, true, false, "other.example.org", NULL, NULL, true, HTTP_HOST },
    { "a token on loopback is asked for, too", true, true, false, "localhost", NULL, NULL, false, HTTP_TOKEN },
};

static void test_who_may_ask(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_gate g = gate_with(cases[i].loopback, cases[i].tokened ? token : NULL);
        char cookie[128];
        (void)snprintf(cookie, sizeof cookie, "a=b; pipetune=%s; c=d", g.cookie);
        struct http_claims c = { cases[i].changes, cases[i].host, cases[i].origin, cases[i].cookie ? cookie : NULL,
                                 cases[i].authorization };
        enum http_verdict got = http_gate_ask(&g, &c);
        if (got != cases[i].want)
            fail_msg("%s: got %d, want %d", cases[i].name, got, cases[i].want);
    }
}

static void test_a_cookie_is_the_whole_word(void **state)
{
    (void)state;
    struct http_gate g = gate_with(false, token), other = gate_with(false, "another-long-token");
    char right[128], cut[128], wrong[128], long_one[160];
    (void)snprintf(right, sizeof right, "pipetune=%s", g.cookie);
    (void)snprintf(cut, sizeof cut, "pipetune=%.60s", g.cookie);
    (void)snprintf(wrong, sizeof wrong, "pipetune=%s", other.cookie);
    (void)snprintf(long_one, sizeof long_one, "pipetune=%sx", g.cookie);
    const struct {
        const char *cookie;
        enum http_verdict want;
    } rows[] = { { right, HTTP_PASS },        { cut, HTTP_TOKEN }, { wrong, HTTP_TOKEN }, { long_one, HTTP_TOKEN },
                 { "pipetune=", HTTP_TOKEN }, { "", HTTP_TOKEN },  { ";;;", HTTP_TOKEN }, { "pipetune", HTTP_TOKEN } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_claims c = { false, "127.0.0.1", NULL, rows[i].cookie, NULL };
        assert_int_equal(http_gate_ask(&g, &c), rows[i].want);
    }
}

static void test_a_form_has_the_servers_word(void **state)
{
    (void)state;
    struct http_gate g = gate_with(true, NULL), none = { .loopback = true };
    assert_true(http_gate_form(&g, g.form));
    assert_false(http_gate_form(&g, NULL));
    assert_false(http_gate_form(&g, ""));
    assert_false(http_gate_form(&g, "0123456789abcdef"));
    assert_false(http_gate_form(&none, ""));
    assert_false(http_gate_knows(&none, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_may_ask),
        cmocka_unit_test(test_a_cookie_is_the_whole_word),
        cmocka_unit_test(test_a_form_has_the_servers_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
