#!/usr/bin/python3
"""Learning curves of small models, as tables for `pipetune replay search`: tests/data/curves/TASK.jsonl.gz.

    tests/bench/search/record.py [--out DIR] [TASK ...]      needs Debian's python3-sklearn; about ten minutes of one core

Each task trains CONFIGS configurations that are drawn at random, all of them to the last epoch, on data that
scikit-learn ships or generates. Where nothing but the optimizer differs, all configurations of a task train side by
side in one set of arrays. What a task's validation set says is a value; a training that diverged has null from there on.
"""
import argparse
import gzip
import json
import multiprocessing
import os
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
from sklearn import datasets
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.preprocessing import PolynomialFeatures

import text

CONFIGS = 1000


# --- data: (train x, train y, valid x, valid y), y as indices of classes or numbers -----------------------------------

def scaled(x):
    sd = x.std(0)
    return (x - x.mean(0)) / np.where(sd > 0, sd, 1)


def split(x, y, share=0.7, seed=0):
    order = np.random.RandomState(seed).permutation(len(x))
    n = int(share * len(x))
    a, b = order[:n], order[n:]
    return x[a], y[a], x[b], y[b]


def digits():
    d = datasets.load_digits()
    return split(d.data / 16.0, d.target)


def cancer():
    d = datasets.load_breast_cancer()
    return split(scaled(d.data), d.target)


def wine():
    d = datasets.load_wine()
    return split(scaled(d.data), d.target, 0.6)


def diabetes(degree=1):
    d = datasets.load_diabetes()
    x = scaled(d.data) if degree == 1 else scaled(PolynomialFeatures(degree, include_bias=False).fit_transform(d.data))
    return split(x, scaled(d.target))


def friedman():
    x, y = datasets.make_friedman1(900, 10, noise=1.0, random_state=1)
    return split(x, scaled(y))


def clusters():
    x, y = datasets.make_classification(900, 40, n_informative=10, n_redundant=10, n_classes=4, flip_y=0.05,
                                        class_sep=1.0, random_state=3)
    return split(scaled(x), y)


def marked_sequences(length=12, n=1200):
    """Which of two signs came at the marked place? Nothing is learnt for long, then all of it."""
    r = np.random.RandomState(5)
    sign, where = r.randint(0, 2, (n, length)), r.randint(0, length // 2, n)
    x = np.zeros((n, length, 2))
    x[:, :, 0] = 2 * sign - 1
    x[np.arange(n), where, 1] = 1
    return split(x, sign[np.arange(n), where])


def digit_rows():
    a, b, c, d = digits()
    return a.reshape(-1, 8, 8), b, c.reshape(-1, 8, 8), d


# --- models: every array has the configurations first ---------------------------------------------------------------

def one_hot(y, k):
    return np.eye(k)[y]


def head(out, y, k):
    """Loss of each configuration, and its gradient with regard to the outputs. k = 0: a number is foretold."""
    if k == 0:
        diff = out[:, :, 0] - y
        return (diff ** 2).mean(1), (2 * diff / len(y))[:, :, None]
    y = np.ravel(y)
    z = out - out.max(2, keepdims=True)
    p = np.exp(z)
    p /= p.sum(2, keepdims=True)
    t = one_hot(y, k).astype(out.dtype)
    return -np.log(np.maximum((p * t).sum(2), 1e-12)).mean(1) + 0.0, (p - t) / len(y)


class Dense:
    """Layers with tanh between them; one layer is a linear model."""

    def __init__(self, widths, c, r):
        self.w = []
        for a, b in zip(widths[:-1], widths[1:]):
            self.w.append(np.repeat(r.randn(1, a, b) / np.sqrt(a), c, 0))
            self.w.append(np.zeros((c, 1, b)))

    def forward(self, x):
        keep = [np.broadcast_to(x, (len(self.w[0]),) + x.shape) if x.ndim == 2 else x]
        for i in range(0, len(self.w), 2):
            z = keep[-1] @ self.w[i] + self.w[i + 1]
            keep.append(np.tanh(z) if i + 2 < len(self.w) else z)
        return keep[-1], keep

    def backward(self, keep, d):
        grads = [None] * len(self.w)
        for i in range(len(self.w) - 2, -1, -2):
            grads[i] = keep[i // 2].transpose(0, 2, 1) @ d
            grads[i + 1] = d.sum(1, keepdims=True)
            if i:
                d = (d @ self.w[i].transpose(0, 2, 1)) * (1 - keep[i // 2] ** 2)
        return grads


class Recurrent:
    def __init__(self, n_in, hidden, n_out, c, r):
        self.w = [np.repeat(r.randn(1, n_in, hidden) / np.sqrt(n_in), c, 0),
                  np.repeat(0.9 * np.linalg.qr(r.randn(hidden, hidden))[0][None], c, 0), np.zeros((c, 1, hidden)),
                  np.repeat(r.randn(1, hidden, n_out) / np.sqrt(hidden), c, 0), np.zeros((c, 1, n_out))]

    def forward(self, x):
        h = np.zeros((len(self.w[0]), len(x), self.w[1].shape[1]))
        states = [h]
        for t in range(x.shape[1]):
            h = np.tanh(x[:, t] @ self.w[0] + h @ self.w[1] + self.w[2])
            states.append(h)
        return h @ self.w[3] + self.w[4], (x, states)

    def backward(self, keep, d):
        x, states = keep
        grads = [np.zeros_like(w) for w in self.w]
        grads[3], grads[4] = states[-1].transpose(0, 2, 1) @ d, d.sum(1, keepdims=True)
        d = d @ self.w[3].transpose(0, 2, 1)
        for t in range(x.shape[1] - 1, -1, -1):
            d = d * (1 - states[t + 1] ** 2)
            grads[0] += x[:, t].T @ d
            grads[1] += states[t].transpose(0, 2, 1) @ d
            grads[2] += d.sum(1, keepdims=True)
            d = d @ self.w[1].transpose(0, 2, 1)
        return grads


# --- optimizers: hyperparameters are columns, one number of each configuration ----------------------------------------

def column(x, like):
    return x[:, None, None].astype(like.dtype)


def adam(w, g, state, h, step):
    lr = h["learning_rate"]
    if "linear_decay" in h:
        lr = lr * np.maximum(1 - h["linear_decay"] * step, 1e-8) * np.exp(-h["exponential_decay"] * step)
    b1, b2 = 1 - h["one_minus_beta1"], 1 - h["one_minus_beta2"]
    b1, b2, new1, new2, gone1, gone2, lr = (column(x, w[0]) for x in (
        b1, b2, 1 - b1, 1 - b2, 1 - b1 ** (step + 1), 1 - b2 ** (step + 1), lr))
    eps = column(h["epsilon"], w[0]) if "epsilon" in h else 1e-8
    for i in range(len(w)):
        d = g[i]
        if "l1" in h:
            d = d + column(h["l1"], d) * np.sign(w[i])
        if "l2" in h:
            d = d + 2 * column(h["l2"], d) * w[i]
        m, v = state.get(i, (0, 0))
        m, v = b1 * m + new1 * d, b2 * v + new2 * d * d
        state[i] = m, v
        w[i] = w[i] - lr * (m / gone1) / (np.sqrt(v / gone2) + eps)


def momentum(w, g, state, h, step):
    lr = (h["learning_rate"] / (1 + h["decay"] * step))[:, None, None] if "decay" in h else h["learning_rate"][:, None, None]
    for i in range(len(w)):
        d = g[i] + h["l2"][:, None, None] * w[i]
        state[i] = h["momentum"][:, None, None] * state.get(i, 0) + d
        w[i] = w[i] - lr * state[i]


def log(low, high):
    return {"min": low, "max": high, "scale": "log"}


def lin(low, high):
    return {"min": low, "max": high}


ADAM8 = {"learning_rate": log(1e-6, 10.0), "one_minus_beta1": log(1e-3, 1.0), "one_minus_beta2": log(1e-5, 1.0),
         "epsilon": log(1e-10, 10.0), "l1": log(1e-8, 10.0), "l2": log(1e-8, 10.0),
         "linear_decay": log(1e-7, 1e-2), "exponential_decay": log(1e-6, 1e-1)}
ADAM4 = {"learning_rate": log(1e-6, 1.0), "one_minus_beta1": log(1e-3, 1.0), "one_minus_beta2": log(1e-5, 1.0),
         "epsilon": log(1e-10, 1.0)}
SGD4 = {"learning_rate": log(1e-4, 10.0), "momentum": lin(0.0, 0.99), "l2": log(1e-6, 1.0), "decay": log(1e-5, 1.0)}


def draw(hyper, n, r):
    rows = []
    for _ in range(n):
        row = {}
        for name, d in hyper.items():
            if "values" in d:
                row[name] = d["values"][r.randint(len(d["values"]))]
            elif d.get("scale") == "log":
                x = float(np.exp(r.uniform(np.log(d["min"]), np.log(d["max"]))))
                whole = isinstance(d["min"], int)
                row[name] = min(max(int(x), d["min"]), d["max"]) if whole else float("%.5g" % x)
            else:
                row[name] = float("%.5g" % r.uniform(d["min"], d["max"]))
        rows.append(row)
    return rows


# --- training: values[configuration][epoch] ---------------------------------------------------------------------------

def judge(out, y, k, metric):
    with np.errstate(all="ignore"):
        if metric == "accuracy":
            return (out.argmax(2) == y).mean(1)
        return head(out, y, k)[0]


JOBS = 1
parts_now = []  # what children, which are forked, find: functions cannot be sent to them


def part_now(i):
    task, *rest = parts_now[i]
    return task.part(*rest)


def beside_each_other(parts):
    parts_now[:] = parts
    with multiprocessing.get_context("fork").Pool(JOBS) as pool:
        return pool.map(part_now, range(len(parts)), 1)


class SideBySide:
    """Configurations that differ in the optimizer alone train in one set of arrays; what becomes of one is the same in any company."""

    def __init__(self, data, net, optimizer, steps, batch, k, metric):
        self.data, self.net, self.optimizer, self.steps, self.batch, self.k, self.metric = (
            data, net, optimizer, steps, batch, k, metric)

    def train(self, rows, seed):
        """Their values after each further epoch, without end."""
        x, y, vx, vy = self.data()
        r = np.random.RandomState(seed)
        h = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        net, state, step = self.net(len(rows), r), {}, 0
        alive = np.ones(len(rows), bool)
        while True:
            for _ in range(self.steps):
                at = r.randint(0, len(x), self.batch)
                with np.errstate(all="ignore"):
                    out, keep = net.forward(x[at])
                    g = net.backward(keep, head(out, y[at], self.k)[1])
                    norm = np.sqrt(sum((a ** 2).sum((1, 2)) for a in g))
                    clip = np.where(norm > 100, 100 / norm, 1.0)
                    self.optimizer(net.w, [a * column(clip, a) for a in g], state, h, step)
                step += 1
            with np.errstate(all="ignore"):
                out = net.forward(vx)[0]
                loss, value = judge(out, vy, self.k, "loss"), judge(out, vy, self.k, self.metric)
            alive &= np.isfinite(loss) & (loss < 1e4)
            for i in range(len(net.w)):
                net.w[i][~alive] = 0
                state[i] = tuple(np.where(alive[:, None, None], a, 0) for a in state[i]) if isinstance(
                    state[i], tuple) else np.where(alive[:, None, None], state[i], 0)
            yield np.where(alive, value, np.nan)

    def part(self, rows, epochs, seed):
        training = self.train(rows, seed)
        return np.array([next(training) for _ in range(epochs)]).T

    def __call__(self, rows, epochs, seed, together=50):
        parts = [(self, rows[i:i + together], epochs, seed) for i in range(0, len(rows), together)]  # few enough for a cache
        if JOBS > 1:
            return np.concatenate(beside_each_other(parts)), None
        return np.concatenate([task.part(*rest) for task, *rest in parts]), None


def one_by_one(rows, data, epochs, k, metric, seed):
    """Width and batch size differ, so each trains alone; seconds are its own."""
    x, y, vx, vy = data
    values, seconds = [], []
    for row in rows:
        r = np.random.RandomState(seed)
        layers = [x.shape[1]] + [row["width"]] * row["layers"] + [max(k, 1)]
        h = {n: np.array([row[n]]) for n in ("learning_rate", "momentum", "l2")}
        net, state, mine, took, alive = Dense(layers, 1, r), {}, [], [], True
        for epoch in range(epochs):
            begun = time.process_time()
            order = r.permutation(len(x))
            for at in range(0, len(x) - row["batch_size"] + 1, row["batch_size"]) if alive else []:
                pick = order[at:at + row["batch_size"]]
                with np.errstate(all="ignore"):
                    out, keep = net.forward(x[pick])
                    momentum(net.w, net.backward(keep, head(out, y[pick], k)[1]), state, h, 0)
            with np.errstate(all="ignore"):
                out = net.forward(vx)[0]
                loss = judge(out, vy, k, "loss")[0]
            alive = alive and np.isfinite(loss) and loss < 1e4
            mine.append(judge(out, vy, k, metric)[0] if alive else np.nan)
            took.append(time.process_time() - begun)
        values.append(mine)
        seconds.append(took)
    return np.array(values), np.array(seconds)


def boosting(rows, data, epochs, k, metric, seed):
    x, y, vx, vy = data
    values = []
    for row in rows:
        kind = GradientBoostingClassifier if k else GradientBoostingRegressor
        m = kind(n_estimators=epochs, random_state=seed, **row).fit(x, y)
        if not k:
            values.append([((p - vy) ** 2).mean() for p in m.staged_predict(vx)])
        elif metric == "accuracy":
            values.append([(p == vy).mean() for p in m.staged_predict(vx)])
        else:
            values.append([-np.log(np.clip(p[np.arange(len(vy)), vy], 1e-12, 1)).mean()
                           for p in m.staged_predict_proba(vx)])
    return np.array(values), None


BOOST = {"learning_rate": log(0.005, 2.0), "max_depth": {"values": [1, 2, 3, 4, 5]}, "subsample": lin(0.2, 1.0),
         "min_samples_leaf": {"min": 1, "max": 60, "scale": "log"}, "max_features": lin(0.1, 1.0)}
LAYERED = {"learning_rate": log(1e-4, 10.0), "momentum": lin(0.0, 0.99), "l2": log(1e-7, 1e-1),
           "batch_size": {"values": [16, 32, 64, 128, 256]}, "width": {"values": [4, 8, 16, 32, 64]},
           "layers": {"values": [1, 2, 3]}}

# As wide as what others tune recurrent networks over.
ADAM8_WIDE = {"learning_rate": log(1e-8, 10.0), "one_minus_beta1": log(1e-4, 1.0), "one_minus_beta2": log(1e-6, 1.0),
              "epsilon": log(1e-10, 1e3), "l1": log(1e-8, 10.0), "l2": log(1e-8, 10.0),
              "linear_decay": log(1e-6, 1e-2), "exponential_decay": log(1e-5, 1e-1)}

TASKS = {
    # name: metric, epochs, hyper, how it trains; the place in this list is the seed
    "mlp-digits-adam": ("loss", 50, ADAM8, SideBySide(
        digits, lambda c, r: Dense([64, 24, 10], c, r), adam, 10, 48, 10, "loss")),
    "linear-digits-sgd": ("loss", 50, SGD4, SideBySide(
        digits, lambda c, r: Dense([64, 10], c, r), momentum, 10, 48, 10, "loss")),
    "boost-friedman": ("loss", 50, BOOST, lambda rows, n, s: boosting(rows, friedman(), n, 0, "loss", s)),
    "mlp-friedman-adam": ("loss", 50, ADAM4, SideBySide(
        friedman, lambda c, r: Dense([10, 24, 12, 1], c, r), adam, 10, 48, 0, "loss")),
    "mlp-digits-layers": ("accuracy", 27, LAYERED, lambda rows, n, s: one_by_one(rows, digits(), n, 10, "accuracy", s)),
    "mlp-wine-layers": ("loss", 50, LAYERED, lambda rows, n, s: one_by_one(rows, wine(), n, 3, "loss", s)),
    "linear-clusters-sgd": ("accuracy", 50, SGD4, SideBySide(
        clusters, lambda c, r: Dense([40, 4], c, r), momentum, 8, 32, 4, "accuracy")),
    "linear-diabetes-adam": ("loss", 50, ADAM8, SideBySide(
        lambda: diabetes(2), lambda c, r: Dense([65, 1], c, r), adam, 8, 32, 0, "loss")),
    "rnn-digits-adam": ("loss", 50, ADAM8, SideBySide(
        digit_rows, lambda c, r: Recurrent(8, 16, 10, c, r), adam, 8, 48, 10, "loss")),
    "rnn-marked-adam": ("loss", 50, ADAM8, SideBySide(
        marked_sequences, lambda c, r: Recurrent(2, 14, 2, c, r), adam, 16, 48, 2, "loss")),
    "boost-cancer": ("loss", 50, BOOST, lambda rows, n, s: boosting(rows, cancer(), n, 2, "loss", s)),
    "boost-diabetes": ("loss", 50, BOOST, lambda rows, n, s: boosting(rows, diabetes(), n, 0, "loss", s)),
    "gru-letters-adam": ("loss", 50, ADAM8_WIDE, SideBySide(
        text.letters, lambda c, r: text.Gru(27, 12, 27, c, r), adam, 8, 12, 27, "loss")),
    "rnn-words-adam": ("loss", 50, ADAM8_WIDE, SideBySide(
        text.words, lambda c, r: text.Elman(49, 16, 49, c, r), adam, 8, 16, 49, "loss")),
    "gru-licences-adam": ("loss", 50, ADAM8_WIDE, SideBySide(
        text.which_licence, lambda c, r: text.Gru(80, 10, 4, c, r, False), adam, 12, 24, 4, "loss")),
    "rnn-brackets-adam": ("loss", 50, ADAM8_WIDE, SideBySide(
        text.brackets, lambda c, r: text.Elman(4, 12, 2, c, r, False), adam, 10, 24, 2, "loss")),
}


def number(x):
    return float("%.4g" % x) if np.isfinite(x) else None


def line(j):
    return json.dumps(j, separators=(",", ":")) + "\n"


def write(path, metric, epochs, hyper, rows, values, seconds):
    text = line({"format": "curves", "metric": metric, "direction": "max" if metric == "accuracy" else "min",
                 "epochs": epochs, "hyper": hyper})
    for i, row in enumerate(rows):
        one = {"hyper": row, "values": [number(x) for x in values[i]]}
        if seconds is not None:
            one["seconds"] = [float("%.2g" % x) for x in seconds[i]]
        text += line(one)
    with open(path + ".new", "wb") as f:
        f.write(gzip.compress(text.encode(), mtime=0))
    os.replace(path + ".new", path)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", default=os.path.join(os.path.dirname(__file__), "../../data/curves"))
    p.add_argument("--jobs", type=int, default=1, help="processes; the tables are the same")
    p.add_argument("tasks", nargs="*", default=list(TASKS))
    args = p.parse_args()
    global JOBS
    JOBS = args.jobs
    os.makedirs(args.out, exist_ok=True)
    for i, name in enumerate(TASKS):
        if name not in args.tasks:
            continue
        metric, epochs, hyper, train = TASKS[name]
        begun = sum(os.times()[:4])
        rows = draw(hyper, CONFIGS, np.random.RandomState(1000 + i))
        values, seconds = train(rows, epochs, i)
        write(os.path.join(args.out, name + ".jsonl.gz"), metric, epochs, hyper, rows, values, seconds)
        print("%-22s %6.1f s" % (name, sum(os.times()[:4]) - begun), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
