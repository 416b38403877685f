"""What PipeTune's own BigDL applications share: options, training, checkpoints, serving trials. Not run by itself.

An application is an `Application` with its own data and model; `run(application, argv)` does the rest, alone or, with
spark.pipetune.session, trial after trial. mlp.py is one in few lines.
"""
import argparse
import os

import pipetune_session
from pyspark import SparkConf, SparkContext

from bigdl.dllib.nn.criterion import ClassNLLCriterion
from bigdl.dllib.nn.layer import Sequential
from bigdl.dllib.optim.optimizer import SGD, Loss, Top1Accuracy
from bigdl.dllib.utils.common import RNG, JTensor, _py2java, callBigDlFunc, init_engine

BIGDL = "com.intel.analytics.bigdl.dllib"


# ---- the JVM's side --------------------------------------------------------------------------------------------------

def java_class(sc, name):
    """The JVM class of that full name, nested names with `$`."""
    found = sc._jvm
    for part in name.split("."):
        found = getattr(found, part)
    return found


def scala_object(sc, name):
    """The Scala object of that full name."""
    return getattr(java_class(sc, name + "$"), "MODULE$")


def class_tag(sc, name):
    return scala_object(sc, "scala.reflect.ClassTag").apply(sc._jvm.java.lang.Class.forName(
        name, True, sc._jvm.Thread.currentThread().getContextClassLoader()))


def float_evidence(sc):
    """What Scala passes implicitly wherever a type parameter is Float: its ClassTag, its arithmetic."""
    tag = getattr(java_class(sc, "scala.reflect.ClassTag$"), "MODULE$").Float()
    arithmetic = getattr(java_class(sc, BIGDL + ".tensor.TensorNumericMath$TensorNumeric$NumericFloat$"), "MODULE$")
    return tag, arithmetic


def to_dataset(sc, array, element):
    """A JVM array, of the class `element` below BIGDL, as one DataSet cached in the executors."""
    return scala_object(sc, BIGDL + ".feature.dataset.DataSet").array(
        array, sc._jsc.sc(), class_tag(sc, f"{BIGDL}.{element}"))


def to_samples(sc, inputs, labels):
    """The rows of two arrays as one DataSet of samples, cached in the executors.

    Two tensors cross to the JVM, whatever the number of rows.
    """
    bigdl = scala_object(sc, BIGDL + ".utils.python.api.PythonBigDL").ofFloat()
    rows, column = (bigdl.toTensor(_py2java(sc._gateway, JTensor.from_ndarray(matrix))) for matrix in (inputs, labels))
    several = sc._jvm.org.apache.spark.api.python.PythonUtils.toSeq([rows]).toList()
    return to_dataset(sc, bigdl.toSampleArray(several, column), "feature.dataset.Sample")


def make_batches(sc, samples, batch_size):
    tag, arithmetic = float_evidence(sc)
    none = scala_object(sc, "scala.None")
    batches = scala_object(sc, BIGDL + ".feature.dataset.SampleToMiniBatch").apply(
        batch_size, none, none, none, False, tag, arithmetic)
    return samples.transform(batches, class_tag(sc, BIGDL + ".feature.dataset.MiniBatch"))


# ---- training --------------------------------------------------------------------------------------------------------

def sequential(*layers):
    """These layers, one after the other, as a model of the JVM."""
    model = Sequential()
    for layer in layers:
        model.add(layer)
    return model.value


def load_model(path):
    """The model of a checkpoint's `model.N`."""
    return callBigDlFunc("float", "loadBigDL", path)


def make_method(learning_rate, learning_rate_decay, momentum):
    # Unless told otherwise BigDL dampens by the momentum, which then speeds nothing up.
    return SGD(learningrate=learning_rate, learningrate_decay=learning_rate_decay, momentum=momentum,
               dampening=0.0).value


def load_method(path):
    """The optimization method of a checkpoint's `optimMethod-*.N`, with its epoch, iteration and learning rate."""
    return callBigDlFunc("float", "loadOptimMethod", path)


def set_last_epoch(end_when, epoch):
    """Has a Trigger.maxEpoch() that is in use fire after that epoch: between two steps, as BigDL asks it before each."""
    for field in end_when.getClass().getDeclaredFields():
        if field.getType().getName() == "int":
            field.setAccessible(True)
            field.setInt(end_when, epoch)


def train(sc, app, model, method, training, validation, epochs, checkpoint=None, trial=None):
    """Trains until `epochs` epochs are done, those of a loaded `method` included, or `trial` is to end; returns BigDL's optimizer.

    What is made small, and what is told of each epoch, the application says.

    Validates after each epoch, then writes a checkpoint into a new folder in `checkpoint`.
    """
    tag, arithmetic = float_evidence(sc)
    trigger = java_class(sc, BIGDL + ".optim.Trigger")
    optimizer = scala_object(sc, BIGDL + ".optim.Optimizer").apply(
        model, training, app.criterion().value, tag, arithmetic)
    wanted = app.measures()
    measures = sc._gateway.new_array(java_class(sc, BIGDL + ".optim.ValidationMethod"), len(wanted))
    for i, measure in enumerate(wanted):
        measures[i] = measure.value
    optimizer.setOptimMethod(method)
    end_when = trigger.maxEpoch(epochs)
    optimizer.setEndWhen(end_when)
    if trial:
        trial.on_end(lambda epoch: set_last_epoch(end_when, epoch))
    optimizer.setValidation(trigger.everyEpoch(), validation, measures)
    if checkpoint:
        optimizer.setCheckpoint(checkpoint, trigger.everyEpoch())
        # An epoch that is done again after a recovery writes the same file names.
        optimizer.overWriteCheckpoint()
    optimizer.optimize()
    return optimizer


def start(title):
    """The SparkContext, with BigDL's engine ready."""
    conf = SparkConf().setAppName(title)
    # BigDL recovers by itself from its checkpoint, which must not wait for Spark to try the task again.
    conf.setIfMissing("spark.task.maxFailures", "1")
    sc = SparkContext.getOrCreate(conf)
    init_engine()
    return sc


# ---- options ---------------------------------------------------------------------------------------------------------

def number(kind, accepts, wanted):
    """A type of an option: a number that must be `wanted`, in words."""
    def parse(text):
        value = kind(text)
        if not accepts(value):
            raise argparse.ArgumentTypeError(f"must be {wanted}, not {text}")
        return value
    parse.__name__ = kind.__name__
    return parse


def positive(kind):
    return number(kind, lambda value: 0 < value < float("inf"), "above 0")


def not_negative(kind):
    return number(kind, lambda value: 0 <= value < float("inf"), "0 or more")


def share(kind):
    return number(kind, lambda value: 0 <= value < 1, "from 0 to below 1")


class Parser(argparse.ArgumentParser):
    """One whose complaint about a trial's options reaches the driver, where the process must not end."""
    raises = False

    def error(self, message):
        if self.raises:
            raise ValueError(message)
        super().error(message)


class Application:
    """What one application says of itself. A subclass gives all of it but `add_options` and `check`, which may stay."""
    name = ""           # of the program
    title = ""          # of the Spark application
    description = ""    # for --help
    batch_size, learning_rate, momentum = 128, 0.05, 0.0  # where an option says nothing else
    fixed = ("data",)   # options by which the data are loaded, once: no trial can change them

    def add_options(self, parser):
        """Those beyond the shared ones; `--data` among them."""

    def check(self, args):
        """Raises ValueError, in words for people, when these options cannot be trained; touches no Spark."""

    def load(self, sc, args):
        """Whatever `batches` and `build_model` need of the data; what it persists stays for all trials."""
        raise NotImplementedError

    def batches(self, sc, data, part, batch_size):
        """A DataSet of mini-batches of `part`, "train" or "test"; `batch_size` is the global one."""
        raise NotImplementedError

    def criterion(self):
        """What is made small."""
        return ClassNLLCriterion()

    def measures(self):
        """What is told of each epoch, on the data of "test"."""
        return [Top1Accuracy(), Loss()]

    def build_model(self, args, data):
        """A fresh model of the JVM. The generator of initial weights has had its seed."""
        raise NotImplementedError


def make_parser(app):
    parser = Parser(prog=app.name, description=app.description, allow_abbrev=False)
    app.add_options(parser)
    parser.add_argument("--batch-size", type=positive(int), default=app.batch_size, metavar="N",
                        help="global; a multiple of the cores (default %(default)s)")
    parser.add_argument("--learning-rate", type=positive(float), default=app.learning_rate, metavar="X",
                        help="default %(default)s")
    parser.add_argument("--learning-rate-decay", type=not_negative(float), default=0.0, metavar="X",
                        help="rate / (1 + iteration * decay) (default 0)")
    parser.add_argument("--momentum", type=share(float), default=app.momentum, metavar="X", help="default %(default)s")
    parser.add_argument("--epochs", type=positive(int), default=2, metavar="N",
                        help="train until so many are done, those before a resume included (default 2)")
    parser.add_argument("--checkpoint", metavar="DIR", help="write one after each epoch into a new folder in DIR")
    parser.add_argument("--model", metavar="FILE", help="resume: a checkpoint's model.N; needs --state")
    parser.add_argument("--state", metavar="FILE", help="resume: its optimMethod-*.N, whose rates replace the options'")
    parser.add_argument("--seed", type=int, metavar="N", help="fixes the initial weights")
    return parser


def parse_arguments(app, argv, trial_of=None):
    """The options of a command line; of a trial's when `trial_of`, those of the session, is given: it then raises."""
    parser = make_parser(app)
    parser.raises = trial_of is not None
    args = parser.parse_args(argv)
    if bool(args.model) != bool(args.state):
        parser.error("--model and --state go together")
    for path in (args.model, args.state):
        if path and not os.path.isfile(path):
            parser.error(f"no checkpoint '{path}'")  # not "no file": that would speak of the data
    if args.checkpoint and not os.path.isdir(args.checkpoint):
        parser.error(f"no folder '{args.checkpoint}'")
    for name in app.fixed if trial_of else ():
        if getattr(args, name) != getattr(trial_of, name):
            parser.error(f"--{name.replace('_', '-')} is the session's, no trial can change it")
    try:
        app.check(args)
    except ValueError as error:
        parser.error(str(error))
    return args


# ---- the whole -------------------------------------------------------------------------------------------------------

def trial_options(trial):
    """The command line that would train this trial alone."""
    options = {"seed": trial.seed, "epochs": trial.epochs, "checkpoint": trial.checkpoint, "model": trial.model,
               "state": trial.state, **trial.hyper}
    return [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value is not None]


def train_one(sc, app, args, data, trial=None):
    """Trains by these options on those data; `trial` may end it early."""
    if args.model:
        model, method = load_model(args.model), load_method(args.state)
    else:
        if args.seed is not None:
            RNG().set_seed(args.seed)
        model = app.build_model(args, data)
        method = make_method(args.learning_rate, args.learning_rate_decay, args.momentum)
    training, validation = (app.batches(sc, data, part, args.batch_size) for part in ("train", "test"))
    train(sc, app, model, method, training, validation, args.epochs, args.checkpoint, trial)


def run(app, argv):
    """Trains once by this command line, or serves trials for which it holds what they say nothing else about."""
    args = parse_arguments(app, argv)
    sc = start(app.title)
    data = app.load(sc, args)
    session = pipetune_session.open(sc)
    if session:
        session.serve(
            lambda trial: train_one(sc, app, parse_arguments(app, argv + trial_options(trial), args), data, trial))
    else:
        train_one(sc, app, args, data)
    sc.stop()
