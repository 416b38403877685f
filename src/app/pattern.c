#include "app/pattern.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "app/tell.h"
#include "base/own.h"

enum {
    MATCH_LIMIT = 100000, /* steps of one match: about a millisecond */
    DEPTH_LIMIT = 1000,
    HEAP_LIMIT_KIB = 1024,
    FINDS_MAX = 64, /* of one pattern in one line */
};

/* --- what groups mean ----------------------------------------------------------------------------------------------- */

enum group_kind { GROUP_COUNT, GROUP_COUNT_FROM_0, GROUP_AMOUNT, GROUP_NAME, GROUP_OF, GROUP_VALUE, GROUP_METRIC };

static const struct group_row {
    const char *name;
    enum group_kind kind;
    size_t field; /* offset in struct pattern_found */
} group_rows[] = {
    { "epoch", GROUP_COUNT, offsetof(struct pattern_found, epoch) },
    { "epoch0", GROUP_COUNT_FROM_0, offsetof(struct pattern_found, epoch) },
    { "step", GROUP_COUNT, offsetof(struct pattern_found, step) },
    { "epochs", GROUP_COUNT, offsetof(struct pattern_found, epochs) },
    { "records", GROUP_AMOUNT, offsetof(struct pattern_found, records) },
    { "seconds", GROUP_AMOUNT, offsetof(struct pattern_found, seconds) },
    { "name", GROUP_NAME, 0 },
    { "of", GROUP_OF, 0 },
    { "value", GROUP_VALUE, 0 },
};

struct group {
    const struct group_row *row; /* NULL: a metric */
    const char *name;            /* the code's */
    uint32_t number;
};

struct pattern {
    pcre2_code *code; /* NULL: dropped */
    char *text;
    struct group *groups;
    uint32_t n_groups;
};

struct patterns {
    struct pattern *v;
    size_t n;
    pcre2_match_context *limits;
    pcre2_match_data *match;
    const char *dropped; /* not told yet */
};

/* --- compiling ------------------------------------------------------------------------------------------------------ */

void patterns_free(struct patterns *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++) {
        pcre2_code_free(p->v[i].code);
        free(p->v[i].text);
        free(p->v[i].groups);
    }
    free(p->v);
    pcre2_match_data_free(p->match);
    pcre2_match_context_free(p->limits);
    free(p);
}

static const struct group_row *group_row_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(group_rows); i++)
        if (strcmp(name, group_rows[i].name) == 0)
            return &group_rows[i];
    return NULL;
}

/* PCRE2's table: entries of a number in two bytes, and a name. */
static int read_groups(struct pattern *p, struct err *e)
{
    uint32_t size = 0;
    PCRE2_SPTR table = NULL;
    (void)pcre2_pattern_info(p->code, PCRE2_INFO_NAMECOUNT, &p->n_groups);
    (void)pcre2_pattern_info(p->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
    (void)pcre2_pattern_info(p->code, PCRE2_INFO_NAMETABLE, (void *)&table);
    if (p->n_groups == 0)
        return err_set(e, -EINVAL, "pattern '%s' has no named group, such as (?<loss>\\S+)", p->text);
    p->groups = calloc(p->n_groups, sizeof *p->groups);
    if (!p->groups)
        return err_sys(e, -ENOMEM, "pattern '%s'", p->text);
    for (uint32_t i = 0; i < p->n_groups; i++, table += size) {
        const char *name = (const char *)table + 2;
        p->groups[i] = (struct group){ group_row_of(name), name, (uint32_t)table[0] << 8 | table[1] };
    }
    return 0;
}

static int compile(struct pattern *p, const char *text, struct err *e)
{
    int why = 0;
    size_t at = 0;
    if (strlen(text) > PATTERN_TEXT_MAX)
        return err_set(e, -EINVAL, "pattern '%.60s…' is longer than %d bytes", text, PATTERN_TEXT_MAX);
    p->text = strdup(text);
    if (!p->text)
        return err_sys(e, -ENOMEM, "pattern '%s'", text);
    p->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, PCRE2_DUPNAMES, &why, &at, NULL);
    if (!p->code) {
        unsigned char message[256] = "";
        (void)pcre2_get_error_message(why, message, sizeof message);
        return err_set(e, why == PCRE2_ERROR_HEAP_FAILED ? -ENOMEM : -EINVAL, "pattern '%s' at %zu: %s", text, at,
                       (const char *)message);
    }
    (void)pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* where there is none, it is slower and right */
    return read_groups(p, e);
}

static int prepare_match(struct patterns *p, struct err *e)
{
    uint32_t most = 0;
    for (size_t i = 0; i < p->n; i++) {
        uint32_t groups = 0;
        (void)pcre2_pattern_info(p->v[i].code, PCRE2_INFO_CAPTURECOUNT, &groups);
        most = groups > most ? groups : most;
    }
    p->match = pcre2_match_data_create(most + 1, NULL);
    p->limits = pcre2_match_context_create(NULL);
    if (!p->match || !p->limits)
        return err_sys(e, -ENOMEM, "cannot prepare the patterns");
    (void)pcre2_set_match_limit(p->limits, MATCH_LIMIT);
    (void)pcre2_set_depth_limit(p->limits, DEPTH_LIMIT);
    (void)pcre2_set_heap_limit(p->limits, HEAP_LIMIT_KIB);
    return 0;
}

int patterns_new(struct patterns **out, const char *const *texts, size_t n, struct err *e)
{
    if (n > PATTERNS_MAX)
        return err_set(e, -EINVAL, "%zu patterns: at most %d are allowed", n, PATTERNS_MAX);
    struct patterns *p = calloc(1, sizeof *p);
    if (!p || !(p->v = calloc(n + 1, sizeof *p->v))) {
        free(p);
        return err_sys(e, -ENOMEM, "cannot prepare the patterns");
    }
    int rc = 0;
    while (rc == 0 && p->n < n) {
        rc = compile(&p->v[p->n], texts[p->n], e);
        p->n++;
    }
    if (rc == 0)
        rc = prepare_match(p, e);
    if (rc < 0)
        patterns_free(p);
    else
        *out = p;
    return rc;
}

/* --- matching ------------------------------------------------------------------------------------------------------- */

struct span {
    const char *at;
    size_t len; /* 0: not found */
};

static bool to_number(struct span s, double *out)
{
    while (s.len > 0 && strchr(",;:%)]}.", s.at[s.len - 1]))
        s.len--;
    return tell_number(s.at, s.len, out);
}

static bool has_value(const struct pattern_found *f, const char *name)
{
    for (size_t i = 0; i < f->n_values; i++)
        if (strcmp(f->values[i].name, name) == 0)
            return true;
    return false;
}

static void add_metric(struct pattern_found *f, const char *name, struct span text)
{
    struct report_value v;
    if (f->n_values == REPORT_VALUES_MAX || has_value(f, name) || !to_number(text, &v.value))
        return;
    app_report_copy_text(v.name, sizeof v.name, name, name + strlen(name));
    f->values[f->n_values++] = v;
}

static void add_named(struct pattern_found *f, struct span of, struct span name, struct span value)
{
    char text[REPORT_NAME_MAX] = "";
    size_t len = 0;
    if (name.len == 0 || of.len + 1 + name.len >= sizeof text)
        return;
    if (of.len > 0) {
        memcpy(text, of.at, of.len);
        text[of.len] = '-';
        len = of.len + 1;
    }
    memcpy(text + len, name.at, name.len);
    add_metric(f, text, value);
}

static void add_number(struct pattern_found *f, const struct group_row *row, struct span s)
{
    double x;
    void *field = (char *)f + row->field;
    if (!to_number(s, &x) || !(x >= 0) || x > 9e15)
        return;
    if (row->kind == GROUP_AMOUNT && isnan(*(double *)field))
        *(double *)field = x;
    if (row->kind != GROUP_AMOUNT && *(int64_t *)field < 0 && x == floor(x))
        *(int64_t *)field = (int64_t)x + (row->kind == GROUP_COUNT_FROM_0);
}

/* What one match of the pattern has found. */
static void take_groups(const struct pattern *p, const char *line, const size_t *spans, struct pattern_found *f)
{
    struct span name = { 0 }, of = { 0 }, value = { 0 };
    for (uint32_t i = 0; i < p->n_groups; i++) {
        const struct group *g = &p->groups[i];
        size_t from = spans[2 * g->number], to = spans[2 * g->number + 1];
        if (from == PCRE2_UNSET || to <= from)
            continue;
        struct span s = { line + from, to - from };
        switch (g->row ? g->row->kind : GROUP_METRIC) {
        case GROUP_COUNT:
        case GROUP_COUNT_FROM_0:
        case GROUP_AMOUNT: add_number(f, g->row, s); break;
        case GROUP_NAME: name = s; break;
        case GROUP_OF: of = s; break;
        case GROUP_VALUE: value = s; break;
        case GROUP_METRIC: add_metric(f, g->name, s); break;
        }
    }
    add_named(f, of, name, value);
}

/* True when it was found at all. */
static bool match_all(struct patterns *ps, struct pattern *p, const char *line, size_t len, struct pattern_found *f)
{
    const size_t *spans = pcre2_get_ovector_pointer(ps->match);
    size_t at = 0;
    int finds = 0;
    while (at <= len && finds < FINDS_MAX) {
        int rc = pcre2_match(p->code, (PCRE2_SPTR)line, len, at, 0, ps->match, ps->limits);
        if (rc < 0 && rc != PCRE2_ERROR_NOMATCH) { /* too slow, or too deep: as bad the next time */
            pcre2_code_free(MOVE_PTR(p->code));
            ps->dropped = p->text;
        }
        if (rc < 0)
            break;
        take_groups(p, line, spans, f);
        at = spans[1] > at ? spans[1] : at + 1; /* \K and lookbehinds may end before they begin */
        finds++;
    }
    return finds > 0;
}

int patterns_match(struct patterns *p, const char *line, size_t len, struct pattern_found *out)
{
    *out = (struct pattern_found){ .epoch = -1, .step = -1, .epochs = -1, .records = NAN, .seconds = NAN };
    bool found = false;
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].code)
            found |= match_all(p, &p->v[i], line, len < PATTERN_LINE_MAX ? len : PATTERN_LINE_MAX, out);
    return found;
}

const char *patterns_dropped(struct patterns *p)
{
    const char *text = p->dropped;
    p->dropped = NULL;
    return text;
}
