"""Content as a value of its own: seed 003's `Content` and `ContentParts`."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.content_value import Content
from dragoman.model.media import Image
from dragoman.model.messages import Message, ProvidesMessage
from dragoman.model.parts import Opaque, Text, Thinking
from dragoman.model.tools import ToolResult
from tests.model import strategies as some

URL = "https://example.com/cat.png"
IMAGE = Image(url=URL)


@pytest.mark.parametrize(("value", "parts"), [
    (None, ()),
    ("a", (Text("a"),)),
    ("", (Text(""),)),
    (["a", "b"], (Text("a"), Text("b"))),
    (Text("a"), (Text("a"),)),
    ({"type": "image_url", "image_url": {"url": URL}}, (IMAGE,)),
    ([{"type": "text", "text": "a"}, IMAGE], (Text("a"), IMAGE)),
    ({"type": "custom", "a": 1}, (Opaque.custom("custom", {"a": 1}),)),
    ({"role": "user", "content": ["a", "b"]}, (Text("a"), Text("b"))),
    ({"role": "user", "name": "Ann"}, ()),
    (Message.assistant(Thinking("hm"), "a"), (Text("a"),)),
    (Content("a", IMAGE), (Text("a"), IMAGE)),
])  # fmt: skip
def test_content_is_made_from_whatever_people_write(value: Any, parts: tuple[Any, ...]) -> None:
    """`Content::fromAny`, `ContentParts::fromArray`: messages give theirs, None is none."""
    content = Content.from_any(value)
    assert content == parts
    assert isinstance(content, Content)
    assert dragoman.model.Content is Content


@pytest.mark.parametrize("value", [5, b"x", [5], [None], {"type": "hologram"}, {"a": 1},
                                   [Text(5)]])  # type: ignore[arg-type]  # fmt: skip
def test_other_values_are_rejected(value: Any) -> None:
    """The error names the type; parts are validated."""
    with pytest.raises(InvalidInputError):
        Content.from_any(value)


@pytest.mark.parametrize(("content", "is_null", "is_empty", "is_simple", "is_composite"), [
    (Content(), True, True, False, False),
    (Content(""), False, True, True, False),
    (Content("a"), False, False, True, False),
    (Content("a", "b"), False, False, False, True),
    (Content(IMAGE), False, False, False, True),
    (Content("a").with_field("mood", "good"), False, False, False, True),
])  # fmt: skip
def test_kinds_of_content(
    content: Content, is_null: bool, is_empty: bool, is_simple: bool, is_composite: bool
) -> None:
    """Seed 003 defines which content is simple and which is composite."""
    state = (content.is_null, content.is_empty, content.is_simple, content.is_composite)
    assert state == (is_null, is_empty, is_simple, is_composite)


def test_changes_are_copies() -> None:
    """Copies have the same type, and the original is unchanged."""
    content = Content("a", "")
    assert content.add("b", IMAGE) == Content("a", "", "b", IMAGE)
    assert content.replace_last("z") == Content("a", "z")
    assert Content.empty().replace_last("z") == Content("z")
    assert content.without_empty() == Content("a")
    assert content.with_field("mood", "good")[-1].field("mood") == "good"
    assert all(type(each) is Content for each in (content.add(), content.without_empty()))
    assert content == Content("a", "")
    with pytest.raises(InvalidInputError, match="can't set a field"):
        Content().with_field("mood", "good")


def test_parts_by_place() -> None:
    """None where there is none, as in `Messages`."""
    content = Content("a", "b", IMAGE)
    assert (content.first, content.last, content.at(1)) == (Text("a"), IMAGE, Text("b"))
    assert (Content().first, Content().last, content.at(3), content.at(-4)) == (None,) * 4
    assert len(content) == 3


def test_content_is_written_as_text_or_dicts() -> None:
    """`toString`, `toArray` and `normalized`; the repr shows no content."""
    assert (str(Content("a", IMAGE, "b")), Content("a", "b").to_text("|")) == ("a\nb", "a|b")
    assert (Content().normalized(), Content("a").normalized()) == ("", "a")
    assert Content("a", IMAGE).normalized() == [
        {"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": URL}},
    ]  # fmt: skip
    assert repr(Content("hunter2", IMAGE)) == "Content(Text(7 chars), Image(url))"


def test_content_is_accepted_as_one_message() -> None:
    """Of any role, and never as several."""
    content = Content("a", IMAGE)
    assert isinstance(content, ProvidesMessage)
    assert Message.user(content) == Message.from_any(content) == Message.user("a", IMAGE)
    assert Message.from_any(content, "system") == content.to_message("system")
    assert list(Messages.from_any(content)) == [Message.user("a", IMAGE)]
    assert list(Messages.from_any([content, "b"])) == [Message.user("a", IMAGE), Message.user("b")]
    assert Message.user("b").with_content(content).parts == content
    assert ToolResult.success("c1", content).content == content  # type: ignore[arg-type]  # an image and a text


@given(st.lists(some.parts, max_size=3))
def test_content_comes_back(parts: list[AnyPart]) -> None:
    """From copies, pickles, and its own dicts for what is said."""
    content = Content(parts)
    for back in (copy.copy(content), copy.deepcopy(content), pickle.loads(pickle.dumps(content))):  # noqa: S301 - our own bytes
        assert type(back) is Content
        assert back == content
        assert hash(back) == hash(content)
    content.to_list()
