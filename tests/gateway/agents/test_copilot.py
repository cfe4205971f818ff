"""GitHub's Copilot CLI through the gateway, as its own model provider, in each API it speaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.agents.coder import OPENING, Coder, Plan, Step
from tests.gateway.agents.running import TASK, WORDS, desk, note
from tests.npm import COPILOT, Npm

pytestmark = pytest.mark.slow

WIRES = {
    "completions": ("openai", "/v1", "gpt-5.4"),
    "responses": ("openai", "/v1", "gpt-5.4"),
    "anthropic": ("anthropic", "", "claude-sonnet-4.5"),
}
"""Its type of provider, the end of the address, and a model for which it has settings."""


def _view(folder: Path, name: str) -> Step:
    return Step("view", {"path": str(folder / name)})


@pytest.mark.parametrize(
    "back", ["anthropic", "gemini", "ollama", "openai-chat", "openai-responses"]
)
@pytest.mark.parametrize("wire", WIRES)
def test_copilot_does_its_task(npm: Npm, tmp_path: Path, wire: str, back: str) -> None:
    """It reads two files in parallel, writes a third with their contents, and answers."""
    work = tmp_path / "home" / "task"
    write = Step(
        "bash", {"command": "echo {words} > out.txt", "description": "Write", "mode": "sync"}
    )
    coder = Coder(back, Plan((_view(work, "one.txt"), _view(work, "two.txt")), write))
    kind, path, model = WIRES[wire]
    with desk(tmp_path, coder) as at:
        env = {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_TYPE": kind,
            "COPILOT_PROVIDER_BASE_URL": f"{at.served.url}{path}",
            "COPILOT_PROVIDER_API_KEY": at.served.key,
            "COPILOT_PROVIDER_WIRE_API": "responses" if wire == "responses" else "completions",
            "COPILOT_MODEL": model,
        }
        allowed = ("--allow-all-tools", "--allow-all-paths", "--no-auto-update")
        ran = at.run(npm(COPILOT, "copilot"), "-p", TASK, *allowed, env=env)
        note(at, ran, agent=COPILOT, wire=wire)
        assert ran.code == 0, ran.complained[-3000:]
        assert f"{OPENING} {WORDS}" in ran.printed
        assert at.out == WORDS
        assert not at.coder.problems
        assert not ran.wanted  # it asks no other machine
