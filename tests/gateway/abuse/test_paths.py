"""Unusual paths, methods and hosts are rejected in the front's form."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.gateway.abuse.stage import CANARY, Stage, parsed, refused, request
from tests.gateway.client_requests import body_for, path_for

pytestmark = pytest.mark.whole

PATHS: dict[str, Callable[[str], str]] = {
    "double slash": lambda path: f"/{path}",
    "trailing slash": lambda path: f"{path}/",
    "dots": lambda path: f"/x/..{path}",
    "encoded dots": lambda path: f"/x/%2e%2e{path}",
    "encoded slashes": lambda path: "/" + path[1:].replace("/", "%252f"),
    "upper case": str.upper,
    "encoded NUL": lambda path: f"{path}%00",
    "encoded CR LF": lambda path: f"{path}%0d%0ax:%20y",
    "broken escape": lambda path: f"{path}%zz",
    "path parameter": lambda path: f"{path};x=1",
    "something below": lambda path: f"{path}/nothing/../../etc/passwd",
    "very long": lambda path: f"{path}{'a' * 20_000}",
    "bytes": lambda path: f"{path}\xff\xfe",
    "backslashes": lambda path: f"/{path[1:]}".replace("/v", "\\v").replace("/a", "\\a"),
    "NUL": lambda path: f"{path}\0",
}
SERVED: dict[str, Callable[[str], str]] = {
    "absolute form": lambda path: f"http://127.0.0.1{path}",
    "fragment": lambda path: f"{path}#x",
    "odd query": lambda path: f"{path}{'&' if '?' in path else '?'}%ff=%00&=&&;",
}
METHODS = ("GET", "OPTIONS", "TRACE", "CONNECT", "PUT", "DELETE", "PATCH", "LINK", "MKCOL")
NO_METHODS = ("PRI", "FOO", "post", "X" * 3000, "G\0T")


def _body(front: str) -> bytes:
    return json.dumps(body_for(front, CANARY)).encode()


@pytest.mark.parametrize("kind", PATHS)
def test_odd_paths_are_rejected(stage: Stage, front: str, kind: str) -> None:
    """A path that only resembles an endpoint's leads nowhere."""
    asked = len(stage.upstream.asked)
    [answer] = stage.send(request(PATHS[kind](path_for(front)), _body(front))).answers
    if kind in {"bytes", "backslashes", "NUL", "encoded slashes"}:
        assert answer.status in {400, 404}
        assert answer.json["error"]  # the path is unknown
    else:
        refused(front, answer, 404, 405, 414)
    assert len(stage.upstream.asked) == asked
    stage.serves(front)


@pytest.mark.parametrize("kind", SERVED)
def test_unusual_but_valid_paths_are_served(stage: Stage, front: str, kind: str) -> None:
    """Whatever HTTP allows."""
    [answer] = stage.send(request(SERVED[kind](path_for(front)), _body(front))).answers
    assert answer.status == 200, answer


@pytest.mark.parametrize("method", METHODS)
def test_wrong_methods_are_rejected(stage: Stage, front: str, method: str) -> None:
    """With a 405 that lists the allowed ones."""
    [answer] = stage.send(request(path_for(front), _body(front), method=method)).answers
    refused(front, answer, 405)
    assert "POST" in answer.headers["allow"]
    assert CANARY.encode() not in answer.body
    stage.serves(front)


@pytest.mark.parametrize("method", NO_METHODS)
def test_unknown_methods_are_rejected(stage: Stage, front: str, method: str) -> None:
    """They are malformed requests."""
    [answer] = stage.send(request(path_for(front), _body(front), method=method)).answers
    assert answer.status == 400
    assert answer.json["error"]
    stage.serves(front)


def test_head_has_no_body(stage: Stage, front: str) -> None:
    """A rejected HEAD has the headers of its error, and no body."""
    raw = stage.send(request(path_for(front), method="HEAD"))
    head, _, body = raw.rest.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 405 ")
    assert not body


HOSTS = {
    "foreign": [("host", "evil.example")],
    "rebinding": [("host", "127.0.0.1.evil.example:8421")],
    "user": [("host", "127.0.0.1@evil.example")],
    "empty": [("host", "")],
    "garbage": [("host", "[::1")],
    "decimal": [("host", "2130706433.evil.example")],
    "two": [("host", "127.0.0.1"), ("host", "evil.example")],
    "two, ours last": [("host", "evil.example"), ("host", "127.0.0.1")],
    "origin": [("origin", "http://evil.example")],
    "null origin": [("origin", "null")],
    "origin of another port": [("origin", "http://127.0.0.1:1")],
    "origin of a file": [("origin", "file://")],
    "two origins": [("origin", "http://127.0.0.1"), ("origin", "http://evil.example")],
}


@pytest.mark.parametrize("kind", HOSTS)
def test_foreign_hosts_and_origins_are_rejected(stage: Stage, front: str, kind: str) -> None:
    """Without keys, a web page can't use the gateway, whatever its headers."""
    [answer] = stage.send(request(path_for(front), _body(front), *HOSTS[kind])).answers
    refused(front, answer, 400, 403)
    stage.serves(front)


UPGRADES = {
    "h2c": [("upgrade", "h2c"), ("connection", "close, Upgrade, HTTP2-Settings"),
            ("http2-settings", "AAMAAABkAARAAAAAAAIAAAAA")],
    "websocket": [("upgrade", "websocket"), ("connection", "close, upgrade")],
    "unknown": [("upgrade", "TLS/1.0, HTTP/9"), ("connection", "upgrade, close")],
    "not in connection": [("upgrade", "websocket")],
    "two": [("upgrade", "h2c"), ("upgrade", "websocket"), ("connection", "close, upgrade")],
}  # fmt: skip


@pytest.mark.parametrize("kind", UPGRADES)
def test_other_upgrades_are_ignored(stage: Stage, front: str, kind: str) -> None:
    """A request with an upgrade header is served with its body, as Java's client needs it."""
    [answer] = stage.send(request(path_for(front), _body(front), *UPGRADES[kind])).answers
    assert answer.status == 200, answer


def test_an_upgrade_in_pieces_is_ignored(stage: Stage, front: str) -> None:
    """In packets of any size; the connection stays usable."""
    head = [("upgrade", "h2c"), ("connection", "upgrade")]
    data = request(path_for(front), _body(front), *head)
    for size in (1, 7, len(data) - len(_body(front))):
        with stage.connect() as connection:
            for begin in range(0, len(data), size):
                connection.sendall(data[begin : begin + size])
            connection.sendall(request("/health", method="GET"))
            received = b""
            while piece := connection.recv(65536):
                received += piece
        first, second = parsed(received).answers
        assert (first.status, second.status) == (200, 200), first
        assert b'"version"' in second.body


PIPELINED = {
    "h2c": (400, [("upgrade", "h2c"), ("connection", "upgrade")]),
    "websocket": (400, [("upgrade", "websocket"), ("connection", "upgrade"),
                        ("sec-websocket-version", "13"),
                        ("sec-websocket-key", "MTIzNDU2Nzg5MDEyMzQ1Ng==")]),
    "no upgrade": (500, []),
}  # fmt: skip


@pytest.mark.parametrize("kind", PIPELINED)
def test_pipelined_requests_are_parsed_without_recursion(stage: Stage, kind: str) -> None:
    """Any number of requests in one packet; an upgrade must wait for the earlier responses."""
    number, headers = PIPELINED[kind]
    one = request("/health", b"", ("connection", "keep-alive"), method="GET")
    if headers:
        one = request("/health", b"", *headers, ("content-length", "0"), method="GET")
    found = stage.send(one * number + request("/health", method="GET"))
    if not headers:
        assert [answer.status for answer in found.answers] == [200] * (number + 1)
    assert len(found.answers) <= number + 1
    assert not [line for line in stage.running.screen if "Recursion" in line or "File " in line]
    stage.serves()
