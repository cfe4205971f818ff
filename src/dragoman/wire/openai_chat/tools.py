"""Tool definitions, tool choice, tool calls, and server-run tools."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, FrozenDict
from dragoman.model.jsontext import dumps, plain_decoder
from dragoman.model.parts import Opaque, Origin, ServerToolCall, ServerToolResult
from dragoman.model.requests import AnyTool
from dragoman.model.tools import (
    ServerTool,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    make_call,
    make_definition,
    with_schema_text,
)
from dragoman.wire.envelope import PREFIX
from dragoman.wire.fitting.tools import NO_ARGUMENTS, is_blank
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.known_tools import KnownTools
from dragoman.wire.openai_chat.dialect import NAME, ORIGIN, ChatWriting, is_own
from dragoman.wire.openai_chat.tables import HINTS
from dragoman.wire.openai_strict_schemas import openai_profiles
from dragoman.wire.overlay import extras_of, merged, overlay_of, with_overlay, with_word, words_of
from dragoman.wire.plain.schemas import is_common
from dragoman.wire.reading import Reading
from dragoman.wire.rows import FLAG, OBJECT, SILENT, TEXT, Row, Shape, Value
from dragoman.wire.settings_rows import lose_tool_settings
from dragoman.wire.target import Target
from dragoman.wire.text_tools import TEXT_ARGUMENT
from dragoman.wire.tolerance import odd_tool, payload_of
from dragoman.wire.writing import Writing

# --- tool definitions, including the legacy `functions`

_OTHER_SCHEMA = "parametersJsonSchema"
"""Google's name for the schema of a function, which its clients also send to Chat hosts."""
WEB_SEARCH = "web_search_options"
"""The name of the built-in search, which is a request field and not in `tools`."""


def _definition(place: str) -> tuple[Row, ...]:
    return (
        Row(f"{place}name", "name", is_required=True), Row(f"{place}description", "description"),
        Row(f"{place}parameters", "parameters", OBJECT), Row(f"{place}format", "format", OBJECT),
        Row(f"{place}strict", "strict", FLAG),
    )  # fmt: skip


_tool = partial(Shape, NAME, make=partial(make_definition, origin=ORIGIN))
_FUNCTION = _tool(None, ToolDefinition, *_definition(""))
_TOOLS = {
    kind: _tool(kind, ToolDefinition, *_definition(f"{kind}."), *HINTS, given={"kind": repr(kind)})
    for kind in ("function", "custom")
}


def decode_tools(wire: dict[str, Any], used: set[str]) -> tuple[AnyTool, ...]:
    """Decode the tools of a request; adds the decoded fields to `used`."""
    tools: list[AnyTool] = []
    listed = wire.get("tools")
    if is_list(listed) and listed:
        used.add("tools")
        tools += known_tools.read(listed)
    functions = _decode_functions(wire.get("functions"))
    if functions:
        used.add("functions")
        tools += functions
    search = wire.get(WEB_SEARCH)
    if is_object(search):
        used.add(WEB_SEARCH)
        tools.append(ServerTool(WEB_SEARCH, NAME, search))
    return tuple(tools)


def encode_tools(tools: tuple[AnyTool, ...], body: dict[str, Any], writing: Writing) -> None:
    """Encode tools into their fields."""
    place, writing.place = writing.place, "tools[{1}]"
    for writing.part, tool in enumerate(tools):
        if isinstance(tool, ToolDefinition):
            is_old = "functions" in words_of(tool.extras, NAME) and tool.kind == "function"
            written = (_encode_function if is_old else _encode_tool)(tool, writing)
            body.setdefault("functions" if is_old else "tools", []).append(written)
            lose_tool_settings(tool, writing.here, writing)
        elif tool.dialect != NAME:
            writing.lose_here("another provider's built-in tool is left out")
        elif tool.name == WEB_SEARCH and WEB_SEARCH not in body:
            body[WEB_SEARCH] = tool.payload
        else:
            body.setdefault("tools", []).append(payload_of(tool))
        if isinstance(tool, ServerTool) and tool.cache is not None:
            writing.lose_here("cache hints are not supported on built-in tools", ".cache")
    writing.place = place


def _decode_tool(wire: Any) -> AnyTool:
    """Decode a tool of a known type; others are kept as built-in tools of the server."""
    if not is_object(wire):
        return odd_tool(wire, NAME)
    kind = wire.get("type")
    key = "function" if kind is None else kind
    shape = _TOOLS.get(key) if isinstance(key, str) else None
    made = None if shape is None else _read_function(shape, {**wire, "type": key}, key)
    if made is None:
        return ServerTool(kind if isinstance(kind, str) else "", NAME, wire)
    return made if kind is not None else without_type(made, wire)


class _Function(Struct, forbid_unknown_fields=True, gc=False):
    name: str
    parameters: Raw
    description: str | UnsetType = UNSET


class _Tool(Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["function"]
    function: _Function


_plain_tools = plain_decoder(list[_Tool]).decode
_BLANK = make_definition("", origin=ORIGIN)


def _decode_texts(text: bytes) -> tuple[AnyTool, ...] | None:
    """Decode plain functions, whose schemas stay text; None if there is more to one."""
    try:
        found = _plain_tools(text)
    except (MsgspecError, UnicodeError, RecursionError):
        return None
    made: list[AnyTool] = []
    for tool in found:
        function = tool.function
        about = function.description
        if not is_common(bytes(function.parameters)):
            return None
        about = None if about is UNSET else about
        made.append(with_schema_text(_BLANK, function.name, about, function.parameters))
    return tuple(made) or None


known_tools = KnownTools(_decode_tool, _decode_texts)


def _decode_functions(wire: Any) -> list[ToolDefinition]:
    """Decode legacy `functions`; empty if any is malformed (then all stay in the extras)."""
    found = [_read_function(_FUNCTION, each) for each in wire] if is_list(wire) else []
    made = [tool for tool in found if tool is not None]
    return [
        tool.replace_unchecked(extras=merged(extras_of({}, NAME, ("functions",)), tool.extras))
        for tool in (made if len(made) == len(found) else ())
    ]


def _read_function(shape: Shape[Any], wire: Any, key: str = "") -> ToolDefinition | None:
    """A tool, whose definition is in a field; a word tells if the schema had Google's name."""
    inner = wire.get(key) if key else wire
    if not is_object(inner):
        return None
    is_renamed = "parameters" not in inner and is_object(inner.get(_OTHER_SCHEMA))
    if is_renamed:
        inner = {"parameters" if k == _OTHER_SCHEMA else k: v for k, v in inner.items()}
    made = shape.read({**wire, key: inner} if key else inner, SILENT)
    if not isinstance(made, ToolDefinition):
        return None
    if is_renamed:
        made = made.replace_unchecked(extras=with_word(made.extras, NAME, _OTHER_SCHEMA))
    return made


def without_type(made: Any, wire: dict[str, Any]) -> Any:
    """A tool or call that came without a type, or null."""
    ours = extras_of({"type": None} if "type" in wire else {}, NAME, ("-type",))
    return made.replace_unchecked(extras=merged(ours, made.extras))


def _encode_function(tool: ToolDefinition, writing: Writing) -> dict[str, Any]:
    if tool.cache is not None:
        writing.lose_here("cache hints are not supported on legacy functions", ".cache")
    body = _FUNCTION.body(tool, writing)
    return with_overlay(_fitted(tool, body, writing), tool.extras, NAME)


def _encode_tool(tool: ToolDefinition, writing: Writing) -> dict[str, Any]:
    takes_text = writing.target.tools.takes_text or is_own(tool.origin)
    kind = tool.kind if takes_text else "function"
    body = _TOOLS[kind].body(tool, writing)
    body[kind] = _fitted(tool, body[kind], writing)
    if "-type" in words_of(tool.extras, NAME) and kind == "function":
        del body["type"]
    return with_overlay(body, tool.extras, NAME)


def _fitted(tool: ToolDefinition, inner: dict[str, Any], writing: Writing) -> dict[str, Any]:
    """A definition with the schema as the target needs it."""
    if not is_own(tool.origin):
        named = {key: inner[key] for key in ("name", "description") if key in inner}
        return named | _encode_foreign(tool, writing, writing.here)
    if _OTHER_SCHEMA in words_of(tool.extras, NAME) and "parameters" in inner:
        inner[_OTHER_SCHEMA] = inner.pop("parameters")
    return inner


def _encode_foreign(tool: ToolDefinition, writing: Writing, path: str) -> dict[str, Any]:
    """Encode the parameters of another dialect's tool, compiled for the target."""
    if tool.kind == "custom" and not writing.target.tools.takes_text:
        return {"parameters": writing.schemas.text_tool(tool, path)}
    if tool.kind == "custom":
        return {} if tool.format is None else {"format": _encode_format(tool.format)}
    if tool.parameters is None and tool.strict is not True:
        return {} if tool.strict is None else {"strict": False}
    # A schema outside the strict subset fails the whole request (W14).
    schema, is_strict = writing.schemas.tool(tool, path, openai_profiles(writing.target))
    body: dict[str, Any] = {"parameters": schema}
    if is_strict or tool.strict is False:
        body["strict"] = is_strict
    return body


def _encode_format(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """Encode the input format of a custom tool; a grammar is in a nested object."""
    if form.get("type") != "grammar" or "grammar" in form:
        return form
    return {"type": "grammar", "grammar": {k: v for k, v in form.items() if k != "type"}}


# --- tool choice, including the legacy `function_call`

_Mode = Literal["auto", "none", "required", "named", "allowed"]
# "any" is Mistral's value for "required".
_MODES: dict[str, _Mode] = {
    "auto": "auto", "none": "none", "required": "required", "any": "required"
}  # fmt: skip


def decode_choice(wire: dict[str, Any], used: set[str]) -> ToolChoice | None:
    """Decode the tool choice; adds the decoded fields to `used`."""
    parallel = wire.get("parallel_tool_calls")
    if isinstance(parallel, bool):
        used.add("parallel_tool_calls")
    else:
        parallel = None
    for key, decode in _CHOICES:
        choice = decode(wire[key]) if key in wire else None
        if choice is not None:
            used.add(key)
            return choice if parallel is None else choice.replace(parallel=parallel)
    return None if parallel is None else ToolChoice(parallel=parallel)


def encode_choice(
    choice: ToolChoice, tools: tuple[AnyTool, ...], body: dict[str, Any], target: Target
) -> None:
    """Encode a tool choice; `auto`, the default, is only written if the original had it."""
    if choice.parallel is not None:
        body["parallel_tool_calls"] = choice.parallel
    words = words_of(choice.extras, NAME)
    if "function_call" in words and choice.mode in ("auto", "none", "named"):
        named = {"name": choice.names[0]} if choice.mode == "named" else choice.mode
        body["function_call"] = (
            with_overlay(named, choice.extras, NAME) if is_object(named) else named
        )
        return
    if choice.mode == "named":
        kind = next((word for word in ("function", "custom") if word in words), None)
        name = choice.names[0]
        body["tool_choice"] = _named(name, kind or _kinds(tools).get(name, "function"))
    elif choice.mode == "allowed":
        body["tool_choice"] = _allowed(choice.names, tools, is_required=choice.is_required)
    elif choice.mode != "auto" or "auto" in words:
        body["tool_choice"] = _word(choice.mode, words, target)
    if is_object(written := body.get("tool_choice")):
        spelled = with_overlay({"tool_choice": written}, choice.extras, NAME)
        body["tool_choice"] = spelled["tool_choice"]


def _word(mode: str, words: Any, target: Target) -> str:
    if mode != "required":
        return mode
    return target.tools.required_word or ("any" if "any" in words else mode)


def _decode_tool_choice(wire: Any) -> ToolChoice | None:
    if isinstance(wire, str) and wire in _MODES:
        words = (wire,) if wire in ("auto", "any") else ()
        return ToolChoice(_MODES[wire], extras=extras_of({}, NAME, words))
    if not is_object(wire):
        return None
    kind, name, allowed = wire.get("type"), _name_in(wire), wire.get("allowed_tools")
    if kind in ("function", "custom") and name is not None:
        extras = _choice_extras(wire, {"type": kind, kind: {"name": name}}, (kind,))
        return ToolChoice("named", (name,), extras=extras)
    listed = allowed.get("tools") if kind == "allowed_tools" and is_object(allowed) else None
    tools = listed if is_list(listed) else [None]
    names = tuple([found for tool in tools if (found := _name_in(tool)) is not None])
    if not is_object(allowed) or len(names) < len(tools):
        return None
    must = allowed.get("mode") == "required"
    extras = _choice_extras(wire, _allowed(names, (), is_required=must))
    return ToolChoice("allowed", names, extras=extras, is_required=must)


def _choice_extras(
    wire: dict[str, Any], rebuilt: dict[str, Any], words: tuple[str, ...] = ()
) -> FrozenDict:
    return overlay_of({"tool_choice": wire}, (), NAME, {"tool_choice": rebuilt}, words)


def _name_in(tool: Any) -> str | None:
    """The name in a reference to a tool, which is in the field of its type."""
    kind = tool.get("type") if is_object(tool) else None
    inner = tool.get(kind) if isinstance(kind, str) else None
    name = inner.get("name") if is_object(inner) else None
    return name if isinstance(name, str) else None


def _named(name: str, kind: str) -> dict[str, Any]:
    return {"type": kind, kind: {"name": name}}


def _allowed(
    names: tuple[str, ...], tools: tuple[AnyTool, ...], *, is_required: bool
) -> dict[str, Any]:
    kinds = _kinds(tools)
    listed = [_named(name, kinds.get(name, "function")) for name in names]
    mode = "required" if is_required else "auto"
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": listed}}


def _kinds(tools: tuple[AnyTool, ...]) -> dict[str, str]:
    """The kinds of tools by name; of several with one name, the first counts."""
    return {tool.name: tool.kind for tool in reversed(tools) if isinstance(tool, ToolDefinition)}


def _decode_function_call(wire: Any) -> ToolChoice | None:
    if wire in ("auto", "none"):
        return ToolChoice(_MODES[wire], extras=extras_of({}, NAME, ("function_call",)))
    name = wire.get("name") if is_object(wire) else None
    if not is_object(wire) or not isinstance(name, str):
        return None
    left = {key: value for key, value in wire.items() if key != "name"}
    return ToolChoice("named", (name,), extras=extras_of(left, NAME, ("function_call",)))


_CHOICES = (("tool_choice", _decode_tool_choice), ("function_call", _decode_function_call))


# --- calls, including the legacy `function_call`

_GOOGLE = "google"  # Gemini's thought signatures in its Chat-compatible API (W17, W100)


ARGUMENTS = {"function": "arguments", "custom": "input"}
"""The arguments field by call kind."""


def decode_signature(content: Any) -> str | None:
    """Decode Gemini's thought signature, if `extra_content` has nothing else."""
    google = content.get(_GOOGLE) if is_object(content) and len(content) == 1 else None
    found = google.get("thought_signature") if is_object(google) and len(google) == 1 else None
    return found if isinstance(found, str) else None


def encode_signature(signature: str) -> dict[str, Any]:
    """Encode Gemini's thought signature as `extra_content`."""
    return {_GOOGLE: {"thought_signature": signature}}


def _read_function_of(kind: str, inner: dict[str, Any], _: Reading) -> dict[str, Any] | None:
    name, arguments = inner.get("name"), inner.get(ARGUMENTS[kind])
    is_readable = arguments is None or isinstance(arguments, str)
    if type(name) is not str or not (is_readable or (is_object(arguments) and kind == "function")):
        return None
    return {"name": name, "arguments": arguments}


def _write_function_of(kind: str, call: ToolCall, writing: ChatWriting) -> dict[str, Any]:
    inner: dict[str, Any] = {"name": call.name}
    words, takes_text = words_of(call.extras, NAME), _takes_text(call, writing)
    if call.kind == "custom":
        if not ("-arguments" in words and not call.raw and takes_text):
            text = call.raw_arguments
            inner[ARGUMENTS[kind]] = text if takes_text else dumps({TEXT_ARGUMENT: text}).decode()
    elif "object" in words and call.input is not None:
        inner["arguments"] = call.input
    elif "-arguments" not in words or call.input or call.raw:
        inner["arguments"] = _arguments_text(call, writing)
    return inner


def _takes_text(call: ToolCall, writing: ChatWriting) -> bool:
    return writing.is_own(call) or writing.target.tools.takes_text


def _arguments_text(call: ToolCall, writing: ChatWriting) -> str:
    """The arguments text. Other dialects' calls without any get an empty object.

    A call truncated before its arguments stays without any (I7).
    """
    raw = call.raw_arguments
    return raw if not is_blank(raw) or writing.is_own(call) or writing.is_cut_off else NO_ARGUMENTS


def _made_call(
    r: Reading, kind: Any, name: str, arguments: Any, wire_id: str | None = None,
    signature: str | None = None,
) -> ToolCall:  # fmt: skip
    words = [] if isinstance(arguments, str) else ["-arguments" if arguments is None else "object"]
    if wire_id is None:
        words.append("tool_calls")
    if signature is not None and signature.startswith(PREFIX):
        r.has_envelopes = True
    if arguments is None and kind == "custom":
        arguments = ""
    call_id, own_id = r.calls.add_call(name, wire_id, arguments)
    raw, given = (arguments, None) if isinstance(arguments, str) else (None, arguments or EMPTY)
    is_bare = kind == "function" and raw is not None and is_blank(raw)
    is_bound = signature is not None or own_id is not UNSET or is_bare
    return make_call(
        call_id, name, raw, given, kind, wire_id=own_id, signature=signature,
        origin=r.origin if is_bound else None,
        extras=extras_of({}, NAME, words) if words else EMPTY,
    )  # fmt: skip


def _write_id(call: ToolCall, writing: ChatWriting) -> str | None:
    """The id; the original one is only sent back to this dialect."""
    if call.wire_id is UNSET or not writing.is_own(call):
        return call.id
    writing.wire_ids[call.id] = call.wire_id
    return call.wire_id


def _write_signature(call: ToolCall, writing: ChatWriting) -> dict[str, Any] | None:
    is_sent = call.signature is not None and not writing.is_foreign(call)
    return encode_signature(str(call.signature)) if is_sent else None


def _spelled_call(call: ToolCall, body: dict[str, Any], _: ChatWriting) -> dict[str, Any]:
    if "-type" in words_of(call.extras, NAME):
        del body["type"]
    return {"id": body.pop("id"), **body} if "id" in body else body  # first, as everybody has it


def _call_shape(kind: str) -> Shape[ToolCall]:
    inner = Value(OBJECT.test, partial(_read_function_of, kind), partial(_write_function_of, kind))
    return Shape(
        NAME, kind, ToolCall,
        Row("id", "wire_id", TEXT._replace(write=_write_id, exact=True), takes_owner=True,
            reports=True),
        Row(kind, "", inner, is_required=True, deep=True),
        Row("extra_content", "signature", Value(OBJECT.test, decode_signature, _write_signature),
            takes_owner=True, reports=True),
        make=_made_call, writes=_spelled_call, given={"r": "r", "kind": repr(kind)},
    )  # fmt: skip


CALLS = {kind: _call_shape(kind) for kind in ARGUMENTS}
_NO_CALL = object()
_AS_CALL = extras_of({}, NAME, ("tool_calls",))


def decode_call(wire: Any, reading: Reading) -> AnyPart:
    """Decode one of `tool_calls`; unknown and malformed ones become opaque parts."""
    kind = wire.get("type") if is_object(wire) else _NO_CALL
    key = kind
    if kind is None:
        key = "custom" if "function" not in wire and "custom" in wire else "function"
    shape = CALLS.get(key) if isinstance(key, str) else None
    if shape is not None:
        made: Any = shape.read(wire if kind else {**wire, "type": key}, reading)
        if type(made) is ToolCall:
            return made if kind else without_type(made, wire)
    return Opaque(NAME, wire, origin=reading.origin, extras=_AS_CALL)


def encode_call(call: ToolCall, writing: ChatWriting) -> dict[str, Any]:
    """Encode one of `tool_calls`."""
    kind = call.kind if _takes_text(call, writing) else "function"
    found: dict[str, Any] = CALLS[kind].write(call, writing)
    return found


def _made_function_call(r: Reading, name: str, raw: str) -> ToolCall:
    call_id, _ = r.calls.add_call(name, None, raw)
    return make_call(call_id, name, raw, wire_id=None, origin=r.origin)


_FUNCTION_CALL = Shape(
    NAME, None, ToolCall,
    Row("name", "name", is_required=True),
    Row("arguments", "raw", TEXT._replace(write=lambda call: call.raw_arguments, exact=True),
        is_required=True, takes_owner=True),
    make=_made_function_call, given={"r": "r"},
)  # fmt: skip


def decode_function_call(wire: Any, reading: Reading) -> ToolCall | None:
    """Decode a legacy `function_call`, which has no id; that is how it is recognised later."""
    made = _FUNCTION_CALL.read(wire, reading) if is_object(wire) else None
    return made if type(made) is ToolCall else None


def encode_function_call(call: ToolCall, writing: ChatWriting) -> dict[str, Any]:
    """Encode a legacy `function_call`."""
    writing.legacy.add(call.id)
    writing.wire_ids[call.id] = None
    found: dict[str, Any] = _FUNCTION_CALL.write(call, writing)
    return found


def is_legacy(call: ToolCall, writing: ChatWriting) -> bool:
    """Whether a call was received as `function_call`."""
    return (
        call.wire_id is None
        and call.kind == "function"
        and "tool_calls" not in words_of(call.extras, NAME)
        and writing.is_own(call)
    )


# --- server-run tools: Groq's `executed_tools`, where one object holds call and result

EXECUTED_TOOLS = "executed_tools"
_OUTCOME = ("output", "search_results", "code_results", "browser_results")


def decode_server_tools(wire: Any, origin: Origin | None) -> list[AnyPart]:
    """Decode a call and its result for each executed tool; empty if any is malformed."""
    parts: list[AnyPart] = []
    for item in wire if is_list(wire) else ():
        name = item.get("type") if is_object(item) else None
        if not is_object(item) or not isinstance(name, str):
            return []
        known = (
            {"type", "arguments", *_OUTCOME}
            if item.get("arguments") is not None
            else {"type", *_OUTCOME}
        )
        extras = overlay_of(item, known, NAME)
        parts.append(
            ServerToolCall(name, input=item.get("arguments"), origin=origin, extras=extras)
        )
        outcome = {key: item[key] for key in _OUTCOME if key in item}
        if outcome:
            parts.append(ServerToolResult(name, content=outcome, origin=origin))
    return parts


def encode_server_tool(
    part: ServerToolCall | ServerToolResult, executed: list[dict[str, Any]]
) -> None:
    """Add a call as a new executed tool, or a result to the last one."""
    if isinstance(part, ServerToolCall):
        arguments = {} if part.input is None else {"arguments": part.input}
        executed.append(with_overlay({"type": part.name, **arguments}, part.extras, NAME))
        return
    if not executed:
        executed.append({"type": part.name})
    executed[-1].update(part.content if is_object(part.content) else {"output": part.content})
