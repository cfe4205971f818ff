"""Ids of what the gateway stores: unguessable, and told apart from those of other servers.

`resp_dgm` and 32 hexadecimal digits; the items of an answer are `msg_dgm…_0`, `fc_dgm…_1`, so that
an item's id says which response it is in.
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
    """An id for a response."""
    return f"resp_dgm{token_hex(16)}"


def new_conversation_id() -> str:
    """An id for a conversation."""
    return f"conv_dgm{token_hex(16)}"


def new_item_id(kind: Any) -> str:
    """An id for an item that stands in a conversation."""
    return f"{_prefix(kind)}_{token_hex(16)}"


def input_item_id(response_id: str, kind: Any, number: int) -> str:
    """The id of an item of a response's input.

    >>> input_item_id("resp_dgm00", "message", 3)
    'msg_dgm00_in3'
    """
    return f"{_prefix(kind)}_{response_id.partition('_')[2]}_in{number}"


def is_own(id: str) -> bool:
    """Whether an id of a response or a conversation was made by a gateway."""
    return _OWN.fullmatch(id) is not None


def response_of(item_id: str) -> str | None:
    """The response that an item of ours is in; None: the id doesn't say it."""
    found = _ITEM.fullmatch(item_id)
    return None if found is None else f"resp_{found[1]}"


def is_plain(id: Any) -> bool:
    """Whether an id is of a form that can be kept."""
    return isinstance(id, str) and _PLAIN.fullmatch(id) is not None


def shown(id: str) -> str:
    """An id as errors may quote it.

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
