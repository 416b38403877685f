/* live/ssh_ask with programs that stand for ssh. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "live/ssh_ask.h"
#include "tests/fault.h"

static const struct {
    const char *name, *script, *cue;
    enum ssh_ask_end end;
    int code;
    const char *out, *last;
    bool cued;
} cases[] = {
    { "what is sent at once is read to its end", "cat", NULL, SSH_ASK_ENDED, 0, "first\n", "", false },
    { "a cue has the rest sent", "read l; echo motd; echo go on; cat", "go on", SSH_ASK_ENDED, 0, "motd\ngo on\nthen\n",
      "", true },
    { "another word of the speaker ends it", "echo go away; cat >/dev/null", "go on", SSH_ASK_ENDED, 0, "go away\n", "",
      false },
    { "an exit code and the last words", "echo a >&2; printf 'b\\033\\n\\n' >&2; exit 7", NULL, SSH_ASK_ENDED, 7, "",
      "b?", false },
    { "a signal", "kill -9 $$", NULL, SSH_ASK_ENDED, 128 + SIGKILL, "", "", false },
    { "silence", "exec sleep 60", "go on", SSH_ASK_OVERDUE, 128 + SIGTERM, "", "", false },
    { "one that does not end when told", "trap '' TERM; sleep 60 & wait; sleep 60", NULL, SSH_ASK_OVERDUE,
      128 + SIGKILL, "", "", false },
    { "a flood", "exec yes", NULL, SSH_ASK_FLOODED, 128 + SIGTERM, NULL, "", false },
    { "a child that keeps the pipes", "sleep 5 & echo x", NULL, SSH_ASK_ENDED, 0, "x\n", "", false },
    { "no newline", "printf x", "x", SSH_ASK_ENDED, 0, "x", "", false },
};

static struct ssh_ask ask_of(char **argv, const char *cue)
{
    return (
        struct ssh_ask){ .argv = argv, .first = "first\n", .n_first = 6, .cue = cue, .then = "then\n", .n_then = 5 };
}

static void test_each_has_its_own_end(void **state)
{
    (void)state;
    struct ssh_ask v[ARRAY_LEN(cases)];
    char *argv[ARRAY_LEN(cases)][4];
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *words[] = { "/bin/sh", "-c", (char *)cases[i].script, NULL };
        memcpy(argv[i], words, sizeof words);
        v[i] = ask_of(argv[i], cases[i].cue);
    }
    assert_int_equal(ssh_ask_all(v, ARRAY_LEN(v), 2000, &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool good = v[i].end == cases[i].end && v[i].code == cases[i].code && strcmp(v[i].last, cases[i].last) == 0 &&
                    (!cases[i].out || strcmp(buf_text(&v[i].out), cases[i].out) == 0) &&
                    (v[i].cued_real_ms > 0) == cases[i].cued && isnan(v[i].cued_s) == !cases[i].cued;
        if (!good)
            fail_msg("%s: end %d, code %d, '%s', last '%s'", cases[i].name, (int)v[i].end, v[i].code,
                     cases[i].out ? buf_text(&v[i].out) : "", v[i].last);
        ssh_ask_done(&v[i]);
    }
}

static void test_more_than_at_once_are_all_asked(void **state)
{
    (void)state;
    enum { N = 3 * SSH_ASK_AT_ONCE };
    struct ssh_ask v[N];
    char *argv[] = { "/bin/echo", "x", NULL }, *none[] = { "/no/such/program", NULL };
    struct err e;
    for (size_t i = 0; i < N; i++)
        v[i] = ask_of(i % 2 ? argv : none, NULL);
    assert_int_equal(ssh_ask_all(v, N, 20000, &e), 0);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(v[i].end, i % 2 ? SSH_ASK_ENDED : SSH_ASK_UNSTARTED);
        assert_true(i % 2 ? strcmp(buf_text(&v[i].out), "x\n") == 0 : strstr(v[i].last, "no such file") != NULL);
        ssh_ask_done(&v[i]);
    }
}

static void test_without_memory_the_others_are_asked(void **state)
{
    (void)state;
    char *argv[] = { "/bin/echo", "x", NULL };
    size_t started = 0;
    for (unsigned nth = 1; started < 2; nth++) {
        struct ssh_ask v[2] = { ask_of(argv, NULL), ask_of(argv, NULL) };
        struct err e;
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        int rc = ssh_ask_all(v, 2, 20000, &e);
        fault_disarm();
        started = 0;
        for (size_t i = 0; i < 2; i++) {
            started += rc == 0 && v[i].end == SSH_ASK_ENDED && v[i].code == 0;
            ssh_ask_done(&v[i]);
        }
        assert_true(started > 0);
    }
}

static int ignore_pipes(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_has_its_own_end),
        cmocka_unit_test(test_more_than_at_once_are_all_asked),
        cmocka_unit_test(test_without_memory_the_others_are_asked),
    };
    return cmocka_run_group_tests(tests, ignore_pipes, NULL);
}
