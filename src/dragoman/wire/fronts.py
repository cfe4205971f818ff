"""Fronts: answers of one provider, written for clients of another's dialect.

What the model behind has sealed must come back to it (I2, W54, W83), through a client that knows
another dialect. Parts with such state are turned into parts that the front writes as its own:
thinking signed with an envelope, and carriers, which are sealed thinking to the client. What comes
back is put right by `unsealing`; streams are sealed by `sealing`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.media import Media
from dragoman.model.parts import (
    Citation,
    Opaque,
    Origin,
    Part,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.responses import Choice, Response
from dragoman.model.tools import ToolCall
from dragoman.wire.encoded import Encoded
from dragoman.wire.envelope import Seal, fingerprint, is_sealed, wrap
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.overlay import has_overlay, own_extras
from dragoman.wire.shown_calls import ShownCalls, is_counterpart

CALLS = (ServerToolCall, ServerToolResult)
WHOLE = (*CALLS, Opaque)
"""What a client of another dialect can't be shown as it is: it goes along whole."""
_SHOWN = (Text, Refusal, ToolCall, Media)
N = TypeVar("N", Loss, Repair)
_PATH = re.compile(r"choices\[(\d+)\]\.message\.parts\[(\d+)\]")
Field = Literal["signature", "data"]


def _as_it_is(part: Thinking, _number: int, _message_id: Callable[[], str]) -> Thinking:
    return part


class StateFields(NamedTuple):
    """What a dialect's clients send back as they got it."""

    origin: Origin
    """That of its own parts."""
    thoughts: Field = "signature"
    """Where thinking that can be read has its seal."""
    carriers: Field = "data"
    """Where thinking that can't be read has it."""
    native: tuple[type[Part], ...] = ()
    """The parts that can be signed themselves."""
    is_flat: bool = False
    """Whether a message is one text beside its thinking and its calls, in no order."""
    complete_thinking: Callable[[Thinking, int, Callable[[], str]], Thinking] = _as_it_is
    """What else thinking needs here, by its number in the message, and that message's id."""


def encoded_behind(
    front: StateFields, response: Response, encode: Callable[[Response], Encoded]
) -> Encoded:
    """The body for a response, with the state of the provider behind the front sealed."""
    done = tuple(_sealed_choice(choice, front) for choice in response.choices)
    if all(places is None for _, places in done):
        return encode(response)
    encoded = encode(response.replace(choices=tuple(choice for choice, _ in done)))
    places = {number: known for number, (_, known) in enumerate(done) if known is not None}
    encoded.losses = tuple(pointed_back(encoded.losses, places))
    encoded.repairs = tuple(pointed_back(encoded.repairs, places))
    return encoded


def _sealed_choice(choice: Choice, front: StateFields) -> tuple[Choice, list[int] | None]:
    """The choice, and the place that each of its parts had; None where all are as they were."""
    message = choice.message
    parts: list[AnyPart] = []
    places: list[int] = []
    sealer = Sealer(front, message.origin, lambda: message.id)
    for index, part in enumerate(message.parts):
        made = sealer.sealed(part)
        parts += made
        places += [index] * len(made)
        sealer.count(part)
    sealer.cite(message.parts)
    beside = [made for part in sealer.beside(choice.extras) for made in sealer.sealed(part)]
    parts, places = beside + parts, [0] * len(beside) + places  # a search comes before the answer
    if not sealer.has_sealed:
        return choice, None
    return choice.replace(message=message.replace_unchecked(parts=tuple(parts))), places


def pointed_back(losses: Iterable[N], places: Mapping[int, Sequence[int]]) -> list[N]:
    """Losses or repairs that point into a sealed response, pointing into the given one, each once.

    `places` has the number that each part had there, choice by choice.
    """
    return list(dict.fromkeys(_pointed_back(loss, places) for loss in losses))


def _pointed_back(loss: N, places: Mapping[int, Sequence[int]]) -> N:
    found = _PATH.match(loss.path)
    known = places.get(int(found[1]), ()) if found else ()
    if found is None or int(found[2]) >= len(known):
        return loss
    path = f"choices[{found[1]}].message.parts[{known[int(found[2])]}]"
    return loss.replace(path=path + loss.path[found.end() :])


class Sealer:
    """Seals the parts of one message, one after the other."""

    __slots__ = (
        "_calls", "_chars", "_cited", "_front", "_message_id", "_number", "_shown", "has_sealed",
        "origin",
    )  # fmt: skip

    def __init__(
        self, front: StateFields, origin: Origin | None, message_id: Callable[[], str]
    ) -> None:
        self._front = front
        self._message_id = message_id
        self.origin = origin
        """The message's, which its parts share unless they have their own."""
        self.has_sealed = False
        self._number = 0  # of the next thinking
        self._cited: list[Citation] = []
        self._shown: ShownCalls | None = None  # made for the first call of a provider's tool
        self._chars = 0
        self._calls = 0

    def count(self, part: AnyPart) -> None:
        """Note what is said before the parts to come."""
        if self._shown is not None and not isinstance(part, CALLS):
            self._shown.interrupt()
        if isinstance(part, Text):
            self.count_text(len(part.text))
        elif isinstance(part, ToolCall):
            self.count_call()

    def count_text(self, length: int) -> None:
        """Note that much text."""
        self._chars += length

    def count_call(self) -> None:
        """Note a call."""
        self._calls += 1

    @property
    def place(self) -> tuple[int, int] | None:
        """Where the next part stands, if the front does not say."""
        return (self._chars, self._calls) if self._front.is_flat else None

    def thought(self, part: Thinking) -> Thinking:
        """Thinking as the front's own, still without its seal."""
        form = "full" if part.form == "redacted" else part.form
        return self._completed(Thinking(part.text, None, form, origin=self._front.origin))

    def carrier(self, envelope: str) -> Thinking:
        """An envelope as a part of its own."""
        bare: dict[str, Any] = {self._front.carriers: envelope}
        return self._completed(Thinking(form="redacted", origin=self._front.origin, **bare))

    def _completed(self, part: Thinking) -> Thinking:
        self.has_sealed = True
        self._number += 1
        return self._front.complete_thinking(part, self._number - 1, self._message_id)

    def home_of(self, part: Part) -> Origin | None:
        """Where a part's state has to go back to; None where the front may show it as it is."""
        origin = part.origin if part.origin is not None else self.origin
        if origin is None:
            return None
        if origin.dialect == self._front.origin.dialect and not (
            is_sealed(part) or is_counterpart(part)
        ):
            return None  # an envelope here is another gateway's, which wants it back
        return origin if isinstance(part, (Thinking, *WHOLE)) or has_state(part, origin) else None

    def sealed(self, part: AnyPart) -> tuple[AnyPart, ...]:
        """The parts that stand for a part."""
        home = self.home_of(part)
        if home is None:
            return (part,)
        if isinstance(part, Thinking) and part.is_empty:
            return ()
        if is_shown(part) or isinstance(part, self._front.native):
            return self._sealed_beside(part, home)
        return self.sealed_whole(part, home, self.place) or (part,)

    def sealed_whole(
        self, part: AnyPart, home: Origin, place: tuple[int, int] | None
    ) -> tuple[AnyPart, ...]:
        """A part that the client can't read, and its counterpart; nothing where it is too large."""
        calls = self._shown_calls if isinstance(part, CALLS) else None
        shown, shown_id = ((), None) if calls is None else calls.of(part, home)
        envelope = whole_envelope(part, home, place, shown_id)
        if envelope is None:
            return ()
        if shown and calls is not None and calls.are_signed:
            self.has_sealed = True
            return (shown[0].replace(signature=envelope), *shown[1:])
        carrier = self.carrier(envelope)
        # Before a call and behind its result, so that nothing comes between them.
        return (carrier, *shown) if isinstance(part, ServerToolCall) else (*shown, carrier)

    @property
    def _shown_calls(self) -> ShownCalls:
        if self._shown is None:
            self._shown = ShownCalls(self._front.origin.dialect, self._message_id)
        return self._shown

    def beside(self, extras: Mapping[str, Any]) -> tuple[AnyPart, ...]:
        """The calls that a choice tells of in its extras, for a front that can show them."""
        origin = self.origin
        if not extras or origin is None or origin.dialect == self._front.origin.dialect:
            return ()
        return self._shown_calls.beside(origin, extras, self._cited)

    def cite(self, parts: Iterable[AnyPart]) -> None:
        """Note what texts cite."""
        for part in parts:
            if type(part) is Text and part.citations:
                self._cited += part.citations

    def _sealed_beside(self, part: AnyPart, home: Origin) -> tuple[AnyPart, ...]:
        """A part that the client is shown, and its state."""
        front = self._front
        envelope = self.envelope(part, home, self.place)
        if envelope is None:
            return (part,)
        if isinstance(part, Thinking):
            return (self.thought(part).replace(**{front.thoughts: envelope}),)
        if isinstance(part, front.native):
            self.has_sealed = True
            return (stateless(part, front.origin).replace(signature=envelope),)
        carrier, shown = self.carrier(envelope), stateless(part)
        # Clients look for a call at the end of a message, and for text at its beginning.
        return (carrier, shown) if isinstance(part, ToolCall) else (shown, carrier)

    def envelope(self, part: AnyPart, home: Origin, place: tuple[int, int] | None) -> str | None:
        """The envelope for a part that the client is shown."""
        length = len(part.text) if isinstance(part, (Text, Thinking)) else 0
        return wrap(Seal(home, _unsaid(part, home), fingerprint(part), place, length))


def has_state(part: Part, origin: Origin) -> bool:
    """Whether a part that a client is shown has state that it is not."""
    if part.signature is not None:
        return True
    if isinstance(part, Text) and any(
        has_overlay(c.extras, origin.dialect) for c in part.citations
    ):
        return True  # W71: sealed references
    if isinstance(part, ToolCall) and has_overlay(part.extras, origin.dialect):
        return True  # such as which of a provider's own tools called it
    return part.item_id is not None and not isinstance(part, Media)


def is_shown(part: Part) -> bool:
    """Whether a client is shown anything of a part that has state."""
    if isinstance(part, (Text, Thinking)):
        return bool(part.text)
    return isinstance(part, _SHOWN)


def stateless(part: AnyPart, origin: Origin | None = None) -> AnyPart:
    """A part as a client is shown it; its state goes along in an envelope."""
    is_other = origin is not None and part.origin != origin
    if not is_other and part.signature is None and part.item_id is None:
        return part
    changes: dict[str, Any] = {"signature": None, "item_id": None}
    if is_other:
        changes["origin"] = origin
        if isinstance(part, ToolCall):
            changes["wire_id"] = UNSET
    return part.replace_unchecked(**changes)


def whole_envelope(
    part: AnyPart, home: Origin, place: tuple[int, int] | None, shown_id: str | None = None
) -> str | None:
    """The envelope for a part that the client is not shown, but maybe a counterpart of it."""
    extras = own_extras(part.extras, home.dialect)
    return wrap(Seal(home, part.replace(origin=None, extras=extras), at=place, shown=shown_id))


def _unsaid(part: AnyPart, home: Origin) -> AnyPart:
    """The state of a part, without what the client is shown."""
    extras = own_extras(part.extras, home.dialect)
    changes: dict[str, Any] = {"origin": None, "cache": None, "extras": extras}
    if isinstance(part, (Text, Thinking, Refusal)):
        changes["text"] = ""
    elif isinstance(part, ToolCall):
        # A front without custom tools shows a call of one as a function's.
        raw = part.raw if part.kind == "custom" else ""
        changes |= {"id": "", "name": "", "raw": raw, "input": None}
    elif isinstance(part, Media):
        changes |= {"data": "", "url": None, "file_id": None}
    return part.replace_unchecked(**changes)
