#include "bigdl/log.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "app/cur.h"
#include "app/session.h"
#include "base/own.h"

static void put_word(struct app_report *ev, const struct cur *c)
{
    const char *p = c->p;
    while (p < c->end && (unsigned char)*p > ' ' && *p != ',')
        p++;
    app_report_put_text(ev, c->p, p);
}

/* ---- lines of an optimizer ------------------------------------------------------------------------------------------ */

/* "[Epoch 1 60032/60000][Iteration 469][Wall Clock 29.654904923s]", and its shorter forms. The cursor stands behind
 * "[Epoch ". */
static bool eat_head(struct cur *c, struct app_report *ev)
{
    int64_t epoch = 0;
    if (!cur_int(c, &epoch) || epoch > INT_MAX)
        return false;
    ev->epoch = (int)epoch;
    if (CUR_EAT(c, " ") && !(cur_int(c, &ev->records_done) && CUR_EAT(c, "/") && cur_int(c, &ev->records_all)))
        return false;
    if (!CUR_EAT(c, "]"))
        return false;
    if (CUR_EAT(c, "[Iteration ") && !(cur_int(c, &ev->step) && CUR_EAT(c, "]")))
        return false;
    if (CUR_EAT(c, "[Wall Clock ") && !(cur_number(c, &ev->wall_s) && CUR_EAT(c, "s]")))
        return false;
    cur_skip_spaces(c);
    return true;
}

static void eat_learning_rate(struct cur *c, struct app_report *ev)
{
    if (CUR_SEEK(c, "Current learning rate is ") && !cur_number(c, &ev->learning_rate))
        ev->learning_rate = NAN;
}

/* "Trained " 128.0 records in 0.041978443 seconds. Throughput is … records/second. Loss is 0.17889601. …; BigDL 0.1: "Train "
 * 128 in 0.041978443seconds. … */
static int parse_trained(struct cur *c, struct app_report *ev)
{
    if (!cur_number(c, &ev->records))
        return 0;
    (void)CUR_EAT(c, " records");
    if (!CUR_EAT(c, " in ") || !cur_number(c, &ev->seconds))
        return 0;
    if (CUR_SEEK(c, "Loss is "))
        (void)cur_number(c, &ev->loss); /* stays NAN */
    eat_learning_rate(c, ev);
    ev->kind = REPORT_STEP;
    return 1;
}

/* LocalOptimizer: "loss is " 2.154, iteration time is 0.069s data fetch time is …, Throughput is 7399.9 record / second. */
static int parse_local(struct cur *c, struct app_report *ev)
{
    double per_second = NAN;
    if (!cur_number(c, &ev->loss) || !CUR_EAT(c, ", iteration time is ") || !cur_number(c, &ev->seconds))
        return 0;
    if (CUR_SEEK(c, "Throughput is ") && cur_number(c, &per_second) && isfinite(per_second * ev->seconds))
        ev->records = round(per_second * ev->seconds); /* the line does not print them */
    eat_learning_rate(c, ev);
    ev->kind = REPORT_STEP;
    ev->closes_epoch = ev->records_all > 0 && ev->records_done >= ev->records_all;
    return 1;
}

/* "Epoch finished." Wall clock time is 29917.408867 ms: since optimize() began. */
static int parse_finished(struct cur *c, struct app_report *ev)
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
    ev->kind = REPORT_EPOCH;
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
static int parse_metric(struct cur *c, struct app_report *ev)
{
    const char *name = c->p;
    while (c->p < c->end && (unsigned char)*c->p > ' ' && c->p - name < 100)
        c->p++;
    const char *name_end = c->p;
    if (name_end == name || !CUR_EAT(c, " is ") || !eat_metric_value(c, &ev->value))
        return 0;
    app_report_put_text(ev, name, name_end);
    ev->kind = REPORT_VALUE;
    return 1;
}

static int parse_optimizer(struct cur *c, struct app_report *ev)
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
static int parse_save(struct cur *c, struct app_report *ev)
{
    if (!cur_number(c, &ev->wall_s) || !CUR_EAT(c, "s] Save ") || !(CUR_EAT(c, "optimMethod ") || CUR_EAT(c, "state ")))
        return 0;
    c->p--; /* "state to DIR": the space before "to" */
    if (!CUR_SEEK(c, " to "))
        return 0;
    app_report_put_text(ev, c->p, c->end);
    ev->kind = REPORT_CHECKPOINT;
    return 1;
}

/* "… INFO  DistriOptimizer$:408 - Top1Accuracy is Accuracy(correct: …)": BigDL before 0.5 prints its results without a head, and
 * names some in two words. An application may print the like of its own, but not under the optimizer's name. 1 or 0. */
static int parse_bare_metric(const struct cur *line, struct app_report *ev)
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
    app_report_put_text(ev, c.p, name_end);
    ev->kind = REPORT_VALUE;
    return 1;
}

/* An optimizer's line: 1 or 0, and -1 when it is none. */
static int parse_bracketed(const struct cur *line, struct app_report *ev)
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
static int parse_mark(struct cur *c, struct app_report *ev)
{
    const char *blank = cur_find_bytes(c, " ", 1);
    if (!blank || !session_is_id(c->p, (size_t)(blank - c->p)))
        return 0;
    app_report_put_text(ev, c->p, blank);
    c->p = blank;
    ev->begins = CUR_EAT(c, " begin");
    if ((!ev->begins && !CUR_EAT(c, " end")) || c->p != c->end)
        return 0;
    ev->kind = REPORT_MARK;
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
static bool eat_pause(struct cur *c, struct app_report *ev)
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
static bool eat_pause_8(struct cur *c, struct app_report *ev)
{
    static const char unit[] = " secs]";
    const char *at = CUR_EAT(c, " (") ? cur_find_bytes(c, unit, sizeof unit - 1) : NULL;
    return at && number_before(c, at, 0, &ev->seconds);
}

/* 1 or 0, and -1 when it is none of the collector's lines. */
static int parse_pause(const struct cur *line, struct app_report *ev)
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
    ev->kind = REPORT_PAUSE;
    return pause;
}

/* ---- other lines: one pass for all needles -------------------------------------------------------------------------- */

/* In step with `anchor_kinds`. */
static const char *const anchors[] = {
    "Connected to Spark cluster with app ID ",
    "Submitted application ",
    "Granted executor ID ",
    "Registered executor ",
    "caching training rdd",
    "Model recover from ",
    "Lost executor ",
};

static const enum report_kind anchor_kinds[ARRAY_LEN(anchors)] = {
    REPORT_READY, REPORT_READY, REPORT_GRANTED, REPORT_GRANTED, REPORT_DATA, REPORT_RECOVERY, REPORT_LOST,
};

static const struct cause_words words = { .rows = log_causes,
                                          .n = CAUSE_MAX,
                                          .exception = &log_causes[CAUSE_EXCEPTION],
                                          .anchors = anchors,
                                          .n_anchors = ARRAY_LEN(anchors) };

static void put_anchor(struct app_report *ev, const struct cause_hits *h, const char *end)
{
    struct cur c = { h->anchor_end, end };
    ev->kind = anchor_kinds[h->anchor_row];
    if (ev->kind == REPORT_GRANTED && h->anchor[0] == 'R') /* "Registered executor … with ID 0" */
        (void)CUR_SEEK(&c, "with ID ");
    if (ev->kind == REPORT_LOST || ev->kind == REPORT_RECOVERY)
        app_report_put_text(ev, c.p, c.end);
    else
        put_word(ev, &c);
    int64_t cores;
    if (ev->kind == REPORT_GRANTED && CUR_SEEK(&c, " with ") && cur_int(&c, &cores) && CUR_EAT(&c, " core(s)"))
        ev->cores = cores > 0 && cores < INT32_MAX ? (int)cores : 0;
    ev->untrained = ev->kind == REPORT_RECOVERY && strstr(ev->text, "origin"); /* "… from origin model" */
    ev->cause = ev->kind == REPORT_LOST ? h->cause : NULL;
}

static int parse_other(struct line_place *place, const struct cur *line, const struct cur *rest, struct app_report *ev)
{
    struct cause_hits h = cause_find(&words, rest);
    if (!h.anchor)
        return cause_read(&words, place, line, rest, &h, ev);
    put_anchor(ev, &h, rest->end);
    return 1;
}

static int parse_line(const void *ctx, struct line_place *place, const char *line, size_t len, struct app_report *out)
{
    (void)ctx;
    if (len > 0 && line[len - 1] == '\r')
        len--;
    struct cur whole = { line, line + len };
    struct cur rest = whole;
    if (len == 0 || CUR_EAT(&rest, "\tat ")) /* most of a stack trace */
        return 0;
    app_report_begin(out, REPORT_CAUSE);
    if (CUR_EAT(&rest, "PIPETUNE trial "))
        return parse_mark(&rest, out);
    int rc = parse_pause(&whole, out);
    if (rc >= 0)
        return rc;
    if (cur_stamp(&rest, &out->stamp_ms, &out->stamp_coarse)) /* not every line has one */
        place->level = cause_level_of(rest, 4);
    rc = parse_bracketed(&rest, out);
    if (rc >= 0)
        place->ordinary = true;
    return rc >= 0 ? rc : parse_other(place, &whole, &rest, out);
}

const struct line_reader log_reader = { .parse = parse_line };

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
    return i < ARRAY_LEN(anchors) ? anchors[i] : NULL;
}
