#include "app/cause.h"

#include <assert.h>
#include <string.h>

#include "base/own.h"

const char *cause_name(const struct cause *c)
{
    return c ? c->name : "none";
}

/* ---- how grave a line is ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    enum report_level level;
} levels[] = {
    { "INFO", LEVEL_INFO },    { "DEBUG", LEVEL_INFO },  { "TRACE", LEVEL_INFO },  { "WARN", LEVEL_WARN },
    { "WARNING", LEVEL_WARN }, { "ERROR", LEVEL_ERROR }, { "FATAL", LEVEL_ERROR }, { "CRITICAL", LEVEL_ERROR },
};

enum report_level cause_level_of(struct cur c, int words)
{
    for (; words > 0; words--) {
        while (c.p < c.end && !cur_is_alpha(*c.p) && *c.p != '\t')
            c.p++;
        const char *word = c.p;
        while (c.p < c.end && cur_is_alpha(*c.p))
            c.p++;
        for (size_t i = 0; i < ARRAY_LEN(levels); i++)
            if (strlen(levels[i].word) == (size_t)(c.p - word) &&
                memcmp(levels[i].word, word, strlen(levels[i].word)) == 0)
                return levels[i].level;
        while (c.p < c.end && *c.p != ' ')
            c.p++;
    }
    return LEVEL_NONE;
}

static bool begins_with(const struct cur *line, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(line->end - line->p) >= n && memcmp(line->p, text, n) == 0;
}

/* Nobody's record: what Java and Python print when they die of it. */
static bool is_last_words(const struct cur *line)
{
    return begins_with(line, "Exception in thread ") || begins_with(line, "Traceback (most recent call last)");
}

/* A line of a trace, or of what else stands below a record. */
static bool is_below(const struct cur *line)
{
    return *line->p == ' ' || *line->p == '\t' || begins_with(line, "Caused by: ") ||
           begins_with(line, "Suppressed: ") || begins_with(line, "...");
}

/* Needles by their first byte, so that most bytes cost one look. Built for each line: it costs less than one memmem, and
 * no table has to be kept in step with the rows. */
struct needles {
    uint8_t first[256]; /* 1 + index of the first needle with this byte, 0: none */
    uint8_t next[255];
    const char *text[255];
    uint8_t row[255]; /* a cause; behind the last, an anchor */
    uint8_t n;
};

static void add_needle(struct needles *ns, const char *text, size_t row)
{
    assert(ns->n < sizeof ns->row && row <= UINT8_MAX); /* tables are ours */
    uint8_t *head = &ns->first[(unsigned char)text[0]];
    ns->text[ns->n] = text;
    ns->row[ns->n] = (uint8_t)row;
    ns->next[ns->n] = *head;
    *head = ++ns->n;
}

static void needles_init(struct needles *ns, const struct cause_words *w)
{
    memset(ns->first, 0, sizeof ns->first);
    ns->n = 0;
    for (size_t i = 0; i < w->n; i++)
        for (size_t k = 0; k < CAUSE_NEEDLES_MAX && w->rows[i].needles[k]; k++)
            add_needle(ns, w->rows[i].needles[k], i);
    for (size_t i = 0; i < w->n_anchors; i++)
        add_needle(ns, w->anchors[i], w->n + i);
}

static bool starts_with(const struct cur *c, const char *text)
{
    const char *p = c->p;
    while (*text && p < c->end && *p == *text)
        p++, text++;
    return *text == '\0';
}

static void note_hit(struct cause_hits *h, const struct cause_words *w, const struct cur *line, const struct cur *at,
                     const char *needle, size_t row)
{
    if (row >= w->n) {
        if (!h->anchor) {
            h->anchor = needle;
            h->anchor_end = at->p + strlen(needle);
            h->anchor_row = row - w->n;
        }
        return;
    }
    const struct cause *cause = &w->rows[row];
    if (h->cause && h->cause <= cause)
        return;
    if (cause->unless && cur_find_bytes(line, cause->unless, strlen(cause->unless)))
        return;
    h->cause = cause;
    h->cause_at = at->p;
}

struct cause_hits cause_find(const struct cause_words *w, const struct cur *line)
{
    struct needles ns;
    needles_init(&ns, w);
    struct cause_hits h = { 0 };
    for (struct cur at = *line; at.p < at.end; at.p++)
        for (uint8_t i = ns.first[(unsigned char)*at.p]; i != 0; i = ns.next[i - 1])
            if (starts_with(&at, ns.text[i - 1]))
                note_hit(&h, w, line, &at, ns.text[i - 1], ns.row[i - 1]);
    return h;
}

/* "java.io.IOException: …", "ValueError: …" at the very beginning: the first line of a Java trace, the last of
 * a Python one. */
static bool is_bare_exception(const struct cur *line)
{
    const char *p = line->p;
    while (p < line->end && (cur_is_alpha(*p) || cur_is_digit(*p) || *p == '.' || *p == '_' || *p == '$'))
        p++;
    struct cur colon = { p, line->end };
    if (p == line->p || !CUR_EAT(&colon, ": "))
        return false;
    size_t n = (size_t)(p - line->p);
    return (n > 5 && memcmp(p - 5, "Error", 5) == 0) || (n > 9 && memcmp(p - 9, "Exception", 9) == 0);
}

/* Steps over " INFO  Logger$:408 - " or " ERROR Logger: ", and what Java puts before an exception. */
static void skip_preamble(struct cur *c, bool stamped)
{
    if (stamped) {
        cur_skip_spaces(c);
        while (c->p < c->end && *c->p >= 'A' && *c->p <= 'Z')
            c->p++;
        cur_skip_spaces(c);
        struct cur at = *c;
        while (at.p < at.end && *at.p != ' ')
            at.p++;
        if (at.p > c->p && (at.p[-1] == ':' || (at.end - at.p >= 3 && memcmp(at.p, " - ", 3) == 0)))
            c->p = at.p[-1] == ':' ? at.p : at.p + 3;
        cur_skip_spaces(c);
    }
    if (!CUR_EAT(c, "Caused by: ") && CUR_EAT(c, "Exception in thread \""))
        (void)CUR_SEEK(c, "\" "); /* the thread's name */
}

static void put_cause_text(struct app_report *ev, const struct cur *rest, const char *at)
{
    struct cur c = *rest;
    skip_preamble(&c, ev->stamp_ms >= 0);
    /* A long line ("Job aborted due to …") is cut so that the telling words stay. */
    if (at > c.p && at - c.p > REPORT_TEXT_MAX / 2)
        c.p = at;
    app_report_put_text(ev, c.p, c.end);
}

/* The level of a line without a stamp: its own word, else, where it stands below a warning or an error, that one's. */
static enum report_level level_unstamped(struct line_place *place, const struct cur *line, bool exception)
{
    struct cur all = *line;
    enum report_level own = is_below(line) ? LEVEL_NONE : cause_level_of(*line, 1);
    if (own != LEVEL_NONE || is_last_words(line))
        return place->level = own;
    if (CUR_SEEK(&all, "Warning: ")) /* "a.py:3: UserWarning: …" */
        return LEVEL_WARN;
    bool below = exception || is_below(line);
    return below && place->level != LEVEL_INFO ? place->level : LEVEL_NONE;
}

/* What was said that is neither a cause nor part of one. */
static void note_ordinary(struct line_place *place, const struct cur *line, const struct cur *rest,
                          enum report_level level)
{
    static const char *const between[] = { "During handling of the above", "The above exception was",
                                           "pipetune: " /* our launcher's own notes */ };
    if (is_below(line) || is_last_words(line) || level > LEVEL_INFO)
        return;
    for (size_t i = 0; i < ARRAY_LEN(between); i++)
        if (begins_with(line, between[i]))
            return;
    place->ordinary = true;
    if (rest->p == line->p && level == LEVEL_NONE)
        app_report_copy_text(place->said, sizeof place->said, line->p, line->end);
}

int cause_read(const struct cause_words *w, struct line_place *place, const struct cur *line, const struct cur *rest,
               const struct cause_hits *h, struct app_report *out)
{
    const struct cause *cause = h->cause;
    const char *at = h->cause_at;
    bool exception = is_bare_exception(line), stamped = rest->p != line->p;
    if (!cause && exception) {
        cause = w->exception;
        at = line->p;
    }
    enum report_level level = stamped ? place->level : level_unstamped(place, line, exception);
    if (!cause) {
        note_ordinary(place, line, rest, level);
        return 0;
    }
    out->kind = REPORT_CAUSE;
    out->cause = cause;
    out->level = level;
    out->anew = place->ordinary;
    place->ordinary &= level == LEVEL_INFO || level == LEVEL_WARN;
    put_cause_text(out, rest, at);
    return 1;
}
