"""Responses to a compiled schema are converted back to the original schema."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import FinishReason, Message, MessageAccumulator, Request, Response, ToolDefinition
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    StreamError,
)
from dragoman.model.parts import Origin, Text
from dragoman.model.requests import Output
from dragoman.model.responses import Choice
from dragoman.model.tools import ToolCall, ToolCallDelta, make_call, make_definition
from dragoman.wire.context import NOTHING, Context
from dragoman.wire.restoring import RestoringDecoder, restoring
from dragoman.wire.schemas import OPENAI_STRICT, projected
from tests.wire.schemas.instances import instances, misfits, spins
from tests.wire.schemas.strategies import roots
from tests.wire.streamed import folded

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "level": {"enum": [[1], "low"]},
        "note": {"type": ["string", "null"]},
    },
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = ToolDefinition("weather", "The weather.", SCHEMA)
TIME = ToolDefinition("time", "The time.", {**SCHEMA, "required": list(SCHEMA["properties"])})
ASKED = {"city": "Basel", "days": None, "level": "[1]", "note": None}
MEANT = {"city": "Basel", "level": [1], "note": None}
STRICT = ("openai-chat", "openai-responses")
NAMES = dragoman.dialects()
FIELDS: dict[str, Any] = {"model": "m", "messages": (Message.user("Hi"),)}


def context_of(name: str, *tools: ToolDefinition, output: Output | None = None) -> Context:
    """The context for decoding the answer to a request."""
    request = Request(tools=tools, output=output, **FIELDS)
    return dragoman.dialect(name).encode_request(request).context


def answered(name: str, context: Context, *parts: Any) -> Response:
    """An answer, encoded and decoded."""
    speaker = dragoman.dialect(name)
    finish = FinishReason.STOP
    response = Response(choices=(Choice(0, Message.assistant(*parts), finish),), id="r", model="m")
    return speaker.decode_response(speaker.encode_response(response).to_bytes(), context)


def said(*parts: ToolCall | Text, size: int = 3, is_mixed: bool = False) -> list[Event]:
    """The events of an answer in small deltas; `is_mixed`: of all parts interleaved."""
    events: list[Event] = [ResponseStart(id="r", model="m")]
    grown: list[list[Event]] = []
    for index, part in enumerate(parts):
        is_call = isinstance(part, ToolCall)
        text = part.raw_arguments if isinstance(part, ToolCall) else part.text
        begun = part.replace(raw="", input=None) if is_call else part.replace(text="")
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        grown.append([PartStart(index, begun), *(PartDelta(index, piece) for piece in pieces)])
    if is_mixed:
        longest = max(map(len, grown))
        events += [run[at] for at in range(longest) for run in grown if at < len(run)]
        events += [PartStop(index) for index in range(len(parts))]
    else:
        for index, run in enumerate(grown):
            events += [*run, PartStop(index)]
    return [*events, ChoiceFinish(FinishReason.STOP, "stop"), ResponseEnd()]


def streamed(name: str, events: Iterable[Event]) -> bytes:
    """Events, encoded in a dialect."""
    encoder = dragoman.dialect(name).stream_encoder()
    return b"".join([*map(encoder.feed, events), encoder.close()])


def read(name: str, context: Context, data: bytes, size: int = 10**9) -> tuple[Any, list[Event]]:
    """The decoder of a stream, and its events."""
    decoder = dragoman.dialect(name).stream_decoder(context)
    events: list[Event] = []
    for at in range(0, len(data), size):
        events += decoder.feed(data[at : at + size])
    return decoder, [*events, *decoder.close()]


class Played:
    """A decoder that returns given events, one for each byte."""

    def __init__(self, *events: Event) -> None:
        self._events = list(events)
        self._seen = MessageAccumulator()

    @property
    def response(self) -> Response:
        """The response so far."""
        return self._seen.response

    @property
    def is_complete(self) -> bool:
        """Whether the response is complete."""
        return self._seen.is_complete

    def feed(self, data: bytes) -> list[Event]:
        """As many events as there are bytes."""
        events, self._events = self._events[: len(data)], self._events[len(data) :]
        self._seen.extend(events)
        return events

    def close(self) -> list[Event]:
        """No more events."""
        return []


def played(context: Context, *events: Event) -> tuple[RestoringDecoder, list[list[Event]]]:
    """The restored events for each event, and for the end."""
    decoder = RestoringDecoder(Played(*events), context)
    return decoder, [*(decoder.feed(b"x") for _ in events), decoder.close()]


# --- calls


@pytest.mark.parametrize("name", STRICT)
def test_a_call_is_restored(name: str) -> None:
    """Nulls that strict mode forced are removed, and literals have their original values."""
    context = context_of(name, WEATHER)
    call = answered(name, context, ToolCall("c1", "weather", json.dumps(ASKED))).tool_calls[0]
    assert call.arguments == MEANT
    assert call.raw == json.dumps(MEANT)  # otherwise as the model wrote it
    assert WEATHER.problems(call) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_call_without_changes_keeps_its_text(name: str) -> None:
    """If nothing has to be restored, the model's text is kept byte for byte."""
    raw = '{ "city":"Basel",  "days": 3 }'
    given = ToolCall("c1", "weather", raw)
    without = answered(name, NOTHING, given).tool_calls[0]
    call = answered(name, context_of(name, WEATHER), given).tool_calls[0]
    assert (call.raw, call.input) == (without.raw, without.input)


@pytest.mark.parametrize("raw", ['{"city": "Basel", "days": nul', "[1]", "", "null"])
@pytest.mark.parametrize("name", STRICT)
def test_a_truncated_call_is_unchanged(name: str, raw: str) -> None:
    """Arguments that are no object are unchanged, streamed or not."""
    context = context_of(name, WEATHER)
    given = make_call("c1", "weather", raw, origin=Origin(dialect=name))
    assert answered(name, context, given).tool_calls[0].raw == raw
    decoder, events = read(name, context, streamed(name, said(given)))
    without, _ = read(name, NOTHING, streamed(name, said(given)))
    assert decoder.response == without.response == folded(events)


def test_an_aliased_call_is_restored() -> None:
    """A call by an alias gets the tool's own name and is restored by its schema."""
    mcp = make_definition(
        "mcp.server/weather", None, SCHEMA, strict=True, origin=Origin(dialect="x")
    )
    context = context_of("openai-chat", mcp)
    (alias,) = context.names
    given = ToolCall("c1", alias, json.dumps(ASKED))
    call = answered("openai-chat", context, given).tool_calls[0]
    assert (call.name, call.arguments) == ("mcp.server/weather", MEANT)
    decoder, events = read("openai-chat", context, streamed("openai-chat", said(given)))
    assert decoder.response.tool_calls == folded(events).tool_calls == (call,)


@pytest.mark.parametrize("is_mixed", [False, True])
@pytest.mark.parametrize("name", STRICT)
def test_streamed_calls_are_restored(name: str, is_mixed: bool) -> None:
    """Whole or streamed, a call has the same arguments; other events are unchanged."""
    parts = (
        Text("Let me look."),
        ToolCall("c1", "weather", json.dumps(ASKED)),
        ToolCall("c2", "time", json.dumps(ASKED)),
        ToolCall("c3", "weather", json.dumps({**ASKED, "days": 3})),
    )
    context = context_of(name, WEATHER, TIME)
    assert set(context.undos) == {"weather", "time"}  # a literal has to be restored there
    decoder, events = read(name, context, streamed(name, said(*parts, is_mixed=is_mixed)))
    assert decoder.is_complete
    response = decoder.response
    assert [call.arguments for call in response.tool_calls] == [
        MEANT,
        {**MEANT, "days": None},
        {**MEANT, "days": 3},
    ]
    assert folded(events).tool_calls == response.tool_calls
    assert folded(events).text == response.text == "Let me look."


def test_other_streamed_calls_are_not_delayed() -> None:
    """Only what may have to be restored is held back: here a property that may be null."""
    context = context_of("openai-chat", WEATHER)
    held, other = ToolCall("c1", "weather", ""), ToolCall("c2", "other", "")
    events: list[Event] = [
        PartStart(0, held),
        PartStart(1, other),
        PartDelta(0, '{"city": "B", "da'),
        PartDelta(1, '{"x": nu'),
        PartDelta(0, 'ys": null}', signature="s"),
        PartDelta(1, "ll}"),
        PartStop(0),
        PartStop(1),
    ]
    decoder, found = played(context, *events)
    assert found == [
        [PartStart(0, held)],
        [PartStart(1, other)],
        [PartDelta(0, '{"city": "B"')],
        [events[3]],
        [PartDelta(0, "}", signature="s")],
        [events[5]],
        [PartStop(0)],
        [PartStop(1)],
        [],
    ]
    assert folded([event for each in found for event in each]) == decoder.response


def test_calls_without_part_events() -> None:
    """Chat's call deltas have no end: what is held back comes before the choice's finish."""
    context = context_of("openai-chat", WEATHER)
    text = json.dumps(ASKED)
    events: list[Event] = [
        ToolCallDelta(0, "c1", "wea", None),
        ToolCallDelta(0, "c1", "ther", None),
        ToolCallDelta(0, "c1", "weather", text[:5], signature="s"),
        ToolCallDelta(1, "c2", "other", "{"),
        ToolCallDelta(0, arguments_delta=text[5:]),
        ToolCallDelta(1, arguments_delta="}"),
        ChoiceFinish(FinishReason.TOOL_CALLS, "tool_calls"),
        ToolCallDelta(1, arguments_delta=" "),
    ]
    decoder, found = played(context, *events)
    assert found[2] == [ToolCallDelta(0, "c1", "weather", "{", signature="s")]
    assert (found[3], found[5]) == ([events[3]], [events[5]])
    assert found[4] == [ToolCallDelta(0, arguments_delta=json.dumps(MEANT)[1:])]
    assert found[6] == [events[6]]
    assert found[7] == [events[7]]
    assert folded([event for each in found for event in each]) == decoder.response


def test_the_final_form_of_a_call_is_restored() -> None:
    """A call that is repeated in a stop event is restored there as well (W26)."""
    context = context_of("openai-responses", WEATHER)
    whole = ToolCall("c1", "weather", json.dumps(ASKED))
    begun = whole.replace(raw="")
    decoder, found = played(
        context, PartStart(0, begun), PartDelta(0, "{"), PartStop(0, whole), PartStop(0, whole)
    )
    undone = ToolCall("c1", "weather", json.dumps(MEANT))
    assert found == [
        [PartStart(0, begun)],
        [PartDelta(0, "{")],
        [PartDelta(0, undone.raw_arguments[1:]), PartStop(0, undone)],
        [PartStop(0, undone)],
        [],
    ]
    assert decoder.response.tool_calls == (undone,)


def test_complete_calls_are_restored_at_once() -> None:
    """A call whose arguments come as an object is restored at its start."""
    context = context_of("openai-chat", WEATHER)
    _, found = played(context, PartStart(0, ToolCall("c1", "weather", input=ASKED)), PartStop(0))
    assert found[0] == [PartStart(0, ToolCall("c1", "weather", input=MEANT))]


@pytest.mark.parametrize("name", STRICT)
def test_an_interrupted_stream(name: str) -> None:
    """At the end, what was held back is emitted as it is; it is no complete call."""
    context = context_of(name, WEATHER)
    whole = said(Text("Hm."), ToolCall("c1", "weather", json.dumps(ASKED)))
    encoder = dragoman.dialect(name).stream_encoder()
    data = b"".join(map(encoder.feed, whole[: len(whole) - 8]))
    decoder, events = read(name, context, data)
    assert not decoder.is_complete
    (call,) = folded(events).tool_calls
    assert decoder.response.tool_calls == (call,)
    assert call.raw
    assert call.raw.startswith('{"city": "Basel"')
    assert not call.has_valid_arguments


@pytest.mark.parametrize("name", STRICT)
@given(
    schema=roots(),
    seed=st.integers(0, 1000),
    size=st.integers(1, 50),
    is_mixed=st.booleans(),
)
def test_any_call_is_restored(
    name: str,
    schema: dict[str, Any],
    seed: int,
    size: int,
    is_mixed: bool,
) -> None:
    """Streamed or not, with any chunks, a call fits the original schema."""
    tool = make_definition("f", None, schema, strict=True, origin=Origin(dialect="x"))
    request = Request(tools=(tool, WEATHER), **FIELDS)
    encoded = dragoman.dialect(name).encode_request(request)
    sent = encoded.body["tools"][0]
    made = sent.get("function", sent)["parameters"]
    for value in instances(made, seed, 3):
        calls = [ToolCall("c1", "f", json.dumps(value)), ToolCall("c2", "weather", "{}")]
        plain = answered(name, encoded.context, *calls)
        data = streamed(name, said(*calls, size=7, is_mixed=is_mixed))
        decoder, events = read(name, encoded.context, data, size)
        assert decoder.response.tool_calls == plain.tool_calls == folded(events).tool_calls
        meant = encoded.context.undos.get("f", lambda same: same)(value)
        if isinstance(meant, dict):  # otherwise it is no schema of arguments
            assert plain.tool_calls[0].arguments == meant
            assert encoded.losses or spins(schema) or misfits(schema, meant) == []


# --- answers

LIST = Output(format="schema", schema={"type": "array", "items": {"type": "string"}}, strict=True)
NUMBER = Output(format="schema", schema={"type": "integer"}, strict=True)
FORM = Output(format="schema", schema=SCHEMA, strict=True)


@pytest.mark.parametrize(
    ("output", "raw", "meant"),
    [
        (LIST, '{"value": ["a", "b"]}', '["a", "b"]'),
        (LIST, '{"value": ["a", "b"]', '["a", "b"'),  # never complete if it was cut off
        (FORM, json.dumps(ASKED), json.dumps(MEANT)),
        (FORM, '{ "city": "B" }', '{ "city": "B" }'),
        (LIST, '{"value": ["a', '["a'),
        (NUMBER, '{"value": 12}', "12"),
        (NUMBER, '{"value": 12', '{"value": 12'),
        (LIST, "I would rather not.", "I would rather not."),
    ],
)
@pytest.mark.parametrize("name", STRICT)
def test_an_answer_is_restored(name: str, output: Output, raw: str, meant: str) -> None:
    """Like arguments, streamed or not; an answer that is no JSON is unchanged."""
    context = context_of(name, output=output)
    assert answered(name, context, Text(raw)).text == meant
    decoder, events = read(name, context, streamed(name, said(Text(raw))), 5)
    assert decoder.response.text == meant
    assert folded(events) == decoder.response
    begun = [event.part.text for event in events if isinstance(event, PartStart)
             and isinstance(event.part, Text)]  # fmt: skip
    texts = [event.text for event in events if isinstance(event, PartDelta) and event.text]
    assert "".join(begun + texts) == meant


def test_an_answer_from_anthropic() -> None:
    """Anthropic's schemas are always strict, and have an object at the root."""
    context = context_of("anthropic", output=LIST)
    assert answered("anthropic", context, Text('{"value": []}')).text == "[]"


@pytest.mark.parametrize("name", ["gemini", "ollama"])
def test_answers_of_other_dialects_are_unchanged(name: str) -> None:
    """Where the root may have any type, nothing has to be restored."""
    assert context_of(name, output=LIST).is_idle


def test_other_fields_of_a_streamed_answer_are_kept() -> None:
    """Text in a start event is restored too, and extras of deltas are kept."""
    context = context_of("openai-chat", output=LIST)
    decoder, found = played(
        context,
        PartStart(0, Text('{"val')),
        PartDelta(0, 'ue": [', extras={"openai-chat": {"x": 1}}),
        PartDelta(0, "]}"),
        StreamError("Hm."),
        ResponseEnd(),
    )
    assert found == [
        [PartStart(0, Text(""))],
        [PartDelta(0, extras={"openai-chat": {"x": 1}})],
        [PartDelta(0, "[]")],
        [StreamError("Hm.")],
        [ResponseEnd()],
        [],
    ]
    assert folded([event for each in found for event in each]) == decoder.response


# --- the context


def test_an_idle_context_has_no_overhead() -> None:
    """Without anything to restore, decoder and response are returned unchanged."""
    decoder = Played()
    assert restoring(decoder, NOTHING) is decoder
    response = Response(choices=(Choice(0, Message.assistant("Hi")),))
    assert NOTHING.restored(response) is response
    assert context_of("openai-chat", WEATHER).restored(response) is response


@pytest.mark.parametrize("value", [[1], "x", None, {"value": 3}])
def test_values_that_are_no_arguments_stay_wrapped(value: Any) -> None:
    """A wrapped value that is no object can't be arguments, so it stays wrapped."""
    union = {"anyOf": [{"type": "array"}, {"type": "object", "properties": {"a": {}}}]}
    made = projected(union, OPENAI_STRICT)
    context = Context(undos={"f": made.undo})
    call = ToolCall("c", "f", json.dumps({"value": value}))
    restored = context.part(call)
    assert isinstance(restored, ToolCall)
    assert restored.arguments == (value if isinstance(value, dict) else {"value": value})


def test_a_context_shows_sizes_only() -> None:
    """Its repr has no names of tools."""
    assert repr(context_of("openai-chat", WEATHER, output=LIST)) == (
        "Context(0 names, 1 schemas, output)"
    )


# --- validation


@pytest.mark.parametrize(
    ("call", "paths"),
    [
        (ToolCall("c", "weather", json.dumps(MEANT)), []),
        (ToolCall("c", "weather", json.dumps(ASKED)), ["$.days", "$.level"]),
        (make_call("c", "weather", "{"), ["$"]),
        (make_call("c", "weather", "[]"), ["$"]),
        (ToolCall("c", "weather", "free text", kind="custom"), ["$"]),
        (ToolCall("c", "weather"), ["$.city"]),
    ],
)
def test_a_call_is_checked_against_the_original(call: ToolCall, paths: list[str]) -> None:
    """Arguments of any text are validated in one step; problems quote no values."""
    found = WEATHER.problems(call)
    assert [problem.path for problem in found] == paths
    assert "Basel" not in str(found)


def test_custom_tools_have_no_schema() -> None:
    """Custom tools have no schema, so any text is valid."""
    shell = ToolDefinition("sh", "Runs.", kind="custom")
    assert shell.problems(ToolCall("c", "sh", "ls", kind="custom")) == []
