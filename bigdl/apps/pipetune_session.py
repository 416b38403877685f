"""Serves PipeTune's trials, one after the other, in one warm Spark application.

    import pipetune_session

    sc = ...                                # your SparkContext, with the data of every trial loaded
    session = pipetune_session.open(sc)     # None: no session was asked for, the application trains once and ends
    if session:
        session.serve(train_one)            # calls train_one(trial) for each trial, returns when there are no more
    else:
        ...

README.md, beside this file, tells what a trial holds. The words on the socket are drawn in bigdl/session.h.

A thread of its own talks to the driver; everything that calls into the JVM stays in the thread that calls serve().
"""
import collections
import contextlib
import gc
import json
import math
import os
import re
import select
import socket
import stat
import struct
import sys
import threading
import time
import traceback

PROTOCOL = 2
LINE_MAX = 65536
RESULTS_MAX = 100   # of trials that are done, to be told again
ERROR_MAX = 1000    # characters of a failed trial's reason
SEND_S = 10         # a driver that reads nothing for so long is cut off
JVM_CHECK_S = 1.0
ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def open(sc):  # pylint: disable=redefined-builtin
    """The session that spark-submit's spark.pipetune.session asks for; None when it asks for none."""
    path = sc.getConf().get("spark.pipetune.session")
    if path == "-":  # on another host, which knows where
        path = os.environ["PIPETUNE_SESSION"]
    return Session(sc, path) if path else None


def plain(text):
    """`text` as every JSON parser takes it: no lone surrogates, no NUL."""
    return str(text).encode("utf-8", "replace").decode("utf-8").replace("\0", "?")


def to_line(message):
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def path_or_none(text):
    if text is not None and not isinstance(text, str):
        raise ValueError("a path is no text")
    return text


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


class Trial:
    """What to train. `hyper` is a dict by the names of the config; `epochs` is the number to have in the end, those before a
    resume included. `checkpoint` is a folder to write checkpoints to, `model` and `state` the files of a checkpoint to go
    on from; these three are None when there is none.

    A trial may be ended before its last epoch: `ends_after` is then the epoch at whose end it is to return, else None. An
    application that trains in a loop of its own looks at it after each epoch; one whose loop is elsewhere gives on_end()
    what tells it."""

    def __init__(self, words, tell):
        if not isinstance(words["id"], str) or not ID.match(words["id"]):
            raise ValueError("a run without an id")
        if not isinstance(words["hyper"], dict) or not is_whole(words["epochs"]) or not is_whole(words["seed"]):
            raise ValueError("a run without hyperparameters, epochs or seed")
        self.id = words["id"]
        self.hyper = words["hyper"]
        self.epochs = words["epochs"]
        self.seed = words["seed"]
        self.checkpoint, self.model, self.state = (path_or_none(words.get(k)) for k in ("checkpoint", "model", "state"))
        self._tell = tell
        self._told = {}  # epoch -> its metrics
        self._ending = threading.Lock()  # guards the two below
        self._end = None
        self._on_end = None

    @property
    def ends_after(self):
        """None, or the epoch at whose end no more of it is wanted."""
        return self._end

    def on_end(self, call):
        """Has call(epoch) called, in another thread, when the trial is to end with that epoch; at once where that is known."""
        with self._ending:
            self._on_end = call
            known = self._end
        if known is not None:
            call(known)

    def end(self, epoch):
        """The driver's word. Where it cannot be done, the driver ends the session."""
        with self._ending:
            call = self._on_end if self._end is None else None
            self._end = self._end or epoch
        if call:
            try:
                call(epoch)
            except Exception:  # of the application, or of its JVM
                traceback.print_exc()

    def metric(self, name, value, epoch=None):
        """Tells the driver a figure of an epoch (None: of the last). What is no finite number is left out."""
        value = float(value)
        if not math.isfinite(value):
            return
        epoch = self.epochs if epoch is None else int(epoch)
        if epoch < 1:
            raise ValueError(f"epochs begin with 1, not {epoch}")
        metrics = dict(self._told.get(epoch, {}))
        metrics[plain(name)] = value
        message = self._message(epoch, metrics)
        if len(to_line(message)) > LINE_MAX:
            raise ValueError("too many metrics for one epoch")
        self._told[epoch] = metrics  # before it is told: another driver may ask at any time
        self._tell(message)

    def _message(self, epoch, metrics):
        return {"epoch": {"id": self.id, "epoch": epoch, "metrics": metrics}}

    def messages(self):
        """All epochs told so far."""
        return [self._message(epoch, metrics) for epoch, metrics in sorted(self._told.copy().items())]


def reason_of(error):
    """One line: of an exception in the JVM its deepest cause, else the last line of Python's own words."""
    java = getattr(error, "java_exception", None)
    if java is None:
        lines = traceback.format_exception_only(type(error), error)[-1].strip().splitlines()
        return lines[-1] if lines else type(error).__name__
    for _ in range(20):
        cause = java.getCause()
        if cause is None:
            break
        java = cause
    return java.toString().split("\n")[0]


class Session:
    def __init__(self, sc, path):
        self._sc = sc
        self._path = path
        self._wait_s = float(os.environ.get("PIPETUNE_SESSION_WAIT_S", "600"))
        self._changed = threading.Condition()  # guards everything below
        self._peer = None                      # the driver
        self._received = b""
        self._alone_since = time.monotonic()
        self._current = None                   # the trial that trains
        self._next = None                      # the one to train
        self._results = collections.OrderedDict()  # id -> its messages, the oldest first
        self._stopping = False

    def serve(self, train_one):
        """Trains trial after trial until the driver says stop, or none has come for ten minutes."""
        hello = {"protocol": PROTOCOL, "app_id": plain(self._sc.applicationId)[:64], "pid": os.getpid()}
        kept = set(self._persisted().keySet())
        listener = self._bind()
        try:
            threading.Thread(target=self._listen, args=(listener, hello), name="pipetune-session", daemon=True).start()
            while True:
                trial = self._wait_for_trial()
                if trial is None:
                    break
                self._train(train_one, trial, kept)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)

    # ---- training: the caller's thread ------------------------------------------------------------------------------

    def _wait_for_trial(self):
        while True:
            with self._changed:
                if not (self._stopping or self._next):
                    self._changed.wait(min(JVM_CHECK_S, self._wait_s))
                if self._stopping:
                    return None
                if self._next:
                    self._current, self._next = self._next, None
                    return self._current
                if self._peer is None and time.monotonic() - self._alone_since >= self._wait_s:
                    return None
            self._check_jvm()

    def _check_jvm(self):
        try:
            stopped = self._sc._jsc.sc().isStopped()
        except Exception as error:  # py4j has several words for a JVM that is not there
            raise SystemExit(f"pipetune_session: the JVM is gone: {error}") from error
        if stopped:
            raise SystemExit("pipetune_session: the SparkContext was stopped")

    def _train(self, train_one, trial, kept):
        self._say(f"PIPETUNE trial {trial.id} begin")
        error = None
        try:
            train_one(trial)
        except (Exception, SystemExit) as caught:  # argparse ends a program where it should complain
            self._check_jvm()  # what killed the JVM is no fault of the trial
            error = plain(reason_of(caught))[:ERROR_MAX]
            self._say(traceback.format_exc().rstrip("\n"))
        self._clean(kept)
        self._say(f"PIPETUNE trial {trial.id} end")
        with self._changed:
            self._current = None
            self._results[trial.id] = trial.messages() + [
                {"done": {"id": trial.id, "ok": error is None, "error": error}}]
            while len(self._results) > RESULTS_MAX:
                self._results.popitem(last=False)
            self._alone_since = time.monotonic()
            self._send(self._results[trial.id][-1])

    def _say(self, text):
        """Into the log, in order with the JVM's own lines: by its stream, since Python's arrives by another thread."""
        # A blank line first: whatever stands there without a line's end must not swallow a mark.
        self._sc._jvm.java.lang.System.err.print("\n" + plain(text) + "\n")

    def _persisted(self):
        return self._sc._jsc.getPersistentRDDs()

    def _clean(self, kept):
        """Each training leaves some persisted RDDs behind, which only we know to be nobody's."""
        persisted = self._persisted()
        for number in list(persisted.keySet()):
            if number not in kept:
                persisted.get(number).unpersist(False)
        gc.collect()  # py4j keeps what Python still names

    # ---- the socket -------------------------------------------------------------------------------------------------

    def _bind(self):
        folder = os.path.dirname(self._path)
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) != 0o700:
            raise PermissionError(f"'{folder}' is no folder of yours with mode 0700")
        if os.path.lexists(self._path) and stat.S_ISSOCK(os.lstat(self._path).st_mode):
            os.unlink(self._path)  # of a session that was killed
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self._path)
        os.chmod(self._path, 0o600)
        listener.listen(4)
        return listener

    def _listen(self, listener, hello):
        while True:
            try:
                ready, _, _ = select.select([s for s in (listener, self._peer) if s is not None], [], [], 1.0)
                if listener in ready:
                    self._accept(listener, hello)
                elif ready:
                    self._receive()
            except (OSError, ValueError):  # the other thread has just cut the driver off, or descriptors are short
                time.sleep(0.05)

    def _accept(self, listener, hello):
        peer, _ = listener.accept()
        _, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        if uid != os.geteuid():
            self._complain("another user knocked")
            peer.close()
            return
        peer.settimeout(SEND_S)
        with self._changed:
            self._drop()  # the old driver is gone, or hangs: the new one holds the study's lock
            self._peer = peer
            self._send({"hello": dict(hello, busy=self._current.id if self._current else None)})

    def _drop(self):
        """Under the lock. A trial that has not begun goes with the driver that wanted it."""
        if self._peer is not None:
            self._peer.close()
        self._peer, self._received, self._next = None, b"", None
        self._alone_since = time.monotonic()

    def _send(self, message):
        """Under the lock."""
        if self._peer is None:
            return
        try:
            self._peer.sendall(to_line(message))
        except OSError:
            self._drop()

    def _tell(self, message):
        with self._changed:
            self._send(message)

    def _receive(self):
        with self._changed:
            if self._peer is None:
                return
            try:
                got = self._peer.recv(LINE_MAX)
            except OSError:
                got = b""
            self._received += got
            *lines, self._received = self._received.split(b"\n")
            try:
                for line in lines:
                    self._hear(line)
                if len(self._received) >= LINE_MAX:
                    raise ValueError("a line without an end")
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                self._complain(f"the driver speaks nonsense: {error!r}")
                got = b""
            if not got:
                self._drop()

    def _hear(self, line):
        if len(line) >= LINE_MAX:
            raise ValueError("a line that is too long")
        message = json.loads(line.decode("utf-8", "surrogateescape"))  # a path is any bytes
        if "run" in message:
            self._run(Trial(message["run"], self._tell))
        elif "end" in message:
            self._end(message["end"]["id"], message["end"]["epoch"])
        elif "stop" in message:
            self._stopping = True
            self._changed.notify_all()

    def _end(self, name, epoch):
        if not is_whole(epoch) or epoch < 1:
            raise ValueError("an end without an epoch")
        for trial in (self._current, self._next):
            if trial and trial.id == name:
                trial.end(epoch)

    def _run(self, trial):
        if trial.id in self._results:
            for message in list(self._results[trial.id]):
                self._send(message)
            return
        if self._current and self._current.id == trial.id:
            for message in self._current.messages():
                self._send(message)
            return
        if self._current or self._next:
            busy = (self._current or self._next).id
            self._send({"done": {"id": trial.id, "ok": False, "error": f"the session is busy with trial {busy}"}})
            return
        self._next = trial
        self._changed.notify_all()

    @staticmethod
    def _complain(text):
        print(f"pipetune_session: {text}", file=sys.stderr, flush=True)
