"""The view of a request body that the rules work on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from dragoman.wire.target import Target
from dragoman.wire.violations import Object, Placed, field, listed

THINKING = ("thinking", "redacted_thinking")


class Turn:
    """Consecutive messages of one role, which the API merges (W47)."""

    __slots__ = ("blocks", "role")

    def __init__(self, role: object) -> None:
        self.role = role
        self.blocks: list[Placed] = []

    def of_type(self, kind: str) -> list[Placed]:
        """The blocks of one type."""
        return [(path, block) for path, block in self.blocks if block.get("type") == kind]


class View:
    """A request body with its path and headers, and the lists in it."""

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
        """Whether the provider stores a part of the conversation that is not in the body."""
        return bool(self.body.get("thread"))

    @property
    def counts_tokens(self) -> bool:
        """Whether this is a token counting request."""
        return self.path.endswith("/count_tokens")

    @property
    def may_interleave(self) -> bool:
        """Whether the model may think between its calls: a beta enabled by a header."""
        if not self.tools:
            return False
        if self.headers is None:
            return True  # unknown
        return any("interleaved-thinking" in str(value) for value in self.headers.values())

    @cached_property
    def thinking(self) -> object:
        """`enabled`, `adaptive`, `disabled` or None."""
        return field(self.body, "thinking").get("type")

    @property
    def may_think(self) -> bool:
        """Whether thinking is on, with a budget or adaptive."""
        return self.thinking in ("enabled", "adaptive")

    @property
    def output_schema(self) -> tuple[str, object]:
        """The output schema with its path; it was in another field originally."""
        found = field(field(self.body, "output_config"), "format").get("schema")
        if found is not None:
            return "output_config.format.schema", found
        return "output_format.schema", field(self.body, "output_format").get("schema")

    @cached_property
    def turns(self) -> list[Turn]:
        """The turns of user and assistant, ignoring system messages in between."""
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
        """The blocks of these types, including those in tool results."""
        for path, block in self.blocks:
            if block.get("type") in kinds:
                yield path, block
            if block.get("type") == "tool_result":
                inner = listed(block, "content", path)
                yield from ((place, one) for place, one in inner if one.get("type") in kinds)


def blocks_of(message: Object, path: str) -> list[Placed]:
    """The blocks of a message; string content counts as one block."""
    content = message.get("content")
    if isinstance(content, str):
        return [(f"{path}.content", {"type": "text", "text": content})]
    return listed(message, "content", path)
