/* What programs tell, on any bytes: no crash, no read beyond the line, and reports within their bounds. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "app/tell.h"
#include "base/own.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct app_report *r)
{
    if (r->kind != REPORT_EPOCH && r->kind != REPORT_STEP && r->kind != REPORT_CHECKPOINT)
        abort();
    if (r->epoch < 0 || r->step < 0 || r->n_values > REPORT_VALUES_MAX || !(r->records >= 0) || r->seconds < 0)
        abort();
    if ((r->kind == REPORT_CHECKPOINT) != (r->text[0] != '\0') || strnlen(r->text, sizeof r->text) == sizeof r->text)
        abort();
    for (size_t i = 0; i < r->n_values; i++)
        if (strnlen(r->values[i].name, REPORT_NAME_MAX) == REPORT_NAME_MAX)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *line = malloc(size + 1);
    struct app_report r;
    struct err e = { 0 };
    if (!line)
        return 0;
    memcpy(line, data, size);
    line[size] = '\0';
    int rc = tell_read(line, size, &r, &e);
    if (rc == 1)
        check(&r);
    if (rc < 0 && e.text[0] == '\0')
        abort();
    return 0;
}
