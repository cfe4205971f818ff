"""The events of a streamed response; `MessageAccumulator` assembles them into a `Response`.

A response starts; its parts start, grow and stop; usage and finish reasons arrive at any point.
`choice` is the index of the choice, `index` the index of the part within it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, FrozenDict
from dragoman.model.parts import Citation, Origin, Part
from dragoman.model.tools import ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from dragoman.model.value import Value, expect, expect_number, own, own_mapping, own_tuple


class _Event(Value, frozen=True, tag_field="type"):
    pass


class ResponseStart(_Event, frozen=True, tag="response_start", kw_only=True):
    """The response has started."""

    id: str | None = None
    model: str | None = None
    created_at: float | None = None
    origin: Origin | None = None
    extras: Mapping[str, Any] = EMPTY
    restarts: bool = False
    """Whether to discard everything so far: a fallback model took over after a failure."""

    def __post_init__(self) -> None:
        if self.created_at is not None:
            expect_number(self.created_at, "ResponseStart.created_at")
        if self.extras is not EMPTY:
            own_mapping(self, "extras")

    def filled(self, later: ResponseStart) -> ResponseStart:
        """Merges a later start: fills gaps and adds extras; only the origin is overwritten."""
        known, more = self.extras, later.extras
        if not (self.id or self.model or self.created_at or self.origin or known or later.restarts):
            return later
        if known and more:  # both are frozen already: a shallow merge is enough
            more = FrozenDict({**known, **more})
        return ResponseStart(
            id=self.id or later.id,
            model=self.model or later.model,
            created_at=self.created_at or later.created_at,
            origin=later.origin or self.origin,
            extras=more or known,
        )


NOT_STARTED = ResponseStart()
"""The state before any event has arrived."""


class PartStart(_Event, frozen=True, tag="part_start"):
    """A part has started, with the fields known so far."""

    index: int
    part: AnyPart
    choice: int = 0

    def __post_init__(self) -> None:
        expect(self.part, Part, "PartStart.part")

    def _sizes(self) -> Iterator[str]:
        yield repr(self.part)


class PartDelta(_Event, frozen=True, tag="part_delta"):
    """A part has grown.

    `text` continues a text, a tool call's arguments or an audio transcript. `data` continues
    sealed data or base64. `extras` are wire fields that arrive after the part's start.
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
    """A part is complete; `part`, if the wire repeats it, is its final value (W26).

    A repeated stop replaces an earlier one: some wires send all parts again at the end.
    """

    index: int
    part: AnyPart | None = None
    choice: int = 0


class UsageUpdate(_Event, frozen=True, tag="usage"):
    """Usage so far: always the total, never an increment (W69)."""

    usage: Usage

    def __post_init__(self) -> None:
        expect(self.usage, Usage, "UsageUpdate.usage")

    def _sizes(self) -> Iterator[str]:
        yield repr(self.usage)


class ChoiceFinish(_Event, frozen=True, tag="finish"):
    """Why a choice ended. A second finish for the same choice replaces the first."""

    finish: FinishReason
    finish_raw: str | None = None
    choice: int = 0
    logprobs: Any = None
    extras: Mapping[str, Any] = EMPTY
    message_extras: Mapping[str, Any] = EMPTY
    """Wire fields of the message that its parts don't cover, keyed by dialect."""

    def __post_init__(self) -> None:
        if self.logprobs is not None:
            own(self, "logprobs")
        if self.extras is not EMPTY:
            own_mapping(self, "extras")
        if self.message_extras is not EMPTY:
            own_mapping(self, "message_extras")


class StreamError(_Event, frozen=True, tag="error"):
    """The provider reported an error in the middle of the stream."""

    message: str
    code: str | None = None
    status: int | None = None
    extras: Mapping[str, Any] = EMPTY

    def __post_init__(self) -> None:
        own_mapping(self, "extras")


class OpaqueEvent(_Event, frozen=True, tag="opaque_event"):
    """A dialect-specific event without a canonical equivalent, carried unchanged."""

    dialect: str
    payload: Any = None
    is_progress: bool = False
    """Whether its content is repeated in a later event, so that dropping it loses nothing."""

    def __post_init__(self) -> None:
        own(self, "payload")


class ResponseEnd(_Event, frozen=True, tag="response_end"):
    """The provider has finished; a stream without this event was cut off."""


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
"""Any event of a stream."""
