"""Guards: each observes a part of the training's state before and after a window, and restores what a window may change."""

from __future__ import annotations

import contextlib
import hashlib
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .fingerprint import Reduce, fingerprint

Restore = Callable[[], None]
Evidence = dict[str, Any]


class Guard:
    """Observes one part of the training's state.

    `observe` returns the state as a short string, or None if it cannot be observed. `capture` returns a function that
    restores it.
    """

    def __init__(
        self,
        name: str,
        observe: Callable[[], str | None],
        capture: Callable[[], Restore] | None = None,
        note: str = "",
    ) -> None:
        self.name, self.observe, self.note = name, observe, note
        self.capture: Callable[[], Restore] = capture or (lambda: lambda: None)

    def look(self) -> tuple[str | None, str]:
        """Returns the state, and why it is unknown if it could not be observed."""
        try:
            return self.observe(), self.note
        except Exception as error:
            return None, f"not observed: {type(error).__name__}: {error}"


class Window:
    """Enters and leaves the guards, and puts the model into the state for measuring in between."""

    def __init__(self, model: nn.Module, guards: Sequence[Guard]) -> None:
        self.guards = list(guards)
        self._model = model
        self._before: list[tuple[str | None, str]] = []
        self._restores: list[Restore] | None = None

    @property
    def is_open(self) -> bool:
        """Whether the guards are entered."""
        return self._restores is not None

    def enter(self, seed: str) -> dict[str, str | None]:
        """Observes and captures the state, then switches to evaluation mode, no gradients and seeded random states."""
        if self.is_open:
            self.leave()
        self._before = [guard.look() for guard in self.guards]
        captured = [
            _capture_torch_settings,
            lambda: _capture_modes(self._model),
            *(g.capture for g in self.guards),
        ]
        self._restores = [capture() for capture in captured]
        for module in self._model.modules():
            # Not `eval()`: some adapters merge weights there.
            module.training = False
        torch.set_grad_enabled(False)
        _seed_all(seed)
        return {guard.name: state for guard, (state, _) in zip(self.guards, self._before, strict=True)}

    def leave(self) -> list[Evidence]:
        """Restores the captured state in reverse order, observes again, and returns the evidence of each guard."""
        self.restore()
        return [
            _evidence(guard.name, before, guard.look())
            for guard, before in zip(self.guards, self._before, strict=True)
        ]

    def restore(self) -> None:
        """Restores the captured state; does nothing outside of a window."""
        restores, self._restores = self._restores or [], None
        for restore in reversed(restores):
            with contextlib.suppress(Exception):
                restore()


def _evidence(name: str, before: tuple[str | None, str], after: tuple[str | None, str]) -> Evidence:
    intact = None if before[0] is None or after[0] is None else before[0] == after[0]
    note = before[1] or after[1]
    return {
        "part": name,
        "before": before[0],
        "after": after[0],
        "intact": intact,
        **({"note": note} if note else {}),
    }


def training_guards(
    model: nn.Module,
    tokenizer: Any,
    optimizer: Any = None,
    scaler: Any = None,
    *,
    reduce: Reduce | None = None,
    rank: int = 0,
) -> list[Guard]:
    """Returns the guards of a model, its tokenizer, its optimizer and its GradScaler. Guards without a subject are absent."""

    def of_tensors(name: str, tensors: Callable[[], Iterator[tuple[str, Tensor]]], **more: Any) -> Guard:
        return Guard(name, lambda: fingerprint(tensors(), reduce, rank), **more)

    guards = [
        of_tensors("weights", lambda: iter(model.named_parameters())),
        of_tensors("buffers", lambda: iter(model.named_buffers()), capture=lambda: _capture_buffers(model)),
        of_tensors("gradients", lambda: _gradients(model)),
    ]
    if optimizer is not None:
        optimizer = unwrap_optimizer(optimizer)
        guards.append(
            Guard(
                "optimizer",
                lambda: (
                    f"{fingerprint(_optimizer_tensors(optimizer), reduce, rank)} {_digest(_optimizer_numbers(optimizer))}"
                ),
            )
        )
    if scaler is not None:
        guards.append(Guard("grad-scaler", lambda: _digest(scaler.state_dict())))
    guards.append(
        Guard("requires-grad", lambda: _requires_grad(model), lambda: _capture_requires_grad(model))
    )
    if any(hasattr(module, "_active_adapter") for module in model.modules()):
        guards.append(Guard("adapter", lambda: _digest(_adapters(model)), lambda: _capture_adapters(model)))
    if next(_quantization(model), None) is not None:
        guards.append(of_tensors("quantization", lambda: _quantization(model)))
    guards += [*_random_guards(), Guard("modes", lambda: _modes(model))]
    guards.append(
        Guard(
            "tokenizer",
            lambda: _digest(_tokenizer_settings(tokenizer)),
            lambda: _capture_tokenizer(tokenizer),
        )
    )
    config = ModelSettings(model)
    guards.append(Guard("model-settings", config.observe, config.capture))
    guards.append(Guard("torch-settings", _torch_settings))
    return guards


# Tensors


def _gradients(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            yield name, parameter.grad


def _capture_buffers(model: nn.Module) -> Restore:
    kept = [(buffer, buffer.detach().clone()) for buffer in model.buffers() if buffer.numel() <= 2**22]

    def restore() -> None:
        with torch.no_grad():
            for buffer, copy in kept:
                if not torch.equal(buffer, copy):
                    buffer.copy_(copy)

    return restore


def unwrap_optimizer(optimizer: Any) -> Any:
    """Returns the optimizer of torch under Accelerate's or another wrapper."""
    while not isinstance(optimizer, torch.optim.Optimizer) or hasattr(optimizer, "scaler"):
        inner = getattr(optimizer, "optimizer", None)
        if inner is None:
            break
        optimizer = inner
    return optimizer


def _optimizer_tensors(optimizer: Any) -> Iterator[tuple[str, Tensor]]:
    for g, group in enumerate(optimizer.param_groups):
        for p, parameter in enumerate(group["params"]):
            state = optimizer.state.get(parameter) or {}
            for key, value in state.items():
                if isinstance(value, Tensor):
                    yield f"{g}.{p}.{key}", value


def _optimizer_numbers(optimizer: Any) -> list[Any]:
    groups = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    states = [
        {k: v for k, v in (optimizer.state.get(parameter) or {}).items() if not isinstance(v, Tensor)}
        for group in optimizer.param_groups
        for parameter in group["params"]
    ]
    return [groups, states]


def _quantization(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yields scales and codes of weights that bitsandbytes quantized to 4 or 8 bit."""
    for name, parameter in model.named_parameters():
        state = getattr(parameter, "quant_state", None)
        for level, part in (("", state), (".state2", getattr(state, "state2", None))):
            for key in ("absmax", "code", "offset"):
                value = getattr(part, key, None)
                if isinstance(value, Tensor):
                    yield f"{name}{level}.{key}", value
    for name, module in model.named_modules():
        state = getattr(module, "state", None)
        for key in ("CB", "SCB"):
            # bitsandbytes moves them from the weight to the state in the first forward pass.
            value = getattr(state, key, None)
            value = getattr(getattr(module, "weight", None), key, None) if value is None else value
            if isinstance(value, Tensor):
                yield f"{name}.{key}", value


# Flags of the model


def _requires_grad(model: nn.Module) -> str:
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    return f"{len(names)} train {_digest(names)}"


def _capture_requires_grad(model: nn.Module) -> Restore:
    kept = [(parameter, parameter.requires_grad) for parameter in model.parameters()]

    def restore() -> None:
        for parameter, flag in kept:
            if parameter.requires_grad != flag:
                parameter.requires_grad_(flag)

    return restore


def _modes(model: nn.Module) -> str:
    training = [name for name, module in model.named_modules() if module.training]
    return f"{len(training)} in training mode {_digest(training)}"


def _capture_modes(model: nn.Module) -> Restore:
    kept = [(module, module.training) for module in model.modules()]

    def restore() -> None:
        for module, mode in kept:
            module.training = mode

    return restore


_ADAPTER_STATE = (
    "_active_adapter",
    "_disable_adapters",
    "merged_adapters",
    "_adapters_disabled",
    "active_adapter",
)


def _adapters(model: nn.Module) -> list[Any]:
    return [
        (name, {key: module.__dict__[key] for key in _ADAPTER_STATE if key in module.__dict__})
        for name, module in model.named_modules()
        if any(key in module.__dict__ for key in _ADAPTER_STATE)
    ]


def _capture_adapters(model: nn.Module) -> Restore:
    kept = [
        (module, key, list(value) if isinstance(value, list) else value)
        for module in model.modules()
        for key, value in module.__dict__.items()
        if key in _ADAPTER_STATE
    ]

    def restore() -> None:
        for module, key, value in kept:
            module.__dict__[key] = value

    return restore


class ModelSettings:
    """The generation settings and `use_cache` of a model."""

    def __init__(self, model: nn.Module) -> None:
        self._holders = [
            holder
            for holder in (getattr(model, "generation_config", None), getattr(model, "config", None))
            if holder is not None
        ]

    def observe(self) -> str:
        """Returns a digest of the settings."""
        return _digest([self._settings(holder) for holder in self._holders])

    def capture(self) -> Restore:
        """Returns a function that restores the settings."""
        kept = [(holder, self._settings(holder)) for holder in self._holders]

        def restore() -> None:
            for holder, settings in kept:
                for key, value in settings.items():
                    if getattr(holder, key, None) != value:
                        setattr(holder, key, value)

        return restore

    @staticmethod
    def _settings(holder: Any) -> dict[str, Any]:
        if hasattr(holder, "max_new_tokens"):
            return {k: v for k, v in vars(holder).items() if not k.startswith("_")}
        keys = ("use_cache", "_attn_implementation", "pad_token_id", "eos_token_id", "bos_token_id")
        return {key: getattr(holder, key) for key in keys if hasattr(holder, key)}


# Random states


def _random_guards() -> list[Guard]:
    guards = [
        _random_guard("random-python", random.getstate, random.setstate),
        _random_guard("random-torch", torch.get_rng_state, torch.set_rng_state),
    ]
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"]
        guards.append(_random_guard("random-numpy", numpy.random.get_state, numpy.random.set_state))
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        guards.append(
            _random_guard("random-cuda", torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all)
        )
    if torch.backends.mps.is_available():
        guards.append(_random_guard("random-mps", torch.mps.get_rng_state, torch.mps.set_rng_state))
    return guards


def _random_guard(name: str, get: Callable[[], Any], restore: Callable[[Any], Any]) -> Guard:
    def capture() -> Restore:
        state = get()
        return lambda: restore(state)

    return Guard(name, lambda: _digest(get()), capture)


def _seed_all(seed: str) -> None:
    number = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "little")
    random.seed(number)
    torch.manual_seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number % 2**32)


# The tokenizer


_TOKENIZER_SETTINGS = (
    "padding_side",
    "truncation_side",
    "model_max_length",
    "chat_template",
    "add_bos_token",
    "add_eos_token",
)


def _tokenizer_settings(tokenizer: Any) -> dict[str, Any]:
    settings = {key: getattr(tokenizer, key) for key in _TOKENIZER_SETTINGS if hasattr(tokenizer, key)}
    backend = getattr(tokenizer, "backend_tokenizer", None)
    for key in ("truncation", "padding"):
        settings[f"backend.{key}"] = getattr(backend, key, None)
    settings["size"] = len(tokenizer) if hasattr(tokenizer, "__len__") else None
    return settings


def _capture_tokenizer(tokenizer: Any) -> Restore:
    kept = _tokenizer_settings(tokenizer)

    def restore() -> None:
        now = _tokenizer_settings(tokenizer)
        for key in _TOKENIZER_SETTINGS:
            if key in kept and kept[key] != now.get(key):
                setattr(tokenizer, key, kept[key])
        backend = getattr(tokenizer, "backend_tokenizer", None)
        for key in ("truncation", "padding"):
            value = kept[f"backend.{key}"]
            if backend is not None and value != now[f"backend.{key}"]:
                getattr(backend, f"no_{key}")() if value is None else getattr(backend, f"enable_{key}")(
                    **value
                )

    return restore


# Settings of torch


def _torch_switches() -> list[tuple[str, Callable[[], Any], Callable[[Any], Any]]]:
    cudnn: Any = torch.backends.cudnn
    devices = [
        kind for kind in ("cpu", "cuda", "mps") if kind == "cpu" or getattr(torch, kind).is_available()
    ]

    def flag(name: str) -> tuple[str, Callable[[], Any], Callable[[Any], Any]]:
        return f"cudnn.{name}", lambda: getattr(cudnn, name), lambda value: setattr(cudnn, name, value)

    def autocast(kind: str) -> list[tuple[str, Callable[[], Any], Callable[[Any], Any]]]:
        return [
            (
                f"autocast.{kind}",
                lambda: torch.is_autocast_enabled(kind),
                lambda value: torch.set_autocast_enabled(kind, value),
            ),
            (
                f"autocast.{kind}.dtype",
                lambda: torch.get_autocast_dtype(kind),
                lambda value: torch.set_autocast_dtype(kind, value),
            ),
        ]

    return [
        ("default-dtype", torch.get_default_dtype, torch.set_default_dtype),
        ("grad-mode", torch.is_grad_enabled, torch.set_grad_enabled),
        *(switch for kind in devices for switch in autocast(kind)),
        *(flag(name) for name in ("enabled", "benchmark", "deterministic")),
        ("float32-matmul", torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        ("cudnn.tf32", lambda: cudnn.allow_tf32, lambda value: setattr(cudnn, "allow_tf32", value)),
        (
            "deterministic",
            lambda: (
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
            ),
            lambda value: torch.use_deterministic_algorithms(value[0], warn_only=value[1]),
        ),
    ]


def _torch_values() -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, get, _ in _torch_switches():
        # torch refuses to read some flags where the older and the newer names of them were mixed.
        with contextlib.suppress(RuntimeError):
            values[name] = get()
    return values


def _torch_settings() -> str:
    return _digest(_torch_values())


def _capture_torch_settings() -> Restore:
    kept = _torch_values()

    def restore() -> None:
        now = _torch_values()
        for name, _, put in _torch_switches():
            if name in kept and kept[name] != now.get(name):
                put(kept[name])

    return restore


def _digest(value: Any) -> str:
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
