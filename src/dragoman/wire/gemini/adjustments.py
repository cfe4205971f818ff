"""Settings that a target would refuse together, or in the form that they have."""

from __future__ import annotations

from dragoman.model.requests import AnyTool, Request, ThinkingConfig
from dragoman.model.tools import ServerTool, ToolDefinition
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.target import Target

_LITTLE = "low"  # the least that all models with levels know


def adjusted(request: Request, target: Target, losses: list[Note]) -> Request:
    """The request with settings that the target takes, and takes together."""
    request = _with_agreed_tools(request, target, losses)
    if target.is_strict:
        request = _with_useful_choice(request, target, losses)
    if target.is_strict and request.thinking is not None:
        request = _with_one_measure(request, request.thinking, target, losses)
    if target.refuses_json_with_tools and request.tools and request.output is not None:
        reason = "this model answers in JSON or calls tools, not both"
        if request.output.format != "text":
            losses.append(Loss("output", reason))
        else:
            losses.append(Repair("output", "W97", "dropped", reason))
        return request.replace(output=None)
    return request


def _is_function(tool: AnyTool) -> bool:
    return isinstance(tool, ToolDefinition) and tool.kind == "function"


def _with_agreed_tools(request: Request, target: Target, losses: list[Note]) -> Request:
    """Functions only, where the target does not take its own tools beside them (W97)."""
    if not target.refuses_mixed_tools or not any(map(_is_function, request.tools)):
        return request
    others = [i for i, tool in enumerate(request.tools) if isinstance(tool, ServerTool)]
    if not others:
        return request
    reason = "this model calls functions or its provider's tools, not both"
    losses.extend(Loss(f"tools[{index}]", reason) for index in others)
    kept = tuple(tool for tool in request.tools if not isinstance(tool, ServerTool))
    return request.replace(tools=kept)


def _with_useful_choice(request: Request, target: Target, losses: list[Note]) -> Request:
    """No choice among functions where there are none: the API refuses it.

    Newer models put up with a free choice among the provider's own tools.
    """
    choice = request.tool_choice
    if choice is None or any(map(_is_function, request.tools)):
        return request
    if choice.mode == "auto" and request.tools and not target.refuses_mixed_tools:
        return request
    if choice.mode in ("auto", "none"):  # as it would be anyway
        losses.append(Repair("tool_choice", "W99", "dropped", "there is no function to choose"))
    else:
        losses.append(Loss("tool_choice", "there is no function to choose"))
    return request.replace(tool_choice=None)


def _with_one_measure(
    request: Request, thinking: ThinkingConfig, target: Target, losses: list[Note]
) -> Request:
    """With a budget for thinking or a level of it: no model takes both."""
    if target.thinking_form == "effort" and thinking.effort == "none":
        losses.append(Loss("thinking", "it can't be turned off here; little was asked for"))
        return request.replace(thinking=thinking.replace(effort=_LITTLE, budget=None))
    if thinking.budget is None or thinking.effort is None:
        return request
    if target.thinking_form != "budget":  # else it has been told that the budget stands for it
        losses.append(Loss("thinking.effort", "the budget says it already"))
    return request.replace(thinking=thinking.replace(effort=None))
