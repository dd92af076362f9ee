"""Faults of the host, and trainings of unusual kinds: each goes on as without measuring, or never begins."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from test_loop import Loop, is_same, twin

import periodic_eval.connection as connection

STEPS = 3
NONSENSE = {
    "bytes": "\u0000\u0001what is this",
    "list": "[1, 2]",
    "deep": "[" * 100_000,
    "no-fields": "{}",
    "call-without-id": '{"id": "a", "method": "encode", "params": {}}',
    "call-with-a-list": '{"id": 1, "method": "encode", "params": [1]}',
    "result-5": '{"id": 1, "result": 5}',
    "other-call": '{"id": 99, "result": {"next_step": 1}}',
}


@cache
def expected() -> Loop:
    return twin(STEPS)


def warnings_of(caplog: Any) -> list[str]:
    found = [record.getMessage() for record in caplog.records]
    return [message for message in found if "Measuring ends, and training goes on" in message]


def faulty(host: Any, window: Any, **fault: Any) -> Any:
    return host(steps=[2], on={"hello": window, "step:2": window, "end": window}, **fault)


def messages_of(host: Any, window: Any, folder: Path) -> int:
    """Returns how many messages the host of an undisturbed run writes."""
    script = faulty(host, window)
    Loop().measured(folder, STEPS)
    heard = [fact for fact in script.heard() if "heard" in fact or "call" in fact]
    script.log.unlink()
    return len(heard)


def assert_goes_on(folder: Path, caplog: Any, what: Any) -> str:
    """Fails unless a run equals its twin, and abandoned the host once. Returns the warning."""
    caplog.clear()
    loop = Loop()
    loop.measured(folder, STEPS)
    assert is_same(loop, expected()), what
    assert loop.model.training, what
    found = warnings_of(caplog)
    assert len(found) == 1, (what, found)
    assert f"`periodic-eval report {folder}` shows what was measured" in found[0], what
    return found[0]


@pytest.mark.parametrize("fault", ["kill", "nonsense", "exit"])
def test_goes_on_when_the_host_fails_at_any_message(
    host: Any, window: Any, tmp_path: Path, caplog: Any, fault: str
) -> None:
    count = messages_of(host, window, tmp_path)
    assert count == 21
    for at in range(1, count + 1):
        faulty(host, window, at=at, fault=fault)
        assert_goes_on(tmp_path, caplog, (fault, at))


@pytest.mark.parametrize("fault", ["silent", "deaf"])
@pytest.mark.parametrize(
    "messages", [(3, 6, 14, 21), pytest.param(range(1, 22), marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_goes_on_when_the_host_is_silent_from_any_message(
    host: Any, window: Any, tmp_path: Path, caplog: Any, monkeypatch: Any, fault: str, messages: Any
) -> None:
    monkeypatch.setattr(connection, "SILENCE_SECONDS", 1.0)
    for at in messages:
        faulty(host, window, at=at, fault=fault)
        warning = assert_goes_on(tmp_path, caplog, (fault, at))
        assert "it was silent for 1 seconds" in warning


@pytest.mark.parametrize("kind", NONSENSE)
def test_goes_on_when_the_host_writes_nonsense(
    host: Any, window: Any, tmp_path: Path, caplog: Any, monkeypatch: Any, kind: str
) -> None:
    monkeypatch.setattr(connection, "SILENCE_SECONDS", 3.0)
    for at in (1, 8, 21):
        faulty(host, window, at=at, line=NONSENSE[kind])
        assert_goes_on(tmp_path, caplog, (kind, at))


@pytest.mark.parametrize(
    "fields",
    [
        {"next_step": "soon"},
        {"next_step": -1},
        {"next_step": True},
        {"stop": 5},
        {"save": ["now"]},
        {"metrics": {"step": 1}},
        {"metrics": [5]},
        {"metrics": [{"step": 1}]},
        {"metrics": [{"step": 1, "values": {"a": "0.5"}}]},
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["hello", "step"])
def test_goes_on_when_an_answer_has_a_wrong_field(
    host: Any, tmp_path: Path, caplog: Any, method: str, fields: Any
) -> None:
    host(steps=[2], done={method: fields})
    assert f"it answered {method} with" in assert_goes_on(tmp_path, caplog, fields)


CALLS: list[tuple[str, Any, str]] = [
    ("enter", {}, "model"),
    ("enter", {"seed": 5}, "model"),
    ("encode", {"texts": 5, "special_tokens": True}, "model"),
    ("encode", {"texts": [5], "special_tokens": True}, "model"),
    ("decode", {"rows": [["a"]], "special_tokens": True}, "model"),
    ("render", {"chats": [{"messages": 5}], "ending": "complete"}, "data"),
    ("log_likelihoods", {"on": "model"}, "model"),
    ("log_likelihoods", {"on": "model", "rows": [{"context": [5], "continuation": [10**6]}]}, "data"),
    ("log_likelihoods", {"on": "model", "rows": [{"context": [-1], "continuation": [5]}]}, "data"),
    ("log_likelihoods", {"on": "model", "rows": [{"context": ["a"], "continuation": [5]}]}, "model"),
    ("log_likelihoods", {"on": "base", "rows": [{"context": [5], "continuation": [5]}]}, "model"),
    ("next_token", {"on": "model", "rows": [[5]], "candidates": [[1024]]}, "data"),
    ("next_token", {"on": "model", "rows": [[5], [6]], "candidates": [[7]]}, "model"),
    ("generate", {"on": "model", "rows": [{"prompt": [1024], "max_new_tokens": 2, "seed": ""}]}, "data"),
    ("generate", {"on": "model", "rows": [{"prompt": [5]}]}, "model"),
    ("hidden_states", {"on": "model", "rows": [{"ids": [5], "from": 0}], "layers": [99]}, "data"),
    ("save_checkpoint", {}, "model"),
]


def test_answers_calls_with_wrong_parameters_by_an_error(host: Any, tmp_path: Path, caplog: Any) -> None:
    calls = [{"call": method, "params": params} for method, params, _ in CALLS]
    script = host(steps=[2], on={"hello": calls, "step:2": calls})
    loop = Loop()
    loop.measured(tmp_path, STEPS)
    assert is_same(loop, twin(STEPS))
    assert warnings_of(caplog) == []
    codes = [(fact["call"], fact.get("error", {}).get("code")) for fact in script.heard() if "call" in fact]
    assert codes == [(method, code) for method, _, code in CALLS] * 2
