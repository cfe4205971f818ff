"""Operations on a conversation: seed 003's collection API, seed 000's access by key.

With Python names. Everything returns a new sequence; the original never changes.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import sleep
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.frozen import EMPTY as EMPTY_MAPPING
from dragoman.model.frozen import freeze_mapping
from dragoman.model.media import Image
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from tests.model import strategies as some
from tests.model.test_conversation import impatient

SYSTEM = Message.system("Be brief.")
HI, HO = Message.user("hi"), Message.assistant("ho")
BYE = Message.user("bye")
EMPTY = Message.user("")
PICTURE = Message.user(Image.from_url("https://example.com/cat.png"))
TALK = Messages(SYSTEM, HI, HO, BYE)


class Note:
    """Something whose text is what it says."""

    def __str__(self) -> str:
        return "a note"


class Speaker:
    """An object that knows how to be a message."""

    def to_message(self) -> Message:
        """Itself, as a message."""
        return HO


class Talk:
    """An object that knows how to be a conversation."""

    def to_messages(self) -> Messages:
        """Itself, as messages."""
        return TALK


# --- making one


def test_empty_has_no_messages() -> None:
    """And is false, as empty sequences are."""
    assert len(Messages.empty()) == 0
    assert not Messages.empty()
    assert Messages.empty() == Messages()


def test_from_text_is_one_message() -> None:
    """The message is the user's, or of the given role."""
    assert Messages.from_text("hi") == Messages(HI)
    assert Messages.from_text("ho", "assistant") == Messages(HO)
    with pytest.raises(InvalidInputError, match="must be str, not int"):
        Messages.from_text(5)  # type: ignore[arg-type]


def test_of_takes_any_iterable_of_messages() -> None:
    """A generator too."""
    assert Messages.of(message for message in (HI, HO)) == Messages(HI, HO)


@pytest.mark.parametrize(("value", "messages"), [
    (TALK, TALK),
    (Talk(), TALK),
    (HI, Messages(HI)),
    (Speaker(), Messages(HO)),
    ("hi", Messages(HI)),
    (Note(), Messages.from_text("a note")),
    ({"answer": 42}, Messages.from_text("{'answer': 42}")),
    (["a", 1], Messages.from_text('["a",1]')),
])  # fmt: skip
def test_from_input_takes_all_else_by_its_text(value: Any, messages: Messages) -> None:
    """Messages and objects that provide them are used as is; anything else becomes a text."""
    assert Messages.from_input(value) == messages


def test_providers_must_provide_messages() -> None:
    """It raises our own error, not an AttributeError later."""

    class Liar:
        def to_messages(self) -> Any:
            return ["hi"]

    with pytest.raises(InvalidInputError, match=r"result of to_messages\(\) must be Messages"):
        Messages.from_any(Liar())


def test_operations_keep_the_subclass() -> None:
    """Values made from a subclass's value are of the subclass, and so is its pickle."""

    class Transcript(Messages):
        pass

    globals()["Transcript"] = Transcript  # where pickle looks for it
    Transcript.__qualname__ = "Transcript"
    transcript = Transcript.from_any(TALK)
    assert transcript == TALK
    for made in (
        transcript.append(HI), transcript[1:], transcript[:2], transcript.filter(bool),
        transcript.reversed(), transcript.merged_per_role(), transcript + Messages(HI),
        Transcript.from_json(TALK.to_json()), pickle.loads(pickle.dumps(transcript)),  # noqa: S301
    ):  # fmt: skip
        assert type(made) is Transcript


# --- asking about raw input


@pytest.mark.parametrize(("value", "is_empty", "is_composite"), [
    (None, True, False),
    ([], True, False),
    ("", True, False),
    ([{"role": "user", "content": ""}], True, False),
    ("hi", False, False),
    ([{"role": "user", "content": "hi"}], False, False),
    ([{"role": "user", "content": [{"type": "text", "text": "hi"}]}], False, False),
    ([{"role": "user", "content": ["a", "b"]}], False, True),
    (["hi", {"role": "user", "content": [{"type": "image_url", "image_url": "https://x"}]}],
     False, True),
    ([{"role": "assistant", "tool_calls": [{"id": "c", "name": "f"}]}], False, True),
    ([{"role": "user", "content": "", "_metadata": {"a": 1}}], False, False),
])  # fmt: skip
def test_raw_input_can_be_asked_before_it_is_read(
    value: Any, is_empty: bool, is_composite: bool
) -> None:
    """Whether it would say nothing, and whether it would be more than plain texts."""
    assert Messages.becomes_empty(value) is is_empty
    assert Messages.becomes_composite(value) is is_composite


@pytest.mark.parametrize(("value", "is_message"), [
    ({"role": "user", "content": "hi"}, True),
    ({"role": "user", "_metadata": {"a": 1}}, True),
    ({"role": "user", "name": "Ann"}, True),
    ({"role": "user", "parts": []}, True),
    ({"type": "text", "text": "hi"}, False),
    ("hi", False),
    (None, False),
])  # fmt: skip
def test_message_dicts_are_told_from_parts(value: Any, is_message: bool) -> None:
    """A list is a conversation where each of its items is a message."""
    assert Message.is_message(value) is is_message
    assert Messages.is_messages([value]) is is_message
    assert Messages.is_messages([{"role": "user", "content": "hi"}, value]) is is_message
    assert not Messages.is_messages(value)


def test_one_messages_raw_input_can_be_asked() -> None:
    """As a conversation's."""
    assert Message.becomes_composite({"role": "user", "content": ["a", "b"]})
    assert not Message.becomes_composite({"role": "user", "content": "a"})
    assert not Message.becomes_composite(None)


# --- looking at it


def test_first_last_and_any_place() -> None:
    """None where there is no such message."""
    assert (TALK.first, TALK.last) == (SYSTEM, BYE)
    assert (TALK.first_role, TALK.last_role) == (Role.SYSTEM, Role.USER)
    assert (TALK.at(1), TALK.at(-1), TALK.at(4), TALK.at(-5)) == (HI, BYE, None, None)
    nothing = Messages()
    assert (nothing.first, nothing.last, nothing.at(0)) == (None, None, None)
    assert (nothing.first_role, nothing.last_role) == (None, None)


def test_head_and_tail_are_conversations_of_one() -> None:
    """Or of none."""
    assert TALK.head == Messages(SYSTEM)
    assert TALK.tail == Messages(BYE)
    assert Messages().head == Messages().tail == Messages()


def test_empty_means_without_content() -> None:
    """A message with metadata is not empty."""
    assert Messages(EMPTY, Message.empty()).is_empty
    assert Messages().is_empty
    assert not Messages(EMPTY, HI).is_empty
    assert Messages(EMPTY, HI).not_empty
    assert Messages(EMPTY.with_metadata("a", 1)).not_empty


def test_composites_are_known() -> None:
    """Any message that is more than a plain text."""
    assert not TALK.has_composites
    assert TALK.append(PICTURE).has_composites
    assert not Messages().has_composites


def test_parts_of_all_messages() -> None:
    """In order."""
    assert Messages(HI, PICTURE, HO).parts == (Text("hi"), *PICTURE.parts, Text("ho"))


# --- going through it


def test_map_filter_and_reduce() -> None:
    """As the builtins, with the conversation first."""
    assert TALK.map(str) == ["Be brief.", "hi", "ho", "bye"]
    assert TALK.filter(lambda message: "h" in message.text) == Messages(HI, HO)
    assert TALK.reduce(lambda total, message: total + len(message.text), 100) == 116


def test_a_filter_keeps_empty_messages() -> None:
    """Dropping them has a name of its own (acceptance 17)."""
    messages = Messages(EMPTY, HI, EMPTY)
    assert messages.filter(lambda message: message.role is Role.USER) == messages
    assert messages.without_empty() == Messages(HI)


def test_iterations_do_not_disturb_each_other() -> None:
    """Nor does appending while iterating."""
    one, other = iter(TALK), iter(TALK)
    assert next(one) is next(other) is SYSTEM
    longer = TALK
    for message in TALK:
        longer = longer.append(message)
    assert len(longer) == 8
    assert len(TALK) == 4
    assert list(reversed(TALK)) == [BYE, HO, HI, SYSTEM]


def test_match_sees_a_sequence() -> None:
    """Patterns take it apart, and messages within it."""
    match TALK:
        case [
            Message(role=Role.SYSTEM),
            *middle,
            Message(role=Role.USER, parts=(Text(text=text),)),
        ]:
            assert list(middle) == [HI, HO]
            assert text == "bye"
        case _:
            pytest.fail("a conversation is a sequence")


# --- by role


def test_roles_select() -> None:
    """One or several, as members or names, including aliases."""
    assert TALK.for_roles("user") == Messages(HI, BYE)
    assert TALK.for_roles([Role.USER, "model"]) == Messages(HI, HO, BYE)
    assert TALK.for_roles([]) == Messages()
    assert TALK.except_roles("user") == Messages(SYSTEM, HO)
    assert TALK.except_roles([]) == TALK


def test_roles_take_from_the_beginning_or_skip_it() -> None:
    """Up to the first message of another role, or from there."""
    assert TALK.head_with_roles(["system", "developer"]) == Messages(SYSTEM)
    assert TALK.tail_after_roles(["system", "developer"]) == Messages(HI, HO, BYE)
    assert TALK.head_with_roles("tool") == Messages()
    assert TALK.tail_after_roles("tool") == TALK
    assert TALK.head_with_roles(Role) == TALK
    assert TALK.tail_after_roles(Role) == Messages()


@given(some.conversations, st.lists(some.roles))
def test_head_and_tail_by_role_make_the_whole(messages: Messages, roles: list[Role]) -> None:
    """And so do a selection and its opposite, in number."""
    assert messages.head_with_roles(roles) + messages.tail_after_roles(roles) == messages
    chosen, others = messages.for_roles(roles), messages.except_roles(roles)
    assert len(chosen) + len(others) == len(messages)
    assert all(message.role in roles for message in chosen)
    assert not any(message.role in roles for message in others)


def test_roles_can_be_remapped() -> None:
    """Those not named stay; ids do too."""
    remapped = TALK.remap_roles({"system": "developer", Role.USER: "assistant"})
    assert remapped.map(lambda message: message.role.value) == [
        "developer", "assistant", "assistant", "assistant",
    ]  # fmt: skip
    assert remapped.map(lambda message: message.id) == TALK.map(lambda message: message.id)
    with pytest.raises(InvalidInputError, match="unknown role"):
        TALK.remap_roles({"user": "robot"})


# --- changed copies


CHANGES: list[tuple[str, Callable[[Messages], Messages], list[Message]]] = [
    ("append", lambda m: m.append("!"), [HI, HO, Message.user("!")]),
    ("append many parts", lambda m: m.append(["a", "b"]), [HI, HO, Message.user("a", "b")]),
    ("extend", lambda m: m.extend([BYE, "!"]), [HI, HO, BYE, Message.user("!")]),
    ("extend by itself", lambda m: m.extend(m), [HI, HO, HI, HO]),
    ("plus", lambda m: m + (BYE,), [HI, HO, BYE]),  # noqa: RUF005 - this is what is tested
    ("plus messages", lambda m: m + Messages(BYE), [HI, HO, BYE]),
    ("prepend", lambda m: m.prepend([SYSTEM]), [SYSTEM, HI, HO]),
    ("replace_last", lambda m: m.replace_last(BYE), [HI, BYE]),
    ("without_first", lambda m: m.without_first(), [HO]),
    ("without_last", lambda m: m.without_last(), [HI]),
    ("without_empty", lambda m: m.append("").without_empty(), [HI, HO]),
    ("reversed", lambda m: m.reversed(), [HO, HI]),
    ("set", lambda m: m.set("id", HI.id, BYE), [BYE, HO]),
    ("remove", lambda m: m.remove("id", HI.id), [HO]),
    ("slice", lambda m: m[::-1], [HO, HI]),
]


@pytest.mark.parametrize(
    ("change", "after"), [row[1:] for row in CHANGES], ids=[r[0] for r in CHANGES]
)
def test_a_change_is_a_copy(change: Callable[[Messages], Messages], after: list[Message]) -> None:
    """The original conversation is unchanged."""
    before = Messages(HI, HO)
    assert list(change(before)) == after
    assert list(before) == [HI, HO]


def test_changes_of_an_empty_conversation() -> None:
    """Every change can add the first message; removing a missing message raises."""
    nothing = Messages()
    assert nothing.append(HI) == nothing.extend([HI]) == nothing.prepend([HI]) == Messages(HI)
    assert nothing.replace_last(HI) == Messages(HI)
    assert nothing.without_first() == nothing.without_last() == nothing.reversed() == nothing
    assert nothing + nothing == nothing


@pytest.mark.parametrize("other", ["hi", b"hi", {"role": "user", "content": "hi"}, 5, None, HI])
def test_plus_takes_several_messages(other: Any) -> None:
    """A text or a dict is one, and `append` is for one."""
    with pytest.raises(TypeError):
        _ = TALK + other


@pytest.mark.parametrize("change", [
    lambda m: m.append(None), lambda m: m.extend(None), lambda m: m.extend([None]),
    lambda m: m.prepend(None), lambda m: m.replace_last(None), lambda m: m.set("id", "x", None),
])  # fmt: skip
def test_none_is_no_message(change: Callable[[Messages], Messages]) -> None:
    """Nothing is added, also where it is one of several."""
    before = Messages(HI)
    with pytest.raises(InvalidInputError):
        change(before)
    assert list(before) == [HI]


def test_a_field_of_the_last_part() -> None:
    """Set on the last part of the last message; unknown names become extras of the part."""
    messages = Messages(HI, PICTURE)
    closer = messages.with_field("detail", "high").append_field("alt_text", "a cat")
    assert closer.to_list(shape="content")[1]["content"] == [
        {
            "type": "image_url",
            "image_url": {"url": "https://example.com/cat.png", "detail": "high"},
            "alt_text": "a cat",
        }
    ]
    assert messages.last == PICTURE
    assert closer[1].id == PICTURE.id
    with pytest.raises(InvalidInputError, match="there are no messages"):
        Messages().with_field("detail", "high")
    with pytest.raises(InvalidInputError, match="no parts"):
        Messages(Message.empty()).with_field("detail", "high")


# --- by key (seed 000)


KEYED = Messages(
    Message.system("Be brief.", id="m1"),
    Message.user("hi", id="m2", name="Ann").with_extra("mood", "good"),
    Message.assistant(tool_calls=[ToolCall.create("c1", "f")], id="m3"),
    Message.tool("c1", "ok", id="m4"),
)


@pytest.mark.parametrize(("key", "value", "place"), [
    ("id", "m3", 2),
    ("role", "user", 1),
    ("role", Role.TOOL, 3),
    ("name", "Ann", 1),
    ("kind", "tool_call", 2),
    ("text", "hi", 1),
    ("tool_call_id", "c1", 3),
    ("mood", "good", 1),
    ("id", "m9", None),
    ("nonsense", "m1", None),
    ("nonsense", None, None),
    ("name", None, None),
])  # fmt: skip
def test_a_message_is_found_by_any_field(key: str, value: Any, place: int | None) -> None:
    """One of its own, a derived one or an extra; a missing field never matches."""
    assert KEYED.find(key, value) == place
    assert KEYED.has(key, value) is (place is not None)
    assert KEYED.get(key, value) is (None if place is None else KEYED[place])


def test_the_first_match_is_set_and_removed() -> None:
    """Set without a match adds at the end; remove without one changes nothing."""
    twice = Messages(HI, HO, Message.user("hi"))
    assert twice.set("text", "hi", BYE) == Messages(BYE, HO, HI)
    assert twice.set("id", "none", BYE) == Messages(HI, HO, HI, BYE)
    assert twice.set("id", HO.id, "dict-like too") == Messages(
        HI, Message.user("dict-like too"), HI
    )
    assert twice.remove("text", "hi") == Messages(HO, HI)
    assert twice.remove("id", "none") is twice


# --- writing it down


def test_to_list_leaves_empty_messages_out_unless_asked() -> None:
    """In any of the shapes, with or without metadata."""
    messages = Messages(HI.with_metadata("a", 1), EMPTY)
    assert messages.to_list(shape="content") == [
        {"role": "user", "content": "hi", "_metadata": {"a": 1}}
    ]
    assert messages.to_list(shape="content", skip_empty=False, metadata=False) == [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": ""},
    ]
    assert Messages.from_any(messages.to_list(shape="canonical", skip_empty=False)) == messages


def test_to_text_joins_the_texts() -> None:
    """Empty messages leave no gap; the caller chooses the separator."""
    assert TALK.append("").append("!").to_text() == "Be brief.\nhi\nho\nbye\n!"
    assert TALK.to_text(" | ") == "Be brief. | hi | ho | bye"
    assert Messages().to_text() == ""


def test_to_text_raises_where_text_is_not_all() -> None:
    """A renderer may say what the rest looks like."""
    messages = TALK.append(PICTURE)
    with pytest.raises(InvalidInputError, match="more than plain text"):
        messages.to_text()
    shown = messages.to_text(renderer=lambda m: f"{m.role}: {m.text or '[picture]'}")
    assert shown.endswith("user: bye\nuser: [picture]")


def test_it_provides_itself() -> None:
    """So it may stand wherever a conversation is asked for."""
    assert TALK.to_messages() is TALK
    assert Messages.from_any(TALK) is TALK


# --- as a sequence, and a cheap one


def test_equal_conversations_are_one_key() -> None:
    """Whatever they were made by, a shared list or a copy."""
    built = Messages()
    for message in TALK:
        built = built.append(Message.from_dict(message.to_dict()))
    assert {TALK: 1}[built] == 1
    assert hash(TALK[:2]) == hash(Messages(SYSTEM, HI))
    assert TALK.index(HO) == 2
    assert TALK.count(HI) == 1
    assert Message.user("bye") in TALK
    assert "bye" not in TALK


def test_a_beginning_is_copied_and_pickled_without_the_rest() -> None:
    """Though it shares its list with the longer one."""
    short = TALK[:2]
    assert copy.deepcopy(short) is copy.copy(short) is short
    raw = pickle.dumps(short)
    assert pickle.loads(raw) == short  # noqa: S301 - our own bytes
    assert b"bye" not in raw
    assert b"bye" not in short.to_json()
    assert repr(short).count("Message(") == 2
    with pytest.raises(IndexError):
        short[2]
    assert short[-1] is HI


def test_appending_one_by_one_is_linear() -> None:
    """20,000 messages: one list grows, nothing is copied, and each step sees its own prefix."""
    messages = Messages()
    shared = messages._shared
    steps: list[Messages] = []
    for _ in range(20_000):
        messages = messages.append(HI)
        steps.append(messages)
    assert messages._shared is shared
    assert [len(step) for step in steps] == list(range(1, 20_001))
    assert all(step._shared is shared for step in steps)
    assert len(shared) == 20_000


def test_extending_and_taking_beginnings_copies_nothing() -> None:
    """Either is a view of the same list."""
    messages = Messages(HI)
    longer = messages + Messages(HO, BYE)
    assert longer._shared is messages._shared
    assert longer[:2]._shared is messages._shared
    assert longer.without_last()._shared is messages._shared


def test_branches_do_not_see_each_other() -> None:
    """From one base, the first grows in place and the others copy; the result is the same."""
    base = Messages(SYSTEM, HI)
    branches = [base.append(str(n)).append(f"{n}!") for n in range(5)]
    assert base == Messages(SYSTEM, HI)
    for n, branch in enumerate(branches):
        assert branch.map(str) == ["Be brief.", "hi", str(n), f"{n}!"]
    again = branches[0].without_last().append("?")
    assert again.map(str) == ["Be brief.", "hi", "0", "?"]
    assert branches[0].map(str)[-1] == "0!"


_steps = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3), st.integers(-3, 3)), max_size=30)


@given(_steps)
def test_any_history_of_branches_is_that_of_tuples(steps: list[tuple[int, int, int]]) -> None:
    """Appending to, extending and slicing any of the conversations made so far."""
    made: list[tuple[Messages, tuple[Message, ...]]] = [(Messages(), ())]
    for at, kind, cut in steps:
        messages, plain = made[at % len(made)]
        if kind == 0:
            made.append((messages.append(HI), (*plain, HI)))
        elif kind == 1:
            made.append((messages + Messages(HO, BYE), (*plain, HO, BYE)))
        elif kind == 2:
            made.append((messages[:cut], plain[:cut]))
        else:
            made.append((messages.replace_last(BYE), (*plain[:-1], BYE)))
    for messages, plain in made:
        assert tuple(messages) == plain


def test_threads_may_append_to_one_base() -> None:
    """Each gets its own branch, whole; the base stays."""
    base = Messages(*[HI] * 50)

    def branch(number: int) -> Messages:
        messages = base
        for step in range(100):
            messages = messages.append(f"{number}.{step}")
        return messages

    with impatient(), ThreadPoolExecutor(8) as pool:
        branches = list(pool.map(branch, range(64)))
    assert base.map(str) == ["hi"] * 50
    for number, messages in enumerate(branches):
        assert messages.map(str)[50:] == [f"{number}.{step}" for step in range(100)]


class SlowList(list[Message]):
    """A list that lets other threads in while its length is looked at."""

    def __len__(self) -> int:
        length = super().__len__()
        sleep(0.001)
        return length


def test_only_one_of_two_threads_grows_in_place() -> None:
    """Both find the list as long as the base; the second must notice the first."""
    base = Messages(HI)
    base._shared = SlowList(base._shared)
    with ThreadPoolExecutor(8) as pool:
        branches = list(pool.map(lambda n: base.append(str(n)), range(8)))
    assert [branch.map(str) for branch in branches] == [["hi", str(n)] for n in range(8)]


# --- the parts of one message, as seed 003's `Content` and `ContentParts` have them


def test_parts_are_a_tuple_with_changes_by_name() -> None:
    """First, last, any place and count are the tuple's; changes are the message's."""
    message = Message.user("a", "", "b")
    assert (message.parts[0], message.parts[-1], len(message.parts)) == (Text("a"), Text("b"), 3)
    assert message.add_part("c").parts[-1] == Text("c")
    assert message.with_parts(*message.parts[:-1], Text("z")).joined("|") == "a||z"
    assert message.without_empty().parts == (Text("a"), Text("b"))
    assert message.without_empty().id == message.id
    assert message.joined(" ") == "a  b"


def test_part_fields_by_name() -> None:
    """Known ones are the part's own, checked; all others are its extras."""
    part = Text("hi").with_field("analysis", "deep").with_field("text", "ho")
    assert (part.text, part.field("text"), part.field("analysis")) == ("ho", "ho", "deep")
    assert (part.field("nope"), part.field("nope", 5)) == (None, 5)
    assert part.has_field("analysis")
    assert not part.has_field("nope")
    assert not part.has_field("signature")
    with pytest.raises(InvalidInputError, match=r"Text\.text must be str"):
        part.with_field("text", 5)


def test_a_text_with_more_fields_is_no_simple_one() -> None:
    """Its content is a list, or the fields would be lost (seed 003's complexity rule)."""
    simple, more = Message.user("hi"), Message.user("hi").with_field("analysis", "deep")
    assert (simple.is_simple, simple.normalized(), simple.content) == (True, "hi", "hi")
    assert (more.is_simple, more.is_composite) == (False, True)
    assert more.normalized() == [{"type": "text", "text": "hi", "analysis": "deep"}]
    assert Message.empty().normalized() == ""
    assert Message.from_dict(more.to_dict(shape="content")) == more
    assert Message.from_dict(more.to_dict(shape="content")).parts[0].identical(more.parts[0])


@pytest.mark.parametrize("shape", ["openai", "content"])
def test_nulls_empties_and_underscored_fields_are_not_exported(shape: Any) -> None:
    """Only non-empty extra fields of a part are written; the document keeps all of them."""
    message = PICTURE
    fields: dict[str, Any] = {
        "nothing": None, "blank": "", "none": [], "bare": {}, "_private": "x",
        "zero": 0, "no": False, "alt": "a cat",
    }  # fmt: skip
    for key, value in fields.items():
        message = message.with_field(key, value)
    (part,) = message.to_dict(shape=shape)["content"]
    assert part == {
        "type": "image_url", "image_url": {"url": "https://example.com/cat.png"},
        "zero": 0, "no": False, "alt": "a cat",
    }  # fmt: skip
    assert Message.from_json(message.to_json()).parts[0].field("_private") == "x"
    assert Message.from_dict(message.to_dict()).identical(message)


def test_metadata_is_a_mapping_with_changed_copies() -> None:
    """Of seed 003's `Metadata`: get with a default, has, keys, is empty, as a plain dict."""
    message = HI.with_metadata("detail", "high").with_metadata("page", 42)
    metadata = message.metadata
    assert (metadata["detail"], metadata.get("nope", 5), "page" in metadata) == ("high", 5, True)
    assert list(metadata) == ["detail", "page"]
    assert dict(metadata) == {"detail": "high", "page": 42}
    assert message.without_metadata("page").metadata == {"detail": "high"}
    assert message.without_metadata("nope").metadata == metadata
    assert not HI.metadata
    assert message.replace(metadata={"other": [1]}).metadata == {"other": [1]}


def test_changed_copies_of_frozen_mappings_are_frozen() -> None:
    """Values stored in a copy are frozen too, and the original is unchanged."""
    inner = {"pages": [1]}
    old = freeze_mapping({"a": 1})
    new = old.with_item("b", inner).with_item("a", 2)
    inner["pages"].append(2)
    assert (old, new) == ({"a": 1}, {"a": 2, "b": {"pages": [1]}})
    assert new.without("b").without("a") is EMPTY_MAPPING
    assert old.without("nope") is old
    with pytest.raises(InvalidInputError, match="NaN"):
        old.with_item("b", float("nan"))


def test_a_messages_field_may_be_set_by_either_name() -> None:
    """`append_field` is seed 003's name for `with_field`."""
    message = Message.user("look", Image.from_url("https://example.org/cat.png"))
    closer = message.append_field("detail", "high")
    assert closer == message.with_field("detail", "high")
    assert closer != message
