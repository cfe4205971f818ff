"""Each rule finds its violations, with their paths, and accepts valid bodies."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman.wire.flags import (
    FieldFlags,
    IdFlags,
    MediaFlags,
    SamplingFlags,
    ThinkingFlags,
    ToolFlags,
    TurnFlags,
)
from dragoman.wire.openai_chat.rules import RULEBOOK
from dragoman.wire.target import Target
from tests.wire.rulebook import Book, Row

pytestmark = pytest.mark.whole

USER = {"role": "user", "content": "Hi"}


# A thinking model at a host with every restriction that any host has.
PICKY = Target(
    dialect="openai-chat",
    ids=IdFlags(pattern=r"[a-z]{1,9}", max_length=9),
    tools=ToolFlags(takes_parallel_choice=False),
    turns=TurnFlags(
        takes_developer=False,
        alternates_roles=True,
        system_place="first",
        answers_results=True,
    ),
    thinking=ThinkingFlags(sent_back="all", is_on_by_default=True, allows_forced_tools=False),
    sampling=SamplingFlags(
        token_limit_fields=("max_completion_tokens",),
        refused=("temperature", "top_p", "choices", "logprobs"),
    ),
    media=MediaFlags(takes_image_urls=False),
    fields=FieldFlags(
        refused=("cache_control",),
        in_request=(
            "model", "messages", "tools", "tool_choice", "max_tokens", "temperature", "n", "top_p",
            "parallel_tool_calls", "thinking", "max_completion_tokens",
        ),
        in_message=("role", "content", "tool_calls", "tool_call_id", "reasoning_content"),
    ),
)  # fmt: skip
PLAIN = PICKY.with_flags({"thinking.sent_back": "never"})
GROQ = dragoman.provider("groq").target("openai/gpt-oss-20b")
OPENROUTER = dragoman.provider("openrouter").target("z-ai/glm-5")
REASONER = dragoman.provider("openai").target("o4-mini")
TALKER = dragoman.provider("openai").target("gpt-4o")
VLLM = dragoman.provider("vllm").target("mistralai/Mistral-7B-Instruct-v0.3")


def _said(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    if fields.get("tool_choice") is not None:
        fields = {"tools": [{"type": "function", "function": {"name": "f"}}], **fields}
    return {"model": "m", "messages": [USER, *messages], **fields}


def _called(*ids: Any, name: str = "f", arguments: str = "{}") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    calls = [{"id": one, "type": "function", "function": function} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _result(call_id: Any, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _answer(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "Yes", **fields}


def _strict(**schema: Any) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
        **schema,
    }
    function = {"name": "f", "strict": True, "parameters": parameters}
    return _said(tools=[{"type": "function", "function": function}])


def _image(url: str, **fields: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **fields}}


# Rule: invalid body, expected paths, valid body.
ROWS: dict[str, list[Row]] = {
    "shape_model": [({**_said(), "model": 5}, "model", _said())],
    "shape_model_is_named": [({"messages": _said()["messages"]}, "model", _said())],
    "shape_model_is_listed": [
        ({**_said(), "model": "gpt-5-typo"}, "model", {**_said(), "model": "gpt-5"}),
    ],
    "shape_counts": [
        ({**_said(), "max_tokens": "5"}, "max_tokens", {**_said(), "max_tokens": 5.0}),
        ({**_said(), "max_completion_tokens": True}, "max_completion_tokens", _said()),
        ({**_said(), "n": 1.5}, "n", {**_said(), "n": 1}),
    ],
    "shape_messages": [
        ({"messages": []}, "messages", _said()),
        ({"messages": [5]}, "messages[0]", _said()),
        (_said({"role": "boss"}), "messages[1].role", _said({"role": "developer", "content": ""})),
        ({"messages": [{"role": ["user"]}]}, "messages[0].role", _said()),
    ],
    "shape_content": [
        (_said({"role": "user", "content": 5}), "messages[1].content", _said(USER)),
        (
            _said({"role": "user", "content": ["Hi"]}),
            "messages[1].content",
            _said({"role": "user", "content": [{"type": "text", "text": "Hi"}]}),
        ),
    ],
    "shape_ranges": [
        (_said(temperature=99), "temperature", _said(temperature=2)),
        (_said(top_p="1"), "top_p", _said(top_p=None)),
    ],
    "shape_user_parts": [
        (
            _said({"role": "user", "content": [{"type": "video_url"}]}),
            "messages[1].content[0].type",
            _said({"role": "user", "content": [{"type": "file"}]}),
        )
    ],
    "shape_image_data": [
        (
            _said({"role": "user", "content": [_image("data:image/png;base64,no!!")]}),
            "messages[1].content[0].image_url.url",
            _said({"role": "user", "content": [_image("data:image/png;base64,aGk=")]}),
        )
    ],
    "shape_image_details": [
        (
            _said({"role": "user", "content": [_image("https://a.org/b.png", detail="original")]}),
            "messages[1].content[0].image_url.detail",
            _said({"role": "user", "content": [_image("https://a.org/b.png", detail="high")]}),
        )
    ],
    "w1_tool_messages_hold_text": [
        (
            _said(_called("c"), _result("c", [{"type": "input_audio"}])),
            "messages[2].content[0]",
            _said(_called("c"), _result("c", [{"type": "text", "text": "ok"}])),
        )
    ],
    "w1_tool_messages_hold_no_images": [
        (
            _said(_called("c"), _result("c", [_image("https://x")])),
            "messages[2].content[0]",
            _said({"role": "user", "content": [_image("https://x")]}),
        )
    ],
    "w2_assistant_says_text_or_refusal": [
        (
            _said({"role": "assistant", "content": [_image("https://x")]}),
            "messages[1].content[0]",
            _said({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}),
        )
    ],
    "w2_assistant_says_something": [
        (
            _said({"role": "assistant", "content": None}),
            "messages[1]",
            _said({"role": "assistant", "content": ""}),
        )
    ],
    "w3_results_answer_calls": [
        (_said(_result("c")), "messages[1].tool_call_id", _said(_called("c"), _result("c"))),
        (
            _said(_called("c"), _result("c"), USER, _result("c")),
            "messages[4].tool_call_id",
            _said(_called("c", "d"), _result("d"), _result("c")),
        ),
    ],
    "w4_calls_are_answered": [
        (
            _said(_called("c", "d"), _result("c"), USER),
            "messages[1].tool_calls[1].id",
            _said(_called("c", "d"), _result("d"), _result("c")),
        )
    ],
    "w5_ids_are_short": [
        (
            _said(_called("c" * 41), _result("c" * 41)),
            "messages[1].tool_calls[0].id",
            _said(_called("c" * 40), _result("c" * 40)),
        )
    ],
    "w6_names_are_plain": [
        (
            _said(_called("c", name="a.b"), _result("c")),
            "messages[1].tool_calls[0].function.name",
            _said(_called("c", name="a-b"), _result("c")),
        ),
        (
            _said(tools=[{"type": "function", "function": {"name": "n" * 65}}]),
            "tools[0].function.name",
            _said(tools=[{"type": "function", "function": {"name": "n" * 64}}]),
        ),
    ],
    "w12_reasoning_models_take_no_sampling": [
        (_said(max_tokens=5), "max_tokens", _said(max_completion_tokens=5)),
        (_said(top_p=0.5), "top_p", _said(temperature=1)),
        (_said(temperature=0), "temperature", _said(n=1)),
        (_said(n=2), "n", _said(n=None)),
        (_said(parallel_tool_calls=True), "parallel_tool_calls", _said(parallel_tool_calls=None)),
        (_said(cache_control={}), "cache_control", _said(user="u")),
    ],
    "w12_efforts_are_known": [
        (_said(reasoning_effort="minimal"), "reasoning_effort", _said(reasoning_effort="low")),
    ],
    "w13_developer_is_known": [
        (
            _said({"role": "developer", "content": "x"}),
            "messages[1].role",
            _said({"role": "system", "content": "x"}),
        )
    ],
    "w14_strict_objects_are_closed": [
        (_strict(additionalProperties=True), "tools[0].function.parameters", _strict()),
        (_strict(required=[]), "tools[0].function.parameters", _strict()),
        (
            _strict(properties={"a": {"type": "object"}}),
            "tools[0].function.parameters",
            _strict(properties={"a": {"type": "object", "additionalProperties": False}}),
        ),
    ],
    "w15_strict_schemas_keep_to_the_subset": [
        (_strict(type="string"), "tools[0].function.parameters", _strict()),
        (_strict(anyOf=[]), "tools[0].function.parameters", _strict()),
        (
            _strict(properties={"a": {"oneOf": [{"type": "string"}, {"type": "null"}]}}),
            "tools[0].function.parameters",
            _strict(properties={"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}),
        ),
        (
            _strict(properties={"a": {"allOf": [{"type": "string"}], "default": "b"}}),
            "tools[0].function.parameters",
            _strict(properties={"a": {"type": "string", "default": "b"}}),
        ),
    ],
    "w17_extensions_are_not_openais": [
        (
            _said({"role": "user", "content": "Hi", "cache_control": {"type": "ephemeral"}}),
            "messages[1].cache_control",
            _said({"role": "assistant", "content": "Hi", "reasoning_content": None}),
        )
    ],
    "w58_thinking_forces_no_tool": [
        (_said(tool_choice="required"), "tool_choice", _said(tool_choice="auto")),
        (
            _said(tool_choice={"type": "function", "function": {"name": "f"}}),
            "tool_choice",
            _said(tool_choice="required", thinking={"type": "disabled"}),
        ),
    ],
    "w105_images_are_data": [
        (
            _said({"role": "user", "content": [_image("https://x")]}),
            "messages[1].content[0].image_url",
            _said({"role": "user", "content": [_image("data:image/png;base64,aGk=")]}),
        )
    ],
    "w105_images_are_of_known_types": [
        (
            _said({"role": "user", "content": [_image("data:image/gif;base64,R0lG")]}),
            "messages[1].content[0].image_url",
            _said({"role": "user", "content": [_image("data:image/webp;base64,UklG")]}),
        )
    ],
    "w109_fields_are_known": [
        (_said(store=True), "store", _said(store=None)),
        (_said(made_up=1), "*", _said(temperature=1)),
        (_said({**USER, "name": "Ann"}), "messages[1].name", _said(USER)),
    ],
    "w110_thinking_is_not_taken_back": [
        (
            _said({"role": "assistant", "content": "", "reasoning": "hm"}),
            "messages[1].reasoning",
            _said({"role": "assistant", "content": "", "reasoning": None}),
        )
    ],
    "w110_thinking_is_not_empty": [
        (_said(_answer(reasoning="")), "messages[1].reasoning", _said(_answer(reasoning="hm"))),
    ],
    "w114_arguments_are_json": [
        (
            _said(_called("callone12", arguments='{"a":'), _result("callone12")),
            "messages[1].tool_calls[0].function.arguments",
            _said(_called("callone12", arguments=""), _result("callone12")),
        ),
        (
            _said(_called("callone12", arguments="a b"), _result("callone12")),
            "messages[1].tool_calls[0].function.arguments",
            _said(_called("callone12", arguments='{"a": 1}'), _result("callone12")),
        ),
    ],
    "w115_thinking_is_in_its_field": [
        (
            _said(_answer(reasoning_content="hm")),
            "messages[1].reasoning_content",
            _said(_answer(reasoning_content="hm", reasoning="hm")),
        )
    ],
    "w117_roles_alternate": [
        (_said(USER), "messages[1].role", _said({"role": "assistant", "content": "Hi"}, USER)),
        (
            _said(_called("a"), _called("b"), _result("a"), _result("b")),
            "messages[2].role",
            _said(_called("a", "b"), _result("a"), _result("b")),
        ),
    ],
    "w117_the_user_begins": [
        (
            {"messages": [{"role": "system", "content": "x"}, _answer(), USER]},
            "messages[1].role",
            {"messages": [{"role": "system", "content": "x"}, USER, _answer()]},
        )
    ],
    "w117_instructions_come_first": [
        (
            _said({"role": "system", "content": "x"}),
            "messages[1].role",
            {"messages": [{"role": "system", "content": "x"}, USER]},
        )
    ],
    "c1_ids_have_their_form": [
        (_said(_called("-"), _result("-")), "messages[1].tool_calls[0].id", _said(_called("c"))),
    ],
    "c1_results_are_answered": [
        (
            _said(_called("c"), _result("c"), USER),
            "messages[3]",
            _said(_called("c"), _result("c"), {"role": "assistant", "content": "x"}, USER),
        )
    ],
    "c2_answers_have_their_thinking": [
        (
            _said(_called("c"), _result("c")),
            "messages[1]",
            _said({**_called("c"), "reasoning_content": ""}, _result("c")),
        ),
        (
            _said({"role": "assistant", "content": "x"}, USER, _called("c")),
            "messages[1]",
            _said(_called("c"), _result("c"), thinking={"type": "disabled"}),
        ),
    ],
    "c4_forced_tools_drop_thinking": [
        (
            _said(reasoning={"effort": "low"}, tool_choice="required"),
            "tool_choice",
            _said(reasoning={"effort": "low"}, tool_choice="auto"),
        )
    ],
    "c5_answers_say_something": [
        (
            _said({"role": "assistant", "content": ""}),
            "messages[1].content",
            _said({"role": "assistant", "content": "x"}),
        )
    ],
    "w121_choices_need_tools": [
        (_said(tool_choice="auto", tools=[]), "tool_choice", _said(tool_choice="auto")),
        (
            _said(parallel_tool_calls=False),
            "parallel_tool_calls",
            _said(parallel_tool_calls=False, tool_choice="auto"),
        ),
    ],
    "i5_calls_have_ids": [
        (
            _said(_called(None), _result("c")),
            "messages[1].tool_calls[0].id",
            _said(_called("c"), _result("c")),
        ),
        (
            _said(_called("c"), _result("")),
            "messages[2].tool_call_id",
            _said(_called("c"), _result("c")),
        ),
    ],
    "i5_ids_are_unique": [
        (
            _said(_called("c", "c"), _result("c")),
            "messages[1].tool_calls[1].id",
            _said(_called("c"), _result("c"), _called("c"), _result("c")),
        )
    ],
    "i8_calls_have_one_result": [
        (
            _said(_called("c"), _result("c"), _result("c")),
            "messages[3].tool_call_id",
            _said(_called("c", "d"), _result("c"), _result("d")),
        )
    ],
}
TARGETS = {
    "shape_model_is_listed": dragoman.provider("openai").target("gpt-5-typo"),
    "shape_image_details": GROQ,
    "w12_reasoning_models_take_no_sampling": PICKY,
    "w12_efforts_are_known": REASONER,
    "w13_developer_is_known": PICKY,
    "w58_thinking_forces_no_tool": PICKY,
    "w105_images_are_data": PICKY,
    "w105_images_are_of_known_types": PICKY,
    "w109_fields_are_known": PICKY,
    "w110_thinking_is_not_taken_back": PLAIN,
    "w110_thinking_is_not_empty": GROQ,
    "w114_arguments_are_json": VLLM,
    "w115_thinking_is_in_its_field": GROQ,
    "w117_roles_alternate": PICKY,
    "w117_the_user_begins": VLLM,
    "w117_instructions_come_first": PICKY,
    "c1_ids_have_their_form": PICKY,
    "c1_results_are_answered": PICKY,
    "c2_answers_have_their_thinking": PICKY,
    "c4_forced_tools_drop_thinking": OPENROUTER,
}
BOOK = Book("openai-chat", ROWS, targets=TARGETS)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_the_default_target_is_openai_itself(name: str) -> None:
    """Without a target, restrictions of other models and hosts aren't violations."""
    number = name.partition("_")[0].upper()
    for wrong, _, _ in ROWS[name]:
        assert [v for v in RULEBOOK.check(wrong) if v.rule == number] == []


@pytest.mark.parametrize(
    ("target", "body", "rule"),
    [
        (TALKER, _said(reasoning_effort="low"), "W12"),
        (TALKER, _said(web_search_options={}), "W12"),
        (REASONER, _said(max_tokens=5), "W12"),
        (REASONER, _said(logit_bias={"1": 1}), "W12"),
        (GROQ, _said(store=True), "W109"),
        (GROQ, _said(logit_bias={"1": 1}), "W109"),
        (GROQ, _said({**USER, "name": "Ann"}), "W109"),
        (GROQ, _said(n=2), "W12"),
        (GROQ, _said(_answer(reasoning_content="hm")), "W109"),
        (GROQ.with_flags({"thinking.sent_back": "never"}), _said(_answer(reasoning="hm")), "W110"),
        (VLLM, _said(USER), "W117"),
        (VLLM, _said(_called("call_1"), _result("call_1")), "C1"),
    ],
)
def test_hosts_have_their_own_rules(target: Target, body: dict[str, Any], rule: str) -> None:
    """Groq, vLLM and reasoning models reject what OpenAI's plain models accept, or the reverse."""
    assert rule in {violation.rule for violation in RULEBOOK.check(body, target)}
    assert rule not in {violation.rule for violation in RULEBOOK.check(body)}


def test_thinking_parts_are_accepted_by_some_hosts() -> None:
    """Mistral and unknown hosts accept thinking parts; OpenAI and Groq don't (W2)."""
    body = _said(_answer(content=[{"type": "thinking", "thinking": []}]))
    for name in ("mistral", "openai-compatible"):
        assert RULEBOOK.check(body, dragoman.provider(name).target("m")) == []
    for target in (None, TALKER, GROQ):
        assert "W2" in {violation.rule for violation in RULEBOOK.check(body, target)}


def test_a_target_may_allow_longer_ids() -> None:
    """The maximum id length is the target's (`IdFlags.max_length`)."""
    body = _said(_called("c" * 64), _result("c" * 64))
    assert RULEBOOK.check(body, Target(dialect="openai-chat", ids=IdFlags(max_length=64))) == []
    assert {violation.rule for violation in RULEBOOK.check(body)} == {"W5"}
