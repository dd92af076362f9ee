"""The command `periodic-eval`: runs the bundled program with the same arguments."""

from __future__ import annotations

import os
import subprocess
import sys

from .connection import program_command
from .errors import PeriodicEvalError


def main() -> int:
    """Runs the program, and returns its exit code. `demo` trains in this process."""
    try:
        if sys.argv[1:2] == ["demo"]:
            from .demo import demo

            return demo(sys.argv[2:])
        command = [*program_command(), *sys.argv[1:]]
    except PeriodicEvalError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    if os.name != "nt":
        # The program takes this process's place, with its signals and its terminal.
        os.execv(command[0], command)
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
