"""The parts of a message: text, thinking, refusals, provider-run tools, and opaque content.

Media are in `media`, tool calls and results in `tool_calls`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self, final

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
    """The extras of one dialect; `canonical` holds unknown fields of the canonical shapes."""
    found = extras.get(dialect)
    return found if isinstance(found, Mapping) else EMPTY  # stored documents may hold anything


@final
class Origin(Value, frozen=True, kw_only=True):
    """Where a part or message came from; decides whether its opaque state may be replayed (I1)."""

    dialect: str
    """The dialect it was decoded from."""
    provider: str | None = None
    """The provider's name."""
    model: str | None = None
    """The model's name."""
    response_id: str | None = None
    """The provider's id of the response."""

    @property
    def is_of_a_request(self) -> bool:
        """Whether it came from a request rather than from a response.

        Then only the dialect is known. After a request was passed on to another model, `model` may
        be set too; the empty `response_id` marks that there was no response.
        """
        is_bare = self.model is None and self.response_id is None
        return self.provider is None and (is_bare or self.response_id == "")

    def _sizes(self) -> Iterator[str]:
        for field in self.__struct_fields__:
            value = getattr(self, field)
            if value is not None:
                yield from name_shown(value) or (field,)


class CacheHint(Value, frozen=True):
    """Asks the provider to cache the prompt up to this part."""

    ttl: str | None = None
    """The time to live, such as `5m` or `1h`."""


class Citation(Value, frozen=True, kw_only=True):
    """A source of a text: a URL, a passage of a document, or a search result."""

    kind: str
    """The kind of source, in the terms of its dialect."""
    url: str | None = None
    title: str | None = None
    quote: str | None = None
    """The cited passage."""
    start: int | None = None
    """Where it applies in the text or document, as the provider counts."""
    end: int | None = None
    """The end of that range."""
    extras: Mapping[str, Any] = EMPTY

    def __post_init__(self) -> None:
        if self.extras is not EMPTY:
            own_mapping(self, "extras")

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.kind, self.url, self.title, self.quote, self.start, self.end)


class Part(Value, frozen=True, kw_only=True, tag_field="type"):
    """Base class of all parts, with the fields they share."""

    schema_excludes: ClassVar[frozenset[str]] = frozenset(
        {"item_id", "origin", "cache", "signature", "extras"}
    )

    item_id: str | None = None
    """The item id on the wire (Responses `msg_…`). Calls and results match by `ToolCall.id`."""
    origin: Origin | None = None
    """Where this part came from, if that differs from its message or must be kept."""
    cache: CacheHint | None = None
    """A prompt-cache breakpoint after this part."""
    signature: str | None = None
    """The provider's signature of this part; replayed verbatim, and only to its origin."""
    extras: JsonObject = EMPTY
    """Wire fields that no other field covers, keyed by dialect."""

    def check(self) -> None:
        """Raises if a field has the wrong type. Called for parts added to a message by hand.

        Decoded parts are valid by construction, and a `__post_init__` on the simple ones would add
        a seventh to the time it takes to load a conversation.
        """
        if self.extras is not EMPTY:
            own_mapping(self, "extras")
        if (  # one by one: hardly ever is any of them set
            self.item_id is not None or self.signature is not None
            or self.origin is not None or self.cache is not None
        ):  # fmt: skip
            expect_fields(self, item_id=str, signature=str, origin=Origin, cache=CacheHint)

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with these fields changed; the result is validated."""
        made = super().replace(**changes)
        made.check()
        return made

    @property
    def is_empty(self) -> bool:
        """Whether the part has no content."""
        return False

    # --- fields by name: struct fields, and canonical extras for all other names

    def field(self, key: str, default: Any = None) -> Any:
        """A field by name, or the default if it is missing or `None`."""
        if key in self.__struct_fields__:
            value = getattr(self, key)
            return default if value is None else value
        return own_extras(self.extras).get(key, default)

    def has_field(self, key: str) -> bool:
        """Whether a field is present and not `None`."""
        return self.field(key) is not None

    def with_field(self, key: str, value: Any) -> Self:
        """Returns a copy with a field set; an unknown name becomes an extra."""
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
        """Raises if a field has the wrong type."""
        if self.text.__class__ is not str:
            expect(self.text, str, "Text.text")
        if self.citations != ():
            own_tuple(self, "citations", Citation)
        Part.check(self)

    @property
    def is_empty(self) -> bool:
        """Whether the text is empty."""
        return not self.text

    def with_text(self, text: str) -> Text:
        """Returns a copy with another text; citations, signature and extras are dropped."""
        return Text(text, origin=self.origin, cache=self.cache)

    def __str__(self) -> str:
        return self.text

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.text, self.citations)

    def _sizes(self) -> Iterator[str]:
        yield f"{len(self.text)} chars"
        if self.citations:
            yield f"{len(self.citations)} citations"


_FORMS = ("full", "summary", "redacted")


class Thinking(Part, frozen=True, tag="thinking"):
    """The model's reasoning: in full, as a summary, or sealed (`data`)."""

    text: str = ""
    """The readable reasoning or its summary."""
    data: str | None = None
    """Redacted or encrypted reasoning, which only its provider can read."""
    form: Literal["full", "summary", "redacted"] = "full"
    """Whether `text` is the full reasoning, a summary, or redacted."""

    def check(self) -> None:
        """Raises if a field has the wrong type or the form is unknown."""
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

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.text, self.form, self.data, self.signature)

    def _sizes(self) -> Iterator[str]:
        yield self.form if self.form in _FORMS else "other form"
        yield f"{len(self.text)} chars"
        if self.signature:
            yield "signed"
        if self.data:
            yield "sealed"


class Refusal(Part, frozen=True, tag="refusal"):
    """The model's refusal, in its own words."""

    text: str

    def check(self) -> None:
        """Raises if a field has the wrong type."""
        expect(self.text, str, "Refusal.text")
        Part.check(self)

    def __str__(self) -> str:
        return self.text

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.text,)

    def _sizes(self) -> Iterator[str]:
        yield f"{len(self.text)} chars"


class ServerToolCall(Part, frozen=True, tag="server_tool_call"):
    """A call to a tool that runs on the provider's side (web search, code execution, …)."""

    name: str
    """The name of the tool."""
    call_id: str | None = None
    """Links the call to its result."""
    input: Any = None
    """The arguments as JSON: usually an object; text if the wire has code or a query as text."""
    server: str | None = None
    """The MCP server that provides the tool, if the provider connects to one."""

    def __post_init__(self) -> None:
        expect(self.name, str, "ServerToolCall.name")
        expect_fields(self, call_id=str, server=str)
        own(self, "input")
        own_mapping(self, "extras")

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.call_id, self.name, self.input, self.server)

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.name)
        yield "1 call"


class ServerToolResult(Part, frozen=True, tag="server_tool_result"):
    """The result of a provider-run tool; its sealed fields must be sent back unchanged (W71)."""

    name: str
    """The name of the tool."""
    call_id: str | None = None
    content: Any = None
    """The result as JSON, in the provider's format."""
    is_error: bool | None = None
    """Whether the call failed; `None` if unknown."""

    def __post_init__(self) -> None:
        expect(self.name, str, "ServerToolResult.name")
        expect_fields(self, call_id=str, is_error=bool)
        own(self, "content")
        own_mapping(self, "extras")

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.call_id, self.name, self.content, self.is_error)

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.name)
        yield "error" if self.is_error else "1 result"


class Opaque(Part, frozen=True, tag="opaque"):
    """Dialect-specific content without a canonical equivalent; sent back only in that dialect."""

    dialect: str
    """The dialect that the content belongs to."""
    payload: Any = None
    """The content as JSON."""

    def __post_init__(self) -> None:
        expect(self.dialect, str, "Opaque.dialect")
        own(self, "payload")
        own_mapping(self, "extras")

    @classmethod
    def custom(cls, kind: str, fields: Mapping[str, Any] = EMPTY) -> Self:
        """Creates a content part of a custom type.

        >>> Opaque.custom("custom", {"widget": "map"}).payload
        {'type': 'custom', 'widget': 'map'}

        It is stored and written in every shape. No dialect supports it: each reports a `Loss`.
        """
        expect(kind, str, "the type of a custom part")
        expect(fields, Mapping, "the fields of a custom part")
        if not kind:
            msg = "the type of a custom part must not be empty"
            raise InvalidInputError(msg)
        return cls("canonical", {"type": kind, **{k: fields[k] for k in fields if k != "type"}})

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.dialect, self.payload)

    def _sizes(self) -> Iterator[str]:
        yield "1 payload"
