"""Providers that users bring along: as values, by registering them, and in packages."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

import dragoman
from dragoman.errors import ConfigError, InvalidInputError
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.providers import registry
from dragoman.providers.provider import Provider
from dragoman.providers.registry import register
from dragoman.transport.client import Client
from dragoman.wire.flags import TurnFlags
from dragoman.wire.target import Target

PACKAGE = """
from dragoman import Provider, Target
PROVIDER = Provider("acme", (Target(dialect="openai-chat"),), "https://acme.example/v1",
                    keys=("ACME_API_KEY",), aliases=("the acme company",))
"""


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is registered in a test is forgotten after it."""
    monkeypatch.setattr(registry, "_registered", {})


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for packages to be installed in."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("acme_dragoman", None)


def install(folder: Path, code: str, **points: str) -> None:
    """A package with these entry points."""
    (folder / "acme_dragoman.py").write_text(code, encoding="utf-8")
    info = folder / "acme_dragoman-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: acme-dragoman\nVersion: 1\n", encoding="utf-8")
    lines = [f"{name} = {value}" for name, value in points.items()]
    text = "\n".join(["[dragoman.providers]", *lines, ""])
    (info / "entry_points.txt").write_text(text, encoding="utf-8")


def test_an_installed_package_adds_its_provider(installed: Path) -> None:
    """The provider is found by name in any spelling and by alias.

    Is listed, and is imported on first use.
    """
    install(installed, PACKAGE, acme="acme_dragoman:PROVIDER")
    assert "acme" in dragoman.providers.provider_names()
    assert "acme_dragoman" not in sys.modules
    assert dragoman.provider("Acme").url() == "https://acme.example/v1/chat/completions"
    assert dragoman.provider("The Acme Company").name == "acme"
    assert Client("acme:large").name == "acme:large"
    body = {"model": "x", "messages": [{"role": "user", "content": "Hi"}]}
    encoded = dragoman.translate(body, source="openai-chat", target="acme:large")
    assert encoded.body["model"] == "large"


def test_a_package_cannot_replace_a_built_in_provider(installed: Path) -> None:
    """A package's provider with the name of a built-in one is ignored."""
    install(installed, PACKAGE, openai="acme_dragoman:PROVIDER")
    assert dragoman.provider("openai").base_url == "https://api.openai.com/v1"
    assert dragoman.providers.provider_names().count("openai") == 1


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("raise RuntimeError('hush')", "RuntimeError"),
        ("PROVIDER = 'hush'", "str, not a Provider"),
        ("", "AttributeError"),
    ],
)
def test_a_broken_package_breaks_nothing_else(installed: Path, code: str, problem: str) -> None:
    """A package that can't be imported raises.

    Without its text, only if its provider is requested.
    """
    install(installed, code, acme="acme_dragoman:PROVIDER")
    with pytest.raises(ConfigError, match=problem) as caught:
        dragoman.provider("acme")
    assert "hush" not in f"{caught.value}{caught.value.__context__!r}{caught.value.__cause__!r}"
    with pytest.raises(ConfigError, match="unknown provider"):
        dragoman.provider("nobody at all")
    assert dragoman.provider("grok").name == "xai"


def test_a_program_registers_its_own() -> None:
    """By name and alias; the last of a name counts; our own can't be replaced."""
    target = Target(dialect="anthropic")
    mine = register(Provider("my house", (target,), "http://a.example", aliases=("home",)))
    assert dragoman.provider("my-house") is mine
    assert dragoman.provider("home") is mine
    assert "my house" in dragoman.providers.provider_names()
    other = register(mine.replace(base_url="http://b.example"))
    assert dragoman.provider("my house") is other
    for taken in ("OpenAI", "grok", "lm-studio"):
        with pytest.raises(ConfigError, match="already"):
            register(mine.replace(name=taken))
    with pytest.raises(InvalidInputError):
        register("openai")  # type: ignore[arg-type]


def test_facts_need_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every provider can be looked at and made a client of; the key is wanted when it is used."""
    for name in dragoman.providers.provider_names():
        found = dragoman.provider(name)
        for variable in found.keys:
            monkeypatch.delenv(variable, raising=False)
        assert found.dialects
        assert Client(name).provider is found

    async def ask() -> None:
        async with Client("openai:m") as client:
            await client.send("Hi")

    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        asyncio.run(ask())


def test_a_provider_of_three_lines_is_talked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address, its key and its dialect are all it takes; the caller's headers win."""
    monkeypatch.setenv("ACME_API_KEY", "a-key")
    seen: list[tuple[str, Any, Any]] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append((request.path, dict(request.headers), json.loads(await request.read())))
        choice = {"index": 0, "message": {"role": "assistant", "content": "Yes"}}
        return web.json_response({"id": "1", "choices": [choice | {"finish_reason": "stop"}]})

    async def talk() -> list[str]:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", handle)
        async with TestServer(app) as server:
            target = Target(dialect="openai-chat", turns=TurnFlags(takes_developer=False))
            acme = Provider("acme", (target,), str(server.make_url("/v1")), keys=("ACME_API_KEY",))
            request = Request(model="large", messages=(Message.developer("Hm"),))
            async with Client(acme) as client:
                first = await client.send(request)
            register(acme)
            async with Client("acme:small", headers={"authorization": "Mine"}) as client:
                second = await client.send("Well?")
        return [first.text, second.text]

    assert asyncio.run(talk()) == ["Yes", "Yes"]
    assert [body["model"] for _, _, body in seen] == ["large", "small"]
    assert seen[0][1]["Authorization"] == "Bearer a-key"
    assert seen[0][2]["messages"][0]["role"] == "system"
    headers = {name.lower(): value for name, value in seen[1][1].items()}
    assert headers["authorization"] == "Mine"
