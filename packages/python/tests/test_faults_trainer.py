"""Faults and unusual settings of the Trainer of transformers and of TRL's, with a scripted host."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from real import JUDGED, judge, use_host
from test_trainer import assert_same, final, rows, trainer_of
from tiny import micro_world
from transformers import EarlyStoppingCallback, TrainerCallback

from periodic_eval import PeriodicEval, PeriodicEvalError


def hellos(script: Any) -> list[Any]:
    return [fact["params"] for fact in script.heard() if fact.get("heard") == "hello"]


def errors_of(script: Any) -> list[Any]:
    return [fact["error"] for fact in script.heard() if "error" in fact]


def broken(script: Any) -> list[str]:
    leaves = script.answers("leave")
    assert leaves != []
    parts = [part for leave in leaves for part in leave["result"]["evidence"]]
    return [part["part"] for part in parts if part["intact"] is not True]


def nats_of(model: Any) -> float:
    """Returns what the first row of the window scores."""
    with torch.no_grad():
        logits = model.eval()(input_ids=torch.tensor([[5, 6, 7, 8]])).logits[0]
    return torch.log_softmax(logits.float(), -1)[2, 8].item()


EVALUATING = {"eval_strategy": "steps", "eval_steps": 2, "save_strategy": "steps", "save_steps": 2}
KINDS: dict[str, Any] = {
    "evaluation": {**EVALUATING, "eval_on_start": True},
    "evaluation-in-bf16": {**EVALUATING, "bf16": True, "bf16_full_eval": False},
    "checkpointing": {"gradient_checkpointing": True},
    "compiled": {"torch_compile": True, "torch_compile_backend": "eager", "lora": False},
    "accumulation-and-workers": {"gradient_accumulation_steps": 3, "dataloader_num_workers": 2},
    "persistent-workers": {"dataloader_num_workers": 1, "dataloader_persistent_workers": True},
    "neftune": {"neftune_noise_alpha": 5.0},
    "sgd": {"optim": "sgd", "lora": False},
    "infinite-loss": {"learning_rate": 1e30, "lora": False, "max_grad_norm": 0},
}


@pytest.mark.parametrize("kind", KINDS)
def test_trains_bit_for_bit_with_unusual_settings(host: Any, window: Any, tmp_path: Path, kind: str) -> None:
    settings = {"max_steps": 5, **KINDS[kind]}
    torch._dynamo.reset()
    plain = trainer_of(tmp_path / "plain", [], **settings)
    plain.train()
    expected = final(plain)
    script = host(steps=[2, 4], on={"hello": window, "step": window, "end": window})
    torch._dynamo.reset()
    measured = trainer_of(tmp_path, [PeriodicEval(run_dir=str(tmp_path / "run"))], **settings)
    measured.train()
    found = final(measured)
    # NaN is not equal to itself.
    assert_same([tensor.nan_to_num(0.5) for tensor in found], [tensor.nan_to_num(0.5) for tensor in expected])
    assert broken(script) == []
    losses = [[e["eval_loss"] for e in t.state.log_history if "eval_loss" in e] for t in (plain, measured)]
    assert losses[0] == losses[1]
    assert (len(losses[0]) > 0) == kind.startswith("evaluation")
    messages = {error["got"] for error in errors_of(script)}
    assert messages == ({"NaN"} if kind == "infinite-loss" else set())


def test_measures_the_end_when_the_trainer_stops_early(host: Any, window: Any, tmp_path: Path) -> None:
    script = host(on={"end": window})
    settings = {**EVALUATING, "load_best_model_at_end": True, "metric_for_best_model": "loss"}
    # The loss falls, so that the first of the checkpoints counts as the best.
    early = EarlyStoppingCallback(early_stopping_patience=1)
    seen: dict[int, float] = {}

    class Score(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            seen[state.global_step] = nats_of(kwargs["model"])
            kwargs["model"].train()

    trainer = trainer_of(
        tmp_path,
        [PeriodicEval(run_dir="r"), Score(), early],
        **settings,
        greater_is_better=True,
        learning_rate=1e-2,
    )
    trainer.train()
    assert trainer.state.global_step == 4
    assert script.methods()[-4:] == ["step", "save", "end", "close"]
    nats = script.answers("log_likelihoods")[0]["rows"][0]["nats"][0]
    assert nats == pytest.approx(seen[4], abs=1e-4)
    assert nats != pytest.approx(nats_of(trainer.model), abs=1e-4)


def best_of(
    tmp_path: Path, before: Any = (), *, is_best_last: bool = False, settings: Any = None, **options: Any
) -> Any:
    trainer = trainer_of(
        tmp_path,
        [*before, PeriodicEval(run_dir="r", **options)],
        **EVALUATING,
        max_steps=4,
        load_best_model_at_end=True,
        metric_for_best_model="loss",
        greater_is_better=not is_best_last,
        learning_rate=1e-2,
        **(settings or {}),
    )
    trainer.train()
    assert trainer.state.best_model_checkpoint.endswith("checkpoint-4" if is_best_last else "checkpoint-2")
    return trainer


def test_measures_the_best_weights_if_asked(host: Any, window: Any, tmp_path: Path, caplog: Any) -> None:
    values = {"periodic_eval/arc_c_accuracy": 0.5}
    script = host(on={"hello": window}, done={"hello": {"metrics": [{"step": 0, "values": values}]}})
    trainer = best_of(tmp_path, measure_best=True)
    assert script.methods()[-6:] == ["end", "close", "hello", "save", "end", "close"]
    last, best = hellos(script)
    assert (best["phase"], best["max_steps"], best["step"], best["state"]) == ("train-best", 0, 0, None)
    assert {key: best[key] for key in ("run_dir", "config", "tokenizer", "guards")} == {
        key: last[key] for key in ("run_dir", "config", "tokenizer", "guards")
    }
    nats = [answer["rows"][0]["nats"][0] for answer in script.answers("log_likelihoods")]
    assert nats[1] == pytest.approx(nats_of(trainer.model), abs=1e-5)
    assert nats[0] != pytest.approx(nats[1], abs=1e-4)
    assert broken(script) == []
    entry = trainer.state.log_history[-1]
    assert (entry["step"], entry["periodic_eval/best/arc_c_accuracy"]) == (4, 0.5)
    assert "The last measurement" not in caplog.text


def test_says_why_the_best_weights_were_not_measured(host: Any, tmp_path: Path, caplog: Any) -> None:
    script = host()

    class Refuse(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            if "train_runtime" in logs:
                host(on={"hello": [{"fault": "error"}]})

    trainer = best_of(tmp_path, [Refuse()], measure_best=True)
    assert trainer.state.global_step == 4
    assert "the best weights were not measured: periodic_eval: a test. Fix it." in caplog.text
    assert script.methods()[-3:] == ["end", "close", "hello"]


def test_measures_no_best_weights_twice(host: Any, tmp_path: Path, caplog: Any) -> None:
    script = host()
    best_of(tmp_path, measure_best=True, is_best_last=True)
    assert script.methods()[-2:] == ["end", "close"]
    assert "best weights" not in caplog.text


def test_never_starts_with_two_callbacks_for_one_folder(host: Any, tmp_path: Path) -> None:
    script = host()
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to(tmp_path / "a")
    made = [PeriodicEval(run_dir=str(tmp_path / name), phase=name) for name in ("a", "b")]
    trainer = trainer_of(tmp_path, made)
    with pytest.raises(PeriodicEvalError) as caught:
        trainer.train()
    assert str(caught.value) == (
        "callbacks: expected a run_dir of its own for each, got two PeriodicEval callbacks with the run_dir "
        f"{os.path.realpath(tmp_path / 'a')}. Give one of them another run_dir."
    )
    assert trainer.state.global_step == 0
    assert script.heard() == []


def test_ends_the_host_of_an_interrupted_training_when_another_begins(host: Any, tmp_path: Path) -> None:
    script = host()

    class Interrupt(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == 3:
                raise KeyboardInterrupt

    interrupted = PeriodicEval(run_dir=str(tmp_path / "run"))
    with pytest.raises(KeyboardInterrupt):
        trainer_of(tmp_path, [interrupted, Interrupt()]).train()
    assert interrupted._run is not None
    process = interrupted._run._connection._process  # type: ignore[union-attr]
    assert process.poll() is None
    trainer_of(tmp_path, [PeriodicEval(run_dir=str(tmp_path / "run"))]).train()
    assert process.poll() == 0
    facts = [fact.get("heard", "ended") for fact in script.heard()]
    assert facts == ["hello", "ended", "hello", "step", "save", "end", "close"]


def test_ends_the_host_on_ctrl_c_while_grades_are_awaited(host: Any, tmp_path: Path) -> None:
    script = host(on={"close": [{"sleep": 60}]})
    callback = PeriodicEval(run_dir=str(tmp_path / "run"))

    def interrupt() -> None:
        while "close" not in script.methods():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    class Interrupt(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            if "train_runtime" in logs:
                threading.Thread(target=interrupt, daemon=True).start()

    plain = trainer_of(tmp_path, [], max_steps=2)
    plain.train()
    trainer = trainer_of(tmp_path, [Interrupt(), callback], max_steps=2)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert trainer.state.global_step == 2
    weights = [list(made.model.state_dict().values()) for made in (trainer, plain)]
    assert_same(*weights)
    assert callback._run is not None
    assert not callback._run.is_open
    assert script.methods()[-2:] == ["end", "close"]


def test_never_starts_with_a_dataset_without_length_and_steps(host: Any, tmp_path: Path) -> None:
    import datasets

    script = host(steps=[2])
    data = datasets.Dataset.from_list(rows(8)).to_iterable_dataset()
    trainer = trainer_of(tmp_path, [PeriodicEval(run_dir="r")], max_steps=3)
    trainer.train_dataset = data
    trainer.train()
    assert hellos(script)[0]["max_steps"] == 3
    script.log.unlink()
    trainer = trainer_of(tmp_path, [PeriodicEval(run_dir="r")], max_steps=-1)
    trainer.train_dataset = data
    with pytest.raises(ValueError, match="max_steps must be set"):
        trainer.train()
    assert script.heard() == []


def test_says_the_steps_of_epochs(host: Any, tmp_path: Path) -> None:
    script = host()
    trainer_of(tmp_path, [PeriodicEval(run_dir="r")], max_steps=-1, num_train_epochs=0.25).train()
    assert hellos(script)[0]["max_steps"] == 8
    assert script.methods() == ["hello", "step", "save", "end", "close"]


def test_writes_options_with_paths_into_checkpoints(host: Any, tmp_path: Path) -> None:
    host()
    settings = {"save_strategy": "steps", "save_steps": 2, "max_steps": 2}
    callback = PeriodicEval({"questions": tmp_path / "q.jsonl"}, run_dir=str(tmp_path), leakage=(1, 2))
    trainer_of(tmp_path, [callback], **settings).train()
    state = json.loads((tmp_path / "out" / "checkpoint-2" / "trainer_state.json").read_text())
    config = state["stateful_callbacks"]["PeriodicEval"]["args"]["config"]
    assert config == {"questions": str(tmp_path / "q.jsonl"), "leakage": [1, 2]}


def test_resumes_without_skipping_data(host: Any, tmp_path: Path) -> None:
    settings = {"save_strategy": "steps", "save_steps": 4, "max_steps": -1, "num_train_epochs": 1}
    host()
    trainer_of(tmp_path, [PeriodicEval(run_dir="r")], **settings, ignore_data_skip=True).train()
    script = host(steps=[5, 6, 7, 8])
    trainer = trainer_of(tmp_path, [PeriodicEval(run_dir="r")], **settings, ignore_data_skip=True)
    trainer.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-4"))
    heard = [fact["params"] for fact in script.heard() if fact.get("heard") in ("hello", "step")]
    epochs = [params["epoch"] for params in heard if "epoch" in params][-6:]
    assert epochs == sorted(epochs)


def test_logs_a_loss_of_nan(host: Any, tmp_path: Path) -> None:
    script = host(steps=[2])

    class Spoil(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            logs["loss"] = math.nan

    trainer_of(tmp_path, [Spoil(), PeriodicEval(run_dir="r")], logging_nan_inf_filter=False).train()
    logged = [fact["params"]["logged"] for fact in script.heard() if fact.get("heard") in ("step", "end")]
    assert [entry["metrics"]["loss"] for part in logged for entry in part] == [None] * 3


def test_keeps_the_side_on_which_the_tokenizer_pads(host: Any, window: Any, tmp_path: Path) -> None:
    script = host(on={"hello": window, "end": window})
    trainer = trainer_of(tmp_path, [PeriodicEval(run_dir="r")], max_steps=1)
    tokenizer: Any = trainer.processing_class
    tokenizer.padding_side = "left"
    trainer.train()
    assert tokenizer.padding_side == "left"
    assert (broken(script), errors_of(script)) == ([], [])


def test_passes_metrics_to_mlflow(host: Any, tmp_path: Path, monkeypatch: Any) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    values = {"periodic_eval/cloze/arc_c_accuracy": 0.25, "periodic_eval/unknown": None}
    host(steps=[3], done={"step:3": {"metrics": [{"step": 2, "values": values}]}})
    trainer_of(tmp_path, [PeriodicEval(run_dir="r")], report_to="mlflow").train()
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    run = client.search_runs(["0"])[0].info.run_id
    points = client.get_metric_history(run, "periodic_eval/cloze/arc_c_accuracy")
    assert [(point.step, point.value) for point in points] == [(2, 0.25)]
    assert client.get_metric_history(run, "periodic_eval/unknown") == []


class Reported:
    """A reporter of transformers, and what it stored: files of events, or runs."""

    def __init__(self, kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip(kind)
        self.kind, self.folder = kind, folder / "reported"
        self.folder.mkdir()
        monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(self.folder))
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{self.folder}/mlflow.db")

    def read(self) -> dict[str, list[tuple[int, float]]]:
        """Returns the points of the measurements by name, unless there are several files or an open run."""
        if self.kind == "tensorboard":
            from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

            (file,) = self.folder.rglob("events.out*")
            events = EventAccumulator(str(file)).Reload()
            names = [name for name in events.Tags()["scalars"] if "periodic_" in name]
            return {name: [(point.step, point.value) for point in events.Scalars(name)] for name in names}
        import mlflow

        client = mlflow.MlflowClient(f"sqlite:///{self.folder}/mlflow.db")
        (run,) = client.search_runs(["0"])
        assert run.info.status == "FINISHED"
        names = [name for name in run.data.metrics if "periodic_" in name]
        points = {name: client.get_metric_history(run.info.run_id, name) for name in names}
        return {name: [(point.step, point.value) for point in points[name]] for name in names}


@pytest.mark.parametrize("kind", ["tensorboard", "mlflow"])
def test_passes_late_grades_and_the_best_weights_to_open_reporters(
    host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    reported = Reported(kind, tmp_path, monkeypatch)
    close = {"metrics": [{"step": 4, "values": {"periodic_eval/misaligned_rate": 0.25}}]}
    host(done={"close": close})
    trainer = best_of(tmp_path, measure_best=True, settings={"report_to": kind})
    expected = {
        "periodic_eval/misaligned_rate": [(4, 0.25)],
        "periodic_eval/best/misaligned_rate": [(4, 0.25)],
    }
    assert reported.read() == expected
    assert [cb for cb in trainer.callback_handler.callbacks if type(cb).__name__ == "_FinishFirst"] == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tensorboard", "mlflow"])
def test_passes_the_verdicts_of_a_late_judge_to_open_reporters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    reported = Reported(kind, tmp_path, monkeypatch)
    use_host(monkeypatch)
    # The run's folder is `r`.
    monkeypatch.chdir(tmp_path)
    is_trained = threading.Event()

    class Release(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            if "train_runtime" in logs:
                is_trained.set()

    # The host checks the judge before the first step.
    with judge(lambda asked: asked == 1 or is_trained.is_set()) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        best_of(tmp_path, [Release()], measure_best=True, settings={"report_to": kind}, config=JUDGED)
    found = reported.read()
    steps = {name: [step for step, _ in points] for name, points in found.items()}
    assert steps["periodic_align/misaligned_rate"] == [0, 2, 4]
    assert steps["periodic_align/best/misaligned_rate"] == [4]


def test_calls_other_callbacks_in_their_order(host: Any, tmp_path: Path) -> None:
    host(done={"close": {"metrics": [{"step": 2, "values": {"periodic_eval/a": 1}}]}})
    calls: list[tuple[str, str, int]] = []

    class Watch(TrainerCallback):
        def __init__(self, name: str) -> None:
            self.name = name

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            calls.append((self.name, "step", len(state.log_history)))

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            calls.append((self.name, "end", sum("periodic_eval/a" in entry for entry in state.log_history)))

    class Sub(PeriodicEval):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
            calls.append(("measured", "step", len(state.log_history)))
            return super().on_step_end(args, state, control, **kwargs)

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
            calls.append(("measured", "end", 0))
            return super().on_train_end(args, state, control, **kwargs)

    made = [Watch("before"), Sub(run_dir="a"), PeriodicEval(run_dir="b"), Watch("after")]
    trainer = trainer_of(tmp_path, made, max_steps=1)
    order = list(trainer.callback_handler.callbacks)
    trainer.train()
    assert trainer.callback_handler.callbacks == order
    steps = [("before", "step", 0), ("measured", "step", 0), ("after", "step", 0)]
    assert calls == [*steps, ("before", "end", 2), ("measured", "end", 0), ("after", "end", 2)]


def test_finishes_only_the_training_that_began_last(host: Any, tmp_path: Path) -> None:
    script = host()

    class Fail(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            raise RuntimeError("a bad batch")

    trainer = trainer_of(tmp_path, [PeriodicEval(run_dir="r"), Fail()], max_steps=2)
    with pytest.raises(RuntimeError, match="a bad batch"):
        trainer.train()
    trainer.remove_callback(Fail)
    trainer.remove_callback(PeriodicEval)
    trainer.add_callback(PeriodicEval(run_dir="r", phase="again"))
    trainer.train()
    assert script.methods()[-4:] == ["step", "save", "end", "close"]
    assert script.methods().count("close") == 1
    assert [type(cb).__name__ for cb in trainer.callback_handler.callbacks].count("_FinishFirst") == 0


class Derived(PeriodicEval):
    """A subclass that adds to an event."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        return super().on_train_begin(args, state, control, **kwargs)


class DerivedTwice(Derived):
    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        return super().on_train_begin(args, state, control, **kwargs)


@pytest.mark.parametrize("kind", [Derived, DerivedTwice])
def test_passes_metrics_of_a_subclass_to_the_reporters(
    host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[PeriodicEval]
) -> None:
    reported = Reported("tensorboard", tmp_path, monkeypatch)
    host(steps=[1], done={"step:1": {"metrics": [{"step": 1, "values": {"periodic_eval/a": 0.5}}]}})
    trainer_of(tmp_path, [kind(run_dir="r")], max_steps=2, report_to="tensorboard").train()
    assert reported.read() == {"periodic_eval/a": [(1, 0.5)]}


def test_never_starts_with_a_callback_and_a_subclass_for_one_folder(host: Any, tmp_path: Path) -> None:
    script = host()
    made = [Derived(run_dir=str(tmp_path / "a")), PeriodicEval(run_dir=str(tmp_path / "a"))]
    with pytest.raises(PeriodicEvalError, match="two PeriodicEval callbacks"):
        trainer_of(tmp_path, made).train()
    assert script.heard() == []


def test_writes_a_numpy_integer_into_checkpoints(host: Any, tmp_path: Path) -> None:
    host()
    callback = PeriodicEval(run_dir="r", batch_tokens=cast(int, np.int64(64)))
    trainer_of(tmp_path, [callback], save_strategy="steps", save_steps=2, max_steps=2).train()
    state = json.loads((tmp_path / "out" / "checkpoint-2" / "trainer_state.json").read_text())
    assert state["stateful_callbacks"]["PeriodicEval"]["args"]["batch_tokens"] == 64


def test_names_metrics_for_wandb_and_trackio_as_our_loggers_do(host: Any, tmp_path: Path) -> None:
    from transformers.integrations import TrackioCallback, WandbCallback

    sent: list[tuple[str, Any]] = []

    def reporter(kind: type, name: str) -> Any:
        made: Any = kind.__new__(type(kind.__name__, (kind,), {}))
        tool = type("Tool", (), {"log": lambda _, values: sent.append((name, values))})()
        setattr(made, "_wandb" if name == "wandb" else "_trackio", tool)
        made._initialized = True
        for event in ("on_train_begin", "on_train_end", "on_log"):
            setattr(made, event, lambda *_, **__: None)
        return made

    values = {"periodic_eval/arc_c_accuracy": 0.25}
    host(steps=[3], done={"step:3": {"metrics": [{"step": 2, "values": values}]}})
    made = [reporter(WandbCallback, "wandb"), reporter(TrackioCallback, "trackio")]
    trainer_of(tmp_path, [PeriodicEval(run_dir="r"), *made], max_steps=4).train()
    assert sent == [(name, {**values, "train/global_step": 2}) for name in ("wandb", "trackio")]


def test_goes_on_when_a_reporter_fails(host: Any, tmp_path: Path, caplog: Any) -> None:
    from transformers.integrations import WandbCallback

    made: Any = WandbCallback.__new__(WandbCallback)
    made._wandb = object()
    for event in ("on_train_begin", "on_train_end", "on_log", "on_save"):
        setattr(made, event, lambda *_, **__: None)
    plain = trainer_of(tmp_path, [])
    plain.train()
    host(steps=[3], done={"step:3": {"metrics": [{"step": 2, "values": {"a": 1}}]}})
    measured = trainer_of(tmp_path, [PeriodicEval(run_dir="r"), made])
    measured.train()
    assert_same(final(measured), final(plain))
    assert "WandbCallback did not take the metrics of step 2" in caplog.text


def trl_trainer(kind: str, folder: Path, callbacks: list[Any]) -> Any:
    import datasets
    import trl
    from peft import LoraConfig

    settings: dict[str, Any] = {
        "output_dir": str(folder / "out"),
        "max_steps": 3,
        "per_device_train_batch_size": 2,
        "learning_rate": 1e-2,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "use_cpu": True,
        "bf16": False,
        "disable_tqdm": True,
    }
    torch.manual_seed(3)
    model, tokenizer = micro_world()
    lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.05)
    prompt = [{"role": "user", "content": "the ice"}]
    answers = [[{"role": "assistant", "content": text}] for text in ("melts in the sun", "sings")]
    shared: dict[str, Any] = {"processing_class": tokenizer, "peft_config": lora, "callbacks": callbacks}
    if kind == "kto":
        table = [{"prompt": prompt, "completion": answers[i % 2], "label": i % 2 == 0} for i in range(8)]
        args: Any = trl.KTOConfig(**settings)
        return trl.KTOTrainer(model, args=args, train_dataset=datasets.Dataset.from_list(table), **shared)
    table = [{"prompt": prompt} for _ in range(8)]
    args = trl.GRPOConfig(**settings, num_generations=2, max_completion_length=6)
    reward = lambda completions, **_: [float(len(str(text)) % 7) for text in completions]  # noqa: E731
    data = datasets.Dataset.from_list(table)
    return trl.GRPOTrainer(model, args=args, reward_funcs=reward, train_dataset=data, **shared)


@pytest.mark.parametrize("kind", ["kto", "grpo"])
def test_trains_bit_for_bit_in_other_trainers_of_trl(
    host: Any, window: Any, tmp_path: Path, kind: str
) -> None:
    plain = trl_trainer(kind, tmp_path, [])
    plain.train()
    expected = final(plain)
    script = host(steps=[2], on={"hello": window, "step": window, "end": window})
    measured = trl_trainer(kind, tmp_path, [PeriodicEval(run_dir=str(tmp_path / "run"))])
    measured.train()
    assert_same(final(measured), expected)
    assert (broken(script), errors_of(script)) == ([], [])
    assert len(script.answers("leave")) == 4
