"""Generation against model.generate, and sampling against the stated distribution."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from tiny import random_model

from periodic_eval.errors import PeriodicEvalError
from periodic_eval.forward import Forward
from periodic_eval.generation import Completion, _sampled, generate, uniform

LETTERS = "".join(chr(ord("0") + i) for i in range(64))


def decode(ids: Any, special: bool) -> str:
    return "".join("<s>" if i == 63 and special else "" if i == 63 else LETTERS[i] for i in ids)


def written(
    forward: Forward, rows: list[dict[str, Any]], stop_ids: tuple[int, ...] = (2,)
) -> list[dict[str, Any]]:
    answers: list[Any] = [None] * len(rows)
    generate(forward, rows, stop_ids, decode, answers.__setitem__, lambda _: None)
    return answers


def row(
    prompt: list[int], count: int = 12, temperature: float = 0, seed: str = "a", **more: Any
) -> dict[str, Any]:
    return {"prompt": prompt, "max_new_tokens": count, "temperature": temperature, "seed": seed, **more}


def prompts(count: int) -> list[list[int]]:
    rng = random.Random(7)
    return [[rng.randrange(3, 64) for _ in range(rng.randrange(1, 20))] for _ in range(count)]


@pytest.mark.parametrize("kind", ["llama", "gemma3_text", "gpt2", "qwen3"])
@pytest.mark.parametrize("caches", [True, False])
def test_writes_greedily_what_transformers_generates(kind: str, caches: bool) -> None:
    model = random_model(kind)
    forward = Forward(model)
    forward.caches = caches
    rows = [row(prompt) for prompt in prompts(9)]
    for asked, answer in zip(rows, written(forward, rows, (2, 11, 12, 13, 14)), strict=True):
        table = torch.tensor([asked["prompt"]])
        expected = model.generate(
            table,
            attention_mask=torch.ones_like(table),
            max_new_tokens=12,
            do_sample=False,
            eos_token_id=[2, 11, 12, 13, 14],
            pad_token_id=0,
        )[0, len(asked["prompt"]) :].tolist()
        assert answer["ids"] == expected
        assert answer["finish"] == ("stop" if expected[-1] in (2, 11, 12, 13, 14) else "length")
        with torch.no_grad():
            nats = torch.log_softmax(
                model(torch.tensor([asked["prompt"] + expected])).logits[0].double(), dim=-1
            )
        start = len(asked["prompt"]) - 1
        assert answer["nats"] == pytest.approx(
            [nats[start + i, t].item() for i, t in enumerate(expected)], abs=1e-4
        )


def test_draws_the_same_in_any_batch() -> None:
    model = random_model("llama")
    rows = [
        row(prompt, temperature=1, seed=str(i), top_p=0.9 if i % 2 else None, top_k=20 if i % 3 else None)
        for i, prompt in enumerate(prompts(8))
    ]
    rows = [{k: v for k, v in r.items() if v is not None} for r in rows]
    together = written(Forward(model), rows)
    alone = [written(Forward(model), [r])[0] for r in rows]
    small = written(Forward(model, batch_tokens=10), rows)
    assert [r["ids"] for r in together] == [r["ids"] for r in alone] == [r["ids"] for r in small]


def test_draws_other_tokens_for_another_seed() -> None:
    forward = Forward(random_model("llama"))
    a, b, c = written(forward, [row([5, 6], temperature=2, seed=seed) for seed in ("x", "y", "x")])
    assert a == c
    assert a["ids"] != b["ids"]


@pytest.mark.parametrize(
    ("top_k", "top_p", "temperature"), [(None, 1, 1), (5, 1, 0.7), (None, 0.6, 1.3), (8, 0.7, 1)]
)
def test_draws_from_the_stated_distribution(top_k: int | None, top_p: float, temperature: float) -> None:
    model = random_model("llama")
    with torch.no_grad():
        probabilities = torch.softmax(
            model(torch.tensor([[9, 4]])).logits[0, -1].double() / temperature, dim=-1
        )
    order = probabilities.argsort(descending=True, stable=True).tolist()[:top_k]
    total, kept, mass = sum(probabilities[i].item() for i in order), [], 0.0
    for token in order:
        kept.append(token)
        mass += probabilities[token].item()
        if mass >= top_p * total and top_p < 1:
            break
    count = 4000
    more = {} if top_k is None else {"top_k": top_k}
    rows = [row([9, 4], 1, temperature, seed=str(i), top_p=top_p, **more) for i in range(count)]
    drawn = Counter(answer["ids"][0] for answer in written(Forward(model, batch_tokens=2**16), rows, ()))
    assert set(drawn) <= set(kept)
    for token in kept:
        p = probabilities[token].item() / mass
        # Five standard errors of a binomial share, and a thousandth for rare tokens.
        assert drawn[token] / count == pytest.approx(p, abs=5 * (p * (1 - p) / count) ** 0.5 + 1e-3)


@pytest.mark.parametrize("spread", [0.0, 0.05, 1.0, 4.0])
@pytest.mark.parametrize(
    ("top_k", "top_p"), [(None, 0.95), (None, 0.3), (2000, 0.95), (20, 1.0), (1500, 1.0)]
)
def test_draws_as_from_all_tokens_in_order(spread: float, top_k: int | None, top_p: float) -> None:
    torch.manual_seed(0)
    # Rounded logits have ties. A spread of 0 is a uniform distribution.
    logits = (torch.randn(6, 12000) * spread * 20).round() / 20
    completions = [Completion(i, [1], 1, 0.9, top_p, top_k, [], 0, f"{i}") for i in range(6)]
    for row, writing, token in zip(logits, completions, _sampled(logits, completions).tolist(), strict=True):
        weights = ((row.double() - row.double().max()) / 0.9).exp().numpy()
        order = sorted(range(12000), key=lambda i: (-weights[i], i))[:top_k]
        sums = np.cumsum(weights[order])
        if top_p < 1:
            order = order[: int(np.searchsorted(sums, top_p * sums[-1])) + 1]
            sums = sums[: len(order)]
        goal = uniform(writing.seed, 0) * sums[-1]
        assert token == order[int(np.searchsorted(sums, goal, side="right"))]


def test_reads_a_prompt_of_several_completions_once() -> None:
    model = random_model("llama")
    shapes: list[tuple[int, ...]] = []
    rows = [row(prompt, 3, 1, seed=str(at)) for at, prompt in enumerate(([5, 6], [7, 8, 9], [5, 6], [5, 6]))]
    alone = [written(Forward(model), [r], ())[0] for r in rows]
    model.register_forward_pre_hook(
        lambda *call: shapes.append(tuple(call[2]["input_ids"].shape)), with_kwargs=True
    )
    assert [r["ids"] for r in written(Forward(model), rows, ())] == [r["ids"] for r in alone]
    assert shapes == [(2, 3), (4, 1), (4, 1)]


def test_ends_before_a_stop_string_with_or_without_special_tokens() -> None:
    model = random_model("llama")
    plain = written(Forward(model), [row([5, 6], 10)], ())[0]
    text = plain["text"]
    stopped = written(Forward(model), [row([5, 6], 10, stop=[text[3:5]])], ())[0]
    end = text.index(text[3:5])
    assert (stopped["text"], stopped["finish"]) == (text[:end], "stop")
    assert stopped["ids"] == plain["ids"][: end + 2]
    special = {5: 63}

    def with_special(ids: Any, shows: bool) -> str:
        return decode([special.get(at, token) for at, token in enumerate(ids)], shows)

    answers: list[Any] = [None]
    generate(
        Forward(model), [row([5, 6], 10, stop=["<s>"])], (), with_special, answers.__setitem__, lambda _: None
    )
    assert (answers[0]["text"], len(answers[0]["ids"])) == (text[:5], 6)


def test_returns_the_most_likely_tokens_of_each_position() -> None:
    model = random_model("llama")
    answer = written(Forward(model), [row([5, 6], 3, top_tokens=4)], ())[0]
    with torch.no_grad():
        logits = model(torch.tensor([[5, 6, *answer["ids"]]])).logits[0, 1:-1]
    values, ids = torch.log_softmax(logits.double(), dim=-1).topk(4)
    assert [[text for text, _ in top] for top in answer["top"]] == [
        [LETTERS[i] for i in r] for r in ids.tolist()
    ]
    assert answer["top"][1][2][1] == pytest.approx(values[1, 2].item(), abs=1e-4)


def test_stops_where_the_context_is_full() -> None:
    forward = Forward(random_model("llama"))
    answer = written(forward, [row([5] * 62, 40)], ())[0]
    assert (len(answer["ids"]), answer["finish"]) == (3, "length")
    assert written(forward, [row([5], 0)])[0] == {"text": "", "ids": [], "nats": [], "finish": "length"}
    with pytest.raises(PeriodicEvalError, match="65 tokens"):
        written(forward, [row([5] * 65)])


@pytest.mark.parametrize("kind", ["llama", "gpt_neo"])
def test_writes_up_to_the_context_length_beside_a_longer_prompt(kind: str) -> None:
    model = random_model(kind, **({"attention_types": [[["global"], 3]]} if kind == "gpt_neo" else {}))
    rows = [row([7, 8, 9], 100), row([5, 6] * 30, 100), row([7, 8, 9], 100), row([9] * 20, 100)]
    together = written(Forward(model), rows, ())
    assert [len(answer["ids"]) for answer in together] == [62, 5, 62, 45]
    for asked, answer in zip(rows, together, strict=True):
        alone = written(Forward(model), [asked], ())[0]
        assert answer["ids"] == alone["ids"]
        assert answer["nats"] == pytest.approx(alone["nats"], abs=1e-4)


def test_finished_rows_leave_the_batch() -> None:
    model = random_model("llama")
    sizes: list[int] = []
    model.register_forward_pre_hook(lambda *call: sizes.append(len(call[2]["input_ids"])), with_kwargs=True)
    written(Forward(model), [row([5, 6], 2), row([7, 8], 4), row([9, 3, 4], 1)], ())
    assert sizes == [3, 2, 1, 1]


def test_numbers_of_a_stream_are_uniform_and_repeat() -> None:
    numbers = [uniform("seed", i) for i in range(2000)]
    assert numbers == [uniform("seed", i) for i in range(2000)]
    assert all(0 <= number < 1 for number in numbers)
    assert sum(numbers) / 2000 == pytest.approx(0.5, abs=5 / (12 * 2000) ** 0.5)
