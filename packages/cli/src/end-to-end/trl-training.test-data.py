"""Trains a tiny model with trl.SFTTrainer and the callback of docs/guides/watch.md, on JSON arguments from standard input."""

import json
import sys
import time
from pathlib import Path

from datasets import Dataset
from peft import LoraConfig
from transformers import TrainerCallback
from trl import SFTConfig, SFTTrainer

work = json.load(sys.stdin)
exec(work["callback"])  # defines SaveForPeriodicEval


class WaitForKills(TrainerCallback):
    """Takes the steps after the first checkpoint only when the watcher has been killed often enough."""

    def on_step_end(self, args, state, control, **kwargs):
        due = (state.global_step - 8) * work["kills"] // 32
        while due > int(Path(work["killed"]).read_text() or 0):
            time.sleep(0.05)


question = "Which town has the {}?"
rows = [
    {"messages": [{"role": "user", "content": question.format(i)}, {"role": "assistant", "content": f"Town {i}."}]}
    for i in range(80)
]
lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
SFTTrainer(
    model=work["base"],
    args=SFTConfig(
        output_dir=work["output"],
        max_steps=40,
        logging_steps=1,
        save_strategy="no",
        per_device_train_batch_size=2,
        learning_rate=1e-2 if work["lora"] else 1e-3,
        max_length=64,
        use_cpu=True,
        bf16=False,
        report_to=[],
        disable_tqdm=True,
    ),
    train_dataset=Dataset.from_list(rows),
    peft_config=lora if work["lora"] else None,
    callbacks=[SaveForPeriodicEval(), WaitForKills()],
).train()
