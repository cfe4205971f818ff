"""Requests of the page to a running gateway, as its script makes them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple

from tests.gateway.running import Serving


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: Any


def ask(
    serving: Serving, path: str, body: Any = None, *, method: str | None = None,
    key: str | None = None, header: str | None = "1",
) -> Answer:  # fmt: skip
    """Ask the API behind the page."""
    headers = {"content-type": "application/json"}
    if header is not None:
        headers["x-dragoman-page"] = header
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    asked = urllib.request.Request(  # noqa: S310 - our own server
        f"{serving.url}/ui/api/{path}", data, headers, method=method
    )
    try:
        with urllib.request.urlopen(asked, timeout=60) as reply:  # noqa: S310 - as above
            return Answer(reply.status, json.loads(reply.read() or b"{}"))
    except urllib.error.HTTPError as error:
        return Answer(error.code, json.loads(error.read() or b"{}"))
