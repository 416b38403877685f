/* Any bytes as a file of points, and the space that they make: no crash, and every point of it reads back. */
#include <stdint.h>

#include "base/own.h"
#include "core/point_list.h"
#include "core/space.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_space(json_t *list)
{
    AUTO_JSON json_t *root = json_pack("{s:{s:O}}", "hyperParameters", "points", list);
    struct json_doc doc = { .root = root, .text = (char *)"", .name = (char *)"fuzz" };
    struct space sp = { 0 };
    struct err e = { 0 };
    if (space_parse(&sp, &doc, &e) < 0) {
        check(e.text[0] != '\0');
        return;
    }
    check(space_size(&sp) == json_array_size(list));
    for (uint64_t i = 0; i < space_size(&sp) && i < 100; i++) {
        struct point p = space_point_at(&sp, i);
        check(space_index(&sp, &p) == i);
    }
    space_done(&sp);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *text = fuzz_text(data, size);
    struct err e = { 0 };
    int rc;
    AUTO_JSON json_t *list = point_list_parse("fuzz", text, size, &e, &rc);
    check(list ? rc == 0 && json_array_size(list) > 0 : rc < 0 && e.text[0] != '\0');
    if (list)
        check_space(list);
    return 0;
}
