"""URLs, keys and headers are those of the vendors' SDKs."""

from __future__ import annotations

import asyncio
import re
from typing import Any, cast
from urllib.parse import urlsplit

import pytest

from dragoman.errors import ConfigError, DragomanError, InvalidInputError, RateLimited
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.providers.endpoints import Endpoints
from dragoman.providers.provider import Auth, Provider
from dragoman.providers.registry import provider, provider_names
from dragoman.transport.client import Client
from dragoman.transport.deployments import Deployment
from dragoman.transport.retries import Retries
from dragoman.wire.target import Target
from tests.transport import sdks
from tests.transport.servers import Seen, plain, serving

_COMPARED = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "anthropic-version",
             "content-type")  # fmt: skip
_CHAT = "openai-chat"
_ONCE = Retries(attempts=1)
_VERTEX = {"project": "p", "location": "us-east5"}
ROWS: list[tuple[str, str, str, sdks.Call, dict[str, str]]] = [
    ("openai", "m", _CHAT, sdks.openai("/v1"), {}),
    ("openai", "m", "openai-responses", sdks.responses, {}),
    ("azure", "m", _CHAT, sdks.azure, {"resource": "r"}),
    ("anthropic", "m", "anthropic", sdks.anthropic, {}),
    ("google", "m", "gemini", sdks.google, {}),
    ("vertex", "m", "gemini", sdks.google_on_vertex, _VERTEX),
    ("vertex", "claude-x", "anthropic", sdks.anthropic_on_vertex, _VERTEX),
    ("groq", "m", _CHAT, sdks.groq, {}),
    ("ollama", "m", "ollama", sdks.ollama, {}),
    ("ollama", "m", _CHAT, sdks.openai("/v1"), {}),
    ("deepseek", "m", _CHAT, sdks.openai(""), {}),
    ("mistral", "m", _CHAT, sdks.openai("/v1"), {}),
    ("openrouter", "m", _CHAT, sdks.openai("/api/v1"), {}),
    ("perplexity", "m", _CHAT, sdks.openai(""), {}),
    ("xai", "m", _CHAT, sdks.openai("/v1"), {}),
    ("llama.cpp", "m", _CHAT, sdks.openai("/v1"), {}),
    ("lmstudio", "m", _CHAT, sdks.openai("/v1"), {}),
    ("vllm", "m", _CHAT, sdks.openai("/v1"), {}),
    ("openai-compatible", "m", _CHAT, sdks.openai("/v1"), {}),
]


def test_every_provider_is_compared() -> None:
    """A new provider needs a row."""
    assert {row[0] for row in ROWS} == set(provider_names()) - {"local", "echo", "scripted"}


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}-{row[2]}" for row in ROWS])
async def test_requests_have_the_url_and_headers_of_the_sdk(
    row: tuple[str, str, str, sdks.Call, dict[str, str]], stream: bool
) -> None:
    """The same method, path, query, key and version; only the body is ours."""
    name, model, dialect, sdk, parameters = row
    async with serving(plain({"error": {"message": "no"}}, 400)) as server:
        await asyncio.to_thread(sdk, server.url, stream)
        base = server.url + urlsplit(provider(name).base_url or "/v1").path
        async with Client(
            f"{name}:{model}", key=sdks.KEY, base_url=base, dialect=dialect, parameters=parameters,
            retries=Retries(attempts=1),
        ) as client:  # fmt: skip
            with pytest.raises(DragomanError):
                await (client.stream("hi").collect() if stream else client.send("hi"))
    theirs, ours = server.seen
    assert _shown(ours) == _as_documented(name, _shown(theirs))
    if dialect != "gemini":  # which has it in the path
        assert ours.json.get("stream", False) is stream


def _shown(seen: Seen) -> dict[str, str]:
    shown = {name: seen.headers[name] for name in _COMPARED if name in seen.headers}
    return {"method": seen.method, "path": seen.path, **shown}


def _as_documented(name: str, sent: dict[str, str]) -> dict[str, str]:
    """The SDK's request, adapted where ours differs on purpose."""
    if name == "anthropic":
        # The version that the dialect was recorded with, which the vendor maintains: the SDK's own
        # (2026-10-21) has no temperature. Keys are documented as x-api-key; its way works, too.
        shown = {sent.pop("x-api-key", None), sent.pop("authorization", None)}
        assert shown & {sdks.KEY, f"Bearer {sdks.KEY}"}
        assert sent["anthropic-version"] >= "2023-06-01"
        return {**sent, "anthropic-version": "2023-06-01", "x-api-key": sdks.KEY}
    if name == "google":  # v1 lacks features of the previews
        return {**sent, "path": re.sub("^/v1(beta)?/", "/v1beta/", sent["path"])}
    return sent


# --- keys

_ACME = Provider(
    "acme", (Target(dialect=_CHAT),), "https://acme.example/v1", keys=("ACME_A", "ACME_B")
)


def _headers(deployment: Deployment) -> dict[str, str]:
    message = deployment.request("generate", b"{}", model="m")
    return {name.lower(): value for name, value in message.headers.items()}


def test_keys_are_looked_up_when_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when a client is created, but for each request; the first variable that is set counts."""
    deployment = Deployment(_ACME)
    with pytest.raises(ConfigError, match="ACME_A or ACME_B"):
        deployment.request("generate", b"{}")
    monkeypatch.setenv("ACME_B", "second")
    assert _headers(deployment)["authorization"] == "Bearer second"
    monkeypatch.setenv("ACME_A", " first\n")
    assert _headers(deployment)["authorization"] == "Bearer first"
    monkeypatch.setenv("ACME_A", "  ")
    monkeypatch.delenv("ACME_B")
    with pytest.raises(ConfigError):
        deployment.request("generate", b"{}")


def test_an_explicit_key_overrides_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's header overrides both, whatever its case."""
    monkeypatch.setenv("ACME_A", "around")
    assert _headers(Deployment(_ACME, key="given"))["authorization"] == "Bearer given"
    own = Deployment(_ACME, key="given", headers={"AUTHORIZATION": "Basic x"})
    assert [
        v for k, v in own.request("generate").headers.items() if k.lower() == "authorization"
    ] == ["Basic x"]


@pytest.mark.parametrize("name", ["anthropic:m", "google:m", "openai:m"])
def test_an_authorization_header_replaces_the_key(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the token is sent: two credentials would be ambiguous."""
    for variable in provider(name.partition(":")[0]).keys:
        monkeypatch.setenv(variable, "around")
    shown = _headers(Deployment(name, headers={"authorization": "Bearer token"}))
    assert shown["authorization"] == "Bearer token"
    assert "around" not in shown.values()


@pytest.mark.parametrize("name", ["ollama", "vllm", "llama.cpp", "lmstudio"])
def test_local_servers_need_no_key_but_accept_one(name: str) -> None:
    """They may have been started with one."""
    assert "authorization" not in _headers(Deployment(f"{name}:m"))
    assert _headers(Deployment(f"{name}:m", key="k"))["authorization"] == "Bearer k"


def test_a_custom_base_url_needs_no_key() -> None:
    """A gateway may hold the keys."""
    assert "authorization" not in _headers(Deployment("openai:m", base_url="http://localhost:1/v1"))


def test_the_user_agent_is_ours_unless_overridden() -> None:
    """Servers log it."""
    deployment = Deployment("ollama:m")
    assert _headers(deployment)["user-agent"].startswith("dragoman/")
    assert _headers(Deployment("ollama:m", headers={"user-agent": "me"}))["user-agent"] == "me"


@pytest.mark.parametrize(
    "headers", [{"X": "a\r\nEvil: 1"}, {"X": "a\x00"}, {"A B": "c"}, {"": "c"}, {"X:": "y"},
                {"X": 1}, {1: "x"}, [("a", "b")]],
)  # fmt: skip
def test_invalid_headers_are_rejected_without_being_quoted(headers: object) -> None:
    """A line break could add further headers."""
    with pytest.raises(InvalidInputError) as raised:
        Deployment("ollama:m", headers=cast("Any", headers))
    assert "Evil" not in str(raised.value)


def test_a_key_with_a_line_break_inside_is_rejected() -> None:
    """It must not become a header."""
    with pytest.raises(InvalidInputError) as raised:
        Deployment("openai:m", key="sk\r\nX: y").request("generate")
    assert "sk" not in str(raised.value)


@pytest.mark.parametrize(("model", "is_told"), [("large-9", True), ("nobody:large-9", False)])
def test_a_model_name_alone_is_an_unknown_provider(model: str, is_told: bool) -> None:
    """Without a colon, the error explains `provider:model`; it doesn't quote the name."""
    with pytest.raises(ConfigError, match="unknown provider") as caught:
        Deployment(model)
    assert ("provider:model" in str(caught.value)) is is_told
    assert model not in str(caught.value)


# --- URLs


@pytest.mark.parametrize("url", ["ftp://x", "localhost:1", "//x", "javascript:x"])
def test_base_urls_are_http(url: str) -> None:
    """Others are rejected before anything is sent."""
    with pytest.raises(ConfigError, match="http://"):
        Deployment("ollama:m", base_url=url).request("generate")


def test_parts_of_urls_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments override it; a missing part is named."""
    with pytest.raises(ConfigError, match="resource"):
        Deployment("azure:m", key="k").request("generate", model="m")
    monkeypatch.setenv("AZURE_OPENAI_RESOURCE", "around")
    url = Deployment("azure:m", key="k").request("generate", model="m").url
    assert url.startswith("https://around.openai.azure.com/openai/deployments/m/")
    own = Deployment("azure:m", key="k", parameters={"resource": "given"})
    assert own.request("generate", model="m").url.startswith("https://given.")


def test_a_model_name_can_not_escape_its_path_segment() -> None:
    """It is percent-encoded: a name with slashes and dots is still one segment."""
    url = Deployment("google:m", key="k").request("generate", model="../../x?y=z#").url
    assert url.startswith("https://generativelanguage.googleapis.com/v1beta/models/..%2F..%2Fx%3Fy")


@pytest.mark.parametrize("name", ["google:models/x", "google/models/x", "google:x", "google"])
async def test_a_resource_name_is_accepted_as_a_model_name(name: str) -> None:
    """Google's list has the prefix `models/`; the path has it once and unencoded."""
    asked = Request(model="models/x" if name == "google" else None, messages=(Message.user("hi"),))
    async with (
        serving(plain({"error": {"message": "no"}}, 400)) as server,
        Client(name, key="k", base_url=server.url, retries=_ONCE) as client,
    ):
        for asking in (client.send(asked), client.stream(asked).collect()):
            with pytest.raises(DragomanError):
                await asking
    paths = [seen.path.partition("?")[0] for seen in server.seen]
    assert paths == ["/v1beta/models/x:generateContent", "/v1beta/models/x:streamGenerateContent"]


def test_a_resource_name_has_the_target_of_its_model() -> None:
    """With and without the prefix, the target is the same."""
    for place, names in _SPELLED.items():
        found = {provider(place).target(name) for name in names}
        assert len(found) == 1, place


_SPELLED = {
    "google": ["gemini-2.5-pro", "models/gemini-2.5-pro"],
    "vertex": ["claude-x", "anthropic/claude-x", "publishers/anthropic/models/claude-x"],
}


@pytest.mark.parametrize("opened", ["vertex", "vertex:gemini-2.5-pro"])
async def test_the_model_of_a_request_determines_the_dialect(opened: str) -> None:
    """One client serves all models of a provider, each in its own dialect."""
    said = {"type": "message", "id": "m", "role": "assistant", "model": "claude-x",
            "content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    refused = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}
    request = Request(model="claude-x", messages=(Message.user("hi"),))
    async with serving(plain(said), plain(refused, 400)) as server:
        base = f"{server.url}/v1"
        async with Client(
            opened, key="k", base_url=base, parameters=_VERTEX, retries=_ONCE
        ) as client:
            assert (await client.send(request)).text == "Hello"
            with pytest.raises(RateLimited):  # a name that only Anthropic's dialect has
                await client.stream(request).collect()
            assert "anthropic_version" in client.encode(request).body
            assert "contents" in client.encode(request.replace(model="gemini-2.5-pro")).body
    assert [seen.path.rpartition("/")[2] for seen in server.seen] == [
        "claude-x:rawPredict", "claude-x:streamRawPredict",
    ]  # fmt: skip
    assert server.seen[1].json["stream"] is True


def test_an_explicit_dialect_is_kept() -> None:
    """Whatever the model's name."""
    chosen = Client("vertex", dialect="gemini", parameters=_VERTEX)
    asked = Request(model="claude-x", messages=(Message.user("hi"),))
    assert "contents" in chosen.encode(asked).body


def test_a_provider_takes_three_lines() -> None:
    """With its own key header and path."""
    mine = Provider(
        "mine", (Target(dialect=_CHAT),), "https://mine.example", auth=Auth("X-Key", None),
        endpoints={_CHAT: Endpoints(generate="/ask")},
    )  # fmt: skip
    message = Deployment(mine, key="k").request("generate", b"{}")
    assert message.url == "https://mine.example/ask"
    assert message.headers["X-Key"] == "k"


def test_secrets_are_not_in_any_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in that of a deployment, a client or a request."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    deployment = Deployment("openai:m", headers={"X-Secret": "sk-secret"})
    message = deployment.request("generate", b"sk-secret")
    for shown in (deployment, message, Client("openai:m", key="sk-secret")):
        assert "sk-secret" not in repr(shown)
