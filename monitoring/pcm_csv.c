#include "monitoring/pcm_csv.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "monitoring/decimal.h"

static const char proc_name[] = "Proc Energy (Joules)", dram_name[] = "DRAM Energy (Joules)";

struct span {
    const char *at;
    size_t len;
};

static bool span_is(struct span s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static bool begins(struct span s, const char *text)
{
    return s.len >= strlen(text) && memcmp(s.at, text, strlen(text)) == 0;
}

static struct span trimmed(const char *from, const char *end)
{
    while (from < end && (*from == ' ' || *from == '\t'))
        from++;
    while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return (struct span){ from, (size_t)(end - from) };
}

/* --- cells of a line --- */

struct cells {
    const char *at, *end; /* at: NULL behind the last */
    char separator;
};

static bool next_cell(struct cells *c, struct span *out)
{
    if (!c->at)
        return false;
    const char *stop = memchr(c->at, c->separator, (size_t)(c->end - c->at));
    *out = trimmed(c->at, stop ? stop : c->end);
    c->at = stop ? stop + 1 : NULL;
    return true;
}

static struct cells cells_of(struct span line, char separator)
{
    return (struct cells){ line.at, line.at + line.len, separator };
}

/* --- the header --- */

/* The separator of a line of columns; 0: it is none. These are known by a date and a time, with nothing before or between. */
static char columns_separator(struct span line)
{
    static const char separators[] = { ';', ',' };
    for (size_t i = 0; i < sizeof separators; i++) {
        struct cells c = cells_of(line, separators[i]);
        struct span date, time;
        if (next_cell(&c, &date) && span_is(date, "Date") && next_cell(&c, &time) && span_is(time, "Time"))
            return separators[i];
    }
    return '\0';
}

static bool is_socket(struct span name)
{
    return begins(name, "SKT") || begins(name, "Socket");
}

/* Which form of the energy `name` this pair is; 0: none. */
static int form_of(struct span group, struct span column, const char *name)
{
    if (span_is(column, name))
        return span_is(group, "System") ? 1 : is_socket(group) ? 3 : 0;
    return span_is(group, name) && is_socket(column) ? 2 : 0;
}

/* Columns of one form while the header is read. */
struct found {
    struct span name[PCM_PARTS_MAX]; /* the socket, or "System" */
    uint32_t at[PCM_PARTS_MAX];
    size_t n;
};

/* A socket that has the same column once more adds nothing. */
static void found_add(struct found *f, struct span name, uint32_t column)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->name[i].len == name.len && memcmp(f->name[i].at, name.at, name.len) == 0)
            return;
    if (f->n == PCM_PARTS_MAX)
        return;
    f->name[f->n] = name;
    f->at[f->n++] = column;
}

struct heading {
    struct found proc[3], dram[3]; /* by form, from 1 */
};

static void head_column(struct heading *h, struct span group, struct span column, uint32_t i)
{
    int proc = form_of(group, column, proc_name), dram = form_of(group, column, dram_name);
    if (proc)
        found_add(&h->proc[proc - 1], proc == 2 ? column : group, i);
    if (dram)
        found_add(&h->dram[dram - 1], dram == 2 ? column : group, i);
}

static struct pcm_part first_form(const struct found forms[3])
{
    struct pcm_part p = { 0 };
    for (int form = 1; form <= 3 && p.n == 0; form++) {
        p.n = forms[form - 1].n;
        p.form = p.n ? form : 0;
        memcpy(p.at, forms[form - 1].at, sizeof p.at);
    }
    return p;
}

static size_t sockets_of(const struct heading *h)
{
    size_t n = h->proc[1].n > h->proc[2].n ? h->proc[1].n : h->proc[2].n;
    return n ? n : 1;
}

static void read_header(struct pcm_layout *out, struct span groups, struct span columns, char separator)
{
    struct heading h = { 0 };
    struct cells above = cells_of(groups, separator), below = cells_of(columns, separator);
    struct span group = { "", 0 }, column;
    struct pcm_layout l = { .separator = separator, .date = 0, .time = 1 };
    for (uint32_t i = 0; next_cell(&below, &column); i++) {
        struct span g;
        if (next_cell(&above, &g) && g.len > 0)
            group = g;
        if (column.len > 0)
            l.columns = i + 1; /* a separator at the end makes no column */
        head_column(&h, group, column, i);
    }
    l.proc = first_form(h.proc);
    l.dram = first_form(h.dram);
    l.sockets = sockets_of(&h);
    *out = l;
}

/* --- date and time --- */

/* Digits, at most so many; moves on behind them. */
static bool take_number(const char **p, const char *end, size_t most, int *out)
{
    int x = 0;
    size_t n = 0;
    for (; *p < end && **p >= '0' && **p <= '9' && n < most; n++, ++*p)
        x = 10 * x + (**p - '0');
    *out = x;
    return n > 0;
}

static bool take_char(const char **p, const char *end, char c)
{
    if (*p == end || **p != c)
        return false;
    ++*p;
    return true;
}

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_in(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* "2026-11-18", "2026-1-8": days since 1970. */
static bool read_date(struct span s, int64_t *out)
{
    const char *p = s.at, *end = s.at + s.len;
    int year, month, day;
    bool shaped = take_number(&p, end, 4, &year) && take_char(&p, end, '-') && take_number(&p, end, 2, &month) &&
                  take_char(&p, end, '-') && take_number(&p, end, 2, &day) && p == end;
    if (!shaped || year < 1970 || month < 1 || month > 12 || day < 1 || day > days_in(year, month))
        return false;
    int64_t days = day - 1;
    for (int m = 1; m < month; m++)
        days += days_in(year, m);
    int64_t y = year - 1; /* whole years before this one, and their leap days */
    *out = days + 365 * (y - 1969) + (y / 4 - y / 100 + y / 400) - (1969 / 4 - 1969 / 100 + 1969 / 400);
    return true;
}

/* The decimals of a second: milliseconds, and whether there were any. */
static bool read_fraction(const char *p, const char *end, int *out_ms, int *out_step)
{
    *out_ms = 0;
    *out_step = 1000;
    if (p == end)
        return true;
    if (*p != '.' && *p != ',')
        return false;
    int scale = 100;
    for (p++; p < end && *p >= '0' && *p <= '9'; p++, scale /= 10)
        *out_ms += (*p - '0') * scale;
    *out_step = 1;
    return p == end;
}

/* "10:29:51", "9:5:1.189": milliseconds of the day. A leap second is the first of the next minute. */
static bool read_time(struct span s, int64_t *out, int *out_step)
{
    const char *p = s.at, *end = s.at + s.len;
    int hour, minute, second, ms;
    bool shaped = take_number(&p, end, 2, &hour) && take_char(&p, end, ':') && take_number(&p, end, 2, &minute) &&
                  take_char(&p, end, ':') && take_number(&p, end, 2, &second) && read_fraction(p, end, &ms, out_step);
    if (!shaped || hour > 23 || minute > 59 || second > 60)
        return false;
    *out = ((hour * 60 + minute) * 60 + second) * 1000 + ms;
    return true;
}

/* --- a row --- */

/* A row while its cells are read: the sums so far. */
struct reading {
    const struct pcm_layout *layout;
    size_t proc, dram; /* how many of the columns were met */
    double proc_j, dram_j, error_j;
};

static double joules(const struct pcm_layout *l, struct span cell, double *error)
{
    double x, step;
    if (!decimal_read(cell.at, cell.len, l->separator == ';' ? ",." : ".", &x, &step) || x < 0)
        return NAN;
    *error += step / 2;
    return x;
}

static void read_cell(struct reading *r, struct span cell, uint32_t i)
{
    const struct pcm_layout *l = r->layout;
    if (r->proc < l->proc.n && l->proc.at[r->proc] == i) {
        r->proc++;
        r->proc_j += joules(l, cell, &r->error_j);
    }
    if (r->dram < l->dram.n && l->dram.at[r->dram] == i) {
        r->dram++;
        r->dram_j += joules(l, cell, &r->error_j);
    }
}

/* False: it is no row of this layout. One with fewer or more cells was cut, or grown together with another: none of its numbers can be
 * trusted to be whole, or to stand where they belong. */
static bool read_row(const struct pcm_layout *l, struct span line, struct pcm_row *out)
{
    struct reading r = { .layout = l };
    struct cells c = cells_of(line, l->separator);
    struct span cell;
    int64_t days = 0, day_ms = 0;
    uint32_t i = 0;
    for (; next_cell(&c, &cell); i++) {
        if (i == l->date && !read_date(cell, &days))
            return false;
        if (i == l->time && !read_time(cell, &day_ms, &out->step_ms))
            return false;
        if (i >= l->columns && cell.len > 0)
            return false;
        read_cell(&r, cell, i);
    }
    if (i < l->columns)
        return false;
    out->local_ms = days * 86400000 + day_ms;
    out->proc_j = l->proc.n ? r.proc_j : NAN;
    out->dram_j = r.dram_j;
    out->error_j = r.error_j;
    return true;
}

/* --- lines --- */

static void pass_over(struct pcm_csv *c)
{
    c->passed_over++;
    c->fresh = true;
}

static int keep(struct buf *to, struct span line)
{
    buf_clear(to);
    buf_put(to, line.at, line.len);
    return to->failed ? -ENOMEM : 0;
}

/* Columns. Without their groups they are of use only when they are the same as before: a row that was cut and never ended, and so begins with
 * a date, may have swallowed the line of groups. */
static int on_columns(struct pcm_csv *c, struct span line, char separator)
{
    c->fresh = true;
    struct span groups = { buf_text(&c->before), c->before.len };
    bool whole = c->waiting && !(groups.at[0] >= '0' && groups.at[0] <= '9');
    c->passed_over += c->waiting && !whole;
    if (whole) {
        read_header(&c->layout, groups, line, separator);
        c->waiting = false;
        return keep(&c->columns, line);
    }
    c->waiting = false;
    if (c->layout.separator && span_is(line, buf_text(&c->columns)))
        return 0;
    c->layout.separator = '\0';
    c->passed_over++;
    return 0;
}

/* One line. 1: it was a row; 0; -ENOMEM. */
static int on_line(struct pcm_csv *c, struct span line, struct pcm_row *out)
{
    if (line.len == 0)
        return 0;
    if (memchr(line.at, '\0', line.len)) {
        pass_over(c);
        return 0;
    }
    char separator = columns_separator(line);
    if (separator)
        return on_columns(c, line, separator);
    if (c->waiting)
        pass_over(c); /* those were no groups */
    c->waiting = false;
    struct pcm_row row = { 0 };
    if (c->layout.separator && read_row(&c->layout, line, &row)) {
        row.fresh = c->fresh;
        c->fresh = false;
        *out = row;
        return 1;
    }
    c->fresh = true;
    int rc = keep(&c->before, line);
    c->waiting = rc == 0;
    return rc;
}

/* The next whole line of what there is; NULL at: none. */
static struct span take_line(struct pcm_csv *c)
{
    const char *from = buf_text(&c->text) + c->used;
    size_t left = c->text.len - c->used;
    const char *newline = left ? memchr(from, '\n', left) : NULL;
    if (!newline)
        return (struct span){ NULL, 0 };
    size_t len = (size_t)(newline - from);
    c->used += len + 1;
    return (struct span){ from, len && from[len - 1] == '\r' ? len - 1 : len };
}

/* What is used up goes; so does a line that has become too long. */
static void tidy(struct pcm_csv *c)
{
    buf_shift(&c->text, c->used);
    c->used = 0;
    if (c->text.len <= PCM_LINE_MAX && !c->skipping)
        return;
    if (!c->skipping)
        pass_over(c);
    c->skipping = true;
    buf_clear(&c->text);
}

int pcm_csv_next(struct pcm_csv *c, struct pcm_row *out)
{
    for (;;) {
        struct span line = take_line(c);
        if (!line.at) {
            tidy(c);
            return 0;
        }
        if (c->skipping) {
            c->skipping = false;
            continue;
        }
        if (line.len > PCM_LINE_MAX) {
            pass_over(c);
            continue;
        }
        int rc = on_line(c, line, out);
        if (rc != 0)
            return rc;
    }
}

int pcm_csv_put(struct pcm_csv *c, const char *bytes, size_t len)
{
    buf_put(&c->text, bytes, len);
    if (!c->text.failed)
        return 0;
    c->text.failed = false; /* what was there is whole */
    return -ENOMEM;
}

void pcm_csv_restart(struct pcm_csv *c)
{
    buf_clear(&c->text);
    c->used = 0;
    c->skipping = false;
    c->waiting = false;
    c->fresh = true;
    c->layout.separator = '\0';
}

void pcm_csv_jump(struct pcm_csv *c)
{
    buf_clear(&c->text);
    c->used = 0;
    c->skipping = true;
    c->waiting = false;
    c->fresh = true;
}

void pcm_csv_done(struct pcm_csv *c)
{
    if (!c)
        return;
    buf_done(&c->text);
    buf_done(&c->before);
    buf_done(&c->columns);
    *c = (struct pcm_csv){ 0 };
}
