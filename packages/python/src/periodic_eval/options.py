"""The configuration that the host reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from .errors import PeriodicEvalError

Config = str | os.PathLike[str] | Mapping[str, Any] | None


def block_of(config: Config, options: Mapping[str, Any]) -> Config:
    """Returns the `periodic_eval` block with the keys in `options` added, or the path of a file without them.

    Raises PeriodicEvalError `config` for options beside a file, and for a file that does not exist.
    """
    if config is None or isinstance(config, Mapping):
        block = {**(config or {}), **options}
        return block or None
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
