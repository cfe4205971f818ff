"""The Talk view in a browser: tools, branches, files, models, keyboard."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.page.browsing import Looking, choose_model, until
from tests.gateway.page.mock_state import Mock

pytestmark = pytest.mark.slow

_GIVE_FILE = """([selector, type, name, mime]) => {
  const files = new DataTransfer();
  files.items.add(new File([new Uint8Array([1, 2, 3])], name, { type: mime }));
  const target = document.querySelector(selector);
  const how = { bubbles: true, cancelable: true };
  const event = type === 'paste' ? new ClipboardEvent('paste', { clipboardData: files, ...how })
    : new DragEvent(type, { dataTransfer: files, ...how });
  target.dispatchEvent(event);
}"""


def say(page: Any, text: str) -> None:
    """Write a message and send it by key."""
    page.fill(".composer > textarea", text)
    page.press(".composer > textarea", "Enter")


def answered(page: Any, count: int = 1) -> None:
    """Wait until so many answers are complete."""
    until(
        page,
        "(count) => document.querySelectorAll('.message.assistant:not(.live)').length >= count"
        " && !document.querySelector('.live')",
        count,
    )


def test_tool_is_approved(looking: Looking) -> None:
    """A call waits for approval, runs, and its result is folded into it."""
    page = looking.go(wait=".composer > textarea")
    say(page, "what is the weather?")
    page.get_by_role("button", name="Approve").click()
    answered(page, 2)
    fold = page.locator(".fold.call")
    assert "done" in fold.inner_text()
    fold.locator("summary").click()
    assert '"temperature": 17' in fold.inner_text()
    assert page.locator(".message.tool").count() == 0


def test_tool_is_refused_with_a_reason(looking: Looking) -> None:
    """The reason goes to the model, and the call shows that it failed."""
    page = looking.go(wait=".composer > textarea")
    say(page, "what is the weather?")
    page.fill(".approval input", "not now")
    page.get_by_role("button", name="Refuse").click()
    answered(page, 2)
    assert looking.mock is not None
    approvals = [body for _, path, body in looking.mock.asked if path.endswith("/approve")]
    assert approvals[0]["allow"] is False
    assert approvals[0]["reason"] == "not now"
    assert "failed" in page.locator(".fold.call").inner_text()


def test_answer_is_stopped_by_escape(looking: Looking, mock: Mock) -> None:
    """Escape ends the answer; what came stays, marked as stopped."""
    mock.pace, mock.answer = 0.05, ["word "] * 2000
    page = looking.go(wait=".composer > textarea")
    say(page, "go on and on")
    page.wait_for_selector(".live .md >> text=word word")
    page.press(".composer > textarea", "Escape")
    answered(page)
    assert page.locator(".message.assistant .tag").inner_text() == "stopped"
    assert "word word" in page.locator(".message.assistant").inner_text()


def test_edit_makes_a_branch_and_the_switcher_leads_back(looking: Looking) -> None:
    """An edited message is a branch from the message before it; both stay within reach."""
    page = looking.go("#/talk/c0", "#m-m3")
    page.locator("#m-m3").hover()
    page.locator("#m-m3").get_by_label("Edit (creates a branch)").click()
    page.fill(".editor textarea", "And in Venice?")
    page.press(".editor textarea", "Enter")
    page.wait_for_selector("text=2 of 2")
    assert looking.asked("POST", "talk")[0]["after"] == "m2"
    page.get_by_label("Previous branch").click()
    page.wait_for_selector("#m-m3")
    assert page.get_by_text("1 of 2").is_visible()
    assert looking.asked("PATCH", "conversations/c0") == [{"branch": 0}]


def test_first_message_can_be_edited(looking: Looking) -> None:
    """Editing the first message sends an empty `after` id."""
    page = looking.go("#/talk/c0", "#m-m1")
    page.locator("#m-m1").focus()
    page.keyboard.press("e")
    page.fill(".editor textarea", "Another question")
    page.press(".editor textarea", "Enter")
    page.wait_for_selector("text=2 of 2")
    assert looking.asked("POST", "talk")[0]["after"] == ""


def test_retry_with_another_model(looking: Looking) -> None:
    """A retry uses the currently selected model."""
    page = looking.go("#/talk/c0", "#m-m6")
    choose_model(page, "gemini:gemini-3-pro")
    page.locator("#m-m6").focus()
    page.keyboard.press("r")
    page.wait_for_selector("text=2 of 2")
    sent = looking.asked("POST", "talk")[0]
    assert (sent["retry"], sent["after"], sent["model"]) == (True, "m3", "gemini:gemini-3-pro")


def test_what_was_sent_is_shown(looking: Looking) -> None:
    """The drawer shows the body with its repairs; Escape closes it and gives the focus back."""
    page = looking.go("#/talk/c0", "#m-m2")
    page.locator("#m-m2").focus()
    page.keyboard.press("s")
    page.wait_for_selector(".drawer .line.marked.repair")
    assert "W83" in page.locator(".drawer .line.marked", has_text='"temperature"').inner_text()
    page.keyboard.press("Escape")
    page.wait_for_selector(".drawer", state="detached")
    until(page, "document.activeElement.id === 'm-m2'")


@pytest.mark.parametrize("way", ["drop", "paste", "button"])
def test_files_are_attached(looking: Looking, way: str) -> None:
    """Dropped, pasted and chosen files are listed, can be removed, and are sent."""
    page = looking.go(wait=".composer > textarea")
    if way == "button":
        given = [
            {"name": "a.png", "mimeType": "image/png", "buffer": b"\1\2\3"},
            {"name": "b.txt", "mimeType": "text/plain", "buffer": b"x"},
        ]
        page.set_input_files(".composer input[type=file]", given)
    else:
        target = ".composer > textarea" if way == "paste" else ".conversation"
        page.evaluate(_GIVE_FILE, [target, way, "a.png", "image/png"])
        page.evaluate(_GIVE_FILE, [target, way, "b.txt", "text/plain"])
    page.get_by_label("Remove b.txt").click()
    say(page, "look")
    answered(page)
    (sent,) = looking.asked("POST", "talk")
    assert [(one["name"], one["mime"], one["data"]) for one in sent["attachments"]] == [
        ("a.png", "image/png", "AQID")
    ]
    page.wait_for_selector(".message.user img")


def test_options_are_sent(looking: Looking) -> None:
    """System prompt and settings are sent; empty ones are omitted."""
    page = looking.go(wait=".composer > textarea")
    page.get_by_role("button", name="Options").click()
    page.get_by_label("System prompt").fill("Be brief.")
    page.get_by_label("Temperature").fill("0.3")
    page.get_by_label("Thinking").select_option("low")
    say(page, "hello")
    answered(page)
    (sent,) = looking.asked("POST", "talk")
    assert (sent["system"], sent["settings"]) == (
        "Be brief.",
        {"temperature": 0.3, "thinking": "low"},
    )


def test_code_and_messages_are_copied(looking: Looking) -> None:
    """The copy button of a block gives its source, that of a message its Markdown."""
    page = looking.go("#/talk/c0", ".code")
    page.get_by_label("Copy code").click()
    until(page, "navigator.clipboard.readText().then((text) => text.startsWith('def flux'))")
    page.locator("#m-m2").focus()
    page.keyboard.press("c")
    until(page, "navigator.clipboard.readText().then((text) => text.includes('| finite age |'))")


def test_first_message_loaded_is_edited_after_the_one_before_it(looking: Looking) -> None:
    """The message before an edited one may not be loaded yet: the branch begins after it anyway."""
    page = looking.go("#/talk/c1", "#m-m1999")
    held: list[Any] = []
    page.route("**/conversations/c1?*before=*", lambda route: held.append(route))  # noqa: PLW0108
    page.evaluate("document.querySelector('.thread').scrollTop = 0")
    page.wait_for_selector("#m-m1960")
    page.evaluate("document.querySelector('#m-m1960').focus({ preventScroll: true })")
    page.keyboard.press("e")
    until(page, "document.activeElement.matches('.editor textarea')")
    page.keyboard.type(" again")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('.editor') === null")
    assert looking.asked("POST", "talk") == []
    held.pop().continue_()
    page.wait_for_selector("text=2 of 2")
    (sent,) = looking.asked("POST", "talk")
    assert sent["after"] == "m1959"


def test_error_is_shown_and_the_page_goes_on(looking: Looking) -> None:
    """A failed request says so in the thread; the next one works."""
    page = looking.go(wait=".composer > textarea")
    page.route(
        "**/api/talk",
        lambda route: route.fulfill(
            status=400, json={"error": {"message": "the model is unknown", "kind": "x"}}
        ),
        times=1,
    )
    say(page, "hello")
    page.get_by_role("alert").get_by_text("the model is unknown").wait_for()
    say(page, "again")
    answered(page)


def test_conversation_goes_on_by_keyboard_only(looking: Looking) -> None:
    """Views, composer, messages, approval and menus are reached without a mouse."""
    page = looking.go(wait=".composer > textarea")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Message"
    page.keyboard.type("weather please")
    page.keyboard.press("Enter")
    page.wait_for_selector(".approval")
    page.get_by_role("button", name="Approve").focus()
    page.keyboard.press("Enter")
    answered(page, 2)
    page.focus(".composer > textarea")
    page.keyboard.press("ArrowUp")
    assert "user" in page.evaluate("document.activeElement.className")
    page.keyboard.press("j")
    assert "assistant" in page.evaluate("document.activeElement.className")
    page.keyboard.press("Alt+3")
    page.wait_for_selector(".history-row")
    page.keyboard.press("/")
    page.keyboard.type("cat")
    page.wait_for_selector("mark")
    page.keyboard.press("?")  # typed, not a command: the focus is in a field
    assert page.locator("dialog").count() == 0
