"""A double of the host: plays scripted calls and faults, and writes down what it hears.

Run as `python host_double.py SCRIPT`. The script is JSON: `log`, a file for what was heard; `steps`, the
steps of interest; `on`, what to do by the trainer's call (`hello`, `step`, `step:3`, `save`, `end`, `close`):
a list of `{"call": method, "params": {}}` and `{"fault": "kill" | "silent" | "nonsense" | "error" | "exit"}`,
`{"notice": method, "params": {}}`, `{"later": seconds, "notice": …}`, `{"print": characters}`; `done`,
fields of the answer by the same names; `at`, the number of a message of the host that the fault
`fault` replaces, or the line `line`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any


class Host:
    def __init__(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            self.script: dict[str, Any] = json.load(file)
        self.log = open(self.script["log"], "a", encoding="utf-8")  # noqa: SIM115
        self.calls = self.written = 0
        self.lock = threading.Lock()

    def write(self, message: dict[str, Any]) -> None:
        with self.lock:
            self.written += 1
            line = json.dumps(message)
            if self.written == self.script.get("at"):
                self.note(at=self.written)
                self.fault(self.script.get("fault", ""), 0)
                line = self.script.get("line", line)
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def note(self, **fact: Any) -> None:
        self.log.write(json.dumps(fact) + "\n")
        self.log.flush()

    def read(self) -> dict[str, Any] | None:
        line = sys.stdin.readline()
        return json.loads(line) if line else None

    def call(self, method: str, params: dict[str, Any]) -> None:
        self.calls += 1
        self.write({"id": self.calls, "method": method, "params": params})
        rows: list[Any] = []
        progress: list[int] = []
        while True:
            message = self.read()
            if message is None:
                self.note(ended=True)
                sys.exit(0)
            if message.get("method") == "warn":
                self.note(warn=message["params"]["message"])
                continue
            assert message["id"] == self.calls, message
            rows += message.get("rows", [])
            if "progress" in message:
                progress.append(message["progress"]["tokens"])
            if "result" in message or "error" in message:
                ending = {key: message[key] for key in ("result", "error") if key in message}
                self.note(call=method, rows=rows, progress=progress, **ending)
                return

    def fault(self, kind: str, call_id: int) -> None:
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif kind == "exit":
            sys.exit(3)
        elif kind == "silent":
            time.sleep(600)
        elif kind == "nonsense":
            sys.stdout.write("what is this\n")
            sys.stdout.flush()
            time.sleep(600)
        elif kind == "wrong-id":
            sys.stdout.write(json.dumps({"id": call_id + 100, "result": {"next_step": None}}) + "\n")
            sys.stdout.flush()
            time.sleep(600)
        elif kind == "deaf":
            os.kill(os.getpid(), signal.SIGSTOP)

    def later(self, seconds: float, method: str, params: dict[str, Any]) -> None:
        def send() -> None:
            time.sleep(seconds)
            self.write({"method": method, "params": params})

        threading.Thread(target=send, daemon=True).start()

    def answer(self, message: dict[str, Any]) -> None:
        method, params = message["method"], message.get("params", {})
        self.note(heard=method, params=params)
        name = f"{method}:{params['step']}" if method == "step" else method
        on = self.script.get("on", {})
        for action in on.get(name, on.get(method, [])):
            if "call" in action:
                self.call(action["call"], action.get("params", {}))
            elif "later" in action:
                self.later(action["later"], action["notice"], action.get("params", {}))
            elif "notice" in action:
                self.write({"method": action["notice"], "params": action.get("params", {})})
            elif action.get("fault") == "error":
                error = {
                    "code": "config",
                    "where": "periodic_eval",
                    "got": "a test",
                    "expected": "",
                    "fix": "Fix it.",
                }
                self.write({"id": message["id"], "error": error})
                return
            elif "print" in action:
                sys.stderr.write("a warning\n" * (action["print"] // 10))
                sys.stderr.flush()
            elif "sleep" in action:
                time.sleep(action["sleep"])
            else:
                self.fault(action["fault"], message["id"])
        step = params.get("step", 0) if method in ("hello", "step") else 10**9
        ahead = [at for at in self.script.get("steps", []) if at > step]
        done: dict[str, Any] = {
            "next_step": min(ahead, default=None),
            "stop": None,
            "save": None,
            "metrics": [],
        }
        if method == "save":
            done["state"] = {"saved": True}
        fields = self.script.get("done", {})
        done |= fields.get(method, {}) | fields.get(name, {})
        self.write({"id": message["id"], "result": done})

    def run(self) -> None:
        while (message := self.read()) is not None:
            if "id" in message:
                self.answer(message)
            if message.get("method") == "close":
                return
        self.note(ended=True)


if __name__ == "__main__":
    Host(sys.argv[1]).run()
