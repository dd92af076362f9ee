"""Log-probabilities and hidden states of rows of ids."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from .batches import in_batches
from .errors import PeriodicEvalError
from .forward import Check, Forward, Ids, log_softmax_rows, padded
from .reading import Halved, Row, read_ends

Put = Callable[[int, Any], None]
"""Receives the index of a row and its answer, in any order."""

LOWEST = torch.finfo(torch.float32).min


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
    reading: list[Row] = []
    for index, row in enumerate(rows):
        context, continuation = row["context"], row["continuation"]
        if not context:
            raise PeriodicEvalError("data", f"rows[{index}].context", "no ids", "at least one id")
        if continuation:
            # The last id is scored and never read.
            reading.append(Row(index, [*context, *continuation[:-1]], len(context) - 1))
        else:
            put(index, _scored(Tensor(), continuation, greedy_ids))

    def score(indices: list[int], logits: Tensor) -> None:
        _put_scores(logits, [(index, rows[index]["continuation"]) for index in indices], put, greedy_ids)

    read_ends(forward, reading, score, check, on_halved=on_halved)


def _put_scores(logits: Tensor, rows: Sequence[tuple[int, Ids]], put: Put, greedy_ids: bool) -> None:
    targets = torch.tensor([token for _, ids in rows for token in ids], device=logits.device)
    found: list[Tensor] = []
    for start, nats in log_softmax_rows(logits):
        wanted = nats.gather(1, targets[start : start + len(nats), None])[:, 0]
        best = nats.amax(dim=1)
        first = nats.argmax(dim=1) if greedy_ids else best
        found.append(torch.stack([wanted.double(), (wanted >= best).double(), first.double()]).cpu())
    table = torch.cat(found, dim=1)
    refuse_nan(table)
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
    """Puts log p of each row's candidates, or of every id, in nats, and the entropy of the distribution."""
    for index, (ids, _) in enumerate(rows):
        if not ids:
            raise PeriodicEvalError("data", f"rows[{index}]", "no ids", "at least one id")

    def work(indices: list[int], logits: Tensor) -> None:
        for start, nats in log_softmax_rows(logits):
            # A token of probability 0 adds nothing: its log p is minus infinity.
            entropy = -(nats.exp() * nats.clamp(min=LOWEST)).sum(dim=1).clamp(max=0)
            refuse_nan(entropy)
            for at, (values, value) in enumerate(zip(nats.cpu(), entropy.tolist(), strict=True)):
                index = indices[start + at]
                candidates = rows[index][1]
                chosen = values if candidates is None else values[list(candidates)]
                put(index, {"nats": encoded(chosen), "entropy_nats": value})

    reading = [Row(index, ids, len(ids) - 1) for index, (ids, _) in enumerate(rows)]
    read_ends(forward, reading, work, check, on_halved=on_halved)


def hidden_states(
    forward: Forward,
    rows: Sequence[dict[str, Any]],
    layers: Sequence[int] | Literal["all"],
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
        chosen = range(len(states or [])) if isinstance(layers, str) else layers
        if states is None or max(chosen, default=0) >= len(states):
            got = f"layer {max(chosen, default=0)}"
            expected = (
                f"a layer of 0 to {len(states) - 1}" if states is not None else "a model with hidden states"
            )
            raise PeriodicEvalError("data", "layers", got, expected)
        for at, index in enumerate(batch):
            end = len(rows[index]["ids"])
            # Virtual tokens of prompt tuning lengthen the rows on the left.
            spans = [states[layer][at, states[layer].shape[1] - table.shape[1] :] for layer in chosen]
            means = [span[rows[index]["from"] : end].float().mean(dim=0).cpu() for span in spans]
            for mean in means:
                refuse_nan(mean)
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


def refuse_nan(values: Tensor) -> None:
    """Raises PeriodicEvalError if a value is NaN."""
    if bool(torch.isnan(values).any()):
        fix = "Training may have diverged: look at the loss."
        raise PeriodicEvalError("model", "the model's forward pass", "NaN", "numbers", fix)
