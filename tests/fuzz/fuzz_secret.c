/* Any bytes as a name of the user's, a text and a config: what is made of them has no more secrets, which is seen by nothing changing when
 * it is done again, and stays JSON. The first two lines are the name and the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "core/secret.h"
#include "text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void use_text(const struct secret_rules *r, const char *text)
{
    struct buf once = BUF_INIT, twice = BUF_INIT;
    secret_put(r, text, &once);
    secret_put(r, buf_text(&once), &twice);
    check(!once.failed && strcmp(buf_text(&once), buf_text(&twice)) == 0);
    buf_done(&once);
    buf_done(&twice);
}

static void use_config(const struct secret_rules *r, const char *text, size_t len)
{
    json_t *j = json_loadb(text, len, 0, NULL);
    if (!j)
        return;
    json_t *sums = json_object();
    json_t *once = secret_masked(r, j, "salt", sums);
    json_t *twice = once ? secret_masked(r, once, "salt", NULL) : NULL;
    check(once && twice && json_equal(once, twice));
    check(json_typeof(once) == json_typeof(j) && json_array_size(once) == json_array_size(j) &&
          json_object_size(once) == json_object_size(j));
    check(!json_equal(once, j) || json_object_size(sums) == 0 || memmem(text, len, "***", 3) || strstr(text, "\\u"));
    json_decref(twice);
    json_decref(once);
    json_decref(sums);
    json_decref(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *texts[2];
    if (size > 4096)
        return 0;
    for (size_t i = 0; i < 2; i++) {
        const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
        size_t n = end ? (size_t)(end - data) : size;
        texts[i] = fuzz_text(data, n);
        data += n + (end != NULL);
        size -= n + (end != NULL);
    }
    size_t stars = 0;
    for (const char *c = texts[0]; *c; c++)
        stars += *c == '*';
    char *words[] = { texts[0], NULL };
    const struct strv named = { .v = words, .n = 1 };
    const struct secret_rules rules = { .named = stars < 4 ? &named : NULL }; /* of a user's own making, they are few */
    if (utf8_is_valid(texts[1]))
        use_text(&rules, texts[1]);
    char *config = fuzz_text(data, size);
    use_config(&rules, config, size);
    for (size_t i = 0; i < 2; i++)
        free(texts[i]);
    free(config);
    return 0;
}
