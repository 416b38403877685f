# Shared by tests/spark/test-*: real Spark and BigDL, as `./run-pipetune.sh setup` made them. Sourced; runs in the tree's root.
# shellcheck shell=bash
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export SPARK_LOCAL_IP=127.0.0.1
build=${PIPETUNE_BUILD:-$PWD/build/check}
pipetune=$build/pipetune
[ -e .pipetune/spark/bin/spark-submit ] && [ -e .pipetune/bigdl/bigdl-dllib.jar ] && [ -e .pipetune/data/mnist/train-images-idx3-ubyte ] || {
    echo "SKIP Spark, BigDL or MNIST is not in .pipetune: ./run-pipetune.sh setup"
    exit 77
}
work=$(mktemp -d "$build/spark.XXXXXX")
export PIPETUNE_STORE=$work/store.db
pids=()
finish() {
    local code=$?
    for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
    if [ "$(type -t at_end)" = function ]; then at_end; fi
    wait 2>/dev/null || true
    if [ $code -eq 0 ]; then rm -rf "$work"; else echo "kept: $work"; fi
    exit $code
}
trap finish EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }
field() { python3 -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1], {"d": d}))' "$1"; }
show() { "$pipetune" show "$@" --json; }
# want WHAT GOT WANTED
want() { [ "$2" = "$3" ] || fail "$1: got '$2', want '$3'"; echo "ok: $1: $2"; }
# wait_for SECONDS COMMAND…: until it is true
wait_for() {
    local end=$((SECONDS + $1)); shift
    until "$@" 2>/dev/null; do
        [ $SECONDS -lt $end ] || fail "waited in vain for: $*"
        sleep 0.2
    done
}
# few_images FOLDER COUNT [TEST]: the first of MNIST's images, so many of both parts, or TEST of the second
few_images() {
    mkdir -p "$1"
    python3 - .pipetune/data/mnist "$1" "$2" "${3:-$2}" <<'EOF'
import struct, sys

source, out, *counts = sys.argv[1:]
for part, count in zip(("train", "t10k"), map(int, counts)):
    for kind, head, each in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
        with open(f"{source}/{part}-{kind}-ubyte", "rb") as f:
            data = f.read(head + count * each)
        n = (len(data) - head) // each
        with open(f"{out}/{part}-{kind}-ubyte", "wb") as f:
            f.write(data[:4] + struct.pack(">I", n) + data[8:])
EOF
}
