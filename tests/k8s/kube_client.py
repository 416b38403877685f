"""A client of a Kubernetes API server for the tests: JSON (or YAML as it is) over one connection, with a bearer's token."""
import http.client
import json
import os
import ssl
import urllib.parse


class Refused(Exception):
    def __init__(self, status, text):
        super().__init__(f"status {status}: {text}")
        self.status = status


class Client:
    def __init__(self, server, ca, token):
        self.at = urllib.parse.urlsplit(server)
        self.ssl = ssl.create_default_context(cafile=ca)
        self.token = token
        self.connection = None

    def call(self, method, path, body=None, kind="application/json"):
        """The answer, parsed; Refused: the server says no; OSError, http.client.HTTPException: it says nothing."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        headers = {"Authorization": "Bearer " + self.token, "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = kind
        try:
            if self.connection is None:
                self.connection = http.client.HTTPSConnection(self.at.hostname, self.at.port, context=self.ssl, timeout=10)
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if answer.status >= 300:
            raise Refused(answer.status, text.decode(errors="replace"))
        return json.loads(text) if text[:1] in b"{[" else text.decode()

    def patch(self, path, body):
        return self.call("PATCH", path, body, "application/merge-patch+json")

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


def from_environment():
    with open(os.environ["KUBE_TOKEN"]) as f:
        return Client(os.environ["KUBE_SERVER"], os.environ["KUBE_CA"], f.read().strip())


def number(text):
    """Of a quantity: 0.5 of "500m", 1073741824 of "1Gi"."""
    text = str(text)
    for unit, factor in (("m", 1e-3), ("Ki", 2**10), ("Mi", 2**20), ("Gi", 2**30), ("Ti", 2**40), ("k", 1e3), ("M", 1e6), ("G", 1e9)):
        if text.endswith(unit):
            return float(text[:-len(unit)]) * factor
    return float(text)
