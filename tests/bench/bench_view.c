/* What it takes to see a study of 10,000 trials with 20 epochs each, first and again. Lines are `name value unit [goal]`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "view/view.h"

enum { TRIALS = 10000, EPOCHS = 20, AGAIN = 1000 };

#define DIR "build/bench"
#define STORE DIR "/view.db"
#define TEXT(literal) ((char *)(uintptr_t)(literal))

static void must(int rc, const struct err *e)
{
    if (rc >= 0)
        return;
    (void)fprintf(stderr, "bench_view: %s\n", e->text);
    exit(1);
}

/* CPU time: what else runs does not count. */
static double cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* always there */
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int64_t add_trial(struct store *s, int64_t study, int number, struct err *e)
{
    char hyper[96];
    (void)snprintf(hyper, sizeof hyper, "{\"batch_size\":%d,\"learning_rate\":%.17g}", 32 << number % 4, 0.1 / number);
    struct store_trial t = { .study = study,
                             .number = number,
                             .proposal = (uint64_t)number,
                             .state = TEXT(number % 100 ? "finished" : "running"),
                             .epochs = EPOCHS,
                             .hyper = hyper,
                             .requested = TEXT("{\"cores\":16,\"memory\":2}"),
                             .effective = TEXT("{\"cores\":2,\"memory\":2}"),
                             .metric = 0.9,
                             .seconds = 20 };
    must(store_trial_add(s, &t, e), e);
    struct store_attempt a = { .trial = t.id,
                               .state = TEXT("ended"),
                               .outcome = TEXT("finished"),
                               .launch = TEXT("pipetune-0123456789abcdef"),
                               .argv = TEXT(
                                   "[\"spark-submit\",\"--master\",\"local[2]\",\"an application with its words\"]"),
                               .startup_s = 2 };
    must(store_attempt_add(s, &a, e), e);
    for (int i = 1; i <= EPOCHS; i++) {
        struct store_epoch ep = {
            .trial = t.id, .epoch = i, .attempt = 1, .accuracy = 0.8, .loss = 0.2, .metric = 0.8, .seconds = 1
        };
        must(store_epoch_put(s, &ep, e), e);
    }
    return t.id;
}

static void fill(struct store *s, struct err *e)
{
    struct store_study row = {
        .name = TEXT("s"), .state = TEXT("running"), .config = TEXT("{\"study\":{\"epochs\":20}}"), .maximise = true
    };
    int64_t study = 0;
    must(store_begin(s, e), e);
    must(store_study_add(s, &row, &study, e), e);
    for (int i = 1; i <= TRIALS; i++)
        (void)add_trial(s, study, i, e);
    must(store_commit(s, e), e);
}

int main(void)
{
    struct err e = { 0 };
    struct store *writer = NULL, *reader = NULL;
    struct view v;
    must(io_mkdirs(DIR, &e), &e);
    (void)unlink(STORE);
    must(store_open(&writer, STORE, STORE_WRITE, &e), &e);
    fill(writer, &e);
    must(store_open(&reader, STORE, STORE_READ, &e), &e);
    double at = cpu_s();
    must(view_open(&v, reader, "s", NULL, 1, &e), &e);
    (void)printf("view_open %.3f s 0.5\n", cpu_s() - at);
    at = cpu_s();
    for (size_t i = 0; i < v.n; i++)
        must(view_epochs(&v, &v.trials[i], &e), &e);
    (void)printf("view_all_epochs %.3f s 0.5\n", cpu_s() - at);
    at = cpu_s();
    for (int i = 0; i < AGAIN; i++)
        must(view_refresh(&v, 1, &e), &e);
    (void)printf("view_refresh_of_nothing %.3f ms 1\n", (cpu_s() - at) * 1000 / AGAIN);
    struct store_epoch ep = { .trial = v.trials[99].row.id, .epoch = 21, .attempt = 1, .metric = 0.8, .seconds = 1 };
    double sum = 0;
    for (int i = 0; i < 100; i++) {
        ep.epoch++;
        must(store_epoch_put(writer, &ep, &e), &e);
        at = cpu_s();
        must(view_refresh(&v, 1, &e), &e);
        sum += cpu_s() - at;
    }
    (void)printf("view_refresh_of_an_epoch %.3f ms 5\n", sum * 10);
    view_done(&v);
    store_close(reader);
    store_close(writer);
    return 0;
}
