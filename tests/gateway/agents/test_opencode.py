"""opencode through the gateway, on four fronts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.agents.coder import OPENING, Coder, Plan, Step
from tests.gateway.agents.running import TASK, WORDS, Desk, Ran, desk, note
from tests.npm import OPENCODE, Npm

pytestmark = pytest.mark.slow

FRONTS = {
    "openai-chat": ("dragoman", "/v1"),
    "openai-responses": ("openai", "/v1"),
    "anthropic": ("anthropic", "/v1"),
    "gemini": ("google", "/v1beta"),
}
"""What opencode calls the provider, and where it finds it."""
MODELS = {"dragoman": "llama", "openai": "gpt-5", "anthropic": "claude-sonnet-4-5",
          "google": "gemini-2.5-flash"}  # fmt: skip


_PATCH = "*** Begin Patch\n*** Add File: out.txt\n+{words}\n*** End Patch"


def plan(work: Path, front: str) -> Plan:
    """The task for its tools, which need absolute paths."""
    read = [Step("read", {"filePath": str(work / name)}) for name in ("one.txt", "two.txt")]
    if front == "openai-responses":  # OpenAI's models have another tool for writing
        return Plan((read[0], read[1]), Step("apply_patch", {"patchText": _PATCH}))
    write = Step("write", {"filePath": str(work / "out.txt"), "content": "{words}"})
    return Plan((read[0], read[1]), write)


def config_for(at: Desk, front: str) -> dict[str, Any]:
    """The content of opencode.json."""
    name, path = FRONTS[front]
    provider: dict[str, Any] = {
        "options": {"baseURL": f"{at.served.url}{path}", "apiKey": at.served.key}
    }
    if name == "dragoman":
        provider |= {"npm": "@ai-sdk/openai-compatible", "name": "Dragoman",
                     "models": {"llama": {"tool_call": True}}}  # fmt: skip
    model = f"{name}/{MODELS[name]}"
    return {
        "$schema": "https://opencode.ai/config.json",
        "model": model,
        "small_model": model,
        "autoupdate": False,
        "share": "disabled",
        "permission": {"*": "allow"},
        "enabled_providers": [name],
        "provider": {name: provider},
    }


def run(npm: Npm, at: Desk, front: str) -> Ran:
    """Run opencode on the task."""
    program = npm(OPENCODE, "opencode")
    (at.work / "opencode.json").write_text(json.dumps(config_for(at, front)))
    env = {
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }
    ran = at.run(program, "run", TASK, env=env)
    note(at, ran, agent=OPENCODE, front=front)
    return ran


PAIRS = [
    ("openai-chat", "anthropic"),
    ("openai-chat", "openai-chat"),
    ("openai-responses", "gemini"),
    ("openai-responses", "openai-responses"),
    ("anthropic", "openai-chat"),
    ("anthropic", "anthropic"),
    ("gemini", "openai-responses"),
    ("gemini", "ollama"),
    ("gemini", "gemini"),
]


@pytest.mark.parametrize(("front", "back"), PAIRS)
def test_opencode_does_its_task(npm: Npm, tmp_path: Path, front: str, back: str) -> None:
    """It reads two files in parallel, writes a third with their contents, and answers."""
    with desk(tmp_path, Coder(back, plan(tmp_path / "home" / "task", front))) as at:
        ran = run(npm, at, front)
        assert ran.code == 0, ran.complained[-3000:]
        assert f"{OPENING} {WORDS}" in ran.printed
        assert at.out == WORDS
        assert not at.coder.problems


@pytest.mark.parametrize(("front", "back"), [("openai-chat", "anthropic"), ("gemini", "gemini")])
def test_an_interrupted_stream_is_retried(npm: Npm, tmp_path: Path, front: str, back: str) -> None:
    """Opencode sends the request once more: a partial answer is not accepted."""
    with desk(tmp_path, Coder(back, plan(tmp_path / "home" / "task", front), cuts=1)) as at:
        run(npm, at, front)
        assert len(at.coder.requests) == 4
        assert any(each.get("error") == "StreamInterrupted" for each in at.served.records(4))
