#include "monitoring/sample_blob.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static bool is_value(double x)
{
    return isfinite(x) && x >= 0;
}

static bool is_ratio(float x)
{
    return x > 0 && x <= 1;
}

/* --- out ---------------------------------------------------------------------------------------------------------- */

static void put_bytes(struct buf *to, uint64_t bits, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_putc(to, (char)(unsigned char)(bits >> (8 * i)));
}

static void put_cell(struct buf *to, const struct reading *r)
{
    bool counted = r->state == READING_OK || r->state == READING_MULTIPLEXED;
    bool known = r->state <= READING_NO_FD || r->state == READING_ABSENT;
    bool good = counted ? is_value(r->value) && (r->state == READING_OK || is_ratio(r->ratio)) : known;
    uint8_t state = good ? r->state : READING_NOT_COUNTED;
    uint64_t value;
    uint32_t ratio;
    memcpy(&value, &r->value, sizeof value);
    memcpy(&ratio, &r->ratio, sizeof ratio);
    put_bytes(to, state, 1);
    if (state == READING_OK || state == READING_MULTIPLEXED)
        put_bytes(to, value, sizeof value);
    if (state == READING_MULTIPLEXED)
        put_bytes(to, ratio, sizeof ratio);
}

void sample_blob_put(struct buf *to, const struct reading *v, size_t n)
{
    while (n > 0 && v[n - 1].state == READING_ABSENT)
        n--;
    for (size_t i = 0; i < n; i++)
        put_cell(to, &v[i]);
}

/* --- in ----------------------------------------------------------------------------------------------------------- */

struct bytes {
    const unsigned char *p;
    size_t left;
};

static bool take_bytes(struct bytes *b, uint64_t *out, size_t n)
{
    if (b->left < n)
        return false;
    *out = 0;
    for (size_t i = 0; i < n; i++)
        *out |= (uint64_t)b->p[i] << (8 * i);
    b->p += n;
    b->left -= n;
    return true;
}

static bool take_cell(struct bytes *b, struct reading *out)
{
    uint64_t state = 0, value = 0, ratio = 0;
    if (!take_bytes(b, &state, 1) || (state > READING_NO_FD && state != READING_ABSENT))
        return false;
    *out = (struct reading){ .value = NAN, .state = (uint8_t)state };
    if (state != READING_OK && state != READING_MULTIPLEXED)
        return true;
    if (!take_bytes(b, &value, sizeof out->value))
        return false;
    memcpy(&out->value, &value, sizeof out->value);
    out->ratio = 1;
    if (state == READING_MULTIPLEXED) {
        if (!take_bytes(b, &ratio, sizeof out->ratio))
            return false;
        uint32_t bits = (uint32_t)ratio;
        memcpy(&out->ratio, &bits, sizeof out->ratio);
    }
    return is_value(out->value) && is_ratio(out->ratio);
}

int sample_blob_read(struct reading out[FEATURES], const struct feature_list *list, const void *bytes, size_t len,
                     struct err *e)
{
    struct reading v[FEATURES];
    struct bytes b = { bytes, len };
    for (size_t i = 0; i < FEATURES; i++)
        v[i] = (struct reading){ .value = NAN, .state = READING_ABSENT };
    for (size_t i = 0; b.left > 0; i++) {
        struct reading r;
        if (i == list->n)
            return err_set(e, -EINVAL, "a sample of more than the %zu features that were named", list->n);
        if (!take_cell(&b, &r))
            return err_set(e, -EINVAL, "cell %zu of a sample is none", i + 1);
        if (list->at[i] >= 0)
            v[list->at[i]] = r;
    }
    memcpy(out, v, sizeof v);
    return 0;
}
