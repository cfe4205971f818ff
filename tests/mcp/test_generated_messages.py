"""What a server may send, generated from the SDK's own types: mostly legal, and sometimes odd."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import mcp_types as types
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from dragoman import Agent, Request, dialect
from dragoman.errors import DragomanError
from dragoman.mcp import MCPServer, Question, Sampling
from dragoman.testing import EchoModel, ScriptedModel
from tests.mcp.servers import Scripted, Send, calling

Value = st.SearchStrategy[Any]
_TEXTS = ("", "a", "do", "x" * 300, "\ud800", "a\0b", "über prüfen", "../..", "aGk=", "image/png",
          "iVBORw0KGgo=", "data:,x", "file:///etc/passwd", "http://[::1", "\u202e")  # fmt: skip
_NUMBERS = (0, 1, -1, 2**63, 10**400, 0.5, 1e308, -1e308, float("nan"), float("inf"))
_ODD: tuple[Any, ...] = (*_TEXTS, *_NUMBERS, True, None, [], {}, [[]], {"": None}, {"$ref": "#"})
_DEFINITIONS = {"a": {"$ref": "#/$defs/a"}}
_SCHEMAS: tuple[Any, ...] = (
    {"type": "object"}, {"$ref": "#"}, {"type": ["object", "null"]}, {"type": 5}, True,
    {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": _DEFINITIONS},
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a+)+$"}}},
    {"type": "object", "required": ["q"]}, {"properties": []}, {"type": "object", "enum": []},
    {"allOf": [{"$ref": "#"}], "type": "object"},
    {"type": "object", "additionalProperties": {"$ref": "#"}},
)  # fmt: skip
_DEEPEST = 6
_LISTS = {
    "tools/list": types.ListToolsResult, "tools/call": types.CallToolResult,
    "resources/list": types.ListResourcesResult, "resources/read": types.ReadResourceResult,
    "resources/templates/list": types.ListResourceTemplatesResult,
    "prompts/list": types.ListPromptsResult, "prompts/get": types.GetPromptResult,
}  # fmt: skip
_MESSAGES: dict[str, type[BaseModel]] = {
    "sampling/createMessage": types.CreateMessageRequest, "ping": types.PingRequest,
    "elicitation/create": types.ElicitRequest, "roots/list": types.ListRootsRequest,
    "notifications/progress": types.ProgressNotification,
    "notifications/cancelled": types.CancelledNotification,
    "notifications/message": types.LoggingMessageNotification,
    "notifications/resources/updated": types.ResourceUpdatedNotification,
    "notifications/tools/list_changed": types.ToolListChangedNotification,
    "notifications/prompts/list_changed": types.PromptListChangedNotification,
    "notifications/resources/list_changed": types.ResourceListChangedNotification,
    "notifications/unknown": types.ToolListChangedNotification,
}  # fmt: skip


@cache
def _usual(annotation: Any, depth: int = 0) -> Value:
    """Values that a type allows."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _usual(inner[0], depth)
    if origin in {Union, UnionType}:
        return st.one_of([_any(each, depth) for each in inner])
    if origin is Literal:
        return st.sampled_from(inner)
    if origin is list:
        return st.lists(_any(inner[0], depth + 1), max_size=0 if depth > _DEEPEST else 3)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _objects(annotation, depth + 1)
    plain: dict[Any, tuple[Any, ...]] = {
        str: _TEXTS, int: (0, 1, -1, 2**70), float: _NUMBERS, bool: (True, False), NoneType: (None,)
    }  # fmt: skip
    return st.sampled_from(plain.get(annotation, _ODD))


def _any(annotation: Any, depth: int) -> Value:
    """Now and then a value that no type allows there."""
    usual, odd = _usual(annotation, depth), st.sampled_from(_ODD)
    return st.integers(0, 15).flatmap(lambda chance: usual if chance else odd)


def _objects(kind: type[BaseModel], depth: int) -> Value:
    if depth > _DEEPEST:
        return st.just({})
    fields: dict[bool, dict[str, Value]] = {True: {}, False: {"unknown": st.sampled_from(_ODD)}}
    for name, field in kind.model_fields.items():
        values = st.sampled_from(_SCHEMAS) if "schema" in name else _any(field.annotation, depth)
        fields[field.is_required()][field.alias or name] = values
    return st.fixed_dictionaries(fields[True], optional=fields[False])


def _params(kind: type[BaseModel]) -> Value:
    field = kind.model_fields.get("params")
    annotation: Any = None if field is None else field.annotation
    return st.none() if field is None else _usual(annotation)


answers = st.fixed_dictionaries({name: _usual(kind) for name, kind in _LISTS.items()})
unasked = st.lists(
    st.one_of([st.tuples(st.just(name), _params(kind)) for name, kind in _MESSAGES.items()]),
    max_size=6,
)


async def _use_tools(server: MCPServer) -> None:
    tools = await server.tools()
    if not tools:
        return
    agent = Agent(ScriptedModel([calling(tools[0].name), "Done."]), tools=[server])
    result = await agent.send("Go.")
    assert result.text == "Done."
    request = Request(messages=tuple(result.messages), tools=tuple(t.definition for t in tools))
    for name in ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama"):
        dialect(name).encode_request(request)


_USES: tuple[Callable[[MCPServer], Awaitable[Any]], ...] = (
    _use_tools, lambda server: server.call_tool("do"), MCPServer.resources, MCPServer.prompts,
    MCPServer.resource_templates, lambda server: server.read_resource("test://a"),
    lambda server: server.prompt("a"),
)  # fmt: skip


def _answer(result: dict[str, Any], sent: list[tuple[str, Any]]) -> Any:
    given = {name: value for name, value in result.items() if name not in {"nextCursor", "code"}}

    async def answer(message: dict[str, Any], send: Send) -> dict[str, Any]:
        for place, (method, params) in enumerate(sent):
            request = {
                "method": method,
                **({} if not isinstance(params, dict) else {"params": params}),
            }
            if not method.startswith("notifications/"):
                request["id"] = f"{message['id']}-{place}"
            await send(request)
        return given

    return answer


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(answers, unasked)
def test_every_use_ends_with_a_result_or_with_our_error(
    given: dict[str, dict[str, Any]], sent: list[tuple[str, Any]]
) -> None:
    """Whatever a server answers, asks and tells: lists, calls and runs end, and so does closing."""

    async def elicit(_question: Question) -> dict[str, Any]:
        return {"a": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}

    async def run() -> None:
        scripted = Scripted(
            {name: _answer(result, sent) for name, result in given.items()}, elicit=elicit,
            sampling=Sampling(EchoModel(), approve=True), roots=["."], timeout=20.0,
            on_progress=lambda _: None,
        )  # fmt: skip
        said = ""
        for use in _USES:
            try:
                said += repr(await use(scripted.server))
            except DragomanError as error:
                said += str(error)
        assert "\ud800" not in said
        await scripted.server.close()

    asyncio.run(asyncio.wait_for(run(), 120))
