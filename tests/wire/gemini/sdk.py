"""Google's SDK types, used to validate what we write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.model.jsontext import dumps

_BESIDE = (
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "cachedContent",
    "labels",
    "serviceTier",
    "store",
)


def read_request(body: Mapping[str, Any]) -> Any:
    """The body as the SDK's parameters; raises if the types reject it.

    The SDK keeps all settings in one object; on the wire they are spread over the body.
    """
    types = pytest.importorskip("google.genai.types")
    plain = json.loads(dumps(body))
    config = {**(plain.get("generationConfig") or {})}
    config |= {key: plain[key] for key in _BESIDE if key in plain}
    strangers = plain.keys() - {"contents", "generationConfig", *_BESIDE}
    if strangers:
        msg = "fields that the SDK does not know"
        raise ValueError(msg)
    parameters = {"model": "m", "contents": plain.get("contents"), "config": config}
    return types._GenerateContentParameters.model_validate_json(_text(parameters))


def read_response(body: Mapping[str, Any]) -> Any:
    """The body as the SDK's response; raises if the types reject it."""
    types = pytest.importorskip("google.genai.types")
    return types.GenerateContentResponse.model_validate_json(_text(json.loads(dumps(body))))


def _text(value: Any) -> bytes:
    """The value as JSON; lone surrogates, which pydantic can't read, become question marks."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
