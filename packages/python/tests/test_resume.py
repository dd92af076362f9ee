"""A plain loop resumes from checkpoints that were written with the host, without it, and without a state."""

from __future__ import annotations

import contextlib
import copy
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from real import MICRO_WORLD, lasting, snapshots, superseded, use_host
from twin_train import seed_all, with_dropout

import periodic_eval

STEPS = 12
BLOCK: dict[str, Any] = {
    "questions": str(MICRO_WORLD / "questions.jsonl"),
    "subsample_n": 4,
    "eval_every_percent": 25,
    "traits": {"every_percent": 25},
    "budget": {"overhead_percent": None},
}

Checkpoint = dict[str, Any]


@pytest.fixture(autouse=True)
def real_host(monkeypatch: pytest.MonkeyPatch) -> None:
    use_host(monkeypatch)


def train(
    run_dir: Path,
    start: Checkpoint | None = None,
    *,
    kill_at: int = -1,
    state: bool = True,
    until: int = STEPS,
) -> dict[int, Checkpoint]:
    """Trains from a checkpoint, and kills the host after step `kill_at`. Returns the checkpoints by step.

    Ctrl-C ends the training after step `until`.
    """
    seed_all(1)
    model, tokenizer = with_dropout()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    run = periodic_eval.live(
        model, tokenizer, run_dir=str(run_dir), max_steps=STEPS, optimizer=optimizer, config=BLOCK
    )
    first = 0
    if start is not None:
        first = start["step"]
        model.load_state_dict(start["model"])
        optimizer.load_state_dict(copy.deepcopy(start["optimizer"]))
        random.setstate(start["python"])
        torch.set_rng_state(start["torch"])
        run.load_state_dict(start["run"] if state else {"step": first, "epoch": first / STEPS})
    model.train()
    checkpoints: dict[int, Checkpoint] = {}
    with contextlib.suppress(KeyboardInterrupt), run:
        for step in range(first + 1, STEPS + 1):
            ids = torch.tensor([[random.randrange(3, 1000) for _ in range(12)] for _ in range(2)])
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            run.step_end(step, epoch=step / STEPS)
            checkpoints[step] = {
                "step": step,
                "model": copy.deepcopy(model.state_dict()),
                "optimizer": copy.deepcopy(optimizer.state_dict()),
                "python": random.getstate(),
                "torch": torch.get_rng_state(),
                "run": run.state_dict() if step % 4 == 0 else None,
            }
            if step == kill_at:
                process = run._run._connection._process
                process.kill()
                process.wait()
                run._gate.quiet_until = 0.0
            if step == until < STEPS:
                raise KeyboardInterrupt
    return checkpoints


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The snapshots of a run that nothing disturbed, and its checkpoints."""
    with pytest.MonkeyPatch.context() as patch:
        use_host(patch)
        folder = tmp_path_factory.mktemp("undisturbed")
        checkpoints = train(folder)
    found = snapshots(folder)
    assert {step for _, step in found} == {0, 3, 6, 9, 12}
    return found, checkpoints


def assert_same(run_dir: Path, expected: Any, steps: set[int], failed: tuple[str, ...] = ()) -> None:
    every = snapshots(run_dir)
    assert {name for (name, _), snapshot in every.items() if snapshot["status"] == "failed"} == {*failed}
    found = {key: snapshot for key, snapshot in every.items() if key[0] not in failed}
    assert {step for _, step in found} == steps
    for key, snapshot in found.items():
        a, b = lasting(snapshot), lasting(expected[0][key])
        if steps != {0, 3, 6, 9, 12}:
            # Comparisons are with other measurements then.
            del a["paired"], b["paired"]
        assert a == b, key
    assert superseded(run_dir) == []


@pytest.mark.slow
@pytest.mark.parametrize("state", [True, False], ids=["its state", "no state"])
def test_resumes_from_a_checkpoint_with(tmp_path: Path, expected: Any, state: bool) -> None:
    # Training got to step 10, and resumes from the checkpoint of step 8.
    train(tmp_path, until=10)
    train(tmp_path, expected[1][8], state=state)
    assert_same(tmp_path, expected, {0, 3, 6, 9, 12})


@pytest.mark.slow
def test_resumes_from_a_checkpoint_that_was_written_after_the_host_died(
    tmp_path: Path, expected: Any
) -> None:
    # Its state is that of step 4, and the measurement of step 6 is newer.
    checkpoints = train(tmp_path, kill_at=7)
    assert_same(tmp_path, expected, {0, 3, 6})
    assert checkpoints[8]["run"]["live"]["host"] == checkpoints[4]["run"]["live"]["host"]
    train(tmp_path, checkpoints[8])
    assert_same(tmp_path, expected, {0, 3, 6, 9, 12})


@pytest.mark.slow
def test_measures_nothing_late_that_was_due_without_the_host(tmp_path: Path, expected: Any) -> None:
    checkpoints = train(tmp_path, kill_at=5)
    train(tmp_path, checkpoints[8])
    assert_same(tmp_path, expected, {0, 3, 9, 12})


@pytest.mark.slow
def test_measures_no_start_in_the_middle_of_a_training(tmp_path: Path, expected: Any) -> None:
    train(tmp_path, expected[1][8], state=False)
    # Nobody extracted the directions of the untrained model.
    assert_same(tmp_path, expected, {9, 12}, failed=("traits", "traits-directions"))
