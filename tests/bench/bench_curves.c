/* bench_curves: what a decision of `gp` with `curves` takes, of one core, as lines `name value unit [goal]`.
 *   curves_decision_T_E       telling an epoch of a trial after its first ones, and asking what is next, once T trials of E epochs were told: mean
 *   curves_decision_T_E_most  the longest of these: one that fits and builds the process anew
 *   curves_restore_T_E        the state, saved, and taken up by a new search
 *   forecast_T_E              of one trial from T finished ones, with what that teaches
 *   forecast_again_T_E        of another one at the same epoch */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/own.h"
#include "core/rng.h"
#include "search/forecast.h"
#include "search/search.h"

enum { EPOCHS = 50, REPEATS = 120 };

static void die(const char *what)
{
    fprintf(stderr, "bench_curves: %s\n", what);
    exit(1);
}

static double cpu_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct space space_8(void)
{
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct space s = { 0 };
    struct err e = { 0 };
    buf_printf(&b, "{\"hyperParameters\": {");
    for (int i = 0; i < 8; i++)
        buf_printf(&b, "%s\"x%d\": {\"min\": 1e-6, \"max\": 1, \"scale\": \"log\"}", i ? ", " : "", i);
    buf_printf(&b, "}}");
    if (json_doc_parse(&doc, "bench", buf_text(&b), b.len, &e) < 0 || space_parse(&s, &doc, &e) < 0)
        die(e.text);
    return s;
}

static double value_at(const struct proposal *p, int epoch)
{
    double worth = fabs(log10(p->point.x[0]) + 2) / 4 + fabs(log10(p->point.x[1]) + 4) / 8;
    return 2.3 - 2 * exp(-worth) * (1 - exp(-epoch / 15.0));
}

static void tell(struct search *s, const struct proposal *p, int epoch, enum told_kind kind)
{
    struct search_answer a;
    struct told t = {
        .id = p->id, .kind = kind, .epoch = epoch, .value = value_at(p, epoch), .seconds = NAN, .joules = NAN
    };
    if (search_tell(s, &t, &a) < 0)
        die("no memory");
}

static const struct search_cfg cfg = { .seed = 1, .epochs = EPOCHS, .min_epochs = 1, .can_pause = true };

static void begin(struct search *s, const struct space *sp)
{
    struct err e = { 0 };
    if (search_new(s, "gp", "curves", sp, &cfg, &e) < 0)
        die(e.text);
}

static void ask_fresh(struct search *s, struct proposal *p)
{
    /* the algorithm itself: what is measured is told whole trials, whatever the stop rule would rather have */
    if (s->ops->ask(s->state, p) != 1)
        die("no proposal");
    s->stop->added(s->stop_state, p);
}

static void bench_decisions(const struct space *sp, int trials)
{
    struct search s = { 0 }, again = { 0 };
    struct proposal p;
    double sum = 0, most = 0;
    begin(&s, sp);
    for (int i = 0; i < trials; i++) {
        ask_fresh(&s, &p);
        for (int epoch = 1; epoch <= EPOCHS; epoch++)
            tell(&s, &p, epoch, TOLD_EPOCH);
        tell(&s, &p, EPOCHS, TOLD_FINISHED);
    }
    for (int i = 0; i < REPEATS; i++) {
        double at = cpu_ms();
        if (search_ask(&s, true, &p) != 1)
            die("no proposal");
        if (!p.again)
            tell(&s, &p, 1, TOLD_EPOCH);
        double ms = cpu_ms() - at;
        sum += ms;
        most = fmax(most, ms);
        if (p.again)
            tell(&s, &p, 2, TOLD_FAILED);
    }
    AUTO_BUF struct buf state = BUF_INIT;
    search_save(&s, &state);
    begin(&again, sp);
    double at = cpu_ms();
    if (search_restore(&again, state.data, state.len) < 0)
        die("a state that cannot be restored");
    printf("curves_decision_%d_%d %.3f ms %d\n", trials, EPOCHS, sum / REPEATS, trials <= 200 ? 20 : 150);
    printf("curves_decision_%d_%d_most %.1f ms\n", trials, EPOCHS, most);
    printf("curves_restore_%d_%d %.1f ms\n", trials, EPOCHS, cpu_ms() - at);
    search_done(&s);
    search_done(&again);
}

static void bench_forecast(int trials)
{
    double(*values)[EPOCHS] = calloc((size_t)trials, sizeof *values);
    struct forecast_curve *curves = calloc((size_t)trials, sizeof *curves);
    struct forecast *f = NULL;
    struct foretold t;
    struct rng r = rng_seeded(3);
    if (!values || !curves)
        die("no memory");
    for (int i = 0; i < trials; i++) {
        double gain = rng_unit(&r), rate = rng_between(&r, 3, 30);
        for (int k = 0; k < EPOCHS; k++)
            values[i][k] = 2 - gain * (1 - exp(-k / rate)) + 0.01 * rng_normal(&r);
        curves[i] = (struct forecast_curve){ values[i], EPOCHS, NULL };
    }
    struct forecast_curve begun = { values[0], 10, NULL };
    double at = cpu_ms();
    if (forecast_new(&f, EPOCHS, false, 0, curves, (size_t)trials) < 0 || forecast_at(f, &begun, EPOCHS, &t) < 0)
        die("no forecast");
    printf("forecast_%d_%d %.3f ms %d\n", trials, EPOCHS, cpu_ms() - at, trials <= 200 ? 20 : 150);
    at = cpu_ms();
    for (int i = 0; i < REPEATS; i++)
        if (forecast_at(f, &begun, EPOCHS, &t) < 0)
            die("no forecast");
    printf("forecast_again_%d_%d %.3f ms 1\n", trials, EPOCHS, (cpu_ms() - at) / REPEATS);
    forecast_free(f);
    free(values);
    free(curves);
}

int main(void)
{
    struct space sp = space_8();
    bench_decisions(&sp, 200);
    bench_decisions(&sp, 1000);
    bench_forecast(60);
    bench_forecast(200);
    bench_forecast(1000);
    space_done(&sp);
    return 0;
}
