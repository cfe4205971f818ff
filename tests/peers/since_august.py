"""What users reported to other projects since August 2026, as seen in November 2026."""

from __future__ import annotations

from typing import Any

import dragoman
from dragoman import FinishReason, Message, model
from dragoman.model.roles import Role
from tests.peers.claims import has, is_finished, is_valid, lacks, reports, shows
from tests.peers.rows import Answer, Outcome, Request, Row, Stream

_CHAT_HOSTS = ("openai-chat", "deepseek:deepseek-v4-flash", "openai-compatible:m")
_FUNCTION = {"name": "f", "description": "Does it.", "parameters": {
    "type": "object", "properties": {"a": {"type": "integer"}}}}  # fmt: skip


def _responses(*items: dict[str, Any], **fields: Any) -> Request:
    return Request("openai-responses", {"model": "m", "input": [
        {"role": "user", "content": "Go on."}, *items], **fields})  # fmt: skip


def _call(call_id: str = "call_1") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": '{"a": 1}'}


def _output(call_id: str = "call_1") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "Done."}


def _one_assistant_message(outcome: Outcome) -> None:
    """What the model said and called in a turn is one message."""
    assert outcome.error is None, outcome.error
    said = [each for each in outcome.body["messages"] if each["role"] == "assistant"]
    assert len(said) == 1
    assert said[0]["content"]
    assert said[0]["tool_calls"]


def _results_have_ids(outcome: Outcome) -> None:
    """Every result has the id of a call before it, which is not empty."""
    messages = outcome.body["messages"]
    called = [call["id"] for each in messages for call in each.get("tool_calls") or ()]
    answered = [each["tool_call_id"] for each in messages if each["role"] == "tool"]
    assert answered == called
    assert all(called)


def _calls_with(arguments: dict[str, Any]) -> Any:
    """The front's client sees one call with these arguments."""

    def claim(outcome: Outcome) -> None:
        for each in (outcome, outcome.whole):
            if each is not None:
                assert each.seen is not None
                assert [call.arguments for call in each.seen.message.tool_calls] == [arguments]

    return claim


def _shows_thinking(*texts: str) -> Any:
    """The front's client can read the thinking, or a loss says that its dialect has none."""

    def claim(outcome: Outcome) -> None:
        for each in (outcome, outcome.whole):
            if each is not None:
                assert each.seen is not None
                read = each.seen.message.thinking or ""
                assert all(text in read for text in texts) or "hinking" in each.reports

    return claim


def _is_no_visible_text(outcome: Outcome) -> None:
    """What was thought is not among the texts that the model is said to have said."""
    assert outcome.error is None, outcome.error
    for item in outcome.body["input"]:
        if item.get("role") == Role.ASSISTANT.value:
            assert "secretly" not in str(item.get("content"))


_REASONED: dict[str, Any] = {
    "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [
            {"type": "reasoning_text", "text": "Seven times eight."}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "56", "annotations": []}]},
    ],
    "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
}  # fmt: skip
_CALLED = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f"}
_EVENTS = (
    {"type": "response.created", "sequence_number": 0, "response": {
        "id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress",
        "model": "m", "output": []}},
    {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0,
     "item": {**_CALLED, "arguments": "", "status": "in_progress"}},
)  # fmt: skip
_ENDED = (
    {"type": "response.output_item.done", "sequence_number": 3, "output_index": 0,
     "item": {**_CALLED, "arguments": '{"a": 5}', "status": "completed"}},
    {"type": "response.completed", "sequence_number": 4, "response": {
        "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m",
        "output": [{**_CALLED, "arguments": '{"a": 5}', "status": "completed"}],
        "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}}},
)  # fmt: skip
_DONE = {"type": "response.function_call_arguments.done", "sequence_number": 2,
         "output_index": 0, "item_id": "fc_1", "arguments": '{"a": 5}'}  # fmt: skip
_THOUGHT = {"type": "thinking", "thinking": "secretly", "signature": "c2ln"}
_PATCH = {"type": "custom", "name": "apply_patch", "description": "Edits files.",
          "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.*/"}}  # fmt: skip


def _claude(*messages: dict[str, Any], **fields: Any) -> Request:
    return Request("anthropic", {"model": "m", "max_tokens": 99, "messages": [
        {"role": "user", "content": "Go on."}, *messages], **fields})  # fmt: skip


_ANSWERED = {"role": "user", "content": [
    {"type": "tool_result", "tool_use_id": "c", "content": "Done."}]}  # fmt: skip
_USED = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}
_CALLS: list[dict[str, Any]] = [
    {"index": 0, "id": f"call_{number}", "type": "function",
     "function": {"name": "f", "arguments": f'{{"a": {number}}}'}}
    for number in (1, 2)
]  # fmt: skip


def _delta(**delta: Any) -> dict[str, Any]:
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [
        {"index": 0, "delta": delta, "finish_reason": None}]}  # fmt: skip


def _two_calls(outcome: Outcome) -> None:
    """Calls with ids of their own are two calls, whatever their index."""
    assert outcome.seen is not None
    found = [call.arguments for call in outcome.seen.message.tool_calls]
    assert found == [{"a": 1}, {"a": 2}]


def _says_that_it_failed(outcome: Outcome) -> None:
    """The result is marked in the wire's own way, or a loss says that it can't be."""
    assert outcome.error is None, outcome.error
    assert "No such file." in outcome.text
    is_marked = '"error"' in outcome.text or '"status": "incomplete"' in outcome.text
    assert is_marked or "is_error" in outcome.reports


def _is_no_success(outcome: Outcome) -> None:
    """The client is told that something is missing."""
    assert outcome.seen is not None
    assert outcome.seen.finish is not FinishReason.STOP or "finish" in outcome.reports


def _comes_back_sealed(outcome: Outcome) -> None:
    """The client sends what it got, and the provider gets what it made."""
    assert outcome.read is not None
    assert outcome.seen is not None
    asked = [Message.user("Go on."), outcome.seen.message, Message.user("And now?")]
    client = dragoman.dialect(outcome.target)
    sent = client.encode_request(model.Request(model="m", messages=tuple(asked)))
    read = client.decode_request(sent.to_bytes(), path=sent.path)
    encoded = dragoman.dialect("openai-responses").encode_request(read)
    sealed = [item for item in encoded.body["input"] if item.get("type") == "reasoning"]
    assert [item["encrypted_content"] for item in sealed] == ["gAAA1"]
    assert sealed[0]["id"] == "rs_1"


ROWS = (
    Row(
        "A remark and the calls after it are one assistant message in Chat",
        "farion1231/cc-switch#6529 (2026-08-17)",
        _responses(
            {"type": "reasoning", "id": "rs_1", "summary": [
                {"type": "summary_text", "text": "Update the file."}]},
            {"type": "message", "role": "assistant", "content": "Part 1 is written."},
            _call(), _output(),
        ),
        (_one_assistant_message, is_valid),
        _CHAT_HOSTS,
    ),
    Row(
        "A result without its call is no tool message in Chat",
        "farion1231/cc-switch#7196 (2026-09-07)",
        _responses(_output("gone"), {"role": "user", "content": "And now?"}),
        (has("And now?"), lacks('"role": "tool"'), reports("not in the conversation"), is_valid),
        _CHAT_HOSTS,
    ),
    Row(
        "Calls with an empty id get one, and their results the same",
        "farion1231/cc-switch#5001 (2026-09-06)",
        _responses(_call(""), _output("")),
        (_results_have_ids, is_valid),
        _CHAT_HOSTS,
    ),
    Row(
        "A tool that Chat doesn't have is reported, not dropped in silence",
        "farion1231/cc-switch#6615 (2026-08-19)",
        _responses(tools=[{"type": "file_search", "vector_store_ids": ["vs_1"]}]),
        (lacks("file_search"), reports("tools[0]")),
        (*_CHAT_HOSTS, "ollama"),
    ),
    Row(
        "An effort beside a summary is an effort alone in Chat",
        "BerriAI/litellm#39354 (2026-09-20)",
        _responses(reasoning={"effort": "high", "summary": "detailed"}),
        (has('"reasoning_effort": "high"'), reports("thinking.summary"), is_valid),
        ("openai-chat", "openai:gpt-5"),
    ),
    Row(
        "An effort beside a summary is a word in Ollama",
        "BerriAI/litellm#39354 (2026-09-20)",
        _responses(reasoning={"effort": "high", "summary": "detailed"}),
        (has('"think": "high"'), reports("thinking.summary"), is_valid),
        ("ollama",),
    ),
    Row(
        "Reasoning without a summary can be read by the clients of other dialects",
        "BerriAI/litellm#40654 (2026-09-11)",
        Answer("openai-responses", _REASONED),
        (_shows_thinking("Seven times eight."), shows("56")),
    ),
    Row(
        "Thinking that another provider sealed is never sent on as it is",
        "anomalyco/opencode#44135 (2026-08-22)",
        _responses(
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA1"},
            {"type": "message", "role": "assistant", "content": "Yes."},
            {"role": "user", "content": "And now?"},
        ),
        (lacks("gAAA1"), reports("messages[1]"), is_valid),
        ("openai-chat", "anthropic", "gemini", "ollama"),
    ),
    Row(
        "Codex's free-text tools are functions where a host has no others",
        "router-for-me/CLIProxyAPI#5753 (2026-09-11)",
        _responses(
            {"type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch",
             "input": "*** Begin Patch"},
            {"type": "custom_tool_call_output", "call_id": "call_1", "output": "Done."},
            tools=[_PATCH],
        ),
        (has("apply_patch", "*** Begin Patch"), lacks('"custom"'), reports("free-text"), is_valid),
        ("deepseek:deepseek-v4-flash", "openai-compatible:m", "anthropic", "gemini"),
    ),
    Row(
        "The key of the prompt cache goes from Chat to Responses, and back",
        "QuantumNous/new-api#6538 (2026-08-14)",
        Request("openai-chat", {"model": "m", "prompt_cache_key": "k1",
                                "messages": [{"role": "user", "content": "Hi"}]}),
        (has('"prompt_cache_key": "k1"'), is_valid),
        ("openai-responses", "openai-chat"),
    ),
    Row(
        "Thinking of earlier turns goes back to the models that need it",
        "CommandCodeAI/command-code#754 (2026-08-27), maximhq/bifrost#5887",
        Request("openai-chat", {"model": "m", "messages": [
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": None, "reasoning_content": "Let me look.",
             "tool_calls": [{"id": "call_1", "type": "function",
                             "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "Done."},
        ], "tools": [{"type": "function", "function": _FUNCTION}]}),
        (has('"reasoning_content": "Let me look."'), is_valid),
        ("openai-chat", "deepseek:deepseek-v4-flash"),
    ),
    Row(
        "Claude's thinking is never text that the model is said to have said",
        "BerriAI/litellm#26916 (2026-08-24)",
        _claude({"role": "assistant", "content": [_THOUGHT, {"type": "text", "text": "Yes."}]},
                {"role": "user", "content": "And now?"}),
        (_is_no_visible_text, is_valid),
        ("openai-responses",),
    ),
    Row(
        "Arguments that come with the last event only are not lost",
        "BerriAI/litellm#27144, lidge-jun/opencodex#4652 (2026-09)",
        Stream("openai-responses", (*_EVENTS, _DONE, *_ENDED)),
        (_calls_with({"a": 5}), is_finished),
    ),
    Row(
        "Arguments that come with the finished item only are not lost",
        "lidge-jun/opencodex#4652 (2026-09)",
        Stream("openai-responses", (*_EVENTS, *_ENDED)),
        (_calls_with({"a": 5}), is_finished),
    ),
    Row(
        "A result of the provider's own tool without its call breaks no request",
        "anthropics/claude-code#84783 (2026-08-07)",
        _claude({"role": "assistant", "content": [
                    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                    {"type": "text", "text": "Yes."}]},
                {"role": "user", "content": "And now?"}),
        (has("And now?"), is_valid),
        ("openai-chat", "openai-responses", "gemini", "ollama"),
    ),
    Row(
        "A limit of the answer reaches Ollama",
        "maximhq/bifrost#6132 (2026-09)",
        Request("openai-chat", {"model": "m", "max_completion_tokens": 50,
                                "messages": [{"role": "user", "content": "Hi"}]}),
        (has('"num_predict": 50'), is_valid),
        ("ollama",),
    ),
    Row(
        "Claude's cache hints reach OpenRouter",
        "maximhq/bifrost#6290 (2026-09)",
        _claude({"role": "assistant", "content": "Yes."},
                {"role": "user", "content": [{"type": "text", "text": "And now?",
                                              "cache_control": {"type": "ephemeral"}}]}),
        (has('"cache_control": {"type": "ephemeral"}'), is_valid),
        ("openrouter:anthropic/claude-sonnet-4.5",),
    ),
    Row(
        "System messages among the others, as Claude Code sends them, are kept",
        "farion1231/cc-switch#3278, deepseek-ai/awesome-deepseek-integration#639",
        _claude({"role": "system", "content": "A skill was added."},
                {"role": "user", "content": "And now?"}),
        (has("A skill was added.", "And now?"), is_valid),
        ("openai-chat", "openai-responses", "gemini", "ollama", "openai-compatible:m",
         "perplexity:sonar"),
    ),
    Row(
        "Two calls that a proxy sends with one index stay two calls",
        "lich0821/ccNexus#89, diegosouzapw/OmniRoute#686",
        Stream("openai-chat", (
            _delta(role="assistant", tool_calls=_CALLS[:1]), _delta(tool_calls=_CALLS[1:]),
            {**_delta(), "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
            "[DONE]",
        )),
        (_two_calls, is_finished),
    ),
    Row(
        "Tools whose loading is deferred go to Google without that field",
        "router-for-me/CLIProxyAPI#1375",
        _claude(tools=[{"name": "f", "input_schema": {"type": "object", "properties": {}},
                        "defer_loading": True}]),
        (lacks("defer_loading", "deferLoading"), reports("defer_loading"), is_valid),
        ("gemini",),
    ),
    Row(
        "An empty text with a cache hint is left out for Anthropic",
        "anthropics/claude-code#62379",
        Request("openai-chat", {"model": "m", "messages": [{"role": "user", "content": [
            {"type": "text", "text": "Hi"},
            {"type": "text", "text": "", "cache_control": {"type": "ephemeral"}},
        ]}]}),
        (lacks('"text": ""'), reports("blank text"), is_valid),
        ("anthropic",),
    ),
    Row(
        "A system prompt of white space is left out for Anthropic",
        "anomalyco/opencode#35101",
        Request("openai-chat", {"model": "m", "messages": [
            {"role": "system", "content": " \n"}, {"role": "user", "content": "Hi"}]}),
        (lacks('"system"', "(no text)"), reports("instructions"), is_valid),
        ("anthropic",),
    ),
    Row(
        "Pictures in results become Claude's own blocks",
        "langchain-ai/langchain-google#1591",
        _responses(_call(), {"type": "function_call_output", "call_id": "call_1", "output": [
            {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"}]}),
        (has('"media_type": "image/png"', '"tool_result"'), is_valid),
        ("anthropic", "vertex:claude-opus-5"),
    ),
    Row(
        "Calls of other models have the signature that Vertex takes instead of one",
        "pydantic/pydantic-ai#3881",
        _claude({"role": "assistant", "content": [_USED]}, _ANSWERED),
        (has("skip_thought_signature_validator"), is_valid),
        ("vertex:gemini-3-pro-preview", "google:gemini-3-pro-preview"),
    ),
    Row(
        "Tools in a namespace are functions for models that have no namespaces",
        "openai/codex#32318, Wei-Shaw/sub2api#3989",
        _responses(tools=[{"type": "namespace", "name": "mcp__files", "description": "Files.",
                           "tools": [{"type": "function", **_FUNCTION}]}]),
        (has('"function"', "Does it."), lacks('"namespace"'), is_valid),
        ("openai-chat", "openai-compatible:m", "openrouter:z-ai/glm-5"),
    ),
    Row(
        "The name of Chat's field for thinking is never an id in Responses",
        "pydantic/pydantic-ai#8020 (2026-09-02)",
        Request("openai-chat", {"model": "m", "messages": [
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": "Yes.", "reasoning_content": "Let me look."},
            {"role": "user", "content": "And now?"},
        ]}),
        (lacks('"id": "reasoning'), has("Yes."), is_valid),
        ("openai-responses",),
    ),
    Row(
        "A result that failed is told apart from one that didn't",
        "Wei-Shaw/sub2api#6923 (2026-09-09)",
        _claude({"role": "assistant", "content": [_USED]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c",
                                              "content": "No such file.", "is_error": True}]}),
        (_says_that_it_failed, is_valid),
        ("openai-chat", "openai-responses", "gemini", "ollama"),
    ),
    Row(
        "A refusal can be read",
        "Wei-Shaw/sub2api#6923 (2026-09-09)",
        Answer("openai-responses", {**_REASONED, "output": [
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
             "content": [{"type": "refusal", "refusal": "I can't help with that."}]}]}),
        (has("I can't help with that."),),
    ),
    Row(
        "A response that was cancelled is no success",
        "Wei-Shaw/sub2api#6923 (2026-09-09)",
        Answer("openai-responses", {**_REASONED, "status": "cancelled", "output": []}),
        (_is_no_success,),
    ),
    Row(
        "Sealed reasoning comes back to OpenAI byte by byte, whatever the client speaks",
        "BerriAI/litellm#40288 (2026-09)",
        Answer("openai-responses", {**_REASONED, "output": [
            {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA1", "summary": [
                {"type": "summary_text", "text": "Counting."}]},
            *_REASONED["output"][1:]]}),
        (_comes_back_sealed,),
        ("anthropic", "gemini", "openai-chat"),
    ),
    Row(
        "A message with calls alone has no empty list as its content",
        "0xPlaygrounds/rig#1362",
        _claude({"role": "assistant", "content": [_USED]}, _ANSWERED),
        (has("tool_calls"), lacks('"content": []'), is_valid),
        ("openai-chat", "vllm:Qwen/Qwen3-8B", "openai-compatible:m"),
    ),
)  # fmt: skip
