#include "app/tell.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "base/wire.h"

/* --- numbers -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    double value;
} not_finite[] = {
    { "nan", NAN },
    { "-nan", NAN },
    { "n", NAN }, /* as NaN is turned into a text below */
    { "inf", INFINITY },
    { "infinity", INFINITY },
    { "+inf", INFINITY },
    { "-inf", -INFINITY },
    { "-infinity", -INFINITY },
};

bool tell_number(const char *text, size_t len, double *out)
{
    char copy[64];
    if (len == 0 || len >= sizeof copy)
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(not_finite); i++)
        if (strcasecmp(copy, not_finite[i].word) == 0) {
            *out = not_finite[i].value;
            return true;
        }
    if (strspn(copy, "0123456789+-.eE") != len) /* strtod() would take blanks and hexadecimal digits */
        return false;
    char *end;
    double x = strtod(copy, &end);
    if (end != copy + len)
        return false;
    *out = x;
    return true;
}

/* NaN and Infinity, which are no JSON, become texts of the same length: programs that write them mean well. */
static void quote_not_finite(char *line, size_t len)
{
    static const struct {
        const char *word, *text;
    } words[] = { { "NaN", "\"n\"" }, { "-Infinity", "\"-inf\"   " }, { "Infinity", "\"inf\"   " } };
    bool inside = false;
    for (size_t at = 0; at < len; at++) {
        if (inside && line[at] == '\\')
            at++;
        else if (line[at] == '"')
            inside = !inside;
        for (size_t i = 0; !inside && at < len && i < ARRAY_LEN(words); i++) {
            size_t n = strlen(words[i].word);
            if (n > len - at || memcmp(line + at, words[i].word, n) != 0)
                continue;
            memcpy(line + at, words[i].text, n);
            at += n - 1;
            break;
        }
    }
}

/* --- members -------------------------------------------------------------------------------------------------------- */

/* 0 where it is not there. */
static int read_count(const struct wire *w, const char *key, int64_t max, int64_t *out, struct err *e)
{
    const struct wire_member *m = wire_find(w, key);
    if (!m || m->kind == WIRE_NULL)
        return 0;
    if (m->kind != WIRE_NUMBER || m->number < 1 || m->number > (double)max || m->number != floor(m->number))
        return err_set(e, -EINVAL, "'%s' is no whole number from 1 to %lld", key, (long long)max);
    *out = (int64_t)m->number;
    return 0;
}

static int read_amount(const struct wire *w, const char *key, double *out, struct err *e)
{
    const struct wire_member *m = wire_find(w, key);
    if (!m || m->kind == WIRE_NULL)
        return 0;
    if (m->kind != WIRE_NUMBER || m->number < 0)
        return err_set(e, -EINVAL, "'%s' is no number from 0", key);
    *out = m->number;
    return 0;
}

static bool is_reserved(const char *key)
{
    static const char *const reserved[] = { "epoch", "step", "records", "seconds", "checkpoint", "hello" };
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
        if (strcmp(key, reserved[i]) == 0)
            return true;
    return false;
}

static int read_metric(const struct wire_member *m, struct app_report *out, struct err *e)
{
    double x = m->number;
    if (m->kind == WIRE_NULL)
        return 0;
    if (m->kind != WIRE_NUMBER && (m->kind != WIRE_STRING || !tell_number(m->text, strlen(m->text), &x)))
        return err_set(e, -EINVAL, "'%.64s' is no number, and a metric is one", m->key);
    if (*m->key == '\0' || strlen(m->key) >= REPORT_NAME_MAX)
        return err_set(e, -EINVAL, "'%.64s' is no name of 1 to %d bytes", m->key, REPORT_NAME_MAX - 1);
    if (!app_report_add_value(out, m->key, strlen(m->key), x))
        return err_set(e, -EINVAL, "more than %d metrics in one line", REPORT_VALUES_MAX);
    return 0;
}

static int read_metrics(const struct wire *w, struct app_report *out, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < w->n; i++)
        if (!is_reserved(w->members[i].key))
            rc = read_metric(&w->members[i], out, e);
    return rc;
}

/* --- lines ---------------------------------------------------------------------------------------------------------- */

static int read_checkpoint(const struct wire_member *m, struct app_report *out, struct err *e)
{
    if (m->kind != WIRE_STRING || *m->text == '\0' || strlen(m->text) >= REPORT_TEXT_MAX)
        return err_set(e, -EINVAL, "'checkpoint' is no path of 1 to %d bytes", REPORT_TEXT_MAX - 1);
    out->kind = REPORT_CHECKPOINT;
    app_report_put_text(out, m->text, m->text + strlen(m->text));
    if (strcmp(out->text, m->text) != 0)
        return err_set(e, -EINVAL, "'checkpoint' is no plain path: a control character, or a blank at its end");
    return 1;
}

static int read_figures(const struct wire *w, struct app_report *out, struct err *e)
{
    int rc = read_metrics(w, out, e);
    out->whole = out->kind == REPORT_EPOCH;
    for (size_t i = 0; i < out->n_values; i++) {
        if (strcmp(out->values[i].name, "loss") == 0)
            out->loss = out->values[i].value;
        if (strcmp(out->values[i].name, "learning_rate") == 0)
            out->learning_rate = out->values[i].value;
    }
    if (rc == 0)
        rc = read_amount(w, "records", &out->records, e);
    if (rc == 0)
        rc = read_amount(w, "seconds", &out->seconds, e);
    if (rc == 0 && out->epoch == 0 && out->step == 0 && out->n_values == 0)
        rc = err_set(e, -EINVAL, "it tells nothing: no epoch, no step, no metric, no checkpoint");
    return rc < 0 ? rc : 1;
}

int tell_read(char *line, size_t len, struct app_report *out, struct err *e)
{
    struct wire w;
    if (len > TELL_LINE_MAX)
        return err_set(e, -EINVAL, "a line of more than %d bytes", TELL_LINE_MAX);
    quote_not_finite(line, len);
    int rc = wire_parse(&w, line, len, e);
    if (rc < 0)
        return rc;
    app_report_begin(out, REPORT_EPOCH);
    int64_t epoch = 0;
    rc = read_count(&w, "epoch", INT_MAX, &epoch, e);
    if (rc == 0)
        rc = read_count(&w, "step", (int64_t)1 << 52, &out->step, e);
    if (rc < 0)
        return rc;
    out->epoch = (int)epoch;
    if (wire_find(&w, "hello"))
        return 0;
    const struct wire_member *checkpoint = wire_find(&w, "checkpoint");
    if (checkpoint && checkpoint->kind != WIRE_NULL)
        return read_checkpoint(checkpoint, out, e);
    if (out->step > 0)
        out->kind = REPORT_STEP;
    return read_figures(&w, out, e);
}

void tell_put_stop(struct buf *b)
{
    buf_puts(b, "{\"stop\":true}\n");
}

void tell_put_error(struct buf *b, const char *text)
{
    buf_puts(b, "{\"error\":");
    wire_put_text(b, text);
    buf_puts(b, "}\n");
}
