"""A dialect and a provider from a third-party package, installed as a user would.

The package is in `tests/outside_package`; `docs/contributing/write-a-dialect.md` explains it.
Here it is used like the built-in ones, and goes through those of our tests that discover dialects.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner

import dragoman
from dragoman import Agent, ChatHistory, Message, Messages, SessionIdentity, tool
from dragoman.cli.commands import dragoman as command
from dragoman.errors import ConfigError, RateLimited
from dragoman.providers import registry
from dragoman.providers.registry import register
from dragoman.transport.client import Client
from dragoman.wire import schemas
from dragoman.wire.services import services

if TYPE_CHECKING:
    from dragoman_courier.dialect import DIALECT
    from dragoman_courier.provider import PROVIDER

    TYPED: tuple[dragoman.wire.Dialect, dragoman.Provider] = (DIALECT, PROVIDER)

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tests" / "outside_package"
OURS = ("anthropic", "gemini", "ollama", "openai-chat", "openai-responses")

REQUEST: dict[str, Any] = {
    "model": "courier-1",
    "brief": "Be brief.",
    "turns": [
        {"from": "user", "pieces": [{"kind": "text", "text": "Weather?"}], "stamp": None},
        {
            "from": "agent",
            "pieces": [{"kind": "call", "ref": "c1", "tool": "weather", "with": {"city": "Basel"}}],
        },
        {"from": "user", "pieces": [{"kind": "reply", "ref": "c1", "said": "sunny"}]},
    ],
    "tools": [{"tool": "weather", "takes": {"type": "object", "properties": {}}, "since": 2}],
    "limit": 20,
    "express": None,
}
PLAIN: dict[str, Any] = {
    **REQUEST,
    "turns": [{key: turn[key] for key in ("from", "pieces")} for turn in REQUEST["turns"]],
    "tools": [{"tool": "weather", "takes": {"type": "object", "properties": {}}}],
}
del PLAIN["express"]
ANSWER: dict[str, Any] = {
    "id": "a1",
    "model": "courier-1",
    "turn": {"from": "agent", "pieces": [{"kind": "text", "text": "Sunny."}]},
    "ended": "done",
    "spent": {"in": 9, "out": 3},
    "route": "north",
}
STREAM = (
    b'{"id":"a1","model":"courier-1","text":"Sun"}\n'
    b'{"id":"a1","model":"courier-1","text":"ny."}\n'
    b'{"id":"a1","model":"courier-1","ended":"done","spent":{"in":9,"out":3}}\n'
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the package is installed, by pip without a network."""
    target = tmp_path_factory.mktemp("installed")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", *options)
    done = subprocess.run(
        (*pip, "--target", str(target), str(PACKAGE)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package is installed for one test."""
    monkeypatch.syspath_prepend(str(folder))
    yield
    for name in [name for name in sys.modules if name.startswith("dragoman_courier")]:
        del sys.modules[name]


def test_it_is_one_of_the_dialects_while_it_is_installed(folder: Path) -> None:
    """Listed and looked up by name; it is not imported before it is used."""
    assert "courier" not in dragoman.dialects()
    with pytest.raises(ConfigError, match="unknown dialect"):
        dragoman.dialect("courier")
    sys.path.insert(0, str(folder))
    try:
        assert dragoman.dialects() == tuple(sorted((*OURS, "courier")))
        assert "dragoman_courier" not in sys.modules
        assert dragoman.dialect("courier").name == "courier"
        assert dragoman.provider("Courier Cloud").url() == "https://api.courier.example/send"
        assert services("courier").embeddings is None
    finally:
        sys.path.remove(str(folder))
    assert "courier" not in dragoman.dialects()


@pytest.mark.usefixtures("installed")
def test_it_is_detected() -> None:
    """By its path, its fields, its messages; and no body of ours is taken for it."""
    hello = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    assert dragoman.detect(REQUEST) == "courier"
    assert dragoman.detect(ANSWER) == "courier"
    assert dragoman.detect({}, path="/send?now") == "courier"
    assert dragoman.detect(hello) == "openai-chat"
    for name in OURS:
        body = dragoman.translate(REQUEST, source="courier", target=name).body
        assert dragoman.detect(body) in {name, "openai-chat"}


@pytest.mark.usefixtures("installed")
def test_it_round_trips() -> None:
    """Requests, answers and streams, with unknown fields, cut anywhere."""
    courier = dragoman.dialect("courier")
    assert courier.encode_request(courier.decode_request(REQUEST)).body == REQUEST
    response = courier.decode_response(ANSWER)
    assert courier.encode_response(response).body == ANSWER
    for size in (1, 7, 1000):
        decoder, encoder, sent = courier.stream_decoder(), courier.stream_encoder(), b""
        for start in range(0, len(STREAM), size):
            for event in decoder.feed(STREAM[start : start + size]):
                sent += encoder.feed(event)
        assert decoder.close() == []
        assert sent + encoder.close() == STREAM
        assert decoder.is_complete
        assert decoder.response == response
        assert list(encoder.losses) == []


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", OURS)
def test_it_is_translated_both_ways(name: str) -> None:
    """To each of ours and back: the content is the same, nothing is lost, and both checks pass."""
    there = dragoman.translate(PLAIN, source="courier", target=name, strict=True)
    assert dragoman.dialect(name).check(there.body, path=there.path) == []
    back = dragoman.translate(
        there.to_bytes(), source=name, target="courier-cloud:courier-1", path=there.path
    )
    assert dragoman.dialect("courier").check(back.body) == []
    said = [[piece["kind"] for piece in turn["pieces"]] for turn in back.body["turns"]]
    assert said[-3:] == [["text"], ["call"], ["reply"]]  # instructions may come before them
    assert "Be brief." in json.dumps(back.body)
    assert "sunny" in json.dumps(back.body)


@pytest.mark.usefixtures("installed")
def test_it_has_its_own_rules_and_errors() -> None:
    """`check` reports what it rejects; requests of other dialects are repaired for it."""
    courier = dragoman.dialect("courier")
    broken = {"turns": [*REQUEST["turns"][:2], {"from": "user", "pieces": []}]}
    assert [found.path for found in courier.check(broken)] == ["turns[2]"]
    history = (Message.user("Weather?"), Message.assistant(dragoman.ToolCall.create("c1", "f", {})))
    encoded = courier.encode_request(dragoman.Request(model="m", messages=history))
    assert courier.check(encoded.body) == []
    assert [repair.action for repair in encoded.repairs] == ["added"]
    too_long = dragoman.Request(
        model="m",
        messages=(Message.user("Hi"),),
        sampling=dragoman.model.Sampling(max_tokens=9_000),
    )
    encoded = courier.encode_request(too_long)
    assert encoded.body["limit"] == 4096
    assert [repair.path for repair in encoded.repairs] == ["sampling.max_tokens"]
    error = courier.decode_error(429, {"error": {"message": "slow down"}})
    assert isinstance(error, RateLimited)
    assert courier.encode_error(error)[0] == 429


@pytest.mark.usefixtures("installed")
def test_its_schemas_are_compiled_for_its_profile() -> None:
    """Alternatives at the root, which it rejects, become one object."""
    forms = [{"properties": {key: {"type": "string"}}, "required": [key]} for key in ("a", "b")]
    parameters = {"type": "object", "anyOf": forms}
    request = dragoman.Request(
        model="m",
        messages=(Message.user("Hi"),),
        tools=(dragoman.ToolDefinition("f", "Does it.", parameters, strict=False),),
    )
    (sent,) = dragoman.dialect("courier").encode_request(request).body["tools"]
    assert "anyOf" not in sent["takes"]
    assert sent["takes"]["properties"].keys() == {"a", "b"}
    profile = schemas.PROFILES["courier"]
    assert [profile] == list(dragoman.dialect("courier").schema_profiles)
    assert {"plain", "openai-strict", "ollama"} < schemas.PROFILES.keys()


@pytest.mark.usefixtures("installed")
def test_its_messages_are_read_everywhere() -> None:
    """Alone, in lists, among those of other dialects, in a whole request."""
    said = ["user", "assistant", "tool"]
    assert [message.role.value for message in Messages.from_any(REQUEST["turns"])] == said
    assert [message.role.value for message in Messages.from_any(REQUEST)] == ["system", *said]
    mixed = [{"role": "user", "content": [{"type": "document", "source": {}}]}, REQUEST["turns"][0]]
    assert [m.origin.dialect for m in Messages.from_any(mixed) if m.origin] == [
        "anthropic",
        "courier",
    ]
    assert Message.from_any(REQUEST["turns"][0]).text == "Weather?"


@pytest.mark.usefixtures("installed")
def test_a_history_is_sent_in_it() -> None:
    """A conversation with another provider is continued in it."""

    async def converse() -> dict[str, Any]:
        identity = SessionIdentity(agent="a", chat="c", user="u")
        async with await ChatHistory.open(identity, storage="memory://") as history:
            await history.add(Message.user("Hello"))
            await history.extend([{"role": "assistant", "content": "Yes?"}, REQUEST["turns"][0]])
            encoded = await history.to_wire("courier", model="courier-1")
            body: dict[str, Any] = encoded.body
            return body

    body = asyncio.run(converse())
    assert [turn["from"] for turn in body["turns"]] == ["user", "agent", "user"]
    assert dragoman.dialect("courier").check(body) == []


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


@pytest.mark.usefixtures("installed")
def test_an_agent_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain and streamed: the call is made, its result is sent back, and the answer arrives."""
    monkeypatch.setattr(registry, "_registered", {})
    bodies: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        bodies.append(body)
        is_first = body["turns"][-1]["pieces"][0]["kind"] != "reply"
        call = {"kind": "call", "ref": "c9", "tool": "weather", "with": {"city": "Basel"}}
        if body.get("stream"):
            calls: list[Any] = [{"piece": call}, {"ended": "calls"}]
            lines = calls if is_first else [{"text": "Sunny."}, {"ended": "done"}]
            return web.Response(text="".join(json.dumps(line) + "\n" for line in lines))
        turn = {"from": "agent", "pieces": [call]}
        return web.json_response({"turn": turn, "ended": "calls"} if is_first else ANSWER)

    async def run() -> list[str]:
        app = web.Application()
        app.router.add_post("/send", answer)
        async with TestServer(app) as server:
            place = dragoman.provider("courier-cloud").replace(base_url=str(server.make_url("")))
            register(place.replace(name="courier-test"))
            async with Client("courier-test:courier-1", key="k") as client:
                agent = Agent(client, tools=[weather])
                sent = await agent.send("Weather?")
                streamed = [chunk async for chunk in agent.stream("Weather?")]
        return [sent.text, "".join(chunk.output for chunk in streamed)]

    assert asyncio.run(run()) == ["Sunny.", "Sunny."]
    assert [len(body["turns"]) for body in bodies] == [1, 3, 1, 3]
    assert bodies[1]["turns"][2]["pieces"] == [
        {"kind": "reply", "ref": "c9", "said": "sunny in Basel"}
    ]


@pytest.mark.usefixtures("installed")
def test_the_commands_support_it(tmp_path: Path) -> None:
    """`dialects` lists it; `convert` and `check` accept it, named or detected."""
    file = tmp_path / "request.json"
    file.write_text(json.dumps(REQUEST), encoding="utf-8")
    runner = CliRunner()
    listed = json.loads(runner.invoke(command, ["dialects", "--json"]).stdout)
    (row,) = [row for row in listed if row["name"] == "courier"]
    assert row["endpoints"]["generate"] == "/send"
    assert row["providers"] == ["courier-cloud"]
    done = runner.invoke(command, ["convert", str(file), "--to", "anthropic"])
    assert json.loads(done.stdout)["system"] == "Be brief."
    assert runner.invoke(command, ["check", str(file), "--as", "courier"]).exit_code == 0


def test_our_tests_of_dialects_pass_for_it(folder: Path) -> None:
    """Those that discover dialects, except those with a table of samples."""
    files = ("dialect", "fitting", "foreign_extras", "hostile", "matrix_random", "stored_messages",
             "stream_fuzz", "stream_matrix", "streams", "silent_drops")  # fmt: skip
    chosen = "courier and not courier- and not one_wrong_value"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", chosen]
    paths = [str(ROOT / "src"), str(folder), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [*command, *(f"tests/wire/test_{name}.py" for name in files)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout


@pytest.mark.parametrize("name", ["description", "dialect", "provider", "pyproject"])
def test_the_guide_shows_its_files(name: str) -> None:
    """They are unchanged."""
    page = (ROOT / "docs" / "contributing" / "write-a-dialect.md").read_text(encoding="utf-8")
    is_toml = name == "pyproject"
    file = PACKAGE / ("pyproject.toml" if is_toml else f"dragoman_courier/{name}.py")
    assert f"```{'toml' if is_toml else 'python'}\n{file.read_text(encoding='utf-8')}```" in page
