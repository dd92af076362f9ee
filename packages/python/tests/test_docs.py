"""Follows the pages for Python as a reader does: saves their files, and runs their commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from real import MICRO_WORLD, REPOSITORY, program, snapshots

pytestmark = pytest.mark.slow


@dataclass
class Block:
    """A code block; `file` is the name that the paragraph before it says to save it as."""

    language: str
    file: str | None
    code: str


def blocks(page: str) -> Iterator[Block]:
    text = (REPOSITORY / page).read_text()
    end = 0
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        paragraph = text[end : found.start()].rstrip().rpartition("\n\n")[2]
        saved = re.search(r"[Ss]ave this as `([^`]+)`", paragraph)
        end = found.end()
        yield Block(found[1], saved[1] if saved else None, found[2])


def command_of(line: str) -> list[str] | None:
    """Returns the command line of this repository for a line of a page; None for one that installs."""
    name, *words = line.split()
    starts = {
        "python": [sys.executable],
        "torchrun": [sys.executable, "-m", "torch.distributed.run"],
        "periodic-eval": program(),
    }
    return [*starts[name], *words] if name in starts else None


def missing_package(folder: Path, line: str) -> str | None:
    """Returns the name of a package that a page's program imports and this Python lacks."""
    code = (folder / line.split()[-1]).read_text() if line.endswith(".py") else ""
    names = re.findall(r"^(?:from|import) (\w+)", code, re.MULTILINE)
    return next(
        (name for name in names if not (folder / f"{name}.py").exists() and not find_spec(name)), None
    )


def form_of(text: str) -> str:
    """Returns a printed text without its numbers. The wheel's commands need no npx."""
    return re.sub(r"[-\u2212+]?\d[\d.]*", "#", " ".join(text.replace("npx ", "").split()))


def follow(page: str, folder: Path, replaced: Mapping[str, str] | None = None) -> dict[str, str]:
    """Follows a page in a folder.

    Returns what each command printed. A block without a language after commands is what they print: each of
    its lines must occur, with any numbers.
    """
    environment = {
        **os.environ,
        "PERIODIC_EVAL_HOST": " ".join([*program(), "live"]),
        "PYTHONPATH": str(Path(__file__).parents[1] / "src"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    printed: dict[str, str] = {}
    latest: str | None = None
    for block in blocks(page):
        code = block.code.replace("periodic_eval.MICRO_WORLD", repr(str(MICRO_WORLD)))  # in the wheel
        for written, used in (replaced or {}).items():
            code = code.replace(written, used)
        if block.file is not None:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(code)
        elif block.language == "python":
            (folder / "block.py").write_text(f"import periodic_eval\nfrom periodic_eval import *\n{code}")
            subprocess.run([sys.executable, "block.py"], cwd=folder, env=environment, check=True)
        elif block.language == "sh":
            latest = ""
            for line in filter(None, re.sub(r" *#.*", "", code).splitlines()):
                command = command_of(line)
                if command is None:
                    continue
                lacks = missing_package(folder, line)
                if lacks is not None:
                    print(f"{page}: `{line}` is skipped: {sys.executable} has no {lacks}")
                    latest = None
                    break
                result = subprocess.run(
                    command, cwd=folder, env=environment, capture_output=True, text=True, check=False
                )
                printed[line] = result.stdout + result.stderr
                latest += printed[line]
        elif block.language != "":
            latest = None
        elif latest:
            absent = [line for line in code.splitlines() if form_of(line) not in form_of(latest)]
            assert absent == [], f"{page}: {absent} are not among\n{latest}"
    return printed


def steps_of(folder: Path, run: str) -> list[int]:
    found = snapshots(folder / "runs" / run)
    assert {snapshot["status"] for snapshot in found.values()} == {"complete"}
    return sorted(step for _, step in found)


UNDISTURBED = "training undisturbed: yes"


def test_the_guide_for_trl_runs(tmp_path: Path) -> None:
    printed = follow("docs/guides/trl.md", tmp_path)
    assert UNDISTURBED in printed["python train.py"]
    assert steps_of(tmp_path, "trl") == [0, 12, 24, 36, 48, 60]
    assert UNDISTURBED in printed["periodic-eval report runs/trl"]


def test_the_guide_for_loops_runs(tmp_path: Path) -> None:
    printed = follow("docs/guides/pytorch.md", tmp_path)
    for line in ("python loop.py", "python resume.py", "python accelerated.py", "python lit.py"):
        assert line not in printed or UNDISTURBED in printed[line], line
    assert steps_of(tmp_path, "loop") == steps_of(tmp_path, "resumed") == [0, 12, 24, 36, 48, 60]
    assert steps_of(tmp_path, "accelerate") == [0, 6, 12, 18, 24, 30]


def test_the_guide_for_several_gpus_runs(tmp_path: Path) -> None:
    printed = follow("docs/guides/several-gpus.md", tmp_path)
    for name, run in (("train.py", "ddp"), ("sharded.py", "sharded")):
        line = f"torchrun --nproc-per-node 2 {name}"
        assert UNDISTURBED in printed[line], printed[line]
        assert steps_of(tmp_path, run) == [0, 4, 8, 12, 16, 20]


@pytest.mark.parametrize("page", ["README.md", "packages/python/README.md"])
def test_the_readmes_run(page: str, tmp_path: Path) -> None:
    without_ceiling = 'budget={"overhead_percent": None}, alignment=True'
    printed = follow(page, tmp_path, {"max_steps=60": "max_steps=10", "alignment=True": without_ceiling})
    assert UNDISTURBED in printed["python train.py"]
    assert UNDISTURBED in printed["periodic-eval report runs/1"]
    assert steps_of(tmp_path, "1") == [0, 0, 2, 4, 5, 6, 8, 10, 10]
