"""Talking: what the page's user says goes to a model, and what comes back goes to the page."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

from dragoman.agent import Agent, RunLimits
from dragoman.errors import Conflict, InvalidRequest
from dragoman.gateway.page.attachments import ATTACHED, KEY, attached
from dragoman.gateway.page.branches import expect_branch
from dragoman.gateway.page.calls import PageCall, field
from dragoman.gateway.page.conversations import fork_after, new_identity
from dragoman.gateway.page.relay import Relay, tell
from dragoman.gateway.page.routed import RoutedModel
from dragoman.gateway.page.run_views import Viewer
from dragoman.gateway.page.runs import PageRun
from dragoman.gateway.page.tools import page_tools
from dragoman.history.branches import last_id
from dragoman.history.chat import ChatHistory
from dragoman.history.storage.protocol import Session, Storage
from dragoman.model.messages import Message
from dragoman.model.parts import Text

_PAUSE = 15.0  # seconds after which a silent answer says that it is still there
_LONGEST = 1_000_000  # characters of a text or of instructions
_LONGEST_NAME = 256
_LONGEST_REASON = 2000
_MOST_RUNS = 64
_STEPS = 20
_LEVELS = ("minimal", "low", "medium", "high")
_BUSY = "an answer is coming in on this branch: stop it, or wait"
_MANY = f"no more than {_MOST_RUNS} answers can come in at once"


class Wanted(NamedTuple):
    """What a request asks for."""

    model: str
    content: list[Any]
    system: str | None
    settings: dict[str, Any]
    tools: bool

    @property
    def stamp(self) -> dict[str, Any]:
        """What an answer keeps of it, so that what was sent can be shown again."""
        said = {"model": self.model, "system": self.system, "settings": self.settings}
        kept: dict[str, Any] = {name: value for name, value in said.items() if value}
        return kept | ({"tools": True} if self.tools else {})


async def talk(call: PageCall) -> None:
    """Say something, edit or retry; answers with events until all is said."""
    body = await call.json()
    wanted = _wanted(body)
    route = await call.gateway.route(wanted.model)
    storage, history = await _conversation(call, body)
    if len(call.page.runs) >= _MOST_RUNS:
        raise InvalidRequest(_MANY, status=429)
    viewer = Viewer(storage, history.identity, call.page.branches(storage))
    run = PageRun(history, viewer, wanted.stamp)
    model = RoutedModel(call.gateway, route, sent=run.sent, tap=run.heard)
    call.inbound.route = route.name
    agent = _agent(model, run, wanted)
    has_others = call.gateway.config.server.workers > 1
    async with Relay(storage, run) if has_others else nullcontext():
        with call.page.running(run):
            run.start(agent, model, wanted.content)
            await _told(call, run)


async def _told(call: PageCall, run: PageRun) -> None:
    """Tell the page what happens; one that leaves ends the run, which keeps what it has."""
    try:
        await call.begin_events()
        first = {"run": run.id, "conversation": run.conversation, "branch": run.branch}
        await call.event({"type": "run", **first})
        async for event in run.events(_PAUSE):
            await (call.remark() if event is None else call.event(event))
        await call.end_events()
    finally:
        await _settled(run)


async def _settled(run: PageRun) -> None:
    """Stop a run and wait until it is stored, whoever else is in a hurry."""
    stopping = asyncio.ensure_future(run.stop())
    try:
        await asyncio.shield(stopping)
    except asyncio.CancelledError:
        await stopping
        raise


def _agent(model: RoutedModel, run: PageRun, wanted: Wanted) -> Agent[Any, Any]:
    return Agent(
        model, tools=page_tools() if wanted.tools else (), system=wanted.system,
        hooks=run.hooks(), approve=run.approve, limits=RunLimits(steps=_STEPS),
        links_responses=False, **wanted.settings,
    )  # fmt: skip


# --- what is asked for


def _wanted(body: Mapping[str, Any]) -> Wanted:
    model = field(body, "model", str, "")
    text, system = field(body, "text", str, ""), field(body, "system", str, None)
    if not model or len(model) > _LONGEST_NAME:
        msg = "`model` names the model that is asked"
        raise InvalidRequest(msg, status=400)
    if len(text) > _LONGEST or len(system or "") > _LONGEST:
        msg = f"a text has no more than {_LONGEST:,} characters"
        raise InvalidRequest(msg, status=413)
    content = [] if field(body, "retry", bool, default=False) else _content(body, text)
    tools = field(body, "tools", bool, default=False)
    return Wanted(model, content, system or None, _settings(body), tools)


def _content(body: Mapping[str, Any], text: str) -> list[Any]:
    files = attached(body)
    parts = [*files.parts, *([Text(text)] if text else [])]
    if not parts:
        msg = "there is nothing to say: `text` is empty, and nothing is attached"
        raise InvalidRequest(msg, status=400)
    metadata = {KEY: {ATTACHED: files.names}} if files.names else {}
    return [Message.user(*parts, metadata=metadata)]


def _settings(body: Mapping[str, Any]) -> dict[str, Any]:
    given = field(body, "settings", dict, {})
    made: dict[str, Any] = {}
    if (most := field(given, "max_tokens", int, None)) is not None:
        made["max_tokens"] = max(most, 1)
    if (heat := field(given, "temperature", (int, float), None)) is not None:
        made["temperature"] = heat
    thinking = given.get("thinking")
    if isinstance(thinking, bool) or thinking in _LEVELS:
        made["thinking"] = thinking
    elif thinking is not None:
        made["thinking"] = field(given, "thinking", int, None)
    return made


# --- where it is said


async def _conversation(call: PageCall, body: Mapping[str, Any]) -> tuple[Storage, ChatHistory]:
    """The history to go on with, on the branch that is meant: a new one where that is asked for."""
    storage, id = await call.page.storage(), field(body, "conversation", str, "")
    after, is_retry = field(body, "after", str, None), field(body, "retry", bool, default=False)
    if not id:
        if is_retry:
            msg = "a new conversation has nothing to retry"
            raise InvalidRequest(msg, status=400)
        return storage, await ChatHistory.open(new_identity(), storage)
    session = await (await call.page.listing()).session(id)
    branch = expect_branch(session, field(body, "branch", int, session.active))
    number = await _branched(call, storage, session, branch, after)
    history = await ChatHistory.open(session.identity, storage)
    if history.branch != number:
        await history.switch(number)
    return storage, history


async def _branched(
    call: PageCall, storage: Storage, session: Session, branch: int, after: str | None
) -> int:
    """The branch to go on with; a new one, where that is not from the end of this one."""
    is_whole = session.last_seq == 0
    if after is None or is_whole or await _ends_with(storage, session, branch, after):
        if call.page.is_busy(session.identity.digest, branch):
            raise Conflict(_BUSY)
        return branch
    return await fork_after(storage, session, after)


async def _ends_with(storage: Storage, session: Session, branch: int, id: str) -> bool:
    return bool(id) and await last_id(storage, session.identity, session, branch) == id


# --- while it comes in


async def approve(call: PageCall) -> Any:
    """Allow a call, or refuse it."""
    body = await call.json()
    id, allow = field(body, "call_id", str, ""), field(body, "allow", bool, None)
    reason = field(body, "reason", str, "")[:_LONGEST_REASON]
    if allow is None:
        msg = "`allow` says whether the call may run"
        raise InvalidRequest(msg, status=400)
    run = call.page.runs.get(call.names["run"])
    if run is None:
        decision = {"call_id": id, "allow": allow, "reason": reason}
        await tell(await call.page.storage(), call.names["run"], decision)
    else:
        run.decide(id, allow=allow, reason=reason)
    return {}


async def stop(call: PageCall) -> Any:
    """End an answer; what was heard is kept."""
    run = call.page.runs.get(call.names["run"])
    if run is None:
        await tell(await call.page.storage(), call.names["run"], {"stop": True})
    else:
        await run.stop()
    return {}
