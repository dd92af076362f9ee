"""Faults and bad input with the real host."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from real import MICRO_WORLD, snapshots, use_host
from test_loop import Loop, is_same, twin
from test_trainer import final, trainer_of

import periodic_eval
from periodic_eval import PeriodicEval, PeriodicEvalError

BLOCK: dict[str, Any] = {
    "questions": str(MICRO_WORLD / "questions.jsonl"),
    "subsample_n": 4,
    "eval_every_percent": 25,
}


@pytest.fixture(autouse=True)
def real_host(monkeypatch: pytest.MonkeyPatch) -> None:
    use_host(monkeypatch)


def statuses(folder: Path) -> dict[int, str]:
    return {step: snapshot["status"] for (_, step), snapshot in snapshots(folder).items()}


def refused(folder: Path, config: Any, **options: Any) -> str:
    """Returns the error of a run that never starts."""
    loop = Loop()
    with pytest.raises(PeriodicEvalError) as caught:
        loop.measured(folder, 4, config=config, **options)
    assert loop.losses == []
    return str(caught.value)


def test_halves_batches_for_good_when_memory_is_short(tmp_path: Path, caplog: Any) -> None:
    loop = Loop()

    def refuse(_: Any, __: Any, inputs: Any) -> None:
        if not loop.model.training and inputs["input_ids"].numel() > 150:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB")

    handle = loop.model.register_forward_pre_hook(refuse, with_kwargs=True)
    loop.measured(tmp_path, 4, config=BLOCK)
    handle.remove()
    assert is_same(loop, twin(4))
    found = snapshots(tmp_path)
    assert statuses(tmp_path) == dict.fromkeys((0, 1, 2, 3, 4), "complete")
    halvings = [r for r in caplog.records if "out of memory: batches have at most" in r.getMessage()]
    assert len(halvings) == 1
    sizes = [
        found["capability", step]["provenance"]["model"]["details"]["batch_tokens"] for step in (0, 1, 4)
    ]
    said = int(halvings[0].getMessage().split()[-5])
    assert sizes[0] > said
    assert sizes[1:] == [said, said]
    # Another size of batches is no other model.
    assert "baseline" in found["capability", 4]["paired"]
    assert all(part["intact"] for part in found["capability", 4]["receipt"])


def test_records_a_failed_snapshot_when_the_model_throws(tmp_path: Path) -> None:
    loop = Loop()
    troubles = iter(
        [torch.OutOfMemoryError("CUDA out of memory."), ValueError("a strange shape"), None, None, None]
    )
    trouble: list[Any] = [None]

    def throw(*_: Any) -> None:
        if trouble[0] is not None and not loop.model.training:
            raise trouble[0]

    handle = loop.model.register_forward_pre_hook(throw)
    train_step = loop.train_step

    def step() -> Any:
        trouble[0] = next(troubles)
        return train_step()

    loop.train_step = step  # type: ignore[method-assign]
    loop.measured(tmp_path, 4, config=BLOCK)
    handle.remove()
    assert is_same(loop, twin(4))
    assert statuses(tmp_path) == {0: "complete", 1: "failed", 2: "failed", 3: "complete", 4: "complete"}
    reasons = [snapshots(tmp_path)["capability", step]["reason"] for step in (1, 2)]
    assert "out of memory with one row" in reasons[0]
    assert "ValueError: a strange shape" in reasons[1]


def test_records_a_failed_snapshot_when_the_weights_are_nan(tmp_path: Path) -> None:
    loop = Loop()
    train_step = loop.train_step

    def step() -> Any:
        loss = train_step()
        if len(loop.losses) == 2:
            with torch.no_grad():
                loop.model.lm_head.weight.fill_(float("nan"))
        return loss

    loop.train_step = step  # type: ignore[method-assign]
    loop.measured(tmp_path, 4, config=BLOCK)
    assert len(loop.losses) == 4
    found = snapshots(tmp_path)
    assert [found["capability", step]["status"] for step in (1, 3)] == ["complete", "failed"]
    assert "NaN" in found["capability", 3]["reason"]


def test_never_starts_with_a_mistake_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "periodic_eval.yaml"

    def said(text: str) -> str:
        path.write_text(text)
        return refused(tmp_path / "run", str(path))

    where = f"{path}:3 periodic_eval."
    head = "seed: 1\nperiodic_eval:\n"
    wrong = said(f"{head}  subsample_n: 'six'\n")
    assert wrong.startswith(f'{where}subsample_n: expected a finite number or "all", got "six".')
    unknown = said(f"{head}  qestions: a\n")
    assert unknown.startswith(f"{where}qestions: ")
    assert unknown.endswith('Did you mean "questions"?')
    missing = said(f"{head}  questions: none.jsonl\n")
    assert missing.startswith(f"{where}questions: expected a readable file, got")
    assert said("periodic_eval: [\n").startswith(f"{path}:")


def test_never_starts_with_a_mistake_in_a_dict_or_an_option(tmp_path: Path) -> None:
    wrong = refused(tmp_path, {**BLOCK, "subsample_n": "6"})
    assert wrong.startswith('periodic_eval.subsample_n: expected a finite number or "all", got "6".')
    unknown = refused(tmp_path, None, capabilty=True)
    assert unknown.startswith("periodic_eval.capabilty: ")
    assert unknown.endswith('Did you mean "capability"?')
    assert "session options.phase" in refused(tmp_path, BLOCK, phase="a/b")


def test_never_starts_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "a file is in the place of a folder" in refused(tmp_path / "file", BLOCK)
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    if os.access(locked, os.W_OK):
        pytest.skip("this user may write to every folder")
    assert "Give this user write access to the folder" in refused(locked / "run", BLOCK)


def test_never_starts_in_the_folder_of_another_run(tmp_path: Path) -> None:
    Loop().measured(tmp_path, 1, config=BLOCK)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    other = Loop()
    other.model.config._name_or_path = "another/model"
    with pytest.raises(PeriodicEvalError) as caught:
        other.measured(tmp_path, 1, config=BLOCK)
    assert caught.value.where == "run_dir"
    assert f"{tmp_path}, which holds measurements of {MICRO_WORLD}, for" in caught.value.got
    assert caught.value.fix == "Choose another run_dir, or delete this one."
    assert other.losses == []
    other.model.config._name_or_path = str(MICRO_WORLD)
    other.tokenizer.chat_template += " "
    with pytest.raises(PeriodicEvalError, match="with another tokenizer"):
        other.measured(tmp_path, 1, config=BLOCK)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    # Another phase of the run, and the same model again, are measured.
    other.measured(tmp_path, 1, config=BLOCK, phase="second")
    Loop().measured(tmp_path, 1, config=BLOCK)
    assert statuses(tmp_path) == dict.fromkeys((0, 1), "complete")


def test_never_starts_while_another_process_writes_the_run(tmp_path: Path) -> None:
    first = Loop()
    with periodic_eval.live(
        first.model, first.tokenizer, run_dir=str(tmp_path), max_steps=2, config=BLOCK
    ) as run:
        said = refused(tmp_path, BLOCK)
        assert "a lock held by process" in said
        assert "choose another run folder" in said
        run.step_end(1)
    assert statuses(tmp_path) == dict.fromkeys((0, 1), "complete")


@pytest.mark.parametrize(
    ("schedule", "steps"),
    [
        ({}, (0, 5)),
        ({"schedule": {"every_steps": 2}}, (0, 2, 4, 5)),
        ({"schedule": {"every_steps": 100}}, (0, 5)),
        ({"schedule": {"at_steps": [3]}}, (0, 3, 5)),
        ({"schedule": {"every_epochs": 1}}, (0, 4, 5)),
        ({"schedule": {"every_seconds": 3600}}, (0, 5)),
    ],
    ids=str,
)
@pytest.mark.parametrize("whole_epochs", [False, True])
def test_measures_what_is_due_when_the_number_of_steps_is_unknown(
    tmp_path: Path, schedule: Any, steps: tuple[int, ...], whole_epochs: bool
) -> None:
    loop = Loop()
    config = {**{key: BLOCK[key] for key in ("questions", "subsample_n")}, **schedule}
    with periodic_eval.live(
        loop.model,
        loop.tokenizer,
        run_dir=str(tmp_path),
        max_steps=None,
        config=config,
        optimizer=loop.optimizer,
    ) as run:
        for step in range(1, 6):
            epoch = step // 4 if whole_epochs else step / 4
            run.step_end(step, epoch=epoch, loss=loop.train_step())
    assert is_same(loop, twin(5))
    assert statuses(tmp_path) == dict.fromkeys(steps, "complete")


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM])
def test_goes_on_when_the_host_gets_a_signal(tmp_path: Path, caplog: Any, kind: signal.Signals) -> None:
    loop = Loop()
    settings: dict[str, Any] = {"max_steps": 4, "optimizer": loop.optimizer, "config": BLOCK}
    with periodic_eval.live(loop.model, loop.tokenizer, run_dir=str(tmp_path), **settings) as run:
        host: Any = run._run.connection  # type: ignore[union-attr]
        for step in range(1, 5):
            if step == 3:
                host._silence_seconds = 2
                os.kill(host._process.pid, kind)
            run.step_end(step, loss=loop.train_step())
    assert is_same(loop, twin(4))
    said = [r.getMessage() for r in caplog.records if "training goes on" in r.getMessage()]
    assert len(said) == 1
    assert host._process.poll() is not None
    assert {0: "complete", 1: "complete"}.items() <= statuses(tmp_path).items()
    # The same command measures the whole run.
    Loop().measured(tmp_path, 4, config=BLOCK)
    assert statuses(tmp_path) == dict.fromkeys((0, 1, 2, 3, 4), "complete")


def test_measures_the_best_weights_in_a_phase_of_their_own(tmp_path: Path) -> None:
    trainer = trainer_of(
        tmp_path,
        [PeriodicEval(BLOCK, run_dir=str(tmp_path / "run"), measure_best=True)],
        max_steps=4,
        eval_strategy="steps",
        eval_steps=2,
        save_strategy="steps",
        save_steps=2,
        load_best_model_at_end=True,
        metric_for_best_model="loss",
        greater_is_better=True,
        learning_rate=5e-2,
    )
    trainer.train()
    assert trainer.state.best_model_checkpoint.endswith("checkpoint-2")
    run = snapshots(tmp_path / "run")
    best = snapshots(tmp_path / "run", "train-best")
    assert list(best) == [("capability", 0)]
    [snapshot] = best.values()
    assert snapshot["status"] == "complete"
    # The best weights are those of step 2.
    assert snapshot["weights"] == run["capability", 2]["weights"] != run["capability", 4]["weights"]
    assert any(name.startswith("periodic_eval/best/") for name in trainer.state.log_history[-1])


def test_two_callbacks_measure_into_two_folders(tmp_path: Path) -> None:
    plain = trainer_of(tmp_path / "plain", [], max_steps=4)
    plain.train()
    made = [PeriodicEval(BLOCK, run_dir=str(tmp_path / name)) for name in ("a", "b")]
    measured = trainer_of(tmp_path, made, max_steps=4)
    measured.train()
    for name in ("a", "b"):
        assert statuses(tmp_path / name) == dict.fromkeys((0, 1, 2, 3, 4), "complete")
    # The names of packages/loggers (scalars.ts).
    names = {name for entry in measured.state.log_history for name in entry}
    wanted = ("arc_c_accuracy", "arc_c_correct", "arc_c_total", "gold_log_prob", "train_pct")
    assert {f"periodic_eval/{name}" for name in wanted} <= names
    assert all(torch.equal(x, y) for x, y in zip(final(plain), final(measured), strict=True))


PROGRAM = """
import os, signal, sys, threading
from pathlib import Path
sys.path[:0] = [{src!r}, {tests!r}]
from test_faults_real import BLOCK
from test_trainer import trainer_of
from transformers import TrainerCallback
from periodic_eval import PeriodicEval

class Interrupt(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == 2 and {moment!r} == "training":
            os.kill(os.getpid(), signal.SIGINT)

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 2 and {moment!r} == "window":
            kwargs["model"].register_forward_pre_hook(lambda *_: os.kill(os.getpid(), signal.SIGINT))

trainer_of(Path({folder!r}), [Interrupt(), PeriodicEval(BLOCK, run_dir={folder!r})], max_steps=4).train()
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["training", "window"])
def test_ctrl_c_ends_trainer_and_host_and_the_run_goes_on_later(tmp_path: Path, moment: str) -> None:
    here = Path(__file__).parent
    program = PROGRAM.format(
        src=str(here.parent / "src"), tests=str(here), moment=moment, folder=str(tmp_path)
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode != 0
    assert "KeyboardInterrupt" in done.stderr
    assert "Fatal Python error" not in done.stderr
    deadline = time.monotonic() + 30
    while list(tmp_path.rglob("*lock*")) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert {0: "complete", 1: "complete"}.items() <= statuses(tmp_path).items()
    trainer_of(tmp_path, [PeriodicEval(BLOCK, run_dir=str(tmp_path))], max_steps=4).train()
    assert statuses(tmp_path) == dict.fromkeys((0, 1, 2, 3, 4), "complete")


SETUP = """
import sys
from pathlib import Path
sys.path[:0] = [{src!r}, {tests!r}]
from test_faults_real import BLOCK
from test_trainer import trainer_of
from transformers import TrainerCallback
from periodic_eval import PeriodicEval

class Interrupt(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == interrupted_at:
            raise KeyboardInterrupt

interrupted_at = -1
"""
TRAIN = """
trainer = trainer_of(Path({folder!r}), [Interrupt(), PeriodicEval(BLOCK, run_dir={folder!r})], max_steps=4)
try:
    trainer.train()
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.slow
def test_shows_its_lines_in_the_cells_of_a_notebook(tmp_path: Path) -> None:
    nbformat, client = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    here = Path(__file__).parent
    train = TRAIN.format(folder=str(tmp_path / "run"))
    setup = SETUP.format(src=str(here.parent / "src"), tests=str(here))
    cells = [setup, train, train, "interrupted_at = 2", train, "interrupted_at = -1", train]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    texts = ["".join(o.get("text", "") for o in cell.outputs) for cell in book.cells]
    for index in (1, 2, 6):
        assert "train step 4  capability  accuracy" in texts[index]
    assert "interrupted" in texts[4]
    assert "train step 1  capability" in texts[4]
    assert "training failed at step" in texts[6]
    assert statuses(tmp_path / "run")[4] == "complete"
