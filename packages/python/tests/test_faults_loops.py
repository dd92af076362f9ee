"""Loops, data and tokenizers of unusual kinds: measured bit for bit, or refused before the training."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from test_faults import STEPS, faulty
from test_faults_models import errors_of, hello_of, trained
from test_loop import Loop, is_same, twin
from tiny import micro_world, random_model

import periodic_eval
from periodic_eval import PeriodicEval, PeriodicEvalError


def test_sends_nan_as_null_and_goes_on(host: Any, tmp_path: Path) -> None:
    script = host(steps=[1])
    with periodic_eval.live(*micro_world(), run_dir=str(tmp_path), max_steps=2) as run:
        run.step_end(1, loss=math.nan, rate=torch.tensor(math.inf), note="a string", flag=True)
        run.step_end(2, loss=1.5)
    steps = [fact["params"]["logged"] for fact in script.heard() if fact.get("heard") == "step"]
    assert steps == [
        [{"step": 1, "metrics": {"loss": None, "rate": None}}],
        [{"step": 2, "metrics": {"loss": 1.5}}],
    ]


def test_sends_no_epoch_that_falls(host: Any, tmp_path: Path) -> None:
    script = host(steps=[1, 2])
    with periodic_eval.live(*micro_world(), run_dir=str(tmp_path), max_steps=3) as run:
        for step, epoch in ((1, 0.5), (2, 0.25), (3, 0.75)):
            run.step_end(step, epoch=epoch)
    epochs = [fact["params"]["epoch"] for fact in script.heard() if fact.get("heard") == "step"]
    assert epochs == [0.5, 0.5, 0.75]


def test_measures_the_end_when_the_number_of_steps_is_unknown(host: Any, window: Any, tmp_path: Path) -> None:
    script = host(steps=[2], on={"end": window})
    loop = Loop()
    with periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), max_steps=None) as run:
        for step in (1, 2, 3):
            run.step_end(step, loss=loop.train_step())
    assert is_same(loop, twin(3))
    assert hello_of(script)["max_steps"] is None
    assert script.methods() == ["hello", "step", "step", "save", "end", "close"]
    assert len(script.answers("leave")) == 1


def test_says_which_value_of_a_dict_is_wrong_before_the_training(tmp_path: Path) -> None:
    def refused(**options: Any) -> str:
        with pytest.raises(PeriodicEvalError) as caught:
            periodic_eval.live(*micro_world(), run_dir="r", max_steps=1, **options)
        return str(caught.value)

    wanted = "expected a string, a number, a boolean, None, a list or a dict, got"
    assert refused(config={"capability": {"ids": [1, {2}]}}).startswith(
        f"periodic_eval.capability.ids[1]: {wanted} set {{2}}"
    )
    assert refused(margin=math.nan).startswith(f"periodic_eval.margin: {wanted} float nan")
    assert refused(config={"leakage": {1: 2}}).startswith(f"periodic_eval.leakage: {wanted} dict")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"phase": ""}, ".phase: expected a string that is not empty, got ''."),
        ({"phase": None}, ".phase: expected a string that is not empty, got None."),
        ({"run_dir": ""}, ".run_dir: expected a string that is not empty, got ''."),
        ({"run_dir": None}, ".run_dir: expected a string that is not empty, got None."),
        ({"run_dir": b"r"}, ".run_dir: expected a string that is not empty, got b'r'."),
        ({"max_steps": -1}, ".max_steps: expected an integer of at least 0, or None, got -1."),
        ({"max_steps": math.inf}, ".max_steps: expected an integer of at least 0, or None, got inf."),
        ({"max_steps": math.nan}, ".max_steps: expected an integer of at least 0, or None, got nan."),
        ({"batch_tokens": "x"}, ".batch_tokens: expected an integer of at least 1, or None, got 'x'."),
        ({"batch_tokens": -5}, ".batch_tokens: expected an integer of at least 1, or None, got -5."),
        ({"batch_tokens": 0}, ".batch_tokens: expected an integer of at least 1, or None, got 0."),
    ],
    ids=str,
)
def test_refuses_a_wrong_argument_before_a_host_starts(options: dict[str, Any], said: str) -> None:
    model, tokenizer = micro_world()
    with pytest.raises(PeriodicEvalError) as caught:
        periodic_eval.live(model, tokenizer, **{"run_dir": "r", "max_steps": 1, **options})
    assert f"live{said}" in str(caught.value)
    if "max_steps" not in options:
        with pytest.raises(PeriodicEvalError) as caught:
            PeriodicEval(**{"run_dir": "r", **options})
        assert f"PeriodicEval{said}" in str(caught.value)


def test_takes_paths_and_tuples_in_a_dict(host: Any, tmp_path: Path) -> None:
    script = host()
    config = {"questions": tmp_path / "q.jsonl", "evaluations": ({"task": "a"},)}
    with periodic_eval.live(*micro_world(), run_dir=str(tmp_path), max_steps=1, config=config):
        pass
    assert hello_of(script)["config"] == {
        "questions": str(tmp_path / "q.jsonl"),
        "evaluations": [{"task": "a"}],
    }


@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_measures_a_loop_of_accelerate(host: Any, window: Any, tmp_path: Path, precision: str) -> None:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    def train(folder: Path | None) -> list[torch.Tensor]:
        AcceleratorState._reset_state(reset_partial_state=True)
        accelerator = Accelerator(mixed_precision=precision, cpu=True)
        loop = Loop()
        model, optimizer = accelerator.prepare(loop.model, loop.optimizer)
        dtype = torch.bfloat16 if precision == "bf16" else None
        run = None
        if folder is not None:
            run = periodic_eval.live(
                model,
                loop.tokenizer,
                run_dir=str(folder),
                max_steps=STEPS,
                optimizer=optimizer,
                autocast=dtype,
            ).__enter__()
        for step in range(1, STEPS + 1):
            ids = torch.randint(3, 1000, (2, 12))
            loss = model(input_ids=ids, labels=ids).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            loop.losses.append(loss.item())
            if run is not None:
                run.step_end(step, loss=loss)
        if run is not None:
            run.__exit__(None, None, None)
        return loop.state()

    expected = train(None)
    script = faulty(host, window)
    found = train(tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert errors_of(script) == []
    hello = hello_of(script)
    assert hello["model"]["dtype"] == ("float32" if precision == "no" else "float32 (bfloat16 autocast)")
    parts = [part for leave in script.answers("leave") for part in leave["result"]["evidence"]]
    assert [part["part"] for part in parts if part["intact"] is not True] == []
    assert "optimizer" in {part["part"] for part in parts}


def test_measures_a_training_of_lightning(host: Any, window: Any, tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")

    class Module(lightning.LightningModule):
        def __init__(self, loop: Loop) -> None:
            super().__init__()
            self.loop, self.model = loop, loop.model

        def training_step(self, ids: torch.Tensor, _: int) -> torch.Tensor:
            loss = self.model(input_ids=ids, labels=ids).loss
            self.loop.losses.append(loss.item())
            return loss

        def configure_optimizers(self) -> Any:
            return self.loop.optimizer

    class Measuring(lightning.Callback):
        def on_train_start(self, trainer: Any, module: Any) -> None:
            settings = {"max_steps": trainer.max_steps, "optimizer": module.loop.optimizer}
            self.run = periodic_eval.live(
                module.model, module.loop.tokenizer, run_dir=str(tmp_path), **settings
            )
            self.run.__enter__()

        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            self.run.step_end(trainer.global_step)

        def on_train_end(self, *_: Any) -> None:
            self.run.__exit__(None, None, None)

    def train(callbacks: list[Any]) -> Loop:
        loop = Loop()
        data: Any = list(torch.randint(3, 1000, (6, 12)))
        quiet: dict[str, Any] = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        trainer = lightning.Trainer(accelerator="cpu", max_steps=STEPS, callbacks=callbacks, **quiet)
        trainer.fit(Module(loop), torch.utils.data.DataLoader(data, 2))
        return loop

    expected = train([])
    script = faulty(host, window)
    assert is_same(train([Measuring()]), expected)
    assert script.methods() == ["hello", "step", "step", "save", "end", "close"]
    parts = [part for leave in script.answers("leave") for part in leave["result"]["evidence"]]
    assert [part["part"] for part in parts if part["intact"] is not True] == []


# Tokenizers


def test_measures_with_a_tokenizer_without_template(host: Any, window: Any, tmp_path: Path) -> None:
    render = {"call": "render", "params": {"chats": [{"messages": [{"role": "user", "content": "a"}]}]}}
    render["params"]["ending"] = "generation"
    script = host(on={"hello": [render, *window]})
    model, tokenizer = micro_world()
    tokenizer.chat_template = None
    with periodic_eval.live(model, tokenizer, run_dir=str(tmp_path), max_steps=1):
        pass
    assert hello_of(script)["tokenizer"]["has_template"] is False
    assert [error["code"] for error in errors_of(script)] == ["data"]
    assert len(script.answers("generate")[0]["rows"]) == 1


def test_measures_with_a_slow_tokenizer_and_with_a_processor(host: Any, window: Any, tmp_path: Path) -> None:
    from transformers import ByT5Tokenizer

    slow: Any = ByT5Tokenizer()
    assert not hasattr(slow, "backend_tokenizer")
    processor = type("Processor", (), {"tokenizer": slow, "image_processor": None})()
    fingerprints: set[str] = set()
    for subject in (slow, processor):
        script = host(on={"hello": window})
        model = random_model("llama", vocab_size=259)
        with periodic_eval.live(model, subject, run_dir=str(tmp_path), max_steps=1):
            pass
        assert script.answers("encode")[-1]["rows"] == [[ord(c) + 3 for c in "the ice melts"]]
        assert errors_of(script) == []
        fingerprints.add(hello_of(script)["tokenizer"]["fingerprint"])
    assert len(fingerprints) == 1


def test_refuses_what_is_no_tokenizer(host: Any, tmp_path: Path) -> None:
    for subject in (None, object()):
        with pytest.raises(PeriodicEvalError, match="a training without a tokenizer"):
            periodic_eval.live(micro_world()[0], subject, run_dir="r", max_steps=1).__enter__()


def test_says_the_width_of_resized_embeddings(host: Any, window: Any, tmp_path: Path) -> None:
    model, tokenizer = micro_world()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<new>"]})
    tokenizer.padding_side, tokenizer.truncation_side = "left", "left"
    torch.manual_seed(0)
    model.resize_token_embeddings(len(tokenizer))
    script = faulty(host, window)
    trained(model, tmp_path, tokenizer)
    hello = hello_of(script)
    assert (hello["model"]["vocab_size"], hello["tokenizer"]["vocab_size"]) == (1025, 1025)
    assert errors_of(script) == []
    assert (tokenizer.padding_side, tokenizer.truncation_side) == ("left", "left")


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_trains_with_workers_that_load_data(host: Any, window: Any, tmp_path: Path, start: str) -> None:
    script = faulty(host, window)
    loop = Loop()

    def train(subject: Loop, run: Any) -> None:
        data: Any = list(torch.arange(24).reshape(6, 4))
        loader = torch.utils.data.DataLoader(data, 2, num_workers=2, multiprocessing_context=start)
        for step, ids in enumerate(loader, start=1):
            loss = subject.model(input_ids=ids, labels=ids).loss
            loss.backward()
            subject.optimizer.step()
            subject.optimizer.zero_grad()
            subject.losses.append(loss.item())
            if run is not None:
                run.step_end(step, loss=loss)

    settings: dict[str, Any] = {"run_dir": str(tmp_path), "max_steps": STEPS, "optimizer": loop.optimizer}
    with periodic_eval.live(loop.model, loop.tokenizer, **settings) as run:
        train(loop, run)
    other = Loop()
    train(other, None)
    assert is_same(loop, other)
    assert script.methods()[-3:] == ["save", "end", "close"]
