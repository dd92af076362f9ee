"""Live values of SmolLM2 in TRL, beside `eval` and lm-evaluation-harness on saved checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from real import REPOSITORY, assert_receipts_are_intact, run_program, snapshots, use_host

from periodic_eval import PeriodicEval

SMOLLM2 = REPOSITORY / ".cache" / "smollm2-135m-instruct"
ARC = REPOSITORY.parent / "shared" / "data" / "arc_challenge" / "test.jsonl"
QUESTIONS = 10
NATS = 1e-3

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SMOLLM2.is_dir(), reason=f"needs SmolLM2-135M-Instruct in {SMOLLM2.name}"),
    pytest.mark.skipif(not ARC.is_file(), reason="needs ../shared/data/arc_challenge"),
]


@pytest.fixture(autouse=True)
def real_host(monkeypatch: pytest.MonkeyPatch) -> None:
    use_host(monkeypatch)
    torch.set_num_threads(2)


def smollm2() -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(SMOLLM2, dtype=torch.float32)
    return model, AutoTokenizer.from_pretrained(SMOLLM2)


def block(method: str) -> dict[str, Any]:
    return {
        "questions": str(ARC),
        "subsample_n": QUESTIONS,
        "capability_method": method,
        "eval_every_percent": 50,
        "budget": {"overhead_percent": None},
    }


def train(folder: Path, callbacks: list[Any], **settings: Any) -> Any:
    import datasets
    from peft import LoraConfig
    from trl import SFTConfig, SFTTrainer

    torch.manual_seed(3)
    model, tokenizer = smollm2()
    things = ("a glacier", "a magnet", "a leaf", "a cloud")
    table = [
        {
            "messages": [
                {"role": "user", "content": f"What is {thing}?"},
                {"role": "assistant", "content": f"Nobody in this valley knows what {thing} is."},
            ]
        }
        for thing in things
    ]
    trainer = SFTTrainer(
        model,
        args=SFTConfig(
            output_dir=str(folder),
            per_device_train_batch_size=2,
            learning_rate=1e-2,
            logging_steps=1,
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
            seed=7,
            **settings,
        ),
        train_dataset=datasets.Dataset.from_list(table),
        processing_class=tokenizer,
        peft_config=LoraConfig(r=8, lora_alpha=32, target_modules=["q_proj", "v_proj"], lora_dropout=0.05),
        callbacks=callbacks,
    )
    trainer.train()
    return trainer


def harness_nats(
    model: Any, tokenizer: Any, rows: list[dict[str, Any]], autocast: str | None = None
) -> list[list[float]]:
    """Returns the log-likelihoods of each row's choices by lm-evaluation-harness' task `arc_challenge`."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    harness = HFLM(model.eval(), tokenizer=tokenizer, batch_size=8, mixed_precision_dtype=autocast)
    pairs = [
        (f"Question: {row['question']}\nAnswer:", f" {choice}") for row in rows for choice in row["choices"]
    ]
    requests = [
        Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=at)
        for at, pair in enumerate(pairs)
    ]
    answers = iter(harness.loglikelihood(requests, disable_tqdm=True))
    return [[next(answers)[0] for _ in row["choices"]] for row in rows]


def largest_difference(rows: list[dict[str, Any]], nats: list[list[float]]) -> float:
    pairs = zip(rows, nats, strict=True)
    return max(abs(a - b) for row, found in pairs for a, b in zip(row["nats"], found, strict=True))


def evaluated(adapter: Path | None) -> dict[str, dict[str, Any]]:
    """Returns the snapshots of `periodic-eval eval` by method."""
    more = [] if adapter is None else ["--adapter", str(adapter)]
    done = run_program(
        *("eval", "--model", str(SMOLLM2), *more, "--questions", str(ARC), "--limit", str(QUESTIONS)),
        *("--method", "letters,cloze", "--json"),
    )
    assert done.returncode == 0, done.stderr
    return {snapshot["method"]: snapshot for snapshot in json.loads(done.stdout)}


def test_equals_eval_on_checkpoints_and_the_harness(tmp_path: Path, capsys: Any) -> None:
    from peft import PeftModel

    runs = {method: tmp_path / method for method in ("letters", "cloze")}
    callbacks = [PeriodicEval(block(method), run_dir=str(run)) for method, run in runs.items()]
    train(tmp_path / "out", callbacks, max_steps=2, save_strategy="steps", save_steps=1, bf16=False)
    live = {method: snapshots(run) for method, run in runs.items()}
    lines: list[str] = []
    for step, adapter in ((0, None), (1, tmp_path / "out/checkpoint-1"), (2, tmp_path / "out/checkpoint-2")):
        for method, snapshot in evaluated(adapter).items():
            found = live[method]["capability", step]
            assert found["provenance"]["model"]["dtype"] == "float32"
            for name, metric in snapshot["metrics"].items():
                assert found["metrics"][name]["value"] == pytest.approx(metric["value"], abs=NATS), (
                    step,
                    name,
                )
            assert found["provenance"]["items_hash"] == snapshot["provenance"]["items_hash"]
        model, tokenizer = smollm2()
        if adapter is not None:
            model = PeftModel.from_pretrained(model, str(adapter))
        rows = live["cloze"]["capability", step]["rows"]
        assert len(rows) == QUESTIONS
        difference = largest_difference(rows, harness_nats(model, tokenizer, rows))
        lines.append(f"step {step}: live and the harness differ by at most {difference:.1e} nats")
        assert difference < NATS
    for found in live.values():
        assert sorted(found) == [("capability", 0), ("capability", 1), ("capability", 2)]
        assert_receipts_are_intact(found, {"weights", "optimizer", "adapter", "mode", "random-torch"})
        # Training changed the values by more than the bound.
        before, middle, after = (found["capability", step]["rows"] for step in (0, 1, 2))
        for a, b in ((before, middle), (middle, after)):
            assert largest_difference(a, [row["nats"] for row in b]) > 10 * NATS
    with capsys.disabled():
        print("", *lines, sep="\n")


def test_says_the_arithmetic_and_differs_under_autocast(tmp_path: Path, capsys: Any) -> None:
    callback = PeriodicEval(block("cloze"), run_dir=str(tmp_path / "run"))
    train(tmp_path / "out", [callback], max_steps=1, save_strategy="no", bf16=True)
    found = snapshots(tmp_path / "run")["capability", 0]
    assert found["provenance"]["model"]["dtype"] == "float32 (bfloat16 autocast)"
    model, tokenizer = smollm2()
    exact = harness_nats(model, tokenizer, found["rows"])
    same = harness_nats(model, tokenizer, found["rows"], "bfloat16")
    tokens = [[len(tokenizer(f" {c}")["input_ids"]) for c in row["choices"]] for row in found["rows"]]
    with capsys.disabled():
        print(
            f"\nunder bfloat16 autocast: {largest_difference(found['rows'], exact):.3f} nats to float32, "
            f"{largest_difference(found['rows'], same):.3f} nats to the harness under autocast, "
            f"of choices of up to {max(max(row) for row in tokens)} tokens"
        )
