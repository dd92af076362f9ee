"""Runs PEFT for lora/peft.parity.test.ts. Reads its tasks as JSON from standard input.

make: creates a random adapter for a model; saves it, its logits and the merged weights.
read: loads a saved adapter; saves its tensors and logits.
"""

import json
import sys

import torch
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText


def base_of(task):
    config = AutoConfig.from_pretrained(task["base"])
    auto = AutoModelForImageTextToText if hasattr(config, "vision_config") else AutoModelForCausalLM
    return auto.from_pretrained(task["base"], dtype=torch.float32)


def save(tensors, path):
    save_file({name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}, path)


def logits_of(model, ids):
    model.eval()
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).logits[0]


work = json.load(sys.stdin)
for index, task in enumerate(work["make"]):
    torch.manual_seed(index)
    # Without init_lora_weights B is random too; with a B of 0 the adapter would change nothing.
    config = LoraConfig(task_type="CAUSAL_LM", init_lora_weights=False, **task["options"])
    model = get_peft_model(base_of(task), config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "modules_to_save" in name:
                parameter.add_(0.1 * torch.randn_like(parameter))
            if "lora_B" in name and name.endswith("bias"):
                parameter.add_(torch.randn_like(parameter))
    model.save_pretrained(task["out"])
    save({"logits": logits_of(model, task["ids"])}, task["out"] + "/expected.safetensors")
    if task["merge"]:
        save(model.merge_and_unload().state_dict(), task["out"] + "/merged.safetensors")
for task in work["read"]:
    model = PeftModel.from_pretrained(base_of(task), task["adapter"])
    save(get_peft_model_state_dict(model), task["out"] + ".safetensors")
    save({"logits": logits_of(model, task["ids"])}, task["out"] + ".expected.safetensors")
