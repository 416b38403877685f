/* Which hyperparameter mattered, where it is known which does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "core/rng.h"
#include "search/importance.h"

enum { N = 60 };

static void open_space(struct space *s)
{
    static const char text[] = "{\"hyperParameters\": {\"lr\": {\"min\": 0.001, \"max\": 1, \"scale\": \"log\"},"
                               " \"idle\": {\"min\": 0, \"max\": 1}, \"kind\": [\"a\", \"b\", \"c\"], \"fixed\": [3]}}";
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct err e = { 0 };
    assert_int_equal(json_doc_parse(&doc, "t", text, strlen(text), &e), 0);
    assert_int_equal(space_parse(s, &doc, &e), 0);
}

static void draw(const struct space *s, struct importance_trial *t, double of_lr, double of_kind)
{
    struct rng r = rng_seeded(3);
    for (size_t i = 0; i < N; i++) {
        struct point *p = &t[i].point;
        *p = (struct point){ .x = { exp(log(0.001) * rng_unit(&r)), rng_unit(&r), (double)rng_below(&r, 3), 0 } };
        t[i].cost = of_lr * fabs(log10(p->x[0]) + 1) + of_kind * (p->x[2] == 1 ? 0 : 1) + 0.05 * rng_unit(&r);
    }
    (void)s;
}

static void test_what_matters_has_the_largest_share(void **state)
{
    struct space s = { 0 };
    struct importance_trial t[N];
    double of[SPACE_MAX_DIMS] = { 0 };
    (void)state;
    open_space(&s);
    draw(&s, t, 1, 0);
    assert_int_equal(importance_of(&s, t, N, of), 0);
    assert_true(of[0] > 0.6 && of[1] < 0.3 && of[2] < 0.3 && of[3] == 0);
    assert_true(fabs(of[0] + of[1] + of[2] - 1) < 1e-9);
    assert_true(t[0].cost <= t[N - 1].cost);
    draw(&s, t, 0, 1);
    assert_int_equal(importance_of(&s, t, N, of), 0);
    assert_true(of[2] > of[0] && of[2] > of[1]);
    space_done(&s);
}

static void test_too_little_tells_nothing(void **state)
{
    struct space s = { 0 };
    struct importance_trial t[N];
    double of[SPACE_MAX_DIMS] = { 0 };
    (void)state;
    open_space(&s);
    draw(&s, t, 1, 0);
    assert_int_equal(importance_of(&s, t, IMPORTANCE_TRIALS_MIN - 1, of), -ENODATA);
    for (size_t i = 0; i < N; i++)
        t[i].cost = 1;
    assert_int_equal(importance_of(&s, t, N, of), -ENODATA);
    space_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_matters_has_the_largest_share),
        cmocka_unit_test(test_too_little_tells_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
