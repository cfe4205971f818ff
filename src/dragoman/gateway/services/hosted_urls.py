"""Rewrites URLs in a provider's responses that would bypass the gateway.

Otherwise, a client would send its gateway key directly to the provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from dragoman.errors import InvalidInputError, ServerError
from dragoman.gateway.guard import presented_key
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.services.hosted_providers import PROVIDER_HEADER
from dragoman.gateway.upstreams import Upstream
from dragoman.model.jsontext import dumps, loads

_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](?::[0-9]{1,5})?")
_UPLOADING = ("upload_id", "upload_protocol")
_RESULTS = "results_url"
_BAD_GATEWAY = 502


def own_url(inbound: InboundRequest, path: str) -> str:
    """Returns the gateway's URL for a path, with the host that the client used."""
    host = inbound.call.header(b"host") or ""
    prefix = inbound.gateway.config.server.path_prefix
    if not _HOST.fullmatch(host):
        return f"{prefix}{path}"
    return f"{inbound.call.scheme}://{host}{prefix}{path}"


def own_upload_url(inbound: InboundRequest, upstream: Upstream, asked: str, told: str) -> str:
    """Returns the gateway's URL to which a client uploads a file's content (Gemini).

    Only the upload id of the provider's URL is kept. Clients send no key header to this URL, so
    their key is part of the query if the gateway has keys, as at Google.
    """
    here, there = urlsplit(asked), urlsplit(told)
    upload = dict(parse_qsl(there.query))
    if (there.netloc, there.path) != (here.netloc, here.path) or not upload.get("upload_id"):
        msg = "the provider returned an unexpected upload URL, which is not passed on"
        raise ServerError(msg, status=_BAD_GATEWAY, retryable=False)
    query = {name: upload[name] for name in _UPLOADING if name in upload}
    query["provider"] = upstream.name
    if inbound.gateway.keys is not None:
        query["key"] = presented_key(inbound.call, inbound.query) or ""
    return own_url(inbound, f"{inbound.call.path}?{urlencode(query)}")


def own_batches(inbound: InboundRequest, body: bytes) -> bytes:
    """Rewrites the result URLs in a response about batches (Anthropic)."""
    try:
        told = loads(body)
    except InvalidInputError:
        return body
    if not isinstance(told, dict):
        return body
    for batch in _batches(told):
        if isinstance(batch.get(_RESULTS), str):
            batch[_RESULTS] = _results_url(inbound, batch.get("id"))
    return dumps(told)


def _batches(told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    listed = told.get("data")
    for each in (told, *(listed if isinstance(listed, list) else ())):
        if isinstance(each, dict):
            yield each


def _results_url(inbound: InboundRequest, batch: object) -> str:
    named = inbound.call.header(PROVIDER_HEADER) or dict(_query(inbound)).get("provider")
    place = "" if named is None else f"?{urlencode({'provider': named})}"
    return own_url(inbound, f"/v1/messages/batches/{quote(str(batch), safe='')}/results{place}")


def _query(inbound: InboundRequest) -> list[tuple[str, str]]:
    return parse_qsl(inbound.query.decode("latin-1"))
