/* The spool of earlier versions: made here by its format, taken over once, and gone. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/own.h"
#include "monitoring/spool.h"
#include "tests/fault.h"

struct fix {
    char dir[64], spool[80];
    struct buf got; /* segments' lines, each followed by "--" */
    int refuse;     /* what `take` says */
    struct err e;
};

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    assert_non_null(f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-spool-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->spool, sizeof f->spool, "%s/spool", f->dir);
    assert_int_equal(mkdir(f->spool, 0700), 0);
    *state = f;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    (void)nftw(f->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    buf_done(&f->got);
    free(f);
    return 0;
}

static void put_le(struct buf *b, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        buf_putc(b, (char)(x >> (8 * i)));
}

static void put_head(struct buf *b, uint64_t number)
{
    buf_put(b, "PTSPOOL1", 8);
    put_le(b, number, 8);
}

static void put_record(struct buf *b, const char *lines)
{
    size_t at = b->len;
    put_le(b, strlen(lines), 4);
    put_le(b, 1, 4);
    put_le(b, crc32_z(0, (const void *)lines, strlen(lines)), 4);
    put_le(b, crc32_z(0, (const void *)(b->data + at), 12), 4);
    buf_puts(b, lines);
}

static void write_file(const struct fix *f, const char *name, const struct buf *b)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", f->spool, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, b->data, b->len) == (ssize_t)b->len);
    (void)close(fd);
}

/* Segments 1 and 2 of two records each, of which the first was delivered. */
static void write_both(const struct fix *f)
{
    AUTO_BUF struct buf one = BUF_INIT, two = BUF_INIT, position = BUF_INIT;
    put_head(&one, 1);
    put_record(&one, "a v=1 1\n");
    put_record(&one, "a v=2 2\n");
    put_head(&two, 2);
    put_record(&two, "a v=3 3\n");
    put_record(&two, "a v=4 4\n");
    buf_put(&position, "PTSPOOLP", 8);
    put_le(&position, 1, 8);
    put_le(&position, 16 + 16 + 8, 8);
    put_le(&position, crc32_z(0, (const void *)position.data, 24), 4);
    write_file(f, "0000000000000001.spool", &one);
    write_file(f, "0000000000000002.spool", &two);
    write_file(f, "position", &position);
}

static int take(void *ctx, const char *lines, size_t len, struct err *e)
{
    struct fix *f = ctx;
    if (f->refuse < 0)
        return err_set(e, f->refuse, "no");
    buf_put(&f->got, lines, len);
    buf_puts(&f->got, "--");
    return 0;
}

static bool is_there(const struct fix *f, const char *name)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", f->spool, name);
    return access(path, F_OK) == 0;
}

static void what_was_not_delivered_is_taken_over_and_the_folder_goes(void **state)
{
    struct fix *f = *state;
    write_both(f);
    assert_int_equal(spool_take_over(f->spool, take, f, &f->e), 0);
    assert_string_equal(buf_text(&f->got), "a v=2 2\n--a v=3 3\na v=4 4\n--");
    assert_int_not_equal(access(f->spool, F_OK), 0);
    assert_int_equal(spool_take_over(f->spool, take, f, &f->e), 0); /* there is none */
}

static void what_cannot_be_taken_stays(void **state)
{
    struct fix *f = *state;
    write_both(f);
    f->refuse = -ENOSPC;
    assert_int_equal(spool_take_over(f->spool, take, f, &f->e), -ENOSPC);
    f->refuse = 0;
    assert_int_equal(spool_take_over(f->spool, take, f, &f->e), 0);
    assert_string_equal(buf_text(&f->got), "a v=2 2\n--a v=3 3\na v=4 4\n--");
}

static void a_process_of_an_earlier_version_keeps_it(void **state)
{
    struct fix *f = *state;
    char path[160];
    write_both(f);
    (void)snprintf(path, sizeof path, "%s/position", f->spool);
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(spool_take_over(f->spool, take, f, &f->e), -EBUSY);
    assert_string_equal(buf_text(&f->got), "");
}

static const struct {
    const char *name;
    size_t cut;       /* bytes of the end that are missing */
    const char *more; /* behind it */
    int flip;         /* a byte that is another; -1: none */
    const char *want;
    int bad;
} damages[] = {
    { "a record that was being written", 3, "", -1, "a v=3 3\n--", 0 },
    { "a head that was being written", 20, "", -1, "a v=3 3\n--", 0 },
    { "zeros behind it", 0, "0", -1, "a v=3 3\na v=4 4\n--", 0 },
    { "something behind it", 0, "something that is no record", -1, "a v=3 3\na v=4 4\n--", 1 },
    { "another byte in the first", 0, "", 16 + 16 + 2, "", 1 },
    { "another byte in the second", 0, "", 16 + 24 + 16 + 2, "a v=3 3\n--", 1 },
    { "another head", 0, "", 3, "", 1 },
};

static void good_records_before_a_damage_are_taken(void **state)
{
    struct fix *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        put_head(&b, 2);
        put_record(&b, "a v=3 3\n");
        put_record(&b, "a v=4 4\n");
        buf_cut(&b, b.len - damages[i].cut);
        if (strcmp(damages[i].more, "0") == 0)
            put_le(&b, 0, 8), put_le(&b, 0, 8);
        else
            buf_puts(&b, damages[i].more);
        if (damages[i].flip >= 0)
            b.data[damages[i].flip] ^= 1;
        (void)mkdir(f->spool, 0700);
        buf_clear(&f->got);
        write_file(f, "0000000000000002.spool", &b);
        int rc = spool_take_over(f->spool, take, f, &f->e);
        if (rc != damages[i].bad || strcmp(buf_text(&f->got), damages[i].want) != 0 ||
            is_there(f, "0000000000000002.bad") != damages[i].bad || is_there(f, "0000000000000002.spool"))
            fail_msg("%s: %d, '%s'", damages[i].name, rc, buf_text(&f->got));
        (void)nftw(f->spool, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    }
}

static void whatever_fails_it_is_taken_the_next_time(void **state)
{
    struct fix *f = *state;
    int rc = -1;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        write_both(f);
        fault_arm(FAULT_ALLOC | FAULT_OPEN, nth);
        rc = spool_take_over(f->spool, take, f, &f->e);
        (void)fault_disarm();
        if (rc < 0)
            assert_true(f->e.text[0]);
        buf_clear(&f->got);
        if (rc < 0)
            assert_int_equal(spool_take_over(f->spool, take, f, &f->e), 0);
        (void)mkdir(f->spool, 0700);
        buf_clear(&f->got);
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_was_not_delivered_is_taken_over_and_the_folder_goes),
        T(what_cannot_be_taken_stays),
        T(a_process_of_an_earlier_version_keeps_it),
        T(good_records_before_a_damage_are_taken),
        T(whatever_fails_it_is_taken_the_next_time),
    };
    return cmocka_run_group_tests_name("spool", tests, NULL, NULL);
}
