/* gen-store STORE NAME TRIALS EPOCHS: a study of so many trials in the store, as a search leaves them: nearly all finished, some
 * failed, the last two under way. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"

enum { BATCH = 500 };

static const int64_t t0_ms = INT64_C(1700000000000);

static int add_study(struct store *s, const char *name, int64_t *out, struct err *e)
{
    struct store_study row = {
        .name = (char *)(uintptr_t)name,
        .state = (char *)(uintptr_t) "running",
        .config =
            (char
                 *)(uintptr_t) "{\"study\":{\"metric\":\"accuracy\",\"epochs\":20},\"hyperParameters\":{"
                               "\"batch_size\":[32,64,128,256],\"learning_rate\":{\"min\":0.0001,\"max\":0.1,\"scale\":"
                               "\"log\"},\"optimizer\":[\"sgd\",\"adam\",\"<b>rms</b>\"]}}",
        .space_hash = (char *)(uintptr_t) "0123456789abcdef",
        .provenance = (char *)(uintptr_t) "{\"host\":\"here\"}",
        .maximise = true,
        .seed = 1,
        .created_ms = t0_ms,
    };
    return store_study_add(s, &row, out, e);
}

static double noise(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return (double)(*seed >> 16 & 0x7fff) / 0x7fff;
}

static int add_epochs(struct store *s, int64_t trial, int epochs, double top, unsigned *seed, struct err *e)
{
    int rc = 0;
    for (int i = 1; rc == 0 && i <= epochs; i++) {
        double x = top * (1 - exp(-0.2 * i)) + 0.01 * noise(seed);
        struct store_epoch row = { .trial = trial,
                                   .epoch = i,
                                   .attempt = 1,
                                   .accuracy = x,
                                   .loss = 1 - x,
                                   .metric = x,
                                   .seconds = 2 + noise(seed),
                                   .records = 60000,
                                   .iterations = 100,
                                   .end_ms = t0_ms };
        rc = store_epoch_put(s, &row, e);
    }
    return rc;
}

static int add_attempt(struct store *s, int64_t trial, int number, const char *state, const char *outcome,
                       struct err *e)
{
    int64_t begun_ms = t0_ms + (int64_t)number * 30000;
    struct store_attempt row = { .trial = trial,
                                 .state = (char *)(uintptr_t)state,
                                 .outcome = (char *)(uintptr_t)outcome,
                                 .launch = (char *)(uintptr_t) "pt",
                                 .argv = (char *)(uintptr_t) "[\"train\",\"--epochs\",\"20\"]",
                                 .setting = (char *)(uintptr_t)(number % 2 ? "{\"cores\":2}" : "{\"cores\":4}"),
                                 .started_ms = begun_ms,
                                 .ended_ms = outcome ? begun_ms + 50000 : 0,
                                 .exit_code = outcome ? 0 : -1,
                                 .cores = number % 2 ? 2 : 4,
                                 .first_epoch = 1 };
    return store_attempt_add(s, &row, e);
}

static int add_trial(struct store *s, int64_t study, int number, int trials, int epochs, struct err *e)
{
    static const char *const optimizers[] = { "sgd", "adam", "<b>rms</b>" };
    unsigned seed = (unsigned)number * 7919u;
    bool runs = number > trials - 2, fails = !runs && number % 50 == 0;
    const char *state = runs ? "running" : fails ? "failed" : "finished";
    double rate = 0.0001 * pow(1000, noise(&seed)), top = 0.99 - 0.1 * fabs(log10(rate) + 2.5) - 0.05 * noise(&seed);
    char hyper[200];
    (void)snprintf(hyper, sizeof hyper, "{\"batch_size\":%d,\"learning_rate\":%.6g,\"optimizer\":\"%s\"}",
                   32 << (number % 4), rate, optimizers[number % 3]);
    int done = fails ? 3 : runs ? 2 : epochs;
    double metric = fails ? (double)NAN : top * (1 - exp(-0.2 * done));
    struct store_trial row = { .study = study,
                               .number = number,
                               .proposal = (uint64_t)number,
                               .state = (char *)(uintptr_t)state,
                               .epochs = epochs,
                               .hyper = hyper,
                               .requested = (char *)(uintptr_t) "{\"cores\":16}",
                               .effective = (char *)(uintptr_t)(number % 2 ? "{\"cores\":2}" : "{\"cores\":4}"),
                               .accuracy = metric,
                               .loss = 1 - metric,
                               .metric = metric,
                               .seconds = 50,
                               .reason =
                                   fails ? (char *)(uintptr_t) "java heap space: <img src=x onerror=alert(1)>" : NULL };
    struct store_decision d = { .trial = number,
                                .t_s = number * 30.0 + 10,
                                .kind = "settle",
                                .setting = "{\"cores\":2}",
                                .reason = "the cheapest that is no slower" };
    int rc = store_trial_add(s, &row, e);
    if (rc == 0)
        rc = add_attempt(s, row.id, number, runs ? "running" : "ended", runs ? NULL : fails ? "failed" : "finished", e);
    if (rc == 0)
        rc = add_epochs(s, row.id, done, top, &seed, e);
    return rc == 0 ? store_decision_add(s, study, &d, e) : rc;
}

static int fill(struct store *s, const char *name, int trials, int epochs, struct err *e)
{
    int64_t study = 0;
    int rc = add_study(s, name, &study, e);
    for (int i = 1; rc == 0 && i <= trials; i++) {
        if (i % BATCH == 1)
            rc = store_begin(s, e);
        if (rc == 0)
            rc = add_trial(s, study, i, trials, epochs, e);
        if (rc == 0 && (i % BATCH == 0 || i == trials))
            rc = store_commit(s, e);
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct store *s = NULL;
    struct err e = { 0 };
    if (argc != 5) {
        fputs("usage: gen-store STORE NAME TRIALS EPOCHS\n", stderr);
        return 2;
    }
    int rc = store_open(&s, argv[1], STORE_WRITE, &e);
    if (rc == 0)
        rc = fill(s, argv[2], (int)strtol(argv[3], NULL, 10), (int)strtol(argv[4], NULL, 10), &e);
    store_close(s);
    if (rc < 0)
        fprintf(stderr, "gen-store: %s\n", e.text);
    return rc < 0;
}
