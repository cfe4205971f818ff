"""Answers, drafts and models in a browser that reloads, goes away, or has another tab."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import InvalidRequest, RateLimited
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from tests.gateway.page.browsing import MODEL_KNOWN, choose_model, until
from tests.gateway.page.flows import COMPOSER, WIDTHS, Flow, flowing
from tests.gateway.page.pages import Hangs, calls

pytestmark = pytest.mark.slow

_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_FILES_KEPT = """(count) => {
  const { files } = JSON.parse(sessionStorage.getItem('dragoman.draft')) ?? { files: [] };
  return files.filter((one) => one.data !== null).length === count;
}"""
_NOTES = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"Buy milk."}
_PICTURE = {"name": "dot.png", "mimeType": "image/png", "buffer": _PNG}


@pytest.fixture(params=list(WIDTHS.values()), ids=list(WIDTHS))
def flow(request: pytest.FixtureRequest, chromium: Any, tmp_path: Path) -> Iterator[Flow]:
    """A gateway of its own for each test, on a desktop and on a phone."""
    with flowing(chromium, tmp_path, **request.param) as made:
        yield made


def chosen(page: Any) -> str:
    """The model that answers next."""
    found: str = page.locator(".model > button").get_attribute("data-model")
    return found


# --- answers


def test_an_answer_goes_on_over_a_reload(flow: Flow) -> None:
    """The page shows it from its beginning again; Stop still ends it, and what came is kept."""
    page = flow.start(Hangs("Slow words"))
    flow.say("Slowly")
    page.get_by_text("Slow words").wait_for()
    page.reload()
    page.locator(".live").get_by_text("Slow words").wait_for()
    page.get_by_label("Stop (Escape)").click()
    page.locator(".message.assistant .tag", has_text="stopped").wait_for()
    assert page.locator(".live").count() == 0
    assert page.locator(".message").count() == 2


def test_another_tab_sees_what_the_first_one_sends(flow: Flow) -> None:
    """Message and answer appear in a tab that has the conversation open, and Stop works there."""
    page = flow.start("One", Hangs("Slow words"))
    flow.say("First", "One")
    other = flow.tab()
    other.page.goto(page.url)
    other.page.get_by_text("One").wait_for()
    flow.say("Second")
    other.page.locator(".message.user", has_text="Second").wait_for()
    other.page.locator(".live").get_by_text("Slow words").wait_for()
    other.page.get_by_label("Stop (Escape)").click()
    page.locator(".message.assistant .tag", has_text="stopped").wait_for()
    assert page.locator(".message").count() == other.page.locator(".message").count() == 4


def test_a_call_is_approved_in_another_tab(flow: Flow) -> None:
    """The request for approval is in both tabs, and gone from both once it is decided."""
    page = flow.start(calls(("calculate", {"expression": "6*7"})), "It is 42")
    flow.say("What is 6*7?")
    page.locator(".approval").wait_for()
    until(page, "location.hash.length > 20")
    other = flow.tab()
    other.page.goto(page.url)
    other.page.get_by_role("button", name="Approve").click()
    for each in (page, other.page):
        each.get_by_text("It is 42").wait_for()
        assert each.locator(".approval").count() == 0


def test_an_answer_goes_on_while_another_conversation_is_open(flow: Flow) -> None:
    """Coming back shows it as it is now."""
    page = flow.start(Hangs("Slow words"))
    flow.say("Slowly")
    page.get_by_text("Slow words").wait_for()
    until(page, "location.hash.length > 20")
    place = page.url
    page.evaluate("location.hash = '#/talk'")
    page.get_by_role("heading", name="Talk to any model").wait_for()
    page.goto(place)
    page.locator(".live").get_by_text("Slow words").wait_for()
    page.get_by_label("Stop (Escape)").click()
    page.locator(".message.assistant .tag", has_text="stopped").wait_for()


def test_a_message_without_an_answer_can_be_tried_again(flow: Flow) -> None:
    """Also after a reload, when the error is not shown any more."""
    page = flow.start(RateLimited("slow down", status=429), "Here it is")
    flow.say("A question")
    page.locator(".notice.bad").wait_for()
    page.reload()
    page.get_by_text("This message has no answer.").wait_for()
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("Here it is").wait_for()
    assert page.locator(".message.user").count() == 1


def test_an_error_shows_what_the_provider_said(flow: Flow) -> None:
    """Its own sentence stands below the gateway's, as text; markup in it does nothing."""
    said = "gemma does not <b>support</b> tools"
    page = flow.start(InvalidRequest("invalid (status 400)", status=400, detail=said))
    flow.say("Use a tool")
    card = page.locator(".notice.bad")
    card.wait_for()
    assert "The provider says: gemma does not <b>support</b> tools" in card.inner_text()
    assert card.locator("b").count() == 0


def test_what_concerns_the_account_is_on_the_error_card_too(flow: Flow) -> None:
    """Whoever may see the page is the operator, unlike a client of the gateway."""
    page = flow.start(RateLimited("too many (status 429)", status=429, detail="Limit of Acme: 3"))
    flow.say("A question")
    assert "The provider says: Limit of Acme: 3" in page.locator(".notice.bad").inner_text()


def test_a_lost_gateway_is_told_in_words(flow: Flow) -> None:
    """What came is kept; the browser's own text for it is not shown."""
    page = flow.looking.page
    page.add_init_script("""{
      const { fetch } = window;
      window.fetch = async (path, options) => {
        if (window.isLost) throw new TypeError('Failed to fetch');
        const response = await fetch(path, options);
        if (!String(path).endsWith('/talk')) return response;
        const reader = response.body.getReader();
        return new Response(new ReadableStream({
          start(stream) {
            window.lose = () => {
              window.isLost = true;
              stream.error(new TypeError('network error'));
            };
          },
          async pull(stream) { stream.enqueue((await reader.read()).value); },
        }));
      };
    }""")
    flow.start(Hangs("Slow words"))
    flow.say("Slowly")
    page.get_by_text("Slow words").wait_for()
    page.evaluate("window.lose()")
    card = page.locator(".notice.bad")
    card.wait_for()
    assert "The response was cut off: the connection closed early." in card.inner_text()
    assert page.get_by_text("Slow words").is_visible()


def test_stop_ends_an_answer_that_the_page_has_not_heard_of(flow: Flow) -> None:
    """The gateway has the message already, and would go on: it is told as soon as it says so."""
    page = flow.looking.page
    page.add_init_script("""{
      const { fetch } = window;
      window.fetch = async (path, options) => {
        const response = await fetch(path, options);
        if (String(path).endsWith('/talk')) await new Promise((done) => setTimeout(done, 1000));
        return response;
      };
    }""")
    flow.start(Hangs("Slow words"))
    flow.say("Slowly")
    page.get_by_label("Stop (Escape)").click()
    page.get_by_text("stopping …").wait_for()
    until(page, "!document.querySelector('.live')")
    page.locator(".message.assistant .tag", has_text="stopped").wait_for()
    assert page.input_value(COMPOSER) == ""


def test_two_tabs_send_at_once(flow: Flow) -> None:
    """One of them gets its message back, and shows the other's message and answer."""
    page = flow.start("One", Hangs("Slow words"))
    flow.say("First", "One")
    other = flow.tab()
    other.page.add_init_script("delete window.BroadcastChannel")  # too slow to tell of the first
    other.page.goto(page.url)
    other.page.get_by_text("One").wait_for()
    flow.say("Of this tab")
    page.locator(".live").get_by_text("Slow words").wait_for()
    other.page.fill(COMPOSER, "Of the other tab")
    other.page.press(COMPOSER, "Enter")
    told = other.page.get_by_role("region", name="Notifications")
    told.get_by_text("a response is still streaming on this branch").wait_for()
    other.page.locator(".live").get_by_text("Slow words").wait_for()
    assert other.page.locator(".message.user").all_inner_texts()[1].startswith("Of this tab")
    assert other.page.input_value(COMPOSER) == "Of the other tab"
    assert other.page.locator(".notice").count() == 0


def test_a_hidden_tab_holds_no_connection(flow: Flow) -> None:
    """All tabs share six: in view again, it shows the answer as it is now, and Stop works."""
    page = flow.looking.page
    page.add_init_script(
        "Object.defineProperty(document, 'hidden', { get: () => Boolean(window.isHidden) })"
    )
    turn = """(isHidden) => {
      window.isHidden = isHidden;
      document.dispatchEvent(new Event('visibilitychange'));
    }"""
    flow.start(Hangs("Slow words"))
    flow.say("Slowly")
    page.get_by_text("Slow words").wait_for()
    with page.expect_event("requestfailed", lambda request: "/talk" in request.url):
        page.evaluate(turn, True)
    page.wait_for_timeout(1000)  # longer than before a lost connection is made again
    with page.expect_request(lambda request: "/talk/" in request.url):
        page.evaluate(turn, False)
    page.locator(".live").get_by_text("Slow words").wait_for()
    page.get_by_label("Stop (Escape)").click()
    page.locator(".message.assistant .tag", has_text="stopped").wait_for()


# --- drafts


def test_a_draft_survives_a_reload(flow: Flow) -> None:
    """Its text and its files; once it is sent, nothing of it is left in the browser."""
    page = flow.start("Thanks")
    page.set_input_files(".composer input[type=file]", [_NOTES, _PICTURE])
    page.fill(COMPOSER, "Half a thought")
    until(page, _FILES_KEPT, 2)
    page.reload()
    page.locator(".composer .attachment", has_text="dot.png").wait_for()
    assert page.input_value(COMPOSER) == "Half a thought"
    choose_model(page, "scripted:")
    page.press(COMPOSER, "Enter")
    page.get_by_text("Thanks").wait_for()
    assert page.locator(".message.user .attachment", has_text="notes.txt").count() == 1
    until(page, "sessionStorage.getItem('dragoman.draft') === null")
    assert "thought" not in page.evaluate("JSON.stringify(localStorage)")


def test_a_file_that_the_browser_cannot_keep_is_named(flow: Flow) -> None:
    """After the reload the page says what has to be attached again."""
    page = flow.start()
    large = {"name": "large.bin", "mimeType": "application/pdf", "buffer": bytes(4_000_000)}
    page.set_input_files(".composer input[type=file]", [large, _NOTES])
    until(page, _FILES_KEPT, 1)
    page.reload()
    page.get_by_text("Attach again what the browser could not keep: large.bin").wait_for()
    assert page.locator(".composer .attachment").count() == 1


# --- attachments


def test_an_edit_keeps_what_was_attached(flow: Flow) -> None:
    """The editor shows the files; the one that is removed there is not sent, the others are."""
    page = flow.start("I see", "I see better")
    page.set_input_files(".composer input[type=file]", [_NOTES, _PICTURE])
    flow.say("Look at these", "I see")
    page.locator(".message.user").hover()
    page.get_by_label("Edit (creates a branch)").click()
    assert page.locator(".editor .attachment .clip").all_inner_texts() == ["notes.txt", "dot.png"]
    page.get_by_label("Remove dot.png").click()
    page.fill(".editor textarea", "Read this")
    page.press(".editor textarea", "Enter")
    page.get_by_text("I see better").wait_for()
    model: Any = flow.gateway.gateway.upstream(flow.gateway.gateway.config.places["scripted:"])
    sent: Message = model._model.requests[-1].messages[-1]
    assert [each.text for each in sent.parts if isinstance(each, Text)] == [
        "notes.txt:\n\nBuy milk.",
        "Read this",
    ]
    assert len(sent.parts) == 2
    assert page.locator(".message.user .attachment").all_inner_texts()[0].startswith("notes.txt")
    page.get_by_label("Previous branch").click()
    page.get_by_text("Look at these").wait_for()
    page.locator(".message.user img").wait_for()


def test_names_of_files_are_shown_as_they_are(flow: Flow) -> None:
    """On one line, without hiding characters; an edited message shows its pictures."""
    page = flow.start("I see")
    hostile = {"name": "a\u202egnp.exe", "mimeType": "text/plain", "buffer": b"x"}
    long = {**_NOTES, "name": f"{'n' * 250}.txt"}
    page.set_input_files(".composer input[type=file]", [hostile, long, _PICTURE])
    for place in (".composer", ".message.user"):
        chips = page.locator(f"{place} .attachment")
        chips.nth(1).wait_for()
        if place == ".composer":
            assert chips.nth(0).inner_text().startswith("aU+202Egnp.exe")
            assert chips.nth(0).get_by_role("button").get_attribute("aria-label") == (
                "Remove a[U+202E]gnp.exe"
            )
        assert chips.nth(1).bounding_box()["height"] < 45
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if place == ".composer":
            flow.say("Look", "I see")
    page.locator(".message.user").hover()
    page.get_by_label("Edit (creates a branch)").click()
    page.locator(".editor .attachment img").wait_for()


def test_the_focus_is_never_lost(flow: Flow) -> None:
    """Whoever uses the keyboard goes on from the button, or from where the edited message was."""
    page = flow.start("One", "Two")
    page.fill(COMPOSER, "First")
    page.get_by_label("Send (Enter)").focus()
    page.keyboard.press("Enter")
    page.get_by_text("One").wait_for()
    until(page, "!document.querySelector('.live')")
    label = "document.activeElement.getAttribute('aria-label')"
    assert page.evaluate(label) == "Send (Enter)"
    page.locator(".message.user").focus()
    page.keyboard.press("e")
    page.locator(".editor textarea:focus").wait_for()
    page.keyboard.press("Escape")
    assert page.evaluate(label) == "You"
    page.keyboard.press("e")
    page.locator(".editor textarea:focus").wait_for()
    page.keyboard.press("Enter")
    page.get_by_text("Two").wait_for()
    assert page.evaluate(label) in {"Message", "Messages"}


# --- models


def test_a_message_without_an_answer_keeps_its_model(flow: Flow) -> None:
    """After a reload, "Try again" asks the model that was asked before."""
    page = flow.start(RateLimited("slow down", status=429), "Here it is")
    choose_model(page, "echo:")
    flow.say("Echoed words")
    until(page, "document.querySelectorAll('.message').length === 2")
    choose_model(page, "scripted:")
    flow.say("A question")
    page.locator(".notice.bad").wait_for()
    page.reload()
    page.get_by_text("This message has no answer.").wait_for()
    assert chosen(page) == "scripted:"
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("Here it is").wait_for()


def test_options_belong_to_their_conversation(flow: Flow) -> None:
    """A new one has none; another shows its own, also after a reload."""
    page = flow.start("Answer 1", "Answer 2")
    page.get_by_role("button", name="Options").click()
    page.fill(".options textarea", "Be brief.")
    page.get_by_label("Temperature").fill("0.5")
    flow.say("First", "Answer 1")
    until(page, "location.hash.length > 20")
    place = page.url
    page.evaluate("location.hash = '#/talk'")
    page.get_by_role("heading", name="Talk to any model").wait_for()
    assert page.input_value(".options textarea") == ""
    page.goto(place)
    page.reload()
    page.get_by_text("Answer 1").wait_for()
    page.get_by_role("button", name="Options (changed)").click()
    assert page.input_value(".options textarea") == "Be brief."
    assert page.get_by_label("Temperature").input_value() == "0.5"
    flow.say("Second", "Answer 2")
    model: Any = flow.gateway.gateway.upstream(flow.gateway.gateway.config.places["scripted:"])
    request = model._model.requests[-1]
    assert (request.system[0].text, request.sampling.temperature) == ("Be brief.", 0.5)


def test_a_conversation_keeps_its_model(flow: Flow) -> None:
    """Also when another one was used elsewhere since, and when the page is loaded again."""
    page = flow.start("Answer 1", "Answer 3")
    flow.say("First", "Answer 1")
    until(page, "location.hash.length > 20")
    place = page.url
    page.evaluate("location.hash = '#/talk'")
    page.get_by_role("heading", name="Talk to any model").wait_for()
    choose_model(page, "echo:")
    flow.say("Echoed words")
    until(page, "document.querySelectorAll('.message').length === 2")
    page.goto(place)
    page.get_by_text("Answer 1").wait_for()
    assert chosen(page) == "scripted:"
    page.reload()
    page.get_by_text("Answer 1").wait_for()
    assert chosen(page) == "scripted:"
    flow.say("Third", "Answer 3")


def test_a_fresh_conversation_gets_the_first_configured_model(flow: Flow) -> None:
    """`echo:` stands first in the configuration, is offered last and is not preselected."""
    page = flow.looking.go("", COMPOSER)
    page.wait_for_selector(MODEL_KNOWN)
    assert chosen(page) == "scripted:"
    page.locator(".model > button").click()
    offered = page.locator(".picker [role=option]")
    assert offered.evaluate_all("(all) => all.map((one) => one.dataset.model)") == [
        "scripted:", "echo:",
    ]  # fmt: skip
    page.keyboard.press("Escape")
    choose_model(page, "echo:")
    page.reload()
    page.wait_for_selector(MODEL_KNOWN)
    assert chosen(page) == "scripted:"
