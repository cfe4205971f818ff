"""Unusable dialects of installed packages raise only when requested."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import dragoman
from dragoman.cli.commands import dragoman as command
from dragoman.errors import ConfigError
from dragoman.wire.dialect import unusable_dialects

HELLO: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
CLAUDE = HELLO | {"model": "claude-x", "max_tokens": 1}
ANSWER = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Hi"}],
          "stop_reason": "end_turn"}  # fmt: skip
# One of our dialects under another name: its own name differs.
RENAMED = "import dragoman\nDIALECT = dragoman.dialect('anthropic')\n"
LISTED = (
    RENAMED
    + """
from dragoman.wire.codec import Codec
described = DIALECT.description._replace(name='acme', fields=['hush'])
DIALECT = Codec(described, DIALECT.target.replace(dialect='acme'), DIALECT._functions)
"""
)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for installed packages."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("acme_dialect", None)


def install(folder: Path, code: str, name: str = "acme") -> None:
    """Install a package that adds a dialect."""
    (folder / "acme_dialect.py").write_text(code, encoding="utf-8")
    info = folder / "acme_dialect-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: acme-dialect\nVersion: 1\n", encoding="utf-8")
    points = f"[dragoman.dialects]\n{name} = acme_dialect:DIALECT\n"
    (info / "entry_points.txt").write_text(points, encoding="utf-8")


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("raise RuntimeError('hush')", "RuntimeError"),
        ("raise SystemExit('hush')", "SystemExit"),
        ("import nothing_of_that_name", "ModuleNotFoundError"),
        ("", "AttributeError"),
        ("DIALECT = 'hush'", "str, not a Dialect"),
        ("from dragoman import Dialect as DIALECT", "not a Dialect"),
        (RENAMED, "its own name differs"),
        (LISTED, "its description's fields is a list"),
    ],
)
def test_a_broken_package_is_isolated(installed: Path, code: str, problem: str) -> None:
    """Requesting it is an error without quotes; detection and reading still work."""
    install(installed, code)
    assert "acme" in dragoman.dialects()
    assert dragoman.detect(HELLO) == "openai-chat"
    assert dragoman.Messages.from_any(HELLO)[0].text == "Hi"
    with pytest.raises(ConfigError, match=problem) as caught:
        dragoman.dialect("acme")
    assert "hush" not in f"{caught.value}{caught.value.__context__!r}{caught.value.__cause__!r}"
    assert list(unusable_dialects()) == ["acme"]
    assert dragoman.dialect("anthropic").name == "anthropic"


RAISING = """
import sys
import dragoman
from dragoman.wire.codec import Codec
from dragoman.wire.description import SdkModule

def hush(*given):
    raise RuntimeError('hush')

chat = dragoman.dialect('openai-chat')
described = chat.description._replace(
    name='acme', order=1, is_likely=hush, unsupported=hush,
    messages=chat.description.messages._replace(is_own=hush, is_answer=hush),
    sdk_modules=(SdkModule('acme_dialect', 'exclude_none', hush, wrap=hush),),
)
DIALECT = Codec(described, chat.target.replace(dialect='acme'), chat._functions)

class Said:
    def model_dump(self, **options):
        return {'role': 'user', 'content': 'Hi'}
"""


def test_a_description_that_raises_is_isolated(installed: Path) -> None:
    """Its failing checks count as "no" and are reported; the dialect stays available."""
    install(installed, RAISING)
    assert dragoman.detect(CLAUDE) == "anthropic"
    assert dragoman.detect(HELLO | {"seed": 1}) == "acme"  # by its fields, before Chat
    assert dragoman.Messages.from_any([ANSWER])[0].text == "Hi"
    said = sys.modules["acme_dialect"].Said()
    assert dragoman.Messages.from_any([said, *HELLO["messages"]])[0].text == "Hi"
    assert unusable_dialects() == {"acme": "its function hush raises RuntimeError"}
    assert dragoman.dialect("acme").name == "acme"


def test_built_in_names_can_t_be_replaced(installed: Path) -> None:
    """A package can't replace a built-in dialect, and is not even loaded."""
    install(installed, "raise RuntimeError", name="gemini")
    assert dragoman.dialects().count("gemini") == 1
    assert dragoman.dialect("gemini").messages_field == "contents"
    assert dragoman.detect({"contents": []}) == "gemini"
    assert "built-in" in unusable_dialects()["gemini"]


def test_the_command_reports_unusable_dialects(installed: Path) -> None:
    """`dragoman dialects` lists the usable dialects, and names the others on stderr."""
    install(installed, "raise RuntimeError")
    done = CliRunner().invoke(command, ["dialects", "--json"])
    assert "acme" in done.stderr
    assert "acme" not in {row["name"] for row in json.loads(done.stdout)}


def test_a_package_installed_later_is_found(installed: Path) -> None:
    """An unknown name is looked up again."""
    with pytest.raises(ConfigError, match="unknown dialect"):
        dragoman.dialect("acme")
    install(installed, RENAMED)
    with pytest.raises(ConfigError, match="its own name differs"):
        dragoman.dialect("acme")
