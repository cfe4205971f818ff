"""The input line of a chat: editing, completion, multi-line input and input history.

The only module that imports prompt_toolkit; it is imported when a chat starts on a terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import AnyFormattedText
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.styles import Style

from dragoman.cli.chat.completion import Candidate
from dragoman.cli.chat.kept_lines import KeptLines
from dragoman.cli.chat.typed import QUOTES
from dragoman.cli.screen import harmless, harmless_line

Find = Callable[[str], Coroutine[Any, Any, list[Candidate]]]
Run = Callable[[Coroutine[Any, Any, str]], str]

_STYLE = Style.from_dict({"prompt": "ansigreen bold", "more": "ansigreen", "answer": ""})
_PLAIN = Style.from_dict({"prompt": "noinherit", "more": "noinherit", "answer": "noinherit"})


class EditedLines:
    """Reads messages with a line editor.

    Enter sends; Alt-Enter (or Esc, Enter) starts a new line, and so does Enter after a backslash.
    Pasted text is inserted literally, and sent by Enter.
    """

    def __init__(self, run: Run, kept: KeptLines | None, find: Find) -> None:
        self._run = run
        self._suggested = ""
        self._is_pasted = False
        is_plain = bool(os.environ.get("NO_COLOR"))
        depth = ColorDepth.DEPTH_1_BIT if is_plain else None
        self._style = _PLAIN if is_plain else _STYLE
        self._messages: PromptSession[str] = PromptSession(
            [("class:prompt", "> ")],
            multiline=True,
            prompt_continuation=_continued,
            history=_KeptHistory(kept) if kept is not None else InMemoryHistory(),
            completer=_Completer(find),
            complete_while_typing=False,  # only on Tab: it may have to query a server
            enable_suspend=True,
            enable_open_in_editor=True,
            key_bindings=self._keys(),
            style=self._style,
            color_depth=depth,
            output=_output(),
        )
        self._depth = depth

    def message(self) -> str:
        """The next message."""
        text, self._suggested = self._suggested, ""
        self._is_pasted = False
        said = _as_text(self._run(self._messages.prompt_async(default=text)))
        return said if self._is_pasted else _unquoted(said)

    def answer(self, question: str) -> str:
        """The answer to a question; it is not added to the input history."""
        session: PromptSession[str] = PromptSession(
            style=self._style, color_depth=self._depth, output=_output()
        )
        shown: AnyFormattedText = [("class:answer", harmless_line(question))]
        return _as_text(self._run(session.prompt_async(shown)))

    def suggest(self, text: str) -> None:
        """Put a text on the next input line."""
        self._suggested = harmless(text)

    # --- keys

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        @keys.add("c-j")  # Enter, if pressed before the editor started
        def send(event: KeyPressEvent) -> None:
            self._enter(event.current_buffer)

        @keys.add("escape", "enter")
        def newline(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add(Keys.BracketedPaste)
        def paste(event: KeyPressEvent) -> None:
            self._is_pasted = True
            event.current_buffer.insert_text(_pasted(event.data))

        return keys

    def _enter(self, buffer: Buffer) -> None:
        """Send the message, unless it continues on another line."""
        state = buffer.complete_state
        if state is not None and state.current_completion is not None:
            buffer.complete_state = None  # the selected completion is already inserted
        elif buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        elif not self._is_pasted and _is_open(buffer.text):
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()


def _continued(_width: int, _number: int, _wraps: int) -> AnyFormattedText:
    return [("class:more", "… ")]


def _pasted(text: str) -> str:
    r"""The pasted text; a trailing newline belongs to the clipboard, not to the user."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return lines.removesuffix("\n")


def _is_open(text: str) -> bool:
    """Whether three quotes have been opened and not closed."""
    begun = text.lstrip()
    if not begun.startswith(QUOTES):
        return False
    return not begun.removeprefix(QUOTES).rstrip().endswith(QUOTES)


def _unquoted(text: str) -> str:
    begun = text.strip()
    if not begun.startswith(QUOTES) or _is_open(text):
        return text
    return begun.removeprefix(QUOTES).removesuffix(QUOTES).strip("\n")


def _as_text(typed: str) -> str:
    """The typed text; invalid bytes become replacement characters."""
    return typed.encode(errors="surrogateescape").decode(errors="replace")


def _output() -> Output | None:
    """The terminal, without cursor position requests: late replies would arrive as key presses."""
    if sys.platform == "win32":
        return None
    from prompt_toolkit.output.vt100 import Vt100_Output

    output = Vt100_Output.from_pty(sys.stdout, term=os.environ.get("TERM"))
    output.enable_cpr = False
    return output


class _KeptHistory(History):
    """The input history of this chat and earlier ones."""

    def __init__(self, kept: KeptLines) -> None:
        super().__init__()
        self._kept = kept

    def load_history_strings(self) -> Iterable[str]:
        """All inputs, most recent first."""
        return reversed(self._kept.load())

    def store_string(self, string: str) -> None:
        """Add one input."""
        self._kept.add(string)


class _Completer(Completer):
    """Tab completion."""

    def __init__(self, find: Find) -> None:
        self._find = find

    def get_completions(
        self,
        document: Document,  # noqa: ARG002 - as its parent has it
        complete_event: CompleteEvent,  # noqa: ARG002 - as above
    ) -> Iterable[Completion]:
        """Empty: completions are found asynchronously."""
        return ()

    async def get_completions_async(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002 - as its parent has it
    ) -> AsyncGenerator[Completion, None]:
        """Completions for the text before the cursor."""
        text = document.text_before_cursor
        try:
            offered = await self._find(text)
        except Exception:  # noqa: BLE001 - a store that fails, say: the next command tells
            offered = []
        for found in offered:
            yield Completion(
                found.text,
                start_position=-found.replaces,
                display=harmless_line(found.shown or found.text),
                display_meta=harmless_line(found.about),
            )
