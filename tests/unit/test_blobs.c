/* Files that are sent by content, folders made of them, and what is fetched of folders: parcels as drivers make them are unpacked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/io.h"
#include "base/own.h"
#include "live/parcel.h"
#include "node/blobs.h"
#include "node/folder.h"
#include "tests/fault.h"

static char dir[64];

static int set_up(void **state)
{
    (void)snprintf(dir, sizeof dir, "/tmp/pipetune-blobs-XXXXXX");
    *state = mkdtemp(dir);
    bool made = *state && chdir(dir) == 0 && mkdir("root", 0700) == 0 && mkdir("app", 0700) == 0 &&
                mkdir("app/lib", 0700) == 0 && mkdir("launch", 0700) == 0;
    return made ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    beneath_empty(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return chdir("/") < 0 ? -1 : rmdir(dir);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    assert_int_equal(io_write_atomic(path, text, strlen(text), mode, NULL), 0);
}

static char *path_of(const char *name)
{
    return io_join(dir, name);
}

/* The program, and a folder that it needs. */
static void make_parcel(struct parcel *p)
{
    struct err e = { 0 };
    AUTO_FREE char *app = path_of("app");
    AUTO_FREE char *lib = path_of("app/lib");
    AUTO_STRV struct strv files = STRV_INIT, words = STRV_INIT;
    write_file("app/train.sh", "#!/bin/sh\n", 0755);
    write_file("app/lib/a", "one", 0644);
    write_file("app/lib/b", "", 0644);
    strv_add(&files, lib);
    strv_add(&words, "./train.sh"), strv_add(&words, "--lr"), strv_add(&words, "/bin/sh");
    if (parcel_add_app(p, app, &files, &words, &e) < 0 || parcel_seal(p, &e) < 0)
        fail_msg("%s", e.text);
}

/* As a courier does, a few bytes at a time. */
static int send_all(const struct parcel *p, struct err *e)
{
    struct parcel_item manifest;
    struct blobs b = { 0 };
    int rc = 1;
    for (size_t i = 0; rc == 1; i++) {
        const struct parcel_item *it = parcel_at(p, i, &manifest);
        if (!it)
            break;
        int64_t at = 0, n;
        if (blobs_have("root", it->hash, it->size))
            continue;
        do {
            char chunk[7];
            n = parcel_read(p, it, at, chunk, sizeof chunk);
            rc = blobs_put(&b, "root", it->hash, it->size, at, chunk, (size_t)n, e);
            at += n;
        } while (rc == 0 && n > 0);
    }
    blobs_done(&b, "root");
    return rc;
}

static void test_a_folder_is_made_of_what_was_sent(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct parcel p = { 0 };
    make_parcel(&p);
    assert_int_equal(p.n, 3);
    assert_int_equal(blobs_unpack("root", p.hash, "launch", &e), -ENOENT);
    if (send_all(&p, &e) != 1 || blobs_unpack("root", p.hash, "launch", &e) < 0)
        fail_msg("%s", e.text);
    struct stat st;
    assert_int_equal(stat("launch/work/train.sh", &st), 0);
    assert_true(st.st_mode & S_IXUSR);
    AUTO_BUF struct buf a = BUF_INIT, listed = BUF_INIT;
    assert_int_equal(io_read_file(&a, "launch/work/lib/a", 100, NULL), 0);
    assert_string_equal(buf_text(&a), "one");
    assert_int_equal(stat("launch/work/lib/b", &st), 0);
    assert_int_equal(folder_list("launch", "work/lib", &listed, &e), 0);
    assert_non_null(memmem(listed.data, listed.len, " a", 3));
    parcel_done(&p);
}

static void test_what_is_of_one_launch_is_moved(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct parcel p = { 0 };
    write_file("app/c-3", "three", 0644);
    AUTO_FREE char *path = path_of("app/c-3");
    assert_int_equal(parcel_add(&p, path, "resume/c-3", true, &e), 0);
    assert_int_equal(parcel_seal(&p, &e), 0);
    assert_int_equal(send_all(&p, &e), 1);
    assert_int_equal(blobs_unpack("root", p.hash, "launch", &e), 0);
    assert_false(blobs_have("root", p.v[0].hash, p.v[0].size));
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(io_read_file(&b, "launch/resume/c-3", 100, NULL), 0);
    assert_string_equal(buf_text(&b), "three");
    parcel_done(&p);
}

static const char ABC[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; /* of "abc" */

static void test_what_is_not_what_it_says_is_refused(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct blobs b = { 0 };
    assert_int_equal(blobs_put(&b, "root", ABC, 3, 0, "abd", 3, &e), -EINVAL);
    assert_false(blobs_have("root", ABC, 3));
    assert_int_equal(blobs_put(&b, "root", ABC, 3, 0, "ab", 2, &e), 0);
    assert_int_equal(blobs_put(&b, "root", ABC, 3, 1, "c", 1, &e), -EINVAL); /* not its next bytes */
    assert_int_equal(blobs_put(&b, "root", ABC, 3, 2, "c", 1, &e), -EINVAL); /* nothing is begun */
    assert_int_equal(blobs_put(&b, "root", ABC, 3, 0, "abcd", 4, &e), -EINVAL);
    assert_int_equal(blobs_put(&b, "root", ABC, (int64_t)5 << 30, 0, "a", 1, &e), -EFBIG);
    assert_int_equal(blobs_put(&b, "root", ABC, 3, 0, "abc", 3, &e), 1);
    assert_true(blobs_have("root", ABC, 3));
    assert_false(blobs_have("root", ABC, 4));
    blobs_done(&b, "root");
    assert_int_equal(blobs_room("root", INT64_MAX, &e), -ENOSPC);
}

/* A manifest is a stranger's. */
static void test_manifests_that_reach_outside_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = { "../work/x", "work/../../x", "/work/x",      "work/",
                                         "exit",      "lock",         "checkpoint/x", "work/a/./b" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct err e = { 0 };
        struct blobs b = { 0 };
        struct sha256 sum;
        char text[200], hash[SHA256_HEX_MAX];
        int n = snprintf(text, sizeof text, "%s 3 - %s\n", ABC, names[i]);
        sha256_init(&sum), sha256_add(&sum, text, (size_t)n), sha256_hex(&sum, hash);
        assert_int_equal(blobs_put(&b, "root", ABC, 3, 0, "abc", 3, &e), 1);
        assert_int_equal(blobs_put(&b, "root", hash, n, 0, text, (size_t)n, &e), 1);
        if (blobs_unpack("root", hash, "launch", &e) != -EINVAL)
            fail_msg("'%s' was taken", names[i]);
    }
    AUTO_CLOSE int at = open("launch", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(symlinkat("/tmp", at, "work"), 0); /* nor through a link that stands there */
    struct err e = { 0 };
    struct parcel p = { 0 };
    make_parcel(&p);
    assert_int_equal(send_all(&p, &e), 1);
    assert_true(blobs_unpack("root", p.hash, "launch", &e) < 0);
    parcel_done(&p);
}

static void test_links_in_a_folder_are_not_fetched(void **state)
{
    (void)state;
    struct err e = { 0 };
    AUTO_BUF struct buf b = BUF_INIT;
    assert_int_equal(mkdir("launch/checkpoint", 0700), 0);
    assert_int_equal(symlink("/etc/passwd", "launch/checkpoint/c"), 0);
    assert_int_equal(folder_list("launch", "checkpoint", &b, &e), -ELOOP);
    assert_int_equal(folder_list("launch", "checkpoint/c", &b, &e), -ELOOP);
    assert_int_equal(folder_read("launch", "checkpoint/c", 0, 10, &b, &e), -ELOOP);
    assert_int_equal(folder_list("launch", "../root", &b, &e), -EINVAL);
    assert_int_equal(unlink("launch/checkpoint/c"), 0);
    write_file("launch/checkpoint/c", "abc", 0600);
    assert_int_equal(folder_read("launch", "checkpoint/c", 1, 10, &b, &e), 0);
    assert_int_equal(b.len, 2);
    assert_int_equal(folder_read("launch", "checkpoint", 0, 10, &b, &e), -EINVAL);
}

static void test_nothing_is_half_there_whatever_fails(void **state)
{
    (void)state;
    bool struck = true;
    for (unsigned nth = 1; struck; nth++) {
        struct err e = { 0 };
        struct blobs b = { 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC | FAULT_WRITE | FAULT_FSYNC | FAULT_RENAME | FAULT_OPEN, nth);
        int rc = blobs_put(&b, "root", ABC, 3, 0, "ab", 2, &e);
        if (rc == 0)
            rc = blobs_put(&b, "root", ABC, 3, 2, "c", 1, &e);
        blobs_done(&b, "root");
        struck = fault_disarm();
        assert_true(rc == 1 || (struck && rc < 0 && e.text[0]));
        assert_int_equal(blobs_have("root", ABC, 3), rc == 1);
        AUTO_FREE char *path = NULL;
        assert_true(asprintf(&path, "root/files/%s", ABC) > 0);
        (void)unlink(path);
    }
}

static void test_a_parcel_survives_lack_of_memory(void **state)
{
    (void)state;
    struct err e = { 0 };
    bool struck = true;
    AUTO_FREE char *app = path_of("app");
    write_file("app/lib/a", "one", 0644);
    for (unsigned nth = 1; struck; nth++) {
        struct parcel p = { 0 };
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC | FAULT_OPEN, nth);
        int rc = parcel_add(&p, app, "work/app", false, &e);
        if (rc == 0)
            rc = parcel_seal(&p, &e);
        struck = fault_disarm();
        assert_true(rc == 0 || struck);
        parcel_done(&p);
    }
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(test_a_folder_is_made_of_what_was_sent),   ROW(test_what_is_of_one_launch_is_moved),
        ROW(test_what_is_not_what_it_says_is_refused), ROW(test_manifests_that_reach_outside_are_refused),
        ROW(test_links_in_a_folder_are_not_fetched),   ROW(test_nothing_is_half_there_whatever_fails),
        ROW(test_a_parcel_survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
