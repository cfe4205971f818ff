"""An answer that is coming in for the page: an agent's run, told as events, stored as it goes.

The run is a task of its own. It ends when the answer is complete, when the page stops it, or when
the page is gone; what was heard until then is kept, and says that it is unfinished.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from secrets import token_hex
from typing import Any

from dragoman.agent import Agent, Hooks, Result
from dragoman.agent.context import RunContext
from dragoman.agent.conversations import KeptConversation, last_round, unanswered
from dragoman.agent.events import AgentEvent, MessageAdded
from dragoman.errors import DragomanError, NotFound, ServerError
from dragoman.gateway.page.attachments import KEY
from dragoman.gateway.page.narration import Narration
from dragoman.gateway.page.routed import PlacedModel, RoutedModel
from dragoman.gateway.page.run_views import Viewer, sent_view
from dragoman.gateway.page.views import call_view, usage_view
from dragoman.history.chat import ChatHistory
from dragoman.history.sent_window import Window
from dragoman.model.collection import Messages
from dragoman.model.events import Event
from dragoman.model.messages import Message, make_message
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import FinishReason

LOG = logging.getLogger("dragoman.gateway")
_STOPPED = "This call was not run: the user stopped it."
_MOST_WAITING = 256  # events that the page has not taken; then the model waits
_OVER = None


class PageConversation(KeptConversation):
    """A conversation, and how much of it is left out of what is sent."""

    __slots__ = ("omitted",)

    def __init__(self, history: ChatHistory) -> None:
        super().__init__(history)
        self.omitted = 0

    async def window(self, model: str | None, tools: Any, system: Any) -> Messages:
        """The messages that fit."""
        window = await super().window(model, tools, system)
        self.omitted = window.omitted if isinstance(window, Window) else 0
        return window


class PageRun:
    """One run; `start` it, and go through its `events`."""

    def __init__(self, history: ChatHistory, viewer: Viewer, stamp: dict[str, Any]) -> None:
        self.id = token_hex(16)
        self.conversation = history.identity.digest
        self.branch = history.branch
        self._history, self._viewer, self._stamp = history, viewer, stamp
        self._kept = PageConversation(history)
        self._queue: asyncio.Queue[Any] = asyncio.Queue(_MOST_WAITING)
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._waiting: dict[str, asyncio.Future[bool | str]] = {}
        self._narration = Narration()
        self._last: Message | None = None  # the last answer that was stored

    # --- from outside

    def start(self, agent: Agent[Any, Any], model: RoutedModel, content: Sequence[Any]) -> None:
        """Begin."""
        self._task = asyncio.get_running_loop().create_task(self._run(agent, model, content))

    async def events(self, pause: float) -> AsyncIterator[Any]:
        """What happens; None after each pause in which nothing did."""
        while True:
            try:
                async with asyncio.timeout(pause):
                    event = await self._queue.get()
            except TimeoutError:
                yield None
                continue
            if event is _OVER:
                return
            yield event

    def decide(self, call_id: str, *, allow: bool, reason: str) -> None:
        """Allow a call that waits, or refuse it; raises `NotFound` where none waits."""
        waiting = self._waiting.get(call_id)
        if waiting is None or waiting.done():
            msg = "no call of that id waits to be allowed"
            raise NotFound(msg)
        waiting.set_result(True if allow else reason or False)

    async def stop(self) -> None:
        """End it; when this returns, what was heard is stored."""
        task = self._task
        if task is None or task.done():
            return
        if not self._is_stopped:
            self._is_stopped = True
            task.cancel()
        await asyncio.wait({task})

    # --- the run

    async def _run(
        self, agent: Agent[Any, Any], model: RoutedModel, content: Sequence[Any]
    ) -> None:
        result: Result[Any] | None = None
        failure: DragomanError | None = None
        try:
            result = await agent.stream(*content, history=self._kept).collect()
        except asyncio.CancelledError:
            if not self._is_stopped:
                raise
            with suppress(AttributeError):
                asyncio.current_task().uncancel()  # type: ignore[union-attr]  # we are one
        except DragomanError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - a tool's or a model's own code: the page is told
            LOG.error("a run of the page failed by %s", type(error).__name__)  # noqa: TRY400 - the traceback may quote what was said
            failure = ServerError("the gateway failed", status=500)
        try:
            await self._end(model, result, failure)
        except DragomanError as error:
            await self._tell({"type": "error", **_told(error)})
        finally:
            await self._tell(_OVER)

    async def _end(
        self, model: RoutedModel, result: Result[Any] | None, failure: DragomanError | None
    ) -> None:
        last = self._last
        if result is None:
            finish = FinishReason.CANCELLED if failure is None else FinishReason.ERROR
            kept = await self._keep(model, finish)
            last = kept or last
        if failure is not None:
            if last is not None:
                await self._tell({"type": "message", "view": await self._viewer.view(last)})
            await self._tell({"type": "error", **_told(failure)})
            return
        view = None if last is None else await self._viewer.view(last)
        if view is not None and result is None:
            view["finish"] = "stopped"
        spent = None if result is None else result.usage
        usage = None if spent is None else usage_view(spent)
        cost = None if result is None or result.cost is None else f"{result.cost:f}"
        await self._tell({"type": "done", "view": view, "usage": usage, "cost": cost})

    async def _keep(self, model: RoutedModel, finish: FinishReason) -> Message | None:
        """Store what was heard of an answer that broke off; and answer calls that were not run."""
        waiting = unanswered(await last_round(self._kept, model.name))
        if waiting:
            results = [ToolResult.error(c.id, _STOPPED, tool_name=c.name) for c in waiting]
            await self._history.add(make_message(Role.TOOL, tuple(results)))
            return None
        response = model.heard
        if response is None or not response.choices:
            return None
        heard = response.choices[0].message
        # Calls are left out: they may be incomplete, and none of them was run.
        parts = tuple(part for part in heard.parts if not isinstance(part, ToolCall))
        if not any(getattr(part, "text", "").strip() for part in parts):
            return None
        last = await self._history.last()
        if last is not None and last.role is Role.ASSISTANT and last.parts == heard.parts:
            return last  # stopped while the whole answer was being stored
        made = make_message(
            Role.ASSISTANT, parts, origin=heard.origin, usage=response.usage, finish=finish,
            metadata={KEY: self._stamp},
        )  # fmt: skip
        return await self._history.add(made)

    # --- what the agent asks and tells

    def hooks(self) -> Hooks[Any]:
        """How the agent tells what happens."""
        return Hooks(on_event=self._happened, after_response=self._stamped)

    async def sent(self, place: PlacedModel, request: Request) -> None:
        """A place has begun to answer: tell what it was sent."""
        self._narration = Narration()
        view = sent_view(place, request, self._kept.omitted)
        await self._tell({"type": "sent", **view})

    async def heard(self, event: Event) -> None:
        """More of the answer."""
        for told in self._narration.tell(event):
            await self._tell(told)

    def _stamped(self, response: Response, _run: RunContext[Any]) -> Response | None:
        """The answer with what it was asked with, so that this can be shown again."""
        if not response.choices:
            return None
        first = response.choices[0]
        stamped = first.message.with_metadata(KEY, self._stamp)
        choice = first.replace(message=stamped)
        return response.replace(choices=(choice, *response.choices[1:]))

    async def _happened(self, event: AgentEvent, _run: RunContext[Any]) -> None:
        if not isinstance(event, MessageAdded):
            return
        message = event.message
        view = await self._viewer.view(message)
        if message.role is Role.TOOL:
            await self._tell({"type": "result", "view": view})
            return
        if message.role is Role.ASSISTANT:
            self._last = message
            if not message.tool_calls:
                return  # `done` has it
            for told in self._narration.complete(message.tool_calls):
                await self._tell(told)
        await self._tell({"type": "message", "view": view})

    async def approve(self, call: ToolCall, _run: RunContext[Any]) -> bool | str:
        """Ask the page about a call, and wait for what its user says."""
        waiting: asyncio.Future[bool | str] = asyncio.get_running_loop().create_future()
        self._waiting[call.id] = waiting
        await self._tell({"type": "approval", **call_view(call)})
        try:
            return await waiting
        finally:
            self._waiting.pop(call.id, None)

    async def _tell(self, event: Any) -> None:
        if self._is_stopped:  # nobody may be there any more: the task must end all the same
            while self._queue.full():
                self._queue.get_nowait()
            self._queue.put_nowait(event)
        else:
            await self._queue.put(event)


def _told(error: DragomanError) -> dict[str, str]:
    return {"message": str(error), "kind": type(error).__name__}
