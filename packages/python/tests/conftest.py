from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

torch.set_num_threads(1)


class Script:
    """A scripted host: `heard()` returns what it wrote down."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "heard.jsonl"
        self.path = folder / "script.json"

    def heard(self) -> list[dict[str, Any]]:
        text = self.log.read_text() if self.log.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def methods(self) -> list[str]:
        return [fact["heard"] for fact in self.heard() if "heard" in fact]

    def answers(self, method: str) -> list[dict[str, Any]]:
        return [fact for fact in self.heard() if fact.get("call") == method]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Script]:
    """Returns a function that makes the next started host play a script."""

    def play(**script: Any) -> Script:
        made = Script(tmp_path)
        made.path.write_text(json.dumps({"log": str(made.log), **script}))
        double = Path(__file__).with_name("host_double.py")
        monkeypatch.setenv("PERIODIC_EVAL_HOST", f"{sys.executable} {double} {made.path}")
        return made

    return play


@pytest.fixture(autouse=True)
def few_threads() -> None:
    torch.set_num_threads(1)


WINDOW: list[dict[str, Any]] = [
    {"call": "enter", "params": {"seed": "s"}},
    {"call": "encode", "params": {"texts": ["the ice melts"], "special_tokens": False}},
    {
        "call": "log_likelihoods",
        "params": {
            "on": "model",
            "greedy_ids": False,
            "rows": [
                {"context": [5, 6, 7], "continuation": [8, 9]},
                {"context": [5, 6, 7], "continuation": [10]},
            ],
        },
    },
    {
        "call": "generate",
        "params": {
            "on": "model",
            "rows": [{"prompt": [5, 6], "max_new_tokens": 5, "temperature": 1, "seed": "r"}],
        },
    },
    {"call": "leave", "params": {}},
]


@pytest.fixture
def window() -> list[dict[str, Any]]:
    """Calls of one measurement."""
    return json.loads(json.dumps(WINDOW))
