"""The steps of fitting: what concerns them, and how they pass over messages that stay as they came.

A conversation may be mixed: what a client sent in the target's own dialect, and what an agent, an
editor or another provider added. Messages of the first kind are kept as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Any, Generic, NamedTuple, TypeVar

from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.requests import AnyTool, Request
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolDefinition, ToolResult
from dragoman.wire.losses import Note
from dragoman.wire.target import Target

Messages = tuple[Message, ...]
T = TypeVar("T", Messages, Request)
V = TypeVar("V")
Change = Callable[[Any, str], Any]
"""What a part at a path becomes; itself where it stays."""
Keeps = Callable[[Message], bool]
"""Whether a message stays as it came."""

_ASSISTANT = Role.ASSISTANT
_FIRST = "messages[0]"


def keep_nothing(_message: Message) -> bool:
    """The usual case: all messages are fitted."""
    return False


class Contents:
    """What there is in a conversation, looked up in one pass: most steps concern little of it.

    Where a flag is false, a step that asks for it has nothing to do.
    """

    __slots__ = (
        "calls", "extended", "has_blanks", "has_extra_fields", "has_hints", "has_media",
        "has_misplaced_calls", "has_results", "has_thinking", "messages",
    )  # fmt: skip

    def __init__(self, messages: tuple[Message, ...]) -> None:  # noqa: C901, PLR0912 - one pass, for speed
        self.messages = messages
        self.calls: list[ToolCall] = []
        self.has_blanks = self.has_hints = self.has_media = False
        self.has_results = self.has_thinking = self.has_extra_fields = False
        self.has_misplaced_calls = False
        self.extended: list[int] = []
        """The messages in which there may be extras, each once or more."""
        for index, message in enumerate(messages):
            parts = message.parts
            if not parts:
                self.has_blanks = True
            if message.extras is not EMPTY:
                self.extended.append(index)
            for part in parts:
                kind = type(part)
                if kind is Text or kind is Refusal:
                    text = part.text  # type: ignore[union-attr]  # it is one of them
                    if not text or text.isspace():
                        self.has_blanks = True
                    if kind is Text and part.citations:  # type: ignore[union-attr]  # a Text
                        self.has_extra_fields = True
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
                    self.has_extra_fields = True
                if part.extras is not EMPTY:
                    self.extended.append(index)


def always(_contents: Contents, _target: Target) -> bool:
    """Whether a step that asks the target itself has anything to do."""
    return True


class Step(NamedTuple, Generic[T]):
    """One thing that fitting sees to.

    `fit` is given messages or a request, the target, and the list to report to; it returns the same
    object where there is nothing to do. `flags` are those of the target that ask for it: they name
    the rules that it serves.
    """

    fit: Callable[[T, Target, list[Note]], T]
    flags: tuple[str, ...]
    concerns: Callable[[Contents, Target], bool] = always
    """Whether there may be anything to do."""
    is_asked: Callable[[Target], bool] | None = None
    """Whether the target asks for it, whatever there is in a conversation; None: it may."""
    among_kept: Callable[[Messages, Target, list[Note], Keeps], Messages] | None = None
    """How it is done where some messages stay as they came; None: message by message."""


def asked_steps(steps: tuple[Step[T], ...], target: Target) -> tuple[Step[T], ...]:
    """Those of the steps that the target may ask for."""
    known: tuple[Any, tuple[Step[T], ...]] | None = target.findings.get(id(steps))
    if known is None or known[0] is not steps:
        found = tuple([each for each in steps if each.is_asked is None or each.is_asked(target)])
        known = target.findings[id(steps)] = steps, found
    return known[1]


def fit_messages(
    step: Step[Messages], messages: Messages, target: Target, notes: list[Note], keeps: Keeps
) -> Messages:
    """What a step makes of the messages that are not kept as they came."""
    if keeps is keep_nothing:
        return step.fit(messages, target, notes)
    if step.among_kept is not None:
        return step.among_kept(messages, target, notes, keeps)
    fitted: list[Message] = []
    for index, message in enumerate(messages):
        if keeps(message):
            fitted.append(message)
            continue
        found: list[Note] = []
        fitted += step.fit((message,), target, found)
        notes += [
            note.replace(path=f"messages[{index}]{note.path.removeprefix(_FIRST)}")
            if note.path.startswith(_FIRST)
            else note
            for note in found
        ]
    return unless_same(fitted, messages)


# --- what steps are made of


def unless_same(made: Sequence[V], given: tuple[V, ...]) -> tuple[V, ...]:
    """What was made; what was given, where it holds the very same."""
    is_same = len(made) == len(given) and all(map(is_, made, given))
    return given if is_same else tuple(made)


def with_changed_parts(messages: Messages, change: Change) -> Messages:
    """Messages with what `change` makes of each part, given its path."""
    changed = [
        _with_changed_parts(message, change, f"messages[{index}].parts")
        for index, message in enumerate(messages)
    ]
    return unless_same(changed, messages)


def _with_changed_parts(message: Message, change: Change, path: str) -> Message:
    made = [change(part, f"{path}[{place}]") for place, part in enumerate(message.parts)]
    parts = unless_same(made, message.parts)
    return message if parts is message.parts else message.replace_unchecked(parts=parts)


def with_changed_content(result: ToolResult, change: Change, path: str) -> ToolResult:
    """A result with what `change` makes of each part in it, given its path."""
    if isinstance(result.content, str):
        return result
    made = [change(part, f"{path}.content[{i}]") for i, part in enumerate(result.content)]
    content = unless_same(made, result.content)
    return result if content is result.content else result.replace_unchecked(content=content)


class Kept:
    """The ids and names that kept messages and the dialect's own tools use: they stay."""

    def __init__(
        self, messages: Iterable[Message], tools: Iterable[AnyTool], target: Target, keeps: Keeps
    ) -> None:
        self.ids: frozenset[str] = frozenset()
        self.names: frozenset[str] = frozenset()
        if keeps is keep_nothing:
            return
        own = [message for message in messages if keeps(message)]
        called = [call for message in own for call in message.tool_calls]
        results = [result for message in own for result in message.tool_results]
        self.ids = frozenset([*(c.id for c in called), *(r.call_id for r in results)])
        declared = [
            tool.name
            for tool in tools
            if isinstance(tool, ToolDefinition)
            and tool.origin is not None
            and target.has_made(tool.origin)
        ]
        self.names = frozenset([*(call.name for call in called), *declared])


NOTHING_KEPT = Kept((), (), Target(dialect=""), keep_nothing)
"""Of the usual case."""
