/* The store at 100,000 trials: opening it and listing it, and what one transition costs. Leaves the slower of the two stores as
 * build/bench/ls.db, for `pipetune ls` to be timed on. Lines are `name value unit [goal]`; remarks begin with #. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "store/fs.h"
#include "store/store.h"

enum { TRIALS = 100000, STUDIES = 1000, RUNS = 5, TRANSITIONS = 2000, BATCH = 5000 };

#define DIR "build/bench"
#define KEPT DIR "/ls.db"

/* They stand before libc's for SQLite too: every sync of this process is counted. */
static unsigned long syncs;

int fsync(int fd)
{
    syncs++;
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    syncs++;
    return (int)syscall(SYS_fdatasync, fd);
}

static void must(int rc, const struct err *e)
{
    if (rc >= 0)
        return;
    (void)fprintf(stderr, "bench_store: %s\n", e->text);
    exit(1);
}

static double wall_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* always there */
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static double cpu_s(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u); /* cannot fail for oneself */
    return seconds(u.ru_utime) + seconds(u.ru_stime);
}

static void remove_store(const char *path)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        char name[128];
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        (void)unlink(name); /* most are not there */
    }
}

/* --- what a study leaves behind: per trial an attempt, two epochs, a tell, three decisions --- */
static char text_running[] = "running", text_finished[] = "finished", text_waiting[] = "waiting",
            text_ended[] = "ended";
static char argv_text[] =
    "[\"/opt/spark/bin/spark-submit\",\"--master\",\"local[2]\",\"--driver-memory\",\"4g\",\"--class\","
    "\"com.intel.analytics.bigdl.dllib.models.lenet.Train\",\"bigdl.jar\",\"-f\",\"data/mnist\",\"-b\",\"32\"]";

static int64_t add_study(struct store *s, const char *name, struct err *e)
{
    static char config[4096];
    memset(config, ' ', sizeof config - 1);
    char own_name[64];
    (void)snprintf(own_name, sizeof own_name, "%s", name);
    struct store_study row = {
        .name = own_name, .state = text_running, .config = config, .provenance = config, .maximise = true
    };
    int64_t id = 0;
    must(store_study_add(s, &row, &id, e), e);
    return id;
}

static struct store_trial propose(struct store *s, int64_t study, int number, struct err *e)
{
    char hyper[128], setting[] = "{\"cores\":2,\"memory\":4}";
    (void)snprintf(hyper, sizeof hyper, "{\"batch_size\":%d,\"learning_rate\":0.01,\"learning_rate_decay\":0.002}",
                   number);
    struct store_trial t = { .study = study,
                             .number = number,
                             .proposal = (uint64_t)number,
                             .state = text_waiting,
                             .hyper = hyper,
                             .requested = setting,
                             .effective = setting,
                             .epochs = 2,
                             .accuracy = NAN,
                             .loss = NAN,
                             .metric = NAN,
                             .seconds = NAN };
    must(store_trial_add(s, &t, e), e);
    struct store_decision d = {
        .trial = number, .kind = "propose", .setting = hyper, .reason = "the grid's next point"
    };
    must(store_decision_add(s, study, &d, e), e);
    t.hyper = t.requested = t.effective = NULL; /* they were this function's */
    return t;
}

static void train(struct store *s, struct store_trial *t, struct err *e)
{
    struct store_attempt a = { .trial = t->id, .state = text_ended, .outcome = text_finished, .argv = argv_text };
    must(store_attempt_add(s, &a, e), e);
    for (int epoch = 1; epoch <= 2; epoch++) {
        struct store_epoch row = { .trial = t->id, .epoch = epoch, .attempt = 1, .accuracy = 0.9, .metric = 0.9 };
        must(store_epoch_put(s, &row, e), e);
    }
    char hyper[64], setting[] = "{\"cores\":2,\"memory\":4}";
    (void)snprintf(hyper, sizeof hyper, "{\"batch_size\":%d,\"learning_rate\":0.01}", t->number);
    t->state = text_finished;
    t->hyper = hyper;
    t->requested = t->effective = setting;
    t->metric = t->accuracy = (double)(t->number * 7919 % 10007) / 10007; /* in no order, as searches do */
    t->seconds = 30.5;
    must(store_trial_update(s, t, e), e);
    struct store_tell tell = { .proposal = t->proposal, .epoch = 2, .value = t->metric, .done = true };
    must(store_tell_add(s, t->study, &tell, e), e);
    static const char *const kinds[] = { "launch", "finish" };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct store_decision d = { .trial = t->number, .kind = kinds[i], .setting = setting };
        must(store_decision_add(s, t->study, &d, e), e);
    }
}

static void fill(struct store *s, int studies, int trials, struct err *e)
{
    must(store_begin(s, e), e);
    for (int i = 0, n = 0; i < studies; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "study-%d", i + 1);
        int64_t study = add_study(s, name, e);
        for (int number = 1; number <= trials; number++, n++) {
            struct store_trial t = propose(s, study, number, e);
            train(s, &t, e);
            if (n % BATCH != 0)
                continue;
            must(store_commit(s, e), e);
            must(store_begin(s, e), e);
        }
    }
    must(store_commit(s, e), e);
}

/* --- reopen and list --- */
static int add_up(void *ctx, const struct store_summary *r)
{
    *(int *)ctx += r->done;
    return 0;
}

static double reopen_ls_once(const char *path, struct err *e)
{
    double start = wall_s();
    struct store *s = NULL;
    int done = 0;
    must(store_open(&s, path, STORE_READ, e), e);
    must(store_list(s, add_up, &done, e), e);
    store_close(s);
    double took = wall_s() - start;
    if (done != TRIALS)
        must(err_set(e, -1, "'%s' lists %d finished trials, not %d", path, done, TRIALS), e);
    return took;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void drop_from_memory(const char *path)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* a wish: the figure says "asked to" */
}

/* The median; the spread goes to a remark. */
static double reopen_ls(const char *what, const char *path, bool from_disk, struct err *e)
{
    double took[RUNS];
    for (int i = 0; i < RUNS; i++) {
        if (from_disk)
            drop_from_memory(path);
        took[i] = reopen_ls_once(path, e);
    }
    qsort(took, RUNS, sizeof took[0], by_value);
    printf("# reopen + ls, %s%s: median %.4f s of %d, %.4f to %.4f\n", what,
           from_disk ? ", page cache asked to forget it" : "", took[RUNS / 2], RUNS, took[0], took[RUNS - 1]);
    return took[RUNS / 2];
}

static double build_and_list(const char *what, const char *path, int studies, struct err *e)
{
    remove_store(path);
    struct store *s = NULL;
    must(store_open(&s, path, STORE_WRITE, e), e);
    double start = wall_s();
    fill(s, studies, TRIALS / studies, e);
    store_close(s);
    printf("# %s built in %.1f s\n", what, wall_s() - start);
    (void)reopen_ls(what, path, true, e);
    return reopen_ls(what, path, false, e);
}

static void bench_reopen_ls(struct err *e)
{
    static const char one_path[] = DIR "/ls-one.db", many_path[] = DIR "/ls-many.db";
    double one = build_and_list("1 study of 100000 trials", one_path, 1, e);
    double many = build_and_list("1000 studies of 100 trials", many_path, STUDIES, e);
    const char *worse = one >= many ? one_path : many_path;
    remove_store(KEPT);
    if (rename(worse, KEPT) < 0)
        must(err_sys(e, -1, "cannot rename '%s'", worse), e);
    remove_store(one_path);
    remove_store(many_path);
    printf("store_reopen_ls %.4f s 1\n", one >= many ? one : many);
}

/* --- one transition: a trial proposed and stored with its decision --- */
static unsigned long transition(struct store *s, int64_t study, int number, struct err *e)
{
    unsigned long before = syncs;
    must(store_begin(s, e), e);
    (void)propose(s, study, number, e);
    must(store_commit(s, e), e);
    return syncs - before;
}

static void bench_transition(struct err *e)
{
    static const char path[] = DIR "/transition.db";
    remove_store(path);
    struct store *s = NULL;
    must(store_open(&s, path, STORE_WRITE, e), e);
    int64_t study = add_study(s, "s", e);
    static double each[TRANSITIONS];
    double sum = 0;
    double cpu = cpu_s(), wall = wall_s();
    for (int i = 0; i < TRANSITIONS; i++)
        sum += each[i] = (double)transition(s, study, i + 1, e);
    cpu = cpu_s() - cpu;
    wall = wall_s() - wall;
    store_close(s);
    remove_store(path);
    printf("store_transition %.1f us 300\n", cpu / TRANSITIONS * 1e6);
    printf("store_transition_wall %.3f ms\n", wall / TRANSITIONS * 1e3);
    qsort(each, TRANSITIONS, sizeof each[0], by_value);
    printf("store_fsyncs_per_transition %.0f n 1\n", each[TRANSITIONS / 2]);
    printf("# that is the median; %.0f syncs for %d transitions, as each 1000 pages of WAL are merged into the file: "
           "mean %.3f,"
           " most %.0f\n",
           sum, TRANSITIONS, sum / TRANSITIONS, each[TRANSITIONS - 1]);
}

int main(void)
{
    struct err e = { 0 };
    must(io_mkdirs(DIR, &e), &e);
    char type[FS_TYPE_MAX];
    must(fs_type(DIR, type, &e), &e);
    printf("# file system: %s\n", type);
    bench_transition(&e);
    bench_reopen_ls(&e);
    return 0;
}
