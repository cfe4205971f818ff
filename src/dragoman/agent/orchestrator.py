"""How a run goes from one request to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import UNSET

from dragoman.agent.approvals import decide
from dragoman.agent.events import Answered, AskedAgain, StepStarted
from dragoman.agent.handoffs import accepted, superfluous
from dragoman.agent.model_request import answered
from dragoman.agent.runs import Run
from dragoman.agent.tool_round import CUT_OFF, Round
from dragoman.errors import LimitExceeded, ProviderError, StreamInterrupted, ToolRetry
from dragoman.history.sent_window import Window
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
from dragoman.providers.service_tiers import response_tier, with_tier

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

    async def iterate(self, run: Run) -> None:
        """One iteration: ask the model, and act on its answer; called until `run.is_over`.

        What happens is told with `await run.emit(event)`.
        """
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

    async def iterate(self, run: Run) -> None:
        """One request, its answer, and the tools that it calls."""
        run.tally.step()
        hook = run.setup.hooks.before_response
        run.request = request = await run.hooked(hook, await self.request(run))
        await run.emit(StepStarted(run.tally.steps))
        try:
            response = await answered(run, request)
        except (ProviderError, StreamInterrupted) as error:
            if not _is_bad_call(error) or not run.may_retry("bad call", _MALFORMED_RETRIES):
                raise
            bad_call = error
        else:
            await run.emit(Answered(await _noted(run, request, response)))
            await self.settle(run)
            return
        await self.recover(run, bad_call)

    # --- what is asked

    async def request(self, run: Run) -> Request:
        """The next request: the conversation as far as it fits, and the agent's settings."""
        await run.find_tools()
        setup, system, tools = run.setup, await run.system(), self.tools(run)
        window = await run.conversation.window(setup.model.name, tools, system)
        run.omitted = window.omitted if isinstance(window, Window) else 0
        return setup.request.replace(
            system=system,
            messages=tuple(window),
            tools=tools,
            tool_choice=self.tool_choice(run) if tools else None,
        )

    def tools(self, run: Run) -> tuple[AnyTool, ...]:
        """The tools that the model is told of."""
        return run.tools.definitions

    def tool_choice(self, run: Run) -> ToolChoice | None:
        """What the agent was told; but a tool that must be called must be called once only."""
        choice = run.setup.request.tool_choice
        if choice is None or not run.rounds:
            return choice
        if choice.mode in {"required", "named"}:
            return ToolChoice("auto", parallel=choice.parallel)
        return choice.replace(is_required=False) if choice.is_required else choice

    # --- what is answered

    async def known(self, run: Run, calls: Sequence[ToolCall]) -> Mapping[str, ToolResult]:
        """The results, by id, of those of the calls that no tool is run for: handing over."""
        handoffs = run.tools.handoffs
        over = [call for call in calls if call.name in handoffs] if handoffs else ()
        results: dict[str, ToolResult] = {}
        for call in over:
            results[call.id] = superfluous(call) if results else accepted(call)
        return results

    async def hand_over(self, run: Run, calls: Sequence[ToolCall]) -> None:
        """Go on with another agent, where one of the calls says so."""
        handoffs = run.tools.handoffs
        over = next((call for call in calls if call.name in handoffs), None) if handoffs else None
        if over is not None:
            await run.hand_over(handoffs[over.name])

    async def settle(self, run: Run) -> None:
        """Act on the answer: run its calls, ask again, or end."""
        message = _message(run)
        if message.tool_calls:
            await self.call(run, message)
        elif _is_unfinished(run, message):
            await self.ask_again(run, message)
        else:
            await run.add(message)
            await self.conclude(run, message)

    async def call(self, run: Run, message: Message) -> None:
        """Run the calls of an answer; those that are the caller's business end the run."""
        await run.add(message)
        calls = message.tool_calls
        if message.finish is not None and message.finish.is_cut_off:
            await self.refuse(run, calls)
        else:
            await self.play(run, calls, await self.known(run, calls))
            await self.hand_over(run, calls)

    async def play(
        self, run: Run, calls: Sequence[ToolCall], known: Mapping[str, ToolResult] = EMPTY
    ) -> None:
        """A round of tools; calls whose results are known already are not run."""
        decided = await decide(run, calls, known)
        if decided.mine:
            await Round(run, decided).play()
        if decided.waiting:
            run.finish(deferred=tuple(decided.waiting))

    async def refuse(self, run: Run, calls: Sequence[ToolCall]) -> None:
        """Calls of an answer that was cut off are not run (I7): the model is told, for a while."""
        await self.play(run, calls, refusals(calls))
        if not run.may_retry("cut off", _CUT_OFF_RETRIES):
            run.finish()

    async def conclude(self, run: Run, message: Message) -> None:
        """The answer stands, unless a hook sends it back."""
        hook = run.setup.hooks.before_output
        if hook is not None:
            try:
                text = message.text
                told = await run.hooked(hook, text, kinds=object)
            except ToolRetry as retry:
                await self.send_back(run, str(retry))
                return
            if told is not text or "output" in run.retries:
                run.output = told  # and nothing of the answers that were sent back
        run.finish()

    async def send_back(self, run: Run, advice: str) -> None:
        """Ask for another answer; raises where there were enough."""
        most = run.setup.output_retries
        if not run.may_retry("output", most):
            msg = f"the model's answer was sent back {most + 1} times, as often as it may be"
            raise LimitExceeded(msg)
        await run.add(Message.user(advice))
        await run.emit(AskedAgain("the answer was sent back"))

    async def ask_again(self, run: Run, message: Message) -> None:
        """An answer that is none: it goes on, was malformed, or is empty after tools."""
        if message.finish is FinishReason.PAUSE:
            await run.add(message)
        elif message.finish is FinishReason.MALFORMED_CALL:
            if not _says_nothing(message):
                await run.add(message)
            await run.add(Message.user(_TRY_AGAIN))
            await run.emit(AskedAgain("a tool call could not be read"))
        else:
            await run.emit(AskedAgain("the answer was empty"))

    async def recover(self, run: Run, error: ProviderError | StreamInterrupted) -> None:
        """The provider could not read the model's call: the model is shown what it wrote (W112)."""
        partial = error.partial
        if partial is not None and partial.choices and partial.text:
            await run.add(_without_calls(partial.message))
        await run.add(Message.user(_TRY_AGAIN))
        await run.emit(AskedAgain("a tool call could not be read"))


def _is_bad_call(error: ProviderError | StreamInterrupted) -> bool:
    """Whether the model wrote a call that its provider could not read, at once or in mid-stream."""
    if isinstance(error, ProviderError):
        return error.code == _BAD_CALL
    return error.partial is not None and error.partial.finish is FinishReason.MALFORMED_CALL


def refusals(calls: Sequence[ToolCall]) -> dict[str, ToolResult]:
    """What is said, by id, to calls of an answer that was cut off."""
    return {each.id: ToolResult.error(each.id, CUT_OFF, tool_name=each.name) for each in calls}


async def _noted(run: Run, request: Request, response: Response) -> Response:
    told = await run.hooked(run.setup.hooks.after_response, response)
    if run.setup.links is not None and told is response:  # what a hook made is not what is kept
        run.setup.links.remember(request, response, run.target)
    told = _completed(_with_distinct_ids(told, request))
    run.answered(told)
    return told


def _message(run: Run) -> Message:
    response = run.response
    if response is None or not response.choices:
        return make_message(Role.ASSISTANT)
    return response.message


def _completed(response: Response) -> Response:
    """With the usage and the finish on the message too, as decoders have them: both are stored.

    Of several choices the first is: what all of them used is its usage, or else it would be lost.
    So is the service tier, where it is not the standard one: the usage is billed by it.
    """
    if not response.choices:
        return response
    choice, *others = response.choices
    message = choice.message
    missing: dict[str, Any] = {}
    if message.usage is None and response.usage is not None:
        missing["usage"] = response.usage.counts
    tier = response_tier(response)
    if tier is not None and response.usage is not None and message.origin is not None:
        usage = message.usage or response.usage.counts
        missing["usage"] = with_tier(usage, tier, message.origin.dialect)
    if message.finish is None and choice.finish is not None:
        missing["finish"] = choice.finish
    if not missing:
        return response
    completed = choice.replace(message=message.replace_unchecked(**missing))
    return response.replace(choices=(completed, *others))


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
    return message.finish in _AS_USUAL and _says_nothing(message)


def _says_nothing(message: Message) -> bool:
    return all(
        isinstance(part, Thinking) or (isinstance(part, Text) and not part.text.strip())
        for part in message.parts
    )
