"""What clients carry in fields that other projects added: signatures, cache hints, addresses."""

from __future__ import annotations

from typing import Any

from tests.peers.claims import comes_back, has, is_valid, lacks, reports, reports_nothing
from tests.peers.rows import Claim, Outcome, Request, Row

_HI: dict[str, Any] = {"role": "user", "content": "Hi"}
_CALL: dict[str, Any] = {
    "id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"},
}  # fmt: skip
_RESULT: dict[str, Any] = {"role": "tool", "tool_call_id": "call_1", "content": "done"}
_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "f", "description": "Works", "parameters": {"type": "object", "properties": {}},
    },
}  # fmt: skip
_CLAUDE, _GEMINI = "anthropic:claude-sonnet-4-5", "google:gemini-3-pro-preview"
_CHAT, _RESPONSES = "openai-chat", "openai-responses"

_THOUGHT = {"type": "thinking", "thinking": "Think.", "signature": "RXNnQg=="}
_REDACTED = {"type": "redacted_thinking", "data": "UmVk"}
_BLOCKS = [_THOUGHT, _REDACTED]
_SIGNED = {"thought_signature": "Q2lRQg=="}
_OF_GOOGLE = {"google": _SIGNED}
_EPHEMERAL = {"type": "ephemeral"}
_FOR_AN_HOUR = {"type": "ephemeral", "ttl": "1h"}


def _turn(call: dict[str, Any] | None = None, /, **fields: Any) -> Request:
    """A history in which the assistant has called a tool, and its message has these fields."""
    settings: dict[str, Any] = {
        key: fields.pop(key) for key in ("reasoning_effort", "store") if key in fields
    }
    said = {"role": "assistant", "content": None, "tool_calls": [call or _CALL], **fields}
    messages = [_HI, said, _RESULT]
    return Request(_CHAT, {"model": "m", "messages": messages, "tools": [_TOOL], **settings})


def _said(**fields: Any) -> Request:
    """A history in which the assistant has answered, and its message has these fields."""
    messages = [_HI, {"role": "assistant", "content": "Hello.", **fields}, _HI]
    return Request(_CHAT, {"model": "m", "messages": messages})


def _shown(*parts: dict[str, Any]) -> Request:
    return Request(_CHAT, {"model": "m", "messages": [{"role": "user", "content": [*parts]}]})


def _details(of: str, *entries: dict[str, Any], **fields: Any) -> Request:
    listed = [{**entry, "format": of, "index": entry.get("index", 0)} for entry in entries]
    return _turn(**fields, reasoning_details=listed)


def _begins_with(*blocks: dict[str, Any]) -> Claim:
    """Claude's answer begins with these blocks, and it goes on thinking."""

    def claim(outcome: Outcome) -> None:
        assert outcome.error is None, outcome.error
        assert outcome.body["messages"][1]["content"][: len(blocks)] == [*blocks]
        assert outcome.body.get("thinking", {}).get("type") != "disabled"

    return claim


def _signs(kind: str, signature: str) -> Claim:
    """Gemini gets the signature on the part of this kind."""

    def claim(outcome: Outcome) -> None:
        assert outcome.error is None, outcome.error
        [part] = [part for part in outcome.body["contents"][1]["parts"] if kind in part]
        assert part.get("thoughtSignature") == signature

    return claim


def _reasons(**item: Any) -> Claim:
    """The Responses API gets this reasoning item before the call."""

    def claim(outcome: Outcome) -> None:
        assert outcome.error is None, outcome.error
        at = next(n for n, each in enumerate(outcome.body["input"]) if "call_id" in each)
        assert outcome.body["input"][at - 1] == {"type": "reasoning", **item}

    return claim


def _caches(*paths: tuple[str | int, ...], hint: dict[str, Any] = _EPHEMERAL) -> Claim:
    """The hints are in these blocks, and nowhere else."""

    def claim(outcome: Outcome) -> None:
        assert outcome.error is None, outcome.error
        for path in paths:
            found = outcome.body
            for step in path:
                found = found[step]
            assert found["cache_control"] == hint
        assert outcome.text.count("cache_control") == len(paths)

    return claim


def _fetches(kind: str, address: str) -> Claim:
    """Gemini fetches a file of this type."""

    def claim(outcome: Outcome) -> None:
        assert outcome.error is None, outcome.error
        files = [part["fileData"] for part in outcome.body["contents"][0]["parts"][:1]]
        assert files == [{"mimeType": kind, "fileUri": address}]

    return claim


_CACHED_CHAT = Request(_CHAT, {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be brief.", "cache_control": _EPHEMERAL},
        {**_HI, "cache_control": _EPHEMERAL},
        {"role": "assistant", "content": "I call.", "tool_calls": [_CALL],
         "cache_control": _EPHEMERAL},
        {**_RESULT, "cache_control": _EPHEMERAL},
    ],
    "tools": [_TOOL],
})  # fmt: skip

ROWS = (
    Row(
        "LiteLLM's `thinking_blocks` are Claude's own thinking, and it goes on thinking",
        "BerriAI/litellm#15601 and openai/openai-agents-python#1704",
        _turn(thinking_blocks=_BLOCKS, reasoning_content="Think.", reasoning_effort="high"),
        (_begins_with(_THOUGHT, _REDACTED), lacks("thinking_blocks"), is_valid),
        (_CLAUDE, "vertex:claude-sonnet-4-5"),
    ),
    Row(
        "LiteLLM's `thinking_blocks` are sent back to Chat as they came",
        "BerriAI/litellm#15601",
        _turn(thinking_blocks=_BLOCKS, reasoning_content="Think.", reasoning_effort="high"),
        (comes_back,),
        (_CHAT,),
    ),
    Row(
        "Claude's signed thinking is no other provider's, and that is reported",
        "a control",
        _turn(thinking_blocks=_BLOCKS, reasoning_content="Think."),
        (lacks("RXNnQg", "thinking_blocks"), reports("messages[1].parts[0]"), is_valid),
        (_RESPONSES, _GEMINI, "ollama"),
    ),
    Row(
        "The blocks in `provider_specific_fields` count where the message has no others",
        "BerriAI/litellm#9255",
        _turn(provider_specific_fields={"thinking_blocks": _BLOCKS, "citations": None}),
        (_begins_with(_THOUGHT, _REDACTED), is_valid),
        (_CLAUDE,),
    ),
    Row(
        "Blocks that stand in both fields are sent once",
        "BerriAI/litellm#9255",
        _turn(thinking_blocks=_BLOCKS, provider_specific_fields={
            "thinking_blocks": _BLOCKS, "reasoning_content": "Think.",
        }),
        (_begins_with(_THOUGHT, _REDACTED, {"type": "tool_use", "id": "call_1", "name": "f",
                                            "input": {}}), is_valid),
        (_CLAUDE,),
    ),
    Row(
        "Malformed blocks are left out, and that is reported",
        "a control",
        _turn(thinking_blocks=[_THOUGHT, {"type": "thinking"}]),
        (lacks("RXNnQg"), reports("messages[1].extras"), is_valid),
        (_CLAUDE,),
    ),
    Row(
        "OpenRouter's details in Claude's format are Claude's own thinking",
        "reVrost/go-openrouter#56 and earendil-works/pi#9534",
        _details(
            "anthropic-claude-v1",
            {"type": "reasoning.text", "text": "Think.", "signature": "RXNnQg=="},
            {"type": "reasoning.encrypted", "data": "UmVk", "index": 1},
            reasoning="Think.", reasoning_effort="high",
        ),
        (_begins_with(_THOUGHT, _REDACTED), is_valid),
        (_CLAUDE,),
    ),
    Row(
        "A detail that has only the signature signs the text before it",
        "earendil-works/pi#9534",
        _details(
            "anthropic-claude-v1",
            {"type": "reasoning.text", "text": "Thi"},
            {"type": "reasoning.text", "text": "nk."},
            {"type": "reasoning.text", "signature": "RXNnQg=="},
            reasoning="Think.",
        ),
        (_begins_with(_THOUGHT), lacks("reasoning"), is_valid),
        (_CLAUDE,),
    ),
    Row(
        "Details are sent back to Chat as they came",
        "OpenRouterTeam/openrouter-examples#67",
        _details(
            "anthropic-claude-v1",
            {"type": "reasoning.text", "text": "Think.", "signature": "RXNnQg=="},
            {"type": "reasoning.text", "signature": "RXNnQg=="},
            reasoning="Think.",
        ),
        (comes_back,),
        (_CHAT,),
    ),
    Row(
        "An encrypted detail in Gemini's format is the signature of its call",
        "musistudio/claude-code-router#1081",
        _details(
            "google-gemini-v1",
            {"type": "reasoning.text", "text": "Think."},
            {"type": "reasoning.encrypted", "data": "Q2lRQg==", "id": "call_1"},
            reasoning="Think.",
        ),
        (_signs("functionCall", "Q2lRQg=="), has('"thought": true'), reports_nothing, is_valid),
        (_GEMINI, "vertex:gemini-3-pro-preview", "gemini"),
    ),
    Row(
        "An encrypted detail without an id is that of the first call",
        "OpenRouter, as recorded by charmbracelet/fantasy",
        _details("google-gemini-v1", {"type": "reasoning.encrypted", "data": "Q2lRQg=="}),
        (_signs("functionCall", "Q2lRQg=="), reports_nothing, is_valid),
        (_GEMINI,),
    ),
    Row(
        "An encrypted detail beside a text is the text's signature",
        "OpenRouter, as recorded by charmbracelet/fantasy",
        _said(reasoning_details=[
            {"type": "reasoning.encrypted", "data": "Q2lRQg==", "format": "google-gemini-v1"},
        ]),
        (_signs("text", "Q2lRQg=="), reports_nothing, is_valid),
        (_GEMINI,),
    ),
    Row(
        "Details in OpenAI's format are a reasoning item",
        "BerriAI/litellm#40364",
        _details(
            "openai-responses-v1",
            {"type": "reasoning.summary", "summary": "Sum."},
            {"type": "reasoning.encrypted", "data": "Z0FB", "id": "rs_1", "index": 1},
            reasoning="Sum.", store=False,
        ),
        (
            _reasons(summary=[{"type": "summary_text", "text": "Sum."}], id="rs_1",
                     encrypted_content="Z0FB"),
            is_valid,
        ),
        (_RESPONSES,),
    ),
    Row(
        "A reasoning item may have no summary",
        "BerriAI/litellm#40364",
        _details(
            "openai-responses-v1",
            {"type": "reasoning.encrypted", "data": "Z0FB", "id": "rs_1"}, store=False,
        ),
        (_reasons(summary=[], id="rs_1", encrypted_content="Z0FB"), is_valid),
        (_RESPONSES,),
    ),
    Row(
        "A summary whose item is stored in another account is left out, which is reported",
        "BerriAI/litellm#40364",
        _details(
            "openai-responses-v1",
            {"type": "reasoning.summary", "summary": "Sum.", "id": "rs_1"}, reasoning="Sum.",
        ),
        (lacks("rs_1", '"reasoning"'), reports("messages[1].parts[0]"), is_valid),
        (_RESPONSES,),
    ),
    Row(
        "Details of an unknown format are nobody else's",
        "a control",
        _details(
            "unknown", {"type": "reasoning.text", "text": "Think.", "signature": "RXNnQg=="},
        ),
        (lacks("RXNnQg"), reports("messages[1].parts[0]"), is_valid),
        (_CLAUDE, _GEMINI, _RESPONSES),
    ),
    Row(
        "Google's `extra_content` on a call is Gemini's signature",
        "intrafind/ihub-apps#2240 and earendil-works/pi#6733",
        _turn({**_CALL, "extra_content": _OF_GOOGLE}),
        (_signs("functionCall", "Q2lRQg=="), reports_nothing, is_valid),
        (_GEMINI, "vertex:gemini-3-pro-preview", "gemini"),
    ),
    Row(
        "Vertex names its `extra_content` after itself",
        "earendil-works/pi#6733",
        _turn({**_CALL, "extra_content": {"vertex": {"thought_signature": "Q2lRQg=="}}}),
        (_signs("functionCall", "Q2lRQg=="), reports_nothing, is_valid),
        (_GEMINI,),
    ),
    Row(
        "Google's `extra_content` on a message is the signature of its text",
        "Google's endpoint for OpenAI's clients",
        _said(extra_content=_OF_GOOGLE),
        (_signs("text", "Q2lRQg=="), reports_nothing, is_valid),
        (_GEMINI,),
    ),
    Row(
        "A signature in a call's `provider_specific_fields` is Gemini's",
        "BerriAI/litellm#16893",
        _turn({**_CALL, "provider_specific_fields": _SIGNED}),
        (_signs("functionCall", "Q2lRQg=="), reports_nothing, is_valid),
        (_GEMINI,),
    ),
    Row(
        "A signature in the function's `provider_specific_fields` is Gemini's, too",
        "BerriAI/litellm#16893",
        _turn({**_CALL, "function": {
            **_CALL["function"], "provider_specific_fields": _SIGNED,
        }}),
        (_signs("functionCall", "Q2lRQg=="), reports_nothing, is_valid),
        (_GEMINI,),
    ),
    Row(
        "A signature in a message's `provider_specific_fields` is that of its text",
        "BerriAI/litellm#16893",
        _said(provider_specific_fields={"thought_signatures": ["Q2lRQg=="]}),
        (_signs("text", "Q2lRQg=="), reports_nothing, is_valid),
        (_GEMINI,),
    ),
    Row(
        "A signature at the end of a call's id is Gemini's",
        "BerriAI/litellm#16895",
        Request(_CHAT, {"model": "m", "tools": [_TOOL], "messages": [
            _HI,
            {"role": "assistant", "content": "I call.",
             "tool_calls": [{**_CALL, "id": "call_1__thought__Q2lRQg=="}]},
            {**_RESULT, "tool_call_id": "call_1__thought__Q2lRQg=="},
        ]}),
        (_signs("functionCall", "Q2lRQg=="), is_valid),
        (_GEMINI,),
    ),
    *(
        Row(
            f"A signature {where} is sent back to Chat as it came",
            "skye-harris/hass_local_openai_llm#101",
            given,
            (comes_back,),
            (_CHAT,),
        )
        for where, given in (
            ("in a call's `extra_content`", _turn({**_CALL, "extra_content": _OF_GOOGLE})),
            ("in a call's own fields", _turn({**_CALL, "provider_specific_fields": _SIGNED})),
            ("in a message's `extra_content`", _said(extra_content=_OF_GOOGLE)),
            (
                "in a message's own fields",
                _said(provider_specific_fields={"thought_signatures": ["Q2lRQg=="]}),
            ),
            (
                "in a copy of its blocks",
                _turn(provider_specific_fields={"thinking_blocks": _BLOCKS, "citations": None}),
            ),
        )
    ),
    Row(
        "Gemini's signatures are no other provider's, and that is reported",
        "a control",
        _turn({**_CALL, "extra_content": _OF_GOOGLE}),
        (lacks("Q2lRQg"), reports("messages[1].parts[0]"), is_valid),
        (_CLAUDE, _RESPONSES),
    ),
    Row(
        "`cache_control` on a message is that of its last part, whatever its role",
        "BerriAI/litellm#33816 and OpenRouterTeam/ai-sdk-provider#389",
        _CACHED_CHAT,
        (
            _caches(
                ("system", 0), ("messages", 0, "content", 0), ("messages", 1, "content", 1),
                ("messages", 2, "content", 0),
            ),
            is_valid,
        ),
        (_CLAUDE,),
    ),
    Row(
        "`cache_control` on a message keeps its lifetime",
        "BerriAI/litellm#33816",
        Request(_CHAT, {"model": "m", "messages": [{**_HI, "cache_control": _FOR_AN_HOUR}]}),
        (_caches(("messages", 0, "content", 0), hint=_FOR_AN_HOUR), is_valid),
        (_CLAUDE,),
    ),
    Row(
        "`cache_control` on a message goes back to Chat as it came",
        "BerriAI/litellm#21567",
        _CACHED_CHAT,
        (comes_back,),
        (_CHAT,),
    ),
    Row(
        "Where there are no cache hints, one on a message is reported",
        "a control",
        Request(_CHAT, {"model": "m", "messages": [{**_HI, "cache_control": _EPHEMERAL}]}),
        (lacks("cache_control"), reports("messages[0].parts[0].cache"), is_valid),
        ("gemini", "ollama"),
    ),
    Row(
        "`cache_control: null` on a message is nothing",
        "BerriAI/litellm#33816",
        Request(_CHAT, {"model": "m", "messages": [{**_HI, "cache_control": None}]}),
        (comes_back, is_valid),
    ),
    Row(
        "`cache_control` on a Responses part or item is a cache hint",
        "BerriAI/litellm#27950",
        Request(_RESPONSES, {"model": "m", "max_output_tokens": 9, "input": [
            {"role": "user", "content": [
                {"type": "input_text", "text": "Hi", "cache_control": _FOR_AN_HOUR},
            ]},
            {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "done",
             "cache_control": _FOR_AN_HOUR},
            {"role": "user", "content": "Go on.", "cache_control": _FOR_AN_HOUR},
        ]}),
        (
            _caches(
                ("messages", 0, "content", 0), ("messages", 2, "content", 0),
                ("messages", 3, "content", 0), hint=_FOR_AN_HOUR,
            ),
            reports_nothing,
        ),
        (_CLAUDE,),
    ),
    Row(
        "`cache_control` on a part of a Responses output is a cache hint",
        "BerriAI/litellm#27950",
        Request(_RESPONSES, {"model": "m", "max_output_tokens": 9, "input": [
            {"role": "user", "content": "Hi"},
            {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": [
                {"type": "input_text", "text": "a"},
                {"type": "input_text", "text": "b", "cache_control": _EPHEMERAL},
            ]},
        ]}),
        (_caches(("messages", 2, "content", 0, "content", 1)), reports_nothing),
        (_CLAUDE,),
    ),
    Row(
        "`cache_control` on a Responses part goes back as it came",
        "BerriAI/litellm#27950",
        Request(_RESPONSES, {"model": "m", "input": [{"role": "user", "content": [
            {"type": "input_text", "text": "Hi", "cache_control": _FOR_AN_HOUR},
        ]}]}),
        (comes_back,),
        (_RESPONSES,),
    ),
    Row(
        "A file's address in `file_id` is fetched by Gemini, with the type in `format`",
        "BerriAI/litellm#3890 and BerriAI/litellm#9903",
        _shown({"type": "file", "file": {
            "file_id": "gs://bucket/a.pdf", "format": "application/pdf",
        }}, {"type": "text", "text": "?"}),
        (_fetches("application/pdf", "gs://bucket/a.pdf"), reports_nothing, is_valid),
        ("gemini", "google:gemini-2.5-pro", "vertex:gemini-2.5-pro"),
    ),
    Row(
        "A file's web address in `file_id` is no id",
        "BerriAI/litellm#4079",
        _shown({"type": "file", "file": {"file_id": "https://example.org/a.pdf"}}),
        (has('"https://example.org/a.pdf"'), lacks("file_id"), is_valid),
        (_CLAUDE, _RESPONSES, "gemini"),
    ),
    Row(
        "An image's `format` is its type",
        "BerriAI/litellm#4262",
        _shown({"type": "image_url", "image_url": {
            "url": "gs://bucket/a", "format": "image/png",
        }}, {"type": "text", "text": "?"}),
        (_fetches("image/png", "gs://bucket/a"), reports_nothing, is_valid),
        ("gemini", "vertex:gemini-2.5-pro"),
    ),
    Row(
        "What only Google can fetch is not sent to others, which is reported",
        "a control",
        _shown({"type": "file", "file": {"file_id": "gs://bucket/a.pdf"}}),
        (lacks("gs://"), reports("messages[0].parts[0]"), is_valid),
        (_CLAUDE, _RESPONSES, "ollama"),
    ),
    Row(
        "Addresses in `file_id` go back to Chat as they came",
        "BerriAI/litellm#9903",
        _shown({"type": "file", "file": {
            "file_id": "gs://bucket/a.pdf", "format": "application/pdf",
        }}),
        (comes_back,),
        (_CHAT,),
    ),
)  # fmt: skip
