"""Bodies with unusual spellings, which must not override an edit.

Aliases, both spellings at once, explicit nulls, integers written as floats, texts instead of lists,
objects of unknown kinds, and unknown fields in every object. Texts that begin with `odd` belong to
no known field: they must survive any edit of another value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# One line for each body, even if it is long.
# fmt: off
_USER = {"role": "user", "content": "Hello"}
_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_PIXEL = "iVBORw0KGgo="

_CHAT_TOOL = {"type": "function", "function": {"name": "weather", "parameters": _SCHEMA}}
_CHAT: dict[str, dict[str, Any]] = {
    "minimal": {},
    "both caps": {"max_tokens": 5, "max_completion_tokens": 9},
    "both caps, the same": {"max_tokens": 5, "max_completion_tokens": 5},
    "old cap": {"max_tokens": 5},
    "both seeds": {"seed": 1, "random_seed": 2},
    "Mistral's seed": {"random_seed": 2},
    "nulls": dict.fromkeys(
        ("model", "temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "n",
         "seed", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "stream",
         "tools", "tool_choice", "parallel_tool_calls", "response_format", "reasoning_effort",
         "store", "functions", "function_call", "reasoning", "thinking", "web_search_options")
    ),
    "fractions": {"temperature": 1.0, "top_p": 1.0, "max_tokens": 5.0, "n": 1.0, "seed": 3.0},
    "texts for numbers": {"temperature": "0.5", "max_tokens": "5", "n": "1", "seed": "x"},
    "one stop": {"stop": "END"},
    "stops": {"stop": ["END", "STOP"]},
    "no stops": {"stop": []},
    "odd stops": {"stop": ["END", 5]},
    "unknown format": {"response_format": {"type": "grammar", "grammar": "weird grammar"}},
    "format with more": {"response_format": {"type": "json_object", "odd": "odd format"}},
    "plain format": {"response_format": {"type": "text"}},
    "schema with more": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "a", "schema": _SCHEMA, "strict": None, "odd": "odd schema"},
            "odd": "odd format",
        }
    },
    "schema without a name": {
        "response_format": {"type": "json_schema", "json_schema": {"schema": _SCHEMA}}
    },
    "schema without a schema": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": "weird"}}
    },
    "unknown choice": {"tools": [_CHAT_TOOL], "tool_choice": {"type": "weird", "a": 1}},
    "choice by word": {"tools": [_CHAT_TOOL], "tool_choice": "auto"},
    "Mistral's choice": {"tools": [_CHAT_TOOL], "tool_choice": "any"},
    "unknown word": {"tools": [_CHAT_TOOL], "tool_choice": "weird word"},
    "named choice with more": {
        "tools": [_CHAT_TOOL],
        "tool_choice": {"type": "function", "function": {"name": "weather"}, "odd": "odd choice"},
        "parallel_tool_calls": True,
    },
    "allowed choice": {
        "tools": [_CHAT_TOOL],
        "tool_choice": {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": "weather"}}],
            },
        },
    },
    "old choice": {
        "functions": [{"name": "weather", "parameters": _SCHEMA, "odd": "odd function"}],
        "function_call": {"name": "weather"},
    },
    "old choice by word": {"functions": [{"name": "weather"}], "function_call": "auto"},
    "both choices": {
        "tools": [_CHAT_TOOL], "tool_choice": "required", "function_call": "none",
        "functions": [{"name": "old"}],
    },
    "tools with more": {
        "tools": [
            {
                "type": "function",
                "function": {"name": "weather", "description": None, "parameters": _SCHEMA,
                             "strict": None, "odd": "odd function"},
                "odd": "odd tool",
                "cache_control": {"type": "ephemeral"},
            },
            {"function": {"name": "untyped", "parameters": _SCHEMA}},
            {"type": "custom", "custom": {"name": "free", "format": {"type": "text"},
                                          "odd": "odd custom"}},
            {"type": "web_search", "odd": "odd server"},
        ],
        "web_search_options": {"odd": "odd search"},
    },
    "effort": {"reasoning_effort": "high"},
    "reasoning": {"reasoning": {"effort": "high", "max_tokens": 7, "enabled": True,
                                "exclude": False, "odd": "odd reasoning"}},
    "both efforts": {"reasoning_effort": "low", "reasoning": {"effort": "high"}},
    "switch": {"thinking": {"type": "enabled", "odd": "odd thinking"}, "reasoning_effort": "low"},
    "unknown switch": {"thinking": {"type": "weird type", "budget": 7}},
    "template": {"chat_template_kwargs": {"enable_thinking": True, "odd": "odd template"}},
    "template of another kind": {"chat_template_kwargs": {"odd": "odd template"}},
    "switch and template": {
        "thinking": {"type": "enabled"},
        "chat_template_kwargs": {"enable_thinking": False},
    },
    "top k": {"top_k": 5},
    "top k as text": {"top_k": "weird top k"},
    "state": {"store": True, "stream": True, "model": "gpt-5", "metadata": {"odd": "odd meta"}},
    "wrong types": {"model": 5, "stream": "weird stream", "store": "weird store", "logprobs": 1,
                    "parallel_tool_calls": "weird parallel"},
    "unknown fields": {"odd": "odd field", "temperature": 0.5, "stop": "END"},
}
_CHAT_MESSAGES: dict[str, list[Any]] = {
    "text with more": [
        {"role": "user", "name": "Eve", "odd": "odd message", "content": [
            {"type": "text", "text": "Hi", "odd": "odd text",
             "cache_control": {"type": "ephemeral", "ttl": "1h"}},
            {"type": "text", "text": "there", "prompt_cache_breakpoint": {"mode": "explicit"}},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png",
                                                "detail": "low", "odd": "odd url"}},
            {"type": "image_url", "image_url": "https://example.com/a.png", "odd": "odd image"},
            {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3",
                                                    "odd": "odd sound"}},
            {"type": "audio_url", "audio_url": {"url": "https://example.com/a.mp3"}},
            {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0=",
                                      "filename": "a.pdf", "odd": "odd file"}},
            {"type": "file", "file": {"file_data": "JVBERi0=", "filename": None}},
            {"type": "file", "file": {"file_id": "file_1"}},
            {"type": "document_url", "document_url": "https://example.com/a.pdf",
             "document_name": "a.pdf"},
            {"type": "odd part", "odd": "odd payload"},
        ]},
    ],
    "nulls in messages": [
        {"role": "system", "content": "Be brief.", "name": None},
        {"role": "user", "content": "Hi", "name": None},
        {"role": "assistant", "content": None, "refusal": None, "tool_calls": None, "audio": None,
         "function_call": None, "reasoning_content": None, "annotations": []},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function",
             "function": {"name": "weather", "arguments": "{}"}, "odd": None}]},
        {"role": "tool", "tool_call_id": "call_1", "content": None, "name": None},
    ],
    "lists of nothing": [
        {"role": "user", "content": []},
        {"role": "assistant", "content": "Hi", "tool_calls": []},
        {"role": "assistant", "content": [], "tool_calls": [
            {"id": "call_1", "type": "function",
             "function": {"name": "weather", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": []},
    ],
    "calls with more": [
        {"role": "assistant", "content": "Let me see.", "odd": "odd answer", "tool_calls": [
            {"id": "call_1", "type": "function", "odd": "odd call", "index": 0,
             "function": {"name": "weather", "arguments": '{"city": "Bern"}', "odd": "odd f"}},
            {"id": "call_2", "function": {"name": "weather", "arguments": {"city": "Bern"}}},
            {"id": "call_3", "type": "function", "function": {"name": "weather"}},
            {"id": "call_4", "type": "custom", "custom": {"name": "free", "input": "x",
                                                          "odd": "odd c"}},
            {"type": "function", "function": {"name": "weather", "arguments": ""}},
            {"id": "call_6", "type": "function",
             "function": {"name": "weather", "arguments": "{}"},
             "extra_content": {"google": {"thought_signature": "c2ln"}}},
            {"id": "call_7", "type": "odd type", "odd": "odd opaque"},
        ]},
        {"role": "tool", "tool_call_id": "call_1", "content": "sun", "odd": "odd result"},
        {"role": "tool", "tool_call_id": "call_2", "name": "weather", "content": [
            {"type": "text", "text": "rain", "odd": "odd result text"},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]},
        {"role": "tool", "tool_call_id": "call_3"},
        {"role": "tool", "tool_call_id": "call_4", "content": ["odd item"]},
    ],
    "old calls": [
        {"role": "assistant", "content": None,
         "function_call": {"name": "weather", "arguments": "{}", "odd": "odd call"}},
        {"role": "function", "name": "weather", "content": "sun", "odd": "odd result"},
    ],
    "thinking": [
        {"role": "assistant", "reasoning_content": "thought", "content": "Hi"},
        {"role": "assistant", "reasoning": "thought", "content": "Hi"},
        {"role": "assistant", "reasoning": "thought", "reasoning_content": "thought",
         "content": "Hi"},
        {"role": "assistant", "reasoning": "thought", "reasoning_content": "other",
         "content": "Hi"},
        {"role": "assistant", "content": "Hi", "reasoning": "one", "reasoning_details": [
            {"type": "reasoning.text", "text": "one", "signature": "c2ln", "odd": "odd detail",
             "format": "x", "index": 0}]},
        {"role": "assistant", "content": "Hi", "reasoning": "different", "reasoning_details": [
            {"type": "reasoning.text", "text": "one", "signature": "c2ln"}]},
        {"role": "assistant", "content": "Hi", "reasoning_details": [
            {"type": "reasoning.summary", "summary": "one", "id": "r1"},
            {"type": "reasoning.encrypted", "data": "c2VhbA==", "id": None}]},
        {"role": "assistant", "content": "Hi", "reasoning_details": [{"type": "odd detail"}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "odd": "odd thinking",
             "thinking": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"type": "text", "text": "Hi"}]},
    ],
    "answers with more": [
        {"role": "assistant", "content": "Hi", "name": "Adam", "refusal": "No.", "annotations": [
            {"type": "url_citation", "odd": "odd annotation", "url_citation": {
                "url": "https://example.com", "title": "A", "start_index": 0, "end_index": 1,
                "odd": "odd citation"}},
            {"type": "odd citation", "odd": "odd source"}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No.",
                                           "odd": "odd refusal"}]},
        {"role": "assistant", "audio": {"id": "audio_1", "odd": "odd speech"}},
        {"role": "assistant", "content": "Hi", "images": [
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]},
    ],
}

_TOOL = {"name": "weather", "description": "The weather.", "input_schema": _SCHEMA}
_ANTHROPIC: dict[str, dict[str, Any]] = {
    "minimal": {},
    "no cap": {"max_tokens": None},
    "nulls": dict.fromkeys(
        ("temperature", "top_p", "top_k", "stop_sequences", "stream", "system", "tools",
         "tool_choice", "thinking", "output_config", "output_format", "metadata", "service_tier")
    ),
    "fractions": {"max_tokens": 5.0, "temperature": 1.0, "top_p": 1.0, "top_k": 3.0},
    "texts for numbers": {"max_tokens": "5", "temperature": "0.5", "top_k": "3"},
    "no stops": {"stop_sequences": []},
    "odd stops": {"stop_sequences": ["END", 5]},
    "stops": {"stop_sequences": ["END"]},
    "one stop": {"stop_sequences": "END"},
    "system as text": {"system": "Be brief."},
    "system as blocks": {"system": [
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "Be kind.", "odd": "odd system"},
        {"type": "odd block", "odd": "odd payload"}]},
    "no system": {"system": []},
    "unknown choice": {"tools": [_TOOL], "tool_choice": {"type": "weird", "a": 1}},
    "choice with more": {"tools": [_TOOL], "tool_choice": {
        "type": "auto", "disable_parallel_tool_use": True, "odd": "odd choice"}},
    "named choice": {"tools": [_TOOL], "tool_choice": {"type": "tool", "name": "weather"}},
    "no choice with more": {"tools": [_TOOL], "tool_choice": {
        "type": "none", "disable_parallel_tool_use": False}},
    "choice of the wrong type": {"tools": [_TOOL], "tool_choice": "weird choice"},
    "tools with more": {"tools": [
        {**_TOOL, "type": "custom", "odd": "odd tool", "strict": None,
         "cache_control": {"type": "ephemeral", "odd": "odd cache"}},
        {"name": "bare", "input_schema": None, "description": None},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 5, "odd": "odd server",
         "cache_control": {"type": "ephemeral", "ttl": "1h"}}]},
    "budget": {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 4000},
    "budget with more": {"max_tokens": 4000, "thinking": {
        "type": "enabled", "budget_tokens": 2000, "display": "omitted", "odd": "odd thinking"}},
    "small budget": {"thinking": {"type": "enabled", "budget_tokens": 5}, "max_tokens": 4000},
    "weird budget": {"thinking": {"type": "enabled", "budget_tokens": "weird budget"}},
    "adaptive": {"thinking": {"type": "adaptive", "display": "summarized"},
                 "output_config": {"effort": "high", "odd": "odd config"}},
    "odd display": {"thinking": {"type": "adaptive", "display": "weird display"}},
    "disabled": {"thinking": {"type": "disabled", "odd": "odd thinking"}},
    "unknown thinking": {"thinking": {"type": "weird type", "weird": "weird thinking"}},
    "unknown effort": {"output_config": {"effort": "weird effort"}},
    "schema": {"output_config": {"format": {"type": "json_schema", "schema": _SCHEMA,
                                            "odd": "odd format"}, "effort": "low"}},
    "old schema": {"output_format": {"type": "json_schema", "schema": _SCHEMA,
                                     "odd": "odd format"}},
    "both schemas": {"output_format": {"type": "json_schema", "schema": _SCHEMA},
                     "output_config": {"format": {"type": "json_schema", "schema": _SCHEMA}}},
    "unknown format": {"output_config": {"format": {"type": "grammar", "weird": "weird format"}}},
    "unknown old format": {"output_format": {"type": "grammar", "weird": "weird format"}},
    "wrong types": {"model": 5, "stream": "weird stream"},
    "unknown fields": {"odd": "odd field", "temperature": 0.5, "metadata": {"user_id": "odd id"},
                       "stream": True, "container": "odd container"},
}
_ANTHROPIC_MESSAGES: dict[str, list[Any]] = {
    "blocks with more": [
        {"role": "user", "odd": "odd message", "content": [
            {"type": "text", "text": "Hi", "odd": "odd text", "citations": None,
             "cache_control": {"type": "ephemeral", "ttl": "1h", "odd": "odd cache"}},
            {"type": "image", "odd": "odd image", "source": {
                "type": "base64", "media_type": "image/png", "data": _PIXEL, "odd": "odd source"}},
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
            {"type": "document", "title": "A", "context": "odd context", "citations": {
                "enabled": True}, "source": {"type": "text", "media_type": "text/plain",
                                             "data": "Words."}},
            {"type": "document", "title": None, "source": {
                "type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
            {"type": "document", "source": {"type": "odd source", "odd": "odd data"}},
            {"type": "odd block", "odd": "odd payload"}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln", "odd": "odd thinking"},
            {"type": "redacted_thinking", "data": "c2VhbA==", "odd": "odd seal"},
            {"type": "text", "text": "As it says", "citations": [
                {"type": "char_location", "cited_text": "Words.", "document_index": 0,
                 "document_title": "A", "start_char_index": 0, "end_char_index": 6,
                 "odd": "odd citation"},
                {"type": "web_search_result_location", "cited_text": "W", "title": None,
                 "url": "https://example.com", "encrypted_index": "odd index"},
                {"type": "odd citation", "odd": "odd place"}]},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
             "input": {"query": "x"}, "odd": "odd call"},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
                {"type": "web_search_result", "url": "https://example.com", "title": "A",
                 "encrypted_content": "odd content"}], "odd": "odd result"},
            {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "echo", "server_name": "s",
             "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False,
             "content": "odd echo"},
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bern"},
             "odd": "odd use", "cache_control": {"type": "ephemeral"}},
            {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [
                {"type": "text", "text": "sun", "odd": "odd part"},
                {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}],
             "is_error": False, "odd": "odd tool result"},
            {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": None, "content": None},
            {"type": "text", "text": "And?"}]},
    ],
    "bare results": [
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
            {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1"},
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": []}]},
    ],
    "system among them": [_USER, {"role": "system", "content": "Be brief."}, _USER],
}

_DECLARATION = {"name": "weather", "description": "The weather.", "parametersJsonSchema": _SCHEMA}
_OPENAPI = {"type": "OBJECT", "properties": {"city": {"type": "STRING", "nullable": True}}}
_GEMINI: dict[str, dict[str, Any]] = {
    "minimal": {},
    "camel case": {"generationConfig": {
        "maxOutputTokens": 5, "topP": 0.5, "topK": 3, "stopSequences": ["END"], "seed": 1,
        "candidateCount": 1, "responseLogprobs": True, "logprobs": 2, "presencePenalty": 0.1,
        "frequencyPenalty": 0.2, "temperature": 0.3, "odd": "odd config"}},
    "snake case": {"generation_config": {
        "max_output_tokens": 5, "top_p": 0.5, "top_k": 3, "stop_sequences": ["END"],
        "candidate_count": 1, "response_logprobs": True, "presence_penalty": 0.1,
        "frequency_penalty": 0.2, "thinking_config": {"include_thoughts": True,
                                                      "thinking_budget": 7}}},
    "both cases": {"generationConfig": {"maxOutputTokens": 5, "max_output_tokens": 6,
                                        "topK": 3, "top_k": 3}},
    "both configs": {"generationConfig": {"temperature": 0.5},
                     "generation_config": {"temperature": 0.7}},
    "nulls": {"generationConfig": None, "tools": None, "toolConfig": None,
              "systemInstruction": None, "safetySettings": None, "cachedContent": None},
    "nulls inside": {"generationConfig": dict.fromkeys(
        ("maxOutputTokens", "temperature", "topP", "topK", "stopSequences", "seed",
         "candidateCount", "responseMimeType", "responseSchema", "responseJsonSchema",
         "thinkingConfig", "responseLogprobs", "logprobs"))},
    "fractions": {"generationConfig": {"maxOutputTokens": 5.0, "topK": 40.0, "temperature": 1,
                                       "topP": 1, "candidateCount": 1.0}},
    "texts for numbers": {"generationConfig": {"maxOutputTokens": "5", "temperature": "0.5"}},
    "odd stops": {"generationConfig": {"stopSequences": ["END", 5]}},
    "no stops": {"generationConfig": {"stopSequences": []}},
    "one stop": {"generationConfig": {"stopSequences": "END"}},
    "plain type": {"generationConfig": {"responseMimeType": "text/plain"}},
    "json": {"generationConfig": {"responseMimeType": "application/json"}},
    "enum": {"generationConfig": {"responseMimeType": "text/x.enum", "responseSchema": {
        "type": "STRING", "enum": ["odd one"]}}},
    "unknown type": {"generationConfig": {"responseMimeType": "weird/type"}},
    "schema": {"generationConfig": {"responseMimeType": "application/json",
                                    "responseSchema": _OPENAPI}},
    "small schema": {"generationConfig": {"responseSchema": {"type": "object"}}},
    "json schema": {"generationConfig": {"responseMimeType": "application/json",
                                         "responseJsonSchema": _SCHEMA}},
    "both schemas": {"generationConfig": {"responseMimeType": "application/json",
                                          "responseSchema": _OPENAPI,
                                          "responseJsonSchema": _SCHEMA}},
    "snake schema": {"generationConfig": {"response_mime_type": "application/json",
                                          "response_schema": _OPENAPI}},
    "thinking": {"generationConfig": {"thinkingConfig": {
        "includeThoughts": True, "thinkingBudget": 7, "odd": "odd thinking"}}},
    "no thinking": {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}},
    "free thinking": {"generationConfig": {"thinkingConfig": {"thinkingBudget": -1}}},
    "levels": {"generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}}},
    "unknown level": {"generationConfig": {"thinkingConfig": {"thinkingLevel": "weird level"}}},
    "level and budget": {"generationConfig": {"thinkingConfig": {"thinkingLevel": "HIGH",
                                                                 "thinkingBudget": 7.0}}},
    "empty thinking": {"generationConfig": {"thinkingConfig": {}}},
    "empty config": {"generationConfig": {}},
    "choice": {"tools": [{"functionDeclarations": [_DECLARATION]}], "toolConfig": {
        "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"],
                                  "odd": "odd calling"}, "odd": "odd choice"}},
    "snake choice": {"tools": [{"function_declarations": [_DECLARATION]}], "tool_config": {
        "function_calling_config": {"mode": "ANY", "allowed_function_names": ["weather", "b"]}}},
    "free choice": {"tools": [{"functionDeclarations": [_DECLARATION]}], "toolConfig": {
        "functionCallingConfig": {"mode": "VALIDATED"}}},
    "auto among some": {"tools": [{"functionDeclarations": [_DECLARATION]}], "toolConfig": {
        "functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["weather"]}}},
    "unknown choice": {"tools": [{"functionDeclarations": [_DECLARATION]}], "toolConfig": {
        "functionCallingConfig": {"mode": "weird mode", "odd": "odd calling"}}},
    "retrieval config": {"toolConfig": {"retrievalConfig": {"odd": "odd place"}}},
    "tools in odd objects": {"tools": [
        {"functionDeclarations": [_DECLARATION], "googleSearch": {}, "odd": "odd tool"},
        {"function_declarations": [{"name": "b", "parameters": _OPENAPI, "odd": "odd function",
                                    "description": None}]},
        {"code_execution": {}}, {"url_context": {"odd": "odd context"}}]},
    "one tool": {"tools": {"functionDeclarations": [_DECLARATION]}},
    "no tools": {"tools": []},
    "system": {"systemInstruction": {"parts": [{"text": "Be brief."}]}},
    "system with more": {"systemInstruction": {"role": "odd role", "parts": {"text": "Brief."},
                                               "odd": "odd system"}},
    "snake system": {"system_instruction": {"parts": [{"text": "Be brief."}]}},
    "empty system": {"systemInstruction": {"parts": []}},
    "model in the body": {"model": "models/gemini-3"},
    "unknown fields": {"odd": "odd field", "safetySettings": [{"category": "odd"}],
                       "cachedContent": "odd cache", "generationConfig": {"temperature": 0.5}},
}
_GEMINI_MESSAGES: dict[str, list[Any]] = {
    "one content": [{"parts": {"text": "Hi"}}],
    "parts with more": [
        {"role": "user", "odd": "odd content", "parts": [
            {"text": "Hi", "odd": "weird text"},
            {"inlineData": {"mimeType": "image/png", "data": _PIXEL, "displayName": "odd name"},
             "mediaResolution": {"level": "weird level"}},
            {"inline_data": {"mime_type": "audio/mpeg", "data": "SUQz"}},
            {"fileData": {"fileUri": "https://example.com/a.pdf", "mimeType": "application/pdf"}},
            {"file_data": {"file_uri": "gs://a/b.mp4"}, "videoMetadata": {"fps": 1}},
            {"oddPart": "odd payload"}]},
        {"role": "model", "parts": [
            {"text": "hm", "thought": True, "thoughtSignature": "c2ln"},
            {"text": "Hi", "thought": False, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "weather", "args": {"city": "Bern"}, "odd": "odd call"},
             "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "time", "id": "c1"}},
            {"function_call": {"name": "date", "args": {}}},
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "weather", "response": {"output": "sun"},
                                  "odd": "odd response"}},
            {"functionResponse": {"name": "time", "id": "c1", "response": {"error": "late"}}},
            {"function_response": {"name": "date", "response": {"odd": "odd date", "day": 1}}}]},
    ],
    "odd roles": [
        {"parts": [{"text": "Hi"}]},
        {"role": "assistant", "parts": [{"text": "Hi"}]},
        {"role": "function", "parts": [{"functionResponse": {"name": "x", "response": {}}}]},
        {"role": "system", "parts": [{"text": "Be brief."}]},
        {"role": "odd role", "parts": [{"text": "Hi"}]},
    ],
    "no parts": [{"role": "user", "parts": []}, {"role": "model"},
                 {"role": "user", "parts": None}],
}

_FUNCTION = {"type": "function", "name": "weather", "parameters": _SCHEMA, "strict": True}
_RESPONSES: dict[str, dict[str, Any]] = {
    "minimal": {},
    "bare string": {"input": "Hello"},
    "nulls": dict.fromkeys(
        ("model", "instructions", "max_output_tokens", "temperature", "top_p", "top_logprobs",
         "tools", "tool_choice", "parallel_tool_calls", "text", "reasoning", "store", "stream",
         "previous_response_id", "conversation", "include", "metadata", "prompt")
    ),
    "nulls inside": {"text": {"format": None, "verbosity": None},
                     "reasoning": {"effort": None, "summary": None, "generate_summary": None}},
    "fractions": {"max_output_tokens": 50.0, "temperature": 1.0, "top_p": 1.0},
    "texts for numbers": {"max_output_tokens": "50", "temperature": "0.5", "top_p": "1"},
    "settings": {"max_output_tokens": 50, "temperature": 0.5, "top_p": 0.5, "top_logprobs": 2,
                 "include": ["message.output_text.logprobs", "odd include"], "stream": True},
    "include of the wrong type": {"include": "weird include"},
    "instructions": {"instructions": "Be brief."},
    "listed instructions": {"instructions": [{"role": "developer", "content": "weird order"}]},
    "format": {"text": {"format": {"type": "json_schema", "name": "a", "schema": _SCHEMA,
                                   "strict": True, "odd": "odd format"}, "verbosity": "odd v"}},
    "json": {"text": {"format": {"type": "json_object", "odd": "odd format"}}},
    "plain": {"text": {"format": {"type": "text"}}},
    "unknown format": {"text": {"format": {"type": "grammar", "weird": "weird format"}}},
    "nameless format": {"text": {"format": {"type": "json_schema", "schema": _SCHEMA}}},
    "Chat's format": {"response_format": {"type": "json_object"}},
    "text of the wrong type": {"text": "weird text"},
    "reasoning": {"reasoning": {"effort": "high", "summary": "auto", "odd": "odd reasoning"}},
    "no reasoning": {"reasoning": {"effort": "none"}},
    "unknown reasoning": {"reasoning": {"odd": "odd reasoning"}},
    "empty reasoning": {"reasoning": {}},
    "weird effort": {"reasoning": {"effort": 5, "summary": "auto"}},
    "state": {"previous_response_id": "resp_1", "store": True},
    "conversation": {"conversation": "conv_1"},
    "conversation as an object": {"conversation": {"id": "conv_1", "odd": "odd conversation"}},
    "conversation of the wrong type": {"conversation": {"id": 5}},
    "nothing stored": {"store": False},
    "nothing stored, sealed": {"store": False, "include": ["reasoning.encrypted_content"]},
    "choice by word": {"tools": [_FUNCTION], "tool_choice": "auto"},
    "choice": {"tools": [_FUNCTION], "tool_choice": {"type": "function", "name": "weather",
                                                     "odd": "odd choice"}},
    "allowed choice": {"tools": [_FUNCTION], "tool_choice": {
        "type": "allowed_tools", "mode": "required",
        "tools": [{"type": "function", "name": "weather"}]}},
    "own choice": {"tools": [{"type": "web_search", "odd": "odd search"}],
                   "tool_choice": {"type": "web_search"}},
    "unknown choice": {"tools": [_FUNCTION], "tool_choice": {"type": "weird", "a": 1}},
    "unknown word": {"tools": [_FUNCTION], "tool_choice": "weird word",
                     "parallel_tool_calls": False},
    "tools with more": {"tools": [
        {**_FUNCTION, "description": None, "odd": "odd tool"},
        {"type": "function", "name": "loose", "strict": None, "parameters": None},
        {"type": "custom", "name": "free", "format": {"type": "text"}, "odd": "odd custom"},
        {"type": "mcp", "server_label": "s", "odd": "odd server"}]},
    "wrong types": {"model": 5, "stream": "weird stream", "store": "weird store"},
    "unknown fields": {"odd": "odd field", "temperature": 0.5, "metadata": {"odd": "odd meta"},
                       "service_tier": "odd tier", "model": "gpt-5"},
}
_RESPONSES_MESSAGES: dict[str, list[Any]] = {
    "items with more": [
        {"role": "developer", "content": "Be brief.", "type": "message", "odd": "odd order"},
        {"role": "user", "id": "msg_0", "content": [
            {"type": "input_text", "text": "Hi", "odd": "odd text",
             "prompt_cache_breakpoint": {"mode": "explicit"}},
            {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "low",
             "odd": "odd image"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{_PIXEL}",
             "detail": None},
            {"type": "input_image", "file_id": "file_1"},
            {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0=",
             "filename": "a.pdf"},
            {"type": "input_file", "file_url": "https://example.com/a.pdf"},
            {"type": "input_file", "file_id": "file_2", "odd": "odd file"},
            {"type": "odd part", "odd": "odd payload"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [
            {"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}],
         "encrypted_content": "c2VhbA==", "odd": "odd reasoning", "status": None},
        {"type": "reasoning", "summary": [], "content": [
            {"type": "reasoning_text", "text": "all of it"}]},
        {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
         "phase": "odd phase", "content": [
             {"type": "output_text", "text": "As it says", "logprobs": [], "odd": "odd answer",
              "annotations": [
                  {"type": "url_citation", "url": "https://example.com", "title": "A",
                   "start_index": 0, "end_index": 2, "odd": "odd citation"},
                  {"type": "file_citation", "file_id": "f", "filename": "a", "index": 1},
                  {"type": "odd citation"}]},
             {"type": "refusal", "refusal": "No.", "odd": "odd refusal"}]},
        {"type": "message", "role": "assistant", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
        {"type": "function_call", "call_id": "call_1", "name": "weather", "id": "fc_1",
         "arguments": '{"city": "Bern"}', "status": "completed", "odd": "odd call"},
        {"type": "function_call", "call_id": "call_2", "name": "weather", "arguments": ""},
        {"type": "custom_tool_call", "call_id": "call_3", "name": "free", "input": "x",
         "odd": "odd custom call"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed",
         "action": {"type": "search", "query": "x"}, "odd": "odd search call"},
        {"type": "odd item", "id": "odd_1", "odd": "odd payload of an item"},
        {"type": "function_call_output", "call_id": "call_1", "output": "sun",
         "odd": "odd output", "id": "fco_1"},
        {"type": "function_call_output", "call_id": "call_2", "output": [
            {"type": "input_text", "text": "rain", "odd": "odd output text"},
            {"type": "input_image", "image_url": "https://example.com/a.png"}],
         "status": "completed"},
        {"type": "custom_tool_call_output", "call_id": "call_3", "output": "y"},
        {"type": "item_reference", "id": "msg_9"},
    ],
    "one in a list": [{"role": "user", "content": "Hello"}],
    "empty content": [{"role": "user", "content": [], "id": "msg_1"}],
}

_OLLAMA_TOOL = {"type": "function", "function": {"name": "weather", "description": "Weather.",
                                                 "parameters": _SCHEMA}}
_OLLAMA: dict[str, dict[str, Any]] = {
    "minimal": {},
    "no stream": {"stream": False},
    "nulls": dict.fromkeys(
        ("model", "stream", "tools", "format", "think", "options", "keep_alive", "logprobs",
         "top_logprobs")
    ),
    "options": {"options": {
        "temperature": 0.5, "top_p": 0.5, "top_k": 5, "num_predict": 9, "seed": 1, "num_ctx": 7,
        "presence_penalty": 0.1, "frequency_penalty": 0.2, "stop": ["END"], "odd": "odd option"}},
    "nulls inside": {"options": dict.fromkeys(
        ("temperature", "top_p", "top_k", "num_predict", "seed", "stop"))},
    "fractions": {"options": {"temperature": 1.0, "top_k": 5.0, "num_predict": 9.0, "seed": 1.0}},
    "no limits": {"options": {"num_predict": -1, "top_k": 0}},
    "texts for numbers": {"options": {"temperature": "0.5", "num_predict": "5", "seed": "1"}},
    "one stop": {"options": {"stop": "END"}},
    "no stops": {"options": {"stop": []}},
    "odd stops": {"options": {"stop": ["END", 5]}},
    "options of the wrong type": {"options": "weird options"},
    "think": {"think": True},
    "no think": {"think": False},
    "effort": {"think": "high"},
    "weird effort": {"think": "weird effort"},
    "json": {"format": "json"},
    "no format": {"format": ""},
    "unknown format": {"format": "weird format"},
    "schema": {"format": _SCHEMA},
    "probabilities": {"logprobs": True, "top_logprobs": 3},
    "tools with more": {"tools": [
        {**_OLLAMA_TOOL, "odd": "odd tool"},
        {"function": {"name": "untyped", "parameters": None, "odd": "odd function"}},
        {"type": "odd type", "odd": "odd server"}]},
    "no tools": {"tools": []},
    "Chat's choice": {"tools": [_OLLAMA_TOOL], "tool_choice": "weird choice"},
    "wrong types": {"model": 5, "stream": "weird stream", "logprobs": "weird"},
    "unknown fields": {"odd": "odd field", "model": "llama", "keep_alive": "odd time",
                       "options": {"temperature": 0.5}},
}
_OLLAMA_MESSAGES: dict[str, list[Any]] = {
    "messages with more": [
        {"role": "system", "content": "Be brief.", "odd": "odd order"},
        {"role": "User", "content": "Hi", "images": [_PIXEL], "odd": "odd message"},
        {"role": "assistant", "content": "Let me see.", "thinking": "hm", "odd": "odd answer",
         "tool_calls": [
             {"function": {"name": "weather", "arguments": {"city": "Bern"}, "index": 0},
              "odd": "odd call"},
             {"id": "c1", "type": "function", "function": {"name": "time", "arguments": {}}},
             {"id": "c2", "function": {"name": "date"}},
             {"odd": "odd opaque"}]},
        {"role": "tool", "tool_name": "weather", "content": "sun", "odd": "odd result"},
        {"role": "tool", "tool_call_id": "c1", "name": "time", "content": "noon"},
        {"role": "tool", "content": "today", "images": [_PIXEL]},
        {"role": "developer", "content": "Be kind."},
    ],
    "nulls in messages": [
        {"role": "user", "content": "Hi", "images": None},
        {"role": "assistant", "content": None, "thinking": None, "tool_calls": None},
        {"role": "assistant", "content": "", "thinking": "", "tool_calls": []},
        {"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": {}}}]},
        {"role": "tool"},
    ],
}
# fmt: on


def bodies(dialect: str) -> Iterator[tuple[str, dict[str, Any], str | None]]:
    """A description, the body, and its path if the dialect uses it."""
    settings, conversations, rest, path = _ALL[dialect]
    field = {"gemini": "contents", "openai-responses": "input"}.get(dialect, "messages")
    greeting = {"parts": [{"text": "Hello"}], "role": "user"} if dialect == "gemini" else _USER
    for label, odd in settings.items():
        yield label, {**rest, field: [greeting], **odd}, path
    for label, messages in conversations.items():
        yield label, {**rest, field: messages}, path


_ALL: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], str | None]] = {
    "openai-chat": (_CHAT, _CHAT_MESSAGES, {}, None),
    "openai-responses": (_RESPONSES, _RESPONSES_MESSAGES, {}, None),
    "anthropic": (_ANTHROPIC, _ANTHROPIC_MESSAGES, {"model": "claude", "max_tokens": 100}, None),
    "gemini": (
        _GEMINI,
        _GEMINI_MESSAGES,
        {},
        "/v1beta/models/gemini-3:streamGenerateContent",
    ),
    "ollama": (_OLLAMA, _OLLAMA_MESSAGES, {}, None),
}
