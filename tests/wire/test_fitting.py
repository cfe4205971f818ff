"""Whatever happened to a conversation, what goes out is one that the target takes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    FinishReason,
    Message,
    Request,
    Role,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from dragoman.model.parts import Origin, Thinking
from dragoman.model.requests import ThinkingConfig
from dragoman.model.tools import ToolChoice
from dragoman.wire.fitting import fitted
from dragoman.wire.fitting.pairs import CUT_OFF, UNKNOWN
from dragoman.wire.target import Target

STRICT = Target(
    dialect="strict",
    tool_id=r"[A-Za-z0-9_-]+",
    tool_id_length=40,
    has_unique_tool_ids=True,
    groups_results=True,
    refuses_blank_text=True,
    starts_with_user=True,
)
NINE = Target(dialect="nine", tool_id=r"[A-Za-z0-9]{9}", tool_id_length=9)


def call(call_id: str, name: str = "f") -> ToolCall:
    """A call off a wire: any id, any name."""
    return ToolCall(call_id, name, raw="{}")


def asked(*messages: Message) -> Request:
    """A request with these messages."""
    return Request(model="m", messages=messages)


def test_what_the_target_takes_is_not_touched() -> None:
    """A conversation in order goes through as the same object, without losses."""
    request = asked(
        Message.user("a"),
        Message.assistant(tool_calls=[call("1"), call("2")]),
        Message.tool(ToolResult.success("1", "x"), ToolResult.success("2", "y")),
        Message.assistant("b"),
    )
    done = fitted(request, STRICT)
    assert done.request is request
    assert done.losses == ()


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    """The outcome is unknown, and that is what the model is told (I9)."""
    done = fitted(asked(Message.user("a"), Message.assistant(tool_calls=[call("1")])), STRICT)
    result = done.request.messages[-1].tool_results[0]
    assert (result.call_id, result.content, result.is_error) == ("1", UNKNOWN, True)
    assert done.losses == ()


def test_a_call_that_was_cut_off_is_told_as_such() -> None:
    """A call that the token cap cut was not run, and its result says that (I7)."""
    cut = Message.assistant(tool_calls=[call("1")]).replace(finish=FinishReason.LENGTH)
    done = fitted(asked(Message.user("a"), cut, Message.user("go on")), STRICT)
    assert done.request.messages[2].tool_results[0].content == CUT_OFF
    assert done.request.messages[3].text == "go on"


def test_a_result_without_a_call_goes_with_a_loss() -> None:
    """An orphaned result is left out and named; the user's words beside it stay."""
    mixed = Message(Role.USER, (ToolResult("gone", "x"), Text("and this?")))
    done = fitted(asked(Message.user("a"), Message.assistant("b"), mixed), STRICT)
    assert [loss.path for loss in done.losses] == ["messages[2].parts[0]"]
    assert [message.text for message in done.request.messages] == ["a", "b", "and this?"]


def test_late_results_move_to_their_calls() -> None:
    """A result that came after the user went on stands with its call again (I8)."""
    done = fitted(
        asked(
            Message.user("a"),
            Message.assistant(tool_calls=[call("1")]),
            Message.user("hurry"),
            Message.tool("1", "x"),
        ),
        STRICT,
    )
    kinds = [message.kind for message in done.request.messages]
    assert kinds == ["user", "tool_call", "tool_result", "user"]
    assert done.losses == ()


def test_results_of_a_round_are_grouped_where_the_target_wants_it() -> None:
    """Results in messages of their own become one message for a target that wants one (W40)."""
    request = asked(
        Message.user("a"),
        Message.assistant(tool_calls=[call("1"), call("2")]),
        Message.tool("1", "x"),
        Message.tool("2", "y"),
    )
    assert len(fitted(request, STRICT).request.messages) == 3
    assert fitted(request, NINE.replace(tool_id=".*")).request is request


def test_results_come_before_the_user_s_own_words() -> None:
    """Where results and words share a message, the results come first for such a target (W41)."""
    late = Message(Role.USER, (Text("here:"), ToolResult("1", "x")))
    done = fitted(asked(Message.user("a"), Message.assistant(tool_calls=[call("1")]), late), STRICT)
    kinds = [message.kind for message in done.request.messages]
    assert kinds == ["user", "tool_call", "tool_result", "user"]


def test_ids_are_projected_alike_for_call_and_result() -> None:
    """An id that the target refuses becomes the same other id on both sides, each time (I4)."""
    request = asked(
        Message.user("a"),
        Message.assistant(tool_calls=[call("functions.f:0"), call("x" * 90)]),
        Message.tool(ToolResult.success("functions.f:0", "1"), ToolResult.success("x" * 90, "2")),
    )
    for target in (STRICT, NINE):
        done = fitted(request, target).request
        ids = [c.id for c in done.messages[1].tool_calls]
        assert [r.call_id for r in done.messages[2].tool_results] == ids
        assert len(set(ids)) == 2
        assert all(target.accepts_id(found) for found in ids)
        assert fitted(request, target).request == done
        assert [c.id for c in fitted(request, target).request.messages[1].tool_calls] == ids


def test_an_id_used_again_is_told_apart() -> None:
    """Name-derived ids that recur in a later turn are unique for a target that wants it (W43)."""
    turn = (Message.user("a"), Message.assistant(tool_calls=[call("f")]), Message.tool("f", "x"))
    done = fitted(asked(*turn, *turn), STRICT).request
    first, second = (m.tool_calls[0].id for m in done.messages if m.tool_calls)
    assert first == "f"
    assert second != "f"
    assert done.messages[-1].tool_results[0].call_id == second


def test_calls_that_share_an_id_in_one_message_keep_their_results() -> None:
    """The first result is the first call's, the second the second's; none is lost (I5)."""
    done = fitted(
        asked(
            Message.user("a"),
            Message.assistant(tool_calls=[call("same"), call("same")]),
            Message.tool("same", "one"),
            Message.tool("same", "two"),
        ),
        STRICT,
    )
    ids = [c.id for c in done.request.messages[1].tool_calls]
    results = done.request.messages[2].tool_results
    assert len(set(ids)) == 2
    assert [(r.call_id, r.content) for r in results] == list(zip(ids, ("one", "two"), strict=True))
    assert done.losses == ()


def test_names_are_aliased_and_restored() -> None:
    """A name with dots is said otherwise to the target, everywhere, and comes back as it was."""
    name = "mcp.server/search tool"
    tool = ToolDefinition(name, parameters={"type": "object"}, origin=Origin(dialect="x"))
    request = Request(
        model="m",
        messages=(
            Message.user("a"),
            Message.assistant(tool_calls=[call("1", name)]),
            Message.tool("1", "x", tool_name=name),
        ),
        tools=(tool,),
        tool_choice=ToolChoice("named", (name,)),
    )
    done = fitted(request, STRICT)
    alias = done.request.messages[1].tool_calls[0].name
    assert STRICT.accepts_name(alias)
    assert done.request.tool_choice is not None
    assert [t.name for t in done.request.tools] == [alias] == list(done.request.tool_choice.names)
    assert done.request.messages[2].tool_results[0].tool_name == alias
    assert done.context.names == {alias: name}


def test_blank_texts_and_a_missing_opening_are_put_right() -> None:
    """A target that refuses blanks and wants the user first gets neither (W46, W47)."""
    done = fitted(
        asked(Message.assistant(" "), Message.assistant("b", " "), Message.user("")), STRICT
    )
    messages = done.request.messages
    assert messages[0].role is Role.USER
    assert all(m.text.strip() for m in messages)
    assert [loss.reason for loss in done.losses] == ["an empty answer"]


def test_instructions_alone_get_a_message() -> None:
    """A target that wants at least one message gets one that says that it begins (W47)."""
    request = asked(Message.system("Be brief."))
    assert fitted(request, STRICT).request is request
    done = fitted(request, STRICT.replace(needs_message=True)).request
    assert [message.role for message in done.messages] == [Role.SYSTEM, Role.USER]


def test_thinking_pauses_where_a_turn_began_without_it() -> None:
    """A tool turn that another model began can't go on thinking here; the next one can (W51)."""
    target = STRICT.replace(thinking_begins_turns=True)
    turn = (
        Message.user("a"),
        Message.assistant(tool_calls=[call("1")]),
        Message.tool("1", "x"),
    )
    on = ThinkingConfig(enabled=True, budget=2000)
    done = fitted(Request(messages=turn, thinking=on), target)
    assert done.request.thinking == ThinkingConfig(enabled=False)
    assert [loss.path for loss in done.losses] == ["thinking"]
    signed = Message.assistant(Thinking("hm", signature="s"), tool_calls=[call("1")])
    own = Request(messages=(turn[0], signed, turn[2]), thinking=on)
    assert fitted(own, target).request is own
    after = Request(messages=(*turn, Message.assistant("b"), Message.user("c")), thinking=on)
    assert fitted(after, target).request is after


def test_thinking_goes_back_to_the_model_that_made_it() -> None:
    """Sealed thinking of another model is left out and named; the same model's stays (W54)."""
    origin = Origin(dialect="strict", model="m-1-20260101")
    sealed = Message.assistant(Thinking("hm", signature="s", origin=origin), "b")
    request = asked(Message.user("a"), sealed, Message.user("c"))
    assert fitted(request, STRICT.replace(model="m-1")).request is request
    assert fitted(request, STRICT).request is request
    done = fitted(request, STRICT.replace(model="m-2"))
    assert [part.__class__ for part in done.request.messages[1].parts] == [Text]
    assert [loss.path for loss in done.losses] == ["messages[1].parts[0]"]


def test_a_target_that_takes_no_thinking_gets_none() -> None:
    """All thinking is left out and named; what was said stays (W110)."""
    request = asked(Message.user("a"), Message.assistant(Thinking("hm"), "b"), Message.user("c"))
    done = fitted(request, STRICT.replace(thinking_back="never"))
    assert [part.__class__ for part in done.request.messages[1].parts] == [Text]
    assert [loss.path for loss in done.losses] == ["messages[1].parts[0]"]


def test_a_target_that_wants_thinking_everywhere_gets_it() -> None:
    """Every answer has thinking, anyone's or an empty one, and nothing is changed twice (C2)."""
    foreign = Message.assistant(Thinking("hm", signature="s", origin=Origin(dialect="other")), "b")
    request = asked(Message.user("a"), foreign, Message.user("c"), Message.assistant("d"),
                    Message.user("e"))  # fmt: skip
    target = STRICT.replace(thinking_back="all")
    done = fitted(request, target)
    assert [m.thinking for m in done.request.messages if m.role is Role.ASSISTANT] == ["hm", ""]
    assert all(
        isinstance(m.parts[0], Thinking) for m in done.request.messages if m.kind == "assistant"
    )
    assert done.losses == ()
    assert fitted(done.request, target).request is done.request


_parts = st.one_of(
    st.sampled_from(["", " ", "words"]).map(Text),
    st.sampled_from(["1", "2", "a b", "f:0"]).map(call),
    st.sampled_from(["1", "2", "a b", "f:0"]).map(lambda i: ToolResult(i, "r")),
)
_messages = st.lists(
    st.builds(
        lambda role, parts: Message(
            role,
            tuple(
                p
                for p in parts
                if isinstance(p, Text) or isinstance(p, ToolCall) == (role is Role.ASSISTANT)
            ),
        ),
        st.sampled_from([Role.USER, Role.ASSISTANT, Role.TOOL]),
        st.lists(_parts, max_size=4),
    ),
    max_size=8,
)


@given(messages=_messages)
def test_fitting_any_history_gives_one_that_needs_no_fitting(messages: list[Message]) -> None:
    """Fitting is idempotent, pairs every call once, and never loses what a user said (I11)."""
    done = fitted(asked(*messages), STRICT)
    again = fitted(done.request, STRICT)
    assert again.request == done.request
    assert again.losses == ()
    calls = [c.id for m in done.request.messages for c in m.tool_calls]
    results = [r.call_id for m in done.request.messages for r in m.tool_results]
    assert sorted(calls) == sorted(results)
    assert len(set(calls)) == len(calls)
    said = "".join(
        p.text for m in messages for p in m.parts if m.role is Role.USER and isinstance(p, Text)
    )
    kept = "".join(m.text for m in done.request.messages)
    assert said.count("words") <= kept.count("words")
