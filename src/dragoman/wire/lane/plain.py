"""The plain form of a conversation: texts, function calls, and their results.

It has the structure of Chat's messages, so that these are decoded into it directly. Anything with
another field, or a value of another type, is not plain: decoding raises, and the general path takes
over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.json import Decoder, Encoder

from dragoman.model.frozen import MAX_DEPTH
from dragoman.model.usage import Usage

encode = Encoder().encode
loads = Decoder().decode
Json = Raw | bytes | memoryview
"""JSON that is not parsed yet."""


class NotPlain(Exception):  # noqa: N818 - no error: the general path takes over
    """The conversation has something that only the general path can translate."""

    number: int | None = None
    """The index of the turn that has it, if known."""


class Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    """A text among others."""

    text: str


class _Impossible(Struct, tag_field="type", tag="impossible", gc=False):  # pragma: no mutate
    """Never matches. A union makes the tag mandatory; a single type would not."""

    never: Annotated[int, Meta(gt=0, lt=0)]


class Form(NamedTuple):
    """Everything about an image, audio or file except its data."""

    spelled: bytes
    """The part, with the sample in place of the data."""
    sample: bytes


class Attachment(Struct, gc=False):
    """An image, audio or file among texts."""

    form: Form
    data: str
    """Base64 data, or a URL."""


if TYPE_CHECKING:
    Texts = list[Text]
    Contents = list[Text | Attachment]
else:
    Texts = list[Text | _Impossible]
    Contents = Texts  # other parts are decoded by types of the dialect


class Function(Struct, forbid_unknown_fields=True, gc=False):
    """A function's name, and its arguments as JSON text."""

    name: str
    arguments: str


class Call(Struct, forbid_unknown_fields=True, gc=False):
    """A function call."""

    id: str
    type: Literal["function"]
    function: Function


class System(Struct, tag_field="role", tag="system", forbid_unknown_fields=True, gc=False):
    """Instructions."""

    content: str | Texts


class Developer(Struct, tag_field="role", tag="developer", forbid_unknown_fields=True, gc=False):
    """Instructions by the application's developer."""

    content: str | Texts


class User(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    """A user message."""

    content: str | Contents


class UserBesideResults(User, tag="user", gc=False):
    """User content in the same message as the results before it."""


class Assistant(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False):
    """An assistant message: text and calls."""

    content: Annotated[str, Meta(min_length=1)] | Texts | UnsetType | None = UNSET
    tool_calls: list[Call] | UnsetType = UNSET


class Result(Struct, tag_field="role", tag="tool", forbid_unknown_fields=True, gc=False):
    """The result of a call."""

    tool_call_id: str
    content: str | Contents


class FailedResult(Result, tag="tool", gc=False):
    """The result of a call that failed."""


Turn = System | Developer | User | Assistant | Result
Turns = list[Turn]
Names = dict[str, str]
"""The names of the functions, by the ids of their calls."""

# Further content of a conversation, which writers leave out. What the general path reports about it
# is learned. These are bits of the shape, above those of `survey`.
THINKING_BEFORE_TEXT = 1 << 16
THINKING_BEFORE_CALLS = 1 << 17
SIGNED_TEXT = 1 << 18
"""A model's text with its provider's signature."""
SIGNED_CALL = 1 << 19
CACHED_USER = 1 << 20
"""A prompt cache hint on a user message."""
CACHED_ANSWER = 1 << 21
CACHED_CALL = 1 << 22
CACHED_RESULT = 1 << 23
EMPTY_BEFORE_CALLS = 1 << 24
"""An empty text before the model's calls."""
FAILED_RESULT = 1 << 25
NAMED_RESULT = 1 << 26
"""A result in a message that has the function's name."""
PREFIX = 1 << 27
"""Chat's `prefix` field on assistant messages, with the value false."""
SPELLED_USER = 1 << 28
"""A field that other dialects ignore, such as an item's id."""
SPELLED_ANSWER = 1 << 29
SPELLED_CALL = 1 << 30
SPELLED_RESULT = 1 << 31
SUMMARY_BEFORE_TEXT = 1 << 32
"""Encrypted thinking with a readable summary."""
SUMMARY_BEFORE_CALLS = 1 << 33
STORED_BEFORE_TEXT = 1 << 34
"""Thinking that the provider stores: only an id."""
STORED_BEFORE_CALLS = 1 << 35
STORED_SUMMARY_BEFORE_TEXT = 1 << 36
"""Thinking that the provider stores, with a readable summary."""
STORED_SUMMARY_BEFORE_CALLS = 1 << 37
BEFORE_TEXT = (
    THINKING_BEFORE_TEXT | SUMMARY_BEFORE_TEXT | STORED_BEFORE_TEXT | STORED_SUMMARY_BEFORE_TEXT
)
BEFORE_CALLS = (
    THINKING_BEFORE_CALLS | SUMMARY_BEFORE_CALLS | STORED_BEFORE_CALLS | STORED_SUMMARY_BEFORE_CALLS
)
THINKING = BEFORE_TEXT | BEFORE_CALLS
SPELLED = SPELLED_USER | SPELLED_ANSWER | SPELLED_CALL | SPELLED_RESULT
CACHED = CACHED_USER | CACHED_ANSWER | CACHED_CALL | CACHED_RESULT
NAMED_USER = 1 << 40
"""A user message with a name."""
UNSIGNED_CALL = 1 << 46
"""An unsigned call where others are signed: some targets check."""
SPELLED_OTHERWISE = 1 << 47
"""Other spellings of field names, kept within the dialect and unknown to its writer."""
UNSHOWN = UNSIGNED_CALL | SPELLED_OTHERWISE
"""What no skeleton contains."""
MARKS = tuple(1 << bit for bit in (*range(16, 38), 40))
ATTACHED = 1 << 39
"""An image, audio or file; replaced by its form's bit (`FIRST_FORM`) once that is known."""
FIRST_FORM = 1 << 48
"""The first of the forms that occur; the others follow. Not part of shapes: see `hints_in`."""
RENAMED = 1 << 56
"""A call or result that gets another id. Decided by the target, not by a reader."""
REFUSED = 1 << 57
"""In a shape: the target refuses all call ids, and all have the same form."""
LONG_IDS = 1 << 58
ODD_IDS = 1 << 59
VOUCHED = 1 << 60
"""A message with calls that gets a placeholder for a signature, which the target requires."""
ABOUT_MESSAGES = NAMED_RESULT | PREFIX | NAMED_USER | VOUCHED
"""Marks that are reported for the whole message."""

Mark = tuple[int, int, int]
"""The kind of content, and the indices of its message and part."""
Marks = Sequence[Mark]


_HINTS, _MOST_HINTS = 48, 15


def with_marks(shape: int, marks: Marks) -> int:
    """The shape of a conversation with these marks, including the number of cache hints."""
    hints = 0
    for kind, _, _ in marks:
        if kind < FIRST_FORM:
            shape |= kind
            hints += bool(kind & CACHED)
    return shape | min(hints, _MOST_HINTS) << _HINTS


def hints_in(shape: int) -> int | None:
    """The number of cache hints in a conversation of this shape; None if unknown."""
    hints = shape >> _HINTS & _MOST_HINTS
    return hints if hints < _MOST_HINTS else None


class Summary(NamedTuple):
    """The metadata of a response, without its content."""

    model: str | None
    usage: Usage | None
    id: str | None = None
    tier: str | None = None
    """The service tier, if it is not the standard one."""


class Lane(Struct, frozen=True, eq=False):
    """How a dialect decodes and encodes plain conversations."""

    field: str
    """The body field that has the conversation."""
    read: Callable[[Json], tuple[Turns, Marks]]
    """Raises `NotPlain`, or msgspec's errors, if it is not plain."""
    write: Callable[[Turns, Names], list[Any]]
    """The items of the list in that field; raises `NotPlain`."""
    mark: Callable[[list[Any], Mark], None]
    """Inserts what a mark stands for into the written JSON; marks of thinking come first."""
    groups_results: bool = False
    """Whether all results of a turn are in one message."""
    takes_text: bool = False
    """Whether a text may replace the list."""
    shows_calls: bool = False
    """Whether its clients may have been shown calls of other providers."""
    reads_arguments: bool = False
    """Whether its writer parses the arguments of calls, and so raises if they are invalid."""
    has_places: bool = False
    """Whether the meaning of a message may depend on its position, as with derived ids."""
    labels: frozenset[str] = frozenset()
    """Body fields that only identify requests: the user, the cache key, metadata."""
    vouch: Callable[[list[Any]], None] | None = None
    """Inserts placeholders for signatures into what `write` made, for targets that require them."""
    summary: Callable[[bytes], Summary | None] | None = None
    """Reads the metadata of a non-streamed response; None if it must be decoded in full."""


DEEP = 2 * MAX_DEPTH
"""Texts with more characters may nest too deeply for the model."""


def check_depth(text: str) -> None:
    """Raise if JSON text may nest too deeply for the model."""
    if text.count("{") + text.count("[") > MAX_DEPTH:
        raise NotPlain


def arguments_of(call: Call) -> dict[str, Any]:
    """The arguments as an object."""
    try:
        found = loads(call.function.arguments)
    except Exception:  # noqa: BLE001 - the general path handles any invalid arguments
        raise NotPlain from None
    if type(found) is not dict:
        raise NotPlain
    return found


def text_or_texts(texts: list[str]) -> str | list[Text]:
    """The content of a message with these texts."""
    return texts[0] if len(texts) == 1 else [Text(text) for text in texts]
