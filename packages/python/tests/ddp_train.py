"""Trains a tiny model on two processes, measured or not; run with torchrun by test_distributed.py."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parent)]

import torch
import torch.distributed as dist
from tiny import end_rank, random_model


def with_trainer(folder: str, measured: str, kind: str) -> None:
    """Trains the embedded model with LoRA in the Trainer of transformers."""
    from test_signals import harmed
    from test_trainer import final, trainer_of

    from periodic_eval import PeriodicEval

    callbacks = [PeriodicEval(run_dir=folder)] if measured == "measured" else []
    settings = {"save_strategy": "steps", "save_steps": 4, "ddp_backend": "gloo"}
    if kind == "stopped":
        trainer = harmed(Path(folder), ["capability worse"], restore="last_clean")
    else:
        trainer = trainer_of(Path(folder) / measured, callbacks, **settings)
    trainer.train()
    rank = dist.get_rank()
    weights = [*trainer.model.state_dict().values()]
    torch.save(weights if kind == "stopped" else final(trainer), f"{folder}/{measured}-{rank}.pt")
    Path(f"{folder}/{measured}-{rank}.json").write_text(json.dumps({"steps": trainer.state.global_step}))
    end_rank()


def inject(fault: str, rank: int, model: Any, optimizer: Any) -> None:
    """Makes something fail: on one rank, or the model on both."""
    import periodic_eval.answering
    import periodic_eval.connection
    import periodic_eval.fingerprint
    import periodic_eval.guards
    import periodic_eval.scoring

    def put(holder: Any, name: str, fails: Any) -> None:
        """Replaces a function by one that calls `fails` before."""
        real = getattr(holder, name)
        setattr(holder, name, lambda *inputs, **named: (fails(*inputs), real(*inputs, **named))[1])

    errors = [torch.OutOfMemoryError("CUDA out of memory.")]

    def run_out(*_: Any) -> None:
        if errors:
            raise errors.pop()

    def refuse(*_: Any) -> None:
        if not model.training:
            for state in optimizer.state.values():
                state["step"] += 1
            if fault == "model":
                raise ValueError("a test")

    def refuse_weight(name: str, *_: Any) -> None:
        if name == "model.norm.weight":
            raise ValueError("a test")

    def refuse_step(_: Any, method: str, *__: Any) -> None:
        if method == "step":
            raise TypeError("a test")

    def lose_host(call: Any, *_: Any) -> None:
        call._connection._process.kill()
        call._connection._process.wait()
        time.sleep(0.5)
        call._connection.raise_if_lost()

    if fault == "sending":
        periodic_eval.answering.BLOCK_ROWS["log_likelihoods"] = 2
        put(periodic_eval.connection.HostCall, "add_row", lose_host)
    if fault == "window" and rank == 1:
        put(periodic_eval.guards.Window, "enter", run_out)
    if fault == "memory" and rank == 1:
        put(periodic_eval.scoring, "log_softmax_rows", run_out)
    if fault == "model" or (fault == "guard" and rank == 1):
        model.register_forward_pre_hook(refuse)
    if fault == "guard" and rank == 1:
        put(periodic_eval.fingerprint, "_weighted_sum", refuse_weight)
    if fault == "message" and rank == 0:
        put(periodic_eval.connection.Connection, "call", refuse_step)


def main(kind: str, folder: str, measured: str, pause: str, fault: str = "") -> None:
    if kind in ("trainer", "stopped"):
        with_trainer(folder, measured, kind)
        return
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model: Any = random_model("llama", attention_dropout=0.1)
    torch.manual_seed(10 + rank)
    inner = model
    if kind == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    else:
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.train()
    losses: list[float] = []

    def train_step() -> torch.Tensor:
        ids = torch.randint(3, 64, (2, 12))
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        time.sleep(float(pause))
        return loss

    steps, counts = 8, {}
    if measured == "measured":
        from letters import Letters

        import periodic_eval

        inject(fault, rank, inner, optimizer)
        run = periodic_eval.live(
            model, Letters(), run_dir=folder, max_steps=steps, optimizer=optimizer, sync_every=2
        )
        with run:
            for step in range(1, steps + 1):
                run.step_end(step, loss=train_step())
                if run.stop:
                    break
        forward = run._run._answering.forward
        counts = {"rows": forward.rows, "passes": forward.passes}
    else:
        for _ in range(steps):
            train_step()
    tensors: list[torch.Tensor] = []
    for value in inner.state_dict().values():
        tensors.append(value.to_local() if hasattr(value, "to_local") else value)
    for state in optimizer.state.values():
        tensors += [v.to_local() if hasattr(v, "to_local") else v for v in state.values()]
    tensors += [torch.get_rng_state(), torch.tensor(losses)]
    torch.save(tensors, f"{folder}/{measured}-{rank}.pt")
    Path(f"{folder}/{measured}-{rank}.json").write_text(json.dumps({**counts, "steps": len(losses)}))
    end_rank()


if __name__ == "__main__":
    main(*sys.argv[1:])
