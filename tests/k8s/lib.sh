# Shared by tests/k8s/test-*: a Kubernetes of Debian's etcd, a kube-apiserver (./run-pipetune.sh setup --kube builds it) and a stand-in for kubelets, on
# loopback; real Spark on it. Sourced; runs in the tree's root. The real API server, its roles, tokens, quotas and resizes; pods are processes.
# shellcheck shell=bash
apiserver=${KUBE_APISERVER:-.pipetune/kube/kube-apiserver}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[ -x "$apiserver" ] || { echo "SKIP there is no kube-apiserver in .pipetune/kube: ./run-pipetune.sh setup --kube builds it (minutes)"; exit 77; }
etcd=.pipetune/kube/etcd
[ -x $etcd ] || etcd=etcd
for tool in "$etcd" openssl curl unshare; do
    command -v "$tool" >/dev/null || { echo "SKIP no $tool: ./run-pipetune.sh setup --dev"; exit 77; }
done
source tests/spark/lib.sh
[ "$(id -u)" = 0 ] || { echo "SKIP pods with a token of their own need root"; exit 77; }

kube=$work/kube
namespace=trials
mkdir -p "$kube/pods"
JAVA_HOME=${JAVA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")}
export JAVA_HOME

free_ports() {   # N: so many ports that nobody has
    python3 -c 'import socket, sys
s = [socket.socket() for _ in range(int(sys.argv[1]))]
[x.bind(("127.0.0.1", 0)) for x in s]
print(*[x.getsockname()[1] for x in s])' "$1"
}
read -r etcd_port peer_port api_port < <(free_ports 3)
export KUBE_SERVER=https://127.0.0.1:$api_port KUBE_CA=$kube/certs/apiserver.crt KUBE_TOKEN=$kube/admin.token

# kube METHOD PATH [BODY [TYPE]]: prints the answer; fails unless the status is 2xx. BODY: JSON, or @FILE
kube() {
    local body=()
    [ $# -lt 3 ] || body=(-H "Content-Type: ${4:-application/json}" --data-binary "$3")
    curl -sS --fail-with-body --cacert "$KUBE_CA" -H "Authorization: Bearer $(cat "$KUBE_TOKEN")" -X "$1" "${body[@]}" "$KUBE_SERVER$2"
}
# kube_of EXPRESSION PATH: of the answer `d`
kube_of() { kube GET "$2" | field "$1"; }
pods_path() { echo "/api/v1/namespaces/$namespace/pods"; }

# Debian's etcd is too old for the cache of watches: Spark's would be refused.
start_apiserver() {
    nice -n -5 "$apiserver" --etcd-servers="http://127.0.0.1:$etcd_port" --cert-dir="$kube/certs" --bind-address=127.0.0.1 --advertise-address=127.0.0.1 \
        --secure-port="$api_port" --token-auth-file="$kube/tokens.csv" --authorization-mode=RBAC --service-cluster-ip-range=10.99.0.0/24 \
        --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$kube/accounts.key" \
        --service-account-signing-key-file="$kube/accounts.key" --allow-privileged=true --profiling=false \
        --endpoint-reconciler-type=none --watch-cache=false "$@" >>"$kube/apiserver.log" 2>&1 &
    apiserver_pid=$!
    pids+=("$apiserver_pid")
    wait_for 60 kube GET /readyz >/dev/null
}
stop_apiserver() {
    kill -TERM "$apiserver_pid"
    wait "$apiserver_pid" 2>/dev/null || true
}

# apply FILE: each document of a YAML file that is there once; the server reads YAML itself.
apply() {
    python3 - "$1" <<'PY'
import os, re, sys
sys.path.insert(0, "tests/k8s")
import kube_client
plural = {"ServiceAccount": "serviceaccounts", "Role": "roles", "RoleBinding": "rolebindings", "ClusterRole": "clusterroles",
          "ClusterRoleBinding": "clusterrolebindings", "Namespace": "namespaces", "ResourceQuota": "resourcequotas", "Pod": "pods",
          "ConfigMap": "configmaps", "Secret": "secrets", "Service": "services", "PersistentVolumeClaim": "persistentvolumeclaims"}
api = kube_client.from_environment()
with open(sys.argv[1]) as f:
    documents = [d for d in re.split(r"(?m)^---\s*$", f.read()) if re.search(r"(?m)^kind:", d)]
for d in documents:
    kind = re.search(r"(?m)^kind: *(\S+)", d).group(1)
    group = re.search(r"(?m)^apiVersion: *(\S+)", d).group(1)
    space = re.search(r"(?m)^  namespace: *(\S+)", d)
    path = ("/apis/" if "/" in group else "/api/") + group
    path += f"/namespaces/{space.group(1)}" if space else ""
    api.call("POST", f"{path}/{plural[kind]}", d.encode(), "application/yaml")
PY
}

# start_kubelet NAME=CPUS…
start_kubelet() {
    local nodes=() n
    for n; do nodes+=(--node "$n"); done
    tests/k8s/kubelet "${nodes[@]}" --memory 8 --work "$kube/pods" --spark .pipetune/spark --java "$JAVA_HOME/bin/java" >>"$kube/kubelet.log" 2>&1 &
    kubelet_pid=$!
    pids=("$kubelet_pid" "${pids[@]}")
    wait_for 10 kube GET "/api/v1/nodes/${1%=*}" >/dev/null
}

# token_of ACCOUNT FILE [SECRET]: a token of ten minutes, that dies at once with the secret
token_of() {
    local bound=
    [ $# -lt 3 ] || bound=",\"boundObjectRef\":{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"name\":\"$3\"}"
    kube POST "/api/v1/namespaces/$namespace/serviceaccounts/$1/token" "{\"spec\":{\"expirationSeconds\":600$bound}}" | field 'd["status"]["token"]' | tr -d '\n' >"$2.new"   # Spark takes a line's end for a part of it
    chmod 600 "$2.new"
    mv "$2.new" "$2"
}

# start_kube NAME=CPUS…: all of it, with the namespace and the accounts of conf/kubernetes
start_kube() {
    echo "admin-token-of-a-test,admin,admin,system:masters" >"$kube/tokens.csv"
    echo "admin-token-of-a-test" >"$KUBE_TOKEN"
    chmod 600 "$KUBE_TOKEN" "$kube/tokens.csv"
    openssl genrsa -out "$kube/accounts.key" 2048 2>/dev/null
    "$etcd" --data-dir "$kube/etcd" --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
        --listen-peer-urls "http://127.0.0.1:$peer_port" --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" \
        --initial-cluster "default=http://127.0.0.1:$peer_port" --unsafe-no-fsync >"$kube/etcd.log" 2>&1 &
    pids+=($!)
    start_apiserver
    apply conf/kubernetes/account.yaml
    kube POST "/api/v1/namespaces/$namespace/serviceaccounts" '{"metadata":{"name":"default"},"automountServiceAccountToken":false}' >/dev/null
    start_kubelet "$@"
}

# write_properties FILE TOKEN: what Spark, and PipeTune, are told of this Kubernetes
write_properties() {
    cat .pipetune/bigdl/spark-bigdl.conf >"$1"
    cat >>"$1" <<PROPERTIES

spark.kubernetes.namespace $namespace
spark.kubernetes.container.image none
spark.kubernetes.authenticate.caCertFile $KUBE_CA
spark.kubernetes.authenticate.oauthTokenFile $2
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
PROPERTIES
}

# study NAME SYSTEM HYPER [MORE]: LeNet on few images, in $work/NAME.conf
study() {
    [ -d "$work/few" ] || few_images "$work/few" 16000 1000
    python3 - "$work" "$kube/spark.conf" "k8s://$KUBE_SERVER" "$1" <<'PY'
import json, sys
work, properties, master, name = sys.argv[1:]
app = json.load(open("bigdl/config/mnist.json"))
app.update(master=master, properties_file=properties, driver_memory="1g", executor_memory="1g", extras={"folder": work + "/few"})
json.dump(app, open(f"{work}/{name}.json", "w"))
PY
    cat >"$work/$1.conf" <<CONF
{ "application": "$work/$1.json", "study": { "name": "$1", "epochs": ${epochs:-1} }, "systemParameters": $2, "hyperParameters": $3 ${4:-} }
CONF
}
