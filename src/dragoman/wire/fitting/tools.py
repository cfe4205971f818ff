"""Tool choice, declarations of tools in the history, and arguments of earlier calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.parts import Opaque, Origin
from dragoman.model.requests import AnyTool, Request
from dragoman.model.roles import Role
from dragoman.model.tools import (
    ServerTool,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    make_definition,
)
from dragoman.wire.fitting.paths import Numbers
from dragoman.wire.fitting.settings import has_hidden_context
from dragoman.wire.fitting.steps import Contents, Messages, with_changed_parts
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.target import Target
from dragoman.wire.text_tools import TEXT_ARGUMENT


def with_supported_choice(
    request: Request, target: Target, notes: list[Note]
) -> tuple[Request, Numbers | None]:
    """Convert the tool choice to one that the target supports.

    Also returns the original indices of the remaining tools; None if all remain.
    """
    choice = request.tool_choice
    if choice is None:
        return request, None
    is_refused = not target.tools.takes_forced_choice and is_forced(choice)
    if is_refused:
        notes.append(Loss("tool_choice", "this model can't be forced to call a tool"))
    elif choice.mode in target.tools.choices:
        return request, None
    auto = ToolChoice("auto", parallel=choice.parallel)
    if choice.mode == "required":  # can't be expressed by a selection of tools
        return request.replace_trusted(tool_choice=auto) if is_refused else request, None
    names = frozenset(() if choice.mode == "none" else choice.names)
    kept = tuple(i for i, tool in enumerate(request.tools) if tool.name in names)
    if not kept and choice.mode != "none":  # an unknown name: left to the target to refuse
        return request.replace_trusted(tool_choice=auto) if is_refused else request, None
    if is_refused:
        choice = ToolChoice("allowed", choice.names, parallel=choice.parallel)
    tools = tuple(request.tools[index] for index in kept)
    reason = "expressed by the selection of tools sent"
    notes.append(Repair("tool_choice", "W74", "retyped", reason))
    notes.extend(
        Repair(f"tools[{index}]", "W74", "dropped", "excluded by the tool choice")
        for index, tool in enumerate(request.tools)
        if tool.name not in names
    )
    return request.replace_trusted(tools=tools, tool_choice=_choice(choice)), kept


def _choice(choice: ToolChoice) -> ToolChoice | None:
    if choice.mode == "none":
        return None
    return ToolChoice("required" if is_forced(choice) else "auto", parallel=choice.parallel)


def with_call_opening(request: Request, target: Target, notes: list[Note]) -> Request:
    """Prefill the first characters of a call, if a call is required.

    A prefill that is already there is left alone.
    """
    choice, messages = request.tool_choice, request.messages
    if (
        target.tools.call_opening is None
        or choice is None
        or not is_forced(choice)
        or not request.tools
    ):
        return request
    if messages and messages[-1].role is Role.ASSISTANT:
        return request
    notes.append(Repair("messages", "W74", "added", "a prefill that forces a tool call"))
    return request.replace_trusted(
        messages=(*messages, Message.assistant(target.tools.call_opening))
    )


def is_forced(choice: ToolChoice) -> bool:
    """Whether the model must call a tool."""
    return choice.mode in {"required", "named"} or choice.is_required


def with_declared_tools(request: Request, target: Target, notes: list[Note]) -> Request:
    """Declare the tools called in the history, with tool choice `none`, if there are no tools."""
    if not target.tools.must_be_declared or request.tools:
        return request
    names = dict.fromkeys(call.name for message in request.messages for call in message.tool_calls)
    if not names:
        return request
    here = Origin(dialect=target.dialect)
    tools = tuple(
        make_definition(name, "Used earlier.", {"type": "object", "properties": {}}, origin=here)
        for name in names
    )
    notes.append(Repair("tools", "W63", "added", "declarations of tools called in the history"))
    return request.replace_trusted(tools=tools, tool_choice=ToolChoice("none"))


_NO_TOOLS = "a tool choice is not supported without tools"


def without_orphaned_choice(
    request: Request, target: Target, seen: Contents, notes: list[Note]
) -> Request:
    """Remove a tool choice if no tools are left: hosts refuse it, and it means nothing (W121).

    Tools may also be in the conversation, or stored by the provider.
    """
    choice = request.tool_choice
    if choice is None or not target.tools.choice_needs_tools:
        return request
    known = [tool for tool in request.tools if not _is_left_out(tool, target)]
    if known:
        names = {name for tool in known for name in _names(tool)}
        return _with_known_name(request, choice, names, notes)
    if seen.has_media and any(map(partial(_may_offer, target), request.messages)):
        return request
    if has_hidden_context(request, (), target):
        return request
    if choice.mode in ("auto", "none"):  # has no effect
        notes.append(Repair("tool_choice", "W121", "dropped", _NO_TOOLS))
    else:
        notes.append(Loss("tool_choice", _NO_TOOLS))
    return request.replace_trusted(tool_choice=None)


def _is_left_out(tool: AnyTool, target: Target) -> bool:
    """Whether no dialect but its own can be sent a tool."""
    return isinstance(tool, ServerTool) and tool.dialect != target.dialect


def _names(tool: AnyTool) -> tuple[object, ...]:
    """The names by which a choice may refer to a tool."""
    payload = tool.payload if isinstance(tool, ServerTool) else None
    return (tool.name, payload.get("name")) if isinstance(payload, Mapping) else (tool.name,)


def _with_known_name(
    request: Request, choice: ToolChoice, known: set[object], notes: list[Note]
) -> Request:
    """Remove the choice of a provider's tool that is sent in another form, or not at all.

    The name of a function is left to the target to refuse.
    """
    are_functions = all(isinstance(tool, ToolDefinition) for tool in request.tools)
    if are_functions or not choice.names or not known.isdisjoint(choice.names):
        return request
    notes.append(Loss("tool_choice", "the chosen tool is sent in another form, or not at all"))
    parallel = None if choice.parallel is None else ToolChoice("auto", parallel=choice.parallel)
    return request.replace_trusted(tool_choice=parallel)


def _may_offer(target: Target, message: Message) -> bool:
    """Whether a message has something of the target's own dialect, which may be tools."""
    return any(type(each) is Opaque and each.dialect == target.dialect for each in message.parts)


NOT_AN_OBJECT = "arguments that are not a JSON object are wrapped in one"
NO_ARGUMENTS = "{}"
"""Empty arguments, where arguments are a JSON text."""


def with_object_arguments(messages: Messages, target: Target, notes: list[Note]) -> Messages:
    """Wrap call arguments that are not an object, if the target parses them.

    Other targets treat arguments as plain text, so the model's own text is kept.
    """

    def readable(part: AnyPart, path: str) -> AnyPart:
        if not isinstance(part, ToolCall) or _is_readable(part):
            return part
        notes.append(Repair(path, "I6", "retyped", NOT_AN_OBJECT))
        return part.replace_unchecked(raw=None, input={TEXT_ARGUMENT: part.raw_arguments})

    return with_changed_parts(messages, readable) if target.tools.parses_arguments else messages


def is_blank(raw: str) -> bool:
    """Whether arguments are blank: some models write nothing for a tool without parameters."""
    return not raw or raw.isspace()


def are_objects(calls: Iterable[ToolCall], target: Target) -> bool:
    """Whether `with_object_arguments` has nothing to do."""
    return not target.tools.parses_arguments or all(map(_is_readable, calls))


def _is_readable(call: ToolCall) -> bool:
    return call.kind == "custom" or call.object_arguments() is not None
