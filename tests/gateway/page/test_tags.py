"""Tags: conversations are found by them, and they go where a conversation goes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from dragoman import ChatHistory, Message, SessionIdentity
from dragoman.history.session_summaries import TAGS
from tests.gateway.page.browsing import opened, until
from tests.gateway.page.flows import EVERY_WIDTH
from tests.gateway.page.pages import PAGE, TestPage, page_at, url_of
from tests.gateway.page.real import gateway_at

HOSTILE = '<img src=x onerror="pwned=1">'


def made(page: TestPage, text: str, *tags: str) -> str:
    """A conversation with tags."""
    id: str = page.talk(text, model="echo:")[0]["conversation"]
    page.write("PATCH", f"conversations/{id}", {"tags": list(tags)})
    return id


def found(page: TestPage, **query: Any) -> list[str]:
    """The conversations of a list."""
    return [each["id"] for each in page.read("conversations", **query)["items"]]


def named(page: TestPage) -> dict[str, int]:
    """All tags and how often each is used."""
    return {each["name"]: each["conversations"] for each in page.read("tags")["tags"]}


@pytest.fixture
def own(tmp_path: Path, backend_kind: str) -> Any:
    """A page whose store holds nothing else."""
    with page_at(url_of(backend_kind, tmp_path)) as page:
        yield page


@pytest.fixture(params=["sqlite", "files"])
def backend_kind(request: pytest.FixtureRequest) -> str:
    """The kind of store."""
    kind: str = request.param
    return kind


def test_conversations_are_found_by_tag(own: TestPage) -> None:
    """The latest first, after the pinned ones; a search can be limited to a tag."""
    first = made(own, "The old bridge", "travel", "Bosnia")
    second = made(own, "A bridge of stone", "travel")
    other = made(own, "A bridge too far")
    assert named(own) == {"Bosnia": 1, "travel": 2}
    assert found(own, tag="travel") == [second, first]
    own.write("PATCH", f"conversations/{first}", {"pinned": True})
    assert found(own, tag="travel") == [first, second]
    assert found(own, tag="unknown") == []
    assert set(found(own, query="bridge")) == {first, second, other}
    assert set(found(own, query="bridge", tag="Bosnia")) == {first}
    assert own.read(f"conversations/{first}")["tags"] == ["travel", "Bosnia"]
    own.write("PATCH", f"conversations/{first}", {"tags": []})
    assert named(own) == {"travel": 1}
    assert found(own, tag="travel") == [second]


def test_tags_go_where_the_conversation_goes(own: TestPage) -> None:
    """An export, an import and a fork keep them; with the conversation they are deleted."""
    id = made(own, "The old bridge", "travel")
    file = own.ask("GET", f"conversations/{id}/export", params={"format": "canonical"})
    answer = own.ask("POST", "import", params={"name": "x.json"}, content=file.content).json()
    copy = answer["conversations"][0]["id"]
    fork = own.write("POST", f"conversations/{id}/fork")["id"]
    assert set(found(own, tag="travel")) == {id, copy, fork}
    for each in (id, copy, fork):
        own.write("DELETE", f"conversations/{each}")
    assert named(own) == {}
    assert found(own, tag="travel") == []


def test_tags_that_were_copied_into_the_store_are_found(own: TestPage) -> None:
    """Once the list has shown them, the filter knows them, whoever wrote them."""
    made(own, "The old bridge", "travel")

    async def copied() -> None:
        name = SessionIdentity(agent="chat", chat="copied")
        async with ChatHistory(name, own.gateway.config.server.history) as history:
            await history.add(Message.user("A copy").with_metadata(TAGS, ["home"]))

    asyncio.run(copied())
    id = next(each["id"] for each in own.read("conversations")["items"] if each["tags"] == ["home"])
    assert named(own) == {"home": 1, "travel": 1}
    assert found(own, tag="home") == [id]


INVALID: tuple[Any, ...] = ("travel", [1], [None], ["x" * 41], [f"t{n}" for n in range(21)], {})


@pytest.mark.parametrize("tags", INVALID)
@pytest.mark.whole
def test_invalid_tags_change_nothing(page: TestPage, tags: Any) -> None:
    """The error says what is allowed."""
    id = made(page, "Hello", "kept")
    answer = page.ask("PATCH", f"conversations/{id}", json={"tags": tags})
    assert answer.status_code == 400
    assert "`tags`" in answer.json()["error"]["message"]
    assert page.read(f"conversations/{id}")["tags"] == ["kept"]


def test_a_tag_is_one_line_of_visible_text(page: TestPage) -> None:
    """Spaces, line ends, controls and repetitions go."""
    id = made(page, "Hello", " old \n bridges ", "Old bridges", "a\u202eb\x00", "", " \u200b ")
    assert page.read(f"conversations/{id}")["tags"] == ["old bridges", "ab"]


def test_a_conversation_without_messages_has_no_tags(page: TestPage) -> None:
    """As it has no title."""
    id = page.write("POST", "conversations")["id"]
    assert page.ask("PATCH", f"conversations/{id}", json={"tags": ["x"]}).status_code == 409


def test_only_the_pages_users_see_tags(tmp_path: Path) -> None:
    """A key without admin rights, and no key at all, are refused as for conversations."""
    with gateway_at(tmp_path, has_keys=True) as (page, secret):
        admin = {**PAGE, "authorization": f"Bearer {secret}"}
        key = httpx.post(f"{page.url}/ui/api/keys", json={"name": "app"}, headers=admin).json()
        plain = {**PAGE, "authorization": f"Bearer {key['secret']}"}
        for path in ("tags", "conversations?tag=x"):
            url = f"{page.url}/ui/api/{path}"
            assert httpx.get(url, headers=admin).status_code == 200
            assert httpx.get(url, headers=plain).status_code == 403
            assert httpx.get(url, headers=PAGE).status_code in {401, 403}


@pytest.mark.slow
@EVERY_WIDTH
def test_a_conversation_is_tagged_and_found_in_the_page(
    chromium: Any, tmp_path: Path, screen: dict[str, Any]
) -> None:
    """From Talk; History and the recent conversations show one tag; a tag is only text."""
    with (
        gateway_at(tmp_path) as (gateway, _),
        opened(chromium, f"{gateway.url}/ui/", **screen) as looking,
    ):
        made(gateway, "Another", "work")
        id = made(gateway, "The old bridge")
        page = looking.go(f"#/talk/{id}", ".message.assistant")
        page.locator(".conversation-head .menu > button").click()
        page.get_by_role("menuitem", name="Tags …").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("New tag").fill(HOSTILE)
        page.keyboard.press("Enter")
        dialog.get_by_role("button", name="work").click()
        dialog.get_by_role("button", name="Save").click()
        page.wait_for_selector("dialog", state="detached")
        assert gateway.read(f"conversations/{id}")["tags"] == [HOSTILE, "work"]
        made(gateway, "A third")
        page = looking.go("#/history", ".history-row")
        page.locator(".history-row .tag", has_text=HOSTILE).wait_for()
        filters = page.get_by_role("group", name="Tags")
        filters.get_by_role("button", name=HOSTILE).click()
        until(page, "document.querySelectorAll('.history-row').length === 1")
        filters.get_by_role("button", name=HOSTILE).click()
        until(page, "document.querySelectorAll('.history-row').length === 3")
        width = page.viewport_size["width"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        looking.go("#/talk", ".welcome")
        if screen.get("is_mobile"):
            page.get_by_role("button", name="Recent conversations").click()
        recent = page.get_by_role("navigation", name="Recent conversations")
        recent.get_by_label("Tag").select_option(HOSTILE)
        recent.locator("li", has_text="A third").wait_for(state="detached")
        assert recent.locator("li").count() == 1
        assert page.locator("main img").count() == 0
