"""Addresses of providers in the environment: what a gateway does with them, and shows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman.gateway.config.problems import ConfigFileError
from dragoman.gateway.config.reading import load_config, parse_config
from dragoman.gateway.launching import Launch
from dragoman.gateway.summary import summary
from dragoman.gateway.upstreams import Upstream
from dragoman.transport.http import HttpTransport

AROUND = {
    "OPENAI_API_KEY": "sk-1",
    "OPENAI_BASE_URL": "https://proxy.example/v1",
    "OPENAI_ORG_ID": "org-1",
}


def test_an_address_is_used_and_shown() -> None:
    """The operator sees where requests and the key go."""
    config = load_config(None, AROUND, default=None)
    place = config.places["openai"]
    assert place.base_url == "https://proxy.example/v1"
    assert place.headers == {"OpenAI-Organization": "org-1"}
    shown = list(summary(config, AROUND, most=0))
    line = "OPENAI_BASE_URL sends requests and the key of openai to https://proxy.example/v1"
    assert line in shown


def test_the_file_takes_precedence() -> None:
    """Neither the address nor the organization of the environment is used then."""
    text = '[providers.openai]\nbase_url = "https://mine.example/v1"'
    config = parse_config(text, AROUND)
    place = config.places["openai"]
    assert (place.base_url, place.headers) == ("https://mine.example/v1", {})
    assert not [line for line in summary(config, AROUND) if "OPENAI_BASE_URL" in line]


def test_a_table_without_an_address_has_the_environment_s() -> None:
    """Its own headers take precedence."""
    text = '[providers.openai]\nheaders = { OpenAI-Organization = "org-2" }'
    place = parse_config(text, AROUND).places["openai"]
    assert place.base_url == "https://proxy.example/v1"
    assert place.headers == {"OpenAI-Organization": "org-2"}


@pytest.mark.parametrize("address", ["proxy", "https://me:sekret@proxy.example", "ftp://x"])
def test_an_address_is_checked_like_one_in_the_file(address: str) -> None:
    """The error names the variable, and doesn't quote it."""
    with pytest.raises(ConfigFileError, match=r"^OPENAI_BASE_URL: this must be a URL") as caught:
        load_config(None, {**AROUND, "OPENAI_BASE_URL": address}, default=None)
    assert "sekret" not in str(caught.value)


def test_an_address_with_a_part_of_the_paths_is_noticed() -> None:
    """`--check` prints the warnings, and so does the start."""
    around = {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": "https://g.example/v1beta"}
    config = load_config(None, around, default=None)
    assert "warning: GOOGLE_GEMINI_BASE_URL: leave out /v1beta at the end" in "\n".join(
        summary(config)
    )


@pytest.mark.parametrize(
    ("variable", "address"),
    [
        ("OPENAI_BASE_URL", "http://localhost:8421/v1"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:8421"),
        ("OLLAMA_HOST", "127.0.0.1:8421"),
    ],
)
def test_the_gateways_own_address_is_ignored(
    variable: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients on the same machine have it in these variables; the gateway would call itself."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-2")
    monkeypatch.setenv(variable, address)
    config = Launch(None, {}).config
    assert all(place.base_url_env is None for place in config.places.values())
    said = f"warning: {variable}: it is this gateway's own address, and is ignored"
    assert said in list(summary(config))
    other = Launch(None, {"port": 8000}).config
    assert {place.base_url_env for place in other.places.values()} == {None, variable}


def test_an_upstream_does_not_read_the_environment_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ignored address stays ignored."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:8421/v1")
    place = Launch(None, {}).config.places["openai"]
    upstream = Upstream(place, HttpTransport())
    assert upstream.deployment("gpt-5").url == "https://api.openai.com/v1/models"
    assert "OPENAI_BASE_URL" in os.environ


def test_variables_without_effect_are_named() -> None:
    """Once, at the start."""
    around = {"ANTHROPIC_API_KEY": "sk-2", "ANTHROPIC_AUTH_TOKEN": "sk-3"}
    shown = list(summary(load_config(None, around, default=None), around))
    said = "warning: ANTHROPIC_AUTH_TOKEN is set for anthropic's own SDK; Dragoman does not use it"
    assert shown.count(said) == 1
    assert "sk-3" not in "\n".join(shown)
