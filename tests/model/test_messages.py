"""Messages: constructors, properties, modified copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidInputError
from dragoman.model.media import Audio, Image
from dragoman.model.messages import Message, ProvidesMessage, make_message
from dragoman.model.parts import Citation, Opaque, Origin, Part, Refusal, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult, make_call, make_result
from dragoman.model.usage import FinishReason, Usage
from tests.model import strategies as some

CALL = ToolCall.create("c1", "weather", {"city": "Basel"})
RESULT = ToolResult.success("c1", "sunny")
IMAGE = Image.from_url("https://example.com/cat.png")
ORIGIN = Origin(dialect="gemini")

SPOKEN: list[Callable[..., Message]] = [
    Message.system, Message.developer, Message.user, Message.assistant,
]  # fmt: skip


# --- making one


@pytest.mark.parametrize("make", SPOKEN)
def test_each_role_has_its_constructor(make: Callable[..., Message]) -> None:
    """Text, parts, dicts and lists of those become the parts of a message of that role."""
    assert make("hi").role.value == make.__name__
    assert make("hi").parts == (Text("hi"),)
    assert make("a", Text("b"), {"type": "text", "text": "c"}, ["d", IMAGE]).parts == (
        Text("a"), Text("b"), Text("c"), Text("d"), IMAGE,
    )  # fmt: skip


@pytest.mark.parametrize("make", SPOKEN)
def test_the_empty_text_is_content(make: Callable[..., Message]) -> None:
    """It is one empty text, not nothing."""
    assert make("").parts == (Text(""),)


@pytest.mark.parametrize("make", SPOKEN)
def test_nothing_is_no_content(make: Callable[..., Message]) -> None:
    """Neither no argument nor None nor an empty list."""
    nothings: list[tuple[Any, ...]] = [(), (None,), ([],)]
    for nothing in nothings:
        with pytest.raises(InvalidInputError, match="an empty string is allowed"):
            make(*nothing)


def test_an_assistant_message_needs_content_or_calls() -> None:
    """One of the two, or both; None beside calls is accepted."""
    assert Message.assistant(tool_calls=[CALL]).parts == (CALL,)
    assert Message.assistant(None, tool_calls=[CALL]).parts == (CALL,)
    assert Message.assistant("so", tool_calls=iter([CALL])).parts == (Text("so"), CALL)
    assert Message.assistant(Thinking("hm"), "so", CALL).kind == "tool_call"


def test_a_tool_message_holds_results() -> None:
    """From an id and a text, or from results."""
    assert Message.tool("c1", "sunny").parts == (RESULT,)
    assert Message.tool("c1", "bad", is_error=True).tool_results[0].is_error is True
    assert Message.tool("c1", "ok", tool_name="f").tool_results[0].tool_name == "f"
    assert len(Message.tool(RESULT, ToolResult.error("c2", "bad")).tool_results) == 2


@pytest.mark.parametrize(("make", "problem"), [
    (Message.tool, "a tool message needs content"),
    (lambda: Message.tool("c1"), "takes tool results, or a call id and the result text"),
    (lambda: Message.tool("c1", "a", "b"), "takes tool results, or a call id and the result text"),
    (lambda: Message.tool("", "a"), "call id of a tool result must not be empty"),
    (lambda: Message.tool("c1", None), "content of a tool result"),  # type: ignore[arg-type]
    (lambda: Message.tool(RESULT, "text"), "each with the id of its call"),
    (lambda: Message.tool(make_result("")), "each with the id of its call"),
    (lambda: Message.user(5), "content can't be made from int"),  # type: ignore[arg-type]
    (lambda: Message.user(b"hi"), "content can't be made from bytes"),  # type: ignore[arg-type]
    (lambda: Message.user({"type": "hologram"}), "unknown content part type"),
    (lambda: Message.user("hi", name=5), "Message.name must be str"),
    (lambda: Message.user("hi", id=5), "Message.id must be str"),
    (lambda: Message.user("hi", origin="x"), "Message.origin must be Origin"),
    (lambda: Message.user("hi", usage=5), "Message.usage must be Usage"),
    (lambda: Message.user("hi", finish="stop"), "Message.finish must be FinishReason"),
    (lambda: Message.user("hi", created_at="now"), "Message.created_at must be int or float"),
    (lambda: Message.user("hi", created_at=float("nan")), "created_at must be a finite number"),
    (lambda: Message.user("hi", metadata=5), "Message.metadata must be a mapping"),
    (lambda: Message.user("hi", metadata={"a": object()}), "Message.metadata contains a object"),
    (lambda: Message.user("hi", metadata={1: 2}), "JSON keys are strings"),
    (lambda: Message.user("hi", extras={"x": 1}), "the extras of a dialect must be Mapping"),
    (lambda: Message(Role.USER, (Part(),)), "Message.parts can't hold a Part"),
    (lambda: Message.user("hi").with_name(5), "Message.name must be str"),  # type: ignore[arg-type]
    (lambda: Message.user("hi").with_id(5), "the id of a message must be str"),  # type: ignore[arg-type]
    (lambda: Message.user("hi").with_role("robot"), "unknown role"),
    (lambda: Message.user("hi").with_metadata("a", {1}), "Message.metadata contains a set"),
    (lambda: Message.user("hi").add_part(None), "None is not valid content"),  # type: ignore[arg-type]
    (lambda: Message.user("hi").add_content_from("ho"), "must be Message, not str"),  # type: ignore[arg-type]
    (lambda: Message.user("hi").with_image("cat.png"), "must start with a scheme"),
    (lambda: Message.user("hi").with_audio("?"), "Audio data is not base64"),
    (lambda: Message.from_any(None), "None is not a message"),
    (lambda: Message.from_any(b"hi"), "bytes must be JSON"),
    (lambda: Message.from_any(42), "can't be made from int"),
    (lambda: Message.from_any([1, 2]), "can't be made from int"),
    (lambda: Message.from_any({"foo": 1}), "unknown content part type"),
])  # fmt: skip
def test_invalid_messages_are_rejected(make: Callable[[], Any], problem: str) -> None:
    """Each mistake is found on construction, and named."""
    with pytest.raises(InvalidInputError, match=problem):
        make()


@pytest.mark.parametrize(("dialect", "block"), [
    ("anthropic", {"type": "tool_use", "id": "a", "name": "f", "input": {}}),
    ("anthropic", {"type": "tool_result", "tool_use_id": "a", "content": "private"}),
    ("anthropic", {"type": "thinking", "thinking": "private", "signature": "c2ln"}),
    ("anthropic", {"type": "redacted_thinking", "data": "cHJpdmF0ZQ=="}),
    ("anthropic", {"type": "image", "source": {"type": "url", "url": "https://a.example"}}),
    ("gemini", {"functionCall": {"name": "f", "args": {}}}),
    ("openai-responses", {"type": "input_image", "image_url": "https://a.example"}),
])  # fmt: skip
def test_content_of_a_dialect_is_sent_to_its_reader(dialect: str, block: dict[str, Any]) -> None:
    """The error names what can read it, and quotes nothing."""
    with pytest.raises(InvalidInputError, match="decode_request") as refused:
        Message.user(block)
    assert f"dialect({dialect!r})" in str(refused.value)
    assert "private" not in str(refused.value)


def test_decoders_may_make_what_people_may_not() -> None:
    """An empty response and foreign names are legal on a wire."""
    assert make_message(Role.ASSISTANT).parts == ()
    assert make_message("model", [make_call("", "mcp.tool-x")]).role is Role.ASSISTANT


# --- from anything


@dataclass
class Speaker:
    """An object that knows how to be a message."""

    text: str

    def to_message(self) -> Message:
        """Itself, as a message."""
        return Message.developer(self.text)


@dataclass
class Liar:
    """An object that says it is a message and isn't."""

    def to_message(self) -> Any:
        """A text."""
        return "hi"


class Weather(pydantic.BaseModel):
    """A model of the user's."""

    city: str


@dataclass
class Place:
    """A dataclass of the user's."""

    city: str


@pytest.mark.parametrize(("value", "message"), [
    ("hi", Message.user("hi")),
    (Text("hi"), Message.user("hi")),
    (IMAGE, Message.user(IMAGE)),
    (["a", "b"], Message.user("a", "b")),
    (("a", IMAGE), Message.user("a", IMAGE)),
    ([{"type": "text", "text": "a"}, "b"], Message.user("a", "b")),
    ({"text": "hi"}, Message.user("hi")),
    ({"type": "text", "text": "hi"}, Message.user("hi")),
    ({"role": "assistant", "content": "hi"}, Message.assistant("hi")),
    (Message.system("hi"), Message.system("hi")),
    (Speaker("hi"), Message.developer("hi")),
    (("human", "hi"), Message.user("hi")),
    ([], Message.empty()),
])  # fmt: skip
def test_from_any_takes_what_people_have(value: Any, message: Message) -> None:
    """Texts, parts, lists, dicts, messages, pairs, and objects that can be one."""
    assert Message.from_any(value) == message
    for role in (Role.ASSISTANT, "SYSTEM"):
        assert Message.from_any(value, role) == message.with_role(role)


def test_from_any_keeps_a_message_as_it_is() -> None:
    """The very same message, with its id."""
    message = Message.user("hi")
    assert Message.from_any(message) is message
    assert Message.from_any(message, "assistant").id == message.id


def test_to_message_must_return_a_message() -> None:
    """The returned value is validated."""
    assert isinstance(Speaker("hi"), ProvidesMessage)
    with pytest.raises(InvalidInputError, match=r"the result of to_message\(\) must be Message"):
        Message.from_any(Liar())


# --- ids


def test_an_id_is_assigned_once() -> None:
    """On first need, and then it stays."""
    message = Message.user("hi")
    assert message.id == message.id
    assert message.id.startswith("msg_")
    assert message.id != Message.user("hi").id
    assert Message.user("hi", id="m1").id == "m1"


@given(some.messages)
def test_changed_copies_are_the_same_message(message: Message) -> None:
    """A changed copy keeps the id, whether it had been asked for before or not."""
    copy = message.with_metadata("k", 1)
    assert copy.id == message.id
    assert message.with_id("other").id == "other"


# --- what it says


@pytest.mark.parametrize(("message", "kind"), [
    (Message.system("hi"), "system"),
    (Message.developer("hi"), "developer"),
    (Message.user("hi"), "user"),
    (Message.user("hi", RESULT), "user"),
    (Message.assistant("hi"), "assistant"),
    (Message.assistant("hi", tool_calls=[CALL]), "tool_call"),
    (Message.tool(RESULT), "tool_result"),
])  # fmt: skip
def test_the_kind_survives_a_reload(message: Message, kind: str) -> None:
    """It is derived, so that it can't get lost."""
    assert message.kind == kind
    assert Message.from_json(message.to_json()).kind == kind
    assert Message.from_dict(message.to_dict()).kind == kind


@pytest.mark.parametrize(("message", "text"), [
    (Message.user("a", "b"), "a\nb"),
    (Message.assistant("a", "b"), "ab"),
    (Message.assistant(Thinking("hm"), "a", CALL), "a"),
    (Message.assistant(Refusal("no")), "no"),
    (Message.user("a", IMAGE, "b"), "a\nb"),
    (Message.tool(RESULT, ToolResult.error("c2", "bad")), "sunny\nbad"),
    (Message.empty(), ""),
])  # fmt: skip
def test_text_joins_all_readable_parts(message: Message, text: str) -> None:
    """Pieces of one text are joined directly, separate items by newlines."""
    assert message.text == str(message) == text


def test_joined_takes_any_separator() -> None:
    """For those who want the items apart."""
    assert Message.user("a", "b").joined(" | ") == "a | b"


@pytest.mark.parametrize(("message", "content"), [
    (Message.user("a"), "a"),
    (Message.user("a", "b"), "a\nb"),
    (Message.assistant("a", "b"), "ab"),
    (Message.assistant(Text("a", (Citation(kind="url"),))), "a"),
    (Message.assistant(Thinking("hm"), CALL), None),
    (Message.assistant("a", CALL), "a"),
    (Message.assistant(Thinking("hm"), "a", CALL, "b"), "ab"),
    (Message.assistant("", tool_calls=[CALL]), ""),
    (Message.assistant("a", Refusal("no")), (Text("a"), Refusal("no"))),
    (Message.empty(), None),
    (Message.tool(RESULT), "sunny"),
    (Message.tool(ToolResult("c1", (Text("a"), Text("b")))), "a\nb"),
    (Message.tool(ToolResult("c1", (Text("a"), IMAGE))), (ToolResult("c1", (Text("a"), IMAGE)),)),
    (Message.tool(RESULT, RESULT), (RESULT, RESULT)),
    (Message.user(IMAGE), (IMAGE,)),
    (Message.user("a", IMAGE), (Text("a"), IMAGE)),
])  # fmt: skip
def test_content_is_what_is_said_besides_thinking_and_calls(message: Message, content: Any) -> None:
    """The text where that is all, as `text` joins it; else the parts, or nothing (FR-14)."""
    assert message.content == content
    assert type(message.content) is type(content)


def test_the_parts_of_each_kind_can_be_asked_for() -> None:
    """In order; thinking as text."""
    thoughts = (Thinking("a"), Thinking(data="x"), Thinking("b"))
    message = make_message(Role.ASSISTANT, (*thoughts, IMAGE, CALL, RESULT))
    assert message.thinking == "a\nb"
    assert message.tool_calls == (CALL,)
    assert message.tool_results == (RESULT,)
    assert message.media == (IMAGE,)
    assert message.content_parts == (IMAGE, RESULT)


def test_the_answered_call_is_known_for_a_single_result() -> None:
    """Several results answer several calls: there is no one id."""
    assert Message.tool(RESULT).tool_call_id == "c1"
    assert Message.tool(RESULT, RESULT).tool_call_id is None
    assert Message.user("hi").tool_call_id is None


CITED = Text("a", (Citation(kind="url"),))


@pytest.mark.parametrize(("message", "is_null", "is_empty", "is_simple", "is_composite"), [
    (Message.empty(), True, True, False, False),
    (Message.empty().with_metadata("a", 1), True, False, False, False),
    (Message.user(""), False, True, True, False),
    (Message.user("", ""), False, True, False, True),
    (Message.user("a"), False, False, True, False),
    (Message.user("a", "b"), False, False, False, True),
    (Message.user(IMAGE), False, False, False, True),
    (Message.user(CITED), False, False, False, True),
    (Message.assistant(Thinking()), False, True, False, True),
    (Message.assistant(tool_calls=[CALL]), False, False, False, True),
    (Message.tool(RESULT), False, False, False, False),
    (Message.tool(ToolResult("c", (IMAGE,))), False, False, False, True),
])  # fmt: skip
def test_kinds_of_messages(
    message: Message, is_null: bool, is_empty: bool, is_simple: bool, is_composite: bool
) -> None:
    """No parts, empty text, one plain text, or more than that (seed 003)."""
    state = (message.is_null, message.is_empty, message.is_simple, message.is_composite)
    assert state == (is_null, is_empty, is_simple, is_composite)


@given(some.texts, st.integers(1, 20))
def test_a_preview_is_the_beginning(text: str, length: int) -> None:
    """Never longer than asked for, and marked where something is missing."""
    preview = Message.user(text).preview(length)
    assert len(preview) <= length
    assert preview == text or (preview[:-1] == text[: length - 1] and preview[-1] == "…")


def test_a_preview_has_fifty_characters() -> None:
    """Unless asked otherwise."""
    assert len(Message.user("x" * 60).preview()) == 50


# --- changed copies


def test_every_change_is_a_copy() -> None:
    """The original does not change."""
    message = Message.user("hi", id="m1", metadata={"a": 1})
    same = Message.from_json(message.to_json())
    changed = [
        message.with_id("m2"), message.with_role("system"), message.with_name("Ann"),
        message.with_content("ho"), message.with_parts(Text("ho")), message.add_part("ho"),
        message.add_content_from(Message.user("ho")), message.with_image("https://x/y"),
        message.with_audio("aGk="), message.with_metadata("b", 2), message.without_metadata("a"),
        message.with_extra("a", 1), message.replace(name="Ann"),
    ]  # fmt: skip
    assert not any(copy.identical(message) for copy in changed)
    assert message.identical(same)


def test_content_can_be_replaced_and_added() -> None:
    """In all the forms in which a message can be made."""
    message = Message.assistant("a", tool_calls=[CALL])
    assert message.with_content("b").parts == (Text("b"),)
    assert message.with_content("b", [IMAGE, "c"]).parts == (Text("b"), IMAGE, Text("c"))
    assert message.add_part(["b", {"text": "c"}]).parts == (Text("a"), CALL, Text("b"), Text("c"))


def test_pictures_and_sound_can_be_added() -> None:
    """As media, as an address or data URL, as base64."""
    message = Message.user("a").with_image("https://x/y", detail="low").with_image(IMAGE)
    assert message.parts[1:] == (Image(url="https://x/y", detail="low"), IMAGE)
    audio = Audio.from_format("aGk=", "mp3")
    assert Message.user("a").with_audio("aGk=", "mp3").with_audio(audio).parts[1:] == (audio, audio)
    data_url = Message.user("a").with_image("data:image/png;base64,aGk=").parts[1]
    assert data_url == Image(data="aGk=", mime="image/png")


def test_moved_parts_remember_where_they_came_from() -> None:
    """Merging messages mixes sources: each part gets the origin it had through its message."""
    other = Origin(dialect="anthropic")
    mine = Message.assistant("a", origin=ORIGIN)
    theirs = Message.assistant(Text("b"), Text("c", origin=other))
    both = mine.add_content_from(theirs)
    assert [part.origin for part in both.parts] == [ORIGIN, None, other]
    assert mine.origin_of(mine.parts[0]) is ORIGIN
    assert both.origin_of(both.parts[2]) == other
    assert theirs.parts_with_origin() == theirs.parts


def test_metadata_is_the_developers_own() -> None:
    """Set, overwritten, removed; removing what is not there is no error."""
    message = Message.user("hi").with_metadata("a", 1).with_metadata("a", [2]).with_metadata("b", 3)
    assert message.metadata == {"a": [2], "b": 3}
    assert message.without_metadata("a").without_metadata("x").metadata == {"b": 3}


def test_extras_are_kept_by_dialect() -> None:
    """Without a dialect they belong to the canonical form."""
    message = Message.user("hi").with_extra("a", 1).with_extra("a", None, dialect="gemini")
    assert message.extras == {"canonical": {"a": 1}, "gemini": {"a": None}}
    assert (message.extra("a"), message.extra("b", 7)) == (1, 7)
    assert message.extra("a", 7, dialect="gemini") is None
    assert message.has_extra("a")
    assert not message.has_extra("a", dialect="anthropic")
    assert message.without_extra("a").extras == {"gemini": {"a": None}}
    assert message.without_extra("a").without_extra("a", dialect="gemini").extras == {}
    assert message.without_extra("x").extras == message.extras


def test_new_content_or_another_role_drops_dialect_extras() -> None:
    """A dialect's extras describe the old message; canonical extras stay."""
    message = Message.user("hi", extras={"gemini": {"a": 1}, "canonical": {"b": 2}})
    for changed in (message.with_content("ho"), message.with_role("system")):
        assert changed.extras == {"canonical": {"b": 2}}
    assert message.with_name("Ann").extras == message.extras
    assert Message.user("hi", extras={"gemini": {"a": 1}}).with_content("ho").extras == {}


# --- comparing


def test_equality_compares_content() -> None:
    """Role, name, parts and metadata count; id, time, cost, origin, finish and extras don't."""
    message = Message.assistant("hi")
    assert message == Message.assistant(
        "hi", id="m1", created_at=1.0, usage=Usage(1), origin=ORIGIN, finish=FinishReason.STOP,
        extras={"x": {"y": 1}},
    )  # fmt: skip
    assert message != Message.user("hi")
    assert message != Message.assistant("hi", name="Ann")
    assert message != Message.assistant("ho")
    assert message != Message.assistant("hi", metadata={"a": 1})


def test_messages_work_as_keys() -> None:
    """Equal messages are one key."""
    first = Message.user("hi", metadata={"a": [1, {"b": 2}]})
    second = Message.user("hi", metadata={"a": [1, {"b": 2}]})
    assert len({first, second}) == 1


def test_an_opaque_part_is_stored() -> None:
    """Unknown content is stored whole and comes back from a document."""
    message = Message(Role.USER, (Opaque("gemini", {"executableCode": {"code": "1"}}),))
    assert Message.from_json(message.to_json()).parts == message.parts


def test_finish_survives_a_reload() -> None:
    """A call that was cut off must stay recognisable."""
    message = Message.assistant(tool_calls=[CALL], finish=FinishReason.LENGTH)
    back = Message.from_json(message.to_json())
    assert back.finish is FinishReason.LENGTH
    assert back.finish.is_cut_off
