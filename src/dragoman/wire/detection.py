"""Telling which dialect a body, a message or a part of one is in.

Every dialect describes itself (`dragoman.wire.description`); here the descriptions of all of them
are looked up together. A dialect that an installed package adds takes part like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import loads
from dragoman.wire.description import Description, MessageForm, Wire
from dragoman.wire.dialect import Body, descriptions, installed_dialects
from dragoman.wire.entry_points import Installed


def detect(body: Body, *, path: str | None = None, headers: Mapping[str, str] | None = None) -> str:
    """The dialect that a request or response is in; raises where nothing tells.

    A body that several dialects could have written, a model and a user's text, is taken for the
    one that most servers speak: `openai-chat`.
    """
    known, place = evidence(), (path or "").partition("?")[0]
    found = known.dialect_of_path(place) or known.dialect_of_headers(headers or {})
    if found is not None:
        return found
    read: Any = body if isinstance(body, Mapping) else loads(body)
    wire: Mapping[str, Any] = read if isinstance(read, Mapping) else {}
    known.refuse_unsupported(wire, place)
    found = known.dialect_of_body(wire)
    if found is None:
        msg = "nothing in the body tells its dialect; name it"
        raise InvalidInputError(msg)
    return found


def dialect_of_history(items: Sequence[Any]) -> str:
    """The dialect of a list of messages."""
    known = evidence()
    found = next((name for item in items if (name := known.dialect_of_item(item))), None)
    return found or detect({"messages": items})


def evidence() -> Evidence:
    """What tells all dialects apart."""
    return _evidence(installed_dialects())


@lru_cache(maxsize=8)
def _evidence(_installed: Installed) -> Evidence:
    return Evidence(descriptions())


class Evidence:
    """The descriptions of all dialects, by what is looked up in them."""

    def __init__(self, described: Iterable[Description]) -> None:
        self._ordered = ordered = sorted(described, key=lambda one: one.order)
        forms = [(one.name, one.messages) for one in ordered]
        self._forms = dict(forms)
        self.message_fields = frozenset(one.messages_field for one in ordered)
        """Where requests have their messages."""
        self.response_fields = _union(one.response_fields for one in ordered)
        self.possible_response_fields = _union(one.possible_response_fields for one in ordered)
        self.item_types = _union(form.item_types for _, form in forms)
        self.shared_part_types = {
            kind: field for _, form in forms for kind, field in form.shared_part_types.items()
        }
        """Types of parts that our own have as well, each with the field that ours lack."""
        self.like_ours = next((name for name, form in forms if form.resembles_ours), None)
        """The dialect whose messages our own shapes are variations of."""
        self.sdk_modules = [(one, module) for one in ordered for module in one.sdk_modules]
        self._odd = [(name, form) for name, form in forms if form.content_field != "content"]
        self.message_marks = frozenset({"role", "type"}).union(
            *({form.content_field, *form.own_fields} for _, form in self._odd)
        )
        """Fields of which every message or item has one."""
        typed = ((name, form.item_types | form.message_types) for name, form in forms)
        self._item_owners = _owners(typed)
        self._item_part_owners = _owners((name, form.item_part_types) for name, form in forms)
        self._part_owners = _owners((name, form.part_types) for name, form in forms)
        self._role_owners = _owners((name, form.own_roles) for name, form in forms)
        # Of most dialects there is nothing to ask: the rest is kept in lists, for speed.
        self._claims = [(name, form) for name, form in forms if form.is_own or form.own_fields]
        self._answers = [(name, form.is_answer) for name, form in forms if form.is_answer]
        self._endings = [
            (form.part_type_ending, name) for name, form in forms if form.part_type_ending
        ]

    def described(self, name: str) -> Description | None:
        """How a dialect looks; None where there is none of that name."""
        return next((one for one in self._ordered if one.name == name), None)

    def form(self, name: str) -> MessageForm:
        """How the messages of a dialect look."""
        return self._forms[name]

    # --- bodies

    def dialect_of_path(self, path: str) -> str | None:
        """The dialect whose requests go to such a path."""
        return self._first(lambda one: path.endswith(one.paths))

    def dialect_of_headers(self, headers: Iterable[str]) -> str | None:
        """The dialect whose requests have one of these headers."""
        names = {name.lower() for name in headers}
        return self._first(lambda one: not one.headers.isdisjoint(names))

    def refuse_unsupported(self, wire: Wire, path: str) -> None:
        """Raise for a body of a format that looks like a dialect's and is not."""
        for one in self._ordered:
            problem = one.unsupported(wire, path) if one.unsupported else None
            if problem is not None:
                raise InvalidInputError(problem)

    def dialect_of_body(self, wire: Wire) -> str | None:
        """The dialect of a body, by the most certain sign there is."""
        found = self._first(lambda one: not one.certain_fields.isdisjoint(wire))
        messages = wire.get("messages")
        if found is None and isinstance(messages, list):
            found = self._dialect_of_messages(messages) or self._dialect_of_tools(wire.get("tools"))
        return (
            found
            or self._first(lambda one: not one.fields.isdisjoint(wire))
            or self._first(lambda one: one.is_likely is not None and one.is_likely(wire))
        )

    def _first(self, is_it: Callable[[Description], bool]) -> str | None:
        return next((one.name for one in self._ordered if is_it(one)), None)

    def _dialect_of_messages(self, messages: list[Any]) -> str | None:
        for message in messages:
            if not isinstance(message, Mapping):
                continue
            found = self.dialect_of_message(message) or _owner(self._role_owners, message, "role")
            content = message.get("content")
            if found is None and isinstance(content, list):
                found = next(filter(None, map(self.dialect_of_part, content)), None)
            if found is not None:
                return found
        return None

    def _dialect_of_tools(self, tools: Any) -> str | None:
        declared = tools if isinstance(tools, list) else ()
        owners = (
            one.name
            for tool in declared
            if isinstance(tool, Mapping)
            for one in self._ordered
            if not one.tool_fields.isdisjoint(tool)
        )
        return next(owners, None)

    # --- messages

    def dialect_of_item(self, item: Any) -> str | None:
        """The dialect of what no other would have among its messages, whatever is in it."""
        if not isinstance(item, Mapping):
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
        """The dialect of a message by what stands beside its content, of those with that role."""
        for name, form in self._claims:
            is_own = not form.own_fields.isdisjoint(message) or (
                form.is_own and form.is_own(message)
            )
            if is_own and (role is None or role in form.roles):
                return name
        return None

    def dialect_of_part(self, part: Any) -> str | None:
        """The dialect that alone has parts of this type."""
        kind = part.get("type") if isinstance(part, Mapping) else None
        if not isinstance(kind, str):
            return None
        found = self._part_owners.get(kind)
        if found is None:
            found = next((name for ending, name in self._endings if kind.endswith(ending)), None)
        return found

    def dialect_of_untyped_part(self, part: Wire) -> str | None:
        """The dialect whose parts have no type, and one of these fields."""
        for name, form in self._odd:
            if not form.part_fields.isdisjoint(part):
                return name
        return None


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


def _owners(claims: Iterable[tuple[str, frozenset[str]]]) -> dict[str, str]:
    """Who owns a word; of several who claim it, the first."""
    owners: dict[str, str] = {}
    for name, words in claims:
        for word in words:
            owners.setdefault(word, name)
    return owners


def _owner(owners: Mapping[str, str], wire: Any, field: str) -> str | None:
    word = wire.get(field) if isinstance(wire, Mapping) else None
    return owners.get(word) if isinstance(word, str) else None


def _refuse_pydantic_ai(parts: list[Any]) -> None:
    """Raise for its messages, which have parts as Gemini's do: read so, nothing would be left."""
    if any(isinstance(part, Mapping) and "part_kind" in part for part in parts):
        msg = "these are dumps of pydantic-ai: dragoman.interop.from_pydantic_ai reads them"
        raise InvalidInputError(msg)
