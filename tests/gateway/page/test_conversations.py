"""The conversations API: lists, search, titles, branches, import, export, deletion."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from pathlib import Path

import pytest

from dragoman.gateway.config.settings import GatewayConfig, Hop, RouteSettings, ServerSettings
from dragoman.history.chat import ChatHistory
from dragoman.history.identity import SessionIdentity
from dragoman.model.messages import Message
from dragoman.model.parts import Text, Thinking
from tests.gateway.answers import Provider
from tests.gateway.page.mock_data import PICTURE
from tests.gateway.page.pages import ECHO, TestPage, calls, page_at, url_of
from tests.gateway.running import place, running, upstream
from tests.interop.test_chat_exports import CLAUDE
from tests.interop.test_chat_exports import TALK as CHATGPT


@pytest.fixture
def id(page: TestPage) -> str:
    """A conversation of two exchanges, the last one of the list."""
    for each in page.read("conversations", limit=200)["items"]:
        page.write("DELETE", f"conversations/{each['id']}")
    page.script("By the river.", "Of stone.")
    found: str = page.talk("Where is the Old Bridge?")[0]["conversation"]
    page.talk("What is it made of?", conversation=found)
    return found


def ids(page: TestPage, **query: object) -> list[str]:
    """The conversations that are listed."""
    return [each["id"] for each in page.read("conversations", **query)["items"]]


# --- lists


def test_the_list_has_the_latest_first_and_goes_on_by_cursor(page: TestPage, id: str) -> None:
    """Every conversation is listed once, for any page size."""
    made = [page.talk(f"Number {n}.", model="echo:")[0]["conversation"] for n in range(6)]
    wanted = [*reversed(made), id]
    for limit in (1, 3, 7, 50):
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            answer = page.read("conversations", limit=limit, cursor=cursor)
            found += [each["id"] for each in answer["items"]]
            cursor = answer["cursor"]
        assert found == wanted
    assert page.read("conversations")["total"] == 7


def test_a_conversation_that_goes_on_comes_first_again(page: TestPage, id: str) -> None:
    """The list is ordered by the last write."""
    other = page.talk("Another.", model="echo:")[0]["conversation"]
    assert ids(page) == [other, id]
    page.talk("And now?", conversation=id, model="echo:")
    assert ids(page) == [id, other]
    item = page.read("conversations")["items"][0]
    assert (item["first_line"], item["messages"]) == ("Where is the Old Bridge?", 6)


def test_pins_come_first_and_outlast_the_gateway(tmp_path: Path) -> None:
    """A pinned conversation is listed first, once, until it is unpinned or deleted."""
    with page_at(url_of("sqlite", tmp_path)) as page:
        made = [page.talk(f"{n}", model="echo:")[0]["conversation"] for n in range(4)]
        page.write("PATCH", f"conversations/{made[0]}", {"pinned": True})
        page.write("PATCH", f"conversations/{made[0]}", {"pinned": True})
    with page_at(url_of("sqlite", tmp_path)) as page:
        assert ids(page, limit=2) == [made[0], made[3], made[2]]
        assert page.read(f"conversations/{made[0]}")["pinned"]
        assert [each["pinned"] for each in page.read("conversations")["items"]].count(True) == 1
        page.write("PATCH", f"conversations/{made[0]}", {"pinned": False})
        assert ids(page)[-1] == made[0]


@pytest.mark.parametrize(
    ("text", "line"),
    [("What is in it?", "What is in it?"), ("Steps:\n\nRead it.", "Steps:"), ("", "notes.txt")],
)
def test_a_conversation_that_begins_with_a_file_is_named_by_its_text(
    page: TestPage, text: str, line: str
) -> None:
    """The first line is the author's, not the file's; a file alone gives its name."""
    notes = [{"name": name, "data": "QnV5IG1pbGsu"} for name in ("notes.txt", "more.txt")]
    for files in (notes[:1], notes):
        id = page.talk(text, attachments=files, model="echo:")[0]["conversation"]
        found = page.read(f"conversations/{id}")["first_line"]
        assert found == line


def test_a_title_goes_where_the_conversation_goes(page: TestPage, id: str) -> None:
    """The title is in the list, in the conversation, and survives export and import."""
    page.write("PATCH", f"conversations/{id}", {"title": " Old \n bridges "})
    assert page.read("conversations")["items"][0]["title"] == "Old bridges"
    exported = page.ask("GET", f"conversations/{id}/export", params={"format": "canonical"})
    assert "Old%20bridges.json" in exported.headers["content-disposition"]
    made = page.ask("POST", "import", params={"name": "other.json"}, content=exported.content)
    (copy,) = made.json()["conversations"]
    assert copy["title"] == page.read(f"conversations/{copy['id']}")["title"] == "Old bridges"
    page.write("PATCH", f"conversations/{id}", {"title": ""})
    assert page.read(f"conversations/{id}")["title"] is None
    assert page.texts(id)[0] == "Where is the Old Bridge?"


def test_a_title_stays_when_the_first_message_is_edited(page: TestPage, id: str) -> None:
    """Not every branch goes through the message that carries it."""
    page.write("PATCH", f"conversations/{id}", {"title": "Bridges"})
    page.talk("Where is the New Bridge?", conversation=id, after="", model="echo:")
    assert page.read(f"conversations/{id}")["title"] == "Bridges"
    assert page.read("conversations")["items"][0]["title"] == "Bridges"


def test_what_others_write_and_delete_is_seen(page: TestPage, id: str) -> None:
    """Other programs such as `dragoman chat` write to the same store."""
    url = page.gateway.config.server.history
    identity = SessionIdentity(agent="chat", chat="from the terminal")

    async def chatted() -> None:
        async with ChatHistory(identity, url) as history:
            await history.extend([Message.user("Hello from a terminal"), Message.assistant("Hi.")])

    async def deleted() -> None:
        async with ChatHistory(identity, url) as history:
            await history.delete()

    asyncio.run(chatted())
    assert ids(page) == [identity.digest, id]
    assert page.texts(identity.digest) == ["Hello from a terminal", "Hi."]
    asyncio.run(deleted())
    assert ids(page) == [id]
    assert page.ask("GET", f"conversations/{identity.digest}").status_code == 404


def test_search_finds_words_in_all_conversations(page: TestPage, id: str) -> None:
    """Each result names its message and marks the words in an excerpt."""
    page.talk("A bridge of 🪨 too far, and a Bridge.", model="echo:")
    hits = page.read("conversations", query="old bridge")["items"]
    assert [hit["id"] for hit in hits] == [id]
    first = page.read(f"conversations/{id}")["messages"][0]["id"]
    assert hits[0]["message_id"] == first
    hits = page.read("conversations", query="BRIDGE")["items"]
    assert len(hits) == 3
    for hit in hits:
        units = hit["snippet"].encode("utf-16-le")  # as scripts count
        marked = [units[2 * a : 2 * b].decode("utf-16-le").lower() for a, b in hit["marks"]]
        assert marked
        assert set(marked) == {"bridge"}
    for nothing in ("zebra", "?!", '"', "' OR 1=1 --"):
        assert page.read("conversations", query=nothing)["items"] == []


# --- one


def test_a_long_conversation_opens_at_its_end(page: TestPage, id: str) -> None:
    """Earlier messages are loaded on request, each once."""
    for n in range(6):
        page.talk(f"Message {n}", conversation=id, model="echo:")
    opened = page.read(f"conversations/{id}", limit=5)
    found = opened["messages"]
    while opened["has_more"]:
        opened = page.read(f"conversations/{id}", limit=5, before=found[0]["id"])
        found = opened["messages"] + found
    assert [each["id"] for each in found] == [
        each["id"] for each in page.read(f"conversations/{id}")["messages"]
    ]
    assert len(found) == 16
    assert page.ask("GET", f"conversations/{id}?before=nothing").status_code == 404


def test_branches_are_listed_and_switched(page: TestPage, id: str) -> None:
    """An edit makes a branch from the message before it; switching is remembered."""
    answer = page.read(f"conversations/{id}")["messages"][1]["id"]
    page.talk("Edited.", conversation=id, after=answer, model="echo:")
    opened = page.read(f"conversations/{id}")
    assert opened["branches"] == [
        {"number": 0, "parent": None, "from_message": None},
        {"number": 1, "parent": 0, "from_message": answer},
    ]
    assert (opened["branch"], len(opened["messages"])) == (1, 4)
    page.write("PATCH", f"conversations/{id}", {"branch": 0})
    assert "Edited." not in page.texts(id)
    for wrong in ({"branch": 7}, {"branch": -1}):
        assert page.ask("PATCH", f"conversations/{id}", json=wrong).status_code == 404
    assert page.ask("GET", f"conversations/{id}?branch=9").status_code == 404


def test_a_fork_is_a_conversation_of_its_own(page: TestPage, id: str) -> None:
    """It holds the messages up to one, or the active branch; the original stays as it was."""
    texts = page.texts(id)
    answer = page.read(f"conversations/{id}")["messages"][1]["id"]
    short = page.write("POST", f"conversations/{id}/fork", {"message_id": answer})
    whole = page.write("POST", f"conversations/{id}/fork", {"message_id": None})
    assert (page.texts(short["id"]), page.texts(whole["id"])) == (texts[:2], texts)
    page.talk("Only here.", conversation=short["id"], model="echo:")
    page.write("DELETE", f"conversations/{whole['id']}")
    assert page.texts(id) == texts
    assert len(page.read(f"conversations/{id}")["branches"]) == 1
    missing = page.ask("POST", f"conversations/{id}/fork", json={"message_id": "nothing"})
    assert missing.status_code == 404


def test_a_fork_of_a_fork_follows_its_branch(page: TestPage, id: str) -> None:
    """A message of another branch is copied with what leads to it; titles say that it is a fork."""
    answer = page.read(f"conversations/{id}")["messages"][1]["id"]
    page.talk("Edited.", conversation=id, after=answer, model="echo:")
    edited = page.read(f"conversations/{id}")["messages"][-1]["id"]
    page.write("PATCH", f"conversations/{id}", {"branch": 0, "title": "t" * 200})
    made = page.write("POST", f"conversations/{id}/fork", {"message_id": edited})
    assert page.texts(made["id"])[2] == "Edited."
    assert page.read(f"conversations/{made['id']}")["title"] == "t" * 193 + " (fork)"
    empty = page.write("POST", "conversations")["id"]
    assert page.ask("POST", f"conversations/{empty}/fork", json={}).status_code == 409


def test_an_empty_conversation_can_be_made(page: TestPage, id: str) -> None:
    """An empty conversation is listed, and messages can be added."""
    made = page.write("POST", "conversations")["id"]
    assert ids(page) == [made, id]
    assert page.texts(made) == []
    assert page.ask("PATCH", f"conversations/{made}", json={"title": "x"}).status_code == 409
    page.talk("First.", conversation=made, model="echo:")
    assert page.texts(made) == ["First.", "First."]


def test_deleting_and_forgetting_say_what_they_did(page: TestPage, id: str) -> None:
    """A dry run counts; forgetting deletes only that user's conversations."""
    url = page.gateway.config.server.history

    async def chatted() -> None:
        for n in range(2):
            name = SessionIdentity(agent="support", chat=str(n), user="Ana")
            async with ChatHistory(name, url) as history:
                await history.extend([Message.user("secret word"), Message.assistant("Yes.")])

    asyncio.run(chatted())
    assert len(ids(page)) == 3
    counted = page.write("POST", "forget", {"user": "Ana", "dry_run": True})
    assert counted == {"conversations": 2, "messages": 4}
    assert len(ids(page)) == 3
    assert page.write("POST", "forget", {"user": "Ana"})["conversations"] == 2
    assert ids(page) == [id]
    assert page.read("conversations", query="secret")["items"] == []
    assert page.write("DELETE", f"conversations/{id}") == {"deleted": 1}
    assert page.ask("DELETE", f"conversations/{id}").status_code == 404


# --- files


def test_every_format_goes_out_and_comes_in_again(page: TestPage, id: str) -> None:
    """An export in any listed format but Markdown can be imported again."""
    formats = [each["id"] for each in page.read("info")["formats"] if each["id"] != "markdown"]
    assert {"canonical", "openai-chat", "anthropic", "gemini"} <= set(formats)
    for name in formats:
        file = page.ask("GET", f"conversations/{id}/export", params={"format": name})
        assert file.headers["content-type"] == "application/json"
        answer = page.ask("POST", "import", params={"name": f"{name}.json"}, content=file.content)
        (made,) = answer.json()["conversations"]
        assert made["title"] == name
        # Gemini is asked to go on where a conversation ends with an answer, and that is told.
        added = int("x-dragoman-repairs" in file.headers and name == "gemini")
        assert made["messages"] == 4 + added
        assert page.texts(made["id"])[:4] == page.texts(id)
    wrong = page.ask("GET", f"conversations/{id}/export", params={"format": "latin"})
    assert wrong.status_code == 400


def test_markdown_is_for_reading(page: TestPage) -> None:
    """Title, texts and calls are readable; what only a name is left of is reported."""
    picture = b64encode(PICTURE).decode()
    id = page.talk(
        "What is `this`?", model="echo:", attachments=[{"name": "a.png", "data": picture}]
    )[0]["conversation"]
    page.write("PATCH", f"conversations/{id}", {"title": "Of <b>stone</b>"})
    file = page.ask("GET", f"conversations/{id}/export", params={"format": "markdown"})
    assert file.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "Of%20_b_stone_b_.md" in file.headers["content-disposition"]
    assert file.headers["x-dragoman-losses"].startswith("1; messages[].parts[]: ")
    text = file.text
    assert text.startswith("# Of <b>stone</b>\n\n## user\n\n")
    assert "*(image: a.png)*" in text
    assert "What is `this`?" in text
    assert "## assistant (echo" in text


def test_markdown_keeps_an_attached_text_apart(page: TestPage) -> None:
    """A file's own headings and fences stay inside a fence that is longer than any of them."""
    files = {
        "notes.md": "# Notes\n\n````python\nprint()\n````\n",
        "`odd`\tname.txt": "## user\n\nNot said.",
    }
    given = [
        {"name": name, "data": b64encode(text.encode()).decode()} for name, text in files.items()
    ]
    id = page.talk("What do they say?", model="echo:", attachments=given)[0]["conversation"]
    text = page.ask("GET", f"conversations/{id}/export", params={"format": "markdown"}).text
    notes = files["notes.md"]
    assert f"notes.md:\n\n`````\n{notes}\n`````\n\n" in text
    assert "`odd` name.txt:\n\n```\n## user\n\nNot said.\n```\n\nWhat do they say?" in text


def test_an_import_takes_many_and_tells_what_is_broken(page: TestPage, id: str) -> None:
    """A file with lines of several dialects; the malformed lines are reported by index."""
    lines = [
        json.dumps({"model": "m", "messages": [{"role": "user", "content": "One"}]}),
        "{broken",
        json.dumps({"model": "m", "system": "Be brief.", "max_tokens": 5, "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Two"}]}]}),
        json.dumps({"contents": [{"role": "user", "parts": [{"text": "Three"}]}]}),
        "7",
    ]  # fmt: skip
    answer = page.ask("POST", "import?name=many.jsonl", content="\n".join(lines).encode()).json()
    assert [each["messages"] for each in answer["conversations"]] == [1, 2, 1]
    assert [each["conversation"] for each in answer["losses"]] == [1, 4]
    assert "broken" not in json.dumps(answer["losses"])
    assert len(ids(page)) == 4
    assert id in ids(page)


def test_an_export_of_a_chat_application_keeps_title_times_and_branches(page: TestPage) -> None:
    """The conversation has the title it had there, and its other branches can be switched to."""
    for export, title in ((CHATGPT, "Bridges"), (CLAUDE, CLAUDE["name"])):
        body = json.dumps([export]).encode()
        answer = page.ask("POST", "import", params={"name": "conversations.json"}, content=body)
        (made,) = answer.json()["conversations"]
        assert (made["title"], answer.json()["losses"]) == (title, [])
        assert page.read(f"conversations/{made['id']}")["title"] == title
    body = json.dumps(CHATGPT).encode()
    answer = page.ask("POST", "import", params={"name": "one.json"}, content=body).json()
    (made,) = answer["conversations"]
    opened = page.read(f"conversations/{made['id']}")
    assert [each["number"] for each in opened["branches"]] == [0, 1]
    assert opened["messages"][0]["created_at"] < 1_800_000_000
    assert page.texts(made["id"], branch=1) == ["Who built the brige?"]


def test_an_archive_is_to_be_unpacked(page: TestPage) -> None:
    """Exports come as ZIP archives; the error says what to do."""
    answer = page.ask("POST", "import", params={"name": "export.zip"}, content=b"PK\x03\x04rest")
    assert answer.status_code == 400
    assert "unpack it" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "body", [b"", b"\x00" * 100, b"[" * 5000, b"nonsense", b"[]", b'{"messages": []}', b"\xff\xfe"]
)
def test_an_import_of_nonsense_makes_nothing(page: TestPage, id: str, body: bytes) -> None:
    """The problem is reported, and nothing is stored."""
    answer = page.ask("POST", "import?name=x", content=body)
    assert answer.status_code == 200
    assert answer.json()["conversations"] == []
    assert ids(page) == [id]


# --- what was sent


def test_what_a_model_was_sent_can_be_seen_again(tmp_path: Path) -> None:
    """After a switch: the body in the second model's dialect, with what was lost and repaired."""
    provider = Provider("anthropic")
    with upstream(provider) as address:
        claude = place("claude", "anthropic", address)
        config = GatewayConfig(
            places={"claude": claude, ECHO.name: ECHO},
            routes=(
                RouteSettings(model="claude-*", to=(Hop(place=claude),)),
                RouteSettings(model="echo", to=(Hop(place=ECHO),)),
            ),
            server=ServerSettings(history=url_of("sqlite", tmp_path)),
        )
        with running(config) as serving:
            page = TestPage(serving)
            id = page.talk("Count to two.", model="echo")[0]["conversation"]
            events = page.talk(
                "Go on.", conversation=id, model="claude-sonnet-4-5", system="Be brief.",
                settings={"max_tokens": 99},
            )  # fmt: skip
            assert events[-1]["type"] == "done", events[-1]
            told = next(event for event in events if event["type"] == "sent")
            assert told["dialect"] == "anthropic"
            answers = page.read(f"conversations/{id}")["messages"][1::2]
            sent = page.read(f"conversations/{id}/sent", message=answers[1]["id"])
            first = page.read(f"conversations/{id}/sent", message=answers[0]["id"])
            wrong = page.ask("GET", f"conversations/{id}/sent?message=nothing")
            page.close()
    assert (sent["dialect"], sent["path"]) == ("anthropic", "/v1/messages")
    body = sent["body"]
    assert (body["max_tokens"], body["system"]) == (99, provider.asked[0]["system"])
    assert body["messages"] == provider.asked[0]["messages"]
    assert [each["role"] for each in body["messages"]] == ["user", "assistant", "user"]
    assert (sent["losses"], sent["omitted"]) == (told["losses"], 0)
    assert len(first["body"]["messages"]) == 1
    assert wrong.status_code == 404


def test_thinking_and_tools_of_a_stored_conversation_are_shown(page: TestPage, id: str) -> None:
    """All kinds of parts are shown; a damaged message doesn't hide the others."""
    url = page.gateway.config.server.history
    name = SessionIdentity(chat="parts", agent="elsewhere")

    async def chatted() -> None:
        async with ChatHistory(name, url) as history:
            await history.extend([
                Message.user("What time is it?"),
                Message.assistant(Thinking("Hm."), Text("I look."), *calls(("now", {})).parts),
                Message.tool("call_1", "Noon."),
            ])  # fmt: skip

    asyncio.run(chatted())
    found = page.read(f"conversations/{name.digest}")["messages"]
    assert [[part["kind"] for part in each["parts"]] for each in found] == [
        ["text"], ["thinking", "text", "call"], ["result"],
    ]  # fmt: skip
    assert found[2]["parts"][0]["text"] == "Noon."
    assert id in ids(page)
