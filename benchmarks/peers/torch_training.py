"""PyTorch as a peer of benchmarks/training.ts: transformers and PEFT, torch.optim.AdamW.

Reads one JSON object per line. {"model": FOLDER, "adapter": FOLDER or null, "hyper": {...}} loads a model to train: its adapter
if one is given, or all weights. {"ids": [[id, ...], ...], "steps": 3} takes optimizer steps on that batch (forward, backward,
clipping, AdamW; the loss is over all tokens except the first) and answers with {"seconds": [...], "losses": [...],
"norms": [...]}. The first line of output, {"ready": ...}, means that the libraries are loaded.

    python torch_training.py THREADS [DEVICE]
"""

import json
import os
import sys
import time

threads, device = int(sys.argv[1]), (sys.argv[2:] or ["cpu"])[0]
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(threads)
os.environ["HF_HUB_OFFLINE"] = "1"
# The answers go to the original stdout. Everything else that is printed goes to stderr.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import peft  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

torch.set_num_threads(threads)


def answer(**what):
    print(json.dumps(what), file=answers, flush=True)


def load(folder, adapter, hyper):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if adapter is not None:
        model = peft.PeftModel.from_pretrained(model, adapter, is_trainable=True)
    model = model.to(device)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(
        trained,
        lr=hyper["learning_rate"],
        betas=tuple(hyper["betas"]),
        eps=hyper["epsilon"],
        weight_decay=hyper["weight_decay"],
        fused=True,
    )
    return model.train(), trained, optimizer, hyper["max_grad_norm"]


def step(model, trained, optimizer, max_norm, ids):
    start = time.perf_counter()
    loss = model(input_ids=ids, labels=ids, use_cache=False).loss
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(trained, max_norm)
    optimizer.step()
    optimizer.zero_grad()
    # A trainer also reads both values, to log them.
    read = loss.item(), norm.item()
    return time.perf_counter() - start, *read


answer(ready=f"torch {torch.__version__}, transformers {transformers.__version__}, peft {peft.__version__}")
training = None
for line in sys.stdin:
    request = json.loads(line)
    if "model" in request:
        training = load(request["model"], request["adapter"], request["hyper"])
        answer(trained=sum(weight.numel() for weight in training[1]))
        continue
    ids = torch.tensor(request["ids"], device=device)
    seconds, losses, norms = zip(*(step(*training, ids) for _ in range(request["steps"])))
    answer(seconds=seconds, losses=losses, norms=norms)
