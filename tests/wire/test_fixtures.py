"""Fixtures of every dialect: pairs of a wire form and its canonical form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import Request
from dragoman.model import document
from dragoman.wire.target import Target
from tests.wire.test_hostile import FIXTURES
from tests.wire.unrepaired import unrepaired

FILES = [
    pytest.param(dialect, file, id=f"{dialect}-{file.stem}")
    for dialect in dragoman.dialects()
    for file in sorted((FIXTURES / dialect).glob("*.json"))
]
_HOSTS = {  # that take what they are given
    "openai-responses": Target(
        dialect="openai-responses",
        state=dragoman.dialect("openai-responses").target.state.replace(
            fields=("previous_response_id", "conversation", "prompt", "store")
        ),
    )
}
_EXACT = {"anthropic", "openai-responses"}
"""Dialects whose fixtures have every field of the canonical form."""
_PATHS = {
    "gemini": "/v1beta/models/gemini-test:generateContent",
    "ollama": "/api/chat",
}
_REFUSED = {
    "anthropic-system_in_between",  # its messages without content test the decoder only
    "openai-chat-thinking",  # Mistral's form of thinking isn't OpenAI's
}


def _exactly(value: Any) -> str:
    """JSON text that distinguishes 1 from 1.0 and ignores the order of keys."""
    return json.dumps(value, sort_keys=True)


def _without_ids(value: Request | dragoman.Response) -> dict[str, Any]:
    """A value's document, without the generated message ids."""
    written: dict[str, Any] = json.loads(value.to_json())
    content = written["value"]
    choices = content.get("choices", [])
    for message in [*content.get("messages", []), *(choice["message"] for choice in choices)]:
        del message["id"]
    return written


@pytest.mark.whole
@pytest.mark.parametrize(("dialect", "file"), FILES)
def test_fixture_round_trips(dialect: str, file: Path) -> None:
    """Each fixture's wire form decodes to its canonical form, which encodes to its wire form."""
    pair, speaker = json.loads(file.read_text(encoding="utf-8")), dragoman.dialect(dialect)
    canonical = document.read(json.dumps(pair["canonical"]))
    path = _PATHS.get(dialect)
    if isinstance(canonical, Request):
        read: Request | dragoman.Response = speaker.decode_request(pair["wire"], path=path)
        assert speaker.decode_request(json.dumps(pair["wire"]), path=path) == canonical
        encoded = unrepaired(speaker, _HOSTS.get(dialect))(canonical)
        assert path is None or encoded.path == path
    else:
        assert isinstance(canonical, dragoman.Response)
        read = speaker.decode_response(pair["wire"])
        assert read.usage == canonical.usage
        encoded = speaker.encode_response(canonical)
    assert read == canonical
    if dialect in _EXACT:
        assert _without_ids(read) == pair["canonical"] | {"dragoman": document.VERSION}
    assert _exactly(json.loads(encoded.to_bytes())) == _exactly(pair["wire"])
    assert encoded.losses == ()


@pytest.mark.whole
@pytest.mark.parametrize(("dialect", "file"), [one for one in FILES if one.id not in _REFUSED])
def test_our_own_requests_are_valid(dialect: str, file: Path) -> None:
    """Our fixtures are requests that the provider accepts; Responses, those with audio too."""
    fixture, speaker = json.loads(file.read_text(encoding="utf-8")), dragoman.dialect(dialect)
    target = speaker.target
    if dialect == "openai-responses":
        target = target.with_flags({"media.kinds": None})
    if fixture["canonical"]["kind"] == "Request":
        found = speaker.check(fixture["wire"], target=target)
        assert [violation for violation in found if violation.severity == "error"] == []
