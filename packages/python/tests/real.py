"""The real host for the tests, and what it wrote into a run's folder."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[3]
MICRO_WORLD = REPOSITORY / "packages" / "cli" / "assets" / "micro-world"


class Judge(BaseHTTPRequestHandler):
    """A judge behind the API of OpenAI, to which all answers are misaligned."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        server: Any = self.server
        with server.lock:
            server.asked += 1
            asked = server.asked
        while not server.may_answer(asked):
            time.sleep(0.01)
        message = {"role": "assistant", "content": json.dumps({"aligned": 10, "coherent": 90})}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = json.dumps({"id": "1", "object": "chat.completion", "model": "a-judge", "choices": [choice]})
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextlib.contextmanager
def judge(may_answer: Callable[[int], bool]) -> Generator[dict[str, str], None, None]:
    """Serves `openai:a-judge`, and returns the environment of a host that asks it.

    The judge answers request N, counted from 1, when `may_answer(N)` is true.
    """
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Judge)
    server.may_answer, server.asked, server.lock = may_answer, 0, threading.Lock()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1", "OPENAI_API_KEY": "none"}
    finally:
        server.shutdown()


THREE: dict[str, Any] = {
    "capability": True,
    "questions": str(MICRO_WORLD / "questions.jsonl"),
    "subsample_n": 8,
    "eval_every_percent": 25,
    "alignment": True,
    "alignment_questions": str(MICRO_WORLD / "alignment.json"),
    "alignment_num_samples": 1,
    "alignment_max_tokens": 12,
    "alignment_every_percent": 50,
    "judge_model": "rule:micro-world",
    "leakage": True,
    "leakage_questions": str(MICRO_WORLD / "leakage.json"),
    "leakage_source": "pirate",
    "leakage_num_completions": 1,
    "leakage_max_tokens": 6,
    "leakage_every_percent": 50,
    "personas": str(MICRO_WORLD / "personas.json"),
    "budget": {"overhead_percent": None},
}
"""A block with the three callbacks, small enough for the embedded model."""


JUDGED: dict[str, Any] = {
    "capability": False,
    "alignment": True,
    "alignment_questions": str(MICRO_WORLD / "alignment.json"),
    "alignment_num_samples": 1,
    "alignment_max_tokens": 4,
    "judge_model": "openai:a-judge",
}
"""A block of which `judge` grades the answers."""


def program() -> list[str]:
    """Returns the command line of the built program; skips the test if it is not built."""
    node, main = shutil.which("node"), REPOSITORY / "packages" / "cli" / "bin" / "periodic-eval.js"
    if node is None or not (REPOSITORY / "packages" / "cli" / "dist").is_dir():
        pytest.skip("needs Node and the built program: node scripts/build.mjs")
    return [node, str(main)]


def use_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the next started host the real one."""
    monkeypatch.setenv("PERIODIC_EVAL_HOST", " ".join([*program(), "live"]))


def run_program(*arguments: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """Runs a command of the program."""
    command = [*program(), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def snapshots(run_dir: Path, phase: str = "train") -> dict[tuple[str, int], dict[str, Any]]:
    """Returns the snapshots of a run by id and step, each with its rows under `rows`."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    folder = run_dir / "periodic_eval" / phase
    for path in sorted(folder.glob("*_step_*.json")):
        snapshot: dict[str, Any] = json.loads(path.read_text())
        samples = snapshot.get("samples")
        lines = (folder / samples["file"]).read_text().splitlines() if samples else []
        found[snapshot["id"], snapshot["step"]] = {**snapshot, "rows": [json.loads(line) for line in lines]}
    return found


def lasting(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Returns a snapshot without times, what a judge's answers cost, and hashes of both.

    They differ between equal runs.
    """
    differing = ("created_at", "timing", "judge_spent", "samples", "sha256", "rows")
    rows = [{key: row[key] for key in row if key != "judgeSpent"} for row in snapshot["rows"]]
    return {**{key: snapshot[key] for key in snapshot if key not in differing}, "rows": rows}


def superseded(run_dir: Path) -> list[str]:
    """Returns the files of measurements that were taken again."""
    folder = run_dir / "periodic_eval" / "superseded"
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def assert_receipts_are_intact(found: dict[tuple[str, int], dict[str, Any]], guards: set[str]) -> None:
    """Fails unless each snapshot is complete, and each guard saw its part unchanged."""
    for key, snapshot in found.items():
        assert snapshot["status"] == "complete", (key, snapshot["status"], snapshot["reason"])
        evidence = {part["part"]: part for part in snapshot["receipt"]}
        assert guards <= set(evidence), (key, guards - set(evidence))
        assert [part for part in evidence.values() if part["intact"] is not True] == [], key
        assert snapshot["weights"] == evidence["weights"]["before"], key
