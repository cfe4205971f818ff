"""Recorded errors: which class each should get, and which refusals `check` explains.

`python -m tests.wire.refused` prints both tables.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import dragoman
from dragoman.errors import ProviderError
from dragoman.wire.violations import Violation
from tests.corpus import Corpus, CorpusNotFoundError, Recording, Tier
from tests.wire.hosts import body_of, target_of

SPEAKERS = {
    "openai_chat": "openai-chat",
    "groq": "openai-chat",
    "mistral": "openai-chat",
    "other_openai_compatible": "openai-chat",
    "anthropic": "anthropic",
    "openai_responses": "openai-responses",
}
JUDGED = {**SPEAKERS, "gemini": "gemini", "ollama": "ollama"}
_PATH = re.compile(
    r"/chat/completions$|/v1/messages(/count_tokens)?$|[rR]awPredict$|/responses$"
    r"|:(streamG|g)enerateContent$|^/api/chat$"
)
_REFUSED = (400, 422)

_BY_STATUS = {
    401: "AuthenticationError",
    402: "QuotaExceeded",
    403: "PermissionDenied",
    404: "ModelNotFound",
    429: "RateLimited",
    500: "ServerError",
}
# What distinguishes the 400s, classified by hand.
_BY_CAUSE = (
    (r"exceeds the available context size|model's context length is only", "ContextTooLong"),
    (r"Invalid model:|not a valid model ID|supported API model names", "ModelNotFound"),
    (r"The requested model .* does not exist|Model not found:", "ModelNotFound"),
    (r"Incorrect API key provided", "AuthenticationError"),
    (r"insufficient_quota", "QuotaExceeded"),
    (r"content_filter", "Refused"),
    (r"tool_use_failed", "ServerError"),
)
DOUBTFUL = {
    r"tool_use_failed": "a 400, but the model's fault and worth another try (W112): ServerError",
    r"tools param requires --jinja|Cannot use both|is not supported - hint": (
        "llama.cpp says 500 to what is the request's fault: ServerError, retryable"
    ),
    r"cannot make GET request": "llama.cpp says 500 where an image can't be fetched",
    r"\"Forbidden\"": "a wrong key, but the host says 403 and no more: PermissionDenied",
    r"Not found the model .* or Permission denied": "either, the host says; 404: ModelNotFound",
    r"has been deprecated": "the model was there once: ModelNotFound",
}

# Why a refusal can't be predicted from the body alone.
REASONS = {
    r"does not support|not enabled for this model": "nobody knows what this host's model takes",
    r"service_tier": "depends on the account",
    r"tool_use_failed": "the model wrote a bad call; nothing is wrong with the request",
    r"downloading|be accessed|not accessible|Cannot fetch": "the address would have to be fetched",
    r"unsupported image|load image|[Ii]nvalid image": "the media would have to be decoded",
    r"context size|context length": "depends on the model's window and its tokenizer",
    r"nvalid model|valid model ID|supported API model names|requested model|Model not found": (
        "depends on the list of models"
    ),
    r"Previous response with id": "depends on what the provider has kept",
    r"Incorrect API key|API key not valid|API_KEY_INVALID": "the key is not in the body",
    r"No tool output found for tool call": "this host wants each call answered before more is said",
    r"unsupported_file": "the address would have to be fetched, to see that it is sound",
    r"base64 encoded image": "nobody knows that this host takes less than OpenAI",
    r"too complex": "a limit that is not published",
}


# Accepted recordings that break a rule nevertheless, each with the fault in the recording.
FAULTY = {
    # the recorder put a placeholder for the id in one of two places
    "anthropic/rig__opus_4_8-messages_preserve_system_role_after_server_tool_result__01.json",
    # its result answers another id than the call before it has; presumably from an earlier run of
    # the test that recorded it, but Anthropic did answer 200 (claude-3-opus, 2024)
    "anthropic/dd-trace-py__cassettes-anthropic_completion_tools_call_with_tool_result_stream_helper__00.json",
}


def failures(corpus: Corpus, tier: Tier | None = None) -> Iterator[Recording]:
    """The recordings that end in an error, including those with status 200."""
    for recording in corpus.select(provider_api=tuple(SPEAKERS), tier=tier):
        body = recording.response_body
        if recording.row.status >= 400 or (isinstance(body, dict) and body.get("error")):
            yield recording


def expected(recording: Recording) -> str:
    """The expected class of an error, by this test's own rules."""
    if recording.row.status in _BY_STATUS:
        return _BY_STATUS[recording.row.status]
    text = json.dumps(recording.response_body)
    return next((kind for cause, kind in _BY_CAUSE if re.search(cause, text)), "InvalidRequest")


def decoded(recording: Recording) -> ProviderError:
    """The decoded error."""
    speaker: Any = dragoman.dialect(SPEAKERS[recording.row.provider_api])
    error: ProviderError = speaker.decode_error(
        recording.row.status, recording.response_body, recording.response_headers
    )
    return error


def matched(recording: Recording, table: dict[str, str]) -> str | None:
    """The entry of a table for an error body."""
    text = json.dumps(recording.response_body)
    return next((says for words, says in table.items() if re.search(words, text)), None)


def requests(corpus: Corpus, *, accepted: bool, tier: Tier | None = None) -> Iterator[Recording]:
    """The recorded requests that were accepted, or refused with 400 or 422."""
    for recording in corpus.select(provider_api=tuple(JUDGED), tier=tier):
        status = recording.row.status
        is_wanted = status < 300 if accepted else status in _REFUSED
        path = recording.request_path.partition("?")[0]
        if is_wanted and recording.request_body is not None and _PATH.search(path):
            yield recording


def checked(recording: Recording) -> list[Violation]:
    """The findings of `check` for a recorded request, with provider and model."""
    dialect = JUDGED[recording.row.provider_api]
    speaker: Any = dragoman.dialect(dialect)
    target = target_of(recording, dialect)
    found: list[Violation] = speaker.check(
        body_of(recording, target),
        path=recording.request_path,
        headers=recording.request_headers or None,
        target=target,
    )
    return found


def errors_in(recording: Recording) -> list[Violation]:
    """The findings of severity "error"."""
    return [violation for violation in checked(recording) if violation.severity == "error"]


def explaining(recording: Recording) -> list[Violation]:
    """The findings that may explain a refusal: those in the field that it names."""
    api = recording.row.provider_api
    param = decoded(recording).param if api in SPEAKERS else None
    root = re.split(r"[.\[]", param)[0] if param else ""
    return [violation for violation in errors_in(recording) if violation.path.startswith(root)]


def _lines(corpus: Corpus) -> Iterator[str]:
    yield "recorded errors: class, status, what our text says"
    rows = Counter(f"{type(e).__name__:20} {e}" for e in map(decoded, failures(corpus)))
    yield from (f"  {count:3} x {row}" for row, count in sorted(rows.items()))
    yield "doubtful"
    doubts = Counter(filter(None, (matched(one, DOUBTFUL) for one in failures(corpus))))
    yield from (f"  {count:3} x {why}" for why, count in doubts.items())
    yield "refused with 400 or 422: the rules that explain it, or why none can"
    found = total = 0
    for recording in requests(corpus, accepted=False):
        rules = ", ".join(sorted({violation.rule for violation in explaining(recording)}))
        why = rules or f"- {matched(recording, REASONS)}"
        found, total = found + bool(rules), total + 1
        yield f"  {recording.row.file[:80]:80} {why}"
    yield f"  found: {found} of {total}"
    yield "accepted, with findings at error level"
    for recording in requests(corpus, accepted=True):
        rules = ", ".join(sorted({violation.rule for violation in errors_in(recording)}))
        if rules:
            yield f"  {recording.row.file[:80]:80} {rules}"


def main() -> None:
    """Print the tables."""
    try:
        corpus = Corpus.open()
    except CorpusNotFoundError as reason:
        sys.stdout.write(f"recorded traffic: skipped, {reason}\n")
        return
    sys.stdout.writelines(f"{line}\n" for line in _lines(corpus))


if __name__ == "__main__":
    main()
