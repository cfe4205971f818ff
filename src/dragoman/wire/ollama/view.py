"""A request's body as its rules look at it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from dragoman.wire.target import Target
from dragoman.wire.violations import Object, Placed, field, listed


class Round:
    """An assistant's calls and the tool messages right after them."""

    __slots__ = ("calls", "results")

    def __init__(self, calls: list[Placed]) -> None:
        self.calls = calls
        self.results: list[Placed] = []


class View:
    """A body, and the lists in it."""

    def __init__(self, body: Object, target: Target | None = None) -> None:
        self.body = body
        self.target = target
        self.options = field(body, "options")
        self.messages = listed(body, "messages")

    @cached_property
    def calls(self) -> list[Placed]:
        """The functions that were called."""
        return [
            (f"{place}.function", field(call, "function"))
            for path, message in self.messages
            for place, call in listed(message, "tool_calls", path)
        ]

    @cached_property
    def rounds(self) -> list[Round]:
        """Each message that is no tool message, and the tool messages that follow it."""
        rounds = [Round([])]
        for path, message in self.messages:
            if message.get("role") == "tool":
                rounds[-1].results.append((path, message))
            else:
                rounds.append(Round(listed(message, "tool_calls", path)))
        return rounds

    def functions(self) -> Iterator[Placed]:
        """The functions that are declared."""
        for path, tool in listed(self.body, "tools"):
            yield f"{path}.function", field(tool, "function")
