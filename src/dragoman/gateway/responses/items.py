"""Items of a request: parsing, ids, and their format in lists."""

from __future__ import annotations

from typing import Any, Final

from dragoman.gateway.responses.ids import input_item_id, is_plain
from dragoman.gateway.responses.state_errors import invalid
from dragoman.model.jsontext import dumps

REFERENCE: Final = "item_reference"
_MAX_PAIRS, _MAX_KEY, _MAX_VALUE = 16, 64, 512


def items_in(given: Any, param: str = "input") -> list[dict[str, Any]]:
    """Parses the items of an input; a string becomes a user message."""
    if given is None:
        return []
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    if not isinstance(given, list):
        msg = f"`{param}` must be a string or a list of items"
        raise invalid(msg, param)
    return [_item(each, f"{param}[{number}]") for number, each in enumerate(given)]


def _item(given: Any, where: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        msg = f"`{where}` must be an object"
        raise invalid(msg, where)
    if given.get("type") is None:
        if isinstance(given.get("role"), str):
            return {"type": "message", **{k: v for k, v in given.items() if k != "type"}}
        if isinstance(given.get("id"), str):  # OpenAI's types let a reference leave out its type
            return {**given, "type": REFERENCE}
    return given


def reference_in(item: dict[str, Any]) -> str | None:
    """Returns the id that an item refers to; None if it is not a reference."""
    if item.get("type") != REFERENCE:
        return None
    found = item.get("id")
    if not isinstance(found, str) or not found:
        msg = "an `item_reference` needs the id of an item"
        raise invalid(msg, "input")
    return found


def ids_of(items: list[dict[str, Any]], response_id: str) -> list[str]:
    """Returns an id for each input item of a response: its own if it is valid and unique."""
    found: list[str] = []
    taken: set[str] = set()
    for number, item in enumerate(items):
        own: Any = item.get("id")
        if not is_plain(own) or own in taken:
            own = input_item_id(response_id, item.get("type"), number)
        taken.add(own)
        found.append(own)
    return found


def listed(item: Any, id: str) -> Any:
    """Returns an item as lists show it: with an id, a status, and content as parts."""
    if not isinstance(item, dict):
        return item
    shown = {**item, "id": id}
    if shown.get("type") == "message":
        shown.setdefault("status", "completed")
        content = shown.get("content")
        if isinstance(content, str):
            shown["content"] = [_text(content, shown.get("role"))]
    return shown


def _text(text: str, role: Any) -> dict[str, Any]:
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "input_text", "text": text}


def size_of(items: list[Any]) -> int:
    """Returns the size of items in bytes of JSON."""
    return len(dumps(items))


def metadata_in(given: Any) -> dict[str, str]:
    """Validates the metadata of a conversation against OpenAI's limits."""
    if given is None:
        return {}
    if not isinstance(given, dict) or len(given) > _MAX_PAIRS:
        msg = f"`metadata` must be an object of at most {_MAX_PAIRS} pairs"
        raise invalid(msg, "metadata")
    for key, value in given.items():
        if len(key) > _MAX_KEY or not isinstance(value, str) or len(value) > _MAX_VALUE:
            msg = (
                f"`metadata` keys can have at most {_MAX_KEY} characters, and values must be"
                f" strings of at most {_MAX_VALUE} characters"
            )
            raise invalid(msg, "metadata")
    return given
