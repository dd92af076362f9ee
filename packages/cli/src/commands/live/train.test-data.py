"""Trains the embedded model with LoRA in a plain loop. Arguments: the run's folder, the block as JSON, steps."""

import json
import sys
from pathlib import Path

python = Path(__file__).parents[4] / "python"
sys.path[:0] = [str(python / "src"), str(python / "tests")]

import torch
from peft import LoraConfig, get_peft_model
from tiny import micro_world

import periodic_eval

run_dir, block, steps = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
torch.manual_seed(0)
base, tokenizer = micro_world()
model = get_peft_model(base, LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False))
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-2)
model.train()
settings = {"run_dir": run_dir, "max_steps": steps, "optimizer": optimizer, "config": block}
with periodic_eval.live(model, tokenizer, **settings) as run:
    for step in range(1, steps + 1):
        ids = torch.randint(0, 500, (2, 12))
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        run.step_end(step, loss=loss)
