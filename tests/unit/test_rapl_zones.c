#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "monitoring/rapl_zones.h"

static const struct {
    const char *folder;
    int rc;
    bool mmio;
    int zone, child;
} folders[] = {
    { "intel-rapl:0", 0, false, 0, -1 },
    { "intel-rapl:15", 0, false, 15, -1 },
    { "intel-rapl:3:12", 0, false, 3, 12 },
    { "intel-rapl-mmio:0", 0, true, 0, -1 },
    { "intel-rapl-mmio:0:1", 0, true, 0, 1 },
    { "intel-rapl", -EINVAL, false, 0, 0 },
    { "intel-rapl-mmio", -EINVAL, false, 0, 0 },
    { "intel-rapl:", -EINVAL, false, 0, 0 },
    { "intel-rapl:x", -EINVAL, false, 0, 0 },
    { "intel-rapl:-1", -EINVAL, false, 0, 0 },
    { "intel-rapl:0:", -EINVAL, false, 0, 0 },
    { "intel-rapl:0:1:2", -EINVAL, false, 0, 0 },
    { "intel-rapl:0 ", -EINVAL, false, 0, 0 },
    { "intel-rapl:99999999999", -EINVAL, false, 0, 0 },
    { "intel-rapl-tpmi:0", -EINVAL, false, 0, 0 },
    { "dtpm:0", -EINVAL, false, 0, 0 },
    { "", -EINVAL, false, 0, 0 },
    { "..", -EINVAL, false, 0, 0 },
};

static void test_folders(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        struct rapl_zone z = { .zone = 77 };
        char again[RAPL_FOLDER_SIZE];
        int rc = rapl_zone_parse(&z, folders[i].folder);
        if (rc != folders[i].rc)
            fail_msg("'%s': got %d, want %d", folders[i].folder, rc, folders[i].rc);
        if (rc < 0) {
            assert_int_equal(z.zone, 77);
            continue;
        }
        if (z.mmio != folders[i].mmio || z.zone != folders[i].zone || z.child != folders[i].child)
            fail_msg("'%s': got %d %d %d", folders[i].folder, z.mmio, z.zone, z.child);
        rapl_zone_folder(&z, again);
        assert_string_equal(again, folders[i].folder);
    }
}

static const struct {
    const char *text;
    enum rapl_kind kind;
    int package, die;
} names[] = {
    { "package-0\n", RAPL_PACKAGE, 0, -1 },
    { "package-12", RAPL_PACKAGE, 12, -1 },
    { "package-0-die-1\n", RAPL_PACKAGE, 0, 1 },
    { "package-10-die-11\n", RAPL_PACKAGE, 10, 11 },
    { "dram\n", RAPL_DRAM, -1, -1 },
    { "psys\n", RAPL_PSYS, -1, -1 },
    { "core\n", RAPL_PART, -1, -1 },
    { "uncore\n", RAPL_PART, -1, -1 },
    { "unknown\n", RAPL_OTHER, -1, -1 },
    { "package-\n", RAPL_OTHER, -1, -1 },
    { "package-0-die-\n", RAPL_OTHER, -1, -1 },
    { "package-0-core-1\n", RAPL_OTHER, -1, -1 },
    { "package-x\n", RAPL_OTHER, -1, -1 },
    { "dram2\n", RAPL_OTHER, -1, -1 },
    { "", RAPL_OTHER, -1, -1 },
    { "\n", RAPL_OTHER, -1, -1 },
    { "psys\n\n", RAPL_OTHER, -1, -1 },
};

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct rapl_zone z = { .package = -1, .die = -1 };
        rapl_zone_name(&z, names[i].text);
        if (z.kind != names[i].kind || z.package != names[i].package || z.die != names[i].die)
            fail_msg("'%s': got %d %d %d", names[i].text, (int)z.kind, z.package, z.die);
    }
}

static void test_counts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int rc;
        uint64_t want;
    } rows[] = {
        { "0\n", 0, 0 },
        { "262143328850\n", 0, 262143328850ULL },
        { "18446744073709551615", 0, UINT64_MAX },
        { "18446744073709551616", -ERANGE, 7 },
        { "", -EINVAL, 7 },
        { "\n", -EINVAL, 7 },
        { "-1\n", -EINVAL, 7 },
        { " 1\n", -EINVAL, 7 },
        { "1.5\n", -EINVAL, 7 },
        { "1\n\n", -EINVAL, 7 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t got = 7;
        int rc = rapl_count_parse(&got, rows[i].text);
        if (rc != rows[i].rc || got != rows[i].want)
            fail_msg("'%s': got %d, %llu", rows[i].text, rc, (unsigned long long)got);
    }
}

/* "FOLDER NAME" as the machine shows them, in any order; those that are chosen, in the order of their folders. */
static const struct {
    const char *name;
    const char *zones[10][2];
    const char *want; /* NULL: -ENODEV */
    struct rapl_choice choice;
} choices[] = {
    { "packages and their memory",
      { { "intel-rapl:1", "package-1" },
        { "intel-rapl:0:1", "dram" },
        { "intel-rapl:10:0", "dram" },
        { "intel-rapl:0", "package-0" },
        { "intel-rapl:0:0", "core" },
        { "intel-rapl:10", "package-2" } },
      "intel-rapl:0 intel-rapl:0:1 intel-rapl:1 intel-rapl:10 intel-rapl:10:0",
      { .packages = 3, .dram = 2 } },
    { "psys is left out beside packages, and so is what it has in it",
      { { "intel-rapl:0", "psys" }, { "intel-rapl:0:0", "dram" }, { "intel-rapl:1", "package-0" } },
      "intel-rapl:1",
      { .packages = 1, .psys_left = 1 } },
    { "psys alone, once",
      { { "intel-rapl:0", "psys" }, { "intel-rapl:1", "psys" }, { "intel-rapl:2", "dram" } },
      "intel-rapl:0",
      { .psys_left = 1 } },
    { "mmio shows them again",
      { { "intel-rapl-mmio:0", "package-0" }, { "intel-rapl-mmio:0:0", "dram" }, { "intel-rapl:0", "package-0" } },
      "intel-rapl:0",
      { .packages = 1, .mmio_left = 1 } },
    { "mmio alone",
      { { "intel-rapl-mmio:0", "package-0" }, { "intel-rapl-mmio:0:0", "dram" }, { "intel-rapl:0", "psys" } },
      "intel-rapl-mmio:0 intel-rapl-mmio:0:0",
      { .packages = 1, .dram = 1, .psys_left = 1 } },
    { "memory of its own, where packages tell of none",
      { { "intel-rapl:0", "package-0" }, { "intel-rapl:1", "dram" } },
      "intel-rapl:0 intel-rapl:1",
      { .packages = 1, .dram = 1 } },
    { "memory of its own, where a package tells of it",
      { { "intel-rapl:0", "package-0" }, { "intel-rapl:1", "dram" }, { "intel-rapl:0:0", "dram" } },
      "intel-rapl:0 intel-rapl:0:0",
      { .packages = 1, .dram = 1 } },
    { "dies may be one counter",
      { { "intel-rapl:0", "package-0-die-0" }, { "intel-rapl:1", "package-0-die-1" } },
      "intel-rapl:0 intel-rapl:1",
      { .packages = 2, .dies = true } },
    { "unknown names are told",
      { { "intel-rapl:0", "package-0" }, { "intel-rapl:1", "gpu" } },
      "intel-rapl:0",
      { .packages = 1, .other = 1 } },
    { "parts of a package are nothing alone", { { "intel-rapl:0", "core" }, { "intel-rapl:1", "dram" } }, NULL, { 0 } },
    { "nothing", { { NULL } }, NULL, { 0 } },
};

static size_t make_zones(struct rapl_zone *v, size_t row)
{
    size_t n = 0;
    for (; n < 10 && choices[row].zones[n][0]; n++) {
        assert_int_equal(rapl_zone_parse(&v[n], choices[row].zones[n][0]), 0);
        rapl_zone_name(&v[n], choices[row].zones[n][1]);
    }
    return n;
}

static void test_choices(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
        struct rapl_zone v[10];
        struct rapl_choice got = { 0 };
        const struct rapl_choice *want = &choices[i].choice;
        AUTO_BUF struct buf text = BUF_INIT;
        size_t n = make_zones(v, i);
        int rc = rapl_zones_choose(v, n, &got);
        for (size_t k = 0; rc == 0 && k < n; k++) {
            char folder[RAPL_FOLDER_SIZE];
            rapl_zone_folder(&v[k], folder);
            if (v[k].chosen)
                buf_printf(&text, "%s%s", text.len ? " " : "", folder);
        }
        if (rc != (choices[i].want ? 0 : -ENODEV) ||
            strcmp(buf_text(&text), choices[i].want ? choices[i].want : "") != 0)
            fail_msg("%s: %d, '%s'", choices[i].name, rc, buf_text(&text));
        if (got.packages != want->packages || got.dram != want->dram || got.psys_left != want->psys_left ||
            got.mmio_left != want->mmio_left || got.other != want->other || got.dies != want->dies)
            fail_msg("%s: %d packages, %d dram, %d psys, %d mmio, %d other, %d", choices[i].name, got.packages,
                     got.dram, got.psys_left, got.mmio_left, got.other, got.dies);
    }
}

static void memory_has_its_parents_package_and_die(void **state)
{
    (void)state;
    struct rapl_zone v[2];
    struct rapl_choice c;
    assert_int_equal(rapl_zone_parse(&v[0], "intel-rapl:4:0"), 0);
    assert_int_equal(rapl_zone_parse(&v[1], "intel-rapl:4"), 0);
    rapl_zone_name(&v[0], "dram\n");
    rapl_zone_name(&v[1], "package-2-die-1\n");
    assert_int_equal(rapl_zones_choose(v, 2, &c), 0);
    assert_int_equal(v[1].kind, RAPL_DRAM);
    assert_int_equal(v[1].package, 2);
    assert_int_equal(v[1].die, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(memory_has_its_parents_package_and_die),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
