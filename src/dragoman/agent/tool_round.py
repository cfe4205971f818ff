"""One round of tools: the calls of an answer are run, and their results are one message.

Where the conversation is kept, the message is written before the tools run, and says of each call
that its outcome is unknown; as the results come in, they take that place. Whenever the program
stops, what is written is true, and no call that was begun is ever begun again. Elsewhere the
message is added when the round ends; one that is left early adds what has come of it so far.

Each writing is of the whole message. So there is one at a time: what ends meanwhile, and what
begins next, is written with the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from dragoman.agent.approvals import Decided
from dragoman.agent.events import MessageAdded, ToolFinished, ToolStarted
from dragoman.agent.hooks import hooked
from dragoman.agent.runs import Run
from dragoman.errors import ToolError
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


class Round:
    """The results of one round, in the order of its calls, and where they are written down."""

    def __init__(self, run: Run, decided: Decided) -> None:
        calls, known = decided.mine, decided.known
        self._run = run
        self._calls = calls
        self._edited = decided.edited
        self._results = {i: known[call.id] for i, call in enumerate(calls) if call.id in known}
        self._keeps = run.conversation.keeps_rounds
        self._written: Message | None = None
        self._is_unwritten = False  # whether there is a result that is not in what is written
        self._places: dict[int, int] = {}  # of what is run, by its identity
        self._announced: set[int] = set()  # the places of calls that may begin: it is written down
        self._ran: dict[str, bool] = {}  # the tools that were called, and whether only in vain
        self._begun: set[int] = set()  # the places of calls that have been begun

    async def play(self) -> None:
        """Run the calls whose results are not known, and add the message with all."""
        run = self._run
        to_run = [place for place in range(len(self._calls)) if place not in self._results]
        run.tally.calls(len(to_run))
        for place, known in [*self._results.items()]:
            await run.emit(ToolFinished(self._calls[place], known))
        allowed: list[ToolCall] = []
        for place in to_run:
            decided = await self._decided(self._calls[place])
            if isinstance(decided, ToolResult):
                await run.emit(self._settled(place, decided))
            else:
                allowed.append(self._placed(place, decided))
        try:
            await run.setup.executor.run(allowed, run.tools.runnable, run.context, self)
        except BaseException:  # cancelled, or left; or a hook has failed
            with suppress(Exception):  # what happened first is what people need to know
                await self._leave()
            raise
        await self._complete()
        run.rounds += 1
        run.tally.round([(call, self._results[i]) for i, call in enumerate(self._calls)
                         if i in self._results])  # fmt: skip
        for name, has_failed in self._ran.items():
            found = run.tools.runnable.get(name)
            run.tally.ended(name, None if found is None else found.retries, has_failed=has_failed)

    def _placed(self, place: int, call: ToolCall) -> ToolCall:
        """What is run for a place, an object of its own: a hook may give the same for several."""
        if id(call) in self._places:
            call = call.replace()
        self._places[id(call)] = place
        return call

    async def _decided(self, call: ToolCall) -> ToolCall | ToolResult:
        """What is to be run, or the result where a hook stands in the way."""
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

    # --- what the executor tells

    async def starting(self, started: ToolStarted, batch: Iterable[ToolCall]) -> None:
        """A tool is about to begin: it is written down, with those that begin at once."""
        place = self._places[id(started.call)]
        if self._keeps and place not in self._announced:
            self._announce(batch)
            await self._write()
        await self._run.emit(started)
        self._begun.add(place)

    async def finished(self, events: Sequence[ToolFinished], batch: Iterable[ToolCall]) -> None:
        """Tools have ended: their results are written down together, and told."""
        told = [await self._finished(event) for event in events]
        if self._written is not None:
            if not self._run.is_followed:  # who follows the run may leave before they begin
                self._announce(batch)
            await self._write()
        for event in told:
            await self._run.emit(event)

    async def _finished(self, event: ToolFinished) -> ToolFinished:
        place = self._places[id(event.call)]
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
        self._results[place] = result
        self._is_unwritten = True
        return ToolFinished(self._calls[place], result, seconds)

    # --- what is written

    def _announce(self, calls: Iterable[ToolCall]) -> None:
        places = {self._places[id(call)] for call in calls}
        self._announced |= places
        self._mark_unknown(places)

    def _mark_unknown(self, places: Iterable[int]) -> None:
        for place in places:
            call = self._calls[place]
            unknown = ToolResult.error(call.id, UNKNOWN, tool_name=call.name)
            self._results.setdefault(place, unknown)  # one that can't be run has its result already

    async def _leave(self) -> None:
        """Write down what has come of the calls that were begun, so that they are not run again."""
        if self._begun and not self._keeps:
            self._mark_unknown(self._begun)
            await self._write()
        elif self._written is not None and self._is_unwritten:
            await self._write()
        if self._written is not None:
            self._run.new.append(self._written)

    async def _write(self) -> None:
        conversation, message = self._run.conversation, self._message()
        self._is_unwritten = False  # what fails is not tried again when the round is left
        if self._written is None:
            self._written = await conversation.add(message)
        else:
            self._written = await conversation.replace(message)

    def _message(self) -> Message:
        parts = tuple(self._results[place] for place in sorted(self._results))
        if self._written is None:
            return make_message(Role.TOOL, parts)
        return self._written.replace_unchecked(parts=parts)

    async def _complete(self) -> None:
        if self._written is None:
            await self._write()
        assert self._written is not None  # noqa: S101 - it was written this moment
        self._run.new.append(self._written)
        await self._run.emit(MessageAdded(self._written))
