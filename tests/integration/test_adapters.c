/* The adapters of python/pipetune.py: of frameworks that are not here by stand-ins, which call them as these do; scikit-learn and xgboost by
 * Debian's own, where they are installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "base/strv.h"
#include "tests/integration/harness.h"

#define ANSWER "{\"hyper\":{\"lr\":0.5},\"epochs\":4,\"checkpoint\":\"/c\",\"resume\":null,\"seed\":7}"

/* Four epochs are wanted, and after the second one no more: what is told of a third is one too many. */
#define PRELUDE                                                                                                        \
    "import sys, types\n"                                                                                              \
    "import pipetune\n"                                                                                                \
    "def module(name, **what):\n"                                                                                      \
    "    sys.modules[name] = types.ModuleType(name)\n"                                                                 \
    "    sys.modules[name].__dict__.update(what)\n"                                                                    \
    "class Scalar:\n" /* of numpy and torch: no float */                                                               \
    "    def __init__(self, value): self.value = value\n"                                                              \
    "    def item(self): return self.value\n"                                                                          \
    "class Many:\n"                                                                                                    \
    "    def item(self): raise ValueError('only one element tensors can be converted')\n"                              \
    "trial = pipetune.trial(lr=0.1)\n"                                                                                 \
    "tell, told = trial.tell, 0\n"                                                                                     \
    "def counted(**words):\n"                                                                                          \
    "    global told\n"                                                                                                \
    "    told += 1\n"                                                                                                  \
    "    tell(**words)\n"                                                                                              \
    "trial.tell = counted\n"                                                                                           \
    "pipetune.Trial.stopped = property(lambda self: told >= 2)\n"

#define TOLD(epoch, figures) "pipetune told {\"epoch\":" #epoch "," figures "}\n"

static const struct adapter {
    const char *name, *python;
    const char *script;
    const char *want; /* that is heard */
} adapters[] = {
    { "keras", "python3",
      "class Callback: pass\n"
      "module('keras'); module('keras.callbacks', Callback=Callback)\n"
      "model = types.SimpleNamespace(stop_training=False)\n"
      "call = pipetune.keras(trial)\n"
      "assert isinstance(call, Callback)\n"
      "call.model = model\n"
      "for epoch in range(trial.count(9)):\n"
      "    call.on_epoch_end(epoch, {'loss': Scalar(0.5), 'val_accuracy': 0.25})\n"
      "    if model.stop_training: break\n"
      "assert epoch == 1, epoch\n",
      TOLD(1, "\"loss\":0.5,\"val_accuracy\":0.25") TOLD(2, "\"loss\":0.5,\"val_accuracy\":0.25") },
    { "keras without figures", "python3",
      "module('keras'); module('keras.callbacks', Callback=object)\n"
      "call = pipetune.keras(trial)\n"
      "call.model = types.SimpleNamespace(stop_training=False)\n"
      "call.on_epoch_end(0)\n",
      "pipetune told {\"epoch\":1}\n" },
    { "lightning", "python3",
      "class Callback: pass\n"
      "module('lightning'); module('lightning.pytorch'); module('lightning.pytorch.callbacks', Callback=Callback)\n"
      "call = pipetune.lightning(trial)\n"
      "assert isinstance(call, Callback)\n"
      "trainer = types.SimpleNamespace(should_stop=False, current_epoch=0, callback_metrics={\n"
      "    'train_loss': Scalar(0.5), 'confusion': Many(), 'epoch': Scalar(0), 'step': Scalar(9)})\n"
      "for trainer.current_epoch in range(trial.count(9)):\n"
      "    call.on_train_epoch_end(trainer, None)\n"
      "    if trainer.should_stop: break\n"
      "assert trainer.current_epoch == 1\n",
      TOLD(1, "\"train_loss\":0.5") TOLD(2, "\"train_loss\":0.5") },
    { "lightning of before", "python3",
      "class Callback: pass\n"
      "sys.modules['lightning'] = None\n"
      "module('pytorch_lightning'); module('pytorch_lightning.callbacks', Callback=Callback)\n"
      "call = pipetune.lightning(trial)\n"
      "assert isinstance(call, Callback)\n"
      "call.on_train_epoch_end(types.SimpleNamespace(should_stop=False, current_epoch=0, callback_metrics={'a': 1}), "
      "None)\n",
      TOLD(1, "\"a\":1.0") },
    { "transformers", "python3",
      "class TrainerCallback: pass\n"
      "module('transformers', TrainerCallback=TrainerCallback)\n"
      "call = pipetune.transformers(trial)\n"
      "assert isinstance(call, TrainerCallback)\n"
      "control = types.SimpleNamespace(should_training_stop=False)\n"
      "for epoch in (0.98, 2.0, 3.0):\n" /* it puts its own epoch among the figures */
      "    call.on_evaluate(None, types.SimpleNamespace(epoch=epoch), control, model=None,\n"
      "                     metrics={'eval_loss': 0.5, 'eval_f1': Scalar(0.25), 'note': 'text', 'epoch': epoch})\n"
      "    if control.should_training_stop: break\n"
      "assert epoch == 2.0, epoch\n",
      TOLD(1, "\"eval_loss\":0.5,\"eval_f1\":0.25") TOLD(2, "\"eval_loss\":0.5,\"eval_f1\":0.25") },
    { "xgboost", "python3",
      "class TrainingCallback: pass\n"
      "module('xgboost'); module('xgboost.callback', TrainingCallback=TrainingCallback)\n"
      "call = pipetune.xgboost(trial)\n"
      "assert isinstance(call, TrainingCallback)\n"
      "log = {'train': {'rmse': []}, 'test': {'rmse': []}}\n"
      "for epoch in range(trial.count(9)):\n"
      "    log['train']['rmse'].append(1.5), log['test']['rmse'].append((0.5, 0.1))\n" /* cv: mean and deviation */
      "    if call.after_iteration(None, epoch, log): break\n"
      "assert epoch == 1, epoch\n",
      TOLD(1, "\"train-rmse\":1.5,\"test-rmse\":0.5") TOLD(2, "\"train-rmse\":1.5,\"test-rmse\":0.5") },
    { "lightgbm", "python3",
      "class EarlyStopException(Exception):\n"
      "    def __init__(self, best_iteration, best_score): self.best = best_iteration, best_score\n"
      "module('lightgbm'); module('lightgbm.callback', EarlyStopException=EarlyStopException)\n"
      "call = pipetune.lightgbm(trial)\n"
      "try:\n"
      "    for i in range(trial.count(9)):\n"
      "        call(types.SimpleNamespace(iteration=i, evaluation_result_list=[('valid', 'l2', 0.5, False)]))\n"
      "except EarlyStopException as stop:\n"
      "    assert stop.best == (1, [('valid', 'l2', 0.5, False)]), stop.best\n"
      "assert i == 1, i\n",
      TOLD(1, "\"valid-l2\":0.5") TOLD(2, "\"valid-l2\":0.5") },
    { "partial_fit, of anything", "python3",
      "class Sparse:\n" /* of scipy: it has rows, and no length */
      "    shape = (3, 2)\n"
      "    def __len__(self): raise TypeError('sparse matrix length is ambiguous')\n"
      "class Model:\n"
      "    seen = 0\n"
      "    def partial_fit(self, x, y, classes): self.seen += len(y)\n"
      "model = pipetune.partial_fit(trial, Model(), lambda: [(Sparse(), [0, 1, 0]), ([[1], [2]], [1, 0])],\n"
      "                             lambda m: {'accuracy': m.seen / 8}, count=9, classes=[0, 1])\n"
      "assert model.seen == 10, model.seen\n",
      "pipetune told {\"step\":1,\"epoch\":1,\"records\":3.0}\npipetune told "
      "{\"step\":2,\"epoch\":1,\"records\":2.0}\n" TOLD(
          1, "\"accuracy\":0.625") "pipetune told {\"step\":3,\"epoch\":2,\"records\":3.0}\npipetune told "
                                   "{\"step\":4,\"epoch\":2,\"records\":2.0}\n" TOLD(2, "\"accuracy\":1.25") },
    { "sklearn", "/usr/bin/python3",
      "import numpy\n"
      "from sklearn.linear_model import SGDClassifier\n"
      "x, y = numpy.array([[0.0], [1.0], [0.0], [1.0]]), numpy.array([0, 1, 0, 1])\n"
      "model = pipetune.partial_fit(trial, SGDClassifier(random_state=1), lambda: [(x, y)],\n"
      "                             lambda m: {'accuracy': m.score(x, y)}, count=9, classes=[0, 1])\n"
      "assert model.score(x, y) == 1\n",
      "pipetune told {\"step\":1,\"epoch\":1,\"records\":4.0}\n" TOLD(
          1, "\"accuracy\":1.0") "pipetune told {\"step\":2,\"epoch\":2,\"records\":4.0}\n" TOLD(2,
                                                                                                 "\"accuracy\":1.0") },
    { "xgboost, the real one", "/usr/bin/python3",
      "import numpy, xgboost\n"
      "data = xgboost.DMatrix(numpy.array([[0.0], [1.0]] * 8), numpy.array([0, 1] * 8))\n"
      "model = xgboost.train({'objective': 'binary:logistic', 'eval_metric': 'error', 'nthread': 1}, data,\n"
      "                      trial.count(9), evals=[(data, 'train')], verbose_eval=False,\n"
      "                      callbacks=[pipetune.xgboost(trial)])\n"
      "assert model.num_boosted_rounds() == 2, model.num_boosted_rounds()\n",
      TOLD(1, "\"train-error\":0.0") TOLD(2, "\"train-error\":0.0") },
};

/* Is what it imports installed? */
static bool is_there(const struct adapter *a)
{
    char *const argv[] = { (char *)"/usr/bin/python3", (char *)"-c", (char *)"import numpy, sklearn, xgboost", NULL };
    if (strcmp(a->python, "python3") == 0)
        return true;
    if (access(argv[0], X_OK) < 0)
        return false;
    struct harness_output o = harness_run(argv, 3 * HARNESS_MS);
    bool there = o.code == 0;
    harness_output_done(&o);
    return there;
}

static pid_t start(const char *dir, const struct adapter *a)
{
    int pair[2];
    char line[512] = "";
    AUTO_FREE char *node = harness_program("pipetune-node");
    AUTO_FREE char *path = harness_path(dir, "s"), *script = harness_path(dir, "script.py");
    AUTO_FREE char *text = NULL;
    assert_true(asprintf(&text, "%s%s", PRELUDE, a->script) > 0);
    harness_write(dir, "script.py", text);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int theirs = dup(pair[1]);
    AUTO_STRV struct strv argv = STRV_INIT;
    const char *const words[] = { node,      "exec",     "--dir", dir,      "--attempt", "1",        "--launch",
                                  "adapter", "--answer", ANSWER,  "--tell", path,        "--control" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        strv_add(&argv, words[i]);
    strv_addf(&argv, "%d", theirs);
    const char *const step[] = { "--", "3", "/usr/bin/env", a->python, script };
    for (size_t i = 0; i < ARRAY_LEN(step); i++)
        strv_add(&argv, step[i]);
    pid_t pid = harness_spawn(argv.v, -1, -1);
    (void)close(pair[1]), (void)close(theirs);
    if (read(pair[0], line, sizeof line - 1) <= 0 || strncmp(line, "ready ", 6) != 0)
        fail_msg("%s: got '%s', want 'ready …'", a->name, line);
    assert_int_equal(send(pair[0], "g", 1, MSG_NOSIGNAL), 1);
    (void)close(pair[0]);
    return pid;
}

/* Without the stamp before each line. */
static void put_bare(char *out, size_t size, const char *heard)
{
    *out = '\0';
    for (const char *at = heard; at && *at; at += strcspn(at, "\n") + 1) {
        const char *words = at + strcspn(at, " \n");
        (void)snprintf(out + strlen(out), size - strlen(out), "%.*s\n", (int)strcspn(words, "\n") - 1, words + 1);
    }
}

static void each_tells_its_epochs_and_ends_when_told(void **state)
{
    char folder[1024], got[2048];
    (void)state;
    assert_non_null(getcwd(folder, sizeof folder));
    AUTO_FREE char *library = harness_path(folder, "python");
    (void)setenv("PYTHONPATH", library, 1);
    (void)setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    for (size_t i = 0; i < ARRAY_LEN(adapters); i++) {
        const struct adapter *a = &adapters[i];
        if (!is_there(a)) {
            print_message("%s: skipped, Debian's numpy, scikit-learn or xgboost is not here\n", a->name);
            continue;
        }
        char *dir = harness_dir();
        assert_int_equal(harness_exit_code(start(dir, a), 3 * HARNESS_MS), 0);
        AUTO_FREE char *heard = harness_read(dir, "heard"), *log = harness_read(dir, "log");
        AUTO_FREE char *note = harness_read(dir, "exit");
        put_bare(got, sizeof got, heard);
        if (strcmp(got, a->want) != 0 || !strstr(note, "kind=exited code=0"))
            fail_msg("%s: heard '%s', want '%s'; %slog: %s", a->name, got, a->want, note, log);
        harness_remove(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_tells_its_epochs_and_ends_when_told),
    };
    return cmocka_run_group_tests_name("adapters", tests, NULL, NULL);
}
