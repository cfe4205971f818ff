"""Providers as values: where they are, what they are told, and how one more is added."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dragoman
import dragoman.providers
from dragoman import Provider, Target, translate
from dragoman.errors import ConfigError, InvalidInputError
from dragoman.providers.endpoints import USUAL, Endpoints
from dragoman.providers.provider import Auth, Family
from dragoman.wire.flags import SamplingFlags

NAMES = dragoman.providers.provider_names()
HELLO = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
ACME = """
from dragoman.providers.provider import Provider
from dragoman.wire.flags import TurnFlags
from dragoman.wire.target import Target

TARGET = Target(dialect="openai-chat", turns=TurnFlags(takes_developer=False))
PROVIDER = Provider("acme-ai", (TARGET,), "https://a.example/v1")
"""


def test_the_providers_there_are() -> None:
    """Each file of the folder is one."""
    assert set(NAMES) == {
        "anthropic", "azure", "deepseek", "google", "groq", "llama.cpp", "lmstudio", "mistral",
        "ollama", "openai", "openai-compatible", "openrouter", "perplexity", "vertex", "vllm",
        "xai",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_provider_is_whole(name: str) -> None:
    """It is found by its name, speaks dialects that there are, and has an address for each."""
    found = dragoman.provider(name)
    assert found.name == name
    assert set(found.dialects) <= set(dragoman.dialects())
    parameters = dict.fromkeys(found.parameters, "p")
    for dialect in found.dialects:
        target = found.target(dialect=dialect)
        assert (target.dialect, target.provider, target.model) == (dialect, name, None)
        base = "http://here" if found.base_url is None else None
        for endpoint in ("generate", "stream"):
            url = found.url(
                endpoint, model="m/x", dialect=dialect, base_url=base, parameters=parameters
            )
            assert url.startswith("http")
            assert "{" not in url
            assert "m/x" not in url.removeprefix("http://here")  # a name is no path
        assert found.repeated_path(found.base_url or "http://here/v1", dialect) is None
    assert found.auth is None or found.keys
    assert name in repr(found)


@pytest.mark.parametrize(
    ("said", "meant"),
    [("OpenAI", "openai"), ("llama-cpp", "llama.cpp"), ("LM Studio", "lmstudio"),
     ("claude", "anthropic"), ("grok", "xai"), ("gemini", "google"), ("Azure-OpenAI", "azure"),
     ("openai_compatible", "openai-compatible"), ("vertex-ai", "vertex")],
)  # fmt: skip
def test_names_are_matched_leniently(said: str, meant: str) -> None:
    """Case and punctuation don't count, and there are aliases."""
    assert dragoman.provider(said).name == meant


@pytest.mark.parametrize("name", ["", "nobody", "translation", "registry", "..", "os"])
def test_an_unknown_provider_is_a_config_error(name: str) -> None:
    """Modules in the folder that define no provider are not providers."""
    with pytest.raises(ConfigError, match="unknown provider; available are anthropic"):
        dragoman.provider(name)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that counts as part of the providers' own."""
    path = dragoman.providers.__path__
    path.append(str(tmp_path))
    yield tmp_path
    path.remove(str(tmp_path))
    sys.modules.pop("dragoman.providers.acme_ai", None)


def test_a_provider_is_added_by_one_file(folder: Path) -> None:
    """A file in the folder is all it takes: it is listed, found and translated to."""
    (folder / "acme_ai.py").write_text(ACME, encoding="utf-8")
    assert "acme-ai" in dragoman.providers.provider_names()
    body = {**HELLO, "messages": [{"role": "developer", "content": "Hi"}]}
    encoded = translate(body, source="openai-chat", target="acme-ai:large")
    assert encoded.body == {
        "model": "large", "messages": [{"role": "system", "content": "Hi"}]
    }  # fmt: skip
    assert dragoman.provider("acme-ai").url() == "https://a.example/v1/chat/completions"


def test_a_provider_is_a_value_of_three_lines() -> None:
    """Without any file: made, and used."""
    target = Target(dialect="anthropic", sampling=SamplingFlags(refused=("temperature",)))
    acme = Provider("acme", (target,), "https://api.acme.example", Auth("x-key", None))
    encoded = translate({**HELLO, "temperature": 0.5}, source="openai-chat", target=acme)
    assert "temperature" not in encoded.body
    assert acme.url() == "https://api.acme.example/v1/messages"
    assert acme == acme.replace(name="acme")
    assert acme != acme.replace(name="emca")
    assert len({acme, acme.replace(name="acme")}) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: Provider("", (Target(dialect="x"),)),
        lambda: Provider("a:b", (Target(dialect="x"),)),
        lambda: Provider("a", ()),
        lambda: Provider("a", ("openai-chat",)),  # type: ignore[arg-type]
        lambda: Family("x", {"no_such_flag": 1}),
        lambda: Family("(", {}),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any) -> None:
    """A provider needs a name and targets, a family flags that there are."""
    with pytest.raises(InvalidInputError):
        make()


def test_an_unsupported_dialect_is_a_config_error() -> None:
    """The error lists the supported dialects."""
    with pytest.raises(
        ConfigError, match="groq does not support this dialect; it supports openai-chat"
    ):
        dragoman.provider("groq").target(dialect="gemini")


def test_addresses_are_filled_in() -> None:
    """Azure's and Vertex's addresses have parameters; without them there is none."""
    azure, vertex = dragoman.provider("azure"), dragoman.provider("vertex")
    assert azure.url(model="gpt-4o", parameters={"resource": "r"}) == (
        "https://r.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21"
    )
    assert vertex.url("stream", model="claude-x@1", parameters={"project": "p"}).endswith(
        "/publishers/anthropic/models/claude-x@1:streamRawPredict"
    )
    assert "/publishers/google/models/g:streamGenerateContent?alt=sse" in vertex.url(
        "stream", model="g", parameters={"project": "p"}
    )
    with pytest.raises(ConfigError, match="needs the parameter resource"):
        azure.url(model="m")
    with pytest.raises(ConfigError, match="base_url"):
        dragoman.provider("openai-compatible").url()
    with pytest.raises(ConfigError, match="another endpoint"):
        dragoman.provider("anthropic").url("embed")


@pytest.mark.parametrize(
    ("name", "headers"),
    [("openai", {"Authorization": "Bearer k"}), ("anthropic", {"x-api-key": "k"}),
     ("azure", {"api-key": "k"}), ("google", {"x-goog-api-key": "k"})],
)  # fmt: skip
def test_a_key_is_sent_in_the_providers_header(name: str, headers: dict[str, str]) -> None:
    """The header's name and the prefix of its value are those that the provider expects."""
    auth = dragoman.provider(name).auth
    assert auth is not None
    assert auth.headers("k") == headers


def test_local_servers_need_no_key() -> None:
    """A server on this machine is used without a key."""
    local = ("ollama", "vllm", "llama.cpp", "lmstudio")
    assert all(dragoman.provider(name).auth is None for name in local)


def test_every_dialect_has_its_usual_endpoints() -> None:
    """So that a provider needs to name only those that differ."""
    assert set(USUAL) == set(dragoman.dialects())
    assert all(isinstance(found, Endpoints) for found in USUAL.values())


# What is known of models, one line for each fact that somebody relies on.
@pytest.mark.parametrize(
    ("name", "model", "flags"),
    [
        ("openai", "o3-mini",
         {"sampling.token_limit_fields": ("max_completion_tokens",), "thinking.form": "effort"}),
        ("openai", "gpt-5-nano", {"thinking.efforts": ("minimal", "low", "medium", "high")}),
        ("openai", "gpt-5.2", {"sampling.refused_while_thinking":
                               ("temperature", "top_p", "logprobs", "top_logprobs")}),
        ("openai", "gpt-4o", {"thinking.form": "never", "sampling.refused": ()}),
        ("openai", "o1-mini", {"turns.system_place": "nowhere"}),
        ("azure", "gpt-35-turbo", {"thinking.form": "never"}),
        ("openai", "who-knows", {"thinking.form": "any", "sampling.refused": ()}),
        ("anthropic", "claude-3-5-sonnet-20240620", {"thinking.form": "never"}),
        ("anthropic", "claude-3-7-sonnet-20250219",
         {"thinking.form": "budget", "turns.prefill": "trimmed"}),
        ("anthropic", "claude-sonnet-4-20250514",
         {"thinking.form": "budget", "thinking.efforts": ()}),
        ("anthropic", "claude-opus-4-1-20250805",
         {"thinking.form": "budget", "sampling.refuses_temperature_with_top_p": True}),
        ("anthropic", "claude-opus-4-20250514", {"sampling.refuses_temperature_with_top_p": False}),
        ("anthropic", "claude-sonnet-4-6", {"sampling.refuses_temperature_with_top_p": True}),
        ("vertex", "claude-haiku-4-5@20251001", {"sampling.refuses_temperature_with_top_p": True}),
        ("anthropic", "claude-haiku-4-5-20251001",
         {"thinking.form": "budget", "turns.prefill": "trimmed"}),
        ("anthropic", "claude-opus-4-5", {"thinking.efforts": ("low", "medium", "high")}),
        ("anthropic", "claude-opus-4-6", {"thinking.form": "either", "turns.prefill": "refused"}),
        ("anthropic", "claude-opus-4-8", {"thinking.form": "adaptive",
                                          "sampling.refused": ("temperature", "top_p", "top_k")}),
        ("anthropic", "claude-sonnet-5", {"thinking.form": "adaptive"}),
        ("anthropic", "claude-fable-5-2", {"thinking.form": "adaptive"}),
        ("vertex", "claude-3-7-sonnet@20250219",
         {"dialect": "anthropic", "thinking.form": "budget"}),
        ("vertex", "gemini-3-flash-preview", {"dialect": "gemini", "thinking.signs_calls": True}),
        ("google", "gemini-2.5-flash", {"thinking.signs_calls": False, "media.in_results": False}),
        ("groq", "openai/gpt-oss-120b", {"thinking.sent_back": "own", "thinking.form": "effort"}),
        ("groq", "llama-3.3-70b-versatile",
         {"thinking.sent_back": "never", "schemas.outputs": ("text", "json")}),
        ("deepseek", "deepseek-v4-flash", {"thinking.sent_back": "all", "media.kinds": ()}),
        ("deepseek", "deepseek-chat", {"thinking.sent_back": "own"}),
        ("mistral", "magistral-medium-latest", {"thinking.form": "never", "ids.max_length": 9}),
        ("vllm", "mistralai/Mistral-7B-Instruct-v0.3", {"turns.answers_results": True}),
        ("vllm", "google/gemma-2-9b-it", {"turns.system_place": "nowhere"}),
        ("xai", "grok-3-mini", {"thinking.efforts": ("none", "low", "high")}),
    ],
)  # fmt: skip
def test_a_models_family_decides_its_target(name: str, model: str, flags: dict[str, Any]) -> None:
    """A model of an unknown family is treated like the provider's others."""
    target = dragoman.provider(name).target(model)
    assert {flag: target.flag(flag) for flag in flags} == flags
