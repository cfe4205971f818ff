"""The mock API on a real socket, and a browser with the page."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from aiohttp import web

from tests.gateway.page.mock_api import application
from tests.gateway.page.mock_state import Mock

CHROMIUM = (
    os.environ.get("DRAGOMAN_TEST_CHROMIUM")
    or shutil.which("chromium")
    or shutil.which("google-chrome")
)
_FLAGS = (
    "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-quic",
    "--no-first-run", "--disable-sync", "--disable-background-networking",
    "--disable-component-update",
)  # fmt: skip
"""As root, and in containers with little shared memory."""
_START = 120.0  # seconds for the browser to start on a busy machine
PATIENCE = 30_000  # milliseconds for anything on the page


DRAWN = """async () => {
  const { idle } = await import('./work.js');
  for (let turn = 0; turn < 3; turn += 1) { // formulas and highlighted code come after the text
    await idle();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }
}"""
"""Resolves once all texts that are in the document are formatted."""


@contextmanager
def serving(mock: Mock) -> Generator[str]:
    """The mock on a free port; gives the page's address."""
    loop, ready, stop, port = asyncio.new_event_loop(), threading.Event(), asyncio.Event(), [0]

    async def serve() -> None:
        runner = web.AppRunner(
            application(mock), access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port[0] = runner.addresses[0][1]
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield f"http://127.0.0.1:{port[0]}/ui/"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()


@contextmanager
def browser() -> Generator[Any]:
    """A headless Chromium; the test is skipped where there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no browser tests: playwright is not installed"
    )
    if CHROMIUM is None:
        pytest.skip("no browser tests: there is no Chromium (set DRAGOMAN_TEST_CHROMIUM)")
    with playwright.sync_playwright() as running:
        made = running.chromium.launch(
            executable_path=CHROMIUM, args=list(_FLAGS), timeout=_START * 1000
        )
        try:
            yield made
        finally:
            made.close()


class Looking:
    """A page under test, and the errors that the browser reported."""

    def __init__(self, page: Any, address: str, mock: Mock | None = None) -> None:
        self.page = page
        self.address = address
        self.mock = mock
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._console)
        page.on("dialog", self._dialog)

    def _dialog(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _console(self, message: Any) -> None:
        if message.type == "error" and "status of 4" not in message.text:
            self.complaints.append(message.text)

    def go(self, place: str = "", wait: str | None = None) -> Any:
        """Open a view by its fragment, and wait for something in it."""
        self.page.goto(f"{self.address}{place}")
        if wait:
            self.page.wait_for_selector(wait)
        return self.page

    def asked(self, method: str, path: str) -> list[Any]:
        """The bodies of the requests that were made to a path of the mock API."""
        assert self.mock is not None
        return [body for verb, where, body in self.mock.asked if verb == method and where == path]


@contextmanager
def opened(
    chromium: Any, address: str, mock: Mock | None = None, **screen: Any
) -> Generator[Looking]:
    """A page in a context of its own; any browser error fails the test."""
    context = chromium.new_context(
        permissions=["clipboard-read", "clipboard-write"],
        **{"viewport": {"width": 1280, "height": 800}, **screen},
    )
    context.set_default_timeout(PATIENCE)
    made = Looking(context.new_page(), address, mock)
    yield made
    made.page.goto("about:blank")  # streams end before the server does
    context.close()
    assert made.complaints == [], made.complaints


def until(page: Any, expression: str, given: Any = None) -> None:
    """Wait until an expression holds; Playwright's own wait needs eval, which the page forbids."""
    for _ in range(800):
        if page.evaluate(expression, given):
            return
        page.wait_for_timeout(25)
    msg = f"never came true: {expression}"
    raise AssertionError(msg)


MODEL_KNOWN = ".model > button[data-model]:not([data-model=''])"
"""The model picker, once the gateway has told its models."""


def choose_model(page: Any, model: str) -> None:
    """Choose the model of the next response, or type its name if it is not listed."""
    page.wait_for_selector(MODEL_KNOWN)
    page.locator(".model > button").click()
    page.get_by_role("combobox", name="Search models").fill(model)
    page.locator(f".picker [data-model='{model}']").click()
