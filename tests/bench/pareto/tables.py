"""Recorded curves with modelled prices: what tests/data/curves has no joules for, and seconds of a machine that trained many side by side.

The rule is fixed, so that every run has the same tables; nothing of it was measured. An epoch of a network takes longer with its
width and layers, and less with larger batches; an epoch of boosted trees with their depth and the share of rows and columns
that each looks at. Power grows with what computes at once: the width, and the batch."""
import gzip
import json
import math


def network(hyper):
    size, batch = hyper["width"] * hyper["layers"], hyper["batch_size"]
    seconds = 0.02 + (1 + 0.02 * size) * (0.05 + 2 / batch)
    return seconds, 30 + 8 * math.sqrt(size) + 0.15 * batch


def boosting(hyper):
    seconds = 0.01 + 0.3 * hyper["max_depth"] * hyper["max_features"] * hyper["subsample"]
    return seconds, 35 + 6 * hyper["max_depth"] + 20 * hyper["subsample"]


def write(recorded, out):
    with gzip.open(recorded, "rt") as lines, open(out, "w", encoding="ascii") as to:
        to.write(next(lines))
        for line in lines:
            row = json.loads(line)
            seconds, watts = (network if "width" in row["hyper"] else boosting)(row["hyper"])
            row["seconds"] = [round(seconds, 6)] * len(row["values"])
            row["joules"] = [round(seconds * watts, 6)] * len(row["values"])
            to.write(json.dumps(row) + "\n")
