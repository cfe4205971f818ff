"""The generated path and the steps alone give the same bodies, reports and values."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.json import encode

import dragoman
from dragoman.model.jsontext import dumps
from tests.wire.lane import requests as made
from tests.wire.plain import sides

_PARTS, _CASES = 4, 60


@pytest.mark.parametrize("part", range(_PARTS))
def test_generated_conversations_are_encoded_alike(part: int) -> None:
    """Plain ones, nearly plain ones, and ones with anything odd in them, in all dialects."""
    for number in range(part * _CASES, (part + 1) * _CASES):
        rng = random.Random(number)
        raw, source = sides.random_case(rng, [])
        targets = (rng.choice(made.TARGETS), rng.choice(made.TARGETS))
        found = sides.difference(raw, source, targets)
        assert found is None, (number, source, found)


@pytest.mark.parametrize("target", dragoman.dialects())
@pytest.mark.parametrize("field", ["id", "name", "arguments", "text", "result"])
def test_half_a_character_in_a_long_conversation(field: str, target: str) -> None:
    """What JSON can't hold is taken or refused as by the steps alone."""
    odd = dict.fromkeys(("id", "name", "text", "result"), "x")
    odd |= {"arguments": '{"x": 1}'} | {field: "\ud800"}
    call = {"name": odd["name"], "arguments": odd["arguments"]}
    messages: list[Any] = []
    for number in range(8):
        ident = f"{odd['id']}{number}"
        calls = [{"id": ident, "type": "function", "function": call}]
        messages += [
            {"role": "user", "content": odd["text"]},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": ident, "content": odd["result"]},
            {"role": "assistant", "content": "x"},
        ]
    body = {"model": "m", "messages": [*messages, {"role": "user", "content": "x"}]}
    assert sides.difference(dumps(body), "openai-chat", (target,)) is None


@pytest.mark.parametrize("target", dragoman.dialects())
def test_tools_that_say_that_they_are_not_strict(target: str) -> None:
    """`strict: false` is not the same as nothing where it can be said."""
    tool = {"type": "function", "name": "f", "strict": False, "parameters": {"type": "object"}}
    body = {"model": "m", "input": [{"role": "user", "content": "x"}], "tools": [tool]}
    for _ in range(3):  # plain targets are known from the second time on
        assert sides.difference(dumps(body), "openai-responses", (target,)) is None


@pytest.mark.parametrize("arguments", ["", " ", "\n\t ", "{}", " {} ", "[]", "null"])
@pytest.mark.parametrize("count", [1, 8])
def test_arguments_that_say_nothing(arguments: str, count: int) -> None:
    """A blank text of arguments is the same value on both ways, in short and long bodies."""
    messages: list[Any] = []
    for number in range(count):
        function = {"name": "f", "arguments": arguments if number == count - 1 else "{}"}
        calls = [{"id": f"c{number}", "type": "function", "function": function}]
        messages += [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "R"},
        ]
    body = {"model": "m", "messages": messages}
    assert sides.difference(dumps(body), "openai-chat", dragoman.dialects()) is None


def test_remembered_tools_are_bounded_in_bytes() -> None:
    """Large tools that come with different texts do not stay in memory; small ones are known."""
    target = dragoman.dialect("anthropic").target
    for number in range(40):
        about = f"{number} " + "x" * (1000 if number % 2 else 500_000)
        function = {"name": "f", "description": about, "parameters": {"type": "object"}}
        tools = [{"type": "function", "function": function}]
        body = {
            "model": "m", "max_tokens": 50, "tools": tools,
            "messages": [{"role": "user", "content": "x"}],
        }  # fmt: skip
        request = dragoman.dialect("openai-chat").decode_request(dumps(body))
        dragoman.dialect("anthropic").encode_request(request, target)
    kept = [len(encode(each[1])) for each in target.findings["plain"].tools.values()]
    assert kept
    assert sum(kept) < 6 * 2**20
