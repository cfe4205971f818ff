"""Derived ids for calls without one: deterministic, unique, and stable as a conversation grows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import Messages, Response, ToolCall, ToolResult
from dragoman.wire.codec import Codec
from tests.wire.recorded import normal
from tests.wire.streamed import read, written

DIALECTS = dragoman.dialects()
Wire = dict[str, Any]


class Call(NamedTuple):
    """A call of a turn, with the ids that the wire has for it and its result."""

    name: str
    arguments: Wire
    id: str | None


Turn = list[Call]
_calls = st.builds(
    Call,
    st.sampled_from(["f", "g"]),
    st.sampled_from([{}, {"a": 1, "b": 2}, {"half": "\ud800"}, {"big": 10**30}]),
    st.sampled_from([None, None, "", "x", "y"]),
)
talks = st.lists(st.lists(_calls, min_size=1, max_size=3), min_size=1, max_size=4)


# --- a conversation on each wire


def _chat(turn: Turn) -> list[Wire]:
    calls = [
        {"type": "function", "function": {"name": c.name, "arguments": json.dumps(c.arguments)}}
        | _named("id", c.id) for c in turn
    ]  # fmt: skip
    results = [{"role": "tool", "content": "r"} | _named("tool_call_id", c.id) for c in turn]
    return [_USER, {"role": "assistant", "content": None, "tool_calls": calls}, *results]


def _anthropic(turn: Turn) -> list[Wire]:
    calls = [{"type": "tool_use", "name": c.name, "input": c.arguments} | _named("id", c.id)
             for c in turn]  # fmt: skip
    results = [{"type": "tool_result", "tool_use_id": c.id, "content": "r"}
               for c in turn if c.id is not None]  # fmt: skip
    said = [{"role": "user", "content": results}] if results else []
    return [_USER, {"role": "assistant", "content": calls}, *said]


def _responses(turn: Turn) -> list[Wire]:
    calls = [{"type": "function_call", "name": c.name, "arguments": json.dumps(c.arguments)}
             | _named("call_id", c.id) for c in turn]  # fmt: skip
    results = [{"type": "function_call_output", "output": "r"} | _named("call_id", c.id)
               for c in turn]  # fmt: skip
    return [_USER, *calls, *results]


def _gemini(turn: Turn) -> list[Wire]:
    calls = [{"functionCall": {"name": c.name, "args": c.arguments} | _named("id", c.id)}
             for c in turn]  # fmt: skip
    results = [{"functionResponse": {"name": c.name, "response": {"output": "r"}}
                | _named("id", c.id)} for c in turn]  # fmt: skip
    return [{"role": "user", "parts": [{"text": "q"}]}, {"role": "model", "parts": calls},
            {"role": "user", "parts": results}]  # fmt: skip


def _ollama(turn: Turn) -> list[Wire]:
    calls = [{"function": {"name": c.name, "arguments": c.arguments}} | _named("id", c.id)
             for c in turn]  # fmt: skip
    results = [{"role": "tool", "tool_name": c.name, "content": "r"} | _named("tool_call_id", c.id)
               for c in turn]  # fmt: skip
    return [_USER, {"role": "assistant", "content": "", "tool_calls": calls}, *results]


def _named(key: str, id: str | None) -> Wire:
    return {} if id is None else {key: id}


_USER: Wire = {"role": "user", "content": "q"}
TURNS: dict[str, tuple[str, Callable[[Turn], list[Wire]]]] = {
    "openai-chat": ("messages", _chat),
    "anthropic": ("messages", _anthropic),
    "openai-responses": ("input", _responses),
    "gemini": ("contents", _gemini),
    "ollama": ("messages", _ollama),
}


def body(dialect: str, turns: list[Turn]) -> Wire:
    """A request body in a dialect."""
    field, write = TURNS[dialect]
    limit = {"max_tokens": 9} if dialect == "anthropic" else {}
    return {"model": "m", **limit, field: [item for turn in turns for item in write(turn)]}


def decoded(dialect: str, wire: Wire) -> Messages:
    """The decoded messages of a request."""
    return Messages.wrapping(dragoman.dialect(dialect).decode_request(wire).messages)


def calls(messages: Messages) -> list[ToolCall]:
    """The calls of a conversation."""
    return [part for part in messages.parts if isinstance(part, ToolCall)]


def answered(messages: Messages) -> list[str]:
    """The call ids that results refer to."""
    return [part.call_id for part in messages.parts if isinstance(part, ToolResult)]


# --- requests


@pytest.mark.parametrize("dialect", DIALECTS)
@given(turns=talks)
def test_decoding_twice_gives_equal_requests(dialect: str, turns: list[Turn]) -> None:
    """Decoded requests are equal, hash alike, and have non-empty, unique ids."""
    wire = body(dialect, turns)
    one, other = (dragoman.dialect(dialect).decode_request(wire) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    ids = [call.id for call in calls(Messages.wrapping(one.messages))]
    assert len(ids) == sum(map(len, turns))
    assert all(ids)
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(turns=talks, more=talks)
def test_ids_are_stable_when_a_conversation_grows(
    dialect: str, turns: list[Turn], more: list[Turn]
) -> None:
    """Earlier messages keep their ids in the next request, as prompt caches compare them."""
    short, long = (
        decoded(dialect, body(dialect, turns)),
        decoded(dialect, body(dialect, turns + more)),
    )
    assert long[: len(short)] == short


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "anthropic"])
@given(turns=talks)
def test_results_are_matched_with_their_calls(dialect: str, turns: list[Turn]) -> None:
    """Missing, empty or reused ids are matched in order; each call has one result."""
    talk = decoded(dialect, body(dialect, turns))
    assert sorted(answered(talk)) == sorted(call.id for call in calls(talk))


@pytest.mark.parametrize("dialect", DIALECTS)
@given(turns=talks)
def test_a_request_round_trips_unchanged(dialect: str, turns: list[Turn]) -> None:
    """Derived ids are never written where the wire had none, or another id."""
    wire, speaker = body(dialect, turns), dragoman.dialect(dialect)
    assert isinstance(speaker, Codec)
    lenient = speaker.target.with_flags({"state.verifies_items": False})
    again = speaker._functions.encode_request(speaker.decode_request(wire), lenient)  # unfitted
    assert normal(json.loads(again.to_bytes())) == normal(json.loads(json.dumps(wire)))


@pytest.mark.parametrize("dialect", DIALECTS)
@given(turns=talks, place=st.integers(0, 5), as_result=st.booleans())
def test_derived_ids_avoid_ids_on_the_wire(
    dialect: str, turns: list[Turn], place: int, as_result: bool
) -> None:
    """An id on the wire is kept, even if it was derived for an earlier call."""
    known = decoded(dialect, body(dialect, turns))
    derived = [call.id for call in calls(known) if call.id.startswith("call_")]
    if not derived:
        return
    taken = derived[place % len(derived)]
    field, write = TURNS[dialect]
    wire = body(dialect, turns)
    later = write([Call("f", {}, taken)])
    wire[field] += [item for item in later if not (as_result and _is_call(item))]
    talk = decoded(dialect, wire)
    ids = [call.id for call in calls(talk)]
    assert len(set(ids)) == len(ids)
    assert talk == decoded(dialect, wire)
    last = talk[-1].tool_results[0].call_id
    if as_result:
        assert last == taken
        assert taken not in ids
    else:
        assert ids[-1] == last == taken


def _is_call(item: Wire) -> bool:
    return item.get("type") == "function_call" or item.get("role") in {"assistant", "model"}


@pytest.mark.parametrize("dialect", ["gemini", "ollama"])
def test_orphaned_results_get_unique_ids(dialect: str) -> None:
    """Their derived ids are deterministic, and two results have different ones."""
    field, write = TURNS[dialect]
    results = [item for item in write([Call("f", {}, None)]) if not _is_call(item)]
    wire = {"model": "m", field: results + results}
    first, second = answered(decoded(dialect, wire))
    assert first != second
    assert decoded(dialect, wire) == decoded(dialect, wire)


def test_an_old_function_message_answers_the_call_of_its_name() -> None:
    """A `function` message answers the call of its name in the same turn."""
    old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    new = {"role": "assistant", "content": None, "function_call": {"name": "g", "arguments": "{}"}}
    result = {"role": "function", "name": "g", "content": "r"}
    talk = decoded("openai-chat", {"model": "m", "messages": [_USER, old, _USER, new, result]})
    assert answered(talk) == [calls(talk)[1].id]


@pytest.mark.parametrize("dialect", ["gemini", "ollama"])
def test_ids_depend_on_the_arguments(dialect: str) -> None:
    """Calls with other arguments have other ids; the order of keys makes no difference."""

    def first(arguments: Wire) -> str:
        return calls(decoded(dialect, body(dialect, [[Call("f", arguments, None)]])))[0].id

    assert first({"a": 1}) != first({"a": 2})
    assert first({"a": 1, "b": 2}) == first({"b": 2, "a": 1})


# --- responses: an answer with two equal calls and no ids, plain and streamed


def _answers(stamp: str) -> dict[str, tuple[Wire, bytes]]:
    function = {"name": "f", "arguments": "{}"}
    chat = {"id": stamp, "model": "m", "created": 5}
    deltas = [{"index": index, "type": "function", "function": function} for index in (0, 1)]
    block = {"type": "tool_use", "name": "f", "input": {}}
    message = {"id": stamp, "type": "message", "role": "assistant", "model": "m"}
    item = {"type": "function_call", "name": "f", "arguments": "{}", "status": "completed"}
    part = {"functionCall": {"name": "f", "args": {}}}
    head = {"responseId": stamp, "modelVersion": "m"}
    time = {"model": "m", "created_at": f"2026-01-01T00:00:0{len(stamp)}Z"}
    tool = {"function": {"name": "f", "arguments": {}}}
    return {
        "openai-chat": (
            {**chat, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": None,
                "tool_calls": [{k: v for k, v in d.items() if k != "index"} for d in deltas]}}]},
            _sse(*[{**chat, "choices": [{"index": 0, "delta": {"tool_calls": [delta]}}]}
                   for delta in deltas],
                 {**chat, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
            + b"data: [DONE]\n\n",
        ),
        "anthropic": (
            {**message, "content": [block, block], "stop_reason": "tool_use"},
            _sse({"type": "message_start", "message": {**message, "content": []}},
                 *[event for index in (0, 1) for event in (
                     {"type": "content_block_start", "index": index, "content_block": block},
                     {"type": "content_block_stop", "index": index})],
                 {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
                 {"type": "message_stop"}),
        ),
        "openai-responses": (
            {"id": stamp, "status": "completed", "output": [item, item]},
            _sse({"type": "response.created", "response": {"id": stamp}},
                 *[event for index in (0, 1) for event in (
                     {"type": "response.output_item.added", "output_index": index,
                      "item": {**item, "arguments": ""}},
                     {"type": "response.output_item.done", "output_index": index, "item": item})],
                 {"type": "response.completed",
                  "response": {"id": stamp, "status": "completed", "output": [item, item]}}),
        ),
        "gemini": (
            {**head, "candidates": [{"index": 0, "finishReason": "STOP",
                                     "content": {"role": "model", "parts": [part, part]}}]},
            _sse({**head, "candidates": [{"content": {"role": "model", "parts": [part]}}]},
                 {**head, "candidates": [{"content": {"role": "model", "parts": [part]},
                                          "finishReason": "STOP"}]}),
        ),
        "ollama": (
            {**time, "done": True,
             "message": {"role": "assistant", "content": "", "tool_calls": [tool, tool]}},
            b"".join(json.dumps({**time, **line}).encode() + b"\n" for line in (
                {"message": {"role": "assistant", "content": "", "tool_calls": [tool]}},
                {"message": {"role": "assistant", "content": "", "tool_calls": [tool]}},
                {"message": {"role": "assistant", "content": ""}, "done": True})),
        ),
    }  # fmt: skip


def _sse(*chunks: Wire) -> bytes:
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)


def _ids(response: Response) -> list[str]:
    return [call.id for call in response.tool_calls]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_call_ids_are_unique_across_answers(dialect: str) -> None:
    """Equal calls have different ids, also in the next answer and in requests."""
    first, second = (_answers(stamp)[dialect][0] for stamp in ("r", "rr"))
    decode = dragoman.dialect(dialect).decode_response
    turn = [Call("f", {}, None)] * 2
    asked = calls(decoded(dialect, body(dialect, [turn])))
    found = [*_ids(decode(first)), *_ids(decode(second)), *[call.id for call in asked]]
    assert len(found) == len(set(found)) == 6
    assert decode(first) == decode(first)
    assert hash(decode(first)) == hash(decode(first))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_streamed_and_plain_answers_have_the_same_ids(dialect: str) -> None:
    """Call ids do not depend on streaming or on chunk boundaries."""
    plain, stream = _answers("r")[dialect]
    whole = dragoman.dialect(dialect).decode_response(plain)
    one, other = (
        read(dialect, stream),
        read(dialect, *[stream[n : n + 1] for n in range(len(stream))]),
    )
    assert one.is_complete
    assert one.response == other.response == whole


@pytest.mark.parametrize("dialect", ["gemini", "ollama"])
def test_ids_of_answers_without_an_id_depend_on_their_content(dialect: str) -> None:
    """The ids are deterministic, and differ between answers with different content."""
    plain, stream = _answers("r")[dialect]
    for key in ("responseId", "modelVersion", "created_at", "model"):
        plain.pop(key, None)
    decode = dragoman.dialect(dialect).decode_response
    text = json.dumps(plain)
    changed = text.replace('"args": {}', '"args": {"a": 1}').replace(
        '"arguments": {}', '"arguments": {"a": 1}'
    )
    assert decode(text) == decode(text)
    assert set(_ids(decode(text))).isdisjoint(_ids(decode(changed)))
    assert changed != text
    assert stream


@pytest.mark.parametrize("target", DIALECTS)
def test_a_front_sends_the_derived_call_ids(target: str) -> None:
    """If a Chat server sends no ids, the client gets the derived ones."""
    decoder = dragoman.dialect("openai-chat").stream_decoder()
    events = decoder.feed(_answers("r")["openai-chat"][1]) + decoder.close()
    stream, _ = written(target, events)
    shown = read(target, stream).response
    if target in {"anthropic", "openai-responses"}:
        assert _ids(shown) == _ids(decoder.response)
    else:  # where ids are optional, calls without one stay without
        assert shown.message.equal_ignoring_call_ids(decoder.response.message)
