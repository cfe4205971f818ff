"""One turn on a WebSocket: presents it as an HTTP request and sends the response as messages."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dragoman.errors import InvalidInputError
from dragoman.gateway.http import Scope
from dragoman.gateway.responses.frames import data_in, is_end, type_of
from dragoman.gateway.responses.lifecycle import end_event
from dragoman.model.jsontext import dumps, loads

if TYPE_CHECKING:
    from dragoman.gateway.responses.websocket import Socket

_FAILED = 500
_FIRST_ERROR_STATUS = 400
_ERROR_HEADERS = ("retry-after", "x-request-id")


class TurnInProgress:
    """A turn in progress."""

    def __init__(self, socket: Socket, body: bytes, stream_id: str | None) -> None:
        self._socket = socket
        self._stream_id = stream_id
        self._body: bytes | None = body
        self.size = len(body)
        self._left = asyncio.Event()
        self._status = 0
        self._headers: dict[str, str] = {}
        self._error = b""
        self._rest = b""
        self._begun: dict[str, Any] | None = None
        self._done: list[Any] = []
        self._is_over = False
        self._number = -1
        self.id: str | None = None

    def scope(self, scope: Scope) -> Scope:
        """Returns the ASGI scope of the HTTP request."""
        return {**scope, "type": "http", "method": "POST"}

    async def receive(self) -> dict[str, Any]:
        """Returns the body, then a disconnect once the client is gone (ASGI `receive`)."""
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    def leave(self) -> None:
        """Signals that the client has left or cancelled."""
        self._left.set()

    # --- the response

    async def send(self, message: dict[str, Any]) -> None:
        """Takes a part of the HTTP response (ASGI `send`)."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            given = message["headers"]
            self._headers = {name.decode(): value.decode("latin-1") for name, value in given}
            return
        body: bytes = message.get("body", b"")
        if self._status >= _FIRST_ERROR_STATUS:
            self._error += body
        else:
            await self._frames(body)
        if self._status >= _FIRST_ERROR_STATUS and not message.get("more_body"):
            self._is_over = True
            text = error_event(self._status, object_in(self._error), self._headers, self._stream_id)
            await self._socket.tell(text)

    async def _frames(self, body: bytes) -> None:
        data = self._rest + body
        end = data.rfind(b"\n\n") + 2 if b"\n\n" in data else 0
        self._rest = data[end:]
        for text in data_in(data[:end]):
            await self._event(text)

    async def _event(self, text: str) -> None:
        kind = type_of(text)
        self._number += 1
        if kind == "response.created":
            self._begun = object_in(text).get("response")
            self.id = None if self._begun is None else self._begun.get("id")
        elif kind == "response.output_item.done":
            self._done.append(object_in(text).get("item"))
        elif kind == "error":
            event = object_in(text)
            text = error_event(_FAILED, {"error": event.get("error") or event}, {}, None)
        self._is_over = self._is_over or is_end(text)
        await self._socket.tell(_with_stream_id(text, self._stream_id))

    async def close(self) -> None:
        """Ends the turn; sends a final event if the stream had none."""
        if self._is_over:
            return
        self._is_over = True
        if self._begun is not None and self._left.is_set():
            body = {**self._begun, "status": "cancelled", "output": self._done}
            await self._event(data_in(end_event(body, self._number + 1))[0])
            return
        if self._left.is_set():
            code, why = "response_cancelled", "the response was cancelled"
        else:
            code, why = "server_error", "the response was interrupted"
        error = {"type": "server_error", "code": code, "message": why, "param": None}
        await self._socket.tell(error_event(_FAILED, {"error": error}, {}, self._stream_id))


def turn_body(event: Mapping[str, Any]) -> bytes:
    """Returns the body of the HTTP request that a message stands for."""
    body = {name: value for name, value in event.items() if name not in {"type", "stream_id"}}
    return dumps({**body, "stream": True})


def error_event(
    status: int, body: Mapping[str, Any], headers: Mapping[str, str], stream_id: str | None
) -> str:
    """Returns an HTTP error response as one WebSocket message."""
    event: dict[str, Any] = {"type": "error", "status": status, "error": body.get("error")}
    kept = {name: headers[name] for name in _ERROR_HEADERS if name in headers}
    if kept:
        event["headers"] = kept
    return _with_stream_id(dumps(event).decode(), stream_id)


def _with_stream_id(text: str, stream_id: str | None) -> str:
    if stream_id is None:
        return text
    return f'{text[:-1]},"stream_id":{dumps(stream_id).decode()}}}'


def object_in(text: str | bytes) -> dict[str, Any]:
    """Parses a JSON object; returns an empty one if the text is not an object."""
    try:
        found = loads(text)
    except InvalidInputError:
        found = None
    return found if isinstance(found, dict) else {}
