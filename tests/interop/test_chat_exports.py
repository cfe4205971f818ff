"""Conversations exported from ChatGPT and Claude, and those of ShareGPT data sets."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import Request, Role, Text
from dragoman.errors import DragomanError, InvalidInputError
from dragoman.interop import ChatExport, from_chat_export
from dragoman.model.parts import Opaque
from dragoman.wire.dialect import dialects

PICTURE = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}


def node(name: str, parent: str | None, role: str, content: Any, **fields: Any) -> dict[str, Any]:
    """A node of a ChatGPT conversation."""
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    message = {
        "id": name,
        "author": {"role": role, "name": fields.pop("tool", None)},
        "create_time": 1_700_000_000.0 + len(name),
        "content": content,
        "recipient": "all",
        "metadata": {"model_slug": "gpt-5"} if role == "assistant" else {},
    }
    return {"id": name, "parent": parent, "children": [], "message": {**message, **fields}}


def chatgpt(*nodes: dict[str, Any], current: str | None = None) -> dict[str, Any]:
    """A ChatGPT conversation."""
    root: dict[str, Any] = {"id": "root", "message": None, "parent": None, "children": []}
    return {
        "title": "Bridges",
        "conversation_id": "c-1",
        "current_node": current or nodes[-1]["id"],
        "mapping": {"root": root} | {each["id"]: each for each in nodes},
        "gizmo_id": None,
    }


CODE = {"content_type": "code", "language": "python", "text": "print(1557)"}
TALK = chatgpt(
    node("hidden", "root", "system", ""),
    node("typo", "hidden", "user", "Who built the brige?"),
    node("question", "hidden", "user",
         {"content_type": "multimodal_text", "parts": [PICTURE, "Who built it?"]}),
    node("thoughts", "question", "assistant",
         {"content_type": "thoughts", "thoughts": [{"summary": "Look", "content": "closely"}]}),
    node("code", "thoughts", "assistant", CODE, recipient="python"),
    node("output", "code", "tool", {"content_type": "execution_output", "text": "1557"},
         tool="python"),
    node("answer", "output", "assistant", "Mimar Hayruddin."),
)  # fmt: skip


def test_chatgpt_shows_the_current_branch() -> None:
    """The messages are those on the way to the current node, with roles, ids, times and model."""
    export = from_chat_export(TALK)
    assert (export.format, export.id, export.title) == ("chatgpt", "c-1", "Bridges")
    roles = [message.role.value for message in export.messages]
    assert roles == ["user", "assistant", "assistant", "tool", "assistant"]
    question, thoughts, code, output, answer = export.messages
    assert question.text == "Who built it?"
    assert question.created_at == 1_700_000_008.0
    assert thoughts.thinking == "Look\n\nclosely"
    assert (code.tool_calls[0].name, code.tool_calls[0].raw) == ("python", "print(1557)")
    assert output.tool_results[0].call_id == code.tool_calls[0].id
    assert output.tool_results[0].text == "1557"
    assert answer.id == "answer"
    assert answer.origin is not None
    assert answer.origin.model == "gpt-5"


def test_messages_without_a_usable_id_get_one_of_their_own() -> None:
    """An id that is too long for a store is replaced with its digest; others are kept."""
    names = ["x" * 128, "y" * 129, "z" * 129, "\ud800" * 200]
    nodes = [
        node(name, parent, "user", "Hi")
        for name, parent in zip(names, ["root", *names], strict=False)
    ]
    ids = [message.id for message in from_chat_export(chatgpt(*nodes)).messages]
    assert ids[0] == names[0]
    assert len(set(ids)) == len(names)
    assert all(re.fullmatch("[0-9a-f]{64}", each) for each in ids[1:])


def test_chatgpt_other_branches_follow() -> None:
    """An edited question is a branch after the message before it; here there is none."""
    (branch,) = from_chat_export(TALK).branches
    assert branch.after is None
    assert [message.text for message in branch.messages] == ["Who built the brige?"]


def test_chatgpt_branches_of_branches_come_after_them() -> None:
    """A branch names a message that was listed before it."""
    export = from_chat_export(
        chatgpt(
            node("a", "root", "user", "a"),
            node("b", "a", "assistant", "b"),
            node("old", "a", "assistant", "old"),
            node("older", "old", "user", "older"),
            node("oldest", "old", "user", "oldest"),
            node("c", "b", "user", "c"),
        )
    )
    assert [message.text for message in export.messages] == ["a", "b", "c"]
    assert [
        (each.after, [message.text for message in each.messages]) for each in export.branches
    ] == [
        ("a", ["old", "older"]),
        ("old", ["oldest"]),
    ]


def test_nothing_of_a_message_disappears() -> None:
    """Fields without a place in our messages are in the metadata; unknown content is opaque."""
    export = from_chat_export(TALK)
    question = export.messages[0]
    assert question.parts[0] == Opaque("chatgpt", PICTURE)
    assert question.metadata["chatgpt"]["recipient"] == "all"
    assert question.metadata["chatgpt"]["conversation"]["conversation_id"] == "c-1"
    assert export.messages[2].metadata["chatgpt"]["content"] == CODE


CLAUDE = {
    "uuid": "c-2",
    "name": "Walls",
    "created_at": "2026-01-02T03:04:05Z",
    "chat_messages": [
        {
            "uuid": "m-1",
            "sender": "human",
            "text": "How old?",
            "created_at": "2026-01-02T03:04:05Z",
            "attachments": [{"file_name": "wall.txt", "extracted_content": "stone"}],
            "files": [{"file_name": "wall.png"}],
        },
        {
            "uuid": "m-2",
            "sender": "assistant",
            "created_at": "2026-01-02T03:04:06Z",
            "content": [
                {"type": "thinking", "thinking": "Search."},
                {"type": "tool_use", "name": "web_search", "input": {"query": "walls"}},
                {"type": "tool_result", "content": [{"type": "text", "text": "1358"}]},
                {"type": "text", "text": "From 1358."},
                {"type": "chart", "points": [1]},
            ],
        },
    ],
}


def test_results_of_claudes_tools_become_messages() -> None:
    """A tool's result becomes a tool message, linked to the call before it."""
    export = from_chat_export(CLAUDE)
    assert (export.format, export.id, export.title) == ("claude", "c-2", "Walls")
    question, call, result, answer = export.messages
    assert [message.role for message in export.messages] == [
        Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT,
    ]  # fmt: skip
    assert question.text == "How old?"
    assert base64.b64decode(question.media[0].data or "") == b"stone"
    assert call.thinking == "Search."
    assert result.tool_results[0].call_id == call.tool_calls[0].id
    assert answer.text == "From 1358."
    assert answer.parts[1] == Opaque("claude", {"type": "chart", "points": [1]})
    assert answer.created_at == 1767323046.0


def test_sharegpt_is_read() -> None:
    """With its system prompt, calls and results; calls of one name are told apart."""
    export = from_chat_export(
        {
            "system": "Be brief.",
            "conversations": [
                {"from": "human", "value": "Rain?"},
                {"from": "function_call", "value": '{"name": "weather", "arguments": {"at": 1}}'},
                {"from": "observation", "value": "dry", "weight": 0},
                {"from": "gpt", "value": "No."},
                {"from": "function_call", "value": '{"name": "weather", "arguments": {}}'},
            ],
        }
    )
    system, question, call, result, answer, again = export.messages
    roles = [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT, Role.ASSISTANT]
    assert [message.role for message in export.messages] == roles
    assert (system.text, question.text) == ("Be brief.", "Rain?")
    assert call.tool_calls[0].arguments == {"at": 1}
    assert [each.tool_calls[0].name for each in (call, again)] == ["weather", "weather"]
    assert call.tool_calls[0].id != again.tool_calls[0].id
    assert result.tool_results[0].call_id == call.tool_calls[0].id
    assert result.tool_results[0].content == (Text("dry"),)
    assert result.metadata["sharegpt"] == {"weight": 0}
    assert answer.text == "No."


@pytest.mark.parametrize("name", dialects())
@pytest.mark.parametrize("wire", [TALK, CLAUDE])
def test_exports_can_be_sent_to_every_dialect(wire: dict[str, Any], name: str) -> None:
    """The encoded request is valid."""
    spoken = dragoman.dialect(name)
    request = Request(model="m", messages=tuple(from_chat_export(wire).messages))
    assert not [
        each
        for each in spoken.check(spoken.encode_request(request).body)
        if each.severity == "error"
    ]


@pytest.mark.parametrize("other", [{}, {"messages": []}, {"mapping": {"a": 1}}, [], "text", None])
def test_other_values_are_refused(other: Any) -> None:
    """The error describes what is expected."""
    with pytest.raises(InvalidInputError, match="not a conversation exported"):
        from_chat_export(other)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
ROLES = st.sampled_from(["user", "assistant", "tool", "system", "nobody"]) | JSON
CONTENT = JSON | st.fixed_dictionaries(
    {"content_type": st.sampled_from(["text", "code", "thoughts", "user_editable_context"])},
    optional={"parts": JSON, "text": JSON, "thoughts": JSON, "result": JSON, "user_profile": JSON},
)
NODES = st.dictionaries(
    st.sampled_from("abcdef"),
    st.fixed_dictionaries(
        {"parent": st.sampled_from([*"abcdef", None]) | JSON},
        optional={
            "message": JSON
            | st.fixed_dictionaries(
                {"author": st.fixed_dictionaries({"role": ROLES}) | JSON, "content": CONTENT},
                optional={"recipient": JSON, "create_time": JSON, "metadata": JSON, "id": JSON},
            )
        },
    ),
)


@given(NODES, JSON)
def test_any_tree_is_read_whole_or_refused(nodes: dict[str, Any], current: Any) -> None:
    """Circles, missing parents and odd content included: no message is read twice or left out."""
    try:
        export = from_chat_export({"mapping": nodes, "current_node": current})
    except DragomanError:
        return
    found = [message.id for branch in _branches(export) for message in branch]
    assert len(found) == len(set(found))
    known: set[str] = {message.id for message in export.messages}
    for branch in export.branches:
        assert branch.after is None or branch.after in known
        known |= {message.id for message in branch.messages}


def _branches(export: ChatExport) -> list[Any]:
    return [export.messages, *(branch.messages for branch in export.branches)]


@given(st.fixed_dictionaries({"chat_messages": st.lists(st.dictionaries(
    st.sampled_from(["uuid", "sender", "text", "content", "attachments", "files", "created_at"]),
    JSON | st.sampled_from(["human", "assistant"]) | st.lists(st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "thinking", "tool_use", "tool_result"])},
        optional={"text": JSON, "thinking": JSON, "name": JSON, "input": JSON, "content": JSON,
                  "id": JSON, "tool_use_id": JSON},
    )),
), max_size=4)}))  # fmt: skip
def test_any_messages_of_claude_are_read_or_refused(wire: dict[str, Any]) -> None:
    """With ids of their own each."""
    try:
        export = from_chat_export(wire)
    except DragomanError:
        return
    ids = [message.id for message in export.messages]
    assert len(ids) == len(set(ids))
