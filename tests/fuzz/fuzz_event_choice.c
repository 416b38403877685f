/* Names of events of any bytes: refused and nothing chosen, or a choice that is told in order and then read as the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/event_choice.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void tell_and_read(const struct event_choice *c)
{
    char text[EVENT_CHOICE_TEXT_SIZE];
    struct event_choice again = { 0 };
    if (!event_choice_only(c) || event_choice_text(c, text) != text || event_choice_read(&again, text) < 0 ||
        memcmp(&again, c, sizeof again) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct event_choice c = { 0 };
    char *text = fuzz_text(data, size);
    if (event_choice_read(&c, text) == 0)
        tell_and_read(&c);
    else if (event_choice_only(&c))
        abort();
    free(text);
    return 0;
}
