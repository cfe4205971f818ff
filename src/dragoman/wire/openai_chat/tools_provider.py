"""Built-in tools of Chat servers; OpenAI's only one is a search, set by a request field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.provider_tools import CodeExecution, ImageGeneration, Location, WebSearch
from dragoman.wire.provider_tools import Form, Option, location, location_wire
from dragoman.wire.settings_table import text


def _location(value: Any) -> Location | None:
    return location(value.get("approximate")) if isinstance(value, Mapping) else None


def _location_wire(value: Location) -> dict[str, Any]:
    named = location_wire(value)
    return {"type": named.pop("type"), "approximate": named}


FORMS = (
    Form(
        WebSearch,
        "web_search_options",
        (
            Option("user_location", "location", _location, _location_wire),
            Option("search_context_size", "context_size", text),
        ),
        models="search",  # `gpt-4o-search-preview`; others refuse the field
    ),
    # Built-in tools of Groq and Mistral are only decoded: no other server has them.
    Form(
        WebSearch,
        "browser_search",
        pattern="browser_search|web_search(_premium)?",
        is_read_only=True,
    ),
    Form(CodeExecution, "code_interpreter", is_read_only=True),
    Form(ImageGeneration, "image_generation", is_read_only=True),
)
"""The wire formats of the provider tools that Chat servers support."""
