"""One round of tools: the calls of an answer are run, and their results are one message.

Where the conversation is kept, the message is written before the tools run, and says of each call
that its outcome is unknown; as the results come in, they take that place. Whenever the program
stops, what is written is true, and no call that was begun is ever begun again. Elsewhere the
message is added when the round ends; one that is left early adds what has come of it so far.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress

from dragoman.agent.events import MessageAdded, ToolFinished, ToolStarted
from dragoman.agent.hooks import hooked
from dragoman.agent.runs import Run
from dragoman.errors import ToolError
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult

UNKNOWN = (
    "The outcome of this call is not known: the program was stopped while the tool was running. "
    "It may or may not have taken effect."
)
CUT_OFF = (
    "This call was not run: the answer was cut off before it was complete. "
    "Write it again, and more briefly if it was long."
)

Happening = ToolStarted | ToolFinished | MessageAdded


class Round:
    """The results of one round, in the order of its calls, and where they are written down."""

    def __init__(
        self, run: Run, calls: Sequence[ToolCall], known: Mapping[str, ToolResult] = EMPTY
    ) -> None:
        self._run = run
        self._calls = calls
        self._results = {i: known[call.id] for i, call in enumerate(calls) if call.id in known}
        self._written: Message | None = None
        self._places: dict[int, int] = {}  # of what is run, by its identity
        self._begun: set[int] = set()  # the places of calls that have been begun

    async def play(self) -> AsyncGenerator[Happening]:
        """Run the calls whose results are not known; the last event is the message with all."""
        run = self._run
        to_run = [place for place in range(len(self._calls)) if place not in self._results]
        run.tally.calls(len(to_run))
        for place, known in [*self._results.items()]:
            yield ToolFinished(self._calls[place], known)
        allowed: list[ToolCall] = []
        for place in to_run:
            decided = await self._decided(self._calls[place])
            if isinstance(decided, ToolResult):
                yield self._settled(place, decided)
            else:
                allowed.append(self._placed(place, decided))
        try:
            async with aclosing(self._executed(allowed)) as events:
                async for event in events:
                    yield event
        except BaseException:  # cancelled, or closed; or a hook has failed
            with suppress(Exception):  # what happened first is what people need to know
                await self._leave()
            raise
        yield run.added(await self._complete())
        run.rounds += 1
        run.tally.round([(call, self._results[i]) for i, call in enumerate(self._calls)
                         if i in self._results])  # fmt: skip

    def _placed(self, place: int, call: ToolCall) -> ToolCall:
        """What is run for a place, an object of its own: a hook may give the same for several."""
        if id(call) in self._places:
            call = call.replace()
        self._places[id(call)] = place
        return call

    async def _decided(self, call: ToolCall) -> ToolCall | ToolResult:
        """What is to be run, or the result where a hook stands in the way."""
        hook = self._run.setup.hooks.before_tool_call
        if hook is None:
            return call
        try:
            context = self._run.context.for_call(call)
            decided = await hooked(hook, call, context, kinds=(ToolCall, ToolResult))
        except ToolError as veto:
            return ToolResult.error(call.id, str(veto), tool_name=call.name)
        if isinstance(decided, ToolResult):
            return decided.replace_unchecked(call_id=call.id)
        return decided  # type: ignore[no-any-return]  # `hooked` has seen to it

    async def _executed(self, calls: Sequence[ToolCall]) -> AsyncGenerator[Happening]:
        run = self._run
        executor = run.setup.executor
        events = executor.execute(calls, run.setup.tools.runnable, run.context)
        keeps = run.conversation.keeps_rounds
        written: set[int] = set()
        async with aclosing(events):
            async for event in events:
                if isinstance(event, ToolStarted):
                    place = self._places[id(event.call)]
                    if keeps and place not in written:
                        # What begins at once is written down at once.
                        wave = calls if executor.runs_at_once(len(calls)) else (event.call,)
                        fresh = {self._places[id(call)] for call in wave}
                        written |= fresh
                        await self._write_unknown(fresh)
                    yield event
                    self._begun.add(place)
                else:
                    yield await self._finished(event)

    async def _write_unknown(self, places: Iterable[int]) -> None:
        for place in places:
            call = self._calls[place]
            unknown = ToolResult.error(call.id, UNKNOWN, tool_name=call.name)
            self._results.setdefault(place, unknown)  # one that can't be run has its result already
        await self._write()

    async def _leave(self) -> None:
        """Write down what has come of the calls that were begun, so that they are not run again."""
        if self._begun and not self._run.conversation.keeps_rounds:
            await self._write_unknown(self._begun)
        if self._written is not None:
            self._run.added(self._written)

    async def _finished(self, event: ToolFinished) -> ToolFinished:
        place = self._places[id(event.call)]
        call = self._calls[place]
        hook, result = self._run.setup.hooks.after_tool_call, event.result
        if hook is not None:
            context = self._run.context.for_call(call)
            result = await hooked(hook, result, event.call, context)
        if hook is not None or result.call_id != call.id:
            result = result.replace_unchecked(call_id=call.id)
        told = self._settled(place, result, event.seconds)
        if self._written is not None:
            await self._write()
        return told

    def _settled(self, place: int, result: ToolResult, seconds: float = 0.0) -> ToolFinished:
        self._results[place] = result
        return ToolFinished(self._calls[place], result, seconds)

    def _message(self) -> Message:
        parts = tuple(self._results[place] for place in sorted(self._results))
        if self._written is None:
            return make_message(Role.TOOL, parts)
        return self._written.replace_unchecked(parts=parts)

    async def _write(self) -> None:
        conversation = self._run.conversation
        if self._written is None:
            self._written = await conversation.add(self._message())
        else:
            self._written = await conversation.replace(self._message())

    async def _complete(self) -> Message:
        if self._written is None:
            await self._write()
        assert self._written is not None  # noqa: S101 - it was written this moment
        return self._written
