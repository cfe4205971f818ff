"""Assembling events into a response, whatever servers do to indexes, ids and names."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from dragoman.errors import InvalidInputError
from dragoman.model import tool_calls
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    OpaqueEvent,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    StreamError,
    UsageUpdate,
)
from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio, Image
from dragoman.model.parts import Citation, Origin, Refusal, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from tests.model import strategies as some

D = ToolCallDelta


def fold(*events: Event) -> MessageAccumulator:
    """An accumulator that has taken in these events."""
    accumulator = MessageAccumulator()
    accumulator.extend(events)
    return accumulator


def calls_of(*deltas: ToolCallDelta) -> list[tuple[str, str]]:
    """Name and arguments of the calls that these deltas make."""
    return [(call.name, call.raw_arguments) for call in fold(*deltas).message.tool_calls]


# --- tool call deltas (W7, W8, W87; acceptance 11)

ONE = [("f", '{"a":1}')]
TWO = [("f", '{"a":1}'), ("g", '{"b":2}')]
TWINS = [("f", '{"a":1}'), ("f", '{"a":1}')]


@pytest.mark.parametrize(("deltas", "calls"), [
    pytest.param([D(0, "c", "f"), D(0, arguments_delta='{"a"'), D(0, arguments_delta=":1}")],
                 ONE, id="as OpenAI does it"),
    pytest.param([D(0, "c", "f", "", kind="function"), D(0, "", "", '{"a":1}')],
                 ONE, id="empty strings are absent"),
    pytest.param([D(None, "c", "f"), D(None, arguments_delta='{"a":1}')], ONE, id="no index"),
    pytest.param([D(None, "c", "f", '{"a"'), D(None, "c", None, ":1}")],
                 ONE, id="no index, id on each"),
    pytest.param([D(0, "c", "f", '{"a"'), D(0, "c", "f", ":1}")], ONE, id="id and name on each"),
    pytest.param([D(0, "c", "f", '{"a":1}'), D(0, "c", "f", "")],
                 ONE, id="id and name on an empty last one"),
    pytest.param([D(0, None, "f", '{"a"'), D(0, None, "f", ":1}")], ONE, id="name repeated, no id"),
    pytest.param([D(None, None, "f", '{"a"'), D(None, None, "f", ":1}")],
                 ONE, id="the same name continues without id and index"),
    pytest.param([D(None, None, "f", '{"a":1}'), D(None, None, "f", '{"a":1}')],
                 TWINS, id="a later repeat is distinct"),
    pytest.param([D(0, "c", "f", '{"a"'), D(1, None, None, ":1}")], ONE, id="the index drifts"),
    pytest.param([D(0, "c", "f", '{"a"'), D(7, None, None, ":"), D(0, None, None, "1}")],
                 ONE, id="the index drifts and comes back"),
    pytest.param([D(0, "c", "f", '{"a"'), D(1, "c", None, ":1}")],
                 ONE, id="the id knows better than the index"),
    pytest.param([D(0, None, "f", '{"a"'), D(0, "c", None, ":1}")], ONE, id="the id comes late"),
    pytest.param([D(0, "c", "f", '{"a"'), D(0, "d", None, ":1}")],
                 ONE, id="the id changes in mid-call"),
    pytest.param([D(0, "c", "f"), D(0, "d", None, '{"a":1}')],
                 ONE, id="the id changes before the arguments"),
    pytest.param([D(0, "c", "ge"), D(0, None, "t_x"), D(0, None, None, "{}")],
                 [("get_x", "{}")], id="the name comes in pieces"),
    pytest.param([D(0, "c", None), D(0, None, "f"), D(0, None, None, '{"a":1}')],
                 ONE, id="the name comes late"),
    pytest.param([D(0, "c", "f"), D(1, "d", "g"), D(1, None, None, '{"b"'),
                  D(0, None, None, '{"a":'), D(1, None, None, ":2}"), D(0, None, None, "1}")],
                 TWO, id="interleaved by index"),
    pytest.param([D(None, "c", "f", '{"a":'), D(None, "d", "g", '{"b"'), D(None, "c", None, "1}"),
                  D(None, "d", None, ":2}")], TWO, id="interleaved by id"),
    pytest.param([D(0, "c", "f", '{"a":1}'), D(0, "d", "g", '{"b":2}')],
                 TWO, id="all are index 0, whole"),
    pytest.param([D(0, "c", "f", '{"a"'), D(0, None, None, ":1}"), D(0, "d", "g"),
                  D(0, None, None, '{"b":2}')], TWO, id="all are index 0, in pieces"),
    pytest.param([D(0, None, "f", '{"a":1}'), D(0, None, "f", '{"a":1}')],
                 TWINS, id="all are index 0, no ids, same name"),
    pytest.param([D(0, "c", "f"), D(0, "d", "g", '{"b":2}')],
                 [("f", ""), ("g", '{"b":2}')], id="index 0 again after a call without arguments"),
    pytest.param([D(None, None, "f", '{"a":1}'), D(None, None, "g", '{"b":2}')],
                 TWO, id="whole, neither index nor id"),
    pytest.param([D(None, "c", "f", '{"a":1}'), D(None, "d", "f", '{"a":1}')],
                 TWINS, id="whole, no index, same name"),
    pytest.param([D(None, "c", "f", '{"a":1}'), D(None, "c", "f", '{"a":1}')],
                 TWINS, id="whole, the same id twice"),
    pytest.param([D(0, "c", "f", '{"a":1}'), D(1, "d", None), D(1, None, "g", '{"b":2}')],
                 TWO, id="a new id in a new place, its name to come"),
    pytest.param([D(0, "c", "f", '{"a":1}'), D(0, "d", None), D(0, None, "g", '{"b":2}')],
                 TWO, id="a new id after a whole call, its name to come"),
    pytest.param([D(0, "c", "f", '{"a":"}{\\"'), D(0, None, None, '\\\\"}'),
                  D(0, "d", "g", '{"b":2}')],
                 [("f", '{"a":"}{\\"\\\\"}'), ("g", '{"b":2}')], id="brackets within strings"),
    pytest.param([D(0, "c", "f", '{"a":"\\'), D(0, None, None, '"}"}'), D(0, None, "g", '{"b":2}')],
                 [("f", '{"a":"\\"}"}'), ("g", '{"b":2}')], id="a cut between backslash and quote"),
    pytest.param([D(arguments_delta='{"a":1}')], [("", '{"a":1}')], id="arguments without a call"),
    pytest.param([D(0, "c", "f", '{"a":')], [("f", '{"a":')], id="an unfinished call"),
])  # fmt: skip
def test_deltas_of_real_servers_become_calls(
    deltas: list[ToolCallDelta], calls: list[tuple[str, str]]
) -> None:
    """The behaviour of real servers, one by one."""
    assert calls_of(*deltas) == calls


def test_an_id_that_came_is_the_calls_id() -> None:
    """Early or late; the first that came stays."""
    assert fold(D(0, "c", "f")).message.tool_calls[0].id == "c"
    late = fold(D(0, None, "f", "{"), D(0, "c", None, "}")).message.tool_calls[0]
    assert (late.id, late.wire_id) == ("c", UNSET)
    changed = fold(D(0, "c", "f", "{"), D(0, "d", None, "}")).message.tool_calls[0]
    assert changed.id == "c"


def test_a_call_without_id_gets_one_that_stays() -> None:
    """Unique, the same whenever it is looked at, and marked as ours."""
    accumulator = fold(D(None, None, "f", "{}"), D(None, None, "f", "{}"))
    first, second = accumulator.message.tool_calls
    assert first.id != second.id
    assert first.wire_id is None
    accumulator.add(ResponseEnd())
    assert [call.id for call in accumulator.message.tool_calls] == [first.id, second.id]


def test_an_unfinished_call_is_not_taken_for_complete() -> None:
    """It is kept and flagged, and the response is not complete."""
    accumulator = fold(D(0, "c", "f", '{"a":'))
    assert not accumulator.message.tool_calls[0].has_valid_arguments
    assert not accumulator.is_complete


def test_kind_signature_and_extras_come_along() -> None:
    """From the first delta or a later one."""
    accumulator = fold(
        D(0, "c", "f", "x", kind="custom", extras={"a": {"b": 1}}),
        D(0, signature="proof", extras={"c": {"d": 2}}),
    )
    (call,) = accumulator.message.tool_calls
    assert (call.kind, call.signature, call.raw) == ("custom", "proof", "x")
    assert call.extras == {"a": {"b": 1}, "c": {"d": 2}}


class Plan:
    """Calls, and where their arguments are cut."""

    def __init__(self, names: list[str], arguments: list[dict[str, Any]], draw: st.DrawFn) -> None:
        self.calls = [
            (name, dumps(value).decode("utf-8"))
            for name, value in zip(names, arguments, strict=False)
        ]
        self.pieces = [_cut(text, draw) for _, text in self.calls]

    def deltas(self, draw: st.DrawFn, *, index: bool, ids: str) -> list[ToolCallDelta]:
        """The deltas of all calls, interleaved; each call's own stay in order."""
        queues = []
        for number, ((name, _), pieces) in enumerate(zip(self.calls, self.pieces, strict=True)):
            place, id_ = number if index else None, f"call_{number}"
            head = D(place, None if ids == "none" else id_, name, "")
            later = id_ if ids == "each" else None
            queues.append([head, *(D(place, later, None, piece) for piece in pieces)])
        merged = []
        while queues:
            queue = queues[draw(st.integers(0, len(queues) - 1))]
            merged.append(queue.pop(0))
            queues = [queue for queue in queues if queue]
        return merged


def _cut(text: str, draw: st.DrawFn) -> list[str]:
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


@st.composite
def plans(draw: st.DrawFn) -> tuple[Plan, dict[str, list[ToolCallDelta]]]:
    """Calls, and the ways in which a server may legally stream them."""
    names = draw(st.lists(some.words, min_size=1, max_size=4))
    arguments = [draw(some.json_objects) for _ in names]
    plan = Plan(names, arguments, draw)
    one_by_one = []
    for number, ((name, _), pieces) in enumerate(zip(plan.calls, plan.pieces, strict=True)):
        one_by_one += [D(0, f"call_{number}", name), *(D(0, None, None, piece) for piece in pieces)]
    streams = {
        "by index": plan.deltas(draw, index=True, ids="first"),
        "by index, without ids": plan.deltas(draw, index=True, ids="none"),
        "by id": plan.deltas(draw, index=False, ids="each"),
        "by both": plan.deltas(draw, index=True, ids="each"),
        "one by one, all index 0": one_by_one,
        "one by one, no index": [delta.replace(index=None) for delta in one_by_one],
        "whole": [D(None, None, name, text) for name, text in plan.calls],
        "whole, all index 0": [D(0, None, name, text) for name, text in plan.calls],
    }
    return plan, streams


@given(plans())
def test_calls_are_the_same_however_they_are_streamed(
    drawn: tuple[Plan, dict[str, list[ToolCallDelta]]],
) -> None:
    """Cut anywhere and interleaved in any legal order, the same calls come out."""
    plan, streams = drawn
    for way, deltas in streams.items():
        assert sorted(calls_of(*deltas)) == sorted(plan.calls), way


# --- parts


def test_parts_start_grow_and_stop() -> None:
    """Text, thinking, refusals and calls grow by text, each in its place."""
    message = fold(
        PartStart(0, Thinking("h")),
        PartStart(1, Text("")),
        PartDelta(1, "Hel"),
        PartDelta(0, "m", signature="si"),
        PartDelta(0, signature="gn", data="da"),
        PartDelta(0, data="ta"),
        PartStop(0),
        PartDelta(1, "lo", citations=(Citation(kind="url"),)),
        PartStart(2, ToolCall("c", "f", input={})),
        PartDelta(2, '{"a"'),
        PartDelta(2, ":1}"),
        PartStart(3, Refusal("n")),
        PartDelta(3, "o"),
        PartStart(4, Image(url="x:y")),
    ).message
    assert message.role is Role.ASSISTANT
    assert message.parts == (
        Thinking("hm", data="data", signature="sign"),
        Text("Hello", (Citation(kind="url"),)),
        ToolCall("c", "f", raw='{"a":1}'),
        Refusal("no"),
        Image(url="x:y"),
    )


def test_a_delta_without_a_start_is_text() -> None:
    """Some servers send no start event."""
    assert fold(PartDelta(0, "Hel"), PartDelta(0, "lo")).message.parts == (Text("Hello"),)


def test_the_final_part_replaces_the_deltas() -> None:
    """If the wire repeats a part at its end, that value counts, and nothing is duplicated."""
    accumulator = fold(PartStart(0, Text("")), PartDelta(0, "Helo"), PartStop(0, Text("Hello")))
    assert accumulator.message.parts == (Text("Hello"),)
    assert fold(PartStop(0, Text("Hello"))).message.parts == (Text("Hello"),)
    assert fold(PartStop(0)).message.parts == ()


def test_parts_stay_in_the_order_in_which_they_began() -> None:
    """Whatever their indexes say; parts and call deltas mix."""
    message = fold(PartStart(5, Text("a")), D(0, "c", "f", "{}"), PartStart(1, Text("b"))).message
    assert [type(part) for part in message.parts] == [Text, ToolCall, Text]


def test_nothing_is_parsed_while_streaming(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither while streaming nor when the response is read."""
    monkeypatch.setattr(tool_calls, "loads", lambda _raw: pytest.fail("arguments were parsed"))
    accumulator = fold(D(0, "c", "f", '{"a":'))
    for _ in range(10):
        accumulator.add(D(0, None, None, "[1],"))
        _ = accumulator.response
    assert accumulator.message.tool_calls[0].raw_arguments == '{"a":' + "[1]," * 10


@given(st.lists(some.texts, max_size=10))
def test_texts_are_joined_as_they_came(pieces: list[str]) -> None:
    """Nothing is added between them, whenever the response is looked at."""
    accumulator = MessageAccumulator()
    for number, piece in enumerate(pieces, 1):
        accumulator.add(PartDelta(0, piece))
        assert accumulator.message.text == "".join(pieces[:number])


# --- the response


def test_a_response_is_readable_at_any_time() -> None:
    """Before the first event too; the message's id never changes."""
    accumulator = MessageAccumulator()
    seen = [accumulator.message.id]
    assert accumulator.response.choices == ()
    assert accumulator.message.parts == ()
    events: list[Event] = [
        ResponseStart(id="r"), PartStart(0, Text("")), PartDelta(0, "a"), D(0, "c", "f", "{}"),
        UsageUpdate(Usage(1)), ChoiceFinish(FinishReason.STOP), ResponseEnd(),
    ]  # fmt: skip
    for event in events:
        accumulator.add(event)
        seen.append(accumulator.message.id)
    assert len(set(seen)) == 1
    assert accumulator.response.message.id == seen[0]


def test_a_response_has_its_origin_and_finish_reason() -> None:
    """It includes everything from the events."""
    origin = Origin(dialect="x")
    accumulator = fold(
        ResponseStart(id="r", model="m", created_at=5.0, origin=origin, extras={"x": {"a": 1}}),
        PartDelta(0, "hi"),
        UsageUpdate(Usage(1, 1)),
        UsageUpdate(Usage(1, 2)),
        ChoiceFinish(FinishReason.LENGTH, "max_tokens", logprobs=[1], extras={"x": {"b": 2}}),
        ResponseEnd(),
    )
    response = accumulator.response
    assert accumulator.is_complete
    assert (response.id, response.model, response.created_at) == ("r", "m", 5.0)
    assert response.extras == {"x": {"a": 1}}
    assert response.usage == Usage(1, 2)  # the whole, not an increment
    (choice,) = response.choices
    assert (choice.finish, choice.finish_raw, choice.logprobs) == (
        FinishReason.LENGTH, "max_tokens", [1],
    )  # fmt: skip
    assert choice.extras == {"x": {"b": 2}}
    message = response.message
    assert (message.origin, message.usage, message.finish) == (
        origin, Usage(1, 2), FinishReason.LENGTH,
    )  # fmt: skip


def test_a_second_start_fills_gaps() -> None:
    """Servers that repeat it in every chunk don't reset anything."""
    response = fold(
        ResponseStart(id="r"), PartDelta(0, "hi"), ResponseStart(id="s", model="m")
    ).response
    assert (response.id, response.model, response.text) == ("r", "m", "hi")


def test_choices_grow_side_by_side() -> None:
    """In the order of their indexes, each with its own calls, id and finish."""
    response = fold(
        PartDelta(0, "b", choice=1),
        PartDelta(0, "a"),
        D(0, "d", "g", '{"b":2}', choice=1),
        D(0, "c", "f", '{"a":1}'),
        ChoiceFinish(FinishReason.STOP, choice=1),
        UsageUpdate(Usage(1)),
    ).response
    assert [choice.index for choice in response.choices] == [0, 1]
    assert [choice.message.text for choice in response.choices] == ["a", "b"]
    assert [choice.message.tool_calls[0].name for choice in response.choices] == ["f", "g"]
    assert [choice.finish for choice in response.choices] == [None, FinishReason.STOP]
    assert len({choice.message.id for choice in response.choices}) == 2
    # What several answers cost together is not the cost of one of them.
    assert [choice.message.usage for choice in response.choices] == [None, None]
    assert response.usage == Usage(1)


def test_errors_and_unknown_events_are_kept() -> None:
    """They are no part of the answer, and are not lost."""
    error, opaque = StreamError("overloaded"), OpaqueEvent("x", {"ping": 1})
    accumulator = fold(error, opaque)
    assert (accumulator.errors, accumulator.opaque) == ([error], [opaque])
    assert accumulator.response.choices == ()


def test_only_events_are_taken() -> None:
    """A text is not an event."""
    with pytest.raises(InvalidInputError, match="expected an event, not str"):
        MessageAccumulator().add("hi")  # type: ignore[arg-type]


_pieces = st.builds(
    D,
    st.sampled_from([None, 0, 0, 1]),
    st.sampled_from([None, None, "a", "b"]),
    st.sampled_from([None, None, "f", "g"]),
    st.sampled_from([None, "{", '"x":1', "}", '{"x":1}']),
)


@given(st.lists(_pieces, max_size=8))
def test_resolved_pieces_add_up_to_the_same_calls(pieces: list[ToolCallDelta]) -> None:
    """With the index of its call filled in, each delta is added to the same call as without."""
    accumulator, other = MessageAccumulator(), MessageAccumulator()
    for piece in pieces:
        resolved = accumulator.resolved(piece)
        accumulator.add(piece)
        assert resolved.index is not None
        assert resolved.index < len(accumulator.message.tool_calls)
        other.add(resolved)
    assert [call.raw for call in other.message.tool_calls] == [
        call.raw for call in accumulator.message.tool_calls
    ]


def test_an_id_that_is_used_twice_is_made_unique() -> None:
    """Two calls never share an id, and the wire's own is kept (I5)."""
    first, second = fold(D(0, "c", "f", "{}"), D(1, "c", "f", "{}")).message.tool_calls
    assert (first.id, first.wire_id) == ("c", UNSET)
    assert (second.id != "c", second.wire_id) == (True, "c")


@pytest.mark.parametrize(
    ("pieces", "joined"),
    [(["AQ==", "Ag=="], "AQI="), (["AQID", "BA=="], "AQIDBA=="), (["=", "x"], "=x")],
)
def test_sound_grows_by_its_bytes_and_its_words(pieces: list[str], joined: str) -> None:
    """Base64 that was padded piece by piece is joined as bytes; other text is joined as is."""
    grown = [PartDelta(0, "a", data=piece) for piece in pieces]
    (part,) = fold(PartStart(0, Audio(data="")), *grown).message.parts
    assert isinstance(part, Audio)
    assert (part.data, part.transcript) == (joined, "aa")


def test_late_fields_of_the_wire_are_laid_over_the_first() -> None:
    """A part's extras grow by dialect and field."""
    start = PartStart(0, Text("a", extras={"x": {"one": 1, "two": 1}, "y": {"one": 1}}))
    (part,) = fold(start, PartDelta(0, extras={"x": {"two": 2}})).message.parts
    assert part.extras == {"x": {"one": 1, "two": 2}, "y": {"one": 1}}


def test_the_finish_event_carries_the_messages_extras() -> None:
    """Fields beside the parts end up in the message's extras; a second finish wins."""
    finishes = [ChoiceFinish(FinishReason.STOP, message_extras={"x": {"n": n}}) for n in (1, 2)]
    assert fold(*finishes).message.extras == {"x": {"n": 2}}


def test_a_later_start_knows_the_origin_better() -> None:
    """Azure names its model only in the second chunk."""
    starts = [ResponseStart(origin=Origin(dialect="x", model=model)) for model in (None, "m")]
    assert fold(*starts, PartDelta(0, "a")).message.origin == Origin(dialect="x", model="m")


@given(st.lists(some.events, max_size=12))
def test_no_order_of_events_does_harm(events: list[Event]) -> None:
    """Whatever events arrive, the response can be read, serialised and read back."""
    response = fold(*events).response
    assert type(response).from_json(response.to_json()).identical(response)
