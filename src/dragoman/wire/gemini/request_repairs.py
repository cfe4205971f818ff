"""What a target would refuse: settings that exclude each other, calls that nobody signed (W83)."""

from __future__ import annotations

from typing import Any

from dragoman.model.messages import Message
from dragoman.model.requests import AnyTool, Request
from dragoman.model.roles import Role
from dragoman.model.tools import ServerTool, ToolDefinition, ToolResult
from dragoman.wire.fitting.steps import Step
from dragoman.wire.gemini.dialect import SENTINEL, SIGNATURE
from dragoman.wire.json_values import is_object
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.target import Target

_LITTLE = "low"  # the least that all models with levels know


def _is_function(tool: AnyTool) -> bool:
    return isinstance(tool, ToolDefinition) and tool.kind == "function"


def with_functions_only(request: Request, target: Target, losses: list[Note]) -> Request:
    """Functions only, where the target does not take its own tools beside them (W97)."""
    if not target.tools.refuses_mixed or not any(map(_is_function, request.tools)):
        return request
    others = [i for i, tool in enumerate(request.tools) if isinstance(tool, ServerTool)]
    if not others:
        return request
    reason = "this model calls functions or its provider's tools, not both"
    losses.extend(Loss(f"tools[{index}]", reason) for index in others)
    kept = tuple(tool for tool in request.tools if not isinstance(tool, ServerTool))
    return request.replace(tools=kept)


def with_useful_choice(request: Request, target: Target, losses: list[Note]) -> Request:
    """No choice among functions where there are none: the API refuses it.

    Newer models put up with a free choice among the provider's own tools.
    """
    choice = request.tool_choice
    if not target.is_strict or choice is None or any(map(_is_function, request.tools)):
        return request
    if choice.mode == "auto" and request.tools and not target.tools.refuses_mixed:
        return request
    if choice.mode in ("auto", "none"):  # as it would be anyway
        losses.append(Repair("tool_choice", "W99", "dropped", "there is no function to choose"))
    else:
        losses.append(Loss("tool_choice", "there is no function to choose"))
    return request.replace(tool_choice=None)


def with_budget_or_effort(request: Request, target: Target, losses: list[Note]) -> Request:
    """With a budget for thinking or a level of it: no model takes both."""
    thinking = request.thinking
    if not target.is_strict or thinking is None:
        return request
    if target.thinking.form == "effort" and thinking.effort == "none":
        losses.append(Loss("thinking", "it can't be turned off here; little was asked for"))
        return request.replace(thinking=thinking.replace(effort=_LITTLE, budget=None))
    if thinking.budget is None or thinking.effort is None:
        return request
    if target.thinking.form != "budget":  # else it has been told that the budget stands for it
        losses.append(Loss("thinking.effort", "the budget says it already"))
    return request.replace(thinking=thinking.replace(effort=None))


def with_json_or_tools(request: Request, target: Target, losses: list[Note]) -> Request:
    """No form of the answer beside tools, where the target refuses the two together (W97)."""
    output = request.output
    if not target.schemas.refuses_json_with_tools or not request.tools or output is None:
        return request
    reason = "this model answers in JSON or calls tools, not both"
    if output.format != "text":
        losses.append(Loss("output", reason))
    else:
        losses.append(Repair("output", "W97", "dropped", reason))
    return request.replace(output=None)


STEPS = (
    Step(with_functions_only, ("tools.refuses_mixed",)),
    Step(with_useful_choice, ("is_strict",)),
    Step(with_budget_or_effort, ("is_strict",)),
    Step(with_json_or_tools, ("schemas.refuses_json_with_tools",)),
)
"""What fitting sees to for this dialect alone."""


# --- calls that nobody signed, for models that insist (W83)
#
# The first call of each step of the current turn is verified; its parallel siblings and earlier
# turns are not. A call that another provider's model made, or a person, has no signature that
# would pass: the API has a word that stands for one (W84).

_CALLS = ("functionCall", "function_call")
_SIGNATURES = (SIGNATURE, "thought_signature")


def turn_under_way(messages: tuple[Message, ...]) -> int:
    """Where the current turn begins: behind the last message in which the user spoke.

    Words beside results may count as a new turn or not: here they don't, which asks for more.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role is Role.USER and not any(type(p) is ToolResult for p in message.parts):
            return index + 1
    return 0


class Signing:
    """The steps of a turn, as they are written: neighbouring contents of the model are one."""

    __slots__ = ("_begin", "_is_open")

    def __init__(self, messages: tuple[Message, ...]) -> None:
        self._begin = turn_under_way(messages)
        self._is_open = False

    def sign(self, content: dict[str, Any], index: int) -> bool:
        """See to it that the first call of a step is signed; `content` is that of a message.

        Returns whether it was not.
        """
        if content.get("role") != "model":
            self._is_open = False
            return False
        parts = content.get("parts")
        if self._is_open or index < self._begin or not isinstance(parts, list):
            return False
        for place, part in enumerate(parts):
            if is_object(part) and any(part.get(key) is not None for key in _CALLS):
                self._is_open = True
                if not any(part.get(key) for key in _SIGNATURES):
                    signed = {key: part[key] for key in part if key not in _SIGNATURES}
                    content["parts"] = [*parts]
                    content["parts"][place] = {**signed, SIGNATURE: SENTINEL}
                    return True
                return False
        return False
