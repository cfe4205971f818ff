"""Opening models by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigError, InvalidInputError
from dragoman.providers.registry import provider
from dragoman.transport.client import Client
from dragoman.transport.echo import EchoModel
from dragoman.transport.local.model import LocalModel
from dragoman.transport.model import Model, OpenedModel, OpenedStream, open_model
from dragoman.transport.scripted import ScriptedModel


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("anthropic:claude-sonnet-4-5", Client),
        ("ollama/llama3.2", Client),
        ("openai", Client),
        ("local:smollm2", LocalModel),
        ("local:SmolLM2", LocalModel),
        ("local:/models/x.gguf", LocalModel),
        ("local:~/x.gguf", LocalModel),
        ("echo:", EchoModel),
        ("echo", EchoModel),
        ("echo:loud", EchoModel),
        ("scripted:", ScriptedModel),
        ("scripted", ScriptedModel),
    ],
)
def test_a_name_determines_the_kind_of_model(name: str, kind: type) -> None:
    """Nothing is connected, downloaded, looked up or started yet."""
    model = open_model(name)
    assert type(model) is kind
    assert isinstance(model, Model)


@pytest.mark.parametrize("name", ["echo:", "echo:loud", "local:smollm2", "local:/m/x.gguf",
                                  "anthropic:claude-sonnet-4-5"])  # fmt: skip
def test_a_model_knows_its_name(name: str) -> None:
    """Opening that name gives the same kind again."""
    assert open_model(name).name == name


def test_an_open_model_is_returned() -> None:
    """So that a function can accept either."""
    model = EchoModel()
    assert open_model(model) is model
    with pytest.raises(InvalidInputError, match="settings"):
        open_model(model, pause=1.0)


def test_a_provider_is_opened_as_a_client() -> None:
    """If it has no class of its own."""
    assert type(open_model(provider("ollama"), base_url="http://localhost:1")) is Client


@pytest.mark.parametrize("given", [None, 7, object()])
def test_other_types_are_rejected(given: Any) -> None:
    """The error names the type and no content."""
    with pytest.raises(InvalidInputError, match=type(given).__name__):
        open_model(given)


@pytest.mark.parametrize("name", ["local:", "local", "local:unheard", "nobody:x", ""])
def test_unknown_names_are_rejected(name: str) -> None:
    """The error lists the possible ones."""
    with pytest.raises(ConfigError):
        open_model(name)


def test_settings_are_passed_to_the_class(tmp_path: Path) -> None:
    """Whatever it accepts."""
    path = tmp_path / "play.json"
    path.write_text('["one"]')
    scripted = open_model("scripted:", script=["a", "b"])
    assert isinstance(scripted, ScriptedModel)
    assert scripted.remaining == 2
    assert open_model(f"scripted:{path}", repeat=True).name == f"scripted:{path}"
    with pytest.raises(InvalidInputError, match="context"):
        open_model("local:smollm2", context=0)


async def test_all_models_have_the_same_methods() -> None:
    """One function works with any: `send`, `stream`, `close` and `async with`."""

    async def asked(model: OpenedModel) -> tuple[str, str]:
        async with model:
            plain = await model.send("Hello")
            stream: OpenedStream = model.stream("Hello")
            async with stream:
                async for _ in stream:
                    pass
        await model.close()
        return plain.text, stream.response.text

    assert await asked(EchoModel()) == ("Hello", "Hello")
    assert await asked(ScriptedModel(["a", "b"])) == ("a", "b")
