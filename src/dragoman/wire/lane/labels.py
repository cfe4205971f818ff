"""Labels: fields that tell who asks, or which cache to look in, and nothing else.

Each user has another one, so that a head with one in it would never come again. A sample stands in
the place of a plain label, and the head is found with that. What becomes of the label is what
becomes of two samples on the general path, which have to fare alike: it goes on somewhere, or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Raw

from dragoman.wire.encoded import Encoded

Labels = tuple[tuple[str, bytes, bytes], ...]
"""Their fields, the samples, and the labels that these stand for, as JSON."""
NO_LABELS: Labels = ()
_PLAIN = re.compile(rb'"(?!dragoman-label)[A-Za-z0-9_-]{1,64}"')
_SAMPLE, _OTHER = b'"dragoman-label-%d"', b'"%064d"'
"""The first is no label: it would be taken for a sample."""


def with_samples(fields: dict[str, Raw], names: Iterable[str]) -> Labels:
    """Put samples in the place of those labels, if all of them are plain and no two are alike."""
    found = {name: bytes(fields[name]) for name in sorted(names) if name in fields}
    if len(set(found.values())) < len(found) or not all(map(_PLAIN.fullmatch, found.values())):
        return NO_LABELS
    labels: list[tuple[str, bytes, bytes]] = []
    for number, (name, value) in enumerate(found.items()):
        labels.append((name, _SAMPLE % number, value))
        fields[name] = Raw(_SAMPLE % number)
    return tuple(labels)


def with_others(fields: Mapping[str, Raw], labels: Labels) -> dict[str, Raw]:
    """The fields, with other samples."""
    others = {name: Raw(_OTHER % number) for number, (name, _, _) in enumerate(labels)}
    return {**fields, **others}


def fare_alike(made: Encoded, other: Encoded, labels: Labels) -> bool:
    """Whether nothing but the labels differs in what became of both kinds of samples."""
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
    """The bytes of a head, with the labels themselves."""
    for _, sample, value in labels:
        head = head.replace(sample, value)
    return head
