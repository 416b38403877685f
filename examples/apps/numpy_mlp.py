"""A small neural network in plain numpy. It asks PipeTune what to try, tells it each epoch, and goes on from a checkpoint; run by
hand, it trains with the defaults."""
import os

import numpy as np

import pipetune

trial = pipetune.trial(learning_rate=0.1, hidden=64, batch=64)
rng = np.random.default_rng(trial.seed)

# Ten bands of noise, to be told apart.
centres = rng.normal(0, 1, (10, 64))
labels = rng.integers(0, 10, 6000)
data = centres[labels] + rng.normal(0, 2.2, (6000, 64))
x, y, x_test, y_test = data[:5000], labels[:5000], data[5000:], labels[5000:]


def fresh():
    h = int(trial.hidden)
    return {"w1": rng.normal(0, 0.1, (64, h)), "b1": np.zeros(h), "w2": rng.normal(0, 0.1, (h, 10)), "b2": np.zeros(10),
            "epoch": np.array(0)}


def forward(p, x):
    hidden = np.maximum(x @ p["w1"] + p["b1"], 0)
    scores = hidden @ p["w2"] + p["b2"]
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, scores / scores.sum(axis=1, keepdims=True)


def train(p, x, y):
    hidden, out = forward(p, x)
    loss = -np.log(out[np.arange(len(y)), y] + 1e-12).mean()
    out[np.arange(len(y)), y] -= 1
    out /= len(y)
    back = (out @ p["w2"].T) * (hidden > 0)
    for name, step in (("w2", hidden.T @ out), ("b2", out.sum(0)), ("w1", x.T @ back), ("b1", back.sum(0))):
        p[name] -= trial.learning_rate * step
    return loss


def save(p):
    path = os.path.join(trial.folder, f"epoch-{int(p['epoch'])}.npz")
    with open(path + ".part", "wb") as f:
        np.savez(f, **p)
    os.replace(path + ".part", path)  # whole, or not there
    return path


p = dict(np.load(trial.resume)) if trial.resume else fresh()
for epoch in trial.epochs(5, start=int(p["epoch"])):
    order = np.random.default_rng([trial.seed, epoch]).permutation(len(x))
    for some in np.array_split(order, len(x) // int(trial.batch)):
        trial.step(records=len(some), loss=train(p, x[some], y[some]))
    p["epoch"] = np.array(epoch)
    _, out = forward(p, x_test)
    trial.tell(loss=-np.log(out[np.arange(len(y_test)), y_test] + 1e-12).mean(), accuracy=(out.argmax(1) == y_test).mean())
    if trial.folder:
        trial.checkpoint(save(p))
    if not trial.tuned:
        print(f"epoch {epoch}: accuracy {(out.argmax(1) == y_test).mean():.4f}")
