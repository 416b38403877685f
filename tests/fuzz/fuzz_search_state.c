/* Bytes as the state of a search and a stop rule: none, or one that is saved as the same bytes again and can be asked and told. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "search/search.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static void use(struct search *s)
{
    struct proposal p;
    struct search_answer a;
    for (int i = 0; i < 8 && search_ask(s, true, &p) == 1; i++) {
        struct told t = { .id = p.id, .kind = i % 4 == 3 ? TOLD_FAILED : TOLD_EPOCH, .epoch = 1 + i % 5, .value = i };
        check(search_tell(s, &t, &a) == 0);
    }
}

static void restore_pair(const char *search, const char *stop, const struct space *sp, const uint8_t *data, size_t size)
{
    const struct search_cfg cfg = { .seed = 7, .epochs = 5, .min_epochs = 2, .can_pause = true };
    AUTO_BUF struct buf again = BUF_INIT;
    struct search s = { 0 };
    struct err e = { 0 };
    if (search_new(&s, search, stop, sp, &cfg, &e) < 0)
        return; /* not on this space */
    if (search_restore(&s, data, size) == 0) {
        search_save(&s, &again);
        check(again.len == size);
        use(&s);
    }
    search_done(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char config[] =
        "{\"hyperParameters\": {\"x\": {\"min\": 1, \"max\": 500, \"scale\": \"log\"}, \"y\": [1, 2]}}";
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct space sp = { 0 };
    struct err e = { 0 };
    check(json_doc_parse(&doc, "fuzz", config, strlen(config), &e) == 0 && space_parse(&sp, &doc, &e) == 0);
    for (size_t i = 0; searches[i]; i++)
        for (size_t k = 0; stops[k]; k++)
            restore_pair(searches[i]->name, stops[k]->name, &sp, data, size);
    space_done(&sp);
    return 0;
}
