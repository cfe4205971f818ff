"""Responses, choices and embeddings."""

from __future__ import annotations

import pytest

from dragoman.errors import InvalidInputError
from dragoman.model.messages import Message
from dragoman.model.responses import Choice, Embedding, Response
from dragoman.model.tools import ToolCall
from dragoman.model.usage import FinishReason, Usage

CALL = ToolCall.create("c", "f")


def test_the_first_choice_is_the_answer() -> None:
    """Message, text, calls and finish are those of the first choice, in the order given."""
    first = Choice(1, Message.assistant("a", tool_calls=[CALL]), FinishReason.TOOL_CALLS)
    second = Choice(0, Message.assistant("b"), FinishReason.STOP)
    response = Response(choices=(first, second))
    assert response.message is first.message
    assert (response.text, response.tool_calls) == ("a", (CALL,))
    assert response.finish is FinishReason.TOOL_CALLS


def test_a_response_without_choices_has_no_message() -> None:
    """Its `message` raises; its text is empty."""
    response = Response()
    assert (response.text, response.tool_calls, response.finish) == ("", (), None)
    with pytest.raises(InvalidInputError, match="no choices"):
        _ = response.message


def test_equality_compares_the_answers() -> None:
    """Id, model, time and cost don't count; the answers do."""
    said = (Choice(0, Message.assistant("a")),)
    response = Response(choices=said)
    assert response == Response(choices=said, id="1", model="m", usage=Usage(1), created_at=1.0)
    assert response != Response(choices=(Choice(0, Message.assistant("b")),))
    assert said[0] == said[0].replace(finish_raw="end_turn", extras={"x": {"y": 1}})
    assert said[0] != said[0].replace(finish=FinishReason.LENGTH)


def test_writing_a_response_assigns_the_ids_of_its_messages() -> None:
    """What is read has the ids that the original has from then on."""
    response = Response(choices=(Choice(0, Message.assistant("a")),))
    assert Response.from_json(response.to_json()).message.id == response.message.id
    choice = Choice(0, Message.assistant("a"))
    assert Choice.from_json(choice.to_json()).message.id == choice.message.id


def test_embeddings_are_equal_by_place() -> None:
    """The model's name and the cost take no part."""
    assert Embedding([1, 2]) == Embedding((1.0, 2.0), model="m", usage=Usage(1))  # type: ignore[arg-type]
    assert Embedding((1.0,)) != Embedding((1.0,), index=1)


def test_a_finished_choice_shows_why() -> None:
    """The reason is no secret."""
    choice = Choice(0, Message.assistant("a"), FinishReason.STOP)
    assert repr(Response(choices=(choice,))) == (
        "Response(Choice(Message(assistant, Text(1 chars)), stop))"
    )
