/* An answer of any bytes, and any path into it: a plausible power, or one printable line that says why not. Input: the path, a newline,
 * the answer. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "monitoring/pdu.h"
#include "monitoring/pdu_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_line(const char *text)
{
    check(*text != '\0');
    for (const char *p = text; *p; p++)
        check((unsigned char)*p >= 0x20);
}

static void check_power(const json_t *root, const char *path, int outlet)
{
    struct pdu_where where = { .path = path, .scale = 0.5, .max_w = 1000 };
    struct pdu_power p = { -1, -1 };
    struct err e = { 0 };
    int rc = pdu_json_power(root, &where, outlet, &p, &e);
    if (rc == 0) {
        check(p.watts >= 0 && p.watts <= 1000 && p.error_w >= 0 && isfinite(p.error_w));
        return;
    }
    check(rc == -EINVAL || rc == -ENOENT || rc == -EPROTO || rc == -ERANGE);
    check(p.watts == -1 && e.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *newline = size ? memchr(text, '\n', size) : NULL;
    size_t path_len = newline ? (size_t)(newline - text) : 0, from = newline ? path_len + 1 : 0;
    char *path = strndup(newline ? text : "", path_len),
         *body = malloc(size - from + 1); /* of exact size but for malloc(0) */
    check(path && body);
    memcpy(body, text + from, size - from);
    AUTO_JSON json_t *root = NULL;
    struct err e = { 0 };
    int rc = pdu_json_parse(&root, body, size - from, &e);
    check((rc == 0) == (root != NULL));
    if (root) {
        check_power(root, path, size ? data[0] % 4 : 0);
        check_power(root, PDU_VALUE, 0);
    } else {
        check(rc == -EFBIG || rc == -EPROTO);
        check_line(e.text);
    }
    free(path);
    free(body);
    return 0;
}
