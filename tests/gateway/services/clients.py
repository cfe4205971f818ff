"""The official SDKs, as clients of a gateway; kept, as each leaves its connections open."""

from __future__ import annotations

import warnings
from typing import Any

import anthropic
import ollama
import openai

with warnings.catch_warnings():
    # google-genai's source has an invalid escape sequence, which Python mentions when it compiles.
    warnings.simplefilter("ignore")
    from google import genai
    from google.genai import errors as gemini_errors

from tests.gateway.kept_clients import kept

__all__ = ["gemini_errors", "genai"]

KEY = "client-key"


@kept
def openai_client(url: str, key: str = KEY, **changes: Any) -> openai.OpenAI:
    """OpenAI's."""
    return openai.OpenAI(api_key=key, base_url=f"{url}/v1", max_retries=0, **changes)


@kept
def anthropic_client(url: str, key: str = KEY) -> anthropic.Anthropic:
    """Anthropic's."""
    return anthropic.Anthropic(api_key=key, base_url=url, max_retries=0)


@kept
def gemini_client(url: str, key: str = KEY) -> genai.Client:
    """Google's."""
    return genai.Client(api_key=key, http_options={"base_url": url})


@kept
def ollama_client(url: str, key: str = KEY) -> ollama.Client:
    """Ollama's."""
    return ollama.Client(host=url, headers={"Authorization": f"Bearer {key}"})
