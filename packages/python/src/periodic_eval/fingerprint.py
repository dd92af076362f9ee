"""Fingerprints of tensors: integer sums modulo 2^64, computed where the tensor is.

A tensor is read as words of 32 bits. The word with index i = 4096 q + r adds u(name, q) * v(r) * word(i),
with odd pseudo-random factors u and v. A change of a single word always changes the sum; changes of several
words cancel with a probability of about 2^-32. The sum does not depend on how a tensor is cut into chunks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

ROW = 4096
MODULUS = 2**64


def fingerprint(tensors: Iterable[tuple[str, Any]]) -> str:
    """Returns a string that changes when a bit, a name, a type or a shape changes.

    A rank reads its shard of a sharded tensor: the string then depends on the rank and the number of ranks.
    """
    total = 0
    sums: dict[torch.device, list[Tensor]] = {}
    for name, tensor in tensors:
        total += _number(f"{name} {tensor.dtype} {list(tensor.shape)}")
        part: Tensor = (tensor.to_local() if hasattr(tensor, "to_local") else tensor).detach()
        if part.numel() > 0:
            sums.setdefault(part.device, []).append(_weighted_sum(name, part))
    for values in sums.values():
        # One transfer per device.
        total += int(torch.stack(values).sum().item())
    return f"approximate:{total % MODULUS:016x}"


def _weighted_sum(name: str, tensor: Tensor) -> Tensor:
    """Returns the sum modulo 2^64 of a tensor, as an int64 scalar on its device."""
    bits = _words(tensor)
    seed = _number(name) % 2**62
    sums: list[Tensor] = []
    rows = len(bits) // ROW
    if rows > 0:
        sums.append(_rows(seed, bits[: rows * ROW].view(rows, ROW)))
    if len(bits) > rows * ROW:
        sums.append(_row(seed, rows, bits[rows * ROW :]))
    return torch.stack(sums).sum()


def _words(tensor: Tensor) -> Tensor:
    """Returns the words of a tensor. A cut word is filled up with zeros."""
    flat = (torch.view_as_real(tensor) if tensor.is_complex() else tensor).contiguous().flatten()
    size = flat.element_size()
    if size >= 4:
        return flat.view(torch.int32)
    flat, lanes = flat.view(torch.uint8 if size == 1 else torch.int16), 4 // size
    if len(flat) % lanes > 0:
        flat = torch.nn.functional.pad(flat, (0, -len(flat) % lanes))
    if flat.storage_offset() % lanes:
        flat = flat.clone()
    return flat.view(torch.int32)


def _row(seed: int, row: int, bits: Tensor) -> Tensor:
    """Returns the sum of the beginning of one row."""
    factors = _columns(bits.device)[: len(bits)]
    return (bits.long() * factors).sum() * _factors(seed, row, 1, bits.device)[0]


def _rows(seed: int, bits: Tensor) -> Tensor:
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
    return (sums * _factors(seed, 0, len(bits), device)).sum()


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
