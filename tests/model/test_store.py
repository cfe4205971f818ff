"""Messages in named sections with parameters; operators return modified stores."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.media import Image
from dragoman.model.messages import Message
from dragoman.model.schema import document_schema
from dragoman.model.store import MessageStore, Section, Sections
from tests.model import strategies as some

SYSTEM = Section("system", Message.system("Be brief."))
PROMPT = Section("prompt", ["hi", {"role": "assistant", "content": "ho"}])
STORE = MessageStore.from_sections(SYSTEM, PROMPT).parameters.set_parameter("model", "small")


def names(store: MessageStore) -> tuple[str, ...]:
    """The names of the sections."""
    return store.sections.names


# --- sections


def test_a_section_is_messages_under_a_name() -> None:
    """From whatever a conversation can be made from."""
    assert (PROMPT.name, len(PROMPT)) == ("prompt", 2)
    assert PROMPT.messages == Messages.from_any(["hi", Message.assistant("ho")])
    assert PROMPT.to_messages() is PROMPT.messages
    assert [message.text for message in PROMPT] == ["hi", "ho"]
    assert Messages.from_any(PROMPT) is PROMPT.messages


@pytest.mark.parametrize("name", ["", None, 5, b"x"])
def test_a_section_needs_a_name(name: Any) -> None:
    """Which is a text that is not empty."""
    with pytest.raises(InvalidInputError, match="the name of a section"):
        Section(name)


def test_an_empty_section_says_nothing() -> None:
    """Nor does one with messages that say nothing."""
    assert Section.empty("x") == Section("x")
    assert len(Section.empty("x")) == 0
    assert Section.empty("x").is_empty
    assert Section("x", "").is_empty
    assert not PROMPT.is_empty


def test_sections_have_changed_copies() -> None:
    """Messages, fields, merging and dropping; the name stays and so does the original."""
    assert PROMPT.with_messages("bye").messages == Messages.from_any("bye")
    assert PROMPT.append_messages(["a", "b"]).messages.to_text() == "hi\nho\na\nb"
    assert PROMPT.append_messages("a").name == "prompt"
    field = PROMPT.append_field("note", "x").messages[-1].parts[-1]
    assert field.field("note") == "x"
    assert PROMPT.append_messages(Message.assistant("!")).merged_per_role().messages.to_text(
        "|"
    ) == "hi|ho\n\n!"  # fmt: skip
    assert PROMPT.append_messages(Message.assistant("!")).merged_per_role(" ").messages.to_text(
        "|"
    ) == "hi|ho !"  # fmt: skip
    assert len(PROMPT.append_messages("").without_empty()) == 2
    assert PROMPT.messages.to_text() == "hi\nho"


def test_sections_are_equal_by_name_and_content() -> None:
    """And work as keys."""
    assert Section("a", "hi") == Section("a", "hi")
    assert Section("a", "hi") != Section("b", "hi")
    assert Section("a", "hi") != Section("a", "ho")
    assert Section("a", "hi") != "a"
    assert hash(Section("a", "hi")) == hash(Section("a", "hi"))


def test_reprs_show_no_content() -> None:
    """Nor names, which may be anything."""
    assert repr(PROMPT) == "Section(2 messages)"
    assert repr(STORE.sections) == "Sections(Section(1 messages), Section(2 messages))"
    assert repr(STORE) == "MessageStore(Section(1 messages), Section(2 messages))"


# --- a collection of sections


def test_sections_are_ordered_and_found_by_name() -> None:
    """Iteration, count, names, membership, and None for what is not there."""
    sections = Sections(SYSTEM, PROMPT)
    assert list(sections) == [SYSTEM, PROMPT]
    assert len(sections) == 2
    assert sections.names == ("system", "prompt")
    assert sections.has("prompt")
    assert "prompt" in sections
    assert not sections.has("nope")
    assert sections.get("prompt") is PROMPT
    assert sections.get("nope") is None
    assert sections.to_messages() == SYSTEM.messages + PROMPT.messages


def test_sections_have_changed_copies_too() -> None:
    """Add, put in place, take out, choose."""
    sections = Sections(SYSTEM, PROMPT)
    other = Section("other")
    assert sections.add(other, Section("last")).names == ("system", "prompt", "other", "last")
    assert sections.put(Section("system", "x")).names == ("system", "prompt")
    assert sections.put(other).names == ("system", "prompt", "other")
    assert sections.without("system").names == ("prompt",)
    assert sections.without("nope") == sections
    assert sections.filter(lambda section: len(section) == 2).names == ("prompt",)
    assert sections.names == ("system", "prompt")


def test_two_sections_of_one_name_are_refused() -> None:
    """By the constructor, by `add`, and by the store's constructors."""
    for make in (
        lambda: Sections(SYSTEM, Section("system")),
        lambda: Sections(SYSTEM).add(Section("system")),
        lambda: MessageStore.from_sections(SYSTEM, Section("system")),
        lambda: MessageStore([SYSTEM, SYSTEM]),
    ):
        with pytest.raises(InvalidInputError, match="same name"):
            make()


def test_sections_hold_sections() -> None:
    """A text is not one."""
    with pytest.raises(InvalidInputError, match="must be Section, not str"):
        Sections("system")  # type: ignore[arg-type]


def test_sections_of_a_known_name_are_merged_on_request() -> None:
    """In the place of the first."""
    merged = Sections(SYSTEM, PROMPT).merge([Section("system", "x"), Section("new", "y")])
    assert merged.names == ("system", "prompt", "new")
    assert merged.to_messages().to_text("|") == "Be brief.|x|hi|ho|y"


def test_collections_of_sections_compare() -> None:
    """By content and order."""
    assert Sections(SYSTEM, PROMPT) == Sections(SYSTEM, PROMPT)
    assert Sections(SYSTEM, PROMPT) != Sections(PROMPT, SYSTEM)
    assert Sections() != ()
    assert hash(Sections(SYSTEM)) == hash(Sections(SYSTEM))


# --- the store


def test_a_store_from_messages_is_one_section() -> None:
    """Called `messages` unless it is told otherwise."""
    assert names(MessageStore.from_messages("hi")) == ("messages",)
    store = MessageStore.from_messages(["a", "b"], "prompt")
    assert store.section("prompt").messages.to_text() == "a\nb"
    assert len(MessageStore().sections) == 0


OPERATIONS: list[tuple[str, Callable[[MessageStore], MessageStore], str]] = [
    ("append", lambda s: s.section("prompt").append_messages("x"), "Be brief.|hi|ho|x"),
    ("append to new", lambda s: s.section("new").append_messages("x"), "Be brief.|hi|ho|x"),
    ("set", lambda s: s.section("system").set_messages("x"), "x|hi|ho"),
    ("set new", lambda s: s.section("new").set_messages("x"), "Be brief.|hi|ho|x"),
    ("clear", lambda s: s.section("prompt").clear(), "Be brief."),
    ("remove", lambda s: s.section("system").remove(), "hi|ho"),
    ("remove absent", lambda s: s.section("nope").remove(), "Be brief.|hi|ho"),
    ("with_section", lambda s: s.with_section("new"), "Be brief.|hi|ho"),
    ("with_sections", lambda s: s.with_sections(Sections(PROMPT)), "hi|ho"),
    ("select", lambda s: s.select("prompt"), "hi|ho"),
    ("merge", lambda s: s.merge(MessageStore.from_messages("x", "system")), "Be brief.|x|hi|ho"),
    ("set_parameter", lambda s: s.parameters.set_parameter("a", 1), "Be brief.|hi|ho"),
    ("unset_parameter", lambda s: s.parameters.unset_parameter("model"), "Be brief.|hi|ho"),
]


@pytest.mark.parametrize(
    ("change", "text"), [o[1:] for o in OPERATIONS], ids=[o[0] for o in OPERATIONS]
)
def test_operators_leave_the_original_unchanged(
    change: Callable[[MessageStore], MessageStore], text: str
) -> None:
    """Acceptance 20."""
    before = STORE.to_json()
    changed = change(STORE)
    assert changed.to_text("|") == text
    assert STORE.to_json() == before


def test_a_section_can_be_asked_about_before_it_is_there() -> None:
    """It does not exist, is empty and has no messages; looking at it makes none."""
    there, absent = STORE.section("system"), STORE.section("nope")
    assert (there.exists, there.is_empty, there.get()) == (True, False, SYSTEM)
    assert (absent.exists, absent.is_empty, absent.get()) == (False, True, Section("nope"))
    assert there.messages == SYSTEM.messages
    assert absent.messages == Messages()
    assert names(STORE) == ("system", "prompt")


def test_clear_keeps_the_section_and_remove_does_not() -> None:
    """An empty one is still there, in its place."""
    cleared = STORE.section("system").clear()
    assert (cleared.section("system").exists, cleared.section("system").is_empty) == (True, True)
    assert names(cleared) == ("system", "prompt")
    assert names(STORE.section("system").remove()) == ("prompt",)


def test_with_section_sees_that_it_is_there() -> None:
    """Empty where it was not, untouched where it was."""
    assert names(STORE.with_section("new")) == ("system", "prompt", "new")
    assert STORE.with_section("system") is STORE


@pytest.mark.parametrize(("wanted", "found"), [
    ([], ("system", "prompt", "tools")),
    ((), ("system", "prompt", "tools")),
    ("", ()),
    ("prompt", ("prompt",)),
    (["tools", "system"], ("tools", "system")),
    (["prompt", "system", "prompt"], ("prompt", "system")),
    (["nope", "tools"], ("tools",)),
    ("nope", ()),
    ([""], ()),
])  # fmt: skip
def test_select(wanted: Any, found: tuple[str, ...]) -> None:
    """`[]` is all, `""` none; the order is the caller's, duplicates collapse, parameters stay."""
    selected = STORE.with_section("tools").select(wanted)
    assert names(selected) == found
    assert selected.parameters.get() == {"model": "small"}


def test_parameters() -> None:
    """Get, set, unset, merge, replace."""
    store = STORE.parameters.set_parameter("limits", {"tokens": [1, 2]})
    assert store.parameters.get() == {"model": "small", "limits": {"tokens": [1, 2]}}
    assert store.parameters.unset_parameter("model").parameters.get() == {
        "limits": {"tokens": [1, 2]}
    }
    assert STORE.parameters.unset_parameter("nope") == STORE
    merged = STORE.parameters.merge_parameters({"model": "large", "a": 1})
    assert merged.parameters.get() == {"model": "large", "a": 1}
    assert STORE.parameters.with_params({"b": 2}).parameters.get() == {"b": 2}
    assert STORE.with_parameters({"b": 2}).parameters.get() == {"b": 2}
    assert STORE.parameters.get() == {"model": "small"}


def test_parameters_are_json_and_cannot_be_changed() -> None:
    """They are stored with the rest."""
    parameters: Any = STORE.parameters.get()
    with pytest.raises(TypeError):
        parameters["model"] = "large"
    with pytest.raises(InvalidInputError, match="only JSON values"):
        STORE.parameters.set_parameter("x", object())
    with pytest.raises(InvalidInputError, match="must be a mapping"):
        STORE.parameters.with_params(["x"])  # type: ignore[arg-type]


def test_merge_appends_by_name_and_adds_the_rest() -> None:
    """The other's parameters win."""
    other = MessageStore([Section("prompt", "x"), Section("new", "y")], {"model": "large", "a": 1})
    merged = STORE.merge(other)
    assert names(merged) == ("system", "prompt", "new")
    assert merged.to_text("|") == "Be brief.|hi|ho|x|y"
    assert merged.parameters.get() == {"model": "large", "a": 1}
    assert STORE.merge(MessageStore()) == STORE == MessageStore().merge(STORE)
    with pytest.raises(InvalidInputError, match="must be MessageStore"):
        STORE.merge("x")  # type: ignore[arg-type]


# --- writing it down


def test_the_messages_of_all_sections() -> None:
    """As a conversation, as dicts without empty ones, as text; in the order of the sections."""
    store = STORE.section("prompt").append_messages("")
    assert store.to_messages().to_text("|") == "Be brief.|hi|ho"
    assert len(store.to_messages()) == 4
    assert store.to_flat(shape="content") == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ho"},
    ]
    assert [m["id"] for m in store.to_flat()] == [m.id for m in STORE.to_messages()]
    assert store.to_text() == "Be brief.\nhi\nho"
    assert Messages.from_any(store) == store.to_messages()


def test_to_text_raises_where_text_is_not_all() -> None:
    """As a conversation does."""
    store = MessageStore.from_messages(Image.from_url("https://example.com/cat.png"))
    with pytest.raises(InvalidInputError, match="more than plain text"):
        store.to_text()


def test_from_dict_merges_sections_of_one_name() -> None:
    """Where the constructor refuses them."""
    store = MessageStore.from_dict({
        "sections": [
            {"name": "a", "messages": [{"role": "user", "content": "1"}]},
            {"name": "b", "messages": "2"},
            {"name": "a", "messages": ["3"]},
            {"messages": ["4"]},
            {"name": "c"},
        ],
        "parameters": {"x": 1},
    })  # fmt: skip
    assert names(store) == ("a", "b", "messages", "c")
    assert store.to_text("|") == "1|3|2|4"
    assert store.parameters.get() == {"x": 1}
    assert MessageStore.from_dict({}) == MessageStore()


@pytest.mark.parametrize("data", [
    None, [], "x", {"sections": "a"}, {"sections": {"a": []}}, {"sections": ["a"]},
    {"sections": [{"name": 5}]}, {"sections": [{"name": ""}]}, {"parameters": ["a"]},
    {"sections": [{"name": "a", "messages": [None]}]},
])  # fmt: skip
def test_what_is_no_store_is_refused(data: Any) -> None:
    """The error is ours."""
    with pytest.raises(InvalidInputError):
        MessageStore.from_dict(data)


_stores = st.builds(
    lambda sections, parameters: MessageStore(
        [Section(name, messages) for name, messages in sections.items()], parameters
    ),
    st.dictionaries(some.texts.filter(bool), some.conversations, max_size=2),
    some.json_objects,
)


@given(_stores)
def test_a_store_comes_back(store: MessageStore) -> None:
    """From its dict, its document, a pickle and a copy: the same messages with the same ids."""
    for back in (
        MessageStore.from_dict(store.to_dict()),
        MessageStore.from_json(store.to_json()),
        pickle.loads(pickle.dumps(store)),  # noqa: S301 - our own bytes
        copy.deepcopy(store),
    ):
        assert back == store
        assert hash(back) == hash(store)
        assert back.sections.names == store.sections.names
        assert all(map(Message.identical, back.to_messages(), store.to_messages()))


_PROMISE = jsonschema.Draft202012Validator(document_schema())  # made once: that is the slow part


@given(_stores)
def test_a_stores_document_is_what_the_schema_promises(store: MessageStore) -> None:
    """The one that ships with the package."""
    assert list(_PROMISE.iter_errors(json.loads(store.to_json()))) == []


def test_a_stores_document_has_a_version() -> None:
    """As every document; what is another kind's is refused."""
    assert json.loads(STORE.to_json())["kind"] == "MessageStore"
    assert json.loads(STORE.to_json())["dragoman"] == 2
    with pytest.raises(InvalidInputError, match="does not hold a value of kind"):
        MessageStore.from_json(STORE.to_messages().to_json())
    assert STORE.to_messages() != STORE


def test_a_dict_is_the_callers_own() -> None:
    """Changing it changes no store."""
    written = STORE.to_dict()
    written["parameters"]["model"] = "large"
    written["sections"].clear()
    assert STORE.parameters.get() == {"model": "small"}
    assert names(STORE) == ("system", "prompt")
