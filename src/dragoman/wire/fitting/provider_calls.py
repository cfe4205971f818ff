"""Turns calls of other providers' tools, and their results, into text for any model (W71).

No provider accepts another's calls: they are signed, or refer to data that only it stores. Where
the target has an unsigned form that anyone may write, that is used instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.parts import ServerToolCall, ServerToolResult, Text
from dragoman.model.roles import Role
from dragoman.wire.description import Description
from dragoman.wire.dialect import description_of
from dragoman.wire.fitting.steps import unless_same
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.provider_calls import (
    CallForms,
    ProviderCall,
    ProviderResult,
    call_text,
    result_text,
    unknown_text,
)
from dragoman.wire.target import Target

_RUN = (ServerToolCall, ServerToolResult)
_ONLY_TEXT = "only its text can be sent"
_IN_WORDS = "sent as text: no provider accepts another's calls"
_NO_OUTPUT, _NO_SOURCES = "[No output]", "[No sources were given]"
_GAP = "\n\n"


def with_readable_calls(
    messages: tuple[Message, ...], target: Target, notes: list[Note]
) -> tuple[Message, ...]:
    """Replace calls of other providers' tools with text, or with the target's own form."""
    if not any(map(_has_call, messages)):
        return messages
    writer = _Writer(target, notes)
    made = [writer.written(message, f"messages[{n}].parts") for n, message in enumerate(messages)]
    return unless_same(made, messages)


def _has_call(message: Message) -> bool:
    return message.role is Role.ASSISTANT and any(type(part) in _RUN for part in message.parts)


class _Read(NamedTuple):
    """A part, and its decoded form if its dialect can decode it."""

    part: ServerToolCall | ServerToolResult
    view: ProviderCall | ProviderResult | None


class _Writer:
    """Rewrites the calls in messages for one target."""

    def __init__(self, target: Target, notes: list[Note]) -> None:
        self._target = target
        self._notes = notes
        self._described: dict[str, Description | None] = {}
        described = self._description(target.dialect)
        self._here = None if described is None else described.provider_calls

    def _description(self, dialect: str) -> Description | None:
        if dialect not in self._described:
            self._described[dialect] = description_of(dialect)
        return self._described[dialect]

    def written(self, message: Message, path: str) -> Message:
        """The message with its calls rewritten for the target."""
        if not _has_call(message):
            return message
        made = list(self._parts(message, path))
        parts = unless_same(made, message.parts)
        return message if parts is message.parts else message.replace_unchecked(parts=parts)

    def _parts(self, message: Message, path: str) -> Iterator[AnyPart]:
        read = [self._read(part, message) for part in message.parts]
        native = set(self._native(read))
        texts = [
            place
            for place, (part, known) in enumerate(zip(message.parts, read, strict=True))
            if isinstance(part, Text) or (known is not None and place not in native)
        ]
        places = {place: number for number, place in enumerate(texts)}
        for place, (part, known) in enumerate(zip(message.parts, read, strict=True)):
            if known is None:
                yield part
            elif place in native and self._here is not None and known.view is not None:
                yield _as_here(known, self._here)
                self._note(known, f"{path}[{place}]")
            else:
                said = self._text(known, f"{path}[{place}]")
                number = places[place] + 1
                after = message.parts[texts[number]] if number < len(texts) else None
                yield part if said is None else _apart(said, part, number > 1, after)

    def _read(self, part: AnyPart, message: Message) -> _Read | None:
        """Decode a part; None if it is not a call or result of another provider."""
        if not isinstance(part, _RUN):
            return None
        origin = message.origin_of(part)
        if origin is None:
            return None
        if origin.dialect == self._target.dialect:
            is_bound = self._here is not None and self._here.are_bound
            if not is_bound or self._target.has_made(origin):
                return None
        described = self._description(origin.dialect)
        forms = None if described is None else described.provider_calls
        if forms is None:
            return _Read(part, None)
        is_call = isinstance(part, ServerToolCall)
        return _Read(part, forms.call(part) if is_call else forms.result(part))  # type: ignore[arg-type]  # each its own

    def _native(self, read: Sequence[_Read | None]) -> Iterator[int]:
        """Indices of calls, each directly followed by its result, that the target accepts."""
        if self._here is None or not self._here.accepted:
            return
        for place, (one, other) in enumerate(pairwise(read)):
            if one is None or other is None:
                continue
            call, result = one.view, other.view
            if (
                isinstance(call, ProviderCall)
                and isinstance(result, ProviderResult)
                and call.kind is result.kind
                and call.kind in self._here.accepted
                and one.part.call_id == other.part.call_id
                and call.language in (None, "python")
            ):
                yield place
                yield place + 1

    def _note(self, known: _Read, path: str) -> None:
        if known.view is not None and not known.view.is_whole:
            self._notes.append(Loss(path, _ONLY_TEXT))

    def _text(self, known: _Read, path: str) -> str | None:
        part, view = known
        if isinstance(view, ProviderCall):
            said: str | None = call_text(view)
        elif isinstance(view, ProviderResult):
            said = result_text(view) or (_NO_SOURCES if view.output is None else _NO_OUTPUT)
        else:
            said = unknown_text(part)
        if said is None:  # not JSON: the encoder drops and reports it
            return None
        if view is not None and not view.is_whole:
            self._notes.append(Loss(path, _ONLY_TEXT))
        else:
            self._notes.append(Repair(path, "I14", "retyped", _IN_WORDS))
        return said


def _apart(said: str, part: AnyPart, follows: bool, after: AnyPart | None) -> Text:  # noqa: FBT001 - a text
    """A text with blank lines around it, in case the target joins neighbouring texts."""
    said = f"{_GAP if follows else ''}{said}{_GAP if isinstance(after, Text) else ''}"
    return Text(said, origin=part.origin, cache=part.cache)


def _as_here(known: _Read, forms: CallForms) -> AnyPart:
    view = known.view
    if isinstance(view, ProviderCall):
        return forms.shown[view.kind].call(view, "")[0]
    assert isinstance(view, ProviderResult)  # noqa: S101 - `_native` gives out no other
    return forms.shown[view.kind].result(view, "")[0]
