"""`dragoman completion`: Tab completion of commands and options in the user's shell."""

from __future__ import annotations

import os
from pathlib import Path

import click

from dragoman.cli.exit_codes import EXIT_CODES, USAGE, Ending, clean_ending

_VARIABLE = "_DRAGOMAN_COMPLETE"
_SHELLS = ("bash", "fish", "zsh")


@click.command(epilog=EXIT_CODES, short_help="Complete commands with Tab in your shell.")
@click.argument("shell", required=False, type=click.Choice(_SHELLS))
@click.option("--install", is_flag=True, help="Write the script where the shell reads it.")
def completion(shell: str | None, *, install: bool) -> None:
    """Print or install the completion script for your SHELL.

    SHELL defaults to the one in $SHELL. --install prints the path of the file it writes; delete
    that file to uninstall.
    """
    with clean_ending():
        chosen = shell or Path(os.environ.get("SHELL", "")).name
        if chosen not in _SHELLS:
            known = ", ".join(_SHELLS)
            raise Ending(USAGE, f"unknown shell: name one of {known}")
        script = _script(chosen)
        if not install:
            click.echo(script, nl=False)
            return
        from dragoman.transport.atomic_files import write_atomically

        place = _place(chosen)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(place, script.encode())
        click.echo(f"written to {place}{_REMARKS.get(chosen, '')}", err=True)


def _script(shell: str) -> str:
    from click.shell_completion import get_completion_class

    from dragoman.cli.commands import dragoman

    made = get_completion_class(shell)
    if made is None:
        raise Ending(USAGE, f"{shell} is not supported by click's completion")
    return made(dragoman, {}, "dragoman", _VARIABLE).source()


_REMARKS = {
    "bash": "; it works in new shells (which need the package bash-completion)",
    "fish": "; it works in new shells",
    "zsh": "; add `fpath+=~/.zfunc; autoload -Uz compinit; compinit` to ~/.zshrc, if it is not"
    " there",
}


def _place(shell: str) -> Path:
    """The file in which the shell looks for the user's completions."""
    home = Path.home()
    if shell == "bash":
        data = os.environ.get("XDG_DATA_HOME") or home / ".local" / "share"
        return Path(data) / "bash-completion" / "completions" / "dragoman"
    if shell == "fish":
        config = os.environ.get("XDG_CONFIG_HOME") or home / ".config"
        return Path(config) / "fish" / "completions" / "dragoman.fish"
    return home / ".zfunc" / "_dragoman"
