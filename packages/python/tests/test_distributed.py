"""Two processes on gloo, with DDP and with FSDP2."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from letters import Letters
from tiny import random_model

from periodic_eval import PeriodicEvalError
from periodic_eval.distributed import Ranks, refuse_unsupported
from periodic_eval.run import LiveRun, Training

RANKS = 2


def launch(
    kind: str, folder: Path, measured: str, pause: float = 0, fault: str = ""
) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        str(RANKS),
        "--master-port",
        "0",
    ]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    script = Path(__file__).with_name("ddp_train.py")
    return subprocess.run(
        [*command, str(script), kind, str(folder), measured, str(pause), fault],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def results(folder: Path, measured: str) -> tuple[list[list[torch.Tensor]], list[dict[str, int]]]:
    tensors = [torch.load(folder / f"{measured}-{rank}.pt") for rank in range(RANKS)]
    return tensors, [json.loads((folder / f"{measured}-{rank}.json").read_text()) for rank in range(RANKS)]


def measurement(rows: int) -> list[dict[str, Any]]:
    rng = random.Random(0)
    ids = lambda count: [rng.randrange(3, 64) for _ in range(count)]  # noqa: E731
    scored = [{"context": ids(rng.randrange(2, 20)), "continuation": ids(2)} for _ in range(rows)]
    written = [
        {"prompt": ids(rng.randrange(1, 9)), "max_new_tokens": count, "temperature": 1, "seed": str(count)}
        for count in (1, 7, 3, 12, 2)
    ]
    return [
        {"call": "enter", "params": {"seed": "s"}},
        {"call": "log_likelihoods", "params": {"on": "model", "greedy_ids": False, "rows": scored}},
        {"call": "generate", "params": {"on": "model", "rows": written}},
        {"call": "leave", "params": {}},
    ]


@pytest.mark.parametrize("kind", ["ddp", "fsdp2"])
def test_two_processes_train_bit_for_bit_and_share_the_rows(host: Any, tmp_path: Path, kind: str) -> None:
    plain = launch(kind, tmp_path, "plain")
    assert plain.returncode == 0, plain.stderr[-3000:]
    window = measurement(9)
    script = host(steps=[3], on={"hello": window, "step:3": window})
    measured = launch(kind, tmp_path, "measured")
    assert measured.returncode == 0, measured.stderr[-3000:]
    expected, _ = results(tmp_path, "plain")
    found, counts = results(tmp_path, "measured")
    for a, b in zip(expected, found, strict=True):
        assert len(a) == len(b)
        assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    assert script.heard()[0]["params"]["ranks"] == 2
    for leave in script.answers("leave"):
        assert [part["part"] for part in leave["result"]["evidence"] if part["intact"] is not True] == []
    first, second = script.answers("log_likelihoods")
    assert len(first["rows"]) == len(second["rows"]) == 9
    # The untrained model in this process gives the same numbers.
    model = random_model("llama")
    scored = window[1]["params"]["rows"]
    torch.manual_seed(0)
    if kind == "ddp":
        for row, answer in zip(scored, first["rows"], strict=True):
            with torch.no_grad():
                logits = model(torch.tensor([row["context"] + row["continuation"]])).logits[0]
            nats = torch.log_softmax(logits, dim=-1)[len(row["context"]) - 1, row["continuation"][0]].item()
            assert answer["nats"][0] == pytest.approx(nats, abs=1e-4)
    assert [
        len(row["ids"]) <= count
        for row, count in zip(script.answers("generate")[0]["rows"], (1, 7, 3, 12, 2), strict=True)
    ] == [True] * 5
    if kind == "ddp":
        # Two windows of 9 rows to score; a row that writes n tokens is in n forward passes.
        assert all(count["rows"] <= 2 * (5 + 1 + 12 * 3) for count in counts)
    else:
        assert counts[0]["passes"] == counts[1]["passes"]


def test_two_processes_train_bit_for_bit_in_the_trainer(host: Any, tmp_path: Path) -> None:
    plain = launch("trainer", tmp_path, "plain")
    assert plain.returncode == 0, plain.stderr[-3000:]
    window = measurement(9)
    script = host(steps=[3], on={"hello": window, "step:3": window, "end": window})
    measured = launch("trainer", tmp_path, "measured")
    assert measured.returncode == 0, measured.stderr[-3000:]
    expected, _ = results(tmp_path, "plain")
    found, _ = results(tmp_path, "measured")
    for a, b in zip(expected, found, strict=True):
        assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    assert script.methods() == ["hello", "step", "save", "step", "save", "end", "close"]
    leaves = script.answers("leave")
    assert [
        part["part"] for leave in leaves for part in leave["result"]["evidence"] if not part["intact"]
    ] == []
    state = json.loads((tmp_path / "measured" / "out" / "checkpoint-4" / "trainer_state.json").read_text())
    assert state["stateful_callbacks"]["PeriodicEval"]["attributes"]["saved"]["host"] == {"saved": True}


def test_stops_all_ranks_at_the_same_step_after_a_wake(host: Any, tmp_path: Path) -> None:
    script = host(on={"hello": [{"later": 0.3, "notice": "wake"}]}, done={"step": {"stop": "a verdict"}})
    measured = launch("ddp", tmp_path, "measured", 0.2)
    assert measured.returncode == 0, measured.stderr[-3000:]
    _, counts = results(tmp_path, "measured")
    assert counts[0]["steps"] == counts[1]["steps"] < 8
    assert counts[0]["steps"] % 2 == 0
    assert script.methods() == ["hello", "step", "save", "end", "close"]


@pytest.mark.parametrize("fault", ["kill", "nonsense"])
def test_all_ranks_go_on_when_the_host_dies_in_a_window(host: Any, tmp_path: Path, fault: str) -> None:
    plain = launch("ddp", tmp_path, "plain")
    assert plain.returncode == 0, plain.stderr[-3000:]
    host(steps=[3], on={"step:3": [*measurement(4)[:2], {"fault": fault}]})
    measured = launch("ddp", tmp_path, "measured")
    assert measured.returncode == 0, measured.stderr[-3000:]
    expected, _ = results(tmp_path, "plain")
    found, _ = results(tmp_path, "measured")
    for a, b in zip(expected, found, strict=True):
        assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    assert measured.stderr.count("Measuring ends, and training goes on") == 1


@pytest.mark.parametrize(("kind", "error"), [("ddp", None), ("fsdp2", "memory")])
def test_reports_smaller_batches_of_another_rank_and_repeats_no_pass_in_lockstep(
    host: Any, tmp_path: Path, kind: str, error: str | None
) -> None:
    window = measurement(9)
    script = host(on={"hello": window, "end": window})
    measured = launch(kind, tmp_path, "measured", fault="memory")
    assert measured.returncode == 0, measured.stderr[-3000:]
    first, second = script.answers("log_likelihoods")
    assert first.get("error", {}).get("code") == error
    assert len(second["rows"]) == 9
    tokens = [leave["result"]["details"]["batch_tokens"] for leave in script.answers("leave")]
    assert tokens[0] == tokens[1] < 512
    assert measured.stderr.count("out of memory: batches have at most") == 1


def test_all_ranks_go_on_when_the_model_of_a_row_and_of_an_idle_pass_raises(
    host: Any, tmp_path: Path
) -> None:
    script = host(on={"hello": measurement(1), "end": measurement(1)})
    measured = launch("fsdp2", tmp_path, "measured", fault="model")
    assert measured.returncode == 0, measured.stderr[-3000:]
    assert [answer["error"]["code"] for answer in script.answers("log_likelihoods")] == ["model", "model"]
    assert len(script.answers("leave")) == 2


def test_a_change_and_a_failed_guard_of_one_rank_are_evidence(host: Any, tmp_path: Path) -> None:
    script = host(on={"end": measurement(4)})
    measured = launch("fsdp2", tmp_path, "measured", fault="guard")
    assert measured.returncode == 0, measured.stderr[-3000:]
    (leave,) = script.answers("leave")
    found = {part["part"]: (part["intact"], part.get("note")) for part in leave["result"]["evidence"]}
    assert found["optimizer"] == (False, "changed on rank 1")
    assert found["weights"] == (None, "not observed: ValueError: a test")


def test_all_ranks_go_on_when_a_message_cannot_be_sent(host: Any, tmp_path: Path) -> None:
    host(steps=[3])
    measured = launch("ddp", tmp_path, "measured", fault="message")
    assert measured.returncode == 0, measured.stderr[-3000:]
    assert measured.stderr.count("Measuring ends, and training goes on") == 1


def test_all_ranks_go_on_when_the_host_dies_while_rows_of_several_blocks_are_sent(
    host: Any, tmp_path: Path
) -> None:
    host(on={"step:3": measurement(9)}, steps=[3])
    measured = launch("ddp", tmp_path, "measured", fault="sending")
    assert measured.returncode == 0, measured.stderr[-3000:]
    assert measured.stderr.count("Measuring ends, and training goes on") == 1
    _, counts = results(tmp_path, "measured")
    assert [count["steps"] for count in counts] == [8, 8]


@pytest.mark.parametrize("kind", ["ddp", "fsdp2"])
def test_an_error_while_one_rank_begins_a_call_is_an_error_on_all(
    host: Any, tmp_path: Path, kind: str
) -> None:
    script = host(on={"hello": measurement(4), "end": measurement(4)})
    measured = launch(kind, tmp_path, "measured", fault="window")
    assert measured.returncode == 0, measured.stderr[-3000:]
    first, second = script.answers("enter")
    assert (first["error"]["code"], "error" in second) == ("memory", False)
    assert "error" not in script.answers("leave")[1]


def test_counts_the_tokens_of_all_ranks(host: Any, tmp_path: Path) -> None:
    script = host(on={"hello": measurement(9)})
    measured = launch("ddp", tmp_path, "measured")
    assert measured.returncode == 0, measured.stderr[-3000:]
    (answer,) = script.answers("log_likelihoods")
    rows = measurement(9)[1]["params"]["rows"]
    # The last token of a row is scored and not read; a first call reads two rows more, to check the mask.
    read = sum(len(row["context"]) + len(row["continuation"]) - 1 for row in rows)
    assert answer["progress"][-1] >= read


def test_tells_all_ranks_of_a_block_that_json_cannot_write(
    host: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    script = host()
    told: list[Any] = []

    class Two(Ranks):
        size = 2

        def broadcast(self, value: Any) -> Any:
            told.append(value)
            return value

    monkeypatch.setattr("periodic_eval.run.find_ranks", Two)
    run = LiveRun(Training(random_model("llama"), Letters()), {"limit": {1}}, str(tmp_path), "train")
    with pytest.raises(PeriodicEvalError, match="hello: TypeError: Object of type set"):
        run.begin()
    assert told[-1][0] == "error"
    assert script.methods() == []


def test_shares_rows_evenly_and_in_order() -> None:
    for size in (1, 2, 3, 7):
        for count in (0, 1, 5, 64, 65):
            shares: list[int] = []
            for rank in range(size):
                ranks = Ranks()
                ranks.size, ranks.rank = size, rank
                assert len(ranks.share(count)) <= -(-count // size)
                shares += ranks.share(count)
            assert shares == list(range(count))


def test_refuses_what_this_process_cannot_run() -> None:
    model = random_model("llama")
    refuse_unsupported(model)
    model.hf_device_map = {"model": 0, "lm_head": "cpu"}
    with pytest.raises(
        PeriodicEvalError,
        match=r"offloaded while it trains. Measure its checkpoints with `periodic-eval watch`",
    ):
        refuse_unsupported(model)
    sharded: Any = random_model("llama")
    next(sharded.parameters()).device_mesh = SimpleNamespace(device_type="cuda", mesh_dim_names=None)
    with pytest.raises(PeriodicEvalError, match="offloaded while it trains"):
        refuse_unsupported(sharded)
    with pytest.raises(PeriodicEvalError, match="hold no numbers"):
        refuse_unsupported(torch.nn.Linear(2, 2, device="meta"))
    wrapper = type("FullyShardedDataParallel", (torch.nn.Module,), {})
    with pytest.raises(PeriodicEvalError, match="FSDP of version 1"):
        refuse_unsupported(torch.nn.Sequential(wrapper()))
