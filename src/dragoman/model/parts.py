"""What a message is made of: text, thinking, refusals, server-side tools, and the unknown.

Media are in `media`, tool calls and results in `tools`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY, JsonObject
from dragoman.model.value import (
    Value,
    expect,
    expect_fields,
    name_shown,
    own,
    own_mapping,
    own_tuple,
)


def own_extras(extras: Mapping[str, Any], dialect: str = "canonical") -> Mapping[str, Any]:
    """The extras of one dialect; `canonical` are those of none: fields of our own shapes."""
    found = extras.get(dialect)
    return found if isinstance(found, Mapping) else EMPTY  # a stored document may hold anything


class Origin(Value, frozen=True, kw_only=True):
    """Where something came from: needed to decide whether its opaque state may be replayed (I1)."""

    dialect: str
    provider: str | None = None
    model: str | None = None
    response_id: str | None = None

    @property
    def is_of_a_request(self) -> bool:
        """Whether no answer brought it: of such, no more is known than the dialect.

        Where a request was given to another model since, that it was meant for is known, too; the
        empty id says that there was no answer.
        """
        is_bare = self.model is None and self.response_id is None
        return self.provider is None and (is_bare or self.response_id == "")

    def _sizes(self) -> Iterator[str]:
        for field in self.__struct_fields__:
            value = getattr(self, field)
            if value is not None:
                yield from name_shown(value) or (field,)


class CacheHint(Value, frozen=True):
    """Ask the provider to keep the prompt up to here; `ttl` such as "5m" or "1h"."""

    ttl: str | None = None


class Citation(Value, frozen=True, kw_only=True):
    """A source that a text leans on: an address, a passage of a document, a search result."""

    kind: str
    url: str | None = None
    title: str | None = None
    quote: str | None = None
    start: int | None = None
    end: int | None = None
    extras: Mapping[str, Any] = EMPTY

    def __post_init__(self) -> None:
        if self.extras is not EMPTY:
            own_mapping(self, "extras")

    def _said(self) -> tuple[Any, ...]:
        return (self.kind, self.url, self.title, self.quote, self.start, self.end)


_UNSAID = (None, None, None, None)


class Part(Value, frozen=True, kw_only=True, tag_field="type"):
    """What every part carries besides its content."""

    schema_excludes: ClassVar[frozenset[str]] = frozenset(
        {"item_id", "origin", "cache", "signature", "extras"}
    )

    item_id: str | None = None
    """The wire's own id of this item (Responses `msg_…`); what pairs a call is `ToolCall.id`."""
    origin: Origin | None = None
    """Where this part came from, if that is not its message's origin or must not be lost."""
    cache: CacheHint | None = None
    signature: str | None = None
    """The provider's proof that it made this part; replayed verbatim, and only to its origin."""
    extras: JsonObject = EMPTY
    """By dialect: what the wire object held that the other fields don't say."""

    def check(self) -> None:
        """Raise where a field is of the wrong type. Called for parts that enter a message by hand.

        Parts that readers make are right by construction, and a `__post_init__` on the plain
        ones would cost a seventh of the time it takes to load a conversation.
        """
        if self.extras is not EMPTY:
            own_mapping(self, "extras")
        if (self.item_id, self.signature, self.origin, self.cache) != _UNSAID:
            expect_fields(self, item_id=str, signature=str, origin=Origin, cache=CacheHint)

    def replace(self, **changes: Any) -> Self:
        """A copy with these fields changed and all others as they are; checked."""
        made = super().replace(**changes)
        made.check()
        return made

    @property
    def is_empty(self) -> bool:
        """Whether the part says nothing."""
        return False

    # --- fields by name: the part's own, and extras of the canonical form for all others

    def field(self, key: str, default: Any = None) -> Any:
        """The field of that name, or the default where there is none or it is not set."""
        if key in self.__struct_fields__:
            value = getattr(self, key)
            return default if value is None else value
        return own_extras(self.extras).get(key, default)

    def has_field(self, key: str) -> bool:
        """Whether the field of that name is there and set."""
        return self.field(key) is not None

    def with_field(self, key: str, value: Any) -> Self:
        """With that field set; a name that the part does not know becomes an extra."""
        if key in self.__struct_fields__:
            changed = self.replace(**{key: value})
        else:
            own = {**own_extras(self.extras), key: value}
            changed = self.replace(extras={**self.extras, "canonical": own})
        changed.check()
        return changed


class Text(Part, frozen=True, tag="text"):
    """Plain text, with the sources it cites."""

    text: str
    citations: tuple[Citation, ...] = ()

    def check(self) -> None:
        """As every part; the text must be a text."""
        if self.text.__class__ is not str:
            expect(self.text, str, "Text.text")
        if self.citations != ():
            own_tuple(self, "citations", Citation)
        Part.check(self)

    @property
    def is_empty(self) -> bool:
        """Whether there is no text."""
        return not self.text

    def with_text(self, text: str) -> Text:
        """Other words in the same place; what was true of the old words only is dropped."""
        return Text(text, origin=self.origin, cache=self.cache)

    def __str__(self) -> str:
        return self.text

    def _said(self) -> tuple[Any, ...]:
        return (self.text, self.citations)

    def _sizes(self) -> Iterator[str]:
        yield f"{len(self.text)} chars"
        if self.citations:
            yield f"{len(self.citations)} citations"


_FORMS = ("full", "summary", "redacted")


class Thinking(Part, frozen=True, tag="thinking"):
    """The model's reasoning: readable, summarised, or sealed (`data`)."""

    text: str = ""
    data: str | None = None
    """Sealed reasoning that only its provider can read: redacted or encrypted content."""
    form: Literal["full", "summary", "redacted"] = "full"

    def check(self) -> None:
        """As every part; the text must be a text and the form a known one."""
        expect(self.text, str, "Thinking.text")
        expect_fields(self, data=str)
        if self.form not in _FORMS:
            msg = "Thinking.form must be full, summary or redacted"
            raise InvalidInputError(msg)
        Part.check(self)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read and nothing to replay."""
        return not (self.text or self.data or self.signature or self.item_id)

    def _said(self) -> tuple[Any, ...]:
        return (self.text, self.form, self.data, self.signature)

    def _sizes(self) -> Iterator[str]:
        yield self.form if self.form in _FORMS else "other form"
        yield f"{len(self.text)} chars"
        if self.signature:
            yield "signed"
        if self.data:
            yield "sealed"


class Refusal(Part, frozen=True, tag="refusal"):
    """The model declined, in its own words."""

    text: str

    def check(self) -> None:
        """As every part; the text must be a text."""
        expect(self.text, str, "Refusal.text")
        Part.check(self)

    def __str__(self) -> str:
        return self.text

    def _said(self) -> tuple[Any, ...]:
        return (self.text,)

    def _sizes(self) -> Iterator[str]:
        yield f"{len(self.text)} chars"


class ServerToolCall(Part, frozen=True, tag="server_tool_call"):
    """A tool that the provider runs itself (web search, code execution, …) was called."""

    name: str
    call_id: str | None = None
    input: Any = None
    """The call's arguments as JSON: an object mostly, code or a query where the wire has text."""
    server: str | None = None
    """The MCP server that the tool is of, where the provider speaks to one."""

    def __post_init__(self) -> None:
        expect(self.name, str, "ServerToolCall.name")
        expect_fields(self, call_id=str, server=str)
        own(self, "input")
        own_mapping(self, "extras")

    def _said(self) -> tuple[Any, ...]:
        return (self.call_id, self.name, self.input, self.server)

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.name)
        yield "1 call"


class ServerToolResult(Part, frozen=True, tag="server_tool_result"):
    """What a provider's own tool returned, whole: its sealed fields must come back intact (W71)."""

    name: str
    call_id: str | None = None
    content: Any = None
    is_error: bool | None = None

    def __post_init__(self) -> None:
        expect(self.name, str, "ServerToolResult.name")
        expect_fields(self, call_id=str, is_error=bool)
        own(self, "content")
        own_mapping(self, "extras")

    def _said(self) -> tuple[Any, ...]:
        return (self.call_id, self.name, self.content, self.is_error)

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.name)
        yield "error" if self.is_error else "1 result"


class Opaque(Part, frozen=True, tag="opaque"):
    """Something of a dialect that has no place here, carried whole and sent back only there."""

    dialect: str
    payload: Any = None

    def __post_init__(self) -> None:
        expect(self.dialect, str, "Opaque.dialect")
        own(self, "payload")
        own_mapping(self, "extras")

    @classmethod
    def custom(cls, kind: str, fields: Mapping[str, Any] = EMPTY) -> Self:
        """A content part of a type of your own.

        >>> Opaque.custom("custom", {"widget": "map"}).payload
        {'type': 'custom', 'widget': 'map'}

        It is stored and written in every shape. No dialect knows it: each reports it as a `Loss`.
        """
        expect(kind, str, "the type of a custom part")
        expect(fields, Mapping, "the fields of a custom part")
        if not kind:
            msg = "the type of a custom part is empty"
            raise InvalidInputError(msg)
        return cls("canonical", {"type": kind, **{k: fields[k] for k in fields if k != "type"}})

    def _said(self) -> tuple[Any, ...]:
        return (self.dialect, self.payload)

    def _sizes(self) -> Iterator[str]:
        yield "1 payload"
