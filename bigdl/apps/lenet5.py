"""LeNet-5 on MNIST or Fashion-MNIST, for spark-submit; `lenet5.py --help` lists the options.

Alone it trains once. With spark.pipetune.session it serves trials, one after the other: the options given are then what
a trial says nothing else about, and the records stay cached from one to the next.
"""
import argparse
import os
import sys

import pipetune_session
from pyspark import SparkConf, SparkContext

from bigdl.dllib.nn.criterion import ClassNLLCriterion
from bigdl.dllib.nn.layer import (Linear, LogSoftMax, Model, Reshape, Sequential, SpatialConvolution,
                                  SpatialMaxPooling, Tanh)
from bigdl.dllib.optim.optimizer import SGD, Loss, Top1Accuracy
from bigdl.dllib.utils.common import RNG, callBigDlFunc, init_engine

BIGDL = "com.intel.analytics.bigdl.dllib"
FILES = {"train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
         "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")}
# MNIST's, also for Fashion-MNIST: so does BigDL's own LeNet, and the two stay comparable.
MEAN, STD = 0.13066047740239506, 0.3081078


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


def load_records(sc, folder, part):
    """The images of `part` ("train" or "test") as one DataSet of raw records, cached in the executors.

    Read and kept on the JVM's side: a Python RDD of samples costs seconds of pickling at every start.
    """
    images, labels = (os.path.join(folder, name) for name in FILES[part])
    records = scala_object(sc, BIGDL + ".models.lenet.Utils").load(images, labels)
    return scala_object(sc, BIGDL + ".feature.dataset.DataSet").array(
        records, sc._jsc.sc(), class_tag(sc, BIGDL + ".feature.dataset.ByteRecord"))


def make_batches(sc, records, batch_size):
    """A DataSet of normalised mini-batches over those records; `batch_size` is the global one."""
    image = BIGDL + ".feature.dataset.image."
    steps = (("LabeledGreyImage", scala_object(sc, image + "BytesToGreyImg").apply(28, 28)),
             ("LabeledGreyImage", scala_object(sc, image + "GreyImgNormalizer").apply(MEAN, STD)),
             ("", scala_object(sc, image + "GreyImgToBatch").apply(batch_size)))
    for result, transformer in steps:
        name = image + result if result else BIGDL + ".feature.dataset.MiniBatch"
        records = records.transform(transformer, class_tag(sc, name))
    return records


def build_model(seed=None):
    """LeNet-5 as in BigDL's own examples; a seed fixes its initial weights."""
    if seed is not None:
        RNG().set_seed(seed)
    # Nobody wants to know how the images should change, but to compute it would take 5 to 10 % of a warm epoch.
    images = Reshape([1, 28, 28])()
    first = SpatialConvolution(1, 6, 5, 5).set_name("first")(images)
    model = Sequential()
    for layer in (Model([images], [first]).stop_gradient(["first"]), Tanh(), SpatialMaxPooling(2, 2, 2, 2),
                  SpatialConvolution(6, 12, 5, 5), Tanh(), SpatialMaxPooling(2, 2, 2, 2),
                  Reshape([12 * 4 * 4]), Linear(12 * 4 * 4, 100), Tanh(), Linear(100, 10), LogSoftMax()):
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


def train(sc, model, method, training, validation, epochs, checkpoint=None):
    """Trains until `epochs` epochs are done, those of a loaded `method` included; returns BigDL's optimizer.

    Validates after each epoch, then writes a checkpoint into a new folder in `checkpoint`.
    """
    tag, arithmetic = float_evidence(sc)
    trigger = java_class(sc, BIGDL + ".optim.Trigger")
    optimizer = scala_object(sc, BIGDL + ".optim.Optimizer").apply(
        model, training, ClassNLLCriterion().value, tag, arithmetic)
    measures = sc._gateway.new_array(java_class(sc, BIGDL + ".optim.ValidationMethod"), 2)
    measures[0], measures[1] = Top1Accuracy().value, Loss().value
    optimizer.setOptimMethod(method)
    optimizer.setEndWhen(trigger.maxEpoch(epochs))
    optimizer.setValidation(trigger.everyEpoch(), validation, measures)
    if checkpoint:
        optimizer.setCheckpoint(checkpoint, trigger.everyEpoch())
        # An epoch that is done again after a recovery writes the same file names.
        optimizer.overWriteCheckpoint()
    optimizer.optimize()
    return optimizer


def start():
    """The SparkContext, with BigDL's engine ready."""
    conf = SparkConf().setAppName("LeNet-5")
    # BigDL recovers by itself from its checkpoint, which must not wait for Spark to try the task again.
    conf.setIfMissing("spark.task.maxFailures", "1")
    sc = SparkContext.getOrCreate(conf)
    init_engine()
    return sc


def positive(kind):
    def parse(text):
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"must be above 0, not {text}")
        return value
    parse.__name__ = kind.__name__
    return parse


class Parser(argparse.ArgumentParser):
    """One whose complaint about a trial's options reaches the driver, where the process must not end."""
    raises = False

    def error(self, message):
        if self.raises:
            raise ValueError(message)
        super().error(message)


def make_parser():
    parser = Parser(prog="lenet5.py", description="Train LeNet-5 on idx files with BigDL.", allow_abbrev=False)
    parser.add_argument("--data", required=True, metavar="DIR", help="folder with the four idx files")
    parser.add_argument("--batch-size", type=positive(int), default=128, metavar="N",
                        help="global; a multiple of the cores (default 128)")
    parser.add_argument("--learning-rate", type=positive(float), default=0.05, metavar="X", help="default 0.05")
    parser.add_argument("--learning-rate-decay", type=float, default=0.0, metavar="X",
                        help="rate / (1 + iteration * decay) (default 0)")
    parser.add_argument("--momentum", type=float, default=0.0, metavar="X", help="default 0")
    parser.add_argument("--epochs", type=positive(int), default=2, metavar="N",
                        help="train until so many are done, those before a resume included (default 2)")
    parser.add_argument("--checkpoint", metavar="DIR", help="write one after each epoch into a new folder in DIR")
    parser.add_argument("--model", metavar="FILE", help="resume: a checkpoint's model.N; needs --state")
    parser.add_argument("--state", metavar="FILE", help="resume: its optimMethod-*.N, whose rates replace the options'")
    parser.add_argument("--seed", type=int, metavar="N", help="fixes the initial weights")
    return parser


def parse_arguments(argv, raises=False):
    parser = make_parser()
    parser.raises = raises
    args = parser.parse_args(argv)
    if bool(args.model) != bool(args.state):
        parser.error("--model and --state go together")
    files = [os.path.join(args.data, name) for pair in FILES.values() for name in pair]
    for path in files + [p for p in (args.model, args.state) if p]:
        if not os.path.isfile(path):
            parser.error(f"no file '{path}'")
    if args.checkpoint and not os.path.isdir(args.checkpoint):
        parser.error(f"no folder '{args.checkpoint}'")
    return args


def trial_options(trial):
    """The command line that would train this trial alone."""
    options = {"seed": trial.seed, "epochs": trial.epochs, "checkpoint": trial.checkpoint, "model": trial.model,
               "state": trial.state, **trial.hyper}
    return [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value is not None]


def train_one(sc, args, training, validation):
    """Trains by these options on those records."""
    if args.model:
        model, method = load_model(args.model), load_method(args.state)
    else:
        model = build_model(args.seed)
        method = make_method(args.learning_rate, args.learning_rate_decay, args.momentum)
    train(sc, model, method, make_batches(sc, training, args.batch_size),
          make_batches(sc, validation, args.batch_size), args.epochs, args.checkpoint)


def main(argv):
    args = parse_arguments(argv)
    sc = start()
    training, validation = load_records(sc, args.data, "train"), load_records(sc, args.data, "test")
    session = pipetune_session.open(sc)
    if session:
        session.serve(lambda trial: train_one(sc, parse_arguments(argv + trial_options(trial), raises=True),
                                              training, validation))
    else:
        train_one(sc, args, training, validation)
    sc.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
