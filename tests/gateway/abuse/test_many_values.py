"""Bodies of many small values: what they cost a worker, and how other requests fare meanwhile."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from math import ceil
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidRequest
from dragoman.gateway import large_bodies
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.large_bodies import (
    MANY,
    MAX_MESSAGES,
    ValueCounter,
    check_values,
    has_more_values,
)
from dragoman.gateway.translation import Translations, encoded_for
from dragoman.gateway.upstreams import Upstream
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.model.tools import ToolChoice, make_definition
from dragoman.wire.dialect import dialect
from dragoman.wire.front import Front
from tests.gateway.abuse.stage import Stage, refused
from tests.gateway.answers import KINDS
from tests.gateway.client_requests import FRONTS, body_for
from tests.gateway.running import place

pytestmark = pytest.mark.whole

Doc = dict[str, Any]
BACKS = {
    name: Upstream(place(name, kind, "http://127.0.0.1:1/v1", dialect=name), None)  # type: ignore[arg-type] # nothing is sent
    for name, kind in KINDS.items()
    if name in FRONTS
}
_USER = {"role": "user", "content": "x"}


def _tools(number: int, **schema: Any) -> list[Doc]:
    function = {"name": "f", "parameters": {"type": "object", **schema}}
    return [{"type": "function", "function": function}] * bool(number)


def _chat(messages: list[Doc], **more: Any) -> Doc:
    return {"model": "m", "messages": messages, **more}


def _calls(number: int) -> list[Doc]:
    function = {"name": "f", "arguments": "{}"}
    return [{"id": f"c{n}", "type": "function", "function": function} for n in range(number)]


def _results(number: int, *, prefix: str = "c") -> list[Doc]:
    return [{"role": "tool", "tool_call_id": f"{prefix}{n}", "content": ""} for n in range(number)]


SHAPES: dict[str, tuple[str, Callable[[int], Doc]]] = {
    "empty messages": ("openai-chat", lambda n: _chat([{}] * n)),
    "results without a call": ("openai-chat", lambda n: _chat([_USER, *_results(n)])),
    "calls without a result": (
        "openai-chat", lambda n: _chat([_USER, {"role": "assistant", "tool_calls": _calls(n)}]),
    ),
    "calls with their results": (
        "openai-chat",
        lambda n: _chat(
            [_USER, {"role": "assistant", "tool_calls": _calls(n)}, *_results(n), {}]
        ),
    ),
    "calls with results of other ids": (
        "openai-chat",
        lambda n: _chat(
            [_USER, {"role": "assistant", "tool_calls": _calls(n)}, *_results(n, prefix="d")]
        ),
    ),
    "calls of one id": (
        "openai-chat",
        lambda n: _chat([_USER, {"role": "assistant", "tool_calls": _calls(1) * n}]),
    ),
    "properties": (
        "openai-chat",
        lambda n: _chat([_USER], tools=_tools(n, properties={f"k{i}": {} for i in range(n)})),
    ),
    "references": (
        "openai-chat",
        lambda n: _chat(
            [_USER],
            tools=_tools(
                n,
                properties={f"k{i}": {"$ref": "#/$defs/a"} for i in range(n)},
                **{"$defs": {"a": {"type": "string"}}},
            ),
        ),
    ),
    "stop sequences": ("openai-chat", lambda n: _chat([_USER], stop=["a"] * n)),
    "unknown fields": ("openai-chat", lambda n: _chat([_USER], **{f"k{i}": 1 for i in range(n)})),
    "empty items": ("openai-responses", lambda n: {"model": "m", "input": [{}] * n}),
    "outputs without a call": (
        "openai-responses",
        lambda n: {
            "model": "m",
            "input": [{"type": "function_call_output", "call_id": "a", "output": ""}] * n,
        },
    ),
    "results in one message": (
        "anthropic",
        lambda n: {
            "model": "m", "max_tokens": 5,
            "messages": [
                _USER,
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": f"c{i}", "name": "f", "input": {}} for i in range(n)
                ]},
                {"role": "user", "content": [
                    {"type": "text", "text": "x"},
                    *({"type": "tool_result", "tool_use_id": f"c{i}"} for i in range(n)),
                ]},
            ],
        },
    ),
    "empty parts": (
        "gemini", lambda n: {"contents": [{"role": "user", "parts": [{}] * n}]},
    ),
    "calls of one name": (
        "gemini",
        lambda n: {"contents": [
            {"role": "user", "parts": [{"text": "x"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}] * n},
        ]},
    ),
    "permitted tools": (
        "gemini",
        lambda n: {
            "contents": [{"role": "user", "parts": [{"text": "x"}]}],
            "tools": [{"functionDeclarations": [{"name": f"f{i}"} for i in range(n)]}],
            "toolConfig": {"functionCallingConfig": {
                "mode": "ANY", "allowedFunctionNames": [f"f{i}" for i in range(n)],
            }},
        },
    ),
    "results without a name": ("ollama", lambda n: _chat([_USER, *[{"role": "tool"}] * n])),
}  # fmt: skip


def _instructions(work: Callable[[], object]) -> int:
    """The number of bytecode instructions that some work runs."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def _translate(front: str, doc: Doc, back: str) -> None:
    path = "/models/m:generateContent" if front == "gemini" else None
    asked = ClientRequest(front, json.dumps(doc).encode(), model="m", stream=False, path=path)
    encoded_for(asked.request, BACKS[back], "m").encoded.to_bytes()


@pytest.mark.parametrize("back", FRONTS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.thorough
def test_the_work_grows_with_the_number_of_values(shape: str, back: str) -> None:
    """Twice as many values take about twice the work: quadratic work would be four times."""
    _expect_linear(shape, back, 50)


def test_calls_without_results_take_linear_work() -> None:
    """A sample of the above, which once was quadratic."""
    _expect_linear("calls without a result", "anthropic", 50)


@pytest.mark.parametrize("back", ["openai-chat", "openai-responses"])
def test_permitted_tools_take_linear_work(back: str) -> None:
    """Another one: each name was looked for among all tools."""
    _expect_linear("permitted tools", back, 50)


class _Name(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        _Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("back", FRONTS)
def test_permitted_tools_are_not_compared_with_each_other(back: str) -> None:
    """Instructions don't show what `in` does with a tuple; comparisons do."""
    names = [_Name(f"f{at}") for at in range(200)]
    tools = [make_definition(name, "d", {"type": "object"}) for name in names]
    request = Request(
        messages=(Message.user("x"),),
        tools=tuple(tools),
        tool_choice=ToolChoice("allowed", tuple(names)),
    )
    _Name.compared = 0
    encoded = encoded_for(request, BACKS[back], "m").encoded
    assert "f199" in str(encoded.body["tools"])
    assert _Name.compared < 10 * len(names)


def _expect_linear(shape: str, back: str, number: int) -> None:
    front, made = SHAPES[shape]
    _translate(front, made(number // 2), back)  # imports and caches
    once, twice, fourfold = (
        _instructions(partial(_translate, front, made(n), back))
        for n in (number, 2 * number, 4 * number)
    )
    assert fourfold - twice < 2.4 * (twice - once), (once, twice, fourfold)


def test_many_pieces_of_audio_take_linear_work() -> None:
    """A part that can't be sent in pieces is not built anew for each of them."""
    audio = {"id": "a", "data": "AAAA", "transcript": "a"}
    chunk = {"choices": [{"index": 0, "delta": {"audio": audio}, "finish_reason": None}]}
    piece = b"data: " + json.dumps(chunk).encode() + b"\n\n"

    def stream(number: int) -> None:
        decoder, encoder = (
            dialect("openai-chat").stream_decoder(),
            Front("openai-responses").stream(),
        )
        for event in [*decoder.feed(piece * number + b"data: [DONE]\n\n"), *decoder.close()]:
            encoder.feed(event)
        encoder.close()

    stream(25)
    once, twice, fourfold = (_instructions(partial(stream, n)) for n in (50, 100, 200))
    assert fourfold - twice < 2.4 * (twice - once), (once, twice, fourfold)


def test_too_many_values_are_refused(stage: Stage, front: str) -> None:
    """A body of 300 KB that holds 100,000 messages never reaches a provider."""
    field = {"openai-responses": "input", "gemini": "contents"}.get(front, "messages")
    asked = len(stage.upstream.asked)
    body = {**body_for(front), field: [{}] * 100_000}
    data = json.dumps(body, separators=(",", ":")).encode()
    refused(front, stage.post(front, data), 413)
    assert len(stage.upstream.asked) == asked
    stage.serves(front)


def test_the_limit_counts_values_not_what_texts_contain() -> None:
    """Brackets and quotes inside strings don't count; values do, numbers a fifth."""
    text = json.dumps({"a": 'say [{"\\,:' * 1000}).encode()
    check_values(text, 3)
    check_values(b"[" + b"1," * 1000 + b"1]", 212)
    with pytest.raises(InvalidRequest, match="more than 200 objects"):
        check_values(b"[" + b"1," * 1000 + b"1]", 200)
    check_values(b'[[],{"a":""}]', 5)
    for number in (1, 2, 3, 4):
        with pytest.raises(InvalidRequest, match=f"more than {number} objects"):
            check_values(b'[[],{"a":""}]' + b" " * 10, number)


@pytest.mark.parametrize("inner", ['{"a":[%s]}', "[%s]"])
@pytest.mark.parametrize("before", ["", " \n", "\r\t"])
def test_json_in_a_string_counts(inner: str, before: str) -> None:
    """Arguments of calls are parsed later, however they are escaped and wherever they are cut."""
    text = json.dumps(before + inner % ",".join(["{}"] * 10_000))
    spaces = {json.dumps(c)[1:-1]: f"\\u{ord(c):04X}" for c in before}
    escaped = text
    for plain, escape in spaces.items():
        escaped = escaped.replace(plain, escape)
    assert json.loads(escaped) == json.loads(text)
    for written in (text, escaped):
        body = f'{{"arguments":{written}}}'.encode()
        for size in (1, 7, len(body)):
            with pytest.raises(InvalidRequest, match="more than 1,000"):
                _counted(body, size, 1_000)
            _counted(body, size, 2_000)


def _counted(body: bytes, size: int, most: int) -> None:
    counter = ValueCounter(most)
    for at in range(0, len(body), size):
        counter.feed(body[at : at + size])


async def test_a_large_body_does_not_block_the_loop() -> None:
    """While a body of many values is translated, the loop runs other tasks: it waits for a thread.

    Which is held up until they have run; how often threads take turns is Python's affair.
    """
    doc = _chat([{"role": "tool"}] * 3 * MANY)
    asked = ClientRequest("openai-chat", json.dumps(doc).encode())
    assert has_more_values(asked.body, MANY)
    turns, others_ran = 0, threading.Event()
    large_bodies._pool.submit(others_ran.wait, 60)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            if turns > 3:
                others_ran.set()
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    request = await asked.decoded()
    task.cancel()
    assert len(request.messages) == 3 * MANY
    assert turns > 3


def test_plain_conversations_of_any_length_stay_on_the_fast_path() -> None:
    """A long conversation without anything odd in it is translated from bytes to bytes."""
    asked = ClientRequest("openai-chat", json.dumps(_chat([_USER] * 5000)).encode())
    from dragoman.gateway.translation import NO_SETTINGS

    assert Translations().translate(asked, BACKS["anthropic"], "m", NO_SETTINGS) is not None


def test_counting_takes_linear_time() -> None:
    """A string of escaped quotes that never ends is read once, not again from each of them."""
    check_values(b'{"a":"' + b'\\"' * 500_000, 100_000)


@given(
    st.recursive(
        st.none() | st.integers() | st.booleans() | st.text(alphabet='\\"[]{},:a'),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='\\"[{,:a'), inner),
    ),
    st.lists(st.integers(0, 300)),
    st.booleans(),
)
def test_values_are_counted(document: Any, cuts: list[int], is_spaced: bool) -> None:
    """Never too many, at most a fifth too few; wherever a body is cut, and whatever texts hold."""

    def fifths(value: Any) -> float:
        if isinstance(value, dict):
            return 5 + sum(map(fifths, value)) + sum(map(fifths, value.values()))
        if isinstance(value, list):
            return 5 + sum(map(fifths, value))
        if isinstance(value, str):
            inner = json.dumps(value)[1:-1].replace("\\\\", "").replace('\\"', "")
            is_json = inner.lstrip("\\a").startswith(("{", "["))
            marks = sum(map(inner.count, "{[")) / 2 + inner.count(",") / 5
            return 5 + is_json * marks
        return 1 if value is None or isinstance(value, bool) else 1 + len(str(abs(value))) / 20

    body = json.dumps(document, separators=None if is_spaced else (",", ":")).encode()
    places = sorted({0, *(each for each in cuts if each < len(body)), len(body)})
    pieces = [body[begin:end] for begin, end in pairwise(places)]

    def feed(most: int) -> None:
        counter = ValueCounter(most)
        for piece in pieces:
            counter.feed(piece)

    number = fifths(document)
    feed(ceil(number / 5))
    feed_bytewise = ValueCounter(ceil(number / 5))
    for at in range(len(body)):
        feed_bytewise.feed(body[at : at + 1])
    too_few = ceil(number * 4 / 25) - 1
    if too_few > 0:
        with pytest.raises(InvalidRequest):
            feed(too_few)


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("element", ["{}", "1", "[]", '""', '{"a":1}'])
def test_a_conversation_has_a_limit_of_its_own(front: str, element: str) -> None:
    """Whatever its elements are: the smallest ones cost as much as messages."""
    field = {"gemini": "contents", "openai-responses": "input"}.get(front, "messages")

    def asked(count: int) -> ClientRequest:
        body = f'{{"model":"m","{field}":[{",".join([element] * count)}]}}'
        check_values(body.encode(), 100_000)
        return ClientRequest(front, body.encode(), model="m", stream=False)

    assert asked(MAX_MESSAGES).model == "m"
    with pytest.raises(InvalidRequest, match="20,000 messages"):
        asked(MAX_MESSAGES + 1)


def test_millions_of_elements_are_refused_unseen() -> None:
    """Numbers in a message are not messages; commas in texts are nothing."""
    table = ",".join(["1"] * 50_000)
    ClientRequest("gemini", f'{{"contents":[{{"parts":[{table}]}}]}}'.encode(), model="m")
    ClientRequest("openai-chat", b'{"messages":["%b"]}' % (b"," * 5_000_000))
    with pytest.raises(InvalidRequest, match="20,000 messages"):
        ClientRequest("openai-chat", b'{"messages":[%b1]}' % (b"1," * 2_000_000))
