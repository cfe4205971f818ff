"""The view of a request body that the rules work on, with camelCase or snake_case names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache

from dragoman.wire.gemini.dialect import SIGNATURE, snake_names
from dragoman.wire.gemini.tables import PARTS
from dragoman.wire.target import Target
from dragoman.wire.violations import Object, Placed

DATA = tuple(dict.fromkeys(shape.key for shape in PARTS.shapes if shape.key != SIGNATURE))
"""The data fields, of which a part has exactly one (W76)."""


@lru_cache(maxsize=256)
def _snake(name: str) -> str:
    return next(iter(snake_names(name)), name)


def spelled(wire: Object, name: str) -> str:
    """The name of a field as the object spells it."""
    snake = _snake(name)
    return snake if name not in wire and snake in wire else name


def value_of(wire: Object, name: str) -> object:
    """The value of a field under either name."""
    return wire.get(spelled(wire, name))


def object_in(wire: Object, name: str) -> Object:
    """The object in a field; empty if there is none."""
    value = value_of(wire, name)
    return value if isinstance(value, Mapping) else {}


def objects_in(wire: Object, name: str, path: str = "") -> list[Placed]:
    """The objects in a field, which may be a list or a single object, with their paths."""
    key = spelled(wire, name)
    place = f"{path}.{key}" if path else key
    value = wire.get(key)
    if isinstance(value, Mapping):
        return [(place, value)]
    items = value if isinstance(value, (list, tuple)) else ()
    return [(f"{place}[{i}]", item) for i, item in enumerate(items) if isinstance(item, Mapping)]


class Content:
    """A content with its parts."""

    __slots__ = ("calls", "parts", "path", "responses", "role", "wire")

    def __init__(self, path: str, wire: Object) -> None:
        self.path = path
        self.wire = wire
        self.role = "model" if wire.get("role") == "model" else "user"
        self.parts = objects_in(wire, "parts", path)
        self.calls = [placed for placed in self.parts if is_set(placed[1], "functionCall")]
        self.responses = [placed for placed in self.parts if is_set(placed[1], "functionResponse")]


def is_set(part: Object, name: str) -> bool:
    """Whether a part has this field."""
    return value_of(part, name) is not None


class Turn:
    """Consecutive contents of one role, which the API merges."""

    __slots__ = ("contents", "role")

    def __init__(self, role: str) -> None:
        self.role = role
        self.contents: list[Content] = []

    @property
    def calls(self) -> list[Placed]:
        """The function calls of the turn."""
        return [call for content in self.contents for call in content.calls]

    @property
    def responses(self) -> list[Placed]:
        """The function responses of the turn."""
        return [response for content in self.contents for response in content.responses]


class View:
    """A request body and the lists in it."""

    def __init__(self, body: Object, target: Target) -> None:
        self.body = body
        self.target = target
        self.contents = [Content(*placed) for placed in objects_in(body, "contents")]
        self.config = object_in(body, "generationConfig")
        self.config_path = spelled(body, "generationConfig")
        self.tools = objects_in(body, "tools")
        self.calling_path = ".".join(
            (spelled(body, "toolConfig"), spelled(self._tool_config, "functionCallingConfig"))
        )

    @property
    def has_hidden_context(self) -> bool:
        """Whether the provider stores a part of the conversation that is not in the body."""
        return any(value_of(self.body, name) for name in ("cachedContent", "continuationToken"))

    @property
    def _tool_config(self) -> Object:
        return object_in(self.body, "toolConfig")

    @property
    def calling(self) -> Object:
        """The settings of function calling."""
        return object_in(self._tool_config, "functionCallingConfig")

    @cached_property
    def turns(self) -> list[Turn]:
        """The turns of user and model."""
        turns: list[Turn] = []
        for content in self.contents:
            if not turns or turns[-1].role != content.role:
                turns.append(Turn(content.role))
            turns[-1].contents.append(content)
        return turns

    @cached_property
    def declarations(self) -> list[Placed]:
        """The function declarations of all tools."""
        return [
            declaration
            for path, tool in self.tools
            for declaration in objects_in(tool, "functionDeclarations", path)
        ]

    @cached_property
    def server_tools(self) -> list[str]:
        """The paths of built-in tools."""
        return [
            path
            for path, tool in self.tools
            if any(isinstance(tool[key], Mapping) for key in tool if key not in _DECLARATIONS)
        ]

    def calls(self) -> Iterator[Placed]:
        """The function calls, each with the path of its object."""
        for content in self.contents:
            yield from (_inner(placed, "functionCall") for placed in content.calls)

    def responses(self) -> Iterator[Placed]:
        """The function responses, each with the path of its object."""
        for content in self.contents:
            yield from (_inner(placed, "functionResponse") for placed in content.responses)


_DECLARATIONS = ("functionDeclarations", "function_declarations")


def _inner(placed: Placed, name: str) -> Placed:
    path, part = placed
    return f"{path}.{spelled(part, name)}", object_in(part, name)
