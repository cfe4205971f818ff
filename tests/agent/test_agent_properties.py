"""Properties that hold for any answers, tools and histories."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from itertools import takewhile
from traceback import format_exception
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import (
    Agent,
    ChatHistory,
    ConversationHistory,
    DragomanError,
    Message,
    Messages,
    Request,
    SessionIdentity,
    ToolCall,
)
from dragoman.agent.events import MessageAdded, RunFinished, TextDelta, ThinkingDelta
from dragoman.agent.results import Chunk, Result
from tests.agent.plays import SECRET, Play, growing, plays

SESSION = SessionIdentity("properties", "chat")


class Outcome(NamedTuple):
    """The outcome of a play."""

    result: Result[Any] | None
    error: DragomanError | None
    history: Any
    kept: Messages | None
    """The caller's history afterwards, where it grows."""

    @property
    def said(self) -> Any:
        """Everything that must not depend on how the run is consumed."""
        if self.result is None:
            return type(self.error), str(self.error), self.kept
        found = self.result
        return (
            found.messages, found.text, found.output, found.usage, found.cost, found.finish,
            found.metadata, found.deferred, found.steps, self.kept,
        )  # fmt: skip


async def by_send(agent: Agent, *content: Any, **options: Any) -> Result[Any]:
    """The result of `send`."""
    found: Result[Any] = await agent.send(*content, **options)
    return found


async def by_chunks(agent: Agent, *content: Any, **options: Any) -> Result[Any]:
    """The result of iterating over chunks, which add up to it."""
    async with agent.stream(*content, **options) as stream:
        chunks = [chunk async for chunk in stream]
    _expect_sum(chunks, stream.result)
    return stream.result


async def by_events(agent: Agent, *content: Any, **options: Any) -> Result[Any]:
    """The result of iterating over events, which add up to it."""
    async with agent.stream(*content, **options) as stream:
        events = [event async for event in stream.events()]
    result = stream.result
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == result.text
    assert "".join(e.text for e in events if isinstance(e, ThinkingDelta)) == result.thinking
    assert [e.message for e in events if isinstance(e, MessageAdded)] == [*result.messages]
    assert [e.result for e in events if isinstance(e, RunFinished)] == [result]
    assert SECRET not in repr(events)
    return result


def _expect_sum(chunks: list[Chunk], result: Result[Any]) -> None:
    assert "".join(chunk.output for chunk in chunks) == result.text
    assert "".join(chunk.metadata.get("thinking", "") for chunk in chunks) == result.thinking
    assert [m for chunk in chunks for m in chunk.messages] == [*result.messages]
    assert [chunk.usage for chunk in chunks if chunk.usage] == [result.usage] * bool(result.usage)
    assert [chunk.finish for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].finish == result.finish
    assert SECRET not in repr(chunks)


def by_send_sync(agent: Agent, *content: Any, **options: Any) -> Result[Any]:
    """The result of `send_sync`."""
    return agent.send_sync(*content, **options)


def by_stream_sync(agent: Agent, *content: Any, **options: Any) -> Result[Any]:
    """The result of `stream_sync`."""
    with agent.stream_sync(*content, **options) as stream:
        _expect_sum([*stream], stream.result)
    return stream.result


async def _played(play: Play, ask: Callable[..., Coroutine[Any, Any, Result[Any]]]) -> Outcome:
    if play.kind != "chat":
        return await _outcome(play, ask, growing(play.history, play.kind))
    async with await ChatHistory.open(SESSION, "memory:") as history:
        for message in play.history:
            await history.add(message)
        outcome = await _outcome(play, ask, history)
        return outcome._replace(kept=await history.messages())


async def _outcome(play: Play, ask: Any, history: Any) -> Outcome:
    before = list(history) if isinstance(history, list) else None
    result, error, tasks = None, None, asyncio.all_tasks()
    try:
        result = await ask(play.agent(), *play.content, **play.options(history))
    except DragomanError as raised:
        error = raised
    assert asyncio.all_tasks() == tasks
    assert before is None or history == before
    kept = history.messages if isinstance(history, ConversationHistory) else None
    return Outcome(result, error, history, kept)


def played(play: Play, ask: Any) -> Outcome:
    """Runs a play in the given way."""
    if ask in (by_send, by_chunks, by_events):
        return asyncio.run(asyncio.wait_for(_played(play, ask), 30))
    return _played_sync(play, ask)


def _played_sync(play: Play, ask: Any) -> Outcome:
    async def in_thread(agent: Agent, *content: Any, **options: Any) -> Result[Any]:
        # A blocking stream may be used from any thread, also beside a running loop.
        return await asyncio.to_thread(ask, agent, *content, **options)

    return asyncio.run(asyncio.wait_for(_played(play, in_thread), 30))


WAYS = (by_chunks, by_events, by_send_sync, by_stream_sync)


@given(plays())
def test_the_result_does_not_depend_on_how_it_is_consumed(play: Play) -> None:
    """Sent or streamed, with or without `await`, a run has the same result or error."""
    sent = played(play, by_send)
    for way in WAYS:
        assert played(play, way).said == sent.said, way.__name__
    gc.collect()  # a coroutine that was never awaited raises here


@given(plays())
def test_every_call_has_one_result_or_is_deferred(play: Play) -> None:
    """In the new messages every call has one result, or is deferred."""
    result = played(play, by_chunks).result
    if result is None:
        return
    deferred = Counter(call.id for call in result.deferred)
    new = (
        len(play.history) if play.prompt is not None else 0
    )  # or else the calls that wait are ours
    messages = [*play.history, *result.messages]
    rounds = [place for place, message in enumerate(messages) if message.tool_calls]
    for place in (each for each in rounds if each >= new):
        ids = Counter(call.id for call in messages[place].tool_calls)
        assert all(ids)
        assert max(ids.values()) == 1
        waiting = deferred if place == rounds[-1] else Counter()
        assert ids == _answered(messages[place + 1 :]) + waiting


def _answered(messages: list[Message]) -> Counter[str]:
    """The call ids of the results that follow."""
    found = takewhile(lambda message: message.tool_results, messages)
    return Counter(result.call_id for message in found for result in message.tool_results)


@given(plays())
def test_the_new_messages_are_valid_in_every_dialect(play: Play) -> None:
    """History and new messages encode to a valid request in every dialect."""
    result = played(play, by_send).result
    if result is None:
        return
    _expect_sendable((*play.history, *result.messages))


def _expect_sendable(messages: tuple[Message, ...]) -> None:
    closed = (*messages, Message.user("and now?"))
    for name in dragoman.dialects():
        spoken = dragoman.dialect(name)
        encoded = spoken.encode_request(Request(model="m", messages=closed))
        found = spoken.check(encoded.body, path=encoded.path)
        assert [str(each) for each in found if each.severity == "error"] == [], name


@given(plays())
def test_a_history_grows_by_the_new_messages(play: Play) -> None:
    """The caller's history has its earlier messages unchanged, and the new ones."""
    outcome = played(play, by_chunks)
    if outcome.result is None or outcome.kept is None or not outcome.kept:
        return
    new = outcome.result.messages
    assert Messages.of(outcome.kept[-len(play.history) - len(new) :]) == (
        Messages.of(play.history) + new
    )


@given(plays(), st.data())
def test_a_run_can_be_resumed_from_any_message(play: Play, data: st.DataObject) -> None:
    """Calls with a stored result aren't run again, and the run ends."""
    first = played(play, by_send).result
    if first is None or not first.messages:
        return
    whole = [*play.history, *first.messages]
    cut = data.draw(st.integers(len(play.history), len(whole)))
    kept = whole[:cut]
    done = {r.call_id for message in kept[-1:] for r in message.tool_results}
    ran: list[str] = []

    def note(call: ToolCall, _run: Any) -> None:
        ran.append(call.id)

    settings = {**play.settings, "hooks": dragoman.agent.Hooks(before_tool_call=note)}
    again = Play([], play.tools, kept, play.kind, None, {}, {}, settings)
    outcome = played(again, by_send)
    assert outcome.result is not None or outcome.error is not None
    assert done.isdisjoint(ran)


class Heard(logging.Handler):
    """Collects log records."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Stores the formatted record."""
        self.lines.append(logging.Formatter().format(record))


@given(plays())
def test_no_content_is_shown(play: Play) -> None:
    """No text, argument or result is in a `repr`, an error or a log."""
    heard, logger = Heard(), logging.getLogger("dragoman")
    logger.addHandler(heard)
    try:
        outcome = played(play, by_events)
    finally:
        logger.removeHandler(heard)
    trail = "".join(format_exception(outcome.error)) if outcome.error else ""
    told = [line for line in trail.splitlines() if not line.startswith("    ")]
    shown = f"{outcome.result!r} {outcome.error!r} {play.agent()!r}"
    assert SECRET not in f"{shown} {heard.lines} {told}"
