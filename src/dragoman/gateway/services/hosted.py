"""Files, uploads and batches: proxied to the provider of the front's API, streamed both ways.

The provider receives the operator's key and an allowlist of the client's headers. Responses pass
through unchanged, except for URLs that would bypass the gateway.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncIterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman.errors import ConfigError, DragomanError, InvalidRequest
from dragoman.gateway.endpoints import ANTHROPIC
from dragoman.gateway.http import Disconnected
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.services.batch_costs import BatchMeter, batch_meter, read_to_the_end
from dragoman.gateway.services.hosted_paths import (
    UPLOAD_URL,
    Allowed,
    address,
    allowed_path,
    passed_query,
)
from dragoman.gateway.services.hosted_providers import PERMISSION, check_allowed, hosted_place
from dragoman.gateway.services.hosted_urls import own_batches, own_upload_url
from dragoman.gateway.upstreams import Upstream
from dragoman.transport.protocol import HttpRequest, Reply, read_body

if TYPE_CHECKING:
    from dragoman.gateway.keys import Reservation

_MEBIBYTE = 1024 * 1024
MAX_UPLOAD = 512 * _MEBIBYTE
"""Maximum bytes of a streamed body, unless `max_body` is larger."""
_MAX_REWRITTEN = 16 * _MEBIBYTE  # of a response whose URLs are rewritten
_MAX_BUFFERED = _MEBIBYTE
_REQUEST_HEADERS = {
    b"content-type": "Content-Type",
    b"accept": "Accept",
    b"anthropic-beta": "anthropic-beta",
    b"x-goog-upload-protocol": "X-Goog-Upload-Protocol",
    b"x-goog-upload-command": "X-Goog-Upload-Command",
    b"x-goog-upload-offset": "X-Goog-Upload-Offset",
    b"x-goog-upload-file-name": "X-Goog-Upload-File-Name",
    b"x-goog-upload-header-content-length": "X-Goog-Upload-Header-Content-Length",
    b"x-goog-upload-header-content-type": "X-Goog-Upload-Header-Content-Type",
}
"""The client's headers that are sent to the provider, and their names there."""
_RESPONSE_HEADERS = (
    "content-type", "content-disposition", "retry-after", "request-id", "x-request-id",
    "x-goog-upload-status", "x-goog-upload-chunk-granularity", "x-goog-upload-size-received",
)  # fmt: skip
"""The provider's headers that are returned to the client."""
_UNSUPPORTED_MEDIA_TYPE = 415
_BODIES = frozenset({"POST", "PUT"})


async def hosted(inbound: InboundRequest) -> None:
    """Proxies a request to the provider."""
    allowed = _allowed(inbound)
    query = passed_query(inbound.query, allowed.path)
    upstream = hosted_place(inbound)
    inbound.route = upstream.name
    check_allowed(inbound, upstream.name)
    message = _message(inbound, upstream, allowed, query)
    keys, key = inbound.gateway.keys, inbound.key
    if keys is None or key is None or key.is_admin:
        await _passed(inbound, upstream, message)
        return
    held = await keys.reserve(key, f"{PERMISSION}{upstream.name}", 0, Decimal(0))
    try:
        await _passed(inbound, upstream, message)
    finally:
        await _settle(inbound, held, upstream.name)


async def _settle(inbound: InboundRequest, held: Reservation, place: str) -> None:
    """Counts the request; a batch is charged when its results are read."""
    from dragoman.gateway.keys import Spent

    keys = inbound.gateway.keys
    assert keys is not None  # noqa: S101 - the reservation came from it
    spent = Spent(cost=Decimal(0), model=f"{PERMISSION}{place}", route=place)
    await keys.settle(held, spent)


def _allowed(inbound: InboundRequest) -> Allowed:
    found = allowed_path(inbound.endpoint.front, inbound.call.path)
    if found is None:
        msg = "there is no files or batches endpoint at this path"
        raise InvalidRequest(msg, status=404)
    if inbound.method not in found.methods:
        inbound.call.more_headers["allow"] = ", ".join(sorted(found.methods))
        msg = f"this path supports only {', '.join(sorted(found.methods))}"
        raise InvalidRequest(msg, status=405)
    return found


def _message(
    inbound: InboundRequest, upstream: Upstream, allowed: Allowed, query: str
) -> HttpRequest:
    """Returns the request for the provider, without its body."""
    headers = {
        _REQUEST_HEADERS[name]: value.decode("latin-1")
        for name, value in inbound.call.headers
        if name in _REQUEST_HEADERS
    }
    try:
        message = upstream.deployment(None).request(
            "upload", headers=headers, method=inbound.method
        )
    except ConfigError:
        message = None
    front = inbound.endpoint.front
    url = None if message is None else address(front, message.url, allowed.path, query)
    if message is None or url is None:
        msg = f"the gateway can't proxy files or batches to {upstream.name}"
        raise InvalidRequest(msg, status=400, code="unsupported")
    return replace(message, url=url)


# --- to the provider


async def _passed(inbound: InboundRequest, upstream: Upstream, message: HttpRequest) -> None:
    upload = _Upload(inbound)
    reply = await upload.sent(upstream, message)
    try:
        await _answer(inbound, upstream, message, reply)
    finally:
        await reply.close()


class _Upload:
    """The body of a request: buffered if it is small, else streamed."""

    def __init__(self, inbound: InboundRequest) -> None:
        self._inbound = inbound
        self._failure: Exception | None = None

    async def sent(self, upstream: Upstream, message: HttpRequest) -> Reply:
        """Returns the provider's reply; errors in the client's body take precedence."""
        limits = upstream.place.timeouts
        message = await self._with_body(message)
        try:
            return await upstream.accept(message, limits, None)
        except DragomanError as error:
            failure = self._failure or error
        raise failure

    async def _with_body(self, message: HttpRequest) -> HttpRequest:
        inbound = self._inbound
        length = inbound.call.header(b"content-length")
        is_chunked = inbound.call.header(b"transfer-encoding") is not None
        size = int(length[:20]) if length is not None and length.isdigit() else 0
        if not is_chunked and size <= _MAX_BUFFERED:
            return replace(message, body=self._checked(await inbound.body(is_json=False)))
        self._checked(b"...")
        if inbound.call.header(b"content-encoding") not in {None, "identity"}:
            msg = "large files must be sent without a content-encoding"
            raise InvalidRequest(msg, status=_UNSUPPORTED_MEDIA_TYPE)
        headers = (
            message.headers if is_chunked else {**message.headers, "Content-Length": str(size)}
        )
        return replace(message, headers=headers, pieces=self._pieces())

    def _checked(self, body: bytes) -> bytes | None:
        if self._inbound.method in _BODIES:
            return body
        if body:
            msg = "this request must not have a body"
            raise InvalidRequest(msg, status=400)
        return None

    async def _pieces(self) -> AsyncIterator[bytes]:
        most = max(MAX_UPLOAD, self._inbound.gateway.config.server.max_body)
        try:
            async for piece in self._inbound.pieces(most):
                yield piece
        except (DragomanError, Disconnected) as error:
            self._failure = error  # the transport would report a broken connection instead
            raise


# --- back to the client


async def _answer(
    inbound: InboundRequest, upstream: Upstream, message: HttpRequest, reply: Reply
) -> None:
    headers = {name: reply.headers[name] for name in _RESPONSE_HEADERS if name in reply.headers}
    if UPLOAD_URL in reply.headers:
        headers[UPLOAD_URL] = own_upload_url(
            inbound, upstream, message.url, reply.headers[UPLOAD_URL]
        )
    if _has_result_urls(inbound, reply.headers):
        limit = upstream.place.timeouts.attempt
        body = own_batches(inbound, await read_body(reply, _MAX_REWRITTEN, limit))
        await inbound.call.respond(reply.status, headers, body)
        return
    if "content-length" in reply.headers and "content-encoding" not in reply.headers:
        headers["content-length"] = reply.headers["content-length"]
    meter = batch_meter(inbound, upstream, reply.status)
    await inbound.call.begin(headers, reply.status)
    if meter is None:
        async for piece in reply.chunks():
            await inbound.call.write(piece)
    else:
        await _send_results(inbound, upstream, message, reply, meter)
    await inbound.call.end()


async def _send_results(
    inbound: InboundRequest,
    upstream: Upstream,
    message: HttpRequest,
    reply: Reply,
    meter: BatchMeter,
) -> None:
    """Sends what may be the results of batches, and charges them."""
    try:
        async for piece in reply.chunks():
            meter.feed(piece)
            await inbound.call.write(piece)
        await meter.charge()
    except (CancelledError, Disconnected):
        if meter.may_have_results:
            read_to_the_end(inbound, upstream, message)
        raise


def _has_result_urls(inbound: InboundRequest, headers: Mapping[str, str]) -> bool:
    """Whether a response contains result URLs of batches (Anthropic)."""
    path = inbound.call.path
    if inbound.endpoint.front != ANTHROPIC or not path.startswith("/v1/messages/batches"):
        return False
    kind = headers.get("content-type", "")
    return not path.endswith("/results") and kind.partition(";")[0].strip() == "application/json"
