"""Writes N points by a Python client: write.py influxdb|influxdb-client|bare PORT DATABASE N, prints "points seconds cpu_seconds 0".

The points are those of bench_influx.c. Batches of 5000, one after the other; building a client's own points is part of its work. Of
`bare` it is not: lines that are there already, over several connections at once, are what the server takes at most."""
import http.client
import sys
import threading
import time

BATCH, NODES, BEGIN_NS, CONNECTIONS = 5000, 16, 1700000000000000000, 4


def values(first, last):
    for i in range(first, last):
        yield f"node-{i % NODES}", 100 + (i * 7919 % 10007) / 100, BEGIN_NS + i * 1000000


def batches(n):
    for first in range(0, n, BATCH):
        yield values(first, min(n, first + BATCH))


def write_influxdb(port, database, n):
    from influxdb import InfluxDBClient
    client = InfluxDBClient(host="127.0.0.1", port=port, database=database)
    for batch in batches(n):
        client.write_points([{"measurement": "power", "tags": {"nodename": node}, "fields": {"value": value}, "time": ns}
                             for node, value, ns in batch])


def write_influxdb_client(port, database, n):
    from influxdb_client import InfluxDBClient, Point
    from influxdb_client.client.write_api import SYNCHRONOUS
    # 1.6 has no /api/v2/write: the URL makes of it a parameter of /write that means nothing there.
    client = InfluxDBClient(url=f"http://127.0.0.1:{port}/write?db={database}&path=", token="none", org="none")
    api = client.write_api(write_options=SYNCHRONOUS)
    for batch in batches(n):
        api.write(bucket=database, record=[Point("power").tag("nodename", node).field("value", value).time(ns)
                                           for node, value, ns in batch])


def post_each(port, database, bodies):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for body in bodies:
        connection.request("POST", f"/write?precision=ns&db={database}", body)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 204:
            sys.exit(f"status {answer.status}")


def write_bare(port, database, n):
    bodies = ["".join(f"power,nodename={node} value={value} {ns}\n" for node, value, ns in batch).encode() for batch in batches(n)]
    threads = [threading.Thread(target=post_each, args=(port, database, bodies[i::CONNECTIONS])) for i in range(CONNECTIONS)]
    wall, cpu = time.monotonic(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(n, time.monotonic() - wall, time.process_time() - cpu, 0)


def main():
    client, port, database, n = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    if client == "bare":
        write_bare(port, database, n)
        return
    write = {"influxdb": write_influxdb, "influxdb-client": write_influxdb_client}[client]
    write(port, database, 10)    # imports and the connection are not counted
    wall, cpu = time.monotonic(), time.process_time()
    write(port, database, n)
    print(n, time.monotonic() - wall, time.process_time() - cpu, 0)


main()
