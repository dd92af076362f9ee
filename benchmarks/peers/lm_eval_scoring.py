"""lm-evaluation-harness as a peer of benchmarks/scoring.ts.

Reads one JSON object per line from standard input: {"requests": [[context, continuation], ...], "batch_size": 8}. Scores the
requests with HFLM and answers with a line {"seconds": ..., "sums": [nats, ...]}. The first line of output,
{"ready": ...}, means that the model is loaded.

    python lm_eval_scoring.py MODEL_FOLDER THREADS [DEVICE]
"""

import json
import os
import sys
import time

folder, threads, device = sys.argv[1], int(sys.argv[2]), (sys.argv[3:] or ["cpu"])[0]
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(threads)
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TQDM_DISABLE"] = "1"
# The answers go to the original stdout. Everything else that is printed goes to stderr.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import lm_eval  # noqa: E402
import torch  # noqa: E402
from lm_eval.api.instance import Instance  # noqa: E402
from lm_eval.models.huggingface import HFLM  # noqa: E402

torch.set_num_threads(threads)
model = HFLM(pretrained=folder, device=device, dtype="float32")


def answer(**what):
    print(json.dumps(what), file=answers, flush=True)


answer(ready=f"lm-evaluation-harness {lm_eval.__version__}, torch {torch.__version__}")
for line in sys.stdin:
    request = json.loads(line)
    model.batch_size_per_gpu = request["batch_size"]
    instances = [
        Instance(request_type="loglikelihood", doc={}, arguments=tuple(pair), idx=index)
        for index, pair in enumerate(request["requests"])
    ]
    start = time.perf_counter()
    with torch.inference_mode():
        scores = model.loglikelihood(instances, disable_tqdm=True)
    answer(seconds=time.perf_counter() - start, sums=[nats for nats, _ in scores])
