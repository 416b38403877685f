# YARN on loopback for tests/spark/test-*: a resource manager and a node manager. Sourced, behind lib.sh. Sets HADOOP_CONF_DIR and `rm`, its page.
# shellcheck shell=bash
# shellcheck disable=SC2154        # of lib.sh
compgen -G '.pipetune/hadoop/*resourcemanager*.jar' >/dev/null || {
    echo "SKIP the servers of YARN are not in .pipetune: ./run-pipetune.sh setup --dev"
    exit 77
}
java=${JAVA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")}/bin/java
yarn_jars=$(printf '%s:' "$PWD"/.pipetune/hadoop/*.jar)
export HADOOP_CONF_DIR=$work/hadoop
declare -A yarn_pid=()

free_ports() { python3 -c 'import socket, sys
s = [socket.socket() for _ in range(int(sys.argv[1]))]
for x in s: x.bind(("127.0.0.1", 0))
print(*(x.getsockname()[1] for x in s))' "$1"; }

# yarn_configure VCORES MIB [NAME=VALUE…]
yarn_configure() {
    local vcores=$1 mib=$2 p pair
    shift 2
    read -ra p <<<"$(free_ports 9)"
    rm=http://127.0.0.1:${p[0]}
    mkdir -p "$HADOOP_CONF_DIR" "$work/yarn"
    echo '<configuration><property><name>fs.defaultFS</name><value>file:///</value></property></configuration>' >"$HADOOP_CONF_DIR/core-site.xml"
    cat >"$HADOOP_CONF_DIR/capacity-scheduler.xml" <<EOC
<configuration>
<property><name>yarn.scheduler.capacity.resource-calculator</name><value>org.apache.hadoop.yarn.util.resource.DominantResourceCalculator</value></property>
<property><name>yarn.scheduler.capacity.maximum-am-resource-percent</name><value>${am_share:-1}</value></property>
<property><name>yarn.scheduler.capacity.root.queues</name><value>default</value></property>
<property><name>yarn.scheduler.capacity.root.default.capacity</name><value>100</value></property>
</configuration>
EOC
    {
        echo '<configuration>'
        for pair in "yarn.resourcemanager.webapp.address=127.0.0.1:${p[0]}" "yarn.resourcemanager.address=127.0.0.1:${p[1]}" \
            "yarn.resourcemanager.scheduler.address=127.0.0.1:${p[2]}" "yarn.resourcemanager.resource-tracker.address=127.0.0.1:${p[3]}" \
            "yarn.resourcemanager.admin.address=127.0.0.1:${p[4]}" "yarn.nodemanager.address=127.0.0.1:${p[5]}" \
            "yarn.nodemanager.localizer.address=127.0.0.1:${p[6]}" "yarn.nodemanager.webapp.address=127.0.0.1:${p[7]}" \
            "yarn.nodemanager.collector-service.address=127.0.0.1:${p[8]}" yarn.resourcemanager.hostname=127.0.0.1 yarn.nodemanager.hostname=127.0.0.1 \
            "yarn.nodemanager.resource.cpu-vcores=$vcores" "yarn.nodemanager.resource.memory-mb=$mib" yarn.scheduler.minimum-allocation-mb=32 \
            "yarn.nodemanager.local-dirs=$work/yarn/local" "yarn.nodemanager.log-dirs=$work/yarn/logs" yarn.nodemanager.vmem-check-enabled=false \
            yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage=100 \
            yarn.nodemanager.heartbeat.interval-ms=200 yarn.resourcemanager.nodemanagers.heartbeat-interval-ms=200 \
            yarn.resourcemanager.recovery.enabled=true "yarn.resourcemanager.fs.state-store.uri=file://$work/yarn/state" \
            yarn.resourcemanager.store.class=org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore \
            yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms=1000 yarn.resourcemanager.connect.retry-interval.ms=1000 "$@"; do
            echo "<property><name>${pair%%=*}</name><value>${pair#*=}</value></property>"
        done
        echo '</configuration>'
    } >"$HADOOP_CONF_DIR/yarn-site.xml"
    printf 'log4j.rootLogger=WARN,A\nlog4j.appender.A=org.apache.log4j.ConsoleAppender\nlog4j.appender.A.layout=org.apache.log4j.PatternLayout\nlog4j.appender.A.layout.ConversionPattern=%%d %%p %%c: %%m%%n\n' \
        >"$HADOOP_CONF_DIR/log4j.properties"
}

# yarn_start resourcemanager ResourceManager
yarn_start() {
    "$java" -XX:+UseSerialGC -Xmx256m --add-opens java.base/java.lang=ALL-UNNAMED -Djava.net.preferIPv4Stack=true -Dyarn.log.dir="$work/yarn" \
        -cp "$HADOOP_CONF_DIR:$yarn_jars" "org.apache.hadoop.yarn.server.$1.$2" </dev/null >>"$work/yarn/$1.log" 2>&1 &
    yarn_pid[$1]=$!
    pids+=("$!")
}
yarn_nodes() { [ "$(curl -s "$rm/ws/v1/cluster/metrics" | field 'd["clusterMetrics"]["activeNodes"]')" = "$1" ]; }

yarn_up() {
    yarn_start resourcemanager ResourceManager
    yarn_start nodemanager NodeManager
    wait_for 300 yarn_nodes 1
}
yarn_stop() {   # resourcemanager: it is waited for, or the next one cannot bind
    kill -"${2:-TERM}" "${yarn_pid[$1]}" 2>/dev/null || true
    wait "${yarn_pid[$1]}" 2>/dev/null || true
}
