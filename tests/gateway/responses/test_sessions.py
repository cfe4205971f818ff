"""Exchanges in a history, by header or by route, whatever the dialect on either side."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from dragoman import ChatHistory, Image, Message, SessionIdentity, ToolCall
from dragoman.gateway.sessions import new_messages
from tests.gateway.responses.conftest import config_for
from tests.gateway.responses.identified import NamedKeys
from tests.gateway.responses.upstreams import Model
from tests.gateway.running import Serving, running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the store is."""
    return tmp_path_factory.mktemp("histories")


@pytest.fixture(scope="module")
def gateway(behind: Model, folder: Path) -> Iterator[Serving]:
    """A gateway with a store in a file."""
    with running(config_for(behind.url, history=f"sqlite:///{folder}/chats.db")) as found:
        yield found


def stored(folder: Path, name: str, user: str | None = None) -> list[tuple[str, str]]:
    """Returns the roles and texts in a session's history."""

    async def read() -> list[tuple[str, str]]:
        identity = SessionIdentity(chat=name, user=user, scope="gateway")
        async with ChatHistory(identity, f"sqlite:///{folder}/chats.db") as history:
            return [(each.role.value, each.text) for each in await history.messages()]

    return asyncio.run(read())


def ask(http: httpx.Client, front: str, session: str, messages: list[dict[str, Any]],
        **changes: Any) -> httpx.Response:  # fmt: skip
    """A request in one of the dialects."""
    headers = {"x-dragoman-session": session}
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "openai-chat": ("/v1/chat/completions", {"messages": messages}),
        "openai-responses": ("/v1/responses", {"input": messages, "store": False}),
        "anthropic": ("/v1/messages", {"messages": messages, "max_tokens": 100}),
        "ollama": ("/api/chat", {"messages": messages, "stream": False}),
    }
    path, body = asked[front]
    answer = http.post(path, json={"model": "chat", **body, **changes}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


FRONTS = ("openai-chat", "openai-responses", "anthropic", "ollama")


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize(("model", "stream"), [
    ("claude", True), pytest.param("claude", False, marks=pytest.mark.slow),
    pytest.param("chat", True, marks=pytest.mark.slow),
    pytest.param("chat", False, marks=pytest.mark.slow),
])  # fmt: skip
def test_a_client_that_sends_everything_again_duplicates_nothing(
    http: httpx.Client, scripted: Model, folder: Path, front: str, model: str, *, stream: bool
) -> None:
    """Each message is stored once, in order, even if clients drop thinking and ids."""
    del scripted
    name = f"{front} {model} {stream}"
    said: list[dict[str, Any]] = []
    for number in (1, 2, 3):
        said.append({"role": "user", "content": f"question {number}"})
        answer = ask(http, front, name, said, model=model, stream=stream)
        assert answer.headers["x-dragoman-session"] == name
        said.append({"role": "assistant", "content": f"answer {number}"})
    wanted = [(kind, f"{word} {n}") for n in (1, 2, 3)
              for kind, word in (("user", "question"), ("assistant", "answer"))]  # fmt: skip
    assert stored(folder, name) == wanted


def test_a_client_that_sends_only_what_is_new(
    http: httpx.Client, scripted: Model, folder: Path
) -> None:
    """The same text sent twice is stored as two messages; the system prompt is stored once."""
    del scripted
    for _ in range(2):
        ask(http, "openai-chat", "delta", [{"role": "system", "content": "Be brief"},
                                           {"role": "user", "content": "yes"}])  # fmt: skip
    assert [kind for kind, _ in stored(folder, "delta")] == [
        "system", "user", "assistant", "user", "assistant",
    ]  # fmt: skip


def test_nothing_is_lost_or_doubled_when_many_ask_at_once(
    http: httpx.Client, scripted: Model, folder: Path
) -> None:
    """Twenty concurrent requests on one session, each with the history that it knows."""
    del scripted
    begun = [{"role": "user", "content": "start"}]
    ask(http, "openai-chat", "busy", begun)
    begun.append({"role": "assistant", "content": "answer 1"})
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(
            lambda n: ask(http, "openai-chat", "busy",
                          [*begun, {"role": "user", "content": f"part {n}"}]),
            range(20),
        ))  # fmt: skip
    found = stored(folder, "busy")
    users = [text for kind, text in found if kind == "user"]
    assert sorted(users) == sorted(["start", *[f"part {n}" for n in range(20)]])
    assert len(found) == 42
    assert [kind for kind, _ in found] == ["user", "assistant"] * 21


def test_a_route_stores_what_goes_its_way(
    http: httpx.Client, scripted: Model, folder: Path
) -> None:
    """A route can name the session; the header takes precedence."""
    del scripted
    body: dict[str, Any] = {"model": "noted", "messages": [{"role": "user", "content": "Hello"}]}
    answer = http.post("/v1/chat/completions", json=body)
    assert answer.headers["x-dragoman-session"] == "notes"
    assert stored(folder, "notes") == [("user", "Hello"), ("assistant", "answer 1")]
    ask(http, "openai-chat", "own", body["messages"], model="noted")
    assert len(stored(folder, "notes")) == 2
    assert len(stored(folder, "own")) == 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("prompt", ["One", ["One", "Two"]], ids=["one", "several"])
def test_prompts_are_stored(
    http: httpx.Client, scripted: Model, folder: Path, *, prompt: Any, stream: bool
) -> None:
    """Each prompt of the legacy API and its response; the header does not promise in vain."""
    del scripted
    name = f"prompts-{stream}-{len(prompt)}"
    answer = http.post(
        "/v1/completions", json={"model": "chat", "prompt": prompt, "stream": stream},
        headers={"x-dragoman-session": name},
    )  # fmt: skip
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-dragoman-session"] == name
    prompts = [prompt] if isinstance(prompt, str) else prompt
    found = stored(folder, name)
    assert [role for role, _ in found] == ["user", "assistant"] * len(prompts)
    assert [text for role, text in found if role == "user"] == prompts
    assert all(text for _, text in found)


@pytest.mark.parametrize("name", ["", "é", "x" * 257, "a\x01b"])
def test_names_are_checked(http: httpx.Client, scripted: Model, name: str) -> None:
    """An invalid session name is rejected before the model is called."""
    answer = http.post(
        "/v1/chat/completions",
        json={"model": "chat", "messages": [{"role": "user", "content": "x"}]},
        headers={b"x-dragoman-session": name.encode("latin-1")},
    )
    assert answer.status_code == 400
    assert not scripted.asked


def test_a_header_without_a_store_is_refused(scripted: Model) -> None:
    """A session header without a store is an error, so clients don't assume storage."""
    with running(config_for(scripted.url)) as serving:
        answer = httpx.post(
            f"{serving.url}/v1/chat/completions",
            json={"model": "chat", "messages": [{"role": "user", "content": "x"}]},
            headers={"x-dragoman-session": "a"},
        )
    assert answer.status_code == 400
    assert "history store" in answer.json()["error"]["message"]
    assert not scripted.asked


def test_sessions_of_two_keys_are_two(scripted: Model, tmp_path: Path) -> None:
    """Two keys that use the same session name have separate sessions."""
    with running(config_for(scripted.url, history=f"sqlite:///{tmp_path}/chats.db")) as serving:
        serving.gateway.keys = NamedKeys()  # type: ignore[assignment]  # only what is used
        with httpx.Client(base_url=serving.url) as http:
            for key in ("sk-ana", "sk-bob"):
                http.headers["authorization"] = f"Bearer {key}"
                ask(http, "openai-chat", "mine", [{"role": "user", "content": key}])
    for key in ("sk-ana", "sk-bob"):
        assert stored(tmp_path, "mine", key)[0] == ("user", key)


def test_a_cut_stream_is_not_stored(
    http: httpx.Client, scripted: Model, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An incomplete exchange is not stored; the next one stores its messages once."""
    monkeypatch.setattr(scripted, "reply", lambda: 1 / 0)
    body = {"model": "chat", "messages": [{"role": "user", "content": "Hello"}]}
    http.post("/v1/chat/completions", json=body, headers={"x-dragoman-session": "cut"})
    assert stored(folder, "cut") == []


def test_stored_responses_and_sessions_go_together(
    http: httpx.Client, scripted: Model, folder: Path
) -> None:
    """Continuing a stored response doesn't store its history a second time."""
    del scripted
    first = ask(http, "openai-responses", "both", [{"role": "user", "content": "a"}], store=True)
    ask(http, "openai-responses", "both", [{"role": "user", "content": "b"}],
        previous_response_id=first.json()["id"])  # fmt: skip
    assert [text for _, text in stored(folder, "both")] == ["a", "answer 1", "b", "answer 2"]


# --- what is new


def called(id: str, arguments: str) -> Message:
    """An answer that calls a tool."""
    return Message.assistant(ToolCall(id, "look", json.loads(arguments)))


def test_calls_and_results_are_compared_by_what_they_say() -> None:
    """Call ids and whitespace in arguments differ between dialects and are ignored."""
    known = [Message.user("a"), called("call_1", '{"x": 1}'), Message.tool("call_1", "seen")]
    asked = [
        Message.user("a"), called("toolu_9", '{"x":1}'), Message.tool("toolu_9", "seen"),
        Message.assistant("done"), Message.user("b"),
    ]  # fmt: skip
    assert new_messages(asked, known) == asked[3:]


def test_results_that_follow_the_last_answer_are_new() -> None:
    """Tool results after the last stored response are new messages."""
    known = [Message.user("a"), called("call_1", "{}")]
    asked = [*known, Message.tool("call_1", "seen")]
    assert new_messages(asked, known) == asked[2:]


def test_a_client_that_forgot_the_beginning() -> None:
    """A shortened history is matched in the middle of the stored one."""
    known = [Message.user("a"), Message.assistant("1"), Message.user("b"), Message.assistant("2")]
    asked = [*known[2:], Message.user("c")]
    assert new_messages(asked, known) == asked[2:]


def test_another_order_is_no_news() -> None:
    """Concurrent exchanges are stored in the order in which they end."""
    one = [Message.user("a"), Message.assistant("1")]
    two = [Message.user("b"), Message.assistant("2")]
    asked = [*two, *one, Message.user("c")]
    assert new_messages(asked, [*one, *two]) == asked[4:]


def test_pictures_are_compared() -> None:
    """Images are compared by content."""
    known = [Message.user("see", Image(url="https://a.example/1.png")), Message.assistant("1")]
    other = Message.user("see", Image(url="https://a.example/2.png"))
    asked = [known[0], known[1], other, Message.assistant("1"), Message.user("c")]
    assert new_messages(asked, known) == asked[2:]


def test_an_edited_message_is_new() -> None:
    """A message that the client edited is stored as a new message."""
    known = [Message.user("a"), Message.assistant("1")]
    asked = [Message.user("A"), Message.assistant("1"), Message.user("b")]
    assert new_messages(asked, known) == [asked[0], asked[2]]
