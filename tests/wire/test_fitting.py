"""Fitting makes any conversation acceptable to its target."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import (
    File,
    FinishReason,
    Image,
    Message,
    Output,
    Request,
    Role,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from dragoman.model import CacheHint, Sampling
from dragoman.model.messages import make_message
from dragoman.model.parts import Origin, Thinking
from dragoman.model.requests import ThinkingConfig
from dragoman.model.tools import ToolChoice, make_call, make_definition
from dragoman.providers.translation import target_of
from dragoman.wire.dialect import dialect, dialects
from dragoman.wire.fitting import fitted
from dragoman.wire.fitting.pairing import CUT_OFF, UNKNOWN
from dragoman.wire.flags import IdFlags, TurnFlags
from dragoman.wire.target import Target

STRICT = Target(
    dialect="strict",
    ids=IdFlags(pattern=r"[A-Za-z0-9_-]+", max_length=40, must_be_unique=True),
    turns=TurnFlags(groups_results=True, refuses_blank_text=True, starts_with_user=True),
)
NINE = Target(dialect="nine", ids=IdFlags(pattern=r"[A-Za-z0-9]{9}", max_length=9))


def call(call_id: str, name: str = "f") -> ToolCall:
    """A tool call as decoded from a wire, with any id and name."""
    return make_call(call_id, name, raw="{}")


def asked(*messages: Message) -> Request:
    """A request with these messages."""
    return Request(model="m", messages=messages)


@pytest.mark.parametrize("keeps_own", [False, True])
def test_a_conversation_the_target_accepts_is_unchanged(keeps_own: bool) -> None:
    """A conversation that needs no repair is returned as the same object, without losses."""
    request = asked(
        Message.user("a"),
        Message.assistant(tool_calls=[call("1"), call("2")]),
        Message.tool(ToolResult.success("1", "x"), ToolResult.success("2", "y")),
        Message.assistant("b"),
    )
    done = fitted(request, msgspec.structs.replace(STRICT, keeps_own_messages=keeps_own))
    assert done.request is request
    assert done.losses == ()


def test_a_call_without_a_result_gets_a_placeholder_result() -> None:
    """A call without a result gets one that says that the outcome is unknown (I9)."""
    done = fitted(asked(Message.user("a"), Message.assistant(tool_calls=[call("1")])), STRICT)
    result = done.request.messages[-1].tool_results[0]
    assert (result.call_id, result.content, result.is_error) == ("1", UNKNOWN, True)
    assert done.losses == ()


def test_a_truncated_call_gets_a_placeholder_result() -> None:
    """A call cut off by the token limit gets a result saying that it was not run (I7)."""
    cut = Message.assistant(tool_calls=[call("1")]).replace(finish=FinishReason.LENGTH)
    done = fitted(asked(Message.user("a"), cut, Message.user("go on")), STRICT)
    assert done.request.messages[2].tool_results[0].content == CUT_OFF
    assert done.request.messages[3].text == "go on"


def test_a_result_without_a_call_becomes_text_with_a_loss() -> None:
    """An orphaned result is sent as text with a loss, and the user's text beside it is kept."""
    mixed = Message(Role.USER, (ToolResult("gone", "x"), Text("and this?")))
    done = fitted(asked(Message.user("a"), Message.assistant("b"), mixed), STRICT)
    assert [loss.path for loss in done.losses] == ["messages[2].parts[0]"]
    first, second, third = (message.text for message in done.request.messages)
    assert (first, second) == ("a", "b")
    assert third.endswith("\nx\nand this?")


def test_late_results_move_to_their_calls() -> None:
    """A result that came after later user messages is moved behind its call (I8)."""
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


def test_results_of_a_round_are_grouped_if_the_target_requires_it() -> None:
    """Results in separate messages are merged into one if the target requires that (W40)."""
    request = asked(
        Message.user("a"),
        Message.assistant(tool_calls=[call("1"), call("2")]),
        Message.tool("1", "x"),
        Message.tool("2", "y"),
    )
    assert len(fitted(request, STRICT).request.messages) == 3
    assert fitted(request, NINE.with_flags({"ids.pattern": ".*"})).request is request


def test_results_come_before_the_user_s_text() -> None:
    """In a message with both, results are moved before the text for such targets (W41)."""
    late = Message(Role.USER, (Text("here:"), ToolResult("1", "x")))
    done = fitted(asked(Message.user("a"), Message.assistant(tool_calls=[call("1")]), late), STRICT)
    kinds = [message.kind for message in done.request.messages]
    assert kinds == ["user", "tool_call", "tool_result", "user"]


def test_call_and_result_get_the_same_new_id() -> None:
    """A call id that the target refuses is replaced by the same new id in call and result (I4)."""
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
        assert all(target.ids.accepts(found) for found in ids)
        assert fitted(request, target).request == done
        assert [c.id for c in fitted(request, target).request.messages[1].tool_calls] == ids


def test_reused_call_ids_become_unique() -> None:
    """Call ids that recur in a later turn are made unique if the target requires it (W43)."""
    turn = (Message.user("a"), Message.assistant(tool_calls=[call("f")]), Message.tool("f", "x"))
    done = fitted(asked(*turn, *turn), STRICT).request
    first, second = (m.tool_calls[0].id for m in done.messages if m.tool_calls)
    assert first == "f"
    assert second != "f"
    assert done.messages[-1].tool_results[0].call_id == second


def test_calls_that_share_an_id_in_one_message_keep_their_results() -> None:
    """Calls with the same id in one message are matched with their results in order (I5)."""
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


@pytest.mark.parametrize("name", ["9lives", "9" * 200, "4 ever", "-"])
def test_aliases_start_with_an_allowed_character(name: str) -> None:
    """Names and aliases sent to Gemini never start with a digit (W89)."""
    named = make_definition(name, "It does.", {"type": "object", "properties": {}}, strict=False)
    request = Request(model="m", messages=(Message.user("Hi"),), tools=(named,))
    encoded = dragoman.dialect("gemini").encode_request(request)
    assert [v.rule for v in dragoman.dialect("gemini").check(encoded.body, path=encoded.path)] == []
    assert [*encoded.context.names.values()] == [name]


def test_names_are_aliased_and_restored() -> None:
    """A tool name with dots is aliased everywhere in the request, and restored afterwards."""
    name = "mcp.server/search tool"
    tool = make_definition(name, parameters={"type": "object"}, origin=Origin(dialect="x"))
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
    assert STRICT.tools.accepts_name(alias)
    assert done.request.tool_choice is not None
    assert [t.name for t in done.request.tools] == [alias] == list(done.request.tool_choice.names)
    assert done.request.messages[2].tool_results[0].tool_name == alias
    assert done.context.names == {alias: name}


def test_blank_texts_are_removed_and_a_first_user_message_is_added() -> None:
    """Blank texts are removed, and a user message comes first, if required (W46, W47)."""
    done = fitted(
        asked(Message.assistant(" "), Message.assistant("b", " "), Message.user("")), STRICT
    )
    messages = done.request.messages
    assert messages[0].role is Role.USER
    assert all(m.text.strip() for m in messages)
    assert done.losses == ()
    assert [(repair.action, repair.reason) for repair in done.repairs] == [
        ("dropped", "empty assistant message"), ("dropped", "blank text"),
        ("added", "placeholder for a blank text"),
        ("added", "the first message must be a user message"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", dialects())
def test_a_tool_message_without_results_is_not_sent(name: str) -> None:
    """A tool message without results (such as an agent's note of begun calls) is left out."""
    calls = Message.assistant(tool_calls=[call("1"), call("2")])
    noted = make_message(Role.TOOL).with_metadata("begun", ["1", "2"])
    results = Message.tool(ToolResult("1", "a", tool_name="f"), ToolResult("2", "b", tool_name="f"))
    with_note = dialect(name).encode_request(asked(Message.user("Go"), calls, noted, results))
    without = dialect(name).encode_request(asked(Message.user("Go"), calls, results))
    assert with_note.body == without.body
    reasons = [repair.reason for repair in with_note.repairs if repair not in without.repairs]
    assert reasons == ["tool message without a result"]


def test_instructions_alone_get_a_user_message() -> None:
    """A request of instructions only gets a user message if the target needs one (W47)."""
    request = asked(Message.system("Be brief."))
    assert fitted(request, STRICT).request is request
    done = fitted(request, STRICT.with_flags({"turns.needs_message": True})).request
    assert [message.role for message in done.messages] == [Role.SYSTEM, Role.USER]


def test_thinking_is_disabled_in_a_tool_turn_that_began_without_it() -> None:
    """Thinking is off for a tool turn that another model began, and on for the next (W51)."""
    target = STRICT.with_flags({"thinking.begins_turns": True})
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


def test_sealed_thinking_is_sent_only_to_its_own_model() -> None:
    """Sealed thinking of another model is left out with a loss; the same model's is kept (W54)."""
    origin = Origin(dialect="strict", model="m-1-20260101")
    sealed = Message.assistant(Thinking("hm", signature="s", origin=origin), "b")
    request = asked(Message.user("a"), sealed, Message.user("c"))
    assert fitted(request, STRICT.replace(model="m-1")).request is request
    assert fitted(request, STRICT).request is request
    done = fitted(request, STRICT.replace(model="m-2"))
    assert [part.__class__ for part in done.request.messages[1].parts] == [Text]
    assert [loss.path for loss in done.losses] == ["messages[1].parts[0]"]


def test_thinking_is_left_out_if_the_target_refuses_it() -> None:
    """All thinking is left out with losses, and the other content is kept (W110)."""
    request = asked(Message.user("a"), Message.assistant(Thinking("hm"), "b"), Message.user("c"))
    done = fitted(request, STRICT.with_flags({"thinking.sent_back": "never"}))
    assert [part.__class__ for part in done.request.messages[1].parts] == [Text]
    assert [loss.path for loss in done.losses] == ["messages[1].parts[0]"]


def test_thinking_is_added_if_the_target_requires_it() -> None:
    """Every answer gets thinking, kept or empty, and fitting is idempotent (C2)."""
    foreign = Message.assistant(Thinking("hm", signature="s", origin=Origin(dialect="other")), "b")
    request = asked(Message.user("a"), foreign, Message.user("c"),
                    Message.assistant("d", tool_calls=[call("1")]),
                    Message.tool("1", "x"))  # fmt: skip
    target = STRICT.with_flags({"thinking.sent_back": "all"})
    done = fitted(request, target)
    answers = [m for m in done.request.messages if m.role is Role.ASSISTANT]
    assert [m.thinking for m in answers] == ["hm", ""]
    assert all(isinstance(m.parts[0], Thinking) for m in answers)
    assert done.losses == ()
    assert fitted(done.request, target).request is done.request


def test_no_thinking_is_added_if_it_is_not_required() -> None:
    """Without calls, or with thinking off, answers are unchanged (C2)."""
    target = STRICT.with_flags({"thinking.sent_back": "all"})
    talk = asked(Message.user("a"), Message.assistant("b"), Message.user("c"))
    called = asked(Message.user("a"), Message.assistant("b", tool_calls=[call("1")]),
                   Message.tool("1", "x"))  # fmt: skip
    for request in (talk, called.replace(thinking=ThinkingConfig(enabled=False))):
        assert fitted(request, target).request is request


# --- differences between hosts and models

ANY = Target(dialect="any")


def told(thinking: ThinkingConfig, target: Target) -> tuple[ThinkingConfig | None, list[str]]:
    """The thinking settings after fitting, and their losses."""
    done = fitted(asked(Message.user("a")).replace(thinking=thinking), target)
    return done.request.thinking, [loss.path for loss in done.losses]


@pytest.mark.parametrize(
    ("form", "given", "expected", "lost"),
    [
        ("never", {"effort": "high"}, None, ["thinking"]),
        ("never", {"enabled": False}, None, []),
        ("never", {"effort": "none"}, None, []),
        ("effort", {"effort": "high"}, {"effort": "high"}, []),
        ("effort", {"enabled": True}, {"effort": "medium"}, []),
        ("effort", {"enabled": False}, {"effort": "none"}, []),
        ("effort", {"budget": 16000}, {"effort": "high"}, ["thinking.budget"]),
        ("switch", {"enabled": True}, {"enabled": True}, []),
        ("switch", {"effort": "none"}, {"enabled": False}, []),
        ("switch", {"budget": 1500}, {"enabled": True, "effort": "minimal"}, ["thinking.budget"]),
        ("budget", {"budget": 2000}, {"budget": 2000}, []),
        ("budget", {"effort": "high"}, {"enabled": True, "budget": 16384, "effort": "high"},
         ["thinking.effort"]),
        ("budget", {"enabled": True}, {"enabled": True, "budget": 8192}, []),
        ("budget", {"effort": "none"}, {"enabled": False}, []),
        ("adaptive", {"enabled": True, "effort": "low"}, {"enabled": True, "effort": "low"}, []),
        ("adaptive", {"budget": 2000}, {"enabled": True, "effort": "low"}, ["thinking.budget"]),
        ("adaptive", {"effort": "none"}, {"enabled": False}, []),
        ("either", {"effort": "none"}, {"enabled": False}, []),
        ("either", {"effort": "low", "budget": 9}, {"effort": "low", "budget": 9}, []),
        ("reasoning", {"budget": 2000}, {"budget": 2000}, []),
        ("any", {"budget": 2000, "effort": "odd"}, {"budget": 2000, "effort": "odd"}, []),
    ],
)  # fmt: skip
def test_thinking_settings_are_translated_for_the_target(
    form: Any, given: dict[str, Any], expected: dict[str, Any] | None, lost: list[str]
) -> None:
    """Effort, budget and on/off switch are translated into each other, as near as possible."""
    found, losses = told(ThinkingConfig(**given), ANY.with_flags({"thinking.form": form}))
    assert found == (None if expected is None else ThinkingConfig(**expected))
    assert losses == lost


@pytest.mark.parametrize(
    ("known", "asked_for", "expected"),
    [(("low", "high"), "low", "low"), (("low", "high"), "max", "high"),
     (("low", "high"), "medium", "high"), (("low", "high"), "none", "low"),
     (("none", "high"), "low", "high"),
     (("low", "high"), "odd", None), ((), "low", None)],
)  # fmt: skip
def test_the_nearest_supported_effort_is_used(
    known: tuple[str, ...], asked_for: str, expected: str | None
) -> None:
    """The nearest one is a repair, thinking in spite of `none` a loss; it is never turned off."""
    target = ANY.with_flags({"thinking.efforts": known, "thinking.form": "effort"})
    found, losses = told(ThinkingConfig(effort=asked_for), target)
    assert found == ThinkingConfig(effort=expected)
    is_near = expected is not None and asked_for != "none"
    assert losses == ([] if is_near else ["thinking.effort"])


@pytest.mark.parametrize(
    ("given", "always", "expected", "lost"),
    [
        ({"budget": 500}, False, {"budget": 500}, []),
        ({"budget": 5}, False, {"budget": 128}, ["thinking.budget"]),
        ({"budget": 5000}, False, {"budget": 1000}, ["thinking.budget"]),
        ({"budget": 0}, False, {"budget": 0}, []),
        ({"enabled": False}, False, {"enabled": False}, []),
        ({"budget": 0}, True, {"budget": 128}, ["thinking"]),
        ({"effort": "none"}, True, {"budget": 128}, ["thinking"]),
        ({"budget": 500}, True, {"budget": 500}, []),
        ({"visible": True}, True, {"visible": True}, []),
    ],
)
def test_budgets_are_clamped_to_the_model_s_range(
    given: dict[str, Any], always: bool, expected: dict[str, Any], lost: list[str]
) -> None:
    """Budgets are clamped, and never zero for a model that can't turn thinking off."""
    target = ANY.with_flags(
        {
            "thinking.form": "budget",
            "thinking.budget_range": (128, 1000),
            "thinking.is_always_on": always,
        }
    )
    assert told(ThinkingConfig(**given), target) == (ThinkingConfig(**expected), lost)


def test_no_effort_is_sent_to_models_that_always_think() -> None:
    """If only "on" was requested, no effort is sent."""
    target = ANY.with_flags(
        {
            "thinking.form": "effort",
            "thinking.is_on_by_default": True,
            "thinking.efforts": ("low", "high"),
        }
    )
    found = told(ThinkingConfig(enabled=True, visible=True), target)
    assert found == (ThinkingConfig(visible=True), [])


def test_refused_sampling_settings_are_left_out() -> None:
    """Default values may be sent; other refused sampling settings are losses (W12)."""
    target = ANY.with_flags(
        {
            "sampling.refused": ("temperature", "choices", "stop", "top_k"),
            "sampling.refused_while_thinking": ("top_p",),
        }
    )
    usual = Sampling(temperature=1, choices=1, top_p=0.5, seed=7)
    assert fitted(asked(Message.user("a")).replace(sampling=usual), target).losses == ()
    drawn = Sampling(temperature=0.2, choices=2, stop=("x",), top_k=4, top_p=0.5, seed=7)
    done = fitted(asked(Message.user("a")).replace(sampling=drawn), target)
    assert done.request.sampling == Sampling(top_p=0.5, seed=7)
    assert {loss.path for loss in done.losses} == {
        "sampling.temperature", "sampling.choices", "sampling.stop", "sampling.top_k"
    }  # fmt: skip
    thinking = done.request.replace(thinking=ThinkingConfig(effort="low"))
    assert fitted(thinking, target).request.sampling == Sampling(seed=7)


@pytest.mark.parametrize(
    ("given", "kept", "lost"),
    [
        ({"temperature": 0.2, "top_p": 0.9}, {"temperature": 0.2}, ["sampling.top_p"]),
        ({"temperature": 0.2, "top_p": 1}, {"temperature": 0.2}, []),
        ({"temperature": 1, "top_p": 0.9}, {"top_p": 0.9}, []),
        ({"temperature": 0.2}, {"temperature": 0.2}, []),
        ({"top_p": 0.9}, {"top_p": 0.9}, []),
    ],
)
def test_temperature_and_top_p_are_not_both_sent(
    given: dict[str, Any], kept: dict[str, Any], lost: list[str]
) -> None:
    """If they exclude each other, the default one is dropped, or `top_p` with a loss (W59)."""
    request = asked(Message.user("a")).replace(sampling=Sampling(**given))
    assert fitted(request, ANY).request.sampling == request.sampling
    done = fitted(request, ANY.with_flags({"sampling.refuses_temperature_with_top_p": True}))
    assert done.request.sampling == Sampling(**kept)
    assert [loss.path for loss in done.losses] == lost


def test_unsupported_settings_are_left_out() -> None:
    """Unsupported response formats, strict tools and parallel calls are losses."""
    tool = ToolDefinition.create("now", "The time.")
    request = asked(Message.user("a")).replace(
        tools=(tool,),
        tool_choice=ToolChoice("required", parallel=False),
        output=Output(format="schema", schema={"type": "object"}),
    )
    target = ANY.with_flags(
        {
            "schemas.outputs": ("text", "json"),
            "schemas.takes_strict_tools": False,
            "tools.takes_parallel_choice": False,
        }
    )
    done = fitted(request, target)
    assert done.request.output == Output(format="json")
    assert done.request.tool_choice == ToolChoice("required")
    assert [tool.strict for tool in done.request.tools if isinstance(tool, ToolDefinition)] == [
        None
    ]
    assert [loss.path for loss in done.losses] == [
        "output.schema", "tools[0].strict", "tool_choice.parallel"
    ]  # fmt: skip
    assert fitted(request, target.with_flags({"schemas.outputs": ("text",)})).request.output is None


def test_a_forced_tool_choice_disables_thinking() -> None:
    """If the model can't do both, the tool choice wins (W58), even if thinking is the default."""
    target = ANY.with_flags(
        {
            "thinking.form": "switch",
            "thinking.allows_forced_tools": False,
            "thinking.is_on_by_default": True,
        }
    )
    off = ThinkingConfig(enabled=False)
    for config in (None, ThinkingConfig(enabled=True), ThinkingConfig(effort="low")):
        request = asked(Message.user("a")).replace(
            thinking=config,
            tools=(ToolDefinition.create("a", "A."),),
            tool_choice=ToolChoice("required"),
        )
        done = fitted(request, target)
        assert (done.request.thinking, len(done.losses)) == (off, 1)
        assert fitted(done.request, target).losses == ()
    free = request.replace(thinking=None, tool_choice=ToolChoice("auto"))
    assert fitted(free, target).request is free


def test_instructions_are_joined_in_a_first_message() -> None:
    """Instructions are joined, and moving later ones to the front is reported (W117)."""
    target = ANY.with_flags({"turns.system_place": "first"})
    request = asked(Message.system("a"), Message.system("b"), Message.user("c"),
                    Message.system("d")).replace(system=(Text("0"),))  # fmt: skip
    done = fitted(request, target)
    assert [(m.role, m.text) for m in done.request.messages] == [
        (Role.SYSTEM, "0\n\na\n\nb\n\nd"), (Role.USER, "c")
    ]  # fmt: skip
    assert done.request.system == ()
    assert [loss.path for loss in done.losses] == ["messages[3]"]
    assert fitted(done.request, target).request is done.request


def test_instructions_become_user_text() -> None:
    """A model without a system role gets instructions in the user's text (W117)."""
    target = ANY.with_flags({"turns.system_place": "nowhere"})
    done = fitted(
        asked(Message.system("a"), Message.user("b")).replace(system=(Text("0"),)), target
    )
    assert [(m.role, m.text) for m in done.request.messages] == [(Role.USER, "0\n\na\n\nb")]
    assert [loss.path for loss in done.losses] == ["messages[0]", "system"]
    begun = fitted(asked(Message.system("a"), Message.assistant("b")), target)
    assert [m.role for m in begun.request.messages] == [Role.USER, Role.ASSISTANT]


def test_roles_alternate() -> None:
    """Adjacent messages of one role are merged; developer may become system (W13, W117, C1)."""
    target = ANY.with_flags(
        {
            "turns.alternates_roles": True,
            "turns.takes_developer": False,
            "turns.answers_results": True,
        }
    )
    request = asked(
        Message.developer("0"), Message.user("a"), Message.user("b"),
        Message.assistant(tool_calls=[call("1"), call("2")]),
        Message.tool("1", "x"), Message.tool("2", "y"), Message.user("c"),
    )  # fmt: skip
    done = fitted(request, target)
    assert [m.role.value for m in done.request.messages] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "user"
    ]  # fmt: skip
    assert [p.text for p in done.request.messages[1].parts if isinstance(p, Text)] == ["a", "b"]
    assert done.losses == ()
    assert fitted(done.request, target).request is done.request


def test_user_text_beside_results_is_split_off() -> None:
    """Results and text of one user message are split, with an answer between them (C1)."""
    mixed = Message(Role.USER, (ToolResult("1", "x"), Text("and?")))
    request = asked(Message.user("a"), Message.assistant(tool_calls=[call("1")]), mixed)
    done = fitted(request, ANY.with_flags({"turns.answers_results": True}))
    assert [m.role.value for m in done.request.messages[2:]] == ["tool", "assistant", "user"]


@pytest.mark.parametrize(
    ("flags", "kept"),
    [({"media.kinds": ()}, []), ({"media.kinds": ("image",)}, ["data", "url"]),
     ({"media.takes_image_urls": False}, ["data", "file"])],
)  # fmt: skip
def test_unsupported_media_become_placeholder_text(flags: dict[str, Any], kept: list[str]) -> None:
    """In messages and results, unsupported media become text, each with a loss (W105)."""
    shown: dict[str, Any] = {
        "data": Image(data="aGk=", mime="image/png"),
        "url": Image(url="https://x"),
        "file": File(data="aGk=", mime="application/pdf"),
    }
    results = ToolResult("1", tuple(shown.values()))
    request = asked(
        Message.user(*shown.values()),
        Message.assistant(tool_calls=[call("1")]),
        Message(Role.TOOL, (results,)),
    )
    done = fitted(request, ANY.with_flags(flags))
    wanted = [shown[name] for name in kept]
    assert [p for p in done.request.messages[0].parts if not isinstance(p, Text)] == wanted
    inner = done.request.messages[2].tool_results[0].parts
    assert [p for p in inner if not isinstance(p, Text)] == wanted
    assert len(done.losses) == 2 * (3 - len(kept))


@pytest.mark.parametrize(
    ("prefill", "ends", "repaired"),
    [("free", "So ", 0), ("trimmed", "So", 1), ("refused", "user", 1)],
)
def test_assistant_prefill_is_adapted_to_the_target(prefill: Any, ends: str, repaired: int) -> None:
    """A prefilled answer is sent, sent without trailing whitespace, or dropped (W48)."""
    request = asked(Message.user("a"), Message.assistant("So "))
    done = fitted(request, ANY.with_flags({"turns.prefill": prefill}))
    last = done.request.messages[-1]
    assert ends in (last.text, last.role.value)
    assert [each.path.partition(".")[0] for each in done.repairs] == ["messages[1]"] * repaired


def test_excess_cache_hints_are_dropped_oldest_first() -> None:
    """Hints are counted over tools, instructions, messages and results (W60); TTLs too (W61)."""
    hint = CacheHint("1h")
    tool = ToolDefinition("f", "x", {"type": "object"}, cache=hint, origin=Origin(dialect="any"))
    request = asked(
        Message.user(Text("a", cache=hint)),
        Message.assistant(tool_calls=[call("1")]),
        Message(Role.TOOL, (ToolResult("1", (Text("x", cache=hint),), cache=hint),)),
    ).replace(tools=(tool,), system=(Text("0", cache=hint),))
    assert fitted(request, ANY.with_flags({"cache.max_hints": 5})).request is request
    done = fitted(request, ANY.with_flags({"cache.max_hints": 3}))
    assert done.request.tools[0].cache is None
    assert done.request.system[0].cache is None
    assert done.request.messages[0].parts[0].cache == hint
    assert [loss.path for loss in done.losses] == ["tools[0].cache", "system[0].cache"]
    short = fitted(request, ANY.with_flags({"cache.takes_ttl": False}))
    assert short.request.messages[2].tool_results[0].cache == CacheHint()
    assert len(short.losses) == 5


def test_tools_of_the_history_are_declared() -> None:
    """Undeclared tools of earlier calls are declared with tool choice "none" if needed (W63)."""
    request = asked(Message.user("a"), Message.assistant(tool_calls=[call("1", "ns.f")]),
                    Message.tool("1", "x"))  # fmt: skip
    done = fitted(
        request, ANY.with_flags({"tools.must_be_declared": True, "tools.name_pattern": r"[\s\S]*"})
    )
    assert [tool.name for tool in done.request.tools] == ["ns.f"]
    assert done.request.tool_choice == ToolChoice("none")
    assert fitted(request, ANY).request.tools == ()


_parts = st.one_of(
    st.sampled_from(["", " ", "words"]).map(Text),
    st.sampled_from(["1", "2", "a b", "f:0"]).map(call),
    st.sampled_from(["1", "2", "a b", "f:0"]).map(lambda i: ToolResult(i, "r")),
)
_messages = st.lists(
    st.builds(
        lambda role, parts: make_message(
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
    """Fitting is idempotent, answers every call once, and keeps all user text (I11)."""
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


def test_a_user_turn_is_added_before_a_first_call() -> None:
    """Adjacent assistant messages count as one, so a user turn is added before them (W77)."""
    call = make_call("call_1", "look", input={})
    said = (Message.assistant("Yes."), Message.assistant(tool_calls=[call]), Message.user("So?"))
    gemini = dragoman.dialect("gemini")
    encoded = gemini.encode_request(Request(model="m", messages=said))
    assert [each for each in gemini.check(encoded.body) if each.severity == "error"] == []
    assert encoded.body["contents"][0]["role"] == "user"


@pytest.mark.parametrize("name", dragoman.dialects())
def test_a_call_in_a_user_message_moves_to_the_assistant(name: str) -> None:
    """Such a call is moved with a report, and it gets a result."""
    call = make_call("call_1", "look", input={"a": 1})
    asked = make_message(Role.USER, (Text("Look:"), call))
    speaker = dragoman.dialect(name)
    encoded = speaker.encode_request(Request(model="m", messages=(asked, Message.user("So?"))))
    found = speaker.check(encoded.body)
    assert [each for each in found if each.severity == "error"] == []
    assert "look" in encoded.to_bytes().decode()
    moved = [each.path for each in encoded.repairs if each.rule == "shape"]
    assert moved == ["messages[0].parts[1]"]


def test_a_part_that_two_steps_changed_is_reported_where_it_was() -> None:
    """First its image is replaced, then a message before it is dropped, then it becomes text."""
    result = ToolResult("nobody", (Text("x"), Image(url="https://example.com/a.png")))
    messages = (
        Message.user("a"),
        make_message(Role.ASSISTANT, (Text(""),)),
        Message.user("b"),
        make_message(Role.TOOL, (result,)),
        Message.user("c"),
    )
    speaker = dialect("anthropic")
    target = speaker.target.with_flags({"media.takes_image_urls": False})
    done = speaker.encode_request(Request(model="m", messages=messages), target)
    assert [loss.path for loss in done.losses] == [
        "messages[3].parts[0].content[1]",
        "messages[3].parts[0]",
    ]


@pytest.mark.parametrize("target", ["azure:m", "groq:m", "mistral:m", "compatible:m"])
def test_an_empty_answer_stays_out_of_chat_requests(target: str) -> None:
    """A strict server refuses it (C5); the report says so, and answers with anything are kept."""
    call = Message.assistant("", tool_calls=[ToolCall("call_1", "f")])
    request = Request(
        model="m",
        messages=(
            Message.user("a"),
            Message.assistant(""),
            Message.user("b"),
            call,
            Message.tool("call_1", "ok"),
            Message.empty("assistant"),
            Message.user("c"),
        ),
    )
    encoded = dialect("openai-chat").encode_request(request, target_of(target))
    roles = [each["role"] for each in encoded.body["messages"] if each["role"] != "tool"]
    assert roles == ["user", "user", "assistant", "user"]
    assert [str(each.path) for each in encoded.repairs if each.rule == "C5"] == [
        "messages[1]",
        "messages[5]",
    ]
    assert "C5" not in {each.rule for each in dialect("openai-chat").check(encoded.body)}


@pytest.mark.parametrize(
    "said", [{"content": ""}, {"content": None}, {"content": None, "refusal": None}]
)
def test_an_answer_that_was_received_empty_is_not_sent_back(said: dict[str, Any]) -> None:
    """However the server wrote that it said nothing (C5)."""
    speaker = dialect("openai-chat")
    message = {"role": "assistant", **said}
    body = {"model": "m", "choices": [{"index": 0, "message": message}]}
    answer = speaker.decode_response(body).message
    request = Request(model="m", messages=(Message.user("a"), answer, Message.user("b")))
    encoded = speaker.encode_request(request, target_of("compatible:m"))
    assert [each["role"] for each in encoded.body["messages"]] == ["user", "user"]
    assert [each.rule for each in encoded.repairs] == ["C5"]


def test_an_empty_answer_that_came_in_chat_goes_back() -> None:
    """Most servers accept it, so what came in this dialect is left alone, with a warning."""
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": "b"},
        ],
    }
    encoded = dragoman.translate(body, source="openai-chat", target="openai-chat")
    assert encoded.body == body
    assert encoded.repairs == ()
    (found,) = [each for each in dragoman.check(body, target="openai-chat") if each.rule == "C5"]
    assert (found.severity, found.path) == ("warning", "messages[1].content")
