"""Titles: by the first telling line, by a model that the operator names, never over the user's."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.errors import RateLimited
from tests.gateway.page.browsing import choose_model, opened, until
from tests.gateway.page.flows import EVERY_WIDTH
from tests.gateway.page.pages import TestPage, page_at, url_of
from tests.gateway.page.real import gateway_at

HOSTILE = '<img src=x onerror="window.pwned=1">\u202e'


@pytest.fixture
def page(tmp_path: Path) -> Iterator[TestPage]:
    """A gateway whose model writes titles."""
    with page_at(url_of("sqlite", tmp_path), titles="scripted:") as made:
        yield made


def suggested(page: TestPage, id: str) -> Any:
    """Let the model write a title."""
    return page.write("POST", f"conversations/{id}/title")["title"]


def test_a_title_is_the_line_that_says_what_it_is_about(page: TestPage) -> None:
    """Not the name of an attached file, and no greeting."""
    files = [{"name": "notes.txt", "data": b64encode(b"buy milk").decode()}]
    page.talk("Hello!\n\nWhat did I forget?", model="echo:", attachments=files)
    assert page.read("conversations")["items"][0]["first_line"] == "What did I forget?"
    page.talk("", model="echo:", attachments=files)
    assert page.read("conversations")["items"][0]["first_line"] == "notes.txt"


def test_a_model_writes_the_title_once(page: TestPage) -> None:
    """It reads the question and the answer; its marks go, and the title stays as it is."""
    model = page.script("By the river.", '**Title: "The Old Bridge"**\n\nI hope you like it')
    id = page.talk("Where is it?")[0]["conversation"]
    assert page.read("info")["writes_titles"] is True
    assert suggested(page, id) == "The Old Bridge"
    assert page.read("conversations")["items"][0]["title"] == "The Old Bridge"
    asked = model.requests[-1]
    assert asked.messages[-1].text == "user: Where is it?\n\nassistant: By the river."
    assert suggested(page, id) == "The Old Bridge"
    assert len(model.requests) == 2


def test_a_title_of_the_user_stays(page: TestPage) -> None:
    """No model is asked."""
    model = page.script("By the river.", "Another")
    id = page.talk("Where is it?")[0]["conversation"]
    page.write("PATCH", f"conversations/{id}", {"title": "Mine"})
    assert suggested(page, id) == "Mine"
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("written", "title"),
    [
        (HOSTILE, '<img src=x onerror="window.pwned=1">'),
        ("\n\n# Old\tbridges #", "Old bridges"),
        ("very " * 100, "very " * 15 + "very"),
    ],
)
@pytest.mark.whole
def test_what_a_model_writes_is_one_short_line(page: TestPage, written: str, title: str) -> None:
    """Controls go; what is left is text."""
    page.script("By the river.", written)
    id = page.talk("Where is it?")[0]["conversation"]
    assert suggested(page, id) == title


@pytest.mark.parametrize("step", ["", " *** ", RateLimited("slow down", status=429)])
@pytest.mark.whole
def test_without_a_usable_answer_there_is_no_title(page: TestPage, step: Any) -> None:
    """The error says so, and the conversation is as it was."""
    page.script("By the river.", step)
    id = page.talk("Where is it?")[0]["conversation"]
    assert page.ask("POST", f"conversations/{id}/title", json={}).status_code in {429, 502}
    assert page.read(f"conversations/{id}")["title"] is None


def test_no_model_writes_titles_unless_the_operator_names_one(page: TestPage) -> None:
    """The error names the setting."""
    config = page.gateway.config
    page.gateway.config = replace(config, server=replace(config.server, titles=None))
    model = page.script("By the river.", "Never")
    id = page.talk("Where is it?")[0]["conversation"]
    assert page.read("info")["writes_titles"] is False
    answer = page.ask("POST", f"conversations/{id}/title", json={})
    assert answer.status_code == 409
    assert "`titles`" in answer.json()["error"]["message"]
    assert len(model.requests) == 1


@pytest.mark.slow
@EVERY_WIDTH
def test_the_page_shows_the_models_title(
    chromium: Any, tmp_path: Path, screen: dict[str, Any]
) -> None:
    """After the first response, as text; opening an old conversation asks for nothing."""
    with (
        gateway_at(tmp_path) as (gateway, _),
        opened(chromium, f"{gateway.url}/ui/", **screen) as looking,
    ):
        gateway.script("Long ago.")
        old = gateway.talk("An old one")[0]["conversation"]
        config = gateway.gateway.config
        gateway.gateway.config = replace(config, server=replace(config.server, titles="scripted:"))
        model = gateway.script("By the river.", HOSTILE)
        page = looking.go(f"#/talk/{old}", ".message.assistant")
        looking.go("#/talk", ".welcome")
        choose_model(page, "scripted:")
        page.fill(".composer > textarea", "Where is it?")
        page.keyboard.press("Enter")
        until(page, "document.querySelector('h1').innerText.startsWith('<img src=x onerror=')")
        assert page.locator("main img").count() == 0
        assert page.evaluate("window.pwned") is None
        assert len(model.requests) == 2
        assert gateway.read(f"conversations/{old}")["title"] is None
