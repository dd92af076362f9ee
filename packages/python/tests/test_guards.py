"""Each guard breaks when its part of the training changes, and only that one."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from letters import Letters
from tiny import micro_world, random_model

from periodic_eval.adapters import adapter_name, why_base_is_absent, without_adapter
from periodic_eval.fingerprint import fingerprint
from periodic_eval.forward import Forward
from periodic_eval.guards import Guard, Window, training_guards


class Setup:
    """A model with LoRA, an optimizer that has stepped, and a GradScaler."""

    def __init__(self) -> None:
        from peft import LoraConfig, get_peft_model

        base, self.tokenizer = micro_world()
        base.register_buffer("counter", torch.zeros(3))
        self.model: Any = get_peft_model(base, LoraConfig(r=2, target_modules=["q_proj"], lora_dropout=0.1))
        self.model.train()
        self.trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.trained, lr=1e-3)
        self.scaler = torch.amp.GradScaler("cpu")
        ids = torch.tensor([[5, 6, 7]])
        self.model(input_ids=ids, labels=ids).loss.backward()
        self.optimizer.step()
        weight = self.model.base_model.model.lm_head.weight
        weight.quant_state = type("State", (), {"absmax": torch.ones(4), "state2": None})()
        self.quant_state = weight.quant_state
        guards = training_guards(self.model, self.tokenizer, self.optimizer, self.scaler)
        self.window = Window(self.model, guards)

    def first_weight(self) -> torch.Tensor:
        return next(p for p in self.model.parameters() if not p.requires_grad)


def flip(tensor: torch.Tensor) -> None:
    """Flips the last bit of one entry."""
    with torch.no_grad():
        tensor.detach().view(-1)[:1].view(torch.int32).bitwise_xor_(1)


def set_scaler(s: Setup) -> None:
    s.scaler._init_scale = 4.0
    s.scaler._growth_factor = 3.0


DISTURBANCES: dict[str, Callable[[Setup], Any]] = {
    "weights": lambda s: flip(s.first_weight()),
    "gradients": lambda s: flip(s.trained[0].grad),
    "optimizer": lambda s: flip(s.optimizer.state[s.trained[1]]["exp_avg"]),
    "grad-scaler": set_scaler,
    "quantization": lambda s: flip(s.quant_state.absmax),
}

RESTORED: dict[str, Callable[[Setup], Any]] = {
    "buffers": lambda s: s.model.base_model.model.counter.add_(1),
    "requires-grad": lambda s: s.first_weight().requires_grad_(True),
    "adapter": lambda s: s.model.base_model.disable_adapter_layers(),
    "random-python": lambda s: random.random(),
    "random-numpy": lambda s: np.random.rand(),
    "random-torch": lambda s: torch.rand(1),
    "mode": lambda s: s.model.train(),
    "tokenizer": lambda s: s.tokenizer(["a", "a a a"], padding=True, truncation=True, max_length=2),
    "model-settings": lambda s: setattr(s.model.generation_config, "temperature", 0.5),
    "torch-settings": lambda s: torch.set_default_dtype(torch.float64),
}


def broken(evidence: list[dict[str, Any]]) -> list[str]:
    return [part["part"] for part in evidence if part["intact"] is not True]


def test_covers_every_guard() -> None:
    assert {guard.name for guard in Setup().window.guards} == {*DISTURBANCES, *RESTORED}


def test_is_intact_when_nothing_changes() -> None:
    setup = Setup()
    before = setup.window.enter("seed")
    assert not any(module.training for module in setup.model.modules())
    assert not torch.is_grad_enabled()
    evidence = setup.window.leave()
    assert broken(evidence) == []
    assert {part["part"]: part["before"] for part in evidence} == before
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("name", DISTURBANCES)
def test_names_the_part_that_changed(name: str) -> None:
    setup = Setup()
    setup.window.enter("seed")
    DISTURBANCES[name](setup)
    evidence = setup.window.leave()
    assert broken(evidence) == [name]
    assert next(part for part in evidence if part["part"] == name)["intact"] is False


@pytest.mark.parametrize("name", RESTORED)
def test_restores_what_measuring_may_change(name: str) -> None:
    setup = Setup()
    setup.window.enter("seed")
    RESTORED[name](setup)
    assert broken(setup.window.leave()) == []


@pytest.mark.parametrize("name", RESTORED)
def test_observes_the_part_that_would_stay_changed(name: str) -> None:
    setup = Setup()
    setup.window.enter("a")
    states = {guard.name: guard.observe() for guard in setup.window.guards}
    RESTORED[name](setup)
    changed = [guard.name for guard in setup.window.guards if guard.observe() != states[guard.name]]
    evidence = setup.window.leave()
    # PEFT switches `requires_grad` off with the adapter.
    assert changed == ([name] if name != "adapter" else ["requires-grad", "adapter"])
    assert broken(evidence) == []


class Counter(torch.nn.Module):
    """Owns a buffer, and changes its attributes in a forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))
        self.passes, self.name, self.longest = 0, "start", None
        self.scale, self.cache = torch.ones(2), [1]

    def forward(self) -> None:
        self.passes, self.name, self.longest = self.passes + 1, "end", 2.5
        self.scale.mul_(2)
        self.scale = self.scale.clone()
        self.register_buffer("seen", torch.ones(5), persistent=False)
        self.register_buffer("extra", torch.ones(1))
        self.last, self.cache = 7, None


def test_restores_buffers_and_attributes_that_a_forward_pass_replaces() -> None:
    module: Any = Counter()
    kept = dict(vars(module), _buffers=dict(module._buffers))
    window = Window(module, training_guards(module, Letters()))
    window.enter("s")
    module()
    assert broken(window.leave()) == []
    assert module.seen is kept["_buffers"]["seen"]
    assert module.scale is kept["scale"]
    assert module.scale.tolist() == [1, 1]
    assert (module.passes, module.name, module.longest) == (0, "start", None)
    assert list(module.state_dict()) == ["seen"]
    assert not hasattr(module, "last")
    assert module.cache is kept["cache"]


ROPES: dict[str, Any] = {
    "dynamic": {"rope_type": "dynamic", "factor": 2.0},
    "longrope": {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [4.0] * 4},
}


def trained_with_rope(kind: str, lengths: tuple[int, int], measured: int | None) -> list[torch.Tensor]:
    """Trains for one step per length, with a window of one row between them if there is a length for it."""
    limits: dict[str, Any] = {"max_position_embeddings": 32}
    if kind == "longrope":
        limits = {"max_position_embeddings": 64, "original_max_position_embeddings": 32}
    rope = {"rope_theta": 10000.0, **ROPES[kind]}
    model = random_model("llama" if kind == "dynamic" else "phi3", rope_parameters=rope, **limits).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for at, length in enumerate(lengths):
        if at == 1 and measured is not None:
            window = Window(model, training_guards(model, Letters(), optimizer))
            window.enter("s")
            Forward(model).logits_at([[3] * measured], [(0, 0)])
            assert broken(window.leave()) == []
        ids = torch.arange(3, 3 + length)[None] % 64
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return list(model.state_dict().values())


@pytest.mark.parametrize(
    ("kind", "lengths", "measured"),
    [
        ("dynamic", (60, 40), 12),
        ("dynamic", (20, 40), 60),
        ("dynamic", (60, 20), 12),
        ("longrope", (40, 20), 12),
        ("longrope", (20, 40), 60),
    ],
)
def test_trains_bit_for_bit_where_lengths_change_the_rope(
    kind: str, lengths: tuple[int, int], measured: int
) -> None:
    expected = trained_with_rope(kind, lengths, None)
    found = trained_with_rope(kind, lengths, measured)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", ["mode", "torch-settings"])
def test_captures_the_settings_that_a_window_sets_once(name: str) -> None:
    setup, captures = Setup(), 0
    guard = next(guard for guard in setup.window.guards if guard.name == name)
    capture, observe = guard.capture, guard.observe

    def counted() -> Any:
        nonlocal captures
        captures += 1
        return capture()

    guard.capture = counted
    before = observe()
    setup.window.enter("s")
    assert len(setup.window._restores) == len(setup.window.guards)
    setup.window.restore()
    assert (captures, observe()) == (1, before)
    # A window without guards restores them too.
    with Window(setup.model, []).protected("s"):
        assert observe() != before
    assert observe() == before


def test_reports_a_guard_that_cannot_observe() -> None:
    def fail() -> str:
        raise ValueError("no such thing")

    window = Window(torch.nn.Linear(1, 1), [Guard("odd", fail)])
    assert window.enter("s") == {"odd": None}
    note = "not observed: ValueError: no such thing"
    assert window.leave() == [{"part": "odd", "before": None, "after": None, "intact": None, "note": note}]


def test_draws_differently_for_another_seed_and_the_same_for_one() -> None:
    setup = Setup()
    drawn: list[tuple[float, float, float]] = []
    for seed in ("a", "b", "a"):
        setup.window.enter(seed)
        drawn.append((random.random(), np.random.rand(), torch.rand(1).item()))
        setup.window.leave()
    assert drawn[0] == drawn[2]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.int8, torch.float64, torch.bool, torch.complex64]
)
def test_fingerprints_weigh_each_word_by_its_place(dtype: torch.dtype) -> None:
    import periodic_eval.fingerprint as module

    torch.manual_seed(0)
    # More rows than a chunk, and a part of one.
    tensor = (torch.randn(9 * 4096 + 5) * 50).to(dtype)
    words = module._words(tensor).long()
    at, cpu = torch.arange(len(words)), torch.device("cpu")
    rows = module._factors(module._number("w") % 2**62, 0, len(words) // 4096 + 1, cpu)[at // 4096]
    total = int((words * rows * module._factors(1, 0, 4096, cpu)[at % 4096]).sum())
    total += module._number(f"w {tensor.dtype} {list(tensor.shape)}")
    assert fingerprint([("w", tensor)]) == f"approximate:{total % 2**64:016x}"


def test_fingerprints_change_with_each_bit_name_shape_and_order() -> None:
    torch.manual_seed(0)
    tensor = torch.randn(3, 4096)
    reference = fingerprint([("w", tensor)])
    assert reference == fingerprint([("w", tensor.clone())])
    others = [fingerprint([("v", tensor)]), fingerprint([("w", tensor.view(-1))])]
    for bit in (0, 5, 22, 30, 31):
        changed = tensor.clone()
        changed.view(torch.int32)[1, 77] ^= -(2**31) if bit == 31 else 1 << bit
        others.append(fingerprint([("w", changed)]))
    swapped = tensor.clone()
    swapped[0, 1], swapped[0, 2] = tensor[0, 2], tensor[0, 1]
    others.append(fingerprint([("w", swapped)]))
    rows = tensor.clone()
    rows[0], rows[1] = tensor[1], tensor[0]
    others.append(fingerprint([("w", rows)]))
    assert len({reference, *others}) == len(others) + 1


def test_fingerprints_change_with_each_bit_of_16_bit_elements() -> None:
    tensor = torch.randn(4097).bfloat16()
    found = {fingerprint([("w", tensor)])}
    for place in (0, 1, 4095, 4096):
        for bit in range(16):
            changed = tensor.clone()
            changed.view(torch.int16)[place] ^= -(2**15) if bit == 15 else 1 << bit
            found.add(fingerprint([("w", changed)]))
    # Two signs in upper halves of words do not cancel.
    changed = tensor.clone()
    changed[[1, 3]] *= -1
    found.add(fingerprint([("w", changed)]))
    assert len(found) == 1 + 4 * 16 + 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.complex128])
def test_fingerprints_change_with_two_bits_of_64_bit_elements(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    tensor = (torch.randn(100) * 50).to(dtype)
    found = {fingerprint([("w", tensor)]), fingerprint([("w", -tensor)])}
    for bit in (0, 31, 32, 62, 63):
        changed = tensor.clone()
        changed.view(torch.int64)[[1, 3]] ^= -(2**63) if bit == 63 else 1 << bit
        found.add(fingerprint([("w", changed)]))
    assert len(found) == 7


def lora(**settings: Any) -> Any:
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(
        random_model("llama"), LoraConfig(r=2, target_modules=["q_proj", "v_proj"], **settings)
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_()
    return model


def test_gives_exactly_the_base_and_brings_the_adapter_back() -> None:
    base, model = random_model("llama"), lora(lora_dropout=0.1, modules_to_save=["lm_head"])
    assert why_base_is_absent(model) is None
    assert adapter_name(model) == "default"
    frozen = next(parameter for name, parameter in model.named_parameters() if "lora_A" in name)
    frozen.requires_grad_(False)
    flags = [parameter.requires_grad for parameter in model.parameters()]
    rows, at = [[5, 6, 7]], [(0, 2)]
    with_adapter = Forward(model.eval()).logits_at(rows, at)
    with without_adapter(model):
        assert torch.equal(Forward(model).logits_at(rows, at), Forward(base).logits_at(rows, at))
    assert torch.equal(Forward(model).logits_at(rows, at), with_adapter)
    assert [parameter.requires_grad for parameter in model.parameters()] == flags


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"bias": "lora_only"}, "trains biases"),
        ({"init_lora_weights": "pissa"}, "initialization pissa"),
        ({"init_lora_weights": "olora"}, "initialization olora"),
        ({"layer_replication": [[0, 2], [1, 3]]}, "the adapter default replicates layers of the model"),
    ],
)
def test_has_no_base_where_the_adapter_changed_it(settings: dict[str, Any], reason: str) -> None:
    assert reason in str(why_base_is_absent(lora(**settings)))


def test_has_no_base_without_an_adapter_or_where_another_weight_trains() -> None:
    assert why_base_is_absent(random_model("llama")) == "the model has no adapter of PEFT"
    model = lora()
    model.base_model.model.model.norm.weight.requires_grad_(True)
    assert "norm.weight trains too" in str(why_base_is_absent(model))
    merged = lora()
    merged.merge_adapter()
    assert why_base_is_absent(merged) == "an adapter is merged into the weights"


def test_names_a_mode_that_a_call_outside_of_a_window_did_not_set_back() -> None:
    setup = Setup()
    mode = next(guard for guard in setup.window.guards if guard.name == "mode")
    mode.capture = lambda: lambda: None
    with setup.window.protected("a call"):
        pass
    # The window's own observation finds nothing: the state before it is the changed one.
    for broken in (["mode"], []):
        setup.window.enter("s")
        evidence = setup.window.leave()
        assert [part["part"] for part in evidence if part["intact"] is False] == broken
