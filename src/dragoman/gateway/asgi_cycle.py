"""A request and its response as ASGI has them: messages that are received and sent."""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from typing import Any

from dragoman.gateway.connection import Flow

NO_BODY = frozenset({204, 304})
HEADER_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""A header's name: a token of RFC 9110."""
HEADER_VALUE = re.compile(rb"[^\x00-\x08\x0a-\x1f\x7f]*")
"""A header's value: no control character but the tab."""
_KNOWN = {int(status): status.phrase.encode() for status in HTTPStatus}
STATUS_LINE = {
    status: b"HTTP/1.1 %d %b\r\n" % (status, _KNOWN.get(status, b"")) for status in range(100, 600)
}
_FAILED = b"Internal Server Error"


class AsgiCycle:
    """What an ASGI application is called with. The subclass sets the fields."""

    scope: Any
    transport: asyncio.Transport
    flow: Flow
    default_headers: list[tuple[bytes, bytes]]
    on_response: Any
    keep_alive: bool
    waiting_for_100_continue: bool
    body: Any
    # These change for few requests.
    disconnected = False
    more_body = True
    response_started = False
    response_complete = False
    chunked_encoding: bool | None = None
    """None until the head is sent, and for a response that has no body."""
    expected_content_length = 0

    @property
    def message_event(self) -> asyncio.Event:
        """Set when `receive` has something to return."""
        raise NotImplementedError

    def complete(self) -> None:
        """Called when the response is sent."""
        raise NotImplementedError

    async def run(self, app: Any) -> None:
        """Call the application; what it doesn't answer is answered with 500, or cut off."""
        try:
            await app(self.scope, self.receive, self.send)
        except BaseException as error:
            await self._give_up()
            if not isinstance(error, Exception):
                raise
        else:
            if not self.response_complete and not self.disconnected:
                await self._give_up()
        finally:
            self.on_response = lambda: None  # the connection may have another request by now

    async def _give_up(self) -> None:
        if self.response_started:
            self.transport.close()
            return
        length = str(len(_FAILED)).encode()
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", length),
                   (b"connection", b"close")]  # fmt: skip
        await self.send({"type": "http.response.start", "status": 500, "headers": headers})
        await self.send({"type": "http.response.body", "body": _FAILED})

    # --- receiving

    async def receive(self) -> dict[str, Any]:
        """The next message of the client: a part of the body, or that it is gone."""
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        if not self.disconnected and not self.response_complete:
            self.flow.resume_reading()
            await self.message_event.wait()
            self.message_event.clear()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body, self.body = bytes(self.body), b""
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    # --- sending

    async def send(self, message: Any) -> None:
        """Send the head of the response, or a part of its body."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        wanted = "http.response.body" if self.response_started else "http.response.start"
        if self.response_complete or message["type"] != wanted:
            msg = f"an ASGI message came out of turn: {message['type']}"
            raise RuntimeError(msg)
        if self.response_started:
            self._send_body(message.get("body", b""), is_last=not message.get("more_body", False))
        else:
            self._send_head(message["status"], message.get("headers", ()))

    def _send_head(self, status: int, headers: Any) -> None:
        lines = [STATUS_LINE[status]]
        said_close = False
        for given, value in (*self.default_headers, *headers):
            lines.append(header_line(given, value))
            name = given.lower()
            if name == b"content-length" and self.chunked_encoding is None:
                self.chunked_encoding, self.expected_content_length = False, int(value)
            elif name == b"transfer-encoding" and value.lower() == b"chunked":
                self.chunked_encoding, self.expected_content_length = True, 0
            elif name == b"connection":
                said_close |= b"close" in [each.strip() for each in value.lower().split(b",")]
        self.keep_alive = self.keep_alive and not said_close
        if not self.keep_alive and not said_close:
            lines.append(b"connection: close\r\n")
        has_body = self.scope["method"] != "HEAD" and status not in NO_BODY
        if self.chunked_encoding is None and has_body:
            self.chunked_encoding = True
            lines.append(b"transfer-encoding: chunked\r\n")
        self.response_started, self.waiting_for_100_continue = True, False
        self.transport.write(b"".join((*lines, b"\r\n")))

    def _send_body(self, body: bytes, *, is_last: bool) -> None:
        if self.scope["method"] == "HEAD":
            self.expected_content_length = 0
        elif self.chunked_encoding:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            self.transport.write(chunk + b"0\r\n\r\n" if is_last else chunk)
        else:
            self.expected_content_length -= len(body)
            if self.expected_content_length < 0:
                msg = "the body is longer than its content-length"
                raise RuntimeError(msg)
            self.transport.write(body)
        if is_last:
            if self.expected_content_length:
                msg = "the body is shorter than its content-length"
                raise RuntimeError(msg)
            self.complete()


def header_line(name: bytes, value: bytes) -> bytes:
    """The line of a header; raises if its name or its value would end it."""
    if not HEADER_NAME.fullmatch(name):
        msg = "the name of a header is invalid"
        raise RuntimeError(msg)
    if not HEADER_VALUE.fullmatch(value):
        msg = "the value of a header is invalid"
        raise RuntimeError(msg)
    return b"%b: %b\r\n" % (name.lower(), value)
