"""spark-submit convert_checkpoint.py IN OUT: a checkpoint's `model.N` in the form that a JVM application's --model wants.

BigDL's checkpoints are Java-serialised models; its JVM examples resume from protobuf only. OUT appears whole or not at all.
"""
import os
import sys

from py4j.protocol import Py4JError
from pyspark.java_gateway import launch_gateway


def cause_of(error):
    """The first line of the innermost Java exception."""
    inner = getattr(error, "java_exception", None)
    if inner is None:
        return str(error).splitlines()[0]
    while inner.getCause() is not None:
        inner = inner.getCause()
    return inner.toString().splitlines()[0]


def convert(source, target):
    # No SparkContext: reading and writing a model needs the JVM only, and starting Spark would take longer than both.
    bigdl = launch_gateway().jvm.com.intel.analytics.bigdl.dllib.utils.python.api.PythonBigDL.ofFloat()
    # Beside the target, so that the rename stays within one file system.
    part = f"{target}.{os.getpid()}.part"
    try:
        bigdl.saveBigDLModule(bigdl.loadBigDL(source), part, None, True)
        with open(part, "rb") as written:
            os.fsync(written.fileno())
        os.replace(part, target)
    finally:
        checksum = os.path.join(os.path.dirname(part), f".{os.path.basename(part)}.crc")     # Hadoop's twin of the file
        for leftover in (part, checksum):
            if os.path.exists(leftover):
                os.unlink(leftover)


def main(argv):
    if len(argv) != 2:
        sys.exit("usage: spark-submit convert_checkpoint.py IN OUT")
    source, target = map(os.path.abspath, argv)
    if not os.path.isfile(source):
        sys.exit(f"convert_checkpoint: no file '{source}'")
    if not os.path.isdir(os.path.dirname(target)):
        sys.exit(f"convert_checkpoint: no folder '{os.path.dirname(target)}'")
    try:
        convert(source, target)
    except (OSError, Py4JError) as error:
        sys.exit(f"convert_checkpoint: cannot convert '{source}': {cause_of(error)}")


if __name__ == "__main__":
    main(sys.argv[1:])
