"""What the types of items mean for each other: who writes them, and which belong together."""

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
"""How the ids of items have to begin (W21)."""
LONGEST_ID: Final = 64
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
CALLS: Final = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
"""Calls of the developer's tools, and what answers them (W29)."""
BUILT_IN_CALLS: Final = {
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
"""Calls of the provider's tools that the client carries out."""
APPROVAL, _APPROVED = "mcp_approval_request", "mcp_approval_response"
PAIRS: Final = {**CALLS, **BUILT_IN_CALLS, APPROVAL: _APPROVED}
"""All that belong together."""
_REFERENCE, _COMPACTION = "item_reference", "compaction"
_OUTPUT = "_output"
_FROM_THE_CLIENT = frozenset({_APPROVED, "compaction_trigger", "additional_tools"})


def is_plain_id(item_id: str) -> bool:
    """Whether an item may have this id."""
    return len(item_id) <= LONGEST_ID and _PLAIN.fullmatch(item_id) is not None


def kind_of(item: Mapping[str, Any]) -> str:
    """The type of an item; one without a type is a message."""
    kind = item.get("type", "message")
    return kind if isinstance(kind, str) else ""


def is_from_client(item: Mapping[str, Any]) -> bool:
    """Whether an item is not the model's: it ends what reasoning may have led to."""
    kind = kind_of(item)
    if kind == "message":
        return bool(item.get("role") != "assistant")
    return kind.endswith(_OUTPUT) or kind in _FROM_THE_CLIENT


def pair_key(item: Mapping[str, Any]) -> tuple[bool, str | None]:
    """What is the same for a call and its output, whatever their types; without an id, None.

    A local shell's output may have the id of its call as its own.
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


def stands_for_more(item: Mapping[str, Any]) -> bool:
    """Whether the provider holds what an item stands for: a reference, typed or not, or a summary.

    Calls and outputs may be among it.
    """
    kind = item.get("type")
    if kind is None:
        return "role" not in item and "content" not in item and isinstance(item.get("id"), str)
    return kind in (_REFERENCE, _COMPACTION)


def may_wait(call: Mapping[str, Any]) -> bool:
    """Whether a call may stay unanswered for a while."""
    return call.get("async") is True


def is_encrypted(reasoning: Mapping[str, Any]) -> bool:
    """Whether a reasoning item can be read by a provider that has not kept it (W25)."""
    sealed = reasoning.get("encrypted_content")
    return isinstance(sealed, str) and bool(sealed)
