"""Trains the embedded model, measured by the real host or not; test_twins.py compares the two.

Run with torchrun for two processes: `twin_train.py KIND FOLDER BLOCK OPTIONS`. KIND is ddp or fsdp2, and
BLOCK is the `periodic_eval` block in JSON, or null to measure nothing.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parent)]

import numpy as np
import torch
import torch.distributed as dist
from tiny import end_rank, micro_world

import periodic_eval
from periodic_eval.connection import Connection

STEPS = 40


def with_dropout() -> tuple[Any, Any]:
    """Returns the embedded model with dropout, and its tokenizer."""
    model, tokenizer = micro_world()
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.1
    return model, tokenizer


def seed_all(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


def local(value: Any) -> torch.Tensor:
    """Returns a copy of a tensor, or of this rank's part of it."""
    tensor = value.to_local() if hasattr(value, "to_local") else value
    return tensor.detach().clone()


def state_of(model: Any, optimizer: Any, losses: list[float]) -> dict[str, torch.Tensor]:
    """Returns weights, buffers, optimizer state, random states and losses by name."""
    state = {f"weight {name}": local(value) for name, value in model.named_parameters()}
    state |= {f"buffer {name}": local(value) for name, value in model.named_buffers()}
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for parameter, slots in optimizer.state.items():
        for key, value in slots.items():
            state[f"{key} of {names[id(parameter)]}"] = local(torch.as_tensor(value))
    state["torch's random state"] = torch.get_rng_state()
    state["Python's random numbers"] = torch.tensor([random.random() for _ in range(3)])
    state["numpy's random numbers"] = torch.from_numpy(np.random.rand(3))
    state["losses"] = torch.tensor(losses, dtype=torch.float64)
    return state


def train_loop(
    model: Any,
    tokenizer: Any,
    optimizer: Any,
    folder: Path,
    block: Any,
    steps: int = STEPS,
    watch: Any = None,
    every: int = 2,
) -> tuple[list[float], Any]:
    """Trains on random ids; calls `watch(step)` before each `step_end`. Returns the losses and the run."""
    losses: list[float] = []
    model.train()

    def train_step() -> float:
        ids = torch.tensor([[random.randrange(3, 1000) for _ in range(12)] for _ in range(2)])
        loss = model(input_ids=ids, labels=ids).loss + 0 * float(np.random.rand())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        return losses[-1]

    if block is None:
        for _ in range(steps):
            train_step()
        return losses, None
    run = periodic_eval.live(
        model,
        tokenizer,
        run_dir=str(folder),
        max_steps=steps,
        optimizer=optimizer,
        config=block,
        sync_every=every,
    )
    with run:
        for step in range(1, steps + 1):
            loss = train_step()
            if watch is not None:
                watch(step)
            run.step_end(step, epoch=step / steps, loss=loss)
            if run.stop is not None:
                break
    return losses, run


class Counter:
    """Counts what a rank computes: rows of each call, and forward passes."""

    def __init__(self) -> None:
        from periodic_eval.answering import Answering

        self.calls: list[dict[str, Any]] = []
        block, compute = Answering._block, Answering._compute
        counts = self.calls

        def counted_block(answering: Any, call: Any, rows: Any, failure: Any) -> Any:
            counts.append({"method": call.method, "rows": len(rows), "mine": 0, "passes": 0})
            before = answering.forward.passes
            result = block(answering, call, rows, failure)
            counts[-1]["passes"] = answering.forward.passes - before
            return result

        def counted_compute(answering: Any, call: Any, rows: Any, put: Any) -> None:
            counts[-1]["mine"] += len(rows)
            compute(answering, call, rows, put)

        Answering._block, Answering._compute = counted_block, counted_compute  # type: ignore[method-assign]


class Wakes:
    """Keeps at which `step` each wake of the host arrived."""

    def __init__(self) -> None:
        self.step = 0
        self.steps: list[int] = []
        take = Connection._take

        def told(connection: Connection, message: dict[str, Any]) -> None:
            take(connection, message)
            if message.get("method") == "wake":
                self.steps.append(self.step)

        Connection._take = told  # type: ignore[method-assign]


def main(kind: str, folder: str, block: str, options: str = "{}") -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    seed_all(1)
    model, tokenizer = with_dropout()
    settings, more = json.loads(block), json.loads(options)
    layers = model.model.layers
    if more.get("lora"):
        from peft import LoraConfig, get_peft_model

        lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.05)
        model = get_peft_model(model, lora)
    seed_all(10 + rank)
    inner = model
    if kind == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for layer in layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    else:
        model = torch.nn.parallel.DistributedDataParallel(model)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-3)
    if more.get("disturb") and rank == 1:
        change_a_weight(inner)
    counter, wakes = Counter(), Wakes()
    at, released = more.get("release", (None, ""))

    def watch(step: int) -> None:
        time.sleep(more.get("pause", 0))
        if step == at and rank == 0:
            Path(released).touch()
        wakes.step = step
        if more.get("raise") == [rank, step]:
            raise RuntimeError("a bad batch")

    steps, every = more.get("steps", STEPS), more.get("sync_every", 2)
    losses, run = train_loop(model, tokenizer, optimizer, Path(folder) / "run", settings, steps, watch, every)
    name = "plain" if settings is None else "measured"
    torch.save(state_of(inner, optimizer, losses), f"{folder}/{name}-{rank}.pt")
    stop = run.stop if run is not None else None
    facts = {"calls": counter.calls, "steps": len(losses), "stop": stop, "wakes": wakes.steps}
    Path(f"{folder}/{name}-{rank}.json").write_text(json.dumps(facts))
    end_rank()


def change_a_weight(model: Any) -> None:
    """Flips a bit of a weight in the first forward pass of the second measurement."""
    from periodic_eval.answering import Answering

    compute, windows = Answering._compute, [0]
    together = Answering.together

    def counted(answering: Any, call: Any) -> Any:
        windows[0] += call.method == "enter"
        return together(answering, call)

    def disturbed(answering: Any, call: Any, rows: Any, put: Any) -> None:
        if windows[0] == 2:
            # Before the forward pass, while the weights of FSDP2 are in their parts.
            windows[0] += 1
            weight = next(local for p in model.parameters() if (local := part(p)).numel() > 0)
            weight.view(-1)[:1].view(torch.int32).bitwise_xor_(1)
        compute(answering, call, rows, put)

    def part(parameter: Any) -> torch.Tensor:
        return (parameter.to_local() if hasattr(parameter, "to_local") else parameter).detach()

    Answering.together, Answering._compute = counted, disturbed  # type: ignore[method-assign]


if __name__ == "__main__":
    main(*sys.argv[1:])
