"""One pass through each view of the page, in a real browser on a real gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.gateway.page.browsing import Looking, choose_model, opened, until
from tests.gateway.page.pages import TestPage, calls
from tests.gateway.page.real import gateway_at

_TABLE = "| city | degrees |\n|---|--:|\n| Basel | 24 |\n\nso $e^x$ it is"


class Views:
    """The page, which stays open for all views, and the gateway behind it."""

    def __init__(self, gateway: TestPage, secret: str, looking: Looking) -> None:
        self.gateway, self.secret, self.page = gateway, secret, looking.page


@pytest.fixture(scope="module")
def views(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Views]:
    """The page after the admin key was entered, with one conversation; starting takes longest."""
    with (
        gateway_at(tmp_path_factory.mktemp("views"), has_keys=True) as (gateway, secret),
        opened(chromium, f"{gateway.url}/ui/") as looking,
    ):
        looking.go("#/talk", "dialog input")
        looking.page.fill("dialog input", secret)
        looking.page.keyboard.press("Enter")
        gateway.script(calls(("calculate", {"expression": "6*7"})), _TABLE)
        yield Views(gateway, secret, looking)


@pytest.fixture(scope="module")
def talked(views: Views) -> Views:
    """The views, after one message was sent."""
    page = views.page
    page.keyboard.press("Alt+1")
    choose_model(page, "scripted:")
    page.fill(".composer > textarea", "Which city is warm?")
    page.keyboard.press("Enter")
    page.locator("details.call summary", has_text="waiting").wait_for()
    page.get_by_role("button", name="Approve").click()
    page.wait_for_selector(".message.assistant:not(.live) table")
    return views


def test_talk_streams_an_answer(talked: Views) -> None:
    """A message is sent by key, a tool runs when approved, and the response is rendered."""
    page = talked.page
    assert page.locator(".message.user").inner_text().startswith("Which city is warm?")
    page.wait_for_selector("math, .formula")
    assert "42" in page.locator("details.call pre").last.text_content()
    assert "#/talk/" in page.url
    assert "city" not in page.url


def test_lens_marks_findings_at_their_place(views: Views) -> None:
    """A pasted body is shown in two dialects, and a finding stands at its line."""
    page = views.page
    page.keyboard.press("Alt+2")
    body = '{"model": "m", "temperature": 1.7, "messages": [{"role": "user", "content": "Hi"}]}'
    page.fill(".paste textarea", body)
    page.get_by_role("button", name="Compare").click()
    page.wait_for_selector(".lens-row")
    assert "lowered to 1" in page.locator(".line.marked", has_text='"temperature"').inner_text()
    assert "model" not in page.url


def test_history_lists_and_finds(talked: Views) -> None:
    """The conversation is listed, and search finds a word of its answer."""
    page = talked.page
    page.keyboard.press("Alt+3")
    page.get_by_text("1 conversation", exact=True).wait_for()
    page.fill("[data-search]", "degrees")
    page.wait_for_selector("mark")
    assert page.locator(".history-row .title").inner_text() == "Which city is warm?"


def test_traffic_shows_requests_and_their_path(views: Views) -> None:
    """A request appears by itself, plots are drawn, and a row opens its path."""
    page = views.page
    page.keyboard.press("Alt+4")
    page.wait_for_selector(".toolbar")
    body = {"model": "echo:", "messages": [{"role": "user", "content": "Hi"}], "seed": 7}
    headers = {"authorization": f"Bearer {views.secret}"}
    asked = httpx.post(f"{views.gateway.url}/v1/chat/completions", json=body, headers=headers)
    assert asked.status_code == 200
    page.locator(".traffic-row").first.click()
    page.wait_for_selector(".waterfall li")
    page.wait_for_selector(".uplot canvas", state="attached")
    ends = "[...document.querySelectorAll('.bar')].map((bar) => bar.style.left)"
    assert page.evaluate(ends)[0] == "0%"
    page.keyboard.press("Escape")


def test_keys_and_routes_are_shown(views: Views) -> None:
    """A key is created and shown once; the routes show their health."""
    page = views.page
    page.keyboard.press("Alt+5")
    page.get_by_role("button", name="New key").click()
    page.get_by_label("Name", exact=True).fill("phone app")
    page.get_by_label("Budget").fill("12.5")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("button", name="Done").click()
    page.get_by_text("$0 of $12.50 per month").wait_for()
    until(page, "document.querySelectorAll('.hops').length === 2")
    assert page.get_by_text("healthy").first.is_visible()
