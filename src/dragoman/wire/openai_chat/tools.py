"""Tool definitions, tool choice, tool calls, and server-run tools."""

from __future__ import annotations

from collections.abc import Mapping
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
from dragoman.wire.openai_chat.content import decode_cache, encode_cache
from dragoman.wire.openai_chat.dialect import NAME, ORIGIN, ChatWriting, is_own
from dragoman.wire.openai_strict_schemas import openai_profiles
from dragoman.wire.overlay import extras_of, overlay_of, with_overlay, words_of
from dragoman.wire.plain.schemas import is_common
from dragoman.wire.reading import Reading
from dragoman.wire.settings_rows import lose_tool_settings
from dragoman.wire.target import Target
from dragoman.wire.text_tools import TEXT_ARGUMENT
from dragoman.wire.tolerance import odd_tool, payload_of
from dragoman.wire.writing import Writing

# --- tool definitions, including the legacy `functions`

_DEFINITION = {
    "name": str, "description": str, "parameters": dict, "strict": bool, "format": dict
}  # fmt: skip
_OTHER_SCHEMA = "parametersJsonSchema"
"""Google's name for the schema of a function, which its clients also send to Chat hosts."""
WEB_SEARCH = "web_search_options"
"""The name of the built-in search, which is a request field and not in `tools`."""


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
    for index, tool in enumerate(tools):
        path = f"tools[{index}]"
        if isinstance(tool, ToolDefinition):
            is_old = "functions" in words_of(tool.extras, NAME) and tool.kind == "function"
            field = "functions" if is_old else "tools"
            body.setdefault(field, []).append(_encode_tool(tool, field, writing, path))
            lose_tool_settings(tool, path, writing)
        elif tool.dialect != NAME:
            writing.lose(path, "another provider's built-in tool is left out")
        elif tool.name == WEB_SEARCH and WEB_SEARCH not in body:
            body[WEB_SEARCH] = tool.payload
        else:
            body.setdefault("tools", []).append(payload_of(tool))
        if isinstance(tool, ServerTool) and tool.cache is not None:
            writing.lose(f"{path}.cache", "cache hints are not supported on built-in tools")


def _decode_tool(wire: Any) -> AnyTool:
    """Decode a tool of a known type; others are kept as built-in tools of the server."""
    if not is_object(wire):
        return odd_tool(wire, NAME)
    plain = _decode_plain_tool(wire)
    if plain is not None:
        return plain
    kind = wire.get("type")
    key = "function" if kind is None else kind
    inner = wire.get(key) if key in ("function", "custom") else None
    if not is_object(inner) or not isinstance(inner.get("name"), str):
        return ServerTool(kind if isinstance(kind, str) else "", NAME, wire)
    fields, left = _decode_definition(inner)
    cache, field = decode_cache(wire)
    words, known = (["-type"], {key}) if kind is None else (list[str](), {"type", key})
    if field:
        known.add(field)
        words.append(field)
    outer = {name: value for name, value in wire.items() if name not in known}
    words += _schema_words(inner, left)
    if left:
        outer[key] = left
    fields |= {"kind": key, "cache": cache, "extras": extras_of(outer, NAME, words)}
    return make_definition(**fields, origin=ORIGIN)


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


def _decode_plain_tool(wire: dict[str, Any]) -> ToolDefinition | None:
    """Decode a function with only known fields, as nearly all are; None if there is more."""
    inner = wire.get("function")
    if len(wire) != 2 or wire.get("type") != "function" or type(inner) is not dict:  # noqa: PLR2004
        return None
    for name, value in inner.items():
        if type(value) is not _DEFINITION.get(name):
            return None
    return make_definition(**inner, origin=ORIGIN) if "name" in inner else None


def _decode_definition(wire: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The decoded fields of a definition, and the remaining ones."""
    fields = {
        name: value
        for name, value in wire.items()
        if name in _DEFINITION and isinstance(value, _DEFINITION[name])
    }
    if len(fields) == len(wire):
        return fields, {}
    left = {name: value for name, value in wire.items() if name not in fields}
    if "parameters" not in wire and is_object(wire.get(_OTHER_SCHEMA)):
        fields["parameters"] = left.pop(_OTHER_SCHEMA)
    return fields, left


def _decode_functions(wire: Any) -> list[ToolDefinition]:
    """Decode legacy `functions`; empty if any is malformed (then all stay in the extras)."""
    tools: list[ToolDefinition] = []
    for function in wire if is_list(wire) else ():
        if not is_object(function) or not isinstance(function.get("name"), str):
            return []
        fields, left = _decode_definition(function)
        extras = extras_of(left, NAME, ("functions", *_schema_words(function, left)))
        tools.append(make_definition(**fields, origin=ORIGIN, extras=extras))
    return tools


def _schema_words(wire: dict[str, Any], left: dict[str, Any]) -> list[str]:
    """An overlay word if the schema had Google's name."""
    return [_OTHER_SCHEMA] if _OTHER_SCHEMA in wire and _OTHER_SCHEMA not in left else []


def _encode_tool(tool: ToolDefinition, field: str, writing: Writing, path: str) -> dict[str, Any]:
    inner = _encode_definition(tool, writing, path)
    if field == "functions":
        if tool.cache is not None:
            writing.lose(f"{path}.cache", "cache hints are not supported on legacy functions")
        return with_overlay(inner, tool.extras, NAME)
    takes_text = writing.target.tools.takes_text or is_own(tool.origin)
    kind = tool.kind if takes_text else "function"
    body: dict[str, Any] = {"type": kind, kind: inner}
    if "-type" in words_of(tool.extras, NAME) and kind == "function":
        del body["type"]
    encode_cache(body, tool, writing, path)
    return with_overlay(body, tool.extras, NAME)


def _encode_definition(tool: ToolDefinition, writing: Writing, path: str) -> dict[str, Any]:
    body: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        body["description"] = tool.description
    if not is_own(tool.origin):
        return body | _encode_foreign(tool, writing, path)
    for name in ("parameters", "format", "strict"):
        if (value := getattr(tool, name)) is not None:
            is_other = name == "parameters" and _OTHER_SCHEMA in words_of(tool.extras, NAME)
            body[_OTHER_SCHEMA if is_other else name] = value
    return body


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


def decode_call(wire: Any, reading: Reading) -> AnyPart:
    """Decode one of `tool_calls`; unknown and malformed ones become opaque parts."""
    call = None
    if is_object(wire):
        call = _decode_plain_call(wire, reading) or _decode_call(wire, reading)
    if call is not None:
        return call
    return Opaque(NAME, wire, origin=reading.origin, extras=extras_of({}, NAME, ("tool_calls",)))


def _decode_plain_call(wire: dict[str, Any], reading: Reading) -> ToolCall | None:
    """Decode a call with only id, type, name and arguments, as nearly all are; else None.

    Same result as `_decode_call`, 2.5 times as fast.
    """
    wire_id, inner = wire.get("id"), wire.get("function")
    if len(wire) != 3 or wire.get("type") != "function" or type(wire_id) is not str:  # noqa: PLR2004
        return None
    if type(inner) is not dict or len(inner) != 2:  # noqa: PLR2004
        return None
    name, arguments = inner.get("name"), inner.get("arguments")
    if type(name) is not str or type(arguments) is not str or is_blank(arguments):
        return None
    call_id, own_id = reading.calls.add_call(name, wire_id, arguments)
    if own_id is UNSET:
        return make_call(call_id, name, arguments)
    return make_call(call_id, name, arguments, wire_id=own_id, origin=reading.origin)


def _decode_call(wire: dict[str, Any], reading: Reading) -> ToolCall | None:
    given, wire_id = wire.get("type"), wire.get("id")
    is_custom = given == "custom" or (given is None and "function" not in wire and "custom" in wire)
    kind: Literal["function", "custom"] = "custom" if is_custom else "function"
    inner = wire.get(kind) if given in (None, kind) else None
    if not is_object(inner) or not isinstance(name := inner.get("name"), str):
        return None
    arguments = inner.get(ARGUMENTS[kind])
    words: list[str] = [] if given else ["-type"]
    known: set[str] = {"type", kind} if given else {kind}
    if not isinstance(arguments, str):
        if not (arguments is None or (is_object(arguments) and kind == "function")):
            return None
        words.append("-arguments" if arguments is None else "object")
    if isinstance(wire_id, str):
        known.add("id")
    else:
        wire_id = None
        words.append("tool_calls")
    signature = decode_signature(wire)
    if signature is not None:
        known.add("extra_content")
        reading.has_envelopes = reading.has_envelopes or signature.startswith(PREFIX)
    left: dict[str, Any] = {}
    if len(wire) > len(known):
        left = {key: value for key, value in wire.items() if key not in known}
    decoded = ("name",) if arguments is None else ("name", ARGUMENTS[kind])
    if len(inner) > len(decoded):
        left[kind] = {key: value for key, value in inner.items() if key not in decoded}
    if arguments is None and kind == "custom":
        arguments = ""
    call_id, own_id = reading.calls.add_call(name, wire_id, arguments)
    is_bare = kind == "function" and isinstance(arguments, str) and is_blank(arguments)
    is_bound = signature is not None or own_id is not UNSET or is_bare
    return make_call(
        call_id,
        name,
        arguments if isinstance(arguments, str) else None,
        None if isinstance(arguments, str) else arguments or EMPTY,
        kind,
        wire_id=own_id,
        signature=signature,
        origin=reading.origin if is_bound else None,
        extras=extras_of(left, NAME, words) if left or words else EMPTY,
    )


def decode_signature(wire: dict[str, Any]) -> str | None:
    """Decode Gemini's thought signature, if `extra_content` has nothing else."""
    content = wire.get("extra_content")
    google = content.get(_GOOGLE) if is_object(content) and len(content) == 1 else None
    if is_object(google) and len(google) == 1:
        signature = google.get("thought_signature")
        return signature if isinstance(signature, str) else None
    return None


def encode_signature(signature: str) -> dict[str, Any]:
    """Encode Gemini's thought signature as `extra_content`."""
    return {_GOOGLE: {"thought_signature": signature}}


def encode_call(call: ToolCall, writing: ChatWriting) -> dict[str, Any]:
    """Encode one of `tool_calls`; the original wire id is only sent back to this dialect."""
    words, wire_id = words_of(call.extras, NAME), call.wire_id
    if wire_id is UNSET or not writing.is_own(call):
        wire_id = call.id
    else:
        writing.wire_ids[call.id] = wire_id
    body: dict[str, Any] = {} if wire_id is None else {"id": wire_id}
    takes_text = writing.target.tools.takes_text or writing.is_own(call)
    kind = call.kind if takes_text else "function"
    if "-type" not in words:
        body["type"] = kind
    inner: dict[str, Any] = {"name": call.name}
    body[kind] = inner
    if call.kind == "custom" and "-arguments" in words and not call.raw and takes_text:
        pass
    elif call.kind == "custom":
        text = call.raw_arguments
        inner[ARGUMENTS[kind]] = text if takes_text else dumps({TEXT_ARGUMENT: text}).decode()
    elif "object" in words and call.input is not None:
        inner["arguments"] = call.input
    elif "-arguments" not in words or call.input or call.raw:
        inner["arguments"] = _arguments_text(call, writing)
    if call.signature is not None and not writing.is_foreign(call):
        body["extra_content"] = encode_signature(call.signature)
    return with_overlay(body, call.extras, NAME)


def _arguments_text(call: ToolCall, writing: ChatWriting) -> str:
    """The arguments text. Other dialects' calls without any get an empty object.

    A call truncated before its arguments stays without any (I7).
    """
    raw = call.raw_arguments
    if not is_blank(raw) or writing.is_cut_off or writing.is_own(call):
        return raw
    return NO_ARGUMENTS


def decode_function_call(wire: Any, reading: Reading) -> ToolCall | None:
    """Decode a legacy `function_call`, which has no id; that is how it is recognised later."""
    if not is_object(wire):
        return None
    name, arguments = wire.get("name"), wire.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, str):
        return None
    left = {key: value for key, value in wire.items() if key not in ("name", "arguments")}
    return make_call(
        reading.calls.add_call(name, None, arguments)[0],
        name,
        arguments,
        wire_id=None,
        origin=reading.origin,
        extras=extras_of(left, NAME),
    )


def encode_function_call(call: ToolCall, writing: ChatWriting) -> dict[str, Any]:
    """Encode a legacy `function_call`."""
    writing.legacy.add(call.id)
    writing.wire_ids[call.id] = None
    return with_overlay({"name": call.name, "arguments": call.raw_arguments}, call.extras, NAME)


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
