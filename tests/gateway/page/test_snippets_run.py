"""The commands and code that the lens copies: each runs, and reaches the API it was made for.

Only the provider's address is replaced, by that of a gateway on this machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.config.settings import GatewayConfig, Place
from dragoman.gateway.page.code_snippets import text_of
from dragoman.gateway.page.lens import compared, read
from dragoman.model.jsontext import dumps
from dragoman.providers.registry import provider
from tests.gateway.page.test_lens import HOSTILE
from tests.gateway.running import Serving, running

_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
_ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"} | dict.fromkeys(_KEYS, "key")
VENDORS = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "gemini": "google",
    "ollama": "ollama",
}


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    """A gateway that echoes, whatever model is asked for."""
    place = Place(name="echo:", model_url="echo:")
    config = GatewayConfig(places={"echo:": place}, aliases={"gpt-4o": "echo:"})
    with running(config) as found:
        yield found


def _snippet(target: str, form: str, url: str, *, stream: bool) -> str:
    body: dict[str, Any] = {
        "model": "gpt-4o", "stream": stream, "max_tokens": 50,
        "messages": [{"role": "system", "content": "Be brief."},
                     {"role": "user", "content": HOSTILE}],
    }  # fmt: skip
    side = compared(read(dumps(body), None), target, target).left
    text = text_of(side, form)
    base = provider(VENDORS[target]).base_url
    assert base is not None
    root = base.removesuffix("/v1").removesuffix("/v1beta")
    assert root in text
    return text.replace(root, url)


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, env=_ENVIRONMENT, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("target", VENDORS)
def test_copied_curl_command_runs(
    serving: Serving, tmp_path: Path, target: str, stream: bool
) -> None:
    """A shell runs it as it is; nothing in the body is expanded."""
    text = _snippet(target, "curl", serving.url, stream=stream)
    told = _run(["sh", "-c", f"{text} --silent --fail-with-body"], tmp_path)
    assert "$HOME" in told.replace("\\u0024", "$")
    assert "uid=" not in told


@pytest.mark.slow  # seconds: each imports an SDK
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "anthropic"])
def test_copied_python_code_runs(
    serving: Serving, tmp_path: Path, target: str, stream: bool
) -> None:
    """The vendor's SDK takes it as it is."""
    pytest.importorskip(VENDORS[target])
    text = _snippet(target, "python", serving.url, stream=stream)
    (tmp_path / "pasted.py").write_text(text)
    assert "$HOME" in _run([sys.executable, "pasted.py"], tmp_path)
