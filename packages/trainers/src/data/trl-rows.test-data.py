"""Prints the ids and scored positions that TRL's trainers prepare for rows, as JSON.

Reads {"tokenizer": folder, "cases": [{"template": name, "row": {...}, "trainer": "sft" or "dpo", "assistant": bool}]} from stdin.
`template` is a file of TRL's package, which replaces the tokenizer's template; `assistant` is SFT's `assistant_only_loss`.
Without cases, prints the templates of which the package has a training version, with their texts.
"""

import datetime
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
from trl.trainer.dpo_trainer import DPOTrainer
from trl.trainer.sft_trainer import SFTTrainer

templates = Path(trl.__file__).parent / "chat_templates"
request = json.load(sys.stdin)
if "cases" not in request:
    names = [path.name.replace("_training", "") for path in sorted(templates.glob("*_training.jinja"))]
    print(json.dumps({name: (templates / name).read_text(encoding="utf-8") for name in names}))
    sys.exit()
tokenizer = AutoTokenizer.from_pretrained(request["tokenizer"])


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


class Arguments:
    dataset_text_field = "text"
    max_length = None
    dataset_num_proc = None
    shuffle_dataset = False
    packing_strategy = "bfd"
    use_liger_kernel = False
    loss_type = "nll"


def prepared_pair(case):
    trainer = DPOTrainer.__new__(DPOTrainer)
    trainer._tokenizer = tokenizer
    (made,) = trainer._prepare_dataset(Rows([case["row"]]), tokenizer, Arguments, "train")
    return {name: list(made[name]) for name in ("prompt_ids", "chosen_ids", "rejected_ids")}


def prepared_row(case):
    row = case["row"]
    trainer = SFTTrainer.__new__(SFTTrainer)
    trainer.chat_template = None
    if case["assistant"] and not has_generation_markers(tokenizer.chat_template):
        trainer.chat_template = get_training_chat_template(tokenizer)
    trainer.completion_only_loss = "prompt" in row and "completion" in row
    trainer._tokenizer = tokenizer
    trainer._is_vlm = False
    arguments = Arguments()
    arguments.assistant_only_loss = case["assistant"]
    (made,) = trainer._prepare_dataset(Rows([row]), tokenizer, arguments, False, None, "train")
    scored = [i for i, label in enumerate(made["labels"]) if label != -100 and i > 0]
    return {"ids": list(made["input_ids"]), "scored": scored}


results = []
for case in request["cases"]:
    try:
        tokenizer.chat_template = (templates / case["template"]).read_text(encoding="utf-8")
        results.append(prepared_pair(case) if case["trainer"] == "dpo" else prepared_row(case))
    except Exception as error:  # noqa: BLE001
        results.append({"error": f"{type(error).__name__}: {error}"})
print(json.dumps({"date": str(datetime.date.today()), "results": results}))
