"""The bridges' public face: lazy, and clear about what is missing."""

from __future__ import annotations

import doctest
import subprocess
import sys
from importlib import import_module

import pytest

import dragoman.interop as bridges
from dragoman import Message
from dragoman.errors import ConfigError

NAMES = """
    ChatBranch ChatExport Exported from_anthropic from_chat_export from_google from_langchain
    from_litellm from_openai from_pydantic_ai to_anthropic to_google to_langchain to_litellm
    to_openai to_pydantic_ai
""".split()  # noqa: SIM905 - a list of one word each would be harder to read
HEAVY = ["anthropic", "google.genai", "langchain_core", "litellm", "openai", "pydantic_ai"]
NEEDED = {
    "to_google": ("google.genai.types", "google-genai"),
    "to_langchain": ("langchain_core.messages", "langchain-core"),
    "to_litellm": ("litellm.types.utils", "litellm"),
    "to_pydantic_ai": ("pydantic_ai.messages", "pydantic-ai-slim"),
}


def test_the_public_names_are_pinned() -> None:
    """Exactly these, and each is there."""
    assert bridges.__all__ == NAMES
    assert set(NAMES) <= set(dir(bridges))
    assert all(callable(getattr(bridges, name)) for name in NAMES)


def test_no_library_is_imported_for_reading() -> None:
    """Reading dicts and dumps imports none of the libraries."""
    code = f"""
import sys
from importlib import import_module
from dragoman.interop import *
from_openai({{"role": "user", "content": "Hi"}})
from_anthropic({{"role": "user", "content": "Hi"}})
from_google("Hi")
from_litellm({{"role": "user", "content": "Hi"}})
from_langchain({{"type": "human", "data": {{"content": "Hi"}}}})
from_pydantic_ai({{"kind": "response", "parts": []}})
to_openai([]); to_anthropic([])
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60
    )
    assert run.stdout == "[]\n"


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_library_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install."""
    module, package = NEEDED[name]
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=f"pip install {package}"):
        getattr(bridges, name)(Message.user("Hi"))


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_examples_in_docstrings_are_true(name: str) -> None:
    """Each is run."""
    result = doctest.testmod(import_module(f"dragoman.interop.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
