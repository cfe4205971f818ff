"""The keyword arguments of an agent and of its calls, with their types.

They are defined once, here. Type checkers read them through `Unpack`; `inspect.signature`, and with
it IPython and notebooks, through `with_options`.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeAlias, TypedDict

from msgspec import UNSET

from dragoman.agent.approvals import Approve, Decision
from dragoman.agent.context import RunContext
from dragoman.agent.executor import ToolExecutor
from dragoman.agent.hooks import Hooks
from dragoman.agent.limits import RunLimits
from dragoman.agent.orchestrator import Orchestrator
from dragoman.agent.toolbox import AgentTool, DynamicTools
from dragoman.model.messages import ContentLike
from dragoman.model.requests import (
    ContextManagement,
    MediaOutput,
    Sampling,
    Service,
    State,
    ThinkingConfig,
)
from dragoman.model.tools import ToolChoice
from dragoman.model.type_parameters import TypeVar
from dragoman.providers.prices import Prices

F = typing.TypeVar("F", bound=Callable[..., Any])
DepsT = TypeVar("DepsT", default=Any)
T = typing.TypeVar("T")
TextT = TypeVar("TextT", default=str)
AnyT = TypeVar("AnyT", default=Any)
OutputMode = Literal["native", "tool", "two_phase"]
Instructions: TypeAlias = (
    ContentLike
    | Callable[[RunContext[DepsT]], ContentLike | Awaitable[ContentLike | None] | None]
    | None
)
"""The `system` of an agent: a text, parts, or a plain or async function of the `RunContext`."""


# What `output` may be, in as few overloads as mypy and pyright can tell apart: about a mistake in a
# call, mypy prints each overload with all its options. A `TypeForm` can't be part of a union.
NoneOrAsync: TypeAlias = Callable[..., Awaitable[T]] | None
Functions: TypeAlias = Callable[..., T] | Sequence[Callable[..., T]]


class Settings(TypedDict, total=False):
    """Request settings, for an agent or a call: `max_tokens=500`."""

    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    stop: list[str] | tuple[str, ...]
    seed: int | None
    presence_penalty: float | None
    frequency_penalty: float | None
    choices: int | None
    logprobs: bool | None
    top_logprobs: int | None
    verbosity: str | None
    thinking: bool | int | str | ThinkingConfig | None
    tool_choice: str | ToolChoice | None
    sampling: Sampling
    state: State | None
    media: MediaOutput | None
    service: Service | None
    context_management: ContextManagement | None
    metadata: Mapping[str, Any]
    extras: Mapping[str, Any]


class _AnyCallOptions(Settings, Generic[DepsT], total=False):
    """Options of every call."""

    output_mode: OutputMode | None
    approve: Approve[DepsT] | None
    approvals: Mapping[str, Decision]
    results: Mapping[str, Any]
    limits: RunLimits | None
    within: RunContext[Any] | None


class ChatOptions(_AnyCallOptions[DepsT], Generic[DepsT], total=False):
    """Options of a chat's calls, besides the content and `output`."""

    deps: DepsT


class CallOptions(ChatOptions[DepsT], Generic[DepsT], total=False):
    """Options of an agent's calls, besides the content and `output`."""

    history: Any


class CallOptionsBesideDeps(_AnyCallOptions[DepsT], Generic[DepsT], total=False):
    """`CallOptions` without `deps`, for signatures in which they are a required parameter."""

    history: Any


class AgentOptions(Settings, Generic[DepsT], total=False):
    """Options of an agent, besides the model and `output`."""

    name: str | None
    tools: Iterable[AgentTool[DepsT]]
    dynamic_tools: DynamicTools[DepsT] | None
    system: Instructions[DepsT]
    output_mode: OutputMode | None
    output_retries: int
    limits: RunLimits | None
    hooks: Hooks[DepsT] | None
    approve: Approve[DepsT] | None
    executor: ToolExecutor | None
    orchestrator: Orchestrator | None
    prices: Prices | Mapping[str, Any] | None
    history_hooks: Mapping[str, Any]
    links_responses: bool


_FIRST = ("history", "deps")


def with_options(options: type) -> Callable[[F], F]:
    """Make a function's signature show the options that it accepts as `**options`."""

    def signed(function: F) -> F:
        signature = inspect.signature(function)
        *named, _ = signature.parameters.values()
        taken = {each.name for each in named}
        named += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=UNSET, annotation=kind)
            for name, kind in _keywords(options).items()
            if name not in taken
        ]
        function.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]  # as PEP 362 has it
        return function

    return signed


def _keywords(options: type) -> dict[str, str]:
    """The option names, most used first and settings last, with their types as written."""
    kinds = {name: _written(kind) for name, kind in options.__annotations__.items()}
    settings = Settings.__annotations__
    return dict(
        sorted(kinds.items(), key=lambda each: (each[0] in settings, each[0] not in _FIRST))
    )


def _written(kind: Any) -> str:
    text: str = getattr(kind, "__forward_arg__", str(kind))
    return text
