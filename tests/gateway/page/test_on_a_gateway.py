"""Whole flows in a browser on a real gateway with scripted models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from dragoman.errors import RateLimited
from dragoman.model.messages import Message
from dragoman.model.tools import ToolCall
from tests.gateway.page.browsing import choose_model, until
from tests.gateway.page.flows import COMPOSER, EVERY_WIDTH, Flow, flowing
from tests.gateway.page.pages import Hangs

pytestmark = pytest.mark.slow

_ARABIC = "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645"
_DROP = """([selector, name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, { type: 'text/plain' }));
  const event = new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true });
  document.querySelector(selector).dispatchEvent(event);
  return event.defaultPrevented;
}"""


_CHUNK = 'data: {"choices": [{"index": 0, "delta": {"content": "%s"}}]}\n\n'
_POLLUTING = '{"role": "user", "content": "x", "constructor": {"prototype": {"polluted": 1}}}'
PASTED = {
    "a stream": (_CHUNK % "Hel" + _CHUNK % "lo" + "data: [DONE]\n\n", '"Hello"'),
    "JSON that is cut off": ('{"model": "m", "messages": [', "the JSON is malformed"),
    "HTML": ("<html>", "the JSON is malformed"),
    "a number": ("42", "must be a JSON object"),
    "an unknown object": ('{"foo": 1}', "can't detect the dialect"),
    "JSON nested 3,000 deep": ('{"a":' * 3000 + "1" + "}" * 3000, "nested too deeply"),
    "names of prototypes": (
        f'{{"model": "m", "__proto__": {{"polluted": 1}}, "messages": [{_POLLUTING}]}}',
        '"content": "x"',
    ),
}
"""Texts that are pasted into the lens, each with what it shows."""


@pytest.fixture
def flow(chromium: Any, tmp_path: Path) -> Iterator[Flow]:
    """A gateway of its own for each test."""
    with flowing(chromium, tmp_path) as made:
        yield made


def test_an_answer_stays_in_its_conversation(flow: Flow) -> None:
    """While one conversation streams, another can be held; neither shows the other's text."""
    page = flow.start(Hangs("Slow words"), "Quick words")
    flow.say("The first")
    page.get_by_text("Slow words").wait_for()
    page.get_by_role("link", name="New conversation").click()
    flow.say("The second", "Quick words")
    assert page.get_by_text("Slow words").count() == 0


def test_an_unanswered_message_is_tried_again(flow: Flow) -> None:
    """After an error the same message is sent again on the same branch, when asked to."""
    page = flow.start(RateLimited("slow down", status=429), "Here it is")
    flow.say("A question")
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("Here it is").wait_for()
    until(page, "!document.querySelector('.live')")
    assert page.locator(".message.user").count() == 1
    assert page.locator(".siblings, .notice.bad").count() == 0


def test_a_message_that_could_not_be_sent_is_given_back(flow: Flow) -> None:
    """Its text is in the composer again, before what was written since; nothing else changes."""
    page = flow.start("An answer")
    flow.say("First", "An answer")
    choose_model(page, "gone:x")
    flow.say("Precious words")
    page.wait_for_selector(".notice.bad")
    assert page.input_value(COMPOSER) == "Precious words"
    assert page.locator(".message").count() == 2
    assert page.get_by_role("button", name="Try again").count() == 0


def test_drafts_and_the_open_conversation_survive_other_views(flow: Flow) -> None:
    """Coming back to Talk shows the same conversation, with the text being written."""
    page = flow.start("An answer")
    flow.say("First", "An answer")
    page.fill(COMPOSER, "Half a thought")
    page.keyboard.press("Alt+3")
    page.wait_for_selector(".history-row")
    page.get_by_role("link", name="Talk").click()
    page.get_by_text("An answer").wait_for()
    assert page.input_value(COMPOSER) == "Half a thought"


def test_every_option_reaches_the_model(flow: Flow) -> None:
    """System prompt, temperature, limit and each level of thinking are accepted and sent."""
    levels = ["", "off", "low", "medium", "high"]
    page = flow.start(*(f"Answer {number}" for number in range(len(levels))))
    page.get_by_label("Options").click()
    page.get_by_label("System prompt").fill("Be brief.")
    page.get_by_label("Temperature").fill("0.5")
    page.get_by_label("Maximum tokens").fill("20")
    for number, level in enumerate(levels):
        page.get_by_label("Thinking").select_option(level)
        flow.say(f"Question {number}", f"Answer {number}")
    back = flow.gateway.gateway.upstream(flow.gateway.gateway.config.places["scripted:"])
    model: Any = back._model
    seen = [request.thinking for request in model.requests]
    assert [each is None for each in seen] == [True, False, False, False, False]
    last = model.requests[-1]
    assert (last.sampling.temperature, last.sampling.max_tokens) == (0.5, 20)


def test_a_fork_is_a_new_conversation(flow: Flow) -> None:
    """From a message and from the list; the original keeps all its messages."""
    page = flow.start("One", "Two")
    flow.say("First", "One")
    flow.say("Second", "Two")
    original = page.url
    page.locator(".message.assistant").first.hover()
    page.get_by_label("Fork into a new conversation").nth(1).click()
    until(page, "(old) => location.href !== old", original)
    until(page, "document.querySelectorAll('.message').length === 2")
    flow.looking.go("#/history", ".history-row")
    page.locator(".history-row .menu > button").last.click()
    page.get_by_role("menuitem", name="Fork").click()
    until(page, "document.querySelectorAll('.message').length === 4")
    page.goto(original)
    until(page, "document.querySelectorAll('.message').length === 4")


def test_files_can_be_dropped_and_never_replace_the_page(flow: Flow) -> None:
    """On the conversation a file is attached; beside it nothing happens."""
    page = flow.start()
    assert page.evaluate(_DROP, ["header.top", "x.txt", "beside"])
    assert page.evaluate(_DROP, [".thread", "notes.txt", "dropped words"])
    choose_model(page, "echo:")
    flow.say("Look", "dropped words")


def test_long_numbers_keep_their_digits(flow: Flow) -> None:
    """In the lens and in the arguments of a call, nothing is rounded as JavaScript would."""
    number = "12345678901234567890"
    call = ToolCall.create("c1", "calculate", f'{{"expression": "1", "id": {number}}}')
    page = flow.start(Message.assistant(call), "Done")
    flow.say("Compute", "Done")
    page.locator("details.call summary").click()
    assert number in page.locator("details.call pre").first.inner_text()
    page.keyboard.press("Alt+2")
    said = '[{"role": "user", "content": "Hi"}]'
    page.fill(".paste textarea", f'{{"model": "m", "trace": {number}, "messages": {said}}}')
    page.get_by_role("button", name="Compare").click()
    page.get_by_label("Left target").select_option("openai-chat")
    page.locator(".j-number", has_text=number).first.wait_for()


@pytest.mark.parametrize(("text", "shows"), PASTED.values(), ids=PASTED)
def test_anything_can_be_pasted_into_the_lens(flow: Flow, text: str, shows: str) -> None:
    """It is shown, or the reason why not, and the text is still there to be corrected."""
    page = flow.looking.go("#/lens?left=openai-chat&right=anthropic", ".paste textarea")
    page.fill(".paste textarea", text)
    page.get_by_role("button", name="Compare").click()
    page.get_by_text(shows).first.wait_for()
    assert page.evaluate("({}).polluted") is None
    page.get_by_text("Change …").click()
    assert page.input_value(".paste textarea") == text


def test_each_paragraph_has_its_own_direction(flow: Flow) -> None:
    """An Arabic paragraph after an English one starts on the right."""
    page = flow.start(f"English first.\n\n{_ARABIC}.")
    flow.say("Mixed", "English first.")
    page.wait_for_selector(".md p:nth-child(2)")
    start = """() => { const range = document.createRange();
      const p = document.querySelector('.message.assistant .md p:nth-child(2)');
      range.selectNodeContents(p);
      return p.getBoundingClientRect().right - range.getBoundingClientRect().right; }"""
    assert page.evaluate(start) < 5


def test_an_export_says_what_it_changed(flow: Flow) -> None:
    """A repair of the format that was chosen is announced with the download."""
    page = flow.start("An answer")
    flow.say("First", "An answer")
    page.locator(".conversation-head .menu > button").click()
    with page.expect_download():
        page.get_by_role("menuitem", name="Google Gemini").click()
    page.get_by_text("Exported with 0 losses and 1 repair").wait_for()


def test_hostile_names_and_errors_are_only_text(flow: Flow) -> None:
    """What clients, users and providers name or report is shown as text in every view."""
    bad = '<img src=x onerror="window.pwned=1"><form id="app"></form>'
    page = flow.start(RateLimited(bad, status=429))
    page.set_input_files(
        ".composer input[type=file]",
        {"name": f"{bad[:27]}.txt", "mimeType": "text/plain", "buffer": b"x"},
    )
    flow.say(bad)
    page.locator(".notice.bad", has_text="onerror").wait_for()
    body = {"model": bad, "messages": [{"role": "user", "content": "Hi"}]}
    httpx.post(f"{flow.gateway.url}/v1/chat/completions", json=body)
    for place, wait in (("#/history", ".history-row"), ("#/traffic", ".traffic-row")):
        flow.looking.go(place, wait)
        assert page.locator("main img, form").count() == 0
    flow.looking.go(f"#/lens?left={quote(bad)}&rules={quote(bad)}", ".paste")
    assert page.evaluate("window.pwned") is None


@EVERY_WIDTH
def test_a_conversation_is_exported_as_markdown_and_deleted_from_talk(
    chromium: Any, tmp_path: Path, screen: dict[str, Any]
) -> None:
    """Its menu has both; nothing is deleted before the confirmation, and then it is gone."""
    with flowing(chromium, tmp_path, **screen) as flow:
        gateway = flow.gateway
        page = flow.start("*Of stone*, all of it.")
        flow.say("What is it made of?", "Of stone")
        menu = page.locator(".conversation-head .menu > button")
        menu.click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name="Export as Markdown").click()
        assert download.value.suggested_filename.endswith(".md")
        text = Path(download.value.path()).read_text()
        assert "## user\n\nWhat is it made of?\n\n## assistant" in text
        assert "*Of stone*, all of it." in text
        menu.click()
        page.get_by_role("menuitem", name="Delete …").click()
        assert "be undone" in page.get_by_role("dialog").inner_text()
        assert len(gateway.read("conversations")["items"]) == 1
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        page.wait_for_selector(".welcome")
        page.get_by_text("Conversation deleted.").wait_for()
        assert page.evaluate("location.hash") == "#/talk"
        assert gateway.read("conversations")["items"] == []
