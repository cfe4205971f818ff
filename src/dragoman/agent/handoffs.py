"""Agents that work for other agents: as a tool of theirs, or in their place."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic

from dragoman.agent.context import RunContext
from dragoman.errors import ToolError
from dragoman.model.functions.tool import Tool, tool
from dragoman.model.tools import ToolCall, ToolDefinition, ToolResult
from dragoman.model.type_parameters import TypeVar

if TYPE_CHECKING:
    from dragoman.agent.agent import Agent
    from dragoman.agent.results import Result
    from dragoman.agent.runs import Run
    from dragoman.agent.setup import Setup

DepsT_contra = TypeVar("DepsT_contra", default=Any, contravariant=True)
OutT_co = TypeVar("OutT_co", default=Any, covariant=True)

_NO_PARAMETERS = {"type": "object", "properties": {}, "additionalProperties": False}
_SUPERFLUOUS = "Nothing was done: the conversation has been handed over by another call already."


class Handoff(Generic[DepsT_contra]):
    """Another agent that a model may hand the conversation over to. See `Agent.as_handoff`."""

    def __init__(
        self,
        agent: Agent[DepsT_contra, Any],
        name: str,
        description: str,
        setup: Callable[[], Setup],
    ) -> None:
        self.agent = agent
        self.setup = setup
        """How that agent works, when it is asked."""
        self.definition = ToolDefinition(name, description, _NO_PARAMETERS)

    @property
    def name(self) -> str:
        """What the model, and the result, calls the other agent."""
        return self.definition.name

    def __repr__(self) -> str:
        return f"Handoff({self.name}, {self.agent!r})"


def accepted(call: ToolCall) -> ToolResult:
    """What is said to a call that hands the conversation over."""
    told = f"The conversation has been handed over to `{call.name}`, who answers from here on."
    return ToolResult.success(call.id, told, tool_name=call.name)


def superfluous(call: ToolCall) -> ToolResult:
    """What is said to a further one in the same answer."""
    return ToolResult.error(call.id, _SUPERFLUOUS, tool_name=call.name)


def handed_over(first: Setup, other: Setup) -> Setup:
    """How a run goes on with another agent: with all that is its own.

    The limits, the output that was asked for, and who is told of it stay those of the call.
    """
    hooks = replace(
        other.hooks,
        before_output=first.hooks.before_output,
        after_send=first.hooks.after_send,
        on_event=first.hooks.on_event,
    )
    return replace(
        other,
        hooks=hooks,
        approve=other.approve or first.approve,
        output=first.output,
        output_retries=first.output_retries,
        limits=first.limits,
        orchestrator=first.orchestrator,
        history_hooks=first.history_hooks,
    )


def _streams(context: RunContext[Any]) -> bool:
    """Whether somebody follows what the run says, as it is said."""
    run: Run | None = context.run
    return run is not None and run.streams and run.is_heard


def as_tool(
    agent: Agent[DepsT_contra, OutT_co], name: str, description: str
) -> Tool[..., Coroutine[Any, Any, Result[OutT_co]], RunContext[DepsT_contra]]:
    """A tool that asks an agent, and gives what it answers."""
    from dragoman.agent.checks import wanting_deps  # it has to do with agents as a whole

    @tool(name=name, description=description)
    async def ask(prompt: str, run: RunContext[DepsT_contra]) -> Result[OutT_co]:
        if _streams(run):
            result = await agent.stream(prompt, deps=run.deps, within=run).collect()
        else:
            result = await agent.send(prompt, deps=run.deps, within=run)
        if result.deferred:
            names = ", ".join(f"`{call.name}`" for call in result.deferred)
            msg = f"it needs somebody to decide about its calls of {names}, and nobody was asked"
            raise ToolError(msg)
        return result

    wanting = wanting_deps(agent._setup)  # pyright: ignore[reportPrivateUsage]  # ours
    if wanting is not None:  # it can't work without what that agent can't work without
        ask.context = RunContext[wanting[1]]  # type: ignore[valid-type]  # made when the program runs
    return ask
