"""What views of the page's API receive and return, and the form of its errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from dragoman.errors import DragomanError, InvalidInputError, InvalidRequest
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.large_bodies import translated_aside
from dragoman.gateway.state import Gateway
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps, loads
from dragoman.wire.error_reporting import provider_sentence

if TYPE_CHECKING:
    from dragoman.gateway.page.state import Page


# --- errors


def error_view(error: DragomanError) -> dict[str, str]:
    """The message, which quotes no content, and what the provider said, which may (`detail`).

    Whoever may see the page may see what concerns the operator's account.
    """
    view = {"message": str(error), "kind": type(error).__name__}
    if (detail := provider_sentence(error, is_for_operator=True)) is not None:
        view["detail"] = detail
    return view


# --- calls

_MAX_FIELDS = 32
_MAX_DIGITS = 12


class Content(msgspec.Struct, frozen=True):
    """A response that is not JSON: a file or media."""

    body: bytes
    mime: str
    headers: Mapping[str, str] = EMPTY


class PageCall:
    """One request to the API: path parameters, query, body, and methods to stream a response."""

    def __init__(self, inbound: InboundRequest, names: Mapping[str, str]) -> None:
        self.inbound = inbound
        self.names = names
        """The path parameters, such as `{"id": …}`."""

    @property
    def gateway(self) -> Gateway:
        """The gateway."""
        return self.inbound.gateway

    @property
    def page(self) -> Page:
        """The page's state: its store, and the runs in progress."""
        from dragoman.gateway.page.state import page_of

        return page_of(self.gateway)

    # --- the query

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The query parameters; of repeated ones, the last."""
        try:
            text = self.inbound.query.decode("ascii")
            return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS))
        except ValueError:
            pass
        msg = "the query string can't be parsed"
        raise InvalidRequest(msg, status=400)

    def number(self, name: str, default: int, most: int) -> int:
        """Returns a number from the query, capped at `most`."""
        text = self.query.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
            msg = f"query parameter `{name}` must be a whole number"
            raise InvalidRequest(msg, status=400)
        return min(int(text), most)

    # --- the body

    async def body(self, *, is_json: bool = False) -> bytes:
        """Returns the raw body, within the gateway's limits."""
        return await self.inbound.body(is_json=is_json)

    async def json(self) -> dict[str, Any]:
        """Returns the body as a JSON object."""
        try:
            body = await self.body(is_json=True)
            found = await translated_aside(body, loads, body)
        except InvalidInputError:
            found = None
        if not isinstance(found, dict):
            msg = "the request body must be a JSON object"
            raise InvalidRequest(msg, status=400)
        return found

    # --- streamed responses (a view that uses these returns None)

    async def begin_events(self) -> None:
        """Starts a response of server-sent events."""
        await self.inbound.call.begin(
            {"content-type": "text/event-stream; charset=utf-8", **HEADERS}
        )

    async def event(self, event: Any) -> None:
        """Sends an event."""
        await self.inbound.call.write(b"data: " + dumps(event) + b"\n\n")

    async def keep_alive(self) -> None:
        """Sends a comment, which keeps the connection open."""
        await self.inbound.call.write(b": \n\n")

    async def end_events(self) -> None:
        """Ends the response."""
        await self.inbound.call.end()


View = Callable[[PageCall], Awaitable[Any]]
"""Handles a request: returns a JSON value, a `Content`, or None if it sent its own response."""

HEADERS: Mapping[str, str] = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
}
"""Headers of every response: only the page's script may use it, and it never renders as a page."""


def field(body: Mapping[str, Any], name: str, kind: type | tuple[type, ...], default: Any) -> Any:
    """Returns a field of a body, or the default if absent or null; raises if its type is wrong."""
    found = body.get(name)
    if found is None:
        return default
    is_wrong = isinstance(found, bool) and kind is not bool
    if is_wrong or not isinstance(found, kind):
        msg = f"`{name}` has the wrong type in the request body"
        raise InvalidRequest(msg, status=400)
    return found
