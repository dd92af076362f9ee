"""Log-probabilities and hidden states of rows of ids. A context of several continuations is read once."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from .errors import PeriodicEvalError
from .forward import Check, Forward, Ids, in_batches, left_padding, log_softmax_rows, padded

Put = Callable[[int, Any], None]
"""Receives the index of a row and its answer, in any order."""

Halved = Callable[[int], None]
LOWEST = torch.finfo(torch.float32).min


@dataclass
class Group:
    """Rows with one context."""

    context: Ids
    rows: list[int] = field(default_factory=list[int])
    continuations: list[Ids] = field(default_factory=list[Ids])

    @property
    def length(self) -> int:
        """Tokens of context and longest continuation."""
        return len(self.context) + max(len(ids) for ids in self.continuations)


def log_likelihoods(
    forward: Forward,
    rows: Sequence[dict[str, Any]],
    put: Put,
    check: Check,
    *,
    greedy_ids: bool = False,
    on_halved: Halved | None = None,
) -> None:
    """Scores continuations after their contexts.

    Log p of each token, in nats, from a log-softmax in float32.
    """
    groups: dict[tuple[int, ...], Group] = {}
    for index, row in enumerate(rows):
        context, continuation = row["context"], row["continuation"]
        if not context:
            raise PeriodicEvalError("data", f"rows[{index}].context", "no ids", "at least one id")
        if not continuation:
            put(index, _scored(Tensor(), continuation, greedy_ids))
            continue
        group = groups.setdefault(tuple(context), Group(context))
        group.rows.append(index)
        group.continuations.append(continuation)
    shared = [group for group in groups.values() if len(group.rows) > 1 and forward.caches]
    alone = [
        Group(group.context, [row], [ids])
        for group in groups.values()
        if not (len(group.rows) > 1 and forward.caches)
        for row, ids in zip(group.rows, group.continuations, strict=True)
    ]

    def whole(batch: list[Group]) -> None:
        check(0)
        logits = _whole_rows(forward, batch)
        _put_scores(logits, [(g.rows[0], g.continuations[0]) for g in batch], put, greedy_ids)
        check(sum(group.length for group in batch))

    def cached(batch: list[Group]) -> None:
        check(0)
        logits = _shared_contexts(forward, batch)
        pairs = [pair for g in batch for pair in zip(g.rows, g.continuations, strict=True)]
        _put_scores(logits, pairs, put, greedy_ids)
        check(sum(len(g.context) + sum(map(len, g.continuations)) for g in batch))

    in_batches(forward, _by_length(alone), lambda group: group.length, whole, on_halved=on_halved)
    size = lambda group: group.length * len(group.rows)  # noqa: E731
    in_batches(forward, _by_length(shared), size, cached, factor=2, split=_halves, on_halved=on_halved)


def _halves(group: Group) -> list[Group]:
    middle = (len(group.rows) + 1) // 2
    parts = (slice(0, middle), slice(middle, None))
    return [
        Group(group.context, group.rows[part], group.continuations[part])
        for part in parts
        if group.rows[part]
    ]


def _by_length(groups: list[Group]) -> list[Group]:
    return sorted(groups, key=lambda group: len(group.context), reverse=True)


def _whole_rows(forward: Forward, batch: list[Group]) -> Tensor:
    """Returns the logits [N, V] that predict every token of each continuation, row after row."""
    rows = [[*group.context, *group.continuations[0][:-1]] for group in batch]
    at = [
        (i, place) for i, group in enumerate(batch) for place in range(len(group.context) - 1, len(rows[i]))
    ]
    return forward.logits_at(rows, at)


def _shared_contexts(forward: Forward, batch: list[Group]) -> Tensor:
    """Reads each context once and then all continuations with its keys and values; logits as in
    `_whole_rows`.
    """
    device = forward.device
    contexts = [group.context for group in batch]
    mask, positions = left_padding(contexts, device)
    ids = padded(contexts, device, left=True)
    length = ids.shape[1]
    ends = [(row, length - 1) for row in range(len(batch))]
    first, cache = forward.run(ids, ends, mask=mask, positions=positions, keep_cache=True)
    owners = [i for i, group in enumerate(batch) for _ in group.rows]
    continuations = [ids for group in batch for ids in group.continuations]
    longest = max(len(ids) for ids in continuations) - 1
    if longest == 0:
        return first[torch.tensor(owners, device=first.device)]
    if cache is None:
        forward.caches = False
        rows = [
            Group(g.context, [r], [c]) for g in batch for r, c in zip(g.rows, g.continuations, strict=True)
        ]
        return _whole_rows(forward, rows)
    reading = [i for i, ids in enumerate(continuations) if len(ids) > 1]
    chosen = torch.tensor([owners[i] for i in reading], device=device)
    cache.reorder_cache(chosen)
    rest = [continuations[i][:-1] for i in reading]
    if mask is not None:
        mask = torch.cat([mask[chosen], mask.new_ones(len(rest), longest)], dim=1)
        starts = torch.tensor([len(contexts[owners[i]]) for i in reading], device=device)
        positions = starts[:, None] + torch.arange(longest, device=device)[None]
    at = [(row, place) for row, ids in enumerate(rest) for place in range(len(ids))]
    later, _ = forward.run(
        padded(rest, device), at, mask=mask, positions=positions, cache=cache, keep_cache=True
    )
    order: list[int] = []
    taken = len(first)
    for owner, ids in zip(owners, continuations, strict=True):
        order += [owner, *range(taken, taken + len(ids) - 1)]
        taken += len(ids) - 1
    return torch.cat([first, later])[torch.tensor(order, device=first.device)]


def _put_scores(logits: Tensor, rows: Sequence[tuple[int, Ids]], put: Put, greedy_ids: bool) -> None:
    targets = torch.tensor([token for _, ids in rows for token in ids], device=logits.device)
    found: list[Tensor] = []
    for start, nats in log_softmax_rows(logits):
        wanted = nats.gather(1, targets[start : start + len(nats), None])[:, 0]
        best, first = nats.max(dim=1).values, nats.argmax(dim=1)
        found.append(torch.stack([wanted.double(), (wanted >= best).double(), first.double()]).cpu())
    table = torch.cat(found, dim=1)
    _refuse_nan(table)
    at = 0
    for index, ids in rows:
        put(index, _scored(table[:, at : at + len(ids)], ids, greedy_ids))
        at += len(ids)


def _scored(table: Tensor, ids: Ids, greedy_ids: bool) -> dict[str, Any]:
    nats, greedy, first = table.tolist() if ids else ([], [], [])
    row: dict[str, Any] = {"nats": [max(n, LOWEST) for n in nats], "greedy": [flag > 0 for flag in greedy]}
    return {**row, "greedy_ids": [int(token) for token in first]} if greedy_ids else row


def next_token(
    forward: Forward,
    rows: Sequence[tuple[Ids, Ids | None]],
    put: Put,
    check: Check,
    *,
    on_halved: Halved | None = None,
) -> None:
    """Puts log p of each row's candidates (None.

    Of every id) after its ids, in nats, and the whole entropy.
    """
    for index, (ids, _) in enumerate(rows):
        if not ids:
            raise PeriodicEvalError("data", f"rows[{index}]", "no ids", "at least one id")

    def work(batch: list[int]) -> None:
        check(0)
        tables = [rows[i][0] for i in batch]
        logits = forward.logits_at(tables, [(at, len(ids) - 1) for at, ids in enumerate(tables)])
        for start, nats in log_softmax_rows(logits):
            # A token of probability 0 adds nothing: its log p is minus infinity.
            entropy = -(nats.exp() * nats.clamp(min=LOWEST)).sum(dim=1).clamp(max=0)
            _refuse_nan(entropy)
            for at, (values, value) in enumerate(zip(nats.cpu(), entropy.tolist(), strict=True)):
                candidates = rows[batch[start + at]][1]
                chosen = values if candidates is None else values[list(candidates)]
                put(batch[start + at], {"nats": encoded(chosen), "entropy_nats": value})
        check(sum(map(len, tables)))

    order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]), reverse=True)
    in_batches(forward, order, lambda i: len(rows[i][0]), work, on_halved=on_halved)


def hidden_states(
    forward: Forward,
    rows: Sequence[dict[str, Any]],
    layers: Sequence[int],
    put: Put,
    check: Check,
    *,
    on_halved: Halved | None = None,
) -> None:
    """Puts, for each layer, the mean in float32 of the hidden states [H] from position `from` to the end of a
    row.
    """

    def work(batch: list[int]) -> None:
        check(0)
        table = padded([rows[i]["ids"] for i in batch], forward.device)
        _, states = forward.run(table, [(0, 0)], hidden=True)
        if states is None or max(layers, default=0) >= len(states):
            got = f"layer {max(layers, default=0)}"
            expected = (
                f"a layer of 0 to {len(states) - 1}" if states is not None else "a model with hidden states"
            )
            raise PeriodicEvalError("data", "layers", got, expected)
        for at, index in enumerate(batch):
            end = len(rows[index]["ids"])
            # Virtual tokens of prompt tuning lengthen the rows on the left.
            spans = [states[layer][at, states[layer].shape[1] - table.shape[1] :] for layer in layers]
            means = [span[rows[index]["from"] : end].float().mean(dim=0).cpu() for span in spans]
            for mean in means:
                _refuse_nan(mean)
            put(index, {"layers": [encoded(mean) for mean in means]})
        check(sum(len(rows[i]["ids"]) for i in batch))

    for index, row in enumerate(rows):
        if not 0 <= row["from"] < len(row["ids"]):
            expected = f"a position of 0 to {len(row['ids']) - 1}"
            raise PeriodicEvalError("data", f"rows[{index}].from", str(row["from"]), expected)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]["ids"]), reverse=True)
    in_batches(forward, order, lambda i: len(rows[i]["ids"]), work, on_halved=on_halved)


def encoded(vector: Tensor) -> str:
    """Returns a vector as base64 of little-endian float32."""
    return base64.b64encode(vector.float().contiguous().numpy().astype("<f4").tobytes()).decode()


def _refuse_nan(values: Tensor) -> None:
    if bool(torch.isnan(values).any()):
        fix = "Training may have diverged: look at the loss."
        raise PeriodicEvalError("model", "the model's forward pass", "NaN", "numbers", fix)
