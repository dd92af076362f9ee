"""Forward passes of the trainer's model: without gradients, with logits only where they are asked."""

from __future__ import annotations

import contextlib
import inspect
import math
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from .errors import PeriodicEvalError

T = TypeVar("T")
Ids = Sequence[int]
WINDOWS = ("sliding_window", "attention_chunk_size", "window_size")
Check = Callable[[int], None]
"""Called between batches or tokens with the number of tokens since the last call; raises to end the work."""


def unwrap(model: nn.Module) -> nn.Module:
    """Returns the model under DistributedDataParallel, DataParallel and `torch.compile`.

    A wrapper's forward pass would broadcast buffers, or run compiled code.
    """
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and isinstance(model, (nn.parallel.DistributedDataParallel, nn.DataParallel)):
            inner = model.module
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def base_of(model: nn.Module) -> Any:
    """Returns the model under PEFT's adapter, or the model itself."""
    get_base_model = getattr(model, "get_base_model", None)
    return get_base_model() if callable(get_base_model) else model


class Forward:
    """Runs a causal language model of transformers, or any module that maps ids [B, T] to logits [B, T, V].

    `batch_tokens` bounds the tokens of a forward pass, padding included; out of memory halves it for good.
    A batch of completions caches up to `cache_factor` times as many.
    `passes` and `rows` count forward passes and their rows. `packs` is whether the model reads several rows
    in one sequence; None until `read_ends` has tried it. `packed_to` holds the widest spread of a row in a
    pack and the length of the longest row that were compared with whole rows.
    """

    def __init__(
        self, model: nn.Module, *, autocast: torch.dtype | None = None, batch_tokens: int | None = None
    ) -> None:
        self.model = unwrap(model)
        self.base: Any = base_of(self.model)
        self.config: Any = _text_config(self.base)
        self.autocast = autocast
        parameters = _parameters(self.base)
        self.takes_mask = "attention_mask" in parameters and "position_ids" in parameters
        self.takes_hidden = self.config is not None and bool({"output_hidden_states", "kwargs"} & parameters)
        self._cache_name = next((name for name in ("cache", "past_key_values") if name in parameters), None)
        self.caches = (
            self._cache_name is not None
            and self.takes_mask
            and not _is_recurrent(self.base, self.config)
            and not _adds_virtual_tokens(self.model)
        )
        is_gpu = self.device.type == "cuda"
        # More tokens leave a CPU's cache; a step of generation reads all weights for one token of each row.
        self.batch_tokens = batch_tokens or (16384 if is_gpu else 1024)
        self.cache_factor = 4 if is_gpu else 16
        self.packs: bool | None = None
        self.packed_to: tuple[int, int] = (0, 0)
        self.passes = self.rows = 0
        self.lockstep: Lockstep | None = None

    @property
    def device(self) -> torch.device:
        """The device of the first parameter, which reads the ids."""
        return next((p.device for p in self.model.parameters()), torch.device("cpu"))

    @property
    def context_length(self) -> int | None:
        """The longest sequence that the model reads, in tokens; None if the configuration has none."""
        for name in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"):
            length = getattr(self.config, name, None)
            if isinstance(length, int) and length > 0:
                return length
        return None

    @property
    def last_place(self) -> float:
        """The longest sequence with its padding: some models keep tables of that size (GPT-J, GPT-Neo)."""
        return self.context_length or math.inf

    @property
    def window(self) -> int | None:
        """The narrowest attention window, in tokens; None if all layers see all."""
        found = [getattr(self.config, name, None) for name in WINDOWS]
        return min((size for size in found if isinstance(size, int)), default=None)

    @property
    def takes_any_mask(self) -> bool:
        """Whether the model passes a mask [B, 1, T, T] to its attention as it is."""
        modules = [sys.modules.get(kind.__module__) for kind in type(self.base).__mro__]
        return (
            self.takes_mask
            and any(hasattr(module, "create_causal_mask") for module in modules)
            and getattr(self.config, "_attn_implementation", None) in ("sdpa", "eager")
            and not _is_recurrent(self.base, self.config)
            and not _adds_virtual_tokens(self.model)
        )

    def attention_mask(self, sees: Tensor) -> Tensor:
        """Returns a mask from booleans [B, 1, T, T], in the form that the model's attention takes."""
        sees = sees.to(self.device)
        if self.config._attn_implementation == "sdpa":
            return sees
        dtype = next((p.dtype for p in self.model.parameters() if p.is_floating_point()), torch.float32)
        return torch.zeros(sees.shape, dtype=dtype, device=sees.device).masked_fill(
            ~sees, torch.finfo(dtype).min
        )

    @cached_property
    def vocab_size(self) -> int:
        """Width of the logits."""
        head = self._head()
        for holder, name in ((head, "out_features"), (self.config, "vocab_size")):
            size = getattr(holder, name, None)
            if isinstance(size, int) and size > 0:
                return size
        return int(self.logits_at([[0]], [(0, 0)]).shape[-1])

    def check(self) -> None:
        """Raises PeriodicEvalError for a model that does not map ids to causal logits [B, T, V].

        Reads four rows of eight ids, and before them one id if the model has no output embedding. An error of
        the model counts when something is measured: the snapshot fails, and training goes on.
        """
        expected = "logits [B, T, V] for ids [B, T]"
        got = "an encoder and a decoder" if getattr(self.config, "is_encoder_decoder", False) else None
        try:
            if got is None and self._head() is None and self.logits_at([[0]], [(0, 0)]).ndim != 2:
                got = "logits without positions"
            if got is None:
                got, expected = self._probed() or (None, expected)
        except PeriodicEvalError as error:
            got = error.got
        except Exception:
            return
        if got is not None:
            where = f"the model {type(self.base).__name__}"
            raise PeriodicEvalError("model", where, got, expected, "Measure a causal language model.")

    def _probed(self) -> tuple[str, str] | None:
        """Returns got and expected for logits that are too narrow or depend on later ids; None for others."""
        size, length = self.vocab_size, min(8, self.context_length or 8)
        middle = length // 2
        first, other = ([(start + at) % size for at in range(length)] for start in (size // 2, size // 4))
        # All rows are in one pass, because the other rows can change the rounding.
        rows = [first, first, [*first[:middle], *other[middle:]], [*other[:middle], *first[middle:]]]
        logits = self.logits_at(rows, [(row, at) for row in range(4) for at in range(length)]).float()
        width = logits.shape[-1]
        if width < size:
            return f"logits of {width} values", f"logits of {size} values, one for each id of the vocabulary"
        whole, again, after, before = logits.reshape(4, length, width)
        noise = (whole - again).abs().mean()
        by_later = (whole - after)[:middle].abs().mean()
        by_earlier = (whole - before)[middle:].abs().mean()
        # A causal model moves by rounding. Without a mask, later ids count about as much as earlier ones.
        if by_later > torch.stack([2 * noise, by_earlier / 10, 1e-6 * whole.abs().mean()]).max():
            return "logits that depend on later ids", "logits that depend on earlier ids and their own"
        return None

    def logits_at(self, rows: Sequence[Ids], at: Sequence[tuple[int, int]]) -> Tensor:
        """Returns the logits [N, V] at N places `(row, position)` of whole rows, padded on the right.

        Padding on the right needs no mask: a causal model does not look ahead.
        """
        logits, _ = self.run(padded(rows, self.device), at)
        return logits

    def run(
        self,
        ids: Tensor,
        at: Sequence[tuple[int, int]],
        *,
        mask: Tensor | None = None,
        positions: Tensor | None = None,
        cache: Any = None,
        keep_cache: bool = False,
        hidden: bool = False,
    ) -> tuple[Tensor, Any]:
        """Runs one forward pass of ids [B, T].

        Returns the logits [N, V] at the places `at`, and the cache of keys and values or, with `hidden`, the
        hidden states of each layer, [B, T, H].
        """
        if self.lockstep is not None:
            self.lockstep.before_pass()
        self.passes += 1
        self.rows += len(ids)
        arguments: dict[str, Any] = {}
        if mask is not None:
            arguments["attention_mask"] = mask
        if positions is not None:
            arguments["position_ids"] = positions
        if self._cache_name is not None:
            arguments["use_cache"] = keep_cache
        if cache is not None and self._cache_name is not None:
            arguments[self._cache_name] = cache
        if hidden:
            arguments["output_hidden_states"] = True
        with self._arithmetic(), _OnlyAt(self._head(), ids.shape, at) as places:
            output = (
                self.model(ids, **arguments)
                if self.config is None
                else self.model(input_ids=ids, **arguments)
            )
        logits = places.logits_of(output)
        if hidden:
            return logits, output.hidden_states
        return logits, _cache_of(output) if keep_cache else None

    @contextlib.contextmanager
    def _arithmetic(self) -> Generator[None, None, None]:
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            if hasattr(torch.compiler, "set_stance"):
                # Parts that the trainer compiled are measured uncompiled.
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            if self.autocast is not None:
                stack.enter_context(torch.autocast(self.device.type, self.autocast))
            yield

    def _head(self) -> nn.Module | None:
        get = getattr(self.base, "get_output_embeddings", None)
        with contextlib.suppress(NotImplementedError, AttributeError):
            head = get() if callable(get) else None
            return head if isinstance(head, nn.Module) else None
        return None


class Lockstep:
    """Keeps ranks together: each runs as many forward passes as the one that needs most.

    `any_needs` is an all-reduce: it returns whether any rank passed true. `idle_pass` runs a forward pass of
    one token.
    """

    def __init__(self, any_needs: Callable[[bool], bool], idle_pass: Callable[[], object]) -> None:
        self._any_needs, self._idle_pass = any_needs, idle_pass
        self._idle = False

    def before_pass(self) -> None:
        """Announces a forward pass to the other ranks."""
        if not self._idle:
            self._any_needs(True)

    def drain(self) -> None:
        """Runs forward passes until no rank needs another, and raises the first error of them."""
        failure: Exception | None = None
        while self._any_needs(False):
            self._idle = True
            try:
                self._idle_pass()
            except Exception as error:
                failure = failure or error
            finally:
                self._idle = False
        if failure is not None:
            raise failure


class _OnlyAt:
    """While entered, the output embedding reads only the places asked for, so that no other logits exist."""

    def __init__(self, head: nn.Module | None, shape: torch.Size, at: Sequence[tuple[int, int]]) -> None:
        self._head, self._length, self._at = head, int(shape[1]), at
        self._handle: Any = None
        self._was_used = False

    def __enter__(self) -> _OnlyAt:
        if self._head is not None:
            self._handle = self._head.register_forward_pre_hook(self._select)
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            self._handle.remove()

    def _select(self, _: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        self._was_used = True
        return (self._picked(inputs[0]).unsqueeze(0), *inputs[1:])

    def _picked(self, states: Tensor) -> Tensor:
        # Virtual tokens of prompt tuning lengthen the rows on the left.
        added = states.shape[1] - self._length
        rows = torch.tensor([row for row, _ in self._at], dtype=torch.long, device=states.device)
        places = torch.tensor(
            [place + added for _, place in self._at], dtype=torch.long, device=states.device
        )
        return states[rows, places]

    def logits_of(self, output: Any) -> Tensor:
        logits: Any = output if isinstance(output, Tensor) else getattr(output, "logits", None)
        if not isinstance(logits, Tensor):
            got = f"{type(output).__name__} without logits"
            raise PeriodicEvalError("model", "the model's forward pass", got, "logits [B, T, V]")
        return logits[0] if self._was_used else self._picked(logits)


def padded(rows: Sequence[Ids], device: torch.device, *, left: bool = False) -> Tensor:
    """Returns ids [B, T], padded with zeros on the right, or on the left."""
    longest = max(len(row) for row in rows)
    fill = [[0] * (longest - len(row)) for row in rows]
    table = [[*pad, *row] if left else [*row, *pad] for row, pad in zip(rows, fill, strict=True)]
    return torch.tensor(table, dtype=torch.long, device=device)


def left_padding(rows: Sequence[Ids], device: torch.device) -> tuple[Tensor | None, Tensor | None]:
    """Returns mask and positions [B, T] of rows that are padded on the left; None if all have one length."""
    longest = max(len(row) for row in rows)
    if all(len(row) == longest for row in rows):
        return None, None
    starts = torch.tensor([longest - len(row) for row in rows], device=device)[:, None]
    at = torch.arange(longest, device=device)[None]
    return (at >= starts).long(), (at - starts).clamp(min=0)


def log_softmax_rows(logits: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Yields `(first row, log p [n, V] in float32)` for slices of logits [N, V] of at most 64 MB."""
    size = max(1, 2**24 // logits.shape[-1])
    for start in range(0, len(logits), size):
        yield start, torch.log_softmax(logits[start : start + size].float(), dim=-1)


def _cache_of(output: Any) -> Any:
    for name in ("cache", "past_key_values"):
        cache = getattr(output, name, None)
        if hasattr(cache, "reorder_cache"):
            return cache
    return None


def _parameters(base: Any) -> set[str]:
    found: Any = getattr(type(base), "forward", None)
    return set(inspect.signature(found).parameters) if found is not None else set()


def _text_config(base: Any) -> Any:
    config = getattr(base, "config", None)
    get_text_config = getattr(config, "get_text_config", None)
    return get_text_config() if callable(get_text_config) else config


def _is_recurrent(base: Any, config: Any) -> bool:
    kinds = [str(kind) for kind in getattr(config, "layer_types", None) or []]
    return bool(getattr(base, "_is_stateful", False)) or any(
        "attention" not in k or "linear" in k for k in kinds
    )


def _adds_virtual_tokens(model: Any) -> bool:
    configs = getattr(model, "peft_config", None)
    if not isinstance(configs, dict):
        return False
    return any(getattr(config, "is_prompt_learning", False) for config in configs.values())
