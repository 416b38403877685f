# Shared by tests/net/test-*: machines made of namespaces on one bridge, with an sshd, a home and processes of their own, and one more with the
# driver. Sourced; runs in the tree's root, where "/" is a mount point. Needs root; leaves nothing behind.
#
#   machines 78               the bridge, 10.78.0.1, in the driver's namespace ${ns}d; $work/ssh is what the driver takes for ssh
#   start_machine 1 64m       w1 is 10.78.0.11, its home $work/home1 a file system of 64 MB, its process 1 the pid in $work/init1
#   in_driver COMMAND…        in the driver's namespace
#   on 1 COMMAND…             on w1
# shellcheck shell=bash
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${PIPETUNE_BUILD:-$PWD/build/check}
skip() { echo "SKIP $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "namespaces need root"
for tool in ip unshare nsenter ssh ssh-keygen /usr/sbin/sshd python3; do command -v "$tool" >/dev/null || skip "no $tool"; done
# In a chroot "/" is no mount point, which ip and unshare want it to be: go on where it is one.
if ! mountpoint -q / && [ -z "${NET_ROOT:-}" ]; then
    exec env NET_ROOT=1 unshare --mount --propagation unchanged bash -c \
        'mount --rbind / /mnt && exec chroot /mnt bash -c "cd \"\$1\" && exec \"\$2\"" bash "$PWD" "$1"' bash "$(realpath "$0")"
fi

work=$(mktemp -d /tmp/pipetune-hosts.XXXXXX)
ns=pth$$
pids=()
made=()
cleanup() {
    local code=$?
    set +e
    for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null; done
    wait 2>/dev/null
    for machine in "${made[@]}"; do ip netns del "$ns$machine" 2>/dev/null; done
    if [ $code -eq 0 ]; then rm -rf "$work"; else echo "kept: $work"; fi
    exit $code
}
trap cleanup EXIT
trap 'echo "FAILED: line $LINENO" >&2' ERR
fail() { echo "FAILED: $*" >&2; [ ! -e "$work/out" ] || tail -n 30 "$work/out" >&2; exit 1; }
ok() { echo "ok: $*"; }
# wait_for SECONDS COMMAND…
wait_for() {
    local end=$((SECONDS + $1)); shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || fail "waited in vain for: $*"
        sleep 0.1
    done
}

# machines NET: no two tests take the same
machines() {
    net=10.$1.0
    ip netns add "${ns}d" || skip "no network namespaces here"
    made+=(d)
    ip -n "${ns}d" link add br0 address "02:00:00:00:$1:01" type bridge || skip "no bridges here"
    ip -n "${ns}d" addr add "$net.1/24" dev br0
    ip -n "${ns}d" link set br0 up
    ip -n "${ns}d" link set lo up
    ssh-keygen -q -t ed25519 -N '' -f "$work/id"
    printf 'Host w*\n User root\n IdentityFile %s\n IdentitiesOnly yes\n UserKnownHostsFile %s\n GlobalKnownHostsFile /dev/null\n' \
        "$work/id" "$work/known_hosts" >"$work/ssh_config"
    printf '#!/bin/sh\nunset SSH_AUTH_SOCK\necho x >>%s/connections\nexec ssh -F %s "$@"\n' "$work" "$work/ssh_config" >"$work/ssh"
    chmod +x "$work/ssh"
}

# start_machine I SIZE NAME=VALUE…: what its logins have in their environment beside
start_machine() {
    local i=$1 size=$2
    shift 2
    ip netns add "$ns$i"
    made+=("$i")
    ip -n "${ns}d" link add "w$i" type veth peer name eth0 netns "$ns$i"
    ip -n "${ns}d" link set "w$i" master br0 up
    ip -n "$ns$i" addr add "$net.1$i/24" dev eth0
    ip -n "$ns$i" link set eth0 up
    ip -n "$ns$i" link set lo up
    mkdir -p "$work/home$i"
    ssh-keygen -q -t ed25519 -N '' -f "$work/host$i"
    printf 'Host w%s\n HostName %s.1%s\n HostKeyAlias w%s\n' "$i" "$net" "$i" "$i" >>"$work/ssh_config"
    echo "w$i $(cut -d' ' -f1,2 "$work/host$i.pub")" >>"$work/known_hosts"
    cat >"$work/sshd$i" <<END
Port 22
ListenAddress $net.1$i
HostKey $work/host$i
PidFile none
AuthorizedKeysFile $work/id.pub
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
SetEnv HOME=$work/home$i PIPETUNE_LEASE_MS=3000 $*
END
    ip netns exec "$ns$i" unshare --pid --fork --kill-child --mount --mount-proc --uts --ipc sh -c \
        'hostname "$1"; mount -t tmpfs none /run; mkdir -p /run/sshd; mount -t tmpfs -o "size=$3" none "$4"; exec /usr/sbin/sshd -D -e -f "$2"' \
        sh "w$i" "$work/sshd$i" "$size" "$work/home$i" 2>>"$work/sshd$i.log" &
    pids+=("$!")
    wait_for 10 pgrep -P "$!"
    pgrep -P "$!" >"$work/init$i"
    wait_for 10 listens "$i"
}
listens() { ip netns exec "$ns$1" ss -ltn | grep -q "$net.1$1:22"; }
on() { local i=$1; shift; nsenter -t "$(cat "$work/init$i")" -a -r -w -- "$@"; }
in_driver() { ip netns exec "${ns}d" "$@"; }

# --- studies: $work/pipetune.db ------------------------------------------------------------------------------------------------------
# drive NAME CONFIG OPTION…: the driver, in the place of this shell
drive() {
    local name=$1 config=$2
    shift 2
    cd "$work"
    PIPETUNE_SSH=$work/ssh PIPETUNE_NODES_SPEED=5 PIPETUNE_NODES_HASTE=5 HOME=$work exec ip netns exec "${ns}d" \
        "$build/pipetune" run "$config" --name "$name" "$@"
}
ask() { python3 -c 'import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]): print(*row, sep="|")' "$work/pipetune.db" "$1"; }
of() { echo "FROM attempts a JOIN trials t ON t.id = a.trial JOIN studies s ON s.id = t.study WHERE s.name = '$1'"; }
