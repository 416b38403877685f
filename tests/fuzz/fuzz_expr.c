/* Conditions of any bytes: refused with a reason, or computed without a fault. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/expr.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct expr_value read_name(void *ctx, size_t name)
{
    static const struct expr_value values[] = { { .number = 64 }, { .text = "sgd" }, { .number = NAN } };
    (void)ctx;
    return values[name];
}

/* With names that are known later, each of which rises. */
static void parse_open(const char *text)
{
    static const char *const names[] = { "batch" };
    struct strv others = STRV_INIT;
    struct expr *x = NULL;
    struct err e = { 0 };
    if (expr_parse_open(&x, text, names, 1, &others, &e) == 0) {
        enum expr_trend *trends = calloc(others.n + 1, sizeof *trends);
        for (size_t i = 1; trends && i <= others.n; i++)
            trends[i] = EXPR_RISES;
        if (trends)
            (void)expr_only_falls(x, trends);
        free(trends);
    }
    expr_free(x);
    strv_done(&others);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "batch", "optimizer", "nothing" };
    char *text = fuzz_text(data, size);
    struct expr *x = NULL;
    struct err e = { 0 };
    if (expr_parse(&x, text, names, 3, &e) == 0)
        (void)expr_holds(x, read_name, NULL);
    else if (!e.text[0])
        abort();
    expr_free(x);
    parse_open(text);
    free(text);
    return 0;
}
