"""The attributes of spans and metrics, by the conventions for generative AI."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from dragoman.errors import ProviderError
from dragoman.model.requests import Request, Sampling
from dragoman.model.responses import Response
from dragoman.model.usage import Usage

PROVIDERS = {
    "azure": "azure.ai.openai",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""The conventions' names for our providers, where they differ."""
_SETTINGS = {
    "max_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "seed": "gen_ai.request.seed",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "choices": "gen_ai.request.choice.count",
}
_NO_SETTINGS = Request().sampling  # the default, which most requests share
_MAX_LABELS = 64
_MAX_NUMBER = 2**63 - 1
"""The largest number that OTLP has; a larger one would lose all spans of its batch."""


class Place:
    """What all calls of a model have in common: the name and the attributes of their spans."""

    __slots__ = ("_labels", "attributes", "common", "name")

    def __init__(self, operation: str, provider: str, model: str | None, url: str | None) -> None:
        named = PROVIDERS.get(provider, provider)
        self.name = operation if model is None else f"{operation} {text(model)}"
        self.common: dict[str, Any] = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": named,
            **({} if model is None else {"gen_ai.request.model": text(model)}),
            **_server(url),
        }
        self.attributes = {**self.common, "gen_ai.system": named}  # its earlier name
        self._labels: dict[tuple[str | None, str | None], Labels] = {}

    def labels(self, model: str | None, error: str | None) -> Labels:
        """The attributes of metrics, given the response's model and the error."""
        found = self._labels.get((model, error))
        if found is None:
            if len(self._labels) >= _MAX_LABELS:
                self._labels.clear()
            found = self._labels[model, error] = Labels(self.common, model, error)
        return found


class Labels:
    """The attributes of a call's metrics."""

    __slots__ = ("call", "input", "output")

    def __init__(self, common: Mapping[str, Any], model: str | None, error: str | None) -> None:
        self.call = dict(common)
        if model is not None:
            self.call["gen_ai.response.model"] = model
        if error is not None:
            self.call["error.type"] = error
        self.input = {**self.call, "gen_ai.token.type": "input"}
        self.output = {**self.call, "gen_ai.token.type": "output"}


@lru_cache(maxsize=128)
def place(operation: str, provider: str, model: str | None, url: str | None) -> Place:
    """The place of a model."""
    return Place(operation, provider, model, url)


@lru_cache(maxsize=128)
def described_agent(name: str, model: str) -> tuple[str, dict[str, Any]]:
    """The name and attributes of an agent's spans, shared by all of its runs."""
    provider, _, model_name = model.partition(":")
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": PROVIDERS.get(provider, provider),
        "gen_ai.request.model": text(model_name or provider),
    }
    if name:
        attributes["gen_ai.agent.name"] = text(name)
    return f"invoke_agent {text(name)}".rstrip(), attributes


@lru_cache(maxsize=256)
def described_tool(name: str, description: str) -> tuple[str, dict[str, Any]]:
    """The name and attributes of a tool's spans, shared by all of its runs."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": text(name),
        "gen_ai.tool.type": "function",
    }
    if description:
        attributes["gen_ai.tool.description"] = text(description)
    return f"execute_tool {text(name)}", attributes


def _server(url: str | None) -> dict[str, Any]:
    if url is None:
        return {}
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return {}
    if host is None or host.endswith(".invalid"):  # the stand-in of a model on this machine
        return {}
    return {"server.address": host, "server.port": port or (80 if parts.scheme == "http" else 443)}


def request_attributes(request: Request) -> dict[str, Any]:
    """The settings of a request."""
    found = {} if request.sampling is _NO_SETTINGS else _settings(request.sampling)
    if request.stream:
        found["gen_ai.request.stream"] = True
    if request.output is not None and request.output.format != "text":
        found["gen_ai.output.type"] = "json"
    return found


def _settings(sampling: Sampling) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field, name in _SETTINGS.items():
        value = getattr(sampling, field)
        if value is not None and abs(value) <= _MAX_NUMBER:
            found[name] = value
    if sampling.stop:
        found["gen_ai.request.stop_sequences"] = [text(each) for each in sampling.stop]
    return found


def response_attributes(response: Response) -> dict[str, Any]:
    """The outcome of a call."""
    found = usage_attributes(response.usage)
    if response.id is not None:
        found["gen_ai.response.id"] = text(response.id)
    if response.model is not None:
        found["gen_ai.response.model"] = text(response.model)
    reasons = [choice.finish.value for choice in response.choices if choice.finish is not None]
    if reasons:
        found["gen_ai.response.finish_reasons"] = reasons
    return found


def usage_attributes(usage: Usage | None) -> dict[str, Any]:
    """The tokens that were used."""
    if usage is None:
        return {}
    total_input, total_output = usage.total_input, usage.total_output
    if total_input > _MAX_NUMBER or total_output > _MAX_NUMBER:
        return {}
    found = {
        "gen_ai.usage.input_tokens": total_input,
        "gen_ai.usage.output_tokens": total_output,
    }
    if usage.cache_read:
        found["gen_ai.usage.cache_read.input_tokens"] = usage.cache_read
    if usage.cache_write:
        found["gen_ai.usage.cache_creation.input_tokens"] = usage.cache_write
    if usage.thinking:
        found["gen_ai.usage.reasoning.output_tokens"] = usage.thinking
    return found


def error_type(error: BaseException) -> str:
    """The `error.type` of an error: the provider's status, or our class name."""
    if isinstance(error, ProviderError) and error.status is not None:
        return str(error.status)
    return type(error).__qualname__


def is_failure(error: BaseException) -> bool:
    """Whether an exception is a failure: leaving a stream early is none."""
    return not isinstance(error, GeneratorExit) and getattr(error, "is_failure", True)


def text(value: str) -> str:
    """A text that can be exported: one lone surrogate would lose all spans of its batch."""
    return value if value.isascii() else value.encode(errors="replace").decode()
