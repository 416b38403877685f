#include "bigdl/log.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/own.h"
#include "base/utf8.h"
#include "bigdl/cur.h"
#include "bigdl/session.h"

/* ---- text of an event ----------------------------------------------------------------------------------------------- */

static void copy_text(char *text, const char *from, const char *to)
{
    const unsigned char *p = (const unsigned char *)from, *end = (const unsigned char *)to;
    while (end > p && end[-1] <= ' ')
        end--;
    size_t len = 0;
    while (p < end) {
        size_t n = utf8_len(p, end);
        if (len + (n ? n : 1) >= LOG_TEXT_MAX)
            break;
        if (n == 0)
            text[len++] = '?';
        else if (n == 1)
            text[len++] = *p < ' ' || *p == 0x7f ? ' ' : (char)*p;
        for (size_t i = 0; n > 1 && i < n; i++)
            text[len++] = (char)p[i];
        p += n ? n : 1;
    }
    text[len] = '\0';
}

static void put_text(struct log_event *ev, const char *from, const char *to)
{
    copy_text(ev->text, from, to);
}

static void put_word(struct log_event *ev, const struct cur *c)
{
    const char *p = c->p;
    while (p < c->end && (unsigned char)*p > ' ' && *p != ',')
        p++;
    put_text(ev, c->p, p);
}

/* ---- lines of an optimizer ------------------------------------------------------------------------------------------ */

/* "[Epoch 1 60032/60000][Iteration 469][Wall Clock 29.654904923s]", and its shorter forms. The cursor stands behind
 * "[Epoch ". */
static bool eat_head(struct cur *c, struct log_event *ev)
{
    int64_t epoch = 0;
    if (!cur_int(c, &epoch) || epoch > INT_MAX)
        return false;
    ev->epoch = (int)epoch;
    if (CUR_EAT(c, " ") && !(cur_int(c, &ev->records_done) && CUR_EAT(c, "/") && cur_int(c, &ev->records_all)))
        return false;
    if (!CUR_EAT(c, "]"))
        return false;
    if (CUR_EAT(c, "[Iteration ") && !(cur_int(c, &ev->iteration) && CUR_EAT(c, "]")))
        return false;
    if (CUR_EAT(c, "[Wall Clock ") && !(cur_number(c, &ev->wall_s) && CUR_EAT(c, "s]")))
        return false;
    cur_skip_spaces(c);
    return true;
}

static void eat_learning_rate(struct cur *c, struct log_event *ev)
{
    if (CUR_SEEK(c, "Current learning rate is ") && !cur_number(c, &ev->learning_rate))
        ev->learning_rate = NAN;
}

/* "Trained " 128.0 records in 0.041978443 seconds. Throughput is … records/second. Loss is 0.17889601. …; BigDL 0.1: "Train "
 * 128 in 0.041978443seconds. … */
static int parse_trained(struct cur *c, struct log_event *ev)
{
    if (!cur_number(c, &ev->records))
        return 0;
    (void)CUR_EAT(c, " records");
    if (!CUR_EAT(c, " in ") || !cur_number(c, &ev->seconds))
        return 0;
    if (CUR_SEEK(c, "Loss is "))
        (void)cur_number(c, &ev->loss); /* stays NAN */
    eat_learning_rate(c, ev);
    ev->kind = LOG_ITERATION;
    return 1;
}

/* LocalOptimizer: "loss is " 2.154, iteration time is 0.069s data fetch time is …, Throughput is 7399.9 record / second. */
static int parse_local(struct cur *c, struct log_event *ev)
{
    double per_second = NAN;
    if (!cur_number(c, &ev->loss) || !CUR_EAT(c, ", iteration time is ") || !cur_number(c, &ev->seconds))
        return 0;
    if (CUR_SEEK(c, "Throughput is ") && cur_number(c, &per_second) && isfinite(per_second * ev->seconds))
        ev->records = round(per_second * ev->seconds); /* the line does not print them */
    eat_learning_rate(c, ev);
    ev->kind = LOG_ITERATION;
    ev->closes_epoch = ev->records_all > 0 && ev->records_done >= ev->records_all;
    return 1;
}

/* "Epoch finished." Wall clock time is 29917.408867 ms: since optimize() began. */
static int parse_finished(struct cur *c, struct log_event *ev)
{
    double printed;
    struct cur at = *c;
    if (CUR_SEEK(&at, "Wall clock time is ")) {
        struct cur again = at;
        if (cur_number(&at, &printed)) {
            cur_skip_spaces(&at);
            (void)cur_scaled(&again, CUR_EAT(&at, "ms") ? -3 : 0, &ev->wall_s);
        }
    }
    ev->kind = LOG_EPOCH_END;
    return 1;
}

static bool eat_metric_value(struct cur *c, double *out)
{
    struct cur at = *c;
    if (CUR_SEEK(&at, "accuracy: ") || (at = *c, CUR_SEEK(&at, ", Average ") && CUR_SEEK(&at, ": ")) ||
        (at = *c, CUR_SEEK(&at, "AUC is ")))
        return cur_number(&at, out);
    at = *c;
    if (!cur_number(&at, out))
        return false;
    cur_skip_spaces(&at);
    return at.p == at.end;
}

/* "Top1Accuracy is Accuracy(correct: 9250, count: 10000, accuracy: 0.925)", "Loss is (Loss: 4039.1, count: 10000, Average
 * Loss: 0.4)"; not "validate model throughput is …". */
static int parse_metric(struct cur *c, struct log_event *ev)
{
    const char *name = c->p;
    while (c->p < c->end && (unsigned char)*c->p > ' ' && c->p - name < 100)
        c->p++;
    const char *name_end = c->p;
    if (name_end == name || !CUR_EAT(c, " is ") || !eat_metric_value(c, &ev->value))
        return 0;
    put_text(ev, name, name_end);
    ev->kind = LOG_METRIC;
    return 1;
}

static int parse_optimizer(struct cur *c, struct log_event *ev)
{
    if (!eat_head(c, ev))
        return 0;
    if (CUR_EAT(c, "Trained ") || CUR_EAT(c, "Train "))
        return parse_trained(c, ev);
    if (CUR_EAT(c, "loss is "))
        return parse_local(c, ev);
    if (CUR_EAT(c, "Epoch finished"))
        return parse_finished(c, ev);
    return parse_metric(c, ev);
}

/* "[Wall Clock " 34.548866593s] Save optimMethod com.…SGD@21274afe to DIR/20261118_120011: the second of the two lines. */
static int parse_save(struct cur *c, struct log_event *ev)
{
    if (!cur_number(c, &ev->wall_s) || !CUR_EAT(c, "s] Save ") || !(CUR_EAT(c, "optimMethod ") || CUR_EAT(c, "state ")))
        return 0;
    c->p--; /* "state to DIR": the space before "to" */
    if (!CUR_SEEK(c, " to "))
        return 0;
    put_text(ev, c->p, c->end);
    ev->kind = LOG_CHECKPOINT;
    return 1;
}

/* "… INFO  DistriOptimizer$:408 - Top1Accuracy is Accuracy(correct: …)": BigDL before 0.5 prints its results without a head, and
 * names some in two words. An application may print the like of its own, but not under the optimizer's name. 1 or 0. */
static int parse_bare_metric(const struct cur *line, struct log_event *ev)
{
    struct cur c = *line;
    if (!CUR_SEEK(&c, "Optimizer$") || !(CUR_EAT(&c, ": ") || CUR_SEEK(&c, " - ")))
        return 0;
    struct cur at = c;
    if (!CUR_SEEK(&at, " is ") || at.p - c.p > 100)
        return 0;
    const char *name_end = at.p - strlen(" is ");
    if (!(CUR_EAT(&at, "Accuracy(") || CUR_EAT(&at, "(Loss: ")) || !eat_metric_value(&at, &ev->value))
        return 0;
    put_text(ev, c.p, name_end);
    ev->kind = LOG_METRIC;
    return 1;
}

/* An optimizer's line: 1 or 0, and -1 when it is none. */
static int parse_bracketed(const struct cur *line, struct log_event *ev)
{
    struct cur c = *line;
    while ((c.p = memchr(c.p, '[', (size_t)(c.end - c.p))) != NULL) {
        if (CUR_EAT(&c, "[Epoch "))
            return parse_optimizer(&c, ev);
        if (CUR_EAT(&c, "[Wall Clock "))
            return parse_save(&c, ev);
        c.p++;
    }
    return parse_bare_metric(line, ev) ? 1 : -1;
}

/* ---- marks of a warm session ---------------------------------------------------------------------------------------- */

/* "PIPETUNE trial " 1-2 begin, and nothing behind it. */
static int parse_mark(struct cur *c, struct log_event *ev)
{
    const char *blank = cur_find_bytes(c, " ", 1);
    if (!blank || !session_is_id(c->p, (size_t)(blank - c->p)))
        return 0;
    put_text(ev, c->p, blank);
    c->p = blank;
    ev->begins = CUR_EAT(c, " begin");
    if ((!ev->begins && !CUR_EAT(c, " end")) || c->p != c->end)
        return 0;
    ev->kind = LOG_MARK;
    return 1;
}

/* ---- the JVM's collector ---------------------------------------------------------------------------------------------- */

/* The number that ends here, "5.123" of "… 61M->20M(80M) 5.123ms". */
static bool number_before(const struct cur *line, const char *end, int shift, double *out)
{
    struct cur c = { end, end };
    while (c.p > line->p && (cur_is_digit(c.p[-1]) || c.p[-1] == '.'))
        c.p--;
    return c.p < end && cur_scaled(&c, shift, out) && c.p == end && isfinite(*out);
}

/* "[2.345s][info][gc] GC(12) Pause Young (Normal) (G1 Evacuation Pause) 61M->20M(80M) 5.123ms", the cursor behind "] GC(". */
static bool eat_pause(struct cur *c, struct log_event *ev)
{
    int64_t number;
    if (!cur_int(c, &number) || !CUR_EAT(c, ") Pause "))
        return false;
    const char *end = c->end;
    while (end > c->p && end[-1] == ' ')
        end--;
    return end - c->p > 2 && end[-2] == 'm' && end[-1] == 's' && number_before(c, end - 2, -3, &ev->seconds);
}

/* "2.345: ", or "2020-03-16T17:47:32.123+0000: 2.345: "; then "[GC" or "[Full GC". */
static bool eat_head_8(struct cur *c)
{
    for (int words = 0; words < 2 && c->p < c->end && cur_is_digit(*c->p); words++) {
        while (c->p < c->end && *c->p != ' ')
            c->p++;
        if (c->p[-1] != ':' || !CUR_EAT(c, " "))
            return false;
        if (CUR_EAT(c, "[GC") || CUR_EAT(c, "[Full GC"))
            return true;
    }
    return false;
}

/* " (Allocation Failure)  61440K->10240K(81920K), 0.0051230 secs]" of Java 8. */
static bool eat_pause_8(struct cur *c, struct log_event *ev)
{
    static const char unit[] = " secs]";
    const char *at = CUR_EAT(c, " (") ? cur_find_bytes(c, unit, sizeof unit - 1) : NULL;
    return at && number_before(c, at, 0, &ev->seconds);
}

/* 1 or 0, and -1 when it is none of the collector's lines. */
static int parse_pause(const struct cur *line, struct log_event *ev)
{
    struct cur c = *line, stamp = *line;
    bool pause;
    if (CUR_EAT(&c, "[") && CUR_SEEK(&c, "] GC("))
        pause = eat_pause(&c, ev);
    else if (c = *line, eat_head_8(&c))
        pause = eat_pause_8(&c, ev);
    else
        return -1;
    (void)CUR_EAT(&stamp, "[");
    (void)cur_stamp(&stamp, &ev->stamp_ms, &ev->stamp_coarse); /* most print how long the JVM has run instead */
    ev->kind = LOG_PAUSE;
    return pause;
}

/* ---- how grave a line is ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    enum log_level level;
} levels[] = {
    { "INFO", LEVEL_INFO },    { "DEBUG", LEVEL_INFO },  { "TRACE", LEVEL_INFO },  { "WARN", LEVEL_WARN },
    { "WARNING", LEVEL_WARN }, { "ERROR", LEVEL_ERROR }, { "FATAL", LEVEL_ERROR }, { "CRITICAL", LEVEL_ERROR },
};

/* The level of the line's first words: " WARN Utils: …", " [main] ERROR …", " - WARNING - …", "WARNING:root:…". */
static enum log_level level_of(struct cur c, int words)
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

/* ---- other lines: one pass for all needles -------------------------------------------------------------------------- */

static const struct anchor {
    enum log_kind kind;
    const char *text;
} anchors[] = {
    { LOG_APP_ID, "Connected to Spark cluster with app ID " },
    { LOG_APP_ID, "Submitted application " },
    { LOG_GRANTED, "Granted executor ID " },
    { LOG_GRANTED, "Registered executor " },
    { LOG_DATA, "caching training rdd" },
    { LOG_RECOVERY, "Model recover from " },
    { LOG_LOST, "Lost executor " },
};

/* Needles by their first byte, so that most bytes cost one look. Built for each line: it costs less than one memmem, and
 * no table has to be kept in step with the rows above. */
struct needles {
    uint8_t first[256]; /* 1 + index of the first needle with this byte, 0: none */
    uint8_t next[255];
    const char *text[255];
    uint8_t row[255]; /* a cause; CAUSE_MAX + index: an anchor */
    uint8_t n;
};

static void add_needle(struct needles *ns, const char *text, size_t row)
{
    uint8_t *head = &ns->first[(unsigned char)text[0]];
    ns->text[ns->n] = text;
    ns->row[ns->n] = (uint8_t)row;
    ns->next[ns->n] = *head;
    *head = ++ns->n;
}

static void needles_init(struct needles *ns)
{
    _Static_assert((size_t)CAUSE_MAX * LOG_NEEDLES_MAX + ARRAY_LEN(anchors) < 255, "indexes are bytes");
    memset(ns->first, 0, sizeof ns->first);
    ns->n = 0;
    for (size_t i = CAUSE_NONE + 1; i < CAUSE_MAX; i++)
        for (size_t k = 0; k < LOG_NEEDLES_MAX && log_causes[i].needles[k]; k++)
            add_needle(ns, log_causes[i].needles[k], i);
    for (size_t i = 0; i < ARRAY_LEN(anchors); i++)
        add_needle(ns, anchors[i].text, CAUSE_MAX + i);
}

struct hits {
    enum log_cause cause;
    const char *cause_at;
    const struct anchor *anchor;
    const char *anchor_end;
};

static bool starts_with(const struct cur *c, const char *text)
{
    const char *p = c->p;
    while (*text && p < c->end && *p == *text)
        p++, text++;
    return *text == '\0';
}

static void note_hit(struct hits *h, const struct cur *line, const struct cur *at, const char *needle, size_t row)
{
    if (row >= CAUSE_MAX) {
        if (!h->anchor) {
            h->anchor = &anchors[row - CAUSE_MAX];
            h->anchor_end = at->p + strlen(needle);
        }
        return;
    }
    const char *unless = log_causes[row].unless;
    if (h->cause != CAUSE_NONE && (size_t)h->cause <= row)
        return;
    if (unless && cur_find_bytes(line, unless, strlen(unless)))
        return;
    h->cause = (enum log_cause)row;
    h->cause_at = at->p;
}

static struct hits find_needles(const struct cur *line)
{
    struct needles ns;
    needles_init(&ns);
    struct hits h = { CAUSE_NONE, NULL, NULL, NULL };
    for (struct cur at = *line; at.p < at.end; at.p++)
        for (uint8_t i = ns.first[(unsigned char)*at.p]; i != 0; i = ns.next[i - 1])
            if (starts_with(&at, ns.text[i - 1]))
                note_hit(&h, line, &at, ns.text[i - 1], ns.row[i - 1]);
    return h;
}

/* "org.apache.spark.SparkException: …", "ValueError: …" at the very beginning: the first line of a Java trace, the last of
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

static void put_cause(struct log_event *ev, const struct cur *rest, const char *at)
{
    struct cur c = *rest;
    skip_preamble(&c, ev->stamp_ms >= 0);
    /* A long line ("Job aborted due to …") is cut so that the telling words stay. */
    if (at > c.p && at - c.p > LOG_TEXT_MAX / 2)
        c.p = at;
    put_text(ev, c.p, c.end);
}

static void put_anchor(struct log_event *ev, const struct hits *h, const char *end)
{
    struct cur c = { h->anchor_end, end };
    ev->kind = h->anchor->kind;
    if (ev->kind == LOG_GRANTED && h->anchor->text[0] == 'R') /* "Registered executor … with ID 0" */
        (void)CUR_SEEK(&c, "with ID ");
    if (ev->kind == LOG_LOST || ev->kind == LOG_RECOVERY)
        put_text(ev, c.p, c.end);
    else
        put_word(ev, &c);
    int64_t cores;
    if (ev->kind == LOG_GRANTED && CUR_SEEK(&c, " with ") && cur_int(&c, &cores) && CUR_EAT(&c, " core(s)"))
        ev->cores = cores > 0 && cores < INT32_MAX ? (int)cores : 0;
    ev->cause = ev->kind == LOG_LOST ? h->cause : CAUSE_NONE;
}

/* The level of a line without a stamp: its own word, else, where it stands below a warning or an error, that one's. */
static enum log_level level_unstamped(struct log_place *place, const struct cur *line, bool exception)
{
    struct cur all = *line;
    enum log_level own = is_below(line) ? LEVEL_NONE : level_of(*line, 1);
    if (own != LEVEL_NONE || is_last_words(line))
        return place->level = own;
    if (CUR_SEEK(&all, "Warning: ")) /* "a.py:3: UserWarning: …" */
        return LEVEL_WARN;
    bool below = exception || is_below(line);
    return below && place->level != LEVEL_INFO ? place->level : LEVEL_NONE;
}

/* What was said that is neither a cause nor part of one. */
static void note_ordinary(struct log_place *place, const struct cur *line, const struct cur *rest, enum log_level level)
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
        copy_text(place->said, line->p, line->end);
}

static int parse_other(struct log_place *place, const struct cur *line, const struct cur *rest, struct log_event *ev)
{
    struct hits h = find_needles(rest);
    if (h.anchor) {
        put_anchor(ev, &h, rest->end);
        return 1;
    }
    bool exception = is_bare_exception(line), stamped = rest->p != line->p;
    if (h.cause == CAUSE_NONE && exception) {
        h.cause = CAUSE_EXCEPTION;
        h.cause_at = line->p;
    }
    enum log_level level = stamped ? place->level : level_unstamped(place, line, exception);
    if (h.cause == CAUSE_NONE) {
        note_ordinary(place, line, rest, level);
        return 0;
    }
    ev->kind = LOG_CAUSE;
    ev->cause = h.cause;
    ev->level = level;
    ev->anew = place->ordinary;
    place->ordinary &= level == LEVEL_INFO || level == LEVEL_WARN;
    put_cause(ev, rest, h.cause_at);
    return 1;
}

int log_parse_line(struct log_place *place, const char *line, size_t len, struct log_event *out)
{
    if (len > 0 && line[len - 1] == '\r')
        len--;
    struct cur whole = { line, line + len };
    struct cur rest = whole;
    if (len == 0 || CUR_EAT(&rest, "\tat ")) /* most of a stack trace */
        return 0;
    *out = (struct log_event){ .stamp_ms = -1, .wall_s = NAN, .loss = NAN, .learning_rate = NAN };
    if (CUR_EAT(&rest, "PIPETUNE trial "))
        return parse_mark(&rest, out);
    int rc = parse_pause(&whole, out);
    if (rc >= 0)
        return rc;
    if (cur_stamp(&rest, &out->stamp_ms, &out->stamp_coarse)) /* not every line has one */
        place->level = level_of(rest, 4);
    rc = parse_bracketed(&rest, out);
    if (rc >= 0)
        place->ordinary = true;
    return rc >= 0 ? rc : parse_other(place, &whole, &rest, out);
}

/* Of lines that are known otherwise than by an anchor: the optimizer's, the session's, the collector's. The first is the one that
 * training goes on by. */
static const char *const other_texts[] = {
    "[Epoch ", "[Wall Clock ", "Optimizer$", "PIPETUNE trial ", "] GC(", "[GC", "[Full GC",
};

const char *log_needle(size_t i, bool *step)
{
    *step = i == 0;
    if (i < ARRAY_LEN(other_texts))
        return other_texts[i];
    i -= ARRAY_LEN(other_texts);
    return i < ARRAY_LEN(anchors) ? anchors[i].text : NULL;
}
