#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/rng.h"
#include "monitoring/line.h"
#include "tests/fault.h"

/* --- writing --- */

struct piece {
    enum { TAG, FLOAT, INT, BOOL, TEXT } kind;
    const char *key, *text;
    double real;
    int64_t whole;
};

static const struct {
    const char *name, *measurement;
    struct piece pieces[4];
    int rc;
    const char *want;
} written[] = {
    { "a whole number is a float all the same", "power", { { FLOAT, "w", NULL, 12, 0 } }, 1, "power w=12.0 7\n" },
    { "a float has the digits that read back", "power", { { FLOAT, "w", NULL, 0.1, 0 } }, 1, "power w=0.1 7\n" },
    { "a large float keeps its exponent", "power", { { FLOAT, "w", NULL, 1e30, 0 } }, 1, "power w=1e+30 7\n" },
    { "an integer ends in i", "n", { { INT, "c", NULL, 0, INT64_MIN } }, 1, "n c=-9223372036854775808i 7\n" },
    { "a boolean", "n", { { BOOL, "b", NULL, 0, 1 } }, 1, "n b=true 7\n" },
    { "text escapes the quote and the backslash",
      "n",
      { { TEXT, "t", "a\"b\\c", 0, 0 } },
      1,
      "n t=\"a\\\"b\\\\c\" 7\n" },
    { "a newline in text is a space", "n", { { TEXT, "t", "a\nb\r", 0, 0 } }, 1, "n t=\"a b \" 7\n" },
    { "NaN is left out",
      "n",
      { { FLOAT, "a", NULL, NAN, 0 }, { FLOAT, "b", NULL, INFINITY, 0 }, { FLOAT, "c", NULL, 1.5, 0 } },
      1,
      "n c=1.5 7\n" },
    { "a line with no field is none", "n", { { TAG, "a", "b", 0, 0 }, { FLOAT, "a", NULL, NAN, 0 } }, 0, "" },
    { "an empty tag is left out",
      "n",
      { { TAG, "a", "", 0, 0 }, { TAG, "b", NULL, 0, 0 }, { TAG, "c", "d", 0, 0 }, { INT, "f", NULL, 0, 1 } },
      1,
      "n,c=d f=1i 7\n" },
    { "separators are escaped in names and tags",
      "m, =n",
      { { TAG, "k, =", "v, =", 0, 0 }, { INT, "f, =", NULL, 0, 1 } },
      1,
      "m\\,\\ =n,k\\,\\ \\==v\\,\\ \\= f\\,\\ \\==1i 7\n" },
    { "a backslash at a tag's end does not eat the separator",
      "n",
      { { TAG, "k", "C:\\", 0, 0 }, { INT, "f", NULL, 0, 1 } },
      1,
      "n,k=C:/ f=1i 7\n" },
    { "reserved names are not used",
      "_internal",
      { { TAG, "time", "v", 0, 0 }, { INT, "_field", NULL, 0, 1 }, { INT, "", NULL, 0, 2 } },
      1,
      "x_internal,x_time=v x_field=1i,x=2i 7\n" },
    { "no measurement begins a comment", "#1", { { INT, "f", NULL, 0, 1 } }, 1, "x#1 f=1i 7\n" },
    { "UTF-8 stays", "\u00e9", { { INT, "\u20ac", NULL, 0, 1 } }, 1, "\u00e9 \u20ac=1i 7\n" },
};

static int put(struct buf *b, const char *measurement, const struct piece *p, size_t n)
{
    struct line l = line_begin(b, measurement, LINE_NS);
    for (size_t i = 0; i < n && p[i].key; i++) {
        switch (p[i].kind) {
        case TAG: line_tag(&l, p[i].key, p[i].text); break;
        case FLOAT: line_float(&l, p[i].key, p[i].real); break;
        case INT: line_int(&l, p[i].key, p[i].whole); break;
        case BOOL: line_bool(&l, p[i].key, p[i].whole != 0); break;
        case TEXT: line_text(&l, p[i].key, p[i].text); break;
        }
    }
    return line_end(&l, 7);
}

static void lines_are_written_so_that_they_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        buf_puts(&b, "before\n");
        int rc = put(&b, written[i].measurement, written[i].pieces, ARRAY_LEN(written[i].pieces));
        if (rc != written[i].rc || strncmp(b.data, "before\n", 7) != 0 || strcmp(b.data + 7, written[i].want) != 0)
            fail_msg("%s: got %d %s, want %d %s", written[i].name, rc, buf_text(&b), written[i].rc, written[i].want);
    }
}

static void every_float_reads_back(void **state)
{
    (void)state;
    static const double special[] = { 0,
                                      -0.0,
                                      0.1,
                                      0.3,
                                      1e15,
                                      999999999999999.0,
                                      1e15 - 0.5,
                                      1e-6,
                                      1e-7,
                                      5e-324,
                                      1.7976931348623157e308,
                                      0.1 + 0.2,
                                      1 / 3.0,
                                      41.5,
                                      -41.25,
                                      123456.789012,
                                      0.000001,
                                      1e22,
                                      9007199254740993.0 };
    struct rng r = rng_seeded(3);
    for (size_t i = 0; i < 20000; i++) {
        double x =
            i < ARRAY_LEN(special) ? special[i] : (double)rng_below(&r, 10000000) / (double)(1 + rng_below(&r, 2000));
        AUTO_BUF struct buf b = BUF_INIT;
        struct line l = line_begin(&b, "m", LINE_NS);
        line_float(&l, "f", x);
        assert_int_equal(line_end(&l, 0), 1);
        double back = strtod(b.data + 4, NULL);
        if (memcmp(&back, &x, sizeof x) != 0 || !strpbrk(b.data + 4, ".e"))
            fail_msg("%.17g was written as %s", x, b.data);
    }
}

static const struct {
    enum line_precision p;
    int64_t ns, want;
} stamps[] = { { LINE_NS, -1, -1 },       { LINE_US, 1999, 1 },      { LINE_US, -1, -1 },
               { LINE_MS, -1000000, -1 }, { LINE_S, 1999999999, 1 }, { LINE_S, INT64_MIN, -9223372037 } };

static void time_stamps_are_rounded_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(stamps); i++)
        assert_int_equal(line_stamp(stamps[i].ns, stamps[i].p), stamps[i].want);
}

static void a_line_that_is_too_long_is_taken_back(void **state)
{
    (void)state;
    AUTO_BUF struct buf b = BUF_INIT, text = BUF_INIT;
    for (int i = 0; i < LINE_BYTES_MAX; i++)
        buf_putc(&text, 'x');
    buf_puts(&b, "a b=1 2\n");
    struct line l = line_begin(&b, "m", LINE_NS);
    line_text(&l, "f", text.data);
    assert_int_equal(line_end(&l, 1), -EFBIG);
    assert_string_equal(b.data, "a b=1 2\n");
}

static void a_line_without_memory_leaves_what_was_before(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        AUTO_BUF struct buf b = BUF_INIT;
        AUTO_BUF struct buf text = BUF_INIT;
        for (int i = 0; i < 300; i++)
            buf_putc(&text, 'x');
        fault_arm(FAULT_ALLOC, nth);
        struct line l = line_begin(&b, "m", LINE_NS);
        line_text(&l, "f", text.data);
        rc = line_end(&l, 1);
        bool struck = fault_disarm();
        assert_int_equal(rc, struck ? -ENOMEM : 1);
        assert_int_equal(b.len, struck ? 0 : 309);
    }
}

/* --- reading: written again as "measurement|tag=value|field:kind=value|@stamp" --- */

static void show(struct buf *b, const struct line_point *pt)
{
    buf_puts(b, pt->measurement);
    for (size_t i = 0; i < pt->n_tags; i++)
        buf_printf(b, "|%s=%s", pt->tags[i].key, pt->tags[i].value);
    for (size_t i = 0; i < pt->n_fields; i++) {
        const struct line_field *f = &pt->fields[i];
        buf_printf(b, "|%s:", f->key);
        switch (f->kind) {
        case LINE_FLOAT: buf_printf(b, "f=%.17g", f->real); break;
        case LINE_INT: buf_printf(b, "i=%lld", (long long)f->whole); break;
        case LINE_BOOL: buf_printf(b, "b=%d", f->truth); break;
        case LINE_TEXT: buf_printf(b, "t=%s", f->text); break;
        }
    }
    if (pt->stamped)
        buf_printf(b, "|@%lld", (long long)pt->stamp);
}

/* In a block of exact size, so that ASan sees a read behind the NUL. */
static int parse(struct line_point *pt, const char *text, size_t len, char **line, struct err *e)
{
    *line = malloc(len + 1);
    assert_non_null(*line);
    memcpy(*line, text, len);
    (*line)[len] = '\0';
    return line_parse(pt, *line, len, e);
}

static const struct {
    const char *name, *text, *want;
} good[] = {
    { "no time stamp", "m f=1", "m|f:f=1" },
    { "tags, fields and a time stamp", "m,a=b,c=d f=1.5,g=2i 17", "m|a=b|c=d|f:f=1.5|g:i=2|@17" },
    { "a time stamp before 1970", "m f=1 -17", "m|f:f=1|@-17" },
    { "every form of a float", "m a=1.,b=.5,c=-1e3,d=+2E-2,e=0", "m|a:f=1|b:f=0.5|c:f=-1000|d:f=0.02|e:f=0" },
    { "the ends of int64", "m a=-9223372036854775808i,b=9223372036854775807i",
      "m|a:i=-9223372036854775808|b:i=9223372036854775807" },
    { "every boolean", "m a=t,b=T,c=true,d=True,e=TRUE,f=f,g=F,h=false,i=False,j=FALSE",
      "m|a:b=1|b:b=1|c:b=1|d:b=1|e:b=1|f:b=0|g:b=0|h:b=0|i:b=0|j:b=0" },
    { "text with separators and escapes", "m a=\"x, =\\\"y\\\\z\\q\",b=1 5", "m|a:t=x, =\"y\\z\\q|b:f=1|@5" },
    { "empty text", "m a=\"\"", "m|a:t=" },
    { "escaped separators", "m\\,\\ n,k\\=\\,=v\\ \\= f\\,=1 3", "m, n|k=,=v =|f,:f=1|@3" },
    { "a backslash before another character stays", "m\\x,k=C:\\d f=1", "m\\x|k=C:\\d|f:f=1" },
    { "an equals sign in the measurement", "m=n f=1", "m=n|f:f=1" },
    { "UTF-8", "\u00e9,k=\u20ac f=1", "\u00e9|k=\u20ac|f:f=1" },
};

static void lines_are_read(void **state)
{
    (void)state;
    static struct line_point pt;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct err e = { 0 };
        AUTO_FREE char *line = NULL;
        AUTO_BUF struct buf b = BUF_INIT;
        int rc = parse(&pt, good[i].text, strlen(good[i].text), &line, &e);
        if (rc == 0)
            show(&b, &pt);
        if (rc != 0 || strcmp(buf_text(&b), good[i].want) != 0)
            fail_msg("%s: got %d %s %s, want %s", good[i].name, rc, buf_text(&b), e.text, good[i].want);
    }
}

static const struct {
    const char *name, *text;
    size_t len; /* 0: strlen */
} bad[] = {
    { "nothing", "", 0 },
    { "no field", "m", 0 },
    { "no field behind a space", "m ", 0 },
    { "no field behind tags", "m,a=b", 0 },
    { "no measurement", ",a=b f=1", 0 },
    { "a space at the begin", " m f=1", 0 },
    { "two spaces", "m  f=1", 0 },
    { "two spaces before the time stamp", "m f=1  5", 0 },
    { "a space at the end", "m f=1 ", 0 },
    { "a time stamp that is a float", "m f=1 5.0", 0 },
    { "a time stamp that is too large", "m f=1 9223372036854775808", 0 },
    { "something behind the time stamp", "m f=1 5 6", 0 },
    { "a tag without a value", "m,a f=1", 0 },
    { "a tag with an empty value", "m,a= f=1", 0 },
    { "an empty tag", "m,=b f=1", 0 },
    { "a comma with no tag behind it", "m, f=1", 0 },
    { "a tag twice", "m,a=b,a=c f=1", 0 },
    { "an equals sign in a tag's value", "m,a=b=c f=1", 0 },
    { "a field twice", "m f=1,f=2", 0 },
    { "an empty field", "m =1", 0 },
    { "a field without a value", "m f", 0 },
    { "a field with an empty value", "m f=", 0 },
    { "a comma with no field behind it", "m f=1,", 0 },
    { "NaN", "m f=NaN", 0 },
    { "an infinity", "m f=-inf", 0 },
    { "a number beyond all doubles", "m f=1e999", 0 },
    { "a hexadecimal number", "m f=0x10", 0 },
    { "an exponent of nothing", "m f=1e", 0 },
    { "a point alone", "m f=.", 0 },
    { "an integer beyond int64", "m f=9223372036854775808i", 0 },
    { "an integer of nothing", "m f=i", 0 },
    { "an integer with a plus", "m f=+1i", 0 },
    { "an unsigned integer", "m f=1u", 0 },
    { "a word", "m f=yes", 0 },
    { "text without an end", "m f=\"abc", 0 },
    { "text that ends in a backslash", "m f=\"abc\\\"", 0 },
    { "text with something behind it", "m f=\"abc\"d", 0 },
    { "a comment", "# m f=1", 0 },
    { "a reserved measurement", "_m f=1", 0 },
    { "a reserved tag", "m,time=b f=1", 0 },
    { "a reserved field", "m _field=1", 0 },
    { "a NUL", "m f=1\0 5", 8 },
    { "a newline", "m f=\"a\nb\"", 0 },
    { "a byte that is no UTF-8", "m f=\"\xff\"", 0 },
};

static void what_is_no_line_protocol_is_explained(void **state)
{
    (void)state;
    static struct line_point pt;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = { 0 };
        AUTO_FREE char *line = NULL;
        int rc = parse(&pt, bad[i].text, bad[i].len ? bad[i].len : strlen(bad[i].text), &line, &e);
        if (rc != -EINVAL || !strstr(e.text, "not line protocol at byte"))
            fail_msg("%s: got %d \"%s\"", bad[i].name, rc, e.text);
    }
}

static int parse_many(struct line_point *pt, size_t tags, size_t fields)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_puts(&b, "m");
    for (size_t i = 0; i < tags; i++)
        buf_printf(&b, ",t%zu=v", i);
    for (size_t i = 0; i < fields; i++)
        buf_printf(&b, "%sf%zu=1", i ? "," : " ", i);
    struct err e;
    return line_parse(pt, b.data, b.len, &e);
}

static void more_than_a_point_may_have_is_refused(void **state)
{
    (void)state;
    static struct line_point pt;
    assert_int_equal(parse_many(&pt, LINE_TAGS_MAX, LINE_FIELDS_MAX), 0);
    assert_int_equal(parse_many(&pt, LINE_TAGS_MAX + 1, 1), -EINVAL);
    assert_int_equal(parse_many(&pt, 0, LINE_FIELDS_MAX + 1), -EINVAL);
}

static void a_point_that_was_read_is_written_with_more_tags(void **state)
{
    (void)state;
    static struct line_point pt;
    char text[] = "m\\ n,host=theirs,k=a\\,b f=2,i=3i,t=\"x\\\"y\",b=F 5";
    struct err e = { 0 };
    assert_int_equal(line_parse(&pt, text, strlen(text), &e), 0);
    static const struct line_tag more[] = { { "host", "ours" }, { "trial", "" }, { "user", "u" } };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(line_put_point(&b, &pt, more, ARRAY_LEN(more), 5000000, LINE_MS), 1);
    assert_string_equal(b.data, "m\\ n,k=a\\,b,host=ours,user=u f=2.0,i=3i,t=\"x\\\"y\",b=false 5\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_written_so_that_they_are_read),
        cmocka_unit_test(every_float_reads_back),
        cmocka_unit_test(time_stamps_are_rounded_down),
        cmocka_unit_test(a_line_that_is_too_long_is_taken_back),
        cmocka_unit_test(a_line_without_memory_leaves_what_was_before),
        cmocka_unit_test(lines_are_read),
        cmocka_unit_test(what_is_no_line_protocol_is_explained),
        cmocka_unit_test(more_than_a_point_may_have_is_refused),
        cmocka_unit_test(a_point_that_was_read_is_written_with_more_tags),
    };
    return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
