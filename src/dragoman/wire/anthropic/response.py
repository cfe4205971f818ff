"""Responses."""

from __future__ import annotations

from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import response_identity
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Origin, Refusal
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.anthropic.context import NAME, Block, Decoding, Encoding, is_ours
from dragoman.wire.anthropic.parts import decode_part, encode_parts
from dragoman.wire.anthropic.usage import (
    decode_finish,
    decode_usage,
    encode_finish,
    encode_usage,
    is_failure,
)
from dragoman.wire.call_ids import CallIds
from dragoman.wire.encoded import Encoded
from dragoman.wire.overlay import difference, laid_over, want
from dragoman.wire.tolerance import shaped_extras

_NO_WORD = "this reason has no word here"
_ASSISTANT = Role.ASSISTANT
_REFUSAL = FinishReason.REFUSAL
_CALLS = FinishReason.TOOL_CALLS
_STOP = FinishReason.STOP


def decode_response(wire: Block) -> Response:
    """The response in a body."""
    content = want(wire, "content", list, NAME, "$")
    response_id, model, reason = wire.get("id"), wire.get("model"), wire.get("stop_reason")
    response_id = response_id if type(response_id) is str else None
    model = model if type(model) is str else None
    finish, usage = decode_finish(reason), decode_usage(wire.get("usage"))
    calls = CallIds(response_identity(response_id, None, model))
    context = Decoding(None, calls)  # the message's origin is its parts' too
    message = make_message(
        _ASSISTANT,
        tuple([decode_part(block, context) for block in content]) + _decode_refusal(wire),
        origin=Origin(dialect=NAME, model=model, response_id=response_id),
        usage=usage and usage.counts,
        finish=finish,
    )
    choice = Choice(0, message, finish, reason if finish is not None else None)
    response = Response(choices=(choice,), usage=usage, model=model, id=response_id)
    rebuilt = _fields(response, choice)
    rebuilt["content"] = content
    extras = difference(wire, rebuilt, NAME)
    absent = [[[key], ours] for key, ours in rebuilt.items() if key not in wire]
    extras = shaped_extras(extras, NAME, absent)
    return response.replace(extras=extras) if extras else response


def encode_response(response: Response) -> Encoded:
    """The body for a response: of its first choice, since there is only one here."""
    context = Encoding("choices[0].message.parts[{1}]")
    for index in range(1, len(response.choices)):
        context.lose_at(f"choices[{index}]", "there is one choice only")
    choice = response.choices[0] if response.choices else Choice(0, make_message(_ASSISTANT))
    if choice.logprobs is not None:
        context.lose_at("choices[0].logprobs", "there are no log probabilities here")
    if choice.message.name is not None:
        context.lose_at("choices[0].message.name", "messages carry no names here")
    if choice.message.role is not _ASSISTANT:
        context.lose_at("choices[0].message.role", "only an assistant answers")
    if is_ours(choice.message.origin) and not _is_told(choice):
        context.lose_at("choices[0].finish", "this reason has no word here")
    if is_failure(choice.finish) and not is_ours(choice.message.origin):
        context.lose_at("choices[0].finish", _NO_WORD)
    body = _fields(response, choice)
    context.origin = choice.message.origin
    body["content"] = encode_parts(_content(choice.message), context)
    body = laid_over(body, response.extras, NAME)
    if not is_ours(choice.message.origin):
        _complete(body, choice.message)
    return Encoded(body, losses=tuple(context.losses), repairs=tuple(context.repairs))


def _fields(response: Response, choice: Choice) -> Block:
    """All of a body but its content."""
    body: Block = {"type": "message", "role": "assistant"}
    if response.id is not None:
        body["id"] = response.id
    if response.model is not None:
        body["model"] = response.model
    reason = _stop_reason(choice)
    if reason is not None:
        body["stop_reason"] = reason
    refusal = _refusal(choice.message)
    if refusal:
        body["stop_details"] = {"type": "refusal", "explanation": refusal}
    usage = response.usage
    if usage is None and not is_ours(choice.message.origin):
        usage = choice.message.usage
    if usage is not None:
        body["usage"] = encode_usage(usage)
    return body


def _complete(body: Block, message: Message) -> None:
    """Fill in what clients count on and another dialect's response may not have."""
    body.setdefault("id", message.id)
    body.setdefault("model", "")
    body.setdefault("stop_reason", None)
    body.setdefault("stop_sequence", None)
    body.setdefault("usage", encode_usage(Usage()))


def _is_told(choice: Choice) -> bool:
    """Whether the wire has a word for why it ended; calls and refusals tell themselves."""
    finish = choice.finish
    plain = finish in {None, _STOP, _CALLS, _REFUSAL}
    return plain or decode_finish(_stop_reason(choice)) is finish


def _stop_reason(choice: Choice) -> str | None:
    is_own = is_ours(choice.message.origin)
    if is_own and choice.finish_raw is not None:
        if decode_finish(choice.finish_raw) is choice.finish:
            return choice.finish_raw
        return None if choice.finish is None else encode_finish(choice.finish)
    finish = told_finish(choice.finish or choice.message.finish, bool(choice.message.tool_calls))
    if _refusal(choice.message) and not (is_own and finish is None):
        return encode_finish(_REFUSAL)
    return None if finish is None else encode_finish(finish)


def told_finish(finish: FinishReason | None, has_calls: bool) -> FinishReason | None:  # noqa: FBT001 - a fact, not an option
    """Why a message of another provider ended: one with calls to run waits for them (W11)."""
    return _CALLS if has_calls and finish is FinishReason.STOP else finish


def _decode_refusal(wire: Block) -> tuple[AnyPart, ...]:
    """The words of a refusal, which stand beside the content here (I15)."""
    details: Any = wire.get("stop_details")
    if isinstance(details, dict) and details.get("type") == "refusal":
        explanation = details.get("explanation")
        if type(explanation) is str and explanation:
            return (Refusal(explanation),)
    return ()


def _refusal(message: Message) -> str:
    """As `_decode_refusal`, the other way."""
    return "\n".join(part.text for part in message.parts if isinstance(part, Refusal))


def _content(message: Message) -> tuple[AnyPart, ...]:
    return tuple(part for part in message.parts if not isinstance(part, Refusal))
