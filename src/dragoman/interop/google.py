"""The google-genai library: `types.Content` and its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.interop.exported import (
    Conversation,
    Exported,
    built,
    conversation_of,
    facts_of,
    library,
    wire_export,
    without_halves,
)
from dragoman.interop.incoming import Item, decode_items, items_of, read_item, read_system
from dragoman.model.collection import Messages
from dragoman.model.jsontext import dumps

_NAME = "gemini"


def from_google(contents: Any, *, system_instruction: Any = None) -> Messages:
    """Convert one or several contents of the google-genai library, as objects or dicts.

    Accepts everything that `contents` accepts: `Content`, `Part`, uploaded `File` and strings
    (consecutive ones become one user message); and `GenerateContentResponse`.
    """
    items: list[Item] = []
    loose: list[dict[str, Any]] = []
    for value in items_of(contents):
        text = Item({"text": value}) if isinstance(value, str) else None
        item = text or read_item(value, _NAME, _message_in)
        if item.wire is not None and item.message is None and _is_part(item.wire):
            loose.append(item.wire)
            continue
        items += _user_turn(loose)
        loose = []
        items.append(item)
    items += _user_turn(loose)
    system = read_system(_as_content(system_instruction), "systemInstruction", _NAME)
    return Messages.wrapping([*system, *decode_items(items, _NAME)])


def _message_in(response: dict[str, Any]) -> dict[str, Any] | None:
    candidates = response.get("candidates")
    content = candidates[0].get("content") if candidates else None
    return content if isinstance(content, dict) else None


def _is_part(wire: Mapping[str, Any]) -> bool:
    return "parts" not in wire and "role" not in wire


def _user_turn(parts: list[dict[str, Any]]) -> list[Item]:
    return [Item({"role": "user", "parts": parts})] if parts else []


def _as_content(system: Any) -> Any:
    return {"parts": [{"text": system}]} if isinstance(system, str) else system


def to_google(messages: Conversation, *, strict: bool = False) -> Exported:
    """Convert messages to `types.Content` objects for `generate_content(contents=…)`.

    `system` is a `types.Content` for `system_instruction`; None if there are no instructions.
    `strict` raises `LossError` if something would be lost.
    """
    types = library("google.genai.types", "google-genai")
    conversation = conversation_of(messages)
    body, losses = wire_export(conversation, _NAME)

    def content(wire: Any) -> Any:
        text = dumps(without_halves(wire, losses))
        return built(lambda: types.Content.model_validate_json(text), "a Content")

    system = body.get("systemInstruction")
    exported = Exported(
        [content(wire) for wire in body.get("contents", [])],
        system=None if system is None else content(system),
        losses=losses,
        omitted=facts_of(conversation),
    )
    return exported.or_raise() if strict else exported
