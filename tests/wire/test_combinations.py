"""Bodies mixed from others: with parts dropped, repeated or reordered, without ids, with context.

They are unlike any body written by hand. They round-trip, and for the vendor's own host both
invariants hold: no error is no change, and every change is reported.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from tests.wire.recorded import normal
from tests.wire.test_hostile import FIXTURES
from tests.wire.test_repairs import UNSEEN
from tests.wire.test_rules import BOOKS

CONTEXT: dict[str, list[dict[str, Any]]] = {
    "openai-responses": [
        {"previous_response_id": "resp_1"}, {"conversation": "c"}, {"conversation": {"id": "c"}},
        {"prompt": {"id": "pmpt_1", "version": "2", "variables": {"a": "b"}}}, {"store": False},
    ],
    "anthropic": [{"thread": {"id": "th_1"}}, {"container": "c_1"}],
    "gemini": [{"cachedContent": "cachedContents/1"}, {"continuationToken": "t"},
               {"cached_content": "cachedContents/1"}],
    "openai-chat": [{"store": True}],
    "ollama": [{"keep_alive": 0}],
}  # fmt: skip
OWN = ("shape", "limit", "W65", "W105")
"""Rules about values."""
IDS = ("id", "call_id", "tool_call_id", "tool_use_id", "name", "status", "type")


@cache
def pieces(dialect: str) -> tuple[list[Any], list[dict[str, Any]]]:
    """The messages and the other fields of all available bodies."""
    field = dragoman.dialect(dialect).messages_field
    found = [case.wrong for book in BOOKS if book.dialect == dialect for case in book.cases]
    found += [case.right for book in BOOKS if book.dialect == dialect for case in book.cases]
    found += [body for name, body in UNSEEN if name == dialect]
    for file in sorted((FIXTURES / dialect.replace("-", "_")).glob("*.json")):
        wire = json.loads(file.read_text(encoding="utf-8")).get("wire")
        found += [wire] if isinstance(wire, dict) else []
    messages = [one for body in found if isinstance(body.get(field), list) for one in body[field]]
    rest = [{**{key: body[key] for key in body if key != field}, "model": "m"} for body in found]
    return [one for one in messages if isinstance(one, dict)], rest


@st.composite
def bodies(draw: st.DrawFn, dialect: str) -> dict[str, Any]:
    """A body made of unrelated pieces."""
    messages, rest = pieces(dialect)
    chosen = draw(st.lists(st.sampled_from(messages), min_size=1, max_size=7))
    chosen = draw(st.permutations([*chosen, *chosen[: draw(st.integers(0, 1))]]))
    chosen = [_without_ids(draw, one) for one in json.loads(json.dumps(chosen))]
    body = dict(draw(st.sampled_from(rest)))
    if draw(st.booleans()):
        body |= draw(st.sampled_from(CONTEXT[dialect]))
    return {**body, dragoman.dialect(dialect).messages_field: chosen}


def _without_ids(draw: st.DrawFn, message: dict[str, Any]) -> dict[str, Any]:
    """Sometimes removes one field from a message, at any depth."""
    if draw(st.integers(0, 3)):
        return message
    key = draw(st.sampled_from(IDS))
    pending: list[Any] = [message]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            node.pop(key, None)
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return message


@pytest.mark.parametrize("dialect", dragoman.dialects())
@given(data=st.data())
def test_mixed_bodies_round_trip(dialect: str, data: st.DataObject) -> None:
    """For an unknown host, any combination is sent unchanged, without reports."""
    body = data.draw(bodies(dialect))
    speaker = dragoman.dialect(dialect)
    encoded = speaker.encode_request(speaker.decode_request(body))
    assert normal(json.loads(encoded.to_bytes())) == normal(body)
    assert (encoded.losses, encoded.repairs) == ((), ())


@pytest.mark.parametrize("dialect", dragoman.dialects())
@given(data=st.data())
def test_mixtures_keep_the_invariants_at_the_vendor(dialect: str, data: st.DataObject) -> None:
    """If no rule calls it an error, it is unchanged; every change is reported."""
    body = data.draw(bodies(dialect))
    speaker = dragoman.dialect(dialect)
    encoded = speaker.encode_request(speaker.decode_request(body), speaker.target)
    is_same = normal(json.loads(encoded.to_bytes())) == normal(body)
    errors = [v for v in speaker.check(body, target=speaker.target) if v.severity == "error"]
    assert is_same or errors
    assert is_same or encoded.losses or encoded.repairs


@pytest.mark.parametrize("target", dragoman.dialects())
@pytest.mark.parametrize("source", dragoman.dialects())
@given(data=st.data())
def test_mixed_bodies_can_be_translated(source: str, target: str, data: st.DataObject) -> None:
    """Every dialect gets a valid message order, the same on every call.

    Invalid values (such as data that is no base64) are left unchanged.
    """
    if source == target:
        return
    field = dragoman.dialect(source).messages_field
    body = {"model": "m", field: data.draw(bodies(source))[field]}
    encoded = dragoman.translate(body, source=source, target=target)
    found = [each for each in dragoman.dialect(target).check(encoded.body) if each.rule not in OWN]
    assert [each for each in found if each.severity == "error"] == []
    again = dragoman.translate(body, source=source, target=target)
    assert again.to_bytes() == encoded.to_bytes()
