"""The lens: two targets side by side, aligned message by message."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import dragoman
from dragoman.gateway.config.settings import GatewayConfig, ServerSettings
from dragoman.gateway.page.alignment import Aligned, aligned, fresh
from dragoman.gateway.page.code_snippets import text_of
from dragoman.gateway.page.lens import Pasted, compared, read, value_at, wire_path
from dragoman.history import ChatHistory, SessionIdentity
from dragoman.model.jsontext import dumps
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.model.tools import make_call
from tests.corpus import Corpus
from tests.gateway.page.asked import ask
from tests.gateway.running import Serving, running
from tests.wire.recorded import bodies
from tests.wire.test_matrix_random import _mark_of, histories

WEATHER = {
    "model": "gpt-4o",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Will it rain in Mostar?"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function",
             "function": {"name": "weather", "arguments": '{"city": "Mostar"}'}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "dry"},
        {"role": "assistant", "content": "No."},
        {"role": "user", "content": "And tomorrow?"},
    ],
    "top_k": 5,
}  # fmt: skip
HOSTILE = "it's $HOME `id` $(id) \\ \" ' \n @file !! \u2028 \U0001f600 %s"


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    """A gateway without providers: the lens makes no upstream requests."""
    with running(GatewayConfig()) as found:
        yield found


def _aligned(request: Request, name: str) -> tuple[Aligned, dict[str, Any], str]:
    spoken = dragoman.dialect(name)
    body = spoken.encode_request(request).body
    found = aligned(request, body, spoken.messages_field, spoken.system_field)
    return found, body, spoken.messages_field


def _expect_partition(found: Aligned) -> None:
    """Paths are unique and not nested in each other."""
    paths = [path for row in found.rows for path in row]
    assert len(paths) == len(set(paths))
    whole = set(paths)
    for path in paths:
        pieces = [path[: cut.start()] for cut in re.finditer(r"[.\[]", path)]
        assert whole.isdisjoint(pieces)


# --- alignment


@pytest.mark.parametrize("name", dragoman.dialects())
@settings(max_examples=8)
@given(request=histories())
def test_what_a_message_says_is_in_its_row(name: str, request: Request) -> None:
    """Every text, call, result and media part in the body is in its message's row."""
    request = fresh(request)
    found, body, _ = _aligned(request, name)
    _expect_partition(found)
    sent = dumps(body).decode()
    for message, paths in zip(request.messages, found.rows, strict=True):
        here = dumps([value_at(body, path) for path in paths]).decode()
        for part in message.parts:
            mark = _mark_of(part)
            assert not mark or mark not in sent or mark in here


@pytest.mark.parametrize("name", dragoman.dialects())
@settings(max_examples=3)
@given(request=histories())
def test_texts_of_their_own_change_nothing(name: str, request: Request) -> None:
    """A request whose texts were copied is encoded as it was."""
    spoken = dragoman.dialect(name)
    assert spoken.encode_request(fresh(request)).body == spoken.encode_request(request).body


@pytest.mark.parametrize("name", dragoman.dialects())
def test_recorded_requests_are_whole_in_their_own_dialect(name: str, corpus: Corpus) -> None:
    """In a recording, every item belongs to one message, in order."""
    count = 0
    for recorded in bodies(corpus, name, "core"):
        request = recorded.decode()
        if not isinstance(request, Request) or not request.messages or count >= 60:
            continue
        count += 1
        request = fresh(request)
        found, body, field = _aligned(request, name)
        _expect_partition(found)
        items = body.get(field)
        if isinstance(items, list) and len(items) == len(request.messages):
            assert found.rows == [[f"{field}[{i}]"] for i in range(len(items))]
    assert count


def test_plain_conversations_are_aligned_one_by_one() -> None:
    """A weather report: instructions, question, call, result, answer."""
    request = fresh(dragoman.dialect("openai-chat").decode_request(WEATHER))
    chat, _, _ = _aligned(request, "openai-chat")
    assert chat.rows == [[f"messages[{i}]"] for i in range(6)]
    claude, _, _ = _aligned(request, "anthropic")
    assert claude.rows == [["system"], *([f"messages[{i}]"] for i in range(5))]
    items, _, _ = _aligned(request, "openai-responses")
    assert items.rows == [[f"input[{i}]"] for i in range(6)]
    google, _, _ = _aligned(request, "gemini")
    assert google.rows == [
        ["systemInstruction.parts[0]"],
        *([f"contents[{i}]"] for i in range(5)),
    ]


def test_messages_that_say_the_same_are_told_apart() -> None:
    """Many texts are duplicates, or too short to be identified."""
    talk = [Message(Role.USER if i % 2 == 0 else Role.ASSISTANT, "y" if i % 3 else "ok")
            for i in range(41)]  # fmt: skip
    for name in dragoman.dialects():
        found, _, field = _aligned(fresh(Request(model="m", messages=tuple(talk))), name)
        assert found.rows == [[f"{field}[{i}]"] for i in range(41)]


def test_merged_messages_have_the_pieces_that_are_theirs() -> None:
    """If a target merges messages, each row shows its own pieces."""
    talk = (Message.user("Hello"), Message.user("Are you there?"), Message.user("Well?"))
    request = fresh(Request(model="m", messages=talk))
    spoken = dragoman.dialect("anthropic")
    target = spoken.target.with_flags({"turns.alternates_roles": True})
    body = spoken.encode_request(request, target).body
    found = aligned(request, body, "messages", "system")
    assert found.rows == [[f"messages[0].content[{i}]"] for i in range(3)]


def test_an_added_result_belongs_to_nobody() -> None:
    """A tool result added by a repair belongs to no message."""
    request = fresh(Request(model="m", messages=(
        Message.user("Look it up."),
        Message(Role.ASSISTANT, (make_call("c1", "look", input={"a": 1}),)),
        Message.user("Never mind."),
    )))  # fmt: skip
    found, body, _ = _aligned(request, "openai-chat")
    assert len(body["messages"]) == 4
    assert found.rows == [["messages[0]"], ["messages[1]"], ["messages[3]"]]


def test_losses_are_shown_at_their_place() -> None:
    """A loss points to the part's path in the body."""
    looked = compared(read(dumps(WEATHER), None), "anthropic", "gemini")
    assert wire_path("messages[2].parts[0]", looked.left) == "messages[1].content[0]"
    assert wire_path("messages[0]", looked.left) == "system"
    assert wire_path("messages[99].parts[0]", looked.left) is None
    assert wire_path("sampling.top_k", looked.left) == "top_k"
    assert wire_path("sampling.seed", looked.left) is None


# --- over a socket


def test_both_sides_come_back(serving: Serving) -> None:
    """Bodies, rows, notes, rules and paths of two targets."""
    status, found = ask(serving, "lens", {"body": WEATHER, "left": "openai:gpt-4o-mini",
                                          "right": "anthropic"})  # fmt: skip
    assert status == 200
    assert found["source"] == "openai-chat"
    assert found["left"]["body"]["model"] == "gpt-4o-mini"
    assert found["right"]["path"] == "/v1/messages"
    assert [row["role"] for row in found["rows"]][:2] == ["system", "user"]
    assert found["rows"][1]["right"] == ["messages[0]"]
    assert [row["differs"] for row in found["rows"]][1] is False
    assert {each["wire_path"] for each in found["right"]["violations"]} <= {"max_tokens", "$"}


def test_rules_come_with_their_texts(serving: Serving) -> None:
    """Violations include the text of the rule."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "temperature": 9}
    _, found = ask(serving, "lens", {"body": json.dumps(body), "source": "openai-chat",
                                     "left": "openai-chat", "right": "gemini"})  # fmt: skip
    broken = found["left"]["violations"]
    assert broken
    assert all(each["text"] and each["wire_path"] == "temperature" for each in broken)
    _, listed = ask(serving, "rules?target=anthropic")
    assert ask(serving, "rules?target=nobody").status == 400
    assert {"W40", "W44"} <= {each["id"] for each in listed["rules"]}
    assert all(each["text"] for each in listed["rules"])


CHUNK = '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s]}'
STREAM = "".join(
    f"data: {each}\n\n"
    for each in (
        CHUNK % '{"index":0,"delta":{"role":"assistant","content":"Hello"}}',
        CHUNK % '{"index":0,"delta":{},"finish_reason":"stop"}',
        "[DONE]",
    )
)
PYDANTIC = [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]}]
LANGCHAIN = [
    {"type": "human", "data": {"content": "Hi"}},
    {"type": "ai", "data": {"content": "Ho"}},
]


@pytest.mark.parametrize(
    ("body", "source"),
    [
        (STREAM, "openai-chat"), (json.dumps(PYDANTIC), "pydantic-ai"),
        (json.dumps(LANGCHAIN), "langchain"),
        ('[{"role": "user", "content": "Hi"}]', "openai-chat"),
        ({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}, "gemini"),
        ({"id": "m", "type": "message", "role": "assistant", "model": "c", "usage": {},
          "stop_reason": "end_turn", "content": [{"type": "text", "text": "Hi"}]}, "anthropic"),
    ],
)  # fmt: skip
def test_whatever_is_pasted_is_read(serving: Serving, body: Any, source: str) -> None:
    """Streams, responses, message lists, and the formats of other libraries."""
    asked = {"body": body, "left": "openai-responses", "right": "anthropic"}
    status, found = ask(serving, "lens", asked)
    assert (status, found["source"]) == (200, source)
    assert all(row["left"] and row["right"] for row in found["rows"])


@pytest.mark.parametrize(
    "body",
    [
        {}, {"left": "gemini", "right": "gemini"}, {"body": {}, "left": 5, "right": "gemini"},
        {"body": "not JSON", "left": "gemini", "right": "gemini"},
        {"body": {"messages": 3}, "left": "gemini", "right": "gemini"},
        {"body": {"messages": []}, "left": "nobody", "right": "gemini"},
        {"body": WEATHER, "left": "gemini", "right": "openai:" + "x" * 400},
        {"body": WEATHER, "source": "klingon", "left": "gemini", "right": "gemini"},
        {"body": "[" * 200_000 + "]" * 200_000, "left": "gemini", "right": "gemini"},
        {"body": '{"a":' * 90_000 + "1" + "}" * 90_000, "left": "gemini", "right": "gemini"},
        {"body": "x" * (9 * 1024 * 1024), "left": "gemini", "right": "gemini"},
        {"body": {"messages": [None, 1, [], {"role": {}}]}, "left": "gemini", "right": "anthropic"},
        {"body": [{"role": "user", "content": "y"}] * 20_001, "left": "gemini", "right": "gemini"},
        {"conversation": "../../etc/passwd", "left": "gemini", "right": "anthropic"},
        {"conversation": "0" * 40, "branch": -1, "left": "gemini", "right": "anthropic"},
    ],
)  # fmt: skip
def test_hostile_bodies_give_errors(serving: Serving, body: Any) -> None:
    """Any input gives a JSON response without a server error."""
    status, found = ask(serving, "lens", body)
    assert status in {200, 400, 404, 413}
    assert (status == 200) == ("rows" in found)
    if status != 200:
        assert found["error"]["message"]
        assert "passwd" not in json.dumps(found)


def test_a_large_body_nested_deeply_is_refused(serving: Serving) -> None:
    """As many brackets as a body may have, as the body itself."""
    deep = b'{"left":"gemini","right":"gemini","body":' + b"[" * 40_000 + b"]" * 40_000 + b"}"
    assert ask(serving, "lens", deep).status == 400


def test_a_stored_conversation_is_shown(tmp_path: Path) -> None:
    """The page sends only the conversation's id; messages that can't be read are counted."""
    server = ServerSettings(history=f"sqlite:///{tmp_path / 'chats.db'}")

    async def written() -> str:
        identity = SessionIdentity(agent="chat", chat="1")
        async with await ChatHistory.open(identity, storage=server.history) as history:
            await history.add(Message.user("Where is the Old Bridge?"))
            await history.add(Message.assistant("In Mostar."))
        return identity.digest

    id = asyncio.run(written())
    with running(GatewayConfig(server=server)) as found:
        asked = {"conversation": id, "left": "anthropic", "right": "gemini"}
        status, shown = ask(found, "lens", asked)
        foreign = ask(found, "lens", {**asked, "conversation": "f" * 40})
    assert status == 200
    assert [row["left"] for row in shown["rows"]] == [["messages[0]"], ["messages[1]"]]
    assert shown["damaged"] == 0
    assert foreign.status == 404
    with closing(sqlite3.connect(tmp_path / "chats.db")) as at, at:
        at.execute("UPDATE messages SET body = '{' WHERE seq = 2")
    with running(GatewayConfig(server=server)) as found:
        shown = ask(found, "lens", asked).body
    assert (len(shown["rows"]), shown["damaged"]) == (1, 1)


# --- snippets


def _talk(text: str) -> Pasted:
    body = {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 10}
    return read(dumps(body), "openai-chat")


@pytest.mark.parametrize(
    "target",
    ["openai-chat", "anthropic", "gemini", "ollama", "vertex:gemini-3", "azure:own",
     "openai-compatible:x", "groq:a'b\"c$HOME"],
)  # fmt: skip
def test_a_shell_reads_curl_as_it_is_meant(target: str) -> None:
    """The shell's own parser gives curl the body, byte for byte, and the key from a variable."""
    shell = shutil.which("sh")
    if shell is None:
        pytest.skip("there is no sh here")
    side = compared(_talk(HOSTILE), target, "gemini").left
    text = text_of(side, "curl")
    assert text.isascii()
    spy = 'curl() { for each in "$@"; do printf "%s\\0" "$each"; done; }\n'
    keys = dict.fromkeys(re.findall(r"\$([A-Z_]+)\"", text), "SECRET")
    done = subprocess.run(
        [shell, "-c", spy + text], capture_output=True, check=True, env=keys, timeout=20
    )
    words = done.stdout.decode().split("\0")[:-1]
    assert json.loads(words[words.index("--data-raw") + 1]) == side.encoded.body
    assert words[0].startswith("http")
    if keys:
        assert any(word.endswith("SECRET") for word in words)
    assert done.stderr == b""


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "anthropic", "gemini",
                                    "azure:own", "groq:a'b\"c"])  # fmt: skip
def test_python_parses_and_holds_the_body(target: str) -> None:
    """A snippet is valid Python whose literal is the body, and names no key."""
    side = compared(_talk(HOSTILE), target, "gemini").left
    text = text_of(side, "python")
    tree = ast.parse(text)
    bodies = [node.value for node in tree.body if isinstance(node, ast.Assign)
              and getattr(node.targets[0], "id", "") == "body"]  # fmt: skip
    found = ast.literal_eval(bodies[0])
    assert found.items() <= side.encoded.body.items()
    assert any(HOSTILE in text for text in _texts(found))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def test_snippets_over_a_socket(serving: Serving) -> None:
    """Each form of each side works; anything else is rejected."""
    asked = {"body": WEATHER, "left": "openai", "right": "anthropic"}
    _, found = ask(serving, "snippet", {**asked, "side": "right", "form": "curl"})
    assert 'x-api-key: $ANTHROPIC_API_KEY"' in found["text"]
    _, found = ask(serving, "snippet", {**asked, "side": "left", "form": "json"})
    assert json.loads(found["text"])["model"] == "gpt-4o"
    assert ask(serving, "snippet", {**asked, "form": "perl"}).status == 400


@pytest.mark.parametrize(
    ("target", "limit", "stop"),
    [
        ("openai-chat", "max_completion_tokens", "stop"),
        ("openai-responses", "max_output_tokens", None),
        ("anthropic", "max_tokens", "stop_sequences"),
        ("gemini", "generationConfig.maxOutputTokens", "generationConfig.stopSequences"),
        ("ollama", "options.num_predict", "options.stop"),
    ],
)
def test_settings_are_found_in_every_dialect(target: str, limit: str, stop: str | None) -> None:
    """A finding about a setting is marked at its field, whatever the dialect calls it."""
    body = {"model": "m", "max_tokens": 9, "stop": ["x"], "messages": [
        {"role": "user", "content": "Hi"}]}  # fmt: skip
    side = compared(read(dumps(body), None), target, target).left
    assert wire_path("sampling.max_tokens", side) in {limit, "max_tokens"}
    assert wire_path("sampling.stop", side) == stop
