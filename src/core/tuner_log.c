#include "core/tuner_log.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"

enum { VERSION = 2, MEMORY_ALONE = 1 /* its head ends with the memories */ };

/* --- words of a line ---
 *
 *   H 2 POLICY window_s probe_budget tie_margin noise_floor n_hot cores… n_cold memory… other… memory_entered
 *   L trial class family start.hot start.cold n_hot alone
 *   s trial t_s setting.hot setting.cold class family epoch epochs n_hot alone startup_s
 *   i trial t_s epoch seconds records epoch_records
 *   e trial t_s epoch seconds records
 *   a trial t_s setting.hot setting.cold
 *   f trial t_s setting.hot setting.cold class family infeasible
 *   l trial t_s waiting n_hot alone
 *   b t d x trial t_s
 *   r trial t_s setting.hot setting.cold class family infeasible over.hot over.cold ratio at_least best trials
 *   v trial t_s verdict class
 *   g trial t_s setting.hot setting.cold
 *
 * One blank between two words. A key is a JSON string literal, or null where there is none. */

enum field_kind {
    FIELD_INT,   /* a number from 0 */
    FIELD_N_HOT, /* as many hot settings as there are at most */
    FIELD_REAL,
    FIELD_BOOL,
    FIELD_KEY,
    FIELD_SETTING,
    FIELD_VERDICT, /* enum tuner_verdict, as a number */
};

struct field {
    enum field_kind kind;
    size_t offset; /* in struct tuner_event or struct tuner_ask */
};

enum { FIELDS_MAX = 9, SHOWN_MAX = 400 /* bytes of a line that an error shows */ };

struct form {
    char letter;
    struct field fields[FIELDS_MAX];
    size_t n;
};

#define EV(kind, member)                                                                                               \
    {                                                                                                                  \
        kind, offsetof(struct tuner_event, member)                                                                     \
    }
#define ASK(kind, member)                                                                                              \
    {                                                                                                                  \
        kind, offsetof(struct tuner_ask, member)                                                                       \
    }

/* By enum tuner_event_kind; each begins with trial and t_s, which are not listed. */
static const struct form event_forms[] = {
    [EV_TRIAL_STARTED] = { 's',
                           { EV(FIELD_SETTING, setting), EV(FIELD_KEY, class_key), EV(FIELD_KEY, family_key),
                             EV(FIELD_INT, epoch), EV(FIELD_INT, epochs), EV(FIELD_N_HOT, n_hot), EV(FIELD_BOOL, alone),
                             EV(FIELD_REAL, startup_s) },
                           8 },
    [EV_ITERATION] = { 'i',
                       { EV(FIELD_INT, epoch), EV(FIELD_REAL, seconds), EV(FIELD_REAL, records),
                         EV(FIELD_REAL, epoch_records) },
                       4 },
    [EV_EPOCH] = { 'e', { EV(FIELD_INT, epoch), EV(FIELD_REAL, seconds), EV(FIELD_REAL, records) }, 3 },
    [EV_APPLIED] = { 'a', { EV(FIELD_SETTING, setting) }, 1 },
    [EV_FAILED] = { 'f',
                    { EV(FIELD_SETTING, setting), EV(FIELD_KEY, class_key), EV(FIELD_KEY, family_key),
                      EV(FIELD_BOOL, infeasible) },
                    4 },
    [EV_LOAD] = { 'l', { EV(FIELD_INT, waiting), EV(FIELD_N_HOT, n_hot), EV(FIELD_BOOL, alone) }, 3 },
    [EV_BREAK] = { .letter = 'b' },
    [EV_TICK] = { .letter = 't' },
    [EV_TRIAL_ENDED] = { .letter = 'd' },
    [EV_TRIAL_LOST] = { .letter = 'x' },
    [EV_RECALL] = { 'r',
                    { EV(FIELD_SETTING, setting), EV(FIELD_KEY, class_key), EV(FIELD_KEY, family_key),
                      EV(FIELD_BOOL, infeasible), EV(FIELD_SETTING, over), EV(FIELD_REAL, ratio),
                      EV(FIELD_BOOL, at_least), EV(FIELD_BOOL, best), EV(FIELD_INT, trials) },
                    9 },
    [EV_VERDICT] = { 'v', { EV(FIELD_VERDICT, verdict), EV(FIELD_KEY, class_key) }, 2 },
    [EV_INSTEAD] = { 'g', { EV(FIELD_SETTING, setting) }, 1 },
};

static const struct form ask_form = { 'L',
                                      { ASK(FIELD_INT, trial), ASK(FIELD_KEY, class_key), ASK(FIELD_KEY, family_key),
                                        ASK(FIELD_SETTING, start), ASK(FIELD_N_HOT, n_hot), ASK(FIELD_BOOL, alone) },
                                      6 };

/* --- writing --- */

/* What is no number is written too: a machine must be told exactly what it was told. */
static void put_real(struct buf *out, double x)
{
    buf_putc(out, ' ');
    if (isfinite(x))
        num_put(out, x);
    else
        buf_printf(out, "%g", x);
}

static void put_key(struct buf *out, const char *key)
{
    buf_putc(out, ' ');
    if (key)
        json_put_string(out, key);
    else
        buf_puts(out, "null");
}

static void put_field(struct buf *out, const struct field *f, const void *from)
{
    const void *p = (const char *)from + f->offset;
    const struct tuner_setting *s = p;
    switch (f->kind) {
    case FIELD_INT:
    case FIELD_N_HOT: buf_printf(out, " %d", *(const int *)p); break;
    case FIELD_REAL: put_real(out, *(const double *)p); break;
    case FIELD_BOOL: buf_puts(out, *(const bool *)p ? " 1" : " 0"); break;
    case FIELD_KEY: put_key(out, *(const char *const *)p); break;
    case FIELD_SETTING: buf_printf(out, " %d %d", s->hot, s->cold); break;
    case FIELD_VERDICT: buf_printf(out, " %d", (int)*(const enum tuner_verdict *)p); break;
    }
}

static void put_reals(struct buf *out, const double *list, int n)
{
    buf_printf(out, " %d", n);
    for (int i = 0; i < n; i++)
        put_real(out, list[i]);
}

void tuner_log_head(struct buf *out, const struct policy *p, const struct tuner_space *space,
                    const struct tuner_cfg *cfg)
{
    buf_printf(out, "H %d %s", VERSION, p->name);
    put_real(out, cfg->window_s);
    put_real(out, cfg->probe_budget);
    put_real(out, cfg->tie_margin);
    put_real(out, cfg->noise_floor);
    put_reals(out, space->cores, space->n_hot);
    put_reals(out, space->memory, space->n_cold);
    for (int i = 0; i < space->n_cold; i++)
        buf_printf(out, " %d", space->other[i]);
    buf_puts(out, space->memory_entered ? " 1\n" : " 0\n");
}

void tuner_log_ask(struct buf *out, const struct tuner_ask *ask)
{
    buf_putc(out, ask_form.letter);
    for (size_t i = 0; i < ask_form.n; i++)
        put_field(out, &ask_form.fields[i], ask);
    buf_putc(out, '\n');
}

void tuner_log_event(struct buf *out, const struct tuner_event *ev)
{
    const struct form *f = &event_forms[ev->kind];
    buf_printf(out, "%c %d", f->letter, ev->trial);
    put_real(out, ev->t_s);
    for (size_t i = 0; i < f->n; i++)
        put_field(out, &f->fields[i], ev);
    buf_putc(out, '\n');
}

/* --- reading --- */

/* The words of one line that are left; `what` says what is wrong with it. */
struct words {
    const char *at, *end;
    const char *what; /* NULL: nothing so far */
    const struct tuner_space *space;
    json_t *keys; /* those that were read live in here */
    tuner_replay_sink *sink;
    void *ctx;
    int ended; /* what the sink returned to end it all */
};

static bool wrong(struct words *w, const char *what)
{
    if (!w->what)
        w->what = what;
    return false;
}

/* The next word without its blank; a copy, so that strtod() stops at its end. */
static bool take_word(struct words *w, char *out, size_t size)
{
    if (w->what || w->at == w->end || *w->at != ' ')
        return wrong(w, "a word is missing");
    const char *from = ++w->at;
    while (w->at < w->end && *w->at != ' ')
        w->at++;
    size_t len = (size_t)(w->at - from);
    if (len == 0)
        return wrong(w, "a word is missing");
    if (len >= size || memchr(from, '\0', len))
        return wrong(w, "a word is too long");
    memcpy(out, from, len);
    out[len] = '\0';
    return true;
}

static bool take_real(struct words *w, double *out)
{
    char word[NUM_TEXT_MAX];
    char *end;
    if (!take_word(w, word, sizeof word))
        return false;
    double x = strtod(word, &end);
    if (end == word || *end || strchr("\t\n\v\f\r", word[0]))
        return wrong(w, "a number is none");
    *out = x;
    return true;
}

static bool take_int(struct words *w, int *out)
{
    double x = 0;
    if (!take_real(w, &x))
        return false;
    if (!(x >= INT_MIN && x <= INT_MAX) || x != floor(x))
        return wrong(w, "a whole number is none");
    *out = (int)x;
    return true;
}

/* A count from `min` to `max`. */
static bool take_count(struct words *w, int min, int max, int *out)
{
    int n = 0;
    if (!take_int(w, &n))
        return false;
    if (n < min || n > max)
        return wrong(w, "a number is out of bounds");
    *out = n;
    return true;
}

static bool take_bool(struct words *w, bool *out)
{
    int n = 0;
    bool ok = take_count(w, 0, 1, &n);
    *out = n == 1;
    return ok;
}

/* A literal may hold blanks: jansson says where it ends. */
static bool take_key(struct words *w, const char **out)
{
    if (w->what || w->at == w->end || *w->at != ' ')
        return wrong(w, "a key is missing");
    const char *from = w->at + 1;
    json_error_t e;
    json_t *key = json_loadb(from, (size_t)(w->end - from), JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, &e);
    bool ok = json_is_string(key) || json_is_null(key);
    *out = json_string_value(key);
    if (json_array_append_new(w->keys, key) < 0 || !ok) /* takes the reference, also when it fails */
        return wrong(w, "a key is none");
    w->at = from + e.position;
    return true;
}

static bool take_setting(struct words *w, struct tuner_setting *out)
{
    return take_count(w, 0, w->space->n_hot - 1, &out->hot) && take_count(w, 0, w->space->n_cold - 1, &out->cold);
}

static void take_verdict(struct words *w, enum tuner_verdict *out)
{
    int v = 0;
    if (take_count(w, VERDICT_UNKNOWN, VERDICT_KNOWN, &v))
        *out = (enum tuner_verdict)v;
}

static void take_field(struct words *w, const struct field *f, void *to)
{
    void *p = (char *)to + f->offset;
    switch (f->kind) {
    case FIELD_INT: (void)take_count(w, 0, INT_MAX, p); break; /* what is wrong stays in `w` */
    case FIELD_N_HOT: (void)take_count(w, 0, w->space->n_hot, p); break;
    case FIELD_REAL: (void)take_real(w, p); break;
    case FIELD_BOOL: (void)take_bool(w, p); break;
    case FIELD_KEY: (void)take_key(w, p); break;
    case FIELD_SETTING: (void)take_setting(w, p); break;
    case FIELD_VERDICT: take_verdict(w, p); break;
    }
}

static bool take_end(struct words *w)
{
    return !w->what && (w->at == w->end || wrong(w, "there is more than belongs to it"));
}

/* --- replaying --- */

static const struct {
    const char *name;
    bool decides;
} actions[] = {
    [ACT_APPLY] = { "apply", true },     [ACT_SETTLE] = { "settle", true },     [ACT_LEARN] = { "learn", true },
    [ACT_WAKE] = { "wake", false },      [ACT_RELAUNCH] = { "relaunch", true }, [ACT_PROFILE] = { "profile", false },
    [ACT_CONFIRM] = { "confirm", true }, [ACT_WEAKEN] = { "weaken", true },
};

const char *tuner_action_name(enum tuner_action_kind k)
{
    return actions[k].name;
}

bool tuner_is_decision(enum tuner_action_kind k)
{
    return actions[k].decides;
}

bool tuner_log_is_kind(const char *kind)
{
    for (size_t i = 0; i < ARRAY_LEN(actions); i++)
        if (actions[i].decides && strcmp(kind, actions[i].name) == 0)
            return true;
    return strcmp(kind, TUNER_LOG_SETTING) == 0;
}

void tuner_replay_done(struct tuner_replay *r)
{
    if (!r)
        return;
    if (r->machine)
        r->policy->destroy(r->machine);
    *r = (struct tuner_replay){ 0 };
}

static void take_reals(struct words *w, double *list, int max, int *n)
{
    if (take_count(w, 1, max, n))
        for (int i = 0; i < *n; i++)
            (void)take_real(w, &list[i]);
}

static bool ascending(const double *list, int n, double min)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(list[i]) || list[i] < min || (i > 0 && list[i] < list[i - 1]))
            return false;
    return true;
}

static const struct policy *take_policy(struct words *w)
{
    char name[32] = "";
    const struct policy *p = take_word(w, name, sizeof name) ? policy_find(name) : NULL;
    if (!w->what && !p)
        (void)wrong(w, "its policy is not known");
    else if (p && !p->create)
        (void)wrong(w, "its policy decides nothing");
    return p;
}

/* Each cold setting's other knobs are named by the first that has them. */
static void take_ladders(struct words *w, struct tuner_space *s)
{
    for (int i = 0; i < s->n_cold; i++)
        (void)take_count(w, 0, i, &s->other[i]);
    (void)take_bool(w, &s->memory_entered);
}

/* A machine from its head. */
static int read_head(struct tuner_replay *r, struct words *w, struct err *e)
{
    int version = 0;
    struct tuner_replay to = { .lines = r->lines };
    if (take_int(w, &version) && version != VERSION && version != MEMORY_ALONE)
        (void)wrong(w, "its version is not known");
    to.policy = take_policy(w);
    (void)take_real(w, &to.cfg.window_s);
    (void)take_real(w, &to.cfg.probe_budget);
    (void)take_real(w, &to.cfg.tie_margin);
    (void)take_real(w, &to.cfg.noise_floor);
    take_reals(w, to.space.cores, TUNER_MAX_HOT, &to.space.n_hot);
    take_reals(w, to.space.memory, TUNER_MAX_COLD, &to.space.n_cold);
    if (version == VERSION)
        take_ladders(w, &to.space);
    if (!take_end(w))
        return -EINVAL;
    if (!ascending(to.space.cores, to.space.n_hot, 1) || !ascending(to.space.memory, to.space.n_cold, 0))
        return (void)wrong(w, "its settings do not ascend"), -EINVAL;
    to.machine = to.policy->create(&to.space, &to.cfg);
    if (!to.machine)
        return err_sys(e, -ENOMEM, "the tuner");
    tuner_replay_done(r);
    *r = to;
    return 0;
}

static int hand_out(const struct tuner_replay *r, struct words *w, const char *kind, int trial,
                    struct tuner_setting setting, const char *reason)
{
    w->ended = w->sink ? w->sink(w->ctx, r, kind, trial, setting, reason) : 0;
    return w->ended;
}

static int read_ask(struct tuner_replay *r, struct words *w, struct err *e)
{
    struct tuner_ask ask = { 0 };
    struct tuner_setting got = { 0, 0 };
    char reason[TUNER_REASON_MAX] = "";
    for (size_t i = 0; i < ask_form.n; i++)
        take_field(w, &ask_form.fields[i], &ask);
    if (!w->what && !ask.class_key)
        (void)wrong(w, "it has no class");
    if (!take_end(w))
        return -EINVAL;
    int rc = r->policy->launch(r->machine, &ask, &got, reason, e);
    return rc < 0 ? rc : hand_out(r, w, TUNER_LOG_SETTING, ask.trial, got, reason);
}

static int read_event(struct tuner_replay *r, enum tuner_event_kind kind, struct words *w, struct err *e)
{
    struct tuner_event ev = { .kind = kind };
    struct tuner_actions acts = { .n = 0 };
    const struct form *f = &event_forms[kind];
    (void)take_int(w, &ev.trial);
    (void)take_real(w, &ev.t_s);
    for (size_t i = 0; i < f->n; i++)
        take_field(w, &f->fields[i], &ev);
    if (!w->what && (kind == EV_TRIAL_STARTED || kind == EV_RECALL) && !ev.class_key)
        (void)wrong(w, "it has no class");
    if (!take_end(w))
        return -EINVAL;
    int rc = r->policy->step(r->machine, &ev, &acts, e);
    for (size_t i = 0; rc == 0 && i < acts.n; i++) {
        const struct tuner_action *a = &acts.list[i];
        if (tuner_is_decision(a->kind))
            rc = hand_out(r, w, tuner_action_name(a->kind), a->trial, a->setting, a->reason);
    }
    return rc;
}

/* -1: none has this letter. */
static int find_event(char letter)
{
    for (size_t i = 0; i < ARRAY_LEN(event_forms); i++)
        if (event_forms[i].letter == letter)
            return (int)i;
    return -1;
}

static int read_line(struct tuner_replay *r, struct words *w, struct err *e)
{
    char letter = w->at < w->end ? *w->at++ : '\0';
    int kind = find_event(letter);
    if (letter == 'H')
        return read_head(r, w, e);
    if (letter != ask_form.letter && kind < 0)
        return (void)wrong(w, "it is none of the kinds there are"), -EINVAL;
    if (!r->machine)
        return (void)wrong(w, "no head stands before it"), -EINVAL;
    if (letter == ask_form.letter)
        return read_ask(r, w, e);
    return read_event(r, (enum tuner_event_kind)kind, w, e);
}

/* Says which line: what is no entry, and what the machine refused. */
static int explain(const struct tuner_replay *r, const struct words *w, const char *line, size_t len, int rc,
                   struct err *e)
{
    if (!w->what) {
        (void)err_prefix(e, "the tuner's log, line %zu", r->lines); /* its code is rc already */
        return rc;
    }
    AUTO_BUF struct buf shown = BUF_INIT;
    char *text = strndup(line, len < SHOWN_MAX ? len : SHOWN_MAX);
    if (text)
        json_put_string(&shown, text); /* whatever bytes it has */
    free(text);
    return err_set(e, rc, "the tuner's log, line %zu: %s: %s", r->lines, w->what, buf_text(&shown));
}

static int feed_line(struct tuner_replay *r, const char *line, size_t len, tuner_replay_sink *sink, void *ctx,
                     struct err *e)
{
    AUTO_JSON json_t *keys = json_array();
    if (!keys)
        return err_sys(e, -ENOMEM, "the tuner's log");
    struct words w = { .at = line, .end = line + len, .space = &r->space, .keys = keys, .sink = sink, .ctx = ctx };
    r->lines++;
    int rc = read_line(r, &w, e);
    return w.ended || rc == 0 ? w.ended : explain(r, &w, line, len, rc, e);
}

int tuner_replay_feed(struct tuner_replay *r, const char *text, size_t len, tuner_replay_sink *sink, void *ctx,
                      struct err *e)
{
    int rc = 0;
    for (const char *at = text, *end = text + len; rc == 0 && at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop)
            return err_set(e, -EINVAL, "the tuner's log, line %zu: it is cut short", r->lines + 1);
        rc = feed_line(r, at, (size_t)(stop - at), sink, ctx, e);
        at = stop + 1;
    }
    return rc;
}

int tuner_log_class(const char *line, int *out_trial, struct buf *class, struct buf *family)
{
    if (line[0] != ask_form.letter)
        return 0;
    AUTO_JSON json_t *keys = json_array();
    struct words w = { .at = line + 1, .end = line + strlen(line), .keys = keys };
    const char *of = NULL, *relatives = NULL;
    if (!keys)
        return -ENOMEM;
    if (!take_count(&w, 0, INT_MAX, out_trial) || !take_key(&w, &of) || !take_key(&w, &relatives) || !of)
        return 0;
    buf_puts(class, of);
    buf_puts(family, relatives ? relatives : "");
    return class->failed || family->failed ? -ENOMEM : 1;
}
