"""Responses of `/chat/completions`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from dragoman.errors import InvalidInputError, WireError
from dragoman.model.derived_ids import response_identity
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Origin
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.usage import Usage
from dragoman.wire import overlay
from dragoman.wire.call_ids import CallIds
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.openai_chat.assistant import decode_assistant, encode_assistant
from dragoman.wire.openai_chat.exchange import Incoming, Outgoing
from dragoman.wire.openai_chat.finish import decode_finish, encode_finish
from dragoman.wire.openai_chat.messages import FORM
from dragoman.wire.openai_chat.spelling import (
    NAME,
    absent,
    is_integer,
    is_object,
    is_own,
    laid,
    left_over,
    without_absent,
)
from dragoman.wire.openai_chat.usage import decode_usage, encode_usage
from dragoman.wire.tolerance import readable_answer, shaped_extras, with_shapes

_OBJECT = "chat.completion"
_ASSISTANT = Role.ASSISTANT
_SAFE_INTEGER = 2**53  # what a float holds exactly


def decode_response(body: Body) -> Response:
    """The response in a body."""
    wire = overlay.parsed(body, NAME)
    choices = overlay.want(wire, "choices", list, NAME, "$")
    try:
        return _decode(wire, choices)
    except InvalidInputError as error:
        problem = str(error)
    # Outside the handler: the model's error, which says the same, is not its context.
    raise WireError(problem, dialect=NAME, path="$")


def _decode(wire: Mapping[str, Any], choices: list[Any]) -> Response:
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
        extras=left_over(wire, used, absent(used, "id", "object", "created", "model")),
        **texts,
    )


def encode_response(response: Response) -> Encoded:
    """The body to answer with for a response."""
    out = Outgoing(is_response=True)
    body: dict[str, Any] = {
        "id": response.id or "",
        "object": _OBJECT,
        "created": int(response.created_at or 0),
        "model": response.model or "",
    }
    said = {key: body[key] for key in ("id", "created", "model") if body[key]}
    body = {**without_absent(body, response.extras), **said}  # it may have been set since
    body["choices"] = [
        _encode_choice(choice, out, f"choices[{index}]")
        for index, choice in enumerate(response.choices)
    ]
    if response.usage is not None:
        body["usage"] = encode_usage(response.usage)
    return Encoded(
        laid(body, response.extras), losses=tuple(out.losses), repairs=tuple(out.repairs)
    )


def _decode_choice(
    wire: Any, position: int, origin: Origin, usage: Usage | None, calls: CallIds
) -> Choice:
    if not is_object(wire):
        choice = _decode_choice({}, position, origin, usage, calls)
        return replace(choice, extras=shaped_extras(choice.extras, NAME, [[[], {}, wire]]))
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
    message = _decode_message(wire, Incoming(None, calls), used)
    return Choice(
        number,
        replace(message, origin=origin, usage=usage and usage.counts, finish=finish),
        finish,
        raw if isinstance(raw, str) else None,
        logprobs,
        left_over(wire, used, absent(used, "index", "message")),
    )


def _encode_choice(choice: Choice, out: Outgoing, path: str) -> dict[str, Any]:
    message, is_ours = choice.message, is_own(choice.message.origin)
    out.is_cut_off = choice.finish is not None and choice.finish.is_cut_off
    body: dict[str, Any] = {
        "index": choice.index,
        "message": _encode_message(message, out, f"{path}.message", is_ours=is_ours),
    }
    finish = encode_finish(
        choice.finish,
        choice.finish_raw,
        out,
        path,
        is_ours=is_ours,
        has_calls=bool(message.tool_calls),
    )
    if finish is not None or not is_ours:
        body["finish_reason"] = finish
    if not is_ours:
        body["logprobs"] = None
        if choice.logprobs is not None:
            out.lose(f"{path}.logprobs", "another dialect's probabilities are left out")
    elif choice.logprobs is not None:
        body["logprobs"] = choice.logprobs
    said = {"message": body["message"]} if message.parts else {}
    return laid({**without_absent(body, choice.extras), **said}, choice.extras)


def _decode_message(wire: dict[str, Any], incoming: Incoming, used: set[str]) -> Message:
    message = wire.get("message")
    if not is_object(message):
        return make_message(_ASSISTANT)  # Azure's filter leaves none
    used.add("message")
    if type(message.get("content")) in FORM.kinds:
        return decode_assistant(message, incoming, is_response=True)
    made, shapes = readable_answer(message, FORM)
    return with_shapes(decode_assistant(made, incoming, is_response=True), NAME, shapes)


def _encode_message(message: Message, out: Outgoing, path: str, *, is_ours: bool) -> dict[str, Any]:
    if message.role is not _ASSISTANT:
        out.lose(f"{path}.role", "only an assistant answers")
    body = encode_assistant(message, out, path)
    if not is_ours:  # every client expects them, null or not
        body.setdefault("content", None)
        body.setdefault("refusal", None)
    return body
