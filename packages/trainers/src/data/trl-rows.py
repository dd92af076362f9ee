"""Prints the ids and scored positions that TRL's SFTTrainer prepares for rows, as JSON.

Reads {"tokenizer": folder, "cases": [{"template": name or null, "row": {...}, "assistant": bool}]} from stdin. `template` is a
file of TRL's package, which replaces the tokenizer's template.
"""

import json
import logging
import os
import sys
from pathlib import Path

os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"
logging.disable(logging.CRITICAL)

import trl
from transformers import AutoTokenizer
from trl.chat_template_utils import get_training_chat_template, has_generation_markers
from trl.trainer.sft_trainer import SFTTrainer

request = json.load(sys.stdin)
tokenizer = AutoTokenizer.from_pretrained(request["tokenizer"])
own_template = tokenizer.chat_template
templates = Path(trl.__file__).parent / "chat_templates"


class Rows(list):
    """Rows as the trainer maps over them: an Arrow table would add null fields, and make integers floats."""

    format = {"type": None}

    @property
    def column_names(self):
        return list(self[0])

    def map(self, function, fn_kwargs=None, remove_columns=None, **_):
        rows = []
        for row in self:
            mapped = {**row, **(function(json.loads(json.dumps(row)), **(fn_kwargs or {})) or {})}
            for column in [remove_columns] if isinstance(remove_columns, str) else remove_columns or []:
                mapped.pop(column, None)
            rows.append(mapped)
        return Rows(rows)


def prepared(case):
    name = case["template"]
    tokenizer.chat_template = own_template if name is None else (templates / name).read_text(encoding="utf-8")
    row = case["row"]
    trainer = SFTTrainer.__new__(SFTTrainer)
    trainer.chat_template = None
    if case["assistant"] and not has_generation_markers(tokenizer.chat_template):
        trainer.chat_template = get_training_chat_template(tokenizer)
    trainer.completion_only_loss = "prompt" in row and "completion" in row
    trainer._tokenizer = tokenizer
    trainer._is_vlm = False

    class args:
        assistant_only_loss = case["assistant"]
        dataset_text_field = "text"
        max_length = None
        dataset_num_proc = None
        shuffle_dataset = False
        packing_strategy = "bfd"
        use_liger_kernel = False
        loss_type = "nll"

    rows = trainer._prepare_dataset(Rows([row]), tokenizer, args, False, None, "train")
    (made,) = rows
    scored = [i for i, label in enumerate(made["labels"]) if label != -100 and i > 0]
    return {"ids": list(made["input_ids"]), "scored": scored}


results = []
for case in request["cases"]:
    try:
        results.append(prepared(case))
    except Exception as error:  # noqa: BLE001
        results.append({"error": f"{type(error).__name__}: {error}"})
print(json.dumps(results))
