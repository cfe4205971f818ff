"""A chat under way: what is said goes to the agent, and what comes back goes to the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman.agent import Agent, Result
from dragoman.cli.chat.chat_state import KEY, ChatState
from dragoman.cli.chat.partial import Heard
from dragoman.cli.chat.screens import Screen
from dragoman.cli.chat.sessions import waiting_calls
from dragoman.cli.chat.spending import Spending
from dragoman.cli.chat.typed import Lines
from dragoman.cli.costs import usage_line
from dragoman.cli.exit_codes import INTERRUPTED, Ending
from dragoman.cli.history.stores import USUAL, Place
from dragoman.cli.mcp_tools import tools_of
from dragoman.cli.model_opening import address_asked
from dragoman.cli.provider_errors import ending_of, explained
from dragoman.cli.small_model import SETTINGS
from dragoman.errors import DragomanError
from dragoman.history.chat import ChatHistory
from dragoman.model.messages import Message, make_message
from dragoman.model.roles import Role
from dragoman.model.tools import ToolResult
from dragoman.model.usage import FinishReason

if TYPE_CHECKING:
    from dragoman.cli.prompt_template import Template
    from dragoman.mcp import MCPServer
    from dragoman.model.functions.tool import Tool
    from dragoman.model.tools import ToolCall
    from dragoman.transport.model import Model

T = TypeVar("T")

STOPPED = "This call was not run: the user stopped it."
_NOBODY = "nobody is here to allow it"
_ENDS = {
    FinishReason.LENGTH: "the answer is cut off; /set max_tokens allows for more",
    FinishReason.CONTEXT_FULL: "the conversation is as long as the model can take",
    FinishReason.CONTENT_FILTER: "the provider's filter ended the answer",
    FinishReason.REFUSAL: "the model refused",
}


@dataclass
class Talk:
    """All that a chat has."""

    agent: Agent
    history: ChatHistory
    screen: Screen
    lines: Lines
    runner: asyncio.Runner
    tools: Sequence[Tool[..., Any]] = ()
    tool_names: tuple[str, ...] = ()
    """Where the tools come from, as the user named it."""
    named: str | None = None
    """The model or alias that the user named."""
    dialect: str | None = None
    servers: Sequence[MCPServer] = ()
    """MCP servers, which have more tools."""
    base_url: str | None = None
    """Where the model is, if not where it usually is."""
    given_url: str | None = None
    """The same, where the user gave it beside the model."""
    shows_usage: bool = False
    shows_thinking: bool = False
    may_fetch: bool = False
    is_patient: bool = True
    """Whether it goes on after an error: with a person it does, a pipe ends."""
    chooses_tools: bool = True
    """Whether the model is told of tools at all times, or only where one is asked for."""
    system: str | None = None
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the user has set: `max_tokens`, `temperature` and the rest."""
    template: Template | None = None
    """What each message is put into before it is sent."""
    store: Place = USUAL
    is_kept: bool = True
    attached: list[Any] = field(default_factory=list[Any])
    spent: Spending = field(default_factory=Spending)
    saved_as: Path | None = None
    retired: list[Model] = field(default_factory=list["Model"])
    """Models that were left, and are closed at the end: they share what the new one needs."""
    is_introduced: bool = False
    """Whether the user has been told already what the model can do."""
    is_over: bool = False
    """Whether the command ends: what is cancelled then has not been stopped by the user."""
    kept_state: ChatState | None = None
    """What the session says it is held with; None: that is not known, and said again."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work returns, on the chat's own loop; ctrl-C cancels it."""
        try:
            return self.runner.run(work)
        except Ending:
            self.is_over = True
            raise

    # --- what is asked, and how

    def change(self, **changes: Any) -> None:
        """Go on with another `system`, other `settings` or `tools`; all else stays as it is.

        Raises where they can't be had, and then nothing has changed.
        """
        wanted = replace(self, **changes)
        self.agent = Agent(
            self.agent.model, tools=[*wanted.tools, *self.servers], system=wanted.system,
            **wanted.settings,
        )  # fmt: skip
        self.system, self.settings, self.tools = wanted.system, wanted.settings, wanted.tools

    @property
    def offered(self) -> list[Tool[..., Any]]:
        """The tools that the model is told of, those of MCP servers as they are now."""
        return [*self.tools, *(self.run(tools_of(self.servers)) if self.servers else ())]

    async def move_to(self, history: ChatHistory) -> None:
        """Go on in another session."""
        before, self.history = self.history, history
        self.saved_as = self.kept_state = None
        await before.close()  # its store stays open: the new one is there too

    # --- a turn

    def say(self, text: str, **options: Any) -> None:
        """Say something, with what was attached, and show the answer."""
        said = text if self.template is None else self.template.filled(text)
        content = [*self.attached, *([said] if said else [])]
        self.attached.clear()
        state = self.state
        if content and state != self.kept_state:
            content = [Message.user(*content, metadata={KEY: state.to_metadata()})]
            self.kept_state = state
        self.go_on(*content, **{**self._usual(), **options})

    @property
    def state(self) -> ChatState:
        """What the chat is held with."""
        return ChatState(
            model=self.named, base_url=self.given_url, dialect=self.dialect, system=self.system,
            settings=self.settings, tools=self.tool_names, template=self.template,
        )  # fmt: skip

    def retry(self) -> None:
        """Have an answer to what was said last."""
        self.go_on(**self._usual())

    def _usual(self) -> dict[str, Any]:
        """How a model is asked that is too small to choose tools, or to know when it is done."""
        if self.chooses_tools:
            return {}
        usual = {**SETTINGS}
        if self.tools or self.servers:
            usual["tool_choice"] = "none"
        return {name: value for name, value in usual.items() if name not in self.settings}

    def go_on(self, *content: Any, **options: Any) -> None:
        """Have an answer, asking for whatever it needs approval for."""
        result = self.run(self._answer(content, options))
        while result is not None and result.deferred:
            approvals = self._approvals(result.deferred)
            if approvals is None:
                self.run(drop_calls(self.history, result.deferred))
                self.screen.note("(stopped)")
                return
            result = self.run(self._answer((), {"approvals": approvals}))

    async def _answer(
        self, content: Sequence[Any], options: Mapping[str, Any]
    ) -> Result[Any] | None:
        """Ask, and show what comes; None where it broke off."""
        heard = Heard()
        stream = self.agent.stream(*content, history=self.history, **options)
        self.screen.begin()
        failure: DragomanError | None = None
        is_stopped = False
        try:
            async with stream:
                async for event in stream.events():
                    heard.hear(event)
                    self.screen.show(event)
        except asyncio.CancelledError:
            is_stopped = not self.is_over and _is_ours()
            if not is_stopped:
                raise
        except DragomanError as error:
            failure = error
        finally:
            self.screen.end()
        is_whole = failure is None and not is_stopped
        self.spent.add(stream.result, is_whole=is_whole)
        if is_whole:
            self._remark(stream.result)
            return stream.result
        await self._break_off(heard, failure)
        return None

    async def _break_off(self, heard: Heard, failure: DragomanError | None) -> None:
        """Keep what was heard, and say why there is no more."""
        self.kept_state = None  # the message that said it may not have been stored
        finish = FinishReason.CANCELLED if failure is None else FinishReason.ERROR
        is_kept = await heard.keep(self.history, finish)
        if failure is None and not self.is_patient:
            raise Ending(INTERRUPTED, "interrupted")
        if failure is None:
            self.screen.note("(stopped; what was said is kept)" if is_kept else "(stopped)")
        else:
            self.fail(failure)

    def fail(self, error: DragomanError) -> None:
        """Say what went wrong; without a person to read it, the command ends."""
        model = self.agent.model
        address = address_asked(model, self.base_url)
        if not self.is_patient:
            raise ending_of(error, model.name, address)
        self.screen.complain(explained(error, address))

    def _remark(self, result: Result[Any]) -> None:
        if result.finish is not None and result.finish in _ENDS:
            self.screen.note(f"({_ENDS[result.finish]})")
        elif not result.text and not result.deferred:
            self.screen.note("(the model said nothing)")
        if self.shows_usage and not result.deferred:
            self.screen.note(usage_line(result.usage, result.cost))

    # --- approval

    def _approvals(self, calls: Sequence[ToolCall]) -> dict[str, bool | str] | None:
        """What the user says to each call; None where that is to stop."""
        from dragoman.cli.chat.calls import call_line

        decided: dict[str, bool | str] = {}
        for call in calls:
            self.screen.note(f"The model wants to run {call_line(call)}")
            try:
                decided[call.id] = _decision(self.lines.answer("Allow it? [y/n, or why not] "))
            except EOFError:
                decided[call.id] = _NOBODY
                self.screen.complain(f"{call.name} was not run: {_NOBODY}")
            except KeyboardInterrupt:
                return None
        return decided

    # --- what an earlier chat left

    def take_up(self) -> None:
        """Where an earlier chat ended in mid-round, go on from there or let it be."""
        waiting = waiting_calls(self.run(self.history.messages()))
        if not waiting:
            return
        names = ", ".join(call.name for call in waiting)
        self.screen.note(f"The last answer called tools that have not been run: {names}")
        try:
            is_wanted = self.lines.answer("Go on from there? [Y/n] ").strip().lower() in {"", "y"}
        except (EOFError, KeyboardInterrupt):
            is_wanted = False
        if is_wanted:
            self.go_on()
        else:
            self.let_be()

    def let_be(self) -> None:
        """Answer calls that wait for a result, and will have none."""
        waiting = waiting_calls(self.run(self.history.messages()))
        if waiting:
            self.run(drop_calls(self.history, waiting))


def _is_ours() -> bool:
    """Whether it was ctrl-C that cancelled us: then the task goes on."""
    task = asyncio.current_task()
    return task is not None and task.uncancel() == 0


def _decision(said: str) -> bool | str:
    """What an answer comes to: whether the call may run, or why not."""
    word = said.strip()
    if word.lower() in {"y", "yes"}:
        return True
    return False if word.lower() in {"", "n", "no"} else word


async def drop_calls(history: ChatHistory, calls: Sequence[ToolCall]) -> None:
    """Answer calls that will never be run."""
    results = [ToolResult.error(call.id, STOPPED, tool_name=call.name) for call in calls]
    await history.add(make_message(Role.TOOL, tuple(results)))
