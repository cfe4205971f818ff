"""OpenAI's own tools, and the kinds that they are of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.provider_tools import (
    ApplyPatch,
    CodeExecution,
    ComputerUse,
    FileSearch,
    ImageGeneration,
    McpServer,
    Shell,
    ToolSearch,
    WebSearch,
)
from dragoman.wire.openai_settings import callers, callers_wire
from dragoman.wire.provider_tools import Form, Option, location, location_wire
from dragoman.wire.settings_table import flag, text, texts, whole

_CALLABLE = (Option("allowed_callers", "allowed_callers", callers, callers_wire),)
_DEFERRED = (Option("defer_loading", "defer_loading", flag), *_CALLABLE)


def _allowed(value: Any) -> tuple[str, ...] | None:
    names = value.get("tool_names") if isinstance(value, Mapping) else value
    return texts(names)


def _mapping(value: Any) -> Any:
    return value if isinstance(value, Mapping) else None


_SCREEN = (
    Option("display_width", "display_width", whole),
    Option("display_height", "display_height", whole),
    Option("environment", "environment", text),
)

FORMS = (
    Form(
        WebSearch,
        "web_search",
        (
            Option("filters.allowed_domains", "allowed_domains", texts),
            Option("filters.blocked_domains", "blocked_domains", texts, lambda _names: None),
            Option("user_location", "location", location, location_wire),
            Option("search_context_size", "context_size", text),
        ),
        r"web_search(_preview)?(_\d{4}_\d{2}_\d{2})?",
    ),
    Form(
        CodeExecution,
        "code_interpreter",
        (
            Option("container.file_ids", "file_ids", texts),
            Option("container", "container", text),
            *_CALLABLE,
        ),
        constants={"container": {"type": "auto"}},
    ),
    Form(
        FileSearch,
        "file_search",
        (
            Option("vector_store_ids", "stores", texts),
            Option("max_num_results", "max_results", whole),
            Option("filters", "filters", _mapping, _mapping),
        ),
        needs="stores",
    ),
    Form(
        ImageGeneration,
        "image_generation",
        (
            Option("model", "model", text),
            Option("size", "size", text),
            Option("quality", "quality", text),
            Option("output_format", "format", text),
            Option("background", "background", text),
        ),
    ),
    Form(
        McpServer,
        "mcp",
        (
            Option("server_label", "label", text),
            Option("server_url", "url", text),
            Option("authorization", "authorization", text),
            Option("headers", "headers", _mapping),
            Option("server_description", "description", text),
            Option("allowed_tools", "allowed_tools", _allowed),
            Option("require_approval", "approval", text),
            *_DEFERRED,
        ),
    ),
    Form(ToolSearch, "tool_search", (Option("execution", "execution", text),)),
    Form(ComputerUse, "computer_use_preview", _SCREEN, "computer(_use_preview)?"),
    Form(Shell, "shell", _CALLABLE, "(local_)?shell"),
    Form(ApplyPatch, "apply_patch", _CALLABLE),
)
"""By kind: how it is written here."""
