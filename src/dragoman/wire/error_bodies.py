"""Parses error bodies and headers, in any of the shapes that providers use."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import loads

_MAX_TEXT = 4000
_MAX_DETAILS = 20
# Words, or Mistral's numbers. A word may end in at most two digits: keys and ids have more.
_CODE = re.compile(r"(?=.{1,64}\Z)(?:[A-Za-z]+[0-9]{0,2}(?:[_.-][A-Za-z]+[0-9]{0,2})*|[0-9]{1,6})")
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_STEP = re.compile(r"[a-z_]{1,40}|[0-9]{1,6}")
_PREFIX = re.compile(r"\s*'?([a-z_]{1,40}(?:\.(?:[a-z_]{1,40}|[0-9]{1,6})){0,12})'?: ")
_REQUEST_ID_HEADERS = ("request-id", "x-request-id", "apim-request-id", "x-groq-id")
# A path must begin with one of these: anything else may be user content.
_ROOTS = frozenset(
    """
    audio cache_control container context_management conversation frequency_penalty function_call
    functions include input instructions logit_bias logprobs max_completion_tokens max_output_tokens
    max_tokens mcp_servers messages metadata modalities model n output_config output_format
    parallel_tool_calls prediction presence_penalty previous_response_id prompt prompt_cache_key
    reasoning reasoning_effort response_format safety_identifier seed service_tier stop
    stop_sequences store stream stream_options system temperature thinking tool_choice tools
    top_k top_logprobs top_p user verbosity web_search_options
    """.split()  # noqa: SIM905 - 50 lines of one word each would be harder to read
)
# Keys below these fields are chosen by users.
_USER_KEYED = frozenset(
    {"properties", "input", "arguments", "metadata", "definitions", "logit_bias", "defs"}
)


class Fault:
    """One error as a provider described it. `text` is its message, which may quote content."""

    __slots__ = (
        "code", "generation", "is_quota_exhausted", "param", "request_id", "status", "text", "wait",
        "words",
    )  # fmt: skip

    def __init__(self, status: object, body: object, headers: Mapping[str, str] = EMPTY) -> None:
        outer, raw = _opened(body)
        inner = _inner(outer)
        details = _details(inner)
        found = list(_codes(inner, outer, details))
        self.status = _status(status, inner, outer)
        self.code = found[0] if found else None
        self.words = tuple([code.lower() for code in found])
        self.text = _text(inner, outer) or raw
        self.param = _param(inner, self.text)
        self.request_id = _request_id(inner, outer, headers, details)
        self.generation = _generation(inner)
        """Model output that the provider could not use (W112); only for the caller."""
        self.wait = _wait(details.get("RetryInfo", EMPTY))
        self.is_quota_exhausted = _is_quota_exhausted(details.get("QuotaFailure", EMPTY))
        """Whether a daily quota is exhausted or the quota is zero: waiting briefly doesn't help."""


def is_error_body(wire: Mapping[str, Any], answer_field: str) -> bool:
    """Whether a body is an error and nothing else; some servers send errors with status 200.

    A failed response of the Responses API is still a response, with a `status`; an `error` of null
    doesn't count. `answer_field` is the field in which the dialect has its content.
    """
    if not wire.get("error") and "error" not in (wire.get("type"), wire.get("object")):
        return False
    answer = wire.get(answer_field)
    is_answer = isinstance(answer, (list, dict)) and bool(answer)
    has_failed = wire.get("object") == "response" or type(wire.get("status")) is str
    return not is_answer and not (has_failed and answer_field == "output")


def error_in_list(body: object) -> dict[str, Any] | None:
    """The error in a body that is a JSON list around one; None for any other body."""
    if not isinstance(body, (bytes, bytearray, memoryview, str)):
        return None
    try:
        found = loads(body)
    except InvalidInputError:
        return None
    first = found[0] if isinstance(found, list) and found else None
    return first if isinstance(first, dict) and first.get("error") else None


def lowered(headers: object) -> Mapping[str, str]:
    """The headers with text values, their names in lower case."""
    if not isinstance(headers, Mapping):
        return EMPTY
    pairs = headers.items()
    return {k.lower(): v for k, v in pairs if isinstance(k, str) and isinstance(v, str)}


def _opened(body: object) -> tuple[Mapping[str, Any], str]:
    """The error object; or an empty one and the raw text, if the body is not a JSON object."""
    raw = ""
    if isinstance(body, (bytes, bytearray, memoryview, str)):
        raw = body if isinstance(body, str) else bytes(body).decode("utf-8", "replace")
        try:
            body = loads(body)
        except InvalidInputError:
            return EMPTY, raw[:_MAX_TEXT]
    if isinstance(body, (list, tuple)) and body:
        body = body[0]  # Gemini's compatible endpoint
    return (body, "") if isinstance(body, Mapping) else (EMPTY, raw[:_MAX_TEXT])


def _inner(outer: Mapping[str, Any]) -> Mapping[str, Any]:
    error = outer.get("error")
    if isinstance(error, Mapping):
        return error
    return {"message": error} if isinstance(error, str) else outer


def _details(inner: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Google's error details, by the last word of their type: `ErrorInfo`, `RetryInfo` etc."""
    listed = inner.get("details")
    found: dict[str, Mapping[str, Any]] = {}
    for detail in listed[:_MAX_DETAILS] if isinstance(listed, list) else ():
        kind = detail.get("@type") if isinstance(detail, Mapping) else None
        if isinstance(kind, str):
            found.setdefault(kind.rpartition(".")[2], detail)
    return found


def _wait(retry: Mapping[str, Any]) -> str:
    delay = retry.get("retryDelay")
    return delay if isinstance(delay, str) else ""


def _is_quota_exhausted(failure: Mapping[str, Any]) -> bool:
    violations = failure.get("violations")
    for violation in violations[:_MAX_DETAILS] if isinstance(violations, list) else ():
        if isinstance(violation, Mapping):
            quota = violation.get("quotaId")
            if isinstance(quota, str) and "PerDay" in quota:
                return True
            if violation.get("quotaValue") == "0":
                return True
    return False


def _codes(
    inner: Mapping[str, Any], outer: Mapping[str, Any], details: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """All error codes in the body, the most specific first."""
    deeper = inner.get("innererror")
    places = (
        inner.get("code"),
        inner.get("type"),
        deeper.get("code") if isinstance(deeper, Mapping) else None,
        details.get("ErrorInfo", EMPTY).get("reason"),
        inner.get("status"),
        outer.get("code"),
    )
    for code in places:
        if isinstance(code, str) and code != "error" and _CODE.fullmatch(code):
            yield code


def _status(status: object, inner: Mapping[str, Any], outer: Mapping[str, Any]) -> int | None:
    """The HTTP status; the one in the body for a mid-stream error or one sent with status 200."""
    names = ("status", "status_code", "code", "http_code", "raw_status_code")
    for candidate in (status, *map(inner.get, names), *map(outer.get, names)):
        if type(candidate) is int and 400 <= candidate < 600:  # noqa: PLR2004 - what HTTP calls errors
            return candidate
    return None


def _generation(inner: Mapping[str, Any]) -> str | None:
    written = inner.get("failed_generation")
    return written if isinstance(written, str) else None


def _text(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> str:
    metadata = inner.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None  # OpenRouter
    texts = (inner.get("message"), outer.get("message"), inner.get("detail"), raw)
    found = [text[:_MAX_TEXT] for text in texts if isinstance(text, str)]
    return "\n".join(dict.fromkeys(found or _validation_texts(inner)))


def _invalid_fields(inner: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """FastAPI's list of invalid fields; Mistral sends it as the message."""
    message = inner.get("message")
    listed = (message if isinstance(message, Mapping) else inner).get("detail")
    fields = listed[:_MAX_DETAILS] if isinstance(listed, list) else ()
    return [field for field in fields if isinstance(field, Mapping)]


def _validation_texts(inner: Mapping[str, Any]) -> Iterator[str]:
    for field in _invalid_fields(inner):
        said, where = field.get("msg"), field.get("loc")
        if isinstance(said, str):
            steps = where[1:13] if isinstance(where, list) else ()
            path = ".".join(str(step) for step in steps if isinstance(step, str) or _is_place(step))
            yield f"{path}: {said}"[:_MAX_TEXT] if path else said[:_MAX_TEXT]


def _param(inner: Mapping[str, Any], text: str) -> str | None:
    """The path of the field that the error is about."""
    named = inner.get("param")
    if isinstance(named, str):
        return safe_path(named)
    if prefix := _PREFIX.match(text):
        return safe_path(prefix[1])
    invalid = _invalid_fields(inner)
    where = invalid[0].get("loc") if invalid else None
    if isinstance(where, list):  # FastAPI: ["body", "messages", 0]
        steps = [step for step in where[1:13] if isinstance(step, str) or _is_place(step)]
        return safe_path(".".join(map(str, steps)))
    return None


def _is_place(step: Any) -> bool:
    return type(step) is int and 0 <= step < _MAX_TEXT


def safe_path(path: str) -> str | None:
    """The part of a path that names fields of the dialect, not user-chosen keys; None if none.

    >>> safe_path("tools[0].function.parameters.properties.diagnosis")
    'tools[0].function.parameters.properties'
    """
    steps = path[:200].replace("[", ".").replace("]", "").split(".")
    if steps[0] not in _ROOTS:
        return None
    kept: list[str] = []
    for step in steps:
        if not _STEP.fullmatch(step):
            break
        kept.append(f"[{step}]" if step.isdigit() else f".{step}")
        if step in _USER_KEYED:
            break
    return "".join(kept).removeprefix(".")


def _request_id(
    inner: Mapping[str, Any],
    outer: Mapping[str, Any],
    headers: Mapping[str, str],
    details: Mapping[str, Mapping[str, Any]],
) -> str | None:
    named = map(headers.get, _REQUEST_ID_HEADERS)
    found = details.get("RequestInfo", EMPTY).get("requestId")
    for candidate in (outer.get("request_id"), inner.get("request_id"), found, *named):
        if isinstance(candidate, str) and _REQUEST_ID.fullmatch(candidate):
            return candidate
    return None


# --- how long to wait before a retry, from headers or the error text

_MAX_WAIT_TEXT = 64
_EPOCH = 1e9  # a larger number is no delay but a Unix timestamp
_EPOCH_MS = 1e12
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_WAIT_STEP = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)")
_DURATION = re.compile(rf"(?:{_WAIT_STEP.pattern}){{1,5}}")
_IN_TEXT = re.compile(rf"(?:try again|retry) in ((?:{_WAIT_STEP.pattern}){{1,5}})", re.IGNORECASE)
_SECONDS_IN_TEXT = re.compile(r"(?:try again|retry) in (\d{1,6}(?:\.\d+)?) second", re.IGNORECASE)


def retry_after(
    headers: Mapping[str, str], text: str = "", *, now: float | None = None
) -> float | None:
    """Seconds to wait before a retry; None if unknown. Header names must be in lower case.

    >>> retry_after({"retry-after": "20"})
    20.0
    >>> retry_after({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m30s"})
    90.0
    """
    moment = time.time() if now is None else now
    for wait in _waits(headers, text, moment):
        if wait is not None and isfinite(wait):
            return max(wait, 0.0)
    return None


def _waits(headers: Mapping[str, str], text: str, now: float) -> Iterator[float | None]:
    milliseconds = _number(headers.get("retry-after-ms", ""))
    yield None if milliseconds is None else milliseconds / 1000
    yield _seconds_until(headers.get("retry-after", ""), now)
    yield _exhausted(headers, now)
    yield _seconds_until(headers.get("x-ratelimit-reset", ""), now)
    yield _in_text(text)


def _exhausted(headers: Mapping[str, str], now: float) -> float | None:
    """The longest wait among the exhausted rate limits."""
    waits: list[float] = []
    for name, left in headers.items():
        if "ratelimit" in name and "remaining" in name and _number(left) == 0:
            wait = _seconds_until(headers.get(_reset_of(name), ""), now)
            if wait is not None:
                waits.append(wait)
    return max(waits, default=None)


def _reset_of(name: str) -> str:
    # OpenAI has the word in the middle (`-remaining-tokens`), Anthropic at the end.
    return name.replace("remaining", "reset")


def _seconds_until(value: str, now: float) -> float | None:
    """The wait in seconds, from a number, a duration, a date or a Unix timestamp."""
    value = value.strip()
    if not value or len(value) > _MAX_WAIT_TEXT:
        return None
    number = _number(value)
    if number is None:
        return _duration(value) if _DURATION.fullmatch(value) else _date(value, now)
    if number > _EPOCH_MS:
        return number / 1000 - now
    return number - now if number > _EPOCH else number


def _number(value: str) -> float | None:
    try:
        number = float(value) if len(value) <= _MAX_WAIT_TEXT else None
    except ValueError:
        return None
    return number if number is not None and isfinite(number) else None


def _duration(value: str) -> float:
    """Parse OpenAI's durations: `1s`, `6m0s`, `20ms`."""
    return sum(float(amount) * _UNITS[unit] for amount, unit in _WAIT_STEP.findall(value))


def _date(value: str, now: float) -> float | None:
    """The wait until an HTTP date, or an RFC 3339 date as Anthropic sends."""
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(value)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return aware.timestamp() - now
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    return None


def _in_text(text: str) -> float | None:
    if found := _IN_TEXT.search(text):
        return _duration(found[1])
    found = _SECONDS_IN_TEXT.search(text)
    return float(found[1]) if found else None
