"""Requests of the vendors' SDKs, for comparison with ours."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

Call = Callable[[str, bool], None]
"""Makes a request to a server, plain or streamed; what comes back does not matter."""
KEY = "sk-test"
_HI: Any = [{"role": "user", "content": "hi"}]


def openai(prefix: str, model: str = "m") -> Call:
    """OpenAI's SDK with Chat Completions; it is used for all compatible providers, too."""

    def call(url: str, stream: bool) -> None:
        import openai as sdk

        client = sdk.OpenAI(base_url=url + prefix, api_key=KEY, max_retries=0)
        with client, suppress(sdk.APIError):
            client.chat.completions.create(model=model, messages=_HI, stream=stream)

    return call


def responses(url: str, stream: bool) -> None:
    """OpenAI's SDK with Responses."""
    import openai as sdk

    client = sdk.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
    with client, suppress(sdk.APIError):
        client.responses.create(model="m", input="hi", stream=stream)


def azure(url: str, stream: bool) -> None:
    """OpenAI's SDK for Azure."""
    import openai as sdk

    with (
        sdk.AzureOpenAI(
            azure_endpoint=url, api_key=KEY, api_version="2024-10-21", max_retries=0
        ) as client,
        suppress(sdk.APIError),
    ):
        client.chat.completions.create(model="m", messages=_HI, stream=stream)


def anthropic(url: str, stream: bool) -> None:
    """Anthropic's SDK."""
    import anthropic as sdk

    client = sdk.Anthropic(base_url=url, api_key=KEY, max_retries=0)
    with client, suppress(sdk.APIError):
        client.messages.create(model="m", max_tokens=9, messages=_HI, stream=stream)


def anthropic_on_vertex(url: str, stream: bool) -> None:
    """Anthropic's SDK for Vertex AI."""
    import anthropic as sdk
    from anthropic.lib.vertex import AnthropicVertex

    with (
        AnthropicVertex(
            base_url=f"{url}/v1", access_token=KEY, region="us-east5", project_id="p", max_retries=0
        ) as client,
        suppress(sdk.APIError),
    ):
        client.messages.create(model="claude-x", max_tokens=9, messages=_HI, stream=stream)


def google(url: str, stream: bool) -> None:
    """Google's SDK for the Gemini API."""
    from google import genai

    client = genai.Client(api_key=KEY, http_options={"base_url": url})
    _generate(client, stream)


def google_on_vertex(url: str, stream: bool) -> None:
    """Google's SDK for Vertex AI."""
    from google import genai
    from google.oauth2.credentials import Credentials

    made: Any = Credentials
    client = genai.Client(
        vertexai=True, project="p", location="us-east5", credentials=made(KEY),
        http_options={"base_url": url, "api_version": "v1"},
    )  # fmt: skip
    _generate(client, stream)


def _generate(client: Any, stream: bool) -> None:
    from google.genai import errors

    models = client.models
    with client, suppress(errors.APIError):
        if stream:
            for _ in models.generate_content_stream(model="m", contents="hi"):
                pass
        else:
            models.generate_content(model="m", contents="hi")


def groq(url: str, stream: bool) -> None:
    """Groq's SDK."""
    import groq as sdk

    with sdk.Groq(base_url=url, api_key=KEY, max_retries=0) as client, suppress(sdk.APIError):
        client.chat.completions.create(model="m", messages=_HI, stream=stream)


def ollama(url: str, stream: bool) -> None:
    """Ollama's SDK."""
    import ollama as sdk

    client: Any = sdk.Client(host=url, headers={"Authorization": f"Bearer {KEY}"})
    with client._client, suppress(sdk.ResponseError):
        found = client.chat(model="m", messages=_HI, stream=stream)
        for _ in found if stream else ():
            pass
