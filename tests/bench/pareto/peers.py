#!/usr/bin/env python3
"""Optuna on a table of curves with several objectives: peers.py TABLE --trials N --repeats N, whole trainings, one after the other.

It draws from the open space that the table's points lie in, and what it draws is snapped to the nearest point that it has not
had yet, as ours never proposes one twice. The table says the hypervolume of each run by `share`, as src/search/curves_front.h
has it: the front of the table up to a tenth of its range beyond its worst figures is 1."""
import argparse
import json
import math
import sys
import warnings

import optuna

warnings.filterwarnings("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)


def dominates(a, b):
    return all(x <= y for x, y in zip(a, b)) and a != b


def front(points):
    points = sorted(set(points))
    return [p for i, p in enumerate(points) if not any(dominates(q, p) for q in points[:i])]


def volume(points, ref):
    """By slices along the last figure."""
    points = sorted((p for p in points if all(x < r for x, r in zip(p, ref))), key=lambda p: p[-1])
    if not points:
        return 0.0
    if len(ref) == 1:
        return ref[0] - min(p[0] for p in points)
    total = 0.0
    for i, p in enumerate(points):
        upto = points[i + 1][-1] if i + 1 < len(points) else ref[-1]
        if upto > p[-1]:
            total += (upto - p[-1]) * volume(front([q[:-1] for q in points[:i + 1]]), ref[:-1])
    return total


class Table:
    def __init__(self, path):
        with open(path, encoding="ascii") as f:
            self.head, *rows = [json.loads(line) for line in f if line.strip()]
        sign = -1 if self.head["direction"] == "max" else 1
        self.names = list(self.head["hyper"])
        worst = max(sign * v for r in rows for v in r["values"] if v is not None)
        self.figures = [(worst if r["values"][-1] is None else sign * r["values"][-1], sum(r["seconds"]), sum(r["joules"]))
                        for r in rows]
        self.units = [self.unit(r["hyper"]) for r in rows]
        best = front(self.figures)
        low, high = [min(c) for c in zip(*self.figures)], [max(c) for c in zip(*best)]
        self.ref = tuple(h + (0.1 * (h - l) if h > l else 1) for l, h in zip(low, high))
        self.all = volume(best, self.ref)

    def listed(self, name):
        d = self.head["hyper"][name]
        d = d["values"] if isinstance(d, dict) and "values" in d else d
        return d if isinstance(d, list) else None

    def unit(self, hyper):
        u = []
        for name in self.names:
            d, x, values = self.head["hyper"][name], hyper[name], self.listed(name)
            if values:
                u.append(values.index(x) / max(1, len(values) - 1))
            elif d.get("scale") == "log":
                u.append((math.log(x) - math.log(d["min"])) / (math.log(d["max"]) - math.log(d["min"])))
            else:
                u.append((x - d["min"]) / (d["max"] - d["min"]))
        return u

    def suggest(self, trial, used):
        hyper = {}
        for name in self.names:
            d, values = self.head["hyper"][name], self.listed(name)
            if values:
                hyper[name] = values[trial.suggest_int(name, 0, len(values) - 1)]
            elif isinstance(d["min"], int) and isinstance(d["max"], int):
                hyper[name] = trial.suggest_int(name, d["min"], d["max"], log=d.get("scale") == "log")
            else:
                hyper[name] = trial.suggest_float(name, d["min"], d["max"], log=d.get("scale") == "log")
        u = self.unit(hyper)
        left = (i for i in range(len(self.units)) if i not in used)
        return min(left, key=lambda i: sum((a - b) ** 2 for a, b in zip(u, self.units[i])))

    def share(self, used):
        return volume(front([self.figures[i] for i in used]), self.ref) / self.all


def play(table, trials, marks, seed):
    study = optuna.create_study(directions=["minimize"] * 3, sampler=optuna.samplers.TPESampler(seed=seed))
    used, out = set(), {}
    for n in range(1, trials + 1):
        trial = study.ask()
        config = table.suggest(trial, used)
        used.add(config)
        study.tell(trial, table.figures[config])
        if n in marks:
            out[n] = table.share(used)
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("table")
    p.add_argument("--trials", type=int, default=60)
    p.add_argument("--marks", default="20,40,60")
    p.add_argument("--repeats", type=int, default=10)
    o = p.parse_args()
    table, marks = Table(o.table), [int(m) for m in o.marks.split(",")]
    runs = [play(table, o.trials, marks, seed) for seed in range(1, o.repeats + 1)]
    json.dump({str(m): [r[m] for r in runs] for m in marks}, sys.stdout)


if __name__ == "__main__":
    main()
