"""An agent run for the page: streams events to its readers and stores messages as it goes.

The run is a separate task. It goes on when its readers go away, and ends when the response is
complete, when the user stops it, or when the gateway ends. The part already received is kept and
marked as unfinished.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from secrets import token_hex
from typing import Any

from dragoman.agent import Agent, Hooks, Result
from dragoman.agent.context import RunContext
from dragoman.agent.conversations import KeptConversation, last_round, unanswered
from dragoman.agent.events import AgentEvent, MessageAdded
from dragoman.errors import DragomanError, NotFound, ServerError
from dragoman.gateway.page.calls import error_view
from dragoman.gateway.page.relay import AFTER
from dragoman.gateway.page.routed import PlacedModel, RoutedModel
from dragoman.gateway.page.sent import Viewer, sent_view
from dragoman.gateway.page.views import call_view, part_view, usage_view
from dragoman.history.chat import ChatHistory
from dragoman.history.live_windows import Window
from dragoman.interop.text_files import INTERRUPTED, KEY
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.events import Event, PartDelta, PartStart, PartStop
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolCallDelta, ToolResult
from dragoman.model.usage import FinishReason

# --- the feed: events kept for readers that come later, and passed on to those that are there
#
# Readers come and go at any time; each gets all events from the first one. A run never waits for
# a reader: a slow one receives the text in larger pieces.

PageEvent = dict[str, Any]


class Feed:
    """The events of one run, in order. Deltas of one part in a row are one event that grows."""

    def __init__(self) -> None:
        self._events: list[tuple[PageEvent, list[str]]] = []
        """Each event with the pieces of its text; only deltas have any."""
        self._is_over = False
        self._changed = asyncio.Event()

    def add(self, event: PageEvent) -> None:
        """Adds an event."""
        is_delta = event["type"] == "delta"
        last, pieces = self._events[-1] if self._events else ({}, [])
        if is_delta and pieces and last["index"] == event["index"]:
            pieces.append(event["text"])
        else:
            self._events.append((event, [event["text"]] if is_delta else []))
        self._wake()

    def end(self) -> None:
        """Ends the feed: readers get what is left, and then no more."""
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def read(self, pause: float) -> AsyncIterator[PageEvent | None]:
        """Yields all events from the first one; None after each `pause` seconds without one."""
        place = _Place()
        while True:
            changed, is_over = self._changed, self._is_over
            for event in self._after(place):
                yield event
                changed, is_over = self._changed, self._is_over
            if is_over:
                return
            try:
                async with asyncio.timeout(pause):
                    await changed.wait()
            except TimeoutError:
                yield None

    def _after(self, place: _Place) -> Iterator[PageEvent]:
        """Yields what a reader at this place has not had yet; the last delta may still grow."""
        while place.event < len(self._events):
            event, pieces = self._events[place.event]
            if len(pieces) > place.piece:
                text = "".join(pieces[place.piece :])
                place.piece = len(pieces)
                yield event | {"text": text}
                continue
            if not pieces:
                yield event
            elif place.event == len(self._events) - 1:
                return
            place.event, place.piece = place.event + 1, 0


class _Place:
    """Where a reader is: an event, and how many pieces of its text were passed on."""

    __slots__ = ("event", "piece")

    def __init__(self) -> None:
        self.event = self.piece = 0


# --- the page's events for those of a streamed response

_WITH_TEXT = (Text, Thinking, Refusal)


class StreamEvents:
    """Converts the events of one response. Numbers the parts in the order in which they begin.

    The wire's indexes can't be used: tool calls that arrive in pieces are indexed separately, and
    some servers use one index for several calls.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}
        self._texts: dict[int, list[str]] = {}
        self._calls: list[int] = []
        self._ended: set[int] = set()
        self._ids: dict[int, str] = {}
        self._last: int | None = None

    def convert(self, event: Event) -> Iterator[dict[str, Any]]:
        """Yields the page events for one event; the page shows the first choice only."""
        if getattr(event, "choice", 0):
            return
        if isinstance(event, PartStart):
            yield from self._start(event.index, event.part)
            yield from self._more(self._numbers["part", event.index], _text(event.part))
        elif isinstance(event, PartDelta) and event.text:
            yield from self._start(event.index, Text(""))
            yield from self._more(self._numbers["part", event.index], event.text)
        elif isinstance(event, ToolCallDelta):
            yield from self._piece(event)
        elif isinstance(event, PartStop) and event.part is not None:
            yield from self._stop(event.index, event.part)

    def complete(self, calls: Iterable[ToolCall]) -> Iterator[dict[str, Any]]:
        """Yields the finished tool calls, including those that arrived in pieces."""
        for number, call in zip(self._calls, calls, strict=False):
            yield from self._end(number, call)

    def _start(self, index: int, part: AnyPart) -> Iterator[dict[str, Any]]:
        if ("part", index) in self._numbers:
            return
        view = part_view(part, "")
        yield self._begun(("part", index), view["kind"], view.get("name"))

    def _begun(self, key: tuple[str, int], kind: str, name: str | None) -> dict[str, Any]:
        number = self._numbers[key] = len(self._texts)
        self._texts[number] = []
        if kind == "call":
            self._calls.append(number)
        made = {"type": "part", "index": number, "kind": kind}
        return made | ({"name": name} if name else {})

    def _more(self, number: int, text: str) -> Iterator[dict[str, Any]]:
        if text:
            self._texts[number].append(text)
            yield {"type": "delta", "index": number, "text": text}

    def _piece(self, event: ToolCallDelta) -> Iterator[dict[str, Any]]:
        """Handles a fragment of a tool call; not every fragment names its call (W7, W8)."""
        index = event.index if event.index is not None else self._last or 0
        is_other = bool(event.id) and event.id != self._ids.get(index, event.id)
        self._last = index
        if event.id:
            self._ids[index] = event.id
        if is_other or ("call", index) not in self._numbers:
            yield self._begun(("call", index), "call", event.name)
        yield from self._more(self._numbers["call", index], event.arguments_delta or "")

    def _stop(self, index: int, part: AnyPart) -> Iterator[dict[str, Any]]:
        yield from self._start(index, part)
        number = self._numbers["part", index]
        if isinstance(part, ToolCall):
            yield from self._end(number, part)
            return
        # The final part may hold more text than its deltas did.
        whole, sent = _text(part), "".join(self._texts[number])
        if len(whole) > len(sent) and whole.startswith(sent):
            yield from self._more(number, whole[len(sent) :])

    def _end(self, number: int, call: ToolCall) -> Iterator[dict[str, Any]]:
        if number not in self._ended:
            self._ended.add(number)
            yield {"type": "call", "index": number, "call": call_view(call)}


def _text(part: AnyPart) -> str:
    if isinstance(part, ToolCall):
        return part.raw or ""
    return part.text if isinstance(part, _WITH_TEXT) else ""


# --- runs

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
