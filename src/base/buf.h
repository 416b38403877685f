/* A growing byte buffer. Failure is sticky: append as you like, ask buf_failed() once at the end. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data; /* NUL-terminated whenever len > 0; NULL while empty */
    size_t len;
    size_t cap;
    bool failed; /* an append ran out of memory; what was there before is whole */
};

#define BUF_INIT ((struct buf){ 0 })
#define AUTO_BUF __attribute__((cleanup(buf_done)))

void buf_done(struct buf *b);
void buf_clear(struct buf *b); /* keeps the memory, forgets the bytes and the failure */
void buf_put(struct buf *b, const void *bytes, size_t len);
void buf_puts(struct buf *b, const char *text);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* `text` as one POSIX shell word, quoted only when it must be; with $'\012' for what is no text (utf8_is_plain()). */
void buf_put_shell(struct buf *b, const char *text);

/* Keep the first `len` bytes (at most as many as there are). */
void buf_cut(struct buf *b, size_t len);

/* Drop the first n bytes (n <= len). */
void buf_shift(struct buf *b, size_t n);

/* The text so far, never NULL. */
const char *buf_text(const struct buf *b);

/* Hands the NUL-terminated text to the caller (free it); NULL when an append failed. The buffer is empty after. */
char *buf_take(struct buf *b);

#endif
