/* An experiment's file of any bytes: an error that explains itself on one line, or arrivals in order and rows that the replays read. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/experiment.h"
#include "core/tune_csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void use(const struct experiment *x)
{
    size_t n = experiment_studies(x);
    struct experiment_arrival *arrivals = calloc(n, sizeof *arrivals);
    struct experiment_row *rows = calloc(n, sizeof *rows);
    struct buf b = BUF_INIT;
    struct tune_online back = { 0 };
    struct csv_faults faults = { 0 };
    check(n > 0 && arrivals && rows);
    experiment_arrive(arrivals, x, isnan(x->service_s) ? 60 : x->service_s);
    for (size_t i = 0; i < n; i++) {
        check(arrivals[i].job < x->n_jobs && arrivals[i].at_s >= (i ? arrivals[i - 1].at_s : 0));
        rows[i] = (struct experiment_row){ .job = arrivals[i].job,
                                           .number = (int)i + 1,
                                           .arrived_s = arrivals[i].at_s,
                                           .started_s = arrivals[i].at_s,
                                           .ended_s = arrivals[i].at_s + 1,
                                           .error = NAN,
                                           .tuning_j = NAN,
                                           .lr = 0.1,
                                           .batch = 32,
                                           .epochs = 1,
                                           .cores = 1 };
    }
    check(experiment_put_online_csv(&b, x, rows, n, 0) == 0 && !b.failed);
    check(tune_online_parse(&back, b.data, b.len, &faults) == 0 && faults.n == 0 && back.n == n);
    tune_online_done(&back);
    csv_faults_done(&faults);
    buf_done(&b);
    free(arrivals);
    free(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = { 0 };
    struct json_doc doc = { 0 };
    struct experiment x = { 0 };
    int rc = json_doc_parse(&doc, "x.json", (const char *)data, size, &e);
    if (rc == 0) {
        rc = experiment_parse(&x, &doc, &e);
        check(rc == 0 || (e.text[0] && !strchr(e.text, '\n') && e.code == rc));
        if (rc == 0)
            use(&x);
    }
    experiment_done(&x);
    json_doc_done(&doc);
    return 0;
}
