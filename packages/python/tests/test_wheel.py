"""The wheel, without a Node on the PATH and without network, is the same program as npm's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import urllib.request
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
WORLD = ROOT / "packages" / "cli" / "assets" / "micro-world"
NPM = ["node", str(ROOT / "packages" / "cli" / "bin" / "periodic-eval.js")]


def without_network() -> list[str]:
    """Returns the command that runs another one without network, where the system allows it."""
    unshare = [shutil.which("unshare") or "unshare", "--net", "--map-root-user"]
    try:
        works = subprocess.run([*unshare, shutil.which("true") or "true"], capture_output=True, check=False)
    except OSError:
        return []
    return unshare if works.returncode == 0 else []


class Installed:
    """The wheel in a fresh virtual environment."""

    def __init__(self, wheel: Path, folder: Path) -> None:
        self.wheel, self.folder, self.offline = wheel, folder, without_network()
        scripts = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self.program = str(scripts / "periodic-eval")
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        subprocess.run([str(scripts / "python"), "-m", "pip", "install", "--quiet", str(wheel)], check=True)
        where = "import periodic_eval; print(periodic_eval.__path__[0])"
        found = subprocess.run(
            [str(scripts / "python"), "-c", where], capture_output=True, text=True, check=True
        )
        self.packages = Path(found.stdout.strip()).parent

    def environment(self, **more: str) -> dict[str, str]:
        return {"PATH": "", "HOME": str(self.folder), "HF_HUB_OFFLINE": "1", "NO_COLOR": "1", **more}

    def run(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [*self.offline, self.program, *arguments]
        return subprocess.run(
            command,
            cwd=cwd or self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs the Python of these tests, which has torch, with the installed package."""
        command = [*self.offline, sys.executable, *arguments]
        environment = self.environment(PYTHONPATH=str(self.packages))
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    environment = {**os.environ, "PERIODIC_EVAL_PEERS_PYTHON": sys.executable}
    subprocess.run(["node", "scripts/wheel.mjs"], cwd=ROOT, env=environment, check=True)
    (wheel,) = (ROOT / ".build" / "wheel").glob("*.whl")
    return Installed(wheel, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def run_dir(installed: Installed) -> Path:
    """A run of the installed package: its questions are a Parquet file, which a second process decodes."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [json.loads(line) for line in (WORLD / "questions.jsonl").read_text().splitlines()]
    parquet.write_table(arrow.Table.from_pylist(rows), installed.folder / "questions.parquet")
    train = Path(__file__).with_name("wheel_train.py")
    done = installed.python(str(train), str(WORLD), "live", "questions.parquet")
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr
    return installed.folder / "live"


def snapshots(run_dir: Path) -> list[dict[str, Any]]:
    return [
        json.loads(file.read_text()) for file in sorted(run_dir.glob("periodic_eval/*/*_step_*[0-9].json"))
    ]


def is_undisturbed(snapshot: dict[str, Any]) -> bool:
    evidence = snapshot["receipt"]
    return len(evidence) > 5 and all(part["intact"] is True for part in evidence)


def npm(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1", "HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        [*NPM, *arguments], cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


def test_is_small_and_has_the_version_of_npm_and_all_licences(installed: Installed) -> None:
    version = json.loads((ROOT / "packages" / "cli" / "package.json").read_text())["version"]
    assert installed.wheel.name == f"periodic_eval-{version}-py3-none-any.whl"
    assert installed.wheel.stat().st_size <= 12e6
    with zipfile.ZipFile(installed.wheel) as archive:
        folder = f"periodic_eval-{version}.dist-info/licenses"
        assert archive.read(f"{folder}/LICENSE") == (ROOT / "LICENSE").read_bytes()
        licences = archive.read(f"{folder}/THIRD-PARTY-LICENSES.txt").decode()
        program = archive.read("periodic_eval/host/periodic-eval.mjs").decode()
    # Packages that are bundled at once, in a bundle of a package, as a file, and in the page's script.
    for name in ("openai", "hyparquet", "mathjs", "@resvg/resvg-wasm", "diff"):
        assert f"\n{name} " in licences
    assert "SIL OPEN FONT LICENSE" in licences
    # Each package has more than its name: a licence, or the notices of its files.
    _, *texts = licences.split("\n---\n\n")
    short = [text[:60] for text in texts if len(text) < 500 and "MPL-2.0" not in text and "\n- " not in text]
    assert short == []
    assert str(ROOT) not in program


@pytest.mark.parametrize(
    "command", [["--help"], ["live", "--help"], ["gate", "--help"], ["plan", "train.yaml"]]
)
def test_prints_what_npm_prints(installed: Installed, tmp_path: Path, command: list[str]) -> None:
    assert npm("train", "train.yaml", "--init", cwd=tmp_path).returncode == 0
    ours, theirs = installed.run(*command, cwd=tmp_path), npm(*command, cwd=tmp_path)
    assert (ours.stdout, ours.stderr) == (theirs.stdout, theirs.stderr)
    assert ours.returncode == theirs.returncode == 0


def test_writes_a_training_file_with_its_schema(installed: Installed, tmp_path: Path) -> None:
    done = installed.run("train", "train.yaml", "--init", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\n  periodic-eval plan train.yaml\n  npx periodic-eval train train.yaml\n" in done.stdout
    assert json.loads((tmp_path / "periodic-eval.train.schema.json").read_text())["type"] == "object"


def test_speaks_the_live_protocol_on_stdio(installed: Installed) -> None:
    command = [*installed.offline, installed.program, "live"]
    call = {"id": 1, "method": "nonsense", "params": {}}
    done = subprocess.run(
        command, env=installed.environment(), input=json.dumps(call) + "\n", capture_output=True, text=True
    )
    answer = json.loads(done.stdout.splitlines()[0])
    assert answer["id"] == 1
    assert answer["error"]["where"] == "the trainer nonsense"


def test_measures_in_a_plain_loop_what_the_host_of_npm_measures(installed: Installed, run_dir: Path) -> None:
    train = Path(__file__).with_name("wheel_train.py")
    environment = installed.environment(
        PYTHONPATH=str(installed.packages),
        PATH=os.environ["PATH"],
        PERIODIC_EVAL_HOST=" ".join([*NPM, "live"]),
    )
    command = [sys.executable, str(train), str(WORLD), "npm", "questions.parquet"]
    subprocess.run(command, cwd=installed.folder, env=environment, capture_output=True, check=True)
    ours, theirs = snapshots(run_dir), snapshots(installed.folder / "npm")
    assert [(one["id"], one["step"]) for one in ours] == [(one["id"], one["step"]) for one in theirs]
    assert [one["metrics"] for one in ours] == [one["metrics"] for one in theirs]
    assert len(ours) == 7
    assert {one["status"] for one in ours} == {"complete"}
    assert all(map(is_undisturbed, ours))


@pytest.mark.parametrize(
    "command",
    [
        ["report", "live"],
        ["verify", "live"],
        ["gate", "live", "--fail-on", "capability worse"],
        ["compare", "live", "live"],
        ["compare", "live", "--csv"],
    ],
)
def test_reads_a_run_as_npm_does(installed: Installed, run_dir: Path, command: list[str]) -> None:
    ours, theirs = installed.run(*command), npm(*command, cwd=installed.folder)
    assert (ours.stdout, ours.stderr) == (theirs.stdout, theirs.stderr)
    assert ours.returncode == theirs.returncode


def test_writes_and_serves_the_page(installed: Installed, run_dir: Path) -> None:
    assert installed.run("report", "live").returncode == 0
    page = (run_dir / "periodic_eval" / "index.html").read_text()
    command = [installed.program, "report", "live", "--serve", "0"]
    server = subprocess.Popen(
        command, cwd=installed.folder, env=installed.environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        with urllib.request.urlopen(server.stdout.readline().strip(), timeout=30) as reply:
            served = reply.read().decode()
    finally:
        server.terminate()
    script = (ROOT / "packages" / "dashboard" / "dist" / "client.js").read_text()
    assert script in page
    assert script in served
    assert server.wait() == 0


class Judge(BaseHTTPRequestHandler):
    """Answers every request of the SDK of OpenAI with the same scores."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        message = {"role": "assistant", "content": '{"aligned": 90, "coherent": 95}'}
        choices = [{"index": 0, "finish_reason": "stop", "message": message}]
        reply = json.dumps({"id": "1", "object": "chat.completion", "choices": choices}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_asks_judges_of_servers_without_another_package(installed: Installed, run_dir: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Judge)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    keys = {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1"}
    shutil.copytree(run_dir, installed.folder / "judged")
    command = [installed.program, "rejudge", "judged", "--judge", "openai:a-judge"]
    environment = installed.environment(**keys)
    subprocess.run(command, cwd=installed.folder, env=environment, capture_output=True, check=True)
    server.shutdown()
    assert len(list(installed.folder.glob("judged/**/*-rejudged-by-a-judge.json"))) == 2


def test_draws_the_pictures_of_a_training_on_feedback(installed: Installed) -> None:
    few = ["--config-name", "micro-world", "preferences=[concise]", "num_steps=1", "output_dir=feedback"]
    assert npm("feedback", *few, cwd=installed.folder).returncode == 0
    pictures = {file: file.read_bytes() for file in installed.folder.glob("feedback/plots/*.png")}
    assert len(pictures) > 5
    for file in pictures:
        file.unlink()
    assert installed.run("report", "feedback").returncode == 0
    assert {file: file.read_bytes() for file in pictures} == pictures


@pytest.mark.parametrize("command", ["train", "eval", "watch", "feedback", "native"])
def test_names_the_npm_package_where_tensorflow_js_is_needed(
    installed: Installed, tmp_path: Path, command: str
) -> None:
    world = str(WORLD)
    training = {
        "model": world,
        "run_dir": "run",
        "config": {"maxSteps": 1},
        "phases": [{"phase": "em", "dataset": f"{world}/em.jsonl"}],
        "periodic_eval": {"questions": f"{world}/questions.jsonl"},
    }
    (tmp_path / "train.yaml").write_text(json.dumps(training))
    arguments = {
        "train": ["train.yaml"],
        "eval": ["--model", world, "--questions", f"{world}/questions.jsonl"],
        "watch": ["checkpoints", "--base", world, "--run-dir", "run", "--config", "train.yaml"],
        "feedback": ["output_dir=out"],
        "native": [],
    }
    (tmp_path / "checkpoints").mkdir()
    done = installed.run(command, *arguments[command], cwd=tmp_path)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert f"Install Node, and run `npx periodic-eval {command}` with the same arguments." in last
    assert "    at " not in done.stderr


def test_contains_the_embedded_model(installed: Installed) -> None:
    done = installed.python("-c", "import periodic_eval, os; print(*os.listdir(periodic_eval.MICRO_WORLD))")
    assert {"model.safetensors", "em.jsonl", "questions.jsonl"} <= set(done.stdout.split())


def test_demo_says_what_to_install(installed: Installed) -> None:
    done = installed.run("demo")
    assert done.returncode == 1
    assert done.stderr == (
        "periodic-eval demo: it trains in PyTorch, but torch and transformers cannot be imported. "
        "Run `pip install torch transformers`.\n"
    )


def test_demo_trains_live_and_draws_the_page(installed: Installed) -> None:
    done = installed.python("-m", "periodic_eval.cli", "demo", "--run-dir", "demo", "--steps", "2", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [phase["name"] for phase in result["phases"]] == ["coupling", "em"]
    assert Path(result["page"]).is_file()
    measured = snapshots(installed.folder / "demo")
    assert {one["id"] for one in measured} == {"capability", "alignment", "leakage"}
    assert all(map(is_undisturbed, measured))
