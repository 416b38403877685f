/* A NULL-terminated vector of owned strings, ready for exec. Failure is sticky, as in buf. */
#ifndef BASE_STRV_H
#define BASE_STRV_H

#include <stdbool.h>
#include <stddef.h>

struct strv {
    char **v; /* NULL-terminated; NULL while empty */
    size_t n;
    size_t cap;
    bool failed;
};

#define STRV_INIT ((struct strv){ 0 })
#define AUTO_STRV __attribute__((cleanup(strv_done)))

void strv_done(struct strv *s);
void strv_add(struct strv *s, const char *text);
void strv_addf(struct strv *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strv_take(struct strv *s, char *text); /* takes `text`; NULL counts as a failed append */

#endif
