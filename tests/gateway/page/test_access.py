"""Access to the page's API: attacks by name, each with its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from dragoman.errors import PermissionDenied
from dragoman.gateway.config.settings import GatewayConfig, ServerSettings
from dragoman.gateway.keys import Keys
from dragoman.gateway.page.api import check
from tests.gateway.page.pages import ECHO, PAGE, TestPage, page_at
from tests.gateway.page.real import gateway_at
from tests.gateway.running import running


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestPage]:
    """A page for tests that don't change its state."""
    with page_at(f"sqlite:///{tmp_path_factory.mktemp('page')}/chats.db") as made:
        yield made


def sent(page: TestPage, path: str = "conversations", **options: Any) -> httpx.Response:
    """A request that another site makes a browser send."""
    given: dict[str, Any] = {"method": "POST", "url": path, **options}
    return page.stranger.request(**given)


BARE: dict[str, dict[str, Any]] = {
    "a simple form POST": {"data": {"user": "Ana"}},
    "a form with a file": {"files": {"user": b"Ana"}},
    "a form that sends JSON as text": {"content": b"{}", "headers": {"content-type": "text/plain"}},
    "a beacon of JSON": {
        "content": b"{}", "headers": {"content-type": "application/json", "origin": "null"},
    },
    "a body without a type": {"content": b"{}"},
    "a body of an invented type": {"content": b"{}", "headers": {"content-type": "x/y;json"}},
    "no header of the page's": {"json": {}},
    "the page's header with another value": {"json": {}, "headers": {"x-dragoman-page": "0"}},
    "an image": {"method": "GET"},
    "an event stream": {"method": "GET", "url": "traffic/live",
                        "headers": {"accept": "text/event-stream"}},
    "an export as a download": {"method": "GET", "url": f"conversations/{'0' * 40}/export"},
}  # fmt: skip
HEADERS: dict[str, dict[str, str]] = {
    "a foreign Origin": {"origin": "https://evil.example"},
    "the Origin of a sandbox": {"origin": "null"},
    "another port of this machine": {"origin": "http://127.0.0.1:1"},
    "Sec-Fetch-Site cross-site": {"sec-fetch-site": "cross-site"},
    "Sec-Fetch-Site same-site": {"sec-fetch-site": "same-site"},
    "a link that is followed": {"sec-fetch-mode": "navigate"},
    "DNS rebinding": {"host": "evil.example"},
    "DNS rebinding with its Origin": {"host": "evil.example", "origin": "http://evil.example"},
    "a host that starts like this machine": {"host": "127.0.0.1.evil.example"},
    "a host that ends like this machine": {"host": "evil-localhost"},
    "a host with a user before it": {"host": "localhost@evil.example"},
    "an Origin with a user before it": {"origin": "http://127.0.0.1@evil.example"},
    "an Origin that is no URL": {"origin": "http://[::1"},
}
ATTACKS: dict[str, dict[str, Any]] = BARE | {
    name: {"json": {}, "headers": {**PAGE, **more}} for name, more in HEADERS.items()
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_a_stranger_makes_a_browser_send_is_refused(page: TestPage, attack: str) -> None:
    """The request has no effect, and the error reveals nothing."""
    answer = sent(page, **ATTACKS[attack])
    assert answer.status_code == 403
    assert set(answer.json()["error"]) == {"message", "kind"}
    assert page.read("conversations")["items"] == []


@pytest.mark.parametrize("path", ["traffic/live", "talk", "conversations"])
def test_no_socket_can_be_opened(page: TestPage, path: str) -> None:
    """A WebSocket, which browsers open across origins, is refused wherever it points."""
    headers = {
        "connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", "origin": "https://evil.example",
    }  # fmt: skip
    assert sent(page, path, method="GET", headers=headers).status_code in {403, 404, 426}


@pytest.mark.parametrize("peer", ["192.0.2.7", "2001:db8::1", "10.0.0.2", "unknown"])
def test_without_keys_only_this_machine_is_let_in(peer: str) -> None:
    """Another machine needs an admin key, whatever its headers say."""
    headers = {b"x-dragoman-page": "1", b"host": "127.0.0.1:8421", b"x-forwarded-for": "127.0.0.1"}
    inbound: Any = SimpleNamespace(
        call=SimpleNamespace(header=headers.get), gateway=SimpleNamespace(keys=None), peer=peer
    )
    with pytest.raises(PermissionDenied):
        check(inbound)


def test_an_import_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    """A file larger than the gateway's limit for bodies stores nothing."""
    with page_at(f"sqlite:///{tmp_path}/chats.db", max_body=100_000) as small:
        line = b'{"messages": [{"role": "user", "content": "x"}]}\n'
        assert small.ask("POST", "import?name=x.jsonl", content=line * 5000).status_code == 413
        assert small.read("conversations")["items"] == []


def test_a_browser_that_asks_first_is_told_no(page: TestPage) -> None:
    """A CORS preflight from another origin is denied."""
    headers = {
        "origin": "https://evil.example", "access-control-request-method": "POST",
        "access-control-request-headers": "x-dragoman-page",
    }  # fmt: skip
    answer = sent(page, method="OPTIONS", headers=headers)
    assert answer.status_code in {403, 405}
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_the_pages_own_requests_are_served(page: TestPage) -> None:
    """Requests with the headers of a same-origin browser request are served."""
    headers = {"origin": page.url, "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
    assert page.ask("GET", "info", headers=headers).status_code == 200


def test_answers_are_for_the_script_alone(page: TestPage) -> None:
    """No response can render as a page, be cached by a proxy, or be sniffed as another type."""
    for path in ("info", "conversations/nothing"):
        headers = page.ask("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "sandbox" in headers["content-security-policy"]
        assert headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    "path",
    [
        "nothing", "conversations/", "conversations//sent", "talk", "info/more", "../v1/models",
        "conversations/x/y/z", "",
    ],
)  # fmt: skip
def test_paths_that_are_none_say_so_in_the_pages_form(page: TestPage, path: str) -> None:
    """An unknown path, or another method, is an error in JSON."""
    answer = page.ask("DELETE", path)
    assert answer.status_code in {404, 405}
    assert answer.json()["error"].keys() >= {"message"}


HOSTILE = (
    "x", "a" * 40, "A" * 40, "0" * 39, "0" * 41, "%2e%2e%2fetc", "'; DROP TABLE heads; --",
    "é" * 20, "0" * 4000, "%00", "0" * 40,
)  # fmt: skip


@pytest.mark.parametrize(
    ("method", "rest"),
    [
        ("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/fork"), ("POST", "/title"),
        ("GET", "/export"), ("GET", "/sent?message=x"),
    ],
)  # fmt: skip
def test_a_hostile_id_is_nothing(page: TestPage, method: str, rest: str) -> None:
    """Any id that is not a conversation's gives a 404."""
    body: dict[str, Any] = {} if method in {"GET", "DELETE"} else {"json": {}}
    for id in HOSTILE:
        answer = page.ask(method, f"conversations/{id}{rest}", **body)
        assert answer.status_code == 404, id


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("talk", b"{"), ("talk", b"[]"), ("talk", b"\xff"), ("talk", b'{"model": 7}'),
        ("talk", b'{"model": "echo:"}'), ("talk", b'{"model": "echo:", "text": []}'),
        ("talk", b'{"model": "echo:", "text": "x", "settings": []}'),
        ("talk", b'{"model": "echo:", "text": "x", "settings": {"temperature": "hot"}}'),
        ("talk", b'{"model": "echo:", "text": "x", "attachments": [7]}'),
        ("talk", b'{"model": "echo:", "text": "x", "attachments": [{"data": "?"}]}'),
        ("talk", b'{"model": "echo:", "retry": true}'), ("forget", b"{}"),
        ("forget", b'{"user": true}'),
    ],
)  # fmt: skip
def test_a_broken_body_is_told_of_and_not_quoted(page: TestPage, path: str, body: bytes) -> None:
    """A malformed body gives a 400."""
    answer = page.ask("POST", path, content=body)
    assert answer.status_code == 400
    assert "hot" not in answer.text
    assert page.read("conversations")["items"] == []


@pytest.mark.parametrize("query", ["limit=x", "limit=-1", "limit=1e9", "cursor=%00", "cursor=AAAA"])
def test_a_broken_query_is_told_of(page: TestPage, query: str) -> None:
    """Malformed numbers and cursors give a 400."""
    assert page.ask("GET", f"conversations?{query}").status_code == 400


def test_with_keys_only_an_administrators_is_let_in(tmp_path: Path) -> None:
    """Without a key 401, with a plain key 403; an admin key may do everything."""
    url = f"sqlite:///{tmp_path}/keys.db"

    async def made() -> tuple[str, str]:
        keys = await Keys.open(url)
        _, plain = await keys.create(name="plain")
        _, admin = await keys.create(name="admin", is_admin=True)
        await keys.close()
        return plain, admin

    plain, admin = asyncio.run(made())
    server = ServerSettings(history=f"sqlite:///{tmp_path}/chats.db", keys=url)
    config = GatewayConfig(places={ECHO.name: ECHO}, server=server)
    with running(config) as serving:
        serving.gateway.keys = asyncio.run(Keys.open(url))
        statuses = [
            httpx.get(f"{serving.url}/ui/api/info", headers={**PAGE, **shown}).status_code
            for shown in ({}, _bearer("nonsense"), _bearer(plain), _bearer(admin))
        ]
        foreign = {**PAGE, **_bearer(admin), "origin": "https://evil.example"}
        statuses.append(httpx.get(f"{serving.url}/ui/api/info", headers=foreign).status_code)
    assert statuses == [401, 401, 403, 200, 403]


def _bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_page_behind_a_proxy_that_changes_the_host_needs_an_allowed_host(tmp_path: Path) -> None:
    """The origin is that of the proxy: it is accepted if the configuration names its host."""
    with gateway_at(tmp_path, has_keys=True) as (page, secret):
        headers = {"origin": "https://llm.example", "authorization": f"Bearer {secret}"}
        assert page.ask("POST", "conversations", headers=headers, json={}).status_code == 403
        config = page.gateway.config
        server = replace(config.server, allowed_hosts=("llm.example",))
        page.gateway.config = replace(config, server=server)
        assert page.ask("POST", "conversations", headers=headers, json={}).status_code == 200
        others = headers | {"origin": "https://evil.example"}
        assert page.ask("POST", "conversations", headers=others, json={}).status_code == 403
