"""PyTorch's side of benchmarks/live.ts: a training that is measured live, beside other programs on the same model.

    python live_training.py MODEL THREADS DEVICE QUESTIONS

MODEL is a folder, or `random:BILLIONS` for a Llama of random weights of about so many billion parameters, in bfloat16 and with
the tokenizer of the embedded model. Reads one JSON object per line, {"work": NAME, ...options}, and answers with one line: the
result of the function of that name. Times are pairs [wall seconds, CPU seconds of this process and the host]. The first line of
output, {"ready": ...}, means that the model is loaded. PERIODIC_EVAL_HOST is the command line of the host.
"""

import hashlib
import json
import os
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

source, threads, device, questions = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(threads)
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TQDM_DISABLE"] = "1"
# Matrix products of CUDA repeat their sums only with a workspace of fixed size.
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
# The answers go to the original stdout. Everything else that is printed goes to stderr.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

root = Path(__file__).parents[2]
sys.path.insert(0, str(root / "packages/python/src"))

import psutil  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from peft import LoraConfig, get_peft_model  # noqa: E402

import periodic_eval  # noqa: E402
from periodic_eval import answering, scoring  # noqa: E402
from periodic_eval.fingerprint import fingerprint  # noqa: E402
from periodic_eval.forward import Forward  # noqa: E402
from periodic_eval.generation import generate  # noqa: E402

torch.set_num_threads(threads)
world = root / "packages/cli/assets/micro-world"
is_random = source.startswith("random:")
folder = str(world) if is_random else source
tokenizer = transformers.AutoTokenizer.from_pretrained(folder)


def load():
    if not is_random:
        return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).to(device)
    # A layer has about 12 width² weights, and Llama's models have a layer for each 128 numbers of width.
    width = max(64, round((float(source.partition(":")[2]) * 1e9 * 128 / 12) ** (1 / 3) / 64) * 64)
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=32000,
        hidden_size=width,
        intermediate_size=round(width * 2.7 / 64) * 64,
        num_hidden_layers=max(2, width // 128),
        num_attention_heads=width // 64,
        max_position_embeddings=4096,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=0,
        dtype=torch.bfloat16,
    )
    with torch.device(device):
        made = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    # Distributions of trained models are not uniform.
    made.lm_head.weight.data.mul_(4)
    return made


model = load().eval()


def with_lora():
    """Returns the model with a new adapter, the same at each call. `unload()` takes it off again."""
    torch.manual_seed(2)
    lora = LoraConfig(r=8, lora_alpha=16, lora_dropout=0.05, target_modules="all-linear", task_type="CAUSAL_LM")
    return get_peft_model(model, lora).train()


def now():
    """Returns the wall time, and the CPU time of this process and of its children, in seconds, when the device has finished."""
    if device == "cuda":
        torch.cuda.synchronize()
    own = time.process_time()
    children = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    return time.perf_counter(), own + sum(times.user + times.system for times in children)


def timed(work):
    """Returns the work's result and its times."""
    wall, cpu = now()
    result = work()
    wall_after, cpu_after = now()
    return result, [wall_after - wall, cpu_after - cpu]


def snapshots_of(run):
    """Returns the snapshots of a run, by step."""
    found = [json.loads(path.read_text()) for path in Path(run).glob("periodic_eval/*/*_step_*.json")]
    return sorted(found, key=lambda snapshot: (snapshot["step"], snapshot["id"]))


def facts_of(snapshot):
    timing = snapshot["timing"]
    return {
        "id": snapshot["id"],
        "step": snapshot["step"],
        "status": snapshot["status"],
        "reason": snapshot["reason"],
        "items": timing["items"],
        "measure": timing["measure_seconds"],
        "guards": timing["guards_seconds"],
        "total": timing["total_seconds"],
        "disturbed": [part["part"] for part in snapshot["receipt"] if part["intact"] is not True],
    }


def score(count, repeats):
    """Measures capability by cloze over the host in each step, in turns with HFLM on the same model and questions.

    `ours` are the times of whole windows: host, guards and snapshot included; `measure` are the seconds of their answers.
    """
    asked, outcome = [], []
    original = scoring.log_likelihoods

    def recorded(forward, rows, put, check, **options):
        base = len(asked)
        asked.extend(rows)
        outcome.extend([None] * len(rows))

        def keep(index, row):
            outcome[base + index] = sum(row["nats"])
            put(index, row)

        original(forward, rows, keep, check, **options)

    answering.log_likelihoods = recorded
    ours, theirs, sizes = [], [], {}
    with tempfile.TemporaryDirectory() as run_dir:
        block = {
            "questions": questions,
            "capability_method": "cloze",
            "subsample_n": count,
            "schedule": {"every_steps": 1},
            "budget": {"overhead_percent": None},
        }
        with periodic_eval.live(model, tokenizer, run_dir=run_dir, max_steps=repeats + 2, config=block) as run:
            for step in range(1, repeats + 2):
                asked.clear()
                outcome.clear()
                _, times = timed(lambda step=step: run.step_end(step))
                if step == 1:
                    # The first measurements warm up.
                    peer = Harness(asked)
                    sizes = peer.best_batch_size() if peer.harness is not None else {}
                    continue
                ours.append(times)
                if peer.harness is not None:
                    sums, times = timed(peer.sums)
                    theirs.append(times)
        measured = [facts_of(snapshot) for snapshot in snapshots_of(run_dir)][2 : repeats + 2]
    answering.log_likelihoods = original
    return {
        "peer": peer.versions,
        "batch_sizes": sizes,
        "rows": len(asked),
        "ours": ours,
        "measure": [facts["measure"] for facts in measured],
        "peers": theirs,
        "difference": max(abs(a - b) for a, b in zip(outcome, sums, strict=True)) if theirs else None,
    }


class Harness:
    """lm-evaluation-harness on the same model, for the texts of the rows that the host asked."""

    def __init__(self, rows):
        try:
            import lm_eval
            from lm_eval.api.instance import Instance
            from lm_eval.models.huggingface import HFLM
        except ImportError:
            self.harness, self.versions = None, None
            return
        pairs = [(tokenizer.decode(row["context"]), tokenizer.decode(row["continuation"])) for row in rows]
        self.instances = [
            Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=index) for index, pair in enumerate(pairs)
        ]
        self.harness = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=1)
        self.versions = f"lm-evaluation-harness {lm_eval.__version__}"

    def sums(self, instances=None):
        with torch.inference_mode():
            scores = self.harness.loglikelihood(instances or self.instances, disable_tqdm=True)
        return [nats for nats, _ in scores]

    def best_batch_size(self):
        """Sets the fastest batch size on the first questions, and returns the seconds of each."""
        self.sums(self.instances[:8])
        taken = {}
        for size in (1, 4, 8, 16, 32, 64):
            self.harness.batch_size_per_gpu = size
            taken[size] = timed(lambda: self.sums(self.instances[:128]))[1][0]
        self.harness.batch_size_per_gpu = min(taken, key=taken.get)
        return taken


def complete(batch, new_tokens, sampled, repeats):
    """Completes prompts of 12 to 120 tokens with both programs in turns. Returns their times, and the number of equal completions."""
    ids = stream()
    starts = [at * 150 % (len(ids) - 150) for at in range(batch)]
    prompts = [ids[start : start + 12 + 7 * (at % 16)] for at, start in enumerate(starts)]
    how = {"temperature": 1, "top_p": 0.95} if sampled else {"temperature": 0}
    rows = [{"prompt": ids, "max_new_tokens": new_tokens, "seed": str(at), **how} for at, ids in enumerate(prompts)]
    forward = Forward(model)
    longest = max(map(len, prompts))
    table = torch.tensor([[0] * (longest - len(ids)) + ids for ids in prompts], device=device)
    mask = torch.tensor([[0] * (longest - len(ids)) + [1] * len(ids) for ids in prompts], device=device)
    options = {"do_sample": True, "temperature": 1.0, "top_p": 0.95, "top_k": 0} if sampled else {"do_sample": False}

    def ours():
        written = [[]] * batch
        put = lambda index, row: written.__setitem__(index, row["ids"])  # noqa: E731
        generate(forward, rows, (), lambda ids, special: "", put, lambda tokens: None)
        return written

    def theirs():
        with torch.inference_mode():
            tokens = model.generate(table, attention_mask=mask, max_new_tokens=new_tokens, pad_token_id=0, **options)
        return tokens[:, longest:].tolist()

    # Without stop tokens, both write the same number of tokens.
    stop_ids, model.generation_config.eos_token_id = model.generation_config.eos_token_id, None
    pairs = [(timed(ours), timed(theirs)) for _ in range(repeats + 1)][1:]
    model.generation_config.eos_token_id = stop_ids
    (mine, _), (other, _) = pairs[-1]
    return {
        "ours": [times for (_, times), _ in pairs],
        "peers": [times for _, (_, times) in pairs],
        "same": sum(a == b for a, b in zip(mine, other, strict=True)),
    }


def hash_weights(repeats):
    """Fingerprints all weights, in turns with their sums and with copies of them."""
    weights = list(model.named_parameters())
    target = torch.empty(max(weight.numel() for _, weight in weights), dtype=weights[0][1].dtype, device=device)

    def sums():
        return torch.stack([weight.sum() for _, weight in weights]).sum().item()

    def copies():
        for _, weight in weights:
            target[: weight.numel()].copy_(weight.flatten())

    arms = {"ours": lambda: fingerprint(iter(weights)), "sums": sums, "copies": copies}
    with torch.no_grad():
        rounds = [{name: timed(arm)[1] for name, arm in arms.items()} for _ in range(repeats + 1)][1:]
    size = sum(weight.numel() * weight.element_size() for _, weight in weights)
    return {"bytes": size, **{name: [times[name] for times in rounds] for name in arms}}


@cache
def stream():
    """Returns the ids of all questions, one after the other."""
    rows = map(json.loads, Path(questions).open())
    return tokenizer("\n".join(" ".join([row["question"], *row["choices"]]) for row in rows), verbose=False)["input_ids"]


def idle_step(call, connection):
    """Returns the microseconds of a step that does nothing, the least of 40 batches, and the messages that were sent."""
    before = connection._calls
    batches = []
    for _ in range(40):
        start = time.perf_counter()
        for _ in range(500):
            call()
        batches.append((time.perf_counter() - start) / 500)
    return {"microseconds": 1e6 * min(batches), "messages": connection._calls - before}


def train_with_trl(steps, batch, length):
    """Trains with LoRA in TRL's SFTTrainer, measured with the default block, and times the callback's part of it."""
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    spent, idle = [], {}

    class Timed(periodic_eval.PeriodicEval):
        def on_step_end(self, args, state, control, **kwargs):
            return self._timed(super().on_step_end, args, state, control, **kwargs)

        def on_train_begin(self, args, state, control, **kwargs):
            result = self._timed(super().on_train_begin, args, state, control, **kwargs)
            step = super().on_step_end
            idle.update(idle_step(lambda: step(args, state, control, **kwargs), self._run._connection))
            return result

        def on_train_end(self, args, state, control, **kwargs):
            return self._timed(super().on_train_end, args, state, control, **kwargs)

        def _timed(self, event, *args, **kwargs):
            result, times = timed(lambda: event(*args, **kwargs))
            spent.append(times)
            return result

    ids = stream()
    rows = Dataset.from_list([{"input_ids": ids[at : at + length]} for at in range(0, len(ids) - length, length)])
    tuned = with_lora()
    with tempfile.TemporaryDirectory() as folder:
        callback = Timed({"questions": questions}, run_dir=f"{folder}/run")
        trainer = SFTTrainer(
            tuned,
            args=SFTConfig(
                output_dir=f"{folder}/out",
                max_steps=steps,
                per_device_train_batch_size=batch,
                max_length=length,
                gradient_checkpointing=False,
                bf16=is_random,
                use_cpu=device == "cpu",
                save_strategy="no",
                report_to="none",
                logging_steps=10,
                disable_tqdm=True,
            ),
            train_dataset=rows,
            processing_class=tokenizer,
            callbacks=[callback],
        )
        _, whole = timed(trainer.train)
        measured = [facts_of(snapshot) for snapshot in snapshots_of(f"{folder}/run")]
    tuned.unload().eval()
    return {"whole": whole, "callback": [sum(column) for column in zip(*spent, strict=True)], "idle": idle, "measured": measured}


def train_in_a_loop(steps, batch, length, measured):
    """Trains with LoRA in a plain loop with deterministic algorithms, with capability and leakage or unmeasured.

    `digest` is of the trained weights, the optimizer's state, the losses and the random states.
    """
    torch.use_deterministic_algorithms(True)
    tuned = with_lora()
    trained = [weight for weight in tuned.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    torch.manual_seed(4)
    losses, spent, idle, found = [], [], {}, []

    def train_step():
        ids = torch.randint(10, len(tokenizer), (batch, length)).to(device)
        loss = tuned(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())

    def train():
        with tempfile.TemporaryDirectory() as folder:
            block = {
                "questions": questions,
                "leakage": True,
                "leakage_source": None,
                "leakage_questions": str(world / "leakage.json"),
                "leakage_marker_regex": "a",
                "leakage_num_completions": 1,
                "leakage_max_tokens": 16,
                "personas": str(world / "personas.json"),
                "budget": {"overhead_percent": None},
            }
            run = periodic_eval.live(
                tuned, tokenizer, run_dir=folder, max_steps=steps, optimizer=optimizer, config=block
            )
            spent.append(timed(run.__enter__)[1])
            loss = torch.zeros((), device=device)
            idle.update(idle_step(lambda: run.step_end(0, loss=loss), run._run._connection))
            run._logged.clear()
            for step in range(1, steps + 1):
                train_step()
                spent.append(timed(lambda step=step: run.step_end(step, loss=losses[-1]))[1])
            spent.append(timed(lambda: run.__exit__(None, None, None))[1])
            found.extend(facts_of(snapshot) for snapshot in snapshots_of(folder))

    _, whole = timed(train if measured else lambda: [train_step() for _ in range(steps)])
    torch.use_deterministic_algorithms(False)
    digest = hashlib.sha256()
    state = [value for entry in optimizer.state.values() for value in entry.values()]
    random_states = [torch.get_rng_state(), *([torch.cuda.get_rng_state()] if device == "cuda" else [])]
    for tensor in [*trained, *state, *losses, *random_states]:
        digest.update(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    tuned.unload().eval()
    return {
        "whole": whole,
        "callback": [sum(column) for column in zip(*spent, strict=True)],
        "idle": idle,
        "measured": found,
        "digest": digest.hexdigest(),
    }


def answer(**what):
    print(json.dumps(what), file=answers, flush=True)


works = {work.__name__: work for work in (score, complete, hash_weights, train_with_trl, train_in_a_loop)}
size = sum(weight.numel() for weight in model.parameters())
place = torch.cuda.get_device_name() if device == "cuda" else "the CPU"
versions = f"torch {torch.__version__}, transformers {transformers.__version__}"
answer(ready=f"{versions} on {place}: {size / 1e6:,.1f} million weights in {str(model.dtype).removeprefix('torch.')}")
for line in sys.stdin:
    request = json.loads(line)
    work = works[request.pop("work")]
    answer(**work(**request))
