r"""Messages in named sections, with parameters beside them: prompts put together from pieces.

>>> store = MessageStore.from_messages("You are a guide.", "system")
>>> store = store.section("prompt").append_messages("Where is the Old Bridge?")
>>> store.select(["prompt", "system"]).to_text()
'Where is the Old Bridge?\nYou are a guide.'

Everything here is immutable: the operators (`section(...)`, `parameters`) return changed stores.
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
    """Messages under a name."""

    __slots__ = ("_messages", "_name")

    def __init__(self, name: str, messages: Any = ()) -> None:
        expect(name, str, "the name of a section")
        if not name:
            msg = "the name of a section is empty"
            raise InvalidInputError(msg)
        self._name = name
        self._messages = Messages.from_any(messages)

    @classmethod
    def empty(cls, name: str) -> Self:
        """A section without messages."""
        return cls(name)

    @property
    def name(self) -> str:
        """What the section is called."""
        return self._name

    @property
    def messages(self) -> Messages:
        """What is in it."""
        return self._messages

    @property
    def is_empty(self) -> bool:
        """Whether nothing in it says anything."""
        return self._messages.is_empty

    def with_messages(self, messages: Any) -> Self:
        """With these messages instead."""
        return type(self)(self._name, messages)

    def append_messages(self, messages: Any) -> Self:
        """With more messages at the end."""
        return self.with_messages(self._messages.extend(messages))

    def append_field(self, key: str, value: Any) -> Self:
        """With a field set on the last part of the last message."""
        return self.with_messages(self._messages.with_field(key, value))

    def merged_per_role(self, separator: str = "\n\n") -> Self:
        """With neighbours of one role merged."""
        return self.with_messages(self._messages.merged_per_role(separator))

    def without_empty(self) -> Self:
        """Without the messages that say nothing."""
        return self.with_messages(self._messages.without_empty())

    def to_messages(self) -> Messages:
        """What is in it."""
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
    """Sections in order, each name once."""

    __slots__ = ("_by_name",)

    def __init__(self, *sections: Section) -> None:
        self._by_name: dict[str, Section] = {}
        for section in sections:
            expect(section, Section, "an item of Sections")
            if section.name in self._by_name:
                msg = "two sections have the same name; merge them first (from_dict does)"
                raise InvalidInputError(msg)
            self._by_name[section.name] = section

    def add(self, *sections: Section) -> Self:
        """With more sections at the end; a name that is there already is refused."""
        return type(self)(*self, *sections)

    def put(self, section: Section) -> Self:
        """With that section in the place of the one of its name, or at the end."""
        changed = {**self._by_name, section.name: section}
        return type(self)(*changed.values())

    def without(self, name: str) -> Self:
        """Without the section of that name."""
        return self.filter(lambda section: section.name != name)

    def has(self, name: str) -> bool:
        """Whether there is a section of that name."""
        return name in self._by_name

    def get(self, name: str) -> Section | None:
        """The section of that name."""
        return self._by_name.get(name)

    def filter(self, predicate: Callable[[Section], bool]) -> Self:
        """The sections for which the predicate holds."""
        return type(self)(*(section for section in self if predicate(section)))

    def merge(self, others: Iterable[Section]) -> Self:
        """With other sections: those of a known name are appended to it, others added."""
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
    """Sections and parameters."""

    __slots__ = ("_parameters", "_sections")

    def __init__(
        self, sections: Sections | Iterable[Section] = (), parameters: Mapping[str, Any] = EMPTY
    ) -> None:
        self._sections = sections if isinstance(sections, Sections) else Sections(*sections)
        self._parameters = freeze_mapping(parameters, "the parameters of a message store")

    # --- making one

    @classmethod
    def from_sections(cls, *sections: Section) -> Self:
        """From sections; two of one name are refused."""
        return cls(Sections(*sections))

    @classmethod
    def from_messages(cls, messages: Any, section: str = DEFAULT_SECTION) -> Self:
        """From messages, as one section."""
        return cls(Sections(Section(section, messages)))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """From `{sections: [{name, messages}], parameters}`; sections of one name are merged."""
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
        """The store in a document."""
        stored: StoredStore = document.read(raw, "MessageStore")
        sections = Sections(
            *(Section(s.name, Messages.wrapping(s.messages)) for s in stored.sections)
        )
        return cls(sections, stored.parameters)

    # --- looking at it

    @property
    def sections(self) -> Sections:
        """The sections, in order."""
        return self._sections

    def section(self, name: str) -> SectionOperator:
        """Look at a section, there or not yet there, and change it."""
        return SectionOperator(self, name)

    @property
    def parameters(self) -> ParameterOperator:
        """Look at the parameters, and change them."""
        return ParameterOperator(self)

    # --- changed copies

    def with_section(self, name: str) -> Self:
        """With a section of that name, empty if it was not there."""
        return (
            self
            if self._sections.has(name)
            else self.with_sections(self._sections.add(Section(name)))
        )

    def with_sections(self, sections: Sections) -> Self:
        """With these sections instead."""
        return type(self)(sections, self._parameters)

    def with_parameters(self, parameters: Mapping[str, Any]) -> Self:
        """With these parameters instead."""
        return type(self)(self._sections, parameters)

    def select(self, sections: str | Iterable[str] = ()) -> Self:
        """Only these sections, in this order, each once; `[]` is all of them, `""` none."""
        names = (sections,) if isinstance(sections, str) else tuple(dict.fromkeys(sections))
        if names == ():
            return self
        found = (self._sections.get(name) for name in names)
        return self.with_sections(Sections(*(section for section in found if section is not None)))

    def merge(self, other: MessageStore) -> Self:
        """With another store's sections appended to those of the same name, and its parameters."""
        expect(other, MessageStore, "the other message store")
        merged = self._sections.merge(other.sections)
        return type(self)(merged, {**self._parameters, **other._parameters})

    # --- writing it down

    def to_messages(self) -> Messages:
        """The messages of all sections, in order."""
        return self._sections.to_messages()

    def to_flat(self, *, shape: shapes.Shape = "openai") -> list[dict[str, Any]]:
        """The messages of all sections as dicts, empty ones left out."""
        return self.to_messages().to_list(shape=shape)

    def to_text(self, separator: str = "\n") -> str:
        """The texts of all sections; raises where a message is more than text."""
        return self.to_messages().to_text(separator)

    def to_dict(self, *, shape: shapes.Shape = "canonical") -> dict[str, Any]:
        """Everything as plain data; `from_dict` reads it."""
        sections = [
            {"name": s.name, "messages": s.messages.to_list(shape=shape, skip_empty=False)}
            for s in self._sections
        ]
        return {"sections": sections, "parameters": thaw(self._parameters)}

    def to_json(self) -> bytes:
        """The store as a versioned document."""
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
    """One section of a store, there or not: ask about it, or get a store in which it is changed."""

    __slots__ = ("_name", "_store")

    def __init__(self, store: MessageStore, name: str) -> None:
        self._store = store
        self._name = name

    @property
    def exists(self) -> bool:
        """Whether the store has it."""
        return self._store.sections.has(self._name)

    @property
    def is_empty(self) -> bool:
        """Whether it is not there, or nothing in it says anything."""
        return self.get().is_empty

    def get(self) -> Section:
        """The section; an empty one where there is none."""
        return self._store.sections.get(self._name) or Section(self._name)

    @property
    def messages(self) -> Messages:
        """What is in it."""
        return self.get().messages

    def append_messages(self, messages: Any) -> MessageStore:
        """With more messages at its end."""
        return self._put(self.get().append_messages(messages))

    def set_messages(self, messages: Any) -> MessageStore:
        """With these messages in it instead."""
        return self._put(self.get().with_messages(messages))

    def clear(self) -> MessageStore:
        """With nothing in it."""
        return self.set_messages(())

    def remove(self) -> MessageStore:
        """Without it."""
        return self._store.with_sections(self._store.sections.without(self._name))

    def _put(self, section: Section) -> MessageStore:
        return self._store.with_sections(self._store.sections.put(section))


class ParameterOperator:
    """The parameters of a store: look at them, or get a store in which they are changed."""

    __slots__ = ("_store",)

    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def get(self) -> FrozenDict:
        """All of them."""
        return self._store._parameters  # pyright: ignore[reportPrivateUsage] # its other half

    def set_parameter(self, key: str, value: Any) -> MessageStore:
        """With one more, or another."""
        return self._store.with_parameters({**self.get(), key: value})

    def unset_parameter(self, key: str) -> MessageStore:
        """Without that one."""
        return self._store.with_parameters({k: v for k, v in self.get().items() if k != key})

    def merge_parameters(self, parameters: Mapping[str, Any]) -> MessageStore:
        """With these on top."""
        return self._store.with_parameters({**self.get(), **freeze_mapping(parameters)})

    def with_params(self, parameters: Mapping[str, Any]) -> MessageStore:
        """With these instead."""
        return self._store.with_parameters(parameters)


class StoredSection(msgspec.Struct, forbid_unknown_fields=True):
    """A section in a document."""

    name: str
    messages: tuple[Message, ...]


class StoredStore(msgspec.Struct, forbid_unknown_fields=True):
    """A store in a document."""

    sections: tuple[StoredSection, ...]
    parameters: dict[str, Any] = {}


document.register("MessageStore", StoredStore)
