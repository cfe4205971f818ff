"""What is seen of a chat: by people at a terminal, or by whatever reads a pipe."""

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
    """Where a chat is shown."""

    shows_thinking: bool
    """Whether thinking is shown in full, or folded."""

    def begin(self) -> None:
        """The model is about to be asked."""
        ...

    def show(self, event: AgentEvent) -> None:
        """Show what happens in an answer."""
        ...

    def end(self) -> None:
        """The answer is over, whole or not. Calling it again does nothing."""
        ...

    def told(self, text: str) -> None:
        """Show a text in Markdown that was said earlier."""
        ...

    def note(self, *lines: str) -> None:
        """Say something about the chat."""
        ...

    def complain(self, problem: str) -> None:
        """Say what went wrong, on a line."""
        ...

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show a table."""
        ...

    def sends_to_clipboard(self, content: str) -> bool:
        """Have the terminal put what is encoded so (base64) on the clipboard, if it may."""
        ...


class PipeScreen:
    """Answers go to standard output as plain text; all else goes to standard error."""

    def __init__(self) -> None:
        self.shows_thinking = False
        self._is_open = False

    def begin(self) -> None:
        """Nothing to see yet."""

    def show(self, event: AgentEvent) -> None:
        """Print text as it comes; tools are told of where somebody sees them."""
        if isinstance(event, TextDelta):
            text = event.text if self._is_open else event.text.lstrip("\n")
            click.echo(text, nl=False, color=True)  # else a pipe would lose what looks like it
            self._is_open = self._is_open or bool(text)
        elif isinstance(event, ToolFinished) and sys.stderr.isatty():
            self.note(f"{call_line(event.call)} → {result_line(event.result)}")

    def end(self) -> None:
        """An answer ends its line."""
        if self._is_open:
            click.echo()
        self._is_open = False

    def told(self, text: str) -> None:
        """What was said earlier is not said again."""

    def note(self, *lines: str) -> None:
        """On standard error."""
        for line in lines:
            click.echo(harmless(line), err=True)

    def complain(self, problem: str) -> None:
        """On standard error."""
        complain(problem)

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """On standard error."""
        from dragoman.cli.screen import print_table

        print_table(headers, rows, sys.stderr)

    def sends_to_clipboard(self, content: str) -> bool:  # noqa: ARG002 - nobody is there
        """There is none in a pipe."""
        return False
