"""A one-dimensional convolution that foretells how long a job runs, from what was counted in its first seconds, for spark-submit;
`regress.py --help` lists the options.

Its loss is the mean absolute error of the log of the seconds, on jobs that it was not trained on: 0.1 is about 10 %.
"""
import sys

import bigdl_app
import job_counters
from bigdl_app import make_batches, to_samples

from bigdl.dllib.nn.criterion import AbsCriterion, MSECriterion
from bigdl.dllib.nn.layer import Linear, ReLU, Reshape, TemporalConvolution, TemporalMaxPooling
from bigdl.dllib.optim.optimizer import Loss


class Jobs:
    """The jobs on the JVM's side, and what the model must know of them."""

    def __init__(self, sc, parts):
        self.steps, self.features = parts["train"][0].shape[1:]
        self.mean = float(parts["train"][1].mean())
        self.samples = {part: to_samples(sc, *matrices) for part, matrices in parts.items()}


class Regress(bigdl_app.Application):
    name, title = "regress.py", "time of jobs"
    description = "Train a 1-D convolution to foretell jobs' times from their counters with BigDL."
    fixed = ("data", "held_out")
    batch_size, learning_rate, momentum = 32, 0.01, 0.9

    def add_options(self, parser):
        parser.add_argument("--data", required=True, metavar="FILE",
                            help="HDF5 with JOB_X and JOB_Y, as pipetune trace export --format jobs writes it")
        parser.add_argument("--held-out", type=bigdl_app.share(float), default=0.2, metavar="X",
                            help="share of the jobs to validate on (default %(default)s)")
        parser.add_argument("--filters", type=bigdl_app.positive(int), default=32, metavar="N",
                            help="of the convolution (default %(default)s)")
        parser.add_argument("--width", type=bigdl_app.positive(int), default=5, metavar="N",
                            help="of the convolution, in steps (default %(default)s)")

    def check(self, args):
        if args.held_out == 0:
            raise ValueError("--held-out must be above 0: what is not held out cannot be foretold")
        counters, _ = job_counters.read(args.data)
        if args.width > counters.shape[1]:
            raise ValueError(f"a convolution over {args.width} steps: the jobs have {counters.shape[1]}")

    def load(self, sc, args):
        return Jobs(sc, job_counters.load(args.data, args.held_out))

    def batches(self, sc, data, part, batch_size):
        return make_batches(sc, data.samples[part], batch_size)

    def criterion(self):
        return MSECriterion()

    def measures(self):
        return [Loss(AbsCriterion())]

    def build_model(self, args, data):
        last = Linear(args.filters, 1)
        # It begins at the mean: else its first epochs would only find out how large a log of seconds is.
        weights, bias = last.get_weights()
        last.set_weights([weights, bias * 0 + data.mean])
        return bigdl_app.sequential(
            TemporalConvolution(data.features, args.filters, args.width), ReLU(),
            TemporalMaxPooling(data.steps - args.width + 1), Reshape([args.filters]), last)


if __name__ == "__main__":
    bigdl_app.run(Regress(), sys.argv[1:])
