"""Converts messages of other libraries to ours and back.

`from_*` functions take one object or several and return `Messages`; they need only the library
that the objects are from. `to_*` functions return an `Exported`: the library's messages, and what
was lost. The library is imported when its `to_*` function is called.

| library | from | to |
|---|---|---|
| openai (also Groq and Mistral) | `from_openai` | `to_openai` |
| anthropic | `from_anthropic` | `to_anthropic` |
| google-genai | `from_google` | `to_google` |
| LangChain | `from_langchain` | `to_langchain` |
| pydantic-ai | `from_pydantic_ai` | `to_pydantic_ai` |
| LiteLLM | `from_litellm` | `to_litellm` |

`from_chat_export` reads a conversation exported from ChatGPT or Claude, or in ShareGPT's form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman._lazy import lazily

if TYPE_CHECKING:
    from dragoman.interop.anthropic import from_anthropic, to_anthropic
    from dragoman.interop.chat_exports import ChatBranch, ChatExport, from_chat_export
    from dragoman.interop.exported import Exported
    from dragoman.interop.google import from_google, to_google
    from dragoman.interop.langchain import from_langchain, to_langchain
    from dragoman.interop.litellm import from_litellm, to_litellm
    from dragoman.interop.openai import from_openai, to_openai
    from dragoman.interop.pydantic_ai import from_pydantic_ai, to_pydantic_ai

_HOMES = {
    "anthropic": ("from_anthropic", "to_anthropic"),
    "chat_exports": ("ChatBranch", "ChatExport", "from_chat_export"),
    "exported": ("Exported",),
    "google": ("from_google", "to_google"),
    "langchain": ("from_langchain", "to_langchain"),
    "litellm": ("from_litellm", "to_litellm"),
    "openai": ("from_openai", "to_openai"),
    "pydantic_ai": ("from_pydantic_ai", "to_pydantic_ai"),
}

__all__ = [
    "ChatBranch",
    "ChatExport",
    "Exported",
    "from_anthropic",
    "from_chat_export",
    "from_google",
    "from_langchain",
    "from_litellm",
    "from_openai",
    "from_pydantic_ai",
    "to_anthropic",
    "to_google",
    "to_langchain",
    "to_litellm",
    "to_openai",
    "to_pydantic_ai",
]

__getattr__, __dir__ = lazily(__name__, _HOMES)
