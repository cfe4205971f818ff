"""A request of the page to the API behind it: what a view is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from dragoman.errors import InvalidInputError, InvalidRequest
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.state import Gateway
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps, loads

if TYPE_CHECKING:
    from dragoman.gateway.page.state import Page

_MOST_FIELDS = 32
_LONGEST_NUMBER = 12


class Content(msgspec.Struct, frozen=True):
    """An answer that is no JSON: a file, or media."""

    body: bytes
    mime: str
    headers: Mapping[str, str] = EMPTY


class PageCall:
    """One request to the API: its path's names, its query, its body, and the way to answer."""

    def __init__(self, inbound: InboundRequest, names: Mapping[str, str]) -> None:
        self.inbound = inbound
        self.names = names
        """What stands in the path's places: `{"id": …}`."""

    @property
    def gateway(self) -> Gateway:
        """Everything else."""
        return self.inbound.gateway

    @property
    def page(self) -> Page:
        """What the page holds: its store, and the runs in progress."""
        from dragoman.gateway.page.state import page_of

        return page_of(self.gateway)

    # --- the query

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The fields of the query, each once."""
        try:
            text = self.inbound.query.decode("ascii")
            return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
        except ValueError:
            pass
        msg = "the query of the request can't be read"
        raise InvalidRequest(msg, status=400)

    def number(self, name: str, default: int, most: int) -> int:
        """A number in the query, no larger than `most`."""
        text = self.query.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER):
            msg = f"`{name}` is a number in the query"
            raise InvalidRequest(msg, status=400)
        return min(int(text), most)

    # --- the body

    async def body(self) -> bytes:
        """The body as it came, within the gateway's limits."""
        return await self.inbound.body()

    async def json(self) -> dict[str, Any]:
        """The body, a JSON object."""
        try:
            found = loads(await self.body())
        except InvalidInputError:
            found = None
        if not isinstance(found, dict):
            msg = "the body of the request is no JSON object"
            raise InvalidRequest(msg, status=400)
        return found

    # --- an answer that comes in pieces (a view that uses these returns None)

    async def begin_events(self) -> None:
        """Begin an answer of server-sent events."""
        await self.inbound.call.begin(
            {"content-type": "text/event-stream; charset=utf-8", **HEADERS}
        )

    async def event(self, event: Any) -> None:
        """Send an event."""
        await self.inbound.call.write(b"data: " + dumps(event) + b"\n\n")

    async def remark(self) -> None:
        """Send a comment, which keeps the connection open and says nothing."""
        await self.inbound.call.write(b": \n\n")

    async def end_events(self) -> None:
        """End the answer."""
        await self.inbound.call.end()


View = Callable[[PageCall], Awaitable[Any]]
"""Answers a request: returns what is sent as JSON, a `Content`, or None when it has answered."""

HEADERS: Mapping[str, str] = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
}
"""Of every answer: it is for the page's script, and no page of its own."""


def field(body: Mapping[str, Any], name: str, kind: type | tuple[type, ...], default: Any) -> Any:
    """A field of a body; absent or null, the default. Raises where it is of another kind."""
    found = body.get(name)
    if found is None:
        return default
    is_wrong = isinstance(found, bool) and kind is not bool
    if is_wrong or not isinstance(found, kind):
        msg = f"`{name}` is of another kind in the body of the request"
        raise InvalidRequest(msg, status=400)
    return found
