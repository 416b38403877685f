#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "store/trace_wire.h"
#include "tests/fault.h"

static void fill(struct trace *t)
{
    strv_add(&t->features, "a");
    strv_add(&t->features, "b");
    struct trace_run *r = trace_add(t);
    assert_non_null(r);
    r->model = strdup("m");
    r->dataset = strdup("");
    r->system = strdup("{}");
    r->hyper = strdup("{\"batch_size\":8}");
    r->status = RUN_PARTIAL;
    r->startup_s = 45;
    r->epochs = calloc(1, sizeof *r->epochs);
    r->epochs[r->n_epochs++] = (struct trace_epoch){ 1, 2, 3, 4, 5, 6, 7 };
    r->windows = calloc(1, sizeof *r->windows);
    r->windows[r->n_windows++] = (struct trace_window){ 3, strdup("{\"cores\":4}"), { 1, 2, 3, 4, 5, 6, 7 } };
    assert_int_equal(trace_samples_init(&r->samples, 2, 2), 0);
    r->samples.t_ns[1] = 77;
    r->samples.state[3] = TRACE_DENIED;
    t->tuner.policy = strdup("paper");
    t->tuner.study = strdup("s");
    strv_add(&t->tuner.log, "H 1 paper");
    strv_add(&t->tuner.log, "b 1 0.5");
    t->tuner.decisions = calloc(1, sizeof *t->tuner.decisions);
    t->tuner.decisions[t->tuner.n_decisions++] =
        (struct trace_decision){ 7, 1, 2.5, strdup("apply"), strdup(""), strdup("because") };
}

/* The bytes of an outcome, to be freed. */
static char *put(int rc, const struct trace *t, const struct err *error, size_t *out_len)
{
    struct stat st;
    AUTO_CLOSE int fd = memfd_create("wire", MFD_CLOEXEC);
    assert_int_equal(trace_wire_put(fd, rc, t, error), 0);
    assert_int_equal(fstat(fd, &st), 0);
    char *bytes = malloc((size_t)st.st_size);
    assert_int_equal(pread(fd, bytes, (size_t)st.st_size, 0), st.st_size);
    *out_len = (size_t)st.st_size;
    return bytes;
}

static char *put_filled(size_t *out_len)
{
    struct trace t = { 0 };
    fill(&t);
    char *bytes = put(0, &t, NULL, out_len);
    trace_done(&t);
    return bytes;
}

static void test_a_trace_arrives(void **state)
{
    (void)state;
    struct trace t = { 0 };
    struct err e;
    size_t len = 0;
    AUTO_FREE char *bytes = put_filled(&len);
    assert_int_equal(trace_wire_get(&t, bytes, len, "f", &e), 0);
    const struct trace_run *r = &t.runs[0];
    assert_true(t.n == 1 && t.features.n == 2 && r->n_epochs == 1 && r->n_windows == 1 && r->samples.n == 2);
    assert_string_equal(t.features.v[1], "b");
    assert_string_equal(r->hyper, "{\"batch_size\":8}");
    assert_null(r->results);
    assert_string_equal(r->windows[0].setting, "{\"cores\":4}");
    assert_true(r->status == RUN_PARTIAL && r->startup_s == 45 && r->windows[0].epoch == 3 &&
                r->windows[0].at.records == 7);
    assert_true(r->epochs[0].accuracy == 4 && r->samples.t_ns[1] == 77 && r->samples.state[3] == TRACE_DENIED);
    const struct trace_tuner *tuner = &t.tuner;
    assert_true(tuner->log.n == 2 && tuner->n_decisions == 1);
    assert_string_equal(tuner->policy, "paper");
    assert_string_equal(tuner->study, "s");
    assert_string_equal(tuner->log.v[1], "b 1 0.5");
    assert_true(tuner->decisions[0].seq == 7 && tuner->decisions[0].trial == 1 && tuner->decisions[0].t_s == 2.5);
    assert_string_equal(tuner->decisions[0].kind, "apply");
    assert_string_equal(tuner->decisions[0].setting, "");
    assert_string_equal(tuner->decisions[0].reason, "because");
    trace_done(&t);
}

static void test_an_error_arrives(void **state)
{
    (void)state;
    struct trace t = { 0 };
    struct err error, e = { 0 };
    size_t len = 0;
    (void)err_set(&error, -EPROTO, "'f' is odd");
    AUTO_FREE char *bytes = put(-EPROTO, NULL, &error, &len);
    assert_int_equal(trace_wire_get(&t, bytes, len, "f", &e), -EPROTO);
    assert_string_equal(e.text, "'f' is odd");
    assert_int_equal(trace_wire_get(&t, bytes, len - 1, "f", &e), -EPROTO);
    assert_non_null(strstr(e.text, "'f' is no trace"));
    error.text[0] = '\0'; /* nobody would know what happened */
    AUTO_FREE char *mute = put(-EPROTO, NULL, &error, &len);
    assert_int_equal(trace_wire_get(&t, mute, len, "f", &e), -EPROTO);
    assert_non_null(strstr(e.text, "'f' is no trace"));
}

static void test_a_trace_without_a_tuner_arrives_without_one(void **state)
{
    (void)state;
    struct trace empty = { 0 }, t = { 0 };
    struct err e;
    size_t len = 0;
    AUTO_FREE char *bytes = put(0, &empty, NULL, &len);
    assert_int_equal(trace_wire_get(&t, bytes, len, "f", &e), 0);
    assert_null(t.tuner.policy);
    trace_done(&t);
}

static void refuse_filled(void (*change)(struct trace_tuner *t))
{
    struct trace from = { 0 }, t = { 0 };
    struct err e = { 0 };
    size_t len = 0;
    fill(&from);
    change(&from.tuner);
    AUTO_FREE char *bytes = put(0, &from, NULL, &len);
    assert_int_equal(trace_wire_get(&t, bytes, len, "f", &e), -EPROTO);
    assert_null(t.runs);
    trace_done(&from);
}

static void two_lines_in_one(struct trace_tuner *t)
{
    t->log.v[1][3] = '\n';
}
static void policy_that_is_no_name(struct trace_tuner *t)
{
    t->policy[0] = '\x1b';
}
static void decision_without_a_kind(struct trace_tuner *t)
{
    free(t->decisions[0].kind);
    t->decisions[0].kind = NULL;
}

static void test_a_tuner_that_is_none_is_refused(void **state)
{
    (void)state;
    refuse_filled(two_lines_in_one);
    refuse_filled(policy_that_is_no_name);
    refuse_filled(decision_without_a_kind);
}

static void test_what_is_cut_or_changed_is_refused_or_sane(void **state)
{
    (void)state;
    size_t len = 0;
    AUTO_FREE char *bytes = put_filled(&len);
    for (size_t cut = 0; cut < len; cut++) {
        struct trace t = { 0 };
        struct err e = { 0 };
        assert_int_equal(trace_wire_get(&t, bytes, cut, "f", &e), -EPROTO);
        assert_true(e.text[0] && !t.runs);
    }
    for (size_t at = 0; at < len; at++) {
        struct trace t = { 0 };
        struct err e = { 0 };
        bytes[at] = (char)(bytes[at] ^ 0x81);
        int rc = trace_wire_get(&t, bytes, len, "f", &e);
        bytes[at] = (char)(bytes[at] ^ 0x81);
        assert_true(rc == 0 || (e.text[0] && !t.runs));
        trace_done(&t);
    }
}

static void test_put_and_get_whatever_fails(void **state)
{
    (void)state;
    struct trace from = { 0 };
    struct err e;
    size_t len = 0;
    fill(&from);
    AUTO_FREE char *bytes = put_filled(&len);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct trace t = { 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = trace_wire_get(&t, bytes, len, "f", &e);
        fault_disarm();
        assert_true(rc == 0 || (rc == -ENOMEM && !t.runs));
        trace_done(&t);
    }
    rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        AUTO_CLOSE int fd = memfd_create("wire", MFD_CLOEXEC);
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC | FAULT_WRITE, nth);
        rc = trace_wire_put(fd, 0, &from, NULL);
        fault_disarm();
    }
    trace_done(&from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_trace_arrives),
        cmocka_unit_test(test_an_error_arrives),
        cmocka_unit_test(test_a_trace_without_a_tuner_arrives_without_one),
        cmocka_unit_test(test_a_tuner_that_is_none_is_refused),
        cmocka_unit_test(test_what_is_cut_or_changed_is_refused_or_sane),
        cmocka_unit_test(test_put_and_get_whatever_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
