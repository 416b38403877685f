"""Grey images of 28 x 28 in idx files, MNIST's or Fashion-MNIST's, as BigDL's data. Not run by itself."""
import os

from bigdl_app import BIGDL, class_tag, scala_object, to_dataset

FILES = {"train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
         "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")}
# MNIST's, also for Fashion-MNIST: so does BigDL's own LeNet, and the two stay comparable.
MEAN, STD = 0.13066047740239506, 0.3081078


def check_folder(folder):
    """Raises ValueError unless all four files are there."""
    if not os.path.isdir(folder):
        raise ValueError(f"no folder '{folder}'")
    for path in (os.path.join(folder, name) for pair in FILES.values() for name in pair):
        if not os.path.isfile(path):
            raise ValueError(f"no file '{path}'")


def load_records(sc, folder, part, at_most=None):
    """The images of `part` ("train" or "test"), or the first `at_most`, as a DataSet of raw records.

    Read on the JVM's side and cached in the executors: a Python RDD of samples costs seconds of pickling at every start.
    """
    images, labels = (os.path.join(folder, name) for name in FILES[part])
    records = scala_object(sc, BIGDL + ".models.lenet.Utils").load(images, labels)
    if at_most is not None and at_most < len(records):
        records = records[:at_most]  # done by py4j in the JVM
    return to_dataset(sc, records, "feature.dataset.ByteRecord")


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
