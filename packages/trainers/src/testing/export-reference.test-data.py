"""Loads models and adapters that were trained here with transformers and PEFT, for sft/export.parity.test.ts. Reads its tasks
from standard input and prints the logits of each task in `read`.

make: creates a random adapter for a model and saves it.
read: loads a model, and its adapter if there is one.
"""

import json
import sys

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM


def base_of(task):
    return AutoModelForCausalLM.from_pretrained(task["base"], dtype=torch.float32)


work = json.load(sys.stdin)
for index, task in enumerate(work["make"]):
    torch.manual_seed(index)
    # Disables the initialization, so that B is random too: a B of 0 would prove nothing.
    config = LoraConfig(task_type="CAUSAL_LM", init_lora_weights=False, **task["options"])
    get_peft_model(base_of(task), config).save_pretrained(task["out"])
logits = []
for task in work["read"]:
    model = base_of(task)
    if task["adapter"] is not None:
        model = PeftModel.from_pretrained(model, task["adapter"])
    model.eval()
    with torch.no_grad():
        logits.append(model(input_ids=torch.tensor([task["ids"]])).logits.flatten().tolist())
print(json.dumps(logits))
