"""A convolutional network that tells classes of texts, for spark-submit; `textcnn.py --help` lists the options.

Alone it trains once. With spark.pipetune.session it serves trials, one after the other: the options given are then what
a trial says nothing else about, and the texts stay cached, as numbers, from one to the next.
"""
import os
import sys

import bigdl_app
import text_corpus
from bigdl_app import make_batches, positive, to_samples

from bigdl.dllib.nn.layer import (Dropout, Linear, LogSoftMax, LookupTable, ReLU, Reshape, TemporalConvolution,
                                  TemporalMaxPooling)


class Corpus:
    """The texts as numbers, on the JVM's side, and what the model must know of them."""

    def __init__(self, sc, args):
        names, vocabulary, parts = text_corpus.load(args.data, args.held_out, args.vocabulary, args.length)
        self.classes = len(names)
        self.words = text_corpus.UNKNOWN + len(vocabulary)
        self.known = {}  # row of the look-up, from 0 -> the vector it begins with
        if args.vectors:
            found = text_corpus.read_vectors(args.vectors, vocabulary)
            self.known = {vocabulary[word] - 1: vector for word, vector in found.items()}
        self.samples = {part: to_samples(sc, *matrices) for part, matrices in parts.items()}


class TextCnn(bigdl_app.Application):
    name, title = "textcnn.py", "text CNN"
    description = "Train a convolutional network on texts with BigDL."
    fixed = ("data", "held_out", "length", "vocabulary", "vectors")
    learning_rate, momentum = 0.05, 0.9

    def add_options(self, parser):
        parser.add_argument("--data", required=True, metavar="DIR",
                            help="folder with a sub-folder of texts per class, or with two such folders, train and test")
        parser.add_argument("--held-out", type=bigdl_app.share(float), default=0.2, metavar="X",
                            help="share of each class to validate on, without `train` and `test` (default %(default)s)")
        parser.add_argument("--length", type=positive(int), default=100, metavar="N",
                            help="words of each text that are looked at (default %(default)s)")
        parser.add_argument("--vocabulary", type=positive(int), default=5000, metavar="N",
                            help="words known, the most frequent ones (default %(default)s)")
        parser.add_argument("--vectors", metavar="FILE", help="word vectors to begin with, as JSON; else random ones")
        parser.add_argument("--embedding", type=positive(int), default=50, metavar="N",
                            help="length of a word's vector, without --vectors (default %(default)s)")
        parser.add_argument("--filters", type=positive(int), default=128, metavar="N",
                            help="of the convolution (default %(default)s)")
        parser.add_argument("--width", type=positive(int), default=5, metavar="N",
                            help="of the convolution, in words (default %(default)s)")
        parser.add_argument("--dropout", type=bigdl_app.share(float), default=0.0, metavar="X", help="default 0")

    def check(self, args):
        if args.width > args.length:
            raise ValueError(f"a convolution over {args.width} words needs texts of as many, --length is {args.length}")
        if args.vectors and not os.path.isfile(args.vectors):
            raise ValueError(f"no file '{args.vectors}'")
        text_corpus.list_documents(args.data, args.held_out)

    def load(self, sc, args):
        return Corpus(sc, args)

    def batches(self, sc, data, part, batch_size):
        return make_batches(sc, data.samples[part], batch_size)

    def build_model(self, args, data):
        embedding = len(next(iter(data.known.values()))) if data.known else args.embedding
        table = LookupTable(data.words, embedding)
        if data.known:
            weights = table.get_weights()[0]
            for row, vector in data.known.items():
                weights[row] = vector
            table.set_weights([weights])
        return bigdl_app.sequential(
            table, TemporalConvolution(embedding, args.filters, args.width), ReLU(),
            TemporalMaxPooling(args.length - args.width + 1), Reshape([args.filters]), Dropout(args.dropout),
            Linear(args.filters, data.classes), LogSoftMax())


if __name__ == "__main__":
    bigdl_app.run(TextCnn(), sys.argv[1:])
