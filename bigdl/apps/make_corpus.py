"""Writes made-up texts for textcnn.py: DIR/{train,test}/CLASS/NNNNN.txt; `make_corpus.py --help` lists the options.

Each class has words of its own, drawn like all others with Zipf's frequencies; most words of a text are common to all
classes, some are another class's. So classes are learnt, though no single word tells them. The same options write the
same bytes, on every machine.
"""
import argparse
import bisect
import itertools
import os
import random
import sys

ONSETS = "b br c cl d dr f fl g gr h j k l m n p pl qu r s sh st t th tr v w z".split()
VOWELS = "a e i o u ai ea ou".split()
CODAS = ["", "", "", "n", "r", "s", "l", "nd", "st", "m"]
PER_LINE = 12


def make_words(rng, count):
    """That many different words, sounding alike."""
    found = {}
    while len(found) < count:
        syllables = rng.choice((1, 2, 2, 3))
        found["".join(rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS) for _ in range(syllables))] = None
    return list(found)


class Zipf:
    """Draws from words of which the n-th is n times rarer than the first."""

    def __init__(self, words):
        self.words = words
        self.sums = list(itertools.accumulate(1 / n for n in range(1, len(words) + 1)))

    def draw(self, rng):
        return self.words[bisect.bisect(self.sums, rng.random() * self.sums[-1])]


def make_text(rng, own, others, common, args):
    """One text: its own topic's words, those of one other topic, and common ones."""
    other = rng.choice(others)
    words = []
    for _ in range(rng.randint(args.words // 2, args.words * 3 // 2)):
        at = rng.random()
        source = own if at < args.topic_share else other if at < args.topic_share + args.noise_share else common
        words.append(source.draw(rng))
    return "\n".join(" ".join(words[i:i + PER_LINE]) for i in range(0, len(words), PER_LINE)) + "\n"


def write_class(rng, name, texts, args):
    """`texts()` makes the next text; the last ones are those held out."""
    held_out = max(1, round(args.documents * args.held_out))
    for part, numbers in (("train", range(args.documents - held_out)),
                          ("test", range(args.documents - held_out, args.documents))):
        folder = os.path.join(args.folder, part, name)
        os.makedirs(folder)
        for number in numbers:
            with open(os.path.join(folder, f"{number:05d}.txt"), "w", encoding="ascii", newline="\n") as file:
                file.write(texts())


def write_corpus(args):
    rng = random.Random(args.seed)
    words = make_words(rng, args.classes * (1 + args.topic_words) + args.common_words)
    names, words = words[:args.classes], words[args.classes:]
    topics = [Zipf(words[i * args.topic_words:(i + 1) * args.topic_words]) for i in range(args.classes)]
    common = Zipf(words[args.classes * args.topic_words:])
    for i, name in enumerate(names):
        others = topics[:i] + topics[i + 1:]
        write_class(rng, name, lambda own=topics[i], rest=others: make_text(rng, own, rest, common, args), args)


def within(kind, least, most):
    def parse(text):
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"must be {least} to {most}, not {text}")
        return value
    parse.__name__ = kind.__name__
    return parse


def parse_arguments(argv):
    parser = argparse.ArgumentParser(prog="make_corpus.py", allow_abbrev=False,
                                     description="Write made-up texts of several classes, a sub-folder each.")
    parser.add_argument("folder", metavar="DIR", help="to be made; must not hold anything")
    for name, kind, least, most, default, told in (
            ("classes", int, 2, 100, 10, "classes"),
            ("documents", int, 2, 99999, 800, "texts of each class"),
            ("held-out", float, 0.01, 0.9, 0.2, "share of them that goes to `test`"),
            ("words", int, 2, 10000, 120, "words of a text; from half as many to half as many again"),
            ("topic-words", int, 10, 2000, 300, "words that are a class's own"),
            ("common-words", int, 10, 20000, 2000, "words of all classes"),
            ("topic-share", float, 0.0, 0.5, 0.2, "share of a text that is its class's own words"),
            ("noise-share", float, 0.0, 0.5, 0.1, "share of a text that is another class's"),
            ("seed", int, 0, 2**63, 1, "of everything that is drawn")):
        parser.add_argument(f"--{name}", type=within(kind, least, most), default=default,
                            metavar="N" if kind is int else "X", help=f"{told} (default %(default)s)")
    args = parser.parse_args(argv)
    if os.path.isdir(args.folder) and os.listdir(args.folder):
        parser.error(f"'{args.folder}' is not empty")
    return args


if __name__ == "__main__":
    write_corpus(parse_arguments(sys.argv[1:]))
