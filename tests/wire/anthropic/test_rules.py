"""Each rule finds its violations, with their paths, and accepts valid bodies."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman.wire.anthropic.dialect import TARGET
from dragoman.wire.anthropic.rules import RULEBOOK
from tests.wire.rulebook import Book, Row

pytestmark = pytest.mark.whole

USER = {"role": "user", "content": "Hi"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
ON = {"type": "enabled", "budget_tokens": 1024}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"
CITED = {"type": "web_search_result_location", "url": "https://x", "cited_text": "x"}
MARK = {"type": "ephemeral", "ttl": "1h"}


# A host with every restriction that any host has.
PICKY = TARGET.with_flags(
    {
        "turns.prefill": "refused",
        "cache.takes_ttl": False,
        "tools.must_be_declared": True,
        "sampling.refuses_temperature_with_top_p": True,
    }
)
NEWEST = PICKY.with_flags(
    {
        "sampling.refused": ("temperature", "top_k"),
        "thinking.form": "adaptive",
        "thinking.efforts": ("low", "high"),
    }
)


def _said(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    if fields.get("tool_choice") is not None:
        fields = {"tools": [{"name": "f", "input_schema": {"type": "object"}}], **fields}
    return {"model": "m", "max_tokens": 4000, "messages": [USER, *messages], **fields}


def _assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def _user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def _text(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **fields}


def _use(tool_id: Any = "t", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": tool_id, "name": "f", "input": {}, **fields}


def _result(tool_id: Any = "t", content: Any = "ok", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": tool_id, "content": content, **fields}


def _loop(use: dict[str, Any], result: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return _said(_assistant(use), _user(result), **fields)


def _tool(schema: Any = None, **fields: Any) -> dict[str, Any]:
    return {"name": "f", "input_schema": schema or {"type": "object"}, **fields}


def _image(**source: Any) -> dict[str, Any]:
    return {"type": "image", "source": source}


def _strict(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return _said(tools=[_tool(schema, strict=True)])


def _defined(**definitions: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}, "$defs": definitions}
    return _said(tools=[_tool(schema, strict=True)])


def _names(count: int) -> list[str]:
    return [f"p{number}" for number in range(count)]


def _all(count: int, schema: dict[str, Any]) -> dict[str, Any]:
    return {name: schema for name in _names(count)}  # noqa: C420 - RUF024 says not to


def _server(use_id: str, result_id: str, **result: Any) -> dict[str, Any]:
    call = {"type": "server_tool_use", "id": use_id, "name": "web_search", "input": {}}
    found = {"type": "web_search_result", "encrypted_content": "x", **result}
    answer = {"type": "web_search_tool_result", "tool_use_id": result_id, "content": [found]}
    return _said(_assistant(call, answer), USER)


# Rule: invalid body, expected paths, valid body.
ROWS: dict[str, list[Row]] = {
    "shape_fields": [
        ({**_said(), "model": ["m"]}, "model", _said()),
        ({**_said(), "model": ""}, "model", _said()),
        (_said(max_tokens="9"), "max_tokens", _said()),
        (_said(output_config={"effort": 1}), "output_config.effort", _said(output_config=None)),
        (_said(tools=[{**_tool(), "name": 1}]), "tools[0].name", _said(tools=[{"type": "bash_1"}])),
        (
            _loop(_use(input="{}"), _result()),
            "messages[1].content[0].input",
            _loop(_use(), _result()),
        ),
        (
            _loop(_use(), _result(content={"a": 1})),
            "messages[2].content[0].content",
            _loop(_use(), _result(content=None)),
        ),
        (
            _loop(_use(), _result(is_error="no")),
            "messages[2].content[0].is_error",
            _loop(_use(), _result(is_error=None)),
        ),
        (
            _loop(_use(), _result(content=[{"type": "text"}])),
            "messages[2].content[0].content[0].text",
            _loop(_use(), _result(content=[_text("x", citations=None)])),
        ),
    ],
    "shape_model_is_named": [({"messages": [USER], "max_tokens": 5}, "model", _said())],
    "shape_model_is_listed": [
        ({**_said(), "model": "claude-sonet-4-5"}, "model", {**_said(), "model": "m"}),
    ],
    "w59_thinking_can_be_turned_off": [
        (_said(thinking={"type": "disabled"}), "thinking.type", _said()),
        (_said(thinking={"type": "between_tools"}), "thinking.type", _said()),
    ],
    "w74_tools_can_be_forced": [
        (
            _said(
                tools=[{"name": "f", "input_schema": {"type": "object"}}],
                tool_choice={"type": "any"},
            ),
            "tool_choice.type",
            _said(
                tools=[{"name": "f", "input_schema": {"type": "object"}}],
                tool_choice={"type": "auto"},
            ),
        ),
    ],
    "shape_messages": [
        (_said(5), "messages[1]", _said()),  # type: ignore[arg-type]
        (_said({"role": "tool", "content": ""}), "messages[1].role", _said()),
        (_said({"role": "user", "content": None}), "messages[1].content", _said(USER)),
        (_said(_user("text")), "messages[1].content", _said(_user(_text("x")))),
    ],
    "shape_blocks_have_their_speaker": [
        (_said(_user(_use())), "messages[1].content[0]", _loop(_use(), _result())),
        (_said(_user(THOUGHT)), "messages[1].content[0]", _said(_assistant(THOUGHT), USER)),
        (
            _said(_assistant(_text("x"), _result())),
            "messages[1].content[1]",
            _said(_assistant({"type": "made_up"}), USER),
        ),
    ],
    "shape_strict_schemas_are_objects": [
        (
            _strict({"a": True}, ["a"]),
            "tools[0].input_schema",
            _strict({"a": {}}, ["a"]),
        ),
        (
            _strict({"a": {"type": "object", "properties": {"b": False}}}, ["a"]),
            "tools[0].input_schema",
            _said(tools=[_tool({"type": "object", "properties": {"a": True}})]),
        ),
    ],
    "shape_strict_schemas_have_an_end": [
        (_defined(A={"$ref": "#/$defs/A"}), "tools[0].input_schema", _defined(A={})),
        (
            _defined(A={"items": {"$ref": "#/$defs/B"}}, B={"anyOf": [{"$ref": "#/$defs/A"}]}),
            "tools[0].input_schema",
            _defined(A={"items": {"$ref": "#/$defs/B"}}, B={"type": "string"}),
        ),
        (_defined(A={"$ref": "#"}), "tools[0].input_schema", _defined(A={"$ref": "#/$defs/C"})),
    ],
    "shape_temperature": [(_said(temperature=1.1), "temperature", _said(temperature=1))],
    "limit_strict_schemas": [
        (
            _said(tools=[_tool(strict=True)] * 21),
            "tools",
            _said(tools=[_tool(strict=True)] * 20 + [_tool()]),
        ),
        (
            _strict(_all(25, {}), []),
            "tools",
            _strict(_all(25, {}), _names(1)),
        ),
        (
            _strict(_all(17, {"type": ["string", "null"]}), _names(17)),
            "tools",
            _strict(_all(16, {"anyOf": []}), _names(16)),
        ),
    ],
    "w40_results_follow_calls": [
        (_said(_assistant(_use()), USER), "messages[1].content[0]", _loop(_use(), _result())),
        (_said(_assistant(_use())), "messages[1].content[0]", _loop(_use(), _result())),
        (
            _said(_assistant(_use("a")), _user(_result("a")), _assistant(_use("b")), USER),
            "messages[3].content[0]",
            # neighbouring messages of one role are one turn
            _said(_assistant(_use("a")), _assistant(_use("b")), _user(_result("a"), _result("b"))),
        ),
    ],
    "w41_results_come_first": [
        (
            _said(_assistant(_use()), _user(_text("x"), _result())),
            "messages[2].content[1]",
            _said(_assistant(_use()), _user(_result(), _text("x"))),
        )
    ],
    "w42_results_have_calls": [
        (_said(_user(_result())), "messages[1].content[0]", _loop(_use(), _result())),
        (_loop(_use("a"), _result("b")), "messages[2].content[0]", _loop(_use(), _result())),
    ],
    "w42_server_results_have_calls": [
        (_server("a", "b"), "messages[1].content[1]", _server("a", "a"))
    ],
    "w43_ids_are_unique_in_a_turn": [
        (
            _said(_assistant(_use(), _use()), _user(_result())),
            "messages[1].content[1].id",
            _loop(_use(), _result()),
        ),
        (
            _said(_assistant(_use()), _user(_result(), _result())),
            "messages[2].content[1].tool_use_id",
            _loop(_use(), _result()),
        ),
    ],
    "w43_ids_are_unique": [
        (
            _said(_assistant(_use()), _user(_result()), _assistant(_use()), _user(_result())),
            "messages[3].content[0].id",
            _loop(_use(), _result()),
        )
    ],
    "w44_ids_are_plain": [
        (_loop(_use("f:0"), _result("f:0")), "messages[1].content[0].id", _loop(_use(), _result())),
        (_loop(_use(None), _result()), "messages[1].content[0].id", _loop(_use(), _result())),
    ],
    "w46_texts_are_not_empty": [
        (_said(_user(_text(""))), "messages[1].content[0]", _said(_user(_text("x"))))
    ],
    "w46_texts_are_not_blank": [
        (_said(_user(_text(" \n"))), "messages[1].content[0]", _said(_user(_text(" x"))))
    ],
    "w47_there_are_messages": [
        ({"messages": []}, "messages", _said()),
        ({"system": "Be brief.", "messages": []}, "messages", _said()),
    ],
    "w47_the_user_begins": [
        ({"messages": [_assistant(_text("x")), USER]}, "messages[0].role", _said())
    ],
    "w47_messages_say_something": [
        (
            _said({"role": "user", "content": ""}),
            "messages[1].content",
            _said({"role": "assistant", "content": ""}),
        ),
        (_said(_assistant(), USER), "messages[1].content", _said(_assistant())),
    ],
    "w48_prefill_has_no_white_space_at_its_end": [
        (
            _said(_assistant(_text("So "))),
            "messages[1].content[0]",
            _said(_assistant(_text("x")), USER),
        ),
        (_said({"role": "assistant", "content": "So"}), "messages[1]", _said(USER)),
    ],
    "w49_system_messages_precede_the_assistant": [
        (
            _said({"role": "system", "content": "x"}, USER),
            "messages[1]",
            _said({"role": "system", "content": "x"}, _assistant(_text("y")), USER),
        ),
        (
            {"messages": [{"role": "system", "content": "x"}, USER]},
            "messages[0]",
            _said({"role": "system", "content": "x"}),
        ),
    ],
    "w50_max_tokens_is_given": [
        ({"messages": [USER]}, "max_tokens", _said()),
        (_said(max_tokens=-1), "max_tokens", _said(max_tokens=0)),
    ],
    "w51_a_tool_loop_begins_with_thinking": [
        (
            _loop(_use(), _result(), thinking=ON),
            "messages[1].content[0]",
            _said(_assistant(THOUGHT, _use()), _user(_result()), thinking=ON),
        )
    ],
    "w52_thinking_comes_first": [
        (
            _said(_assistant(_text("x"), THOUGHT), USER, thinking=ON),
            "messages[1]",
            _said(_assistant(THOUGHT, _text("x")), USER, thinking=ON),
        )
    ],
    "w53_no_thinking_at_the_end_when_off": [
        (_said(_assistant(THOUGHT)), "messages[1].content[0]", _said(_assistant(THOUGHT), USER))
    ],
    "w54_thinking_is_signed": [
        (
            _said(_assistant({"type": "thinking", "thinking": "hm"}), USER),
            "messages[1].content[0]",
            _said(_assistant(THOUGHT), USER),
        )
    ],
    "w57_redacted_thinking_has_its_data": [
        (
            _said(_assistant({"type": "redacted_thinking"}), USER),
            "messages[1].content[0]",
            _said(_assistant({"type": "redacted_thinking", "data": "x"}), USER),
        )
    ],
    "w58_thinking_forces_no_tool": [
        (
            _said(thinking=ON, tool_choice={"type": "any"}),
            "tool_choice",
            _said(thinking={"type": "adaptive"}, tool_choice={"type": "any"}),
        )
    ],
    "w59_the_budget_fits": [
        (
            _said(thinking={"type": "enabled", "budget_tokens": 1023}),
            "thinking.budget_tokens",
            _said(thinking=ON),
        ),
        (
            _said(thinking={"type": "enabled", "budget_tokens": 4000}),
            "thinking.budget_tokens",
            # with tools, a beta header may allow it
            _said(thinking={"type": "enabled", "budget_tokens": 4000}, tools=[_tool()]),
        ),
    ],
    "w59_thinking_takes_no_sampling": [
        (_said(thinking=ON, temperature=0), "temperature", _said(thinking=ON, temperature=1))
    ],
    "w59_thinking_takes_little_sampling": [
        (_said(thinking=ON, top_p=0.9), "top_p", _said(thinking=ON, top_p=0.95)),
        (_said(thinking=ON, top_k=5), "top_k", _said(top_k=5)),
    ],
    "w60_four_cache_markers": [
        (
            _said(_user(*[_text("x", cache_control=MARK)] * 5)),
            "messages[1].content[4]",
            _said(_user(*[_text("x", cache_control=MARK)] * 4)),
        ),
        (
            _said(_assistant({**THOUGHT, "cache_control": MARK}), USER),
            "messages[1].content[0]",
            _said(_assistant({**THOUGHT, "cache_control": None}), USER),
        ),
    ],
    "w61_cache_ttl_is_known": [
        (
            _said(system=[_text("x", cache_control=MARK)]),
            "system[0].cache_control.ttl",
            _said(system=[_text("x", cache_control={"type": "ephemeral"})]),
        )
    ],
    "w62_input_schemas_are_objects": [
        (_said(tools=[_tool({"type": "string"})]), "tools[0].input_schema", _said(tools=[_tool()])),
        (
            _said(tools=[_tool({"type": "object", "anyOf": []})]),
            "tools[0].input_schema",
            _said(tools=[_tool({"type": "object", "properties": {"a": {"anyOf": []}}})]),
        ),
        (
            _said(tools=[{"name": "f"}]),
            "tools[0].input_schema",
            _said(tools=[{"type": "bash_20250124", "name": "bash"}]),
        ),
    ],
    "w63_history_needs_its_tools": [
        (_loop(_use(), _result()), "tools", _loop(_use(), _result(), tools=[_tool()]))
    ],
    "w64_results_hold_known_blocks": [
        (
            _loop(_use(), _result(content=[{"type": "audio"}])),
            "messages[2].content[0].content[0]",
            _loop(_use(), _result(content=[_text("x")], is_error=True)),
        ),
    ],
    "w59_the_newest_take_no_sampling": [
        (_said(temperature=0.5), "temperature", _said(temperature=1)),
        (_said(top_k=5), "top_k", _said(top_p=0.5)),
    ],
    "w59_temperature_and_top_p_exclude_each_other": [
        (_said(temperature=0.5, top_p=0.9), "top_p", _said(temperature=0.5)),
        (_said(temperature=1, top_p=1), "top_p", _said(temperature=None, top_p=0.9)),
    ],
    "w59_thinking_is_asked_for_as_the_model_has_it": [
        (_said(thinking=ON), "thinking.type", _said(thinking={"type": "adaptive"})),
        (
            _said(output_config={"effort": "max"}),
            "output_config.effort",
            _said(output_config={"effort": "high"}),
        ),
    ],
    "w65_images_have_a_source": [
        (
            _said(_user(_image(type="base64", media_type="image/png", data="data:image/png,x"))),
            "messages[1].content[0].source.data",
            _said(_user(_image(type="base64", media_type="image/png", data="aGk="))),
        ),
        (
            _said(_user(_image(type="base64", media_type="image/bmp", data="aGk="))),
            "messages[1].content[0].source.media_type",
            _said(_user(_image(type="url", url="https://x"))),
        ),
        (
            _loop(_use(), _result(content=[_image()])),
            "messages[2].content[0].content[0].source.type",
            _said(_user(_image(type="file", file_id="f"))),
        ),
    ],
    "w65_images_are_of_their_type": [
        (
            _said(_user(_image(type="base64", media_type="image/jpeg", data=PNG))),
            "messages[1].content[0].source.media_type",
            _said(_user(_image(type="base64", media_type="image/png", data=PNG))),
        ),
        (
            _said(_user(_image(type="base64", media_type="image/gif", data=PNG))),
            "messages[1].content[0].source.media_type",
            _said(_user(_image(type="base64", media_type="image/gif", data="aGk="))),
        ),
    ],
    "w65_images_are_small": [
        (
            _said(_user(_image(type="base64", media_type="image/png", data="A" * 5_242_884))),
            "messages[1].content[0].source.data",
            _said(_user(_image(type="base64", media_type="image/png", data="A" * 5_242_880))),
        )
    ],
    "w71_server_results_are_whole": [
        (
            _said(_assistant(_text("x", citations=[CITED])), USER),
            "messages[1].content[0].citations[0]",
            _said(_assistant(_text("x", citations=[{**CITED, "encrypted_index": "i"}])), USER),
        ),
        (
            _server("a", "a", encrypted_content=None),
            "messages[1].content[1].content[0]",
            _server("a", "a"),
        ),
    ],
    "w74_choices_are_known": [
        (_said(tool_choice="auto"), "tool_choice", _said(tool_choice={"type": "auto"})),
        (_said(tool_choice={"type": ["any"]}), "tool_choice", _said(tool_choice=None)),
        (
            _said(tool_choice={"type": "tool"}),
            "tool_choice.name",
            _said(tool_choice={"type": "tool", "name": "f"}),
        ),
        (
            _said(parallel_tool_calls=False),
            "parallel_tool_calls",
            _said(tool_choice={"type": "auto", "disable_parallel_tool_use": True}),
        ),
    ],
    "w121_choices_need_tools": [
        (
            _said(tool_choice={"type": "auto"}, tools=[]),
            "tool_choice",
            _said(tool_choice={"type": "auto"}),
        )
    ],
}
NEEDS_TARGET = {
    "w59_temperature_and_top_p_exclude_each_other",
    "w61_cache_ttl_is_known",
    "w63_history_needs_its_tools",
}
OF_THE_NEWEST = {"w59_the_newest_take_no_sampling", "w59_thinking_is_asked_for_as_the_model_has_it"}
ANTHROPIC = dragoman.provider("anthropic")
BOOK = Book(
    "anthropic",
    ROWS,
    PICKY,
    {
        **dict.fromkeys(OF_THE_NEWEST, NEWEST),
        "shape_model_is_listed": ANTHROPIC.target("claude-sonet-4-5"),
        "w59_thinking_can_be_turned_off": ANTHROPIC.target("claude-opus-5-5"),
        "w74_tools_can_be_forced": ANTHROPIC.target("claude-opus-5-5"),
    },
)


@pytest.mark.parametrize("name", sorted(NEEDS_TARGET | OF_THE_NEWEST))
def test_the_default_target_is_anthropic_itself(name: str) -> None:
    """Without a target, restrictions of other hosts and models aren't violations."""
    for wrong, _, _ in ROWS[name]:
        assert RULEBOOK.check(wrong) == []


def test_prefill_is_a_violation_only_for_some_targets() -> None:
    """A final assistant message is a violation only if the target says so (W48)."""
    body = _said({"role": "assistant", "content": "So"})
    assert RULEBOOK.check(body) == []
    assert [violation.rule for violation in RULEBOOK.check(body, target=PICKY)] == ["W48"]


def test_unsigned_thinking_is_valid_if_signatures_are_not_verified() -> None:
    """The target says whether signatures are verified (W54)."""
    body = _said(_assistant({"type": "thinking", "thinking": "hm", "signature": ""}), USER)
    assert [violation.rule for violation in RULEBOOK.check(body)] == ["W54"]
    assert (
        RULEBOOK.check(body, target=TARGET.with_flags({"thinking.verifies_signatures": False}))
        == []
    )


def test_turns_without_thinking_are_valid_for_some_hosts() -> None:
    """The target says whether a turn must begin with thinking (W51)."""
    body = _loop(_use(), _result(), thinking=ON)
    assert [violation.rule for violation in RULEBOOK.check(body)] == ["W51"]
    assert RULEBOOK.check(body, target=TARGET.with_flags({"thinking.begins_turns": False})) == []


COUNTING = "/v1/messages/count_tokens?beta=true"


def test_token_counting_needs_no_max_tokens() -> None:
    """For the token counting path `max_tokens` isn't required (W50)."""
    assert RULEBOOK.check({"model": "m", "messages": [USER]}, path=COUNTING) == []


def test_budget_may_exceed_max_tokens_with_the_beta_header() -> None:
    """With the interleaved thinking beta the budget may exceed `max_tokens` (W59)."""
    body = _said(thinking={"type": "enabled", "budget_tokens": 4000}, tools=[_tool()])
    assert RULEBOOK.check(body, headers={"anthropic-beta": "interleaved-thinking-2025-05-14"}) == []
    assert [violation.rule for violation in RULEBOOK.check(body, headers={})] == ["W59"]
