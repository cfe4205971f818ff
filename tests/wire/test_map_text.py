"""`map_text` as a redaction: no address planted in recorded traffic is sent to anyone."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import dragoman
from dragoman import DragomanError, Request, Response
from dragoman.model.jsontext import dumps
from dragoman.model.value import Value
from tests.corpus import Corpus, CorpusNotFoundError
from tests.wire.recorded import Body, bodies

DIALECTS = dragoman.dialects()
PLANTED = "planted.7@example.org"
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,3}")
_MOST_PATHS = 6
"""Bodies in which a place is planted, of those that have it."""
Path = tuple[str | int, ...]


def redacted(text: str) -> str:
    """The text without addresses."""
    return _ADDRESS.sub("[e-mail]", text)


def strings(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every string of a JSON value with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from strings(inner, (*path, index))


def _planted(text: str) -> Iterator[str]:
    """The text with the address at its end, and in a string or a key within it if it is JSON."""
    try:
        inner = json.loads(text)
    except ValueError:
        inner = None
    if isinstance(inner, dict):
        yield json.dumps({**inner, "note": f"by {PLANTED}"})
        yield json.dumps({**inner, PLANTED: {"list": [f"<{PLANTED}>"]}})
        yield json.dumps({**inner, "note": "x"})[:-1] + ', "note": "planted.7\\u0040example.org"}'
    else:
        yield f"{text} {PLANTED}"
        yield PLANTED


def _with(wire: Any, path: Path, text: str) -> Any:
    made = copy.deepcopy(wire)
    owner = made
    for step in path[:-1]:
        owner = owner[step]
    owner[path[-1]] = text
    return made


def _recorded(dialect: str, kind: str) -> list[Body]:
    try:
        return [body for body in bodies(Corpus.open(), dialect) if body.kind == kind]
    except CorpusNotFoundError:
        pytest.skip("no recorded traffic")


def planted(dialect: str, kind: str) -> Iterator[tuple[Body, Path, Any]]:
    """Recorded bodies with the address at one place each, every kind of place several times."""
    seen: dict[tuple[Any, ...], int] = {}
    for body in _recorded(dialect, kind):
        for path, text in strings(body.wire):
            place = tuple("*" if isinstance(step, int) else step for step in path)
            seen[place] = seen.get(place, 0) + 1
            if seen[place] <= _MOST_PATHS:
                for made in _planted(text):
                    yield body, path, _with(body.wire, path, made)


def decoded(body: Body, wire: Any) -> Value | None:
    """The value; None for a body that can't be read with an address at that place."""
    changed = Body(body.dialect, body.kind, wire, body.path, body.recording)
    try:
        return changed.decode()
    except DragomanError:
        return None


def written(value: Value) -> Iterator[tuple[str, bytes]]:
    """What every dialect makes of it, where it can: body, path and headers."""
    for name in DIALECTS:
        dialect = dragoman.dialect(name)
        try:
            if isinstance(value, Request):
                made = dialect.encode_request(value)
            else:
                assert isinstance(value, Response)
                made = dialect.encode_response(value)
        except DragomanError:
            continue
        yield (
            name,
            dumps([made.body, getattr(made, "path", ""), dict(getattr(made, "headers", {}))]),
        )


@pytest.mark.parametrize("kind", ["request", "response"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_planted_address_survives(dialect: str, kind: str) -> None:
    """An address at any string of a recorded body is gone in every dialect after a redaction."""
    tried, sent, left = 0, 0, []
    for body, path, wire in planted(dialect, kind):
        value = decoded(body, wire)
        if value is None:
            continue
        tried += 1
        clean = value.map_text(redacted)
        if any(PLANTED.encode() in text for _, text in written(value)):
            sent += 1
        left += [(path, name) for name, text in written(clean) if PLANTED.encode() in text]
    assert left == []
    assert tried > 50
    assert sent > tried / 4  # the same bodies unredacted


@pytest.mark.parametrize("dialect", DIALECTS)
def test_nothing_to_change_changes_nothing(dialect: str) -> None:
    """Recorded bodies in which a function finds nothing are returned themselves."""
    for body in [*_recorded(dialect, "request"), *_recorded(dialect, "response")]:
        value = body.decode()
        assert value.map_text(lambda text: text) is value
        assert value.map_text(lambda text: f"{text} "[:-1]) is value


def test_no_address_survives_in_what_clients_carry() -> None:
    """State that a client of another dialect brought back, in our envelopes, is redacted too."""
    front, count = dragoman.dialect("anthropic"), 0
    for body, path, wire in planted("openai-responses", "response"):
        value = decoded(body, wire)
        if not isinstance(value, Response) or path[0] != "output":
            continue
        told = {"role": "assistant", "content": front.encode_response(value).body["content"]}
        back = front.decode_request({"model": "m", "max_tokens": 9, "messages": [
            {"role": "user", "content": "x"}, told, {"role": "user", "content": "y"}]})  # fmt: skip
        clean = back.map_text(redacted)
        count += any(PLANTED.encode() in text for _, text in written(back))
        assert [name for name, text in written(clean) if PLANTED.encode() in text] == [], path
    assert count > 50
