"""Labels: what differs from request to request, and is not looked at.

These are fields that identify the user or the request or select a cache, and nothing else, with
the values of `metadata`; and the text of a system prompt, which often has the time in it. A head
that contained one would never be reused: a sample replaces it, and the head is looked up with that.
The general path must treat two different samples alike: then the real label is inserted where the
sample was, or left out as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import MsgspecError, Raw
from msgspec.json import Decoder

from dragoman.wire.encoded import Encoded
from dragoman.wire.lane.plain import NotPlain, encode

_Path = tuple[str, ...]
Labels = tuple[tuple[_Path, bytes, bytes], ...]
"""Place in the body, sample, and the actual label as JSON, for each label; a text comes last."""
NO_LABELS: Labels = ()
_PLAIN = re.compile(rb'"(?!dragoman-label)[A-Za-z0-9_-]{1,64}"')
_PLAIN_KEY = re.compile(r"(?!dragoman-label)[A-Za-z0-9_.-]{1,64}")
_MAX_MEMBERS = 16
_SAMPLE, _OTHER = b'"dragoman-label-%d"', b'"%064d"'
"""The first is excluded as an actual label: it would be taken for a sample."""
_OTHER_TEXT = "%064d"
_TEXT: _Path = ()
"""In place of a path, for a text."""
_RESERVED = "dragoman-label"
SAMPLE_TEXT = f"{_RESERVED}-text"
"""In place of a text."""
_SAMPLED_TEXT = encode(SAMPLE_TEXT)
_members = Decoder(dict[str, Raw]).decode


def with_samples(fields: dict[str, Raw], names: Iterable[str]) -> Labels:
    """Replace labels with samples, if all are plain and distinct."""
    found: dict[_Path, bytes] = {}
    for name in sorted(names):
        raw = bytes(fields.get(name, b""))
        if raw[:1] == b"{":
            found |= {(name, key): bytes(value) for key, value in _plain_members(raw).items()}
        elif raw:
            found[name,] = raw
    if len(set(found.values())) < len(found) or not all(map(_PLAIN.fullmatch, found.values())):
        return NO_LABELS
    labels = [(path, _SAMPLE % number, raw) for number, (path, raw) in enumerate(found.items())]
    for path, sample, _ in labels:
        _put(fields, path, sample)
    return tuple(labels)


def _plain_members(raw: bytes) -> dict[str, Raw]:
    """The members of an object if their values are plain labels; else nothing."""
    try:
        members = _members(raw)
    except (MsgspecError, UnicodeError):
        return {}
    is_plain = (
        len(members) <= _MAX_MEMBERS
        and raw.count(b":") == len(members)  # else a key occurs twice, or a value is an object
        and all(map(_PLAIN_KEY.fullmatch, members))
        and all(map(_PLAIN.fullmatch, map(bytes, members.values())))
    )
    return members if is_plain else {}


def _put(fields: dict[str, Raw], path: _Path, value: bytes) -> None:
    name, *rest = path
    if rest:
        value = encode({**_members(fields[name]), rest[0]: Raw(value)})
    fields[name] = Raw(value)


def text_label(text: str) -> tuple[_Path, bytes, bytes]:
    """The label for the text of instructions; raises `NotPlain` if it looks like a sample."""
    if _RESERVED in text:
        raise NotPlain
    return _TEXT, _SAMPLED_TEXT, encode(text)


def with_others(fields: Mapping[str, Raw], labels: Labels) -> dict[str, Raw]:
    """The fields with the other samples."""
    others = dict(fields)
    for number, (path, _, _) in enumerate(labels):
        if path != _TEXT:
            _put(others, path, _OTHER % number)
    return others


def with_other_text(leading: Any, labels: Labels) -> Any:
    """The instructions with the other sample, if their text is a label."""
    if labels[-1][0] != _TEXT:
        return leading
    return [type(turn)(_OTHER_TEXT % (len(labels) - 1)) for turn in leading]


def fare_alike(made: Encoded, other: Encoded, labels: Labels) -> bool:
    """Whether the translations with both kinds of samples differ only in the labels."""
    raw = made.to_bytes()
    for number, (_, sample, _) in enumerate(labels):
        raw = raw.replace(sample, _OTHER % number)
    return raw == other.to_bytes() and _rest(made) == _rest(other)


def _rest(encoded: Encoded) -> tuple[Any, ...]:
    context = encoded.context
    return (
        encoded.losses, encoded.repairs, encoded.path, dict(encoded.headers), dict(context.names),
        dict(context.calls), context.undos.keys(), context.output is None, context.limit,
        context.ends_with_done, context.request,
    )  # fmt: skip


def labelled(head: bytes, labels: Labels) -> bytes:
    """The bytes of a head, with the actual labels inserted."""
    for _, sample, value in labels:
        head = head.replace(sample, value)
    return head
