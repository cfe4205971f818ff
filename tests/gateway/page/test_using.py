"""The other views in use, and the page as a whole: keys, prefix, themes, phone, accessibility."""

from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.page.browsing import Looking, until
from tests.gateway.page.mock_api import KEY
from tests.gateway.page.mock_state import Mock

pytestmark = pytest.mark.slow

PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
DARK = {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"}
PLACES = {
    "talk": ("#/talk/c0", "#m-m6"),
    "new": ("", ".welcome"),
    "lens": ("#/lens", ".recent-list button"),
    "history": ("#/history", ".history-row"),
    "traffic": ("#/traffic", ".uplot canvas"),
    "request": ("#/traffic/r7", ".waterfall"),
    "keys": ("#/keys", ".hops"),
}
OPENED = {
    "models": [".model > button"],
    "tags": [".conversation-head .menu > button", "[role=menuitem]:has-text('Tags')"],
    "delete": [".conversation-head .menu > button", "[role=menuitem]:has-text('Delete')"],
}
"""What is pressed in the conversation, one after the other, to open each."""
_AXE = os.environ.get("DRAGOMAN_TEST_AXE")
_WAY_IN = [(name, *place) for name, place in PLACES.items()]


def compare(looking: Looking, fragment: str = "#/lens") -> Any:
    """The lens on the first conversation."""
    page = looking.go(fragment, ".recent-list button")
    page.locator(".recent-list button").first.click()
    page.wait_for_selector(".lens-row")
    return page


def test_lens_link_restores_dialects_and_filters_only(looking: Looking) -> None:
    """The address holds both targets and the filters, and no trace of the conversation."""
    page = compare(looking, "#/lens?left=openai-strict&right=anthropic:claude-sonnet&rules=W44")
    assert page.get_by_label("Left target").input_value() == "openai-strict"
    assert page.locator(".lens-row").count() == 2
    page.get_by_role("button", name="W83").click()
    assert page.locator(".lens-row").count() == 3
    page.get_by_label("Swap sides").click()
    until(page, "location.hash.includes('left=anthropic')")
    assert (
        page.evaluate("new URLSearchParams(location.hash.split('?')[1]).get('rules')") == "W44,W83"
    )
    assert "c0" not in page.url


def test_lens_copies_each_form(looking: Looking) -> None:
    """JSON, curl and Python of either side reach the clipboard."""
    page = compare(looking)
    for form in ("JSON", "curl", "Python"):
        page.get_by_label("Copy the right side").click()
        page.get_by_role("menuitem", name=f"Copy as {form}").click()
        until(
            page,
            "(wanted) => navigator.clipboard.readText().then((text) => text === wanted)",
            f"a {form.lower()} snippet of the right side",
        )


def test_lens_lists_the_rules_of_a_target(looking: Looking) -> None:
    """The rules' texts can be searched, and a rule becomes a filter."""
    page = compare(looking)
    page.get_by_label("Rules for openai:gpt-5").first.click()
    page.get_by_role("textbox", name="Filter").fill("whitespace")
    page.get_by_role("dialog").get_by_role("button", name="W46").click()
    page.keyboard.press("Escape")
    page.get_by_text("No rows match the filters.").wait_for()


def test_lens_says_what_it_cannot_read(looking: Looking) -> None:
    """An unreadable body gives an error, and another one can be pasted."""
    page = looking.go("#/lens", ".paste textarea")
    page.fill(".paste textarea", '{"a": 1}')
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_text("the body is in no known dialect").wait_for()
    page.get_by_text("Change …").click()
    page.wait_for_selector(".paste textarea")


def test_history_row_is_renamed_pinned_and_deleted(looking: Looking, mock: Mock) -> None:
    """The row menu works; deletion asks for confirmation and says what is deleted."""
    page = looking.go("#/history", ".history-row")

    def choose(item: str) -> None:
        page.locator(".history-row .menu > button").nth(2).click()
        page.get_by_role("menuitem", name=item).click()

    choose("Rename")
    page.get_by_label("Title").fill("A better name")
    page.keyboard.press("Enter")
    page.get_by_text("A better name").wait_for()
    choose("Pin")
    until(page, "document.querySelectorAll('.history-row .title .icon').length === 3")
    choose("Delete")
    assert "be undone" in page.get_by_role("dialog").inner_text()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    choose("Delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_text("299 conversations").wait_for()
    assert len(mock.rows) == 299


def test_history_exports_and_imports(looking: Looking) -> None:
    """An export is a download; a dropped file is imported, and a bad one says why not."""
    page = looking.go("#/history", ".history-row")
    page.locator(".history-row .menu > button").first.click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Export as OpenAI Chat").click()
    assert download.value.suggested_filename == "Trip to Trieste in October.json"
    assert json.loads(Path(download.value.path()).read_text())["format"] == "openai-chat"
    given = [
        {"name": "talk.json", "mimeType": "application/json", "buffer": b"{}"},
        {"name": "x.exe", "mimeType": "", "buffer": b"MZ"},
    ]
    page.set_input_files(".toolbar input[type=file]", given)
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Imported talk").wait_for()
    assert "the file is in no known format" in dialog.inner_text()


def test_forgetting_a_user_says_what_goes_first(looking: Looking) -> None:
    """Nothing is deleted before the counts are shown and confirmed."""
    page = looking.go("#/history", ".history-row")
    page.get_by_label("More").click()
    page.get_by_role("menuitem", name="Forget a user").click()
    page.get_by_label("User id").fill("user-42")
    page.keyboard.press("Enter")
    page.get_by_text("12 conversations with 340 messages").wait_for()
    assert looking.asked("POST", "forget") == [{"user": "user-42", "dry_run": True}]
    page.get_by_role("button", name="Forget").click()
    page.get_by_text("User forgotten: deleted 12 conversations.").wait_for()


@pytest.mark.parametrize("mock", [Mock(conversations=10_000, pace=0)])
def test_ten_thousand_rows_keep_few_elements(looking: Looking) -> None:
    """Only the rows in view are rendered, and the last row can be reached."""
    page = looking.go("#/history", ".history-row")
    page.evaluate("""async () => {
      const box = document.querySelector('.virtual');
      while (!document.querySelector('[aria-posinset="10000"]')) {
        box.scrollTop = box.scrollHeight;
        await new Promise(requestAnimationFrame);
      }
    }""")
    assert page.locator(".history-row").count() < 60


def test_history_is_walked_by_arrow_keys(looking: Looking) -> None:
    """The arrows move through rows that do not exist yet."""
    page = looking.go("#/history", ".history-row")
    page.locator(".history-row a").first.focus()
    for _ in range(5):
        page.keyboard.press("PageDown")
        page.wait_for_timeout(60)  # two frames: the row has to be drawn before it takes the focus
    until(page, "document.activeElement.closest('[data-index]')?.dataset.index === '50'")


def test_traffic_is_filtered_and_live(looking: Looking) -> None:
    """A filter is part of the address; new requests appear on top; pausing stops them."""
    page = looking.go("#/traffic?status=error", ".traffic-row")
    shown = page.locator(".traffic-row [role=cell]:nth-child(5)").all_inner_texts()
    assert shown
    assert not {text.strip() for text in shown} - {"429", "500"}
    page.get_by_label("Status").select_option("")
    before = page.locator(".traffic-row [role=cell]").first.inner_text()
    until(
        page,
        "(old) => document.querySelector('.traffic-row [role=cell]').innerText !== old",
        before,
    )
    page.get_by_role("button", name="Live").click()
    assert page.get_by_role("button", name="Paused").is_visible()


def test_key_is_created_shown_once_and_revoked(looking: Looking) -> None:
    """The secret is shown once; the limits are sent as numbers; revoking asks first."""
    page = looking.go("#/keys", ".card")
    page.get_by_role("button", name="New key").click()
    page.get_by_label("Name", exact=True).fill("phone app")
    page.get_by_label("Allowed models").fill("claude-*, gpt-5")
    page.get_by_label("Requests per minute").fill("60")
    page.get_by_label("Budget").fill("12.5")
    page.get_by_role("button", name="Create").click()
    page.get_by_text("dgm-not-a-real-secret").wait_for()
    page.get_by_role("button", name="Done").click()
    (sent,) = looking.asked("POST", "keys")
    assert sent["models"] == ["claude-*", "gpt-5"]
    assert sent["requests_per_minute"] == 60
    assert sent["budgets"] == [{"kind": "cost", "amount": "12.5", "period": "month"}]
    page.get_by_role("button", name="Revoke phone app").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    page.get_by_text("revoked now").wait_for()


@pytest.mark.parametrize("mock", [Mock(conversations=5, pace=0, needs_key=True)])
def test_admin_key_is_asked_for_and_kept_in_the_tab(looking: Looking) -> None:
    """A wrong key is asked for again; the right one opens the page and is in no lasting store."""
    page = looking.go(wait="dialog input")
    page.fill("dialog input", "wrong")
    page.keyboard.press("Enter")
    page.get_by_text("That key was not accepted.").wait_for()
    page.fill("dialog input", KEY)
    page.keyboard.press("Enter")
    page.wait_for_selector(".recent li")
    assert KEY in page.evaluate("JSON.stringify(sessionStorage)")
    assert KEY not in page.evaluate(
        "JSON.stringify(localStorage) + document.cookie + location.href"
    )


def test_page_works_behind_a_prefix(looking: Looking) -> None:
    """All URLs are relative, so the page works under another path."""
    looking.address = looking.address.replace("/ui/", "/proxied/ui")
    page = looking.go(wait=".recent li")
    assert page.url.endswith("/proxied/ui/")
    looking.go("/#/traffic", ".uplot canvas")


def test_theme_is_chosen_and_kept(looking: Looking) -> None:
    """The switch goes round from the system's to light and dark, and survives a reload."""
    page = looking.go(wait=".composer")
    page.get_by_label("Theme: system").click()
    page.get_by_label("Theme: light").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 22, 21)"


@pytest.mark.parametrize("screen", [PHONE], ids=["360px"])
@pytest.mark.parametrize(("name", "place", "wait"), _WAY_IN, ids=PLACES)
def test_phone_never_scrolls_sideways(looking: Looking, name: str, place: str, wait: str) -> None:
    """At 360 pixels nothing is wider than the screen, and the navigation can be touched."""
    page = looking.go(place, wait)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
    assert page.locator(".views a").last.bounding_box()["y"] > 600


@pytest.mark.parametrize("screen", [PHONE], ids=["360px"])
def test_recent_conversations_are_within_reach_on_a_phone(looking: Looking) -> None:
    """A drawer lists them, from an open conversation and a new one; a choice closes it."""
    page = looking.go("", ".welcome")
    page.get_by_role("button", name="Recent conversations").click()
    drawer = page.get_by_role("dialog")
    drawer.get_by_role("link", name="Dinner for six").first.click()
    page.locator("h1", has_text="Dinner for six").wait_for()
    assert page.locator("dialog").count() == 0
    page.get_by_role("button", name="Recent conversations").click()
    assert drawer.locator("[aria-current=page]").inner_text().startswith("Dinner for six")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    heights = page.evaluate(
        "[...document.querySelectorAll('dialog li a')].map((one) => one.offsetHeight)"
    )
    assert min(heights) >= 44
    drawer.get_by_role("link", name="New conversation").click()
    page.wait_for_selector(".welcome")
    page.get_by_role("button", name="Recent conversations").click()
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")


def _axe() -> str:
    """The source of axe-core: a path in DRAGOMAN_TEST_AXE, or the copy in axe-playwright-python."""
    if _AXE:
        return Path(_AXE).read_text()
    pytest.importorskip(
        "axe_playwright_python",
        reason="no accessibility tests: set DRAGOMAN_TEST_AXE to axe.min.js",
    )
    return (files("axe_playwright_python") / "axe.min.js").read_text()


@pytest.mark.parametrize(
    "screen", [{**DARK, "color_scheme": "light"}, DARK, PHONE], ids=["light", "dark", "phone"]
)
@pytest.mark.parametrize(("name", "place", "wait"), _WAY_IN, ids=PLACES)
def test_axe_finds_nothing_serious(looking: Looking, name: str, place: str, wait: str) -> None:
    """Roles, names, contrast and focus of every view, in both themes and on a phone."""
    page = compare(looking) if name == "lens" else looking.go(place, wait)
    _expect_accessible(page)


@pytest.mark.parametrize("screen", [DARK, PHONE], ids=["dark", "phone"])
@pytest.mark.parametrize("presses", OPENED.values(), ids=OPENED)
def test_axe_finds_nothing_serious_in_what_opens(looking: Looking, presses: list[str]) -> None:
    """The model picker and the dialogs of a conversation."""
    page = looking.go("#/talk/c0", "#m-m6")
    for each in presses:
        page.locator(each).first.click()
    _expect_accessible(page)


def _expect_accessible(page: Any) -> None:
    axe = page.context.new_cdp_session(page)  # by the debugger: the page's policy forbids eval
    axe.send("Runtime.evaluate", {"expression": _axe()})
    page.wait_for_timeout(250)  # dialogues fade in
    found = page.evaluate("axe.run()")
    bad = [
        (one["id"], one["nodes"][0]["html"][:200])
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
    ]
    assert bad == []
