"""What was counted in the first seconds of recorded jobs, and how long they took, as matrices. Not run by itself.

An HDF5 file with the data sets `JOB_X` (n, steps, features) and `JOB_Y` (n, seconds), of `pipetune trace export --format jobs` or anybody's.
NaN in JOB_X is what was not measured.
"""
import os

import numpy

LEAST = 5  # jobs: of fewer none is left to validate on


def read(path):
    """JOB_X and JOB_Y; ValueError, in words for people, when the file does not hold them."""
    if not os.path.isfile(path):
        raise ValueError(f"no file '{path}'")
    try:
        import h5py
    except ImportError:
        raise ValueError("Python's h5py is missing: ./run-pipetune.sh setup installs it") from None
    try:
        with h5py.File(path, "r") as file:
            counters, seconds = (numpy.asarray(file[name], dtype=numpy.float64) for name in ("JOB_X", "JOB_Y"))
    except (OSError, KeyError, TypeError) as error:
        raise ValueError(f"'{path}' holds no JOB_X and JOB_Y: {error}") from None
    if counters.ndim != 3 or seconds.shape != counters.shape[:1]:
        raise ValueError(f"'{path}': JOB_X must be (n, steps, features) and JOB_Y (n), not {counters.shape} and {seconds.shape}")
    if len(seconds) < LEAST:
        raise ValueError(f"'{path}' has {len(seconds)} jobs, and at least {LEAST} are needed")
    if not (numpy.isfinite(seconds) & (seconds > 0)).all():
        raise ValueError(f"'{path}': each of JOB_Y must be seconds above 0")
    return counters, seconds


def split(n, held_out):
    """Numbers of the jobs to train on and of those held out: every so manieth, always the same."""
    every = max(2, round(1 / held_out))
    held = numpy.arange(n) % every == every - 1
    return numpy.flatnonzero(~held), numpy.flatnonzero(held)


def squash(counters):
    """log(1 + x), with the sign kept: counts span ten decades, and equal factors become equal differences."""
    return numpy.sign(counters) * numpy.log1p(numpy.abs(counters))


class Scale:
    """What the jobs that are trained on say of each feature: NaN counts for nothing, and becomes the mean."""

    def __init__(self, counters):
        flat = squash(counters).reshape(-1, counters.shape[2])
        known = numpy.isfinite(flat)
        n = numpy.maximum(known.sum(axis=0), 1)
        self.mean = numpy.where(known, flat, 0).sum(axis=0) / n
        spread = numpy.sqrt(numpy.where(known, (flat - self.mean) ** 2, 0).sum(axis=0) / n)
        self.spread = numpy.where(spread > 1e-9, spread, 1)  # one that never changes says nothing: 0

    def apply(self, counters):
        scaled = (squash(counters) - self.mean) / self.spread
        return numpy.where(numpy.isfinite(scaled), scaled, 0).astype(numpy.float32)


def load(path, held_out):
    """{"train": (inputs, targets), "test": …}: inputs (n, steps, features) float32, targets (n, 1), the log of the seconds."""
    counters, seconds = read(path)
    train, test = split(len(seconds), held_out)
    scale = Scale(counters[train])
    targets = numpy.log(seconds).astype(numpy.float32).reshape(-1, 1)
    return {name: (scale.apply(counters[rows]), targets[rows]) for name, rows in (("train", train), ("test", test))}
