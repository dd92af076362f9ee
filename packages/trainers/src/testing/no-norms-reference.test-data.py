"""Takes ten steps of torch.optim.AdamW on every weight of a Llama, without decay of norms, grouped as in transformers' Trainer.

Reads {"model": folder, "reference": JSON file, "out": file} from standard input. Writes the final weights as safetensors.
"""

import json
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

work = json.load(sys.stdin)
reference = json.load(open(work["reference"]))
hyper = reference["hyper"]
torch.set_num_threads(1)
model = AutoModelForCausalLM.from_pretrained(work["model"], dtype=torch.float32)
model.train()
ids, labels = torch.tensor(reference["input_ids"]), torch.tensor(reference["labels"])
named = list(model.named_parameters())
groups = [
    {"params": [p for name, p in named if "norm" not in name], "weight_decay": hyper["weight_decay"]},
    {"params": [p for name, p in named if "norm" in name], "weight_decay": 0.0},
]
optimizer = torch.optim.AdamW(groups, lr=hyper["lr"], betas=tuple(hyper["betas"]), eps=hyper["eps"])
for _ in reference["losses"]:
    optimizer.zero_grad()
    logits = model(ids).logits[:, :-1]
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), hyper["grad_clip"])
    optimizer.step()
save_file({name: p.detach().clone() for name, p in named}, work["out"])
