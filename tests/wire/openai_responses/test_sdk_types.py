"""Encoded requests and responses match the types of OpenAI's SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given

import dragoman
from dragoman import Request, Response
from dragoman.wire.openai_responses.codec import DIALECT
from tests.corpus import Corpus
from tests.wire.recorded import bodies, has_conversation
from tests.wire.test_matrix_random import exhausted, histories, touched

OTHERS = [name for name in dragoman.dialects() if name != DIALECT.name]


@cache
def _requests() -> Any:
    pydantic = pytest.importorskip("pydantic")
    types = pytest.importorskip("openai.types.responses.response_create_params")
    return pydantic.TypeAdapter(types.ResponseCreateParams)


@cache
def _responses() -> Any:
    return pytest.importorskip("openai.types.responses").Response


def _check_request(body: Mapping[str, Any]) -> None:
    """Raises if the types reject the body; `Iterable`s are validated as they are read."""
    plain = json.loads(json.dumps({"model": "m", **body}, default=dict))
    for item in plain.get("input", ()):
        _without_sources(item)
    exhausted(_requests().validate_python(plain))


def _without_sources(item: Any) -> None:
    """Adapts what the API accepts, as recordings show, but the types reject.

    An answer without an id may have citations, and encrypted reasoning needs no id (W21).
    """
    if isinstance(item, dict) and item.get("type") == "reasoning" and "encrypted_content" in item:
        item.setdefault("id", "rs_1")
    if isinstance(item, dict) and item.get("role") == "assistant" and "id" not in item:
        content = item["content"]
        if isinstance(content, list) and all(part["type"] == "output_text" for part in content):
            item["content"] = "".join(part["text"] for part in content)


@given(request=histories())
def test_requests_match_the_sdk_types(request: Request) -> None:
    """Any history encodes to a valid `ResponseCreateParams`."""
    _check_request(DIALECT.encode_request(touched(request, DIALECT.name)).body)


@pytest.mark.corpus
@pytest.mark.parametrize("source", OTHERS)
def test_recorded_requests_match_the_sdk_types(corpus: Corpus, source: str) -> None:
    """Recorded requests of other dialects encode to a valid `ResponseCreateParams`."""
    _requests()
    refused = []
    for body in bodies(corpus, source):
        request = body.decode()
        if isinstance(request, Request) and has_conversation(request, DIALECT.name):
            try:
                _check_request(DIALECT.encode_request(touched(request, DIALECT.name)).body)
            except ValueError as error:
                refused.append((body.recording.row.file, str(error).partition("\n")[2][:200]))
    assert refused == []


@pytest.mark.corpus
@pytest.mark.parametrize("source", OTHERS)
def test_recorded_answers_match_the_sdk_types(corpus: Corpus, source: str) -> None:
    """Recorded responses of other dialects have every field that OpenAI's model requires."""
    model = _responses()
    refused = []
    total = 0
    for body in bodies(corpus, source):
        response = body.decode()
        if isinstance(response, Response):
            total += 1
            written = json.loads(DIALECT.encode_response(response).to_bytes())
            try:
                model.model_validate(written, strict=True)
            except ValueError as error:
                refused.append((body.recording.row.file, str(error).partition("\n")[2][:200]))
    assert total > 0
    assert refused == []
