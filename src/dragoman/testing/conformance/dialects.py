"""What every dialect must do, with messages that every provider has a form for."""

from __future__ import annotations

import pytest

from dragoman.errors import LossError, WireError
from dragoman.model.events import Event
from dragoman.model.jsontext import dumps
from dragoman.model.media import Image
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Text, Thinking
from dragoman.model.requests import Request
from dragoman.model.responses import Choice, Response
from dragoman.model.tools import ToolCall, ToolDefinition
from dragoman.model.usage import FinishReason, Usage
from dragoman.transport.answers import events_of
from dragoman.wire.dialect import Dialect

CALL = ToolCall("call_1", "weather", {"city": "Basel"})
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
REQUEST = Request(
    model="m",
    system=(Text("Be brief."),),
    messages=(
        Message.user("Weather?", Image.from_base64("iVBORw0KGgo=", "image/png")),
        Message.assistant("Let me look.", tool_calls=[CALL]),
        Message.tool("call_1", "sunny", tool_name="weather"),
        Message.user("Thanks."),
    ),
    tools=(ToolDefinition.create("weather", "The weather.", SCHEMA, strict=False),),
)
"""A plain conversation with instructions, a picture, a tool, a call and its result."""
ANSWER = Response(
    choices=(Choice(0, Message.assistant("Sunny."), FinishReason.STOP),),
    usage=Usage(9, 3),
    model="m",
    id="r1",
)


def test_a_plain_conversation_is_whole(spoken: Dialect) -> None:
    """Nothing is lost on the way out, and all of it comes back."""
    encoded = spoken.encode_request(REQUEST)
    assert encoded.or_raise().losses == ()
    again = spoken.decode_request(encoded.to_bytes(), path=encoded.path)
    said = [message.text for message in again.messages if not message.role.is_system]
    assert said[:2] == ["Weather?", "Let me look."]
    assert "sunny" in said[2]  # some wrap it in an object
    assert said[3:] == ["Thanks."]
    called = [call for message in again.messages for call in message.tool_calls]
    assert [(call.name, call.arguments) for call in called] == [("weather", {"city": "Basel"})]
    assert [each.data for message in again.messages for each in message.media] == ["iVBORw0KGgo="]
    assert [tool.name for tool in again.functions] == ["weather"]
    assert "Be brief." in encoded.to_bytes().decode()


def test_what_is_encoded_passes_the_dialect_s_own_rules(spoken: Dialect) -> None:
    """`check` finds no error in it."""
    encoded = spoken.encode_request(REQUEST)
    found = spoken.check(encoded.to_bytes(), path=encoded.path)
    assert [each for each in found if each.severity == "error"] == []


def test_what_came_goes_back_as_it_came(spoken: Dialect) -> None:
    """A request of this dialect is the same after a round trip, without a repair or a loss."""
    encoded = spoken.encode_request(REQUEST)
    again = spoken.decode_request(encoded.to_bytes(), path=encoded.path)
    twice = spoken.encode_request(again)
    assert twice.body == encoded.body
    assert (twice.losses, twice.repairs) == ((), ())
    assert spoken.encode_request(again).to_bytes() == twice.to_bytes()


def test_unknown_fields_survive(spoken: Dialect) -> None:
    """A field that nobody knows is there after a round trip."""
    encoded = spoken.encode_request(REQUEST)
    body = {**encoded.body, "a_field_of_tomorrow": {"x": [1, None]}}
    again = spoken.encode_request(spoken.decode_request(dumps(body), path=encoded.path))
    assert again.body["a_field_of_tomorrow"] == {"x": [1, None]}


def test_unverifiable_thinking_is_a_loss(spoken: Dialect) -> None:
    """Another provider's thinking is left out with a loss, which `or_raise` raises."""
    foreign = Thinking("hmm", signature="s", origin=Origin(dialect="another"))
    said = (Message.user("hi"), Message.assistant(foreign, "yo"), Message.user("go on"))
    encoded = spoken.encode_request(Request(model="m", messages=said))
    assert [loss.path for loss in encoded.losses] == ["messages[1].parts[0]"]
    assert b"hmm" not in encoded.to_bytes()
    with pytest.raises(LossError) as caught:
        encoded.or_raise()
    assert caught.value.losses == encoded.losses


def test_a_response_is_whole(spoken: Dialect) -> None:
    """Text, finish reason and usage are the same after a round trip."""
    again = spoken.decode_response(spoken.encode_response(ANSWER).to_bytes())
    assert again.text == "Sunny."
    assert again.finish is FinishReason.STOP
    assert again.usage is not None
    assert (again.usage.total_input, again.usage.total_output) == (9, 3)


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_stream_is_whole_however_it_is_cut(spoken: Dialect, size: int) -> None:
    """The events of an answer, encoded and decoded again, give the same answer."""
    encoder = spoken.stream_encoder()
    raw = b"".join([*map(encoder.feed, events_of(ANSWER)), encoder.close()])
    decoder = spoken.stream_decoder()
    heard: list[Event] = []
    for start in range(0, len(raw), size):
        heard += decoder.feed(raw[start : start + size])
    heard += decoder.close()
    assert heard
    assert decoder.response.text == "Sunny."
    assert decoder.response.finish is FinishReason.STOP


def test_a_stream_that_breaks_off_is_not_complete(spoken: Dialect) -> None:
    """Half of an answer never becomes a whole one."""
    encoder = spoken.stream_encoder()
    raw = b"".join([*map(encoder.feed, events_of(ANSWER)), encoder.close()])
    decoder = spoken.stream_decoder()
    decoder.feed(raw[: len(raw) // 2])
    decoder.close()
    assert decoder.response.finish is not FinishReason.STOP


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b'"x"', b"\xff", b"5"])
def test_junk_is_a_wire_error(spoken: Dialect, raw: bytes) -> None:
    """What is no response raises our error, which quotes nothing."""
    with pytest.raises(WireError):
        spoken.decode_response(raw)


__all__ = [name for name in globals() if name.startswith("test_")]
