"""How a run begins: with a prompt, or with calls of an earlier run that still wait."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

from msgspec import UNSET

from dragoman.agent.conversations import unanswered
from dragoman.agent.events import AgentEvent
from dragoman.agent.orchestrator import Orchestrator, ToolOrchestrator, parted, refusals, waits
from dragoman.agent.rounds import Round
from dragoman.agent.runs import Run
from dragoman.agent.tool_results import result_of
from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import FinishReason
from dragoman.model.value import expect

_DENIED = "This call was not run: it was not allowed."
_GOES_ON = frozenset({FinishReason.LENGTH, FinishReason.PAUSE, FinishReason.CANCELLED})


class Beginning(NamedTuple):
    """What a run begins with."""

    prompt: Message | None = None
    approvals: Mapping[str, bool | str] = EMPTY
    """By the id of a call that waits: whether it may be run; a text is why not."""
    results: Mapping[str, Any] = EMPTY
    """By the id of a call that waits: what the caller's tool returned."""

    def check(self) -> None:
        """Raise where something is of the wrong kind."""
        expect(self.approvals, Mapping, "approvals")
        expect(self.results, Mapping, "results")
        for decision in self.approvals.values():
            expect(decision, (bool, str), "an approval")


async def begun(
    run: Run, beginning: Beginning, orchestrator: Orchestrator
) -> AsyncGenerator[AgentEvent]:
    """Answer the calls that wait, as far as can be; then say what is to be said."""
    earlier = await run.conversation.window(run.setup.model.name, (), ())  # its end is what counts
    waiting = unanswered(earlier)
    _expect_waiting(beginning, waiting)
    prompt = beginning.prompt
    if waiting and (prompt is None or beginning.approvals or beginning.results):
        known = {
            call.id: _known(call, beginning) for call in waiting if _is_decided(call, beginning)
        }
        rest = [call for call in waiting if call.id not in known]
        known.update(await _foreseen(run, rest, earlier, orchestrator))
        async with aclosing(_answered(run, beginning, waiting, known)) as events:
            async for event in events:
                yield event
    elif prompt is None:
        _expect_something_to_answer(earlier)
    if prompt is not None and not run.is_over:
        run.output = UNSET  # of what was asked before
        prompt = await run.hooked(run.setup.hooks.before_send, prompt)
        yield await run.add(prompt)


async def _answered(
    run: Run, beginning: Beginning, waiting: Sequence[ToolCall], known: Mapping[str, ToolResult]
) -> AsyncGenerator[AgentEvent]:
    """Run what may be run of the calls that wait; what is still to be decided ends the run."""
    mine, left = parted(
        waiting, lambda call: call.id not in known and _still_waits(run, call, beginning)
    )
    if mine:
        async with aclosing(Round(run, mine, known).play()) as events:
            async for event in events:
                yield event
    if left or (run.output is not UNSET and beginning.prompt is None):
        run.finish(deferred=tuple(left))


def _still_waits(run: Run, call: ToolCall, beginning: Beginning) -> bool:
    """Whether somebody has to decide; to agree is not enough where the caller runs the tool."""
    if beginning.approvals.get(call.id) is True:
        return run.setup.tools.is_for_caller(call)
    return waits(run, call)


async def _foreseen(
    run: Run, calls: Sequence[ToolCall], messages: Messages, orchestrator: Orchestrator
) -> Mapping[str, ToolResult]:
    """The results of calls that nothing is run for, as in the run that they are from."""
    if calls and _is_cut_off(calls[0], messages):
        return refusals(calls)
    if isinstance(orchestrator, ToolOrchestrator):
        return await orchestrator.known(run, calls)
    return EMPTY


def _is_cut_off(call: ToolCall, messages: Messages) -> bool:
    """Whether the call is of an answer that is not complete (I7)."""
    asking = next(each for each in reversed(messages) if call in each.tool_calls)
    return asking.finish is not None and asking.finish.is_cut_off


def _is_decided(call: ToolCall, beginning: Beginning) -> bool:
    return call.id in beginning.results or beginning.approvals.get(call.id, True) is not True


def _known(call: ToolCall, beginning: Beginning) -> ToolResult:
    if call.id in beginning.results:
        return result_of(call, beginning.results[call.id])
    reason = beginning.approvals[call.id]
    told = f"{_DENIED} {reason}" if isinstance(reason, str) else _DENIED
    return ToolResult.error(call.id, told, tool_name=call.name)


def _expect_waiting(beginning: Beginning, waiting: Sequence[ToolCall]) -> None:
    ids = {call.id for call in waiting}
    strangers = sum(id not in ids for id in (*beginning.approvals, *beginning.results))
    if strangers:
        msg = (
            f"{strangers} of the approvals and results are for calls that don't wait for one; "
            f"{len(ids)} calls of the history do"
        )
        raise InvalidInputError(msg)


def _expect_something_to_answer(messages: Messages) -> None:
    last = messages.last
    if last is None:
        msg = "there is nothing to answer: give a prompt, or a history to go on from"
        raise InvalidInputError(msg)
    if last.role is Role.ASSISTANT and last.finish not in _GOES_ON:
        msg = "the history ends with an answer: give a prompt to go on"
        raise InvalidInputError(msg)
