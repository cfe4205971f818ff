"""The registry of dialects, and the result of encoding."""

from __future__ import annotations

import pytest

import dragoman
from dragoman import Encoded, Loss, Message, Request, Thinking
from dragoman.errors import ConfigError, LossError


def test_dialects_are_found_by_their_folders() -> None:
    """Every dialect is registered under its name."""
    assert {"anthropic", "gemini", "openai-chat", "openai-responses"} <= set(dragoman.dialects())
    for name in dragoman.dialects():
        assert dragoman.dialect(name).name == name


def test_an_unknown_dialect_error_lists_the_known_ones() -> None:
    """The error for an unknown name lists the known dialects."""
    with pytest.raises(ConfigError, match="anthropic"):
        dragoman.dialect("esperanto")


@pytest.mark.parametrize("name", dragoman.dialects())
def test_unsupported_content_is_a_loss(name: str) -> None:
    """Unverifiable thinking is left out with a loss, which `or_raise` turns into an error."""
    foreign = Thinking("hmm", signature="s", origin=dragoman.model.Origin(dialect="another"))
    messages = (Message.user("hi"), Message.assistant(foreign, "yo"), Message.user("go on"))
    request = Request(model="m", messages=messages)
    encoded = dragoman.dialect(name).encode_request(request)
    assert [loss.path for loss in encoded.losses] == ["messages[1].parts[0]"]
    assert b"hmm" not in encoded.to_bytes()
    with pytest.raises(LossError) as caught:
        encoded.or_raise()
    assert caught.value.losses == encoded.losses


@pytest.mark.parametrize("name", dragoman.dialects())
def test_plain_conversations_have_no_losses(name: str) -> None:
    """A plain conversation with a tool call and an image can be encoded in every dialect."""
    call = dragoman.ToolCall.create("call_1", "weather", {"city": "Basel"})
    request = Request(
        model="m",
        system=(dragoman.Text("Be brief."),),
        messages=(
            Message.user("Weather?", dragoman.Image.from_base64("iVBORw0KGgo=", "image/png")),
            Message.assistant("Let me look.", tool_calls=[call]),
            Message.tool("call_1", "sunny", tool_name="weather"),
            Message.user("Thanks."),
        ),
    )
    speaker = dragoman.dialect(name)
    encoded = speaker.encode_request(request).or_raise()
    again = speaker.decode_request(encoded.to_bytes(), path=encoded.path)
    said = [m.text for m in again.messages if not m.role.is_system]
    assert said[:2] == ["Weather?", "Let me look."]
    assert "sunny" in said[2]  # Gemini wraps it in an object
    assert said[3:] == ["Thanks."]
    assert [call.arguments for m in again.messages for call in m.tool_calls] == [{"city": "Basel"}]
    assert [m.data for message in again.messages for m in message.media] == ["iVBORw0KGgo="]
    assert "Be brief." in encoded.to_bytes().decode()


def test_encoded_shows_sizes_only() -> None:
    """The repr of an encoded body does not show its content."""
    encoded = Encoded({"secret": "value"}, losses=(Loss("messages[0]", "gone"),))
    assert repr(encoded) == "Encoded(1 fields, 1 losses, 0 repairs)"
    assert encoded.to_bytes() == b'{"secret":"value"}'
    with dragoman.reveal() as shown:
        assert repr(encoded).startswith("Encoded({'secret': 'value'}, losses=(Loss(")
        assert repr(shown) == "reveal()"


def test_repr_does_not_change_an_encoded_body() -> None:
    """A repr, in a debugger or a log, does not change what is sent or how fast."""
    encoded = Encoded(None, _raw=b'{ "a" : 1e2 }')
    assert repr(encoded) == "Encoded(1 fields, 0 losses, 0 repairs)"
    assert encoded.is_raw
    assert encoded.to_bytes() == b'{ "a" : 1e2 }'
