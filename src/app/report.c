#include "app/report.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"

void app_report_begin(struct app_report *r, enum report_kind kind)
{
    memset(r, 0, offsetof(struct app_report, values)); /* the kilobyte behind it is not worth clearing */
    r->kind = kind;
    r->stamp_ms = -1;
    r->wall_s = r->seconds = r->loss = r->learning_rate = NAN;
}

void app_report_copy_text(char *out, size_t size, const char *from, const char *to)
{
    const unsigned char *p = (const unsigned char *)from, *end = (const unsigned char *)to;
    while (end > p && end[-1] <= ' ')
        end--;
    size_t len = 0;
    while (p < end) {
        size_t n = utf8_len(p, end);
        if (len + (n ? n : 1) >= size)
            break;
        if (n == 0)
            out[len++] = '?';
        else if (n == 1)
            out[len++] = *p < ' ' || *p == 0x7f ? ' ' : (char)*p;
        for (size_t i = 0; n > 1 && i < n; i++)
            out[len++] = (char)p[i];
        p += n ? n : 1;
    }
    out[len] = '\0';
}

void app_report_put_text(struct app_report *r, const char *from, const char *to)
{
    app_report_copy_text(r->text, sizeof r->text, from, to);
}

bool app_report_add_value(struct app_report *r, const char *name, size_t len, double value)
{
    if (r->n_values == REPORT_VALUES_MAX)
        return false;
    struct report_value *v = &r->values[r->n_values++];
    app_report_copy_text(v->name, sizeof v->name, name, name + len);
    v->value = value;
    return true;
}
