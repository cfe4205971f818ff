"""Records commands as pictures: docs/images/terminal-*.svg.

    python docs/record_terminal.py           # writes the pictures
    python docs/record_terminal.py --check   # exits with 1 where one is out of date

Each scene runs real commands in an empty folder and home, with fixed files, no keys and no network.
Nothing that is shown depends on the time or the machine, so that equal output gives equal files.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import pyte
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
WIDTH = 92
_LINES = 60  # of the terminal: no command prints more
_TEXTS = re.compile(r"<text[^>]*>(.*?)</text>", re.DOTALL)
_FACES = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_THEME = TerminalTheme(
    (24, 27, 33),
    (214, 218, 226),
    [(24, 27, 33), (240, 113, 120), (145, 205, 133), (236, 196, 108),
     (122, 171, 247), (200, 149, 236), (105, 205, 205), (214, 218, 226)],
    [(134, 142, 156), (240, 113, 120), (145, 205, 133), (236, 196, 108),
     (122, 171, 247), (200, 149, 236), (105, 205, 205), (255, 255, 255)],
)  # fmt: skip


@dataclass(frozen=True)
class Scene:
    """Commands that are shown one after the other, and the files that they find."""

    name: str
    title: str
    commands: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    """Commands that are run first and not shown."""


QUESTION = """\
{"model": "gpt-5", "seed": 7, "max_completion_tokens": 300, "messages": [
  {"role": "system", "content": "Be brief."},
  {"role": "user", "content": "Where is the Old Bridge?"}]}
"""
BROKEN = """\
{"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [
  {"role": "user", "content": "Go on."},
  {"role": "assistant", "content": [
    {"type": "tool_use", "id": "t 1", "name": "look", "input": {}}]},
  {"role": "user", "content": "And?"}]}
"""


def _session(chat: str, user: str, at: float, said: Sequence[str]) -> str:
    """A stored conversation of two messages, as `dragoman history import` reads it."""
    identity = {"agent": "guide", "chat": chat, "user": user}
    first = {"identity": identity, "version": 2, "last_seq": 2, "created_at": at, "updated_at": at}
    answered = {"model": "claude-sonnet-4-5", "usage": {"input": 40, "output": 6}}
    lines = [_document("Session", first)]
    for seq, (role, text) in enumerate(zip(("user", "assistant"), said, strict=True), start=1):
        id = f"msg_{chat}_{seq}"
        value = {"role": role, "parts": [{"type": "text", "text": text}], "id": id}
        record = {"seq": seq, "id": id, "at": at, "message": _document("Message", value)}
        lines.append(_document("Record", record | (answered if role == "assistant" else {})))
    return "".join(json.dumps(line) + "\n" for line in lines)


def _document(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"dragoman": 2, "kind": kind, "value": value}


TALKS = _session("7", "ana", 1794787200.0, ["Where is the Old Bridge?", "In Mostar."]) + _session(
    "8", "ben", 1794790800.0, ["Who built it, and when?", "Mimar Hayruddin, 1566."]
)
GATEWAY = """\
[providers.lab]
kind = "openai-compatible"
base_url = "http://127.0.0.1:9000/v1"

[[routes]]
model = "gpt-*"
to = ["lab", "echo:"]
"""

SCENES = (
    Scene(
        "convert",
        "Translate a request",
        ("cat question.json", "dragoman convert question.json --to anthropic:claude-sonnet-4-5"),
        {"question.json": QUESTION},
    ),
    Scene(
        "check",
        "Check a request before it is sent",
        ("dragoman check request.json --to anthropic",),
        {"request.json": BROKEN},
    ),
    Scene(
        "ask",
        "Ask, continue, get JSON",
        (
            'dragoman ask echo: "Where is the Old Bridge?" --usage --session bridges',
            'dragoman ask -c "And who built it?"',
            'dragoman ask echo: \'{"city": "Mostar", "age": 460}\' --schema \'city, age int\'',
        ),
    ),
    Scene(
        "history",
        "Stored conversations",
        (
            "dragoman history list",
            "dragoman history show guide/7",
            "dragoman history search built",
        ),
        {"talks.jsonl": TALKS},
        before=("dragoman history import talks.jsonl",),
    ),
    Scene(
        "serve",
        "A gateway's configuration, explained",
        ("cat dragoman.toml", "dragoman serve --check"),
        {"dragoman.toml": GATEWAY},
    ),
)


def recorded(scene: Scene) -> str:
    """The picture of a scene, as SVG."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        place = Path(folder) / "work"
        place.mkdir()
        for name, content in scene.files.items():
            (place / name).write_text(content, encoding="utf-8")
        environment = _environment(Path(folder))
        for command in scene.before:
            _run(command, place, environment)
        console = Console(
            record=True, width=WIDTH, file=StringIO(), force_terminal=True,
            color_system="truecolor", legacy_windows=False,
        )  # fmt: skip
        for position, command in enumerate(scene.commands):
            if position:
                console.print()
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            console.print(_run(command, place, environment))
    svg = console.export_svg(title=scene.title, theme=_THEME, unique_id=f"dragoman-{scene.name}")
    return _standalone(svg)


def _standalone(svg: str) -> str:
    """Without fonts from elsewhere: those of the reader's system do."""
    plain = _FACES.sub("", svg).replace("Fira Code, monospace", _FONT)
    plain = plain.replace("font-family: Fira Code", f"font-family: {_FONT}")
    return "\n".join(line.rstrip() for line in plain.splitlines()) + "\n"


def _environment(folder: Path) -> dict[str, str]:
    binaries = folder / "bin"
    binaries.mkdir()
    program = binaries / "dragoman"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dragoman.cli "$@"\n')
    program.chmod(0o755)
    kept = {name: os.environ[name] for name in ("PYTHONPATH", "SYSTEMROOT") if name in os.environ}
    return {
        **kept,
        "COLUMNS": str(WIDTH),
        "HOME": str(folder / "home"),
        "LANG": "C.UTF-8",
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "PYTHONUTF8": "1",
        "TERM": "xterm-256color",
        "TZ": "UTC",
    }


def _run(command: str, place: Path, environment: dict[str, str]) -> Text:
    """What is on the terminal when a command has ended, with its colours."""
    reader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, WIDTH, 0, 0))
    program = subprocess.Popen(
        ["sh", "-c", command],
        cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal,
    )  # fmt: skip
    os.close(terminal)
    screen = pyte.Screen(WIDTH, _LINES)
    stream = pyte.ByteStream(screen)
    for chunk in _chunks(reader):
        stream.feed(chunk)
    os.close(reader)
    shown = Text("\n").join(_line(screen, number) for number in range(_LINES))
    shown.rstrip()
    if program.wait() not in (0, 1):  # 1: `check` found errors
        msg = f"{command}: exit code {program.returncode}\n{shown.plain}"
        raise RuntimeError(msg)
    return shown


def _line(screen: pyte.Screen, number: int) -> Text:
    """A line of the screen, without the blanks at its end."""
    text, cells = Text(), screen.buffer[number]
    for column in range(WIDTH):
        cell = cells[column]
        colour = {"default": None, "brown": "yellow"}.get(cell.fg, cell.fg)
        if colour and re.fullmatch("[0-9a-f]{6}", colour):
            colour = f"#{colour}"
        style = Style(
            color=colour.replace("bright", "bright_").replace("__", "_") if colour else None,
            bold=cell.bold, italic=cell.italics, underline=cell.underscore, reverse=cell.reverse,
        )  # fmt: skip
        text.append(cell.data, style)
    text.rstrip()
    return text


def _chunks(reader: int) -> Iterator[bytes]:
    with suppress(OSError):  # Linux says so when the last writer is gone
        while chunk := os.read(reader, 65536):
            yield chunk


def outdated() -> list[Path]:
    """The pictures that are missing or no longer show what the commands print."""
    pictures = {IMAGES / f"terminal-{scene.name}.svg": recorded(scene) for scene in SCENES}
    return [
        path
        for path, svg in pictures.items()
        if not path.exists() or texts(path.read_text(encoding="utf-8")) != texts(svg)
    ]


def texts(svg: str) -> list[str]:
    """What a picture says. How it is drawn depends on the version of rich."""
    return _TEXTS.findall(svg)


def main(arguments: list[str]) -> int:
    """Write the pictures, or say which are out of date."""
    if arguments == ["--check"]:
        stale = outdated()
        for path in stale:
            sys.stderr.write(f"{path.relative_to(ROOT)} is out of date: make docs-terminal\n")
        return 1 if stale else 0
    for scene in SCENES:
        (IMAGES / f"terminal-{scene.name}.svg").write_text(recorded(scene), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
