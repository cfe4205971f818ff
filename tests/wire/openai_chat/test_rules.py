"""Each rule finds what breaks it, at its place, and leaves alone what does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.wire.openai_chat.rules import RULES, check
from dragoman.wire.openai_chat.view import View
from dragoman.wire.target import Target
from tests.wire.test_hostile import FIXTURES, _places, _put, json_values

USER = {"role": "user", "content": "Hi"}
Row = tuple[dict[str, Any], str, dict[str, Any]]


# A model that thinks, at a host that refuses all that any host refuses.
PICKY = Target(
    dialect="openai-chat",
    tool_id=r"[a-z]{1,9}",
    tool_id_length=9,
    takes_developer=False,
    token_limits=("max_completion_tokens",),
    refused_sampling=("temperature", "top_p", "choices", "logprobs"),
    takes_parallel_choice=False,
    refused_fields=("cache_control",),
    request_fields=("model", "messages", "tools", "tool_choice", "max_tokens", "temperature", "n",
                    "top_p", "parallel_tool_calls", "thinking", "max_completion_tokens"),
    message_fields=("role", "content", "tool_calls", "tool_call_id", "reasoning_content"),
    takes_image_urls=False,
    alternates_roles=True,
    system_place="first",
    answers_results=True,
    thinking_back="all",
    thinks_by_default=True,
    forces_tools_thinking=False,
)  # fmt: skip
PLAIN = PICKY.replace(thinking_back="never")


def _said(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [USER, *messages], **fields}


def _called(*ids: str, name: str = "f") -> dict[str, Any]:
    function = {"name": name, "arguments": "{}"}
    calls = [{"id": one, "type": "function", "function": function} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _result(call_id: str, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


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


def _image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


# Rule: what breaks it, where it says so, and what does not.
ROWS: dict[str, list[Row]] = {
    "shape_messages": [
        ({"messages": []}, "messages", _said()),
        ({"messages": [5]}, "messages[0]", _said()),
        (_said({"role": "boss"}), "messages[1].role", _said({"role": "developer", "content": ""})),
        ({"messages": [{"role": ["user"]}]}, "messages[0].role", _said()),
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
            _strict(properties={"a": {"default": 1}}),
            "tools[0].function.parameters",
            _strict(properties={"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}),
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
    "w117_roles_alternate": [
        (_said(USER), "messages[1].role", _said({"role": "assistant", "content": "Hi"}, USER)),
        (
            _said(_called("a"), _called("b"), _result("a"), _result("b")),
            "messages[2].role",
            _said(_called("a", "b"), _result("a"), _result("b")),
        ),
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
}
FILES = [
    file
    for file in sorted((FIXTURES / "openai-chat").glob("*.json"))
    if file.stem != "thinking"  # Mistral's way of thinking is not OpenAI's
]
CASES = [(name, *row) for name, rows in ROWS.items() for row in rows]
TARGETS = {
    "w12_reasoning_models_take_no_sampling": PICKY,
    "w13_developer_is_known": PICKY,
    "w58_thinking_forces_no_tool": PICKY,
    "w105_images_are_data": PICKY,
    "w109_fields_are_known": PICKY,
    "w110_thinking_is_not_taken_back": PLAIN,
    "w117_roles_alternate": PICKY,
    "w117_instructions_come_first": PICKY,
    "c1_ids_have_their_form": PICKY,
    "c1_results_are_answered": PICKY,
    "c2_answers_have_their_thinking": PICKY,
}


def _found(name: str, body: dict[str, Any]) -> list[str]:
    (rule,) = (rule for rule in RULES if rule.find.__name__ == name)
    target = TARGETS.get(name)
    findings = list(rule.find(View(body, target)))
    reported = [(v.path, v.message) for v in check(body, target) if v.rule == rule.number]
    assert all(finding in reported for finding in findings)
    return [path for path, _ in findings]


def test_every_rule_has_a_row() -> None:
    """No rule goes untested."""
    assert set(ROWS) == {rule.find.__name__ for rule in RULES}


@pytest.mark.parametrize(("name", "wrong", "path", "right"), CASES)
def test_a_rule_finds_what_breaks_it(
    name: str, wrong: dict[str, Any], path: str, right: dict[str, Any]
) -> None:
    """The wrong body is found out at that path; the right one passes."""
    assert path in _found(name, wrong)
    assert _found(name, right) == []


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_the_vendors_own_deployment_is_meant(name: str) -> None:
    """What only some models refuse is no fault without a target that says so."""
    number = name.partition("_")[0].upper()
    for wrong, _, _ in ROWS[name]:
        assert [v for v in check(wrong) if v.rule == number] == []


def test_a_target_may_allow_longer_ids() -> None:
    """The length of ids is the target's (`Target.tool_id_length`)."""
    body = _said(_called("c" * 64), _result("c" * 64))
    assert check(body, Target(dialect="openai-chat", tool_id_length=64)) == []
    assert {violation.rule for violation in check(body)} == {"W5"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_our_own_requests_pass(file: Path) -> None:
    """Fixtures are requests that OpenAI takes."""
    speaker: Any = dragoman.dialect("openai-chat")
    fixture = json.loads(file.read_text(encoding="utf-8"))
    if fixture["canonical"]["kind"] == "Request":
        found = speaker.check(fixture["wire"])
        assert [violation for violation in found if violation.severity == "error"] == []


def test_text_that_is_no_object_is_a_violation() -> None:
    """Bytes are read, and what they are not is said."""
    assert check(json.dumps(_said()).encode()) == []
    assert [v.rule for v in check(b"[]")] == ["shape"]
    assert [v.rule for v in check("{")] == ["shape"]


@given(
    body=st.fixed_dictionaries(
        {},
        optional={
            key: json_values | st.lists(json_values, max_size=3)
            for key in ("messages", "tools", "temperature", "response_format", "functions")
        },
    )
    | json_values
)
def test_any_json_gives_a_list(body: Any) -> None:
    """No body is too strange."""
    assert isinstance(check(body), list)
    assert isinstance(check(body, PICKY), list)


@given(data=st.data())
def test_a_body_with_one_thing_wrong_gives_a_list(data: st.DataObject) -> None:
    """A real body in which any one value was replaced by any other does no harm."""
    name, wrong, _, right = data.draw(st.sampled_from(CASES))
    body = data.draw(st.sampled_from([wrong, right]))
    path = data.draw(st.sampled_from(_places(body)))
    target = TARGETS.get(name)
    assert isinstance(check(_put(body, path, data.draw(json_values)), target), list)


@given(data=st.data())
def test_findings_quote_nothing(data: st.DataObject) -> None:
    """Neither path nor message holds what stood in the body."""
    secret = "zqzq0123456789abcdef"
    _, wrong, _, _ = data.draw(st.sampled_from(CASES))
    path = data.draw(st.sampled_from(_places(wrong)))
    for violation in check(_put(wrong, path, data.draw(st.sampled_from([secret, {secret: 1}])))):
        assert secret not in f"{violation.path} {violation.message} {violation!r}"
