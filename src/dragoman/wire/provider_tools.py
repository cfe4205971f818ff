"""Translates provider tools between dialects, such as `web_search_20250305` and `googleSearch`.

A dialect lists its forms of each kind of tool (`Description.provider_tools`). A tool of another
dialect is decoded with that dialect's forms, and encoded with the target's. A tool without a form
there is left unchanged, and the encoder of the request reports it as lost.
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
_NO_OPTION = "this option is not supported"


def as_json(value: Any) -> Any:
    """A value in JSON form."""
    return list(value) if isinstance(value, tuple) else value


class Option(NamedTuple):
    """An option of a tool: its path in the payload (`filters.allowed_domains`), and its field."""

    key: str
    name: str
    read: Callable[[Any], Any]
    """Decodes the option; None if it can't be read."""
    write: Callable[[Any], Any] = as_json


class Outside(NamedTuple):
    """Tool options that a request has in a separate field, outside its list of tools."""

    field: str
    names: frozenset[str]
    """The names of these options."""
    read: Callable[[Mapping[str, Any], Any], Mapping[str, Any]]
    """Decodes the options, given the tool's payload and the field."""
    write: Callable[[Any], Any]
    """Encodes the field for a tool; lists of several tools are concatenated."""
    payload: frozenset[str] = frozenset()
    """The payload fields that `read` needs."""


class Form(NamedTuple):
    """How a dialect represents a kind of tool."""

    kind: type[ProviderTool]
    name: str
    """The name of the tool on the wire, as it is encoded."""
    options: tuple[Option, ...] = ()
    pattern: str | None = None
    """A regular expression for the names that are decoded; None: that name only."""
    constants: Mapping[str, Any] = EMPTY
    """Fields that the payload always has."""
    outside: Outside | None = None
    """Options in a separate field of the request."""
    needs: str | None = None
    """An option that the tool requires."""
    models: str | None = None
    """A regular expression for the models that support it; None: all."""
    function: ToolDefinition | None = None
    """For a tool that the caller runs: the equivalent function, for models without the tool."""
    call_extras: Mapping[str, Any] = EMPTY
    """Marks a call of that function as a call of the tool itself, where the two differ in form."""
    usual: Mapping[str, Any] = EMPTY
    """Default values in the payload, which are ignored."""
    is_hosted: Callable[[Mapping[str, Any]], bool] | None = None
    """Whether a payload means that the provider, not the caller, runs the tool."""
    is_read_only: bool = False
    """Whether only some hosts of the dialect have it: it is decoded, but not encoded for others."""

    def reads(self, name: str) -> bool:
        """Whether a tool of that name is of this form."""
        if self.pattern is None:
            return name == self.name
        return re.fullmatch(self.pattern, name) is not None


class Written(NamedTuple):
    """A tool in the target's form, and the request fields outside its list of tools."""

    tool: ServerTool | ToolDefinition
    fields: Mapping[str, Any] = EMPTY
    call_extras: Mapping[str, Any] = EMPTY
    """The form's `call_extras`, if it is encoded as a function."""


def function_of(tool: ServerTool, form: Form) -> ToolDefinition | None:
    """A tool that the caller runs, as a function with the arguments of its calls."""
    name = tool.payload.get("name")
    if form.function is None or type(name) is not str or name == form.function.name:
        return form.function
    return form.function.replace_unchecked(name=name)


def about_screen(tool: ProviderTool) -> str | None:
    """A description of the screen for a model."""
    if not isinstance(tool, ComputerUse):
        return None
    said = []
    if tool.display_width is not None and tool.display_height is not None:
        said.append(f"The screen has {tool.display_width} x {tool.display_height} pixels.")
    if tool.environment is not None:
        said.append(f"It shows: {tool.environment}.")
    return " ".join(said) or None


def form_of(tool: ServerTool, forms: Iterable[Form]) -> Form | None:
    """The form of a tool among those of its dialect."""
    return next((form for form in forms if form.reads(tool.name)), None)


def known_tool(
    tool: ServerTool, form: Form, request_fields: Mapping[str, Any]
) -> ProviderTool | None:
    """Decode a tool into its kind; None if it lacks something that the kind requires.

    `request_fields` are the request's fields specific to the tool's dialect.
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
    if left.get("type") == tool.name:  # dialects in which the type is the name
        del left["type"]
    try:
        return form.kind(**fields, cache=tool.cache, extras={tool.dialect: left} if left else EMPTY)
    except (InvalidInputError, TypeError):  # something required is missing
        return None


def _spelled(payload: Any, steps: Sequence[str]) -> list[str]:
    """The path as a payload spells it: Google's JSON may also use snake_case names."""
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
    """The dialect and model that a tool is encoded for."""

    dialect: str
    forms: tuple[Form, ...]
    model: str | None = None


def written_tool(tool: ProviderTool, place: Place, path: str, notes: list[Note]) -> Written | None:
    """Encode a tool for a dialect; None if it has neither such a tool nor a function for it."""
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
            notes.append(Loss(f"{path}.extras", f"only {source} has this field"))
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
    """Set a value at a path; returns whether that was possible."""
    for step in steps[:-1]:
        inner = payload.setdefault(step, {})
        if not isinstance(inner, dict):
            return False
        payload = inner
    payload[steps[-1]] = value
    return True


# --- values that several dialects share


def location(value: Any) -> Location | None:
    """A location, as OpenAI and Anthropic write it."""
    if not isinstance(value, Mapping):
        return None
    names = ("city", "region", "country", "timezone")
    return Location(**{name: text(value.get(name)) for name in names})


def location_wire(value: Location) -> dict[str, Any]:
    """The wire form of a location."""
    names = ("city", "region", "country", "timezone")
    found = {name: getattr(value, name) for name in names if getattr(value, name) is not None}
    return {"type": "approximate", **found}
