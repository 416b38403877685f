/* Both CSV forms on any bytes, and a queue of whatever was read: no crash, sane rows, a fault for each line that gives none. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "core/tune_replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_online(const char *text, size_t size)
{
    struct tune_online t = { 0 }, none = { 0 };
    struct csv_faults faults = { 0 };
    check(tune_online_parse(&t, text, size, &faults) == 0);
    for (size_t i = 0; i < t.n; i++) {
        const struct tune_online_row *r = &t.rows[i];
        check(*r->job && *r->load && r->cores >= 1 && r->epochs >= 1 && r->lr > 0 && !(r->queue_s < 0));
    }
    struct tune_replay_result result = { 0 };
    struct err e;
    check(tune_replay(&result, &t, &none, &e) == 0 && result.n >= 1);
    check(strcmp(result.jobs[result.n - 1].name, "all") == 0);
    tune_replay_result_done(&result);
    tune_online_done(&t);
    csv_faults_done(&faults);
}

static void check_offline(const char *text, size_t size)
{
    struct tune_offline t = { 0 };
    struct csv_faults faults = { 0 };
    check(tune_offline_parse(&t, text, size, &faults) == 0);
    size_t had = t.n, had_faults = faults.n;
    check(tune_offline_parse(&t, text, size, &faults) == 0);
    check(t.n == 2 * had && faults.n == 2 * had_faults);
    struct tune_sum s;
    tune_sum_of(&s, &t);
    check(s.trials == t.n && !(s.time_s < 0));
    tune_offline_done(&t);
    csv_faults_done(&faults);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *text = malloc(size + 1); /* the name's end; the parsers are told the length */
    check(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    check_online(text, size);
    check_offline(text, size);
    struct tune_name n;
    tune_name_parse(&n, text);
    check(*n.job && *n.cores && *n.version && tune_name_compare(&n, &n) == 0);
    return 0;
}
