/* UTF-8: what is one character, how wide a text is on a terminal, and what of it is fit to be printed. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The length of the sequence at p < end, 0 when it is none (overlong forms and surrogates included). */
size_t utf8_len(const unsigned char *p, const unsigned char *end);

/* The code point of a sequence that utf8_len() has measured. */
uint32_t utf8_code(const unsigned char *p, size_t len);

/* Is all of it UTF-8? */
bool utf8_is_valid(const char *text);

/* Columns on the terminal: two for a wide letter, none for a mark on the one before. A byte that is no UTF-8 is one. */
size_t utf8_columns(const char *text);

/* The bytes of the longest beginning that is no wider, and cuts no letter from its marks. */
size_t utf8_bytes(const char *text, size_t columns);

/* Appends what of `text` a terminal may see: texts come from logs, files and peers, and nothing in one commands a terminal (C0, C1,
 * DEL), turns the order of what stands beside it (bidirectional controls), or hides (format characters). Controls become blanks, the
 * others and bytes that are no UTF-8 become U+FFFD. UTF8_LINES keeps line ends and tabulators. */
enum utf8_form { UTF8_ONE_LINE, UTF8_LINES };
void utf8_put_plain(struct buf *b, const char *text, size_t len, enum utf8_form form);

/* The same for a text that is JSON: they become \u escapes, which mean the same. */
void utf8_put_json(struct buf *b, const char *text, size_t len);

/* Is there anything in it that utf8_put_plain() would change? */
bool utf8_is_plain(const char *text);

#endif
