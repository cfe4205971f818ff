"""Lists of models, in the form and the pages of each API."""

from __future__ import annotations

import anthropic
import httpx
import ollama
import openai
import pytest

from tests.gateway.running import routed, running
from tests.gateway.services.clients import (
    anthropic_client,
    gemini_client,
    gemini_errors,
    ollama_client,
    openai_client,
)
from tests.gateway.services.conftest import Stage

NAMES = ["m1", "m2", "m3"]


def _names(back: str) -> list[str]:
    return [f"{name}:latest" for name in NAMES] if back == "ollama" else NAMES


def test_openai_clients_list_the_models_of_every_back(stage: Stage, back: str) -> None:
    """All models, and a single one."""
    client = openai_client(stage.before(back).url)
    assert [model.id for model in client.models.list()] == _names(back)
    assert client.models.retrieve(_names(back)[1]).id == _names(back)[1]
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("m9")


def test_anthropic_clients_list_them_page_by_page(stage: Stage, back: str) -> None:
    """Anthropic's clients are recognised by their header."""
    client = anthropic_client(stage.before(back).url)
    page = client.models.list(limit=2)
    assert (len(page.data), page.has_more) == (2, True)
    assert [model.id for model in client.models.list(limit=2)] == _names(back)
    assert client.models.retrieve(_names(back)[0]).type == "model"
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("m9")


def test_gemini_clients_list_them_page_by_page(stage: Stage, back: str) -> None:
    """Under both API versions."""
    client = gemini_client(stage.before(back).url)
    pager = client.models.list(config={"page_size": 2})
    assert len(pager.page) == 2
    assert [model.name for model in pager] == [f"models/{name}" for name in _names(back)]
    assert client.models.get(model=_names(back)[0]).name == f"models/{_names(back)[0]}"
    with pytest.raises(gemini_errors.ClientError):
        client.models.get(model="m9")


def test_ollama_clients_list_and_show_them(stage: Stage, back: str) -> None:
    """Tags and model details; `:latest` is optional."""
    client = ollama_client(stage.before(back).url)
    assert [model.model for model in client.list().models] == _names(back)
    assert "tools" in (client.show("m1").capabilities or ())
    with pytest.raises(ollama.ResponseError):
        client.show("m9")


def test_what_an_ollama_says_of_a_model_is_told(stage: Stage) -> None:
    """An Ollama server's details pass through without additions."""
    shown = ollama_client(stage.before("ollama").url).show("m1")
    assert shown.capabilities == ["completion", "tools", "thinking"]
    assert (shown.template, shown.details and shown.details.family) == ("{{ .Prompt }}", "llama")


def test_what_an_ollama_has_loaded_is_told(stage: Stage) -> None:
    """Loaded models are listed for Ollama servers only."""
    names = [model.model for model in ollama_client(stage.before("ollama").url).ps().models]
    assert names == ["m1:latest"]
    assert ollama_client(stage.before("openai").url).ps().models == []


def test_the_version_is_that_of_ollamas_api(stage: Stage) -> None:
    """Clients require a minimum version."""
    version = httpx.get(f"{stage.before('openai').url}/api/version").json()["version"]
    assert tuple(map(int, version.split("."))) >= (0, 12, 0)


def test_a_place_that_lists_nothing_may_have_any_model(stage: Stage) -> None:
    """A model can be requested by name even if the provider's list fails."""
    dead = stage.upstream("openai").place(base_url="http://127.0.0.1:9")
    with running(routed(dead)) as serving:
        client = openai_client(serving.url)
        assert list(client.models.list()) == []
        assert client.models.retrieve("m9").id == "m9"


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/models?limit=x", {"anthropic-version": "2023-06-01"}),
        ("/v1/models?after_id=nobody", {"anthropic-version": "2023-06-01"}),
        ("/v1beta/models?pageToken=%FF%FF", {}),
        ("/v1beta/models?pageSize=-1", {}),
        ("/v1/models/" + "x" * 600, {}),
        ("/v1/models/%00%ff", {}),
    ],
)
def test_bad_queries_and_names_are_refused(
    stage: Stage, path: str, headers: dict[str, str]
) -> None:
    """The error is the client's (4xx), never a server error."""
    answer = httpx.get(f"{stage.before('openai').url}{path}", headers=headers)
    assert answer.status_code in {400, 404}
