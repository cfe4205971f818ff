"""Translates provider tools and shared settings into the target's form.

This is translation, not repair: it also happens with `repair=False`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.model.frozen import EMPTY, thaw
from dragoman.model.messages import Message
from dragoman.model.parts import Opaque, Text
from dragoman.model.provider_tools import ProviderTool
from dragoman.model.requests import AnyTool, Request
from dragoman.model.tools import ServerTool, ToolCall, ToolDefinition, ToolResult
from dragoman.wire.context import CallForm
from dragoman.wire.dialect import description_of
from dragoman.wire.fitting.steps import with_changed_content_too, with_changed_parts
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.provider_tools import (
    Form,
    Place,
    Written,
    about_screen,
    form_of,
    function_of,
    known_tool,
    written_tool,
)
from dragoman.wire.shared_settings import own_fields, unwritten_settings
from dragoman.wire.target import Target

_STORED_ELSEWHERE = "it refers to data stored by another provider"
_DESCRIBED = "sent as a function, with the description that its provider's models have built in"


def with_provider_tools(
    request: Request, target: Target, notes: list[Note], calls: dict[str, CallForm]
) -> Request:
    """Replace other providers' tools with those of the target's provider.

    `calls` collects how calls of client-run tools must look in the response.
    """
    here = target.dialect
    for tool in request.tools:
        if type(tool) is not ToolDefinition and _is_foreign(tool, here):
            break
    else:
        return request
    place = Place(here, _forms(here), request.model)
    tools: list[AnyTool] = []
    written: list[Written] = []
    carried: set[tuple[str, str]] = set()
    functions = _Functions(request, calls)
    for index, tool in enumerate(request.tools):
        if _is_foreign(tool, here) and isinstance(tool, ServerTool):
            found = _written(tool, request, place, f"tools[{index}]", notes)
            if found is not None:
                found = functions.add(tool, found)
                written.append(found)
                carried.update(_outside(tool))
                tool = found.tool  # noqa: PLW2901 - in the other's place
        tools.append(tool)
    request = functions.with_renames(request.replace_trusted(tools=tuple(tools)))
    request = _with_fields(request, written, here)
    return _without_carried(request, carried) if carried else request


class _Functions:
    """Client-run tools that become functions; gives each a unique name."""

    def __init__(self, request: Request, calls: dict[str, CallForm]) -> None:
        self._declared = {tool.name for tool in request.tools if isinstance(tool, ToolDefinition)}
        self._calls = calls
        self._counts: dict[str, int] = {}
        self._chosen: dict[str, str] = {}
        self._renamed: dict[tuple[str, Any], str] = {}

    def add(self, tool: ServerTool, written: Written) -> Written:
        """The encoded tool, renamed if another function has its name."""
        made = written.tool
        if not isinstance(made, ToolDefinition):
            return written
        name = made.name
        while name in self._declared:
            self._counts[made.name] = self._counts.get(made.name, 1) + 1
            name = f"{made.name}_{self._counts[made.name]}"
        self._declared.add(name)
        extras = {} if written.call_extras is EMPTY else thaw(written.call_extras)
        if extras or name != made.name:
            self._calls[name] = CallForm(made.name, extras)
        if name != made.name:
            for fields in extras.values():
                self._renamed[made.name, fields.get("type")] = name
        self._chosen.setdefault(tool.name, name)
        return written._replace(tool=made.replace_unchecked(name=name))

    def with_renames(self, request: Request) -> Request:
        """Apply the renames to calls in the history and to the tool choice."""
        choice = request.tool_choice
        if choice is not None and not self._chosen.keys().isdisjoint(choice.names):
            names = tuple(self._chosen.get(name, name) for name in choice.names)
            if names != choice.names:
                request = request.replace_trusted(tool_choice=choice.replace(names=names))
        if not self._renamed:
            return request
        messages = with_changed_parts(request.messages, self._call)
        return request.replace_trusted(messages=messages)

    def _call(self, part: Any, _path: str) -> Any:
        if not isinstance(part, ToolCall):
            return part
        for fields in part.extras.values():
            kind = fields.get("type") if isinstance(fields, Mapping) else None
            name = self._renamed.get((part.name, kind)) if type(kind) is str else None
            if name is not None:
                return part.replace_unchecked(name=name)
        return part


def _outside(tool: ServerTool) -> Iterator[tuple[str, str]]:
    """The request fields with further options of a tool, as pairs of dialect and field."""
    for form in _forms(tool.dialect):
        if form.outside is not None and form.reads(tool.name):
            yield tool.dialect, form.outside.field


def with_settings_of_target(request: Request, target: Target, notes: list[Note]) -> Request:
    """Report the settings that the target's dialect has no place for, unless it does itself."""
    described = description_of(target.dialect)
    if described is not None and not described.writes_settings:
        notes.extend(unwritten_settings(request))
    return request


def with_readable_parts(
    messages: tuple[Message, ...], target: Target, notes: list[Note]
) -> tuple[Message, ...]:
    """Replace content that only another dialect has with its readable text."""
    if not any(map(_has_opaque, messages)):
        return messages

    def readable(part: Any, path: str) -> Any:
        if not isinstance(part, Opaque) or part.dialect == target.dialect:
            return part
        described = description_of(part.dialect)
        if described is None or described.readable is None:
            return part
        found = described.readable(part.payload) if isinstance(part.payload, Mapping) else None
        if found is None or not found.text:
            return part
        if not found.is_whole:
            notes.append(Loss(path, "only its text can be sent"))
        return Text(found.text, origin=part.origin, cache=part.cache)

    return with_changed_content_too(messages, readable)


def _has_opaque(message: Message) -> bool:
    for part in message.parts:
        if type(part) is Opaque:
            return True
        inner = part.content if type(part) is ToolResult else ""
        if type(inner) is tuple and any(type(each) is Opaque for each in inner):
            return True
    return False


def _forms(dialect: str) -> tuple[Form, ...]:
    described = description_of(dialect)
    return () if described is None else described.provider_tools


def _is_foreign(tool: AnyTool, here: str) -> bool:
    return isinstance(tool, ServerTool) and tool.dialect != here


def _written(
    tool: ServerTool,
    request: Request,
    place: Place,
    path: str,
    notes: list[Note],
) -> Written | None:
    if isinstance(tool, ProviderTool):
        return written_tool(tool, place, path, notes)
    form = form_of(tool, _forms(tool.dialect))
    if form is None or not (form.function or any(each.kind is form.kind for each in place.forms)):
        return None
    known = known_tool(tool, form, own_fields(request.extras, tool.dialect))
    is_hosted = form.is_hosted is not None and form.is_hosted(tool.payload)
    if known is None or is_hosted:
        return None
    if known.is_run_by_caller:  # calls of another dialect's tool would have another form
        return _as_function(tool, known, form, path, notes)
    kept = [name for name in known.kept_by_provider if getattr(known, name) not in (None, ())]
    if not kept:
        return written_tool(known, place, path, notes)
    plain = type(known)()
    known = known.replace(**{name: getattr(plain, name) for name in kept})
    written = written_tool(known, place, path, notes)
    if written is not None:
        notes += [Loss(f"{path}.{name}", _STORED_ELSEWHERE) for name in kept]
    return written


def _as_function(
    tool: ServerTool, known: ProviderTool, form: Form, path: str, notes: list[Note]
) -> Written | None:
    """A client-run tool as a function, whose calls are converted to its own dialect's form."""
    function = function_of(tool, form)
    if function is None:
        return None
    if known.extras:
        notes.append(Loss(f"{path}.extras", f"only {tool.dialect} has this field"))
    notes.append(Repair(path, "I14", "retyped", _DESCRIBED))
    description = " ".join(filter(None, (function.description, about_screen(known))))
    made = function.replace_unchecked(
        description=description,
        cache=known.cache,
        defer_loading=known.defer_loading,
        allowed_callers=known.allowed_callers,
    )
    return Written(made, call_extras=form.call_extras)


def _with_fields(request: Request, written: list[Written], here: str) -> Request:
    """Add request fields with further options of the tools."""
    fields = dict(own_fields(request.extras, here))
    for each in written:
        for key, value in each.fields.items():
            is_list = isinstance(value, list) and isinstance(fields.get(key), (list, tuple))
            fields[key] = [*fields[key], *value] if is_list else fields.get(key, value)
    return request.replace(extras={**request.extras, here: fields}) if fields else request


def _without_carried(request: Request, carried: set[tuple[str, str]]) -> Request:
    """Remove other dialects' fields that were translated with their tools."""
    extras = {
        source: {key: value for key, value in fields.items() if (source, key) not in carried}
        if isinstance(fields, Mapping)
        else fields
        for source, fields in request.extras.items()
    }
    return request.replace(extras={key: value for key, value in extras.items() if value})
