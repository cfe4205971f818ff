"""Orchestrators: how a run goes from one request to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import UNSET

from dragoman.agent.approvals import decide
from dragoman.agent.events import ResponseReceived, RetryRequested, StepStarted
from dragoman.agent.handoffs import accepted, superfluous
from dragoman.agent.model_request import answered
from dragoman.agent.runs import Run
from dragoman.agent.tool_round import CUT_OFF, Round
from dragoman.errors import LimitExceeded, ProviderError, StreamInterrupted, ToolRetry
from dragoman.history.live_windows import Window
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
_BAD_CALL = "tool_use_failed"  # Groq's error code for a malformed tool call (W112)
_TRY_AGAIN = (
    "Your last answer held a tool call that could not be read. "
    "If you meant to call a tool, call it again, with arguments that are valid JSON."
)
_NORMAL_FINISHES = (None, FinishReason.STOP, FinishReason.OTHER, FinishReason.TOOL_CALLS)
_MALFORMED_RETRIES = 2
_CUT_OFF_RETRIES = 2


@runtime_checkable
class Orchestrator(Protocol):
    """Drives a run. Pass your own as `Agent(orchestrator=...)`, or override parts of ours."""

    async def initialize(self, run: Run) -> None:
        """Called once, before anything else."""
        ...

    async def iterate(self, run: Run) -> None:
        """One iteration: send a request, and act on the response; called until `run.is_over`.

        Report events with `await run.emit(event)`.
        """
        ...

    async def finalize(self, run: Run) -> None:
        """Called once at the end, also after errors."""
        ...


class ToolOrchestrator:
    """Sends requests, and runs the tools that the model calls, until it gives a final answer."""

    async def initialize(self, run: Run) -> None:
        """Nothing to prepare."""

    async def finalize(self, run: Run) -> None:
        """Nothing to clean up."""

    async def iterate(self, run: Run) -> None:
        """One request, its response, and the tools that it calls."""
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
            await run.emit(ResponseReceived(await _noted(run, request, response)))
            await self.settle(run)
            return
        await self.recover(run, bad_call)

    # --- the request

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
        """The tool definitions to send."""
        return run.tools.definitions

    def tool_choice(self, run: Run) -> ToolChoice | None:
        """The configured tool choice; a forced tool is forced only in the first request."""
        choice = run.setup.request.tool_choice
        if choice is None or not run.rounds:
            return choice
        if choice.mode in {"required", "named"}:
            return ToolChoice("auto", parallel=choice.parallel)
        return choice.replace(is_required=False) if choice.is_required else choice

    # --- the response

    async def known(self, run: Run, calls: Sequence[ToolCall]) -> Mapping[str, ToolResult]:
        """Results, by id, of calls for which no tool is run: handoffs."""
        handoffs = run.tools.handoffs
        over = [call for call in calls if call.name in handoffs] if handoffs else ()
        results: dict[str, ToolResult] = {}
        for call in over:
            results[call.id] = superfluous(call) if results else accepted(call)
        return results

    async def hand_off(self, run: Run, calls: Sequence[ToolCall]) -> None:
        """Continue with another agent, if one of the calls is a handoff."""
        handoffs = run.tools.handoffs
        over = next((call for call in calls if call.name in handoffs), None) if handoffs else None
        if over is not None:
            await run.hand_off(handoffs[over.name])

    async def settle(self, run: Run) -> None:
        """Act on the response: run its calls, send another request, or end."""
        message = _message(run)
        if message.tool_calls:
            await self.call(run, message)
        elif _is_unfinished(run, message):
            await self.ask_again(run, message)
        else:
            await run.add(message)
            await self.conclude(run, message)

    async def call(self, run: Run, message: Message) -> None:
        """Run the calls of a response; those left to the caller end the run."""
        await run.add(message)
        calls = message.tool_calls
        if message.finish is not None and message.finish.is_cut_off:
            await self.refuse(run, calls)
        else:
            await self.play(run, calls, await self.known(run, calls))
            await self.hand_off(run, calls)

    async def play(
        self, run: Run, calls: Sequence[ToolCall], known: Mapping[str, ToolResult] = EMPTY
    ) -> None:
        """Run a round of tools; calls with known results are not run."""
        decided = await decide(run, calls, known)
        if decided.mine:
            await Round(run, decided).play()
        if decided.waiting:
            run.finish(deferred=tuple(decided.waiting))

    async def refuse(self, run: Run, calls: Sequence[ToolCall]) -> None:
        """Refuse the calls of a truncated response (I7), for a limited number of attempts."""
        await self.play(run, calls, refusals(calls))
        if not run.may_retry("cut off", _CUT_OFF_RETRIES):
            run.finish()

    async def conclude(self, run: Run, message: Message) -> None:
        """Accept the answer, unless a hook sends it back."""
        hook = run.setup.hooks.before_output
        if hook is not None:
            try:
                text = message.text
                told = await run.hooked(hook, text, kinds=object)
            except ToolRetry as retry:
                await self.send_back(run, str(retry))
                return
            if told is not text or "output" in run.retries:
                run.output = told  # without the answers that were sent back
        run.finish()

    async def send_back(self, run: Run, advice: str) -> None:
        """Request another answer; raises after too many attempts."""
        most = run.setup.output_retries
        if not run.may_retry("output", most):
            msg = f"the model's answer was rejected {most + 1} times; raise output_retries"
            raise LimitExceeded(msg)
        await run.add(Message.user(advice))
        await run.emit(RetryRequested("the answer was rejected"))

    async def ask_again(self, run: Run, message: Message) -> None:
        """Handle an unfinished answer: paused, malformed, or empty after tools."""
        if message.finish is FinishReason.PAUSE:
            await run.add(message)
        elif message.finish is FinishReason.MALFORMED_CALL:
            if not _says_nothing(message):
                await run.add(message)
            await run.add(Message.user(_TRY_AGAIN))
            await run.emit(RetryRequested("a tool call could not be read"))
        else:
            await run.emit(RetryRequested("the answer was empty"))

    async def recover(self, run: Run, error: ProviderError | StreamInterrupted) -> None:
        """Recover from an unparsable call: show the model what it wrote (W112)."""
        partial = error.partial
        if partial is not None and partial.choices and partial.text:
            await run.add(_without_calls(partial.message))
        await run.add(Message.user(_TRY_AGAIN))
        await run.emit(RetryRequested("a tool call could not be read"))


def _is_bad_call(error: ProviderError | StreamInterrupted) -> bool:
    """Whether the provider could not parse the model's call, at once or in mid-stream."""
    if isinstance(error, ProviderError):
        return error.code == _BAD_CALL
    return error.partial is not None and error.partial.finish is FinishReason.MALFORMED_CALL


def refusals(calls: Sequence[ToolCall]) -> dict[str, ToolResult]:
    """Error results, by id, for the calls of a truncated response."""
    return {each.id: ToolResult.error(each.id, CUT_OFF, tool_name=each.name) for each in calls}


async def _noted(run: Run, request: Request, response: Response) -> Response:
    told = await run.hooked(run.setup.hooks.after_response, response)
    if run.setup.links is not None and told is response:  # a hook's response isn't stored there
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
    """The response with usage and finish on its message, as decoders set them: both are stored.

    With several choices, the first gets the total usage, which would otherwise be lost; and the
    service tier, if not the standard one, because billing depends on it.
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
    """The response with unique call ids: calls and results are paired by id (I5).

    Some models reuse ids, and a derived id may already exist. Replacements are derived
    deterministically, so that the same response to the same request gives the same message.
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
    """The message without its tool calls, which will not be run."""
    return message.replace_unchecked(
        parts=tuple(p for p in message.parts if not isinstance(p, ToolCall))
    )


def _is_unfinished(run: Run, message: Message) -> bool:
    """Whether another request is needed to complete the answer."""
    if message.finish is FinishReason.PAUSE:
        return True
    if message.finish is FinishReason.MALFORMED_CALL:
        return run.may_retry("bad call", _MALFORMED_RETRIES)
    return _is_after_tools(run) and _is_empty(message) and run.may_retry("empty", 1)


def _is_after_tools(run: Run) -> bool:
    asked = run.request.messages if run.request is not None else ()
    return bool(asked) and bool(asked[-1].tool_results)


def _is_empty(message: Message) -> bool:
    return message.finish in _NORMAL_FINISHES and _says_nothing(message)


def _says_nothing(message: Message) -> bool:
    return all(
        isinstance(part, Thinking) or (isinstance(part, Text) and not part.text.strip())
        for part in message.parts
    )
