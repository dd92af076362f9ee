"""Several processes: rank 0 speaks with the host, and all ranks answer its calls together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch import nn

from .errors import PeriodicEvalError
from .forward import Forward, Lockstep


class Ranks:
    """The processes that train; here one process alone."""

    size = 1
    rank = 0

    def broadcast(self, value: Any) -> Any:
        """Returns rank 0's value on all ranks."""
        return value

    def gather(self, value: Any) -> list[Any]:
        """Returns the values of all ranks, on all ranks."""
        return [value]

    def collect(self, value: Any) -> list[Any]:
        """Returns the values of all ranks on rank 0, and nothing on the others."""
        return [value]

    def any(self, flag: bool) -> bool:
        """Returns whether the flag of any rank is true."""
        return flag

    def share(self, count: int) -> range:
        """Returns the rows of this rank: at most ⌈count / ranks⌉, in order."""
        return range(count * self.rank // self.size, count * (self.rank + 1) // self.size)


class GlooRanks(Ranks):
    """The ranks of the default process group, which speak over a gloo group of their own.

    Its timeout is a day: rank 0 may wait for the host while the others wait for rank 0.
    """

    def __init__(self) -> None:
        import torch.distributed as dist

        self._dist: Any = dist
        self._group: Any = dist.new_group(backend="gloo", timeout=timedelta(days=1))
        self.size, self.rank = dist.get_world_size(), dist.get_rank()

    def broadcast(self, value: Any) -> Any:
        box = [value]
        self._dist.broadcast_object_list(box, src=0, group=self._group, device=torch.device("cpu"))
        return box[0]

    def gather(self, value: Any) -> list[Any]:
        values: list[Any] = [None] * self.size
        self._dist.all_gather_object(values, value, group=self._group)
        return values

    def collect(self, value: Any) -> list[Any]:
        values: list[Any] = [None] * self.size if self.rank == 0 else []
        self._dist.gather_object(value, values or None, dst=0, group=self._group)
        return values

    def any(self, flag: bool) -> bool:
        count = torch.tensor([int(flag)])
        self._dist.all_reduce(count, group=self._group)
        return int(count.item()) > 0


def find_ranks() -> Ranks:
    """Returns the ranks of the default process group, or one process alone."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        return GlooRanks()
    return Ranks()


def is_collective(model: nn.Module) -> bool:
    """Returns whether all ranks must run each forward pass together: FSDP2."""
    return any(_is_fsdp(module) for module in model.modules())


def keep_together(forward: Forward, ranks: Ranks) -> None:
    """Makes the forward passes of a sharded model collective."""
    if ranks.size > 1 and is_collective(forward.model):
        forward.lockstep = Lockstep(ranks.any, lambda: forward.logits_at([[0]], [(0, 0)]))


def reshard(model: nn.Module) -> None:
    """Frees the whole weights that FSDP2 keeps after a forward pass without a backward pass."""
    for module in model.modules():
        if _is_fsdp(module):
            free: Any = module
            free.reshard()


def refuse_unsupported(model: nn.Module, optimizer: Any = None) -> None:
    """Raises PeriodicEvalError for a model that cannot be measured in the trainer's process."""
    got = "DeepSpeed" if "DeepSpeed" in type(optimizer).__name__ else _unsupported(model)
    if got is not None:
        fix = "Measure its checkpoints with `periodic-eval watch` instead."
        raise PeriodicEvalError("config", "the model", got, "a model that this process can run", fix)


def _unsupported(model: nn.Module) -> str | None:
    kinds = {type(module).__name__ for module in model.modules()}
    if kinds & {"FullyShardedDataParallel"}:
        return "FSDP of version 1, where FSDP of version 2 is supported"
    if kinds & {"PipelineModule", "PipelineStage", "PipelineEngine"}:
        return "pipeline parallelism"
    if "DeepSpeedEngine" in kinds or any(hasattr(parameter, "ds_id") for parameter in model.parameters()):
        return "DeepSpeed"
    places = getattr(model, "hf_device_map", None)
    if (
        isinstance(places, dict)
        and {"cpu", "disk"} & {str(place) for place in places.values()}
        and len(places) > 1
    ) or any(_is_offloaded(parameter) for parameter in model.parameters()):
        return "a model that is offloaded while it trains"
    if any(parameter.device.type == "meta" for parameter in model.parameters()):
        return "weights on the device `meta`, which hold no numbers"
    for name, parameter in model.named_parameters():
        placements: Sequence[Any] = getattr(parameter, "placements", ())
        if any(getattr(placement, "dim", 0) != 0 for placement in placements) or "tp" in _axes(parameter):
            return f"tensor parallelism (the weight {name})"
    return None


def _axes(parameter: Any) -> tuple[str, ...]:
    return tuple(getattr(getattr(parameter, "device_mesh", None), "mesh_dim_names", None) or ())


def _is_offloaded(parameter: Any) -> bool:
    """Returns whether FSDP2 keeps a weight on the CPU and computes on a GPU."""
    mesh = getattr(parameter, "device_mesh", None)
    return mesh is not None and parameter.device.type == "cpu" != mesh.device_type


def _is_fsdp(module: nn.Module) -> bool:
    return any(base.__name__ == "FSDPModule" for base in type(module).__mro__)
