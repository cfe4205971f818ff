"""Stores chats in the session named by the header `x-dragoman-session` or by the route.

The new messages of a request are stored together with the response, before the client receives the
response's end. Sessions belong to the key of the request.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from dragoman.errors import ConfigError, Conflict, InvalidRequest, Overloaded
from dragoman.gateway.config.settings import RouteSettings
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.histories import SESSIONS, Histories
from dragoman.gateway.inbound import InboundRequest
from dragoman.history.chat import ChatHistory
from dragoman.history.identity import SessionIdentity
from dragoman.model.jsontext import dumps
from dragoman.model.messages import Message
from dragoman.model.parts import Opaque, Part, Text, Thinking
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult

HEADER: Final = "x-dragoman-session"
_NAME: Final = re.compile(r"[!-~](?:[ -~]{0,254}[!-~])?")
_INSTRUCTIONS: Final = frozenset({Role.SYSTEM, Role.DEVELOPER})
_ATTEMPTS = 200


def join_session(inbound: InboundRequest, exchange: Exchange, route: RouteSettings) -> None:
    """Store the exchange in a session if the client or the route asks for it."""
    header = inbound.call.header(HEADER.encode())
    name = route.session if header is None else header.strip()
    if name is None:
        return
    if header is not None and _NAME.fullmatch(name) is None:
        msg = f"the header {HEADER} must have 1 to 256 printable ASCII characters"
        raise InvalidRequest(msg, status=400)
    histories = inbound.gateway.histories
    if histories is None:
        if header is None:
            msg = "the route has a `session`, but no `history` is configured in [server]"
            raise ConfigError(msg)
        msg = f"the header {HEADER} requires a history store, which this server does not have"
        raise InvalidRequest(msg, status=400)
    inbound.call.more_headers[HEADER] = name
    exchange.recorder = SessionRecorder(histories, identity_of(inbound, name), exchange)


def identity_of(inbound: InboundRequest, name: str) -> SessionIdentity:
    """The identity of a session that belongs to the request's key."""
    key = None if inbound.key is None else inbound.key.id
    return SessionIdentity(chat=name, user=key, scope=SESSIONS)


class SessionRecorder:
    """Stores one exchange in a history."""

    def __init__(self, histories: Histories, identity: SessionIdentity, exchange: Exchange) -> None:
        self._histories = histories
        self._identity = identity
        self._exchange = exchange

    async def keep(self, response: Response, /, request: Request | None = None) -> None:
        """Add the request's new messages and the response, atomically."""
        exchange = self._exchange
        request = request or exchange.override or await exchange.client_request.decoded()
        messages, answer = request.messages, response.message
        if answer.usage is None and response.usage is not None:
            answer = answer.replace_unchecked(usage=response.usage)
        session = await self._histories.session(self._identity)
        async with session.writing:
            await _add(session.history, messages, answer)


async def _add(history: ChatHistory, messages: Sequence[Message], answer: Message) -> None:
    for attempt in range(_ATTEMPTS):
        known = await history.messages()
        added = [*new_messages(messages, known), answer]
        try:
            await history.extend(added, expected_version=history.version)
        except Conflict:  # another worker wrote to the session: compare again
            await asyncio.sleep(0.001 * min(attempt, 20))
        else:
            return
    msg = "too many concurrent requests write to this session; try again"
    raise Overloaded(msg, status=503, retry_after=1.0)


def new_messages(messages: Sequence[Message], known: Iterable[Message]) -> list[Message]:
    """Return the messages of a request that are not in the history yet.

    Messages after the last assistant message are always new, even if the same text was sent before.
    Earlier messages are matched against the history one to one and in any order, because concurrent
    exchanges may have been stored in a different order. Known instructions are not repeated.
    """
    last = max((n for n, each in enumerate(messages) if each.role is Role.ASSISTANT), default=-1)
    if last < 0 and all(each.role not in _INSTRUCTIONS for each in messages):
        return list(messages)
    known_counts = Counter(map(content_key, known))
    new: list[Message] = []
    for number, message in enumerate(messages):
        key = content_key(message)
        if message.role in _INSTRUCTIONS:
            if not known_counts[key]:
                known_counts[key] += 1
                new.append(message)
        elif number <= last and known_counts[key]:
            known_counts[key] -= 1
        else:
            new.append(message)
    return new


def content_key(message: Message) -> tuple[Any, ...]:
    """A comparison key that stays the same when a message passes through a client.

    It leaves out thinking (not every dialect returns it) and ids (each dialect has its own), and
    joins adjacent texts.
    """
    pieces: list[Any] = []
    for part in message.parts:
        key = _part_key(part)
        if key is None:
            continue
        if isinstance(key, str) and pieces and isinstance(pieces[-1], str):
            pieces[-1] += key
        else:
            pieces.append(key)
    return (message.role, *[each for each in pieces if each != ""])


def _part_key(part: Part) -> Any:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, (Thinking, Opaque)):
        return None
    if isinstance(part, ToolCall):
        return ("call", part.name, _arguments(part))
    if isinstance(part, ToolResult):
        content = part.content
        if not isinstance(content, str):
            content = tuple([_part_key(each) for each in content])
        return ("result", content)
    return ("part", part)  # compared by value


def _arguments(call: ToolCall) -> Any:
    try:
        return dumps(call.arguments)
    except ValueError:
        return call.raw
