"""LeNet-5 on MNIST or Fashion-MNIST, for spark-submit; `lenet5.py --help` lists the options.

Alone it trains once. With spark.pipetune.session it serves trials, one after the other: the options given are then what
a trial says nothing else about, and the records stay cached from one to the next.
"""
import sys

import bigdl_app
import idx_images

from bigdl.dllib.nn.layer import Linear, LogSoftMax, Model, Reshape, SpatialConvolution, SpatialMaxPooling, Tanh


class LeNet(bigdl_app.Application):
    name, title = "lenet5.py", "LeNet-5"
    description = "Train LeNet-5 on idx files with BigDL."

    def add_options(self, parser):
        parser.add_argument("--data", required=True, metavar="DIR", help="folder with the four idx files")

    def check(self, args):
        idx_images.check_folder(args.data)

    def load(self, sc, args):
        return {part: idx_images.load_records(sc, args.data, part) for part in ("train", "test")}

    def batches(self, sc, data, part, batch_size):
        return idx_images.make_batches(sc, data[part], batch_size)

    def build_model(self, args, data):
        """As in BigDL's own examples."""
        # Nobody wants to know how the images should change, but to compute it would take 5 to 10 % of a warm epoch.
        images = Reshape([1, 28, 28])()
        first = SpatialConvolution(1, 6, 5, 5).set_name("first")(images)
        return bigdl_app.sequential(
            Model([images], [first]).stop_gradient(["first"]), Tanh(), SpatialMaxPooling(2, 2, 2, 2),
            SpatialConvolution(6, 12, 5, 5), Tanh(), SpatialMaxPooling(2, 2, 2, 2),
            Reshape([12 * 4 * 4]), Linear(12 * 4 * 4, 100), Tanh(), Linear(100, 10), LogSoftMax())


if __name__ == "__main__":
    bigdl_app.run(LeNet(), sys.argv[1:])
