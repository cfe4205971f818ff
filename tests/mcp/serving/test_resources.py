"""Sessions as resources, prompts with a session, and notifications of changes."""

from __future__ import annotations

import asyncio

import pytest
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp_types import EmbeddedResource, TextContent, TextResourceContents

from dragoman import ChatHistory, Messages, SessionIdentity
from dragoman.history import MemoryStorage
from dragoman.mcp.serving import resources, server
from dragoman.testing.conformance.stores.backends import Backend
from tests.environment import PATIENCE
from tests.mcp.serving.clients import MODES, connected, stored


async def text(client: object, uri: str) -> TextResourceContents:
    """What a resource holds."""
    (contents,) = (await client.read_resource(uri)).contents  # type: ignore[attr-defined]  # a Client
    assert isinstance(contents, TextResourceContents)
    return contents


@pytest.mark.parametrize("mode", MODES)
async def test_sessions_are_listed_and_read(mode: str) -> None:
    """As Markdown or JSON, by the listed templates."""
    storage = MemoryStorage()
    identity, _ = await stored(storage, "Where is it?", "There.", agent="chat", chat="1")
    async with connected(storage, mode=mode) as client:
        (listed,) = (await client.list_resources()).resources
        assert (listed.name, listed.description) == ("chat/1", "Where is it?")
        assert listed.annotations is not None
        assert listed.annotations.last_modified is not None
        markdown = await text(client, listed.uri)
        assert (markdown.mime_type, "> There." in markdown.text) == ("text/markdown", True)
        templates = (await client.list_resource_templates()).resource_templates
        uris = [each.uri_template.replace("{id}", identity.digest) for each in templates]
        assert uris[0] == listed.uri
        document = await text(client, uris[1])
        assert document.mime_type == "application/json"
        assert [m.text for m in Messages.from_json(document.text)] == ["Where is it?", "There."]


async def test_a_long_list_has_pages(backend: Backend) -> None:
    """Every session is on one of them."""
    async with backend.opened() as storage:
        for number in range(60):
            await stored(storage, "x", chat=str(number))
        async with connected(storage) as client:
            seen: list[str] = []
            cursor: str | None = None
            while True:
                page = await client.list_resources(cursor=cursor)
                seen += [each.name for each in page.resources]
                cursor = page.next_cursor
                if cursor is None:
                    break
        assert seen == [str(number) for number in range(59, -1, -1)]


@pytest.mark.parametrize(
    "uri",
    [
        "dragoman://session/",
        "dragoman://session/1",
        "dragoman://session/../1",
        "dragoman://session/{digest}/",
        "dragoman://session/{digest}/xml",
        "dragoman://session/{digest}?x=1",
        "dragoman://session/{digest}#x",
        "dragoman://session/{digest}\n",
        "dragoman://session/{upper}",
        "dragoman://other/{digest}",
        "DRAGOMAN://session/{digest}",
        "file:///etc/passwd",
        "x" * 100_000,
        "",
    ],
)
async def test_only_the_exact_form_is_a_resource(uri: str) -> None:
    """One URI per resource; the error for others lists the forms."""
    storage = MemoryStorage()
    identity, _ = await stored(storage, "x", chat="1")
    uri = uri.replace("{digest}", identity.digest).replace("{upper}", identity.digest.upper())
    async with connected(storage) as client:
        with pytest.raises(MCPError, match="no such resource") as caught:
            await client.read_resource(uri)
    assert len(str(caught.value)) < 200


async def test_long_conversations_keep_their_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Markdown says what is left out; JSON that is too long is an error."""
    monkeypatch.setattr(resources, "_MAX_CHARS", 2000)
    storage = MemoryStorage()
    identity, _ = await stored(storage, *(f"{n} {'x' * 300}" for n in range(30)), chat="1")
    async with connected(storage) as client:
        markdown = await text(client, f"dragoman://session/{identity.digest}")
        assert "Earlier messages are omitted" in markdown.text
        assert "> 29 x" in markdown.text
        assert len(markdown.text) < 2300
        with pytest.raises(MCPError, match="too large for a resource"):
            await client.read_resource(f"dragoman://session/{identity.digest}/json")


@pytest.mark.parametrize("mode", MODES)
async def test_prompts_include_their_conversation(mode: str) -> None:
    """As a resource, then the request; without a session they say what is missing."""
    storage = MemoryStorage()
    await stored(storage, "Where is it?", agent="chat", chat="1")
    async with connected(storage, mode=mode) as client:
        for listed in (await client.list_prompts()).prompts:
            assert listed.arguments is not None
            prompt = await client.get_prompt(listed.name, {"session": "chat/1"})
            conversation, asked = (message.content for message in prompt.messages)
            assert isinstance(conversation, EmbeddedResource)
            assert isinstance(conversation.resource, TextResourceContents)
            assert "> Where is it?" in conversation.resource.text
            assert isinstance(asked, TextContent)
        with pytest.raises(MCPError, match="needs a session"):
            await client.get_prompt("continue_conversation", {})
        with pytest.raises(MCPError, match="no such prompt"):
            await client.get_prompt("other", {"session": "chat/1"})


async def test_listeners_are_notified_of_changes(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of subscribed and new sessions; never of sessions out of scope."""
    monkeypatch.setattr(server, "INTERVAL", 0.02)
    async with backend.opened() as storage, backend.opened() as elsewhere:
        ours, _ = await stored(storage, "x", agent="mine", chat="1")
        theirs, _ = await stored(storage, "x", agent="theirs", chat="1")
        uris = [f"dragoman://session/{each.digest}" for each in (ours, theirs)]
        async with connected(storage, names=["mine/*"]) as client:
            listening = client.listen(resource_subscriptions=uris, resources_list_changed=True)
            async with asyncio.timeout(PATIENCE), listening as events:
                writers = [await ChatHistory.open(each, elsewhere) for each in (theirs, ours)]
                for writer in writers:
                    await writer.add("y")
                assert await anext(aiter(events)) == ResourceUpdated(uris[0])
                for agent in ("theirs", "mine"):
                    new = SessionIdentity(agent=agent, chat="2")
                    await (await ChatHistory.open(new, elsewhere)).add("z")
                assert await anext(aiter(events)) == ResourcesListChanged()


async def test_nothing_is_polled_without_listeners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor after the last one has left."""
    monkeypatch.setattr(server, "INTERVAL", 0.01)
    storage = MemoryStorage()
    identity, _ = await stored(storage, "x", chat="1")
    uri = f"dragoman://session/{identity.digest}"
    looked: list[str] = []
    look = server.Watcher._look

    async def counted(self: server.Watcher, uri: str) -> None:
        looked.append(uri)
        await look(self, uri)

    monkeypatch.setattr(server.Watcher, "_look", counted)
    async with connected(storage) as client:
        await asyncio.sleep(0.05)
        assert looked == []
        async with client.listen(resource_subscriptions=[uri]):
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.05)
        assert looked != []
        looked.clear()
        await asyncio.sleep(0.05)
        assert looked == []
