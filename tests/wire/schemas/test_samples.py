"""Real schemas under every profile."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.wire.gemini.tools import decode_schema, encode_schema
from dragoman.wire.schemas import (
    ANTHROPIC,
    ANTHROPIC_STRICT,
    GEMINI_JSON_SCHEMA,
    GEMINI_PARAMETERS,
    OPENAI,
    OPENAI_STRICT,
    PROFILES,
    projected,
)
from tests.corpus import Corpus
from tests.wire.schemas.acceptance import refusals
from tests.wire.schemas.instances import instances, misfits
from tests.wire.schemas.samples import Found, of_types, recorded

_TYPES = dict(of_types())


def _check(schema: dict[str, Any], name: str) -> None:
    profile = PROFILES[name]
    made = projected(schema, profile)
    assert refusals(made.schema, name) == []
    assert projected(made.schema, profile).schema == made.schema
    if made.is_exact:
        for value in instances(made.schema, 7, 30):
            assert misfits(schema, made.undo(value)) == []


@pytest.mark.parametrize("name", sorted(PROFILES))
@pytest.mark.parametrize("kind", sorted(_TYPES))
def test_types(kind: str, name: str) -> None:
    """Schemas of pydantic and msgspec types are acceptable to every target."""
    _check(json.loads(json.dumps(_TYPES[kind])), name)


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_recorded(corpus: Corpus, name: str) -> None:
    """Recorded tools are acceptable to every target."""
    found = recorded(corpus)
    assert len(found) > 50
    for one in found:
        _check(one.schema, name)


def _accepted(corpus: Corpus, *kinds: str) -> list[Found]:
    found = [one for one in recorded(corpus) if one.is_accepted and one.kind in kinds]
    assert found
    return found


def test_accepted_strict_by_openai(corpus: Corpus) -> None:
    """A strict schema that OpenAI accepted is unchanged."""
    for one in _accepted(corpus, "parameters", "schema"):
        if one.is_strict and one.host == "api.openai.com":
            made = projected(one.schema, OPENAI_STRICT)
            assert made.schema == one.schema, one.file
            assert made.is_exact


def test_accepted_by_openai(corpus: Corpus) -> None:
    """Functions that OpenAI accepted are unchanged."""
    for one in _accepted(corpus, "parameters"):
        if one.host == "api.openai.com":
            assert projected(one.schema, OPENAI).schema == one.schema, one.file


def test_accepted_by_anthropic(corpus: Corpus) -> None:
    """Tools that Anthropic accepted are unchanged, strict ones too."""
    for one in _accepted(corpus, "input_schema"):
        assert projected(one.schema, ANTHROPIC).schema == one.schema, one.file
        if one.is_strict:
            assert projected(one.schema, ANTHROPIC_STRICT).schema == one.schema, one.file


def test_accepted_by_gemini(corpus: Corpus) -> None:
    """OpenAPI schemas that Gemini accepted round-trip."""
    for one in _accepted(corpus, "parameters", "responseSchema"):
        if one.file.startswith("gemini/"):
            schema, form = decode_schema(one.schema)
            if form != "verbatim" and one.schema["type"] != 6:  # the number of a type, not its name
                made = projected(schema, GEMINI_PARAMETERS)
                assert encode_schema(made.schema, form) == one.schema, one.file
                assert made.is_exact


def test_accepted_json_schemas(corpus: Corpus) -> None:
    """JSON Schemas that Gemini accepted are unchanged."""
    kinds = ("parametersJsonSchema", "parameters_json_schema", "responseJsonSchema")
    for one in _accepted(corpus, *kinds):
        assert projected(one.schema, GEMINI_JSON_SCHEMA).schema == one.schema, one.file
