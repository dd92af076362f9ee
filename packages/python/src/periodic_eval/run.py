"""A run that is measured live: the conversation with the host, and what it asks of the training."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from .answering import Answering, CopiedCall
from .connection import NEVER, Connection, Gate, HostCall, host_command
from .describe import describe_tokenizer, package_version
from .distributed import find_ranks, refuse_unsupported
from .errors import HostLost, PeriodicEvalError
from .forward import Forward
from .guards import Window, training_guards
from .options import Config

logger = logging.getLogger("periodic_eval")

QUIET_SECONDS = 10.0
"""Seconds without a message after which a step is reported."""


@dataclass(frozen=True)
class Done:
    """The host's answer: requests to stop or to save, with their reasons, and metrics for loggers.

    `clean_step` is the last step up to which no condition of `stop_when` was met.
    """

    stop: str | None = None
    save: str | None = None
    metrics: list[dict[str, Any]] = field(default_factory=list[Any])
    clean_step: int | None = None


@dataclass(frozen=True)
class Training:
    """The training that is measured.

    `step` and `epoch` are completed; `state` is what `save` returned for the checkpoint that training resumes
    from; `autocast` is the dtype of the trainer's autocast, and `wraps_forward` whether the model's forward
    pass applies it; `sync_every` is the number of steps after which several ranks ask whether the host wants
    to hear of a step.
    """

    model: nn.Module
    tokenizer: Any
    optimizer: Any = None
    scaler: Any = None
    max_steps: int | None = None
    step: int = 0
    epoch: float = 0.0
    state: Any = None
    autocast: torch.dtype | None = None
    wraps_forward: bool = False
    sync_every: int = 10


class LiveRun:
    """The conversation with the host of one phase of a run.

    All ranks call the same methods at the same steps. If the host is lost, the run is abandoned once, with a
    warning, and every later call returns at once.
    """

    def __init__(
        self, training: Training, config: Config, run_dir: str, phase: str, *, batch_tokens: int | None = None
    ) -> None:
        self.gate = Gate()
        self.run_dir = run_dir
        self.is_open = True
        self._is_ended = False
        self._reported, self._epoch = training.step, training.epoch
        self._training, self._config, self._phase = training, config, phase
        self._ranks = find_ranks()
        refuse_unsupported(training.model, training.optimizer)
        state = training.state if isinstance(training.state, dict) else {}
        batch_tokens = batch_tokens or state.get("batch_tokens")
        self._host_state: Any = state.get("host")
        dtype = None if training.wraps_forward else training.autocast
        forward = Forward(training.model, autocast=dtype, batch_tokens=batch_tokens)
        tokenizer = getattr(training.tokenizer, "tokenizer", training.tokenizer)
        if not (callable(tokenizer) and hasattr(tokenizer, "decode")):
            fix = "Pass the model's tokenizer; to a trainer, as `processing_class`."
            raise PeriodicEvalError("config", "PeriodicEval", "a training without a tokenizer", fix=fix)
        self._connection: Connection | None = None
        self._host_next = NEVER
        self._last_message = 0.0
        self._logged: list[dict[str, Any]] = []
        guards = training_guards(forward.model, tokenizer, training.optimizer, training.scaler)
        window = Window(forward.model, guards)
        self._answering = Answering(forward, tokenizer, window, self._ranks, run_dir)

    @property
    def connection(self) -> Connection | None:
        """The connection to the host; None on other ranks than 0, and after the end."""
        return self._connection

    # The calls of the protocol

    def begin(self) -> Done:
        """Starts the host, says hello, and measures what is due before the first step.

        Raises PeriodicEvalError if the host refuses the run: training has not begun.
        """
        with self._answering.window.protected("hello"):
            hello = self._hello()
        failure: PeriodicEvalError | None = None
        if self._ranks.rank == 0:
            try:
                self._connection = Connection(host_command(), self.gate if self._ranks.size == 1 else Gate())
            except PeriodicEvalError as error:
                failure = error
        self._raise_on_all(failure)
        return self._exchange("hello", hello, is_hello=True)

    def log(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Keeps metrics that the trainer logged, for the next message."""
        if not self.is_open or self._ranks.rank != 0:
            return
        numbers = _numbers(metrics)
        if numbers:
            self._logged.append({"step": int(step), "metrics": numbers})

    def step(self, step: int, *, epoch: float | None = None) -> Done:
        """Reports that an optimizer step is completed. Call it when `gate` opens."""
        if not self.is_open:
            return Done()
        if (
            self._ranks.size > 1
            and step < self._host_next
            and not self._ranks.broadcast(self._is_wanted(step))
        ):
            self._arm(step)
            return Done()
        return self._report(step, epoch)

    def _report(self, step: int, epoch: float | None) -> Done:
        # A loop may count in numbers of NumPy or torch, which JSON lacks.
        params: dict[str, Any] = {"step": int(step), "logged": self._take_logged()}
        if epoch is not None:
            # A trainer that resumes without skipping data begins the epoch again.
            self._epoch = params["epoch"] = max(float(epoch), self._epoch)
        self._reported = step
        done = self._exchange("step", params)
        self._arm(step)
        return done

    def save(self) -> Any:
        """Returns the state for a checkpoint. Rank 0 alone may call it: the trainer of transformers does.

        After `end` it is the state at the last step.
        """
        if self.is_open and not self._is_ended and self._connection is not None:
            try:
                done = self._connection.call("save", {}, _answer_nothing)
                self._host_state = done.get("state", self._host_state)
            except (HostLost, PeriodicEvalError) as error:
                # Several ranks agree at their next step that the host is gone.
                self._connection.lost = self._connection.lost or f"{error}"
                if self._ranks.size == 1:
                    self._abandon(f"is gone: {error}")
        return {"host": self._host_state, "batch_tokens": self._answering.forward.batch_tokens}

    def end(self, step: int, *, epoch: float | None = None) -> Done:
        """Reports the last step, if it was not yet, and measures what is due at the end, on its weights."""
        if self._is_ended or not self.is_open:
            return Done()
        last = self._report(step, epoch) if step > self._reported else Done()
        self.save()
        self._is_ended = True
        done = self._exchange("end", {"logged": self._take_logged()})
        metrics = [*last.metrics, *done.metrics]
        return Done(done.stop or last.stop, done.save or last.save, metrics, done.clean_step)

    def fail(self, message: str) -> None:
        """Reports that training raised an error, and ends the host, which leaves grading to the next run.

        The error may be that of one rank, so no rank waits for another.
        """
        if self.is_open and self._connection is not None:
            with contextlib.suppress(HostLost, PeriodicEvalError):
                params = {"message": message, "logged": self._take_logged()}
                self._connection.call("fail", params, _answer_nothing)
        self._shut()

    def close(self) -> Done:
        """Waits until grading is done and everything is written, and ends the host."""
        done = self._exchange("close", {"logged": self._take_logged()})
        self._shut()
        return done

    def measure_best(self) -> Done:
        """Measures the weights that the trainer loaded after `close`, in the phase `PHASE-best`."""
        training = replace(self._training, max_steps=0, step=0, epoch=0.0, state=None)
        tokens = self._answering.forward.batch_tokens
        run = LiveRun(training, self._config, self.run_dir, f"{self._phase}-best", batch_tokens=tokens)
        try:
            answers = (run.begin(), run.end(0), run.close())
        except PeriodicEvalError as error:
            logger.warning("periodic-eval: the best weights were not measured: %s", error)
            return Done()
        return Done(metrics=[entry for done in answers for entry in done.metrics])

    def hang_up(self) -> None:
        """Ends without `end` or `fail`: the host keeps what is graded, and the next run resumes."""
        self._answering.window.restore()
        if self._connection is not None:
            self._connection.hang_up()
            self._connection = None
        self._shut()

    # Inside

    def _hello(self) -> dict[str, Any]:
        training, answering, config = self._training, self._answering, self._config
        return {
            "protocol": 1,
            "client": {"name": "periodic-eval for Python", "version": package_version()},
            "run_dir": self.run_dir,
            "phase": self._phase,
            "config": dict(config)
            if isinstance(config, Mapping)
            else None
            if config is None
            else os.fspath(config),
            "max_steps": training.max_steps,
            "step": training.step,
            "epoch": training.epoch,
            "state": self._host_state,
            "model": answering.describe(training.autocast),
            "tokenizer": describe_tokenizer(answering.tokenizer, answering.forward.base),
            "guards": [guard.name for guard in answering.window.guards],
            "ranks": self._ranks.size,
            "can_save": answering.can_save,
        }

    def _exchange(self, method: str, params: dict[str, Any], *, is_hello: bool = False) -> Done:
        """Calls the host on rank 0, while the other ranks answer its calls, and returns its answer on all
        ranks.
        """
        if not self.is_open:
            return Done()
        outcome: tuple[str, Any]
        try:
            outcome = self._speak(method, params) if self._ranks.rank == 0 else self._follow()
        except Exception as error:
            if is_hello:
                self.hang_up()
                raise
            outcome = ("lost", f"{type(error).__name__}: {error}")
        except BaseException:
            # Ctrl-C, perhaps in the middle of a window.
            self.hang_up()
            raise
        finally:
            self._answering.window.restore()
        kind: str = outcome[0]
        content: Any = outcome[1]
        if kind == "done":
            return self._accept(content)
        if kind == "error":
            error = PeriodicEvalError(**content)
            if is_hello:
                self._shut()
                raise error
            self._abandon(f"answered {method} with an error: {error}")
        else:
            self._abandon(f"is gone: {content}")
        return Done()

    def _speak(self, method: str, params: dict[str, Any]) -> tuple[str, Any]:
        assert self._connection is not None
        try:
            outcome: tuple[str, Any] = ("done", self._connection.call(method, params, self._answering.answer))
        except PeriodicEvalError as error:
            outcome = ("error", error.wire())
        except HostLost as lost:
            outcome = ("lost", str(lost))
        except Exception as error:
            # The other ranks wait for an outcome.
            failed = PeriodicEvalError("model", method, f"{type(error).__name__}: {error}")
            outcome = ("error", failed.wire())
        return self._ranks.broadcast(outcome)

    def _follow(self) -> tuple[str, Any]:
        """Answers the host's calls as rank 0 passes them on, until its answer comes."""
        while True:
            message = self._ranks.broadcast(None)
            if message[0] != "call":
                return message
            try:
                self._answering.together(CopiedCall(message[1], message[2]))
            except Exception:
                # Rank 0 has gathered what failed here, and tells the host.
                logger.debug("periodic-eval: %s failed", message[1], exc_info=True)

    def _accept(self, done: dict[str, Any]) -> Done:
        self._last_message = time.monotonic()
        step = done.get("next_step")
        self._host_next = step if isinstance(step, int) else NEVER
        if "state" in done:
            self._host_state = done["state"]
        if self._ranks.size == 1:
            # The reader thread has set the next step of interest, and perhaps a wake since.
            self.gate.quiet_until = self._last_message + QUIET_SECONDS
        else:
            self._arm(self._training.step)
        metrics = done.get("metrics")
        metrics = metrics if isinstance(metrics, list) else []
        return Done(done.get("stop"), done.get("save"), metrics, done.get("clean_step"))

    def _arm(self, step: int) -> None:
        """Sets the next step at which several ranks stop for a moment: all must compute the same."""
        if self._ranks.size > 1 and self.is_open:
            every = max(1, self._training.sync_every)
            self.gate.next_step = min(self._host_next, (step // every + 1) * every)

    def _is_wanted(self, step: int) -> bool:
        connection = self._connection
        if connection is None:
            return False
        is_quiet = time.monotonic() - self._last_message > QUIET_SECONDS
        return is_quiet or connection.gate.next_step <= step or connection.lost is not None

    def _take_logged(self) -> list[dict[str, Any]]:
        logged, self._logged = self._logged, []
        return logged

    def _abandon(self, reason: str) -> None:
        if self._ranks.rank == 0:
            logger.warning(
                "periodic-eval: the host %s. Measuring ends, and training goes on. "
                "`periodic-eval report %s` shows what was measured.",
                reason.removesuffix("."),
                self.run_dir,
            )
        self._shut()

    def _shut(self) -> None:
        self.is_open = False
        self.gate.next_step, self.gate.quiet_until = NEVER, math.inf
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _raise_on_all(self, failure: PeriodicEvalError | None) -> None:
        if self._ranks.size > 1:
            wire = self._ranks.broadcast(failure.wire() if failure is not None else None)
            failure = PeriodicEvalError(**wire) if wire is not None else None
        if failure is not None:
            self._shut()
            raise failure


def _answer_nothing(call: HostCall) -> Any:
    raise PeriodicEvalError("model", call.method, "a call of the host outside of a step")


def _numbers(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    """Returns the metrics that are numbers. None is NaN or an infinity, which JSON lacks."""
    numbers: dict[str, float | None] = {}
    for name, value in metrics.items():
        # Trainers log values of any type.
        with contextlib.suppress(Exception):
            plain = value.item() if hasattr(value, "item") else value
            if isinstance(plain, (int, float)) and not isinstance(plain, bool):
                numbers[str(name)] = plain if math.isfinite(plain) else None
    return numbers
