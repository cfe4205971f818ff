"""Responses of `/chat/completions`: messages, token counts, finish reasons, and errors."""

from __future__ import annotations

from functools import cache
from typing import Any

from msgspec.structs import replace

from dragoman.errors import DragomanError
from dragoman.model.derived_ids import response_identity
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Origin
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.call_ids import CallIds
from dragoman.wire.cut_calls import cut_finish, is_unfinished
from dragoman.wire.encoded import Encoded
from dragoman.wire.json_values import is_integer, is_object, want
from dragoman.wire.logprobs import as_list, lost, tokens_of
from dragoman.wire.openai_chat.dialect import (
    NAME,
    ChatWriting,
    absent,
    is_own,
    without_absent,
)
from dragoman.wire.openai_chat.layout import FORM, decode_assistant, encode_assistant
from dragoman.wire.openai_errors import encode_failure
from dragoman.wire.overlay import (
    fields_of,
    overlay_of,
    with_guesses,
    with_overlay,
    words_of,
)
from dragoman.wire.overlay_edits import Places, with_digests, without_edited
from dragoman.wire.reading import Reading
from dragoman.wire.tolerance import readable_answer, with_original
from dragoman.wire.usage_details import UsageDetails

# --- finish reasons

_STOP, _LENGTH, _CALLS = FinishReason.STOP, FinishReason.LENGTH, FinishReason.TOOL_CALLS
_FILTER, _ERROR, _OTHER = FinishReason.CONTENT_FILTER, FinishReason.ERROR, FinishReason.OTHER

_FINISHES = {
    "stop": _STOP,
    "length": _LENGTH,
    "tool_calls": _CALLS,
    "function_call": _CALLS,
    "content_filter": _FILTER,
    # Values of other servers: Together; Mistral; Z.ai; DeepSeek; OpenRouter.
    "eos": _STOP,
    "model_length": FinishReason.CONTEXT_FULL,
    "sensitive": _FILTER,
    "network_error": _ERROR,
    "insufficient_system_resource": _ERROR,
    "error": _ERROR,
    # Words of other dialects, which proxies pass on; those of Gemini in capitals.
    "end_turn": _STOP,
    "stop_sequence": _STOP,
    "tool_use": _CALLS,
    "max_tokens": _LENGTH,
    "max_output_tokens": _LENGTH,
    "refusal": _FILTER,
    "safety": _FILTER,
}
_WORDS = {
    _STOP: "stop",
    _LENGTH: "length",
    _CALLS: "tool_calls",
    _FILTER: "content_filter",
    FinishReason.CONTEXT_FULL: "length",
    FinishReason.MALFORMED_CALL: "length",  # keeps clients from running a call (I7)
    FinishReason.REFUSAL: "content_filter",
}


def decode_finish(raw: Any) -> FinishReason | None:
    """Decode a `finish_reason`."""
    if not isinstance(raw, str) or not raw:
        return None
    return _FINISHES.get(raw) or _FINISHES.get(raw.lower(), _OTHER)


def encode_finish(
    finish: FinishReason | None,
    raw: str | None,
    writing: ChatWriting,
    path: str,
    *,
    is_ours: bool,
    has_calls: bool,
) -> str | None:
    """Encode a `finish_reason`: the original value if it still means the same."""
    if is_ours and raw is not None and decode_finish(raw) is finish:
        return raw
    if finish is None:
        return None
    if finish is _STOP and has_calls:
        return "tool_calls"  # clients run tools only for this value (W11)
    if finish not in _WORDS:
        writing.lose(f"{path}.finish", "this finish reason has no equivalent")
    return _WORDS.get(finish, "length" if finish.is_cut_off else "stop")


# --- token counts: on the wire they overlap, in the model they don't (W19)

_PROMPT, _COMPLETION = "prompt_tokens_details", "completion_tokens_details"
# Other servers' fields for cached tokens: DeepSeek, Mistral, Kimi.
_CACHED = ("prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens")
_FIELD_PLACES: Places = {
    **dict.fromkeys(_CACHED, "cache_read"),
    "reasoning_tokens": "thinking",
}
_FIELDS = ("prompt_tokens", "completion_tokens", "total_tokens", _PROMPT, _COMPLETION)
_PLAIN_COUNTS = frozenset(_FIELDS[:3])


DETAILS = UsageDetails(
    NAME,
    input_text=f"{_PROMPT}.text_tokens",
    input_audio=f"{_PROMPT}.audio_tokens",
    input_image=f"{_PROMPT}.image_tokens",
    input_video=f"{_PROMPT}.video_tokens",
    output_text=f"{_COMPLETION}.text_tokens",
    output_audio=f"{_COMPLETION}.audio_tokens",
    output_image=f"{_COMPLETION}.image_tokens",
    accepted_prediction=f"{_COMPLETION}.accepted_prediction_tokens",
    rejected_prediction=f"{_COMPLETION}.rejected_prediction_tokens",
)


def decode_usage(wire: dict[str, Any]) -> Usage:
    """Decode `usage`."""
    if wire.keys() == _PLAIN_COUNTS:  # as many servers send it
        prompt, completion, total = counts = [wire[name] for name in _FIELDS[:3]]
        if all(map(is_integer, counts)) and min(counts) >= 0:
            return Usage(prompt, completion, reported_total=total, extras=_plain_extras())
    return decode_any_usage(wire)


@cache
def _plain_extras() -> Any:
    """The extras of usage without details."""
    return decode_any_usage(dict.fromkeys(_PLAIN_COUNTS, 0)).extras


def decode_any_usage(wire: dict[str, Any]) -> Usage:
    """Decode `usage` of any form."""
    prompt, completion = _count(wire, "prompt_tokens"), _count(wire, "completion_tokens")
    prompt_details, completion_details = _details(wire, _PROMPT), _details(wire, _COMPLETION)
    read = _count(prompt_details, "cached_tokens") or max([_count(wire, key) for key in _CACHED])
    write = _count(prompt_details, "cache_write_tokens")
    thinking = _count(completion_details, "reasoning_tokens") or _count(wire, "reasoning_tokens")
    total = wire.get("total_tokens")
    # xAI counts thinking in addition to the completion; its total shows it.
    is_apart = thinking > completion or total == prompt + completion + thinking
    output = completion if is_apart else completion - thinking
    fresh = max(prompt - read - write, 0)
    reported = total if is_integer(total) and total >= 0 else None
    all_input, all_output = fresh + read + write, output + thinking
    whole = all_input + all_output if reported is None else reported
    extras = _extras(wire, _written(all_input, all_output, whole, read, write, thinking))
    usage = Usage(fresh, output, read, write, thinking, reported, extras)
    return DETAILS.taken(with_digests(usage, NAME, _FIELD_PLACES))


def encode_usage(usage: Usage) -> dict[str, Any]:
    """Encode `usage`."""
    usage = DETAILS.put(usage)
    body = _written(
        usage.total_input,
        usage.total_output,
        usage.total,
        usage.cache_read,
        usage.cache_write,
        usage.thinking,
    )
    extras = without_edited(usage, NAME, _FIELD_PLACES)
    words, over = words_of(extras, NAME), fields_of(extras, NAME)
    # A detail that was missing is not added if it is zero or in another field.
    has_read = bool(usage.cache_read) and over.keys().isdisjoint(_CACHED)
    has_thinking = bool(usage.thinking) and "reasoning_tokens" not in over
    if "-cached_tokens" in words and not has_read:
        del body[_PROMPT]["cached_tokens"]
    if "-reasoning_tokens" in words and not has_thinking:
        del body[_COMPLETION]["reasoning_tokens"]
    has_details = {_PROMPT: has_read or bool(usage.cache_write), _COMPLETION: has_thinking}
    for key in _FIELDS:
        if f"-{key}" in words and not has_details.get(key):
            del body[key]
    return with_overlay(body, extras, NAME)


def _written(
    prompt: int, completion: int, total: int, read: int, write: int, thinking: int
) -> dict[str, Any]:
    """Encode the counts: prompt, completion, total, and their details."""
    details = {"cached_tokens": read}
    if write:
        details["cache_write_tokens"] = write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": total,
        _PROMPT: details,
        _COMPLETION: {"reasoning_tokens": thinking},
    }


def _extras(wire: dict[str, Any], rebuilt: dict[str, Any]) -> Any:
    """The extras: what the counts alone would not restore."""
    words = absent(wire, *_FIELDS)
    for key, name in ((_PROMPT, "cached_tokens"), (_COMPLETION, "reasoning_tokens")):
        details = wire.get(key)
        if is_object(details) and name not in details:
            words.append(f"-{name}")
    return overlay_of(wire, (), NAME, rebuilt, words, notes_absent=False)


def _details(wire: dict[str, Any], key: str) -> dict[str, Any]:
    details = wire.get(key)
    return details if is_object(details) else {}


def _count(wire: dict[str, Any], key: str) -> int:
    value = wire.get(key)
    return value if is_integer(value) and value > 0 else 0


# --- whole responses

_OBJECT = "chat.completion"
_ASSISTANT = Role.ASSISTANT
_SAFE_INTEGER = 2**53  # up to which a float is exact


def decode_response(wire: dict[str, Any]) -> Response:
    """Decode a response body."""
    choices = want(wire, "choices", list, NAME, "$")
    used = {"choices"}
    texts = {key: wire[key] for key in ("id", "model") if isinstance(wire.get(key), str)}
    used.update(texts)
    created, usage = wire.get("created"), wire.get("usage")
    counts: Usage | None = None
    if is_object(usage):
        used.add("usage")
        counts = decode_usage(usage)
    if is_integer(created) and abs(created) < _SAFE_INTEGER:
        used.add("created")
    else:
        created = None
    if wire.get("object") == _OBJECT:
        used.add("object")
    origin = Origin(dialect=NAME, model=texts.get("model"), response_id=texts.get("id"))
    shared = counts if len(choices) == 1 else None
    created_at = None if created is None else float(created)
    identity = response_identity(texts.get("id"), created_at, texts.get("model"))
    return Response(
        choices=tuple(
            [
                _decode_choice(choice, place, origin, shared, CallIds(identity))
                for place, choice in enumerate(choices)
            ]
        ),
        usage=counts,
        created_at=created_at,
        extras=overlay_of(wire, used, NAME, words=absent(used, "id", "object", "created", "model")),
        **texts,
    )


def encode_response(response: Response) -> Encoded:
    """Encode a response."""
    writing = ChatWriting(is_response=True)
    body: dict[str, Any] = {
        "id": response.id or "",
        "object": _OBJECT,
        "created": int(response.created_at or 0),
        "model": response.model or "",
    }
    given = {key: body[key] for key in ("id", "created", "model") if body[key]}
    body = {**without_absent(body, response.extras), **given}  # fields may have been set since
    body["choices"] = [
        _encode_choice(choice, writing) for writing.message, choice in enumerate(response.choices)
    ]
    if response.usage is not None:
        body["usage"] = encode_usage(response.usage)
    return Encoded(
        with_overlay(body, response.extras, NAME),
        losses=tuple(writing.losses),
        repairs=tuple(writing.repairs),
    )


def _decode_choice(
    wire: Any, position: int, origin: Origin, usage: Usage | None, calls: CallIds
) -> Choice:
    if not is_object(wire):
        choice = _decode_choice({}, position, origin, usage, calls)
        return replace(choice, extras=with_guesses(choice.extras, NAME, [[[], {}, wire]]))
    used: set[str] = set()
    index, raw, logprobs = wire.get("index"), wire.get("finish_reason"), wire.get("logprobs")
    if is_integer(index):
        used.add("index")
    if isinstance(raw, str):
        used.add("finish_reason")
    if logprobs is not None:
        used.add("logprobs")
    finish = decode_finish(raw)
    number = index if is_integer(index) else position
    calls.at(number)
    message = _decode_message(wire, Reading(None, calls), used)
    return Choice(
        number,
        replace(message, origin=origin, usage=usage and usage.counts, finish=finish),
        finish,
        raw if isinstance(raw, str) else None,
        logprobs,
        overlay_of(wire, used, NAME, words=absent(used, "index", "message")),
    )


def foreign_logprobs(logprobs: Any, path: str, writing: ChatWriting) -> dict[str, Any] | None:
    """Encode another dialect's log probabilities; None if there are none or they are unknown."""
    if logprobs is None:
        return None
    found = tokens_of(logprobs)
    for loss in lost(found, path):
        writing.lose(loss.path, loss.reason)
    return None if found is None else {"content": as_list(found.tokens), "refusal": None}


def _encode_choice(choice: Choice, writing: ChatWriting) -> dict[str, Any]:
    path = f"choices[{writing.message}]"
    message, is_ours = choice.message, is_own(choice.message.origin)
    writing.is_cut_off = choice.finish is not None and choice.finish.is_cut_off
    body: dict[str, Any] = {
        "index": choice.index,
        "message": _encode_message(message, writing, is_ours=is_ours),
    }
    told = choice.finish
    if not is_ours and any(map(is_unfinished, message.tool_calls)):
        told = cut_finish(told)
    finish = encode_finish(
        told,
        choice.finish_raw,
        writing,
        path,
        is_ours=is_ours,
        has_calls=bool(message.tool_calls),
    )
    if finish is not None or not is_ours:
        body["finish_reason"] = finish
    if not is_ours:
        body["logprobs"] = foreign_logprobs(choice.logprobs, f"{path}.logprobs", writing)
    elif choice.logprobs is not None:
        body["logprobs"] = choice.logprobs
    content = {"message": body["message"]} if message.parts else {}
    return with_overlay({**without_absent(body, choice.extras), **content}, choice.extras, NAME)


def _decode_message(wire: dict[str, Any], reading: Reading, used: set[str]) -> Message:
    message = wire.get("message")
    if not is_object(message):
        return make_message(_ASSISTANT)  # Azure's content filter sends none
    used.add("message")
    if type(message.get("content")) in FORM.kinds:
        return decode_assistant(message, reading, is_response=True)
    made, guesses = readable_answer(message, FORM)
    return with_original(decode_assistant(made, reading, is_response=True), NAME, guesses)


def _encode_message(message: Message, writing: ChatWriting, *, is_ours: bool) -> dict[str, Any]:
    if message.role is not _ASSISTANT:
        writing.lose(
            f"choices[{writing.message}].message.role", "a response must be an assistant message"
        )
    body = encode_assistant(message, writing)
    if not is_ours:  # clients expect these fields even if null
        body.setdefault("content", None)
        body.setdefault("refusal", None)
    return body


# --- errors: response bodies, and the `error` of a chunk


def encode_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """The status and body for an error; mid-stream, the body is the chunk."""
    return encode_failure(error)
