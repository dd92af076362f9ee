"""A callback for the Trainer of transformers and TRL's trainers."""

from __future__ import annotations

import logging
import os
import sys
import weakref
from time import monotonic
from typing import Any

import torch
from transformers import TrainerCallback
from transformers.trainer_callback import CallbackHandler, ExportableState

from .connection import NEVER, Connection, Gate
from .errors import PeriodicEvalError
from .options import Config, batch_tokens_of, block_of, name_of
from .run import Done, LiveRun, Training

logger = logging.getLogger("periodic_eval")

_hosts: weakref.WeakValueDictionary[str, Connection] = weakref.WeakValueDictionary()
"""The last host of each run's folder. Ctrl-C or an error in a notebook leaves it open."""


class PeriodicEval(TrainerCallback, ExportableState):  # pyright: ignore[reportUntypedBaseClass]
    """Measures the model while it trains.

    `config` is a file with the `periodic_eval` block, the block as a dict, or None for its defaults;
    `options` are further keys of the block. `run_dir` is the run's folder, and `phase` names the phase in it.
    `measure_best` measures the best weights too, which `load_best_model_at_end` loads after the end, in a
    phase of their own (`train-best`). `restore="last_clean"` keeps the newest checkpoint before the harm, and
    loads its weights at the end, if the host stops training. `batch_tokens` bounds the tokens of a forward
    pass; by default it depends on the device.

    Raises PeriodicEvalError `config` for a wrong configuration.
    """

    def __init__(
        self,
        config: Config = None,
        *,
        run_dir: str,
        phase: str = "train",
        measure_best: bool = False,
        restore: str | None = None,
        batch_tokens: int | None = None,
        **options: Any,
    ) -> None:
        if restore not in (None, "last_clean"):
            raise PeriodicEvalError("config", "PeriodicEval.restore", repr(restore), '"last_clean" or None')
        self.saved: Any = None
        self._block = block_of(config, options)
        self._arguments: dict[str, Any] = {
            "config": self._block,
            "run_dir": name_of(run_dir, "PeriodicEval.run_dir", '"runs/em"'),
            "phase": name_of(phase, "PeriodicEval.phase", '"train"'),
            "measure_best": measure_best,
            "restore": restore,
            "batch_tokens": batch_tokens_of(batch_tokens, "PeriodicEval"),
        }
        self._gate = Gate()
        self._last_step = 0
        self._run: LiveRun | None = None
        self._first: Done | None = None
        self._handler: Any = None
        self._is_stopped = False
        self._clean_step: int | None = None
        self._checkpoints: list[str] = []

    # The state in checkpoints

    def state(self) -> dict[str, Any]:
        """Returns what a checkpoint holds of this callback."""
        if self._run is not None:
            self.saved = self._run.save()
        return {"args": self._arguments, "attributes": {"saved": self.saved}}

    def _saved_in(self, state: Any) -> Any:
        """Returns this callback's state in the checkpoint that training resumes from, or None."""
        if state.global_step == 0:
            return None
        entries = (state.stateful_callbacks or {}).get(type(self).__name__) or []
        entries = entries if isinstance(entries, list) else [entries]
        keys = ("run_dir", "phase")
        # A list grows with every checkpoint: the last entry of this run and phase is the newest.
        for entry in reversed(entries):
            if all(entry.get("args", {}).get(key) == self._arguments[key] for key in keys):
                return entry.get("attributes", {}).get("saved")
        return None

    # Events

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Starts the host, and measures what is due before the first step."""
        if self._run is not None and self._run.is_open:
            # The training before this one raised an error, or began again with smaller batches.
            self._run.fail("training began again in the same process")
        self._handler = _calling_handler()
        # The trainer looks up this name at each checkpoint. The name is missing if training resumed from a
        # checkpoint that was written without this callback. Several callbacks of a name have a list.
        name = type(self).__name__
        names = [type(callback).__name__ for callback in getattr(self._handler, "callbacks", ())]
        state.stateful_callbacks.setdefault(name, [] if names.count(name) > 1 else {})
        folder = self._take_folder()
        self._check_restore(args, state)
        self._is_stopped, self._clean_step = False, None
        earlier = [f"{args.output_dir}/checkpoint-{step}" for step in range(1, state.global_step + 1)]
        self._checkpoints = [path for path in earlier if os.path.isdir(path)]
        optimizer = kwargs.get("optimizer")
        logging_steps = state.logging_steps
        training = Training(
            model=kwargs["model"],
            tokenizer=kwargs.get("processing_class") or kwargs.get("tokenizer"),
            optimizer=optimizer,
            scaler=getattr(optimizer, "scaler", None),
            max_steps=state.max_steps if state.max_steps > 0 else None,
            step=state.global_step,
            epoch=float(state.epoch or 0),
            state=self._saved_in(state),
            autocast=torch.bfloat16 if args.bf16 else torch.float16 if args.fp16 else None,
            # Accelerate wraps the forward pass, in training and in evaluation.
            wraps_forward=True,
            sync_every=logging_steps if isinstance(logging_steps, int) and logging_steps > 0 else 10,
        )
        arguments = self._arguments
        run = LiveRun(
            training,
            self._block,
            arguments["run_dir"],
            arguments["phase"],
            batch_tokens=arguments["batch_tokens"],
        )
        self._run, self._gate, self._last_step = run, run.gate, training.max_steps or NEVER
        # Reporters behind this callback open in their `on_train_begin`.
        self._first = run.begin()
        if run.connection is not None:
            _hosts[folder] = run.connection
        if self._handler is not None:
            _FinishFirst.insert(self._handler, self._finish)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Passes on what was measured before the first step."""
        return self._apply_first(args, state, control)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Drops the gradients of the step that the trainer runs after a stop before it."""
        optimizer = kwargs.get("optimizer")
        # A gradient scaler refuses a step without gradients.
        if self._is_stopped and optimizer is not None and getattr(optimizer, "scaler", None) is None:
            optimizer.zero_grad()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Remembers the checkpoint, which may become the last clean one."""
        self._checkpoints.append(f"{args.output_dir}/checkpoint-{state.global_step}")
        self._keep_clean(state)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Measures what is due, and the end in the last step. An idle step compares three numbers."""
        step, gate = state.global_step, self._gate
        if step < gate.next_step and step < self._last_step and monotonic() < gate.quiet_until:
            return None
        run = self._run
        if run is None or not run.is_open:
            return None
        if step < self._last_step:
            self._apply(run.step(step, epoch=state.epoch), args, state, control)
        if control.should_training_stop or step >= self._last_step:
            self._apply(run.end(state.global_step, epoch=state.epoch), args, state, control)
        return control

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Keeps what the trainer logs, and measures the end if training ended between two steps."""
        run = self._run
        if run is None or not run.is_open:
            return
        run.log(state.global_step, logs or {})
        if "train_runtime" in (logs or {}) and not self._loaded_best_before_logging(args, state):
            self._apply(run.end(state.global_step, epoch=state.epoch), args, state, control)
        if "train_runtime" in (logs or {}) and self._arguments["restore"] and not self._is_stopped:
            # The trainer may delete later checkpoints otherwise.
            state.best_model_checkpoint = None

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Measures the end if another callback stopped training."""
        if self._run is not None and control.should_training_stop:
            self._apply(self._run.end(state.global_step, epoch=state.epoch), args, state, control)
        return control

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Waits for grades, and ends the host, unless `_FinishFirst` did."""
        return self._finish(args, state, control)

    # Inside

    def _finish(self, args: Any, state: Any, control: Any) -> Any:
        run = self._run
        if run is None or not run.is_open:
            return None
        self._apply_first(args, state, control)
        self._apply(run.end(state.global_step, epoch=state.epoch), args, state, control)
        best = state.best_model_checkpoint if args.load_best_model_at_end else None
        self._apply(run.close(), args, state, control)
        if self._arguments["restore"]:
            args.load_best_model_at_end, best = False, None
        if not best or best.endswith(f"-{state.global_step}"):
            return control
        if self._arguments["measure_best"]:
            entries = run.measure_best().metrics
            values = {_best_name(name): value for entry in entries for name, value in entry["values"].items()}
            done = Done(metrics=[{"step": state.global_step, "values": values}])
            self._apply(done, args, state, control)
        else:
            logger.warning(
                "periodic-eval: the trainer loaded the best weights, %s. The last measurement is of the last "
                "step's weights; `measure_best=True` measures the best ones too.",
                best,
            )
        return control

    def _take_folder(self) -> str:
        """Returns the run's folder as a real path, and ends the host that an earlier training left there.

        Raises PeriodicEvalError `config` if another callback of the trainer has the same folder.
        """
        folder = os.path.realpath(self._arguments["run_dir"])
        for other in getattr(self._handler, "callbacks", []):
            if other is self or not isinstance(other, PeriodicEval):
                continue
            if os.path.realpath(other._arguments["run_dir"]) == folder:
                got, fix = (
                    f"two PeriodicEval callbacks with the run_dir {folder}",
                    "Give one of them another run_dir.",
                )
                raise PeriodicEvalError("config", "callbacks", got, "a run_dir of its own for each", fix)
        earlier = _hosts.pop(folder, None)
        if earlier is not None:
            earlier.close()
        return folder

    @staticmethod
    def _loaded_best_before_logging(args: Any, state: Any) -> bool:
        import transformers

        is_old = int(transformers.__version__.partition(".")[0]) < 5
        return is_old and args.load_best_model_at_end and bool(state.best_model_checkpoint)

    def _apply_first(self, args: Any, state: Any, control: Any) -> Any:
        first, self._first = self._first, None
        if first is None:
            return control
        self._apply(first, args, state, control)
        if first.stop is not None and self._run is not None:
            # The trainer runs a step before it looks at `control`: without an update, and not measured.
            self._apply(self._run.end(state.global_step, epoch=state.epoch), args, state, control)
        return control

    def _check_restore(self, args: Any, state: Any) -> None:
        if self._arguments["restore"] is None:
            return
        if self._is_stopped:
            # The training before this one raised an error after its stop.
            args.load_best_model_at_end = False
        wrong = "load_best_model_at_end=True" if args.load_best_model_at_end else ""
        if args.save_strategy == "no":
            wrong = 'save_strategy="no"'
        if wrong:
            expected, fix = "checkpoints, and no best one to load", "Change it, or leave out `restore`."
            raise PeriodicEvalError("config", "PeriodicEval.restore", wrong, expected, fix)

    def _keep_clean(self, state: Any) -> str | None:
        """Returns the newest checkpoint up to the last clean step. With `restore`, the trainer keeps it."""
        clean = None
        for path in self._checkpoints:
            step = int(path.rpartition("-")[2])
            if self._clean_step is not None and step <= self._clean_step and os.path.isdir(path):
                clean = path
        if self._arguments["restore"]:
            # The trainer deletes no best checkpoint.
            state.best_model_checkpoint = clean
        return clean

    def _where_clean(self, args: Any, clean: str | None) -> str:
        """Returns what the line of a stop says about the last clean checkpoint."""
        if self._clean_step is None:
            return ""
        if clean is None:
            return f"; no checkpoint up to step {self._clean_step}, the last clean one"
        restored = ", whose weights are restored" if args.load_best_model_at_end else ""
        return f"; last clean checkpoint: {clean}{restored}"

    def _apply(self, done: Done, args: Any, state: Any, control: Any) -> Any:
        """Passes the host's requests to the trainer, and its metrics to the log and the reporters."""
        if done.clean_step is not None and not self._is_stopped:
            self._clean_step = done.clean_step
            self._keep_clean(state)
        if done.stop is not None and not self._is_stopped:
            self._is_stopped = True
            clean = self._keep_clean(state)
            if self._arguments["restore"] and clean is not None:
                args.load_best_model_at_end = True
            where = self._where_clean(args, clean)
            if state.is_world_process_zero:
                logger.warning("periodic-eval: training stops: %s%s", done.stop, where)
        control.should_training_stop |= self._is_stopped
        if done.save is not None:
            if state.is_world_process_zero:
                logger.warning("periodic-eval: the trainer saves a checkpoint: %s", done.save)
            control.should_save = True
        for entry in done.metrics:
            values = {name: value for name, value in entry["values"].items() if value is not None}
            if not values:
                continue
            state.log_history.append({**values, "epoch": state.epoch, "step": entry["step"]})
            if state.is_world_process_zero:
                for reporter in getattr(self._handler, "callbacks", []):
                    _report(reporter, values, entry["step"], args, state, control)
        return control


def _best_name(name: str) -> str:
    """Returns the name of a metric of the best weights: `periodic_eval/best/…`."""
    return name.replace("/", "/best/", 1)


class _FinishFirst(TrainerCallback):  # pyright: ignore[reportUntypedBaseClass]
    """Finishes measuring before other callbacks' `on_train_end`, in which reporters close.

    It leaves the trainer's list of callbacks when training ends, or begins again after an error.
    """

    def __init__(self, handler: Any, finish: Any) -> None:
        self._handler, self._finish = handler, finish

    @classmethod
    def insert(cls, handler: Any, finish: Any) -> None:
        """Adds `finish` to a trainer's list of callbacks, after those of other PeriodicEval callbacks."""
        # A new list, because the trainer is iterating over the old one.
        earlier = [callback for callback in handler.callbacks if isinstance(callback, cls)]
        others = [callback for callback in handler.callbacks if not isinstance(callback, cls)]
        handler.callbacks = [*earlier, cls(handler, finish), *others]

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._leave()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        self._leave()
        return self._finish(args, state, control)

    def _leave(self) -> None:
        self._handler.callbacks = [callback for callback in self._handler.callbacks if callback is not self]


def _calling_handler() -> Any:
    """Returns the trainer's list of callbacks, which called: transformers passes no trainer to a callback.

    Methods of subclasses of PeriodicEval may lie between.
    """
    frame: Any = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, CallbackHandler):
            return caller
        frame = frame.f_back
    return None


def _report(reporter: Any, values: dict[str, float], step: int, args: Any, state: Any, control: Any) -> None:
    """Passes metrics to a reporter of transformers, under their names.

    `on_log` would prefix them with `train/`.
    """
    from transformers.integrations import integration_utils

    kind = type(reporter).__name__
    if not isinstance(reporter, tuple(set(integration_utils.INTEGRATION_TO_CALLBACK.values()))):
        return
    try:
        if kind == "TensorBoardCallback" and reporter.tb_writer is not None:
            for name, value in values.items():
                reporter.tb_writer.add_scalar(name, value, step)
        elif kind == "WandbCallback" and reporter._wandb is not None:
            reporter._wandb.log({**values, "train/global_step": step})
        elif kind == "TrackioCallback":
            reporter._trackio.log({**values, "train/global_step": step})
        elif kind == "MLflowCallback":
            reporter._ml_flow.log_metrics(metrics=dict(values), step=step)
        else:
            reporter.on_log(args, state, control, logs=dict(values))
    except Exception as error:
        logger.warning("periodic-eval: %s did not take the metrics of step %s: %s", kind, step, error)
