"""Responses: what `generateContent` answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from dragoman.model.derived_ids import Identity, response_identity
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import make_message
from dragoman.model.parts import Origin
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.usage import FinishReason
from dragoman.wire.call_ids import CallIds
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.gemini.citations import decode_citations, encode_citations
from dragoman.wire.gemini.contents import Content, decode_content, encode_content
from dragoman.wire.gemini.finish import decode_finish, encode_finish, has_calls, has_word, is_own
from dragoman.wire.gemini.trace import (
    NAME,
    Trace,
    as_it_came,
    is_object,
    noted,
    snake_names,
    want_array,
)
from dragoman.wire.gemini.usage import decode_usage, encode_usage
from dragoman.wire.gemini.writing import Writing
from dragoman.wire.overlay import parsed
from dragoman.wire.tolerance import shaped_extras

_NAMES = snake_names("responseId", "modelVersion", "createTime", "usageMetadata")
CANDIDATE_NAMES = snake_names(
    "finishReason", "logprobsResult", "groundingMetadata", "citationMetadata"
)
_ASSISTANT = Role.ASSISTANT
WITHOUT_CONTENT = "bare"
"""The note that a candidate had no content at all: it was filtered, or its call malformed (W88)."""

BLOCKED = "blocked"
"""The note that there was no candidate at all: the prompt was blocked (W88)."""


def decode_response(body: Body) -> Response:
    """The response in a body; a blocked prompt is answered by an empty choice that says so."""
    trace = Trace()
    wire = trace.camel(dict(parsed(body, NAME)), _NAMES)
    model, response_id = wire.get("modelVersion"), wire.get("responseId")
    response = Response(
        model=model if type(model) is str else None,
        id=response_id if type(response_id) is str else None,
        created_at=decode_time(wire.get("createTime")),
        usage=decode_usage(wire.get("usageMetadata")),
    )
    origin = _origin(response)
    identity = response_identity(response.id, response.created_at, response.model)
    choices = _decode_candidates(wire.get("candidates"), origin, identity)
    taken = {"candidates"} if choices else set[str]()
    if not choices and (blocked := decode_blocked(wire, origin)) is not None:
        choices = (blocked,)
    if len(choices) == 1 and response.usage is not None:
        only = choices[0]
        choices = (only.replace(message=only.message.replace(usage=response.usage.counts)),)
    if response.usage is not None:
        taken.add("usageMetadata")
    left = {key: value for key, value in wire.items() if key not in taken}
    trace.compare(left, encode_head(response))
    return response.replace(choices=choices, extras=trace.extras())


def decode_blocked(wire: dict[str, Any], origin: Origin) -> Choice | None:
    """The choice that a blocked prompt has in place of candidates; None where it was not.

    It is no answer, but other dialects would take a response without any for an empty success.
    """
    feedback = wire.get("promptFeedback", wire.get("prompt_feedback"))
    if not is_object(feedback):
        return None
    reason = feedback.get("blockReason", feedback.get("block_reason"))
    if not reason:
        return None
    trace = Trace()
    trace.note(BLOCKED, True)  # noqa: FBT003 - the note's value
    finish = FinishReason.CONTENT_FILTER
    word = reason if type(reason) is str else None
    return Choice(0, make_message(_ASSISTANT, origin=origin, finish=finish), finish, word,
                  extras=trace.extras())  # fmt: skip


def encode_response(response: Response) -> Encoded:
    """The body for a response."""
    writing = Writing("choices[{}].message", is_response=True)
    body = encode_head(response)
    for index, choice in enumerate(response.choices):
        if choice.message.name is not None and not choice.message.parts:
            writing.lose(f"choices[{index}].message.name", "there is no message to carry it")
    if candidates := [
        _encode_candidate(choice, index, writing)
        for index, choice in enumerate(response.choices)
        if choice.message.parts or not noted(choice.extras, BLOCKED)
    ]:
        body["candidates"] = candidates
    if response.usage is not None:
        body["usageMetadata"] = encode_usage(response.usage)
    return Encoded(as_it_came(body, response.extras), losses=tuple(writing.losses),
                   repairs=tuple(writing.repairs))  # fmt: skip


def encode_head(response: Response) -> dict[str, Any]:
    """What a response says beside its candidates and its cost."""
    head: dict[str, Any] = {}
    if response.model is not None:
        head["modelVersion"] = response.model
    if response.id is not None:
        head["responseId"] = response.id
    if (created := encode_time(response.created_at)) is not None:
        head["createTime"] = created
    return head


def _origin(response: Response) -> Origin:
    return Origin(dialect=NAME, model=response.model, response_id=response.id)


def _decode_candidates(wire: Any, origin: Origin, identity: Identity) -> tuple[Choice, ...]:
    if wire is None:
        return ()
    listed = enumerate(want_array(wire, "$.candidates"))
    return tuple([_decode_candidate(item, index, identity, origin) for index, item in listed])


def _decode_candidate(wire: Any, position: int, identity: Identity, origin: Origin) -> Choice:
    if not is_object(wire):
        choice = decode_candidate({}, position, (_ASSISTANT, (), EMPTY), origin)
        return choice.replace(extras=shaped_extras(choice.extras, NAME, [[[], {}, wire]]))
    said: Content = (_ASSISTANT, (), EMPTY)
    if (content := wire.get("content")) is not None:
        index = wire.get("index")
        calls = CallIds(identity)
        calls.at(index if type(index) is int else position)
        said = decode_content(content, calls, _ASSISTANT, None)
    return decode_candidate(wire, position, said, origin)


def decode_candidate(
    wire: dict[str, Any], position: int, said: Content, origin: Origin | None
) -> Choice:
    """The choice in a candidate, the content of which has been read."""
    trace = Trace()
    fields = trace.camel(wire, CANDIDATE_NAMES)
    if fields.get("content") is None:
        trace.note(WITHOUT_CONTENT, True)  # noqa: FBT003 - the note's value
    role, parts, extras = said
    finish, word = decode_finish(fields.get("finishReason"), has_calls(parts))
    cited = decode_citations(fields, parts)
    message = make_message(role, cited, None, "", EMPTY, extras, origin, None, finish)
    index, logprobs = fields.get("index"), fields.get("logprobsResult")
    choice = Choice(
        index if type(index) is int else position,
        message,
        finish,
        word,
        logprobs,
    )
    left = {key: value for key, value in fields.items() if key != "content" or value is None}
    trace.compare(left, encode_verdict(choice))
    return choice.replace(extras=trace.extras())


def _encode_candidate(choice: Choice, position: int, writing: Writing) -> dict[str, Any]:
    message = choice.message
    body = encode_verdict(choice)
    lose_probabilities(choice, position, writing)
    place = f"choices[{position}]"
    is_told = has_word(choice.finish) or encode_finish(choice) == choice.finish_raw
    if is_own(message) and not is_told:
        writing.lose(f"{place}.finish", "this reason has no word here")
    if message.role is not _ASSISTANT:
        writing.lose(f"{place}.message.role", "only the model answers")
    if message.parts or not noted(choice.extras, WITHOUT_CONTENT):
        body["content"] = encode_content(message, position, writing)
    return as_it_came(body, choice.extras) if choice.extras else body


def encode_verdict(choice: Choice) -> dict[str, Any]:
    """What a candidate says beside its content."""
    body: dict[str, Any] = {"index": choice.index}
    if (finish := encode_finish(choice)) is not None:
        body["finishReason"] = finish
    if choice.logprobs is not None and is_own(choice.message):
        body["logprobsResult"] = choice.logprobs
    return body | encode_citations(choice.message.parts)


def lose_probabilities(choice: Choice, position: int, writing: Writing) -> None:
    """Note that another dialect's are left out."""
    if choice.logprobs is not None and not is_own(choice.message):
        place = f"choices[{position}].logprobs"
        writing.lose(place, "another dialect's probabilities are left out")


def decode_time(wire: Any) -> float | None:
    """The moment that `createTime` names; None where it is no moment."""
    if type(wire) is not str:
        return None
    try:
        moment = datetime.fromisoformat(wire)
        return moment.timestamp() if moment.tzinfo is not None else None
    except (ValueError, OverflowError, OSError):
        return None


def encode_time(created_at: float | None) -> str | None:
    """A moment as `createTime` has it."""
    if created_at is None:
        return None
    try:
        moment = datetime.fromtimestamp(created_at, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.replace(tzinfo=None).isoformat() + "Z"
