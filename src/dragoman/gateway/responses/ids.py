"""Ids of the gateway's stored objects: unguessable, and distinct from those of other servers.

A response id is `resp_dgm` and 32 hexadecimal digits. Its items are `msg_dgm…_0`, `fc_dgm…_1`, so
that an item's id identifies its response.
"""

from __future__ import annotations

import re
from secrets import token_hex
from typing import Any, Final

_OWN: Final = re.compile(r"(resp|conv)_dgm[0-9a-f]{32}")
_ITEM: Final = re.compile(r"[a-z]{1,16}_(dgm[0-9a-f]{32})_(in)?[0-9]{1,6}")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_SHOWN: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def new_response_id() -> str:
    """Returns a new response id."""
    return f"resp_dgm{token_hex(16)}"


def new_conversation_id() -> str:
    """Returns a new conversation id."""
    return f"conv_dgm{token_hex(16)}"


def new_item_id(kind: Any) -> str:
    """Returns a new id for an item of a conversation."""
    return f"{_prefix(kind)}_{token_hex(16)}"


def input_item_id(response_id: str, kind: Any, number: int) -> str:
    """Returns the id of an input item of a response.

    >>> input_item_id("resp_dgm00", "message", 3)
    'msg_dgm00_in3'
    """
    return f"{_prefix(kind)}_{response_id.partition('_')[2]}_in{number}"


def is_own(id: str) -> bool:
    """Whether a response or conversation id was created by a Dragoman gateway."""
    return _OWN.fullmatch(id) is not None


def response_of(item_id: str) -> str | None:
    """Returns the response id contained in an item id; None for ids of other servers."""
    found = _ITEM.fullmatch(item_id)
    return None if found is None else f"resp_{found[1]}"


def is_plain(id: Any) -> bool:
    """Whether an id has a form that can be stored."""
    return isinstance(id, str) and _PLAIN.fullmatch(id) is not None


def shown(id: str) -> str:
    """Returns an id in a form that errors may quote.

    >>> shown("resp_1"), shown("a/../b")
    ("'resp_1'", 'given')
    """
    return f"'{id}'" if _SHOWN.fullmatch(id) else "given"


_PREFIXES: Final = {
    "message": "msg", "reasoning": "rs", "function_call": "fc", "function_call_output": "fco",
    "custom_tool_call": "ctc", "custom_tool_call_output": "ctco",
}  # fmt: skip


def _prefix(kind: Any) -> str:
    return _PREFIXES.get(kind, "item") if isinstance(kind, str) else "item"
