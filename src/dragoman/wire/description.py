"""How a dialect describes itself: its bodies, its messages and its SDK's objects.

Code that has to tell dialects apart (`detect`, the input readers, the commands) reads the
descriptions of all dialects and then loads the codec of one. A `Description` is therefore plain
data and small functions, in a module that imports no codec.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from dragoman.model.frozen import EMPTY
from dragoman.model.roles import Role
from dragoman.wire.provider_calls import CallForms
from dragoman.wire.provider_tools import Form
from dragoman.wire.shared_settings import SharedSettings

Wire = Mapping[str, Any]
_NONE: frozenset[str] = frozenset()


class MessageForm(NamedTuple):
    """What the messages of a dialect look like, and what identifies them."""

    content_field: str = "content"
    """The field that holds a message's content."""
    roles: frozenset[str] = frozenset({"system", "user", "assistant"})
    """The roles that its messages may have."""
    own_roles: frozenset[str] = _NONE
    """Roles that identify the dialect among those with similar requests."""
    fields: frozenset[str] | None = None
    """All fields of a message; other keys in a dict are metadata. None: any field is accepted."""
    own_fields: frozenset[str] = _NONE
    """Fields of a message that no other dialect has."""
    is_own: Callable[[Wire], bool] | None = None
    """Whether a message is identifiable by other means, such as the type of a value."""
    part_types: frozenset[str] = _NONE
    """Content `type`s that no other dialect has."""
    part_type_ending: str | None = None
    """A suffix of further such content types."""
    shared_part_types: Mapping[str, str] = EMPTY
    """Types that our own parts have as well, each with a field that ours lack."""
    part_fields: frozenset[str] = _NONE
    """Fields of parts, for a dialect whose parts have no `type`."""
    item_types: frozenset[str] = _NONE
    """The `type`s of non-message items among its messages: calls, reasoning."""
    message_types: frozenset[str] = _NONE
    """The `type`s of its messages among such items."""
    item_part_types: frozenset[str] = _NONE
    """Content types that only those messages have."""
    is_answer: Callable[[Wire], bool] | None = None
    """Whether a message is a whole response, where responses look like messages."""
    role_names: Mapping[Role, str] | None = None
    """Our roles in this dialect's terms, where they differ; a missing role is guessed. None: roles
    are used as given."""
    model_parts: frozenset[str] = _NONE
    """Types or fields of parts that only a model produces."""
    resembles_ours: bool = False
    """Whether our own shapes (`Message.from_dict`) are variations of its messages: then only what
    ours lack identifies it."""


class SdkModule(NamedTuple):
    """An SDK module whose pydantic models serialise to the wire JSON."""

    prefix: str
    """Prefix of its module names."""
    dump: Literal["exclude_unset", "exclude_none"]
    """Which fields of an object its JSON includes: those that were set, or those not None."""
    is_response: Callable[[str, Wire], bool]
    """Whether an object of that class, with this JSON, is a whole response."""
    classes: frozenset[str] | None = None
    """The classes that are messages, parts or responses; None: those with a `role` or `type`."""
    wrap: Callable[[str, dict[str, Any]], dict[str, Any]] | None = None
    """The JSON of an object of that class as a message, a part or a response."""
    has_chunks: bool = False
    """Whether a class whose name ends in `Chunk` is content rather than a piece of a stream."""


class Readable(NamedTuple):
    """The readable part of content that only one dialect has."""

    text: str
    is_whole: bool
    """Whether the text is all there is in it."""


class Description(NamedTuple):
    """A dialect's description of itself."""

    name: str
    about: str
    """One-line summary."""
    messages_field: str
    """The request field that holds the messages."""
    system_field: str | None = None
    """The request field that holds the instructions; None where they are messages."""
    answer_field: str | None = None
    """A field that every response has; a body that lacks it and has an error is an error response.
    None: not checked."""
    order: int = 50
    """Precedence when several dialects could claim a body; the lowest wins."""
    paths: tuple[str, ...] = ()
    """Suffixes of its request paths."""
    headers: frozenset[str] = _NONE
    """Headers that only its requests have, in lower case."""
    certain_fields: frozenset[str] = _NONE
    """Body fields that identify the dialect, whatever the messages look like."""
    fields: frozenset[str] = _NONE
    """Body fields that identify the dialect if messages and tools don't."""
    tool_fields: frozenset[str] = _NONE
    """Fields of a tool declaration that identify the dialect."""
    is_likely: Callable[[Wire], bool] | None = None
    """Last resort: whether an otherwise unidentified body is probably in this dialect."""
    unsupported: Callable[[Wire, str], str | None] | None = None
    """The error message for a body or path of a similar but unsupported format; else None."""
    response_fields: frozenset[str] = _NONE
    """Fields that only responses have."""
    possible_response_fields: frozenset[str] = _NONE
    """Fields that requests may have too, but never in place of their messages."""
    timings: frozenset[str] = _NONE
    """Fields in which servers report how long they took: no loss where another dialect has none."""
    messages: MessageForm = MessageForm()
    sdk_modules: tuple[SdkModule, ...] = ()
    tool_input_count: str | None = None
    """The usage field that counts the input tokens added by the provider's own tools."""
    writes_settings: bool = False
    """Whether its codec reads and writes all settings, or reports them (`settings_rows`)."""
    host_settings: SharedSettings = SharedSettings()
    """Settings that only some servers have, shared with other dialects; they stay in the extras."""
    documents: Callable[[Wire], tuple[str, Readable] | None] | None = None
    """The dialect-specific request field that holds documents, and their readable text."""
    readable: Callable[[Wire], Readable | None] | None = None
    """The readable text of content that only this dialect has (an `Opaque`'s payload)."""
    provider_tools: tuple[Form, ...] = ()
    """The kinds of provider tools, and how they are written in this dialect."""
    tool_offers: str | None = None
    """The module that has `OFFERS`, if tools are offered other than in a list; else None."""
    carried: str | None = None
    """The module that has `CARRIED`, if its clients carry other dialects' content; else None."""
    returned_fields: frozenset[str] = _NONE
    """Fields of a response's message that some servers need back, whatever their client speaks."""
    provider_calls: CallForms | None = None
    """How calls of provider tools are decoded, and shown to its clients."""


def problem_of(described: Description) -> str | None:
    """Why a description can't be used; None if it can."""
    for said in (described, described.messages):
        for field, default in said._field_defaults.items():
            value = getattr(said, field)
            if isinstance(default, (frozenset, tuple, int)) and not isinstance(
                value, type(default)
            ):
                return f"its description's {field} is a {type(value).__name__}"
    return None


def guarded(described: Description, report: Callable[[str], None]) -> Description:
    """Wrap the description's functions to never raise: a failure counts as no, and is reported."""

    def guard(function: Any, no: Callable[..., Any]) -> Any:
        def ask(*given: Any) -> Any:
            try:
                return function(*given)
            except Exception as error:  # noqa: BLE001 - whatever it does; it may quote anything
                name = getattr(function, "__name__", "of its description")
                report(f"its function {name} raises {type(error).__name__}")
                return no(*given)

        return None if function is None else ask

    form = described.messages
    return described._replace(
        is_likely=guard(described.is_likely, _false),
        unsupported=guard(described.unsupported, _none),
        documents=guard(described.documents, _none),
        readable=guard(described.readable, _none),
        provider_calls=_guarded_calls(described.provider_calls, guard),
        messages=form._replace(
            is_own=guard(form.is_own, _false), is_answer=guard(form.is_answer, _false)
        ),
        sdk_modules=tuple(
            module._replace(
                is_response=guard(module.is_response, _false), wrap=guard(module.wrap, _as_it_is)
            )
            for module in described.sdk_modules
        ),
    )


def _guarded_calls(
    forms: CallForms | None, guard: Callable[[Any, Callable[..., Any]], Any]
) -> CallForms | None:
    if forms is None:
        return None
    shown = {
        kind: each._replace(call=guard(each.call, _nothing), result=guard(each.result, _nothing))
        for kind, each in forms.shown.items()
    }
    return forms._replace(
        call=guard(forms.call, _none),
        result=guard(forms.result, _none),
        beside=guard(forms.beside, _nothing),
        shown=shown,
    )


def _nothing(*_given: Any) -> tuple[()]:
    return ()


def _false(*_given: Any) -> bool:
    return False


def _none(*_given: Any) -> None:
    return None


def _as_it_is(_kind: str, wire: dict[str, Any]) -> dict[str, Any]:
    return wire
