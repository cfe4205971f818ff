"""Agents that work for other agents: as a tool, or by taking over the conversation."""

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
    """An agent that a model may hand the conversation over to. See `Agent.as_handoff`."""

    def __init__(
        self,
        agent: Agent[DepsT_contra, Any],
        name: str,
        description: str,
        setup: Callable[[], Setup],
    ) -> None:
        self.agent = agent
        self.setup = setup
        """Returns that agent's setup at the time of the handoff."""
        self.definition = ToolDefinition(name, description, _NO_PARAMETERS, portable=False)

    @property
    def name(self) -> str:
        """The name of the other agent, for the model and in the result."""
        return self.definition.name

    def __repr__(self) -> str:
        return f"Handoff({self.name}, {self.agent!r})"


def accepted(call: ToolCall) -> ToolResult:
    """The result of a call that hands the conversation over."""
    told = f"The conversation has been handed over to `{call.name}`, who answers from here on."
    return ToolResult.success(call.id, told, tool_name=call.name)


def superfluous(call: ToolCall) -> ToolResult:
    """The result of a further handoff in the same answer."""
    return ToolResult.error(call.id, _SUPERFLUOUS, tool_name=call.name)


def handed_off(first: Setup, other: Setup) -> Setup:
    """The setup with which a run continues after a handoff.

    The limits, the requested output and the hooks stay those of the original call.
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
    """Whether the run streams and somebody consumes its events."""
    run: Run | None = context.run
    return run is not None and run.streams and run.is_heard


def as_tool(
    agent: Agent[DepsT_contra, OutT_co], name: str, description: str
) -> Tool[..., Coroutine[Any, Any, Result[OutT_co]], RunContext[DepsT_contra]]:
    """A tool that calls an agent and returns its result."""
    from dragoman.agent.checks import wanting_deps  # imported here: it depends on agents as a whole

    @tool(name=name, description=description)
    async def ask(prompt: str, run: RunContext[DepsT_contra]) -> Result[OutT_co]:
        if _streams(run):
            result = await agent.stream(prompt, deps=run.deps, within=run).collect()
        else:
            result = await agent.send(prompt, deps=run.deps, within=run)
        if result.deferred:
            names = ", ".join(f"`{call.name}`" for call in result.deferred)
            msg = f"its calls to {names} need approval, and there is no `approve` function"
            raise ToolError(msg)
        return result

    wanting = wanting_deps(agent._setup)  # pyright: ignore[reportPrivateUsage]  # ours
    if wanting is not None:  # the tool needs what that agent needs
        ask.context = RunContext[wanting[1]]  # type: ignore[valid-type]  # made when the program runs
    return ask
