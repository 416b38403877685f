"""A multi-layer perceptron on MNIST or Fashion-MNIST, for spark-submit; `mlp.py --help` lists the options.

Alone it trains once. With spark.pipetune.session it serves trials, one after the other: the options given are then what
a trial says nothing else about, and the records stay cached from one to the next.
"""
import argparse
import sys

import bigdl_app
import idx_images

from bigdl.dllib.nn.layer import Linear, LogSoftMax, ReLU, Reshape

PIXELS, CLASSES = 28 * 28, 10


def widths(text):
    """ "256,128" as a tuple of numbers."""
    found = tuple(bigdl_app.positive(int)(word) for word in text.split(","))
    if len(found) > 8 or max(found) > 65536:
        raise argparse.ArgumentTypeError("at most 8 layers of at most 65536 units")
    return found


class Mlp(bigdl_app.Application):
    name, title = "mlp.py", "MLP"
    fixed = ("data", "records")
    description = "Train a multi-layer perceptron on idx files with BigDL."

    def add_options(self, parser):
        parser.add_argument("--data", required=True, metavar="DIR", help="folder with the four idx files")
        parser.add_argument("--records", type=bigdl_app.positive(int), metavar="N",
                            help="train on the first N images only, for short epochs")
        parser.add_argument("--hidden", type=widths, default="256,128", metavar="N,…",
                            help="units of each hidden layer (default %(default)s)")

    def check(self, args):
        idx_images.check_folder(args.data)

    def load(self, sc, args):
        return {"train": idx_images.load_records(sc, args.data, "train", args.records),
                "test": idx_images.load_records(sc, args.data, "test")}

    def batches(self, sc, data, part, batch_size):
        return idx_images.make_batches(sc, data[part], batch_size)

    def build_model(self, args, data):
        layers, inputs = [Reshape([PIXELS])], PIXELS
        for outputs in args.hidden:
            layers += [Linear(inputs, outputs), ReLU()]
            inputs = outputs
        return bigdl_app.sequential(*layers, Linear(inputs, CLASSES), LogSoftMax())


if __name__ == "__main__":
    bigdl_app.run(Mlp(), sys.argv[1:])
