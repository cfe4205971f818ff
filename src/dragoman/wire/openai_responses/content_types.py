"""Item types: who creates them, and which belong together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

PREFIXES: Final = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
}
"""Required prefixes of item ids (W21)."""
MAX_ID_LENGTH: Final = 64
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
CALLS: Final = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
"""Calls of the developer's tools, and their outputs (W29)."""
BUILT_IN_CALLS: Final = {
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
"""Calls of built-in tools that the client runs, and their outputs."""
APPROVAL, _APPROVED = "mcp_approval_request", "mcp_approval_response"
PAIRS: Final = {**CALLS, **BUILT_IN_CALLS, APPROVAL: _APPROVED}
"""All pairs of calls and outputs."""
_REFERENCE, _COMPACTION = "item_reference", "compaction"
_OUTPUT = "_output"
_CLIENT_ITEMS = frozenset({_APPROVED, "compaction_trigger", "additional_tools"})


def is_plain_id(item_id: str) -> bool:
    """Whether a string is a valid item id."""
    return len(item_id) <= MAX_ID_LENGTH and _PLAIN.fullmatch(item_id) is not None


def kind_of(item: Mapping[str, Any]) -> str:
    """The type of an item; without one it is a message."""
    kind = item.get("type", "message")
    return kind if isinstance(kind, str) else ""


def is_from_client(item: Mapping[str, Any]) -> bool:
    """Whether an item is from the client, so that it ends the model's turn."""
    kind = kind_of(item)
    if kind == "message":
        return bool(item.get("role") != "assistant")
    return kind.endswith(_OUTPUT) or kind in _CLIENT_ITEMS


def pair_key(item: Mapping[str, Any]) -> tuple[bool, str | None]:
    """The key that a call and its output share, whatever their types; None without an id.

    A local shell's output may have the call's id as its own item id.
    """
    kind = kind_of(item)
    if kind == _APPROVED:
        found = item.get("approval_request_id")
    elif kind == APPROVAL:
        found = item.get("id")
    else:
        found = item.get("call_id")
        if found is None and kind == "local_shell_call_output":
            found = item.get("id")
    return kind in (APPROVAL, _APPROVED), found if isinstance(found, str) else None


def may_be_answered(item: Mapping[str, Any]) -> bool:
    """Whether an output may belong to this item: a client-run `tool_search_call` was recorded."""
    kind = kind_of(item)
    return kind in PAIRS or (not kind.endswith(_OUTPUT) and isinstance(item.get("call_id"), str))


def is_reference_or_summary(item: Mapping[str, Any]) -> bool:
    """Whether an item is a reference to stored items, or a compaction summary.

    Both may stand for calls and outputs.
    """
    kind = item.get("type")
    if kind is None:
        return "role" not in item and "content" not in item and isinstance(item.get("id"), str)
    return kind in (_REFERENCE, _COMPACTION)


def may_wait(call: Mapping[str, Any]) -> bool:
    """Whether a call may be without an output for a while."""
    return call.get("async") is True


def is_encrypted(reasoning: Mapping[str, Any]) -> bool:
    """Whether a reasoning item has encrypted content, so that it need not be stored (W25)."""
    sealed = reasoning.get("encrypted_content")
    return isinstance(sealed, str) and bool(sealed)
