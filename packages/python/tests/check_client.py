"""A client for `periodic-eval live --check`: trains the embedded model with LoRA for three steps."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parent)]

import torch
from peft import LoraConfig, get_peft_model
from tiny import micro_world

import periodic_eval

base, tokenizer = micro_world()
model = get_peft_model(base, LoraConfig(r=2, target_modules=["q_proj"], lora_dropout=0.1))
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-3)
model.train()
folder = os.environ.get("PERIODIC_EVAL_CHECK", "runs/check")
with periodic_eval.live(model, tokenizer, run_dir=folder, max_steps=3, optimizer=optimizer) as run:
    for step in range(1, 4):
        ids = torch.randint(0, 1000, (2, 12))
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        run.step_end(step)
        if run.stop:
            break
