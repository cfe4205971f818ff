"""Fronts: responses of one provider, encoded for clients of another dialect.

Opaque state of the model behind the gateway must come back to it (I2, W54, W83) through a client
that speaks another dialect. Parts with such state are turned into parts of the front's dialect:
thinking whose signature is an envelope, and carriers, which look like encrypted thinking to the
client. `unsealing` restores what comes back; `sealing` seals streams.
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
from dragoman.wire.carried import with_fields
from dragoman.wire.dialect import description_of
from dragoman.wire.encoded import Encoded
from dragoman.wire.envelope import Seal, fingerprint, is_sealed, wrap
from dragoman.wire.foreign_extras import foreign_fields
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.overlay import extras_of, fields_of, has_overlay, own_extras
from dragoman.wire.shown_calls import ShownCalls, is_counterpart

CALLS = (ServerToolCall, ServerToolResult)
WHOLE = (*CALLS, Opaque)
"""Parts that a client of another dialect can't be shown as they are: they are sealed whole."""
_STATEFUL = (Thinking, *WHOLE)
_PHASES = frozenset({"commentary"})
"""Phases of texts that a provider needs back; without one, a text counts as the answer (W32)."""
_SHOWN = (Text, Refusal, ToolCall, Media)
N = TypeVar("N", Loss, Repair)
_PATH = re.compile(r"choices\[(\d+)\]\.message\.parts\[(\d+)\]")
Field = Literal["signature", "data"]
OF_MESSAGE = "message"
"""The overlay word for fields of a message that travel as a part."""


def _as_it_is(part: Thinking, _number: int, _message_id: Callable[[], str]) -> Thinking:
    return part


def _accepts_all(_part: Part) -> bool:
    return True


class StateFields(NamedTuple):
    """The fields that a dialect's clients send back unchanged."""

    origin: Origin
    """The origin of its own parts."""
    thoughts: Field = "signature"
    """The field for the seal of readable thinking."""
    carriers: Field = "data"
    """The field for the seal of unreadable thinking."""
    native: tuple[type[Part], ...] = ()
    """The parts that can have a signature themselves."""
    is_flat: bool = False
    """Whether a message is one text beside its thinking and its calls, without an order."""
    keeps_texts: bool = False
    """Whether its clients send every text back as it was, apart from its neighbours."""
    ends_with_text: bool = False
    """Whether its clients take the last part of a response for its text."""
    complete_thinking: Callable[[Thinking, int, Callable[[], str]], Thinking] = _as_it_is
    """Adds what else thinking needs here, given its number in the message and the message's id."""
    accepts: Callable[[Part], bool] = _accepts_all
    """Whether its clients understand a part of their own dialect in the form in which it came."""


def encoded_behind(
    front: StateFields, response: Response, encode: Callable[[Response], Encoded]
) -> Encoded:
    """Encode a response, with the state of the provider behind the front sealed."""
    done = tuple(_sealed_choice(choice, front) for choice in response.choices)
    if all(places is None for _, places in done):
        return encode(response)
    encoded = encode(response.replace(choices=tuple(choice for choice, _ in done)))
    places = {number: known for number, (_, known) in enumerate(done) if known is not None}
    encoded.losses = tuple(pointed_back(encoded.losses, places))
    encoded.repairs = tuple(pointed_back(encoded.repairs, places))
    return encoded


def _sealed_choice(choice: Choice, front: StateFields) -> tuple[Choice, list[int] | None]:
    """The choice, and each part's original position; None if no part was changed."""
    message = choice.message
    parts: list[AnyPart] = []
    places: list[int] = []
    sealer = Sealer(front, message.origin, lambda: message.id)
    for index, part in enumerate(message.parts):
        sealer.following = message.parts[index + 1] if index + 1 < len(message.parts) else None
        made = sealer.sealed(part)
        parts += made
        places += [index] * len(made)
        sealer.count(part)
        sealer.follow(part)
    if front.ends_with_text:
        _put_text_last(parts, places, front)
    sealer.cite(message.parts)
    beside = [made for part in sealer.beside(choice.extras) for made in sealer.sealed(part)]
    returned, extras = sealer.returned(message.extras)
    beside += returned
    parts, places = beside + parts, [0] * len(beside) + places  # a search precedes the response
    if not sealer.has_sealed:
        return choice, None
    shown = message.replace_unchecked(parts=tuple(parts), extras=extras)
    return choice.replace(message=shown), places


def _put_text_last(parts: list[AnyPart], places: list[int], front: StateFields) -> None:
    """Move the state that follows the last text before it."""
    end = len(parts)
    while end and _is_carrier(parts[end - 1], front):
        end -= 1
    last = end - 1
    if 0 <= last < len(parts) - 1 and type(parts[last]) is Text:
        parts.append(parts.pop(last))
        places.append(places.pop(last))


def _is_carrier(part: AnyPart, front: StateFields) -> bool:
    is_hidden = isinstance(part, Thinking) and not part.text
    return is_hidden and part.origin is front.origin and is_sealed(part)


def pointed_back(losses: Iterable[N], places: Mapping[int, Sequence[int]]) -> list[N]:
    """Make losses or repairs of a sealed response point into the original one, without duplicates.

    `places` has the original position of each part, per choice.
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
    """Seals the parts of one message, in order."""

    __slots__ = (
        "_after", "_calls", "_chars", "_cited", "_front", "_message_id", "_number", "_shown",
        "following", "has_sealed", "origin",
    )  # fmt: skip

    def __init__(
        self, front: StateFields, origin: Origin | None, message_id: Callable[[], str]
    ) -> None:
        self._front = front
        self._message_id = message_id
        self.origin = origin
        """The message's origin, which its parts share unless they have their own."""
        self.following: AnyPart | None = None
        """The part after the one that is being sealed."""
        self.has_sealed = False
        self._number = 0  # of the next thinking part
        self._cited: list[Citation] = []
        self._shown: ShownCalls | None = None  # created for the first call of a provider tool
        self._chars = 0
        self._calls = 0
        self._after: Text | None = None  # the text before the next part

    def follow(self, part: AnyPart) -> None:
        """Record a complete part that precedes the next one."""
        if self._front.keeps_texts:
            self._after = part if isinstance(part, Text) and part.text else None

    def count(self, part: AnyPart) -> None:
        """Record content that precedes the following parts."""
        if self._shown is not None and not isinstance(part, CALLS):
            self._shown.interrupt()
        if isinstance(part, Text):
            self.count_text(len(part.text))
        elif isinstance(part, ToolCall):
            self.count_call()

    def count_text(self, length: int) -> None:
        """Record the length of a text."""
        self._chars += length

    def count_call(self) -> None:
        """Record a call."""
        self._calls += 1
        self._after = None

    @property
    def place(self) -> tuple[int, int] | None:
        """The position of the next part, if the front keeps no order."""
        return (self._chars, self._calls) if self._front.is_flat else None

    def thought(self, part: Thinking) -> Thinking:
        """Thinking in the front's own form, not yet sealed."""
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
        """The origin that a part's state must return to; None if the front can show it as it is."""
        origin = part.origin if part.origin is not None else self.origin
        if origin is None or _is_bare(part):
            return None
        if self.is_native(part, origin) and not (is_sealed(part) or is_counterpart(part)):
            return None  # an envelope here belongs to another gateway, which needs it back
        return origin if isinstance(part, _STATEFUL) or has_state(part, origin) else None

    def is_native(self, part: Part, origin: Origin) -> bool:
        """Whether a part is in the form that the front's clients understand."""
        front = self._front
        return origin.dialect == front.origin.dialect and front.accepts(part)

    def sealed(self, part: AnyPart) -> tuple[AnyPart, ...]:
        """The parts to send in place of a part."""
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
        """A carrier for an unreadable part, and its counterpart; empty if it is too large."""
        calls = self._shown_calls if isinstance(part, CALLS) else None
        shown, shown_id = ((), None) if calls is None else calls.of(part, home)
        after = None if shown or self._after is None else fingerprint(self._after)
        envelope = self._whole_envelope(part, home, place, shown_id, after)
        if envelope is None:
            return ()
        if shown and calls is not None and calls.are_signed:
            self.has_sealed = True
            return (shown[0].replace(signature=envelope), *shown[1:])
        carrier = self.carrier(envelope)
        # Before a call and after its result, so that nothing comes between the two.
        return (carrier, *shown) if isinstance(part, ServerToolCall) else (*shown, carrier)

    @property
    def _shown_calls(self) -> ShownCalls:
        if self._shown is None:
            self._shown = ShownCalls(self._front.origin.dialect, self._message_id)
        return self._shown

    def beside(self, extras: Mapping[str, Any]) -> tuple[AnyPart, ...]:
        """The provider calls recorded in a choice's extras, for a front that can show them."""
        origin = self.origin
        if not extras or origin is None or origin.dialect == self._front.origin.dialect:
            return ()
        return self._shown_calls.beside(origin, extras, self._cited)

    def returned(self, extras: Mapping[str, Any]) -> tuple[tuple[AnyPart, ...], Mapping[str, Any]]:
        """The carrier of the message's fields that its provider needs back, and the other extras.

        Such a part is not shown: it is restored as the fields of its message.
        """
        home = self.origin
        if not extras or home is None or home.dialect == self._front.origin.dialect:
            return (), extras
        described = description_of(home.dialect)
        names = frozenset[str]() if described is None else described.returned_fields
        fields = fields_of(extras, home.dialect)
        found = {name: fields[name] for name in fields if name in names and fields[name]}
        if not found:
            return (), extras
        words = extras_of({}, home.dialect, (OF_MESSAGE,))
        carriers = self.sealed_whole(Opaque(home.dialect, found, extras=words), home, self.place)
        if not carriers:
            return (), extras
        left = {name: value for name, value in fields.items() if name not in found}
        return carriers, with_fields(extras, home.dialect, left)

    def cite(self, parts: Iterable[AnyPart]) -> None:
        """Collect the citations of texts."""
        for part in parts:
            if type(part) is Text and part.citations:
                self._cited += part.citations

    def _sealed_beside(self, part: AnyPart, home: Origin) -> tuple[AnyPart, ...]:
        """A part that the client is shown, and its sealed state."""
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
        leads = self._led_by(part)
        return wrap(Seal(home, _unsaid(part, home), fingerprint(part), place, length, leads=leads))

    def _whole_envelope(
        self, part: AnyPart, home: Origin, place: tuple[int, int] | None, shown_id: str | None,
        after: str | None,
    ) -> str | None:  # fmt: skip
        """The envelope for a part that the client is not shown, except perhaps as a counterpart."""
        whole = part.replace(origin=None, extras=own_extras(part.extras, home.dialect))
        leads = self._led_by(part)
        return wrap(Seal(home, whole, at=place, shown=shown_id, after=after, leads=leads))

    def _led_by(self, part: AnyPart) -> tuple[str, str] | None:
        """The kind and item id of what this reasoning led to: its provider wants both (W23).

        They travel with the reasoning: what follows it needs no envelope of its own.
        """
        led = self.following
        if led is None or not isinstance(part, Thinking) or not (part.item_id and led.item_id):
            return None
        return None if isinstance(led, _STATEFUL) else (type(led).__name__, led.item_id)


def _is_bare(part: Part) -> bool:
    """Whether a part is a text without state, as most are: a quick answer for `has_state`."""
    is_text = type(part) is Text and not part.citations
    return is_text and part.signature is None and part.item_id is None


def has_state(part: Part, origin: Origin) -> bool:
    """Whether a part shown to a client also has state that is not shown."""
    if part.signature is not None:
        return True
    if isinstance(part, Text):
        cited = part.citations
        if cited and any(has_overlay(each.extras, origin.dialect) for each in cited):
            return True  # W71: encrypted references
        item = fields_of(part.extras, origin.dialect).get("item")
        return isinstance(item, Mapping) and item.get("phase") in _PHASES
    if isinstance(part, ToolCall):
        own = fields_of(part.extras, origin.dialect)
        # Other items than functions are shown as such. Fields: which provider tool called it, say.
        is_other = "type" in own or (part.kind == "custom" and part.item_id is not None)
        return is_other or any(foreign_fields({origin.dialect: own}, ""))
    return False


def is_shown(part: Part) -> bool:
    """Whether a client is shown anything of a part that has state."""
    if isinstance(part, (Text, Thinking)):
        return bool(part.text)
    return isinstance(part, _SHOWN)


def stateless(part: AnyPart, origin: Origin | None = None) -> AnyPart:
    """A part as the client is shown it; its state travels in an envelope."""
    is_other = origin is not None and part.origin != origin
    if not is_other and part.signature is None and part.item_id is None:
        return part
    changes: dict[str, Any] = {"signature": None, "item_id": None}
    if is_other:
        changes["origin"] = origin
        if isinstance(part, ToolCall):
            changes["wire_id"] = UNSET
    return part.replace_unchecked(**changes)


def _unsaid(part: AnyPart, home: Origin) -> AnyPart:
    """The state of a part, without the content that the client is shown."""
    extras = own_extras(part.extras, home.dialect)
    changes: dict[str, Any] = {"origin": None, "cache": None, "extras": extras}
    if isinstance(part, (Text, Thinking, Refusal)):
        changes["text"] = ""
    elif isinstance(part, ToolCall):
        # A front without custom tools shows a custom call as a function call.
        raw = part.raw if part.kind == "custom" else ""
        changes |= {"id": "", "name": "", "raw": raw, "input": None}
    elif isinstance(part, Media):
        changes |= {"data": "", "url": None, "file_id": None}
    return part.replace_unchecked(**changes)
