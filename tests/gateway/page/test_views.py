"""One pass through each view of the page in a real browser."""

from __future__ import annotations

from tests.gateway.page.browsing import Looking


def test_talk_streams_an_answer(looking: Looking) -> None:
    """A message is sent by key, the response streams in, and the URL names the conversation."""
    page = looking.go(wait=".composer > textarea")
    page.fill(".composer > textarea", "Why is the sky dark?")
    page.keyboard.press("Enter")
    page.wait_for_selector(".message.assistant:not(.live) table")
    assert page.locator(".message.user").inner_text().startswith("Why is the sky dark?")
    assert page.locator("math").count() == 2
    assert "#/talk/n" in page.url
    assert looking.asked("POST", "talk")[0]["model"] == "anthropic:claude-sonnet"


def test_lens_marks_findings_at_their_place(looking: Looking) -> None:
    """A pasted body is shown in two dialects, and each finding stands at its line."""
    page = looking.go("#/lens", ".paste textarea")
    page.fill(".paste textarea", '{"model": "m", "messages": []}')
    page.get_by_role("button", name="Compare").click()
    page.wait_for_selector(".lens-row")
    marked = page.locator(".line.marked", has_text='"temperature"')
    assert "A temperature above 1 is refused." in marked.inner_text()
    assert page.locator(".lens-row").count() == 7
    assert "messages" not in page.url


def test_history_lists_and_finds(looking: Looking) -> None:
    """All conversations are counted, few exist as elements, and search narrows the list."""
    page = looking.go("#/history", ".history-row")
    assert page.get_by_text("300 conversations").is_visible()
    assert page.locator(".history-row").count() < 60
    page.fill("[data-search]", "sourdough")
    page.wait_for_selector("mark")
    assert page.locator("mark").first.inner_text() == "sourdough"


def test_traffic_shows_requests_and_their_path(looking: Looking) -> None:
    """The table fills, plots are drawn, and a row opens its path through the layers."""
    page = looking.go("#/traffic", ".traffic-row")
    page.wait_for_selector(".uplot canvas")
    page.locator(".traffic-row").first.click()
    page.wait_for_selector(".waterfall li")
    assert page.locator(".waterfall li").count() == 6


def test_keys_and_routes_are_shown(looking: Looking) -> None:
    """Budgets show their usage, and routes their health."""
    page = looking.go("#/keys", ".hops")
    assert page.get_by_text("$171.30 of $200.00 per month").is_visible()
    assert page.get_by_text("degraded").is_visible()
