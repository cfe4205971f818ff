"""Tool calls and their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Opaque
from dragoman.model.tools import ResultPart, ToolCall, ToolResult, make_call, make_result
from dragoman.wire.anthropic.content import (
    FOREIGN_SIGNATURE,
    decode_content,
    decode_opaque,
    encode_content,
)
from dragoman.wire.anthropic.context import NAME, Block, Decoding, Encoding, is_ours
from dragoman.wire.anthropic.fields import decode_rest, encode_rest
from dragoman.wire.tolerance import Form, readable_answer, shaped_extras

_CALL = frozenset({"type", "id", "name", "input"})
_CALL_WITHOUT_ID = _CALL - {"id"}
_FORM = Form(NAME, {})
_BARE_RESULT = frozenset({"type", "tool_use_id", "content"})

TEXT_ARGUMENT = "input"
"""The argument that holds the text of a call that is not a JSON object (W45, I6)."""
NOT_AN_OBJECT = f"arguments that are not a JSON object are sent as text, in {TEXT_ARGUMENT!r}"


def decode_tool_use(block: Block, context: Decoding) -> ToolCall | Opaque:
    """A call; opaque without a name or without arguments."""
    name, arguments, wire_id = block.get("name"), block.get("input"), block.get("id")
    if (
        type(name) is not str
        or not isinstance(arguments, dict)
        or not (wire_id is None or type(wire_id) is str)
    ):
        return decode_opaque(block, context)
    call_id, kept = context.calls.admit(name, wire_id, arguments)
    if len(block) == len(_CALL) and kept is UNSET:
        return make_call(call_id, name, None, arguments)
    cache, extras = decode_rest(block, _CALL if wire_id is not None else _CALL_WITHOUT_ID)
    origin = None if kept is UNSET else context.origin  # else nobody knew whose id that was
    return make_call(
        call_id, name, None, arguments, wire_id=kept, cache=cache, extras=extras, origin=origin
    )


def plain_call(call: ToolCall) -> Block | None:
    """The block of a call that has nothing but id, name and arguments; None for all others."""
    if (
        call.wire_id is not UNSET
        or call.signature is not None
        or call.cache is not None
        or call.extras is not EMPTY
    ):
        return None
    arguments = call.object_arguments()
    if arguments is None:
        return None
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def encode_tool_call(call: ToolCall, context: Encoding) -> Block:
    """A `tool_use` block."""
    block: Block = {
        "type": "tool_use",
        "id": call.id,
        "name": call.name,
        "input": _encode_arguments(call, context),
    }
    if call.wire_id is not UNSET and is_ours(context.origin_of(call)):
        if call.wire_id is None:
            del block["id"]
        else:
            block["id"] = context.wire_ids[call.id] = call.wire_id
    if call.signature is not None:
        context.lose(FOREIGN_SIGNATURE)
    return encode_rest(block, call)


def _encode_arguments(call: ToolCall, context: Encoding) -> Mapping[str, Any]:
    found = call.object_arguments()
    if found is not None:
        return found
    context.repair("I6", "retyped", NOT_AN_OBJECT)
    return {TEXT_ARGUMENT: call.raw_arguments}


def decode_tool_result(block: Block, context: Decoding) -> ToolResult | Opaque:
    """A result; opaque where it does not name its call.

    No content is an empty tuple, which is not the empty text.
    """
    wire_id: Any = block.get("tool_use_id")
    content: Any = block.get("content")
    is_text = type(content) is str
    if type(wire_id) is not str:
        return decode_opaque(block, context)
    if not (is_text or content is None or isinstance(content, list)):
        made, shapes = readable_answer(block, _FORM)
        result = decode_tool_result(made, context)
        return result.replace(extras=shaped_extras(result.extras, NAME, shapes))
    call_id = context.calls.answer(wire_id) or ""
    if is_text and len(block) == len(_BARE_RESULT):
        return make_result(call_id, content)
    inner: str | tuple[ResultPart, ...] = content if is_text else _decode_content(content, context)
    known = {"type", "tool_use_id"}
    if inner != ():
        known.add("content")
    is_error = block.get("is_error")
    if type(is_error) is bool:
        known.add("is_error")
    else:
        is_error = None
    cache, extras = decode_rest(block, known)
    return make_result(call_id, inner, is_error=is_error, cache=cache, extras=extras)


def plain_result(result: ToolResult) -> Block | None:
    """The block of a result that is a text and nothing else; None for all others."""
    content = result.content
    if (
        type(content) is not str
        or not content
        or result.is_error is not None
        or result.cache is not None
        or result.extras is not EMPTY
    ):
        return None
    return {"type": "tool_result", "tool_use_id": result.call_id, "content": content}


def encode_tool_result(result: ToolResult, context: Encoding) -> Block:
    """A `tool_result` block."""
    call_id = result.call_id
    block: Block = {
        "type": "tool_result",
        "tool_use_id": context.wire_ids.get(call_id, call_id) if context.wire_ids else call_id,
    }
    content = result.content
    if not content and result.data is not UNSET:
        block["content"] = dumps(result.data).decode("utf-8")
    elif isinstance(content, str):
        block["content"] = content
    elif content:
        block["content"] = encode_content(content, context)
    if result.is_error is not None:
        block["is_error"] = result.is_error
    return encode_rest(block, result)


def _decode_content(blocks: Any, context: Decoding) -> str | tuple[ResultPart, ...]:
    if not blocks:
        return ()
    if len(blocks) == 1 and isinstance(block := blocks[0], dict) and len(block) == 2:  # noqa: PLR2004 - type and text
        text = block.get("text")
        if type(text) is str and block.get("type") == "text":
            return text
    return tuple([decode_content(block, context) for block in blocks])
