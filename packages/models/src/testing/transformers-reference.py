"""Runs transformers for parity tests. Reads its tasks as JSON from standard input.

compare: compares a saved folder with the original after loading, bit by bit; prints a JSON array.
make: creates a random model for the config.json of a folder, and saves its weights and logits there.
"""

import json
import logging as python_logging
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM
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


def compare(original, saved):
    # Without an explicit dtype transformers uses the configuration's.
    expected = AutoModelForCausalLM.from_pretrained(original)
    warnings = kept.take()
    model, info = AutoModelForCausalLM.from_pretrained(saved, output_loading_info=True)
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


work = json.load(sys.stdin)
for task in work.get("make", []):
    make(**task)
print(json.dumps([compare(**task) for task in work.get("compare", [])]))
