"""What is asked: the prompt, what goes along with it, and how the answer should be."""

from __future__ import annotations

import os
import re
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.endings import BROKEN, FILES, USAGE, Ending

if TYPE_CHECKING:
    from dragoman.model.content import AnyPart
    from dragoman.model.requests import Output, Request

MOST_BYTES = 50_000_000
"""Of all attachments, or of standard input: more no provider takes in a request."""

_STDIN = "standard input"
_PART = re.compile(r"messages\[0\]\.parts\[(\d+)\]")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What was said on the command line."""

    system: str | None
    attach: tuple[str, ...]
    schema: str | None
    stream: bool | None
    as_json: bool
    usage: bool
    max_tokens: int | None
    temperature: float | None
    dialect: str | None
    base_url: str | None
    timeout: float | None
    yes: bool


def request_of(words: tuple[str, ...], options: Options) -> tuple[Request, list[str]]:
    """The request, and the names of the attachments that are its message's first parts."""
    from dragoman.model.messages import Message
    from dragoman.model.parts import Text
    from dragoman.model.requests import Request, Sampling

    names = ["-" in options.attach, options.schema == "-", words == ("-",)]
    if sum(names) > 1 or options.attach.count("-") > 1:
        raise Ending(USAGE, f"{_STDIN} can be read once: name - in one place")
    prompt = _prompt(words, is_taken=names[0] or names[1])
    files = attached(options.attach)
    if not prompt and not files:
        raise Ending(USAGE, f"ask what? Give a PROMPT, or pipe it in; - reads {_STDIN}")
    parts = [*files, *([Text(prompt)] if prompt else [])]
    request = Request(
        system=() if options.system is None else (Text(options.system),),
        messages=(Message.user(*parts),),
        sampling=Sampling(max_tokens=options.max_tokens, temperature=options.temperature),
        output=_output(options.schema),
    )
    return request, [_named(name) for name in options.attach]


def attachment_of(path: str, files: list[str]) -> str | None:
    """The attachment that a path in the request points to; what is said of it is not it."""
    found = _PART.fullmatch(path)
    return files[int(found[1])] if found and int(found[1]) < len(files) else None


# --- the prompt


def _prompt(words: tuple[str, ...], *, is_taken: bool) -> str:
    """What the arguments say, after what is piped in."""
    if words == ("-",):
        return _piped()
    said = " ".join(words)
    piped = _piped() if not is_taken and _is_piped() else ""
    return f"{piped}\n\n{said}" if piped and said else piped or said


def _is_piped() -> bool:
    """Whether somebody gave us something to read: a pipe or a file, no terminal and no device."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except ValueError:  # a stand-in for the real one, in a test
        return True
    except OSError:  # it is closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _piped() -> str:
    # Without the newline that ends every line in a pipe, as `$(…)` has it.
    return _text_of(_read("-"), _STDIN).removesuffix("\n").removesuffix("\r")


def _text_of(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        hint = "; --attach - sends it as a file" if name == _STDIN else ""
    raise Ending(BROKEN, f"{name}: is not text in UTF-8{hint}")


# --- files


def _read(name: str, most: int = MOST_BYTES) -> bytes:
    """What a file holds, or standard input."""
    with click.open_file(name, "rb") as file:
        content: bytes = file.read(most + 1)
    if len(content) > most:
        from dragoman.cli.screen import size_of

        limit = f"no more than {size_of(MOST_BYTES)} can be sent"
        raise Ending(FILES, f"{_named(name)}: {limit}")
    return content


def _named(name: str) -> str:
    return _STDIN if name == "-" else name


def attached(names: tuple[str, ...]) -> list[AnyPart]:
    """Files as the parts that they are sent as."""
    left = MOST_BYTES
    parts: list[AnyPart] = []
    for name in names:
        content = _read(name, left)
        left -= len(content)
        if not content:
            raise Ending(USAGE, f"{_named(name)}: is empty")
        parts.append(_part(content, name))
    return parts


def _part(content: bytes, name: str) -> AnyPart:
    """A file as what it is: its first bytes tell, or that it is text, or its name."""
    from dragoman.model.media import Audio, File, Image, Video, mime_of, sniff
    from dragoman.model.parts import Text

    label = "" if name == "-" else Path(name).name
    if sniff(content) is None and (text := _as_text(content)) is not None:
        # As text, which every model takes; as a file only some would.
        return Text(f"{label}:\n\n{text}" if label else text)
    mime = mime_of(content, label)
    kinds: dict[str, Any] = {"image": Image, "audio": Audio, "video": Video}
    kind = kinds.get((mime or "").partition("/")[0], File)
    part: AnyPart = kind.from_bytes(content, mime, name=label or None)
    return part


def _as_text(content: bytes) -> str | None:
    if b"\x00" in content:
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _output(name: str | None) -> Output | None:
    """The form that a file with a JSON Schema asks for."""
    from dragoman.errors import InvalidInputError
    from dragoman.model.jsontext import loads
    from dragoman.model.requests import Output

    if name is None:
        return None
    try:
        schema = loads(_read(name))
    except InvalidInputError as error:
        problem = str(error)
    else:
        if isinstance(schema, dict):
            return Output(format="schema", schema=schema, strict=True)
        problem = "a JSON Schema is an object"
    raise Ending(BROKEN, f"{_named(name)}: {problem}")
