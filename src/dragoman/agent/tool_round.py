"""One round of tools: runs the calls of a response, and adds their results.

`round_records` decides what is recorded when: whenever the program stops, no call that was started
is started again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from dragoman.agent.approvals import Decided
from dragoman.agent.concurrent_calls import Inbox
from dragoman.agent.events import MessageAdded, ToolFinished, ToolStarted
from dragoman.agent.hooks import hooked
from dragoman.agent.round_records import record_of
from dragoman.agent.runs import Run
from dragoman.errors import InvalidInputError, ToolError
from dragoman.model.tools import ToolCall, ToolResult

CUT_OFF = (
    "This call was not run: the answer was cut off before it was complete. "
    "Write it again, and more briefly if it was long."
)


class Round:
    """The calls of one response, and the events and records about them."""

    def __init__(self, run: Run, decided: Decided) -> None:
        calls, known = decided.mine, decided.known
        self._run = run
        self._calls = calls
        self._edited = decided.edited
        self._known = {i: known[call.id] for i, call in enumerate(calls) if call.id in known}
        self._record = record_of(run.conversation, calls, dict(self._known))
        self._places: dict[int, int] = {}  # indexes of the run calls, by identity
        self._ran: dict[str, bool] = {}  # the called tools, and whether all their calls failed
        self._begun: set[int] = set()  # indexes of calls that have started
        self.inbox: Inbox | None = None
        """Receives events of agents called by tools."""

    async def play(self) -> None:
        """Run the calls without known results, and add the message with all results."""
        run = self._run
        to_run = [place for place in range(len(self._calls)) if place not in self._known]
        run.tally.calls(len(to_run))
        for place, known in self._known.items():
            await run.emit(ToolFinished(self._calls[place], known))
        allowed: list[ToolCall] = []
        for place in to_run:
            decided = await self._decided(self._calls[place])
            if isinstance(decided, ToolResult):
                await run.emit(self._settled(place, decided))
            else:
                allowed.append(self._placed(place, decided))
        try:
            await self._execute(allowed)
        except BaseException:  # cancelled or left, or a hook has failed
            with suppress(Exception):  # the first error is the one that matters
                await self._record.leave(self._begun)
                run.new += self._record.messages
            raise
        await self._record.complete()
        for message in self._record.messages:
            run.new.append(message)
            await run.emit(MessageAdded(message))
        run.rounds += 1
        run.tally.round(self._record.results)
        for name, has_failed in self._ran.items():
            found = run.tools.runnable.get(name)
            run.tally.ended(name, None if found is None else found.retries, has_failed=has_failed)

    async def _execute(self, calls: Sequence[ToolCall]) -> None:
        run, tools = self._run, self._run.tools.runnable
        found = (tools.get(call.name) for call in calls)
        if run.is_heard and any(tool is not None and tool.injected for tool in found):
            run.inbox = self.inbox = Inbox(run.emit)  # tools may call agents within this run
        try:
            await run.setup.executor.run(calls, tools, run.context, self)
        finally:
            run.inbox = None

    def _placed(self, place: int, call: ToolCall) -> ToolCall:
        """The call to run at an index, as a distinct object: a hook may return one for several."""
        if id(call) in self._places:
            call = call.replace()
        self._places[id(call)] = place
        return call

    async def _decided(self, call: ToolCall) -> ToolCall | ToolResult:
        """The call to run, or a result if a hook prevents it."""
        call = self._edited.get(call.id, call)
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

    # --- reports of the executor

    async def starting(self, started: ToolStarted, batch: Iterable[ToolCall]) -> None:
        """A tool is about to start: record it, with those that start at the same time."""
        place = self._place(started.call)
        if not self._record.is_announced(place):
            self._announce(batch)
            await self._record.write()
        await self._run.emit(started)
        self._begun.add(place)

    async def finished(self, events: Sequence[ToolFinished], batch: Iterable[ToolCall]) -> None:
        """Tools have ended: record their results together, and emit the events."""
        told = [await self._finished(event) for event in events]
        if self._record.messages:
            if not self._run.is_followed:  # a consumer may leave before they start
                self._announce(batch)
            await self._record.write()
        for event in told:
            await self._run.emit(event)

    async def _finished(self, event: ToolFinished) -> ToolFinished:
        place = self._place(event.call)
        call = self._calls[place]
        hook, result = self._run.setup.hooks.after_tool_call, event.result
        if hook is not None:
            context = self._run.context.for_call(call)
            result = await hooked(hook, result, event.call, context)
        setup = self._run.setup
        result = setup.executor.bounded(event.call, result, self._run.tools.runnable)
        name = event.call.name
        self._ran[name] = self._ran.get(name, True) and bool(result.is_error)
        if hook is not None or result.call_id != call.id:
            result = result.replace_unchecked(call_id=call.id)
        return self._settled(place, result, event.seconds)

    def _settled(self, place: int, result: ToolResult, seconds: float = 0.0) -> ToolFinished:
        self._record.settle(place, result)
        return ToolFinished(self._calls[place], result, seconds)

    def _announce(self, calls: Iterable[ToolCall]) -> None:
        self._record.announce([self._place(call) for call in calls])

    def _place(self, call: ToolCall) -> int:
        place = self._places.get(id(call))
        if place is None:
            msg = "an executor must report the same call objects that it was given"
            raise InvalidInputError(msg)
        return place
