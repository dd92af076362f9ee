"""Kills of the trainer and of the host at random moments, with resume from the trainer's checkpoints.

`KILLS=100 TRL_KILLS=10 python -m pytest packages/python/tests/test_kills.py` kills a plain loop 100 times and
a trainer of TRL 10 times; without the variables it is 2 and 1. KILLS_SEED repeats the moments of another run.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from real import THREE, judge, lasting, program, run_program, snapshots, superseded

Key = tuple[str, int]

STEPS = 12
BLOCKS: dict[str, dict[str, Any]] = {
    "plain": {**THREE, "subsample_n": 6, "judge_model": "openai:a-judge"},
    "trl": {**THREE, "subsample_n": 6, "baseline": "adapter_off"},
}
"""A judge whose grades arrive between the steps, and a baseline on the model without its adapter."""

SEED = int(os.environ.get("KILLS_SEED") or random.SystemRandom().randrange(2**32))


def trainings() -> Any:
    """Returns the server that forks trainings."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["kill_train"])
    return context


def train(kind: str, folder: Path, environment: dict[str, str]) -> None:
    import kill_train

    kill_train.train(kind, folder, STEPS, BLOCKS[kind], environment)


class Training:
    """A running training, with what it told."""

    def __init__(self, kind: str, folder: Path, environment: dict[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._told, self.errors = folder / "told.txt", folder / "stderr.txt"
        for path in (self._told, self.errors):
            path.write_text("")
        more = {"PERIODIC_EVAL_HOST": " ".join([*program(), "live"]), "HF_HUB_OFFLINE": "1"}
        self.step, self.seconds = -1, 0.0
        self.host: int | None = None
        self.process = trainings().Process(target=train, args=(kind, folder, {**environment, **more}))
        self.process.start()

    def _hear(self) -> None:
        for line in self._told.read_text().splitlines():
            word, _, number = line.partition(" ")
            if word == "host":
                self.host = int(number)
            else:
                self.step = int(number)

    def run(self, who: str = "nobody", number: int = 0, step: int = 0, delay: float = 0) -> bool:
        """Waits for the end, and sends a signal `delay` seconds after a step has begun.

        Returns whether the signal met a running process.
        """
        began, due, has_hit = None, None, False
        while self.process.exitcode is None:
            time.sleep(0.01)
            self._hear()
            began = began or (time.monotonic() if self.step >= 0 else None)
            if who == "nobody" or has_hit or self.step < step:
                continue
            due = due or time.monotonic() + delay
            pid = self.process.pid if who == "trainer" else self.host
            if time.monotonic() >= due and pid is not None and is_running(pid):
                os.kill(pid, number)
                has_hit = True
        self.seconds = time.monotonic() - (began or time.monotonic())
        return has_hit

    def assert_ended(self) -> None:
        assert self.process.exitcode == 0, self.errors.read_text()[-3000:]


def is_running(pid: int) -> bool:
    """Returns whether a process runs; one that ended and was not waited for does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc").is_dir()


@dataclass
class Undisturbed:
    """A run that nothing killed."""

    final: dict[str, torch.Tensor]
    snapshots: dict[tuple[str, int], dict[str, Any]]
    seconds: float


def undisturbed(kind: str, folder: Path, environment: dict[str, str]) -> Undisturbed:
    training = Training(kind, folder, environment)
    training.run()
    training.assert_ended()
    found = snapshots(folder / "run")
    assert {step for _, step in found} == {0, 3, 6, 9, 12}
    assert all(snapshot["status"] == "complete" for snapshot in found.values())
    return Undisturbed(torch.load(folder / "final.pt"), found, training.seconds)


def assert_same_weights(folder: Path, expected: Undisturbed) -> None:
    final = torch.load(folder / "final.pt")
    assert [name for name in expected.final if not torch.equal(final[name], expected.final[name])] == []


def assert_same_measurements(folder: Path, expected: Undisturbed, lost: set[Key]) -> None:
    """Fails if a snapshot is repeated or different, or missing and not `lost`."""
    run = folder / "run"
    verified = run_program("verify", str(run))
    assert verified.returncode == 0, verified.stdout + verified.stderr
    found = snapshots(run)
    assert set(expected.snapshots) - set(found) <= lost
    assert set(found) - set(expected.snapshots) == set()
    assert superseded(run) == []
    for key, snapshot in found.items():
        a, b = lasting(snapshot), lasting(expected.snapshots[key])
        if lost:
            # Comparisons are with other measurements then.
            del a["paired"], b["paired"]
        if key in lost:
            # Training resumed at this step and measured its end.
            a, b = ({name: one[name] for name in ("weights", "metrics", "rows")} for one in (a, b))
        different = {name: (a.get(name), b.get(name)) for name in {**a, **b} if a.get(name) != b.get(name)}
        assert different == {}, key


def step_of(path: Path) -> int:
    return int(path.stem.partition("-")[2])


def checkpoints(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoint-*"), key=step_of)


class Storm:
    """Kills trainings of a kind at random moments."""

    def __init__(self, kind: str, kills: int, root: Path, environment: dict[str, str]) -> None:
        self.expected = undisturbed(kind, root / f"{kind}-undisturbed", environment)
        self._environment = environment
        self.failures: list[str] = []
        self._kind, self._kills, self._root = kind, kills, root
        self._rng = random.Random(f"{SEED} {kind}")
        self._told: list[str] = []

    def run(self) -> None:
        trial = 0
        while len(self._told) < self._kills:
            trial += 1
            before = len(self._told)
            folder = self._root / f"{self._kind}-{trial}"
            try:
                self._trial(folder)
                shutil.rmtree(folder)
            except Exception as error:
                kills = "; ".join(self._told[before:]) or "without a kill"
                self.failures.append(f"{folder}: {kills}: {type(error).__name__}: {error}")
                print(f"FAILED {self.failures[-1]}", flush=True)

    def _trial(self, folder: Path) -> None:
        """Trains until the end, over kills, and compares with the undisturbed run."""
        lost: set[Key] = set()
        is_first = True
        while True:
            training = Training(self._kind, folder, self._environment)
            is_killed = len(self._told) < self._kills and (is_first or self._rng.random() < 0.5)
            is_first = False
            if not (self._kill(training) if is_killed else training.run()):
                training.assert_ended()
                break
            if training.process.exitcode == 0:
                assert training.errors.read_text().count("Measuring ends") <= 1
                assert_same_weights(folder, self.expected)
                (folder / "final.pt").unlink()
                lost |= self._take_back(folder)
        assert_same_weights(folder, self.expected)
        assert_same_measurements(folder, self.expected, lost)

    def _kill(self, training: Training) -> bool:
        """Kills the trainer or the host. Returns false if the training had ended before."""
        rng, count = self._rng, len(self._told)
        who = ("trainer", "host")[count] if count < 2 else rng.choice(("trainer", "host"))
        number = rng.choice((signal.SIGKILL, signal.SIGTERM))
        step = rng.randrange(STEPS + 1)
        # The windows at the start and at the end take longer than a step.
        delay = rng.uniform(0, self.expected.seconds / (3 if step in (0, STEPS) else 2 * STEPS))
        if not training.run(who, number, step, delay):
            return False
        self._told.append(f"{signal.Signals(number).name} to the {who} {delay:.2f} s after step {step} began")
        print(f"{self._kind} {count + 1}: {self._told[-1]}", flush=True)
        if who == "host":
            training.assert_ended()
        else:
            assert training.process.exitcode == -number, training.errors.read_text()[-3000:]
        return True

    def _take_back(self, folder: Path) -> set[Key]:
        """Removes checkpoints of a training that went on without its host, as if it had ended earlier.

        Returns the measurements that are lost, because training resumes after them.
        """
        found = snapshots(folder / "run")
        missing = [key for key in self.expected.snapshots if key not in found]
        behind = lambda path: {key for key in missing if key[1] <= step_of(path)}  # noqa: E731
        late = [path for path in checkpoints(folder) if behind(path)]
        kept = late[: self._rng.choice((0, 0, 1))]
        for path in late[len(kept) :]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return behind(kept[0]) if kept else set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "kills"),
    [("plain", int(os.environ.get("KILLS", 2))), ("trl", int(os.environ.get("TRL_KILLS", 1)))],
    ids=["plain loop", "trl"],
)
def test_loses_repeats_and_changes_no_snapshot(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str], kind: str, kills: int
) -> None:
    with capsys.disabled():
        print(f"\nKILLS_SEED={SEED}")
        with judge(lambda _: time.sleep(random.uniform(0, 0.5)) is None) as environment:
            storm = Storm(kind, kills, tmp_path_factory.mktemp(kind), environment)
            storm.run()
    assert storm.failures == []
