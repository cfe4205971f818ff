"""Approval of tool calls: by a function at once, or by the caller later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, TypeAlias

from dragoman.agent.context import RunContext
from dragoman.agent.runs import Run
from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.type_parameters import TypeVar
from dragoman.model.value import expect

DepsT = TypeVar("DepsT", default=Any)
Decision: TypeAlias = bool | str | Mapping[str, Any]
"""True: run; False: refuse; a string: refuse with a reason; a mapping: run with these arguments."""
Approve: TypeAlias = Callable[
    [ToolCall, RunContext[DepsT]], Decision | Awaitable[Decision | None] | None
]
"""Decides on calls to tools that require approval; None leaves the decision to the caller."""

_DENIED = "This call was not run: it was not allowed."


@dataclass
class Decided:
    """The decisions on the calls of an answer."""

    mine: list[ToolCall] = field(default_factory=list)
    """Calls that are run now, or already have results."""
    known: dict[str, ToolResult] = field(default_factory=dict)
    """Results, by id, of calls that are not run."""
    edited: dict[str, ToolCall] = field(default_factory=dict)
    """Replacements for calls, by id: the same call with other arguments."""
    waiting: list[ToolCall] = field(default_factory=list)
    """Calls that wait for the caller."""


async def decide(
    run: Run,
    calls: Sequence[ToolCall],
    known: Mapping[str, ToolResult] = EMPTY,
    approvals: Mapping[str, Decision] = EMPTY,
) -> Decided:
    """Decide which calls are run, and which wait for the caller to run or approve them.

    Calls that are already decided are not asked about again; the others are, one after the other.
    """
    decided = Decided(known=dict(known))
    for call in calls:
        if call.id in known:
            decided.mine.append(call)
            continue
        decision: Decision | None = approvals.get(call.id)
        if decision is None:
            decision = await _decision(run, call)
        if decision is None or _needs_a_result(run, call, decision):
            decided.waiting.append(call)
        else:
            _apply(run, call, decision, decided)
    return decided


async def _decision(run: Run, call: ToolCall) -> Decision | None:
    """The decision on a call; None leaves it to the caller."""
    tools, approve = run.tools, run.setup.approve
    if tools.is_for_caller(call):
        return None
    if not tools.needs_approval(call):
        return True
    if approve is None:
        return None
    answer = approve(call, run.context.for_call(call))
    if isawaitable(answer):
        answer = await answer
    expect(answer, (bool, str, Mapping, type(None)), "the return value of `approve`")
    return answer  # type: ignore[no-any-return]  # that was seen to


def _needs_a_result(run: Run, call: ToolCall, decision: Decision) -> bool:
    """Whether approval is not enough, because the caller runs the tool."""
    is_agreed = decision is True or isinstance(decision, Mapping)
    return is_agreed and run.tools.is_for_caller(call)


def _apply(run: Run, call: ToolCall, decision: Decision, decided: Decided) -> None:
    decided.mine.append(call)
    if isinstance(decision, Mapping):
        decided.edited[call.id] = _edited(run, call, decision)
    elif decision is not True:
        told = f"{_DENIED} {decision}" if isinstance(decision, str) else _DENIED
        decided.known[call.id] = ToolResult.error(call.id, told, tool_name=call.name)


def _edited(run: Run, call: ToolCall, arguments: Mapping[str, Any]) -> ToolCall:
    """The call with other arguments, which must be valid: a person, not the model, wrote them."""
    edited = call.replace(input=arguments, kind="function")
    tool = run.tools.runnable.get(call.name)
    problems = tool.definition.problems(edited) if tool is not None else []
    if problems:
        told = "; ".join(map(str, problems))
        msg = f"the arguments in the approval of a call to `{call.name}` are invalid: {told}"
        raise InvalidInputError(msg)
    return edited
