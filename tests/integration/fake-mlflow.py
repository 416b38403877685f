#!/usr/bin/env python3
"""An MLflow server that keeps all that it is sent, twice where it is sent twice, and misbehaves as it is told.

fake-mlflow.py FOLDER: listens on loopback, writes its port to FOLDER/port and, after each request, what it has to
FOLDER/has.json. FOLDER/faults says how it misbehaves, a word for each POST, from the first on: ok, 500 (nothing is kept),
429, lost (kept, and not answered), half (the first half of a batch is kept, and not answered), slow, bad (kept; the answer
is no JSON), refused. When they are used up, or there are none, all is well.
"""
import json
import os
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

folder = sys.argv[1]
experiments, runs, counts = {}, {}, {"requests": 0, "faults": 0}
lock = threading.Lock()
PAGE = 7  # points of a history, so that pages are turned


def fault():
    path = os.path.join(folder, "faults")
    words = open(path).read().split() if os.path.exists(path) else []
    if not words:
        return "ok"
    with open(path, "w") as f:
        f.write(" ".join(words[1:]))
    counts["faults"] += words[0] != "ok"
    return words[0]


def missing(what):
    return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": f"no {what}"}


def invalid(why):
    return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": why}


def create_run(body):
    run = {"id": f"run{len(runs) + 1}", "name": body["run_name"], "start": body["start_time"], "status": "RUNNING",
           "tags": {t["key"]: t["value"] for t in body["tags"]}, "params": {}, "metrics": []}
    runs[run["id"]] = run
    return 200, {"run": {"info": {"run_id": run["id"]}}}


def search(body):
    key, value = body["filter"].split("`")[1], body["filter"].split("'")[1]
    found = [r for r in runs.values() if r["tags"].get(key) == value]
    return 200, {"runs": [{"info": {"run_id": r["id"]}} for r in found[: body["max_results"]]]}


def log_batch(body, half):
    run = runs.get(body["run_id"])
    if not run:
        return missing("run")
    metrics, params, tags = body["metrics"], body["params"], body["tags"]
    if len(metrics) > 1000 or len(params) > 100 or len(tags) > 100 or len(metrics) + len(params) + len(tags) > 1000:
        return invalid("too much at once")
    for p in params:
        if run["params"].setdefault(p["key"], p["value"]) != p["value"]:
            return invalid(f"parameter {p['key']} is there with another value")
    keep = metrics[: len(metrics) // 2] if half else metrics
    run["metrics"] += [[m["key"], m["step"], m["timestamp"], m["value"]] for m in keep]
    run["tags"].update({t["key"]: t["value"] for t in tags} if not half else {})
    return 200, {}


def update(body):
    run = runs.get(body["run_id"])
    if not run:
        return missing("run")
    run["status"], run["end"] = body["status"], body.get("end_time")
    return 200, {"run_info": {}}


def create_experiment(body):
    if body["name"] in experiments:
        return 400, {"error_code": "RESOURCE_ALREADY_EXISTS", "message": "there is one"}
    experiments[body["name"]] = str(len(experiments) + 1)
    return 200, {"experiment_id": experiments[body["name"]]}


def history(query):
    run = runs.get(query["run_id"])
    if not run:
        return missing("run")
    at = int(query.get("page_token", 0))
    points = [m for m in run["metrics"] if m[0] == query["metric_key"]]
    answer = {"metrics": [{"key": k, "step": s, "timestamp": str(t), "value": v} for k, s, t, v in points[at : at + PAGE]]}
    if at + PAGE < len(points):
        answer["next_page_token"] = str(at + PAGE)
    return 200, answer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, answer, text=None):
        data = (json.dumps(answer) if text is None else text).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def done(self):
        with open(os.path.join(folder, "has.new"), "w") as f:
            json.dump({"runs": list(runs.values()), "experiments": experiments, "counts": counts,
                       "credential": self.headers.get("Authorization")}, f)
        os.replace(os.path.join(folder, "has.new"), os.path.join(folder, "has.json"))

    def do_GET(self):
        with lock:
            self.get()

    def do_POST(self):
        with lock:
            self.post()

    def get(self):
        counts["requests"] += 1
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        name = query.get("experiment_name")
        if url.path.endswith("/experiments/get-by-name"):
            known = name in experiments
            self.reply(*((200, {"experiment": {"experiment_id": experiments[name]}}) if known else missing("experiment")))
        else:
            self.reply(*history(query))

    def post(self):
        counts["requests"] += 1
        length = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(length))
        how = fault()
        if how == "slow":
            time.sleep(0.3)
        if how in ("500", "429"):
            return self.reply(int(how), {})
        if how == "refused" or length > 1000000:
            return self.reply(*invalid("refused"))
        verbs = {"runs/create": create_run, "runs/search": search, "runs/update": update,
                 "experiments/create": create_experiment}
        verb = "/".join(self.path.split("/")[-2:])
        status, answer = log_batch(body, how == "half") if verb == "runs/log-batch" else verbs[verb](body)
        self.done()
        if how in ("lost", "half"):
            self.close_connection = True
            return self.connection.close()
        self.reply(status, answer, "<html>" if how == "bad" else None)


port = os.path.join(folder, "port")
server = ThreadingHTTPServer(("127.0.0.1", int(open(port).read()) if os.path.exists(port) else 0), Handler)
with open(os.path.join(folder, "port.new"), "w") as f:
    f.write(str(server.server_port))
os.replace(os.path.join(folder, "port.new"), port)
with open(os.path.join(folder, "ready"), "w"):
    pass
server.serve_forever()
