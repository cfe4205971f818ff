"""The page behind a reverse proxy under a path prefix, which the proxy removes or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.gateway.page.browsing import choose_model, opened, until
from tests.gateway.page.pages import page_at, url_of
from tests.gateway.running import upstream

pytestmark = pytest.mark.slow

_PREFIX = "/llm"
_WAYS: dict[str, dict[str, Any]] = {
    "removes the prefix": {},
    "keeps the prefix": {"path_prefix": _PREFIX},
}
_DROPPED = frozenset({"host", "transfer-encoding", "content-length", "content-encoding"})


def _proxy(to: str, way: str) -> Any:
    """A reverse proxy that streams, as nginx and Caddy do."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if not request.path.startswith(f"{_PREFIX}/"):
            return web.Response(status=404)
        path = request.raw_path
        if way == "removes the prefix":
            path = path.removeprefix(_PREFIX)
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _DROPPED}
        headers["host"] = request.headers["host"]
        async with (
            aiohttp.ClientSession(auto_decompress=True) as session,
            session.request(
                request.method, f"{to}{path}", headers=headers, data=await request.read(),
                allow_redirects=False,
            ) as reply,
        ):  # fmt: skip
            kept = {k: v for k, v in reply.headers.items() if k.lower() not in _DROPPED}
            made = web.StreamResponse(status=reply.status, headers=kept)
            await made.prepare(request)
            async for piece in reply.content.iter_any():
                await made.write(piece)
            return made

    return answer


@pytest.fixture(params=_WAYS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The page's address at a proxy of each kind, without the last slash."""
    way = request.param
    with (
        page_at(url_of("sqlite", tmp_path), **_WAYS[way]) as page,
        upstream(_proxy(page.url, way)) as proxy,
    ):
        yield f"{proxy}{_PREFIX}/ui"


def test_page_works_behind_a_proxy(chromium: Any, address: str) -> None:
    """An answer streams, is listed, compared and deleted; all requests stay under the prefix."""
    asked: list[str] = []
    with opened(chromium, address) as looking:
        page = looking.page
        page.on("request", lambda request: asked.append(request.url))
        looking.go()
        assert page.url.endswith(f"{_PREFIX}/ui/")
        choose_model(page, "echo:")
        page.fill(".composer > textarea", "Is anybody here?")
        page.keyboard.press("Enter")
        page.locator(".message.assistant:not(.live)", has_text="Is anybody here?").wait_for()
        page.get_by_label("Open in the lens").click()
        page.wait_for_selector(".lens-row")
        page.keyboard.press("Alt+3")
        page.wait_for_selector(".history-row")
        page.locator(".history-row .menu > button").click()
        page.get_by_role("menuitem", name="Delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        until(page, "document.querySelectorAll('.history-row').length === 0")
    root = address.removesuffix("/ui")
    assert all(url.startswith((f"{root}/ui", "blob:", "about:")) for url in asked), asked
