"""Bodies that cannot be decoded: the error says where, and quotes nothing."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman.errors import WireError

pytestmark = pytest.mark.whole  # hostile input


def _nested(depth: int) -> Any:
    deep: Any = "secret"
    for _ in range(depth):
        deep = [deep]
    return deep


REQUESTS: dict[str, list[tuple[Any, str]]] = {
    "anthropic": [
        ({}, "$.messages"),
        ({"messages": {}}, "$.messages"),
        ({"messages": [], "odd": float("nan")}, "$"),
    ],
    "gemini": [({"contents": "hi"}, "$.contents"), ({"contents": "secret"}, "$.contents")],
    "ollama": [({"messages": 1}, "$.messages"), ({"messages": {"role": "user"}}, "$.messages")],
    "openai-chat": [({"model": "m"}, "$.messages"), ({"messages": {}}, "$.messages")],
    "openai-responses": [
        ({"input": 5}, "$.input"),
        ({"input": {"part": "secret"}}, "$.input"),
        ({"input": _nested(200)}, "$"),
    ],
}
_TEXTS: list[tuple[Any, str]] = [("[]", "$"), (b"[]", "$"), ("{", "$"), (b"{", "$")]
RESPONSES: dict[str, list[tuple[Any, str]]] = {
    "anthropic": [({"type": "message", "role": "assistant"}, "$.content")],
    "gemini": [({"candidates": 1}, "$.candidates")],
    "ollama": [
        (b"[", "$"),
        *((body, "$.message") for body in ({}, {"error": None}, {"message": "x"},
                                           {"message": None})),
    ],
    "openai-chat": [
        ({"error": {}}, "$.choices"),
        ({"choices": {}}, "$.choices"),
        ({"choices": [{"message": {"role": "assistant", "content": "hi", "odd": _nested(200)}}]},
         "$"),
    ],
    "openai-responses": [
        ({}, "$.output"),
        ({"output": None}, "$.output"),
        ({"output": [], "odd": _nested(200)}, "$"),
    ],
}  # fmt: skip


def _refused(error: WireError, dialect: str, path: str) -> None:
    assert (error.dialect, error.path) == (dialect, path)
    assert error.__context__ is None
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    ("dialect", "body", "path"),
    [(dialect, *row) for dialect, rows in REQUESTS.items() for row in (*rows, *_TEXTS)],
)
def test_malformed_request_raises_wire_error(dialect: str, body: Any, path: str) -> None:
    """A request that can't be decoded raises `WireError` with dialect and path."""
    with pytest.raises(WireError) as caught:
        dragoman.dialect(dialect).decode_request(body)
    _refused(caught.value, dialect, path)


@pytest.mark.parametrize(
    ("dialect", "body", "path"),
    [(dialect, *row) for dialect, rows in RESPONSES.items() for row in rows],
)
def test_malformed_response_raises_wire_error(dialect: str, body: Any, path: str) -> None:
    """A response without content, or nested too deeply, raises `WireError`."""
    with pytest.raises(WireError) as caught:
        dragoman.dialect(dialect).decode_response(body)
    _refused(caught.value, dialect, path)
    if path != "$":
        kind = "dict" if dialect == "ollama" else "list"
        assert f"{kind} at {path}" in str(caught.value)
