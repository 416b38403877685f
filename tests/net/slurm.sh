# Slurm on loopback, in a folder of the test's own: sourced by tests. Debian's packages, installed or unpacked into .pipetune/slurm by
# ./run-pipetune.sh; nothing of them is a service here. Needs root, since slurmd starts jobs for users.
slurm_root=$PWD/.pipetune/slurm
slurm_pids=()

# The daemons' paths, and the commands on PATH; false: there is no Slurm.
slurm_find() {
    local lib
    if [ -x "$slurm_root/usr/bin/sbatch" ]; then
        lib=$(dirname "$(find "$slurm_root/usr/lib" -name slurm-wlm -type d | head -n 1)")
        export PATH=$slurm_root/usr/bin:$PATH LD_LIBRARY_PATH=$lib:$lib/slurm-wlm${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
        slurm_plugins=$lib/slurm-wlm slurm_sbin=$slurm_root/usr/sbin
    else
        slurm_sbin=/usr/sbin slurm_plugins=
    fi
    slurm_ctld=$(ls "$slurm_sbin"/slurmctld{-wlm,} 2>/dev/null | head -n 1)
    slurm_d=$(ls "$slurm_sbin"/slurmd{-wlm,} 2>/dev/null | head -n 1)
    slurm_stepd=$(ls "$slurm_sbin"/slurmstepd{-wlm,} 2>/dev/null | head -n 1)
    command -v sbatch >/dev/null && [ -n "$slurm_ctld" ] && [ -n "$slurm_d" ] && [ -n "$slurm_stepd" ] && [ -x "$slurm_sbin/munged" ]
}

slurm_free_ports() {
    python3 -c 'import socket
s = [socket.socket() for i in range(2)]
for x in s: x.bind(("127.0.0.1", 0))
print(*[x.getsockname()[1] for x in s])'
}

slurm_start_ctld() {
    "$slurm_ctld" -D -f "$SLURM_CONF" >>"$slurm_dir/slurmctld.log" 2>&1 &
    slurm_ctld_pid=$!
    slurm_pids+=("$!")
}

slurm_is_up() { [ "$(sinfo -h -o '%t')" = idle ]; }

# slurm_start DIR CPUS MEMORY_MB [COMMAND…]: munged, slurmctld and slurmd, this one by COMMAND where one is given.
slurm_start() {
    local host ports cpus=$2 memory=$3
    slurm_dir=$1
    shift 3
    host=$(hostname -s)
    read -r -a ports <<<"$(slurm_free_ports)"
    mkdir -p "$slurm_dir/state" "$slurm_dir/spool"
    chmod 755 "$slurm_dir"
    head -c 1024 /dev/urandom >"$slurm_dir/munge.key"
    chmod 600 "$slurm_dir/munge.key"
    export SLURM_CONF=$slurm_dir/slurm.conf
    sed -e "s|HOST|$host|; s|CPUS$|&|; s|CPUs=CPUS|CPUs=$cpus|; s|=MEMORY|=$memory|" \
        -e "s|^SlurmctldPort=.*|SlurmctldPort=${ports[0]}|; s|^SlurmdPort=.*|SlurmdPort=${ports[1]}|" \
        -e "s|=/var/lib/slurm/slurmctld|=$slurm_dir/state|; s|=/var/lib/slurm/slurmd|=$slurm_dir/spool|; s|=/run/|=$slurm_dir/|" \
        -e "s|interval=5|interval=1|g" conf/slurm/slurm.conf >"$SLURM_CONF"
    printf '%s\n' "AuthInfo=socket=$slurm_dir/munge.socket" KillWait=5 SlurmdTimeout=10 MailProg=/bin/true "${slurm_plugins:+PluginDir=$slurm_plugins}" \
        >>"$SLURM_CONF"
    "$slurm_sbin/munged" --foreground --force --key-file="$slurm_dir/munge.key" --socket="$slurm_dir/munge.socket" \
        --pid-file="$slurm_dir/munged.pid" --log-file="$slurm_dir/munged.log" --seed-file="$slurm_dir/munged.seed" >"$slurm_dir/munged.out" 2>&1 &
    slurm_pids+=("$!")
    wait_for 10 test -S "$slurm_dir/munge.socket"
    slurm_start_ctld
    "$@" "$slurm_d" -D -d "$slurm_stepd" -f "$SLURM_CONF" >"$slurm_dir/slurmd.log" 2>&1 &
    slurm_pids+=("$!")
    wait_for 20 slurm_is_up
}

# Jobs first: what they started is theirs.
slurm_stop() {
    local pid i
    [ -n "${slurm_dir:-}" ] || return 0
    for i in 1 2 3 4 5 6 7 8 9 10; do
        timeout 3 scancel --quiet --user="$(id -un)" 2>/dev/null || break
        timeout 3 scancel --quiet --full --signal=KILL --user="$(id -un)" 2>/dev/null
        [ -n "$(timeout 3 squeue -h 2>/dev/null)" ] || break
        sleep 0.5
    done
    for ((i = ${#slurm_pids[@]} - 1; i >= 0; i--)); do
        pid=${slurm_pids[i]}
        kill -TERM "$pid" 2>/dev/null
    done
    sleep 0.5
    for pid in "${slurm_pids[@]}"; do kill -KILL "$pid" 2>/dev/null; done
    return 0
}
