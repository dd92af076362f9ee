"""Runs transformers for parity tests. Reads its tasks as JSON from standard input.

compare: compares a saved folder with the original after loading, bit by bit; prints a JSON array.
make: creates a random model for the config.json of a folder, and saves its weights and logits there.
family: creates a model with random weights of every kind for the config.json of a folder; saves its logits there, and the
    model as transformers saves it in the subfolder "saved". With "renamed", saves the weights in the folder with other names.
fields: prints the fields that the configuration class of each model type defines.
"""

import json
import logging as python_logging
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.utils import logging

logging.disable_progress_bar()


class Kept(python_logging.Handler):
    """Collects the messages that transformers logs."""

    def __init__(self):
        super().__init__(python_logging.WARNING)
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())

    def take(self):
        taken, self.messages = set(self.messages), []
        return taken


kept = Kept()
python_logging.getLogger("transformers").addHandler(kept)


def bits_of(tensor):
    return tensor.contiguous().view(torch.uint8)


def class_of(config):
    return AutoModelForImageTextToText if hasattr(config, "vision_config") else AutoModelForCausalLM


def compare(original, saved):
    # Without an explicit dtype transformers uses the configuration's.
    auto = class_of(AutoConfig.from_pretrained(original))
    expected = auto.from_pretrained(original)
    warnings = kept.take()
    model, info = auto.from_pretrained(saved, output_loading_info=True)
    before, after = expected.state_dict(), model.state_dict()
    configs = [one.config.to_dict() for one in (expected, model)]
    return {
        "count": len(after),
        "dtypes": sorted({str(tensor.dtype) for tensor in after.values()}),
        "otherNames": sorted(before.keys() ^ after.keys()),
        "otherValues": sorted(
            name
            for name in before.keys() & after.keys()
            if not torch.equal(bits_of(before[name].to(after[name].dtype)), bits_of(after[name]))
        ),
        "otherOptions": sorted(
            key
            for key in configs[0].keys() | configs[1].keys()
            if key not in ("dtype", "_name_or_path") and configs[0].get(key) != configs[1].get(key)
        ),
        "complaints": {kind: sorted(map(str, found)) for kind, found in info.items() if found},
        "otherWarnings": sorted(kept.take() - warnings),
    }


def make(folder, ids):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder)).eval()
    save_file(model.state_dict(), folder + "/model.safetensors")
    with torch.no_grad():
        logits = {str(len(row)): model(input_ids=torch.tensor([row])).logits[0] for row in ids}
    save_file(logits, folder + "/logits.safetensors")


def family(folder, ids, renamed):
    torch.manual_seed(0)
    config = AutoConfig.from_pretrained(folder)
    model = class_of(config).from_config(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            around = 1 if parameter.dim() == 1 and name.endswith("weight") else 0
            parameter.copy_(around + 0.3 * torch.randn_like(parameter))
        logits = {str(len(row)): model(input_ids=torch.tensor([row])).logits[0] for row in ids}
    save_file(logits, folder + "/logits.safetensors")
    model.save_pretrained(folder + "/saved")
    tensors = {}
    tied = model.all_tied_weights_keys
    for name, tensor in model.state_dict().items():
        for before, after in renamed.items():
            name = after + name[len(before) :] if name.startswith(before) else name
        if name not in tied and name not in [renamed.get(key) for key in tied]:
            tensors[name] = tensor.clone()
    save_file(tensors, folder + "/model.safetensors")


def fields(model_type):
    return sorted(CONFIG_MAPPING[model_type]().to_dict())


work = json.load(sys.stdin)
for task in work.get("family", []):
    family(**task)
if "fields" in work:
    print(json.dumps({model_type: fields(model_type) for model_type in work["fields"]}))
    sys.exit()
for task in work.get("make", []):
    make(**task)
print(json.dumps([compare(**task) for task in work.get("compare", [])]))
