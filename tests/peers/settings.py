"""What a client of each dialect may set: every setting, at and beyond its limits."""

from __future__ import annotations

from typing import Any

_FUNCTION = {"name": "f", "description": "Does it.", "parameters": {
    "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
    "additionalProperties": False}}  # fmt: skip
_SCHEMA = _FUNCTION["parameters"]
_REALS = (-3, -0.5, 0, 0.3, 1, 1.5, 2, 2.5)
_COUNTS = (-1, 0, 1, 5, 15, 16, 100_000, 10_000_000)
_SHARES = (-0.5, 0, 0.5, 0.99, 1, 1.5)
_LABELS = ({"a": "b"}, {f"k{n}": "v" for n in range(20)}, {"a": "b" * 600})
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "enormous")
_STOPS: Any = ([], ["a"], ["a", "b", "c", "d", "e", "f"], [""], [" "])


def _each(key: str, values: Any) -> list[dict[str, Any]]:
    return [{key: value} for value in values]


def _chat() -> dict[str, list[dict[str, Any]]]:
    tools: list[Any] = [{"type": "function", "function": _FUNCTION}]
    strict = [{"type": "function", "function": {**_FUNCTION, "strict": True}}]
    named: Any = {"type": "function", "function": {"name": "f"}}
    choices: Any = ("auto", "none", "required", named)
    return {
        "temperature": _each("temperature", _REALS),
        "top_p": _each("top_p", _SHARES),
        "presence_penalty": _each("presence_penalty", _REALS),
        "frequency_penalty": _each("frequency_penalty", _REALS),
        "n": _each("n", _COUNTS[1:5]),
        "seed": _each("seed", (-1, 0, 2**40)),
        "top_k": _each("top_k", (-1, 0, 5, 10_000)),
        "max_tokens": _each("max_tokens", _COUNTS) + _each("max_completion_tokens", _COUNTS),
        "logprobs": [{"logprobs": True}, {"logprobs": True, "top_logprobs": 0},
                     {"logprobs": True, "top_logprobs": 20}, {"logprobs": True, "top_logprobs": 50},
                     {"top_logprobs": 3}],
        "stop": [*_each("stop", _STOPS), {"stop": "a"}],
        "effort": _each("reasoning_effort", _EFFORTS),
        "reasoning": _each("reasoning", ({"max_tokens": 10}, {"max_tokens": 999_999},
                                         {"effort": "high"}, {"enabled": False})),
        "thinking": _each("thinking", ({"type": "enabled"}, {"type": "disabled"})),
        "format": _each("response_format", (
            {"type": "text"}, {"type": "json_object"},
            {"type": "json_schema", "json_schema": {"name": "r", "schema": _SCHEMA}},
            {"type": "json_schema", "json_schema": {"name": "r", "schema": _SCHEMA,
                                                    "strict": True}},
        )),
        "tools": [{"tools": tools}, {"tools": strict}, {"tools": []}] + [
            {"tools": tools, "tool_choice": choice}
            for choice in choices
        ],
        "parallel": [{"tools": tools, "parallel_tool_calls": flag} for flag in (True, False)],
        "choice": [{"tool_choice": "auto"}, {"tool_choice": "none"}, {"tool_choice": named},
                   {"parallel_tool_calls": False}],
        "search": _each("web_search_options", ({},)),
        "labels": _each("metadata", _LABELS),
        "user": _each("user", ("", "u", "u" * 600)),
        "tier": _each("service_tier", ("auto", "default", "flex", "priority", "fast", "odd")),
        "verbosity": _each("verbosity", ("low", "high", "odd")),
        "store": _each("store", (True, False)),
        "modalities": [{"modalities": ["text"]},
                       {"modalities": ["text", "audio"],
                        "audio": {"voice": "alloy", "format": "wav"}}],
    }  # fmt: skip


def _responses() -> dict[str, list[dict[str, Any]]]:
    tools: list[Any] = [{"type": "function", **_FUNCTION, "strict": True}]
    loose = [{"type": "function", **_FUNCTION, "strict": False}]
    choices: Any = ("auto", "none", "required", {"type": "function", "name": "f"})
    return {
        "temperature": _each("temperature", _REALS),
        "top_p": _each("top_p", _SHARES),
        "top_logprobs": _each("top_logprobs", (0, 20, 50)),
        "max_output_tokens": _each("max_output_tokens", _COUNTS),
        "reasoning": _each("reasoning", [{"effort": effort} for effort in _EFFORTS]
                           + [{"summary": "auto"}, {"effort": "high", "summary": "detailed"}]),
        "text": _each("text", (
            {"format": {"type": "text"}}, {"format": {"type": "json_object"}},
            {"format": {"type": "json_schema", "name": "r", "schema": _SCHEMA, "strict": True}},
            {"verbosity": "low"},
        )),
        "tools": [{"tools": tools}, {"tools": loose}, {"tools": []}] + [
            {"tools": tools, "tool_choice": choice}
            for choice in choices
        ],
        "search": [{"tools": [{"type": "web_search"}]},
                   {"tools": [*tools, {"type": "web_search"}]}],
        "parallel": [{"tools": tools, "parallel_tool_calls": False}],
        "choice": [{"tool_choice": "required"}, {"parallel_tool_calls": False}],
        "include": _each("include", (["reasoning.encrypted_content"],)),
        "labels": _each("metadata", _LABELS),
        "store": _each("store", (True, False)),
        "truncation": _each("truncation", ("auto", "disabled")),
        "tier": _each("service_tier", ("auto", "flex", "priority")),
        "max_tool_calls": _each("max_tool_calls", (0, 3)),
        "background": _each("background", (True,)),
    }  # fmt: skip


def _claude() -> dict[str, list[dict[str, Any]]]:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
              "additionalProperties": False}  # fmt: skip
    tools: list[Any] = [{"name": "f", "description": "Does it.", "input_schema": schema}]
    choices: Any = (
        *({"type": kind} for kind in ("auto", "none", "any")), {"type": "tool", "name": "f"},
        {"type": "auto", "disable_parallel_tool_use": True},
    )  # fmt: skip
    return {
        "temperature": _each("temperature", _REALS),
        "top_p": _each("top_p", _SHARES),
        "top_k": _each("top_k", (-1, 0, 5, 10_000)),
        "max_tokens": _each("max_tokens", _COUNTS),
        "stop": _each("stop_sequences", _STOPS),
        "thinking": _each("thinking", (
            {"type": "disabled"}, {"type": "adaptive"},
            *({"type": "enabled", "budget_tokens": budget} for budget in (5, 2048, 99_999)),
        )),
        "output": _each("output_config", [
            *({"effort": effort} for effort in _EFFORTS),
            {"format": {"type": "json_schema", "schema": schema}},
        ]),
        "tools": [{"tools": tools}, {"tools": []}] + [
            {"tools": tools, "tool_choice": choice}
            for choice in choices
        ],
        "choice": [{"tool_choice": {"type": "auto"}}, {"tool_choice": {"type": "any"}}],
        "search": [{"tools": [{"type": "web_search_20250305", "name": "web_search"}]}],
        "user": _each("metadata", ({"user_id": "u"}, {"user_id": "u" * 600})),
        "tier": _each("service_tier", ("auto", "standard_only")),
        "speed": _each("speed", ("fast", "standard")),
        "system": _each("system", ("", "Be brief.", [{"type": "text", "text": "Be brief."}])),
    }  # fmt: skip


def _gemini() -> dict[str, list[dict[str, Any]]]:
    config = "generationConfig"
    tools = [{"functionDeclarations": [{**_FUNCTION, "parameters": {
        "type": "OBJECT", "properties": {"a": {"type": "STRING"}}}}]}]  # fmt: skip

    def each(key: str, values: Any) -> list[dict[str, Any]]:
        return [{config: {key: value}} for value in values]

    def calling(**fields: Any) -> dict[str, Any]:
        return {"toolConfig": {"functionCallingConfig": fields}}

    return {
        "temperature": each("temperature", _REALS),
        "topP": each("topP", _SHARES),
        "topK": each("topK", (-1, 0, 5, 10_000)),
        "presencePenalty": each("presencePenalty", _REALS),
        "frequencyPenalty": each("frequencyPenalty", _REALS),
        "candidateCount": each("candidateCount", (0, 1, 3, 9)),
        "maxOutputTokens": each("maxOutputTokens", _COUNTS),
        "stopSequences": each("stopSequences", _STOPS),
        "seed": each("seed", (-1, 0, 2**31)),
        "logprobs": [{config: {"responseLogprobs": True}},
                     {config: {"responseLogprobs": True, "logprobs": 20}},
                     {config: {"logprobs": 3}}],
        "thinking": each("thinkingConfig", (
            {"thinkingBudget": -1}, {"thinkingBudget": 0}, {"thinkingBudget": 5},
            {"thinkingBudget": 99_999}, {"thinkingLevel": "LOW"}, {"thinkingLevel": "MINIMAL"},
            {"includeThoughts": True},
        )),
        "format": [{config: {"responseMimeType": "application/json"}},
                   {config: {"responseMimeType": "application/json",
                             "responseJsonSchema": _SCHEMA}}],
        "tools": [{"tools": tools}] + [
            {"tools": tools, **calling(mode=mode)} for mode in ("AUTO", "NONE", "ANY", "VALIDATED")
        ] + [{"tools": tools, **calling(mode="ANY", allowedFunctionNames=["f"])}],
        "choice": [calling(mode="ANY"), calling(mode="NONE")],
        "search": [{"tools": [{"googleSearch": {}}]}],
        "modalities": each("responseModalities", (["TEXT"], ["TEXT", "IMAGE"])),
        "tier": _each("serviceTier", ("standard", "flex", "priority")),
        "labels": _each("labels", _LABELS[:1]),
        "system": _each("systemInstruction", ({"parts": [{"text": ""}]},
                                              {"parts": [{"text": "Be brief."}]})),
    }  # fmt: skip


def _ollama() -> dict[str, list[dict[str, Any]]]:
    tools: list[Any] = [{"type": "function", "function": _FUNCTION}]

    def each(key: str, values: Any) -> list[dict[str, Any]]:
        return [{"options": {key: value}} for value in values]

    return {
        "temperature": each("temperature", _REALS),
        "top_p": each("top_p", _SHARES),
        "top_k": each("top_k", (-1, 0, 5, 10_000)),
        "min_p": each("min_p", _SHARES),
        "presence_penalty": each("presence_penalty", _REALS),
        "frequency_penalty": each("frequency_penalty", _REALS),
        "repeat_penalty": each("repeat_penalty", _REALS),
        "num_predict": each("num_predict", (-2, *_COUNTS)),
        "num_ctx": each("num_ctx", (2048,)),
        "seed": each("seed", (-1, 0, 7)),
        "stop": each("stop", _STOPS),
        "think": _each("think", (True, False, "low", "medium", "high", "max")),
        "format": _each("format", ("json", _SCHEMA, "")),
        "tools": [{"tools": tools}],
        "logprobs": [{"logprobs": True}, {"logprobs": True, "top_logprobs": 20}],
        "keep_alive": _each("keep_alive", (0, "5m")),
    }


_HI = {"role": "user", "content": "Hi"}
SOURCES: dict[str, tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]] = {
    "openai-chat": ({"model": "m", "messages": [_HI]}, _chat()),
    "openai-responses": ({"model": "m", "input": "Hi"}, _responses()),
    "anthropic": ({"model": "m", "max_tokens": 5000, "messages": [_HI]}, _claude()),
    "gemini": ({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}, _gemini()),
    "ollama": ({"model": "m", "messages": [_HI]}, _ollama()),
}
"""For each dialect a request, and what may be added to it, by setting."""


def joined(body: dict[str, Any], *added: dict[str, Any]) -> dict[str, Any]:
    """The body with these fields; objects are joined, and lists as well."""
    made = dict(body)
    for fields in added:
        for key, value in fields.items():
            old = made.get(key)
            if isinstance(value, dict) and isinstance(old, dict):
                value = joined(old, value)  # noqa: PLW2901 - joined
            made[key] = value
    return made
