"""A chat on a terminal: streamed Markdown, and tool calls as they run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import TextIO, cast

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from dragoman.agent import (
    AgentEvent,
    RetryRequested,
    StepStarted,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
)
from dragoman.cli.chat.calls import call_line, result_line
from dragoman.cli.chat.flow import Flow
from dragoman.cli.chat.prose import Prose, settled
from dragoman.cli.screen import harmless, harmless_stream, print_table
from dragoman.model.tools import ToolCall

_REFRESHES = 12
"""Redraws per second; faster updates are drawn together."""
_MIN_SHOWN_SECONDS = 0.05
_THOUGHT_LINES, _THOUGHT_WIDTH = 3, 200


class TerminalScreen:
    """Shows a chat on a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)
        self.shows_thinking = False
        self._thoughts: _Thoughts | None = None
        self._live: Live | None = None
        self._flow: Flow | None = None
        self._is_thought = False
        self._is_waiting = False
        self._has_shown = False
        self._timer: asyncio.TimerHandle | None = None
        self._unsilence: Callable[[], None] | None = None
        self._running: dict[str, tuple[ToolCall, float]] = {}
        self._spinner = Spinner("dots", style="dim")

    # --- an answer

    def begin(self) -> None:
        """Show a progress indicator."""
        self.end()
        self._is_waiting, self._has_shown = True, False
        self._unsilence = _silenced()
        self._mark_pastes(is_on=True)
        self._live = Live(
            _Tail(self._tail),
            console=self.console,
            auto_refresh=False,
            transient=True,
        )
        self._live.start()
        self._refresh()

    def _refresh(self) -> None:
        """Redraw regularly, on the event loop: rich's own thread would draw in between."""
        if self._live is not None:
            self._live.refresh()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(1 / _REFRESHES, self._refresh)

    def show(self, event: AgentEvent) -> None:
        """Show what an event adds."""
        match event:
            case TextDelta():
                self._grow(event.text, is_thought=False)
            case ThinkingDelta():
                self._grow(event.text, is_thought=True)
            case ToolStarted():
                self._close_flow()
                self._running[event.call.id] = event.call, monotonic()
                self._is_waiting = False
            case ToolFinished():
                self._close_flow()
                self._running.pop(event.call.id, None)
                self._has_shown = True
                self.console.print(_finished(event))
            case StepStarted():
                self._close_flow()
                self._is_waiting = True
            case RetryRequested():
                self._close_flow()
                self.note(f"({event.reason}; retrying)")
            case _:
                pass

    def end(self) -> None:
        """Print the rest, and stop drawing."""
        self._is_waiting = False
        self._running.clear()
        self._close_flow()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._live is not None:
            live, self._live = self._live, None
            with suppress(KeyboardInterrupt):  # it has stopped anyway
                live.stop()
        if self._unsilence is not None:
            self._unsilence()
            self._unsilence = None
            self._mark_pastes(is_on=False)
        if self._has_shown:
            self._has_shown = False
            self.console.print()

    def _mark_pastes(self, *, is_on: bool) -> None:
        """Turn bracketed paste on or off, also while an answer is drawn."""
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            self.console.file.write(f"\x1b[?2004{'h' if is_on else 'l'}")

    def _grow(self, text: str, *, is_thought: bool) -> None:
        if is_thought and not self.shows_thinking:
            self._think(text)
            return
        if self._flow is None or self._thoughts or self._is_thought is not is_thought:
            self._close_flow()
            self._is_thought = is_thought
            self._flow = self._thinking() if is_thought else self._speaking()
        self._is_waiting, self._has_shown = False, True
        self._flow.feed(text)

    def _think(self, text: str) -> None:
        """Show thinking while it streams, to be folded into one line afterwards."""
        if self._thoughts is None:
            self._close_flow()
            self._thoughts = _Thoughts()
        self._is_waiting, self._has_shown = False, True
        self._thoughts.add(text)

    def _speaking(self) -> Flow:
        return Flow(self.console, settled, Prose)

    def _thinking(self) -> Flow:
        return Flow(self.console, _lines, _dimmed, is_spaced=False)

    def _close_flow(self) -> None:
        flow, self._flow = self._flow, None
        if flow is not None:
            flow.close()
        thoughts, self._thoughts = self._thoughts, None
        if thoughts is not None:
            self.console.print(thoughts.folded())

    def _tail(self) -> RenderableType:
        """The part below the printed text that is redrawn continuously."""
        if self._running:
            return Group(*(_under_way(*each) for each in [*self._running.values()]))
        if self._thoughts is not None:
            return Group(self._spinner, self._thoughts.tail())
        flow = self._flow
        if flow is not None:
            return flow.tail()
        return self._spinner if self._is_waiting else ""

    # --- everything else

    def told(self, text: str) -> None:
        """Show a text in Markdown."""
        flow = self._speaking()
        flow.feed(text)
        flow.close()

    def note(self, *lines: str) -> None:
        """Print dimmed lines, which are not part of the conversation."""
        for line in lines:
            self.console.print(Text(harmless(line), style="dim"))

    def complain(self, problem: str) -> None:
        """Print an error in red."""
        self.console.print(Text(harmless(problem), style="red"))

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table."""
        print_table(headers, rows, cast("TextIO", self.console.file))

    def sends_to_clipboard(self, content: str) -> bool:
        """Send the OSC 52 sequence, unless the terminal is dumb."""
        if not self.console.is_terminal or self.console.is_dumb_terminal:
            return False
        self.console.file.write(f"\x1b]52;c;{content}\x07")
        self.console.file.flush()
        return True


class _Thoughts:
    """The model's thinking before an answer."""

    def __init__(self) -> None:
        self.text = ""
        self._visible = harmless_stream()
        self._since = monotonic()

    def add(self, text: str) -> None:
        """Append text."""
        self.text += self._visible.feed(text)

    def tail(self) -> Text:
        """Its last lines."""
        lines = self.text.strip().split("\n")[-_THOUGHT_LINES:]
        return _dimmed("\n".join(line[-_THOUGHT_WIDTH:] for line in lines))

    def folded(self) -> Text:
        """All of it, summarised on one line."""
        words, seconds = len(self.text.split()), monotonic() - self._since
        took = f" for {seconds:.0f} s" if seconds >= 1 else ""
        return _dimmed(f"✻ thought{took}, {words:,} words; /thinking shows it")


class _Tail:
    """Renders the current tail whenever rich draws it."""

    def __init__(self, tail: Callable[[], RenderableType]) -> None:
        self._now = tail

    def __rich__(self) -> RenderableType:
        return self._now()


def _lines(text: str) -> tuple[list[str], str]:
    """Split thinking into complete lines and the rest."""
    *whole, rest = text.split("\n")
    return whole, rest


def _dimmed(text: str) -> Text:
    return Text(text, style="dim italic")


def _under_way(call: ToolCall, since: float) -> Text:
    seconds = f" … {monotonic() - since:.0f} s"
    return Text.assemble(("⚙ ", "yellow"), (call_line(call), "yellow"), (seconds, "dim"))


def _finished(event: ToolFinished) -> Text:
    result, seconds = event.result, event.seconds
    arrow, style = (" ✗ ", "red") if result.is_error else (" → ", "")
    took = f"  {seconds:.1f} s" if seconds >= _MIN_SHOWN_SECONDS else ""
    return Text.assemble(
        ("⚙ ", "yellow"), (call_line(event.call), "yellow"), (arrow, style or "dim"),
        (result_line(result), style), (took, "dim"),
    )  # fmt: skip


def _silenced() -> Callable[[], None]:
    """Turn off the terminal's echo; returns a function that restores it.

    Typed-ahead keys would appear in the middle of the drawing. They are not lost: the next read
    gets them key by key, since no line exceeds the terminal's buffer. Ctrl-C still works, and
    NOFLSH keeps pending output, which the next redraw relies on.
    """
    try:
        import termios
    except ImportError:  # Windows
        return lambda: None
    try:
        handle = sys.stdin.fileno()
        before = termios.tcgetattr(handle)
    except (OSError, ValueError, termios.error):  # not a terminal
        return lambda: None
    quiet = [*before]
    quiet[0] &= ~termios.ICRNL  # input modes: Enter arrives as the editor expects
    quiet[3] = quiet[3] & ~(termios.ECHO | termios.ICANON) | termios.NOFLSH  # local modes
    with suppress(termios.error):
        termios.tcsetattr(handle, termios.TCSANOW, quiet)

    def undo() -> None:
        with suppress(termios.error):  # the terminal may be gone
            termios.tcsetattr(handle, termios.TCSANOW, before)

    return undo
