"""Model strings."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import open_model
from dragoman.errors import ConfigError, InvalidInputError
from dragoman.transport.deployments import ModelName, parse_model


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("openai", ModelName("openai")),
        ("openai?", ModelName("openai")),
        ("openai:gpt-5", ModelName("openai", "gpt-5")),
        ("openai/gpt-5", ModelName("openai", "gpt-5")),
        ("ollama:llama3.2:latest", ModelName("ollama", "llama3.2:latest")),
        ("openrouter:meta-llama/llama-4:free", ModelName("openrouter", "meta-llama/llama-4:free")),
        ("openrouter/meta-llama/llama-4", ModelName("openrouter", "meta-llama/llama-4")),
        ("LM Studio:qwen", ModelName("LM Studio", "qwen")),
        ("vertex:claude@20250101", ModelName("vertex", "claude@20250101")),
        ("openai:what?ever=1", ModelName("openai", "what?ever=1")),
        ("openai?chat=a&embeddings=b", ModelName("openai", "a", "b")),
        ("openai?embedding=b", ModelName("openai", None, "b")),
        ("openrouter?chat=a/b:c", ModelName("openrouter", "a/b:c")),
        ("openai?chat=a%26b", ModelName("openai", "a&b")),
    ],
)
def test_a_model_string_names_a_provider_and_models(text: str, name: ModelName) -> None:
    """The first separator ends the provider; the rest is the model's name."""
    assert parse_model(text) == name


@pytest.mark.parametrize(
    "text", ["", " ", ":", "/", ":gpt", "openai:", "openai/", "?chat=a", "openai?chat=",
             "openai?model=a", "openai?chat"],
)  # fmt: skip
def test_invalid_names_are_config_errors_that_show_the_forms(text: str) -> None:
    """The text has the accepted forms, and does not repeat the input."""
    with pytest.raises(ConfigError, match="provider:model"):
        parse_model(text)


@pytest.mark.parametrize("value", [None, 7, b"openai:gpt"])
def test_only_text_is_a_model_string(value: object) -> None:
    """Other types are errors."""
    with pytest.raises(InvalidInputError):
        parse_model(cast("Any", value))


@given(st.text())
def test_any_text_is_a_name_or_a_config_error(text: str) -> None:
    """No text raises another error, and a parsed name is a prefix of the text."""
    try:
        name = parse_model(text)
    except ConfigError:
        return
    assert text.startswith(name.provider)


@pytest.mark.parametrize("text", ["openai", "openai:gpt-5", "openrouter:a/b:c"])
def test_a_name_round_trips(text: str) -> None:
    """`str` gives the canonical form."""
    assert str(parse_model(text)) == text


@pytest.mark.parametrize(
    ("name", "meant"),
    [("echoo:", "echo:"), ("echoo:fast", "echo:"), ("loca:x", "local:"), ("opnai:", "openai")],
)
def test_a_misspelled_provider_is_recognised(name: str, meant: str) -> None:
    """With and without a model after the colon, and for models without a provider."""
    with pytest.raises(ConfigError) as caught:
        open_model(name)
    assert f"unknown provider (did you mean {meant}?)" in str(caught.value)


def test_a_missing_model_after_the_colon_is_explained() -> None:
    """The provider is known, so the name is not misspelled."""
    with pytest.raises(ConfigError, match="name a model as provider:model"):
        open_model("openai:")
