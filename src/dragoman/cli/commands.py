"""The commands there are; each lives in a module of its own and is imported when it is run."""

from __future__ import annotations

import click

from dragoman import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="dragoman %(version)s")
def dragoman() -> None:
    """Conversations with language models that belong to their owner."""


@dragoman.command()
def tour() -> None:
    """Show what Dragoman does, on examples that run as you watch."""
    from dragoman.cli.tour import take

    take()
