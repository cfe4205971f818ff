"""Merging messages of the same role, and combining or splitting tool results."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.collection import Messages
from dragoman.model.media import Image
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import CacheHint, Citation, Origin, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import FinishReason, Usage
from tests.model import strategies as some

IMAGE = Image.from_url("https://example.com/cat.png")
CALL, OTHER = ToolCall.create("c1", "weather"), ToolCall.create("c2", "news")


def shown(messages: Messages) -> list[tuple[str, str]]:
    """Who says what."""
    return messages.map(lambda message: (message.role.value, message.text))


# --- neighbours of one role


def test_neighbours_of_one_role_are_merged() -> None:
    """Blank lines between them; nothing before the first (seed 003 put an empty message there)."""
    messages = Messages.from_any([
        {"role": "system", "content": "a"}, {"role": "system", "content": "b"},
        {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"},
        {"role": "assistant", "content": "e"}, {"role": "user", "content": "f"},
    ])  # fmt: skip
    assert shown(messages.merged_per_role()) == [
        ("system", "a\n\nb"), ("user", "c"), ("assistant", "d\n\ne"), ("user", "f"),
    ]  # fmt: skip
    assert shown(messages.merged_per_role(" ")) == [
        ("system", "a b"), ("user", "c"), ("assistant", "d e"), ("user", "f"),
    ]  # fmt: skip


def test_nothing_merges_to_nothing() -> None:
    """And one message to itself."""
    assert Messages().merged_per_role() == Messages()
    one = Message.user("a")
    assert Messages(one).merged_per_role()[0] is one


def test_empty_texts_leave_no_gap() -> None:
    """They are dropped when merged with others, and kept when alone."""
    assert shown(Messages.from_any(["a", "", "b"]).merged_per_role()) == [("user", "a\n\nb")]
    assert shown(Messages.from_any(["", ""]).merged_per_role()) == [("user", "")]
    assert shown(Messages(Message.empty(), Message.user("a")).merged_per_role()) == [("user", "a")]


def test_composites_stay_apart() -> None:
    """Seed 003: a message that is more than text is passed on as it is, and ends the run."""
    picture = Message.user("look", IMAGE)
    messages = Messages(Message.user("a"), picture, Message.user("b"), Message.user("c"))
    merged = messages.merged_per_role()
    assert shown(merged) == [("user", "a"), ("user", "look"), ("user", "b\n\nc")]
    assert merged[1] is picture


def test_merging_keeps_the_first_id_and_lets_later_metadata_win() -> None:
    """Acceptance 16; extras of the developer's own are joined in the same way."""
    one = Message.user("a", id="m1", metadata={"x": 1, "y": 1}).with_extra("p", 1)
    other = Message.user("b", id="m2", metadata={"y": 2, "z": 2}).with_extra("q", 2)
    (merged,) = Messages(one, other.with_extra("r", 3, dialect="gemini")).merged_per_role()
    assert merged.id == "m1"
    assert merged.metadata == {"x": 1, "y": 2, "z": 2}
    assert merged.extras == {"canonical": {"p": 1, "q": 2}}


def test_merging_joins_tool_calls() -> None:
    """They follow the joined text, in order; no text makes no text."""
    one = Message.assistant("a", tool_calls=[CALL])
    other = Message.assistant("b", tool_calls=[OTHER])
    (merged,) = Messages(one, other).merged_per_role()
    assert merged.parts == (Text("a\n\nb"), CALL, OTHER)
    assert [call.id for call in merged.tool_calls] == ["c1", "c2"]
    (bare,) = Messages(
        Message.assistant(tool_calls=[CALL]), Message.assistant(tool_calls=[OTHER])
    ).merged_per_role()
    assert bare.parts == (CALL, OTHER)


@pytest.mark.parametrize("role", [Role.TOOL, Role.USER])
def test_tool_results_are_never_merged(role: Role) -> None:
    """Acceptance 16: each answers a call of its own, whoever carries it."""
    messages = Messages(
        Message(role, (ToolResult.success("c1", "a"),)),
        Message(role, (ToolResult.success("c2", "b"),)),
    )
    assert list(messages.merged_per_role()) == list(messages)


def test_tool_messages_are_never_merged_whatever_they_hold() -> None:
    """A decoder may have found nothing but text in them."""
    messages = Messages(
        make_message(Role.TOOL, (Text("a"),)), make_message(Role.TOOL, (Text("b"),))
    )
    assert list(messages.merged_per_role()) == list(messages)


def test_speakers_of_different_names_stay_apart() -> None:
    """Messages of different participants are not merged."""
    messages = Messages(Message.user("a", name="Ann"), Message.user("b", name="Ben"))
    assert messages.merged_per_role() == messages


@pytest.mark.parametrize("text", [
    Text("a", (Citation(kind="url"),)),
    Text("a", signature="sig"),
    Text("a", cache=CacheHint()),
    Text("a").with_field("note", "x"),
], ids=["citations", "signature", "cache", "own field"])  # fmt: skip
def test_texts_that_carry_more_stay_apart(text: Text) -> None:
    """The extra data would be lost, or wrong for the longer text."""
    messages = Messages(Message.assistant(text), Message.assistant("b"))
    assert list(messages.merged_per_role()) == list(messages)


def test_usage_adds_up_and_the_last_finish_counts() -> None:
    """As if it had been one message; the origin stays where both have the same."""
    here, there = Origin(dialect="here"), Origin(dialect="there")
    one = Message.assistant("a", usage=Usage(1, 2), finish=FinishReason.LENGTH, origin=here)
    other = Message.assistant(tool_calls=[CALL], usage=Usage(3, 4), finish=FinishReason.TOOL_CALLS)
    (same,) = Messages(one, other.replace(origin=here)).merged_per_role()
    assert (same.usage, same.finish, same.origin) == (Usage(4, 6), FinishReason.TOOL_CALLS, here)
    (mixed,) = Messages(one, other.replace(origin=there, usage=None)).merged_per_role()
    assert (mixed.usage, mixed.origin) == (Usage(1, 2), None)
    assert mixed.origin_of(mixed.tool_calls[0]) == there


_spoken = st.one_of(
    st.builds(Message.user, some.texts),
    st.builds(Message.assistant, some.texts),
    st.builds(
        lambda text, call: Message.assistant(text, tool_calls=[call]), some.texts, some.tool_calls
    ),
    st.builds(lambda text: Message.user(text, IMAGE), some.texts),
    st.builds(lambda result: Message(Role.TOOL, (result,)), some.tool_results),
)


@given(st.lists(_spoken, max_size=8).map(Messages.of))
def test_merging_loses_and_reorders_nothing_that_is_said(messages: Messages) -> None:
    """Calls, results and media are all there in order, and so is each text that says something."""
    merged = messages.merged_per_role("|")
    for kind in (ToolCall, ToolResult, Image):
        assert [p for p in merged.parts if isinstance(p, kind)] == [
            p for p in messages.parts if isinstance(p, kind)
        ]
    for role in Role:
        said = [m.text for m in messages.for_roles(role) if m.text]
        assert "|".join(m.text for m in merged.for_roles(role) if m.text) == "|".join(said)
    assert merged.merged_per_role("|") == merged


@given(some.conversations)
def test_merging_is_stable_on_anything(messages: Messages) -> None:
    """Merging twice is merging once; ids are those of some of the messages, in order."""
    merged = messages.merged_per_role()
    assert merged.merged_per_role() == merged
    ids = iter(messages.map(lambda message: message.id))
    assert all(message.id in ids for message in merged)


# --- the results of a round


def results(*ids: str) -> tuple[ToolResult, ...]:
    """Results for these calls."""
    return tuple(ToolResult.success(id_, id_.upper()) for id_ in ids)


def test_the_results_of_a_round_become_one_message() -> None:
    """With the first one's id and everybody's metadata; rounds stay apart."""
    messages = Messages(
        Message.assistant(tool_calls=[CALL, OTHER]),
        Message.tool("c1", "a", id="m1", metadata={"x": 1, "y": 1}).with_extra("p", 1),
        Message.tool("c2", "b", id="m2", metadata={"y": 2}).with_extra("q", 2),
        Message.assistant("so"),
        Message.tool("c3", "c"),
    )
    consolidated = messages.consolidated()
    assert consolidated.map(lambda message: message.kind) == [
        "tool_call", "tool_result", "assistant", "tool_result",
    ]  # fmt: skip
    joined = consolidated[1]
    assert [result.call_id for result in joined.tool_results] == ["c1", "c2"]
    assert (joined.id, joined.metadata) == ("m1", {"x": 1, "y": 2})
    assert joined.extras == {"canonical": {"p": 1, "q": 2}}
    assert consolidated[3] is messages[4]


def test_each_result_gets_a_message_of_its_own() -> None:
    """The first keeps the id, the metadata and all else; the others are new."""
    message = Message.tool(*results("c1", "c2", "c3"), id="m1", metadata={"x": 1}, usage=Usage(1))
    split = Messages(message.with_extra("p", 1)).split_results()
    assert split.map(lambda each: each.tool_call_id) == ["c1", "c2", "c3"]
    assert (split[0].id, split[0].metadata, split[0].usage) == ("m1", {"x": 1}, Usage(1))
    assert split[0].extra("p") == 1
    assert len({each.id for each in split}) == 3
    assert not split[1].metadata


def test_a_users_text_beside_results_follows_them() -> None:
    """Anthropic's form becomes a tool message each, and the user's message."""
    beside = Message.user(*results("c1", "c2"), "and now?", IMAGE, id="m1", name="Ann")
    split = Messages(beside).split_results()
    assert split.map(lambda each: each.role) == [Role.TOOL, Role.TOOL, Role.USER]
    assert split[2].parts == (Text("and now?"), IMAGE)
    assert (split[0].id, split[0].name, split[2].name) == ("m1", None, "Ann")


def test_messages_without_several_results_are_left_alone() -> None:
    """The very same objects."""
    messages = Messages(
        Message.user("a"), Message.assistant(Thinking("hm"), "b"), Message.tool("c1", "c")
    )
    assert all(a is b for a, b in zip(messages, messages.split_results(), strict=True))
    assert all(a is b for a, b in zip(messages, messages.consolidated(), strict=True))


def test_moved_results_remember_their_origin() -> None:
    """Each keeps the one of the message that it came in."""
    here, there = Origin(dialect="here"), Origin(dialect="there")
    messages = Messages(Message.tool("c1", "a", origin=here), Message.tool("c2", "b", origin=there))
    (joined,) = messages.consolidated()
    assert [joined.origin_of(part) for part in joined.parts] == [here, there]
    assert [m.origin_of(m.parts[0]) for m in Messages(joined).split_results()] == [here, there]


def answered(messages: Messages) -> list[Any]:
    """All results with the ids of their calls, in order."""
    return [(part.call_id, part) for message in messages for part in message.tool_results]


_rounds = st.lists(
    st.one_of(
        st.builds(
            lambda parts: Message(Role.TOOL, tuple(parts)),
            st.lists(some.tool_results, min_size=1, max_size=3),
        ),
        st.builds(Message.user, some.texts),
        st.builds(Message.assistant, some.texts),
    ),
    max_size=6,
).map(Messages.of)


@given(_rounds)
def test_consolidating_and_splitting_undo_each_other(messages: Messages) -> None:
    """Either way round, as far as what is said goes; the results stay in order."""
    split, whole = messages.split_results(), messages.consolidated()
    assert answered(split) == answered(whole) == answered(messages)
    assert whole.split_results() == split
    assert split.consolidated() == whole
    assert split.split_results() == split
    assert whole.consolidated() == whole


@given(some.conversations)
def test_no_part_is_lost_on_anything(messages: Messages) -> None:
    """Whatever the messages hold: results first, all else after them."""
    split = messages.split_results()
    assert answered(split) == answered(messages)
    assert len(split.parts) == len(messages.parts) == len(messages.consolidated().parts)
    assert all(len(message.tool_results) <= 1 for message in split)
    assert messages.consolidated().parts == messages.parts
