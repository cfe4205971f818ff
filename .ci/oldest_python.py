"""The oldest Python 3.11 on this machine that is older than the one that runs this.

Prints its path. Looks on PATH and in /usr/bin, where Debian has one; it must be able to make
environments (Debian splits that off). Where there is none, says so and ends with 1.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_QUESTION = "import ensurepip, sys, venv; print(sys.hexversion)"  # one number, in release order
_MINOR = 0x030B


def candidates() -> list[Path]:
    """Every python3.11 there is, each once."""
    folders = [*os.get_exec_path(), "/usr/bin"]
    found = [path for folder in folders if (path := Path(folder) / "python3.11").is_file()]
    return list({path.resolve(): path for path in reversed(found)}.values())


def version_of(python: Path) -> int | None:
    """The version of an interpreter as a number; None if it isn't one of 3.11 with `venv`."""
    try:
        said = subprocess.run(  # noqa: S603 - an interpreter of this machine
            [python, "-c", _QUESTION], capture_output=True, check=True, text=True, timeout=60
        )
        version = int(said.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return version if version >> 16 == _MINOR else None


def main() -> int:
    """Print the path; 1 with the reason on standard error where there is none."""
    versions = {python: version_of(python) for python in candidates()}
    older = {python: number for python, number in versions.items()
             if number is not None and number < sys.hexversion}  # fmt: skip
    if not older:
        own = sys.version.partition(" ")[0]
        print(f"no Python 3.11 older than {own} with its venv module is here", file=sys.stderr)
        return 1
    print(min(older, key=older.__getitem__))
    return 0


if __name__ == "__main__":
    sys.exit(main())
