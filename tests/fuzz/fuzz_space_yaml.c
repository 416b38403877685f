/* Any bytes as a file of parameter sets, and the space that they make: no crash, every fault is told with a line, and what is
 * read is flat. */
#include <stdint.h>

#include "base/own.h"
#include "core/space.h"
#include "core/space_yaml.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_flat(const json_t *value)
{
    const json_t *list = json_is_object(value) ? json_object_get(value, "range") : value;
    check(json_is_array(list) || json_is_number(list) || json_is_string(list));
    for (size_t i = 0; i < json_array_size(list); i++)
        check(json_is_number(json_array_get(list, i)) || json_is_string(json_array_get(list, i)));
}

static void check_space(const struct json_doc *doc)
{
    struct space sp = { 0 };
    struct err e = { 0 };
    if (space_parse(&sp, doc, &e) < 0) {
        check(strstr(e.text, "'fuzz' line ") != NULL);
        return;
    }
    check(space_is_listed(&sp));
    uint64_t n = space_size(&sp);
    for (uint64_t i = 0; i < n && i < 100; i++) {
        struct point p = space_point_at(&sp, i);
        check(space_index(&sp, &p) == i);
    }
    space_done(&sp);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *text = fuzz_text(data, size);
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct err e = { 0 };
    if (space_yaml_parse(&doc, "fuzz", text, size, &e) < 0) {
        check(!doc.root && e.text[0] != '\0');
        return 0;
    }
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(doc.root, "hyperParameters"), name, value)
    {
        check_flat(value);
    }
    check_space(&doc);
    return 0;
}
