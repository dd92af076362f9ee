"""Batches of rows that fit into memory: out of memory makes them smaller."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import torch

from .errors import PeriodicEvalError
from .forward import Forward

T = TypeVar("T")


def batches(items: Sequence[T], length: Callable[[T], int], budget: int) -> Iterator[list[T]]:
    """Yields batches of items in their order whose count times the longest length stays within the budget."""
    batch: list[T] = []
    longest = 0
    for item in items:
        grown = max(longest, length(item))
        if batch and grown * (len(batch) + 1) > budget:
            yield batch
            batch, grown = [], length(item)
        batch.append(item)
        longest = grown
    if batch:
        yield batch


def in_batches(
    forward: Forward,
    items: Iterable[T],
    length: Callable[[T], int],
    work: Callable[[list[T]], None],
    *,
    factor: int = 1,
    split: Callable[[T, int], list[T]] | None = None,
    on_halved: Callable[[int], None] | None = None,
) -> None:
    """Calls `work` with batches of items of at most `factor * forward.batch_tokens` tokens.

    Out of memory halves `forward.batch_tokens` for good and repeats the batch; `split` returns the parts of
    an item for a number of tokens. Raises PeriodicEvalError `memory` if an item without parts does not fit.
    Ranks in lockstep do not repeat it, because others may be in the middle of the pass: they raise.
    """
    left = list(items)
    while left:
        batch = next(batches(left, length, forward.batch_tokens * factor))
        if _ran(work, batch):
            left = left[len(batch) :]
            continue
        free_memory()
        size = max(length(item) for item in batch) * len(batch)
        halved = max(1, min(forward.batch_tokens, size // factor) // 2)
        parts = left if split is None else [part for item in left for part in split(item, halved * factor)]
        if len(batch) == 1 and len(parts) == len(left):
            got = f"out of memory with one row of {size} tokens"
            fix = "Use fewer tokens per row, or train with less memory."
            raise PeriodicEvalError("memory", "the model", got, fix=fix)
        left, forward.batch_tokens = parts, halved
        if on_halved is not None:
            on_halved(forward.batch_tokens)
        if forward.lockstep is not None:
            fix = "The next measurement has smaller batches."
            raise PeriodicEvalError("memory", "the model", f"out of memory with {size} tokens", fix=fix)


def _ran(work: Callable[[list[T]], None], batch: list[T]) -> bool:
    """Returns false if the work ran out of memory. Its tensors are free then: nothing holds the error."""
    try:
        work(batch)
        return True
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return False


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether an error is a failed allocation, on any device."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text)


def free_memory() -> None:
    """Returns unused memory to the device."""
    gc.collect()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
