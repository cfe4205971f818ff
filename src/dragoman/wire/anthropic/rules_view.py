"""A request's body as its rules look at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from dragoman.wire.target import Target
from dragoman.wire.violations import Object, Placed, field, listed

THINKING = ("thinking", "redacted_thinking")


class Turn:
    """Neighbouring messages of one role: the API merges them (W47)."""

    __slots__ = ("blocks", "role")

    def __init__(self, role: object) -> None:
        self.role = role
        self.blocks: list[Placed] = []

    def of_type(self, kind: str) -> list[Placed]:
        """The blocks of one type."""
        return [(path, block) for path, block in self.blocks if block.get("type") == kind]


class View:
    """A body with what is around it, and the lists in it."""

    def __init__(
        self,
        body: Object,
        target: Target,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.body = body
        self.path = (path or "").partition("?")[0]
        self.headers = headers
        self.target = target
        self.messages = listed(body, "messages")
        self.tools = listed(body, "tools")

    @property
    def has_hidden_context(self) -> bool:
        """Whether the provider holds a part of the conversation that the body does not show."""
        return bool(self.body.get("thread"))

    @property
    def counts_tokens(self) -> bool:
        """Whether the body is only to be counted."""
        return self.path.endswith("/count_tokens")

    @property
    def may_interleave(self) -> bool:
        """Whether the model may think between its calls: a beta that is named in a header."""
        if not self.tools:
            return False
        if self.headers is None:
            return True  # nobody knows
        return any("interleaved-thinking" in str(value) for value in self.headers.values())

    @cached_property
    def thinking(self) -> object:
        """`enabled`, `adaptive`, `disabled` or None."""
        return field(self.body, "thinking").get("type")

    @property
    def output_schema(self) -> tuple[str, object]:
        """The schema of the answer, with its path; it stood elsewhere in the beginning."""
        found = field(field(self.body, "output_config"), "format").get("schema")
        if found is not None:
            return "output_config.format.schema", found
        return "output_format.schema", field(self.body, "output_format").get("schema")

    @cached_property
    def turns(self) -> list[Turn]:
        """The turns of user and assistant; system messages in between take no part."""
        turns: list[Turn] = []
        for path, message in self.messages:
            role = message.get("role")
            if role == "system":
                continue
            if not turns or turns[-1].role != role:
                turns.append(Turn(role))
            turns[-1].blocks += blocks_of(message, path)
        return turns

    @cached_property
    def blocks(self) -> list[Placed]:
        """The content blocks of all messages."""
        return [block for path, message in self.messages for block in blocks_of(message, path)]

    def of_type(self, *kinds: str) -> Iterator[Placed]:
        """The blocks of these types, those in tool results included."""
        for path, block in self.blocks:
            if block.get("type") in kinds:
                yield path, block
            if block.get("type") == "tool_result":
                inner = listed(block, "content", path)
                yield from ((place, one) for place, one in inner if one.get("type") in kinds)


def blocks_of(message: Object, path: str) -> list[Placed]:
    """The blocks of a message; a plain text is one, too."""
    content = message.get("content")
    if isinstance(content, str):
        return [(f"{path}.content", {"type": "text", "text": content})]
    return listed(message, "content", path)
