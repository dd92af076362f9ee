"""periodic-eval: measures a language model while it trains, in the memory of the process that trains it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import PeriodicEvalError

if TYPE_CHECKING:
    from .loop import LoopRun, live
    from .trainer import PeriodicEval

__all__ = ["MICRO_WORLD", "LoopRun", "PeriodicEval", "PeriodicEvalError", "live"]

MICRO_WORLD = str(Path(__file__).parent / "host" / "assets" / "cli" / "assets" / "micro-world")
"""Folder of the embedded model, with training rows (`em.jsonl`, …) and questions (`questions.jsonl`)."""

_MODULES = {"PeriodicEval": "trainer", "live": "loop", "LoopRun": "loop"}


def __getattr__(name: str) -> Any:
    # The command line needs no torch, and a plain loop no transformers.
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
