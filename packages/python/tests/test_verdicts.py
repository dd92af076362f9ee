"""A judge behind HTTP that answers late: a verdict between windows ends training, an error waits for none."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from real import JUDGED, judge, program, snapshots
from test_twins import launch
from twin_train import Wakes, seed_all, train_loop, with_dropout

import periodic_eval

BLOCK: dict[str, Any] = {**JUDGED, "budget": {"overhead_percent": None}}


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Returns the file at whose appearance the judge answers. The check before the first step needs none."""
    node = program()[0]
    monkeypatch.setenv("PERIODIC_EVAL_HOST", f"{node} {Path(__file__).with_name('judged-host.mjs')}")
    file = tmp_path / "released"
    with judge(lambda asked: asked == 1 or file.exists()) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield file
        file.touch()


@pytest.mark.slow
def test_ends_one_process_at_the_next_step(tmp_path: Path, released: Path) -> None:
    seed_all(1)
    model, tokenizer = with_dropout()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    wakes = Wakes()

    def watch(step: int) -> None:
        time.sleep(0.05)
        if step == 7:
            released.touch()
        wakes.step = step

    losses, run = train_loop(model, tokenizer, optimizer, tmp_path / "run", BLOCK, 1000, watch)
    assert run.stop == "a verdict on step 0"
    # Step 7 ended before the judge answered. The verdict may arrive between `watch` and `step_end` of a step.
    assert wakes.steps[0] >= 7
    assert len(losses) - wakes.steps[0] in (0, 1)
    found = snapshots(tmp_path / "run")
    assert found["alignment", 0]["status"] == "complete"
    assert found["alignment", 0]["metrics"]["misaligned_rate"]["value"] == 1
    assert set(found) == {("alignment", 0), ("alignment", len(losses))}


@pytest.mark.slow
def test_ends_at_the_next_step_when_a_checkpoint_is_saved_after_the_verdict(
    tmp_path: Path, released: Path
) -> None:
    model, tokenizer = with_dropout()
    run = periodic_eval.live(model, tokenizer, run_dir=str(tmp_path / "run"), max_steps=1000, config=BLOCK)
    wakes = Wakes()
    with run:
        run.step_end(1)
        released.touch()
        while not wakes.steps:
            time.sleep(0.01)
        run.state_dict()
        run.step_end(2)
        assert run.stop == "a verdict on step 0"


@pytest.mark.slow
def test_ends_all_ranks_at_the_next_logging_step(tmp_path: Path, released: Path) -> None:
    options = {"pause": 0.05, "release": [7, str(released)], "steps": 1000, "sync_every": 5}
    done = launch("ddp", tmp_path, BLOCK, options)
    assert done.returncode == 0, done.stderr[-3000:]
    ranks = [json.loads((tmp_path / f"measured-{rank}.json").read_text()) for rank in (0, 1)]
    assert [rank["stop"] for rank in ranks] == ["a verdict on step 0"] * 2
    steps, wakes = ranks[0]["steps"], ranks[0]["wakes"]
    assert ranks[1]["steps"] == steps
    assert steps % 5 == 0
    assert wakes[0] >= 7
    assert 0 <= steps - wakes[0] <= 5


@pytest.mark.slow
def test_an_error_of_the_loop_waits_for_no_judge(tmp_path: Path, released: Path) -> None:
    model, tokenizer = with_dropout()

    def run_of(steps: int) -> Any:
        folder = str(tmp_path / "run")
        return periodic_eval.live(model, tokenizer, run_dir=folder, max_steps=steps, config=BLOCK)

    with pytest.raises(ValueError, match="a bad batch"), run_of(2) as run:
        run.step_end(1)
        raise ValueError("a bad batch")
    assert not released.exists()
    assert snapshots(tmp_path / "run")["alignment", 0]["status"] == "grading"
    released.touch()
    with run_of(2) as run:
        run.step_end(1)
    assert snapshots(tmp_path / "run")["alignment", 0]["status"] == "complete"


@pytest.mark.slow
def test_an_error_of_one_rank_waits_for_no_judge(tmp_path: Path, released: Path) -> None:
    options = {"pause": 0.05, "raise": [1, 7], "steps": 1000, "sync_every": 5}
    done = launch("ddp", tmp_path, BLOCK, options)
    assert done.returncode != 0
    assert "RuntimeError: a bad batch" in done.stderr
    assert not released.exists()
    assert snapshots(tmp_path / "run")["alignment", 0]["status"] == "grading"
