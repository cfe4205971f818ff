"""The `dragoman` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; if its packages are missing, say what to install."""
    try:
        from dragoman.cli.commands import dragoman
    except ModuleNotFoundError as error:
        if error.name not in {"click", "rich"}:
            raise
        sys.exit("The dragoman command needs the cli extra: pip install 'dragoman[cli]'")
    except KeyboardInterrupt:
        sys.stderr.write("dragoman: interrupted\n")
        sys.exit(130)
    dragoman(prog_name="dragoman")
