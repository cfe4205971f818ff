"""The files in deploy/: checks that need no container engine and no systemd."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import signal
import socket
import subprocess
import time
import tomllib
import venv
from configparser import ConfigParser
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from dragoman.cli.commands import dragoman
from tests import environment

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
_JSON = re.compile(r"\[[^\]]*\]", re.DOTALL)


def steps() -> dict[str, list[str]]:
    """The instructions of the Containerfile, by name, with continued lines joined."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Containerfile").read_text())
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, rest = line.partition(" ")
            found.setdefault(name, []).append(rest)
    return found


def installations(source: str) -> list[list[str]]:
    """What pip installs in the image, with the sources from another folder."""
    found = [shlex.split(each) for each in steps()["RUN"] if each.startswith("pip ")]
    assert len(found) == 2
    return [[word.replace("/source", source) for word in each[each.index("install") + 1 :]]
            for each in found]  # fmt: skip


def compose() -> Any:
    """The content of compose.yaml."""
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def unit() -> ConfigParser:
    """The systemd unit."""
    parser = ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((DEPLOY / "dragoman.service").read_text())
    return parser


def accepted(arguments: list[str], config: Path) -> None:
    """Check that our CLI accepts the command line with that configuration."""
    given = [str(config) if each.endswith("/dragoman.toml") else each for each in arguments]
    given = given if "--check" in given else [*given, "--check"]
    ran = CliRunner().invoke(dragoman, given)
    assert ran.exit_code == 0, ran.output


def test_the_containers_command_is_accepted() -> None:
    """The image starts our CLI with valid options and a valid configuration."""
    [entry], [command] = steps()["ENTRYPOINT"], steps()["CMD"]
    assert json.loads(entry) == ["dragoman"]
    accepted(json.loads(command), DEPLOY / "dragoman.toml")


def test_the_image_has_what_the_configuration_needs() -> None:
    """The lock that it installs has the extras of the stores in dragoman.toml."""
    assert any("-r ./requirements/image.txt" in " ".join(each) for each in installations("."))
    extras = set(runpy.run_path(str(ROOT / "requirements/lock.py"))["LOCKS"]["image"].extras)
    server = tomllib.loads((DEPLOY / "dragoman.toml").read_text())["server"]
    assert server["keys"].startswith("postgresql:")
    assert {"cli", "gateway", "postgres"} <= extras


def test_compose_fits_the_image() -> None:
    """The mounted files exist; paths, ports and times agree with the other files."""
    services = compose()["services"]
    gateway = services["gateway"]
    assert (DEPLOY / gateway["build"]["context"] / gateway["build"]["dockerfile"]).is_file()
    for service in services.values():
        for each in service.get("volumes", []):
            source = each.split(":")[0]
            assert not source.startswith(".") or (DEPLOY / source).is_file(), source
    [mounted] = gateway["volumes"]
    assert mounted.split(":")[1] in json.loads(steps()["CMD"][0])
    assert int(gateway["stop_grace_period"].removesuffix("s")) > 30  # drain_timeout
    assert f"gateway {steps()['EXPOSE'][0]}" in (DEPLOY / "Caddyfile").read_text()
    server = tomllib.loads((DEPLOY / "dragoman.toml").read_text())["server"]
    assert gateway["environment"]["DRAGOMAN_KEYS"] == server["keys"]
    assert set(gateway["depends_on"]) <= set(services)


def test_the_unit_is_accepted() -> None:
    """Our CLI accepts its commands, and it waits longer than a drain."""
    service = unit()["Service"]
    for name in ("ExecStartPre", "ExecStart"):
        program, *arguments = shlex.split(service[name])
        assert program == "/opt/dragoman/bin/dragoman"
        accepted(arguments, DEPLOY / "dragoman.toml")
    assert int(service["TimeoutStopSec"]) > 30
    assert service["ExecReload"].endswith("-HUP $MAINPID")
    assert service["KillMode"] == "mixed"


def test_the_caddyfile_is_balanced() -> None:
    """Its blocks are closed, and streams are not buffered."""
    text = (DEPLOY / "Caddyfile").read_text()
    assert text.count("{") == text.count("}")
    assert "flush_interval -1" in text


@pytest.mark.slow
def test_the_images_steps_by_hand(tmp_path: Path) -> None:
    """Installed from a clean copy as in the image: it starts, is healthy, and drains on SIGTERM."""
    source = tmp_path / "source"
    source.mkdir()
    tracked = subprocess.run(
        ["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=False
    )  # fmt: skip
    if tracked.returncode:
        pytest.skip("not a git checkout")
    subprocess.run(["tar", "-x", "-C", str(source)], input=tracked.stdout, check=True)
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    for given in installations(str(source)):
        done = subprocess.run(
            [python, "-m", "pip", "install", "-q", *given], env=environment.OUTSIDE,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            pytest.skip(f"pip can't install it: {done.stderr[-300:]}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = tmp_path / "dragoman.toml"
    config.write_text('[server]\nkeys = "sqlite:///keys.db"\n')
    command = [
        each.replace("/etc/dragoman/dragoman.toml", str(config)).replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        for each in json.loads(steps()["CMD"][0])
    ]
    log = (tmp_path / "log").open("w")
    serving = subprocess.Popen(
        [tmp_path / "venv/bin/dragoman", *command, "--port", str(port)], cwd=tmp_path,
        stdout=log, stderr=log, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    try:
        [check] = _JSON.findall(steps()["HEALTHCHECK"][0])
        _python, *rest = json.loads(check)
        probe = [str(python), *(each.replace(":8421", f":{port}") for each in rest)]
        ends = time.monotonic() + environment.PATIENCE
        while subprocess.run(probe, check=False, capture_output=True).returncode:
            assert serving.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < ends
        with urlopen(f"http://127.0.0.1:{port}/health") as answer:
            assert json.load(answer)["version"]
        serving.send_signal(getattr(signal, steps()["STOPSIGNAL"][0]))
        assert serving.wait(environment.PATIENCE) == 0
    finally:
        if serving.poll() is None:
            serving.kill()
        log.close()
    assert subprocess.run(probe, check=False, capture_output=True).returncode
