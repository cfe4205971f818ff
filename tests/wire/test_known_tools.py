"""Tools that come with every request are decoded once, and never confused with others."""

from __future__ import annotations

import json
from copy import deepcopy
from decimal import Decimal
from typing import Any

import pytest

import dragoman
from dragoman.model.tools import make_definition
from dragoman.wire.known_tools import KnownTools

_SCHEMA = {"type": "object", "properties": {"n": {"type": "number", "minimum": 1}}}


def _tool(minimum: Any = 1) -> dict[str, Any]:
    schema = deepcopy(_SCHEMA)
    schema["properties"]["n"]["minimum"] = minimum  # type: ignore[index]  # it is one
    return {"name": "f", "parameters": schema}


def _known() -> KnownTools:
    return KnownTools(lambda wire: make_definition(**wire))


def _minimum(tools: tuple[Any, ...]) -> Any:
    (tool,) = tools
    return tool.parameters["properties"]["n"]["minimum"]


def test_equal_tools_are_the_same_objects() -> None:
    """From the second request on, equal tools are the same objects if their keys are in order."""
    known = _known()
    once = known.read([_tool()])
    assert len(known) == 0
    first = known.read([_tool()])
    assert first == once
    assert known.read([_tool()]) is first
    other = {"parameters": _tool()["parameters"], "name": "f"}
    assert known.read([other]) is not first


def test_similar_tools_are_kept_apart() -> None:
    """Numbers of other types, texts and non-JSON values are not confused."""
    known = _known()
    for value in (1, 1.0, True, "1", None, 1, -0.0, 0.0, 0) * 3:
        assert repr(_minimum(known.read([_tool(value)]))) == repr(value)
    known.read([_tool("1.5")])
    known.read([_tool("1.5")])
    for odd in (Decimal("1.5"), float("nan"), object(), {1}):
        with pytest.raises(dragoman.DragomanError):
            known.read([_tool(odd)])


def test_mutating_a_list_does_not_change_the_cache() -> None:
    """The cache shares no mutable objects with the caller."""
    known = _known()
    wire = [_tool()]
    known.read(wire)
    first = known.read(wire)
    wire[0]["parameters"]["properties"]["n"]["minimum"] = 2
    assert known.read([_tool()]) is first
    assert _minimum(known.read(wire)) == 2


def test_known_tools_are_bounded() -> None:
    """The cache is limited in number, and very large tools are not cached."""
    known = _known()
    for number in range(1_000):
        known.read([_tool(number)])
        known.read([_tool(number)])
        assert 0 < len(known) <= 256
    before = len(known)
    known.read([_tool("x" * 2**21)])
    known.read([_tool("x" * 2**21)])
    assert len(known) == before


@pytest.mark.parametrize("depth", [50, 300, 900, 5_000])
def test_deep_tools_are_refused_every_time(depth: int) -> None:
    """Tools nested too deeply are refused both times."""
    parameters = '{"a":' * depth + "1" + "}" * depth
    tool = '{"type":"function","function":{"name":"f","parameters":' + parameters + "}}"
    raw = ('{"messages":[{"role":"user","content":"Hi"}],"tools":[' + tool + "]}").encode()
    found: list[Any] = []
    for _ in range(2):
        try:
            dragoman.dialect("openai-chat").decode_request(raw)
        except dragoman.DragomanError as error:
            found.append(str(error))
        else:
            found.append(None)
    assert found[0] == found[1]
    assert (found[0] is None) == (depth <= 50)


def test_tools_of_requests_are_cached() -> None:
    """Bytes and dicts share tools that came twice, in each dialect that has a list of them."""
    function = {"name": "f", "parameters": _SCHEMA}
    bodies: dict[str, Any] = {
        "openai-chat": ("messages", {"type": "function", "function": function}),
        "ollama": ("messages", {"type": "function", "function": function}),
        "anthropic": ("messages", {"name": "f", "input_schema": _SCHEMA}),
        "openai-responses": ("input", {"type": "function", **function}),
    }
    for name, (field, tool) in bodies.items():
        body = {"model": "m", field: [{"role": "user", "content": "Hi"}], "tools": [tool]}
        dragoman.dialect(name).decode_request(body)
        some = dragoman.dialect(name).decode_request(body)
        other = dragoman.dialect(name).decode_request(json.dumps(body).encode())
        assert some.tools[0] is other.tools[0]
