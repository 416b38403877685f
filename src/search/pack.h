/* Numbers as bytes, for the saved state of searches: 64 bits each, least significant byte first. Pure. */
#ifndef SEARCH_PACK_H
#define SEARCH_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

void pack_u64(struct buf *out, uint64_t v);
void pack_f64(struct buf *out, double v);                        /* bit by bit: a NAN stays that NAN */
void pack_bytes(struct buf *out, const void *bytes, size_t len); /* behind their number */

/* What is read from; failure is sticky: past the end everything is 0 and `bad` is set. */
struct unpack {
    const unsigned char *at, *end;
    bool bad;
};

struct unpack unpack_from(const void *bytes, size_t len);
uint64_t unpack_u64(struct unpack *u);
double unpack_f64(struct unpack *u);

/* How many follow, each of at least `size` bytes: 0 and `bad` where so many cannot be there. */
size_t unpack_count(struct unpack *u, size_t size);

struct unpack unpack_bytes(struct unpack *u); /* those that pack_bytes() wrote; they stay where they are */

#endif
