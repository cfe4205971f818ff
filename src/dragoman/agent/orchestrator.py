"""How a run goes from one request to the next."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol, runtime_checkable

from msgspec import UNSET

from dragoman.agent.answering import answered
from dragoman.agent.events import AgentEvent, Answered, AskedAgain, StepStarted
from dragoman.agent.rounds import CUT_OFF, Round
from dragoman.agent.runs import Run
from dragoman.errors import ProviderError, StreamInterrupted
from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import Identity, derived_call_id
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text, Thinking
from dragoman.model.requests import AnyTool, Request
from dragoman.model.responses import Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolChoice, ToolResult
from dragoman.model.usage import FinishReason

_ANSWER = Identity("answer")
_BAD_CALL = "tool_use_failed"  # Groq's word for a call that the model got wrong (W112)
_TRY_AGAIN = (
    "Your last answer held a tool call that could not be read. "
    "If you meant to call a tool, call it again, with arguments that are valid JSON."
)
_AS_USUAL = (None, FinishReason.STOP, FinishReason.OTHER, FinishReason.TOOL_CALLS)
_MALFORMED_RETRIES = 2
_CUT_OFF_RETRIES = 2


@runtime_checkable
class Orchestrator(Protocol):
    """What drives a run. Give your own to `Agent(orchestrator=...)`, or change a part of ours."""

    async def initialize(self, run: Run) -> None:
        """Called once, before anything else."""
        ...

    def iterate(self, run: Run) -> AsyncIterator[AgentEvent]:
        """One iteration: ask the model, and act on its answer; called until `run.is_over`."""
        ...

    async def finalize(self, run: Run) -> None:
        """Called once at the end, however it ended."""
        ...


class ToolOrchestrator:
    """Asks the model, runs the tools that it calls, and asks again until it answers."""

    async def initialize(self, run: Run) -> None:
        """Nothing to prepare."""

    async def finalize(self, run: Run) -> None:
        """Nothing to clear up."""

    async def iterate(self, run: Run) -> AsyncGenerator[AgentEvent]:
        """One request, its answer, and the tools that it calls."""
        run.tally.step()
        hook = run.setup.hooks.before_response
        run.request = request = await run.hooked(hook, await self.request(run))
        yield StepStarted(run.tally.steps)
        bad_call: ProviderError | StreamInterrupted | None = None
        try:
            async with aclosing(answered(run, request)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Answered):
                        piece = await _noted(run, request, piece.response)  # noqa: PLW2901 - a hook may change it
                    yield piece
        except (ProviderError, StreamInterrupted) as error:
            if not _is_bad_call(error) or not run.may_retry("bad call", _MALFORMED_RETRIES):
                raise
            bad_call = error
        events = self.settle(run) if bad_call is None else self.recover(run, bad_call)
        async with aclosing(events):
            async for event in events:
                yield event

    # --- what is asked

    async def request(self, run: Run) -> Request:
        """The next request: the conversation as far as it fits, and the agent's settings."""
        setup, system, tools = run.setup, await run.system(), self.tools(run)
        window = await run.conversation.window(setup.model.name, tools, system)
        return setup.request.replace(
            system=system,
            messages=tuple(window),
            tools=tools,
            tool_choice=self.tool_choice(run) if tools else None,
        )

    def tools(self, run: Run) -> tuple[AnyTool, ...]:
        """The tools that the model is told of."""
        return run.setup.tools.definitions

    def tool_choice(self, run: Run) -> ToolChoice | None:
        """What the agent was told; but a tool that must be called must be called once only."""
        choice = run.setup.request.tool_choice
        if choice is None or not run.rounds:
            return choice
        if choice.mode in {"required", "named"}:
            return ToolChoice("auto", parallel=choice.parallel)
        return choice.replace(is_required=False) if choice.is_required else choice

    # --- what is answered

    async def known(self, run: Run, calls: Sequence[ToolCall]) -> Mapping[str, ToolResult]:  # noqa: ARG002 - for heirs
        """The results, by id, of those of the calls that no tool is run for."""
        return EMPTY

    async def settle(self, run: Run) -> AsyncGenerator[AgentEvent]:
        """Act on the answer: run its calls, ask again, or end."""
        message = _message(run)
        if message.tool_calls:
            events = self.call(run, message)
        elif _is_unfinished(run, message):
            events = self.ask_again(run, message)
        else:
            yield await run.add(message)
            events = self.conclude(run, message)
        async with aclosing(events):
            async for event in events:
                yield event

    async def call(self, run: Run, message: Message) -> AsyncGenerator[AgentEvent]:
        """Run the calls of an answer; those that are the caller's business end the run."""
        yield await run.add(message)
        calls = message.tool_calls
        if message.finish is not None and message.finish.is_cut_off:
            events = self.refuse(run, calls)
        else:
            events = self.play(run, calls, await self.known(run, calls))
        async with aclosing(events):
            async for event in events:
                yield event

    async def play(
        self, run: Run, calls: Sequence[ToolCall], known: Mapping[str, ToolResult] = EMPTY
    ) -> AsyncGenerator[AgentEvent]:
        """A round of tools; calls whose results are known already are not run."""
        mine, waiting = parted(calls, lambda call: call.id not in known and waits(run, call))
        if mine:
            async with aclosing(Round(run, mine, known).play()) as events:
                async for event in events:
                    yield event
        if waiting:
            run.finish(deferred=tuple(waiting))

    async def refuse(self, run: Run, calls: Sequence[ToolCall]) -> AsyncGenerator[AgentEvent]:
        """Calls of an answer that was cut off are not run (I7): the model is told, for a while."""
        async with aclosing(self.play(run, calls, refusals(calls))) as events:
            async for event in events:
                yield event
        if not run.may_retry("cut off", _CUT_OFF_RETRIES):
            run.finish()

    async def conclude(self, run: Run, _message: Message) -> AsyncGenerator[AgentEvent]:
        """The answer stands."""
        run.finish()
        nothing: tuple[AgentEvent, ...] = ()
        for event in nothing:  # a generator all the same: its heirs may have something to say
            yield event

    async def ask_again(self, run: Run, message: Message) -> AsyncGenerator[AgentEvent]:
        """An answer that is none: it goes on, was malformed, or is empty after tools."""
        if message.finish is FinishReason.PAUSE:
            yield await run.add(message)
        elif message.finish is FinishReason.MALFORMED_CALL:
            if not _says_nothing(message):
                yield await run.add(message)
            yield await run.add(Message.user(_TRY_AGAIN))
            yield AskedAgain("a tool call could not be read")
        else:
            yield AskedAgain("the answer was empty")

    async def recover(
        self, run: Run, error: ProviderError | StreamInterrupted
    ) -> AsyncGenerator[AgentEvent]:
        """The provider could not read the model's call: the model is shown what it wrote (W112)."""
        partial = error.partial
        if partial is not None and partial.choices and partial.text:
            yield await run.add(_without_calls(partial.message))
        yield await run.add(Message.user(_TRY_AGAIN))
        yield AskedAgain("a tool call could not be read")


def _is_bad_call(error: ProviderError | StreamInterrupted) -> bool:
    """Whether the model wrote a call that its provider could not read, at once or in mid-stream."""
    if isinstance(error, ProviderError):
        return error.code == _BAD_CALL
    return error.partial is not None and error.partial.finish is FinishReason.MALFORMED_CALL


def waits(run: Run, call: ToolCall) -> bool:
    """Whether a call is the caller's business: to run it, or to approve it."""
    tools = run.setup.tools
    return tools.is_for_caller(call) or tools.needs_approval(call)


def parted(
    calls: Iterable[ToolCall], waits: Callable[[ToolCall], bool]
) -> tuple[list[ToolCall], list[ToolCall]]:
    """The calls that are run, and those that wait. Not by `==`, for which ids don't count."""
    sides: tuple[list[ToolCall], list[ToolCall]] = ([], [])
    for call in calls:
        sides[waits(call)].append(call)
    return sides


def refusals(calls: Sequence[ToolCall]) -> dict[str, ToolResult]:
    """What is said, by id, to calls of an answer that was cut off."""
    return {each.id: ToolResult.error(each.id, CUT_OFF, tool_name=each.name) for each in calls}


async def _noted(run: Run, request: Request, response: Response) -> Answered:
    told = await run.hooked(run.setup.hooks.after_response, response)
    if run.setup.links is not None and told is response:  # what a hook made is not what is kept
        run.setup.links.remember(request, response, run.target)
    told = _completed(_with_distinct_ids(told, request))
    run.answered(told)
    return Answered(told)


def _message(run: Run) -> Message:
    response = run.response
    if response is None or not response.choices:
        return make_message(Role.ASSISTANT)
    return response.message


def _completed(response: Response) -> Response:
    """With the usage and the finish on the message too, as decoders have them: both are stored."""
    if len(response.choices) != 1:  # the usage is that of all choices
        return response
    (choice,) = response.choices
    message = choice.message
    missing: dict[str, Any] = {}
    if message.usage is None and response.usage is not None:
        missing["usage"] = response.usage.counts
    if message.finish is None and choice.finish is not None:
        missing["finish"] = choice.finish
    if not missing:
        return response
    return response.replace(choices=(choice.replace(message=message.replace_unchecked(**missing)),))


def _with_distinct_ids(response: Response, request: Request) -> Response:
    """By ids, calls and results are paired; not all models take care of them (I5).

    Each call has an id that no earlier one of the conversation has: some models use theirs again,
    and one that was derived may be there already. What takes its place is derived as well, so that
    the same answer to the same request gives the same message.
    """
    ids = [call.id for call in response.tool_calls]
    if not ids:
        return response
    used = {"", *(call.id for message in request.messages for call in message.tool_calls)}
    if used.isdisjoint(ids) and len(set(ids)) == len(ids):
        return response
    first, *others = response.choices
    parts = _told_apart(first.message.parts, used, len(request.messages))
    message = first.message.replace_unchecked(parts=parts)
    return response.replace(choices=(first.replace(message=message), *others))


def _told_apart(given: Iterable[AnyPart], seen: set[str], place: int) -> tuple[AnyPart, ...]:
    parts: list[AnyPart] = []
    for number, part in enumerate(given):
        if isinstance(part, ToolCall) and part.id in seen:
            had = part.id or None if part.wire_id is UNSET else part.wire_id
            said = (part.name, part.raw_arguments)
            own = derived_call_id(_ANSWER, (place, number), said, seen.__contains__)
            part = part.replace_unchecked(id=own, wire_id=had)  # noqa: PLW2901 - the same, told apart
        if isinstance(part, ToolCall):
            seen.add(part.id)
        parts.append(part)
    return tuple(parts)


def _without_calls(message: Message) -> Message:
    """What was said beside calls that nobody will run."""
    return message.replace_unchecked(
        parts=tuple(p for p in message.parts if not isinstance(p, ToolCall))
    )


def _is_unfinished(run: Run, message: Message) -> bool:
    """Whether the model is to be asked once more for what it answered."""
    if message.finish is FinishReason.PAUSE:
        return True
    if message.finish is FinishReason.MALFORMED_CALL:
        return run.may_retry("bad call", _MALFORMED_RETRIES)
    return _is_after_tools(run) and _is_empty(message) and run.may_retry("empty", 1)


def _is_after_tools(run: Run) -> bool:
    asked = run.request.messages if run.request is not None else ()
    return bool(asked) and bool(asked[-1].tool_results)


def _is_empty(message: Message) -> bool:
    return message.finish in {
        None,
        FinishReason.STOP,
        FinishReason.OTHER,
        FinishReason.TOOL_CALLS,
    } and (_says_nothing(message))


def _says_nothing(message: Message) -> bool:
    return all(
        isinstance(part, Thinking) or (isinstance(part, Text) and not part.text.strip())
        for part in message.parts
    )
