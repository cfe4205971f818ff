"""The `dragoman` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; says what to install where its packages are missing."""
    try:
        from dragoman.cli.commands import dragoman
    except ModuleNotFoundError as error:
        if error.name not in {"click", "rich"}:
            raise
        sys.exit("The dragoman command needs its extra: pip install 'dragoman[cli]'")
    except KeyboardInterrupt:
        sys.stderr.write("dragoman: interrupted\n")
        sys.exit(130)
    dragoman(prog_name="dragoman")
