"""The real bigdl/apps/pipetune_session.py over a SparkContext that is none: fake-session.py APPS SOCKET, for test_session.c.

A trial takes hyper["seconds"], tells a metric "f1" in each epoch, and raises what hyper["raise"] says. What a session writes
through the JVM goes to stderr."""
import sys
import time

sys.path.insert(0, sys.argv[1])
import pipetune_session  # noqa: E402


class Anything:
    """Stands for the JVM's objects: every attribute is one of these, unless it is given."""
    def __init__(self, **given):
        self.__dict__.update(given)

    def __getattr__(self, name):
        return Anything()


class Persisted(dict):
    def keySet(self):
        return self.keys()


class Leak:
    def __init__(self, number):
        self.number = number

    def unpersist(self, blocking):
        del persisted[self.number]


persisted = Persisted({1: Leak(1)})  # the data, loaded before the session began
java_context = Anything(getPersistentRDDs=lambda: persisted, sc=lambda: Anything(isStopped=lambda: False))
system = Anything(err=Anything(print=lambda text: (sys.stderr.write(text), sys.stderr.flush())))
jvm = Anything(java=Anything(lang=Anything(System=system)))
conf = {"spark.pipetune.session": sys.argv[2]}
sc = Anything(getConf=lambda: conf, _jsc=java_context, _jvm=jvm, applicationId="local-1")


def train_one(trial):
    trial.on_end(lambda epoch: trial.metric("ends", epoch, trial.epochs))
    persisted[len(persisted) + 100] = Leak(len(persisted) + 100)
    for epoch in range(1, trial.epochs + 1):
        time.sleep(trial.hyper.get("seconds", 0))
        trial.metric("f1", epoch * 10 + len(persisted), epoch)
        trial.metric("nan", float("nan"), epoch)
        if trial.ends_after and epoch >= trial.ends_after:
            break
    if "raise" in trial.hyper:
        raise KeyError(trial.hyper["raise"])


pipetune_session.open(sc).serve(train_one)
assert list(persisted) == [1], persisted
