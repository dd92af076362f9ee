"""The configuration that the host reads."""

from __future__ import annotations

import math
import operator
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


def name_of(value: Any, where: str, example: str) -> str:
    """Returns the name of a phase or the path of a folder as a string.

    Raises PeriodicEvalError `config` for another type, and for an empty string.
    """
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else ""
    if not isinstance(text, str) or text == "":
        fix = f"Pass a name such as {example}."
        raise PeriodicEvalError("config", where, repr(value)[:200], "a string that is not empty", fix)
    return text


def count_of(value: Any, where: str, *, least: int, none: str) -> int | None:
    """Converts an integer of Python, NumPy or PyTorch, or a float without a fraction; returns None for None.

    `none` says what None means. Raises PeriodicEvalError `config` for another value or one below `least`.
    """
    if value is None:
        return None
    whole: Any = int(value) if isinstance(value, float) and value.is_integer() else value
    try:
        count = least - 1 if isinstance(whole, bool) else operator.index(whole)
    except TypeError:
        count = least - 1
    if count < least:
        expected = f"an integer of at least {least}, or None"
        raise PeriodicEvalError("config", where, repr(value)[:200], expected, f"None is {none}.")
    return count


def batch_tokens_of(value: Any, owner: str) -> int | None:
    """Returns the largest number of tokens of a forward pass; None if the device decides."""
    return count_of(value, f"{owner}.batch_tokens", least=1, none="a size that suits the device")
