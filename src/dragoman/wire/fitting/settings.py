"""Removes settings that the target refuses: sampling, output format, strict tools, state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

from dragoman.model.messages import Message
from dragoman.model.parts import Opaque, Text
from dragoman.model.requests import AnyTool, Output, Request, State
from dragoman.model.tools import ToolDefinition
from dragoman.wire.dialect import description_of
from dragoman.wire.fitting.steps import Step, unless_same
from dragoman.wire.fitting.thinking_settings import will_think
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.target import Target

# The default of each setting, which no target refuses.
DEFAULTS: dict[str, Any] = {
    "temperature": 1,
    "top_p": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "choices": 1,
    "logprobs": False,
}


Ranges = Mapping[str, tuple[int, int]]
"""The least and the greatest value of sampling settings, by their names in the model."""

_NO_LIMIT = "a negative limit means none"
_JSON = "Respond with a single JSON object, and nothing else: no explanation and no code fence."
_UNSUPPORTED_DEFAULT = "not supported, and the default anyway"
_ONE_OF_TWO = "has its default value, and this model accepts only one of temperature and top_p"


def with_supported_settings(request: Request, target: Target, notes: list[Note]) -> Request:
    """Remove settings that the target would refuse."""
    request = _with_accepted_sampling(request, target, notes)
    if target.sampling.refuses_temperature_with_top_p:
        request = _with_one_of_two(request, notes)
    least, cap = target.sampling.min_output_tokens, request.sampling.max_tokens
    if cap is not None and cap < 0 and target.is_strict:
        notes.append(Repair("sampling.max_tokens", "W50", "dropped", _NO_LIMIT))
        cap, request = None, _with_sampling(request, max_tokens=None)
    if least and cap is not None and cap < least:
        notes.append(Loss("sampling.max_tokens", "raised to the target's minimum"))
        request = _with_sampling(request, max_tokens=least)
    if request.output is not None and request.output.format not in target.schemas.outputs:
        request = _with_other_output(request, request.output, target, notes)
    if not target.schemas.takes_strict_tools:
        loose = [_loose(tool, index, notes) for index, tool in enumerate(request.tools)]
        tools = unless_same(loose, request.tools)
        request = request if tools is request.tools else request.replace_trusted(tools=tools)
    choice = request.tool_choice
    if (
        choice is not None
        and choice.parallel is not None
        and not target.tools.takes_parallel_choice
    ):
        if choice.parallel:  # the default
            notes.append(Repair("tool_choice.parallel", "W12", "dropped", _UNSUPPORTED_DEFAULT))
        else:
            notes.append(Loss("tool_choice.parallel", "parallel calls can't be disabled"))
        request = request.replace_trusted(tool_choice=choice.replace(parallel=None))
    return request


def _with_accepted_sampling(request: Request, target: Target, notes: list[Note]) -> Request:
    refused = target.sampling.refused
    if target.sampling.refused_while_thinking and will_think(request.thinking, target):
        refused += target.sampling.refused_while_thinking
    if not refused:
        return request
    sampling = request.sampling
    changes: dict[str, Any] = {}
    for name in dict.fromkeys(refused):
        value = getattr(sampling, name)
        if value is None or value == () or (name in DEFAULTS and value == DEFAULTS[name]):
            continue
        changes[name] = () if name == "stop" else None
        notes.append(Loss(f"sampling.{name}", "not supported by this model"))
    return _with_sampling(request, **changes) if changes else request


def _with_sampling(request: Request, **changes: Any) -> Request:
    return request.replace_trusted(sampling=request.sampling.replace_trusted(**changes))


def sampling_within(ranges: Ranges) -> Step[Request]:
    """A dialect's own step: sampling settings out of range become the nearest bound."""

    def fit(request: Request, _target: Target, notes: list[Note]) -> Request:
        changes: dict[str, Any] = {}
        for name, (low, high) in ranges.items():
            value = getattr(request.sampling, name)
            if value is None or low <= value <= high:
                continue
            changes[name] = low if value < low else high
            is_low = value < low
            how = f"raised to {low}, the minimum" if is_low else f"lowered to {high}, the maximum"
            notes.append(Loss(f"sampling.{name}", how))
        return _with_sampling(request, **changes) if changes else request

    return Step(fit, ("is_strict",), lambda _, target: target.is_strict)


def _with_one_of_two(request: Request, notes: list[Note]) -> Request:
    """Keep either temperature or `top_p`; one with its default value is dropped first."""
    sampling = request.sampling
    if sampling.temperature is None or sampling.top_p is None:
        return request
    if sampling.temperature == DEFAULTS["temperature"]:
        notes.append(Repair("sampling.temperature", "W59", "dropped", _ONE_OF_TWO))
        return _with_sampling(request, temperature=None)
    if sampling.top_p == DEFAULTS["top_p"]:
        notes.append(Repair("sampling.top_p", "W59", "dropped", _ONE_OF_TWO))
    else:
        notes.append(Loss("sampling.top_p", "this model accepts temperature or top_p, not both"))
    return _with_sampling(request, top_p=None)


def _with_other_output(
    request: Request, output: Output, target: Target, notes: list[Note]
) -> Request:
    """Ask for another format, or for JSON in words."""
    if output.format == "json":
        notes.append(Repair("output", "W108", "moved", "JSON is asked for in the system prompt"))
        return request.replace_trusted(output=None, system=(*request.system, Text(_JSON)))
    return request.replace_trusted(output=_output(output, target, notes))


def _output(output: Output, target: Target, notes: list[Note]) -> Output | None:
    if output.format == "schema" and "json" in target.schemas.outputs:
        notes.append(
            Loss("output.schema", "output schemas are not supported; any JSON is requested")
        )
        return Output(format="json")
    if output.format == "text":  # the default
        notes.append(Repair("output", "W108", "dropped", _UNSUPPORTED_DEFAULT))
    else:
        notes.append(Loss("output", "output formats are not supported"))
    return None


def _loose(tool: AnyTool, index: int, notes: list[Note]) -> AnyTool:
    if not isinstance(tool, ToolDefinition) or tool.strict is not True:
        return tool
    notes.append(Loss(f"tools[{index}].strict", "strict tools are not supported"))
    return tool.replace_unchecked(strict=None)


_STORE = "store"
_HELD_ELSEWHERE = "stored by another provider; send the whole conversation instead"
_NOT_STORED = "this dialect has no setting for storing responses"
_ALL_ELSEWHERE = "the whole conversation is stored by another provider"
_STANDS_FOR_MORE = frozenset({"item_reference", "compaction"})


def with_supported_state(request: Request, target: Target, notes: list[Note]) -> Request:
    """Remove state that the target doesn't support."""
    state = request.state
    if state is None:
        return request
    foreign = [
        name
        for name in State.__struct_fields__
        if getattr(state, name) is not None and name not in target.state.fields
    ]
    if not foreign:
        return request
    for name in foreign:
        reason = _NOT_STORED if name == _STORE else _HELD_ELSEWHERE
        notes.append(Loss(f"state.{name}", reason))
    left = state.replace(**dict.fromkeys(foreign))
    return request.replace_trusted(state=None if left == State() else left)


def has_hidden_context(request: Request, messages: Iterable[Message], target: Target) -> bool:
    """Whether the target stores calls or results that are not in the request."""
    state = request.state
    if state is not None and any(
        getattr(state, name) for name in target.state.fields if name != _STORE
    ):
        return True
    return any(
        _stands_for_more(part) and part.dialect == target.dialect
        for message in messages
        for part in message.parts
    )


def missing_conversation(request: Request, target: Target) -> str | None:
    """Why another dialect's request has no conversation to send; None if it has one."""
    spoken = [message for message in request.messages if not message.role.is_system]
    state, here = request.state or State(), target.dialect
    held = [
        name
        for name in State.__struct_fields__
        if name not in {_STORE, *target.state.fields} and getattr(state, name) is not None
    ]
    if held and not spoken:
        return f"{_ALL_ELSEWHERE} (state.{held[0]}); send its messages instead"
    parts = [part for message in spoken for part in message.parts]
    if parts and all(_stands_for_more(part) and part.dialect != here for part in parts):
        return f"{_ALL_ELSEWHERE} (references and summaries); send its messages instead"
    is_foreign = here not in request.extras and any(map(description_of, request.extras))
    if is_foreign and not request.messages and not request.system:
        return "the request has no messages; a conversation needs at least one"
    return None


def _stands_for_more(part: object) -> TypeGuard[Opaque]:
    """Whether a part is a reference, typed or not, or a summary of earlier messages."""
    if not isinstance(part, Opaque):
        return False
    payload = part.payload
    if not isinstance(payload, Mapping):
        return False
    kind = payload.get("type")
    return payload.keys() == {"id"} if kind is None else kind in _STANDS_FOR_MORE
