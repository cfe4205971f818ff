"""Google's own types, as judges of what we write."""

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
    """A body as the SDK's parameters for it; raises where they refuse it.

    The SDK keeps all settings in one object, which the wire spreads over the body.
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
    """A body as the SDK's response; raises where it refuses it."""
    types = pytest.importorskip("google.genai.types")
    return types.GenerateContentResponse.model_validate_json(_text(json.loads(dumps(body))))


def _text(value: Any) -> bytes:
    """As JSON; half a pair of surrogates, which pydantic can't read, is a question mark."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
