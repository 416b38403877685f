#include <errno.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "monitoring/sysfs_pmu.h"
#include "tests/fake_sysfs.h"

#define ALL UINT64_MAX

/* `before` is every word of the configuration; `want` is the word that the format names. */
static const struct {
    const char *name, *text;
    uint64_t before, value;
    int rc, word;
    uint64_t want;
} formats[] = {
    { "a range", "config:8-15\n", 0, 0x4f, 0, 0, 0x4f00 },
    { "the newline may be missing", "config:8-15", 0, 0x4f, 0, 0, 0x4f00 },
    { "a single bit", "config:21\n", 0, 1, 0, 0, 1 << 21 },
    { "config1", "config1:0-15\n", 0, 3, 0, 1, 3 },
    { "config2", "config2:4\n", 0, 1, 0, 2, 16 },
    { "a whole word", "config1:0-63\n", 0, ALL, 0, 1, ALL },
    { "split bits: the value's lowest ones go first", "config:0-7,32-35\n", 0, 0x120, 0, 0, 0x100000020 },
    { "split bits that are all set", "config:0-7,32-35\n", 0, 0xfff, 0, 0, 0xf000000ff },
    { "ranges in no order", "config:32-35,0-7\n", 0, 0x12, 0, 0, 0x200000001 },
    { "two halves of a word", "config:32-63,0-31\n", 0, 0x123456789abcdef0, 0, 0, 0x9abcdef012345678 },
    { "what was there is replaced, its neighbours stay", "config:8-15\n", ALL, 0, 0, 0, ~0xff00ULL },
    { "a value with a bit too many", "config:8-15\n", 0, 0x100, -ERANGE, 0, 0 },
    { "a value with a bit too many for split bits", "config:0-7,32-35\n", 0, 0x1000, -ERANGE, 0, 0 },
    { "2 for a single bit", "config:21\n", 0, 2, -ERANGE, 0, 0 },
    { "nothing", "", 0, 1, -EINVAL, 0, 0 },
    { "no bits", "config:\n", 0, 1, -EINVAL, 0, 0 },
    { "another word", "config9:0-7\n", 0, 1, -EINVAL, 0, 0 },
    { "no colon", "config 0-7\n", 0, 1, -EINVAL, 0, 0 },
    { "a range backwards", "config:7-0\n", 0, 1, -EINVAL, 0, 0 },
    { "a bit beyond the word", "config:0-64\n", 0, 1, -EINVAL, 0, 0 },
    { "a bit twice", "config:0-7,7-8\n", 0, 1, -EINVAL, 0, 0 },
    { "an open range", "config:0-\n", 0, 1, -EINVAL, 0, 0 },
    { "a comma at the end", "config:0-7,\n", 0, 1, -EINVAL, 0, 0 },
    { "a number beyond 64 bits", "config:99999999999999999999\n", 0, 1, -EINVAL, 0, 0 },
    { "more behind the newline", "config:0-7\nconfig:8\n", 0, 1, -EINVAL, 0, 0 },
    { "a space", "config: 0-7\n", 0, 1, -EINVAL, 0, 0 },
};

static void test_formats(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        struct sysfs_format f;
        const uint64_t before = formats[i].before;
        uint64_t got[SYSFS_WORDS] = { before, before, before };
        int rc = sysfs_format_parse(&f, formats[i].text);
        if (rc == 0)
            rc = sysfs_format_set(&f, formats[i].value, got);
        if (rc != formats[i].rc)
            fail_msg("%s: got %d, want %d", formats[i].name, rc, formats[i].rc);
        for (int k = 0; k < SYSFS_WORDS; k++) {
            uint64_t want = rc == 0 && k == formats[i].word ? formats[i].want : before;
            if (got[k] != want)
                fail_msg("%s: word %d: got 0x%llx, want 0x%llx", formats[i].name, k, (unsigned long long)got[k],
                         (unsigned long long)want);
        }
    }
}

static const struct {
    const char *name, *text, *want; /* "NAME=VALUE;", NULL: not to be understood */
} events[] = {
    { "one term", "event=0xc4\n", "event=196;" },
    { "terms", "event=0xcd,umask=0x1,ldlat=3\n", "event=205;umask=1;ldlat=3;" },
    { "a term without a value is 1", "event=0x3c,in_tx,in_tx_cp\n", "event=60;in_tx=1;in_tx_cp=1;" },
    { "a decimal number", "event=10", "event=10;" },
    { "a zero in front makes no octal number", "event=010", "event=10;" },
    { "large digits", "event=0XCD", "event=205;" },
    { "64 bits", "config=0xffffffffffffffff", "config=18446744073709551615;" },
    { "65 bits", "config=0x1ffffffffffffffff", NULL },
    { "nothing", "", NULL },
    { "a newline alone", "\n", NULL },
    { "a value that the user must give", "event=0xcd,ldlat=?\n", NULL },
    { "no value", "event=\n", NULL },
    { "no digits", "event=0x\n", NULL },
    { "no name", "=3\n", NULL },
    { "two commas", "event=1,,umask=2\n", NULL },
    { "a comma at the end", "event=1,\n", NULL },
    { "a name that leaves its folder", "../type=1\n", NULL },
    { "a name that begins with a point", ".x=1\n", NULL },
    { "a negative number", "event=-1\n", NULL },
    { "a second line", "event=1\numask=2\n", NULL },
    { "a name of 47 characters", "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeee=2",
      "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeee=2;" },
    { "a name of 48 characters", "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeee=2", NULL },
    { "16 terms", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p",
      "a=1;b=1;c=1;d=1;e=1;f=1;g=1;h=1;i=1;j=1;k=1;l=1;m=1;n=1;o=1;p=1;" },
    { "17 terms", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", NULL },
};

static void test_events(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        struct sysfs_terms t;
        AUTO_BUF struct buf got = BUF_INIT;
        int rc = sysfs_terms_parse(&t, events[i].text);
        for (int k = 0; rc == 0 && k < t.n; k++)
            buf_printf(&got, "%s=%llu;", t.v[k].name, (unsigned long long)t.v[k].value);
        if (rc != (events[i].want ? 0 : -EINVAL))
            fail_msg("%s: got %d", events[i].name, rc);
        if (rc == 0 && strcmp(buf_text(&got), events[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", events[i].name, buf_text(&got), events[i].want);
    }
}

static void test_terms_that_name_a_word(void **state)
{
    (void)state;
    assert_int_equal(sysfs_term_word("config"), 0);
    assert_int_equal(sysfs_term_word("config1"), 1);
    assert_int_equal(sysfs_term_word("config2"), 2);
    assert_int_equal(sysfs_term_word("config3"), -1);
    assert_int_equal(sysfs_term_word("event"), -1);
}

static const struct {
    const char *name, *text;
    double want; /* NAN: none */
} scales[] = {
    { "a whole number", "4\n", 4 },
    { "no newline", "2", 2 },
    { "2^-32, to the last bit", "2.3283064365386962890625e-10\n", 0x1p-32 },
    { "an exponent", "6.103515625e-05\n", 0x1p-14 },
    { "a comma", "2,5\n", NAN },
    { "nothing", "", NAN },
    { "zero", "0\n", NAN },
    { "below zero", "-1\n", NAN },
    { "infinite", "inf\n", NAN },
    { "too large for a double", "1e999\n", NAN },
    { "too small for a double", "1e-999\n", NAN },
    { "no number", "nan\n", NAN },
    { "a hexadecimal number", "0x10\n", NAN },
    { "something behind it", "4 x\n", NAN },
    { "a space in front", " 4\n", NAN },
};

/* The first row that does not hold, NULL: all do. */
static const char *wrong_scale(void)
{
    for (size_t i = 0; i < ARRAY_LEN(scales); i++) {
        double got = -7;
        int rc = sysfs_scale_parse(&got, scales[i].text);
        bool none = isnan(scales[i].want);
        if (rc != (none ? -EINVAL : 0) || got != (none ? -7 : scales[i].want))
            return scales[i].name;
    }
    return NULL;
}

static void test_scales(void **state)
{
    (void)state;
    if (wrong_scale())
        fail_msg("%s", wrong_scale());
}

/* The compiled LC_NUMERIC of a locale whose decimal point is a comma: a magic number, how many elements there are, where each is, and
 * they: point, separator of thousands, grouping, both as wide characters, the character set. */
static void write_comma_locale(const char *dir)
{
    const uint32_t head[] = { 0x20031115 ^ LC_NUMERIC, 6, 32, 34, 35, 36, 40, 44 };
    static const char body[] = ",\0"
                               "\0"
                               "\0"
                               ",\0\0\0"
                               "\0\0\0\0"
                               "ANSI_X3.4-1968";
    char path[512];
    (void)snprintf(path, sizeof path, "%s/comma/LC_NUMERIC", dir);
    fake_sysfs_write(dir, "comma/LC_NUMERIC", "");
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(head, sizeof head, 1, f), 1);
    assert_int_equal(fwrite(body, sizeof body, 1, f), 1);
    assert_int_equal(fclose(f), 0);
}

enum { HOLDS, NO_LOCALE, NO_COMMA, WRONG };

static int scales_under_a_comma(const char *dir)
{
    locale_t comma = setenv("LOCPATH", dir, 1) == 0 ? newlocale(LC_NUMERIC_MASK, "comma", (locale_t)0) : (locale_t)0;
    if (comma == (locale_t)0)
        return NO_LOCALE;
    (void)uselocale(comma);
    if (strtod("2.5", NULL) > 2.25 || strtod("2,5", NULL) < 2.25) /* the plain call must be wrong here */
        return NO_COMMA;
    return wrong_scale() ? WRONG : HOLDS;
}

/* In a child: the C library never frees what it makes of LOCPATH. */
static void test_a_comma_locale_changes_no_scale(void **state)
{
    (void)state;
    int status = -1;
    char *dir = fake_sysfs_make(FAKE_VM);
    write_comma_locale(dir);
    pid_t child = fork();
    if (child == 0)
        _exit(scales_under_a_comma(dir));
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    fake_sysfs_remove(dir);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), HOLDS);
}

static void test_units(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want; /* NULL: none */
    } rows[] = {
        { "Joules\n", "Joules" },
        { "MiB", "MiB" },
        { "\n", "" },
        { "C per m2\n", "C per m2" },
        { "123456789012345\n", "123456789012345" },
        { "1234567890123456\n", NULL },
        { "a\tb\n", NULL },
        { "a\nb\n", NULL },
        { "\xC2\xB5W\n", NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char got[SYSFS_UNIT_SIZE] = "as it was";
        int rc = sysfs_unit_parse(got, rows[i].text);
        assert_int_equal(rc, rows[i].want ? 0 : -EINVAL);
        assert_string_equal(got, rows[i].want ? rows[i].want : "as it was");
    }
}

static void test_types(void **state)
{
    (void)state;
    uint32_t x = 7;
    assert_int_equal(sysfs_type_parse(&x, "4294967295\n"), 0);
    assert_int_equal(x, UINT32_MAX);
    static const char *const bad[] = { "", "\n", "4294967296\n", "-1\n", "4x\n", "0x4\n", " 4\n" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (sysfs_type_parse(&x, bad[i]) != -EINVAL || x != UINT32_MAX)
            fail_msg("'%s' was taken for a type", bad[i]);
}

static const struct {
    const char *name, *text, *want; /* "0 1 8", NULL: not to be understood */
} lists[] = {
    { "nothing is the empty set", "", "" },
    { "a newline is the empty set", "\n", "" },
    { "one", "3\n", "3" },
    { "a range", "0-3\n", "0 1 2 3" },
    { "ranges and single ones", "0-1,8,10-11\n", "0 1 8 10 11" },
    { "one per socket", "0,18", "0 18" },
    { "across words", "62-65\n", "62 63 64 65" },
    { "in no order, and twice", "5,1-2,2\n", "1 2 5" },
    { "the last that there can be", "8191\n", "8191" },
    { "one more", "8192\n", NULL },
    { "backwards", "3-0\n", NULL },
    { "a comma at the end", "0,\n", NULL },
    { "a comma in front", ",0\n", NULL },
    { "an open range", "0-\n", NULL },
    { "a word", "all\n", NULL },
    { "a space", "0 1\n", NULL },
    { "a mask", "ff,00\n", NULL },
};

static void test_cpu_lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct sysfs_cpus c;
        AUTO_BUF struct buf got = BUF_INIT;
        int n = 0, rc = sysfs_cpus_parse(&c, lists[i].text);
        for (int cpu = -1; rc == 0 && (cpu = sysfs_cpus_next(&c, cpu + 1)) >= 0; n++)
            buf_printf(&got, "%s%d", n ? " " : "", cpu);
        if (rc != (lists[i].want ? 0 : -EINVAL))
            fail_msg("%s: got %d", lists[i].name, rc);
        if (rc == 0 && (strcmp(buf_text(&got), lists[i].want) != 0 || sysfs_cpus_count(&c) != n))
            fail_msg("%s: got '%s', %d of them, want '%s'", lists[i].name, buf_text(&got), sysfs_cpus_count(&c),
                     lists[i].want);
    }
}

static void test_which_cpu_it_is(void **state)
{
    (void)state;
    struct sysfs_cpu_id id;
    assert_int_equal(sysfs_modalias_parse(&id, "cpu:type:x86,ven0000fam0006mod0055:feature:,0000,0124,012B,012E\n"), 0);
    assert_int_equal(id.vendor, SYSFS_VENDOR_INTEL);
    assert_int_equal(id.family, 6);
    assert_int_equal(id.model, 0x55);
    assert_true(id.rtm);
    assert_int_equal(sysfs_modalias_parse(&id, "cpu:type:x86,ven0002fam0019mod0011:feature:,0000,0123\n"), 0);
    assert_int_equal(id.vendor, SYSFS_VENDOR_AMD);
    assert_int_equal(id.family, 0x19);
    assert_int_equal(id.model, 0x11);
    assert_false(id.rtm);
    static const char *const bad[] = { "", "cpu:type:aarch64:feature:,0000\n", "cpu:type:x86,ven0000fam0006\n",
                                       "cpu:type:x86,ven00fam0006mod0055:feature:,0000\n" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (sysfs_modalias_parse(&id, bad[i]) != -EINVAL || id.model != 0x11)
            fail_msg("'%s' was taken for a CPU", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_terms_that_name_a_word),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_a_comma_locale_changes_no_scale),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_cpu_lists),
        cmocka_unit_test(test_which_cpu_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
