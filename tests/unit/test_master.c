/* What a standalone master's page says it offers, and what one that lies can do. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "bigdl/master.h"

/* cores, free, MiB, free */
#define W(state, cores, free, memory, left)                                                                            \
    "{\"state\":\"" state "\",\"cores\":" cores ",\"coresfree\":" free ",\"memory\":" memory ",\"memoryfree\":" left   \
    ",\"resources\":{}}"
#define PAGE(workers) "{\"url\":\"spark://h:7077\",\"workers\":[" workers "],\"aliveworkers\":2,\"status\":\"ALIVE\"}"

static const struct {
    const char *name, *page;
    bool all;
    int want; /* cores, or -errno */
    double memory_gb;
    int kinds;
} pages[] = {
    { "one worker of four", PAGE(W("ALIVE", "4", "4", "8192", "8192")), false, 4, 8, 1 },
    { "two of one", PAGE(W("ALIVE", "1", "1", "2048", "2048") "," W("ALIVE", "1", "1", "2048", "2048")), false, 2, 2,
      1 },
    { "uneven ones", PAGE(W("ALIVE", "3", "3", "2048", "2048") "," W("ALIVE", "1", "1", "4096", "4096")), false, 4, 4,
      2 },
    { "a dead one offers nothing", PAGE(W("DEAD", "8", "8", "9", "9") "," W("ALIVE", "1", "1", "1024", "1024")), false,
      1, 1, 1 },
    { "what others have taken is not offered", PAGE(W("ALIVE", "4", "1", "8192", "3072")), false, 1, 3, 1 },
    { "but to a study that has taken it itself", PAGE(W("ALIVE", "4", "1", "8192", "3072")), true, 4, 8, 1 },
    { "when all is taken, it is waited for", PAGE(W("ALIVE", "4", "0", "8192", "0")), false, 4, 8, 1 },
    { "nobody lives", PAGE(W("DEAD", "4", "4", "8192", "8192")), false, -ENODEV, 0, 0 },
    { "no workers", PAGE(""), false, -ENODEV, 0, 0 },
    { "another server's page", "<html>", false, -EINVAL, 0, 0 },
    { "another JSON", "{\"workers\":3}", false, -EINVAL, 0, 0 },
    { "negative figures", PAGE(W("ALIVE", "-4", "-4", "-8", "-8")), false, -ENODEV, 0, 0 },
    { "the largest figures there are",
      PAGE(W("ALIVE", "9223372036854775807", "9223372036854775807", "9223372036854775807", "9223372036854775807") "," W(
          "ALIVE", "9223372036854775807", "9223372036854775807", "9223372036854775807", "9223372036854775807")),
      false, 4096, 9007199254740992.0, 1 },
};

static void test_a_page_says_what_is_offered(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        struct offer o = { .file_cores = 3 };
        struct err e = { 0 };
        int rc = master_parse(&o, pages[i].page, strlen(pages[i].page), pages[i].all, &e);
        int got = rc < 0 ? rc : o.cores;
        if (got != pages[i].want || o.memory_gb != pages[i].memory_gb || o.room.n_workers != pages[i].kinds ||
            o.file_cores != 3)
            fail_msg("%s: got %d cores, %g GiB, %d kinds of workers: %s", pages[i].name, got, o.memory_gb,
                     o.room.n_workers, e.text);
    }
}

/* More cores than an int counts, each worker's own as many as are believed. */
static void test_a_thousand_lies_do_not_overflow(void **state)
{
    (void)state;
    AUTO_BUF struct buf page = BUF_INIT;
    buf_puts(&page, "{\"workers\":[");
    for (int i = 0; i < 4000; i++)
        buf_printf(&page, "%s" W("ALIVE", "1000000", "1000000", "1024", "1024"), i ? "," : "");
    buf_puts(&page, "]}");
    struct offer o = { 0 };
    struct err e = { 0 };
    assert_int_equal(master_parse(&o, buf_text(&page), page.len, false, &e), 0);
    assert_int_equal(o.cores, 4096);
}

static void test_the_page_of_a_master(void **state)
{
    (void)state;
    char url[64];
    assert_int_equal(master_url("spark://h:7077", url, sizeof url), 0);
    assert_string_equal(url, "http://h:8080/json/");
    assert_int_equal(master_url("spark://h:7077,g:7077", url, sizeof url), 0);
    assert_string_equal(url, "http://h:8080/json/");
    assert_int_equal(master_url("yarn", url, sizeof url), -EINVAL);
    assert_int_equal(master_url("spark://", url, sizeof url), -EINVAL);
    assert_int_equal(
        master_url("spark://0123456789012345678901234567890123456789012345678901234567890", url, sizeof url), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_page_says_what_is_offered),
        cmocka_unit_test(test_a_thousand_lies_do_not_overflow),
        cmocka_unit_test(test_the_page_of_a_master),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
