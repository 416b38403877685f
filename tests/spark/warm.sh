# Studies in warm sessions on a cluster, for tests/spark/test-warm*. Sourced, behind lib.sh.
# shellcheck shell=bash
# shellcheck disable=SC2154        # of lib.sh

# shellcheck disable=SC2034        # of the tests
points='[0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.08, 0.06]'

# warm_study NAME MASTER POINTS [SYSTEM [MORE]]: LeNet, 2 epochs of few images, in $work/NAME.conf; keys of `app` (JSON) are the application's
warm_study() {
    local system='{ "cores": ["1"] }' page=
    [ $# -lt 4 ] || system=$4
    [ -z "${ui:-}" ] || page=", \"master_ui\": \"$ui\""
    [ -d "$work/data/mnist" ] || few_images "$work/data/mnist" 8192
    python3 - "$work/$1.json" "$2" "${app:-{\}}" <<'EOP'
import json, sys
path, master, more = sys.argv[1:]
app = json.load(open("bigdl/config/lenet5.json"))
app.update(master=master, driver_memory="1g", executor_memory="1g", **json.loads(more))
json.dump(app, open(path, "w"))
EOP
    cat >"$work/$1.conf" <<EOC
{ "application": "$work/$1.json", "study": { "name": "$1", "epochs": 2, "seed": 7 }, "spark": { "grant_seconds": 120$page },
  "systemParameters": $system, "hyperParameters": { "batch_size": [256], "learning_rate": $3 } ${5:-} }
EOC
}
export PIPETUNE_DATA=$work/data

ask() { sqlite3 -cmd '.timeout 5000' "$PIPETUNE_STORE" "$1"; }
of_study() { echo "(SELECT id FROM studies WHERE name = '$1')"; }
running() { [ "$(ask "SELECT count(*) FROM trials WHERE state = 'running' AND study = $(of_study "$1")")" -ge "$2" ]; }
# trained STUDY N: so many trials have told an epoch, and still run
trained() { [ "$(ask "SELECT count(DISTINCT e.trial) FROM epochs e JOIN trials t ON t.id = e.trial WHERE t.state = 'running' AND t.study = $(of_study "$1")")" -ge "$2" ]; }
# saved STUDY: prints a trial that runs and has written its checkpoint of the first epoch
saved() {
    local n
    for n in $(ask "SELECT number FROM trials WHERE state = 'running' AND study = $(of_study "$1")"); do
        if grep -q 'Save optimMethod' "$work/pipetune.d/$1/$n/log" 2>/dev/null; then echo "$n"; return; fi
    done
    return 1
}
sessions() { find "$work/pipetune.d/$1" -maxdepth 1 -name 'session-*' | wc -l; }
all_attempts() { ask "SELECT count(*) FROM attempts"; }
# attempts STUDY OUTCOME: how many ended so
attempts() { ask "SELECT count(*) FROM attempts a JOIN trials t ON t.id = a.trial WHERE t.study = $(of_study "$1") AND a.outcome = '$2'"; }
# kill_executor STUDY TRIAL: that of the session which serves it, by KILL; its pid is `killed`
kill_executor() {
    local tag pid
    tag=$(ask "SELECT launch FROM attempts a JOIN trials t ON t.id = a.trial WHERE t.study = $(of_study "$1") AND t.number = $2 ORDER BY a.id DESC LIMIT 1")
    killed=
    for pid in $(pgrep -f -- "-Dpipetune.launch=$tag.*ExecutorBackend"); do
        [[ $(readlink "/proc/$pid/exe") == */java ]] || continue
        kill -KILL "$pid"
        killed=$pid
    done
    [ -n "$killed" ] || fail "no executor carries the tag $tag"
}
# all_finished STUDY N: each once
all_finished() {
    want "trials of $1" "$(show "$1" | field '" ".join(sorted(set(t["state"] for t in d["trials"]))) + " " + str(len(d["trials"]))')" "finished $2"
    want "attempts of $1 that finished" "$(attempts "$1" finished)" "$2"
    want "those that count as failed" "$(attempts "$1" failed)" "${3:-0}"
}
# same_figures STUDY OTHER: of each point, within what other core numbers make of it
same_figures() {
    { show "$1"; show "$2"; } | python3 -c '
import json, sys
text, at, runs = sys.stdin.read(), 0, []
while at < len(text.rstrip()):
    d, end = json.JSONDecoder().raw_decode(text[at:])
    runs.append({t["hyper"]["learning_rate"]: t["accuracy"] for t in d["trials"]})
    at += end + len(text[at + end:]) - len(text[at + end:].lstrip())
one, other = runs
gaps = [one[p] - other[p] for p in one]
for p in sorted(one):
    print(f"learning_rate {p}: {one[p]:.4f} and {other[p]:.4f}")
mean, most = sum(gaps) / len(gaps), max(abs(g) for g in gaps)
print(f"mean difference {mean:+.4f}, at most {most:.4f}")
sys.exit(0 if set(one) == set(other) and abs(mean) <= 0.03 and most <= 0.08 else 1)' || fail "the figures of $1 are not those of $2"
}
