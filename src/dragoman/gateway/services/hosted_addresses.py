"""Addresses in a provider's answers that lead past the gateway, as addresses of our own.

A client would send its own key to the provider there, which is none of the provider's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from dragoman.errors import InvalidInputError, ServerError
from dragoman.gateway.guard import presented_key
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.services.hosted_places import PLACE_HEADER
from dragoman.gateway.upstreams import Upstream
from dragoman.model.jsontext import dumps, loads

_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](?::[0-9]{1,5})?")
_UPLOADING = ("upload_id", "upload_protocol")
_RESULTS = "results_url"
_BAD_GATEWAY = 502


def own_url(inbound: InboundRequest, path: str) -> str:
    """The address of a path here, as the client reached us."""
    host = inbound.call.header(b"host") or ""
    prefix = inbound.gateway.config.server.path_prefix
    if not _HOST.fullmatch(host):
        return f"{prefix}{path}"
    return f"{inbound.call.scheme}://{host}{prefix}{path}"


def own_upload_url(inbound: InboundRequest, upstream: Upstream, asked: str, told: str) -> str:
    """Where a client sends the content of a file that it announced (Gemini).

    Nothing of the provider's address is kept but the upload's id. Clients show no key there: with
    keys, their own stands in the query, as it does at Google.
    """
    here, there = urlsplit(asked), urlsplit(told)
    upload = dict(parse_qsl(there.query))
    if (there.netloc, there.path) != (here.netloc, here.path) or not upload.get("upload_id"):
        msg = "the provider wants the file at another address, which is not passed on"
        raise ServerError(msg, status=_BAD_GATEWAY, retryable=False)
    query = {name: upload[name] for name in _UPLOADING if name in upload}
    query["place"] = upstream.name
    if inbound.gateway.keys is not None:
        query["key"] = presented_key(inbound.call, inbound.query) or ""
    return own_url(inbound, f"{inbound.call.path}?{urlencode(query)}")


def own_batches(inbound: InboundRequest, body: bytes) -> bytes:
    """An answer about batches (Anthropic), with the addresses of their results here."""
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
    named = inbound.call.header(PLACE_HEADER) or dict(_query(inbound)).get("place")
    place = "" if named is None else f"?{urlencode({'place': named})}"
    return own_url(inbound, f"/v1/messages/batches/{quote(str(batch), safe='')}/results{place}")


def _query(inbound: InboundRequest) -> list[tuple[str, str]]:
    return parse_qsl(inbound.query.decode("latin-1"))
