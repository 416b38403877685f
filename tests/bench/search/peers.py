#!/usr/bin/env python3
"""Other people's searches over the curves that ours are played on, in virtual time: peers.py SOURCE --kinds K,… --workers W --seeds 1,2,… --cache DIR

SOURCE is a table (JSON lines, gzipped or not), whose listed points are all there is: what a peer draws is the nearest of them, which costs it
something; or open:TASK, where every point is trained for real (record.py), so that nothing is snapped.

So many workers train at once, an epoch takes and costs 1, whoever is free asks. A peer that can go on with a trial pays for its further epochs alone.
Printed is JSON: {"played": {KIND: {SEED: {"best": {"100": x, …}, "trials": n, "decision_ms": x}}}, "absent": {KIND: why}}; best: the lowest value seen
until then (of what is to be large, its negative), at any epoch of any trial.

Of open:TASK, --ours A+S,… are pairs of our own, played by the program --program (bench_search_open) over the same trainings.

A peer is a class: ask() gives a Job or None (nothing now), told(job, epoch, value) whether it goes on, over(job, epoch, value) that it ended; `pays`
says what it pays for. KINDS lists them.
"""
import argparse
import datetime
import gzip
import hashlib
import heapq
import json
import logging
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings

VERSION = 1  # of what is simulated: what was cached by another one is played again
MARKS = (50, 100, 200, 500, 1000)

warnings.filterwarnings("ignore")
os.environ.setdefault("OMP_NUM_THREADS", "1")


# --- spaces: each dimension as (name, "index" | "int" | "real", low, high, log, listed values) ------------------------

class Space:
    def __init__(self, hyper):
        self.dims = []
        for name, d in hyper.items():
            listed = d.get("values") if isinstance(d, dict) else d
            if listed:
                self.dims.append((name, "index", 0, len(listed) - 1, False, listed))
            else:
                kind = "int" if isinstance(d["min"], int) and isinstance(d["max"], int) else "real"
                self.dims.append((name, kind, d["min"], d["max"], d.get("scale") == "log", None))

    def hyper(self, raw):
        """What a peer drew, by name, as hyperparameters."""
        out = {}
        for name, kind, low, high, _, listed in self.dims:
            x = min(max(raw[name], low), high)
            out[name] = listed[int(x)] if listed else int(x) if kind == "int" else float(x)
        return out

    def unit(self, hyper):
        u = []
        for name, _, low, high, log, listed in self.dims:
            x = listed.index(hyper[name]) if listed else hyper[name]
            u.append((math.log(x / low) / math.log(high / low) if log else (x - low) / (high - low)) if high > low else 0)
        return u

    def from_unit(self, u):
        raw = {}
        for x, (name, kind, low, high, log, _) in zip(u, self.dims):
            y = low * (high / low) ** x if log else low + x * (high - low)
            raw[name] = y if kind == "real" else int(round(y))
        return self.hyper(raw)


# --- where curves come from: values are such that less is better, and diverged is the worst that the table holds ------

def read_table(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
        return [json.loads(line) for line in f if line.strip()]


class Listed:
    def __init__(self, path):
        head, *rows = read_table(path)
        sign = -1 if head["direction"] == "max" else 1
        self.hyper, self.space, self.epochs = head["hyper"], Space(head["hyper"]), head["epochs"]
        curves = [[None if v is None else sign * v for v in r["values"]] for r in rows]
        self.worst = max(v for c in curves for v in c if v is not None)
        self.curves = [[self.worst if v is None else v for v in c] for c in curves]
        self.units = [self.space.unit(r["hyper"]) for r in rows]
        bests = sorted(min(c) for c in self.curves)
        self.best, self.median = bests[0], (bests[(len(bests) - 1) // 2] + bests[len(bests) // 2]) / 2

    def curve(self, hyper):
        u = self.space.unit(hyper)
        return self.curves[min(range(len(self.units)), key=lambda i: sum((a - b) ** 2 for a, b in zip(u, self.units[i])))]


class Lazy:
    """A curve as far as anybody asked."""

    def __init__(self, training, sign, worst):
        self.training, self.sign, self.worst, self.values = training, sign, worst, []

    def __getitem__(self, epoch):
        while len(self.values) <= epoch:
            x = float(next(self.training)[0])
            self.values.append(self.sign * x if math.isfinite(x) else self.worst)
        return self.values[epoch]


class Open(Listed):
    """The table of the task says how large values are; every point has a curve."""

    def __init__(self, task, path):
        super().__init__(path)
        import record
        self.sign = -1 if record.TASKS[task][0] == "accuracy" else 1
        self.seed, self.task = list(record.TASKS).index(task), record.TASKS[task][3]

    def curve(self, hyper):
        return Lazy(self.task.train([hyper], self.seed), self.sign, self.worst)


def source_of(name):
    here = os.path.dirname(os.path.abspath(__file__))
    if name.startswith("open:"):
        return Open(name[5:], os.path.join(here, "../../data/curves", name[5:] + ".jsonl.gz"))
    return Listed(name)


# --- peers ------------------------------------------------------------------------------------------------------------

class Job:
    """Train the trial of that key to that epoch; `key` again: go on with it."""

    def __init__(self, key, hyper, until, info=None):
        self.key, self.hyper, self.until, self.info = key, hyper, until, info


class Optuna:
    pays = "every epoch once; what it pruned is gone"
    needs = ("optuna",)

    def __init__(self, source, seed, workers, sampler, hyperband=False):
        import optuna
        self.optuna, self.source, self.n = optuna, source, 0
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        pruner = optuna.pruners.HyperbandPruner(1, source.epochs, 3) if hyperband else optuna.pruners.NopPruner()
        # A trial's bracket is drawn by the study's name.
        self.study = optuna.create_study(study_name="s%d" % seed, sampler=getattr(optuna.samplers, sampler)(seed=seed),
                                         pruner=pruner)

    def ask(self):
        trial, raw = self.study.ask(), {}
        for name, kind, low, high, log, _ in self.source.space.dims:
            suggest = trial.suggest_float if kind == "real" else trial.suggest_int
            raw[name] = suggest(name, low, high, log=log)
        self.n += 1
        return Job(self.n, self.source.space.hyper(raw), self.source.epochs, trial)

    def told(self, job, epoch, value):
        job.info.report(value, epoch)
        return not job.info.should_prune()

    def over(self, job, epoch, value):
        states = self.optuna.trial.TrialState
        whole = epoch == self.source.epochs
        self.study.tell(job.info, value if whole else None, states.COMPLETE if whole else states.PRUNED)


class SyneTune:
    """Of version 0.16: ASHA by stopping."""
    pays = "every epoch once; what it stopped is gone"
    needs = ("syne_tune.optimizer.baselines",)

    def __init__(self, source, seed, workers, make):
        import numpy
        from syne_tune import config_space
        from syne_tune.backend.trial_status import Trial
        logging.disable(logging.CRITICAL)
        numpy.random.seed(seed)
        self.source, self.Trial, self.trials = source, Trial, {}
        space = {}
        for name, kind, low, high, log, _ in source.space.dims:
            kinds = (config_space.loguniform, config_space.uniform) if kind == "real" else (
                config_space.lograndint, config_space.randint)
            space[name] = kinds[0 if log else 1](low, high)
        self.scheduler = make(space, seed, source.epochs)

    def suggestion(self):
        """(number of a known trial or None, configuration)"""
        return None, self.scheduler.suggest().config

    def ask(self):
        number, config = self.suggestion()
        if number is None:
            number = len(self.trials)
            self.trials[number] = self.Trial(number, config, datetime.datetime(2000, 1, 1))
            self.scheduler.on_trial_add(self.trials[number])
        return Job(number, self.source.space.hyper(self.trials[number].config), self.source.epochs)

    def told(self, job, epoch, value):
        trial, result = self.trials[job.key], {"loss": value, "epoch": epoch}
        if self.scheduler.on_trial_result(trial, result) == "CONTINUE":
            return True
        self.scheduler.on_trial_remove(trial)
        return False

    def over(self, job, epoch, value):
        pass  # at the last epoch the answer was STOP


class SyneTunePromotion(SyneTune):
    """Of version 0.13, the last one that pauses trials and goes on with them."""
    pays = "goes on with what it paused, for the further epochs"
    needs = ("syne_tune.optimizer.schedulers.hyperband", "autograd")

    def suggestion(self):
        s = self.scheduler.suggest(len(self.trials))
        return (None, s.config) if s.spawn_new_trial_id else (int(s.checkpoint_trial_id), None)

    def told(self, job, epoch, value):
        trial, result = self.trials[job.key], {"loss": value, "epoch": epoch}
        if epoch == self.source.epochs:
            self.scheduler.on_trial_complete(trial, result)
            return False
        if self.scheduler.on_trial_result(trial, result) == "CONTINUE":
            return True
        self.scheduler.on_trial_remove(trial)
        return False


def bohb(space, seed, epochs):
    from syne_tune.optimizer.baselines import BOHB
    return BOHB(space, "loss", "epoch", epochs, random_seed=seed)


def promotion(searcher):
    def make(space, seed, epochs):
        from syne_tune.optimizer.schedulers.hyperband import HyperbandScheduler
        options = {"debug_log": False}
        if searcher == "bayesopt":
            options["opt_skip_init_length"] = 60  # as its documentation advises: fitted anew at every third decision behind that
            options["opt_skip_period"] = 3
        return HyperbandScheduler(dict(space, epochs=epochs), searcher=searcher, type="promotion", metric="loss",
                                  mode="min", resource_attr="epoch", max_resource_attr="epochs", grace_period=1,
                                  reduction_factor=3, random_seed=seed, search_options=options)
    return make


class Smac:
    """Multi-fidelity: Hyperband with a forest."""
    pays = "goes on with a configuration that gets a larger budget, for the further epochs"
    needs = ("smac",)

    def __init__(self, source, seed, workers):
        import ConfigSpace
        from smac import MultiFidelityFacade, Scenario
        from smac.runhistory.dataclasses import TrialValue
        logging.disable(logging.CRITICAL)
        self.source, self.TrialValue = source, TrialValue
        space = ConfigSpace.ConfigurationSpace(seed=seed)
        for name, kind, low, high, log, _ in source.space.dims:
            made = ConfigSpace.Float if kind == "real" else ConfigSpace.Integer
            space.add(made(name, (low, high), log=log))
        self.folder = tempfile.TemporaryDirectory()
        scenario = Scenario(space, n_trials=1000, min_budget=1, max_budget=source.epochs, seed=seed, n_workers=1,
                            deterministic=True, output_directory=self.folder.name)
        self.smac = MultiFidelityFacade(scenario, lambda config, seed, budget: 0.0, overwrite=True, logging_level=False)

    def ask(self):
        info = self.smac.ask()
        key = json.dumps(dict(info.config), sort_keys=True, default=float)
        return Job(key, self.source.space.hyper(dict(info.config)), max(1, round(info.budget)), info)

    def told(self, job, epoch, value):
        return True

    def over(self, job, epoch, value):
        self.smac.tell(job.info, self.TrialValue(cost=value, time=1.0), save=False)


class Dehb:
    pays = "goes on with what is promoted, for the further epochs; what it breeds is new"
    needs = ("dehb",)

    def __init__(self, source, seed, workers):
        import numpy
        from dehb import DEHB
        numpy.random.seed(seed)
        self.source, self.folder = source, tempfile.TemporaryDirectory()
        self.dehb = DEHB(dimensions=len(source.space.dims), min_fidelity=1, max_fidelity=source.epochs, eta=3, seed=seed,
                         n_workers=1, save_freq="end", output_path=self.folder.name, log_level="ERROR")
        self.dehb.save = lambda: None

    def ask(self):
        info = self.dehb.ask()
        return Job(int(info["config_id"]), self.source.space.from_unit(info["config"]), max(1, round(info["fidelity"])), info)

    def told(self, job, epoch, value):
        return True

    def over(self, job, epoch, value):
        self.dehb.tell(job.info, {"fitness": value, "cost": float(epoch)})


# Virtual environments, and what is installed into them by its name. Syne Tune went on with paused trials, and had MOBSTER, up to 0.13.
VENVS = {
    "peers": ("numpy<2", "scikit-learn", "optuna==5.0.0", "smac==2.4.1", "dehb==0.1.2", "syne-tune==0.16.0"),
    "peers-pausing": ("numpy<2", "scikit-learn", "syne-tune[gpsearchers]==0.13.0"),
}

KINDS = {
    # name: its environment, class, further arguments
    "optuna-random": ("peers", Optuna, ("RandomSampler",)),
    "optuna-tpe": ("peers", Optuna, ("TPESampler",)),
    "optuna-tpe-hyperband": ("peers", Optuna, ("TPESampler", True)),
    "optuna-gp": ("peers", Optuna, ("GPSampler",)),
    "smac-multi-fidelity": ("peers", Smac, ()),
    "dehb": ("peers", Dehb, ()),
    "synetune-bohb": ("peers", SyneTune, (bohb,)),
    "synetune-asha": ("peers-pausing", SyneTunePromotion, (promotion("random"),)),
    "synetune-mobster": ("peers-pausing", SyneTunePromotion, (promotion("bayesopt"),)),
}


def why_absent(kind):
    _, made, args = KINDS[kind]
    for module in made.needs + (("torch",) if "GPSampler" in args else ()):
        try:
            __import__(module)
        except Exception as why:  # whatever it says, it cannot be played
            return ("%s: %s" % (type(why).__name__, why)).splitlines()[0]
    return None


# --- virtual time -----------------------------------------------------------------------------------------------------

class Trial:
    def __init__(self, curve):
        self.curve, self.epoch, self.busy = curve, 0, False


class Player:
    def __init__(self, kind, source, seed, workers, budget):
        _, made, args = KINDS[kind]
        begun = time.process_time()
        self.peer = made(source, seed, workers, *args)
        self.source, self.workers, self.budget = source, workers, budget
        self.running, self.order, self.trials = [], 0, {}
        self.best, self.spent, self.asked, self.decisions, self.at = source.worst, 0, time.process_time() - begun, 0, {}

    def timed(self, what, *args):
        begun = time.process_time()
        got = what(*args)
        self.asked += time.process_time() - begun
        self.decisions += 1
        return got

    def start(self, now):
        """A free worker asks. What is trained so far already costs nothing, and is told at once."""
        for _ in range(1000):
            job = self.timed(self.peer.ask)
            if job is None:
                return
            trial = self.trial_of(job)
            if trial.epoch < job.until:
                trial.busy = True
                self.push(now, job, trial)
                return
            self.timed(self.peer.over, job, job.until, trial.curve[job.until - 1])
        raise RuntimeError("it asks for what it knows, again and again")

    def trial_of(self, job):
        """The one that got furthest; what is under way elsewhere is begun anew."""
        ready = [t for t in self.trials.get(job.key, ()) if not t.busy]
        if ready:
            return max(ready, key=lambda t: t.epoch)
        self.trials.setdefault(job.key, []).append(Trial(self.source.curve(job.hyper)))
        return self.trials[job.key][-1]

    def push(self, now, job, trial):
        self.order += 1
        heapq.heappush(self.running, (now + 1, self.order, job, trial))

    def epoch(self, now, job, trial):
        value = trial.curve[trial.epoch]
        trial.epoch += 1
        self.spent += 1
        self.best = min(self.best, value)
        if self.spent in MARKS:
            self.at[str(self.spent)] = self.best
        goes_on = self.timed(self.peer.told, job, trial.epoch, value)
        if goes_on and trial.epoch < job.until:
            self.push(now, job, trial)
            return
        trial.busy = False
        self.timed(self.peer.over, job, trial.epoch, value)
        self.start(now)

    def play(self):
        for _ in range(self.workers):
            self.start(0)
        while self.spent < self.budget and self.running:
            now, _, job, trial = heapq.heappop(self.running)
            self.epoch(now, job, trial)
        for mark in MARKS:
            if mark <= self.budget:
                self.at.setdefault(str(mark), self.best)  # it wanted nothing more
        return {"best": self.at, "trials": sum(map(len, self.trials.values())), "epochs": self.spent,
                "decision_ms": 1e3 * self.asked / max(1, self.decisions)}


# --- ours, over the same trainings ------------------------------------------------------------------------------------

def play_ours(program, pair, source, seed, workers, budget):
    """bench_search_open says whom it trains for an epoch, and is told the value."""
    child = subprocess.Popen([program] + pair.split("+") + [str(workers), str(seed), str(budget)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, bufsize=1)
    say = lambda j: print(json.dumps(j), file=child.stdin, flush=True)
    say({"hyperParameters": source.hyper})
    say({"metric": "loss", "direction": "min", "epochs": source.epochs, "worst": source.worst, "best": source.best,
         "median": source.median})
    curves, last = {}, {}
    for line in child.stdout:
        last = json.loads(line)
        if "hyper" in last:
            key = json.dumps(last["hyper"], sort_keys=True)
            if key not in curves:
                curves[key] = source.curve(last["hyper"])
            say({"value": curves[key][last["epoch"] - 1]})
    if child.wait() != 0 or "best" not in last:
        raise RuntimeError("%s: exit %d" % (os.path.basename(program), child.returncode))
    return last


# --- results that are kept --------------------------------------------------------------------------------------------

def fingerprint(name, program):
    """Of what the values come from: a table says how its task is trained, too."""
    here, sha = os.path.dirname(os.path.abspath(__file__)), hashlib.sha256()
    table = os.path.join(here, "../../data/curves", name[5:] + ".jsonl.gz") if name.startswith("open:") else name
    for path in [table] + ([program] if program else []):
        with open(path, "rb") as f:
            sha.update(f.read())
    return sha.hexdigest()[:12]


def kept(o, kind, seed, program, play):
    if not o.cache:
        return play()
    os.makedirs(o.cache, exist_ok=True)
    task = os.path.basename(o.source).split(".")[0].replace(":", "-")
    path = os.path.join(o.cache, "%s-%s-w%d-b%d-s%d-v%d-%s.json" % (
        task, kind, o.workers, o.budget, seed, VERSION, fingerprint(o.source, program)))
    if os.path.exists(path):
        with open(path) as f:
            return json.load(f)
    if o.kept_only:
        return None
    got = play()
    with open(path + ".new", "w") as f:
        json.dump(got, f)
    os.replace(path + ".new", path)
    return got


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("source")
    p.add_argument("--kinds", default=",".join(KINDS))
    p.add_argument("--ours", default="")
    p.add_argument("--program", default="")
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--seeds", default="1,2,3")
    p.add_argument("--budget", type=int, default=1000)
    p.add_argument("--cache", default="")
    p.add_argument("--kept-only", action="store_true", help="play nothing, say what is kept")
    o = p.parse_args()
    source, played, absent = None, {}, {}
    for kind in [k for k in o.kinds.split(",") + o.ours.split(",") if k]:
        ours, runs = kind not in KINDS, {}
        why = None if o.kept_only or ours else why_absent(kind)
        for seed in [int(s) for s in o.seeds.split(",")] if not why else ():
            def play():
                nonlocal source
                source = source or source_of(o.source)
                if ours:
                    return play_ours(o.program, kind, source, seed, o.workers, o.budget)
                return Player(kind, source, seed, o.workers, o.budget).play()
            try:
                run = kept(o, kind, seed, o.program if ours else "", play)
            except Exception as fault:  # a peer's, which must not end the bench; it is told
                why = ("%s: %s" % (type(fault).__name__, fault)).splitlines()[0]
                break
            if run:
                runs[str(seed)] = run
        if why:
            absent[kind] = why
        elif runs:
            played[kind] = runs
    print(json.dumps({"played": played, "absent": absent}))  # the last line: some of them print, too


if __name__ == "__main__":
    main()
