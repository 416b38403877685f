/* Any lines as a tuner's log: what is gathered from them must be of trials and epochs that it named, under settings of its head. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/trace_windows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_stretch(const struct trace_stretch *s)
{
    check(s->trial >= 0 && s->epoch >= 1 && s->hot >= 0 && s->hot < TUNER_MAX_HOT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace_windows w = { 0 };
    char *text = malloc(size + 1);
    check(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *at = text, *end; at < text + size; at = end + 1) {
        end = at + strcspn(at, "\n");
        *end = '\0';
        check(trace_windows_line(&w, at) == 0);
        check(w.n_hot <= TUNER_MAX_HOT && w.n_cold <= TUNER_MAX_COLD);
    }
    for (size_t i = 0; i < w.n; i++)
        check_stretch(&w.list[i]);
    trace_windows_done(&w);
    free(text);
    return 0;
}
