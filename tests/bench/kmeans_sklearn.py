# kmeans_sklearn.py FILE K SEED: scikit-learn's KMeans over the file of bench_kmeans, n_init 10, the rest as it comes.
# Prints as `bench_kmeans fit` does: seconds on the wall, seconds of CPU, inertia, rounds.
import sys
import time

import numpy
from sklearn.cluster import KMeans

path, k, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rows, features = numpy.fromfile(path, dtype=numpy.uint64, count=2)
x = numpy.fromfile(path, dtype=numpy.float64, offset=16).reshape(int(rows), int(features))
KMeans(2, n_init=1).fit(x[:1000])  # what is loaded at the first call is not counted
wall, cpu = time.monotonic(), time.process_time()
model = KMeans(k, n_init=10, random_state=seed).fit(x)
cpu, wall = time.process_time() - cpu, time.monotonic() - wall
print(f"{wall:.4f} {cpu:.4f} {model.inertia_:.9g} {model.n_iter_}")
