#include "monitoring/sample_text.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char letters[] = {
    [READING_NOT_COUNTED] = 'n',
    [READING_UNSUPPORTED] = 'u',
    [READING_DENIED] = 'd',
    [READING_NO_FD] = 'f',
};

static bool is_value(double x)
{
    return isfinite(x) && x >= 0;
}

/* Behind the number at `p`; NULL: it is none. strtod() alone would take "0x1", "inf" and " 1". */
static const char *take_number(const char *p, double *out)
{
    size_t len = strspn(p, "0123456789.eE+-");
    if (*p < '0' || *p > '9')
        return NULL;
    char *end = NULL;
    *out = strtod(p, &end); /* in the C locale: nobody sets another */
    return end == p + len && is_value(*out) ? end : NULL;
}

static const char *take_value(const char *p, struct reading *out)
{
    double ratio = 1;
    *out = (struct reading){ .ratio = 1, .state = READING_OK };
    p = take_number(p, &out->value);
    if (!p || *p != '/')
        return p;
    p = take_number(p + 1, &ratio);
    out->ratio = (float)ratio;
    out->state = READING_MULTIPLEXED;
    return p && out->ratio > 0 && out->ratio <= 1 ? p : NULL;
}

/* Behind the cell; NULL: it is none. */
static const char *take_cell(const char *p, struct reading *out)
{
    *out = (struct reading){ .value = NAN, .state = READING_ABSENT };
    if (*p == '-')
        return p + 1;
    for (uint8_t state = READING_NOT_COUNTED; state <= READING_NO_FD; state++)
        if (*p == letters[state]) {
            out->state = state;
            return p + 1;
        }
    return take_value(p, out);
}

/* How many cells there are; `out` NULL: they are only looked at. */
static int take_cells(struct reading *out, size_t n, const char *text, struct err *e)
{
    const char *p = text;
    size_t i = 0;
    for (; *p; i++) {
        struct reading r;
        const char *end = i < n ? take_cell(p, &r) : NULL;
        if (i == n)
            return err_set(e, -EINVAL, "a sample of more than %zu cells", n);
        if (!end || (*end && *end != ' ') || (*end == ' ' && !end[1]))
            return err_set(e, -EINVAL, "cell %zu of a sample is none: '%.24s'", i + 1, p);
        if (out)
            out[i] = r;
        p = *end ? end + 1 : end;
    }
    return (int)i;
}

int sample_text_read(struct reading *out, size_t n, const char *text, struct err *e)
{
    int rc = take_cells(NULL, n, text, e);
    if (rc < 0)
        return rc;
    for (size_t i = (size_t)take_cells(out, n, text, NULL); i < n; i++)
        out[i] = (struct reading){ .value = NAN, .state = READING_ABSENT };
    return 0;
}
