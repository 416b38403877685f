#include "cmd/progress.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "base/utf8.h"
#include "core/sched.h"
#include "view/foretold.h"
#include "view/table.h"

enum { REDRAW_MS = 250, BAR = 20, WAIT_SAY_MS = 5000 };

static uint64_t total_trials(const struct study *s)
{
    uint64_t size = space_size(&s->plan->space);
    uint64_t most = s->sched.max_trials ? (uint64_t)s->sched.max_trials : UINT64_MAX;
    uint64_t n = size < most ? size : most;
    return n == UINT64_MAX ? 0 : n;
}

static const char *own_metric(const char *metric)
{
    return strcasecmp(metric, "accuracy") == 0 || strcasecmp(metric, "loss") == 0 ? NULL : metric;
}

void progress_init(struct progress *p, FILE *out, const struct study *s)
{
    *p = (struct progress){ .out = out,
                            .study = s->name,
                            .metric = own_metric(s->plan->cfg.metric),
                            .live = out && isatty(fileno(out)),
                            .begun_ms = clock_boot_ms(),
                            .whole = s->search.stop && !s->search.stop->tell,
                            .budget_s = s->plan->cfg.budget_seconds > 0
                                            ? s->plan->cfg.budget_seconds - s->aims.spent.seconds
                                            : 0,
                            .budget_epochs = s->plan->cfg.budget_epochs,
                            .epochs = s->plan->cfg.epochs,
                            .epochs_done = s->aims.spent.epochs,
                            .total = total_trials(s),
                            .ended = s->sched.made - (int)s->n_open,
                            .best = NAN,
                            .best_accuracy = NAN,
                            .maximise = config_maximise(&s->plan->cfg) };
}

/* --- the live part --- */

static size_t columns(const struct progress *p)
{
    struct winsize w;
    return ioctl(fileno(p->out), TIOCGWINSZ, &w) == 0 && w.ws_col > 20 ? w.ws_col : 80;
}

static void erase(struct progress *p)
{
    for (; p->drawn > 0; p->drawn--)
        fputs("\033[1A\033[2K", p->out);
}

static void put_cut(struct progress *p, const struct buf *line)
{
    AUTO_BUF struct buf plain = BUF_INIT;
    utf8_put_plain(&plain, buf_text(line), line->len, UTF8_ONE_LINE);
    fprintf(p->out, "%.*s\n", (int)utf8_bytes(buf_text(&plain), columns(p) - 1), buf_text(&plain));
    p->drawn++;
}

static void draw_row(struct progress *p, const struct progress_row *r)
{
    struct buf line = BUF_INIT;
    char bar[BAR + 1], time[32], accuracy[32];
    double done = r->epochs > 0 ? ((double)(r->epoch > 0 ? r->epoch - 1 : 0) + r->part) / r->epochs : 0;
    int full = (int)(done * BAR);
    for (int i = 0; i < BAR; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR] = '\0';
    char waits[WAIT_TEXT_MAX];
    if (r->wait.kind != WAIT_NONE)
        buf_printf(&line, "  %s/%d  %s", p->study, r->trial, wait_text(&r->wait, waits));
    else
        buf_printf(&line, "  %s/%d  [%s]  epoch %d/%d", p->study, r->trial, bar, r->epoch, r->epochs);
    if (!isnan(r->accuracy))
        buf_printf(&line, "  accuracy %s", table_digits(r->accuracy, accuracy));
    if (*r->foretold)
        buf_printf(&line, "  %s", r->foretold);
    if (!isnan(r->throughput))
        buf_printf(&line, "  %.0f records/s", r->throughput);
    if (r->cores > 0)
        buf_printf(&line, "  %g CPU%s", r->cores, r->cores == 1 ? "" : "s");
    buf_printf(&line, "  %s  %s", table_duration((double)(clock_boot_ms() - r->since_ms) / 1000.0, time), r->hyper);
    put_cut(p, &line);
    buf_done(&line);
}

static double running_s(const struct progress *p)
{
    double sum = 0;
    for (size_t i = 0; i < p->n_running; i++)
        sum += (double)(clock_boot_ms() - p->running[i].since_ms) / 1000.0;
    return sum;
}

/* False: it cannot be told honestly. Rules that stop trials leave open how many epochs there will be. */
static bool find_remaining(const struct progress *p, struct remaining *out)
{
    double at_once = p->n_running ? (double)p->n_running : 1;
    double left = (double)p->budget_epochs - (double)p->epochs_done;
    if (p->total)
        left = fmin(left, (double)p->total * (double)p->epochs - (double)p->epochs_done);
    size_t n = p->n_epochs < REMAINING_EPOCHS_MAX ? p->n_epochs : REMAINING_EPOCHS_MAX;
    if (p->whole && p->total && !p->budget_epochs)
        return remaining_by_trials(&p->took, (double)p->total - p->ended, running_s(p), at_once, out);
    return left > 0 && remaining_by_epochs(p->epoch_s, n, left, at_once, out);
}

static void put_remaining(const struct progress *p, struct buf *line)
{
    char low[32], high[32];
    struct remaining r;
    double most = p->budget_s - (double)(clock_boot_ms() - p->begun_ms) / 1000.0;
    bool known = find_remaining(p, &r);
    if (p->budget_s > 0 && most > 0 && (!known || most < r.high_s)) {
        buf_printf(line, ", at most %s to go", table_duration(most, high));
    } else if (known) {
        (void)table_duration(r.low_s, low);
        (void)table_duration(r.high_s, high);
        buf_printf(line, strcmp(low, high) == 0 ? ", %s to go" : ", %s to %s to go", low, high);
    }
}

static void draw_foot(struct progress *p)
{
    struct buf line = BUF_INIT;
    char time[32], best[32];
    buf_printf(&line, "  %d", p->ended);
    if (p->total)
        buf_printf(&line, " of %llu", (unsigned long long)p->total);
    buf_puts(&line, " trials");
    if (p->budget_epochs)
        buf_printf(&line, ", %lld of %lld epochs", (long long)p->epochs_done, (long long)p->budget_epochs);
    buf_printf(&line, ", %s", table_duration((double)(clock_boot_ms() - p->begun_ms) / 1000.0, time));
    if (p->best_trial)
        buf_printf(&line, ", best %s (%s/%d)", table_digits(p->best_accuracy, best), p->study, p->best_trial);
    put_remaining(p, &line);
    put_cut(p, &line);
    buf_done(&line);
}

static void redraw(struct progress *p, bool now)
{
    int64_t t = clock_ms();
    if (!p->live || (!now && t - p->drawn_ms < REDRAW_MS))
        return;
    p->drawn_ms = t;
    erase(p);
    for (size_t i = 0; i < p->n_running; i++)
        draw_row(p, &p->running[i]);
    draw_foot(p);
    (void)fflush(p->out); /* a terminal that is gone is told by SIGHUP */
}

static void say(struct progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct progress *p, const char *fmt, ...)
{
    AUTO_BUF struct buf plain = BUF_INIT;
    char text[2048];
    if (p->live)
        erase(p);
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap); /* a cut line is still a line */
    va_end(ap);
    utf8_put_plain(&plain, text, strlen(text), UTF8_LINES);
    fputs(buf_text(&plain), p->out);
    (void)fflush(p->out);
    redraw(p, true);
}

/* --- the rows --- */

static struct progress_row *row_of(struct progress *p, int trial)
{
    for (size_t i = 0; i < p->n_running; i++)
        if (p->running[i].trial == trial)
            return &p->running[i];
    return NULL;
}

/* {"batch_size": 32, "learning_rate": 0.1} as "batch_size 32, learning_rate 0.1". */
static void hyper_words(const char *json, char *out, size_t size)
{
    size_t n = 0;
    for (const char *c = json; *c && n + 1 < size; c++)
        if (!strchr("{}\":", *c))
            out[n++] = *c;
    out[n] = '\0';
}

/* The trial's row, a new one where there is none; NULL: there are too many. */
static struct progress_row *add_row(struct progress *p, const struct driver_news *n)
{
    struct progress_row *r = row_of(p, n->trial->number);
    if (!r && p->n_running == PROGRESS_RUNNING_MAX)
        return NULL;
    r = r ? r : &p->running[p->n_running++];
    *r = (struct progress_row){ .trial = n->trial->number,
                                .attempt = n->attempt,
                                .epochs = n->trial->epochs,
                                .accuracy = n->trial->accuracy,
                                .throughput = NAN,
                                .since_ms = clock_boot_ms(),
                                .fresh = true };
    hyper_words(n->trial->hyper, r->hyper, sizeof r->hyper);
    return r;
}

static void on_launch(struct progress *p, const struct driver_news *n)
{
    char hyper[160];
    hyper_words(n->trial->hyper, hyper, sizeof hyper);
    (void)add_row(p, n); /* where there is no room, it is not shown */
    if (!p->live || n->adopted || n->attempt > 1)
        say(p, "%s/%d: attempt %d %s: %s\n", p->study, n->trial->number, n->attempt,
            n->adopted ? "found running" : "started", hyper);
}

/* Without a terminal each wait is told once, when it lasts. */
static void on_wait(struct progress *p, struct progress_row *r, const struct wait *w)
{
    char text[WAIT_TEXT_MAX];
    int64_t now = clock_ms();
    bool same = w->kind == r->wait.kind && w->cores == r->wait.cores;
    r->wait = *w;
    if (!same)
        r->waits_ms = now;
    if (w->kind == WAIT_NONE || r->waits_ms == 0 || now - r->waits_ms < WAIT_SAY_MS)
        return;
    r->waits_ms = 0;
    if (!p->live)
        say(p, "%s/%d: %s\n", p->study, r->trial, wait_text(w, text));
}

/* Those that did not come to begin. */
static void drop_stale(struct progress *p)
{
    for (size_t i = p->n_running; i-- > 0;) {
        if (p->running[i].attempt == 0 && !p->running[i].fresh)
            p->running[i] = p->running[--p->n_running];
        else
            p->running[i].fresh = false;
    }
}

static void on_tick(struct progress *p, const struct driver_news *n)
{
    struct progress_row *r = n->trial ? row_of(p, n->trial->number) : NULL;
    if (n->trial && !r && n->attempt == 0)
        r = add_row(p, n);
    if (r) {
        r->fresh = true;
        on_wait(p, r, &n->wait);
    }
    if (r && n->fold) {
        int epoch = fold_epoch_now(n->fold);
        if (epoch > 0) {
            r->epoch = epoch;
            r->part = n->fold->records_all > 0 ? (double)n->fold->records_done / (double)n->fold->records_all : 0;
            r->part = r->part > 1 ? 1 : r->part;
        }
        r->throughput = n->fold->throughput;
        r->cores = n->cores;
    }
    if (n->trial)
        return;
    drop_stale(p);
    redraw(p, false);
}

/* "accuracy 0.9, loss -"; of a study with another metric that first, and of these two what there is. */
static const char *figures(const struct progress *p, double metric, double accuracy, double loss, char out[160])
{
    char digits[32];
    const struct {
        const char *name;
        double value;
        bool always;
    } all[] = { { p->metric, metric, p->metric != NULL },
                { "accuracy", accuracy, !p->metric },
                { "loss", loss, !p->metric } };
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i].always || (all[i].name && !isnan(all[i].value)))
            n += (size_t)snprintf(out + n, 160 - n, "%s%.40s %s", n ? ", " : "", all[i].name,
                                  table_digits(all[i].value, digits));
    return out;
}

static void on_epoch(struct progress *p, const struct driver_news *n)
{
    char told[160], time[32];
    struct progress_row *r = row_of(p, n->trial->number);
    if (r) {
        r->epoch = n->epoch->epoch;
        r->part = 1;
        r->accuracy = n->epoch->accuracy;
    }
    p->epochs_done++;
    if (n->epoch->seconds > 0)
        p->epoch_s[p->n_epochs++ % REMAINING_EPOCHS_MAX] = n->epoch->seconds;
    if (!p->live)
        say(p, "%s/%d: epoch %d of %d: %s, %s\n", p->study, n->trial->number, n->epoch->epoch, n->trial->epochs,
            figures(p, n->epoch->metric, n->epoch->accuracy, n->epoch->loss, told),
            table_duration(n->epoch->seconds, time));
}

static void on_foretold(struct progress *p, const struct driver_news *n)
{
    AUTO_BUF struct buf text = BUF_INIT;
    struct progress_row *r = row_of(p, n->trial->number);
    foretold_put_short(&text, n->foretold);
    if (r)
        (void)snprintf(r->foretold, sizeof r->foretold, "%s", buf_text(&text));
}

static void note_best(struct progress *p, const struct store_trial *t)
{
    if (isnan(t->metric) || t->violates)
        return;
    bool better = isnan(p->best) || (p->maximise ? t->metric > p->best : t->metric < p->best);
    if (!better)
        return;
    p->best = t->metric;
    p->best_accuracy = t->accuracy;
    p->best_trial = t->number;
}

static void on_ended(struct progress *p, const struct driver_news *n)
{
    const struct store_trial *t = n->trial;
    struct progress_row *r = row_of(p, t->number);
    if (r) {
        *r = p->running[--p->n_running];
    }
    bool finished = strcmp(t->state, "finished") == 0;
    bool final = trial_state_is_final((enum trial_state)trial_state_parse(t->state));
    bool paused = strcmp(t->state, trial_state_name(TRIAL_PAUSED)) == 0;
    p->ended += final;
    if (finished) {
        p->finished++;
        remaining_add(&p->took, t->seconds);
        note_best(p, t);
    }
    char hyper[160], time[32], told[160];
    hyper_words(t->hyper, hyper, sizeof hyper);
    if (finished)
        say(p, "%s/%d: finished: %s, %s: %s\n", p->study, t->number, figures(p, t->metric, t->accuracy, t->loss, told),
            table_duration(t->seconds, time), hyper);
    else if (final || paused)
        say(p, "%s/%d: %s: %s\n", p->study, t->number, t->state, n->text ? n->text : "no reason is known");
    else
        say(p, "%s/%d: attempt %d is over, the trial goes on later: %s\n", p->study, t->number, n->attempt,
            n->text ? n->text : "interrupted");
}

void progress_news(void *ctx, const struct driver_news *n)
{
    struct progress *p = ctx;
    if (!p->out)
        return;
    switch (n->kind) {
    case NEWS_LAUNCH: on_launch(p, n); break;
    case NEWS_COPY:
        p->ended++;
        say(p, "%s/%d: %s\n", p->study, n->trial->number, n->text);
        break;
    case NEWS_EPOCH: on_epoch(p, n); break;
    case NEWS_ENDED: on_ended(p, n); break;
    case NEWS_NOTE:
        if (n->trial)
            say(p, "%s/%d: %s\n", p->study, n->trial->number, n->text);
        else
            say(p, "%s\n", n->text);
        break;
    case NEWS_TICK: on_tick(p, n); break;
    case NEWS_FORETOLD: on_foretold(p, n); break;
    }
}

void progress_end(struct progress *p)
{
    if (p->live && p->out)
        erase(p);
}
