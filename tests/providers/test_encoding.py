"""What each provider is really sent: spellings, fields and forms that only it has."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman import (
    File,
    Message,
    Request,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    translate,
)
from dragoman.model import CacheHint, Origin, Sampling, ThinkingConfig, ToolChoice
from dragoman.wire.encoded import Encoded

OWN = Origin(dialect="openai-chat")


def sent(request: Request, target: str) -> Encoded:
    """The body for `provider:model`, in the dialect that it speaks."""
    name, _, model = target.partition(":")
    found = dragoman.provider(name).target(model or None)
    return dragoman.dialect(found.dialect).encode_request(request, found)


def asked(*messages: Message, **fields: Any) -> Request:
    """A request with these messages, or a greeting."""
    return Request(model="m", messages=messages or (Message.user("Hi"),), **fields)


@pytest.mark.parametrize(
    ("target", "field"),
    [("openai:gpt-5", "max_completion_tokens"), ("openai:gpt-4o", "max_completion_tokens"),
     ("mistral:mistral-large-latest", "max_tokens"), ("deepseek:deepseek-chat", "max_tokens"),
     ("openai-compatible:x", "max_tokens"), ("groq:x", "max_completion_tokens")],
)  # fmt: skip
def test_the_limit_has_the_name_that_is_taken(target: str, field: str) -> None:
    """A request made by hand gets the best name there is (W12)."""
    body = sent(asked(sampling=Sampling(max_tokens=9)), target).body
    assert body[field] == 9
    assert len({"max_tokens", "max_completion_tokens"} & body.keys()) == 1


def test_the_token_limit_keeps_its_field_unless_refused() -> None:
    """The token limit is sent in the field it came in, unless the target refuses that field.

    Renaming it is no loss.
    """
    for spelled in ("max_tokens", "max_completion_tokens"):
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], spelled: 9}
        for target in ("groq", "openai-compatible", "openai:gpt-4o", "openai-chat"):
            kept = translate(body, source="openai-chat", target=target, strict=True).body
            assert kept.get(spelled) == 9
        strict = translate(body, source="openai-chat", target="openai:o3", strict=True).body
        assert strict["max_completion_tokens"] == 9


@pytest.mark.parametrize(
    ("target", "written"),
    [
        ("openai:gpt-5", {"reasoning_effort": "high"}),
        ("openrouter:x", {"reasoning": {"effort": "high", "enabled": True}}),
        ("deepseek:deepseek-v4-pro",
         {"reasoning_effort": "high", "thinking": {"type": "enabled"}}),
        ("vllm:x", {"reasoning_effort": "high", "chat_template_kwargs": {"enable_thinking": True}}),
        ("groq:llama-3.3-70b-versatile", {}),
        ("mistral:mistral-medium-latest", {"reasoning_effort": "high"}),
        ("anthropic:claude-sonnet-4-5",
         {"thinking": {"type": "enabled", "budget_tokens": 16384}}),
        ("anthropic:claude-opus-4-8",
         {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        ("anthropic:claude-3-5-haiku-latest", {}),
    ],
)  # fmt: skip
def test_thinking_is_requested_in_each_providers_form(target: str, written: dict[str, Any]) -> None:
    """The same thinking setting is written in the form that each target accepts."""
    body = sent(asked(thinking=ThinkingConfig(enabled=True, effort="high")), target).body
    fields = ("reasoning_effort", "reasoning", "thinking", "chat_template_kwargs", "output_config")
    assert {name: body[name] for name in fields if name in body} == written


def test_a_budget_leaves_room_for_the_answer() -> None:
    """Without a token limit in the request.

    The limit that is sent covers the thinking budget and the answer (W50, W59).
    """
    body = sent(asked(thinking=ThinkingConfig(effort="high")), "anthropic:claude-haiku-4-5").body
    assert body["max_tokens"] > body["thinking"]["budget_tokens"] + 1024


def test_a_template_switch_becomes_another_hosts_setting() -> None:
    """A chat template's thinking switch becomes OpenRouter's setting.

    Other template arguments are a loss.
    """
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "chat_template_kwargs": {"enable_thinking": False, "custom": 1},
    }
    assert translate(body, source="openai-chat", target="vllm:x", strict=True).body == {
        **body, "model": "x"
    }  # fmt: skip
    assert translate(body, source="openai-chat", target="openai-chat").body == body
    routed = translate(body, source="openai-chat", target="openrouter:x")
    assert routed.body["reasoning"] == {"enabled": False}
    assert [loss.path for loss in routed.losses] == ["thinking.extras"]
    claude = translate(body, source="openai-chat", target="anthropic:claude-sonnet-4-5").body
    assert claude["thinking"] == {"type": "disabled"}


@pytest.mark.parametrize(
    ("target", "written"),
    [
        ("groq:openai/gpt-oss-20b", {"reasoning": "hm"}),
        ("groq:llama-3.3-70b-versatile", {}),
        ("deepseek:deepseek-v4-pro", {"reasoning_content": "hm"}),
        ("openrouter:x", {"reasoning_content": "hm"}),
        ("vllm:x", {"reasoning_content": "hm"}),
        ("openai:gpt-5", {}),
        ("xai:grok-4-fast", {"reasoning_content": "hm"}),
    ],
)
def test_thinking_is_sent_in_the_field_that_the_target_accepts(
    target: str, written: dict[str, Any]
) -> None:
    """`reasoning_content` is sent unchanged.

    In another field, or left out with a loss (W109, W110).
    """
    thought = Message(Role.ASSISTANT, (Thinking("hm", origin=OWN), Text("So.")))
    encoded = sent(asked(Message.user("Hi"), thought, Message.user("And?")), target)
    message = encoded.body["messages"][1]
    assert {key: message[key] for key in message if key not in ("role", "content")} == written
    assert len(encoded.losses) == (0 if written else 1)


def test_mistral_s_thinking_is_content() -> None:
    """Other hosts' thinking fields become a content part for Mistral.

    And nothing else is sent with it.
    """
    thought = Message(Role.ASSISTANT, (Thinking("hm", origin=OWN), Text("So.")), "Ann")
    encoded = sent(asked(Message.user("Hi"), thought, Message.user("And?")), "mistral:x")
    assert encoded.body["messages"][1] == {
        "role": "assistant",
        "name": "Ann",
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
            {"type": "text", "text": "So."},
        ],
    }


def test_sealed_thinking_is_sent_only_where_a_field_holds_it() -> None:
    """OpenRouter's details carry sealed thinking; for targets without such a field it is a loss."""
    sealed = Message(Role.ASSISTANT, (Thinking("hm", signature="s", origin=OWN), Text("So.")))
    request = asked(Message.user("Hi"), sealed, Message.user("And?"))
    routed = sent(request, "openrouter:x")
    assert routed.body["messages"][1]["reasoning_details"][0]["signature"] == "s"
    assert routed.losses == ()
    assert [loss.path for loss in sent(request, "xai:grok-3-mini").losses] == [
        "messages[1].parts[0]"
    ]


def test_deepseek_gets_thinking_with_every_answer_of_a_tool_loop() -> None:
    """Also with those that had none (C2); not where thinking is off."""
    called = Message.assistant(tool_calls=[ToolCall.create("c1", "f", {})])
    request = asked(Message.user("Hi"), called, Message.tool("c1", "x"))
    body = sent(request, "deepseek:deepseek-v4-pro").body
    assert body["messages"][1]["reasoning_content"] == ""
    off = sent(request.replace(thinking=ThinkingConfig(enabled=False)), "deepseek:deepseek-v4-pro")
    assert "reasoning_content" not in off.body["messages"][1]


def test_cache_hints_go_where_they_are_honoured() -> None:
    """To OpenRouter as Anthropic has them (C4); OpenAI refuses others' marks (W17)."""
    marked = Message(Role.USER, (Text("Hi", cache=CacheHint("1h"), origin=Origin(dialect="x")),))
    routed = sent(asked(marked), "openrouter:x")
    assert routed.body["messages"][0]["content"] == [
        {"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    ]
    assert routed.losses == ()
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": routed.body["messages"][0]["content"], "extra_content": 1}
        ],
    }
    assert translate(body, source="openai-chat", target="openai-chat").body == body
    assert translate(body, source="openai-chat", target="openai").body == body  # users' reports
    strict = translate(body, source="openai-chat", target="openai:gpt-4o")  # for another model
    assert strict.body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    ]  # fmt: skip
    assert len(strict.losses) == 2


def test_mistral_has_its_own_words() -> None:
    """`any`, `random_seed`, addresses of documents, and ids of nine characters."""
    call = ToolCall.create("call_123456789", "f", {})
    request = asked(
        Message.user("Hi", File(data="aGk=", mime="application/pdf", name="a.pdf")),
        Message.assistant(tool_calls=[call]),
        Message.tool("call_123456789", "x"),
        tools=(ToolDefinition.create("f", "x", strict=False),),
        tool_choice=ToolChoice("required"),
        sampling=Sampling(seed=7),
    )
    body = sent(request, "mistral:x").body
    assert (body["tool_choice"], body["random_seed"]) == ("any", 7)
    assert body["messages"][0]["content"][1] == {
        "type": "document_url",
        "document_url": "data:application/pdf;base64,aGk=",
        "document_name": "a.pdf",
    }
    made = body["messages"][1]["tool_calls"][0]["id"]
    assert len(made) == 9
    assert body["messages"][2]["tool_call_id"] == made


def test_groq_is_sent_nothing_that_it_would_reject() -> None:
    """Unsupported fields, settings and names are dropped with a loss each.

    Nulls are dropped without (W109, W111).
    """
    body = {
        "model": "m", "store": True, "metadata": {"a": "b"}, "n": 2, "logprobs": True,
        "logit_bias": None, "temperature": 0, "made_up": 1,
        "messages": [{"role": "user", "name": "Ann", "content": "Hi", "odd": 1}],
    }  # fmt: skip
    encoded = translate(body, source="openai-chat", target="groq:llama-3.3-70b-versatile")
    assert encoded.body == {
        "model": "llama-3.3-70b-versatile",
        "temperature": 0,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    assert sorted(loss.path for loss in encoded.losses) == [
        "extras", "messages[0].extras", "messages[0].name", "sampling.choices",
        "sampling.logprobs", "service.labels", "state.store",
    ]  # fmt: skip
    assert not any("made_up" in loss.reason for loss in encoded.losses)


def test_the_end_of_a_stream_is_recognised_for_each_provider() -> None:
    """Perplexity sends no final marker; the request's context knows that (W9)."""
    stream = (
        b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":'
        b'[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}\n\n'
    )
    for target, is_complete in (("perplexity:sonar", True), ("groq:x", False)):
        context = sent(asked(), target).context
        decoder = dragoman.dialect("openai-chat").stream_decoder(context)
        decoder.feed(stream)
        decoder.close()
        assert decoder.is_complete is is_complete


@pytest.mark.parametrize(
    ("host", "body"),
    [
        ("openrouter:anthropic/claude-haiku-4.5", {"messages": [
            {"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}]}),
        ("openai:o3-mini", {"messages": [{"role": "user", "content": "Hi"}], "stop": ["Paris"]}),
        ("groq:llama-3.3-70b-versatile", {"messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ]},
            {"role": "tool", "tool_call_id": "call_1", "name": "f", "content": "done"}]}),
    ],
    ids=["openrouter", "o3-mini", "groq"],
)  # fmt: skip
def test_what_recordings_show_accepted_goes_out_as_it_came(host: str, body: Any) -> None:
    """Developer messages at OpenRouter, `stop` for o3-mini, a tool's name at Groq."""
    name, _, model = host.partition(":")
    body = {"model": model, **body}
    target = dragoman.provider(name).target(model, dialect="openai-chat")
    encoded = translate(body, source="openai-chat", target=target)
    assert encoded.body == body
    assert encoded.losses == ()
    assert encoded.repairs == ()
    assert [one for one in dragoman.check(body, target=target) if one.severity == "error"] == []
