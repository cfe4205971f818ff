"""The tools of an agent: their definitions for the model, and what is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping
from functools import partial
from inspect import isawaitable
from types import CodeType
from typing import Any, NamedTuple, Protocol, TypeAlias

from dragoman.agent.context import RunContext
from dragoman.agent.declared_types import wanted_deps
from dragoman.agent.handoffs import Handoff
from dragoman.agent.toolsets import Toolset, found_in
from dragoman.errors import InvalidInputError
from dragoman.model.functions.tool import Tool, tool
from dragoman.model.provider_tools import ProviderTool
from dragoman.model.requests import AnyTool
from dragoman.model.tools import ServerTool, ToolCall, ToolDefinition
from dragoman.model.type_parameters import TypeVar

DepsT = TypeVar("DepsT", default=Any)
DepsT_contra = TypeVar("DepsT_contra", default=Any, contravariant=True)


class PlainFunction(Protocol):
    """A plain function or method, as opposed to a `Tool`."""

    @property
    def __code__(self) -> CodeType: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""


AgentTool: TypeAlias = (
    Tool[..., Any, RunContext[DepsT]]
    | Handoff[DepsT]
    | Toolset
    | AnyTool
    | PlainFunction
    | partial[Any]
)
"""A function, plain or made by `@tool`, is run by the agent; so is any other callable object (for
type checkers, wrap it: `tool(object)`). A `ToolDefinition` alone is run by the caller, and so is a
provider tool that runs on the client (`Shell()`) without a function that implements it; other
provider tools (`dragoman.tools`) are run by the provider. A `Handoff` is another agent that can
take over the conversation. A `Toolset`, such as an MCP server, is queried for its tools before each
request."""


class Toolbox(NamedTuple):
    """The tools of an agent."""

    definitions: tuple[AnyTool, ...] = ()
    """The definitions for the model."""
    runnable: Mapping[str, Tool[..., Any]] = {}
    """Tools that the agent runs, by name."""
    callers: frozenset[str] = frozenset()
    """Names of the tools that the caller runs."""
    handoffs: Mapping[str, Handoff[Any]] = {}
    """Agents that can take over the conversation, by name."""
    given: tuple[Tool[..., Any] | Handoff[Any] | AnyTool, ...] = ()
    """The original tools that all this was made from."""
    is_fixed: bool = True
    """Whether the tools are the same at every step of every run."""
    wanting: tuple[str, Any] | None = None
    """A tool that needs `deps`, and their type."""
    toolsets: tuple[Toolset, ...] = ()
    """Sources of further tools, which may change."""

    @classmethod
    def of(cls, tools: Iterable[AgentTool[Any]]) -> Toolbox:
        """The tools, which must have distinct names."""
        if isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Iterable):
            msg = "tools must be a list of functions or tool definitions, as in tools=[weather]"
            raise InvalidInputError(msg)
        definitions: list[AnyTool] = []
        runnable: dict[str, Tool[..., Any]] = {}
        callers: set[str] = set()
        implemented: list[tuple[str, Tool[..., Any]]] = []
        handoffs: dict[str, Handoff[Any]] = {}
        known: list[str] = []  # client-run provider tools without a function
        toolsets: list[Toolset] = []
        given: list[Tool[..., Any] | Handoff[Any] | AnyTool] = []
        for each in tools:
            made = _made(each)
            (toolsets if isinstance(made, Toolset) else given).append(made)  # type: ignore[arg-type]  # one or the other
        for made in given:
            if isinstance(made, Tool):
                runnable[made.name] = made
                implemented += [(name, made) for name in made.call_names]
                definitions.append(made.offered)
            elif isinstance(made, Handoff):
                handoffs[made.name] = made
                definitions.append(made.definition)
            else:
                definitions.append(made)
                if isinstance(made, ToolDefinition):
                    callers.add(made.name)
                elif isinstance(made, ProviderTool) and made.is_run_by_caller:
                    known += made.call_names
        _expect_distinct(definitions)
        for name, made in implemented:
            runnable.setdefault(name, made)
        callers.update(name for name in known if name not in runnable)
        is_fixed = not toolsets and all(made.enabled is True for made in runnable.values())
        return cls(tuple(definitions), runnable, frozenset(callers), handoffs, tuple(given),
                   is_fixed, _wanting(runnable), tuple(toolsets))  # fmt: skip

    async def enabled(self, context: RunContext[Any]) -> Toolbox:
        """The tools that are enabled now."""
        return Toolbox.of([each for each in self.given if await _is_enabled(each, context)])

    @property
    def names(self) -> set[str]:
        """The names that calls can have."""
        defined = (each.name for each in self.definitions if isinstance(each, ToolDefinition))
        return {*self.runnable, *self.callers, *self.handoffs, *defined}

    def is_for_caller(self, call: ToolCall) -> bool:
        """Whether the caller runs this tool."""
        return call.name in self.callers

    def needs_approval(self, call: ToolCall) -> bool:
        """Whether the call needs approval.

        A call that can't be run anyway needs none: the model is told what is wrong with it.
        """
        found = self.runnable.get(call.name)
        if found is None or found.requires_approval is False:
            return False
        if found.implements is not None and call.has_valid_arguments:
            adapted = found.adapted(call.arguments)
            call = call.replace_unchecked(raw=None, input=adapted)
        if found.definition.problems(call):
            return False
        is_custom = found.definition.kind == "custom"
        arguments = {"input": call.raw_arguments} if is_custom else call.arguments
        try:
            return found.needs_approval(arguments)
        except Exception:  # noqa: BLE001 - who can't say whether it is harmless has not said so
            return True


class DynamicTools(Protocol[DepsT_contra]):
    """A function that returns further tools, before each request."""

    def __call__(
        self, run: RunContext[DepsT_contra], /
    ) -> Iterable[AgentTool[Any]] | Awaitable[Iterable[AgentTool[Any]]]:
        """The tools for the next request."""
        ...


async def tools_now(
    tools: Toolbox, dynamic: DynamicTools[Any] | None, context: RunContext[Any]
) -> Toolbox:
    """The current tools of a run."""
    if dynamic is not None:
        found = dynamic(context)
        more = Toolbox.of(await found if isawaitable(found) else found)
        tools = Toolbox.of((*tools.given, *more.given, *tools.toolsets, *more.toolsets))
    if tools.toolsets:
        others = await found_in(tools.toolsets, tools.names, context)
        tools = Toolbox.of((*tools.given, *others))
    return tools if tools.is_fixed else await tools.enabled(context)


async def _is_enabled(each: object, context: RunContext[Any]) -> bool:
    if not isinstance(each, Tool) or isinstance(each.enabled, bool):
        return not isinstance(each, Tool) or each.enabled is True
    answer = each.enabled(context)
    return bool(await answer if isawaitable(answer) else answer)


def _wanting(tools: Mapping[str, Tool[..., Any]]) -> tuple[str, Any] | None:
    wanted = ((name, wanted_deps(each.context)) for name, each in tools.items() if each.context)
    return next((each for each in wanted if each[1] is not None), None)


def _made(each: Any) -> Tool[..., Any] | Handoff[Any] | AnyTool | Toolset:
    if isinstance(each, (Tool, Handoff, ToolDefinition, ServerTool)):
        return each
    if callable(each):
        return tool(each)
    if isinstance(each, Toolset):
        return each
    msg = f"a tool must be a function or a ToolDefinition, not {type(each).__name__}"
    if hasattr(each, "as_handoff"):
        msg += ": use as_tool(name, description) or as_handoff(…) for an agent"
    elif held := _held_function(each):
        msg += f": pass the function itself, its attribute `{held}`"
    raise InvalidInputError(msg)


def _held_function(each: object) -> str | None:
    """The attribute in which another library's tool keeps its function."""
    names = ("func", "coroutine", "function")  # LangChain's two, pydantic-ai's
    return next((name for name in names if callable(getattr(each, name, None))), None)


def _expect_distinct(definitions: list[AnyTool]) -> None:
    names = [each.name for each in definitions if isinstance(each, ToolDefinition)]
    names += [
        each.function.name
        for each in definitions
        if isinstance(each, ProviderTool) and each.function is not None
    ]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        msg = f"there are two tools named `{twice}`: rename one of them"
        raise InvalidInputError(msg)
