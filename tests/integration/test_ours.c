/* What stands beside the store is ours alone: links and folders of another's making are refused before anything is done with them, a note
 * of a process ends nobody, and nobody else can hold our locks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "base/proc.h"
#include "tests/integration/harness.h"

enum { SOMEBODY = 65534 };

#define TRIALS "SELECT number, state FROM trials ORDER BY number"
#define SERVES                                                                                                         \
    "{ \"master\": \"local[*]\", \"driver_memory\": \"1g\", \"conf\": \"app.py\", \"session\": true,\n"                \
    "  \"arguments\": { \"batch_size\": [\"--batch-size\", \"{}\"], \"learning_rate\": [\"--learning-rate\", "         \
    "\"{}\"],\n"                                                                                                       \
    "    \"epochs\": [\"--epochs\", \"{}\"] } }\n"
#define POINTS(rates) "\"hyperParameters\": { \"batch_size\": [64], \"learning_rate\": [" rates "] }"

static void write_config(const struct world *w, const char *hyper)
{
    AUTO_FREE char *text = NULL;
    assert_true(asprintf(&text,
                         "{ \"bigdlConf\": \"app.json\",\n  \"study\": { \"name\": \"s\", \"epochs\": 2 },\n  %s }\n",
                         hyper) > 0);
    harness_write(w->dir, "c.conf", text);
}

static int set_up(void **state)
{
    if (world_open(state) < 0)
        return -1;
    struct world *w = *state;
    world_point_at(w, "FAKE_COUNT_FILE", "count");
    world_point_at(w, "XDG_RUNTIME_DIR", "empty");
    harness_write(w->dir, "app.json", WORLD_BIGDL WORLD_ARGUMENTS);
    write_config(w, POINTS("0.1"));
    return 0;
}

static bool nothing_left(void *world)
{
    return world_processes(world, 0) == 0;
}

static int tear_down(void **state)
{
    bool ended = harness_wait(nothing_left, *state, HARNESS_MS);
    (void)unsetenv("XDG_RUNTIME_DIR");
    (void)world_close(state);
    return ended ? 0 : -1;
}

static void expect_exit(const char *name, struct harness_output o, int code)
{
    if (o.code != code)
        fail_msg("%s: got exit %d, want %d\n%s%s", name, o.code, code, o.out, o.err);
    harness_output_done(&o);
}

/* One line that names the file; nothing was begun. */
static void expect_refused(const char *name, struct harness_output o, const char *path)
{
    if (o.code != 3 || !strstr(o.err, path) || harness_count(o.err, "\n") != 1)
        fail_msg("%s: got exit %d and '%s', want 3 and one line with '%s'", name, o.code, o.err, path);
    harness_output_done(&o);
}

/* --- links ------------------------------------------------------------------------------------------------------------ */

/* Each is made to lead to a folder or file of ours that has nothing to do with it. */
static const struct {
    const char *name, *link, *to;
    bool in_trial; /* it is met when the trial is launched, which then fails */
} links[] = {
    { "all of it", "pipetune.d", "victim", false },
    { "the study's folder", "pipetune.d/s", "victim", false },
    { "the driver's lock", "pipetune.d/s/driver.lock", "victim/file", false },
    { "the trial's folder", "pipetune.d/s/1", "victim", true },
    { "its checkpoints", "pipetune.d/s/1/checkpoint", "victim", true },
    { "its log", "pipetune.d/s/1/log", "victim/file", true },
    { "its lock", "pipetune.d/s/1/lock", "victim/file", true },
};

static void make_private(const struct world *w, const char *name)
{
    world_dir(w, name);
    AUTO_FREE char *path = harness_path(w->dir, name);
    assert_int_equal(chmod(path, 0700), 0);
}

static size_t things_in(const char *path)
{
    DIR *d = opendir(path);
    assert_non_null(d);
    size_t n = 0;
    for (const struct dirent *f; (f = readdir(d));)
        n += f->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

static void test_a_link_is_not_followed(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        AUTO_FREE char *to = harness_path(w->dir, links[i].to);
        AUTO_FREE char *folder = io_dirname(links[i].link);
        make_private(w, "victim");
        harness_write(w->dir, "victim/file", "precious");
        if (strcmp(folder, ".") != 0)
            world_dir(w, folder);
        (void)unlink(links[i].link); /* of the row before */
        assert_int_equal(symlink(to, links[i].link), 0);
        struct harness_output o = RUN(w, "run", "c.conf");
        if (o.code == 0 || !strstr(o.err, links[i].link))
            fail_msg("%s: exit %d, '%s%s'", links[i].name, o.code, o.out, o.err);
        if (!links[i].in_trial && o.code != 3)
            fail_msg("%s: exit %d", links[i].name, o.code);
        harness_output_done(&o);
        AUTO_FREE char *text = harness_read(w->dir, "victim/file");
        assert_string_equal(text, "precious");
        AUTO_FREE char *victim = harness_path(w->dir, "victim");
        assert_int_equal(things_in(victim), 1);
        assert_false(io_exists("count")); /* nothing was submitted */
        assert_int_equal(unlink(links[i].link), 0);
        (void)unlink("pipetune.db");
        (void)unlink("pipetune.db-wal");
        (void)unlink("pipetune.db-shm");
    }
    expect_exit("and without one", RUN(w, "run", "c.conf"), 0);
}

static bool two_epochs_trained(void *world)
{
    const struct world *w = world;
    AUTO_FREE char *text = harness_read(w->dir, "count");
    return text && harness_count(text, "trained ") >= 2;
}

/* The name of the first thing in a folder; free it. */
static char *only_in(const char *path)
{
    DIR *d = opendir(path);
    assert_non_null(d);
    char *name = NULL;
    for (const struct dirent *f; !name && (f = readdir(d));)
        if (f->d_name[0] != '.')
            name = strdup(f->d_name);
    (void)closedir(d);
    assert_non_null(name);
    return name;
}

/* Objects of Java that somebody laid there: the attempt begins anew. */
static void test_a_checkpoint_behind_a_link_is_none(void **state)
{
    struct world *w = *state;
    (void)setenv("FAKE_EPOCH_MS", "300", 1);
    pid_t pid = START(w, -1, "run", "c.conf", "--epochs", "4");
    assert_true(harness_wait(two_epochs_trained, w, HARNESS_MS));
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 130);
    (void)setenv("FAKE_EPOCH_MS", "10", 1);
    assert_int_equal(rename("pipetune.d/s/1/checkpoint", "elsewhere"), 0);
    make_private(w, "pipetune.d/s/1/checkpoint");
    AUTO_FREE char *folder = only_in("elsewhere");
    AUTO_FREE char *to = NULL, *link = NULL;
    assert_true(asprintf(&to, "%s/elsewhere/%s", w->dir, folder) > 0);
    assert_true(asprintf(&link, "pipetune.d/s/1/checkpoint/%s", folder) > 0);
    assert_int_equal(symlink(to, link), 0);
    expect_exit("it goes on", RUN(w, "run", "c.conf", "--epochs", "4"), 0);
    harness_expect_rows("from the beginning", "pipetune.db",
                        "SELECT count(*), count(resumed_from) FROM attempts WHERE number = 2", "1|0");
}

/* --- modes ------------------------------------------------------------------------------------------------------------ */

static int lax; /* of the last walk: how many are open to others */

static int visit_mode(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)at, (void)kind;
    /* What the application writes is its own affair, in a folder that nobody else can enter. */
    bool ours = !strstr(path, "/checkpoint/");
    if (ours && (st->st_mode & 077)) {
        print_error("%s has mode %04o\n", path, st->st_mode & 07777);
        lax++;
    }
    return 0;
}

static void expect_private(void)
{
    lax = 0;
    assert_int_equal(nftw("pipetune.d", visit_mode, 8, FTW_PHYS), 0);
    assert_int_equal(lax, 0);
}

static void test_what_is_made_is_for_nobody_else(void **state)
{
    struct world *w = *state;
    struct stat st;
    mode_t was = umask(0); /* and not by the umask */
    expect_exit("a study", RUN(w, "run", "c.conf"), 0);
    (void)umask(was);
    expect_private();
    assert_int_equal(stat("pipetune.db", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static int visit_open(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)at;
    return chmod(path, kind == FTW_D ? 0755 : 0644);
}

static void test_a_study_of_an_earlier_version_is_tightened(void **state)
{
    struct world *w = *state;
    (void)setenv("FAKE_FAIL", "exit", 1);
    struct harness_output o = RUN(w, "run", "c.conf", "--retries", "0");
    harness_output_done(&o);
    (void)unsetenv("FAKE_FAIL");
    assert_int_equal(nftw("pipetune.d", visit_open, 8, FTW_PHYS), 0);
    write_config(w, POINTS("0.1, 0.2"));
    expect_exit("it goes on", RUN(w, "run", "c.conf", "--again"), 0);
    struct stat st;
    static const char *const made[] = { "pipetune.d", "pipetune.d/s@2", "pipetune.d/s@2/1", "pipetune.d/s@2/1/log" };
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        assert_int_equal(stat(made[i], &st), 0);
        assert_int_equal(st.st_mode & 077, 0);
    }
}

/* --- another user's ------------------------------------------------------------------------------------------------------ */

static const char *const of_another[] = { "pipetune.d", "pipetune.d/s", "pipetune.d/s/driver.lock", "pipetune.db" };

static void test_what_belongs_to_another_user_is_refused(void **state)
{
    struct world *w = *state;
    if (geteuid() != 0)
        skip();
    expect_exit("a study", RUN(w, "run", "c.conf"), 0);
    for (size_t i = 0; i < ARRAY_LEN(of_another); i++) {
        assert_int_equal(chown(of_another[i], SOMEBODY, (gid_t)-1), 0);
        struct harness_output o = RUN(w, "run", "c.conf");
        assert_non_null(strstr(o.err, "belongs to user 65534"));
        expect_refused(of_another[i], o, of_another[i]);
        assert_int_equal(chown(of_another[i], 0, (gid_t)-1), 0);
    }
    expect_exit("ours again", RUN(w, "run", "c.conf"), 0);
}

/* --- processes -------------------------------------------------------------------------------------------------------- */

static pid_t start_bystander(void)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setsid();
        for (;;)
            (void)pause();
    }
    return pid;
}

static void write_note(const struct world *w, const char *name, pid_t pid, const char *tag)
{
    char boot[PROC_BOOT_ID_SIZE];
    uint64_t start = 0;
    AUTO_FREE char *text = NULL;
    assert_int_equal(proc_boot_id(boot), 0);
    assert_int_equal(proc_start_ticks(pid, &start), 0);
    assert_true(asprintf(&text, "%s %ld %llu 1 %s\n", boot, (long)pid, (unsigned long long)start, tag) > 0);
    harness_write(w->dir, name, text);
}

/* All that a note says is true of the process, but that it is a launcher of ours. */
static void test_a_note_ends_no_process(void **state)
{
    struct world *w = *state;
    pid_t pid = start_bystander();
    make_private(w, "pipetune.d");
    make_private(w, "pipetune.d/s");
    make_private(w, "pipetune.d/s/session-1");
    harness_write(w->dir, "app.py", "");
    harness_write(w->dir, "app.json", SERVES);
    write_note(w, "pipetune.d/s/session-1/pid", pid, "pt-0123456789abcdef-0-1");
    struct harness_output o = RUN(w, "run", "c.conf", "--grant-seconds", "1");
    int how = 0;
    pid_t ended = waitpid(pid, &how, WNOHANG);
    if (ended == 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, &how, 0);
    }
    assert_int_equal(ended, 0);
    expect_exit("the study", o, 0);
}

/* The store says so of an attempt: the same. */
static void test_a_row_ends_no_process(void **state)
{
    struct world *w = *state;
    char boot[PROC_BOOT_ID_SIZE];
    uint64_t start = 0;
    AUTO_FREE char *sql = NULL;
    pid_t pid = start_bystander();
    expect_exit("a study", RUN(w, "run", "c.conf", "--stall-seconds", "1"), 0);
    assert_int_equal(proc_boot_id(boot), 0);
    assert_int_equal(proc_start_ticks(pid, &start), 0);
    assert_true(asprintf(&sql,
                         "UPDATE attempts SET state = 'running', log_offset = 1000000, pid = %ld, start_ticks = %llu, "
                         "boot_id = '%s'",
                         (long)pid, (unsigned long long)start, boot) > 0);
    free(harness_ask("pipetune.db", sql));
    free(harness_ask("pipetune.db", "DELETE FROM epochs"));
    free(harness_ask("pipetune.db", "UPDATE trials SET state = 'running'"));
    free(harness_ask("pipetune.db", "UPDATE studies SET state = 'running'"));
    struct harness_output o = RUN(w, "run", "c.conf", "--stall-seconds", "1");
    int how = 0;
    pid_t ended = waitpid(pid, &how, WNOHANG);
    if (ended == 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, &how, 0);
    }
    assert_int_equal(ended, 0);
    expect_exit("it goes on by itself", o, 0);
}

/* --- locks ------------------------------------------------------------------------------------------------------------ */

static void test_who_holds_a_lock_is_told_as_it_is(void **state)
{
    struct world *w = *state;
    expect_exit("a study", RUN(w, "run", "c.conf"), 0);
    AUTO_CLOSE int fd = open("pipetune.d/s/driver.lock", O_RDONLY | O_CLOEXEC);
    struct flock l = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_SETLK, &l), 0); /* we are no driver */
    struct harness_output o = RUN(w, "run", "c.conf");
    char pid[32];
    (void)snprintf(pid, sizeof pid, "process %ld ('test_ours'", (long)getpid());
    assert_null(strstr(o.err, "another driver"));
    assert_non_null(strstr(o.err, pid));
    expect_refused("held", o, "driver.lock");
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(test_a_link_is_not_followed),
        ROW(test_a_checkpoint_behind_a_link_is_none),
        ROW(test_what_is_made_is_for_nobody_else),
        ROW(test_a_study_of_an_earlier_version_is_tightened),
        ROW(test_what_belongs_to_another_user_is_refused),
        ROW(test_a_note_ends_no_process),
        ROW(test_a_row_ends_no_process),
        ROW(test_who_holds_a_lock_is_told_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
