"""Responses of `/api/chat`: messages, token counts, times, finish reasons, and errors."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from dragoman import errors
from dragoman.errors import DragomanError
from dragoman.model.derived_ids import response_identity
from dragoman.model.events import ChoiceFinish
from dragoman.model.frozen import freeze_mapping
from dragoman.model.messages import Message
from dragoman.model.parts import Origin
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.call_ids import CallIds
from dragoman.wire.cut_calls import begin_choice, finish_beside
from dragoman.wire.encoded import Encoded
from dragoman.wire.error_reporting import Forms, client_message, form_of, reported, status_of
from dragoman.wire.json_values import is_integer, is_list, want
from dragoman.wire.logprobs import as_list, lost, tokens_of
from dragoman.wire.losses import Loss
from dragoman.wire.ollama.content import decode_assistant, encode_assistant, note_written
from dragoman.wire.ollama.dialect import NAME, OllamaReading, OllamaWriting, is_own
from dragoman.wire.ollama.request import FORM
from dragoman.wire.overlay import fields_of, overlay_of, with_overlay
from dragoman.wire.times import encode_time
from dragoman.wire.tolerance import readable_answer, with_original
from dragoman.wire.writing import Writing

# --- token counts and durations

_INPUT_COUNT, _OUTPUT_COUNT = "prompt_eval_count", "eval_count"
METRICS = ("total_duration", "load_duration", _INPUT_COUNT, "prompt_eval_duration", _OUTPUT_COUNT,
           "eval_duration")  # fmt: skip


def decode_usage(wire: Mapping[str, Any], known: set[str]) -> Usage | None:
    """Decode the token counts of a response; None if it has none.

    The server omits the count of a fully cached prompt; likewise we omit zero counts.
    """
    prompt, answer = _count(wire, _INPUT_COUNT), _count(wire, _OUTPUT_COUNT)
    if prompt is None and answer is None:
        return None
    left = {
        key: wire[key]
        for key in METRICS
        if key in wire
        and not (key == _INPUT_COUNT and prompt)
        and not (key == _OUTPUT_COUNT and answer)
    }
    known.update(key for key in METRICS if key in wire)
    extras = freeze_mapping({NAME: left} if left else {}, "the wire")
    return Usage(input=prompt or 0, output=answer or 0, extras=extras)


def encode_usage(usage: Usage) -> dict[str, Any]:
    """Encode token counts and durations, in the order used by the server."""
    counts = {_INPUT_COUNT: usage.total_input, _OUTPUT_COUNT: usage.total_output}
    body = {**fields_of(usage.extras, NAME)}
    body.update((key, count) for key, count in counts.items() if count)
    return {key: body[key] for key in (*METRICS, *body) if key in body}


def _count(wire: Mapping[str, Any], key: str) -> int | None:
    value = wire.get(key)
    return value if is_integer(value) and value >= 0 else None


# --- finish reasons: there is none for tool calls, nor for most other reasons (W104)

_STOP, _LENGTH, _CALLS = FinishReason.STOP, FinishReason.LENGTH, FinishReason.TOOL_CALLS
_REFUSAL = FinishReason.REFUSAL
_REASONS = {"stop": _STOP, "length": _LENGTH}
_CUT = "length"
_WORDS = {_STOP: "stop", _CALLS: "stop", _LENGTH: _CUT, FinishReason.CONTEXT_FULL: _CUT}


def decode_finish(raw: object, *, is_done: bool, has_calls: bool) -> FinishReason | None:
    """Decode a `done_reason`. Older servers send none; `load` means no content was generated."""
    if not isinstance(raw, str) or not raw:
        raw = "stop" if is_done else ""
    found = _REASONS.get(raw, FinishReason.OTHER) if raw else None
    return _CALLS if found is _STOP and has_calls else found


def encode_finish(
    finish: FinishReason | None,
    raw: str | None,
    writing: Writing,
    path: str,
    *,
    is_ours: bool,
) -> str | None:
    """Encode a `done_reason`: the original value if it still means the same."""
    if is_ours and raw is not None:
        read = decode_finish(raw, is_done=True, has_calls=finish is _CALLS)
        if read is finish:
            return raw
    if finish is None:
        return None if is_ours else "stop"
    if finish not in _WORDS:
        writing.lose(f"{path}.finish", "this finish reason has no equivalent")
    return _WORDS.get(finish, _CUT if finish.is_cut_off and finish is not _REFUSAL else "stop")


# --- times as formatted by Go: RFC 3339 with nanoseconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decode_time(text: object) -> float | None:
    """Seconds since 1970, or None if it is not a valid time."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
        return (found - _EPOCH).total_seconds()
    except (ValueError, TypeError, OverflowError):  # the latter two: no time zone, or out of range
        return None


# --- whole responses

EMPTY_MESSAGE: Mapping[str, Any] = {"role": "assistant", "content": ""}
"""A message without content."""
NO_IDS = Loss("id", "response ids are not supported")
_ASSISTANT = Role.ASSISTANT


def decode_response(wire: Mapping[str, Any]) -> Response:
    """Decode a response body."""
    message = want(wire, "message", dict, NAME, "$")
    known, written = {"message"}, dict[str, Any]()
    model, created = wire.get("model"), decode_time(wire.get("created_at"))
    if isinstance(model, str):
        known.add("model")
    else:
        model, written["model"] = None, ""
    # A float is less precise than the nanoseconds on the wire.
    note_written("created_at", encode_time(created), wire, known, written)
    usage = decode_usage(wire, known)
    calls = CallIds(response_identity(None, created, model))
    choice = _decode_choice(wire, message, OllamaReading(None, calls), known, written)
    assistant = replace(
        choice.message,
        origin=Origin(dialect=NAME, model=model),
        usage=usage and usage.counts,
        finish=choice.finish,
    )
    return Response(
        choices=(replace(choice, message=assistant),),
        usage=usage,
        model=model,
        created_at=created,
        extras=overlay_of(wire, known, NAME, written),
    )


def _decode_choice(
    wire: Mapping[str, Any],
    message: dict[str, Any],
    reading: OllamaReading,
    known: set[str],
    written: dict[str, Any],
) -> Choice:
    if type(message.get("content")) in FORM.kinds:
        decoded = decode_assistant(message, reading)
    else:
        made, guesses = readable_answer(message, FORM)
        decoded = with_original(decode_assistant(made, reading), NAME, guesses)
    is_done, raw, logprobs = wire.get("done"), wire.get("done_reason"), wire.get("logprobs")
    finish = decode_finish(raw, is_done=is_done is True, has_calls=bool(decoded.tool_calls))
    if is_done is True:
        known.add("done")
    else:
        written["done"] = True
    raw = raw if isinstance(raw, str) and raw else None
    if raw is not None:
        known.add("done_reason")
    elif finish is not None:
        written["done_reason"] = "stop"
    if is_list(logprobs):
        known.add("logprobs")
    return Choice(0, decoded, finish, raw, logprobs if is_list(logprobs) else None)


def encode_response(response: Response) -> Encoded:
    """Encode a response."""
    choice = response.choices[0] if response.choices else None
    writing = OllamaWriting.of_response()
    message = dict(EMPTY_MESSAGE)
    if choice is not None:
        begin_choice(choice, writing)
        message = _encode_message(choice.message, writing)
        if writing.has_cut_calls:
            choice = choice.replace_unchecked(finish=finish_beside(choice.finish, writing))
    body: dict[str, Any] = {
        "model": response.model or "",
        "created_at": encode_time(response.created_at),
        "message": message,
        "done": True,
    }
    if choice is not None:
        body |= encode_end(choice, writing, is_ours=is_own(choice.message.origin))
    if response.usage is not None:
        body |= encode_usage(response.usage)
    for index in range(1, len(response.choices)):
        writing.lose(f"choices[{index}]", "only one choice is supported")
    if response.id is not None:
        writing.losses.append(NO_IDS)
    return Encoded(with_overlay(body, response.extras, NAME), losses=tuple(writing.losses),
                   repairs=tuple(writing.repairs))  # fmt: skip


def _encode_message(message: Message, writing: OllamaWriting) -> dict[str, Any]:
    if message.role is not _ASSISTANT:
        writing.lose("choices[0].message.role", "a response must be an assistant message")
    body = encode_assistant(message, writing)
    return dict(EMPTY_MESSAGE) if body is None else body


def encode_end(choice: Choice | ChoiceFinish, writing: Writing, *, is_ours: bool) -> dict[str, Any]:
    """The fields that end a choice, from the choice or its `ChoiceFinish` event."""
    path = "choices[0]"
    body: dict[str, Any] = {}
    reason = encode_finish(choice.finish, choice.finish_raw, writing, path, is_ours=is_ours)
    if reason is not None:
        body["done_reason"] = _CUT if writing.has_cut_calls else reason
    if choice.logprobs is not None:
        if is_ours:
            body["logprobs"] = choice.logprobs
        else:
            found = tokens_of(choice.logprobs)
            for loss in lost(found, f"{path}.logprobs"):
                writing.lose(loss.path, loss.reason)
            if found is not None:
                body["logprobs"] = as_list(found.tokens)
    return body


# --- errors: a message, in a body with a status or in a line of a stream

# Status, and message prefix where the status alone does not identify the error class (bodies
# have no error codes). The prefix is the server's own wording if there is one.
_FORMS: Forms[tuple[int, str]] = {
    errors.AuthenticationError: (401, "unauthorized"),
    errors.PermissionDenied: (403, ""),
    errors.RateLimited: (429, ""),
    errors.QuotaExceeded: (402, ""),
    errors.Overloaded: (503, "server busy, please try again"),
    errors.ContextTooLong: (400, "the input length exceeds the context length"),
    errors.Refused: (400, "refused by the content policy"),
    errors.InvalidRequest: (400, ""),
    errors.ModelNotFound: (404, "model not found"),
    errors.ServerError: (500, ""),
}


def encode_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """The status and body for an error; mid-stream, the body is sent as a line."""
    failure = reported(error)
    usual, words = form_of(failure, _FORMS)
    text = client_message(failure)
    text = f"{words}: {text}" if words else text
    return status_of(failure, usual), {"error": text}
