"""The tools that an agent has: what the model is told of them, and what is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from dragoman.errors import InvalidInputError
from dragoman.model.functions.tool import Tool, tool
from dragoman.model.provider_tools import ProviderTool
from dragoman.model.requests import AnyTool
from dragoman.model.tools import ServerTool, ToolCall, ToolDefinition

AgentTool = Tool[..., Any] | AnyTool | Callable[..., Any]
"""A function, plain or made by `@tool`, is run by the agent. A `ToolDefinition` alone is for the
caller to run, and so is a provider's tool that callers run (`Shell()`) which no function
implements; any other provider's own (`dragoman.tools`) is run by the provider."""


class Toolbox(NamedTuple):
    """An agent's tools."""

    definitions: tuple[AnyTool, ...] = ()
    """What the model is told."""
    runnable: Mapping[str, Tool[..., Any]] = {}
    """What is run here, by name."""
    callers: frozenset[str] = frozenset()
    """The names of what the caller runs."""

    @classmethod
    def of(cls, tools: Iterable[AgentTool]) -> Toolbox:
        """The tools, each under a name of its own."""
        if isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Iterable):
            msg = "tools must be a list of functions or tool definitions, as in tools=[weather]"
            raise InvalidInputError(msg)
        definitions: list[AnyTool] = []
        runnable: dict[str, Tool[..., Any]] = {}
        callers: set[str] = set()
        implemented: list[tuple[str, Tool[..., Any]]] = []
        known: list[str] = []  # tools of providers that nobody here runs
        for each in tools:
            made = _made(each)
            if isinstance(made, Tool):
                runnable[made.name] = made
                implemented += [(name, made) for name in made.call_names]
                definitions.append(made.offered)
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
        return cls(tuple(definitions), runnable, frozenset(callers))

    def is_for_caller(self, call: ToolCall) -> bool:
        """Whether the caller runs this tool."""
        return call.name in self.callers

    def needs_approval(self, call: ToolCall) -> bool:
        """Whether somebody has to agree before the call is run.

        A call that can't be run anyway needs no approval: the model is told what is wrong with it.
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


def _made(each: Any) -> Tool[..., Any] | AnyTool:
    if isinstance(each, (Tool, ToolDefinition, ServerTool)):
        return each
    if callable(each):
        return tool(each)
    msg = f"a tool is a function or a ToolDefinition, not {type(each).__name__}"
    raise InvalidInputError(msg)


def _expect_distinct(definitions: list[AnyTool]) -> None:
    names = [each.name for each in definitions if isinstance(each, ToolDefinition)]
    names += [
        each.function.name
        for each in definitions
        if isinstance(each, ProviderTool) and each.function is not None
    ]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        msg = f"there are two tools named `{twice}`: a model can't tell them apart"
        raise InvalidInputError(msg)
