"""Exchanges stored in a history: by the header `x-dragoman-session`, or as the route says.

What is new in a request goes into the session's history together with the answer, before the client
sees the answer's end. Sessions belong to the key that asks.
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
from dragoman.model.responses import Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult

HEADER: Final = "x-dragoman-session"
_NAME: Final = re.compile(r"[!-~](?:[ -~]{0,254}[!-~])?")
_INSTRUCTIONS: Final = frozenset({Role.SYSTEM, Role.DEVELOPER})
_ATTEMPTS = 200


def join_session(inbound: InboundRequest, exchange: Exchange, route: RouteSettings) -> None:
    """Let an exchange be stored, if the client or the route asks for it."""
    given = inbound.call.header(HEADER.encode())
    name = route.session if given is None else given.strip()
    if name is None:
        return
    if given is not None and _NAME.fullmatch(name) is None:
        msg = f"the header {HEADER} holds 1 to 256 visible ASCII characters"
        raise InvalidRequest(msg, status=400)
    histories = inbound.gateway.histories
    if histories is None:
        if given is None:
            msg = "a route stores its exchanges in a session, and no history is configured"
            raise ConfigError(msg)
        msg = f"the header {HEADER} needs a history store, and this server has none"
        raise InvalidRequest(msg, status=400)
    inbound.call.more_headers[HEADER] = name
    exchange.recorder = SessionRecorder(histories, identity_of(inbound, name), exchange)


def identity_of(inbound: InboundRequest, name: str) -> SessionIdentity:
    """The session of that name which belongs to the key that asks."""
    key = None if inbound.key is None else inbound.key.id
    return SessionIdentity(chat=name, user=key, scope=SESSIONS)


class SessionRecorder:
    """Puts one exchange into a history."""

    def __init__(self, histories: Histories, identity: SessionIdentity, exchange: Exchange) -> None:
        self._histories = histories
        self._identity = identity
        self._exchange = exchange

    async def keep(self, response: Response) -> None:
        """Add what the request says that is new, and the answer: all or nothing."""
        exchange = self._exchange
        request = exchange.override or exchange.client_request.request
        asked, answer = request.messages, response.message
        if answer.usage is None and response.usage is not None:
            answer = answer.replace_unchecked(usage=response.usage)
        session = await self._histories.session(self._identity)
        async with session.writing:
            await _add(session.history, asked, answer)


async def _add(history: ChatHistory, asked: Sequence[Message], answer: Message) -> None:
    for attempt in range(_ATTEMPTS):
        known = await history.messages()
        added = [*unknown(asked, known), answer]
        try:
            await history.extend(added, expected_version=history.version)
        except Conflict:  # another worker writes to the session: what is new is found out again
            await asyncio.sleep(0.001 * min(attempt, 20))
        else:
            return
    msg = "too many requests write to the session at once"
    raise Overloaded(msg, status=503, retry_after=1.0)


def unknown(asked: Sequence[Message], known: Iterable[Message]) -> list[Message]:
    """The messages of a request that are not in the history.

    What follows the last answer in the request is new: it is what is asked now, even where the same
    was asked before. What comes before it was said in earlier exchanges: each of these is looked
    for in the history, as often as it was said, and in any order (exchanges at the same time may
    have been stored in another one). Instructions that are there already are not repeated.
    """
    last = max((n for n, each in enumerate(asked) if each.role is Role.ASSISTANT), default=-1)
    if last < 0 and all(each.role not in _INSTRUCTIONS for each in asked):
        return list(asked)
    there = Counter(map(said, known))
    new: list[Message] = []
    for number, message in enumerate(asked):
        what = said(message)
        if message.role in _INSTRUCTIONS:
            if not there[what]:
                there[what] += 1
                new.append(message)
        elif number <= last and there[what]:
            there[what] -= 1
        else:
            new.append(message)
    return new


def said(message: Message) -> tuple[Any, ...]:
    """What a message says, however it was spelled on its way through a client.

    Thinking is left out (not every dialect brings it back), so are ids (each dialect has its own),
    and texts that follow one another are one.
    """
    pieces: list[Any] = []
    for part in message.parts:
        what = _piece(part)
        if what is None:
            continue
        if isinstance(what, str) and pieces and isinstance(pieces[-1], str):
            pieces[-1] += what
        else:
            pieces.append(what)
    return (message.role, *[each for each in pieces if each != ""])


def _piece(part: Part) -> Any:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, (Thinking, Opaque)):
        return None
    if isinstance(part, ToolCall):
        return ("call", part.name, _arguments(part))
    if isinstance(part, ToolResult):
        content = part.content
        if not isinstance(content, str):
            content = tuple([_piece(each) for each in content])
        return ("result", content)
    return ("part", part)  # equal where the same is said


def _arguments(call: ToolCall) -> Any:
    try:
        return dumps(call.arguments)
    except ValueError:
        return call.raw
