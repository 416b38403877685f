"""What a training script tells PipeTune of itself, and hears of it. One file, no dependencies, Python 3.7 or newer.

    import pipetune

    trial = pipetune.trial(lr=0.1, batch_size=64)          # the defaults, for when it is run by hand
    for epoch in trial.epochs(10):
        loss, accuracy = train(trial.lr, trial.batch_size)
        trial.tell(loss=loss, accuracy=accuracy)

Run by PipeTune, `trial.lr` is what is to be tried, the loop ends when the trial is to end, and the figures of each epoch are
told when the epoch is over. Run by hand, it is a script like any other: the defaults hold, and nothing is told.

With checkpoints, a trial that is interrupted goes on where it was:

    if trial.resume:
        start = load(trial.resume)                          # the epochs that are trained already
    for epoch in trial.epochs(10, start=start):
        ...
        trial.checkpoint(save(epoch))                       # a file or folder, written whole
"""

import json
import math
import os
import socket
import time

__all__ = ["Trial", "Told", "trial", "keras", "lightning", "transformers", "xgboost", "lightgbm"]
__version__ = "0.1.0"

LINE_MAX = 65536
CONNECT_S = 10.0
RESERVED = ("epoch", "step", "records", "seconds", "checkpoint", "hello")


class Told(ValueError):
    """PipeTune did not take what it was told; the text says why."""


def trial(**defaults):
    """The trial that this process trains. `defaults` are the values of the hyperparameters where PipeTune gives none."""
    return Trial(os.environ.get("PIPETUNE_TELL") or None, defaults)


def _number(value):
    """As a line says it: a float, or the name of what is none any more. Takes numpy's and torch's scalars."""
    value = float(value.item() if hasattr(value, "item") else value)
    return value if math.isfinite(value) else str(value)


class Trial:
    """`hyper`: the hyperparameters by name, also as attributes. `seed`: a whole number. `resume`: the newest checkpoint to go
    on from, or None. `folder`: where checkpoints may be written, or None. `tuned`: is it run by PipeTune at all?"""

    def __init__(self, path, defaults):
        self._socket = None
        self._got = b""
        self._epoch = 0        # under way
        self._figures = {}     # of it, not told yet
        self._over = 0         # the newest epoch that was told to be over
        self._step = 0
        self._stop = False
        words = self._greet(path) if path else {}
        self.tuned = path is not None
        self.hyper = dict(defaults)
        self.hyper.update(words.get("hyper") or {})
        self.seed = words.get("seed") or 0
        self.resume = words.get("resume")
        self.folder = words.get("checkpoint")
        self._epochs = words.get("epochs")

    def __getattr__(self, name):
        hyper = self.__dict__.get("hyper", {})
        if name in hyper:
            return hyper[name]
        raise AttributeError(f"no hyperparameter is called '{name}': give a default, pipetune.trial({name}=…)")

    # ---- epochs ---------------------------------------------------------------------------------------------------

    def epochs(self, count=1, start=0):
        """The epochs to train, from `start` + 1: `count` of them in all, or as many as PipeTune says. What was told in an epoch
        is sent when it is over; the loop ends early when the trial is to end."""
        for epoch in range(start + 1, self.count(count) + 1):
            self._epoch = epoch
            try:
                yield epoch
            except GeneratorExit:  # the loop was left: what was told holds
                if self._figures:
                    self._end_epoch()
                raise
            self._end_epoch()
            if self.stopped:
                return

    def count(self, default):
        """How many epochs to train in all: for who has a loop of its own."""
        return self._epochs or default

    def tell(self, epoch=None, **figures):
        """Figures of the epoch: of the one under way, sent at its end; or of `epoch`, sent at once."""
        if epoch is None and self._epoch:
            self._figures.update(figures)
            return
        words = {"epoch": int(epoch)} if epoch is not None else {}
        self._send(self._with(words, figures))

    def step(self, step=None, records=None, seconds=None, **figures):
        """A training step is over: its number (else they are counted), how many records it took, its seconds, and figures."""
        self._step = int(step) if step is not None else self._step + 1
        words = {"step": self._step}
        if self._epoch:
            words["epoch"] = self._epoch
        for name, value in (("records", records), ("seconds", seconds)):
            if value is not None:
                words[name] = _number(value)
        self._send(self._with(words, figures))

    def checkpoint(self, path, epoch=None):
        """A checkpoint is written whole: a file or folder, from which the trial can go on behind `epoch` (the one under way)."""
        words = {"checkpoint": os.path.abspath(os.fspath(path))}
        epoch = epoch or self._epoch
        if epoch:
            words["epoch"] = int(epoch)
        if self._figures:
            self._end_epoch()
        self._send(words)

    @property
    def stopped(self):
        """Is the trial to end, now that an epoch is over?"""
        self._hear(0.0)
        return self._stop

    def _end_epoch(self):
        figures, self._figures = self._figures, {}
        if self._epoch and (figures or self._over != self._epoch):
            self._over = self._epoch
            self._send(self._with({"epoch": self._epoch}, figures))

    @staticmethod
    def _with(words, figures):
        for name, value in figures.items():
            if name in RESERVED:
                raise Told(f"'{name}' is no name for a figure")
            try:
                words[name] = _number(value)
            except (TypeError, ValueError):
                raise Told(f"'{name}' is no number: {value!r}") from None
        return words

    # ---- the socket -----------------------------------------------------------------------------------------------

    def _greet(self, path):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket = None
            raise OSError(error.errno, f"cannot reach PipeTune at '{path}': {error.strerror}") from None
        self._send({"hello": 1})
        until = time.monotonic() + CONNECT_S
        while time.monotonic() < until and self._socket:
            for words in self._hear(until - time.monotonic()):
                if "epochs" in words:
                    return words
        raise OSError(f"PipeTune at '{path}' does not answer")

    def _send(self, words):
        """The line is taken by the launcher of this process, which lives as long as it: nothing told is lost."""
        if self._socket is None:
            return
        line = json.dumps(words, separators=(",", ":"), allow_nan=False).encode("utf-8") + b"\n"
        if len(line) > LINE_MAX:
            raise Told("too much in one line")
        self._socket.setblocking(True)
        self._socket.sendall(line)

    def _hear(self, wait_s):
        """What was said to us since, for at most so long."""
        if self._socket is None:
            return []
        self._socket.settimeout(max(wait_s, 0.0))
        try:
            got = self._socket.recv(LINE_MAX)
            if not got:
                self._socket = None
            self._got += got
        except (BlockingIOError, socket.timeout):
            pass
        except OSError:
            self._socket = None
        *lines, self._got = self._got.split(b"\n")
        words = [json.loads(line.decode("utf-8", "replace")) for line in lines if line]
        self._stop = self._stop or any(w.get("stop") for w in words)
        for said in (w["error"] for w in words if "error" in w):
            raise Told(said)
        return words


# ---- a few lines for those who own the loop ---------------------------------------------------------------------------


def keras(trial):
    """model.fit(…, epochs=trial.count(10), callbacks=[pipetune.keras(trial)])"""
    from keras.callbacks import Callback

    class Tell(Callback):
        def on_epoch_end(self, epoch, logs=None):
            trial.tell(epoch=epoch + 1, **_numbers(logs or {}))
            self.model.stop_training |= trial.stopped

    return Tell()


def lightning(trial):
    """Trainer(max_epochs=trial.count(10), callbacks=[pipetune.lightning(trial)])"""
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        from pytorch_lightning.callbacks import Callback

    class Tell(Callback):
        def on_train_epoch_end(self, trainer, module):
            trial.tell(epoch=trainer.current_epoch + 1, **_numbers(trainer.callback_metrics))
            trainer.should_stop |= trial.stopped

    return Tell()


def transformers(trial):
    """Trainer(…, callbacks=[pipetune.transformers(trial)]): of Hugging Face; figures of each evaluation, an evaluation an epoch"""
    from transformers import TrainerCallback

    class Tell(TrainerCallback):
        def on_evaluate(self, args, state, control, metrics=None, **_):
            trial.tell(epoch=max(1, round(state.epoch or 1)), **_numbers(metrics or {}))
            control.should_training_stop |= trial.stopped

    return Tell()


def xgboost(trial):
    """xgb.train(…, callbacks=[pipetune.xgboost(trial)]): a round is an epoch"""
    from xgboost.callback import TrainingCallback

    class Tell(TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            trial.tell(epoch=epoch + 1, **_numbers({f"{data}-{name}": values[-1] for data, of in evals_log.items()
                                                    for name, values in of.items()}))
            return trial.stopped

    return Tell()


def lightgbm(trial):
    """lgb.train(…, callbacks=[pipetune.lightgbm(trial)]): a round is an epoch"""
    def tell(env):
        trial.tell(epoch=env.iteration + 1, **_numbers({f"{e[0]}-{e[1]}": e[2] for e in env.evaluation_result_list or []}))
        if trial.stopped:
            from lightgbm.callback import EarlyStopException
            raise EarlyStopException(env.iteration, env.evaluation_result_list)

    return tell


def partial_fit(trial, model, batches, score, count=1, start=0, **options):
    """scikit-learn: trains `model` on `batches()` (pairs of X and y) in each epoch and tells score(model), a dict of figures."""
    for epoch in trial.epochs(count, start=start):
        for x, y in batches():
            model.partial_fit(x, y, **options)
            trial.step(records=x.shape[0] if hasattr(x, "shape") else len(x))  # sparse ones have no len()
        trial.tell(**score(model))
    return model


def _numbers(figures):
    """What of a framework's figures is a number, and no word of ours; of cross-validation's pairs the mean."""
    found = {}
    for name, value in figures.items():
        if name in RESERVED or isinstance(value, str):
            continue
        try:
            found[name] = _number(value[0] if isinstance(value, tuple) else value)
        except (TypeError, ValueError, RuntimeError):  # a tensor of many, and each framework's word for that
            continue
    return found
