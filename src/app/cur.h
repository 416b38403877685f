/* A cursor over one line of a log: literals, decimal numbers as Java prints them, time stamps. Pure; any bytes are allowed. */
#ifndef APP_CUR_H
#define APP_CUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cur {
    const char *p, *end; /* what is left of the line */
};

/* Each of these steps over what it read, and leaves the cursor where it is when that does not stand there. The short ones
 * are inline: a log has a million lines. */

static inline bool cur_eat_bytes(struct cur *c, const char *text, size_t n)
{
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, text, n) != 0)
        return false;
    c->p += n;
    return true;
}

static inline const char *cur_find_bytes(const struct cur *c, const char *text, size_t n)
{
    return memmem(c->p, (size_t)(c->end - c->p), text, n);
}

/* Steps behind the next place of the text. */
static inline bool cur_seek_bytes(struct cur *c, const char *text, size_t n)
{
    const char *at = cur_find_bytes(c, text, n);
    if (at)
        c->p = at + n;
    return at != NULL;
}

/* For literals, so that lengths are known to the compiler. */
#define CUR_EAT(c, lit) cur_eat_bytes((c), "" lit, sizeof(lit) - 1)
#define CUR_SEEK(c, lit) cur_seek_bytes((c), "" lit, sizeof(lit) - 1)

static inline bool cur_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool cur_is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline void cur_skip_spaces(struct cur *c)
{
    while (c->p < c->end && *c->p == ' ')
        c->p++;
}

/* Digits; false when there are none, or the number is beyond 18 of them. */
bool cur_int(struct cur *c, int64_t *out);

/* A number as Java prints it: 128, 0.041978443, 1.0E-4, NaN; what strtod gives. */
bool cur_number(struct cur *c, double *out);

/* The same with the point moved `shift` places to the right. */
bool cur_scaled(struct cur *c, int shift, double *out);

/* "2026-11-18 10:29:51.189", a comma or nothing for the point, a T for the space; or Spark's own "26/11/18 10:29:51".
 * *out_ms as if the stamp were UTC; *out_coarse: it has no milliseconds. */
bool cur_stamp(struct cur *c, int64_t *out_ms, bool *out_coarse);

#endif
