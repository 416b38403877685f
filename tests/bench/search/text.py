"""Recurrent networks on text, for record.py: characters, words and brackets as indices. All arrays have the configurations first, in single precision."""
import os
import pydoc_data.topics
import re

import numpy as np

LICENCES = "/usr/share/common-licenses"  # of Debian's base-files
LETTERS = " abcdefghijklmnopqrstuvwxyz"


# --- data: (train x, train y, valid x, valid y): x[sequence][time], y one symbol, or one for each time -----------------

def licence(name):
    text = open(os.path.join(LICENCES, name)).read().lower()
    return np.array([LETTERS.index(c) for c in re.sub("[^a-z]+", " ", text)])


def windows(signs, length, stride):
    return np.stack([signs[i:i + length] for i in range(0, len(signs) - length + 1, stride)])


def halves(x, y, seed=0, share=0.8):
    order = np.random.RandomState(seed).permutation(len(x))
    n = int(share * len(x))
    return x[order[:n]], y[order[:n]], x[order[n:]], y[order[n:]]


def next_sign(signs, length, stride):
    """What comes next, at each place of a window; the last fifth of the text is kept apart."""
    cut = len(signs) * 4 // 5
    a, b = windows(signs[:cut], length + 1, stride), windows(signs[cut:], length + 1, stride)[:150]
    return a[:, :-1], a[:, 1:], b[:, :-1], b[:, 1:]


def letters():
    return next_sign(licence("GPL-3"), 12, 5)


def numbered(text, known):
    """Words as indices; 0 is any that is not among the most frequent."""
    names, counts = np.unique(text, return_counts=True)
    often = {names[i]: k + 1 for k, i in enumerate(np.argsort(-counts, kind="stable")[:known])}
    return np.array([often.get(w, 0) for w in text])


def words():
    """Of Python's own documentation."""
    text = re.findall("[a-z]+", " ".join(v for _, v in sorted(pydoc_data.topics.topics.items())).lower())[:40000]
    return next_sign(numbered(text, 48), 10, 7)


def which_licence():
    """From which of four licences are these words?"""
    parts = [re.findall("[a-z]+", open(os.path.join(LICENCES, n)).read().lower())[:1400]
             for n in ("GPL-3", "Apache-2.0", "MPL-2.0", "CC0-1.0")]
    all_words = numbered(sum(parts, []), 79)
    ends = np.cumsum([len(p) for p in parts])
    rows = [windows(all_words[end - len(p):end], 12, 3) for p, end in zip(parts, ends)]
    a, b, c, d = halves(np.concatenate(rows), np.repeat(np.arange(4), [len(r) for r in rows]))
    return a, b, c[:300], d[:300]


def brackets(n=2400, length=11, seed=7):
    """Two kinds, nested: of which kind must the next closing one be? It takes a stack, or nothing is learnt at all."""
    r, x, y = np.random.RandomState(seed), [], []
    while len(x) < n:
        stack, row = [], []
        for _ in range(length):
            if stack and r.rand() < 0.5:
                row.append(2 + stack.pop())
            else:
                stack.append(r.randint(2))
                row.append(stack[-1])
        if stack and row[-1] >= 2:  # else the last sign says it
            x.append(row)
            y.append(stack[-1])
    return halves(np.array(x), np.array(y))


# --- networks ---------------------------------------------------------------------------------------------------------

def drawn(r, *shape):
    return (r.randn(1, *shape) / np.sqrt(shape[0])).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-np.clip(x, -30, 30)))


class Text:
    """Signs go into a recurrent cell by a row of weights each; `all_times`: every state tells a sign, else the last one."""

    def __init__(self, signs, hidden, n_out, c, r, all_times, gates):
        recurrent = 0.9 * np.linalg.qr(r.randn(hidden, hidden))[0]
        self.signs, self.hidden, self.all_times = signs, hidden, all_times
        first = [drawn(r, signs, gates * hidden) * np.sqrt(signs) * 0.5, np.tile(recurrent, gates)[None],
                 np.zeros((1, 1, gates * hidden)), drawn(r, hidden, n_out), np.zeros((1, 1, n_out))]
        self.w = [np.repeat(w.astype(np.float32), c, 0) for w in first]

    def forward(self, x):
        c, (n, length), h = len(self.w[0]), x.shape, self.hidden
        states, keep = [np.zeros((c, n, h), np.float32)], []
        given = self.w[0][:, x.T] + self.w[2][:, None]  # [configuration][time][sequence][gate]
        for t in range(length):
            state, inner = self.step(given[:, t], states[-1])
            states.append(state)
            keep.append(inner)
        seen = np.stack(states[1:], 2).reshape(c, n * length, h) if self.all_times else states[-1]
        return seen @ self.w[3] + self.w[4], (x, states, keep, seen)

    def backward(self, kept, d):
        x, states, keep, seen = kept
        c, (n, length), h = len(self.w[0]), x.shape, self.hidden
        d = d.astype(np.float32)
        grads = [None, np.zeros_like(self.w[1]), None, seen.transpose(0, 2, 1) @ d, d.sum(1, keepdims=True)]
        d = d @ self.w[3].transpose(0, 2, 1)
        at = d.reshape(c, n, length, h) if self.all_times else None
        back = np.zeros((c, n, h), np.float32) if self.all_times else d
        into = np.empty((c, length, n, self.w[0].shape[2]), np.float32)
        for t in range(length - 1, -1, -1):
            back = back + at[:, :, t] if self.all_times else back
            into[:, t], back = self.unstep(back, states[t], states[t + 1], keep[t], grads[1])
        flat = into.reshape(c, length * n, -1)
        grads[0] = np.eye(self.signs, dtype=np.float32)[x.T.reshape(-1)].T @ flat
        grads[2] = flat.sum(1, keepdims=True)
        return grads


class Elman(Text):
    def __init__(self, signs, hidden, n_out, c, r, all_times=True):
        super().__init__(signs, hidden, n_out, c, r, all_times, 1)

    def step(self, given, h):
        return np.tanh(given + h @ self.w[1]), None

    def unstep(self, d, before, after, _, grad):
        d = d * (1 - after ** 2)
        grad += before.transpose(0, 2, 1) @ d
        return d, d @ self.w[1].transpose(0, 2, 1)


class Gru(Text):
    """Gates: update, reset, and what is new."""

    def __init__(self, signs, hidden, n_out, c, r, all_times=True):
        super().__init__(signs, hidden, n_out, c, r, all_times, 3)

    def step(self, given, h):
        n = self.hidden
        own = h @ self.w[1]
        z, r = sigmoid(given[..., :n] + own[..., :n]), sigmoid(given[..., n:2 * n] + own[..., n:2 * n])
        new = np.tanh(given[..., 2 * n:] + r * own[..., 2 * n:])
        return (1 - z) * new + z * h, (z, r, new, own[..., 2 * n:])

    def unstep(self, d, before, _, inner, grad):
        z, r, new, own = inner
        d_new = d * (1 - z) * (1 - new ** 2)
        d_z, d_r = d * (before - new) * z * (1 - z), d_new * own * r * (1 - r)
        d_own = np.concatenate((d_z, d_r, d_new * r), 2)
        grad += before.transpose(0, 2, 1) @ d_own
        return np.concatenate((d_z, d_r, d_new), 2), d * z + d_own @ self.w[1].transpose(0, 2, 1)
