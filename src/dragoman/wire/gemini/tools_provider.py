"""Google's built-in tools, mapped to our provider tool classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.frozen import thaw
from dragoman.model.provider_tools import (
    CodeExecution,
    ComputerUse,
    FileSearch,
    McpServer,
    WebFetch,
    WebSearch,
)
from dragoman.wire.provider_tools import Form, Option
from dragoman.wire.settings_table import text, texts, whole

_ENVIRONMENTS = {"ENVIRONMENT_BROWSER": "browser"}


def _environment(value: Any) -> str | None:
    return _ENVIRONMENTS.get(value) if isinstance(value, str) else None


def _headers(value: Any) -> Mapping[str, Any] | None:
    return value if isinstance(value, Mapping) and value else None


def _environment_wire(value: str) -> str | None:
    return "ENVIRONMENT_BROWSER" if value == "browser" else None


FORMS = (
    Form(
        WebSearch,
        "googleSearch",
        (Option("excludeDomains", "blocked_domains", texts),),
        "googleSearch|enterpriseWebSearch|googleSearchRetrieval",
    ),
    Form(WebFetch, "urlContext"),
    Form(CodeExecution, "codeExecution"),
    Form(
        FileSearch,
        "fileSearch",
        (
            Option("fileSearchStoreNames", "stores", texts),
            Option("topK", "max_results", whole),
            Option("metadataFilter", "filters", text, text),
        ),
        needs="stores",
    ),
    Form(
        ComputerUse,
        "computerUse",
        (Option("environment", "environment", _environment, _environment_wire),),
    ),
    Form(
        McpServer,
        "mcpServers",
        (
            Option("name", "label", text),
            Option("streamableHttpTransport.url", "url", text),
            Option("streamableHttpTransport.headers", "headers", _headers, thaw),
        ),
        needs="url",
    ),
)
"""The wire formats of the provider tools that Google supports. For MCP servers see `tools`."""
