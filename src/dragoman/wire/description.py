"""What a dialect says about itself: how its bodies, its messages and its SDK's objects look.

Whoever has to tell dialects apart (`detect`, the readers of what people hand in, the commands)
asks all of them for this, and loads the codec of one. So a `Description` is plain data and small
functions, in a module that imports no codec.
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
    """How the messages of a dialect look, and what only they have."""

    content_field: str = "content"
    """The field that holds what is said."""
    roles: frozenset[str] = frozenset({"system", "user", "assistant"})
    """The roles that its messages may have."""
    own_roles: frozenset[str] = _NONE
    """Those that give it away, among dialects whose requests look alike."""
    fields: frozenset[str] | None = None
    """All fields of a message; others in a dict are its owner's notes. None: any field is taken."""
    own_fields: frozenset[str] = _NONE
    """Fields of a message that no other dialect has."""
    is_own: Callable[[Wire], bool] | None = None
    """Whether a message is told by something else: the type of a value, say."""
    part_types: frozenset[str] = _NONE
    """The `type`s of content that no other dialect has."""
    part_type_ending: str | None = None
    """What the types of further such parts end in."""
    shared_part_types: Mapping[str, str] = EMPTY
    """Types that our own parts have as well, each with the field that ours lack."""
    part_fields: frozenset[str] = _NONE
    """Fields of parts, for a dialect whose parts have no `type`."""
    item_types: frozenset[str] = _NONE
    """The `type`s of what stands among its messages and is none: calls, reasoning."""
    message_types: frozenset[str] = _NONE
    """The `type`s of its messages among such items."""
    item_part_types: frozenset[str] = _NONE
    """Types of content that only those messages have."""
    is_answer: Callable[[Wire], bool] | None = None
    """Whether a message is a whole response, where responses look like messages."""
    role_names: Mapping[Role, str] | None = None
    """Our roles in its words, where they differ; a role that is missing is guessed. None: roles
    are as given."""
    model_parts: frozenset[str] = _NONE
    """Types or fields of parts that only a model writes."""
    resembles_ours: bool = False
    """Whether our own shapes (`Message.from_dict`) are variations of its messages: then only what
    ours lack tells it."""


class SdkModule(NamedTuple):
    """A module of a library whose pydantic models are the wire's JSON."""

    prefix: str
    """What the names of its modules begin with."""
    dump: Literal["exclude_unset", "exclude_none"]
    """What of an object's fields its JSON has: those that were set, or those that are not None."""
    is_response: Callable[[str, Wire], bool]
    """Whether an object of that class, with this JSON, is a whole response."""
    classes: frozenset[str] | None = None
    """The classes that are messages, parts or responses; None: those with a `role` or `type`."""
    wrap: Callable[[str, dict[str, Any]], dict[str, Any]] | None = None
    """The JSON of an object of that class as a message, a part or a response."""
    has_chunks: bool = False
    """Whether a class whose name ends in `Chunk` is content rather than a piece of a stream."""


class Readable(NamedTuple):
    """What can be read in content that only one dialect has."""

    text: str
    is_whole: bool
    """Whether there is nothing else in it."""


class Description(NamedTuple):
    """A dialect's own account of itself."""

    name: str
    about: str
    """What it is, in one line."""
    messages_field: str
    """Where a request has its messages."""
    system_field: str | None = None
    """Where a request has its instructions; None where they are messages."""
    answer_field: str | None = None
    """What every response has; a body without it that has an error is one. None: don't look."""
    order: int = 50
    """Who is asked first where several could claim a body: the lowest."""
    paths: tuple[str, ...] = ()
    """What the paths of its requests end in."""
    headers: frozenset[str] = _NONE
    """Headers that only its requests have, in lower case."""
    certain_fields: frozenset[str] = _NONE
    """Fields of a body that settle it, whatever the messages look like."""
    fields: frozenset[str] = _NONE
    """Fields of a body that settle it where messages and tools don't."""
    tool_fields: frozenset[str] = _NONE
    """Fields of a tool's declaration that settle it."""
    is_likely: Callable[[Wire], bool] | None = None
    """The last resort: whether a body that nothing settles is probably in this dialect."""
    unsupported: Callable[[Wire, str], str | None] | None = None
    """What to say about a body, or its path, of a format that looks like this one and is not."""
    response_fields: frozenset[str] = _NONE
    """Fields that only responses have."""
    possible_response_fields: frozenset[str] = _NONE
    """Fields that requests may have too, but never instead of their messages."""
    messages: MessageForm = MessageForm()
    sdk_modules: tuple[SdkModule, ...] = ()
    tool_input_count: str | None = None
    """The field of its usage that counts what the provider's own tools brought into the prompt."""
    shared_settings: SharedSettings = SharedSettings()
    """Where its requests have the settings that other APIs have as well."""
    shared_tool_settings: SharedSettings = SharedSettings()
    """The same, in the declarations of tools."""
    host_settings: SharedSettings = SharedSettings()
    """Settings that only some servers have, and other dialects too: they stay in the extras."""
    documents: Callable[[Wire], tuple[str, Readable] | None] | None = None
    """The field of a request's own that holds documents, and what can be read in them."""
    readable: Callable[[Wire], Readable | None] | None = None
    """What can be read in content that only this dialect has (an `Opaque`'s payload)."""
    provider_tools: tuple[Form, ...] = ()
    """The kinds of tools that its providers run, and how they are written here."""
    tool_offers: str | None = None
    """The module that has `OFFERS`, where tools are offered otherwise than in a list; None: not."""
    provider_calls: CallForms | None = None
    """How the calls of such tools are read, and shown to its clients."""


def problem_of(described: Description) -> str | None:
    """What keeps a description from being looked things up in; None: nothing does."""
    for said in (described, described.messages):
        for field, default in said._field_defaults.items():
            value = getattr(said, field)
            if isinstance(default, (frozenset, tuple, int)) and not isinstance(
                value, type(default)
            ):
                return f"its description's {field} is a {type(value).__name__}"
    return None


def guarded(described: Description, report: Callable[[str], None]) -> Description:
    """The description with functions that never raise: one that would says no, and is reported."""

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
