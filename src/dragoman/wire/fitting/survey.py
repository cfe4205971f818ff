"""What there is in a conversation, looked up in one pass: most steps concern little of it."""

from __future__ import annotations

from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult

_ASSISTANT = Role.ASSISTANT


class Survey:
    """Where a flag is false, a step that asks for it has nothing to do."""

    __slots__ = ("calls", "extended", "has_blanks", "has_hints", "has_luggage", "has_media",
                 "has_misplaced_calls",
                 "has_results", "has_thinking")  # fmt: skip

    def __init__(self, messages: tuple[Message, ...]) -> None:  # noqa: C901, PLR0912 - one pass, for speed
        self.calls: list[ToolCall] = []
        self.has_blanks = self.has_hints = self.has_media = False
        self.has_results = self.has_thinking = self.has_luggage = False
        self.has_misplaced_calls = False
        self.extended: list[int] = []
        """The messages in which there may be extras, each once or more."""
        for index, message in enumerate(messages):
            if not message.parts:
                self.has_blanks = True
            if message.extras is not EMPTY:
                self.extended.append(index)
            for part in message.parts:
                kind = type(part)
                if kind is Text or kind is Refusal:
                    text = part.text  # type: ignore[union-attr]  # it is one of them
                    if not text or text.isspace():
                        self.has_blanks = True
                    if kind is Text and part.citations:  # type: ignore[union-attr]  # a Text
                        self.has_luggage = True
                elif kind is ToolCall:
                    self.calls.append(part)  # type: ignore[arg-type]  # a ToolCall
                    if message.role is not _ASSISTANT:
                        self.has_misplaced_calls = True
                elif kind is ToolResult:
                    self.has_results = True
                    if type(part.content) is not str:  # type: ignore[union-attr]  # a ToolResult
                        self.has_media = self.has_hints = True
                        self.extended.append(index)
                elif kind is Thinking:
                    self.has_thinking = True
                else:
                    self.has_media = True  # or something else that is rare
                if part.cache is not None:
                    self.has_hints = True
                if part.signature is not None:
                    self.has_luggage = True
                if part.extras is not EMPTY:
                    self.extended.append(index)
