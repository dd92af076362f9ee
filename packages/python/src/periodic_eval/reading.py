"""Reads rows of ids for the logits at their ends. A beginning that rows share is read once."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor

from .batches import free_memory, in_batches, is_out_of_memory
from .forward import Check, Forward, Ids, left_padding, padded

Work = Callable[[list[int], Tensor], None]
"""Receives the indices of rows, and the logits [N, V] of their ends, row after row."""

Halved = Callable[[int], None]

PACK_TOKENS = 256
"""Ids of a pack: longer ones cost more attention than they save padding."""

PREFIX_TOKENS = 16
"""Shortest beginning of all rows that is cached."""


@dataclass(frozen=True)
class Row:
    """A row whose logits are wanted from position `start` to the end."""

    index: int
    ids: Ids
    start: int


def read_ends(
    forward: Forward, rows: Sequence[Row], work: Work, check: Check, *, on_halved: Halved | None = None
) -> None:
    """Calls `work` with rows in batches, in any order, and `check` between the batches."""
    if not rows:
        return
    if _can_pack(forward, rows):
        packed = _Packed(forward, rows)
        if packed.equals_whole_rows():
            packed.read(work, check, on_halved)
            return
    groups: dict[tuple[int, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.ids[: row.start + 1]), []).append(row)
    alone: list[Row] = []
    shared: list[list[Row]] = []
    for group in groups.values():
        if len(group) > 1 and forward.caches:
            shared.append(group)
        else:
            alone += group

    def whole(batch: list[Row]) -> None:
        check(0)
        work([row.index for row in batch], _whole_rows(forward, batch))
        check(sum(len(row.ids) for row in batch))

    def cached(batch: list[list[Row]]) -> None:
        check(0)
        work([row.index for group in batch for row in group], _shared_contexts(forward, batch))
        check(sum(group[0].start + 1 + sum(len(r.ids) - r.start - 1 for r in group) for group in batch))

    longest = lambda group: max(len(row.ids) for row in group)  # noqa: E731
    size = lambda group: longest(group) * len(group)  # noqa: E731

    def split(group: list[Row], budget: int) -> list[list[Row]]:
        count = max(1, budget // longest(group))
        return [group[at : at + count] for at in range(0, len(group), count)]

    alone.sort(key=lambda row: len(row.ids), reverse=True)
    in_batches(forward, alone, lambda row: len(row.ids), whole, on_halved=on_halved)
    shared.sort(key=lambda group: group[0].start, reverse=True)
    in_batches(forward, shared, size, cached, factor=2, split=split, on_halved=on_halved)


def _whole_rows(forward: Forward, batch: Sequence[Row]) -> Tensor:
    at = [(i, place) for i, row in enumerate(batch) for place in range(row.start, len(row.ids))]
    return forward.logits_at([row.ids for row in batch], at)


def _shared_contexts(forward: Forward, batch: Sequence[Sequence[Row]]) -> Tensor:
    """Reads the context of each group once, and then all continuations with its keys and values."""
    device = forward.device
    contexts = [group[0].ids[: group[0].start + 1] for group in batch]
    end = max(map(len, contexts)) + max(len(row.ids) - row.start - 1 for group in batch for row in group)
    if len(batch) > 1 and end > forward.last_place:
        # Padding on the left would push a continuation beyond the last place.
        return torch.cat([_shared_contexts(forward, [group]) for group in batch])
    mask, positions = left_padding(contexts, device)
    ids = padded(contexts, device, left=True)
    length = ids.shape[1]
    ends = [(row, length - 1) for row in range(len(batch))]
    first, cache = forward.run(ids, ends, mask=mask, positions=positions, keep_cache=True)
    rows = [row for group in batch for row in group]
    owners = [i for i, group in enumerate(batch) for _ in group]
    rests = [row.ids[row.start + 1 :] for row in rows]
    longest = max(map(len, rests))
    if longest == 0:
        return first[torch.tensor(owners, device=first.device)]
    if cache is None:
        forward.caches = False
        return _whole_rows(forward, rows)
    reading = [i for i, rest in enumerate(rests) if rest]
    chosen = torch.tensor([owners[i] for i in reading], device=device)
    cache.reorder_cache(chosen)
    read = [rests[i] for i in reading]
    if mask is not None:
        mask = torch.cat([mask[chosen], mask.new_ones(len(read), longest)], dim=1)
        starts = torch.tensor([len(contexts[owners[i]]) for i in reading], device=device)
        positions = starts[:, None] + torch.arange(longest, device=device)[None]
    at = [(row, place) for row, ids in enumerate(read) for place in range(len(ids))]
    later, _ = forward.run(
        padded(read, device), at, mask=mask, positions=positions, cache=cache, keep_cache=True
    )
    order: list[int] = []
    taken = len(first)
    for owner, rest in zip(owners, rests, strict=True):
        order += [owner, *range(taken, taken + len(rest))]
        taken += len(rest)
    return torch.cat([first, later])[torch.tensor(order, device=first.device)]


@dataclass
class _Pack:
    """Rows in one sequence: each id of a beginning that neighbours share is there once.

    A span `(first, end, before)` of new ids sees itself and the places `before`.
    """

    rows: list[Row] = field(default_factory=list[Row])
    ids: list[int] = field(default_factory=list[int])
    positions: list[int] = field(default_factory=list[int])
    spans: list[tuple[int, int, list[int]]] = field(default_factory=list[Any])
    ends: list[list[int]] = field(default_factory=list[list[int]])
    """The places of each row from its start."""


class _Packed:
    """Rows that are read in packs.

    If one pack does not hold them all, the keys and values of a beginning of all rows are cached.
    """

    def __init__(self, forward: Forward, rows: Sequence[Row]) -> None:
        self._forward, self._prefix, self._cache = forward, 0, None
        self._rows = sorted(rows, key=lambda row: list(row.ids))
        shared = min(_same(self._rows[0].ids, self._rows[-1].ids), min(row.start for row in rows))
        capacity = min(PACK_TOKENS, forward.batch_tokens)
        # Some models mask by the place in the sequence (GPT-Neo).
        reach = min(forward.window or math.inf, forward.last_place)
        self._packs = self.packs(self._rows, min(capacity, reach))
        if shared >= PREFIX_TOKENS and len(self._packs) > 1 and forward.caches:
            with _without_memory_errors(forward):
                ids = padded([self._rows[0].ids[:shared]], forward.device)
                _, self._cache = forward.run(ids, [(0, 0)], keep_cache=True)
        if self._cache is not None:
            self._prefix = shared
            self._packs = self.packs(self._rows, min(capacity, reach - shared))

    def equals_whole_rows(self) -> bool:
        """Compares the row with the widest spread, and the longest row, with the same rows read whole.

        The model may mask by the place in the sequence, or see a window that its configuration does not name.
        A row that is spread no further, and a row that is no longer, is not compared again.
        """
        forward = self._forward
        rows = [(pack, at, row) for pack in self._packs for at, row in enumerate(pack.rows)]
        spreads = [self._spread(pack, at) for pack, at, _ in rows]
        lengths = [len(row.ids) for _, _, row in rows]
        # A row at neighbouring places is read like a whole one, so it shows nothing of masks by place.
        apart = [spread if spread > length else 0 for spread, length in zip(spreads, lengths, strict=True)]
        reach = [max(apart), max(lengths)]
        widest, longest = apart.index(reach[0]), lengths.index(reach[1])
        compared = [widest] if reach[0] > forward.packed_to[0] else []
        if reach[1] > forward.packed_to[1] and all(lengths[index] < reach[1] for index in compared):
            compared.append(longest)
        matches = [_matches(forward, self, rows[index][0], rows[index][2]) for index in compared]
        if False in matches:
            forward.packs = False
        if not all(matches):
            return False
        forward.packed_to = (max(reach[0], forward.packed_to[0]), max(reach[1], forward.packed_to[1]))
        return True

    def _spread(self, pack: _Pack, at: int) -> int:
        """Returns the number of places from the first to the last id of a row of a pack."""
        first, end, before = pack.spans[at]
        begin = 0 if self._prefix > 0 else (before or [first])[0]
        last = end - 1 if end > first else before[-1]
        return self._prefix + last - begin + 1

    def read(self, work: Work, check: Check, on_halved: Halved | None = None) -> None:
        def read(batch: list[_Pack]) -> None:
            check(0)
            work([row.index for pack in batch for row in pack.rows], self.logits(batch))
            check(sum(len(pack.ids) for pack in batch))

        check(self._prefix)
        size = lambda pack: self._prefix + len(pack.ids)  # noqa: E731
        split = lambda pack, budget: self.packs(pack.rows, budget - self._prefix)  # noqa: E731
        self._packs.sort(key=size, reverse=True)
        in_batches(self._forward, self._packs, size, read, split=split, on_halved=on_halved)

    def packs(self, rows: Sequence[Row], capacity: float) -> list[_Pack]:
        """Returns packs of at most `capacity` ids, or of one row, with rows in their order."""
        packs: list[_Pack] = []
        path: list[int] = []
        last: Ids = []
        for row in rows:
            ids = row.ids[self._prefix :]
            shared = _same(ids, last)
            if not packs or len(packs[-1].ids) + len(ids) - shared > capacity:
                packs.append(_Pack())
                shared = 0
            pack, first, before = packs[-1], len(packs[-1].ids), path[:shared]
            path = [*before, *range(first, first + len(ids) - shared)]
            pack.rows.append(row)
            pack.ids += ids[shared:]
            pack.positions += range(self._prefix + shared, len(row.ids))
            pack.spans.append((first, len(pack.ids), before))
            pack.ends.append(path[row.start - self._prefix :])
            last = ids
        return packs

    def logits(self, batch: Sequence[_Pack]) -> Tensor:
        forward = self._forward
        ids = padded([pack.ids for pack in batch], forward.device)
        positions = padded([pack.positions for pack in batch], forward.device)
        count, length = ids.shape
        # Padding sees itself: a softmax over nothing is NaN.
        sees = torch.eye(length, dtype=torch.bool).repeat(count, 1, 1)
        for pack, row in zip(batch, sees, strict=True):
            for first, end, before in pack.spans:
                row[first:end, before] = True
                row[first:end, first:end] = torch.ones(end - first, end - first, dtype=torch.bool).tril()
        sees = torch.cat([torch.ones(count, length, self._prefix, dtype=torch.bool), sees], dim=2)[:, None]
        mask = forward.attention_mask(sees)
        at = [(i, place) for i, pack in enumerate(batch) for ends in pack.ends for place in ends]
        cache = None
        if self._cache is not None:
            cache = copy.deepcopy(self._cache)
            cache.reorder_cache(torch.zeros(count, dtype=torch.long, device=forward.device))
        logits, _ = forward.run(
            ids, at, mask=mask, positions=positions, cache=cache, keep_cache=cache is not None
        )
        return logits


def _same(a: Ids, b: Ids) -> int:
    """Returns the number of ids with which both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


@contextlib.contextmanager
def _without_memory_errors(forward: Forward) -> Generator[None, None, None]:
    """Ends the block when memory runs out: the same rows are read in another way.

    Ranks in lockstep raise the error.
    """
    has_failed = False
    try:
        yield
    except Exception as error:
        if forward.lockstep is not None or not is_out_of_memory(error):
            raise
        has_failed = True
    if has_failed:
        free_memory()


def _can_pack(forward: Forward, rows: Sequence[Row]) -> bool:
    """Returns whether the model reads packs. The first call compares a small pack with whole rows."""
    if forward.packs is None:
        forward.packs = False
        forward.packs = forward.takes_any_mask and _equals_whole_rows(forward, rows[0].ids)
    window = forward.window
    return forward.packs and (window is None or max(len(row.ids) for row in rows) <= window)


def _equals_whole_rows(forward: Forward, ids: Ids) -> bool:
    length = min(12, forward.window or 12)
    trunk, start = (list(ids) * length)[:length], length - 5
    rows = [Row(0, trunk, start), Row(1, [*trunk[: start + 1], *trunk[1:4]], start)]
    packed = _Packed(forward, rows)
    return bool(_matches(forward, packed, packed.packs(rows, PACK_TOKENS)[0], rows[1]))


def _matches(forward: Forward, packed: _Packed, pack: _Pack, row: Row) -> bool | None:
    """Returns whether a row of a pack has the logits of the row alone; None after an error."""
    at = pack.rows.index(row)
    first = sum(map(len, pack.ends[:at]))
    # A model may refuse the mask: its rows are read whole. Ranks in lockstep raise the error.
    with contextlib.suppress(Exception) if forward.lockstep is None else contextlib.nullcontext():
        logits = packed.logits([pack])[first : first + len(pack.ends[at])]
        nats = [torch.log_softmax(x.float(), dim=-1) for x in (logits, _whole_rows(forward, [row]))]
        # A wrong mask moves the mean log-prob by more; 16-bit kernels differ by hundredths.
        tolerance = 1e-3 if logits.dtype == torch.float32 else 0.1
        return bool((nats[0] - nats[1]).abs().mean() < tolerance)
    free_memory()
    return None
