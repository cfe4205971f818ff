"""Sessions out of scope don't exist for any tool, resource, prompt or completion."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from dragoman import ChatHistory, SessionIdentity
from dragoman.errors import ConfigError
from dragoman.history import Filter, MemoryStorage, Storage
from dragoman.mcp.serving import served_sessions
from dragoman.mcp.serving.served_sessions import Pattern, Scope, scope_of
from dragoman.testing.conformance.stores.backends import Backend
from tests.mcp.serving.clients import call, connected, refusal, stored

SECRET = "xyzzy"
OURS = {"agent": "support", "chat": "7"}
OUR_NAMES = ("support/7", "7")
# Names that only look like `support/7`.
FOREIGN: list[dict[str, str]] = [
    {"agent": "support", "chat": "77"},
    {"agent": "support", "chat": "7 "},
    {"agent": "support", "chat": "7\0"},
    {"agent": "support", "chat": "7/7"},
    {"agent": "support", "chat": "\uff17"},  # a full-width digit
    {"agent": "Support", "chat": "7"},
    {"agent": "\u0455upport", "chat": "7"},  # a Cyrillic letter
    {"agent": "support/7", "chat": "7"},
    {"agent": "support", "chat": "7", "user": "ana"},
    {"agent": "other", "chat": "7"},
    {"chat": "7"},
    {"user": "7"},
]


@asynccontextmanager
async def attacked(storage: Storage, scope: dict[str, Any]) -> AsyncGenerator[Client]:
    """A client, with writing, of a store that also has sessions it must not see."""
    async with connected(storage, writes=True, **scope) as client:
        yield client


async def filled(storage: Storage) -> tuple[dict[str, list[str]], list[SessionIdentity]]:
    """Ours, and all foreign sessions with a secret in each: messages by digest, and identities."""
    ids: dict[str, list[str]] = {}
    foreign: list[SessionIdentity] = []
    ours, ids_of_ours = await stored(storage, "Our bridge", "Our answer", **OURS)
    ids[ours.digest] = ids_of_ours
    for names in FOREIGN:
        identity, ids[identity.digest] = await stored(storage, f"{SECRET} bridge", **names)
        foreign.append(identity)
    return ids, foreign


async def test_foreign_sessions_are_not_listed_found_read_or_written(backend: Backend) -> None:
    """Nor forked, by id, name, prefix or message; no secret is returned."""
    async with backend.opened() as storage:
        ids, foreign = await filled(storage)
        ours = SessionIdentity(**OURS).digest
        versions = {each: (await _session(storage, each)).version for each in foreign}
        said: list[str] = []
        async with attacked(storage, {"names": [ours]}) as client:
            listed = await call(client, "list_sessions", limit=100)
            assert [each["id"] for each in listed["sessions"]] == [ours]
            found = await call(client, "search", query="bridge", limit=100)
            assert [each["session"] for each in found["messages"]] == [ours]
            assert (await call(client, "search", query=SECRET))["messages"] == []
            resources = (await client.list_resources()).resources
            assert [each.uri for each in resources] == [f"dragoman://session/{ours}"]
            for identity in foreign:
                for tool, more in (
                    ("read_session", {}),
                    ("search", {"query": SECRET}),
                    ("append_message", {"text": "x"}),
                    ("append_message", {"text": "x", "create": True}),
                    ("fork_session", {"message_id": ids[identity.digest][0]}),
                    ("fork_session", {"message_id": ids[ours][0]}),
                ):
                    problem = await refusal(client, tool, session=identity.digest, **more)
                    said.append(problem)
                for name in (identity.digest[:12], identity.digest.upper(), *_names(identity)):
                    said.append(await refusal(client, "read_session", session=name))  # noqa: PERF401 - awaits
                for form in ("", "/json"):
                    with pytest.raises(MCPError) as caught:
                        await client.read_resource(f"dragoman://session/{identity.digest}{form}")
                    said.append(str(caught.value))
                with pytest.raises(MCPError) as caught:
                    await client.get_prompt("continue_conversation", {"session": identity.digest})
                said.append(str(caught.value))
                # A foreign message, as if it were ours.
                id = ids[identity.digest][0]
                said.append(await refusal(client, "fork_session", session=ours, message_id=id))
            prompt = PromptReference(name="continue_conversation")
            done = await client.complete(prompt, {"name": "session", "value": ""})
            assert done.completion.values == ["support/7"]
            template = ResourceTemplateReference(uri="dragoman://session/{id}")
            done = await client.complete(template, {"name": "id", "value": ""})
            assert done.completion.values == [ours]
        assert not [text for text in said if SECRET in text]
        assert versions == {each: (await _session(storage, each)).version for each in foreign}
        assert len(await storage.sessions()) == len(FOREIGN) + 1


def _names(identity: SessionIdentity) -> list[str]:
    """Possible names of it, except those of ours."""
    name = f"{identity.agent}/{identity.chat}"
    return [each for each in (name, identity.chat, identity.key) if each and each not in OUR_NAMES]


async def _session(storage: Storage, identity: SessionIdentity) -> Any:
    return await storage.session(identity)


async def test_missing_and_out_of_scope_are_the_same() -> None:
    """The answers don't reveal which sessions exist."""
    storage = MemoryStorage()
    await filled(storage)
    ours = SessionIdentity(**OURS).digest
    async with attacked(storage, {"names": [ours]}) as client:
        for there, absent in (
            ("other/7", "other/8"),
            (SessionIdentity(agent="other", chat="7").digest, "0" * 40),
        ):
            for tool, more in (("read_session", {}), ("append_message", {"text": "x"})):
                assert await refusal(client, tool, session=there, **more) == await refusal(
                    client, tool, session=absent, **more
                )


async def test_a_new_session_stays_in_scope() -> None:
    """It gets the names of the scope; others are rejected."""
    storage = MemoryStorage()
    scope: dict[str, Any] = {"which": Filter(agent="support", user="ana")}
    async with attacked(storage, scope) as client:
        for name in ("other/1", "/1"):
            problem = await refusal(client, "append_message", session=name, text="x", create=True)
            assert "outside" in problem
        for name in ("1", "support/1"):
            made = await call(client, "append_message", session=name, text="x", create=True)
            mine = SessionIdentity(agent="support", chat="1", user="ana")
            assert made["session"] == mine.digest
    async with attacked(storage, {"names": ["notes/*"]}) as client:
        for name in ("notes", "Notes/1", "x/notes/1", "notes2/1"):
            problem = await refusal(client, "append_message", session=name, text="x", create=True)
            assert "outside" in problem
        await call(client, "append_message", session="notes/1", text="x", create=True)
    assert len(await storage.sessions()) == 2


async def test_a_name_stays_bound_to_one_session() -> None:
    """A later session with that name or prefix is not served."""
    storage = MemoryStorage()
    ours, _ = await stored(storage, "ours", chat="notes")
    await stored(storage, SECRET, chat="notes-private")
    async with connected(storage, names=["notes"]) as client:
        await stored(storage, SECRET, agent="later", chat="notes")
        listed = await call(client, "list_sessions")
        assert [each["id"] for each in listed["sessions"]] == [ours.digest]
        assert "> ours" in (await call(client, "read_session", session="notes"))["text"]
        assert (await call(client, "search", query=SECRET))["messages"] == []
    with pytest.raises(ConfigError, match="2 sessions match a --session name"):
        await scope_of(storage, ["notes"])
    await storage.delete(ours)
    await storage.delete(SessionIdentity(agent="later", chat="notes"))
    with pytest.raises(ConfigError, match="matches no session"):  # not the one that begins so
        await scope_of(storage, ["notes"])


@pytest.mark.parametrize("name", ["", "nothing", "note", "notes/", "/notes", "[n]otes", "note{s}"])
async def test_a_name_without_a_session_ends_the_server(name: str) -> None:
    """An empty scope must not become everything."""
    storage = MemoryStorage()
    await stored(storage, "x", chat="notes")
    with pytest.raises(ConfigError, match="matches no session"):
        await scope_of(storage, [name])


async def test_a_pattern_without_matches_serves_nothing() -> None:
    """As yet."""
    storage = MemoryStorage()
    await stored(storage, SECRET, chat="notes")
    async with connected(storage, names=["other*"]) as client:
        assert (await call(client, "list_sessions"))["sessions"] == []
        assert (await call(client, "search", query=SECRET))["messages"] == []
        assert (await client.list_resources()).resources == []


@pytest.mark.parametrize(
    ("pattern", "names", "is_taken"),
    [
        ("note*", {"chat": "notes"}, True),
        ("note?", {"chat": "notes"}, True),
        ("note?", {"chat": "note"}, False),
        ("note?", {"chat": "notes of others"}, False),
        ("*/7", {"agent": "support", "chat": "77"}, False),
        ("?/7", {"agent": "ab", "chat": "7"}, False),
        ("note*", {"chat": "my notes"}, False),
        ("a*", {"agent": "a", "chat": "x"}, False),  # of a chat, not of `agent=a …`
        ("*", {"user": "ana"}, False),
        ("*", {"agent": "a", "chat": "b/c\nd"}, True),
        ("support/*", {"agent": "support", "chat": "7"}, True),
        ("support/*", {"agent": "support", "chat": "7", "user": "ana"}, True),
        ("support/*", {"chat": "support/7"}, False),
        ("support/*", {"agent": "support/x", "chat": "7"}, False),
        ("support/*", {"agent": "support2", "chat": "7"}, False),
        ("*/7", {"agent": "support", "chat": "7"}, True),
        ("*/7", {"chat": "7"}, False),
        ("[a-z]*", {"chat": "x"}, False),
        ("x.*", {"chat": "xyz"}, False),
        ("x.*", {"chat": "x.z"}, True),
        ("NOTE*", {"chat": "notes"}, False),
    ],
)
def test_patterns_match_complete_names(pattern: str, names: dict[str, str], is_taken: bool) -> None:
    """Only `*` and `?` are special; case and script count."""
    scope = Scope(patterns=(Pattern.parse(pattern),))
    assert scope.takes(SessionIdentity(**names)) is is_taken


_NAME = st.text(st.sampled_from("ab/*?.7\n"), max_size=6)


@given(agent=_NAME, chat=_NAME)
def test_a_session_s_own_name_selects_it(agent: str, chat: str) -> None:
    """Whatever characters it has; other selected sessions have the same name."""
    from dragoman.mcp.serving.served_sessions import sessions_called
    from dragoman.model import portal

    storage = MemoryStorage()
    name = f"{agent}/{chat}"

    async def look() -> None:
        identity, _ = await stored(storage, "x", agent=agent, chat=chat)
        others = [SessionIdentity(chat=name), SessionIdentity(agent=agent), *_split(name)]
        for other in others:
            history = await ChatHistory.open(other, storage)
            await history.add("y")
        found = {each.identity for each in await sessions_called(storage, name, Scope())}
        assert identity in found
        for each in found:
            full = each.chat if each.agent is None else f"{each.agent}/{each.chat}"
            assert full == name

    portal.run(look())


def _split(name: str) -> list[SessionIdentity]:
    places = [place for place, each in enumerate(name) if each == "/"]
    return [SessionIdentity(agent=name[:at], chat=name[at + 1 :]) for at in places]


@pytest.mark.parametrize("rare", [5, 1000])
async def test_pages_of_a_search_are_full_whatever_is_out_of_scope(
    backend: Backend, rare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages out of scope take no place in the results."""
    monkeypatch.setattr(served_sessions, "_MAX_HITS", rare)
    async with backend.opened() as storage:
        for number in range(12):
            await stored(storage, f"bridge {number}", agent="mine", chat=str(number))
        for number in range(10):
            await stored(storage, *["bridge"] * 3, agent="theirs", chat=str(number))
        async with connected(storage, names=["mine/*"]) as client:
            found = (await call(client, "search", query="bridge", limit=10))["messages"]
        assert [each["session_name"] for each in found] == [f"mine/{n}" for n in range(11, 1, -1)]


async def test_filters_are_those_of_the_history_commands() -> None:
    """All given names must match."""
    storage = MemoryStorage()
    users = ("ana", "ben")
    for user, chat in itertools.product(users, "12"):
        await stored(storage, f"{user} bridge", user=user, chat=chat)
    async with connected(storage, which=Filter(user="ana")) as client:
        listed = (await call(client, "list_sessions"))["sessions"]
        assert {each["identity"]["user"] for each in listed} == {"ana"}
        found = (await call(client, "search", query="bridge"))["messages"]
        assert {each["excerpt"] for each in found} == {"ana bridge"}
        assert "> ana" in (await call(client, "read_session", session="1"))["text"]
    async with connected(storage, which=Filter(user="ana"), names=["1"]) as client:
        listed = (await call(client, "list_sessions"))["sessions"]
        assert [each["identity"] for each in listed] == [{"chat": "1", "user": "ana"}]
    bens = SessionIdentity(user="ben", chat="1")
    with pytest.raises(ConfigError, match="matches no session"):
        await scope_of(storage, [bens.digest], Filter(user="ana"))
