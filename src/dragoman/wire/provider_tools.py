"""Providers' own tools, from one dialect to another: `web_search_20250305` and `googleSearch`.

A dialect lists the forms in which it has a kind of tool (`Description.provider_tools`). A tool of
another dialect is read as its kind by that dialect's forms, and written by the target's; what has
no form there stays what it is, and is reported as lost by whoever writes the request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY, thaw
from dragoman.model.provider_tools import ComputerUse, Location, ProviderTool
from dragoman.model.tools import ServerTool, ToolDefinition
from dragoman.wire.losses import Loss, Note
from dragoman.wire.settings_table import text

_COMMON = frozenset({"name", "dialect", "payload", "extras", "cache", "function"})
_CAPITALS = re.compile(r"[A-Z]")
_NO_OPTION = "the target's tool has no such option"


def as_json(value: Any) -> Any:
    """A value as JSON has it."""
    return list(value) if isinstance(value, tuple) else value


class Option(NamedTuple):
    """An option of a tool: where the payload has it (`filters.allowed_domains`), and its field."""

    key: str
    name: str
    read: Callable[[Any], Any]
    """None where it can't be read."""
    write: Callable[[Any], Any] = as_json


class Outside(NamedTuple):
    """What a request says of a tool outside of its list of tools, in one field."""

    field: str
    names: frozenset[str]
    """The options that stand there."""
    read: Callable[[Mapping[str, Any], Any], Mapping[str, Any]]
    """Given the tool's payload and the field: the options."""
    write: Callable[[Any], Any]
    """Given the tool: the field; a list is added to the lists of others."""
    payload: frozenset[str] = frozenset()
    """What `read` needs of the payload."""


class Form(NamedTuple):
    """How a dialect writes a kind of tool."""

    kind: type[ProviderTool]
    name: str
    """The name of the tool on the wire, as it is written."""
    options: tuple[Option, ...] = ()
    pattern: str | None = None
    """A regular expression for the names that are read; None: that name only."""
    constants: Mapping[str, Any] = EMPTY
    """What the payload always has besides."""
    outside: Outside | None = None
    """What the request says of it in a field of its own."""
    needs: str | None = None
    """An option without which there is no such tool."""
    models: str | None = None
    """A regular expression for the models that take it; None: all."""
    function: ToolDefinition | None = None
    """For a tool that the caller runs: what a model that does not know it is told of it."""
    call_extras: Mapping[str, Any] = EMPTY
    """What makes a call of that function one of the tool's own, where those are of another form."""
    usual: Mapping[str, Any] = EMPTY
    """What says nothing in the payload."""
    is_hosted: Callable[[Mapping[str, Any]], bool] | None = None
    """Whether a payload means that the provider runs it, and not the caller."""
    is_read_only: bool = False
    """Whether only some hosts of the dialect have it: it is read, and never written for others."""

    def reads(self, name: str) -> bool:
        """Whether a tool of that name is of this form."""
        if self.pattern is None:
            return name == self.name
        return re.fullmatch(self.pattern, name) is not None


class Written(NamedTuple):
    """A tool as the target has it, and what the request says of it elsewhere."""

    tool: ServerTool | ToolDefinition
    fields: Mapping[str, Any] = EMPTY
    call_extras: Mapping[str, Any] = EMPTY
    """As those of the form, where it is written as a function."""


def function_of(tool: ServerTool, form: Form) -> ToolDefinition | None:
    """A tool that the caller runs, as a function with the arguments that its calls have."""
    name = tool.payload.get("name")
    if form.function is None or type(name) is not str or name == form.function.name:
        return form.function
    return form.function.replace_unchecked(name=name)


def about_screen(tool: ProviderTool) -> str | None:
    """What a model has to know of a screen, in words."""
    if not isinstance(tool, ComputerUse):
        return None
    said = []
    if tool.display_width is not None and tool.display_height is not None:
        said.append(f"The screen has {tool.display_width} x {tool.display_height} pixels.")
    if tool.environment is not None:
        said.append(f"It shows: {tool.environment}.")
    return " ".join(said) or None


def form_of(tool: ServerTool, forms: Iterable[Form]) -> Form | None:
    """The form that a tool is in, among those of its dialect."""
    return next((form for form in forms if form.reads(tool.name)), None)


def known_tool(
    tool: ServerTool, form: Form, request_fields: Mapping[str, Any]
) -> ProviderTool | None:
    """The tool as its kind; None where it lacks what the kind can't be without.

    `request_fields` are those of the request that are its dialect's own.
    """
    left = thaw(tool.payload)
    fields: dict[str, Any] = {}
    for option in form.options:
        steps = _spelled(left, option.key.split("."))
        value = option.read(_found(left, steps))
        if value is not None:
            fields[option.name] = value
            _take(left, steps)
    for key, value in (*form.constants.items(), *form.usual.items()):
        if key == "name" or left.get(key) == value:
            left.pop(key, None)
    if form.outside is not None:
        fields.update(form.outside.read(tool.payload, request_fields.get(form.outside.field)))
        left = {key: value for key, value in left.items() if key not in form.outside.payload}
    if left.get("type") == tool.name:  # where the type is the name
        del left["type"]
    try:
        return form.kind(**fields, cache=tool.cache, extras={tool.dialect: left} if left else EMPTY)
    except (InvalidInputError, TypeError):  # without what the kind can't be without
        return None


def _spelled(payload: Any, steps: Sequence[str]) -> list[str]:
    """The steps as a payload spells them: Google's JSON has names in snake case as well."""
    spelled: list[str] = []
    for step in steps:
        inner = payload if isinstance(payload, dict) else {}
        name = step if step in inner else _CAPITALS.sub(r"_\g<0>", step).lower()
        spelled.append(name if name in inner else step)
        payload = inner.get(spelled[-1])
    return spelled


def _found(payload: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        payload = payload.get(step) if isinstance(payload, dict) else None
    return payload


def _take(payload: dict[str, Any], steps: Sequence[str]) -> None:
    first, *rest = steps
    if rest:
        _take(payload[first], rest)
        if payload[first]:
            return
    del payload[first]


class Place(NamedTuple):
    """Where a tool is written to."""

    dialect: str
    forms: tuple[Form, ...]
    model: str | None = None


def written_tool(tool: ProviderTool, place: Place, path: str, notes: list[Note]) -> Written | None:
    """The tool as a dialect writes it; None where there is no such tool, nor a function for it."""
    dialect, form = place.dialect, _form_for(tool, place)
    if form is None:
        return None if tool.function is None else Written(tool.function)
    payload: dict[str, Any] = thaw(form.constants)
    fields: dict[str, Any] = {}
    by_name = {option.name: option for option in form.options}
    for name in tool.__struct_fields__:
        value = getattr(tool, name)
        if name in _COMMON or value in (None, (), EMPTY):
            continue
        if form.outside is not None and name in form.outside.names:
            fields[form.outside.field] = form.outside.write(tool)
            continue
        option = by_name.get(name)
        found = None if option is None else option.write(value)
        if option is None or found is None or not _put(payload, option.key.split("."), found):
            notes.append(Loss(f"{path}.{name}", _NO_OPTION))
    for source, left in tool.extras.items():
        if source == dialect and isinstance(left, Mapping):
            payload.update(left)
        elif left:
            notes.append(Loss(f"{path}.extras", f"only {source} knows it"))
    made = ServerTool(form.name, dialect, payload, tool.cache)
    return Written(made, fields)


def _form_for(tool: ProviderTool, place: Place) -> Form | None:
    written = [form for form in place.forms if not form.is_read_only]
    form = next((form for form in written if type(tool) is form.kind), None)
    if form is None or (form.needs is not None and not getattr(tool, form.needs)):
        return None
    is_taken = form.models is None or re.search(form.models, place.model or "")
    return form if is_taken else None


def _put(payload: dict[str, Any], steps: Sequence[str], value: Any) -> bool:
    """Whether there was room for it."""
    for step in steps[:-1]:
        inner = payload.setdefault(step, {})
        if not isinstance(inner, dict):
            return False
        payload = inner
    payload[steps[-1]] = value
    return True


# --- kinds of values that several dialects have


def location(value: Any) -> Location | None:
    """Where somebody is, as OpenAI and Anthropic write it."""
    if not isinstance(value, Mapping):
        return None
    names = ("city", "region", "country", "timezone")
    return Location(**{name: text(value.get(name)) for name in names})


def location_wire(value: Location) -> dict[str, Any]:
    """The same, as they read it."""
    names = ("city", "region", "country", "timezone")
    found = {name: getattr(value, name) for name in names if getattr(value, name) is not None}
    return {"type": "approximate", **found}
