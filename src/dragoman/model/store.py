r"""`MessageStore`: messages in named sections, with parameters, for composing prompts.

>>> store = MessageStore.from_messages("You are a guide.", "system")
>>> store = store.section("prompt").append_messages("Where is the Old Bridge?")
>>> store.select(["prompt", "system"]).to_text()
'Where is the Old Bridge?\nYou are a guide.'

Everything is immutable: `section(...)` and `parameters` give operators that return changed copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.model import document, shapes
from dragoman.model.collection import Messages
from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping, thaw
from dragoman.model.jsontext import JsonText
from dragoman.model.messages import Message, settle_all
from dragoman.model.value import expect

DEFAULT_SECTION = "messages"


class Section:
    """A named, immutable sequence of messages."""

    __slots__ = ("_messages", "_name")

    def __init__(self, name: str, messages: Any = ()) -> None:
        expect(name, str, "the name of a section")
        if not name:
            msg = "the name of a section must not be empty"
            raise InvalidInputError(msg)
        self._name = name
        self._messages = Messages.from_any(messages)

    @classmethod
    def empty(cls, name: str) -> Self:
        """A section without messages."""
        return cls(name)

    @property
    def name(self) -> str:
        """The section's name."""
        return self._name

    @property
    def messages(self) -> Messages:
        """The messages of the section."""
        return self._messages

    @property
    def is_empty(self) -> bool:
        """Whether every message is empty."""
        return self._messages.is_empty

    def with_messages(self, messages: Any) -> Self:
        """Returns a copy with other messages."""
        return type(self)(self._name, messages)

    def append_messages(self, messages: Any) -> Self:
        """Returns a copy with messages added at the end."""
        return self.with_messages(self._messages.extend(messages))

    def append_field(self, key: str, value: Any) -> Self:
        """Returns a copy with a field set on the last part of the last message."""
        return self.with_messages(self._messages.with_field(key, value))

    def merged_per_role(self, separator: str = "\n\n") -> Self:
        """Returns a copy with consecutive messages of the same role merged."""
        return self.with_messages(self._messages.merged_per_role(separator))

    def without_empty(self) -> Self:
        """Returns a copy without empty messages."""
        return self.with_messages(self._messages.without_empty())

    def to_messages(self) -> Messages:
        """The messages of the section."""
        return self._messages

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Section):
            return NotImplemented
        return (self._name, self._messages) == (other._name, other._messages)

    def __hash__(self) -> int:
        return hash((self._name, self._messages))

    def __repr__(self) -> str:
        return f"Section({len(self._messages)} messages)"


class Sections:
    """An ordered collection of sections with unique names."""

    __slots__ = ("_by_name",)

    def __init__(self, *sections: Section) -> None:
        self._by_name: dict[str, Section] = {}
        for section in sections:
            expect(section, Section, "an item of Sections")
            if section.name in self._by_name:
                msg = "two sections have the same name; merge them, or use from_dict"
                raise InvalidInputError(msg)
            self._by_name[section.name] = section

    def add(self, *sections: Section) -> Self:
        """Returns a copy with sections added at the end; raises if a name is already in use."""
        return type(self)(*self, *sections)

    def put(self, section: Section) -> Self:
        """Returns a copy with a section replaced, or added if its name is new."""
        changed = {**self._by_name, section.name: section}
        return type(self)(*changed.values())

    def without(self, name: str) -> Self:
        """Returns a copy without the section of this name."""
        return self.filter(lambda section: section.name != name)

    def has(self, name: str) -> bool:
        """Whether there is a section of this name."""
        return name in self._by_name

    def get(self, name: str) -> Section | None:
        """The section of this name, or `None`."""
        return self._by_name.get(name)

    def filter(self, predicate: Callable[[Section], bool]) -> Self:
        """The sections for which the predicate holds."""
        return type(self)(*(section for section in self if predicate(section)))

    def merge(self, others: Iterable[Section]) -> Self:
        """Merges other sections: appends to sections of the same name, and adds the others."""
        merged = self
        for section in others:
            known = merged.get(section.name)
            merged = merged.put(known.append_messages(section.messages) if known else section)
        return merged

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self._by_name)

    def to_messages(self) -> Messages:
        """The messages of all sections, in order."""
        return Messages.wrapping(message for section in self for message in section)

    def __iter__(self) -> Iterator[Section]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sections):
            return NotImplemented
        return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Sections({', '.join(repr(section) for section in self)})"


class MessageStore:
    """Messages in named sections, plus parameters. Immutable."""

    __slots__ = ("_parameters", "_sections")

    def __init__(
        self, sections: Sections | Iterable[Section] = (), parameters: Mapping[str, Any] = EMPTY
    ) -> None:
        self._sections = sections if isinstance(sections, Sections) else Sections(*sections)
        self._parameters = freeze_mapping(parameters, "the parameters of a message store")

    # --- constructors

    @classmethod
    def from_sections(cls, *sections: Section) -> Self:
        """Creates a store from sections; raises if two have the same name."""
        return cls(Sections(*sections))

    @classmethod
    def from_messages(cls, messages: Any, section: str = DEFAULT_SECTION) -> Self:
        """Creates a store of one section with these messages."""
        return cls(Sections(Section(section, messages)))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Reads `{sections: [{name, messages}], parameters}`; merges sections of the same name."""
        expect(data, Mapping, "a message store dict")
        sections = data.get("sections") or ()
        expect(sections, (list, tuple), "the sections of a message store dict")
        merged = Sections()
        for section in sections:
            expect(section, Mapping, "a section of a message store dict")
            read = Section(section.get("name", DEFAULT_SECTION), section.get("messages") or ())
            merged = merged.merge([read])
        return cls(merged, data.get("parameters") or EMPTY)

    @classmethod
    def from_json(cls, raw: JsonText) -> Self:
        """Reads the output of `to_json`."""
        stored: StoredStore = document.read(raw, "MessageStore")
        sections = Sections(
            *(Section(s.name, Messages.wrapping(s.messages)) for s in stored.sections)
        )
        return cls(sections, stored.parameters)

    # --- inspection

    @property
    def sections(self) -> Sections:
        """The sections, in order."""
        return self._sections

    def section(self, name: str) -> SectionOperator:
        """An operator to read and change a section, which need not exist yet."""
        return SectionOperator(self, name)

    @property
    def parameters(self) -> ParameterOperator:
        """An operator to read and change the parameters."""
        return ParameterOperator(self)

    # --- modified copies

    def with_section(self, name: str) -> Self:
        """Returns a copy that has a section of this name, added empty if missing."""
        return (
            self
            if self._sections.has(name)
            else self.with_sections(self._sections.add(Section(name)))
        )

    def with_sections(self, sections: Sections) -> Self:
        """Returns a copy with other sections."""
        return type(self)(sections, self._parameters)

    def with_parameters(self, parameters: Mapping[str, Any]) -> Self:
        """Returns a copy with other parameters."""
        return type(self)(self._sections, parameters)

    def select(self, sections: str | Iterable[str] = ()) -> Self:
        """Returns a copy with only these sections, in this order; `[]` keeps all, `""` none."""
        names = (sections,) if isinstance(sections, str) else tuple(dict.fromkeys(sections))
        if names == ():
            return self
        found = (self._sections.get(name) for name in names)
        return self.with_sections(Sections(*(section for section in found if section is not None)))

    def merge(self, other: MessageStore) -> Self:
        """Appends another store's sections to those of the same name, and merges the parameters."""
        expect(other, MessageStore, "the other message store")
        merged = self._sections.merge(other.sections)
        return type(self)(merged, {**self._parameters, **other._parameters})

    # --- serialisation

    def to_messages(self) -> Messages:
        """The messages of all sections, in order."""
        return self._sections.to_messages()

    def to_flat(self, *, shape: shapes.Shape = "openai") -> list[dict[str, Any]]:
        """The messages of all sections as dicts, without empty ones."""
        return self.to_messages().to_list(shape=shape)

    def to_text(self, separator: str = "\n") -> str:
        """The texts of all sections, joined; raises if a message is more than plain text."""
        return self.to_messages().to_text(separator)

    def to_dict(self, *, shape: shapes.Shape = "canonical") -> dict[str, Any]:
        """The store as plain data, which `from_dict` reads."""
        sections = [
            {"name": s.name, "messages": s.messages.to_list(shape=shape, skip_empty=False)}
            for s in self._sections
        ]
        return {"sections": sections, "parameters": thaw(self._parameters)}

    def to_json(self) -> bytes:
        """Serialises the store to versioned JSON."""
        settle_all(self.to_messages())
        sections = tuple(StoredSection(s.name, tuple(s.messages)) for s in self._sections)
        return document.write("MessageStore", StoredStore(sections, self._parameters))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MessageStore):
            return NotImplemented
        return (self._sections, self._parameters) == (other._sections, other._parameters)

    def __hash__(self) -> int:
        return hash((self._sections, self._parameters))

    def __repr__(self) -> str:
        return f"MessageStore({', '.join(repr(section) for section in self._sections)})"


class SectionOperator:
    """Reads a section of a store, or returns a copy of the store in which it is changed."""

    __slots__ = ("_name", "_store")

    def __init__(self, store: MessageStore, name: str) -> None:
        self._store = store
        self._name = name

    @property
    def exists(self) -> bool:
        """Whether the store has this section."""
        return self._store.sections.has(self._name)

    @property
    def is_empty(self) -> bool:
        """Whether the section is missing, or all its messages are empty."""
        return self.get().is_empty

    def get(self) -> Section:
        """The section, or an empty one if it is missing."""
        return self._store.sections.get(self._name) or Section(self._name)

    @property
    def messages(self) -> Messages:
        """The messages of the section."""
        return self.get().messages

    def append_messages(self, messages: Any) -> MessageStore:
        """Returns a store with messages added to the section."""
        return self._put(self.get().append_messages(messages))

    def set_messages(self, messages: Any) -> MessageStore:
        """Returns a store with the section's messages replaced."""
        return self._put(self.get().with_messages(messages))

    def clear(self) -> MessageStore:
        """Returns a store in which the section is empty."""
        return self.set_messages(())

    def remove(self) -> MessageStore:
        """Returns a store without the section."""
        return self._store.with_sections(self._store.sections.without(self._name))

    def _put(self, section: Section) -> MessageStore:
        return self._store.with_sections(self._store.sections.put(section))


class ParameterOperator:
    """Reads the parameters of a store, or returns a copy of the store in which they are changed."""

    __slots__ = ("_store",)

    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def get(self) -> FrozenDict:
        """All parameters."""
        return self._store._parameters  # pyright: ignore[reportPrivateUsage] # same module

    def set_parameter(self, key: str, value: Any) -> MessageStore:
        """Returns a store with a parameter set."""
        return self._store.with_parameters({**self.get(), key: value})

    def unset_parameter(self, key: str) -> MessageStore:
        """Returns a store without a parameter."""
        return self._store.with_parameters({k: v for k, v in self.get().items() if k != key})

    def merge_parameters(self, parameters: Mapping[str, Any]) -> MessageStore:
        """Returns a store with these parameters merged in."""
        return self._store.with_parameters({**self.get(), **freeze_mapping(parameters)})

    def with_params(self, parameters: Mapping[str, Any]) -> MessageStore:
        """Returns a store with other parameters."""
        return self._store.with_parameters(parameters)


class StoredSection(msgspec.Struct, forbid_unknown_fields=True):
    """The serialised form of a section."""

    name: str
    messages: tuple[Message, ...]


class StoredStore(msgspec.Struct, forbid_unknown_fields=True):
    """The serialised form of a store."""

    sections: tuple[StoredSection, ...]
    parameters: dict[str, Any] = {}


document.register("MessageStore", StoredStore)
