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
    free(text);
    return 0;
}
