"""A running chat: sends messages to the agent, and its events to the screen."""

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
from dragoman.cli.interrupts import notice_signals
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
    from dragoman.agent.prompt_templates import Template
    from dragoman.mcp import MCPServer
    from dragoman.model.functions.tool import Tool
    from dragoman.model.tools import ToolCall
    from dragoman.transport.model import Model

T = TypeVar("T")

STOPPED = "This call was not run: the user stopped it."
_NO_TERMINAL = "it needs approval, and there is no terminal to ask on"
_ENDS = {
    FinishReason.LENGTH: "the answer was cut off; raise the limit with /set max_tokens",
    FinishReason.CONTEXT_FULL: "the model's context window is full",
    FinishReason.CONTENT_FILTER: "the provider's content filter stopped the answer",
    FinishReason.REFUSAL: "the model refused",
}


@dataclass
class Talk:
    """The state of a running chat."""

    agent: Agent
    history: ChatHistory
    screen: Screen
    lines: Lines
    runner: asyncio.Runner
    tools: Sequence[Tool[..., Any]] = ()
    tool_names: tuple[str, ...] = ()
    """Sources of the tools, as the user named them."""
    named: str | None = None
    """The model or alias, as the user named it."""
    dialect: str | None = None
    servers: Sequence[MCPServer] = ()
    """MCP servers, whose tools are offered as well."""
    base_url: str | None = None
    """The model's base URL, if not the provider's default."""
    given_url: str | None = None
    """The same, if the user gave it with the model."""
    shows_usage: bool = False
    shows_thinking: bool = False
    may_fetch: bool = False
    is_patient: bool = True
    """Whether to go on after an error: true on a terminal, false in a pipe."""
    chooses_tools: bool = True
    """Whether the model always gets the tools, or only for `/tool`."""
    system: str | None = None
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """The user's settings: `max_tokens`, `temperature` and the rest."""
    template: Template | None = None
    """The prompt template applied to each message."""
    store: Place = USUAL
    is_kept: bool = True
    attached: list[Any] = field(default_factory=list[Any])
    spent: Spending = field(default_factory=Spending)
    saved_as: Path | None = None
    retired: list[Model] = field(default_factory=list["Model"])
    """Earlier models, closed at the end: they share resources with the current one."""
    is_introduced: bool = False
    """Whether the user has been told what the model can do."""
    is_over: bool = False
    """Whether the command is ending: a cancellation is then not the user's Ctrl-C."""
    kept_state: ChatState | None = None
    """The state stored in the session; None if unknown, and then it is stored again."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the chat's event loop; Ctrl-C cancels it."""
        notice_signals(self.runner.get_loop())  # each time: the prompt has a loop of its own
        try:
            return self.runner.run(work)
        except Ending:
            self.is_over = True
            raise

    # --- settings

    def change(self, **changes: Any) -> None:
        """Change `system`, `settings` or `tools`; everything else stays.

        If they are invalid it raises, and nothing changes.
        """
        wanted = replace(self, **changes)
        self.agent = Agent(
            self.agent.model, tools=[*wanted.tools, *self.servers], system=wanted.system,
            **wanted.settings,
        )  # fmt: skip
        self.system, self.settings, self.tools = wanted.system, wanted.settings, wanted.tools

    @property
    def offered(self) -> list[Tool[..., Any]]:
        """The tools for the model, with the current ones of the MCP servers."""
        return [*self.tools, *(self.run(tools_of(self.servers)) if self.servers else ())]

    async def move_to(self, history: ChatHistory) -> None:
        """Switch to another session."""
        before, self.history = self.history, history
        self.saved_as = self.kept_state = None
        await before.close()  # its store stays open: the new session uses it too

    # --- a turn

    def say(self, text: str, **options: Any) -> None:
        """Send a message with the attachments, and show the answer."""
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
        """The state to store with the next message."""
        return ChatState(
            model=self.named, base_url=self.given_url, dialect=self.dialect, system=self.system,
            settings=self.settings, tools=self.tool_names, template=self.template,
        )  # fmt: skip

    def retry(self) -> None:
        """Get an answer to the last message."""
        self.go_on(**self._usual())

    def _usual(self) -> dict[str, Any]:
        """Request options for a model too small to choose tools, or to know when to stop."""
        if self.chooses_tools:
            return {}
        usual = {**SETTINGS}
        if self.tools or self.servers:
            usual["tool_choice"] = "none"
        return {name: value for name, value in usual.items() if name not in self.settings}

    def go_on(self, *content: Any, **options: Any) -> None:
        """Get an answer, asking the user for approvals where needed."""
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
        """Send the request and show the events; None if the answer was interrupted."""
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
        """Keep the received part of the answer, and say why it ended."""
        self.kept_state = None  # the message that stored it may be missing
        finish = FinishReason.CANCELLED if failure is None else FinishReason.ERROR
        is_kept = await heard.keep(self.history, finish)
        if failure is None and not self.is_patient:
            raise Ending(INTERRUPTED, "interrupted")
        if failure is None:
            self.screen.note("(stopped; the answer so far is kept)" if is_kept else "(stopped)")
        else:
            self.fail(failure)

    def fail(self, error: DragomanError) -> None:
        """Show an error; in a pipe, end the command."""
        model = self.agent.model
        address = address_asked(model, self.base_url)
        if not self.is_patient:
            raise ending_of(error, model.name, address)
        self.screen.complain(explained(error, address))

    def _remark(self, result: Result[Any]) -> None:
        if result.finish is not None and result.finish in _ENDS:
            self.screen.note(f"({_ENDS[result.finish]})")
        elif not result.text and not result.deferred:
            self.screen.note("(the answer is empty)")
        if self.shows_usage and not result.deferred:
            self.screen.note(usage_line(result.usage, result.cost))

    # --- approval

    def _approvals(self, calls: Sequence[ToolCall]) -> dict[str, bool | str] | None:
        """The user's decision on each call; None to stop."""
        from dragoman.cli.chat.calls import call_line

        decided: dict[str, bool | str] = {}
        for call in calls:
            self.screen.note(f"The model wants to run {call_line(call)}")
            try:
                decided[call.id] = _decision(self.lines.answer("Allow it? [y/n, or why not] "))
            except EOFError:
                decided[call.id] = _NO_TERMINAL
                self.screen.complain(f"{call.name} was not run: {_NO_TERMINAL}")
            except KeyboardInterrupt:
                return None
        return decided

    # --- unfinished calls

    def take_up(self) -> None:
        """If an earlier chat ended before its tool calls were run, ask whether to run them."""
        waiting = waiting_calls(self.run(self.history.messages()))
        if not waiting:
            return
        names = ", ".join(call.name for call in waiting)
        self.screen.note(f"The last answer called tools that were not run: {names}")
        try:
            is_wanted = self.lines.answer("Run them now? [Y/n] ").strip().lower() in {"", "y"}
        except (EOFError, KeyboardInterrupt):
            is_wanted = False
        if is_wanted:
            self.go_on()
        else:
            self.let_be()

    def let_be(self) -> None:
        """Write results for calls that will never run."""
        waiting = waiting_calls(self.run(self.history.messages()))
        if waiting:
            self.run(drop_calls(self.history, waiting))


def _is_ours() -> bool:
    """Whether Ctrl-C caused the cancellation: then the task goes on."""
    task = asyncio.current_task()
    return task is not None and task.uncancel() == 0


def _decision(said: str) -> bool | str:
    """The answer as a decision: whether the call may run, or the reason to refuse."""
    word = said.strip()
    if word.lower() in {"y", "yes"}:
        return True
    return False if word.lower() in {"", "n", "no"} else word


async def drop_calls(history: ChatHistory, calls: Sequence[ToolCall]) -> None:
    """Write results for calls that will never run."""
    results = [ToolResult.error(call.id, STOPPED, tool_name=call.name) for call in calls]
    await history.add(make_message(Role.TOOL, tuple(results)))
