"""Text, thinking, refusals, provider-run tools and opaque content."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from dragoman.errors import InvalidInputError
from dragoman.model.messages import Message
from dragoman.model.parts import (
    CacheHint,
    Citation,
    Opaque,
    Origin,
    Part,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.tools import ToolCall, ToolResult
from tests.model import strategies as some


@pytest.mark.parametrize(("part", "is_empty"), [
    (Text(""), True),
    (Text(" "), False),
    (Thinking(), True),
    (Thinking("hm"), False),
    (Thinking(data="sealed"), False),
    (Thinking(signature="proof"), False),
    (Thinking(item_id="rs_1"), False),
    (Refusal(""), False),
    (Opaque("x"), False),
    (ServerToolCall("search"), False),
    (ToolCall("c", "f"), False),
    (ToolResult("c"), False),
])  # fmt: skip
def test_is_empty_means_nothing_to_say_or_replay(part: Part, is_empty: bool) -> None:
    """Only text and thinking can be empty; anything a provider needs back counts as content."""
    assert part.is_empty is is_empty


def test_with_text_drops_fields_about_the_old_text() -> None:
    """Citations, signature, extras and the wire's id are dropped; origin and cache hint stay."""
    origin, cache = Origin(dialect="x"), CacheHint("5m")
    old = Text(
        "old", (Citation(kind="url"),), item_id="1", origin=origin, cache=cache,
        signature="proof", extras={"x": {"y": 1}},
    )  # fmt: skip
    assert old.with_text("new").identical(Text("new", origin=origin, cache=cache))


@given(some.texts)
def test_texts_are_kept_as_they_are(text: str) -> None:
    """Nothing is trimmed or normalised: signatures depend on the characters."""
    assert Text(text).text == text
    assert Message.user(text).text == text


@pytest.mark.parametrize(("make", "problem"), [
    (lambda: Text(5), "Text.text must be str, not int"),  # type: ignore[arg-type]
    (lambda: Text("a", ("b",)), "Text.citations can't hold a str"),  # type: ignore[arg-type]
    (lambda: Text("a", item_id=5), "Text.item_id must be str"),  # type: ignore[arg-type]
    (lambda: Text("a", signature=b""), "Text.signature must be str"),  # type: ignore[arg-type]
    (lambda: Text("a", cache="5m"), "Text.cache must be CacheHint"),  # type: ignore[arg-type]
    (lambda: Text("a", extras=5), "Text.extras must be a mapping"),  # type: ignore[arg-type]
    (lambda: Thinking(5), "Thinking.text must be str"),  # type: ignore[arg-type]
    (lambda: Thinking("", data=5), "Thinking.data must be str"),  # type: ignore[arg-type]
    (lambda: Thinking("", form="deep"), "Thinking.form must be full, summary or redacted"),  # type: ignore[arg-type]
    (lambda: Refusal(5), "Refusal.text must be str"),  # type: ignore[arg-type]
    (lambda: ServerToolCall(5), "ServerToolCall.name must be str"),  # type: ignore[arg-type]
    (lambda: ServerToolCall("x", call_id=5), "ServerToolCall.call_id must be str"),  # type: ignore[arg-type]
    (lambda: ServerToolResult("x", is_error=1), "ServerToolResult.is_error must be bool"),  # type: ignore[arg-type]
    (lambda: Opaque("x", object()), "Opaque.payload contains a object"),
])  # fmt: skip
def test_a_part_of_wrong_types_enters_no_message(make: Callable[[], Part], problem: str) -> None:
    """Parts are checked when people put them into a message, wherever they do it."""
    with pytest.raises(InvalidInputError, match=problem):
        Message.assistant(make())
    with pytest.raises(InvalidInputError, match=problem):
        Message.assistant("a").add_part(make())
    with pytest.raises(InvalidInputError, match=problem):
        Message.assistant("a").replace(parts=(make(),))


def test_extras_of_a_part_in_a_message_are_frozen() -> None:
    """A caller who keeps the dict can't change the message with it."""
    given_extras = {"x": {"y": [1]}}
    message = Message.user(Text("a", extras=given_extras))
    given_extras["x"]["y"].append(2)
    assert message.parts[0].extras == {"x": {"y": [1]}}


def test_repr_of_thinking_says_what_it_has() -> None:
    """Signed and sealed thinking can be told from plain, without a word of it."""
    assert (
        repr(Thinking("hm", data="x", signature="y")) == "Thinking(full, 2 chars, signed, sealed)"
    )
    assert repr(Text("hm", (Citation(kind="url"),))) == "Text(2 chars, 1 citations)"
    assert repr(ServerToolResult("x", is_error=True)) == "ServerToolResult(x, error)"
