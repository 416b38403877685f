#!/usr/bin/env python3
"""Optuna on a table of curves, as `pipetune replay search --json` prints its own: peers.py TABLE --workers W --repeats N …

It draws from the open space that the table's points lie in, and what it draws is snapped to the nearest point, which costs it something: compare with
care. It neither pauses nor goes on: a point that comes again is paid again.
"""
import argparse
import heapq
import json
import math
import sys
import time
import warnings

import optuna

warnings.filterwarnings("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)


class Table:
    def __init__(self, path):
        lines = [json.loads(line) for line in open(path) if line.strip()]
        self.head, rows = lines[0], lines[1:]
        self.sign = -1 if self.head["direction"] == "max" else 1
        self.epochs = self.head["epochs"]
        self.names = list(self.head["hyper"])
        values = [[None if v is None else self.sign * v for v in r["values"]] for r in rows]
        self.worst = max(v for r in values for v in r if v is not None)
        self.values = [[self.worst if v is None else v for v in r] for r in values]
        bests = sorted(min(v) for v in self.values)
        self.best = bests[0]
        n = len(bests)
        self.median = (bests[(n - 1) // 2] + bests[n // 2]) / 2
        self.units = [self.unit(r["hyper"]) for r in rows]

    def unit(self, hyper):
        u = []
        for name in self.names:
            d, x = self.head["hyper"][name], hyper[name]
            if isinstance(d, dict) and "values" in d:
                d = d["values"]
            if isinstance(d, list):
                u.append(d.index(x) / max(1, len(d) - 1))
            elif d.get("scale") == "log":
                u.append((math.log(x) - math.log(d["min"])) / (math.log(d["max"]) - math.log(d["min"])))
            else:
                u.append((x - d["min"]) / (d["max"] - d["min"]))
        return u

    def suggest(self, trial):
        hyper = {}
        for name in self.names:
            d = self.head["hyper"][name]
            if isinstance(d, dict) and "values" in d:
                d = d["values"]
            if isinstance(d, list):
                hyper[name] = d[trial.suggest_int(name, 0, len(d) - 1)]
            elif isinstance(d["min"], int) and isinstance(d["max"], int):
                hyper[name] = trial.suggest_int(name, d["min"], d["max"], log=d.get("scale") == "log")
            else:
                hyper[name] = trial.suggest_float(name, d["min"], d["max"], log=d.get("scale") == "log")
        u = self.unit(hyper)
        return min(range(len(self.units)), key=lambda i: sum((a - b) ** 2 for a, b in zip(u, self.units[i])))


def make(kind, table, seed):
    sampler = optuna.samplers.RandomSampler(seed) if kind == "optuna_random" else optuna.samplers.TPESampler(seed=seed)
    pruner = optuna.pruners.HyperbandPruner(1, table.epochs, 3) if kind.endswith("+hyperband") else optuna.pruners.NopPruner()
    # A trial's bracket is drawn by the study's name.
    return optuna.create_study(study_name="s%d" % seed, sampler=sampler, pruner=pruner)


def play(kind, table, workers, budget, marks, seed):
    study = make(kind, table, seed)
    running, best, spent, order, trials, regret, asked = [], table.worst, 0, 0, 0, {}, 0.0

    def start(now):
        nonlocal order, trials, asked
        begun = time.process_time()
        trial = study.ask()
        config = table.suggest(trial)
        asked += time.process_time() - begun
        heapq.heappush(running, (now + 1, order, trial, config, 0))
        order += 1
        trials += 1

    for _ in range(workers):
        start(0)
    while spent < budget:
        now, o, trial, config, epoch = heapq.heappop(running)
        value = table.values[config][epoch]
        epoch, spent, best = epoch + 1, spent + 1, min(best, value)
        begun = time.process_time()
        trial.report(value, epoch)
        pruned = epoch < table.epochs and trial.should_prune()
        over = epoch == table.epochs or pruned
        if over:
            study.tell(trial, None if pruned else value,
                       optuna.trial.TrialState.PRUNED if pruned else optuna.trial.TrialState.COMPLETE)
        asked += time.process_time() - begun
        if str(spent) in marks:
            regret[str(spent)] = (best - table.best) / (table.median - table.best)
        if over:
            start(now)
        else:
            heapq.heappush(running, (now + 1, o, trial, config, epoch))
    return regret, trials, 1e3 * asked / (trials + spent)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("table")
    p.add_argument("--kinds", default="optuna_tpe,optuna_tpe+hyperband")
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--budget", type=int, default=1000)
    o = p.parse_args()
    table, out = Table(o.table), {}
    marks = [m for m in ("50", "100", "200", "500", "1000") if int(m) <= o.budget]
    for kind in o.kinds.split(","):
        runs = [play(kind, table, o.workers, o.budget, marks, seed) for seed in range(1, o.repeats + 1)]
        mean = lambda xs: sum(xs) / len(xs)
        out[kind if "+" in kind else kind + "+none"] = {
            "regret": {m: mean([r[0][m] for r in runs]) for m in marks}, "trials": mean([r[1] for r in runs]),
            "decision_ms": mean([r[2] for r in runs]), "epochs": o.budget}
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()
