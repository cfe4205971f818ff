"""How the answer should be: sampling, format, reasoning, and what the provider remembers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.requests import Output, Request, Sampling, State, ThinkingConfig
from dragoman.wire.losses import Loss
from dragoman.wire.openai_responses.content_forms import present
from dragoman.wire.openai_responses.dialect import NAME, ORIGIN
from dragoman.wire.openai_strict_schemas import openai_profiles
from dragoman.wire.overlay import fields_of, note_of
from dragoman.wire.schemas import SentSchemas
from dragoman.wire.target import Target

_EXACT = 2**53  # whole numbers below it survive being stored as a double
_LOGPROBS = "message.output_text.logprobs"
_SEALED = "reasoning.encrypted_content"
UNASKED = "unasked"
"""Among a request's extras: see `is_unasked`."""
_FORMATS = {"text": "text", "json": "json_object"}
_UNKNOWN = ("top_k", "stop", "seed", "presence_penalty", "frequency_penalty", "choices")


def _typed(wire: Mapping[str, Any], key: str, *kinds: type) -> Any:
    """The value of a field; None where it is not of one of these types."""
    value = wire.get(key)
    return value if type(value) in kinds else None


def _number(wire: Mapping[str, Any], key: str) -> float | None:
    value: float | None = _typed(wire, key, int, float)
    return value if value is not None and -_EXACT < value < _EXACT else None


def _exact(number: float | None) -> float | None:
    """A whole number without its fraction: stored, 1 becomes 1.0; the overlay tells them apart."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


# --- sampling


def decode_sampling(wire: Mapping[str, Any]) -> Sampling:
    """How the answer is drawn."""
    include = wire.get("include")
    wants_logprobs = isinstance(include, list) and _LOGPROBS in include
    return Sampling(
        max_tokens=_typed(wire, "max_output_tokens", int),
        temperature=_number(wire, "temperature"),
        top_p=_number(wire, "top_p"),
        logprobs=True if wants_logprobs else None,
        top_logprobs=_typed(wire, "top_logprobs", int),
    )


def encode_sampling(request: Request, losses: list[Loss]) -> dict[str, Any]:
    """The fields of a request that say how the answer is drawn."""
    sampling = request.sampling
    losses.extend(
        Loss(f"sampling.{name}", "this dialect has no such setting")
        for name in _UNKNOWN
        if getattr(sampling, name) not in {None, ()}
    )
    fields = {
        "max_output_tokens": sampling.max_tokens,
        "temperature": _exact(sampling.temperature),
        "top_p": _exact(sampling.top_p),
        "top_logprobs": sampling.top_logprobs,
    }
    return present(fields)


def is_unasked(wire: Mapping[str, Any]) -> bool:
    """Whether a body has nothing stored, and yet does not ask for sealed reasoning."""
    include = wire.get("include")
    is_asked = isinstance(include, list) and _SEALED in include
    return wire.get("store") is False and not is_asked


def is_stored(request: Request) -> bool:
    """Whether the provider keeps what it is sent; the word in the extras is the last one."""
    store = request.state.store if request.state is not None else None
    return fields_of(request.extras, NAME).get("store", store) is not False


def encode_include(request: Request) -> dict[str, Any]:
    """The field of a request that says what should come along, besides what it asked for.

    Where nothing is stored, reasoning can be replayed only if it comes sealed (W25, W26).
    """
    own = fields_of(request.extras, NAME)
    given = own.get("include")
    known = list(given) if isinstance(given, (list, tuple)) else []
    wanted = [_LOGPROBS] if request.sampling.logprobs else []
    if not is_stored(request) and not note_of(request.extras, NAME, UNASKED):
        wanted.append(_SEALED)
    kept = [name for name in known if name != _LOGPROBS or name in wanted]
    asked = [*kept, *(name for name in wanted if name not in known)]
    return {"include": asked} if asked or known else {}


# --- the form of the answer


def decode_output(wire: Mapping[str, Any]) -> Output | None:
    """The format, if it is one of ours; else it stays as it is."""
    text = wire.get("text")
    format_ = text.get("format") if isinstance(text, dict) else None
    if not isinstance(format_, dict):
        return None
    match format_.get("type"):
        case "text":
            return Output()
        case "json_object":
            return Output(format="json")
        case "json_schema":
            return _decode_schema(format_)
        case _:
            return None


def _decode_schema(wire: dict[str, Any]) -> Output | None:
    schema, name = wire.get("schema"), _typed(wire, "name", str)
    if not isinstance(schema, dict) or name is None:
        return None
    return Output(
        format="schema",
        schema=schema,
        name=name,
        description=_typed(wire, "description", str),
        strict=_typed(wire, "strict", bool),
        origin=ORIGIN,
    )


def encode_output(output: Output | None, target: Target, schemas: SentSchemas) -> dict[str, Any]:
    """The field of a request that says the form of the answer."""
    if output is None:
        return {}
    if output.format != "schema":
        return _formatted({"type": _FORMATS[output.format]}, target)
    schema: Mapping[str, Any] = output.schema or EMPTY
    strict = output.strict
    if output.origin is None or output.origin.dialect != NAME:
        schema, is_strict = schemas.output(output, openai_profiles(target))
        strict = None if strict and not is_strict else strict
    fields = {
        "type": "json_schema",
        "name": "answer" if output.name is None else output.name,
        "schema": schema,
        "description": output.description,
        "strict": strict,
    }
    return _formatted(present(fields), target)


def _formatted(form: dict[str, Any], target: Target) -> dict[str, Any]:
    """The form of the answer where the target looks for it."""
    body: dict[str, Any] = {"text": {"format": form}}
    if target.schemas.uses_chat_format and form["type"] != "text":
        body["response_format"] = _chat_format(form)
    return body


def _chat_format(form: dict[str, Any]) -> dict[str, Any]:
    """As Chat has it: a schema in an object of its own."""
    inner = {key: value for key, value in form.items() if key != "type"}
    return {"type": form["type"], **({"json_schema": inner} if inner else {})}


# --- reasoning


def decode_thinking(wire: Mapping[str, Any]) -> ThinkingConfig | None:
    """How hard to think, if the request says so."""
    reasoning = wire.get("reasoning")
    if not isinstance(reasoning, dict):
        return None
    effort, summary = _typed(reasoning, "effort", str), _typed(reasoning, "summary", str)
    if effort is None and summary is None:
        return None
    return ThinkingConfig(effort=effort, summary=summary)


def encode_thinking(thinking: ThinkingConfig | None, losses: list[Loss]) -> dict[str, Any]:
    """The field of a request that says how hard to think."""
    if thinking is None:
        return {}
    if thinking.budget is not None:
        losses.append(Loss("thinking.budget", "this dialect knows efforts, not budgets"))
    effort, summary = thinking.effort, thinking.summary
    if thinking.enabled is False:
        effort = "none"
    elif thinking.enabled and effort is None:
        losses.append(Loss("thinking.enabled", "this dialect knows how hard to think, not whether"))
    if thinking.visible is False:
        summary = None
    elif summary is None and thinking.visible:
        summary = "auto"
    body = present({"effort": effort, "summary": summary})
    return {"reasoning": body} if body else {}


# --- what the provider remembers


def decode_state(wire: Mapping[str, Any]) -> State | None:
    """What the request continues, and whether it is kept; a conversation may be an object."""
    state = State(
        previous_response_id=_typed(wire, "previous_response_id", str),
        conversation=_id_of(wire.get("conversation")),
        prompt=_id_of(wire.get("prompt")),
        store=_typed(wire, "store", bool),
    )
    return None if state == State() else state


def _id_of(value: Any) -> str | None:
    """The id of something that is given by it, or as an object that has it."""
    found = value.get("id") if isinstance(value, dict) else value
    return found if type(found) is str else None


def encode_state(request: Request, came: Any = None) -> dict[str, Any]:
    """The fields of a request that say what it continues, and whether it is kept.

    `came` is the conversation as it came: one that held more than its id stays an object.
    """
    state = request.state
    if state is None:
        return {}
    conversation: Any = state.conversation
    if conversation is not None and isinstance(came, Mapping) and came.keys() != {"id"}:
        conversation = {"id": conversation}
    fields = {
        "previous_response_id": state.previous_response_id,
        "conversation": conversation,
        "prompt": None if state.prompt is None else {"id": state.prompt},
        "store": state.store,
    }
    return present(fields)
