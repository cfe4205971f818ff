"""The fast path for deltas that differ from the previous one only in their text."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.model.events import Event
from dragoman.wire.lane import switch
from tests.wire.openai_chat.streams import DONE, call, chosen, chunk, decoded, frame

NULLS = {"role": None, "refusal": None, "tool_calls": None, "function_call": None}


def _detail(text: str, **fields: Any) -> dict[str, Any]:
    detail = {"type": "reasoning.text", "text": text, "index": 0, **fields}
    return {"reasoning": text, "reasoning_details": [detail]}


DELTAS: dict[str, list[dict[str, Any]]] = {
    "text": [{"content": text} for text in ("a", "b", "", "c")],
    "text among nulls": [{**NULLS, "content": text} for text in ("a", "b", "c")],
    "a field more": [{"content": "a"}, {"content": "b", "odd": "x"}, {"content": "c"}],
    "a field that changes": [{"content": "a", "odd": odd} for odd in ("x", "x", "y", "x")],
    "another role": [{"content": "a", "role": role} for role in ("assistant", "user", "user")],
    "a refusal that grows": [{"content": "a", "refusal": "no"}] * 3,
    "a sound that is empty": [{"content": "a", "audio": {}}] * 3,
    "thinking": [{**NULLS, "content": "", "reasoning": text} for text in ("a", "b", "c")],
    "thinking written twice": [
        {"reasoning": one, "reasoning_content": other}
        for one, other in (("a", "a"), ("b", "b"), ("c", "x"), ("d", "d"))
    ],
    "details": [_detail("a"), _detail("b"), _detail("c", index=1), _detail("d", index=1)],
    "a detail that is signed": [_detail("a"), _detail("b"), _detail("c", signature="s")] * 2,
    "details, and not the same text": [_detail("a"), {**_detail("b"), "reasoning": "x"}] * 2,
    "first thinking, then text": [
        *({"content": None, "reasoning": text} for text in "ab"),
        *({"content": text, "reasoning": None} for text in "cd"),
        *({"content": None, "reasoning": text} for text in "ef"),
    ],
    "text around a call": [
        {"content": "a"}, {"content": "b"}, call(0, "{", id="c1", name="f"), call(0, "}"),
        {"content": "c"}, {"content": "d"},
    ],
}  # fmt: skip


def _events(deltas: list[dict[str, Any]]) -> list[Event]:
    """Decodes the deltas, each of them twice."""
    told = [chunk(chosen(delta, None)) for delta in deltas for _ in range(2)]
    _, events = decoded([*map(frame, [*told, chunk(chosen({}, "stop"))]), DONE])
    return events


@pytest.mark.parametrize("name", DELTAS)
def test_fast_path_gives_the_same_events(name: str) -> None:
    """The fast path gives the same events, whichever fields are repeated."""
    short = _events(DELTAS[name])
    with switch.off():
        long = _events(DELTAS[name])
    for one, other in zip(short, long, strict=True):
        assert one.identical(other)
