"""Errors, each with its place, what was found, what was expected and a remedy."""

from __future__ import annotations


class PeriodicEvalError(Exception):
    """An error that names its place and what to do.

    `code` is `config`, `data`, `model`, `memory` or `cancelled`, as in the live protocol.
    """

    def __init__(self, code: str, where: str, got: str, expected: str = "", fix: str = "") -> None:
        self.code, self.where, self.got, self.expected, self.fix = code, where, got, expected, fix
        found = f"expected {expected}, got {got}" if expected else got
        super().__init__(f"{where}: {found}.{' ' + fix if fix else ''}")

    def wire(self) -> dict[str, str]:
        """Returns the error as a message of the live protocol holds it."""
        return {
            "code": self.code,
            "where": self.where,
            "got": self.got,
            "expected": self.expected,
            "fix": self.fix,
        }


class HostLost(Exception):
    """The host is gone, silent, or does not speak the live protocol."""


class Cancelled(Exception):
    """The host cancelled its call."""
