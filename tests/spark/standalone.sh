# A standalone cluster on loopback with workers of 2, 1 and 1 cores, for tests/spark/test-*, and how much of it is idle. Sourced, behind lib.sh.
# Sets `master`, its address, and `ui`, its page.
# shellcheck shell=bash
# shellcheck disable=SC2034        # of the tests
at_end() { ./run-pipetune.sh cluster stop >/dev/null 2>&1 || true; }
master=$(./run-pipetune.sh cluster start --workers 3 --cores 2,1,1 --memory 3)
ui=$(cat .pipetune/cluster/ui); ui=${ui%/}

# Every half a second: cores that the master says are free, cores of launches that it does not show yet, trials that run, trials that are over.
sample() {   # STUDY FILE
    while :; do
        printf '%s %s %s\n' "$(date +%s.%N)" \
            "$(curl -s "$ui/json/" | python3 -c 'import json, sys; d = json.load(sys.stdin); print(sum(w["coresfree"] for w in d["workers"] if w["state"] == "ALIVE"), len(d["activeapps"]))')" \
            "$(sqlite3 -cmd '.timeout 2000' "$PIPETUNE_STORE" "SELECT coalesce(sum(CASE WHEN state = 'running' THEN slots END), 0) || ' ' || sum(state = 'running') || ' ' ||
                sum(state = 'finished') FROM trials WHERE study = (SELECT id FROM studies WHERE name = '$1')" 2>/dev/null)" >>"$2" || true
        sleep 0.4
    done
}

# figures FILE TRIALS: core-seconds that were neither used nor promised while a trial waited, of all; the most trials at once; the longest such spell
figures() {
    python3 - "$1" "$2" <<'EOC'
import sys

rows = [[float(x) for x in line.split()] for line in open(sys.argv[1]) if len(line.split()) == 6]
trials, idle, whole, most, spell, longest = int(sys.argv[2]), 0.0, 0.0, 0, 0.0, 0.0
for (t, free, apps, slots, running, over), following in zip(rows, rows[1:]):
    dt, waits = following[0] - t, running + over < trials
    most = max(most, int(running))
    if not waits or over + running == 0:
        continue
    nobodys = max(0, free - max(0, running - apps))     # what is promised to a launch is not free, though the master does not know yet
    idle, whole = idle + nobodys * dt, whole + 4 * dt
    spell = spell + dt if nobodys > 0 else 0
    longest = max(longest, spell)
print(f"{100 * idle / whole:.1f} {most} {longest:.1f}")
EOC
}
