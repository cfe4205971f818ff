"""Malformed recordings, fixtures and generated bodies: only our own errors are raised.

See `tests.wire.mutations`, which can be run for any time.
"""

from __future__ import annotations

import json
import random
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import dragoman
from dragoman import Message, Messages, Request, Text
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import PartDelta, PartStart
from dragoman.model.frozen import freeze_mapping
from dragoman.model.parts import Citation, Origin
from dragoman.wire import overlay
from dragoman.wire.schemas import projection
from tests.environment import PATIENCE
from tests.wire import mutations

_QUICK = 40
_THOROUGH = 3_000
_PARTS = 8
_LONG = pytest.param(10**5000, id="long")  # longer than Python's limit
_SHAPES: list[Any] = [
    *(None, 5, True, "x", [], {}, [5], [[]], [[5]], [["a", 5]], [["a", 5, 5]], [[["a"], 5, 5]]),
    *([[[], 5, 5]], [[[5], 5, 5]], [["ab"]], {"a": 5}, {"a": []}, {"type": [], "id": 5}),
]


@pytest.fixture(autouse=True)
def _watchdog() -> Iterator[None]:
    """End a hanging test with a traceback."""

    def stop(*_: object) -> None:
        pytest.fail("an input takes longer than anybody would wait")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 10 * PATIENCE)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(_PARTS))
def test_mutations(part: int) -> None:
    """Malformed bodies, streams, errors and documents raise only our own errors."""
    for number in range(part * _QUICK, (part + 1) * _QUICK):
        mutations.one(number)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PARTS))
def test_many_mutations(part: int) -> None:
    """As above, many more of them."""
    for number in range(part * _THOROUGH, (part + 1) * _THOROUGH):
        mutations.one(1_000_000 + number)


def test_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """No input takes too much work, counted in function calls."""
    monkeypatch.setattr(projection, "MAX_STEPS", 4_000)
    mutations.one(0)  # one-time imports and compilation don't count
    counted = [0]

    def note(_frame: object, event: str, _argument: object) -> None:
        counted[0] += event == "call"

    before = sys.getprofile()
    for number in range(500, 530):
        counted[0] = 0
        sys.setprofile(note)
        try:
            mutations.one(number)
        finally:
            sys.setprofile(before)
        assert counted[0] < 5_000_000


def test_odd_values_share_nothing() -> None:
    """Inserted values are trees of their own, so mutations can't create cycles."""
    for number in range(3_000):
        values = [mutations.odd(random.Random(number)) for _ in range(2)]
        inner = [holder[key] for holder, key in mutations.places_in(values)]
        held = [id(value) for value in inner if isinstance(value, (dict, list))]
        assert len(held) == len({*held}), f"the value of {number} shares something"


# --- failures found earlier


@pytest.mark.thorough
@pytest.mark.parametrize(
    "shape", [shape for shape in _SHAPES if isinstance(shape, (list, dict))], ids=repr
)
@pytest.mark.parametrize("name", mutations.DIALECTS)
def test_extras_of_any_shape(name: str, shape: Any) -> None:
    """Extras of stored documents that no decoder makes are ignored."""
    origin = Origin(dialect=name)
    old = [f"{name}{end}" for end in (" instead", " shape", " meant", " absent", " headers")]
    kinds = ("values", "guesses", "names", "single", "words", "said", "tools", "openapi")
    for extras in (
        *({key: shape} for key in (name, f"{name} spelling", *old)),
        *({f"{name} spelling": {kind: shape}} for kind in kinds),
        *({name: {key: shape}} for key in ("$wire", ":words")),
        {name: {"$wire": dict.fromkeys(("lists", "instead", "absent", "snake"), shape)}},
    ):
        cited = Citation(kind="url_citation", url="u", extras=extras)
        part = Text("hi", extras=extras, origin=origin, citations=(cited,))
        message = Message.user("x").replace(extras=extras, parts=(part,), origin=origin)
        request = Request(model="m", messages=(message,), extras=extras)
        raw = json.loads(request.to_json())
        mutations.send(Request.from_json(json.dumps(raw)), random.Random(1))
        assert Messages.from_json(Messages(message).to_json())[0].extras == message.extras


def test_valid_extras_among_odd_ones_are_used() -> None:
    """Valid entries are restored even if others have odd shapes."""
    kept = {"d instead": [5, [["a"], 1, "one"], [[], 1, 2], ["a", 1, 2], [["a"], 1]]}
    assert overlay.with_overlay({"a": 1}, kept, "d") == {"a": "one"}


@pytest.mark.parametrize("shape", _SHAPES, ids=repr)
@pytest.mark.parametrize(
    "key", ["gemini", "gemini instead", "gemini meant", "gemini spelling", "other"]
)
def test_forged_envelopes(key: str, shape: Any) -> None:
    """An envelope with invalid extras is treated as a signature."""
    part = {"type": "thinking", "text": "x", "extras": {key: shape}}
    sealed = mutations.envelope({"origin": {"dialect": "gemini"}, "part": part})
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "assistant", "content": [
        {"type": "thinking", "thinking": "x", "signature": sealed}]}]}  # fmt: skip
    request = dragoman.dialect("anthropic").decode_request(body)
    (read,) = request.messages[0].parts
    is_opened = overlay.are_sound(freeze_mapping({key: shape}, "it"), "gemini")
    assert read.signature == (None if is_opened else sealed)
    mutations.send(request, random.Random(1))


@pytest.mark.parametrize("name", mutations.DIALECTS)
@pytest.mark.parametrize("value", [_LONG, [[]] * 3, {}, 5, None, True])
def test_types_of_any_type(name: str, value: Any) -> None:
    """`check` reports a type that is a number of any length, without an exception."""
    block = {"type": value, "text": "x", "functionCall": value}
    message = {"role": "user", "content": [block], "parts": [block]}
    body = {"model": "m", "messages": [message], "input": [block, message], "contents": [message],
            "toolConfig": {"functionCallingConfig": {"mode": value, "allowedFunctionNames": ["f"]}},
            "tools": [{"type": value, "functionDeclarations": [
                {"name": "f", "parameters": {"type": value}}]}]}  # fmt: skip
    mutations.take_request(name, body, random.Random(2))


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool", "other"])
@pytest.mark.parametrize("name", mutations.DIALECTS)
def test_parts_of_any_type(name: str, role: str) -> None:
    """A part that is a bare text, a number or a list is decoded, and encoded everywhere."""
    parts = ["hi", 5, None, ["x"], {"text": "y"}, {"type": "text", "text": 5}]
    for content in ([part] for part in parts):
        message = {"role": role, "content": content, "parts": content}
        body = {"model": "m", "messages": [message], "input": [message], "contents": [message]}
        mutations.take_request(name, body, random.Random(6))


def test_a_part_that_was_no_object() -> None:
    """Extras may say that a part was not an object on the wire."""
    name = "openai-responses"
    for role in ("user", "assistant"):
        for kind in ("input_text", "output_text"):
            ours = {"type": kind, "text": "hi"}
            for written in (ours, {**ours, "annotations": []}):
                extras: dict[str, Any] = {f"{name} shape": [[[], written, "hi"]]}
                cited = Citation(kind="url_citation", url="u")
                part = Text("hi", extras=extras, citations=(cited,), origin=Origin(dialect=name))
                made = Message.user("x").replace(role=role, parts=(part,))
                mutations.send(Request(model="m", messages=(made,)), random.Random(7))


@pytest.mark.parametrize("name", mutations.DIALECTS)
def test_deep_values_raise_our_error(name: str) -> None:
    """Nesting deeper than any stack, anywhere in a body but in a text."""
    deep: Any = "x"
    for _ in range(5_000):
        deep = {"type": [deep]}
    rng = random.Random(3)
    for body in (
        {"messages": deep, "contents": deep, "input": deep},
        {"messages": [deep], "contents": [deep], "input": [deep]},
        {"messages": [{"role": "user", "content": [deep], "parts": [deep]}]},
        {"model": "m", "messages": [], "tools": [deep], "temperature": deep, "thinking": deep},
    ):
        mutations.take_request(name, body, rng)
        mutations.take_response(name, body, rng)
        mutations.take_error(name, body)


@pytest.mark.parametrize("shape", _SHAPES, ids=repr)
def test_late_extras_of_any_shape(shape: Any) -> None:
    """Objects that a delta adds to extras are merged; other values are replaced."""
    accumulator = MessageAccumulator()
    accumulator.add(PartStart(0, Text("a", extras={"x": {"known": 1}})))
    accumulator.add(PartDelta(0, "b", extras={"x": shape}))
    accumulator.add(PartDelta(0, "c", extras={"x": {"late": 1}}))
    (part,) = accumulator.response.message.parts
    assert part.extras["x"]["late"] == 1


@pytest.mark.parametrize("value", [None, 5, [], "x", [None], {"a": None}, True])
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("field", ["properties", "required", "anyOf", "$defs", "enum", "type"])
def test_tools_with_schemas_of_any_shape(field: str, strict: bool, value: Any) -> None:
    """A strict tool with null or numeric properties is decoded, shown, checked and sent."""
    schema = {"type": "object", "properties": {"a": {}}, field: value}
    function = {"name": "f", "description": "d", "parameters": schema, "strict": strict}
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}],
            "tools": [{"type": "function", "function": function}]}  # fmt: skip
    mutations.take_request("openai-chat", body, random.Random(4))
    declared = {"name": "f", "input_schema": schema, "strict": strict}
    mutations.take_request(
        "anthropic", {**body, "max_tokens": 5, "tools": [declared]}, random.Random(4)
    )


@pytest.mark.parametrize("value", [None, {}, [], "x", _LONG, -1, 0.5, True, {"a": 1}])
def test_settings_of_any_type(value: Any) -> None:
    """Thinking budgets and similar settings of any type round-trip, or are losses."""
    base = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}
    for settings in (
        {"thinking": {"type": "enabled", "budget_tokens": value}},
        {"thinking": value},
        {"thinking": {"type": value}},
        {"output_config": {"effort": value, "format": value}},
        {"output_config": value},
    ):
        mutations.take_request("anthropic", {**base, **settings}, random.Random(5))
