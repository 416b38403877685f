#include "app/cur.h"

#include <math.h>
#include <stdlib.h>

/* ---- numbers -------------------------------------------------------------------------------------------------------- */

bool cur_int(struct cur *c, int64_t *out)
{
    int64_t v = 0;
    const char *p = c->p;
    for (; p < c->end && cur_is_digit(*p); p++)
        v = p - c->p < 18 ? v * 10 + (*p - '0') : -1;
    if (p == c->p || v < 0 || p - c->p > 18)
        return false;
    c->p = p;
    *out = v;
    return true;
}

/* What the fast path cannot do exactly; the caller has seen to it that this is the text of a number. */
static bool number_slowly(const char *text, const char *end, double *out)
{
    char copy[64]; /* log figures have 25 characters at most: longer is no figure of ours */
    size_t n = (size_t)(end - text);
    if (n >= sizeof copy)
        return false;
    memcpy(copy, text, n);
    copy[n] = '\0';
    *out = strtod(copy, NULL);
    return true;
}

struct decimal {
    uint64_t mantissa;
    int digits; /* significant ones */
    int exponent;
};

static void eat_digits(struct cur *c, struct decimal *d, int shift)
{
    for (; c->p < c->end && cur_is_digit(*c->p); c->p++) {
        if (d->digits < 18) {
            d->mantissa = d->mantissa * 10 + (uint64_t)(*c->p - '0');
            d->exponent += shift;
        }
        d->digits += d->digits > 0 || *c->p != '0';
    }
}

static void eat_exponent(struct cur *c, struct decimal *d)
{
    struct cur at = *c;
    at.p++; /* the E */
    bool minus = at.p < at.end && *at.p == '-';
    if (at.p < at.end && (*at.p == '-' || *at.p == '+'))
        at.p++;
    int64_t e = 0;
    if (!cur_int(&at, &e))
        return; /* an E of other text */
    e = e > 9999 ? 9999 : e;
    d->exponent += (int)(minus ? -e : e);
    *c = at;
}

static bool eat_words_for_numbers(struct cur *c, double *out)
{
    if (CUR_EAT(c, "NaN"))
        *out = NAN;
    else if (CUR_EAT(c, "Infinity"))
        *out = INFINITY;
    else if (CUR_EAT(c, "-Infinity"))
        *out = -INFINITY;
    else
        return false;
    return true;
}

/* Equal to what strtod gives: a mantissa below 2^53 and a power of ten up to 22 are both exact in a double, so one
 * multiplication or division rounds correctly; others go to strtod. */
bool cur_scaled(struct cur *c, int shift, double *out)
{
    static const double pow10[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    const char *start = c->p;
    struct cur at = *c;
    bool minus = at.p < at.end && *at.p == '-';
    at.p += minus;
    if (at.p == at.end || !cur_is_digit(*at.p))
        return eat_words_for_numbers(c, out);
    struct decimal d = { 0, 0, shift };
    eat_digits(&at, &d, 0);
    if (at.end - at.p >= 2 && *at.p == '.' && cur_is_digit(at.p[1])) {
        at.p++;
        eat_digits(&at, &d, -1);
    }
    if (at.p < at.end && (*at.p == 'E' || *at.p == 'e'))
        eat_exponent(&at, &d);
    if (d.digits > 18 || d.mantissa > (UINT64_C(1) << 53) || d.exponent < -22 || d.exponent > 22) {
        if (!number_slowly(start, at.p, out))
            return false;
        *out *= shift < 0 ? 1 / pow10[-shift] : pow10[shift];
    } else {
        double v = (double)d.mantissa;
        v = d.exponent < 0 ? v / pow10[-d.exponent] : v * pow10[d.exponent];
        *out = minus ? -v : v;
    }
    c->p = at.p;
    return true;
}

bool cur_number(struct cur *c, double *out)
{
    return cur_scaled(c, 0, out);
}

/* ---- time stamps ---------------------------------------------------------------------------------------------------- */

static int two(const char *p)
{
    return cur_is_digit(p[0]) && cur_is_digit(p[1]) ? (p[0] - '0') * 10 + (p[1] - '0') : -1;
}

/* Days from 1970-01-01 in the Gregorian calendar; years begin in March, so that the leap day is the last. */
static int64_t days_from_civil(int64_t y, int m, int d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static bool eat_time(struct cur *c, int64_t days, int64_t *out_ms, bool *out_coarse)
{
    const char *p = c->p;
    if (c->end - p < 8 || p[2] != ':' || p[5] != ':')
        return false;
    int h = two(p), min = two(p + 3), s = two(p + 6);
    if (h < 0 || h > 23 || min < 0 || min > 59 || s < 0 || s > 60)
        return false;
    p += 8;
    int64_t ms = 0;
    bool coarse = true;
    if (c->end - p >= 4 && (*p == '.' || *p == ',') && cur_is_digit(p[1]) && two(p + 2) >= 0) {
        ms = (p[1] - '0') * 100 + two(p + 2);
        coarse = false;
        p += 4;
        while (p < c->end && cur_is_digit(*p)) /* micro- and nanoseconds are not kept */
            p++;
    }
    *out_ms = ((days * 24 + h) * 60 + min) * 60000 + s * 1000 + ms;
    *out_coarse = coarse;
    c->p = p;
    return true;
}

bool cur_stamp(struct cur *c, int64_t *out_ms, bool *out_coarse)
{
    const char *p = c->p;
    if (c->end - p < 17 || !cur_is_digit(*p))
        return false;
    bool iso = p[4] == '-' && p[7] == '-' && (p[10] == ' ' || p[10] == 'T') && c->end - p >= 19;
    bool spark = p[2] == '/' && p[5] == '/' && p[8] == ' ';
    if (!iso && !spark)
        return false;
    int century = iso ? two(p) : 20;
    p += iso ? 2 : 0;
    int year = two(p), month = two(p + 3), day = two(p + 6);
    if (century < 0 || year < 0 || century * 100 + year < 1970 || month < 1 || month > 12 || day < 1 || day > 31)
        return false;
    struct cur at = { p + 9, c->end };
    if (!eat_time(&at, days_from_civil(century * 100 + year, month, day), out_ms, out_coarse))
        return false;
    *c = at;
    return true;
}
