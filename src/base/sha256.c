#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"

static const uint32_t K[64] = { 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
                                0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
                                0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
                                0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
                                0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
                                0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
                                0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
                                0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
                                0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
                                0xc67178f2 };

static uint32_t ror(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static void expand(uint32_t w[64], const unsigned char *p)
{
    for (size_t i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (size_t i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (ror(a, 7) ^ ror(a, 18) ^ a >> 3) + w[i - 7] + (ror(b, 17) ^ ror(b, 19) ^ b >> 10);
    }
}

static void compress(uint32_t h[8], const unsigned char *p)
{
    uint32_t w[64];
    expand(w, p);
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], last = h[7];
    for (size_t i = 0; i < 64; i++) {
        uint32_t t1 = last + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i];
        uint32_t t2 = (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        last = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e, h[5] += f, h[6] += g, h[7] += last;
}

void sha256_init(struct sha256 *s)
{
    static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    *s = (struct sha256){ 0 };
    memcpy(s->h, start, sizeof start);
}

void sha256_add(struct sha256 *s, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    size_t have = s->bytes % 64;
    if (len == 0) /* of nothing, which NULL may be */
        return;
    s->bytes += len;
    if (have) {
        size_t take = len < 64 - have ? len : 64 - have;
        memcpy(s->block + have, p, take);
        p += take;
        len -= take;
        if (have + take < 64)
            return;
        compress(s->h, s->block);
    }
    for (; len >= 64; p += 64, len -= 64)
        compress(s->h, p);
    memcpy(s->block, p, len);
}

void sha256_hex(struct sha256 *s, char out[SHA256_HEX_MAX])
{
    uint64_t bits = s->bytes * 8;
    unsigned char tail[72] = { 0x80 };
    size_t pad = (s->bytes % 64 < 56 ? 56 : 120) - s->bytes % 64;
    for (size_t i = 0; i < 8; i++)
        tail[pad + i] = (unsigned char)(bits >> (56 - 8 * i));
    sha256_add(s, tail, pad + 8);
    for (size_t i = 0; i < 8; i++)
        (void)snprintf(out + 8 * i, 9, "%08x", s->h[i]);
}

int sha256_file(const char *path, char out[SHA256_HEX_MAX], struct err *e)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, -errno, "cannot read '%s'", path);
    struct sha256 s;
    sha256_init(&s);
    char chunk[65536];
    ssize_t n;
    while ((n = io_read_some(fd, chunk, sizeof chunk)) > 0)
        sha256_add(&s, chunk, (size_t)n);
    if (n < 0)
        return err_sys(e, (int)n, "cannot read '%s'", path);
    sha256_hex(&s, out);
    return 0;
}
