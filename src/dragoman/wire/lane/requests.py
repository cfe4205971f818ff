"""Translates plain requests from bytes to bytes, at the speed of JSON parsing.

The general path (decode, fit, encode) is the reference. The lane gives the same bytes, losses,
repairs and context for requests whose conversation is plain (`plain`, `survey`), and None for all
others, which then take the general path. Each dialect has one reader and one writer of plain
conversations (its `lane` module); everything but the conversation is translated by the general path
once and then found by its bytes (`heads`).
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman.wire.encoded import Encoded
from dragoman.wire.envelope import PREFIX, is_signing
from dragoman.wire.lane.attachments import filled, forms_in
from dragoman.wire.lane.backoff import Backoff
from dragoman.wire.lane.call_adjustments import (
    refused_form,
    renamed_marks,
    vouched_marks,
    with_renamed_ids,
)
from dragoman.wire.lane.heads import (
    Asked,
    Given,
    Head,
    Heads,
    Leading,
    build_head,
    called_first,
    given_in,
    sample_of,
)
from dragoman.wire.lane.labels import SAMPLE_TEXT, Labels, labelled, text_label
from dragoman.wire.lane.plain import (
    Form,
    Json,
    Lane,
    Marks,
    Names,
    NotPlain,
    Turns,
    arguments_of,
    encode,
    with_marks,
)
from dragoman.wire.lane.plain_endings import Odd, plain_ending
from dragoman.wire.lane.prefixes import MEMORY, Conversations, Known, growth
from dragoman.wire.lane.surroundings import Surroundings
from dragoman.wire.lane.survey import (
    ATTACHMENTS,
    BEHIND,
    ENDINGS,
    INSTRUCTIONS,
    OPENINGS,
    Survey,
    surveyed,
)
from dragoman.wire.lane.switch import SWITCH
from dragoman.wire.shown_calls import MARK

HEADS = Heads()
SURROUNDINGS = Surroundings()
BACKOFF = Backoff()
"""The caches of this process."""
LONG = 8 * 1024
"""From this many bytes on, a conversation takes the lane even if its head is new (`_is_long`)."""
Forms = tuple[Form, ...]
PASSING = -1
"""In place of a shape: matches any."""
_split = msgspec.json.Decoder(dict[str, Raw]).decode
_whole = msgspec.json.Decoder(Raw).decode
_ENVELOPE, _COUNTERPART = PREFIX.encode(), MARK.encode()
_ESCAPED = re.compile(rb"\\u00[2-7]")
"""An escaped ASCII character that needs no escape."""
_elements = msgspec.json.Decoder(list[Raw]).decode
_TRIES = 8
_HEAD_BYTES = 8 * 1024
_OPENING = 256
"""The number of leading bytes that identify a conversation seen before."""
_ODD = (NotPlain, msgspec.MsgspecError, UnicodeError, RecursionError)


def translated(body: Any, asked: Asked, split: Mapping[str, Raw] | None = None) -> Encoded | None:
    """The request in another dialect; None if it must take the general path.

    `split` are the fields of the body, if they are known.
    """
    if type(body) is not bytes or not SWITCH.is_on:
        return None
    found = SURROUNDINGS.find(body, asked.source) if asked.repair else None
    if found is not None:
        given, raw = found
        try:
            if len(raw) < LONG and not BACKOFF.failures and MEMORY.conversations is None:
                return _translated(given, raw, asked)
        except _ODD:
            pass
        try:
            made = _tried(given, raw, asked)
            if made is None:
                _whole(raw)
        except _ODD:
            pass  # no whole value: it has further fields, whose end is that of a known body
        else:
            return made
    return _split_and_tried(body, asked, split)


def _split_and_tried(body: bytes, asked: Asked, split: Mapping[str, Raw] | None) -> Encoded | None:
    """Like `_tried`, for a body whose surroundings are not known."""
    try:
        fields = _split(body) if split is None else dict(split)
        raw = fields.pop(asked.source.field)
    except (*_ODD, KeyError):
        return None
    given = given_in(fields, asked.source)
    try:
        if not asked.repair and (passed := _passed(body, given, raw, asked)) is not None:
            return passed
        if not _is_long(len(raw), given) and not HEADS.was_seen((given.sample, asked.key)):
            return None  # a single request is not worth a head
        made = _tried(given, raw, asked)
    except _ODD:
        BACKOFF.record_failure(given.sample)
        return None
    if asked.repair and (not given.labels or HEADS.was_seen((given.sample, given.labels))):
        SURROUNDINGS.keep(body, raw, asked)
    return made


def _tried(given: Given, raw: Json, asked: Asked) -> Encoded | None:
    """The request, if its conversation is plain; raises `DecodeError` if that is not JSON."""
    if len(raw) >= LONG:
        if _ends_odd(raw, asked.source):
            return None
    elif BACKOFF.failures and BACKOFF.should_skip(given.sample):
        return None
    kept = MEMORY.conversations
    try:
        if kept is None or asked.source.has_places:
            made = _translated(given, raw, asked)
        else:
            made = _translated_growth(given, bytes(raw).strip(), asked, kept)
    except (NotPlain, msgspec.ValidationError) as odd:
        made = _tried_ending(given, raw, asked, odd)
    except _ODD as odd:
        if type(odd) is msgspec.DecodeError:
            raise
        BACKOFF.record_failure(given.sample)
        return None
    if made is not None and BACKOFF.failures:
        BACKOFF.record_success(given.sample)
    return made


def _tried_ending(given: Given, raw: Json, asked: Asked, odd: Odd) -> Encoded | None:
    try:
        return _translated_ending(given, raw, asked, odd)
    except _ODD:
        BACKOFF.record_failure(given.sample)
        return None


def _translated_ending(given: Given, raw: Json, asked: Asked, odd: Odd) -> Encoded | None:
    """Like `_translated`, for a conversation that is plain only from some message on.

    The part before is only worth a head if it comes again.
    """
    opening = bytes(memoryview(raw)[:_OPENING])
    if len(opening) < LONG and not HEADS.was_seen((given.sample, opening)):
        raise NotPlain
    beginning, ending, turns, marks, (shape, names, _) = plain_ending(raw, asked.source, odd)
    if _is_ours(b",".join(beginning), asked.source):
        return None  # the meaning of an envelope may depend on more than its bytes
    forms: Forms = ()
    if shape & ATTACHMENTS:
        forms, marks = forms_in(turns, marks)
    shape = with_marks(shape, marks) | BEHIND
    head = _head(given, beginning, shape, forms, names, asked, 0)
    if head is None or not head.takes_ids(names):
        return None
    if head.reads_arguments:
        _check_arguments(turns)
    if head.vouch is not None:
        marks = vouched_marks(turns, marks, 0, groups=asked.source.groups_results)
    marks = [(kind, message + head.first, part) for kind, message, part in marks]
    if not head.passes:
        ending = _written(turns, [], names, head)
    return _encoded(ending, head, marks, given.labels)


def _ends_odd(raw: Json, lane: Lane) -> bool:
    """Whether the last message of a long conversation can't be plain, so that reading is pointless.

    It begins after one of the last `},`, if the rest is one whole value; else it is unknown.
    """
    end = bytes(memoryview(raw)[-LONG:])
    place = len(end)
    for _ in range(_TRIES):
        place = end.rfind(b"},", 0, place)
        if place < 0:
            break
        last = b"[" + end[place + 2 :]
        try:
            is_whole = len(_elements(last)) == 1
        except msgspec.MsgspecError:
            continue
        return is_whole and _is_odd(last, lane)
    return False


def _is_odd(raw: Json, lane: Lane) -> bool:
    try:
        lane.read(raw)
    except msgspec.ValidationError:
        return True
    except _ODD:
        pass  # perhaps only because it is alone
    return False


def _translated(given: Given, raw: Json, asked: Asked) -> Encoded | None:
    turns, marks = asked.source.read(raw)
    shape, names, leading = surveyed(turns)
    if not marks and not leading and not shape & ATTACHMENTS:  # most requests, so kept short
        kept = HEADS.find((given.sample, b"", shape, (), asked.key), given.known)
        head = None if kept is None else kept.head
        items: Json | None = None
        if head is None or given.labels:
            pass
        elif head.is_simple:
            if not names or (head.accepts(names) and head.functions.issuperset(names.values())):
                items = encode(head.lane.write(turns, names))
        elif head.passes and not names and not head.is_begun:
            items = raw
        if head is not None and items is not None:
            headers = head.headers
            return Encoded(
                None,
                head.path,
                headers.copy() if type(headers) is dict else headers,
                head.losses.fixed,
                head.repairs.fixed,
                head.context,
                b"".join((head.before, items, head.after)),
            )
    return _translated_specially(given, raw, asked, turns, marks, (shape, names, leading))


def _translated_specially(
    given: Given, raw: Json, asked: Asked, turns: Turns, marks: Marks, survey: Survey
) -> Encoded | None:
    """Translate a conversation with more than plain texts and calls, or whose head is new."""
    shape, names, leading = survey
    given, leading = _with_text_label(given, leading)
    forms: Forms = ()
    if shape & ATTACHMENTS:
        forms, marks = forms_in(turns, marks)
    if marks:
        shape = with_marks(shape, marks)
    head = _head(given, leading, shape, forms, names, asked, len(raw))
    if head is None:
        return None
    if names and not head.takes_ids(names):
        shape |= refused_form(names, head.ids)
        head = _head(given, leading, shape, forms, names, asked, len(raw))
        if head is None:
            return None
        if not head.passes:
            said = turns[len(leading) :]
            marks = renamed_marks(said, marks, head.first, groups=asked.source.groups_results)
            names = with_renamed_ids(said, names, head.ids)
    if head.reads_arguments and names:
        _check_arguments(turns)
    if head.passes:
        return _encoded(memoryview(raw), head, marks, given.labels)
    if head.vouch is not None:
        said = turns[len(leading) :]
        marks = vouched_marks(said, marks, head.first, groups=asked.source.groups_results)
    return _encoded(_written(turns, leading, names, head), head, marks, given.labels)


def _with_text_label(given: Given, leading: Turns) -> tuple[Given, Turns]:
    """The text of a system prompt as a label, with a sample in its place.

    Raises `NotPlain` if it looks like a sample.
    """
    if len(leading) != 1 or type(leading[0]) not in INSTRUCTIONS:
        return given, leading
    (turn,) = leading
    if type(turn.content) is not str:
        return given, leading
    labels = (*given.labels, text_label(turn.content))
    return Given(given.fields, given.known, given.sample, labels), [
        replace(turn, content=SAMPLE_TEXT)
    ]


def _translated_growth(
    given: Given, raw: bytes, asked: Asked, kept: Conversations
) -> Encoded | None:
    """Like `_translated`, for a conversation that is remembered, or whose beginning is."""
    before = kept.find(asked.key, given.known, raw)
    grown = None if before is None else growth(raw, before, asked.source)
    if before is None or grown is None:
        turns, marks = asked.source.read(raw)
        shape, names, leading = surveyed(turns)
        fresh = names
    else:
        turns, marks, names, leading = grown.turns, grown.marks, grown.names, before.leading
        shape, fresh = grown.shape, grown.fresh
    if shape & (ATTACHMENTS | OPENINGS):
        return _translated(given, raw, asked)
    begun, as_given = leading, given
    given, leading = _with_text_label(given, leading)
    head = _head(given, leading, with_marks(shape, marks), (), names, asked, len(raw))
    if head is None:
        return None
    if head.vouch is not None or (fresh and not head.takes_ids(fresh)):
        return _translated(as_given, raw, asked)
    if fresh and head.reads_arguments:
        _check_arguments(turns)
    if head.passes:
        return _encoded(raw, head, marks, given.labels)
    if head.is_text:
        return _encoded(_written(turns, leading, names, head), head, marks, given.labels)
    if before is None or grown is None:
        items = _written(turns, leading, names, head)
        found = Known(raw[:-1].rstrip(), items, shape & ~ENDINGS, names, begun, marks, len(turns))
    else:
        more = encode(head.lane.write(turns, names))
        items = b"".join((memoryview(before.items)[:-1], b",", memoryview(more)[1:]))
        found = grown.known(raw[:-1].rstrip(), items)
    kept.keep(asked.key, given.known, found, before)
    return _encoded(items, head, marks, given.labels)


def _head(
    given: Given,
    leading: Leading,
    shape: int,
    forms: Forms,
    names: Names,
    asked: Asked,
    length: int,
) -> Head | None:
    """The head of a request whose conversation has this shape; None if it can't use the lane."""
    before = encode(leading) if leading else b""
    led = sample_of(before) if leading else b""
    key: tuple[Hashable, ...] = (given.sample, led, shape, forms, asked.key)
    kept = HEADS.find(key, given.known, before)
    head = None if kept is None else kept.head
    if kept is None:
        if leading and not _is_long(length, given) and not HEADS.was_seen(key):
            return None
        head = build_head(given, leading, shape, forms, called_first(names, given), asked)
        HEADS.keep(key, given.known, head, before)
    if head is None or not names or head.functions.issuperset(names.values()):
        return head
    functions = tuple(sorted(set(names.values())))  # some are undeclared
    key = (*key, functions)
    kept = HEADS.find(key, given.known, before)
    if kept is not None:
        return kept.head
    head = build_head(given, leading, shape, forms, functions, asked)
    HEADS.keep(key, given.known, head, before)
    return head


def _is_long(length: int, given: Given) -> bool:
    """Whether a conversation is worth a head that may never be used again.

    The larger the head, the longer making it takes; with labels, it is translated twice.
    """
    weight = len(given.known) * (2 if given.labels else 1)
    return length >= LONG * (1 + weight // _HEAD_BYTES)


def _written(turns: Turns, leading: Turns, names: Names, head: Head) -> bytes:
    said = turns[len(leading) :] if leading else turns
    if head.attachments:
        said = filled(said, head.attachments)
        if head.lane.takes_text and len(said) == 1 and type(said[0].content) is str:
            raise NotPlain  # a single text, which may be encoded differently
    if head.is_text:
        return encode(said[0].content)
    items = head.lane.write(said, names)
    if head.vouch is not None:
        head.vouch(items)
    return encode(items)


def _passed(body: bytes, given: Given, raw: Json, asked: Asked) -> Encoded | None:
    """Pass a conversation on unchanged, within its dialect and for an unknown host.

    Its content is not inspected: numbers that no float can hold, and values that nest deeper than
    the model allows, are passed on too. So is an envelope hidden by escapes, unless envelopes are
    signed.
    """
    key = (given.sample, PASSING, asked.key)
    kept = HEADS.find(key, given.known)
    head = None if kept is None else kept.head
    if kept is None:
        head = build_head(given, [], 0, (), (), asked)
        HEADS.keep(key, given.known, head)
    if head is None or not head.passes or head.is_named:
        return None
    opening = bytes(memoryview(raw)[:1])
    if opening != b"[" and not (opening == b'"' and asked.source.takes_text):
        return None
    if _is_ours(body, asked.source):
        return None
    if not body.isascii():
        body.decode()  # raises if it is not UTF-8
    return _encoded(memoryview(raw), head, (), given.labels)


def _is_ours(body: bytes, lane: Lane) -> bool:
    """Whether it may contain something that a front has written, which must be opened."""
    if _ENVELOPE in body or (lane.shows_calls and _COUNTERPART in body):
        return True
    return is_signing() and _ESCAPED.search(body) is not None


def _check_arguments(turns: Turns) -> None:
    """Raise if the arguments of a call are not an object."""
    for turn in turns:
        for call in getattr(turn, "tool_calls", None) or ():
            arguments_of(call)


def _encoded(items: bytes | memoryview, head: Head, marks: Marks, labels: Labels) -> Encoded:
    """Assemble the result, with copies of everything mutable in the shared head."""
    if head.is_begun:
        items = items[1:]
    headers = head.headers
    before, after = head.before, head.after
    if labels:
        before, after = labelled(before, labels), labelled(after, labels)
    return Encoded(
        None,
        head.path,
        headers.copy() if type(headers) is dict else headers,
        head.losses.of(marks) if marks else head.losses.fixed,
        head.repairs.of(marks) if marks else head.repairs.fixed,
        head.context,
        b"".join((before, items, after)),
    )
