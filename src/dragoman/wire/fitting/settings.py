"""Settings that the target does not take: sampling, the form of the answer, and marks on tools."""

from __future__ import annotations

from typing import Any

from dragoman.model.requests import AnyTool, Output, Request, ThinkingConfig
from dragoman.model.tools import ToolDefinition
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.target import Target

# What each setting is where nobody sets it: saying so is refused by no one.
USUAL: dict[str, Any] = {
    "temperature": 1,
    "top_p": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "choices": 1,
    "logprobs": False,
}


_ONE_OF_TWO = "it is as it would be anyway, and this model takes only one of the two"


def with_accepted_settings(request: Request, target: Target, losses: list[Note]) -> Request:
    """The request without settings that the target would refuse."""
    request = _with_accepted_sampling(request, target, losses)
    if target.refuses_temperature_with_top_p:
        request = _with_one_of_two(request, losses)
    if request.output is not None and request.output.format not in target.outputs:
        request = request.replace(output=_output(request.output, target, losses))
    if not target.takes_strict_tools:
        tools = tuple(_loose(tool, index, losses) for index, tool in enumerate(request.tools))
        if any(new is not old for new, old in zip(tools, request.tools, strict=True)):
            request = request.replace(tools=tools)
    choice = request.tool_choice
    if choice is not None and choice.parallel is not None and not target.takes_parallel_choice:
        if choice.parallel:  # as it would be anyway
            losses.append(Repair("tool_choice.parallel", "W12", "dropped", "it can't be told here"))
        else:
            losses.append(Loss("tool_choice.parallel", "how many calls at once can't be told"))
        request = request.replace(tool_choice=choice.replace(parallel=None))
    return request


def asks_to_think(config: ThinkingConfig | None, target: Target) -> bool:
    """Whether the model is going to think, as far as can be told."""
    if config is None:
        return target.thinks_by_default
    if is_told_not_to_think(config):
        return False
    said = (config.enabled, config.effort, config.budget)
    return target.thinks_by_default or any(one is not None for one in said)


def is_told_not_to_think(config: ThinkingConfig | None) -> bool:
    """Whether thinking is switched off."""
    return config is not None and (config.enabled is False or config.effort == "none")


def _with_accepted_sampling(request: Request, target: Target, losses: list[Note]) -> Request:
    refused = target.refused_sampling
    if target.refused_sampling_thinking and asks_to_think(request.thinking, target):
        refused += target.refused_sampling_thinking
    sampling = request.sampling
    changes: dict[str, Any] = {}
    for name in dict.fromkeys(refused):
        value = getattr(sampling, name)
        if value is None or value == () or (name in USUAL and value == USUAL[name]):
            continue
        changes[name] = () if name == "stop" else None
        losses.append(Loss(f"sampling.{name}", "this model does not take it"))
    return request.replace(sampling=sampling.replace(**changes)) if changes else request


def _with_one_of_two(request: Request, losses: list[Note]) -> Request:
    """The request with a temperature or with `top_p`: what is as it would be anyway goes first."""
    sampling = request.sampling
    if sampling.temperature is None or sampling.top_p is None:
        return request
    if sampling.temperature == USUAL["temperature"]:
        losses.append(Repair("sampling.temperature", "W59", "dropped", _ONE_OF_TWO))
        return request.replace(sampling=sampling.replace(temperature=None))
    if sampling.top_p == USUAL["top_p"]:
        losses.append(Repair("sampling.top_p", "W59", "dropped", _ONE_OF_TWO))
    else:
        losses.append(Loss("sampling.top_p", "this model takes it or a temperature, not both"))
    return request.replace(sampling=sampling.replace(top_p=None))


def _output(output: Output, target: Target, losses: list[Note]) -> Output | None:
    if output.format == "schema" and "json" in target.outputs:
        losses.append(Loss("output.schema", "only JSON of any form can be asked for here"))
        return Output(format="json")
    if output.format == "text":  # as it would be anyway
        losses.append(Repair("output", "W108", "dropped", "it can't be told here"))
    else:
        losses.append(Loss("output", "no form of the answer can be asked for here"))
    return None


def _loose(tool: AnyTool, index: int, losses: list[Note]) -> AnyTool:
    if not isinstance(tool, ToolDefinition) or tool.strict is not True:
        return tool
    losses.append(Loss(f"tools[{index}].strict", "tools can't be strict here"))
    return tool.replace_unchecked(strict=None)
