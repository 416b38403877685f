/* UTF-8: what is one character, and how wide a text is. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

/* The length of the sequence at p < end, 0 when it is none (overlong forms and surrogates included). */
size_t utf8_len(const unsigned char *p, const unsigned char *end);

/* Columns on the terminal: code points, for which every byte but UTF-8's following ones stands. */
size_t utf8_columns(const char *text);

/* The bytes of the first `columns` code points. */
size_t utf8_bytes(const char *text, size_t columns);

#endif
