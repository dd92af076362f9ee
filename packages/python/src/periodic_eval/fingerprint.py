"""Fingerprints of tensors: integer sums modulo 2^64, computed where the tensor is.

A tensor is read as words of 32 bits, or of 64 bits if its elements have as many. The word with global index
i = 4096 q + r adds u(name, q) * v(r) * word(i), with odd pseudo-random factors u and v. A change of a single
element always changes the sum; several changes cancel with a probability of about 2^-32. The sum does not
depend on how a tensor is cut into chunks, shards or ranks.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

ROW = 4096
MODULUS = 2**64
Reduce = Callable[[int], int]
"""Adds an integer over all ranks that hold shards."""


def fingerprint(tensors: Iterable[tuple[str, Tensor]], reduce: Reduce | None = None, rank: int = 0) -> str:
    """Returns a string that changes when a bit, a name, a type or a shape changes.

    With `reduce`, each rank adds its own shards, and rank 0 alone adds tensors that all ranks hold whole.
    """
    total = 0
    sums: dict[torch.device, list[Tensor]] = {}
    for name, tensor in tensors:
        parts = local_parts(tensor, rank if reduce is not None else 0)
        if rank == 0 or reduce is None:
            total += _number(f"{name} {tensor.dtype} {list(tensor.shape)}")
        for start, part in parts:
            if part.numel() > 0:
                sums.setdefault(part.device, []).append(_weighted_sum(name, start, part))
    for values in sums.values():
        # One transfer per device.
        total += int(torch.stack(values).sum().item())
    total %= MODULUS
    if reduce is not None:
        total = reduce(total) % MODULUS
    return f"approximate:{total:016x}"


def local_parts(tensor: Any, rank: int) -> list[tuple[int, Tensor]]:
    """Returns what this process adds of a tensor: flat parts with the global index of their first element.

    Raises ValueError for a tensor that is sharded along another dimension than the first.
    """
    if hasattr(tensor, "ds_tensor"):
        shard: Tensor = tensor.ds_tensor.detach()
        size = min(shard.numel(), max(0, math.prod(tensor.ds_shape) - rank * shard.numel()))
        return [(rank * shard.numel(), shard.flatten()[:size])]
    if not hasattr(tensor, "to_local"):
        return [(0, tensor.detach())] if rank == 0 else []
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    coordinates = tensor.device_mesh.get_coordinate() or []
    for placement, coordinate in zip(tensor.placements, coordinates, strict=False):
        if isinstance(placement, Replicate) and coordinate != 0:
            return []
        if not isinstance(placement, (Replicate, Shard)) or (
            isinstance(placement, Shard) and placement.dim != 0
        ):
            raise ValueError(f"a tensor with the placement {placement}")
    _, offset = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
    width = math.prod(tensor.shape[1:])
    return [((offset[0] if offset else 0) * width, tensor.detach().to_local())]


def _weighted_sum(name: str, start: int, tensor: Tensor) -> Tensor:
    """Returns the sum modulo 2^64 of a part, as an int64 scalar on its device."""
    start, bits = _words(start, tensor)
    seed = _number(name) % 2**62
    head = min(len(bits), -start % ROW)
    sums: list[Tensor] = []
    if head > 0:
        sums.append(_row(seed, start, bits[:head]))
    rows = (len(bits) - head) // ROW
    if rows > 0:
        first = (start + head) // ROW
        sums.append(_rows(seed, first, bits[head : head + rows * ROW].view(rows, ROW)))
    if len(bits) > head + rows * ROW:
        sums.append(_row(seed, start + head + rows * ROW, bits[head + rows * ROW :]))
    return torch.stack(sums).sum()


def _words(start: int, tensor: Tensor) -> tuple[int, Tensor]:
    """Returns the words of a part, and the global index of the first. A cut word is filled up with zeros."""
    flat = (torch.view_as_real(tensor) if tensor.is_complex() else tensor).contiguous().flatten()
    size = flat.element_size()
    if size >= 4:
        return start * (len(flat) // tensor.numel()), flat.view(torch.int64 if size == 8 else torch.int32)
    flat, lanes = flat.view(torch.uint8 if size == 1 else torch.int16), 4 // size
    before = start % lanes
    after = -(before + len(flat)) % lanes
    if before + after > 0:
        flat = torch.nn.functional.pad(flat, (before, after))
    if flat.storage_offset() % lanes:
        flat = flat.clone()
    return start // lanes, flat.view(torch.int32)


def _row(seed: int, start: int, bits: Tensor) -> Tensor:
    """Returns the sum of a part of one row."""
    column = start % ROW
    factors = _columns(bits.device)[column : column + len(bits)]
    return (bits.long() * factors).sum() * _factors(seed, start // ROW, 1, bits.device)[0]


def _rows(seed: int, first: int, bits: Tensor) -> Tensor:
    """Returns the sum of whole rows [rows, 4096], in chunks that fit a CPU cache or 256 MB of a GPU."""
    device = bits.device
    # On the CPU below the size at which torch starts threads: waiting for them costs more than they save.
    size = 7 if device.type == "cpu" else 8192
    columns = _columns(device)
    sums = torch.empty(len(bits), dtype=torch.int64, device=device)
    buffer = torch.empty(min(size, len(bits)), ROW, dtype=torch.int64, device=device)
    for at in range(0, len(bits), size):
        chunk = bits[at : at + size]
        wide = buffer[: len(chunk)]
        wide.copy_(chunk)
        if device.type == "cpu":
            torch.mv(wide, columns, out=sums[at : at + size])
        else:
            torch.sum(wide.mul_(columns), dim=1, out=sums[at : at + size])
    return (sums * _factors(seed, first, len(bits), device)).sum()


_cached_columns: dict[torch.device, Tensor] = {}


def _columns(device: torch.device) -> Tensor:
    if device not in _cached_columns:
        _cached_columns[device] = _factors(1, 0, ROW, torch.device("cpu")).to(device)
    return _cached_columns[device]


def _factors(seed: int, start: int, count: int, device: torch.device) -> Tensor:
    """Returns odd pseudo-random integers [count] of a seed, by the finalizer of splitmix64."""
    x = torch.arange(start, start + count, dtype=torch.int64, device=device) * -7046029254386353131 + seed
    for shift, factor in ((30, -4658895280553007687), (27, -7723592293110705685)):
        x = (x ^ ((x >> shift) & (2 ** (64 - shift) - 1))) * factor
    return (x ^ ((x >> 31) & (2**33 - 1))) | 1


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
