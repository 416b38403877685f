"""A headless Chromium over its debugging pipe: no socket, no port, nothing to be installed beside it."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Browser:
    def __init__(self, program="chromium"):
        self.profile = tempfile.mkdtemp(prefix="page-browser-")
        to_r, self.to = os.pipe()
        self.out, from_w = os.pipe()

        def wire():  # Chromium reads descriptor 3 and writes 4
            high_r, high_w = os.dup2(to_r, 100), os.dup2(from_w, 101)
            os.dup2(high_r, 3)
            os.dup2(high_w, 4)

        self.log = open(os.path.join(self.profile, "log"), "wb")
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-component-update",
             "--remote-debugging-pipe", "--user-data-dir=" + self.profile, "about:blank"],
            preexec_fn=wire, close_fds=False, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        os.close(to_r)
        os.close(from_w)
        self.pending, self.n, self.events = b"", 0, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def _message(self, until):
        while b"\0" not in self.pending:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.out], [], [], left)[0]:
                return None
            piece = os.read(self.out, 1 << 20)
            if not piece:
                raise RuntimeError("the browser ended: " + open(self.log.name, errors="replace").read()[-2000:])
            self.pending += piece
        text, self.pending = self.pending.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, timeout=60, **params):
        self.n += 1
        ask = {"id": self.n, "method": method, "params": params}
        if getattr(self, "session", None):
            ask["sessionId"] = self.session
        os.write(self.to, json.dumps(ask).encode() + b"\0")
        until = time.monotonic() + timeout
        while True:
            m = self._message(until)
            if m is None:
                raise RuntimeError("no answer to " + method)
            if m.get("id") == self.n:
                if "error" in m:
                    raise RuntimeError(method + ": " + json.dumps(m["error"]))
                return m["result"]
            self.events.append(m)

    def drain(self, seconds):
        until = time.monotonic() + seconds
        while True:
            m = self._message(until)
            if m is None:
                return
            self.events.append(m)

    def open(self, url, timeout=60):
        self.events.clear()
        self.call("Page.navigate", url=url)
        until = time.monotonic() + timeout
        while not any(m.get("method") == "Page.loadEventFired" for m in self.events):
            m = self._message(until)
            if m is None:
                raise RuntimeError(url + " does not load")
            self.events.append(m)

    def js(self, text):
        r = self.call("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise RuntimeError(text + ": " + json.dumps(r["exceptionDetails"])[:500])
        return r["result"].get("value")

    def wait(self, text, seconds=20):
        """Until the expression is true; how long that took, or None."""
        begun = time.monotonic()
        while time.monotonic() - begun < seconds:
            if self.js(text):
                return time.monotonic() - begun
            time.sleep(0.02)
        return None

    def complaints(self):
        """What the console said: a policy that was broken, a script that failed."""
        out = []
        for m in self.events:
            if m.get("method") == "Log.entryAdded" and m["params"]["entry"]["level"] in ("error", "warning"):
                out.append(m["params"]["entry"]["text"])
            if m.get("method") == "Runtime.exceptionThrown":
                out.append(json.dumps(m["params"])[:500])
            if m.get("method") == "Runtime.consoleAPICalled" and m["params"]["type"] in ("error", "warning"):
                out.append(json.dumps(m["params"]["args"])[:500])
        return out

    def asked(self):
        """All addresses that were asked for."""
        return [m["params"]["request"]["url"] for m in self.events if m.get("method") == "Network.requestWillBeSent"]

    def size(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def scripts(self, on):
        self.call("Emulation.setScriptExecutionDisabled", value=not on)

    def key(self, name):
        codes = {"Tab": 9, "Enter": 13, " ": 32}
        extra = {"text": "\r"} if name == "Enter" else {"text": " "} if name == " " else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code="Space" if name == " " else name,
                      windowsVirtualKeyCode=codes[name], **(extra if kind == "keyDown" else {}))

    def picture(self, path, whole=True):
        r = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as f:
            f.write(base64.b64decode(r["data"]))

    def close(self):
        for fd in (self.to, self.out):
            os.close(fd)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)
