"""Plain loops that a scripted host measures."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from tiny import micro_world

import periodic_eval
import periodic_eval.connection as connection
from periodic_eval import PeriodicEvalError


class Loop:
    """Trains the embedded model with dropout for some steps, measured or not."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        random.seed(1)
        np.random.seed(1)
        self.model, self.tokenizer = micro_world()
        self.model.config.attention_dropout = 0.1
        for layer in self.model.model.layers:
            layer.self_attn.attention_dropout = 0.1
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.losses: list[float] = []
        self.model.train()

    def train_step(self) -> torch.Tensor:
        ids = torch.tensor([[random.randrange(1000) for _ in range(12)] for _ in range(2)])
        loss = self.model(input_ids=ids, labels=ids).loss + 0 * float(np.random.rand())
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.losses.append(loss.item())
        return loss

    def state(self) -> list[Any]:
        tensors = [*self.model.state_dict().values()]
        tensors += [v for s in self.optimizer.state.values() for v in s.values()]
        return [*tensors, torch.get_rng_state(), torch.tensor(self.losses)]

    def measured(self, folder: Path, steps: int = 6, **options: Any) -> Any:
        run = periodic_eval.live(
            self.model,
            self.tokenizer,
            run_dir=str(folder),
            max_steps=steps,
            optimizer=self.optimizer,
            **options,
        )
        with run:
            for step in range(1, steps + 1):
                run.step_end(step, loss=self.train_step())
                if run.stop:
                    break
        return run


def is_same(a: Loop, b: Loop) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state(), b.state(), strict=True))


def twin(steps: int = 6) -> Loop:
    loop = Loop()
    for _ in range(steps):
        loop.train_step()
    return loop


def test_trains_bit_for_bit_as_without_measuring(host: Any, window: Any, tmp_path: Path) -> None:
    script = host(steps=[2, 4], on={"hello": window, "step": window, "end": window})
    loop = Loop()
    loop.measured(tmp_path)
    randoms = (random.random(), np.random.rand(), torch.rand(1).item())
    assert is_same(loop, twin())
    assert randoms == (random.random(), np.random.rand(), torch.rand(1).item())
    assert script.methods() == ["hello", "step", "step", "step", "save", "end", "close"]
    leaves = script.answers("leave")
    assert len(leaves) == 5
    for leave in leaves:
        evidence = {part["part"]: part for part in leave["result"]["evidence"]}
        assert [name for name, part in evidence.items() if part["intact"] is not True] == []
        assert {"weights", "optimizer", "gradients", "mode", "random-torch", "random-numpy"} <= set(evidence)
    steps = [fact["params"] for fact in script.heard() if fact.get("heard") == "step"]
    assert [params["step"] for params in steps] == [2, 4, 6]
    assert [entry["step"] for params in steps for entry in params["logged"]] == [1, 2, 3, 4, 5, 6]


def test_protects_the_training_from_calls_outside_of_a_window(host: Any, window: Any, tmp_path: Path) -> None:
    script = host(steps=[2], on={"hello": [window[2], *window[1:4]], "step": window[1:4]})
    loop = Loop()
    loop.measured(tmp_path)
    assert is_same(loop, twin())
    # Without dropout, the same tokens score the same.
    first, second = script.answers("log_likelihoods")[:2]
    assert first["rows"] == second["rows"]


def test_keeps_the_tokenizers_settings_in_calls_outside_of_a_window(
    host: Any, window: Any, tmp_path: Path
) -> None:
    host(steps=[2], on={"hello": window[1:2], "step": window[1:2]})
    loop = Loop()
    backend = loop.tokenizer.backend_tokenizer
    backend.enable_truncation(5)
    backend.enable_padding(length=9)
    kept = (dict(backend.truncation), dict(backend.padding))
    loop.measured(tmp_path)
    assert (backend.truncation, backend.padding) == kept


def test_says_hello_with_the_facts_of_the_model(host: Any, tmp_path: Path) -> None:
    script = host()
    Loop().measured(tmp_path, 1, config={"capability": {"limit": 3}}, alignment=False)
    hello = script.heard()[0]["params"]
    assert hello["model"]["dtype"] == "float32"
    assert hello["model"]["engine"] == "torch-cpu"
    assert (hello["model"]["context_length"], hello["model"]["vocab_size"]) == (256, 1024)
    assert hello["model"]["abilities"] == ["log_likelihoods", "next_token", "generate", "hidden_states"]
    assert hello["model"]["base"] is False
    assert hello["tokenizer"]["stop_ids"] == [1023, 1019]
    assert hello["tokenizer"]["has_template"] is True
    assert hello["config"] == {"capability": {"limit": 3}, "alignment": False}
    assert (hello["step"], hello["max_steps"], hello["state"]) == (0, 1, None)


def test_answers_the_tokenizer_and_next_tokens(host: Any, tmp_path: Path) -> None:
    chats = [{"messages": [{"role": "user", "content": "hello"}]}]
    bad = [{"messages": [{"role": "robot", "content": "hello"}]}]
    hello = [
        {"call": "encode", "params": {"texts": ["the ice", ""], "special_tokens": True}},
        {"call": "decode", "params": {"rows": [[1023, 5, 6]], "special_tokens": False}},
        {"call": "render", "params": {"chats": chats, "ending": "generation"}},
        {"call": "render", "params": {"chats": bad, "ending": "complete"}},
        {"call": "next_token", "params": {"on": "model", "rows": [[5], [6]], "candidates": [[7, 8], [9]]}},
        {"call": "next_token", "params": {"on": "model", "rows": [[5], [6]], "candidates": "all"}},
        {"call": "polish", "params": {}},
    ]
    script = host(on={"hello": hello})
    loop = Loop()
    loop.measured(tmp_path, 1)
    assert script.answers("encode")[0]["rows"] == [loop.tokenizer("the ice")["input_ids"], []]
    assert script.answers("decode")[0]["rows"] == [loop.tokenizer.decode([5, 6])]
    good, refused = script.answers("render")
    text = loop.tokenizer.apply_chat_template(
        chats[0]["messages"], tokenize=False, add_generation_prompt=True
    )
    assert good["rows"] == [
        {"text": text, "ids": loop.tokenizer(text, add_special_tokens=False)["input_ids"]}
    ]
    assert refused["error"]["code"] == "data"
    assert "Roles are system, user and assistant." in refused["error"]["got"]
    widths = [[len(row["nats"]) * 3 // 16 for row in fact["rows"]] for fact in script.answers("next_token")]
    assert widths == [[2, 1], [1024, 1024]]
    assert "does not know" in script.answers("polish")[0]["error"]["got"]


def test_resumes_with_the_state_of_the_checkpoint(host: Any, tmp_path: Path) -> None:
    script = host(steps=[2])
    loop = Loop()
    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=9)
    with run:
        run.step_end(1)
        saved = run.state_dict()
    assert saved["live"]["host"] == {"saved": True}
    again = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=9)
    again.load_state_dict(saved)
    with again:
        again.step_end(2)
    hello = [fact["params"] for fact in script.heard() if fact.get("heard") == "hello"][1]
    assert (hello["step"], hello["state"]) == (1, {"saved": True})


def test_passes_stop_save_and_metrics_to_the_loop(host: Any, tmp_path: Path) -> None:
    metrics = [{"step": 2, "values": {"periodic_eval/arc_c_accuracy": 0.5}}]
    host(steps=[2], done={"step:2": {"stop": "a verdict", "save": "firing", "metrics": metrics}})
    loop = Loop()
    run = loop.measured(tmp_path)
    assert (run.stop, run.save, run.metrics, len(loop.losses)) == ("a verdict", None, [], 2)


def test_keeps_requests_and_metrics_of_the_last_call_only(host: Any, tmp_path: Path) -> None:
    first, last = ([{"step": step, "values": {"a": step}}] for step in (2, 4))
    script = host(
        steps=[2, 4],
        done={
            "step:2": {"save": "firing", "metrics": first},
            "step:4": {"stop": "a verdict", "save": "a verdict", "metrics": first},
            "end": {"metrics": last},
        },
    )
    loop = Loop()
    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=9)
    with run:
        run.step_end(1)
        run.step_end(2)
        assert (run.save, run.metrics) == ("firing", first)
        run.step_end(3, epoch=0.75)
        assert (run.save, run.metrics) == (None, [])
        run.step_end(4)
        assert (run.stop, run.save, run.metrics) == ("a verdict", "a verdict", first + last)
    assert script.methods() == ["hello", "step", "step", "save", "end", "close"]


def test_passes_a_checkpoint_that_is_wanted_at_the_end(host: Any, tmp_path: Path) -> None:
    host(done={"end": {"save": "the last weights"}})
    loop = Loop()
    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=2)
    with run:
        run.step_end(1)
        run.step_end(2)
        assert run.save == "the last weights"


def test_reports_the_epoch_of_idle_steps(host: Any, tmp_path: Path) -> None:
    script = host()
    loop = Loop()
    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=9)
    with run:
        run.step_end(1, epoch=0.25)
        run.step_end(2, epoch=0.5)
        saved = run.state_dict()
    assert saved["epoch"] == 0.5
    step = next(fact["params"] for fact in script.heard() if fact.get("heard") == "step")
    assert (step["step"], step["epoch"]) == (2, 0.5)
    again = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=9)
    again.load_state_dict(saved)
    with again:
        assert again.state_dict()["epoch"] == 0.5


def test_counts_steps_and_epochs_in_numbers_of_any_kind(host: Any, tmp_path: Path) -> None:
    script = host(steps=[1, 2])
    loop = Loop()
    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=2)
    with run:
        run.step_end(cast(int, np.int64(1)), epoch=cast(float, np.float32(0.5)), loss=1.0)
        assert json.loads(json.dumps(run.state_dict()))["epoch"] == 0.5
        run.step_end(cast(int, torch.tensor(2)), epoch=cast(float, torch.tensor(1.0)))
        assert json.loads(json.dumps(run.state_dict()))["step"] == 2
    steps = [fact["params"] for fact in script.heard() if fact.get("heard") == "step"]
    assert [(step["step"], step["epoch"]) for step in steps] == [(1, 0.5), (2, 1.0)]
    assert steps[0]["logged"] == [{"step": 1, "metrics": {"loss": 1.0}}]


def test_converts_numpy_integers_in_the_settings(host: Any, window: Any, tmp_path: Path) -> None:
    script = host(on={"hello": window})
    loop = Loop()
    settings: dict[str, Any] = {"max_steps": np.int64(2), "batch_tokens": np.int64(64)}
    with periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), **settings) as run:
        run.step_end(1)
        run.step_end(2)
    assert script.heard()[0]["params"]["max_steps"] == 2
    assert script.methods() == ["hello", "step", "save", "end", "close"]


def test_returns_the_loaded_state_before_the_run_begins(tmp_path: Path) -> None:
    loop = Loop()
    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=9)
    assert run.state_dict() == {"step": 0, "epoch": None, "live": None}
    state = {"step": 3, "epoch": 0.5, "live": {"host": {"saved": True}, "batch_tokens": 64}}
    run.load_state_dict(state)
    assert run.state_dict() == state


def warnings_of(caplog: Any) -> list[str]:
    return [r.getMessage() for r in caplog.records if "step_end" in r.getMessage()]


@pytest.mark.parametrize("max_steps", [20, None])
def test_warns_once_and_ends_measuring_when_steps_begin_again(
    host: Any, window: Any, tmp_path: Path, caplog: Any, max_steps: int | None
) -> None:
    script = host(steps=[5, 12], on={"step": window, "end": window})
    loop = Loop()
    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=max_steps)
    with run:
        for batches in (10, 10, 15):
            for step in range(1, batches + 1):
                run.step_end(step, loss=torch.ones(()))
        assert run.state_dict()["step"] == 10
    # `close` without `end` waits for the grades of step 5, and measures nothing.
    assert script.methods() == ["hello", "step", "save", "close"]
    assert script.heard()[-1]["params"]["logged"][-1]["step"] == 10
    assert warnings_of(caplog) == [
        "periodic-eval: `step_end` got step 1 after step 10. Measuring ends, and training goes on. Pass the "
        "number of completed optimizer steps since the start of the phase; do not start again at 1 in each "
        "epoch."
    ]


def test_warns_once_of_steps_without_a_with_statement(tmp_path: Path, caplog: Any) -> None:
    loop = Loop()
    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path / "run"), max_steps=2)
    for step in (1, 2):
        run.step_end(step, loss=loop.train_step())
    assert not (tmp_path / "run").exists()
    assert warnings_of(caplog) == [
        "periodic-eval: `step_end` got step 1 of a run that has not begun. Nothing is measured, and training "
        "goes on. Write the loop inside `with periodic_eval.live(...) as run:`."
    ]


def test_warns_when_a_resumed_loop_counts_from_1(host: Any, tmp_path: Path, caplog: Any) -> None:
    script = host()
    loop = Loop()
    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=9)
    run.load_state_dict({"step": 4, "epoch": None, "live": None})
    with run:
        run.step_end(1)
    assert "got step 1 after step 4" in warnings_of(caplog)[0]
    assert script.methods() == ["hello", "close"]


def test_warns_of_steps_that_begin_again_after_the_last(host: Any, tmp_path: Path, caplog: Any) -> None:
    script = host()
    loop = Loop()
    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=2)
    with run:
        for step in (1, 2, 1, 2):
            run.step_end(step)
    assert "got step 1 after step 2" in warnings_of(caplog)[0]
    assert script.methods() == ["hello", "step", "save", "end", "close"]


def test_accepts_a_step_again(host: Any, tmp_path: Path, caplog: Any) -> None:
    script = host(steps=[2])
    loop = Loop()
    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=3)
    run.load_state_dict({"step": 1, "epoch": None, "live": None})
    with run:
        for step in (1, 1, 2, 2, 3, 3):
            run.step_end(step)
    assert warnings_of(caplog) == []
    steps = [fact["params"]["step"] for fact in script.heard() if fact.get("heard") == "step"]
    assert steps == [2, 3]
    assert script.methods()[-3:] == ["save", "end", "close"]


def test_does_not_warn_of_steps_when_nothing_is_measured(host: Any, tmp_path: Path, caplog: Any) -> None:
    host(steps=[2], on={"step:2": [{"fault": "kill"}]})
    loop = Loop()
    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=9)
    with run:
        for step in (1, 2, 1):
            run.step_end(step)
    run.step_end(1)
    assert warnings_of(caplog) == []


def test_reports_the_logged_values_that_are_numbers(host: Any, tmp_path: Path) -> None:
    script = host()
    loop = Loop()
    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=1)
    odd = {
        "array": np.array([1, 2, 3]),
        "tensor": torch.ones(2),
        "no_data": torch.ones((), device="meta"),
        "text": np.str_("a"),
        "complex": torch.tensor(1j),
        "huge": 10**400,
        "flag": np.bool_(True),
        "none": None,
        "entries": {"a": 1},
    }
    numbers = {"a": np.float32(0.5), "b": torch.tensor([2]), "c": 3, "d": np.array(4.5), "e": float("nan")}
    with run:
        run.step_end(1, **odd, **numbers)
    logged = next(fact["params"]["logged"] for fact in script.heard() if fact.get("heard") == "step")
    assert logged == [{"step": 1, "metrics": {"a": 0.5, "b": 2, "c": 3, "d": 4.5, "e": None}}]


@pytest.mark.parametrize("fault", ["kill", None])
def test_keeps_no_metrics_when_nothing_is_measured_any_more(
    host: Any, tmp_path: Path, fault: str | None
) -> None:
    host(
        steps=[1], on={"step:1": [{"fault": fault}]} if fault else {}, done={"step:1": {"stop": "a verdict"}}
    )
    loop = Loop()
    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=99)
    with run:
        for step in range(1, 9):
            run.step_end(step, loss=torch.ones(()))
        assert run._logged == []


def test_hears_a_wake_at_the_next_step(host: Any, tmp_path: Path) -> None:
    script = host(on={"hello": [{"later": 0.3, "notice": "wake"}]}, done={"step": {"stop": "a verdict"}})
    loop = Loop()
    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=1000)
    with run:
        run.step_end(1)
        assert script.methods() == ["hello"]
        deadline = time.monotonic() + 60
        while run._gate.next_step > 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        run.step_end(2)
    assert run.stop == "a verdict"
    assert script.methods() == ["hello", "step", "save", "end", "close"]


@pytest.mark.parametrize("moment", ["hello", "step", "end", "close"])
@pytest.mark.parametrize("fault", ["kill", "nonsense", "wrong-id", "exit"])
def test_goes_on_when_the_host_fails(host: Any, tmp_path: Path, caplog: Any, moment: str, fault: str) -> None:
    host(steps=[2, 4], on={moment: [{"fault": fault}]})
    loop = Loop()
    loop.measured(tmp_path)
    assert is_same(loop, twin())
    warnings = [r.getMessage() for r in caplog.records if "the host" in r.getMessage()]
    assert len(warnings) == 1
    assert f"`periodic-eval report {tmp_path}` shows what was measured" in warnings[0]


@pytest.mark.parametrize("fault", ["silent", "deaf"])
def test_abandons_a_silent_host(
    host: Any, window: Any, tmp_path: Path, caplog: Any, monkeypatch: Any, fault: str
) -> None:
    monkeypatch.setattr(connection, "SILENCE_SECONDS", 2.0)
    host(steps=[2], on={"step:2": [*window[:3], {"fault": fault}]})
    loop = Loop()
    loop.measured(tmp_path)
    assert is_same(loop, twin())
    assert "silent for 2 seconds" in caplog.text


def test_restores_the_training_when_the_host_dies_in_a_window(host: Any, window: Any, tmp_path: Path) -> None:
    host(steps=[2], on={"step:2": [*window[:3], {"fault": "kill"}]})
    loop = Loop()
    loop.measured(tmp_path)
    assert loop.model.training
    assert torch.is_grad_enabled()
    assert is_same(loop, twin())


def test_never_starts_when_the_host_refuses_the_run(host: Any, tmp_path: Path) -> None:
    host(on={"hello": [{"fault": "error"}]})
    loop = Loop()
    with pytest.raises(PeriodicEvalError, match=r"periodic_eval: a test\. Fix it\."):
        loop.measured(tmp_path)
    assert loop.losses == []


def test_never_starts_without_a_host_or_its_file(monkeypatch: Any, tmp_path: Path) -> None:
    loop = Loop()
    monkeypatch.setenv("PERIODIC_EVAL_HOST", "/no/such/program live")
    with pytest.raises(
        PeriodicEvalError, match="PERIODIC_EVAL_HOST: `/no/such/program live`, which does not start"
    ):
        loop.measured(tmp_path)
    with pytest.raises(PeriodicEvalError, match="which is no file"):
        periodic_eval.live(loop.model, loop.tokenizer, run_dir="r", max_steps=1, config="missing.yaml")
    with pytest.raises(PeriodicEvalError, match="a file and alignment"):
        periodic_eval.live(loop.model, loop.tokenizer, run_dir="r", max_steps=1, config=__file__, alignment=1)


def test_reports_an_error_of_the_training(host: Any, tmp_path: Path) -> None:
    script = host()
    loop = Loop()
    with (
        pytest.raises(ZeroDivisionError),
        periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=3),
    ):
        _ = 1 / 0
    # `close` would wait for grades.
    assert script.methods() == ["hello", "fail"]
    message = "ZeroDivisionError: division by zero"
    assert script.heard()[1]["params"] == {"message": message, "logged": []}
    assert script.heard()[-1] == {"ended": True}


def test_reads_what_the_host_prints_when_stderr_is_closed(
    host: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    # More than a pipe holds.
    script = host(on={"hello": [{"print": 10**6}]})
    loop = Loop()
    closed = open(os.devnull, "w")  # noqa: SIM115
    closed.close()
    monkeypatch.setattr(connection, "SILENCE_SECONDS", 5.0)
    monkeypatch.setattr(sys, "stderr", closed)
    loop.measured(tmp_path, 1)
    assert script.methods() == ["hello", "step", "save", "end", "close"]


def test_hangs_up_and_restores_on_ctrl_c_in_a_window(
    host: Any, window: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    script = host(steps=[1], on={"step:1": window})
    loop = Loop()

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=3)
    with pytest.raises(KeyboardInterrupt), run:
        handle = loop.model.register_forward_pre_hook(interrupt)
        run.step_end(1)
    handle.remove()
    assert loop.model.training
    assert torch.is_grad_enabled()
    deadline = time.monotonic() + 30
    while {"ended": True} not in script.heard() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert script.heard()[-1] == {"ended": True}


def test_a_failing_call_is_an_error_and_training_goes_on(
    host: Any, window: Any, tmp_path: Path, caplog: Any
) -> None:
    script = host(steps=[2], on={"step:2": window})
    loop = Loop()

    def refuse(*_: Any) -> None:
        if not loop.model.training:
            raise RuntimeError("CUDA out of memory. Tried to allocate 1 GiB")

    handle = loop.model.register_forward_pre_hook(refuse)
    loop.measured(tmp_path)
    handle.remove()
    assert script.answers("log_likelihoods")[0]["error"]["code"] == "memory"
    warnings = [record.getMessage() for record in caplog.records]
    sizes = [int(warning.split()[-5]) for warning in warnings if "batches have at most" in warning]
    assert sizes == sorted(sizes, reverse=True) != []
    assert script.answers("leave")[0]["result"]["details"] == {"batch_tokens": sizes[-1]}
    assert all(part["intact"] for part in script.answers("leave")[0]["result"]["evidence"])
    assert is_same(loop, twin())


def test_cancels_a_call(host: Any, tmp_path: Path) -> None:
    # At this temperature a stop id is as likely as any other.
    rows = [{"prompt": [5, 6], "max_new_tokens": n, "temperature": 50, "seed": "r"} for n in (1, 250)]
    script = host(
        on={
            "hello": [
                {"call": "enter", "params": {"seed": "s"}},
                {"later": 1.0, "notice": "cancel", "params": {"call": 2}},
                {"call": "generate", "params": {"on": "model", "rows": rows}},
                {"call": "leave"},
            ]
        }
    )
    loop = Loop()
    slow: Callable[..., None] = lambda *_: time.sleep(0 if loop.model.training else 0.05)  # noqa: E731
    loop.model.register_forward_pre_hook(slow)
    loop.measured(tmp_path, 1, batch_tokens=1)
    answer = script.answers("generate")[0]
    assert answer["error"]["code"] == "cancelled"
    assert answer["rows"] == []
    assert len(script.answers("leave")) == 1


def test_sends_progress_while_a_call_runs(host: Any, window: Any, tmp_path: Path) -> None:
    script = host(on={"hello": window})
    loop = Loop()
    loop.model.register_forward_pre_hook(lambda *_: time.sleep(0 if loop.model.training else 1.2))
    loop.measured(tmp_path, 1)
    answers = [*script.answers("log_likelihoods"), *script.answers("generate")]
    assert sum(len(answer["progress"]) for answer in answers) >= 2
    assert all(answer["progress"] == sorted(answer["progress"]) for answer in answers)


def test_an_idle_step_takes_at_most_5_microseconds_and_sends_nothing(host: Any, tmp_path: Path) -> None:
    script = host()
    loop = Loop()
    run = periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=10**6)
    with run:
        best = float("inf")
        for thousand in range(20):
            start = time.perf_counter()
            for step in range(1000 * thousand + 1, 1000 * thousand + 1001):
                run.step_end(step)
            best = min(best, (time.perf_counter() - start) / 1000)
        assert script.methods() == ["hello"]
    assert best < 5e-6


def test_a_forked_worker_does_not_keep_the_host_alive(tmp_path: Path) -> None:
    double = Path(__file__).with_name("host_double.py")
    (tmp_path / "script.json").write_text('{"log": "%s"}' % (tmp_path / "heard.jsonl"))
    program = """
import os, sys, time, torch
sys.path[:0] = [{tests!r}, {src!r}]
import periodic_eval
from tiny import micro_world
model, tokenizer = micro_world()
run = periodic_eval.live(model, tokenizer, run_dir="r", max_steps=3)
run.__enter__()
if os.fork() == 0:
    time.sleep(600)
    os._exit(0)
print("forked", flush=True)
time.sleep(600)
"""
    here = Path(__file__).parent
    trainer = subprocess.Popen(
        [sys.executable, "-c", program.format(tests=str(here), src=str(here.parent / "src"))],
        env={**os.environ, "PERIODIC_EVAL_HOST": f"{sys.executable} {double} {tmp_path / 'script.json'}"},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert trainer.stdout is not None
    try:
        assert trainer.stdout.readline() == b"forked\n"
        trainer.kill()
        deadline = time.monotonic() + 30
        while '"ended"' not in (tmp_path / "heard.jsonl").read_text() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert '"ended"' in (tmp_path / "heard.jsonl").read_text()
    finally:
        os.killpg(trainer.pid, signal.SIGKILL)
        trainer.wait()
