"""Live measurement in a loop that the user writes."""

from __future__ import annotations

import logging
from time import monotonic
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from .connection import NEVER
from .errors import PeriodicEvalError
from .forward import unwrap
from .options import Config, batch_tokens_of, block_of, count_of, name_of
from .run import Done, LiveRun, Training

logger = logging.getLogger("periodic_eval")


class LoopRun:
    """A training loop that is measured; `live` returns it.

    `stop` and `save` say why the host wants training to stop, or a checkpoint to be saved; None if it does
    not. `metrics` holds the metrics of the last call, `[{"step", "values"}]`, for the loop's own loggers.
    `clean_step` is the last step up to which no condition of `stop_when` was met; None while there is none.
    """

    def __init__(
        self, training: dict[str, Any], block: Config, run_dir: str, phase: str, batch_tokens: int | None
    ) -> None:
        self.stop: str | None = None
        self.save: str | None = None
        self.clean_step: int | None = None
        self.metrics: list[dict[str, Any]] = []
        self._training, self._place = training, (block, run_dir, phase, batch_tokens)
        self._step: int = 0
        self._epoch: float | None = None
        self._logged: list[tuple[int, dict[str, Any]]] = []
        self._run: LiveRun | None = None
        self._saved: Any = None
        self._is_ended = False
        self._went_back = False
        self._is_warned = False

    def __enter__(self) -> LoopRun:
        """Starts the host, and measures what is due before the first step."""
        block, run_dir, phase, batch_tokens = self._place
        state = self._apply_saved()
        training = Training(
            **self._training, step=self._step, epoch=float(self._epoch or 0), state=state.get("live")
        )
        self._run = LiveRun(training, block, run_dir, phase, batch_tokens=batch_tokens)
        self._gate = self._run.gate
        self._last_step: int = training.max_steps if training.max_steps is not None else NEVER
        self._apply(self._run.begin())
        return self

    def step_end(self, step: int, *, epoch: float | None = None, **metrics: Any) -> None:
        """Call it after `optimizer.step()` with the number of completed steps, and metrics such as `loss`.

        `step` counts from the start of the phase, through all its epochs. If it falls, a warning says so, and
        measuring ends.

        Measures what is due. An idle step compares four numbers and sends nothing.
        """
        self.save, self.metrics = None, []
        if self._run is None and not self._is_warned:
            self._is_warned = True
            logger.warning(
                "periodic-eval: `step_end` got step %s of a run that has not begun. Nothing is measured, and "
                "training goes on. Write the loop inside `with periodic_eval.live(...) as run:`.",
                step,
            )
        if step < self._step or self._went_back:
            self._refuse(step)
            return
        self._step = step
        begins_epoch = False
        if epoch is not None:
            # A loop that counts whole epochs shows no pace within one.
            begins_epoch = int(epoch) > int(self._epoch or 0)
            self._epoch = epoch
        run = self._run
        if run is None or not run.is_open or self._is_ended:
            return
        if metrics:
            self._logged.append(
                (step, {k: v.detach() if isinstance(v, Tensor) else v for k, v in metrics.items()})
            )
        gate = self._gate
        is_quiet = step < gate.next_step and step < self._last_step and monotonic() < gate.quiet_until
        if is_quiet and not begins_epoch:
            return
        self._log(run)
        if step < self._last_step:
            self._apply(run.step(step, epoch=epoch))
        if self.stop is not None or step >= self._last_step:
            self._end(run)

    def state_dict(self) -> dict[str, Any]:
        """Returns what a checkpoint of this step holds, as JSON-like values.

        One process of several may call it.
        """
        live = self._run.save() if self._run is not None else (self._saved or {}).get("live")
        epoch = None if self._epoch is None else float(self._epoch)
        return {"step": int(self._step), "epoch": epoch, "live": live}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes from the `state_dict` of a checkpoint. Call it before the `with` statement."""
        if self._run is not None:
            fix = "Call it before the `with` statement."
            raise PeriodicEvalError("config", "load_state_dict", "a run that has begun", fix=fix)
        self._saved = state
        self._apply_saved()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Measures the end, waits for grades, and ends the host; an error is reported instead of the end."""
        run = self._run
        if run is None or not run.is_open:
            return
        self.save, self.metrics = None, []
        self._log(run)
        if error is None:
            if not self._went_back:
                self._end(run)
            self._apply(run.close())
        elif isinstance(error, Exception):
            run.fail(f"{type(error).__name__}: {error}")
        else:
            run.hang_up()

    def _apply_saved(self) -> dict[str, Any]:
        """Sets step and epoch to those of the loaded state, and returns the state."""
        state: dict[str, Any] = self._saved or {}
        self._step, self._epoch = int(state.get("step") or 0), state.get("epoch")
        return state

    def _refuse(self, step: int) -> None:
        """Ends measuring with a warning: how many steps the weights were trained for is unknown now."""
        # Rank 0 has the connection, until the host is gone.
        if not self._went_back and self._run is not None and self._run.connection is not None:
            logger.warning(
                "periodic-eval: `step_end` got step %s after step %s. Measuring ends, and training goes on. "
                "Pass the number of completed optimizer steps since the start of the phase; do not start "
                "again at 1 in each epoch.",
                step,
                self._step,
            )
        self._went_back = self._run is not None

    def _end(self, run: LiveRun) -> None:
        self._is_ended = True
        self._apply(run.end(self._step, epoch=self._epoch))

    def _log(self, run: LiveRun) -> None:
        for step, metrics in self._logged:
            run.log(step, metrics)
        self._logged.clear()

    def _apply(self, done: Done) -> None:
        self.stop, self.save = done.stop or self.stop, done.save or self.save
        self.metrics += done.metrics
        self.clean_step = self.clean_step if done.clean_step is None else done.clean_step
        for reason, action in ((done.stop, "training should stop"), (done.save, "a checkpoint is wanted")):
            # Rank 0 has the connection.
            if reason is not None and self._run is not None and self._run.connection is not None:
                logger.warning("periodic-eval: %s: %s", action, reason)


def live(
    model: nn.Module,
    tokenizer: Any,
    *,
    run_dir: str,
    max_steps: int | None,
    optimizer: Any = None,
    scaler: Any = None,
    config: Config = None,
    phase: str = "train",
    autocast: torch.dtype | None = None,
    sync_every: int = 10,
    batch_tokens: int | None = None,
    **options: Any,
) -> LoopRun:
    """Returns a context manager that measures a model while a loop trains it.

    ```python
    with periodic_eval.live(model, tokenizer, run_dir="runs/em", max_steps=1000, optimizer=optimizer) as run:
        for step, batch in enumerate(batches, start=1):
            if run.stop:
                break
            loss = train_step(batch)
            run.step_end(step, loss=loss)
    ```

    `config` and `options` are those of `PeriodicEval`. `autocast` is the dtype of the `torch.autocast` in
    which the loop runs the model. `sync_every` is the number of steps after which several processes ask
    whether the host wants to hear of a step.
    """
    training = {
        "model": model,
        "tokenizer": tokenizer,
        "optimizer": optimizer,
        "scaler": scaler,
        "max_steps": count_of(max_steps, "live.max_steps", least=0, none="an unknown number of steps"),
        "autocast": autocast,
        # Accelerate wraps the forward pass in its autocast.
        "wraps_forward": hasattr(unwrap(model), "_original_forward"),
        "sync_every": sync_every,
    }
    folder, name = (name_of(run_dir, "live.run_dir", '"runs/em"'), name_of(phase, "live.phase", '"train"'))
    return LoopRun(training, block_of(config, options), folder, name, batch_tokens_of(batch_tokens, "live"))
