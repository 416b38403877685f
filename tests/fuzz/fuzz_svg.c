/* Any bytes as texts of a report (escaping, titles, names of axes) and as its points: what comes out is a well-formed piece of a page,
 * in UTF-8, in which nothing of the user's is markup. The first three lines are texts, the rest are points of two bytes each. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text.h"
#include "view/svg.h"

enum { POINTS_MAX = 64, DEPTH_MAX = 8, NAME_MAX_BYTES = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_characters(const struct buf *b)
{
    const unsigned char *p = (const unsigned char *)b->data, *end = p + b->len;
    check(!b->failed);
    while (p < end) {
        size_t n = utf8_len(p, end);
        check(n > 0 && (n > 1 || (*p >= 0x20 && *p != 0x7f) || *p == '\n' || *p == '\t'));
        p += n;
    }
}

/* The end of the entity at p; only ours. */
static const char *after_entity(const char *p)
{
    static const char *const ours[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&#39;" };
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (strncmp(p, ours[i], strlen(ours[i])) == 0)
            return p + strlen(ours[i]);
    abort();
}

static void check_text(const char *p, const char *end)
{
    while (p < end) {
        check(!strchr("<>\"'", *p));
        p = *p == '&' ? after_entity(p) : p + 1;
    }
}

static size_t name_length(const char *p)
{
    size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz");
    check(n > 0 && n < NAME_MAX_BYTES);
    return n;
}

/* name="value"…; a value is a number, a path or a class: never a text of the user's, and never "nan". */
static const char *check_attributes(const char *p)
{
    while (*p == ' ') {
        p++;
        p += strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
        check(p[0] == '=' && p[1] == '"');
        const char *value = p + 2;
        p = strchr(value, '"');
        check(p != NULL);
        check(!memmem(value, (size_t)(p - value), "nan", 3) && !memmem(value, (size_t)(p - value), "inf", 3));
        p++;
    }
    return p;
}

/* Elements nest and end. */
static void check_markup(const char *p)
{
    const char *open[DEPTH_MAX];
    size_t lengths[DEPTH_MAX], depth = 0;
    while (*p) {
        const char *tag = strchr(p, '<');
        check_text(p, tag ? tag : p + strlen(p));
        if (!tag)
            break;
        bool ends = tag[1] == '/';
        const char *name = tag + 1 + ends;
        size_t n = name_length(name);
        p = check_attributes(name + n);
        if (ends) {
            check(depth > 0 && lengths[depth - 1] == n && memcmp(open[depth - 1], name, n) == 0);
            depth--;
        } else if (*p == '/') {
            p++;
        } else {
            check(depth < DEPTH_MAX);
            open[depth] = name;
            lengths[depth++] = n;
        }
        check(*p++ == '>');
    }
    check(depth == 0);
}

static void use_text(const char *text)
{
    struct buf b = BUF_INIT;
    svg_escape(&b, text);
    if (b.len) {
        check_characters(&b);
        check_text(b.data, b.data + b.len);
    }
    buf_done(&b);
}

/* Two bytes as a number of any size, or as none. */
static double number_of(const uint8_t *p)
{
    return p[0] == 0xff ? NAN : ldexp((double)(int8_t)p[1], (int)p[0] * 8 - 1020);
}

static void use_points(const char *const *texts, const uint8_t *data, size_t size)
{
    double x[POINTS_MAX], y[POINTS_MAX];
    size_t n = size / 2 < POINTS_MAX ? size / 2 : POINTS_MAX;
    for (size_t i = 0; i < n; i++) {
        x[i] = (double)i + 1;
        y[i] = number_of(data + 2 * i);
    }
    struct svg_line lines[] = { { .title = texts[2], .x = x, .y = y, .n = n },
                                { .title = texts[0], .x = x, .y = y, .n = n / 2, .strong = true } };
    struct buf b = BUF_INIT;
    bool drawn = svg_chart(&b, texts[0], texts[1], lines, 2);
    check(drawn == (b.len > 0));
    if (drawn) {
        check_characters(&b);
        check_markup(b.data);
    }
    buf_done(&b);
}

static void use_bars(const char *const *texts, const uint8_t *data, size_t size)
{
    struct svg_bar bars[4];
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 3; k++) {
            size_t at = 2 * (3 * i + k);
            double x = at + 1 < size ? number_of(data + at) : NAN;
            *(k < 2 ? &bars[i].parts[k] : &bars[i].half) = x;
        }
    struct svg_bars what = { texts[0], texts, texts + 1, 2, 2, { texts[1], texts[2] }, bars };
    struct buf b = BUF_INIT;
    bool drawn = svg_bars(&b, &what);
    check(drawn == (b.len > 0));
    if (drawn) {
        check_characters(&b);
        check_markup(b.data);
    }
    buf_done(&b);
}

static bool first_is_gauge(size_t row)
{
    return row == 0;
}

static void use_cells(const char *const *texts, const uint8_t *data, size_t size)
{
    struct heat h;
    check(heat_init(&h, texts, first_is_gauge, 3, 3) == 0);
    for (size_t i = 0; i + 3 < size && i < 9 * 4; i += 4) {
        double value = number_of(data + i);
        bool there = isfinite(value) && data[i + 3] <= READING_NO_FD;
        struct reading r[3];
        for (size_t k = 0; k < 3; k++)
            r[k] = (struct reading){ .value = there ? value : NAN,
                                     .ratio = (float)data[i + 2] / 255,
                                     .state = there ? READING_OK : READING_UNSUPPORTED };
        heat_add(&h, i / 4 % 3, 1, 1, r);
    }
    struct buf b = BUF_INIT;
    if (svg_heat(&b, &h, texts)) {
        check_characters(&b);
        check_markup(b.data);
    }
    buf_done(&b);
    heat_done(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *texts[3];
    for (size_t i = 0; i < 3; i++) {
        const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
        size_t n = end ? (size_t)(end - data) : size;
        texts[i] = fuzz_text(data, n);
        use_text(texts[i]);
        data += n + (end != NULL);
        size -= n + (end != NULL);
    }
    const char *const as[] = { texts[0], texts[1], texts[2] };
    use_points(as, data, size);
    use_cells(as, data, size);
    use_bars(as, data, size);
    for (size_t i = 0; i < 3; i++)
        free(texts[i]);
    return 0;
}
