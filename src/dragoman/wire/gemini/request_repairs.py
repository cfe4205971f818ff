"""Repairs for Gemini only: conflicting settings and tools, and unsigned calls (W83)."""

from __future__ import annotations

from operator import is_

from dragoman.model.messages import Message
from dragoman.model.requests import AnyTool, Request
from dragoman.model.roles import Role
from dragoman.model.tools import ServerTool, ToolCall, ToolDefinition, ToolResult
from dragoman.wire.fitting.settings import sampling_within
from dragoman.wire.fitting.steps import Step
from dragoman.wire.gemini.dialect import NAME, ORIGIN, RANGES, SENTINEL, SIGNATURE
from dragoman.wire.gemini.request import is_instruction
from dragoman.wire.gemini.tables import FOREIGN_SIGNATURE
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.overlay import fields_of
from dragoman.wire.target import Target

_LOW = "low"  # the lowest level that all models with levels support


def _is_function(tool: AnyTool) -> bool:
    return isinstance(tool, ToolDefinition) and tool.kind == "function"


def with_functions_only(request: Request, target: Target, losses: list[Note]) -> Request:
    """Remove built-in tools if the target does not support them together with functions (W97)."""
    if not target.tools.refuses_mixed or not any(map(_is_function, request.tools)):
        return request
    others = [i for i, tool in enumerate(request.tools) if isinstance(tool, ServerTool)]
    if not others:
        return request
    reason = "this model does not support built-in tools together with functions"
    losses.extend(Loss(f"tools[{index}]", reason) for index in others)
    kept = tuple(tool for tool in request.tools if not isinstance(tool, ServerTool))
    return request.replace_trusted(tools=kept)


def with_useful_choice(request: Request, target: Target, losses: list[Note]) -> Request:
    """Remove a tool choice if there are no functions: the API refuses it.

    Newer models accept a free choice among built-in tools.
    """
    choice = request.tool_choice
    if not target.is_strict or choice is None or any(map(_is_function, request.tools)):
        return request
    if choice.mode == "auto" and request.tools and not target.tools.refuses_mixed:
        return request
    if choice.mode in ("auto", "none"):  # has no effect
        losses.append(
            Repair(
                "tool_choice", "W99", "dropped", "tool choice is not supported without functions"
            )
        )
    else:
        losses.append(Loss("tool_choice", "tool choice is not supported without functions"))
    return request.replace_trusted(tool_choice=None)


def with_budget_or_effort(request: Request, target: Target, losses: list[Note]) -> Request:
    """Keep either the thinking budget or the level: no model accepts both."""
    thinking = request.thinking
    if not target.is_strict or thinking is None:
        return request
    if thinking.enabled is False and thinking.effort not in {None, "none"}:
        losses.append(Loss("thinking.effort", "left out because thinking is off"))
        thinking = thinking.replace(effort=None)
        request = request.replace_trusted(thinking=thinking)
    if target.thinking.form == "effort" and thinking.effort == "none":
        losses.append(Loss("thinking", "thinking can't be turned off; a low level is sent"))
        return request.replace_trusted(thinking=thinking.replace(effort=_LOW, budget=None))
    if thinking.budget is None or thinking.effort is None:
        return request
    if target.thinking.form != "budget":  # else already reported
        losses.append(Loss("thinking.effort", "left out because a budget is set"))
    return request.replace_trusted(thinking=thinking.replace(effort=None))


def with_json_or_tools(request: Request, target: Target, losses: list[Note]) -> Request:
    """Remove the output format if the target refuses it together with tools (W97)."""
    output = request.output
    if not target.schemas.refuses_json_with_tools or not request.tools or output is None:
        return request
    reason = "this model does not support JSON output together with tools"
    if output.format != "text":
        losses.append(Loss("output", reason))
    else:
        losses.append(Repair("output", "W97", "dropped", reason))
    return request.replace_trusted(output=None)


def with_signed_calls(request: Request, target: Target, losses: list[Note]) -> Request:
    """Put a signature on the first call of each step of the current turn (W83).

    Parallel calls and earlier turns are not verified. A call made by another provider's model or
    by hand has no valid signature: the API accepts a sentinel instead (W84).
    """
    if not target.thinking.signs_calls:
        return request
    messages = list(request.messages)
    has_calls = False  # in this step
    for index in range(_current_turn(request.messages), len(messages)):
        message = messages[index]
        if message.role is not Role.ASSISTANT:
            has_calls = has_calls and is_instruction(message)  # which goes to the system prompt
        elif not has_calls and message.tool_calls:
            has_calls = True
            messages[index] = _with_signed_call(message, index, target, losses)
    is_same = all(map(is_, messages, request.messages))
    return request if is_same else request.replace_trusted(messages=tuple(messages))


def _current_turn(messages: tuple[Message, ...]) -> int:
    """The index where the current turn begins: after the last message with user content.

    Text beside results may or may not begin a new turn: here it does not, which is the safe choice.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role is Role.USER and not any(type(p) is ToolResult for p in message.parts):
            return index + 1
    return 0


def _with_signed_call(message: Message, index: int, target: Target, losses: list[Note]) -> Message:
    place = next(i for i, part in enumerate(message.parts) if type(part) is ToolCall)
    call = message.parts[place]
    is_verifiable = target.has_made(message.origin if call.origin is None else call.origin)
    if (call.signature and is_verifiable) or fields_of(call.extras, NAME).get(SIGNATURE):
        return message
    if call.signature is not None and not is_verifiable:
        losses.append(Loss(f"messages[{index}].parts[{place}]", FOREIGN_SIGNATURE))
    reason = "a sentinel is sent in place of a signature"
    losses.append(Repair(f"messages[{index}]", "W83", "added", reason))
    signed = call.replace_unchecked(signature=SENTINEL, origin=ORIGIN)
    parts = (*message.parts[:place], signed, *message.parts[place + 1 :])
    return message.replace_unchecked(parts=parts)


STEPS = (
    sampling_within(RANGES),
    Step(with_functions_only, ("tools.refuses_mixed",)),
    Step(with_useful_choice, ("is_strict",)),
    Step(with_budget_or_effort, ("is_strict",)),
    Step(with_json_or_tools, ("schemas.refuses_json_with_tools",)),
    Step(with_signed_calls, ("thinking.signs_calls",)),
)
"""Fitting steps for this dialect only."""
