"""Messages as a sequence: making one, and what every immutable sequence can do."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages, ProvidesMessages
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from tests.model import strategies as some

HI, HO = Message.user("hi"), Message.assistant("ho")


class Store:
    """An object that knows how to be a conversation."""

    def to_messages(self) -> Messages:
        """Itself, as messages."""
        return Messages(HI, HO)


class Speaker:
    """An object that knows how to be a message."""

    def to_message(self) -> Message:
        """Itself, as a message."""
        return HI


@pytest.mark.parametrize(("value", "messages"), [
    ("hi", (HI,)),
    (HI, (HI,)),
    (Text("hi"), (HI,)),
    ({"role": "assistant", "content": "ho"}, (HO,)),
    ([HI, {"role": "assistant", "content": "ho"}, "hi", Speaker()], (HI, HO, HI, HI)),
    ((HI, HO), (HI, HO)),
    (Messages(HI, HO), (HI, HO)),
    (Store(), (HI, HO)),
    (Speaker(), (HI,)),
    (iter(["hi"]), (HI,)),
    ([], ()),
])  # fmt: skip
def test_from_any_takes_what_people_have(value: Any, messages: tuple[Message, ...]) -> None:
    """One message or many, in any of a message's forms, or an object that provides them."""
    assert tuple(Messages.from_any(value)) == messages


def test_from_any_keeps_messages_unchanged() -> None:
    """Their ids are kept as well."""
    given_messages = Messages(HI, HO)
    assert Messages.from_any(given_messages) is given_messages
    assert Messages.from_any([HI])[0] is HI
    assert isinstance(Store(), ProvidesMessages)


@pytest.mark.parametrize("value", [None, [None], b"hi", [{"role": "robot"}], 42])
def test_other_values_are_rejected(value: Any) -> None:
    """The error is our own."""
    with pytest.raises(InvalidInputError):
        Messages.from_any(value)


def test_only_messages_are_held() -> None:
    """A text is turned into a message by `from_any`, not here."""
    with pytest.raises(InvalidInputError, match="must be Message, not str"):
        Messages("hi")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="must be Message, not str"):
        Messages.of(["hi"])  # type: ignore[list-item]


@given(some.conversations, st.slices(4))
def test_it_is_a_sequence(messages: Messages, part: slice) -> None:
    """Length, order, indexes, slices and membership work like those of a tuple."""
    plain = tuple(messages)
    assert isinstance(messages, Sequence)
    assert len(messages) == len(plain)
    assert [messages[index] for index in range(len(plain))] == list(plain)
    assert isinstance(messages[part], Messages)
    assert tuple(messages[part]) == plain[part]
    assert all(message in messages for message in plain)
    assert list(reversed(tuple(messages))) == list(plain[::-1])
    with pytest.raises(IndexError):
        _ = messages[len(plain)]


@given(some.conversations)
def test_a_document_gives_the_conversation_back(messages: Messages) -> None:
    """JSON, pickle and copies: the same messages with the same ids."""
    for back in (
        Messages.from_json(messages.to_json()),
        pickle.loads(pickle.dumps(messages)),  # noqa: S301 - our own bytes
        copy.copy(messages),
        copy.deepcopy(messages),
    ):
        assert back == messages
        assert hash(back) == hash(messages)
        assert all(map(Message.identical, back, messages))


def test_equality_compares_content() -> None:
    """The order counts, ids don't."""
    assert Messages(HI, HO) == Messages(Message.user("hi"), Message.assistant("ho"))
    assert Messages(HI, HO) != Messages(HO, HI)
    assert Messages(HI) != Messages(HI, HI)
    assert Messages(HI) != (HI,)


def test_it_cannot_be_changed() -> None:
    """No item and no attribute can be set."""
    messages: Any = Messages(HI)
    with pytest.raises(TypeError):
        messages[0] = HO
    with pytest.raises(TypeError):
        del messages[0]
    with pytest.raises(AttributeError):
        messages.extra = 1


def test_repr_shows_kinds_and_sizes() -> None:
    """No content is shown."""
    assert repr(Messages(HI, HO)) == (
        "Messages(Message(user, Text(2 chars)), Message(assistant, Text(2 chars)))"
    )
