"""The Talk API: sends the user's message to a model and streams the response to the page."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

from dragoman.agent import Agent, RunLimits
from dragoman.errors import Conflict, InvalidRequest, NotFound
from dragoman.gateway.page.branches import expect_branch
from dragoman.gateway.page.calls import PageCall, field
from dragoman.gateway.page.conversations import fork_after, new_identity
from dragoman.gateway.page.gateway_info import page_tools
from dragoman.gateway.page.relay import BUSY, Relay, events_elsewhere, tell
from dragoman.gateway.page.routed import RoutedModel
from dragoman.gateway.page.runs import PageRun
from dragoman.gateway.page.sent import Viewer
from dragoman.history.branches import last_id
from dragoman.history.chat import ChatHistory
from dragoman.history.records import message_of
from dragoman.history.storage.protocol import NO_MESSAGE, Session, Storage
from dragoman.interop.text_files import ATTACHED, KEY, attached_names, named_text
from dragoman.model.content import AnyPart
from dragoman.model.media import Audio, File, Image, Media, Video, mime_of, sniff
from dragoman.model.messages import Message
from dragoman.model.parts import Text

# --- attachments: images, audio, video and files, with size limits

MAX_FILES = 20
MAX_BYTES = 50_000_000
_MAX_FILE_NAME = 200
_KINDS: dict[str, type[Media]] = {"image": Image, "audio": Audio, "video": Video}
_TOO_MUCH = f"a message can have up to {MAX_FILES} attachments and {MAX_BYTES:,} bytes in total"
_NO_PART = "`kept.parts` must be indexes of parts of the message"
_INVALID = "an attachment is invalid: it needs a name and its content in base64"


class Attached(NamedTuple):
    """The parts of the attachments, and the names of those that are sent as text, by index."""

    parts: list[AnyPart]
    names: dict[str, str]

    def joined(self, others: Attached) -> Attached:
        """Returns these and others after them."""
        shifted = {str(int(place) + len(self.parts)): name for place, name in others.names.items()}
        return Attached([*self.parts, *others.parts], self.names | shifted)


def attached(body: Mapping[str, Any]) -> Attached:
    """Decodes the attachments of a request."""
    given = field(body, "attachments", list, [])
    if len(given) > MAX_FILES:
        raise InvalidRequest(_TOO_MUCH, status=413)
    left = MAX_BYTES
    made = Attached([], {})
    for each in given:
        content, name = _read(each)
        left -= len(content)
        if left < 0:
            raise InvalidRequest(_TOO_MUCH, status=413)
        text = _as_text(content)
        if text is not None:
            made.names[str(len(made.parts))] = name
            # As text, which every model accepts; only some accept files.
            made.parts.append(Text(named_text(name, text)))
        else:
            made.parts.append(_media(content, name))
    return made


def _read(each: Any) -> tuple[bytes, str]:
    if isinstance(each, dict):
        data = each.get("data")
        name = each.get("name") or "file"
        if isinstance(data, str) and isinstance(name, str) and data:
            try:
                return b64decode(data, validate=True), _tidy(name)
            except (binascii.Error, ValueError):
                pass
    raise InvalidRequest(_INVALID, status=400)


def _tidy(name: str) -> str:
    """Removes the path and control characters from a file name."""
    last = name.replace("\\", "/").rpartition("/")[2]
    kept = "".join(c if c.isprintable() else " " for c in last).strip()
    return kept[-_MAX_FILE_NAME:] or "file"


def _as_text(content: bytes) -> str | None:
    if sniff(content[:64]) is not None or b"\x00" in content:
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _media(content: bytes, name: str) -> AnyPart:
    """Builds a media part; detects its type by content or name, not by the browser's claim."""
    mime = mime_of(content, name)
    kind = _KINDS.get((mime or "").partition("/")[0], File)
    made: AnyPart = kind.from_bytes(content, mime, name=name)  # type: ignore[assignment]  # one of AnyPart
    return made


# --- reading stored attachments


def attachments_of(message: Message, places: list[Any]) -> Attached:
    """Returns some parts of a stored message by their indexes, with the names of text files."""
    names, made = attached_names(message), Attached([], {})
    for place in places:
        if type(place) is not int or not 0 <= place < len(message.parts):
            raise InvalidRequest(_NO_PART, status=400)
        if (name := names.get(str(place))) is not None:
            made.names[str(len(made.parts))] = name
        made.parts.append(message.parts[place])
    return made


# --- the API

_KEEPALIVE = 15.0  # seconds without an event before a comment keeps the connection open
_MAX_TEXT = 1_000_000  # characters of a message or a system prompt
_MAX_NAME = 256
_MAX_REASON = 2000
_MAX_RUNS = 64
_MAX_STEPS = 20
_LEVELS = ("minimal", "low", "medium", "high")
_TOO_MANY = f"at most {_MAX_RUNS} responses can stream at once"


class TalkRequest(NamedTuple):
    """The contents of a talk request."""

    model: str
    text: str
    system: str | None
    settings: dict[str, Any]
    tools: bool

    @property
    def stamp(self) -> dict[str, Any]:
        """The settings stored with the message and the response, for later requests and views."""
        given = {"model": self.model, "system": self.system, "settings": self.settings}
        kept: dict[str, Any] = {name: value for name, value in given.items() if value}
        return kept | ({"tools": True} if self.tools else {})


async def talk(call: PageCall) -> None:
    """Sends, edits or retries a message; streams events until the response ends."""
    body = await call.json()
    wanted = _talk_request(body)
    route = await call.gateway.route(wanted.model)
    content = await _content(call, body, wanted)
    storage, history = await _conversation(call, body)
    is_busy = await call.page.run_at(history.identity.digest, history.branch) is not None
    if len(call.page.runs) >= _MAX_RUNS:
        raise InvalidRequest(_TOO_MANY, status=429)
    if is_busy or call.page.run_on(history.identity.digest, history.branch) is not None:
        raise Conflict(BUSY)
    viewer = Viewer(storage, history.identity, call.page.branches(storage))
    run = PageRun(history, viewer, wanted.stamp)
    model = RoutedModel(call.gateway, route, sent=run.sent, tap=run.heard)
    call.inbound.route = route.name
    relay = Relay(storage, run, has_others=call.page.has_others)
    within = relay if call.page.keeps_drafts else nullcontext()
    call.page.keep(run, run.start(_agent(model, run, wanted), model, content, within))
    await _stream_events(call, run.events(_KEEPALIVE))


async def followed(call: PageCall) -> None:
    """Streams the events of a run in progress, from its first one."""
    id = call.names["run"]
    run = call.page.runs.get(id)
    if run is not None:
        await _stream_events(call, run.events(_KEEPALIVE))
        return
    storage = await call.page.storage()
    await tell(storage, id, {"follow": True})
    await _stream_events(call, events_elsewhere(storage, id, _KEEPALIVE))


async def _stream_events(call: PageCall, events: AsyncIterator[dict[str, Any] | None]) -> None:
    """Streams the events of a run to the page. If the page disconnects, the run goes on."""
    await call.begin_events()
    async for event in events:
        await (call.keep_alive() if event is None else call.event(event))
    await call.end_events()


def _agent(model: RoutedModel, run: PageRun, wanted: TalkRequest) -> Agent[Any, Any]:
    return Agent(
        model, tools=page_tools() if wanted.tools else (), system=wanted.system,
        hooks=run.hooks(), approve=run.approve, limits=RunLimits(steps=_MAX_STEPS),
        links_responses=False, **wanted.settings,
    )  # fmt: skip


# --- reading the request


def _talk_request(body: Mapping[str, Any]) -> TalkRequest:
    model = field(body, "model", str, "")
    text, system = field(body, "text", str, ""), field(body, "system", str, None)
    if not model or len(model) > _MAX_NAME:
        msg = f"`model` must be a model name of up to {_MAX_NAME} characters"
        raise InvalidRequest(msg, status=400)
    if len(text) > _MAX_TEXT or len(system or "") > _MAX_TEXT:
        msg = f"messages and system prompts are limited to {_MAX_TEXT:,} characters"
        raise InvalidRequest(msg, status=413)
    tools = field(body, "tools", bool, default=False)
    return TalkRequest(model, text, system or None, _settings(body), tools)


async def _content(call: PageCall, body: Mapping[str, Any], wanted: TalkRequest) -> list[Any]:
    """Returns the new message: kept attachments of a stored message, new ones, the text."""
    if field(body, "retry", bool, default=False):
        return []
    files = (await _kept(call, body)).joined(attached(body))
    parts = [*files.parts, *([Text(wanted.text)] if wanted.text else [])]
    if not parts:
        msg = "the message is empty: set `text` or attach a file"
        raise InvalidRequest(msg, status=400)
    stamp = wanted.stamp | ({ATTACHED: files.names} if files.names else {})
    return [Message.user(*parts, metadata={KEY: stamp})]


async def _kept(call: PageCall, body: Mapping[str, Any]) -> Attached:
    """Returns the attachments that an edited message keeps, from the stored original."""
    kept = field(body, "kept", dict, {})
    if not kept:
        return Attached([], {})
    session = await (await call.page.listing()).session(field(body, "conversation", str, ""))
    storage = await call.page.storage()
    row = await storage.row(session.identity, field(kept, "message", str, ""))
    if row is None:
        raise NotFound(NO_MESSAGE)
    return attachments_of(message_of(row.body), field(kept, "parts", list, []))


def _settings(body: Mapping[str, Any]) -> dict[str, Any]:
    given = field(body, "settings", dict, {})
    made: dict[str, Any] = {}
    if (max_tokens := field(given, "max_tokens", int, None)) is not None:
        made["max_tokens"] = max(max_tokens, 1)
    if (temperature := field(given, "temperature", (int, float), None)) is not None:
        made["temperature"] = temperature
    thinking = given.get("thinking")
    if isinstance(thinking, bool) or thinking in _LEVELS:
        made["thinking"] = thinking
    elif thinking is not None:
        made["thinking"] = field(given, "thinking", int, None)
    return made


# --- the conversation and branch


async def _conversation(call: PageCall, body: Mapping[str, Any]) -> tuple[Storage, ChatHistory]:
    """Opens the conversation on the requested branch, or creates a new conversation."""
    storage, id = await call.page.storage(), field(body, "conversation", str, "")
    after, is_retry = field(body, "after", str, None), field(body, "retry", bool, default=False)
    if not id:
        if is_retry:
            msg = "a new conversation has nothing to retry"
            raise InvalidRequest(msg, status=400)
        return storage, await ChatHistory.open(new_identity(), storage)
    session = await (await call.page.listing()).session(id)
    branch = expect_branch(session, field(body, "branch", int, session.active))
    session = await call.page.recovered(session, branch)
    number = await _branched(storage, session, branch, after)
    history = await ChatHistory.open(session.identity, storage)
    if history.branch != number:
        await history.switch(number)
    return storage, history


async def _branched(storage: Storage, session: Session, branch: int, after: str | None) -> int:
    """Returns the branch to continue; forks a new one if `after` is not the end of this one."""
    is_whole = session.last_seq == 0
    if after is None or is_whole or await _ends_with(storage, session, branch, after):
        return branch
    return await fork_after(storage, session, after)


async def _ends_with(storage: Storage, session: Session, branch: int, id: str) -> bool:
    return bool(id) and await last_id(storage, session.identity, session, branch) == id


# --- while the response streams


async def approve(call: PageCall) -> Any:
    """Approves or refuses a tool call."""
    body = await call.json()
    id, allow = field(body, "call_id", str, ""), field(body, "allow", bool, None)
    reason = field(body, "reason", str, "")[:_MAX_REASON]
    if allow is None:
        msg = "`allow` must be true or false"
        raise InvalidRequest(msg, status=400)
    run = call.page.runs.get(call.names["run"])
    if run is None:
        decision = {"call_id": id, "allow": allow, "reason": reason}
        await tell(await call.page.storage(), call.names["run"], decision)
    else:
        run.decide(id, allow=allow, reason=reason)
    return {}


async def stop(call: PageCall) -> Any:
    """Stops a response; the part already received is kept."""
    run = call.page.runs.get(call.names["run"])
    if run is None:
        await tell(await call.page.storage(), call.names["run"], {"stop": True})
    else:
        await run.stop()
    return {}
