"""Responses: candidates, token counts, and finish reasons."""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import Identity, response_identity
from dragoman.model.events import ChoiceFinish, ResponseStart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import make_message
from dragoman.model.parts import Origin
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.call_ids import CallIds
from dragoman.wire.cut_calls import begin_choice, finish_beside
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.gemini.citations import decode_citations, encode_citations
from dragoman.wire.gemini.dialect import NAME, Writing, snake_names
from dragoman.wire.gemini.request import NO_SPEAKER_NAME, decode_content, encode_content
from dragoman.wire.json_values import is_object, parsed, want
from dragoman.wire.logprobs import as_candidates, lost, tokens_of
from dragoman.wire.overlay import (
    Overlay,
    fields_of,
    merged,
    note_of,
    with_guesses,
    with_note,
    with_overlay,
)
from dragoman.wire.reading import Reading
from dragoman.wire.rows import SILENT, TEXT, Row, Shape, Value
from dragoman.wire.settings_table import text
from dragoman.wire.usage_details import UsageDetails

# --- `usageMetadata`: prompt tokens include cached ones, candidate tokens exclude thinking (W98)

_PROMPT, _TOOL_USE = "promptTokenCount", "toolUsePromptTokenCount"
_CACHED, _OUTPUT = "cachedContentTokenCount", "candidatesTokenCount"
_THINKING, _TOTAL = "thoughtsTokenCount", "totalTokenCount"
_USAGE_NAMES = snake_names(_PROMPT, _OUTPUT, _CACHED, _THINKING, _TOOL_USE, _TOTAL)
DETAILS = UsageDetails(
    NAME,
    {
        "promptTokensDetails": "input",
        "candidatesTokensDetails": "output",
        "cacheTokensDetails": "cached",
        "toolUsePromptTokensDetails": "tool_input",
    },
    tool_input=_TOOL_USE,
)


def decode_usage(wire: Any) -> Usage | None:
    """Decode token counts to non-overlapping counts; None if there are none."""
    if not is_object(wire):
        return None
    kept = Overlay(NAME)
    named = kept.renamed(wire, _USAGE_NAMES)
    counts = {key: value for key, value in named.items() if type(value) is int and value >= 0}
    beside = counts.get(_TOOL_USE, 0)
    prompt = counts.get(_PROMPT, 0) + beside
    cached = min(counts.get(_CACHED, 0), prompt)
    usage = Usage(
        input=prompt - cached,
        output=counts.get(_OUTPUT, 0),
        cache_read=cached,
        thinking=counts.get(_THINKING, 0),
        reported_total=counts.get(_TOTAL),
    )
    kept.compare(named, _counts(usage, beside))
    extras = kept.extras()
    return DETAILS.taken(usage.replace(extras=extras)) if extras else usage


def _counts(usage: Usage, beside: int) -> dict[str, int]:
    """The counts on the wire; zeros are omitted, as in the API."""
    counts = {
        _PROMPT: usage.total_input - beside,  # tokens from built-in tools are counted separately
        _CACHED: usage.cache_read,
        _OUTPUT: usage.output,
        _THINKING: usage.thinking,
        _TOTAL: usage.total,
    }
    return {key: count for key, count in counts.items() if count}


def encode_usage(usage: Usage) -> dict[str, Any]:
    """Encode token counts."""
    usage = DETAILS.put(usage)
    beside = fields_of(usage.extras, NAME).get(_TOOL_USE)
    if type(beside) is not int or not 0 <= beside <= usage.total_input:
        beside = 0
    return with_overlay(_counts(usage, beside), usage.extras, NAME)


# --- finish reasons: `STOP` also means tool calls; failures are separate (W88)

End = Choice | ChoiceFinish
"""Has the finish reason and the log probabilities of a candidate."""
_STOP, _TOOL_CALLS, _OTHER = FinishReason.STOP, FinishReason.TOOL_CALLS, FinishReason.OTHER
_REASONS = {
    "STOP": _STOP,
    "MAX_TOKENS": FinishReason.LENGTH,
    "CONTINUATION": FinishReason.PAUSE,
    **dict.fromkeys(
        (
            "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
            "MODEL_ARMOR",  # Vertex AI's filter; recorded, not in the SDK
        ),
        FinishReason.CONTENT_FILTER,
    ),
    **dict.fromkeys(
        ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"),
        FinishReason.MALFORMED_CALL,
    ),
    **dict.fromkeys(
        ("LANGUAGE", "NO_IMAGE", "IMAGE_OTHER", "MALFORMED_RESPONSE"), FinishReason.ERROR
    ),
}  # fmt: skip
_NUMBERS = ("FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER")
"""Finish reasons by enum number, as found in some clients' recordings."""
_FINISH_WORDS = {
    _STOP: "STOP",
    _TOOL_CALLS: "STOP",
    FinishReason.LENGTH: "MAX_TOKENS",
    FinishReason.CONTEXT_FULL: "MAX_TOKENS",
    FinishReason.CONTENT_FILTER: "SAFETY",
    FinishReason.REFUSAL: "SAFETY",
    FinishReason.MALFORMED_CALL: "MALFORMED_FUNCTION_CALL",
    FinishReason.PAUSE: "CONTINUATION",
}
_SUPPORTED_FINISHES = frozenset({None, _OTHER, *_FINISH_WORDS})


def decode_finish(wire: Any, calls: bool) -> tuple[FinishReason | None, str | None]:  # noqa: FBT001 - a fact, not an option
    """The finish reason and its original value."""
    if type(wire) is int and 0 <= wire < len(_NUMBERS):
        wire = _NUMBERS[wire]
    if type(wire) is not str:
        return None, None
    reason = _REASONS.get(wire, _OTHER)
    return _TOOL_CALLS if reason is _STOP and calls else reason, wire


def encode_finish(end: End, parts: Iterable[AnyPart], *, is_ours: bool) -> str | None:
    """Encode a finish reason: the original value if it still means the same."""
    finish, word = end.finish, end.finish_raw
    if word is not None and is_ours:
        expected, _ = decode_finish(word, has_calls(parts))
        if finish is expected:
            return word
    return None if finish is None else _FINISH_WORDS.get(finish, "OTHER")


def has_calls(parts: Iterable[AnyPart]) -> bool:
    """Whether there are client tool calls among the parts."""
    return ToolCall in map(type, parts)


def is_own(origin: Origin | None) -> bool:
    """Whether a message is from this dialect or of unknown origin."""
    return origin is None or origin.dialect == NAME


# --- whole responses


def decode_time(wire: Any) -> float | None:
    """Decode `createTime`; None if it is not a valid time."""
    if type(wire) is not str:
        return None
    try:
        moment = datetime.fromisoformat(wire)
        return moment.timestamp() if moment.tzinfo is not None else None
    except (ValueError, OverflowError, OSError):
        return None


@lru_cache(maxsize=256)  # a stream repeats it
def encode_time(created_at: float) -> str | None:
    """Encode a time as `createTime`."""
    try:
        moment = datetime.fromtimestamp(created_at, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.replace(tzinfo=None).isoformat() + "Z"


_USAGE, _USAGE_NAME = "usageMetadata", snake_names("usageMetadata")
CANDIDATE_NAMES = snake_names(
    "finishReason", "logprobsResult", "groundingMetadata", "citationMetadata"
)
_ASSISTANT = Role.ASSISTANT
WITHOUT_CONTENT = "bare"
"""The note for a candidate without content: filtered, or a malformed call (W88)."""

BLOCKED = "blocked"
"""The note for a response without candidates: the prompt was blocked (W88)."""


def decode_response(body: Body) -> Response:
    """Decode a response; for a blocked prompt, an empty choice with that finish reason is added."""
    wire = dict(parsed(body, NAME))
    items = [] if wire.get("candidates") is None else want(wire, "candidates", list, NAME, "$")
    usage = decode_usage(wire.get(_USAGE, wire.get("usage_metadata")))
    unread = {"candidates"} if items else set[str]()
    head = decode_head(wire, unread if usage is None else unread | {_USAGE})
    origin = origin_of(head)
    identity = response_identity(head.id, head.created_at, head.model)
    choices = tuple([decode_candidate(item, n, identity, origin) for n, item in enumerate(items)])
    if not choices and (blocked := decode_blocked(wire, origin)) is not None:
        choices = (blocked,)
    if usage is not None and len(choices) == 1:
        only = choices[0]
        choices = (only.replace(message=only.message.replace(usage=usage.counts)),)
    return head.replace_unchecked(choices=choices, usage=usage)


_TIME = Value(TEXT.test, decode_time, encode_time, "a time")
HEAD = Shape(
    NAME, None, Response,
    Row("modelVersion", "model"), Row("responseId", "id"), Row("createTime", "created_at", _TIME),
    twins=True,
)  # fmt: skip
"""Everything except candidates and usage."""


def decode_head(wire: dict[str, Any], unread: Container[str]) -> Response:
    """A response without candidates and usage; of what is `unread`, only the spelling is kept."""
    kept = Overlay(NAME)
    wire = kept.renamed(wire, _USAGE_NAME)
    head: Any = HEAD.read({key: wire[key] for key in wire if key not in unread}, SILENT)
    extras = kept.extras()
    return head.replace_unchecked(extras=merged(head.extras, extras)) if extras else head  # type: ignore[no-any-return]


def encode_head(known: Response | ResponseStart) -> dict[str, Any]:
    """Encode everything except candidates and usage."""
    return HEAD.body(known, SILENT)


def origin_of(head: Response) -> Origin:
    """The origin of the parts of a response."""
    return Origin(dialect=NAME, model=head.model, response_id=head.id)


def decode_blocked(wire: dict[str, Any], origin: Origin) -> Choice | None:
    """The choice for a blocked prompt, which has no candidates; None if it was not blocked.

    In other dialects a response without choices would look like an empty success.
    """
    feedback = wire.get("promptFeedback", wire.get("prompt_feedback"))
    if not is_object(feedback):
        return None
    reason = feedback.get("blockReason", feedback.get("block_reason"))
    if not reason:
        return None
    finish = FinishReason.CONTENT_FILTER
    message = make_message(_ASSISTANT, origin=origin, finish=finish)
    extras = with_note(EMPTY, NAME, BLOCKED, value=True)
    return Choice(0, message, finish, text(reason), extras=extras)


def encode_response(response: Response) -> Encoded:
    """Encode a response."""
    writing = Writing()
    body = encode_head(response)
    candidates = []
    for index, choice in enumerate(response.choices):
        if choice.message.name is not None:
            writing.lose(f"choices[{index}].message.name", NO_SPEAKER_NAME)
        if choice.message.parts or not note_of(choice.extras, NAME, BLOCKED):
            candidates.append(_encode_candidate(choice, index, writing))
    if candidates:
        body["candidates"] = candidates
    if response.usage is not None:
        body["usageMetadata"] = encode_usage(response.usage)
    return Encoded(with_overlay(body, response.extras, NAME), losses=tuple(writing.losses),
                   repairs=tuple(writing.repairs))  # fmt: skip


def decode_candidate(
    wire: Any,
    position: int,
    identity: Identity,
    origin: Origin | None,
    folded: tuple[AnyPart, ...] | None = None,
) -> Choice:
    """Decode a candidate; `folded` are its parts if they came in a stream."""
    kept = Overlay(NAME)
    if not is_object(wire):
        choice = decode_candidate({}, position, identity, origin)
        return choice.replace(extras=with_guesses(choice.extras, NAME, [[[], {}, wire]]))
    fields = kept.renamed(wire, CANDIDATE_NAMES)
    index = fields.get("index")
    number = index if type(index) is int else position
    role, parts, extras = _ASSISTANT, folded or (), EMPTY
    if (content := fields.get("content")) is None:
        kept.note(WITHOUT_CONTENT, True)  # noqa: FBT003 - the note's value
    else:
        calls = CallIds(identity)
        calls.at(number)
        role, decoded, extras = decode_content(content, _ASSISTANT, Reading(None, calls))
        parts = decoded if folded is None else folded
    reason = fields.get("finishReason")
    finish, word = decode_finish(reason, has_calls(parts))
    if type(reason) is int and word is not None:  # the enum number
        kept.value(("finishReason",), word, reason)
        fields = {**fields, "finishReason": word}
    cited = decode_citations(fields, parts)
    message = make_message(role, cited, None, "", EMPTY, extras, origin, None, finish)
    choice = Choice(number, message, finish, word, fields.get("logprobsResult"))
    left = {key: value for key, value in fields.items() if key != "content" or value is None}
    kept.compare(left, encode_candidate(number, choice, cited, SILENT, is_ours=is_own(origin)))
    return choice.replace(extras=kept.extras())


def _encode_candidate(choice: Choice, position: int, writing: Writing) -> dict[str, Any]:
    message = choice.message
    parts, is_ours = message.parts, is_own(message.origin)
    begin_choice(choice, writing)
    is_bare = not parts and bool(note_of(choice.extras, NAME, WITHOUT_CONTENT))
    content = {} if is_bare else {"content": encode_content(message, position, writing)}
    if writing.has_cut_calls:
        choice = choice.replace_unchecked(finish=finish_beside(choice.finish, writing))
    body = encode_candidate(position, choice, parts, writing, is_ours=is_ours) | content
    body["index"] = choice.index
    place = f"choices[{position}]"
    if (
        is_ours
        and choice.finish not in _SUPPORTED_FINISHES
        and encode_finish(choice, parts, is_ours=True) != choice.finish_raw
    ):
        writing.lose(f"{place}.finish", "this finish reason has no equivalent")
    if message.role is not _ASSISTANT:
        writing.lose(f"{place}.message.role", "a response must be an assistant message")
    return with_overlay(body, choice.extras, NAME) if choice.extras else body


def encode_candidate(
    index: int, end: End, parts: tuple[AnyPart, ...], writing: Writing, *, is_ours: bool
) -> dict[str, Any]:
    """Encode the fields of a candidate except its content.

    Another dialect's log probabilities in an unknown format are lost.
    """
    body: dict[str, Any] = {"index": index}
    if (finish := encode_finish(end, parts, is_ours=is_ours)) is not None:
        body["finishReason"] = finish
    if end.logprobs is not None and is_ours:
        body["logprobsResult"] = end.logprobs
    elif end.logprobs is not None:
        found = tokens_of(end.logprobs)
        if found is not None:
            body["logprobsResult"] = as_candidates(found.tokens)
        for loss in lost(found, f"choices[{index}].logprobs"):
            writing.lose(loss.path, loss.reason)
    return body | encode_citations(parts)
