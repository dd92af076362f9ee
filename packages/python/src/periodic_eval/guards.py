"""Guards, which observe a part of the training before and after a window, and restore it."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import random
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .fingerprint import Reduce, fingerprint

Restore = Callable[[], None]
Evidence = dict[str, Any]


Setting = tuple[str, Callable[[], Any], Callable[[Any], Any]]
"""A name, a function that returns the value, and one that sets it."""


class Guard:
    """Observes one part of the training's state.

    `observe` returns the state as a short string. `capture` returns a function that restores it.
    """

    def __init__(
        self, name: str, observe: Callable[[], str], capture: Callable[[], Restore] | None = None
    ) -> None:
        self.name, self.observe = name, observe
        self.capture: Callable[[], Restore] = capture or (lambda: lambda: None)

    def look(self) -> tuple[str | None, str]:
        """Returns the state and an empty note; or None and why it could not be observed."""
        try:
            return self.observe(), ""
        except Exception as error:
            return None, f"not observed: {type(error).__name__}: {error}"


class Window:
    """Enters and leaves the guards, and puts the model into the state for measuring in between."""

    def __init__(self, model: nn.Module, guards: Sequence[Guard]) -> None:
        self.guards = list(guards)
        self._model = model
        self._before: list[tuple[str | None, str]] = []
        self._restores: list[Restore] = []

    def enter(self, seed: str) -> dict[str, str | None]:
        """Observes and captures the state, then sets evaluation mode, no gradients and seeded randomness."""
        self.restore()
        self._before = [guard.look() for guard in self.guards]
        self._open(seed)
        return {guard.name: state for guard, (state, _) in zip(self.guards, self._before, strict=True)}

    @contextlib.contextmanager
    def protected(self, seed: str) -> Generator[None, None, None]:
        """Protects the training during a call that comes outside of `enter` and `leave`, without evidence."""
        if self._restores:
            yield
            return
        self._open(seed)
        try:
            yield
        finally:
            self.restore()

    def _open(self, seed: str) -> None:
        always = (_settings_guard("", _torch_settings), _settings_guard("", lambda: _modes(self._model)))
        self._restores = [guard.capture() for guard in (*always, *self.guards)]
        for module in self._model.modules():
            # Not `eval()`: some adapters merge weights there. In evaluation mode, bitsandbytes packs 4-bit
            # weights for the CPU, and does not unpack them.
            module.training = hasattr(module, "support_avx512bf16_for_cpu")
        torch.set_grad_enabled(False)
        _seed_all(seed)

    def leave(self) -> list[Evidence]:
        """Restores the captured state, observes again, and returns the evidence of each guard."""
        self.restore()
        pairs = zip(self.guards, self._before, strict=True)
        return [_evidence(guard.name, before, guard.look()) for guard, before in pairs]

    def restore(self) -> None:
        """Restores the captured state in reverse order; does nothing outside of a window."""
        restores, self._restores = self._restores, []
        for restore in reversed(restores):
            with contextlib.suppress(Exception):
                restore()


def _evidence(name: str, before: tuple[str | None, str], after: tuple[str | None, str]) -> Evidence:
    intact = None if before[0] is None or after[0] is None else before[0] == after[0]
    evidence = {"part": name, "before": before[0], "after": after[0], "intact": intact}
    note = before[1] or after[1]
    return {**evidence, "note": note} if note else evidence


def training_guards(
    model: nn.Module,
    tokenizer: Any,
    optimizer: Any = None,
    scaler: Any = None,
    *,
    reduce: Reduce | None = None,
    rank: int = 0,
) -> list[Guard]:
    """Returns the guards of a training. A guard without a subject is absent."""

    def of_tensors(tensors: Iterator[tuple[str, Tensor]]) -> str:
        return fingerprint(tensors, reduce, rank)

    def of_optimizer() -> str:
        numbers = _digest(_optimizer_numbers(optimizer))
        return f"{of_tensors(_optimizer_tensors(optimizer))} {numbers}"

    guards = [
        Guard("weights", lambda: of_tensors(model.named_parameters())),
        Guard("buffers", lambda: of_tensors(model.named_buffers()), lambda: _capture_buffers(model)),
        Guard("gradients", lambda: of_tensors(_gradients(model))),
    ]
    if optimizer is not None:
        optimizer = unwrap_optimizer(optimizer)
        guards.append(Guard("optimizer", of_optimizer))
    if scaler is not None:
        guards.append(Guard("grad-scaler", lambda: _digest(scaler.state_dict())))
    guards.append(_settings_guard("requires-grad", lambda: _requires_grad(model)))
    if any(hasattr(module, "_active_adapter") for module in model.modules()):
        guards.append(_settings_guard("adapter", lambda: _adapters(model)))
    if next(_quantization(model), None) is not None:
        guards.append(Guard("quantization", lambda: of_tensors(_quantization(model))))
    guards += [_random_guard(state) for state in _random_states()]
    return [
        *guards,
        _settings_guard("mode", lambda: _modes(model)),
        _settings_guard("tokenizer", lambda: _tokenizer_settings(tokenizer)),
        _settings_guard("model-settings", lambda: _model_settings(model)),
        _settings_guard("torch-settings", _torch_settings),
    ]


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


# Settings


def _settings_guard(name: str, settings: Callable[[], Iterable[Setting]]) -> Guard:
    """Returns a guard of values that can be read and set."""

    def values() -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, get, _ in settings():
            # torch refuses to read some flags where the older and the newer names of them were mixed.
            with contextlib.suppress(RuntimeError):
                found[key] = copy.copy(get())
        return found

    def capture() -> Restore:
        kept = values()

        def restore() -> None:
            now = values()
            for key, _, put in settings():
                if key in kept and _digest(kept[key]) != _digest(now.get(key)):
                    put(kept[key])

        return restore

    return Guard(name, lambda: _digest(values()), capture)


def _attribute(holder: Any, key: str, name: str = "") -> Setting:
    return f"{name}.{key}", lambda: getattr(holder, key), lambda value: setattr(holder, key, value)


def _requires_grad(model: nn.Module) -> list[Setting]:
    return [_attribute(parameter, "requires_grad", name) for name, parameter in model.named_parameters()]


def _modes(model: nn.Module) -> list[Setting]:
    return [_attribute(module, "training", name) for name, module in model.named_modules()]


_ADAPTER_STATE = (
    "_active_adapter",
    "_disable_adapters",
    "merged_adapters",
    "_adapters_disabled",
    "active_adapter",
)


def _adapters(model: nn.Module) -> list[Setting]:
    modules = model.named_modules()
    return [
        _attribute(module, key, name)
        for name, module in modules
        for key in _ADAPTER_STATE
        if key in vars(module)
    ]


def _model_settings(model: Any) -> list[Setting]:
    generation, config = getattr(model, "generation_config", None), getattr(model, "config", None)
    keys = ("use_cache", "_attn_implementation", "pad_token_id", "eos_token_id", "bos_token_id")
    settings = [_attribute(config, key, "config") for key in keys if hasattr(config, key)]
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
)


def _tokenizer_settings(tokenizer: Any) -> list[Setting]:
    backend = getattr(tokenizer, "backend_tokenizer", None)

    def of_backend(key: str) -> Setting:
        def put(value: Any) -> None:
            getattr(backend, f"no_{key}")() if value is None else getattr(backend, f"enable_{key}")(**value)

        return f"backend.{key}", lambda: getattr(backend, key), put

    settings = [_attribute(tokenizer, key) for key in _TOKENIZER_KEYS if hasattr(tokenizer, key)]
    settings.append(("size", lambda: len(tokenizer), lambda _: None))
    return [*settings, *(of_backend(key) for key in ("truncation", "padding") if hasattr(backend, key))]


def _torch_settings() -> list[Setting]:
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


def _random_guard(state: Setting) -> Guard:
    return _settings_guard(f"random-{state[0]}", lambda: [state])


def _random_states() -> list[Setting]:
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


def _seed_all(seed: str) -> None:
    number = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "little")
    random.seed(number)
    torch.manual_seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number % 2**32)


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
