#include "monitoring/perf_stat.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "monitoring/event_names.h"

enum { FIELDS_MAX = 24, NAME_MAX_BYTES = 256, NUMBER_MAX_BYTES = 64 };

struct row {
    int64_t t_ns;
    char event[NAME_MAX_BYTES], unit[NAME_MAX_BYTES];
    enum perf_stat_state state;
    double value, ratio;
    bool has_ratio, part; /* part: one CPU, socket, … of several */
    size_t fields;        /* -x: how many; plain: 0 */
    bool whole;           /* all that is read of it is followed by more, or by nothing that could be cut */
};

struct seen {    /* what is known of an event while reading */
    size_t cell; /* its newest */
    bool has_ratio;
};

struct parser {
    struct perf_stat p;
    struct seen *seen; /* by event */
    size_t seen_cap;
    size_t fields;  /* of the first -x row */
    size_t hint;    /* the event that came after the newest one before */
    bool any_ratio; /* some event had one: a plain row without one may have lost it */
    bool summary;   /* in what --summary adds at the end: totals without a time, that would read as rows */
    struct csv_faults *faults;
};

struct span {
    const char *at;
    size_t len;
};

/* --- pieces of text --- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct span trimmed(const char *from, const char *end)
{
    while (from < end && is_blank(*from))
        from++;
    while (end > from && is_blank(end[-1]))
        end--;
    return (struct span){ from, (size_t)(end - from) };
}

static bool span_is(struct span s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static bool span_copy(char *out, size_t size, struct span s)
{
    if (s.len >= size)
        return false;
    memcpy(out, s.at, s.len);
    out[s.len] = '\0';
    return true;
}

/* "12.345678901" -> ns; returns what follows it, NULL: none. perf prints the point in every locale. */
static const char *read_time(const char *p, const char *end, int64_t *out)
{
    int64_t s = 0, ns = 0;
    int digits = 0;
    const char *first = p;
    for (; p < end && isdigit((unsigned char)*p) && p - first < 9; p++)
        s = s * 10 + (*p - '0');
    if (p == first || p == end || *p != '.')
        return NULL;
    for (p++; p < end && isdigit((unsigned char)*p) && digits < 9; p++, digits++)
        ns = ns * 10 + (*p - '0');
    if (digits == 0)
        return NULL;
    for (; digits < 9; digits++)
        ns *= 10;
    *out = s * 1000000000 + ns;
    return p;
}

/* The bytes of a thousands separator: ' , . and the narrow spaces that some locales group with. */
static size_t separator_len(const char *p, const char *end)
{
    if (*p == ',' || *p == '.' || *p == '\'')
        return 1;
    if (end - p >= 3 && memcmp(p, "\xE2\x80\xAF", 3) == 0)
        return 3;
    return end - p >= 2 && memcmp(p, "\xC2\xA0", 2) == 0 ? 2 : 0;
}

/* A point or comma before exactly three digits groups them (perf prints none or two decimals), unless `ungrouped`. */
static bool read_count(struct span s, bool ungrouped, double *out)
{
    char text[NUMBER_MAX_BYTES], *rest;
    size_t n = 0;
    const char *end = s.at + s.len;
    for (const char *p = s.at; p < end;) {
        size_t sep = separator_len(p, end);
        size_t digits = 0;
        while (p + sep + digits < end && isdigit((unsigned char)p[sep + digits]))
            digits++;
        bool decimal = sep == 1 && *p != '\'' && p + sep + digits == end && (ungrouped || digits != 3);
        if (digits == 0 || n + digits + 2 > sizeof text || (sep == 0 && p != s.at) || (sep > 0 && p == s.at))
            return false;
        if (decimal)
            text[n++] = '.';
        memcpy(text + n, p + sep, digits);
        n += digits;
        p += sep + digits;
    }
    text[n] = '\0';
    double x = strtod(text, &rest);
    if (n == 0 || *rest != '\0' || !isfinite(x))
        return false;
    *out = x;
    return true;
}

/* A count, or one of perf's two words for none. */
static bool read_value(struct span s, bool ungrouped, struct row *row)
{
    row->value = NAN;
    row->state = PERF_STAT_OK;
    row->ratio = 1;
    if (span_is(s, "<not counted>")) {
        row->state = PERF_STAT_NOT_COUNTED;
        row->ratio = 0; /* whether or not the percentage is there */
    }
    if (span_is(s, "<not supported>"))
        row->state = PERF_STAT_NOT_SUPPORTED;
    return row->state != PERF_STAT_OK || read_count(s, ungrouped, &row->value);
}

static bool looks_like_value(struct span s)
{
    struct row row;
    return read_value(s, true, &row);
}

static void apply_ratio(struct row *row, double percent)
{
    row->has_ratio = true;
    row->ratio = percent >= 100 ? 1 : percent / 100;
    if (row->state == PERF_STAT_OK && row->ratio < 1)
        row->state = PERF_STAT_MULTIPLEXED;
}

static bool set_name(struct row *row, struct span event, struct span unit)
{
    return event.len > 0 && span_copy(row->event, sizeof row->event, event) && csv_is_name(row->event) &&
           span_copy(row->unit, sizeof row->unit, unit) && csv_is_name(row->unit);
}

/* --- plain --- */

/* The next word of [*p, end); the two words that perf writes in angle brackets are one. */
static struct span next_word(const char **p, const char *end)
{
    while (*p < end && is_blank(**p))
        ++*p;
    const char *from = *p;
    char stop = from < end && *from == '<' ? '>' : ' ';
    while (*p < end && **p != stop && !(stop == ' ' && **p == '\t'))
        ++*p;
    if (*p < end && stop == '>')
        ++*p;
    return (struct span){ from, (size_t)(*p - from) };
}

/* "(57.14%)" at the end: taken off the text. "( +-  0.50% )" is a spread and stays. */
static const char *take_ratio(const char *from, const char *end, struct row *row)
{
    double percent;
    if (end - from < 4 || end[-1] != ')' || end[-2] != '%')
        return end;
    const char *open = end - 2;
    while (open > from && *open != '(')
        open--;
    if (*open != '(' || !read_count(trimmed(open + 1, end - 2), true, &percent))
        return end;
    apply_ratio(row, percent);
    return trimmed(from, open).at + trimmed(from, open).len;
}

static const char *comment_start(const char *from, const char *end)
{
    for (const char *p = from; p < end; p++)
        if (*p == '#' && (p == from || is_blank(p[-1])))
            return p;
    return end;
}

/* What names the CPU, socket, … of the row, if any, and how many CPUs it stands for: then `*p` is behind them. */
static bool skip_part(const char **p, const char *end)
{
    const char *ahead = *p;
    if (looks_like_value(next_word(&ahead, end)))
        return false;
    *p = ahead;
    struct span cpus = next_word(&ahead, end);
    struct span value = next_word(&ahead, end);
    if (looks_like_value(cpus) && looks_like_value(value))
        *p += (size_t)(cpus.at + cpus.len - *p);
    return true;
}

/* 1: a row, 0: a comment of perf's, -1: broken. From behind the time stamp. */
static int read_plain(const char *p, const char *end, struct row *row)
{
    struct row value;
    const char *comment = comment_start(p, end);
    if (trimmed(p, comment).len == 0)
        return 0;
    row->part = skip_part(&p, comment);
    if (!read_value(next_word(&p, comment), false, &value))
        return -1;
    row->value = value.value;
    row->state = value.state;
    row->ratio = value.ratio;
    const char *text_end = take_ratio(p, end, row);
    row->whole = row->has_ratio || !memchr(p, '(', (size_t)(end - p));
    if (comment < text_end)
        text_end = comment;
    struct span first = next_word(&p, text_end), second = next_word(&p, text_end);
    if (next_word(&p, text_end).len > 0)
        return -1;
    struct span none = { "", 0 };
    return set_name(row, second.len ? second : first, second.len ? first : none) ? 1 : -1;
}

/* --- separated --- */

static size_t split(const char *p, const char *end, char separator, struct span out[FIELDS_MAX])
{
    size_t n = 0;
    for (const char *from = p;; p++) {
        if (p < end && *p != separator)
            continue;
        if (n == FIELDS_MAX)
            return 0;
        out[n++] = trimmed(from, p);
        if (p == end)
            return n;
        from = p + 1;
    }
}

/* The event at field i, with its own separators: "cpu/event=0x3c,umask=0x0/". Returns the field behind it. */
static size_t join_event(const struct span *fields, size_t n, size_t i, struct span *out)
{
    size_t slashes = 0, last = i;
    for (size_t k = i; k < n; k++) {
        for (size_t c = 0; c < fields[k].len; c++)
            slashes += fields[k].at[c] == '/';
        if (slashes % 2 == 0) {
            last = slashes ? k : i;
            break;
        }
    }
    *out = (struct span){ fields[i].at, (size_t)(fields[last].at + fields[last].len - fields[i].at) };
    return last + 1;
}

/* A value, then a unit or nothing, then a name: the first such place, since up to two fields stand before it. */
static size_t find_value(const struct span *fields, size_t n)
{
    for (size_t v = 0; v + 2 < n && v < 3; v++)
        if (looks_like_value(fields[v]) && !looks_like_value(fields[v + 1]) && fields[v + 2].len > 0 &&
            !looks_like_value(fields[v + 2]))
            return v;
    return n;
}

static bool has_decimals(struct span s)
{
    return s.len >= 4 && (s.at[s.len - 3] == '.' || s.at[s.len - 3] == ',');
}

static int read_separated(const char *p, const char *end, char separator, struct row *row)
{
    struct span fields[FIELDS_MAX], event;
    struct row value;
    double percent;
    size_t n = split(p, end, separator, fields), v = find_value(fields, n);
    if (n >= 3 && v == n && fields[0].len == 0 && fields[2].len == 0)
        return 0; /* a further metric of the event before */
    if (v == n || !read_value(fields[v], true, &value))
        return -1;
    row->value = value.value;
    row->state = value.state;
    row->ratio = value.ratio;
    row->part = v > 0;
    row->fields = n;
    size_t next = join_event(fields, n, v + 2, &event);
    if (next + 1 < n && read_count(fields[next + 1], true, &percent)) {
        apply_ratio(row, percent);
        row->whole = next + 2 < n || has_decimals(fields[next + 1]);
    }
    return set_name(row, event, fields[v + 1]) ? 1 : -1;
}

/* --- cells --- */

/* The event's index, n: it is new. Rows come in the same order in each interval, hence the hint. */
static size_t find_event(struct parser *z, const char *name)
{
    const struct strv *events = &z->p.events;
    if (z->hint < events->n && strcmp(events->v[z->hint], name) == 0)
        return z->hint;
    for (size_t i = 0; i < events->n; i++)
        if (strcmp(events->v[i], name) == 0)
            return i;
    return events->n;
}

static int add_event(struct parser *z, const struct row *row)
{
    struct seen *seen = array_more(z->seen, z->p.events.n, &z->seen_cap, sizeof *seen);
    if (!seen)
        return -ENOMEM;
    z->seen = seen;
    z->seen[z->p.events.n] = (struct seen){ .cell = (size_t)-1 };
    strv_add(&z->p.events, row->event);
    strv_add(&z->p.units, row->unit);
    return z->p.events.failed || z->p.units.failed ? -ENOMEM : 0;
}

static int add_interval(struct perf_stat *p, int64_t t_ns)
{
    if (p->n_intervals && p->t_ns[p->n_intervals - 1] == t_ns)
        return 0;
    int64_t *list = array_more(p->t_ns, p->n_intervals, &p->intervals_cap, sizeof *list);
    if (!list)
        return -ENOMEM;
    p->t_ns = list;
    p->t_ns[p->n_intervals++] = t_ns;
    return 0;
}

/* One CPU's count more: what is missing of one is missing of the sum. */
static void merge(struct perf_stat_cell *c, const struct row *row)
{
    if (row->state > c->state)
        c->state = row->state;
    c->value += row->value; /* NAN stays */
    c->ratio = row->ratio < c->ratio ? row->ratio : c->ratio;
}

static int add_cell(struct parser *z, size_t event, const struct row *row)
{
    struct perf_stat *p = &z->p;
    struct seen *seen = &z->seen[event];
    seen->has_ratio |= row->has_ratio;
    z->any_ratio |= row->has_ratio;
    z->hint = event + 1;
    if (seen->cell < p->n_cells && p->cells[seen->cell].interval == p->n_intervals - 1) {
        if (row->part)
            merge(&p->cells[seen->cell], row);
        return 0; /* else an event that was asked for twice */
    }
    struct perf_stat_cell *cells = array_more(p->cells, p->n_cells, &p->cells_cap, sizeof *cells);
    if (!cells)
        return -ENOMEM;
    p->cells = cells;
    seen->cell = p->n_cells;
    p->cells[p->n_cells++] = (struct perf_stat_cell){ p->n_intervals - 1, event, row->state, row->value, row->ratio };
    return 0;
}

/* Can the last row, whose line has no end, have lost nothing? */
static bool is_whole(const struct parser *z, const struct row *row, size_t event)
{
    bool seen = event < z->p.events.n;
    if (!row->whole || (!seen && event_name_index(row->event) < 0))
        return false;
    if (row->fields)
        return row->fields == z->fields;
    return row->has_ratio || !(seen ? z->seen[event].has_ratio : z->any_ratio);
}

static int add_row(struct parser *z, const struct row *row, size_t line, bool ended)
{
    size_t event = find_event(z, row->event);
    if (!z->fields)
        z->fields = row->fields;
    if (!ended && !is_whole(z, row, event)) {
        z->p.cut = true;
        return 0;
    }
    if (event == PERF_STAT_EVENTS_MAX) {
        csv_fault_add(z->faults, line, "the row", "is of one event too many: at most 2048 can be read");
        return 0;
    }
    if (event == z->p.events.n && add_event(z, row) < 0)
        return -ENOMEM;
    if (add_interval(&z->p, row->t_ns) < 0)
        return -ENOMEM;
    return add_cell(z, event, row);
}

/* --- lines --- */

/* The title of --summary's table. "# started on …" begins the rows of another perf (--append). */
static bool is_in_summary(bool before, struct span s)
{
    static const char title[] = "Performance counter stats for ";
    if (s.len > 0 && *s.at == '#')
        return false;
    return before || (s.len >= sizeof title - 1 && memcmp(s.at, title, sizeof title - 1) == 0);
}

static int add_line(struct parser *z, struct span s, size_t line, bool ended)
{
    struct row row = { .ratio = 1, .value = NAN };
    z->summary = is_in_summary(z->summary, s);
    if (s.len == 0 || *s.at == '#')
        return 0;
    const char *end = s.at + s.len, *p = z->summary ? NULL : read_time(s.at, end, &row.t_ns);
    if (!p || memchr(s.at, '\0', s.len)) {
        z->p.other_lines += ended;
        z->p.cut |= !ended;
        return 0;
    }
    bool separated = p < end && *p != ' ';
    int rc = separated ? read_separated(p + 1, end, *p, &row) : read_plain(p, end, &row);
    if (rc > 0)
        return add_row(z, &row, line, ended);
    if (rc < 0 && !ended)
        z->p.cut = true;
    else if (rc < 0)
        csv_fault_add(z->faults, line, "the row", "is none of perf stat: TIME COUNT [UNIT] EVENT");
    return 0;
}

/* Blanks at the end belong to a field of -x '\t', but there nothing that is read stands last. */
static struct span strip(const char *from, const char *end)
{
    if (end > from && end[-1] == '\r')
        end--;
    return trimmed(from, end);
}

int perf_stat_parse(struct perf_stat *out, const char *text, size_t len, struct csv_faults *faults)
{
    struct parser z = { .faults = faults };
    const char *end = text + len;
    size_t line = 0;
    int rc = 0;
    for (const char *p = text, *stop; p < end && rc == 0; p = stop + (stop < end)) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        stop = newline ? newline : end;
        rc = add_line(&z, strip(p, stop), ++line, newline != NULL);
    }
    free(z.seen);
    if (rc == 0 && faults->failed)
        rc = -ENOMEM;
    if (rc < 0)
        perf_stat_done(&z.p);
    else
        *out = z.p;
    return rc;
}

void perf_stat_done(struct perf_stat *p)
{
    if (!p)
        return;
    strv_done(&p->events);
    strv_done(&p->units);
    free(p->t_ns);
    free(p->cells);
    *p = (struct perf_stat){ 0 };
}
