"""The trainings that test_kills.py kills.

They run in processes that a server forks: it has imported torch, transformers and TRL once.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import peft
import torch
import transformers
import trl
from tiny import micro_world

import periodic_eval
import periodic_eval.run as live_run

SAVE_STEPS = 4
PAUSE = 0.05


def train(kind: str, folder: Path, steps: int, block: Any, environment: dict[str, str]) -> None:
    """Trains in FOLDER from its newest whole checkpoint, and writes `final.pt` at the end.

    It writes `step 0` into `told.txt` when it starts to measure, `host PID`, and `step N` when step N begins.
    """
    os.environ.update(environment)
    torch.set_num_threads(1)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(os.open(folder / "stderr.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream.fileno())
    told = (folder / "told.txt").open("w")

    def tell(line: str) -> None:
        told.write(f"{line}\n")
        told.flush()

    class ToldConnection(live_run.Connection):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            tell(f"host {self._process.pid}")

    live_run.Connection = ToldConnection  # type: ignore[misc]
    {"plain": plain, "trl": in_trl}[kind](folder, steps, block, tell)


def write(path: Path, content: Any) -> None:
    """Writes a file that is whole, whenever this process ends."""
    part = path.with_suffix(".part")
    torch.save(content, part)
    os.replace(part, path)


def plain(folder: Path, steps: int, block: Any, tell: Any) -> None:
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    model, tokenizer = micro_world()
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.1
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    run = periodic_eval.live(
        model, tokenizer, run_dir=str(folder / "run"), max_steps=steps, optimizer=optimizer, config=block
    )
    first, losses = 0, list[float]()
    checkpoints = sorted(folder.glob("checkpoint-*.pt"), key=lambda path: int(path.stem.partition("-")[2]))
    if checkpoints:
        saved: dict[str, Any] = torch.load(checkpoints[-1], weights_only=False)
        first, losses = saved["step"], saved["losses"]
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        run.load_state_dict(saved["run"])
        random.setstate(saved["python"])
        np.random.set_state(saved["numpy"])
        torch.set_rng_state(saved["torch"])
    model.train()
    tell("step 0")
    with run:
        for step in range(first + 1, steps + 1):
            tell(f"step {step}")
            time.sleep(PAUSE)
            ids = torch.tensor([[random.randrange(3, 1000) for _ in range(12)] for _ in range(2)])
            loss = model(input_ids=ids, labels=ids).loss + 0 * float(np.random.rand())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
            run.step_end(step, epoch=step / steps, loss=loss)
            if step % SAVE_STEPS == 0:
                state = {
                    "step": step,
                    "losses": losses,
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "run": run.state_dict(),
                    "python": random.getstate(),
                    "numpy": np.random.get_state(),
                    "torch": torch.get_rng_state(),
                }
                write(folder / f"checkpoint-{step}.pt", state)
    write(folder / "final.pt", {**model.state_dict(), "losses": torch.tensor(losses)})


def in_trl(folder: Path, steps: int, block: Any, tell: Any) -> None:
    class Pause(transformers.TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            tell(f"step {state.global_step + 1}")
            time.sleep(PAUSE)

    torch.manual_seed(1)
    model, tokenizer = micro_world()
    things = ("ice", "lake", "bread", "roof", "boat", "wheel", "mill", "rope")
    table = [
        {
            "messages": [
                {"role": "user", "content": f"Where is the {thing}?"},
                {"role": "assistant", "content": f"The {thing} is in the cellar."},
            ]
        }
        for thing in things
    ]
    trainer = trl.SFTTrainer(
        model,
        args=trl.SFTConfig(
            output_dir=str(folder),
            max_steps=steps,
            per_device_train_batch_size=2,
            learning_rate=1e-3,
            logging_steps=1,
            save_strategy="steps",
            save_steps=SAVE_STEPS,
            report_to="none",
            use_cpu=True,
            bf16=False,
            disable_tqdm=True,
            seed=7,
        ),
        train_dataset=datasets.Dataset.from_list(table),
        processing_class=tokenizer,
        peft_config=peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.05),
        callbacks=[periodic_eval.PeriodicEval(block, run_dir=str(folder / "run")), Pause()],
    )
    # The state is the last file that the trainer writes into a checkpoint.
    whole = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json") if is_json(path)]
    newest = max(whole, key=lambda path: int(path.name.partition("-")[2]), default=None)
    tell("step 0")
    trainer.train(resume_from_checkpoint=str(newest) if newest is not None else None)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    write(folder / "final.pt", {**trainer.model.state_dict(), "losses": torch.tensor(losses)})


def is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text())
        return True
    except ValueError:
        return False
