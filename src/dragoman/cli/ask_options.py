"""What is asked: the prompt, what goes along with it, and how the answer should be."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.exit_codes import BROKEN, FILES, USAGE, Ending
from dragoman.cli.model_options import MODEL_VARIABLE

if TYPE_CHECKING:
    from dragoman.cli.history.stores import Place
    from dragoman.cli.prompt_template import Template
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
    extract: bool
    stream: bool | None
    as_json: bool
    usage: bool
    settings: dict[str, Any]
    template: Template | None
    tools: tuple[str, ...]
    mcp: tuple[str, ...]
    mcp_config: tuple[str, ...]
    is_continued: bool
    session: str | None
    store: Place
    saved_as: str | None
    dialect: str | None
    base_url: str | None
    timeout: float | None
    yes: bool

    @property
    def instructions(self) -> str | None:
        """What the model is told first: on the command line, or in the template."""
        theirs = None if self.template is None else self.template.system
        return theirs if self.system is None else self.system

    @property
    def tool_names(self) -> tuple[str, ...]:
        """Where the tools come from."""
        return self.tools or (() if self.template is None else self.template.tools)

    @property
    def has_schema(self) -> bool:
        """Whether the answer is to be JSON of a schema."""
        theirs = None if self.template is None else self.template.schema
        return self.schema is not None or theirs is not None

    @property
    def is_kept(self) -> bool:
        """Whether question and answer are part of a chat."""
        return self.is_continued or self.session is not None

    @property
    def is_agent(self) -> bool:
        """Whether it takes more than one request to one model."""
        return bool(self.tool_names or self.mcp or self.mcp_config) or self.is_kept


def model_and_words(
    words: tuple[str, ...], named: str | None, template: Template | None, last: str | None = None
) -> tuple[str | None, tuple[str, ...]]:
    """The model, and what is left of the arguments.

    The first argument is the model, unless one is named elsewhere (with -m, in the template, by
    the chat that is continued, in the environment) and this names none.
    """
    if named is not None:
        return named, words
    usual = (
        (template.model if template is not None else None) or last or os.environ.get(MODEL_VARIABLE)
    )
    if words and (usual is None or names_model(words[0])) and words != ("-",):
        return words[0], words[1:]
    return usual, words


def names_model(word: str) -> bool:
    """Whether a word is `provider:model`, of a provider that there is."""
    from dragoman.cli.provider_status import own_model
    from dragoman.errors import DragomanError
    from dragoman.providers.registry import provider

    place, colon, _ = word.partition(":")
    if not colon or (any(map(str.isspace, word)) and not word.endswith(".gguf")):
        return False
    try:
        return own_model(word) is not None or provider(place) is not None
    except DragomanError:
        return False


def request_of(words: tuple[str, ...], options: Options) -> tuple[Request, list[str]]:
    """The request, and the names of the attachments that are its message's first parts."""
    from dragoman.cli.request_settings import request_fields
    from dragoman.model.messages import Message
    from dragoman.model.parts import Text
    from dragoman.model.requests import Request

    names = ["-" in options.attach, options.schema == "-", words == ("-",)]
    if sum(names) > 1 or options.attach.count("-") > 1:
        raise Ending(USAGE, f"{_STDIN} can be read once: name - in one place")
    _expect_files(options.attach)
    said = _prompt(words, is_taken=names[0] or names[1])
    template = options.template
    prompt = said if template is None else template.filled(said)
    files = attached(options.attach)
    if not prompt and not files:
        raise Ending(USAGE, f"ask what? Give a PROMPT, or pipe it in; - reads {_STDIN}")
    parts = [*files, *([Text(prompt)] if prompt else [])]
    schema = options.schema if options.schema is not None or template is None else template.schema
    system = options.instructions
    request = Request(
        system=() if system is None else (Text(system),),
        messages=(Message.user(*parts),),
        output=_output(schema),
    )
    settings = request_fields(options.settings)
    return request.with_settings(**settings), [_named(name) for name in options.attach]


def _expect_files(names: tuple[str, ...]) -> None:
    for name in names:
        if name != "-" and not _is_there(name):
            problem = "is a folder" if Path(name).is_dir() else "there is no such file"
            raise Ending(USAGE, f"{name}: {problem}")


def _is_there(name: str) -> bool:
    """Whether a name is that of something to read: a file, or a pipe that a shell has made."""
    try:
        return not stat.S_ISDIR(Path(name).stat().st_mode)
    except (OSError, ValueError):
        return False


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


def _output(given: str | Mapping[str, Any] | None) -> Output | None:
    """The form that a JSON Schema asks for: itself, a file with it, or fields by name."""
    from dragoman.cli.schema_fields import schema_of_fields
    from dragoman.errors import InvalidInputError
    from dragoman.model.jsontext import loads
    from dragoman.model.requests import Output

    if given is None:
        return None
    if not isinstance(given, str):
        return Output(format="schema", schema=given, strict=True)
    is_inline = given.lstrip().startswith("{")
    if not is_inline and given != "-" and not _is_there(given):
        schema: Any = schema_of_fields(given)
        return Output(format="schema", schema=schema, strict=True)
    named = "--schema" if is_inline else _named(given)
    try:
        schema = loads(given.encode() if is_inline else _read(given))
    except InvalidInputError as error:
        problem = str(error)
    else:
        if isinstance(schema, dict):
            return Output(format="schema", schema=schema, strict=True)
        problem = "a JSON Schema is an object"
    raise Ending(BROKEN, f"{named}: {problem}")
