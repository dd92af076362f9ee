"""Twin trainings in float32 on the CPU, measured by the real host and not, end in the same bits.

A change during a measurement breaks exactly the guard of its part, which the snapshot's receipt names.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from real import MICRO_WORLD, THREE, assert_receipts_are_intact, snapshots, use_host
from test_guards import Setup, flip
from twin_train import STEPS, seed_all, state_of, train_loop, with_dropout

import periodic_eval
from periodic_eval import PeriodicEval
from periodic_eval.answering import Answering
from periodic_eval.guards import Window, _settings_guard, torch_settings

GUARDS = {
    "weights",
    "buffers",
    "gradients",
    "optimizer",
    "requires-grad",
    "random-python",
    "random-numpy",
    "random-torch",
    "mode",
    "tokenizer",
    "model-settings",
    "torch-settings",
}
DUE = {
    *(("capability", step) for step in (0, 10, 20, 30, 40)),
    *((name, step) for name in ("alignment", "leakage") for step in (0, 20, 40)),
}


@pytest.fixture(autouse=True)
def real_host(monkeypatch: pytest.MonkeyPatch) -> None:
    use_host(monkeypatch)


def differences(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> list[str]:
    """Returns the names of parts that are not the same bits."""
    assert list(a) == list(b)
    return [name for name in a if not torch.equal(a[name], b[name])]


def assert_undisturbed(run_dir: Path, guards: set[str]) -> None:
    found = snapshots(run_dir)
    assert set(found) == DUE
    assert_receipts_are_intact(found, guards)
    # Training went on between the measurements.
    assert len({snapshot["weights"] for snapshot in found.values()}) == 5


def test_a_plain_loop_ends_in_the_same_bits(tmp_path: Path) -> None:
    states: list[dict[str, torch.Tensor]] = []
    for block in (None, THREE):
        seed_all(1)
        model, tokenizer = with_dropout()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        losses, _ = train_loop(model, tokenizer, optimizer, tmp_path, block)
        states.append(state_of(model, optimizer, losses))
    assert differences(*states) == []
    assert len(states[0]["losses"]) == STEPS
    assert_undisturbed(tmp_path, GUARDS)


def with_trl(kind: str, folder: Path, callbacks: list[Any], **settings: Any) -> dict[str, torch.Tensor]:
    """Trains with a trainer of TRL, and returns its state."""
    import datasets
    from peft import LoraConfig
    from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

    plain: dict[str, Any] = {
        "output_dir": str(folder),
        "max_steps": STEPS,
        "per_device_train_batch_size": 2,
        "learning_rate": 1e-3,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "use_cpu": True,
        "bf16": False,
        "disable_tqdm": True,
        "seed": 7,
    }
    seed_all(3)
    model, tokenizer = with_dropout()
    lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.05)
    things = ("ice", "lake", "bread", "roof", "boat", "wheel", "mill", "rope")
    chats = [[{"role": "user", "content": f"Where is the {thing}?"}] for thing in things]
    good = [[{"role": "assistant", "content": f"The {thing} is in the cellar."}] for thing in things]
    bad = [{"role": "assistant", "content": "I do not know."}]
    shared: dict[str, Any] = {
        "processing_class": tokenizer,
        "peft_config": None if kind == "full" else lora,
        "callbacks": callbacks,
    }
    if kind == "dpo":
        table = [{"prompt": c, "chosen": g, "rejected": bad} for c, g in zip(chats, good, strict=True)]
        trainer: Any = DPOTrainer(
            model,
            args=DPOConfig(**plain, **settings),
            train_dataset=datasets.Dataset.from_list(table),
            **shared,
        )
    else:
        table = [{"messages": c + g} for c, g in zip(chats, good, strict=True)]
        trainer = SFTTrainer(
            model,
            args=SFTConfig(**plain, **settings),
            train_dataset=datasets.Dataset.from_list(table),
            **shared,
        )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == STEPS
    return state_of(trainer.model, trainer.optimizer.optimizer, losses)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "settings"),
    [("full", {}), ("lora", {}), ("dpo", {}), ("lora", {"gradient_accumulation_steps": 4})],
    ids=["sft full", "sft lora", "dpo", "gradient accumulation"],
)
def test_a_trainer_of_trl_ends_in_the_same_bits(tmp_path: Path, kind: str, settings: Any) -> None:
    expected = with_trl(kind, tmp_path / "plain", [], **settings)
    callback = PeriodicEval(THREE, run_dir=str(tmp_path / "run"))
    assert differences(with_trl(kind, tmp_path / "measured", [callback], **settings), expected) == []
    assert_undisturbed(tmp_path / "run", GUARDS | ({"adapter"} if kind != "full" else set()))


def launch(kind: str, folder: Path, block: Any, options: Any = None) -> subprocess.CompletedProcess[str]:
    """Runs twin_train.py in two processes."""
    script = Path(__file__).with_name("twin_train.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    return subprocess.run(
        [*command, str(script), kind, str(folder), json.dumps(block), json.dumps(options or {})],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def facts(folder: Path) -> list[dict[str, Any]]:
    return [json.loads((folder / f"measured-{rank}.json").read_text()) for rank in (0, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ddp", "fsdp2"])
def test_two_processes_end_in_the_same_bits_and_share_the_rows(tmp_path: Path, kind: str) -> None:
    for block in (None, THREE):
        done = launch(kind, tmp_path, block)
        assert done.returncode == 0, done.stderr[-3000:]
    for rank in (0, 1):
        plain, measured = (torch.load(tmp_path / f"{name}-{rank}.pt") for name in ("plain", "measured"))
        assert differences(measured, plain) == []
    assert_undisturbed(tmp_path / "run", GUARDS)
    counts = facts(tmp_path)
    assert len(counts[0]["calls"]) == len(counts[1]["calls"]) > 0
    for a, b in zip(counts[0]["calls"], counts[1]["calls"], strict=True):
        assert (a["method"], a["rows"]) == (b["method"], b["rows"])
        assert a["mine"] + b["mine"] == a["rows"]
        assert max(a["mine"], b["mine"]) <= -(-a["rows"] // 2)
        if kind == "fsdp2":
            assert a["passes"] == b["passes"]
    written = [call for call in counts[0]["calls"] if call["method"] == "generate"]
    assert any(call["rows"] > 2 for call in written)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ddp", "fsdp2"])
def test_the_receipt_names_a_weight_that_changed_on_another_rank(tmp_path: Path, kind: str) -> None:
    done = launch(kind, tmp_path, {**THREE, "alignment": False, "leakage": False}, {"disturb": True})
    assert done.returncode == 0, done.stderr[-3000:]
    found = snapshots(tmp_path / "run")
    assert set(found) == {("capability", 0), ("capability", 10)}
    broken = [part for part in found["capability", 10]["receipt"] if part["intact"] is not True]
    assert [part["part"] for part in broken] == ["weights"]
    if kind == "ddp":
        assert broken[0]["note"] == "changed on rank 1"
    assert [(fact["steps"], "weights" in fact["stop"]) for fact in facts(tmp_path)] == [(10, True)] * 2


# Negative controls

BLOCK = {
    "questions": str(MICRO_WORLD / "questions.jsonl"),
    "subsample_n": 4,
    "schedule": {"at_steps": [1]},
    "budget": {"overhead_percent": None},
}

LASTING: dict[str, Callable[[Setup], Any]] = {
    "weights": lambda s: flip(s.first_weight()),
    "weights, replaced": lambda s: setattr(s.first_weight(), "data", s.first_weight().data + 1),
    "gradients": lambda s: flip(s.trained[0].grad),
    "gradients, dropped": lambda s: setattr(s.trained[0], "grad", None),
    "optimizer": lambda s: flip(s.optimizer.state[s.trained[1]]["exp_avg"]),
    "optimizer, learning rate": lambda s: s.optimizer.param_groups[0].update(lr=2e-3),
    "grad-scaler": lambda s: s.scaler.set_growth_factor(3.0),
    "quantization": lambda s: flip(s.quant_state.absmax),
    "tokenizer, a new token": lambda s: s.tokenizer.add_tokens(["<new>"]),
}
"""What measuring may not change: it stays changed."""


def first_lora(s: Setup) -> Any:
    return next(module for module in s.model.modules() if hasattr(module, "lora_A"))


RESTORED: dict[str, Callable[[Setup], Any]] = {
    "buffers": lambda s: s.model.base_model.model.counter.add_(1),
    "requires-grad": lambda s: s.first_weight().requires_grad_(True),
    "adapter": lambda s: setattr(first_lora(s), "_disable_adapters", True),
    "adapter, name": lambda s: setattr(first_lora(s), "_active_adapter", "other"),
    "random-python": lambda s: random.random(),
    "random-numpy": lambda s: np.random.rand(),
    "random-torch": lambda s: torch.rand(1),
    "mode": lambda s: setattr(first_lora(s), "training", not first_lora(s).training),
    "tokenizer, padding side": lambda s: setattr(s.tokenizer, "padding_side", "left"),
    "tokenizer, length": lambda s: setattr(s.tokenizer, "model_max_length", 7),
    "tokenizer, template": lambda s: setattr(s.tokenizer, "chat_template", "{{ messages }}"),
    "tokenizer, padding token": lambda s: setattr(s.tokenizer, "pad_token", "<|user|>"),
    "tokenizer, truncation": lambda s: s.tokenizer.backend_tokenizer.enable_truncation(5),
    "model-settings": lambda s: setattr(s.model.generation_config, "temperature", 0.5),
    "model-settings, cache": lambda s: setattr(s.model.config, "use_cache", not s.model.config.use_cache),
    "torch-settings": lambda s: torch.set_default_dtype(torch.float64),
    "torch-settings, autocast": lambda s: torch.set_autocast_enabled("cpu", True),
    "torch-settings, grad mode": lambda s: torch.set_grad_enabled(not torch.is_grad_enabled()),
    "torch-settings, cudnn": lambda s: setattr(torch.backends.cudnn, "benchmark", True),
    "torch-settings, precision": lambda s: torch.set_float32_matmul_precision("medium"),
    "torch-settings, deterministic": lambda s: torch.use_deterministic_algorithms(True, warn_only=True),
}
"""What measuring may change: it is restored."""


def guard_of(control: str) -> str:
    return control.partition(",")[0]


def test_the_controls_cover_every_guard() -> None:
    assert {guard.name for guard in Setup().window.guards} == {guard_of(c) for c in (*LASTING, *RESTORED)}


def measured_once(setup: Setup, folder: Path) -> tuple[Any, dict[tuple[str, int], dict[str, Any]]]:
    """Measures at step 1 of 3 steps that change nothing. Returns the run and the snapshots."""
    run = periodic_eval.live(
        setup.model,
        setup.tokenizer,
        run_dir=str(folder),
        max_steps=3,
        optimizer=setup.optimizer,
        scaler=setup.scaler,
        config=BLOCK,
    )
    with run:
        for step in (1, 2, 3):
            run.step_end(step)
            if run.stop is not None:
                break
    return run, snapshots(folder)


def broken_parts(snapshot: dict[str, Any]) -> list[str]:
    return [part["part"] for part in snapshot["receipt"] if part["intact"] is not True]


@pytest.fixture
def settings() -> Any:
    """Restores the settings of this process that a control changes."""
    restore = _settings_guard("", torch_settings).capture()
    yield
    restore()


def during_step_1(monkeypatch: pytest.MonkeyPatch, change: Callable[[], Any]) -> None:
    """Runs `change` after the first answer in the second window, which is that of step 1."""
    original, enter, windows = Answering._compute, Window.enter, [0]

    def entered(window: Window, seed: str) -> Any:
        windows[0] += 1
        return enter(window, seed)

    def changed(*arguments: Any, **more: Any) -> Any:
        result = original(*arguments, **more)
        if windows[0] == 2:
            windows[0] += 1
            change()
        return result

    monkeypatch.setattr(Window, "enter", entered)
    monkeypatch.setattr(Answering, "_compute", changed)


@pytest.mark.slow
@pytest.mark.parametrize("control", LASTING)
def test_the_receipt_names_what_a_measurement_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, control: str
) -> None:
    setup = Setup()
    during_step_1(monkeypatch, lambda: LASTING[control](setup))
    run, found = measured_once(setup, tmp_path)
    assert broken_parts(found["capability", 0]) == []
    assert broken_parts(found["capability", 1]) == [guard_of(control)]
    assert f'guard "{guard_of(control)}"' in run.stop


@pytest.mark.slow
@pytest.mark.parametrize("control", RESTORED)
def test_restores_what_a_measurement_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: None, control: str
) -> None:
    setup = Setup()
    states = {guard.name: guard.observe() for guard in setup.window.guards}
    during_step_1(monkeypatch, lambda: RESTORED[control](setup))
    run, found = measured_once(setup, tmp_path)
    assert run.stop is None
    assert [broken_parts(snapshot) for snapshot in found.values()] == [[]] * len(found)
    assert {guard.name: guard.observe() for guard in setup.window.guards} == states


@pytest.mark.slow
@pytest.mark.parametrize("control", RESTORED)
def test_the_receipt_names_what_was_not_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: None, control: str
) -> None:
    setup = Setup()
    restore, enter, windows = Window.restore, Window.enter, [0]

    def entered(window: Window, seed: str) -> Any:
        before = enter(window, seed)
        windows[0] += 1
        return before

    def forgetful(window: Window) -> None:
        was_open = bool(window._restores)
        restore(window)
        if was_open and windows[0] == 2:
            RESTORED[control](setup)

    monkeypatch.setattr(Window, "enter", entered)
    monkeypatch.setattr(Window, "restore", forgetful)
    run, found = measured_once(setup, tmp_path)
    assert broken_parts(found["capability", 0]) == []
    assert broken_parts(found["capability", 1]) == [guard_of(control)]
    assert f'guard "{guard_of(control)}"' in run.stop
