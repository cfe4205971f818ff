"""The echo model, for trying things out."""

from __future__ import annotations

import pytest

from dragoman.model.events import PartDelta
from dragoman.model.messages import Message
from dragoman.model.requests import Request, Sampling
from dragoman.model.tools import ToolResult
from dragoman.model.usage import FinishReason
from dragoman.transport.echo import EchoModel
from dragoman.transport.synthetic_answers import words
from dragoman.wire.dialect import dialect, dialects


async def test_it_repeats_the_last_user_message() -> None:
    """Whatever else is in the conversation."""
    async with EchoModel() as model:
        said = [Message.system("Be brief."), Message.user("One."), Message.assistant("1"),
                Message.user("Two,  three.\n")]  # fmt: skip
        response = await model.send(said)
    assert response.text == "Two,  three.\n"
    assert response.finish is FinishReason.STOP
    assert model.name == "echo:"


async def test_a_stream_has_words_and_the_same_response() -> None:
    """The chunks are words; the response equals that of `send`."""
    model = EchoModel(pause=0.0001)
    pieces: list[str | None] = []
    async with model.stream("Three little  words ") as stream:
        async for event in stream:
            pieces += [event.text] if isinstance(event, PartDelta) else []
    plain = await model.send("Three little  words ")
    assert pieces == ["Three", " little", "  words", " "]
    assert stream.is_complete
    assert stream.response == plain
    assert stream.response.usage == plain.usage


async def test_usage_is_marked_as_an_estimate() -> None:
    """A word counts as a token."""
    response = await EchoModel().send("Three little words")
    assert response.usage is not None
    assert (response.usage.input, response.usage.output) == (3, 3)
    assert response.usage.extras == {"dragoman": {"estimated": True}}


async def test_it_calls_tools_on_request_and_repeats_their_results() -> None:
    """A line is a call; arguments that aren't JSON are kept; the results are the next answer."""
    text = 'Look:\n/tool weather {"city": "Basel"}\n/tool now\n/tool odd {"cut'
    model = EchoModel()
    response = await model.send(text)
    first, second, third = response.tool_calls
    assert response.text == "Look:"
    assert response.finish is FinishReason.TOOL_CALLS
    assert (first.name, first.arguments) == ("weather", {"city": "Basel"})
    assert (second.name, second.arguments) == ("now", {})
    assert (third.raw_arguments, third.has_valid_arguments) == ('{"cut', False)
    results = [ToolResult.success(call.id, f"{call.name} done") for call in response.tool_calls]
    after = await model.send([Message.user(text), response.message, Message.tool(*results)])
    assert after.text == "weather done\nnow done\nodd done"
    assert after.tool_calls == ()


async def test_streamed_calls_are_the_same_calls() -> None:
    """The arguments arrive in pieces."""
    response = await EchoModel().stream('/tool weather {"city": "Basel", "days": 2}').collect()
    assert response.tool_calls[0].arguments == {"city": "Basel", "days": 2}
    assert response.text == ""


async def test_an_answer_that_is_too_long_is_truncated() -> None:
    """Words count as tokens; calls beyond the limit are not made."""
    request = Request(
        messages=(Message.user("one two three\n/tool now"),), sampling=Sampling(max_tokens=2)
    )
    response = await EchoModel().send(request)
    assert (response.text, response.finish) == ("one two", FinishReason.LENGTH)
    assert response.tool_calls == ()
    assert response.message.finish is FinishReason.LENGTH


async def test_without_a_user_message_the_answer_is_empty() -> None:
    """No user message, no text."""
    assert (await EchoModel().send([Message.system("x")])).text == ""


@pytest.mark.parametrize("name", dialects())
async def test_its_answers_can_be_encoded_in_every_dialect(name: str) -> None:
    """A conversation that began with it can be continued anywhere."""
    model = EchoModel()
    asked = Message.user('Hello /\n/tool weather {"city": "Basel"}')
    response = await model.send(asked)
    result = Message.tool(ToolResult.success(response.tool_calls[0].id, "rain"))
    request = Request(model="any", messages=(asked, response.message, result))
    encoded = dialect(name).encode_request(request)
    assert b"Basel" in encoded.to_bytes()
    assert dialect(name).decode_response(
        dialect(name).encode_response(response).to_bytes()
    ).tool_calls[0].arguments == {"city": "Basel"}


@pytest.mark.parametrize("text", ["", " ", "a", "a b", "\n a\tb  "])
def test_words_add_up_to_their_text(text: str) -> None:
    """Splitting into words drops nothing."""
    assert "".join(words(text)) == text
