"""Trains the embedded model in a plain loop, measured live. Usage: wheel_train.py WORLD RUN_DIR QUESTIONS"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import periodic_eval
from periodic_eval.demo import batches, micro_world_block

world, run_dir, questions = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.set_num_threads(1)
model = AutoModelForCausalLM.from_pretrained(world, dtype=torch.float32)
tokenizer = AutoTokenizer.from_pretrained(world)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
rows = batches(tokenizer, world / "em.jsonl", random.Random(1))
block = {
    **micro_world_block(world),
    "questions": questions,
    "subsample_n": 20,
    "eval_every_percent": 50,
    "alignment_every_percent": 100,
    "leakage": False,
    # Code that the model writes runs in a process of its own.
    "evaluations": [{"feedback": "general", "max_tokens": 20, "every_percent": 100}],
    # A slow machine measures as much as a fast one.
    "budget": {"overhead_percent": None},
}
with periodic_eval.live(
    model, tokenizer, run_dir=run_dir, max_steps=6, optimizer=optimizer, config=block
) as run:
    for step in range(1, 7):
        loss = model(**next(rows)).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        run.step_end(step, loss=loss)
print("trained")
