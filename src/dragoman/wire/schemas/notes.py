"""In words, what a target can't be told in a schema: they go into the description."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.model.jsontext import dumps
from dragoman.model.validation.words import is_number
from dragoman.wire.schemas.keywords import Node, as_list, as_map

_LISTED = 100
_LONGEST = 2000


def text_of(value: Any) -> str:
    """A value as JSON text."""
    return dumps(value).decode()


def note(keyword: str, value: Any) -> str:
    """The sentence for a keyword; empty where there is nothing to say."""
    words = _WORDS.get(keyword)
    if words is not None:
        return words(value)
    return _schema_note(keyword, value)


def described(node: Node, notes: list[str]) -> Node:
    """The node with notes at the end of its description."""
    text = node.get("description")
    said = text if isinstance(text, str) else ""
    new = [each for each in dict.fromkeys(notes) if each not in said]
    if not new:
        return node
    lines = [said] if said else []
    return {**node, "description": "\n".join([*lines, " ".join(new)])}


def listed(values: list[Any]) -> str:
    """Values, one after the other; the first hundred of them."""
    texts = [text_of(value) for value in values[:_LISTED]]
    rest = len(values) - _LISTED
    return ", ".join(texts) + (f" and {rest} more" if rest > 0 else "")


def _schema_note(keyword: str, value: Any) -> str:
    text = text_of(value)
    return f"Also, by JSON Schema: {keyword} = {text}." if len(text) <= _LONGEST else ""


def _number(words: str) -> Callable[[Any], str]:
    return lambda value: f"{words.format(text_of(value))}." if is_number(value) else ""


def _quoted(words: str) -> Callable[[Any], str]:
    return lambda value: f"{words} {value}." if isinstance(value, str) else ""


def _names(value: Any) -> str:
    return ", ".join(f"`{name}`" for name in as_list(value))


def _dependent(value: Any) -> str:
    needs = [f"`{name}` needs {_names(others)}" for name, others in as_map(value).items()]
    return "; ".join(needs) + "." if needs else ""


def _others(value: Any) -> str:
    if value is False:
        return "No other properties are allowed."
    if isinstance(value, dict) and value:
        return f"Other properties are allowed if they fit {text_of(value)}."
    return "Other properties are allowed."


def _default(value: Any) -> str:
    return f"Default: {text_of(value)}."


def _examples(value: Any) -> str:
    return f"Examples: {listed(value)}." if isinstance(value, list) and value else ""


_WORDS: dict[str, Callable[[Any], str]] = {
    "pattern": _quoted("Must match the regular expression"),
    "format": _quoted("Format:"),
    "contentEncoding": _quoted("Encoding:"),
    "contentMediaType": _quoted("Media type:"),
    "minLength": _number("At least {} characters"),
    "maxLength": _number("At most {} characters"),
    "minimum": _number("At least {}"),
    "maximum": _number("At most {}"),
    "exclusiveMinimum": _number("More than {}"),
    "exclusiveMaximum": _number("Less than {}"),
    "multipleOf": _number("A multiple of {}"),
    "minItems": _number("At least {} items"),
    "maxItems": _number("At most {} items"),
    "minProperties": _number("At least {} properties"),
    "maxProperties": _number("At most {} properties"),
    "uniqueItems": lambda value: "All items must differ." if value is True else "",
    "additionalProperties": _others,
    "dependentRequired": _dependent,
    "enum": lambda value: f"One of: {listed(as_list(value))}.",
    "const": lambda value: f"Always {text_of(value)}.",
    "default": _default,
    "examples": _examples,
    "example": lambda value: f"Example: {text_of(value)}.",
    "patternProperties": lambda value: (
        f"Properties whose names match these patterns must fit: {text_of(value)}."
    ),
    "not": lambda value: f"Must not fit this JSON Schema: {text_of(value)}.",
}
