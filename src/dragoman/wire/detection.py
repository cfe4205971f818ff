"""Detects the dialect of a body, a message or a part.

Every dialect describes itself (`dragoman.wire.description`); this module combines all descriptions
into lookup tables. Dialects from installed packages are included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import loads
from dragoman.wire.description import Description, MessageForm, Wire
from dragoman.wire.dialect import Body, descriptions, installed_dialects
from dragoman.wire.entry_points import Installed

_OBJECT = (dict, Mapping)  # dict first: the common case, and faster to check


def detect(body: Body, *, path: str | None = None, headers: Mapping[str, str] | None = None) -> str:
    """Detect the dialect of a request or response; raises if nothing identifies it.

    A body that several dialects could have written (just a model and a user text) is taken for
    `openai-chat`, the most common one.
    """
    known, place = evidence(), (path or "").partition("?")[0]
    found = known.dialect_of_path(place) if place else None
    if found is None and headers:
        found = known.dialect_of_headers(headers)
    if found is not None:
        return found
    wire = _read(body)
    known.refuse_unsupported(wire, place)
    found = known.dialect_of_body(wire)
    if found is None:
        msg = "can't detect the dialect of this body; name it explicitly"
        raise InvalidInputError(msg)
    return found


def _read(body: Body) -> Wire:
    read: Any = body if isinstance(body, _OBJECT) else loads(body)
    return read if isinstance(read, _OBJECT) else {}


def dialect_of_history(items: Sequence[Any]) -> str:
    """The dialect of a list of messages."""
    known = evidence()
    found = next((name for item in items if (name := known.dialect_of_item(item))), None)
    return found or detect({"messages": items})


def evidence() -> Evidence:
    """The lookup tables of all dialects."""
    return _evidence(installed_dialects())


@lru_cache(maxsize=8)
def _evidence(_installed: Installed) -> Evidence:
    return Evidence(descriptions())


class Evidence:
    """The descriptions of all dialects, indexed for lookup."""

    def __init__(self, described: Iterable[Description]) -> None:
        self._ordered = ordered = sorted(described, key=lambda one: one.order)
        forms = [(one.name, one.messages) for one in ordered]
        self._forms = dict(forms)
        self.message_fields = frozenset(one.messages_field for one in ordered)
        """The fields in which requests have their messages."""
        self.response_fields = _union(one.response_fields for one in ordered)
        self.possible_response_fields = _union(one.possible_response_fields for one in ordered)
        self.item_types = _union(form.item_types for _, form in forms)
        self.shared_part_types = {
            kind: field for _, form in forms for kind, field in form.shared_part_types.items()
        }
        """Part types that our own parts have as well, each with a field that ours lack."""
        self.like_ours = next((name for name, form in forms if form.resembles_ours), None)
        """The dialect whose messages our own shapes are variations of."""
        self.sdk_modules = [(one, module) for one in ordered for module in one.sdk_modules]
        # Dialects without an entry are left out, so most of these lists are short.
        self._paths = [(one.paths, one.name) for one in ordered if one.paths]
        self._headers = _claims((one.headers, one.name) for one in ordered)
        self._unsupported = [one.unsupported for one in ordered if one.unsupported]
        self._certain_fields = _claims((one.certain_fields, one.name) for one in ordered)
        self._fields = _claims((one.fields, one.name) for one in ordered)
        self._tool_fields = _claims((one.tool_fields, one.name) for one in ordered)
        self._likely = [(one.is_likely, one.name) for one in ordered if one.is_likely]
        self._odd = [(name, form) for name, form in forms if form.content_field != "content"]
        self._part_fields = _claims((form.part_fields, name) for name, form in self._odd)
        self.message_marks = frozenset({"role", "type"}).union(
            *({form.content_field, *form.own_fields} for _, form in self._odd)
        )
        """Every message or item has one of these fields."""
        self._own = [
            (form.own_fields, form.is_own, form.roles, name)
            for name, form in forms
            if form.is_own or form.own_fields
        ]
        self._answers = [(name, form.is_answer) for name, form in forms if form.is_answer]
        typed = ((form.item_types | form.message_types, name) for name, form in forms)
        self._item_owners = _owners(typed)
        self._item_part_owners = _owners((form.item_part_types, name) for name, form in forms)
        self._part_owners = _owners((form.part_types, name) for name, form in forms)
        self._role_owners = _owners((form.own_roles, name) for name, form in forms)
        self._endings = [
            (form.part_type_ending, name) for name, form in forms if form.part_type_ending
        ]

    def described(self, name: str) -> Description | None:
        """The description of a dialect; None if there is no dialect of that name."""
        return next((one for one in self._ordered if one.name == name), None)

    def form(self, name: str) -> MessageForm:
        """What the messages of a dialect look like."""
        return self._forms[name]

    # --- bodies

    def dialect_of_path(self, path: str) -> str | None:
        """The dialect whose request paths end like this one."""
        return next((name for endings, name in self._paths if path.endswith(endings)), None)

    def dialect_of_headers(self, headers: Iterable[str]) -> str | None:
        """The dialect whose requests have one of these headers."""
        return _first(self._headers, {name.lower() for name in headers})

    def refuse_unsupported(self, wire: Wire, path: str) -> None:
        """Raise for a body of a similar but unsupported format."""
        for unsupported in self._unsupported:
            problem = unsupported(wire, path)
            if problem is not None:
                raise InvalidInputError(problem)

    def dialect_of_body(self, wire: Wire) -> str | None:
        """The dialect of a body, by the most certain evidence available."""
        found = _first(self._certain_fields, wire)
        messages = wire.get("messages")
        if found is None and isinstance(messages, list):
            found = self._dialect_of_messages(messages) or self._dialect_of_tools(wire.get("tools"))
        if found is None:
            found = _first(self._fields, wire)
        if found is None:
            found = next((name for is_likely, name in self._likely if is_likely(wire)), None)
        return found

    def _dialect_of_messages(self, messages: list[Any]) -> str | None:
        for message in messages:
            if not isinstance(message, _OBJECT):
                continue
            found = self.dialect_of_message(message) or _owner(self._role_owners, message, "role")
            if found is not None:
                return found
            content = message.get("content")
            for part in content if isinstance(content, list) else ():
                found = self.dialect_of_part(part)
                if found is not None:
                    return found
        return None

    def _dialect_of_tools(self, tools: Any) -> str | None:
        for tool in tools if isinstance(tools, list) else ():
            found = _first(self._tool_fields, tool) if isinstance(tool, _OBJECT) else None
            if found is not None:
                return found
        return None

    # --- messages

    def dialect_of_item(self, item: Any) -> str | None:
        """The dialect that alone has such an item among its messages, whatever its content."""
        if not isinstance(item, _OBJECT):
            return None
        for name, is_answer in self._answers:
            if is_answer(item):
                return name
        for name, form in self._odd:
            content = item.get(form.content_field)
            if isinstance(content, list):
                _refuse_pydantic_ai(content)
                return name
            if not form.own_fields.isdisjoint(item):
                return name
        found = _owner(self._item_owners, item, "type")
        content = item.get("content")
        if found is None and isinstance(content, list):
            owners = (_owner(self._item_part_owners, part, "type") for part in content)
            found = next(filter(None, owners), None)
        return found

    def dialect_of_message(self, message: Wire, role: str | None = None) -> str | None:
        """The dialect of a message by its fields besides content; only dialects with that role."""
        for own_fields, is_own, roles, name in self._own:
            if role is not None and role not in roles:
                continue
            if not own_fields.isdisjoint(message) or (is_own and is_own(message)):
                return name
        return None

    def dialect_of_part(self, part: Any) -> str | None:
        """The only dialect that has parts of this type."""
        kind = part.get("type") if isinstance(part, _OBJECT) else None
        if not isinstance(kind, str):
            return None
        found = self._part_owners.get(kind)
        if found is None:
            found = next((name for ending, name in self._endings if kind.endswith(ending)), None)
        return found

    def dialect_of_untyped_part(self, part: Wire) -> str | None:
        """The dialect whose parts have no type but one of these fields."""
        return _first(self._part_fields, part)


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


Claims = list[tuple[frozenset[str], str]]
"""Sets of words, each with the dialect that claims them."""


def _claims(claims: Iterable[tuple[frozenset[str], str]]) -> Claims:
    return [(words, name) for words, name in claims if words]


def _first(claims: Claims, found: Iterable[str]) -> str | None:
    """The first dialect that claims one of the given words."""
    for words, name in claims:
        if not words.isdisjoint(found):
            return name
    return None


def _owners(claims: Iterable[tuple[frozenset[str], str]]) -> dict[str, str]:
    """The dialect that owns each word; if several claim it, the first."""
    owners: dict[str, str] = {}
    for words, name in claims:
        for word in words:
            owners.setdefault(word, name)
    return owners


def _owner(owners: Mapping[str, str], wire: Any, field: str) -> str | None:
    word = wire.get(field) if isinstance(wire, _OBJECT) else None
    return owners.get(word) if isinstance(word, str) else None


def _refuse_pydantic_ai(parts: list[Any]) -> None:
    """Raise for pydantic-ai dumps: read as Gemini's, which they resemble, they would be empty."""
    if any(isinstance(part, _OBJECT) and "part_kind" in part for part in parts):
        msg = "these are pydantic-ai messages; read them with dragoman.interop.from_pydantic_ai"
        raise InvalidInputError(msg)
