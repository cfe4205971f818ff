"""Requests: the turns, the brief, tools and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import WireError
from dragoman.model.parts import Text
from dragoman.model.requests import AnyTool, Output, Request, Sampling
from dragoman.model.tools import ServerTool, ToolChoice, ToolDefinition, make_definition
from dragoman.wire import json_values, overlay
from dragoman.wire.encoded import Encoded
from dragoman.wire.schemas import Profiles, SentSchemas
from dragoman.wire.target import Target
from dragoman_courier.content import Report, decode_turn, encode_turn
from dragoman_courier.description import NAME, OWN, SCHEMAS, TARGET

PATH = "/send"
_SETTINGS = {"limit": "max_tokens", "temperature": "temperature"}
_PROFILES = Profiles(strict=SCHEMAS, loose=SCHEMAS)


def decode_request(wire: Mapping[str, Any]) -> Request:
    """The request in a body."""
    turns = json_values.want(wire, "turns", list, NAME, "$")
    brief, model, stream = wire.get("brief"), wire.get("model"), wire.get("stream")
    numbers = {ours: wire[key] for key, ours in _SETTINGS.items() if _is_number(wire.get(key), key)}
    request = Request(
        model=model if isinstance(model, str) else None,
        system=(Text(brief),) if isinstance(brief, str) and brief else (),
        messages=tuple(decode_turn(turn, f"turns[{i}]") for i, turn in enumerate(turns)),
        tools=_decode_tools(wire.get("tools")),
        tool_choice=ToolChoice(mode="none") if wire.get("calls") is False else None,
        sampling=Sampling(**numbers),
        output=_decode_form(wire.get("form")),
        stream=stream if isinstance(stream, bool) else None,
    )
    kept = overlay.overlay_of(wire, (), NAME, encode_request(request).body)
    return request.replace(extras=kept)


def encode_request(request: Request, _target: Target = TARGET) -> Encoded:
    """The body to send for a request that was fitted to the target."""
    report = Report()
    schemas = SentSchemas(report.losses, report.repairs)
    body: dict[str, Any] = {} if request.model is None else {"model": request.model}
    brief = "\n\n".join(part.text for part in request.system if isinstance(part, Text))
    if brief:
        body["brief"] = brief
    for index, part in enumerate(request.system):
        if not isinstance(part, Text):
            report.lose(f"system[{index}]", "the brief is a text")
    turns = (encode_turn(said, f"messages[{i}]", report) for i, said in enumerate(request.messages))
    body["turns"] = [turn for turn in turns if turn is not None]
    if tools := _encode_tools(request.tools, report, schemas):
        body["tools"] = tools
    if request.output is not None:
        _encode_form(request.output, body, report, schemas)
    if request.tool_choice is not None and request.tool_choice.mode == "none":
        body["calls"] = False
    for key, name in _SETTINGS.items():
        if (value := getattr(request.sampling, name)) is not None:
            body[key] = value
    if request.stream is not None:
        body["stream"] = request.stream
    return Encoded(
        overlay.with_overlay(body, request.extras, NAME),
        path=PATH,
        losses=tuple(report.losses),
        repairs=tuple(report.repairs),
        context=schemas.context,
    )


def _decode_form(wire: Any) -> Output | None:
    """The schema that the answer is to be of."""
    return Output(format="schema", schema=wire, origin=OWN) if isinstance(wire, dict) else None


def _encode_form(
    output: Output, body: dict[str, Any], report: Report, schemas: SentSchemas
) -> None:
    if output.schema is not None:
        body["form"] = schemas.labelled(output.schema, output)
    elif output.format != "text":
        report.lose("output", "an answer is of a schema, or any text")


def _is_number(value: object, key: str) -> bool:
    return type(value) is int or (type(value) is float and key != "limit")


def _decode_tools(wire: Any) -> tuple[AnyTool, ...]:
    return tuple(map(_decode_tool, wire)) if isinstance(wire, list) else ()


def _decode_tool(wire: Any) -> AnyTool:
    """A definition; one that we can't read is carried whole."""
    name, schema = (wire.get("tool"), wire.get("takes")) if isinstance(wire, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(schema, dict):
        if not isinstance(wire, dict):
            msg = "a tool is an object"
            raise WireError(msg, dialect=NAME, path="$.tools")
        return ServerTool("", NAME, wire)
    about = wire.get("about")
    about = about if isinstance(about, str) else None
    tool = make_definition(name, about, schema, origin=OWN)
    return tool.replace_unchecked(extras=overlay.overlay_of(wire, (), NAME, _written(tool, schema)))


def _encode_tools(
    tools: tuple[AnyTool, ...], report: Report, schemas: SentSchemas
) -> list[Mapping[str, Any]]:
    written: list[Mapping[str, Any]] = []
    for index, tool in enumerate(tools):
        path = f"tools[{index}]"
        if isinstance(tool, ToolDefinition):
            if tool.kind == "custom":
                report.lose(path, "a tool that takes free text is sent as one without parameters")
            schema, _ = schemas.tool(tool, path, _PROFILES)
            written.append(overlay.with_overlay(_written(tool, schema), tool.extras, NAME))
        elif tool.dialect == NAME:
            written.append(tool.payload)
        else:
            report.lose(path, "a tool that only another provider runs")
        if tool.cache is not None:
            report.lose(f"{path}.cache", "nothing is cached here")
    return written


def _written(tool: ToolDefinition, schema: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"tool": tool.name, "takes": schema}
    return body if tool.description is None else {**body, "about": tool.description}
