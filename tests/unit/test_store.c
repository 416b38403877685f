/* The store: what goes in comes out, and nothing that was committed is lost whatever fails or dies. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/capability.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/own.h"
#include "store/fs.h"
#include "store/models.h"
#include "store/samples.h"
#include "store/schema.h"
#include "store/store.h"
#include "tests/cells.h"
#include "tests/fault.h"

/* --- SQLite's own calls fail or kill, one after another --- */
enum strike { STRIKE_NEVER, STRIKE_ALLOC, STRIKE_IO, STRIKE_KILL };
static enum strike armed;
static unsigned strike_left;
static bool struck, sync_for_real = true;

static void arm(enum strike kind, unsigned nth)
{
    armed = kind;
    strike_left = nth;
    struck = false;
}

static bool disarm(void)
{
    armed = STRIKE_NEVER;
    return struck;
}

static bool strikes(enum strike kind)
{
    if (armed != kind || struck || --strike_left > 0)
        return false;
    struck = true;
    return true;
}

/* Any call that changes a file. */
static bool io_strikes(int error)
{
    if (strikes(STRIKE_KILL))
        (void)raise(SIGKILL);
    if (!strikes(STRIKE_IO))
        return false;
    errno = error;
    return true;
}

static ssize_t io_write(int fd, const void *p, size_t n)
{
    return io_strikes(ENOSPC) ? -1 : write(fd, p, n);
}

static ssize_t io_pwrite(int fd, const void *p, size_t n, off_t at)
{
    return io_strikes(ENOSPC) ? -1 : pwrite(fd, p, n, at);
}

static int io_ftruncate(int fd, off_t n)
{
    return io_strikes(EIO) ? -1 : ftruncate(fd, n);
}

static int io_unlink(const char *path)
{
    return io_strikes(EIO) ? -1 : unlink(path);
}

/* These stand before libc's for SQLite too. */
int fdatasync(int fd)
{
    if (io_strikes(EIO))
        return -1;
    return sync_for_real ? (int)syscall(SYS_fdatasync, fd) : 0;
}

int fsync(int fd)
{
    if (io_strikes(EIO))
        return -1;
    return sync_for_real ? (int)syscall(SYS_fsync, fd) : 0;
}

static sqlite3_mem_methods real_mem;

static void *mem_malloc(int n)
{
    return strikes(STRIKE_ALLOC) ? NULL : real_mem.xMalloc(n);
}

static void *mem_realloc(void *p, int n)
{
    return strikes(STRIKE_ALLOC) ? NULL : real_mem.xRealloc(p, n);
}

static int intercept_sqlite(void)
{
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_mem) != SQLITE_OK)
        return -1;
    sqlite3_mem_methods m = real_mem;
    m.xMalloc = mem_malloc;
    m.xRealloc = mem_realloc;
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &m) != SQLITE_OK || sqlite3_initialize() != SQLITE_OK)
        return -1;
    static const struct {
        const char *name;
        sqlite3_syscall_ptr call;
    } calls[] = {
        { "write", (sqlite3_syscall_ptr)io_write },     { "pwrite", (sqlite3_syscall_ptr)io_pwrite },
        { "pwrite64", (sqlite3_syscall_ptr)io_pwrite }, { "ftruncate", (sqlite3_syscall_ptr)io_ftruncate },
        { "unlink", (sqlite3_syscall_ptr)io_unlink },
    };
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        (void)vfs->xSetSystemCall(vfs, calls[i].name, calls[i].call); /* not every build has every call */
    return 0;
}

/* --- a folder and a store for each test --- */
struct fix {
    char dir[64];
    char path[96];
    struct store *s;
    struct err e;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void remove_store(const struct fix *f)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "%s%s", f->path, suffixes[i]);
        (void)unlink(path); /* most are not there */
    }
}

static int set_up(void **state)
{
    struct fix *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pipetune-store-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    (void)snprintf(f->path, sizeof f->path, "%s/pipetune.db", f->dir);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fix *f = *state;
    (void)disarm();
    sync_for_real = true;
    store_close(f->s);
    (void)nftw(f->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(f);
    return 0;
}

#define assert_ok(f, call)                                                                                             \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ < 0)                                                                                                   \
            fail_msg("%s: %d: %s", #call, rc_, (f)->e.text);                                                           \
    } while (0)

static void open_write(struct fix *f)
{
    assert_ok(f, store_open(&f->s, f->path, STORE_WRITE, &f->e));
}

static void shut(struct fix *f)
{
    store_close(f->s);
    f->s = NULL;
}

/* --- rows to put in --- */
static struct store_study a_study(const char *name, bool maximise)
{
    return (struct store_study){ .name = (char *)(uintptr_t)name,
                                 .state = (char *)(uintptr_t) "running",
                                 .config = (char *)(uintptr_t) "{}",
                                 .maximise = maximise,
                                 .created_ms = 1700000000000 };
}

static struct store_trial a_trial(int64_t study, int number)
{
    return (struct store_trial){ .study = study,
                                 .number = number,
                                 .proposal = (uint64_t)number,
                                 .state = (char *)(uintptr_t) "waiting",
                                 .hyper = (char *)(uintptr_t) "{\"batch_size\":32}",
                                 .effective = (char *)(uintptr_t) "{\"cores\":2}",
                                 .epochs = 5,
                                 .accuracy = NAN,
                                 .loss = NAN,
                                 .metric = NAN,
                                 .seconds = NAN };
}

static struct store_attempt an_attempt(int64_t trial)
{
    return (struct store_attempt){
        .trial = trial, .state = (char *)(uintptr_t) "starting", .exit_code = -1, .first_epoch = 1
    };
}

static int64_t add_study(struct fix *f, const char *name, bool maximise)
{
    int64_t id = 0;
    struct store_study row = a_study(name, maximise);
    assert_ok(f, store_study_add(f->s, &row, &id, &f->e));
    return id;
}

static struct store_trial add_trial(struct fix *f, int64_t study, int number)
{
    struct store_trial t = a_trial(study, number);
    assert_ok(f, store_trial_add(f->s, &t, &f->e));
    return t;
}

static void finish_trial(struct fix *f, int64_t study, int number, double metric, double accuracy)
{
    struct store_trial t = add_trial(f, study, number);
    t.state = (char *)(uintptr_t) "finished";
    t.metric = metric;
    t.accuracy = accuracy;
    t.seconds = 10;
    assert_ok(f, store_trial_update(f->s, &t, &f->e));
}

/* --- what came out --- */
enum { MANY = 16 };
struct got_trials {
    int n;
    struct store_trial row[MANY];
};
struct got_attempts {
    int n;
    struct store_attempt row[MANY];
};
struct got_epochs {
    int n;
    struct store_epoch row[MANY];
};
struct got_tells {
    int n;
    struct store_tell row[MANY];
};
struct got_summaries {
    int n;
    struct store_summary row[MANY];
    char name[MANY][32];
};

static int keep_trial(void *ctx, const struct store_trial *r)
{
    struct got_trials *g = ctx;
    assert_true(g->n < MANY);
    return store_trial_copy(&g->row[g->n++], r);
}

static int keep_attempt(void *ctx, const struct store_attempt *r)
{
    struct got_attempts *g = ctx;
    assert_true(g->n < MANY);
    return store_attempt_copy(&g->row[g->n++], r);
}

static int keep_epoch(void *ctx, const struct store_epoch *r)
{
    struct got_epochs *g = ctx;
    assert_true(g->n < MANY);
    g->row[g->n++] = *r;
    return 0;
}

static int keep_cells(void *ctx, const struct store_sample *r)
{
    cells_put(ctx, r->v);
    return 0;
}

static int keep_tell(void *ctx, const struct store_tell *t)
{
    struct got_tells *g = ctx;
    assert_true(g->n < MANY);
    g->row[g->n++] = *t;
    return 0;
}

static int keep_summary(void *ctx, const struct store_summary *r)
{
    struct got_summaries *g = ctx;
    assert_true(g->n < MANY);
    (void)snprintf(g->name[g->n], sizeof g->name[0], "%s %s", r->name, r->state);
    g->row[g->n++] = *r;
    return 0;
}

static void done_trials(struct got_trials *g)
{
    for (int i = 0; i < g->n; i++)
        store_trial_done(&g->row[i]);
}

static void done_attempts(struct got_attempts *g)
{
    for (int i = 0; i < g->n; i++)
        store_attempt_done(&g->row[i]);
}

static int count_trial(void *ctx, const struct store_trial *r)
{
    (void)r;
    ++*(int *)ctx;
    return 0;
}

static int count_decision(void *ctx, const struct store_decision *d)
{
    (void)d;
    ++*(int *)ctx;
    return 0;
}

static int count_summary(void *ctx, const struct store_summary *r)
{
    *(int *)ctx += r->trials;
    return 0;
}

static void assert_text(const char *got, const char *want)
{
    if (!got || !want)
        assert_ptr_equal(got, want);
    else
        assert_string_equal(got, want);
}

static void assert_real(double got, double want)
{
    if (got != want && !(isnan(got) && isnan(want)))
        fail_msg("got %.17g, want %.17g", got, want);
}

/* --- round trips --- */
static void test_a_study_comes_back_as_it_was_put(void **state)
{
    struct fix *f = *state;
    open_write(f);
    struct store_study put = { .name = (char *)(uintptr_t) "mnist'\"; é",
                               .state = (char *)(uintptr_t) "running",
                               .config = (char *)(uintptr_t) "{\"a\":1}",
                               .space_hash = (char *)(uintptr_t) "0123456789abcdef",
                               .provenance = NULL,
                               .maximise = true,
                               .seed = INT64_MIN,
                               .created_ms = 1700000000123,
                               .ended_ms = 0 };
    int64_t id = 0;
    assert_ok(f, store_study_add(f->s, &put, &id, &f->e));
    assert_ok(f, store_study_set_state(f->s, id, "finished", 1700000009999, &f->e));
    shut(f);
    open_write(f);
    struct store_study got;
    assert_int_equal(store_study_find(f->s, put.name, &got, &f->e), 1);
    assert_int_equal(got.id, id);
    assert_text(got.name, put.name);
    assert_text(got.state, "finished");
    assert_text(got.config, put.config);
    assert_text(got.space_hash, put.space_hash);
    assert_text(got.provenance, NULL);
    assert_true(got.maximise);
    assert_true(got.seed == INT64_MIN);
    assert_true(got.created_ms == 1700000000123 && got.ended_ms == 1700000009999);
    store_study_done(&got);
    store_study_done(&got); /* twice is fine */
    store_study_done(NULL);
    assert_int_equal(store_study_find(f->s, "other", &got, &f->e), 0);
}

static void assert_trials_equal(const struct store_trial *a, const struct store_trial *b)
{
    assert_true(a->id == b->id && a->study == b->study && a->number == b->number);
    assert_true(a->proposal == b->proposal && a->ask_seq == b->ask_seq);
    assert_true(a->epochs == b->epochs && a->slots == b->slots && a->copy_of == b->copy_of);
    assert_text(a->state, b->state);
    assert_text(a->hyper, b->hyper);
    assert_text(a->requested, b->requested);
    assert_text(a->effective, b->effective);
    assert_text(a->reason, b->reason);
    assert_real(a->accuracy, b->accuracy);
    assert_real(a->loss, b->loss);
    assert_real(a->metric, b->metric);
    assert_real(a->seconds, b->seconds);
}

static void test_trials_come_back_as_they_were_put(void **state)
{
    struct fix *f = *state;
    open_write(f);
    int64_t study = add_study(f, "s", true);
    struct store_trial first = a_trial(study, 1);
    first.proposal = UINT64_MAX - 1; /* above 2^63 */
    first.effective = NULL;
    first.requested = (char *)(uintptr_t) "";
    assert_ok(f, store_trial_add(f->s, &first, &f->e));
    struct store_trial second = add_trial(f, study, 2);
    second.accuracy = 0.9914;
    second.loss = -1e-300;
    second.metric = INFINITY;
    second.seconds = 0.1 + 0.2;
    second.slots = 4096;
    second.copy_of = 1;
    second.state = (char *)(uintptr_t) "finished";
    second.reason = (char *)(uintptr_t) "";
    second.hyper = (char *)(uintptr_t) "{\"lr\":0.1}";
    assert_ok(f, store_trial_update(f->s, &second, &f->e));
    shut(f);
    assert_ok(f, store_open(&f->s, f->path, STORE_READ, &f->e));
    struct got_trials got = { 0 };
    assert_ok(f, store_trials(f->s, study, 0, keep_trial, &got, &f->e));
    assert_int_equal(got.n, 2);
    assert_trials_equal(&got.row[0], &first);
    assert_trials_equal(&got.row[1], &second);
    done_trials(&got);
    got.n = 0;
    assert_ok(f, store_trials(f->s, study, 2, keep_trial, &got, &f->e));
    assert_int_equal(got.n, 1);
    assert_int_equal(got.row[0].number, 2);
    done_trials(&got);
}

static void test_an_update_leaves_what_names_the_trial(void **state)
{
    struct fix *f = *state;
    open_write(f);
    int64_t study = add_study(f, "s", true);
    struct store_trial t = add_trial(f, study, 1), changed = t;
    changed.number = 7;
    changed.proposal = 99;
    changed.ask_seq = 55;
    changed.study = 12345;
    assert_ok(f, store_trial_update(f->s, &changed, &f->e));
    struct got_trials got = { 0 };
    assert_ok(f, store_trials(f->s, study, 0, keep_trial, &got, &f->e));
    assert_int_equal(got.n, 1);
    assert_trials_equal(&got.row[0], &t);
    done_trials(&got);
}

static void test_attempts_come_back_and_are_counted(void **state)
{
    struct fix *f = *state;
    open_write(f);
    struct store_trial t = add_trial(f, add_study(f, "s", true), 1);
    static const char *const outcomes[] = { "failed", "interrupted", "failed" };
    struct store_attempt put[3];
    for (int i = 0; i < 3; i++) {
        put[i] = an_attempt(t.id);
        assert_ok(f, store_attempt_add(f->s, &put[i], &f->e));
        assert_int_equal(put[i].number, i + 1);
        put[i].state = (char *)(uintptr_t) "ended";
        put[i].outcome = (char *)(uintptr_t)outcomes[i];
        put[i].pid = 4194304;
        put[i].start_ticks = INT64_MAX;
        put[i].log_offset = 1ULL << 40;
        put[i].exit_code = 137;
        put[i].argv = (char *)(uintptr_t) "[\"spark-submit\"]";
        put[i].launch = (char *)(uintptr_t) "tag";
        put[i].boot_id = (char *)(uintptr_t) "boot";
        put[i].cause = (char *)(uintptr_t) "killed";
        put[i].started_ms = 1;
        put[i].ended_ms = 2;
        put[i].first_epoch = i + 1;
        put[i].setting = i ? (char *)(uintptr_t) "{\"cores\":2}" : NULL;
        put[i].startup_s = i ? 4.25 : (double)NAN;
        put[i].session = i;
        put[i].cores = i ? 1.5 : (double)NAN;
        assert_ok(f, store_attempt_update(f->s, &put[i], &f->e));
    }
    struct got_attempts got = { 0 };
    assert_ok(f, store_attempts(f->s, t.id, keep_attempt, &got, &f->e));
    assert_int_equal(got.n, 3);
    for (int i = 0; i < 3; i++) {
        const struct store_attempt *g = &got.row[i];
        assert_true(g->id == put[i].id && g->trial == t.id && g->number == i + 1 && g->pid == 4194304);
        assert_true(g->start_ticks == INT64_MAX && g->log_offset == 1ULL << 40 && g->exit_code == 137);
        assert_true(g->started_ms == 1 && g->ended_ms == 2 && g->first_epoch == i + 1);
        assert_text(g->outcome, outcomes[i]);
        assert_text(g->state, "ended");
        assert_text(g->argv, put[i].argv);
        assert_text(g->launch, "tag");
        assert_text(g->boot_id, "boot");
        assert_text(g->cause, "killed");
        assert_text(g->app_id, NULL);
        assert_text(g->resumed_from, NULL);
        assert_text(g->setting, put[i].setting);
        assert_real(g->startup_s, put[i].startup_s);
        assert_int_equal(g->session, i);
        assert_real(g->cores, put[i].cores);
    }
    done_attempts(&got);
    struct got_trials trials = { 0 };
    assert_ok(f, store_trials(f->s, t.study, 1, keep_trial, &trials, &f->e));
    assert_int_equal(trials.row[0].attempts, 3);
    assert_int_equal(trials.row[0].failures, 2);
    done_trials(&trials);
}

static void test_epochs_come_back_and_are_replaced(void **state)
{
    struct fix *f = *state;
    open_write(f);
    struct store_trial t = add_trial(f, add_study(f, "s", true), 1);
    struct store_epoch second = { .trial = t.id,
                                  .epoch = 2,
                                  .attempt = 1,
                                  .accuracy = 0.5,
                                  .loss = NAN,
                                  .metric = 0.5,
                                  .seconds = 1.25,
                                  .records = 60032,
                                  .iterations = 469,
                                  .learning_rate = NAN,
                                  .end_ms = 7 };
    struct store_epoch first = second;
    first.epoch = 1;
    assert_ok(f, store_epoch_put(f->s, &second, &f->e));
    assert_ok(f, store_epoch_put(f->s, &first, &f->e));
    second.attempt = 2;
    second.accuracy = 0.75;
    assert_ok(f, store_epoch_put(f->s, &second, &f->e));
    struct got_epochs got = { 0 };
    assert_ok(f, store_epochs(f->s, t.id, keep_epoch, &got, &f->e));
    assert_int_equal(got.n, 2);
    assert_int_equal(got.row[0].epoch, 1);
    const struct store_epoch *g = &got.row[1];
    assert_true(g->trial == t.id && g->epoch == 2 && g->attempt == 2 && g->iterations == 469 && g->end_ms == 7);
    assert_real(g->accuracy, 0.75);
    assert_real(g->loss, NAN);
    assert_real(g->metric, 0.5);
    assert_real(g->seconds, 1.25);
    assert_real(g->records, 60032);
    assert_real(g->learning_rate, NAN);
}

static void test_asks_and_tells_share_one_sequence(void **state)
{
    struct fix *f = *state;
    open_write(f);
    int64_t study = add_study(f, "s", true), other = add_study(f, "t", true);
    assert_int_equal(add_trial(f, study, 1).ask_seq, 1);
    struct store_tell first = { .proposal = UINT64_MAX, .epoch = 1, .value = 0.5, .done = false };
    assert_ok(f, store_tell_add(f->s, study, &first, &f->e));
    assert_int_equal(first.seq, 2);
    assert_int_equal(add_trial(f, study, 2).ask_seq, 3);
    struct store_tell last = { .proposal = 1, .epoch = 2, .value = NAN, .done = true };
    assert_ok(f, store_tell_add(f->s, study, &last, &f->e));
    assert_int_equal(last.seq, 4);
    assert_int_equal(add_trial(f, other, 1).ask_seq, 1); /* each study has its own */
    struct got_tells got = { 0 };
    assert_ok(f, store_tells(f->s, study, keep_tell, &got, &f->e));
    assert_int_equal(got.n, 2);
    assert_true(got.row[0].seq == 2 && got.row[0].proposal == UINT64_MAX && got.row[0].epoch == 1 && !got.row[0].done);
    assert_real(got.row[0].value, 0.5);
    assert_true(got.row[1].seq == 4 && got.row[1].done);
    assert_real(got.row[1].value, NAN);
}

static int check_decision(void *ctx, const struct store_decision *d)
{
    int n = ++*(int *)ctx;
    assert_int_equal(d->seq, n);
    assert_int_equal(d->trial, n - 1);
    assert_real(d->t_s, n * 0.5);
    assert_text(d->kind, "propose");
    assert_text(d->setting, n == 1 ? NULL : "{}");
    assert_text(d->reason, n == 1 ? "" : NULL);
    return 0;
}

static void test_decisions_are_told_in_order(void **state)
{
    struct fix *f = *state;
    open_write(f);
    int64_t study = add_study(f, "s", true);
    struct store_decision first = { .trial = 0, .t_s = 0.5, .kind = "propose", .reason = "" };
    struct store_decision second = { .trial = 1, .t_s = 1, .kind = "propose", .setting = "{}" };
    assert_ok(f, store_decision_add(f->s, study, &first, &f->e));
    assert_ok(f, store_decision_add(f->s, study, &second, &f->e));
    int n = 0;
    assert_ok(f, store_decisions(f->s, study, 0, check_decision, &n, &f->e));
    assert_int_equal(n, 2);
    n = 0;
    assert_ok(f, store_decisions(f->s, study, 1, count_decision, &n, &f->e));
    assert_int_equal(n, 1);
}

static int add_text(void *ctx, const char *text)
{
    buf_puts(ctx, text);
    return 0;
}

static int stop_at_text(void *ctx, const char *text)
{
    ++*(int *)ctx;
    return strcmp(text, "b 2\n") == 0 ? -ECANCELED : 0;
}

static void test_the_tuners_log_is_told_in_order(void **state)
{
    struct fix *f = *state;
    open_write(f);
    int64_t study = add_study(f, "s", true), other = add_study(f, "t", true);
    assert_ok(f, store_tuner_log_add(f->s, study, "H 1\n", &f->e));
    assert_ok(f, store_tuner_log_add(f->s, other, "x 9\n", &f->e));
    assert_ok(f, store_begin(f->s, &f->e));
    for (int i = 1; i <= 12; i++) { /* ten comes after nine */
        char text[16];
        (void)snprintf(text, sizeof text, "b %d\n", i);
        assert_ok(f, store_tuner_log_add(f->s, study, text, &f->e));
    }
    assert_ok(f, store_commit(f->s, &f->e));
    shut(f);
    assert_ok(f, store_open(&f->s, f->path, STORE_READ, &f->e));
    AUTO_BUF struct buf all = BUF_INIT;
    assert_ok(f, store_tuner_log(f->s, study, add_text, &all, &f->e));
    assert_string_equal(buf_text(&all), "H 1\nb 1\nb 2\nb 3\nb 4\nb 5\nb 6\nb 7\nb 8\nb 9\nb 10\nb 11\nb 12\n");
    int n = 0;
    assert_int_equal(store_tuner_log(f->s, study, stop_at_text, &n, &f->e), -ECANCELED);
    assert_int_equal(n, 3);
}

static void test_a_twin_is_finished_and_equal_in_all_that_counts(void **state)
{
    struct fix *f = *state;
    open_write(f);
    int64_t study = add_study(f, "s", true), other = add_study(f, "t", true);
    struct store_trial t = a_trial(study, 1);
    int twin = -1;
    assert_ok(f, store_trial_add(f->s, &t, &f->e));
    assert_ok(f, store_trial_twin(f->s, study, t.hyper, t.effective, 5, &twin, &f->e));
    assert_int_equal(twin, 0); /* it is not finished */
    finish_trial(f, study, 3, 0.5, 0.5);
    finish_trial(f, study, 2, 0.5, 0.5);
    static const struct {
        const char *hyper, *effective;
        int epochs, other, want;
    } cases[] = {
        { "{\"batch_size\":32}", "{\"cores\":2}", 5, 0, 2 }, { "{\"batch_size\":64}", "{\"cores\":2}", 5, 0, 0 },
        { "{\"batch_size\":32}", "{\"cores\":1}", 5, 0, 0 }, { "{\"batch_size\":32}", NULL, 5, 0, 2 },
        { "{\"batch_size\":32}", "{\"cores\":2}", 6, 0, 0 }, { "{\"batch_size\":32}", "{\"cores\":2}", 5, 1, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_ok(f, store_trial_twin(f->s, cases[i].other ? other : study, cases[i].hyper, cases[i].effective,
                                      cases[i].epochs, &twin, &f->e));
        if (twin != cases[i].want)
            fail_msg("case %zu: got twin %d, want %d", i, twin, cases[i].want);
    }
}

static void put_in_state(struct fix *f, int64_t study, int number, const char *trial_state, double metric)
{
    struct store_trial t = add_trial(f, study, number);
    t.state = (char *)(uintptr_t)trial_state;
    t.metric = metric;
    assert_ok(f, store_trial_update(f->s, &t, &f->e));
}

static void test_the_best_is_a_finished_one_where_there_is_one(void **state)
{
    struct fix *f = *state;
    open_write(f);
    int64_t early = add_study(f, "early", true), later = add_study(f, "later", true);
    put_in_state(f, early, 1, "stopped", 0.5);
    put_in_state(f, early, 2, "paused", 0.7);
    put_in_state(f, early, 3, "failed", 0.9);
    put_in_state(f, later, 1, "stopped", 0.9);
    finish_trial(f, later, 2, 0.8, 0.8);
    struct got_summaries got = { 0 };
    assert_ok(f, store_list(f->s, keep_summary, &got, &f->e));
    assert_int_equal(got.n, 2);
    assert_int_equal(got.row[0].best_trial, 2);
    assert_true(got.row[0].stopped == 1 && got.row[0].paused == 1 && got.row[0].done == 0 && got.row[0].failed == 1);
    assert_int_equal(got.row[1].best_trial, 2);
    assert_true(got.row[1].stopped == 1 && got.row[1].paused == 0 && got.row[1].done == 1);
}

static void test_list_sums_up_and_finds_the_best_either_way(void **state)
{
    struct fix *f = *state;
    open_write(f);
    static const char *const names[] = { "up", "down" };
    for (int i = 0; i < 2; i++) {
        int64_t study = add_study(f, names[i], i == 0);
        add_trial(f, study, 1);
        finish_trial(f, study, 2, 0.25, 0.91);
        finish_trial(f, study, 4, 0.75, 0.93); /* the same metric as 3, which has the lower number */
        finish_trial(f, study, 3, 0.75, 0.92);
        finish_trial(f, study, 5, NAN, 0.99); /* no metric: never the best */
        finish_trial(f, study, 6, 0.25, 0.90);
        static const char *const bad[] = { "failed", "infeasible", "interrupted" };
        for (int j = 0; j < 3; j++) {
            struct store_trial t = add_trial(f, study, 7 + j);
            t.state = (char *)(uintptr_t)bad[j];
            t.metric = i == 0 ? 1 : 0; /* better than the best, but not finished */
            assert_ok(f, store_trial_update(f->s, &t, &f->e));
        }
    }
    assert_ok(f, store_study_set_state(f->s, add_study(f, "none", true), "failed", 42, &f->e));
    struct got_summaries got = { 0 };
    assert_ok(f, store_list(f->s, keep_summary, &got, &f->e));
    assert_int_equal(got.n, 3);
    for (int i = 0; i < 2; i++) {
        assert_true(got.row[i].trials == 9 && got.row[i].done == 5 && got.row[i].failed == 2);
        assert_real(got.row[i].seconds, 50);
        assert_true(got.row[i].created_ms == 1700000000000 && got.row[i].ended_ms == 0);
    }
    assert_string_equal(got.name[0], "up running");
    assert_int_equal(got.row[0].best_trial, 3);
    assert_real(got.row[0].best_accuracy, 0.92);
    assert_string_equal(got.name[1], "down running");
    assert_int_equal(got.row[1].best_trial, 2);
    assert_real(got.row[1].best_accuracy, 0.91);
    assert_string_equal(got.name[2], "none failed");
    assert_true(got.row[2].trials == 0 && got.row[2].best_trial == 0 && got.row[2].ended_ms == 42);
    assert_real(got.row[2].seconds, 0);
    assert_real(got.row[2].best_accuracy, NAN);
}

/* --- walks --- */
static int stop_at_second(void *ctx, const struct store_trial *r)
{
    ++*(int *)ctx;
    return r->number == 2 ? -ECANCELED : 0;
}

static void test_a_walk_ends_at_the_first_non_zero(void **state)
{
    struct fix *f = *state;
    open_write(f);
    int64_t study = add_study(f, "s", true);
    for (int i = 1; i <= 3; i++)
        add_trial(f, study, i);
    int n = 0;
    assert_int_equal(store_trials(f->s, study, 0, stop_at_second, &n, &f->e), -ECANCELED);
    assert_int_equal(n, 2);
}

struct nested {
    struct fix *f;
    int n;
};

static int walk_again_and_write(void *ctx, const struct store_trial *r)
{
    struct nested *nest = ctx;
    struct fix *f = nest->f;
    assert_ok(f, store_trials(f->s, r->study, 0, count_trial, &nest->n, &f->e));
    struct store_decision d = { .trial = r->number, .kind = "look" };
    assert_ok(f, store_decision_add(f->s, r->study, &d, &f->e));
    assert_text(r->state, "waiting"); /* the outer row is still whole */
    return 0;
}

static void test_a_callback_may_use_the_store(void **state)
{
    struct fix *f = *state;
    open_write(f);
    int64_t study = add_study(f, "s", true);
    for (int i = 1; i <= 3; i++)
        add_trial(f, study, i);
    struct nested nest = { .f = f };
    assert_ok(f, store_trials(f->s, study, 0, walk_again_and_write, &nest, &f->e));
    assert_int_equal(nest.n, 9);
}

/* --- transactions --- */
static int count_trials(struct fix *f, int64_t study)
{
    int n = 0;
    assert_ok(f, store_trials(f->s, study, 0, count_trial, &n, &f->e));
    return n;
}

static void test_a_rollback_undoes_all_of_it(void **state)
{
    struct fix *f = *state;
    open_write(f);
    int64_t study = add_study(f, "s", true);
    assert_ok(f, store_begin(f->s, &f->e));
    add_trial(f, study, 1);
    add_trial(f, study, 2);
    store_rollback(f->s);
    store_rollback(f->s); /* nothing is open: nothing happens */
    assert_int_equal(count_trials(f, study), 0);
    assert_ok(f, store_begin(f->s, &f->e));
    assert_int_equal(add_trial(f, study, 1).ask_seq, 1);
    assert_ok(f, store_commit(f->s, &f->e));
    shut(f);
    open_write(f);
    assert_int_equal(count_trials(f, study), 1);
}

static void test_an_open_transaction_ends_with_the_connection(void **state)
{
    struct fix *f = *state;
    open_write(f);
    int64_t study = add_study(f, "s", true);
    assert_ok(f, store_begin(f->s, &f->e));
    add_trial(f, study, 1);
    shut(f);
    open_write(f);
    assert_int_equal(count_trials(f, study), 0);
}

static void assert_refused(struct fix *f, int rc, int want, const char *text)
{
    if (rc != want || f->e.code != want || !strstr(f->e.text, text) || !strstr(f->e.text, f->path))
        fail_msg("got %d '%s', want %d and '%s' and the file's name", rc, f->e.text, want, text);
}

static void test_rows_that_do_not_fit_are_explained(void **state)
{
    struct fix *f = *state;
    open_write(f);
    int64_t study = add_study(f, "mnist", true), id = -1;
    struct store_study again = a_study("mnist", true);
    assert_refused(f, store_study_add(f->s, &again, &id, &f->e), -EEXIST, "study 'mnist' is there already");
    assert_int_equal(id, -1);
    add_trial(f, study, 1);
    struct store_trial t = a_trial(study, 1);
    assert_refused(f, store_trial_add(f->s, &t, &f->e), -EEXIST, "trial 1 is there already");
    assert_int_equal(t.id, 0);
    assert_int_equal(t.ask_seq, 0);
    t = a_trial(study, 2);
    t.hyper = NULL;
    assert_refused(f, store_trial_add(f->s, &t, &f->e), -EINVAL, "trials.hyper");
    assert_refused(f, store_tuner_log_add(f->s, study, NULL, &f->e), -EINVAL, "tuner_log.text");
    assert_refused(f, store_tuner_log_add(f->s, study + 1, "x\n", &f->e), -ENOENT, "is not there");
    t = a_trial(study + 1, 1);
    assert_refused(f, store_trial_add(f->s, &t, &f->e), -ENOENT, "is not there");
    struct store_attempt a = an_attempt(999);
    assert_refused(f, store_attempt_add(f->s, &a, &f->e), -ENOENT, "is not there");
    t.id = 999;
    assert_refused(f, store_trial_update(f->s, &t, &f->e), -ENOENT, "no trial 999");
    a.id = 998;
    assert_refused(f, store_attempt_update(f->s, &a, &f->e), -ENOENT, "no attempt 998");
    assert_refused(f, store_study_set_state(f->s, 997, "failed", 1, &f->e), -ENOENT, "no study 997");
    assert_int_equal(count_trials(f, study), 1);
}

/* SQLite undoes the whole transaction itself when the disk is full: what follows must not be stored without what went before. */
static void test_after_an_undone_transaction_nothing_is_half_stored(void **state)
{
    struct fix *f = *state;
    open_write(f);
    int64_t study = add_study(f, "s", true);
    assert_ok(f, store_begin(f->s, &f->e));
    add_trial(f, study, 1);
    arm(STRIKE_IO, 1);
    int rc = store_commit(f->s, &f->e);
    assert_true(disarm());
    assert_refused(f, rc, -ENOSPC, "disk is full");
    assert_int_equal(count_trials(f, study), 0);
    add_trial(f, study, 1);
    assert_int_equal(count_trials(f, study), 1);
}

static void test_a_deleted_study_takes_all_of_it_along(void **state)
{
    struct fix *f = *state;
    open_write(f);
    struct store_trial t = add_trial(f, add_study(f, "s", true), 1);
    struct store_attempt a = an_attempt(t.id);
    assert_ok(f, store_attempt_add(f->s, &a, &f->e));
    struct store_epoch epoch = { .trial = t.id, .epoch = 1 };
    assert_ok(f, store_epoch_put(f->s, &epoch, &f->e));
    struct store_sample sample = { .t_ms = 1, .dt_ms = 1, .scope = "process", .v = cells_of("1") };
    assert_ok(f, store_sample_add(f->s, t.id, &sample, &f->e));
    shut(f);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA foreign_keys=ON; DELETE FROM studies", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    open_write(f);
    struct got_attempts attempts = { 0 };
    struct got_epochs epochs = { 0 };
    assert_ok(f, store_attempts(f->s, t.id, keep_attempt, &attempts, &f->e));
    assert_ok(f, store_epochs(f->s, t.id, keep_epoch, &epochs, &f->e));
    assert_int_equal(attempts.n + epochs.n + count_trials(f, t.study), 0);
    AUTO_BUF struct buf cells = BUF_INIT;
    assert_ok(f, store_samples(f->s, t.id, keep_cells, &cells, &f->e));
    assert_int_equal(cells.len, 0);
}

/* --- files that are refused --- */
static void write_file(const struct fix *f, const void *bytes, size_t len)
{
    int fd = open(f->path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(io_write_all(fd, bytes, len), 0);
    (void)close(fd);
}

static int files_in(const char *dir)
{
    int n = -2; /* . and .. */
    AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY);
    char chunk[4096];
    long got;
    while ((got = syscall(SYS_getdents64, fd, chunk, sizeof chunk)) > 0)
        for (long at = 0; at < got; n++) {
            unsigned short len;
            memcpy(&len, chunk + at + 16, sizeof len);
            at += len;
        }
    return n;
}

static void test_garbage_is_refused_and_untouched(void **state)
{
    struct fix *f = *state;
    static const char line[] = "these are somebody's notes\n";
    for (size_t times = 1; times <= 1000; times *= 10) {
        AUTO_BUF struct buf text = BUF_INIT;
        for (size_t i = 0; i < times; i++)
            buf_puts(&text, line);
        write_file(f, text.data, text.len);
        for (int mode = STORE_READ; mode <= STORE_WRITE; mode++)
            assert_refused(f, store_open(&f->s, f->path, (enum store_mode)mode, &f->e), -EPROTO,
                           "not a PipeTune store");
        AUTO_BUF struct buf after = BUF_INIT;
        assert_int_equal(io_read_file(&after, f->path, 1 << 20, &f->e), 0);
        assert_int_equal(after.len, text.len);
        assert_memory_equal(after.data, text.data, text.len);
        assert_int_equal(files_in(f->dir), 1);
    }
}

static void make_foreign(const struct fix *f, const char *sql)
{
    remove_store(f);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_another_programs_database_is_refused_and_untouched(void **state)
{
    struct fix *f = *state;
    static const char *const makers[] = {
        "CREATE TABLE t(x)",
        "PRAGMA user_version=1",
        "PRAGMA application_id=7; PRAGMA user_version=1; CREATE TABLE studies(x)",
        "PRAGMA journal_mode=WAL; CREATE TABLE t(x)",
    };
    for (size_t i = 0; i < ARRAY_LEN(makers); i++) {
        make_foreign(f, makers[i]);
        AUTO_BUF struct buf before = BUF_INIT, after = BUF_INIT;
        assert_int_equal(io_read_file(&before, f->path, 1 << 20, &f->e), 0);
        for (int mode = STORE_READ; mode <= STORE_WRITE; mode++)
            assert_refused(f, store_open(&f->s, f->path, (enum store_mode)mode, &f->e), -EPROTO,
                           "not a PipeTune store");
        assert_int_equal(io_read_file(&after, f->path, 1 << 20, &f->e), 0);
        assert_int_equal(before.len, after.len);
        assert_memory_equal(before.data, after.data, after.len);
    }
}

static void test_a_newer_schema_is_refused(void **state)
{
    struct fix *f = *state;
    open_write(f);
    shut(f);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    char newer[40], want[128];
    (void)snprintf(newer, sizeof newer, "PRAGMA user_version=%d", STORE_SCHEMA + 1);
    assert_int_equal(sqlite3_exec(db, newer, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    (void)snprintf(want, sizeof want, "has schema %d, this pipetune knows up to %d: use the newer pipetune",
                   STORE_SCHEMA + 1, STORE_SCHEMA);
    for (int mode = STORE_READ; mode <= STORE_WRITE; mode++)
        assert_refused(f, store_open(&f->s, f->path, (enum store_mode)mode, &f->e), -EPROTO, want);
}

static void test_steps_migrate_what_is_there(void **state)
{
    struct fix *f = *state;
    open_write(f);
    add_study(f, "old", true);
    shut(f);
    const char *const steps[STORE_SCHEMA + 1] = { [STORE_SCHEMA] = "ALTER TABLE studies ADD COLUMN note TEXT" };
    char want[32];
    (void)snprintf(want, sizeof want, "has schema %d", STORE_SCHEMA + 1);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(schema_apply(db, steps, STORE_SCHEMA, STORE_SCHEMA + 1), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "COMMIT; SELECT note FROM studies WHERE name='old'", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_refused(f, store_open(&f->s, f->path, STORE_WRITE, &f->e), -EPROTO, want);
}

/* The store of an earlier version: a study with one trial of one attempt. */
static void make_schema(const struct fix *f, int version)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode=WAL; BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(schema_apply(db, schema_steps, 0, version), SQLITE_OK);
    static const char rows[] =
        "INSERT INTO studies(id, name, state, maximise, seed, created_ms, ended_ms, config)"
        " VALUES(7, 'old', 'finished', 1, 3, 1, 2, '{}');"
        "INSERT INTO trials(id, study, number, proposal, ask_seq, state, epochs, slots, copy_of, accuracy, hyper)"
        " VALUES(8, 7, 1, 1, 1, 'finished', 5, 2, 0, 0.5, '{}');"
        "INSERT INTO attempts(id, trial, number, state, outcome, pid, start_ticks, started_ms, ended_ms, log_offset,"
        " exit_code, first_epoch, argv) VALUES(9, 8, 1, 'ended', 'finished', 10, 11, 12, 13, 14, 0, 1, '[]');"
        "INSERT INTO decisions(study, seq, trial, t_s, kind) VALUES(7, 1, 1, 0.5, 'launch');"
        "COMMIT";
    assert_int_equal(sqlite3_exec(db, rows, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_a_store_of_schema_1_is_brought_here_with_all_it_holds(void **state)
{
    struct fix *f = *state;
    make_schema(f, 1);
    assert_refused(f, store_open(&f->s, f->path, STORE_READ, &f->e), -EPROTO, "older schema 1");
    open_write(f);
    struct got_attempts got = { 0 };
    assert_ok(f, store_attempts(f->s, 8, keep_attempt, &got, &f->e));
    assert_int_equal(got.n, 1);
    struct store_attempt *a = &got.row[0];
    assert_true(a->id == 9 && a->pid == 10 && a->ended_ms == 13 && a->log_offset == 14 && a->session == 0);
    assert_text(a->argv, "[]");
    assert_text(a->setting, NULL);
    assert_real(a->startup_s, NAN);
    assert_real(a->cores, NAN);
    a->cores = 4;
    assert_ok(f, store_attempt_update(f->s, a, &f->e));
    done_attempts(&got);
    int decisions = 0;
    assert_ok(f, store_decisions(f->s, 7, 0, count_decision, &decisions, &f->e));
    assert_int_equal(decisions, 1);
    assert_ok(f, store_tuner_log_add(f->s, 7, "H 1 pipetune\n", &f->e));
    shut(f);
    assert_ok(f, store_open(&f->s, f->path, STORE_READ, &f->e)); /* once is enough */
}

static void test_a_store_of_schema_2_is_brought_here_with_all_it_holds(void **state)
{
    struct fix *f = *state;
    make_schema(f, 2);
    assert_refused(f, store_open(&f->s, f->path, STORE_READ, &f->e), -EPROTO, "older schema 2");
    open_write(f);
    struct got_attempts got = { 0 };
    assert_ok(f, store_attempts(f->s, 8, keep_attempt, &got, &f->e));
    assert_int_equal(got.n, 1);
    assert_int_equal(got.row[0].id, 9);
    done_attempts(&got);
    struct store_sample sample = { .t_ms = 1, .dt_ms = 1, .scope = "process", .v = cells_of("1 2") };
    struct store_profile profile = { .epoch = 1, .vector = "[]" };
    AUTO_BUF struct buf cells = BUF_INIT;
    assert_ok(f, store_samples(f->s, 8, keep_cells, &cells, &f->e));
    assert_int_equal(cells.len, 0);
    assert_ok(f, store_sample_add(f->s, 8, &sample, &f->e));
    assert_ok(f, store_profile_add(f->s, 8, &profile, &f->e));
    assert_ok(f, store_model_put(f->s, "m", "{}", 0, NULL, &f->e));
    shut(f);
    assert_ok(f, store_open(&f->s, f->path, STORE_READ, &f->e)); /* once is enough */
    assert_ok(f, store_samples(f->s, 8, keep_cells, &cells, &f->e));
    assert_string_equal(buf_text(&cells), "1 2");
}

static int count_reading(void *ctx, const struct store_reading *r)
{
    (void)r;
    ++*(int *)ctx;
    return 0;
}

static void test_a_store_of_schema_3_is_brought_here_with_all_it_holds(void **state)
{
    struct fix *f = *state;
    make_schema(f, 3);
    assert_refused(f, store_open(&f->s, f->path, STORE_READ, &f->e), -EPROTO, "older schema 3");
    open_write(f);
    struct got_attempts got = { 0 };
    assert_ok(f, store_attempts(f->s, 8, keep_attempt, &got, &f->e));
    assert_int_equal(got.n, 1);
    assert_int_equal(got.row[0].id, 9);
    done_attempts(&got);
    struct store_reading reading = { .meter = "rapl", .state = "ok", .from_ms = 1, .to_ms = 2, .value = 3 };
    int n = 0;
    assert_ok(f, store_readings(f->s, 7, count_reading, &n, &f->e));
    assert_int_equal(n, 0);
    assert_ok(f, store_reading_add(f->s, 7, &reading, &f->e));
    shut(f);
    assert_ok(f, store_open(&f->s, f->path, STORE_READ, &f->e)); /* once is enough */
    assert_ok(f, store_readings(f->s, 7, count_reading, &n, &f->e));
    assert_int_equal(n, 1);
}

/* Where the pages of the trials begin: the roots of their table and its indices. */
static void damage_trials(const struct fix *f, struct buf *bytes)
{
    enum { PAGE = 4096 };
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    static const char sql[] = "SELECT rootpage FROM sqlite_schema WHERE tbl_name = 'trials'";
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    int n = 0;
    for (; sqlite3_step(st) == SQLITE_ROW; n++) {
        size_t at = (size_t)(sqlite3_column_int(st, 0) - 1) * PAGE;
        assert_true(at >= PAGE && at + PAGE <= bytes->len);
        memset(bytes->data + at, 0xa5, PAGE);
    }
    assert_true(n > 1);
    (void)sqlite3_finalize(st);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_a_damaged_store_says_so(void **state)
{
    struct fix *f = *state;
    open_write(f);
    int64_t study = add_study(f, "s", true);
    for (int i = 1; i <= 200; i++)
        add_trial(f, study, i);
    shut(f);
    AUTO_BUF struct buf bytes = BUF_INIT;
    assert_int_equal(io_read_file(&bytes, f->path, 1 << 24, &f->e), 0);
    damage_trials(f, &bytes);
    write_file(f, bytes.data, bytes.len);
    open_write(f);
    int n = 0;
    assert_refused(f, store_trials(f->s, study, 0, count_trial, &n, &f->e), -EUCLEAN, "damaged");
    struct store_trial t = a_trial(study, 201);
    assert_refused(f, store_trial_add(f->s, &t, &f->e), -EUCLEAN, "damaged");
}

static void test_places_where_no_store_can_be(void **state)
{
    struct fix *f = *state;
    assert_refused(f, store_open(&f->s, f->path, STORE_READ, &f->e), -ENOENT, "pipetune run");
    assert_int_equal(files_in(f->dir), 0);
    assert_int_equal(mkdir(f->path, 0755), 0);
    assert_refused(f, store_open(&f->s, f->path, STORE_WRITE, &f->e), -EISDIR, "not a regular file");
    assert_int_equal(rmdir(f->path), 0);
    assert_int_equal(mkfifo(f->path, 0644), 0);
    assert_refused(f, store_open(&f->s, f->path, STORE_READ, &f->e), -EPROTO, "not a regular file");
    assert_int_equal(unlink(f->path), 0);
    (void)snprintf(f->path, sizeof f->path, "%s/none/x.db", f->dir);
    assert_refused(f, store_open(&f->s, f->path, STORE_WRITE, &f->e), -ENOENT, "/none'");
    assert_int_equal(files_in(f->dir), 0);
}

static void test_an_empty_file_becomes_a_store(void **state)
{
    struct fix *f = *state;
    write_file(f, "", 0);
    assert_refused(f, store_open(&f->s, f->path, STORE_READ, &f->e), -ENOENT, "is empty");
    open_write(f);
    add_study(f, "s", true);
}

static void test_a_path_is_never_a_uri(void **state)
{
    struct fix *f = *state;
    AUTO_CLOSE int old = open(".", O_RDONLY | O_DIRECTORY);
    assert_int_equal(chdir(f->dir), 0);
    static const char *const names[] = { "file:x.db?mode=memory", ":memory:", "a%20b#c?.db" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_ok(f, store_open(&f->s, names[i], STORE_WRITE, &f->e));
        add_study(f, "s", true);
        shut(f);
        assert_true(io_exists(names[i]));
    }
    assert_int_equal(fchdir(old), 0);
}

static void test_a_reader_cannot_write(void **state)
{
    struct fix *f = *state;
    open_write(f);
    int64_t study = add_study(f, "s", true);
    shut(f);
    assert_ok(f, store_open(&f->s, f->path, STORE_READ, &f->e));
    struct store_trial t = a_trial(study, 1);
    assert_refused(f, store_trial_add(f->s, &t, &f->e), -EROFS, "read-only");
    assert_int_equal(count_trials(f, study), 0);
}

static void test_a_reader_sees_whole_transactions_of_a_writer(void **state)
{
    struct fix *f = *state;
    open_write(f);
    int64_t study = add_study(f, "s", true);
    struct fix reader = *f;
    reader.s = NULL;
    assert_ok(&reader, store_open(&reader.s, f->path, STORE_READ, &reader.e));
    assert_ok(f, store_begin(f->s, &f->e));
    add_trial(f, study, 1);
    add_trial(f, study, 2);
    assert_int_equal(count_trials(&reader, study), 0);
    assert_ok(f, store_commit(f->s, &f->e));
    assert_int_equal(count_trials(&reader, study), 2);
    store_close(reader.s);
}

/* --- children that die, and places that only a child may make --- */
enum { CHILD_SKIP = 77 };
#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) {                                                                                                 \
            (void)fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #cond, f->e.text);                   \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static int in_child(struct fix *f, void (*what)(struct fix *, const void *), const void *arg)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        what(f, arg);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void propose(struct fix *f, bool grouped)
{
    struct store_study study = { 0 };
    CHECK(store_study_find(f->s, "s", &study, &f->e) == 1);
    struct store_trial t = a_trial(study.id, 1);
    struct store_decision d = { .trial = 1, .kind = "propose" };
    if (grouped)
        CHECK(store_begin(f->s, &f->e) == 0);
    CHECK(store_trial_add(f->s, &t, &f->e) == 0);
    if (grouped) {
        CHECK(store_decision_add(f->s, study.id, &d, &f->e) == 0);
        CHECK(store_commit(f->s, &f->e) == 0);
    }
    store_study_done(&study);
}

struct death {
    const char *failpoint;
    bool grouped;
    int want; /* trials after */
};

static void die_at_failpoint(struct fix *f, const void *arg)
{
    const struct death *d = arg;
    CHECK(store_open(&f->s, f->path, STORE_WRITE, &f->e) == 0);
    CHECK(setenv("PIPETUNE_FAILPOINT", d->failpoint, 1) == 0);
    propose(f, d->grouped);
}

static void create_with_failpoint(struct fix *f, const void *arg)
{
    (void)arg;
    CHECK(setenv("PIPETUNE_FAILPOINT", "store-created", 1) == 0);
    CHECK(store_open(&f->s, f->path, STORE_WRITE, &f->e) == 0);
}

static void need_failpoints(void)
{
#ifndef PIPETUNE_FAILPOINTS
    print_message("SKIP: built without failpoints\n");
    skip();
#endif
}

static void assert_killed(int status)
{
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail_msg("the child was not killed: wait status %#x", (unsigned)status);
}

static void test_a_kill_at_a_failpoint_leaves_all_or_nothing(void **state)
{
    need_failpoints();
    struct fix *f = *state;
    static const struct death deaths[] = {
        { "store-begin", true, 0 },          { "store-begin", false, 0 },    { "store-before-commit", true, 0 },
        { "store-before-commit", false, 0 }, { "store-committed", true, 1 }, { "store-committed", false, 1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(deaths); i++) {
        remove_store(f);
        open_write(f);
        int64_t study = add_study(f, "s", true);
        shut(f);
        assert_killed(in_child(f, die_at_failpoint, &deaths[i]));
        open_write(f);
        if (count_trials(f, study) != deaths[i].want)
            fail_msg("%s: got %d trials, want %d", deaths[i].failpoint, count_trials(f, study), deaths[i].want);
        int n = 0;
        assert_ok(f, store_decisions(f->s, study, 0, count_decision, &n, &f->e));
        assert_int_equal(n, deaths[i].grouped ? deaths[i].want : 0);
        shut(f);
    }
}

static void test_a_store_killed_in_creation_is_created_again(void **state)
{
    need_failpoints();
    struct fix *f = *state;
    assert_killed(in_child(f, create_with_failpoint, NULL));
    assert_refused(f, store_open(&f->s, f->path, STORE_READ, &f->e), -ENOENT, "is empty");
    open_write(f);
    add_study(f, "s", true);
}

static void create_and_die_at_io(struct fix *f, const void *arg)
{
    arm(STRIKE_KILL, *(const unsigned *)arg);
    CHECK(store_open(&f->s, f->path, STORE_WRITE, &f->e) == 0);
    store_close(f->s);
}

static void propose_and_die_at_io(struct fix *f, const void *arg)
{
    arm(STRIKE_KILL, *(const unsigned *)arg);
    CHECK(store_open(&f->s, f->path, STORE_WRITE, &f->e) == 0);
    propose(f, true);
    store_close(f->s);
}

static void test_a_kill_at_any_write_of_the_creation_is_overcome(void **state)
{
    struct fix *f = *state;
    sync_for_real = false; /* a kill is no power cut */
    int status = -1;
    unsigned nth = 1;
    for (; status != 0; nth++) {
        assert_true(nth < 500);
        remove_store(f);
        status = in_child(f, create_and_die_at_io, &nth);
        if (status != 0)
            assert_killed(status);
        open_write(f);
        add_study(f, "s", true);
        shut(f);
    }
    assert_true(nth > 10); /* there were calls to die at */
}

static void kill_at_any_write_of_a_migration(struct fix *f, int version)
{
    int status = -1;
    unsigned nth = 1;
    for (; status != 0; nth++) {
        assert_true(nth < 500);
        remove_store(f);
        make_schema(f, version);
        status = in_child(f, create_and_die_at_io, &nth);
        if (status != 0)
            assert_killed(status);
        open_write(f);
        struct got_attempts got = { 0 };
        assert_ok(f, store_attempts(f->s, 8, keep_attempt, &got, &f->e));
        assert_int_equal(got.n, 1);
        done_attempts(&got);
        assert_ok(f, store_tuner_log_add(f->s, 7, "b 1\n", &f->e));
        assert_ok(f, store_model_put(f->s, "m", "{}", 0, NULL, &f->e));
        struct store_reading reading = { .meter = "rapl", .state = "ok" };
        assert_ok(f, store_reading_add(f->s, 7, &reading, &f->e));
        shut(f);
    }
    assert_true(nth > 5); /* there were calls to die at */
}

static void test_a_kill_at_any_write_of_a_migration_loses_nothing(void **state)
{
    sync_for_real = false; /* a kill is no power cut */
    for (int version = 1; version < STORE_SCHEMA; version++)
        kill_at_any_write_of_a_migration(*state, version);
}

static void test_a_kill_at_any_write_of_a_transaction_leaves_all_or_nothing(void **state)
{
    struct fix *f = *state;
    sync_for_real = false; /* a kill is no power cut */
    int status = -1;
    for (unsigned nth = 1; status != 0; nth++) {
        assert_true(nth < 500);
        remove_store(f);
        open_write(f);
        int64_t study = add_study(f, "s", true);
        shut(f);
        status = in_child(f, propose_and_die_at_io, &nth);
        if (status != 0)
            assert_killed(status);
        open_write(f);
        int trials = count_trials(f, study), decisions = 0;
        assert_ok(f, store_decisions(f->s, study, 0, count_decision, &decisions, &f->e));
        assert_int_equal(trials, decisions);
        assert_true(status != 0 || trials == 1);
        shut(f);
    }
}

static void just_create(struct fix *f, const void *arg)
{
    (void)arg;
    CHECK(store_open(&f->s, f->path, STORE_WRITE, &f->e) == 0);
    char name[32];
    (void)snprintf(name, sizeof name, "%ld", (long)getpid());
    struct store_study row = a_study(name, true);
    int64_t id;
    CHECK(store_study_add(f->s, &row, &id, &f->e) == 0);
    store_close(f->s);
}

static void test_many_may_create_the_same_store_at_once(void **state)
{
    struct fix *f = *state;
    enum { CREATORS = 8 };
    pid_t pids[CREATORS];
    (void)fflush(NULL);
    for (int i = 0; i < CREATORS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            just_create(f, NULL);
            _exit(0);
        }
    }
    for (int i = 0; i < CREATORS; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    open_write(f);
    struct got_summaries got = { 0 };
    assert_ok(f, store_list(f->s, keep_summary, &got, &f->e));
    assert_int_equal(got.n, CREATORS);
}

static void assert_child_did_well(int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIP)
        skip();
    if (status != 0)
        fail_msg("the child failed: wait status %#x", (unsigned)status);
}

/* A tmpfs over the test's folder that only this child sees. */
static void mount_tmpfs(const struct fix *f, const char *options)
{
    /* In a chroot "/" is no mount point (EINVAL), and what is mounted below it stays there. */
    if (unshare(CLONE_NEWNS) == 0 && (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 || errno == EINVAL) &&
        mount("tmpfs", f->dir, "tmpfs", 0, options) == 0)
        return;
    print_message("SKIP: cannot mount a tmpfs: %s\n", strerror(errno));
    (void)fflush(NULL);
    _exit(CHILD_SKIP);
}

static void fill_disk(struct fix *f, const void *arg)
{
    (void)arg;
    mount_tmpfs(f, "size=1m");
    CHECK(store_open(&f->s, f->path, STORE_WRITE, &f->e) == 0);
    struct store_study row = a_study("s", true);
    int64_t study = 0;
    CHECK(store_study_add(f->s, &row, &study, &f->e) == 0);
    char ballast[96];
    (void)snprintf(ballast, sizeof ballast, "%s/ballast", f->dir);
    int fd = open(ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && fallocate(fd, 0, 0, 200 << 10) == 0);
    int stored = 0, rc = 0, n = 0;
    for (; rc == 0; stored += rc == 0) {
        struct store_trial t = a_trial(study, stored + 1);
        rc = store_trial_add(f->s, &t, &f->e);
        CHECK(stored < 10000);
    }
    CHECK(rc == -ENOSPC && strstr(f->e.text, "disk is full") && strstr(f->e.text, f->path));
    CHECK(store_trials(f->s, study, 0, count_trial, &n, &f->e) == 0 && n == stored);
    store_close(f->s);
    CHECK(store_open(&f->s, f->path, STORE_READ, &f->e) == 0);
    n = 0;
    CHECK(store_trials(f->s, study, 0, count_trial, &n, &f->e) == 0 && n == stored);
    store_close(f->s);
    CHECK(close(fd) == 0 && unlink(ballast) == 0);
    CHECK(store_open(&f->s, f->path, STORE_WRITE, &f->e) == 0);
    struct store_trial t = a_trial(study, stored + 1);
    CHECK(store_trial_add(f->s, &t, &f->e) == 0);
    store_close(f->s);
}

static void test_a_full_disk_loses_nothing_that_was_stored(void **state)
{
    assert_child_did_well(in_child(*state, fill_disk, NULL));
}

static void create_on_full_disk(struct fix *f, const void *arg)
{
    (void)arg;
    mount_tmpfs(f, "size=1m");
    char ballast[96];
    (void)snprintf(ballast, sizeof ballast, "%s/ballast", f->dir);
    int fd = open(ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (off_t kib = 1024; kib >= 800; kib -= 4) { /* from no room at all to enough */
        CHECK(fd >= 0 && ftruncate(fd, 0) == 0 && fallocate(fd, 0, 0, kib << 10) == 0);
        int rc = store_open(&f->s, f->path, STORE_WRITE, &f->e);
        if (rc == 0) {
            store_close(f->s);
            return;
        }
        CHECK(rc == -ENOSPC && strstr(f->e.text, "disk is full"));
    }
    (void)fprintf(stderr, "the store was not created with 224 KiB free: %s\n", f->e.text);
    _exit(1);
}

static void test_creation_on_a_full_disk_can_be_repeated(void **state)
{
    assert_child_did_well(in_child(*state, create_on_full_disk, NULL));
}

static void read_only_mount(struct fix *f, const void *arg)
{
    (void)arg;
    mount_tmpfs(f, "size=8m");
    CHECK(store_open(&f->s, f->path, STORE_WRITE, &f->e) == 0);
    struct store_study row = a_study("s", true);
    int64_t study = 0;
    CHECK(store_study_add(f->s, &row, &study, &f->e) == 0);
    store_close(f->s);
    CHECK(mount(NULL, f->dir, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    struct got_summaries got = { 0 };
    CHECK(store_open(&f->s, f->path, STORE_READ, &f->e) == 0);
    CHECK(store_list(f->s, keep_summary, &got, &f->e) == 0 && got.n == 1);
    store_close(f->s);
    CHECK(store_open(&f->s, f->path, STORE_WRITE, &f->e) == -EROFS && strstr(f->e.text, f->path));
    char other[96];
    (void)snprintf(other, sizeof other, "%s/other.db", f->dir);
    CHECK(store_open(&f->s, other, STORE_WRITE, &f->e) == -EROFS && strstr(f->e.text, other));
}

static void test_a_read_only_file_system_can_be_read(void **state)
{
    assert_child_did_well(in_child(*state, read_only_mount, NULL));
}

/* Root without its capabilities: permissions bind, and the way to the folder stays open, which another user may not have. */
static void give_up_power(struct fix *f)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[2] = { { 0 } };
    CHECK(syscall(SYS_capset, &head, none) == 0);
}

static void read_only_folder(struct fix *f, const void *arg)
{
    (void)arg;
    give_up_power(f);
    struct got_summaries got = { 0 };
    CHECK(store_open(&f->s, f->path, STORE_READ, &f->e) == 0);
    CHECK(store_list(f->s, keep_summary, &got, &f->e) == 0 && got.n == 1);
    store_close(f->s);
    CHECK(store_open(&f->s, f->path, STORE_WRITE, &f->e) == -EACCES && strstr(f->e.text, f->path));
}

static void test_a_read_only_folder_can_be_read(void **state)
{
    struct fix *f = *state;
    open_write(f);
    add_study(f, "s", true);
    shut(f);
    assert_int_equal(chmod(f->path, 0444), 0);
    assert_int_equal(chmod(f->dir, 0555), 0);
    assert_child_did_well(in_child(f, read_only_folder, NULL));
    assert_int_equal(chmod(f->path, 0666), 0); /* the file may be written, but nothing beside it */
    assert_child_did_well(in_child(f, read_only_folder, NULL));
    assert_int_equal(chmod(f->dir, 0755), 0);
}

static void unmerged_wal(struct fix *f, const void *arg)
{
    (void)arg;
    give_up_power(f);
    CHECK(store_open(&f->s, f->path, STORE_READ, &f->e) < 0);
    CHECK(strstr(f->e.text, "-wal") && strstr(f->e.text, f->path));
}

static void test_an_unmerged_wal_in_a_read_only_folder_is_not_ignored(void **state)
{
    struct fix *f = *state;
    open_write(f);
    shut(f);
    char wal[128];
    (void)snprintf(wal, sizeof wal, "%s-wal", f->path);
    AUTO_CLOSE int fd = open(wal, O_WRONLY | O_CREAT, 0444);
    assert_true(fd >= 0);
    assert_int_equal(chmod(f->dir, 0555), 0);
    assert_child_did_well(in_child(f, unmerged_wal, NULL));
    assert_int_equal(chmod(f->dir, 0755), 0);
}

/* --- every call that can fail --- */
static int scenario_writes(struct fix *f, int64_t study)
{
    struct store_trial t = a_trial(study, 1);
    struct store_tell tell = { .proposal = 1, .epoch = 1, .value = 1, .done = true };
    struct store_decision d = { .trial = 1, .kind = "propose", .setting = "{}", .reason = "r" };
    int rc = store_begin(f->s, &f->e);
    if (rc == 0)
        rc = store_trial_add(f->s, &t, &f->e);
    struct store_attempt a = an_attempt(t.id);
    if (rc == 0)
        rc = store_attempt_add(f->s, &a, &f->e);
    struct store_epoch epoch = { .trial = t.id, .epoch = 1 };
    if (rc == 0)
        rc = store_epoch_put(f->s, &epoch, &f->e);
    if (rc == 0)
        rc = store_tell_add(f->s, study, &tell, &f->e);
    if (rc == 0)
        rc = store_decision_add(f->s, study, &d, &f->e);
    if (rc == 0)
        rc = store_tuner_log_add(f->s, study, "b 0\n", &f->e);
    struct store_sample sample = { .t_ms = 1, .dt_ms = 1, .scope = "process", .v = cells_of("1") };
    if (rc == 0)
        rc = store_sample_add(f->s, t.id, &sample, &f->e);
    struct store_profile profile = { .epoch = 1, .vector = "[]" };
    if (rc == 0)
        rc = store_profile_add(f->s, t.id, &profile, &f->e);
    if (rc == 0)
        rc = store_trial_update(f->s, &t, &f->e);
    if (rc == 0)
        return store_commit(f->s, &f->e);
    store_rollback(f->s);
    return rc;
}

static int scenario_reads(struct fix *f, int64_t study)
{
    struct store_study row = { 0 };
    int n = 0, twin = 0;
    int rc = store_study_find(f->s, "s", &row, &f->e);
    store_study_done(&row);
    if (rc == 1)
        rc = store_list(f->s, count_summary, &n, &f->e);
    if (rc == 0)
        rc = store_trials(f->s, study, 0, count_trial, &n, &f->e);
    if (rc == 0)
        rc = store_decisions(f->s, study, 0, count_decision, &n, &f->e);
    if (rc == 0)
        rc = store_trial_twin(f->s, study, "{}", "{}", 1, &twin, &f->e);
    if (rc == 0)
        assert_int_equal(n, 3);
    return rc;
}

static int scenario(struct fix *f)
{
    int64_t study = 0;
    struct store_study row = a_study("s", true);
    int rc = store_open(&f->s, f->path, STORE_WRITE, &f->e);
    if (rc < 0)
        return rc;
    rc = store_study_add(f->s, &row, &study, &f->e);
    if (rc == 0)
        rc = scenario_writes(f, study);
    if (rc == 0)
        rc = scenario_reads(f, study);
    shut(f);
    return rc;
}

/* After whatever failed: the store opens, and the transaction is there whole or not at all. */
static void check_after_fault(struct fix *f, int rc)
{
    open_write(f);
    struct store_study row = { 0 };
    int found = store_study_find(f->s, "s", &row, &f->e);
    assert_ok(f, found);
    int trials = 0, decisions = 0;
    assert_ok(f, store_trials(f->s, row.id, 0, count_trial, &trials, &f->e));
    assert_ok(f, store_decisions(f->s, row.id, 0, count_decision, &decisions, &f->e));
    assert_int_equal(trials, decisions);
    assert_true(rc < 0 || trials == 1);
    store_study_done(&row);
    shut(f);
}

static void assert_fault_is_explained(const struct fix *f, int rc, unsigned nth)
{
    if (rc < 0 && (f->e.code != rc || !strstr(f->e.text, f->path)))
        fail_msg("fault %u: got %d, explained as %d '%s'", nth, rc, f->e.code, f->e.text);
}

static void test_memory_that_runs_out_in_our_code_loses_nothing(void **state)
{
    struct fix *f = *state;
    sync_for_real = false;
    bool hit = true;
    unsigned nth = 1;
    for (; hit; nth++) {
        assert_true(nth < 2000);
        remove_store(f);
        f->e = (struct err){ 0 };
        fault_arm(FAULT_ALLOC, nth);
        int rc = scenario(f);
        hit = fault_disarm();
        assert_int_equal(rc, hit ? -ENOMEM : 0);
        assert_fault_is_explained(f, rc, nth);
        check_after_fault(f, rc);
    }
    assert_true(nth > 20); /* there were calls to fail */
}

/* SQLite allocates some thousand times: the first hundred one by one, then ever wider steps, to stay within seconds. */
static unsigned next_nth(unsigned nth)
{
    return nth + 1 + nth / 100;
}

static void fail_sqlite_in_turn(struct fix *f, enum strike kind)
{
    sync_for_real = false;
    bool hit = true;
    unsigned nth = 1;
    for (; hit; nth = next_nth(nth)) {
        assert_true(nth < 100000);
        remove_store(f);
        f->e = (struct err){ 0 };
        arm(kind, nth);
        int rc = scenario(f);
        hit = disarm();
        assert_true(hit || rc == 0); /* SQLite overcomes some failures by itself */
        assert_fault_is_explained(f, rc, nth);
        check_after_fault(f, rc);
    }
    assert_true(nth > 40); /* there were calls to fail */
}

static void test_memory_that_runs_out_in_sqlite_loses_nothing(void **state)
{
    fail_sqlite_in_turn(*state, STRIKE_ALLOC);
}

static void test_a_disk_that_fails_loses_nothing(void **state)
{
    fail_sqlite_in_turn(*state, STRIKE_IO);
}

/* --- file systems --- */
static void test_network_file_systems_are_known(void **state)
{
    (void)state;
    static const struct {
        unsigned long f_type;
        const char *fuse, *want;
    } cases[] = {
        { 0x6969, NULL, "NFS" },
        { 0x517b, NULL, "SMB" },
        { 0xff534d42, NULL, "CIFS" },
        { 0xffffffffff534d42, NULL, "CIFS" }, /* the sign stretched */
        { 0xfe534d42, NULL, "SMB" },
        { 0x00c36400, NULL, "Ceph" },
        { 0x5346414f, NULL, "AFS" },
        { 0x01021997, NULL, "9p" },
        { 0x0bd00bd0, NULL, "Lustre" },
        { 0x47504653, NULL, "GPFS" },
        { 0x65735546, "fuse.sshfs", "sshfs" },
        { 0x65735546, "fuse.glusterfs", "GlusterFS" },
        { 0x65735546, "fuse.s3fs", "s3fs" },
        { 0x65735546, "fuseblk", NULL }, /* ntfs-3g */
        { 0x65735546, "fuse.bindfs", NULL },
        { 0x65735546, NULL, NULL },
        { 0xef53, NULL, NULL },         /* ext */
        { 0xef53, "fuse.sshfs", NULL }, /* the number says it is not FUSE */
        { 0x01021994, NULL, NULL },     /* tmpfs */
        { 0x58465342, NULL, NULL },     /* xfs */
        { 0x9123683e, NULL, NULL },     /* btrfs */
        { 0x794c7630, NULL, NULL },     /* overlay */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_text(fs_network_kind(cases[i].f_type, cases[i].fuse), cases[i].want);
}

static void test_a_mounts_type_is_found_by_its_device(void **state)
{
    (void)state;
    static const char text[] = "22 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw\n"
                               "not a mount line\n"
                               "40 22 0:45 / /mnt/a\\040b rw - fuse.sshfs host:/x rw,user_id=0\n"
                               "41 22 0:46 / /mnt/c rw shared:9 - fuse.x y rw\n"
                               "42 22 0:46 / /mnt/d rw - tmpfs tmpfs rw\n"
                               "43 22 0:47 / /mnt/e rw no dash\n"
                               "44 22 0:48 / /mnt/f rw - cut";
    static const struct {
        unsigned minor;
        const char *want;
    } cases[] = { { 45, "fuse.sshfs" }, { 46, "tmpfs" }, { 47, NULL }, { 48, "cut" }, { 49, NULL } };
    char got[FS_TYPE_MAX];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int rc = fs_mount_type(text, makedev(0, cases[i].minor), got);
        assert_int_equal(rc, cases[i].want ? 0 : -ENOENT);
        if (rc == 0)
            assert_string_equal(got, cases[i].want);
    }
    assert_int_equal(fs_mount_type(text, makedev(254, 0), got), 0);
    assert_string_equal(got, "ext4");
}

static void test_this_machines_file_systems_can_be_asked(void **state)
{
    struct fix *f = *state;
    char type[FS_TYPE_MAX];
    assert_ok(f, fs_type("/proc", type, &f->e));
    assert_string_equal(type, "proc");
    const char *kind = "?";
    assert_ok(f, fs_network("/proc", &kind, &f->e));
    assert_null(kind);
    assert_int_equal(fs_network("/nowhere/at/all", &kind, &f->e), -ENOENT);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    if (intercept_sqlite() < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        T(test_a_study_comes_back_as_it_was_put),
        T(test_trials_come_back_as_they_were_put),
        T(test_an_update_leaves_what_names_the_trial),
        T(test_attempts_come_back_and_are_counted),
        T(test_epochs_come_back_and_are_replaced),
        T(test_asks_and_tells_share_one_sequence),
        T(test_decisions_are_told_in_order),
        T(test_the_tuners_log_is_told_in_order),
        T(test_a_twin_is_finished_and_equal_in_all_that_counts),
        T(test_list_sums_up_and_finds_the_best_either_way),
        T(test_the_best_is_a_finished_one_where_there_is_one),
        T(test_a_walk_ends_at_the_first_non_zero),
        T(test_a_callback_may_use_the_store),
        T(test_a_rollback_undoes_all_of_it),
        T(test_an_open_transaction_ends_with_the_connection),
        T(test_rows_that_do_not_fit_are_explained),
        T(test_after_an_undone_transaction_nothing_is_half_stored),
        T(test_a_deleted_study_takes_all_of_it_along),
        T(test_garbage_is_refused_and_untouched),
        T(test_another_programs_database_is_refused_and_untouched),
        T(test_a_newer_schema_is_refused),
        T(test_steps_migrate_what_is_there),
        T(test_a_store_of_schema_1_is_brought_here_with_all_it_holds),
        T(test_a_store_of_schema_2_is_brought_here_with_all_it_holds),
        T(test_a_store_of_schema_3_is_brought_here_with_all_it_holds),
        T(test_a_damaged_store_says_so),
        T(test_places_where_no_store_can_be),
        T(test_an_empty_file_becomes_a_store),
        T(test_a_path_is_never_a_uri),
        T(test_a_reader_cannot_write),
        T(test_a_reader_sees_whole_transactions_of_a_writer),
        T(test_a_kill_at_a_failpoint_leaves_all_or_nothing),
        T(test_a_store_killed_in_creation_is_created_again),
        T(test_a_kill_at_any_write_of_the_creation_is_overcome),
        T(test_a_kill_at_any_write_of_a_migration_loses_nothing),
        T(test_a_kill_at_any_write_of_a_transaction_leaves_all_or_nothing),
        T(test_many_may_create_the_same_store_at_once),
        T(test_a_full_disk_loses_nothing_that_was_stored),
        T(test_creation_on_a_full_disk_can_be_repeated),
        T(test_a_read_only_file_system_can_be_read),
        T(test_a_read_only_folder_can_be_read),
        T(test_an_unmerged_wal_in_a_read_only_folder_is_not_ignored),
        T(test_memory_that_runs_out_in_our_code_loses_nothing),
        T(test_memory_that_runs_out_in_sqlite_loses_nothing),
        T(test_a_disk_that_fails_loses_nothing),
        T(test_network_file_systems_are_known),
        T(test_a_mounts_type_is_found_by_its_device),
        T(test_this_machines_file_systems_can_be_asked),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
