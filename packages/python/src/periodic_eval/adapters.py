"""`on: base`: the model without its adapter, only where switching the adapter off is exact."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

from torch import nn

_EXACT_TYPES = {"LORA", "ADALORA", "LOHA", "LOKR", "IA3", "VERA", "RANDLORA"}
"""Adapters of PEFT that add to the layers' outputs, so that switching them off leaves the base weights."""

_EXACT_STARTS = {"True", "False", "gaussian", "eva", "orthogonal"}
"""Initializations that leave the base weights as they were. PiSSA, OLoRA, CorDA and LoftQ change them."""


def adapter_name(model: Any) -> str | None:
    """Returns the names of the active adapters, or None without an adapter of PEFT."""
    if not hasattr(model, "peft_config"):
        return None
    active = getattr(model, "active_adapters", None)
    names = active() if callable(active) else active
    return ", ".join(names) if isinstance(names, list) and names else None


def why_base_is_absent(model: Any) -> str | None:
    """Returns why `on: base` would not give exactly the model without its adapter, or None if it does."""
    if not hasattr(model, "disable_adapter") or not hasattr(model, "peft_config"):
        return "the model has no adapter of PEFT"
    for name, config in model.peft_config.items():
        kind = getattr(config.peft_type, "value", str(config.peft_type))
        if kind not in _EXACT_TYPES:
            return f"the adapter {name} is of the type {kind}"
        if getattr(config, "bias", "none") != "none":
            return f"the adapter {name} trains biases of the model"
        if getattr(config, "layer_replication", None):
            return f"the adapter {name} replicates layers of the model"
        start = str(getattr(config, "init_lora_weights", True))
        if start not in _EXACT_STARTS:
            return f"the initialization {start} of the adapter {name} changed the weights of the model"
    if any(getattr(module, "merged_adapters", None) for module in model.modules()):
        return "an adapter is merged into the weights"
    outside = _trained_outside(model)
    return f"the weight {outside} trains too" if outside is not None else None


@contextlib.contextmanager
def without_adapter(model: Any) -> Generator[None, None, None]:
    """Switches the adapter off.

    Every `requires_grad` comes back: PEFT sets it for all weights of an adapter.
    """
    kept = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    try:
        with model.disable_adapter():
            yield
    finally:
        for parameter, flag in kept:
            if parameter.requires_grad != flag:
                parameter.requires_grad_(flag)


def _trained_outside(model: nn.Module) -> str | None:
    """Returns the name of a weight that trains and is not the adapter's; None if there is none."""
    inside: set[int] = set()
    for module in model.modules():
        names = (*getattr(module, "adapter_layer_names", ()), *getattr(module, "other_param_names", ()))
        for name in names:
            holder: Any = getattr(module, name, None)
            if hasattr(holder, "parameters"):
                inside.update(id(parameter) for parameter in holder.parameters())
    trained = (name for name, p in model.named_parameters() if p.requires_grad and id(p) not in inside)
    return next(trained, None)
