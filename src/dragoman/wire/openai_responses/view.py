"""A request's body as its rules look at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from dragoman.wire.openai_responses.itemkinds import is_from_client, kind_of, stands_for_more
from dragoman.wire.target import Target
from dragoman.wire.violations import Object, Placed, field, listed

_CONTINUES = ("previous_response_id", "conversation", "prompt")
_SPEAKERS = ("user", "system", "developer")


class View:
    """A body, and the lists in it."""

    def __init__(self, body: Object, target: Target) -> None:
        self.body = body
        self.target = target
        self.items = listed(body, "input")

    @cached_property
    def has_hidden_context(self) -> bool:
        """Whether the provider holds items that the body does not show."""
        is_continued = any(map(self.body.get, _CONTINUES))
        return is_continued or any(stands_for_more(item) for _, item in self.items)

    @property
    def is_stored(self) -> bool:
        """Whether the provider keeps items; it does unless it is told otherwise."""
        return self.body.get("store") is not False

    def of_type(self, *kinds: str) -> Iterator[Placed]:
        """The items of these types."""
        return ((path, item) for path, item in self.items if kind_of(item) in kinds)

    @cached_property
    def runs(self) -> list[list[Placed]]:
        """The items of the model's turns, each turn by itself."""
        runs: list[list[Placed]] = []
        goes_on = False
        for path, item in self.items:
            if is_from_client(item):
                goes_on = False
                continue
            if not goes_on:
                runs.append([])
            runs[-1].append((path, item))
            goes_on = True
        return runs

    def said(self) -> Iterator[Placed]:
        """The parts of what is said to the model."""
        for path, item in self.of_type("message"):
            if item.get("role") in _SPEAKERS:
                yield from listed(item, "content", path)

    def answers(self) -> Iterator[Placed]:
        """The parts of what the model said."""
        for path, item in self.of_type("message"):
            if item.get("role") == "assistant":
                yield from listed(item, "content", path)

    @cached_property
    def functions(self) -> list[Placed]:
        """The functions on offer."""
        return [
            (path, tool)
            for path, tool in listed(self.body, "tools")
            if tool.get("type") == "function"
        ]

    @property
    def strict_schemas(self) -> list[tuple[str, Any]]:
        """The schemas that are to be followed strictly, where that is looked at."""
        if not self.target.checks_strict_schemas:
            return []
        found = [
            (f"{path}.parameters", tool["parameters"])
            for path, tool in self.functions
            if tool.get("strict") is True and isinstance(tool.get("parameters"), Mapping)
        ]
        output = field(field(self.body, "text"), "format")
        if output.get("strict") is True and output.get("schema") is not None:
            found.append(("text.format.schema", output["schema"]))
        return found
