"""`map_text`: passes every string that a provider would see through a function.

What no provider sees (a message's id, `metadata`, origins) stays. Names stay as long as they are
plain: ids, models, tools, MIME types, keys of JSON, and what JSON Schema refers to by name. As soon
as one has other characters, such as the `@` of an address, it is a text like any other.

A value in which nothing changes is returned itself, so it still goes back as it came. A change
breaks seals: a signature belongs to the text that it signs. Sealed data can't be read; where the
text that it repeats has changed, it is dropped.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from msgspec.structs import force_setattr

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import freeze
from dragoman.model.jsontext import loads
from dragoman.model.media import Media
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Part, Thinking
from dragoman.model.responses import Choice
from dragoman.model.tool_calls import ToolCall, ToolResult
from dragoman.model.tool_definitions import ServerTool, ToolDefinition
from dragoman.model.value import Value, shallow_copy

T = TypeVar("T")
V = TypeVar("V", bound=Value)
Function = Callable[[str], str]

_is_plain = re.compile(r"[\w.:/#$+-]{0,200}", re.ASCII).fullmatch
_is_sealed = re.compile(r"[\w.:/+=-]*", re.ASCII).fullmatch
_UNSEEN = frozenset({"metadata", "origin"})
"""Fields that no provider sees; of a message, its `id` too."""
_SEALED_IN: dict[type, frozenset[str]] = dict.fromkeys(
    (Thinking, *Media.__subclasses__()), frozenset({"data"})
)
"""Fields of base64, as `signature` is anywhere."""
_NAMES = frozenset({
    "id", "call_id", "wire_id", "item_id", "file_id", "tool_name", "model", "dialect", "server",
    "kind", "form", "format", "mode", "names", "mime", "detail", "ttl", "finish", "finish_raw",
    "allowed_callers", "allowed_tools", "effort", "summary", "verbosity", "modalities", "voice",
    "audio_format", "tier", "cache_key", "cache_retention", "previous_response_id", "conversation",
    "prompt", "thread", "cached_content", "continuation_token", "container", "file_ids", "stores",
    "size", "quality", "background", "method", "execution", "environment", "approval", "label",
    "context_size", "country", "timezone",
})  # fmt: skip
"""Fields that hold names; elsewhere a short word is a text."""
_NAMED = (ToolCall, ToolDefinition, ServerTool)
"""Values whose `name` is one too."""
_TYPED = frozenset({"type", "role", "$ref", "$schema", "$id", "required", "format"})
"""Keys of JSON whose values are names."""
_SEALS = ("signature", "data", "item_id")
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?', re.DOTALL)
_TEXTUAL = re.compile(r"text/|application/(?:[\w.-]+\+)?(?:json|xml|yaml|x-ndjson)\b")
_SURROGATES: Final = "surrogatepass"


def map_text(value: T, function: Function) -> T:
    """The value with every string that a provider would see as the function returns it."""
    return cast("T", _Mapping(function).mapped(value))


class _Mapping:
    def __init__(self, function: Function) -> None:
        self._function = function

    def text(self, given: str) -> str:
        made: object = self._function(given)
        if not isinstance(made, str):
            msg = f"the function of map_text must return str, not {type(made).__name__}"
            raise InvalidInputError(msg)
        return given if made == given else made

    def _name(self, given: str) -> str:
        return given if _is_plain(given) else self.text(given)

    def mapped(self, given: Any) -> Any:
        """Any field's value; the same object if nothing in it changes."""
        if type(given) is str:
            return self.text(given)
        if isinstance(given, Value):
            return self._value(given)
        if isinstance(given, tuple):
            made = tuple(map(self.mapped, given))
            return given if _are_same(made, given) else made
        if isinstance(given, (dict, list)):
            made = self._json(given)
            return given if made is given else freeze(made, "the mapped text")
        return given  # numbers, enums, None, UNSET

    def _names(self, given: Any) -> Any:
        if type(given) is str:
            return self._name(given)
        if isinstance(given, tuple):
            made = tuple(self._names(each) for each in given)
            return given if _are_same(made, given) else made
        return self.mapped(given)

    # --- values

    def _value(self, given: V) -> V:
        if isinstance(given, Origin):
            return given
        changes = {}
        for field in given.__struct_fields__:
            if _is_unseen(given, field) or (before := getattr(given, field)) is None:
                continue
            after = self._field(given, field, before)
            if after is not before:
                changes[field] = after
        if not changes:
            return given
        if isinstance(given, Message):
            given.settle()
        return _changed(given, changes | _unsealed(given, changes))

    def _field(self, given: Value, field: str, before: Any) -> Any:
        if field in _NAMES or (field == "name" and isinstance(given, _NAMED)):
            return self._names(before)
        if isinstance(before, str) and _is_seal(given, field):
            return self._sealed(given, before)
        if isinstance(given, ToolCall) and field == "raw" and given.kind == "function":
            return self._json_text(before)
        if isinstance(given, ToolResult) and field == "content" and isinstance(before, str):
            return self._json_text(before)
        return self.mapped(before)

    def _sealed(self, given: Value, before: str) -> str | None:
        """Base64: that of a text file is read; what is none after all is a text."""
        if not _is_sealed(before):
            after = self.text(before)
            return before if after is before else after if isinstance(given, Media) else None
        if not isinstance(given, Media) or not _TEXTUAL.match(given.mime or ""):
            return before
        try:
            text = b64decode(before, validate=True).decode()
        except ValueError:
            return before
        made = self.text(text)
        return before if made is text else b64encode(made.encode("utf-8", _SURROGATES)).decode()

    # --- JSON

    def _json(self, given: Any, key: str = "") -> Any:
        if type(given) is str:
            return self._name(given) if key in _TYPED else self._json_text(given)
        if isinstance(given, list):
            items = [self._json(each, key) for each in given]
            return given if _are_same(items, given) else items
        if not isinstance(given, dict):
            return given
        made: dict[str, Any] = {}
        is_same = True
        for name, value in given.items():
            new_name, new_value = self._name(name), self._json(value, name)
            is_same = is_same and new_name is name and new_value is value
            made[_free(new_name, made)] = new_value
        return given if is_same else made

    def _json_text(self, given: str) -> str:
        """A text, or the strings in it if it is a JSON object or list; the rest of it stays."""
        if not given.lstrip().startswith(("{", "[")):
            return self.text(given)
        try:
            loads(given)
        except InvalidInputError:
            return self.text(given)
        key = ""

        def literal(found: re.Match[str]) -> str:
            nonlocal key
            ending = found[1] or ""
            before = cast("str", json.loads(found[0][: len(found[0]) - len(ending)], strict=False))
            if ending:
                key, after = before, self._name(before)
            else:
                after = self._json(before, key)
            if after is before:
                return found[0]
            return json.dumps(after, ensure_ascii=_has_surrogates(after)) + ending

        made = _LITERAL.sub(literal, given)
        return given if made == given else made


def _is_seal(given: Value, field: str) -> bool:
    return field == "signature" or field in _SEALED_IN.get(type(given), ())


def _is_unseen(given: Value, field: str) -> bool:
    return field in _UNSEEN or (field == "id" and isinstance(given, Message))


def _are_same(made: Any, given: Any) -> bool:
    return all(one is other for one, other in zip(made, given, strict=True))


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _free(name: str, taken: dict[str, Any]) -> str:
    """The name, numbered if another key has become the same: no value is lost."""
    number = 2
    free = name
    while free in taken:
        free, number = f"{name} ({number})", number + 1
    return free


def _unsealed(given: Value, changes: dict[str, Any]) -> dict[str, Any]:
    """What has to go with the text that it belongs to: signatures, sealed copies, token logs."""
    if isinstance(given, Thinking) and "text" in changes:
        return dict.fromkeys(_SEALS) | ({"form": "full"} if given.form == "redacted" else {})
    if isinstance(given, Part) and not changes.keys() <= {"extras", "cache"}:
        return {"signature": None} if given.signature is not None else {}
    if isinstance(given, Message) and given.origin is not None and given.origin.is_of_a_request:
        return {"origin": None}  # as `Message.replace`: it no longer goes back as it came
    if isinstance(given, Choice) and "message" in changes:
        return {"logprobs": None}  # they repeat the text, token by token
    return {}


def _changed(given: V, changes: dict[str, Any]) -> V:
    """A copy with these fields, without the caches of the original (`ToolCall.arguments`)."""
    made = shallow_copy(given)
    for name, value in changes.items():
        force_setattr(made, name, value)
    if isinstance(made, ToolCall):
        vars(made).clear()
    return cast("V", made)
