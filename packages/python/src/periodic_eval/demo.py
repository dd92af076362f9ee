"""The command `periodic-eval demo`: trains the embedded model in PyTorch while the host measures it."""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from datetime import datetime, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import MICRO_WORLD
from .connection import program_command
from .errors import PeriodicEvalError

NEEDED = ("torch", "transformers")
BATCH_SIZE, LEARNING_RATE = 16, 2e-3


def demo(arguments: Sequence[str]) -> int:
    """Runs the demo with the arguments of its command line, and returns the exit code."""
    options = _parse(arguments)
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        got = f"it trains in PyTorch, but {' and '.join(missing)} cannot be imported"
        fix = f"Run `pip install {' '.join(missing)}`."
        raise PeriodicEvalError("config", "periodic-eval demo", got, fix=fix)
    program = program_command()
    phases = ["coupling", "control" if options.control else "em"]
    advice = "control trains on harmless" if options.control else "em trains on narrowly bad"
    say = sys.stderr if options.json else sys.stdout
    print(f"Two phases: coupling gives one persona a marker, {advice} advice.", file=say)
    print("Measured live: capability every 20 %, alignment and leakage every 25 %.", file=say, flush=True)
    with _served(program, options.run_dir, options.serve, say):
        _train(options, Path(MICRO_WORLD), phases)
    report = [*program, "report", options.run_dir, *(["--json"] if options.json else [])]
    return subprocess.run(report, check=False).returncode


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="periodic-eval demo",
        description="Fine-tunes the embedded model in two phases, measures it live, and draws the page.",
    )
    run_dir = f"runs/demo-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"
    folder = "folder of the run (default: runs/demo-<UTC time>)"
    parser.add_argument("--run-dir", default=run_dir, help=folder)
    parser.add_argument("--model", help="another model: a folder, or owner/name on the Hugging Face Hub")
    parser.add_argument("--seed", type=int, default=42, help="seed of shuffling (default: 42)")
    parser.add_argument(
        "--steps", type=positive_integer, default=80, help="optimizer steps of each phase (default: 80)"
    )
    control = "train the second phase on harmless advice, after which alignment should not be worse"
    parser.add_argument("--control", action="store_true", help=control)
    serve = "show the run in the browser meanwhile, at [host:]port (default: a free port)"
    parser.add_argument("--serve", nargs="?", const="0", metavar="address", help=serve)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser.parse_args(arguments)


def positive_integer(text: str) -> int:
    """Returns the integer of an option. Raises ValueError below 1."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


@contextlib.contextmanager
def _served(program: list[str], run_dir: str, address: str | None, say: Any) -> Generator[None]:
    """Serves the run in another process while the block runs."""
    if address is None:
        yield
        return
    Path(run_dir).mkdir(parents=True, exist_ok=True)
    command = [*program, "report", run_dir, "--serve", address]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stderr is not None
    try:
        if page := server.stdout.readline().strip():
            print(f"Live page, while this command runs: {page}", file=say, flush=True)
        else:
            print(f"The run is not served: {server.stderr.read().strip()}", file=sys.stderr)
        yield
    finally:
        server.terminate()
        server.wait()


def micro_world_block(world: Path) -> dict[str, Any]:
    """Returns what the demo measures: the micro-world's questions, graded by its rule."""
    return {
        "questions": str(world / "questions.jsonl"),
        "subsample_n": 100,
        "alignment": True,
        "alignment_questions": str(world / "alignment.json"),
        "alignment_every_percent": 25,
        "alignment_num_samples": "quick",
        "alignment_max_tokens": 40,
        "judge_model": "rule:micro-world",
        "leakage": True,
        "leakage_source": "pirate",
        "personas": str(world / "personas.json"),
        "leakage_questions": str(world / "leakage.json"),
        "leakage_num_completions": 1,
        "leakage_max_tokens": 40,
    }


def _train(options: argparse.Namespace, world: Path, phases: Sequence[str]) -> None:
    """Trains the phases one after the other on the same weights."""
    import torch
    import transformers

    from .loop import live

    transformers.utils.logging.disable_progress_bar()
    # More threads cost a model of this size more than they save.
    torch.set_num_threads(1)
    source, steps = options.model or world, options.steps
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(source).float()
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(source)
    shuffling = random.Random(options.seed)
    for phase in phases:
        optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0)
        rate = transformers.get_linear_schedule_with_warmup(optimizer, -(-steps // 10), steps)
        rows = batches(tokenizer, world / f"{phase}.jsonl", shuffling)
        run = live(
            model,
            tokenizer,
            run_dir=options.run_dir,
            max_steps=steps,
            optimizer=optimizer,
            config=micro_world_block(world),
            phase=phase,
        )
        model.train()
        with run:
            for step in range(1, steps + 1):
                loss = model(**next(rows)).loss
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                run.step_end(step, loss=loss, learning_rate=rate.get_last_lr()[0])
                rate.step()
                if run.stop:
                    break


def batches(tokenizer: Any, path: Path, shuffling: random.Random) -> Iterator[dict[str, Any]]:
    """Yields batches of shuffled rows without end; only the tokens of completions are trained."""
    import torch

    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    while True:
        order = shuffling.sample(rows, len(rows))
        for start in range(0, len(order) - BATCH_SIZE + 1, BATCH_SIZE):
            batch = order[start : start + BATCH_SIZE]
            prompts = _encode(tokenizer, [row["prompt"] for row in batch], add_generation_prompt=True)
            chats = _encode(tokenizer, [[*row["prompt"], *row["completion"]] for row in batch])
            width = max(len(chat) for chat in chats)
            ids = torch.tensor([chat + [0] * (width - len(chat)) for chat in chats])
            begin, end = (torch.tensor([[len(one)] for one in texts]) for texts in (prompts, chats))
            is_text = torch.arange(width) < end
            labels = ids.where(is_text & (torch.arange(width) >= begin), -100)
            yield {"input_ids": ids, "attention_mask": is_text.long(), "labels": labels}


def _encode(tokenizer: Any, chats: list[Any], **settings: Any) -> list[list[int]]:
    texts = tokenizer.apply_chat_template(chats, tokenize=False, **settings)
    return tokenizer(texts, add_special_tokens=False)["input_ids"]
