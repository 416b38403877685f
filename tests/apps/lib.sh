# Shared by tests/apps/test-*: the studies of examples/, as they are but for a meter. Sourced; runs in the tree's root.
# shellcheck shell=bash
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${PIPETUNE_BUILD:-$PWD/build/check}
pipetune=$build/pipetune
work=$(mktemp -d "$build/apps.XXXXXX")
export PIPETUNE_STORE=$work/store.db
export PIPETUNE_LEASES=pt-apps-$$ # an account of CPUs of its own: whatever else runs here is no neighbour
driver=
finish() {
    local code=$?
    [ -z "$driver" ] || kill -TERM "$driver" 2>/dev/null || true
    wait 2>/dev/null || true
    if [ $code -eq 0 ]; then rm -rf "$work"; else echo "kept: $work"; fi
    exit $code
}
trap finish EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }
field() { /usr/bin/python3 -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1], {"d": d}))' "$1"; }
# want WHAT GOT WANTED
want() { [ "$2" = "$3" ] || fail "$1: got '$2', want '$3'"; echo "ok: $1: $2"; }
trial() { "$pipetune" show "$1" --json | field "$2"; }
rows() { /usr/bin/python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])' "$PIPETUNE_STORE" "$1"; }
# wait_for SECONDS COMMAND…: until it is true
wait_for() {
    local end=$((SECONDS + $1)); shift
    until "$@" 2>/dev/null; do
        [ $SECONDS -lt $end ] || fail "waited in vain for: $*"
        sleep 0.1
    done
}

# config NAME: its path, with a meter that is everywhere
config() {
    sed "s#\"apps/#\"$PWD/examples/apps/#; s#^{#{ \"powerMeter\": \"estimate\",#" "examples/$1.conf" >"$work/$1.conf"
    echo "$work/$1.conf"
}
# begin CONFIG NAME OPTION…, again: the driver in the background; its output is $work/out
begin() {
    command=("$pipetune" run "$(config "$1")" --name "$2" "${@:3}")
    again
}
again() {
    "${command[@]}" >>"$work/out" 2>&1 &
    driver=$!
}
ends() {
    local code=0
    wait "$driver" || code=$?
    driver=
    [ $code -eq 0 ] || { tail -n 20 "$work/out"; fail "${command[*]}: exit code $code"; }
}
killed() {
    kill -KILL "$driver"
    wait "$driver" 2>/dev/null || true
    driver=
}

# The CPUs on which a process of that launch may run, read from the kernel: "0 1", or "none"
cpus_of() {
    /usr/bin/python3 - "$1" <<'EOF'
import glob, os, sys
cpus = set()
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        if f"PIPETUNE_LAUNCH={sys.argv[1]}".encode() in open(path, "rb").read().split(b"\0"):
            cpus |= os.sched_getaffinity(int(path.split("/")[2]))
    except OSError:
        pass
print(*sorted(cpus) or ["none"])
EOF
}
lives() { [ "$(cpus_of "$(launch "$1")")" = none ] && echo no || echo yes; }
launch() { trial "$1" "d['trials'][0]['attempt_list'][-1]['launch']"; }
effective() { trial "$1" "d['trials'][0]['system']['effective']['cores']"; }
epochs_of() { trial "$1" "len(d['trials'][0]['epochs'])"; }
has_epochs() { [ "$(epochs_of "$1")" -ge "$2" ]; }
# Those with a metric and a time. Lines that are read together tell of epochs without any length: what counts is that of the trial.
timed() { trial "$1" "sum(e['metric'] is not None and e['seconds'] >= 0 and t['epochs'][0]['seconds'] > 0 for t in d['trials'] for e in t['epochs'])"; }
decided() { "$pipetune" show "$1" --decisions | grep -q " $2 "; }

# in_force TRIAL: its processes have as many CPUs as it is told to have
in_force() { [ "$(cpus_of "$(launch "$1")" | wc -w)" = "$(effective "$1")" ]; }

# hot NAME EPOCHS POLICY HOW: cores are changed while it trains, and what is told of them is what the kernel says
hot() {
    local name=$1-$3
    begin "$1" "$name" --policy "$3" --max-trials 1 --epochs "$2" --window-seconds 0.3
    wait_for 240 decided "$name" settle
    wait_for 10 in_force "$name/1"
    want "$name: it still trains" "$(trial "$name/1" "d['trials'][0]['state']")" running
    ends
    want "$name: launches" "$(trial "$name/1" "d['trials'][0]['attempts']")" 1
    want "$name: one core tried" "$("$pipetune" show "$name" --decisions | grep -c "$4" | sed 's/^[1-9].*/yes/')" "yes" # again after a drift
}

# pair NAME EPOCHS: two trials at once, each on one slot; kill -9 of their driver; the next one finds both; all is measured
pair() {
    local name=$1-pair epochs=$2
    begin "$1" "$name" --policy v1 --setting cores=1 --parallel 2 --max-trials 2 --epochs "$epochs" --window-seconds 0.3
    wait_for 240 has_epochs "$name/1" 2
    wait_for 240 has_epochs "$name/2" 2
    want "$1: beside each other" "$(trial "$name" "[(t['state'], t['slots']) for t in d['trials']]")" "[('running', 1), ('running', 1)]"
    killed
    want "$1: they train on" "$(lives "$name/1") $(lives "$name/2")" "yes yes"
    again
    ends
    want "$1: launches" "$(trial "$name" "[t['attempts'] for t in d['trials']]")" "[1, 1]"
    want "$1: no epoch is lost or twice" \
        "$(trial "$name" "[[e['epoch'] for e in t['epochs']] == list(range(1, $epochs + 1)) for t in d['trials']]")" "[True, True]"
    want "$1: a metric and a time of each" "$(timed "$name")" $((2 * epochs))
    want "$1: cores" "$(trial "$name" "[t['system']['effective']['cores'] for t in d['trials']]")" "[1, 1]"
    want "$1: joules, and where from" "$("$pipetune" energy "$name" --json |
        field "[(t['j'] > 0, t['source'], t['meter']) for t in d['trials']] == [(True, 'estimated', 'estimate')] * 2")" True
    measured "$name"
}

# measured STUDY: each trial was sampled
measured() {
    want "$1: trials with samples" "$(rows "SELECT count(DISTINCT s.trial) FROM samples s, trials t, studies u
        WHERE s.trial = t.id AND t.study = u.id AND u.name = '$1'")" "$(trial "$1" "len(d['trials'])")"
}
# alone NAME EPOCHS: nothing runs beside it; windows of it are long enough for profiles
alone() {
    begin "$1" "$1-alone" --policy v1 --setting cores=1 --max-trials 1 --epochs "$2" --window-seconds 0.3
    ends
    want "$1: profiles" "$(rows "SELECT count(*) > 0 FROM profiles p, trials t, studies u
        WHERE p.trial = t.id AND t.study = u.id AND u.name = '$1-alone'")" 1
}
