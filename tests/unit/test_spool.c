#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/own.h"
#include "monitoring/spool.h"
#include "monitoring/spool_segment.h"
#include "tests/fault.h"

static const struct spool_cfg small = { .cap = 4096, .segment = 256 };
static const struct spool_cfg large = { .cap = 1 << 20, .segment = 1 << 18 };

static int set_up(void **state)
{
    char dir[] = "/tmp/pipetune-spool-XXXXXX";
    *state = mkdtemp(dir) ? strdup(dir) : NULL;
    return *state ? 0 : -1;
}

static void empty(const char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *at; d && (at = readdir(d));)
        if (at->d_name[0] != '.')
            (void)unlinkat(dirfd(d), at->d_name, 0);
    if (d)
        (void)closedir(d);
}

static int tear_down(void **state)
{
    empty(*state);
    (void)rmdir(*state);
    free(*state);
    return 0;
}

static size_t files(const char *dir, const char *suffix)
{
    size_t n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *at; (at = readdir(d));) {
        uint64_t number;
        n += segment_named(at->d_name, suffix, &number);
    }
    (void)closedir(d);
    return n;
}

static struct spool *reopen(const char *dir, const struct spool_cfg *cfg)
{
    struct spool *s = NULL;
    struct err e = { 0 };
    if (spool_open(&s, dir, cfg, &e) < 0)
        fail_msg("%s", e.text);
    return s;
}

/* A batch of n lines "BATCH i\n". */
static int append(struct spool *s, int batch, uint32_t n)
{
    AUTO_BUF struct buf b = BUF_INIT;
    for (uint32_t i = 0; i < n; i++)
        buf_printf(&b, "m v=%d,i=%u 1\n", batch, i);
    if (b.failed)
        return -ENOMEM;
    struct err e;
    return spool_append(s, b.data, b.len, n, &e);
}

/* Takes one batch out: its number, or -1. */
static int take(struct spool *s, uint32_t want_lines)
{
    AUTO_BUF struct buf b = BUF_INIT;
    uint32_t lines = 0;
    struct err e = { 0 };
    int rc = spool_peek(s, &b, &lines, &e), batch = -1;
    if (rc < 0)
        fail_msg("%s", e.text);
    if (rc == 0)
        return -1;
    assert_int_equal(lines, want_lines);
    assert_int_equal(sscanf(b.data, "m v=%d,", &batch), 1);
    assert_int_equal(spool_pop(s, spool_id(s), &e), 0);
    return batch;
}

static void batches_come_out_in_the_order_they_went_in(void **state)
{
    struct spool *s = reopen(*state, &small);
    for (int i = 0; i < 20; i++)
        assert_int_equal(append(s, i, 3), 0);
    assert_int_equal(spool_counts(s).lines, 60);
    assert_true(files(*state, ".spool") > 3);
    for (int i = 0; i < 20; i++)
        assert_int_equal(take(s, 3), i);
    assert_int_equal(take(s, 0), -1);
    assert_int_equal(spool_counts(s).lines, 0);
    assert_int_equal(files(*state, ".spool"), 0); /* what was delivered is removed */
    assert_int_equal(append(s, 99, 1), 0);
    assert_int_equal(take(s, 1), 99);
    spool_close(s);
}

static void what_is_there_is_found_again_exactly(void **state)
{
    for (int delivered = 0; delivered <= 12; delivered++) {
        empty(*state);
        struct spool *s = reopen(*state, &small);
        for (int i = 0; i < 12; i++)
            assert_int_equal(append(s, i, 2), 0);
        for (int i = 0; i < delivered; i++)
            assert_int_equal(take(s, 2), i);
        spool_close(s);
        s = reopen(*state, &small);
        assert_int_equal(spool_counts(s).found, 2 * (12 - delivered));
        assert_int_equal(append(s, 12, 2), 0);
        for (int i = delivered; i <= 12; i++)
            assert_int_equal(take(s, 2), i);
        assert_int_equal(take(s, 0), -1);
        spool_close(s);
    }
}

static void over_the_cap_the_oldest_go_and_are_counted(void **state)
{
    struct spool *s = reopen(*state, &small);
    for (int i = 0; i < 300; i++)
        assert_int_equal(append(s, i, 3), 0);
    struct spool_counts c = spool_counts(s);
    assert_true(c.bytes <= small.cap);
    assert_int_equal(c.lines + c.dropped, 900);
    assert_true(c.dropped > 0);
    int first = take(s, 3);
    assert_int_equal(first, c.dropped / 3);
    for (int i = first + 1; i < 300; i++)
        assert_int_equal(take(s, 3), i);
    spool_close(s);
}

static void a_batch_that_somebody_holds_is_not_counted_as_dropped(void **state)
{
    struct spool *s = reopen(*state, &small);
    AUTO_BUF struct buf b = BUF_INIT;
    uint32_t lines;
    struct err e;
    assert_int_equal(append(s, 0, 3), 0);
    assert_int_equal(spool_peek(s, &b, &lines, &e), 1);
    uint64_t id = spool_id(s);
    for (int i = 1; i < 300; i++)
        assert_int_equal(append(s, i, 3), 0);
    assert_true(spool_id(s) != id);
    struct spool_counts c = spool_counts(s);
    assert_int_equal(c.lines + c.dropped + 3, 900);
    assert_int_equal(spool_pop(s, id, &e), 0); /* pops nothing that is there now */
    assert_int_equal(spool_counts(s).lines, c.lines);
    spool_close(s);
}

static void a_batch_too_large_is_refused(void **state)
{
    struct spool *s = reopen(*state, &small);
    AUTO_BUF struct buf b = BUF_INIT;
    for (size_t i = 0; i < small.cap; i++)
        buf_putc(&b, 'x');
    struct err e;
    assert_int_equal(append(s, 1, 3), 0);
    assert_int_equal(spool_append(s, b.data, b.len, 1, &e), -EMSGSIZE);
    assert_int_equal(take(s, 3), 1);
    spool_close(s);
}

static void one_process_has_it_at_a_time(void **state)
{
    struct spool *s = reopen(*state, &small), *second = NULL;
    struct err e = { 0 };
    assert_int_equal(spool_open(&second, *state, &small, &e), -EBUSY);
    assert_null(second);
    spool_close(s);
    spool_close(reopen(*state, &small));
}

/* --- damage --- */

/* One segment of three records of two lines; returns its bytes, free them. */
static char *segment_of_three(const char *dir, size_t *len)
{
    empty(dir);
    struct spool *s = reopen(dir, &large);
    for (int i = 0; i < 3; i++)
        assert_int_equal(append(s, i, 2), 0);
    spool_close(s);
    AUTO_FREE char *path = io_join(dir, "0000000000000001.spool");
    AUTO_BUF struct buf b = BUF_INIT;
    struct err e = { 0 };
    assert_int_equal(io_read_file(&b, path, 1 << 20, &e), 0);
    *len = b.len;
    return buf_take(&b);
}

static void write_segment(const char *dir, const char *bytes, size_t len)
{
    empty(dir);
    AUTO_FREE char *path = io_join(dir, "0000000000000001.spool");
    struct err e = { 0 };
    if (io_write_atomic(path, bytes, len, 0600, &e) < 0)
        fail_msg("%s", e.text);
}

static void a_tail_torn_at_any_byte_costs_its_record_alone(void **state)
{
    size_t len;
    AUTO_FREE char *bytes = segment_of_three(*state, &len);
    size_t record = (len - SPOOL_HEAD) / 3;
    for (size_t cut = 0; cut < len; cut++) {
        write_segment(*state, bytes, cut);
        struct spool *s = reopen(*state, &large);
        size_t whole = cut < SPOOL_HEAD ? 0 : (cut - SPOOL_HEAD) / record;
        struct spool_counts c = spool_counts(s);
        bool torn = cut != SPOOL_HEAD && (cut < SPOOL_HEAD || (cut - SPOOL_HEAD) % record);
        if (c.lines != 2 * whole || c.bad || c.torn != torn)
            fail_msg("cut at %zu: %lu lines, %lu bad, %lu torn", cut, (unsigned long)c.lines, (unsigned long)c.bad,
                     (unsigned long)c.torn);
        spool_close(s);
        s = reopen(*state, &large);
        assert_int_equal(spool_counts(s).torn, 0); /* it was mended */
        for (size_t i = 0; i < whole; i++)
            assert_int_equal(take(s, 2), i);
        spool_close(s);
    }
}

static void a_tail_of_zeros_is_torn(void **state)
{
    size_t len;
    AUTO_FREE char *bytes = segment_of_three(*state, &len);
    memset(bytes + len - (len - SPOOL_HEAD) / 3, 0, (len - SPOOL_HEAD) / 3);
    write_segment(*state, bytes, len);
    struct spool *s = reopen(*state, &large);
    assert_int_equal(spool_counts(s).lines, 4);
    assert_int_equal(spool_counts(s).torn, 1);
    assert_int_equal(spool_counts(s).bad, 0);
    spool_close(s);
}

static void any_wrong_byte_sets_the_file_aside_and_keeps_what_is_good(void **state)
{
    size_t len;
    AUTO_FREE char *bytes = segment_of_three(*state, &len);
    size_t record = (len - SPOOL_HEAD) / 3;
    for (size_t at = 0; at < len; at++) {
        bytes[at] ^= 0x55;
        write_segment(*state, bytes, len);
        bytes[at] ^= 0x55;
        struct spool *s = reopen(*state, &large);
        size_t whole = at < SPOOL_HEAD ? 0 : (at - SPOOL_HEAD) / record;
        struct spool_counts c = spool_counts(s);
        if (c.lines != 2 * whole || c.bad != 1 || files(*state, ".bad") != 1)
            fail_msg("byte %zu: %lu lines, %lu bad", at, (unsigned long)c.lines, (unsigned long)c.bad);
        spool_close(s);
        s = reopen(*state, &large);
        assert_int_equal(spool_counts(s).lines, 2 * whole);
        assert_int_equal(spool_counts(s).bad, 0);
        for (size_t i = 0; i < whole; i++)
            assert_int_equal(take(s, 2), i);
        spool_close(s);
    }
}

static void corruption_met_while_reading_is_counted(void **state)
{
    struct spool *s = reopen(*state, &small);
    for (int i = 0; i < 20; i++)
        assert_int_equal(append(s, i, 3), 0);
    AUTO_FREE char *path = io_join(*state, "0000000000000001.spool");
    AUTO_CLOSE int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "?", 1, 40), 1);
    uint64_t before = spool_counts(s).lines;
    int first = take(s, 3);
    assert_true(first > 0);
    struct spool_counts c = spool_counts(s);
    assert_int_equal(c.bad, 1);
    assert_int_equal(c.dropped, 3 * first);
    assert_int_equal(c.lines, before - c.dropped - 3);
    assert_int_equal(files(*state, ".bad"), 1);
    spool_close(s);
}

static void a_position_that_cannot_be_read_delivers_again(void **state)
{
    struct spool *s = reopen(*state, &large);
    for (int i = 0; i < 3; i++)
        assert_int_equal(append(s, i, 2), 0);
    assert_int_equal(take(s, 2), 0);
    spool_close(s);
    AUTO_FREE char *path = io_join(*state, "position");
    AUTO_CLOSE int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "?", 1, 20), 1);
    s = reopen(*state, &large);
    assert_int_equal(spool_counts(s).lines, 6);
    assert_int_equal(take(s, 2), 0);
    spool_close(s);
}

static void few_corrupt_files_are_kept(void **state)
{
    for (int i = 0; i < SPOOL_BAD_MAX + 4; i++) {
        char name[SEGMENT_NAME_MAX];
        AUTO_FREE char *path = io_join(*state, segment_name((uint64_t)i + 1, ".bad", name));
        struct err e;
        assert_int_equal(io_write_atomic(path, "x", 1, 0600, &e), 0);
    }
    struct spool *s = reopen(*state, &large);
    assert_int_equal(files(*state, ".bad"), SPOOL_BAD_MAX);
    spool_close(s);
}

/* --- faults --- */

static void a_fault_of_the_disk_appends_nothing_or_all(void **state)
{
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        empty(*state);
        struct spool *s = reopen(*state, &small);
        assert_int_equal(append(s, 0, 8), 0); /* the next one begins another segment */
        assert_int_equal(append(s, 1, 8), 0);
        fault_arm(FAULT_WRITE | FAULT_ALLOC | FAULT_FSYNC | FAULT_OPEN, nth);
        rc = append(s, 2, 8);
        (void)fault_disarm();
        assert_int_equal(spool_counts(s).lines, rc < 0 ? 16 : 24);
        assert_int_equal(append(s, 3, 8), 0);
        for (int i = 0; i < 4; i++)
            if (i != 2 || rc == 0)
                assert_int_equal(take(s, 8), i);
        assert_int_equal(take(s, 0), -1);
        assert_int_equal(files(*state, ".spool"), 0);
        spool_close(s);
    }
}

static void a_fault_while_opening_loses_nothing(void **state)
{
    struct spool *s = reopen(*state, &small);
    for (int i = 0; i < 12; i++)
        assert_int_equal(append(s, i, 3), 0);
    spool_close(s);
    int rc = -EIO;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 200);
        struct err e = { 0 };
        fault_arm(FAULT_ALLOC | FAULT_OPEN | FAULT_WRITE, nth);
        rc = spool_open(&s, *state, &small, &e);
        (void)fault_disarm();
        assert_true(rc == 0 || *e.text);
    }
    for (int i = 0; i < 12; i++)
        assert_int_equal(take(s, 3), i);
    spool_close(s);
}

static void a_sync_that_fails_is_told_and_can_be_repeated(void **state)
{
    struct spool *s = reopen(*state, &small);
    struct err e = { 0 };
    assert_int_equal(append(s, 0, 1), 0);
    fault_arm(FAULT_FSYNC, 1);
    assert_int_equal(spool_sync(s, &e), -EIO);
    fault_arm(FAULT_FSYNC, 1);
    assert_int_equal(spool_sync(s, &e), -EIO); /* still not synced */
    (void)fault_disarm();
    assert_int_equal(spool_sync(s, &e), 0);
    fault_arm(FAULT_FSYNC, 1);
    assert_int_equal(spool_sync(s, &e), 0); /* nothing to do */
    assert_false(fault_disarm());
    spool_close(s);
}

static void a_segment_is_synced_before_the_next_begins(void **state)
{
    struct spool *s = reopen(*state, &small);
    int rc = 0;
    fault_arm(FAULT_FSYNC, 1);
    for (int i = 0; i < 20 && rc == 0; i++)
        rc = append(s, i, 8);
    assert_true(fault_disarm());
    assert_int_equal(rc, -EIO);
    assert_int_equal(files(*state, ".spool"), 1);
    spool_close(s);
}

#define ROW(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(batches_come_out_in_the_order_they_went_in),
        ROW(what_is_there_is_found_again_exactly),
        ROW(over_the_cap_the_oldest_go_and_are_counted),
        ROW(a_batch_that_somebody_holds_is_not_counted_as_dropped),
        ROW(a_batch_too_large_is_refused),
        ROW(one_process_has_it_at_a_time),
        ROW(a_tail_torn_at_any_byte_costs_its_record_alone),
        ROW(a_tail_of_zeros_is_torn),
        ROW(any_wrong_byte_sets_the_file_aside_and_keeps_what_is_good),
        ROW(corruption_met_while_reading_is_counted),
        ROW(a_position_that_cannot_be_read_delivers_again),
        ROW(few_corrupt_files_are_kept),
        ROW(a_fault_of_the_disk_appends_nothing_or_all),
        ROW(a_fault_while_opening_loses_nothing),
        ROW(a_segment_is_synced_before_the_next_begins),
        ROW(a_sync_that_fails_is_told_and_can_be_repeated),
    };
    return cmocka_run_group_tests_name("spool", tests, NULL, NULL);
}
