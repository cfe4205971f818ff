"""Losses in responses from another dialect: fields that the client's dialect doesn't have.

`foreign_extras` does this for requests; this module handles responses and streams alike.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.content import AnyPart
from dragoman.model.events import Event, OpaqueEvent, PartDelta, PartStart, ResponseStart
from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Opaque
from dragoman.model.responses import Response
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.dialect import description_of
from dragoman.wire.fitting.unsupported_fields import unsupported_name_losses
from dragoman.wire.foreign_extras import foreign_losses
from dragoman.wire.fronts import Sealer, StateFields
from dragoman.wire.lane.flows import Delta, Flow, FlowingEncoder, general_path, inner_flow
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.stream_encoding import NO_USAGE
from dragoman.wire.streams import StreamEncoder
from dragoman.wire.target import Target
from dragoman.wire.usage_details import UsageDetails

_OTHER = FinishReason.OTHER
_NO_COUNT = "this token count is not supported"
_UNREADABLE = "a part that can't be read is kept for its provider; the client does not see it"
_STATE = frozenset({"compaction", "fallback", "item_reference"})
_ABOUT = frozenset({"id", "type", "status", "role", "phase", "call_id", "encrypted_content"})
_NOTHING: tuple[object, ...] = (None, "", (), [])
_NAME = re.compile(r"[a-z0-9_]{1,64}")


class ResponseLimits(NamedTuple):
    """What a dialect's responses can't express."""

    dialect: str
    state_fields: StateFields | None = None
    """What its clients send back, sealed, and so is not lost."""
    missing_counts: tuple[str, ...] = ()
    """The fields of `Usage` that it doesn't have."""
    target: Target | None = None
    """The vendor's own deployment, with the unsupported fields of parts."""
    usage_details: UsageDetails | None = None
    """Where it has the counts of `Usage.details`; None: it has none."""


def response_losses(response: Response, limits: ResponseLimits) -> list[Loss]:
    """What a response of another dialect contains that this one can't express."""
    return list(dict.fromkeys(_losses_of(response, limits)))


def _losses_of(response: Response, limits: ResponseLimits) -> Iterator[Loss]:
    dialect = limits.dialect
    yield from _measured_losses(response.extras, dialect, "extras")
    if response.usage is not None:
        yield from _usage_losses(response.usage, "usage", limits)
    for number, choice in enumerate(response.choices):
        path, message = f"choices[{number}]", choice.message
        if choice.extras is not EMPTY:
            yield from foreign_losses(choice.extras, dialect, f"{path}.extras")
        origin, extras = message.origin, message.extras
        sealer = None if limits.state_fields is None else Sealer(limits.state_fields, origin, str)
        if extras is not EMPTY:
            left = extras if sealer is None else sealer.returned(extras)[1]
            yield from foreign_losses(left, dialect, f"{path}.message.extras")
        if message.usage is not None and response.usage is None:
            yield from _usage_losses(message.usage, f"{path}.message.usage", limits)
        if choice.finish is _OTHER and choice.finish_raw and origin and origin.dialect != dialect:
            yield Loss(f"{path}.finish_raw", "this finish reason has no equivalent")
        if limits.target is not None:
            yield from unsupported_name_losses(
                message.parts, f"{path}.message.parts", limits.target
            )
        for place, part in enumerate(message.parts):
            if part.extras is not EMPTY or type(part) is Opaque:
                where = f"{path}.message.parts[{place}]"
                yield from _part_losses(part, where, dialect, sealer)


def _measured_losses(extras: Mapping[str, Any], dialect: str, path: str) -> Iterator[Loss]:
    """The losses for unknown fields of a response or its usage, except for timings."""
    if extras is not EMPTY:
        timed = {f"{path}.{name}" for source in extras for name in _timings(source)}
        found = foreign_losses(extras, dialect, path)
        yield from (loss for loss in found if loss.path not in timed)


def _timings(source: str) -> Collection[str]:
    described = description_of(source)
    return () if described is None else described.timings


def _part_losses(part: AnyPart, path: str, dialect: str, sealer: Sealer | None) -> Iterator[Loss]:
    """The losses of a part's unknown fields; of a part that is unknown, if it is sealed."""
    if isinstance(part, Opaque) and sealer is not None and part.dialect != dialect:
        if _may_be_visible(part.payload):
            yield Loss(path, _UNREADABLE)
    elif sealer is None or sealer.home_of(part) is None:
        yield from foreign_losses(part.extras, dialect, f"{path}.extras")


def _may_be_visible(payload: object) -> bool:
    """Whether an unknown part may hold more than the provider's own state."""
    if not isinstance(payload, Mapping) or payload.get("type") in _STATE:
        return False
    return any(payload[key] not in _NOTHING for key in payload if key not in _ABOUT)


def _usage_losses(usage: Usage, path: str, limits: ResponseLimits) -> Iterator[Loss]:
    yield from _measured_losses(usage.extras, limits.dialect, f"{path}.extras")
    for name in limits.missing_counts:
        if getattr(usage, name):
            yield Loss(f"{path}.{name}", _NO_COUNT)
    known = limits.usage_details
    for name, count in usage.details.items():
        if count and not (known and known.has(name)):
            yield Loss(f"{path}.details.{name}" if _NAME.fullmatch(name) else path, _NO_COUNT)


class ReportingEncoder(FlowingEncoder):
    """Reports the losses of another dialect's stream, as for a non-streamed response."""

    def __init__(self, encoder: StreamEncoder, limits: ResponseLimits) -> None:
        self._encoder = encoder
        self._write = general_path(encoder)
        self._limits = limits
        self._folded = MessageAccumulator()  # everything but the texts
        self._is_home = False  # whether the stream is in this dialect, and so written completely
        self._begun: set[int] = set()  # parts of the first choice

    @property
    def losses(self) -> Sequence[Loss]:
        """What could not be expressed so far."""
        if self._is_home:
            return self._encoder.losses
        response, errors = self._folded.response, self._folded.errors
        left = [*_losses_of(response, self._limits)]
        for error in errors:
            left += foreign_losses(error.extras, self._limits.dialect, "error.extras")
        if errors and response.usage is not None:
            left.append(Loss("usage", NO_USAGE))
        return list(dict.fromkeys([*self._encoder.losses, *left]))

    @property
    def repairs(self) -> Sequence[Repair]:
        """What was repaired so far."""
        return self._encoder.repairs

    def write(self, event: Event) -> bytes:
        """The bytes to send for an event, in the general way."""
        if not self._is_home:
            if type(event) is PartDelta:
                self._note_delta(event)
            elif type(event) is not OpaqueEvent:
                self._folded.add(event)
                if type(event) is PartStart and not event.choice:
                    self._begun.add(event.index)
                elif type(event) is ResponseStart:
                    self._is_home = _is_at_home(event, self._limits.dialect)
        return self._write(event)

    def flow_after(self, event: Delta) -> Flow | None:
        """How to write deltas like the plain one that was just written."""
        flow = inner_flow(self._encoder, event)
        if flow is None or self._is_home or isinstance(event, PartDelta):
            return flow
        return flow.beside(*self._folded.texts_of(event))  # needed to tell calls apart

    def _note_delta(self, event: PartDelta) -> None:
        is_text = event.extras is EMPTY and event.signature is None and not event.citations
        if is_text and not event.choice and event.index in self._begun:
            return
        self._folded.add(event.replace(text=None))
        if not event.choice:
            self._begun.add(event.index)

    def _close(self) -> bytes:
        return self._encoder.close()


def _is_at_home(event: ResponseStart, dialect: str) -> bool:
    origin = event.origin
    return origin is not None and origin.dialect == dialect
