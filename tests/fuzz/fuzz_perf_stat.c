/* Text of perf stat, of any bytes: sane cells, and a text cut anywhere gives no cell that the whole one has not. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/perf_stat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_cell(const struct perf_stat *p, const struct perf_stat_cell *c)
{
    check(c->interval < p->n_intervals && c->event < p->events.n && c->state <= PERF_STAT_NOT_SUPPORTED);
    check(isnan(c->value) == (c->state > PERF_STAT_MULTIPLEXED));
    check(c->ratio >= 0 && c->ratio <= 1);
}

static struct perf_stat parse(const char *text, size_t len)
{
    struct csv_faults faults = { 0 };
    struct perf_stat p;
    check(perf_stat_parse(&p, text, len, &faults) == 0);
    csv_faults_done(&faults);
    check(p.events.n == p.units.n && p.events.n <= PERF_STAT_EVENTS_MAX);
    for (size_t i = 0; i < p.n_cells; i++)
        check_cell(&p, &p.cells[i]);
    return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct perf_stat all = parse(text, size);
    size_t len = size ? data[0] * size / 256 : 0;
    while (len > 0 && text[len - 1] != '\n')
        len--;
    struct perf_stat part = parse(text, len); /* whole lines */
    check(part.n_cells <= all.n_cells && part.n_intervals <= all.n_intervals && part.events.n <= all.events.n);
    for (size_t i = 0; i < part.events.n; i++)
        check(strcmp(part.events.v[i], all.events.v[i]) == 0);
    perf_stat_done(&part);
    perf_stat_done(&all);
    return 0;
}
