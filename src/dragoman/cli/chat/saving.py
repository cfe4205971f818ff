"""Saves a conversation to a file: canonical JSON, or Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.chat.attaching import typed_path
from dragoman.cli.exit_codes import FILES, USAGE, Ending
from dragoman.interop.markdown import markdown
from dragoman.transport.atomic_files import write_atomically

if TYPE_CHECKING:
    from dragoman.cli.chat.talk import Talk

_READABLE = {".md", ".markdown", ".txt"}


def save(talk: Talk, name: str) -> None:
    """Write the conversation to a file; never overwrites another one."""
    path = _path(talk, name)
    messages = talk.run(talk.history.messages())
    if not messages:
        raise Ending(USAGE, "there are no messages yet")
    is_readable = path.suffix.lower() in _READABLE
    content = markdown(messages).encode(errors="replace") if is_readable else messages.to_json()
    try:
        if path.exists() and path != talk.saved_as:
            raise Ending(FILES, f"{path}: the file already exists; choose another name")
        write_atomically(path, content)
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or "is not a valid file name"
        raise Ending(FILES, f"{path}: {problem}") from None
    talk.saved_as = path
    talk.screen.note(f"{len(messages)} messages saved to {path}")


def _path(talk: Talk, name: str) -> Path:
    if name:
        return typed_path(name.strip("'\""))
    if talk.saved_as is not None:
        return talk.saved_as
    chat = talk.history.identity.chat or "chat"
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in chat)
    return Path(f"{safe.lstrip('.') or 'chat'}.json")
