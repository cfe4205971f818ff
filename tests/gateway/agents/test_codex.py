"""Codex through the gateway: over HTTP and over a WebSocket."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.agents.coder import OPENING, Coder, Plan, Step
from tests.gateway.agents.running import TASK, WORDS, Desk, Ran, desk, note
from tests.npm import CODEX, Npm

pytestmark = pytest.mark.slow

_CONFIG = """
model = "{model}"
model_provider = "dragoman"
sandbox_mode = "danger-full-access"
approval_policy = "never"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.dragoman]
name = "Dragoman"
base_url = "{url}/v1"
env_key = "DRAGOMAN_KEY"
wire_api = "responses"
supports_websockets = {websockets}
request_max_retries = 0
stream_max_retries = 0
"""
_TOLD = "error,codex_api=info,codex_core::client=trace"
"""What it tells on standard error: connections, and which requests have all of the input."""
_PATCH = "*** Begin Patch\n*** Add File: out.txt\n+{words}\n*** End Patch\n"
PLAN = Plan(
    (Step("exec_command", {"cmd": "cat one.txt"}), Step("exec_command", {"cmd": "cat two.txt"})),
    Step("apply_patch", {"input": _PATCH}),
)


_SCRIPT = 'const done = await tools.exec_command({cmd: "COMMAND"}); text(done.output);'
SCRIPTED = Plan(
    (
        Step("functions__exec", {"input": _SCRIPT.replace("COMMAND", "cat one.txt")}),
        Step("functions__exec", {"input": _SCRIPT.replace("COMMAND", "cat two.txt")}),
    ),
    Step("functions__exec", {"input": _SCRIPT.replace("COMMAND", "echo {words} > out.txt")}),
)
"""With its newest models Codex has a tool that takes a program, in a group, told in mid-input."""


def run(npm: Npm, at: Desk, *, websockets: bool, model: str = "gpt-5.5") -> Ran:
    """Run Codex on the task."""
    program = npm(CODEX, "codex")
    home = at.home / ".codex"
    home.mkdir()
    settings = {"url": at.served.url, "websockets": str(websockets).lower(), "model": model}
    (home / "config.toml").write_text(_CONFIG.format(**settings))
    env = {"DRAGOMAN_KEY": at.served.key, "RUST_LOG": _TOLD}
    ran = at.run(program, "exec", "--skip-git-repo-check", TASK, env=env)
    note(at, ran, agent=CODEX, websockets=websockets)
    return ran


@pytest.mark.parametrize("back", ["anthropic", "gemini", "openai-chat", "openai-responses"])
@pytest.mark.parametrize("websockets", [False, True], ids=["http", "websocket"])
def test_codex_does_its_task(npm: Npm, tmp_path: Path, back: str, *, websockets: bool) -> None:
    """It reads two files in parallel, patches a third with their contents, and answers."""
    with desk(tmp_path, Coder(back, PLAN)) as at:
        ran = run(npm, at, websockets=websockets)
        assert ran.code == 0, ran.complained[-3000:]
        assert f"{OPENING} {WORDS}" in ran.printed
        assert at.out == WORDS
        assert not at.coder.problems
        assert at.coder.is_replayed
        expect_requests(at, ran, websockets=websockets)


@pytest.mark.parametrize("back", ["anthropic", "openai-chat"])
def test_codex_runs_programs_of_the_model(npm: Npm, tmp_path: Path, back: str) -> None:
    """As with the models it is made for, whose tools are grouped among the messages."""
    with desk(tmp_path, Coder(back, SCRIPTED)) as at:
        ran = run(npm, at, websockets=True, model="gpt-6.1-sol")
        assert ran.code == 0, ran.complained[-3000:]
        assert f"{OPENING} {WORDS}" in ran.printed
        assert at.out == WORDS
        assert not at.coder.problems
        expect_requests(at, ran, websockets=True)


def expect_requests(at: Desk, ran: Ran, *, websockets: bool) -> None:
    """Each request came once; a WebSocket has one connection, with a prewarm and no fallback."""
    told = at.served.records(3 + websockets)
    assert len(at.coder.requests) == 3
    assert [each["status"] for each in told] == [200] * (3 + websockets)
    assert [each["kind"] for each in told] == ["responses"] * (3 + websockets)
    assert not any("error" in each for each in told)
    # The prewarm calls no model, and only exists over a WebSocket.
    assert sum("provider" not in each for each in told) == websockets
    log = ran.complained.lower()
    assert log.count("successfully connected to responses websocket") == websockets
    assert log.count("non-incremental request") <= websockets  # the prewarm; others continue it
    assert "falling back" not in log


@pytest.mark.parametrize("back", ["anthropic", "openai-responses"])
@pytest.mark.parametrize("websockets", [False, True], ids=["http", "websocket"])
def test_an_interrupted_stream_is_an_error(
    npm: Npm, tmp_path: Path, back: str, *, websockets: bool
) -> None:
    """Codex reports a failure; the partial answer is not accepted."""
    with desk(tmp_path, Coder(back, PLAN, cuts=99)) as at:
        ran = run(npm, at, websockets=websockets)
        assert ran.code != 0
        assert f"{OPENING} {WORDS}" not in ran.printed
        assert at.out == WORDS
        assert "error" in ran.complained.lower()
        assert any(each.get("error") == "StreamInterrupted" for each in at.served.records(3))
