"""A run that ends in a value of a type."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from msgspec import UNSET

from dragoman.agent.events import AgentEvent, AskedAgain
from dragoman.agent.hooks import hooked
from dragoman.agent.orchestrator import ToolOrchestrator
from dragoman.agent.output.typed import Misfit, TypedOutput
from dragoman.agent.output.wording import (
    PHASE_TWO,
    RECEIVED,
    SUPERFLUOUS,
    feedback,
    reminder,
    tool_feedback,
)
from dragoman.agent.runs import Run, Watch
from dragoman.errors import LimitExceeded, Refused, ToolRetry
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.requests import AnyTool, Request
from dragoman.model.tools import ToolCall, ToolChoice, ToolResult
from dragoman.model.usage import FinishReason

_REFUSALS = frozenset({FinishReason.REFUSAL, FinishReason.CONTENT_FILTER})


class TypedOrchestrator(ToolOrchestrator):
    """As `ToolOrchestrator`, until the model has given a value of the type that is asked for.

    - `native`: the provider holds the model to the schema.
    - `tool`: the model calls `return_result` with it.
    - `two_phase`: first the tools, then, without them, the schema.

    Whichever it is, a value in the other form is taken too: models mix them up.
    """

    def __init__(self) -> None:
        self._mode = "tool"
        self._is_second_phase = False

    async def initialize(self, run: Run) -> None:
        """Choose how to ask, by what the model can do."""
        spec, tools = _spec(run), run.setup.tools.definitions
        self._mode = spec.mode_for(run.target, has_tools=bool(tools))
        self._tool = spec.tool_beside([each.name for each in tools])

    # --- what is asked

    @property
    def _is_held_to_schema(self) -> bool:
        return self._mode == "native" or self._is_second_phase

    async def request(self, run: Run) -> Request:
        """As ever, with the schema where the provider takes it."""
        request = await super().request(run)
        if self._is_held_to_schema:
            request = request.replace(output=_spec(run).output)
            if run.target is not None and "schema" not in run.target.outputs:
                told = Text(_spec(run).instruction)  # somebody insisted: in words, then
                request = request.replace(system=(*request.system, told))
        if run.streams:
            run.watch = self._watch(run)
        return request

    def _watch(self, run: Run) -> Watch:
        """Shows the value of one answer: in what is said, or in the tool's arguments."""
        preview, own = _spec(run).preview(), None if self._is_held_to_schema else self._tool.name

        def watch(name: str | None, text: str) -> Any:
            return preview.feed(text) if name == own else UNSET

        return watch

    def tools(self, run: Run) -> tuple[AnyTool, ...]:
        """As ever; with `return_result`, or none in the second phase."""
        if self._is_second_phase:
            return ()
        own = super().tools(run)
        return (*own, self._tool) if self._mode == "tool" else own

    def tool_choice(self, run: Run) -> ToolChoice | None:
        """With `return_result` some tool has to be called, always: it is how the run ends."""
        choice = super().tool_choice(run)
        if self._mode != "tool" or (choice is not None and choice.mode in {"required", "named"}):
            return choice
        return ToolChoice("required", parallel=None if choice is None else choice.parallel)

    # --- what is answered

    async def known(self, run: Run, calls: Sequence[ToolCall]) -> Mapping[str, ToolResult]:
        """What is said to calls of `return_result`: the output is in them."""
        final = [call for call in calls if call.name == self._tool.name]
        return {call.id: await self._received(run, call) for call in final}

    async def call(self, run: Run, message: Message) -> AsyncGenerator[AgentEvent]:
        """As ever; a call of `return_result` is the output."""
        is_final = any(call.name == self._tool.name for call in message.tool_calls)
        is_cut_off = message.finish is not None and message.finish.is_cut_off
        if not is_final or is_cut_off:
            events = super().call(run, message)
        else:
            events = self._returned(run, message)
        async with aclosing(events):
            async for event in events:
                yield event

    async def _returned(self, run: Run, message: Message) -> AsyncGenerator[AgentEvent]:
        yield await run.add(message)
        known = await self.known(run, message.tool_calls)
        async with aclosing(self.play(run, message.tool_calls, known)) as events:
            async for event in events:
                yield event
        if run.output is not UNSET:
            run.finish(deferred=run.deferred)
        else:
            yield self._asked_again(run)

    async def _received(self, run: Run, call: ToolCall) -> ToolResult:
        """Take the output out of a call; the result says what came of it."""
        if run.output is not UNSET:
            return ToolResult.success(call.id, SUPERFLUOUS, tool_name=call.name)
        try:
            run.output = await _accepted(run, _spec(run).read_call(call))
        except Misfit as misfit:
            told = tool_feedback(str(misfit), call.name)
            return ToolResult.error(call.id, told, tool_name=call.name)
        return ToolResult.success(call.id, RECEIVED, tool_name=call.name)

    async def conclude(self, run: Run, message: Message) -> AsyncGenerator[AgentEvent]:
        """An answer in words: the value itself, the end of the first phase, or no use."""
        if message.finish in _REFUSALS:
            msg = "the model refused to answer, so there is no output of the type asked for"
            raise Refused(msg)
        if self._mode == "two_phase" and not self._is_second_phase:
            self._is_second_phase = True
            yield await run.add(Message.user(PHASE_TWO))
            return
        try:
            run.output = await _accepted(run, _spec(run).read(message.text))
        except Misfit as misfit:
            problems = str(misfit)
        else:
            run.finish()
            return
        again = self._asked_again(run)
        is_tool = self._mode == "tool"
        told = reminder(self._tool.name) if is_tool else feedback(problems)
        yield await run.add(Message.user(told))
        yield again

    def _asked_again(self, run: Run) -> AskedAgain:
        """Another attempt; raises where there were enough."""
        most = run.setup.output_retries
        if not run.may_retry("output", most):
            msg = f"the model's answer did not fit the type, in {most + 1} attempts"
            raise LimitExceeded(msg)
        return AskedAgain("the answer did not fit the type")


def _spec(run: Run) -> TypedOutput:
    spec = run.setup.output
    assert spec is not None  # noqa: S101 - or else this orchestrator is not chosen
    return spec


async def _accepted(run: Run, value: Any) -> Any:
    """The value, as hooks leave it; they may send it back."""
    try:
        return await hooked(run.setup.hooks.before_output, value, run.context)
    except ToolRetry as retry:
        advice = str(retry)
    raise Misfit(advice)
