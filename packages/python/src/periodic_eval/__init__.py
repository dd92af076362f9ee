"""periodic-eval: measures a language model while it trains, in the memory of the process that trains it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import PeriodicEvalError
from .loop import LoopRun, live

if TYPE_CHECKING:
    from .trainer import PeriodicEval

__all__ = ["LoopRun", "PeriodicEval", "PeriodicEvalError", "live"]


def __getattr__(name: str) -> Any:
    # transformers takes seconds to import, and a plain loop may not have it.
    if name == "PeriodicEval":
        from .trainer import PeriodicEval

        return PeriodicEval
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
