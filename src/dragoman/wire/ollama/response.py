"""Responses of `/api/chat`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from dragoman.errors import InvalidInputError, WireError
from dragoman.model.derived_ids import response_identity
from dragoman.model.events import ChoiceFinish
from dragoman.model.messages import Message
from dragoman.model.parts import Origin
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.wire import overlay
from dragoman.wire.call_ids import CallIds
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.ollama.assistant import decode_assistant, encode_assistant
from dragoman.wire.ollama.exchange import Incoming, Outgoing
from dragoman.wire.ollama.finish import decode_finish, encode_finish
from dragoman.wire.ollama.messages import FORM
from dragoman.wire.ollama.spelling import NAME, is_list, is_own, kept, laid
from dragoman.wire.ollama.times import decode_time, encode_time
from dragoman.wire.ollama.usage import decode_usage, encode_usage
from dragoman.wire.tolerance import readable_answer, with_shapes

NOTHING: Mapping[str, Any] = {"role": "assistant", "content": ""}
"""The message that says nothing."""
_ASSISTANT = Role.ASSISTANT


def decode_response(body: Body) -> Response:
    """The response in a body."""
    wire = overlay.parsed(body, NAME)
    message = overlay.want(wire, "message", dict, NAME, "$")
    try:
        return _decode(wire, message)
    except InvalidInputError as error:
        problem = str(error)
    # Outside the handler: the model's error, which says the same, is not its context.
    raise WireError(problem, dialect=NAME, path="$")


def _decode(wire: Mapping[str, Any], message: dict[str, Any]) -> Response:
    known, written = {"message"}, dict[str, Any]()
    model, created = wire.get("model"), decode_time(wire.get("created_at"))
    if isinstance(model, str):
        known.add("model")
    else:
        model, written["model"] = None, ""
    note_time(wire, created, known, written)
    usage = decode_usage(wire, known)
    calls = CallIds(response_identity(None, created, model))
    choice = _decode_choice(wire, message, Incoming(None, calls), known, written)
    said = replace(
        choice.message,
        origin=Origin(dialect=NAME, model=model),
        usage=usage and usage.counts,
        finish=choice.finish,
    )
    return Response(
        choices=(replace(choice, message=said),),
        usage=usage,
        model=model,
        created_at=created,
        extras=kept(wire, known, written),
    )


def note_time(
    wire: Mapping[str, Any], created: float | None, known: set[str], written: dict[str, Any]
) -> None:
    """Have the time kept as it was written, which is finer than a number can tell."""
    ours = encode_time(created)
    if wire.get("created_at") == ours:
        known.add("created_at")
    else:
        written["created_at"] = ours


def _decode_choice(
    wire: Mapping[str, Any],
    message: dict[str, Any],
    incoming: Incoming,
    known: set[str],
    written: dict[str, Any],
) -> Choice:
    if type(message.get("content")) in FORM.kinds:
        said = decode_assistant(message, incoming)
    else:
        made, shapes = readable_answer(message, FORM)
        said = with_shapes(decode_assistant(made, incoming), NAME, shapes)
    is_done, raw, logprobs = wire.get("done"), wire.get("done_reason"), wire.get("logprobs")
    finish = decode_finish(raw, is_done=is_done is True, has_calls=bool(said.tool_calls))
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
    return Choice(0, said, finish, raw, logprobs if is_list(logprobs) else None)


def encode_response(response: Response) -> Encoded:
    """The body to answer with for a response."""
    choice = response.choices[0] if response.choices else None
    finish = None if choice is None else choice.finish
    out = Outgoing(is_response=True, is_cut_off=finish is not None and finish.is_cut_off)
    body: dict[str, Any] = {
        "model": response.model or "",
        "created_at": encode_time(response.created_at),
        "message": dict(NOTHING) if choice is None else _encode_message(choice.message, out),
        "done": True,
    }
    if choice is not None:
        body |= encode_end(choice, out, is_ours=is_own(choice.message.origin))
    if response.usage is not None:
        body |= encode_usage(response.usage)
    for index in range(1, len(response.choices)):
        out.lose(f"choices[{index}]", "there is one choice only")
    if response.id is not None:
        out.lose("id", "responses have no ids here")
    return Encoded(laid(body, response.extras), losses=tuple(out.losses),
                   repairs=tuple(out.repairs))  # fmt: skip


def _encode_message(message: Message, out: Outgoing) -> dict[str, Any]:
    if message.role is not _ASSISTANT:
        out.lose("choices[0].message.role", "only an assistant answers")
    body = encode_assistant(message, out, "choices[0].message")
    return dict(NOTHING) if body is None else body


def encode_end(choice: Choice | ChoiceFinish, out: Outgoing, *, is_ours: bool) -> dict[str, Any]:
    """What is said at the end of a choice, or by its `ChoiceFinish`."""
    path = "choices[0]"
    body: dict[str, Any] = {}
    reason = encode_finish(choice.finish, choice.finish_raw, out, path, is_ours=is_ours)
    if reason is not None:
        body["done_reason"] = reason
    if choice.logprobs is not None:
        if is_ours:
            body["logprobs"] = choice.logprobs
        else:
            out.lose(f"{path}.logprobs", "another dialect's probabilities are left out")
    return body
