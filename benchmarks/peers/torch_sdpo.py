"""Updates of self-distillation policy optimization in PyTorch, for packages/trainers/src/sdpo/sdpo.parity.test.ts.

Implements the definition in docs/decisions/feedback.md (Huebotter et al. 2026, arXiv 2601.20802) with torch.autograd,
transformers, PEFT and torch.optim.AdamW. Each forward pass has one example, so that there is no padding.
Computes in float64. In float32, the gradient of tokens outside the teacher's top k is only rounding error. It differs between
processors, and Adam amplifies it to full steps.

Reads one JSON object per line: {"model": FOLDER, "adapter": FOLDER or null, "config": {...}, "updates":
[[{"student": [id, ...], "teacher": [id, ...], "response": N}, ...], ...], "out": FOLDER}. `student` and `teacher` are the
ids of each prompt, followed by the N tokens of the answer. The log-probs at sampling are those of the model before each
update. Writes the trained model, or its adapter, to `out` in float32, and answers with {"steps": {"loss": [...],
"grad_norm": [...], ...}}, with one number per gradient step.

    python torch_sdpo.py < work.jsonl
"""

import contextlib
import json
import math
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
# The answers go to the original stdout. Everything else that is printed goes to stderr.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import peft  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

# Models this small are slower with several threads.
torch.set_num_threads(1)


def load(folder, adapter):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
    if adapter is not None:
        model = peft.PeftModel.from_pretrained(model, adapter, is_trainable=True)
    # PEFT may load an adapter in another dtype than that of its model.
    return model.double().eval()


def without_adapter(model):
    return model.disable_adapter() if isinstance(model, peft.PeftModel) else contextlib.nullcontext()


def response_log_probs(model, ids, count):
    """Returns the log-probs of all tokens at the positions that predict the last `count` ids, [count, V], and those ids."""
    ids = torch.tensor([ids])
    logits = model(input_ids=ids, use_cache=False).logits[0, -count - 1 : -1]
    return torch.log_softmax(logits, -1), ids[0, -count:]


def log_probs_of(log_probs, tokens):
    return log_probs.gather(-1, tokens[:, None])[:, 0]


@torch.no_grad()
def sampled_log_probs(model, example):
    return log_probs_of(*response_log_probs(model, example["student"], example["response"]))


@torch.no_grad()
def teacher_targets(model, example, config):
    with without_adapter(model) if config["teacher"] == "base" else contextlib.nullcontext():
        log_probs, tokens = response_log_probs(model, example["teacher"], example["response"])
    top = log_probs.topk(min(config["teacher_top_k"], log_probs.shape[-1]), -1)
    return top.values, top.indices, log_probs_of(log_probs, tokens)


def divergence(log_probs, student, tokens, teacher, indices, alpha):
    if alpha == 1:
        is_drawn = indices == tokens[:, None]
        found = torch.where(is_drawn.any(-1), (teacher * is_drawn).sum(-1), torch.tensor(-20.0, dtype=teacher.dtype))
        return (student - found).detach() * student
    q = torch.log_softmax(log_probs.gather(-1, indices), -1)
    t = torch.log_softmax(teacher, -1)
    mixture = torch.logaddexp(t + math.log(alpha), q + math.log(1 - alpha))
    of_teacher = (t.exp() * (t - mixture)).sum(-1)
    of_student = (q.exp() * (q - mixture)).sum(-1)
    return alpha * of_teacher + (1 - alpha) * of_student


def terms(model, example, old, base, targets, config):
    """Returns the loss and its reported parts, each [count]."""
    log_probs, tokens = response_log_probs(model, example["student"], example["response"])
    teacher, indices, teacher_drawn = targets
    student = log_probs_of(log_probs, tokens)
    unclipped = (student - old).clamp(-20, 20).exp().detach()
    ratio = unclipped.clamp(max=config["is_clip"])
    distill = divergence(log_probs, student, tokens, teacher, indices, config["alpha"]) * ratio
    found = {
        "distill_loss": distill,
        "mean_is_ratio": ratio,
        "clip_fraction": (unclipped > config["is_clip"]).double(),
        "student_log_prob": student,
        "teacher_log_prob": teacher_drawn,
    }
    if base is None:
        return {**found, "loss": distill}
    d = (base - student if config["kl_form"] == "k3" else student - base).clamp(-20, 20)
    kl = d.exp() - 1 - d
    return {**found, "kl_reg": kl, "loss": distill + config["kl_reg_weight"] * kl}


def gradient_step(model, optimizer, trained, batch, old, base, config):
    # All teacher targets are computed before any gradient step.
    targets = [teacher_targets(model, example, config) for example in batch]
    found = [terms(model, *each, config) for each in zip(batch, old, base, targets)]
    means = {name: torch.cat([each[name] for each in found]).mean() for name in found[0]}
    optimizer.zero_grad()
    means["loss"].backward()
    norm = torch.nn.utils.clip_grad_norm_(trained, config["max_grad_norm"])
    optimizer.step()
    return {"grad_norm": norm.item(), **{name: mean.item() for name, mean in means.items()}}


def update(model, optimizer, trained, batch, config):
    old = [sampled_log_probs(model, example) for example in batch]
    base = [None] * len(batch)
    if isinstance(model, peft.PeftModel):
        with without_adapter(model):
            base = [sampled_log_probs(model, example) for example in batch]
    return [
        gradient_step(model, optimizer, trained, batch, old, base, config)
        for _ in range(config["steps_per_batch"])
    ]


def train(work):
    config = work["config"]
    model = load(work["model"], work["adapter"])
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(
        trained, lr=config["learning_rate"], betas=(0.9, 0.999), eps=1e-8, weight_decay=config["weight_decay"]
    )
    steps = [step for batch in work["updates"] for step in update(model, optimizer, trained, batch, config)]
    model.float().save_pretrained(work["out"])
    return {name: [step[name] for step in steps] for name in steps[0]}


for line in sys.stdin:
    print(json.dumps({"steps": train(json.loads(line))}), file=answers, flush=True)
