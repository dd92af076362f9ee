"""The configuration that the host reads."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from .errors import PeriodicEvalError

Config = str | os.PathLike[str] | Mapping[str, Any] | None


def block_of(config: Config, options: Mapping[str, Any]) -> Config:
    """Returns the `periodic_eval` block with the keys in `options` added, or the path of a file without them.

    Raises PeriodicEvalError `config` for options beside a file, for a file that does not exist, and for a
    value that JSON does not have.
    """
    if config is None or isinstance(config, Mapping):
        block = {**(config or {}), **options}
        return _plain(block, "periodic_eval") or None
    if options:
        got = f"a file and {', '.join(sorted(options))}"
        raise PeriodicEvalError(
            "config", "PeriodicEval", got, "a file or keys", "Write the keys into the file."
        )
    path = os.path.abspath(os.fspath(config))
    if not os.path.isfile(path):
        fix = "Correct the path, or pass a dict with the keys of the `periodic_eval` block."
        raise PeriodicEvalError("config", "PeriodicEval", f"{config}, which is no file", fix=fix)
    return path


def _plain(value: Any, where: str) -> Any:
    """Returns a value of the block as JSON has it. A path becomes a string, and a tuple a list."""
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(item, f"{where}.{key}") for key, item in value.items()}
    got = f"{type(value).__name__} {value!r}"[:200]
    fix = "Write it as YAML would hold it."
    raise PeriodicEvalError(
        "config", where, got, "a string, a number, a boolean, None, a list or a dict", fix
    )
