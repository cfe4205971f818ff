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
# One of ours under another name: it is a dialect, but calls itself otherwise.
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
    """A place for packages to be installed in."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("acme_dialect", None)


def install(folder: Path, code: str, name: str = "acme") -> None:
    """A package that adds a dialect."""
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
def test_a_broken_package_breaks_nothing_else(installed: Path, code: str, problem: str) -> None:
    """Asked for by name it is an error that quotes nothing; detecting and reading go on."""
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


def test_a_description_that_raises_breaks_nothing_else(installed: Path) -> None:
    """What it can't say is no; it is reported, and still there for who asks for it."""
    install(installed, RAISING)
    assert dragoman.detect(CLAUDE) == "anthropic"
    assert dragoman.detect(HELLO | {"seed": 1}) == "acme"  # by its fields, before Chat
    assert dragoman.Messages.from_any([ANSWER])[0].text == "Hi"
    said = sys.modules["acme_dialect"].Said()
    assert dragoman.Messages.from_any([said, *HELLO["messages"]])[0].text == "Hi"
    assert unusable_dialects() == {"acme": "its function hush raises RuntimeError"}
    assert dragoman.dialect("acme").name == "acme"


def test_our_own_names_stay_ours(installed: Path) -> None:
    """A package can't take the place of a dialect that everybody knows, and is not even loaded."""
    install(installed, "raise RuntimeError", name="gemini")
    assert dragoman.dialects().count("gemini") == 1
    assert dragoman.dialect("gemini").messages_field == "contents"
    assert dragoman.detect({"contents": []}) == "gemini"
    assert "built-in" in unusable_dialects()["gemini"]


def test_the_command_says_what_is_wrong(installed: Path) -> None:
    """`dragoman dialects` lists those that work, and names the others beside."""
    install(installed, "raise RuntimeError")
    done = CliRunner().invoke(command, ["dialects", "--json"])
    assert "acme" in done.stderr
    assert "acme" not in {row["name"] for row in json.loads(done.stdout)}


def test_a_package_that_comes_later_is_found(installed: Path) -> None:
    """A name that is not known is looked for once more."""
    with pytest.raises(ConfigError, match="unknown dialect"):
        dragoman.dialect("acme")
    install(installed, RENAMED)
    with pytest.raises(ConfigError, match="its own name differs"):
        dragoman.dialect("acme")
