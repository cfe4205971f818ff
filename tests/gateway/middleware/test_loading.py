"""Middleware from files and entry points; unusable ones are reported at startup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.errors import ConfigError
from dragoman.gateway.config.settings import GatewayConfig
from dragoman.gateway.middleware import Middleware, load_middleware
from dragoman.gateway.state import Gateway

GUARD = """
from dataclasses import dataclass

async def check(request, info):
    return None

@dataclass
class Redact:
    count: int = 0
    def on_event(self, event, info):
        return event
    async def after(self, request, response, info):
        return None

redact = Redact(3)

def before(request, info):
    return None
"""


def config_with(folder: Path, *names: str) -> GatewayConfig:
    """A configuration beside the files of a folder."""
    config = GatewayConfig(source=folder / "dragoman.toml")
    return replace(config, server=replace(config.server, middleware=names))


def loaded(folder: Path, *names: str) -> Middleware:
    """The loaded middleware."""
    found = load_middleware(config_with(folder, *names))
    assert found is not None
    return found


def test_functions_objects_classes_and_modules_are_found(tmp_path: Path) -> None:
    """Paths are relative to the configuration; without a name, the module has the functions."""
    (tmp_path / "guard.py").write_text(GUARD)
    names = ("guard.py:check", "guard.py:redact", "guard.py:Redact", "guard.py")
    found = loaded(tmp_path, *names, f"{tmp_path}/guard.py:check")
    given = [
        [hook for hook in ("route", "before", "on_event", "after") if getattr(each, hook)]
        for each in found.hooks
    ]
    answers = ["on_event", "after"]
    assert given == [["before"], answers, answers, ["before"], ["before"]]
    assert load_middleware(GatewayConfig()) is None


def test_a_changed_file_is_another_middleware(tmp_path: Path) -> None:
    """So that cached answers of the former one are not used."""
    (tmp_path / "guard.py").write_text(GUARD)
    first = loaded(tmp_path, "guard.py:check").digest
    assert loaded(tmp_path, "guard.py:check").digest == first
    (tmp_path / "guard.py").write_text(GUARD + "# another")
    assert loaded(tmp_path, "guard.py:check").digest != first


@pytest.mark.parametrize(
    ("source", "name", "said"),
    [
        (GUARD, "nowhere.py:check", "does not exist"),
        (GUARD, "guard.py:nothing", "does not define this name"),
        ("x = 1", "guard.py", "none of the functions"),
        ("x = 1", "guard.py:x", "none of the functions"),
        ("def f(:", "guard.py:f", "SyntaxError on line 1"),
        ("\nraise ValueError('sekrit')", "guard.py:f", "ValueError on line 2"),
        ("import sys; sys.exit()", "guard.py:f", "SystemExit"),
        ("import nothing_of_that_name", "guard.py:f", "ModuleNotFoundError"),
        ("class F:\n def __init__(self, x): ...", "guard.py:F", "without arguments"),
        ("class F:\n before = 3", "guard.py:F", "not a function"),
        ("class F:\n async def on_event(self, e, i): ...", "guard.py:F", "must not be async"),
        ("async def route(r, i): ...", "guard.py", "must not be async"),
        ("\x00", "guard.py:f", "guard.py:f can't be used"),
        (GUARD, "acme_rules", "entry point"),
        (GUARD, "guard:check", "entry point"),
        (GUARD, "\x00.py", "does not exist"),
    ],
)
def test_an_unusable_middleware_is_a_clear_error(
    tmp_path: Path, source: str, name: str, said: str
) -> None:
    """It names the middleware and the problem, and quotes nothing of the file."""
    (tmp_path / "guard.py").write_text(source)
    with pytest.raises(ConfigError) as caught:
        load_middleware(config_with(tmp_path, name))
    assert said in str(caught.value)
    assert "sekrit" not in str(caught.value)


def test_an_unusable_middleware_keeps_the_old_configuration(tmp_path: Path) -> None:
    """A reload changes nothing then."""
    (tmp_path / "guard.py").write_text(GUARD)
    gateway = Gateway(config_with(tmp_path, "guard.py:check"))
    before = gateway.config, gateway.middleware
    with pytest.raises(ConfigError):
        gateway.apply(config_with(tmp_path, "guard.py:nothing"))
    assert (gateway.config, gateway.middleware) == before


def test_installed_packages_provide_middleware(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an entry point of the group `dragoman.middleware`."""
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[dragoman.middleware]\nacme_rules = acme_gateway_rules:check\n"
    )
    (tmp_path / "acme_gateway_rules.py").write_text(GUARD)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = loaded(tmp_path, "acme_rules")
    assert found.hooks[0].before is not None
    assert found.digest != loaded(tmp_path, "acme_rules", "acme_rules").digest


def test_the_settings_are_read_from_the_file() -> None:
    """Problems have line and column."""
    from dragoman.gateway.config.problems import ConfigFileError
    from dragoman.gateway.config.reading import parse_config

    text = '[server]\nmiddleware = ["guard.py:f"]\nmiddleware_timeout = "5s"\n'
    text += 'cache = "redis://127.0.0.1/3"\ncache_size = "16MiB"\n'
    server = parse_config(text, {}).server
    found: Any = (server.middleware, server.middleware_timeout, server.cache, server.cache_size)
    assert found == (("guard.py:f",), 5.0, "redis://127.0.0.1/3", 16 * 2**20)
    with pytest.raises(ConfigFileError) as caught:
        parse_config('[server]\ncache = "sqlite:///x"\n', {})
    assert (caught.value.line, caught.value.column) == (2, 9)
