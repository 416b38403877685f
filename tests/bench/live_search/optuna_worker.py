#!/usr/bin/env python3
"""One of the workers that share an Optuna study: optuna_worker.py FOLDER N, started by `run`.

FOLDER/task.json says what: the command of a plain submission, the space, the target. Each epoch that was heard of is a line in
FOLDER/epochs-N: when (since 1970), trial, epoch, accuracy. A trial that the pruner gives up is killed, with all its processes. It ends
when all workers together have had the budget's epochs, or one of them has reached the target.
"""
import json
import os
import re
import signal
import subprocess
import sys
import time

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

ACCURACY = re.compile(r"\[Epoch (\d+) .*Top1Accuracy is .*accuracy: ([\d.eE+-]+)\)")


class Worker:
    def __init__(self, folder, number):
        with open(os.path.join(folder, "task.json"), encoding="ascii") as task:
            self.task = json.load(task)
        self.folder, self.number = folder, number
        self.told = open(os.path.join(folder, f"epochs-{number}"), "w", encoding="ascii")
        self.enough = os.path.join(folder, "enough")

    def is_over(self):
        return os.path.exists(self.enough)

    def end_all(self):
        with open(self.enough, "w", encoding="ascii"):
            pass

    def spent(self):
        """Epochs of all workers."""
        files = [f for f in os.listdir(self.folder) if f.startswith("epochs-")]
        return sum(sum(1 for _ in open(os.path.join(self.folder, f), encoding="ascii")) for f in files)

    def draw(self, trial):
        hyper = {}
        for name, of in self.task["space"].items():
            if isinstance(of, list):
                hyper[name] = trial.suggest_categorical(name, of)
            else:
                hyper[name] = trial.suggest_float(name, of["min"], of["max"], log=of.get("scale") == "log")
        return hyper

    def command(self, hyper):
        words = list(self.task["command"])
        for name, value in hyper.items():
            words[words.index("--" + name.replace("_", "-")) + 1] = repr(value)
        return words

    def hear(self, trial, epoch, value):
        """False: it is not to go on."""
        self.told.write(json.dumps([time.time(), trial.number, epoch, value]) + "\n")
        self.told.flush()
        trial.report(value, epoch)
        if (self.task["target"] is not None and value >= self.task["target"]) or self.spent() >= self.task["budget"]:
            self.end_all()
        return not trial.should_prune()

    def train(self, trial):
        value, pruned, heard = None, False, 0
        with open(os.path.join(self.folder, f"log-{trial.number}"), "w", encoding="utf-8") as log:
            job = subprocess.Popen(self.command(self.draw(trial)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, errors="replace", start_new_session=True)
            for line in job.stdout:
                log.write(line)
                found = ACCURACY.search(line)
                if found and int(found[1]) > heard:
                    heard, value = int(found[1]), float(found[2])
                    pruned = not self.hear(trial, heard, value)
                if (pruned or self.is_over()) and job.poll() is None:
                    os.killpg(job.pid, signal.SIGKILL)
            code = job.wait()
        if pruned:
            raise optuna.TrialPruned()
        if self.is_over():
            return value if value is not None else 0.0
        if code != 0 or heard < self.task["epochs"]:
            raise RuntimeError(f"trial {trial.number}: exit {code} after {heard} epochs")
        return value

    def run(self):
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        storage = JournalStorage(JournalFileBackend(os.path.join(self.folder, "journal")))
        # Two workers that draw by one seed would draw alike.
        study = optuna.create_study(
            study_name=self.task["name"], storage=storage, load_if_exists=True, direction="maximize",
            sampler=optuna.samplers.TPESampler(seed=1000 * self.task["seed"] + self.number),
            pruner=optuna.pruners.HyperbandPruner(1, self.task["epochs"], 3))
        while not self.is_over():
            study.optimize(self.train, n_trials=1)


if __name__ == "__main__":
    Worker(sys.argv[1], int(sys.argv[2])).run()
