"""Model names as attacks: on logs, headers, metrics, URLs, or memory."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from tests.gateway.abuse.stage import Stage, refused, request
from tests.gateway.client_requests import body_for

pytestmark = pytest.mark.whole

NAMES: dict[str, object] = {
    "empty": "", "blank": " ", "very long": "m" * 100_000, "line ends": "m\r\nset-cookie: a=b",
    "NUL": "m\0", "escape codes": "\x1b[2J\x1b]0;x\x07", "lone surrogate": "\ud800",
    "right to left": "m\u202egnp", "path": "../../v1/files", "query": "m?key=x&alt=sse#",
    "colons": ":::", "template": "{model}", "format": "%s%n{0.__class__}", "glob": "*",
    "SQL": "' OR 1=1--",
    "markup": "<script>alert(1)</script>", "number": 5, "list": ["m"], "object": {"$ne": ""},
    "true": True,
    "null": None, "percent": "%2e%2e%2f%00",
}  # fmt: skip


def _post(stage: Stage, front: str, name: object, **options: object) -> object:
    body = body_for(front)
    path = None
    if front == "gemini":
        path = (
            f"/v1beta/models/{quote(str(name).encode('utf-8', 'replace'), safe='')}:generateContent"
        )
    else:
        body["model"] = name
    data = json.dumps(body).encode("utf-8", "surrogatepass")
    return stage.post(front, data, path=path, **options)


@pytest.mark.parametrize("kind", NAMES)
def test_hostile_names_are_rejected(stage: Stage, front: str, kind: str) -> None:
    """The error is that there is no such model; the log has the name as one harmless word."""
    asked = len(stage.upstream.asked)
    answer = _post(stage, front, NAMES[kind])
    refused(front, answer, 400, 404, 405, 414)  # type: ignore[arg-type]
    assert "set-cookie" not in answer.headers  # type: ignore[attr-defined]
    assert len(stage.upstream.asked) == asked
    stage.serves(front)


@pytest.mark.parametrize(
    "name", ["good?x=/../#", "good/../../x", "good%2f..%2f", "good\x1b[2J", "good é"]
)
def test_names_that_match_a_pattern(stage: Stage, front: str, name: str) -> None:
    """A name that a route's pattern accepts stays one path segment, without a query."""
    for back in ("gemini", "openai-chat"):
        stage.upstream.asked.clear()
        _post(stage, front, f"{back}.{name}")
        for asked in stage.upstream.asked:
            first = asked.head.split(b"\r\n")[0].decode("latin-1")
            path = first.split(" ")[1]
            assert len(first.split(" ")) == 3, first
            assert "/.." not in path, first
            assert path.startswith("/v1beta/models/gemini" if back == "gemini" else "/v1/chat"), (
                first
            )
    stage.serves(front)


def test_many_names_take_no_memory(stage: Stage, front: str) -> None:
    """What is kept about clients' names is bounded, and so are the metrics."""
    stage.serves(front)
    for number in range(100):
        _post(stage, front, f"{number}-{'x' * 400}")
        _post(stage, front, f"openai-chat.{number}{'y' * 200}")
    metrics = stage.send(request("/metrics", method="GET")).answers[0].body
    assert len(metrics) < 500_000
    assert metrics.count(b"yyyy") < 5000
    stage.serves(front)
