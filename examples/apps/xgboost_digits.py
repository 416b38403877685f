"""Digits with xgboost. It knows nothing of PipeTune: xgboost itself prints each round."""
import argparse

import xgboost
from sklearn.datasets import load_digits

options = argparse.ArgumentParser()
options.add_argument("--eta", type=float, default=0.3)
options.add_argument("--max_depth", type=int, default=4)
options.add_argument("--rounds", type=int, default=8)
options.add_argument("--threads", type=int, default=1)
o = options.parse_args()

x, y = load_digits(return_X_y=True)
train, test = xgboost.DMatrix(x[:1400], y[:1400]), xgboost.DMatrix(x[1400:], y[1400:])
xgboost.train({"objective": "multi:softprob", "num_class": 10, "eval_metric": ["mlogloss", "merror"], "eta": o.eta,
               "max_depth": o.max_depth, "nthread": o.threads}, train, o.rounds, evals=[(train, "train"), (test, "test")])
