"""`dragoman serve`: what it reports about a file, and when it refuses to start."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dragoman.cli.commands import dragoman
from dragoman.gateway.keys import Keys
from tests.gateway.operations.workers import answering, ask, threaded
from tests.gateway.running import place, routed, upstream

GOOD = """
[providers.lab]
kind = "openai-compatible"
base_url = "http://127.0.0.1:9000/v1"
api_key_env = "LAB_KEY"

[[routes]]
model = "claude*"
to = ["anthropic:claude-sonnet-4-5", "lab"]

[[routes]]
model = "*"
name = "rest"
to = [{to = "lab", weight = 3}, {to = "openai:gpt-5-mini", weight = 1}]

[aliases]
fast = "claude-haiku-4-5"
"""


def serve(folder: Path, text: str | None, *arguments: str) -> Result:
    """The command, with a file of this text."""
    given = list(arguments)
    if text is not None:
        (folder / "dragoman.toml").write_text(text)
        given += ["--config", str(folder / "dragoman.toml")]
    return CliRunner().invoke(dragoman, ["serve", *given])


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "LAB_KEY", "DRAGOMAN_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def test_check_shows_what_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Routes, providers and whether their keys are set; never a key."""
    monkeypatch.setenv("LAB_KEY", "sk-secret-of-the-lab")
    result = serve(tmp_path, GOOD, "--check")
    assert result.exit_code == 0
    for line in (
        "claude* -> anthropic:claude-sonnet-4-5, then lab",
        "* (rest) -> lab x3 | openai:gpt-5-mini x1",
        "fast = claude-haiku-4-5",
        "lab (openai-compatible) at http://127.0.0.1:9000/v1: key set",
        "anthropic: key missing: ANTHROPIC_API_KEY",
        "keys: none",
    ):
        assert line in result.output
    assert "sk-secret" not in result.output


def test_check_without_a_file(tmp_path: Path) -> None:
    """Whatever is found on this machine is served."""
    result = serve(tmp_path, None, "--check")
    assert result.exit_code == 0
    assert "configuration: none" in result.output
    assert "echo:" in result.output


def test_check_reports_all_problems(tmp_path: Path) -> None:
    """Each with its line and column; nothing starts."""
    text = '[server]\nprot = 1\nworkers = "many"\n\n[[routes]]\nmodel = 3\n'
    for arguments in (("--check",), ()):
        result = serve(tmp_path, text, *arguments)
        assert result.exit_code == 2
        for where in ("dragoman.toml:2:1: ", "dragoman.toml:3:11: ", "dragoman.toml:6:9: "):
            assert where in result.output


def test_check_fails_where_the_server_would_not_start(tmp_path: Path) -> None:
    """Listening everywhere needs keys: `--check` says so, too, before a deployment does."""
    for arguments in (("--check",), ()):
        result = serve(tmp_path, '[server]\nhost = "0.0.0.0"\n', *arguments)
        assert result.exit_code not in {0, 1}
        assert "without keys" in result.output


def test_a_wrong_address_is_not_called_missing(tmp_path: Path) -> None:
    """One problem is reported once, where it is."""
    text = '[providers.x]\nkind = "openai-compatible"\nbase_url = "ftp://x"\n'
    result = serve(tmp_path, text, "--check")
    assert "dragoman.toml:3:12: " in result.output
    assert "missing" not in result.output


def test_a_missing_file(tmp_path: Path) -> None:
    """A file that was named has to be there."""
    result = serve(tmp_path, None, "--config", str(tmp_path / "nothing.toml"))
    assert result.exit_code in {2, 4}
    assert "nothing.toml" in result.output


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])  # noqa: S104 - they are refused
def test_without_keys_only_this_machine_is_served(tmp_path: Path, host: str) -> None:
    """Other addresses need keys."""
    result = serve(tmp_path, GOOD, "--host", host)
    assert result.exit_code == 2
    assert "without keys" in result.output
    assert "Traceback" not in result.output


def test_a_port_in_use(tmp_path: Path) -> None:
    """The error says which port, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = serve(tmp_path, GOOD, "--port", str(port))
    assert result.exit_code == 2
    assert f"port {port}" in result.output
    assert "--port" in result.output


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If uvicorn is missing, the command says what to install."""
    for name in [each for each in sys.modules if each.startswith("dragoman.gateway")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = serve(tmp_path, GOOD)
    assert result.exit_code == 2
    assert "pip install 'dragoman[gateway]'" in result.output


def test_metrics_are_for_admins(tmp_path: Path) -> None:
    """With keys, metrics need an admin's; health checks need none."""
    url = f"sqlite:///{tmp_path / 'keys.db'}"

    async def made() -> tuple[str, str]:
        keys = await Keys.open(url)
        plain = (await keys.create(name="plain"))[1]
        admin = (await keys.create(name="admin", is_admin=True))[1]
        await keys.close()
        return plain, admin

    plain, admin = asyncio.run(made())
    with upstream(answering) as back:
        config = routed(place("lab", "openai-compatible", back), keys=url, log="off")
        with threaded(config) as serving:

            def status(path: str, key: str | None = None) -> int:
                headers = {} if key is None else {"authorization": f"Bearer {key}"}
                return ask(serving.port, path, method="GET", headers=headers)[0]

            assert status("/health") == 200
            assert status("/metrics") == 401
            assert status("/metrics", plain) == 403
            assert status("/metrics", "wrong") == 401
            assert status("/metrics", admin) == 200
            answered = ask(serving.port, headers={"x-api-key": plain})
            assert answered[0] == 200
            shown = ask(
                serving.port, "/metrics", method="GET", headers={"authorization": f"Bearer {admin}"}
            )[1].decode()
    assert 'dragoman_key_refusals_total{error="AuthenticationError"} 2' in shown
    assert plain not in shown


def test_new_keys_take_effect_with_a_reload(tmp_path: Path) -> None:
    """A key store added to the file is opened, and keys are required."""
    with upstream(answering) as back:
        before = routed(place("lab", "openai-compatible", back), log="off")
        url = f"sqlite:///{tmp_path / 'keys.db'}"
        after = routed(place("lab", "openai-compatible", back), log="off", keys=url)
        with threaded(before, load=lambda: after) as serving:
            assert ask(serving.port)[0] == 200
            serving.call(serving.worker.reload)
            serving.until(lambda: serving.worker.metrics.reloads == 1)
            assert ask(serving.port)[0] == 401
