/* bench_search_open ALGORITHM STOP WORKERS SEED BUDGET: a search over an open space, whose curves somebody else trains; tests/bench/search/peers.py is that.
 * It is src/search/search_replay's, as over a table.
 *
 * From standard input first two lines: {"hyperParameters":{…}}, and {"metric":…,"direction":…,"epochs":n,"worst":x,"best":x,"median":x}. Then it prints
 * {"hyper":{…},"epoch":n} for each epoch that it trains, and is answered {"value":x}, null: it diverged. The last line is
 * {"best":{"50":x,…},"trials":n,"epochs":n,"decision_ms":x}. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/own.h"
#include "search/search_replay.h"

static const double marks[] = { 50, 100, 200, 500, 1000 };

struct trainer {
    struct space space;
    double worst;
    char *line; /* the newest that was read */
    size_t room;
};

static void die(const char *what)
{
    fprintf(stderr, "bench_search_open: %s\n", what);
    exit(1);
}

static double cpu_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static json_t *read_line(struct trainer *t)
{
    if (getline(&t->line, &t->room, stdin) < 0)
        return NULL;
    return json_loads(t->line, 0, NULL);
}

static void say(struct buf *line)
{
    buf_putc(line, '\n');
    if (line->failed || fputs(buf_text(line), stdout) < 0 || fflush(stdout) != 0)
        die("nobody listens");
}

static int trained(void *ctx, const struct point *of, int epoch, struct curve_epoch *out, struct err *e)
{
    struct trainer *t = ctx;
    AUTO_BUF struct buf line = BUF_INIT;
    AUTO_JSON json_t *hyper = space_point_json(&t->space, of);
    buf_puts(&line, "{\"hyper\":");
    json_put(&line, hyper, JSON_STYLE_COMPACT);
    buf_printf(&line, ",\"epoch\":%d}", epoch);
    say(&line);
    AUTO_JSON json_t *answer = read_line(t);
    const json_t *value = json_object_get(answer, "value");
    if (!json_is_number(value) && !json_is_null(value))
        return err_set(e, -EPROTO, "epoch %d was not answered by a value", epoch);
    *out = (struct curve_epoch){ .value = json_is_null(value) ? t->worst : json_number_value(value),
                                 .seconds = NAN,
                                 .joules = NAN };
    return 0;
}

static void read_space(struct trainer *t)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct err e = { .text = "no space came" };
    ssize_t n = getline(&t->line, &t->room, stdin);
    if (n < 0 || json_doc_parse(&doc, "space", t->line, (size_t)n, &e) < 0 || space_parse(&t->space, &doc, &e) < 0)
        die(e.text);
}

static double number_of(const json_t *head, const char *key)
{
    const json_t *x = json_object_get(head, key);
    if (!json_is_number(x))
        die("the second line lacks a number");
    return json_number_value(x);
}

static void put_result(const struct search_replay_cfg *cfg, const struct search_replay_result *r, double spent_ms)
{
    AUTO_BUF struct buf line = BUF_INIT;
    buf_puts(&line, "{\"best\":{");
    for (size_t i = 0; i < cfg->n_at; i++)
        buf_printf(&line, "%s\"%g\":%.17g", i ? "," : "", cfg->at[i], r->best[i]);
    buf_printf(&line, "},\"trials\":%d,\"epochs\":%d,\"decision_ms\":%g}", (int)r->trials, (int)r->epochs,
               spent_ms / (double)(r->decisions ? r->decisions : 1));
    say(&line);
}

int main(int argc, char **argv)
{
    struct trainer t = { 0 };
    double regret[ARRAY_LEN(marks)] = { 0 }, best[ARRAY_LEN(marks)] = { 0 };
    struct err e = { 0 };
    if (argc != 6)
        die("ALGORITHM STOP WORKERS SEED BUDGET are wanted");
    read_space(&t);
    AUTO_JSON json_t *head = read_line(&t);
    const char *metric = json_string_value(json_object_get(head, "metric"));
    const char *direction = json_string_value(json_object_get(head, "direction"));
    if (!metric || !direction)
        die("the second line lacks 'metric' or 'direction'");
    struct curve_source from = { .space = &t.space,
                                 .metric = metric,
                                 .maximise = strcmp(direction, "max") == 0,
                                 .epochs = (int)number_of(head, "epochs"),
                                 .worst = number_of(head, "worst"),
                                 .scale = { number_of(head, "best"), number_of(head, "median") },
                                 .epoch = trained,
                                 .ctx = &t };
    struct search_replay_cfg cfg = {
        .algorithm = argv[1],
        .stop = argv[2],
        .search = { .min_epochs = 1, .can_pause = true, .seed = strtoull(argv[4], NULL, 10) },
        .workers = (int)strtol(argv[3], NULL, 10),
        .budget = strtod(argv[5], NULL),
        .at = marks
    };
    while (cfg.n_at < ARRAY_LEN(marks) && marks[cfg.n_at] <= cfg.budget)
        cfg.n_at++;
    struct search_replay_result r = { .regret = regret, .best = best };
    t.worst = from.worst;
    double begun = cpu_ms();
    if (search_replay_from(&from, &cfg, &r, &e) < 0)
        die(e.text);
    put_result(&cfg, &r, cpu_ms() - begun);
    space_done(&t.space);
    free(t.line);
    return 0;
}
