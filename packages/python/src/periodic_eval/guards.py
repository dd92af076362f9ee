"""Guards, which observe a part of the training before and after a window, and restore it."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .fingerprint import fingerprint
from .settings import (
    Setting,
    adapter_settings,
    digest,
    mode_settings,
    model_settings,
    random_states,
    requires_grad_settings,
    seed_all,
    tokenizer_settings,
    torch_settings,
)

Restore = Callable[[], None]
Evidence = dict[str, Any]


class Guard:
    """Observes one part of the training's state.

    `observe` returns the state as a short string. `capture` returns a function that restores it. `is_setting`
    is whether it observes settings or random states, which takes little time.
    """

    def __init__(
        self,
        name: str,
        observe: Callable[[], str],
        capture: Callable[[], Restore] | None = None,
        *,
        is_setting: bool = False,
    ) -> None:
        self.name, self.observe, self.is_setting = name, observe, is_setting
        self.capture: Callable[[], Restore] = capture or (lambda: lambda: None)

    def try_observe(self) -> tuple[str | None, str]:
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
        self._changed: dict[str, Evidence] = {}

    def enter(self, seed: str) -> dict[str, str | None]:
        """Observes and captures the state, then sets evaluation mode, no gradients and seeded randomness."""
        self.restore()
        self._before = [guard.try_observe() for guard in self.guards]
        self._open(seed)
        return {guard.name: state for guard, (state, _) in zip(self.guards, self._before, strict=True)}

    @contextlib.contextmanager
    def protected(self, seed: str) -> Generator[None, None, None]:
        """Protects the training during a call that comes outside of `enter` and `leave`.

        A setting that does not come back is evidence of the next `leave`.
        """
        if self._restores:
            yield
            return
        observed = [(guard, guard.try_observe()) for guard in self.guards if guard.is_setting]
        self._open(seed)
        try:
            yield
        finally:
            self.restore()
            for guard, before in observed:
                evidence = _evidence(guard.name, before, guard.try_observe())
                if evidence["intact"] is False:
                    self._changed.setdefault(guard.name, evidence)

    def _open(self, seed: str) -> None:
        # A window without guards restores these two as well.
        guards = {guard.name: guard for guard in (_torch_guard(), _mode_guard(self._model), *self.guards)}
        self._restores = [guard.capture() for guard in guards.values()]
        for module in self._model.modules():
            # Not `eval()`: some adapters merge weights there. In evaluation mode, bitsandbytes packs 4-bit
            # weights for the CPU, and does not unpack them.
            module.training = hasattr(module, "support_avx512bf16_for_cpu")
        torch.set_grad_enabled(False)
        seed_all(seed)

    def leave(self) -> list[Evidence]:
        """Restores the captured state, observes again, and returns the evidence of each guard."""
        self.restore()
        pairs = zip(self.guards, self._before, strict=True)
        found = [_evidence(guard.name, before, guard.try_observe()) for guard, before in pairs]
        changed, self._changed = self._changed, {}
        return [changed.get(evidence["part"], evidence) for evidence in found]

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
    model: nn.Module, tokenizer: Any, optimizer: Any = None, scaler: Any = None
) -> list[Guard]:
    """Returns the guards of a training. A guard without a subject is absent."""

    def of_optimizer() -> str:
        numbers = digest(_optimizer_numbers(optimizer))
        return f"{fingerprint(_optimizer_tensors(optimizer))} {numbers}"

    guards = [
        Guard("weights", lambda: fingerprint(model.named_parameters())),
        Guard("buffers", lambda: fingerprint(model.named_buffers()), lambda: _capture_buffers(model)),
        Guard("gradients", lambda: fingerprint(_gradients(model))),
    ]
    if optimizer is not None:
        optimizer = unwrap_optimizer(optimizer)
        guards.append(Guard("optimizer", of_optimizer))
    if scaler is not None:
        guards.append(Guard("grad-scaler", lambda: digest(scaler.state_dict())))
    guards.append(_settings_guard("requires-grad", lambda: requires_grad_settings(model)))
    if any(hasattr(module, "_active_adapter") for module in model.modules()):
        guards.append(_settings_guard("adapter", lambda: adapter_settings(model)))
    if next(_quantization(model), None) is not None:
        guards.append(Guard("quantization", lambda: fingerprint(_quantization(model))))
    guards += [_random_guard(state) for state in random_states()]
    return [
        *guards,
        _mode_guard(model),
        _settings_guard("tokenizer", lambda: tokenizer_settings(tokenizer)),
        _settings_guard("model-settings", lambda: model_settings(model)),
        _torch_guard(),
    ]


# Tensors


def _gradients(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            yield name, parameter.grad


def _capture_buffers(model: nn.Module) -> Restore:
    """Captures the buffers, and the attributes of the modules that own them.

    Dynamic RoPE in transformers replaces its buffer. An attribute holds the length that the buffer fits.
    """
    owners = [
        (module, dict(module._buffers), set(module._non_persistent_buffers_set), dict(vars(module)))
        for module in model.modules()
    ]
    tensors = {
        id(value): value
        for _, buffers, _, attributes in owners
        if buffers
        for value in (*buffers.values(), *attributes.values())
        if isinstance(value, Tensor) and value.numel() <= 2**22
    }
    kept = [(tensor, tensor.detach().clone()) for tensor in tensors.values()]

    def restore() -> None:
        for module, buffers, non_persistent, attributes in owners:
            # A forward pass may also register the first buffer of a module.
            if buffers or module._buffers:
                _put_back(vars(module), attributes)
                _put_back(module._buffers, buffers)
                module._non_persistent_buffers_set = non_persistent
        for tensor, clone in kept:
            # torch cannot compare or write some kinds of tensors.
            with torch.no_grad(), contextlib.suppress(Exception):
                if not torch.equal(tensor, clone):
                    tensor.copy_(clone)

    return restore


def _put_back(values: dict[str, Any], kept: dict[str, Any]) -> None:
    for key in values.keys() - kept.keys():
        del values[key]
    values.update(kept)


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
        # A wrapper of PEFT shows the weight of its base layer, but not its state.
        for key in ("CB", "SCB") if hasattr(state, "CB") else ():
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
                if key in kept and digest(kept[key]) != digest(now.get(key)):
                    with contextlib.suppress(Exception):
                        put(kept[key])

        return restore

    return Guard(name, lambda: digest(values()), capture, is_setting=True)


def _mode_guard(model: nn.Module) -> Guard:
    return _settings_guard("mode", lambda: mode_settings(model))


def _torch_guard() -> Guard:
    return _settings_guard("torch-settings", torch_settings)


def _random_guard(state: Setting) -> Guard:
    return _settings_guard(f"random-{state[0]}", lambda: [state])
