#!/usr/bin/env python3
"""Trains a line through noisy points on several processes: each has its share of them, and gradients are added up by a ring all-reduce over TCP.
Nothing but Python is needed. Run by PipeTune as a gang (ring.json); by hand: --rank 0 --peers 127.0.0.1:4000"""
import argparse
import json
import os
import random
import socket
import struct
import time


class Ring:
    """Each process sends to the next one and hears the one before."""

    def __init__(self, rank, peers, patience=30.0):
        self.rank, self.n = rank, len(peers)
        if self.n == 1:
            return
        listener = socket.create_server(("", int(peers[rank].rpartition(":")[2])))
        host, _, port = peers[(rank + 1) % self.n].rpartition(":")
        until = time.monotonic() + patience
        while True:  # the next one may not listen yet
            try:
                self.next = socket.create_connection((host.strip("[]"), int(port)), timeout=patience)
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
        listener.settimeout(patience)
        self.before, _ = listener.accept()
        listener.close()
        for s in (self.next, self.before):
            s.settimeout(None)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def hear(self, size):
        got = b""
        while len(got) < size:
            more = self.before.recv(size - len(got))
            if not more:
                raise ConnectionError("rank %d is gone" % ((self.rank - 1) % self.n))
            got += more
        return got

    def add_up(self, values):
        """The sums over all processes, in n - 1 rounds: each passes on what it heard last."""
        form = "<%dd" % len(values)
        total, passing = list(values), list(values)
        for _ in range(self.n - 1):
            self.next.sendall(struct.pack(form, *passing))
            passing = list(struct.unpack(form, self.hear(struct.calcsize(form))))
            total = [a + b for a, b in zip(total, passing)]
        return total


def share(rank, n, seed, points):
    """This process's points of y = 3 x - 1, with noise."""
    noise = random.Random(seed)
    xs = [noise.uniform(-1, 1) for _ in range(points)]
    ys = [3 * x - 1 + noise.gauss(0, 0.1) for x in xs]
    return list(zip(xs, ys))[rank::n]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rank", type=int, required=True)
    p.add_argument("--peers", required=True, help="HOST:PORT,… of all")
    p.add_argument("--learning-rate", type=float, default=0.1)
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--points", type=int, default=3000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--nap", type=float, default=0, help="seconds that each epoch takes longer")
    p.add_argument("--save", help="the folder for checkpoints")
    p.add_argument("--load", help="the checkpoint to go on from, or their folder")
    a = p.parse_args()
    peers = a.peers.split(",")
    ring, mine = Ring(a.rank, peers), share(a.rank, len(peers), a.seed, a.points)
    slope = offset = 0.0
    done = 0
    if a.load:
        if os.path.isdir(a.load):  # the folder for checkpoints as it is: the newest of them
            a.load = max((f.path for f in os.scandir(a.load) if not f.name.endswith(".part")), key=lambda f: int(f.rpartition("-")[2]))
        with open(a.load, encoding="utf-8") as f:
            done, slope, offset = json.load(f)
    for epoch in range(done + 1, a.epochs + 1):
        time.sleep(a.nap)
        errors = [(x, slope * x + offset - y) for x, y in mine]
        loss, by_slope, by_offset, n = ring.add_up(
            [sum(e * e for _, e in errors), sum(2 * e * x for x, e in errors), sum(2 * e for _, e in errors), len(errors)])
        slope -= a.learning_rate * by_slope / n
        offset -= a.learning_rate * by_offset / n
        if a.rank == 0 and a.save:  # whole, or not there
            path = os.path.join(a.save, "ring-%d" % epoch)
            with open(path + ".part", "w", encoding="utf-8") as f:
                json.dump([epoch, slope, offset], f)
            os.rename(path + ".part", path)
        print("rank %d of %d: epoch %d: loss %.6f, points %d" % (a.rank, len(peers), epoch, loss / n, n), flush=True)


if __name__ == "__main__":
    main()
