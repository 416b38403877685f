#include "bigdl/checkpoint.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits to the end of the text, at least 1; 0 when it is anything else. */
static int64_t whole_number(const char *text)
{
    int64_t n = 0;
    const char *p = text;
    for (; is_digit(*p); p++) {
        if (p - text >= 18)
            return 0;
        n = n * 10 + (*p - '0');
    }
    return *p == '\0' ? n : 0;
}

static enum app_part part_of(const char *file)
{
    if (strncmp(file, "model.", 6) == 0)
        return strchr(file + 6, '.') ? APP_PART_NEITHER : APP_PART_MODEL;
    if (strncmp(file, "optimMethod-", 12) == 0 || strncmp(file, "optimMethod.", 12) == 0 ||
        strncmp(file, "state.", 6) == 0)
        return APP_PART_STATE; /* the latter two are BigDL 0.x's */
    return APP_PART_NEITHER;
}

enum app_part checkpoint_classify(const char *file, int64_t *out_n)
{
    enum app_part part = part_of(file);
    if (part == APP_PART_NEITHER)
        return part;
    int64_t n = whole_number(strrchr(file, '.') ? strrchr(file, '.') + 1 : "");
    if (n == 0)
        return APP_PART_NEITHER;
    *out_n = n;
    return part;
}

bool checkpoint_is_folder(const char *name)
{
    static const char form[] = "dddddddd_dddddd";
    for (size_t i = 0; i < sizeof form; i++) /* with the final NUL */
        if (form[i] == 'd' ? !is_digit(name[i]) : name[i] != form[i])
            return false;
    return true;
}
