"""The output of a chat: on a terminal, or into a pipe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

import click

from dragoman.agent import AgentEvent, TextDelta, ToolFinished
from dragoman.cli.chat.calls import call_line, result_line
from dragoman.cli.exit_codes import complain
from dragoman.cli.screen import harmless

if TYPE_CHECKING:
    from collections.abc import Sequence


class Screen(Protocol):
    """The output of a chat."""

    shows_thinking: bool
    """Whether thinking is shown in full, not as one line."""

    def begin(self) -> None:
        """A request is about to be sent."""
        ...

    def show(self, event: AgentEvent) -> None:
        """Show an event of the answer."""
        ...

    def end(self) -> None:
        """The answer has ended, complete or not. Calling it again has no effect."""
        ...

    def told(self, text: str) -> None:
        """Show an earlier text, in Markdown."""
        ...

    def note(self, *lines: str) -> None:
        """Print remarks about the chat."""
        ...

    def complain(self, problem: str) -> None:
        """Print an error on one line."""
        ...

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show a table."""
        ...

    def sends_to_clipboard(self, content: str) -> bool:
        """Copy base64-encoded content through the terminal; returns False if unsupported."""
        ...


class PipeScreen:
    """Prints answers to standard output as plain text, everything else to standard error."""

    def __init__(self) -> None:
        self.shows_thinking = False
        self._is_open = False

    def begin(self) -> None:
        """Nothing to show yet."""

    def show(self, event: AgentEvent) -> None:
        """Print text as it arrives; tool calls only if standard error is a terminal."""
        if isinstance(event, TextDelta):
            text = event.text if self._is_open else event.text.lstrip("\n")
            click.echo(text, nl=False, color=True)  # or echo strips escapes in a pipe
            self._is_open = self._is_open or bool(text)
        elif isinstance(event, ToolFinished) and sys.stderr.isatty():
            self.note(f"{call_line(event.call)} → {result_line(event.result)}")

    def end(self) -> None:
        """End the line of the answer."""
        if self._is_open:
            click.echo()
        self._is_open = False

    def told(self, text: str) -> None:
        """Nothing: earlier text is not repeated in a pipe."""

    def note(self, *lines: str) -> None:
        """Print to standard error."""
        for line in lines:
            click.echo(harmless(line), err=True)

    def complain(self, problem: str) -> None:
        """Print to standard error."""
        complain(problem)

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print to standard error."""
        from dragoman.cli.screen import print_table

        print_table(headers, rows, sys.stderr)

    def sends_to_clipboard(self, content: str) -> bool:  # noqa: ARG002 - nobody is there
        """Not supported in a pipe."""
        return False
