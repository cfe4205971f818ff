"""History, the lens and Keys in a browser on a real gateway, at two widths."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.config.settings import Hop, Place, RouteSettings
from dragoman.gateway.page import lens
from dragoman.history import ChatHistory, SessionIdentity
from dragoman.model.messages import Message
from dragoman.providers.registry import provider
from tests.gateway.page.browsing import Looking, opened, until
from tests.gateway.page.flows import WIDTHS, Flow, flowing
from tests.gateway.page.mock_data import PICTURE
from tests.gateway.page.pages import ECHO, page_at

pytestmark = pytest.mark.slow

_HITS = """(items) => items.every((item) => {
  const { left, top, width, height } = item.getBoundingClientRect();
  const found = document.elementFromPoint(left + width / 2, top + height / 2);
  return left >= 0 && left + width <= innerWidth && (found === item || item.contains(found));
})"""
"""Whether each element can be reached by a pointer: it is on the screen, and nothing is over it."""


@pytest.fixture(params=list(WIDTHS.values()), ids=list(WIDTHS))
def screen(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A desktop and a phone."""
    found: dict[str, Any] = request.param
    return found


@pytest.fixture
def flow(chromium: Any, tmp_path: Path, screen: dict[str, Any]) -> Iterator[Flow]:
    """A gateway of its own for each test."""
    with flowing(chromium, tmp_path, **screen) as made:
        yield made


def stored(folder: Path, count: int) -> None:
    """Stores a conversation of so many messages, the last one an answer."""

    async def write() -> None:
        identity = SessionIdentity(agent="chat", chat="long")
        async with await ChatHistory.open(identity, f"sqlite:///{folder}/chats.db") as history:
            pairs = (
                each
                for number in range(count // 2)
                for each in (Message.user(f"Question {number}"), Message.assistant(f"No {number}"))
            )
            await history.extend(list(pairs))

    with ThreadPoolExecutor(1) as apart:  # the browser's loop runs in this thread
        apart.submit(asyncio.run, write()).result()


# --- history


def test_the_menu_of_every_row_can_be_reached(looking: Looking) -> None:
    """Of the rows at the top and at the bottom of the list: nothing covers or cuts an item."""
    page = looking.go("#/history", ".history-row")
    page.locator(".virtual").evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    page.wait_for_timeout(100)
    page.locator(".virtual").evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    buttons = page.locator(".history-row .menu > button")
    shown = [
        each for each in buttons.element_handles()
        if each.evaluate("(one) => { const { top, bottom } = one.getBoundingClientRect();"
                         " const list = document.querySelector('.virtual').getBoundingClientRect();"
                             " return top > list.top && bottom < innerHeight; }")
    ]  # fmt: skip
    assert len(shown) > 6
    for each in (shown[0], shown[len(shown) // 2], shown[-2], shown[-1]):
        each.click()
        items = page.locator("[role=menuitem]")
        assert items.count() > 5
        items.last.scroll_into_view_if_needed()
        assert items.last.evaluate(f"(one) => ({_HITS})([one])")
        items.first.scroll_into_view_if_needed()
        assert items.first.evaluate(f"(one) => ({_HITS})([one])")
        page.keyboard.press("Escape")
        page.wait_for_selector("[role=menu]", state="detached")


def test_the_count_of_conversations_is_one_line(looking: Looking) -> None:
    """The number and its noun stand beside each other, also on a phone."""
    page = looking.go("#/history", ".history-row")
    total = page.get_by_text("300 conversations")
    box = total.bounding_box()
    assert box["height"] < 30
    assert box["x"] + box["width"] <= page.viewport_size["width"]


# --- the lens


def test_a_stored_conversation_breaks_no_rule(flow: Flow) -> None:
    """It names no model and ends with an answer: neither is a finding."""
    page = flow.start("By the river.")
    flow.say("Where is it?", "By the river.")
    for left, right in (("openai-chat", "gemini"), ("ollama", "openai-responses")):
        flow.looking.go(f"#/lens?left={left}&right={right}")
        page.wait_for_selector(".recent-list button, .lens-row")
        if page.locator(".recent-list button").count():
            page.locator(".recent-list button").first.click()
        page.wait_for_selector(".lens-row")
        assert page.locator(".lens-row").count() == 3
        assert page.get_by_role("button", name="0 findings").count() == 1


def test_the_lens_shows_a_whole_conversation(flow: Flow, tmp_path: Path) -> None:
    """All of 5,002 messages; of one above the limit, the latest, and it says so."""
    stored(tmp_path, 5002)
    page = flow.looking.go("#/lens?left=openai-chat&right=anthropic", ".recent-list button")
    page.locator(".recent-list button").first.click()
    page.locator(".lens-row", has_text="1 · user").first.wait_for()
    assert page.get_by_text("Question 0", exact=False).count()
    assert page.get_by_text("messages of this conversation are compared").count() == 0


def test_the_lens_says_that_it_leaves_out_messages(
    flow: Flow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a conversation above the limit it shows the latest messages, with a note."""
    monkeypatch.setattr(lens, "MAX_MESSAGES", 100)
    stored(tmp_path, 102)
    page = flow.looking.go("#/lens?left=openai-chat&right=anthropic", ".recent-list button")
    page.locator(".recent-list button").first.click()
    page.get_by_text("Only the latest 100 messages of this conversation are compared.").wait_for()
    assert page.locator(".lens-row", has_text="Question 0").count() == 0


def test_the_lens_says_what_it_cannot_read(looking: Looking) -> None:
    """Messages that are damaged in the store are not left out without a word."""
    page = looking.page

    def with_damage(route: Any) -> None:
        body = route.fetch().json()
        route.fulfill(json=body | {"damaged": 2})

    page.route("**/ui/api/lens", with_damage)
    looking.go("#/lens?left=openai-chat&right=anthropic", ".recent-list button")
    page.locator(".recent-list button").first.click()
    page.get_by_text("2 messages of this conversation can").wait_for()


def test_a_search_shows_the_word_that_was_found(flow: Flow) -> None:
    """Also on a phone, where a row has one line for an excerpt, and the word far in a text."""
    page = flow.start("Yes")
    flow.say("There is much to say of this. " * 9 + "And of the albatross? " * 9, "Yes")
    flow.looking.go("#/history", ".history-row")
    page.locator("[data-search]").fill("albatross")
    page.locator(".history-row mark").first.wait_for()
    [(_, row)] = boxes(page, ".history-row .first")
    assert boxes(page, ".history-row mark")[0][1] <= row


# --- keys


def test_a_provider_that_does_not_run_is_not_healthy(chromium: Any, screen: dict[str, Any]) -> None:
    """Nobody has asked it anything yet; the page finds out, and says why."""
    down = Place(name="down", provider=provider("ollama"), base_url="http://127.0.0.1:9")
    routes = (
        RouteSettings(model="small", to=(Hop(place=down, model="m"),)),
        RouteSettings(model="echo", to=(Hop(place=ECHO),)),
    )
    with (
        page_at("memory:", places={"down": down, ECHO.name: ECHO}, routes=routes) as gateway,
        opened(chromium, f"{gateway.url}/ui/", **screen) as looking,
    ):
        page = looking.go("#/keys", ".hops")
        cards = page.locator("[aria-labelledby=routes-title] .card")
        assert "down" in cards.nth(0).locator("header").inner_text().lower()
        assert "ConnectError" in cards.nth(0).inner_text()
        assert "healthy" in cards.nth(1).locator("header").inner_text()


def test_a_local_server_that_nobody_configured_is_not_an_outage(looking: Looking) -> None:
    """It may run or not; only what someone configured is down."""
    page = looking.go("#/keys", ".hops")
    ollama, coding = (page.locator(".card", has_text=name) for name in ("ollama", "coding"))
    assert ollama.locator("header .tag").inner_text() == "not running"
    assert ollama.get_by_text("ConnectError").count() == 0
    assert coding.locator("header .tag").inner_text() == "down"


# --- what is on the screen


_BOXES = """(items) => items.map((item) => {
  const { left, right } = item.getBoundingClientRect();
  return [left, right];
})"""


def boxes(page: Any, selector: str) -> list[tuple[float, float]]:
    """The left and right edges of elements."""
    return [tuple(each) for each in page.locator(selector).evaluate_all(_BOXES)]


def test_pictures_keep_their_size_and_long_tags_their_button(flow: Flow) -> None:
    """A small picture is not enlarged; of a long tag the text is cut, not the button beside it."""
    page = flow.start("Seen")
    page.set_input_files(
        "input[type=file]", {"name": "dot.png", "mimeType": "image/png", "buffer": PICTURE}
    )
    flow.say("What is in this picture?", "Seen")
    page.wait_for_selector("img.picture")
    [(left, right)] = boxes(page, "img.picture")
    assert right - left == 10
    page.get_by_role("button", name="Conversation", exact=True).click()
    page.get_by_role("menuitem", name="Tags").click()
    page.get_by_label("New tag").fill("a tag whose name is as long as it may be")
    page.keyboard.press("Enter")
    [(_, chip)], [(_, icon)] = boxes(page, "ul.chips .chip"), boxes(page, "ul.chips .chip .icon")
    assert icon < chip


def test_one_goes_on_writing_after_choosing_a_prompt(looking: Looking) -> None:
    """The focus is in the message, not on the button that opened the prompts."""
    page = looking.go("", ".composer")
    page.get_by_role("button", name="Prompts").click()
    page.locator(".prompt:not(:disabled)").first.wait_for()
    page.keyboard.press("Escape")
    until(page, "document.activeElement.matches('.composer > textarea')")


def test_a_notification_is_above_the_dialog_that_it_is_about(looking: Looking) -> None:
    """Why a conversation can't be deleted is not behind the question whether to delete it."""
    page = looking.go("#/talk/c1", "#m-m1999")
    page.route("**/conversations/c1", lambda route: route.fulfill(status=500, body="{}"))
    page.get_by_role("button", name="Conversation", exact=True).click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.locator(".toast.error").wait_for()
    assert page.locator(".toasts").evaluate("(one) => one.matches(':popover-open')")
    looking.complaints.clear()  # the status of 500


# --- texts


def test_a_newline_is_a_line_break(flow: Flow) -> None:
    """In a paragraph and in a list, as in the terminal; in code nothing changes."""
    page = flow.start("Roses are red\nViolets are blue\n\n- one\n  more\n\n```\na\nb\n```")
    flow.say("A poem", "Violets are blue")
    until(page, "document.querySelectorAll('.message.assistant .md br').length === 2")
    lines = page.locator(".message.assistant .md p").first.inner_text()
    assert lines == "Roses are red\nViolets are blue"


def test_hidden_characters_of_names_are_seen_everywhere(flow: Flow) -> None:
    """In the list, whose row of a conversation without a title has one line, and in the lens."""
    flow.gateway.talk("a\u202egnp.exe", model="echo:")
    page = flow.looking.go("#/history", ".history-row")
    assert page.locator(".history-row .title").inner_text() == "aU+202Egnp.exe"
    assert page.locator(".history-row .first").count() == 0
    page.goto(f"{flow.looking.address}#/lens")
    button = page.locator(".recent-list button")
    button.wait_for()
    assert button.inner_text() == "aU+202Egnp.exe"
    button.click()
    page.wait_for_selector(".lens-row")
    assert page.locator("h1").inner_text() == "aU+202Egnp.exe"
    given = {"name": "b\u202egnp.exe", "mimeType": "", "buffer": b"MZ"}
    page.goto(f"{flow.looking.address}#/history")
    page.set_input_files(".toolbar input[type=file]", [given])
    assert page.get_by_role("dialog").locator("h3").inner_text() == "bU+202Egnp.exe"
