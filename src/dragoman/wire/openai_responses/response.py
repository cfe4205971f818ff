"""Responses: messages, token counts, finish reasons, and errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dragoman.errors import DragomanError, InvalidInputError, ProviderError
from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import Identity, response_identity
from dragoman.model.events import ChoiceFinish, ResponseStart
from dragoman.model.frozen import EMPTY, FrozenDict, freeze
from dragoman.model.jsontext import dumps, loads
from dragoman.model.messages import make_message
from dragoman.model.parts import Origin, Part, Refusal
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.cut_calls import cut_finish, is_unfinished
from dragoman.wire.encoded import Encoded
from dragoman.wire.error_classification import decode_failure
from dragoman.wire.json_values import want
from dragoman.wire.logprobs import as_list, lost, tokens_of
from dragoman.wire.losses import Loss
from dragoman.wire.openai_errors import encode_failure
from dragoman.wire.openai_responses.dialect import NAME
from dragoman.wire.openai_responses.layout import decode_output_items
from dragoman.wire.openai_responses.layout_writer import MessageWriter
from dragoman.wire.overlay import Overlay, fields_of, overlay_of, with_overlay
from dragoman.wire.usage_details import UsageDetails

# --- token counts: on the wire they include cached and reasoning tokens, ours don't overlap (W98)

_IN, _OUT = "input_tokens_details", "output_tokens_details"


DETAILS = UsageDetails(
    NAME,
    cache_write_30m=f"{_IN}.cache_write_tokens_details.ttl_30m_tokens",
    cache_write_12h=f"{_IN}.cache_write_tokens_details.ttl_12h_tokens",
)
DETAILS.keeps_mark = True  # records that the wire had other fields than we would encode


def decode_usage(wire: Mapping[str, Any]) -> Usage:
    """Decode `usage`; invalid counts stay in the overlay."""
    total = wire.get("total_tokens")
    all_input, all_output = _count(wire, "input_tokens"), _count(wire, "output_tokens")
    cached = min(_count(wire.get(_IN), "cached_tokens"), all_input)
    written = min(_count(wire.get(_IN), "cache_write_tokens"), all_input - cached)
    thinking = min(_count(wire.get(_OUT), "reasoning_tokens"), all_output)
    usage = Usage(
        input=all_input - cached - written,
        output=all_output - thinking,
        cache_read=cached,
        cache_write=written,
        thinking=thinking,
        reported_total=total if type(total) is int and total >= 0 else None,
    )
    return DETAILS.taken(usage.replace(extras=_decode_form(wire, usage)))


def encode_usage(usage: Usage) -> dict[str, Any]:
    """Encode `usage`: all counts, or those that the overlay lists."""
    extras = DETAILS.put(usage).extras
    if NAME not in usage.extras:
        return with_overlay(_in_full(usage), extras, NAME) if usage.details else _in_full(usage)
    return with_overlay(_counted(usage), extras, NAME)


def _decode_form(wire: Mapping[str, Any], usage: Usage) -> FrozenDict:
    full = _in_full(usage)
    if wire == full and not overlay_of(wire, (), NAME, full):
        return EMPTY
    return FrozenDict({NAME: EMPTY, **overlay_of(wire, (), NAME, _counted(usage))})


def _count(wire: Any, key: str) -> int:
    value = wire.get(key) if isinstance(wire, Mapping) else None
    return value if type(value) is int and value > 0 else 0


def _in_full(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.total_input,
        _IN: {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.total_output,
        _OUT: {"reasoning_tokens": usage.thinking},
        "total_tokens": usage.total,
    }


def _counted(usage: Usage) -> dict[str, Any]:
    """The counts that are not zero; the overlay has the zeros of the wire."""
    cached = _filled(cached_tokens=usage.cache_read, cache_write_tokens=usage.cache_write)
    body = _filled(
        input_tokens=usage.total_input,
        input_tokens_details=cached,
        output_tokens=usage.total_output,
        output_tokens_details=_filled(reasoning_tokens=usage.thinking),
    )
    return body if usage.reported_total is None else body | {"total_tokens": usage.reported_total}


def _filled(**counts: Any) -> dict[str, Any]:
    return {key: count for key, count in counts.items() if count}


# --- whole responses

_CUT, _COMPLETED = "incomplete", ("completed", None)
_WITH_STATUS = frozenset({"message", "function_call"})
_BY_STATUS = {"failed": FinishReason.ERROR, "cancelled": FinishReason.CANCELLED}
# Status and reason by finish reason; `incomplete` is not an error (W37).
_FINISHES: dict[FinishReason, tuple[str, str | None]] = {
    FinishReason.STOP: _COMPLETED,
    FinishReason.TOOL_CALLS: _COMPLETED,
    FinishReason.REFUSAL: _COMPLETED,
    FinishReason.CONTEXT_FULL: (_CUT, "max_output_tokens"),
    FinishReason.LENGTH: (_CUT, "max_output_tokens"),
    FinishReason.CONTENT_FILTER: (_CUT, "content_filter"),
    **{finish: (status, None) for status, finish in _BY_STATUS.items()},
}
_BY_REASON = {reason: finish for finish, (_, reason) in _FINISHES.items() if reason}
# Fields that client types require, for responses of other dialects.
_USUAL: Mapping[str, Any] = {
    "object": "response",
    "created_at": 0,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "model": "",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}


def decode_response(wire: Mapping[str, Any]) -> Response:
    """Decode a response body."""
    output = want(wire, "output", list, NAME, "$")
    parts = decode_output_items(output, identity_of(wire))
    finish, finish_raw = decode_finish(wire, parts)
    head = decode_head(wire, finish, finish_raw)
    usage = head.usage
    spent = usage and usage.counts
    message = make_message(Role.ASSISTANT, parts, origin=head.origin, usage=spent, finish=finish)
    return Response(
        choices=(Choice(0, message, finish, finish_raw, logprobs_of(parts)),),
        usage=usage,
        model=head.model,
        id=head.id,
        created_at=head.created_at,
        extras=head.extras,
    )


_PLAIN = frozenset({str, bool, type(None)})
_CONTAINERS = frozenset({dict, list})


class Head(NamedTuple):
    """The decoded response without its items."""

    id: str | None
    model: str | None
    created_at: float | None
    origin: Origin
    usage: Usage | None
    extras: FrozenDict


def decode_head(
    wire: Mapping[str, Any],
    finish: FinishReason | None,
    finish_raw: str | None,
    known: Mapping[str, Any] = EMPTY,
) -> Head:
    """Decode everything except the items; `finish` is from `decode_finish`.

    `known` has the frozen fields of an earlier event of a stream, which the later ones repeat.
    """
    model, response_id = _text(wire.get("model")), _text(wire.get("id"))
    counts, time = wire.get("usage"), wire.get("created_at")
    usage = decode_usage(counts) if isinstance(counts, dict) else None
    created_at = time if _is_time(time) else None
    ours = _head(response_id, model, created_at) | encode_finish(finish, finish_raw, is_own=True)
    left = dict(wire)
    left.pop("output", None)
    if usage is not None:
        del left["usage"]
    extras = _head_extras(left, ours, known)
    origin = Origin(dialect=NAME, model=model, response_id=response_id)
    return Head(response_id, model, created_at, origin, usage, extras)


def _head_extras(
    left: dict[str, Any], ours: dict[str, Any], known: Mapping[str, Any]
) -> FrozenDict:
    """The overlay of a response, of which we would write `ours`.

    An empty one records that it is from this dialect.
    """
    overlay = Overlay(NAME)
    told = {key: left[key] for key in filter(ours.__contains__, left)}
    overlay.compare(told, ours)
    inner, overlay.fields = overlay.fields, {}
    for key in told:
        if key in inner:
            left[key] = inner[key]
        else:
            del left[key]
    fields = _frozen(left, known) if known else freeze(left, "the wire", 1)
    return FrozenDict({NAME: fields, **overlay.extras()})


def _frozen(fields: dict[str, Any], known: Mapping[str, Any]) -> FrozenDict:
    """The fields of a response, frozen; those that are `known` are taken from there."""
    changed: dict[str, Any] = {}
    for key, value in fields.items():
        kind = type(value)
        if kind in _PLAIN:
            continue
        before = known.get(key)
        if kind in _CONTAINERS and value == before and dumps(value) == dumps(before):
            changed[key] = before
        elif kind is not type(before) or value != before:
            changed[key] = freeze(value, "the wire", 2)
    return FrozenDict({**fields, **changed}) or EMPTY


def logprobs_of(parts: Iterable[Part]) -> dict[str, Any] | None:
    """The log probabilities of all texts as one list; the texts keep theirs as well."""
    found: list[Any] = []
    for part in parts:
        listed = fields_of(part.extras, NAME).get("logprobs") if part.extras else None
        if isinstance(listed, (list, tuple)):
            found += listed
    return {"content": found} if found else None


def put_logprobs(logprobs: Any, items: Iterable[Any]) -> list[Loss]:
    """Add another dialect's log probabilities to the items, if there is exactly one text."""
    texts = [
        part
        for item in items
        if isinstance(item, dict) and isinstance(item.get("content"), list)
        for part in item["content"]
        if isinstance(part, dict) and part.get("type") == "output_text"
    ]
    tokens = tokens_of(logprobs)
    losses = list(lost(tokens, "choices[0].logprobs"))
    if tokens is not None and len(texts) == 1:
        texts[0]["logprobs"] = as_list(tokens.tokens)
    elif tokens is not None:
        losses.append(
            Loss("choices[0].logprobs", "log probabilities can't be assigned to one text")
        )
    return losses


def identity_of(wire: Mapping[str, Any]) -> Identity:
    """The identity that distinguishes the calls of this response from those of others."""
    return response_identity(_text(wire.get("id")), None, None)


def encode_response(response: Response) -> Encoded:
    """Encode a response."""
    finish = response.choices[0].finish if response.choices else None
    writing = MessageWriter(is_cut_off=finish is not None and finish.is_cut_off)
    if response.choices:
        choice = response.choices[0]
        writing.write(choice.message)
        if finish is not None and not has_equivalent(finish):
            writing.lose("choices[0].finish", "this finish reason has no equivalent")
        if choice.message.role is not Role.ASSISTANT:
            writing.lose("choices[0].message.role", "a response must be an assistant message")
        if choice.logprobs is not None:
            known = logprobs_of(choice.message.parts)  # already in the texts
            if known is None or known != choice.logprobs:
                for loss in put_logprobs(choice.logprobs, writing.items):
                    writing.lose(loss.path, loss.reason)
    for index in range(1, len(response.choices)):
        writing.lose(f"choices[{index}]", "only one choice is supported")
    end = response.choices[0] if response.choices else None
    if end is not None and not is_own(end.message.origin):
        end = _with_cut_items(end, writing.items)
    body = encode_body(response, end, response.usage, writing.items)
    if response.id is None and NAME not in response.extras:
        body["id"] = _generated_id(response)
    return Encoded(body, losses=tuple(writing.losses), repairs=tuple(writing.repairs))


def _with_cut_items(choice: Choice, items: list[Any]) -> Choice:
    """The choice as it ends, after its items got the status of what was cut off (I7)."""
    finish = end_beside(choice.finish, choice.message.parts)
    choice = choice.replace_unchecked(finish=finish)
    unfinished = {call.id for call in choice.message.tool_calls if is_unfinished(call)}
    if unfinished:
        choice = choice.replace_unchecked(finish=cut_finish(choice.finish))
    last = len(items) - 1
    is_cut = choice.finish is not None and is_incomplete(choice.finish)
    for place, item in enumerate(items):
        is_item = isinstance(item, dict)
        if is_item and ((is_cut and place == last) or item.get("call_id") in unfinished):
            items[place] = as_cut(item)
    return choice


def encode_body(
    head: Response | ResponseStart,
    end: Choice | ChoiceFinish | None,
    usage: Usage | None,
    items: list[Any],
) -> dict[str, Any]:
    """Encode a response with the given items; another dialect's has an id, if only None."""
    is_own = NAME in head.extras
    body = _head(head.id, head.model, head.created_at)
    if end is not None:
        body.update(encode_finish(end.finish, end.finish_raw, is_own=is_own))
    body["output"] = items
    if usage is not None:
        body["usage"] = encode_usage(usage)
    return with_overlay(body, head.extras, NAME) if is_own else {"id": None, **_USUAL, **body}


def _generated_id(response: Response) -> str:
    """A stable id for a response that has none."""
    return "resp_" + (response.choices[0].message.id if response.choices else "none")


def _head(id_: str | None, model: str | None, created_at: float | None) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if id_ is not None:
        body["id"] = id_
    if model is not None:
        body["model"] = model
    if created_at is not None:
        whole = int(created_at)  # stored as a float; the overlay keeps a fraction of zero
        body["created_at"] = whole if whole == created_at else created_at
    return body


def decode_finish(
    wire: Mapping[str, Any], parts: tuple[AnyPart, ...]
) -> tuple[FinishReason | None, str | None]:
    """The finish reason and its original value; None if the response has not ended."""
    status = _text(wire.get("status"))
    if status == "completed":
        return _completed(parts), status
    if status == _CUT:
        details = wire.get("incomplete_details")
        reason = _text(details.get("reason")) if isinstance(details, dict) else None
        cut = _BY_REASON.get(reason or "", FinishReason.LENGTH)  # whatever it was, it was cut off
        return cut, reason or _CUT
    return _BY_STATUS.get(status or ""), status


def _completed(parts: tuple[AnyPart, ...]) -> FinishReason:
    if any(isinstance(part, ToolCall) for part in parts):
        return FinishReason.TOOL_CALLS
    is_refusal = any(isinstance(part, Refusal) for part in parts)
    return FinishReason.REFUSAL if is_refusal else FinishReason.STOP


def end_beside(finish: FinishReason | None, parts: Iterable[AnyPart]) -> FinishReason | None:
    """The finish reason of another dialect's response: only a refusal in words is complete."""
    is_silent = finish is FinishReason.REFUSAL and not any(isinstance(p, Refusal) for p in parts)
    return FinishReason.CONTENT_FILTER if is_silent else finish


def has_equivalent(finish: FinishReason) -> bool:
    """Whether a status or reason says this finish reason and no other."""
    return finish in _FINISHES


def is_own(origin: Origin | None) -> bool:
    """Whether a response came in this dialect, so that its items stay as they came."""
    return origin is not None and origin.dialect == NAME


def is_incomplete(finish: FinishReason) -> bool:
    """Whether a response with this finish reason is incomplete."""
    return _FINISHES.get(finish, (_CUT, None))[0] == _CUT


def as_cut(item: dict[str, Any]) -> dict[str, Any]:
    """The item within which a response was cut off; those of other types have no status."""
    return {**item, "status": _CUT} if item.get("type") in _WITH_STATUS else item


def encode_finish(finish: FinishReason | None, word: str | None, *, is_own: bool) -> dict[str, Any]:
    """Encode status and reason; other dialects' original values are not used."""
    if finish is None:
        return {}
    status, reason = _FINISHES.get(
        finish, (_CUT, None)
    )  # default: unknown, a pause, a malformed call
    if is_own and word is not None and finish is FinishReason.LENGTH and word not in _BY_REASON:
        reason = None if word == _CUT else word
    if not reason:
        return {"status": status}
    return {"status": status, "incomplete_details": {"reason": reason}}


def _is_time(value: Any) -> bool:
    return type(value) in {int, float} and abs(value) < 2**53  # up to which a float is exact


def _text(value: Any) -> str | None:
    return value if type(value) is str else None


# --- errors: response bodies, `error` events, and the error of a failed response


def decode_error(
    status: int | None, body: Any, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """Decode the error in a body or, without a status, in an event or a failed response.

    Never raises. A `response.failed` event has its error inside its `response`.
    """
    return decode_failure(status, _failed_response(body), headers)


def encode_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """The status and body for an error; mid-stream, its `error` is sent in the event."""
    return encode_failure(error)


def _failed_response(body: Any) -> Any:
    """The response in a lifecycle event; anything else unchanged."""
    opened = body
    if isinstance(body, (bytes, bytearray, memoryview, str)):
        try:
            opened = loads(body)
        except InvalidInputError:
            return body
    response = opened.get("response") if isinstance(opened, Mapping) else None
    return response if isinstance(response, Mapping) else opened
