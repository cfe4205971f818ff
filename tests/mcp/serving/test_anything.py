"""Any arguments of a model and any session names, generated."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mcp.client.client import Client

from dragoman import SessionIdentity
from dragoman.errors import DragomanError
from dragoman.history import MemoryStorage
from dragoman.mcp.serving.served_sessions import scope_of
from dragoman.mcp.serving.server import server_of
from dragoman.mcp.serving.tools import TOOLS
from dragoman.model import portal
from tests.mcp.serving.clients import call, connected, stored, text_of

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXT
_ANY = st.recursive(
    _SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
_LIKELY: st.SearchStrategy[Any] = st.sampled_from([
    "one", "chat/one", "a", "gemini", "anthropic", "auto", "json", 0, 1, -1, 2**63, 1.0, "7", True,
    [], {}, [{"role": "user", "content": "Hi"}], {"messages": [{"role": "user"}]}, {"input": []},
    {"contents": [{"parts": [{}]}]}, '{"messages": []}', "[]", "{", "dragoman", None,
])  # fmt: skip
_NAMES = sorted({name for tool in TOOLS for name in tool.takes.__struct_fields__})
_ARGUMENTS = st.dictionaries(st.sampled_from(_NAMES) | _TEXT, _LIKELY | _ANY, max_size=4)


@given(st.lists(st.tuples(st.sampled_from(TOOLS), _ARGUMENTS), min_size=5, max_size=20))
def test_any_arguments_give_a_result_or_an_error(
    calls: list[tuple[Any, dict[str, Any]]],
) -> None:
    """Never an internal error, never the end of the connection."""

    async def check() -> None:
        storage = MemoryStorage()
        await stored(storage, "Hello", agent="chat", chat="one")
        async with connected(storage, writes=True) as client:
            for tool, given_ in calls:
                known = {n: v for n, v in given_.items() if n in tool.takes.__struct_fields__}
                for arguments in (given_, known):
                    result = await client.call_tool(tool.name, arguments)
                    assert "internal error" not in text_of(result)
                    assert result.is_error is (result.structured_content is None)

    portal.run(check())


_NAME = st.text(st.sampled_from("ab/*? \u0430\uff41A\n"), max_size=4)
_IDENTITY = st.dictionaries(st.sampled_from(["agent", "chat", "user"]), _NAME, min_size=1).map(
    lambda names: SessionIdentity(**names)
)


@given(
    identities=st.lists(_IDENTITY, min_size=1, max_size=6, unique=True),
    scopes=st.lists(_NAME | st.builds("{}/{}".format, _NAME, _NAME), min_size=1, max_size=2),
    asked=st.lists(_NAME, max_size=3),
)
def test_no_scope_reveals_other_sessions(
    identities: list[SessionIdentity], scopes: list[str], asked: list[str]
) -> None:
    """Each session has a unique word; no answer has the word of one outside."""

    async def check() -> None:
        storage = MemoryStorage()
        for number, identity in enumerate(identities):
            names = {f: getattr(identity, f) for f in ("agent", "chat", "user")}
            given_ = {field: name for field, name in names.items() if name is not None}
            await stored(storage, f"word{number}word shared", **given_)
        try:
            scope = await scope_of(storage, scopes)
        except DragomanError:
            return  # a name that no session has, or several
        outside = [f"word{n}word" for n, i in enumerate(identities) if not scope.takes(i)]
        inside = [f"word{n}word" for n, i in enumerate(identities) if scope.takes(i)]
        async with Client(server_of(storage, scope, writes=True)) as client:
            said = [
                await call(client, "list_sessions"),
                await call(client, "search", query="shared"),
            ]
            assert all(word in json.dumps(said[1]) for word in inside)
            for identity in identities:
                for name in (identity.digest, identity.chat, f"{identity.agent}/{identity.chat}"):
                    for tool, more in (("read_session", {}), ("search", {"query": "shared"})):
                        result = await client.call_tool(tool, {"session": name, **more})
                        said.append(text_of(result))
            for name in asked:
                new = {"session": name, "text": "x", "create": True}
                said.append(text_of(await client.call_tool("append_message", new)))
        whole = json.dumps(said)
        assert not [word for word in outside if word in whole]
        for session in await storage.sessions():
            assert session.identity in identities or scope.takes(session.identity)

    portal.run(check())
