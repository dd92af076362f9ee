"""Sampling with a cache of keys and values. Each row has its own random stream."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from .batches import in_batches
from .errors import PeriodicEvalError
from .forward import Check, Forward, left_padding, log_softmax_rows, padded
from .reading import Halved
from .scoring import LOWEST, Put, refuse_nan

Decode = Callable[[Sequence[int], bool], str]
"""Returns the text of ids; the second argument says whether special tokens stay."""

LIKELY = 1024
"""Tokens that are sorted for top-k and top-p before all are."""


def uniform(seed: str, counter: int) -> float:
    """Returns number `counter` of the random stream that a seed names, in [0, 1), with 53 random bits."""
    digest = hashlib.blake2b(f"{seed}\n{counter}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) * 2.0**-53


@dataclass
class Completion:
    """A completion that is being written."""

    index: int
    prompt: list[int]
    room: int
    temperature: float
    top_p: float
    top_k: int | None
    stop: list[str]
    top_tokens: int
    seed: str
    ids: list[int] = field(default_factory=list[int])
    nats: list[float] = field(default_factory=list[float])
    top: list[list[tuple[str, float]]] = field(default_factory=list[Any])
    text: str | None = None
    is_stopped: bool = False

    @property
    def is_finished(self) -> bool:
        return self.is_stopped or len(self.ids) >= self.room


def generate(
    forward: Forward,
    rows: Sequence[dict[str, Any]],
    stop_ids: Sequence[int],
    decode: Decode,
    put: Put,
    check: Check,
    *,
    on_halved: Halved | None = None,
) -> None:
    """Writes a completion for each row, and puts text, ids, log p of each id, and how it finished."""
    completions = [_begin(forward, index, row) for index, row in enumerate(rows)]
    stops = frozenset(stop_ids)

    def work(batch: list[Completion]) -> None:
        for completion in batch:
            # A batch that ran out of memory begins again.
            completion.ids, completion.nats, completion.top, completion.text, completion.is_stopped = (
                [],
                [],
                [],
                None,
                False,
            )
        _write(forward, batch, stops, decode, check)
        for completion in batch:
            put(completion.index, _answer(completion, stops, decode))

    order = sorted(completions, key=lambda w: len(w.prompt), reverse=True)
    in_batches(
        forward,
        order,
        lambda w: len(w.prompt) + w.room,
        work,
        factor=forward.cache_factor,
        on_halved=on_halved,
    )


def _begin(forward: Forward, index: int, row: dict[str, Any]) -> Completion:
    prompt, window = row["prompt"], forward.context_length
    if not prompt or (window is not None and len(prompt) > window):
        expected = "1 or more" if window is None else f"1 to {window}, the model's context length"
        raise PeriodicEvalError("data", f"rows[{index}].prompt", f"{len(prompt)} tokens", expected)
    # The last token is drawn and never read.
    room = row["max_new_tokens"] if window is None else min(row["max_new_tokens"], window + 1 - len(prompt))
    return Completion(
        index,
        list(prompt),
        room,
        float(row["temperature"]),
        float(row.get("top_p") or 1),
        row.get("top_k"),
        list(row.get("stop") or []),
        int(row.get("top_tokens") or 0),
        str(row["seed"]),
    )


def _write(
    forward: Forward, batch: list[Completion], stops: frozenset[int], decode: Decode, check: Check
) -> None:
    active = [completion for completion in batch if completion.room > 0]
    if not active:
        return
    check(0)
    reading = _Cached(forward, active) if forward.caches else None
    if reading is not None and reading.cache is None:
        forward.caches, reading = False, None
    logits = reading.logits if reading is not None else _reread(forward, active)
    check(sum(len(completion.prompt) for completion in active))
    while True:
        _draw(logits, active, decode)
        for completion in active:
            _stop(completion, stops, decode)
        check(len(active))
        kept = [at for at, completion in enumerate(active) if not completion.is_finished]
        if not kept:
            return
        is_thinner = len(kept) < len(active)
        active = [active[at] for at in kept]
        if reading is None:
            logits = _reread(forward, active)
        elif reading.places >= forward.last_place:
            # Only padding on the left lets a sequence reach it before the row ends.
            reading = _Cached(forward, active)
            logits = reading.logits
        else:
            logits = reading.step([completion.ids[-1] for completion in active], kept if is_thinner else None)


def _reread(forward: Forward, active: Sequence[Completion]) -> Tensor:
    """Returns the next logits [B, V] from whole sequences, for a model without a cache."""
    rows = [[*completion.prompt, *completion.ids] for completion in active]
    return forward.logits_at(rows, [(at, len(row) - 1) for at, row in enumerate(rows)])


class _Cached:
    """Reads prompts, then one token per row and step.

    Prompts are padded on the left, so that rows grow together.
    """

    def __init__(self, forward: Forward, active: Sequence[Completion]) -> None:
        # Completions of one prompt read it once.
        known: dict[tuple[int, ...], int] = {}
        owners = [known.setdefault((*writing.prompt, *writing.ids), len(known)) for writing in active]
        prompts = [list(prompt) for prompt in known]
        self._forward, self._device = forward, forward.device
        ids = padded(prompts, self._device, left=True)
        self.places = ids.shape[1]
        self._mask, positions = left_padding(prompts, self._device)
        self._next = torch.tensor([len(prompt) for prompt in prompts], device=self._device)[:, None]
        ends = [(row, ids.shape[1] - 1) for row in range(len(prompts))]
        self.logits, self.cache = forward.run(
            ids, ends, mask=self._mask, positions=positions, keep_cache=True
        )
        if len(prompts) < len(active) and self.cache is not None:
            self._choose(owners)
            self.logits = self.logits[torch.tensor(owners, device=self.logits.device)]

    def step(self, tokens: Sequence[int], kept: Sequence[int] | None) -> Tensor:
        """Reads one token per row and returns the next logits [B, V].

        Rows that are not in `kept` leave the batch.
        """
        if kept is not None:
            self._choose(kept)
        ids = torch.tensor(tokens, device=self._device)[:, None]
        positions = None
        if self._mask is not None:
            self._mask = torch.cat([self._mask, self._mask.new_ones(len(ids), 1)], dim=1)
            positions = self._next
        ends = [(row, 0) for row in range(len(ids))]
        logits, self.cache = self._forward.run(
            ids, ends, mask=self._mask, positions=positions, cache=self.cache, keep_cache=True
        )
        self._next = self._next + 1
        self.places += 1
        return logits

    def _choose(self, rows: Sequence[int]) -> None:
        chosen = torch.tensor(rows, device=self._device)
        self.cache.reorder_cache(chosen)
        self._next = self._next[chosen]
        self._mask = None if self._mask is None else self._mask[chosen]


def _draw(logits: Tensor, active: Sequence[Completion], decode: Decode) -> None:
    """Draws a token for each row from logits [B, V], and adds it with its log p."""
    tokens = logits.argmax(dim=1)
    sampled = [at for at, completion in enumerate(active) if completion.temperature > 0]
    if sampled:
        rows = torch.tensor(sampled, device=logits.device)
        tokens[rows] = _sampled(logits[rows], [active[at] for at in sampled])
    widest = max(completion.top_tokens for completion in active)
    for start, nats in log_softmax_rows(logits):
        chosen = tokens[start : start + len(nats)]
        values = nats.gather(1, chosen[:, None])[:, 0].cpu()
        refuse_nan(values)
        top = nats.topk(min(widest, nats.shape[1])) if widest > 0 else None
        for at, (token, value) in enumerate(zip(chosen.tolist(), values.tolist(), strict=True)):
            completion = active[start + at]
            completion.ids.append(token)
            completion.nats.append(max(value, LOWEST))
            if top is not None and completion.top_tokens > 0:
                likely = zip(top.indices[at].tolist(), top.values[at].tolist(), strict=True)
                pairs = [(decode([other], True), max(n, LOWEST)) for other, n in likely]
                completion.top.append(pairs[: completion.top_tokens])


def _sampled(logits: Tensor, active: Sequence[Completion]) -> Tensor:
    """Returns tokens [B], drawn by the inverse of the cumulated distribution.

    Weights are integers of 43 bits: sums of them are exact on every device, in any order.
    """
    device = logits.device
    # Apple's GPUs have no float64.
    where = torch.device("cpu") if device.type == "mps" else device
    numbers = torch.tensor([uniform(w.seed, len(w.ids)) for w in active], dtype=torch.float64, device=where)
    temperatures = torch.tensor([w.temperature for w in active], dtype=torch.float64, device=where)[:, None]
    wide = logits.to(where).double()
    wide = wide.sub_(wide.amax(dim=1, keepdim=True)).div_(temperatures).exp_()
    weights = wide.mul_(2.0**43).long()
    width = weights.shape[1]
    tokens = torch.empty(len(active), dtype=torch.long, device=where)
    cut = [at for at, w in enumerate(active) if w.top_p < 1 or (w.top_k is not None and w.top_k < width)]
    whole = sorted(set(range(len(active))) - set(cut))
    if whole:
        rows = torch.tensor(whole, device=where)
        tokens[rows] = _inverse(weights[rows], numbers[rows])
    # The most likely tokens hold nearly every top-p.
    likely = max(LIKELY, *(active[at].top_k or 0 for at in cut), 0)
    for count in (likely, 8 * likely, width):
        if not cut:
            break
        rows = torch.tensor(cut, device=where)
        ordered, ids = _largest(weights[rows], count)
        kept = _restricted(ordered, weights[rows].sum(dim=1), [active[at] for at in cut])
        tokens[rows] = ids.gather(1, _inverse(kept, numbers[rows])[:, None])[:, 0]
        # A token outside could be as likely as the last one inside.
        is_open = (kept > 0) & (ordered <= ordered[:, -1:])
        cut = [at for at, is_short in zip(cut, is_open.any(dim=1).tolist(), strict=True) if is_short]
    return tokens.to(device)


def _largest(weights: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Returns the largest weights and their ids [B, N], largest first; equal ones by their ids."""
    if count >= weights.shape[1]:
        ordered, ids = weights.sort(dim=1, descending=True, stable=True)
        return ordered, ids
    ids = weights.topk(count).indices.sort(dim=1).values
    ordered, order = weights.gather(1, ids).sort(dim=1, descending=True, stable=True)
    return ordered, ids.gather(1, order)


def _restricted(ordered: Tensor, totals: Tensor, active: Sequence[Completion]) -> Tensor:
    """Returns the largest weights [B, N] in their order, with zeros outside of top-k and then top-p."""
    size, device = ordered.shape[1], ordered.device
    counts = torch.tensor([w.top_k or 0 for w in active], device=device)[:, None]
    ordered = ordered * ((counts == 0) | (torch.arange(size, device=device) < counts))
    shares = torch.tensor([w.top_p for w in active], dtype=torch.float64, device=device)[:, None]
    totals = torch.where(counts > 0, ordered.sum(dim=1, keepdim=True), totals[:, None])
    before = ordered.cumsum(dim=1) - ordered
    return ordered * ((before < shares * totals) | (shares >= 1))


def _inverse(weights: Tensor, numbers: Tensor) -> Tensor:
    """Returns the index [B] at which the cumulated weight passes `number` times the sum."""
    reached = weights.cumsum(dim=1)
    sums = reached[:, -1:]
    goals = (numbers[:, None] * sums).long()
    # A product that is rounded up can reach the sum.
    return (reached <= torch.minimum(goals, sums - 1)).sum(dim=1)


def _stop(completion: Completion, stops: frozenset[int], decode: Decode) -> None:
    """Ends a completion at a stop id or a stop string."""
    if completion.ids[-1] in stops:
        completion.is_stopped = True
        return
    for shows_special in (False, True) if completion.stop else ():
        longest = max(len(text) for text in completion.stop)
        # A byte can be a token, and a character has up to four bytes.
        tail = decode(completion.ids[-(4 * longest + 8) :], shows_special)
        if any(text in tail for text in completion.stop) and _cut(completion, decode, shows_special):
            return


def _cut(completion: Completion, decode: Decode, shows_special: bool) -> bool:
    """Sets the text before the first stop string.

    A string with special tokens shows only in text that has them.
    """
    text = decode(completion.ids, shows_special)
    places = [at for at in (text.find(stop) for stop in completion.stop) if at >= 0]
    if not places:
        return False
    end = min(places)
    if shows_special:
        count = len(completion.ids)
        while count > 0 and len(decode(completion.ids[:count], True)) > end:
            count -= 1
        shown = decode(completion.ids[:count], True) if count else ""
        completion.text = (decode(completion.ids[:count], False) if count else "") + text[len(shown) : end]
    else:
        completion.text = text[:end]
    completion.is_stopped = True
    return True


def _answer(completion: Completion, stops: frozenset[int], decode: Decode) -> dict[str, Any]:
    ids = completion.ids
    if completion.text is None:
        shown = ids[:-1] if completion.is_stopped and ids[-1] in stops else ids
        completion.text = decode(shown, False) if shown else ""
    answer: dict[str, Any] = {
        "text": completion.text,
        "ids": ids,
        "nats": completion.nats,
        "finish": "stop" if completion.is_stopped else "length",
    }
    return {**answer, "top": completion.top} if completion.top_tokens > 0 else answer
