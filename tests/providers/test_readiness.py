"""The environment variables of the providers' own SDKs."""

from __future__ import annotations

import logging
from importlib.util import find_spec

import pytest

from dragoman.errors import ConfigError
from dragoman.providers.provider import Provider
from dragoman.providers.readiness import (
    address_around,
    headers_around,
    missing_variables,
    unused_variables,
)
from dragoman.providers.registry import provider, providers, suggested_model
from dragoman.transport import deployments
from dragoman.transport.client import Client
from dragoman.transport.deployments import Deployment
from dragoman.wire.target import Target

PROXY = "https://proxy.example"


@pytest.mark.parametrize(
    ("name", "variable", "url"),
    [
        ("openai", "OPENAI_BASE_URL", "/chat/completions"),
        ("openai", "OPENAI_API_BASE", "/chat/completions"),
        ("anthropic", "ANTHROPIC_BASE_URL", "/v1/messages"),
        ("google", "GOOGLE_GEMINI_BASE_URL", "/v1beta/models/m:generateContent"),
        ("groq", "GROQ_BASE_URL", "/openai/v1/chat/completions"),
        ("ollama", "OLLAMA_HOST", ":443/api/chat"),
        (
            "azure", "AZURE_OPENAI_ENDPOINT",
            "/openai/deployments/m/chat/completions?api-version=2024-10-21",
        ),
        (
            "vertex", "GOOGLE_VERTEX_BASE_URL",
            "/v1/projects/p/locations/us-central1/publishers/google/models/m:generateContent",
        ),
    ],
)  # fmt: skip
def test_a_variable_moves_a_provider(
    name: str, variable: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The paths are those of the provider's own SDK; what the caller names takes precedence."""
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    monkeypatch.setenv("AZURE_OPENAI_RESOURCE", "r")
    monkeypatch.setenv(variable, f" {PROXY}/ ")
    place = Deployment(f"{name}:m", key="k")
    assert place.request("generate", model="m").url == f"{PROXY}{url}"
    explicit = Deployment(f"{name}:m", key="k", base_url="https://mine.example")
    assert explicit.request("generate", model="m").url.startswith("https://mine.example/")
    own = Deployment(provider(name), key="k")  # which is what a gateway makes of its file
    assert PROXY not in own.request("generate", model="m").url


def test_the_first_variable_counts() -> None:
    """The SDK's own precedes the older one; an empty one doesn't count."""
    around = {"OPENAI_BASE_URL": "https://a.example/v1", "OPENAI_API_BASE": "https://b.example/v1"}
    assert address_around(provider("openai"), around) == "https://a.example/v1"
    assert address_around(provider("openai"), {**around, "OPENAI_BASE_URL": " "}) == (
        "https://b.example/v1"
    )


def test_an_address_that_is_none_is_told_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody wrote `base_url`: the error says what to correct, without what is in it."""
    monkeypatch.setenv("OPENAI_BASE_URL", "proxy.example/v1")
    with pytest.raises(ConfigError, match=r"^OPENAI_BASE_URL must start with https:// or http://$"):
        Deployment("openai:m", key="k").request("generate", b"{}", model="m")
    with pytest.raises(ConfigError, match=r"^the base_url of openai must start with https://"):
        Deployment("openai:m", key="k", base_url="x").request("generate", b"{}", model="m")


def test_a_path_is_not_doubled() -> None:
    """Some people add it."""
    around = {"GROQ_BASE_URL": f"{PROXY}/openai/v1"}
    assert address_around(provider("groq"), around) == f"{PROXY}/openai/v1"


def test_an_address_makes_its_parts_unnecessary() -> None:
    """Azure's resource is a part of its usual address."""
    around = {"AZURE_OPENAI_API_KEY": "k"}
    assert missing_variables(provider("azure"), around) == ["AZURE_OPENAI_RESOURCE"]
    around["AZURE_OPENAI_ENDPOINT"] = PROXY
    assert missing_variables(provider("azure"), around) == []
    assert missing_variables(provider("vertex"), {"GOOGLE_VERTEX_BASE_URL": PROXY}) == [
        "VERTEX_ACCESS_TOKEN", "GOOGLE_CLOUD_PROJECT",
    ]  # fmt: skip


def test_organization_and_project_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """As OpenAI's SDK does; the caller's own headers take precedence."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    sent = Deployment("openai:m", key="k").request("generate").headers
    assert (sent["OpenAI-Organization"], sent["OpenAI-Project"]) == ("org-1", "proj-1")
    own = Deployment("openai:m", key="k", headers={"openai-project": "mine"})
    assert "OpenAI-Project" not in own.request("generate").headers
    both = {"OPENAI_ORG_ID": "a", "OPENAI_ORGANIZATION": "b"}
    assert headers_around(provider("openai"), both) == {"OpenAI-Organization": "a"}


def test_a_variable_without_effect_is_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not its value, and not for a provider that isn't used."""
    monkeypatch.setattr(deployments, "_told", set[str]())
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Secret: 7")
    with caplog.at_level(logging.WARNING):
        Client("openai:gpt-5")
        assert not caplog.messages
        for _ in range(2):
            Client("anthropic:claude-sonnet-4-5")
    assert caplog.messages == [
        "ANTHROPIC_CUSTOM_HEADERS is set for anthropic's own SDK; Dragoman does not use it"
    ]
    assert unused_variables(provider("anthropic"), {"ANTHROPIC_CUSTOM_HEADERS": " "}) == []


def _openai() -> str:
    import openai

    return str(openai.OpenAI(api_key="k").base_url)


def _anthropic() -> str:
    import anthropic

    return str(anthropic.Anthropic(api_key="k").base_url)


def _groq() -> str:
    import groq

    return str(groq.Groq(api_key="k").base_url)


@pytest.mark.parametrize(
    ("name", "variable", "of_sdk"),
    [
        ("openai", "OPENAI_BASE_URL", _openai),
        ("anthropic", "ANTHROPIC_BASE_URL", _anthropic),
        ("groq", "GROQ_BASE_URL", _groq),
    ],
)
def test_the_sdks_read_the_same_variables(
    name: str, variable: str, of_sdk: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An SDK that renames its variable is noticed here."""
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    monkeypatch.setenv(variable, PROXY)
    assert callable(of_sdk)
    assert of_sdk().startswith(PROXY)
    assert (address_around(provider(name), {variable: PROXY}) or "").startswith(PROXY)


# --- models that are named without their provider


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("gpt-5", "openai:gpt-5"),
        ("o3-mini", "openai:o3-mini"),
        ("text-embedding-3-small", "openai:text-embedding-3-small"),
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("gemini-2.5-pro", "google:gemini-2.5-pro"),
        ("mistral-large-latest", "mistral:mistral-large-latest"),
        ("grok-4", "xai:grok-4"),
        ("sonar-pro", "perplexity:sonar-pro"),
        ("deepseek-chat", "deepseek:deepseek-chat"),
        ("deepseek-r1:8b", "ollama:deepseek-r1:8b"),
        ("llama3", "ollama:llama3"),
        ("llama3:8b", "ollama:llama3:8b"),
        ("qwen3:4b", "ollama:qwen3:4b"),
        ("gpt-oss:20b", "ollama:gpt-oss:20b"),
        ("hello", None),
        ("gpt", None),
        ("often", None),
        ("gpt-5 sk-1", None),
        ("gpt-" + "x" * 100, None),
    ],
)
def test_a_model_is_suggested_with_its_provider(name: str, whole: str | None) -> None:
    """In every message about it; a text that may be something else is never quoted."""
    assert suggested_model(name) == whole
    with pytest.raises(ConfigError) as caught:
        Client(name)
    assert (f"(did you mean {whole}?)" in str(caught.value)) is (whole is not None)
    assert "sk-1" not in str(caught.value)


def test_the_vendors_own_models_are_recognised() -> None:
    """Every model that a vendor lists, by the vendor's own pattern."""
    for each in providers():
        if each.model_pattern is not None:
            listed = [name for name in each.names if "*" not in name]
            assert {suggested_model(name) for name in listed} == {
                f"{each.name}:{name}" for name in listed
            }


def test_a_pattern_is_checked() -> None:
    """A wrong one would only be noticed in an error."""
    with pytest.raises(ValueError, match="regular expression"):
        Provider("acme", (Target(dialect="openai-chat"),), model_pattern="(")
