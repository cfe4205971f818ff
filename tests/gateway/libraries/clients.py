"""The libraries: their versions, the fronts that they speak, and what they show of an answer."""

from __future__ import annotations

from typing import NamedTuple

CHAT, RESPONSES, ANTHROPIC, GEMINI, OLLAMA = (
    "openai-chat", "openai-responses", "anthropic", "gemini", "ollama",
)  # fmt: skip
TRIED = "2026-11-19"
"""When these versions were tried: the newest of that day."""


class Library(NamedTuple):
    """A library, and the program that uses it."""

    name: str
    version: str
    program: str
    requirements: tuple[str, ...]
    """What is installed from PyPI, or from npm for a program in JavaScript."""
    fronts: tuple[str, ...]
    thinking: tuple[str, ...] = ()
    """The fronts on which it shows thinking."""
    scenarios: tuple[str, ...] = ("text", "tools", "thinking", "error")


LIBRARIES = (
    Library("OpenAI Agents SDK", "0.24.0", "openai_agents.py",
            ("openai-agents==0.24.0", "openai==3.51.0"), (CHAT, RESPONSES), (CHAT, RESPONSES)),
    Library("OpenAI Agents SDK (JavaScript)", "0.20.0", "openai_agents.mjs",
            ("@openai/agents@0.20.0",), (CHAT, RESPONSES), (CHAT, RESPONSES)),
    Library("pydantic-ai", "2.66.0", "pydantic_agents.py",
            ("pydantic-ai-slim[openai,anthropic,google,groq]==2.66.0",),
            (CHAT, RESPONSES, ANTHROPIC, GEMINI, "groq"),
            (CHAT, RESPONSES, ANTHROPIC, GEMINI, "groq")),
    Library("LlamaIndex", "0.14.25", "llama_index_agents.py",
            ("llama-index-core==0.14.25", "llama-index-llms-openai==0.8.3",
             "llama-index-llms-openai-like==0.8.1", "llama-index-llms-google-genai==0.11.3",
             "llama-index-llms-ollama==0.11.0"),
            (CHAT, RESPONSES, GEMINI, OLLAMA), (CHAT, RESPONSES, GEMINI, OLLAMA)),
    Library("instructor", "1.17.0", "instructor_models.py",
            ("instructor==1.17.0", "anthropic==2.10.0", "google-genai==3.3.0", "jsonref==1.1.0"),
            (CHAT, RESPONSES, ANTHROPIC, GEMINI), (), ("structured output", "json", "error")),
    Library("LiteLLM", "1.106.2", "litellm_models.py", ("litellm==1.106.2", "mcp"),
            (CHAT, RESPONSES, ANTHROPIC, GEMINI, OLLAMA),
            (CHAT, RESPONSES, ANTHROPIC, GEMINI, OLLAMA)),
    Library("llm", "0.36", "llm_models.py",
            ("llm==0.36", "llm-anthropic==0.30", "llm-ollama==0.19.1"),
            (CHAT, ANTHROPIC, OLLAMA), (), ("text", "tools", "error")),
    Library("Anthropic SDK (TypeScript)", "1.10.0", "anthropic_models.mjs",
            ("@anthropic-ai/sdk@1.10.0",), (ANTHROPIC,), (ANTHROPIC,)),
    Library("Mistral SDK (TypeScript)", "2.7.0", "mistral_models.mjs",
            ("@mistralai/mistralai@2.7.0",), (CHAT,), (CHAT,)),
    Library("Vercel AI SDK", "7.0.173", "vercel_models.mjs",
            ("ai@7.0.173", "@ai-sdk/openai@4.0.118", "@ai-sdk/openai-compatible@3.0.92",
             "@ai-sdk/anthropic@4.0.104"),
            (CHAT, RESPONSES, ANTHROPIC), (CHAT, RESPONSES, ANTHROPIC),
            ("text", "tools", "thinking", "turns", "error")),
)  # fmt: skip


def is_tried(library: Library, front: str, scenario: str) -> bool:
    """Whether a library can do that at all."""
    if scenario == "thinking":
        return front in library.thinking
    # instructor asks the Responses API for a tool call only
    return not (scenario == "json" and front == RESPONSES)


BEFORE = (
    ("OpenAI Agents SDK (JavaScript)", "openai-chat",
     "no thinking from Responses, Anthropic, Gemini and Ollama: it reads `reasoning` alone"),
    ("pydantic-ai", "groq", "no thinking from these, for the same reason"),
    ("OpenAI Agents SDK (JavaScript), pydantic-ai", "openai-responses",
     "no thinking from Chat, Anthropic and Ollama: the summary was empty"),
    ("Anthropic SDK (TypeScript)", "anthropic",
     "no text in the last block of an answer from Responses: an envelope followed it"),
    ("Mistral SDK (TypeScript)", "openai-chat",
     "no stream from any provider: `usage` was null until the last chunk"),
    ("Vercel AI SDK", "openai-responses",
     "no thinking, for the same reason; no tools and no second turn, as it refers to stored items"),
)  # fmt: skip
"""What did not work before 2026-11-19: the library, the front, and what was missing."""
