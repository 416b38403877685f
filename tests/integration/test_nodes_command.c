/* `pipetune nodes` against hosts that are folders, and an ssh of ours that runs there what it is told as a login shell would: some are
 * dead, slow, or lie, and some have in the way what is none of ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "base/sha256.h"
#include "tests/integration/harness.h"

/* -- HOST COMMAND…; a host whose name begins with "bare" has no helper at the path of this one. */
#define SSH                                                                                                            \
    "#!/bin/sh\n"                                                                                                      \
    "while [ \"$1\" != -- ]; do shift; done\n"                                                                         \
    "shift; host=$1; shift; HOME=$HOSTS/$host; export HOME; unset XDG_STATE_HOME PIPETUNE_STORY\n"                     \
    "mkdir -p $HOME; cd $HOME; echo \"$*\" >>$HOSTS/asked\n"                                                           \
    "case $host in\n"                                                                                                  \
    "dead) echo 'ssh: connect to host dead port 22: No route to host' >&2; exit 255 ;;\n"                              \
    "slow*) exec sleep 100 ;;\n"                                                                                       \
    "flood) exec yes ;;\n"                                                                                             \
    "liar) read line; printf '%s\\n' '{\"id\":1,\"ok\":true,\"version\":\"\\u001b[2J\",\"cpus\":7}' "                  \
    "'{\"id\":2,\"ok\":true,\"running\":\"a b,;\",\"tag\":\"other\",\"memory_mb\":\"x\"}'; exit 0 ;;\n"                \
    "junk) echo '{\"id\":1,'; echo 'pipetune: put'; printf 'bad\\033[31m\\n' >&2; exit 3 ;;\n"                         \
    "chatty) echo 'Welcome to {\"id\":1, chatty'; echo ;;\n"                                                           \
    "*-arm) PATH=$HOSTS/arm:$PATH ;;\n"                                                                                \
    "*-cut) PATH=$HOSTS/cut:$PATH ;;\n"                                                                                \
    "esac\n"                                                                                                           \
    "case $host$1 in bare*pipetune-node) case $1 in /*) echo \"sh: $1: not found\" >&2; exit 127 ;; esac ;; esac\n"    \
    "exec sh -c \"$*\"\n"

static int open_hosts(void **state)
{
    if (world_open(state) < 0)
        return -1;
    const struct world *w = *state;
    AUTO_FREE char *hosts = harness_path(w->dir, "hosts"), *ssh = harness_path(w->dir, "ssh");
    world_dir(w, "hosts");
    world_dir(w, "hosts/arm");
    world_dir(w, "hosts/cut");
    world_script(w, "ssh", SSH);
    world_script(w, "hosts/arm/uname", "#!/bin/sh\necho Linux aarch64\n");
    world_script(w, "hosts/cut/cat", "#!/bin/sh\nexec head -c 1000\n");
    (void)setenv("HOSTS", hosts, 1);
    (void)setenv("PIPETUNE_SSH", ssh, 1);
    (void)setenv("COLUMNS", "250", 1);
    return 0;
}

static int close_hosts(void **state)
{
    (void)unsetenv("PIPETUNE_SSH");
    (void)unsetenv("COLUMNS");
    return world_close(state);
}

static void expect_parts(const char *what, const struct harness_output *o, int code, const char *const *parts)
{
    if (o->code != code)
        fail_msg("%s: got exit %d, want %d: %s%s", what, o->code, code, o->out, o->err);
    for (; *parts; parts++)
        if (!strstr(o->out, *parts) && !strstr(o->err, *parts))
            fail_msg("%s: no '%s' in %s%s", what, *parts, o->out, o->err);
}

#define EXPECT(what, code, call, ...)                                                                                  \
    do {                                                                                                               \
        struct harness_output o = call;                                                                                \
        expect_parts(what, &o, code, (const char *const[]){ __VA_ARGS__, NULL });                                      \
        harness_output_done(&o);                                                                                       \
    } while (0)

static bool is_at(const struct world *w, const char *path)
{
    AUTO_FREE char *whole = harness_path(w->dir, path);
    struct stat st;
    return lstat(whole, &st) == 0;
}

/* ~/.pipetune-node/HASH/name of a host, below the world's folder. */
static char *put_place(const struct world *w, const char *host, const char *name)
{
    char hash[SHA256_HEX_MAX], *path = NULL;
    struct err e;
    AUTO_FREE char *dir = io_dirname(w->program), *helper = io_join(dir, "pipetune-node");
    assert_int_equal(sha256_file(helper, hash, &e), 0);
    assert_true(asprintf(&path, "hosts/%s/.pipetune-node/%s%s%s", host, hash, *name ? "/" : "", name) > 0);
    return path;
}

static void hosts_are_told_with_what_is_there(void **state)
{
    const struct world *w = *state;
    EXPECT("ls", 0, RUN(w, "nodes", "ls", "a", "chatty"), "memory GiB", "a       0.1.0", "chatty  0.1.0");
    EXPECT("echo", 0, RUN(w, "nodes", "echo", "--hosts", "a,chatty", "--word", "ping"), "a       ping", "round ms");
    EXPECT("JSON", 0, RUN(w, "nodes", "ls", "a", "--json"), "\"state\": \"ok\"", "\"helper\": \"path\"",
           "\"running\": []", "\"why\": null", "\"clock_offset_s\": ");
    assert_false(is_at(w, "hosts/a/.local")); /* a look makes nothing */
}

static void hosts_that_fail_delay_and_harm_no_other(void **state)
{
    const struct world *w = *state;
    int64_t begun = clock_ms();
    EXPECT("ls", 1, RUN(w, "nodes", "ls", "slow1,slow2,dead,flood,liar,junk,a", "--timeout", "3"),
           "it has not answered in 3 s", "ssh: connect to host dead port 22: No route to host",
           "it said more than 262144 bytes", "ended with exit code 3: bad?[31m", "a      0.1.0");
    assert_true(clock_ms() - begun < 20000); /* and not a time-out of each */
    EXPECT("a liar's version", 0, RUN(w, "nodes", "ls", "liar", "--json"), "\"version\": \"?[2J\"", "\"cpus\": null",
           "\"memory_gb\": null", "\"running\": []");
    EXPECT("a liar's echo", 1, RUN(w, "nodes", "echo", "liar"), "it answered another word");
    EXPECT("put", 1, RUN(w, "nodes", "put", "dead", "flood", "junk", "x-arm", "x-cut", "b"), "No route to host",
           "it is a machine of another kind ('Linux aarch64')", "what arrived is not what was sent", "b      put",
           "x-arm  failed", "x-cut  failed", "junk   failed");
    AUTO_FREE char *cut = put_place(w, "x-cut", "pipetune-node");
    assert_false(is_at(w, cut));
    assert_false(is_at(w, "hosts/x-arm/.pipetune-node"));
}

static void a_helper_is_put_once_and_used(void **state)
{
    const struct world *w = *state;
    AUTO_FREE char *place = put_place(w, "bare", "pipetune-node");
    EXPECT("without", 1, RUN(w, "nodes", "ls", "bare"), "and none was put there: pipetune nodes put bare");
    EXPECT("put", 0, RUN(w, "nodes", "put", "bare", "--json"), "\"state\": \"put\"", "\"version\": \"0.1.0\"",
           "\"path\": \".pipetune-node/");
    assert_true(is_at(w, place));
    EXPECT("again", 0, RUN(w, "nodes", "put", "bare"), "bare  there  0.1.0");
    EXPECT("with", 0, RUN(w, "nodes", "ls", "bare", "--json"), "\"helper\": \"put\"", "\"state\": \"ok\"");
    harness_write(w->dir, place, "#!/bin/sh\necho evil\n");
    EXPECT("one that was changed is replaced", 0, RUN(w, "nodes", "put", "bare"), "bare  put    0.1.0");
    EXPECT("clean", 0, RUN(w, "nodes", "clean", "bare"), "removed ~/.pipetune-node/", "bare        3     0");
    assert_false(is_at(w, "hosts/bare/.pipetune-node"));
    EXPECT("nothing is left to be removed", 0, RUN(w, "nodes", "clean", "bare"), "bare        0     0");
}

/* What a study says of the host; it lasts long enough for the host to be asked twice. */
static void expect_study(const struct world *w, const char *name, const char *part)
{
    struct harness_output o = RUN(w, "run", "c.conf", "--name", name);
    if (o.code != 0 || (!strstr(o.err, part) && !strstr(o.out, part)))
        fail_msg("%s: got exit %d, %s%s", name, o.code, o.out, o.err);
    harness_output_done(&o);
}

static void a_study_uses_the_helper_that_was_put(void **state)
{
    const struct world *w = *state;
    world_script(w, "train.sh", "#!/bin/sh\nsleep 3; echo accuracy=0.5\n");
    harness_write(w->dir, "a.json",
                  "{ \"command\": [\"./train.sh\"], \"arguments\": { \"lr\": [\"{}\"], \"epochs\": [\"{}\"] },\n"
                  "  \"progress\": \"katib\" }");
    harness_write(w->dir, "c.conf",
                  "{ \"application\": \"a.json\", \"nodes\": [\"bare\"], \"study\": { \"epochs\": 1 },\n"
                  "  \"hyperParameters\": { \"lr\": 0.1 } }");
    expect_study(w, "without", "node 'bare' is left out from now on: it ended with exit code 127");
    EXPECT("put", 0, RUN(w, "nodes", "put", "bare"), "bare  put");
    /* That of a folder on this machine is one too many, which only one that answers can be found to be. */
    expect_study(w, "with", "node 'bare' is left out from now on: it sees the processes that this machine's");
}

static void what_is_none_of_ours_stays(void **state)
{
    const struct world *w = *state;
    AUTO_FREE char *elsewhere = harness_path(w->dir, "elsewhere"), *hash = put_place(w, "l2", "");
    AUTO_FREE char *link = harness_path(w->dir, "hosts/l1/.pipetune-node"), *inner = harness_path(w->dir, hash);
    static const char *const dirs[] = { "elsewhere", "hosts/l1", "hosts/l2", "hosts/l2/.pipetune-node" };
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        world_dir(w, dirs[i]);
    harness_write(w->dir, "elsewhere/pipetune-node", "theirs");
    assert_int_equal(symlink(elsewhere, link) | symlink(elsewhere, inner), 0);
    EXPECT("put", 1, RUN(w, "nodes", "put", "l1", "l2"), "~/.pipetune-node is a link: it stays as it is", "is a link");
    EXPECT("clean", 0, RUN(w, "nodes", "clean", "l1", "l2"), "kept ~/.pipetune-node: it is a link");
    assert_true(is_at(w, "elsewhere/pipetune-node") && is_at(w, hash) && is_at(w, "hosts/l1/.pipetune-node"));

    EXPECT("put", 0, RUN(w, "nodes", "put", "c"), "c     put");
    AUTO_FREE char *notes = put_place(w, "c", "notes"), *helper = put_place(w, "c", "pipetune-node");
    AUTO_FREE char *half = put_place(w, "c", "new.77");
    harness_write(w->dir, notes, "theirs");
    harness_write(w->dir, "hosts/c/.pipetune-node/a b", "theirs");
    harness_write(w->dir, "hosts/c/.pipetune-node/.hidden", "theirs");
    harness_write(w->dir, "hosts/c/file", "theirs");
    harness_write(w->dir, half, "a half");
    EXPECT("clean", 0, RUN(w, "nodes", "clean", "c"), "new.77", "a b: it is none of ours",
           ".hidden: it is none of ours", "it holds what is none of ours");
    assert_true(is_at(w, notes) && is_at(w, "hosts/c/file") && is_at(w, "hosts/c/.pipetune-node/a b"));
    assert_false(is_at(w, helper) || is_at(w, half));
}

static void launches_that_are_over_are_removed_and_others_keep_all(void **state)
{
    const struct world *w = *state;
    AUTO_FREE char *outside = harness_path(w->dir, "hosts/a/.local/state/pipetune/T1/work/link");
    static const char *const dirs[] = { "hosts/a",
                                        "hosts/a/.local",
                                        "hosts/a/.local/state",
                                        "hosts/a/.local/state/pipetune",
                                        "hosts/a/.local/state/pipetune/T1",
                                        "hosts/a/.local/state/pipetune/T1/work",
                                        "hosts/a/.local/state/pipetune/T2" };
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        world_dir(w, dirs[i]);
    assert_int_equal(symlink("/etc/passwd", outside), 0);
    harness_write(w->dir, "hosts/a/.local/state/pipetune/T1/exit", "1 0 0\n");
    EXPECT("ls", 0, RUN(w, "nodes", "ls", "a", "--json"), "\"over\": 2");
    harness_write(w->dir, "hosts/a/.local/state/pipetune/T2/lock", "");
    AUTO_FREE char *lock = harness_path(w->dir, "hosts/a/.local/state/pipetune/T2/lock"), *command = NULL;
    assert_true(asprintf(&command, "exec flock %s sh -c 'touch held; until [ -e go ]; do sleep 0.05; done'", lock) > 0);
    pid_t holder = fork();
    if (holder == 0) {
        (void)!chdir(w->dir);
        (void)execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(127);
    }
    while (!is_at(w, "held"))
        (void)usleep(10000);
    EXPECT("clean while one runs", 1, RUN(w, "nodes", "clean", "a"),
           "launches run there that studies began (1: T2): end them first", "folders of launches that were over: 1");
    assert_false(is_at(w, "hosts/a/.local/state/pipetune/T1"));
    harness_write(w->dir, "go", "");
    (void)waitpid(holder, NULL, 0);
    EXPECT("clean", 0, RUN(w, "nodes", "clean", "a"), "the folder that launches lie in");
    assert_false(is_at(w, "hosts/a/.local/state/pipetune"));
    assert_true(is_at(w, "hosts/a/.local/state"));
}

static void words_that_are_wrong_ask_nobody(void **state)
{
    const struct world *w = *state;
    EXPECT("no verb", 2, RUN(w, "nodes"), "there are ls, echo, put and clean");
    EXPECT("a verb", 2, RUN(w, "nodes", "pt", "a"), "there are ls, echo, put and clean");
    EXPECT("no hosts", 2, RUN(w, "nodes", "ls"), "which hosts: give --hosts LIST, or a --config with 'nodes'");
    EXPECT("an option", 2, RUN(w, "nodes", "ls", "--hosts", "-oProxyCommand=x"), "must not begin with '-'");
    EXPECT("a word", 2, RUN(w, "nodes", "echo", "a", "--word", "a b"), "option '--word'");
    EXPECT("twice", 2, RUN(w, "nodes", "ls", "a", "--hosts", "b"), "hosts are named twice");
    assert_false(is_at(w, "hosts/asked"));
    harness_write(w->dir, "c.conf",
                  "{ \"hosts\": { \"lab\": [\"a\", { \"host\": \"b\", \"port\": 2222 }] }, \"nodes\": [\"z\"] }");
    EXPECT("a list", 0, RUN(w, "nodes", "echo", "lab", "--config", "c.conf"), "a     hello", "b     hello");
    EXPECT("nodes", 0, RUN(w, "nodes", "echo", "--config", "c.conf", "--json"), "\"host\": \"z\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hosts_are_told_with_what_is_there, open_hosts, close_hosts),
        cmocka_unit_test_setup_teardown(hosts_that_fail_delay_and_harm_no_other, open_hosts, close_hosts),
        cmocka_unit_test_setup_teardown(a_helper_is_put_once_and_used, open_hosts, close_hosts),
        cmocka_unit_test_setup_teardown(a_study_uses_the_helper_that_was_put, open_hosts, close_hosts),
        cmocka_unit_test_setup_teardown(what_is_none_of_ours_stays, open_hosts, close_hosts),
        cmocka_unit_test_setup_teardown(launches_that_are_over_are_removed_and_others_keep_all, open_hosts,
                                        close_hosts),
        cmocka_unit_test_setup_teardown(words_that_are_wrong_ask_nobody, open_hosts, close_hosts),
    };
    return cmocka_run_group_tests_name("nodes command", tests, NULL, NULL);
}
