"""The callback in the Trainer of transformers and in TRL's trainers, measured by a scripted host."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import micro_world
from transformers import Trainer, TrainerCallback, TrainingArguments

from periodic_eval import PeriodicEval, PeriodicEvalError


def rows(count: int = 64) -> list[dict[str, list[int]]]:
    generator = torch.Generator().manual_seed(0)
    table = [torch.randint(3, 1000, (12,), generator=generator).tolist() for _ in range(count)]
    return [{"input_ids": ids, "labels": ids} for ids in table]


def trainer_of(
    folder: Path, callbacks: list[Any], *, lora: bool = True, model: Any = None, **settings: Any
) -> Trainer:
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(3)
    found, tokenizer = micro_world()
    model = model or found
    if lora:
        model = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.05))
    plain: dict[str, Any] = {
        "max_steps": 8,
        "per_device_train_batch_size": 2,
        "learning_rate": 1e-3,
        "logging_steps": 2,
        "save_strategy": "no",
        "report_to": "none",
        "use_cpu": True,
        "disable_tqdm": True,
        "seed": 5,
    }
    return Trainer(
        model=model,
        args=TrainingArguments(output_dir=str(folder / "out"), **{**plain, **settings}),
        train_dataset=rows(),  # type: ignore[arg-type]
        eval_dataset=rows(4),  # type: ignore[arg-type]
        processing_class=tokenizer,
        callbacks=callbacks,
    )


def final(trainer: Any) -> list[Any]:
    optimizer = trainer.optimizer.optimizer
    tensors = [*trainer.model.state_dict().values()]
    tensors += [v for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return [*tensors, torch.get_rng_state(), torch.tensor(losses)]


def assert_same(a: list[Any], b: list[Any]) -> None:
    assert len(a) == len(b)
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize(
    "settings", [{}, {"lora": False}, {"gradient_accumulation_steps": 4}, {"dataloader_num_workers": 1}]
)
def test_trains_bit_for_bit_as_without_the_callback(
    host: Any, window: Any, tmp_path: Path, settings: Any
) -> None:
    plain = trainer_of(tmp_path, [], **settings)
    plain.train()
    expected = final(plain)
    script = host(steps=[2, 4, 6], on={"hello": window, "step": window, "end": window})
    measured = trainer_of(tmp_path, [PeriodicEval(run_dir=str(tmp_path / "run"))], **settings)
    measured.train()
    assert_same(final(measured), expected)
    assert script.methods() == ["hello", "step", "step", "step", "step", "save", "end", "close"]
    for leave in script.answers("leave"):
        assert [part["part"] for part in leave["result"]["evidence"] if part["intact"] is not True] == []
    logged = [e for f in script.heard() for e in f.get("params", {}).get("logged", [])]
    assert [entry["step"] for entry in logged if "loss" in entry["metrics"]] == [2, 4, 6, 8]
    assert (logged[-1]["step"], "train_loss" in logged[-1]["metrics"]) == (8, True)


def test_says_the_arithmetic_of_the_trainer(host: Any, tmp_path: Path) -> None:
    script = host()
    trainer_of(tmp_path, [PeriodicEval(run_dir="r", capability={"limit": 2})], max_steps=1, bf16=True).train()
    hello = script.heard()[0]["params"]
    assert hello["model"]["dtype"] == "float32 (bfloat16 autocast)"
    assert hello["model"]["tolerance_nats"] is None
    assert (hello["model"]["adapter"], hello["model"]["base"]) == ("default", True)
    assert (hello["max_steps"], hello["run_dir"], hello["phase"]) == (1, "r", "train")
    assert hello["config"] == {"capability": {"limit": 2}}


def test_scores_in_the_trainers_autocast(host: Any, window: Any, tmp_path: Path) -> None:
    nats: list[list[float]] = []
    for bf16 in (False, True):
        script = host(on={"hello": window[:1] + window[2:3] + window[4:]})
        trainer_of(tmp_path, [PeriodicEval(run_dir="r")], max_steps=1, bf16=bf16).train()
        nats.append(script.answers("log_likelihoods")[-1]["rows"][0]["nats"])
    assert nats[0] != nats[1]
    assert nats[0] == pytest.approx(nats[1], abs=0.2)
    model, _ = micro_world()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        logits = model(torch.tensor([[5, 6, 7, 8]])).logits[0].float()
    assert nats[1][0] == pytest.approx(torch.log_softmax(logits, -1)[2, 8].item(), abs=0.02)


def test_stops_and_saves_when_the_host_asks(host: Any, tmp_path: Path) -> None:
    script = host(steps=[3], done={"step:3": {"stop": "a verdict", "save": "firing"}})
    trainer = trainer_of(tmp_path, [PeriodicEval(run_dir=str(tmp_path / "run"))])
    trainer.train()
    assert trainer.state.global_step == 3
    assert (tmp_path / "out" / "checkpoint-3").is_dir()
    assert script.methods() == ["hello", "step", "save", "end", "close"]


@pytest.mark.parametrize("is_first", [False, True])
def test_passes_metrics_to_the_log_and_the_reporters(
    host: Any, tmp_path: Path, monkeypatch: Any, is_first: bool
) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from transformers.integrations import TensorBoardCallback

    values = {"periodic_eval/arc_c_accuracy": 0.25, "periodic_eval/unknown": None}
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "tb"))
    done = {
        name: {"metrics": [{"step": step, "values": values}]} for name, step in [("hello", 0), ("step:3", 2)]
    }
    host(steps=[3], done=done)
    callbacks = [PeriodicEval(run_dir="r"), *([TensorBoardCallback()] if is_first else [])]
    trainer = trainer_of(tmp_path, callbacks, report_to="none" if is_first else "tensorboard")
    trainer.train()
    entries = [entry for entry in trainer.state.log_history if "periodic_eval/arc_c_accuracy" in entry]
    assert [(entry["step"], entry["periodic_eval/arc_c_accuracy"]) for entry in entries] == [
        (0, 0.25),
        (2, 0.25),
    ]
    folder = next(iter((tmp_path).rglob("events.out*"))).parent
    events = EventAccumulator(str(folder)).Reload()
    points = events.Scalars("periodic_eval/arc_c_accuracy")
    assert [(point.step, point.value) for point in points] == [(0, 0.25), (2, 0.25)]


@pytest.mark.parametrize("restores", [False, True])
def test_resumes_with_the_state_of_the_checkpoint(host: Any, tmp_path: Path, restores: bool) -> None:
    settings = {
        "save_strategy": "steps",
        "save_steps": 4,
        "restore_callback_states_from_checkpoint": restores,
    }
    host(steps=[3])
    trainer_of(tmp_path, [PeriodicEval(run_dir="r")], **settings, max_steps=4).train()
    stored = json.loads((tmp_path / "out" / "checkpoint-4" / "trainer_state.json").read_text())
    assert stored["stateful_callbacks"]["PeriodicEval"]["attributes"]["saved"]["host"] == {"saved": True}
    script = host(steps=[6])
    trainer_of(tmp_path, [PeriodicEval(run_dir="r")], **settings).train(
        resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-4")
    )
    hellos = [fact["params"] for fact in script.heard() if fact.get("heard") == "hello"]
    assert (hellos[-1]["step"], hellos[-1]["state"]) == (4, {"saved": True})


def test_begins_without_a_state_at_step_0_and_in_another_phase(host: Any, tmp_path: Path) -> None:
    settings = {"save_strategy": "steps", "save_steps": 4}
    script = host()
    trainer_of(tmp_path, [PeriodicEval(run_dir="r")], **settings, max_steps=4).train()
    trainer_of(tmp_path, [PeriodicEval(run_dir="r", phase="other")], **settings).train(
        resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-4")
    )
    hellos = [fact["params"] for fact in script.heard() if fact.get("heard") == "hello"]
    assert [(hello["step"], hello["state"]) for hello in hellos] == [(0, None), (4, None)]


class Renamed(PeriodicEval):
    """A callback whose state a checkpoint holds under another name."""


@pytest.mark.parametrize("earlier", [[], [Renamed]], ids=["no callback", "a subclass"])
@pytest.mark.parametrize("count", [1, 2])
def test_joins_a_training_whose_checkpoint_has_no_entry_for_it(
    host: Any, tmp_path: Path, earlier: list[Any], count: int
) -> None:
    settings = {"save_strategy": "steps", "save_steps": 2}
    host()
    trainer_of(tmp_path, [made(run_dir="r") for made in earlier], **settings, max_steps=2).train()
    script = host()
    callbacks = [PeriodicEval(run_dir=f"r{index}") for index in range(count)]
    trainer_of(tmp_path, callbacks, **settings, max_steps=6).train(resume_from_checkpoint=True)
    assert [f["params"]["step"] for f in script.heard() if f.get("heard") == "hello"][-count:] == [2] * count
    script = host()
    trainer_of(tmp_path, callbacks, **settings).train(
        resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-6")
    )
    states = [f["params"]["state"] for f in script.heard() if f.get("heard") == "hello"]
    assert states[-count:] == [{"saved": True}] * count


def test_measures_the_last_weights_before_the_best_are_loaded(
    host: Any, window: Any, tmp_path: Path, caplog: Any
) -> None:
    script = host(on={"end": window})
    seen: dict[str, Any] = {}

    class Last(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == 4:
                weights = kwargs["model"].state_dict()
                seen["last"] = {name: value.clone() for name, value in weights.items()}

    trainer = trainer_of(
        tmp_path,
        [Last(), PeriodicEval(run_dir="r")],
        max_steps=4,
        eval_strategy="steps",
        eval_steps=2,
        save_strategy="steps",
        save_steps=2,
        load_best_model_at_end=True,
        # The loss falls, so the worse of two checkpoints is the first.
        metric_for_best_model="loss",
        greater_is_better=True,
        learning_rate=5e-2,
    )
    trainer.train()
    assert trainer.state.best_model_checkpoint.endswith("checkpoint-2")
    assert "checkpoint-2. The last measurement is of the last step's weights" in caplog.text
    nats = script.answers("log_likelihoods")[0]["rows"][0]["nats"]

    def direct() -> float:
        with torch.no_grad():
            logits = trainer.model.eval()(input_ids=torch.tensor([[5, 6, 7, 8]])).logits[0]
        return torch.log_softmax(logits, -1)[2, 8].item()

    best = direct()
    trainer.model.load_state_dict(seen["last"])
    assert nats[0] == pytest.approx(direct(), abs=1e-4)
    assert nats[0] != pytest.approx(best, abs=1e-4)


def test_measures_the_end_when_another_callback_stops_training(host: Any, tmp_path: Path) -> None:
    script = host()

    class Stop(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
            control.should_training_stop = state.global_step == 3
            return control

    trainer_of(tmp_path, [PeriodicEval(run_dir="r"), Stop()]).train()
    assert script.methods() == ["hello", "step", "save", "end", "close"]


def test_begins_again_after_an_error(host: Any, tmp_path: Path) -> None:
    script = host()
    fails = {"at": 3}

    class Fail(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == fails["at"]:
                raise RuntimeError("a bad batch")

    trainer = trainer_of(tmp_path, [PeriodicEval(run_dir="r"), Fail()])
    with pytest.raises(RuntimeError, match="a bad batch"):
        trainer.train()
    fails["at"] = -1
    trainer.train()
    assert script.methods() == ["hello", "save", "fail", "hello", "step", "save", "end", "close"]
    message = next(fact["params"]["message"] for fact in script.heard() if fact.get("heard") == "fail")
    assert message == "training began again in the same process"


def test_begins_again_when_batches_shrink(host: Any, tmp_path: Path) -> None:
    script = host()
    trainer = trainer_of(
        tmp_path, [PeriodicEval(run_dir="r")], auto_find_batch_size=True, per_device_train_batch_size=4
    )
    sizes: list[int] = []

    def refuse(module: Any, args: Any, kwargs: Any) -> None:
        if not module.training:
            return
        if len(kwargs["input_ids"]) > 2:
            raise RuntimeError("CUDA out of memory. Tried to allocate 1 GiB")
        sizes.append(len(kwargs["input_ids"]))

    trainer.model.register_forward_pre_hook(refuse, with_kwargs=True)
    trainer.train()
    assert script.methods()[:4] == ["hello", "save", "fail", "hello"]
    assert set(sizes) == {2}


def test_two_callbacks_keep_their_states_apart(host: Any, tmp_path: Path) -> None:
    script = host()
    settings = {"save_strategy": "steps", "save_steps": 2, "max_steps": 4}
    made = [PeriodicEval(run_dir="a"), PeriodicEval(run_dir="b")]
    trainer_of(tmp_path, made, **settings).train()
    hellos = [fact["params"]["run_dir"] for fact in script.heard() if fact.get("heard") == "hello"]
    assert hellos == ["a", "b"]
    script = host()
    trainer_of(tmp_path, [PeriodicEval(run_dir="b"), PeriodicEval(run_dir="c")], **settings).train(
        resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-2")
    )
    states = [
        (f["params"]["run_dir"], f["params"]["state"]) for f in script.heard() if f.get("heard") == "hello"
    ]
    assert states[2:] == [("b", {"saved": True}), ("c", None)]


def test_goes_on_when_the_host_dies_and_never_starts_when_it_refuses(
    host: Any, window: Any, tmp_path: Path
) -> None:
    plain = trainer_of(tmp_path, [])
    plain.train()
    expected = final(plain)
    host(steps=[2], on={"step:2": [*window[:3], {"fault": "kill"}]})
    measured = trainer_of(tmp_path, [PeriodicEval(run_dir="r")])
    measured.train()
    assert_same(final(measured), expected)
    host(on={"hello": [{"fault": "error"}]})
    refused = trainer_of(tmp_path, [PeriodicEval(run_dir="r")])
    with pytest.raises(PeriodicEvalError, match="Fix it"):
        refused.train()
    assert refused.state.global_step == 0


def test_refuses_a_trainer_without_a_tokenizer(host: Any, tmp_path: Path) -> None:
    host()
    trainer = trainer_of(tmp_path, [PeriodicEval(run_dir="r")])
    trainer.callback_handler.processing_class = None
    with pytest.raises(PeriodicEvalError, match="a training without a tokenizer"):
        trainer.train()


def test_an_idle_step_takes_at_most_5_microseconds(host: Any, tmp_path: Path) -> None:
    host()
    callback = PeriodicEval(run_dir="r")
    trainer = trainer_of(tmp_path, [callback], max_steps=1)
    args, state, control = trainer.args, trainer.state, trainer.control
    callback._gate.next_step, callback._gate.quiet_until, callback._last_step = 10, time.monotonic() + 60, 10
    state.global_step, best = 5, float("inf")
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(1000):
            callback.on_step_end(args, state, control, model=None, optimizer=None)
        best = min(best, (time.perf_counter() - start) / 1000)
    assert best < 5e-6


def test_measures_the_end_once_when_the_number_of_steps_is_unknown(host: Any, tmp_path: Path) -> None:
    script = host(steps=[2])
    callback = PeriodicEval(run_dir="r")
    trainer = trainer_of(tmp_path, [callback])
    args, state, control = trainer.args, trainer.state, trainer.control
    state.max_steps = -1
    callback.on_train_begin(
        args, state, control, model=trainer.model, processing_class=trainer.processing_class
    )
    for state.global_step in (1, 2, 3):
        callback.on_step_end(args, state, control)
    callback.on_train_end(args, state, control)
    heard = [(f["heard"], f["params"].get("step")) for f in script.heard() if "heard" in f]
    assert heard[1:] == [("step", 2), ("step", 3), ("save", None), ("end", None), ("close", None)]
    assert script.heard()[0]["params"]["max_steps"] is None


@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_trains_bit_for_bit_in_trl(host: Any, window: Any, tmp_path: Path, kind: str) -> None:
    import datasets
    from peft import LoraConfig
    from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

    settings: dict[str, Any] = {
        "output_dir": str(tmp_path / "out"),
        "max_steps": 4,
        "per_device_train_batch_size": 2,
        "learning_rate": 1e-3,
        "save_strategy": "no",
        "report_to": "none",
        "use_cpu": True,
        "bf16": False,
        "disable_tqdm": True,
    }
    lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.05)

    def train(callbacks: list[Any]) -> list[Any]:
        torch.manual_seed(3)
        model, tokenizer = micro_world()
        chat = [{"role": "user", "content": "the ice"}]
        good, bad = ([{"role": "assistant", "content": text}] for text in ("melts in the sun", "sings"))
        shared: dict[str, Any] = {"processing_class": tokenizer, "peft_config": lora, "callbacks": callbacks}
        if kind == "sft":
            table = datasets.Dataset.from_list([{"messages": chat + good}] * 8)
            trainer: Any = SFTTrainer(model, args=SFTConfig(**settings), train_dataset=table, **shared)
        else:
            table = datasets.Dataset.from_list([{"prompt": chat, "chosen": good, "rejected": bad}] * 8)
            trainer = DPOTrainer(model, args=DPOConfig(**settings), train_dataset=table, **shared)
        trainer.train()
        return final(trainer)

    expected = train([])
    on_base = json.loads(json.dumps(window[2]))
    on_base["params"]["on"] = "base"
    script = host(steps=[2], on={"hello": window, "step": [*window[:4], on_base, window[4]], "end": window})
    assert_same(train([PeriodicEval(run_dir=str(tmp_path / "run"))]), expected)
    model, base = script.answers("log_likelihoods")[1:3]
    assert "error" not in base
    assert base["rows"] != model["rows"]
    assert base["rows"] == script.answers("log_likelihoods")[0]["rows"]
    assert all(part["intact"] for leave in script.answers("leave") for part in leave["result"]["evidence"])
