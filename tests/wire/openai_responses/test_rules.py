"""Each rule finds its violations, with their paths, and accepts valid bodies."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman
from dragoman.wire.openai_responses.dialect import TARGET
from dragoman.wire.openai_responses.rules import RULEBOOK
from tests.wire.rulebook import Book, Row

pytestmark = pytest.mark.whole

USER = {"role": "user", "content": "Hi"}
LOOSE = TARGET.with_flags(
    {
        "state.verifies_items": False,
        "sampling.min_output_tokens": 0,
        "media.kinds": ("audio",),
        "ids.max_length": 99,
    }
)
"""A host that speaks the dialect, keeps nothing and minds less."""
LLAMA = dragoman.provider("llama.cpp").target(dialect="openai-responses")
REASONER = TARGET.with_flags(
    {
        "sampling.refused": ("temperature",),
        "sampling.refused_while_thinking": ("top_p",),
        "thinking.efforts": ("none", "low", "high"),
        "thinking.form": "effort",
    }
)


def _said(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "input": [USER, *items], **fields}


def _thought(item_id: str = "rs_1", **fields: Any) -> dict[str, Any]:
    return {"type": "reasoning", "id": item_id, "summary": [], **fields}


def _answer(item_id: str | None = "msg_1", kind: str = "output_text") -> dict[str, Any]:
    ids = {} if item_id is None else {"id": item_id, "type": "message"}
    return {"role": "assistant", "content": [{"type": kind, "text": "Yes."}], **ids}


def _call(call_id: str | None = "c", **fields: Any) -> dict[str, Any]:
    body = {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}
    return {**body, **fields}


def _output(call_id: str = "c", output: Any = "ok", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output, **fields}


def _custom(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "call_id": "c", **fields}


def _user(**part: Any) -> dict[str, Any]:
    return {"role": "user", "content": [part]}


def _image(url: str, detail: str = "auto") -> dict[str, Any]:
    return {"type": "input_image", "image_url": url, "detail": detail}


def _file(data: str) -> dict[str, Any]:
    return {"type": "input_file", "file_data": data, "filename": "a"}


def _strict(**schema: Any) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
        **schema,
    }
    tool = {"type": "function", "name": "f", "strict": True, "parameters": parameters}
    return _said(tools=[tool])


def _format(schema: Any) -> dict[str, Any]:
    form = {"type": "json_schema", "name": "n", "strict": True, "schema": schema}
    return _said(text={"format": form})


LONG = json.dumps({"a": [{"n" * 257: 1}]})
SHORT = json.dumps({"a": [{"n" * 256: 1}]})
# Rule: invalid body, expected paths, valid body.
ROWS: dict[str, list[Row]] = {
    "shape_model_is_named": [({"input": "Hi"}, "model", {"prompt": {"id": "pmpt_1"}})],
    "shape_model_is_listed": [
        ({"model": "gpt-7", "input": "Hi"}, "model", {"model": "gpt-5", "input": "Hi"}),
    ],
    "shape_fields": [
        ({"model": "", "input": "Hi"}, "model", {"model": "m", "input": "Hi"}),
        ({"model": ["m"], "input": "Hi"}, "model", {"model": "m", "input": "Hi"}),
        (
            {"input": "Hi", "max_output_tokens": "5"},
            "max_output_tokens",
            {"input": "Hi", "max_output_tokens": None},
        ),
        (_said(reasoning="low"), "reasoning", _said(reasoning={"effort": "low"})),
        (_said(max_tool_calls="5"), "max_tool_calls", _said(max_tool_calls=5)),
        (
            _said(tools=[{"type": "function", "name": 1}]),
            "tools[0].name",
            _said(tools=[{"type": "web_search"}]),
        ),
        (
            {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": {}}]},
            "input[0].arguments",
            {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]},
        ),
    ],
    "shape_input": [
        ({"model": "m"}, "input", {"model": "m", "prompt": {"id": "pmpt_1"}}),
        ({"input": 5}, "input", {"previous_response_id": "resp_1"}),
        (_said(5), "input[1]", {"input": "Hi"}),
    ],
    "shape_state": [
        (
            _said(previous_response_id="resp_1", conversation="conv_1"),
            "previous_response_id",
            _said(previous_response_id="resp_1", conversation=None),
        )
    ],
    "shape_ranges": [
        (_said(temperature=-1), "temperature", _said(temperature=2)),
        (_said(top_logprobs=21), "top_logprobs", _said(top_p=None)),
    ],
    "shape_image_data": [
        (
            _said(_user(**_image("data:image/png;base64,no!!"))),
            "input[1].content[0].image_url",
            _said(_user(**_image("data:image/png;base64,aGk="))),
        ),
        (
            _said(_call(), _output("c", [_image("data:image/png,hi")])),
            "input[2].output[0].image_url",
            _said(_call(), _output("c", [_image("https://example.com/a.png")])),
        ),
    ],
    "shape_image_details": [
        (
            _said(_user(**_image("https://a.org/b.png", "finest"))),
            "input[1].content[0].detail",
            _said(_user(**_image("https://a.org/b.png", "original"))),
        ),
        (
            _said(_call(), _output("c", [_image("https://a.org/b.png", "ultra_high")])),
            "input[2].output[0].detail",
            _said(_call(), _output("c", [_image("https://a.org/b.png", "low")])),
        ),
    ],
    "shape_file_data": [
        (
            _said(_user(**_file("data:audio/mpeg;base64,aGk="))),
            "input[1].content[0].file_data",
            _said(_user(**_file("data:application/pdf;base64,aGk="))),
        ),
        (
            _said(_call(), _output("c", [_file("data:video/mp4;base64,aGk=")])),
            "input[2].output[0].file_data",
            _said(_call(), _output("c", [_file("data:text/plain;base64,aGk=")])),
        ),
    ],
    "shape_answers_have_their_type": [
        (_said(_answer(None), USER), "input[1].type", _said(_answer(), USER)),
    ],
    "shape_reasoning_is_readable": [
        (
            _said(_thought(summary=[{"type": "summary_text", "text": "Hm."}]), _answer(), USER),
            "input[1].content",
            _said(_thought(content=[{"type": "reasoning_text", "text": "Hm."}]), _answer(), USER),
        ),
    ],
    "limit_output_tokens": [
        (_said(max_output_tokens=15), "max_output_tokens", _said(max_output_tokens=16))
    ],
    "w6_names_are_plain": [
        (_said(_call(name="a.b"), _output()), "input[1].name", _said(_call(name="a-b"), _output())),
        (
            _said(tools=[{"type": "function", "name": "n" * 65}]),
            "tools[0].name",
            _said(tools=[{"type": "function", "name": "n" * 64}, {"type": "web_search"}]),
        ),
    ],
    "w14_strict_objects_are_closed": [
        (_strict(required=[]), "tools[0].parameters", _strict()),
        (
            _format({"type": "object"}),
            "text.format.schema",
            _format({"type": "object", "additionalProperties": False}),
        ),
    ],
    "w15_strict_schemas_keep_to_the_subset": [
        (_strict(allOf=[]), "tools[0].parameters", _strict()),
        (_format({"type": "array"}), "text.format.schema", _strict()),
    ],
    "w20_calls_are_paired_on_call_id": [
        (_said(_call(None, id="fc_1")), "input[1].call_id", _said(_call(), _output())),
    ],
    "w21_item_ids_are_plain": [
        (_said(_answer("msg_1.2")), "input[1].id", _said(_answer("msg_1-2"))),
        (
            _said({"type": "web_search_call", "id": "w" * 65}),
            "input[1].id",
            _said({"type": "web_search_call", "id": "w" * 64}),
        ),
    ],
    "w21_item_ids_have_their_prefix": [
        (_said(_answer("item_1")), "input[1].id", _said(_answer())),
        (
            _said(_call(id="toolu_1"), _output()),
            "input[1].id",
            _said(_call(id="fc_1"), _output()),
        ),
        (_said(_thought("rx_1"), _answer()), "input[1].id", _said(_thought(), _answer())),
    ],
    "w21_reasoning_has_its_id": [
        (
            _said({"type": "reasoning", "summary": []}, _answer()),
            "input[1]",
            _said(_thought(), _answer()),
        )
    ],
    "w22_call_ids_are_short": [
        (
            _said(_call("c" * 65), _output("c" * 65)),
            "input[2].call_id",
            _said(_call("c" * 64), _output("c" * 64)),
        )
    ],
    "w23_reasoning_is_followed": [
        (_said(_thought()), "input[1]", _said(_thought(), _answer())),
        (_said(_thought(), USER, _answer()), "input[1]", _said(_thought(), _answer(), USER)),
        (
            _said(_thought(), _output(), previous_response_id="resp_1"),
            "input[1]",
            _said(_thought(), _thought("rs_2"), _call(id="fc_1"), _output()),
        ),
        (
            _said(_thought(), _answer(None)),
            "input[1]",
            _said(_thought(encrypted_content="x"), _answer(None), store=False),
        ),
    ],
    "w24_calls_keep_their_reasoning": [
        (
            _said(_thought(), _answer(), USER, _call(id="fc_1"), _output()),
            "input[4].id",
            _said(_thought(), _answer(), USER, _call(), _output()),
        )
    ],
    "w25_reasoning_is_sealed": [
        (
            _said(_thought(), _answer(), store=False),
            "input[1]",
            _said(_thought(encrypted_content="x"), _answer(), store=False),
        ),
        (
            _said(_thought(encrypted_content=""), _answer(), store=False),
            "input[1]",
            _said(_thought(), _answer(), store=True),
        ),
    ],
    "w28_item_ids_are_unique": [
        (_said(_answer(), _answer()), "input[2].id", _said(_answer(), _answer("msg_2"))),
    ],
    "w29_calls_are_answered": [
        (_said(_call()), "input[1]", _said(_call(), _output())),
        (
            _said(_custom("custom_tool_call")),
            "input[1]",
            _said(_custom("custom_tool_call"), _output()),  # paired by call_id, whatever the type
        ),
        (_said(_call()), "input[1]", _said(_call() | {"async": True})),
        (_said(_call()), "input[1]", _said(_call(), {"id": "fco_1"})),
    ],
    "w29_outputs_have_calls": [
        (_said(_output()), "input[1]", _said(_output(), previous_response_id="resp_1")),
        (_said(_output()), "input[1]", _said(_output(), conversation="conv_1")),
        (_said(_output()), "input[1]", _said(_output(), prompt={"id": "pmpt_1"})),
        (_said(_output()), "input[1]", _said({"type": "item_reference", "id": "fc"}, _output())),
        (_said(_output()), "input[1]", _said({"id": "fc_1"}, _output())),
        (_said(_output()), "input[1]", _said({"type": "compaction"}, _output())),
    ],
    "w29_built_in_calls_are_answered": [
        (
            _said(_custom("shell_call")),
            "input[1]",
            _said(_custom("shell_call"), _custom("shell_call_output", output=[])),
        ),
        (
            _said(_custom("local_shell_call", id="lsh_1")),
            "input[1]",
            _said(
                _custom("local_shell_call", id="lsh_1"),
                {"type": "local_shell_call_output", "id": "c", "output": ""},
            ),
        ),
    ],
    "w29_built_in_outputs_have_calls": [
        (
            _said(_custom("computer_call_output")),
            "input[1]",
            _said(_custom("computer_call", id="cu_1"), _custom("computer_call_output")),
        ),
        (
            _said({"type": "mcp_approval_response", "approval_request_id": "mcpr_1"}),
            "input[1]",
            _said(
                {"type": "mcp_approval_request", "id": "mcpr_1"},
                {"type": "mcp_approval_response", "approval_request_id": "mcpr_1"},
            ),
        ),
    ],
    "w30_people_say_input": [
        (
            _said(_user(type="text", text="Hi")),
            "input[1].content[0].type",
            _said(_user(type="input_text", text="Hi")),
        ),
        (
            _said({"role": "developer", "content": [{"type": "input_audio"}]}),
            "input[1].content[0].type",
            _said({"role": "developer", "content": "Hi"}),
        ),
    ],
    "w30_the_model_says_output": [
        (
            _said(_answer(kind="input_text")),
            "input[1].content[0].type",
            _said(_answer(), {"role": "assistant", "content": [{"type": "refusal"}]}),
        )
    ],
    "w31_outputs_are_text_images_or_files": [
        (_said(_call(), _output("c", {"a": 1})), "input[2].output", _said(_call(), _output())),
        (
            _said(_call(), _output("c", [{"type": "input_audio"}])),
            "input[2].output[0].type",
            _said(_call(), _output("c", [_image("https://example.com/a.png")])),
        ),
    ],
    "w31_outputs_have_no_error": [
        (
            _said(_call(), _output(error="x")),
            "input[2].error",
            _said(_call(), _output(status="incomplete")),
        )
    ],
    "w32_phases_are_known": [
        (
            _said({**_answer(), "phase": "first"}),
            "input[1].phase",
            _said({**_answer(), "phase": "commentary"}, {**_answer("msg_2"), "phase": None}),
        )
    ],
    "w36_tools_are_flat": [
        (
            _said(tools=[{"type": "function", "function": {"name": "f"}}]),
            "tools[0].function",
            _said(tools=[{"type": "function", "name": "f"}]),
        )
    ],
    "w36_settings_have_their_own_names": [
        (_said(max_tokens=99), "max_tokens", _said(max_output_tokens=99)),
        (_said(response_format={"type": "text"}), "response_format", _said(text={})),
    ],
    "w121_choices_need_tools": [
        (
            _said(tool_choice="auto"),
            "tool_choice",
            _said(tool_choice="auto", tools=[{"type": "function", "name": "f"}]),
        ),
        (
            _said(parallel_tool_calls=False),
            "parallel_tool_calls",
            _said(
                {"type": "additional_tools", "role": "developer", "tools": []},
                parallel_tool_calls=False,
            ),
        ),
    ],
    "w39_argument_names_are_short": [
        (
            _said(_call(arguments=LONG), _output()),
            "input[1].arguments",
            _said(_call(arguments=SHORT), _output()),
        )
    ],
    "w109_fields_are_known": [
        (_said(client_metadata={"id": "1"}), "client_metadata", _said(metadata={"id": "1"}))
    ],
    "w12_reasoning_models_take_no_sampling": [
        (_said(temperature=0), "temperature", _said(temperature=1)),
        (
            _said(top_p=0.5, reasoning={"effort": "low"}),
            "top_p",
            _said(top_p=0.5, reasoning={"effort": "none"}),
        ),
    ],
    "w12_efforts_are_known": [
        (
            _said(reasoning={"effort": "minimal"}),
            "reasoning.effort",
            _said(reasoning={"effort": "low"}),
        )
    ],
    "i5_call_ids_are_unique": [
        (
            _said(_call(), _call(), _output()),
            "input[2].call_id",
            _said(_call(), _call("d"), _output(), _output("d")),
        )
    ],
    "i8_calls_have_one_output": [
        (_said(_call(), _output(), _output()), "input[3].call_id", _said(_call(), _output()))
    ],
}
OPENAI = dragoman.provider("openai")
BOOK = Book(
    "openai-responses",
    ROWS,
    TARGET,
    {
        "w12_reasoning_models_take_no_sampling": REASONER,
        "w12_efforts_are_known": REASONER,
        "shape_model_is_listed": OPENAI.target("gpt-7", "openai-responses"),
        "w109_fields_are_known": TARGET.with_flags({"fields.refused": ("client_metadata",)}),
        "shape_answers_have_their_type": LLAMA,
        "shape_reasoning_is_readable": LLAMA,
    },
)
# Rules that depend on the host.
OPENAIS = (
    "limit_output_tokens", "w21_item_ids_are_plain", "w21_item_ids_have_their_prefix",
    "w21_reasoning_has_its_id", "w22_call_ids_are_short", "w23_reasoning_is_followed",
    "w24_calls_keep_their_reasoning", "w25_reasoning_is_sealed", "w28_item_ids_are_unique",
)  # fmt: skip


@pytest.mark.parametrize("name", OPENAIS)
def test_other_hosts_are_less_strict(name: str) -> None:
    """Hosts that don't look up stored items accept what OpenAI rejects."""
    for wrong, _, _ in ROWS[name]:
        assert BOOK.found(name, wrong, LOOSE) == []


def test_a_host_may_accept_response_format() -> None:
    """A host may accept Chat's `response_format` as well as `text.format`."""
    body = _said(response_format={"type": "json_object"})
    name = "w36_settings_have_their_own_names"
    assert BOOK.found(name, body) == ["response_format"]
    assert BOOK.found(name, body, LLAMA) == []


def test_a_host_may_accept_audio() -> None:
    """The target's flags decide which media a host accepts."""
    body = _said(_user(type="input_audio"))
    assert BOOK.found("w30_people_say_input", body, LOOSE) == []
    assert BOOK.found("w30_people_say_input", body, LOOSE.with_flags({"media.kinds": None})) == []


@pytest.mark.parametrize(
    ("model", "body"),
    [
        ("o4-mini", _said(reasoning={"effort": "minimal"})),
        ("gpt-4o", _said(reasoning={"effort": "low"})),
        ("gpt-5", _said(temperature=0.5)),
        ("gpt-5.2", _said(temperature=0.5, reasoning={"effort": "low"})),
    ],
)
def test_unsupported_settings_of_a_model_are_violations(model: str, body: dict[str, Any]) -> None:
    """Settings that a model doesn't support are violations if the model is known (W12)."""
    target = dragoman.provider("openai").target(model, "openai-responses")
    assert {violation.rule for violation in RULEBOOK.check(body, target)} == {"W12"}
    assert RULEBOOK.check(body) == []
