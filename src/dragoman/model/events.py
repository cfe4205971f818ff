"""What a stream says, one event at a time; `MessageAccumulator` folds them into a `Response`.

A response starts, its parts start, grow and stop, usage and the reason for the end arrive when
they do. `choice` tells which answer, `index` which part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, FrozenDict
from dragoman.model.parts import Citation, Origin, Part
from dragoman.model.tools import ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from dragoman.model.value import Value, expect, own, own_mapping, own_tuple


class _Event(Value, frozen=True, tag_field="type"):
    pass


class ResponseStart(_Event, frozen=True, tag="response_start", kw_only=True):
    """The provider has begun to answer."""

    id: str | None = None
    model: str | None = None
    created_at: float | None = None
    origin: Origin | None = None
    extras: Mapping[str, Any] = EMPTY
    restarts: bool = False
    """Whether what came before is void: another model answers instead of one that broke off."""

    def __post_init__(self) -> None:
        if self.extras is not EMPTY:
            own_mapping(self, "extras")

    def filled(self, later: ResponseStart) -> ResponseStart:
        """With what a later one adds: gaps are filled, nothing is reset, its origin counts."""
        known, more = self.extras, later.extras
        if not (self.id or self.model or self.created_at or self.origin or known or later.restarts):
            return later
        if known and more:  # both are frozen: so is what they make together
            more = FrozenDict({**known, **more})
        return ResponseStart(
            id=self.id or later.id,
            model=self.model or later.model,
            created_at=self.created_at or later.created_at,
            origin=later.origin or self.origin,
            extras=more or known,
        )


NOT_STARTED = ResponseStart()
"""What is known of a response before anything is."""


class PartStart(_Event, frozen=True, tag="part_start"):
    """A part begins, with what is known of it."""

    index: int
    part: AnyPart
    choice: int = 0

    def __post_init__(self) -> None:
        expect(self.part, Part, "PartStart.part")

    def _sizes(self) -> Iterator[str]:
        yield repr(self.part)


class PartDelta(_Event, frozen=True, tag="part_delta"):
    """A part grows.

    `text` is more of a text, of a tool call's arguments or of a sound's transcript, `data` more
    sealed data or base64; `extras` are fields of the wire that come after the part's start.
    """

    index: int
    text: str | None = None
    signature: str | None = None
    data: str | None = None
    citations: tuple[Citation, ...] = ()
    choice: int = 0
    extras: Mapping[str, Any] = EMPTY

    def __post_init__(self) -> None:
        if self.citations != ():
            own_tuple(self, "citations", Citation)
        if self.extras is not EMPTY:
            own_mapping(self, "extras")

    def _sizes(self) -> Iterator[str]:
        yield f"{len(self.text or '')} chars"


class PartStop(_Event, frozen=True, tag="part_stop"):
    """A part is complete; `part`, where the wire repeats it, is the final word on it (W26).

    Said again, it replaces what was said before: some wires tell all of it once more at the end.
    """

    index: int
    part: AnyPart | None = None
    choice: int = 0


class UsageUpdate(_Event, frozen=True, tag="usage"):
    """What it has cost so far: always the whole, never an increment (W69)."""

    usage: Usage

    def __post_init__(self) -> None:
        expect(self.usage, Usage, "UsageUpdate.usage")

    def _sizes(self) -> Iterator[str]:
        yield repr(self.usage)


class ChoiceFinish(_Event, frozen=True, tag="finish"):
    """Why a choice ended. A second one for the same choice replaces the first: it knows more."""

    finish: FinishReason
    finish_raw: str | None = None
    choice: int = 0
    logprobs: Any = None
    extras: Mapping[str, Any] = EMPTY
    message_extras: Mapping[str, Any] = EMPTY
    """What the wire said of the message beyond its parts."""

    def __post_init__(self) -> None:
        if self.logprobs is not None:
            own(self, "logprobs")
        if self.extras is not EMPTY:
            own_mapping(self, "extras")
        if self.message_extras is not EMPTY:
            own_mapping(self, "message_extras")


class StreamError(_Event, frozen=True, tag="error"):
    """The provider reported an error in mid-stream."""

    message: str
    code: str | None = None
    status: int | None = None
    extras: Mapping[str, Any] = EMPTY

    def __post_init__(self) -> None:
        own_mapping(self, "extras")


class OpaqueEvent(_Event, frozen=True, tag="opaque_event"):
    """Something of a dialect that says nothing here, carried whole."""

    dialect: str
    payload: Any = None
    is_progress: bool = False
    """Whether it is a piece of what is told as a whole later: who leaves it out loses nothing."""

    def __post_init__(self) -> None:
        own(self, "payload")


class ResponseEnd(_Event, frozen=True, tag="response_end"):
    """The provider said that it is done; a stream without this was cut off."""


Event = (
    ResponseStart
    | PartStart
    | PartDelta
    | ToolCallDelta
    | PartStop
    | UsageUpdate
    | ChoiceFinish
    | StreamError
    | OpaqueEvent
    | ResponseEnd
)
"""All that a stream can say."""
