"""lm-evaluation-harness as a peer of the tasks of packages/tasks.

Reads one JSON object per line from standard input and answers each with a line {"samples": [...], "results": {...}}, the
output of `lm_eval.evaluate`. The tasks are those of the harness, with JSON Lines files instead of their datasets:

    {"task": "arc_challenge", "files": {"test": "test.jsonl", "train": "train.jsonl"}, "shots": 5, "limit": 100}

Optional keys: "batch_size"; "chat": true, and then "system" and "multiturn". The first line of output, {"ready": ...},
means that the model is loaded.

    python lm_eval_tasks.py MODEL_FOLDER THREADS

With `-` instead of a folder, no model is loaded: every answer is empty, chats are JSON strings, and only the requests are
useful. ifeval also needs langdetect and NLTK's Punkt models (see ifeval_reference.py). The request's "seed" seeds its random
letters; langdetect is seeded with 0.
"""

import json
import os
import random
import sys
import tempfile
from pathlib import Path

folder, threads = sys.argv[1], int(sys.argv[2])
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(threads)
# On a busy machine, threads that wait by spinning take processor time from the threads that they wait for.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TQDM_DISABLE", "HF_DATASETS_DISABLE_PROGRESS_BARS"):
    os.environ[name] = "1"
# The answers go to the original stdout. Everything else that is printed goes to stderr.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
work = tempfile.TemporaryDirectory()
os.environ["HF_DATASETS_CACHE"] = work.name

import lm_eval  # noqa: E402
import torch  # noqa: E402
import yaml  # noqa: E402
from lm_eval.api.model import LM  # noqa: E402
from lm_eval.models.huggingface import HFLM  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402

torch.set_num_threads(threads)


class EmptyAnswers(LM):
    tokenizer_name = "none"

    def loglikelihood(self, requests):
        return [(0.0, False) for _ in requests]

    def loglikelihood_rolling(self, requests):
        return [0.0 for _ in requests]

    def generate_until(self, requests):
        return ["" for _ in requests]

    def apply_chat_template(self, chat_history, add_generation_prompt=True):
        return json.dumps(chat_history, ensure_ascii=False)


model = EmptyAnswers() if folder == "-" else HFLM(pretrained=folder, device="cpu", dtype="float32")
manager = TaskManager()


def local_task(name, files):
    """Loads a task of the harness with files as its splits."""
    config = {
        "include": str(manager.task_index[name].yaml_path),
        "task": name,
        "dataset_path": "json",
        "dataset_name": None,
        "dataset_kwargs": {"data_files": files},
    }
    path = Path(work.name) / f"{name}.yaml"
    path.write_text(yaml.safe_dump(config))
    return manager.load(str(path))


def evaluate(request):
    loaded = local_task(request["task"], request["files"])
    (task,) = loaded["tasks"].values()
    # simple_evaluate does the same for --num_fewshot and the default seeds.
    task.set_config(key="num_fewshot", value=request["shots"])
    task.set_fewshot_seed(seed=1234)
    random.seed(request.get("seed", 0))
    if request["task"] == "ifeval":
        import langdetect

        langdetect.DetectorFactory.seed = 0
    if folder != "-":
        model.batch_size_per_gpu = request.get("batch_size", 8)
    results = lm_eval.evaluate(
        lm=model,
        task_dict=loaded,
        limit=request.get("limit"),
        bootstrap_iters=0,
        system_instruction=request.get("system"),
        apply_chat_template=request.get("chat", False),
        fewshot_as_multiturn=request.get("multiturn", True),
    )
    return {"samples": results["samples"][request["task"]], "results": results["results"][request["task"]]}


def answer(**what):
    print(json.dumps(what, default=str), file=answers, flush=True)


answer(ready=f"lm-evaluation-harness {lm_eval.__version__}, torch {torch.__version__}")
for line in sys.stdin:
    with torch.inference_mode():
        answer(**evaluate(json.loads(line)))
