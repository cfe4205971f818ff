"""Restores the opaque state in what a front's client sent back.

Envelopes are opened, and their content is assigned to the part that it belongs to: the part that
holds the envelope, the part with its fingerprint, the chunks that a streaming client kept, or a
position of its own. State whose part was changed or removed is dropped: its provider would refuse
it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.parts import Opaque, Origin, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.wire.carried import with_fields
from dragoman.wire.envelope import Seal, fingerprint, is_sealed, unwrap
from dragoman.wire.fronts import CALLS, OF_MESSAGE, WHOLE
from dragoman.wire.overlay import fields_of, words_of
from dragoman.wire.shown_calls import is_counterpart, without_counterparts

_ASSISTANT = Role.ASSISTANT
_WHOLE = (Text, Thinking, *WHOLE)
EMPTIED = Origin(dialect="envelope")
"""The origin of a message that held only envelopes: it was not empty on the wire."""
_NAMED = (ToolCall, Thinking)
"""Parts that may hold their state and get a later version of it from a carrier."""


def is_ours(part: AnyPart) -> bool:
    """Whether a front made a part: an envelope, or the counterpart of a provider's call."""
    return is_sealed(part) or is_counterpart(part)


def unsealed_messages(messages: list[Message], dialect: str) -> list[Message]:
    """Open the envelopes in messages of clients that may keep each chunk of a stream separately.

    Such chunks are separate messages; if one of them holds an envelope, they are merged again.
    """
    if not any(message.role is _ASSISTANT and any(map(is_ours, message.parts))
               for message in messages):  # fmt: skip
        return messages
    made: list[Message] = []
    for is_answer, group in groupby(messages, lambda message: message.role is _ASSISTANT):
        run = list(group)
        parts = tuple(_joined(run))
        if not is_answer or not any(map(is_ours, parts)):
            made += run
        else:
            made.append(_with_opened(run[0], unsealed(parts, dialect)))
    return made


def _joined(run: Sequence[Message]) -> Iterator[AnyPart]:
    """The parts of a run of messages; texts that a chunk of a stream divided are one again."""
    for is_piece, group in groupby((part for message in run for part in message.parts), _is_piece):
        parts = list(group)
        texts = [part.text for part in parts if type(part) is Text]
        yield from [parts[0].replace_unchecked(text="".join(texts))] if is_piece else parts


def _is_piece(part: AnyPart) -> bool:
    if type(part) is not Text or not part.text or part.signature is not None:
        return False
    return not (part.extras or part.citations or part.cache)


def unsealed_message(message: Message, dialect: str) -> Message:
    """Open the envelopes in a message."""
    parts = unsealed(message.parts, dialect)
    return message if parts is message.parts else _with_opened(message, parts)


def _with_opened(message: Message, parts: tuple[AnyPart, ...]) -> Message:
    """The message with its restored parts; one that held only envelopes is marked `EMPTIED`."""
    fields = [part for part in parts if type(part) is Opaque and _is_of_message(part)]
    for part in fields:
        known = fields_of(message.extras, part.dialect)
        extras = with_fields(message.extras, part.dialect, {**known, **part.payload})
        message = message.replace_unchecked(extras=extras)
    if fields:
        parts = tuple([part for part in parts if part not in fields])
    origin = message.origin if parts or fields else EMPTIED
    return message.replace_unchecked(parts=parts, origin=origin)


def _is_of_message(part: Opaque) -> bool:
    is_object = isinstance(part.payload, Mapping)
    return is_object and OF_MESSAGE in words_of(part.extras, part.dialect)


def unsealed(parts: tuple[AnyPart, ...], dialect: str) -> tuple[AnyPart, ...]:
    """Open the envelopes in a client's parts; returns the same tuple if there are none."""
    seals = [_seal_of(part) for part in parts]
    has_counterparts = any(map(is_counterpart, parts))
    if not any(seals) and not has_counterparts:
        return parts
    pairs = list(zip(parts, seals, strict=True))
    if has_counterparts:
        told = {seal.shown for seal in seals if seal is not None and seal.shown is not None}
        pairs = [
            (left, seal)
            for part, seal in pairs
            for left in (
                (part,) if seal is not None else without_counterparts((part,), told, dialect)
            )
        ]
        if not any(seals):
            return tuple([part for part, _ in pairs])
    texts = [part for part in parts if type(part) is Text]
    is_flat = any(seal is not None and seal.at is not None for seal in seals)
    if is_flat and len(texts) <= 1:  # otherwise the client has split the text itself
        made = list(_unflattened(pairs, _Cut(texts[0] if texts else None)))
    else:
        made = _restored(pairs)
    return tuple(_with_led(made, [seal for seal in seals if seal is not None]))


def _with_led(parts: list[AnyPart], seals: Iterable[Seal]) -> list[AnyPart]:
    """Give the parts that reasoning led to their ids again, if they still follow it."""
    leads = {seal.part.item_id: seal for seal in seals if seal.leads is not None}
    for number, (part, led) in enumerate(pairwise(parts), 1) if leads else ():
        seal = leads.get(part.item_id) if isinstance(part, Thinking) else None
        if seal is not None and seal.leads is not None and led.item_id is None:
            kind, item_id = seal.leads
            if type(led).__name__ == kind:
                parts[number] = led.replace_unchecked(item_id=item_id, origin=seal.origin)
    return parts


def _seal_of(part: AnyPart) -> Seal | None:
    if not is_sealed(part):
        return None
    data = part.data if isinstance(part, Thinking) else None
    return unwrap(part.signature) or unwrap(data)


_Pairs = Sequence[tuple[AnyPart, Seal | None]]


class _Carried:
    """State that is separate from its part, in carriers."""

    def __init__(self, pairs: _Pairs) -> None:
        self._seals: dict[str, deque[Seal]] = {}
        self._given: set[int] = set()
        for part, seal in pairs:
            if seal is not None and seal.owner is not None and _is_carrier(part):
                self._seals.setdefault(seal.owner, deque()).append(seal)

    def given_to(self, part: AnyPart) -> AnyPart:
        """The part, with its state if a carrier has it."""
        waiting = self._seals.get(fingerprint(part)) if self._seals else None
        if not waiting:
            return part
        seal = waiting.popleft()
        if isinstance(part, ToolCall) and waiting:
            seal = waiting.pop()  # ids are unique, so the last one is the latest version
            waiting.clear()
        self._given.add(id(seal))
        return _stated(part, seal)

    def is_waiting(self, seal: Seal) -> bool:
        """Whether that state was not assigned yet."""
        return id(seal) not in self._given


def _restored(pairs: _Pairs) -> list[AnyPart]:
    """Restore the parts, in the order in which they came."""
    pairs = _behind_their_texts(pairs)
    carried = _Carried(pairs)
    made: list[AnyPart] = []
    pieces = 0  # how many of the last parts came without a seal
    for part, seal in pairs:
        if seal is None:
            made.append(carried.given_to(part))
            pieces += 1
            continue
        if seal.owner is not None and seal.length and not _is_owner(part, seal):
            is_free = not _is_carrier(part) or carried.is_waiting(seal)
            whole = _gathered(made, pieces, part, seal) if is_free else None
            if whole is not None:
                made.append(whole)
                pieces = 0
                continue
        found = [carried.given_to(p) if isinstance(p, _NAMED) else p for p in _opened(part, seal)]
        made += found
        pieces = 0 if found else pieces
    return made


def _behind_their_texts(pairs: _Pairs) -> _Pairs:
    """Move whole parts to where they were: behind the text that they followed.

    A front may put them before it, so that the text is the last thing that a client sees.
    """
    if not any(seal is not None and seal.after is not None for _, seal in pairs):
        return pairs
    said = [fingerprint(part) if seal is None and type(part) is Text else None
            for part, seal in pairs]  # fmt: skip
    following: dict[str, int] = {}  # the next place of each text
    places = list(range(len(pairs)))
    for number in reversed(places):
        part, seal = pairs[number]
        if (own := said[number]) is not None:
            following[own] = number
        elif seal is not None and seal.after is not None and _is_carrier(part):
            places[number] = following.get(seal.after, number)
    last: str | None = None  # the text that nothing but state has followed so far
    for number, (part, seal) in enumerate(pairs):
        if seal is None or not _is_carrier(part):
            last = said[number]
        elif seal.after == last:
            places[number] = number  # it is there already
    order = sorted(range(len(pairs)), key=lambda number: (places[number], number != places[number]))
    return [pairs[number] for number in order]


def _gathered(made: list[AnyPart], pieces: int, holder: AnyPart, seal: Seal) -> AnyPart | None:
    """Merge the last chunks into the sealed part and remove them; None if they don't match.

    Some clients keep each chunk of a stream as a separate part, others join neighbours.
    """
    kind, start = type(seal.part), len(made)
    said = [holder.text] if isinstance(holder, (Text, Thinking)) and type(holder) is kind else []
    missing = seal.length - sum(map(len, said))
    while missing > 0 and start > len(made) - pieces:
        piece = made[start - 1]
        if type(piece) is not kind or not isinstance(piece, (Text, Thinking)):
            break
        said.append(piece.text)
        missing -= len(piece.text)
        start -= 1
    if missing > 0 or start == len(made):
        return None
    first = made[start]
    assert isinstance(first, (Text, Thinking))  # noqa: S101 - the last one that was taken
    before, said[-1] = said[-1][:-missing], said[-1][-missing:]
    whole = first.replace(text="".join(reversed(said)))
    if fingerprint(whole) != seal.owner:
        return None
    made[start:] = [first.replace(text=before)] if missing else []
    return _stated(whole, seal)


def _unflattened(pairs: _Pairs, text: _Cut) -> Iterator[AnyPart]:
    """Restore the original order of parts: splits the one text, and puts calls in between."""
    carried = _Carried(pairs)
    calls = deque(
        carried.given_to(part if seal is None else _owned(part, seal))
        for part, seal in pairs
        if isinstance(part, ToolCall)
    )
    others = [part for part, seal in pairs
              if seal is None and not isinstance(part, (Text, ToolCall))]  # fmt: skip
    called = 0
    yield from (part for part in others if isinstance(part, Thinking))
    for part, seal in pairs:
        if seal is None or isinstance(part, ToolCall):
            continue
        chars, count = seal.at or (0, 0)
        yield from text.until(chars)
        while calls and called < count:
            called += 1
            yield calls.popleft()
        if seal.owner is not None and type(seal.part) is Text:
            yield from text.piece(seal)
        else:
            yield from _opened(part, seal)
    yield from text.rest()
    yield from (carried.given_to(part) for part in others if not isinstance(part, Thinking))
    yield from calls


class _Cut:
    """A text that is the concatenation of several parts."""

    def __init__(self, text: Text | None) -> None:
        self._text = text
        self._place = 0

    def until(self, place: int) -> Iterator[Text]:
        """The text before that position."""
        if self._text is not None and self._place < place:
            said = self._text.text[self._place : place]
            if said:
                yield self._part(said)

    def piece(self, seal: Seal) -> Iterator[AnyPart]:
        """The text that a seal belongs to, if it is unchanged."""
        if self._text is not None and seal.at is not None and seal.at[0] == self._place:
            said = self._text.text[self._place : self._place + seal.length]
            if said and fingerprint(Text(said)) == seal.owner:
                yield _stated(self._part(said), seal)

    def rest(self) -> Iterator[Text]:
        """The remaining text; a whole text even if it is empty."""
        said = "" if self._text is None else self._text.text[self._place :]
        if said or (self._text is not None and not self._place):
            yield self._part(said)

    def _part(self, said: str) -> Text:
        """The next piece; cache hints and citations stay with the last."""
        text, start = self._text, self._place
        self._place += len(said)
        if text is not None and len(text.text) == self._place:
            return text.replace(text=said) if start else text
        return Text(said)


def _is_carrier(part: AnyPart) -> bool:
    return isinstance(part, Thinking) and not part.text


def _is_owner(part: AnyPart, seal: Seal) -> bool:
    """Whether an envelope belongs to the part that holds it; for a call, whatever its id is now."""
    return type(part) is type(seal.part) and (
        isinstance(part, ToolCall) or fingerprint(part) == seal.owner
    )


def _opened(part: AnyPart, seal: Seal) -> Iterator[AnyPart]:
    """Replace a part that holds an envelope; a carrier of another part's state becomes nothing."""
    if isinstance(part, CALLS) and seal.owner is None and isinstance(seal.part, CALLS):
        yield seal.part.replace(origin=seal.origin)  # the envelope was in its counterpart
    elif not _is_carrier(part):
        yield _owned(part, seal)
    elif seal.owner is None and isinstance(seal.part, _WHOLE):
        yield seal.part.replace(origin=seal.origin)


def _owned(part: AnyPart, seal: Seal) -> AnyPart:
    """A part with the state that it holds itself."""
    if _is_owner(part, seal):
        return _stated(part, seal)
    if isinstance(part, Thinking):  # edited, so the signature is no longer valid
        return Thinking(part.text, None, part.form, origin=seal.origin)
    return part.replace(signature=None, origin=None)


def _stated(part: AnyPart, seal: Seal) -> AnyPart:
    """The part as the client sent it, with its state restored."""
    state = seal.part
    if isinstance(part, Thinking):
        return state.replace(text=part.text, origin=seal.origin)
    changes: dict[str, Any] = {
        "signature": state.signature,
        "item_id": state.item_id,
        "origin": seal.origin,
        "extras": {**part.extras, **state.extras},
    }
    if isinstance(part, ToolCall) and isinstance(state, ToolCall):
        changes["wire_id"] = state.wire_id
        if state.kind != part.kind:
            changes |= {"kind": state.kind, "raw": state.raw, "input": None}
    elif isinstance(part, Text) and isinstance(state, Text) and state.citations:
        changes["citations"] = state.citations
    return part.replace_unchecked(**changes)
