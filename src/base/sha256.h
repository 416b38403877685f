/* SHA-256 (FIPS 180-4), for provenance: which jar was it. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct sha256 {
    uint32_t h[8];
    uint64_t bytes;
    unsigned char block[64];
};

enum { SHA256_HEX_MAX = 65 };

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t len);
void sha256_hex(struct sha256 *s, char out[SHA256_HEX_MAX]); /* ends the sum */

/* Of a file's content. -errno. */
int sha256_file(const char *path, char out[SHA256_HEX_MAX], struct err *e);

#endif
