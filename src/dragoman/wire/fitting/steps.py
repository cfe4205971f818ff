"""The steps of fitting: when they apply, and how they skip messages that are kept unchanged.

A conversation may be mixed: messages that a client sent in the target's own dialect, and messages
that an agent, an editor or another provider added. The former are kept unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Any, Generic, TypeVar

from msgspec import Struct

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
"""Changes the part at a path; returns it if there is nothing to do."""
Keeps = Callable[[Message], bool]
"""Whether a message is kept unchanged."""

_ASSISTANT = Role.ASSISTANT
_FIRST = "messages[0]"


def keep_nothing(_message: Message) -> bool:
    """Keep no message: the usual case, in which all messages are fitted."""
    return False


class Contents:
    """A summary of a conversation, made in one pass: most steps apply to little of it.

    If a flag is false, steps that depend on it have nothing to do.
    """

    __slots__ = (
        "calls", "extended", "flags", "has_blanks", "has_extra_fields", "has_hints", "has_media",
        "has_misplaced_calls", "has_results", "has_thinking", "messages",
    )  # fmt: skip

    def __init__(self, messages: tuple[Message, ...]) -> None:  # noqa: C901, PLR0912 - one pass, for speed
        self.messages = messages
        self.calls: list[ToolCall] = []
        self.has_blanks = self.has_hints = self.has_media = False
        self.has_results = self.has_thinking = self.has_extra_fields = False
        self.has_misplaced_calls = False
        self.extended: list[int] = []
        """The indices of messages that may have extras, possibly repeated."""
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
                    self.has_media = True  # or another rare kind of part
                if part.cache is not None:
                    self.has_hints = True
                if part.signature is not None:
                    self.has_extra_fields = True
                if part.extras is not EMPTY:
                    self.extended.append(index)
        self.flags = (
            self.has_media, self.has_misplaced_calls, self.has_thinking, self.has_blanks,
            self.has_results, not self.calls,
        )  # fmt: skip
        """What `Step.concerns` may depend on, besides the target."""


def always(_contents: Contents, _target: Target) -> bool:
    """For steps that decide by the target, whatever the conversation contains."""
    return True


class Step(Struct, Generic[T], frozen=True, eq=False):
    """One step of fitting.

    `fit` gets messages or a request, the target, and the list of reports; it returns the same
    object if there is nothing to do. `flags` are the target's flags that require it, and so name
    its rules.
    """

    fit: Callable[[T, Target, list[Note]], T]
    flags: tuple[str, ...]
    concerns: Callable[[Contents, Target], bool] = always
    """Whether there may be anything to do, by the contents' flags: the result is cached."""
    is_required: Callable[[Target], bool] | None = None
    """Whether the target requires the step for any conversation; None: it may."""
    among_kept: Callable[[Messages, Target, list[Note], Keeps], Messages] | None = None
    """A variant for conversations with kept messages; None: fit message by message."""
    finds: Callable[[Contents, Target], bool] | None = None
    """Like `concerns`, by what is in the contents, so not cached; None: it may."""


def steps_for(steps: tuple[Step[T], ...], seen: Contents, target: Target) -> tuple[Step[T], ...]:
    """The steps that may have something to do for a target and a conversation with these flags."""
    key = id(steps), seen.flags
    known: tuple[Any, tuple[Step[T], ...]] | None = target.findings.get(key)
    if known is None or known[0] is not steps:
        found = tuple([each for each in steps if _may_apply(each, seen, target)])
        known = target.findings[key] = steps, found
    return known[1]


def _may_apply(step: Step[Any], seen: Contents, target: Target) -> bool:
    is_required = step.is_required is None or step.is_required(target)
    return is_required and step.concerns(seen, target)


def fit_messages(
    step: Step[Messages], messages: Messages, target: Target, notes: list[Note], keeps: Keeps
) -> Messages:
    """Apply a step to the messages that are not kept."""
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


# --- building blocks of steps


def unless_same(made: Sequence[V], given: tuple[V, ...]) -> tuple[V, ...]:
    """What was made; or what was given, if all items are identical."""
    is_same = len(made) == len(given) and all(map(is_, made, given))
    return given if is_same else tuple(made)


def with_changed_parts(messages: Messages, change: Change) -> Messages:
    """Apply `change` to each part, given its path."""
    changed = [
        _with_changed_parts(message, change, f"messages[{index}].parts")
        for index, message in enumerate(messages)
    ]
    return unless_same(changed, messages)


def with_changed_content_too(messages: Messages, change: Change) -> Messages:
    """Like `with_changed_parts`, also for the parts in results; `change` is given no result."""

    def changed(part: Any, path: str) -> Any:
        if isinstance(part, ToolResult):
            return with_changed_content(part, change, path)
        return change(part, path)

    return with_changed_parts(messages, changed)


def _with_changed_parts(message: Message, change: Change, path: str) -> Message:
    made = [change(part, f"{path}[{place}]") for place, part in enumerate(message.parts)]
    parts = unless_same(made, message.parts)
    return message if parts is message.parts else message.replace_unchecked(parts=parts)


def with_changed_content(result: ToolResult, change: Change, path: str) -> ToolResult:
    """Apply `change` to each part in a result, given its path."""
    if isinstance(result.content, str):
        return result
    made = [change(part, f"{path}.content[{i}]") for i, part in enumerate(result.content)]
    content = unless_same(made, result.content)
    return result if content is result.content else result.replace_unchecked(content=content)


class Kept:
    """Ids and names in kept messages and in the dialect's own tools, which must not change."""

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
"""For the usual case."""
