"""Settings and random states of a training that guards observe and restore."""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Setting = tuple[str, Callable[[], Any], Callable[[Any], Any]]
"""A name, a function that returns the value, and one that sets it."""


def _attribute(holder: Any, key: str, name: str = "") -> Setting:
    return f"{name}.{key}", lambda: getattr(holder, key), lambda value: setattr(holder, key, value)


def requires_grad_settings(model: nn.Module) -> list[Setting]:
    """Returns whether each parameter trains."""
    return [_attribute(parameter, "requires_grad", name) for name, parameter in model.named_parameters()]


def mode_settings(model: nn.Module) -> list[Setting]:
    """Returns whether each module is in training mode."""
    return [_attribute(module, "training", name) for name, module in model.named_modules()]


_ADAPTER_STATE = (
    "_active_adapter",
    "_disable_adapters",
    "merged_adapters",
    "_adapters_disabled",
    "active_adapter",
)


def adapter_settings(model: nn.Module) -> list[Setting]:
    """Returns which adapters of PEFT are active."""
    modules = model.named_modules()
    return [
        _attribute(module, key, name)
        for name, module in modules
        for key in _ADAPTER_STATE
        if key in vars(module)
    ]


def model_settings(model: Any) -> list[Setting]:
    """Returns the generation settings, and the numbers, names and flags of the configuration."""
    generation, config = getattr(model, "generation_config", None), getattr(model, "config", None)
    settings: list[Setting] = []
    if config is not None:
        plain = [
            key for key, value in vars(config).items() if isinstance(value, (int, float, str, type(None)))
        ]
        settings += [_attribute(config, key, "config") for key in plain]
    if generation is not None:
        settings += [_attribute(generation, key) for key in list(vars(generation)) if not key.startswith("_")]
    return settings


_TOKENIZER_KEYS = (
    "padding_side",
    "truncation_side",
    "model_max_length",
    "chat_template",
    "add_bos_token",
    "add_eos_token",
    "clean_up_tokenization_spaces",
    "split_special_tokens",
)


def tokenizer_settings(tokenizer: Any) -> list[Setting]:
    """Returns settings that change an encoding or a rendering. The number of tokens cannot be set back."""
    backend = getattr(tokenizer, "backend_tokenizer", None)

    def put_special(tokens: dict[str, Any]) -> None:
        for key in {**tokenizer.special_tokens_map, **tokens}:
            setattr(tokenizer, key, tokens.get(key))

    def of_backend(key: str) -> Setting:
        def put(value: Any) -> None:
            getattr(backend, f"no_{key}")() if value is None else getattr(backend, f"enable_{key}")(**value)

        return f"backend.{key}", lambda: getattr(backend, key), put

    settings = [_attribute(tokenizer, key) for key in _TOKENIZER_KEYS if hasattr(tokenizer, key)]
    settings.append(("size", lambda: len(tokenizer), lambda _: None))
    if hasattr(tokenizer, "special_tokens_map"):
        settings.append(("special-tokens", lambda: tokenizer.special_tokens_map, put_special))
    return [*settings, *(of_backend(key) for key in ("truncation", "padding") if hasattr(backend, key))]


def torch_settings() -> list[Setting]:
    """Returns settings of torch that change the arithmetic or the gradients."""
    cudnn: Any = torch.backends.cudnn
    settings: list[Setting] = [
        ("default-dtype", torch.get_default_dtype, torch.set_default_dtype),
        ("grad-mode", torch.is_grad_enabled, torch.set_grad_enabled),
        ("float32-matmul", torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        (
            "deterministic",
            lambda: (
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
            ),
            lambda value: torch.use_deterministic_algorithms(value[0], warn_only=value[1]),
        ),
        *(_attribute(cudnn, key, "cudnn") for key in ("enabled", "benchmark", "deterministic", "allow_tf32")),
    ]
    for kind in ("cpu", "cuda", "mps"):
        if kind == "cpu" or getattr(torch, kind).is_available():
            settings += _autocast(kind)
    return settings


def _autocast(kind: str) -> list[Setting]:
    return [
        (
            kind,
            lambda: torch.is_autocast_enabled(kind),
            lambda value: torch.set_autocast_enabled(kind, value),
        ),
        (
            f"{kind}.dtype",
            lambda: torch.get_autocast_dtype(kind),
            lambda value: torch.set_autocast_dtype(kind, value),
        ),
    ]


# Random states


def random_states() -> list[Setting]:
    """Returns the random states of this process."""
    states: list[Setting] = [
        ("python", random.getstate, random.setstate),
        ("torch", torch.get_rng_state, torch.set_rng_state),
    ]
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"].random
        states.append(("numpy", numpy.get_state, numpy.set_state))
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states.append(("cuda", torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all))
    if torch.backends.mps.is_available():
        states.append(("mps", torch.mps.get_rng_state, torch.mps.set_rng_state))
    return states


def seed_all(seed: str) -> None:
    """Seeds the random states that `random_states` returns."""
    number = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "little")
    random.seed(number)
    # Not `torch.manual_seed`, which also seeds devices whose states are not kept.
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(number)
    if torch.backends.mps.is_available():
        torch.mps.manual_seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number % 2**32)


def digest(value: Any) -> str:
    """Returns a short hash of settings or of random states. Tensors and arrays count with their bytes."""
    hasher = hashlib.blake2b(digest_size=8)
    _feed(hasher, value)
    return hasher.hexdigest()


def _feed(hasher: Any, value: Any) -> None:
    if isinstance(value, Tensor):
        _feed(
            hasher,
            value.detach().cpu().flatten().tolist() if value.numel() < 64 else value.detach().cpu().numpy(),
        )
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            hasher.update(str(key).encode())
            _feed(hasher, value[key])
    elif isinstance(value, (list, tuple)):
        hasher.update(f"{len(value)}:".encode())
        for item in value:
            _feed(hasher, item)
    elif hasattr(value, "tobytes"):
        hasher.update(value.tobytes())
    else:
        hasher.update(f"{value!r};".encode())
