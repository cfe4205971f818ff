"""Claude Code through the gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.agents.coder import OPENING, Coder, Plan, Step
from tests.gateway.agents.running import TASK, WORDS, Desk, Ran, desk, note
from tests.npm import CLAUDE_CODE, Npm

pytestmark = pytest.mark.slow


def plan(work: Path) -> Plan:
    """The task for its tools, which need absolute paths."""
    read = [Step("Read", {"file_path": str(work / name)}) for name in ("one.txt", "two.txt")]
    write = Step("Write", {"file_path": str(work / "out.txt"), "content": "{words}"})
    return Plan((read[0], read[1]), write)


def run(npm: Npm, at: Desk) -> Ran:
    """Run Claude Code on the task."""
    program = npm(CLAUDE_CODE, "claude")
    env = {
        "ANTHROPIC_BASE_URL": at.served.url,
        "ANTHROPIC_API_KEY": at.served.key,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
    }
    tools = ("--allowedTools", "Read,Write")
    ran = at.run(program, "-p", TASK, *tools, "--model", "claude-sonnet-4-5", env=env)
    note(at, ran, agent=CLAUDE_CODE)
    return ran


BACKS = ["openai-chat", "openai-responses", "gemini", "ollama", "anthropic"]


@pytest.mark.parametrize("back", BACKS)
def test_claude_code_does_its_task(npm: Npm, tmp_path: Path, back: str) -> None:
    """It reads two files in parallel, writes a third with their contents, and answers."""
    with desk(tmp_path, Coder(back, plan(tmp_path / "home" / "task"))) as at:
        ran = run(npm, at)
        assert ran.code == 0, ran.complained[-3000:]
        assert f"{OPENING} {WORDS}" in ran.printed
        assert at.out == WORDS
        assert not at.coder.problems
        assert at.coder.is_replayed
        told = at.served.records(3)
        assert [each["status"] for each in told] == [200] * 3
        assert [each.get("passed", False) for each in told] == [back == "anthropic"] * 3


@pytest.mark.parametrize("back", ["openai-chat", "anthropic"])
def test_an_interrupted_stream_is_an_error(npm: Npm, tmp_path: Path, back: str) -> None:
    """Claude Code reports a failure, or retries; a partial answer is not accepted."""
    with desk(tmp_path, Coder(back, plan(tmp_path / "home" / "task"), cuts=99)) as at:
        ran = run(npm, at)
        assert ran.code != 0
        assert f"{OPENING} {WORDS}" not in ran.printed
        assert at.out == WORDS
        assert any(each.get("error") == "StreamInterrupted" for each in at.served.records(3))
