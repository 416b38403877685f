/* In whose code processes are: maps, the kernel's rings, and looks over a fake kernel and the real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "monitoring/code.h"
#include "tests/fake_sysfs.h"
#include "tests/fault.h"

#define ONLINE "devices/system/cpu/online"

/* --- maps --------------------------------------------------------------------------------------------------------- */

#define LIBRARY "7f0000000000-7f0000004000 r-xp 00010000 fe:00 123                        /tmp/mkl.1/libjmkl.so\n"

static const char some_map[] =
    "00400000-00401000 r--p 00000000 fe:00 1                          /usr/bin/java\n"
    "00401000-00402000 r-xp 00001000 fe:00 1                          /usr/bin/java\n"
    "01000000-01100000 rw-p 00000000 00:00 0                          [heap]\n"
    "7e0000000000-7e0000100000 rwxp 00000000 00:00 0 \n" LIBRARY
    "7f0000008000-7f0000009000 r-xp 00001000 fe:00 9                  /usr/lib/server/libjvm.so\n"
    "7fff00000000-7fff00002000 r-xp 00000000 00:00 0                  [vdso]\n";

static int place(const char *text, uint64_t address)
{
    struct code_map m = { 0 };
    assert_int_equal(code_map_parse(&m, text), 0);
    int found = code_map_find(&m, address);
    code_map_done(&m);
    return found;
}

static void an_address_lies_in_a_library_or_in_generated_code(void **state)
{
    (void)state;
    assert_int_equal(place(some_map, 0x7e0000000000), CODE_GENERATED);
    assert_int_equal(place(some_map, 0x7e00000fffff), CODE_GENERATED);
    assert_true(place(some_map, 0x401800) >= CODE_PAGES && place(some_map, 0x401800) < CODE_PLACES);
    assert_true(place(some_map, 0x7f0000003fff) >= CODE_PAGES);
    assert_int_equal(place(some_map, 0x7f0000008010), CODE_RUNTIME);
    assert_int_equal(place(some_map, 0x7fff00000010), CODE_RUNTIME);
    static const uint64_t nowhere[] = {
        0, 0x400fff /* not executed */, 0x1000000, 0x7e0000100000, 0x7f0000004000, UINT64_MAX
    };
    for (size_t i = 0; i < ARRAY_LEN(nowhere); i++)
        assert_int_equal(place(some_map, nowhere[i]), CODE_NOWHERE);
    assert_int_equal(place("", 1), CODE_NOWHERE);
}

/* Where the loader put it, in which folder, and whether the file is still there: all that differs from run to run. */
static void a_page_is_told_by_file_and_offset_alone(void **state)
{
    (void)state;
    static const char *const other[] = {
        "100000-104000 r-xp 00010000 08:01 7 /tmp/mkl.native.77/libjmkl.so",
        "100000-104000 r-xp 00010000 08:01 7 /tmp/mkl.native.77/libjmkl.so (deleted)\n",
        "0ff000-104000 r-xp 0000f000 08:01 7 libx /libjmkl.so\n100000-104000 r-xp 00010000 08:01 7 /libjmkl.so\n",
    };
    for (uint64_t at = 0; at < 0x4000; at += 0x800)
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(place(LIBRARY, 0x7f0000000000 + at), place(other[i], 0x100000 + at));
    assert_int_equal(place(other[2], 0xff000), CODE_GENERATED); /* a path begins with '/' */
}

static void pages_and_files_fall_into_all_groups(void **state)
{
    (void)state;
    bool by_page[CODE_PLACES] = { false }, by_file[CODE_PLACES] = { false };
    for (int i = 0; i < 400; i++) {
        char text[128];
        (void)snprintf(text, sizeof text,
                       "1000-2000 r-xp %x000 fe:00 1 /lib/a.so\n9000-a000 r-xp 00000000 fe:00 1 /lib/a.so.%d", i, i);
        by_page[place(text, 0x1abc)] = by_file[place(text, 0x9000)] = true;
    }
    for (int i = CODE_PAGES; i < CODE_PLACES; i++)
        assert_true(by_page[i] && by_file[i]);
}

static void lines_that_are_none_are_left_out(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "x",
        "1000-2000",
        "1000-2000 r-x",
        "1000-2000 r-xp",
        "1000 2000 r-xp 0 fe:00 1 /a",
        "2000-1000 r-xp 0 fe:00 1 /a",
        "1000-1000 r-xp 0 fe:00 1 /a",
        "zz-2000 r-xp 0 fe:00 1 /a",
        "1000-2000 r-xp 0 fe:00",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "%s\n%s", texts[i], LIBRARY);
        assert_int_equal(place(texts[i], 0x1000), CODE_NOWHERE);
        assert_int_equal(place(text, 0x7f0000000000), place(LIBRARY, 0x7f0000000000));
    }
}

static void a_long_path_is_a_path(void **state)
{
    (void)state;
    char text[4200], folder[4001];
    memset(folder, 'x', sizeof folder - 1);
    folder[sizeof folder - 1] = '\0';
    (void)snprintf(text, sizeof text, "1000-2000 r-xp 00010000 fe:00 1 /%s/libjmkl.so\n", folder);
    assert_int_equal(place(text, 0x1000), place(LIBRARY, 0x7f0000000000));
}

static void without_memory_a_map_stays(void **state)
{
    (void)state;
    struct code_map m = { 0 };
    assert_int_equal(code_map_parse(&m, LIBRARY), 0);
    fault_arm(FAULT_ALLOC, 1);
    assert_int_equal(code_map_parse(&m, some_map), -ENOMEM);
    assert_true(fault_disarm());
    assert_true(code_map_find(&m, 0x7f0000000000) >= CODE_PAGES);
    assert_int_equal(code_map_find(&m, 0x401000), CODE_NOWHERE);
    code_map_done(&m);
}

/* --- rings -------------------------------------------------------------------------------------------------------- */

static void *new_memory(size_t size)
{
    return calloc(1, (size_t)sysconf(_SC_PAGESIZE) + size);
}

static struct perf_ring new_ring(size_t size)
{
    struct perf_ring r = { .memory = new_memory(size), .size = size };
    assert_non_null(r.memory);
    return r;
}

static struct perf_event_mmap_page *page_of(const struct perf_ring *r)
{
    return r->memory;
}

static void put(const struct perf_ring *r, const void *bytes, size_t n)
{
    char *data = (char *)r->memory + sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < n; i++)
        data[page_of(r)->data_head++ & (r->size - 1)] = ((const char *)bytes)[i];
}

static void put_record(const struct perf_ring *r, uint32_t type, const void *body, size_t n)
{
    const struct perf_event_header h = { .type = type, .size = (uint16_t)(sizeof h + n) };
    put(r, &h, sizeof h);
    put(r, body, n);
}

static void put_sample(const struct perf_ring *r, pid_t pid, uint64_t address)
{
    const struct {
        uint64_t ip;
        uint32_t pid, tid;
    } body = { address, (uint32_t)pid, (uint32_t)pid + 1 };
    put_record(r, PERF_RECORD_SAMPLE, &body, sizeof body);
}

static void put_mapping(const struct perf_ring *r, pid_t pid)
{
    const struct {
        uint32_t pid, tid;
        uint64_t address, length, offset;
        char name[8];
    } body = { .pid = (uint32_t)pid, .name = "//anon" };
    put_record(r, PERF_RECORD_MMAP, &body, sizeof body);
}

static void records_are_read_and_given_back(void **state)
{
    (void)state;
    struct perf_ring r = new_ring(4096);
    struct perf_ring_record got;
    put_sample(&r, 7, 0x1234);
    put_record(&r, PERF_RECORD_FORK, "12345678", 8);
    put_mapping(&r, 8);
    put_record(&r, PERF_RECORD_LOST, "12345678", 8);
    for (int again = 0; again < 2; again++) {
        perf_ring_begin(&r);
        assert_true(perf_ring_next(&r, &got) && got.kind == PERF_RING_SAMPLE && got.pid == 7 && got.address == 0x1234);
        assert_true(perf_ring_next(&r, &got) && got.kind == PERF_RING_MAPPED && got.pid == 8);
        assert_true(perf_ring_next(&r, &got) && got.kind == PERF_RING_LOST);
        assert_false(perf_ring_next(&r, &got));
    }
    perf_ring_end(&r);
    assert_int_equal(page_of(&r)->data_tail, page_of(&r)->data_head);
    perf_ring_begin(&r);
    assert_false(perf_ring_next(&r, &got));
    free(r.memory);
}

static void records_go_round(void **state)
{
    (void)state;
    struct perf_ring r = new_ring(4096);
    struct perf_ring_record got;
    page_of(&r)->data_head = page_of(&r)->data_tail = UINT64_MAX - 100; /* and the numbers with them */
    for (uint64_t i = 0; i < 1000; i++) {
        put_sample(&r, (pid_t)i, i << 20);
        perf_ring_begin(&r);
        assert_true(perf_ring_next(&r, &got));
        assert_true(got.pid == (pid_t)i && got.address == i << 20);
        assert_false(perf_ring_next(&r, &got));
        perf_ring_end(&r);
    }
    free(r.memory);
}

static void what_cannot_be_is_lost(void **state)
{
    (void)state;
    struct perf_ring r = new_ring(4096);
    struct perf_ring_record got;
    static const struct perf_event_header odd[] = { { .type = PERF_RECORD_SAMPLE, .size = 0 },
                                                    { .type = PERF_RECORD_SAMPLE, .size = 4 },
                                                    { .type = PERF_RECORD_SAMPLE, .size = 40000 } };
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        put(&r, &odd[i], sizeof odd[i]);
        put_sample(&r, 7, 1);
        perf_ring_begin(&r);
        assert_true(perf_ring_next(&r, &got) && got.kind == PERF_RING_LOST);
        assert_false(perf_ring_next(&r, &got));
        perf_ring_end(&r);
    }
    put_record(&r, PERF_RECORD_SAMPLE, "12345678", 8); /* short ones say nothing */
    put_record(&r, PERF_RECORD_MMAP, NULL, 0);
    perf_ring_begin(&r);
    assert_false(perf_ring_next(&r, &got));
    perf_ring_end(&r);
    page_of(&r)->data_head += 3 * r.size;
    perf_ring_begin(&r);
    assert_true(perf_ring_next(&r, &got) && got.kind == PERF_RING_LOST);
    assert_false(perf_ring_next(&r, &got));
    free(r.memory);
}

/* --- a fake kernel ------------------------------------------------------------------------------------------------ */

enum { CPUS = 4, SOME_FD = 5000 };

static struct {
    struct perf_ring ring[CPUS];
    unsigned hz;
    int n_watched, refuse; /* 0, or what opening answers from the second CPU on */
} kernel;

static char *root; /* /sys, and /proc below it */
static int fds_left;

static int fake_watch(int cpu, unsigned hz, struct perf_ring *ring, void *ctx)
{
    (void)ctx;
    assert_in_range(cpu, 0, CPUS - 1);
    assert_null(kernel.ring[cpu].memory);
    if (cpu > 0 && kernel.refuse)
        return kernel.refuse;
    if (!(ring->memory = new_memory(ring->size)))
        return -ENOMEM;
    kernel.ring[cpu] = *ring;
    kernel.hz = hz;
    kernel.n_watched++;
    return SOME_FD + cpu;
}

static void fake_unwatch(int fd, struct perf_ring *ring, void *ctx)
{
    (void)ctx;
    assert_ptr_equal(ring->memory, kernel.ring[fd - SOME_FD].memory);
    free(ring->memory);
    kernel.ring[fd - SOME_FD].memory = NULL;
    kernel.n_watched--;
}

static const struct perf_ops ops = { .watch = fake_watch, .unwatch = fake_unwatch };

static void put_maps(int pid, const char *text)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%d/maps", pid);
    fake_sysfs_write(root, path, text);
}

static int set_up(void **state)
{
    (void)state;
    memset(&kernel, 0, sizeof kernel);
    fds_left = 100;
    root = fake_sysfs_make(FAKE_VM);
    fake_sysfs_write(root, ONLINE, "0-1\n");
    put_maps(10, some_map);
    put_maps(20, LIBRARY);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_sysfs_remove(root);
    return kernel.n_watched || fds_left != 100 ? -1 : 0;
}

static struct codes *all;

static struct code *begin(int interval_ms)
{
    const struct codes_want want = { .ops = &ops, .sysfs = root, .proc = root, .fds_left = &fds_left };
    all = codes_new(&want);
    assert_non_null(all);
    struct code *c = code_new(all, interval_ms);
    assert_non_null(c);
    return c;
}

static void end(struct code *c)
{
    code_free(c);
    codes_free(all);
}

static const struct procs_id both[] = { { .pid = 10, .start_ticks = 1 }, { .pid = 20, .start_ticks = 2 } };
static struct reading got[CODE_PLACES];

static int state_after_read(struct code *c, const struct procs_id *v, size_t n)
{
    code_read(c, v, n, got);
    for (int i = 1; i < CODE_PLACES; i++) {
        assert_int_equal(got[i].state, got[0].state);
        assert_int_equal(isnan(got[i].value), got[i].state != READING_OK);
    }
    return got[0].state;
}

static double seconds_in_pages(void)
{
    double sum = 0;
    for (int i = CODE_PAGES; i < CODE_PLACES; i++)
        sum += got[i].value;
    return sum;
}

static void looks_are_seconds_of_the_processes(void **state)
{
    (void)state;
    struct code *c = begin(1000);
    assert_int_equal(state_after_read(c, both, 2), READING_NOT_COUNTED);
    assert_int_equal(kernel.n_watched, 2);
    assert_int_equal(kernel.hz, CODE_HZ);
    assert_int_equal(state_after_read(c, both, 2), READING_OK);
    assert_true(got[CODE_GENERATED].value == 0 && seconds_in_pages() == 0);
    for (int i = 0; i < 10; i++) {
        put_sample(&kernel.ring[i % 2], 10, 0x7e0000000000);
        put_sample(&kernel.ring[i % 2], 10, 0x7f0000008010); /* the JVM's own */
        put_sample(&kernel.ring[0], 11, 0x7e0000000000);     /* somebody else */
    }
    put_sample(&kernel.ring[1], 20, 0x7f0000000000);
    put_sample(&kernel.ring[0], 10, 0x7f0000000000);
    assert_int_equal(state_after_read(c, both, 2), READING_OK);
    assert_float_equal(got[CODE_GENERATED].value, 10.0 / CODE_HZ, 1e-12);
    assert_float_equal(got[place(LIBRARY, 0x7f0000000000)].value, 2.0 / CODE_HZ, 1e-12);
    assert_float_equal(seconds_in_pages(), 2.0 / CODE_HZ, 1e-12);
    assert_int_equal(state_after_read(c, both, 2), READING_OK);
    assert_true(got[CODE_GENERATED].value == 0);
    end(c);
}

static void a_process_counts_from_the_read_that_finds_it(void **state)
{
    (void)state;
    struct code *c = begin(1000);
    (void)state_after_read(c, both, 1);
    put_sample(&kernel.ring[0], 20, 0x7f0000000000);
    assert_int_equal(state_after_read(c, both, 2), READING_OK);
    assert_true(seconds_in_pages() == 0);
    put_sample(&kernel.ring[0], 20, 0x7f0000000000);
    put_sample(&kernel.ring[0], 10, 0x7f0000000000);
    assert_int_equal(state_after_read(c, both + 1, 1), READING_OK); /* what one did before it went counts */
    assert_float_equal(seconds_in_pages(), 2.0 / CODE_HZ, 1e-12);
    const struct procs_id other = { .pid = 20, .start_ticks = 3 };
    put_maps(20, "1000-2000 rwxp 00000000 00:00 0 \n");
    (void)state_after_read(c, &other, 1);
    put_sample(&kernel.ring[0], 20, 0x1000);
    (void)state_after_read(c, &other, 1);
    assert_float_equal(got[CODE_GENERATED].value, 1.0 / CODE_HZ, 1e-12);
    end(c);
}

static void what_is_loaded_later_is_found(void **state)
{
    (void)state;
    struct code *c = begin(1000);
    (void)state_after_read(c, both + 1, 1);
    put_maps(20, "1000-2000 rwxp 00000000 00:00 0 \n" LIBRARY);
    put_sample(&kernel.ring[0], 20, 0x1000); /* before the other CPU tells of the mapping */
    assert_int_equal(state_after_read(c, both + 1, 1), READING_OK);
    assert_true(got[CODE_GENERATED].value == 0);
    put_sample(&kernel.ring[0], 20, 0x1000);
    put_mapping(&kernel.ring[1], 20);
    put_mapping(&kernel.ring[1], 12345);
    assert_int_equal(state_after_read(c, both + 1, 1), READING_OK);
    assert_float_equal(got[CODE_GENERATED].value, 1.0 / CODE_HZ, 1e-12);
    end(c);
}

static void lost_looks_make_no_figure(void **state)
{
    (void)state;
    struct code *c = begin(1000);
    (void)state_after_read(c, both, 2);
    put_sample(&kernel.ring[0], 10, 0x7e0000000000);
    put_record(&kernel.ring[1], PERF_RECORD_LOST, "12345678", 8);
    assert_int_equal(state_after_read(c, both, 2), READING_NOT_COUNTED);
    assert_int_equal(state_after_read(c, both, 2), READING_OK);
    assert_true(got[CODE_GENERATED].value == 0);
    end(c);
}

static void nothing_is_watched_for_nobody(void **state)
{
    (void)state;
    struct code *c = begin(1000);
    assert_int_equal(state_after_read(c, NULL, 0), READING_NOT_COUNTED);
    assert_int_equal(kernel.n_watched, 0);
    (void)state_after_read(c, both, 2);
    assert_int_equal(kernel.n_watched, 2);
    (void)state_after_read(c, NULL, 0);
    assert_int_equal(kernel.n_watched, 0);
    assert_int_equal(state_after_read(c, both, 2), READING_NOT_COUNTED);
    assert_int_equal(state_after_read(c, both, 2), READING_OK);
    end(c);
}

/* One look at a CPU is for all of them. */
static void two_look_together(void **state)
{
    (void)state;
    struct code *a = begin(1000), *b = code_new(all, 500);
    (void)state_after_read(a, both, 1);
    (void)state_after_read(b, both + 1, 1);
    assert_int_equal(kernel.n_watched, 2);
    put_sample(&kernel.ring[0], 10, 0x7e0000000000);
    put_sample(&kernel.ring[1], 20, 0x7f0000000000);
    assert_int_equal(state_after_read(b, both + 1, 1), READING_OK);
    assert_float_equal(seconds_in_pages(), 1.0 / CODE_HZ, 1e-12);
    put_sample(&kernel.ring[1], 20, 0x7f0000000000);
    assert_int_equal(state_after_read(a, both, 1), READING_OK);
    assert_float_equal(got[CODE_GENERATED].value, 1.0 / CODE_HZ, 1e-12);
    assert_true(seconds_in_pages() == 0);
    put_record(&kernel.ring[0], PERF_RECORD_LOST, "12345678", 8);
    assert_int_equal(state_after_read(a, both, 1), READING_NOT_COUNTED);
    assert_int_equal(state_after_read(b, both + 1, 1), READING_NOT_COUNTED); /* some of them may have been its own */
    assert_int_equal(state_after_read(b, both + 1, 1), READING_OK);
    code_free(b);
    assert_int_equal(kernel.n_watched, 2);
    assert_int_equal(state_after_read(a, both, 1), READING_OK);
    (void)state_after_read(a, NULL, 0);
    assert_int_equal(kernel.n_watched, 0);
    end(a);
}

static void who_reads_rarely_slows_all_down(void **state)
{
    (void)state;
    struct code *a = begin(1000), *b = code_new(all, 60000);
    (void)state_after_read(a, both, 1);
    assert_int_equal(kernel.hz, CODE_HZ);
    put_sample(&kernel.ring[0], 10, 0x7e0000000000);
    (void)state_after_read(b, both + 1, 1);
    assert_in_range(kernel.hz, 20, 40);
    put_sample(&kernel.ring[0], 10, 0x7e0000000000);
    assert_int_equal(state_after_read(a, both, 1), READING_OK);
    assert_true(fabs(got[CODE_GENERATED].value - 1.0 / CODE_HZ - 1.0 / kernel.hz) < 1e-8);
    code_free(b);
    end(a);
}

static void cpus_come_and_go(void **state)
{
    (void)state;
    struct code *c = begin(1000);
    (void)state_after_read(c, both, 2);
    fake_sysfs_write(root, ONLINE, "1-3\n");
    assert_int_equal(state_after_read(c, both, 2), READING_OK);
    assert_int_equal(kernel.n_watched, 3);
    assert_null(kernel.ring[0].memory);
    put_sample(&kernel.ring[3], 10, 0x7e0000000000);
    (void)state_after_read(c, both, 2);
    assert_float_equal(got[CODE_GENERATED].value, 1.0 / CODE_HZ, 1e-12);
    end(c);
}

static void why_cpus_are_not_watched_is_told(void **state)
{
    (void)state;
    static const struct {
        int rc, state;
    } cases[] = { { -EACCES, READING_DENIED },
                  { -EPERM, READING_DENIED },
                  { -EMFILE, READING_NO_FD },
                  { -ENOENT, READING_UNSUPPORTED },
                  { -EOPNOTSUPP, READING_UNSUPPORTED } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct code *c = begin(1000);
        kernel.refuse = cases[i].rc;
        for (int k = 0; k < 3; k++)
            assert_int_equal(state_after_read(c, both, 2), cases[i].state);
        assert_int_equal(kernel.n_watched, 0); /* one CPU of two would be half of the truth */
        kernel.refuse = 0;
        fake_sysfs_write(root, ONLINE, "0\n");
        (void)state_after_read(c, both, 2);
        assert_int_equal(state_after_read(c, both, 2), READING_OK);
        fake_sysfs_write(root, ONLINE, "0-1\n");
        end(c);
    }
    kernel.refuse = -ENODEV; /* a CPU that is going */
    struct code *c = begin(1000);
    (void)state_after_read(c, both, 2);
    assert_int_equal(state_after_read(c, both, 2), READING_OK);
    end(c);
}

static void descriptors_are_counted(void **state)
{
    (void)state;
    struct code *c = begin(1000);
    fds_left = 1;
    assert_int_equal(state_after_read(c, both, 2), READING_NO_FD);
    assert_int_equal(fds_left, 1);
    end(c);
    fds_left = 100;
    c = begin(1000);
    (void)state_after_read(c, both, 2);
    assert_int_equal(fds_left, 98);
    end(c);
}

static void a_kernel_without_looks_supports_none(void **state)
{
    (void)state;
    static const struct perf_ops none = { .watch = NULL };
    const struct codes_want want = { .ops = &none, .sysfs = root, .proc = root, .fds_left = &fds_left };
    all = codes_new(&want);
    struct code *c = code_new(all, 1000);
    assert_int_equal(state_after_read(c, both, 2), READING_UNSUPPORTED);
    assert_int_equal(state_after_read(c, both, 2), READING_UNSUPPORTED);
    end(c);
}

static void a_process_that_has_gone_says_nothing(void **state)
{
    (void)state;
    struct code *c = begin(1000);
    (void)state_after_read(c, both, 2);
    fake_sysfs_delete(root, "20");
    put_mapping(&kernel.ring[0], 20);
    put_sample(&kernel.ring[0], 20, 0x7f0000000000);
    assert_int_equal(state_after_read(c, both, 2), READING_OK);
    assert_float_equal(seconds_in_pages(), 1.0 / CODE_HZ, 1e-12); /* by the map that it had */
    end(c);
}

static void a_map_that_cannot_be_read_makes_no_figure(void **state)
{
    (void)state;
    struct code *c = begin(1000);
    fake_sysfs_delete(root, "20/maps");
    fake_sysfs_write(root, "20/maps/x", ""); /* a folder: EISDIR */
    (void)state_after_read(c, both, 2);
    assert_int_equal(state_after_read(c, both, 2), READING_NOT_COUNTED);
    end(c);
}

static void rare_reads_look_less_often(void **state)
{
    (void)state;
    struct code *c = begin(60000);
    (void)state_after_read(c, both, 2);
    assert_in_range(kernel.hz, 20, 40);
    for (unsigned i = 0; i < 60 * kernel.hz; i++)
        put_sample(&kernel.ring[0], 10, 0x7e0000000000);
    assert_int_equal(state_after_read(c, both, 2), READING_OK);
    assert_float_equal(got[CODE_GENERATED].value, 60, 1e-5); /* a look is a whole number of ns */
    end(c);
}

static void without_memory_nothing_is_counted_for_a_while(void **state)
{
    (void)state;
    for (unsigned nth = 1, struck = 1; struck; nth++) {
        struct code *c = begin(1000);
        fault_arm(FAULT_ALLOC, nth);
        int first = state_after_read(c, both, 2);
        struck = fault_disarm();
        assert_int_not_equal(first, READING_OK);
        (void)state_after_read(c, both, 2);
        assert_int_equal(state_after_read(c, both, 2), READING_OK);
        put_sample(&kernel.ring[1], 10, 0x7e0000000000);
        assert_int_equal(state_after_read(c, both, 2), READING_OK);
        assert_float_equal(got[CODE_GENERATED].value, 1.0 / CODE_HZ, 1e-12);
        end(c);
    }
    const struct codes_want want = { .ops = &ops, .sysfs = root, .proc = root, .fds_left = &fds_left };
    fault_arm(FAULT_ALLOC, 1);
    assert_null(codes_new(&want));
    assert_true(fault_disarm());
    all = codes_new(&want);
    fault_arm(FAULT_ALLOC, 1);
    assert_null(code_new(all, 1000));
    assert_true(fault_disarm());
    codes_free(all);
}

/* --- the real one ------------------------------------------------------------------------------------------------- */

static double cpu_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A child of ours could not be told apart from the test that it copies; this very process can. */
static void real_work_is_seen_where_it_is_done(void **state)
{
    (void)state;
    int left = 4096;
    const struct codes_want want = { .ops = &perf_ops_kernel, .sysfs = "/sys", .proc = "/proc", .fds_left = &left };
    struct procs_id self = { .pid = getpid() };
    assert_int_equal(proc_start_ticks(self.pid, &self.start_ticks), 0);
    all = codes_new(&want);
    struct code *c = code_new(all, 1000);
    int first = state_after_read(c, &self, 1);
    if (first == READING_DENIED || first == READING_UNSUPPORTED) {
        end(c);
        skip();
    }
    double worked = 0, seen = 0;
    volatile double x = 1;
    for (int tries = 0; worked < 0.5 && tries < 50; tries++) {
        double from = cpu_seconds(), spent;
        while ((spent = cpu_seconds() - from) < 0.05)
            for (int i = 0; i < 1000; i++)
                x = x * 1.000001 + 1e-9;
        if (state_after_read(c, &self, 1) != READING_OK)
            continue; /* lost: what every process here maps is in the rings, too */
        worked += spent;
        seen += seconds_in_pages();
    }
    assert_true(worked >= 0.5);
    print_message("%.3f s of work, %.3f s seen in pages of files\n", worked, seen);
    assert_true(seen > 0.5 * worked && seen < 1.3 * worked);
    end(c);
    assert_int_equal(left, 4096);
}

#define OVER_A_FAKE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_lies_in_a_library_or_in_generated_code),
        cmocka_unit_test(a_page_is_told_by_file_and_offset_alone),
        cmocka_unit_test(pages_and_files_fall_into_all_groups),
        cmocka_unit_test(lines_that_are_none_are_left_out),
        cmocka_unit_test(a_long_path_is_a_path),
        cmocka_unit_test(without_memory_a_map_stays),
        cmocka_unit_test(records_are_read_and_given_back),
        cmocka_unit_test(records_go_round),
        cmocka_unit_test(what_cannot_be_is_lost),
        OVER_A_FAKE(looks_are_seconds_of_the_processes),
        OVER_A_FAKE(a_process_counts_from_the_read_that_finds_it),
        OVER_A_FAKE(what_is_loaded_later_is_found),
        OVER_A_FAKE(lost_looks_make_no_figure),
        OVER_A_FAKE(nothing_is_watched_for_nobody),
        OVER_A_FAKE(two_look_together),
        OVER_A_FAKE(who_reads_rarely_slows_all_down),
        OVER_A_FAKE(cpus_come_and_go),
        OVER_A_FAKE(why_cpus_are_not_watched_is_told),
        OVER_A_FAKE(descriptors_are_counted),
        OVER_A_FAKE(a_kernel_without_looks_supports_none),
        OVER_A_FAKE(a_process_that_has_gone_says_nothing),
        OVER_A_FAKE(a_map_that_cannot_be_read_makes_no_figure),
        OVER_A_FAKE(rare_reads_look_less_often),
        OVER_A_FAKE(without_memory_nothing_is_counted_for_a_while),
        cmocka_unit_test(real_work_is_seen_where_it_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
