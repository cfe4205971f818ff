"""Image details, empty texts and media that only some hosts accept."""

from __future__ import annotations

from typing import Any

from tests.peers.claims import comes_back, has, is_valid, lacks, reports, violates
from tests.peers.rows import Request, Row

_IMAGE = "data:image/png;base64,aGk="


def _viewed(detail: str) -> Request:
    """Codex's `view_image`: a picture as the output of a tool."""
    return Request("openai-responses", {"model": "m", "input": [
        {"role": "user", "content": "What is on it?"},
        {"type": "function_call", "call_id": "c", "name": "view_image", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [
            {"type": "input_image", "image_url": _IMAGE, "detail": detail},
        ]},
    ]})  # fmt: skip


def _shown(detail: str) -> Request:
    """A picture in a user message of Chat."""
    return Request("openai-chat", {"model": "m", "messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": _IMAGE, "detail": detail}},
    ]}]})  # fmt: skip


_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
_EMPTY_IN_CHAT = Request("openai-chat", {"model": "m", "messages": [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "", "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "ok"},
    {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "Go"}]},
]})  # fmt: skip
_EMPTY_IN_CLAUDE = Request("anthropic", {"model": "m", "max_tokens": 9, "messages": [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": [
        {"type": "text", "text": ""}, {"type": "tool_use", "id": "c", "name": "f", "input": {}},
    ]},
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c", "content": "ok"}, {"type": "text", "text": ""},
    ]},
]})  # fmt: skip
_EMPTY_IN_GEMINI = Request("gemini", {"contents": [
    {"role": "user", "parts": [{"text": ""}]},
    {"role": "model", "parts": [{"text": ""}, {"functionCall": {"name": "f", "args": {}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "ok"}}}]},
]})  # fmt: skip
_GOOGLE = ("gemini", "google:gemini-3-pro-preview", "vertex:gemini-2.5-pro")


def _media(mime: str, **source: str) -> Request:
    """A medium beside a question to Gemini."""
    key = "inlineData" if "data" in source else "fileData"
    parts: list[dict[str, Any]] = [{"text": "What is it?"}, {key: {"mimeType": mime, **source}}]
    return Request("gemini", {"contents": [{"role": "user", "parts": parts}]})


_VIDEO = _media("video/mp4", data="AAAA")
_LINK = _media("video/mp4", fileUri="https://www.youtube.com/watch?v=1")
_AUDIO = _media("audio/mpeg", fileUri="https://example.org/a.mp3")
_PDF = _media("application/pdf", fileUri="https://example.org/a.pdf")

ROWS = (
    Row(
        "The detail `original` of a tool's picture is sent as `high` to hosts without it",
        "farion1231/cc-switch#6569, #7555",
        _viewed("original"),
        (has('"detail": "high"'), lacks("original"), reports("nearest detail"), is_valid),
        ("groq:llama-4", "openrouter:z-ai/glm-5", "openai:gpt-4.1", "openai-compatible:m"),
    ),
    Row(
        "The details that a host knows are sent as they came",
        "a control",
        _viewed("high"),
        (has('"detail": "high"'), is_valid),
        ("groq:llama-4", "openai:gpt-5.5", "openai-responses"),
    ),
    Row(
        "The detail `original` stays where the model knows it",
        "vercel/ai#14998",
        _viewed("original"),
        (has('"detail": "original"'), is_valid),
        ("openai-responses", "openai:gpt-5.5"),
    ),
    Row(
        "`check` finds an image detail that the host doesn't know",
        "caozhiyuan/copilot-api#362",
        _shown("finest"),
        (violates("shape"), comes_back),
        ("openai-chat",),
    ),
    Row(
        "Empty texts of a Chat history are left out for Google, beside calls and in user turns",
        "router-for-me/CLIProxyAPI#1292, QuantumNous/new-api#632",
        _EMPTY_IN_CHAT,
        (lacks('{"text": ""}'), has('"text": "Go"', "functionCall"), reports("blank text")),
        _GOOGLE,
    ),
    Row(
        "Empty texts of Claude Code are left out for Google, also after results",
        "router-for-me/CLIProxyAPI#3485, 54xzh/FLIT#69",
        _EMPTY_IN_CLAUDE,
        (lacks('{"text": ""}'), has("functionResponse"), reports("blank text")),
        _GOOGLE,
    ),
    Row(
        "Empty instructions are left out for Google and Anthropic, not replaced by a text",
        "songquanpeng/one-api#2243",
        Request("openai-chat", {"model": "m", "messages": [
            {"role": "system", "content": ""}, {"role": "user", "content": "Hi"},
        ]}),
        (lacks("systemInstruction", '"system"', "(no text)"), reports("instructions"), is_valid),
        ("gemini", "anthropic"),
    ),
    Row(
        "An empty system prompt beside the messages is left out for Google and Anthropic",
        "songquanpeng/one-api#2243",
        Request("openai-responses", {"model": "m", "instructions": "", "input": "Hi"}),
        (lacks("systemInstruction", '"system"'), reports("instructions"), is_valid),
        ("gemini", "anthropic"),
    ),
    Row(
        "The empty texts of Google's own clients stay as they came, with a warning of `check`",
        "Google accepted seven recorded requests with them",
        _EMPTY_IN_GEMINI,
        (comes_back, violates("W76")),
        ("gemini",),
    ),
    Row(
        "Video data goes to hosts that take it",
        "OpenRouter's documentation and recordings; vLLM's chat_utils.py",
        _VIDEO,
        (has('"video_url": {"url": "data:video/mp4;base64,AAAA"}'), is_valid),
        ("openrouter:google/gemini-2.5-pro", "vllm:Qwen/Qwen3-VL"),
    ),
    Row(
        "A video's address goes to hosts that take it",
        "OpenRouter's documentation and recordings; vLLM's chat_utils.py",
        _LINK,
        (has('"video_url": {"url": "https://www.youtube.com/watch?v=1"}'), is_valid),
        ("openrouter:google/gemini-2.5-pro", "vllm:Qwen/Qwen3-VL"),
    ),
    Row(
        "A recording's address goes to vLLM",
        "vLLM's chat_utils.py",
        _AUDIO,
        (has('"audio_url": {"url": "https://example.org/a.mp3"}'), is_valid),
        ("vllm:Qwen/Qwen3-Omni",),
    ),
    Row(
        "A recording's address is reported where only data is taken",
        "OpenRouter's documentation",
        _AUDIO,
        (lacks("a.mp3"), reports("Audio"), is_valid),
        ("openrouter:google/gemini-2.5-pro",),
    ),
    Row(
        "A document's address goes to hosts that take it",
        "OpenRouter's recordings",
        _PDF,
        (has('"file_data": "https://example.org/a.pdf"'), is_valid),
        ("openrouter:google/gemini-2.5-pro",),
    ),
    Row(
        "A document is a `file_url` for Perplexity",
        "Perplexity's documentation",
        _PDF,
        (has('"file_url": {"url": "https://example.org/a.pdf"}'),),
        ("perplexity:sonar-pro",),
    ),
    Row(
        "vLLM gets no document, which it refuses",
        "langchain-ai/openwiki#63, vllm-project/vllm#46562",
        _PDF,
        (lacks("a.pdf"), reports("file: not supported"), is_valid),
        ("vllm:Qwen/Qwen3-VL",),
    ),
    Row(
        "Media in the forms of hosts come back as they came",
        "a control",
        Request("openai-chat", {"model": "m", "messages": [{"role": "user", "content": [
            {"type": "video_url", "video_url": {"url": "https://a.org/v.mp4"}},
            {"type": "audio_url", "audio_url": {"url": "data:audio/wav;base64,AAAA"}},
            {"type": "file_url", "file_url": {"url": "AAAA"}, "file_name": "a.pdf"},
            {"type": "file_url", "file_url": {"url": "https://a.org/b.pdf"}},
        ]}]}),
        (comes_back,),
        ("openai-chat",),
    ),
)  # fmt: skip
