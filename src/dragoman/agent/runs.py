"""One call of an agent, from the prompt to the result: all that changes on the way."""

from __future__ import annotations

from collections.abc import Callable, Generator
from decimal import Decimal
from inspect import isawaitable
from threading import Lock
from types import coroutine
from typing import Any

from msgspec import UNSET

from dragoman.agent.concurrent_calls import Inbox
from dragoman.agent.context import RunContext
from dragoman.agent.conversations import Conversation
from dragoman.agent.events import (
    AgentEvent,
    HandedOver,
    MessageAdded,
    SubAgentEvent,
    TextDelta,
    ThinkingDelta,
)
from dragoman.agent.handoffs import Handoff, handed_over
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
from dragoman.wire.target import Target

_adding = Lock()

Watch = Callable[[str | None, str], Any]
"""Of the name of a tool that is called (None: of plain text) and a piece of what is written: the
value so far, or unset."""


class Run:
    """What a run knows. Everything that changes while an agent works is here, and only here.

    Orchestrators read and write it; nothing of it outlives the run but its result.
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
        """Whether answers are asked for piece by piece."""
        self.is_followed = False
        """Whether somebody goes through the events."""
        self.parent = parent
        """The run that this one is part of; what is used here is used there as well."""
        self.call = call
        """The call of that run which this one is made for."""
        self.inbox: Inbox | None = None
        """Where events of runs that are part of this one come in, while tools are run."""
        self.tools = Toolbox()
        """The tools that the agent at work has just now."""
        self.tally: Tally = Tally(setup.limits, None if parent is None else parent.tally)
        self.agent = ""
        """The name of the agent that has taken over; empty: nobody has."""
        self.new: list[Message] = []
        """What the conversation has grown by, complete messages only."""
        self.omitted = 0
        """How many messages of the history did not fit into the last request."""
        self.request: Request | None = None
        """What was sent last, before links made it shorter."""
        self.response: Response | None = None
        """What was answered last."""
        self.rounds = 0
        """How often tools were run, for the agent that is at work."""
        self.usage: Usage | None = None
        self.output: Any = UNSET
        """The typed output, once there is one."""
        self.deferred: tuple[ToolCall, ...] = ()
        self.is_over = False
        self.retries: dict[str, int] = {}
        """How often the model was asked again, by reason."""
        self.notes: dict[str, Any] = {}
        """What an orchestrator notes for itself: one and the same may drive many runs at once."""
        self.watch: Watch | None = None
        """Shows a typed output as it comes, from pieces of text and of calls' arguments."""
        self._cost: Decimal | None = Decimal(0)
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._is_new_text = self._is_new_thought = False
        self._told = 0, 0  # pieces of text and thinking, before the answer that is coming in
        self._is_restarted = False

    # --- what it is about

    @property
    def target(self) -> Target | None:
        """The facts about the model; None where nobody knows them (models of one's own)."""
        found = getattr(self.setup.model, "target", None)
        return found if isinstance(found, Target) else None

    @property
    def session(self) -> str | None:
        """The session that the conversation is kept in; None: it is kept in none."""
        found = getattr(self.conversation, "session", None)
        return found if isinstance(found, str) else None

    @property
    def is_heard(self) -> bool:
        """Whether anybody wants to know what happens, here or in the run that this is part of."""
        if self.is_followed or self.setup.hooks.on_event is not None:
            return True
        return self.parent is not None and self.parent.is_heard

    @property
    def context(self) -> RunContext[Any]:
        """What tools, hooks and instructions are told about the run."""
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
        """See which tools there are, before a request: that may depend on the run."""
        tools, dynamic = self.setup.tools, self.setup.dynamic_tools
        is_fixed = dynamic is None and tools.is_fixed
        self.tools = tools if is_fixed else await tools_now(tools, dynamic, self.context)

    async def system(self) -> tuple[AnyPart, ...]:
        """The instructions for the next request."""
        system = self.setup.system
        if not callable(system):
            return system
        told = system(self.context)
        made = system_of(await told if isawaitable(told) else told)
        if callable(made):  # it might go on like that for ever
            msg = "the function given as system must return text or parts, not another function"
            raise InvalidInputError(msg)
        return made

    async def hooked(self, hook: Hook | None, value: Any, kinds: type | None = None) -> Any:
        """The value, or what the hook makes of it; a context is made only where one is told."""
        return value if hook is None else await hooked(hook, value, self.context, kinds=kinds)

    # --- how it goes on

    @coroutine
    def emit(self, event: AgentEvent) -> Generator[Any, Any, None]:
        """Tell what happens; whoever follows the run has taken it when this returns.

        To be awaited by the orchestrator itself, and not by a task that it has started.
        """
        if self.setup.hooks.on_event is not None:
            yield from self._tell(event).__await__()
        if self.is_followed:
            yield event  # to `events_of`: this is called often enough to spare an `emitted`
        if self.parent is not None:
            self._pass_on(event, self.parent)

    def _pass_on(self, event: AgentEvent, parent: Run) -> None:
        """Tell the run that this one is part of."""
        if parent.inbox is not None and self.call is not None:
            parent.inbox.put(SubAgentEvent(self.call, event))

    async def _tell(self, event: AgentEvent) -> None:
        hook = self.setup.hooks.on_event
        told = None if hook is None else hook(event, self.context)
        if isawaitable(told):
            await told

    async def add(self, message: Message) -> Message:
        """Make a message part of the conversation; durable, where it is kept, when this returns.

        Gives the message as it is kept.
        """
        added = await self.conversation.add(message)
        self.new.append(added)
        if message.role is Role.ASSISTANT:
            self.tally.check()
        await self.emit(MessageAdded(added))
        return added

    async def says(self, text: str) -> None:
        """More of the answer's text."""
        await self.emit(self.said(text))

    async def thinks(self, text: str) -> None:
        """More of the model's thinking."""
        await self.emit(self.thought(text))

    def begin_answer(self) -> None:
        """Another answer begins; its words are set apart from those of the last one."""
        was_paused = self.response is not None and self.response.finish is FinishReason.PAUSE
        self._is_new_text = bool(self._text) and not was_paused
        self._is_new_thought = bool(self._thinking)
        self._told = len(self._text), len(self._thinking)

    def restart_answer(self) -> None:
        """Another model answers instead: what was told of the answer so far is void."""
        self._is_restarted = len(self._text) > self._told[0]
        del self._text[self._told[0] :], self._thinking[self._told[1] :]
        self._is_new_text = bool(self._text)
        self._is_new_thought = bool(self._thinking)

    def said(self, text: str) -> TextDelta:
        """Note more of the answer; the first piece of a further message begins a line."""
        if self._is_new_text:
            text, self._is_new_text = f"\n{text}", False
        self._text.append(text)
        if self._is_restarted:  # who has read the half sees where the other begins
            text, self._is_restarted = f"\n{text.lstrip()}", False
        return TextDelta(text)

    def thought(self, text: str, *, is_new: bool = False) -> ThinkingDelta:
        """Note more of the model's thinking; another block of it begins a line."""
        if self._is_new_thought or (is_new and self._thinking):
            text, self._is_new_thought = f"\n{text}", False
        self._thinking.append(text)
        return ThinkingDelta(text)

    def answered(self, response: Response) -> None:
        """Note an answer, and what it took."""
        self.response = response
        cost = self.setup.prices.cost_of_response(response, self.setup.model.name)
        self._use(response.usage, cost)
        self.tally.used(response.usage, cost)

    def _use(self, usage: Usage | None, cost: Decimal | None) -> None:
        """Add up what was used, here and in the runs that this one is part of."""
        with _adding:  # a tool on another thread may ask an agent, too
            run: Run | None = self
            while run is not None:
                if usage is not None:
                    run.usage = usage if run.usage is None else run.usage + usage
                run._cost = None if cost is None or run._cost is None else run._cost + cost
                run = run.parent

    def may_retry(self, reason: str, most: int) -> bool:
        """Whether the model may be asked again for this reason, and that it is."""
        self.retries[reason] = self.retries.get(reason, 0) + 1
        return self.retries[reason] <= most

    async def hand_over(self, handoff: Handoff[Any]) -> None:
        """Go on with another agent."""
        self.setup = handed_over(self.setup, handoff.setup())
        self.agent, self.rounds = handoff.name, 0
        await self.find_tools()
        await self.emit(HandedOver(handoff.name))

    def finish(self, *, deferred: tuple[ToolCall, ...] = ()) -> None:
        """Nothing more is to be done."""
        self.deferred = deferred
        self.is_over = True

    # --- what came of it

    @property
    def text(self) -> str:
        """All that was said."""
        return "".join(self._text)

    @property
    def result(self) -> Result[Any]:
        """What has come of it so far."""
        text, response = self.text, self.response
        return Result(
            id=self.id,
            output=text if self.output is UNSET else self.output,
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
    """The run that a context is about, and the call, for another run that is part of it."""
    expect(context, (RunContext, type(None)), "within")
    if context is None or not isinstance(context.run, Run):
        return None, None
    return context.run, context.call
