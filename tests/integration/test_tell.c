/* What programs of an attempt tell of themselves: the launcher's socket, python/pipetune.py and `pipetune tell` on it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/strv.h"
#include "tests/integration/harness.h"

#define ANSWER "{\"hyper\":{\"lr\":0.5,\"kind\":\"a\"},\"epochs\":3,\"checkpoint\":\"/c\",\"resume\":null,\"seed\":7}"

struct bench {
    char *dir, *node, *pipetune, *socket;
};

static int set_up(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    char folder[1024];
    if (!b || !getcwd(folder, sizeof folder))
        return -1;
    b->dir = harness_dir();
    b->node = harness_program("pipetune-node");
    b->pipetune = harness_program("pipetune");
    b->socket = harness_path(b->dir, "s");
    AUTO_FREE char *library = harness_path(folder, "python");
    (void)setenv("D", b->dir, 1);
    (void)setenv("PIPETUNE", b->pipetune, 1);
    (void)setenv("PYTHONPATH", library, 1);
    (void)setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;
    harness_remove(b->dir);
    free(b->node);
    free(b->pipetune);
    free(b->socket);
    free(b);
    return 0;
}

/* One attempt, given the go; it must be ended. */
static pid_t start(const struct bench *b, const char *program, const char *option, const char *script)
{
    int pair[2];
    char line[512] = "";
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int theirs = dup(pair[1]);
    AUTO_STRV struct strv argv = STRV_INIT;
    const char *const words[] = { b->node,     "exec",     "--dir", b->dir,   "--attempt", "1",        "--launch",
                                  "tell-test", "--answer", ANSWER,  "--tell", b->socket,   "--control" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        strv_add(&argv, words[i]);
    strv_addf(&argv, "%d", theirs);
    const char *const step[] = { "--", "3", program, option, script };
    for (size_t i = 0; i < ARRAY_LEN(step); i++)
        strv_add(&argv, step[i]);
    pid_t pid = harness_spawn(argv.v, -1, -1);
    (void)close(pair[1]), (void)close(theirs);
    assert_true(read(pair[0], line, sizeof line - 1) > 0);
    if (strncmp(line, "ready ", 6) != 0)
        fail_msg("got '%s', want 'ready …'", line);
    assert_int_equal(send(pair[0], "g", 1, MSG_NOSIGNAL), 1);
    (void)close(pair[0]);
    return pid;
}

/* What was heard, without its stamps, each of which is a moment of today. */
static char *heard(const struct bench *b)
{
    AUTO_FREE char *text = harness_read(b->dir, "heard");
    AUTO_BUF struct buf out = BUF_INIT;
    for (const char *at = text; at && *at; at += strcspn(at, "\n") + 1) {
        char *line = NULL;
        long long stamp = strtoll(at, &line, 10);
        if (stamp < 1700000000000 || *line != ' ')
            fail_msg("no stamp: '%.40s'", at);
        buf_put(&out, line + 1, strcspn(line, "\n") - 1);
        buf_putc(&out, '\n');
    }
    return strdup(buf_text(&out));
}

static void expect_heard(const struct bench *b, pid_t pid, const char *want)
{
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    AUTO_FREE char *got = heard(b);
    if (strcmp(got, want) != 0) {
        AUTO_FREE char *log = harness_read(b->dir, "log");
        fail_msg("heard '%s', want '%s'; log: %s", got, want, log ? log : "");
    }
}

static pid_t start_python(const struct bench *b, const char *script)
{
    harness_write(b->dir, "script.py", script);
    AUTO_FREE char *path = harness_path(b->dir, "script.py");
    return start(b, "/usr/bin/env", "python3", path);
}

static void a_script_tells_by_the_library(void **state)
{
    struct bench *b = *state;
    pid_t pid =
        start_python(b, "import pipetune\n"
                        "trial = pipetune.trial(lr=0.1, batch=32)\n"
                        "assert trial.tuned and (trial.lr, trial.batch, trial.kind) == (0.5, 32, 'a'), trial.hyper\n"
                        "assert (trial.seed, trial.resume, trial.folder, trial.count(9)) == (7, None, '/c', 3)\n"
                        "for epoch in trial.epochs(9):\n"
                        "    trial.step(records=64, loss=1 / epoch)\n"
                        "    trial.tell(loss=float('nan') if epoch == 2 else 0.5)\n"
                        "    trial.tell(accuracy=0.25 * epoch)\n"
                        "    if epoch == 2: trial.checkpoint('/c/2')\n");
    expect_heard(b, pid,
                 "pipetune told {\"step\":1,\"epoch\":1,\"records\":64.0,\"loss\":1.0}\n"
                 "pipetune told {\"epoch\":1,\"loss\":0.5,\"accuracy\":0.25}\n"
                 "pipetune told {\"step\":2,\"epoch\":2,\"records\":64.0,\"loss\":0.5}\n"
                 "pipetune told {\"epoch\":2,\"loss\":\"nan\",\"accuracy\":0.5}\n"
                 "pipetune told {\"checkpoint\":\"/c/2\",\"epoch\":2}\n"
                 "pipetune told {\"step\":3,\"epoch\":3,\"records\":64.0,\"loss\":0.3333333333333333}\n"
                 "pipetune told {\"epoch\":3,\"loss\":0.5,\"accuracy\":0.75}\n");
    assert_int_not_equal(access(b->socket, F_OK), 0); /* it goes with its launcher */
}

static void a_shell_script_tells_by_the_command(void **state)
{
    struct bench *b = *state;
    pid_t pid = start(b, "/bin/sh", "-ec",
                      "test $(stat -c %a $PIPETUNE_TELL) = 600; echo printed\n"
                      "$PIPETUNE tell loss=0.31 accuracy=nan --epoch 3\n"
                      "cd /tmp; $PIPETUNE tell --checkpoint x/y --epoch 3; $PIPETUNE tell --step 7 --records 32\n"
                      "! $PIPETUNE tell loss=low 2>$D/low; ! $PIPETUNE tell 2>$D/nothing\n");
    expect_heard(b, pid,
                 "printed\n"
                 "pipetune told {\"epoch\":3,\"loss\":0.31,\"accuracy\":\"nan\"}\n"
                 "pipetune told {\"epoch\":3,\"checkpoint\":\"/tmp/x/y\"}\n"
                 "pipetune told {\"step\":7,\"records\":32}\n");
    AUTO_FREE char *low = harness_read(b->dir, "low"), *nothing = harness_read(b->dir, "nothing");
    assert_string_equal(low, "pipetune: 'loss=low': 'low' is no number\n");
    assert_string_equal(nothing, "pipetune: it tells nothing: no epoch, no step, no metric, no checkpoint\n");
}

static void outside_of_a_trial_the_command_says_so(void **state)
{
    struct bench *b = *state;
    char *argv[] = { b->pipetune, (char[]){ "tell" }, (char[]){ "loss=1" }, NULL };
    struct harness_output o = harness_run(argv, HARNESS_MS);
    assert_int_equal(o.code, 3);
    assert_string_equal(o.err, "pipetune: this is no trial: PIPETUNE_TELL is not set, as it is in what 'pipetune run' "
                               "starts\n");
    harness_output_done(&o);
}

static void outside_of_a_trial_a_script_is_a_script(void **state)
{
    struct bench *b = *state;
    harness_write(b->dir, "script.py",
                  "import pipetune\n"
                  "trial = pipetune.trial(lr=0.1)\n"
                  "for epoch in trial.epochs(2):\n"
                  "    trial.step(); trial.tell(loss=1); trial.checkpoint('x')\n"
                  "print(trial.lr, epoch, trial.tuned, trial.resume, trial.stopped)\n"
                  "try: trial.rate\n"
                  "except AttributeError as error: print(error)\n");
    AUTO_FREE char *path = harness_path(b->dir, "script.py");
    char *argv[] = { (char[]){ "/usr/bin/env" }, (char[]){ "python3" }, path, NULL };
    struct harness_output o = harness_run(argv, HARNESS_MS);
    assert_string_equal(o.out, "0.1 2 False None False\n"
                               "no hyperparameter is called 'rate': give a default, pipetune.trial(rate=…)\n");
    harness_output_done(&o);
}

/* Words of a program without the library: what is wrong is said back, and the others hold. */
static void what_is_no_telling_is_refused(void **state)
{
    struct bench *b = *state;
    pid_t pid = start_python(
        b, "import os, socket\n"
           "s = socket.socket(socket.AF_UNIX); s.connect(os.environ['PIPETUNE_TELL'])\n"
           "f = s.makefile('rwb')\n"
           "def say(x): f.write(x); f.flush(); return f.readline()\n"
           "assert say(b'nonsense\\n') == b'{\"error\":\"column 1: not a JSON object\"}\\n'\n"
           "assert b'is no number' in say(b'{\"loss\":\"low\"}\\n')\n"
           "assert say(b'{\"hello\":1}\\n').startswith(b'{\"hyper\":')\n"
           "assert b'without an end' in say(b'x' * 70000)\n"
           "t = [socket.socket(socket.AF_UNIX) for _ in range(20)]\n"
           "for i, x in enumerate(t):\n"
           "    x.connect(os.environ['PIPETUNE_TELL']); x.sendall(b'{\"epoch\":%d}\\n' % (i + 1)); x.close()\n");
    AUTO_BUF struct buf want = BUF_INIT;
    for (int i = 1; i <= 20; i++) /* also those that have closed, and for which there was no place at first */
        buf_printf(&want, "pipetune told {\"epoch\":%d}\n", i);
    expect_heard(b, pid, buf_text(&want));
}

static void a_trial_is_told_to_end_at_an_epochs_end(void **state)
{
    struct bench *b = *state;
    pid_t pid = start_python(b, "import os, time, pipetune\n"
                                "trial = pipetune.trial()\n"
                                "for epoch in trial.epochs(99):\n"
                                "    trial.tell(loss=1)\n"
                                "    open(os.environ['D'] + '/begun', 'w').close()\n"
                                "    while epoch == 2 and not trial.stopped: time.sleep(0.01)\n"
                                "assert pipetune.trial().stopped\n");
    if (!harness_wait_file(b->dir, "begun", HARNESS_MS))
        fail_msg("it never began");
    assert_int_equal(kill(pid, SIGUSR1), 0);
    assert_int_equal(harness_exit_code(pid, HARNESS_MS), 0);
    AUTO_FREE char *note = harness_read(b->dir, "exit"), *got = heard(b);
    assert_non_null(strstr(note, "kind=exited code=0"));
    assert_null(strstr(got, "\"epoch\":3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_script_tells_by_the_library, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_shell_script_tells_by_the_command, set_up, tear_down),
        cmocka_unit_test_setup_teardown(outside_of_a_trial_the_command_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(outside_of_a_trial_a_script_is_a_script, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_telling_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_trial_is_told_to_end_at_an_epochs_end, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("tell", tests, NULL, NULL);
}
