"""Scores, next tokens and hidden states against transformers."""

from __future__ import annotations

import base64
import random
from typing import Any

import numpy as np
import pytest
import torch
from tiny import random_model

from periodic_eval.errors import PeriodicEvalError
from periodic_eval.forward import Forward
from periodic_eval.scoring import hidden_states, log_likelihoods, next_token

KINDS = ["llama", "qwen3", "gemma2", "gemma3_text", "gpt2", "olmo2"]


def no_check(_: int) -> None:
    pass


def ids(count: int, rng: random.Random) -> list[int]:
    return [rng.randrange(3, 64) for _ in range(count)]


def rows_of(seed: int = 0) -> list[dict[str, list[int]]]:
    """Contexts of several lengths, some with several continuations of several lengths, one of them empty."""
    rng = random.Random(seed)
    rows: list[dict[str, list[int]]] = []
    for length, continuations in ((5, (1, 3, 2)), (9, (2, 2)), (20, (4,)), (1, (1, 1)), (12, (7, 0))):
        context = ids(length, rng)
        rows += [{"context": context, "continuation": ids(count, rng)} for count in continuations]
    return rows


def direct(model: Any, context: list[int], continuation: list[int]) -> list[float]:
    with torch.no_grad():
        logits = model(torch.tensor([context + continuation])).logits[0].double()
    nats = torch.log_softmax(logits, dim=-1)
    return [nats[len(context) - 1 + at, token].item() for at, token in enumerate(continuation)]


def collected(count: int) -> tuple[list[Any], Any]:
    answers: list[Any] = [None] * count

    def put(index: int, row: Any) -> None:
        assert answers[index] is None
        answers[index] = row

    return answers, put


def vector(text: str) -> np.ndarray[Any, Any]:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


@pytest.mark.parametrize("kind", KINDS)
def test_returns_the_log_probs_of_transformers(kind: str) -> None:
    model, rows = random_model(kind), rows_of()
    forward = Forward(model)
    assert forward.caches
    answers, put = collected(len(rows))
    log_likelihoods(forward, rows, put, no_check, greedy_ids=True)
    for row, answer in zip(rows, answers, strict=True):
        assert answer["nats"] == pytest.approx(direct(model, row["context"], row["continuation"]), abs=1e-4)
        with torch.no_grad():
            logits = model(torch.tensor([row["context"] + row["continuation"]])).logits[0]
        first = logits[len(row["context"]) - 1 :].argmax(dim=-1).tolist()[: len(row["continuation"])]
        assert answer["greedy_ids"] == first
        assert answer["greedy"] == [a == b for a, b in zip(first, row["continuation"], strict=True)]


def passes_of(forward: Forward, rows: list[dict[str, list[int]]]) -> list[tuple[int, ...]]:
    """Returns the shapes of the forward passes that score rows."""
    seen: list[tuple[int, ...]] = []
    hook = forward.model.register_forward_pre_hook(
        lambda *call: seen.append(tuple(call[2]["input_ids"].shape)), with_kwargs=True
    )
    _, put = collected(len(rows))
    log_likelihoods(forward, rows, put, no_check)
    hook.remove()
    return seen


def test_reads_a_context_of_several_continuations_once() -> None:
    forward = Forward(random_model("llama"))
    rng = random.Random(1)
    context = ids(20, rng)
    rows = [{"context": context, "continuation": [first, 5, 6]} for first in range(10, 14)]
    # The first call compares a small pack and the longest one with whole rows.
    assert passes_of(forward, rows) == [(1, 15), (1, 11), (1, 28), (1, 22), (1, 28)]
    assert passes_of(forward, rows) == [(1, 28)]
    forward.packs = False
    assert passes_of(forward, rows) == [(1, 20), (4, 2)]


def test_reads_a_beginning_of_all_rows_once() -> None:
    model, rng = random_model("llama", max_position_embeddings=512), random.Random(9)
    forward = Forward(model, batch_tokens=4096)
    beginning = ids(60, rng)
    rows = [
        {"context": [*beginning, 3 + at, *ids(29, rng)], "continuation": ids(3, rng)}
        for at in range(12)
        for _ in range(2)
    ]
    # 24 rows of 32 ids after the beginning, 8 to a pack, where 4 pairs share their first id.
    assert passes_of(forward, rows)[2:] == [(1, 60), (1, 252), (1, 92), (3, 252)]
    assert passes_of(forward, rows) == [(1, 60), (3, 252)]
    answers, put = collected(24)
    log_likelihoods(forward, rows, put, no_check)
    for row, answer in zip(rows, answers, strict=True):
        assert answer["nats"] == pytest.approx(direct(forward.model, **row), abs=1e-4)


@pytest.mark.parametrize("attention", [{}, {"attn_implementation": "eager"}])
@pytest.mark.parametrize("kind", KINDS)
def test_reads_packs_where_the_model_takes_their_mask(kind: str, attention: Any) -> None:
    model = random_model(kind, **attention)
    forward, rows = Forward(model), rows_of(4)
    answers, put = collected(len(rows))
    log_likelihoods(forward, rows, put, no_check)
    assert forward.packs
    for row, answer in zip(rows, answers, strict=True):
        assert answer["nats"] == pytest.approx(direct(model, row["context"], row["continuation"]), abs=1e-4)


def test_reads_no_packs_of_rows_longer_than_a_layers_window() -> None:
    model = random_model("gemma3_text", sliding_window=8)
    forward, rows = Forward(model), rows_of(5)
    answers, put = collected(len(rows))
    log_likelihoods(forward, rows, put, no_check)
    assert (forward.packs, forward.window) == (True, 8)
    for row, answer in zip(rows, answers, strict=True):
        assert answer["nats"] == pytest.approx(direct(model, row["context"], row["continuation"]), abs=1e-4)


def masks_by_place(window: int, *, named: bool, context: int = 512) -> Any:
    """Returns a GPT-Neo whose local layers mask by the place in the sequence.

    Without `named`, its configuration does not tell the window.
    """
    kinds = [[["local"], 2], [["global"], 1]]
    model = random_model(
        "gpt_neo", max_position_embeddings=context, attention_types=kinds, window_size=window
    )
    if not named:
        model.config.window_size = 10**6
    return model


@pytest.mark.parametrize(
    ("window", "named", "context", "packs"),
    [
        (64, True, 512, True),
        (64, False, 512, False),
        (24, True, 512, True),
        (400, False, 512, True),
        (64, True, 90, True),
    ],
)
def test_reads_packs_no_longer_than_a_mask_by_place(
    window: int, named: bool, context: int, packs: bool
) -> None:
    model = masks_by_place(window, named=named, context=context)
    forward, rng = Forward(model), random.Random(4)
    beginning = ids(40, rng)
    rows = [{"context": [*beginning, *ids(12, rng)], "continuation": ids(2, rng)} for _ in range(24)]
    answers, put = collected(24)
    log_likelihoods(forward, rows, put, no_check)
    assert forward.packs is packs
    for row, answer in zip(rows, answers, strict=True):
        assert answer["nats"] == pytest.approx(direct(model, **row), abs=1e-4)


def test_compares_rows_that_are_spread_over_more_places_than_before() -> None:
    model = masks_by_place(64, named=False)
    forward, rng = Forward(model), random.Random(4)
    _, put = collected(1)
    # One long row is read at neighbouring places, so it shows nothing of masks by place.
    log_likelihoods(forward, [{"context": ids(198, rng), "continuation": ids(2, rng)}], put, no_check)
    beginning = ids(30, rng)
    rows = [{"context": [*beginning, *ids(18, rng)], "continuation": ids(2, rng)} for _ in range(10)]
    answers, put = collected(10)
    log_likelihoods(forward, rows, put, no_check)
    assert forward.packs is False
    for row, answer in zip(rows, answers, strict=True):
        assert answer["nats"] == pytest.approx(direct(model, **row), abs=1e-4)


@pytest.mark.parametrize("kind", ["gpt_neo", "gptj"])
def test_pads_no_row_beyond_the_last_place(kind: str) -> None:
    settings = {"attention_types": [[["global"], 3]]} if kind == "gpt_neo" else {"rotary_dim": 8}
    model, rng = random_model(kind, **settings), random.Random(4)
    forward = Forward(model)
    forward.packs = False
    rows = [
        {"context": context, "continuation": ids(count, rng)}
        for context, count in ((ids(60, rng), 3), (ids(5, rng), 40))
        for _ in range(2)
    ]
    answers, put = collected(4)
    log_likelihoods(forward, rows, put, no_check)
    for row, answer in zip(rows, answers, strict=True):
        assert answer["nats"] == pytest.approx(direct(model, **row), abs=1e-4)


def test_reads_no_packs_where_the_model_refuses_their_mask() -> None:
    model, rows = random_model("llama"), rows_of(7)

    def refuse(_: Any, args: Any, kwargs: Any) -> None:
        mask = kwargs.get("attention_mask")
        if mask is not None and mask.ndim == 4:
            raise ValueError("expected a mask of two dimensions")

    model.register_forward_pre_hook(refuse, with_kwargs=True)
    forward = Forward(model)
    answers, put = collected(len(rows))
    log_likelihoods(forward, rows, put, no_check)
    assert forward.packs is False
    for row, answer in zip(rows, answers, strict=True):
        assert answer["nats"] == pytest.approx(direct(model, row["context"], row["continuation"]), abs=1e-4)


def test_reads_no_packs_where_the_model_ignores_their_mask() -> None:
    model, rows = random_model("llama"), rows_of(7)
    for layer in model.model.layers:
        layer.self_attn.register_forward_pre_hook(
            lambda _, args, kwargs: (args, {**kwargs, "attention_mask": None}), with_kwargs=True
        )
    forward = Forward(model)
    forward.caches = False
    answers, put = collected(len(rows))
    log_likelihoods(forward, rows, put, no_check)
    assert forward.packs is False
    for row, answer in zip(rows, answers, strict=True):
        assert answer["nats"] == pytest.approx(direct(model, row["context"], row["continuation"]), abs=1e-4)


def test_computes_logits_only_where_they_are_asked() -> None:
    model = random_model("llama")
    widths: list[int] = []
    model.lm_head.register_forward_hook(lambda _, __, output: widths.append(output.shape[1]))
    _, put = collected(1)
    log_likelihoods(Forward(model), [{"context": [5] * 30, "continuation": [6, 7]}], put, no_check)
    assert set(widths[2:]) == {2}


def test_scores_the_same_in_any_batch_size_and_without_a_cache() -> None:
    model, rows = random_model("llama"), rows_of(3)
    reference = [direct(model, row["context"], row["continuation"]) for row in rows]
    for batch_tokens, caches, packs in (
        (1, True, None),
        (40, True, None),
        (4096, False, None),
        (1, True, False),
        (40, True, False),
        (4096, True, False),
        (4096, False, False),
        (30, False, False),
    ):
        forward = Forward(model, batch_tokens=batch_tokens)
        forward.caches, forward.packs = caches, packs
        answers, put = collected(len(rows))
        log_likelihoods(forward, rows, put, no_check)
        for answer, nats in zip(answers, reference, strict=True):
            assert answer["nats"] == pytest.approx(nats, abs=1e-4)


def test_scores_a_module_that_is_no_model_of_transformers() -> None:
    class Bigrams(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(64, 64)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.table(ids)

    model = Bigrams()
    answers, put = collected(2)
    log_likelihoods(
        Forward(model),
        [{"context": [4], "continuation": [5, 6]}, {"context": [4], "continuation": [7]}],
        put,
        no_check,
    )
    nats = torch.log_softmax(model.table.weight, dim=-1)
    assert answers[0]["nats"] == pytest.approx([nats[4, 5].item(), nats[5, 6].item()], abs=1e-5)
    assert answers[1]["nats"] == pytest.approx([nats[4, 7].item()], abs=1e-5)


def test_returns_next_tokens_with_entropy() -> None:
    model, rng = random_model("llama"), random.Random(2)
    rows = [ids(count, rng) for count in (3, 11, 1, 7)]
    full, put = collected(4)
    next_token(Forward(model), [(row, None) for row in rows], put, no_check)
    few, put = collected(4)
    next_token(Forward(model), [(row, [9, at]) for at, row in enumerate(rows)], put, no_check)
    for at, (row, all_of, chosen) in enumerate(zip(rows, full, few, strict=True)):
        with torch.no_grad():
            nats = torch.log_softmax(model(torch.tensor([row])).logits[0, -1].double(), dim=-1).numpy()
        np.testing.assert_allclose(vector(all_of["nats"]), nats, atol=1e-4)
        np.testing.assert_allclose(vector(chosen["nats"]), nats[[9, at]], atol=1e-4)
        assert all_of["entropy_nats"] == pytest.approx(-(np.exp(nats) * nats).sum(), abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_returns_the_hidden_states_of_transformers(kind: str) -> None:
    model, rng = random_model(kind), random.Random(4)
    rows = [{"ids": ids(count, rng), "from": start} for count, start in ((3, 2), (11, 4), (7, 0))]
    layers = list(range(model.config.num_hidden_layers + 1))
    answers, put = collected(3)
    hidden_states(Forward(model), rows, layers, put, no_check)
    every, put = collected(3)
    hidden_states(Forward(model), rows, "all", put, no_check)
    assert every == answers
    for row, answer in zip(rows, answers, strict=True):
        with torch.no_grad():
            states = model(torch.tensor([row["ids"]]), output_hidden_states=True).hidden_states
        for layer, text in zip(layers, answer["layers"], strict=True):
            expected = states[layer][0, row["from"] :].mean(dim=0).numpy()
            np.testing.assert_allclose(vector(text), expected, atol=1e-4)


def test_halves_the_batch_for_good_when_memory_runs_out() -> None:
    model = random_model("llama", max_position_embeddings=512)

    def refuse(module: Any, args: Any, kwargs: Any) -> None:
        if kwargs["input_ids"].numel() > 40:
            raise torch.OutOfMemoryError("CUDA out of memory")

    rng = random.Random(5)
    rows = [{"context": ids(8, rng), "continuation": ids(2, rng)} for _ in range(64)]
    reference = [direct(model, **row) for row in rows]
    model.register_forward_pre_hook(refuse, with_kwargs=True)
    # 56 rows of 9 ids fill a batch, and two packs, in which neighbours can share an id.
    for packs, expected in ((False, [252, 126, 63, 31]), (None, [251, 125, 61, 30])):
        forward = Forward(model, batch_tokens=512)
        forward.packs, forward.packed_to = packs, (512, 512)
        answers, put = collected(64)
        halved: list[int] = []
        log_likelihoods(forward, rows, put, no_check, on_halved=halved.append)
        assert halved == expected
        for answer, nats in zip(answers, reference, strict=True):
            assert answer["nats"] == pytest.approx(nats, abs=1e-4)


def test_fails_with_memory_when_a_single_row_does_not_fit() -> None:
    model = random_model("llama")

    def refuse(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    model.register_forward_pre_hook(refuse)
    _, put = collected(1)
    with pytest.raises(PeriodicEvalError, match="out of memory with one row of 2 tokens"):
        log_likelihoods(Forward(model), [{"context": [4, 5], "continuation": [6]}], put, no_check)


def test_refuses_nan_and_empty_contexts() -> None:
    model = random_model("llama")
    _, put = collected(1)
    with pytest.raises(PeriodicEvalError, match="no ids"):
        log_likelihoods(Forward(model), [{"context": [], "continuation": [6]}], put, no_check)
    with torch.no_grad():
        model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(PeriodicEvalError, match="NaN"):
        log_likelihoods(Forward(model), [{"context": [3], "continuation": [6]}], put, no_check)
    with pytest.raises(PeriodicEvalError, match="NaN"):
        next_token(Forward(model), [([3], None)], put, no_check)


def test_measures_a_compiled_model_uncompiled() -> None:
    graphs: list[Any] = []

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    model, rows = random_model("llama"), rows_of(6)
    reference = [direct(model, row["context"], row["continuation"]) for row in rows]
    wrapped = torch.compile(model, backend=backend)
    model.model.layers[0].compile(backend=backend)
    answers, put = collected(len(rows))
    log_likelihoods(Forward(wrapped), rows, put, no_check)
    assert graphs == []
    for answer, nats in zip(answers, reference, strict=True):
        assert answer["nats"] == pytest.approx(nats, abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_scores_in_half_precision_with_a_softmax_in_float32(dtype: torch.dtype) -> None:
    model, rows = random_model("llama").to(dtype), rows_of(8)
    forward = Forward(model)
    forward.caches = False
    for row in rows:
        answers, put = collected(1)
        log_likelihoods(forward, [row], put, no_check)
        with torch.no_grad():
            logits = model(torch.tensor([(row["context"] + row["continuation"])[:-1] or [0]])).logits[0]
        nats = torch.log_softmax(logits.float(), dim=-1)
        at = range(len(row["context"]) - 1, len(row["context"]) + len(row["continuation"]) - 1)
        expected = [nats[place, token].item() for place, token in zip(at, row["continuation"], strict=True)]
        assert answers[0]["nats"] == pytest.approx(expected, abs=1e-3)
