"""Removes cache hints, and fields of hints, that the target doesn't support."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from dragoman.model.content import AnyPart
from dragoman.model.parts import CacheHint, Part
from dragoman.model.requests import Request
from dragoman.model.tools import ServerTool, ToolDefinition, ToolResult
from dragoman.wire.fitting.steps import with_changed_content, with_changed_parts
from dragoman.wire.losses import Loss, Note
from dragoman.wire.target import Target

T = TypeVar("T", bound=Part | ToolDefinition | ServerTool)


def with_accepted_hints(request: Request, target: Target, notes: list[Note]) -> Request:
    """Remove cache hints above the target's limit, the oldest first (W60)."""
    if target.cache.max_hints is None and target.cache.takes_ttl:
        return request
    hints = list(hints_of(request))
    surplus = 0 if target.cache.max_hints is None else max(0, len(hints) - target.cache.max_hints)
    if not surplus and (target.cache.takes_ttl or all(hint.ttl is None for hint in hints)):
        return request
    return _Trimming(target, notes, surplus).request(request)


def has_hints_outside(request: Request) -> bool:
    """Whether tools or instructions have cache hints."""
    for tool in request.tools:  # no generators: this runs for every request
        if tool.cache is not None:
            return True
    for part in request.system:  # noqa: SIM110 - as above
        if part.cache is not None:
            return True
    return False


def hints_of(request: Request) -> Iterator[CacheHint]:
    """All cache hints, in wire order."""
    for tool in request.tools:
        if tool.cache is not None:
            yield tool.cache
    for parts in (request.system, *(message.parts for message in request.messages)):
        for part in parts:
            if type(part) is ToolResult and type(part.content) is tuple:
                yield from (inner.cache for inner in part.content if inner.cache is not None)
            if part.cache is not None:
                yield part.cache


class _Trimming:
    """Visits everything that may have a cache hint, in wire order."""

    def __init__(self, target: Target, notes: list[Note], surplus: int) -> None:
        self._target = target
        self._notes = notes
        self._surplus = surplus

    def request(self, request: Request) -> Request:
        """Visit the tools, then the instructions, then the messages."""
        tools = tuple(self._item(tool, f"tools[{i}]") for i, tool in enumerate(request.tools))
        system = tuple(self._part(part, f"system[{i}]") for i, part in enumerate(request.system))
        messages = with_changed_parts(request.messages, self._part)
        return request.replace_trusted(tools=tools, system=system, messages=messages)

    def _part(self, part: AnyPart, path: str) -> AnyPart:
        if isinstance(part, ToolResult):
            part = with_changed_content(part, self._item, path)
        return self._item(part, path)

    def _item(self, item: T, path: str) -> T:
        if item.cache is None:
            return item
        hint = self._hint(item.cache, f"{path}.cache")
        changed: Any = item if hint is item.cache else item.replace(cache=hint)
        return changed  # type: ignore[no-any-return]  # of the same type

    def _hint(self, hint: CacheHint, path: str) -> CacheHint | None:
        if self._surplus:
            self._surplus -= 1
            most = self._target.cache.max_hints
            reason = (
                f"only {most} cache hints are allowed" if most else "cache hints are not supported"
            )
            self._notes.append(Loss(path, reason))
            return None
        if hint.ttl is not None and not self._target.cache.takes_ttl:
            self._notes.append(Loss(f"{path}.ttl", "a cache TTL is not supported"))
            return CacheHint()
        return hint
