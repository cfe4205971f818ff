"""Content blocks as a provider has them, which integrations pass through: read by its dialect.

An Anthropic `tool_use`, a Responses `reasoning` item, an OpenAI `image_url`: the parts are the
same as if they had come over that wire, so what is sealed can go back there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import DragomanError
from dragoman.model.content import AnyPart
from dragoman.wire.dialect import dialect

_ANTHROPIC = frozenset({"thinking", "redacted_thinking", "tool_use", "server_tool_use",
                        "mcp_tool_use", "document", "search_result", "container_upload",
                        "tool_reference", "compaction"})  # fmt: skip
_CHAT = frozenset({"image_url", "input_audio", "refusal", "video_url"})
_ITEMS = frozenset({"reasoning", "web_search_call", "file_search_call", "code_interpreter_call",
                    "image_generation_call", "computer_call", "mcp_call", "mcp_list_tools",
                    "mcp_approval_request", "local_shell_call", "shell_call", "function_call",
                    "custom_tool_call", "apply_patch_call", "tool_search_call",
                    "tool_search_output"})  # fmt: skip
_ITEM_PARTS = frozenset({"output_text", "input_text", "input_image", "input_file"})


def dialect_of_block(block: Mapping[str, Any]) -> str | None:
    """The dialect whose block this is; None where it is not known to be one's."""
    kind = block.get("type")
    if not isinstance(kind, str):
        return None
    is_cited = kind == "text" and isinstance(block.get("citations"), list)
    if kind in _ANTHROPIC or kind.endswith("_tool_result") or _has(block, "source") or is_cited:
        return "anthropic"
    if kind in _CHAT or (kind in {"file", "audio"} and _has(block, kind)):
        return "openai-chat"
    return "openai-responses" if kind in _ITEMS | _ITEM_PARTS else None


def _has(block: Mapping[str, Any], field: str) -> bool:
    return isinstance(block.get(field), Mapping)


def decode_native(block: Mapping[str, Any], *, is_answer: bool) -> list[AnyPart] | None:
    """The parts in a provider's own block; None where no dialect understands it."""
    name = dialect_of_block(block)
    if name is None:
        return None
    # A block out of a stream keeps its number, and the pieces of arguments that it came in.
    wire = {key: block[key] for key in block if key not in {"index", "partial_json"}}
    try:
        request = dialect(name).decode_request(_body(name, wire, is_answer=is_answer))
    except DragomanError:
        return None
    return [part for message in request.messages for part in message.parts] or None


def _body(name: str, wire: dict[str, Any], *, is_answer: bool) -> dict[str, Any]:
    role = "assistant" if is_answer else "user"
    if name == "openai-responses" and wire.get("type") in _ITEMS:
        return {"input": [wire]}
    message = {"role": role, "content": [wire]}
    field = dialect(name).messages_field
    return {field: [{"type": "message", **message} if field == "input" else message]}
