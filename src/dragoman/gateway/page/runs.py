"""An agent run for the page: streams events to its readers and stores messages as it goes.

The run is a separate task. It goes on when its readers go away, and ends when the response is
complete, when the user stops it, or when the gateway ends. The part already received is kept and
marked as unfinished.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from secrets import token_hex
from typing import Any

from dragoman.agent import Agent, Hooks, Result
from dragoman.agent.context import RunContext
from dragoman.agent.conversations import KeptConversation, last_round, unanswered
from dragoman.agent.events import AgentEvent, MessageAdded
from dragoman.errors import DragomanError, NotFound, ServerError
from dragoman.gateway.page.errors import error_view
from dragoman.gateway.page.feed import Feed
from dragoman.gateway.page.relay import AFTER
from dragoman.gateway.page.routed import PlacedModel, RoutedModel
from dragoman.gateway.page.run_views import Viewer, sent_view
from dragoman.gateway.page.stream_events import StreamEvents
from dragoman.gateway.page.views import call_view, usage_view
from dragoman.history.chat import ChatHistory
from dragoman.history.live_windows import Window
from dragoman.interop.text_files import INTERRUPTED, KEY
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
_NOBODY = "This call was not run: nobody approved it in time."
_APPROVAL = 3600.0  # seconds that a call waits for approval: nobody may be there any more


class PageConversation(KeptConversation):
    """A conversation that counts the messages omitted from the request."""

    __slots__ = ("omitted",)

    def __init__(self, history: ChatHistory) -> None:
        super().__init__(history)
        self.omitted = 0

    async def window(self, model: str | None, tools: Any, system: Any) -> Messages:
        """Returns the messages that fit into the model's window."""
        window = await super().window(model, tools, system)
        self.omitted = window.omitted if isinstance(window, Window) else 0
        return window


class PageRun:
    """One run: `start` it, then iterate over its `events`, as often as wanted."""

    def __init__(self, history: ChatHistory, viewer: Viewer, stamp: dict[str, Any]) -> None:
        self.identity = history.identity
        self.conversation = history.identity.digest
        self.branch = history.branch
        self.id = f"{self.conversation}-{self.branch}-{token_hex(16)}"
        self._history, self._viewer, self._stamp = history, viewer, stamp
        self._kept = PageConversation(history)
        self._feed = Feed()
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._waiting: dict[str, asyncio.Future[bool | str]] = {}
        self._stream_events = StreamEvents()
        self._last: Message | None = None  # the last stored response
        self._model: RoutedModel | None = None
        self._after: str | None = None  # the message that the response in progress follows

    # --- control

    def start(
        self, agent: Agent[Any, Any], model: RoutedModel, content: Sequence[Any],
        within: AbstractAsyncContextManager[Any],
    ) -> asyncio.Task[None]:  # fmt: skip
        """Starts the run, within a context that lasts as long; returns its task."""
        self._model = model
        work = self._run(agent, model, content, within)
        self._task = asyncio.get_running_loop().create_task(work)
        return self._task

    @property
    def view(self) -> dict[str, Any]:
        """The view of the run in its conversation."""
        return {"run": self.id, "branch": self.branch, "model": self._stamp.get("model")}

    def events(self, pause: float) -> AsyncIterator[dict[str, Any] | None]:
        """Yields all events from the first one; None after each `pause` seconds without one."""
        return self._feed.read(pause)

    def decide(self, call_id: str, *, allow: bool, reason: str) -> None:
        """Approves or refuses a pending tool call; raises `NotFound` if it is not pending."""
        waiting = self._waiting.get(call_id)
        if waiting is None or waiting.done():
            msg = "no tool call with this id is waiting for approval"
            raise NotFound(msg)
        waiting.set_result(True if allow else reason or False)
        self._feed.add({"type": "decided", "call_id": call_id})

    async def stop(self) -> None:
        """Stops the run; on return, the part already received is stored."""
        task = self._task
        if task is None or task.done():
            return
        if not self._is_stopped:
            self._is_stopped = True
            task.cancel()
        await asyncio.wait({task})

    # --- the run

    async def _run(
        self, agent: Agent[Any, Any], model: RoutedModel, content: Sequence[Any],
        within: AbstractAsyncContextManager[Any],
    ) -> None:  # fmt: skip
        try:
            async with within:
                self._feed.add({"type": "run", "conversation": self.conversation, **self.view})
                await self._answer(agent, model, content)
        except DragomanError as error:
            self._feed.add({"type": "error", **error_view(error)})
        finally:
            self._feed.end()

    async def _answer(
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
                asyncio.current_task().uncancel()  # type: ignore[union-attr]  # this runs in a task
        except DragomanError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - from a tool or a model; reported to the page
            LOG.error("a run on the page failed with %s", type(error).__name__)  # noqa: TRY400 - the traceback may quote content
            failure = ServerError("the gateway failed", status=500)
        await self._end(model, result, failure)

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
                self._feed.add({"type": "message", "view": await self._viewer.view(last)})
            self._feed.add({"type": "error", **error_view(failure)})
            return
        view = None if last is None else await self._viewer.view(last)
        if view is not None and result is None:
            view["finish"] = "stopped"
        spent = None if result is None else result.usage
        usage = None if spent is None else usage_view(spent)
        cost = None if result is None or result.cost is None else f"{result.cost:f}"
        self._feed.add({"type": "done", "view": view, "usage": usage, "cost": cost})

    async def _keep(self, model: RoutedModel, finish: FinishReason) -> Message | None:
        """Stores the received part of an interrupted response; adds results for calls not run."""
        waiting = unanswered(await last_round(self._kept, model.name))
        if waiting:
            results = [ToolResult.error(c.id, _STOPPED, tool_name=c.name) for c in waiting]
            await self._history.add(make_message(Role.TOOL, tuple(results)))
            return None
        made = self._part(model, finish, self._stamp)
        if made is None:
            return None
        last = await self._history.last()
        if last is not None and last.role is Role.ASSISTANT and self._after != last.id:
            return last  # stopped while the whole response was being stored
        return await self._history.add(made)

    def _part(
        self, model: RoutedModel, finish: FinishReason, stamp: dict[str, Any]
    ) -> Message | None:
        """The received part of a response, as a message; None if there is nothing to read."""
        response = model.heard
        if response is None or not response.choices:
            return None
        heard = response.choices[0].message
        # Tool calls are dropped: they may be incomplete, and none of them was run.
        parts = tuple(part for part in heard.parts if not isinstance(part, ToolCall))
        if not any(getattr(part, "text", "").strip() for part in parts):
            return None
        return make_message(
            Role.ASSISTANT, parts, origin=heard.origin, usage=response.usage, finish=finish,
            metadata={KEY: stamp},
        )  # fmt: skip

    def draft(self) -> Message | None:
        """The part that came so far, as it is kept should this process be killed."""
        if self._model is None or self._after is None:
            return None
        stamp = self._stamp | {INTERRUPTED: True}
        made = self._part(self._model, FinishReason.CANCELLED, stamp)
        return None if made is None else made.with_metadata(AFTER, self._after)

    # --- callbacks of the agent

    def hooks(self) -> Hooks[Any]:
        """Returns the agent hooks that feed this run."""
        return Hooks(on_event=self._happened, after_response=self._stamped)

    async def sent(self, place: PlacedModel, request: Request) -> None:
        """Called when a provider starts to respond: tells the page what was sent."""
        self._stream_events = StreamEvents()
        last = await self._history.last()
        self._after = None if last is None else last.id
        view = sent_view(place, request, self._kept.omitted)
        self._feed.add({"type": "sent", **view})

    async def heard(self, event: Event) -> None:
        """Called for each event of the response."""
        for page_event in self._stream_events.convert(event):
            self._feed.add(page_event)

    def _stamped(self, response: Response, _run: RunContext[Any]) -> Response | None:
        """Adds the request's settings to the response, so that the request can be shown later."""
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
            self._feed.add({"type": "result", "view": view})
            return
        if message.role is Role.ASSISTANT:
            self._last = message
            if not message.tool_calls:
                return  # the `done` event includes it
            for page_event in self._stream_events.complete(message.tool_calls):
                self._feed.add(page_event)
        self._feed.add({"type": "message", "view": view})

    async def approve(self, call: ToolCall, _run: RunContext[Any]) -> bool | str:
        """Asks the page to approve a tool call, and waits for the decision."""
        waiting: asyncio.Future[bool | str] = asyncio.get_running_loop().create_future()
        self._waiting[call.id] = waiting
        self._feed.add({"type": "approval", **call_view(call)})
        try:
            async with asyncio.timeout(_APPROVAL):
                return await waiting
        except TimeoutError:
            self._feed.add({"type": "decided", "call_id": call.id})
            return _NOBODY
        finally:
            self._waiting.pop(call.id, None)
