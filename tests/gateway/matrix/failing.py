"""Errors in each provider's own format, and answers that break off."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.gateway.matrix.behind import Answer

_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
_GOOGLE = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    529: "UNAVAILABLE",
}
_OPENAI = {
    400: "invalid_request_error",
    401: "invalid_request_error",
    404: "invalid_request_error",
    429: "requests",
    500: "server_error",
    529: "server_error",
}
_TEXT = "the provider says no"


def failure(back: str, status: int) -> Answer:
    """A provider's error."""
    body: object
    match back:
        case "anthropic":
            told = {"type": _ANTHROPIC[status], "message": _TEXT}
            body = {"type": "error", "error": told, "request_id": "req_1"}
        case "gemini":
            body = {"error": {"code": status, "message": _TEXT, "status": _GOOGLE[status]}}
        case "ollama":
            body = {"error": _TEXT}
        case "openai-chat":  # OpenRouter's format
            body = {"error": {"code": status, "message": _TEXT}}
        case _:
            told = {"message": _TEXT, "type": _OPENAI[status]}
            body = {"error": {**told, "param": None, "code": None}}
    headers = {"retry-after": "7"} if status == 429 else {}
    return Answer(json.dumps(body).encode(), status, headers)


def cut_answers(answer: Answer, *, stream: bool) -> Iterator[Answer]:
    """The same answer, cut off at its first byte, and at several points before its end."""
    size = len(answer.data)
    if not stream:
        yield answer._replace(cut=size // 2)
        return
    said = sum(map(len, answer.frames[: len(answer.frames) // 2]))  # before the finish reason
    for place in (1, said // 3, said - 1, said):
        yield answer._replace(cut=place, frames=())
