#include "base/base64.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_put(struct buf *to, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        uint32_t bits = (uint32_t)p[i] << 16 | (n > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (n > 2 ? p[i + 2] : 0);
        char four[4] = { digits[bits >> 18], digits[bits >> 12 & 63], '=', '=' };
        if (n > 1)
            four[2] = digits[bits >> 6 & 63];
        if (n > 2)
            four[3] = digits[bits & 63];
        buf_put(to, four, sizeof four);
    }
}

/* How many bytes the four characters stand for; 0: they are none. */
static size_t read_four(unsigned char out[3], const char *four)
{
    uint32_t bits = 0;
    size_t n = four[3] != '=' ? 4 : four[2] != '=' ? 3 : 2;
    for (size_t i = 0; i < 4; i++) {
        const char *digit = i < n ? memchr(digits, four[i], sizeof digits - 1) : digits;
        if (!digit)
            return 0;
        bits = bits << 6 | (uint32_t)(digit - digits);
    }
    for (size_t i = 0; i < 3; i++)
        out[i] = (unsigned char)(bits >> (16 - 8 * i));
    bool is_rest = (n < 4 && out[2]) || (n < 3 && out[1]);
    return is_rest ? 0 : n - 1;
}

int base64_read(struct buf *to, const char *text)
{
    size_t before = to->len, len = strlen(text);
    for (size_t i = 0; i < len; i += 4) {
        unsigned char bytes[3];
        size_t n = len - i >= 4 ? read_four(bytes, text + i) : 0;
        if (n == 0 || (n < 3 && i + 4 < len)) {
            buf_cut(to, before);
            return -EINVAL;
        }
        buf_put(to, bytes, n);
    }
    if (!to->failed)
        return 0;
    buf_cut(to, before);
    return -ENOMEM;
}
