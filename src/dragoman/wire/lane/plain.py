"""The plain form of a conversation: texts, calls of functions, and their results.

It has the shape of Chat's messages, so that these are read into it directly. Whatever has another
field, or a value of another type, is not plain: reading raises, and the general path takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder, Encoder

encode = Encoder().encode
loads = Decoder().decode


class NotPlain(Exception):  # noqa: N818 - no error: the general path takes over
    """The conversation has something that only the general path can translate."""


class Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    """A text among others."""

    text: str


class Function(Struct, forbid_unknown_fields=True, gc=False):
    """What is called: the arguments are JSON, as text."""

    name: str
    arguments: str


class Call(Struct, forbid_unknown_fields=True, gc=False):
    """A call of a function."""

    id: str
    type: Literal["function"]
    function: Function


class System(Struct, tag_field="role", tag="system", forbid_unknown_fields=True, gc=False):
    """Instructions."""

    content: str | list[Text]


class Developer(Struct, tag_field="role", tag="developer", forbid_unknown_fields=True, gc=False):
    """Instructions, of the application's developer."""

    content: str | list[Text]


class User(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    """What a user says."""

    content: str | list[Text]


class UserBesideResults(User, tag="user", gc=False):
    """What a user says in the same message as the results before it."""


class Assistant(
    Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False
):
    """What the model said, and what it called."""

    content: str | list[Text] | None | UnsetType = UNSET
    tool_calls: list[Call] | UnsetType = UNSET


class Result(Struct, tag_field="role", tag="tool", forbid_unknown_fields=True, gc=False):
    """The result of a call."""

    tool_call_id: str
    content: str | list[Text]


Turn = System | Developer | User | Assistant | Result
Turns = list[Turn]
Names = dict[str, str]
"""The names of the functions, by the ids of their calls."""


class Lane(NamedTuple):
    """How a dialect reads and writes plain conversations."""

    field: str
    """The field of a body that has the conversation."""
    read: Callable[[Raw], Turns]
    """Raises `NotPlain`, or msgspec's errors, where it is not plain."""
    write: Callable[[Turns, Names], list[Any]]
    """The items of the list that stands there; raises `NotPlain`."""


def arguments_of(call: Call) -> dict[str, Any]:
    """The arguments as an object."""
    try:
        found = loads(call.function.arguments)
    except Exception:  # noqa: BLE001 - whatever it is, the general path knows what to do
        raise NotPlain from None
    if type(found) is not dict:
        raise NotPlain
    return found


def text_or_texts(texts: list[str]) -> str | list[Text]:
    """The content of a message that says these texts."""
    return texts[0] if len(texts) == 1 else [Text(text) for text in texts]
