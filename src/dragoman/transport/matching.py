"""Compares requests, and finds where they differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import dumps_sorted, loads

_STEP = re.compile(r"\[(\*|\d+)\]|\.?([^.\[\]]+)")
_SAFE_KEY = re.compile(r"[A-Za-z_$][\w$-]{0,39}", re.ASCII)
_MAX_DIFFERENCES = 200  # maximum differences counted: more is simply another request

Steps = tuple[str, ...]


class Asked(NamedTuple):
    """A request, reduced to what is compared."""

    method: str
    place: str
    body: Any
    """The JSON value, or the bytes if it isn't JSON."""

    @property
    def key(self) -> tuple[str, str, bytes]:
        """Equal for equal requests, whatever the order of their fields."""
        return (self.method, self.place, _canonical(self.body))


def asked(method: str, place: str, body: bytes | None, ignored: Sequence[Steps] = ()) -> Asked:
    """A request to compare, without the ignored parts of its body."""
    value = _value(body)
    for steps in ignored:
        value = _without(value, steps)
    return Asked(method.upper(), place, value)


def steps_of(path: str) -> Steps:
    """The steps of a path into JSON.

    >>> steps_of("$.messages[*].id")
    ('messages', '*', 'id')
    """
    rest = path.removeprefix("$")
    steps = tuple(found[1] or found[2] for found in _STEP.finditer(rest))
    if not steps or "".join(found[0] for found in _STEP.finditer(rest)) != rest:
        msg = "an ignored path must look like metadata.user_id or messages[*].id"
        raise InvalidInputError(msg)
    return steps


def _value(body: bytes | None) -> Any:
    if body is None or body.lstrip()[:1] not in {b"{", b"["}:
        return body
    try:
        return loads(body)
    except InvalidInputError:
        return body


def _without(value: Any, steps: Steps) -> Any:
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        hit = {key for key in value if step in {"*", key}}
        kept = {key: item for key, item in value.items() if rest or key not in hit}
        return {key: _without(item, rest) if key in hit else item for key, item in kept.items()}
    if isinstance(value, list):
        return [
            _without(item, rest) if rest and step in {"*", str(place)} else item
            for place, item in enumerate(value)
            if rest or step not in {"*", str(place)}
        ]
    return value


def _canonical(value: Any) -> bytes:
    if isinstance(value, bytes) or value is None:
        return value or b""
    return dumps_sorted(value)


# --- differences


def differences(one: Asked, other: Asked) -> list[str]:
    """The paths at which two requests differ, without their values."""
    return list(islice(_differences(one, other), _MAX_DIFFERENCES))


def _differences(one: Asked, other: Asked) -> Iterator[str]:
    if one.method != other.method:
        yield "the method"
    path, query = one.place.partition("?")[::2]
    other_path, other_query = other.place.partition("?")[::2]
    yield from _at_steps(path.split("/"), other_path.split("/"))
    if query != other_query:
        yield "the query"
    yield from _at(one.body, other.body, "$")


def _at_steps(one: list[str], other: list[str]) -> Iterator[str]:
    """The URL path segments that differ; a wrong URL outweighs anything in the body."""
    if one == other:
        return
    if len(one) != len(other):
        yield "the URL path"
    else:
        places = [
            place for place, pair in enumerate(zip(one, other, strict=True)) if len({*pair}) > 1
        ]
        yield from (f"segment {place} of the URL path" for place in places)


def _at(one: Any, other: Any, path: str) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            place = f"{path}.{_shown(key)}"
            if key in one and key in other:
                yield from _at(one[key], other[key], place)
            else:
                yield f"{place} ({'only' if key in one else 'not'} in the request)"
    elif isinstance(one, list) and isinstance(other, list):
        for index, (left, right) in enumerate(zip(one, other, strict=False)):
            yield from _at(left, right, f"{path}[{index}]")
        if len(one) != len(other):
            yield f"{path} ({len(one)} items in the request, {len(other)} in the recording)"
    elif one != other or isinstance(one, bool) is not isinstance(other, bool):
        yield path


def _shown(key: str) -> str:
    """A field name; hidden if it may be user content."""
    return key if _SAFE_KEY.fullmatch(key) else "*"
