"""Starts a run: with a prompt, or with pending calls of an earlier run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import UNSET

from dragoman.agent.approvals import Decision, decide
from dragoman.agent.conversations import begun_in, last_round, unanswered
from dragoman.agent.orchestrator import Orchestrator, ToolOrchestrator, refusals
from dragoman.agent.round_records import unknown
from dragoman.agent.runs import Run
from dragoman.agent.tool_results import result_of
from dragoman.agent.tool_round import Round
from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import FinishReason
from dragoman.model.value import expect

_GOES_ON = frozenset({FinishReason.LENGTH, FinishReason.PAUSE, FinishReason.CANCELLED})


class Beginning(NamedTuple):
    """What a run starts with."""

    prompt: Message | None = None
    approvals: Mapping[str, Decision] = EMPTY
    """Decisions by the id of a pending call: whether it may run; a string is a reason to refuse, a
    mapping replaces the arguments."""
    results: Mapping[str, Any] = EMPTY
    """By the id of a pending call: the result of the caller's tool."""

    def check(self) -> None:
        """Raise if an argument has the wrong type."""
        expect(self.approvals, Mapping, "approvals")
        expect(self.results, Mapping, "results")
        for decision in self.approvals.values():
            expect(decision, (bool, str, Mapping), "an approval")


async def begin(run: Run, beginning: Beginning, orchestrator: Orchestrator) -> None:
    """Resolve the pending calls as far as possible; then add the prompt."""
    earlier = await last_round(run.conversation, run.setup.model.name)
    unsettled = unanswered(earlier)
    begun = {id for message in earlier for id in begun_in(message)}
    waiting = [call for call in unsettled if call.id not in begun]
    _expect_waiting(beginning, waiting)
    prompt = beginning.prompt
    if unsettled and (prompt is None or beginning.approvals or beginning.results):
        given, approvals = beginning.results, beginning.approvals
        known = {call.id: unknown(call) for call in unsettled if call.id in begun}
        known |= {call.id: result_of(call, given[call.id]) for call in waiting if call.id in given}
        refused = {id for id, decision in approvals.items() if isinstance(decision, (bool, str))
                   and decision is not True}  # fmt: skip
        rest = [call for call in waiting if call.id not in known and call.id not in refused]
        foreseen = await _foreseen(run, rest, earlier, orchestrator)
        known.update(foreseen)
        await _answer(run, beginning, unsettled, known)
        if isinstance(orchestrator, ToolOrchestrator):
            good = [call for call in rest if call.id in foreseen and not foreseen[call.id].is_error]
            await orchestrator.hand_off(run, good)
    elif prompt is None:
        _expect_something_to_answer(earlier)
    if prompt is not None and not run.is_over:
        run.output = UNSET  # left from the earlier request
        prompt = await run.hooked(run.setup.hooks.before_send, prompt)
        await run.add(prompt)


async def _answer(
    run: Run, beginning: Beginning, calls: Sequence[ToolCall], known: Mapping[str, ToolResult]
) -> None:
    """Run the pending calls that may run; those still undecided end the run."""
    decided = await decide(run, calls, known, beginning.approvals)
    if decided.mine:
        await Round(run, decided).play()
    if decided.waiting or (run.output is not UNSET and beginning.prompt is None):
        run.finish(deferred=tuple(decided.waiting))


async def _foreseen(
    run: Run, calls: Sequence[ToolCall], messages: Messages, orchestrator: Orchestrator
) -> Mapping[str, ToolResult]:
    """Results of calls for which no tool is run, as in their original run."""
    if calls and _is_cut_off(calls[0], messages):
        return refusals(calls)
    if isinstance(orchestrator, ToolOrchestrator):
        return await orchestrator.known(run, calls)
    return EMPTY


def _is_cut_off(call: ToolCall, messages: Messages) -> bool:
    """Whether the call belongs to a truncated response (I7)."""
    asking = next(each for each in reversed(messages) if call in each.tool_calls)
    return asking.finish is not None and asking.finish.is_cut_off


def _expect_waiting(beginning: Beginning, waiting: Sequence[ToolCall]) -> None:
    ids = {call.id for call in waiting}
    strangers = sum(id not in ids for id in (*beginning.approvals, *beginning.results))
    if strangers:
        msg = (
            f"{strangers} of the approvals and results don't match a pending call; the history has"
            f" {len(ids)} pending calls"
        )
        raise InvalidInputError(msg)


def _expect_something_to_answer(messages: Messages) -> None:
    last = messages.last
    if last is None:
        msg = "there is nothing to answer: pass a prompt, or a history to continue"
        raise InvalidInputError(msg)
    if last.role is Role.ASSISTANT and last.finish not in _GOES_ON:
        msg = "the history ends with an answer: pass a prompt to continue"
        raise InvalidInputError(msg)
