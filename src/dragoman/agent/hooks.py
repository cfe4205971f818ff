"""Hooks: functions called before and after the steps of a run."""

from __future__ import annotations

import typing
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, fields
from inspect import isawaitable
from typing import Any, Generic, TypeAlias

from dragoman.agent.context import RunContext
from dragoman.agent.events import AgentEvent
from dragoman.agent.reprs import made_by_alias
from dragoman.agent.results import Result
from dragoman.errors import InvalidInputError
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.type_parameters import TypeVar
from dragoman.model.value import expect

T = typing.TypeVar("T")
DepsT_contra = TypeVar("DepsT_contra", default=Any, contravariant=True)
Hook: TypeAlias = Callable[..., Any]
Soon: TypeAlias = T | Awaitable[T]
"""The return type of a function that may be plain or async."""


@made_by_alias
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Hooks(Generic[DepsT_contra]):
    """Plain or async functions called during a run, each with the `RunContext` as last argument.

    The return value of a hook replaces its first argument, and must be of the same type; None
    leaves it unchanged. An exception ends the run, with two exceptions: a `ToolError` raised before
    a tool call becomes the call's result (the tool is not run), and a `ToolRetry` raised before an
    output goes back to the model as advice.
    """

    before_send: Callable[[Message, RunContext[DepsT_contra]], Soon[Message | None]] | None = None
    """`(prompt, run)`: the user's message, before it is added to the conversation."""
    after_send: (
        Callable[[Result[Any], RunContext[DepsT_contra]], Soon[Result[Any] | None]] | None
    ) = None
    """`(result, run)`: at the end of the run."""
    before_response: Callable[[Request, RunContext[DepsT_contra]], Soon[Request | None]] | None = (
        None
    )
    """`(request, run)`: before each request to the model."""
    after_response: Callable[[Response, RunContext[DepsT_contra]], Soon[Response | None]] | None = (
        None
    )
    """`(response, run)`: after each response."""
    before_tool_call: (
        Callable[[ToolCall, RunContext[DepsT_contra]], Soon[ToolCall | ToolResult | None]] | None
    ) = None
    """`(call, run)`: before a tool runs; may return another call, or a result to use instead."""
    after_tool_call: (
        Callable[[ToolCall, ToolResult, RunContext[DepsT_contra]], Soon[ToolResult | None]] | None
    ) = None
    """`(call, result, run)`: after a tool has run."""
    before_output: Callable[[Any, RunContext[DepsT_contra]], Any] | None = None
    """`(value, run)`: before an output, typed or the text of the answer, is returned."""
    on_event: Callable[[AgentEvent, RunContext[DepsT_contra]], Soon[object]] | None = None
    """`(event, run)`: on each event; the return value is ignored."""

    def __post_init__(self) -> None:
        for each in fields(self):
            hook = getattr(self, each.name)
            if hook is not None and not callable(hook):
                msg = f"Hooks.{each.name} must be callable, not {type(hook).__name__}"
                raise InvalidInputError(msg)

    def given(self) -> Iterator[tuple[str, Hook]]:
        """The hooks that are set, by name."""
        for name in self.__slots__:
            hook = getattr(self, name)
            if hook is not None:
                yield name, hook

    def __repr__(self) -> str:
        return f"Hooks({', '.join(name for name, _ in self.given())})"


async def hooked(
    hook: Hook | None, value: Any, *rest: Any, kinds: type | tuple[type, ...] | None = None
) -> Any:
    """The value, or the replacement returned by the hook; `rest` are its other arguments.

    The replacement must be of the same type, or of one of `kinds`.
    """
    if hook is None:
        return value
    answer = hook(*rest[:-1], value, rest[-1])
    if isawaitable(answer):
        answer = await answer
    if answer is None:
        return value
    kind = type(value)
    expect(answer, kinds or kind, f"the return value of a hook for a {kind.__name__}")
    return answer
