"""Runs with a typed output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from dragoman.agent.events import PartialOutput, RetryRequested
from dragoman.agent.orchestrator import ToolOrchestrator
from dragoman.agent.output.modes import Mode
from dragoman.agent.output.typed import Misfit, Missing, SentBack, TypedOutput
from dragoman.agent.output.wording import (
    PHASE_TWO,
    RECEIVED,
    SUPERFLUOUS,
    feedback,
    reminder,
    tool_feedback,
)
from dragoman.agent.runs import Run
from dragoman.agent.tool_job import returned
from dragoman.errors import InvalidInputError, LimitExceeded, Refused, ToolRetry
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.requests import AnyTool, Request
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall, ToolChoice, ToolDefinition, ToolResult
from dragoman.model.usage import FinishReason

_NOTES = "typed output"
_REFUSALS = frozenset({FinishReason.REFUSAL, FinishReason.CONTENT_FILTER})


class TypedOrchestrator(ToolOrchestrator):
    """A `ToolOrchestrator` that ends when the model has given a value of the requested type.

    - `native`: the provider enforces the schema.
    - `tool`: the model calls `return_result` with the value.
    - `two_phase`: requests with tools first, then one with the schema and without tools.

    In each mode a value in another mode's form is accepted too, because models mix them up.
    """

    async def initialize(self, run: Run) -> None:
        """Choose the mode by the model's capabilities."""
        self._choose(run)

    async def hand_off(self, run: Run, calls: Sequence[ToolCall]) -> None:
        """Hand over, and choose the mode again: the other model may need another one."""
        before = run.setup
        await super().hand_off(run, calls)
        if run.setup is not before:
            self._choose(run)

    def _choose(self, run: Run) -> None:
        spec, tools = _spec(run), run.tools.definitions
        run.notes[_NOTES] = _Asking(
            spec.mode_for(run.target, has_tools=bool(tools)),
            spec.tool_beside([each.name for each in tools]),
        )

    # --- the request

    async def request(self, run: Run) -> Request:
        """The next request, with the schema if the provider supports it."""
        request = await super().request(run)
        if _asking(run).is_held_to_schema:
            request = request.replace(output=_spec(run).output)
            if run.target is not None and "schema" not in run.target.schemas.outputs:
                told = Text(_spec(run).instruction)  # a forced mode: the schema in words
                request = request.replace(system=(*request.system, told))
        if run.streams:
            asking = _asking(run)
            own = None if asking.is_held_to_schema else asking.tool.name
            run.watch = _Previews(_spec(run), own)
        return request

    def tools(self, run: Run) -> tuple[AnyTool, ...]:
        """The tools, with `return_result`; none in the second phase."""
        asking = _asking(run)
        if asking.is_second_phase:
            return ()
        own = super().tools(run)
        return (*own, asking.tool) if asking.mode == "tool" else own

    def tool_choice(self, run: Run) -> ToolChoice | None:
        """With `return_result`, a tool call is always required: that is how the run ends."""
        choice, mode = super().tool_choice(run), _asking(run).mode
        if mode != "tool" or (choice is not None and choice.mode in {"required", "named"}):
            return choice
        return ToolChoice("required", parallel=None if choice is None else choice.parallel)

    # --- the response

    async def known(self, run: Run, calls: Sequence[ToolCall]) -> Mapping[str, ToolResult]:
        """Results of calls to `return_result`, which contain the output."""
        final = [call for call in calls if call.name == _asking(run).tool.name]
        received = {call.id: await self._received(run, call) for call in final}
        return {**await super().known(run, calls), **received}

    async def call(self, run: Run, message: Message) -> None:
        """Run the calls; a call to `return_result` is the output."""
        await super().call(run, message)
        own = _asking(run).tool.name
        is_cut_off = message.finish is not None and message.finish.is_cut_off
        if run.output is not UNSET:
            run.finish(deferred=run.deferred)
        elif not is_cut_off and any(call.name == own for call in message.tool_calls):
            await run.emit(self._retry_requested(run))

    async def refuse(self, run: Run, calls: Sequence[ToolCall]) -> None:
        """Refuse the calls of a truncated response; raise if there is no further attempt."""
        await super().refuse(run, calls)
        if run.is_over:
            _expect_no_refusal(run.response)
            msg = (
                "the model's answers were cut off, so there is no output of the requested type;"
                " raise max_tokens"
            )
            raise LimitExceeded(msg)

    async def _received(self, run: Run, call: ToolCall) -> ToolResult:
        """Take the output from a call; returns the result of the call."""
        if run.output is not UNSET:
            return ToolResult.success(call.id, SUPERFLUOUS, tool_name=call.name)
        try:
            run.output = await _accepted(run, _spec(run).read_call(call))
        except Misfit as misfit:
            _asking(run).note(misfit)
            told = tool_feedback(str(misfit), call.name)
            return ToolResult.error(call.id, told, tool_name=call.name)
        return ToolResult.success(call.id, RECEIVED, tool_name=call.name)

    async def conclude(self, run: Run, message: Message) -> None:
        """Handle an answer in words: the value itself, the end of the first phase, or unusable."""
        _expect_no_refusal(message)
        asking = _asking(run)
        if asking.mode == "two_phase" and not asking.is_second_phase:
            asking.is_second_phase = True
            await run.add(Message.user(PHASE_TWO))
            return
        try:
            run.output = await _accepted(run, _spec(run).read(message.text))
        except Misfit as misfit:
            asking.note(misfit)
            told = _objection(asking, misfit)
        else:
            run.finish()
            return
        again = self._retry_requested(run)
        await run.add(Message.user(told))
        await run.emit(again)

    def _retry_requested(self, run: Run) -> RetryRequested:
        """The event for another attempt; raises after too many."""
        most = run.setup.output_retries
        if not run.may_retry("output", most):
            msg = (
                f"the model's answer did not match the type in {most + 1} attempts"
                f"{_asking(run).problem}; see `error.partial.messages`; raise output_retries,"
                " or try another output_mode or model"
            )
            raise LimitExceeded(msg)
        return RetryRequested("the answer did not match the type")


class _Previews:
    """Makes previews of the value from the text, or from the tool's arguments."""

    def __init__(self, spec: TypedOutput, own: str | None) -> None:
        self._spec, self._own, self._preview = spec, own, spec.preview()
        self._last: Any = UNSET

    def feed(self, name: str | None, text: str) -> PartialOutput | None:
        """The value so far, if this piece belongs to it and changes it."""
        return self._shown(self._preview.feed(text)) if name == self._own else None

    def close(self) -> PartialOutput | None:
        """What was held back for its size."""
        return self._shown(self._preview.close())

    def _shown(self, json: Any) -> PartialOutput | None:
        if json is UNSET:
            return None
        value, valid = self._spec.partial(json)
        is_new = valid is not UNSET and valid != self._last
        self._last = valid
        return PartialOutput(value if is_new else UNSET, json)


@dataclass(slots=True)
class _Asking:
    """How one run requests its value, and its progress."""

    mode: Mode
    tool: ToolDefinition
    is_second_phase: bool = False
    problem: str = ""
    """The problem of the last attempt, if we found it, without quoting the answer."""

    def note(self, misfit: Misfit) -> None:
        """Remember the problem."""
        self.problem = "" if isinstance(misfit, SentBack) else f" ({misfit})"

    @property
    def is_held_to_schema(self) -> bool:
        return self.mode == "native" or self.is_second_phase


def _asking(run: Run) -> _Asking:
    asking: _Asking = run.notes[_NOTES]
    return asking


def _spec(run: Run) -> TypedOutput:
    spec = run.setup.output
    if spec is None:
        msg = "a TypedOrchestrator needs an output type: set output on the agent or the call"
        raise InvalidInputError(msg)
    return spec


def _expect_no_refusal(told: Message | Response | None) -> None:
    if told is not None and told.finish in _REFUSALS:
        msg = "the model refused to answer, so there is no output of the requested type"
        raise Refused(msg)


def _objection(asking: _Asking, misfit: Misfit) -> str:
    """The user message after an unusable answer in words."""
    if asking.mode != "tool":
        return feedback(str(misfit))
    if isinstance(misfit, Missing):
        return reminder(asking.tool.name)
    return tool_feedback(str(misfit), asking.tool.name)


async def _accepted(run: Run, value: Any) -> Any:
    """The value after the output function and hooks, which may reject it."""
    function = _spec(run).function
    try:
        if function is not None:
            value = await returned(function, value, run.context)
        return await run.hooked(run.setup.hooks.before_output, value, kinds=object)
    except ToolRetry as retry:
        advice = str(retry)
    raise SentBack(advice)
