"""The state of one call of an agent, from the prompt to the result."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from decimal import Decimal
from inspect import isawaitable
from threading import Lock
from types import coroutine
from typing import Any, Protocol

from msgspec import UNSET

from dragoman.agent.concurrent_calls import Inbox
from dragoman.agent.context import RunContext
from dragoman.agent.conversations import Conversation
from dragoman.agent.events import (
    AgentEvent,
    HandedOff,
    MessageAdded,
    PartialOutput,
    SubAgentEvent,
    TextDelta,
    ThinkingDelta,
)
from dragoman.agent.handoffs import Handoff, handed_off
from dragoman.agent.hooks import Hook, hooked
from dragoman.agent.limits import Tally
from dragoman.agent.results import Result
from dragoman.agent.setup import Setup, system_of
from dragoman.agent.toolbox import Toolbox, tools_now
from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.ids import new_id
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.model.usage import FinishReason, Usage
from dragoman.model.value import expect
from dragoman.tracing.current import Span
from dragoman.wire.target import Target

_adding = Lock()


class Watch(Protocol):
    """Follows an answer, and makes previews of its value."""

    def feed(self, name: str | None, text: str) -> PartialOutput | None:
        """The value after a piece of text, or of the arguments of the tool of that name."""
        ...

    def close(self) -> PartialOutput | None:
        """What was held back, at the end of the answer."""
        ...


class Run:
    """The state of a run. Everything that changes while an agent works is here.

    Orchestrators read and write it; only the result outlives the run.
    """

    def __init__(
        self,
        setup: Setup,
        conversation: Conversation,
        *,
        deps: Any = None,
        streams: bool = False,
        parent: Run | None = None,
        call: ToolCall | None = None,
    ) -> None:
        self.id = new_id("run_")
        self.setup = setup
        self.conversation = conversation
        self.deps = deps
        self.streams = streams
        """Whether responses are streamed."""
        self.is_followed = False
        """Whether somebody consumes the events."""
        self.parent = parent
        """The outer run; its usage includes that of this run."""
        self.call = call
        """The call of the outer run that this run serves."""
        self.inbox: Inbox | None = None
        """Receives events of inner runs while tools run."""
        self.tools = Toolbox()
        """The tools currently available."""
        self.tally: Tally = Tally(setup.limits, None if parent is None else parent.tally)
        self.agent = setup.name
        """The name of the agent, or of the one that has taken over; empty if it has none."""
        self.new: list[Message] = []
        """The new messages of the conversation, only complete ones."""
        self.omitted = 0
        """Number of history messages that did not fit into the last request."""
        self.request: Request | None = None
        """The last request, before it was shortened by chaining."""
        self.response: Response | None = None
        """The last response."""
        self.rounds = 0
        """Number of tool rounds of the current agent."""
        self.usage: Usage | None = None
        self.output: Any = UNSET
        """The typed output, once available."""
        self.deferred: tuple[ToolCall, ...] = ()
        self.is_over = False
        self.retries: dict[str, int] = {}
        """Number of retries, by reason."""
        self.span: Span | None = None
        """The span of the run, if it is traced."""
        self.notes: dict[str, Any] = {}
        """Private state of the orchestrator, which may drive many runs concurrently."""
        self.watch: Watch | None = None
        """Makes previews of a typed output from pieces of text and arguments."""
        self._cost: Decimal | None = Decimal(0)
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._is_new_text = self._is_new_thought = False
        self._told = 0, 0  # pieces of text and thinking before the current response
        self._is_restarted = False

    # --- facts about the run

    @property
    def target(self) -> Target | None:
        """The target of the model; None if unknown (custom models)."""
        found = getattr(self.setup.model, "target", None)
        return found if isinstance(found, Target) else None

    @property
    def session(self) -> str | None:
        """The session of a stored conversation; None if it is not stored."""
        found = getattr(self.conversation, "session", None)
        return found if isinstance(found, str) else None

    @property
    def is_heard(self) -> bool:
        """Whether anybody consumes events, here or in an outer run."""
        if self.is_followed or self.setup.hooks.on_event is not None:
            return True
        return self.parent is not None and self.parent.is_heard

    @property
    def context(self) -> RunContext[Any]:
        """The context for tools, hooks and system prompts."""
        sent = self.request.messages if self.request is not None else ()
        return RunContext(
            deps=self.deps,
            run_id=self.id,
            model=self.setup.model.name,
            step=self.tally.steps,
            messages=Messages.wrapping(sent),
            usage=self.usage or Usage(),
            run=self,
        )

    async def find_tools(self) -> None:
        """Determine the available tools before a request: they may depend on the run."""
        tools, dynamic = self.setup.tools, self.setup.dynamic_tools
        is_fixed = dynamic is None and tools.is_fixed
        self.tools = tools if is_fixed else await tools_now(tools, dynamic, self.context)

    async def system(self) -> tuple[AnyPart, ...]:
        """The system prompt for the next request."""
        system = self.setup.system
        if not callable(system):
            return system
        told = system(self.context)
        made = system_of(await told if isawaitable(told) else told)
        if callable(made):  # this could go on forever
            msg = "the system function must return text or parts, not another function"
            raise InvalidInputError(msg)
        return made

    async def hooked(self, hook: Hook | None, value: Any, kinds: type | None = None) -> Any:
        """The value, or the hook's replacement; the context is only created if there is a hook."""
        return value if hook is None else await hooked(hook, value, self.context, kinds=kinds)

    # --- progress

    @coroutine
    def emit(self, event: AgentEvent) -> Generator[Any, Any, None]:
        """Emit an event; on return, the consumer of the run has received it.

        Must be awaited by the orchestrator itself, not by a task that it started.
        """
        if self.setup.hooks.on_event is not None:
            yield from self._tell(event).__await__()
        if self.is_followed:
            span = self.span
            if span is None:
                yield event  # to `events_of`: called often enough to avoid an extra `emitted`
            else:  # what the consumer does is not part of the run
                span.pause()
                try:
                    yield event
                finally:
                    span.resume()
        if self.parent is not None:
            self._pass_on(event, self.parent)

    @coroutine
    def emit_all(self, events: Iterable[AgentEvent]) -> Generator[Any, Any, None]:
        """Emit events that are already there; the span is paused once for all of them."""
        span = self.span
        if not self.is_followed or self.parent is not None or self.setup.hooks.on_event is not None:
            for event in events:
                # A generator at run time, which `coroutine` makes awaitable.
                yield from self.emit(event)  # pyright: ignore[reportGeneralTypeIssues]
        elif span is None:
            yield from events
        else:
            span.pause()
            try:
                yield from events
            finally:
                span.resume()

    def _pass_on(self, event: AgentEvent, parent: Run) -> None:
        """Pass an event on to the outer run."""
        if parent.inbox is not None and self.call is not None:
            parent.inbox.put(SubAgentEvent(self.call, event))

    async def _tell(self, event: AgentEvent) -> None:
        hook = self.setup.hooks.on_event
        told = None if hook is None else hook(event, self.context)
        if isawaitable(told):
            await told

    async def add(self, message: Message) -> Message:
        """Add a message to the conversation; durable on return, if the conversation is stored.

        Returns the message as stored.
        """
        added = await self.conversation.add(message)
        self.new.append(added)
        if message.role is Role.ASSISTANT:
            self.tally.check()
        await self.emit(MessageAdded(added))
        return added

    async def emit_text(self, text: str) -> None:
        """Emit more text of the answer."""
        await self.emit(self.said(text))

    async def emit_thinking(self, text: str) -> None:
        """Emit more thinking of the model."""
        await self.emit(self.thought(text))

    def begin_answer(self) -> None:
        """Start another response; its text is separated from the previous one."""
        was_paused = self.response is not None and self.response.finish is FinishReason.PAUSE
        self._is_new_text = bool(self._text) and not was_paused
        self._is_new_thought = bool(self._thinking)
        self._told = len(self._text), len(self._thinking)

    def restart_answer(self) -> None:
        """Discard the streamed part of the response: another model takes over."""
        self._is_restarted = len(self._text) > self._told[0]
        del self._text[self._told[0] :], self._thinking[self._told[1] :]
        self._is_new_text = bool(self._text)
        self._is_new_thought = bool(self._thinking)

    def said(self, text: str) -> TextDelta:
        """Record more text; the first piece of a further message starts a new line."""
        if self._is_new_text:
            text, self._is_new_text = f"\n{text}", False
        self._text.append(text)
        if self._is_restarted:  # separates the discarded part from the new one
            text, self._is_restarted = f"\n{text.lstrip()}", False
        return TextDelta(text)

    def thought(self, text: str, *, is_new: bool = False) -> ThinkingDelta:
        """Record more thinking; another block starts a new line."""
        if self._is_new_thought or (is_new and self._thinking):
            text, self._is_new_thought = f"\n{text}", False
        self._thinking.append(text)
        return ThinkingDelta(text)

    def answered(self, response: Response) -> None:
        """Record a response and its usage."""
        self.response = response
        cost = self.setup.prices.cost_of_response(response, self.setup.model.name)
        self._use(response.usage, cost)
        self.tally.used(response.usage, cost, self.setup.model.name)

    def _use(self, usage: Usage | None, cost: Decimal | None) -> None:
        """Add usage here and in the outer runs."""
        with _adding:  # a tool on another thread may call an agent, too
            run: Run | None = self
            while run is not None:
                if usage is not None:
                    run.usage = usage if run.usage is None else run.usage + usage
                run._cost = None if cost is None or run._cost is None else run._cost + cost
                run = run.parent

    def may_retry(self, reason: str, most: int) -> bool:
        """Whether the request may be repeated for this reason; counts the attempt."""
        self.retries[reason] = self.retries.get(reason, 0) + 1
        return self.retries[reason] <= most

    async def hand_off(self, handoff: Handoff[Any]) -> None:
        """Continue with another agent."""
        self.setup = handed_off(self.setup, handoff.setup())
        self.agent, self.rounds = handoff.name, 0
        await self.find_tools()
        await self.emit(HandedOff(handoff.name))

    def finish(self, *, deferred: tuple[ToolCall, ...] = ()) -> None:
        """End the run."""
        self.deferred = deferred
        self.is_over = True

    # --- the result

    @property
    def text(self) -> str:
        """All text of the model."""
        return "".join(self._text)

    @property
    def result(self) -> Result[Any]:
        """The result so far."""
        text, response = self.text, self.response
        return Result(
            id=self.id,
            # Of a typed run, text is no output.
            output=text if self.output is UNSET and self.setup.output is None else self.output,
            text=text,
            messages=Messages.wrapping(tuple(self.new)),
            usage=self.usage,
            cost=self._cost if response is not None else None,
            finish=None if response is None else response.finish,
            metadata=self._metadata(response),
            deferred=self.deferred,
            steps=self.tally.steps,
            agent=self.agent,
        )

    def _metadata(self, response: Response | None) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.omitted:
            found["omitted"] = self.omitted
        if self._thinking:
            found["thinking"] = "".join(self._thinking)
        if response is not None and response.id:
            found["response_id"] = response.id
        if response is not None and response.model:
            found["model"] = response.model
        return found


def run_of(context: Any) -> tuple[Run | None, ToolCall | None]:
    """The run and call of a context, for an inner run."""
    expect(context, (RunContext, type(None)), "within")
    if context is None or not isinstance(context.run, Run):
        return None, None
    return context.run, context.call
