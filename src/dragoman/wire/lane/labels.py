"""Labels: what differs from request to request, and is not looked at.

These are fields that identify the user or select a cache, and nothing else; and the text of a
system prompt, which often has the time in it. A head that contained one would never be reused: a
sample replaces it, and the head is looked up with that. The general path must treat two different
samples alike: then the real label is inserted where the sample was, or left out as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Raw

from dragoman.wire.encoded import Encoded
from dragoman.wire.lane.plain import NotPlain, encode

Labels = tuple[tuple[str, bytes, bytes], ...]
"""Field, sample, and the actual label as JSON, for each label; a text comes last."""
NO_LABELS: Labels = ()
_PLAIN = re.compile(rb'"(?!dragoman-label)[A-Za-z0-9_-]{1,64}"')
_SAMPLE, _OTHER = b'"dragoman-label-%d"', b'"%064d"'
"""The first is excluded as an actual label: it would be taken for a sample."""
_OTHER_TEXT = "%064d"
_TEXT = ""
"""In place of a field's name, for a text."""
_RESERVED = "dragoman-label"
SAMPLE_TEXT = f"{_RESERVED}-text"
"""In place of a text."""
_SAMPLED_TEXT = encode(SAMPLE_TEXT)


def with_samples(fields: dict[str, Raw], names: Iterable[str]) -> Labels:
    """Replace labels with samples, if all are plain and distinct."""
    found = {name: bytes(fields[name]) for name in sorted(names) if name in fields}
    if len(set(found.values())) < len(found) or not all(map(_PLAIN.fullmatch, found.values())):
        return NO_LABELS
    labels: list[tuple[str, bytes, bytes]] = []
    for number, (name, value) in enumerate(found.items()):
        labels.append((name, _SAMPLE % number, value))
        fields[name] = Raw(_SAMPLE % number)
    return tuple(labels)


def text_label(text: str) -> tuple[str, bytes, bytes]:
    """The label for the text of instructions; raises `NotPlain` if it looks like a sample."""
    if _RESERVED in text:
        raise NotPlain
    return _TEXT, _SAMPLED_TEXT, encode(text)


def with_others(fields: Mapping[str, Raw], labels: Labels) -> dict[str, Raw]:
    """The fields with the other samples."""
    others = {
        name: Raw(_OTHER % number) for number, (name, _, _) in enumerate(labels) if name != _TEXT
    }
    return {**fields, **others}


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
