"""The plain form of a conversation: texts, calls of functions, and their results.

It has the shape of Chat's messages, so that these are read into it directly. Whatever has another
field, or a value of another type, is not plain: reading raises, and the general path takes over.
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


class NotPlain(Exception):  # noqa: N818 - no error: the general path takes over
    """The conversation has something that only the general path can translate."""

    number: int | None = None
    """Of the turn that has it, where that is known."""


class Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    """A text among others."""

    text: str


class _Impossible(Struct, tag_field="type", tag="impossible", gc=False):  # pragma: no mutate
    """Nothing is this. In a union the tag has to be there; a type alone does without it."""

    never: Annotated[int, Meta(gt=0, lt=0)]


class Form(NamedTuple):
    """All that is said of a picture, a sound or a file, but for its data."""

    spelled: bytes
    """The part, with the sample for data."""
    sample: bytes


class Attachment(Struct, gc=False):
    """A picture, a sound or a file among texts."""

    form: Form
    data: str
    """Base64, or an address."""


if TYPE_CHECKING:
    Texts = list[Text]
    Contents = list[Text | Attachment]
else:
    Texts = list[Text | _Impossible]
    Contents = Texts  # what has more to it is read by types of the dialect's own


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

    content: str | Texts


class Developer(Struct, tag_field="role", tag="developer", forbid_unknown_fields=True, gc=False):
    """Instructions, of the application's developer."""

    content: str | Texts


class User(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    """What a user says."""

    content: str | Contents


class UserBesideResults(User, tag="user", gc=False):
    """What a user says in the same message as the results before it."""


class Assistant(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False):
    """What the model said, and what it called."""

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

# What a conversation may have besides, which writers leave out. What is reported of it is learned
# from the general path. These are bits of its shape, above those of `survey`.
THINKING_BEFORE_TEXT = 1 << 16
THINKING_BEFORE_CALLS = 1 << 17
SIGNED_TEXT = 1 << 18
"""A text of the model's that its provider has signed."""
SIGNED_CALL = 1 << 19
CACHED_USER = 1 << 20
"""A hint for the prompt cache on what a user says."""
CACHED_ANSWER = 1 << 21
CACHED_CALL = 1 << 22
CACHED_RESULT = 1 << 23
EMPTY_BEFORE_CALLS = 1 << 24
"""An empty text of the model's before its calls."""
FAILED_RESULT = 1 << 25
NAMED_RESULT = 1 << 26
"""A result in a message that names its function."""
PREFIX = 1 << 27
"""Chat's word on answers that the model is to go on with, which says no."""
SPELLED_USER = 1 << 28
"""A field that says nothing to other dialects, such as an item's id."""
SPELLED_ANSWER = 1 << 29
SPELLED_CALL = 1 << 30
SPELLED_RESULT = 1 << 31
SUMMARY_BEFORE_TEXT = 1 << 32
"""Thinking of which a summary is told beside what its provider has sealed."""
SUMMARY_BEFORE_CALLS = 1 << 33
STORED_BEFORE_TEXT = 1 << 34
"""Thinking that its provider has kept: there is nothing but an id."""
STORED_BEFORE_CALLS = 1 << 35
STORED_SUMMARY_BEFORE_TEXT = 1 << 36
"""Thinking that its provider has kept, of which a summary is told."""
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
"""A message that names the user."""
HINTED_USER = 1 << 41
"""A message of a user's with a cache hint on the whole of it, which only Chat's routers know."""
UNSIGNED_CALL = 1 << 46
"""A call that nobody has signed, where others are: some targets see it."""
SPELLED_OTHERWISE = 1 << 47
"""The names of all fields: they stay so within the dialect, which its writer knows nothing of."""
UNSHOWN = UNSIGNED_CALL | SPELLED_OTHERWISE
"""What no skeleton has."""
MARKS = tuple(1 << bit for bit in (*range(16, 38), 40, 41))
ATTACHED = 1 << 39
"""A picture, a sound or a file. What is known by then is which one it is (`FIRST_FORM`)."""
FIRST_FORM = 1 << 48
"""The first of the forms that occur; the others follow. No shape has these: see `hints_in`."""
RENAMED = 1 << 56
"""A call or a result that gets another id. No reader knows that: it is the target that decides."""
REFUSED = 1 << 57
"""Of a shape: the target refuses the ids of all calls, which are all of this form."""
LONG_IDS = 1 << 58
ODD_IDS = 1 << 59
VOUCHED = 1 << 60
"""A message of calls that gets a word in the place of a signature, as the target demands."""
ABOUT_MESSAGES = NAMED_RESULT | PREFIX | NAMED_USER | HINTED_USER | VOUCHED
"""Those of which something is reported for the whole message."""

Mark = tuple[int, int, int]
"""What there is, and where: the numbers of the message and of the part."""
Marks = Sequence[Mark]


_HINTS, _MOST_HINTS = 48, 15


def with_marks(shape: int, marks: Marks) -> int:
    """The shape of a conversation that has these, and how many of them are cache hints."""
    hints = 0
    for kind, _, _ in marks:
        if kind < FIRST_FORM:
            shape |= kind
            hints += bool(kind & CACHED)
    return shape | min(hints, _MOST_HINTS) << _HINTS


def hints_in(shape: int) -> int | None:
    """How many cache hints there are in a conversation of this shape; None: nobody knows."""
    hints = shape >> _HINTS & _MOST_HINTS
    return hints if hints < _MOST_HINTS else None


class Summary(NamedTuple):
    """What an answer says of itself, without its content."""

    model: str | None
    usage: Usage | None
    id: str | None = None
    tier: str | None = None
    """The service tier, where it is not the standard one."""


class Lane(Struct, frozen=True, eq=False):
    """How a dialect reads and writes plain conversations."""

    field: str
    """The field of a body that has the conversation."""
    read: Callable[[Raw], tuple[Turns, Marks]]
    """Raises `NotPlain`, or msgspec's errors, where it is not plain."""
    write: Callable[[Turns, Names], list[Any]]
    """The items of the list that stands there; raises `NotPlain`."""
    mark: Callable[[list[Any], Mark], None]
    """Given what is written, as JSON: puts in what a mark stands for, thinking first."""
    groups_results: bool = False
    """Whether all results of a turn are in one message."""
    takes_text: bool = False
    """Whether a text may stand in the place of the list."""
    shows_calls: bool = False
    """Whether its clients may have been shown what other providers have called."""
    reads_arguments: bool = False
    """Whether its writer reads the arguments of calls, and so raises where they are none."""
    has_places: bool = False
    """Whether what a message means may depend on its place: ids that are derived from it."""
    labels: frozenset[str] = frozenset()
    """Fields of a body that only tell requests apart: who asks, which cache to look in."""
    vouch: Callable[[list[Any]], None] | None = None
    """Puts words for signatures into what `write` has made, where some targets demand them."""
    summary: Callable[[bytes], Summary | None] | None = None
    """What a whole answer says of itself; None where it has to be read in full."""


DEEP = 2 * MAX_DEPTH
"""So many characters may nest too deeply for the model."""


def check_depth(text: str) -> None:
    """Raise where JSON text may nest too deeply for the model."""
    if text.count("{") + text.count("[") > MAX_DEPTH:
        raise NotPlain


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
