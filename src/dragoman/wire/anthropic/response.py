"""Responses: messages, token counts, finish reasons, and errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from dragoman import errors
from dragoman.errors import DragomanError
from dragoman.model import value as model
from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import response_identity
from dragoman.model.events import ResponseStart, StreamError
from dragoman.model.frozen import EMPTY
from dragoman.model.ids import new_id
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Origin, Refusal
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.anthropic.dialect import NAME, TARGET, Block, is_own
from dragoman.wire.anthropic.tables import decode_part, encode_parts
from dragoman.wire.call_ids import CallIds
from dragoman.wire.cut_calls import begin_choice, finish_beside
from dragoman.wire.encoded import Encoded
from dragoman.wire.error_reporting import Forms, client_message, form_of, reported, status_of
from dragoman.wire.json_values import want
from dragoman.wire.overlay import overlay_of, with_guesses, with_overlay
from dragoman.wire.reading import Reading
from dragoman.wire.rows import OBJECT, SILENT, Row, Shape, Value
from dragoman.wire.stream_decoding import stream_error
from dragoman.wire.usage_details import UsageDetails
from dragoman.wire.writing import Writing

# --- token counts and finish reasons

_FINISH: dict[str, FinishReason] = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "tool_use": FinishReason.TOOL_CALLS,
    "pause_turn": FinishReason.PAUSE,
    "compaction": FinishReason.PAUSE,  # like pause_turn: send it back to continue
    "refusal": FinishReason.REFUSAL,
    "model_context_window_exceeded": FinishReason.CONTEXT_FULL,
    # Values of other servers: Z.ai and MiniMax; LiteLLM.
    "sensitive": FinishReason.CONTENT_FILTER,
    "content_filter": FinishReason.CONTENT_FILTER,
    "network_error": FinishReason.ERROR,
}
_OTHER = FinishReason.OTHER

_STOP_REASON: dict[FinishReason, str] = {
    FinishReason.LENGTH: "max_tokens",
    FinishReason.TOOL_CALLS: "tool_use",
    FinishReason.PAUSE: "pause_turn",
    FinishReason.REFUSAL: "refusal",
    FinishReason.CONTENT_FILTER: "refusal",
    FinishReason.CONTEXT_FULL: "model_context_window_exceeded",
}


def decode_finish(stop_reason: Any) -> FinishReason | None:
    """Decode a `stop_reason` (W70)."""
    return _FINISH.get(stop_reason, _OTHER) if type(stop_reason) is str else None


def encode_finish(finish: FinishReason) -> str:
    """The nearest `stop_reason`."""
    # A client must not run the calls of a response that was cut off, however that was (I7).
    return _STOP_REASON.get(finish, "max_tokens" if finish.is_cut_off else "end_turn")


DETAILS = UsageDetails(
    NAME,
    cache_write_5m="cache_creation.ephemeral_5m_input_tokens",
    cache_write_1h="cache_creation.ephemeral_1h_input_tokens",
    web_searches="server_tool_use.web_search_requests",
    web_fetches="server_tool_use.web_fetch_requests",
)
_BUCKETS = {
    "compaction_input": "input_tokens",
    "compaction_output": "output_tokens",
    "compaction_cache_read": "cache_read_input_tokens",
    "compaction_cache_write": "cache_creation_input_tokens",
}
_OTHER_MODELS = "other_models"
DETAILS.derived = frozenset({*_BUCKETS, _OTHER_MODELS})


_COUNT = Value("type(v) is int", lambda v: max(v, 0), lambda count: count, "an integer")
_POSITIVE = Value("type(v) is int and v >= 0", about="an integer")
_WRITTEN = _COUNT._replace(write=lambda usage: usage.total_output)


def _made_usage(output: int, thinking: int = 0, **counts: Any) -> Usage:
    """Output includes thinking (W68); a part that is larger than the whole is not believed."""
    thinking = thinking if thinking <= output else 0
    return Usage(output=output - thinking, thinking=thinking, **counts)


USAGE = Shape(
    NAME, None, Usage,
    Row("input_tokens", "input", _COUNT, is_required=True),
    Row("output_tokens", "output", _WRITTEN, is_required=True, takes_owner=True),
    Row("cache_creation_input_tokens", "cache_write", _POSITIVE),
    Row("cache_read_input_tokens", "cache_read", _POSITIVE),
    Row("output_tokens_details.thinking_tokens", "thinking", _COUNT),
    make=_made_usage,
)  # fmt: skip
"""Token counts: cached input is separate."""


def decode_usage(wire: Any) -> Usage | None:
    """Decode token counts; None if a required one is missing."""
    is_odd = not isinstance(wire, dict) or type(wire.get("input_tokens")) is not int
    if is_odd or type(wire.get("output_tokens")) is not int:
        return None  # before it is frozen, which may fail: the end of a stream may have another
    usage = USAGE.read(wire, SILENT)
    if not isinstance(usage, Usage) or usage.extras is EMPTY:
        return usage if isinstance(usage, Usage) else None
    usage = DETAILS.taken(usage)
    separate = _separate_tokens(wire.get("iterations"))
    return usage.replace(details={**usage.details, **separate}) if separate else usage


def encode_usage(usage: Usage) -> Block:
    """Encode token counts."""
    return with_overlay(USAGE.body(usage, SILENT), DETAILS.put(usage).extras, NAME)


# Iterations that the counts of the response include.
_INCLUDED = frozenset({"message", "fallback_message"})


def _separate_tokens(iterations: Any) -> dict[str, int]:
    """Tokens billed besides the counts of the response: compaction, and calls of other models."""
    found: Counter[str] = Counter()
    for each in iterations if isinstance(iterations, list) else ():
        kind = each.get("type") if isinstance(each, dict) else "message"
        if isinstance(kind, str) and kind in _INCLUDED:
            continue
        for name, field in _BUCKETS.items():
            count = each.get(field)
            count = max(count, 0) if type(count) is int else 0
            found[name if kind == "compaction" else _OTHER_MODELS] += count
    return {name: count for name, count in found.items() if count}


# --- whole responses

_ZERO_USAGE = encode_usage(Usage())
_FAILURES = (FinishReason.ERROR, FinishReason.CANCELLED)  # without an equivalent `stop_reason`
_ASSISTANT = Role.ASSISTANT
_REFUSAL = FinishReason.REFUSAL
_CALLS = FinishReason.TOOL_CALLS
_STOP = FinishReason.STOP


class Head(model.Value, frozen=True, kw_only=True):
    """A message without its content."""

    id: str | None = None
    model: str | None = None
    finish_raw: str | None = None
    refusal: str | None = None
    """Its text, which is outside the content (I15)."""
    usage: Usage | None = None
    extras: Mapping[str, Any] = EMPTY

    @property
    def finish(self) -> FinishReason | None:
        """Why the model stopped."""
        return decode_finish(self.finish_raw)

    @property
    def origin(self) -> Origin:
        """The origin of the message."""
        return Origin(dialect=NAME, model=self.model, response_id=self.id)


def _read_refusal(details: Block) -> str | None:
    explanation = details.get("explanation")
    is_refusal = details.get("type", "refusal") == "refusal" and type(explanation) is str
    return (explanation or None) if is_refusal else None


def _write_refusal(refusal: str) -> Block:
    return {"type": "refusal", "explanation": refusal}


_REFUSED = Value(OBJECT.test, _read_refusal, _write_refusal, "a refusal")
_COUNTS = Value(OBJECT.test, decode_usage, encode_usage, "token counts", exact=True)
HEAD = Shape(
    NAME, None, Head,
    Row("id", "id"), Row("model", "model"), Row("stop_reason", "finish_raw"),
    Row("stop_details", "refusal", _REFUSED), Row("usage", "usage", _COUNTS),
    usual={"type": "message", "role": "assistant"},
)  # fmt: skip


def decode_head(wire: Block) -> Head:
    """Decode a message without its content; what it lacks of what is always sent is noted."""
    if "content" in wire:
        wire = {key: value for key, value in wire.items() if key != "content"}
    head: Any = HEAD.read(wire, SILENT)
    absent: list[Any] = [[[key], ours] for key, ours in HEAD.usual.items() if key not in wire]
    if head.refusal is not None and "type" not in wire["stop_details"]:
        absent.append([["stop_details", "type"], "refusal"])
    return head.replace(extras=with_guesses(head.extras, NAME, absent)) if absent else head  # type: ignore[no-any-return]


def decode_response(wire: Block) -> Response:
    """Decode a response body."""
    content = want(wire, "content", list, NAME, "$")
    head = decode_head(wire)
    calls = CallIds(response_identity(head.id, None, head.model))
    reading = Reading(None, calls)  # parts inherit the message's origin
    parts = tuple([decode_part(block, reading) for block in content])
    message = make_message(
        _ASSISTANT,
        parts if head.refusal is None else (*parts, Refusal(head.refusal)),
        origin=head.origin,
        usage=head.usage and head.usage.counts,
        finish=head.finish,
    )
    choice = Choice(0, message, head.finish, head.finish_raw)
    return Response(
        choices=(choice,), usage=head.usage, model=head.model, id=head.id, extras=head.extras
    )


def encode_response(response: Response) -> Encoded:
    """Encode a response; only its first choice is supported."""
    writing = Writing(TARGET, place="choices[0].message.parts[{1}]", is_response=True)
    for index in range(1, len(response.choices)):
        writing.lose(f"choices[{index}]", "only one choice is supported")
    choice = response.choices[0] if response.choices else Choice(0, make_message(_ASSISTANT))
    report_losses(choice, writing)
    writing.origin = choice.message.origin
    begin_choice(choice, writing)
    content = encode_parts(_content(choice.message), writing)
    if writing.has_cut_calls:
        choice = choice.replace_unchecked(finish=finish_beside(choice.finish, writing))
    body = encode_body(response, response.usage, choice, content)
    return Encoded(body, losses=tuple(writing.losses), repairs=tuple(writing.repairs))


def report_losses(choice: Choice, writing: Writing) -> None:
    """Report what a message can't express, except its content."""
    if choice.logprobs is not None:
        writing.lose("choices[0].logprobs", "log probabilities are not supported")
    if choice.message.name is not None:
        writing.lose("choices[0].message.name", "message names are not supported")
    if choice.message.role is not _ASSISTANT:
        writing.lose("choices[0].message.role", "a response must be an assistant message")
    if not _has_stop_reason(choice):
        writing.lose("choices[0].finish", "this finish reason has no equivalent")


def encode_body(
    head: Response | ResponseStart, usage: Usage | None, choice: Choice | None, content: list[Any]
) -> Block:
    """The body with this content; no choice: nothing of it is known yet."""
    reason, refusal = None, None
    if choice is not None:
        reason, refusal = _stop_reason(choice), _refusal(choice.message) or None
        if usage is None and not is_own(choice.message.origin):
            usage = choice.message.usage
    known = Head(id=head.id, model=head.model, finish_raw=reason, refusal=refusal, usage=usage)
    body = HEAD.body(known, SILENT)
    body["content"] = content
    body = with_overlay(body, head.extras, NAME)
    if choice is None or not is_own(choice.message.origin):
        _complete(body, None if choice is None else choice.message)
    return body


def _complete(body: Block, message: Message | None) -> None:
    """Fill in fields that clients rely on and another dialect's response may lack."""
    if "id" not in body:  # avoid generating an id otherwise
        body["id"] = new_id() if message is None else message.id
    body.setdefault("model", "")
    body.setdefault("stop_reason", None)
    body.setdefault("stop_sequence", None)
    if "usage" not in body:
        body["usage"] = dict(_ZERO_USAGE)


def _has_stop_reason(choice: Choice) -> bool:
    """Whether a `stop_reason` exists for the finish reason; calls and refusals imply one."""
    finish = choice.finish
    if not is_own(choice.message.origin):
        return finish not in _FAILURES
    plain = finish in {None, _STOP, _CALLS, _REFUSAL}
    return plain or decode_finish(_stop_reason(choice)) is finish


def _stop_reason(choice: Choice) -> str | None:
    is_native = is_own(choice.message.origin)
    if is_native and choice.finish_raw is not None:
        if decode_finish(choice.finish_raw) is choice.finish:
            return choice.finish_raw
        return None if choice.finish is None else encode_finish(choice.finish)
    message = choice.message
    has_calls = bool(message.parts) and bool(message.tool_calls)
    finish = finish_beside_calls(choice.finish or message.finish, has_calls)
    if _refusal(message) and not (is_native and finish is None):
        return encode_finish(_REFUSAL)
    return None if finish is None else encode_finish(finish)


def finish_beside_calls(finish: FinishReason | None, has_calls: bool) -> FinishReason | None:  # noqa: FBT001 - a fact, not an option
    """The finish reason of another provider's message: with calls, it is tool calls (W11)."""
    return _CALLS if has_calls and finish is FinishReason.STOP else finish


def _refusal(message: Message) -> str:
    """The text of a message's refusals."""
    if not message.parts:  # as at the start and the end of a stream
        return ""
    return "\n".join([part.text for part in message.parts if isinstance(part, Refusal)])


def _content(message: Message) -> tuple[AnyPart, ...]:
    return tuple([part for part in message.parts if not isinstance(part, Refusal)])


# --- errors: response bodies, and the `error` event of a stream

_REQUEST = "invalid_request_error"
_KINDS = {413: "request_too_large", 504: "timeout_error"}
"""Error types for statuses that are more specific than the error class."""
# Status, type, and the message prefix that clients look for where the type is not specific.
_FORMS: Forms[tuple[int, str, str]] = {
    errors.AuthenticationError: (401, "authentication_error", ""),
    errors.PermissionDenied: (403, "permission_error", ""),
    errors.RateLimited: (429, "rate_limit_error", ""),
    errors.QuotaExceeded: (402, "billing_error", ""),
    errors.Overloaded: (529, "overloaded_error", ""),
    errors.ContextTooLong: (400, _REQUEST, "prompt is too long: "),
    errors.Refused: (400, _REQUEST, "Output blocked by content filtering policy: "),
    errors.InvalidRequest: (400, _REQUEST, ""),
    errors.ModelNotFound: (404, "not_found_error", "model: not found: "),
    errors.ServerError: (500, "api_error", ""),
}


def encode_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """The status and body for an error; mid-stream, the body is the event's data."""
    failure = reported(error)
    usual, kind, words = form_of(failure, _FORMS)
    status = status_of(failure, usual)
    kind = _KINDS.get(status, kind)
    body: dict[str, Any] = {
        "type": "error",
        "error": {"type": kind, "message": f"{words}{client_message(failure)}"},
    }
    if failure.request_id is not None:
        body["request_id"] = failure.request_id
    return status, body


_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_TYPES = {status: kind for kind, status in _STATUS.items()} | {503: "overloaded_error"}


def decode_stream_error(wire: Block) -> StreamError:
    """Decode an `error` event."""
    error = wire.get("error")
    fields = error if isinstance(error, dict) else {"message": error}
    kind = fields.get("type")
    status = _STATUS.get(kind) if type(kind) is str else None
    return stream_error(fields.get("message"), kind, status, overlay_of(wire, ("type",), NAME))


def encode_stream_error(error: StreamError) -> Block:
    """The fields of an `error` event except `type`; other dialects' errors map by status."""
    kind = error.code if error.code in _STATUS or NAME in error.extras else None
    if kind is None:
        kind = _TYPES.get(error.status or 0, "api_error")
    body: Block = {"error": {"type": kind, "message": error.message}}
    return with_overlay(body, error.extras, NAME)
