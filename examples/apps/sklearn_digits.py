"""Digits with scikit-learn, in epochs by partial_fit. It knows nothing of PipeTune: it takes options, and prints how far it is."""
import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

options = argparse.ArgumentParser()
options.add_argument("--learning-rate", type=float, default=0.001)
options.add_argument("--batch", type=int, default=32)
options.add_argument("--hidden", type=int, default=128)
options.add_argument("--epochs", type=int, default=5)
options.add_argument("--seed", type=int, default=1)
o = options.parse_args()

x, y = load_digits(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(x / 16, y, random_state=o.seed)
model = MLPClassifier((o.hidden,), learning_rate_init=o.learning_rate, random_state=o.seed)
order = np.random.default_rng(o.seed)

for epoch in range(1, o.epochs + 1):
    shuffled = order.permutation(len(x_train))
    for first in range(0, len(shuffled), o.batch):
        some = shuffled[first : first + o.batch]
        model.partial_fit(x_train[some], y_train[some], classes=range(10))
    loss, accuracy = log_loss(y_test, model.predict_proba(x_test)), model.score(x_test, y_test)
    print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.4f}")
