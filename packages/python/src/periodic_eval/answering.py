"""Answers to the host's calls: the tokenizer's on rank 0, the model's on all ranks."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch

from .adapters import why_base_is_absent, without_adapter
from .batches import is_out_of_memory
from .connection import HostCall
from .describe import describe_model, stop_ids
from .distributed import Ranks, keep_together, reshard
from .errors import Cancelled, HostLost, PeriodicEvalError
from .forward import Forward
from .generation import generate
from .guards import Window
from .scoring import hidden_states, log_likelihoods, next_token

logger = logging.getLogger("periodic_eval")

T = TypeVar("T")

BLOCK_ROWS = {"log_likelihoods": 2048, "next_token": 512, "generate": 256, "hidden_states": 512}
"""Rows of a call that a rank computes before their answers are sent."""


class Call(Protocol):
    """A call of the host; on other ranks than 0, its copy."""

    method: str
    params: dict[str, Any]
    tokens: int

    def check(self) -> None: ...
    def add_row(self, row: Any) -> None: ...


class CopiedCall:
    """A call of the host on another rank than 0: its answer is gathered there."""

    def __init__(self, method: str, params: dict[str, Any]) -> None:
        self.method, self.params, self.tokens = method, params, 0

    def check(self) -> None:
        """Does nothing: rank 0 hears a cancel, and the others end their rows of the block."""

    def add_row(self, row: Any) -> None:
        """Does nothing: rank 0 sends the rows."""


class Answering:
    """Answers calls with a model and a tokenizer, inside of a window."""

    def __init__(self, forward: Forward, tokenizer: Any, window: Window, ranks: Ranks, run_dir: str) -> None:
        self.forward, self.window = forward, window
        self.tokenizer, self._ranks, self._run_dir = tokenizer, ranks, run_dir
        self._base_absent = why_base_is_absent(forward.model)
        self._batch_tokens = forward.batch_tokens
        keep_together(forward, ranks)

    @property
    def can_save(self) -> bool:
        """Whether `save_checkpoint` is answered."""
        return hasattr(self.forward.model, "save_pretrained") and self.forward.lockstep is None

    def describe(self, autocast: torch.dtype | None) -> dict[str, Any]:
        """Returns the field `model` of `hello`, on all ranks, inside of a protected call.

        Raises PeriodicEvalError for a model that cannot be measured.
        """
        with self._resharding():
            self.forward.check()
            return describe_model(self.forward, autocast=autocast, base_absent=self._base_absent)

    @cached_property
    def _stop_ids(self) -> list[int]:
        return stop_ids(self.tokenizer, self.forward.base)

    def answer(self, call: HostCall) -> dict[str, Any]:
        """Answers a call of the host on rank 0, together with the other ranks."""
        by_tokenizer = {
            "encode": self._encode,
            "decode": self._decode,
            "render": self._render,
            "save_checkpoint": self._save,
        }
        if call.method in by_tokenizer:
            # Encoding sets the tokenizer's truncation and padding.
            with self.window.protected(call.method):
                return by_tokenizer[call.method](call)
        if self._ranks.size > 1:
            self._ranks.broadcast(("call", call.method, call.params))
        return self.together(call)

    def together(self, call: Call) -> dict[str, Any]:
        """Answers a call that all ranks answer. An error of one rank is raised on all."""
        if call.method == "enter":
            return self._enter(call)
        if call.method == "leave":
            return self._leave(call)
        if call.method not in BLOCK_ROWS:
            raise PeriodicEvalError("model", call.method, "a call that this client does not know")
        rows: Sequence[Any] = call.params["rows"]
        if call.method == "next_token":
            candidates = call.params["candidates"]
            wanted: Sequence[Any] = [None] * len(rows) if isinstance(candidates, str) else candidates
            rows = list(zip(rows, wanted, strict=True))
        _refuse_unknown_ids(rows, self.forward.vocab_size)
        size = BLOCK_ROWS[call.method] * self._ranks.size
        with contextlib.ExitStack() as stack:
            self._agree(call, lambda: self._open(call, stack))
            failure: Exception | None = None
            for start in range(0, len(rows), size):
                failure = self._block(call, rows[start : start + size], failure)
            if failure is not None:
                raise failure
        return {}

    def _open(self, call: Call, stack: contextlib.ExitStack) -> None:
        stack.enter_context(self.window.protected(call.method))
        stack.enter_context(self._on(call.params.get("on", "model")))
        stack.enter_context(self._resharding())

    @contextlib.contextmanager
    def _resharding(self) -> Generator[None, None, None]:
        try:
            yield
        finally:
            reshard(self.forward.model)

    def _agree(self, call: Call, work: Callable[[], T]) -> T:
        """Runs work on all ranks, and returns its value. An error of one rank is raised on all."""
        value: Any = None
        failure: Exception | None = None
        try:
            value = work()
        except Exception as error:
            failure = _failure(call, error)
        known = isinstance(failure, PeriodicEvalError)
        wire = failure.wire() if known else failure and type(failure).__name__
        wires = [wire for wire in self._ranks.gather(wire) if wire]
        if failure is None and wires:
            failure = PeriodicEvalError(**wires[0]) if isinstance(wires[0], dict) else Cancelled()
        if failure is not None:
            raise failure
        return value

    def _block(self, call: Call, rows: Sequence[Any], failure: Exception | None) -> Exception | None:
        """Computes rows on all ranks, and adds them to the answer on rank 0, in order.

        `failure` is an error of this rank since the block before: it is raised on all ranks. Returns the
        error of sending the rows, which the other ranks do not know yet.
        """
        mine = self._ranks.share(len(rows))
        found: dict[int, Any] = {}
        tokens, lockstep = call.tokens, self.forward.lockstep

        def work() -> None:
            try:
                if failure is not None:
                    raise failure
                share = [rows[index] for index in mine]
                self._compute(call, share, lambda index, row: found.__setitem__(mine[index], row))
            finally:
                # A rank that failed still runs the passes that the others need.
                if lockstep is not None:
                    lockstep.drain()

        self._agree(call, work)
        gathered = self._ranks.collect((found, call.tokens - tokens))
        together = {index: row for part, _ in gathered for index, row in part.items()}
        call.tokens += sum(tokens for _, tokens in gathered[1:])
        try:
            for index in range(len(together)):
                call.add_row(together[index])
        except Exception as error:
            return error
        return None

    def _compute(self, call: Call, rows: Sequence[Any], put: Callable[[int, Any], None]) -> None:
        forward, params = self.forward, call.params

        def check(tokens: int) -> None:
            call.tokens += tokens
            call.check()

        if call.method == "log_likelihoods":
            wants_ids = bool(params.get("greedy_ids"))
            log_likelihoods(forward, rows, put, check, greedy_ids=wants_ids, on_halved=self._halved)
        elif call.method == "next_token":
            next_token(forward, rows, put, check, on_halved=self._halved)
        elif call.method == "hidden_states":
            hidden_states(forward, rows, params["layers"], put, check, on_halved=self._halved)
        else:
            generate(forward, rows, self._stop_ids, self._text, put, check, on_halved=self._halved)

    def _enter(self, call: Call) -> dict[str, Any]:
        def enter() -> dict[str, str | None]:
            # The guards read shards before and after, also where the trainer left whole weights.
            reshard(self.forward.model)
            return self.window.enter(call.params["seed"])

        return {"before": self._agree(call, enter)}

    def _leave(self, call: Call) -> dict[str, Any]:
        """Leaves the window on all ranks, which use the smallest batches of them from now on.

        A guard is intact if it is intact on each rank. `details` holds what changed since `hello`.
        """
        gathered = self._ranks.gather((self._agree(call, self.window.leave), self.forward.batch_tokens))
        tokens = min(tokens for _, tokens in gathered)
        if tokens < self.forward.batch_tokens:
            self.forward.batch_tokens = tokens
            self._halved(tokens)
        evidence = [_combined(parts) for parts in zip(*(parts for parts, _ in gathered), strict=True)]
        details = {"details": {"batch_tokens": tokens}} if tokens != self._batch_tokens else {}
        return {"evidence": evidence, **details}

    def _halved(self, batch_tokens: int) -> None:
        if self._ranks.rank == 0:
            message = "periodic-eval: out of memory: batches have at most %d tokens from now on"
            logger.warning(message, batch_tokens)

    def _on(self, what: str) -> contextlib.AbstractContextManager[None]:
        if what != "base":
            return contextlib.nullcontext()
        if self._base_absent is not None:
            raise PeriodicEvalError("model", "on: base", self._base_absent)
        return without_adapter(self.forward.model)

    # The tokenizer

    def _encode(self, call: HostCall) -> dict[str, Any]:
        for text in call.params["texts"]:
            call.check()
            # One at a time: the tokenizer's threads would make it warn when a data loader forks.
            call.add_row(self._ids(text, bool(call.params["special_tokens"])))
        return {}

    def _decode(self, call: HostCall) -> dict[str, Any]:
        for ids in call.params["rows"]:
            call.check()
            call.add_row(self._text(ids, bool(call.params["special_tokens"])))
        return {}

    def _render(self, call: HostCall) -> dict[str, Any]:
        ending = call.params["ending"]
        for index, chat in enumerate(call.params["chats"]):
            call.check()
            try:
                text = self.tokenizer.apply_chat_template(
                    chat["messages"],
                    tokenize=False,
                    add_generation_prompt=ending == "generation",
                    continue_final_message=ending == "continue",
                    **(chat.get("template_kwargs") or {}),
                )
            except Exception as error:
                fix = "Use messages that the model's chat template accepts."
                raise PeriodicEvalError("data", f"chats[{index}]", f"{error}", fix=fix) from error
            call.add_row({"text": text, "ids": self._ids(text, False)})
        return {}

    def _ids(self, text: str, special_tokens: bool) -> list[int]:
        encoded = self.tokenizer(
            text, add_special_tokens=special_tokens, return_attention_mask=False, verbose=False
        )
        return [int(token) for token in encoded["input_ids"]]

    def _text(self, ids: Sequence[int], special_tokens: bool) -> str:
        return self.tokenizer.decode(
            list(ids), skip_special_tokens=not special_tokens, clean_up_tokenization_spaces=False
        )

    def _save(self, call: HostCall) -> dict[str, Any]:
        """Saves the adapter, or the model if there is none, in the folder of the run."""
        if not self.can_save:
            raise PeriodicEvalError("model", "save_checkpoint", "a model that one process cannot save")
        path = Path(self._run_dir).resolve() / "live" / f"step-{call.params['step']}"
        model: Any = self.forward.model
        model.save_pretrained(str(path))
        self.tokenizer.save_pretrained(str(path))
        return {"path": str(path)}


def _refuse_unknown_ids(rows: Sequence[Any], size: int) -> None:
    """Raises PeriodicEvalError for ids that the model does not have: on a GPU they would end the process."""
    for index, row in enumerate(rows):
        named = (
            [row.get(key) for key in ("context", "continuation", "prompt", "ids")]
            if isinstance(row, dict)
            else row
        )
        for ids in named:
            if ids and not 0 <= min(ids) <= max(ids) < size:
                got = f"id {max(ids) if max(ids) >= size else min(ids)}"
                raise PeriodicEvalError("data", f"rows[{index}]", got, f"0 to {size - 1}, the model's ids")


def _failure(call: Call, error: Exception) -> Exception:
    if isinstance(error, (PeriodicEvalError, Cancelled, HostLost)):
        return error
    logger.debug("periodic-eval: %s failed", call.method, exc_info=error)
    code = "memory" if is_out_of_memory(error) else "model"
    return PeriodicEvalError(code, call.method, f"{type(error).__name__}: {error}"[:2000])


def _combined(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns rank 0's evidence of a guard, or that of the first rank where the guard found a change."""
    for rank, part in enumerate(parts):
        if part["intact"] is False and len(parts) > 1:
            return {
                **part,
                "note": f"changed on rank {rank}" + (f"; {part['note']}" if part.get("note") else ""),
            }
    unknown = next((part for part in parts if part["intact"] is None), None)
    return unknown or parts[0]
