#include "monitoring/decimal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DECIMAL_MAX = 40 };
static const char TEN[] = "0123456789";

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* "e-05" and nothing behind it, or nothing at all. */
static bool read_exponent(const char *p, long *out)
{
    *out = 0;
    if (*p == '\0')
        return true;
    if (*p != 'e' && *p != 'E')
        return false;
    const char *digits = p + 1 + (p[1] == '+' || p[1] == '-');
    size_t n = strspn(digits, TEN);
    if (n == 0 || n > 4 || digits[n] != '\0')
        return false;
    *out = strtol(p + 1, NULL, 10);
    return true;
}

bool decimal_read(const char *text, size_t len, const char *points, double *out, double *out_step)
{
    while (len && is_blank(text[len - 1]))
        len--;
    for (; len && is_blank(*text); text++)
        len--;
    char copy[DECIMAL_MAX + 1];
    if (len == 0 || len > DECIMAL_MAX || memchr(text, '\0', len))
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    char *p = copy + (*copy == '+' || *copy == '-');
    size_t whole = strspn(p, TEN), decimals = 0;
    p += whole;
    if (*p && strchr(points, *p)) {
        *p++ = '.'; /* what strtod knows: nothing here sets another locale */
        decimals = strspn(p, TEN);
        p += decimals;
    }
    long exponent;
    if (whole + decimals == 0 || !read_exponent(p, &exponent))
        return false;
    double x = strtod(copy, NULL), step = pow(10, (double)(exponent - (long)decimals));
    if (!isfinite(x) || !isfinite(step) || step == 0)
        return false;
    *out = x;
    *out_step = step;
    return true;
}
