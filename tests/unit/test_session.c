/* The words (bigdl/session), and where memory runs out at the socket (live/session). */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "app/session.h"
#include "base/json.h"
#include "base/own.h"
#include "live/session.h"
#include "tests/fault.h"

/* ---- names ---------------------------------------------------------------------------------------------------------- */

static void test_session_knows_an_id(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
    } ids[] = { { "1", true },    { "study-1_2", true }, { "AZaz09-_", true },  { "", false },     { "a b", false },
                { "a/b", false }, { "a.b", false },      { "\xc3\xa4", false }, { "a\nb", false }, { "\"", false } };
    char longest[SESSION_ID_MAX + 2];
    memset(longest, 'x', sizeof longest);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        if (session_is_id(ids[i].text, strlen(ids[i].text)) != ids[i].good)
            fail_msg("'%s': want %d", ids[i].text, ids[i].good);
    assert_true(session_is_id(longest, SESSION_ID_MAX));
    assert_false(session_is_id(longest, SESSION_ID_MAX + 1));
    assert_false(session_is_id("a\0b", 3));
}

/* ---- to the session ------------------------------------------------------------------------------------------------- */

static void expect_run(const struct session_run *r, const char *want)
{
    AUTO_BUF struct buf b = BUF_INIT;
    session_put_run(&b, r);
    assert_false(b.failed);
    assert_string_equal(buf_text(&b), want);
}

static void test_session_writes_a_run(void **state)
{
    (void)state;
    AUTO_JSON json_t *hyper = json_pack("{s:i, s:f, s:s}", "batch_size", 128, "learning_rate", 0.1, "kind", "a\"b");
    struct session_run r = { .id = "s-1", .hyper = hyper, .epochs = 2, .seed = -7 };
    expect_run(&r, "{\"run\":{\"id\":\"s-1\",\"hyper\":{\"batch_size\": 128, \"learning_rate\": 0.1, \"kind\": "
                   "\"a\\\"b\"},\"epochs\":2,\"seed\":-7,\"checkpoint\":null,\"model\":null,\"state\":null}}\n");
    r = (struct session_run){ .id = "2", .epochs = 1, .checkpoint = "/a \"b\"\n", .model = "/m", .state = "/s" };
    expect_run(
        &r, "{\"run\":{\"id\":\"2\",\"hyper\":{},\"epochs\":1,\"seed\":0,\"checkpoint\":\"/a \\\"b\\\"\\n\",\"model\":"
            "\"/m\",\"state\":\"/s\"}}\n");
}

static void test_session_writes_a_stop(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    session_put_stop(&b);
    assert_string_equal(buf_text(&b), "{\"stop\":{}}\n");
}

static void test_session_writes_an_end(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    session_put_end(&b, "s-1", 3);
    assert_string_equal(buf_text(&b), "{\"end\":{\"id\":\"s-1\",\"epoch\":3}}\n");
}

static void test_session_speaks_with_those_of_earlier_versions(void **state)
{
    (void)state;
    assert_false(session_speaks(0));
    assert_true(session_speaks(1));
    assert_true(session_speaks(SESSION_PROTOCOL));
    assert_false(session_speaks(SESSION_PROTOCOL + 1));
}

static void test_session_says_when_memory_is_out(void **state)
{
    (void)state;
    const struct session_run r = { .id = "1",
                                   .epochs = 1,
                                   .checkpoint = "/a/folder/with/a/name/that/makes/the/buffer/grow" };
    bool failed = true;
    for (unsigned nth = 1; failed; nth++) {
        AUTO_BUF struct buf b = BUF_INIT;
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        session_put_run(&b, &r);
        failed = fault_disarm();
        assert_int_equal(b.failed, failed);
    }
}

/* ---- from the session ----------------------------------------------------------------------------------------------- */

static struct session_message heard(const char *line)
{
    struct session_message m = { .protocol = -1 };
    struct err e = { 0 };
    int rc = session_parse(&m, line, strlen(line), &e);
    if (rc < 0)
        fail_msg("%s: %s", line, e.text);
    return m;
}

static void test_session_reads_a_hello(void **state)
{
    (void)state;
    struct session_message m =
        heard("{\"hello\":{\"protocol\":1,\"app_id\":\"local-17\",\"pid\":4711,\"busy\":null,\"more\":[1]}, \"x\": 1}");
    assert_int_equal(m.word, SESSION_HELLO);
    assert_int_equal(m.protocol, 1);
    assert_int_equal(m.pid, 4711);
    assert_string_equal(m.app_id, "local-17");
    assert_string_equal(m.id, "");
    m = heard("{\"hello\":{\"protocol\":1,\"app_id\":\"app\\n-17\",\"pid\":1,\"busy\":\"s-2\"}}");
    assert_string_equal(m.app_id, "app -17");
    assert_string_equal(m.id, "s-2");
}

static void test_session_reads_no_more_of_another_protocol(void **state)
{
    (void)state;
    struct session_message m = heard("{\"hello\":{\"protocol\":9,\"pid\":\"four\"}}");
    assert_int_equal(m.protocol, 9);
    assert_int_equal(m.pid, 0);
}

static void test_session_reads_an_epoch(void **state)
{
    (void)state;
    struct session_message m = heard("{\"epoch\":{\"id\":\"a\",\"epoch\":3,\"metrics\":{\"f1\":0.5,\"n\":2}}}");
    assert_int_equal(m.word, SESSION_EPOCH);
    assert_string_equal(m.id, "a");
    assert_int_equal(m.epoch, 3);
    assert_true(json_number_value(json_object_get(m.metrics, "f1")) == 0.5);
    assert_true(json_number_value(json_object_get(m.metrics, "n")) == 2);
    session_message_done(&m);
    assert_null(m.metrics);
    session_message_done(&m);
    m = heard("{\"epoch\":{\"id\":\"a\",\"epoch\":1,\"metrics\":null}}");
    assert_null(m.metrics);
}

static void test_session_reads_a_done(void **state)
{
    (void)state;
    struct session_message m = heard("{\"done\":{\"id\":\"a\",\"ok\":true,\"error\":null}}");
    assert_int_equal(m.word, SESSION_DONE);
    assert_true(m.ok);
    assert_string_equal(m.error, "");
    m = heard("{\"done\":{\"id\":\"a\",\"ok\":false,\"error\":\"one\\ttwo\\nthree\\u007f \xc3\xa4\"}}");
    assert_false(m.ok);
    assert_string_equal(m.error, "one two three  \xc3\xa4");
    m = heard("{\"done\":{\"id\":\"a\",\"ok\":false}}");
    assert_string_equal(m.error, "");
}

static void test_session_cuts_an_error_between_characters(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT;
    buf_puts(&b, "{\"done\":{\"id\":\"a\",\"ok\":false,\"error\":\"");
    for (int i = 0; i < SESSION_TEXT_MAX; i++)
        buf_puts(&b, "\xe2\x82\xac");
    buf_puts(&b, "\"}}");
    struct session_message m = heard(buf_text(&b));
    assert_int_equal(strlen(m.error), (SESSION_TEXT_MAX - 1) / 3 * 3);
}

static const struct {
    const char *name, *line;
    int code;
    const char *word;
} faults[] = {
    { "nothing", "", -EINVAL, "no JSON" },
    { "half a message", "{\"hello\":{\"protocol\":1", -EINVAL, "no JSON" },
    { "a key twice", "{\"done\":{\"id\":\"a\",\"ok\":true,\"ok\":false}}", -EINVAL, "no JSON" },
    { "bytes that are no UTF-8", "{\"done\":{\"id\":\"a\",\"ok\":false,\"error\":\"\xff\"}}", -EINVAL, "no JSON" },
    { "an array", "[]", -EINVAL, "no object" },
    { "an unknown word", "{\"heartbeat\":{}}", -ENOMSG, "unknown" },
    { "no word", "{}", -ENOMSG, "unknown" },
    { "a word without a body", "{\"hello\":1}", -EINVAL, "'hello' is no object" },
    { "a hello without a protocol", "{\"hello\":{\"app_id\":\"a\",\"pid\":1}}", -EINVAL, "'hello': 'protocol'" },
    { "a hello with a protocol of 0", "{\"hello\":{\"protocol\":0}}", -EINVAL, "'protocol'" },
    { "a hello with a broken number", "{\"hello\":{\"protocol\":1.0}}", -EINVAL, "'protocol'" },
    { "a hello with an immense protocol", "{\"hello\":{\"protocol\":2147483648}}", -EINVAL, "'protocol'" },
    { "a hello without a pid", "{\"hello\":{\"protocol\":1,\"app_id\":\"a\"}}", -EINVAL, "'pid'" },
    { "a hello from every process", "{\"hello\":{\"protocol\":1,\"app_id\":\"a\",\"pid\":-1}}", -EINVAL, "'pid'" },
    { "a hello without an application", "{\"hello\":{\"protocol\":1,\"pid\":1}}", -EINVAL, "'app_id'" },
    { "a hello busy with a path", "{\"hello\":{\"protocol\":1,\"app_id\":\"a\",\"pid\":1,\"busy\":\"a/b\"}}", -EINVAL,
      "'busy'" },
    { "an epoch of no trial", "{\"epoch\":{\"epoch\":1}}", -EINVAL, "'epoch': 'id'" },
    { "an epoch without a number", "{\"epoch\":{\"id\":\"a\"}}", -EINVAL, "'epoch'" },
    { "an epoch 0", "{\"epoch\":{\"id\":\"a\",\"epoch\":0}}", -EINVAL, "from 1" },
    { "metrics in a list", "{\"epoch\":{\"id\":\"a\",\"epoch\":1,\"metrics\":[1]}}", -EINVAL, "'metrics'" },
    { "a metric that is a text", "{\"epoch\":{\"id\":\"a\",\"epoch\":1,\"metrics\":{\"b\":\"c\"}}}", -EINVAL,
      "a metric" },
    { "a done of no trial", "{\"done\":{\"ok\":true}}", -EINVAL, "'done': 'id'" },
    { "a done with a number for an id", "{\"done\":{\"id\":1,\"ok\":true}}", -EINVAL, "'id'" },
    { "a done that does not say how", "{\"done\":{\"id\":\"a\"}}", -EINVAL, "'ok'" },
    { "a done with a number for an error", "{\"done\":{\"id\":\"a\",\"ok\":false,\"error\":5}}", -EINVAL, "'error'" },
};

static void test_session_refuses_nonsense(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        struct session_message m = { .pid = 99 };
        struct err e = { 0 };
        int rc = session_parse(&m, faults[i].line, strlen(faults[i].line), &e);
        if (rc != faults[i].code || !strstr(e.text, faults[i].word))
            fail_msg("%s: got %d '%s', want %d '%s'", faults[i].name, rc, e.text, faults[i].code, faults[i].word);
        if (m.pid != 99)
            fail_msg("%s: the message was touched", faults[i].name);
    }
}

static void test_session_refuses_a_line_that_is_too_long(void **state)
{
    (void)state;
    struct session_message m;
    struct err e = { 0 };
    AUTO_BUF struct buf b = BUF_INIT;
    buf_puts(&b, "{\"done\":{\"id\":\"a\",\"ok\":true}}");
    while (b.len < SESSION_LINE_MAX - 1)
        buf_putc(&b, ' ');
    assert_int_equal(session_parse(&m, b.data, b.len, &e), 0);
    buf_putc(&b, ' ');
    assert_int_equal(session_parse(&m, b.data, b.len, &e), -EINVAL);
    assert_non_null(strstr(e.text, "65536"));
}

/* ---- the socket, when memory is out --------------------------------------------------------------------------------- */

static void nothing(void *ctx, uint64_t id, const struct session_message *m)
{
    (void)id, (void)m;
    ++*(int *)ctx;
}

static void lost(void *ctx, uint64_t id, const char *why)
{
    (void)ctx, (void)id;
    fail_msg("lost: %s", why);
}

static const struct session_ops ops = { nothing, nothing, nothing, lost, NULL };

static int listen_at(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void test_session_path_survives_lack_of_memory(void **state)
{
    (void)state;
    char dir[] = "/tmp/pipetune-unit-XXXXXX", folder[64];
    int rc = -ENOMEM, struck = 0;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(setenv("XDG_RUNTIME_DIR", dir, 1), 0);
    for (unsigned nth = 1; rc < 0; nth++) {
        AUTO_FREE char *path = NULL;
        struct err e = { 0 };
        assert_true(nth < 16);
        fault_arm(FAULT_ALLOC, nth);
        rc = session_path(&path, "s-1", &e);
        struck += rc < 0;
        assert_int_equal(rc, fault_disarm() ? -ENOMEM : 0);
    }
    assert_true(struck > 0);
    (void)snprintf(folder, sizeof folder, "%s/pipetune", dir);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rmdir(dir), 0);
}

/* Opens a link and runs a trial; every call of ours that asks for memory fails in turn. */
static void test_session_link_survives_lack_of_memory(void **state)
{
    (void)state;
    static const char hello[] = "{\"hello\":{\"protocol\":1,\"app_id\":\"a\",\"pid\":1}}\n";
    const struct session_run r = { .id = "1", .epochs = 1 };
    char dir[] = "/tmp/pipetune-unit-XXXXXX", path[64];
    uv_loop_t loop;
    int rc = -ENOMEM, opened = 0;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/s.sock", dir);
    AUTO_CLOSE int listener = listen_at(path);
    assert_int_equal(uv_loop_init(&loop), 0);
    for (unsigned nth = 1; rc < 0; nth++) {
        struct session_link *l = NULL;
        struct err e = { 0 };
        int hellos = 0;
        assert_true(nth < 16);
        fault_arm(FAULT_ALLOC, nth);
        rc = session_link_open(&l, &loop, path, &ops, &hellos, 1, &e);
        if (rc == 0) {
            opened++;
            while (uv_run(&loop, UV_RUN_NOWAIT) &&
                   poll(&(struct pollfd){ .fd = listener, .events = POLLIN }, 1, 1) == 0)
                ;
            AUTO_CLOSE int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            assert_int_equal(write(peer, hello, sizeof hello - 1), sizeof hello - 1);
            while (hellos == 0)
                (void)uv_run(&loop, UV_RUN_ONCE);
            rc = session_link_run(l, &r);
            if (rc < 0)
                assert_int_equal(session_link_stop(l), 0); /* the link stands */
            (void)uv_run(&loop, UV_RUN_NOWAIT);
        }
        assert_int_equal(rc, fault_disarm() ? -ENOMEM : 0);
        session_link_free(l);
        (void)uv_run(&loop, UV_RUN_DEFAULT);
    }
    assert_true(opened > 1);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

/* ---- a session elsewhere -------------------------------------------------------------------------------------------- */

struct far { /* what came of it, and what it was told */
    struct session_link *link;
    int hello, epoch, done, lost, away, closed, say_rc;
    bool frees; /* the link, in the next call */
    struct buf told;
};

static void came(struct far *f, int *n)
{
    ++*n;
    if (f->frees)
        session_link_free(MOVE_PTR(f->link));
}

static void far_hello(void *ctx, uint64_t id, const struct session_message *m)
{
    struct far *f = ctx;
    (void)id, (void)m;
    came(f, &f->hello);
}

static void far_epoch(void *ctx, uint64_t id, const struct session_message *m)
{
    struct far *f = ctx;
    (void)id, (void)m;
    came(f, &f->epoch);
}

static void far_done(void *ctx, uint64_t id, const struct session_message *m)
{
    struct far *f = ctx;
    (void)id, (void)m;
    came(f, &f->done);
}

static void far_lost(void *ctx, uint64_t id, const char *why)
{
    struct far *f = ctx;
    (void)id;
    assert_true(*why);
    came(f, &f->lost);
}

static void far_away(void *ctx, uint64_t id)
{
    struct far *f = ctx;
    (void)id;
    came(f, &f->away);
}

static int far_say(void *ctx, const char *bytes, size_t n)
{
    struct far *f = ctx;
    buf_put(&f->told, bytes, n);
    return f->say_rc;
}

static void far_closed(void *ctx)
{
    struct far *f = ctx;
    f->closed++;
}

static const struct session_ops far_ops = { far_hello, far_epoch, far_done, far_lost, far_away };
static const struct session_wire far_wire = { far_say, far_closed };

#define HELLO "{\"hello\":{\"protocol\":2,\"app_id\":\"a\",\"pid\":1}}\n"
#define EPOCH "{\"epoch\":{\"id\":\"1\",\"epoch\":1}}\n"
#define NONSENSE "nonsense\n"
#define DONE "{\"done\":{\"id\":\"1\",\"ok\":true}}\n"

static void open_far(struct far *f)
{
    struct err e = { 0 };
    *f = (struct far){ .told = BUF_INIT };
    assert_int_equal(session_link_wired(&f->link, &far_wire, f, &far_ops, f, 1, &e), 0);
}

static void hear(struct far *f, const char *words, size_t piece)
{
    for (size_t at = 0, len = strlen(words); at < len && f->link; at += piece)
        session_link_heard(f->link, words + at, len - at < piece ? len - at : piece);
}

static void test_words_of_a_session_elsewhere_come_in_any_pieces(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 90; piece++) {
        struct far f;
        open_far(&f);
        hear(&f, HELLO EPOCH EPOCH DONE, piece);
        if (f.hello != 1 || f.epoch != 2 || f.done != 1 || f.lost)
            fail_msg("pieces of %zu: hello %d, epochs %d, done %d, lost %d", piece, f.hello, f.epoch, f.done, f.lost);
        session_link_free(f.link);
        assert_int_equal(f.closed, 1);
    }
}

static void test_a_session_elsewhere_says_hello_again_when_the_way_was_broken(void **state)
{
    (void)state;
    const struct session_run r = { .id = "1", .epochs = 1 };
    struct far f;
    open_far(&f);
    assert_int_equal(session_link_run(f.link, &r), -ENOTCONN);
    hear(&f, HELLO "{\"epoch\":{\"id\"", 1000); /* the rest never comes */
    assert_int_equal(session_link_run(f.link, &r), 0);
    assert_true(f.told.len > 0 && f.told.data[f.told.len - 1] == '\n');
    session_link_away(f.link);
    assert_int_equal(f.away, 1);
    assert_int_equal(session_link_stop(f.link), -ENOTCONN);
    hear(&f, HELLO DONE, 1000);
    assert_true(f.hello == 2 && f.done == 1 && f.lost == 0);
    f.say_rc = -ENOBUFS;
    assert_int_equal(session_link_stop(f.link), -ENOBUFS);
    hear(&f, HELLO, 1000); /* nobody asked for another */
    assert_int_equal(f.lost, 1);
    session_link_away(f.link), session_link_gone(f.link, "gone"), hear(&f, HELLO, 1000);
    assert_true(f.lost == 1 && f.away == 1 && f.hello == 2); /* nothing comes after it */
    session_link_free(f.link);
    buf_done(&f.told);
}

static void test_a_link_may_be_freed_whatever_comes(void **state)
{
    (void)state;
    static const char *const words[] = { HELLO EPOCH DONE, HELLO EPOCH EPOCH, HELLO DONE, NONSENSE HELLO };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        for (size_t before = 0; before < 3; before++) {
            struct far f;
            open_far(&f);
            const char *at = words[i];
            for (size_t k = 0; k < before; k++) {
                const char *end = strchr(at, '\n') + 1;
                if (!*end)
                    break;
                session_link_heard(f.link, at, (size_t)(end - at));
                at = end;
            }
            f.frees = true;
            hear(&f, at, 1000);
            if (f.link)
                session_link_free(f.link);
            assert_int_equal(f.closed, 1);
        }
    for (int way = 0; way < 2; way++) {
        struct far f;
        open_far(&f);
        f.frees = true;
        if (way == 0)
            session_link_gone(f.link, "gone");
        else
            session_link_away(f.link);
        assert_true(!f.link && f.closed == 1);
    }
}

static void test_a_session_elsewhere_does_not_flood(void **state)
{
    (void)state;
    static char endless[SESSION_LINE_MAX + 10];
    struct far f;
    memset(endless, 'x', sizeof endless - 1);
    open_far(&f);
    hear(&f, HELLO, 1000);
    hear(&f, endless, 3000);
    assert_int_equal(f.lost, 1);
    session_link_free(f.link);
    struct err e = { 0 };
    fault_arm(FAULT_ALLOC, 1);
    assert_int_equal(session_link_wired(&f.link, &far_wire, &f, &far_ops, &f, 1, &e), -ENOMEM);
    (void)fault_disarm();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_session_knows_an_id),
        cmocka_unit_test(test_session_writes_a_run),
        cmocka_unit_test(test_session_writes_a_stop),
        cmocka_unit_test(test_session_writes_an_end),
        cmocka_unit_test(test_session_speaks_with_those_of_earlier_versions),
        cmocka_unit_test(test_session_says_when_memory_is_out),
        cmocka_unit_test(test_session_reads_a_hello),
        cmocka_unit_test(test_session_reads_no_more_of_another_protocol),
        cmocka_unit_test(test_session_reads_an_epoch),
        cmocka_unit_test(test_session_reads_a_done),
        cmocka_unit_test(test_session_cuts_an_error_between_characters),
        cmocka_unit_test(test_session_refuses_nonsense),
        cmocka_unit_test(test_session_refuses_a_line_that_is_too_long),
        cmocka_unit_test(test_session_path_survives_lack_of_memory),
        cmocka_unit_test(test_session_link_survives_lack_of_memory),
        cmocka_unit_test(test_words_of_a_session_elsewhere_come_in_any_pieces),
        cmocka_unit_test(test_a_session_elsewhere_says_hello_again_when_the_way_was_broken),
        cmocka_unit_test(test_a_link_may_be_freed_whatever_comes),
        cmocka_unit_test(test_a_session_elsewhere_does_not_flood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
