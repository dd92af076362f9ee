"""transformers' generate as a peer of benchmarks/generation.ts.

Reads one JSON object per line: {"prompts": [[id, ...], ...], "new_tokens": 64, "sampled": false}. Generates that many tokens
after each prompt (left-padded, as generate requires), greedily or with temperature 1 and top-p 0.95. Answers with
{"seconds": ..., "cpu_seconds": ..., "tokens": [[id, ...], ...]}. The first line of output, {"ready": ...}, means that the model is loaded.

    python transformers_generation.py MODEL_FOLDER THREADS [DEVICE]
"""

import json
import os
import sys
import time

folder, threads, device = sys.argv[1], int(sys.argv[2]), (sys.argv[3:] or ["cpu"])[0]
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(threads)
os.environ["HF_HUB_OFFLINE"] = "1"
# The answers go to the original stdout. Everything else that is printed goes to stderr.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import torch  # noqa: E402
import transformers  # noqa: E402

torch.set_num_threads(threads)
model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval().to(device)


def answer(**what):
    print(json.dumps(what), file=answers, flush=True)


answer(ready=f"transformers {transformers.__version__}, torch {torch.__version__}")
for line in sys.stdin:
    request = json.loads(line)
    prompts, new = request["prompts"], request["new_tokens"]
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(one)) + one for one in prompts], device=device)
    mask = torch.tensor([[0] * (longest - len(one)) + [1] * len(one) for one in prompts], device=device)
    start, start_cpu = time.perf_counter(), time.process_time()
    with torch.inference_mode():
        generated = model.generate(
            ids,
            attention_mask=mask,
            **({"do_sample": True, "temperature": 1.0, "top_p": 0.95, "top_k": 0} if request["sampled"] else {"do_sample": False}),
            max_new_tokens=new,
            min_new_tokens=new,
            pad_token_id=0,
        )
    # Reading the tokens waits for a GPU.
    tokens = generated[:, longest:].tolist()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
    answer(seconds=seconds, cpu_seconds=cpu_seconds, tokens=tokens)
